"""Copies and pickles of users' objects: each works like the original, or an error says why it cannot be copied."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import Parameter, ParameterTuple, Tensor, nn

from .nn.layers import ROWS, LayerRow, flat, made, value
from .questions import of_each

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}


@pytest.fixture(params=WAYS)
def again(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return WAYS[request.param]


def numbers(array: Any) -> Any:
    """The comparable values of any object that holds arrays."""
    if hasattr(array, "asnumpy"):
        return array.asnumpy().tolist()
    if isinstance(array, dict):
        return {key: numbers(item) for key, item in array.items()}
    return [numbers(item) for item in array] if isinstance(array, (list, tuple)) else array


# -------------------------------------------------------------------------------------------------- by class


def network() -> Any:
    hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="hidden")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Dropout(hidden), num_hidden=3, name="fc"), name="softmax")


def batch() -> Any:
    return mx.io.DataBatch([mx.nd.array(np.linspace(-1, 1, 20).reshape(4, 5))], [mx.nd.array([0, 1, 2, 0])])


def made_for(_: int) -> Any:
    return network(), ("data",), ("softmax_label",)


def trained(module: Any, optimizer: str = "adam") -> Any:
    module.bind([("data", (4, 5))], [("softmax_label", (4,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer=optimizer, optimizer_params={"learning_rate": 0.1})
    steps(module)
    return module


def steps(module: Any) -> Any:
    """Weights after two training steps, with the same random numbers in each call."""
    mx.random.seed(5)
    for _ in range(2):
        module.prepare(batch())
        module.forward_backward(batch())
        module.update()
    return numbers(module.get_params())


def sequential() -> Any:
    module = mx.mod.SequentialModule()
    module.add(mx.mod.Module(network()), take_labels=True)
    return module


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop", "nag"])
@pytest.mark.parametrize("kind", [lambda: mx.mod.Module(network()), lambda: mx.mod.BucketingModule(made_for, 1),
                                  sequential], ids=["Module", "BucketingModule", "SequentialModule"])
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_trained_module_goes_on_with_its_weights_and_states(kind, optimizer, way):
    module = trained(kind(), optimizer)
    before = numbers(module.get_params())
    other = WAYS[way](module)
    assert steps(other) == steps(module) != before


def test_objects_bound_to_memory_or_a_thread_refuse_copies(again):
    executor = network().simple_bind(mx.cpu(), data=(4, 5))
    with pytest.raises(TypeError, match="copy its symbol and its arrays, and bind them again"):
        again(executor)


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_an_iterator_that_works_ahead_says_that_it_is_not_copied(way):
    ahead = mx.io.PrefetchingIter(mx.io.NDArrayIter(np.zeros((4, 2)), np.zeros(4), 2))
    with pytest.raises(TypeError, match="reads ahead in a thread cannot be copied"):
        WAYS[way](ahead)


SYMBOLS = {"a network": network, "a variable": lambda: mx.sym.var("x", shape=(2,), init=mx.init.One()),
           "a group": lambda: mx.sym.Group([network(), mx.sym.var("data")])}


@pytest.mark.parametrize("kind", SYMBOLS)
def test_copied_symbols_have_the_same_json(kind, again):
    symbol = SYMBOLS[kind]()
    assert again(symbol).tojson() == symbol.tojson()


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_copied_tensors_keep_dtype_values_and_settings(kind, again):
    dtype = getattr(mx, kind)
    for tensor in (Tensor([1, 2], dtype), Parameter(Tensor([1, 2], dtype), "w", requires_grad=False),
                   mx.common.initializer.initializer("one", 2, dtype)):
        other = again(tensor)
        assert numbers(other) == numbers(tensor) and other.dtype == dtype
        if isinstance(tensor, Parameter):
            assert (other.name, other.requires_grad, type(other)) == ("w", False, Parameter)
    both = again(ParameterTuple([Parameter(Tensor([1], dtype), "a"), Parameter(Tensor([2], dtype), "b")]))
    assert [each.name for each in both] == ["a", "b"]


# -------------------------------------------------------------------------------- by the names of a namespace


def each_of(module: Any, base: type, *without: str) -> pytest.MarkDecorator:
    """Parametrizes a test by the public subclasses of a class in a module."""
    kinds = {name: getattr(module, name) for name in dir(module) if name not in without}
    return pytest.mark.parametrize("kind", dict.fromkeys(
        kind for kind in kinds.values() if isinstance(kind, type) and issubclass(kind, base)),
        ids=lambda kind: kind.__name__)


#: Arguments of classes that need some; all others are made without.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "MultiFactorScheduler": ([1, 3],), "FactorScheduler": (3,), "PolyScheduler": (9,), "CosineScheduler": (9,),
    "TopKAccuracy": (2,), "Perplexity": (None,), "CustomMetric": (np.subtract,),
    "CompositeEvalMetric": (["acc", "mse"],),
    "Load": ({"x": mx.nd.ones(2)},), "Mixed": ([".*"], [mx.init.One()]), "LSTMBias": (0.5,),
    "Constant": (0.5,), "FusedRNN": (mx.init.One(), 4, 1, "lstm"),
    "ExponentialDecayLR": (0.1, 0.9, 4), "InverseDecayLR": (0.1, 0.9, 4), "NaturalExpDecayLR": (0.1, 0.9, 4),
    "CosineDecayLR": (0.01, 0.1, 4), "PolynomialDecayLR": (0.1, 0.01, 4, 0.5), "WarmUpLR": (0.1, 4),
}


def build(kind: type) -> Any:
    return kind(*ARGUMENTS.get(kind.__name__, ()))


@each_of(mx.optimizer, mx.optimizer.Optimizer, "Optimizer", "Test")
def test_copied_optimizers_go_on_with_their_states(kind, again):
    updater = mx.optimizer.get_updater(build(kind))
    weight, gradient = mx.nd.array([1, -2, 3]), mx.nd.array([0.5, 0.25, -1])
    updater(0, gradient, weight)
    other, theirs = again(updater), weight.copy()
    again(updater.optimizer)
    for state in (copy.deepcopy(updater) if again is copy.copy else updater, other):
        mx.random.seed(1)  # SGLD draws
        state(0, gradient, weight if state is not other else theirs)
    assert numbers(weight) == numbers(theirs)


@each_of(mx.metric, mx.metric.EvalMetric, "EvalMetric")
def test_copied_metrics_go_on_with_their_sums(kind, again):
    metric = build(kind)
    labels, guesses = [mx.nd.array([0, 1])], [mx.nd.array([[0.25, 0.75], [0.5, 0.5]])]
    try:
        metric.update(labels, guesses)
    except NotImplementedError:
        pass  # a base of metrics
    except (ValueError, TypeError):
        metric.update(labels, labels)  # it compares arrays of one shape
    assert str(again(metric).get()) == str(metric.get())


@each_of(mx.init, mx.init.Initializer, "Initializer")
def test_copied_initializers_draw_the_same_values(kind, again):
    first = build(kind)
    filled = []
    for initializer in (first, again(first)):
        mx.random.seed(4)
        array = mx.nd.zeros((2, 3, 2, 2) if kind.__name__ == "Bilinear" else (4, 3))
        try:
            initializer(mx.init.InitDesc("x_weight"), array)
        except Exception as error:  # it needs another name or shape, like its copy
            filled.append(str(error))
        else:
            filled.append(numbers(array))
    assert filled[0] == filled[1]


@each_of(mx.lr_scheduler, mx.lr_scheduler.LRScheduler, "LRScheduler")
def test_copied_schedules_give_the_same_rates(kind, again):
    schedule = build(kind)
    schedule(2)
    other = again(schedule)
    assert [other(step) for step in range(3, 9)] == [schedule(step) for step in range(3, 9)]


@each_of(nn, nn.LearningRateSchedule, "LearningRateSchedule")
def test_copied_schedules_of_cells_give_the_same_rates(kind, again):
    schedule = build(kind)
    step = Tensor(3, mx.int32)
    assert numbers(again(schedule)(step)) == numbers(schedule(step))


@each_of(nn, nn.Optimizer, "Optimizer", "Momentum", "LARS")
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_copied_optimizers_of_cells_go_on(kind, way):
    rate = None if kind is nn.AdaFactor else 0.1  # AdaFactor finds its own rate
    optimizer = kind([Parameter(Tensor([1.0, 2.0]), "w")], learning_rate=rate)
    optimizer((Tensor([0.5, -0.5]),))
    other = WAYS[way](optimizer)
    for each in (optimizer, other):
        each((Tensor([0.25, 1.0]),))
    states = [numbers(dict(each.parameters_dict())) for each in (optimizer, other)]
    assert states[0] == states[1] and states[0]


def _once(rows: list[LayerRow]) -> list[LayerRow]:
    """One row of each class."""
    return list({row.name: row for row in rows}.values())


@of_each(itertools.product(_once(ROWS), ["deepcopy", "pickle"]), by=lambda case: case[0].name)
def test_copied_cells_compute_the_same(case):
    row, way = case
    cell = made(row.layer, False)
    other = WAYS[way](cell)
    assert type(other) is type(cell)
    mine, theirs = dict(cell.parameters_dict()), dict(other.parameters_dict())
    assert numbers(mine) == numbers(theirs)
    assert not any(np.shares_memory(mine[name]._data, theirs[name]._data) for name in mine)
    inputs = [value(spec, i) for i, spec in enumerate(row.inputs)]
    outputs = []
    for each in (cell, other):
        mx.random.seed(2)
        outputs.append(str(numbers(flat(each(*inputs)))))
    assert outputs[0] == outputs[1]


ITERATORS = {
    "NDArrayIter": lambda: mx.io.NDArrayIter(np.arange(12).reshape(6, 2), np.arange(6), 2, shuffle=True),
    "ResizeIter": lambda: mx.io.ResizeIter(mx.io.NDArrayIter(np.arange(6), np.arange(6), 2), 5),
    "BucketSentenceIter": lambda: mx.rnn.BucketSentenceIter([[1, 2], [2, 1], [1], [2]], 1, buckets=[1, 2]),
}


@pytest.mark.parametrize("kind", ITERATORS)
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_iterators_go_on_where_they_were(kind, way):
    iterator = ITERATORS[kind]()
    iterator.next()
    other = WAYS[way](iterator)
    rest = [[numbers(batch.data), numbers(batch.label)] for batch in iterator]
    assert rest and rest == [[numbers(batch.data), numbers(batch.label)] for batch in other]


def test_contexts_descriptions_and_dtypes_equal_their_copies(again):
    for thing in (mx.cpu(2), mx.io.DataDesc("data", (2, 3), "float16"), mx.float32, mx.init.InitDesc("a", {"b": "c"}),
                  mx.operator.get("Convolution")):
        assert again(thing) == thing
    # A copy of a random state is an equal state.
    mx.random.set_state(again(mx.random.get_state()))
    mx.set_rng_state(again(mx.get_rng_state()))

"""Random numbers follow their distributions, and the same seed gives the same numbers.

Seeds are fixed, so every test here gives one answer forever.
"""

from __future__ import annotations

import math
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg import nn, ops
from opreg.core import generators
from opreg.errors import ArgumentError, AttrError, ShapeError
from tests.laws import stats
from tests.questions import of_each

MANY = 20_000
# A fair sample of a right generator falls below this once in ten thousand; the seeds here are chosen once.
SURPRISE = 1e-4


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(20240229)


def fits(sample: np.ndarray, law) -> bool:
    """Whether numbers agree with a distribution of scipy.stats."""
    sample, law = sample.astype(float), law() if callable(law) else law
    if isinstance(law.dist, stats().rv_continuous):
        return stats().kstest(sample, law.cdf).pvalue > SURPRISE
    top = int(law.ppf(0.999))
    observed = np.bincount(np.minimum(sample, top).astype(int), minlength=top + 1)
    wanted = np.append(law.pmf(np.arange(top)), law.sf(top - 1)) * sample.size
    usual = wanted >= 5
    observed = np.append(observed[usual], observed[~usual].sum())
    wanted = np.append(wanted[usual], wanted[~usual].sum())
    return stats().chisquare(observed[wanted > 0], wanted[wanted > 0]).pvalue > SURPRISE


# Name, parameters, the law; parameters in the order of the operator.
LAWS = [
    ("uniform", (-1.0, 3.0), lambda: stats().uniform(-1, 4)),
    ("normal", (2.0, 0.5), lambda: stats().norm(2, 0.5)),
    ("gamma", (0.7, 2.0), lambda: stats().gamma(0.7, scale=2)),
    ("gamma", (5.0, 0.5), lambda: stats().gamma(5, scale=0.5)),
    ("exponential", (4.0,), lambda: stats().expon(scale=0.25)),
    ("poisson", (0.8,), lambda: stats().poisson(0.8)),
    ("poisson", (30.0,), lambda: stats().poisson(30)),
    ("negative_binomial", (3, 0.4), lambda: stats().nbinom(3, 0.4)),
    ("generalized_negative_binomial", (2.0, 0.5), lambda: stats().nbinom(2, 0.5)),
    ("generalized_negative_binomial", (2.0, 0.0), lambda: stats().poisson(2)),
]
IDS = [f"{name}-{','.join(map(str, parameters))}" for name, parameters, _ in LAWS]


@pytest.mark.parametrize("name, parameters, law", LAWS, ids=IDS)
class TestLaws:
    def test_distributions_fit_parameters_given_as_attributes(self, name, parameters, law):
        drawn = mx.nd.op.__getattr__(f"random_{name}")(*parameters, shape=(MANY // 4, 4))
        assert drawn.dtype == np.float32
        assert fits(drawn.asnumpy().ravel(), law)

    @pytest.mark.parametrize("dtype", ["float16", "float64"])
    def test_distributions_fit_in_every_dtype(self, name, parameters, law, dtype):
        drawn = getattr(mx.nd, f"random_{name}")(*parameters, shape=2000, dtype=dtype)
        assert drawn.dtype == np.dtype(dtype)
        assert fits(drawn.asnumpy(), law)

    def test_samples_take_shape_and_dtype_from_an_array(self, name, parameters, law):
        drawn = getattr(mx.nd, f"_random_{name}_like")(mx.nd.zeros(MANY, dtype="float64"), *parameters)
        assert drawn.dtype == np.float64
        assert fits(drawn.asnumpy(), law)

    def test_distributions_fit_parameters_given_as_arrays(self, name, parameters, law):
        arrays = [mx.nd.array([1, value, value]) for value in parameters]
        drawn = getattr(mx.nd, f"sample_{name}")(*arrays, shape=MANY)
        assert drawn.shape == (3, MANY)
        assert fits(drawn.asnumpy()[1], law)
        assert fits(drawn.asnumpy()[2], law)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_parameters_without_axes_give_one_sample(self, name, parameters, law, dtype):
        held = mx.nd.zeros((), dtype=dtype)
        arrays = [mx.nd.array(value) for value in parameters]
        for drawn in (getattr(mx.nd, f"random_{name}")(*parameters, shape=(), dtype=dtype),
                      getattr(mx.nd, f"_random_{name}_like")(held, *parameters),
                      getattr(mx.nd, f"sample_{name}")(*arrays, dtype=dtype)):
            assert drawn.shape == () and drawn.dtype == np.dtype(dtype)

    def test_samples_are_written_to_out(self, name, parameters, law):
        held = mx.nd.zeros((100, 100))
        memory = held._data
        getattr(mx.nd, f"random_{name}")(*parameters, shape=(100, 100), out=held)
        assert held._data is memory
        assert fits(held.asnumpy().ravel(), law)
        getattr(mx.nd, f"_random_{name}_like")(held, *parameters, out=held)
        assert held._data is memory
        assert fits(held.asnumpy().ravel(), law)


def test_user_functions_name_parameters_as_mxnet_does():
    assert fits(mx.nd.random.exponential(4, shape=MANY).asnumpy(), stats().expon(scale=4))
    assert fits(mx.nd.random.gamma(alpha=2, beta=3, shape=MANY).asnumpy(), stats().gamma(2, scale=3))
    assert fits(mx.random.normal(loc=1, scale=2, shape=MANY).asnumpy(), stats().norm(1, 2))
    assert fits(mx.nd.random.randn(10, MANY // 10, loc=1).asnumpy().ravel(), stats().norm(1, 1))
    assert mx.nd.random.uniform().shape == (1,)
    assert mx.nd.random.poisson(mx.nd.array([1, 50]), shape=(2, 3)).shape == (2, 2, 3)


def test_a_scalar_parameter_broadcasts_to_an_array_parameter():
    drawn = mx.nd.random.uniform(mx.nd.array([0, 1]), 2, shape=MANY).asnumpy()
    assert fits(drawn[0], stats().uniform(0, 2)) and fits(drawn[1], stats().uniform(1, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("low, high", [(0, 1), (1, 2), (-1, 0.1), (3, 3)])
def test_uniform_numbers_stay_below_high(low, high, dtype):
    drawn = mx.nd.random.uniform(low, high, shape=MANY, dtype=dtype).asnumpy()
    assert drawn.min() >= low
    assert drawn.max() < high or low == high
    bounds = mx.nd.array([low], dtype=dtype), mx.nd.array([high], dtype=dtype)
    drawn = mx.nd.sample_uniform(*bounds, shape=MANY, dtype=dtype).asnumpy()
    assert drawn.max() < bounds[1].asnumpy()[0] or low == high


@pytest.mark.parametrize("low, high, dtype", [(-3, 4, "int32"), (0, 2, "int64"), (-2**31, 2**31, "int32")])
def test_randint_draws_integers_below_high(low, high, dtype):
    drawn = mx.nd.random.randint(low, high, shape=MANY, dtype=dtype)
    assert drawn.dtype == np.dtype(dtype)
    values = drawn.asnumpy().astype(float)
    assert values.min() >= low and values.max() < high
    if high - low < 10:
        assert fits(values - low, stats().randint(0, high - low))
    else:
        assert stats().kstest(values, stats().uniform(low, high - low).cdf).pvalue > SURPRISE


# ------------------------------------------------------------------------------------------ given probabilities


def test_multinomial_draws_in_proportion():
    chances = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.0, 0.6, 0.0], [1, 2, 3, 4]])
    drawn = mx.nd.sample_multinomial(mx.nd.array(chances), shape=(MANY // 2, 2))
    assert drawn.shape == (3, MANY // 2, 2) and drawn.dtype == np.int32
    for row, numbers in zip(chances, drawn.asnumpy()):
        counts = np.bincount(numbers.ravel(), minlength=4)
        assert (counts[row == 0] == 0).all()
        wanted = row / row.sum() * MANY
        assert stats().chisquare(counts[row > 0], wanted[row > 0]).pvalue > SURPRISE


@given(st.lists(st.sampled_from([0.0, 1e-30, 0.1, 1.0, 3.0]), min_size=1, max_size=6).filter(any),
       st.integers(1, 2000))
@settings(deadline=None, max_examples=40, derandomize=True)
def test_multinomial_never_draws_values_of_probability_zero(row, rows):
    drawn = mx.nd.sample_multinomial(mx.nd.array([row] * rows), shape=3).asnumpy()
    assert (np.array(row)[drawn] > 0).all()


def test_multinomial_returns_log_probabilities_with_gradients():
    chances = mx.nd.array([[0.2, 0.8], [0.5, 0.5]])
    chances.attach_grad()
    with mx.autograd.record():
        drawn, logs = mx.nd.sample_multinomial(chances, shape=5, get_prob=True)
        loss = logs * mx.nd.array([[1], [2]])
    loss.backward()
    index = drawn.asnumpy()
    assert np.allclose(logs.asnumpy(), np.log(np.take_along_axis(chances.asnumpy(), index, 1)))
    counts = np.array([np.bincount(row, minlength=2) for row in index])
    assert np.allclose(chances.grad.asnumpy(), counts * [[1], [2]] / chances.asnumpy())


# --------------------------------------------------------------------------------------- without replacement


def test_shuffle_keeps_rows_and_draws_all_orders_equally():
    data = mx.nd.array(np.arange(6).reshape(3, 2))
    orders = [tuple(mx.nd.shuffle(data).asnumpy()[:, 0]) for _ in range(1200)]
    seen, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(seen) == math.factorial(3)
    assert stats().chisquare(counts).pvalue > SURPRISE
    one = mx.nd.shuffle(data).asnumpy()
    assert (one[:, 1] == one[:, 0] + 1).all()


def test_zipfian_numbers_differ_and_are_log_uniform():
    drawn, trials = mx.nd._sample_unique_zipfian(range_max=50, shape=(2000, 3))
    numbers = drawn.asnumpy()
    assert all(len(set(row)) == 3 for row in numbers)
    assert (trials.asnumpy() >= 3).all() and (trials.asnumpy() > 3).any()
    chances = np.log((np.arange(50) + 2) / (np.arange(50) + 1)) / np.log(51)
    assert stats().chisquare(np.bincount(numbers[:, 0], minlength=50), chances * 2000).pvalue > SURPRISE
    everything, _ = mx.nd._sample_unique_zipfian(range_max=6, shape=(4, 6))
    assert (np.sort(everything.asnumpy(), axis=1) == np.arange(6)).all()


# ------------------------------------------------------------------------------------------------------ seeds


def numbers(ctx=None) -> list[float]:
    return mx.nd.random.normal(shape=5, ctx=ctx).asnumpy().tolist()


def test_seeding_repeats_everything():
    def draw():
        mx.random.seed(11)
        return [mx.nd.random.normal(shape=5), mx.nd.random.poisson(3, shape=5), mx.nd.random.randint(0, 99, 5),
                mx.nd.shuffle(mx.nd.arange(9)), mx.nd.sample_multinomial(mx.nd.ones(4), shape=7)]

    for first, again in zip(draw(), draw()):
        assert (first.asnumpy() == again.asnumpy()).all()
    mx.random.seed(12)
    assert numbers() != draw()[0].asnumpy().tolist()


def test_devices_draw_different_numbers_from_one_seed():
    mx.random.seed(3)
    here, there = numbers(mx.cpu(0)), numbers(mx.cpu(1))
    assert here != there
    mx.random.seed(3)
    assert numbers(mx.cpu(1)) == there  # independent of draws on the other device


def test_a_device_seeded_alone_draws_by_its_own_seed():
    mx.random.seed(5, mx.cpu(1))
    one = numbers(mx.cpu(1))
    before = numbers(mx.cpu(0))
    mx.random.seed(5, ctx=mx.cpu(0))
    assert numbers(mx.cpu(0)) == one != before


def test_a_generator_stays_the_same_object():
    held = generators.generator("cpu", 0)
    state = held.bit_generator
    mx.random.seed(9)
    first = held.random(3).tolist()
    mx.random.seed(9)
    assert generators.generator("cpu", 0) is held and held.bit_generator is state
    assert held.random(3).tolist() == first


def test_a_device_first_used_after_seeding_is_seeded():
    mx.random.seed(77)
    first = numbers(mx.cpu(41))
    mx.random.seed(77)
    assert numbers(mx.cpu(41)) == first


def test_threads_get_one_generator():
    found = []
    threads = [threading.Thread(target=lambda: found.append(generators.generator("cpu", 63))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(each) for each in found}) == 1


@pytest.mark.parametrize("value", [-1, 0, 2**70, np.int64(5), True])
def test_any_integer_is_a_seed(value):
    mx.random.seed(value)
    first = numbers()
    mx.random.seed(value)
    assert numbers() == first


@of_each([
    (lambda: mx.random.seed("x"), ArgumentError, "expected an integer, got 'x'"),
    (lambda: mx.random.seed(1.5), ArgumentError, "expected an integer"),
    (lambda: mx.random.seed(1, "cpu"), ArgumentError, "ctx must be a context"),
    (lambda: mx.nd.random.uniform(2, 1), AttrError, "low <= high, got low=2.0, high=1.0"),
    (lambda: mx.nd.random.normal(scale=-1), AttrError, "scale >= 0"),
    (lambda: mx.nd.random.gamma(alpha=-1), AttrError, "alpha >= 0"),
    (lambda: mx.nd.random.exponential(0), ArgumentError, "scale > 0"),
    (lambda: mx.nd.random.poisson(-1), AttrError, "lam >= 0"),
    (lambda: mx.nd.random.negative_binomial(1, 0), AttrError, "0 < p <= 1"),
    (lambda: mx.nd.random.randint(5, 5), AttrError, "low < high"),
    (lambda: mx.nd.random.randint(0, 2**40), AttrError, "do not fit int32"),
    (lambda: mx.nd.random.randint(0.5, 2), ArgumentError, "low must be an integer"),
    (lambda: mx.nd.random.uniform("a"), ArgumentError, "low must be a number, array or symbol, got str"),
    (lambda: mx.nd.random.uniform(shape=2, dtype="int32"), AttrError, "expected one of float16, float32, float64"),
    (lambda: mx.nd.random.uniform(mx.nd.ones(2), mx.nd.ones(3)), ShapeError, r"high: expected shape \(2,\)"),
    (lambda: mx.nd.sample_multinomial(mx.nd.ones(2), dtype="int64"), AttrError, "uint8, int32"),
    (lambda: mx.nd.sample_multinomial(mx.nd.ones(257), dtype="uint8"), ShapeError, "257 .* fit uint8"),
    (lambda: mx.nd.sample_multinomial(mx.nd.ones((1, 2050)), dtype="float16"), ShapeError, "2050 .* fit float16"),
    (lambda: mx.nd._sample_unique_zipfian(range_max=3, shape=(1, 5)), AttrError, "cannot draw 5"),
    (lambda: mx.nd._sample_unique_zipfian(range_max=3, shape=5), AttrError, "rows, draws"),
    (lambda: mx.nd.random_pdf_normal(mx.nd.ones((2, 3)), mx.nd.ones(3), mx.nd.ones(3)), ShapeError,
     r"sample: expected shape \(3, \.\.\.\), got \(2, 3\)"),
])
def test_errors_name_the_expected_value(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_parameters_out_of_range_in_an_array_give_nan_there():
    drawn = mx.nd.sample_gamma(mx.nd.array([-1, 1]), mx.nd.array([1, 1]), shape=3).asnumpy()
    assert np.isnan(drawn[0]).all() and (drawn[1] > 0).all()
    drawn = mx.nd.sample_poisson(mx.nd.array([[-1], [np.nan], [2]])).asnumpy()
    assert np.isnan(drawn[:2]).all() and drawn[2] >= 0


# ------------------------------------------------------------------------------------------------------ state

#: Operators that draw random numbers, each in another way.
DRAWS = {
    "operators": lambda: numbers(),
    "another device": lambda: numbers(mx.cpu(3)),
    "an initializer": lambda: mx.nd.array(mx.common.initializer.initializer("normal", 4).asnumpy()).asnumpy().tolist(),
    "an initializer of MXNet's": lambda: _initialized(),
    "Dropout of arrays": lambda: _dropped(mx.nd.ones(20)),
    "Dropout of a Cell": lambda: _dropout_cell()(mx.Tensor(np.ones(20, np.float32))).asnumpy().tolist(),
    "Dropout of an executor": lambda: EXECUTOR.forward(is_train=True)[0].asnumpy().tolist(),
    "a compiled function": lambda: COMPILED(mx.Tensor(np.zeros(4, np.float32))).asnumpy().tolist(),
}
EXECUTOR = mx.sym.Dropout(mx.sym.var("x"), p=0.5).bind(mx.cpu(), {"x": mx.nd.ones(20)})
COMPILED = mx.jit(lambda x: x + ops.standard_normal((4,)))
#: Functions that save the state of the generators, and that restore it.
STATES = {
    "random": (mx.random.get_state, mx.random.set_state),
    "random, pickled": (lambda: pickle.dumps(mx.random.get_state()), lambda s: mx.random.set_state(pickle.loads(s))),
    "a tensor": (mx.get_rng_state, mx.set_rng_state),
    "a tensor's numbers": (lambda: mx.get_rng_state().asnumpy().tolist(),
                           lambda s: mx.set_rng_state(mx.Tensor(s, mx.uint8))),
}


def _initialized():
    array = mx.nd.zeros((3, 4))
    mx.init.Xavier()(mx.init.InitDesc("a_weight"), array)
    return array.asnumpy().tolist()


def _dropped(x):
    with mx.autograd.train_mode():
        return mx.nd.Dropout(x, p=0.5, mode="always").asnumpy().tolist()


def _dropout_cell():
    return nn.Dropout(p=0.5).set_train()


@pytest.mark.parametrize("way", STATES)
@pytest.mark.parametrize("draw", DRAWS)
def test_random_values_go_on_from_a_state(draw, way):
    take, put = STATES[way]
    mx.random.seed(3)
    mx.nd.random.poisson(3, shape=7)
    state = take()
    first = DRAWS[draw](), DRAWS[draw]()
    assert first[0] != first[1]
    mx.random.seed(99)
    put(state)
    assert (DRAWS[draw](), DRAWS[draw]()) == first


def test_a_device_that_was_not_used_before_starts_from_the_seed_of_the_state():
    mx.random.seed(3)
    state = mx.random.get_state()
    first = numbers(mx.cpu(71))
    mx.random.seed(4)
    mx.random.set_state(state)
    assert numbers(mx.cpu(71)) == first


def _train(module, batches):
    losses = []
    for batch in batches:
        module.forward_backward(batch)
        module.update()
        losses.append(module.get_outputs()[0].asnumpy().tolist())
    return losses


def test_a_resumed_training_draws_the_same_values():
    data = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="fc"), p=0.5)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(data, num_hidden=3, name="out"), name="softmax")
    rng = np.random.default_rng(1)
    batches = [mx.io.DataBatch([mx.nd.array(rng.normal(size=(4, 5)))], [mx.nd.array(rng.integers(3, size=4))])
               for _ in range(6)]
    module = mx.mod.Module(net)
    module.bind([("data", (4, 5))], [("softmax_label", (4,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer="adam")
    _train(module, batches[:3])
    kept = pickle.dumps((module, mx.random.get_state()))
    rest = _train(module, batches[3:])
    mx.random.seed(0)
    again, state = pickle.loads(kept)
    mx.random.set_state(state)
    assert _train(again, batches[3:]) == rest


@pytest.mark.parametrize("call, words", [
    (lambda: mx.random.set_state(7), "state=7: expected a dict"),
    (lambda: mx.random.set_state({"seed": 1}), "that get_state returned"),
    (lambda: mx.random.set_state({"seed": 1, "devices": {("cpu", 0): ({"bit_generator": "MT19937"}, None)}}),
     "that get_state returned"),
    (lambda: mx.set_rng_state(7), "expected a Tensor returned by get_rng_state, got int"),
    (lambda: mx.set_rng_state(mx.Tensor([1, 2, 3], mx.uint8)), "got a tensor of other contents"),
    (lambda: mx.set_rng_state(mx.Tensor([91, 93], mx.uint8)), "got a tensor of other contents"),
])
def test_an_invalid_state_is_refused_and_changes_nothing(call, words):
    numbers()
    before = mx.random.get_state()
    with pytest.raises(ArgumentError, match=words):
        call()
    np.testing.assert_equal(mx.random.get_state(), before)  # the state of a device's generator is an array


def test_a_seed_of_mindspore_starts_random_numbers_over():
    mx.manual_seed(5)
    first = numbers()
    assert mx.initial_seed() == 5
    chosen = mx.seed()
    assert chosen == mx.initial_seed() and numbers() != first
    mx.manual_seed(5)
    assert numbers() == first


# ----------------------------------------------------------------------------------------------------- graphs


def test_a_graph_draws_anew_each_time_and_the_same_after_seeding():
    executor = (mx.sym.random.uniform(0, 1, shape=(3,)) + mx.sym.var("x")).bind(mx.cpu(), {"x": mx.nd.zeros(3)})

    def run():
        return executor.forward()[0].asnumpy().tolist()

    mx.random.seed(8)
    first, second = run(), run()
    assert first != second
    mx.random.seed(8)
    assert [run(), run()] == [first, second]


def test_a_graph_takes_parameters_as_symbols():
    drawn = mx.sym.random.normal(mx.sym.var("mu"), 0.5, shape=MANY)
    executor = drawn.bind(mx.cpu(), {"mu": mx.nd.array([1, 4])})
    rows = executor.forward()[0].asnumpy()
    assert fits(rows[0], stats().norm(1, 0.5)) and fits(rows[1], stats().norm(4, 0.5))


# --------------------------------------------------------------------------------------------------- repeated runs


@mx.operator.define(name="random_holes")
def holes(x):
    """A user's operator that draws random numbers itself."""
    return x * (mx.nd.random.uniform(shape=x.shape) > 0.5)


@holes.grad
def holes_grad(g, ins, outs):
    return g * (outs[0] != 0)


def _layer(x):
    return ops.dropout(x, p=0.5)


@pytest.mark.parametrize("draw", [lambda x: mx.sym.Dropout(x, p=0.5), holes])
@pytest.mark.parametrize("loop", [False, True])
def test_an_executor_draws_the_same_for_each_backward_of_a_forward(draw, loop):
    net = mx.sym.var("x")
    net = mx.sym.contrib.foreach(lambda row, _: (draw(row), []), net, [])[0] if loop else draw(net)
    executor = net.simple_bind(mx.cpu(), x=(4, 8))
    out = executor.forward(is_train=True, x=mx.nd.ones((4, 8)))[0].asnumpy()
    behind = generators.snapshot()
    for by in (1, 2):
        executor.backward(mx.nd.ones((4, 8)) * by)
        np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy() != 0, out != 0)
    assert repr(generators.snapshot()) == repr(behind)


@pytest.mark.parametrize("draw", [_layer, holes], ids=["layer", "operator"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_that_is_differentiated_twice_draws_the_same_values(draw, compiled):
    value, back = mx.vjp(mx.jit(lambda x: draw(x)) if compiled else draw, mx.Tensor(np.ones(32, np.float32)))
    behind = generators.snapshot()
    for by in (1, 2):
        gradient = back(mx.Tensor(np.full(32, by, np.float32)))
        gradient = gradient[0] if isinstance(gradient, tuple) else gradient
        np.testing.assert_array_equal(gradient.asnumpy() != 0, value.asnumpy() != 0)
    assert repr(generators.snapshot()) == repr(behind)


@pytest.mark.parametrize("draw", [_layer, holes], ids=["layer", "operator"])
def test_a_compiled_function_whose_gradient_is_recorded_draws_the_same_values(draw):
    x, compiled = mx.Tensor(np.ones(32, np.float32)), mx.jit(lambda x: draw(x) * x)
    x.attach_grad()
    with mx.autograd.record():
        value = compiled(x)
    behind = generators.snapshot()
    gradient = mx.autograd.grad(value, [x], create_graph=True, retain_graph=True)[0]
    np.testing.assert_array_equal(gradient.asnumpy(), 2 * value.asnumpy())
    assert repr(generators.snapshot()) == repr(behind)


@pytest.mark.parametrize("loop", ["branch", "scan", "while"])
@pytest.mark.parametrize("draw", [_layer, holes], ids=["layer", "operator"])
def test_loops_that_are_compiled_draw_as_those_of_python(draw, loop):
    loops = {"branch": lambda x: ops.cond(x.sum() > 0, draw, lambda x: x, x),
             "scan": lambda x: ops.scan(lambda carry, row: (draw(carry) + row, carry), x, mx.Tensor(np.ones((3, 8))
                                        .astype(np.float32)), unroll=False)[0],
             "while": lambda x: ops.while_loop(lambda v: v.sum() < 40, lambda v: draw(v) + v + 1, x, 4)}

    def history(run):
        mx.random.seed(3)
        found = [run(mx.Tensor(np.ones(8, np.float32))).asnumpy() for _ in range(3)]
        return [*found, mx.nd.random.uniform(shape=(1,)).asnumpy()]

    gradient = mx.grad(loops[loop])
    for found, expected in zip(history(mx.jit(gradient)), history(gradient)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("draw", [_layer, holes], ids=["layer", "operator"])
def test_unread_nodes_are_drawn(draw):
    def function(x):
        draw(x)
        return x * 1

    def history(run):
        mx.random.seed(3)
        return run(mx.Tensor(np.ones(3, np.float32))).asnumpy(), mx.nd.random.uniform(shape=(1,)).asnumpy()

    np.testing.assert_array_equal(history(mx.jit(function))[1], history(function)[1])


@pytest.mark.parametrize("name, keywords", [
    ("uniform", {}), ("normal", {"scale": 2}), ("gamma", {}), ("exponential", {}), ("poisson", {}),
    ("randint", {"low": 0, "high": 5}), ("negative_binomial", {"p": 0.5}), ("generalized_negative_binomial", {}),
    ("randn", {})])
def test_symbols_take_the_shape_that_their_use_tells(name, keywords):
    drawn = getattr(mx.sym.random, name)(**keywords)
    x = mx.sym.var("x")
    net = mx.sym.Cast(drawn, dtype="float32") + x
    assert net.infer_shape(x=(2, 3)) == ([(2, 3)], [(2, 3)], [])
    assert net.eval(x=mx.nd.zeros((2, 3)))[0].shape == (2, 3)
    assert "shape" not in drawn.list_attr() and mx.sym.load_json(net.tojson()).infer_shape(x=(4,))[1] == [(4,)]
    with pytest.raises(mx.OpError, match="cannot infer the shapes of"):
        drawn.eval()
    assert getattr(mx.nd.random, name)(**keywords).shape == (1,)


@pytest.mark.parametrize("kind", ["uniform", "poisson", "negative_binomial", "generalized_negative_binomial"])
@pytest.mark.parametrize("is_log", [True, False])
def test_samples_of_flat_densities_and_of_counts_have_a_zero_gradient(kind, is_log):
    """In MXNet, too, the gradient of parameters alone is computed."""
    parameters = [mx.nd.array(values) for values in ([0.5, 0.25], [0.75, 0.875])[:1 if kind == "poisson" else 2]]
    sample = mx.nd.array([[1.0, 2.0], [0.0, 3.0]])
    for array in (sample, *parameters):
        array.attach_grad()
    for _ in range(2):
        with mx.autograd.record():
            density = getattr(mx.nd, f"random_pdf_{kind}")(sample, *parameters, is_log=is_log)
        density.backward()
        assert not sample.grad.asnumpy().any()
        assert parameters[0].grad.asnumpy().all()

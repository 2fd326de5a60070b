"""Updates as steps of an executor after backward: they equal an updater to the bit, whatever changes between runs;
reports about them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nn
from opreg.builtin.optimizers import updating
from opreg.core import threads
from opreg.errors import ArgumentError, OpError, ShapeError
from opreg.symbol.plan import Segment
from tests.cuda.device import Gpu, gpus, require
from tests.cuda.host import COMPILER
from tests.cuda.machine import MACHINE
from tests.questions import of_each
from tests.train.test_optimizer import _SETTINGS, OPTIMIZERS

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
nd, sym = mx.nd, mx.sym

#: Weights that are moved whole, in BLAS's one pass where that is possible, and in tiles.
SIZES = {"fc_weight": (3, 5), "fc_bias": (3,), "long_weight": (1 << 14,), "tiles_weight": (updating.TILE + 7,)}
FEW = {name: SIZES[name] for name in ("fc_weight", "fc_bias")}


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computes with NumPy, so that the choice of kernels does not depend on the time of a compilation."""
    monkeypatch.setenv("OPREG_JIT", "numpy")


class Weights:
    """An executor whose gradients a test sets, and copies of its weights that an updater moves."""

    def __init__(self, sizes: dict[str, tuple[int, ...]], make: Callable[[], Any], ctx: Any = None,
                 dtype: str = "float32", grad_req: str = "write"):
        rng, ctx = np.random.default_rng(1), ctx or mx.cpu()
        values = {name: rng.standard_normal(shape) for name, shape in sizes.items()}
        self.names, self.sizes, self.dtype = list(sizes), sizes, dtype
        loss = sym.MakeLoss(sym.add_n(*[sym.sum(sym.square(sym.var(name))) for name in sizes], num_args=len(sizes)))
        self.args = {name: nd.array(value, ctx=ctx, dtype=dtype) for name, value in values.items()}
        self.grads = {name: nd.zeros(each.shape, ctx=ctx, dtype=dtype) for name, each in self.args.items()}
        self.executor = loss.bind(ctx, self.args, args_grad=self.grads, grad_req=grad_req)
        self.optimizer, other = make(), make()
        self.executor.set_optimizer(self.optimizer)
        self.copies = {name: nd.array(value, dtype=dtype) for name, value in values.items()}
        self.updater = mx.optimizer.get_updater(other)
        self.optimizers = self.optimizer, other

    def step(self, run: int) -> None:
        """Moves both along the same gradients."""
        rng = np.random.default_rng(run)
        gradients = {name: nd.array(rng.standard_normal(shape), dtype=self.dtype) for name, shape in self.sizes.items()}
        for name, gradient in gradients.items():
            self.grads[name][:] = gradient.as_in_context(self.grads[name].context)
        self.executor.update()
        indices = self.executor.updater.indices(self.names)
        self.updater(list(indices.values()), [gradients[name] for name in self.names],
                     [self.copies[name] for name in self.names])

    def agree(self, rtol: float = 0.0) -> None:
        """Asserts that weights, states and counts are equal."""
        for name in self.names:
            one, other = self.args[name].asnumpy(), self.copies[name].asnumpy()
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol, err_msg=name)
        states = self.executor.updater.states, self.updater.states
        assert states[0].keys() == states[1].keys()
        for key in states[0]:
            pairs = zip(*[flat(each[key]) for each in states], strict=True)
            for one, other in pairs:
                np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
        left, right = self.optimizers
        assert left.num_update == right.num_update and left._index_update_count == right._index_update_count


def flat(state: Any) -> list[np.ndarray]:
    if isinstance(state, (tuple, list)):
        return [array for part in state for array in flat(part)]
    return [] if state is None else [state.asnumpy()]


def created(name: str, **settings: Any) -> Callable[[], Any]:
    return lambda: mx.optimizer.create(name, param_idx2name=dict(enumerate(SIZES)), **settings)


def explained(executor: Any) -> list[str]:
    """Lines of ``explain`` about updates."""
    lines = executor.explain().splitlines()
    return [line.strip() for line in lines[[line.startswith("update") for line in lines].index(True):]]


@pytest.mark.parametrize("settings", [{}, _SETTINGS], ids=["alone", "all set"])
@pytest.mark.parametrize(("name", "keywords"), [each[:2] for each in OPTIMIZERS],
                         ids=[f"{name}-{','.join(keywords)}" for name, keywords, *_ in OPTIMIZERS])
def test_an_update_has_the_bits_of_an_updater(name: str, keywords: dict[str, Any], settings: dict[str, Any]) -> None:
    weights = Weights(SIZES, created(name, **{**keywords, **settings}))
    for run in range(4):
        weights.step(run)
    if name != "lars":  # it compares its last rates by weight
        weights.agree()


BY_STEPS = {"sgd", "nag", "ccsgd", "signum", "adam", "ftml", "adagrad", "rmsprop", "ftrl"}


@of_each(sorted({each[0] for each in OPTIMIZERS}))
def test_explain_shows_the_steps_that_update_weights(name: str) -> None:
    weights = Weights(FEW, created(name))
    assert explained(weights.executor) == ["update: planned when it has run"]
    weights.step(0)
    title, *steps = explained(weights.executor)
    if name in BY_STEPS:
        assert title == "update:" and [step.split("-> ")[1] for step in steps] == ["fc_weight, fc_bias"]
        assert "_update: ufuncs; numba declined: OPREG_JIT=numpy forbids it" in steps[0]
    else:
        kind = type(weights.optimizer).__name__
        assert title == f"update: {kind} moves each weight by itself" and not steps


def test_a_method_that_one_optimizer_was_given_moves_the_weights() -> None:
    loss = mx.sym.MakeLoss(mx.sym.Variable("w") * 3)
    executor = loss.bind(mx.cpu(), [mx.nd.ones(1)], args_grad=[mx.nd.zeros(1)])
    optimizer = mx.optimizer.create("sgd", learning_rate=1.0)
    executor.set_optimizer(optimizer)
    for method, expected in (
            (None, -2.0), (lambda index, weight, grad, state: weight.__isub__(grad * 2), -8.0), (None, -11.0)):
        if method is None:
            vars(optimizer).pop("update", None)
        else:
            optimizer.update = method
        executor.step()
        assert executor.arg_dict["w"].asnumpy() == expected


@pytest.mark.filterwarnings("ignore:small steps are lost on float16 weights")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("count", [1, 3])
def test_several_threads_update_many_weights(count: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: count)
    monkeypatch.setattr(updating, "SHARED", 1 << 12)
    sizes = {f"w{i}": (i * i * 7 % 9001 + 1,) for i in range(40)}
    for name in ("adam", "sgd"):
        weights = Weights(sizes, created(name, wd=0.1), dtype=dtype)
        for run in range(3):
            weights.step(run)
        weights.agree()


def test_numba_compiles_the_steps_of_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setenv("OPREG_JIT", "numba")
    for name in ("sgd", "adam"):
        weights = Weights(SIZES, created(name, wd=0.1, lr_scheduler=mx.lr_scheduler.FactorScheduler(2, 0.5)))
        for run in range(5):
            weights.step(run)
            weights.agree()
        assert "numba -> " in explained(weights.executor)[1]
        segment = weights.executor._update.segment
        assert segment is not None and (segment.native is not None or threads.count() > 1)


# ------------------------------------------------------------------------------------------- changes between runs


def _multiplied(optimizer: Any) -> None:
    optimizer.set_lr_mult({"fc_weight": 0.5})
    optimizer.set_wd_mult({"fc_bias": 2.0})


CHANGES: dict[str, tuple[Callable[[Any], None], bool]] = {  # a change, and whether it rebuilds steps
    "learning rate": (lambda optimizer: optimizer.set_learning_rate(0.03), False),
    "a rate of zero": (lambda optimizer: optimizer.set_learning_rate(0.0), True),
    "decay": (lambda optimizer: setattr(optimizer, "wd", 0.2), False),
    "no decay": (lambda optimizer: setattr(optimizer, "wd", 0.0), True),
    "rescaled": (lambda optimizer: setattr(optimizer, "rescale_grad", 0.25), False),
    "momentum": (lambda optimizer: setattr(optimizer, "momentum", 0.5), False),
    "clipped": (lambda optimizer: setattr(optimizer, "clip_gradient", 0.1), True),
    "clipped elsewhere": (lambda optimizer: setattr(optimizer, "clip_gradient", 0.3), False),
    "factors by name": (_multiplied, True),
    "multi_precision": (lambda optimizer: setattr(optimizer, "multi_precision", True), True),
}


@of_each(CHANGES)
def test_settings_may_change(change: str) -> None:
    apply, anew = CHANGES[change]
    clip = 0.2 if change == "clipped elsewhere" else None
    weights = Weights(SIZES, created("sgd", momentum=0.9, wd=0.1, rescale_grad=0.5, clip_gradient=clip))
    for run in range(3):
        weights.step(run)
    before = weights.executor._update.segment
    for optimizer in weights.optimizers:
        apply(optimizer)
    for run in range(3, 6):
        weights.step(run)
        weights.agree()
    assert (weights.executor._update.segment is not before) is anew


def test_a_schedule_changes_no_step() -> None:
    weights = Weights(FEW, created("adam", begin_num_update=3, lr_scheduler=mx.lr_scheduler.CosineScheduler(
        20, base_lr=0.1, warmup_steps=6, warmup_begin_lr=0.01)))
    segments = set()
    for run in range(10):
        weights.step(run)
        segments.add(weights.executor._update.segment)
    weights.agree()
    assert len(segments) == 1 and weights.optimizer.num_update == 13


def test_loaded_states_replace_old_ones() -> None:
    weights = Weights(SIZES, created("adam"))
    for run in range(2):
        weights.step(run)
    saved = weights.executor.updater.get_states(dump_optimizer=True)
    weights.step(2)
    for updater in (weights.executor.updater, weights.updater):
        updater.set_states(saved)
    for run in range(3, 5):
        weights.step(run)
    weights.agree()
    assert weights.optimizer.num_update == 4
    wrong = Weights({"fc_weight": (2, 2)}, created("adam"))
    wrong.executor.updater.set_states(saved)
    with pytest.raises(ShapeError, match=r"'fc_weight' of shape .2, 2.: the loaded state has shape .3, 5."):
        wrong.executor.update()


def test_executors_may_share_an_updater_and_weights() -> None:
    weights = Weights(FEW, created("adam"))
    other = weights.executor.reshape()
    assert other.updater is weights.executor.updater
    weights.step(0)
    other.update()
    assert weights.optimizer.num_update == 2
    weights.updater([0, 1], [weights.grads[name] for name in FEW], list(weights.copies.values()))
    weights.agree()


def test_gradients_that_are_added_stay() -> None:
    weights = Weights(FEW, created("sgd", learning_rate=0.5), grad_req="add")
    before = {name: each.asnumpy() for name, each in weights.args.items()}
    for _ in range(2):
        weights.executor.forward(is_train=True)
        weights.executor.backward()
    weights.executor.update()
    for name, value in before.items():
        np.testing.assert_allclose(weights.args[name].asnumpy(), value - 0.5 * 4 * value, 1e-6)
        np.testing.assert_allclose(weights.grads[name].asnumpy(), 4 * value, 1e-6)


def test_a_weight_listed_twice_is_updated_twice() -> None:
    loss = sym.MakeLoss(sym.sum(sym.var("a")) + sym.sum(sym.var("b")))
    weight = nd.zeros((2,))
    executor = loss.bind(mx.cpu(), [weight, weight], args_grad=[nd.ones((2,)), nd.ones((2,)) * 2])
    executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5))
    executor.update()
    assert weight.asnumpy().tolist() == [-1.5, -1.5]
    assert explained(executor) == ["update: an array or an index is there twice"]


def test_an_optimizer_may_update_some_of_the_weights() -> None:
    weights = Weights(FEW, created("sgd", learning_rate=1.0))
    weights.executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=1.0), ["fc_bias"])
    for grad in weights.grads.values():
        grad[:] = 1
    weights.executor.update()
    np.testing.assert_array_equal(weights.args["fc_weight"].asnumpy(), weights.copies["fc_weight"].asnumpy())
    np.testing.assert_array_equal(weights.args["fc_bias"].asnumpy(), weights.copies["fc_bias"].asnumpy() - 1)
    assert list(weights.executor.updater.states) == ["fc_bias"]
    weights.executor.set_optimizer(None)
    with pytest.raises(OpError, match="has no optimizer: set_optimizer comes before update"):
        weights.executor.update()


@pytest.mark.parametrize(("optimizer", "weights", "words"), [
    ("sgd", None, "expected an optimizer or an updater of opreg.optimizer, got str"),
    (mx.optimizer.create("sgd"), ["fc_wieght"], "there is no argument 'fc_wieght'. Did you mean 'fc_weight'"),
    (mx.optimizer.create("sgd"), ["data"], "no gradient is kept of 'data'"),
])
def test_wrong_optimizers_of_executors_are_refused(optimizer: Any, weights: Any, words: str) -> None:
    net = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc")
    executor = net.simple_bind(mx.cpu(), data=(2, 3), grad_req={
        "data": "null", "fc_weight": "write", "fc_bias": "write"})
    with pytest.raises(ArgumentError, match=words):
        executor.set_optimizer(optimizer, weights)


class Halved(mx.optimizer.Updater):
    """A user's updater."""

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        super().__call__(index, [each * 0.5 for each in grad], weight)


class Steeper(mx.optimizer.SGD):
    """A user's optimizer with other rates."""

    def _get_lr(self, index: Any) -> float:
        return 2 * super()._get_lr(index)


class Upwards(mx.optimizer.SGD):
    """A user's optimizer with its own ``update``."""

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        weight += grad


@pytest.mark.parametrize(("updater", "moved"), [
    (lambda: Halved(mx.optimizer.SGD(learning_rate=0.5)), -0.25),
    (lambda: mx.optimizer.get_updater(Steeper(learning_rate=0.5)), -1.0),
    (lambda: mx.optimizer.get_updater(Upwards(learning_rate=0.5)), 1.0),
], ids=["updater", "rate", "update"])
def test_an_update_of_a_users_optimizer_is_called(updater: Callable[[], Any], moved: float) -> None:
    weights = Weights(FEW, created("sgd"))
    weights.executor.set_optimizer(updater())
    loss = sym.MakeLoss(sym.sum(sym.var("data")) * 0 + sym.sum(sym.var("w", shape=(1,))))
    module = mx.mod.Module(loss, label_names=None)
    module.bind([("data", (2,))])
    module.init_params(arg_params={"w": nd.zeros((1,))})
    module.init_optimizer(optimizer_params={"rescale_grad": 1.0})
    module._updater = updater()
    for _ in range(2):
        module._learn(mx.io.DataBatch([nd.ones((2,))]))
    assert module.get_params()[0]["w"].asscalar() == 2 * moved
    for grad in weights.grads.values():
        grad[:] = 1
    weights.executor.update()
    for name in FEW:
        np.testing.assert_allclose(weights.args[name].asnumpy(), weights.copies[name].asnumpy() + moved, 1e-6)


# ---------------------------------------------------------------------------------- profiles, estimates, lifetime


def test_a_profile_changes_nothing_and_an_estimate_counts() -> None:
    weights = Weights(FEW, created("adam"))
    weights.step(0)
    profile = weights.executor.profile(2)
    weights.agree()
    row = next(row for row in profile.rows if row.half == "update")
    assert row.operator == "adam_update" and row.node == "fc_weight, fc_bias"
    assert (row.read, row.written) == (4 * 18 * 4, 3 * 18 * 4)
    row = next(row for row in weights.executor.estimate().rows if row.half == "update")
    assert (row.launches, row.read, row.written) == (1, 4 * 18 * 4, 3 * 18 * 4) and row.flops > 0
    weights.step(1)
    weights.agree()


def test_an_executor_that_has_been_updated_is_freed_with_its_last_name(uncollected: None) -> None:
    weights = Weights(SIZES, created("adam"))
    for run in range(2):
        weights.step(run)
    held = weakref.ref(weights.executor), weakref.ref(weights.args["fc_weight"]._data)
    del weights
    assert [ref() for ref in held] == [None, None]


def test_a_module_moves_its_weights_by_steps() -> None:
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc"), name="softmax")
    module = mx.mod.Module(net)
    module.bind([("data", (4, 2))], [("softmax_label", (4,))])
    module.init_params()
    module.init_optimizer(optimizer="adam")
    batch = mx.io.DataBatch([nd.ones((4, 2))], [nd.zeros((4,))])
    for _ in range(2):
        module.forward_backward(batch)
        module.update()
    (executor,) = module._exec_group.execs
    assert explained(executor)[1].endswith("fc_weight, fc_bias") and executor.updater is module._updater
    module.init_optimizer(optimizer="sgd", force_init=True)
    module.update()
    assert "sgd_update" in explained(executor)[1]


def moving(ctx: Any) -> tuple[Any, dict[str, Any]]:
    """A network with moving states, random numbers and no loss, and its arguments by name."""
    net = sym.BatchNorm(sym.var("data"), name="norm", fix_gamma=False) * 2
    executor = net.simple_bind(ctx, data=(4, 3), grad_req={"data": "null", "norm_gamma": "write", "norm_beta": "write"})
    executor.arg_dict["norm_gamma"][:] = 1
    executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9))
    return executor, {**executor.arg_dict, **executor.aux_dict, "out": executor.outputs[0]}


def check_steps(ctx: Any, rtol: float) -> Any:
    """Compares steps with forward, backward and an update on the host; returns the executor."""
    (executor, found), (other, expected) = moving(ctx), moving(mx.cpu())
    rng = np.random.default_rng(3)
    for run in range(7):
        x, g = (rng.standard_normal((4, 3)).astype(np.float32) for _ in range(2))
        for each in (executor, other):
            if run == 5:
                each._update.updater.optimizer.set_learning_rate(0.01)
        executor.step(nd.array(g, ctx=ctx), data=x)
        other.forward(True, data=x)
        other.backward(nd.array(g))
        other.update()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name].asnumpy(), value.asnumpy(), rtol, rtol, err_msg=name)
    return executor


def test_a_step_is_forward_backward_and_update() -> None:
    executor = check_steps(mx.cpu(), 0)
    seen = []
    executor.set_monitor_callback(lambda name, value: seen.append(name))
    executor.step(nd.ones((4, 3)))
    assert "norm_output" in seen
    with pytest.raises(ArgumentError, match="comes from no loss operator, so backward needs its output gradient"):
        executor.step()
    executor.set_optimizer(None)
    with pytest.raises(OpError, match="has no optimizer: set_optimizer comes before step"):
        executor.step(nd.ones((4, 3)))


# ------------------------------------------------------------------------------------------------------- on a GPU


@pytest.fixture
def gpu() -> Iterator[Gpu]:
    with gpus() as xp:
        yield xp


def launched(work: Callable[[], object]) -> int:
    before = MACHINE.launches
    work()
    return MACHINE.launches - before


@needs_compiler
@pytest.mark.parametrize(("name", "settings"), [
    ("sgd", {}), ("sgd", dict(momentum=0.9, wd=0.1)), ("adam", dict(clip_gradient=0.5)), ("ftml", {}),
    ("rmsprop", dict(centered=True)), ("ftrl", {}), ("signum", {}),
])
def test_replayed_updates_are_those_of_the_host(name: str, settings: dict[str, Any], gpu: Gpu) -> None:
    schedule = mx.lr_scheduler.FactorScheduler(2, 0.5)
    weights = Weights({**FEW, "long_weight": (9001,)}, created(name, lr_scheduler=schedule, **settings), mx.gpu(0))
    for run in range(7):
        weights.step(run)
        weights.agree(2e-5)
    assert explained(weights.executor)[0] == "update, 1 graph, 0 islands:"
    assert explained(weights.executor)[1].endswith("; graph 0")


@needs_compiler
def test_a_rate_that_changes_is_replayed_and_a_formula_that_does_is_captured_anew(gpu: Gpu) -> None:
    weights = Weights(FEW, created("sgd", momentum=0.9, wd=0.1), mx.gpu(0))
    captured = []
    for run in range(12):
        for optimizer in weights.optimizers:
            optimizer.set_learning_rate(0.1 / (run + 1))
            if run == 6:
                optimizer.clip_gradient = 0.25
        weights.step(run)
        weights.agree(1e-5)
        segment = weights.executor._update.segment
        captured.append("graph" in segment.description())
    assert captured == ([False] * 2 + [True] * 4) * 2


BATCH = 2  # iterator of data and labels


def dense(ctx: Any) -> Any:
    net = sym.SoftmaxOutput(sym.LayerNorm(sym.var("data"), name="norm"), name="softmax")
    module = mx.mod.Module(net, context=ctx)
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params(mx.init.One())
    return module


@needs_compiler
@pytest.mark.parametrize("whole", [False, True], ids=["three calls", "fit"])
def test_a_module_step_has_few_launches(whole: bool, gpu: Gpu) -> None:
    host, module = dense(mx.cpu()), dense(mx.gpu(0))
    rng, counted = np.random.default_rng(0), []
    for each in (host, module):
        each.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.1, "wd": 0.01})

    def learn(module: Any, batch: Any) -> None:
        if whole:
            module._learn(batch)
            return
        module.forward_backward(batch)
        module.update()

    for _ in range(6):
        batch = mx.io.DataBatch([nd.array(rng.standard_normal((4, 3)))], [nd.array(rng.integers(0, 3, 4))])
        learn(host, batch)
        counted.append(launched(lambda batch=batch: learn(module, batch)))  # type: ignore[misc]
        np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), host.get_outputs()[0].asnumpy(), 1e-5, 1e-6)
    for name, value in host.get_params()[0].items():
        np.testing.assert_allclose(module.get_params()[0][name].asnumpy(), value.asnumpy(), 1e-5, 1e-6)
    (executor,) = module._exec_group.execs
    assert counted[-1] == counted[3] == (1 if whole else 3) + BATCH and counted[0] > counted[-1]
    assert len(explained(executor)) == 3 + whole  # gammas decay, betas do not: these are two kernels
    if whole:
        assert explained(executor)[-1] == "a step of all, 1 graph, 0 islands"


@needs_compiler
def test_a_step_is_one_graph(gpu: Gpu) -> None:
    executor = check_steps(mx.gpu(0), 2e-5)
    assert explained(executor)[-1] == "a step of all, 1 graph, 0 islands"
    gradient = nd.ones((4, 3), ctx=mx.gpu(0))
    assert launched(lambda: executor.step(gradient)) == 1 + 1  # the gradient is copied
    seen = []
    executor.set_monitor_callback(lambda name, value: seen.append(name))
    executor.step(nd.ones((4, 3), ctx=mx.gpu(0)))
    assert "norm_output" in seen


@needs_compiler
def test_an_optimizer_may_move_each_weight_separately(gpu: Gpu) -> None:
    weights = Weights(FEW, created("adadelta"), mx.gpu(0))
    for _ in range(4):
        expected = {name: 2 * each.asnumpy() for name, each in weights.args.items()}
        weights.executor.step()
        for name, gradient in expected.items():
            np.testing.assert_allclose(weights.grads[name].asnumpy(), gradient, 1e-6)
    assert explained(weights.executor)[0] == "update: AdaDelta moves each weight by itself"
    assert "a step of all, 1 graph, 0 islands" in weights.executor.explain()


@needs_compiler
@pytest.mark.parametrize("make", [
    lambda weights: nn.optim.SGD(weights, 0.1, 0.9, weight_decay=0.01), lambda weights: nn.optim.Adam(weights, 0.1),
], ids=["SGD", "Adam"])
def test_a_step_of_cells_is_replayed_while_its_rate_changes(make: Callable[[Any], Any], gpu: Gpu) -> None:
    def trained(ctx: Any) -> tuple[list[float], list[int]]:
        mx.random.seed(4)
        with ctx:
            net = nn.LayerNorm((3,))
            step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), make(net.trainable_params()))
            step.compile(nn.Tensor(np.ones((4, 3), np.float32)), nn.Tensor(np.ones((4, 3), np.float32)))
            losses, counted = [], []
            for run in range(7):
                x, y = (nn.Tensor(np.cos(np.arange(12.0) * k + run).reshape(4, 3).astype(np.float32)) for k in (1, 2))
                if run == 5:
                    step.optimizer.learning_rate.set_data(nn.Tensor(np.float32(0.01)))
                counted.append(launched(lambda x=x, y=y: losses.append(step(x, y))))  # type: ignore[misc]
            return [float(loss.asnumpy()) for loss in losses], counted

    (found, counted), (expected, _) = trained(mx.gpu(0)), trained(mx.cpu())
    np.testing.assert_allclose(found, expected, 1e-5)
    assert counted[3] == counted[5] == counted[6] < counted[0]


@needs_compiler
def test_weights_that_no_kernel_moves_are_an_island(gpu: Gpu) -> None:
    weights = Weights(FEW, created("adam"), mx.gpu(0))
    whole = nd.zeros((5, 3), ctx=mx.gpu(0))
    strided = nd.NDArray(whole._data.T, mx.gpu(0))
    strided[:] = weights.args["fc_weight"]
    executor = weights.executor._symbol.bind(mx.gpu(0), {**weights.args, "fc_weight": strided}, args_grad=weights.grads)
    executor.set_optimizer(weights.optimizer)
    weights.args["fc_weight"], weights.executor = strided, executor
    for run in range(5):
        weights.step(run)
        weights.agree(1e-5)
    title, step = explained(executor)
    assert title == "update, 0 graphs, 1 island:"
    assert "reference; cuda declined: arrays that are not laid out alike" in step
    assert step.endswith("island: takes values from the host")


@needs_compiler
def test_weights_on_several_devices_are_updated(gpu: Gpu) -> None:
    require(2)
    with mx.AttrScope(ctx_group="one"):
        y = sym.var("a") * 2
    with mx.AttrScope(ctx_group="two"):
        loss = sym.MakeLoss(y + sym.var("b"))
    executor = loss.simple_bind(mx.gpu(0), a=(3,), b=(3,), group2ctx={"one": mx.gpu(0), "two": mx.gpu(1)})
    executor.set_optimizer(mx.optimizer.create("adam", learning_rate=0.5))
    for _ in range(4):
        executor.forward(is_train=True)
        executor.backward()
        executor.update()
    for name in "ab":
        np.testing.assert_allclose(executor.arg_dict[name].asnumpy(), -2, 1e-5)
    assert explained(executor)[0] == "update, not captured: its steps are on several devices:"


def test_segments_of_the_host_are_plain() -> None:
    weights = Weights(FEW, created("sgd"))
    for run in range(2):
        weights.step(run)
    segment = weights.executor._update.segment
    assert type(segment) is Segment and segment.plain



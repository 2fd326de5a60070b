"""Optimizers and learning rates: MindSpore's values, eagerly and compiled, and errors."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opreg import nn
from opreg.cells.cell import Cell
from opreg.cells.grad import value_and_grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter, ParameterTuple, assign
from opreg.cells.tensor import Tensor
from opreg.core.registry import ops
from opreg.core.spec import as_dtype
from opreg.nn import ops as ms_ops
from opreg.nn import optim
from opreg.nn.checkpoint import load_checkpoint, load_param_into_net, save_checkpoint
from opreg.nn.ops import MultitypeFuncGraph, partial
from opreg.nn.optim.optimizer import Optimizer
from opreg.nn.optim.schedule import ExponentialDecayLR
from tests.questions import of_each

RECORD = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_optim.json").read_text())


def array(record: dict[str, Any]) -> np.ndarray:
    return np.array(record["data"], record["dtype"]).reshape(record["shape"])


def built(case: dict[str, Any]) -> tuple[dict[str, Parameter], Optimizer]:
    """Parameters by name, and the optimizer of a recorded case."""
    options = copy.deepcopy(case["options"])
    names = options.pop("names", ["w", "b"])
    held = {name: Parameter(Tensor(array(value)), name=name) for name, value in zip(names, RECORD["weights"])}

    def live(value: Any) -> Any:
        if isinstance(value, dict) and "schedule" in value:
            return getattr(optim, value["schedule"][0])(*value["schedule"][1])
        return value

    groups: Any = list(held.values())
    if "groups" in options:
        groups = [{key: [held[name] for name in value] if key in ("params", "order_params") else live(value)
                   for key, value in group.items()} for group in options.pop("groups")]
    return held, getattr(optim, case["optimizer"])(groups, **{key: live(value) for key, value in options.items()})


def follows(case: dict[str, Any], step: Any) -> None:
    """Whether five steps give the recorded values; ``step`` makes a function of gradients from an optimizer."""
    held, optimizer = built(case)
    run = step(optimizer)
    for gradients, expected in zip(RECORD["gradients"], case["steps"]):
        by_name = dict(zip(held, map(array, gradients)))
        run(tuple([Tensor(by_name[p.name]) for p in optimizer.parameters]))
        for p, value in zip(held.values(), expected):
            np.testing.assert_allclose(p.asnumpy(), array(value), rtol=2e-6, atol=2e-6)


CASES = RECORD["cases"]
NAMES = [f"{number}-{case['optimizer']}" for number, case in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_five_eager_steps_equal_mindspores(case):
    follows(case, lambda optimizer: optimizer)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_five_steps_by_construct_equal_mindspores(case):
    follows(case, lambda optimizer: optimizer.construct)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_five_compiled_steps_equal_mindspores(case):
    def step(optimizer):
        @jit
        def run(gradients):
            optimizer(gradients)
            return optimizer.parameters[0] * 2

        def twice_the_first(gradients):
            np.testing.assert_array_equal(run(gradients).asnumpy(), optimizer.parameters[0].asnumpy() * 2)
            assert run.cache_size == 1

        return twice_the_first

    follows(case, step)


def moved(optimizer: Any, gradients: Any) -> float:
    """Value of a parameter that starts at zero, after the updates."""
    p = Parameter(np.zeros(1, np.float32), name="w")
    run = optimizer([p])
    for g in gradients:
        run((Tensor([g]),))
    return float(p.asnumpy()[0])


def test_documented_updates_where_mindspores_kernels_differ():
    """MindSpore's CPU kernels ignore some settings, use one twice, and add epsilon elsewhere in some vector lanes."""
    gradients = 0.7, 0.3, -0.2
    assert moved(lambda p: optim.Momentum(p, 0.1, 0.9, use_nesterov=True), gradients) == pytest.approx(
        moved(lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True), gradients), rel=1e-6)
    assert moved(lambda p: optim.Adagrad(p, 0.25, 0.1, update_slots=False), [1.0, 1.0]) == pytest.approx(-0.4, rel=1e-6)
    for options, expected in (({"decay": 0.5}, -0.11785284), ({"centered": True}, -0.09921325)):
        found = moved(lambda p, o=options: optim.RMSProp(p, 0.1, epsilon=0.1, **o), gradients[:2])
        assert found == pytest.approx(expected, rel=1e-6)
    for sign in (1, -1):
        found = moved(lambda p: optim.FTRL(p, initial_accum=0.75, learning_rate=0.5, l1=0.25, l2=0.5), [sign * 0.5])
        assert found == pytest.approx(-sign * (0.5 - 0.25) / (1 / 0.5 + 2 * 0.5), rel=1e-6)
    two = [Parameter(np.ones(1, np.float32), name=name) for name in "ab"]
    groups = [{"params": [p], "weight_decay": decay} for p, decay in zip(two, (0.0, 0.5))]
    optim.AdaFactor(groups, 1.0, relative_step=False, weight_decay=0.25)((Tensor([0.0]), Tensor([0.0])))
    assert [float(p.asnumpy()[0]) for p in two] == [1.0, 0.5]


@pytest.mark.parametrize("row", RECORD["schedules"], ids=lambda row: row["schedule"])
def test_schedules_give_the_recorded_rates(row):
    schedule = getattr(optim, row["schedule"])(*row["arguments"])
    compiled = jit(lambda step: schedule(step))
    for step, expected in enumerate(row["values"]):
        for call in (schedule, compiled):
            found = call(Tensor(step, np.int32))
            assert found.shape == () and found.dtype == np.float32
            np.testing.assert_allclose(found.asnumpy(), expected, rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize("row", RECORD["lists"], ids=lambda row: row["function"])
def test_functions_give_the_recorded_lists_of_rates(row):
    np.testing.assert_allclose(getattr(optim, row["function"])(*row["arguments"]), row["values"], rtol=1e-12)


# ----------------------------------------------------------------------------------------------- compiled steps


RULES = {
    "SGD": dict(), "SGD with momentum": dict(momentum=0.9, nesterov=True),
    "Momentum": dict(learning_rate=0.1, momentum=0.9), "Adam": dict(),
    "AdamWeightDecay": dict(weight_decay=0.1), "AdaMax": dict(), "RMSProp": dict(centered=True),
    "Adagrad": dict(), "Adadelta": dict(), "Lamb": dict(learning_rate=0.1, weight_decay=0.1),
    "ASGD": dict(lambd=0.1, t0=1.0), "Rprop": dict(), "LazyAdam": dict(use_nesterov=True), "AdamOffload": dict(),
    "AdaFactor": dict(weight_decay=0.1), "ProximalAdagrad": dict(l1=0.01, l2=0.1), "FTRL": dict(l1=0.01, l2=0.1),
}


def test_asgd_averages_earlier_values_of_parameters():
    """The average is the parameter itself up to the step ``t0 + 2``, and then the mean of its values since."""
    p = Parameter(np.array([1.0, -2.0], np.float32), name="w")
    optimizer, seen = optim.ASGD([p], t0=2.0), []
    for step in range(1, 7):
        optimizer((Tensor([0.5, -0.25]),))
        seen.append(p.asnumpy().copy())
        np.testing.assert_allclose(optimizer.ax[0].asnumpy(), np.mean(seen[min(step - 1, 3):], axis=0), rtol=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("way", ["eager", "operators", "compiled"])
def test_lamb_equals_its_formula(decay, way):
    """The reference is NumPy, since MindSpore has no CPU kernel for LAMB."""
    w = Parameter(Tensor([1.0, -2.0, 3.0]), name="w")
    optimizer = optim.Lamb([w], 0.1, weight_decay=decay)
    step = {"eager": optimizer, "operators": optimizer.construct, "compiled": jit(lambda g: optimizer(g))}[way]
    x, m, v = np.array([1.0, -2.0, 3.0]), np.zeros(3), np.zeros(3)
    for t in range(1, 6):
        g = np.cos(np.arange(3.0) + t)
        step((Tensor(g.astype("f4")),))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + decay * x
        x = x - 0.1 * np.linalg.norm(x) / np.linalg.norm(u) * u
        np.testing.assert_allclose(w.asnumpy(), x, rtol=1e-4)


#: Optimizers have a row in ``RULES`` and recorded steps; schedules and lists of rates their recorded answers.
_ROWS = {name.partition(" ")[0] for name in RULES} & ({case["optimizer"] for case in CASES} | {"Lamb"})
_ROWS |= {row["schedule"] for row in RECORD["schedules"]} | {row["function"] for row in RECORD["lists"]}


@of_each(sorted({*optim.__all__} - {"Optimizer", "LearningRateSchedule", "LARS"}))
def test_every_optimizer_has_a_row(name):
    assert name in _ROWS, f"{name} has no row in RULES, or no recorded answers in tests/recorded/mindspore_optim.json"


def optimizer_of(name: str, params: Any, **more: Any) -> Optimizer:
    return getattr(optim, name.partition(" ")[0])(params, **{**RULES[name], **more})


@of_each(RULES)
def test_updates_write_to_the_parameters_memory(name):
    params = [Parameter(np.ones((3, 4), np.float32), name="w"), Parameter(np.ones(5, np.float32), name="b")]
    optimizer = optimizer_of(name, params)
    memory = [p.asnumpy() for p in optimizer.get_parameters()]
    gradients = tuple([Tensor(np.ones(p.shape, np.float32)) for p in params])
    optimizer(gradients)
    optimizer(gradients)
    assert all(p.asnumpy() is data for p, data in zip(optimizer.get_parameters(), memory))
    if name != "ASGD":  # it has scalar states, which are computed once and copied to each
        assert "copy" not in optimizer._compiled().explain()


@pytest.mark.parametrize("name", RULES)
def test_states_are_restored_from_a_file(name, tmp_path):
    gradients = [(Tensor(np.cos(np.arange(3) + step).astype("f4")),) for step in range(4)]
    w, v = (Parameter(Tensor([1.0, -2.0, 3.0]), name="w") for _ in range(2))
    straight, first = optimizer_of(name, [w]), optimizer_of(name, [v])
    for g in gradients:
        straight(g)
    for g in gradients[:2]:
        first(g)
    save_checkpoint(first, str(tmp_path / "states.ckpt"))
    u = Parameter(Tensor([0.0, 0.0, 0.0]), name="w")
    second = optimizer_of(name, [u])
    assert load_param_into_net(second, load_checkpoint(str(tmp_path / "states.ckpt"))) == ([], [])
    for g in gradients[2:]:
        second(g)
    np.testing.assert_array_equal(u.asnumpy(), w.asnumpy())


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("wrong", [Tensor([1.0]), None], ids=["shape", "none"])
def test_a_refused_step_does_not_count(name, wrong):
    good, refused = Parameter(Tensor([1.0, 2.0]), name="w"), Parameter(Tensor([1.0, 2.0]), name="w")
    steps = [optimizer_of(name, [p]) for p in (good, refused)]
    with pytest.raises((ValueError, TypeError), match="gradient of w"):
        steps[1]((wrong,))
    for step in steps:
        step((Tensor([0.5, 0.5]),))
    assert steps[1].global_step.asnumpy() == 1
    np.testing.assert_array_equal(good.asnumpy(), refused.asnumpy())


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_parameters_of_other_dtypes_are_updated(name, dtype):
    start, gradient = np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.25, -1.0])
    found = []
    for each in (as_dtype(dtype), as_dtype("float32")):
        p = Parameter(start.astype(each), name="w")
        optimizer = optimizer_of(name, [p])
        for _ in range(3):
            optimizer((Tensor(gradient.astype(each)),))
        assert p.asnumpy().dtype == each
        found.append(p.asnumpy().astype(np.float64))
    np.testing.assert_allclose(*found, rtol={"float16": 3e-3, "bfloat16": 2e-2, "float64": 1e-5}[dtype])


def test_large_parameters_are_updated_in_tiles():
    rng = np.random.default_rng(0)
    values, gradient = rng.standard_normal((2, 300, 1000)).astype(np.float32)
    by_plan, by_hand = Parameter(values, name="w"), Parameter(values, name="w")
    planned, other = optim.Adam([by_plan], 0.1), optim.Adam([by_hand], 0.1)
    for _ in range(2):
        planned((Tensor(gradient),))
        other.construct((Tensor(gradient),))
    np.testing.assert_allclose(by_plan.asnumpy(), by_hand.asnumpy(), rtol=1e-6, atol=1e-7)


def test_learning_rate_is_a_parameter_that_plans_read():
    p = Parameter(np.zeros(2, np.float32), name="w")
    optimizer = optim.SGD([p], 1.0)
    step = jit(lambda g: optimizer((g,)))
    step(Tensor([1.0, 1.0]))
    optimizer.learning_rate.set_data(0.25)
    step(Tensor([1.0, 1.0]))
    assign(optimizer.learning_rate, Tensor(4.0))
    optimizer((Tensor([1.0, 1.0]),))
    np.testing.assert_array_equal(p.asnumpy(), [-5.25, -5.25])
    assert step.cache_size == 1 and optimizer.global_step.asnumpy() == 3


def test_a_list_of_rates_ends_with_its_last():
    p = Parameter(np.zeros(1, np.float32), name="w")
    optimizer = optim.SGD([p], [1.0, 0.5])
    for _ in range(4):
        optimizer((Tensor([1.0]),))
    assert p.asnumpy() == -2.5


def test_states_are_named_after_their_parameters():
    params = [Parameter(1.0, name="w"), Parameter(2.0, name="b")]
    names = [p.name for p in optim.Adam(params).get_parameters()]
    assert sorted(names) == sorted(["global_step", "learning_rate", "w", "b", "beta1_power", "beta2_power", "moment1.w",
                                    "moment1.b", "moment2.w", "moment2.b"])
    groups = [{"params": params[:1], "lr": 0.5}, {"params": params[1:], "weight_decay": 0.1}]
    optimizer = optim.SGD(groups, learning_rate=0.25)
    assert [p.name for p in optimizer.learning_rate] == ["learning_rate_group_0", "learning_rate"]
    assert [float(rate.asnumpy()) for rate in optimizer.get_lr()] == [0.5, 0.25]
    assert optimizer.get_lr_parameter(params[0]) is optimizer.learning_rate[0]
    assert optimizer.get_lr_parameter(params[::-1]) == list(optimizer.learning_rate)[::-1]
    assert optimizer.get_weight_decay() == (0.0, 0.1)
    assert [(type(each), each.dtype, each.shape) for each in optimizer.weight_decay] == [(Tensor, np.float32, ())] * 2
    assert optimizer.weight_decay == (0.0, 0.1)
    assert type(optim.SGD(params, 0.1, weight_decay=0.5).weight_decay) is Tensor
    assert isinstance(optimizer.parameters, ParameterTuple)
    assert optimizer.is_group_params_ordered is False
    with pytest.raises(ValueError, match="other"):
        optimizer.get_lr_parameter(Parameter(1.0, name="other"))


@pytest.mark.parametrize("listed", [[0.5, 0.25], optim.ExponentialDecayLR(0.5, 0.5, 1)], ids=["list", "schedule"])
def test_rates_of_groups_are_cells_where_one_of_them_changes(listed):
    """``learning_rate`` holds the rate of each group, or its list of rates, as in MindSpore."""
    params = [Parameter(np.zeros(1, np.float32), name=name) for name in "ab"]
    groups = [{"params": params[:1], "lr": listed}, {"params": params[1:]}, {"order_params": params[::-1]}]
    optimizer = optim.SGD(groups, 0.125)
    assert optimizer.is_group_params_ordered and optimizer.dynamic_lr and optimizer.is_group_lr
    fixed, changing = optimizer.learning_rate
    assert fixed.learning_rate.asnumpy() == 0.125 and fixed.learning_rate.name == "learning_rate"
    assert optimizer.get_lr_parameter(params[1]) is fixed.learning_rate
    if isinstance(listed, list):
        assert changing.learning_rate.asnumpy().tolist() == listed
        assert optimizer.get_lr_parameter(params[0]) is changing.learning_rate
    else:
        assert changing is listed and changing.learning_rate == 0.5
    for _ in range(2):
        optimizer((Tensor([1.0]), Tensor([1.0])))
    assert params[0].asnumpy() == -0.75 and params[1].asnumpy() == -0.25
    optimizer.get_lr_parameter(params[1]).set_data(1.0)
    optimizer((Tensor([1.0]), Tensor([1.0])))
    assert params[1].asnumpy() == -1.25


class Hundredth(Cell):
    """A Cell that computes a weight decay."""

    def construct(self, step):
        return Tensor(0.01)


@pytest.mark.parametrize("make", [
    lambda p: optim.Momentum(p, 0.5, 0, weight_decay=Hundredth()),
    lambda p: optim.SGD(p, np.float32(0.5), weight_decay=0.01),
    lambda p: optim.SGD([{"params": p, "lr": np.float64(0.5)}], 1, weight_decay=0.01),
    lambda p: optim.SGD(p, [np.float64(0.5), 1], weight_decay=0.01),
    lambda p: optim.Momentum(p, optim.piecewise_constant_lr([2], [0.5]), 0, weight_decay=0.01)])
def test_settings_that_mindspore_refuses_have_their_values(make):
    """Integers and NumPy's numbers are accepted; MindSpore raises a TypeError for them."""
    p = Parameter(np.ones(2, np.float32), name="w")
    make([p])((Tensor([1.0, 1.0]),))
    np.testing.assert_allclose(p.asnumpy(), 1 - 0.5 * 1.01, rtol=1e-6)
    assert optim.piecewise_constant_lr([1, 2], [1, 2]) == [1.0, 2.0]


@pytest.mark.parametrize("make, message", [
    (lambda p: optim.SGD(p, weight_decay=Hundredth()), "SGD: weight_decay must be a float, .* got a Cell"),
    (lambda p: optim.SGD([{"params": p, "weight_decay": Hundredth()}]), "weight_decay must be a float, .* got a Cell"),
    (lambda p: optim.SGD([{"params": p, "lr": np.array(1)}]), "learning_rate_group_0 must be .* got an array without"),
    (lambda p: optim.Adam(p, np.array(0.5)), "learning_rate must be .* got an array without axes"),
    (lambda p: optim.Adam(p)(Tensor([[1.0, 1.0]])), "expected a tuple of gradients, got Tensor")])
def test_settings_that_are_refused_as_by_mindspore(make, message):
    with pytest.raises(TypeError, match=message):
        make([Parameter(np.ones(2, np.float32), name="w")])


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("clip", [False, True])
def test_lars_gives_layers_rates_of_their_own(mode, clip):
    """Weight decay and loss scale are settings of the inner optimizer; LARS applies them."""
    rng = np.random.default_rng(2)
    start = {"w": rng.normal(size=(2, 3)), "bias": rng.normal(size=3), "none": np.zeros(2)}
    params = [Parameter(Tensor(value.astype("f4")), name=name) for name, value in start.items()]
    inner = optim.Momentum(params, 0.1, 0.5, weight_decay=0.25, loss_scale=4.0)
    lars = optim.LARS(inner, epsilon=1e-3, coefficient=0.5, use_clip=clip)
    step = lars if mode == "eager" else jit(lambda *gradients: lars(gradients))
    speed = {name: np.zeros_like(value) for name, value in start.items()}
    for _ in range(3):
        gradients = {name: rng.normal(size=value.shape) for name, value in start.items()}
        given = [Tensor(4 * g.astype("f4")) for g in gradients.values()]
        step(tuple(given)) if mode == "eager" else step(*given)
        for name, g in gradients.items():
            p = start[name]
            if name != "bias":
                length, size = np.linalg.norm(p), np.linalg.norm(g)
                trust = 0.5 * length / (size + 0.25 * length + 1e-3)
                trust = min(trust / 0.1, 1.0) if clip else trust
                g = (g + 0.25 * p) * (trust if length else 1.0)
            speed[name] = 0.5 * speed[name] + g
            start[name] = p - 0.1 * speed[name]
    for p in params:
        np.testing.assert_allclose(p.asnumpy(), start[p.name], rtol=2e-5, atol=1e-6)
    assert int(lars.global_step) == 3 == int(inner.global_step)


def test_lars_is_part_of_a_compiled_step_whose_parameters_have_different_names():
    net = nn.Dense(3, 2)
    lars = optim.LARS(optim.Momentum(net.trainable_params(), 0.1, 0.9))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), lars)
    step.compile(Tensor(np.ones((1, 3), np.float32)), Tensor(np.ones((1, 2), np.float32)))
    names = [p.name for p in lars.get_parameters()]
    assert len(names) == len({*names}) and {"fake_lr", "learning_rate"} < {*names}


def test_lars_refuses_values_that_are_no_optimizer():
    with pytest.raises(TypeError, match="optimizer=3: expected an optimizer"):
        optim.LARS(3)


@pytest.mark.parametrize("options", [dict(use_lazy=True, use_offload=True), dict(use_lazy=True, use_amsgrad=True),
                                     dict(use_offload=True, use_amsgrad=True)], ids=str)
def test_kinds_of_adam_exclude_each_other(options):
    with pytest.raises(ValueError, match="Adam: only one of use_lazy, use_offload and use_amsgrad"):
        optim.Adam([Parameter(np.ones(2, np.float32), name="w")], **options)


def test_gradients_are_centered_in_groups_with_that_setting():
    gradient = np.arange(32, dtype=np.float32).reshape(2, 16)
    params = [Parameter(np.zeros((2, 16), np.float32), name="a"), Parameter(np.zeros((2, 16), np.float32), name="c")]
    optimizer = optim.SGD([{"params": params[:1], "grad_centralization": True}, {"params": params[1:]}], 1.0)
    optimizer((Tensor(gradient), Tensor(gradient)))
    np.testing.assert_allclose(params[0].asnumpy(), gradient.mean(axis=1, keepdims=True) - gradient, rtol=1e-6)
    np.testing.assert_array_equal(params[1].asnumpy(), -gradient)


def test_a_users_optimizer_may_branch_on_values():
    class Halving(Optimizer):
        """An optimizer that keeps half of its velocity, and branches on values, as eager code may."""

        def __init__(self, params, rate, **more):
            super().__init__(rate, params, **more)
            self.moments = self.parameters.clone("moments", "zeros")
            self.seen = []

        def construct(self, gradients):
            gradients = self.scale_grad(self.gradients_centralization(self.decay_weight(gradients)))
            if isinstance(gradients[0], Tensor):
                self.seen.append(float(gradients[0].asnumpy()[0]))
            for p, v, g in zip(self.parameters, self.moments, gradients):
                assign(v, v * 0.5 + g)
                assign(p, p - v * self.get_lr())
            assign(self.global_step, self.global_step + 1)

    results = []
    for wrap in (lambda f: f, jit):
        p = Parameter(np.array([1.0], np.float32), name="w")
        optimizer = Halving([p], optim.ExponentialDecayLR(0.5, 0.5, 1), weight_decay=0.5, loss_scale=2.0)
        step = wrap(lambda g, run=optimizer: run((g,)))
        for _ in range(3):
            step(Tensor([2.0]))
        results.append(p.asnumpy())
    np.testing.assert_allclose(*results, rtol=1e-6)


_FOLLOWS = MultitypeFuncGraph("follows")


@_FOLLOWS.register("Number", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Bool", "Bool")
def _follow(momentum, rate, decay, p, g, v, decays, mine):
    """A step with momentum, in MindSpore's style: one function for each kind of arguments."""
    if mine:
        g = g + p * decay if decays else g
        v = ms_ops.assign(v, v * momentum + g)
        ms_ops.assign(p, p - v * rate)
    return mine


class AfterMindSpore(Optimizer):
    """Momentum, with the parts of MindSpore's base class."""

    def __init__(self, params, learning_rate, momentum=0.5, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        self.momentum = momentum
        self.velocity = self._parameters.clone(prefix="velocity", init="zeros")

    @jit
    def construct(self, gradients):
        gradients = self.scale_grad(self.gradients_centralization(self.flatten_gradients(gradients)))
        decay, rate = self.get_weight_decay(), self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        if self.is_group and self.is_group_lr:
            done = self.hyper_map(partial(_FOLLOWS, self.momentum), rate, decay, self._parameters, gradients,
                                  self.velocity, self.decay_flags, self.optim_filter)
        elif self.is_group:
            done = self.map_(partial(_FOLLOWS, self.momentum, rate), decay, self.params, gradients, self.velocity,
                             self.decay_flags, self.optim_filter)
        else:
            done = self.map_reverse(partial(_FOLLOWS, self.momentum, rate, decay), self.parameters, gradients,
                                    self.velocity, self.decay_flags, self.optim_filter)
        if self.use_parallel:
            self.broadcast_params(done)
        return done


@pytest.mark.parametrize("how", ["together", "decays by group", "rates by group", "rates by group and step"])
def test_an_optimizer_written_like_mindspores_runs(how):
    found = []
    for kind, momentum in ((AfterMindSpore, 0.5), (optim.Momentum, 0.5)):
        params = [Parameter(np.arange(1.0, 4.0, dtype=np.float32), name=name) for name in ("w", "gamma")]
        groups = {"together": params, "decays by group": [{"params": params[:1], "weight_decay": 0.1},
                                                          {"params": params[1:]}],
                  "rates by group": [{"params": params[:1], "lr": 0.5}, {"params": params[1:]}],
                  "rates by group and step": [{"params": params[:1], "lr": [0.5, 0.25]}, {"params": params[1:]}]}[how]
        optimizer = kind(groups, 0.25, momentum, weight_decay=0.05)
        assert optimizer.param_length == len(optimizer.params) == 2
        for step in range(3):
            optimizer((Tensor([0.5, -1.0, step]), Tensor([1.0, step, 0.25])))
        assert optimizer.global_step.asnumpy() == 3
        found.append([p.asnumpy() for p in params])
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_an_optimizer_whose_state_changes_in_each_step_runs_as_python():
    class Counted(optim.SGD):
        steps = 0

        def construct(self, gradients):
            done = super().construct(gradients)
            rates.append(self.steps)
            self.steps += 1
            return done

    rates: list[int] = []
    w = Parameter(Tensor([1.0]), name="w")
    step = Counted([w], 0.25)

    def train(steps: int) -> None:
        for _ in range(steps):
            step((Tensor([1.0]),))

    with pytest.warns(UserWarning, match="^Counted is not compiled but runs as Python: .*changes from call to call"):
        train(20)
    assert rates == [*range(20)] and w.asnumpy() == -4.0 and step.global_step.asnumpy() == 20


def test_a_copy_of_an_optimizer_has_parameters_of_its_own():
    p = Parameter(np.ones(2, np.float32), name="w")
    first = optim.Momentum([{"params": [p], "lr": 0.5}], 0.1, 0.9)
    first((Tensor([1.0, 1.0]),))
    second = copy.deepcopy(first)
    second((Tensor([1.0, 1.0]),))
    np.testing.assert_allclose(p.asnumpy(), [0.5, 0.5])
    np.testing.assert_allclose(second.parameters[0].asnumpy(), [-0.45, -0.45], rtol=1e-6)
    assert first.global_step.asnumpy() == 1 and second.global_step.asnumpy() == 2


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_an_optimizer_is_called_in_functional_training(wrap):
    w = Parameter(np.array([2.0, -1.0], np.float32), name="w")
    optimizer = optim.SGD([w], 0.5)
    both = value_and_grad(lambda x: ops._np_sum(ops.square(w * x)), None, optimizer.parameters)

    @wrap
    def step(x):
        loss, gradients = both(x)
        optimizer(gradients)
        return loss

    assert [float(step(Tensor([1.0, 2.0])).asnumpy()) for _ in range(2)] == [8.0, 36.0]
    np.testing.assert_array_equal(w.asnumpy(), [0.0, -9.0])


def test_a_cell_may_give_the_weight_decay():
    class Ramp(Cell):
        def construct(self, step):
            return step.astype(np.float32) * 0.5

    for groups in (False, True):
        p = Parameter(np.array([8.0], np.float32), name="w")
        params = [{"params": [p], "weight_decay": Ramp()}] if groups else [p]
        optimizer = optim.Momentum(params, 1.0, 0.0, weight_decay=0.0 if groups else Ramp(), loss_scale=4.0)
        found = []
        for _ in range(3):  # the loss scale divides both gradient and decay
            optimizer((Tensor([0.0]),))
            found.append(float(p.asnumpy()[0]))
        assert found == [8.0, 4.0, 0.0]


# ----------------------------------------------------------------------------------------- settings set later


#: Optimizer, its settings, and one that is set between two steps.
SET_LATER = [
    ("SGD", {}, "weight_decay", 0.5), ("SGD", {"weight_decay": 0.1}, "weight_decay", Tensor(np.float32(0.0))),
    ("SGD", {"weight_decay": 0.1}, "loss_scale", 4.0), ("SGD", {"momentum": 0.5}, "momentum", Tensor(np.float32(0.9))),
    ("SGD", {"momentum": 0.5}, "nesterov", True), ("SGD", {}, "learning_rate", Tensor(np.float32(0.5))),
    ("Momentum", {"learning_rate": 0.1, "momentum": 0.9}, "weight_decay", np.float32(0.5)),
    ("Adam", {"weight_decay": 0.1}, "weight_decay", 0.5), ("AdamWeightDecay", {}, "weight_decay", 0.5),
    ("AdamWeightDecay", {}, "eps", 0.5), ("Lamb", {"learning_rate": 0.1}, "weight_decay", 0.5),
    ("AdaFactor", {}, "weight_decay", 0.5), ("AdaMax", {}, "weight_decay", 0.5), ("RMSProp", {}, "weight_decay", 0.5),
    ("RMSProp", {}, "decay", 0.5), ("Adagrad", {}, "update_slots", False), ("Rprop", {}, "weight_decay", 1.5),
    ("ProximalAdagrad", {}, "l1", 0.5), ("FTRL", {}, "weight_decay", 0.5), ("FTRL", {}, "lr_power", -0.25),
    ("Adadelta", {"weight_decay": 0.1}, "rho", 0.5), ("ASGD", {}, "weight_decay", 0.5)]


def _set_later(step: Any, name: str, settings: dict[str, Any], attribute: str, value: Any) -> list[np.ndarray]:
    """Values of the parameter after each of four steps; a setting changes after the second."""
    p = Parameter(np.array([1.0, -2.0, 0.5], np.float32), name="w")
    optimizer = getattr(optim, name)([p], **settings)
    run, found = step(optimizer), []
    for i in range(4):
        if i == 2:
            setattr(optimizer, attribute, value)
        run((Tensor([0.5, 1.0, -0.25]),))
        found.append(p.asnumpy().copy())
    return found


@pytest.mark.parametrize("step", [lambda o: o, lambda o: jit(lambda g: o(g))], ids=["eager", "jit"])
@pytest.mark.parametrize("name, settings, attribute, value", SET_LATER, ids=lambda v: v if isinstance(v, str) else "")
def test_a_setting_set_later_holds_from_the_next_step(step, name, settings, attribute, value):
    found = _set_later(step, name, settings, attribute, value)
    np.testing.assert_allclose(found, _set_later(lambda o: o.construct, name, settings, attribute, value), rtol=1e-6)
    before = _set_later(step, name, settings, "note", value)  # no step reads this setting
    np.testing.assert_array_equal(found[:2], before[:2])
    assert not np.allclose(found[3], before[3], rtol=1e-5)


@pytest.mark.parametrize("name, settings, attribute, value",
                         [case for case in SET_LATER if case[2] in ("weight_decay", "loss_scale", "eps", "rho")],
                         ids=lambda v: v if isinstance(v, str) else "")
def test_a_setting_set_before_the_first_step_is_the_one_of_construction(name, settings, attribute, value):
    moved = []
    for given, later in (({**settings, attribute: float(value)}, {}), (settings, {attribute: value})):
        p = Parameter(np.array([1.0, -2.0, 0.5], np.float32), name="w")
        optimizer = getattr(optim, name)([p], **given)
        for key, setting in later.items():
            setattr(optimizer, key, setting)
        for _ in range(3):
            optimizer((Tensor([0.5, 1.0, -0.25]),))
        moved.append((p.asnumpy(), np.asarray(optimizer.weight_decay), np.asarray(optimizer.get_weight_decay())))
    np.testing.assert_array_equal(moved[0][0], moved[1][0])
    np.testing.assert_array_equal(moved[0][1:], moved[1][1:])


def _grouped() -> Optimizer:
    params = [Parameter(np.ones(1, np.float32), name=name) for name in ("w", "v", "gamma")]
    return optim.Momentum([{"params": params[:1], "lr": 0.5, "weight_decay": 0.25}, {"params": params[1:2]},
                           {"params": params[2:], "weight_decay": 0.0}], 0.25, 0.0, loss_scale=2.0)


@pytest.mark.parametrize("attribute, value, expected", [
    ("weight_decay", 1.0, [0.75, 0.875, 0.875]),
    ("weight_decay", (0.0, 1.0, Hundredth()), [1.0, 0.875, 0.9975]),
    ("learning_rate", tuple(Parameter(Tensor(np.float32(i == 0)), name=f"rate{i}") for i in range(3)),
     [0.75, 1.0, 1.0])])
def test_settings_of_groups_may_be_set_later(attribute, value, expected):
    optimizer = _grouped()
    zeros = tuple([Tensor([0.0])] * 3)
    optimizer(zeros)
    np.testing.assert_allclose([p.asnumpy()[0] for p in optimizer.parameters], [0.875, 1.0, 1.0])
    optimizer.parameters[0].set_data(Tensor([1.0]))
    setattr(optimizer, attribute, value)
    optimizer(zeros)
    np.testing.assert_allclose([p.asnumpy()[0] for p in optimizer.parameters], expected, rtol=1e-6)


def test_another_schedule_may_be_set_later():
    p = Parameter(np.zeros(1, np.float32), name="w")
    optimizer = optim.SGD([p], optim.ExponentialDecayLR(1.0, 0.5, 1))
    optimizer((Tensor([1.0]),))
    optimizer.learning_rate = optim.ExponentialDecayLR(8.0, 0.5, 1)
    optimizer((Tensor([1.0]),))
    assert p.asnumpy() == -5.0


def test_lars_follows_the_settings_of_its_inner_optimizer():
    gradients = (Tensor([0.5, 1.0]),)
    found = []
    for later in (False, True):
        p = Parameter(np.array([3.0, 4.0], np.float32), name="w")
        inner = optim.SGD([p], 0.25, **({} if later else {"weight_decay": 0.5, "loss_scale": 2.0}))
        lars = optim.LARS(inner, coefficient=0.5)
        if later:
            inner.loss_scale = 2.0
            inner.weight_decay = 1.0  # times the loss scale, as it is shown
        for _ in range(2):
            lars(gradients)
        found.append(p.asnumpy().copy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("make, attribute, value, error, says", [
    (lambda p: optim.SGD(p), "weight_decay", -0.5, ValueError, "SGD: weight_decay=-0.5: expected a number"),
    (lambda p: optim.SGD(p), "weight_decay", None, TypeError, "SGD: weight_decay=None: expected a number"),
    (lambda p: optim.SGD(p), "weight_decay", Hundredth(), TypeError, "SGD: weight_decay must be a float.*got a Cell"),
    (lambda p: optim.SGD(p), "loss_scale", 0, ValueError, "SGD: loss_scale=0: expected a number above 0"),
    (lambda p: optim.SGD(p), "momentum", Tensor(np.float32(0.5)), AttributeError, "SGD: momentum was 0 when"),
    (lambda p: _grouped(), "weight_decay", (0.5, 0.5), ValueError, "Momentum: weight_decay must be one number, or 3"),
    (lambda p: _grouped(), "learning_rate", (0.5,) * 3, TypeError, "Momentum: learning_rate must be a tuple of 3"),
    (lambda p: optim.LARS(optim.SGD(p)), "weight_decay", 0.5, AttributeError, r"LARS: .*; set it as opt\.weight_decay"),
])
def test_settings_of_an_optimizer_are_checked_when_they_are_assigned(make, attribute, value, error, says):
    optimizer = make([Parameter(np.ones(1, np.float32), name="w")])
    before = np.asarray(optimizer.weight_decay)
    with pytest.raises(error, match=says):
        setattr(optimizer, attribute, value)
    np.testing.assert_array_equal(before, np.asarray(optimizer.weight_decay))


@pytest.mark.parametrize("puts", [
    lambda opt, half: opt.momentum.set_data(half), lambda opt, half: opt.momentum.set_data(0.5),
    lambda opt, half: opt.momentum.__setitem__(..., 0.5), lambda opt, half: ms_ops.assign(opt.momentum, half),
    lambda opt, half: load_param_into_net(opt, {"momentum": Parameter(half, name="momentum")})],
    ids=["set_data", "set_data of a number", "subscript", "assign", "load"])
def test_sgd_without_velocities_refuses_a_momentum(puts):
    optimizer = optim.SGD(one())
    with pytest.raises(AttributeError, match="SGD: momentum was 0 when"):
        puts(optimizer, Tensor(np.float32(0.5)))
    assert optimizer.momentum.asnumpy() == 0
    load_param_into_net(optimizer, {"momentum": Parameter(0.0, name="momentum")})


# ------------------------------------------------------------------------------------------- refused settings


def one() -> list[Parameter]:
    return [Parameter(np.ones(2, np.float32), name="w")]


REFUSED = [
    (lambda: optim.SGD(None), ValueError, "must not be None"),
    (lambda: optim.SGD([]), ValueError, "must not be empty"),
    (lambda: optim.SGD(one()[0]), TypeError, "must be a list"),
    (lambda: optim.SGD([1]), TypeError, "got int"),
    (lambda: optim.SGD([*one(), {"params": one()}]), TypeError, "got dict"),
    (lambda: optim.SGD([{"params": one(), "rate": 1.0}]), KeyError, "'rate'"),
    (lambda: optim.SGD([{"params": []}]), ValueError, "params of group 0"),
    (lambda: optim.SGD([{"params": [3]}]), TypeError, "group 0"),
    (lambda: optim.SGD([{"params": one(), "grad_centralization": 1}]), TypeError, "grad_centralization"),
    (lambda: optim.SGD([{"params": one()}, {"order_params": one()}]), ValueError, "order_params"),
    (lambda: optim.SGD([{"params": one()}, {"order_params": one(), "lr": 1.0}]), ValueError,
     "the only key of its group"),
    (lambda: optim.SGD([{"params": one(), "lr": [1.0, 2.0]}], [1.0, 2.0, 3.0]), ValueError, "lists 2"),
    (lambda: optim.SGD(one(), "fast"), TypeError, "learning_rate"),
    (lambda: optim.SGD(one(), "fast"), ValueError, "learning_rate"),
    (lambda: optim.SGD(one(), [0.1, "fast"]), ValueError, "learning_rate"),
    (lambda: optim.SGD(one(), [0.1, -0.1]), ValueError, "learning_rate"),
    (lambda: optim.SGD(one(), []), ValueError, "learning_rate"),
    (lambda: optim.SGD(one(), True), TypeError, "learning_rate"),
    (lambda: optim.SGD(one(), -1.0), ValueError, "at least 0"),
    (lambda: optim.SGD(one(), Tensor(np.ones((2, 2), np.float32))), ValueError, r"shape \(2, 2\)"),
    (lambda: optim.SGD(one(), momentum=-0.1), ValueError, "momentum"),
    (lambda: optim.SGD(one(), momentum="much"), TypeError, "momentum"),
    (lambda: optim.SGD(one(), nesterov=True), ValueError, "nesterov"),
    (lambda: optim.SGD(one(), nesterov=1), TypeError, "nesterov"),
    (lambda: optim.SGD(one(), weight_decay=-1.0), ValueError, "weight_decay"),
    (lambda: optim.SGD(one(), weight_decay="some"), TypeError, "weight_decay"),
    (lambda: optim.SGD(one(), loss_scale=0.0), ValueError, "loss_scale=0.0: expected a number above 0"),
    (lambda: optim.Adam(one(), beta1=1.0), ValueError, "beta1=1.0: expected a number above 0 and below 1"),
    (lambda: optim.Adam(one(), eps=0.0), ValueError, "eps"),
    (lambda: optim.Rprop(one(), etas=0.5), TypeError, "etas=0.5: expected two numbers"),
    (lambda: optim.Rprop(one(), step_sizes=(0.1,)), ValueError, r"step_sizes=\(0.1,\): expected two numbers"),
    (lambda: optim.Rprop(one(), etas=(0.5, 1.0)), ValueError, r"etas\[1\]=1.0: expected a number above 1"),
    (lambda: optim.Rprop(one(), step_sizes=(0.2, 0.1)), ValueError, r"step_sizes\[1\]=0.1: .* at least 0.2"),
    (lambda: optim.AdaFactor(one(), 0.1), ValueError, "relative_step=True computes the learning rate"),
    (lambda: optim.AdaFactor(one(), relative_step=False), ValueError, "needs a learning_rate"),
    (lambda: optim.AdaFactor(one(), 0.1, relative_step=False, warmup_init=True), ValueError, "no warmup_init"),
    (lambda: optim.FTRL(one(), lr_power=0.5), ValueError, "lr_power=0.5: expected a number of at most 0"),
    (lambda: optim.FTRL(one(), learning_rate=[0.1, 0.2]), ValueError, "one learning rate for all steps"),
    (lambda: optim.FTRL([{"params": one(), "lr": 0.1}]), ValueError, "one learning rate for all steps and groups"),
    (lambda: optim.SGD(one())(Tensor([1.0, 1.0])), TypeError, "tuple of gradients"),
    (lambda: optim.SGD(one())(()), ValueError, "expected 1 gradients"),
    (lambda: optim.SGD(one())((Tensor([1.0]),)), ValueError, r"gradient of w has shape \(1,\)"),
    (lambda: Optimizer(0.1, one())(()), NotImplementedError, "construct"),
    (lambda: optim.ExponentialDecayLR(0.1, 0.9, 0), ValueError, "decay_steps"),
    (lambda: optim.ExponentialDecayLR(0.1, 0.9, 1.5), TypeError, "decay_steps"),
    (lambda: optim.CosineDecayLR(0.1, 0.1, 3), ValueError, "max_lr"),
    (lambda: optim.LearningRateSchedule()(Tensor(1)), NotImplementedError, "construct"),
    (lambda: optim.piecewise_constant_lr([2, 1], [0.1, 0.2]), ValueError, "must increase"),
    (lambda: optim.piecewise_constant_lr([2], [0.1, 0.2]), ValueError, "2"),
    (lambda: optim.cosine_decay_lr(0.2, 0.1, 4, 1, 2), ValueError, "max_lr"),
]


@pytest.mark.parametrize("row", REFUSED, ids=range(len(REFUSED)))
def test_wrong_arguments_are_refused(row):
    make, kind, text = row
    with pytest.raises(kind, match=text):
        make()


def test_a_parameter_in_two_groups_is_refused():
    p = one()
    with pytest.raises(RuntimeError, match="two groups"):
        optim.SGD([{"params": p}, {"params": p}])


# ------------------------------------------------------------------- where a plan may compute into parameters


def rotated(first, second):
    """Assigns two parameters values that depend on both; neither may be overwritten before both are read."""
    a, b = first * 2 + second, second * 3 - first
    assign(first, a)
    assign(second, b)
    return a


def read_late(first, second):
    """Reads the old value of the first parameter after the computation of its new one."""
    a = first + second
    assign(first, a)
    late = ops._np_sum(first * second)
    assign(second, a * late)
    return ops._np_sum(second) + late


def swapped(first, second):
    """Swaps two parameters."""
    a, b = first * 1, second * 1
    assign(first, b)
    assign(second, a)
    return a


@pytest.mark.parametrize("function", [rotated, read_late, swapped], ids=lambda f: f.__name__)
def test_assignments_may_swap_parameters(function):
    found = []
    for wrap in (lambda f: f, jit):
        pair = [Parameter(np.array([1.0, 2.0, 3.0], np.float32), name="a"),
                Parameter(np.array([4.0, 5.0, 6.0], np.float32), name="b")]
        run = wrap(lambda x, p=pair: function(*p) + x)
        outs = [run(Tensor(0.0)).asnumpy() for _ in range(3)]
        found.append([*outs, *[p.asnumpy() for p in pair]])
    for eager, compiled in zip(*found):
        np.testing.assert_array_equal(eager, compiled)


@pytest.mark.parametrize("made, begin", [
    (lambda p: optim.Adam(p, 0.1), ["global_step", "learning_rate", "w", "b", "beta1_power"]),
    (lambda p: optim.Momentum([{"params": [p[0]], "lr": 0.3}, {"params": [p[1]]}], 0.1, 0.9),
     ["global_step", "learning_rate_group_0", "learning_rate", "w", "b", "momentum"]),
    (lambda p: optim.Momentum(p, ExponentialDecayLR(0.1, 0.9, 2), 0.9), ["global_step", "w", "b", "momentum"])])
def test_parameters_come_in_the_order_of_mindspore(made: Any, begin: list[str]) -> None:
    """Rates come before weights in ``get_parameters``, and so in the files of a checkpoint."""
    params = [Parameter(Tensor([1.0, 2.0]), name=name) for name in ("w", "b")]
    assert [p.name for p in made(params).get_parameters()][:len(begin)] == begin


def test_an_optimizer_may_define_the_setter_of_its_target():
    """Optimizers for MindSpore define one, which passes the value to ``_set_base_target``."""
    class Mine(Optimizer):
        @Optimizer.target.setter
        def target(self, value):
            self._set_base_target(value)

    mine = Mine(0.1, [Parameter(np.ones(2, np.float32), name="w")])
    assert (mine.target, mine.unique) == ("CPU", True)
    mine.target = "GPU"
    assert mine.target == "GPU"
    with pytest.raises(ValueError, match="Mine: target must be 'CPU', 'Ascend' or 'GPU', got 'TPU'"):
        mine.target = "TPU"

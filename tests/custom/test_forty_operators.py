"""Forty operators of users in each way of running: eagerly, bound, in ``fit``, in Cells, differentiated twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nn
from opreg.core.spec import is_floating
from opreg.testing.uses import Use, graph, heads, second
from tests.custom.forty import CASES, Case

pytestmark = pytest.mark.filterwarnings("ignore:.*runs as Python")

#: Step of central differences, to either side.
_STEP = 1e-5


@pytest.fixture(autouse=True)
def _seeded() -> None:
    mx.random.seed(3)


def _use(case: Case) -> Use:
    use = Use(case.op, case.inputs, case.attrs, True)
    use.stochastic = case.expected is None
    return use


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _equal(found: Sequence[np.ndarray], expected: Sequence[Any], what: str) -> None:
    assert len(found) == len(expected)
    for i, (each, want) in enumerate(zip(found, expected)):
        np.testing.assert_allclose(each, want, rtol=2e-5, atol=1e-5, err_msg=f"{what}: output {i}")


def _differentiated(case: Case, use: Use) -> bool:
    return case.grad and bool(use.wanted)


def _slope(function: Any, x: np.ndarray) -> np.ndarray:
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        ends = []
        for step in (_STEP, -_STEP):
            moved = x.copy()
            moved[place] += step
            ends.append(function(moved))
        found[place] = (ends[0] - ends[1]) / (2 * _STEP)
    return found


def _weighted(arrays: Sequence[np.ndarray], weights: Sequence[np.ndarray | None]) -> float:
    return float(sum((each.astype(np.float64) * w).sum() for each, w in zip(arrays, weights) if w is not None))


def _eagerly(case: Case, use: Use) -> None:
    result = use.run()
    if case.expected is not None:
        _equal(result.outs, _listed(case.expected(*case.inputs)), "eagerly")
    states = case.states(*case.inputs) if case.states else case.inputs[use.count:]
    _equal(result.after[use.count:], states, "states")
    _equal(result.after[:use.count], case.inputs[:use.count], "inputs")


def _bound(case: Case, use: Use) -> None:
    expected = use.run()
    _equal(graph(use).outs, expected.outs, "bound")
    if not _differentiated(case, use):
        return
    given = heads(use, expected.outs)
    expected = use.run(given, grads=True)
    before = {i: np.full_like(use.arrays[i], 3) for i in use.wanted}
    for req in ("write", "add", "null"):
        result = graph(use, head_grads=given, reqs=dict.fromkeys(use.wanted, req), before=before, grads=True)
        _equal(result.outs, expected.outs, f"bound with {req}")
        _equal(result.after[use.count:], expected.after[use.count:], f"states, bound with {req}")
        for i, grad in expected.grads.items():
            want = {"write": grad, "add": grad + 3, "null": before[i]}[req]
            np.testing.assert_allclose(result.grads[i], want, rtol=2e-5, atol=1e-5, err_msg=f"{req}: {use.names[i]}")


def _differences(case: Case, use: Use) -> None:
    wide = use.cast(np.float64)
    if case.loss or not _differentiated(case, use) or any(wide.arrays[i].dtype != np.float64 for i in use.wanted):
        return
    given = heads(wide, wide.run().outs)
    if given is None or any(out.dtype != np.float64 for out in wide.run().outs if is_floating(out.dtype)):
        return
    grads = wide.run(given, grads=True).grads
    weights = {i: np.random.default_rng(i).standard_normal(wide.arrays[i].shape) for i in wide.wanted}
    twice = second(wide, given, weights)[0] if case.smooth else {}
    for i in wide.wanted:
        def moved(x: np.ndarray, i: int = i) -> Use:
            return wide.on_arrays([*wide.arrays[:i], x, *wide.arrays[i + 1:]])

        np.testing.assert_allclose(grads[i], _slope(lambda x: _weighted(moved(x).run().outs, given), wide.arrays[i]),
                                   rtol=1e-6, atol=1e-8, err_msg=f"gradient of {use.names[i]}")
        if not case.smooth:
            continue

        def weighted(x: np.ndarray) -> float:
            found = moved(x).run(given, grads=True).grads
            return sum(float((found[j] * weight).sum()) for j, weight in weights.items())

        np.testing.assert_allclose(twice[i], _slope(weighted, wide.arrays[i]), rtol=1e-6, atol=1e-7,
                                   err_msg=f"second order of {use.names[i]}")


class _Net(nn.Cell):
    """A Cell with the operator, whose states are Parameters that are not trained."""

    def __init__(self, use: Use) -> None:
        super().__init__()
        self.use = use
        self.states = [mx.Parameter(mx.Tensor(each.copy()), name=name, requires_grad=False)
                       for name, each in zip(use.names[use.count:], use.arrays[use.count:])]
        for state in self.states:
            setattr(self, state.name, state)

    def construct(self, *values: Any) -> Any:
        return self.use.op(*values, *self.states, **self.use.given)


def _in_cells(case: Case, use: Use) -> None:
    eager = use.run()
    given = heads(use, eager.outs) or [np.ones_like(out) if is_floating(out.dtype) else None for out in eager.outs]
    differentiated = _differentiated(case, use)
    if differentiated:
        eager = use.run(None if case.loss else given, grads=True)
    values = [mx.Tensor(each) for each in use.arrays[:use.count]]
    for compiled in (False, True):
        what = f"in a {'compiled ' * compiled}Cell"
        net = _Net(use)
        net.set_train()
        run = mx.jit(net) if compiled else net
        use.seed()
        _equal([each.asnumpy() for each in _listed(run(*values))], eager.outs, what)
        _equal([each.asnumpy() for each in net.states], eager.after[use.count:], f"states {what}")
        if not differentiated:
            continue

        def loss(*values: Any, net: Any = net) -> Any:
            outs = _listed(net(*values))
            return sum((out * mx.Tensor(w)).sum() for out, w in zip(outs, given) if w is not None)

        asked = mx.value_and_grad(loss, tuple(use.wanted))
        asked = mx.jit(asked) if compiled else asked
        use.seed()
        value, grads = asked(*values)
        assert np.isfinite(value.asnumpy()).all()
        grads = grads if isinstance(grads, tuple) else (grads,)
        _equal([each.asnumpy() for each in grads], [eager.grads[i] for i in use.wanted], f"value_and_grad {what}")


def _trained(case: Case, use: Use) -> None:
    names, arrays = use.names, dict(zip(use.names, use.arrays))
    trained = [names[i] for i in use.wanted] if _differentiated(case, use) else []
    if not any(is_floating(out.dtype) for out in use.run().outs):
        return
    args = {name: mx.sym.var(name, shape=each.shape, dtype=each.dtype) for name, each in arrays.items()}
    made = use.op(*args.values(), **use.given, name="op")
    outs = [each for each, kind in zip(made, made.infer_type()[1]) if is_floating(np.dtype(kind))]
    zero = mx.sym.sum(mx.sym.var("batch"))
    parts = [mx.sym.sum(out.astype("float32")) * 0.5 for out in outs]
    head = mx.sym.MakeLoss(sum(parts, zero)) if not case.loss else mx.sym.Group(
        [made, mx.sym.BlockGrad(zero)])
    module = mx.mod.Module(head, data_names=["batch"], label_names=[],
                           fixed_param_names=[name for name in names[:use.count] if name not in trained])
    data = mx.io.NDArrayIter({"batch": np.zeros((6, 1), np.float32)}, batch_size=2)
    losses: list[float] = []
    given = {name: mx.nd.array(each, dtype=each.dtype) for name, each in arrays.items()}
    module.fit(data, num_epoch=2, optimizer="sgd", optimizer_params={"learning_rate": 0.01, "multi_precision": True},
               eval_metric=mx.metric.Loss(), arg_params={name: given[name] for name in names[:use.count]},
               aux_params={name: given[name] for name in names[use.count:]},
               batch_end_callback=lambda told: losses.append(told.eval_metric.get()[1]))
    after, states = module.get_params()
    assert len(losses) == 6 and np.isfinite(losses).all()
    ones = [np.ones_like(out) if is_floating(out.dtype) else None for out in use.run().outs]
    grads = use.run(None if case.loss else ones, grads=True).grads if trained else {}
    for i, grad in grads.items():
        if np.abs(grad).max() > 1e-4:
            assert (after[names[i]].asnumpy() != arrays[names[i]]).any(), f"{names[i]} was not trained"
    for name in names[use.count:]:
        assert (states[name].asnumpy() != arrays[name]).any(), f"{name} did not move"


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_its_expected_values_in_every_use(name: str) -> None:
    case = CASES[name]
    use = _use(case)
    for ask in (_eagerly, _bound, _differences, _in_cells, _trained):
        ask(case, use)


def test_there_are_at_least_forty_operators() -> None:
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", CASES)
def test_check_finds_nothing(name: str) -> None:
    case = CASES[name]
    report = mx.operator.check(case.op, *case.inputs, **case.attrs)
    assert report.ok, report

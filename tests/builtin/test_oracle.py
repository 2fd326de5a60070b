"""Recorded results of Apache MXNet 1.9.1 for single operators: see ``oracle/README.md``.

Every case runs as a symbol in an executor and eagerly; names, shapes, dtypes and numbers are compared, of outputs,
gradients, auxiliary states and inputs changed in place.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from opreg.core.mode import Recording
from opreg.core.op import Op
from opreg.core.registry import get
from opreg.ndarray import array, cpu
from opreg.ndarray.autograd import backward
from opreg.ndarray.context import Context
from opreg.ndarray.function import invoke
from opreg.symbol import Variable
from opreg.symbol.symbol import create
from tests.questions import of_each
from tests.running import agree

FOLDER = Path(__file__).parent.parent / "oracle" / "operators"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text())
with np.load(FOLDER / "arrays.npz") as _file:
    ARRAYS = dict(_file)


def _cases(imperative: bool | None = None) -> Any:
    return of_each([case for case in CASES if imperative in (None, case["imperative"])], by=lambda case: case["op"])


def _arrays(case: dict[str, Any], kind: str) -> dict[str, np.ndarray]:
    prefix = f"{case['id']}/{kind}/"
    return {name[len(prefix):]: value for name, value in ARRAYS.items() if name.startswith(prefix)}


def _inputs(case: dict[str, Any]) -> dict[str, np.ndarray]:
    """Inputs and auxiliary states by name, in call order."""
    found = {**_arrays(case, "in"), **_arrays(case, "aux")}
    return {name: found[name] for name in (*case["inputs"], *case["aux"])}


def _compare(found: dict[str, Any], expected: dict[str, np.ndarray], what: str) -> None:
    assert set(expected) <= set(found), what
    for name, want in expected.items():
        assert found[name].dtype == want.dtype, f"{what} {name}"
        agree(found[name], want, what=f"{what} {name}")


def _numbered(values: Any) -> dict[str, np.ndarray]:
    return {str(i): value.asnumpy() for i, value in enumerate(values)}


def _call(op: Op, case: dict[str, Any], values: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    if op.signature.variadic:
        return tuple(values.values()), dict(case["attrs"])
    return (), {**values, **case["attrs"]}


def _symbol(case: dict[str, Any]) -> Any:
    op = get(case["op"])
    args, keywords = _call(op, case, {name: Variable(name) for name in _inputs(case)})
    return create(op, args, {**keywords, "name": "op"}, "op")


@of_each([case for case in CASES if not case["imperative"]])
def test_symbols_have_the_recorded_names(case: dict[str, Any]) -> None:
    symbol = _symbol(case)
    assert symbol.list_arguments() == case["arguments"]
    assert symbol.list_outputs() == case["outputs"]
    assert symbol.list_auxiliary_states() == case["auxiliary"]


@_cases(imperative=False)
def test_executors_give_the_recorded_results(case: dict[str, Any]) -> None:
    in_executor(case, cpu())


def in_executor(case: dict[str, Any], ctx: Context) -> None:
    """Compares all results of an executor on a context with the recorded ones."""
    symbol, inputs = _symbol(case), _inputs(case)
    aux = _arrays(case, "aux")
    values = {name: array(value, ctx, value.dtype) for name, value in inputs.items() if name not in aux}
    states = {name: array(value, ctx, value.dtype) for name, value in aux.items()}
    grads = {name: array(np.full_like(inputs[name], 9), ctx, inputs[name].dtype) for name in case["gradients"]}
    shapes = symbol.infer_shape(**{name: value.shape for name, value in inputs.items()})[1]
    kinds = symbol.infer_type(**{name: value.dtype for name, value in inputs.items()})[1]
    expected = _arrays(case, "out")
    assert shapes == [expected[str(i)].shape for i in range(len(expected))]
    assert kinds == [expected[str(i)].dtype.type for i in range(len(expected))]
    executor = symbol.bind(ctx, values, grads, "write", states)
    _compare(_numbered(executor.forward(is_train=case["is_train"])), expected, "output")
    if case["gradients"]:
        heads = _arrays(case, "head")
        executor.backward([array(heads[str(i)], ctx, heads[str(i)].dtype) if str(i) in heads else None
                           for i in range(len(expected))])
        _compare({name: grad.asnumpy() for name, grad in grads.items()}, _arrays(case, "grad"), "gradient of")
    _compare({name: state.asnumpy() for name, state in states.items()}, _arrays(case, "aux_after"), "state")


@_cases()
def test_eager_calls_give_the_recorded_results(case: dict[str, Any]) -> None:
    op, inputs = get(case["op"]), _inputs(case)
    values = {name: array(value, dtype=value.dtype) for name, value in inputs.items()}
    for name in case["gradients"]:
        values[name].attach_grad()
    args, keywords = _call(op, case, values)
    with Recording(bool(case["gradients"]), case["is_train"]):
        made = invoke(op, args, keywords)
    outs = made if isinstance(made, list) else [made]
    _compare(_numbered(outs), _arrays(case, "out"), "output")
    if case["gradients"]:
        heads = _arrays(case, "head")
        given = [array(heads[str(i)], dtype=heads[str(i)].dtype) if str(i) in heads else None
                 for i in range(len(outs))]
        live = [i for i, out in enumerate(outs) if out._entry is not None]
        backward([outs[i] for i in live], [given[i] for i in live])
        _compare({name: values[name].grad.asnumpy() for name in case["gradients"]}, _arrays(case, "grad"),
                 "gradient of")
    _compare({name: values[name].asnumpy() for name in case["aux"]}, _arrays(case, "aux_after"), "state")
    changed = _arrays(case, "in_after")
    assert set(changed) == set(case["changed_inputs"])
    kept = {name: value for name, value in inputs.items() if name not in changed and name not in case["aux"]}
    _compare({name: value.asnumpy() for name, value in values.items()}, {**kept, **changed}, "input")


@_cases(imperative=True)
def test_updates_write_to_the_weight_given_as_out(case: dict[str, Any]) -> None:
    """The new weight is written to the weight's own array if this is given as ``out``."""
    op, inputs = get(case["op"]), _inputs(case)
    values = {name: array(value, dtype=value.dtype) for name, value in inputs.items()}
    args, keywords = _call(op, case, values)
    weight = values["weight"]
    assert invoke(op, args, {**keywords, "out": weight}) is weight
    changed = {**_arrays(case, "in_after"), "weight": _arrays(case, "out")["0"]}
    _compare({name: value.asnumpy() for name, value in values.items()}, changed, "input")

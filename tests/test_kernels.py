"""Every kernel beside a reference kernel computes what that does, on all rows of its operator that it accepts.

Those of libraries that are not here are skipped: ``./run test-fast`` has them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Iterator

import numpy as np
import pytest

from opreg.backends import trials
from opreg.backends.numba import compiler
from opreg.backends.onednn.shared_library import missing
from opreg.core import generators
from opreg.core.launch import Call, Kernel, Prepared
from opreg.core.op import Op
from opreg.core.registry import get, operators
from opreg.core.spec import Spec
from opreg.ndarray import NDArray, cpu

from .rows import all_rows, chosen
from .running import TOLERANCES, Use, agree


def others(op: Op) -> list[Kernel]:
    """The kernels of an operator beside the reference that serve the host."""
    return [kernel for kernel in op.kernels[1:] if kernel.serves is None or kernel.serves(np)]


#: Operators with kernels beside the reference. Those of loops and users' operators are tested on their own.
KERNELS = {(op.name, kernel.name) for op in operators() if chosen(op.name) for kernel in others(op)
           if kernel.rule.function.__module__.startswith(("opreg.builtin", "opreg.backends"))}
ROWS = [(row, dtype) for row in all_rows() for dtype in row.dtypes or (None,) if others(get(row.op))]
#: Why a kernel may decline all that there is.
NEVER = ("no vectorised form", "nothing to compute", "is not installed", "numpy is asked for",
         "has no threads to be held")


@pytest.fixture(autouse=True)
def thresholds(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is too small for a fast kernel, what is tried is faster, and what is compiled here is kept for these
    tests alone."""
    monkeypatch.setattr("opreg.backends.onednn.convolution.LEAST", 0)
    monkeypatch.setattr("opreg.backends.onednn.matmul.SMALL", 0)
    monkeypatch.setenv("OPREG_TUNE", "1")
    monkeypatch.setattr("opreg.backends.trials.faster", lambda question, usual, other, ways: trials.Choice(other, ""))
    monkeypatch.setenv("OPREG_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "jit"))
    with compiler.use("numba" if importlib.util.find_spec("numba") else "numpy"):
        yield


def prepared(use: Use) -> Call:
    """A call of the use with arrays of its own."""
    count, shapes = len(use.op.outputs(use.attrs)), [each.shape for each in use.arrays]
    outs = use.op.infer_shapes(shapes, [None] * count, use.attrs)[1]
    kinds = use.op.infer_dtypes([each.dtype for each in use.arrays], [None] * count, use.attrs)[1]
    specs = [Spec(*each) for each in zip(outs, kinds)]
    # Products are the library's where convolutions of the same plan are.
    here = {importlib.import_module("opreg.backends.onednn.convolution").HERE: True}
    return Call(use.op, use.attrs, [np.array(each) for each in use.arrays],
                [np.zeros(spec.shape, spec.dtype) for spec in specs], ["write"] * count, np, cpu(), use.train,
                generators.generator("cpu"), specs, lambda number, shape, dtype: np.empty(shape, dtype), NDArray,
                here)


def applies(use: Use) -> bool:
    """Whether the reference kernel is that of the use: an operator of several has no expression for some."""
    return use.op.expression is None or use.op.expression(use.attrs) is not None


def computed(use: Use, kernel: Kernel) -> list[np.ndarray] | str:
    """All outputs, and inputs as they are afterwards; or why the kernel declines."""
    call = prepared(use)
    reason = None if kernel.accepts is None else kernel.accepts(call)
    if reason is not None:
        return reason
    with np.errstate(all="ignore"):
        steps, store = Prepared(call, kernel, []).steps(call.ins[len(use.op.arguments(use.attrs)):])
        for step in steps:
            step()
        if store:
            store()
    return [*call.outs, *call.ins]


def _named(row: object, dtype: str | None, number: int) -> str:
    return f"{number}-{row}-{dtype}"


@pytest.mark.parametrize("row, dtype", [
    pytest.param(row, dtype, id=_named(row, dtype, i)) for i, (row, dtype) in enumerate(ROWS)
    if row.deterministic and applies(Use.of(row, dtype))])
def test_computes_what_the_reference_does(row, dtype):
    use = Use.of(row, dtype)
    reference = use.op.kernels[0]
    expected = computed(use, reference)
    for kernel in others(use.op):
        found = computed(use, kernel)
        if isinstance(found, str):
            continue
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            agree(one, other, TOLERANCES.get(dtype), f"kernel {kernel.name}, array {i} of outputs and inputs")


@functools.cache
def _uses(name: str) -> list[Use]:
    return [Use.of(row, dtype) for row, dtype in ROWS if get(row.op) is get(name)]


@pytest.mark.parametrize("name, title", sorted(KERNELS))
def test_has_a_row(name, title):
    """Some row of the operator is one that the kernel accepts."""
    kernel = next(each for each in get(name).kernels if each.name == title)
    reasons = set()
    for use in _uses(name):
        if not applies(use) and kernel.name in ("ufuncs", "numba"):
            continue
        reason = None if kernel.accepts is None else kernel.accepts(prepared(use))
        if reason is None:
            return
        reasons.add(reason)
    if reasons and missing() and kernel.rule.function.__module__.startswith("opreg.backends.onednn"):
        pytest.skip(missing())
    of_numbers = [reason for reason in reasons if not reason.startswith("dtype int")]
    assert of_numbers and all(reason.endswith(NEVER) for reason in of_numbers), \
        f"kernel {title} of {name} declines all rows: {'; '.join(sorted(reasons))}"

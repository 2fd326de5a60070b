"""Every kernel beside a reference kernel computes what that does, on all rows of its operator that it accepts.

Those of libraries that are not here are skipped: ``./run test-fast`` has them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest

from opreg.backends.onednn.shared_library import missing
from opreg.core.launch import Kernel
from opreg.core.registry import get, operators

from .kernels import applies, called, computed, fast, others, skip_lacking
from .rows import all_rows, chosen
from .running import TOLERANCES, Use, agree

#: Operators with kernels beside the reference. Those of loops and users' operators are tested on their own.
KERNELS = {(op.name, kernel.name) for op in operators() if chosen(op.name) for kernel in others(op)
           if kernel.rule.function.__module__.startswith(("opreg.builtin", "opreg.backends"))}
ROWS = [(row, dtype) for row in all_rows() for dtype in row.dtypes or (None,) if others(get(row.op))]
#: Why a kernel may decline all that there is.
NEVER = ("no vectorised form", "nothing to compute", "is not installed", "numpy is asked for",
         "has no threads to be held")


@pytest.fixture(autouse=True)
def any_size(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is too small for a fast kernel."""
    with fast(tmp_path_factory.getbasetemp() / "jit"):
        yield


def results(use: Use, kernel: Kernel) -> list[np.ndarray] | str:
    """All outputs, and inputs as they are afterwards; or why the kernel declines."""
    call = called(use)
    reason = computed(call, kernel)
    return [*call.outs, *call.ins] if reason is None else reason


def _named(row: object, dtype: str | None, number: int) -> str:
    return f"{number}-{row}-{dtype}"


@pytest.mark.parametrize("row, dtype", [
    pytest.param(row, dtype, id=_named(row, dtype, i)) for i, (row, dtype) in enumerate(ROWS)
    if row.deterministic and applies(Use.of(row, dtype))])
def test_computes_what_the_reference_does(row, dtype):
    use = Use.of(row, dtype)
    reference = use.op.kernels[0]
    expected = results(use, reference)
    for kernel in others(use.op):
        found = results(use, kernel)
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
        reason = None if kernel.accepts is None else kernel.accepts(called(use))
        if reason is None:
            return
        reasons.add(reason)
    skip_lacking("; ".join(reasons))
    if reasons and missing() and kernel.rule.function.__module__.startswith("opreg.backends.onednn"):
        pytest.skip(missing())
    of_numbers = [reason for reason in reasons if not reason.startswith("dtype int")]
    assert of_numbers and all(reason.endswith(NEVER) for reason in of_numbers), \
        f"kernel {title} of {name} declines all rows: {'; '.join(sorted(reasons))}"

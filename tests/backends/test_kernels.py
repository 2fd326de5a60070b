"""Every kernel agrees with the reference kernel on all rows of its operator that it accepts.

Kernels of missing libraries are skipped; ``./run test-fast`` has these libraries.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from opreg.backends.onednn.shared_library import missing
from opreg.core.attrs import Schema
from opreg.core.launch import Kernel, Rank
from opreg.core.op import Op
from opreg.core.registry import get, operators
from opreg.ndarray import cpu, gpu
from tests.backends.kernels import applies, called, computed, fast, others, skip_lacking
from tests.cuda.cublaslt import installed
from tests.questions import of_each
from tests.rows import all_rows, chosen
from tests.running import TOLERANCES, Use, agree
from tests.test_architecture import ROOT, _imports

#: Operators with kernels beside the reference. Kernels of loops and users' operators are tested on their own.
KERNELS = {(op.name, kernel.name) for op in operators() if chosen(op.name) for kernel in others(op)
           if kernel.rule.function.__module__.startswith(("opreg.builtin", "opreg.backends"))}
ROWS = [(row, dtype) for row in all_rows() for dtype in row.dtypes or (None,) if others(get(row.op))]
#: Reasons why a kernel may decline all rows.
NEVER = ("no vectorised form", "nothing to compute", "is not installed", "OPREG_JIT=numpy forbids it",
         "has no threads to be held", "a call of NumPy reduces as fast")
#: Operators that loops of numba decline for every input, and the reason.
DECLINED = {"_backward_IdentityAttachKLSparseReg": "its axis is not the last",
            **dict.fromkeys(("GroupNorm", "InstanceNorm", "_backward_GroupNorm"),
                            "some of its inputs have values for groups of channels")}
#: Kernels compiled from expressions: the text is the same in float32 and float64. tests/backends/test_numba.py tests
#: each instruction, and each operator, in both.
EXPRESSIONS = "opreg.backends.numba.elementwise"


@pytest.fixture(autouse=True)
def any_size() -> Iterator[None]:
    """Lets fast kernels accept arrays of any size."""
    with fast():
        yield


def results(use: Use, kernel: Kernel) -> list[np.ndarray] | str:
    """Outputs of a kernel and its changed inputs, or its reason to decline."""
    call = called(use)
    reason = computed(call, kernel)
    return [*call.outs, *call.ins] if reason is None else reason


@of_each([(row, dtype) for row, dtype in ROWS if row.deterministic and applies(Use.of(row, dtype))],
         by=lambda case: case[0].op)
def test_a_kernel_equals_the_reference(case):
    row, dtype = case
    use = Use.of(row, dtype)
    reference = use.op.kernels[0]
    expected = results(use, reference)
    for kernel in others(use.op):
        if dtype == "float64" and "float32" in row.dtypes and kernel.rule.function.__module__ == EXPRESSIONS:
            continue
        found = results(use, kernel)
        if isinstance(found, str):
            continue
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            agree(one, other, TOLERANCES.get(dtype), f"kernel {kernel.name}, array {i} of outputs and inputs")


@functools.cache
def _uses(name: str) -> list[Use]:
    return [Use.of(row, dtype) for row, dtype in ROWS if get(row.op) is get(name)]


@of_each(sorted(KERNELS))
def test_every_kernel_has_a_row(name, title):
    """The kernel accepts at least one row of its operator."""
    kernel = next(each for each in get(name).kernels if each.name == title)
    reasons = set()
    for use in _uses(name):
        reason = None if kernel.accepts is None else kernel.accepts(called(use))
        if reason is None:
            return
        reasons.add(reason)
    skip_lacking("; ".join(reasons))
    if reasons and missing() and kernel.rule.function.__module__.startswith("opreg.backends.onednn"):
        pytest.skip(missing())
    of_numbers = [reason for reason in reasons if not reason.startswith(("dtype int", "there is no expression"))]
    never = (*NEVER, DECLINED[name]) if name in DECLINED else NEVER
    assert of_numbers and all(reason.endswith(never) for reason in of_numbers), \
        f"kernel {title} of {name} declines all rows: {'; '.join(sorted(reasons))}"


# ------------------------------------------------------------------------- which of several comes first


@functools.cache
def _imported(name: str) -> frozenset[str]:
    """These modules, and all modules that they import."""
    found = {each for each, _, now in _imports(name) if now and each.startswith(("opreg.backends.", "opreg.builtin."))}
    return frozenset(found).union(*map(_imported, found))


def _modules(kernel: Kernel) -> set[str]:
    """The modules of a kernel's function and of its parts, including the module that attached it."""
    inner = [cell.cell_contents for each in (kernel.rule.function, kernel.accepts)
             for cell in getattr(each, "__closure__", None) or ()]
    return {each.__module__ for each in (kernel.rule.function, *inner) if inspect.isroutine(each)}


def _is_decided(first: Kernel, second: Kernel) -> bool:
    """Whether one kernel comes before another, whatever a program imports first: by rank, or by attachment in one
    module or in one that imports the other's."""
    one, others = first.rule.function.__module__, _modules(second)
    return first.order < second.order or one in others.union(*map(_imported, others))


@pytest.mark.parametrize("on_gpu", [False, True])
def test_the_order_of_kernels_is_total(on_gpu):
    """The order in which a program imports modules decides nothing: every kernel answers independently of others, and
    of two kernels that accept a call one always comes first."""
    with installed() if on_gpu else contextlib.nullcontext():
        ctx = gpu(0) if on_gpu else cpu()
        for row, dtype in ROWS:
            use = Use.of(row, dtype)
            call = called(use)
            if on_gpu:
                ins, outs = [[None if each is None else ctx.backend.asarray(each, device=0) for each in arrays]
                             for arrays in (call.ins, call.outs)]
                call = called(use, ins, outs, ctx=ctx)
            accepting = [kernel for kernel in use.op.kernels[1:] if (kernel.serves is None or kernel.serves(ctx.xp))
                         and (kernel.accepts is None or kernel.accepts(call) is None)]
            for first, second in itertools.pairwise(accepting):
                assert _is_decided(first, second), (
                    f"{row}: {first.name} of {first.rule.function.__module__} and {second.name} of "
                    f"{second.rule.function.__module__}")


_FIRST = {
    "operators": "get('LeakyReLU')",
    "device": "open_device()",
    "kernels of a device": "import opreg.backends.cuda.operators; open_device()",
    "kernels of the host": "import opreg.backends.numba.loops, opreg.backends.onednn.operators.convolution",
}


@functools.cache
def _attached(first: str) -> dict[str, list[str]]:
    """Kernels of all operators, in a process that first imports a given module."""
    code = f"""
import json
from opreg.core.array_module import backend
from opreg.core.registry import get, operators
from tests.cuda.device import gpus

def open_device():
    with gpus():
        backend("gpu")

{_FIRST[first]}
get("LeakyReLU")
open_device()
print(json.dumps({{op.name: [kernel.name for kernel in op.kernels] for op in operators()}}))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.once
@pytest.mark.parametrize("first", [each for each in _FIRST if each != "operators"])
def test_the_order_of_kernels_does_not_depend_on_the_order_of_imports(first: str) -> None:
    assert _attached(first) == _attached("operators")


def test_a_kernel_of_a_program_precedes_kernels_of_back_ends_attached_later() -> None:
    op = Op("order_of_kernels", Schema([]), ("data",))
    for name, rank in (("reference", Rank.USER), ("mine", Rank.USER), ("library", Rank.LIBRARY),
                       ("compiled", Rank.COMPILED), ("own", Rank.OPERATOR), ("mine too", Rank.USER)):
        op.kernel(name, rank=rank)(lambda xp, data: data)
    op.kernel("of a device", serves=lambda xp: True, rank=Rank.COMPILED)(lambda xp, data: data)
    assert [kernel.name for kernel in op.kernels] == [
        "reference", "own", "compiled", "library", "of a device", "mine", "mine too"]

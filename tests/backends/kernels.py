"""Helpers that run one kernel of an operator, whatever others there are; sizes that count as large for a kernel;
features of the libraries on this processor."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from opreg.backends import blas, trials
from opreg.backends.numba import compiler
from opreg.backends.onednn.operators.convolution import HERE
from opreg.core import generators
from opreg.core.launch import Call, Kernel, Prepared
from opreg.core.op import Op
from opreg.core.processor import processor
from opreg.core.spec import Spec
from opreg.ndarray import cpu
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import wrap
from tests.running import Use

__all__ = ["applies", "called", "computed", "fast", "lacking", "others", "skip_lacking"]

#: Whether oneDNN may use AVX-512; with it, oneDNN has all features that the tests need.
_COMPLETE = "avx512f" in processor().features and not any(
    os.environ.get(f"{name}_MAX_CPU_ISA", "DEFAULT") not in ("", "DEFAULT") for name in ("ONEDNN", "DNNL"))


def lacking(reasons: str) -> str:
    """Reasons why kernels of oneDNN decline on a processor without AVX-512; empty on others."""
    found = None if _COMPLETE else re.search(r"oneDNN has only \S+ for it", reasons)
    return found[0] if found else ""


def skip_lacking(reasons: str | None) -> None:
    """Skips a test of a choice of oneDNN that this processor does not allow."""
    reason = lacking(reasons or "")
    if reason:
        pytest.skip(reason)


def others(op: Op) -> list[Kernel]:
    """Kernels of the operator for the host, other than the reference."""
    return [kernel for kernel in op.kernels[1:] if kernel.serves is None or kernel.serves(np)]


def applies(use: Use) -> bool:
    """Whether the reference kernel serves the use: an operator of several kernels has no expression for some uses."""
    return use.op.rules.expression is None or use.op.rules.expression(use.attrs) is not None


def called(use: Use, ins: Sequence[np.ndarray] | None = None, outs: Sequence[np.ndarray | None] | None = None,
           reqs: Sequence[str] = (), ctx: Context | None = None) -> Call:
    """A call of the use, by default with new arrays, in a plan whose convolutions oneDNN computes."""
    ctx = ctx or cpu()
    count, shapes = len(use.op.signature.outputs(use.attrs)), [each.shape for each in use.arrays]
    inferred = use.op.infer_shapes(shapes, [None] * count, use.attrs)[1]
    kinds = use.op.infer_dtypes([each.dtype for each in use.arrays], [None] * count, use.attrs)[1]
    specs = [Spec(*each) for each in zip(inferred, kinds)]
    return Call(use.op, use.attrs, [np.array(each) for each in use.arrays] if ins is None else list(ins),
                [np.zeros(spec.shape, spec.dtype) for spec in specs] if outs is None else list(outs),
                list(reqs) or ["write"] * count, ctx.xp, ctx, use.train, generators.generator(ctx.backend_name), specs,
                lambda number, shape, dtype: ctx.xp.empty(shape, dtype), wrap, {HERE: True})


def computed(call: Call, kernel: Kernel, bound: Callable[[], object] = lambda: None) -> str | None:
    """Results of a kernel for a call, new states included, or its reason to decline. ``bound`` is called before it
    runs."""
    after = [] if kernel.adds else call.redirect_adds()
    reason = None if kernel.accepts is None else kernel.accepts(call)
    if reason is not None:
        return reason
    with np.errstate(all="ignore"):
        steps, store = Prepared(call, kernel, [], after).steps(_states(call))
        bound()
        for step in steps:
            step()
        if store:
            store()
    return None


def _states(call: Call) -> list[np.ndarray]:
    first = len(call.op.signature.arguments(call.attrs))
    return [call.ins[first + state] for state in call.op.traits.states] if call.is_train else []


#: Limits above which arrays count as large, and sizes of blocks; tests lower them so that their small arrays count as
#: large. A limit that a module imports from another is listed for both.
FEW = {
    "core.threads": {"_LEAST": 16, "_MOST": 64, "_COPIED": 1},
    "core.host_memory": {"LARGE": 1},
    "elementwise.loop_runs": {"_SHORT": 2, "LONG": 4, "_SHARED": 0},
    "elementwise.tiling": {"TILE": 32, "_SHARED": 1, "_MANY": 1},
    "backends.blas": {"SMALL": 1, "SHARED": 2, "LEAST": 4, "VECTOR": 1, "_STEP": 2},
    "backends.axpy": {"_LEAST": 1},
    "backends.numba.compiler": {"_SHARED": 1},
    "backends.numba.recurrent": {"_LEAST": 1},
    "backends.numba.operators.updates": {"_STRETCH": 4},
    "backends.onednn.operators.products": {"_LEAST": 0},
    "builtin.layers.correlation": {"BLOCK": {"numpy": 256}, "NEAR": 64, "COLUMNS": 2, "LEAST_OUTS": 1},
    "builtin.layers.pooling": {"BLOCK": {"numpy": 64}, "_EACH": 1},
    "builtin.layers.rnn_layer": {"_SMALL": 1, "_NARROW": 1, "_KEPT": 0},
    "builtin.lookup.indexing": {"_PREPARED": 0},
    "builtin.matrices.dense": {"SMALL": 1},
    "builtin.optimizers.updating": {"SMALL": 1, "TILE": 8, "GATHERED": 4, "MANY": 2, "_BOUND": 2, "SHARED": 1},
    "builtin.shapes.joining": {"MANY": 1},
    "builtin.shapes.shape": {"_LARGE": 2},
    "builtin.vision.greedy": {"BLOCK": 2},
    "builtin.vision.roi": {"BLOCK": 16},
}


@contextlib.contextmanager
def fast(few: bool = False) -> Iterator[None]:
    """Lets fast kernels accept arrays of any size, and win all trials.

    With ``few`` nothing is too small for the ways of large arrays, on two threads.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opreg.backends.onednn.operators.convolution.LEAST", 0)
        patch.setattr("opreg.backends.onednn.operators.products.SMALL", 0)
        patch.setenv("OPREG_TUNE", "1")
        patch.setattr("opreg.backends.trials.faster", lambda question, usual, other, *rest, **words: trials.Choice(
            other, ""))
        if few:
            patch.setattr("opreg.core.threads.count", lambda: 2)
            for module, numbers in FEW.items():
                for name, number in numbers.items():
                    patch.setattr(f"opreg.{module}.{name}", number)
        blas._host_multiplier.cache_clear()
        try:
            with compiler.use("numba" if importlib.util.find_spec("numba") else "numpy"):
                yield
        finally:
            blas._host_multiplier.cache_clear()

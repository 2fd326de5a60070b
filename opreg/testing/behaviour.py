"""Checks that an operator runs, repeats its results, and leaves its inputs and others' memory alone."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import numpy as np

from opreg.ndarray import array, cpu

from ..core.spec import is_floating, is_numpy_float
from ..errors import NotDifferentiableError, OpError
from .comparison import disagreement
from .contract import CheckSkipped, Failed, check, first_line, output_gradients
from .foreign import ForeignUse
from .subjects import TensorUse
from .uses import Subject, Use, heads

__all__ = ["runs"]


# ---------------------------------------------------------------------------------------------------- randomness


@check("runs")
def runs(use: Subject) -> None:
    """The operator runs on these inputs."""
    use.run()


@check("backward", ())
def runs_backward(use: Subject) -> str | None:
    """Backward runs, and reads only arrays that the operator declared."""
    outs = use.run().outs
    if not use.wanted or not any(is_floating(out.dtype) for out in outs):
        raise CheckSkipped("no floating input, or no floating output")
    try:
        use.run(heads(use, outs), grads=True)
    except NotDifferentiableError as error:
        raise CheckSkipped(f"it has no gradient: {first_line(error)}") from None
    except OpError as error:
        if "is not available in backward" in str(error):
            raise Failed(first_line(error), _declare(str(error))) from None
        raise
    return None


def _declare(text: str) -> str:
    """The change of ``declare_backward_dependency`` that lets backward read the array named in an error."""
    if "out_grad" in text:
        return "super().__init__(need_top_grad=True), or return out_grad too from declare_backward_dependency"
    what = "in_data" if "in_data" in text else "out_data"
    return f"return {what} too from declare_backward_dependency: [*out_grad, *in_data, *out_data]"


@check("deterministic", ("written",))
def deterministic(use: Subject) -> str | None:
    """The same inputs give the same outputs; random values come from the generators that ``mx.random.seed`` seeds."""

    def repeats(stochastic: bool, seed: Callable[[], None] = lambda: None) -> bool:
        runs = []
        use.stochastic = stochastic
        for _ in range(3):
            seed()
            runs.append(use.run().outs)
        return all(np.array_equal(out, want, equal_nan=is_numpy_float(out.dtype))
                   for outs in runs[1:] for out, want in zip(outs, runs[0]))

    if repeats(False):
        return None
    if repeats(True):
        return f"draws random numbers: the same for the same {use.seeder}"
    if repeats(False, _seed_others):
        raise Failed(f"runs with the same inputs and the same {use.seeder} differ: it draws from NumPy's or Python's "
                     "own generator", f"draw with {use.generator}")
    raise Failed("runs with the same inputs differ, even with the same seeds: it stores something between calls, or "
                 "draws from a generator of its own", "store it in an auxiliary state (a Parameter of a Cell), or draw "
                 f"with {use.generator}")


def _seed_others() -> None:
    np.random.seed(1)  # noqa: NPY002  users draw from this generator
    random.seed(1)


# ---------------------------------------------------------------------------------------------------- memory


@check("inputs")
def inputs_stay(use: Subject) -> None:
    """Running leaves inputs and output gradients unchanged."""
    out_grads = output_gradients(use)
    sent = None if out_grads is None else [None if g is None else g.copy() for g in out_grads]
    moved = ({*use.op.traits.mutates} if isinstance(use, Use) else set())
    runs = [("forward", use.run())]
    if use.wanted:
        with contextlib.suppress(NotDifferentiableError):
            runs.append(("backward", use.run(out_grads, grads=True)))
    for way, result in runs:
        for i, (before, after) in list(enumerate(zip(use.arrays, result.after)))[:use.count]:
            if i not in moved and not np.array_equal(before, after, equal_nan=is_numpy_float(before.dtype)):
                raise Failed(f"{way} changes the input {use.names[i]!r}: {disagreement(after, before, 0.0)}",
                             f"work on a copy: {use.names[i]} = {use.names[i]}.copy()")
    for g, sent_copy in zip(out_grads or (), sent or ()):
        if g is not None and sent_copy is not None and not np.array_equal(g, sent_copy):
            raise Failed("backward changes an output gradient in place", "work on a copy of it")


@check("own memory", ())
def own_memory(use: Subject) -> None:
    """No output shares memory with an input or with another output."""
    if isinstance(use, TensorUse):
        raise CheckSkipped("tensors cannot be changed in place")
    if isinstance(use, ForeignUse):
        raise CheckSkipped(f"functions of {use.library} may return views")
    values = [array(value, None, value.dtype) for value in use.arrays]
    outs = use.invoke(values, cpu())
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    for i, out in enumerate(outs):
        for name, value in zip(use.names, values):
            if np.may_share_memory(out._data, value._data):
                raise Failed(f"output {i} shares memory with the input {name!r}: a write to one changes both",
                             f"return a copy: {name}.copy()")
        for j in range(i):
            if np.may_share_memory(out._data, outs[j]._data):
                raise Failed(f"outputs {j} and {i} share memory: a write to one changes both", "return a copy")

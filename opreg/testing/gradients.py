"""The contract of gradients: those by central differences, first and second order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.spec import is_floating, is_numpy_float
from ..errors import NotDifferentiableError
from .comparison import Slope, position, worst_slope
from .contract import Failed, Skipped, arriving, check, differentiated, first_line, name_of_body, name_of_top, place_of
from .subjects import TensorUse
from .uses import Heads, Subject, Use

__all__: list[str] = []


def _wide(use: Subject) -> tuple[Subject, bool]:
    """The same in float64 where it can be, and whether it is computed in less all the same."""
    try:
        wide = use.having([each.astype(np.float32) if is_floating(each.dtype) and not is_numpy_float(each.dtype)
                           else each for each in use.arrays]).cast(np.float64)  # bfloat16 is none of NumPy's own
        outs = [out for out in wide.run().outs if is_numpy_float(out.dtype)]
    except Exception:  # whatever keeps it from float64, its own dtype is what it is made for
        return use, True
    with np.errstate(all="ignore"):
        coarse = all(np.array_equal(out.astype(np.float32), out, equal_nan=True) for out in outs)
    return wide, any(out.dtype.itemsize < 8 for out in outs) or (coarse and not _integral(outs))


def _integral(outs: Sequence[np.ndarray]) -> bool:
    """Whether all numbers are so round that they tell nothing about how they were computed."""
    with np.errstate(all="ignore"):
        return all(np.array_equal(out * 1024, np.round(out * 1024), equal_nan=True) for out in outs)


def _weighed(use: Subject, given: Heads, arrays: Sequence[np.ndarray]) -> float:
    outs = use.having(arrays).run().outs
    return float(sum((out.astype(np.float64) * g).sum() for out, g in zip(outs, given or ()) if g is not None))


def _jittered(use: Subject) -> Subject:
    """The same a little aside, where it has a derivative if it had none by chance."""
    rng = np.random.default_rng(5)
    return use.having([each + (0.01 * rng.standard_normal(each.shape) * (0.1 + np.abs(each))).astype(each.dtype)
                       if is_numpy_float(each.dtype) else each for each in use.arrays])


def _off(use: Subject, coarse: bool, ones: bool = False) -> tuple[int, Slope, list[Slope]] | None:
    """An input whose gradient is not that by central differences, with its worst element and others.

    The gradients from above are random numbers, or ``ones``, with which what comes is easier to read.
    """
    given, result = differentiated(use)
    if ones:
        given = [None if g is None else np.ones_like(g) for g in given or ()]
        result = use.run(given, grads=True)
    for i in use.wanted:
        base = use.arrays[i]
        gradient = result.grads.get(i)
        if gradient is None:
            continue

        def total(moved: np.ndarray, i: int = i) -> float:
            return _weighed(use, given, [*use.arrays[:i], moved, *use.arrays[i + 1:]])

        worst, every = worst_slope(total, base, gradient, coarse or base.dtype.itemsize < 8, i)
        if worst is not None:
            return i, worst, every
    return None


@check("gradient")
def gradient(use: Subject) -> str | None:
    """Gradients are those by central differences in float64, in random directions."""
    if use.loss:
        raise Skipped("a loss: its gradient is not that of what it returns")
    given = arriving(use)
    if not use.wanted or all(g is None for g in given or ()):
        raise Skipped("no floating input, or no floating output")
    use.run(given, grads=True)
    wide, coarse = _wide(use)
    if not all(np.isfinite(each).all() for each in (*wide.arrays, *wide.run().outs) if is_numpy_float(each.dtype)):
        raise Skipped("a number among its inputs or outputs is infinite or none: give it others")
    off = _off(wide, coarse)
    if off is None or _off(_jittered(wide), coarse) is None:  # steps and corners have no derivative
        return "in float32, which something inside computes in" if coarse else None
    if len(wide.arrays) > wide.count and wide.train:
        wide = wide.having(wide.arrays)
        wide.train = False
        if _off(wide, coarse) is None:
            return "with its states at rest: when it trains they move with its inputs, which its gradient leaves out"
    plain = _off(wide, coarse, ones=True)
    i, worst, every = plain or off
    above = "" if plain else ", where those from above are others than one"
    raise Failed(f"the gradient of {use.names[i]!r}{position(worst.flat, use.arrays[i].shape)} is {worst.exact:.6g}, "
                 f"central differences say {worst.numeric:.6g}{above}", _mend(wide, i, every))


def _factor(every: Sequence[Slope]) -> float | None:
    """How many times too large all elements are, where they agree in that."""
    pairs = np.array([(each.exact, each.numeric) for each in every])
    pairs = pairs[np.abs(pairs[:, 1]) > 1e-6 + 1e-3 * np.abs(pairs[:, 1]).max()]
    if len(pairs) < 2:
        return None
    ratios = pairs[:, 0] / pairs[:, 1]
    return float(ratios[0]) if np.ptp(ratios) <= 1e-3 * abs(ratios[0]) and abs(ratios[0]) > 1e-6 else None


def _mend(use: Subject, i: int, every: Sequence[Slope]) -> str:
    """What to write instead."""
    name, place = use.names[i], place_of(use, i)
    if all(each.exact == 0 for each in every):
        return f"nothing arrives at {name!r}: {place} is never computed"
    given = arriving(use) or []
    doubled = [None if g is None else 2 * g for g in given]
    try:
        once, twice = use.run(given, grads=True).grads[i], use.run(doubled, grads=True).grads[i]
    except Exception:
        once = twice = np.zeros(0)
    if once.size and np.array_equal(once, twice):
        return f"multiply by the gradient from above: {place} has to be {name_of_top(use)} * …"
    factor = _factor(every)
    if factor is not None:
        return f"{place}: multiply it by {1 / factor:.4g}, all of it is {factor:.4g} times what it should be"
    wrong = sum(abs(each.exact - each.numeric) > 1e-4 * max(1e-3, abs(each.exact), abs(each.numeric))
                for each in every)
    return f"{place}: {wrong} of the {len(every)} elements that were looked at are wrong" + (
        f". With traced = True and without a gradient of its own it follows from {name_of_body(use)}"
        if isinstance(use, Use) and use.op.op_type else "")


@check("second order")
def second_order(use: Subject) -> str | None:
    """The gradient of the gradient is that by central differences, where there is one."""
    if use.loss:
        raise Skipped("a loss: its gradient is not that of what it returns")
    wide, coarse = _wide(use)
    given = arriving(wide)
    wanted = [i for i in wide.wanted if not (isinstance(wide, TensorUse) and i >= len(wide.places))]
    if not wanted or all(g is None for g in given or ()):
        raise Skipped("no floating input, or no floating output")
    if coarse or any(wide.arrays[i].dtype.itemsize < 8 for i in wanted):
        raise Skipped("it does not compute in float64, and differences of differences need it")
    wide.run(given, grads=True)
    if _off(wide, coarse) is not None:
        raise Skipped("the first is not right, or has no derivative here")
    rng = np.random.default_rng(2)
    weights = {i: rng.standard_normal(wide.arrays[i].shape) for i in wanted}
    try:
        found = wide.second(given, weights)
    except NotDifferentiableError as error:
        raise Skipped(f"refused: {first_line(error)}") from None
    for i in wanted:
        if i not in found:
            continue

        def total(moved: np.ndarray, i: int = i) -> float:
            grads = wide.having([*wide.arrays[:i], moved, *wide.arrays[i + 1:]]).run(given, grads=True).grads
            return float(sum((grads[j] * weight).sum() for j, weight in weights.items()))

        worst, _ = worst_slope(total, wide.arrays[i], found[i], coarse, i)
        if worst is not None and abs(worst.numeric) > 1e6 * max(1.0, abs(worst.exact)):
            raise Skipped("the gradient makes a jump here")
        if worst is not None:
            raise Failed(f"the second derivative in {wide.names[i]!r}{position(worst.flat, wide.arrays[i].shape)} is "
                         f"{worst.exact:.6g}, central differences of the gradient say {worst.numeric:.6g}",
                         "write the gradient in operators of what it is given; numbers that were taken out (asnumpy, "
                         "detach, BlockGrad) count as constants")
    return None

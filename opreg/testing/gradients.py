"""The contract of gradients: those by central differences, first and second order."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray import NDArray, array, cpu
from opreg.ndarray.autograd import jvp

from ..core.mode import Recording
from ..core.spec import is_floating, is_numpy_float
from ..errors import NotDifferentiableError
from .comparison import Slope, disagreement, position, worst_slope
from .contract import Failed, Skipped, arriving, check, differentiated, first_line, name_of_body, name_of_top, place_of
from .subjects import TensorUse
from .uses import Heads, Subject, Use

__all__ = ["NOT_LOOKED_AT", "whole_numbers"]

#: How it begins what is said where inputs have no gradient.
NOT_LOOKED_AT = "no gradient was looked at: "
#: Factor that makes values of float32 fall between two values of float32.
_ASIDE = 1 + 2.0 ** -40


def whole_numbers(use: Subject) -> str:
    """Kind of inputs that have no gradient, and the values to give instead."""
    kinds = sorted({each.dtype.name for each in use.arrays[:use.count]})
    return f"the inputs are {', '.join(kinds)}, give floating numbers"


def _wide(use: Subject) -> tuple[Subject, bool]:
    """The same in float64 where it can be, and whether it is computed in less all the same."""
    try:
        wide = use.having([each.astype(np.float32) if is_floating(each.dtype) and not is_numpy_float(each.dtype)
                           else each for each in use.arrays]).cast(np.float64)  # bfloat16 is none of NumPy's own
        outs = [out for out in wide.run().outs if is_numpy_float(out.dtype)]
    except Exception:  # whatever keeps it from float64, its own dtype is what it is made for
        return use, True
    coarse = _in_float32(outs)
    if coarse:  # or it only moves numbers that float32 holds: those that it does not hold tell
        with contextlib.suppress(Exception):
            aside = wide.having([each * _ASIDE if is_numpy_float(each.dtype) else each for each in wide.arrays])
            coarse = _in_float32([out for out in aside.run().outs if is_numpy_float(out.dtype)])
    return wide, any(out.dtype.itemsize < 8 for out in outs) or (coarse and not _integral(outs))


def _in_float32(outs: Sequence[np.ndarray]) -> bool:
    """Whether float32 holds all elements."""
    with np.errstate(all="ignore"):
        return all(np.array_equal(out.astype(np.float32), out, equal_nan=True) for out in outs)


def _integral(outs: Sequence[np.ndarray]) -> bool:
    """Whether all elements are so round that they tell nothing about how they were computed."""
    with np.errstate(all="ignore"):
        return all(np.array_equal(out * 1024, np.round(out * 1024), equal_nan=True) for out in outs)


def _weighed(use: Subject, given: Heads, arrays: Sequence[np.ndarray]) -> float:
    outs = use.having(arrays).run().outs
    for i, (out, g) in enumerate(zip(outs, given or ())):
        if g is not None and out.shape != g.shape:
            raise Skipped(f"output {i} has another shape when numbers move a little: give numbers where it stays")
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


def _resting(wide: Subject, coarse: bool) -> Subject | None:
    """The same with its states at rest, where its gradient is right; None where it is not then, or has none."""
    if len(wide.arrays) == wide.count or not wide.train:
        return None
    rest = wide.in_mode(False)
    return rest if _off(rest, coarse) is None else None


def _look_at_rest(wide: Subject, coarse: bool) -> None:
    """Fail where its gradient is wrong when it is not in training, and another than in training is right."""
    rest = wide.in_mode(False)
    if not (isinstance(wide, Use) and wide.op.where is not None and wide.train) or not any(
            map(disagreement, wide.run().outs, rest.run().outs)):
        return
    off = _off(rest, coarse)
    if off is not None and _off(_jittered(rest), coarse) is not None:
        i, worst, _ = off
        raise Failed(f"where nothing trains the gradient of {wide.names[i]!r}"
                     f"{position(worst.flat, wide.arrays[i].shape)} is {worst.exact:.6g}, central differences say "
                     f"{worst.numeric:.6g}", f"{place_of(wide, i)} has to mind is_train, as {name_of_body(wide)} does")


#: Note about gradients that leave out how states move.
_AT_REST = "with its states at rest: when it trains they move with its inputs, which its gradient leaves out"


@check("gradient")
def gradient(use: Subject) -> str | None:
    """Gradients are those by central differences in float64, in random directions, and numbers everywhere."""
    if use.loss:
        raise Skipped("a loss: its gradient is not that of what it returns")
    if use.count and not any(is_floating(each.dtype) for each in use.arrays):
        raise Skipped(NOT_LOOKED_AT + whole_numbers(use))
    given = arriving(use)
    if not use.wanted or all(g is None for g in given or ()):
        raise Skipped("no floating input, or no floating output")
    use.run(given, grads=True)
    wide, coarse = _wide(use)
    if not all(np.isfinite(each).all() for each in (*wide.arrays, *wide.run().outs) if is_numpy_float(each.dtype)):
        raise Skipped("a number among its inputs or outputs is infinite or none: give it others")
    for i, found in differentiated(wide)[1].grads.items():
        if np.isnan(found).any():
            place = position(int(np.argmax(np.isnan(found))), found.shape)
            raise Failed(f"the gradient of {use.names[i]!r}{place} is nan, where inputs and outputs are numbers",
                         f"{place_of(use, i)}: give it a number there, as mx.nd.where(x == 0, 0, …) does for 0 / 0")
        if np.isinf(found).any():
            raise Skipped(f"the gradient of {use.names[i]!r} is infinite here: give it other numbers")
    off = _off(wide, coarse)
    if off is None or _off(_jittered(wide), coarse) is None:  # steps and corners have no derivative
        _look_at_rest(wide, coarse)
        return "in float32, which something inside computes in" if coarse else None
    if _resting(wide, coarse) is not None:
        return _AT_REST
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
    """The expression to write instead."""
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


@check("second order", ("backward", "written", "deterministic", "gradient"))
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
    rest = None
    if _off(wide, coarse) is not None:
        rest = _resting(wide, coarse)
        if rest is None:
            raise Skipped("the first has no derivative here")
        wide = rest
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
    if rest is not None:
        return _AT_REST
    return None if any(each.any() for each in found.values()) else "it is zero: the function is linear here"


@check("directions")
def directions(use: Subject) -> None:
    """Its rule for directions gives the derivative along one by central differences."""
    if not isinstance(use, Use) or use.op.where is None or use.op.rules.jvp is None:
        raise Skipped("it has no rule for directions")
    wide, coarse = _wide(use)
    if coarse or use.stochastic or not wide.wanted:
        raise Skipped("it draws random numbers" if use.stochastic else "it does not compute in float64")
    rng = np.random.default_rng(4)
    moves = {i: rng.standard_normal(wide.arrays[i].shape) for i in wide.wanted}
    values = [array(each, None, each.dtype) for each in wide.arrays]

    def outputs(*moved: NDArray) -> list[NDArray]:
        given = list(values)
        for i, each in zip(moves, moved):
            given[i] = each
        outs = wide.invoke(given, cpu())
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        return [out for out in outs if is_numpy_float(np.dtype(out.dtype))]

    with Recording(False, wide.train):
        _, along = jvp(outputs, [values[i] for i in moves], [array(each, None, each.dtype) for each in moves.values()])
    for i, found in enumerate(along if isinstance(along, (list, tuple)) else [along]):
        weight = rng.standard_normal(found.shape)

        def total(step: np.ndarray, i: int = i, weight: np.ndarray = weight) -> float:
            arrays = [each + step * moves[j] if j in moves else each for j, each in enumerate(wide.arrays)]
            outs = [out for out in wide.having(arrays).run().outs if is_numpy_float(out.dtype)]
            return float((outs[i] * weight).sum())

        worst, _ = worst_slope(total, np.zeros(()), np.asarray((found.asnumpy() * weight).sum()), coarse)
        if worst is not None:
            raise Failed(f"along a direction of its inputs the derivative of output {i}, weighed by random numbers, is "
                         f"{worst.exact:.6g}, central differences say {worst.numeric:.6g}",
                         "the jvp rule returns for each output the sum over inputs of its derivative times t")


# ---------------------------------------------------------------------------------------------------- attributes


@check("attributes", ("backward", "written", "deterministic", "gradient"))
def attributes(use: Subject) -> str | None:
    """With another value of an attribute it is another: nothing is kept of the one before, gradients follow."""
    if not isinstance(use, Use) or use.op.where is None:
        raise Skipped("it has none that are registered" if not isinstance(use, Use) else "it is built in")
    looked = []
    for field in use.op.signature.schema.fields:
        value = use.given.get(field.name, field.default)
        other = None if field.name in (use.op.signature.variadic, "need_top_grad") else _another(field.kind, value)
        if other is None:
            continue
        each = Use(use.op, use.arrays, {**use.given, field.name: other}, use.train)
        each.stochastic = use.stochastic
        try:
            each.run()
        except Exception:  # it refuses the value
            continue
        _look_for_kept(use, each, field.name, value, other)
        _look_at_gradient(each, f"{field.name}={other!r}", field.name)
        looked.append(f"{field.name}={other!r}")
    if not looked:
        raise Skipped("it has none that could be given otherwise")
    return ", ".join(looked)


def _another(kind: Any, value: Any) -> Any:
    """Another value of an attribute; None where none is known."""
    if typing.get_origin(kind) is Literal:
        return next((each for each in typing.get_args(kind) if each != value), None)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float) and np.isfinite(value):
        return value / 2 if 0 < value < 1 else value * 1.5 + 0.25
    return None


def _look_for_kept(use: Use, other: Use, name: str, value: object, changed: object) -> None:
    """Fail where the value before decides, as long as the inputs have a shape that was seen with it.

    Its results for rows do not depend on how many there are, and the attribute decides where it was first.
    """
    def repeated(each: Use, times: int) -> list[np.ndarray]:
        arrays = [np.concatenate([a] * times) if i < each.count and a.ndim and len(a) == rows else a
                  for i, a in enumerate(each.arrays)]
        return [out[:rows] for out in each.having(arrays).run().outs if out.ndim]

    if any(map(disagreement, use.run().outs, other.run().outs)) or not use.arrays or not use.arrays[0].ndim:
        return
    rows = len(use.arrays[0])
    try:
        new, first, second = repeated(other, 3), repeated(use, 5), repeated(use, 7)
    except Exception:  # not made for more rows
        return
    if any(map(disagreement, new, first)) and not any(map(disagreement, first, second)):
        raise Failed(f"with {name}={changed!r} it gives what it gave with {name}={value!r} before, for inputs of a "
                     "shape that it has seen", f"make {name} part of the key that results are kept by, or keep nothing "
                                               "outside of the call")


def _look_at_gradient(use: Use, title: str, name: str) -> None:
    """Fail where the gradient is not that by central differences."""
    given, result = differentiated(use)
    if use.loss or not result.grads or all(g is None for g in given or ()):
        return
    wide, coarse = _wide(use)
    outs = [*wide.arrays, *wide.run().outs, *differentiated(wide)[1].grads.values()]
    if not all(np.isfinite(each).all() for each in outs if is_numpy_float(each.dtype)):
        return
    off = _off(wide, coarse)
    if off is None or _off(_jittered(wide), coarse) is None or _resting(wide, coarse) is not None:
        return
    i, worst, _ = off
    raise Failed(f"with {title} the gradient of {use.names[i]!r}{position(worst.flat, use.arrays[i].shape)} is "
                 f"{worst.exact:.6g}, central differences say {worst.numeric:.6g}",
                 f"{place_of(use, i)} has to read {name}")

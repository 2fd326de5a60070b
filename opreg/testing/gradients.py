"""Checks of first and second derivatives against central differences."""

from __future__ import annotations

import contextlib
import enum
import typing
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray import NDArray, array, cpu
from opreg.ndarray.autograd import jvp

from ..core.mode import Recording
from ..core.spec import is_floating, is_numpy_float
from ..errors import NotDifferentiableError
from . import behaviour  # noqa: F401  its checks come first
from .comparison import Slope, disagreement, position, worst_slope
from .contract import (
    CheckSkipped,
    Failed,
    check,
    first_line,
    name_of_body,
    name_of_top,
    output_gradients,
    place_of,
    run_with_gradients,
)
from .uses import Heads, Subject, Use

__all__ = ["NOT_LOOKED_AT", "integer_dtypes"]

#: The first words of the reason where no input is floating, so that no gradient is checked.
NOT_LOOKED_AT = "no gradient was looked at: "
#: Factor that moves float32 values between two neighbours in float32.
_ASIDE = 1 + 2.0 ** -40


def integer_dtypes(use: Subject) -> str:
    """The dtypes of inputs that have no gradient, and a hint to give floating values."""
    kinds = sorted({value.dtype.name for value in use.arrays[:use.count]})
    return f"the inputs are {', '.join(kinds)}, give floating numbers"


def _subject_in_float64(use: Subject) -> tuple[Subject, bool]:
    """The subject in float64 if it runs there, and whether some part of it computes in less precision."""
    try:
        wide = use.on_arrays([each.astype(np.float32) if is_floating(each.dtype) and not is_numpy_float(each.dtype)
                              else each for each in use.arrays]).cast(np.float64)  # NumPy cannot cast bfloat16 to it
        outs = [out for out in wide.run().outs if is_numpy_float(out.dtype)]
    except Exception:  # it does not run in float64, so its own dtype is checked
        return use, True
    coarse = _fits_float32(outs)
    if coarse:  # a copy of float32 values looks the same: values between those of float32 decide
        with contextlib.suppress(Exception):
            neighbour = wide.on_arrays([
                value * _ASIDE if is_numpy_float(value.dtype) else value for value in wide.arrays])
            coarse = _fits_float32([out for out in neighbour.run().outs if is_numpy_float(out.dtype)])
    return wide, any(out.dtype.itemsize < 8 for out in outs) or (coarse and not _integral(outs))


def _fits_float32(outs: Sequence[np.ndarray]) -> bool:
    """Whether float32 represents all outputs exactly."""
    with np.errstate(all="ignore"):
        return all(np.array_equal(out.astype(np.float32), out, equal_nan=True) for out in outs)


def _integral(outs: Sequence[np.ndarray]) -> bool:
    """Whether all outputs are multiples of 1/1024, so that they do not tell the precision of the computation."""
    with np.errstate(all="ignore"):
        return all(np.array_equal(out * 1024, np.round(out * 1024), equal_nan=True) for out in outs)


def _weighted_sum(use: Subject, out_grads: Heads, arrays: Sequence[np.ndarray]) -> float:
    outs = use.on_arrays(arrays).run().outs
    for i, (out, g) in enumerate(zip(outs, out_grads or ())):
        if g is not None and out.shape != g.shape:
            raise CheckSkipped(f"output {i} changes its shape when inputs move a little: give inputs where it does not")
    return float(sum((out.astype(np.float64) * g).sum() for out, g in zip(outs, out_grads or ()) if g is not None))


def _move_inputs(use: Subject) -> Subject:
    """The same subject at slightly moved inputs, away from a point without a derivative."""
    rng = np.random.default_rng(5)
    return use.on_arrays([each + (0.01 * rng.standard_normal(each.shape) * (0.1 + np.abs(each))).astype(each.dtype)
                          if is_numpy_float(each.dtype) else each for each in use.arrays])


def _find_disagreement(use: Subject, coarse: bool, ones: bool = False) -> tuple[int, Slope, list[Slope]] | None:
    """The first input whose gradient disagrees with central differences, its worst element, and the elements measured.

    Output gradients are random, or ``ones``, which make the numbers of a report easier to read.
    """
    out_grads, result = run_with_gradients(use)
    if ones:
        out_grads = [None if g is None else np.ones_like(g) for g in out_grads or ()]
        result = use.run(out_grads, grads=True)
    for i in use.wanted:
        base = use.arrays[i]
        gradient = result.grads.get(i)
        if gradient is None:
            continue

        def total(moved: np.ndarray, i: int = i) -> float:
            return _weighted_sum(use, out_grads, [*use.arrays[:i], moved, *use.arrays[i + 1:]])

        worst, every = worst_slope(total, base, gradient, coarse or base.dtype.itemsize < 8, i)
        if worst is not None:
            return i, worst, every
    return None


def _inference(wide: Subject, coarse: bool) -> Subject | None:
    """The subject outside of training, if its gradient is right there; None otherwise."""
    if len(wide.arrays) == wide.count or not wide.train:
        return None
    inference = wide.in_mode(False)
    return inference if _find_disagreement(inference, coarse) is None else None


def _check_inference_gradient(wide: Subject, coarse: bool) -> None:
    """Fail where the outputs outside of training differ from those in training, and the gradient there is wrong."""
    inference = wide.in_mode(False)
    if not (isinstance(wide, Use) and wide.op.where is not None and wide.train) or not any(
            map(disagreement, wide.run().outs, inference.run().outs)):
        return
    off = _find_disagreement(inference, coarse)
    if off is not None and _find_disagreement(_move_inputs(inference), coarse) is not None:
        i, worst, _ = off
        raise Failed(f"outside of training the gradient of {wide.names[i]!r}"
                     f"{position(worst.flat, wide.arrays[i].shape)} is {worst.exact:.6g}, central differences say "
                     f"{worst.numeric:.6g}",
                     f"{place_of(wide, i)} has to depend on is_train, as {name_of_body(wide)} does")


#: Note for a subject whose gradient is right only outside of training.
_INFERENCE_ONLY = ("outside of training: the gradient leaves out that in training the states change with "
                   "the inputs")


@check("gradient")
def gradient(use: Subject) -> str | None:
    """Gradients agree with central differences in float64, along random directions, and are never NaN."""
    if use.loss:
        raise CheckSkipped("a loss: its gradient is not the derivative of its output")
    if use.count and not any(is_floating(value.dtype) for value in use.arrays):
        raise CheckSkipped(NOT_LOOKED_AT + integer_dtypes(use))
    out_grads = output_gradients(use)
    if not use.wanted or all(g is None for g in out_grads or ()):
        raise CheckSkipped("no floating input, or no floating output")
    use.run(out_grads, grads=True)
    wide, coarse = _subject_in_float64(use)
    if not all(np.isfinite(value).all() for value in (*wide.arrays, *wide.run().outs) if is_numpy_float(value.dtype)):
        raise CheckSkipped("an input or output is infinite or NaN: give it other values")
    for out in wide.run().outs:
        if is_floating(out.dtype) and not is_numpy_float(out.dtype):
            raise CheckSkipped(f"an output is {out.dtype}, which has too few digits for central differences")
    for i, grad in run_with_gradients(wide)[1].grads.items():
        if np.isnan(grad).any():
            place = position(int(np.argmax(np.isnan(grad))), grad.shape)
            raise Failed(f"the gradient of {use.names[i]!r}{place} is nan, where inputs and outputs are finite",
                         f"{place_of(use, i)}: give it a number there, as mx.nd.where(x == 0, 0, …) does for 0 / 0")
        if np.isinf(grad).any():
            raise CheckSkipped(f"the gradient of {use.names[i]!r} is infinite here: give it other values")
    off = _find_disagreement(wide, coarse)
    if off is None or _find_disagreement(_move_inputs(wide), coarse) is None:  # steps and corners have no derivative
        _check_inference_gradient(wide, coarse)
        return "in float32, since some part computes in it" if coarse else None
    if _inference(wide, coarse) is not None:
        return _INFERENCE_ONLY
    plain = _find_disagreement(wide, coarse, ones=True)
    i, worst, every = plain or off
    above = "" if plain else ", for output gradients other than one"
    raise Failed(f"the gradient of {use.names[i]!r}{position(worst.flat, use.arrays[i].shape)} is {worst.exact:.6g}, "
                 f"central differences say {worst.numeric:.6g}{above}", _mend(wide, i, every))


def _factor(every: Sequence[Slope]) -> float | None:
    """The factor by which all elements are too large, if it is one; else None."""
    pairs = np.array([(direction.exact, direction.numeric) for direction in every])
    pairs = pairs[np.abs(pairs[:, 1]) > 1e-6 + 1e-3 * np.abs(pairs[:, 1]).max()]
    if len(pairs) < 2:
        return None
    ratios = pairs[:, 0] / pairs[:, 1]
    return float(ratios[0]) if np.ptp(ratios) <= 1e-3 * abs(ratios[0]) and abs(ratios[0]) > 1e-6 else None


def _mend(use: Subject, i: int, every: Sequence[Slope]) -> str:
    """The change of the gradient rule that the report suggests."""
    name, place = use.names[i], place_of(use, i)
    if all(direction.exact == 0 for direction in every):
        return f"the gradient of {name!r} is all zeros: {place} is never computed"
    out_grads = output_gradients(use) or []
    doubled = [None if g is None else 2 * g for g in out_grads]
    try:
        once, twice = use.run(out_grads, grads=True).grads[i], use.run(doubled, grads=True).grads[i]
    except Exception:
        once = twice = np.zeros(0)
    if once.size and np.array_equal(once, twice):
        return f"multiply by the output gradient: {place} has to be {name_of_top(use)} * …"
    factor = _factor(every)
    if factor is not None:
        return f"{place}: multiply it by {1 / factor:.4g}, all of it is {factor:.4g} times the right value"
    wrong = sum(abs(each.exact - each.numeric) > 1e-4 * max(1e-3, abs(each.exact), abs(each.numeric))
                for each in every)
    return f"{place}: {wrong} of the {len(every)} checked elements are wrong" + (
        f". With traced = True the gradient can be left out: it is derived from {name_of_body(use)}"
        if isinstance(use, Use) and use.op.op_type else "")


@check("second order", ("backward", "written", "deterministic", "gradient"))
def second_order(use: Subject) -> str | None:
    """Second derivatives agree with central differences of the gradient."""
    if use.loss:
        raise CheckSkipped("a loss: its gradient is not the derivative of its output")
    wide, coarse = _subject_in_float64(use)
    out_grads = output_gradients(wide)
    floating = [i for i in wide.wanted if i < wide.argument_count]
    if not floating or all(g is None for g in out_grads or ()):
        raise CheckSkipped("no floating input, or no floating output")
    if coarse or any(wide.arrays[i].dtype.itemsize < 8 for i in floating):
        raise CheckSkipped("it does not compute in float64, which central differences need")
    wide.run(out_grads, grads=True)
    remaining = None
    if _find_disagreement(wide, coarse) is not None:
        remaining = _inference(wide, coarse)
        if remaining is None:
            raise CheckSkipped("the gradient has no derivative here")
        wide = remaining
    rng = np.random.default_rng(2)
    weights = {i: rng.standard_normal(wide.arrays[i].shape) for i in floating}
    try:
        seconds = wide.second(out_grads, weights)
    except NotDifferentiableError as error:
        raise CheckSkipped(f"refused: {first_line(error)}") from None
    for i in floating:
        if i not in seconds:
            continue

        def total(moved: np.ndarray, i: int = i) -> float:
            grads = wide.on_arrays([*wide.arrays[:i], moved, *wide.arrays[i + 1:]]).run(out_grads, grads=True).grads
            return float(sum((grads[j] * weight).sum() for j, weight in weights.items()))

        worst, _ = worst_slope(total, wide.arrays[i], seconds[i], coarse, i)
        if worst is not None and abs(worst.numeric) > 1e6 * max(1.0, abs(worst.exact)):
            raise CheckSkipped("the gradient is discontinuous here")
        if worst is not None:
            raise Failed(f"the second derivative in {wide.names[i]!r}{position(worst.flat, wide.arrays[i].shape)} is "
                         f"{worst.exact:.6g}, central differences of the gradient say {worst.numeric:.6g}",
                         wide.second_order_change)
    if remaining is not None:
        return _INFERENCE_ONLY
    return None if any(each.any() for each in seconds.values()) else "it is zero: the function is linear here"


@check("directions")
def directions(use: Subject) -> None:
    """The jvp rule agrees with central differences along a random direction."""
    if not isinstance(use, Use) or use.op.where is None or use.op.rules.jvp is None:
        raise CheckSkipped("it has no jvp rule")
    wide, coarse = _subject_in_float64(use)
    if coarse or use.stochastic or not wide.wanted:
        raise CheckSkipped("it draws random numbers" if use.stochastic else "it does not compute in float64")
    rng = np.random.default_rng(4)
    moves = {i: rng.standard_normal(wide.arrays[i].shape) for i in wide.wanted}
    values = [array(each, None, each.dtype) for each in wide.arrays]

    def outputs(*moved: NDArray) -> list[NDArray]:
        tensors = list(values)
        for i, tensor in zip(moves, moved):
            tensors[i] = tensor
        outs = wide.invoke(tensors, cpu())
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        return [out for out in outs if is_numpy_float(np.dtype(out.dtype))]

    with Recording(False, wide.train):
        _, along = jvp(outputs, [values[i] for i in moves], [array(move, None, move.dtype) for move in moves.values()])
    for i, derivative in enumerate(along if isinstance(along, (list, tuple)) else [along]):
        weight = rng.standard_normal(derivative.shape)

        def total(step: np.ndarray, i: int = i, weight: np.ndarray = weight) -> float:
            arrays = [each + step * moves[j] if j in moves else each for j, each in enumerate(wide.arrays)]
            outs = [out for out in wide.on_arrays(arrays).run().outs if is_numpy_float(out.dtype)]
            return float((outs[i] * weight).sum())

        worst, _ = worst_slope(total, np.zeros(()), np.asarray((derivative.asnumpy() * weight).sum()), coarse)
        if worst is not None:
            raise Failed(f"along a random direction the derivative of output {i}, in a random weighted sum, is "
                         f"{worst.exact:.6g}, central differences say {worst.numeric:.6g}",
                         "the jvp rule returns for each output the sum over inputs of its derivative times t")


# ---------------------------------------------------------------------------------------------------- attributes


@check("attributes", ("backward", "written", "deterministic", "gradient"))
def attributes(use: Subject) -> str | None:
    """Another value of each attribute gives a right gradient, and results cached for the old value are not reused."""
    if not isinstance(use, Use) or use.op.where is None:
        raise CheckSkipped("it has no registered attributes" if not isinstance(use, Use) else "it is built in")
    looked = []
    for field in use.op.signature.schema.fields:
        value = use.given.get(field.name, field.default)
        fixed = field.name in (use.op.signature.variadic, "need_top_grad")
        changed = None if fixed else _other_value(field.kind, value)
        if changed is None:
            continue
        try:
            variant = Use(use.op, use.arrays, {**use.given, field.name: changed}, use.train)
            variant.stochastic = use.stochastic
            variant.run()
        except Exception:  # the operator refuses the value
            continue
        _look_for_cached(use, variant, field.name, value, changed)
        _check_gradient(variant, f"{field.name}={changed!r}", field.name)
        looked.append(f"{field.name}={changed!r}")
    if not looked:
        raise CheckSkipped("it has no attribute that takes another value")
    return ", ".join(looked)


def _other_value(kind: Any, value: Any) -> Any:
    """Another value for an attribute, or None for types without a known one."""
    if typing.get_origin(kind) is Literal:
        return next((argument for argument in typing.get_args(kind) if argument != value), None)
    if isinstance(value, enum.Enum):
        return next((member for member in type(value) if member is not value), None)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float) and np.isfinite(value):
        return value / 2 if 0 < value < 1 else value * 1.5 + 0.25
    return None


def _look_for_cached(use: Use, other: Use, name: str, value: object, changed: object) -> None:
    """Fail where an attribute's old value decides results for an input shape that was used with it before.

    First check that the attribute changes the results, and that the result of a row does not depend on the number of
    rows.
    """
    def repeated(use: Use, times: int) -> list[np.ndarray]:
        arrays = [np.concatenate([a] * times) if i < use.count and a.ndim and len(a) == rows else a
                  for i, a in enumerate(use.arrays)]
        return [out[:rows] for out in use.on_arrays(arrays).run().outs if out.ndim]

    if any(map(disagreement, use.run().outs, other.run().outs)) or not use.arrays or not use.arrays[0].ndim:
        return
    rows = len(use.arrays[0])
    try:
        new, first, second = repeated(other, 3), repeated(use, 5), repeated(use, 7)
    except Exception:  # the operator refuses other numbers of rows
        return
    if any(map(disagreement, new, first)) and not any(map(disagreement, first, second)):
        raise Failed(f"with {name}={changed!r} its results are still those of {name}={value!r} for inputs "
                     "of the same shape",
                     f"make {name} part of the key of its cache, or cache nothing outside of the call")


def _check_gradient(use: Use, title: str, name: str) -> None:
    """Fail where a gradient disagrees with central differences."""
    out_grads, result = run_with_gradients(use)
    if use.loss or not result.grads or all(g is None for g in out_grads or ()):
        return
    wide, coarse = _subject_in_float64(use)
    outs = [*wide.arrays, *wide.run().outs, *run_with_gradients(wide)[1].grads.values()]
    if not all(np.isfinite(output).all() for output in outs if is_numpy_float(output.dtype)):
        return
    off = _find_disagreement(wide, coarse)
    if off is None or _find_disagreement(_move_inputs(wide), coarse) is None or _inference(wide, coarse) is not None:
        return
    i, worst, _ = off
    raise Failed(f"with {title} the gradient of {use.names[i]!r}{position(worst.flat, use.arrays[i].shape)} is "
                 f"{worst.exact:.6g}, central differences say {worst.numeric:.6g}",
                 f"{place_of(use, i)} has to read {name}")

"""finite: checks that find the first step that makes a NaN or an infinity from finite inputs.

Eager calls, backward passes and plans share the setting, the description of arrays, and the error. A step is no error
if its inputs are not finite, or if it makes infinities on purpose, from attributes or without inputs.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import CodeType, FrameType, TracebackType
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from opreg.core.cache import cached
from opreg.core.chosen import Chosen
from opreg.core.environment import SWITCH, setting_reader
from opreg.core.launch import Call
from opreg.core.mode import quiet
from opreg.core.op import Op
from opreg.core.rules import Attrs, as_list
from opreg.core.spec import is_floating, is_numpy_float, show
from opreg.errors import ArgumentError, NonFiniteError, is_ours
from opreg.typing import Array, ArrayModule

__all__ = ["CheckedRecording", "Compute", "Named", "Range", "SHORT_WAYS", "check_setting", "check_step", "deliberate",
           "environment_setting", "inherit_choice", "is_finite", "raise_non_finite", "recording_value", "reference_of"]


#: The arrays of a step, with their names in the operator's signature.
Named: TypeAlias = Sequence[tuple[str, Array | None]]
#: Computes results from inputs with an array module; a result that is not checked is None.
Compute: TypeAlias = Callable[[ArrayModule, Sequence[Array]], Sequence[Array | float | None]]

#: The next larger dtype, for the error about an overflow.
_WIDER: dict[int, np.dtype] = {2: np.dtype(np.float32), 4: np.dtype(np.float64)}


# ------------------------------------------------------------------------------------------ whether to check


_INHERITED: Chosen[bool | str] = Chosen()


def check_setting(choice: bool | str | None = None) -> bool | str:
    """Whether to check results: the caller's choice, or that of the enclosing executor, or the environment variable
    ``OPREG_CHECK_NUMBERS``, which is ``1``, or ``debug`` to stop in a debugger.

    Examples
    --------
    >>> check_setting(True), check_setting("debug")
    (True, 'debug')
    """
    if choice is None:
        choice = _INHERITED.value
    if choice is None:
        return environment_setting()
    if choice not in (False, True, "debug"):
        raise ArgumentError(f"check_numbers={choice!r}: expected True, False or 'debug'")
    return choice


_STORED = setting_reader("OPREG_CHECK_NUMBERS")


def environment_setting() -> bool | str:
    """The current setting of the environment variable."""
    return _setting_value(_STORED())


@cached(16)
def _setting_value(value: object) -> bool | str:
    """The setting for a value as ``os.environ`` stores it."""
    text = "" if value is None else os.environ.decodevalue(value).strip()  # type: ignore[arg-type]
    if text.lower() not in ("", "debug", *SWITCH):
        raise ArgumentError(f"OPREG_CHECK_NUMBERS={text!r}: expected 1, 0 or debug")
    return "debug" if text.lower() == "debug" else SWITCH.get(text.lower(), False)


def inherit_choice(choice: bool | str) -> AbstractContextManager[None]:
    """A context manager in which executors inherit a choice, since they are bodies of loops of an outer executor."""
    return _INHERITED.override(choice)


class CheckedRecording:
    """The value of ``recording`` in modes in which operators are recorded and checked."""

    def __init__(self, choice: bool | str):
        self.choice = choice

    def check_run(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """The ``run`` of a mode that checks. If a result is not finite, Python's operators leave the fast path, so that
        the error names the operator."""
        return _Suspicious(run)


_CHECKED = {choice: CheckedRecording(choice) for choice in (True, "debug")}

#: Not empty if operators were recorded with checks in this process, so that backward passes must look at nodes.
USED: list[bool] = []


def recording_value(choice: bool | str | None = None) -> Literal[True] | CheckedRecording:
    """The value of ``recording`` in a mode that records: True, or a `CheckedRecording`."""
    choice = check_setting(choice)
    if not choice:
        return True
    USED[:] = [True]
    return _CHECKED[choice]


#: The code objects of fast paths, which fall back to the general path when ``run`` raises an error.
SHORT_WAYS: set[CodeType] = set()


class _Suspicious:
    """The ``run`` of a mode, which raises an error in fast paths if a result is not finite."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[..., Any]):
        self.run = run

    def __call__(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        result = self.run(function, *args, **keywords)
        if (function.__class__ is np.ufunc and not is_finite(np, np.asarray(result))
                and sys._getframe(1).f_code in SHORT_WAYS):
            raise RuntimeError("not finite")
        return result


# ------------------------------------------------------------------------------------------------- messages


class Range(NamedTuple):
    """The range of an array's elements.

    Attributes
    ----------
    name, shape, dtype
        The name, shape and dtype of the array.
    least, greatest : float or None
        The smallest and the largest finite element; None if there is none.
    nans, infinities : int
        The number of NaN, and of infinities.
    place : tuple of int or None
        The index of the first element that is not finite.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    least: float | None
    greatest: float | None
    nans: int
    infinities: int
    place: tuple[int, ...] | None

    def __str__(self) -> str:
        parts = ["no numbers" if not math.prod(self.shape) else "none finite" if self.least is None else
                 f"{self.least:.6g} to {self.greatest:.6g}"]
        if self.nans:
            parts.append(f"{self.nans} NaN")
        if self.infinities:
            parts.append(f"{self.infinities} infinite")
        of = f" of {math.prod(self.shape)}" if self.nans or self.infinities else ""
        return f"{self.name} {show(self.shape)} {self.dtype}: {', '.join(parts)}{of}"


def is_finite(xp: ArrayModule, array: Array) -> bool:
    """Whether an array holds neither NaN nor infinities.

    Examples
    --------
    >>> is_finite(np, np.array([1.0, np.inf])), is_finite(np, np.array([1]))
    (False, True)
    """
    dtype = array.dtype
    if dtype.kind in "iub" or not is_floating(dtype):
        return True
    return bool(xp.isfinite(array if is_numpy_float(dtype) else array.astype(np.float32)).all())


def _range_of(xp: ArrayModule, name: str, array: Array) -> Range:
    """The range of an array's elements."""
    shape, dtype = tuple(array.shape), array.dtype
    wide = array.astype(np.float64) if is_floating(dtype) else array
    good = xp.isfinite(wide)
    some = bool(good.any())
    bad = int(array.size - good.sum())
    place = None
    if bad:
        place = tuple(int(i) for i in np.unravel_index(int(xp.argmin(good)), shape))
    nans = int(xp.isnan(wide).sum())
    return Range(name, shape, dtype, float(xp.where(good, wide, math.inf).min()) if some else None,
                 float(xp.where(good, wide, -math.inf).max()) if some else None, nans, bad - nans, place)


def deliberate(op: Any, attrs: Any) -> bool:
    """Whether an operator may make infinities on purpose, since its attributes contain one."""
    return isinstance(attrs, Mapping) and any(map(_infinite, attrs.values()))


def _infinite(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_infinite, value))
    if isinstance(value, np.generic):
        value = value.item()
    return isinstance(value, float) and not math.isfinite(value)


def reference_of(op: Op, attrs: Attrs, is_train: bool, rng: np.random.Generator | None) -> Compute | None:
    """The reference kernel of an operator as a function; None if there is none that returns results."""
    kernel = next((kernel for kernel in op.kernels if kernel.name == "reference"), None)
    if kernel is None or kernel.bound:
        return None

    def compute(xp: ArrayModule, ins: Sequence[Array]) -> Sequence[Array | None]:
        return as_list(kernel.with_attributes(Call(op, attrs, [], [], [], xp, None, is_train, rng))(*ins))

    return compute


def check_step(step: str, xp: ArrayModule, ins: Named, outs: Named, choice: bool | str, compute: Compute | None = None
               ) -> None:
    """Raise the error of ``raise_non_finite`` if inputs are finite and an output is not."""
    if all(array is None or is_finite(xp, array) for _, array in outs):
        return
    if not ins or not all(array is None or is_finite(xp, array) for _, array in ins):
        return
    raise_non_finite(step, xp, ins, outs, choice, compute)


def raise_non_finite(step: str, xp: ArrayModule, ins: Named, outs: Named, choice: bool | str,
                     compute: Compute | None = None, more: str = "") -> NoReturn:
    """Raise the error for a step; with ``"debug"``, stop in a debugger first.

    Parameters
    ----------
    step : str
        Operator, node, line and place of the step.
    ins, outs : sequence of (str, array or None)
        Its inputs and outputs.
    choice : True or "debug"
        Whether to stop in a debugger.
    compute : function, optional
        Computes the outputs by the reference kernel, to find the value that overflowed.
    more : str
        Further text for the error.
    """
    named_inputs = [(name, array) for name, array in ins if array is not None]
    named_outputs = [(name, array) for name, array in outs if array is not None]
    ranges = [_range_of(xp, name, array) for name, array in named_inputs]
    lines = [f"{step}: NaN or infinity out of finite numbers", *[f"  {range}" for range in ranges]]
    bad_ranges = []
    for i, (name, array) in enumerate(named_outputs):
        range = _range_of(xp, name, array)
        bad_ranges.append(range)
        text = f"  {range}"
        if range.place is not None:
            at = f" at {range.place}" if range.place else ""
            same = [f"{name} {array[range.place]}" for name, array in named_inputs if array.shape == range.shape]
            text += f", the first{at}: {array[range.place]}" + (f", of {', '.join(same)}" if same else "")
            text += _overflow(xp, range, [array for _, array in named_inputs], compute, i)
        lines.append(text)
    error = NonFiniteError("\n".join(lines) + (f"\n  {more}" if more else ""))
    error.inputs, error.outputs = ranges, bad_ranges
    if choice == "debug":
        _stop(error)
    raise error


def _overflow(xp: ArrayModule, range: Range, ins: Sequence[Array], compute: Compute | None, i: int) -> str:
    """The text of an overflow of the dtype, with the value in a wider dtype; empty if there was none."""
    if not range.infinities or range.place is None:
        return ""
    limit = "" if not is_numpy_float(range.dtype) else f", which ends at {float(np.finfo(range.dtype).max):.6g}"
    wider = _WIDER.get(range.dtype.itemsize)
    if compute is not None and wider is not None:
        try:
            results = quiet(compute, xp, [array.astype(wider) if is_floating(array.dtype) else array for array in ins])
            result = results[i]
            number = math.inf if result is None else float(xp.asarray(result)[range.place])
            if math.isfinite(number):
                return f"; {range.dtype} overflows{limit}: in {wider} it is {number:.6g}"
        except Exception:  # the text is optional
            return ""
    if any(is_floating(array.dtype) and array.dtype.itemsize > range.dtype.itemsize for array in ins):
        return f"; {range.dtype} overflows{limit}"
    return ""


def _stop(error: NonFiniteError) -> None:
    """Stop in a debugger, at the line of user code that led here."""
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    if frame is None or sys.breakpointhook is not sys.__breakpointhook__ or "PYTHONBREAKPOINT" in os.environ:
        sys.breakpointhook()
    else:
        importlib.import_module("pdb").post_mortem(TracebackType(None, frame, frame.f_lasti, frame.f_lineno))

"""finite: which step is the first to make a NaN or an infinity out of finite numbers.

Eager calls, tapes and plans share the checks: whether to check, the facts about the arrays of a step, and the
error. A step that passes on what was not finite is not to blame, nor is one that makes infinities on purpose, of
attributes or of nothing.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import local
from types import CodeType, FrameType, TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from opreg.core.launch import Call, as_results
from opreg.core.mode import quiet
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import is_floating, is_numpy_float, show
from opreg.errors import ArgumentError, NonFiniteError, is_ours
from opreg.typing import Array, ArrayModule

__all__ = ["Checked", "Compute", "INHERITED", "Named", "Range", "SHORT_WAYS", "asked", "by_environment",
           "complain", "deliberate", "inherited", "is_finite", "look", "recorded", "reference_of"]


#: Arrays of a step with the names that their operator has for them.
Named: TypeAlias = Sequence[tuple[str, Array | None]]
#: Results over an array module, of inputs; None for one of which there is nothing to say.
Compute: TypeAlias = Callable[[ArrayModule, Sequence[Array]], Sequence[Array | float | None]]

#: The next larger dtype, for the error about an overflow.
_WIDER: dict[int, np.dtype] = {2: np.dtype(np.float32), 4: np.dtype(np.float64)}


# ------------------------------------------------------------------------------------------ whether to check


class _Inherited(local):
    choice: bool | str | None = None


_INHERITED = _Inherited()
#: One for each stretch of code, of any thread, in which a choice is inherited.
INHERITED: list[bool | str] = []


def asked(choice: bool | str | None = None) -> bool | str:
    """Whether to check numbers: as a caller says, as what is being made a part of, or as the environment variable
    ``OPREG_CHECK_NUMBERS`` says: ``1``, or ``debug`` to stop in a debugger.

    Examples
    --------
    >>> asked(True), asked("debug")
    (True, 'debug')
    """
    if choice is None:
        choice = _INHERITED.choice
    if choice is None:
        choice = by_environment()
    if choice not in (False, True, "debug"):
        raise ArgumentError(f"check_numbers={choice!r}: expected True, False or 'debug'")
    return choice


@functools.cache
def by_environment() -> bool | str:
    """The setting of the environment variable, read once: reading takes as long as an operator."""
    text = os.environ.get("OPREG_CHECK_NUMBERS", "").strip().lower()
    return {"": False, "0": False, "1": True, "true": True, "false": False}.get(text, text)


@contextmanager
def inherited(choice: bool | str) -> Iterator[None]:
    """A stretch of code in which what is bound is part of something larger, as bodies of loops are."""
    before, _INHERITED.choice = _INHERITED.choice, choice
    INHERITED.append(choice)
    try:
        yield
    finally:
        INHERITED.pop()
        _INHERITED.choice = before


class Checked:
    """In the place of True where operators are recorded: they are looked at, too."""

    def __init__(self, choice: bool | str):
        self.choice = choice

    def watched(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """``run`` of a mode in which this is: Python's operators on arrays take the long way where what they make is
        not finite, so that it is said who made it."""
        return _Suspicious(run)


_CHECKED = {choice: Checked(choice) for choice in (True, "debug")}

#: Whether somebody has recorded with checks in this process, so that a backward pass has to ask its nodes.
USED: list[bool] = []


def recorded(choice: bool | str | None = None) -> Literal[True] | Checked:
    """The value of ``recording`` in a mode, while operators are recorded."""
    choice = asked(choice)
    if not choice:
        return True
    USED[:] = [True]
    return _CHECKED[choice]


#: Code that gives up what ``Mode.run`` refuses and takes another way, on which more is known.
SHORT_WAYS: set[CodeType] = set()


class _Suspicious:
    """``run`` of a mode, but refusing to those who have another way what is not finite."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[..., Any]):
        self.run = run

    def __call__(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        result = self.run(function, *args, **keywords)
        if (function.__class__ is np.ufunc and not is_finite(np, np.asarray(result))
                and sys._getframe(1).f_code in SHORT_WAYS):
            raise RuntimeError("not finite")
        return result


# --------------------------------------------------------------------------------------------- what is said


class Range(NamedTuple):
    """Range of an array's elements.

    Attributes
    ----------
    name, shape, dtype
        Of the array.
    least, greatest : float or None
        Of its finite numbers.
    nans, infinities : int
        How many there are.
    place : tuple of int or None
        Of the first that is not finite.
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
    """Range of an array's elements."""
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
    """Whether an operator may make infinities on purpose: of its attributes."""
    return isinstance(attrs, Mapping) and any(map(_infinite, attrs.values()))


def _infinite(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_infinite, value))
    if isinstance(value, np.generic):
        value = value.item()
    return isinstance(value, float) and not math.isfinite(value)


def reference_of(op: Op, attrs: Attrs, is_train: bool, rng: np.random.Generator | None) -> Compute | None:
    """The reference kernel of an operator; None where it has none that returns its results."""
    kernel = next((kernel for kernel in op.kernels if kernel.name == "reference"), None)
    if kernel is None or kernel.bound:
        return None

    def compute(xp: ArrayModule, ins: Sequence[Array]) -> Sequence[Array | None]:
        return as_results(kernel.with_attributes(Call(op, attrs, [], [], [], xp, None, is_train, rng))(*ins))

    return compute


def look(who: str, xp: ArrayModule, ins: Named, outs: Named, choice: bool | str, compute: Compute | None = None
         ) -> None:
    """Complain where outputs are not finite and inputs are; see ``complain``."""
    if all(array is None or is_finite(xp, array) for _, array in outs):
        return
    if not ins or not all(array is None or is_finite(xp, array) for _, array in ins):
        return
    complain(who, xp, ins, outs, choice, compute)


def complain(who: str, xp: ArrayModule, ins: Named, outs: Named, choice: bool | str, compute: Compute | None = None,
             more: str = "") -> None:
    """Raise the error about a step, or stop in a debugger first.

    Parameters
    ----------
    who : str
        Operator, node, line and place.
    ins, outs : sequence of (str, array or None)
        What it was given and what it has made.
    choice : True or "debug"
        What to do.
    compute : function, optional
        Computes the outputs by the reference, for saying what an overflow would have been.
    more : str
        What else there is to say.
    """
    given = [(name, array) for name, array in ins if array is not None]
    made = [(name, array) for name, array in outs if array is not None]
    ranges = [_range_of(xp, name, array) for name, array in given]
    lines = [f"{who}: NaN or infinity out of finite numbers", *[f"  {range}" for range in ranges]]
    found = []
    for i, (name, array) in enumerate(made):
        range = _range_of(xp, name, array)
        found.append(range)
        text = f"  {range}"
        if range.place is not None:
            at = f" at {range.place}" if range.place else ""
            same = [f"{name} {array[range.place]}" for name, array in given if array.shape == range.shape]
            text += f", the first{at}: {array[range.place]}" + (f", of {', '.join(same)}" if same else "")
            text += _overflow(xp, range, [array for _, array in given], compute, i)
        lines.append(text)
    error = NonFiniteError("\n".join(lines) + (f"\n  {more}" if more else ""))
    error.inputs, error.outputs = ranges, found
    if choice == "debug":
        _stop(error)
    raise error


def _overflow(xp: ArrayModule, range: Range, ins: Sequence[Array], compute: Compute | None, i: int) -> str:
    """A note that a dtype was too small, where a larger one would have held the value."""
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
        except Exception:  # it is a help to who reads, no more
            return ""
    if any(is_floating(array.dtype) and array.dtype.itemsize > range.dtype.itemsize for array in ins):
        return f"; {range.dtype} overflows{limit}"
    return ""


def _stop(error: NonFiniteError) -> None:
    """Let who runs the program look, at the line of user code that led here."""
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    if frame is None or sys.breakpointhook is not sys.__breakpointhook__ or "PYTHONBREAKPOINT" in os.environ:
        sys.breakpointhook()
    else:
        importlib.import_module("pdb").post_mortem(TracebackType(None, frame, frame.f_lasti, frame.f_lineno))

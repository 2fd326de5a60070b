"""The mode of a thread: whether operators are recorded, whether they run as in training; and how they are run."""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np

from ..errors import line_at, user_frame, warn

__all__ = ["MODE", "AskedRecording", "Recording", "quiet", "inside"]

P = ParamSpec("P")
R = TypeVar("R")


class _Mode(threading.local):
    recording: Any  # whether operators are recorded, and perhaps looked at, see ``opreg.ndarray.finite``
    training: bool
    np_shape = False  # see opreg.util
    #: What follows the code that runs, a trace of ``opreg.nn``: it is told where the mode is asked for, and takes
    #: operators on arrays from outside. None where operators compute now.
    follower: Any
    #: The frame of user code whose line is noted of what is recorded, ``()`` until it has been looked for; None where
    #: every operator has one of its own.
    frame: FrameType | tuple[()] | None
    #: Calls a function in a context of its own, in which NumPy's numeric warnings are off. NumPy keeps that setting
    #: in a context variable; entering the context costs a tenth of ``np.errstate``.
    run: Callable[..., Any]

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run
        self.recording = self.training = False
        self.frame = self.follower = None


#: Read on every eager call: attributes of a thread-local, nothing more. ``MODE.__dict__`` is that of the thread: who
#: reads and writes several takes it once, which is three times as fast.
MODE = _Mode()


def quiet(function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """Call a function without numeric warnings: infinities and NaN are results here.

    Examples
    --------
    >>> quiet(np.log, np.zeros(1))
    array([-inf])
    """
    try:
        return MODE.run(function, *args, **keywords)
    except RuntimeError as error:
        if not inside(error):
            raise
    return function(*args, **keywords)


def inside(error: RuntimeError) -> bool:
    """Whether ``MODE.run`` raised this because it is quiet already: a context is entered once at a time."""
    return str(error).startswith("cannot enter context")


class Recording:
    """A stretch of code with its own mode; usable as a context manager and as a decorator."""

    __slots__ = ("_recording", "_training", "_before")

    def __init__(self, recording: bool | None, training: bool | None):
        self._recording, self._training = recording, training
        self._before: Any = None  # the mode before, and what was here

    def __enter__(self) -> Self:
        mode = MODE.__dict__
        self._before = mode["recording"], mode["training"], self._before  # it may be entered again inside
        if self._recording is not None:
            mode["recording"] = self._recording
        if self._training is not None:
            mode["training"] = self._training
        return self

    def __exit__(self, *_: object) -> None:
        mode = MODE.__dict__
        mode["recording"], mode["training"], self._before = self._before

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def inside(*args: P.args, **keywords: P.kwargs) -> R:
            with Recording(self._recording, self._training):
                return function(*args, **keywords)

        return inside


class AskedRecording(Recording):
    """One that a user asked for by a call. Called without ``with`` it does nothing, which it says when it goes."""

    __slots__ = ("_call", "_place", "_used")

    def __init__(self, call: str, recording: bool | None, training: bool | None):
        super().__init__(recording, training)
        frame = user_frame(sys._getframe(1))
        self._call, self._used = call, False
        self._place = None if frame is None else (frame.f_code, frame.f_lasti)

    def __enter__(self) -> Self:
        self._used = True
        return super().__enter__()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        self._used = True
        return super().__call__(function)

    def __del__(self) -> None:
        if not self._used and not sys.is_finalizing():
            warn(f"{self._call} is a context, and nothing ran in it: write with {self._call}:",
                 where=line_at(self._place))

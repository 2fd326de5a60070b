"""The mode: the choices of all surrounding ``with`` statements, for each thread and each asyncio task.

A mode is an immutable object. Entering a ``with`` statement replaces it by another one, in a context variable. So each
task has its own mode, which starts as that of the task's creator. Each thread has its own context variable, and so
starts without any choices, even if another thread's context is copied to it.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..errors import Place, line_at, user_frame, warn
from .setting_reads import reads_setting

__all__ = ["MODE", "UserScope", "UserRecording", "Mode", "Recording", "Scope", "is_already_entered", "is_np_array",
           "is_np_shape", "quiet"]

P = ParamSpec("P")
R = TypeVar("R")

# The largest number of derived modes that a mode caches.
_MOST_DERIVED = 32


class Mode:
    """Recording, training, and the other choices that are in effect.

    Attributes
    ----------
    recording : bool or Checked
        Whether operators are recorded, and perhaps checked, see ``opreg.ndarray.finite``.
    training : bool
        Whether operators run as in training.
    paused : bool
        Whether recording is off in a block inside of one where it is on.
    blocked : int
        The number of surrounding ``no_grad`` blocks.
    convention : str or None
        The convention of backward hooks, if ``nn.convention`` has set one.
    np_shape, np_array : bool
        See ``opreg.util``.
    contexts : tuple of Context
        The entered contexts, innermost last.
    names, attrs : tuple
        The entered name managers and attribute scopes of symbols, innermost last.
    run : function
        Calls a function with NumPy's numeric warnings off. NumPy keeps that setting in a context variable; running in a
        context takes a tenth of the time of ``np.errstate``.
    following : dict
        A cache of derived modes, by their choices.
    outside : Mode or None
        The mode outside of the `Recording` that made this one; None if more was chosen since.
    """

    __slots__ = ("recording", "training", "paused", "blocked", "convention", "np_shape", "np_array",
                 "contexts", "names", "attrs", "run", "following", "outside", "_recorded_in", "_pushed")

    recording: Any
    training: bool
    paused: bool
    blocked: int
    convention: str | None
    np_shape: bool
    np_array: bool
    contexts: tuple[Any, ...]
    names: tuple[Any, ...]
    attrs: tuple[dict[str, str], ...]
    run: Callable[..., Any]
    following: dict[object, Mode]
    outside: Mode | None

    def __init__(self, run: Callable[..., Any] | None, **chosen: Any):
        for name, value in chosen.items():
            setattr(self, name, value)
        self.following, self.outside = {}, None
        self._recorded_in: Mode | None = None  # the mode outside of the innermost Recording
        self._pushed: tuple[Mode | None, str] = None, ""  # the mode that ``pushed`` extended, and the attribute
        if run is None:
            context = MODE.quiet.copy()
            context.run(MODE.set, self)
            run = context.run
        self.run = run if self.recording.__class__ is bool else self.recording.check_run(run)

    def but(self, **changes: Any) -> Mode:
        """The mode with other choices."""
        mode = Mode(None, **{**{name: getattr(self, name) for name in _NOTHING}, **changes})
        mode._recorded_in = self._recorded_in
        return mode

    def recorded(self, recording: Any, training: bool | None) -> Mode:
        """The mode with other values of recording and training; None leaves a value unchanged."""
        return self.following.get((recording, training)) or self.keep((recording, training), self._record(
            self.recording if recording is None else recording, self.training if training is None else training))

    def _record(self, recording: Any, training: bool) -> Mode:
        mode = self.but(recording=recording, training=training,
                        paused=not recording and (self.paused or bool(self.recording)))
        mode.outside = mode._recorded_in = self
        return mode

    def left(self) -> Mode:
        """The mode outside of the innermost `Recording`, with the other settings changed inside of it."""
        before = self._recorded_in
        if before is None:
            return self
        mode = self.but(recording=before.recording, training=before.training, paused=before.paused)
        mode._recorded_in = before._recorded_in
        return mode

    def within(self, ctx: Any) -> Mode:
        """The mode with an entered context."""
        return self.following.get(ctx) or self.keep(ctx, self.pushed("contexts", ctx))

    def for_users_code(self, is_train: bool, ctx: Any) -> Mode:
        """The mode in which users' operators run: not recorded, with a context and a training mode."""
        return self.following.get((is_train, ctx)) or self.keep((is_train, ctx),
                                                                self.recorded(False, is_train).within(ctx))

    def pushed(self, what: str, value: Any) -> Mode:
        """The mode with a value appended to ``contexts``, ``names`` or ``attrs``."""
        mode = self.but(**{what: (*getattr(self, what), value)})
        mode._pushed = self, what
        return mode

    def popped(self, what: str) -> Mode:
        """The mode without the last value of ``contexts``, ``names`` or ``attrs``."""
        outer, pushed = self._pushed
        return outer if outer is not None and pushed == what else self.but(**{what: getattr(self, what)[:-1]})

    def keep(self, key: object, mode: Mode) -> Mode:
        """Cache a mode that was derived from this one."""
        if len(self.following) < _MOST_DERIVED and len(self.contexts) < _MOST_DERIVED:
            self.following[key] = mode
        return mode


_NOTHING: dict[str, Any] = {"recording": False, "training": False, "paused": False, "blocked": 0, "convention": None,
                            "np_shape": False, "np_array": False, "contexts": (), "names": (), "attrs": ()}


def _chosen(name: str) -> Any:
    """An attribute of the current mode as a property of the thread. Setting it replaces the mode."""
    return property(lambda thread: getattr(thread.current(), name),
                    lambda thread, value: thread.set(thread.current().but(**{name: value})))


class _Thread(threading.local):
    """The state of a thread: the current mode, with properties for some of its attributes, a tracer, and a frame."""

    recording: Any = _chosen("recording")
    training: bool = _chosen("training")
    np_shape: bool = _chosen("np_shape")
    np_array: bool = _chosen("np_array")
    blocked: int = _chosen("blocked")
    #: Get the mode, and set it. An interrupt may arrive right after the call that sets it, so this call stands in the
    #: ``try`` whose ``finally`` restores the mode before.
    current: Callable[[], Mode]
    set: Callable[[Mode], object]
    #: A context without numeric warnings and without choices.
    quiet: contextvars.Context
    #: The tracer of ``opreg.cells`` that traces the running code; None for eager code. It observes reads of the mode,
    #: and traces operators on arrays from outside.
    tracer: Any
    #: The frame of user code that recorded operators refer to, or ``()`` before it was found; None if each operator
    #: finds its own.
    frame: FrameType | tuple[()] | None

    def __init__(self) -> None:
        self.quiet = contextvars.copy_context()
        self.quiet.run(np.seterr, all="ignore")
        nothing = Mode(self.quiet.run, **_NOTHING)
        variable = contextvars.ContextVar("opreg", default=nothing)
        self.current, self.set, self.frame = variable.get, variable.set, None
        self.tracer = None


#: The state of the current thread; its mode is ``MODE.current()``. Code that runs in every eager call uses the faster
#: ``MODE.__dict__["current"]()``, with the thread's own dict.
MODE = _Thread()


def is_np_shape() -> bool:
    """Whether a 0 in the shape of a symbol is an empty dimension.

    Examples
    --------
    >>> is_np_shape()
    False
    """
    return MODE.np_shape


@reads_setting
def is_np_array() -> bool:
    """Whether blocks make arrays of ``opreg.np``.

    Examples
    --------
    >>> is_np_array()
    False
    """
    return MODE.np_array


def quiet(function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """Call a function with NumPy's numeric warnings off.

    Examples
    --------
    >>> quiet(np.log, np.zeros(1))
    array([-inf])
    """
    try:
        return MODE.__dict__["current"]().run(function, *args, **keywords)
    except RuntimeError as error:
        if not is_already_entered(error):
            raise
    return function(*args, **keywords)


def is_already_entered(error: RuntimeError) -> bool:
    """Whether ``Mode.run`` raised this error since the context is already entered."""
    return str(error).startswith("cannot enter context")


class Scope:
    """A context manager that changes the mode, and may be entered again inside of itself.

    Subclasses set ``_chosen``, the names of the attributes that they change, and ``_key``, by which the inner mode is
    cached, and define ``_next`` and ``_new_scope``.
    """

    __slots__ = ("_entered",)

    _chosen: tuple[str, ...] = ()
    _key: object
    _entered: Any  # the outer mode, the inner one, and the token or value that restores the outer one

    def _next(self, mode: Mode) -> Mode:
        """The inner mode, from the outer one."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        thread = MODE.__dict__
        mode = thread["current"]()
        after = mode.following.get(self._key) or mode.keep(self._key, self._next(mode))
        before = getattr(self, "_entered", None)
        try:
            self._entered = mode, after, before
            thread["set"](after)
        except BaseException:
            self._entered = before
            thread["set"](mode)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        thread = MODE.__dict__
        before, after, self._entered = self._entered
        mode = thread["current"]()
        # Settings that were changed inside the block, and not by it, stay changed.
        thread["set"](before if mode is after else mode.but(**{name: getattr(before, name) for name in self._chosen}))

    def _new_scope(self) -> Scope:
        """A scope with the same choices, for one call."""
        raise NotImplementedError

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function or coroutine, to be called in this scope."""
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def awaited(*args: P.args, **keywords: P.kwargs) -> Any:
                with self._new_scope():
                    return await function(*args, **keywords)

            return awaited  # type: ignore[return-value]  # it is called as the function is

        @functools.wraps(function)
        def called(*args: P.args, **keywords: P.kwargs) -> R:
            with self._new_scope():
                return function(*args, **keywords)

        return called


class Recording(Scope):
    """A context manager and decorator that sets recording and training.

    The inner mode references the outer one, so one object can be entered many times, also in several threads and tasks.

    Parameters
    ----------
    recording, training : bool, optional
        The new values; None leaves a value unchanged.
    """

    __slots__ = ("_choice",)

    def __init__(self, recording: Any, training: bool | None):
        self._choice = recording, training

    def __enter__(self) -> Recording:
        thread = MODE.__dict__
        mode = thread["current"]()
        try:
            thread["set"](mode.following.get(self._choice) or mode.recorded(*self._choice))
        except BaseException:
            thread["set"](mode)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        thread = MODE.__dict__
        mode = thread["current"]()
        thread["set"](mode.outside or mode.left())

    def _new_scope(self) -> Recording:
        return self


class UserScope:
    """A base for scopes that users' calls return: it warns if the object is deleted without having been entered."""

    _call = ""  # the call as text; empty once it was entered
    _place: Place | None

    def _note_call(self, call: str) -> None:
        """Record the call and its line."""
        frame = user_frame(sys._getframe(2))
        self._call, self._place = call, None if frame is None else (frame.f_code, frame.f_lasti)

    def __enter__(self) -> Any:
        self._call = ""
        return super().__enter__()  # type: ignore[misc]  # defined by Scope

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        self._call = ""
        return super().__call__(function)  # type: ignore[misc]

    def __del__(self) -> None:
        if self._call and not sys.is_finalizing():
            warn(f"{self._call} is a context manager that was never entered: write with {self._call}:",
                 where=line_at(self._place))


class UserRecording(UserScope, Recording):
    """A `Recording` that a user's call returns."""

    def __init__(self, call: str, recording: Any, training: bool | None):
        self._choice = recording, training
        self._note_call(call)

    def __enter__(self) -> Recording:  # without ``super()``, which takes longer than the rest
        self._call = ""
        return Recording.__enter__(self)

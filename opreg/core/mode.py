"""The mode: all that surrounding ``with`` statements have chosen, for a thread and, within it, for an asyncio task.

A mode is one value that never changes. To enter a ``with`` statement is to put another in its place, in a context
variable: so a task has its own, which begins as that of whoever made the task and ends with it. Every thread has a
context variable of its own, and so begins with nothing chosen, also where the context of another is copied to it.
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

__all__ = ["MODE", "Asked", "AskedRecording", "Mode", "Recording", "Scope", "inside", "quiet"]

P = ParamSpec("P")
R = TypeVar("R")

# Number of modes that follow from one that are kept, to be found again.
_KEPT = 32


class Mode:
    """Recording, training and the other choices of a piece of code.

    Attributes
    ----------
    recording : bool or Checked
        Whether operators are recorded, and perhaps looked at, see ``opreg.ndarray.finite``.
    training : bool
        Whether they run as in training.
    paused : bool
        Whether recording is off inside of a stretch of code where it is on.
    blocked : int
        How many stretches of ``no_grad`` surround what runs.
    convention : str or None
        Of backward hooks that are registered, where ``nn.convention`` says it.
    np_shape, np_array : bool
        See ``opreg.util``.
    contexts : tuple of Context
        Those that were entered, the innermost last.
    names, attrs : tuple
        Of symbols that are made: what gives names, and attributes, the innermost last.
    run : function
        Calls a function in this mode, with NumPy's numeric warnings off. NumPy keeps that setting in a context
        variable; entering a context takes a tenth of what ``np.errstate`` takes.
    following : dict
        Modes that were made of it and are entered often, by what was chosen: each is looked up here first.
    outside : Mode or None
        The one in which a `Recording` was entered that this is the mode of; None where more was chosen since.
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
        self._recorded_in: Mode | None = None  # where the innermost Recording was entered
        self._pushed: tuple[Mode | None, str] = None, ""  # what it was made of by ``pushed``, and what was pushed
        if run is None:
            context = MODE.quiet.copy()
            context.run(MODE.set, self)
            run = context.run
        self.run = run if self.recording.__class__ is bool else self.recording.watched(run)

    def but(self, **changes: Any) -> Mode:
        """The mode with something else chosen."""
        mode = Mode(None, **{**{name: getattr(self, name) for name in _NOTHING}, **changes})
        mode._recorded_in = self._recorded_in
        return mode

    def recorded(self, recording: Any, training: bool | None) -> Mode:
        """The mode with another choice of recording and training; None leaves one as it is."""
        return self.following.get((recording, training)) or self.keep((recording, training), self._record(
            self.recording if recording is None else recording, self.training if training is None else training))

    def _record(self, recording: Any, training: bool) -> Mode:
        mode = self.but(recording=recording, training=training,
                        paused=not recording and (self.paused or bool(self.recording)))
        mode.outside = mode._recorded_in = self
        return mode

    def left(self) -> Mode:
        """The mode outside of the innermost `Recording`; what else was chosen in it stays chosen."""
        before = self._recorded_in
        if before is None:
            return self
        mode = self.but(recording=before.recording, training=before.training, paused=before.paused)
        mode._recorded_in = before._recorded_in
        return mode

    def within(self, ctx: Any) -> Mode:
        """The mode inside of a context."""
        return self.following.get(ctx) or self.keep(ctx, self.pushed("contexts", ctx))

    def computing(self, is_train: bool, ctx: Any) -> Mode:
        """The mode in which users' operators compute."""
        return self.following.get((is_train, ctx)) or self.keep((is_train, ctx),
                                                                 self.recorded(False, is_train).within(ctx))

    def pushed(self, what: str, value: Any) -> Mode:
        """The mode with one more among contexts, names or attributes."""
        mode = self.but(**{what: (*getattr(self, what), value)})
        mode._pushed = self, what
        return mode

    def popped(self, what: str) -> Mode:
        """The mode without the last of these."""
        outer, pushed = self._pushed
        return outer if outer is not None and pushed == what else self.but(**{what: getattr(self, what)[:-1]})

    def keep(self, key: object, mode: Mode) -> Mode:
        """A mode that was made of this one, to be found again."""
        if len(self.following) < _KEPT and len(self.contexts) < _KEPT:
            self.following[key] = mode
        return mode


_NOTHING: dict[str, Any] = {"recording": False, "training": False, "paused": False, "blocked": 0, "convention": None,
                            "np_shape": False, "np_array": False, "contexts": (), "names": (), "attrs": ()}


def _chosen(name: str) -> Any:
    """An attribute of the mode of now as one of the thread; to set it is to choose it from here on."""
    return property(lambda thread: getattr(thread.now(), name),
                    lambda thread, value: thread.set(thread.now().but(**{name: value})))


class _Thread(threading.local):
    """State of one thread: the current mode, some of whose attributes can be read and set here, and a frame."""

    recording: Any = _chosen("recording")
    training: bool = _chosen("training")
    np_shape: bool = _chosen("np_shape")
    np_array: bool = _chosen("np_array")
    blocked: int = _chosen("blocked")
    #: Gives the mode; sets it, and gives a token; puts back what was there before a token was given.
    now: Callable[[], Mode]
    set: Callable[[Mode], contextvars.Token[Mode]]
    reset: Callable[[contextvars.Token[Mode]], None]
    #: A context without numeric warnings, and with nothing chosen.
    quiet: contextvars.Context
    #: The tracer of the code that runs, of ``opreg.cells``: it is told where the mode is asked for, and takes
    #: operators on arrays from outside. None where operators compute now.
    tracer: Any
    #: The frame of user code whose line is noted of what is recorded, ``()`` until it has been looked for; None where
    #: every operator has one of its own.
    frame: FrameType | tuple[()] | None

    def __init__(self) -> None:
        self.quiet = contextvars.copy_context()
        self.quiet.run(np.seterr, all="ignore")
        nothing = Mode(self.quiet.run, **_NOTHING)
        variable = contextvars.ContextVar("opreg", default=nothing)
        self.now, self.set, self.reset, self.frame = variable.get, variable.set, variable.reset, None
        self.tracer = None


#: The mode of now is ``MODE.now()``. Code that every eager call runs says ``MODE.__dict__["now"]()``, a little faster:
#: the dict is that of the thread.
MODE = _Thread()


def quiet(function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """Call a function without numeric warnings: infinities and NaN are results here.

    Examples
    --------
    >>> quiet(np.log, np.zeros(1))
    array([-inf])
    """
    try:
        return MODE.__dict__["now"]().run(function, *args, **keywords)
    except RuntimeError as error:
        if not inside(error):
            raise
    return function(*args, **keywords)


def inside(error: RuntimeError) -> bool:
    """Whether ``Mode.run`` raised this because it is quiet already: a context is entered once at a time."""
    return str(error).startswith("cannot enter context")


class Scope:
    """A ``with`` statement that chooses something; it may be entered again inside.

    Subclasses name the attributes of the mode that they choose, in ``_chosen``, by which key the mode inside
    is found again, in ``_key``, and define ``_next`` and ``_again``.
    """

    __slots__ = ("_entered",)

    _chosen: tuple[str, ...] = ()
    _key: object
    _entered: Any  # the mode before, that inside, and what was here

    def _next(self, mode: Mode) -> Mode:
        """The mode inside, by that outside."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        thread = MODE.__dict__
        mode = thread["now"]()
        after = mode.following.get(self._key) or mode.keep(self._key, self._next(mode))
        self._entered = mode, after, getattr(self, "_entered", None)
        thread["set"](after)
        return self

    def __exit__(self, *_: object) -> None:
        thread = MODE.__dict__
        before, after, self._entered = self._entered
        mode = thread["now"]()
        # Something else may have been chosen meanwhile, for longer.
        thread["set"](before if mode is after else mode.but(**{name: getattr(before, name) for name in self._chosen}))

    def _again(self) -> Scope:
        """Another like it."""
        raise NotImplementedError

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function or coroutine, called inside."""
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def awaited(*args: P.args, **keywords: P.kwargs) -> Any:
                with self._again():
                    return await function(*args, **keywords)

            return awaited  # type: ignore[return-value]  # it is called as the function is

        @functools.wraps(function)
        def called(*args: P.args, **keywords: P.kwargs) -> R:
            with self._again():
                return function(*args, **keywords)

        return called


class Recording(Scope):
    """A stretch of code with its own choice of recording and training; a context manager, and a decorator.

    The inner mode knows the outer one, so one object serves many ``with`` statements, in threads and tasks too.

    Parameters
    ----------
    recording, training : bool, optional
        None leaves it as it is.
    """

    __slots__ = ("_choice",)

    def __init__(self, recording: Any, training: bool | None):
        self._choice = recording, training

    def __enter__(self) -> Recording:
        thread = MODE.__dict__
        mode = thread["now"]()
        thread["set"](mode.following.get(self._choice) or mode.recorded(*self._choice))
        return self

    def __exit__(self, *_: object) -> None:
        thread = MODE.__dict__
        mode = thread["now"]()
        thread["set"](mode.outside or mode.left())

    def _again(self) -> Recording:
        return self


class Asked:
    """Reminder of a `Scope` that a user's call has made: it warns when it is deleted and the scope was never
    entered."""

    _call: str  # "" once it was entered
    _place: Place | None

    def _asked(self, call: str) -> None:
        """Note what was called, and where."""
        frame = user_frame(sys._getframe(2))
        self._call, self._place = call, None if frame is None else (frame.f_code, frame.f_lasti)

    def __enter__(self) -> Any:
        self._call = ""
        return super().__enter__()  # type: ignore[misc]  # of the Scope

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        self._call = ""
        return super().__call__(function)  # type: ignore[misc]

    def __del__(self) -> None:
        if getattr(self, "_call", "") and not sys.is_finalizing():
            warn(f"{self._call} is a context, and nothing ran in it: write with {self._call}:",
                 where=line_at(self._place))


class AskedRecording(Asked, Recording):
    """A stretch of code that a user asks for by a call."""

    def __init__(self, call: str, recording: Any, training: bool | None):
        super().__init__(recording, training)
        self._asked(call)

"""Errors: what a person did, where, and the nearest thing that would have worked."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, ClassVar, TypeAlias

from .core.cache import cached
from .core.reports import printable_text

__all__ = [
    "OpError", "MXNetError", "AttrError", "ShapeError", "SubscriptError", "WrongNameError", "DTypeError",
    "UnknownOperatorError", "ArgumentError", "UnusedError", "InferenceError", "NotDifferentiableError", "DeviceError",
    "FileFormatError", "NonFiniteError", "NotSupportedForSparseNDArray",
    "RankError", "Where", "Place", "user_line", "user_frame", "line_at", "is_ours", "is_users", "family", "note",
    "trim", "TRIMMED", "as_op_error", "list_names", "other_count", "nearest", "did_you_mean", "refuse_keywords",
    "refuse_misspelt", "unknown_keyword", "missing_arguments", "warn",
]


class OpError(RuntimeError):
    """Base of every error raised by opreg itself.

    An exception of user code is never wrapped in one: it leaves as itself, with notes added.

    Examples
    --------
    >>> issubclass(ShapeError, OpError) and issubclass(ShapeError, ValueError)
    True
    """

    converted: ClassVar[bool] = False  # whether it was an exception of Python, NumPy or the system; see ``as_op_error``

    def __str__(self) -> str:
        return printable_text(super().__str__())


#: The name that programs written for Apache MXNet catch.
MXNetError = OpError


class AttrError(OpError, ValueError):
    """An attribute is missing, unknown, of the wrong type or out of range."""


class ArgumentError(OpError, TypeError, ValueError):
    """Inputs are missing, too many, duplicate, unknown, or no tensors."""


class UnusedError(ArgumentError, AssertionError):
    """The body of a loop does not use what the loop hands it; MXNet asserts that."""


class ShapeError(OpError, ValueError):
    """Shapes do not fit each other or the operator."""


class SubscriptError(OpError, IndexError, ValueError):
    """A subscript does not fit its array: out of range, a mask of another shape, too many parts, or no index."""


class WrongNameError(OpError, KeyError):
    """A name is unknown, in use already, or not allowed."""

    def __str__(self) -> str:  # a KeyError shows its text in quotes
        return printable_text(Exception.__str__(self))


class NotSupportedForSparseNDArray(OpError):
    """A sparse array has no such method."""


class DTypeError(OpError, TypeError):
    """Dtypes do not fit each other or the operator."""


class InferenceError(OpError):
    """Shapes or dtypes cannot be found from what is known."""


class UnknownOperatorError(OpError, AttributeError, LookupError):
    """No operator of that name is registered."""


class NotDifferentiableError(OpError):
    """The gradient of an operator without one was requested."""


class DeviceError(OpError):
    """A device, its driver or its package is missing, or arrays live on different devices."""


class FileFormatError(OpError, ValueError):
    """A file is truncated, corrupted, absurd or of an unknown kind."""


class NonFiniteError(OpError, FloatingPointError):
    """A step has computed a NaN or an infinity from finite values, while checks for these are on.

    Attributes
    ----------
    inputs, outputs : list of Range
        The ranges of the step's inputs and outputs.
    """

    inputs: Sequence[Any] = ()
    outputs: Sequence[Any] = ()


class RankError(OpError):
    """Another process of a group has failed, has ended, has made another call, or has not arrived in time.

    Attributes
    ----------
    rank : int
        The failed rank among all processes; -1 if unknown.
    reason : str
        Known facts about the failure.
    """

    rank: int = -1
    reason: str = ""


class Where(tuple):
    """The line of user code that made something: ``(filename, line)``.

    Examples
    --------
    >>> str(Where(("net.py", 7)))
    'net.py:7'
    """

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self[0]}:{self[1]}"


#: An instruction: the code, and how far into it.
Place: TypeAlias = tuple[CodeType, int]

# Code outside of this folder is user code.
_INSIDE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# How the files of Python's own modules begin: those in its folder, which has libraries in site-packages, and those in
# the interpreter itself.
_PYTHONS = os.path.dirname(os.__file__) + os.sep, "<frozen "


def user_line() -> Where | None:
    """The innermost line of user code on the stack, or None when there is none.

    Returns
    -------
    Where or None
        Filename and line number of the nearest caller outside opreg's own packages; None while these are imported.
    """
    frame = user_frame(sys._getframe(2))  # the caller of this function belongs to opreg
    return None if frame is None else _line(frame.f_code.co_filename, frame.f_lineno)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of user code on the stack, from a frame on."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name not in _OURS:
            if not name.startswith(_INSIDE):
                return frame
            _OURS.add(name)
        frame = frame.f_back
    return None


def line_at(place: Place | None) -> Where | None:
    """The line of an instruction.

    Frames count theirs from the start of the code, which takes the longer the longer a script is. A recorder that
    notes many places and prints few, as a tape does, notes the instruction.
    """
    if place is None:
        return None
    code, offset = place
    lines = [line for start, end, line in code.co_lines() if start <= offset < end and line is not None]
    return _line(code.co_filename, lines[0] if lines else code.co_firstlineno)


def is_ours(function: object) -> bool:
    """Whether a function, a code object or the code of a frame is part of opreg, and so not user code."""
    code = function if isinstance(function, CodeType) else getattr(
        function, "f_code" if isinstance(function, FrameType) else "__code__", None)
    return code is not None and code.co_filename.startswith(_INSIDE)


@cached(4096)
def _line(name: str, number: int) -> Where | None:
    return None if name.startswith("<frozen importlib") else Where((name, number))


#: Files of opreg that were found on the stack. Each recorded call looks files up, a dozen times for layers inside of
#: layers.
_OURS: set[str] = set()


def is_users(traceback: TracebackType | None) -> bool:
    """Whether an exception with this traceback was raised by user code: neither by opreg nor by a library that its
    functions call."""
    while traceback is not None:
        frame = traceback.tb_frame
        if not frame.f_code.co_filename.startswith(_INSIDE) and not _is_of_library(frame):
            return True
        traceback = traceback.tb_next
    return False


def _is_of_library(frame: FrameType) -> bool:
    """Whether a frame belongs to Python's own modules, or to a library that our kernels call: an error in there is not
    one of user code."""
    name = frame.f_code.co_filename
    return frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES or (
        name.startswith(_PYTHONS) and "site-packages" not in name)


def family() -> str:
    """The last part of the name of the module of built-in operators that is being imported; empty if none is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    name = "" if frame is None else frame.f_globals.get("__name__", "")
    package, _, module = name.rpartition(".")
    return module if package.startswith("opreg.builtin") else ""


def note(error: BaseException, text: str) -> None:
    """Add a note to an exception, once, and let it leave as itself."""
    text = printable_text(text)
    if text not in getattr(error, "__notes__", ()) and not (isinstance(error, NonFiniteError) and text in str(error)):
        error.add_note(text)


#: Python's registry of warnings that were given, one for each file: keys of a registry have no file.
_WARNED: dict[str, dict[Any, Any]] = {}


def warn(text: str, category: type[Warning] = UserWarning, where: Where | None = None) -> None:
    """Warn about a line of user code, by default the innermost on the stack, whatever calls lie between. By the filters
    that Python begins with, one text is said once for a line.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("default")
    ...     for _ in range(2):
    ...         warn("something is odd", where=Where(("train.py", 3)))
    >>> [(str(each.message), each.lineno) for each in said]
    [('something is odd', 3)]
    """
    filename, line = where or user_line() or (__file__, 1)
    warnings.warn_explicit(printable_text(text), category, filename, line,
                           registry=_WARNED.setdefault(filename, {}))


#: Libraries that our own kernels call.
_LIBRARIES = frozenset({"numpy", "cupy", "numba", "scipy"})


def trim(error: BaseException) -> None:
    """Shorten a traceback: where frames of opreg lie between frames of user code, keep only the first of them.

    A user's method that fails is then seen right below the call that led to it. ``OPREG_FULL_TRACEBACK=1`` keeps them;
    where no user code follows, all stay.
    """
    entry = error.__traceback__
    if entry is None or os.environ.get("OPREG_FULL_TRACEBACK", "") not in ("", "0"):
        return
    inner = entry.tb_next
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_INSIDE):
        inner = inner.tb_next
    if inner is not None and not _is_of_library(inner.tb_frame):
        entry.tb_next = inner


class _Trimmed:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            trim(error)


#: ``with TRIMMED:`` surrounds calls of users' methods; see ``trim``. The frame of the function with this statement
#: stays.
TRIMMED = _Trimmed()


def as_op_error(error: Exception, text: str = "") -> OpError:
    """An exception of Python, NumPy or the system as an `OpError` that is still an instance of its own class; an
    `OpError` is returned unchanged.

    Parameters
    ----------
    error : Exception
        The exception.
    text : str
        The beginning of the message: the function of opreg in which the exception occurred, and its purpose.

    Examples
    --------
    >>> try:
    ...     raise as_op_error(IndexError("5 is too large"), "operator take")
    ... except IndexError as error:
    ...     error
    OpIndexError('operator take: 5 is too large')
    """
    if isinstance(error, OpError):
        return error
    kind = _as_error_class(next(base for base in type(error).__mro__ if _takes_message(base)))
    if isinstance(error, OSError):
        new = kind(*_constructor_arguments(error))
    else:
        new = kind(f"{text}: {error}" if text and str(error) else text or str(error))
    for text in getattr(error, "__notes__", ()):
        note(new, text)
    new.__suppress_context__ = True
    return new.with_traceback(error.__traceback__)


def _takes_message(kind: type) -> bool:
    """Whether exceptions of a class are constructed from a message, which is not so for all of NumPy's classes."""
    if issubclass(kind, (UnicodeError, BaseExceptionGroup)):
        return False
    return all(base.__module__ == "builtins" or "__init__" not in vars(base) for base in kind.__mro__)


@cached(64)
def _as_error_class(kind: type) -> type[OpError]:
    """A class of errors that derives from `OpError` and from the class of an exception."""
    return type(f"Op{kind.__name__}", (OpError,) if issubclass(OpError, kind) else (kind, OpError), {
        "__doc__": f"{kind.__name__} out of something of opreg's.", "__module__": OpError.__module__, "converted": True,
        "__reduce__": lambda self: (_with_class, (kind, *_constructor_arguments(self)))})


def _constructor_arguments(error: BaseException) -> tuple[object, ...]:
    """Arguments from which an exception can be made again."""
    filename, target = getattr(error, "filename", None), getattr(error, "filename2", None)
    if filename is None:
        return error.args
    return (*error.args[:2], filename) if target is None else (*error.args[:2], filename, None, target)


def _with_class(kind: type, *parts: object) -> OpError:
    return _as_error_class(kind)(*parts)


#: Errors of the system: memory, files or processes ran out, or a call was interrupted.
_PASSING = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EINTR})


def is_transient(error: BaseException) -> bool:
    """Whether the cause of an error may be gone at the next attempt, as for a lack of memory. Such an error must not
    be cached.

    Examples
    --------
    >>> too_many_files = OSError(errno.EMFILE, "Too many open files")
    >>> is_transient(MemoryError()), is_transient(too_many_files), is_transient(ValueError("no"))
    (True, True, False)
    """
    if isinstance(error, OSError):  # the loader of libraries gives the words alone
        return error.errno in _PASSING or any(os.strerror(code) in str(error) for code in _PASSING)
    return isinstance(error, (MemoryError, RecursionError))


def list_names(names: Sequence[str], most: int = 8) -> str:
    """Names as an error lists them: at most ``most`` of them, with the last one.

    Examples
    --------
    >>> list_names(["data", "weight"]), list_names([f"arg{i}" for i in range(1000)], 3)
    ('data, weight', 'arg0, arg1, ..., arg999')
    """
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join([*names[:most - 1], "...", names[-1]])


def other_count(names: Sequence[str], given: int, what: str = "input") -> str:
    """The part of an error about inputs, or other named things, that are too few or too many.

    Examples
    --------
    >>> other_count(["data", "weight"], 1), other_count(["data"], 2), other_count([], 1)
    ('expected 2 inputs (data, weight), got 1', 'expected 1 input (data), got 2', 'expected no inputs, got 1')
    >>> other_count(["data"], 2, "array")
    'expected 1 array (data), got 2'
    """
    listed = f"{len(names)} {what}{'s' * (len(names) > 1)} ({list_names(names)})" if names else f"no {what}s"
    return f"expected {listed}, got {given}"


def is_it(kind: type, method: str) -> str:
    """A question for errors about a missing method: whether a similar name in the class is meant. Empty without one.

    Examples
    --------
    >>> class Net:
    ...     def constrcut(self, x): ...
    >>> is_it(Net, "construct")
    "; is it 'constrcut'?"
    """
    base = dir(kind.__base__)
    near = nearest(method, [name for name in vars(kind) if name not in base])
    return f"; is it {near[0]!r}?" if near else ""


def nearest(word: str, options: Sequence[str]) -> list[str]:
    """The valid words that are near, at most three.

    Examples
    --------
    >>> nearest("wieght", ["data", "weight", "bias"])
    ['weight']
    >>> nearest("lr", ["momentum", "learning_rate"])
    ['learning_rate']
    """
    return list(_near(str(word), tuple(options)))


@cached(256)  # test runners and hasattr ask for the same missing name repeatedly
def _near(word: str, options: tuple[str, ...]) -> list[str]:
    import difflib  # slow to load, and programs without errors need none

    close = difflib.get_close_matches(word, options, n=3, cutoff=0.6)
    # A difference in case alone scores badly: Relu, relu. So do the initials of words: lr, learning_rate.
    short = word.lower()
    return close or [option for option in options if option.lower() == short or (
        "_" in option and "".join([part[:1] for part in option.lower().split("_")]) == short)][:3]


def did_you_mean(word: str, options: Iterable[str], *, limit: int = 12, unlisted: Iterable[str] = ()) -> str:
    """A sentence that offers the nearest valid words, or lists them when there are few.

    Words of ``unlisted`` are offered, too, but not listed.

    Examples
    --------
    >>> did_you_mean("wieght", ["data", "weight", "bias"])
    "Did you mean 'weight'? Valid: data, weight, bias."
    >>> did_you_mean("set_trian", ["weight"], unlisted=["set_train", "construct"])
    "Did you mean 'set_train'? Valid: weight."
    >>> did_you_mean("x", [])
    'There is nothing to choose from.'
    """
    words = list(dict.fromkeys(str(option) for option in options))
    offered = list(dict.fromkeys([*words, *unlisted]))
    if not offered:
        return "There is nothing to choose from."
    close = nearest(word, offered)
    parts = []
    if close:
        parts.append("Did you mean " + " or ".join(repr(option) for option in close) + "?")
    if 0 < len(words) <= limit:
        parts.append("Valid: " + ", ".join(words) + ".")
    return " ".join(parts) or f"None of {len(offered)} valid names is near it."


def refuse_misspelt(what: str, given: Iterable[str], names: Sequence[str], *, may_miss: bool = False
                    ) -> None:
    """Raise an error for an unknown name that may be a misspelt missing one; warn of other unknown names.

    Programs give several graphs one dict, so a name that is like none is ignored. With ``may_miss`` the caller expects
    that names are missing, as those of a new last layer, and every unknown name is ignored.

    Raises
    ------
    ArgumentError
        A name is near one of ``names`` that is not given.

    Examples
    --------
    >>> refuse_misspelt("args", ["data", "wieght"], ["data", "weight"])
    Traceback (most recent call last):
    opreg.errors.ArgumentError: args: there is no 'wieght' in the graph. Did you mean 'weight'? Valid: data, weight.
    """
    given_names, valid = dict.fromkeys(given), dict.fromkeys(names)
    unknown = [name for name in given_names if name not in valid]
    missing = [] if may_miss else [name for name in valid if name not in given_names]
    for name in unknown:
        if nearest(name, missing):
            raise ArgumentError(f"{what}: there is no {name!r} in the graph. {did_you_mean(name, names)}")
    if unknown:
        listed = ", ".join([repr(name) for name in unknown[:6]])
        if len(unknown) == 1:
            text = f"there is no {listed} in the graph: it is ignored. {did_you_mean(unknown[0], names)}"
        else:
            more = ", …" if len(unknown) > 6 else ""
            text = f"the graph does not have {listed}{more}: {len(unknown)} names are ignored"
        warn(f"{what}: {text}")


def refuse_keywords(function: str, keywords: Iterable[str], valid: Iterable[str]) -> None:
    """Refuse keywords that a function has no use for, with the nearest one that it has.

    Raises
    ------
    ArgumentError
        If there are keywords.

    Examples
    --------
    >>> refuse_keywords("zeros", {"dtyp": "int32"}, ("shape", "dtype"))
    Traceback (most recent call last):
    opreg.errors.ArgumentError: zeros() takes no keyword 'dtyp'. Did you mean 'dtype'? Valid: shape, dtype.
    """
    for word in keywords:
        raise ArgumentError(unknown_keyword(function, word, valid))


def unknown_keyword(owner: str, word: str, valid: Iterable[str]) -> str:
    """The text of an error for a keyword that a function or constructor does not take.

    Examples
    --------
    >>> unknown_keyword("Dense", "bias", ["has_bias"])
    "Dense() takes no keyword 'bias'. Did you mean 'has_bias'? Valid: has_bias."
    """
    return f"{owner}() takes no keyword {word!r}. {did_you_mean(word, valid)}"


def missing_arguments(owner: str, missing: Sequence[str], names: Sequence[str]) -> str:
    """The text of an error for arguments that a call of a function or constructor lacks.

    Examples
    --------
    >>> missing_arguments("Dense", ["out_channels"], ["in_channels", "out_channels"])
    'Dense() needs out_channels. It takes in_channels, out_channels'
    """
    return f"{owner}() needs {list_names(missing)}. It takes {list_names(names)}"


def __dir__() -> list[str]:
    return sorted(__all__)

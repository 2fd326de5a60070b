"""User code: tells the user's frames, functions and modules from those of opreg, Python and numeric libraries."""

from __future__ import annotations

import os
import sys
import sysconfig
import types
import weakref

from ..core.array_module import active
from ..core.attrs import Schema
from ..core.cache import cached
from ..errors import is_ours

__all__ = ["LIBRARIES", "is_side_effect", "is_of_library", "is_standard", "is_standard_code", "is_user_code",
           "is_user_module"]

#: Packages that are no user code, besides the standard library.
LIBRARIES = frozenset({"opreg", "numpy", "cupy", "numba", "scipy"})
_STANDARD = tuple({os.path.join(sysconfig.get_paths()[name], "") for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_EXAMPLES = os.path.join("opreg", "examples", "")
_FINALIZER = weakref.finalize.__call__.__code__
_ANNOTATIONS = Schema.read.__code__


@cached(4096)
def _is_user_file(name: str) -> bool:
    """Whether a file is the user's: not opreg's, nor a numeric library's, nor Python's."""
    installed = next((name.index(folder) + len(folder) for folder in _INSTALLED if folder in name), None)
    if installed is not None:
        return name[installed:].split(os.sep)[0] not in LIBRARIES
    return not name.startswith(("<frozen", *_STANDARD))


def is_user_code(code: types.CodeType) -> bool:
    """Whether this code is the user's."""
    return _EXAMPLES in code.co_filename or (not is_ours(code) and _is_user_file(code.co_filename))


def is_side_effect(frame: types.FrameType | None, outside: types.FrameType | None) -> bool:
    """Whether code runs as a side effect inside the frame ``outside``: since an object is deleted, a module is
    imported, or annotations of an operator are evaluated. Any call may cause these."""
    while frame is not None and frame is not outside:
        code = frame.f_code
        if code is _FINALIZER or code is _ANNOTATIONS or code.co_name == "__del__" or code.co_filename.startswith(
                "<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def is_of_library(code: types.CodeType, name: object) -> bool:
    """Whether code in a module of this name belongs to a library that its file does not name: code of back ends, and
    code generated from text, as for NamedTuple."""
    if not isinstance(name, str):
        return False
    if code.co_filename.startswith("<") and (name.startswith("namedtuple_") or not is_user_module(name)):
        return True
    return any((name + ".").startswith(module + ".") for backend in active() for module in backend.modules)


def is_user_module(name: object) -> bool:
    """Whether a module of this name is the user's."""
    if not isinstance(name, str) or name.startswith("opreg.examples"):
        return True
    package = name.partition(".")[0]
    return package not in LIBRARIES and package not in sys.stdlib_module_names


def is_standard(name: object) -> bool:
    """Whether a module of this name belongs to the standard library."""
    return isinstance(name, str) and name.partition(".")[0] in sys.stdlib_module_names


def is_standard_code(code: types.CodeType) -> bool:
    """Whether code belongs to the standard library."""
    return code.co_filename.startswith(_STANDARD)

"""oneDNN, version 3, through ctypes: how the library is found, its functions and its objects.

Only this module loads the library, at first use. It is searched for in the environment of this Python, where the extra
``opreg[fast]`` installs it, then by the system. Without it ``missing`` gives a reason, and all other kernels work.

It has threads of its own, as many as ``OMP_NUM_THREADS`` says. They and those of NumPy's BLAS slow each other down,
since both wait for work by spinning. So BLAS's threads are not used for a while after this library has computed
(``blas.report_other_threads``), and those of libgomp, with which most builds come, spin for a shorter time than by
default.
"""

from __future__ import annotations

import ctypes
import functools
import os
import site
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from typing import Any, NamedTuple

from opreg.core.spec import Shape
from opreg.errors import OpError, as_op_error, is_transient

from .. import blas

__all__ = ["Argument", "Library", "Object", "OneThread", "OpenMP", "any_layout", "report_computation", "forked",
           "library", "missing", "numbers", "openmp", "plain", "version"]

# Constants of the library's interface, fixed for version 3.
CPU, F32, ANY, IN_ORDER = 1, 3, 1, 1
STATUS = {1: "out of memory", 2: "invalid arguments", 3: "not implemented", 5: "runtime error", 6: "not required"}


# The number of times that threads of libgomp check for work before they sleep. The default is 300,000 times, meant to
# take 3 ms. On Intel's processors, where the pause instruction takes 140 cycles, this is 15 ms after every primitive,
# in which no other thread gets the core.
_LOOKS = 10_000
# If the user has set one of these, nothing is changed.
_SAID = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


# ------------------------------------------------------------------------------------------- the library


@contextmanager
def _restless() -> Iterator[None]:
    """Set how long libgomp's threads spin, while a library is loaded: libgomp reads this once, when it is loaded."""
    if any(name in os.environ for name in _SAID):
        yield
        return
    os.environ[_SAID[0]] = str(_LOOKS)
    try:
        yield
    finally:
        os.environ.pop(_SAID[0], None)


class _Version(ctypes.Structure):
    _fields_ = [("major", c_int), ("minor", c_int), ("patch", c_int)]


class Argument(ctypes.Structure):
    """An argument of a primitive: the code of the parameter, and its memory."""

    _fields_ = [("arg", c_int), ("memory", c_void_p)]


_DIMS = POINTER(c_int64)
_PADS = [_DIMS] * 4  # strides, dilations, padding before and after
_FUNCTIONS: dict[str, list[type]] = {
    "engine_create": [c_void_p, c_int, c_size_t],
    "stream_create": [c_void_p, c_void_p, c_uint],
    "stream_wait": [c_void_p],
    "memory_desc_create_with_strides": [c_void_p, c_int, _DIMS, c_int, _DIMS],
    "memory_desc_create_with_tag": [c_void_p, c_int, _DIMS, c_int, c_int],
    "memory_desc_equal": [c_void_p, c_void_p],
    "memory_desc_get_size": [c_void_p],
    "memory_desc_destroy": [c_void_p],
    "memory_create": [c_void_p, c_void_p, c_void_p, c_void_p],
    "memory_set_data_handle": [c_void_p, c_void_p],
    "memory_destroy": [c_void_p],
    "convolution_forward_primitive_desc_create":
        [c_void_p, c_void_p, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p, *_PADS, c_void_p],
    "convolution_backward_data_primitive_desc_create":
        [c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_void_p, *_PADS, c_void_p, c_void_p],
    "convolution_backward_weights_primitive_desc_create":
        [c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p, *_PADS, c_void_p, c_void_p],
    "pooling_forward_primitive_desc_create":
        [c_void_p, c_void_p, c_int, c_int, c_void_p, c_void_p, *[_DIMS] * 5, c_void_p],
    "pooling_backward_primitive_desc_create":
        [c_void_p, c_void_p, c_int, c_void_p, c_void_p, *[_DIMS] * 5, c_void_p, c_void_p],
    "batch_normalization_forward_primitive_desc_create":
        [c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_float, c_uint, c_void_p],
    "batch_normalization_backward_primitive_desc_create":
        [c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_float, c_uint, c_void_p, c_void_p],
    "matmul_primitive_desc_create": [c_void_p] * 7,
    "primitive_attr_create": [c_void_p],
    "primitive_attr_set_post_ops": [c_void_p, c_void_p],
    "primitive_attr_set_scratchpad_mode": [c_void_p, c_int],
    "primitive_attr_destroy": [c_void_p],
    "post_ops_create": [c_void_p],
    "post_ops_append_binary": [c_void_p, c_int, c_void_p],
    "post_ops_destroy": [c_void_p],
    "reorder_primitive_desc_create": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
    "primitive_desc_query": [c_void_p, c_int, c_int, c_void_p],
    "primitive_desc_query_md": [c_void_p, c_int, c_int],
    "primitive_desc_destroy": [c_void_p],
    "primitive_create": [c_void_p, c_void_p],
    "primitive_execute": [c_void_p, c_void_p, c_int, POINTER(Argument)],
    "primitive_destroy": [c_void_p],
}
_RESULTS = {"memory_desc_get_size": c_size_t, "primitive_desc_query_md": c_void_p}


def _candidates() -> Iterator[str]:
    """Paths where the library may be, best first."""
    name = {"win32": "dnnl.dll", "darwin": "libdnnl.3.dylib"}.get(sys.platform, "libdnnl.so.3")
    for root in (sys.prefix, site.USER_BASE):
        for folder in ("lib", "Library/bin"):
            path = os.path.join(root or sys.prefix, folder, name)
            if os.path.isfile(path):
                yield path
    yield name
    # on other systems find_library runs compilers, and finds only files that loading by name finds, too
    if sys.platform in ("win32", "darwin"):
        from ctypes.util import find_library

        system = find_library("dnnl")
        if system:
            yield system


class Library:
    """The library: its functions by their names without the prefix, its engine and its stream."""

    def __init__(self, path: str):
        with _restless():
            self.shared = ctypes.CDLL(path)
        version = self.shared.dnnl_version
        version.restype, version.argtypes = POINTER(_Version), []
        self.version = version().contents
        if self.version.major != 3:
            raise OSError(f"version {self.version.major}, expected 3")
        self.functions: dict[str, Callable[..., Any]] = {}
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self.shared, f"dnnl_{name}")
            function.argtypes, function.restype = arguments, _RESULTS.get(name, c_int)
            self.functions[name] = function
        self.engine = self.create("engine_create", CPU, 0)
        self.stream = self.create("stream_create", self.engine, IN_ORDER)

    def check(self, name: str, *args: object) -> None:
        """Call a function of the library; raises an exception for an error status."""
        status = self.functions[name](*args)
        if status:
            text = f"oneDNN: {name}: {STATUS.get(status, f'status {status}')}"
            raise as_op_error(MemoryError(text)) if status == 1 else OpError(text)

    def create(self, name: str, *args: object) -> c_void_p:
        """The object that a function of the library creates."""
        pointer = c_void_p()
        self.check(name, byref(pointer), *args)
        return pointer


@functools.cache
def library() -> Library | str:
    """The library, or the reason why there is none."""
    reasons = []
    for path in _candidates():
        try:
            return Library(path)
        except (OSError, AttributeError, OpError) as error:
            if is_transient(error):
                raise
            if os.path.isfile(path):
                reasons.append(f"{path}: {error}")
    return f"oneDNN does not load: {reasons[0]}" if reasons else "oneDNN was not found"


def version() -> str:
    """The version of the loaded library, or the reason why there is none."""
    loaded = library()
    return loaded if isinstance(loaded, str) else ".".join(str(getattr(loaded.version, part)) for part in
                                                           ("major", "minor", "patch"))


def missing() -> str | None:
    """The reason why oneDNN is not used, or None if it is."""
    if _FORKED:
        return "this process was forked, which the library's threads do not survive"
    loaded = library()
    return loaded if isinstance(loaded, str) else None


class OpenMP(NamedTuple):
    """Functions that read and set how many threads OpenMP uses for the calling thread's work."""

    most: Callable[[], int]
    change: Callable[[int], None]


class OneThread:
    """Restricts the library to the calling thread, within a ``with`` block."""

    __slots__ = ("openmp", "before")

    def __init__(self, openmp: OpenMP):
        self.openmp = openmp

    def __enter__(self) -> None:
        self.before = self.openmp.most()
        if self.before > 1:
            self.openmp.change(1)

    def __exit__(self, *error: object) -> None:
        if self.before > 1:
            self.openmp.change(self.before)


@functools.cache
def openmp() -> OpenMP | None:
    """OpenMP as the library uses it, or None if its threads are not OpenMP's."""
    loaded = library()
    shared = loaded.shared if isinstance(loaded, Library) else None
    most, change = [getattr(shared, f"omp_{name}", None) for name in ("get_max_threads", "set_num_threads")]
    if most is None or change is None:
        return None
    most.restype, most.argtypes, change.restype, change.argtypes = c_int, [], None, [c_int]
    return OpenMP(most, change)


def report_computation() -> None:
    """Report to BLAS that the library has just computed, unless the calling thread did so alone: then none spins."""
    libgomp = openmp()
    if libgomp is None or libgomp.most() > 1:
        blas.report_other_threads()


_FORKED: list[bool] = []


def forked() -> bool:
    """Whether this process is a forked child, where the library must not run, since it would wait for threads that do
    not exist there."""
    return bool(_FORKED)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKED.append(True))


class Object:
    """An object of the library, destroyed with its last reference; it holds a reference to ``using`` until then."""

    __slots__ = ("pointer", "using", "_destroy")

    def __init__(self, library: Library, kind: str, create: str, *args: object, using: object = None):
        self.pointer = c_void_p()
        self._destroy = library.functions[f"{kind}_destroy"]
        self.using = using
        self.pointer = library.create(create, *args)

    def __del__(self) -> None:
        if self.pointer.value is not None:
            self._destroy(self.pointer)


# --------------------------------------------------------------------------------------------- descriptions


def numbers(values: Sequence[int]) -> ctypes.Array[c_int64]:
    """Integers as a C array for the library."""
    return (c_int64 * len(values))(*values)


def any_layout(library: Library, shape: Shape) -> Object:
    """The description of an array whose layout a primitive may choose."""
    return Object(library, "memory_desc", "memory_desc_create_with_tag", len(shape), numbers(shape), F32, ANY)


def plain(library: Library, shape: Shape, strides: Shape) -> Object:
    """The description of an array with strides, in elements."""
    return Object(library, "memory_desc", "memory_desc_create_with_strides", len(shape), numbers(shape), F32,
                  numbers(strides))

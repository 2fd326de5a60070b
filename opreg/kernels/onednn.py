"""Convolutions, pooling and products of matrices by oneDNN, version 3, through ctypes, where the library is found.

The library is met here alone and looked for at first use: in the environment of this Python, where the extra
``opreg[fast]`` puts it, then wherever the system has it. Without it ``missing`` says so and every other kernel works.
It has threads of its own, as many as ``OMP_NUM_THREADS`` says. They and those of
NumPy's BLAS get into each other's way, since either wait for work without letting go of their processors; so where
this library convolves it multiplies matrices, too.

A ``Work`` is one primitive, with what brings its operands to the layouts it is fast in and back: those are chosen by
the library, while arrays come with any strides. It holds every object of the library it uses, and the arrays whose
addresses it was given, as long as it lives.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import site
import sys
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, byref, c_char, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import OpError

__all__ = ["Convolution", "Pooling", "Part", "Work", "missing", "possible", "forked", "matmul", "SMALL"]

Shape = tuple[int, ...]
Part = Literal["forward", "data", "weight"]

# Numbers of the library's interface, fixed for version 3.
CPU, F32, ANY, IN_ORDER, DIRECT = 1, 3, 1, 1, 1
TRAINING, INFERENCE = 64, 96
MAX, AVG_ALL, AVG_INSIDE = 0x1FF, 0x2FF, 0x3FF
WORKSPACE = 64
SRC, DST, WEIGHTS, BIAS, DIFF_SRC, DIFF_DST, DIFF_WEIGHTS = 1, 17, 33, 41, 129, 145, 161
#: How a primitive is asked which layout it wants for an argument.
QUERY = {SRC: 129, DIFF_SRC: 130, WEIGHTS: 131, BIAS: 131, DIFF_WEIGHTS: 132, DST: 133, DIFF_DST: 134, WORKSPACE: 135}
QUERY_NAME = 8  # of the implementation
STATUS = {1: "out of memory", 2: "invalid arguments", 3: "not implemented", 5: "runtime error", 6: "not required"}


# ------------------------------------------------------------------------------------------- the library


class _Version(ctypes.Structure):
    _fields_ = [("major", c_int), ("minor", c_int), ("patch", c_int)]


class _Argument(ctypes.Structure):
    _fields_ = [("arg", c_int), ("memory", c_void_p)]


_DIMS = POINTER(c_int64)
_PADS = [_DIMS] * 4  # strides, dilations, padding before and after
_FUNCTIONS: dict[str, list[Any]] = {
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
    "reorder_primitive_desc_create": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
    "primitive_desc_query": [c_void_p, c_int, c_int, c_void_p],
    "primitive_desc_query_md": [c_void_p, c_int, c_int],
    "primitive_desc_destroy": [c_void_p],
    "primitive_create": [c_void_p, c_void_p],
    "primitive_execute": [c_void_p, c_void_p, c_int, POINTER(_Argument)],
    "primitive_destroy": [c_void_p],
    "sgemm": [c_char, c_char, *[c_int64] * 3, c_float, *[c_void_p, c_int64] * 2, c_float, c_void_p, c_int64],
}
_RESULTS = {"memory_desc_get_size": c_size_t, "primitive_desc_query_md": c_void_p}


def _candidates() -> Iterator[str]:
    """Where the library may be, best first."""
    name = {"win32": "dnnl.dll", "darwin": "libdnnl.3.dylib"}.get(sys.platform, "libdnnl.so.3")
    for root in (sys.prefix, site.USER_BASE):
        for folder in ("lib", "Library/bin"):
            path = Path(root or sys.prefix, folder, name)
            if path.is_file():
                yield str(path)
    yield name
    found = ctypes.util.find_library("dnnl")
    if found:
        yield found


class _Library:
    """The functions of the library under their names without the prefix, its engine and its stream."""

    def __init__(self, path: str):
        self.shared = ctypes.CDLL(path)
        version = self.shared.dnnl_version
        version.restype, version.argtypes = POINTER(_Version), []
        self.version = version().contents
        if self.version.major != 3:
            raise OSError(f"version {self.version.major}, expected 3")
        self.functions: dict[str, Any] = {}
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self.shared, f"dnnl_{name}")
            function.argtypes, function.restype = arguments, _RESULTS.get(name, c_int)
            self.functions[name] = function
        self.engine = self.create("engine_create", CPU, 0)
        self.stream = self.create("stream_create", self.engine, IN_ORDER)

    def check(self, name: str, *args: Any) -> None:
        """Call a function of the library; its errors become exceptions."""
        status = self.functions[name](*args)
        if status:
            raise OpError(f"oneDNN: {name}: {STATUS.get(status, f'status {status}')}")

    def create(self, name: str, *args: Any) -> c_void_p:
        """What a function of the library makes."""
        made = c_void_p()
        self.check(name, byref(made), *args)
        return made


@functools.cache
def _library() -> _Library | str:
    """The library, or why there is none."""
    reasons = []
    for path in _candidates():
        try:
            return _Library(path)
        except (OSError, AttributeError, OpError) as error:
            if os.path.isfile(path):
                reasons.append(f"{path}: {error}")
    return f"oneDNN does not load: {reasons[0]}" if reasons else "oneDNN was not found"


def missing() -> str | None:
    """Why oneDNN is not used, or None where it is there."""
    if _FORKED:
        return "this process was forked, which the library's threads do not survive"
    found = _library()
    return found if isinstance(found, str) else None


_FORKED: list[bool] = []


def forked() -> bool:
    """Whether this process is a forked child, in which the library must not run: it would wait for lost threads."""
    return bool(_FORKED)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKED.append(True))


class _Object:
    """An object of the library, released with the last reference to it; ``using`` is kept alive as long."""

    __slots__ = ("pointer", "using", "_destroy")

    def __init__(self, library: _Library, kind: str, create: str, *args: Any, using: Any = None):
        self.pointer = c_void_p()
        self._destroy = library.functions[f"{kind}_destroy"]
        self.using = using
        self.pointer = library.create(create, *args)

    def __del__(self) -> None:
        if self.pointer.value is not None:
            self._destroy(self.pointer)


# -------------------------------------------------------------------------------------------- geometry


class Convolution(NamedTuple):
    """Shapes of data (N, C, *size), weight (O, C / groups, *kernel) and output (N, O, *places), one number an axis
    of stride, dilation and padding, how many groups, and whether there is a bias."""

    x: Shape
    w: Shape
    y: Shape
    stride: Shape
    dilate: Shape
    pad: Shape
    groups: int = 1
    bias: bool = False

    def shapes(self, part: Part) -> tuple[Shape, ...]:
        """Of the arrays that a part works on: data, weight, output and, with one, bias."""
        return (self.x, self.w, self.y, self.w[:1]) if self.bias else (self.x, self.w, self.y)


class Pooling(NamedTuple):
    """Shapes of data (N, C, *size) and output (N, C, *places), one number an axis of kernel, stride and padding, and
    what is computed: ``max``, ``all`` for averages that count the padding, ``inside`` for those that do not."""

    x: Shape
    y: Shape
    kernel: Shape
    stride: Shape
    pad: Shape
    kind: str

    def shapes(self, part: Part) -> tuple[Shape, ...]:
        """Of the arrays that a part works on: data and output, or their gradients and, for maxima, the data."""
        return (self.x, self.y, self.x) if part == "data" and self.kind == "max" else (self.x, self.y)


Geometry = Convolution | Pooling
_Description = tuple[_Object, list[tuple[int, int | str]]]


def _numbers(values: Sequence[int]) -> Any:
    return (c_int64 * len(values))(*values)


def _any_layout(library: _Library, shape: Shape) -> _Object:
    return _Object(library, "memory_desc", "memory_desc_create_with_tag", len(shape), _numbers(shape), F32, ANY)


def _plain(library: _Library, shape: Shape, strides: Shape) -> _Object:
    return _Object(library, "memory_desc", "memory_desc_create_with_strides", len(shape), _numbers(shape), F32,
                   _numbers(strides))


def _grouped(shape: Shape, strides: Shape, groups: int) -> tuple[Shape, Shape]:
    """Shape and strides of the weight with an axis of groups in front, where there are any."""
    if groups == 1:
        return shape, strides
    outs = shape[0] // groups
    return (groups, outs, *shape[1:]), (outs * strides[0], *strides)


@functools.lru_cache(1024)
def possible(part: Part, geometry: Geometry, strides: tuple[Shape, ...]) -> str | None:
    """Why the library does not compute a part of a convolution or pooling, or None where it does."""
    library = _library()
    if isinstance(library, str):
        return library
    if any(0 in shape for shape in geometry.shapes(part)):
        return "there are no numbers"
    try:
        description = _describe(library, part, geometry, strides)[-1][0]
        name = ctypes.c_char_p()
        library.check("primitive_desc_query", description.pointer, QUERY_NAME, 0, byref(name))
    except OpError as error:
        return str(error)
    found = (name.value or b"").decode(errors="replace")
    # Its fallbacks: columns and a product of matrices, as other kernels do them, or plain loops.
    return f"oneDNN has only {found} for it" if "gemm" in found or found.startswith(("ref", "simple")) else None


def _describe(library: _Library, part: Part, geometry: Geometry, strides: tuple[Shape, ...]) -> list[_Description]:
    """The primitives that compute a part, in order, and their operands: arrays by number, buffers by name."""
    if isinstance(geometry, Pooling):
        return _describe_pooling(library, part, geometry, strides)
    weight = _grouped(geometry.w, geometry.w, geometry.groups)[0]
    x, w, y = [_any_layout(library, shape) for shape in (geometry.x, weight, geometry.y)]
    b = _any_layout(library, geometry.w[:1]) if geometry.bias else None
    words = [_numbers(numbers) for numbers in
             (geometry.stride, [d - 1 for d in geometry.dilate], geometry.pad, geometry.pad)]
    forward = _Object(library, "primitive_desc", "convolution_forward_primitive_desc_create", library.engine, TRAINING,
                      DIRECT, x.pointer, w.pointer, None if b is None else b.pointer, y.pointer, *words, None)
    if part == "forward":
        bias = [(BIAS, 3)] if geometry.bias else []
        return [(forward, [(SRC, 0), (WEIGHTS, 1), (DST, 2), *bias])]
    if part == "data":
        found = _Object(library, "primitive_desc", "convolution_backward_data_primitive_desc_create", library.engine,
                        DIRECT, x.pointer, w.pointer, y.pointer, *words, forward.pointer, None)
        return [(found, [(DIFF_SRC, 0), (WEIGHTS, 1), (DIFF_DST, 2)])]
    found = _Object(library, "primitive_desc", "convolution_backward_weights_primitive_desc_create", library.engine,
                    DIRECT, x.pointer, w.pointer, None, y.pointer, *words, forward.pointer, None)
    return [(found, [(SRC, 0), (DIFF_WEIGHTS, 1), (DIFF_DST, 2)])]


def _describe_pooling(library: _Library, part: Part, geometry: Pooling, strides: tuple[Shape, ...]
                      ) -> list[_Description]:
    x, y = [_plain(library, *each) for each in zip((geometry.x, geometry.y), strides)]
    after = [max(0, (q - 1) * s + k - n - p) for n, q, k, s, p in
             zip(geometry.x[2:], geometry.y[2:], geometry.kernel, geometry.stride, geometry.pad)]
    words = [_numbers(numbers) for numbers in (geometry.stride, geometry.kernel, [0] * len(after), geometry.pad, after)]
    algorithm = {"max": MAX, "all": AVG_ALL, "inside": AVG_INSIDE}[geometry.kind]
    forward = _Object(library, "primitive_desc", "pooling_forward_primitive_desc_create", library.engine,
                      INFERENCE if part == "forward" else TRAINING, algorithm, x.pointer, y.pointer, *words, None)
    if part == "forward":
        return [(forward, [(SRC, 0), (DST, 1)])]
    backward = _Object(library, "primitive_desc", "pooling_backward_primitive_desc_create", library.engine, algorithm,
                       x.pointer, y.pointer, *words, forward.pointer, None)
    if geometry.kind != "max":
        return [(backward, [(DIFF_SRC, 0), (DIFF_DST, 1)])]
    # Only a forward pass finds out which number of a window is its maximum.
    return [(forward, [(SRC, 2), (DST, "maxima"), (WORKSPACE, "places")]),
            (backward, [(DIFF_SRC, 0), (DIFF_DST, 1), (WORKSPACE, "places")])]


# ------------------------------------------------------------------------------------------------- work


class Work:
    """A part of a convolution or pooling, over arrays of one geometry and strides.

    Parameters
    ----------
    part : str
        ``forward``, ``data`` for the gradient of the data, ``weight`` for that of the weight.
    geometry : Convolution or Pooling
    strides : tuple of tuple of int
        Of each array, in numbers.

    Attributes
    ----------
    nbytes : list of int
        The buffers it needs.
    """

    def __init__(self, part: Part, geometry: Geometry, strides: tuple[Shape, ...]):
        library = _library()
        if isinstance(library, str):
            raise OpError(library)
        self._library = library
        self.nbytes: list[int] = []
        self._buffers: list[_Object] = []
        self._held: Any = None
        self._arrays: list[tuple[_Object, _Object]] = []  # their layouts and memories
        groups = geometry.groups if isinstance(geometry, Convolution) else 1
        for i, (shape, steps) in enumerate(zip(geometry.shapes(part), strides, strict=True)):
            plain = _plain(library, *(_grouped(shape, steps, groups) if i == 1 else (shape, steps)))
            self._arrays.append((plain, self._memory(plain.pointer, plain)))
        named: dict[str, _Object] = {}
        self._steps: list[tuple[_Object, int, Any]] = []
        for description, operands in _describe(library, part, geometry, strides):
            after: list[tuple[_Object, int, Any]] = []
            memories = []
            for argument, which in operands:
                wanted = self._wanted(description, argument)
                if isinstance(which, str):
                    if which not in named:
                        named[which] = self._buffer(wanted, description)
                    memory = named[which]
                else:
                    memory = self._inner(wanted, description, which, argument, after)
                memories.append((argument, memory))
            self._steps.append(self._step(description, memories))
            self._steps += after

    def _wanted(self, description: _Object, argument: int) -> c_void_p:
        """The layout that a primitive wants for an argument; it belongs to the description."""
        wanted = self._library.functions["primitive_desc_query_md"](description.pointer, QUERY[argument],
                                                                    1 if argument == BIAS else 0)
        if wanted is None:
            raise OpError("oneDNN: a primitive does not say which layout it wants")
        return c_void_p(wanted)

    def _memory(self, layout: c_void_p, using: Any) -> _Object:
        return _Object(self._library, "memory", "memory_create", layout, self._library.engine, None, using=using)

    def _buffer(self, layout: c_void_p, using: Any) -> _Object:
        self.nbytes.append(self._library.functions["memory_desc_get_size"](layout))
        self._buffers.append(self._memory(layout, using))
        return self._buffers[-1]

    def _inner(self, wanted: c_void_p, description: _Object, which: int, argument: int, after: list) -> _Object:
        """An array in the layout wanted: its own memory, or a buffer that it is copied to or from."""
        plain, memory = self._arrays[which]
        if self._library.functions["memory_desc_equal"](plain.pointer, wanted):
            return memory
        inner = self._buffer(wanted, description)
        if argument in (DST, DIFF_SRC, DIFF_WEIGHTS):
            after.append(self._reorder(wanted, inner, plain.pointer, memory))
        else:
            self._steps.append(self._reorder(plain.pointer, memory, wanted, inner))
        return inner

    def _step(self, description: _Object, operands: Sequence[tuple[int, _Object]]) -> tuple[_Object, int, Any]:
        """A primitive, how many arguments it has, and they."""
        primitive = _Object(self._library, "primitive", "primitive_create", description.pointer, using=operands)
        arguments = (_Argument * len(operands))(*[_Argument(argument, memory.pointer)
                                                  for argument, memory in operands])
        return primitive, len(operands), arguments

    def _reorder(self, source: c_void_p, a: _Object, target: c_void_p, b: _Object) -> tuple[_Object, int, Any]:
        engine = self._library.engine
        description = _Object(self._library, "primitive_desc", "reorder_primitive_desc_create", source, engine, target,
                              engine, None)
        return self._step(description, [(SRC, a), (DST, b)])

    def bind(self, arrays: Sequence[np.ndarray], buffers: Sequence[np.ndarray]) -> Callable[[], None]:
        """A function that computes over these arrays.

        Parameters
        ----------
        arrays : sequence of float32 arrays
            Of the geometry's shapes and the strides that were declared, in order; one of them is written.
        buffers : sequence of arrays
            Of ``nbytes`` bytes; their content is nothing between two calls.

        Raises
        ------
        OpError
            For arrays of other sizes.
        """
        for (plain, memory), array in zip(self._arrays, arrays, strict=True):
            if array.dtype != np.float32 or array.nbytes != self._library.functions["memory_desc_get_size"](
                    plain.pointer):
                raise OpError(f"oneDNN: an array of {array.nbytes} bytes of {array.dtype} does not fit")
            self._place(memory, array)
        for memory, buffer, nbytes in zip(self._buffers, buffers, self.nbytes, strict=True):
            if buffer.nbytes < nbytes:
                raise OpError(f"oneDNN: a buffer of {buffer.nbytes} bytes, expected {nbytes}")
            self._place(memory, buffer)
        self._held = (*arrays, *buffers)
        return self.run

    def _place(self, memory: _Object, array: np.ndarray) -> None:
        self._library.check("memory_set_data_handle", memory.pointer, array.__array_interface__["data"][0])

    def release(self) -> None:
        """Let go of the arrays; ``bind`` gives it others."""
        self._held = None

    def run(self) -> None:
        """Compute."""
        if self._held is None:
            raise OpError("oneDNN: no arrays are bound")
        library = self._library
        for primitive, count, arguments in self._steps:
            library.check("primitive_execute", primitive.pointer, library.stream, count, arguments)
        library.check("stream_wait", library.stream)


# ------------------------------------------------------------------------------------ products of matrices

#: Multiplications up to which NumPy's BLAS stays in the calling thread, and costs less to call.
SMALL = 1 << 18


def _operand(a: np.ndarray) -> tuple[bytes, int, np.ndarray]:
    """How BLAS is told of a matrix: transposed or not, how far rows are apart, and its array."""
    rows, columns = a.strides
    m, n = a.shape
    if columns == 4 and rows % 4 == 0 and rows >= 4 * n:
        return b"N", rows // 4, a
    if rows == 4 and columns % 4 == 0 and columns >= 4 * m:
        return b"T", columns // 4, a
    return b"N", n, np.ascontiguousarray(a)


def _sgemm(library: _Library, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    transpose_a, step_a, a = _operand(a)
    transpose_b, step_b, b = _operand(b)
    m, n = out.shape
    library.check("sgemm", transpose_a, transpose_b, m, n, a.shape[1], 1.0, a.__array_interface__["data"][0], step_a,
                  b.__array_interface__["data"][0], step_b, 0.0, out.__array_interface__["data"][0], n)


def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``numpy.matmul``, by this library for large matrices of float32.

    Examples
    --------
    >>> matmul(np.ones((2, 3)), np.ones((3, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if (min(a.ndim, b.ndim) < 2 or a.shape[-2] * a.shape[-1] * b.shape[-1] <= SMALL or a.shape[-1] != b.shape[-2]
            or not a.dtype == b.dtype == np.float32 or missing() is not None):
        return np.matmul(a, b, out=out)
    library = _library()
    assert isinstance(library, _Library)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    if out is not None and (out.shape != shape or not out.flags.carray or out.dtype != np.float32
                            or np.may_share_memory(a, out) or np.may_share_memory(b, out)):
        return np.matmul(a, b, out=out)
    found = np.empty(shape, np.float32) if out is None else out
    if not batch:
        _sgemm(library, a, b, found)
        return found
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    for index in np.ndindex(batch):
        _sgemm(library, a[index], b[index], found[index])
    return found

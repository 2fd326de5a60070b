"""A stand-in for a device: an array module over NumPy that refuses the same as CuPy.

A kernel that runs here runs on a GPU unchanged: arrays are never converted implicitly to NumPy arrays or Python
numbers, functions and parameters are those of CuPy, and unwritten memory holds NaN. ``Context("strict", 0)`` is such a
device; ``xp.launches`` counts what a GPU would have launched, ``xp.synchronisations`` how often the host would have
waited. There are two devices: a computation must enter the device of its arrays, and no device reads the memory of the
other.

The tables are facts of CuPy 14: ``test_strict.py`` compares them with CuPy itself where that is installed.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from opreg.core.array_module import CupyBackend, register_backend
from tests.cuda.machine import MACHINE, Cuda, Device

__all__ = ["StrictArray", "StrictBackend", "StrictError", "StrictGenerator", "FUNCTIONS", "METHODS", "UFUNCS",
           "check_device", "xp"]


class StrictError(TypeError):
    """An action that CuPy refuses, or that would copy to the host and wait for the device."""


def check_device(what: str, values: Any) -> None:
    """Refuses arrays of a device other than the current one."""
    for value in values:
        if isinstance(value, StrictArray) and value._place != MACHINE.device:
            raise StrictError(f"{what}: an array of device {value._place}, while the current one is {MACHINE.device}")
        if isinstance(value, (tuple, list)):
            check_device(what, value)


class _Cuda:
    """Devices only: captures and pinned memory are not supported."""

    Device, runtime, get_current_stream = Device, Cuda.runtime, Cuda.get_current_stream


def _table(text: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(params.split()) for name, params in re.findall(r"([\w.]+)\(([^)]*)\)", text)}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Functions of CuPy with the names of their parameters: ``*`` before one that takes the rest, and alone before those
#: that are taken by keyword.
FUNCTIONS = _table("""
    all(a axis out keepdims) any(a axis out keepdims) amax(a axis out keepdims) amin(a axis out keepdims)
    max(a axis out keepdims) min(a axis out keepdims) sum(a axis dtype out keepdims) prod(a axis dtype out keepdims)
    mean(a axis dtype out keepdims) std(a axis dtype out ddof keepdims) var(a axis dtype out ddof keepdims)
    nansum(a axis dtype out keepdims) nanprod(a axis dtype out keepdims) nanmax(a axis out keepdims)
    nanmin(a axis out keepdims) nanmean(a axis dtype out keepdims) ptp(a axis out keepdims)
    argmax(a axis dtype out keepdims) argmin(a axis dtype out keepdims) cumsum(a axis dtype out)
    cumprod(a axis dtype out) diff(a n axis prepend append) count_nonzero(a axis) bincount(x weights minlength)
    digitize(x bins right) searchsorted(a v side sorter) interp(x xp fp left right period)
    sort(a axis kind) argsort(a axis kind) partition(a kth axis) argpartition(a kth axis) lexsort(keys)
    unique(ar return_index return_inverse return_counts axis * equal_nan) nonzero(a) flatnonzero(a) argwhere(a)
    where(condition x y) take(a indices axis out) take_along_axis(a indices axis)
    put_along_axis(arr indices values axis) choose(a choices out mode) compress(condition a axis out)
    select(condlist choicelist default) extract(condition a)
    concatenate(tup axis out * dtype casting) concat(tup axis out * dtype casting)
    stack(tup axis out * dtype casting) hstack(tup * dtype casting) vstack(tup * dtype casting) dstack(tup)
    column_stack(tup)
    split(ary indices_or_sections axis) array_split(ary indices_or_sections axis) tile(A reps) repeat(a repeats axis)
    append(arr values axis) resize(a new_shape) roll(a shift axis) flip(a axis) fliplr(a) flipud(a) rot90(a k axes)
    moveaxis(a source destination) swapaxes(a axis1 axis2) transpose(a axes) reshape(a newshape order * copy)
    ravel(a order) squeeze(a axis) expand_dims(a axis) atleast_1d(*arys) atleast_2d(*arys) broadcast_to(array shape)
    broadcast_arrays(*args) array(obj dtype copy order subok ndmin) asarray(a dtype order * copy)
    ascontiguousarray(a dtype) asfortranarray(a dtype) copy(a order) empty(shape dtype order)
    empty_like(prototype dtype order subok shape) zeros(shape dtype order) zeros_like(a dtype order subok shape)
    ones(shape dtype order) ones_like(a dtype order subok shape) full(shape fill_value dtype order)
    full_like(a fill_value dtype order subok shape) arange(start stop step dtype)
    linspace(start stop num endpoint retstep dtype axis) logspace(start stop num endpoint base dtype axis)
    eye(N M k dtype order) identity(n dtype) tri(N M k dtype) tril(m k) triu(m k) diag(v k) diagflat(v k)
    meshgrid(*xi indexing sparse copy) indices(dimensions dtype) tril_indices(n k m) triu_indices(n k m)
    diag_indices(n ndim) ix_(*args) unravel_index(indices dims order) ravel_multi_index(multi_index dims mode order)
    fill_diagonal(a val wrap) copyto(dst src casting where) put(a ind v mode) place(arr mask vals)
    putmask(a mask values) dot(a b out) vdot(a b) inner(a b) outer(a b out) tensordot(a b axes)
    matmul(x1 x2 * out axes axis keepdims casting dtype signature order) einsum(*operands dtype optimize) kron(a b)
    trace(a offset axis1 axis2 dtype out) diagonal(a offset axis1 axis2) cross(a b axisa axisb axisc axis)
    around(a decimals out) round(a decimals out) clip(a a_min a_max out) nan_to_num(x copy nan posinf neginf)
    real(val) imag(val) angle(z deg) isclose(a b rtol atol equal_nan) allclose(a b rtol atol equal_nan)
    array_equal(a1 a2 equal_nan) isin(element test_elements assume_unique invert)
    pad(array pad_width mode * stat_length constant_values end_values reflect_type)
    convolve(a v mode) correlate(a v mode) trapezoid(y x dx axis)
    percentile(a q axis out overwrite_input method keepdims)
    linalg.cholesky(a) linalg.det(a) linalg.eig(a) linalg.eigh(a UPLO) linalg.eigvals(a) linalg.eigvalsh(a UPLO)
    linalg.inv(a)
    linalg.matrix_power(M n) linalg.matrix_rank(M tol) linalg.norm(x ord axis keepdims) linalg.pinv(a rcond)
    linalg.qr(a mode) linalg.slogdet(a) linalg.solve(a b) linalg.svd(a full_matrices compute_uv)
    fft.fft(a n axis norm) fft.ifft(a n axis norm) fft.rfft(a n axis norm) fft.irfft(a n axis norm)
    fft.fft2(a s axes norm) fft.ifft2(a s axes norm)
    lib.stride_tricks.as_strided(x shape strides)
    lib.stride_tricks.sliding_window_view(x window_shape axis * subok writeable)
""")

UFUNCS = _words("""
    abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
    bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
    bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1 fabs
    float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert isfinite
    isinf isnan lcm ldexp left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and
    logical_not logical_or logical_xor maximum minimum mod modf multiply negative nextafter not_equal positive pow
    power rad2deg radians reciprocal remainder right_shift rint sign signbit sin sinh sqrt square subtract tan
    tanh true_divide trunc
""")

METHODS = _table("""
    sum(axis dtype out keepdims) prod(axis dtype out keepdims) max(axis out keepdims) min(axis out keepdims)
    mean(axis dtype out keepdims) std(axis dtype out ddof keepdims) var(axis dtype out ddof keepdims)
    any(axis out keepdims) all(axis out keepdims) argmax(axis out dtype keepdims) argmin(axis out dtype keepdims)
    cumsum(axis dtype out) cumprod(axis dtype out) argsort(axis kind) sort(axis kind) partition(kth axis)
    argpartition(kth axis) take(indices axis out) repeat(repeats axis) clip(min max out) round(decimals out)
    squeeze(axis) swapaxes(axis1 axis2) transpose(*axes) reshape(*shape order copy) ravel(order) flatten(order)
    copy(order) astype(dtype order casting subok copy) view(dtype) fill(value) trace(offset axis1 axis2 dtype out)
    diagonal(offset axis1 axis2) nonzero() choose(choices out mode) compress(condition axis out) dot(b out) conj()
    conjugate() put(indices values mode)
""")

#: Names that are no functions of arrays, and pass unchanged.
_PLAIN = _words("""
    bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp float16 float32 float64 complex64 complex128
    integer floating inexact number generic dtype finfo iinfo pi e inf nan euler_gamma newaxis issubdtype isscalar
    promote_types can_cast broadcast_shapes index_exp s_
""")

#: Functions that answer about arrays without launching anything.
_QUESTIONS = _words("ndim shape size may_share_memory shares_memory result_type")

#: Functions whose first argument may be other than an array: numbers, shapes, text, several arrays.
_FROM_PYTHON = _words("""
    array asarray empty zeros ones full arange linspace logspace eye identity tri indices tril_indices
    triu_indices diag_indices select einsum unravel_index ravel_multi_index concatenate concat stack hstack vstack
    dstack column_stack
""")

# Dtypes for which ``ufunc.at`` has atomic instructions.
_AT = {
    "add": {"int32", "int64", "float16", "float32", "float64", "uint32", "uint64"},
    "subtract": {"int32", "uint32"},
    "maximum": {"int32", "int64", "float32", "float64", "uint32", "uint64"},
    "minimum": {"int32", "int64", "float32", "float64", "uint32", "uint64"},
}
#: Types of most values besides arrays, which every function takes.
_NUMBERS = frozenset({int, float, bool, complex, str, type, type(None), type(Ellipsis)})
_VIEWS = _words("reshape transpose swapaxes moveaxis squeeze expand_dims broadcast_to view diagonal")


def _host(value: Any) -> Any:
    """The host's memory of strict arrays, for NumPy to compute with; host arrays are refused."""
    if type(value) in _NUMBERS:
        return value
    if isinstance(value, StrictArray):
        return value._host
    if isinstance(value, (np.ndarray, np.generic)):
        raise StrictError(f"a NumPy {type(value).__name__} among arrays of the device: ask for it to be moved there")
    if isinstance(value, (tuple, list)):
        return type(value)(_host(each) for each in value)
    return value


def _device(value: Any, known: dict[int, StrictArray], place: int | None = None) -> Any:
    """Results as strict arrays; an array that was passed in is returned as the same object."""
    if isinstance(value, np.ndarray):
        return known[id(value)] if id(value) in known else StrictArray(value, place)
    if isinstance(value, (tuple, list)):
        return [_device(each, known, place) for each in value] if type(value) is list else \
            tuple(_device(each, known, place) for each in value)
    return value


def _poisoned(array: np.ndarray) -> np.ndarray:
    """New memory that must not be read: NaN, or all bits set."""
    if array.dtype.kind in "fc":
        array.fill(np.nan)
    else:
        array.view(np.uint8).fill(1 if array.dtype.kind == "b" else 255)
    return array


def _check(name: str, params: tuple[str, ...], args: tuple, keywords: dict[str, Any]) -> None:
    places = params[:params.index("*")] if "*" in params else params
    if len(args) > len(places) and not any(param.startswith("*") for param in places):
        raise StrictError(f"{name}: CuPy takes {len(places)} arguments by position ({', '.join(places)}), "
                          f"got {len(args)}")
    for keyword in keywords:
        if keyword not in params:
            raise StrictError(f"{name}: CuPy has no parameter {keyword!r}, only {', '.join(params)}")
    if keywords.get("kind") not in (None, "stable"):
        raise StrictError(f"{name}: CuPy sorts stably, kind={keywords['kind']!r} is refused")


def _run(name: str, function: Callable, args: tuple, keywords: dict[str, Any]) -> Any:
    function = _AS_CUPY.get(name, lambda function: function)(function)
    known = {id(each._host): each for each in (*args, keywords.get("out")) if isinstance(each, StrictArray)}
    if isinstance(keywords.get("out"), tuple):
        known.update({id(each._host): each for each in keywords["out"] if each is not None})
    given, words = tuple(map(_host, args)), {key: _host(value) for key, value in keywords.items()}
    if name.rpartition(".")[2] in _VIEWS:
        result = function(*given, **words)
        if not isinstance(result, np.ndarray) or np.may_share_memory(result, given[0]):
            return _device(result, known, getattr(args[0], "_place", None))
    check_device(name, (*args, *keywords.values()))
    return _device(MACHINE.run(name, function, given, words), known)


# ----------------------------------------------------------- functions in which CuPy differs from NumPy


def _is_bfloat16(array: Any) -> bool:
    return getattr(array, "dtype", None) == ml_dtypes.bfloat16


def _assign(array: np.ndarray, key: Any, value: Any) -> None:
    """``array[key] = value``, with the first of the values for an index that is repeated: writes of a device have no
    order, and NumPy keeps the last."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(getattr(part, "size", 0) > 1 and part.dtype.kind in "iu" for part in parts):
        array[key] = value
        return
    places = np.arange(array.size).reshape(array.shape)[key]
    values = np.empty(places.shape, array.dtype)
    values[...] = value
    array.flat[places.reshape(-1)[::-1]] = values.reshape(-1)[::-1]


def _matmul(function: Callable) -> Callable:
    """Products of bfloat16 are bfloat16; stacks of bfloat16 are refused."""

    def call(*arrays: Any, **keywords: Any) -> Any:
        if not all(map(_is_bfloat16, arrays)):
            return function(*arrays, **keywords)
        if max(each.ndim for each in arrays) > 2:
            raise TypeError("data type 'E' not understood")
        return np.asarray(function(*arrays, **keywords)).astype(ml_dtypes.bfloat16)

    return call


def _no_bfloat16(function: Callable) -> Callable:
    """A function that CuPy does not compile for bfloat16, so it refuses such arrays."""

    def call(array: Any, *args: Any, **keywords: Any) -> Any:
        if _is_bfloat16(array):
            raise StrictError("CuPy's kernel of this function does not compile for bfloat16: widen it first")
        return function(array, *args, **keywords)

    return call


def _spread(function: Callable) -> Callable:
    """Variances of bfloat16 are float64."""

    def call(array: Any, *args: Any, **keywords: Any) -> Any:
        return function(array.astype(np.float64) if _is_bfloat16(array) else array, *args, **keywords)

    return call


def _where(function: Callable) -> Callable:
    """A number beside bfloat16 makes the result float32."""

    def call(condition: Any, *values: Any) -> Any:
        found = function(condition, *values)
        mixed = any(map(_is_bfloat16, values)) and any(isinstance(each, float) for each in values)
        return found.astype(np.float32) if mixed else found

    return call


def _solve(function: Callable) -> Callable:
    """Both stacks need the same shape; only a single vector is broadcast."""

    def call(a: Any, b: Any) -> Any:
        if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
            raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
        return function(a, b)

    return call


def _complex(function: Callable) -> Callable:
    """Eigenvalues and eigenvectors are complex, also where NumPy's are real."""

    def call(a: Any) -> Any:
        found = function(a)
        kind = np.result_type(a.dtype, np.complex64)
        return found.astype(kind) if isinstance(found, np.ndarray) else tuple([part.astype(kind) for part in found])

    return call


def _reduced(function: Callable) -> Callable:
    """A function that passes ``out`` to CUB as a dtype, as CuPy does, and so fails for arrays that CUB computes."""

    def call(*args: Any, out: Any = None, **keywords: Any) -> Any:
        if out is not None:
            raise StrictError("CuPy 14.2 cannot reduce to a minimum, or a range, in place: leave out `out`")
        return function(*args, **keywords)

    return call


_AS_CUPY: dict[str, Callable] = {
    "min": _reduced, "amin": _reduced, "ptp": _reduced, "matmul": _matmul, "cumsum": _no_bfloat16,
    "cumprod": _no_bfloat16,
    "var": _spread, "std": _spread, "where": _where, "linalg.solve": _solve, "linalg.eig": _complex,
    "linalg.eigvals": _complex}


class _Ufunc:
    """An element-wise function with the methods that CuPy gives it."""

    def __init__(self, name: str):
        self.__name__, self._ufunc = name, getattr(np, name)
        self.nin, self.nout = self._ufunc.nin, self._ufunc.nout

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        _check(self.__name__, (*["x"] * (self.nin + self.nout), "out", "dtype", "casting"), args, keywords)
        for arg in args:
            if not isinstance(arg, (StrictArray, bool, int, float, complex)) and arg is not None:
                _host(arg)
                raise StrictError(f"{self.__name__}: expected arrays and numbers, got {type(arg).__name__}")
        return _run(self.__name__, self._ufunc, args, keywords)

    def _only(self, what: str, names: Any) -> None:
        if self.__name__ not in names:
            raise StrictError(f"CuPy has no {self.__name__}.{what}, only of {', '.join(sorted(names))}")

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The reduction along axes."""
        self._only("reduce", ("add", "multiply"))
        return _run("reduce", self._ufunc.reduce, (array,), dict(axis=axis, dtype=dtype, out=out, keepdims=keepdims))

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The running reduction along an axis."""
        self._only("accumulate", ("add", "multiply"))
        return _run("accumulate", self._ufunc.accumulate, (array,), dict(axis=axis, dtype=dtype, out=out))

    def outer(self, left: Any, right: Any) -> Any:
        """The results for all pairs of one element of each array."""
        return _run("outer", self._ufunc.outer, (left, right), {})

    def at(self, array: Any, indices: Any, *values: Any) -> None:
        """Applies the function in place, as often as an index is repeated."""
        self._only("at", _AT)
        if array.dtype.name not in _AT[self.__name__]:
            raise StrictError(f"{self.__name__}.at: CuPy has no atomic instruction for {array.dtype}")
        _run("at", self._ufunc.at, (array, indices, *values), {})


class _Flags:
    def __init__(self, flags: Any):
        self.c_contiguous, self.f_contiguous, self.owndata = flags.c_contiguous, flags.f_contiguous, flags.owndata


def _refused(what: str) -> Callable:
    def method(self: StrictArray, *_: Any, **__: Any) -> Any:
        raise StrictError(f"{what} of an array on the device: it would stop the device and move numbers to the host")

    return method


def _operator(name: str, reflected: bool = False, inplace: bool = False) -> Callable:
    ufunc = _Ufunc(name) if name != "matmul" else None

    def method(self: StrictArray, other: Any) -> Any:
        if isinstance(other, (np.ndarray, np.generic)):
            raise StrictError(f"{name} of an array on the device and a NumPy {type(other).__name__}")
        if not isinstance(other, (StrictArray, bool, int, float, complex)):
            return NotImplemented
        call = ufunc or xp.matmul
        left, right = (other, self) if reflected else (self, other)
        return call(left, right, out=self) if inplace else call(left, right)

    return method


class _Data(NamedTuple):
    """The address of an array, as CuPy's ``MemoryPointer``."""

    ptr: int


class StrictArray:
    """An array on the stand-in device."""

    __slots__ = ("_host", "_place", "__weakref__")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray, place: int | None = None):
        self._host, self._place = host, MACHINE.device if place is None else place

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: _Flags(self._host.flags))
    T = property(lambda self: StrictArray(self._host.T, self._place))
    mT = property(lambda self: StrictArray(self._host.mT, self._place))
    real = property(lambda self: StrictArray(self._host.real, self._place))
    imag = property(lambda self: StrictArray(self._host.imag, self._place))
    device = property(lambda self: Device(self._place))
    data = property(lambda self: _Data(self._host.ctypes.data))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        host = self._host
        MACHINE.shown[host.ctypes.data] = self._place
        return {"shape": host.shape, "typestr": host.dtype.str, "data": (host.ctypes.data if host.size else 0, False),
                "strides": None if host.flags.c_contiguous else host.strides, "version": 3, "stream": 1}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._place

    def __dlpack__(self, stream: int | None = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
                   ) -> StrictArray:
        check_device("a capsule", (self,))  # the stream is one of the current device
        return self

    def get(self, stream: Any = None, order: str = "C", out: np.ndarray | None = None, blocking: bool = True
            ) -> np.ndarray:
        """A copy on the host, from any device. A copy that does not block is complete after a wait."""
        with self.device, stream or contextlib.nullcontext():
            if out is None and blocking:
                return MACHINE.to_host(self._host)
            if out is None or out.dtype != self.dtype or out.shape != self.shape or not out.flags.c_contiguous:
                raise StrictError("get: expected a contiguous array of this shape and dtype")
            return MACHINE.copied_to(out, self._host, blocking)

    def set(self, arr: np.ndarray, stream: Any = None) -> None:
        """Copies an array of the host, after the work of a stream."""
        if arr.dtype != self.dtype or arr.shape != self.shape or not self._host.flags.c_contiguous:
            raise StrictError("set: expected an array of this shape and dtype, and that this one is contiguous")
        check_device("set", (self,))
        with stream or contextlib.nullcontext():
            MACHINE.to_device(arr, self._host)

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"an array of CuPy has no attribute {name!r} that kernels may use")

        def method(*args: Any, **keywords: Any) -> Any:
            _check(name, METHODS[name], args, keywords)
            return _run(name, getattr(np.ndarray, name), (self, *args), keywords)

        return method

    def __getitem__(self, key: Any) -> StrictArray:
        where, key = key, _key(key)
        if _picks(key):
            check_device("a subscript", (self, where))
            name = "mask" if any(each.dtype.kind == "b" for each in _picks(key)) else "take"
            return StrictArray(MACHINE.run(name, operator.getitem, (self._host, key), {}))
        found = self._host[key]
        if not isinstance(found, np.ndarray):  # CuPy also returns a view for a single element
            found = self._host[(*key, Ellipsis) if isinstance(key, tuple) else (key, Ellipsis)]
        if found.base is None:
            check_device("a subscript", (self, where))
        return StrictArray(found, self._place)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, (StrictArray, bool, int, float, complex, np.generic)):
            raise StrictError(f"assignment of a {type(value).__name__} to an array on the device")
        check_device("an assignment", (self, key, value))
        MACHINE.run("setitem", _assign,
                    (self._host, _key(key), value._host if isinstance(value, StrictArray) else value), {})

    def __neg__(self) -> StrictArray:
        return xp.negative(self)

    def __pos__(self) -> StrictArray:
        return xp.positive(self)

    def __abs__(self) -> StrictArray:
        return xp.absolute(self)

    def __invert__(self) -> StrictArray:
        return xp.invert(self)

    def __repr__(self) -> str:
        return f"StrictArray({self._host!r})"

    __array__ = _refused("a conversion to NumPy")
    __array_ufunc__ = _refused("a NumPy ufunc")
    __array_function__ = _refused("a NumPy function")
    __bool__, __int__, __float__ = _refused("the truth"), _refused("int()"), _refused("float()")
    __complex__, __index__ = _refused("complex()"), _refused("the use as an index")
    __iter__, __len__, __contains__ = _refused("iteration"), _refused("len()"), _refused("membership")
    item, tolist, tobytes = _refused("item()"), _refused("tolist()"), _refused("tobytes()")


for _symbol, _name in dict(add="add", sub="subtract", mul="multiply", truediv="divide", floordiv="floor_divide",
                           mod="remainder", pow="power", matmul="matmul", and_="bitwise_and", or_="bitwise_or",
                           xor="bitwise_xor", lshift="left_shift", rshift="right_shift").items():
    _symbol = _symbol.rstrip("_")
    setattr(StrictArray, f"__{_symbol}__", _operator(_name))
    setattr(StrictArray, f"__r{_symbol}__", _operator(_name, reflected=True))
    setattr(StrictArray, f"__i{_symbol}__", _operator(_name, inplace=True))
for _symbol, _name in dict(eq="equal", ne="not_equal", lt="less", le="less_equal", gt="greater",
                           ge="greater_equal").items():
    setattr(StrictArray, f"__{_symbol}__", _operator(_name))


def _picks(key: Any) -> list[np.ndarray]:
    """Index arrays of a subscript, which make its result a copy."""
    keys = key if isinstance(key, tuple) else (key,)
    return [np.asarray(each) for each in keys if isinstance(each, (np.ndarray, list))]


def _key(key: Any) -> Any:
    if key is None or type(key) is int:
        return key
    if isinstance(key, tuple):
        return tuple(_key(each) for each in key)
    if isinstance(key, slice):
        return slice(*[_key(each) for each in (key.start, key.stop, key.step)])
    if not isinstance(key, (StrictArray, int, list)) and key is not None and key is not Ellipsis:
        raise StrictError(f"an array on the device picked at by a {type(key).__name__}")
    return _host(key)


class _Module:
    """The array module, or a part of it such as ``linalg``."""

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self.__name__ = "strict"
        self.ndarray, self.cuda, self.random = StrictArray, _Cuda, _Random

    @staticmethod
    def asnumpy(array: StrictArray) -> np.ndarray:
        """A copy on the host."""
        return array.get()

    @property
    def synchronisations(self) -> int:
        """Number of times that the host has waited."""
        return MACHINE.synchronisations

    @property
    def launches(self) -> int:
        """Number of launches."""
        return MACHINE.launches

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self._prefix + name
        made: Any
        if full in UFUNCS:
            made = _Ufunc(name)
        elif full in FUNCTIONS:
            made = _function(full)
        elif full in _PLAIN:
            made = getattr(np, name)
        elif full in _QUESTIONS:
            made = functools.partial(_ask, getattr(np, name))
        elif any(each.startswith(f"{full}.") for each in FUNCTIONS):
            made = _Module(f"{full}.")
        else:
            raise AttributeError(f"CuPy has no function {full} that kernels may use")
        setattr(self, name, made)
        return made


def _ask(function: Callable, *args: Any) -> Any:
    return function(*[_host(arg) for arg in args])


def _function(name: str) -> Callable:
    params = FUNCTIONS[name]
    function = functools.reduce(getattr, name.split("."), np)

    def call(*args: Any, **keywords: Any) -> Any:
        _check(name, params, args, keywords)
        first = args[0] if args else next(iter(keywords.values()), None)
        if name in ("array", "asarray") and not isinstance(first, StrictArray):
            MACHINE.host_copies()
        if name not in _FROM_PYTHON and not isinstance(first, StrictArray) and not _arrays(first):
            raise StrictError(f"{name}: expected an array of the device, got {type(first).__name__}")
        if name in ("concatenate", "concat", "stack", "hstack", "vstack", "lexsort") and not _arrays(first):
            raise StrictError(f"{name}: expected arrays of the device")
        if name == "lexsort" and not isinstance(first, StrictArray):
            raise StrictError("lexsort: CuPy expects one array with a row for each key")
        result = _run(name, function, args, keywords)
        if name.startswith("empty"):
            _poisoned(result._host)
        return result

    call.__name__ = name
    return call


def _arrays(value: Any) -> bool:
    return isinstance(value, StrictArray) or (
        isinstance(value, (tuple, list)) and bool(value) and all(isinstance(each, StrictArray) for each in value))


class _Bits:
    """A source of random bits, whose state is an array on its device, as in CuPy."""

    def __init__(self, seed: Any):
        self._source = np.random.PCG64(seed)
        self._state = StrictArray(MACHINE.owned(self._words()))

    def state(self) -> int:
        """The address of the state."""
        return self._state._host.ctypes.data

    def _words(self) -> np.ndarray:
        found: Any = self._source.state
        numbers = [found["state"][name] >> shift & (1 << 64) - 1 for name in ("state", "inc") for shift in (0, 64)]
        return np.array([*numbers, found["has_uint32"], found["uinteger"]], np.uint64)

    def run(self, draw: Callable) -> Any:
        """Draws from the current state, and advances it."""
        low, high, low_inc, high_inc, has, last = map(int, self._state._host)
        self._source.state = {"bit_generator": "PCG64", "state": {"state": low | high << 64,
                                                                  "inc": low_inc | high_inc << 64},
                              "has_uint32": has, "uinteger": last}
        try:
            return draw()
        finally:
            self._state._host[...] = self._words()


class StrictGenerator:
    """The part of NumPy's generator interface that CuPy's generator has."""

    METHODS = _table("""
        random(size dtype out) integers(low high size dtype endpoint) standard_normal(size dtype out)
        standard_gamma(shape size dtype out) standard_exponential(size dtype method out) poisson(lam size)
        exponential(scale size) binomial(n p size) beta(a b size dtype) gamma(shape scale size)
        uniform(low high size dtype) chisquare(df size dtype) geometric(p size) dirichlet(alpha size)
        hypergeometric(ngood nbad nsample size) logseries(p size) power(a size)
    """)

    def __init__(self, seed: Any):
        self.bit_generator = _Bits(seed)
        self._generator = np.random.Generator(self.bit_generator._source)

    def __getattr__(self, name: str) -> Any:
        if name not in self.METHODS:
            raise AttributeError(f"a generator of CuPy has no method {name!r}")

        def method(*args: Any, **keywords: Any) -> Any:
            _check(name, self.METHODS[name], args, keywords)
            check_device(name, (self.bit_generator._state,))
            if name == "integers" and any(isinstance(each, StrictArray) for each in (*args[:2], *keywords.values())):
                raise StrictError("integers: CuPy takes numbers as bounds, and no arrays")
            return self.bit_generator.run(
                lambda: _run("generator", getattr(self._generator, name), args, keywords))

        return method


class _Random:
    default_rng = StrictGenerator


class StrictBackend(CupyBackend):
    """The back end of ``Context("strict", i)``, like CuPy's for ``gpu(i)``."""

    name = "strict"
    modules = ("tests.cuda",)

    def __init__(self) -> None:
        self.xp = xp

    def _copied(self, source: Any, dtype: np.dtype | None) -> StrictArray:
        """CuPy accepts arrays of NumPy here; kernels must not rely on that."""
        if isinstance(source, StrictArray):
            if dtype not in (None, source.dtype):
                check_device("a conversion", (source,))
            return StrictArray(MACHINE.run("array", functools.partial(np.array, dtype=dtype, order="C"),
                                           (source._host,), {}))
        return StrictArray(MACHINE.to_device(np.array(source, dtype, order="C")))

    def arena(self, nbytes: int, device: int = 0) -> StrictArray:
        with Device(device):
            return StrictArray(MACHINE.owned(np.full(nbytes, 255, np.uint8)))  # NaN in every floating dtype


xp: Any = _Module()
register_backend("strict", StrictBackend)

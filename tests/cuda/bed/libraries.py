"""NumPy and SciPy in place of the kernels of CuPy's compiled parts, and of NVIDIA's libraries.

Each function gets addresses, and works on that memory after the earlier work of the current stream. NumPy's functions
replace Thrust's sorts, cuRAND's random numbers, cuSOLVER's factorizations and cuFFT's transforms. Random values differ
from CuPy's; signatures, dtypes and refused calls are the same.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import cupy
import numpy as np
import scipy.linalg

from . import loading

__all__ = ["install", "later", "memory"]

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_submitted: dict[int, Any] = {}  # functions that the driver has yet to call, or calls again in graphs
_numbers = itertools.count()


def memory(address: int, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> np.ndarray:
    """An array over memory of a device."""
    dtype, shape = np.dtype(dtype), tuple(shape)
    least = max((int(np.prod(shape)) if strides is None else
                 1 + sum((n - 1) * step // dtype.itemsize for n, step in zip(shape, strides))) * dtype.itemsize, 1)
    raw = np.frombuffer((ctypes.c_char * least).from_address(address), np.uint8)
    return np.ndarray(shape, dtype, raw, 0, strides) if 0 not in shape else np.empty(shape, dtype)


def later(function: Callable[..., Any], *arguments: Any) -> None:
    """Calls a function when the current stream reaches it, or at each launch of a graph."""
    stream = cupy.cuda.get_current_stream()
    number, captured = next(_numbers), stream.is_capturing()
    failure: list[BaseException] = []

    @_CALLBACK
    def call(_: Any) -> None:
        try:
            function(*arguments)
        except BaseException as error:
            failure.append(error)
        if not captured:
            del _submitted[number]

    _submitted[number] = call
    if loading.driver().bed_submit(ctypes.c_void_p(stream.ptr), call, None):
        raise cupy.cuda.runtime.CUDARuntimeError(900)
    if failure:
        raise failure[0]


def _queued(function: Callable[..., Any]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        later(function, *arguments)

    return call


# ------------------------------------------------------------------------------------------------------------ sorts


def _sort(dtype: Any, data: int, keys: int, shape: Sequence[int]) -> None:
    memory(data, shape, dtype).sort(axis=-1, kind="stable")


def _argsort(dtype: Any, indices: int, data: int, keys: int, shape: Sequence[int]) -> None:
    values = memory(data, shape, dtype)
    order = np.argsort(values, axis=-1, kind="stable")
    memory(indices, shape, np.intp)[...] = order
    values[...] = np.take_along_axis(values, order, -1)


def _lexsort(dtype: Any, indices: int, keys: int, count: int, size: int) -> None:
    memory(indices, (size,), np.intp)[...] = np.lexsort(memory(keys, (count, size), dtype))


# --------------------------------------------------------------------------------------------------- random numbers


class XORWOW:
    """CuPy's default generator of bits: a key and a count of draws, on the device."""

    def __init__(self, seed: Any = None):
        self._current_device_id = cupy.cuda.get_device_id()
        self._state = cupy.zeros(16, np.int8)
        key = np.random.SeedSequence(seed).generate_state(1, np.uint32)[0]
        self._state.set(np.array([key, 0], np.uint64).view(np.int8))

    def state(self) -> int:
        """The address of its state."""
        return self._state.data.ptr


class Generator:
    """`cupy.random.Generator` with its signatures and dtypes, and with NumPy's random numbers."""

    def __init__(self, bit_generator: XORWOW):
        self.bit_generator = bit_generator

    def _drawn(self, draw: Callable[[np.random.Generator], Any], dtype: Any, shape: tuple[int, ...],
               out: Any = None) -> Any:
        bits = self.bit_generator
        if cupy.cuda.get_device_id() != bits._current_device_id:
            raise RuntimeError("This Generator state is allocated in a different device")
        if cupy.cuda.get_current_stream().is_capturing():
            raise RuntimeError("the bed draws no numbers inside of a capture")
        made = cupy.empty(shape, dtype) if out is None else out

        def fill() -> None:
            state = memory(bits.state(), (2,), np.uint64)
            numpy = np.random.Generator(np.random.Philox(key=int(state[0]), counter=[0, 0, int(state[1]), 0]))
            memory(made.data.ptr, shape, made.dtype)[...] = draw(numpy)
            state[1] += 1

        later(fill)
        return made

    def _of_floats(self, name: str, size: Any, dtype: Any, out: Any, *parameters: Any) -> Any:
        dtype = np.dtype(dtype)
        if dtype.char not in "fd":
            raise TypeError(f"Unsupported dtype {dtype.name!r} for {name}")
        if out is not None and (out.dtype != dtype or not out.flags.c_contiguous):
            raise ValueError("Supplied output array is not contiguous, or has the wrong type")
        if out is not None and size is not None and _shape(size) != out.shape:
            raise ValueError("size must match out.shape when used together")
        return self._of(name, size if out is None else out.shape, dtype, *parameters, out=out)

    def _of(self, name: str, size: Any, dtype: Any, *parameters: Any, out: Any = None, **keywords: Any) -> Any:
        given = [cupy.asnumpy(each) if isinstance(each, cupy.ndarray) else each for each in parameters]
        shape = np.broadcast_shapes(*map(np.shape, given)) if size is None else _shape(size)
        return self._drawn(lambda numpy: getattr(numpy, name)(*given, size=shape, **keywords), dtype, shape, out)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Numbers from 0 to 1."""
        return self._of_floats("random", size, dtype, out)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Numbers of a normal distribution."""
        return self._of_floats("standard_normal", size, dtype, out)

    def standard_exponential(self, size: Any = None, dtype: Any = np.float64, method: str = "inv",
                             out: Any = None) -> Any:
        """Numbers of an exponential distribution."""
        return self._of_floats("standard_exponential", size, dtype, out)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Numbers of gamma distributions."""
        return self._of_floats("standard_gamma", size, dtype, out, shape)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64,
                 endpoint: bool = False) -> Any:
        """Whole numbers of a range."""
        if isinstance(low, cupy.ndarray) or isinstance(high, cupy.ndarray):
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        bounds = (0, int(low)) if high is None else (int(low), int(high))
        return self._of("integers", size, dtype, *bounds, endpoint=endpoint)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = np.float64) -> Any:
        """Numbers of a range."""
        return self._of("uniform", size, dtype, low, high)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Numbers of Poisson distributions."""
        return self._of("poisson", size, np.int64, lam)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Numbers of binomial distributions."""
        return self._of("binomial", size, np.int64, n, p)

    def geometric(self, p: Any, size: Any = None) -> Any:
        """Numbers of geometric distributions."""
        return self._of("geometric", size, np.int64, p)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Numbers of gamma distributions with a scale."""
        return self._of("gamma", size, np.float64, shape, scale)

    def beta(self, a: Any, b: Any, size: Any = None, dtype: Any = np.float64) -> Any:
        """Numbers of beta distributions."""
        return self._of("beta", size, dtype, a, b)


def _shape(size: Any) -> tuple[int, ...]:
    return () if size is None else (size,) if isinstance(size, int) else tuple(size)


# --------------------------------------------------------------------------------------------------- cuSOLVER, cuFFT

_TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}


def _matrix(address: int, rows: int, columns: int, leading: int, dtype: Any) -> np.ndarray:
    """A matrix in column order."""
    size = np.dtype(dtype).itemsize
    return memory(address, (rows, columns), dtype, (size, leading * size))


def _triangle(a: np.ndarray, upper: int) -> np.ndarray:
    """The symmetric matrix with this triangle."""
    half = np.triu(a, 1) if upper else np.tril(a, -1)
    return half + half.conj().T + np.diag(np.diag(a))


def _put_triangle(a: np.ndarray, values: np.ndarray, upper: int) -> None:
    places = np.triu_indices(len(a)) if upper else np.tril_indices(len(a))
    a[places] = values[places]


def _tell(address: int, value: int) -> None:
    memory(address, (1,), np.int32)[0] = value


def _potrf(dtype: Any, handle: Any, upper: int, n: int, a: int, leading: int, work: int, size: int, info: int) -> None:
    matrix = _matrix(a, n, n, leading, dtype)
    try:
        lower = np.linalg.cholesky(_triangle(matrix, upper))
    except np.linalg.LinAlgError:
        return _tell(info, 1)
    _put_triangle(matrix, lower.conj().T if upper else lower, upper)
    _tell(info, 0)


def _potrf_batched(dtype: Any, handle: Any, upper: int, n: int, places: int, leading: int, info: int,
                   count: int) -> None:
    for i, place in enumerate(memory(places, (count,), np.uint64)):
        _potrf(dtype, handle, upper, n, int(place), leading, 0, 0, info + 4 * i)


def _potrs(dtype: Any, handle: Any, upper: int, n: int, columns: int, a: int, leading: int, b: int, leading_b: int,
           info: int) -> None:
    right = _matrix(b, n, columns, leading_b, dtype)
    right[...] = scipy.linalg.cho_solve((_matrix(a, n, n, leading, dtype), not upper), right)
    _tell(info, 0)


def _getrf(dtype: Any, handle: Any, m: int, n: int, a: int, leading: int, work: int, pivots: int, info: int) -> None:
    matrix = _matrix(a, m, n, leading, dtype)
    (function,) = scipy.linalg.get_lapack_funcs(("getrf",), (matrix,))
    factors, rows, status = function(matrix)
    matrix[...] = factors
    if pivots:
        memory(pivots, rows.shape, np.int32)[...] = rows + 1
    _tell(info, status)


def _getrs(dtype: Any, handle: Any, operation: int, n: int, columns: int, a: int, leading: int, pivots: int, b: int,
           leading_b: int, info: int) -> None:
    right = _matrix(b, n, columns, leading_b, dtype)
    factors = _matrix(a, n, n, leading, dtype), memory(pivots, (n,), np.int32) - 1
    right[...] = scipy.linalg.lu_solve(factors, right, trans=operation, check_finite=False)
    _tell(info, 0)


def _getrf_batched(dtype: Any, handle: Any, n: int, places: int, leading: int, pivots: int, info: int,
                   count: int) -> None:
    for i, place in enumerate(memory(places, (count,), np.uint64)):
        _getrf(dtype, handle, n, n, int(place), leading, 0, pivots + 4 * n * i, info + 4 * i)


def _getri_batched(dtype: Any, handle: Any, n: int, places: int, leading: int, pivots: int, results: int,
                   leading_c: int,
                   info: int, count: int) -> None:
    found = zip(memory(places, (count,), np.uint64), memory(results, (count,), np.uint64))
    for i, (place, result) in enumerate(found):
        _matrix(int(result), n, n, leading_c, dtype)[...] = np.eye(n, dtype=dtype)
        _getrs(dtype, handle, 0, n, n, int(place), leading, pivots + 4 * n * i, int(result), leading_c, info + 4 * i)


def _getrs_batched(dtype: Any, handle: Any, operation: int, n: int, columns: int, places: int, leading: int,
                   pivots: int,
                   rights: int, leading_b: int, count: int) -> None:
    found = zip(memory(places, (count,), np.uint64), memory(rights, (count,), np.uint64))
    status = np.zeros(1, np.int32)
    for i, (place, right) in enumerate(found):
        _getrs(dtype, handle, operation, n, columns, int(place), leading, pivots + 4 * n * i, int(right), leading_b,
               status.ctypes.data)


def _getrs_batched_at_once(dtype: Any, *arguments: Any) -> None:
    """The status is in memory of the host, and is set when the call returns."""
    _tell(arguments[-2], 0)
    later(_getrs_batched, dtype, *arguments[:-2], arguments[-1])


def _geqrf(dtype: Any, handle: Any, m: int, n: int, a: int, leading: int, scales: int, work: int, size: int,
           info: int) -> None:
    matrix = _matrix(a, m, n, leading, dtype)
    (function,) = scipy.linalg.get_lapack_funcs(("geqrf",), (matrix,))
    factors, tau, _, status = function(matrix)
    matrix[...] = factors
    memory(scales, tau.shape, dtype)[...] = tau
    _tell(info, status)


def _orgqr(dtype: Any, handle: Any, m: int, n: int, k: int, a: int, leading: int, scales: int, work: int, size: int,
           info: int) -> None:
    matrix = _matrix(a, m, n, leading, dtype)
    name = "ungqr" if np.dtype(dtype).kind == "c" else "orgqr"
    (function,) = scipy.linalg.get_lapack_funcs((name,), (matrix,))
    matrix[...], _, status = function(matrix, memory(scales, (k,), dtype))
    _tell(info, status)


def _syevd(dtype: Any, handle: Any, vectors: int, upper: int, n: int, a: int, leading: int, values: int, work: int,
           size: int, info: int, *settings: Any) -> None:
    matrix = _matrix(a, n, n, leading, dtype)
    found, bases = np.linalg.eigh(_triangle(matrix, upper))
    memory(values, (n,), found.dtype)[...] = found
    if vectors:
        matrix[...] = bases
    _tell(info, 0)


def _xsyevd(handle: Any, parameters: Any, vectors: int, upper: int, n: int, kind: int, a: int, leading: int,
            kind_w: int,
            values: int, *rest: int) -> None:
    _syevd(_CUDA_TYPES[kind], handle, vectors, upper, n, a, leading, values, 0, 0, rest[-1])


def _syevj_batched(dtype: Any, handle: Any, vectors: int, upper: int, n: int, a: int, leading: int, values: int,
                   work: int,
                   size: int, info: int, settings: Any, count: int) -> None:
    item = np.dtype(dtype).itemsize
    real = item // (2 if np.dtype(dtype).kind == "c" else 1)
    for i in range(count):
        _syevd(dtype, handle, vectors, upper, n, a + i * leading * n * item, leading, values + i * n * real, 0, 0,
               info + 4 * i)


def _gesvd(dtype: Any, handle: Any, job_u: int, job_v: int, m: int, n: int, a: int, leading: int, values: int, u: int,
           leading_u: int, v: int, leading_v: int, work: int, size: int, rest: int, info: int) -> None:
    full = chr(job_u) == "A" or chr(job_v) == "A"
    matrix = _matrix(a, m, n, leading, dtype)
    right, found, left = [part.T for part in np.linalg.svd(matrix.T, full_matrices=full)]  # with NumPy's signs
    memory(values, found.shape, found.dtype)[...] = found
    if u and chr(job_u) in "AS":
        _matrix(u, m, left.shape[1], leading_u, dtype)[...] = left
    if v and chr(job_v) in "AS":
        _matrix(v, right.shape[0], n, leading_v, dtype)[...] = right
    if chr(job_u) == "O":  # over the matrix
        matrix[:, :found.size] = left[:, :found.size]
    if chr(job_v) == "O":
        matrix[:found.size] = right[:found.size]
    _tell(info, 0)


def _xgeev(handle: Any, parameters: Any, left: int, right: int, n: int, kind: int, a: int, leading: int, kind_w: int,
           values: int, kind_l: int, bases_l: int, leading_l: int, kind_r: int, vectors: int, leading_r: int, *rest: int
           ) -> None:
    dtype = _CUDA_TYPES[kind]
    matrix = _matrix(a, n, n, leading, dtype)
    (function,) = scipy.linalg.get_lapack_funcs(("geev",), (matrix,))
    *found, _, bases, status = function(matrix, compute_vl=0, compute_vr=right)
    memory(values, (n,), _CUDA_TYPES[kind_w])[...] = found[0] + 1j * found[1] if len(found) == 2 else found[0]
    if right:
        _matrix(vectors, n, n, leading_r, dtype)[...] = bases
    _tell(rest[-1], status)


_CUDA_TYPES = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}
_SOLVERS: dict[str, Callable[..., None]] = {
    "potrf": _potrf, "potrs": _potrs, "potrfBatched": _potrf_batched, "getrf": _getrf, "getrs": _getrs, "geqrf": _geqrf,
    "orgqr": _orgqr, "ungqr": _orgqr, "syevj": _syevd, "heevj": _syevd, "syevjBatched": _syevj_batched,
    "heevjBatched": _syevj_batched, "gesvd": _gesvd,
}
_BATCHED_IN_BLAS: dict[str, Callable[..., None]] = {"getrfBatched": _getrf_batched, "getriBatched": _getri_batched}


def _qr_of_each(matrices: Any, mode: str) -> Any:
    """`cupyx.cusolver._geqrf_orgqr_batched`, whose original calls the library from compiled code."""
    found = [cupy.linalg.qr(each, mode) for each in matrices]
    return cupy.stack(found) if mode == "r" else tuple(map(cupy.stack, zip(*found)))


def _svd_of_each(matrices: Any, full: bool, vectors: bool, *_: Any) -> Any:
    """`cupyx.cusolver._gesvdj_batched`, which returns V instead of its transpose."""
    found = [cupy.linalg.svd(each, full, vectors) for each in matrices]
    if not vectors:
        return cupy.stack(found)
    left, values, right = map(cupy.stack, zip(*found))
    return left, values, right.swapaxes(-2, -1).conj()


class _Plan:
    """Transforms along the last axes of one shape."""

    def __init__(self, shape: tuple[int, ...], kind: int, count: int):
        self.shape, self.kind, self.count = shape, kind, count
        self.work_area, self.gpus = cupy.cuda.alloc(1), None

    def __enter__(self) -> _Plan:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def fft(self, a: Any, out: Any, direction: int) -> None:
        """Transform an array, without a scale, into another one."""
        later(self._transform, a, out, direction)

    def _transform(self, a: Any, out: Any, direction: int) -> None:
        source = memory(a.data.ptr, a.shape, a.dtype, a.strides)
        target = memory(out.data.ptr, out.shape, out.dtype, out.strides)
        axes = tuple(range(-len(self.shape), 0))
        if a.dtype.kind != "c":
            found = np.fft.rfftn(source, self.shape, axes)
        elif out.dtype.kind != "c":
            found = np.fft.irfftn(source, self.shape, axes, norm="forward")
        elif direction < 0:
            found = np.fft.fftn(source, self.shape, axes)
        else:
            found = np.fft.ifftn(source, self.shape, axes, norm="forward")
        target[...] = found


class Plan1d(_Plan):
    """`cupy.cuda.cufft.Plan1d`."""

    def __init__(self, nx: int, fft_type: int, batch: int, *, devices: Any = None, out: Any = None):
        super().__init__((nx,), fft_type, batch)
        self.nx, self.batch, self.fft_type = nx, batch, fft_type

    def get_output_array(self, a: Any) -> Any:
        """An array for the result of the transform."""
        from cupy.cuda import cufft

        shape = list(a.shape)
        if self.kind in (cufft.CUFFT_R2C, cufft.CUFFT_D2Z):
            shape[-1] = self.nx // 2 + 1
        elif self.kind in (cufft.CUFFT_C2R, cufft.CUFFT_Z2D):
            shape[-1] = self.nx
        single = self.kind in (cufft.CUFFT_C2C, cufft.CUFFT_R2C, cufft.CUFFT_C2R)
        real = self.kind in (cufft.CUFFT_C2R, cufft.CUFFT_Z2D)
        return cupy.empty(shape, ("f" if single else "d") if real else ("F" if single else "D"))


class PlanNd(_Plan):
    """`cupy.cuda.cufft.PlanNd`, for transforms of the last axes."""

    def __init__(self, shape: tuple[int, ...], inembed: Any, istride: int, idist: int, onembed: Any, ostride: int,
                 odist: int, fft_type: int, batch: int, order: str, last_axis: int, last_size: Any):
        super().__init__(tuple(shape), fft_type, batch)
        self.order, self.last_axis, self.last_size, self.fft_type = order, last_axis, last_size, fft_type

    def get_output_array(self, a: Any, order: str = "C") -> Any:
        """An array for the result of the transform."""
        from cupy.cuda import cufft

        shape = list(a.shape)
        if self.kind in (cufft.CUFFT_R2C, cufft.CUFFT_D2Z, cufft.CUFFT_C2R, cufft.CUFFT_Z2D):
            shape[self.last_axis] = self.last_size
        kinds = {cufft.CUFFT_C2C: "F", cufft.CUFFT_R2C: "F", cufft.CUFFT_C2R: "f", cufft.CUFFT_Z2Z: "D",
                 cufft.CUFFT_D2Z: "D", cufft.CUFFT_Z2D: "d"}
        return cupy.empty(shape, kinds[self.kind], order)


def install() -> None:
    """Put the functions of this module into CuPy's."""
    import cupyx.cusolver
    from cupy.cuda import cufft, thrust
    from cupy_backends.cuda.libs import cublas, cusolver

    thrust.sort, thrust.argsort, thrust.lexsort = _queued(_sort), _queued(_argsort), _queued(_lexsort)
    cupy.random.Generator, cupy.random.XORWOW = Generator, XORWOW
    cupy.random.default_rng = lambda seed=None: Generator(XORWOW(seed))
    for letter, dtype in _TYPES.items():
        for name, function in _SOLVERS.items():
            if hasattr(cusolver, letter + name):
                setattr(cusolver, letter + name, _queued(functools.partial(function, dtype)))
                setattr(cusolver, f"{letter}{name}_bufferSize", lambda *_: 1)
        for name, function in _BATCHED_IN_BLAS.items():
            setattr(cublas, letter + name, _queued(functools.partial(function, dtype)))
        setattr(cublas, letter + "getrsBatched", functools.partial(_getrs_batched_at_once, dtype))
    cusolver.xsyevd, cusolver.xsyevd_bufferSize = _queued(_xsyevd), lambda *_: (1, 1)
    cusolver.xgeev, cusolver.xgeev_bufferSize = _queued(_xgeev), lambda *_: (1, 1)
    for name in ("createParams", "createSyevjInfo"):
        setattr(cusolver, name, lambda: 1)
    for name in ("destroyParams", "destroySyevjInfo"):
        setattr(cusolver, name, lambda *_: None)
    cupyx.cusolver._geqrf_orgqr_batched = _qr_of_each
    cupyx.cusolver._gesvdj_batched = _svd_of_each
    cupyx.cusolver._gesvd_batched = lambda a, kind, full, vectors, overwrite: _svd_of_each(a, full, vectors)
    cufft.Plan1d, cufft.PlanNd = Plan1d, PlanNd

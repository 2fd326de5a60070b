"""Matrices for tests, tolerances by dtype, and properties of the machine that MXNet's tests ask for."""

from __future__ import annotations

import numbers
import os
import platform
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from opreg.ndarray import arange, waitall
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray, array

from ..core.named_errors import name_errors
from ..core.spec import Shape
from ..data.batches import DataBatch, DataIter
from ..errors import ArgumentError
from ..typing import DTypeLike
from .test_arrays import Tolerance, assert_almost_equal, default_context, drawing, get_atol, get_rtol, get_tols, host

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

__all__ = ["DummyIter", "assert_almost_equal_with_err", "checkShapes", "check_speed", "create_2d_tensor",
           "create_vector", "default_rtols", "default_atols", "default_numeric_eps", "effective_dtype", "get_etol",
           "get_tolerance", "get_identity_mat", "get_identity_mat_batch", "has_tvm_ops", "is_aarch64_run",
           "is_cd_run", "is_op_runnable", "new_matrix_with_real_eigvals_2d", "new_matrix_with_real_eigvals_nd",
           "new_orthonormal_matrix_2d", "new_sym_matrix_with_real_eigvals_2d", "new_sym_matrix_with_real_eigvals_nd"]

_FRACTIONS = tuple(map(np.dtype, ("float16", "float32", "float64")))
_WHOLE = tuple(map(np.dtype, ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")))


class DummyIter(DataIter):
    """Repeats the first batch of another iterator endlessly."""

    def __init__(self, real_iter: Any):
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        self.provide_data, self.provide_label = real_iter.provide_data, real_iter.provide_label
        self.the_batch = next(real_iter)

    def next(self) -> DataBatch:
        """The batch."""
        return self.the_batch


# ------------------------------------------------------------------------------------------ tolerances


def default_rtols() -> dict[np.dtype, float]:
    """Default relative tolerances, by dtype."""
    return {dtype: get_rtol(dtype=dtype) for dtype in (*_FRACTIONS, *_WHOLE)}


def default_atols() -> dict[np.dtype, float]:
    """Default absolute tolerances, by dtype."""
    return {dtype: get_atol(dtype=dtype) for dtype in (*_FRACTIONS, *_WHOLE)}


def default_numeric_eps() -> dict[np.dtype, float]:
    """Default steps of central differences, by dtype; powers of two."""
    return dict(zip(_FRACTIONS, (2.0 ** -6, 2.0 ** -9, 2.0 ** -14)))


def effective_dtype(dat: Any) -> np.dtype:
    """The dtype of an array, from which its tolerance follows."""
    return np.dtype(dat.dtype)


def get_tolerance(dat: Any, tol: Tolerance, default_tol: Mapping[np.dtype, float]) -> float:
    """The tolerance for an array: a number, or by its dtype."""
    if isinstance(tol, numbers.Real):
        return float(tol)
    assert tol is None or isinstance(tol, Mapping)
    dtype = effective_dtype(dat)
    return (tol or {}).get(dtype, default_tol[dtype])


def get_etol(etol: float | None = None) -> float:
    """The fraction of elements that may differ, zero by default."""
    return 0 if etol is None else etol


def assert_almost_equal_with_err(a: ArrayLike, b: ArrayLike, rtol: Tolerance = None, atol: Tolerance = None,
                                 etol: float | None = None, names: tuple[str, str] = ("a", "b"),
                                 equal_nan: bool = False, mismatches: tuple[int, int] = (10, 10)) -> None:
    """Fail unless two arrays are almost equal, except for a fraction ``etol`` of their elements."""
    if get_etol(etol) > 0:
        first, second = host(a), host(b)
        near = np.isclose(first, second, *get_tols(first, second, rtol, atol), equal_nan)
        if 1 - np.count_nonzero(near) / max(near.size, 1) <= get_etol(etol):
            return
    assert_almost_equal(a, b, rtol, atol, names, equal_nan)


def checkShapes(a: Any, b: Any) -> None:
    """Fail unless two arrays have one shape."""
    assert a.shape == b.shape, f"the shapes are {a.shape} and {b.shape}"


# -------------------------------------------------------------------------------------------- matrices


def create_vector(size: int, dtype: DTypeLike = np.int64) -> NDArray:
    """The integers from zero."""
    return arange(0, size, dtype=dtype)


def create_2d_tensor(rows: int, columns: int, dtype: DTypeLike = np.int64) -> NDArray:
    """A matrix whose rows hold their row number."""
    return arange(0, rows, dtype=dtype).reshape((rows, 1)).broadcast_to((rows, columns))


def get_identity_mat(size: int) -> NDArray:
    """An identity matrix."""
    return array(np.eye(size, dtype=np.float32))


def get_identity_mat_batch(size: int) -> NDArray:
    """A batch of two identity matrices."""
    return array(np.stack([np.eye(size, dtype=np.float32)] * 2))


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """A random square matrix whose rows are orthonormal."""
    with drawing() as rng:
        return np.linalg.qr(rng.uniform(-1, 1, (n, n)))[0]


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """A random square matrix with real eigenvalues."""
    with drawing() as rng:
        basis = np.linalg.qr(rng.uniform(-1, 1, (n, n)))[0]
        return basis.T @ np.triu(rng.uniform(-1, 1, (n, n))) @ basis


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """A random symmetric matrix."""
    with drawing() as rng:
        half = rng.uniform(-1, 1, (n, n))
        return (half + half.T) / 2


def _batch(make: Any, shape: Shape) -> np.ndarray:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ArgumentError(f"expected a shape of square matrices, got {shape}")
    count = int(np.prod(shape[:-2]))
    return np.array([make(shape[-1]) for _ in range(count)]).reshape(shape)


def new_matrix_with_real_eigvals_nd(shape: Shape) -> np.ndarray:
    """Random square matrices with real eigenvalues, of a shape."""
    return _batch(new_matrix_with_real_eigvals_2d, tuple(shape))


def new_sym_matrix_with_real_eigvals_nd(shape: Shape) -> np.ndarray:
    """Random symmetric matrices, of a shape."""
    return _batch(new_sym_matrix_with_real_eigvals_2d, tuple(shape))


# ----------------------------------------------------------------------------------------- the machine


def check_speed(sym: Symbol, location: Mapping[str, np.ndarray] | None = None, ctx: Context | None = None, N: int = 20,
                grad_req: str | Sequence[str] | Mapping[str, str] | None = None, typ: str = "whole", **kwargs: Any
                ) -> float:
    """Mean time in seconds of a forward pass, or with ``typ="whole"`` of forward and backward, over N runs.

    ``Executor.profile`` gives more details.
    """
    if typ not in ("whole", "forward"):
        raise ArgumentError(f"check_speed: typ: expected 'whole' or 'forward', got {typ!r}")
    shapes = kwargs if location is None else {name: value.shape for name, value in location.items()}
    executor = sym.simple_bind(ctx or default_context(), "write" if grad_req is None else grad_req, **shapes)
    with drawing() as rng:
        for name, target in executor.arg_dict.items():
            target[:] = rng.normal(size=target.shape) if location is None else location.get(name, 0)

    def run() -> None:
        executor.forward(is_train=typ == "whole")
        if typ == "whole":
            executor.backward(executor.outputs)

    run()
    waitall()
    began = time.perf_counter()
    for _ in range(N):
        run()
    waitall()
    return (time.perf_counter() - began) / N


def has_tvm_ops() -> bool:
    """False: no operator is compiled by TVM."""
    return False


def is_op_runnable() -> bool:
    """True: operators that TVM would compile run without it."""
    return True


def is_aarch64_run() -> bool:
    """Whether the processor is an ARM processor."""
    return platform.machine() == "aarch64"


def is_cd_run() -> bool:
    """Whether the environment variable ``CD_JOB`` is set for a release build."""
    return os.environ.get("CD_JOB") == "1"


name_errors(__name__, globals(), __all__)

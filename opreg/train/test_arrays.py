"""Helpers of tests: the default context, random arrays, and comparison of arrays within tolerances.

They are found in ``opreg.test_utils``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from opreg.ndarray import sparse
from opreg.ndarray.context import Context, current_context, num_gpus
from opreg.ndarray.ndarray import NDArray, array
from opreg.ndarray.sparse_arrays import CSRNDArray

from ..core.named_errors import name_errors
from ..core.spec import Shape
from ..errors import ArgumentError
from ..typing import DTypeLike

__all__ = ["default_context", "set_default_context", "default_dtype", "list_gpus", "set_seed", "get_rtol", "get_atol",
           "get_tols", "same", "same_array", "almost_equal", "find_max_violation", "assert_almost_equal",
           "assert_allclose",
           "almost_equal_ignore_nan", "assert_almost_equal_ignore_nan", "assert_exception", "rand_shape_nd",
           "rand_shape_2d", "rand_shape_3d", "random_arrays", "random_uniform_arrays", "rand_coord_2d", "random_sample",
           "rand_ndarray", "rand_sparse_ndarray", "create_sparse_array", "create_sparse_array_zd", "np_reduce"]

T = TypeVar("T")


class _State:
    """State shared by the checks of this process."""

    rng = np.random.default_rng(0)
    seed: int | None = None


#: A tolerance, a dict of tolerances by dtype, or None for the default.
Tolerance: TypeAlias = float | Mapping[np.dtype, float] | None

#: Default relative and absolute tolerances, by item size of floating dtypes. Integers have to be equal.
_TOLERANCES = {2: (1e-2, 1e-1), 4: (1e-4, 1e-3), 8: (1e-5, 1e-20)}


def default_context() -> Context:
    """The context checks run on, the current one."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Set the context of checks, and of new arrays in this thread, until a surrounding ``with ctx:`` ends.

    Examples
    --------
    >>> from opreg import cpu, nd
    >>> with cpu():
    ...     set_default_context(cpu(3))
    ...     nd.ones((1,)).context, default_context()
    (cpu(3), cpu(3))
    """
    Context.default_ctx = ctx


def default_dtype() -> type:
    """The default dtype of arrays."""
    return np.float32


def list_gpus() -> list[int]:
    """Numbers of the usable CUDA devices."""
    return list(range(num_gpus()))


def set_seed(seed: int) -> None:
    """Seed the random values of this module; the next check uses this seed."""
    _State.rng, _State.seed = np.random.default_rng(seed), seed


@contextlib.contextmanager
def drawing() -> Iterator[np.random.Generator]:
    """Random values for one check; a failure reports how to draw them again."""
    seed, _State.seed = _State.seed, None
    if seed is None:
        seed = int(_State.rng.integers(1 << 31))
    try:
        yield np.random.default_rng((seed, 1))  # separate from the values seeded by set_seed
    except AssertionError as error:
        raise AssertionError(f"{error}; call set_seed({seed}) before the check to draw the same numbers") from None


# -------------------------------------------------------------------------------------------- comparing


def host(value: ArrayLike) -> np.ndarray:
    return value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)


def _usual(dtype: DTypeLike) -> tuple[float, float]:
    kind = np.dtype(dtype)
    return (0.0, 0.0) if kind.kind in "biu" else _TOLERANCES[min(max(kind.itemsize, 2), 8)]


def get_rtol(rtol: float | None = None, dtype: DTypeLike = np.float64) -> float:
    """The relative tolerance, by default that of the dtype."""
    return _usual(dtype)[0] if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: DTypeLike = np.float64) -> float:
    """The absolute tolerance, by default that of the dtype."""
    return _usual(dtype)[1] if atol is None else atol


def _tolerance(dtype: np.dtype, tolerance: Tolerance, usual: float) -> float:
    return tolerance.get(dtype, usual) if isinstance(tolerance, Mapping) else usual if tolerance is None else tolerance


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """Relative and absolute tolerance for two arrays, by default those of the less precise dtype.

    Examples
    --------
    >>> get_tols(np.ones(2, "float32"), np.ones(2), None, 0.5), get_tols(3, 4, None, None)
    ((0.0001, 0.5), (0.0, 0.0))
    """
    dtypes = [np.dtype(value.dtype) if hasattr(value, "dtype") else np.asarray(value).dtype for value in (x, y)]
    return (max(_tolerance(dtype, rtol, get_rtol(dtype=dtype)) for dtype in dtypes),
            max(_tolerance(dtype, atol, get_atol(dtype=dtype)) for dtype in dtypes))


def same(a: ArrayLike, b: ArrayLike) -> bool:
    """Whether two arrays have the same shape and elements."""
    return np.array_equal(host(a), host(b))


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Whether two arrays share memory. Sparse arrays share none, so for them it is whether both are the same object."""
    if array1._sparse or array2._sparse:
        return array1 is array2
    return array1.context == array2.context and bool(array1.context.xp.shares_memory(array1._data, array2._data))


def almost_equal(a: ArrayLike, b: ArrayLike, rtol: Tolerance = None, atol: Tolerance = None,
                 equal_nan: bool = False, use_broadcast: bool = True) -> bool:
    """Whether two arrays are equal up to ``atol + rtol * abs(b)``."""
    a, b = host(a), host(b)
    if not use_broadcast and a.shape != b.shape:
        return False
    rtol, atol = get_tols(a, b, rtol, atol)
    return bool(np.allclose(a, b, rtol, atol, equal_nan))


def find_max_violation(a: ArrayLike, b: ArrayLike, rtol: Tolerance = None, atol: Tolerance = None
                       ) -> tuple[Shape, float]:
    """The index where two arrays differ most, and that difference in units of the tolerance."""
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = (np.asarray(array, np.float64) for array in np.broadcast_arrays(host(a), host(b)))
    with np.errstate(all="ignore"):
        ratio = np.where(a == b, 0.0, np.abs(a - b) / (atol + rtol * np.abs(b) + 1e-300))
        ratio = np.where(np.isnan(a) != np.isnan(b), np.inf, np.nan_to_num(ratio, nan=0.0))
    place = np.unravel_index(int(ratio.argmax()), ratio.shape)
    return tuple(int(i) for i in place), float(ratio[place])


def assert_almost_equal(a: ArrayLike, b: ArrayLike, rtol: Tolerance = None, atol: Tolerance = None,
                        names: Sequence[str] = ("a", "b"), equal_nan: bool = False, use_broadcast: bool = True,
                        mismatches: object = None) -> None:
    """Fail unless two arrays are equal up to ``atol + rtol * abs(b)``; the error shows the largest difference.

    Raises
    ------
    AssertionError
        With the index and values of the largest difference, and the number of differing elements.
    """
    a, b = host(a), host(b)
    if not use_broadcast and a.shape != b.shape:
        raise AssertionError(f"{names[0]} has shape {a.shape}, {names[1]} has {b.shape}")
    rtol, atol = get_tols(a, b, rtol, atol)
    if almost_equal(a, b, rtol, atol, equal_nan):
        return
    different = ~np.isclose(a, b, rtol, atol, equal_nan)
    place, ratio = find_max_violation(a, b, rtol, atol)
    if ratio == 0.0:  # only NaN differ from NaN
        place = tuple(int(i) for i in np.argwhere(different)[0])
    left, right = (np.broadcast_to(array, different.shape)[place] for array in (a, b))
    raise AssertionError(f"{names[0]} and {names[1]} differ in {int(different.sum())} of {different.size} elements; "
                         f"the largest difference is at {place}: {left!s} and {right!s}, {ratio:.3g} times the "
                         f"tolerance of rtol={rtol:g} and atol={atol:g}")


def assert_allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """``assert_almost_equal`` with NumPy's tolerances."""
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def _without_nan(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    a, b = host(a).copy(), host(b).copy()
    either = np.isnan(a) | np.isnan(b)
    a[either] = b[either] = 0
    return a, b


def almost_equal_ignore_nan(a: ArrayLike, b: ArrayLike, rtol: Tolerance = None, atol: Tolerance = None) -> bool:
    """``almost_equal``, without elements that are NaN in either array."""
    return almost_equal(*_without_nan(a, b), rtol, atol)


def assert_almost_equal_ignore_nan(a: ArrayLike, b: ArrayLike, rtol: Tolerance = None, atol: Tolerance = None,
                                   names: Sequence[str] = ("a", "b")) -> None:
    """``assert_almost_equal``, without elements that are NaN in either array."""
    assert_almost_equal(*_without_nan(a, b), rtol, atol, names)


def assert_exception(f: Callable[..., object], exception_type: type[BaseException], *args: object, **kwargs: object
                     ) -> None:
    """Fail unless a call raises an exception of that type."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)} did not raise {exception_type.__name__}")


# ------------------------------------------------------------------------------------------ random numbers


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> Shape:
    """A random shape with lengths up to ``dim``."""
    return tuple(int(length) for length in _State.rng.integers(0 if allow_zero_size else 1, dim + 1, num_dim))


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> Shape:
    """A shape of two dimensions."""
    return rand_shape_nd(1, dim0, allow_zero_size) + rand_shape_nd(1, dim1, allow_zero_size)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> Shape:
    """A shape of three dimensions."""
    return rand_shape_2d(dim0, dim1, allow_zero_size) + rand_shape_nd(1, dim2, allow_zero_size)


def random_arrays(*shapes: Shape) -> Any:
    """Arrays of normal values, a list of them for several shapes."""
    arrays: list[np.ndarray] = [np.array(_State.rng.standard_normal(shape), default_dtype()) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes: Shape, low: float = 0.0, high: float = 1.0, dtype: DTypeLike = None
                          ) -> list[np.ndarray]:
    """A list of arrays of uniform values between ``low`` and ``high``, one for each shape."""
    return [_State.rng.uniform(low, high, shape).astype(dtype or default_dtype()) for shape in shapes]


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """Random row and column numbers, from their lower to before their upper bounds."""
    return int(_State.rng.integers(x_low, x_high)), int(_State.rng.integers(y_low, y_high))


def random_sample(population: Sequence[T], k: int) -> list[T]:
    """A random sample of a sequence, in the sequence's order."""
    return [population[i] for i in sorted(_State.rng.permutation(len(population))[:k])]


def rand_ndarray(shape: Sequence[int], stype: str = "default", density: float | None = None, dtype: DTypeLike = None,
                 modifier_func: object = None, shuffle_csr_indices: bool = False, distribution: str | None = None,
                 ctx: Context | None = None) -> NDArray:
    """An array of uniform values between -1 and 1; in a sparse one the fraction ``density`` of rows, or elements, is
    stored."""
    if stype != "default":
        return rand_sparse_ndarray(shape, stype, density, dtype, distribution)[0]
    return array(_State.rng.uniform(-1.0, 1.0, tuple(shape)), ctx, dtype or default_dtype())


def rand_sparse_ndarray(shape: Sequence[int], stype: str, density: float | None = None, dtype: DTypeLike = None,
                        distribution: str | None = None, data_init: float | None = None, rsp_indices: Any = None,
                        modifier_func: Callable[[Any], Any] | None = None, shuffle_csr_indices: bool = False,
                        ctx: Context | None = None) -> tuple[NDArray, tuple[np.ndarray, ...]]:
    """A sparse array of uniform values between -1 and 1, and its stored parts.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    stype : {"row_sparse", "csr"}
        Its storage type.
    density : float, optional
        Fraction of rows, or of elements of a matrix, that is stored; random by default.
    distribution : {"uniform", "powerlaw"}, optional
        The distribution of a matrix's stored elements over its rows; with ``powerlaw`` each row stores twice as many
        as the one before, as long as there are columns, and elements left.
    data_init : float, optional
        Value of all stored elements.
    rsp_indices : sequence of int, optional
        The rows that are stored.
    """
    rng, density = _State.rng, _State.rng.uniform() if density is None else density
    if distribution not in (None, "uniform", "powerlaw") or (distribution == "powerlaw" and stype != "csr"):
        raise ArgumentError(f"rand_sparse_ndarray: distribution {distribution!r}: expected 'uniform', or for csr "
                            "'powerlaw'")
    if distribution == "powerlaw":
        array = _power_law(shape, density, dtype or default_dtype(), ctx)
        return array, tuple(part.asnumpy() for part in (array.indptr, array.indices, array.data))
    numbers = rng.uniform(-1.0, 1.0, tuple(shape))
    if data_init is not None:
        numbers[...] = data_init
    if modifier_func is not None:
        numbers = np.vectorize(modifier_func)(numbers)
    numbers = numbers.astype(dtype or default_dtype())
    if stype == "csr":
        array = sparse.csr_matrix(np.where(rng.uniform(size=numbers.shape) < density, numbers, 0), ctx=ctx)
        return array, tuple(part.asnumpy() for part in (array.indptr, array.indices, array.data))
    if stype != "row_sparse":
        raise ArgumentError(f"rand_sparse_ndarray: storage type {stype!r}: expected 'row_sparse' or 'csr'")
    if rsp_indices is None:
        rsp_indices = np.flatnonzero(rng.uniform(size=len(numbers)) < density)
    rows = np.unique(np.asarray(rsp_indices, np.int64))
    array = sparse.row_sparse_array((numbers[rows], rows), tuple(shape), ctx)
    return array, (array.data.asnumpy(), array.indices.asnumpy())


def _power_law(shape: Sequence[int], density: float, dtype: DTypeLike, ctx: Context | None) -> CSRNDArray:
    rows, columns = shape
    total = int(rows * columns * density)
    most = np.minimum(2.0 ** np.arange(1, rows + 1), columns).astype(np.int64)
    if total > most.sum():
        raise ArgumentError(f"rand_sparse_ndarray: powerlaw: {rows} rows of {columns} columns store up to {most.sum()} "
                            f"elements, density {density} asks for {total}")
    left = total - rows - np.concatenate([[0], np.cumsum(most - 1)[:-1]])
    lengths = (np.arange(rows) < total) + np.clip(left, 0, most - 1)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    numbers = _State.rng.uniform(1.0, 3.0, len(indices)).astype(dtype)
    return sparse.csr_matrix((numbers, indices, starts), (rows, columns), ctx, dtype)


def create_sparse_array(shape: Sequence[int], stype: str, data_init: float | None = None, rsp_indices: Any = None,
                        dtype: DTypeLike = None, modifier_func: Callable[[Any], Any] | None = None,
                        density: float = 0.5, shuffle_csr_indices: bool = False) -> NDArray:
    """The array of ``rand_sparse_ndarray``."""
    return rand_sparse_ndarray(shape, stype, density, dtype, None, data_init, rsp_indices, modifier_func)[0]


def create_sparse_array_zd(shape: Sequence[int], stype: str, density: float, data_init: float | None = None,
                           rsp_indices: Any = None, dtype: DTypeLike = None,
                           modifier_func: Callable[[Any], Any] | None = None, shuffle_csr_indices: bool = False
                           ) -> NDArray:
    """The array of ``rand_sparse_ndarray``; a ``row_sparse`` one stores only ``rsp_indices``."""
    return create_sparse_array(shape, stype, data_init, rsp_indices, dtype, modifier_func,
                               0.0 if stype == "row_sparse" else density)


def np_reduce(dat: np.ndarray, axis: int | Iterable[int] | None, keepdims: bool,
              numpy_reduce_func: Callable[..., np.ndarray]) -> np.ndarray:
    """A reduction by a NumPy function over one axis, several, or all for None."""
    axes = {i % dat.ndim for i in (range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis)}
    result = dat
    for i in sorted(axes, reverse=True):
        result = numpy_reduce_func(result, axis=i)
    return result.reshape([1 if i in axes else dim for i, dim in enumerate(dat.shape)]) if keepdims else result


name_errors(__name__, globals(), __all__)

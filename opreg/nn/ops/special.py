"""Special functions: Bessel functions, incomplete gamma functions and Hurwitz's zeta, computed by SciPy on the host;
the next floating-point number; and quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...cells.tensor import Tensor
from ...cells.tensor_base import is_number
from ...cells.typing import TensorLike
from ...core.spec import is_narrow
from ...errors import ArgumentError, DTypeError, NotDifferentiableError
from . import array, creation, indexing, math
from .custom import Custom
from .lift import one_axis, scalar, tensor, to_common_dtype
from .primitive import adder

__all__ = ["bessel_i0e", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e",
           "bessel_y0", "bessel_y1", "igamma", "igammac", "nanquantile", "nextafter", "quantile", "zeta"]

_add = adder(globals(), __all__)
_Function: TypeAlias = Callable[[TensorLike], Tensor]


def _scipy(name: str, function: str) -> Callable[..., np.ndarray]:
    """A function of ``scipy.special``, which computes numbers of 16 bits as float32."""
    try:
        import scipy.special  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(f"ops.{name} needs SciPy: pip install scipy") from None
    compute: Callable[..., np.ndarray] = getattr(scipy.special, function)
    return lambda *arrays: compute(*[array.astype(np.float32) if is_narrow(array.dtype) else array for array in arrays])


def _floats(name: str, *inputs: TensorLike) -> list[Tensor]:
    """Inputs of one shape and one floating dtype."""
    operands = to_common_dtype(*inputs) if len(inputs) > 1 else [tensor(inputs[0])]
    if not operands[0].is_floating_point():
        raise DTypeError(f"{name}: expected a floating dtype, got {operands[0].dtype}")
    if len({x.shape for x in operands}) > 1:
        shape = np.broadcast_shapes(*[x.shape for x in operands])
        operands = [array.broadcast_to(x, shape) for x in operands]
    return operands


def _on_host(name: str, compute: Callable[..., np.ndarray], gradient: Callable[..., Any], *inputs: Tensor) -> Tensor:
    """The result of a function of NumPy arrays that keeps shape and dtype; ``gradient`` is a ``bprop``."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(compute(*arrays)).astype(arrays[0].dtype)

    run.__name__ = name
    result: Tensor = Custom(run, lambda *shapes: shapes[0], lambda *dtypes: dtypes[0], "pyfunc", gradient)(*inputs)
    return result


# ------------------------------------------------------------------------------------------- Bessel functions


def _bessel(name: str, function: str, slope: Callable[[Tensor, Tensor], Tensor], doc: str
            ) -> _Function:
    """A function of one tensor by SciPy; ``slope`` is its derivative, given ``x`` and the result."""

    def bessel(x: TensorLike) -> Tensor:
        return _on_host(name, _scipy(name, function), lambda x, out, dout: dout * slope(x, out), *_floats(name, x))

    bessel.__name__ = bessel.__qualname__ = name
    bessel.__doc__ = doc
    return bessel


def _quotient(x: Tensor, y: Tensor, at_zero: float) -> Tensor:
    """``y / x``, and ``at_zero`` where ``x`` is 0."""
    zero = x == 0
    return math.where(zero, at_zero, y / math.where(zero, 1.0, x))


bessel_j0: _Function = _bessel("bessel_j0", "j0", lambda x, y: -bessel_j1(x),
                               "The Bessel function of the first kind of order 0.")
bessel_j1: _Function = _bessel("bessel_j1", "j1", lambda x, y: bessel_j0(x) - _quotient(x, y, 0.5),
                               "The Bessel function of the first kind of order 1.")
bessel_y0: _Function = _bessel("bessel_y0", "y0", lambda x, y: -bessel_y1(x),
                               "The Bessel function of the second kind of order 0.")
bessel_y1: _Function = _bessel("bessel_y1", "y1", lambda x, y: bessel_y0(x) - y / x,
                               "The Bessel function of the second kind of order 1.")
bessel_k0: _Function = _bessel("bessel_k0", "k0", lambda x, y: -bessel_k1(x),
                               "The modified Bessel function of the second kind of order 0.")
bessel_k1: _Function = _bessel("bessel_k1", "k1", lambda x, y: -bessel_k0(x) - y / x,
                               "The modified Bessel function of the second kind of order 1.")
bessel_k0e: _Function = _bessel("bessel_k0e", "k0e", lambda x, y: y - bessel_k1e(x),
                                "``bessel_k0`` times ``exp(x)``.")
bessel_k1e: _Function = _bessel("bessel_k1e", "k1e", lambda x, y: y - bessel_k0e(x) - y / x,
                                "``bessel_k1`` times ``exp(x)``.")
bessel_i0e: _Function = _bessel("bessel_i0e", "i0e", lambda x, y: bessel_i1e(x) - math.sign(x) * y,
                                "``bessel_i0`` times ``exp(-|x|)``.")
bessel_i1e: _Function = _bessel(
    "bessel_i1e", "i1e", lambda x, y: bessel_i0e(x) - math.sign(x) * y - _quotient(x, y, 0.5),
    "``bessel_i1`` times ``exp(-|x|)``.")


# ---------------------------------------------------------------------------------------- gamma functions, zeta


def _gamma_slopes(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative of the lower regularized incomplete gamma function by ``a``: its power series, term by term."""
    digamma, gammaln = _scipy("igamma", "digamma"), _scipy("igamma", "gammaln")
    a, x = a.astype(np.float64), x.astype(np.float64)
    valid = (a > 0) & (x > 0)
    a, x = np.where(valid, a, 1.0), np.where(valid, x, 1.0)
    total, log = np.zeros_like(a), np.log(x)
    largest = float(np.max(x, initial=0.0))
    for n in range(int(min(largest + 12 * largest ** 0.5 + 60, 100_000))):  # terms decrease from n = x on
        total += np.exp((a + n) * log - x - gammaln(a + n + 1)) * (log - digamma(a + n + 1))
    return np.where(valid, total, 0.0)


def _not_again(name: str) -> Callable[..., Any]:
    def refuse(*_args: Any) -> Any:
        raise NotDifferentiableError(f"{name}: there is no second derivative by the first argument")

    return refuse


def igamma(input: TensorLike, other: TensorLike) -> Tensor:
    """The lower regularized incomplete gamma function: the share of the gamma integral of ``input`` below ``other``.

    Parameters
    ----------
    input, other : Tensor
        Floating numbers above 0, not negative; NaN where they are not. They broadcast.
    """
    def gradient(a: Tensor, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
        slope = _on_host("igamma", _gamma_slopes, _not_again("igamma"), a, x)
        return dout * slope, dout * math.exp((a - 1) * math.log(x) - x - math.lgamma(a))

    return _on_host("igamma", _scipy("igamma", "gammainc"), gradient, *_floats("igamma", input, other))


def igammac(input: TensorLike, other: TensorLike) -> Tensor:
    """The upper regularized incomplete gamma function, ``1 - igamma(input, other)``."""
    def gradient(a: Tensor, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
        slope = _on_host("igammac", _gamma_slopes, _not_again("igammac"), a, x)
        return -dout * slope, -dout * math.exp((a - 1) * math.log(x) - x - math.lgamma(a))

    return _on_host("igammac", _scipy("igammac", "gammaincc"), gradient, *_floats("igammac", input, other))


def zeta(input: TensorLike, other: TensorLike) -> Tensor:
    """Hurwitz's zeta function: the sum of ``(k + other) ** -input`` over ``k`` from 0 on.

    Parameters
    ----------
    input, other : Tensor
        Floating numbers above 1, and above 0. They broadcast. The gradient by ``input`` is zero, as in MindSpore.
    """
    def gradient(x: Tensor, q: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
        return creation.zeros_like(x), -dout * x * zeta(x + 1, q)

    return _on_host("zeta", _scipy("zeta", "zeta"), gradient, *_floats("zeta", input, other))


def nextafter(input: TensorLike, other: TensorLike) -> Tensor:
    """The next floating-point number after ``input`` in the direction of ``other``; both broadcast."""
    return _on_host("nextafter", np.nextafter, lambda x, y, out, dout: (dout, creation.zeros_like(y)),
                    *_floats("nextafter", input, other))


# -------------------------------------------------------------------------------------------------- quantiles


def quantile(input: TensorLike, q: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Quantiles along an axis, interpolated between neighbours; NaN where a set has a NaN.

    Parameters
    ----------
    input : Tensor
        Numbers of float32 or float64.
    q : float, or Tensor
        Quantiles from 0 to 1; several give a result with a first axis for them.
    axis : int, optional
        The axis of a set; by default all elements are one.
    keepdims : bool
        Whether the axis stays, with length one.

    Examples
    --------
    >>> print(quantile(tensor([0.0, 1.0, 4.0]), tensor([0.25, 0.5])))
    [0.5 1. ]
    """
    return _quantile("quantile", input, q, axis, keepdims, False)


def nanquantile(input: TensorLike, q: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Quantiles of the elements that are not NaN; see ``quantile``."""
    return _quantile("nanquantile", input, q, axis, keepdims, True)


def _quantile(name: str, input: TensorLike, q: TensorLike, axis: int | None, keepdims: bool, without_nan: bool
              ) -> Tensor:
    x = tensor(input)
    if x._dt not in (np.float32, np.float64):
        raise DTypeError(f"{name}: expected float32 or float64, got {x.dtype}")
    shares = scalar(q, x._dt) if is_number(q) else tensor(q)._cast(x._dt)
    if shares.ndim > 1:
        raise ArgumentError(f"{name}: q must be a number or have one axis, got shape {shares.shape}")
    if not all(0 <= share <= 1 for share in np.atleast_1d(shares.asnumpy())):
        raise ArgumentError(f"{name}: q must be in the range [0, 1], got {q}")
    whole = x.shape
    if axis is None:
        x, place = x.reshape((-1,)), 0
    else:
        place = one_axis(axis, x.ndim, name)
    if x.shape[place] == 0:
        raise ArgumentError(f"{name}: expected elements along the axis, got shape {whole}")
    ordered = indexing.sort(array.moveaxis(x, place, -1))[0]  # NaN are last
    missing = math.isnan(ordered)._cast(x._dt)
    missing = missing.sum(-1, keepdims=True)
    last = ordered.shape[-1] - 1 - (missing if without_nan else 0 * missing)
    ranks = shares.reshape((-1,)) * math.maximum(last, 0.0)  # (..., number of quantiles)
    low = math.floor(ranks)
    below, above = (indexing.gather_elements(ordered, -1, place._cast(np.dtype(np.int32)))
                    for place in (low, math.ceil(ranks)))
    between = math.where(ranks == low, 0.0, ranks - low)
    found = math.where(between == 0, below, below + (above - below) * between)
    if not without_nan:
        found = math.where(missing > 0, float("nan"), found)
    found = array.moveaxis(found, -1, 0)
    rest = found.shape[1:]
    if keepdims:
        rest = (1,) * len(whole) if axis is None else (*rest[:place], 1, *rest[place:])
    return found.reshape((*((found.shape[0],) if shares.ndim else ()), *rest))


def _quantile_primitive(x: TensorLike, q: TensorLike, *, dim: int | None, keep_dims: bool, ignore_nan: bool) -> Tensor:
    return _quantile("Quantile", x, q, dim, keep_dims, ignore_nan)


for _name, _function in {"BesselI0e": bessel_i0e, "BesselI1e": bessel_i1e, "BesselJ0": bessel_j0,
                         "BesselJ1": bessel_j1, "BesselK0": bessel_k0, "BesselK0e": bessel_k0e, "BesselK1": bessel_k1,
                         "BesselK1e": bessel_k1e, "BesselY0": bessel_y0, "BesselY1": bessel_y1, "Igamma": igamma,
                         "Igammac": igammac, "NextAfter": nextafter, "Zeta": zeta}.items():
    _add(_name, _function)
_add("Quantile", _quantile_primitive, {"dim": None, "keep_dims": False, "ignore_nan": False})

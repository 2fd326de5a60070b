"""Random values: for each distribution a table row, from which three operators are made.

``_random_<name>`` takes the parameters as attributes, ``_random_<name>_like`` draws in the shape and dtype of an array,
and ``_sample_<name>`` takes the parameters as arrays and draws values for each of their elements. Further operators
draw by given probabilities, shuffle, and draw without replacement.

All of them draw values of a standard distribution from a device's generator, and transform them in place. float16 is
drawn as float32. Attributes out of range are refused; a number out of range in an array gives NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ...core.attrs import Count, Field, Schema
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare, ops, register
from ...core.rules import Attrs, Dtypes
from ...core.spec import ANY, Shape, common_dtype, largest_exact_integer, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import add_into, as_output, like_inputs
from ..shapes.creation import Dims, array_shape, inferred_shape

FLOATS = ("float16", "float32", "float64")
FLOAT32, FLOAT64, INT32 = np.dtype("float32"), np.dtype("float64"), np.dtype("int32")
#: A dtype in which values are drawn.
Working = Literal["float32", "float64"]
#: A parameter of a distribution: a number, or an array with one for each position.
Parameter = float | Array
# Number of elements.
Size = Count | tuple[Count, ...]


def _dims(shape: int | Shape | None) -> Shape:
    return () if shape is None else (shape,) if isinstance(shape, int) else shape


def _chosen_dtype(dtype: np.dtype | None, valid: Sequence[str]) -> Dtypes:
    """The output's dtype given by an attribute, or None; refused unless it is valid."""
    if dtype is not None and dtype.name not in valid:
        raise AttrError(f"attribute dtype: expected one of {', '.join(valid)}, got {dtype}")
    return [dtype]


def _drawing_dtype(dtype: np.dtype) -> Working:
    """The dtype in which values are drawn."""
    return "float64" if dtype == FLOAT64 else "float32"


def _draw_target(shape: Shape, dtype: np.dtype, out: Array | None) -> Attrs:
    """The dtype in which a generator draws, and ``out`` if it can be filled directly."""
    work = _drawing_dtype(dtype)
    fills = out is not None and out.dtype == work and out.shape == shape and out.flags.c_contiguous
    return {"dtype": work, "out": out if fills else None}


# --------------------------------------------------------------------------------------------- distributions
# A draw is f(xp, rng, shape, dtype, out, *parameters): parameters are numbers, or arrays that broadcast to
# shape; numbers come for an array of dtype, perhaps in another one, and in out where they can.


def _uniform(xp: ArrayModule, rng: np.random.Generator, shape: Shape, dtype: np.dtype, out: Array | None,
             low: Parameter, high: Parameter) -> Array:
    x = rng.random(shape, **_draw_target(shape, dtype, out))
    from_zero = isinstance(low, float) and low == 0.0
    if not from_zero or high != 1.0:
        x *= high - low
        x += low
    if from_zero and x.dtype == dtype:
        return x  # the largest number below one, times high, rounds to less than high
    low, high = xp.asarray(low, dtype=dtype), xp.asarray(high, dtype=dtype)
    return xp.minimum(x, xp.nextafter(high, low), out=x)  # rounding may give high, which is excluded


def _normal(xp: ArrayModule, rng: np.random.Generator, shape: Shape, dtype: np.dtype, out: Array | None, loc: Parameter,
            scale: Parameter) -> Array:
    x = rng.standard_normal(shape, **_draw_target(shape, dtype, out))
    if not isinstance(scale, float) or scale != 1.0:
        x *= scale
    if not isinstance(loc, float) or loc != 0.0:
        x += loc
    return x


def _gamma(xp: ArrayModule, rng: np.random.Generator, shape: Shape, dtype: np.dtype, out: Array | None,
           alpha: Parameter, beta: Parameter) -> Array:
    x = rng.standard_gamma(alpha, shape, **_draw_target(shape, dtype, out))
    x *= beta
    return x


def _exponential(xp: ArrayModule, rng: np.random.Generator, shape: Shape, dtype: np.dtype, out: Array | None,
                 lam: Parameter) -> Array:
    x = rng.standard_exponential(shape, **_draw_target(shape, dtype, out))
    x /= lam
    return x


def _poisson(xp: ArrayModule, rng: np.random.Generator, shape: Shape, dtype: np.dtype, out: Array | None, lam: Parameter
             ) -> Array:
    return rng.poisson(lam, shape)


def _mixed_poisson(xp: ArrayModule, rng: np.random.Generator, shape: Shape, k: Parameter, scale: Parameter) -> Array:
    """Poisson values with a gamma distributed rate: the negative binomial distribution."""
    rate = rng.standard_gamma(k, shape)
    rate *= scale
    return rng.poisson(rate, shape)


def _negative_binomial(xp: ArrayModule, rng: np.random.Generator, shape: Shape, dtype: np.dtype, out: Array | None,
                       k: Parameter, p: Parameter) -> Array:
    return _mixed_poisson(xp, rng, shape, k, (1.0 - p) / p)


def _generalized_negative_binomial(xp: ArrayModule, rng: np.random.Generator, shape: Shape, dtype: np.dtype,
                                   out: Array | None, mu: Parameter, alpha: Parameter) -> Array:
    if isinstance(alpha, float):
        return _mixed_poisson(xp, rng, shape, 1.0 / alpha, mu * alpha) if alpha else rng.poisson(mu, shape)
    # Without dispersion the rate equals the mean.
    spread = alpha > 0.0
    dispersion = xp.where(spread, alpha, xp.ones_like(alpha))
    rate = rng.standard_gamma(1.0 / dispersion, shape)
    rate *= dispersion
    return rng.poisson(xp.where(spread, rate, xp.ones_like(rate)) * mu, shape)


class Distribution(NamedTuple):
    """A row of the table: parameters with defaults, names of the arrays, the sampler, and the valid parameters.

    ``sound(*parameters)`` is true for valid numbers or elements. ``safe`` are the parameters drawn with where
    others are invalid.
    """

    name: str
    parameters: Mapping[str, float | int]
    inputs: tuple[str, ...]
    draw: Callable
    sound: Callable[..., Any]
    condition: str
    safe: tuple[float, ...]

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ").replace("poisson", "Poisson")

    def valid(self, names: Iterable[str]) -> str:
        """The condition that parameters with these names satisfy."""
        return self.condition.format(*names)


DISTRIBUTIONS = (
    Distribution("uniform", {"low": 0.0, "high": 1.0}, ("low", "high"), _uniform,
                 lambda low, high: low <= high, "{} <= {}", (0.0, 1.0)),
    Distribution("normal", {"loc": 0.0, "scale": 1.0}, ("mu", "sigma"), _normal,
                 lambda loc, scale: scale >= 0, "{1} >= 0", (0.0, 1.0)),
    Distribution("gamma", {"alpha": 1.0, "beta": 1.0}, ("alpha", "beta"), _gamma,
                 lambda alpha, beta: (alpha >= 0) & (beta >= 0), "{} >= 0 and {} >= 0", (1.0, 1.0)),
    Distribution("exponential", {"lam": 1.0}, ("lam",), _exponential,
                 lambda lam: lam > 0, "{} > 0", (1.0,)),
    Distribution("poisson", {"lam": 1.0}, ("lam",), _poisson,
                 lambda lam: lam >= 0, "{} >= 0", (1.0,)),
    Distribution("negative_binomial", {"k": 1, "p": 1.0}, ("k", "p"), _negative_binomial,
                 lambda k, p: (k >= 0) & (p > 0) & (p <= 1), "{} >= 0 and 0 < {} <= 1", (1.0, 1.0)),
    Distribution("generalized_negative_binomial", {"mu": 1.0, "alpha": 1.0}, ("mu", "alpha"),
                 _generalized_negative_binomial,
                 lambda mu, alpha: (mu >= 0) & (alpha >= 0), "{} >= 0 and {} >= 0", (1.0, 1.0)),
)


def _check(row: Distribution, attrs: Attrs) -> None:
    if not row.sound(*(attrs[name] for name in row.parameters)):
        values = ", ".join(f"{name}={attrs[name]}" for name in row.parameters)
        raise AttrError(f"expected {row.valid(row.parameters)}, got {values}")


def _declare_draw(op: Op, draw: Callable[..., Array], default: np.dtype = FLOAT32) -> None:
    """Declare that an operator fills its result with random values, without a gradient.

    ``draw(xp, rng, shape, dtype, out, *arrays, **attrs)`` draws the values. With the attribute ``shape``, it draws an
    array of this shape for each element of the input arrays, or once without input arrays; else one value for each
    element.
    """
    sized = "shape" in op.signature.schema

    @op.kernel()  # no body: random values are drawn
    def drawing_xp(xp, *arrays, rng, shape=None, ctx="", dtype=None, out=None, **attrs):
        if out is not None:
            shape, dtype = out.shape, out.dtype
        elif sized:
            shape = (*arrays[0].shape, *_dims(shape)) if arrays else array_shape(shape)
            dtype = dtype or default
        else:
            shape, dtype = arrays[0].shape, arrays[0].dtype
        if not sized:
            arrays = ()  # the array is not a parameter
        drawn = draw(xp, rng, shape, dtype, out, *arrays, **attrs)
        if out is None:
            return drawn if drawn.dtype == dtype else drawn.astype(dtype)
        if drawn is not out:
            out[...] = drawn
        return out

    op.grad(ZERO)


def _sampled_dtypes(ins: Dtypes, outs: Dtypes, *, dtype: np.dtype | None) -> tuple[Dtypes, Dtypes]:
    """Parameters have the same dtype, and the output has a floating dtype."""
    return [common_dtype(ins)] * len(ins), outs if dtype is None else _chosen_dtype(dtype, FLOATS)


def _fields(row: Distribution) -> list[Field]:
    return [Field(name, type(default), default) for name, default in row.parameters.items()]


def _with_attributes(row: Distribution) -> None:
    """``_random_<name>``, with parameters, shape and dtype as attributes, and ``_random_<name>_like``, with the shape
    and dtype of an array."""
    fields = [*_fields(row), Field("shape", int | tuple[int, ...] | None, None, Dims | None), Field("ctx", str, ""),
              Field("dtype", np.dtype | None, None)]
    op = Op(f"_random_{row.name}", Schema(fields), (), random=True,
            doc=f"Random values of the {row.words} distribution; {row.valid(row.parameters)}.")
    like = Op(f"_random_{row.name}_like", Schema(_fields(row)), ("data",), random=True, unread=(0,),
              doc=f"Random values of the {row.words} distribution, with shape and dtype of ``data``; "
                  f"{row.valid(row.parameters)}.")

    op.types(_sampled_dtypes)
    like.fill(as_output)

    @op.infer
    @like.infer
    def infer(*data, **attrs):
        _check(row, attrs)
        return data[0] if data else inferred_shape(attrs["shape"])

    _declare_draw(op, row.draw)
    _declare_draw(like, row.draw)
    register(op, f"random_{row.name}", *[row.name] * (row.name in ("uniform", "normal")))
    register(like)


def _with_arrays(row: Distribution) -> None:
    """``_sample_<name>``, with parameters as arrays."""
    fields = [Field("shape", int | tuple[int, ...] | None, (), Size | None), Field("dtype", np.dtype | None, None)]
    op = Op(f"_sample_{row.name}", Schema(fields), row.inputs, random=True,
            doc=f"Random values of the {row.words} distribution: each element of the inputs gives an array of "
                f"``shape``, "
                f"which is NaN unless {row.valid(row.inputs)}.")

    op.types(_sampled_dtypes)
    declare_form(op, f"{'(...) ' * len(row.inputs)}-> (..., @shape)")

    def draw(xp, rng, shape, dtype, out, *arrays):
        work = _drawing_dtype(dtype)
        wide = [array.astype(work, copy=False) for array in arrays]
        sound = row.sound(*wide)
        spread = (*sound.shape, *[1] * (len(shape) - sound.ndim))
        used = [xp.where(sound, array, xp.asarray(number, dtype=work)).reshape(spread)
                for array, number in zip(wide, row.safe)]
        drawn = row.draw(xp, rng, shape, dtype, None, *used)
        return xp.where(sound.reshape(spread), drawn, xp.asarray(math.nan, dtype=work))

    _declare_draw(op, draw)
    register(op, f"sample_{row.name}")


for _row in DISTRIBUTIONS:
    _with_attributes(_row)
    _with_arrays(_row)


@declare(name="_random_randint", aliases=("random_randint", "_npi_random_randint"), random=True)
def randint(*, low: int, high: int, shape: Dims | None = None, ctx: str = "",
            dtype: np.dtype | None = None):
    """Uniform random integers from ``low`` to before ``high``; int32 by default."""


@randint.types
def randint_types(ins, outs, *, dtype):
    return ins, _chosen_dtype(dtype or INT32, ("int32", "int64"))


@randint.infer
def randint_infer(*, low, high, shape, dtype):
    if low >= high:
        raise AttrError(f"expected low < high, got low={low}, high={high}")
    bits = 63 if dtype is not None and dtype.name == "int64" else 31
    if low < -2**bits or high > 2**bits:
        raise AttrError(f"low={low}, high={high} do not fit int{bits + 1}")
    return inferred_shape(shape)


_declare_draw(randint, lambda xp, rng, shape, dtype, out, *, low, high: rng.integers(low, high, shape, dtype=dtype),
              INT32)


# ------------------------------------------------------------------------------------- by given probabilities


def _drawn(*, get_prob: bool) -> tuple[str, ...]:
    return ("output0", "output1") if get_prob else ("output",)


@declare(name="_sample_multinomial", aliases=("sample_multinomial",), outputs=_drawn, random=True)
def multinomial(data, *, shape: Size = (), get_prob: bool = False,
                dtype: np.dtype = INT32):
    """Indices drawn with the probabilities in the last axis of ``data``; each row gives an array of ``shape``.

    The probabilities of a row are normalised. With ``get_prob`` a second output holds the logarithms of the
    probabilities of the drawn indices, which have a gradient.
    """


@multinomial.types
def multinomial_types(ins, outs, *, get_prob, dtype):
    drawn = _chosen_dtype(dtype, ("uint8", "int32", *FLOATS))
    if not get_prob:
        return ins, drawn
    dtype_of_data = common_dtype([ins[0], outs[1]])
    return [dtype_of_data], [*drawn, dtype_of_data]


@multinomial.infer
def multinomial_infer(data, *, shape, get_prob, dtype):
    if len(data) == 0:
        raise ShapeError("data: expected probabilities in the last axis, got a scalar")
    if data[-1] is not ANY and data[-1] == 0:
        raise ShapeError(f"data: expected probabilities in the last axis, got shape {show(data)}")
    if data[-1] is not ANY and data[-1] - 1 > largest_exact_integer(dtype):
        raise ShapeError(f"data: the indices of {data[-1]} probabilities do not all fit {dtype}")
    drawn = (*data[:-1], *_dims(shape)) or (1,)
    return [drawn, drawn] if get_prob else drawn


@multinomial.kernel()  # no body: one search finds the indices of all draws and their probabilities
def multinomial_xp(xp, data, *, rng, shape, get_prob, dtype):
    classes = data.shape[-1]
    rows = data.reshape(-1, classes)
    count = math.prod(_dims(shape))
    # One search serves all rows: the cumulative probabilities of each row end at one, and are shifted by the row's
    # index.
    ends = xp.cumsum(rows, axis=1, dtype="float64")
    ends /= ends[:, -1:]
    ends = xp.where(xp.isnan(ends), 1.0, ends)
    places = xp.arange(rows.shape[0], dtype="float64")[:, None]
    ends += places
    # The number just below the row's end keeps a draw in its row, and off classes of zero probability.
    drawn = xp.minimum(rng.random((rows.shape[0], count)) + places, xp.nextafter(places + 1.0, places))
    chosen = xp.searchsorted(ends.reshape(-1), drawn.reshape(-1), side="right")
    result = (*data.shape[:-1], *_dims(shape)) or (1,)
    index = chosen.reshape(rows.shape[0], count) - xp.arange(rows.shape[0])[:, None] * classes
    index = index.reshape(result).astype(dtype)
    if not get_prob:
        return index
    return index, xp.log(rows.reshape(-1)[chosen]).reshape(result)


@multinomial.grad
def multinomial_grad(g, ins, outs, *, get_prob):
    return (ops._backward_sample_multinomial(g[1], ins[0], outs[0]),) if get_prob else (None,)


@declare(name="_backward_sample_multinomial", types="T,T,I->T")
def multinomial_backward(g, data, drawn):
    """The gradient of the logarithms of drawn probabilities: ``g / data``, added at the drawn indices."""


multinomial_backward.infer(like_inputs(1))


@multinomial_backward.kernel()  # no body: it takes 60 to 90% longer
def multinomial_backward_xp(xp, g, data, drawn):
    classes = data.shape[-1]
    rows = data.size // classes if classes else 0
    place = drawn.reshape(rows, drawn.size // max(rows, 1)).astype("int64") + xp.arange(rows)[:, None] * classes
    result = xp.zeros(data.size, dtype=data.dtype)
    add_into(xp, result, place.reshape(-1), g.reshape(-1))
    chosen = result != 0
    return (result / xp.where(chosen, data.reshape(-1), xp.ones_like(result))).reshape(data.shape)


# ----------------------------------------------------------------------------------- without replacement


@declare(name="_shuffle", aliases=("shuffle", "_npi_shuffle"), random=True)
def shuffle(data):
    """The slices of ``data`` along the first axis in random order."""


@shuffle.kernel()  # no body: operators in a body have inputs, and these keys are drawn from none
def shuffle_xp(xp, data, *, rng):
    return data[xp.argsort(rng.random(data.shape[0]))]


@declare(name="_sample_unique_zipfian", outputs=("output0", "output1"), types="->int64,int64", random=True)
def unique_zipfian(*, range_max: int, shape: Size | None = None):
    """Distinct integers from 0 to before ``range_max`` in each row, drawn log-uniformly; and the number of draws for
    each row.

    A draw gives ``k`` with probability ``log((k + 2) / (k + 1)) / log(range_max + 1)``.
    """


@unique_zipfian.infer
def unique_zipfian_infer(*, range_max, shape):
    if len(_dims(shape)) != 2:
        raise AttrError(f"shape={shape}: expected (rows, draws in each row)")
    if not 0 < shape[1] <= range_max:
        raise AttrError(f"shape={shape}: there are {range_max} different integers, cannot draw {shape[1]}")
    return [shape, shape[:1]]


@unique_zipfian.kernel()  # no body: it draws until enough values are distinct
def unique_zipfian_xp(xp, *, rng, range_max, shape):
    rows, count = shape
    drawn = xp.empty((rows, 0), dtype="int64")
    block = 2 * count
    while True:
        # The inverse of the cumulative distribution; its last value rounds up to range_max itself.
        candidates = xp.exp(rng.random((rows, block)) * math.log(range_max + 1.0)).astype("int64") - 1
        drawn = xp.concatenate([drawn, xp.minimum(candidates, range_max - 1)], axis=1)
        first = _first_seen(xp, drawn)
        counts = xp.cumsum(first, axis=1)
        # The number of draws depends on the drawn values: the only place where the host must read them.
        if bool((counts[:, -1] >= count).all()):
            break
        block *= 2
    accepted = first & (counts <= count)
    trials = xp.argmax(counts >= count, axis=1) + 1
    return drawn[accepted].reshape(shape), trials


def _first_seen(xp: ArrayModule, drawn: Array) -> Array:
    """Whether a value occurs for the first time in its row."""
    order = xp.argsort(drawn, axis=1, kind="stable")
    ranked = xp.take_along_axis(drawn, order, axis=1)
    is_first = xp.ones(drawn.shape, dtype=bool)
    is_first[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    return xp.take_along_axis(is_first, xp.argsort(order, axis=1), axis=1)


unique_zipfian.grad(ZERO)

"""Initial values of tensors, by MindSpore's names: ``initializer("xavier_uniform", (5, 3))``.

An Initializer fills a NumPy array in place. Random values come from the generator that ``random.seed`` and ``set_seed``
seed.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import fills
from ..core import generators
from ..core.named_errors import name_errors
from ..core.setting_reads import reads_setting
from ..core.settings import Checked
from ..core.spec import Shape
from ..errors import ArgumentError, AttrError, ShapeError, did_you_mean
from ..typing import ShapeLike
from . import dtype as dtypes
from .tensor import Tensor
from .typing import TensorDType

__all__ = [
    "initializer", "Initializer", "Zero", "One", "Constant", "Uniform", "Normal", "TruncatedNormal", "XavierUniform",
    "XavierNormal", "HeUniform", "HeNormal", "VarianceScaling", "Orthogonal", "Identity", "Dirac", "Sparse",
    "set_seed", "get_seed",
]


#: An initializer as a caller gives it: a name, a number, an Initializer, or a tensor.
InitializerLike: TypeAlias = "str | float | Initializer | Tensor"


def initializer(init: InitializerLike, shape: ShapeLike | None = None, dtype: TensorDType = dtypes.float32) -> Tensor:
    """A tensor with initial values.

    Parameters
    ----------
    init : str, number, Initializer or Tensor
        A name, as ``normal``, ``he_uniform`` or that of a class, in any case; a number for all elements; or a tensor,
        which is returned.
    shape : int or sequence of int
        Positive dimensions. A tensor needs none; with one it must have this shape.
    dtype : dtype
        Dtype of the values; a given tensor keeps its own.

    Raises
    ------
    AttrError
        For an unknown name, or a dimension that is not positive.
    ArgumentError
        When ``init`` has another type, or the shape is missing.
    ShapeError
        When a tensor has another shape, or no array of this shape can be filled.

    Examples
    --------
    >>> initializer("ones", (2, 2))
    Tensor(shape=[2, 2], dtype=Float32, value=
    [[ 1.00000000e+00,  1.00000000e+00],
     [ 1.00000000e+00,  1.00000000e+00]])
    """
    lengths = None if shape is None else _dimensions(shape)
    if isinstance(init, Tensor):
        if lengths is not None and init.shape != lengths:
            raise ShapeError(f"initializer: the tensor has shape {init.shape}, expected {lengths}")
        return init
    if lengths is None:
        raise ArgumentError(f"initializer: {init!r} needs a shape")
    return Tensor(shape=lengths, dtype=dtype, init=_initializer(init))


def _dimensions(shape: ShapeLike) -> tuple[int, ...]:
    dimensions = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(not isinstance(length, numbers.Integral) or length < 1 for length in dimensions):
        raise AttrError(f"initializer: the shape must consist of positive integers, got {shape!r}")
    return tuple(int(length) for length in dimensions)


def _initializer(init: object) -> Initializer:
    if isinstance(init, Initializer):
        return init
    if isinstance(init, numbers.Real):
        return Constant(init)
    if not isinstance(init, str):
        hint = f": make one, {init.__name__}()" if isinstance(init, type) and issubclass(init, Initializer) else ""
        raise ArgumentError("initializer: expected a Tensor, a number, a name or an Initializer, got "
                            f"{init if isinstance(init, type) else type(init).__name__}{hint}")
    try:
        return NAMED[init.lower()]()
    except KeyError:
        raise AttrError(f"initializer: the class corresponding to {init!r} was not found. "
                        f"{did_you_mean(init.lower(), NAMED, limit=30)}") from None


# -------------------------------------------------------------------------------------------------- the seed

_SEED: dict[str, int | None] = {"latest": None}


def set_seed(seed: int) -> None:
    """Seed all random generators: of initializers, of operators, and NumPy's own, which data pipelines use.

    Parameters
    ----------
    seed : int
        The seed, not negative. NumPy's own generator takes its lowest 32 bits.

    Raises
    ------
    ArgumentError
        When the seed is negative or no integer.

    Examples
    --------
    >>> set_seed(7)
    >>> first = initializer("normal", 3).asnumpy()
    >>> set_seed(7)
    >>> bool((initializer("normal", 3).asnumpy() == first).all()), get_seed()
    (True, 7)
    """
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise ArgumentError(f"set_seed: expected an integer that is not negative, got {seed!r}")
    generators.seed(int(seed))
    np.random.seed(int(seed) % 2 ** 32)  # noqa: NPY002  it is the one that programs with np.random.randn draw from
    _SEED["latest"] = int(seed)


@reads_setting
def get_seed() -> int | None:
    """The last seed given to ``set_seed``, or None."""
    return _SEED["latest"]


# ------------------------------------------------------------------------------------------------- the kinds


class Initializer(Checked):
    """Fills an array with initial values; a subclass defines ``_initialize(arr)``, which works in place.

    Keyword arguments appear in its repr.

    Examples
    --------
    >>> class Half(Initializer):
    ...     def _initialize(self, arr):
    ...         arr[...] = 0.5
    >>> initializer(Half(), 2)
    Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01,  5.00000000e-01])
    """

    _kwargs: Mapping[str, object] = {}

    def __init__(self, **kwargs: object):
        self._kwargs = kwargs

    def __call__(self, arr: np.ndarray) -> None:
        """Fill an array."""
        self._initialize(arr)

    def fill(self, shape: Shape, np_dtype: TensorDType) -> np.ndarray:
        """A new array, filled.

        Examples
        --------
        >>> Identity().fill((2, 2), np.int32)
        array([[1, 0],
               [0, 1]], dtype=int32)
        """
        arr = np.zeros(shape, np_dtype)
        self(arr)
        return arr

    def _initialize(self, arr: np.ndarray) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _initialize, which fills an array")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._kwargs.items())})"

    def _refuse(self, shape: Shape, expected: str) -> NoReturn:
        raise ShapeError(f"{type(self).__name__}: expected {expected}, got shape {shape}")


class Zero(Initializer):
    """Zeros.

    Examples
    --------
    >>> print(initializer(Zero(), (2,)).init_data())
    [0. 0.]
    """

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = 0


class One(Initializer):
    """Ones.

    Examples
    --------
    >>> print(initializer(One(), (2,)).init_data())
    [1. 1.]
    """

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = 1


class Constant(Initializer):
    """One value, or an array that broadcasts.

    Examples
    --------
    >>> print(initializer(Constant(3), (2,)).init_data())
    [3. 3.]
    """

    def __init__(self, value: npt.ArrayLike | numbers.Real):
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: np.ndarray) -> None:
        value = np.asarray(self.value)
        try:
            arr[...] = value
        except ValueError:
            self._refuse(arr.shape, f"an array to which one of shape {value.shape} broadcasts")


class Uniform(Initializer):
    """Uniform values from ``-scale`` to ``scale``.

    Examples
    --------
    >>> initializer(Uniform(), (2, 3)).init_data().shape
    (2, 3)
    """

    def __init__(self, scale: float = 0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = fills.uniform(_generator(), arr.shape, self.scale, arr.dtype)


class Normal(Initializer):
    """Normal values of standard deviation ``sigma`` around ``mean``.

    Examples
    --------
    >>> initializer(Normal(), (2, 3)).init_data().shape
    (2, 3)
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0):
        super().__init__(sigma=sigma, mean=mean)
        if sigma < 0:
            raise AttrError(f"Normal: sigma must not be negative, got {sigma}")
        self.sigma, self.mean = sigma, mean

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = fills.normal(_generator(), arr.shape, self.sigma, self.mean, arr.dtype)


class TruncatedNormal(Initializer):
    """Normal values, truncated to the range from ``a`` to ``b``.

    Parameters
    ----------
    sigma, mean : float
        Standard deviation and mean of the distribution that is not truncated.
    a, b : float
        The bounds as values, not as multiples of ``sigma``.

    Raises
    ------
    AttrError
        When ``sigma`` is not positive, or the probability between the bounds is too small.

    Examples
    --------
    >>> initializer(TruncatedNormal(), (2, 3)).init_data().shape
    (2, 3)
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0):
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        if sigma <= 0:
            raise AttrError(f"TruncatedNormal: sigma must be positive, got {sigma}")
        low, high = fills.left_of((a, b), sigma, mean)
        if not low < high:
            raise AttrError(f"TruncatedNormal: the distribution with mean={mean}, sigma={sigma} has no values between "
                            f"a={a} and b={b}")
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = fills.truncated_normal(_generator(), arr.shape, self.sigma, self.mean, (self.a, self.b))


class _FanInitializer(Initializer):
    """Base of initializers whose scale depends on the numbers of inputs and outputs of a layer."""

    _distribution = "normal"

    def _fan(self, shape: Shape, mode: str) -> float:
        if len(shape) < 2:
            self._refuse(shape, "at least two axes, which count outputs and inputs")
        return fills.fan(shape, mode)

    def _deviation(self, shape: Shape) -> float:
        raise NotImplementedError

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = fills.variance_scaling(_generator(), arr.shape, self._deviation(arr.shape), self._distribution,
                                          arr.dtype)


class XavierNormal(_FanInitializer):
    """Normal values of standard deviation ``gain * sqrt(2 / (inputs + outputs))``.

    Examples
    --------
    >>> initializer(XavierNormal(), (2, 3)).init_data().shape
    (2, 3)
    """

    def __init__(self, gain: float = 1):
        super().__init__(gain=gain)
        self.gain = gain

    def _deviation(self, shape: Shape) -> float:
        return self.gain * math.sqrt(2 / self._fan(shape, "sum"))


class XavierUniform(XavierNormal):
    """Uniform values within ``gain * sqrt(6 / (inputs + outputs))``.

    X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010.

    Examples
    --------
    >>> initializer(XavierUniform(), (2, 3)).init_data().shape
    (2, 3)
    """

    def _initialize(self, arr: np.ndarray) -> None:
        bound = self.gain * math.sqrt(6 / self._fan(arr.shape, "sum"))
        arr[...] = fills.uniform(_generator(), arr.shape, bound, arr.dtype)


class HeNormal(_FanInitializer):
    """Normal values of standard deviation ``gain / sqrt(n)``.

    K. He, X. Zhang, S. Ren, J. Sun, Delving deep into rectifiers, 2015.

    Parameters
    ----------
    negative_slope : float
        Slope of the leaky rectifier after the layer.
    mode : {"fan_in", "fan_out"}
        Whether ``n`` is the number of inputs of a unit, or of outputs.
    nonlinearity : str
        The activation after the layer, which decides the gain: ``leaky_relu`` ``sqrt(2 / (1 + negative_slope**2))``,
        ``relu`` ``sqrt(2)``, ``tanh`` ``5 / 3``; ``sigmoid``, ``linear`` and the convolutions 1.

    Raises
    ------
    AttrError
        For an unknown mode or nonlinearity, or a slope that is no number.

    Examples
    --------
    >>> initializer(HeNormal(), (2, 3)).init_data().shape
    (2, 3)
    """

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"):
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        _one_of(self, "mode", mode.lower(), ("fan_in", "fan_out"))
        _one_of(self, "nonlinearity", nonlinearity, _GAINS)
        if nonlinearity == "leaky_relu" and not isinstance(negative_slope, numbers.Real):
            raise AttrError(f"{type(self).__name__}: negative_slope must be a number, got {negative_slope!r}")
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _deviation(self, shape: Shape) -> float:
        gain = gain_of(self.nonlinearity, self.negative_slope)
        return gain / math.sqrt(self._fan(shape, self.mode.lower().removeprefix("fan_")))


class HeUniform(HeNormal):
    """Uniform values within ``gain * sqrt(3 / n)``; for the parameters see ``HeNormal``.

    Examples
    --------
    >>> initializer(HeUniform(), (2, 3)).init_data().shape
    (2, 3)
    """

    _distribution = "uniform"


class VarianceScaling(_FanInitializer):
    """Values of variance ``scale / n``.

    Parameters
    ----------
    scale : float
        The scale, positive.
    mode : {"fan_in", "fan_out", "fan_avg"}
        Whether ``n`` is the number of inputs of a unit, of outputs, or their mean.
    distribution : {"truncated_normal", "untruncated_normal", "uniform"}
        ``truncated_normal`` leaves out values more than two standard deviations from the mean.

    Raises
    ------
    AttrError
        When an argument is not valid.

    Examples
    --------
    >>> initializer(VarianceScaling(), (2, 3)).init_data().shape
    (2, 3)
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal"):
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        if scale <= 0:
            raise AttrError(f"VarianceScaling: scale must be positive, got {scale}")
        _one_of(self, "mode", mode, ("fan_in", "fan_out", "fan_avg"))
        _one_of(self, "distribution", distribution, ("truncated_normal", "untruncated_normal", "uniform"))
        self.scale, self.mode, self.distribution = scale, mode, distribution
        self._distribution = "normal" if distribution == "untruncated_normal" else distribution

    def _deviation(self, shape: Shape) -> float:
        return math.sqrt(self.scale / self._fan(shape, self.mode.removeprefix("fan_")))


class Orthogonal(Initializer):
    """``gain`` times a matrix with orthonormal rows or columns, whichever are fewer.

    The first axis gives the rows; the other axes together give the columns.

    Examples
    --------
    >>> initializer(Orthogonal(), (2, 3)).init_data().shape
    (2, 3)
    """

    def __init__(self, gain: float = 1.0):
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim < 2:
            self._refuse(arr.shape, "at least two axes")
        arr[...] = fills.orthogonal(_generator(), arr.shape, self.gain)


class Identity(Initializer):
    """A matrix with ones on the diagonal.

    Examples
    --------
    >>> print(initializer(Identity(), (2, 2)).init_data())
    [[1. 0.]
     [0. 1.]]
    """

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim != 2:
            self._refuse(arr.shape, "two axes")
        arr[...] = np.eye(*arr.shape)


class Dirac(Initializer):
    """Kernels of a convolution that returns its input channels unchanged, as many as it can.

    Parameters
    ----------
    groups : int
        Groups of channels; each group returns its own channels.

    Examples
    --------
    >>> initializer(Dirac(), (2, 2, 3)).init_data().shape
    (2, 2, 3)
    """

    def __init__(self, groups: int = 1):
        super().__init__(groups=groups)
        self.groups = groups

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim not in (3, 4, 5):
            self._refuse(arr.shape, "three to five axes")
        if arr.shape[0] % self.groups:
            self._refuse(arr.shape, f"a first dimension that is a multiple of groups={self.groups}")
        arr[...] = fills.dirac(arr.shape, self.groups)


class Sparse(Initializer):
    """A matrix of normal values, with zeros in every column.

    Parameters
    ----------
    sparsity : float
        The fraction of zeros, from 0 to 1, rounded up to whole rows.
    sigma : float
        Standard deviation of the other elements.

    Examples
    --------
    >>> initializer(Sparse(0.5), (4, 3)).init_data().shape
    (4, 3)
    """

    def __init__(self, sparsity: float, sigma: float = 0.01):
        super().__init__(sparsity=sparsity, sigma=sigma)
        if not 0 <= sparsity <= 1:
            raise AttrError(f"Sparse: sparsity must be from 0 to 1, got {sparsity}")
        if sigma < 0:
            raise AttrError(f"Sparse: sigma must not be negative, got {sigma}")
        self.sparsity, self.sigma = sparsity, sigma

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim != 2:
            self._refuse(arr.shape, "two axes")
        zeros = math.ceil(self.sparsity * arr.shape[0])
        arr[...] = fills.sparse(_generator(), arr.shape, self.sigma, zeros, arr.dtype)


NAMED: dict[str, type[Initializer]] = {
    **{kind.__name__.lower(): kind for kind in (
        Zero, One, Uniform, Normal, TruncatedNormal, XavierUniform, XavierNormal, HeUniform, HeNormal,
        VarianceScaling, Orthogonal, Identity, Dirac)},
    "zeros": Zero, "ones": One, "xavier_uniform": XavierUniform, "xavier_normal": XavierNormal,
    "he_uniform": HeUniform, "he_normal": HeNormal,
}


# --------------------------------------------------------------------------------------- sizes of the numbers

#: Gains by activation: the factor of the standard deviation of the weights.
_GAINS = {"leaky_relu": math.sqrt(2), "relu": math.sqrt(2), "tanh": 5 / 3, "sigmoid": 1.0, "linear": 1.0,
          **{f"conv{kind}{axes}d": 1.0 for kind in ("", "_transpose") for axes in (1, 2, 3)}}


def gain_of(nonlinearity: str, negative_slope: float) -> float:
    """Factor by which the weights of a layer may be larger, because a nonlinearity of ``_GAINS`` follows it."""
    return _GAINS[nonlinearity] / (math.sqrt(1 + negative_slope**2) if nonlinearity == "leaky_relu" else 1)


def _one_of(owner: Initializer, what: str, word: str, valid: Iterable[str]) -> None:
    if word not in valid:
        raise AttrError(f"{type(owner).__name__}: there is no {what} {word!r}. {did_you_mean(word, valid)}")


def _generator() -> np.random.Generator:
    return generators.generator("cpu")


name_errors(__name__, globals(), __all__)

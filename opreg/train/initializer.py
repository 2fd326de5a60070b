"""Initial values of weights: initializers by name, by pattern, or from a file.

An initializer is called with a name and an array, and fills the array. The ending of the name decides: a bias gets
zeros, a gamma ones, and a weight the values of the class. The attribute ``__init__`` of a variable, which
``sym.var(init=...)`` sets, takes precedence.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opreg.ndarray import random
from opreg.ndarray.io import load
from opreg.ndarray.ndarray import NDArray, array

from .. import fills
from ..core import settings
from ..core.attrs import Amount
from ..core.named_errors import name_errors, named
from ..core.settings import Checked
from ..core.states import INITIALIZER
from ..errors import ArgumentError, AttrError, ShapeError, did_you_mean, note
from .named import Named
from .rnn_weights import PackedWeights

__all__ = ["InitDesc", "Initializer", "register", "alias", "create", "Zero", "One", "Constant", "Uniform", "Normal",
           "Orthogonal", "Xavier", "MSRAPrelu", "Bilinear", "LSTMBias", "FusedRNN", "Load", "Mixed"]

_REGISTERED = Named("initializer")


class InitDesc(str):
    """The name of an array to fill, with its attributes.

    Parameters
    ----------
    name : str
        The array's name.
    attrs : dict
        Attributes of the variable; ``__init__`` names an initializer.
    global_init : Initializer
        The initializer of arrays without their own.

    Attributes
    ----------
    is_state : bool
        Whether it is an auxiliary state, which is filled with zeros unless its name decides.

    Examples
    --------
    >>> desc = InitDesc("fc_weight", {"__init__": '["one", {}]'})
    >>> arr = array([0.0, 0.0])
    >>> Zero()(desc, arr)
    >>> desc, arr.asnumpy()
    ('fc_weight', array([1., 1.], dtype=float32))
    """

    attrs: Mapping[str, str]
    global_init: Fill | None
    is_state = False

    @named
    def __new__(cls, name: str, attrs: Mapping[str, str] | None = None, global_init: Fill | None = None
                ) -> InitDesc:
        self = super().__new__(cls, name)
        self.attrs, self.global_init = attrs or {}, global_init
        return self


def register(cls: type, *names: str) -> type:
    """A decorator that registers an initializer by the name of its class in lower case.

    Examples
    --------
    >>> @register
    ... class Half(Initializer):
    ...     def _init_weight(self, name, arr):
    ...         arr[:] = 0.5
    >>> create("half").dumps()
    '["half", {}]'
    """
    return _REGISTERED.enter(cls, *names)


alias = _REGISTERED.alias

#: A function that fills an array by its name, or an initializer.
Fill: TypeAlias = Callable[[str, NDArray], None]
#: An initializer, its name, or its text; None leaves arrays to another initializer.
InitializerLike: TypeAlias = Fill | str | None


@INITIALIZER.provide
def create(initializer: Fill | str, **kwargs: Any) -> Any:
    """An initializer, from itself, its name, or the text that ``dumps`` returned.

    Raises
    ------
    AttrError
        For an unregistered name, for unknown keywords, and for initializers that text may not create: ``Load`` opens
        files and ``Mixed`` runs patterns, so no file may name them.
    FileFormatError
        For text in another format.

    Examples
    --------
    >>> create("xavier", magnitude=2).dumps()
    '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 2}]'
    >>> create('["constant", {"value": 3}]').value
    3
    """
    if not isinstance(initializer, str):
        if callable(initializer):
            return initializer
        raise AttrError(f"initializer: expected one or its name, got {initializer!r}")
    return _REGISTERED.make(initializer, (), kwargs)


@_REGISTERED.of
class Initializer(Checked):
    """Fills arrays by name; a subclass defines ``_init_weight(name, arr)`` for weights.

    ``dumps`` writes the keyword arguments.

    Examples
    --------
    >>> class Half(Initializer):
    ...     def _init_weight(self, name, arr):
    ...         arr[:] = 0.5
    >>> arr = array([0.0, 0.0])
    >>> Half()("fc_weight", arr)
    >>> arr.asnumpy()
    array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, **kwargs: Any):
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], object] = _size

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], object] | None = None
                      ) -> Initializer:
        """Log each array that is filled, with the result of ``print_func``, by default its norm."""
        self._verbose = verbose
        self._print_func = print_func or _size
        return self

    def dumps(self) -> str:
        """Name and settings as JSON, for ``create``."""
        if any(isinstance(value, (NDArray, np.ndarray)) for value in self._kwargs.values()):
            self._kwargs = {name: _json_numbers(value) if isinstance(value, (NDArray, np.ndarray)) else value
                            for name, value in self._kwargs.items()}  # programs read these settings as lists
        return json.dumps([type(self).__name__.lower(), self._kwargs], default=_json_numbers)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.dumps() == other.dumps()

    __hash__ = object.__hash__

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fill an array.

        Raises
        ------
        ArgumentError
            When the name does not tell the role of the array.
        """
        if not isinstance(desc, str):
            raise ArgumentError(f"initializer: expected the name of the array, got {type(desc).__name__}")
        named = getattr(desc, "attrs", {}).get("__init__")
        if named:
            try:
                create(named)._init_weight(desc, arr)
            except Exception as error:
                note(error, f"variable {str(desc)!r}: its attribute __init__ is {named[:200]}")
                raise
            self._report(desc, named, arr)
            return
        for prefix, suffix, method in () if isinstance(desc, InitDesc) else self._prefixes:
            if desc.startswith(prefix) and desc.endswith(suffix):
                getattr(self, method)(desc, arr)
                return
        for suffix, method in self._suffixes:
            if desc.endswith(suffix):
                getattr(self, method)(desc, arr)
                self._report(desc, suffix, arr)
                return
        self._init_default(desc, arr)

    #: Initial values by the ending of a name; the first match decides.
    _suffixes: Sequence[tuple[str, str]] = (
        ("weight", "_init_weight"), ("bias", "_init_bias"), ("gamma", "_init_gamma"), ("beta", "_init_beta"),
        ("moving_mean", "_init_zero"), ("running_mean", "_init_zero"), ("moving_avg", "_init_zero"),
        ("moving_inv_var", "_init_zero"), ("moving_var", "_init_one"), ("running_var", "_init_one"),
        ("min", "_init_zero"), ("max", "_init_one"), ("weight_quantize", "_init_quantized_weight"),
        ("bias_quantize", "_init_quantized_bias"),
    )

    #: Initial values by prefix and ending of a plain name, a convention of early programs.
    _prefixes: Sequence[tuple[str, str, str]] = (
        ("upsampling", "", "_init_bilinear"), ("stn_loc", "weight", "_init_zero"),
        ("stn_loc", "bias", "_init_loc_bias"),
    )

    def _report(self, desc: str, how: str, arr: NDArray) -> None:
        if self._verbose:
            logging.info("Initialized %s as %s: %s", desc, how, self._print_func(arr))

    def _init_zero(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_one(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_bias(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_gamma(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_beta(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_bilinear(self, name: str, arr: NDArray) -> None:
        Bilinear()._init_weight(name, arr)

    def _init_loc_bias(self, name: str, arr: NDArray) -> None:
        if arr.shape != (6,):
            raise ShapeError(f"{name}: expected the six numbers of an affine map, got shape {arr.shape}")
        arr[:] = array([1, 0, 0, 0, 1, 0], ctx=arr.context, dtype=arr.dtype)

    def _init_quantized_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = random.randint(-127, 127, shape=arr.shape, ctx=arr.context)

    def _init_quantized_bias(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _init_weight, which fills a weight")

    def _init_default(self, name: str, arr: NDArray) -> None:
        if getattr(name, "is_state", False):
            arr[:] = 0.0
            return
        ends = ", ".join(suffix for suffix, _ in self._suffixes[:9])
        raise ArgumentError(f"no initialization is defined for arrays named {str(name)!r}. Names end in {ends}; for "
                            "others give the variable its initializer, sym.var(name, init=...); inputs are named by a "
                            "Module's data_names and label_names")


def _json_numbers(value: object) -> Any:
    """NumPy scalars and arrays converted for JSON."""
    if isinstance(value, NDArray):
        value = value.asnumpy()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise ArgumentError(f"dumps: settings of an initializer must be numbers or text, got {type(value).__name__}")


def _size(arr: NDArray) -> str:
    host = arr.asnumpy()
    return str(np.linalg.norm(host) / math.sqrt(max(host.size, 1)))


# -------------------------------------------------------------------------- constants and random values


class Zero(Initializer):
    """Zeros.

    Examples
    --------
    >>> arr = array([1.0, 2.0])
    >>> Zero()("w_weight", arr)
    >>> arr.asnumpy()
    array([0., 0.], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0


class One(Initializer):
    """Ones.

    Examples
    --------
    >>> arr = array([0.0, 0.0])
    >>> One()("w_weight", arr)
    >>> arr.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0


class Constant(Initializer):
    """One value, or the elements of an array.

    Examples
    --------
    >>> arr = array([0.0, 0.0])
    >>> Constant(0.5)("w_weight", arr)
    >>> arr.asnumpy()
    array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, value: npt.ArrayLike):
        super().__init__(value=value)
        try:
            np.asarray(_json_numbers(value) if isinstance(value, NDArray) else value, float)
        except (TypeError, ValueError, OverflowError):
            raise AttrError(f"Constant: expected a number, or an array's numbers, got {value!r}") from None
        self.value = value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        value: NDArray | np.ndarray
        value = self.value if isinstance(self.value, NDArray) else np.asarray(self.value, dtype=arr.dtype)
        try:
            arr[:] = value
        except ValueError:
            raise ShapeError(f"{name}: Constant of shape {value.shape} cannot fill shape {arr.shape}") from None


class Uniform(Initializer):
    """Uniform values between ``-scale`` and ``scale``.

    Examples
    --------
    >>> arr = array([[0.0] * 3] * 2)
    >>> Uniform(0.1)("w_weight", arr)
    >>> bool((abs(arr.asnumpy()) <= 0.1).all())
    True
    """

    def __init__(self, scale: Amount = 0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        random.uniform(-self.scale, self.scale, ctx=arr.context, dtype=arr.dtype, out=arr)


class Normal(Initializer):
    """Normal values with mean zero and standard deviation ``sigma``.

    Examples
    --------
    >>> arr = array([0.0] * 1000)
    >>> Normal(0.5)("w_weight", arr)
    >>> bool(0.4 < arr.asnumpy().std() < 0.6)
    True
    """

    def __init__(self, sigma: Amount = 0.01):
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        random.normal(0, self.sigma, ctx=arr.context, dtype=arr.dtype, out=arr)


class Orthogonal(Initializer):
    """``scale`` times an orthogonal matrix: its rows are the first axis of the weight, its columns all other axes.

    A. Saxe, J. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks, 2013.

    Parameters
    ----------
    scale : float
        Norm of each row or column.
    rand_type : {"uniform", "normal"}
        Distribution of the values that are orthogonalised.

    Examples
    --------
    >>> arr = array([[0.0] * 2] * 2)
    >>> Orthogonal(scale=1.0)("w_weight", arr)
    >>> bool(np.allclose(arr.asnumpy() @ arr.asnumpy().T, np.eye(2), atol=1e-5))
    True
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform"):
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise AttrError(f"there is no rand_type {rand_type!r}. {did_you_mean(rand_type, ('uniform', 'normal'))}")
        self.scale, self.rand_type = scale, rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        def draw(shape: tuple[int, ...]) -> np.ndarray:
            drawn = random.uniform(-1, 1, shape=shape) if self.rand_type == "uniform" else random.normal(shape=shape)
            return drawn.asnumpy()

        arr[:] = array(fills.orthogonal_by_svd(draw, arr.shape, self.scale), ctx=arr.context, dtype=arr.dtype)


class Xavier(Initializer):
    """Random values whose scale depends on the numbers of inputs and outputs of a layer.

    X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010. The
    scale is ``sqrt(magnitude / n)``.

    Parameters
    ----------
    rnd_type : {"uniform", "gaussian"}
        Uniform values between plus and minus the scale, or normal values with the scale as standard deviation.
    factor_type : {"avg", "in", "out"}
        Whether ``n`` is the number of inputs of a unit, of outputs, or their mean.
    magnitude : float
        See above.

    Examples
    --------
    >>> arr = array([[0.0] * 3] * 3)
    >>> Xavier(magnitude=3)("w_weight", arr)  # three inputs, three outputs: bound (3 / 3)**0.5
    >>> bool((abs(arr.asnumpy()) <= 1).all())
    True
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: Amount = 3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        for what, word, valid in (("rnd_type", rnd_type, ("uniform", "gaussian")),
                                  ("factor_type", factor_type, ("avg", "in", "out"))):
            if word not in valid:
                raise AttrError(f"there is no {what} {word!r}. {did_you_mean(word, valid)}")
        self.rnd_type, self.factor_type = rnd_type, factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if arr.ndim < 2:
            raise ShapeError(f"{name}: {type(self).__name__} needs an array of outputs and inputs, "
                             f"got shape {arr.shape}")
        scale = math.sqrt(self.magnitude / fills.fan(arr.shape, self.factor_type))
        if self.rnd_type == "uniform":
            random.uniform(-scale, scale, ctx=arr.context, dtype=arr.dtype, out=arr)
        else:
            random.normal(0, scale, ctx=arr.context, dtype=arr.dtype, out=arr)


class MSRAPrelu(Xavier):
    """Normal values with a scale for layers followed by a leaky rectifier of slope ``slope``.

    K. He, X. Zhang, S. Ren, J. Sun, Delving deep into rectifiers, 2015.

    Examples
    --------
    >>> arr = array([[0.0] * 200] * 200)
    >>> MSRAPrelu("in", slope=0)("w_weight", arr)  # standard deviation (2 / 200)**0.5
    >>> bool(0.09 < arr.asnumpy().std() < 0.11)
    True
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25):
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope * slope))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


class Bilinear(Initializer):
    """The kernel of a bilinear upsampling, for Deconvolution and UpSampling; the same in each channel.

    Examples
    --------
    >>> arr = array([[[[0.0] * 4] * 4]])
    >>> Bilinear()("up_weight", arr)
    >>> arr.asnumpy()[0, 0, 1]
    array([0.1875, 0.5625, 0.5625, 0.1875], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if arr.ndim != 4:
            raise ShapeError(f"{name}: Bilinear needs an array of rank 4, got shape {arr.shape}")
        arr[:] = array(fills.bilinear(arr.shape), ctx=arr.context, dtype=arr.dtype)


class LSTMBias(Initializer):
    """Zeros, with ``forget_bias`` for the forget gate, the second quarter of the array.

    Examples
    --------
    >>> arr = array([0.0] * 8)  # four gates of two units
    >>> LSTMBias(forget_bias=1.0)._init_weight("lstm_i2h_bias", arr)
    >>> arr.asnumpy()
    array([0., 0., 1., 1., 0., 0., 0., 0.], dtype=float32)
    """

    def __init__(self, forget_bias: float = 1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        quarter = arr.shape[0] // 4
        arr[:] = 0.0
        arr[quarter:2 * quarter] = self.forget_bias


# ------------------------------------------------------------------------------ composed initializers


class FusedRNN(Initializer):
    """Initializes the parameter array of the operator ``RNN``, part by part.

    Parameters
    ----------
    init : Initializer, str or None
        Initializer of the weights; None uses the global initializer.
    num_hidden, num_layers, mode, bidirectional
        See the operator ``RNN``.
    forget_bias : float
        Bias of the forget gate of an LSTM, half of it in each of the two biases, which are added.
    """

    def __init__(self, init: InitializerLike, num_hidden: int, num_layers: int, mode: str, bidirectional: bool = False,
                 forget_bias: float = 1.0):
        inner = None if init is None else create(init)
        if min(num_hidden, num_layers) < 1:
            raise AttrError(f"FusedRNN: expected at least one layer and one unit, got {num_layers} and {num_hidden}")
        super().__init__(init=None if inner is None else inner.dumps(), num_hidden=num_hidden,
                         num_layers=num_layers, mode=mode, bidirectional=bidirectional, forget_bias=forget_bias)
        self._init, self._mode, self._forget_bias = inner, mode, forget_bias
        self._packed = PackedWeights(num_hidden, num_layers, mode, bidirectional)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        for part, place, shape in self._packed.parts(arr.size):
            values = arr[place].reshape(shape)
            if self._mode == "lstm" and part.endswith("_f_bias"):
                values[:] = self._forget_bias
            elif part.endswith("bias"):
                values[:] = 0.0
            else:
                inner = self._init or getattr(name, "global_init", None)
                if inner is None:
                    raise ArgumentError(f"{name}: FusedRNN was made without an initializer for weights, and there "
                                        "is no global one")
                inner._init_weight(InitDesc(part), values)


class Load(Initializer):
    """Arrays from a file or dict; ``default_init`` for names that these lack.

    Parameters
    ----------
    param : str or dict of str to NDArray
        File name or arrays; prefixes ``arg:`` and ``aux:`` are removed.
    default_init : Initializer
        Initializer of the other names.
    verbose : bool
        Whether to log the source of each array.

    Examples
    --------
    >>> arr, fill = array([0.0, 0.0]), Load({"arg:fc_weight": array([3.0, 4.0])}, default_init=Zero())
    >>> fill("fc_weight", arr)
    >>> arr.asnumpy()
    array([3., 4.], dtype=float32)
    """

    of_text = False

    def __init__(self, param: str | Mapping[str, NDArray], default_init: Initializer | None = None,
                 verbose: bool = False):
        super().__init__()
        if isinstance(param, str):
            loaded = load(param)
            if not isinstance(loaded, dict):
                raise ArgumentError(f"{param}: expected arrays with names")
            param = loaded
        self.param = {name.removeprefix("arg:").removeprefix("aux:"): value for name, value in param.items()}
        self.default_init, self.verbose = default_init, verbose

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Copy the array of this name."""
        loaded = self.param.get(str(desc))
        if loaded is None:
            if self.default_init is None:
                raise ArgumentError(f"{str(desc)!r} is not among the loaded arrays, and there is no default_init. "
                                    f"{did_you_mean(desc, self.param)}")
            self.default_init(desc, arr)
        elif loaded.shape != arr.shape:
            raise ShapeError(f"{desc}: expected shape {arr.shape}, the loaded array has {loaded.shape}")
        else:
            arr[:] = loaded
        if self.verbose:
            logging.info("Initialized %s %s", desc, "by default" if loaded is None else "by loading")


class Mixed(Initializer):
    """Initializers by pattern: the first regular expression that is found in a name decides.

    Examples
    --------
    >>> import opreg.ndarray as nd
    >>> init = Mixed([".*bias", ".*"], [Zero(), One()])
    >>> arr = nd.zeros((2,))
    >>> init("fc_weight", arr); arr.asnumpy().tolist()
    [1.0, 1.0]
    """

    of_text = False

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Fill | str]):
        super().__init__()
        if len(patterns) != len(initializers):
            raise ArgumentError(f"Mixed: {len(patterns)} patterns, but {len(initializers)} initializers")
        self.map = [(settings.pattern("Mixed: a pattern", pattern), create(initializer))
                    for pattern, initializer in zip(patterns, initializers)]

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fill an array by the first pattern that is found in its name."""
        for pattern, initializer in self.map:
            if pattern.match(desc):
                initializer(desc, arr)
                return
        raise ArgumentError(f"{str(desc)!r} fits no pattern. Add '.*' with an initializer for all others")


register(Zero, "zeros")
register(One, "ones")
for _cls in (Constant, Uniform, Normal, Orthogonal, Xavier, MSRAPrelu, Bilinear, LSTMBias, FusedRNN, Load, Mixed):
    register(_cls)


name_errors(__name__, globals(), __all__)

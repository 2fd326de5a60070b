"""Activation functions as Cells: rows of a table for those without settings, classes for the others.

They compute functions of ``ops``; a Cell stores the settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, overload

from ...cells.cell import Cell
from ...cells.parameter import Parameter
from ...cells.tensor import Tensor
from ...core.named_errors import name_errors
from ...core.spec import show
from ...errors import ArgumentError, ShapeError, WrongNameError, did_you_mean
from ..ops import activation as functions
from ..ops.math import tanh
from .checks import check_int

__all__ = ["ReLU", "ReLU6", "LeakyReLU", "RReLU", "ELU", "CELU", "SeLU", "SELU", "GELU", "FastGelu", "SiLU", "Mish",
           "Sigmoid", "LogSigmoid", "Tanh", "Softmax", "LogSoftmax", "Softmin", "Softmax2d", "Softsign", "HSigmoid",
           "HSwish", "Hardtanh", "HShrink", "SoftShrink", "Tanhshrink", "PReLU", "Threshold", "GLU", "get_activation"]

#: An activation of a layer: its name, a Cell or another function.
Activation: TypeAlias = str | Callable[[Tensor], Tensor]


# --------------------------------------------------------------------------------------- without settings


class _Plain(Cell):
    def construct(self, x: Tensor) -> Tensor:
        raise NotImplementedError


def _elementwise_cell(name: str, says: str, function: Callable[[Tensor], Tensor], shown: str) -> type[_Plain]:
    """A Cell that applies a function to every element; ``shown`` is its result on -1 and 2, for the docstring."""

    def __init__(self: Cell) -> None:
        Cell.__init__(self)

    def construct(self: Cell, x: Tensor) -> Tensor:
        return function(x)

    construct.__doc__ = says
    example = f">>> from opreg import Tensor\n>>> print({name}()(Tensor([-1.0, 2.0])).asnumpy().round(3))\n{shown}\n"
    return type(name, (_Plain,), {"__init__": __init__, "construct": construct, "__module__": __name__,
                                  "__doc__": f"{says}\n\nExamples\n--------\n{example}"})


ReLU = _elementwise_cell("ReLU", "The rectified linear unit, ``max(x, 0)``.", functions.relu, "[0. 2.]")
ReLU6 = _elementwise_cell("ReLU6", "``min(max(x, 0), 6)``.", functions.relu6, "[0. 2.]")
SeLU = _elementwise_cell("SeLU", "The scaled exponential linear unit.", functions.selu, "[-1.111  2.101]")
SELU = SeLU
FastGelu = _elementwise_cell("FastGelu", "``x * sigmoid(1.702 x)``.", functions.fast_gelu, "[-0.154  1.936]")
SiLU = _elementwise_cell("SiLU", "``x * sigmoid(x)``.", functions.silu, "[-0.269  1.762]")
Mish = _elementwise_cell("Mish", "``x * tanh(log(1 + exp(x)))``.", functions.mish, "[-0.303  1.944]")
Sigmoid = _elementwise_cell("Sigmoid", "``1 / (1 + exp(-x))``.", functions.sigmoid, "[0.269 0.881]")
LogSigmoid = _elementwise_cell("LogSigmoid", "The logarithm of the sigmoid.", functions.logsigmoid, "[-1.313 -0.127]")
Tanh = _elementwise_cell("Tanh", "The hyperbolic tangent.", tanh, "[-0.762  0.964]")
Softsign = _elementwise_cell("Softsign", "``x / (1 + |x|)``.", functions.softsign, "[-0.5    0.667]")
HSigmoid = _elementwise_cell("HSigmoid", "``min(max((x + 3) / 6, 0), 1)``.", functions.hardsigmoid, "[0.333 0.833]")
HSwish = _elementwise_cell("HSwish", "``x`` times its ``HSigmoid``.", functions.hardswish, "[-0.333  1.667]")
Tanhshrink = _elementwise_cell("Tanhshrink", "``x - tanh(x)``.", functions.tanhshrink, "[-0.238  1.036]")


# --------------------------------------------------------------------------------------- with settings


def _number(cell: Cell, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(f"{type(cell).__name__}: {name} must be a number, got {value!r}")
    return value


class LeakyReLU(Cell):
    """``x`` where it is positive, and ``alpha * x`` elsewhere.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(LeakyReLU()(Tensor([-1.0, 2.0])))
    [-0.2  2. ]
    """

    def __init__(self, alpha: float = 0.2):
        super().__init__()
        self.alpha = _number(self, "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        return functions.leaky_relu(x, self.alpha)


class RReLU(Cell):
    """``x``, multiplied where negative by a random factor from ``lower`` to ``upper``, drawn for each element and each
    call."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3):
        super().__init__()
        self.lower, self.upper = _number(self, "lower", lower), _number(self, "upper", upper)
        if lower > upper:
            raise ArgumentError(f"RReLU: upper must be no less than lower, got lower {lower}, upper {upper}")

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        return functions.rrelu(x, self.lower, self.upper)


class ELU(Cell):
    """``x`` where it is positive, and ``alpha * (exp(x) - 1)`` elsewhere.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(ELU()(Tensor([-1.0, 2.0])).asnumpy().round(3))
    [-0.632  2.   ]
    """

    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self.alpha = _number(self, "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        return functions.elu(x, self.alpha)


class CELU(Cell):
    """``x`` where it is positive, and ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.CELU(alpha=1.0)(Tensor([-1.0, 2.0])).asnumpy().round(3))
    [-0.632  2.   ]
    """

    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self.alpha = _number(self, "alpha", alpha)
        if alpha <= 0:
            raise ArgumentError(f"CELU: alpha must be above 0, got {alpha}")

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        return functions.celu(x, self.alpha)


class GELU(Cell):
    """``x`` times the normal distribution function of ``x``; with ``approximate``, the approximation by tanh.

    Notes
    -----
    D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, arXiv:1606.08415.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(GELU()(Tensor([-1.0, 2.0])).asnumpy().round(3))
    [-0.159  1.955]
    """

    def __init__(self, approximate: bool = True):
        super().__init__()
        self.approximate = bool(approximate)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        return functions.gelu(x, "tanh" if self.approximate else "none")


class Hardtanh(Cell):
    """``x``, clipped to the range from ``min_val`` to ``max_val``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(Hardtanh()(Tensor([-3.0, 0.5, 3.0])))
    [-1.   0.5  1. ]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0):
        super().__init__()
        self.min_val, self.max_val = _number(self, "min_val", min_val), _number(self, "max_val", max_val)
        if min_val >= max_val:
            raise ArgumentError(f"Hardtanh: min_val must be less than max_val, got {min_val} and {max_val}")

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        return functions.hardtanh(x, self.min_val, self.max_val)


class HShrink(Cell):
    """``x``, but zero from ``-lambd`` to ``lambd``.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.HShrink(0.5)(Tensor([-1.0, 0.3, 2.0])))
    [-1.  0.  2.]
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = _number(self, "lambd", lambd)

    def construct(self, input: Tensor) -> Tensor:
        """Apply the activation to ``input``."""
        return functions.hardshrink(input, self.lambd)


class SoftShrink(Cell):
    """``x`` moved towards zero by ``lambd``, and zero where ``x`` is smaller than that.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.SoftShrink(0.5)(Tensor([-1.0, 0.3, 2.0])))
    [-0.5  0.   1.5]
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = _number(self, "lambd", lambd)

    def construct(self, input: Tensor) -> Tensor:
        """Apply the activation to ``input``."""
        return functions.softshrink(input, self.lambd)


class Threshold(Cell):
    """``x`` above ``threshold``, ``value`` elsewhere.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.Threshold(0.5, 9.0)(Tensor([0.3, 2.0])))
    [9. 2.]
    """

    def __init__(self, threshold: float, value: float):
        super().__init__()
        self.threshold, self.value = _number(self, "threshold", threshold), _number(self, "value", value)

    def construct(self, input_x: Tensor) -> Tensor:
        """Apply the activation to ``input_x``."""
        return functions.threshold(input_x, self.threshold, self.value)


class PReLU(Cell):
    """``x``, multiplied where negative by a parameter ``w``, one for all channels or one for each.

    Parameters
    ----------
    channel : int
        Number of slopes: 1, or the length of the second axis.
    w : float, list of float or Tensor
        Initial values of the slopes.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> PReLU()(nn.Tensor([-1.0, 1.0]))
    Tensor(shape=[2], dtype=Float32, value= [-2.50000000e-01,  1.00000000e+00])
    """

    def __init__(self, channel: int = 1, w: float | list[float] | Tensor = 0.25):
        super().__init__()
        self.channel = check_int(self, "channel", channel)
        self.w = Parameter([float(w)] * channel if isinstance(w, (int, float)) else w, name="a")
        if self.w.shape != (channel,):
            raise ArgumentError(f"PReLU: w must have {channel} numbers, one for each channel, got the shape "
                                f"{show(self.w.shape)}")

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        if self.channel > 1 and (len(x.shape) < 2 or x.shape[1] != self.channel):
            raise ShapeError(f"PReLU: expected {self.channel} channels in the second axis, got the shape "
                             f"{show(x.shape)}")
        return functions.prelu(x, self.w)


# ------------------------------------------------------------------------------------------- along an axis


class Softmax(Cell):
    """Exponentials scaled to add up to one along ``axis``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(Softmax()(Tensor([[0.0, 1.0, 2.0]])).asnumpy().round(3))
    [[0.09  0.245 0.665]]
    """

    _function: Callable[..., Tensor] = staticmethod(functions.softmax)

    def __init__(self, axis: int = -1):
        super().__init__()
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise ArgumentError(f"{type(self).__name__}: axis must be an int, got {axis!r}")
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        return self._function(x, self.axis)


class LogSoftmax(Softmax):
    """The logarithm of the softmax along ``axis``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(LogSoftmax()(Tensor([[0.0, 1.0, 2.0]])).asnumpy().round(3))
    [[-2.408 -1.408 -0.408]]
    """

    _function = staticmethod(functions.log_softmax)


class Softmin(Softmax):
    """The softmax of ``-x`` along ``axis``.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.Softmin(0)(Tensor([0.0, 1.0])).asnumpy().round(3))
    [0.731 0.269]
    """

    _function = staticmethod(functions.softmin)


class GLU(Softmax):
    """The first half along ``axis`` times the sigmoid of the second.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(GLU()(Tensor([[1.0, 2.0, 0.0, 0.0]])))
    [[0.5 1. ]]
    """

    _function = staticmethod(functions.glu)


class Softmax2d(Cell):
    """The softmax over the channels of images, ([batch,] channels, height, width).

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.Softmax2d()(Tensor([[[[0.0]], [[0.0]]]])).asnumpy().ravel())
    [0.5 0.5]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the activation to ``x``."""
        if len(x.shape) not in (3, 4):
            raise ShapeError(f"Softmax2d: expected 3 or 4 axes, got the shape {show(x.shape)}")
        return functions.softmax(x, -3)


_BY_NAME: dict[str, type[Cell]] = {
    "softmin": Softmin, "softmax": Softmax, "softmax2d": Softmax2d, "logsoftmax": LogSoftmax, "relu": ReLU,
    "relu6": ReLU6, "rrelu": RReLU, "silu": SiLU, "tanh": Tanh, "tanhshrink": Tanhshrink, "hardtanh": Hardtanh,
    "gelu": GELU, "fast_gelu": FastGelu, "elu": ELU, "sigmoid": Sigmoid, "softsign": Softsign, "prelu": PReLU,
    "leakyrelu": LeakyReLU, "hswish": HSwish, "hsigmoid": HSigmoid, "logsigmoid": LogSigmoid,
    "softshrink": SoftShrink, "hshrink": HShrink, "threshold": Threshold, "mish": Mish,
}


@overload
def get_activation(name: str, prim_name: str | None = None) -> Cell: ...


@overload
def get_activation(name: None, prim_name: str | None = None) -> None: ...


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """An activation by name.

    Parameters
    ----------
    name : str or None
        Name such as ``relu``; for None the result is None.
    prim_name : str, optional
        Name of the caller, for the error.

    Examples
    --------
    >>> get_activation("leakyrelu")
    LeakyReLU()
    """
    if name is None:
        return None
    if name not in _BY_NAME:
        raise WrongNameError(f"{f'For {prim_name!r}, the' if prim_name else 'The'} activation must be one of "
                             f"{', '.join(_BY_NAME)}, got {name!r}. {did_you_mean(str(name), _BY_NAME)}")
    return _BY_NAME[name]()


@overload
def callable_cell(cell: Cell, name: str, value: Activation) -> Callable[[Tensor], Tensor]: ...


@overload
def callable_cell(cell: Cell, name: str, value: Activation | None) -> Callable[[Tensor], Tensor] | None: ...


def callable_cell(cell: Cell, name: str, value: Activation | None) -> Callable[[Tensor], Tensor] | None:
    """A function of a tensor, or None: from the name of an activation, a Cell or another callable."""
    if isinstance(value, str):
        return get_activation(value, type(cell).__name__)
    if value is not None and not callable(value):
        raise ArgumentError(f"{type(cell).__name__}: {name} must be the name of an activation, a Cell or None, got "
                            f"{value!r}")
    return value


name_errors(__name__, globals(), __all__)

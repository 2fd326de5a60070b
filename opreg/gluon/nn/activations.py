"""Activations as blocks."""

from __future__ import annotations

from typing import Any

from ...core.attrs import Positive
from ...core.registry import get
from ...train import initializer
from ...train.initializer import InitializerLike
from ..errors import BlockError
from ..hybrid_block import HybridBlock

__all__ = ["Activation", "LeakyReLU", "PReLU", "ELU", "SELU", "Swish", "GELU"]

_QUARTER = initializer.Constant(0.25)


class Activation(HybridBlock):
    """An activation by its name: ``relu``, ``sigmoid``, ``tanh``, ``softrelu`` or ``softsign``.

    Examples
    --------
    >>> from opreg import nd
    >>> Activation("relu")(nd.array([-1, 2])).asnumpy()
    array([0., 2.], dtype=float32)
    """

    _act_type: str

    def __init__(self, activation: str, **kwargs: Any):
        # set before the base class makes the block's name of it
        self.__dict__["_act_type"] = get("Activation").signature.schema["act_type"](activation)
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class _Leaky(HybridBlock):
    """An activation that the operator ``LeakyReLU`` computes."""

    _act_type = "leaky"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.LeakyReLU(x, act_type=self._act_type, name="fwd")


class LeakyReLU(_Leaky):
    """``x`` where it is positive, and ``alpha * x`` elsewhere.

    Parameters
    ----------
    alpha : float
        The slope, not negative.

    Examples
    --------
    >>> from opreg import nd
    >>> LeakyReLU(0.5)(nd.array([-1, 2])).asnumpy()
    array([-0.5,  2. ], dtype=float32)
    """

    def __init__(self, alpha: float, **kwargs: Any):
        if alpha < 0:
            raise BlockError(f"LeakyReLU: alpha must be no less than 0, got {alpha}")
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """A leaky rectifier whose slopes are trained.

    Parameters
    ----------
    alpha_initializer : Initializer or str
        Initial values; 0.25 by default.
    in_channels : int
        Number of slopes: one for all channels, or one for each.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = PReLU()
    >>> layer.initialize()
    >>> layer(nd.array([[-2, 2]])).asnumpy()
    array([[-0.5,  2. ]], dtype=float32)
    """

    def __init__(self, alpha_initializer: InitializerLike = _QUARTER, in_channels: Positive = 1,
                 **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        """See ``HybridBlock``."""
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(_Leaky):
    """``x`` where it is positive, and ``alpha * (exp(x) - 1)`` elsewhere.

    Examples
    --------
    >>> from opreg import nd
    >>> ELU()(nd.array([-1, 2])).asnumpy().round(3)
    array([-0.632,  2.   ], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(_Leaky):
    """The scaled exponential activation, which preserves mean and variance.

    Examples
    --------
    >>> from opreg import nd
    >>> SELU()(nd.array([-1, 2])).asnumpy().round(3)
    array([-1.111,  2.101], dtype=float32)
    """

    _act_type = "selu"


class GELU(_Leaky):
    """``x`` times the standard normal distribution function of ``x``.

    Examples
    --------
    >>> from opreg import nd
    >>> GELU()(nd.array([-1, 2])).asnumpy().round(3)
    array([-0.159,  1.954], dtype=float32)
    """

    _act_type = "gelu"


class Swish(HybridBlock):
    """``x * sigmoid(beta * x)``.

    Parameters
    ----------
    beta : float
        The factor.

    Examples
    --------
    >>> from opreg import nd
    >>> Swish()(nd.array([-1, 2])).asnumpy().round(3)
    array([-0.269,  1.762], dtype=float32)
    """

    def __init__(self, beta: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return x * F.sigmoid(self._beta * x, name="fwd")

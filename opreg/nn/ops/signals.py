"""Windows that weigh the samples of a signal, longest in the middle and falling towards both ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import TensorDType
from ...core.spec import as_dtype, is_floating
from ...errors import ArgumentError, DTypeError
from .lift import tensor
from .primitive import adder

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]

_add = adder(globals(), __all__)


def _window(name: str, length: int | Tensor, periodic: bool, dtype: TensorDType, default: TensorDType,
            weights: Callable[[int], np.ndarray]) -> Tensor:
    """The weights of a symmetric window; a periodic one leaves out the last of a window longer by one."""
    count = int(length)
    if count < 0:
        raise ArgumentError(f"{name}: window_length must be at least 0, got {count}")
    kind = as_dtype(default if dtype is None else dtype)
    if not is_floating(kind):
        raise DTypeError(f"{name}: dtype must be floating, got {kind}")
    values = np.ones(count) if count < 2 else weights(count + bool(periodic))[:count]
    return tensor(values.astype(kind))


def bartlett_window(window_length: int | Tensor, periodic: bool = True, *, dtype: TensorDType = None) -> Tensor:
    """A triangle from 0 to 1 and back.

    Parameters
    ----------
    window_length : int, or Tensor of one
        Number of samples.
    periodic : bool
        Whether the first sample would follow the last, as in the windows of a spectrum; symmetric otherwise.
    dtype : optional
        A floating dtype, float32 by default.

    Examples
    --------
    >>> print(bartlett_window(4))
    [0.  0.5 1.  0.5]
    """
    return _window("bartlett_window", window_length, periodic, dtype, np.float32, np.bartlett)


def blackman_window(window_length: int | Tensor, periodic: bool = True, *, dtype: TensorDType = None) -> Tensor:
    """A sum of two cosines from 0 to 1 and back, float32 by default; see ``bartlett_window``."""
    return _window("blackman_window", window_length, periodic, dtype, np.float32,
                   lambda count: np.abs(np.blackman(count)))


def hamming_window(window_length: int | Tensor, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: TensorDType = None) -> Tensor:
    """``alpha - beta * cos(2 pi k / n)``, float32 by default; see ``bartlett_window``."""
    return _window("hamming_window", window_length, periodic, dtype, np.float32,
                   lambda count: alpha - beta * np.cos(2 * np.pi * np.arange(count) / (count - 1)))


def hann_window(window_length: int | Tensor, periodic: bool = True, *, dtype: TensorDType = None) -> Tensor:
    """A cosine from 0 to 1 and back, float64 by default; see ``bartlett_window``."""
    return _window("hann_window", window_length, periodic, dtype, np.float64, np.hanning)


def kaiser_window(window_length: int | Tensor, periodic: bool = True, beta: float = 12.0, *, dtype: TensorDType = None
                  ) -> Tensor:
    """A Bessel function of a half circle, narrower for a larger ``beta``, float64 by default; see
    ``bartlett_window``."""
    return _window("kaiser_window", window_length, periodic, dtype, np.float64, lambda count: np.kaiser(count, beta))


_add("BartlettWindow", bartlett_window, {"periodic": True, "dtype": np.dtype(np.float32)})
_add("BlackmanWindow", blackman_window, {"periodic": True, "dtype": np.dtype(np.float32)})
_add("HammingWindow", hamming_window, {"periodic": True, "alpha": 0.54, "beta": 0.46,
                                       "dtype": np.dtype(np.float32)})

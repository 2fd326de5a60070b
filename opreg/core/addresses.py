"""Memory addresses of arrays, on the host or on a device."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

__all__ = ["address_of"]


def address_of(array: Any) -> int:
    """The address of an array's first element, on the host or on its device.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = np.zeros((2, 3))
    >>> address_of(numbers[1]) - address_of(numbers)
    24
    """
    # For CuPy, ``__cuda_array_interface__`` would be slower: it makes a dict of eight items at each access.
    return array.__array_interface__["data"][0] if isinstance(array, ndarray) else array.data.ptr

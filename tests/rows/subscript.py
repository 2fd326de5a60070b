"""Rows of the operators for subscripts and for copies between devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_X = normal(3, 4, 5)
_KEYS: dict[str, Any] = {
    "number": 1, "negative": -2, "slice": slice(1, 3), "column": (slice(None), 1),
    "steps": (slice(None, None, -2), slice(0, 4, 3)), "dots": (Ellipsis, 2), "new-axis": (None, 0),
    "rows": np.array([2, 0, 2]), "places": (np.array([[0, 2], [1, 1]]), np.array([1, 3])),
}


def _scattered(key: Any) -> Any:
    def expected(g: np.ndarray, data: np.ndarray) -> np.ndarray:
        result = np.zeros_like(data)
        np.add.at(result, key, g)
        return result

    return expected


ROWS = [Row("_subscript", [_X], {"key": key}, lambda data, key=key: data[key], (0,), True, name=name)
        for name, key in _KEYS.items()]
ROWS += [Row("_backward_subscript", [normal(*_X[key].shape), _X], {"key": key},
             _scattered(key), (0,), True, name=name) for name, key in _KEYS.items()]
ROWS += [Row("_CrossDeviceCopy", [normal(3, 4)], expected=lambda data: data, grad=(0,), second=True)]

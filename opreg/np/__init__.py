"""np: arrays with NumPy's behaviour, like ``mxnet.numpy``; ``npx`` has functions that NumPy lacks.

Lengths may be zero, arrays may have no axes, comparisons give booleans, subscripts are NumPy's, and the default dtype
is float32. Each function that is an operator has a gradient, also inside of hybridized blocks.

>>> from opreg import autograd, np
>>> x = np.arange(3)
>>> x.attach_grad()
>>> with autograd.record():
...     y = np.dot(x, x) * 2
>>> y.backward()
>>> x.grad, y.item()
(array([0., 4., 8.]), 10.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as _numpy

from opreg.core.doc_examples import add_examples
from opreg.core.named_errors import name_errors
from opreg.errors import did_you_mean

from . import creation, elementwise, linalg, products, random, reductions, selection, shapes  # noqa: F401
from .creation import *  # noqa: F403
from .functions import FUNCTIONS, by_numpy
from .values import ndarray as ndarray

_CONSTANTS = ("pi", "e", "inf", "nan", "newaxis", "euler_gamma", "bool_", "float16", "float32", "float64", "int8",
              "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "finfo", "iinfo", "dtype",
              "set_printoptions", "get_printoptions", "printoptions", "result_type", "promote_types",
              "min_scalar_type", "can_cast", "isscalar", "ndindex")
globals().update({name: getattr(_numpy, name) for name in _CONSTANTS})
globals().update(FUNCTIONS)  # the functions of elementwise, products, reductions, selection and shapes
add_examples("opreg.builtin.numpy_names", globals(), "from opreg import np")
bool = _numpy.bool_  # MXNet has this name for NumPy's bool, too
globals().update(PINF=_numpy.inf, NINF=-_numpy.inf, NaN=_numpy.nan, NAN=_numpy.nan, PZERO=0.0, NZERO=-0.0)

#: Names that NumPy 2 has no more, and its new ones.
_RENAMED = {"trapz": "trapezoid"}

if not TYPE_CHECKING:  # type checkers follow the stars
    __all__ = ["ndarray", "random", "linalg", *creation.__all__, *FUNCTIONS]  # noqa: PLE0604
    name_errors(__name__, globals(), creation.__all__)

    def __dir__() -> list[str]:
        return sorted(__all__)


def __getattr__(name: str) -> Any:
    numpys = getattr(_numpy, _RENAMED.get(name, name), None) if not name.startswith("_") else None
    if not callable(numpys) or isinstance(numpys, type):
        raise AttributeError(f"np has no {name!r}. {did_you_mean(name, [*FUNCTIONS, *creation.__all__])}")
    function = globals()[name] = by_numpy(_RENAMED.get(name, name))
    return function

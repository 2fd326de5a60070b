"""numpy: functions of tensors by NumPy's names, like ``mindspore.numpy``.

They accept tensors, NumPy arrays, lists and numbers; Python integers become int32, floats float32. All are made from
registered operators: they have gradients, and can be compiled.

>>> import opreg.numpy as mnp
>>> print(mnp.arange(6).reshape((2, 3)).sum(axis=0), mnp.mean(mnp.ones((2, 2))))
[3 5 7] 1.0
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...cells.dtype import (
    bool_ as bool_,
)
from ...cells.dtype import (
    float16 as float16,
)
from ...cells.dtype import (
    float32 as float32,
)
from ...cells.dtype import (
    float64 as float64,
)
from ...cells.dtype import (
    int8 as int8,
)
from ...cells.dtype import (
    int16 as int16,
)
from ...cells.dtype import (
    int32 as int32,
)
from ...cells.dtype import (
    int64 as int64,
)
from ...cells.dtype import (
    uint8 as uint8,
)
from ...cells.dtype import (
    uint16 as uint16,
)
from ...cells.dtype import (
    uint32 as uint32,
)
from ...cells.dtype import (
    uint64 as uint64,
)
from ...core.doc_examples import add_examples
from ...core.named_errors import name_errors
from . import creation, elementwise, lookups, moving, products, reductions
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .lookups import *  # noqa: F403
from .moving import *  # noqa: F403
from .products import *  # noqa: F403
from .reductions import *  # noqa: F403

#: Dtypes of Python's integers and floats.
int_, float_ = int32, float32
inf, nan, pi = math.inf, math.nan, math.pi

if not TYPE_CHECKING:  # type checkers read the star imports
    __all__ = ["bool_", "float16", "float32", "float64", "float_", "inf", "int16", "int32", "int64",  # noqa: PLE0604
               "int8", "int_", "nan", "pi", "uint16", "uint32", "uint64", "uint8",
               *creation.__all__, *elementwise.__all__, *lookups.__all__, *moving.__all__, *products.__all__,
               *reductions.__all__]

add_examples("opreg.builtin.numpy_names", globals(), "from opreg import numpy as np")
if not TYPE_CHECKING:
    name_errors(__name__, globals(), __all__)

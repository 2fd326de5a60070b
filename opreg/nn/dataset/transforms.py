"""Operations on columns for ``map``: casts, one-hot classes, composed functions."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...aliases import inner
from ...cells.dtype import dtype_to_nptype
from ...cells.typing import TensorDType
from ...core.settings import Checked
from ...errors import ArgumentError
from .config import stream

__all__ = ["Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd", "RandomApply", "RandomChoice",
           "RandomOrder", "Relational", "Slice", "TypeCast", "Unique"]

if not TYPE_CHECKING:  # its submodules
    __getattr__ = inner(__name__)

#: A function of columns.
_Step = Callable[..., Any]


def apply_in_row(steps: Sequence[_Step], columns: tuple[Any, ...]) -> Any:
    """Functions applied in a row, each to the results of the one before."""
    for step in steps:
        results = step(*columns)
        columns = results if isinstance(results, tuple) else (results,)
    return columns if len(columns) > 1 else columns[0]


class Compose(Checked):
    """Functions applied in a row.

    Examples
    --------
    >>> Compose([lambda x: x + 1, lambda x: x * 2])(3)
    8
    """

    def __init__(self, transforms: Sequence[_Step]):
        self.transforms = list(transforms)

    def __call__(self, *columns: Any) -> Any:
        return apply_in_row(self.transforms, columns)


class RandomApply(Compose):
    """All functions applied in a row, or none of them, at random.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.RandomApply([transforms.Fill(3)], 1.0)(np.zeros(2))
    array([3., 3.])
    """

    def __init__(self, transforms: Sequence[_Step], prob: float = 0.5):
        super().__init__(transforms)
        self.prob = chance("RandomApply", prob)

    def __call__(self, *columns: Any) -> Any:
        return apply_in_row(self.transforms if stream().random() < self.prob else (), columns)


class RandomChoice(Compose):
    """One of the functions, chosen at random.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.RandomChoice([transforms.Fill(3)])(np.zeros(2))
    array([3., 3.])
    """

    def __call__(self, *columns: Any) -> Any:
        return apply_in_row([self.transforms[int(stream().integers(len(self.transforms)))]], columns)


class RandomOrder(Compose):
    """All functions, in random order.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.RandomOrder([transforms.Fill(3)])(np.zeros(2))
    array([3., 3.])
    """

    def __call__(self, *columns: Any) -> Any:
        order = stream().permutation(len(self.transforms))
        return apply_in_row([self.transforms[i] for i in order], columns)


def chance(owner: str, prob: float) -> float:
    """Check a probability, from 0 to 1."""
    if not 0 <= prob <= 1:
        raise ArgumentError(f"{owner}: prob must be from 0 to 1, got {prob!r}")
    return prob


class TypeCast(Checked):
    """The values in another dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.TypeCast(np.float32)(np.array([1, 2]))
    array([1., 2.], dtype=float32)
    """

    def __init__(self, data_type: TensorDType):
        self._dtype = np.dtype(dtype_to_nptype(data_type))

    def __call__(self, column: Any) -> np.ndarray:
        return np.asarray(column).astype(self._dtype)


class OneHot(Checked):
    """One-hot rows from class numbers.

    Parameters
    ----------
    smoothing_rate : float
        Part of the 1 that is spread evenly over all classes.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.OneHot(3)(np.array(1))
    array([0, 1, 0])
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0):
        if num_classes < 1 or not 0 <= smoothing_rate <= 1:
            raise ArgumentError(f"OneHot: expected at least one class and a rate from 0 to 1, got {num_classes} and "
                                f"{smoothing_rate}")
        self._classes, self._rate = num_classes, smoothing_rate

    def __call__(self, column: Any) -> np.ndarray:
        labels = np.asarray(column)
        if labels.dtype.kind not in "iu" or ((labels < 0) | (labels >= self._classes)).any():
            raise ArgumentError(f"OneHot: expected classes from 0 to before {self._classes}, got {labels.tolist()!r}")
        rows = np.eye(self._classes, dtype=labels.dtype)[labels]
        if labels.ndim and labels.shape[-1] == 1:
            rows = rows.reshape((*labels.shape[:-1], self._classes))
        return rows if not self._rate else rows * (1 - self._rate) + self._rate / self._classes


class Fill(Checked):
    """An array of the same shape, filled with one value.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.Fill(3)(np.zeros(2))
    array([3., 3.])
    """

    def __init__(self, fill_value: float | bool):
        self._value = fill_value

    def __call__(self, column: Any) -> np.ndarray:
        return np.full_like(column, self._value)


class Relational(enum.IntEnum):
    """Kinds of comparison."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class Mask(Checked):
    """The elements of a column compared with a constant.

    Parameters
    ----------
    operator : Relational
        Kind of comparison.
    constant : int, float, bool or str
        Right side of it.
    dtype : dtype
        Dtype of the result, bool by default.

    Examples
    --------
    >>> Mask(Relational.GE, 2)([1, 2, 3])
    array([False,  True,  True])
    """

    def __init__(self, operator: Relational, constant: float | str, dtype: TensorDType = np.bool_):
        self._compare = _COMPARISONS[Relational(operator)]
        self._constant, self._dtype = constant, np.dtype(dtype_to_nptype(dtype))

    def __call__(self, column: Any) -> np.ndarray:
        return np.asarray(self._compare(np.asarray(column), self._constant)).astype(self._dtype)


_COMPARISONS: dict[Relational, Callable[[Any, Any], Any]] = {
    kind: getattr(operator, kind.name.lower()) for kind in Relational}


class Slice(Checked):
    """A part of a column, given for each axis by an index, a list of indices, a slice, or None or ``...`` for the
    whole axis.

    An axis with an index is kept, with length one. Axes without an entry are taken as a whole.

    Examples
    --------
    >>> Slice(slice(1, 3))([1, 2, 3])
    array([2, 3])
    """

    def __init__(self, *slices: int | Sequence[int] | slice | None):
        self._parts = [[part] if isinstance(part, int) and not isinstance(part, bool) else part for part in slices]

    def __call__(self, column: Any) -> np.ndarray:
        array = np.asarray(column)
        for axis, part in enumerate(self._parts):
            if isinstance(part, slice):
                array = array[(slice(None),) * axis + (part,)]
            elif isinstance(part, (list, tuple)):
                array = np.take(array, part, axis)
        return array


class Concatenate(Checked):
    """Columns concatenated, between two given arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.Concatenate(0, np.array([3]))(np.array([1, 2]))
    array([3, 1, 2])
    """

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None):
        self._axis, self._before, self._behind = axis, prepend, append

    def __call__(self, *columns: Any) -> np.ndarray:
        parts = [self._before, *columns, self._behind]
        return np.concatenate([np.asarray(part) for part in parts if part is not None], self._axis)


class Duplicate(Checked):
    """A column twice, as two columns.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.Duplicate()(np.array([1, 2]))
    (array([1, 2]), array([1, 2]))
    """

    def __call__(self, column: Any) -> tuple[Any, Any]:
        return column, column


class PadEnd(Checked):
    """A column padded at its ends to a shape; None leaves an axis unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import transforms
    >>> transforms.PadEnd([4], 0)(np.array([1, 2]))
    array([1, 2, 0, 0])
    """

    def __init__(self, pad_shape: Sequence[int | None], pad_value: float | None = None):
        self._shape, self._value = list(pad_shape), pad_value or 0

    def __call__(self, column: Any) -> np.ndarray:
        array = np.asarray(column)
        lengths = [have if target is None else target for have, target in zip(array.shape, self._shape, strict=True)]
        array = array[tuple(slice(length) for length in lengths)]
        return np.pad(array, [(0, length - have) for have, length in zip(array.shape, lengths)],
                      constant_values=self._value)


class Unique(Checked):
    """Three results: the distinct elements in the order in which they occur, for each element its index among the
    distinct ones, and for each distinct element its count.

    Examples
    --------
    >>> [each.tolist() for each in Unique()([[3, 1, 3]])]
    [[3, 1], [0, 1, 0], [2, 1]]
    """

    def __call__(self, column: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values, first, which, counts = np.unique(column, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first)
        place = np.argsort(order)
        return values[order], place[which.reshape(-1)].astype(np.int32), counts[order].astype(np.int32)

"""Padding: layers that add elements around the last axes."""

from __future__ import annotations

from collections.abc import Sequence

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...cells.typing import Sizes
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from ..ops import array
from ..ops.lift import plain
from ..ops.primitives import pad_by_mirror
from .checks import check_ints, check_word

__all__ = ["Pad", "ZeroPad2d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d",
           "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"]


class Pad(Cell):
    """Pads the data.

    Parameters
    ----------
    paddings : tuple of pairs of int
        Elements added before and after, for each axis.
    mode : {"CONSTANT", "REFLECT", "SYMMETRIC"}
        Zeros; a reflection without the outermost element; a reflection that includes it.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(Pad(((0, 0), (1, 2)))(Tensor([[5.0, 6.0]])))
    [[0. 5. 6. 0. 0.]]
    """

    def __init__(self, paddings: Sequence[Sequence[int]], mode: str = "CONSTANT"):
        super().__init__()
        if not isinstance(paddings, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in paddings):
            raise ArgumentError(f"Pad: paddings must be a tuple of pairs, got {paddings!r}")
        self.paddings = tuple(check_ints(self, "paddings", pair, 2, 0) for pair in paddings)
        self.mode = check_word(self, "mode", mode, ("constant", "reflect", "symmetric"))

    def construct(self, x: Tensor) -> Tensor:
        """Pad ``x``."""
        if len(self.paddings) != len(x.shape):
            raise ShapeError(f"Pad: {len(self.paddings)} pairs do not fit the shape {show(x.shape)}")
        if self.mode != "symmetric":
            return array.pad(x, [width for pair in reversed(self.paddings) for width in pair], self.mode)
        return pad_by_mirror(x, self.paddings, mode="SYMMETRIC")


class _PadAround(Cell):
    """Base of layers that pad the last axes.

    Parameters
    ----------
    padding : int or tuple of int
        Elements added, on all sides or one value for each side: before and after along the last axis, then along the
        one before it. Negative values remove elements.
    """

    _axes = 0
    _mode = "constant"

    def __init__(self, padding: Sizes):
        super().__init__()
        sides = 2 * self._axes
        widths = (padding,) * sides if isinstance(padding, int) else padding
        fine = isinstance(widths, tuple) and all(isinstance(width, int) for width in widths)
        if not fine or len(widths) > sides or len(widths) % 2:
            raise ArgumentError(f"{type(self).__name__}: padding must be an int or {sides} of them, got {padding!r}")
        self.padding = widths
        self.value: float = 0

    def construct(self, x: Tensor) -> Tensor:
        """Pad ``x``."""
        rank, pairs = len(x.shape), len(self.padding) // 2
        if rank < pairs:
            raise ShapeError(f"{type(self).__name__}: padding for {pairs} axes does not fit the shape {show(x.shape)}")
        return array.pad(x, self.padding, self._mode, self.value)


class ZeroPad2d(_PadAround):
    """Zeros around the last two axes; ``padding`` is (left, right, top, bottom), or one value for all.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(ZeroPad2d(1)(Tensor([[[[5.0]]]])))
    [[[[0. 0. 0.]
       [0. 5. 0.]
       [0. 0. 0.]]]]
    """

    _axes = 2


class _ConstantPad(_PadAround):
    """Base of layers that pad with one value."""

    def __init__(self, padding: Sizes, value: float):
        super().__init__(padding)
        self.value = plain(value)


class ConstantPad1d(_ConstantPad):
    """``value`` around the last axis; ``padding`` is (before, after), or one number for both.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(ConstantPad1d((1, 2), 9.0)(Tensor([[5.0, 6.0]])))
    [[9. 5. 6. 9. 9.]]
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """``value`` around the last two axes; ``padding`` is (left, right, top, bottom), or one value for all.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.ConstantPad2d((1, 1, 0, 0), 9.0)(Tensor([[[[1.0, 2.0]]]])))
    [[[[9. 1. 2. 9.]]]]
    """

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """``value`` around the last three axes; ``padding`` has six numbers, last axis first, or is one for all.

    Examples
    --------
    >>> from opreg import ops
    >>> ConstantPad3d(1, 9.0)(ops.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 6, 6, 6)
    """

    _axes = 3


class _ReflectionPad(_PadAround):
    """Base of layers that pad by reflection at the outermost elements."""

    _mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """Pad the last axis by reflection at its outermost elements; ``padding`` is (before, after).

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(ReflectionPad1d(2)(Tensor([[1.0, 2.0, 3.0]])))
    [[3. 2. 1. 2. 3. 2. 1.]]
    """

    _axes = 1


class ReflectionPad2d(_ReflectionPad):
    """Pad the last two axes by reflection at their outermost elements; ``padding`` is (left, right, top, bottom).

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(ReflectionPad2d((1, 1, 0, 0))(Tensor([[[1.0, 2.0], [3.0, 4.0]]])))
    [[[2. 1. 2. 1.]
      [4. 3. 4. 3.]]]
    """

    _axes = 2


class ReflectionPad3d(_ReflectionPad):
    """Pad the last three axes by reflection at their outermost elements; ``padding`` has six numbers.

    Examples
    --------
    >>> from opreg import ops
    >>> ReflectionPad3d(1)(ops.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 6, 6, 6)
    """

    _axes = 3


class _ReplicationPad(_PadAround):
    """Base of layers that repeat the outermost elements."""

    _mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """The outermost elements of the last axis repeated; ``padding`` is (before, after).

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(ReplicationPad1d(2)(Tensor([[1.0, 2.0, 3.0]])))
    [[1. 1. 1. 2. 3. 3. 3.]]
    """

    _axes = 1


class ReplicationPad2d(_ReplicationPad):
    """The outermost elements of the last two axes repeated; ``padding`` is (left, right, top, bottom).

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.ReplicationPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0]]]])))
    [[[[1. 1. 2. 2.]]]]
    """

    _axes = 2


class ReplicationPad3d(_ReplicationPad):
    """The outermost elements of the last three axes repeated; ``padding`` has six numbers.

    Examples
    --------
    >>> from opreg import ops
    >>> ReplicationPad3d(1)(ops.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 6, 6, 6)
    """

    _axes = 3

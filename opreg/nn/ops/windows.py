"""Max pooling with indices, fractional max pooling, unpooling, and power-average pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cells.tensor import Tensor, has_values
from ...cells.typing import Sizes, TensorLike
from ...core.registry import ops
from ...core.spec import is_floating, limits, show
from ...errors import ArgumentError, DTypeError, ShapeError
from .creation import zeros
from .indexing import gather_elements, tensor_scatter_elements
from .lift import as_floating, tensor
from .math import where
from .nn import adaptive_pool, pool, sizes, windows_along
from .random import rand

__all__ = [
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d",
    "fractional_max_pool3d", "lp_pool1d", "lp_pool2d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d",
    "max_unpool3d"]


# ----------------------------------------------------------------------------------- the largest of windows


def _window_indices(length: int, kernel: int, stride: int, pad: int, dilation: int, ceil: bool) -> np.ndarray:
    """Indices along an axis of the elements of each window, one row for each window; -1 where there is none."""
    size = dilation * (kernel - 1) + 1
    if size > length + 2 * pad:
        raise ShapeError(f"max pooling: windows of {size} do not fit a length of {length} with a padding of {pad}")
    begins = np.arange(windows_along(length, size, stride, pad, ceil))[:, None] * stride - pad
    places = begins + np.arange(kernel) * dilation
    return np.where((places >= 0) & (places < length), places, -1)


def _flat_indices(axes: Sequence[np.ndarray], lengths: Sequence[int]) -> np.ndarray:
    """Flat indices of the elements of windows, from their indices along each axis; -1 where there is none."""
    places = np.zeros((1, 1), np.int64)
    for rows, length in zip(axes, lengths):
        inside = (places >= 0)[:, None, :, None] & (rows >= 0)[None, :, None, :]
        both = places[:, None, :, None] * length + rows[None, :, None, :]
        places = np.where(inside, both, -1).reshape(len(places) * len(rows), -1)
    return places


def max_windows(x: TensorLike, count: int, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil: bool
                ) -> tuple[Tensor, Tensor]:
    """The maximum of each window over the last ``count`` axes, and its flat index."""
    x = tensor(x)
    if x.ndim not in (count + 1, count + 2):
        raise ShapeError(f"max pooling: expected {count + 1} or {count + 2} axes, got shape {show(x.shape)}")
    lengths = x.shape[-count:]
    return _largest(x, [_window_indices(n, k, s, p, d, ceil) for n, k, s, p, d in zip(
        lengths, sizes(kernel, count, "kernel_size"), sizes(stride, count, "stride"), sizes(padding, count, "padding"),
        sizes(dilation, count, "dilation"))])


def _largest(x: Tensor, axes: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """The maximum of each window, given the indices of its elements along each of the last axes, and its flat index."""
    lead, lengths = x.shape[:-len(axes)], x.shape[-len(axes):]
    places = _flat_indices(axes, lengths)
    flat = x.reshape((*lead, math.prod(lengths)))
    picked = ops.take(flat, tensor(np.maximum(places, 0)), axis=-1, mode="clip")
    if (places < 0).any():
        least = -math.inf if is_floating(x._dt) else int(limits(x._dt)[0])
        picked = where(tensor(places < 0), tensor(np.asarray(least, x._dt)), picked)
    first = ops._npi_argmax(picked, axis=-1)._cast(np.dtype(np.int64))
    at = ops.take(tensor(places.reshape(-1)), first + tensor(np.arange(len(places)) * places.shape[1]), axis=0,
                  mode="clip")
    shape = (*lead, *map(len, axes))
    return gather_elements(flat, -1, at).reshape(shape), at.reshape(shape)


def _pooled(count: int, x: TensorLike, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes,
            ceil: bool, places: bool) -> Tensor | tuple[Tensor, Tensor]:
    stride = kernel if stride is None else stride
    if not places and set(sizes(dilation, count, "dilation")) == {1}:
        return pool("max", count, x, kernel, stride, padding, ceil)
    pooled = max_windows(x, count, kernel, stride, padding, dilation, ceil)
    return pooled if places else pooled[0]


def max_pool2d(x: TensorLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
               return_indices: bool = False, ceil_mode: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window of images; by default windows do not overlap.

    Parameters
    ----------
    dilation : int or tuple of 2 int
        Dilation of the window.
    return_indices : bool
        Whether the flat index of each maximum in its image is returned, too, as int64.
    """
    return _pooled(2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(x: TensorLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window of volumes; see ``max_pool2d``."""
    return _pooled(3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def adaptive_max(count: int, input: TensorLike, output_size: int | Sequence[int | None], places: bool
                 ) -> Tensor | tuple[Tensor, Tensor]:
    """Maxima over the cells of a grid, see ``adaptive_pool``; with ``places`` also the flat index of each."""
    pooled = adaptive_pool("max", count, input, output_size)
    if not places:
        return pooled
    axes = []
    for n, m in zip(tensor(input).shape[-count:], pooled.shape[-count:]):
        begin, end = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
        rows = begin[:, None] + np.arange((end - begin).max(initial=1))
        axes.append(np.where(rows < end[:, None], rows, -1))
    return _largest(tensor(input), axes)


def adaptive_max_pool1d(input: TensorLike, output_size: int) -> Tensor:
    """The maximum of each of ``output_size`` cells of sequences."""
    return adaptive_pool("max", 1, input, output_size)


def adaptive_max_pool2d(input: TensorLike, output_size: int | Sequence[int | None], return_indices: bool = False
                       ) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each cell of a grid of ``output_size``; None keeps a length.

    With ``return_indices`` the flat index of each maximum in its image is returned, too, as int64.
    """
    return adaptive_max(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: TensorLike, output_size: int | Sequence[int | None], return_indices: bool = False
                       ) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each cell of a grid of volumes; see ``adaptive_max_pool2d``. Indices are int32."""
    pooled = adaptive_max(3, input, output_size, return_indices)
    return (pooled[0], pooled[1].astype(np.int32)) if return_indices else pooled


# ------------------------------------------------------------------------------------- windows at random


def fractional_max_pool2d(input: TensorLike, kernel_size: Sizes, output_size: Sizes | None = None,
                          output_ratio: float | tuple[float, float] | None = None, return_indices: bool = False,
                          _random_samples: TensorLike | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of windows of images, at random positions that give the requested number of windows.

    B. Graham, Fractional Max-Pooling, arXiv:1412.6071.

    Parameters
    ----------
    input : Tensor
        Images of shape :math:`([N,] C, H, W)`.
    kernel_size : int or tuple of 2 int
        Lengths of a window.
    output_size : int or tuple of 2 int, optional
        Number of windows along each axis; or as ``output_ratio``, their number divided by the length.
    return_indices : bool
        Whether the flat index of each maximum in its image is returned, too, as int64.
    _random_samples : Tensor, optional
        Random values from 0 to 1 that decide the positions, of shape :math:`(N, C, 2)`: for width, then height.

    Raises
    ------
    ValueError
        When neither size nor ratio is given, or windows do not fit.
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples, (1, 0))


def fractional_max_pool3d(input: TensorLike, kernel_size: Sizes, output_size: Sizes | None = None,
                          output_ratio: float | tuple[float, float, float] | None = None, return_indices: bool = False,
                          _random_samples: TensorLike | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """``fractional_max_pool2d`` for volumes :math:`([N,] C, D, H, W)`; ``_random_samples`` are for depth, height,
    width."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples, (0, 1, 2))


def output_sizes(what: str, count: int, lengths: Sequence[int], size: Sizes | None, ratio: object) -> tuple[int, ...]:
    """Numbers of windows along each axis, given as counts or as fractions of the length."""
    if size is not None:
        return sizes(size, count, f"{what}: output_size")
    if ratio is None:
        raise ArgumentError(f"{what}: give output_size or output_ratio")
    ratios = ratio if isinstance(ratio, (tuple, list)) else (ratio,) * count
    if len(ratios) != count or not all(isinstance(part, float) and 0 < part < 1 for part in ratios):
        raise ArgumentError(f"{what}: output_ratio must be a number between 0 and 1, or {count} of them, got {ratio!r}")
    return tuple([int(length * part) for length, part in zip(lengths, ratios)])


def _fractional(count: int, input: TensorLike, kernel: Sizes, size: Sizes | None, ratio: object, places: bool,
                samples: TensorLike | None, order: Sequence[int]) -> Tensor | tuple[Tensor, Tensor]:
    what, x = f"fractional_max_pool{count}d", tensor(input)
    if x.ndim not in (count + 1, count + 2):
        raise ShapeError(f"{what}: expected {count + 1} or {count + 2} axes, got shape {show(x.shape)}")
    if x.ndim == count + 1:
        pooled = _fractional(count, ops.expand_dims(x, axis=0), kernel, size, ratio, True, samples, order)
        squeezed = tuple([ops.squeeze(part, axis=(0,)) for part in pooled])
        return (squeezed[0], squeezed[1]) if places else squeezed[0]
    n, channels = x.shape[:2]
    lengths = x.shape[2:]
    windows, target = sizes(kernel, count, f"{what}: kernel_size"), output_sizes(what, count, lengths, size, ratio)
    if any(k < 1 or m < 1 or k + m - 1 > length for k, m, length in zip(windows, target, lengths)):
        raise ShapeError(f"{what}: {show(target)} windows of {show(windows)} do not fit images of {show(lengths)}")
    chances = rand(n, channels, count) if samples is None else tensor(samples)
    if chances.shape != (n, channels, count):
        raise ShapeError(f"{what}: _random_samples must have the shape {show((n, channels, count))}, got "
                         f"{show(chances.shape)}")
    at: Tensor = tensor(np.zeros((1, 1, 1, 1), np.int64))
    for axis, (k, m, length) in enumerate(zip(windows, target, lengths)):
        rows = ops.expand_dims(_starts(chances[..., order[axis]], k, m, length), axis=-1) + tensor(np.arange(k))
        both = at.reshape((*at.shape[:3], 1, at.shape[3], 1)) * length + rows.reshape((n, channels, 1, m, 1, k))
        at = both.reshape((n, channels, at.shape[2] * m, at.shape[3] * k))
    flat = x.reshape((n, channels, math.prod(lengths)))
    picked = gather_elements(flat, -1, at.reshape((n, channels, -1))).reshape(at.shape)
    first = ops._npi_argmax(picked, axis=-1)._cast(np.dtype(np.int64))
    chosen = gather_elements(at, -1, ops.expand_dims(first, axis=-1)).reshape(first.shape)
    values, shape = gather_elements(flat, -1, chosen), (n, channels, *target)
    return (values.reshape(shape), chosen.reshape(shape)) if places else values.reshape(shape)


def _starts(chance: Tensor, kernel: int, count: int, length: int) -> Tensor:
    """Start indices of windows along an axis; the last window is at the end."""
    free = length - kernel
    last = tensor(np.full((*chance.shape, 1), free))
    if count == 1:
        return last
    step = tensor(np.asarray(free / (count - 1), chance._dt))
    shifted = ops.expand_dims(chance, axis=-1)
    begin = ops.floor((shifted + tensor(np.arange(count - 1).astype(chance._dt))) * step) - ops.floor(shifted * step)
    return ops.Concat(begin._cast(np.dtype(np.int64)), last, num_args=2, dim=-1)


# --------------------------------------------------------------------------------------------- the way back


def _unpool(count: int, x: TensorLike, indices: TensorLike, kernel: Sizes, stride: Sizes | None, padding: Sizes,
            size: Sequence[int] | None) -> Tensor:
    what, x, at = f"max_unpool{count}d", tensor(x), tensor(indices)
    if x.ndim not in (count + 1, count + 2) or at.shape != x.shape:
        raise ShapeError(f"{what}: expected {count + 1} or {count + 2} axes, and an index for each element, got shapes "
                         f"{show(x.shape)} and {show(at.shape)}")
    if at._dt not in (np.int32, np.int64):
        raise DTypeError(f"{what}: indices must be int32 or int64, got {at._dt}")
    windows = sizes(kernel, count, f"{what}: kernel_size")
    steps = windows if stride is None else sizes(stride, count, f"{what}: stride")
    steps = windows if not any(steps) else steps
    lead, lengths = x.shape[:-count], x.shape[-count:]
    usual = tuple([(n - 1) * s - 2 * p + k
                   for n, k, s, p in zip(lengths, windows, steps, sizes(padding, count, f"{what}: padding"))])
    target = tuple(size[-count:]) if size else usual
    if len(target) != count or not all(n - s < m < n + s for n, s, m in zip(usual, steps, target)):
        raise ShapeError(f"{what}: output_size must differ from {show(usual)} by less than the stride, got {size!r}")
    places = math.prod(target)
    if has_values(at):
        numbers = at.asnumpy()
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < places:
            raise ArgumentError(f"{what}: indices must be from 0 to {places - 1}, for an output of shape "
                                f"{show(target)}, got "
                                f"{numbers.min()} to {numbers.max()}")
    rows = (*lead, math.prod(lengths))
    return tensor_scatter_elements(zeros((*lead, places), x._dt), at.reshape(rows), x.reshape(rows), -1).reshape(
        (*lead, *target))


def max_unpool1d(x: TensorLike, indices: TensorLike, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0, output_size: tuple[int, ...] | None = None) -> Tensor:
    """Put the maxima of windows of sequences at their positions, and zeros elsewhere; see ``max_unpool2d``."""
    return _unpool(1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(x: TensorLike, indices: TensorLike, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0, output_size: tuple[int, ...] | None = None) -> Tensor:
    """Put the maxima of windows of images at their positions, and zeros elsewhere.

    Parameters
    ----------
    x : Tensor
        Maxima of shape :math:`([N,] C, H, W)`.
    indices : Tensor
        Flat index of each maximum in its image, as returned by ``max_pool2d(return_indices=True)``. If an index occurs
        twice, the last value wins.
    kernel_size, stride, padding : int or tuple of 2 int
        Arguments of the pooling; ``stride`` is ``kernel_size`` by default.
    output_size : tuple of int, optional
        Size of the images. It differs by less than a stride from the default,
        :math:`(H - 1) stride - 2 padding + kernel\\_size`; leading axes are ignored.

    Raises
    ------
    ValueError
        When shapes differ, an index is beyond the image, or the size does not fit.
    TypeError
        When indices are not int32 or int64.

    Examples
    --------
    >>> print(max_unpool2d(tensor([[[5.0]]]), tensor([[[2]]]), 2))
    [[[0. 0.]
      [5. 0.]]]
    """
    return _unpool(2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(x: TensorLike, indices: TensorLike, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0, output_size: tuple[int, ...] | None = None) -> Tensor:
    """Put the maxima of windows of volumes at their positions, and zeros elsewhere; see ``max_unpool2d``."""
    return _unpool(3, x, indices, kernel_size, stride, padding, output_size)


# --------------------------------------------------------------------------------------------------- powers


def _powers(count: int, x: TensorLike, power: float, kernel: Sizes, stride: Sizes | None, ceil: bool) -> Tensor:
    if isinstance(power, bool) or not isinstance(power, (int, float)):
        raise ArgumentError(f"lp_pool{count}d: norm_type must be an int or float, got {type(power).__name__}")
    if power == 0:
        raise ArgumentError(f"lp_pool{count}d: norm_type must not be 0")
    windows = sizes(kernel, count, "kernel_size")
    means = pool("avg", count, as_floating(x) ** float(power), windows, windows if stride is None else stride, 0, ceil,
                 count_include_pad=True)
    return (means * math.prod(windows)) ** (1.0 / power)


def lp_pool1d(x: TensorLike, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
              ) -> Tensor:
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window of sequences; by default windows do not overlap."""
    return _powers(1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(x: TensorLike, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
              ) -> Tensor:
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window of images; by default windows do not overlap."""
    return _powers(2, x, norm_type, kernel_size, stride, ceil_mode)

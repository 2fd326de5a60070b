"""Detection primitives: encoding of boxes, non-maximum suppression, and pooling of regions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import TensorLike
from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from .array import concat, stack
from .indexing import gather, scatter_nd, topk
from .lift import as_floating, like, tensor, to_common_dtype
from .math import clamp, isfinite, logical_and
from .nn import padded
from .primitive import adder
from .random import rand

__all__ = ["bounding_box_decode", "bounding_box_encode", "check_valid", "choice_with_mask", "deformable_conv2d"]

_add = adder(globals(), __all__)


def _boxes(name: str, *inputs: TensorLike) -> tuple[Tensor, ...]:
    boxes = to_common_dtype(*inputs, real=True) if len(inputs) > 1 else (as_floating(inputs[0]),)
    if any(box.ndim != 2 or box.shape[1] != 4 or box.shape != boxes[0].shape for box in boxes):
        raise ShapeError(f"{name}: expected equally many boxes of four numbers each, got shapes "
                         f"{', '.join(show(box.shape) for box in boxes)}")
    return tuple(boxes)


def _four(name: str, what: str, value: float | Sequence[float], like: Tensor) -> Tensor:
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,) * 4
    if len(numbers) != 4:
        raise ArgumentError(f"{name}: {what} must be four numbers, got {value!r}")
    return tensor(np.asarray(numbers, like._dt))


def _middles(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Centers and lengths of boxes, whose last pixels are included."""
    return (boxes[:, :2] + boxes[:, 2:]) * 0.5, boxes[:, 2:] - boxes[:, :2] + 1


def _encode_boxes(anchor_box: TensorLike, groundtruth_box: TensorLike, *, means: float | Sequence[float],
                  stds: float | Sequence[float]) -> Tensor:
    anchors, boxes = _boxes("BoundingBoxEncode", anchor_box, groundtruth_box)
    (middle, length), (goal, size) = _middles(anchors), _middles(boxes)
    deltas = concat(((goal - middle) / length, ops.log(size / length)), 1)
    return (deltas - _four("BoundingBoxEncode", "means", means, deltas)) \
        / _four("BoundingBoxEncode", "stds", stds, deltas)


def _decode_boxes(anchor_box: TensorLike, deltas: TensorLike, *, max_shape: Sequence[int],
                  means: float | Sequence[float], stds: float | Sequence[float], wh_ratio_clip: float) -> Tensor:
    name = "BoundingBoxDecode"
    anchors, moves = _boxes(name, anchor_box, deltas)
    if len(max_shape) != 2:
        raise ArgumentError(f"{name}: max_shape must be a height and a width, got {max_shape!r}")
    (middle, length), most = _middles(anchors), abs(math.log(wh_ratio_clip))
    moves = moves * _four(name, "stds", stds, moves) + _four(name, "means", means, moves)
    middle = middle + length * moves[:, :2]
    half = length * ops.exp(clamp(moves[:, 2:], -most, most)) * 0.5 - 0.5
    height, width = max_shape
    ends = tensor(np.asarray([width, height] * 2, moves._dt))
    return ops.broadcast_minimum(ops.relu(concat((middle - half, middle + half), 1)), ends)


_add("BoundingBoxEncode", _encode_boxes, {"means": (0.0,) * 4, "stds": (1.0,) * 4})
_add("BoundingBoxDecode", _decode_boxes, {"max_shape": ..., "means": (0.0,) * 4, "stds": (1.0,) * 4,
                                          "wh_ratio_clip": 0.016})


def _valid(bboxes: TensorLike, img_metas: TensorLike) -> Tensor:
    (boxes,), metas = _boxes("CheckValid", bboxes), as_floating(img_metas)
    height, width = metas[0] * metas[2], metas[1] * metas[2]
    low = ops.min(boxes[:, :2], axis=1) >= 0
    return logical_and(low, logical_and(boxes[:, 2] <= width - 1, boxes[:, 3] <= height - 1))


_add("CheckValid", _valid)


def _without_overlaps(bboxes: TensorLike, *, iou_threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    boxes = as_floating(bboxes)
    if boxes.ndim != 2 or boxes.shape[1] != 5:
        raise ShapeError(f"NMSWithMask: expected rows of four corners and a score, got shape {show(boxes.shape)}")
    count = boxes.shape[0]
    boxes = gather(boxes, ops.argsort(boxes[:, 4], is_ascend=False, dtype=np.dtype(np.int32)), 0)
    place = tensor(np.arange(count, dtype=boxes._dt).reshape(-1, 1))
    ends = ops.sort(boxes[:, :4].reshape((-1, 2, 2)), axis=1).reshape((-1, 4))  # corners may come in any order
    ranked = concat((place, count - place, ends), 1)
    winners = ops._contrib_box_nms(ranked, overlap_thresh=iou_threshold, coord_start=2, score_index=1)[:, 0]
    is_kept = winners >= 0
    chosen = scatter_nd(ops.relu(winners)._cast(np.dtype(np.int32)).reshape((-1, 1)), is_kept._cast(np.dtype(np.int32)),
                        (count,)) > 0
    return boxes, tensor(np.arange(count, dtype=np.int32)), chosen


_add("NMSWithMask", _without_overlaps, {"iou_threshold": 0.5})


def _regions(features: TensorLike, rois: TensorLike, *, pooled_height: int, pooled_width: int, spatial_scale: float,
             sample_num: int, roi_end_mode: int) -> Tensor:
    x, boxes = to_common_dtype(features, rois, real=True)
    if roi_end_mode:  # the last pixel is included; boxes below one pixel are kept if the operator shifts by a half
        half = 0.5 / spatial_scale
        boxes = boxes + tensor(np.asarray([0, half, half, half + 1, half + 1], boxes._dt))
    return ops._contrib_ROIAlign(x, boxes, pooled_size=(pooled_height, pooled_width), spatial_scale=spatial_scale,
                                 sample_ratio=sample_num or -1, aligned=bool(roi_end_mode))


def _end_mode(*, roi_end_mode: int, sample_num: int, **_: object) -> None:
    if roi_end_mode not in (0, 1) or sample_num < 0:
        raise ArgumentError(f"ROIAlign: roi_end_mode must be 0 or 1, and sample_num not negative, got {roi_end_mode!r} "
                            f"and {sample_num!r}")


_add("ROIAlign", _regions, {"pooled_height": ..., "pooled_width": ..., "spatial_scale": ..., "sample_num": 2,
                            "roi_end_mode": 1}, _end_mode)


def _chosen(input_x: TensorLike, *, count: int, **_: object) -> tuple[Tensor, Tensor]:
    mask = tensor(input_x)
    places = math.prod(mask.shape)
    drawn = rand(places) + mask.reshape((-1,))._cast(np.dtype(np.float32))  # elements of the mask are at least 1
    value, at = topk(drawn, min(count, places))
    valid = value >= 1
    at = at * valid._cast(at._dt)
    missing = max(count - places, 0)
    at, valid = (concat((each, tensor(np.zeros(missing, each._dt))), 0) if missing else each for each in (at, valid))
    digits = []
    for length in reversed(mask.shape):
        digits.append(at % length)
        at = at // length
    return stack(digits[::-1], 1), valid


_add("RandomChoiceWithMask", _chosen, {"count": 256, "seed": 0, "seed2": 0})


def bounding_box_encode(anchor_box: TensorLike, groundtruth_box: TensorLike,
                        means: float | Sequence[float] = (0.0,) * 4, stds: float | Sequence[float] = (1.0,) * 4
                        ) -> Tensor:
    """Differences of boxes from anchors, (n, 4) both: of middles in lengths of the anchor, and the logarithms of
    lengths, less ``means`` and divided by ``stds``."""
    return _encode_boxes(anchor_box, groundtruth_box, means=means, stds=stds)


def bounding_box_decode(anchor_box: TensorLike, deltas: TensorLike, max_shape: Sequence[int],
                        means: float | Sequence[float] = (0.0,) * 4, stds: float | Sequence[float] = (1.0,) * 4,
                        wh_ratio_clip: float = 0.016) -> Tensor:
    """Boxes from anchors and differences from them, as ``bounding_box_encode`` gives them, cut off at ``max_shape``,
    height and width."""
    return _decode_boxes(anchor_box, deltas, max_shape=max_shape, means=means, stds=stds, wh_ratio_clip=wh_ratio_clip)


def check_valid(bboxes: TensorLike, img_metas: TensorLike) -> Tensor:
    """Whether each box lies within an image, of which height, width and scale are given."""
    return _valid(bboxes, img_metas)


def choice_with_mask(input_x: TensorLike, count: int = 256, seed: int | None = None) -> tuple[Tensor, Tensor]:
    """Positions of ``count`` random elements for which a mask holds, and whether each is valid: the mask may hold for
    fewer elements.
    """
    return _chosen(input_x, count=count)


# ------------------------------------------------------------------------------------------- overflows


def _overflow(x: TensorLike) -> Tensor:
    return ops.max(1 - isfinite(tensor(x))._cast(np.dtype(np.float32))).reshape((1,))


def _of_npus(name: str) -> Callable[..., Tensor]:
    def call(*args: TensorLike) -> Tensor:
        raise ArgumentError(f"{name}: devices have no overflow status here; FloatStatus() checks one tensor, "
                            f"amp.all_finite several")

    return call


_add("FloatStatus", _overflow)
for _name in ("NPUAllocFloatStatus", "NPUClearFloatStatus", "NPUGetFloatStatus"):
    _add(_name, _of_npus(_name))


def deformable_conv2d(x: TensorLike, weight: TensorLike, offsets: TensorLike, kernel_size: Sequence[int],
                      strides: Sequence[int], padding: Sequence[int], bias: TensorLike | None = None,
                      dilations: Sequence[int] = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1,
                      modulated: bool = True) -> Tensor:
    """A convolution whose samples are moved by offsets and weighted by a mask.

    X. Zhu et al., Deformable ConvNets v2, arXiv:1811.11168.

    Parameters
    ----------
    x : tensor of shape (batch, channels, height, width)
        The images.
    weight : tensor of shape (filters, channels / groups, kernel height, kernel width)
        The kernels.
    offsets : tensor of shape (batch, 3 * deformable_groups * kernel height * kernel width, *output shape)
        The offsets of all samples along the width, those along the height, then the mask.
    strides, dilations : sequence of 4 int
        The first two are 1.
    padding : sequence of 4 int
        Zeros above, below, left and right.
    modulated : bool
        True: offsets without a mask are not available, as in MindSpore.

    Raises
    ------
    ValueError
        When a setting has another length, or there is no mask.
    ShapeError
        When ``offsets`` does not fit.
    """
    settings = (("kernel_size", kernel_size, 2), ("strides", strides, 4), ("padding", padding, 4),
                ("dilations", dilations, 4))
    for name, value, count in settings:
        if len(value) != count:
            raise ArgumentError(f"deformable_conv2d: {name} must have {count} ints, got {value!r}")
    if (*strides[:2], *dilations[:2]) != (1, 1, 1, 1) or not modulated:
        raise ArgumentError(f"deformable_conv2d: strides and dilations of batch and channels must be 1, and modulated "
                            f"True, got {strides!r}, {dilations!r} and {modulated!r}")
    image, kernels, moves = to_common_dtype(x, weight, offsets, real=True)
    n, channels, *lengths = moves.shape
    points = math.prod(kernel_size)
    if channels != 3 * deformable_groups * points:
        raise ShapeError(f"deformable_conv2d: offsets need {3 * deformable_groups * points} channels for "
                         f"{deformable_groups} groups of {points} samples, got shape {show(moves.shape)}")
    parts = moves.reshape((n, 3, deformable_groups, points, *lengths))
    across, down, mask = (ops.squeeze(ops.slice_axis(parts, axis=1, begin=i, end=i + 1), axis=(1,)) for i in range(3))
    offset = stack((down, across), 3).reshape((n, 2 * deformable_groups * points, *lengths))
    inputs = padded(image, ((padding[0], padding[1]), (padding[2], padding[3]))), offset, \
        mask.reshape((n, deformable_groups * points, *lengths)), kernels
    return ops._contrib_ModulatedDeformableConvolution(
        *inputs, *(() if bias is None else (like(bias, image),)), kernel=tuple(kernel_size), stride=tuple(strides[2:]),
        dilate=tuple(dilations[2:]), num_filter=kernels.shape[0], num_group=int(groups),
        num_deformable_group=int(deformable_groups), no_bias=bias is None)

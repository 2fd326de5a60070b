"""Images rearranged: blocks made channels, windows made columns, and enlargement by repetition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from ...core.attrs import Count, Few
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import Shape, show, unify
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import adjoint_pair, linear
from .joining import MANY, single
from .shape import delivered, out_or_empty, stored

__all__: list[str] = []


# ------------------------------------------------------------------------------------------------- blocks


def _image(data: Shape, block_size: int) -> None:
    if len(data) != 4:
        raise ShapeError(f"expected rank 4 (batch, channels, height, width), got shape {show(data)}")
    if any(n < 1 for n in data[1:]):
        raise ShapeError(f"expected channels, height and width of at least 1, got images without numbers, {show(data)}")
    if block_size < 1:
        raise AttrError(f"block_size={block_size}: expected a number from one up")


def _parts(array: Array, block: int) -> list[Array]:
    """The channels as they go to the places of a block, one place after the other."""
    depth = array.shape[1] // block**2
    return [array[:, i * depth:(i + 1) * depth] for i in range(block**2)]


def _every(place: int, block: int) -> tuple:
    """All numbers at one place of their block."""
    return (..., slice(place // block, None, block), slice(place % block, None, block))


@declare(cheap=True)
def depth_to_space(data, *, block_size: int):
    """Channels spread over blocks of height and width: the inverse of ``space_to_depth``."""


@depth_to_space.infer
def depth_to_space_infer(data, *, block_size):
    _image(data, block_size)
    if data[1] % block_size**2 != 0:
        raise ShapeError(f"{data[1]} channels do not fill blocks of {block_size} x {block_size}")
    return (data[0], data[1] // block_size**2, data[2] * block_size, data[3] * block_size)


@declare(cheap=True)
def space_to_depth(data, *, block_size: int):
    """Blocks of height and width laid along the channels: first their rows, then columns, then channels."""


@space_to_depth.infer
def space_to_depth_infer(data, *, block_size):
    _image(data, block_size)
    if data[2] % block_size != 0 or data[3] % block_size != 0:
        raise ShapeError(f"height {data[2]} and width {data[3]} do not fall into blocks of {block_size}")
    return (data[0], data[1] * block_size**2, data[2] // block_size, data[3] // block_size)


def _moving(op: Op, infer: Callable[..., Shape]) -> None:
    """Declare the kernel of an operator that moves numbers between channels and blocks."""
    spreads = op is depth_to_space

    @op.kernel()
    def moving_xp(xp, data, *, block_size, out=None):
        # As body of reshapes and a transpose it would run along rows as short as a block.
        result = out_or_empty(xp, infer(data.shape, block_size=block_size), data.dtype, out)
        parts = _parts(data if spreads else result, block_size)
        for i, part in enumerate(parts):
            if spreads:
                result[_every(i, block_size)] = part
            else:
                part[...] = data[_every(i, block_size)]
        return delivered(result, out)


_moving(depth_to_space, depth_to_space_infer)
_moving(space_to_depth, space_to_depth_infer)
adjoint_pair(depth_to_space, space_to_depth, like=False)


# ------------------------------------------------------------------------------------------------ columns

Dims = tuple[int, ...]


def _windows(space: Sequence[int], kernel: Dims, stride: Dims, dilate: Dims, pad: Dims) -> tuple:
    """Kernel, stride, dilation and padding of every spatial axis, and how many windows it has."""
    rank = len(kernel)
    stride, dilate, pad = stride or (1,) * rank, dilate or (1,) * rank, pad or (0,) * rank
    if not rank == len(stride) == len(dilate) == len(pad) == len(space):
        raise AttrError(f"kernel={kernel}, stride={stride}, dilate={dilate}, pad={pad}: expected "
                        f"{len(space)} numbers of each, one an axis of the image")
    if min(*kernel, *stride, *dilate) < 1 or min(pad) < 0:
        raise AttrError(f"kernel={kernel}, stride={stride}, dilate={dilate}, pad={pad}: too small")
    counts = []
    for dim, k, s, d, p in zip(space, kernel, stride, dilate, pad):
        if d * (k - 1) + 1 > dim + 2 * p:
            raise ShapeError(f"kernel={kernel}, dilate={dilate} does not fit into an image of "
                             f"{show(tuple(space))} with pad={pad}")
        counts.append((dim + 2 * p - d * (k - 1) - 1) // s + 1)
    return kernel, stride, dilate, pad, tuple(counts)


def _taps(kernel: Dims, stride: Dims, dilate: Dims, counts: Dims) -> Iterator[tuple]:
    """Taps of the kernel: the place of each, and the slices of the padded image that it meets."""
    for place in itertools.product(*map(range, kernel)):
        cut = [slice(i * d, i * d + (n - 1) * s + 1, s) for i, s, d, n in zip(place, stride, dilate, counts)]
        yield place, (..., *cut)


def _to_columns(xp: ArrayModule, data: Array, windows: tuple, out: Array | None) -> Array:
    kernel, stride, dilate, pad, counts = windows
    if any(pad):
        data = xp.pad(data, [(0, 0), (0, 0)] + [(p, p) for p in pad])
    columns = xp.empty((*data.shape[:2], *kernel, *counts), dtype=data.dtype)
    for place, cut in _taps(kernel, stride, dilate, counts):
        columns[(slice(None), slice(None), *place)] = data[cut]
    columns = columns.reshape(data.shape[0], data.shape[1] * math.prod(kernel), math.prod(counts))
    return columns if out is None else stored(xp, columns, out)


def _from_columns(xp: ArrayModule, columns: Array, space: Dims, windows: tuple) -> Array:
    kernel, stride, dilate, pad, counts = windows
    channels = columns.shape[1] // math.prod(kernel)
    columns = columns.reshape((columns.shape[0], channels, *kernel, *counts))
    image = xp.zeros((*columns.shape[:2], *[dim + 2 * p for dim, p in zip(space, pad)]), dtype=columns.dtype)
    for place, cut in _taps(kernel, stride, dilate, counts):
        image[cut] += columns[(slice(None), slice(None), *place)]
    return image[(..., *[slice(p, p + dim) for dim, p in zip(space, pad)])]


@declare(cheap=True)
def im2col(data, *, kernel: Dims, stride: Dims = (), dilate: Dims = (), pad: Dims = ()):
    """The windows of an image as columns: channels times kernel places by window places."""


@im2col.infer
def im2col_infer(data, *, kernel, stride, dilate, pad):
    *_, counts = _windows(data[2:], kernel, stride, dilate, pad)
    return (data[0], data[1] * math.prod(kernel), math.prod(counts))


@im2col.kernel()
def im2col_xp(xp, data, *, kernel, stride, dilate, pad, out=None):
    return _to_columns(xp, data, _windows(data.shape[2:], kernel, stride, dilate, pad), out)


@declare(name="_backward_im2col", types="T,U->T", unread=(1,), cheap=True)
def im2col_sum(g, data, *, kernel: Dims, stride: Dims = (), dilate: Dims = (), pad: Dims = ()):
    """Columns added up where they came from in an image of the shape of ``data``."""


@declare(cheap=True)
def col2im(data, *, output_size: Dims, kernel: Dims, stride: Dims = (), dilate: Dims = (), pad: Dims = ()):
    """Columns, as ``im2col`` makes them, added up where they came from in an image of ``output_size``."""


@col2im.infer
def col2im_infer(data, *, output_size, kernel, stride, dilate, pad):
    *_, counts = _windows(output_size, kernel, stride, dilate, pad)
    taps, places = math.prod(kernel), math.prod(counts)
    if len(data) != 3 or data[1] % taps != 0 or data[2] != places:
        raise ShapeError(f"expected shape (batch, channels x {taps}, {places}), got {show(data)}")
    return (data[0], data[1] // taps, *output_size)


@im2col_sum.kernel()
@col2im.kernel()
def columns_sum_xp(xp, data, *like, kernel, stride, dilate, pad, output_size=()):
    space = like[0].shape[2:] if like else output_size
    return _from_columns(xp, data, space, _windows(space, kernel, stride, dilate, pad))


adjoint_pair(im2col, im2col_sum)


linear(col2im, "im2col")


# --------------------------------------------------------------------------------------------- UpSampling


def _up_names(*, sample_type: str, num_args: int) -> tuple[str, ...]:
    return ("data", "weight") if sample_type == "bilinear" else tuple([f"arg{i}" for i in range(num_args)])


@declare(name="UpSampling", arguments=_up_names, cheap=True)
def upsampling(*data, scale: int, num_filter: Count = 0, sample_type: Literal["nearest", "bilinear"],
               multi_input_mode: Literal["concat", "sum"] = "concat", num_args: Few = 1,
               workspace: int = 512):
    """Images enlarged ``scale`` times, each number repeated or spread by a kernel of ``weight``.

    Further images are brought to the same size, and all of them joined along the channels or added up.
    """


def _enlarged(images: Sequence[Shape], scale: int) -> list[tuple[int, int]]:
    """How many times each image is repeated in height and width."""
    if scale < 1:
        raise AttrError(f"scale={scale}: expected a number from one up")
    height, width = images[0][2] * scale, images[0][3] * scale
    for shape in images:
        if (len(shape) != 4 or any(dim < 1 for dim in shape[2:])
                or height % shape[2] != 0 or width % shape[3] != 0):
            raise ShapeError(f"an image of shape {show(shape)} cannot be enlarged to {height} x {width}")
    return [(height // shape[2], width // shape[3]) for shape in images]


def _spread(scale: int) -> tuple[int, int]:
    """Kernel and padding of the transposed convolution that enlarges by linear interpolation."""
    return 2 * scale - scale % 2, scale // 2


@upsampling.fill
def upsampling_fill(ins, outs, *, scale, sample_type):
    if sample_type == "bilinear" and ins[0] is not None:
        kernel, _ = _spread(scale)
        return [ins[0], (ins[0][1], 1, kernel, kernel)]
    return ins


@upsampling.infer
def upsampling_infer(*data, scale, sample_type, multi_input_mode):
    images = data[:1] if sample_type == "bilinear" else data
    if len(images[0]) != 4:
        raise ShapeError(f"expected rank 4 (batch, channels, height, width), got shape {show(images[0])}")
    _enlarged(images, scale)
    joined = multi_input_mode == "concat"
    channels = sum(shape[1] for shape in images) if joined else images[0][1]
    for shape in images[1:]:
        unify(shape[:1] if joined else shape[:2], images[0][:1] if joined else images[0][:2])
    return (images[0][0], channels, images[0][2] * scale, images[0][3] * scale)


def _steps(scale: int, height: int, width: int) -> Iterator[tuple[int, int, tuple]]:
    """Taps of the spreading kernel: the place of each, and where in the padded result it writes."""
    kernel, _ = _spread(scale)
    for i, j in itertools.product(range(kernel), range(kernel)):
        rows, columns = (height - 1) * scale + 1, (width - 1) * scale + 1
        yield i, j, (..., slice(i, i + rows, scale), slice(j, j + columns, scale))


@upsampling.kernel()
def upsampling_xp(xp, *data, scale, sample_type, multi_input_mode, out=None):
    if sample_type == "nearest":
        return _nearest(xp, data, scale, multi_input_mode, out)
    image, weight = data
    n, c, h, w = image.shape
    kernel, edge = _spread(scale)
    result = xp.zeros((n, c, (h - 1) * scale + kernel, (w - 1) * scale + kernel), dtype=image.dtype)
    for i, j, cut in _steps(scale, h, w):
        result[cut] += image * weight[:, 0, i, j, None, None]
    return delivered(result[:, :, edge:edge + h * scale, edge:edge + w * scale], out)


def _nearest(xp: ArrayModule, images: Sequence[Array], scale: int, multi_input_mode: str, out: Array | None) -> Array:
    """Every number of the images repeated, and the images joined or added up."""
    shapes = [image.shape for image in images]
    shape = upsampling_infer(*shapes, scale=scale, sample_type="nearest", multi_input_mode=multi_input_mode)
    result, first = out_or_empty(xp, shape, images[0].dtype, out), 0
    for number, (image, (up, across)) in enumerate(zip(images, _enlarged(shapes, scale))):
        part = result[:, first:first + image.shape[1]]
        for i, j in itertools.product(range(up), range(across)):
            if number and multi_input_mode == "sum":
                part[:, :, i::up, j::across] += image
            else:
                part[:, :, i::up, j::across] = image
        if multi_input_mode == "concat":
            first += image.shape[1]
    return delivered(result, out)


@upsampling.grad
def upsampling_grad(g, ins, outs, *, scale, sample_type, multi_input_mode):
    if sample_type == "bilinear":  # a transposed convolution, whose gradient is a convolution
        (image, weight), (kernel, edge) = ins, _spread(scale)
        window = {"kernel": (kernel, kernel), "stride": (scale, scale), "pad": (edge, edge), "no_bias": True,
                  "num_filter": weight.shape[0], "num_group": weight.shape[0]}
        return ops.Convolution(g, weight, **window), ops._backward_Convolution_weight(image, g, weight, **window)
    parts = ops._backward_UpSampling(g, *ins, num_args=len(ins) + 1, scale=scale,
                                     multi_input_mode=multi_input_mode)
    return (parts,) if len(ins) == 1 else tuple(parts)


@declare(name="_backward_UpSampling", types="T,*U->*T", unread=range(1, MANY),
         outputs=lambda *, num_args: [f"output{i}" for i in range(num_args - 1)], cheap=True)
def upsampling_sum(*data, num_args: Few = 2, scale: int,
                   multi_input_mode: Literal["concat", "sum"] = "concat"):
    """The first input, the gradient of enlarged images, summed down to the shapes of the others."""


@upsampling_sum.infer
def upsampling_sum_infer(g, *data):
    return list(data)


@upsampling_sum.kernel()
def upsampling_sum_xp(xp, g, *data, scale, multi_input_mode):
    results, first = [], 0
    for image, (up, across) in zip(data, _enlarged([image.shape for image in data], scale)):
        n, c, h, w = image.shape
        part = g[:, first:first + c] if multi_input_mode == "concat" else g
        results.append(xp.sum(part.reshape(n, c, h, up, w, across), axis=(3, 5)))
        first += c
    return single(results)


@upsampling_sum.grad
def upsampling_sum_grad(g, ins, outs, *, scale, multi_input_mode):
    gs = [g] if len(ins) == 2 else list(g)
    first = ops.UpSampling(*gs, num_args=len(gs), scale=scale, sample_type="nearest",
                           multi_input_mode=multi_input_mode)
    return (first, *[None] * (len(ins) - 1))

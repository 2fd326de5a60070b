"""Pooling and its gradients as CUDA kernels: a thread reads all that contributes to an output, or to an input's
gradient.

So no two threads add to the same element, and results are the same each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.builtin.layers import pooling
from opreg.builtin.layers.pooling import Pool
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.spec import limits
from opreg.core.steps import own_bytes
from opreg.elementwise.expression import cbrt as cube_root
from opreg.elementwise.expression import equal, maximum, sqrt, where
from opreg.elementwise.rows import RowLayout, row_max, row_mean, row_sum, traced
from opreg.typing import Array

from ..compiler import Launch, attach, grid_of, in_pieces, kernel_of
from ..folds import bound_fold, groups_of
from ..instructions import STORED, computed_in, indent, literal

__all__ = ["Shape", "gather_source", "source"]

_BLOCK = 256


class Shape(NamedTuple):
    """Properties that the text of a kernel depends on.

    Attributes
    ----------
    dtype : dtype
        The dtype of all arrays.
    kind : str
        ``max``, ``avg``, ``sum`` or ``lp``.
    power : int
        The power of the p-norm.
    kernel, stride, pad : tuple of int
        The window, with one value for each spatial axis.
    edge : tuple of int
        How much of the padding counts in averages.
    lanes : int
        The number of neighbouring elements behind the spatial axes that a thread computes.
    far : bool
        Whether indices need 64 bits.
    """

    dtype: np.dtype
    kind: str
    power: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    edge: tuple[int, ...]
    lanes: int
    far: bool

    @property
    def indices(self) -> str:
        """The type of indices."""
        return "unsigned long long" if self.far else "unsigned"


def _head(shape: Shape, name: str, arrays: Sequence[str], taken: str) -> list[str]:
    """The beginning of a kernel, in which each thread loops over items; an item is an image, a position along the axes
    ``taken``, and a pack of elements after these."""
    axes = range(len(shape.kernel))
    numbers = [*[f"int n{i}" for i in axes], *[f"int m{i}" for i in axes], f"{shape.indices} rest",
               f"{shape.indices} total"]
    lines = [f'extern "C" __global__ void __launch_bounds__({_BLOCK}) {name}({", ".join([*arrays, *numbers])}) {{',
             f"    const {shape.indices} step = gridDim.x * {_BLOCK}u;",
             f"    for ({shape.indices} item = blockIdx.x * {_BLOCK}u + threadIdx.x; item < total; item += step) {{",
             f"        {shape.indices} left = item / rest;", f"        const {shape.indices} behind = item % rest;"]
    letter = "q" if taken == "m" else "i"
    for axis in reversed(axes):
        lines += [f"        const int {letter}{axis} = (int)(left % {taken}{axis}); left /= {taken}{axis};"]
    return lines


def _pack_offset(shape: Shape, sizes: str, at: str) -> str:
    """The text of the offset where the pack at these indices begins."""
    text = "left"
    for axis in range(len(shape.kernel)):
        text = f"({text} * {sizes}{axis} + {at}{axis})"
    return f"({text} * rest + behind) * {shape.lanes}u"


def _count(shape: Shape) -> list[str]:
    """The lines that compute how many elements the window at ``q`` averages over."""
    lines = []
    for axis, (k, s, p, edge) in enumerate(zip(shape.kernel, shape.stride, shape.pad, shape.edge)):
        lines += [f"const int low{axis} = q{axis} * {s} - {p}, high{axis} = low{axis} + {k};",
                  f"const int within{axis} = (high{axis} < n{axis} + {edge} ? high{axis} : n{axis} + {edge}) "
                  f"- (low{axis} > {-edge} ? low{axis} : {-edge});"]
    terms = [f"(float)(within{axis} > 1 ? within{axis} : 1)" for axis in range(len(shape.kernel))]
    return [*lines, f"const float count = {' * '.join(terms)};"]


def _taps(shape: Shape, body: Sequence[str], before: bool = False) -> list[str]:
    """A loop over the positions ``i`` in the window at ``q``, in order."""
    axes = range(len(shape.kernel))
    lines, depth = [], 0
    at = "j" if before else "i"
    # Code that few threads run is not unrolled, to leave registers to the rest.
    unrolled = ["#pragma unroll 1"] if before else ["#pragma unroll"] if math.prod(shape.kernel) <= 16 else []
    for axis, (k, s, p) in zip(axes, zip(shape.kernel, shape.stride, shape.pad)):
        lines += indent([*unrolled, f"for (int k{axis} = 0; k{axis} < {k}; ++k{axis}) {{",
                         f"    const int {at}{axis} = q{axis} * {s} - {p} + k{axis};",
                         f"    if ({at}{axis} < 0 || {at}{axis} >= n{axis}) continue;"], depth)
        depth += 1
    return [*lines, *indent(body, depth), *[f"{'    ' * level}}}" for level in reversed(range(depth))]]


@cached(256)
def source(shape: Shape) -> str:
    """The text of the kernel ``pool``, which computes outputs."""
    stored, kind, lanes = STORED[shape.dtype.name], computed_in(shape.dtype), shape.lanes
    first = literal(float(limits(shape.dtype)[0]), kind) if shape.kind == "max" else f"{kind}(0)"
    powers = {1: "x", 2: "x * x", 3: "x * x * x"}
    added = "t[lane] = fmax(t[lane], x);" if shape.kind == "max" else (
        f"t[lane] += {powers[shape.power if shape.kind == 'lp' else 1]};")
    result = {"avg": "t[lane] / count", "lp": {1: "t[lane]", 2: "sqrt(t[lane])", 3: "cbrt(t[lane])"}.get(shape.power)}
    lines = [f"{kind} t[{lanes}];", "#pragma unroll", f"for (int lane = 0; lane < {lanes}; ++lane) t[lane] = {first};",
             *_taps(shape, [f"const auto p = load<{lanes}>(data + {_pack_offset(shape, 'n', 'i')});", "#pragma unroll",
                            f"for (int lane = 0; lane < {lanes}; ++lane) {{",
                            f"    const {kind} x = wide(p.at[lane]);", f"    {added}", "}"]),
             *(_count(shape) if shape.kind == "avg" else []),
             f"Pack<{stored}, {lanes}> y;", "#pragma unroll",
             f"for (int lane = 0; lane < {lanes}; ++lane) "
             f"y.at[lane] = narrow<{stored}>({result.get(shape.kind, 't[lane]')});",
             f"store(out + {_pack_offset(shape, 'm', 'q')}, y);"]
    return "\n".join([*_head(shape, "pool", [f"const {stored}* data", f"{stored}* out"], "m"), *indent(lines, 2),
                      "    }", "}", ""])


def _windows(shape: Shape, body: Sequence[str]) -> list[str]:
    """A loop over the windows ``q`` that contain the position ``i``."""
    lines, depth = [], 0
    for axis, (k, s, p) in enumerate(zip(shape.kernel, shape.stride, shape.pad)):
        lines += indent([
            f"const int from{axis} = i{axis} + {p} < {k} ? 0 : (i{axis} + {p} - {k}) / {s} + 1;",
            f"const int to{axis} = (i{axis} + {p}) / {s} < m{axis} ? (i{axis} + {p}) / {s} : m{axis} - 1;",
            f"for (int q{axis} = from{axis}; q{axis} <= to{axis}; ++q{axis}) {{"], depth)
        depth += 1
    return [*lines, *indent(body, depth), *[f"{'    ' * level}}}" for level in reversed(range(depth))]]


@cached(256)
def gather_source(shape: Shape) -> str:
    """The text of the kernel ``unpool``, which computes the gradient of each input element. The gradient of a maximum
    goes to the first element in the window that is equal to it."""
    stored, kind, lanes = STORED[shape.dtype.name], computed_in(shape.dtype), shape.lanes
    where_q, where_i = _pack_offset(shape, "m", "q"), _pack_offset(shape, "n", "i")
    arrays = [f"const {stored}* g", f"{stored}* out"]
    before: list[str] = []
    if shape.kind == "max":
        arrays[1:1] = [f"const {stored}* data", f"const {stored}* maxima"]
        order = " || ".join(
            "(" + " && ".join([*[f"j{earlier} == i{earlier}" for earlier in range(axis)], f"j{axis} < i{axis}"]) + ")"
            for axis in range(len(shape.kernel)))
        before = [f"const {kind} x = wide(data[{where_i}]);"]
        body = [f"const {kind} top = wide(maxima[{where_q}]);", "if (x != top) continue;", "bool first = true;",
                *_taps(shape, [f"if (({order}) && wide(data[{_pack_offset(shape, 'n', 'j')}]) == top) first = false;"],
                       True),
                f"if (first) t[0] += wide(g[{where_q}]);"]
    else:
        term = "wide(p.at[lane]) / count" if shape.kind == "avg" else "wide(p.at[lane])"
        body = [*(_count(shape) if shape.kind == "avg" else []), f"const auto p = load<{lanes}>(g + {where_q});",
                "#pragma unroll", f"for (int lane = 0; lane < {lanes}; ++lane) t[lane] += {term};"]
    lines = [f"{kind} t[{lanes}] = {{}};", *before, *_windows(shape, body), f"Pack<{stored}, {lanes}> y;",
             "#pragma unroll", f"for (int lane = 0; lane < {lanes}; ++lane) y.at[lane] = narrow<{stored}>(t[lane]);",
             f"store(out + {where_i}, y);"]
    return "\n".join([*_head(shape, "unpool", arrays, "n"), *indent(lines, 2), "    }", "}", ""])


# ----------------------------------------------------------------------------------------------- operators


def _pool_of(call: Call, data: Array) -> Pool:
    attrs = call.attrs
    return pooling.pool_of(data.shape, attrs["kernel"], attrs["stride"], attrs["pad"], attrs["global_pool"],
                           attrs["pooling_convention"], attrs["layout"])


def _covered_fraction(pool: Pool) -> float:
    """The fraction of an input that is in some window: less than one if strides exceed windows, or a rest is left
    over."""
    part = 1.0
    for _, n, k, s, p, places in pool.axes:
        ends = [min(q * s - p + k, n) for q in range(places)]
        lengths = [end - max(q * s - p, 0, before) for q, (end, before) in enumerate(zip(ends, [0, *ends]))]
        part *= sum(max(count, 0) for count in lengths) / n
    return part


def _share_with_inputs(pool: Pool) -> float:
    """The fraction of the outputs whose windows contain any input."""
    return math.prod(sum(max(q * s - p, 0) < min(q * s - p + k, n) for q in range(places)) / places
                     for _, n, k, s, p, places in pool.axes)


def _launch(call: Call, text: Callable[[Shape], str], name: str, pool: Pool, arrays: Sequence[Array], total: int
            ) -> Launch:
    """The launch of a kernel over ``total`` elements, inputs or outputs."""
    attrs, dtype, channels = call.attrs, arrays[0].dtype, pool.x[-1]
    lanes = 16 // dtype.itemsize
    if (name == "unpool" and len(arrays) > 2) or channels % lanes or any(address_of(array) % 16 for array in arrays):
        lanes = 1
    kind = attrs.get("pool_type", "max") if name == "pool" or len(arrays) == 2 else "max"
    edge = pool.win.pad if attrs.get("count_include_pad") is not False else (0,) * len(pool.win.pad)
    far = max(math.prod(pool.x), math.prod(pool.y)) >= 1 << 30
    shape = Shape(dtype, kind, attrs.get("p_value") or 1, pool.win.kernel, pool.win.stride, pool.win.pad, edge, lanes,
                  far)
    index = np.uint64 if far else np.uint32
    blocks = grid_of(call.xp, total // lanes, _BLOCK)
    *read, out = arrays
    return Launch(kernel_of(call.xp, text(shape), name), blocks, _BLOCK,
                  [*arrays, *map(np.int32, pool.x[1:-1]), *map(np.int32, pool.y[1:-1]), index(channels // lanes),
                   index(total // lanes)], _read(name, pool, read), own_bytes(out))


def _read(name: str, pool: Pool, arrays: Sequence[Array]) -> int:
    """Bytes that are read; an element in several windows counts once. Whether the gradient of a maximum reads inputs
    that are in no window depends on the compiler; they are counted."""
    parts = [_covered_fraction(pool)] if name == "pool" else [_share_with_inputs(pool), 1.0, _share_with_inputs(pool)]
    return sum(round(own_bytes(array) * part) for array, part in zip(arrays, parts))


def _whole_image_pooling(kind: str, power: int, lowest: float) -> Callable[[Any], Any]:
    """Pooling over whole images, as a reduction of rows."""
    if kind == "max":
        return lambda x: maximum(row_max(where(equal(x, x), x, lowest)), lowest)
    if kind == "avg":
        return row_mean
    return {1: row_sum, 2: lambda x: sqrt(row_sum(x * x)), 3: lambda x: cube_root(row_sum(x * x * x))}[power]


def pooling_cuda(call: Call) -> list[Callable]:
    (data,), (out,) = call.ins, call.outs
    pool = _pool_of(call, data)
    if pool.one_window:
        attrs = call.attrs
        power = attrs["p_value"] if attrs["pool_type"] == "lp" else 1
        function = _whole_image_pooling(attrs["pool_type"], power, float(limits(data.dtype)[0]))
        return bound_fold(traced(function, 1), [data], [RowLayout.ELEMENT], [out],
                          groups_of(pool.x, range(1, len(pool.x) - 1)), call.xp, call.scratch)
    return [_launch(call, source, "pool", pool, [data, out], math.prod(pool.y))]


def pooling_back_cuda(call: Call) -> list[Callable]:
    """The steps of both gradients; the one of ``max`` also reads the input and the maxima."""
    g, data, *maxima = call.ins
    pool, read = _pool_of(call, data), [g, data, *maxima] if maxima else [g]
    return [_launch(call, gather_source, "unpool", pool, [*read, call.outs[0]], math.prod(pool.x))]


attach(pooling.pooling, in_pieces, pooling_cuda)
attach(pooling.pooling_sum, in_pieces, pooling_back_cuda)
attach(pooling.pooling_max, in_pieces, pooling_back_cuda)

"""Dropout as CUDA kernels. A counter on the device holds the position in a sequence of random numbers.

The kernel ``claim`` advances the counter and stores the key and the old position, a draw (``elementwise.counting``);
``dropout`` draws from there. So concurrent launches on several streams draw from different parts of the sequence, and a
replayed launch draws new values. Plans have no mask where the pass ``redraw_dropout`` finds that only gradients read
it: element-wise kernels compute it from the draw, in forward and again in backward.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opreg.builtin.elementwise.activation import dropout
from opreg.core import generators
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.steps import own_bytes
from opreg.elementwise.expression import trace
from opreg.typing import Array

from .. import elementwise
from ..compiler import Launch, attach, grid_of, kernel_of
from ..instructions import STORED, computed_in
from ..layout import DRAW
from .private import claim

__all__ = ["CLAIM", "DrawingLaunch", "counter_of", "source"]

_BLOCK = 256
#: The text of the kernel ``claim``, for one thread, which reserves ``count`` positions of the sequence.
CLAIM = """extern "C" __global__ void claim(unsigned long long* counter, unsigned long long* place,
                                 unsigned long long count) {
    place[0] = counter[0];
    place[1] = atomicAdd(counter + 1, count);
}
"""
_PRODUCT = trace(lambda x, mask: x * mask, 2)


@cached(64)
def source(dtype: np.dtype, data: bool, out: bool, mask: bool, lanes: int, far: bool) -> str:
    """The text of the kernel ``dropout``; without ``data`` it makes the mask alone.

    Its parameters are the arrays, the counter, the first reserved position, the probability to keep an element, the
    factor for the elements kept, and the number of elements. Each position of the sequence is used for four elements of
    any dtype, so the same elements are dropped in all dtypes.
    """
    stored, kind, index = STORED[dtype.name], computed_in(dtype), "unsigned long long" if far else "unsigned"
    width = max(4, lanes)
    arrays = [*[f"const {stored}* data"] * data, *[f"{stored}* out"] * out, *[f"{stored}* mask"] * mask]
    vector_lines, single = [], []
    if data:
        vector_lines.append(f"const auto x = load<{width}>(data + at);")
    vector_lines += [f"Pack<{stored}, {width}> {name};" for name in ["y"] * out + ["m"] * mask]
    element_lines = ["y.at[lane] = narrow<{0}>(wide(x.at[lane]) * factors[lane]);"] * out
    element_lines += ["m.at[lane] = narrow<{0}>(factors[lane]);"] * mask
    vector_lines += ["#pragma unroll", f"for (int lane = 0; lane < {width}; ++lane) {{",
                     *[f"    {line.format(stored)}" for line in element_lines], "}"]
    vector_lines += [*["store(out + at, y);"] * out, *["store(mask + at, m);"] * mask]
    single += [f"out[at + lane] = narrow<{stored}>(wide(data[at + lane]) * factors[lane]);"] * out
    single += [f"mask[at + lane] = narrow<{stored}>(factors[lane]);"] * mask
    inside = ["if (at + lane < total) {", *[f"    {line}" for line in single], "}"]
    one_by_one = ["#pragma unroll", f"for (int lane = 0; lane < {width}; ++lane)", *[f"    {line}" for line in inside]]
    store = one_by_one if lanes == 1 else [
        f"if (at + {width}u <= total) {{", *[f"    {line}" for line in vector_lines], "} else {",
        *[f"    {line}" for line in one_by_one], "}"]
    return "\n".join([
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) dropout({", ".join(arrays)}, '
        f"const unsigned long long* place, float share, {kind} factor, "
        f"{index} total) {{",
        "    const unsigned long long key = place[0], before = place[1];",
        f"    const {index} step = ({index})gridDim.x * {_BLOCK * width}u;",
        f"    for ({index} at = (({index})blockIdx.x * {_BLOCK}u + threadIdx.x) * {width}u; at < total; at += step) {{",
        f"        {kind} factors[{width}];", "        #pragma unroll",
        f"        for (int part = 0; part < {width // 4}; ++part) {{",
        "            const Words words = drawn(key, before + at / 4u + part);", "            #pragma unroll",
        "            for (int word = 0; word < 4; ++word)",
        f"                factors[part * 4 + word] = uniform(words.at[word]) < share ? factor : {kind}(0);",
        "        }", *[f"        {line}" for line in store], "    }", "}", ""])


def _accepts(call: Call) -> str | None:
    data = call.ins[0]
    if data.dtype.name not in STORED:
        return f"dtype {data.dtype}: kernels are compiled for {', '.join(STORED)}"
    if call.attrs["p"] == 0.0 or (call.attrs["mode"] == "training" and not call.is_train):
        return "nothing is dropped"
    if not all(array is None or array.flags.c_contiguous for array in (data, *call.outs)):
        return "an array is not contiguous"
    return "nothing to compute" if data.size == 0 else None


def dropout_cuda(call: Call) -> list[Callable]:
    data, (out, mask) = call.ins[0], call.outs
    shape = call.specs[1].shape
    if shape == data.shape:
        return _draw(call, data, out, mask) if out is not None or mask is not None else []
    if mask is None:
        mask = call.scratch(0, shape, data.dtype)
    steps = _draw(call, None, None, mask)
    if out is not None:
        steps.append(elementwise.bound_to(_PRODUCT, [data, mask], [out], call.xp))
    return steps


attach(dropout, _accepts, dropout_cuda)


class DrawingLaunch(Launch):
    """A launch whose random numbers differ from the reference's."""

    __slots__ = ()
    draws = True


def counter_of(call: Call) -> Array:
    """The position in the random numbers of the device of a call, in the memory of the device."""
    counter = generators.counter(call.ctx.backend_name, call.ctx.device_id)
    assert counter is not None  # every device for which kernels are compiled has one
    return counter


def _draw(call: Call, data: Array | None, out: Array | None, mask: Array | None) -> list[Callable]:
    """Steps that draw the mask and apply it; without data only the mask is made."""
    if out is None:
        data = None
    arrays = [array for array in (data, out, mask) if array is not None]
    dtype, total = arrays[0].dtype, arrays[0].size
    lanes = 16 // dtype.itemsize
    if any(address_of(array) % 16 for array in arrays):
        lanes = 1
    far = total >= 1 << 30
    keep = 1.0 - call.attrs["p"]
    # The factor is rounded to the mask's dtype, so that the mask holds the factors that were applied.
    factor = np.asarray(1.0 / keep if keep else 0.0, dtype).astype(np.float64 if dtype.itemsize == 8 else np.float32)
    text = source(dtype, data is not None, out is not None, mask is not None, lanes, far)
    index = np.uint64 if far else np.uint32
    blocks = grid_of(call.xp, -(-total // max(4, lanes)), _BLOCK)
    draw = call.scratch(1, (2,), DRAW)
    return [*_reserve_draws(call, draw, total),
            DrawingLaunch(kernel_of(call.xp, text, "dropout"), blocks, _BLOCK,
                          [*arrays, draw, np.float32(keep), factor[()], index(total)],
                          draw.nbytes + (0 if data is None else own_bytes(data)),
                          sum(own_bytes(array) for array in (out, mask) if array is not None))]


def _reserve_draws(call: Call, draw: Array, total: int) -> list[Callable]:
    """The step that reserves random values for so many elements, and stores the position of the first."""
    counter = counter_of(call)
    return [DrawingLaunch(kernel_of(call.xp, CLAIM, "claim"), 1, 1, [counter, draw, np.uint64(-(-total // 4))],
                          counter.nbytes, draw.nbytes + counter.itemsize)]


attach(claim, lambda call: None, lambda call: _reserve_draws(call, call.outs[0], call.ins[0].size))

"""Element-wise expressions as CUDA kernels: each element is read once and written once, contiguous ones 16 bytes at a
time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.steps import own_bytes
from opreg.elementwise.expression import Expression, accepts_expression
from opreg.typing import Array, ArrayModule

from .compiler import Launch, can_compile, grid_of, keep_details, kernel_of
from .compiler import attach as attach_compiled
from .instructions import STORED, Value, computed_in, indent, missing, statements
from .layout import Arrangement, Layout, Reach, arrange

__all__ = ["attach", "bound", "bound_to", "declines", "fuses", "source"]

_BLOCK = 256


@cached(512)
def source(expression: Expression, layout: Layout) -> str:
    """The text of the kernel ``elementwise`` of an expression.

    Its parameters are the arrays, the number of elements, the sizes of all axes but the first, and the strides of each
    array that is read by strides.
    """
    axes, lanes = layout.axes, layout.lanes
    strided = [n for n, operand in enumerate(layout.operands) if operand.reach in (Reach.PACKED, Reach.GATHERED)]
    arrays = []
    for n, operand in enumerate(layout.operands):
        const, restrict = "" if operand.written else "const ", "" if operand.shared else "__restrict__ "
        stored = "unsigned long long" if operand.reach is Reach.DRAWN else STORED[operand.dtype.name]
        arrays.append(f"{const}{stored}* {restrict}a{n}")
    parameters = [*arrays, "Index total", *[f"Index n{axis}" for axis in range(1, axes)],
                  *[f"Offset s{n}_{axis}" for n in strided for axis in range(axes)]]
    read = sorted({layout.ins[i] for i in expression.used})
    types = {n: computed_in(operand.dtype) for n, operand in enumerate(layout.operands)}
    names = [Value(f"x{layout.ins[i]}", types[layout.ins[i]]) for i in range(expression.arity)]
    lines, results = statements(expression, names)
    writes = [(n, result) for n, result in zip(layout.outs, results) if n is not None]
    compute = [*[f"const {types[n]} x{n}" for n in read],
               *[f"{STORED[layout.operands[n].dtype.name]}& y{n}" for n, _ in writes]]
    stores = [f"y{n} = narrow<{STORED[layout.operands[n].dtype.name]}>({result.text});" for n, result in writes]
    text = [f"typedef unsigned {'long long' if layout.far else 'int'} Index;",
            f"typedef {'long long' if layout.far else 'int'} Offset;", "",
            f"__device__ __forceinline__ void compute({', '.join(compute)}) {{", *indent(lines + stores), "}", "",
            f'extern "C" __global__ void __launch_bounds__({_BLOCK}) elementwise({", ".join(parameters)}) {{',
            f"    const Index first = (Index)blockIdx.x * {_BLOCK}u + threadIdx.x;",
            f"    const Index step = (Index)gridDim.x * {_BLOCK}u;"]
    text += [f"    const {types[n]} x{n} = wide(a{n}[0]);" for n in read if layout.operands[n].reach is Reach.FIXED]
    text += [f"    const unsigned long long key{n} = a{n}[0], before{n} = a{n}[1];"
             for n in read if layout.operands[n].reach is Reach.DRAWN]
    text += [f"    for (Index item = first; item < total / {lanes}u; item += step) {{",
             f"        const Index at = item * {lanes}u;",
             *indent(_part(layout, read, [n for n, _ in writes], types, strided, lanes), 2), "    }"]
    if lanes > 1 and axes == 1:
        text += [f"    for (Index at = total - total % {lanes}u + first; at < total; at += step) {{",
                 *indent(_part(layout, read, [n for n, _ in writes], types, strided, 1), 2), "    }"]
    return "\n".join([*text, "}", ""])


def _part(layout: Layout, read: Sequence[int], written: Sequence[int], types: dict[int, str], strided: Sequence[int],
          lanes: int) -> list[str]:
    """The lines that compute as many elements as there are lanes, beginning at ``at``."""
    lines = []
    if strided:
        lines.append("Index rest = at;")
        for axis in range(layout.axes - 1, 0, -1):
            lines.append(f"const Index i{axis} = rest % n{axis}; rest /= n{axis};")
        lines.append("const Index i0 = rest;")
        for n in strided:
            lines.append(f"const Offset o{n} = " + " + ".join(
                f"(Offset)i{axis} * s{n}_{axis}" for axis in range(layout.axes)) + ";")
    outer = layout.axes - 1
    inner = []
    arguments = []
    for n in read:
        reach = layout.operands[n].reach
        arguments.append(f"x{n}")
        if reach is Reach.GATHERED:
            inner.append(f"const {types[n]} x{n} = wide(a{n}[o{n} + lane * s{n}_{outer}]);")
        elif reach is Reach.DRAWN and lanes % 4 == 0:
            lines += [f"Words drawn{n}[{lanes // 4}];", "#pragma unroll",
                      f"for (int part = 0; part < {lanes // 4}; ++part) "
                      f"drawn{n}[part] = drawn(key{n}, before{n} + at / 4u + part);"]
            inner.append(f"const float x{n} = uniform(drawn{n}[lane / 4].at[lane % 4]);")
        elif reach is Reach.DRAWN:
            lines.append(f"const Words drawn{n} = drawn(key{n}, before{n} + at / 4u);")
            inner.append(f"const float x{n} = uniform(word_of(drawn{n}, (unsigned)at + lane));")
        elif reach is not Reach.FIXED:
            lines.append(f"const auto p{n} = load<{lanes}>(a{n} + {'at' if reach is Reach.FLAT else f'o{n}'});")
            inner.append(f"const {types[n]} x{n} = wide(p{n}.at[lane]);")
    after = []
    for n in written:
        stored, reach = STORED[layout.operands[n].dtype.name], layout.operands[n].reach
        if reach is Reach.GATHERED:
            arguments.append(f"a{n}[o{n} + lane * s{n}_{outer}]")
        else:
            lines.append(f"Pack<{stored}, {lanes}> q{n};")
            arguments.append(f"q{n}.at[lane]")
            after.append(f"store(a{n} + {f'o{n}' if reach is Reach.PACKED else 'at'}, q{n});")
    return [*lines, "#pragma unroll", f"for (int lane = 0; lane < {lanes}; ++lane) {{",
            *indent([*inner, f"compute({', '.join(arguments)});"]), "}", *after]


def declines(expression: Expression, ins: Sequence[Array], outs: Sequence[Array | None]) -> str | None:
    """The reason why there is no kernel of an expression of such arrays."""
    drawn = expression.draws
    for place, array in enumerate((*ins, *outs)):
        if array is not None and place not in drawn and array.dtype.name not in STORED:
            return f"dtype {array.dtype}: kernels are compiled for {', '.join(STORED)}"
    name = missing(expression)
    if name is not None:
        return f"{name} has no statement in CUDA C++"
    if not expression.code or any(out is not None and out.size == 0 for out in outs):
        return "nothing to compute"
    return None


def bound(expression: Expression, arrangement: Arrangement, xp: ArrayModule) -> Callable[[], None]:
    """A step without arguments that computes an expression on its arrays."""
    layout = arrangement.layout
    index, offset = (np.uint64, np.int64) if layout.far else (np.uint32, np.int32)
    strided = [n for n, operand in enumerate(layout.operands) if operand.reach in (Reach.PACKED, Reach.GATHERED)]
    arguments = [*arrangement.arrays, index(arrangement.total), *[index(size) for size in arrangement.sizes[1:]],
                 *[offset(arrangement.strides[n][axis]) for n in strided for axis in range(layout.axes)]]
    blocks = grid_of(xp, math.ceil(arrangement.total / layout.lanes), _BLOCK)
    read = sum(own_bytes(arrangement.arrays[n]) for n in {layout.ins[i] for i in expression.used})
    written = sum(own_bytes(arrangement.arrays[n]) for n in {n for n in layout.outs if n is not None})
    return Launch(kernel_of(xp, source(expression, layout), "elementwise"), blocks, _BLOCK, arguments, read, written)


def bound_to(expression: Expression, ins: Sequence[Array], outs: Sequence[Array | None], xp: ArrayModule
             ) -> Callable[[], None]:
    """``bound`` for arrays that are known to be contiguous or to broadcast, and not to overlap."""
    arrangement = arrange(ins, outs)
    assert isinstance(arrangement, Arrangement), arrangement
    return bound(expression, arrangement, xp)


def fuses(xp: ArrayModule, dtype: np.dtype) -> bool:
    """Whether these kernels serve an array module and a dtype."""
    return can_compile(xp) and dtype.name in STORED


def attach(op: Op, expression: Callable[[Attrs], Expression],
           ufuncs: Callable[[Call], list[Callable[[], object]]]) -> None:
    """Give an operator with an expression, a function of its attributes, the kernel ``cuda``."""

    attach_compiled(op, accepts_expression(expression, lambda scalar, call: declines(
        scalar, call.ins, call.outs) or keep_details(call, arrange(call.ins, call.outs))),
        lambda call: [bound(expression(call.attrs), call.details, call.xp)])

"""Recurrent layers compiled with numba: a whole layer is one function, and each thread runs it for a part of the batch.

Samples do not depend on each other, so threads need not synchronise at each time step. The weight matrices are packed
once per run (see ``gemm``), by each thread for itself unless they are large. A step adds the products of its input and
of the previous state to the biases, and computes the gates while these are in the cache (see ``rnn_cells``). The
backward pass through time computes, for all steps, the gradient of the gates' pre-activations. The gradients of the
weights are products of this with inputs and states; threads share the rows of these products after the last step.

For when functions are compiled, see ``compiler``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from opreg.core import threads
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.processor import processor
from opreg.core.spec import Shape
from opreg.typing import Array

from . import gemm
from .compiler import Function, calls_of_parts, function_of

__all__ = ["CellKind", "Gradients", "backward", "forward", "function", "weights"]

#: Another thread is used for at least this number of multiplications.
_LEAST = 1 << 21


class CellKind(NamedTuple):
    """A kind of cell.

    Attributes
    ----------
    blocks : tuple of pairs
        For each block of columns in ``work``, two gates: one whose product with the input is added to the block, and
        one whose product with the state is added; None if there is none. Blocks with None come first and last.
    forward, backward : str
        The arrays and offsets of the arguments and results of an expression in ``rnn_cells.CELLS``, for one row.
    by_state : bool
        Whether a pre-activation's parts from the input and from the state have different gradients.
    """

    blocks: tuple[tuple[int | None, int | None], ...]
    forward: str
    backward: str
    by_state: bool = False


def _offsets(array: str, start: str, distance: str, count: int) -> str:
    """An array with ``count`` offsets at equal distances, as text."""
    return ", ".join(f"{array}, {start} + {i} * {distance}" for i in range(count))


_ALL = ((0, 0), (1, 1), (2, 2), (3, 3))
_PLAIN = CellKind(_ALL[:1], "work, o, states, after", "states, after, dy, now, dh, o, by_input, to, dh, o")
CELLS = {
    "lstm": CellKind(_ALL, f"{_offsets('work', 'o', 'block', 4)}, cells, now, {_offsets('gates', 'now', 'plane', 4)}, "
                           "cells, after, states, after",
                     f"{_offsets('gates', 'now', 'plane', 4)}, cells, now, cells, after, dy, now, dh, o, dc, "
                     f"row * size, {_offsets('by_input', 'to', 'size', 4)}, dc, row * size, dh, o"),
    # Blocks: candidate from the input, reset, update, candidate from the state.
    "gru": CellKind(((2, None), (0, 0), (1, 1), (None, 2)),
                    f"{_offsets('work', 'o + block', 'block', 2)}, work, o, work, o + 3 * block, states, now, "
                    f"{_offsets('gates', 'now', 'plane', 3)}, cells, after, states, after",
                    f"{_offsets('gates', 'now', 'plane', 3)}, cells, after, states, now, dy, now, dh, o, "
                    f"{_offsets('by_input', 'to', 'size', 3)}, {_offsets('by_state', 'to', 'size', 3)}, dh, o",
                    by_state=True),
    "rnn_tanh": _PLAIN,
    "rnn_relu": _PLAIN,
}

# ------------------------------------------------------------------------------------------------------ texts

_SIZES = "time", "batch", "inputs", "size", "block", "across", "task", "share"
#: Tasks of the gradient's function: go back through time, without or with the gradient of the input, or compute
#: products for the weights' gradients.
_WITHOUT_INPUT, _WITH_INPUT, _WEIGHTS = range(3)
#: Tasks of the layer's function: pack the weights for itself and compute, pack some blocks for all threads, or compute
#: with weights packed before.
_PACK_AND_COMPUTE, _PACK, _COMPUTE = range(3, 6)
_ARRAYS = {
    "forward": ("x", "w_input", "w_state", "input_bias", "state_bias", "gates", "cells", "states", "work", "bias",
                "packed_input", "packed_state"),
    "backward": ("dy", "w_input", "w_state", "gates", "cells", "states", "dh", "dc", "by_input", "by_state", "dx",
                 "sums", "packed_input", "packed_state"),
}
_FORWARD = """
wide = {blocks} * block
part = first // share if task == 3 else 0
input_offset = part * {of_input} * block * inputs
state_offset = part * {of_state} * block * size
bias_offset = part * wide
if task != 5:
    begin = first if task == 4 else 0
    end = last if task == 4 else {blocks}
    for i in range(bias_offset + begin * block, bias_offset + end * block):
        bias[i] = 0
    {prepare}
if task == 4:
    return
for t in range(time):
    for row in range(first, last):
        for i in range(wide):
            work[row * wide + i] = bias[bias_offset + i]
    product(x, (t * batch + first) * inputs, inputs, inputs, packed_input, input_offset, work, first * wide, wide,
            {of_input} * block // width, last - first)
    product(states, (t * batch + first) * size, size, size, packed_state, state_offset, work,
            first * wide + {before_state} * block, wide, {of_state} * block // width, last - first)
    for row in range(first, last):
        o = row * wide
        now = (t * batch + row) * size
        after = now + batch * size
        {mode}_forward({places}, size)
"""
# Packs the weights and adds the biases of the input, or of the state, for some blocks.
_PREPARE = """\
for place in range(max(begin - {before}, 0), min(end - {before}, {count})):
        gate = {gates}[place]
        pack_transpose(w_{name}, gate * size * {features}, size, {features},
                       packed_{name}, {name}_offset + place * block * {features})
        for i in range(size):
            bias[bias_offset + (place + {before}) * block + i] += {name}_bias[gate * size + i]"""
_BACKWARD = """
many = {gates} * size
if task == 2:
    for i in range(first * across, last * across):
        sums[i] = 0
    transposed(by_input, first, many, time * batch, dy, inputs, packed_input, first // share * {depth} * across,
               sums, first * across, across, last - first)
    return
input_offset = first // share * many * across
state_offset = first // share * many * block
if task == 1:
    pack(w_input, 0, many, inputs, packed_input, input_offset)
pack(w_state, 0, many, size, packed_state, state_offset)
for i in range(first // {few} * {kinds} * many, -(-last // {few}) * {kinds} * many):
    sums[i] = 0
for back in range(time):
    t = time - 1 - back
    for row in range(first, last):
        o = row * block
        now = (t * batch + row) * size
        after = now + batch * size
        to = (t * batch + row) * many
        {mode}_backward({places}, size)
        {sums}
    start = (t * batch + first) * many
    product({by_state}, start, many, many, packed_state, state_offset, dh, first * block, block, block // width,
            last - first)
    if task == 1:
        for i in range((t * batch + first) * across, (t * batch + last) * across):
            dx[i] = 0
        product(by_input, start, many, many, packed_input, input_offset, dx, (t * batch + first) * across, across,
                across // width, last - first)
"""
# Sums over a few samples each, always as many, so that the order of summation does not depend on the number of threads.
_SUM = """\
for i in range(many):
            sums[(row // {few} * {kinds} + {place}) * many + i] += {name}[to + i]"""


@cached(16)
def _text(mode: str, part: str) -> str:
    """The text of a function ``kernel(table, first, last)`` for the samples from ``first`` to ``last``."""
    cell, arrays = CELLS[mode], _ARRAYS[part]
    if part == "forward":
        body = _FORWARD.format(mode=mode, places=cell.forward, blocks=len(cell.blocks), prepare=_prepare(cell),
                               **_spans(cell))
    else:
        names = ("by_input", "by_state")[:1 + cell.by_state]
        sums = [_SUM.format(kinds=len(names), place=i, name=name, few=gemm.FEW) for i, name in enumerate(names)]
        body = _BACKWARD.format(mode=mode, places=cell.backward, gates=_gates(cell), kinds=len(names), few=gemm.FEW,
                                depth=gemm.DEPTH, sums="\n        ".join(sums), by_state=names[-1])
    lines = [f"{name} = address(table[{i}])" for i, name in enumerate(arrays)]
    lines += [f"{name} = table[{i}]" for i, name in enumerate(_SIZES, len(arrays))]
    lines += ["plane = time * batch * size", *body.strip("\n").split("\n")]
    return "def kernel(table, first, last):\n" + "".join(f"    {line}\n" for line in lines)


def _prepare(cell: CellKind) -> str:
    """The lines that pack the weights block by block, and add up the biases."""
    lines = []
    for i, (name, features) in enumerate((("input", "inputs"), ("state", "size"))):
        gates = [block[i] for block in cell.blocks]
        names = tuple(gate for gate in gates if gate is not None)
        lines.append(_PREPARE.format(name=name, features=features, gates=names, count=len(names),
                                     before=gates.index(names[0])))
    return "\n    ".join(lines)


def _gates(cell: CellKind) -> int:
    return sum(of_input is not None for of_input, _ in cell.blocks)


def _spans(cell: CellKind) -> dict[str, int]:
    """The numbers of blocks with products of the input and of the state, and the first block with the latter."""
    from_state = [of_state is not None for _, of_state in cell.blocks]
    return {"of_input": _gates(cell), "of_state": sum(from_state), "before_state": from_state.index(True)}


def function(mode: str, part: str, dtype: np.dtype) -> Function:
    """The function ``forward`` or ``backward`` of a kind of cell."""
    return function_of(_text(mode, part), dtype, 1)


# --------------------------------------------------------------------------------------------------- running


def _share(rows: int, work: int) -> int:
    """The number of rows in a thread's part."""
    count = max(1, min(threads.count(), work // _LEAST))
    return -(-rows // (count * gemm.FEW)) * gemm.FEW


def _parts(function: Function, arrays: Sequence[Array], sizes: Sequence[int], rows: int) -> list[Callable[[], None]]:
    """Calls for parts of the rows; the last of ``sizes`` is the number of rows in a part."""
    table = np.array([*map(address_of, arrays), *sizes], np.int64)
    return list(calls_of_parts(function, table, threads.chunks(rows, sizes[-1]), [*arrays, table]))


#: Gives memory for a temporary by name, shape and dtype.
Temporary: TypeAlias = Callable[[str, Shape, np.dtype], Array]
#: Calls that may run at the same time.
Calls: TypeAlias = list[Callable[[], None]]


def forward(mode: str, x: Array, w_input: Array, w_state: Array, bias: Sequence[Array], residuals: Sequence[Array],
            temporary: Temporary) -> tuple[Calls, Calls]:
    """Calls that prepare one direction of a layer, possibly none, and calls that compute it; calls of one list may run
    at the same time.

    Parameters
    ----------
    x : array (time, batch, inputs)
    w_input, w_state : arrays (gates, size, features)
    bias : two arrays (gates, size), for input and state
    residuals : arrays
        Gates (gates, time, batch, size), cells and states (time + 1, batch, size), the latter two with the initial ones
        first. All arrays are contiguous and of one dtype.
    temporary : function of a name, a shape and a dtype
        Gives memory for temporaries, which must stay valid until the calls have run.
    """
    cell, dtype = CELLS[mode], x.dtype
    (time, batch, inputs), (size, block) = x.shape, (w_input.shape[1], gemm.padded(w_input.shape[1], x.dtype))
    share = _share(batch, time * batch * size * _gates(cell) * (inputs + size))
    blocks, spans = len(cell.blocks), _spans(cell)
    packed = block * (spans["of_input"] * inputs + spans["of_state"] * size) * dtype.itemsize
    # To pack in every thread is faster than to synchronise, and each core then has the weights in its own cache, if
    # they fit.
    per_thread = packed <= processor().l2
    count = -(-batch // share) if per_thread else 1
    arrays = [x, w_input, w_state, *bias, *residuals, temporary("work", (batch, blocks * block), dtype),
              temporary("bias", (count, blocks * block), dtype),
              temporary("input", (count * spans["of_input"], block, inputs), dtype),
              temporary("state", (count * spans["of_state"], block, size), dtype)]

    def calls(task: int, share: int, rows: int) -> Calls:
        return _parts(function(mode, "forward", dtype), arrays,
                      (time, batch, inputs, size, block, 0, task, share), rows)

    if per_thread:
        return [], calls(_PACK_AND_COMPUTE, share, batch)
    return calls(_PACK, 1, blocks), calls(_COMPUTE, share, batch)


class Gradients(NamedTuple):
    """The gradients of one direction, and the calls that compute them.

    Attributes
    ----------
    calls : list of functions
        They fill the arrays, and may run at the same time.
    by_input, by_state : arrays (time * batch, gates * size)
        The gradients of the gates' pre-activations, of the parts from the input and from the state.
    sums : function without arguments
        Gives the sums of both over all rows.
    dx : array (time, batch, inputs), or None
    dh : array (batch, size)
    """

    calls: Calls
    by_input: Array
    by_state: Array
    sums: Callable[[], Array]
    dx: Array | None
    dh: Array


def backward(mode: str, dy: Array, w_input: Array, w_state: Array, residuals: Sequence[Array], dh: Array,
             dc: Array | None, dx: Array | None, temporary: Temporary) -> Gradients:
    """The backward pass of one direction of a layer through time.

    Parameters
    ----------
    dy : array (time, batch, size)
    w_input, w_state, residuals, temporary
        As for ``forward``.
    dh, dc : arrays (batch, size)
        The gradients of the last states and cells. ``dc`` is overwritten by the gradient of the first cells; None
        without cells.
    dx : array (time, batch, inputs), or None
        Memory for the gradient of the input, if it is needed.
    """
    cell, dtype = CELLS[mode], dy.dtype
    (time, batch, size), inputs = dy.shape, w_input.shape[2]
    block, across = gemm.padded(size, dtype), gemm.padded(inputs, dtype)
    many, kinds = _gates(cell) * size, 2 if cell.by_state else 1
    state = temporary("dh", (batch, block), dtype)
    state[:, :size] = dh
    state[:, size:] = 0.0
    by_input = temporary("by input", (time * batch, many), dtype)
    by_state = temporary("by state", (time * batch, many), dtype) if cell.by_state else by_input
    task = _WITHOUT_INPUT if dx is None else _WITH_INPUT
    dx_panels = by_input if dx is None else dx if inputs == across else temporary("dx", (time, batch, across), dtype)
    share = _share(batch, time * batch * many * (inputs * task + size))
    count = -(-batch // share)
    sums = temporary("sums", (-(-batch // gemm.FEW), kinds, many), dtype)
    arrays = [dy, w_input, w_state, *residuals, state, dy if dc is None else dc, by_input, by_state, dx_panels, sums,
              temporary("input", (count * task, many, across), dtype), temporary("state", (count, many, block), dtype)]
    calls = _parts(function(mode, "backward", dtype), arrays,
                   (time, batch, inputs, size, block, across, task, share), batch)
    return Gradients(calls, by_input, by_state, lambda: sums.sum(axis=0),
                     None if dx is None else dx_panels[:, :, :inputs], state[:, :size])


def weights(mode: str, gates: Array, x: Array, out: Array, name: str, temporary: Temporary) -> tuple[Calls, Array]:
    """Calls that multiply the transpose of ``gates``, (time * batch, gates * size), by ``x``, and the array of the
    result.

    ``x`` has the shape (time, batch, features). The result is written to ``out``, (gates * size, features), if its rows
    are whole panels.
    """
    (time, batch, features), many = x.shape, gates.shape[1]
    across = gemm.padded(features, gates.dtype)
    panels = out if features == across else temporary(f"out {name}", (many, across), gates.dtype)
    share = _share(many, time * batch * many * features)
    places = {"by_input": gates, "dy": x, "sums": panels,
              "packed_input": temporary(name, (-(-many // share), gemm.DEPTH, across), gates.dtype)}
    arrays = [places.get(array, panels) for array in _ARRAYS["backward"]]
    calls = _parts(function(mode, "backward", gates.dtype), arrays,
                   (time, batch, features, many // _gates(CELLS[mode]), 0, across, _WEIGHTS, share), many)
    return calls, panels[:, :features]

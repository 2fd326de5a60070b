"""Recurrent layers as CUDA kernels: a time step is a matrix product and one kernel for all element-wise work of the
gates.

The part from the input is one product over all time steps, as on the host. In the gradient, the kernel of a step also
sums the products of the gates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.builtin.layers.rnn import backward_rnn, rnn, run, run_back
from opreg.builtin.layers.rnn_layer import products, rows_of
from opreg.builtin.layers.rnn_parts import GATES, Kind, Part, Residuals, gate_view, kind_of
from opreg.builtin.outputs import wide
from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.typing import Array, ArrayModule

from ...blas import matmul
from ...rnn_cells import CELLS
from ..compiler import attach, grid_of, kernel_of
from ..instructions import Value, indent, statements

__all__ = ["backward", "backward_source", "forward", "forward_source"]

_BLOCK = 256

# For each mode the operands and results of its expressions in ``rnn_cells.CELLS``; ``a0`` to ``a3`` are the gates'
# pre-activations, and ``carry`` is the part of the gradient of the state that passes the products.
_PLACES = {
    "lstm_forward": ("a0 a1 a2 a3 cells[before]", "gates[g0] gates[g1] gates[g2] gates[g3] cells[after] states[after]"),
    "lstm_backward": ("gates[g0] gates[g1] gates[g2] gates[g3] cells[before] cells[after] dy[step] dh dc[i]",
                      "slopes[g0] slopes[g1] slopes[g2] slopes[g3] dc[i] carry[i]"),
    "gru_forward": ("a0 a1 a2 part states[before]", "gates[g0] gates[g1] gates[g2] cells[after] states[after]"),
    "gru_backward": ("gates[g0] gates[g1] gates[g2] cells[after] states[before] dy[step] dh",
                     "slopes[g0] slopes[g1] extra[step] - - slopes[g2] carry[i]"),
    **{f"rnn_{name}_forward": ("a0", "states[after]") for name in ("tanh", "relu")},
    **{f"rnn_{name}_backward": ("states[after] dy[step] dh", "slopes[g0] carry[i]") for name in ("tanh", "relu")},
}


def _cell_lines(name: str, type: str) -> list[str]:
    """The lines that compute an expression and store its results."""
    operands, places = map(str.split, _PLACES[name])
    lines, results = statements(CELLS[name], [Value(f"x{i}", type) for i in range(len(operands))])
    return [*[f"const {type} x{i} = {operand};" for i, operand in enumerate(operands)], *lines,
            *[f"{place} = {result.text};" for place, result in zip(places, results, strict=True) if place != "-"]]


def _source(name: str, arrays: Sequence[str], lines: Sequence[str]) -> str:
    """The text of a kernel over the features of a time step, ``at`` of ``time``, for a batch in all directions."""
    head = [f'extern "C" __global__ void __launch_bounds__({_BLOCK}) {name}('
            f"{', '.join([*arrays, *[f'long long {each}' for each in ('at', 'time', 'batch', 'size', 'total')]])}) {{",
            f"    for (long long i = blockIdx.x * {_BLOCK}ll + threadIdx.x; i < total; i += gridDim.x * {_BLOCK}ll) {{",
            "        const long long row = batch * size, set = i / row, rest = i % row, feature = rest % size;",
            "        const long long before = (set * (time + 1) + at) * row + rest, after = before + row;"]
    return "\n".join([*head, *indent(lines, 2), "    }", "}", ""])


@cached(16)
def forward_source(mode: str, dtype: np.dtype) -> str:
    """The text of the kernel ``cell``, which computes gates, cells and states of a time step."""
    type, gates = _type(dtype), GATES[mode]
    arrays = [f"const {type}* from_state", f"const {type}* bias", f"{type}* states"]
    lines = [f"const long long f{g} = (set * {gates} + {g}) * row + rest;" for g in range(gates)]
    if gates > 1:
        arrays += [f"{type}* gates", f"{type}* cells", *([f"const {type}* behind"] if mode == "gru" else [])]
        lines += _gates(gates)
    for g in range(gates):
        given = [f"gates[g{g}]" if gates > 1 else "states[after]", f"from_state[f{g}]",
                 f"bias[(set * {gates} + {g}) * size + feature]"]
        if mode == "gru" and g == 2:
            lines.append(f"const {type} part = {given.pop(1)} + behind[set * size + feature];")
        lines.append(f"const {type} a{g} = {' + '.join(given)};")
    return _source("cell", arrays, [*lines, *_cell_lines(f"{mode}_forward", type)])


@cached(16)
def backward_source(mode: str, dtype: np.dtype) -> str:
    """The text of the kernel ``cell_back``, which computes the gradients of the gates of a time step, and those that go
    on to the step before."""
    type, gates = _type(dtype), GATES[mode]
    arrays = [f"const {type}* dy", f"const {type}* from_step", f"{type}* carry", f"{type}* slopes",
              f"const {type}* states"]
    if gates > 1:
        arrays += [f"const {type}* gates", f"const {type}* cells",
                   f"{type}* {'dc' if mode == 'lstm' else 'extra'}"]
    sums = " + ".join(["carry[i]", *[f"from_step[(set * {gates} + {g}) * row + rest]" for g in range(gates)]])
    lines = ["const long long step = (set * time + at) * row + rest;", f"const {type} dh = {sums};", *_gates(gates)]
    return _source("cell_back", arrays, [*lines, *_cell_lines(f"{mode}_backward", type)])


def _type(dtype: np.dtype) -> str:
    return "double" if dtype.itemsize == 8 else "float"


def _gates(count: int) -> list[str]:
    return [f"const long long g{g} = ((set * {count} + {g}) * time + at) * row + rest;" for g in range(count)]


class _Steps:
    """Launches of a kernel for one time step after another."""

    def __init__(self, xp: ArrayModule, text: str, name: str, arrays: Sequence[Array], time: int, batch: int, size: int,
                 directions: int):
        self.kernel, self.arrays, total = kernel_of(xp, text, name, "RNN"), arrays, directions * batch * size
        self.sizes = [*map(np.int64, (time, batch, size, total))]
        self.blocks = grid_of(xp, total, _BLOCK)

    def __call__(self, at: int) -> None:
        self.kernel((self.blocks,), (_BLOCK,), (*self.arrays, np.int64(at), *self.sizes))


def forward(xp: ArrayModule, kind: Kind, parts: list[dict[str, Part]], parameters: Array, x: Sequence[Array],
            residuals: Residuals, counts: Array | None) -> None:
    """Run a layer, as ``rnn_layer.forward`` does."""
    gates = residuals.gates if kind.gates > 1 else residuals.states[:, None, 1:]
    time, batch = gates.shape[2:4]
    w = {name: [gate_view(kind, part[name], parameters) for part in parts]
         for name in ("input", "state", "input_bias", "state_bias")}
    for d, source in enumerate(x):
        matmul(xp, rows_of(source), w["input"][d].swapaxes(1, 2),
               out=gates[d].reshape(kind.gates, time * batch, kind.size))
    bias, state_bias = xp.stack(w["input_bias"]), xp.stack(w["state_bias"])
    bias[:, :2] += state_bias[:, :2]  # a GRU's candidate part from the state is multiplied by a gate first
    arrays = [xp.empty((kind.directions, kind.gates, batch, kind.size), dtype=gates.dtype), bias, residuals.states]
    if kind.gates > 1:
        arrays += [residuals.gates, residuals.cells]
    if kind.mode == "gru":
        arrays.append(xp.ascontiguousarray(state_bias[:, 2]))
    elif kind.mode == "lstm":
        bias[:, 2:] += state_bias[:, 2:]
    steps = _Steps(xp, forward_source(kind.mode, gates.dtype), "cell", arrays, time, batch, kind.size, kind.directions)
    matrices = xp.ascontiguousarray(xp.stack(w["state"]).swapaxes(2, 3))
    for t in range(time):
        matmul(xp, residuals.states[:, None, t], matrices, out=arrays[0])
        steps(t)


def backward(xp: ArrayModule, kind: Kind, parts: list[dict[str, Part]], parameters: Array, x: list[Array],
             residuals: Residuals, counts: Array | None, dy: Array, ends: tuple[Array, Array | None],
             d_parameters: Array, dx: Sequence[Array] | None) -> tuple[Array, Array | None]:
    """The gradient of a layer, as ``rnn_layer.backward`` computes it."""
    directions, time, batch, size = dy.shape
    carry, dc = ends[0].copy(), None if ends[1] is None else ends[1].copy()
    slopes = xp.empty((directions, kind.gates, time, batch, size), dtype=dy.dtype)
    from_step = xp.zeros((directions, kind.gates, batch, size), dtype=dy.dtype)
    extra: Any = xp.empty_like(dy) if kind.mode == "gru" else dc
    arrays = [xp.ascontiguousarray(dy), from_step, carry, slopes, residuals.states]
    if kind.gates > 1:
        arrays += [residuals.gates, residuals.cells, extra]
    steps = _Steps(xp, backward_source(kind.mode, dy.dtype), "cell_back", arrays, time, batch, size, directions)
    matrices = xp.stack([gate_view(kind, part["state"], parameters) for part in parts])
    for t in reversed(range(time)):
        steps(t)
        matmul(xp, slopes[:, :, t], matrices, out=from_step)
    da = xp.concatenate([slopes[:, :2], extra[:, None]], axis=1) if kind.mode == "gru" else slopes
    products(xp, kind, parts, parameters, residuals, x, da, slopes, None, d_parameters, dx)
    return carry + from_step.sum(axis=1), dc


# ----------------------------------------------------------------------------------------------- operators


def _declines(call: Call) -> str | None:
    kind = kind_of(**call.attrs)
    if kind.lengths or kind.projection or kind.clip is not None:
        return "only layers without lengths, projections and limits"
    if any(array.size == 0 or not array.flags.c_contiguous for array in call.ins):
        return "an array is empty, or is not contiguous"
    known = wide(call.ins[0][:0]).dtype.name in ("float32", "float64")
    return None if known else f"dtype {call.ins[0].dtype}: no floating number"


def rnn_cuda(call: Call) -> Callable[[], object]:
    return functools.partial(run, call.xp, forward, call.ins, call.is_train, call.rng, call.places(), call.attrs)


def backward_rnn_cuda(call: Call) -> Callable[[], object]:
    return functools.partial(run_back, call.xp, backward, call.ins, call.outs, call.attrs)


attach(rnn, _declines, rnn_cuda)
attach(backward_rnn, _declines, backward_rnn_cuda)

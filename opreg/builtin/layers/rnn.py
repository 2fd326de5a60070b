"""RNN: stacked recurrent layers, in one or two directions, with all parameters in one vector.

``rnn_parts`` explains the attributes and the layout of parameters, and ``rnn_layer`` computes a layer; this module has
the operator. Internally the second direction runs on reversed time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np

from ...core.attrs import Few, Positive
from ...core.registry import declare
from ...core.rules import Attrs
from ...core.spec import Shape, as_dtype, common_dtype, show
from ...errors import ShapeError
from ...typing import Array, ArrayModule
from ..outputs import common_floating, declare_gradient, wide
from . import rnn_layer
from .rnn_parts import GATES, Kind, Residuals, count, kind_of, parts_of, reserve_size, views

#: Result arrays of the caller; None for results that are not read.
Outs = Sequence[Array | None] | None

T = TypeVar("T")

Mode = Literal["gru", "lstm", "rnn_relu", "rnn_tanh"]

# ----------------------------------------------------------------------------------------- the operator


def _arguments(*, mode, use_sequence_length):
    return ("data", "parameters", "state", *(("state_cell",) if mode == "lstm" else ()),
            *(("sequence_length",) if use_sequence_length else ()))


def _outputs(*, mode):
    return ("output", "state_output", *(("statecell_output",) if mode == "lstm" else ()), "reserve")


@declare(name="RNN", aliases=("_npx_rnn",), random=True, mode=True, arguments=_arguments, outputs=_outputs,
         visible=lambda *, mode, state_outputs: (3 if mode == "lstm" else 2) if state_outputs else 1)
def rnn(data, parameters, state, state_cell, sequence_length, *, state_size: Positive, num_layers: Few,
        bidirectional: bool = False, mode: Mode, p: float = 0.0, state_outputs: bool = False,
        projection_size: int | None = None, lstm_state_clip_min: float | None = None,
        lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False,
        use_sequence_length: bool = False):
    """Recurrent layers, stacked on top of each other.

    Parameters
    ----------
    data : array of shape (time, batch, inputs)
        Input of the first layer.
    parameters : array of one axis
        For each layer and direction the weights of the input, of the state, and of the projection if there is one;
        then, in the same order, two vectors of biases each. Rows are ordered by gates: input, forget, candidate, output
        for an LSTM; reset, update, candidate for a GRU.
    state, state_cell : arrays of shape (num_layers * directions, batch, state_size)
        Initial states of the layers; ``state_cell`` in the mode ``lstm`` only. With projections, ``state`` has
        ``projection_size`` features.
    sequence_length : array of shape (batch,)
        Number of valid steps of each sample, with ``use_sequence_length``. Outputs after the last valid step are 0; the
        last states are those after this step, and the reverse direction begins with it.
    p : float
        Probability of dropout between layers, in training.
    state_outputs : bool
        Whether the last states are outputs, too.
    lstm_state_clip_min, lstm_state_clip_max : float
        Limits of the cells' states; with ``lstm_state_clip_nan`` they replace NaN as well.

    The output has the shape (time, batch, directions * state_size). The cells are those of S. Hochreiter,
    J. Schmidhuber, Long Short-Term Memory, 1997, with the projection of H. Sak et al., arXiv:1402.1128, and of
    K. Cho et al., arXiv:1406.1078, where the reset gate multiplies the matrix product of the state, as in cuDNN.
    """


@rnn.fill
def rnn_fill(ins, outs, **attrs):
    data = ins[0]
    if data is None:
        return ins
    if len(data) != 3:
        raise ShapeError(f"data: expected shape (time, batch, inputs), got {show(data)}")
    kind = kind_of(**attrs)
    rows = kind.layers * kind.directions
    shapes = [data, (count(kind, data[2]),), (rows, data[1], kind.out)]
    if kind.mode == "lstm":
        shapes.append((rows, data[1], kind.size))
    if kind.lengths:
        shapes.append((data[1],))
    return shapes


@rnn.infer
def rnn_infer(data, parameters, state, *rest, **attrs):
    kind = kind_of(**attrs)
    cells = list(rest[:1]) if kind.mode == "lstm" else []
    return [(data[0], data[1], kind.directions * kind.out), state, *cells, (reserve_size(kind, data[0], data[1]),)]


@rnn.types
def rnn_types(ins, outs, *, use_sequence_length):
    count = len(ins) - use_sequence_length
    common = common_floating([*ins[:count], *outs[:-1]])
    inner = as_dtype("float32") if common is not None and common.itemsize < 4 else common
    lengths = [dtype or as_dtype("int32") for dtype in ins[count:]]
    return [common] * count + lengths, [common] * (len(outs) - 1) + [inner]


def _unpack_inputs(kind: Kind, arrays: Sequence[Array]) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """Data, parameters, state, cells or None, lengths or None."""
    data, parameters, state, *rest = arrays
    cell = wide(rest[0]) if kind.mode == "lstm" else None
    return (wide(data), wide(parameters), wide(state), cell,
            rest[-1].astype("int64") if kind.lengths else None)


def _target(xp: ArrayModule, out: Array | None, shape: Shape, dtype: np.dtype) -> Array:
    """The array to write a result to, the caller's if it can be."""
    if out is not None and out.dtype == dtype and out.flags.c_contiguous:
        return out
    return xp.empty(shape, dtype=dtype)


def _store_results(results: tuple[Array, ...], out: Outs) -> Sequence[Array | None]:
    """The results, in the caller's arrays if there are any."""
    if out is None:
        return results
    for target, result in zip(out, results):
        if target is not None and target is not result:
            target[...] = result
    return out


@rnn.chance
def rnn_chance(*, p, num_layers):
    return p > 0 and num_layers > 1


@rnn.kernel()  # no body: each time step follows from the one before
def rnn_xp(xp, *arrays, is_train, rng, out=None, **attrs):
    return run(xp, rnn_layer.forward, arrays, is_train, rng, out, attrs)


# ---------------------------------------------------------------------------------------------- its gradient


def _backward_arguments(*, mode, use_sequence_length):
    return (*(f"g_{name}" for name in _outputs(mode=mode)[:-1]),
            *_arguments(mode=mode, use_sequence_length=use_sequence_length), "reserve")


@declare(name="_backward_RNN", arguments=_backward_arguments,
         outputs=lambda *, mode: _arguments(mode=mode, use_sequence_length=False))
def backward_rnn(g_output, g_state_output, g_statecell_output, data, parameters, state, state_cell, sequence_length,
                 reserve, *, state_size: Positive, num_layers: Few, bidirectional: bool = False, mode: Mode,
                 p: float = 0.0, state_outputs: bool = False, projection_size: int | None = None,
                 lstm_state_clip_min: float | None = None, lstm_state_clip_max: float | None = None,
                 lstm_state_clip_nan: bool = False, use_sequence_length: bool = False):
    """The gradient of ``RNN``; ``reserve`` is the hidden output of forward, which is valid in each mode: outside of
    training the masks are ones."""


def _split(mode: str, inputs: Sequence[T]) -> tuple[list[T], list[T], T]:
    """Output gradients, inputs, and hidden outputs."""
    heads = 3 if mode == "lstm" else 2
    return list(inputs[:heads]), list(inputs[heads:-1]), inputs[-1]


declare_gradient(rnn, backward_rnn)


@backward_rnn.types
def backward_rnn_types(ins, outs, *, mode, use_sequence_length):
    heads, inputs, reserve = _split(mode, ins)
    dtypes, kept = rnn_types(inputs, [common_dtype([*heads, *outs]), reserve], use_sequence_length=use_sequence_length)
    return [dtypes[0]] * len(heads) + dtypes + kept[1:], [dtypes[0]] * len(outs)


@backward_rnn.kernel()  # no body: each time step is computed from the next
def backward_rnn_xp(xp, *arrays, out=None, **attrs):
    return run_back(xp, rnn_layer.backward, arrays, out, attrs)


# -------------------------------------------------------------------------------------------------- layers


def _reverse_time(xp: ArrayModule, x: Array, lengths: Array | None) -> Array:
    """(time, batch, features) with the time of each sample reversed; steps beyond its length keep their position."""
    if lengths is None:
        return xp.ascontiguousarray(x[::-1])
    t = xp.arange(x.shape[0]).reshape(-1, 1)
    index = xp.where(t < lengths, lengths - 1 - t, t)
    return xp.take_along_axis(x, xp.expand_dims(index, 2), axis=0)


def _inputs_by_direction(xp: ArrayModule, kind: Kind, x: Array, lengths: Array | None) -> list[Array]:
    """A layer's input as each direction reads it."""
    return [x] if kind.directions == 1 else [x, _reverse_time(xp, x, lengths)]


def _reverse_gradient(xp: ArrayModule, kind: Kind, dy: Array, lengths: Array | None) -> Array:
    """(directions, time, batch, features) of a gradient whose features are concatenated over directions."""
    if kind.directions == 1:
        return xp.expand_dims(dy, 0)
    return xp.stack([dy[..., :kind.out], _reverse_time(xp, dy[..., kind.out:], lengths)])


def _join_directions(xp: ArrayModule, y: Array, lengths: Array | None) -> Array:
    """Results (directions, time, batch, size) joined to (time, batch, directions * size)."""
    if y.shape[0] == 1:
        return y[0]
    return xp.concatenate([y[0], _reverse_time(xp, y[1], lengths)], axis=2)


def _counts(xp: ArrayModule, time: int, lengths: Array, dtype: np.dtype) -> Array:
    """(time, batch, 1): one for a valid step of the sample, zero for later ones."""
    return xp.expand_dims(xp.arange(time).reshape(-1, 1) < lengths, 2).astype(dtype)


def run(xp: ArrayModule, forward: Callable, arrays: Sequence[Array], is_train: bool, rng: np.random.Generator,
        out: Outs, attrs: Attrs) -> Sequence[Array | None]:
    """Outputs of ``RNN``, given a function that computes a layer."""
    kind = kind_of(**attrs)
    data, parameters, state, cell, lengths = _unpack_inputs(kind, arrays)
    time, batch, inputs = data.shape
    reserve = _target(xp, None if out is None else out[-1], (reserve_size(kind, time, batch),), data.dtype)
    counts = None if lengths is None else _counts(xp, time, lengths, data.dtype)
    layers, d, x = views(kind, reserve, time, batch), kind.directions, data
    for layer, (parts, residuals) in enumerate(zip(parts_of(kind, inputs), layers)):
        states_of_layer = slice(layer * d, (layer + 1) * d)
        residuals.states[:, 0] = state[states_of_layer]
        residuals.cells[:, 0] = 0.0 if cell is None else cell[states_of_layer]
        forward(xp, kind, parts, parameters, _inputs_by_direction(xp, kind, x, lengths), residuals, counts)
        if residuals.mask.size:
            if is_train:
                residuals.mask[...] = (rng.random(residuals.mask.shape, dtype=xp.float32) >= kind.p) / (1.0 - kind.p)
            else:
                residuals.mask[...] = 1.0
        x = _output(xp, residuals, counts, lengths)
    last = [xp.concatenate([states[:, -1] for states in group])
            for group in zip(*[(layer.states, layer.cells)[:1 if cell is None else 2] for layer in layers])]
    return _store_results((x, *last, reserve), out)


def run_back(xp: ArrayModule, backward: Callable, arrays: Sequence[Array], out: Outs, attrs: Attrs
             ) -> Sequence[Array | None]:
    """Outputs of ``RNN``'s gradient, given a function that computes the gradient of a layer."""
    kind = kind_of(**attrs)
    heads, ins, reserve = _split(kind.mode, arrays)
    data, parameters, state, cell, lengths = _unpack_inputs(kind, ins)
    heads = [wide(g) for g in heads]
    time, batch, inputs = data.shape
    counts = None if lengths is None else _counts(xp, time, lengths, data.dtype)
    layers, places = views(kind, reserve, time, batch), parts_of(kind, inputs)
    d, dy = kind.directions, heads[0]
    d_parameters = _target(xp, None if out is None else out[1], parameters.shape, parameters.dtype)
    d_state = xp.empty_like(state)
    d_cell = None if cell is None else xp.empty_like(cell)
    for layer in reversed(range(kind.layers)):
        residuals, directions = layers[layer], slice(layer * d, (layer + 1) * d)
        if residuals.mask.size:
            dy = dy * residuals.mask
        dy_each = _reverse_gradient(xp, kind, dy, lengths)
        if counts is not None:
            dy_each = dy_each * counts
        below = data if layer == 0 else _output(xp, layers[layer - 1], counts, lengths)
        x = _inputs_by_direction(xp, kind, below, lengths)
        ends = heads[1][directions], None if cell is None else heads[2][directions]
        dx = _room_for_input(xp, kind, x[0], out, layer)
        d_state[directions], dc = backward(xp, kind, places[layer], parameters, x, residuals, counts, dy_each, ends,
                                           d_parameters, dx)
        if d_cell is not None:
            d_cell[directions] = dc
        if dx is not None:
            dy = dx[0] if d == 1 else dx[0] + _reverse_time(xp, dx[1], lengths)
    return _store_results((dy, d_parameters, d_state, *(() if d_cell is None else (d_cell,))), out)


def _room_for_input(xp: ArrayModule, kind: Kind, x: Array, out: Outs, layer: int) -> list[Array] | None:
    """Arrays for the gradients of a layer's input, one for each direction; None if they are not read."""
    target = None if out is None or layer else out[0]
    if out is not None and not layer and target is None:
        return None
    return [_target(xp, target if kind.directions == 1 else None, x.shape, x.dtype) for _ in range(kind.directions)]


def _output(xp: ArrayModule, residuals: Residuals, counts: Array | None, lengths: Array | None) -> Array:
    """The output of a layer, input of the layer above."""
    y = residuals.states[:, 1:]
    y = _join_directions(xp, y if counts is None else y * counts, lengths)
    return y * residuals.mask if residuals.mask.size else y


def _recurrent(data, parameters, mode, state_size, num_layers, bidirectional):
    """Each step multiplies all parameters but the biases, two vectors for each layer and direction, by each sample."""
    biases = 2 * GATES[mode] * state_size * num_layers * (1 + bidirectional)
    return 2 * data[0] * data[1] * (parameters[0] - biases)


@rnn.flops
def rnn_flops(ins, outs, *, mode, state_size, num_layers, bidirectional):
    return _recurrent(ins[0], ins[1], mode, state_size, num_layers, bidirectional)


@backward_rnn.flops
def backward_rnn_flops(ins, outs, *, mode, state_size, num_layers, bidirectional):
    data, parameters = ins[3 if mode == "lstm" else 2:][:2]
    return 2 * _recurrent(data, parameters, mode, state_size, num_layers, bidirectional)

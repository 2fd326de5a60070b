"""RNN: stacked recurrent layers, of one direction or two, with all parameters in one vector.

The part of a layer that comes from its input is one product of matrices over all steps, and so are the gradients of
its parameters and input; only the rest is a loop over time, which runs both directions at once. What a step of the
gradient multiplies by is computed before, for all steps. Inside, the second direction has its time reversed, and
arrays are laid out (direction, gate, time, batch, features), so that a gate of a step is one piece of memory.
"""

from __future__ import annotations

import functools
import math
import threading
from typing import Any, Literal, NamedTuple

from ..errors import AttrError, ShapeError
from ..registry import declare, ops
from ..spec import Shape, as_dtype, common_dtype, show
from ..threads import by_rows
from .norm import floating, wide

__all__: list[str] = []

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}

# OpenBLAS computes a product of at most so many multiplications where the matrices lie, without threads and without
# rearranging them; the product of a step, cut into some of that size, takes half as long. Narrower ones gain nothing.
_SMALL, _NARROW = 1_000_000, 64
Mode = Literal["gru", "lstm", "rnn_relu", "rnn_tanh"]


# Bytes of temporaries on the host that are kept for the next call: fresh memory costs as much as what is done in it.
_KEPT = 1 << 24


class _Held(threading.local):
    """Temporaries by name and dtype, one of each in a thread."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[str, Any], Any] = {}


_HELD = _Held()


def _room(xp: Any, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory for a temporary, valid until the next call with this name."""
    size = math.prod(shape)
    if xp.__name__ != "numpy" or size * dtype.itemsize > _KEPT:
        return xp.empty(shape, dtype=dtype)
    held = _HELD.arrays.get((name, dtype))
    if held is None or held.size < size:
        held = _HELD.arrays[name, dtype] = xp.empty(size, dtype=dtype)
    return held[:size].reshape(shape)


class _Kind(NamedTuple):
    """What the attributes say."""

    mode: str
    size: int
    projection: int
    layers: int
    directions: int
    p: float
    clip: tuple[float, float] | None
    clip_nan: bool
    lengths: bool

    @property
    def gates(self) -> int:
        """How many gates a cell has."""
        return _GATES[self.mode]

    @property
    def out(self) -> int:
        """Features of a direction's output."""
        return self.projection or self.size


def _kind(*, mode: str, state_size: int, num_layers: int, bidirectional: bool, p: float, projection_size: int | None,
          lstm_state_clip_min: float | None, lstm_state_clip_max: float | None, lstm_state_clip_nan: bool,
          use_sequence_length: bool, **others: Any) -> _Kind:
    if state_size < 1 or num_layers < 1:
        raise AttrError(f"state_size={state_size}, num_layers={num_layers}: expected positive numbers")
    if not 0.0 <= p < 1.0:
        raise AttrError(f"p={p}: expected a probability below 1")
    if projection_size and mode != "lstm":
        raise AttrError(f"projection_size={projection_size}: only the mode lstm has projections, mode is {mode}")
    clip = (lstm_state_clip_min, lstm_state_clip_max)
    if mode == "lstm" and (clip[0] is None) != (clip[1] is None):
        raise AttrError("lstm_state_clip_min and lstm_state_clip_max: expected both or neither")
    limits = None if mode != "lstm" or clip[0] is None or clip[1] is None else (clip[0], clip[1])
    return _Kind(mode, state_size, projection_size or 0, num_layers, 2 if bidirectional else 1, p, limits,
                 lstm_state_clip_nan, use_sequence_length)


# ------------------------------------------------------------------------------------------ the parameters


class _Part(NamedTuple):
    start: int
    shape: Shape

    def of(self, vector: Any) -> Any:
        """The view of a vector that is this part."""
        size = self.shape[0] * (self.shape[1] if len(self.shape) > 1 else 1)
        return vector[self.start:self.start + size].reshape(self.shape)


def _features(kind: _Kind, inputs: int, layer: int) -> int:
    return inputs if layer == 0 else kind.directions * kind.out


def _count(kind: _Kind, inputs: Any) -> Any:
    """How many parameters there are; unknown with the number of inputs."""
    rows, rest = kind.gates * kind.size, kind.projection * kind.size
    first = rows * (inputs + kind.out) + rest
    other = rows * (kind.directions + 1) * kind.out + rest
    return kind.directions * (first + (kind.layers - 1) * other + kind.layers * 2 * rows)


@functools.lru_cache(256)
def _parts(kind: _Kind, inputs: int) -> list[list[dict[str, _Part]]]:
    """Where what is, for each layer and direction: first all weights, then all biases."""
    rows, at = kind.gates * kind.size, 0
    found: list[list[dict[str, _Part]]] = []
    for layer in range(kind.layers):
        found.append([])
        for _ in range(kind.directions):
            shapes = {"input": (rows, _features(kind, inputs, layer)), "state": (rows, kind.out)}
            if kind.projection:
                shapes["projection"] = (kind.projection, kind.size)
            parts = {}
            for name, shape in shapes.items():
                parts[name] = _Part(at, shape)
                at += shape[0] * shape[1]
            found[-1].append(parts)
    for layer in range(kind.layers):
        for parts in found[layer]:
            for name in ("input_bias", "state_bias"):
                parts[name] = _Part(at, (rows,))
                at += rows
    return found


def _of_gates(kind: _Kind, part: _Part, vector: Any) -> Any:
    """The view of a vector that is a part, gates first."""
    return part.of(vector).reshape(kind.gates, kind.size, *part.shape[1:])


def _halves(xp: Any, kind: _Kind, dtype: Any) -> Any:
    """For each gate what its argument is multiplied by, so that one function does for all gates.

    A sigmoid is ``tanh(x / 2) / 2 + 1 / 2``.
    """
    scale = xp.ones((kind.gates, 1, 1), dtype=dtype)
    if kind.gates > 1:
        scale[:2] = 0.5
    if kind.mode == "lstm":
        scale[3:] = 0.5
    return scale


def _columns(kind: _Kind, batch: int, features: int, columns: int) -> int:
    """How many columns of a product of a step are computed at a time."""
    width = columns
    while width % 2 == 0 and width >= 2 * _NARROW and batch * features * width > _SMALL:
        width //= 2
    return width if batch * features * width <= _SMALL else columns


class _Product:
    """``x @ matrix`` of each direction and gate, over and over.

    Parameters
    ----------
    matrices : array of shape (directions, gates, features, columns)
    batch : int
        Rows of ``x``, which has the shape (directions, gates or 1, batch, features).
    """

    def __init__(self, xp: Any, kind: _Kind, matrices: Any, batch: int):
        directions, gates, features, columns = matrices.shape
        width = _columns(kind, batch, features, columns)
        cut = matrices.reshape(directions, gates, features, columns // width, width).transpose(0, 1, 3, 2, 4)
        self.xp, self.matrices = xp, xp.ascontiguousarray(cut)
        self.result = xp.empty((directions, gates, batch, columns), dtype=matrices.dtype)
        self.cut = self.result.reshape(directions, gates, batch, columns // width, width).transpose(0, 1, 3, 2, 4)

    def __call__(self, x: Any) -> Any:
        """The products, (directions, gates, batch, columns), in memory that the next call writes again."""
        self.xp.matmul(x[:, :, None], self.matrices, out=self.cut)
        return self.result


# --------------------------------------------------------------------------------------------- what is kept


class _Kept(NamedTuple):
    """Of a layer: gates, the states of its cells (of a GRU, the candidate's part from the state), outputs, the mask of
    the dropout behind it."""

    gates: Any
    cells: Any
    states: Any
    mask: Any


def _kept_sizes(kind: _Kind, time: Any, batch: Any) -> list[tuple[Any, ...]]:
    """The shape of each of these, zero sizes for what there is not."""
    d, cell = kind.directions, kind.size if kind.gates > 1 else 0
    return [(d, kind.gates, time, batch, cell), (d, time, batch, cell), (d, time, batch, kind.out),
            (time, batch, d * kind.out if kind.p else 0)]


def _reserve_size(kind: _Kind, time: Any, batch: Any) -> Any:
    gates, cells, states, mask = (shape[-1] for shape in _kept_sizes(kind, time, batch))
    of_direction = kind.gates * gates + cells + states
    return (kind.layers * kind.directions * of_direction + (kind.layers - 1) * mask) * time * batch


def _views(kind: _Kind, reserve: Any, time: int, batch: int) -> list[_Kept]:
    at, found = 0, []
    for layer in range(kind.layers):
        arrays = []
        for place, shape in enumerate(_kept_sizes(kind, time, batch)):
            if place == 3 and layer == kind.layers - 1:
                shape = (*shape[:2], 0)
            size = math.prod(shape)
            arrays.append(reserve[at:at + size].reshape(shape))
            at += size
        found.append(_Kept(*arrays))
    return found


# ----------------------------------------------------------------------------------------------- forward


def _turned(xp: Any, x: Any, lengths: Any) -> Any:
    """(time, batch, features) with the time of each sample reversed; what is behind its end stays there."""
    if lengths is None:
        return xp.ascontiguousarray(x[::-1])
    t = xp.arange(x.shape[0]).reshape(-1, 1)
    index = xp.where(t < lengths, lengths - 1 - t, t)
    return xp.take_along_axis(x, xp.expand_dims(index, 2), axis=0)


def _ahead(xp: Any, kind: _Kind, x: Any, lengths: Any) -> list[Any]:
    """A layer's input as each direction reads it."""
    return [x, _turned(xp, x, lengths)][:kind.directions]


def _together(xp: Any, y: Any, lengths: Any) -> Any:
    """(time, batch, features) of (directions, time, batch, features)."""
    if y.shape[0] == 1:
        return y[0]
    return xp.concatenate([y[0], _turned(xp, y[1], lengths)], axis=2)


def _counts(xp: Any, time: int, lengths: Any, dtype: Any) -> Any:
    """(time, batch, 1): one for a step within the sample, zero behind its end."""
    return xp.expand_dims(xp.arange(time).reshape(-1, 1) < lengths, 2).astype(dtype)


def _rows(x: Any) -> Any:
    """(time, batch, features) as a matrix."""
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])


def _layer(xp: Any, kind: _Kind, parts: list[dict[str, _Part]], parameters: Any, x: list[Any], h: Any, c: Any,
           kept: _Kept, counts: Any) -> Any:
    """Run a layer: fill ``kept`` and return the last states of its cells."""
    gates = kept.gates if kind.gates > 1 else kept.states[:, None]
    time, batch = gates.shape[2:4]
    scale = _halves(xp, kind, gates.dtype)
    w = {name: [_of_gates(kind, part[name], parameters) for part in parts]
         for name in ("input", "state", "input_bias", "state_bias")}
    for d, source in enumerate(x):
        xp.matmul(_rows(source), (w["input"][d] * scale).swapaxes(1, 2),
                  out=gates[d].reshape(kind.gates, time * batch, kind.size))
    own, other = (xp.expand_dims(xp.stack(w[name]), 2) for name in ("input_bias", "state_bias"))
    behind = other[:, 2].copy() if kind.mode == "gru" else None
    if behind is not None:  # the candidate's part from the state passes a gate, its bias included
        other[:, 2] = 0.0
    # As large as what it is added to: numbers are added faster where none is read again for every row.
    shape = kind.directions, kind.gates, batch, kind.size
    bias = xp.ascontiguousarray(xp.broadcast_to((own + other) * scale, shape))
    # In the candidate of a GRU nothing is halved.
    product = _Product(xp, kind, xp.stack([(each * scale).swapaxes(1, 2) for each in w["state"]]), batch)
    projection = xp.stack([part["projection"].of(parameters).T for part in parts]) if kind.projection else None
    work = xp.empty((kind.directions, batch, kind.size), dtype=gates.dtype)
    for t in range(time):
        a, out, before_h, before_c = gates[:, :, t], kept.states[:, t], h, c
        from_state = product(h[:, None])
        a += bias
        if kind.mode == "lstm":
            c = kept.cells[:, t]
            a += from_state
            xp.tanh(a, out=a)
            for sigmoids in (a[:, :2], a[:, 3]):
                sigmoids *= 0.5
                sigmoids += 0.5
            _lstm_step(xp, kind, a, before_c, c, out, work, projection)
        elif kind.mode == "gru":
            _gru_step(xp, a, from_state, h, kept.cells[:, t], out, work, behind)
        else:
            a += from_state  # ``a`` is ``out``
            if kind.mode == "rnn_tanh":
                xp.tanh(a, out=a)
            else:
                xp.maximum(a, 0.0, out=a)
        h = out
        if counts is not None:
            h[...] = before_h + counts[t] * (h - before_h)
            if c is not None:
                c[...] = before_c + counts[t] * (c - before_c)
    return c


def _lstm_step(xp: Any, kind: _Kind, a: Any, before: Any, cell: Any, out: Any, work: Any, projection: Any) -> None:
    """Fill ``cell`` and ``out`` from the gates."""
    xp.multiply(a[:, 1], before, out=cell)
    xp.multiply(a[:, 0], a[:, 2], out=work)
    cell += work
    if kind.clip is not None:
        low, high = kind.clip
        if kind.clip_nan:
            cell[...] = xp.fmin(xp.fmax(cell, low), high)
        else:
            xp.clip(cell, low, high, out=cell)
    xp.tanh(cell, out=work)
    if projection is None:
        xp.multiply(a[:, 3], work, out=out)
    else:
        work *= a[:, 3]
        xp.matmul(work, projection, out=out)


def _gru_step(xp: Any, a: Any, from_state: Any, h: Any, cell: Any, out: Any, work: Any, behind: Any) -> None:
    """Finish the gates and fill ``cell``, the candidate's part from the state, and ``out``."""
    gates, candidate = a[:, :2], a[:, 2]
    gates += from_state[:, :2]
    xp.tanh(gates, out=gates)
    gates *= 0.5
    gates += 0.5
    xp.add(from_state[:, 2], behind, out=cell)
    xp.multiply(a[:, 0], cell, out=work)
    candidate += work
    xp.tanh(candidate, out=candidate)
    xp.subtract(h, candidate, out=out)
    out *= a[:, 1]
    out += candidate


def _run(xp: Any, kind: _Kind, data: Any, parameters: Any, state: Any, cell: Any, lengths: Any, rng: Any, reserve: Any
         ) -> tuple[Any, Any, Any]:
    """Output, last states and last cells (None without); fills ``reserve``, what is kept. Dropout with ``rng``."""
    time, batch, inputs = data.shape
    counts = None if lengths is None else _counts(xp, time, lengths, data.dtype)
    d, x, last_h, last_c = kind.directions, data, [], []
    for layer, (parts, kept) in enumerate(zip(_parts(kind, inputs), _views(kind, reserve, time, batch))):
        own = slice(layer * d, (layer + 1) * d)
        c = _layer(xp, kind, parts, parameters, _ahead(xp, kind, x, lengths), state[own],
                   None if cell is None else cell[own], kept, counts)
        last_h.append(kept.states[:, time - 1] if time else state[own])
        last_c.append(c)
        y = kept.states if counts is None else kept.states * counts
        x = _together(xp, y, lengths)
        if kept.mask.size:
            if rng is None:
                kept.mask[...] = 1.0
            else:
                kept.mask[...] = (rng.random(x.shape, dtype=xp.float32) >= kind.p) / (1.0 - kind.p)
                x = x * kept.mask
    return x, xp.concatenate(last_h), xp.concatenate(last_c) if kind.mode == "lstm" else None


# ----------------------------------------------------------------------------------------------- the operator


def _arguments(*, mode, use_sequence_length):
    return ("data", "parameters", "state", *(("state_cell",) if mode == "lstm" else ()),
            *(("sequence_length",) if use_sequence_length else ()))


def _outputs(*, mode):
    return ("output", "state_output", *(("statecell_output",) if mode == "lstm" else ()), "reserve")


@declare(name="RNN", aliases=("_npx_rnn",), random=True, mode=True, arguments=_arguments, outputs=_outputs,
         visible=lambda *, mode, state_outputs: (3 if mode == "lstm" else 2) if state_outputs else 1)
def rnn(data, parameters, state, state_cell, sequence_length, *, state_size: int, num_layers: int,
        bidirectional: bool = False, mode: Mode, p: float = 0.0, state_outputs: bool = False,
        projection_size: int | None = None, lstm_state_clip_min: float | None = None,
        lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False,
        use_sequence_length: bool = False):
    """Recurrent layers, one on top of the other.

    Parameters
    ----------
    data : array of shape (time, batch, inputs)
        What the first layer reads.
    parameters : array of one axis
        For each layer and direction the weights of the input, of the state, and of the projection if there is one;
        then, in the same order, two vectors of biases each. Gates are rows: in, forget, candidate, out of an LSTM,
        reset, update, candidate of a GRU.
    state, state_cell : arrays of shape (num_layers * directions, batch, state_size)
        Where the layers start; cells only in the mode ``lstm``. With projections, ``state`` has ``projection_size``
        features.
    sequence_length : array of shape (batch,)
        With ``use_sequence_length``: how many steps of each sample count. Outputs behind them are 0, the last states
        are those at the end, and the second direction begins there.
    p : float
        Dropout between layers, when training.
    state_outputs : bool
        Whether the last states are outputs too.
    lstm_state_clip_min, lstm_state_clip_max : float
        Limits of the cells' states; with ``lstm_state_clip_nan`` they replace NaN as well.

    The output has the shape (time, batch, directions * state_size). The cells are those of S. Hochreiter,
    J. Schmidhuber, Long Short-Term Memory, 1997, with the projection of H. Sak et al., arXiv:1402.1128, and of
    K. Cho et al., arXiv:1406.1078, where the reset gate acts behind the matrix product, as in cuDNN.
    """


@rnn.fill
def rnn_fill(ins, outs, **attrs):
    data = ins[0]
    if data is None:
        return ins
    if len(data) != 3:
        raise ShapeError(f"data: expected shape (time, batch, inputs), got {show(data)}")
    kind = _kind(**attrs)
    rows = kind.layers * kind.directions
    found = [data, (_count(kind, data[2]),), (rows, data[1], kind.out)]
    if kind.mode == "lstm":
        found.append((rows, data[1], kind.size))
    if kind.lengths:
        found.append((data[1],))
    return found


@rnn.infer
def rnn_infer(data, parameters, state, *rest, **attrs):
    kind = _kind(**attrs)
    cells = list(rest[:1]) if kind.mode == "lstm" else []
    return [(data[0], data[1], kind.directions * kind.out), state, *cells, (_reserve_size(kind, data[0], data[1]),)]


@rnn.types
def rnn_types(ins, outs, *, use_sequence_length):
    count = len(ins) - use_sequence_length
    one = floating([*ins[:count], *outs[:-1]])
    inner = as_dtype("float32") if one is not None and one.itemsize < 4 else one
    return [one] * count + [each or as_dtype("int32") for each in ins[count:]], [one] * (len(outs) - 1) + [inner]


def _unpacked(kind: _Kind, arrays: Any) -> tuple[Any, ...]:
    """data, parameters, state, cells or None, lengths or None."""
    data, parameters, state, *rest = arrays
    cell = wide(rest[0]) if kind.mode == "lstm" else None
    return (wide(data), wide(parameters), wide(state), cell,
            rest[-1].astype("int64") if kind.lengths else None)


def _target(xp: Any, out: Any, shape: Shape, dtype: Any) -> Any:
    """The array to write a result to, the caller's if it can be."""
    fits = out is not None and out.dtype == dtype and out.flags.c_contiguous
    return out if fits else xp.empty(shape, dtype=dtype)


def _given(found: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """The results, in the caller's arrays if there are any."""
    if out is None:
        return found
    for target, value in zip(out, found):
        if target is not value:
            target[...] = value
    return out


@rnn.kernel()
def rnn_xp(xp, *arrays, is_train, rng, out=None, **attrs):
    kind = _kind(**attrs)
    data, parameters, state, cell, lengths = _unpacked(kind, arrays)
    size = _reserve_size(kind, *data.shape[:2])
    reserve = _target(xp, None if out is None else out[-1], (size,), data.dtype)
    y, last, cells = _run(xp, kind, data, parameters, state, cell, lengths, rng if is_train else None, reserve)
    return _given((y, last, *(() if cells is None else (cells,)), reserve), out)


@rnn.grad
def rnn_grad(g, ins, outs, **attrs):
    # What was kept is right in every mode: without training the masks are ones.
    heads = [ops.zeros_like(out) if each is None else each for each, out in zip(g[:-1], outs[:-1])]
    found = ops._backward_RNN(*heads, *ins, outs[-1], **attrs)
    return (*found, None) if attrs["use_sequence_length"] else found


# ---------------------------------------------------------------------------------------------- backward


def _backward_arguments(*, mode, use_sequence_length):
    return (*(f"g_{name}" for name in _outputs(mode=mode)[:-1]),
            *_arguments(mode=mode, use_sequence_length=use_sequence_length), "reserve")


@declare(name="_backward_RNN", arguments=_backward_arguments,
         outputs=lambda *, mode: _arguments(mode=mode, use_sequence_length=False))
def backward_rnn(g_output, g_state_output, g_statecell_output, data, parameters, state, state_cell, sequence_length,
                 reserve, *, state_size: int, num_layers: int, bidirectional: bool = False, mode: Mode,
                 p: float = 0.0, state_outputs: bool = False, projection_size: int | None = None,
                 lstm_state_clip_min: float | None = None, lstm_state_clip_max: float | None = None,
                 lstm_state_clip_nan: bool = False, use_sequence_length: bool = False):
    """The gradient of ``RNN``; ``reserve`` is what it kept."""


def _split(mode: str, arrays: Any) -> tuple[list[Any], list[Any], Any]:
    """Gradients of the outputs, the inputs, and what was kept."""
    heads = 3 if mode == "lstm" else 2
    return list(arrays[:heads]), list(arrays[heads:-1]), arrays[-1]


@backward_rnn.infer
def backward_rnn_infer(*shapes, **attrs):
    heads, ins, reserve = _split(attrs["mode"], shapes)
    expected = rnn_infer(*ins, **attrs)
    if [*heads, reserve] != expected or rnn_fill(ins, [], **attrs) != ins:
        raise ShapeError(f"expected the shapes of RNN, {', '.join(map(show, expected))}, "
                         f"got {', '.join(map(show, [*heads, reserve]))}")
    return ins[:len(ins) - attrs["use_sequence_length"]]


@backward_rnn.types
def backward_rnn_types(ins, outs, *, mode, use_sequence_length):
    heads, inputs, reserve = _split(mode, ins)
    found, kept = rnn_types(inputs, [common_dtype([*heads, *outs]), reserve], use_sequence_length=use_sequence_length)
    return [found[0]] * len(heads) + found + kept[1:], [found[0]] * len(outs)


@backward_rnn.kernel()
def backward_rnn_xp(xp, *arrays, out=None, **attrs):
    kind = _kind(**attrs)
    heads, ins, reserve = _split(kind.mode, arrays)
    data, parameters, state, cell, lengths = _unpacked(kind, ins)
    heads = [wide(g) for g in heads]
    time, batch, inputs = data.shape
    counts = None if lengths is None else _counts(xp, time, lengths, data.dtype)
    layers = _views(kind, reserve, time, batch)
    d, dy = kind.directions, heads[0]
    d_parameters = _target(xp, None if out is None else out[1], parameters.shape, parameters.dtype)
    d_state = xp.empty_like(state)
    d_cell = None if cell is None else xp.empty_like(cell)
    for layer in reversed(range(kind.layers)):
        parts, kept = _parts(kind, inputs)[layer], layers[layer]
        if kept.mask.size:
            dy = dy * kept.mask
        dy_each = _ahead_back(xp, kind, dy, lengths)
        if counts is not None:
            dy_each = dy_each * counts
        x = data if layer == 0 else _layer_output(xp, layers[layer - 1], counts, lengths)
        own = slice(layer * d, (layer + 1) * d)
        start = (state[own], None if cell is None else cell[own])
        ends = (heads[1][own], None if cell is None else heads[2][own])
        da, db, dh, dc, d_shown = _layer_back(xp, kind, parts, parameters, kept, start, dy_each, ends, counts)
        d_state[own] = dh
        if d_cell is not None:
            d_cell[own] = dc
        dx_each = _layer_products(xp, kind, parts, parameters, kept, _ahead(xp, kind, x, lengths), start[0], da, db,
                                  d_shown, d_parameters)
        dy = dx_each[0] if d == 1 else dx_each[0] + _turned(xp, dx_each[1], lengths)
    return _given((dy, d_parameters, d_state, *(() if d_cell is None else (d_cell,))), out)


def _layer_output(xp: Any, kept: _Kept, counts: Any, lengths: Any) -> Any:
    """What the layer above read."""
    y = _together(xp, kept.states if counts is None else kept.states * counts, lengths)
    return y * kept.mask if kept.mask.size else y


def _ahead_back(xp: Any, kind: _Kind, dy: Any, lengths: Any) -> Any:
    """(directions, time, batch, features) of a gradient with the directions' features side by side."""
    if kind.directions == 1:
        return xp.expand_dims(dy, 0)
    return xp.stack([dy[..., :kind.out], _turned(xp, dy[..., kind.out:], lengths)])


def _before(xp: Any, first: Any, each: Any) -> Any:
    """States (direction, time, batch, features) before each step, from those after and the first."""
    found = _room(xp, "before", each.shape, each.dtype)
    found[:, :1] = first[:, None][:, :each.shape[1]]
    found[:, 1:] = each[:, :-1]
    return found


def _layer_back(xp: Any, kind: _Kind, parts: list[dict[str, _Part]], parameters: Any, kept: _Kept,
                start: tuple[Any, Any], dy: Any, ends: tuple[Any, Any], counts: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Gradients of what the gates' functions are applied to, by input and by state; of the first states and cells;
    of what is projected."""
    directions, time, batch, _ = dy.shape
    db, extra = _slopes(xp, kind, kept, start)
    product = _Product(xp, kind, xp.stack([_of_gates(kind, part["state"], parameters) for part in parts]), batch)
    projection = xp.stack([part["projection"].of(parameters) for part in parts]) if kind.projection else None
    d_shown = xp.empty_like(dy) if kind.projection else None
    inside = None if kind.clip is None else (kept.cells > kind.clip[0]) & (kept.cells < kind.clip[1])
    dh = ends[0].copy()
    dc = None if ends[1] is None else ends[1].copy()
    work = xp.empty((directions, batch, kind.size), dtype=dy.dtype)
    for t in reversed(range(time)):
        dh += dy[:, t]
        past, rest = dh, None
        if counts is not None:  # behind its end a sample's state is handed on
            past = dh * counts[t]
            rest = dh - past, None if dc is None else dc * (1.0 - counts[t])
            if dc is not None:
                dc *= counts[t]
        if d_shown is not None:
            d_shown[:, t] = past
            past = xp.matmul(past, projection)
        step = db[:, :, t]
        if kind.mode == "lstm":
            xp.multiply(past, extra[:, t], out=work)
            dc += work
            if inside is not None:
                dc *= inside[:, t]
            candidates, shown = step[:, :3], step[:, 3]
            candidates *= dc[:, None]
            shown *= past
            dc *= kept.gates[:, 1, t]
        else:
            step *= past[:, None]
        if kind.mode == "gru":
            xp.multiply(past, kept.gates[:, 1, t], out=work)
            extra[:, t] *= past
        found = product(step)
        if kind.gates > 1:
            found.sum(axis=1, out=dh)
        else:
            dh[...] = found[:, 0]
        if kind.mode == "gru":
            dh += work
        if rest is not None:
            dh += rest[0]
            if dc is not None:
                dc += rest[1]
    da = xp.concatenate([db[:, :2], extra[:, None]], axis=1) if kind.mode == "gru" else db
    return da, db, dh, dc, d_shown


def _slopes(xp: Any, kind: _Kind, kept: _Kept, start: tuple[Any, Any]) -> tuple[Any, Any]:
    """For all steps what is multiplied by gradients to those of what the gates' functions are applied to.

    The first is (direction, gate, time, batch, features). In an LSTM it is for the gradient of the cells, of the out
    gate for that of the output, and the second takes one from output to cells. In a GRU it is by state, and the second
    is for the candidate by input.
    """
    shape = kept.states.shape[:3]
    extra: Any = None
    slopes = _room(xp, "slopes", (shape[0], kind.gates, *shape[1:], kind.size), kept.states.dtype)
    if kind.gates > 1:
        extra = _room(xp, "extra", (*shape, kind.size), slopes.dtype)
    before: Any = _before(xp, start[1], kept.cells) if kind.mode == "lstm" else (
        _before(xp, start[0], kept.states) if kind.mode == "gru" else None)

    def work(steps: slice) -> None:
        part = slopes[:, :, steps]
        if kind.mode == "lstm":
            _lstm_slopes(xp, kept.gates[:, :, steps], kept.cells[:, steps], before[:, steps], part, extra[:, steps])
        elif kind.mode == "gru":
            _gru_slopes(xp, kept.gates[:, :, steps], kept.cells[:, steps], before[:, steps], part, extra[:, steps])
        elif kind.mode == "rnn_tanh":
            y = kept.states[:, steps]
            xp.multiply(y, y, out=part[:, 0])
            xp.subtract(1.0, part, out=part)
        else:
            part[:, 0] = kept.states[:, steps] > 0

    by_rows(xp, slopes.transpose(2, 0, 1, 3, 4), work)
    return slopes, extra


def _lstm_slopes(xp: Any, a: Any, cells: Any, before: Any, slopes: Any, extra: Any) -> None:
    enter, candidate, leave = a[:, 0], a[:, 2], a[:, 3]
    xp.subtract(1.0, a, out=slopes)
    slopes *= a
    slopes[:, 0] *= candidate
    slopes[:, 1] *= before
    xp.multiply(candidate, candidate, out=slopes[:, 2])
    xp.subtract(1.0, slopes[:, 2], out=slopes[:, 2])
    slopes[:, 2] *= enter
    shown = xp.tanh(cells, out=extra)
    slopes[:, 3] *= shown
    shown *= shown
    xp.subtract(1.0, extra, out=extra)
    extra *= leave


def _gru_slopes(xp: Any, a: Any, cells: Any, before: Any, slopes: Any, extra: Any) -> None:
    reset, candidate = a[:, 0], a[:, 2]
    xp.subtract(1.0, a, out=slopes)
    xp.multiply(candidate, candidate, out=extra)
    xp.subtract(1.0, extra, out=extra)
    extra *= slopes[:, 1]
    slopes[:, :2] *= a[:, :2]
    slopes[:, 0] *= cells
    slopes[:, 0] *= extra
    xp.subtract(before, candidate, out=slopes[:, 2])
    slopes[:, 1] *= slopes[:, 2]
    xp.multiply(extra, reset, out=slopes[:, 2])


def _layer_products(xp: Any, kind: _Kind, parts: list[dict[str, _Part]], parameters: Any, kept: _Kept, x: list[Any],
                    first: Any, da: Any, db: Any, d_shown: Any, d_parameters: Any) -> list[Any]:
    """Write the gradients of a layer's parameters, and return those of its input, a direction each."""
    found = []
    before = _before(xp, first, kept.states)
    for d, part in enumerate(parts):
        by_input = _rows_of_gates(xp, kind, "by input", da[d])
        by_state = by_input if da is db else _rows_of_gates(xp, kind, "by state", db[d])
        into = {name: each.of(d_parameters) for name, each in part.items()}
        xp.matmul(by_input.T, _rows(x[d]), out=into["input"])
        xp.matmul(by_state.T, _rows(before[d]), out=into["state"])
        ones = xp.ones((by_input.shape[0],), dtype=by_input.dtype)
        xp.matmul(ones, by_input, out=into["input_bias"])
        xp.matmul(ones, by_state, out=into["state_bias"])
        if d_shown is not None:
            shown = kept.gates[d, 3] * xp.tanh(kept.cells[d])
            xp.matmul(_rows(d_shown[d]).T, _rows(shown), out=into["projection"])
        found.append(xp.matmul(by_input, part["input"].of(parameters)).reshape(x[d].shape))
    return found


def _rows_of_gates(xp: Any, kind: _Kind, name: str, gates: Any) -> Any:
    """(time * batch, gates * features) of (gate, time, batch, features): one product then takes all gates."""
    count, time, batch, size = gates.shape
    found = _room(xp, name, (time, batch, count, size), gates.dtype)
    found[...] = gates.transpose(1, 2, 0, 3)
    return found.reshape(time * batch, count * size)

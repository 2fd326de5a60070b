"""RNN: stacked recurrent layers, of one direction or two, with all parameters in one vector.

The part of a layer that comes from its input is one matrix product over all steps; only the rest is a loop over time,
which runs both directions at once. Inside, the second direction has its time reversed, and arrays are laid out
(direction, time, batch, features). The gates of an LSTM are in the order in, forget, out, candidate, so that those
with a sigmoid lie side by side; in the parameters they are in, forget, candidate, out.
"""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

from ..errors import AttrError, ShapeError
from ..registry import declare, ops
from ..spec import Shape, as_dtype, common_dtype, show
from .norm import floating, wide

__all__: list[str] = []

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
Mode = Literal["gru", "lstm", "rnn_relu", "rnn_tanh"]


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
    def sigmoids(self) -> int:
        """How many of them, the first ones, are sigmoids."""
        return {"lstm": 3, "gru": 2}.get(self.mode, 0)

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


def _swapped(xp: Any, kind: _Kind, rows: Any) -> Any:
    """Rows of gates in the inner order from that of the parameters, or back."""
    if kind.mode != "lstm":
        return rows
    h = kind.size
    return xp.concatenate([rows[:2 * h], rows[3 * h:], rows[2 * h:3 * h]])


def _weights(xp: Any, kind: _Kind, parts: list[dict[str, _Part]], parameters: Any, halved: bool) -> dict[str, Any]:
    """Weights and biases of a layer, in the inner order, directions first.

    A sigmoid is ``tanh(x / 2) / 2 + 1 / 2``, one function for all gates of a cell; ``halved`` is what that takes.
    """
    found = {}
    for name in parts[0]:
        each = [part[name].of(parameters) for part in parts]
        if name == "projection":
            found[name] = xp.stack(each)
            continue
        each = [_swapped(xp, kind, rows) for rows in each]
        stacked = xp.stack(each)
        if halved and kind.sigmoids:
            stacked[:, :kind.sigmoids * kind.size] *= 0.5
        found[name] = stacked
    return found


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
    return [(d, time, batch, kind.gates * cell), (d, time, batch, cell), (d, time, batch, kind.out),
            (time, batch, d * kind.out if kind.p else 0)]


def _reserve_size(kind: _Kind, time: Any, batch: Any) -> Any:
    gates, cells, states, mask = (shape[-1] for shape in _kept_sizes(kind, time, batch))
    return (kind.layers * kind.directions * (gates + cells + states) + (kind.layers - 1) * mask) * time * batch


def _views(kind: _Kind, reserve: Any, time: int, batch: int) -> list[_Kept]:
    at, found = 0, []
    for layer in range(kind.layers):
        arrays = []
        for place, shape in enumerate(_kept_sizes(kind, time, batch)):
            if place == 3 and layer == kind.layers - 1:
                shape = (*shape[:2], 0)
            size = shape[0] * shape[1] * shape[2] * (shape[3] if len(shape) > 3 else 1)
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


def _layer(xp: Any, kind: _Kind, w: dict[str, Any], x: list[Any], h: Any, c: Any, kept: _Kept, counts: Any) -> Any:
    """Run a layer: fill ``kept`` and return the last states of its cells."""
    gates = kept.gates if kind.gates > 1 else kept.states
    time, batch = gates.shape[1:3]
    for d, source in enumerate(x):
        xp.matmul(_rows(source), w["input"][d].T, out=_rows(gates[d]))
    bias = w["input_bias"] + w["state_bias"]
    if kind.mode == "gru":  # the candidate's part from the state passes a gate, its bias included
        bias = xp.concatenate([bias[:, :2 * kind.size], w["input_bias"][:, 2 * kind.size:]], axis=1)
    gates += bias.reshape(kind.directions, 1, 1, -1)
    recurrent = xp.ascontiguousarray(w["state"].transpose(0, 2, 1))
    behind = xp.expand_dims(w["state_bias"][:, 2 * kind.size:], 1) if kind.mode == "gru" else None
    step = {"lstm": _lstm_step, "gru": _gru_step}.get(kind.mode, _plain_step)
    from_state = xp.empty((kind.directions, batch, kind.gates * kind.size), dtype=gates.dtype)
    for t in range(time):
        xp.matmul(h, recurrent, out=from_state)
        before_h, before_c = h, c
        h, c = step(xp, kind, w, gates[:, t], from_state, h, c, kept.cells[:, t], kept.states[:, t], behind)
        if counts is not None:
            h[...] = before_h + counts[t] * (h - before_h)
            if c is not None:
                c[...] = before_c + counts[t] * (c - before_c)
    return c


def _plain_step(xp: Any, kind: _Kind, w: Any, a: Any, from_state: Any, h: Any, c: Any, cell: Any, out: Any,
                behind: Any) -> tuple[Any, Any]:
    a += from_state
    if kind.mode == "rnn_tanh":
        xp.tanh(a, out=a)
    else:
        xp.maximum(a, 0.0, out=a)
    return out, None  # ``a`` is ``out``


def _lstm_step(xp: Any, kind: _Kind, w: Any, a: Any, from_state: Any, h: Any, c: Any, cell: Any, out: Any,
               behind: Any) -> tuple[Any, Any]:
    size = kind.size
    a += from_state
    xp.tanh(a, out=a)
    gates = a[..., :3 * size]
    gates *= 0.5
    gates += 0.5
    xp.multiply(a[..., size:2 * size], c, out=cell)
    cell += a[..., :size] * a[..., 3 * size:]
    if kind.clip is not None:
        low, high = kind.clip
        if kind.clip_nan:
            cell[...] = xp.fmin(xp.fmax(cell, low), high)
        else:
            xp.clip(cell, low, high, out=cell)
    shown = xp.tanh(cell)
    if kind.projection:
        shown *= a[..., 2 * size:3 * size]
        xp.matmul(shown, w["projection"].transpose(0, 2, 1), out=out)
    else:
        xp.multiply(a[..., 2 * size:3 * size], shown, out=out)
    return out, cell


def _gru_step(xp: Any, kind: _Kind, w: Any, a: Any, from_state: Any, h: Any, c: Any, cell: Any, out: Any,
              behind: Any) -> tuple[Any, Any]:
    size = kind.size
    gates, candidate = a[..., :2 * size], a[..., 2 * size:]
    gates += from_state[..., :2 * size]
    xp.tanh(gates, out=gates)
    gates *= 0.5
    gates += 0.5
    xp.add(from_state[..., 2 * size:], behind, out=cell)
    candidate += a[..., :size] * cell
    xp.tanh(candidate, out=candidate)
    xp.subtract(h, candidate, out=out)
    out *= a[..., size:2 * size]
    out += candidate
    return out, None


def _run(xp: Any, kind: _Kind, data: Any, parameters: Any, state: Any, cell: Any, lengths: Any, rng: Any
         ) -> tuple[Any, Any, Any, Any]:
    """Output, last states, last cells (None without) and what is kept; dropout with ``rng``."""
    time, batch, inputs = data.shape
    reserve = xp.empty((_reserve_size(kind, time, batch),), dtype=data.dtype)
    counts = None if lengths is None else _counts(xp, time, lengths, data.dtype)
    d, x, last_h, last_c = kind.directions, data, [], []
    for layer, (parts, kept) in enumerate(zip(_parts(kind, inputs), _views(kind, reserve, time, batch))):
        w = _weights(xp, kind, parts, parameters, halved=True)
        own = slice(layer * d, (layer + 1) * d)
        c = _layer(xp, kind, w, _ahead(xp, kind, x, lengths), state[own], None if cell is None else cell[own], kept,
                   counts)
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
    return x, xp.concatenate(last_h), xp.concatenate(last_c) if kind.mode == "lstm" else None, reserve


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


@rnn.kernel()
def rnn_xp(xp, *arrays, is_train, rng, **attrs):
    kind = _kind(**attrs)
    data, parameters, state, cell, lengths = _unpacked(kind, arrays)
    y, last, cells, reserve = _run(xp, kind, data, parameters, state, cell, lengths, rng if is_train else None)
    return (y, last, *(() if cells is None else (cells,)), reserve)


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
def backward_rnn_xp(xp, *arrays, **attrs):
    kind = _kind(**attrs)
    heads, ins, reserve = _split(kind.mode, arrays)
    data, parameters, state, cell, lengths = _unpacked(kind, ins)
    heads = [wide(g) for g in heads]
    time, batch, inputs = data.shape
    counts = None if lengths is None else _counts(xp, time, lengths, data.dtype)
    layers = _views(kind, reserve, time, batch)
    d, dy = kind.directions, heads[0]
    d_parameters = xp.zeros_like(parameters)
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
        w = _weights(xp, kind, parts, parameters, halved=False)
        start = (state[own], None if cell is None else cell[own])
        ends = (heads[1][own], None if cell is None else heads[2][own])
        da, db, dh, dc, d_shown = _layer_back(xp, kind, w, kept, start, dy_each, ends, counts)
        d_state[own] = dh
        if d_cell is not None:
            d_cell[own] = dc
        dx_each = _layer_products(xp, kind, w, parts, kept, _ahead(xp, kind, x, lengths), start[0], da, db, d_shown,
                                  d_parameters)
        dy = dx_each[0] if d == 1 else dx_each[0] + _turned(xp, dx_each[1], lengths)
    return (dy, d_parameters, d_state, *(() if d_cell is None else (d_cell,)))


def _layer_output(xp: Any, kept: _Kept, counts: Any, lengths: Any) -> Any:
    """What the layer above read."""
    y = _together(xp, kept.states if counts is None else kept.states * counts, lengths)
    return y * kept.mask if kept.mask.size else y


def _ahead_back(xp: Any, kind: _Kind, dy: Any, lengths: Any) -> Any:
    """(directions, time, batch, features) of a gradient with the directions' features side by side."""
    if kind.directions == 1:
        return xp.expand_dims(dy, 0)
    return xp.stack([dy[..., :kind.out], _turned(xp, dy[..., kind.out:], lengths)])


def _layer_back(xp: Any, kind: _Kind, w: dict[str, Any], kept: _Kept, start: tuple[Any, Any], dy: Any,
                ends: tuple[Any, Any], counts: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Gradients of what the gates' functions are applied to, by input and by state; of the first states and cells;
    of what is projected."""
    directions, time, batch, _ = dy.shape
    da = xp.empty((directions, time, batch, kind.gates * kind.size), dtype=dy.dtype)
    db = xp.empty_like(da) if kind.mode == "gru" else da
    d_shown = xp.empty_like(dy) if kind.projection else None
    dh, dc = ends
    for t in reversed(range(time)):
        h, c = (kept.states[:, t - 1], kept.cells[:, t - 1]) if t else start
        total = dh + dy[:, t]
        past, dc_before = total, dc
        if counts is not None:  # behind its end a sample's state is handed on
            past = total * counts[t]
            dc = None if dc is None else dc * counts[t]
        if d_shown is not None:
            d_shown[:, t] = past
        if kind.mode == "lstm":
            dc = _lstm_back(xp, kind, w, kept.gates[:, t], kept.cells[:, t], c, past, dc, da[:, t])
            direct = None
        elif kind.mode == "gru":
            direct = _gru_back(xp, kind, kept.gates[:, t], kept.cells[:, t], h, past, da[:, t], db[:, t])
        else:
            y = kept.states[:, t]
            xp.multiply(past, 1.0 - y * y if kind.mode == "rnn_tanh" else y > 0, out=da[:, t])
            direct = None
        dh = xp.matmul(db[:, t], w["state"])
        if direct is not None:
            dh += direct
        if counts is not None:
            dh += total - past
            if dc is not None:
                dc += dc_before * (1.0 - counts[t])
    return da, db, dh, dc, d_shown


def _lstm_back(xp: Any, kind: _Kind, w: dict[str, Any], a: Any, cell: Any, before: Any, dh: Any, dc: Any, da: Any
               ) -> Any:
    """Fill ``da`` and return the gradient of the cells before."""
    size = kind.size
    if kind.projection:
        dh = xp.matmul(dh, w["projection"])
    gates, candidate = a[..., :3 * size], a[..., 3 * size:]
    shown = xp.tanh(cell)
    dc = dc + dh * a[..., 2 * size:3 * size] * (1.0 - shown * shown)
    if kind.clip is not None:
        dc = dc * ((cell > kind.clip[0]) & (cell < kind.clip[1]))
    xp.subtract(1.0, gates, out=da[..., :3 * size])
    da[..., :3 * size] *= gates
    da[..., :size] *= dc * candidate
    da[..., size:2 * size] *= dc * before
    da[..., 2 * size:3 * size] *= dh * shown
    xp.multiply(dc * a[..., :size], 1.0 - candidate * candidate, out=da[..., 3 * size:])
    return dc * a[..., size:2 * size]


def _gru_back(xp: Any, kind: _Kind, a: Any, cell: Any, h: Any, dh: Any, da: Any, db: Any) -> Any:
    """Fill ``da`` and ``db``, the gradients by input and by state, and return what goes to the state directly."""
    size = kind.size
    reset, update, candidate = a[..., :size], a[..., size:2 * size], a[..., 2 * size:]
    d_candidate = dh * (1.0 - update) * (1.0 - candidate * candidate)
    da[..., :size] = d_candidate * cell * reset * (1.0 - reset)
    da[..., size:2 * size] = dh * (h - candidate) * update * (1.0 - update)
    da[..., 2 * size:] = d_candidate
    db[..., :2 * size] = da[..., :2 * size]
    db[..., 2 * size:] = d_candidate * reset
    return dh * update


def _layer_products(xp: Any, kind: _Kind, w: dict[str, Any], parts: list[dict[str, _Part]], kept: _Kept, x: list[Any],
                    first: Any, da: Any, db: Any, d_shown: Any, d_parameters: Any) -> list[Any]:
    """Write the gradients of a layer's parameters, and return those of its input, a direction each."""
    found = []
    for d, part in enumerate(parts):
        by_input, by_state = _rows(da[d]), _rows(db[d])
        before = _rows(xp.concatenate([first[d:d + 1], kept.states[d]])[:-1])
        gradients = {"input": by_input.T @ _rows(x[d]), "state": by_state.T @ before,
                     "input_bias": xp.sum(by_input, axis=0), "state_bias": xp.sum(by_state, axis=0)}
        for name, value in gradients.items():
            part[name].of(d_parameters)[...] = _swapped(xp, kind, value)
        if d_shown is not None:
            shown = kept.gates[d, ..., 2 * kind.size:3 * kind.size] * xp.tanh(kept.cells[d])
            part["projection"].of(d_parameters)[...] = _rows(d_shown[d]).T @ _rows(shown)
        found.append((by_input @ w["input"][d]).reshape(x[d].shape))
    return found

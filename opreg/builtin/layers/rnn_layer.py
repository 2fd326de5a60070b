"""A recurrent layer by functions of an array module: the loop over time, for both directions at once.

The contribution of the layer's input is one matrix product over all steps, and so are the gradients of its parameters
and input; only the rest is a loop over time. Factors of the gradient's steps are computed in advance, for all steps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.host_memory import OwnWorkspace
from ...core.threads import by_rows
from ...typing import Array, ArrayModule
from ..matrices.dense import product
from .rnn_parts import Kind, Part, Residuals, gate_view

__all__ = ["backward", "forward", "products", "rows_of", "scratch"]

# OpenBLAS computes a product of at most this many multiplications without threads and without repacking the matrices; a
# step's product, cut into such parts, takes half as long. Narrower parts gain nothing.
_SMALL, _NARROW = 1_000_000, 64

# Bytes of temporaries on the host that are cached for the next call, since fresh memory costs as much as the
# computation.
_KEPT = 1 << 24


_WORKSPACE = OwnWorkspace()


def scratch(xp: ArrayModule, name: str, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Memory for a temporary, valid until the next call with this name."""
    if xp.__name__ != "numpy" or math.prod(shape) * dtype.itemsize > _KEPT:
        return xp.empty(shape, dtype=dtype)
    return _WORKSPACE.array(name, shape, dtype)


def _halves(xp: ArrayModule, kind: Kind, dtype: np.dtype) -> Array:
    """Factors of the gates' arguments, so that one function serves all gates.

    A sigmoid is ``tanh(x / 2) / 2 + 1 / 2``.
    """
    scale = xp.ones((kind.gates, 1, 1), dtype=dtype)
    if kind.gates > 1:
        scale[:2] = 0.5
    if kind.mode == "lstm":
        scale[3:] = 0.5
    return scale


def _columns(kind: Kind, batch: int, features: int, columns: int) -> int:
    """Number of columns of a step's product that are computed at a time."""
    width = columns
    while width % 2 == 0 and width >= 2 * _NARROW and batch * features * width > _SMALL:
        width //= 2
    return width if batch * features * width <= _SMALL else columns


class _Product:
    """``x @ matrix`` for each direction and gate, called repeatedly.

    Parameters
    ----------
    matrices : array of shape (directions, gates, features, columns)
    batch : int
        Rows of ``x``, which has the shape (directions, gates or 1, batch, features).
    """

    def __init__(self, xp: ArrayModule, kind: Kind, matrices: Array, batch: int):
        directions, gates, features, columns = matrices.shape
        width = _columns(kind, batch, features, columns)
        cut = matrices.reshape(directions, gates, features, columns // width, width).transpose(0, 1, 3, 2, 4)
        self.xp, self.matrices = xp, xp.ascontiguousarray(cut)
        self.result = xp.empty((directions, gates, batch, columns), dtype=matrices.dtype)
        self.cut = self.result.reshape(directions, gates, batch, columns // width, width).transpose(0, 1, 3, 2, 4)
        self.multiply = xp.matmul if batch * features * width <= _SMALL else functools.partial(product, xp)

    def __call__(self, x: Array) -> Array:
        """The products, (directions, gates, batch, columns), in memory that the next call overwrites."""
        self.multiply(x[:, :, None], self.matrices, out=self.cut)
        return self.result


# ----------------------------------------------------------------------------------------------- forward


def rows_of(x: Array) -> Array:
    """(time, batch, features) as a matrix."""
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])


def forward(xp: ArrayModule, kind: Kind, parts: list[dict[str, Part]], parameters: Array, x: list[Array],
            residuals: Residuals, counts: Array | None) -> None:
    """Run a layer: fill the arrays in ``residuals``, which already hold the initial states and cells.

    ``x`` is the input as each direction reads it. ``counts``, if samples have lengths, is 1 at the steps of a sample
    and 0 after its end.
    """
    gates = residuals.gates if kind.gates > 1 else residuals.states[:, None, 1:]
    time, batch = gates.shape[2:4]
    scale = _halves(xp, kind, gates.dtype)
    w = {name: [gate_view(kind, part[name], parameters) for part in parts]
         for name in ("input", "state", "input_bias", "state_bias")}
    for d, source in enumerate(x):
        product(xp, rows_of(source), (w["input"][d] * scale).swapaxes(1, 2),
                out=gates[d].reshape(kind.gates, time * batch, kind.size))
    input_bias, state_bias = (xp.expand_dims(xp.stack(w[name]), 2) for name in ("input_bias", "state_bias"))
    behind = state_bias[:, 2].copy() if kind.mode == "gru" else None
    if behind is not None:  # a gate multiplies the part of the candidate that comes from the state, with its bias
        state_bias[:, 2] = 0.0
    # The bias has the full size: an addition that reads no element again for every row is faster.
    shape = kind.directions, kind.gates, batch, kind.size
    bias = xp.ascontiguousarray(xp.broadcast_to((input_bias + state_bias) * scale, shape))
    # In the candidate of a GRU nothing is halved.
    multiply_step = _Product(xp, kind, xp.stack([(matrix * scale).swapaxes(1, 2) for matrix in w["state"]]), batch)
    projection = xp.stack([part["projection"].of(parameters).T for part in parts]) if kind.projection else None
    work = xp.empty((kind.directions, batch, kind.size), dtype=gates.dtype)
    states, cells = residuals.states, residuals.cells
    for t in range(time):
        a, h, out, c, cell = gates[:, :, t], *(array[:, t + i] for array in (states, cells) for i in (0, 1))
        from_state = multiply_step(h[:, None])
        a += bias
        if kind.mode == "lstm":
            a += from_state
            xp.tanh(a, out=a)
            for sigmoids in (a[:, :2], a[:, 3]):
                sigmoids *= 0.5
                sigmoids += 0.5
            _lstm_step(xp, kind, a, c, cell, out, work, projection)
        elif kind.mode == "gru":
            _gru_step(xp, a, from_state, h, cell, out, work, behind)
        else:
            a += from_state  # ``a`` is ``out``
            if kind.mode == "rnn_tanh":
                xp.tanh(a, out=a)
            else:
                xp.maximum(a, 0.0, out=a)
        if counts is not None:
            out[...] = h + counts[t] * (out - h)
            if kind.mode == "lstm":
                cell[...] = c + counts[t] * (cell - c)


def _lstm_step(xp: ArrayModule, kind: Kind, a: Array, before: Array, cell: Array, out: Array, work: Array,
               projection: Array | None) -> None:
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
        product(xp, work, projection, out=out)


def _gru_step(xp: ArrayModule, a: Array, from_state: Array, h: Array, cell: Array, out: Array, work: Array,
              behind: Array | None) -> None:
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


# ---------------------------------------------------------------------------------------------- backward


def backward(xp: ArrayModule, kind: Kind, parts: list[dict[str, Part]], parameters: Array, x: list[Array],
             residuals: Residuals, counts: Array | None, dy: Array, ends: tuple[Array, Array | None],
             d_parameters: Array, dx: Sequence[Array] | None) -> tuple[Array, Array | None]:
    """The gradients of a layer's first states and cells.

    Writes the gradients of the parameters to ``d_parameters``, and the gradient of the input, one array per direction,
    to ``dx`` unless that is None. ``dy`` is the gradient of the states, ``ends`` the gradients of the last states and
    cells.
    """
    da, db, dh, dc, d_shown = _backward_through_time(xp, kind, parts, parameters, residuals, dy, ends, counts)
    products(xp, kind, parts, parameters, residuals, x, da, db, d_shown, d_parameters, dx)
    return dh, dc


def _backward_through_time(xp: ArrayModule, kind: Kind, parts: list[dict[str, Part]], parameters: Array,
                           residuals: Residuals, dy: Array, ends: tuple[Array, Array | None], counts: Array | None
                           ) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """Backward through time. Returns the gradients of the gates' pre-activations (the parts from the input, and the
    parts from the state), of the first states and cells, and of the states before projection."""
    directions, time, batch, _ = dy.shape
    db, extra = _slopes(xp, kind, residuals)
    multiply_step = _Product(xp, kind, xp.stack([gate_view(kind, part["state"], parameters) for part in parts]), batch)
    projection = xp.stack([part["projection"].of(parameters) for part in parts]) if kind.projection else None
    d_shown = xp.empty_like(dy) if kind.projection else None
    cells = residuals.cells[:, 1:]
    inside = None if kind.clip is None else (cells > kind.clip[0]) & (cells < kind.clip[1])
    dh = ends[0].copy()
    dc = None if ends[1] is None else ends[1].copy()
    work = xp.empty((directions, batch, kind.size), dtype=dy.dtype)
    for t in reversed(range(time)):
        dh += dy[:, t]
        past, rest = dh, None
        if counts is not None:  # after the end of a sequence, its state does not change
            past = dh * counts[t]
            rest = dh - past, None if dc is None else dc * (1.0 - counts[t])
            if dc is not None:
                dc *= counts[t]
        if d_shown is not None and projection is not None:
            d_shown[:, t] = past
            past = product(xp, past, projection)
        step = db[:, :, t]
        if kind.mode == "lstm":
            xp.multiply(past, extra[:, t], out=work)
            dc += work
            if inside is not None:
                dc *= inside[:, t]
            candidates, outputs = step[:, :3], step[:, 3]
            candidates *= dc[:, None]
            outputs *= past
            dc *= residuals.gates[:, 1, t]
        else:
            step *= past[:, None]
        if kind.mode == "gru":
            xp.multiply(past, residuals.gates[:, 1, t], out=work)
            extra[:, t] *= past
        from_step = multiply_step(step)
        if kind.gates > 1:
            from_step.sum(axis=1, out=dh)
        else:
            dh[...] = from_step[:, 0]
        if kind.mode == "gru":
            dh += work
        if rest is not None:
            dh += rest[0]
            if dc is not None:
                dc += rest[1]
    da = xp.concatenate([db[:, :2], extra[:, None]], axis=1) if kind.mode == "gru" else db
    return da, db, dh, dc, d_shown


def _slopes(xp: ArrayModule, kind: Kind, residuals: Residuals) -> tuple[Array, Array]:
    """Derivatives of all steps: factors that turn output gradients into gradients of the gates' arguments.

    The first array is (direction, gate, time, batch, features). In an LSTM its factors apply to the gradient of the
    cells, and those of the output gate to the gradient of the output; the second array turns the gradient of the
    output into that of the cells. In a GRU the first array is for the part from the state, and the second for the
    candidate's part from the input.
    """
    gates, before, states = residuals.gates, residuals.states[:, :-1], residuals.states[:, 1:]
    before_cells, cells = residuals.cells[:, :-1], residuals.cells[:, 1:]
    shape = states.shape[:3]
    extra: Any = None
    slopes = scratch(xp, "slopes", (shape[0], kind.gates, *shape[1:], kind.size), states.dtype)
    if kind.gates > 1:
        extra = scratch(xp, "extra", (*shape, kind.size), slopes.dtype)

    def work(steps: slice) -> None:
        part = slopes[:, :, steps]
        if kind.mode == "lstm":
            _lstm_slopes(xp, gates[:, :, steps], cells[:, steps], before_cells[:, steps], part, extra[:, steps])
        elif kind.mode == "gru":
            _gru_slopes(xp, gates[:, :, steps], cells[:, steps], before[:, steps], part, extra[:, steps])
        elif kind.mode == "rnn_tanh":
            y = states[:, steps]
            xp.multiply(y, y, out=part[:, 0])
            xp.subtract(1.0, part, out=part)
        else:
            part[:, 0] = states[:, steps] > 0

    by_rows(xp, slopes.transpose(2, 0, 1, 3, 4), work)
    return slopes, extra


def _lstm_slopes(xp: ArrayModule, a: Array, cells: Array, before: Array, slopes: Array, extra: Array) -> None:
    enter, candidate, leave = a[:, 0], a[:, 2], a[:, 3]
    xp.subtract(1.0, a, out=slopes)
    slopes *= a
    slopes[:, 0] *= candidate
    slopes[:, 1] *= before
    xp.multiply(candidate, candidate, out=slopes[:, 2])
    xp.subtract(1.0, slopes[:, 2], out=slopes[:, 2])
    slopes[:, 2] *= enter
    outputs = xp.tanh(cells, out=extra)
    slopes[:, 3] *= outputs
    outputs *= outputs
    xp.subtract(1.0, extra, out=extra)
    extra *= leave


def _gru_slopes(xp: ArrayModule, a: Array, cells: Array, before: Array, slopes: Array, extra: Array) -> None:
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


def products(xp: ArrayModule, kind: Kind, parts: list[dict[str, Part]], parameters: Array, residuals: Residuals,
             x: list[Array],
             da: Array, db: Array, d_shown: Array | None, d_parameters: Array, dx: Sequence[Array] | None) -> None:
    """Write the gradients of a layer's parameters and, unless ``dx`` is None, of its input."""
    for d, part in enumerate(parts):
        by_input = _rows_of_gates(xp, kind, "by input", da[d])
        by_state = by_input if da is db else _rows_of_gates(xp, kind, "by state", db[d])
        into = {name: piece.of(d_parameters) for name, piece in part.items()}
        product(xp, by_input.T, rows_of(x[d]), out=into["input"])
        product(xp, by_state.T, rows_of(residuals.states[d, :-1]), out=into["state"])
        ones = xp.ones((by_input.shape[0],), dtype=by_input.dtype)
        product(xp, ones, by_input, out=into["input_bias"])
        product(xp, ones, by_state, out=into["state_bias"])
        if d_shown is not None:
            outputs = residuals.gates[d, 3] * xp.tanh(residuals.cells[d, 1:])
            product(xp, rows_of(d_shown[d]).T, rows_of(outputs), out=into["projection"])
        if dx is not None:
            product(xp, by_input, part["input"].of(parameters), out=rows_of(dx[d]))


def _rows_of_gates(xp: ArrayModule, kind: Kind, name: str, gates: Array) -> Array:
    """(time * batch, gates * features) of (gate, time, batch, features): one product then takes all gates."""
    count, time, batch, size = gates.shape
    rows = scratch(xp, name, (time, batch, count, size), gates.dtype)
    rows[...] = gates.transpose(1, 2, 0, 3)
    return rows.reshape(time * batch, count * size)

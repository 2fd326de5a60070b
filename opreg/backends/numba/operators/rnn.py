"""RNN and its gradient, with layers compiled by numba."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from opreg.builtin.layers import rnn_layer
from opreg.builtin.layers.rnn import backward_rnn, rnn, run, run_back
from opreg.builtin.layers.rnn_layer import scratch
from opreg.builtin.layers.rnn_parts import Kind, Part, Residuals, gate_view, kind_of
from opreg.builtin.outputs import wide
from opreg.core.launch import Call, Rank
from opreg.core.op import Op
from opreg.core.threads import run as together
from opreg.typing import Array, ArrayModule

from .. import recurrent
from ..compiler import steps, unavailable
from ..values import FORMATS


def _temporary(direction: int) -> recurrent.Temporary:
    return lambda name, shape, dtype: scratch(np, f"{name} {direction}", shape, dtype)


def _direction_residuals(residuals: Residuals, direction: int) -> tuple[Array, Array, Array]:
    return residuals.gates[direction], residuals.cells[direction], residuals.states[direction]


def forward(xp: ArrayModule, kind: Kind, parts: Sequence[dict[str, Part]], parameters: Array, x: Sequence[Array],
            residuals: Residuals, counts: Array | None) -> None:
    """Run a layer, as ``rnn_layer.forward`` does."""
    directions = []
    for d, part in enumerate(parts):
        w_input, w_state, input_bias, state_bias = [gate_view(kind, part[name], parameters) for name in (
            "input", "state", "input_bias", "state_bias")]
        directions.append(recurrent.forward(kind.mode, np.ascontiguousarray(x[d]), w_input, w_state,
                                            (input_bias, state_bias), _direction_residuals(residuals, d),
                                            _temporary(d)))
    for stage in zip(*directions):
        together([call for calls in stage for call in calls], apart=True)


def backward(xp: ArrayModule, kind: Kind, parts: Sequence[dict[str, Part]], parameters: Array, x: Sequence[Array],
             residuals: Residuals, counts: Array | None, dy: Array, ends: tuple[Array, Array | None],
             d_parameters: Array, dx: Array | None) -> tuple[Array, Array | None]:
    """The gradient of a layer, as ``rnn_layer.backward`` computes it."""
    dc = None if ends[1] is None else ends[1].copy()
    gradients = [recurrent.backward(kind.mode, np.ascontiguousarray(dy[d]), gate_view(kind, part["input"], parameters),
                                    gate_view(kind, part["state"], parameters), _direction_residuals(residuals, d),
                                    ends[0][d], None if dc is None else dc[d], None if dx is None else dx[d],
                                    _temporary(d))
                 for d, part in enumerate(parts)]
    together([call for direction in gradients for call in direction.calls], apart=True)
    x = [np.ascontiguousarray(data) for data in x]
    calls: recurrent.Calls = []
    results: list[tuple[Array, Array]] = []
    for d, (part, direction) in enumerate(zip(parts, gradients)):
        into = {name: where.of(d_parameters) for name, where in part.items()}
        sums = direction.sums()
        results += [(into["input_bias"], sums[0]), (into["state_bias"], sums[-1])]
        if dx is not None and direction.dx is not None:
            results.append((dx[d], direction.dx))
        for name, gates, right in (("input", direction.by_input, x[d]),
                                   ("state", direction.by_state, residuals.states[d, :-1])):
            more, result = recurrent.weights(kind.mode, gates, right, into[name], name, _temporary(d))
            calls += more
            results.append((into[name], result))
    together(calls, apart=True)
    for target, value in results:
        if not np.may_share_memory(target, value):
            target[...] = value
    return np.stack([direction.dh for direction in gradients]), dc


def _declines(call: Call) -> str | None:
    """The reason why a call is left to the reference kernel, or None."""
    reason = unavailable(call)
    if reason is not None:
        return reason
    kind = kind_of(**call.attrs)
    if kind.lengths or kind.projection or kind.clip is not None:
        return "only layers without lengths, projections and limits"
    if any(array.size == 0 for array in call.ins):
        return "nothing to compute"
    if not all(array.flags.aligned and (array.ndim > 1 or array.flags.c_contiguous) for array in call.ins):
        return "parameters, or the residuals, are not contiguous"
    if not all(out is None or out.flags.writeable for out in call.outs):
        return "an output is read-only"
    compiled = wide(call.ins[0][:0]).dtype in FORMATS
    return None if compiled else f"dtype {call.ins[0].dtype}: functions are compiled for float32 and float64"


#: A function that computes a layer, such as ``forward`` or ``backward`` here.
Layer = Callable[..., tuple[Array, Array | None] | None]


def _attach(op: Op, part: str, compute: Callable[[Call, Layer], Callable[[], object]], layer: Layer, plain: Layer
            ) -> None:
    """Give an operator the kernel ``numba``; ``compute`` makes a step from a call and a function that computes a
    layer."""

    @op.kernel("numba", bound=True, accepts=_declines, rank=Rank.COMPILED)
    def rnn_numba(call: Call) -> list[Callable[[], object]]:
        function = recurrent.function(call.attrs["mode"], part, wide(call.ins[0][:0]).dtype)
        return steps(function, functools.partial(compute, call, layer), lambda: [compute(call, plain)])


def _forward(call: Call, layer: Layer) -> Callable[[], object]:
    return functools.partial(run, np, layer, call.ins, call.is_train, call.rng, call.places(), call.attrs)


def _backward(call: Call, layer: Layer) -> Callable[[], object]:
    return functools.partial(run_back, np, layer, call.ins, call.outs, call.attrs)


_attach(rnn, "forward", _forward, forward, rnn_layer.forward)
_attach(backward_rnn, "backward", _backward, backward, rnn_layer.backward)

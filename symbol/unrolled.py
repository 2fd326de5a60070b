"""Loops and branches of graphs, run by Python on arrays. Each operator of a body is applied eagerly."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.ndarray import control_flow as rounds
from opreg.ndarray.cached_op import CachedOp
from opreg.ndarray.ndarray import NDArray

from .symbol import Symbol

__all__ = ["UNROLLED"]


def _function(body: Symbol) -> Callable[[Sequence[NDArray]], list[NDArray]]:
    """A body as a function of arrays, whose operators autograd records."""
    call = CachedOp(body)

    def run(inputs: Sequence[NDArray]) -> list[NDArray]:
        outputs = call(*inputs)
        return outputs if isinstance(outputs, list) else [outputs]

    return run


def _unroll_foreach(op: Op, attrs: Attrs, ins: Sequence[NDArray]) -> list[NDArray]:
    data, states, captured = attrs["in_data_locs"], attrs["in_state_locs"], attrs["remain_locs"]
    body, count, last = _function(attrs["subgraphs"][0]), attrs["num_out_data"], len(data) + len(states)

    def step(slices: Sequence[NDArray], current: Sequence[NDArray]) -> tuple[list[NDArray], list[NDArray]]:
        placed = dict(zip((*data, *states, *captured), [*slices, *current, *ins[last:]]))
        results = body([placed[place] for place in range(len(placed))])
        return results[:count], results[count:]

    outputs, final = rounds.foreach(step, list(ins[:len(data)]), list(ins[len(data):last]))
    return [*outputs, *final]


def _unroll_while_loop(op: Op, attrs: Attrs, ins: Sequence[NDArray]) -> list[NDArray]:
    test, body = map(_function, attrs["subgraphs"])
    count, changing = attrs["num_out_data"], [attrs["func_input_locs"][place] for place in attrs["func_var_locs"]]

    def inputs(current: Sequence[NDArray], key: str) -> list[NDArray]:
        values = dict(zip(changing, current))
        return [values.get(place, ins[place]) for place in attrs[key]]

    def step(*current: NDArray) -> tuple[list[NDArray], list[NDArray]]:
        results = body(inputs(current, "func_input_locs"))
        return results[:count], results[count:]

    outputs, final = rounds.while_loop(lambda *current: test(inputs(current, "cond_input_locs"))[0], step,
                                       [ins[place] for place in changing], attrs["max_iterations"])
    if not outputs:
        shapes = op.infer_shapes([array.shape for array in ins], [], attrs)[1][:count]
        dtypes = op.infer_dtypes([array._data.dtype for array in ins], [], attrs)[1]
        ctx = ins[0].context
        outputs = [NDArray(ctx.run(ctx.xp.zeros, shape, dtype), ctx) for shape, dtype in zip(shapes, dtypes)]
    return [*outputs, *final]


def _unroll_cond(op: Op, attrs: Attrs, ins: Sequence[NDArray]) -> list[NDArray]:
    places = attrs["cond_input_locs"], attrs["then_input_locs"], attrs["else_input_locs"]
    test, taken, not_taken = [functools.partial(_function(body), [ins[place] for place in read])
                          for body, read in zip(attrs["subgraphs"], places)]
    return rounds.cond(test()[0], taken, not_taken)


#: Functions by the operator's name. Each takes the operator, its attributes and its inputs, and returns the visible
#: outputs.
UNROLLED: dict[str, Callable[[Op, Attrs, Sequence[NDArray]], list[NDArray]]] = {
    "_foreach": _unroll_foreach, "_while_loop": _unroll_while_loop, "_cond": _unroll_cond}

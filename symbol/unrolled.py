"""Loops and branches of graphs, run by Python over arrays: every operator of a body is applied as if it were called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from opreg.ndarray import control_flow as rounds
from opreg.ndarray.cached_op import CachedOp
from opreg.ndarray.ndarray import NDArray

from .symbol import Symbol

__all__ = ["UNROLLED"]


def _function(body: Symbol) -> Callable:
    """A body as a function of arrays; autograd sees its operators."""
    call = CachedOp(body)

    def run(given: Sequence[Any]) -> list[Any]:
        found = call(*given)
        return found if isinstance(found, list) else [found]

    return run


def _unroll_foreach(op: Any, attrs: Any, ins: Sequence[Any]) -> list[Any]:
    data, states, rest = attrs["in_data_locs"], attrs["in_state_locs"], attrs["remain_locs"]
    body, count, last = _function(attrs["subgraphs"][0]), attrs["num_out_data"], len(data) + len(states)

    def step(each: Any, current: Any) -> Any:
        placed = dict(zip((*data, *states, *rest), [*each, *current, *ins[last:]]))
        found = body([placed[place] for place in range(len(placed))])
        return found[:count], found[count:]

    outputs, final = rounds.foreach(step, list(ins[:len(data)]), list(ins[len(data):last]))
    return [*outputs, *final]


def _unroll_while_loop(op: Any, attrs: Any, ins: Sequence[Any]) -> list[Any]:
    test, body = map(_function, attrs["subgraphs"])
    count, changing = attrs["num_out_data"], [attrs["func_input_locs"][place] for place in attrs["func_var_locs"]]

    def given(current: Sequence[Any], key: str) -> list[Any]:
        values = dict(zip(changing, current))
        return [values.get(place, ins[place]) for place in attrs[key]]

    def step(*current: Any) -> Any:
        found = body(given(current, "func_input_locs"))
        return found[:count], found[count:]

    outputs, final = rounds.while_loop(lambda *current: test(given(current, "cond_input_locs"))[0], step,
                                       [ins[place] for place in changing], attrs["max_iterations"])
    if not outputs:
        shapes = op.infer_shapes([each.shape for each in ins], None, attrs)[1][:count]
        dtypes = op.infer_dtypes([each._data.dtype for each in ins], None, attrs)[1]
        ctx = ins[0].context
        outputs = [NDArray(ctx.xp.zeros(shape, dtype), ctx) for shape, dtype in zip(shapes, dtypes)]
    return [*outputs, *final]


def _unroll_cond(op: Any, attrs: Any, ins: Sequence[Any]) -> list[Any]:
    places = attrs["cond_input_locs"], attrs["then_input_locs"], attrs["else_input_locs"]
    test, taken, other = [functools.partial(_function(body), [ins[place] for place in each])
                          for body, each in zip(attrs["subgraphs"], places)]
    return rounds.cond(test()[0], taken, other)


#: By the operator's name: a function of it, its attributes and its inputs that gives its visible outputs.
UNROLLED: dict[str, Callable[[Any, Any, Sequence[NDArray]], list[NDArray]]] = {
    "_foreach": _unroll_foreach, "_while_loop": _unroll_while_loop, "_cond": _unroll_cond}

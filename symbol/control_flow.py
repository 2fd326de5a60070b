"""The operators of loops and branches, whose attributes hold graphs: the bodies.

A body is bound once, and runs once in each round. Backward takes the rounds in reverse order. It runs the forward pass
of each round again from the saved loop states, so that memory grows with these states and not with the body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple, NoReturn

import numpy as np

from opreg.core import effects, generators
from opreg.core.attrs import AS_GIVEN, Field, Schema
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.registry import register
from opreg.core.rules import AttrsRule
from opreg.core.spec import ANY, Spec, is_floating, unify
from opreg.errors import ArgumentError, NotDifferentiableError, ShapeError
from opreg.ndarray.ndarray import NDArray

from . import infer as inference
from .binding import make, resolve_operators
from .executor import Executor
from .inspect.work import Rounds
from .symbol import Symbol
from .unrolled import UNROLLED

__all__ = ["FOREACH", "WHILE_LOOP", "COND", "Operands", "check_locations"]

Locations = tuple[int, ...]


# -------------------------------------------------------------------------------------------- the operators


class Operands:
    """The inputs of a loop or branch: first its own values, then the values that bodies use from outside, each once.

    Examples
    --------
    >>> operands = Operands(["state"])
    >>> [operands.place(name, name) for name in ("x", "y", "x")], operands.values
    ([1, 2, 1], ['state', 'x', 'y'])
    """

    def __init__(self, values: Sequence[Any] = ()):
        self.values = list(values)
        self._places: dict[Any, int] = {}

    def place(self, key: Any, value: Any) -> int:
        """The index of an outside value among the inputs. Equal keys are one input."""
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


def _declare_loop(name: str, fields: Mapping[str, Any], kernel: Callable, backward_kernel: Callable,
                  doc: str) -> Op:
    """Register the operator of a loop or branch, with its gradient.

    Its attributes hold graphs, and ``num_args`` is the number of its inputs. Hidden outputs after the visible ones
    save the values from which backward starts each round.
    """
    schema = Schema([Field("num_args", int), Field("num_outputs", int),
                     *[Field(key, kind) for key, kind in fields.items()], Field("subgraphs", tuple[Any, ...], ())])

    def outputs(attrs: Mapping[str, Any]) -> tuple[str, ...]:
        count = attrs["num_outputs"]
        names = ("output",) if count == 1 else tuple(f"output{i}" for i in range(count))
        return names + tuple(f"kept{i}" for i in range(len(_saved_inputs(attrs))))

    def gradients(attrs: Mapping[str, Any], g: Any, ins: Sequence[Any], outs: Sequence[Any], *_: Any) -> list[Any]:
        tops, visible = list(g) if isinstance(g, tuple) else [g], attrs["num_outputs"]
        computed = ins[0]._apply(backward.current, [*tops[:visible], *ins, *outs[visible:]], attrs)
        return list(computed) if len(ins) > 1 else [computed]

    op = register(Op(name, schema, lambda *, num_args, subgraphs: [f"arg{i}" for i in range(num_args - len(subgraphs))],
                     outputs=AttrsRule(outputs), visible=lambda *, num_outputs: num_outputs,
                     mode=True, per_instance=True, doc=doc))
    op.together(AttrsRule(_RULES[name]))
    op.kernel("loop", bound=True)(kernel)
    op.grad(AttrsRule(gradients))
    op.chance(AttrsRule(lambda attrs: any(node.op is not None and effects.draws(node.op, node.attrs)
                                          for body in attrs["subgraphs"] for node in body._graph().nodes)))
    op.moves(AttrsRule(_moving_inputs))
    op.rules.unrolled = UNROLLED[name]
    backward = _backward(op, backward_kernel)
    return op


def _backward(forward: Op, kernel: Callable) -> Op:
    """Register the backward operator of a loop or branch. It reads the output gradients, the inputs, and the hidden
    outputs."""

    def arguments(attrs: Mapping[str, Any]) -> tuple[str, ...]:
        names, visible = forward.signature.outputs(attrs), attrs["num_outputs"]
        return (*[f"{name}_grad" for name in names[:visible]], *forward.signature.arguments(attrs), *names[visible:])

    def like_inputs(attrs: Mapping[str, Any], ins: Any, outs: Any) -> tuple[Any, Any]:
        return ins, ins[attrs["num_outputs"]:attrs["num_outputs"] + len(forward.signature.arguments(attrs))]

    def refuse(*_: Any) -> NoReturn:
        raise NotDifferentiableError(f"the backward of operator {forward.name} cannot be differentiated again")

    op = register(Op(f"_backward{forward.name}", AS_GIVEN, AttrsRule(arguments),
                     outputs=AttrsRule(lambda attrs: tuple([f"{name}_grad" for name in
                                                            forward.signature.arguments(attrs)])),
                     types=AttrsRule(like_inputs), mode=True, per_instance=True))
    op.shapes(AttrsRule(like_inputs))
    op.kernel("loop", bound=True)(kernel)
    op.grad(AttrsRule(refuse))
    return op


def _saved_inputs(attrs: Mapping[str, Any]) -> Sequence[int]:
    """The inputs whose values hidden outputs save for backward, since they change in each round. The last hidden
    output, -1 here, saves the number of rounds, or the branch that was taken."""
    if "in_data_locs" in attrs:
        first = len(attrs["in_data_locs"])
        return [*range(first, first + len(attrs["in_state_locs"])), -1]
    return [*[attrs["func_input_locs"][place] for place in attrs.get("func_var_locs", ())], -1]


def _locations(attrs: Mapping[str, Any]) -> list[Sequence[int]]:
    """The inputs that are the variables of each body."""
    if "in_data_locs" in attrs:
        order = (*attrs["in_data_locs"], *attrs["in_state_locs"], *attrs["remain_locs"])
        return [[order.index(place) for place in range(len(order))]]
    bodies = ("cond", "func") if "func_input_locs" in attrs else ("cond", "then", "else")
    return [attrs[f"{name}_input_locs"] for name in bodies]


def _moving_inputs(attrs: Mapping[str, Any]) -> list[int]:
    """The inputs that are auxiliary states of operators in the bodies. All rounds share them."""
    changing = {*_saved_inputs(attrs), *range(len(attrs.get("in_data_locs", ())))}
    indices: set[int] = set()
    for body, places in zip(attrs["subgraphs"], _locations(attrs)):
        graph = body._graph()
        states = graph.variables()[1]
        indices.update(place for node, place in zip([node for node in graph.nodes if node.op is None], places)
                       if node in states and place not in changing)
    return sorted(indices)


# ------------------------------------------------------------------------------------------------ inference


#: The hidden output that holds a number.
_NUMBER = Spec((1,), np.dtype(np.int64))


def _stacked_spec(part: Spec, length: Any) -> Spec:
    """The spec of ``length`` stacked slices."""
    return part if part.shape is None else Spec((length, *part.shape), part.dtype)


def _slice(whole: Spec) -> Spec:
    """The spec of a slice; ``x[i]`` of a one-dimensional ``x`` has shape (1,)."""
    return whole if whole.shape is None else Spec(whole.shape[1:] or (1,), whole.dtype)


def _infer_body(body: Symbol, known_specs: Sequence[Spec]) -> tuple[list[Spec], list[Spec]]:
    """Infer specs of the inputs and outputs of a body from those of some inputs."""
    graph = resolve_operators(body)._graph()
    variables = [node for node in graph.nodes if node.op is None]
    inferred = inference.infer_body(graph, variables, known_specs)
    return [inferred[node][0] for node in variables], [inferred[node][i] for node, i in graph.heads]


def _foreach_rule(attrs: Any, ins: Sequence[Spec], outs: object) -> tuple[list[Spec], list[Spec]]:
    data, states, captured = attrs["in_data_locs"], attrs["in_state_locs"], attrs["remain_locs"]
    places = (*data, *states, *captured)  # positions of the node's inputs among those of the body
    inner = [Spec()] * len(places)
    for i, place in enumerate(places):
        inner[place] = _slice(ins[i]) if i < len(data) else ins[i]
    inputs, results = _infer_body(attrs["subgraphs"][0], inner)
    length = next((spec.shape[0] for spec in ins[:len(data)] if spec.shape is not None), ANY)
    found = []
    for i, (place, spec) in enumerate(zip(places, ins)):
        whole = inputs[place] if i >= len(data) else _stacked_spec(inputs[place], length)
        # the shape of a slice does not tell this shape
        if i < len(data) and spec.shape is not None and len(spec.shape) < 2:
            whole = Spec(spec.shape, whole.dtype)
        found.append(whole)
    count = attrs["num_out_data"]
    saved = [_stacked_spec(spec, length) for spec in found[len(data):len(data) + len(states)]]
    return found, [*[_stacked_spec(result, length) for result in results[:count]], *results[count:], *saved, _NUMBER]


def _while_rule(attrs: Any, ins: Sequence[Spec], outs: object) -> tuple[list[Spec], list[Spec]]:
    places, most, found = attrs["func_input_locs"], attrs["max_iterations"], list(ins)
    inputs, results = _infer_body(attrs["subgraphs"][1], [ins[place] for place in places])
    for place, spec in zip(places, inputs):
        found[place] = spec
    count = attrs["num_out_data"]
    saved = [_stacked_spec(found[places[place]], most) for place in attrs["func_var_locs"]]
    return found, [*[_stacked_spec(result, most) for result in results[:count]], *results[count:], *saved, _NUMBER]


def _cond_rule(attrs: Any, ins: Sequence[Spec], outs: object) -> tuple[list[Spec], list[Spec]]:
    found, chosen = list(ins), [Spec()] * attrs["num_outputs"]
    for body, places in zip(attrs["subgraphs"], _locations(attrs)):
        inputs, results = _infer_body(body, [found[place] for place in places])
        for place, spec in zip(places, inputs):
            found[place] = spec
        if body is not attrs["subgraphs"][0]:
            chosen = [Spec(unify(old.shape, new.shape), old.dtype or new.dtype) for old, new in zip(chosen, results)]
    return found, [*chosen, _NUMBER]


_RULES = {"_foreach": _foreach_rule, "_while_loop": _while_rule, "_cond": _cond_rule}


def check_locations(name: str, attrs: Mapping[str, Any], count: int) -> None:
    """Refuse a loop or branch whose attributes do not fit its bodies and inputs, as in a damaged file.

    Raises
    ------
    ArgumentError
        If one does not fit. The error names the attribute.
    """
    bodies = attrs["subgraphs"]
    expected = {"_foreach": 1, "_while_loop": 2, "_cond": 3}[name]
    states = attrs["num_outputs"] - attrs.get("num_out_data", 0)

    def require(truth: bool, what: str) -> None:
        if not truth:
            raise ArgumentError(f"operator {name}: {what} does not fit its bodies and inputs")

    require(len(bodies) == expected, f"the number of subgraphs, {len(bodies)},")
    require(attrs["num_args"] == count + expected, f"num_args={attrs['num_args']}")
    widths = [sum(node.op is None for node in body._graph().nodes) for body in bodies]
    if name == "_foreach":
        places = attrs["in_data_locs"] + attrs["in_state_locs"] + attrs["remain_locs"]
        require(sorted(places) == list(range(widths[0])) and len(places) == count,
                "the order in in_data_locs, in_state_locs and remain_locs")
        require(len(attrs["in_state_locs"]) == states and bool(attrs["in_data_locs"]), f"num_out_data={states}")
    else:
        keys = ("cond_input_locs", "func_input_locs") if name == "_while_loop" else (
            "cond_input_locs", "then_input_locs", "else_input_locs")
        for key, width in zip(keys, widths):
            require(len(attrs[key]) == width and all(0 <= place < count for place in attrs[key]), key)
    if name == "_while_loop":
        variables = attrs["func_var_locs"]
        require(len(variables) == states == len(set(variables)), "func_var_locs")
        require(all(0 <= place < widths[1] for place in variables), "func_var_locs")
        require(attrs["max_iterations"] > 0, "max_iterations")
    for body in bodies[-1:] if name == "_foreach" else bodies[1:]:
        require(len(body.list_outputs()) == attrs["num_outputs"], f"num_outputs={attrs['num_outputs']}")


# ----------------------------------------------------------------------------------------------- execution


class _Body:
    """A bound body. Inputs that change in each round have arrays of their own; others are the arrays of the node. With
    gradients, it repeats rounds of forward on its own copies of the auxiliary states.

    Parameters
    ----------
    call : Call
        The node.
    body : Symbol
    arrays, inputs : sequence of arrays, sequence of int
        For each variable of the body, the array with its first value, and the index of this input of the node.
    changing : set of int
        Indices of inputs that change in each round, so that the body has memory of its own for them.
    gradients : bool
        Whether it is bound for backward.
    """

    def __init__(self, call: Call, body: Symbol, arrays: Sequence[Any], inputs: Sequence[int], changing: Set[int],
                 gradients: bool):
        body = resolve_operators(body)
        graph = body._graph()
        variables = [node for node in graph.nodes if node.op is None]
        arguments, auxiliary = graph.variables()
        empty, device = call.ctx.backend.zeros, call.ctx.device_id
        self.slots = [empty(data.shape, data.dtype, device) if i in changing or (gradients and node in auxiliary)
                      else data for node, data, i in zip(variables, arrays, inputs)]
        array_of = {node: NDArray(data, call.ctx) for node, data in zip(variables, self.slots)}
        args = [array_of[node] for node in arguments]
        grads = [NDArray(empty(arg.shape, arg._data.dtype, device), call.ctx)
                 if gradients and is_floating(arg._data.dtype) else None for arg in args]
        unnoted = {node for node, i in zip(variables, inputs)
                   if gradients or i in changing or i not in call.variables}
        self.executor: Executor = make(body, call.ctx, args, grads, ["null" if g is None else "write" for g in grads],
                                       [array_of[node] for node in auxiliary], {}, unnoted=unnoted)
        by_node = dict(zip(arguments, grads))
        self.grads = [by_node.get(node) for node in variables]
        self.varies = any(node.op is not None and effects.varies(node.op) for node in graph.nodes)

    def run(self, is_train: bool) -> list[Any]:
        """Run one round, and return the raw outputs."""
        return [out._data for out in self.executor.forward(is_train=is_train)]


class _RoundStart(NamedTuple):
    """Generator and auxiliary states at the start of a round, which its backward restores."""

    drawn: generators.States
    states: list[Any]


class _Rerun:
    """The rounds of a body. Backward runs them again with the random numbers and auxiliary states of forward.

    Parameters
    ----------
    which : int
        The index of the body among those of the node.
    """

    def __init__(self, call: Call, body: _Body, which: int = 0):
        self.body = body
        self._round_starts: list[_RoundStart] = call.memo.setdefault(("rounds", call.attrs, which), [])

    def run(self, number: int, is_train: bool) -> list[Any]:
        """Run one round of forward, and return the raw outputs."""
        body = self.body
        if not body.varies:
            return body.run(is_train)
        del self._round_starts[number:]
        states = [state._ctx.run(state._data.copy) for state in body.executor.aux_arrays]
        with generators.noted_states() as drawn:
            results = body.run(is_train)
        self._round_starts.append(_RoundStart(drawn, states))
        return results

    def back(self, number: int, out_grads: Sequence[NDArray]) -> None:
        """Run one round of backward, which writes the gradient arrays of the body."""
        body = self.body
        if body.varies:
            drawn, states = self._round_starts[number]
            for state, data in zip(body.executor.aux_arrays, states):
                state._ctx.run(state._data.__setitem__, Ellipsis, data)
            with generators.same_draws(drawn):
                body.run(True)
        else:
            body.run(True)
        body.executor.backward(out_grads)


def _rows(data: Any) -> Any:
    """The data, with a second axis of length 1 if there is only one, so that every slice is an array."""
    return data if data.ndim > 1 else data[:, None]


class _Loop:
    """A loop bound to the inputs of its node, for either direction.

    Parameters
    ----------
    call : Call
        The node.
    ins : sequence of arrays
        Its inputs.
    gradients : bool
        Whether the body is bound for backward.

    Attributes
    ----------
    inputs : sequence of int
        The input of the node for each variable of the body.
    data, states : sequence of int
        Variables of the body that get the next slice in each round, and those that hold loop states.
    length : int or None
        Number of rounds; None where a condition decides.
    """

    def __init__(self, call: Call, ins: Sequence[Any], gradients: bool):
        attrs = call.attrs
        locations = _locations(attrs)
        self.inputs = locations[-1]
        if "in_data_locs" in attrs:
            self.data, self.states = attrs["in_data_locs"], attrs["in_state_locs"]
            self.length: int | None = ins[0].shape[0] if self.data else 0
            if self.data and not self.length:
                raise ShapeError("foreach: the data have no slices: their first dimension is 0")
        else:
            self.data, self.states, self.length = (), attrs["func_var_locs"], None
        arrays = [ins[i] for i in self.inputs]
        self.starts, self._sources = [arrays[place] for place in self.states], {}
        for place in self.data:
            self._sources[place] = _rows(arrays[place])
            arrays[place] = self._sources[place][0]
        changing = {self.inputs[place] for place in (*self.data, *self.states)}
        self.body = _Body(call, attrs["subgraphs"][-1], arrays, self.inputs, changing, gradients)
        self._test, self._shown = None, []
        if self.length is None and not gradients:
            tested = locations[0]
            self._test = _Body(call, attrs["subgraphs"][0], [ins[i] for i in tested], tested, changing, False)
            self._shown = [(self._test.slots[tested.index(self.inputs[place])], self.body.slots[place])
                           for place in self.states if self.inputs[place] in tested]
        self._most, self._is_train = attrs.get("max_iterations", self.length), call.is_train

    def runs_round(self, t: int) -> bool:
        """Whether the loop runs a round ``t``."""
        if self._test is None or t >= self._most:
            return t < self._most
        for shown, slot in self._shown:
            shown[...] = slot
        return bool(self._test.run(self._is_train)[0].reshape(-1)[0])

    def set_states(self, states: Sequence[Any]) -> None:
        """Set the loop states that the next round starts from."""
        for place, state in zip(self.states, states):
            self.body.slots[place][...] = state

    def slice(self, t: int) -> None:
        """Set the slices that the next round reads."""
        for place, source in self._sources.items():
            self.body.slots[place][...] = source[t]

    def steps(self, run: Callable[[], None], is_train: bool) -> Callable:
        """The step of the loop. If the number of rounds is known, the step tells it."""
        return run if self.length is None else Rounds(run, self.body.executor, self.length, is_train)


def _loop(call: Call) -> Callable:
    count, visible = call.attrs["num_out_data"], call.attrs["num_outputs"]
    loop = _Loop(call, call.ins, False)
    *stored_states, number = call.outs[visible:]
    rounds, slots = _Rerun(call, loop.body), [loop.body.slots[place] for place in loop.states]

    def run() -> None:
        if loop.length is None:
            _zero(call.outs[:count])
        t = 0
        loop.set_states(loop.starts)
        while loop.runs_round(t):
            loop.slice(t)
            for keep, slot in zip(stored_states, slots):
                if keep is not None:
                    keep[t] = slot
            results = rounds.run(t, call.is_train)
            for out, result in zip(call.outs[:count], results):
                if out is not None:
                    out[t] = result
            loop.set_states(results[count:])
            t += 1
        if number is not None:
            number[...] = t
        for out, slot in zip(call.outs[count:visible], slots):
            if out is not None:
                out[...] = slot

    return loop.steps(run, call.is_train)


def _backward_loop(call: Call) -> Callable:
    attrs, count, visible = call.attrs, call.attrs["num_out_data"], call.attrs["num_outputs"]
    n_in = attrs["num_args"] - len(attrs["subgraphs"])
    tops, ins, (*stored, number) = call.ins[:visible], call.ins[visible:visible + n_in], call.ins[visible + n_in:]
    loop = _Loop(call, ins, True)
    rounds = _Rerun(call, loop.body)
    outs = [call.outs[i] for i in loop.inputs]  # the outputs by variable of the body
    slopes = {place: _rows(outs[place]) for place in loop.data if outs[place] is not None}
    state_grads = {place: top.copy() for place, top in zip(loop.states, tops[count:])}

    def run() -> None:
        for grad, top in zip(state_grads.values(), tops[count:]):
            grad[...] = top
        _zero(call.outs)
        for t in reversed(range(int(number[0]) if loop.length is None else loop.length)):
            loop.slice(t)
            loop.set_states([keep[t] for keep in stored])
            rounds.back(t, [NDArray(top[t], call.ctx) for top in tops[:count]]
                        + [NDArray(grad, call.ctx) for grad in state_grads.values()])
            for place, g in enumerate(loop.body.grads):
                if g is None:
                    continue
                if place in state_grads:
                    state_grads[place][...] = g._data
                elif place in slopes:
                    slopes[place][t] = g._data
                elif place not in loop.data and outs[place] is not None:
                    outs[place] += g._data
        for place, grad in state_grads.items():
            if outs[place] is not None:
                outs[place][...] = grad

    return loop.steps(run, True)


def _zero(outs: Sequence[Any]) -> None:
    for out in outs:
        if out is not None:
            out[...] = 0


def _cond_bodies(call: Call, ins: Sequence[Any], gradients: bool) -> list[_Body]:
    return [_Body(call, body, [ins[place] for place in places], places, set(), gradients and k > 0)
            for k, (body, places) in enumerate(zip(call.attrs["subgraphs"], _locations(call.attrs)))]


def _cond(call: Call) -> Callable:
    test, *branches = _cond_bodies(call, call.ins, False)
    rounds = [_Rerun(call, branch, which) for which, branch in enumerate(branches)]
    outs, taken = call.outs[:-1], call.outs[-1]

    def run() -> None:
        which = 0 if bool(test.run(call.is_train)[0].reshape(-1)[0]) else 1
        if taken is not None:
            taken[...] = which
        for out, result in zip(outs, rounds[which].run(0, call.is_train)):
            if out is not None:
                out[...] = result

    return run


def _backward_cond(call: Call) -> Callable:
    visible = call.attrs["num_outputs"]
    tops, ins, taken = call.ins[:visible], call.ins[visible:-1], call.ins[-1]
    rounds = [_Rerun(call, branch, which) for which, branch in enumerate(_cond_bodies(call, ins, True)[1:])]

    def run() -> None:
        _zero(call.outs)
        which = int(taken[0])
        rounds[which].back(0, [NDArray(top, call.ctx) for top in tops])
        for place, g in zip(_locations(call.attrs)[1 + which], rounds[which].body.grads):
            if g is not None and call.outs[place] is not None:
                call.outs[place] += g._data

    return run


FOREACH = _declare_loop("_foreach", {"num_out_data": int, "in_state_locs": Locations, "in_data_locs": Locations,
                                     "remain_locs": Locations}, _loop, _backward_loop,
                        "Apply a body to each slice of the data along the first axis, passing states on.")
WHILE_LOOP = _declare_loop("_while_loop", {"num_out_data": int, "max_iterations": int, "cond_input_locs": Locations,
                                           "func_input_locs": Locations, "func_var_locs": Locations},
                           _loop, _backward_loop,
                           "Apply a function while a condition holds, at most ``max_iterations`` times; "
                           "outputs are stacked.")
COND = _declare_loop("_cond", {"cond_input_locs": Locations, "then_input_locs": Locations,
                               "else_input_locs": Locations}, _cond, _backward_cond,
                     "Compute one of two branches, chosen by a condition.")

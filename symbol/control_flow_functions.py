"""The functions ``foreach``, ``while_loop`` and ``cond`` of symbols.

Each calls the user's functions once, with variables for the values that change in each round. The nodes that these
functions make become the body of one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opreg.core.graph import Entry, Node, rewrite
from opreg.core.op import Op
from opreg.errors import ArgumentError, UnusedError
from opreg.ndarray.control_flow import check_rounds

from .control_flow import COND, FOREACH, WHILE_LOOP, Operands
from .naming import AttrScope, attributes, new_name, output_name
from .symbol import Symbol, Variable

__all__ = ["foreach", "while_loop", "cond"]


def _flat(value: Any, what: str) -> tuple[list[Symbol], Callable[[Sequence[Symbol]], Any]]:
    """The symbols in nested lists, and a function that nests other symbols in the same way."""
    if isinstance(value, Symbol):
        parts = list(value)
        return parts, (lambda flat: flat[0]) if len(parts) == 1 else list
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{what}: expected a symbol or a list of symbols, got {type(value).__name__}")
    nested = [_flat(part, what) for part in value]
    sizes = [len(flat) for flat, _ in nested]

    def rebuild(flat: Sequence[Symbol]) -> list[Any]:
        result, at = [], 0
        for (_, inner), size in zip(nested, sizes):
            result.append(inner(flat[at:at + size]))
            at += size
        return result

    return [symbol for flat, _ in nested for symbol in flat], rebuild


class _Cut:
    """A body cut out of the graph around it. Values that it uses from outside become its variables."""

    def __init__(self, heads: Sequence[Symbol], title: str):
        self.outside: dict[str, Symbol] = {}

        def change(node: Node, inputs: list[Entry]) -> list[Entry] | None:
            if node.op is None or node.tags.get("__subgraph_name__") == title:
                return None
            entries = []
            for i in range(node.count):
                name = output_name((node, i))
                entries.append((Node(None, name), 0))
                self.outside[name] = Symbol([(node, i)])
            return entries

        entries = [symbol._single_entry("body") for symbol in heads]
        # A head that is a variable, or computed outside, must still be a node of the body.
        with AttrScope(__subgraph_name__=title):
            entries = [entry if entry[0].tags.get("__subgraph_name__") == title and entry[0].op is not None
                       else Symbol([entry])._surface("identity")(Symbol([entry]))._entries[0] for entry in entries]
        self.body = Symbol(rewrite(Symbol(entries)._graph(), change).heads)
        self.inputs = [node for node in self.body._graph().nodes if node.op is None]
        for node in self.inputs:
            self.outside.setdefault(node.name, Symbol([(node, 0)]))

    def places(self, slots: Sequence[Symbol]) -> list[int]:
        """Indices of slots among the inputs of the body; -1 for a slot that it does not use."""
        nodes = [slot._entries[0][0] for slot in slots]
        return [self.inputs.index(node) if node in self.inputs else -1 for node in nodes]


def _slots(title: str, *groups: Sequence[Symbol]) -> list[list[Symbol]]:
    """Variables of a body, named as in MXNet by a value and the number of its output; if taken, by the next number."""
    taken: set[str] = set()

    def slot(symbol: Symbol) -> Symbol:
        number = symbol._entries[0][1]
        while (name := f"{symbol.name}-{number}") in taken:
            number += 1
        taken.add(name)
        return Variable(name)

    with AttrScope(__subgraph_name__=title):
        return [[slot(symbol) for symbol in group] for group in groups]


def _title(name: str) -> str:
    return new_name(None, name)


def _node(op: Op, inputs: Sequence[Symbol], attrs: dict[str, Any], bodies: Sequence[Symbol]) -> Symbol:
    written = {**attrs, "num_args": len(inputs) + len(bodies)}
    complete = op.complete({**written, "subgraphs": tuple(bodies)})
    node = Node(op, new_name(None, op.name), complete, [symbol._single_entry(op.name) for symbol in inputs],
                {key: list(value) if isinstance(value, tuple) else value for key, value in written.items()},
                attributes())
    return Symbol([(node, i) for i in range(attrs["num_outputs"])])


def foreach(body: Callable, data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """Apply a body to every slice of the data along the first axis, passing states from each to the next.

    Parameters
    ----------
    body : function of data and states
        Returns outputs and new states; outputs are stacked along a new first axis.
    data, init_states : Symbol or list of them
        The inputs that are sliced, and the initial states.

    Returns
    -------
    outputs, states
        Nested as the body returned them.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> step = lambda x, total: (x + total, x + total)
    >>> sums, last = foreach(step, Variable("x"), Variable("start"))
    >>> sums.eval(x=array([[1.0], [2.0], [3.0]]), start=array([0.0]))[0].asnumpy().ravel()
    array([1., 3., 6.], dtype=float32)
    """
    title = _title(name)
    flat_data, shape_data = _flat(data, "foreach data")
    flat_states, shape_states = _flat(init_states, "foreach states")
    data_slots, state_slots = _slots(title, flat_data, flat_states)
    with AttrScope(__subgraph_name__=title):
        outputs, states = body(shape_data(data_slots), shape_states(state_slots))
    flat_outputs, shape_outputs = _flat(outputs, "foreach outputs")
    flat_new, shape_new = _flat(states, "foreach states")
    if len(flat_new) != len(flat_states):
        raise ArgumentError(f"foreach: the body returned {len(flat_new)} states, expected {len(flat_states)}")
    cut = _Cut(flat_outputs + flat_new, title)
    data_at, states_at = cut.places(data_slots), cut.places(state_slots)
    for what, slots in (("data", data_at), ("states", states_at)):
        if -1 in slots:
            raise UnusedError(f"foreach: the body does not use all of its {what}; leave out number "
                              f"{slots.index(-1)}")
    captured = [i for i in range(len(cut.inputs)) if i not in (*data_at, *states_at)]
    result = _node(FOREACH, [*flat_data, *flat_states, *[cut.outside[cut.inputs[i].name] for i in captured]],
                   {"num_outputs": len(flat_outputs) + len(flat_new), "num_out_data": len(flat_outputs),
                    "in_state_locs": tuple(states_at), "in_data_locs": tuple(data_at), "remain_locs": tuple(captured)},
                   [cut.body])
    parts = list(result)
    return shape_outputs(parts[:len(flat_outputs)]), shape_new(parts[len(flat_outputs):])


def while_loop(cond: Callable, func: Callable, loop_vars: Any, max_iterations: int,
               name: str = "while_loop") -> tuple[Any, Any]:
    """Apply a function to loop variables while a condition on them holds.

    Parameters
    ----------
    cond : function of the loop variables
        Returns a symbol with one element.
    func : function of the loop variables
        Returns outputs, which are stacked, and new loop variables.
    loop_vars : Symbol or list of them
        The initial states.
    max_iterations : int
        The largest number of rounds. Stacked outputs have this length, with zeros after the last round.

    Returns
    -------
    outputs, loop variables
        Outputs nested as the function returned them, and variables nested as ``loop_vars``.
    """
    check_rounds(max_iterations)
    flat_vars, shape_vars = _flat(loop_vars, "while_loop variables")
    single = isinstance(loop_vars, Symbol)

    def traced(function: Callable, ending: str) -> tuple[list[Symbol], Any, str]:
        title = _title(f"{name}_{ending}")
        [slots] = _slots(title, flat_vars)
        with AttrScope(__subgraph_name__=title):
            result = function(shape_vars(slots)) if single else function(*shape_vars(slots))
        return slots, result, title

    test_slots, test, test_title = traced(cond, "cond")
    if not isinstance(test, Symbol):
        raise ArgumentError(f"while_loop: cond must return a symbol, got {type(test).__name__}")
    slots, returned, title = traced(func, "func")
    if not isinstance(returned, (list, tuple)) or len(returned) != 2:
        raise ArgumentError("while_loop: func must return outputs and new loop variables")
    flat_outputs, shape_outputs = _flat([] if returned[0] is None else returned[0], "while_loop outputs")
    flat_new, _ = _flat(returned[1], "while_loop variables")
    if len(flat_new) != len(flat_vars):
        raise ArgumentError(f"while_loop: func returned {len(flat_new)} loop variables, expected {len(flat_vars)}")
    test_cut, cut = _Cut([test], test_title), _Cut(flat_outputs + flat_new, title)
    vars_at = cut.places(slots)
    if -1 in vars_at:
        raise ArgumentError(f"while_loop: func does not use its loop variable number {vars_at.index(-1)}")
    operands = Operands(flat_vars)
    variables = {slot._entries[0][0]: k for group in (test_slots, slots) for k, slot in enumerate(group)}

    def place(around: _Cut, node: Node) -> int:
        outside = around.outside[node.name]
        return variables[node] if node in variables else operands.place(outside._entries[0], outside)

    locations = [tuple([place(part, node) for node in part.inputs]) for part in (test_cut, cut)]
    result = _node(WHILE_LOOP, operands.values, {
        "num_outputs": len(flat_outputs) + len(flat_new), "num_out_data": len(flat_outputs),
        "max_iterations": max_iterations, "cond_input_locs": locations[0], "func_input_locs": locations[1],
        "func_var_locs": tuple(vars_at)}, [test_cut.body, cut.body])
    parts = list(result)
    return shape_outputs(parts[:len(flat_outputs)]), shape_vars(parts[len(flat_outputs):])


def cond(pred: Symbol, then_func: Callable, else_func: Callable, name: str = "cond") -> Any:
    """Compute one of two branches.

    Parameters
    ----------
    pred : Symbol
        The condition, one element: zero selects ``else_func``, any other value ``then_func``.
    then_func, else_func : function without arguments
        Return symbols in the same nesting, with the same shapes and dtypes.
    """
    if not isinstance(pred, Symbol):
        raise ArgumentError(f"cond: expected a symbol for the condition, got {type(pred).__name__}")
    cuts: list[_Cut] = [_Cut([pred], _title(f"{name}_pred"))]
    shape: Callable | None = None
    count = 0
    for function, ending in ((then_func, "then"), (else_func, "else")):
        title = _title(f"{name}_{ending}")
        with AttrScope(__subgraph_name__=title):
            result = function()
        flat, rebuild = _flat(result, f"cond {ending}")
        if shape is not None and len(flat) != count:
            raise ArgumentError(f"cond: one branch returns {count} symbols, the other {len(flat)}")
        shape, count = shape or rebuild, len(flat)
        cuts.append(_Cut(flat, title))
    operands = Operands()

    def place(outside: Symbol) -> int:
        entry = outside._entries[0]
        # Variables of the same name in both branches are one.
        return operands.place(entry[0].name if entry[0].op is None else entry, outside)

    locations = [tuple([place(cut.outside[node.name]) for node in cut.inputs]) for cut in cuts]
    result = _node(COND, operands.values, {"num_outputs": count, "cond_input_locs": locations[0],
                                   "then_input_locs": locations[1], "else_input_locs": locations[2]},
                   [cut.body for cut in cuts])
    return (shape or list)(list(result))

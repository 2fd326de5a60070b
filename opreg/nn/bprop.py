"""bprop: a Cell's own gradient, eagerly and as one node of a graph.

``construct`` runs without being recorded; what it returns comes from one application whose gradient is the Cell's
``bprop``, called with the inputs, the output and the gradients that arrive. It is written in operators, so it is
itself recorded, or traced, and can be differentiated again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import tape
from opreg.ndarray.ndarray import NDArray
from opreg.symbol import infer as inference
from opreg.symbol.rules import RULES, RuleSymbol

from ..attrs import Schema
from ..errors import ArgumentError, ShapeError, note
from ..graph import Entry, Graph, Node
from ..mode import MODE, Recording
from ..op import Op
from ..registry import ops
from ..spec import Spec, broadcast, known, show
from .call import call
from .manners import Manners, is_number
from .parameter import Parameter
from .state import STATE
from .tensor import lent, made, tensor
from .trace import Trace, Traced
from .tree import LEAF, flatten, names, rebuild

__all__ = ["apply", "check"]


# ------------------------------------------------------------------------------------------------- the user's


def _inputs(cell: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """The inputs of ``construct`` with defaults filled in, as ``bprop`` is given them, and the keywords of the last."""
    if not kwargs and cell._construct_arity == len(args):
        return list(args), []
    bound = inspect.signature(cell.construct).bind(*args, **kwargs)
    bound.apply_defaults()
    return [*bound.args, *bound.kwargs.values()], list(bound.kwargs)


def _dout(structure: Any, arriving: Iterator[Any]) -> Any:
    """Gradients nested as the output is, without what is no tensor in it; one alone stands bare."""
    if structure is LEAF:
        return next(arriving)
    if structure[0] == "constant":
        return None
    parts = [_dout(part, arriving) for part in structure[2] if part is LEAF or part[0] != "constant"]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _gradients(cell: Any, inputs: list[Any], out: Any, dout: Any, internal: Sequence[Parameter]
               ) -> tuple[list[Any], list[Any]]:
    """Call ``bprop``: a gradient for each tensor of the inputs and for each internal parameter, None for zeros."""
    given = [*inputs, out]
    used = getattr(cell, "used_bprop_inputs", None)
    if used is not None:
        given = [value if i in used else None for i, value in enumerate(given)]
    try:
        found = cell.bprop(*given, dout)
    except Exception as error:
        note(error, f"in the bprop of Cell {cell.path}")
        raise
    if found is None:
        raise TypeError(f"Cell {cell.path}: The python function output is none: bprop must return the gradients of "
                        f"its {len(inputs)} inputs")
    weights: Any = {}
    if internal:
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict)):
            raise ArgumentError(f"Cell {cell.path}: Grad size should lager than forward inputs: with internal_params "
                                "bprop returns the inputs' gradients and a dict of weight to gradient")
        found, weights = found
        missing = [weight.name for weight in internal if not any(key is weight for key in weights)]
        if missing:
            raise ArgumentError(f"Cell {cell.path}: Grad size should lager than forward inputs: bprop returned no "
                                f"gradient of the internal parameters {', '.join(missing)}")
    elif isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict):
        found = found[0]
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(found) != len(inputs):
        what = ", ".join(_kind(value) for value in inputs)
        word = "Grad size should lager than forward inputs, but got" if len(found) < len(inputs) else "got"
        raise ArgumentError(f"Cell {cell.path}: {word} {len(found)} vs {len(inputs)}: bprop must return one gradient "
                            f"for each input ({what})")
    result = []
    for i, (value, g) in enumerate(zip(inputs, found)):
        leaves: list[Any] = []
        structure = flatten(value, leaves)
        if structure is LEAF:
            result.append(_fitted(cell, f"input {i}", value, g))
            continue
        parts = list(_spread(g)) if leaves and g is not None else [None] * len(leaves)
        if len(parts) != len(leaves):
            raise ArgumentError(f"Cell {cell.path}: input {i} has {len(leaves)} tensors, bprop returned {len(parts)} "
                                "gradients for it")
        result += [_fitted(cell, f"input {i}", leaf, part) for leaf, part in zip(leaves, parts)]
    return result, [_fitted(cell, f"parameter {weight.name}", weight, weights[weight]) for weight in internal]


def _known(value: Any) -> bool:
    return not isinstance(value, Traced) or known(value._spec.shape)


def _spread(g: Any) -> Iterator[Any]:
    if isinstance(g, (tuple, list)):
        for each in g:
            yield from _spread(each)
    elif isinstance(g, dict):
        yield from _spread(list(g.values()))
    else:
        yield g


def _kind(value: Any) -> str:
    return f"Tensor {show(value.shape)}" if isinstance(value, Manners) else type(value).__name__


def _fitted(cell: Any, what: str, value: Any, g: Any) -> Any:
    """A gradient with the shape and dtype of what it is the gradient of."""
    if g is None:
        return None
    if not isinstance(g, Manners):
        if is_number(g) and value.shape == ():
            g = tensor(np.asarray(g, value._dt))
        else:
            raise TypeError(f"Cell {cell.path}: Unreasonable data type: the gradient of {what} that bprop returned is "
                            f"of type {type(g).__name__}, expected a Tensor")
    if not g._shape_is(value) and _known(g) and _known(value):
        try:
            explained = broadcast(value.shape, g.shape) == g.shape or broadcast(value.shape, g.shape) == value.shape
        except ShapeError:
            explained = False
        if not explained:
            raise ShapeError(f"Cell {cell.path}: For grad interface or custom function, grad tensor should be "
                             f"broadcast to expected shape: the gradient of {what} has shape {show(g.shape)}, "
                             f"expected {show(value.shape)}")
        g = ops._reduce_like(g, value) if broadcast(value.shape, g.shape) == g.shape else ops.broadcast_like(g, value)
    if g._dt != value._dt:
        if g._dt.kind != "f" or value._dt.kind not in "f":
            if value._dt.kind in "iub":  # nobody reads the gradient of an integer
                return None
            raise TypeError(f"Cell {cell.path}: the gradient of {what} that bprop returned has dtype {g._dt}, expected "
                            f"{value._dt}")
        g = g._cast(value._dt)
    return g


# ------------------------------------------------------------------------------------------------ the record


class Record:
    """One call of a Cell with bprop.

    Attributes
    ----------
    cell
        The Cell.
    inputs, out
        Structures of its inputs, a list, and of its output.
    ins, outs : list of Spec
        Of the tensors in them.
    internal : list of Parameter
        Whose gradients ``bprop`` returns too.
    body : Trace or None
        What ``construct`` did, in a graph.
    slots, captured : list of Node
        Variables of the body: of the inputs' tensors, and of what it reads beside them.
    arrays : list
        What the captured ones stand for, where these are arrays.
    heads : list of Entry
        Outputs of the body, then what it assigns.
    """

    def __init__(self, cell: Any, inputs: Any, count: int, internal: Sequence[Parameter]):
        self.cell, self.inputs, self.count, self.internal = cell, inputs, count, list(internal)
        self.out: Any = LEAF
        self.ins: list[Spec] = []
        self.outs: list[Spec] = []
        self.body: Trace | None = None
        self.slots: list[Node] = []
        self.captured: list[Node] = []
        self.arrays: list[Any] = []
        self.heads: list[Entry] = []

    def __repr__(self) -> str:
        return type(self.cell).__name__

    __str__ = __repr__

    def compute(self, arriving: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Gradients of the inputs' tensors and of the internal parameters."""
        dout = _dout(self.out, iter(arriving))
        return _gradients(self.cell, rebuild(self.inputs, iter(ins)), rebuild(self.out, iter(outs)), dout,
                          self.internal)


def apply(cell: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a Cell that has a ``bprop``."""
    if STATE.trace is not None:
        return _traced(cell, args, kwargs)
    inputs, _ = _inputs(cell, args, kwargs)
    leaves: list[Any] = []
    structure = flatten(inputs, leaves)
    with Recording(False, None):
        out = cell.construct(*args, **kwargs)
    if not MODE.recording:
        return out
    internal = list(getattr(cell, "internal_params", None) or ())
    record = Record(cell, structure, len(leaves), internal)
    found: list[Any] = []
    record.out = flatten(out, found)
    fresh = [made(each._data, each._ctx) for each in found]
    if fresh:
        every = [*leaves, *internal]
        tape.record(_TAPED, record, every, [each._data for each in every], fresh)
    return rebuild(record.out, iter(fresh))


class _Taped(tape.Taped):
    """The application of a Cell with bprop on the tape."""

    name = "Cell with bprop"

    def visible(self, attrs: Any) -> int:
        return 1 << 30  # outputs that no gradient reaches have zeros

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> list[Any]:
        arriving = [lent(each) for each in (g if isinstance(g, tuple) else (g,))]
        found, weights = attrs.compute(arriving, [lent(each) for each in ins[:attrs.count]],
                                       [lent(each) for each in outs])
        return [*found, *weights]


_TAPED = _Taped()


# ------------------------------------------------------------------------------------------------- in a graph


def _traced(cell: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The application of a Cell with bprop as a node of the trace."""
    trace = STATE.trace
    inputs, keywords = _inputs(cell, args, kwargs)
    leaves: list[Any] = []
    structure = flatten(inputs, leaves)
    values = [trace.read(leaf) for leaf in leaves]
    record = Record(cell, structure, len(leaves), list(getattr(cell, "internal_params", None) or ()))
    body = record.body = Trace(cell.path, trace)
    record.ins = [value._spec for value in values]
    words = [parameter.name for parameter in inspect.signature(cell.construct).parameters.values()]
    slots = [body.input(name, *spec) for name, spec in zip(names(words, structure[2]), record.ins)]
    record.slots = [slot._entry[0] for slot in slots]
    with body:
        given = rebuild(structure, iter(slots))
        first = len(given) - len(keywords)
        out = cell.construct(*given[:first], **dict(zip(keywords, given[first:])))
        found: list[Any] = []
        record.out = flatten(out, found)
        heads = [body.read(each) for each in found]
        for weight in record.internal:
            body.read(weight)
        assigned = [(parameter, body.values[key]) for key, parameter in body.updated.items()]
    record.outs = [head._spec for head in heads]
    record.heads = [each._entry for each in (*heads, *[value for _, value in assigned])]
    record.captured = list(body.outer)
    held = {node: array for array, node in body.variables.values()}
    record.arrays = [held.get(node) for node in record.captured]
    entries = [value._entry for value in (*values, *[body.outer[node] for node in record.captured])]
    trace.add(CELL, {"record": record}, entries, {"cell": type(cell).__name__})
    node = trace.nodes[-1]
    for i, (parameter, _) in enumerate(assigned, len(heads)):
        trace.assign(parameter, trace.wrap((node, i)))
    results = [trace.wrap((node, i)) for i in range(len(heads))]
    return rebuild(record.out, iter([ops.BlockGrad(each) for each in results] if STATE.blocked else results))


class _Cell(Op):
    """The operator that a Cell with bprop is."""

    def __init__(self) -> None:
        super().__init__("_cell", Schema([], True), ())
        self.late = True

    def complete(self, given: Any) -> Any:
        return given

    def arguments(self, attrs: Any) -> tuple[str, ...]:
        record = attrs["record"]
        return tuple(node.name for node in (*record.slots, *record.captured))

    def outputs(self, attrs: Any) -> tuple[str, ...]:
        return tuple(f"output{i}" for i in range(len(attrs["record"].heads)))

    def visible(self, attrs: Any) -> int:
        return len(attrs["record"].outs)

    @property
    def differentiable(self) -> bool:
        return True

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        return self._through(ins, attrs, inference.infer_shapes)

    def infer_dtypes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        return self._through(ins, attrs, inference.infer_dtypes)

    @staticmethod
    def _through(ins: Any, attrs: Any, rule: Callable) -> tuple[list[Any], list[Any]]:
        """What follows for inputs and outputs from what is known of the inputs, through the body."""
        record = attrs["record"]
        slots = (*record.slots, *record.captured)
        found = rule(Graph(record.heads), {node: value for node, value in zip(slots, ins) if value is not None})
        return ([found[node][0] if node in found else value for node, value in zip(slots, ins)],
                [found[node][i] for node, i in record.heads])

    def inline(self, attrs: Any, inputs: Sequence[Entry], specs: Any) -> tuple[list[Node], list[Entry]]:
        """The nodes of the body over these inputs, and the entries its outputs become."""
        record = attrs["record"]
        became: dict[Entry, Entry] = {(node, 0): entry for node, entry in
                                      zip((*record.slots, *record.captured), inputs)}
        slots = (*record.slots, *record.captured)
        inner = record.body.specs
        if not all(known(spec.shape) for values in inner.values() for spec in values):
            given = {node: specs[source][i] for node, (source, i) in zip(slots, inputs)}
            graph = Graph(record.heads, [*slots, *record.body.nodes])
            inner = inference.infer(graph, {node: spec.shape for node, spec in given.items()},
                                    {node: spec.dtype for node, spec in given.items()})
        nodes = []
        for node in record.body.nodes:
            new = Node(node.op, node.name, node.attrs, [became.get(entry, entry) for entry in node.inputs],
                       node.given, node.tags, node.where)
            specs[new] = inner[node]
            for i in range(len(specs[new])):
                became[node, i] = new, i
            nodes.append(new)
        return nodes, [became.get(entry, entry) for entry in record.heads]

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> list[Any]:
        record = attrs["record"]
        count, visible = record.count, len(record.outs)
        arriving = list(g)[:visible] if isinstance(g, tuple) else [g]
        rest = len(record.captured)
        if record.cell.bprop_debug:
            found, weights = _debugged(record, arriving, ins, outs)
        else:
            found, weights = _grown(record, arriving, ins, outs)
        by_weight = {id(weight): value for weight, value in zip(record.internal, weights)}
        return [*found, *[by_weight.get(id(array)) for array in record.arrays[:rest]]] if count or rest else []


def _grown(record: Record, arriving: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any]
           ) -> tuple[list[Any], list[Any]]:
    """The gradients as further nodes: ``bprop`` is traced."""
    trace = STATE.trace
    if trace is None:  # of an executor: the nodes join those of the gradient
        trace = Trace(record.cell.path, nodes=RULES.made)
        trace.skip()
    trace.settle()

    def value(symbol: Any, spec: Spec) -> Traced:
        entry = symbol._entries[0]
        if entry[0] not in trace.specs:
            trace.specs[entry[0]] = [spec] * max(1, entry[0].count)
        return Traced(trace, entry, spec)

    count = record.count
    before = trace.values
    trace.values = dict(before)
    captured_specs = [record.body.specs[node][0] for node in record.captured]  # type: ignore[union-attr]
    for array, symbol, spec in zip(record.arrays, ins[count:], captured_specs):
        if isinstance(array, NDArray):
            trace.values[id(array)] = value(symbol, spec)
    try:
        with trace:
            found, weights = record.compute([value(*each) for each in zip(arriving, record.outs)],
                                            [value(*each) for each in zip(ins[:count], record.ins)],
                                            [value(*each) for each in zip(outs, record.outs)])
            every = [None if each is None else RuleSymbol((trace.read(each)._entry,)) for each in (*found, *weights)]
    finally:
        trace.values = before
    return every[:len(found)], every[len(found):]


def _debugged(record: Record, arriving: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any]
              ) -> tuple[list[Any], list[Any]]:
    """The gradients from ``bprop`` run as Python on every run of the graph."""
    count, visible = record.count, len(record.outs)
    inner = [i for i, spec in enumerate(record.ins) if spec.dtype is None or spec.dtype.kind == "f"]

    def function(*values: Any) -> list[Any]:
        tops, given, results = values[:visible], values[visible:visible + count], values[visible + count:]
        found, weights = record.compute(tops, given, results)
        return [made(like._ctx.xp.zeros_like(like._data), like._ctx) if each is None else each
                for each, like in zip([*[found[i] for i in inner], *weights],
                                      [*[given[i] for i in inner], *record.internal])]

    specs = [Spec(weight.shape, weight._dt) for weight in record.internal]
    results = call(function, [*arriving, *ins[:count], *outs[:visible]], [*record.outs, *record.ins, *record.outs],
                   [*[record.ins[i] for i in inner], *specs], f"the bprop of Cell {record.cell.path}")
    found: list[Any] = [None] * count
    for i, result in zip(inner, results):
        found[i] = result
    return found, results[len(inner):]


CELL = _Cell()


# ------------------------------------------------------------------------------------------------- checking


def check(cell: Any, inputs: Sequence[Any], eps: float, rtol: float, atol: float, seed: int) -> float:
    """See ``Cell.check_bprop``."""
    wide = [value._cast(np.dtype(np.float64)) if isinstance(value, Manners) and value._dt.kind == "f" else value
            for value in inputs]
    rng = np.random.default_rng(seed)
    out = cell.construct(*wide)
    outs: list[Any] = []
    structure = flatten(out, outs)
    weights = [rng.standard_normal(each.shape) for each in outs]
    douts = [tensor(np.asarray(weight, each._dt)) for weight, each in zip(weights, outs)]
    internal = list(getattr(cell, "internal_params", None) or ())
    with Recording(False, None):
        found, by_weight = _gradients(cell, list(wide), rebuild(structure, iter(map(lent, outs))),
                                      _dout(structure, iter(douts)), internal)

    def loss() -> float:
        results: list[Any] = []
        flatten(cell.construct(*wide), results)
        return float(sum((each.asnumpy().astype(np.float64) * weight).sum() for each, weight in zip(results, weights)))

    leaves: list[Any] = []
    flatten(list(wide), leaves)
    places = [(f"input {i}", leaf, g) for i, (leaf, g) in enumerate(zip(leaves, found)) if leaf._dt.kind == "f"]
    places += [(f"parameter {weight.name}", weight, g) for weight, g in zip(internal, by_weight)]
    if not places:
        raise ArgumentError(f"Cell {cell.path}: check_bprop: none of the inputs is a floating tensor; there is "
                            "nothing to compare")
    worst, wrong = 0.0, []
    for what, leaf, g in places:
        analytic = np.zeros(leaf.shape) if g is None else np.asarray(g.asnumpy(), np.float64)
        step = eps if leaf._dt == np.float64 else 1e-2  # a float32 weight moves in float32
        numeric = _differences(loss, leaf._data, step)
        error = np.abs(analytic - numeric)
        worst = max(worst, float(error.max(initial=0.0)))
        slack = atol + rtol * np.abs(numeric) + (0 if leaf._dt == np.float64 else 1e-2 * (1 + np.abs(numeric)))
        if (error > slack).any():
            at = np.unravel_index(int(np.argmax(error - slack)), error.shape)
            where = f" at {tuple(map(int, at))}" if at else ""
            wrong.append(f"{what}{where}: bprop says {analytic[at]:.6g}, central differences {numeric[at]:.6g}, off "
                         f"by {error[at]:.3g}")
    if wrong:
        raise AssertionError(f"the bprop of Cell {cell.path} is not the gradient of its construct: {'; '.join(wrong)}")
    return worst


def _differences(loss: Callable[[], float], data: np.ndarray, step: float) -> np.ndarray:
    """Central differences of a loss in every element of an array, which is changed and put back."""
    result = np.zeros(data.shape)
    for at in np.ndindex(data.shape):
        before = data[at]
        data[at] = before + step
        above = loss()
        data[at] = before - step
        below = loss()
        data[at] = before
        result[at] = (above - below) / (2 * step)
    return result

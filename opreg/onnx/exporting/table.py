"""The table of translations, and how one node becomes nodes of ONNX.

A row of the table is a function of the graph builder, the use of the operator, and its inputs. Only operators that
cannot be translated otherwise have a row. Elementwise operators are translated from their expressions. Results that
depend only on shapes become constants. Traced and composed operators become functions of the model, with their bodies.
Operators in the shared table of translations to other libraries are translated from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opreg.ndarray.bodies import Traced
from opreg.ndarray.context import cpu
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.traced import BodyTracer
from opreg.symbol import Symbol

from ...core.graph import Entry, Graph, Node
from ...core.mode import Recording
from ...core.op import Op
from ...core.placeholder import placeholder
from ...core.rules import as_list, enter_under
from ...core.spec import Shape, Spec, is_floating, reduced_axes
from ...elementwise.expression import Expression
from ...elementwise.rows import RowLayout
from ...interop import translation
from ...interop.translation import Untranslatable
from ..package import onnx
from .builder import Builder, Value, dynamic

if TYPE_CHECKING:
    from onnx import FunctionProto

__all__ = ["DOMAIN", "TABLE", "Use", "apply", "says", "walk"]


#: The ONNX domain of functions and nodes that are operators of this library.
DOMAIN = "opreg"

#: Rows by operator name.
TABLE: dict[str, Callable[..., Any]] = {}

#: Operators whose attributes are shapes, which may differ between sample sizes: their rows use the output shapes.
_SHAPED = frozenset({"Reshape", "_np_reshape", "_npx_reshape", "broadcast_to", "_np_broadcast_to", "broadcast_axis",
                     "_zeros", "_ones", "_full", "_reduce_like"})


class Use(NamedTuple):
    """One use of an operator.

    Attributes
    ----------
    op : Op
        The operator.
    attrs : mapping
        Its attributes.
    outs : list of Value
        Shapes and dtypes of its outputs.
    name : str
        Name of its node.
    is_train : bool
        Whether it is in training mode, which a layer of a Cell may be even in inference.
    """

    op: Op
    attrs: Mapping[str, Any]
    outs: list[Value]
    name: str
    is_train: bool

    @property
    def out(self) -> Value:
        """The first output."""
        return self.outs[0]


#: Enters a translation by names: ``f(g, use, *inputs)`` returns the output, or a list of the first outputs.
says = enter_under(TABLE)


def walk(g: Builder, nodes: Sequence[Sequence[Node]], values: dict[Entry, Value], heads: Sequence[Entry],
         known_shapes: Sequence[Mapping[Node, list[Shape | None]]] | None = None) -> list[Value]:
    """Translate a graph.

    Parameters
    ----------
    g : Builder
        The builder that nodes are added to.
    nodes : sequence of sequences of Node
        Nodes in topological order, each once per sample size; they differ only in attributes.
    values : dict of entry to value
        Values of the needed variables; those of other entries are added. Entries belong to the first node of each
        sequence.
    heads : sequence of entry
        The entries to compute.
    known_shapes : sequence of dicts of node to shapes, optional
        Known output shapes of nodes, for each sample size.
    """
    for alike in nodes:
        node = alike[0]
        if node.op is None:
            continue
        unregistered = placeholder(node)
        if unregistered is not None:
            raise unregistered.missing()
        ins = [values.get(entry) for entry in node.inputs]
        try:
            outs = apply(g, node.op, [each.attrs for each in alike], ins, node.name,
                         node.in_training(g.model.training),
                         None if known_shapes is None else [shapes[each] for shapes, each in zip(known_shapes, alike)])
        except Untranslatable as error:
            raise _with_innermost_node(error, node) from None
        for i, out in enumerate(outs):
            values[node, i] = out
    missing = next((entry for entry in heads if entry not in values), None)
    if missing is not None:
        raise _with_innermost_node(Untranslatable(f"its output {missing[1]} has no form in ONNX"), missing[0])
    return [values[entry] for entry in heads]


def _with_innermost_node(error: Untranslatable, node: Node) -> Untranslatable:
    """The error with the innermost node that it concerns."""
    if getattr(error, "names_node", False):
        return error
    new = Untranslatable(f"{node.describe()}: {error}")
    new.names_node = True  # type: ignore[attr-defined]  # of this module
    return new


def apply(g: Builder, op: Op, attrs: Sequence[Mapping[str, Any]], ins: Sequence[Value | None], name: str,
          is_train: bool = False, known_shapes: Sequence[list[Shape | None]] | None = None) -> list[Value]:
    """Translate one use of an operator; attributes and known output shapes are given for each sample size.

    Raises
    ------
    Untranslatable
        If it has no translation.
    """
    use = _use(g, op, attrs, ins, name, is_train, known_shapes)
    if op.name not in _SHAPED and not all(_are_alike(each, attrs[0]) for each in attrs[1:]) and not op.traits.traced:
        raise Untranslatable(f"operator {op.name} computes with the length of a dynamic dimension")
    with g.of(name):
        result = _user_translation(g, use, attrs, ins)
        return [_fit_to_output(g, value, out) for value, out in zip(result, use.outs)]


def _are_alike(attrs: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether attributes are equal; graphs are, whose nodes are."""
    def form(graph: Graph) -> list[Any]:
        places = {node: place for place, node in enumerate(graph.nodes)}
        return [(node and node.op, [(places[source], i) for source, i in entries])
                for node, entries in (*[(node, node.inputs) for node in places], (None, graph.heads))]

    def equal(value: Any, other: Any) -> bool:
        if isinstance(value, tuple) and isinstance(other, tuple) and len(value) == len(other):
            return all(map(equal, value, other))
        if isinstance(value, np.ndarray):
            return isinstance(other, np.ndarray) and np.array_equal(value, other)
        if not (isinstance(value, Symbol) and isinstance(other, Symbol)):
            return value is other or bool(value == other)
        one, two = value._graph(), other._graph()
        return form(one) == form(two) and all(_are_alike(a.attrs, b.attrs) for a, b in zip(one.nodes, two.nodes))

    return attrs.keys() == others.keys() and all(equal(value, others[name]) for name, value in attrs.items())


def _use(g: Builder, op: Op, attrs: Sequence[Mapping[str, Any]], ins: Sequence[Value | None], name: str,
         is_train: bool, known_shapes: Sequence[list[Shape | None]] | None) -> Use:
    """The use, with shapes and dtypes of the outputs for each sample size."""
    shapes: list[Sequence[Shape | None]] = []
    dtypes: Sequence[np.dtype] = ()
    for size, attribute in enumerate(attrs):
        nothing: list[Any] = [None] * len(op.signature.outputs(attribute))
        _, found = op.infer_shapes([None if x is None else x.shapes[size] for x in ins],
                                   list(nothing if known_shapes is None else known_shapes[size]), attribute)
        _, kinds = op.infer_dtypes([None if x is None else x.dtype for x in ins], nothing, attribute)
        dtypes = [kind or np.dtype(np.float32) for kind in kinds]
        shapes.append(found)
    return Use(op, attrs[0], [Value(g, "", each, dtype) for each, dtype in zip(zip(*shapes), dtypes)], name,
               is_train)


def _fit_to_output(g: Builder, value: Value, out: Value) -> Value:
    """A result in the dtype and shape of the output."""
    if value.dtype != out.dtype:
        value = g.cast(value, out.dtype)
    before, after = value.known_shape, out.known_shape
    if before is not None and after is not None and len(before) != len(after):
        value = g.reshape(value, after)
    elif not all(shape is None or right is None or shape == right for shape, right in zip(value.shapes, out.shapes)):
        # an unknown length counts as equal to any
        raise Untranslatable(f"its shape would be {after}, expected {before}")
    if after is not None:
        value.shapes = out.shapes
    return value


def _user_translation(g: Builder, use: Use, attrs: Sequence[Mapping[str, Any]], ins: Sequence[Any]) -> Sequence[Value]:
    op = use.op
    if op.rules.onnx is not None:
        return as_list(op.rules.onnx(g, use, *ins))
    if hasattr(getattr(attrs[0], "prop", None), "to_onnx"):
        return as_list(attrs[0].prop.to_onnx(g, use, *ins))  # type: ignore[attr-defined]  # a use of a Prop
    if op.where is not None:
        _need_all(use, ins)
        return _function(g, use, attrs, ins) if op.traits.traced else _foreign(g, use, ins)
    if op.rules.body is not None:
        return _export_body(g, use, attrs, ins)
    reasons: list[str] = []
    for way in (_export_by_row, _export_value, _export_expression, _export_loop, _export_by_dialect):
        try:
            result = way(g, use, ins)
        except Untranslatable as error:
            reasons.append(str(error))
            continue
        if result is not None:
            return result
    composed = op.traits.traced
    try:
        _need_all(use, ins)
        return _function(g, use, attrs, ins, kernel=not composed)
    except Untranslatable as error:
        if composed or getattr(error, "names_node", False):
            reasons.append(str(error))
    raise Untranslatable("; ".join(filter(None, reasons)) or "ONNX has no such operator. Give the model's graph "
                         "without it, or an operator of your own with a translation, in its place")


def _need_all(use: Use, ins: Sequence[Any]) -> None:
    """Refuse a use one of whose inputs is a variable without an example and without a value."""
    for name, value in zip(use.op.signature.inputs(use.attrs), ins):
        if value is None:
            raise Untranslatable(f"its input {name!r} has neither an example nor a value")


def _export_body(g: Builder, use: Use, attrs: Sequence[Mapping[str, Any]], ins: Sequence[Any]) -> Sequence[Value]:
    """Export the nodes of the body of an application, such as a call of a Cell with bprop."""
    rule: Any = use.op.rules.body
    bodies = [rule(each, ins) for each in attrs]
    graphs = [Graph(heads) for heads, _ in bodies]
    values = {(node, 0): value for node, value in bodies[0][1].items()}
    return walk(g, list(zip(*[graph.nodes for graph in graphs])), values, graphs[0].heads)


def _export_by_row(g: Builder, use: Use, ins: Sequence[Any]) -> Sequence[Value] | None:
    row = TABLE.get(use.op.name)
    return None if row is None else as_list(row(g, use, *ins))


def _export_value(g: Builder, use: Use, ins: Sequence[Any]) -> Sequence[Value] | None:
    """Evaluate a result that depends only on shapes, as a constant."""
    op = use.op
    unread = all(i in op.traits.unread or (x is not None and x.array is not None) for i, x in enumerate(ins))
    if op.traits.random or op.rules.data_dependent or not unread:
        return None
    if any(x is None or not _is_fixed(x.known_shape) for x in ins) or not all(
            _is_fixed(out.known_shape) for out in use.outs):
        return None
    if not ins:
        kernel = op.kernels[0]
        return None if kernel.bound else [g.constant(each) for each in as_list(
            kernel.rule.function(np, **kernel.rule.select(use.attrs)))]
    arrays = [NDArray(np.zeros(x.shape, x.dtype) if x.array is None else x.array, cpu()) for x in ins]
    result: Any = op(*arrays, **use.attrs)
    return [g.constant(each.asnumpy()) for each in (result if isinstance(result, (list, tuple)) else [result])]


def _is_fixed(shape: Shape | None) -> bool:
    return shape is not None and not any(map(dynamic, shape))


def _export_expression(g: Builder, use: Use, ins: Sequence[Any]) -> Sequence[Value] | None:
    """Translate an elementwise operator from its expression."""
    attrs = use.attrs
    if use.op.rules.expression is None or len(use.outs) != 1:
        return None
    if "is_int" in attrs and attrs["is_int"] and not is_floating(ins[0].dtype) and math.isfinite(attrs["scalar"]):
        attrs = {**attrs, "scalar": float(math.trunc(attrs["scalar"]))}  # with integers the scalar is an integer, too
    expression = use.op.rules.expression(attrs)
    if expression is None:
        return None
    if not is_floating(ins[0].dtype) and attrs.get("is_int") is False:
        ins = [g.cast(ins[0], np.float64)]
    return [evaluate(g, expression, ins, use.out)]


def _export_loop(g: Builder, use: Use, ins: Sequence[Any]) -> Sequence[Value] | None:
    """Translate an operator that is a loop with a value for each element."""
    described = None if use.op.rules.sets is None else use.op.rules.sets(use.attrs)
    if described is None or described.rows.results != (RowLayout.ELEMENT,) or not described.keepdims:
        return None
    rank = len(ins[described.rows.inputs.index(RowLayout.ELEMENT)].shape)
    single = described.scalar and described.axis == ()  # each element is a set of its own
    axes = () if single else reduced_axes(described.axis, described.exclude, rank)
    return [evaluate(g, described.rows.expression, ins, use.out, axes)]


#: ONNX's reductions, by the names of those of loops.
_REDUCERS = {"row_sum": "Sum", "row_max": "Max", "row_min": "Min", "row_product": "Prod"}


def evaluate(g: Builder, expression: Expression, ins: Sequence[Value], out: Value, axes: Sequence[int] = ()) -> Value:
    """The value of an expression, instruction by instruction, as ``Expression`` evaluates it on arrays; its reductions
    are over ``axes``."""
    dtype = ins[0].dtype
    is_integer = not is_floating(dtype)
    if is_integer:
        wide = np.dtype(np.int64 if expression.exact else np.float64)
        ins = [g.cast(x, wide) for x in ins]
        if expression.exact and len(expression.code) == 1 and expression.code[0].prim.integer_function is not None:
            return g.cast(_integer_instruction(g, expression, ins, out), out.dtype)
    registers: list[Value] = list(ins)
    for prim, args in expression.code:
        if prim.name in _REDUCERS and type(args[0]) is int:
            registers.append(g.reduce(_REDUCERS[prim.name], registers[args[0]], axes))
            continue
        if prim.dtype is None and prim.name not in g.primitives:
            raise Untranslatable(f"ONNX has no operator {prim.name}")
        like = next((registers[arg] for arg in args if type(arg) is int), registers[0])
        values = [registers[arg] if type(arg) is int else g.number(arg, like) for arg in args]
        registers.append(g.primitives[prim.name](g, *values))
    result = expression.result
    value = registers[result] if type(result) is int else g.constant_like(result, registers[0], registers[0].dtype)
    return g.cast(value, out.dtype)


def _integer_instruction(g: Builder, expression: Expression, ins: Sequence[Value], out: Value) -> Value:
    """One instruction that has a special form for integers."""
    prim, args = expression.code[0]
    values = [ins[arg] if type(arg) is int else g.number(arg, ins[0]) for arg in args]
    return g.primitives[f"whole {prim.name}"](g, *values, out.dtype)


class _BuilderDialect:
    """The builder as a dialect of the shared translations: instructions are functions of values."""

    def __init__(self, g: Builder):
        self.g = g
        self.primitives = {name: (lambda *xs, rule=rule: rule(g, *xs)) for name, rule in g.primitives.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.g, name)


def _export_by_dialect(g: Builder, use: Use, ins: Sequence[Any]) -> Sequence[Value] | None:
    """Translate by the rules shared with other libraries; None if there is none."""
    rule = translation.TABLE.get(use.op.name)
    if rule is None:
        return None
    outs = [Spec(out.known_shape, out.dtype) for out in use.outs]
    named = {"name": use.op.name} if rule in translation.NAMED else {}
    return as_list(rule(_BuilderDialect(g), use.attrs, outs, *ins, **named))


# ------------------------------------------------------------------------------------------------- functions


def _traced_kernel(op: Op, attrs: Any, ins: Sequence[Spec]) -> Traced:
    """The trace of a reference kernel, if it is plain NumPy and writes to no array."""
    kernel = op.kernels[0]
    if kernel.bound or op.traits.mutates or op.traits.random or op.traits.mode:
        raise Untranslatable("")
    body = BodyTracer(op.name, {}, cpu())
    slots = [body.variable(name, spec) for name, spec in zip(op.signature.inputs(attrs), ins)]
    try:
        with Recording(False, False):
            result = kernel.rule.function(np, *[body.value(slot) for slot in slots], **kernel.rule.select(attrs))
        heads = [body.entry(each) for each in as_list(result)]
    except Exception:  # any failure, as for a function without an operator
        raise Untranslatable("") from None
    if any(node.op is op for node in body.nodes):
        raise Untranslatable("")
    return Traced(body, slots, heads)


def _function(g: Builder, use: Use, attrs: Sequence[Mapping[str, Any]], ins: Sequence[Any], kernel: bool = False
              ) -> Sequence[Value]:
    """A traced or composed operator as a function of the model, or inlined if the opset has no functions; with
    ``kernel`` an operator whose reference kernel can be traced."""
    op = use.op
    traces = []
    for size, attribute in enumerate(attrs):
        specs = [Spec(x.shapes[size], x.dtype) for x in ins]
        outs = [Spec(out.shapes[size], out.dtype) for out in use.outs]
        traces.append(_traced_kernel(op, attribute, specs) if kernel else translation.trace_of(
            op, attribute, specs, outs, use.is_train))
    first = traces[0]
    if any([node.op for node in trace.body.nodes] != [node.op for node in first.body.nodes] for trace in traces):
        raise Untranslatable(f"the body of {op.name} differs with the length of a dynamic dimension")
    nodes = list(zip(*[trace.body.nodes for trace in traces]))
    if g.opset < 15:
        values = dict(zip(first.slots, ins))
        values.update({(node, 0): g.constant(array.asnumpy()) for node, array in first.body.arrays.items()})
        return [_fit_to_output(g, head, out) for head, out in zip(walk(g, nodes, values, first.heads), use.outs)]
    inner = Builder(g.model, function=True)
    inner.primitives = g.primitives
    names = [inner.names(name) for name in (*op.signature.arguments(use.attrs), *op.signature.auxiliary(use.attrs))]
    inner.inputs = [Value(inner, name, x.shapes, x.dtype) for name, x in zip(names, ins)]
    values = dict(zip(first.slots, inner.inputs))
    values.update({(node, 0): inner.constant(array.asnumpy()) for node, array in first.body.arrays.items()})
    heads = [_fit_to_output(inner, head, out) for head, out in zip(walk(inner, nodes, values, first.heads), use.outs)]
    heads = inner.ends(heads)
    name = _register_function(g, op.op_type or op.name, inner, names, [head.name for head in heads])
    return g.custom(DOMAIN, name, ins, [(out.shapes, out.dtype) for out in use.outs])


def _register_function(g: Builder, name: str, inner: Builder, ins: Sequence[str], outs: Sequence[str]) -> str:
    """The name of a function in the model; equal functions share one."""
    functions = g.model.functions
    g.model.domains.setdefault(DOMAIN, 1)
    count, tried = 1, name
    while True:
        function = onnx("helper").make_function(DOMAIN, tried, list(ins), list(outs), inner.nodes, g.model.opsets)
        registered = functions.get((DOMAIN, tried))
        if registered is None or _equal_functions(registered, function):
            functions.setdefault((DOMAIN, tried), function)
            return tried
        count += 1
        tried = f"{name}_{count}"


def _equal_functions(left: FunctionProto, right: FunctionProto) -> bool:
    return (list(left.input), list(left.output), list(left.node)) == (
        list(right.input), list(right.output), list(right.node))


def _foreign(g: Builder, use: Use, ins: Sequence[Any]) -> Sequence[Value]:
    """An operator that runs as Python, as a node of a separate domain with its attributes."""
    schema = use.op.signature.schema
    attrs = {key: _node_attribute(value) for key, value in dict(use.attrs).items()
             if value is not None or (key in schema and schema[key].default is not None)}
    return g.custom(DOMAIN, use.op.op_type or use.op.name, ins, [(out.shapes, out.dtype) for out in use.outs], **attrs)


def _node_attribute(value: Any) -> Any:
    """An attribute in a form that a node can store: numbers, text, and lists of one of these; others become text."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, float, str)):
        return value
    if isinstance(value, (tuple, list)) and value and len({type(each) for each in value}) == 1 and isinstance(
            value[0], (int, float, str)):
        return list(value)
    return str(value)

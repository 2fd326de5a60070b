"""ONNX graphs, checked once and then run over values: tensors that compute, traced tensors that build a symbol, and
NumPy arrays, which are known.

Values that depend only on constants are known, too, which folds constants. A node is applied by the row of its
operator, by an operator registered under its name, or by a function, of the model or of ONNX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.cells.state import STATE
from opreg.cells.tensor import Tensor
from opreg.cells.tensor_base import TensorBase
from opreg.cells.traced_tensor import TracedTensor
from opreg.core.op import Op
from opreg.core.placeholder import Placeholder, lookup
from opreg.core.registry import ops
from opreg.core.spec import ANY, Shape, is_floating, is_known
from opreg.core.tracing import TraceError
from opreg.core.value import Value
from opreg.errors import ArgumentError, DTypeError, FileFormatError, OpError, ShapeError, did_you_mean, note

from ..package import onnx
from . import rows
from .open_lengths import is_open, numbers_of
from .rows import Row
from .tensors import array_of, computes, dtype_of, number_of, sparse_array_of

__all__ = ["Model", "Graph", "Node", "Values", "UnknownNumbers", "to_arrays", "ordinary", "registered"]

#: The value of an edge: a NumPy array, a tensor, a list of these, or None for an omitted input.
Values: TypeAlias = list[Any]

_DEEPEST = 32  # depth of nested graphs and functions
_IGNORED = frozenset(("consumed_inputs",))  # attributes of the first opsets that do not affect results

#: Errors of Python and NumPy from inconsistent attributes and inputs of a node.
_CONTRADICTED = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


class UnknownNumbers(OpError):
    """A node needs values that are known only when the graph runs."""

    @classmethod
    def of(cls, operator: str, needs: str) -> UnknownNumbers:
        """The error that an operator needs something of its inputs."""
        return cls(f"operator {operator} needs {needs}: a symbol cannot have them. import_to_cell computes such models")


def ordinary(domain: str) -> str:
    """A domain as rows name it; ONNX's own domain has two names.

    Examples
    --------
    >>> ordinary("ai.onnx"), ordinary("ai.onnx.ml")
    ('', 'ai.onnx.ml')
    """
    return "" if domain == "ai.onnx" else domain


def to_arrays(value: Any) -> Any:
    """A value with NumPy arrays in place of tensors."""
    if isinstance(value, list):
        return [to_arrays(part) for part in value]
    if isinstance(value, np.generic):
        return np.asarray(value)
    return value.asnumpy() if isinstance(value, TensorBase) else value


def _attribute_value(value: Any) -> Any:
    """An attribute; for a float32, the shortest decimal that rounds to it.

    Examples
    --------
    >>> _attribute_value(float(np.float32(0.1)))
    0.1
    """
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _may_train(value: np.ndarray) -> bool:
    """Whether a constant may be a weight: it has several floating-point elements."""
    return value.size > 1 and computes(value.dtype) and is_floating(value.dtype)


def registered(domain: str, op_type: str) -> Op | None:
    """The operator registered under a node's domain and type, or under its type alone."""
    for name in (f"{domain}::{op_type}", f"{domain}.{op_type}", op_type):
        op = lookup("Custom", name) or lookup(name, None)
        if op is not None:
            return op
    return None


class Model:
    """A model from a file: its opsets, functions and graph.

    Parameters
    ----------
    proto : onnx.ModelProto
        The model.
    name : str
        Name for error messages.

    Attributes
    ----------
    unrolled : int
        Nodes that the trace under way has unrolled loops to.
    """

    def __init__(self, proto: Any, name: str):
        self.proto, self.name, self.unrolled = proto, name, 0
        self.opsets = {ordinary(entry.domain): entry.version for entry in proto.opset_import}
        if not proto.HasField("graph"):
            raise FileFormatError(f"{name}: the model has no graph")
        if not self.opsets:
            self.opsets[""] = 1
        self.functions = {(ordinary(function.domain), function.name, getattr(function, "overload", "")): function
                          for function in proto.functions}
        self.graph = Graph(proto.graph, self, self.opsets, frozenset(), {}, 0)

    def fail(self, place: str, what: str) -> FileFormatError:
        """The error for invalid content of the file."""
        return FileFormatError(f"{self.name}: {place}: {what}" if place else f"{self.name}: {what}")

    def texts(self, *names: str | bytes) -> None:
        """Refuse names that are not text, which protobuf returns as bytes."""
        for name in names:
            if isinstance(name, bytes):
                raise self.fail("", f"the name {name!r} is not UTF-8")


class Graph:
    """The graph of a model, of a branch or loop, or of a function: its nodes in order.

    Attributes
    ----------
    initializers : dict of str to np.ndarray
        Initializers, and tensors of ``Constant`` nodes that may be weights. The graph of the model also includes those
        of branches and loops, if no other value has their name.
    home : dict of str to np.ndarray
        The initializers of the graph of the model; those of the function in a function.
    """

    def __init__(self, proto: Any, model: Model, opsets: Mapping[str, int], outside: frozenset[str],
                 bound: Mapping[str, Any], depth: int, home: dict[str, np.ndarray] | None = None):
        if depth > _DEEPEST:
            raise model.fail("", f"graphs and functions nested {depth} deep")
        self.model, self.opsets, self.bound, self.depth = model, opsets, bound, depth
        function = not hasattr(proto, "initializer")
        self.initializers: dict[str, np.ndarray] = {}
        self.home = self.initializers if home is None else home
        try:
            for tensor in () if function else proto.initializer:
                self.initializers[tensor.name] = array_of(tensor)
            for sparse in () if function else proto.sparse_initializer:
                self.initializers[sparse.values.name] = sparse_array_of(sparse)
        except FileFormatError as error:
            raise model.fail("", str(error)) from None
        self.infos = {} if function else {info.name: info for info in proto.input}
        names = list(proto.input) if function else [info.name for info in proto.input]
        #: Names of the inputs without an initializer.
        self.inputs = [name for name in names if name not in self.initializers]
        #: Names of all inputs, those with an initializer included.
        self.every_input = names
        self.outputs = list(proto.output) if function else [info.name for info in proto.output]
        self.output_infos = () if function else tuple(proto.output)
        model.texts(*names, *self.outputs, *self.initializers)
        if len(set(names)) != len(names):
            raise model.fail("", "two inputs of a graph have one name")
        self.known = {*outside, *names, *self.initializers}
        if home is not None:
            for name in [name for name, value in self.initializers.items() if _may_train(value)]:
                if name not in home and name not in outside and name not in names:
                    home[name] = self.initializers.pop(name)
        self.nodes: list[Node] = []
        for i, each in enumerate(proto.node):
            node = Node(each, i, self)
            for name in node.inputs:
                if name and name not in self.known:
                    raise model.fail(node.title, f"its input {name!r} is neither an output of an earlier node nor an "
                                                 f"input or initializer")
            for name in node.outputs:
                if name and name in self.known and name not in outside:
                    raise model.fail(node.title, f"its output {name!r} has the name of another value")
            self.known.update(filter(None, node.outputs))
            value = node.attributes.get("value") if node.op_type == "Constant" and not node.domain else None
            if isinstance(value, np.ndarray) and _may_train(value) and node.outputs[0] not in self.home:
                self.home[node.outputs[0]] = value
            else:
                self.nodes.append(node)
        for name in self.outputs:
            if name not in self.known and not function:  # functions have outputs that not every call reads
                raise model.fail("", f"the output {name!r} of a graph is not computed by any of its nodes")
        last = {name: i for i, node in enumerate(self.nodes) for name in node.reads()}
        #: For each node the values that no later node reads.
        self.dead: list[list[str]] = [[] for _ in self.nodes]
        for name, i in last.items():
            if name not in self.outputs and name not in self.initializers and name not in outside:
                self.dead[i].append(name)

    def run(self, inputs: Sequence[Any], outside: Mapping[str, Any] | None = None,
            parameters: Mapping[str, Any] | None = None, every: bool = False) -> Values:
        """The outputs for values of the inputs, with ``parameters`` in place of initializers.

        With ``every``, inputs with an initializer are given, too.
        """
        values: dict[str, Any] = dict(outside or {})
        values.update(self.initializers)
        values.update(parameters or {})
        values.update(zip(self.every_input if every else self.inputs, inputs))
        for node, dead in zip(self.nodes, self.dead):
            results = node.run([values[name] if name else None for name in node.inputs], values)
            for name, result in zip(node.outputs, results):
                if name:
                    values[name] = result
            for name in dead:
                values.pop(name, None)
        return [values.get(name) for name in self.outputs]


class Node:
    """A node: its operator, and its attributes as Python values.

    Attributes
    ----------
    inputs, outputs : list of str
        Names of values; empty for an omitted optional one.
    attributes : dict
        Attributes in the file, with graphs as ``Graph`` and tensors as NumPy arrays.
    opset : int
        The version of the operator's domain.
    """

    def __init__(self, proto: Any, number: int, graph: Graph):
        self.proto, self.graph, self.model = proto, graph, graph.model
        graph.model.texts(proto.domain, proto.op_type, proto.name, *proto.input, *proto.output, *[
            name for each in proto.attribute for name in (each.name, each.ref_attr_name)])
        self.domain, self.op_type = ordinary(proto.domain), proto.op_type
        self.name = proto.name or f"{proto.op_type}{number}"
        self.title = f"node {self.name!r} ({self.op_type})"
        self.inputs, self.outputs = list(proto.input), list(proto.output)
        while self.inputs and not self.inputs[-1]:
            self.inputs.pop()
        self.attributes: dict[str, Any] = {}
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in graph.bound:
                    self.attributes[attribute.name] = graph.bound[attribute.ref_attr_name]
            else:
                try:
                    self.attributes[attribute.name] = self._value(attribute)
                except FileFormatError as error:
                    note(error, f"{self.model.name}: {self.title}, attribute {attribute.name!r}")
                    raise
        self._apply: Callable[[Sequence[Any], Mapping[str, Any]], Any] | None = None
        self._kind = ""
        self._functions: dict[Any, Graph] = {}

    @property
    def opset(self) -> int:
        """The version of the operator's domain."""
        opset = self.graph.opsets.get(self.domain)
        if opset is None:
            opset = self.model.opsets.get(self.domain, 1)
        return opset

    def _value(self, attribute: Any) -> Any:
        kind = attribute.type or next((number for field, number in (
            ("f", 1), ("i", 2), ("s", 3), ("t", 4), ("g", 5)) if attribute.HasField(field)), 0)
        if kind in (1, 2):
            return attribute.f if kind == 1 else attribute.i
        if kind == 3:
            return attribute.s.decode(errors="surrogateescape")
        if kind == 4:
            return array_of(attribute.t)
        if kind == 5:
            return self._body(attribute.g)
        if kind in (6, 7):
            return list(attribute.floats if kind == 6 else attribute.ints)
        if kind == 8:
            return [text.decode(errors="surrogateescape") for text in attribute.strings]
        if kind == 9:
            return [array_of(tensor) for tensor in attribute.tensors]
        if kind == 10:
            return [self._body(graph) for graph in attribute.graphs]
        if kind == 11:
            return sparse_array_of(attribute.sparse_tensor)
        if kind == 13:
            return attribute.tp
        raise FileFormatError(f"an attribute of an unknown kind, {kind}")

    def _body(self, proto: Any) -> Graph:
        graph = self.graph
        return Graph(proto, self.model, graph.opsets, frozenset(graph.known), graph.bound, graph.depth + 1, graph.home)

    def reads(self) -> list[str]:
        """Names that the node reads: its inputs, and outer values that its bodies read."""
        names = [name for name in self.inputs if name]
        for body in self.bodies():
            names += [name for node in body.nodes for name in node.reads()] + body.outputs
        return names

    def bodies(self) -> list[Graph]:
        """Graphs among its attributes."""
        return [body for value in self.attributes.values() for body in (value if isinstance(value, list) else [value])
                if isinstance(body, Graph)]

    def kinds(self) -> dict[str, set[str]]:
        """How the node and its bodies read each value, by name: ``value``, ``host``, ``given`` or ``state``."""
        found: dict[str, set[str]] = {}
        row = rows.find(self.domain, self.op_type, self.opset)
        if (self.domain, self.op_type, getattr(self.proto, "overload", "")) in self.model.functions:
            row = None
        for place, name in enumerate(self.inputs):
            kind = "value" if row is None else "state" if place in row.states else row.kind(place) or "value"
            found.setdefault(name, set()).add(kind)
        for body in self.bodies():
            for node in body.nodes:
                for name, kinds in node.kinds().items():
                    found.setdefault(name, set()).update(kinds)
        return found

    @property
    def draws(self) -> bool:
        """Whether two runs may differ."""
        row = rows.find(self.domain, self.op_type, self.opset)
        return row is None or row.draws

    @property
    def compares(self) -> bool:
        """Whether its outputs are bool or integers, through which no gradient passes."""
        if self.op_type == "Cast" and "to" in self.attributes:
            return not is_floating(dtype_of(self.attributes["to"]))
        schema = self._schema()
        return schema is not None and all(output.types == {"tensor(bool)"} for output in schema.outputs)

    # ------------------------------------------------------------------------------------------- running

    def run(self, inputs: Sequence[Any], outside: Mapping[str, Any]) -> Values:
        """The outputs for values of the inputs; bodies look up values of ``outside`` by name."""
        try:
            if self._apply is None:
                self._apply = self._row_of_node()
            results = self._apply(inputs, outside)
        except Exception as error:
            note(error, f"{self.model.name}: {self.title}")
            raise
        results = list(results) if isinstance(results, tuple) else [results]
        results = [np.asarray(result) if isinstance(result, np.generic) else result for result in results]
        if len(results) < len([name for name in self.outputs if name]) and "" not in self.outputs:
            raise self.model.fail(self.title, f"{len(self.outputs)} outputs are named, the operator has {len(results)}")
        return results

    def _row_of_node(self) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
        """The row that applies this node."""
        function = self.model.functions.get((self.domain, self.op_type, getattr(self.proto, "overload", "")))
        if function is not None:
            return self._apply_function(function)
        result = rows.find(self.domain, self.op_type, self.opset)
        if result is not None:
            return self._apply_row(result)
        if self.domain:
            op = registered(self.domain, self.op_type)
            if op is not None:
                return self._apply_operator(op)
        schema = self._schema()
        if schema is not None and (schema.has_function or schema.has_context_dependent_function):
            return self._call_schema(schema)
        return self._apply_placeholder(schema)

    def _schema(self) -> Any:
        defs = onnx("defs")
        try:
            return defs.get_schema(self.op_type, self.opset, self.domain)
        except Exception:  # a helper function that the package does not export
            return None

    def _apply_operator(self, op: Op) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
        def apply(inputs: Sequence[Any], outside: Mapping[str, Any]) -> Any:
            attrs = {key: tuple(map(_attribute_value, value)) if isinstance(value, list) else _attribute_value(value)
                     for key, value in self.attributes.items()}
            results = op(*[self.lift(value) for value in inputs], **attrs)
            return tuple(results) if isinstance(results, (list, tuple)) else results

        return apply

    def _apply_placeholder(self, schema: Any) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
        texts = {key: str(value) for key, value in self.attributes.items()}
        stored = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        near = did_you_mean(self.op_type, rows.known_operators(self.domain))

        def apply(inputs: Sequence[Any], outside: Mapping[str, Any]) -> Any:
            values = [self.lift(value) for value in inputs if value is not None]
            stands = Placeholder(stored, None, self.name, self.model.name)
            if STATE.trace is None or not STATE.trace.root.symbolic:
                raise ArgumentError(f"the operator {stored!r}, opset {self.opset}, cannot be run. {near}")
            results = STATE.trace.call(stands.operator(len(values), 0, len(self.outputs)), values, texts)
            return tuple(results) if isinstance(results, (list, tuple)) else results

        return apply

    def _apply_function(self, function: Any) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
        """The node as a call of a function of the model."""
        bound = {each.name: self._value(each) for each in getattr(function, "attribute_proto", ())}
        bound.update(self.attributes)
        opsets = {ordinary(entry.domain): entry.version for entry in function.opset_import}
        body = Graph(function, self.model, {**self.graph.opsets, **opsets}, frozenset(), bound, self.graph.depth + 1)
        return lambda inputs, outside: self._call_body(body, inputs)

    def _call_body(self, body: Graph, inputs: Sequence[Any]) -> Any:
        padded = [*inputs, *[None] * (len(body.inputs) - len(inputs))]
        results = body.run(padded)
        return tuple(results[:max(len(self.outputs), 1)])

    def _call_schema(self, schema: Any) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
        """The node as a call of the function by which ONNX defines its operator."""
        defaults = {name: self._value(attribute.default_value) for name, attribute in schema.attributes.items()
                    if attribute.default_value.type}
        bound = {**defaults, **self.attributes}

        def apply(inputs: Sequence[Any], outside: Mapping[str, Any]) -> Any:
            if any(isinstance(value, list) for value in inputs):  # the package's functions assume tensors
                raise ArgumentError(f"operator {self.op_type} is not supported for sequences")
            types = [self._type(value) for value in inputs]
            key = tuple(each.SerializeToString() for each in types)
            body = self._functions.get(key)
            if body is None:
                function = self._schema_function(schema, list(key))
                opsets = {ordinary(entry.domain): entry.version for entry in function.opset_import}
                body = self._functions[key] = Graph(function, self.model, {**self.graph.opsets, **opsets}, frozenset(),
                                                    bound, self.graph.depth + 1)
            return self._call_body(body, inputs)

        return apply

    def _schema_function(self, schema: Any, types: list[bytes]) -> Any:
        """The function by which ONNX defines an operator, for these input types."""
        protos = onnx()
        if schema.has_function:
            fit = [version for version in schema.function_opset_versions if version <= self.opset]
            text = schema.get_function_with_opset_version(max(fit or schema.function_opset_versions))
        else:
            fit = [version for version in schema.context_dependent_function_opset_versions if version <= self.opset]
            version = max(fit or schema.context_dependent_function_opset_versions)
            plain = protos.NodeProto()
            plain.CopyFrom(self.proto)
            text = schema.get_context_dependent_function_with_opset_version(version, plain.SerializeToString(), types)
        function = protos.FunctionProto()
        function.ParseFromString(text)
        return function

    def _type(self, value: Any) -> Any:
        """The type of a value, in ONNX's notation."""
        result = onnx().TypeProto()
        if isinstance(value, (np.ndarray, Value)):
            result.tensor_type.elem_type = number_of(self.dtype(value))
            result.tensor_type.shape.SetInParent()
            for length in self.lengths(value):
                dim = result.tensor_type.shape.dim.add()
                if length is not ANY:
                    dim.dim_value = length
        return result

    def _apply_row(self, row: Row) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
        """The node applied by the row of its operator."""
        keywords: dict[str, Any] = {}
        for name, default in row.attributes.items():
            if name in self.attributes:
                keywords[name] = self.attributes[name]
            elif default is rows._REQUIRED:
                raise self.model.fail(self.title, f"the attribute {name!r} is missing")
            else:
                keywords[name] = default
        for name in self.attributes:
            if name not in row.attributes and name not in _IGNORED:
                raise self.model.fail(self.title, f"unknown attribute {name!r}. {did_you_mean(name, row.attributes)}")

        # Bodies read outer values, and decide themselves which of their values are known, and report their own errors.
        bodies = not self.domain and bool(self.bodies())
        folds = not row.draws and not bodies

        def apply(inputs: Sequence[Any], outside: Mapping[str, Any]) -> Any:
            if row.variadic is None and len(inputs) > len(row.inputs):
                raise self.model.fail(self.title, f"{len(inputs)} inputs, the operator has {len(row.inputs)}")
            self.outside = outside
            fold = folds and bool(inputs) and not any(map(_computed, inputs))
            values = []
            for place, value in enumerate(inputs):
                kind = row.kind(place)
                if value is None or kind == "given":
                    values.append(value)
                else:
                    values.append(self.host(value) if kind == "host" else self.lift(value))
            if len(values) < len(row.inputs):
                values += [None] * (len(row.inputs) - len(values))
            lost = next((place for place in range(row.required) if values[place] is None), None)
            if lost is not None:
                raise self.model.fail(self.title, f"its input {lost} is missing")
            try:
                results = row.function(self, *values, **keywords)
            except OpError:
                raise
            except _CONTRADICTED as error:
                self._check_kinds()
                if bodies:
                    raise
                raise ArgumentError(f"operator {self.op_type} does not fit its inputs: {error}") from error
            if fold:
                results = tuple(map(to_arrays, results)) if isinstance(results, tuple) else to_arrays(results)
            return results

        return apply

    def _check_kinds(self) -> None:
        """Raise an error for an attribute whose type is not the one that its operator declares."""
        schema = self._schema()
        for each in self.proto.attribute if schema is not None else ():
            attribute = schema.attributes.get(each.name)
            if each.type and attribute is not None and each.type != attribute.type.value:
                kind = onnx().AttributeProto.AttributeType.Name(each.type)
                raise self.model.fail(self.title, f"the attribute {each.name!r} is of type {kind}, expected "
                                                  f"{attribute.type.name}")

    # ---------------------------------------------------------------------------- questions of translations

    def lift(self, value: Any) -> Any:
        """A value in the form that operators take."""
        if isinstance(value, (np.ndarray, np.generic)):
            if not computes(value.dtype):
                raise DTypeError(f"operator {self.op_type} is not supported in {value.dtype}")
            return Tensor(np.asarray(value))
        if isinstance(value, list):
            raise ArgumentError(f"operator {self.op_type} expects a tensor, got a sequence")
        return value

    def host(self, value: Any) -> Any:
        """The elements of a value, as a NumPy array.

        Raises
        ------
        UnknownNumbers
            If they are computed only when the graph runs.
        """
        if not isinstance(value, TensorBase):
            return value
        result = self.open_numbers(value)
        if result is None or any(map(is_open, result.reshape(-1))):
            raise UnknownNumbers.of(self.op_type, "numbers that are known only when the graph runs")
        return result.astype(self.dtype(value)) if result.dtype == object else result

    def open_numbers(self, value: Any) -> np.ndarray | None:
        """The elements of a value as a NumPy array with possibly dynamic lengths; None if they are known only when the
        graph runs."""
        if not isinstance(value, TensorBase):
            return np.asarray(value)
        trace = STATE.trace
        if trace is not None and isinstance(value, TracedTensor):
            result = numbers_of(trace, value)
            if result is not None or (trace.parent is not None and not trace.assigns):
                return result  # the constant is not stored: values vary in the body of a loop or branch
        try:
            return value.asnumpy()
        except TraceError:
            return None

    def shape(self, value: Any) -> Shape:
        """The shape of a value, with all lengths known.

        Raises
        ------
        UnknownNumbers
            If some are known only when the graph runs.
        """
        shape = self.lengths(value)
        if not is_known(shape):
            raise UnknownNumbers.of(self.op_type, "lengths that are known only when the graph runs")
        return shape

    def lengths(self, value: Any) -> Shape:
        """The shape of a value, with ``ANY`` for dynamic lengths."""
        if isinstance(value, TensorBase) and hasattr(value, "_spec"):
            if value._spec.shape is None:
                raise UnknownNumbers.of(self.op_type, "the number of axes, which is known only when the graph runs")
            return value._spec.shape
        return tuple(value.shape)

    def length(self, value: Any, axis: int) -> int:
        """The length of a value along an axis, which must be known."""
        length = self.lengths(value)[axis]
        return self.shape(value)[axis] if length is ANY else length

    def lengths_but_one(self, value: Any) -> Shape:
        """The shape of a value as an argument of a reshape, with -1 as the first length if that is dynamic."""
        first, *rest = self.lengths(value)
        return (-1, *rest) if first is ANY and is_known(tuple(rest)) else self.shape(value)

    def rank(self, value: Any) -> int:
        """Number of axes of a value."""
        return len(self.lengths(value))

    def axis(self, axis: int, value: Any, extra: int = 0) -> int:
        """An axis of a value, as a nonnegative index.

        Raises
        ------
        ShapeError
            If there is no such axis.
        """
        rank = self.rank(value) + extra
        if not -rank <= axis < rank:
            raise ShapeError(f"axis {axis} of an array of {rank} axes")
        return axis % rank

    def dtype(self, value: Any) -> np.dtype:
        """The dtype of a value."""
        if isinstance(value, TensorBase):
            return value._dt
        return value.dtype if isinstance(value, np.ndarray) else value._data.dtype

    def body(self, graph: Graph, inputs: Sequence[Any]) -> Values:
        """The outputs of a body, which looks up outer values by name."""
        if len(inputs) != len(graph.every_input) and len(inputs) != len(graph.inputs):
            raise self.model.fail(self.title, f"its body has {len(graph.every_input)} inputs, not {len(inputs)}")
        return graph.run(inputs, self.outside, every=len(inputs) == len(graph.every_input))

    def cast(self, value: Any, dtype: Any) -> Any:
        """A value cast to a dtype, given as a NumPy dtype or as ONNX's code."""
        target = dtype_of(dtype) if isinstance(dtype, int) else np.dtype(dtype)
        return value if self.dtype(value) == target else ops.Cast(value, dtype=target)


def _computed(value: Any) -> bool:
    """Whether a value, or a part of a sequence, is a tensor."""
    return any(map(_computed, value)) if isinstance(value, list) else isinstance(value, Value)

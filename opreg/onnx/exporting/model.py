"""Export of whole models: the inputs, the weights, and the file."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.ndarray import NDArray
from opreg.ndarray.context import cpu
from opreg.ndarray.io import load as load_arrays
from opreg.symbol import Symbol
from opreg.symbol.executor import Executor
from opreg.symbol.infer import infer_shapes, infer_specs
from opreg.symbol.json import load as load_symbol

from ...cells.cell import Cell
from ...cells.tensor_base import TensorBase
from ...cells.traced import trace_function
from ...cells.tree import LEAF, Structure, flatten
from ...core.graph import Entry, Graph, Node
from ...core.mode import Recording
from ...core.named_errors import name_errors
from ...core.spec import ANY, Shape, Spec, as_dtype, is_known
from ...errors import ArgumentError, OpError, did_you_mean
from ...interop.translation import Untranslatable
from ..package import onnx
from .builder import Builder, Model, Value
from .elementwise import PRIMITIVES
from .files import Draft, complete_model, outline_model, write
from .table import DOMAIN, walk

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

__all__ = ["OLDEST", "export", "export_model", "to_model"]


#: The oldest version of ONNX's operators that is written, which is the oldest that ONNX Runtime runs.
OLDEST = 7

#: Names of dynamic dimensions by axis; the axes of an input, or a shape with names in it.
Dynamic = Any


class _Input:
    """An input of a model: its name, dtype, and shape, with names where a dimension is dynamic."""

    def __init__(self, name: str, shape: Sequence[Any] | None, dtype: Any = None):
        self.name, self.dtype = name, None if dtype is None else as_dtype(dtype)
        self.shape = None if shape is None else tuple(shape)
        self.dims: dict[int, str] = {}

    def sizes(self, scales: Mapping[str, tuple[int, int]], which: int) -> Shape | None:
        """The shape at one of the sample sizes."""
        if self.shape is None:
            return None
        return tuple([scales[self.dims[i]][which] if i in self.dims else dim for i, dim in enumerate(self.shape)])

    @property
    def open(self) -> Shape | None:
        """The shape, open where a dimension is dynamic."""
        if self.shape is None:
            return None
        return tuple([ANY if i in self.dims else dim for i, dim in enumerate(self.shape)])


class _Program:
    """A program to export: a graph for each sample size, its inputs, and the values of its other variables.

    Attributes
    ----------
    title : str
        Name for error messages.
    graphs : list of Graph
        One graph for each sample size; they differ only in attributes.
    inputs : list of (_Input, Node)
        The inputs, each with its variable in the first graph.
    values : dict of Node to array
        Values of the other variables of the first graph.
    outputs : list of str
        Names of the outputs.
    training : bool
        Whether nodes without a mode of their own are in training mode; nodes of Cells have one.
    """

    def __init__(self, title: str, graphs: list[Graph], inputs: list[tuple[_Input, Node]],
                 values: dict[Node, np.ndarray], outputs: list[str], training: bool = False):
        self.title, self.graphs, self.inputs, self.values, self.outputs = title, graphs, inputs, values, outputs
        self.training = training


# ----------------------------------------------------------------------------------------------------- front


def export(thing: Any, file: str | os.PathLike[str], *examples: Any, params: Mapping[str, Any] | None = None,
           dynamic: Dynamic = None, opset_version: int | None = None, external_data: bool | None = None,
           inputs: Sequence[str] | None = None) -> str:
    """Write a Symbol, Cell, compiled function or executor as an ONNX model for inference.

    Parameters
    ----------
    thing : Symbol, Cell, function or Executor
        The object to export. An executor has shapes and weights; a Symbol needs ``params``.
    file : str
        The file, written completely or not at all.
    *examples : array, Tensor or shape
        Example inputs, in order; a shape means float32.
    params : mapping of str to array, optional
        Weights and auxiliary states of a Symbol, also as ``arg:name`` and ``aux:name``.
    dynamic : bool, or mapping, optional
        True makes the first axis of every input dynamic, under the name ``batch``. Or for each input by name, the names
        of its dynamic dimensions by axis: ``{"data": {0: "batch", 1: "length"}}``.
    opset_version : int, optional
        The version of ONNX's operators, 7 or later; the newest that the package ``onnx`` knows.
    external_data : bool, optional
        Whether weights are stored in a second file, ``file`` with ``.data``; by default if they are too large for one
        file.
    inputs : sequence of str, optional
        Arguments of an executor that are inputs; otherwise all variables without a value.

    Returns
    -------
    str
        The file.

    Raises
    ------
    OpError
        If an operator has no ONNX form; the message gives its name, node, and the reason.

    Examples
    --------
    >>> import opreg as mx, onnx, os, tempfile
    >>> x = mx.sym.Variable("x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = export(mx.sym.tanh(x * 2), os.path.join(folder, "a.onnx"), (2, 3))
    ...     [node.op_type for node in onnx.load(file).graph.node]
    ['Mul', 'Tanh']
    """
    draft = _draft(thing, examples, params, dynamic, opset_version, inputs)
    return write(draft, os.fspath(file), external_data)


def to_model(thing: Any, *examples: Any, params: Mapping[str, Any] | None = None, dynamic: Dynamic = None,
             opset_version: int | None = None, inputs: Sequence[str] | None = None) -> ModelProto:
    """The model that ``export`` writes, from the same arguments.

    Raises
    ------
    OpError
        The errors of ``export``; also if the weights take 2 GiB or more, which a model in memory cannot hold.

    Examples
    --------
    >>> import opreg as mx
    >>> to_model(mx.sym.relu(mx.sym.Variable("x")), (2, 3)).graph.node[0].op_type
    'Relu'
    """
    return complete_model(_draft(thing, examples, params, dynamic, opset_version, inputs))


def _draft(thing: Any, examples: Sequence[Any], params: Mapping[str, Any] | None, dynamic: Dynamic, opset: int | None,
           inputs: Sequence[str] | None) -> Draft:
    """The model of anything that can be exported."""
    if isinstance(thing, Executor):
        return _export_executor(thing, dynamic, opset, inputs)
    if isinstance(thing, Symbol):
        names, values = _split_params(thing, params or {})
        free = [name for name in names if name not in values]
        given = [_example(name, example) for name, example in zip(free, examples)]
        if len(examples) > len(free):
            raise ArgumentError(f"onnx.export: there are {len(examples)} examples for {len(free)} inputs, "
                                f"{', '.join(free)}")
        given += [_Input(name, None) for name in free[len(examples):]]
        return _export_symbol(thing, given, values, dynamic, opset)
    if callable(thing):
        return _export_function(thing, examples, dynamic, opset)
    raise ArgumentError(f"onnx.export: expected a Symbol, a Cell, a function of tensors or an executor, got {thing!r}")


def export_model(sym: Any, params: Any, in_shapes: Sequence[Any] | None = None, in_types: Any = np.float32,
                 onnx_file_path: str = "model.onnx", verbose: bool = False, dynamic: bool = False,
                 dynamic_input_shapes: Sequence[Any] | None = None, run_shape_inference: bool = False,
                 input_type: Any = None, input_shape: Any = None, opset_version: int | None = None) -> str:
    """Write a Symbol and its weights as an ONNX model, with the arguments of MXNet 1.9.1.

    Parameters
    ----------
    sym : Symbol or str
        The graph, or its ``-symbol.json`` file.
    params : dict, list of two dicts, or str
        Weights by name, also as ``arg:name`` and ``aux:name``; arguments and auxiliary states; or a ``.params`` file.
    in_shapes : list of tuple
        The shape of each input, in the order of arguments; labels may be left out.
    in_types : dtype or list of dtypes
        Dtypes of the inputs.
    onnx_file_path : str
        The file to write.
    verbose : bool
        Whether to print the model.
    dynamic : bool
        Whether lengths are dynamic: those in ``dynamic_input_shapes``, or by default all unknown ones.
    dynamic_input_shapes : list of tuple, optional
        Shapes with text or None for dynamic dimensions.
    run_shape_inference : bool
        Whether to run ONNX's shape inference over the model.
    input_type, input_shape
        Older names of ``in_types`` and ``in_shapes``.
    opset_version : int, optional
        The version of ONNX's operators; the newest that the package ``onnx`` knows.

    Returns
    -------
    str
        The file.

    Examples
    --------
    >>> import opreg as mx, onnx, os, tempfile
    >>> y = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    >>> params = {"arg:fc_weight": mx.nd.ones((2, 3)), "arg:fc_bias": mx.nd.zeros((2,))}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = export_model(y, params, [(4, 3)], onnx_file_path=os.path.join(folder, "a.onnx"))
    ...     [node.op_type for node in onnx.load(file).graph.node]
    ['Gemm']
    """
    symbol = load_symbol(sym) if isinstance(sym, (str, os.PathLike)) else sym
    if not isinstance(symbol, Symbol):
        raise ArgumentError(f"export_model: sym: expected a Symbol or the name of its file, got {sym!r}")
    shapes = input_shape if input_shape is not None else in_shapes
    types = input_type if input_type is not None else in_types
    if isinstance(params, (str, os.PathLike)):
        params = _load_params(os.fspath(params))
    elif isinstance(params, (list, tuple)):
        params = {name: value for part in params for name, value in part.items()}
    names, values = _split_params(symbol, params)
    free = [name for name in names if name not in values]
    shapes = list(shapes or [])
    kinds = list(types) if isinstance(types, (list, tuple)) else [types] * len(shapes)  # one type is that of all
    if len(kinds) != len(shapes):
        raise ArgumentError(f"export_model: in_types are {len(kinds)} dtypes for {len(shapes)} in_shapes")
    if len(shapes) > len(free):
        raise ArgumentError(f"export_model: in_shapes are {len(shapes)} shapes for {len(free)} inputs, "
                            f"{', '.join(free)}; the other arguments have params")
    model_inputs = [_Input(name, shape, kind) for name, shape, kind in zip(free, shapes, kinds)]
    dims: Any = None
    if dynamic:
        dims = {each.name: {} for each in model_inputs}
        for each, shape in zip(model_inputs, dynamic_input_shapes or []):
            if shape is None or len(shape) != len(each.shape or ()):
                raise ArgumentError(f"export_model: dynamic_input_shapes: expected as many dimensions as in_shapes has "
                                    f"for {each.name!r}, {each.shape}, got {shape}")
            dims[each.name] = {i: dim or f"{each.name}_{i}" for i, dim in enumerate(shape) if not isinstance(dim, int)}
        if dynamic_input_shapes is None:
            dims = _open_dims(symbol, model_inputs, values)
    model_inputs += [_Input(name, None) for name in free[len(shapes):]]
    draft = _export_symbol(symbol, model_inputs, values, dims, opset_version)
    if run_shape_inference:
        result = onnx("shape_inference").infer_shapes(outline_model(draft))
        del result.graph.initializer[:]
        draft = Draft(result, draft.arrays)
    if verbose:
        print(onnx("helper").printable_graph(outline_model(draft).graph))
    return write(draft, onnx_file_path, None)


def _load_params(path: str) -> dict[str, Any]:
    result = load_arrays(path)
    if not result:  # a network without parameters
        return {}
    if not isinstance(result, dict):
        raise ArgumentError(f"export_model: {path}: its arrays have no names")
    return result


def _split_params(symbol: Symbol, params: Mapping[str, Any]) -> tuple[list[str], dict[str, np.ndarray]]:
    """Names of the variables, with the listed inputs first, and the values that are known."""
    names = list(dict.fromkeys([*symbol.list_arguments(), *symbol.list_auxiliary_states()]))
    values = {}
    for name, value in params.items():
        plain = name.partition(":")[2] if name.startswith(("arg:", "aux:")) else name
        if plain in names:
            values[plain] = _numbers(value)
    return names, values


def _numbers(value: Any) -> np.ndarray:
    return value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)


def _example(name: str, example: Any) -> _Input:
    """An input with the shape and dtype of an example."""
    if isinstance(example, tuple) and all(isinstance(dim, int) for dim in example):
        return _Input(name, example, np.float32)
    array = _numbers(example)
    return _Input(name, array.shape, array.dtype)


# ------------------------------------------------------------------------------------------------ programs


def _export_executor(executor: Executor, dynamic: Dynamic, opset: int | None, inputs: Sequence[str] | None
                     ) -> Draft:
    symbol, arrays = executor._symbol, {**executor.arg_dict, **executor.aux_dict}
    if inputs is None:
        first = symbol.list_arguments()[:1]
        inputs = [name for name in ("data",) if name in arrays] or first
    for name in inputs:
        if name not in executor.arg_dict:
            raise ArgumentError(f"onnx.export: inputs: the executor has no argument {name!r}. "
                                f"{did_you_mean(name, list(executor.arg_dict))}")
    model_inputs = [_Input(name, arrays[name].shape, arrays[name].dtype) for name in inputs]
    values = {name: array.asnumpy() for name, array in arrays.items() if name not in inputs}
    return _export_symbol(symbol, model_inputs, values, dynamic, opset)


def _export_symbol(symbol: Symbol, inputs: list[_Input], values: dict[str, np.ndarray], dynamic: Dynamic,
                   opset: int | None
                   ) -> Draft:
    graph = symbol._graph()
    variables = [node for node in graph.nodes if node.op is None]
    by_name = {node.name: node for node in variables}
    if len(by_name) < len(variables):
        twice = next(node.name for node in variables if by_name[node.name] is not node)
        raise ArgumentError(f"onnx.export: two variables are named {twice!r}: give one of them another name, or share "
                            "one Variable")
    _name_dims(inputs, dynamic)
    program = _Program(f"Symbol {symbol.name or 'of several outputs'!r}", [graph],
                       [(each, by_name[each.name]) for each in inputs],
                       {by_name[name]: value for name, value in values.items()}, symbol.list_outputs())
    return _model_of(program, opset)


def _export_function(function: Any, examples: Sequence[Any], dynamic: Dynamic, opset: int | None) -> Draft:
    function = getattr(function, "function", function) if getattr(function, "compiled", False) else function
    if isinstance(function, Cell):
        function = copy.deepcopy(function).set_train(False)
    leaves: list[Any] = []

    def placed(each: Any) -> Structure:
        if not _is_leaf(each):
            return flatten(each, leaves, _is_leaf)
        leaves.append(each)
        return LEAF

    arguments = Structure(("list", None, tuple([placed(example) for example in examples])))
    structure = Structure(("list", None, (arguments, flatten({}, leaves))))
    given = [_example(f"input{i}", leaf) for i, leaf in enumerate(leaves)]

    def traced(shapes: Sequence[Shape | None]) -> Any:
        with Recording(None, False):
            specs = [(shape, each.dtype) for each, shape in zip(given, shapes)]
            return trace_function(function, structure, specs, cpu(), mode=False)

    first = traced([each.shape for each in given])
    inputs, outputs = getattr(function, "model_names", ([node.name for node in first.inputs], None))
    for each, name in zip(given, inputs):
        each.name = name
    _name_dims(given, dynamic)
    scales = _scales(given)
    traces = [first]
    if scales:
        traces = []
        if outputs is not None:  # an imported model can be traced with open lengths
            with contextlib.suppress(OpError):
                traces = [traced([each.open for each in given])]
        traces = traces or [traced([each.sizes(scales, which) for each in given]) for which in range(2)]
    if traces[0].assigned:
        raise ArgumentError("onnx.export: it assigns Parameters, which a model of ONNX cannot change")
    first, count = traces[0], len(traces[0].heads)
    title = getattr(function, "__name__", type(function).__name__)
    for constants in zip(*[[array for array, _ in trace.captured] for trace in traces]):
        if not _is_same(*constants):
            raise ArgumentError(f"onnx.export: {title} makes a constant of shape {constants[0].shape} of the length of "
                                "a dynamic dimension, which a model of ONNX cannot")
    program = _Program(title, [Graph(trace.heads) for trace in traces],
                       list(zip(given, first.inputs)), {node: array.asnumpy() for array, node in first.captured},
                       outputs or ([f"output{i}" for i in range(count)] if count > 1 else ["output"]), training=True)
    return _model_of(program, opset)


def _is_same(first: Any, second: Any = None) -> bool:
    """Whether all arrays are the same one, or have equal elements; true for a single array."""
    return second is None or first is second or (first.shape == second.shape and first.dtype == second.dtype and
                                                 _numbers(first).tobytes() == _numbers(second).tobytes())


def _is_leaf(value: object) -> bool:
    return isinstance(value, (NDArray, TensorBase, np.ndarray)) or (
        isinstance(value, tuple) and all(type(dim) is int for dim in value))


# --------------------------------------------------------------------------------------- dynamic dimensions


def _name_dims(inputs: Sequence[_Input], dynamic: Dynamic) -> None:
    """Give dynamic dimensions their names."""
    if not dynamic:
        return
    if dynamic is True:
        for each in inputs:
            each.dims = {0: "batch"} if each.shape else {}
        return
    names = [each.name for each in inputs]
    for name, dims in dict(dynamic).items():
        if name not in names:
            raise ArgumentError(f"onnx.export: dynamic: there is no input {name!r}. {did_you_mean(name, names)}")
        each = inputs[names.index(name)]
        each.dims = dict(dims) if isinstance(dims, Mapping) else {axis: f"{name}_{axis}" for axis in dims}
        for axis in each.dims:
            if not 0 <= axis < len(each.shape or ()):
                raise ArgumentError(f"onnx.export: dynamic: input {name!r} has no axis {axis}: its shape is "
                                    f"{each.shape}")


def _scales(inputs: Sequence[_Input]) -> dict[str, tuple[int, int]]:
    """Two different lengths for each named dimension, which distinguish dynamic dimensions from static ones and from
    each other."""
    scales: dict[str, tuple[int, int]] = {}
    for each in inputs:
        for axis, name in each.dims.items():
            if name not in scales and each.shape is not None:
                length = each.shape[axis] if each.shape[axis] > 1 else 2 + len(scales)
                scales[name] = length, length * (2 + len(scales))
    return scales


def _open_dims(symbol: Symbol, inputs: Sequence[_Input], values: Mapping[str, np.ndarray]) -> dict[str, dict[int, str]]:
    """The dimensions that may vary, as far as shapes tell."""
    graph = symbol._graph()
    shapes: dict[Node, Any] = {}
    variables = {node.name: node for node in graph.nodes if node.op is None}
    shapes.update({variables[name]: value.shape for name, value in values.items()})
    shapes.update({variables[each.name]: each.shape for each in inputs})
    dims: dict[str, dict[int, str]] = {each.name: {} for each in inputs}
    batch = {each.shape[0] for each in inputs if each.shape}
    if len(batch) == 1:  # inputs with the same batch size
        length = next(iter(batch))
        moved = dict(shapes)
        moved.update({variables[each.name]: (2 * length, *each.shape[1:]) for each in inputs if each.shape})
        if _agrees(graph, moved):
            for each in inputs:
                dims[each.name] = {0: "batch"} if each.shape else {}
    for each in inputs:
        for axis, dim in enumerate(each.shape or ()):
            shape = list(each.shape or ())
            shape[axis] = 2 * dim
            if axis not in dims[each.name] and _agrees(graph, {**shapes, variables[each.name]: tuple(shape)}):
                dims[each.name][axis] = f"{each.name}_{axis}"
    return dims


def _agrees(graph: Graph, shapes: Mapping[Node, Any]) -> bool:
    try:
        infer_shapes(graph, shapes)
    except OpError:
        return False
    return True


# --------------------------------------------------------------------------------------------- the model


def _model_of(program: _Program, opset: int | None) -> Draft:
    """The ONNX model of a program, and its weights."""
    newest = onnx("defs").onnx_opset_version()
    opset = newest if opset is None else opset
    if not OLDEST <= opset <= newest:
        raise ArgumentError(f"onnx.export: opset_version={opset}: expected a number from {OLDEST} to {newest}")
    scales = _scales([each for each, _ in program.inputs])
    model = Model(opset, 2 if scales else 1, program.training)
    g = Builder(model)
    g.primitives = PRIMITIVES
    graphs = program.graphs * model.sizes if len(program.graphs) < model.sizes else program.graphs
    if any([node.op for node in graph.nodes] != [node.op for node in graphs[0].nodes] for graph in graphs):
        raise ArgumentError(f"onnx.export: {program.title} computes something else for other lengths of a dynamic "
                            f"dimension")
    values, inputs, constants = _variables(g, program, graphs, scales)
    g.inputs = [value for _, value in inputs]
    try:
        heads = walk(g, list(zip(*[graph.nodes for graph in graphs])), values, graphs[0].heads, constants)
    except Untranslatable as error:
        raise ArgumentError(f"onnx.export: {program.title} cannot be written in opset {opset} of ONNX: {error}"
                            ) from None
    used = _read(g.nodes) | {head.name for head in heads}
    inputs = [(each, value) for each, value in inputs if value.name in used or each.shape is not None]
    ends = _rename_outputs(g, g.ends(heads), program.outputs, {value.name for _, value in inputs})
    infos = [_info(value, each) for each, value in inputs]
    graph = onnx("helper").make_graph(
        g.nodes, program.title.partition(" ")[2].strip("'") or program.title, infos, [_end(value) for value in ends])
    opsets = model.opsets
    result = onnx("helper").make_model(graph, opset_imports=opsets, functions=list(model.functions.values()),
                                       producer_name="opreg")
    result.ir_version = max(onnx("helper").find_min_ir_version_for(
        [opset for opset in opsets if opset.domain != DOMAIN]), 8 if model.functions else 3)
    return Draft(result, {name: array for name, array in g.initializers.items() if name in used})


def _variables(g: Builder, program: _Program, graphs: Sequence[Graph], scales: Mapping[str, tuple[int, int]]
               ) -> tuple[dict[Entry, Value], list[tuple[_Input, Value]], list[dict[Node, Any]]]:
    """Values of the variables, the variables that are inputs, and the shapes of all nodes at each sample size."""
    inputs = {node: each for each, node in program.inputs}
    numbers = {node: number for number, node in enumerate(graphs[0].nodes)}
    kinds: dict[Node, Any] = {node: value.dtype for node, value in program.values.items() if node in numbers}
    kinds.update({node: each.dtype for node, each in inputs.items() if each.dtype is not None and node in numbers})
    specs: list[dict[Node, list[Spec]]] = []
    for which, graph in enumerate(graphs):
        stated: dict[Node, Any] = {graph.nodes[numbers[node]]: value.shape for node, value in program.values.items()
                                   if node in numbers}
        stated.update({graph.nodes[numbers[node]]: each.sizes(scales, which) for node, each in inputs.items()
                       if node in numbers and each.shape is not None})
        specs.append(infer_specs(graph, stated, {graph.nodes[numbers[node]]: dtype for node, dtype in kinds.items()},
                                 decide=False))
    values: dict[Entry, Value] = {}
    given: list[tuple[_Input, Value]] = []
    for each, _ in program.inputs:
        g.names(each.name)
    for node in [node for node in graphs[0].nodes if node.op is None]:
        array = program.values.get(node)
        if array is not None:
            values[node, 0] = g.constant(array, node.name)
            continue
        given_as = inputs.get(node)
        results = [each[graph.nodes[numbers[node]]][0].shape for each, graph in zip(specs, graphs)]
        if given_as is None:
            raise ArgumentError(f"onnx.export: {program.title}: there is no value for {node.name!r}")
        if any(shape is None or not is_known(shape) for shape in results) and given_as.shape is None:
            continue  # a label, which no exported node may read
        values[node, 0] = Value(g, given_as.name, results, specs[0][node][0].dtype or np.dtype(np.float32))
    for each, node in program.inputs:
        if node not in numbers:
            results = [each.sizes(scales, which) for which in range(len(graphs))]
            given.append((each, Value(g, each.name, results, each.dtype or np.dtype(np.float32))))
        elif (node, 0) in values:
            given.append((each, values[node, 0]))
    return values, given, [{node: [spec.shape for spec in known] for node, known in each.items()} for each in specs]


def _read(nodes: Sequence[NodeProto]) -> set[str]:
    """The names that nodes read, including those in bodies."""
    names: set[str] = set()
    for node in nodes:
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= _read(attribute.g.node) | {out.name for out in attribute.g.output}
    return names


def _rename_outputs(g: Builder, ends: Sequence[Value], names: Sequence[str], taken: set[str]) -> list[Value]:
    """The outputs under their own names."""
    change: dict[str, str] = {}
    there = taken | set(g.initializers)
    result = []
    for value, name in zip(ends, names):
        new_name = name
        while new_name in there:
            new_name += "_"
        there.add(new_name)
        change[value.name] = new_name
        result.append(Value(g, new_name, value.shapes, value.dtype))
    clash = {name: g.names(f"{name}_inner") for node in g.nodes for name in node.output
             if name in there and name not in change}
    _rename(g.nodes, {**clash, **change})
    return result


def _rename(nodes: Sequence[NodeProto], change: Mapping[str, str]) -> None:
    for node in nodes:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name in change:
                    names[i] = change[name]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g.node, change)
                for out in attribute.g.output:
                    out.name = change.get(out.name, out.name)


def _info(value: Value, each: _Input) -> ValueInfoProto:
    shape = [each.dims.get(i, dim) for i, dim in enumerate(each.shape if each.shape is not None else value.shape)]
    kind = onnx("helper").np_dtype_to_tensor_dtype(value.dtype)
    return onnx("helper").make_tensor_value_info(value.name, kind, shape)


def _end(value: Value) -> ValueInfoProto:
    shape = value.known_shape
    return onnx("helper").make_tensor_value_info(
        value.name, onnx("helper").np_dtype_to_tensor_dtype(value.dtype),
        None if shape is None else [dim if type(dim) is int else None for dim in shape])


name_errors(__name__, globals(), __all__)

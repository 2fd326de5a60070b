"""The public functions: models as symbols with parameters, as Cells, and their metadata."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opreg.cells import tree
from opreg.cells.cell import Cell
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.cells.traced import trace_function
from opreg.cells.tree import Structure
from opreg.core.files import open_to_read
from opreg.core.graph import Entry, topological
from opreg.core.mode import Recording
from opreg.core.spec import ANY, Shape, is_floating, is_known
from opreg.errors import ArgumentError, FileFormatError, did_you_mean, note
from opreg.gluon.base_parameter import Contexts
from opreg.gluon.symbol_block import SymbolBlock
from opreg.ndarray.creation import array
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol, Variable

from ...core.named_errors import name_errors
from ..package import onnx
from . import translations as translations  # registers the rows of operators
from .graph import Graph, Model, Node, UnknownNumbers, to_arrays
from .tensors import computes, dtype_of, load_external

__all__ = ["import_model", "import_to_cell", "import_to_gluon", "get_model_metadata", "read_model", "ModelCell"]


def _tensors(graph: Any, depth: int = 0) -> list[Any]:
    """Every tensor of a graph that may be stored in an external file."""
    if depth > 32:
        return []
    results = [*graph.initializer]
    for node in graph.node:
        for attribute in node.attribute:
            results += [attribute.t] if attribute.HasField("t") else []
            results += attribute.tensors
            for body in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                results += _tensors(body, depth + 1)
    return results


def read_model(model: Any, folder: str | None = None) -> Model:
    """A model from a file or from the package ``onnx``, checked.

    Raises
    ------
    FileFormatError
        If it is not a model, or an inconsistent one; the message names the file and the node.
    """
    if isinstance(model, Model):
        return model
    if not isinstance(model, (str, os.PathLike, bytes)):
        if not hasattr(model, "opset_import"):
            raise ArgumentError(f"expected the name of a file, bytes or an onnx.ModelProto, got {type(model).__name__}")
        proto, name = model, "<model>"
    else:
        if isinstance(model, bytes):
            content, name = model, "<bytes>"
        else:
            name = os.fsdecode(model)
            folder = os.path.dirname(os.path.abspath(name))
            with open_to_read(name) as file:
                content = file.read()
        proto = onnx().ModelProto()
        try:
            proto.ParseFromString(content)
        except Exception as error:
            raise FileFormatError(f"{name}: expected a model of ONNX: {error}") from None
    for tensor in _tensors(proto.graph):
        if tensor.data_location == 1:
            if folder is None:
                raise FileFormatError(f"{name}: tensor {tensor.name!r} is in a separate file: give the name "
                                      "of the model's file")
            try:
                load_external(tensor, folder)
            except FileFormatError as error:
                raise FileFormatError(f"{name}: {error}") from None
    return Model(proto, name)


def _parameters(graph: Graph) -> dict[str, bool]:
    """The initializers that are parameters, and whether they have gradients. Scalars are constants, and so are values
    that nodes read on the host, and values that are only compared with constants, such as masks."""
    kinds: dict[str, set[str]] = {name: {"value"} for name in graph.outputs}
    for node in graph.nodes:
        for name, kind in node.kinds().items():
            kinds.setdefault(name, set()).update(kind)
    masks = _masks(graph)
    return {name: kinds[name] != {"state"} for name, value in graph.initializers.items()
            if value.ndim and name not in masks and computes(value.dtype) and is_floating(value.dtype)
            and kinds.get(name, set()) - {"host"}}


def _masks(graph: Graph) -> set[str]:
    """The values that depend on initializers alone, and that all readers convert to booleans or integers."""
    fixed = set(graph.initializers)
    alone: dict[Node, None] = {}  # nodes that depend on no input of the model, in their order
    for node in graph.nodes:
        if fixed.issuperset(node.reads()) and not node.draws:
            alone[node] = None
            fixed.update(node.outputs)
    met = {name for node in graph.nodes if node not in alone for name in node.reads()}.union(graph.outputs)
    for node in reversed(alone):
        if not node.compares and not met.isdisjoint(node.outputs):
            met.update(node.reads())
    return fixed - met


class ModelCell(Cell):
    """An ONNX model as a Cell. Its floating-point initializers are Parameters, under their names, and so are tensors of
    several elements in ``Constant`` nodes, branches and loops.

    Scalars are constants, and so are values that nodes read on the host, as the scales of ``Resize``.

    Parameters
    ----------
    model : Model
        The model that was read.
    """

    def __init__(self, model: Model):
        super().__init__()
        self.model = model
        self._parameters: dict[str, Parameter] = {}
        for name, moves in _parameters(model.graph).items():
            parameter = Parameter(model.graph.initializers[name], name=name, requires_grad=moves)
            self.insert_param_to_cell(f"p{len(self._parameters)}", parameter, check_name_contain_dot=False)
            self._parameters[name] = parameter

    @property
    def model_names(self) -> tuple[list[str], list[str]]:
        """Names of its inputs and outputs, which it keeps when it is exported."""
        return self.model.graph.inputs, self.model.graph.outputs

    def construct(self, *inputs: Any) -> Any:
        """The outputs of the model: one, or a tuple of them."""
        graph = self.model.graph
        if len(inputs) != len(graph.inputs):
            raise ArgumentError(f"{self.model.name}: the model has {len(graph.inputs)} inputs "
                                f"({', '.join(graph.inputs)}), {len(inputs)} were given")
        self.model.unrolled = 0
        results = graph.run(inputs, parameters=self._parameters)
        lifted = [lift(value) for value in results]
        return lifted[0] if len(lifted) == 1 else tuple(lifted)


def lift(value: Any) -> Any:
    """A result as a Cell returns it: a tensor, if arrays of this library have its dtype."""
    value = np.asarray(value) if isinstance(value, np.generic) else value
    return Tensor(value) if isinstance(value, np.ndarray) and computes(value.dtype) else value


def import_to_cell(model: Any) -> ModelCell:
    """Imports an ONNX model as a Cell, which runs, trains and compiles like other Cells.

    Parameters
    ----------
    model : str, path, bytes or onnx.ModelProto
        The model's file, its content, or the model. External tensors are read only from its folder.

    Returns
    -------
    Cell
        The Cell. Its inputs are those without an initializer, in the model's order. Its Parameters are the
        floating-point initializers, under their names.

    Raises
    ------
    FileFormatError
        If it is not a model, or an inconsistent one; the message names the file and the node.
    ArgumentError
        If the package ``onnx`` is not installed.
    """
    return ModelCell(read_model(model))


def _lengths(info: Any) -> Shape:
    """The lengths of an input or output; one that is negative is open, as one that has only a name."""
    dims = info.type.tensor_type.shape.dim
    return tuple([dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else ANY for dim in dims])


def _spec(info: Any, shape: Sequence[int] | None) -> tuple[Shape | None, np.dtype | None]:
    """The shape and dtype of an input, as the graph states them."""
    if not info.type.HasField("tensor_type"):
        raise ArgumentError(f"the input {info.name!r} is no tensor: a symbol has tensors alone, use import_to_cell")
    kind = info.type.tensor_type
    dtype = dtype_of(kind.elem_type)
    if not computes(dtype):
        raise ArgumentError(f"the input {info.name!r} has dtype {dtype}, for which no operator has a kernel")
    if shape is not None:
        return tuple([ANY if dim < 0 else int(dim) for dim in shape]), dtype
    if not kind.HasField("shape"):
        return None, dtype
    return _lengths(info), dtype


def _named_shape(info: Any, shape: Shape | None) -> str:
    """The shape of an input, open lengths by their names in the model."""
    if shape is None:
        return "(...)"
    dims = info.type.tensor_type.shape.dim
    names = [dims[axis].dim_param if axis < len(dims) else "" for axis in range(len(shape))]
    words = [(name or "?") if length is ANY else str(length) for name, length in zip(names, shape)]
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def import_model(model: Any, shapes: Mapping[str, Sequence[int]] | None = None
                 ) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Imports an ONNX model as a symbol and its parameters.

    Parameters
    ----------
    model : str, path, bytes or onnx.ModelProto
        The model's file, its content, or the model. External tensors are read only from its folder.
    shapes : dict of str to shape, optional
        Shapes of inputs that have dynamic lengths in the model; -1 keeps a length dynamic.

    Returns
    -------
    sym, arg_params, aux_params
        The symbol, and the values of its arguments and auxiliary states by name. Inputs have the model's names.

    Raises
    ------
    FileFormatError
        If it is not a model, or an inconsistent one; the message names the file and the node.
    UnknownNumbers
        If a node needs values or lengths that are known only when the model runs; ``import_to_cell`` supports such
        models.
    ArgumentError
        If the package ``onnx`` is not installed, or ``shapes`` names something other than an input.
    """
    cell = ModelCell(read_model(model))
    graph: Graph = cell.model.graph
    for name in shapes or {}:
        if name not in graph.inputs:
            raise ArgumentError(f"shapes: {name!r} is no input. {did_you_mean(name, graph.inputs)}")
    specs = []
    for name in graph.inputs:
        try:
            specs.append(_spec(graph.infos[name], (shapes or {}).get(name)))
        except (ArgumentError, FileFormatError) as error:
            note(error, f"{cell.model.name}: input {name!r}")
            raise
    arguments = Structure(("list", None, tuple([tree.LEAF] * len(specs))))
    structure = Structure(("list", None, (arguments, tree.flatten({}, []))))
    try:
        with Recording(None, True):
            traced = trace_function(cell, structure, specs)
    except UnknownNumbers as error:
        open_ = {name: _named_shape(graph.infos[name], shape) for name, (shape, _) in zip(graph.inputs, specs)
                 if shape is None or not is_known(shape)}
        if open_:
            stated = ", ".join(f"{name!r}: {shape}" for name, shape in open_.items())
            note(error, f"{cell.model.name}: lengths of inputs are open: give them as shapes={{{stated}}}")
        raise
    for node, name in zip(traced.inputs, graph.inputs):
        node.name = name
    for value, node in traced.captured:
        if not isinstance(value, Parameter):  # a constant, without a gradient
            node.tags = {**node.tags, "__lr_mult__": "0.0", "__wd_mult__": "0.0"}
    _name_outputs(traced.heads, graph.outputs)
    symbol = Symbol(traced.heads)
    values = {node.name: value for value, node in traced.captured}
    states = set(symbol.list_auxiliary_states())
    arguments_of = set(symbol.list_arguments())
    params = {name: array(value.asnumpy(), dtype=value._data.dtype) for name, value in values.items()}
    return (symbol, {name: value for name, value in params.items() if name in arguments_of},
            {name: value for name, value in params.items() if name in states})


def _name_outputs(heads: Sequence[Entry], names: Sequence[str]) -> None:
    """Name the nodes of a symbol's outputs after the model's outputs, as far as each has its own and no other has the
    name; a name ends in ``_output`` already in models of MXNet."""
    nodes = [node for node, _ in heads]
    taken = {node.name for node in topological(heads)}
    for (node, _), name in zip(heads, names):
        wanted = name.removesuffix("_output")
        alone = node.op is not None and len(node.op.signature.outputs(node.attrs)) == 1 and nodes.count(node) == 1
        if alone and wanted and wanted not in taken:
            node.name = wanted
            taken.add(wanted)


def import_to_gluon(model: Any, ctx: Contexts = None, shapes: Mapping[str, Sequence[int]] | None = None
                    ) -> SymbolBlock:
    """Imports an ONNX model as a Gluon block with its parameters.

    Parameters
    ----------
    model : str, path, bytes or onnx.ModelProto
        The model's file, its content, or the model.
    ctx : Context or list of Context, optional
        Context of the parameters.
    shapes : dict of str to shape, optional
        Shapes of inputs that have dynamic lengths in the model, as for ``import_model``.

    Returns
    -------
    SymbolBlock
        The block, with the inputs of the model in their order. Constants are parameters without a gradient.

    Raises
    ------
    FileFormatError, UnknownNumbers, ArgumentError
        See ``import_model``.
    """
    read = read_model(model)
    symbol, arguments, states = import_model(read, shapes)
    block = SymbolBlock(symbol, [Variable(name) for name in read.graph.inputs])
    arrays = {**arguments, **states}
    for name, parameter in block.collect_params().items():
        if symbol.attr_dict().get(name, {}).get("__lr_mult__") == "0.0":
            parameter.grad_req = "null"
        parameter._load_init(arrays[name], ctx, cast_dtype=True, dtype_source="saved")
    return block


def get_model_metadata(model: Any) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Names and shapes of a model's inputs and outputs; a dynamic length is 0.

    Parameters
    ----------
    model : str, path, bytes or onnx.ModelProto
        The model's file, its content, or the model.

    Returns
    -------
    dict
        ``input_tensor_data`` and ``output_tensor_data``: pairs of name and shape.

    Raises
    ------
    FileFormatError
        If it is not a model, or an inconsistent one.
    """
    graph = read_model(model).graph

    def pairs(infos: Sequence[Any]) -> list[tuple[str, tuple[int, ...]]]:
        return [(info.name, tuple([0 if dim is ANY else dim for dim in _lengths(info)])) for info in infos]

    return {"input_tensor_data": pairs([graph.infos[name] for name in graph.inputs]),
            "output_tensor_data": pairs(graph.output_infos)}


def run_model(model: Model, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a model for NumPy arrays, as NumPy arrays."""
    cell_inputs = [[lift(part) for part in value] if isinstance(value, list) else lift(value) for value in inputs]
    return [to_arrays(value) for value in model.graph.run(cell_inputs)]


name_errors(__name__, globals(), __all__)

"""ONNX Runtime with operators that run as Python here: a session in which they are Python operators of the package
onnxruntime-extensions, made from the nodes of the model."""

from __future__ import annotations

import copy
import importlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from opreg.core.files import open_to_read
from opreg.core.locks import lock
from opreg.core.registry import names
from opreg.errors import ArgumentError, FileFormatError, did_you_mean
from opreg.typing import Array

from ..core.named_errors import name_errors
from .backend import one_node
from .importing import api, rows
from .importing.graph import ordinary, registered
from .importing.tensors import dtype_of, number_of
from .package import onnx

__all__ = ["inference_session"]

#: The domain of operators that run as Python, as they are exported.
_DOMAIN = "opreg"
#: Dtypes that the package does not hand to Python, and those that carry their values.
_CARRIERS = {"float16": np.dtype(np.float32), "bfloat16": np.dtype(np.float32)}
#: Names of dtypes in the package that are not NumPy's.
_CODES = {"float32": "float", "float64": "double"}
#: Methods of a session that run it.
_RUNNING = ("run", "run_with_iobinding", "run_with_ort_values")
#: Numbers of the operators of this process: a name in the package is never defined again.
_NUMBERS = itertools.count()


def inference_session(model: Any, sess_options: Any = None, **keywords: Any) -> Any:
    """A session of ONNX Runtime for a model with operators that run as Python.

    For each of these nodes a Python operator of the package onnxruntime-extensions is made, which calls the operator
    of its name in opreg; so import the module that registers this operator first. The other nodes are ONNX Runtime's
    own. The file stays as it is.

    Parameters
    ----------
    model : str, path, bytes or onnx.ModelProto
        The model's file, its content, or the model. Weights in files beside it are found in its folder.
    sess_options : onnxruntime.SessionOptions, optional
        Options, to which the package's library is added.
    **keywords
        Further arguments of ``onnxruntime.InferenceSession``; ``providers`` is ``["CPUExecutionProvider"]`` by default.

    Returns
    -------
    onnxruntime.InferenceSession
        The session. An error that an operator raises is raised by ``run``, whose calls wait for each other.

    Raises
    ------
    ArgumentError
        If a package is missing, an operator of the domain ``opreg`` is not registered, or the dtype of its input is not
        known.

    Examples
    --------
    >>> import onnxruntime  # doctest: +SKIP
    >>> session = inference_session("net.onnx")  # doctest: +SKIP
    >>> session.run(None, {"data": data})  # doctest: +SKIP
    """
    runtime, extensions = _package("onnxruntime"), _package("onnxruntime_extensions")
    proto, folder = _model_without_weights(model)
    if any(_is_registered_operator(proto, node) for function in proto.functions for node in function.node):
        proto = onnx("inliner").inline_local_functions(proto)
    nodes = _python_nodes(proto)
    errors: list[BaseException] = []
    options = sess_options or runtime.SessionOptions()
    if nodes:
        _let_python_run(extensions, proto, nodes, errors)
        options.register_custom_ops_library(extensions.get_library_path())
        if _DOMAIN not in {each.domain for each in proto.opset_import}:
            proto.opset_import.add(domain=_DOMAIN, version=1)
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    keywords.setdefault("providers", ["CPUExecutionProvider"])
    return _session_type(runtime, errors)(proto.SerializeToString(), options, **keywords)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ArgumentError("inference_session needs the packages onnxruntime and onnxruntime-extensions: pip install "
                            "onnxruntime onnxruntime-extensions") from None


def _session_type(runtime: Any, errors: list[BaseException]) -> type:
    """A class of sessions that raise errors of their Python operators after the run, since an exception inside of one
    would end the process."""
    running = lock()

    def checked(name: str) -> Callable[..., Any]:
        def run(self: Any, *arguments: Any, **words: Any) -> Any:
            with running:
                errors.clear()
                try:
                    return getattr(runtime.InferenceSession, name)(self, *arguments, **words)
                finally:
                    if errors:
                        raise errors.pop(0) from None
        return run

    return type("InferenceSession", (runtime.InferenceSession,), {name: checked(name) for name in _RUNNING})


def _model_without_weights(model: Any) -> tuple[Any, str | None]:
    """A copy of the model whose weights in other files stay there, and the folder of these files."""
    proto = onnx().ModelProto()
    if hasattr(model, "opset_import"):
        proto.CopyFrom(model)
        return proto, None
    content, folder, name = model, None, "<bytes>"
    if not isinstance(model, bytes):
        name = os.fsdecode(model)
        folder = os.path.dirname(os.path.abspath(name))
        with open_to_read(name) as file:
            content = file.read()
    try:
        proto.ParseFromString(content)
    except Exception as error:
        raise FileFormatError(f"{name}: expected a model of ONNX: {error}") from None
    return proto, folder


# --------------------------------------------------------------------------------------- nodes and dtypes


class _Kinds(NamedTuple):
    """The dtypes of a node's inputs, None for one that is left out, and of its outputs."""

    inputs: list[np.dtype | None]
    outputs: list[np.dtype]


def _is_registered_operator(proto: Any, node: Any) -> bool:
    """Whether a node applies an operator that is registered here.

    Raises
    ------
    ArgumentError
        If it is of this library's domain and there is no such operator.
    """
    domain = ordinary(node.domain)
    if not domain or rows.versions(domain, node.op_type) or any(
            (each.domain, each.name) == (node.domain, node.op_type) for each in proto.functions):
        return False
    if registered(domain, node.op_type) is not None:
        return True
    if domain == _DOMAIN:
        near = did_you_mean(node.op_type, [name.removeprefix("custom.") for name in names("custom.")])
        raise ArgumentError(f"inference_session: node {node.name!r}: the operator {node.op_type!r} is not registered: "
                            f"import the module that registers it. {near}")
    return False


def _scopes(graph: Any, outside: Mapping[str, int] = MappingProxyType({})) -> Iterator[tuple[Any, dict[str, int]]]:
    """Every graph, with ONNX's codes of the dtypes of the values that its nodes can read."""
    known = dict(outside)
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.type.HasField("tensor_type") and info.type.tensor_type.elem_type:
            known[info.name] = info.type.tensor_type.elem_type
    known.update({tensor.name: tensor.data_type for tensor in graph.initializer})
    yield graph, known
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _scopes(body, known)


def _python_nodes(proto: Any) -> dict[tuple[int, int], _Kinds]:
    """The nodes that run as Python, by the number of their graph and their place in it.

    ONNX's own inference finds dtypes up to each of these nodes; the operator determines the dtypes of its outputs.
    """
    nodes: dict[tuple[int, int], _Kinds] = {}
    while True:
        inferred = onnx("shape_inference").infer_shapes(proto)
        before, missing = len(nodes), ""
        for number, ((graph, _), (_, known)) in enumerate(zip(_scopes(proto.graph), _scopes(inferred.graph))):
            for place, node in enumerate(graph.node):
                if (number, place) in nodes or not _is_registered_operator(proto, node):
                    continue
                unknown = [name for name in node.input if name and name not in known]
                if unknown:
                    missing = missing or (f"node {node.name!r} ({node.op_type}): the dtype of {unknown[0]!r} is not "
                                          "known")
                    continue
                inputs = [dtype_of(known[name]) if name else None for name in node.input]
                nodes[number, place] = _Kinds(inputs, _outputs_of(node, inputs))
                for name, dtype in zip(node.output, nodes[number, place].outputs):
                    if name and name not in known:
                        graph.value_info.append(onnx("helper").make_tensor_value_info(name, number_of(dtype), None))
        if not missing:
            return nodes
        if len(nodes) == before:
            raise ArgumentError(f"inference_session: {missing}")


def _outputs_of(node: Any, inputs: Sequence[np.dtype | None]) -> list[np.dtype]:
    """The dtypes of a node's outputs."""
    single = one_node(node)
    by_name = dict(zip([info.name for info in single.graph.input], filter(None, inputs)))
    for info in single.graph.input:
        info.type.tensor_type.elem_type = number_of(by_name[info.name])
    symbol, _, _ = api.import_model(single)
    _, found, _ = symbol.infer_type(**{name: by_name[name] for name in symbol.list_arguments()})
    return [np.dtype(dtype) for dtype in found or ()]


# ----------------------------------------------------------------------------------------------- operators


def _let_python_run(extensions: Any, proto: Any, nodes: Mapping[tuple[int, int], _Kinds], errors: list[BaseException]
                    ) -> None:
    """Replace these nodes by calls of Python operators."""
    # the nodes of bodies are replaced before those of the graphs around them
    for number, (graph, _) in reversed(list(enumerate(_scopes(proto.graph)))):
        changed = [copy.deepcopy(part) for place, node in enumerate(graph.node)
                   for part in (_python_operator(extensions, node, nodes[number, place], errors) if (number,
                                                                                                     place) in nodes
                                else [node])]
        del graph.node[:]
        graph.node.extend(changed)


def _python_operator(extensions: Any, node: Any, kinds: _Kinds, errors: list[BaseException]) -> list[Any]:
    """Register a Python operator for a node. Return the nodes that replace the node: a call of the operator, and casts
    for dtypes that are passed to Python as another dtype."""
    make = onnx("helper").make_node
    name = f"{node.op_type}_{next(_NUMBERS)}"
    inputs = [dtype for dtype in kinds.inputs if dtype is not None]
    carried = [[_CARRIERS.get(dtype.name, dtype) for dtype in dtypes] for dtypes in (inputs, kinds.outputs)]
    codes = [[getattr(extensions.PyOp, f"dt_{_CODES.get(dtype.name, dtype.name)}") for dtype in dtypes]
             for dtypes in carried]
    extensions.onnx_op(op_type=f"{_DOMAIN}::{name}", inputs=codes[0], outputs=codes[1], attrs={})(
        _body(api.read_model(one_node(node)), inputs, carried[1], errors))
    before, after, sources, ends = [], [], [each for each in node.input if each], list(node.output)
    for i, (dtype, carrier) in enumerate(zip(inputs, carried[0])):
        if dtype != carrier:
            before.append(make("Cast", [sources[i]], [f"{name}_in{i}"], to=number_of(carrier)))
            sources[i] = f"{name}_in{i}"
    for i, (dtype, carrier) in enumerate(zip(kinds.outputs, carried[1])):
        if not ends[i] or dtype != carrier:
            after += [make("Cast", [f"{name}_out{i}"], [ends[i]], to=number_of(dtype))] if ends[i] else []
            ends[i] = f"{name}_out{i}"
    return [*before, make(name, sources, ends, domain=_DOMAIN, name=node.name), *after]


def _body(model: Any, inputs: Sequence[np.dtype], outputs: Sequence[np.dtype], errors: list[BaseException]
          ) -> Callable[..., Any]:
    """The function that the package calls, with arrays and for arrays."""
    def body(*arrays: Array) -> Any:
        try:
            result = api.run_model(model, [array.astype(dtype) for array, dtype in zip(arrays, inputs)])
            results = tuple([np.asarray(each).astype(dtype) for each, dtype in zip(result, outputs, strict=True)])
        except BaseException as error:  # here the error would end the process; the session raises it later
            errors.append(error)
            results = tuple([np.zeros((), dtype) for dtype in outputs])
        return results if len(results) > 1 else results[0]

    return body


name_errors(__name__, globals(), __all__)

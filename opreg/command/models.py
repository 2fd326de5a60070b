"""Models in files: a graph, its weights in the same folder, and an executor of both."""

from __future__ import annotations

import argparse
import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.core.spec import is_floating, is_known
from opreg.errors import ArgumentError, InferenceError, did_you_mean, list_names
from opreg.ndarray import array as nd_array
from opreg.ndarray import cpu, gpu
from opreg.onnx import get_model_metadata, import_model
from opreg.onnx.importing.graph import UnknownNumbers
from opreg.symbol import Symbol
from opreg.symbol import load as load_symbol
from opreg.symbol.executor import Executor
from opreg.typing import Array

from . import parsing, weights

__all__ = ["Model", "add_model", "bound", "inputs", "model", "read_onnx", "stated_shapes", "symbol"]

_ONNX = ".onnx"


class Model(NamedTuple):
    """A graph and its weights, by their names in the graph."""

    symbol: Symbol
    weights: dict[str, Array]


def add_model(parser: argparse.ArgumentParser, what: str = "a -symbol.json file, or its name without this suffix; or "
                                                           "an .onnx file"
              ) -> None:
    """Add the arguments for the model, its inputs and the device."""
    parser.add_argument("model", metavar="MODEL", help=what)
    parser.add_argument("--input", nargs="+", action="extend", default=[], metavar="[NAME=]X",
                        help="a .npy file; or a shape for random numbers, as 1x3x224x224 or 8x20:int32")
    parser.add_argument("--params", metavar="FILE", help="the weights; by default the last of those beside the graph")
    parser.add_argument("--gpu", action="store_true", help="on a GPU")
    parsing.add_import(parser)


def symbol(path: str, modules: Sequence[str] = (), shapes: Mapping[str, Sequence[int]] | None = None) -> Symbol:
    """The graph of a file, or of the file whose name begins with the path; modules are imported first.

    ``shapes`` are those of inputs of an ONNX model, whose lengths may be open.
    """
    for name in modules:
        parsing.import_or_load(name)
    if path.endswith(_ONNX):
        return read_onnx(path, shapes or {})[0]
    full_path = f"{path}-symbol.json"
    return load_symbol(full_path if not os.path.exists(path) and os.path.exists(full_path) else path)


def model(options: argparse.Namespace) -> Model:
    """The graph, and its weights if there are any.

    Raises
    ------
    FileFormatError, OSError
        When a file is damaged or missing.
    """
    path = options.params
    if options.model.endswith(_ONNX):
        for name in options.modules:
            parsing.import_or_load(name)
        net, arguments, states = read_onnx(options.model, stated_shapes(options.model, options.input))
        if path is None:
            return Model(net, {name: value.asnumpy() for name, value in {**arguments, **states}.items()})
    else:
        net = symbol(options.model, options.modules)
        path = path or _last_weights(options.model)
    if path is None:
        return Model(net, {})
    arrays = weights.load(path).arrays
    return Model(net, {re.sub(r"^(arg|aux):", "", name): array for name, array in arrays.items()})


def read_onnx(source: Any, shapes: Mapping[str, Sequence[int]]) -> tuple[Symbol, dict[str, Any], dict[str, Any]]:
    """The graph, arguments and states of an ONNX model, where its inputs have these shapes.

    Raises
    ------
    ArgumentError
        When it asks for lengths that are open.
    """
    try:
        return import_model(source, shapes)
    except UnknownNumbers as error:
        free = [name for name, dims in get_model_metadata(source)["input_tensor_data"] if 0 in dims]
        if free and not shapes:
            raise ArgumentError(f"{error}\nthe inputs have dynamic lengths: give them by --input "
                                f"{free[0]}=SHAPE") from error
        raise


def stated_shapes(source: Any, words: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of an ONNX model's inputs by name, of words as for ``--input``.

    Raises
    ------
    ArgumentError
        When there is no such input, or there are too many.
    """
    names = [name for name, _ in get_model_metadata(source)["input_tensor_data"]]
    result: dict[str, tuple[int, ...]] = {}
    for word in words:
        name, text = parsing.split_name(word)
        name = name or next((name for name in names if name not in result), "")
        if name not in names:
            raise ArgumentError(f"{word}: the model has no input {name!r}. {did_you_mean(name, names)}" if name else
                                f"{word}: the model has no input left for it; its inputs are {list_names(names)}")
        result[name] = parsing.array(text).shape
    return result


def _last_weights(path: str) -> str | None:
    """The weights of the last epoch in the folder of a graph."""
    prefix = glob.escape(path.removesuffix(".json").removesuffix("-symbol"))
    numbered = {int(found[1]): name for name in glob.glob(f"{prefix}-[0-9]*.params")
                if (found := re.search(r"-(\d+)\.params$", name))}
    if numbered:
        return numbered[max(numbered)]
    plain = [name for ending in weights.ENDINGS for name in glob.glob(prefix + ending)]
    return plain[0] if plain else None


def inputs(net: Model, words: Sequence[str]) -> dict[str, Array]:
    """Inputs by name; unnamed ones are assigned to arguments that are neither weights nor labels, in order.

    Raises
    ------
    ArgumentError
        When there is no such input, or there are too many.
    """
    names = net.symbol.list_arguments()
    free = [name for name in names if name not in net.weights and not name.endswith("label")]
    if not net.weights:
        free = [name for name in free if not _is_weight(net.symbol, name)]
    result: dict[str, Array] = {}
    for word in words:
        name, text = parsing.split_name(word)
        if name and name not in names:
            raise ArgumentError(f"the graph has no input {name!r}. {did_you_mean(name, free or names)}")
        if not name:
            unassigned = [name_free for name_free in free if name_free not in result]
            if not unassigned:
                raise ArgumentError(f"{text}: the graph has no input left for it; its inputs are {list_names(free)}")
            name = unassigned[0]
        result[name] = parsing.array(text)
    return result


def _is_weight(net: Symbol, name: str) -> bool:
    """Whether an argument was made by an operator for itself: its shape is inferred from the others."""
    return any(name == f"{node.name}_{argument}" for node in net._graph().nodes if node.op is not None
               for argument in node.op.signature.arguments(node.attrs))


def bound(net: Model, arrays: Mapping[str, Array], options: argparse.Namespace, *, train: bool = False,
          random: bool = False) -> Executor:
    """An executor with weights and inputs; missing labels are zeros.

    Parameters
    ----------
    net, arrays, options
        The model, its inputs, and the options with the device.
    train : bool
        Whether gradients are computed, too.
    random : bool
        Whether missing arrays are filled with random values.

    Raises
    ------
    ArgumentError
        When inputs or weights are missing.
    """
    names = [*net.symbol.list_arguments(), *net.symbol.list_auxiliary_states()]
    arrays_given = {**{name: value for name, value in net.weights.items() if name in names}, **arrays}
    missing = [name for name in names if name not in arrays_given and not name.endswith("label")]
    if missing and not random:
        raise ArgumentError(f"{list_names(missing)} {'is' if len(missing) == 1 else 'are'} missing; inputs are given "
                            "by --input name=x.npy, weights by --params FILE")
    kinds = {name: value.dtype for name, value in (net.weights or arrays).items()
             if name in names and is_floating(value.dtype)}
    shapes: dict[str, Any] = {name: value.shape for name, value in arrays_given.items()}
    try:
        executor = net.symbol.simple_bind(gpu() if options.gpu else cpu(), "write" if train else "null", kinds,
                                          **shapes)
    except InferenceError as error:
        if not missing:
            raise
        raise ArgumentError(f"cannot infer all shapes: give more of them, such as {list_names(missing)}: "
                            f"--input {missing[0]}=1x3x224x224") from error
    bound_arrays = {**executor.arg_dict, **executor.aux_dict}
    rng = np.random.default_rng(0)
    for name, value in bound_arrays.items():
        if name in arrays_given:
            value[:] = nd_array(arrays_given[name], dtype=arrays_given[name].dtype)
        elif name in missing and is_known(value.shape):
            value[:] = nd_array(rng.random(value.shape).astype(np.float32))  # variances are nonnegative
    return executor

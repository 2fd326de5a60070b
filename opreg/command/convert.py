"""``opreg convert SOURCE TARGET``: converts weights or a model between formats, with the same names and dtypes.

A graph with its weights becomes an ONNX model, and an ONNX model a graph with its weights in a second file.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from opreg import onnx
from opreg.core.files import atomic_write, atomic_writes
from opreg.core.progress import Line, is_enabled, progress_text
from opreg.errors import ArgumentError, did_you_mean, list_names
from opreg.ndarray import formats
from opreg.ndarray.io import save as save_arrays
from opreg.ndarray.records import Record
from opreg.onnx.importing.api import read_model
from opreg.symbol import Symbol

from . import models, parsing, plot, weights
from .output import add_json, say

__all__ = ["configure", "run"]

#: Endings of graph files, of this library and of ONNX.
_GRAPH, _ONNX = ".json", ".onnx"
#: Largest number of names in a line of the report.
_NAMED = 8


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("source", metavar="SOURCE",
                        help="a .params, .npz, .safetensors, .ckpt, .pt or .pth file; a -symbol.json, or an .onnx file")
    parser.add_argument("target", metavar="TARGET", help="the file to write; its suffix decides the format")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--input", nargs="+", action="extend", default=[], metavar="[NAME=]X",
                        help="of a graph that becomes an .onnx file, or of an .onnx file whose lengths are open: the "
                             "shape of an input, as 1x3x224x224 or 8x20:int32")
    parser.add_argument("--params", metavar="FILE", help="its weights; by default the last of those beside the graph")
    parser.add_argument("--dynamic", action="store_true", help="let the first axis of its inputs have any length")
    parser.add_argument("--picture", metavar="FILE", help="draw the graph, too: a .svg file, or another as for plot")
    parser.add_argument("--opset", type=int, metavar="N", help="the version of ONNX's operators")
    parsing.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file, completely or not at all."""
    source, target = options.source, options.target
    ending = os.path.splitext(target)[1]
    if ending not in (*weights.ENDINGS, _GRAPH, _ONNX):
        endings = [*weights.ENDINGS, _GRAPH, _ONNX]
        raise ArgumentError(f"{target}: unknown format {ending!r}. {did_you_mean(ending, endings)}")
    if ending == _GRAPH and not source.endswith(_ONNX):
        raise ArgumentError(f"{target}: only an .onnx file can be converted to a graph; {source} has none")
    if ending == _ONNX and source.endswith(weights.ENDINGS):
        raise ArgumentError(f"{target}: a model is a graph with weights, but {source} holds only weights: convert "
                            f"net-symbol.json {target} --params {source}")
    if options.picture and ending not in (_GRAPH, _ONNX):
        raise ArgumentError(f"--picture {options.picture}: {target} holds only weights, and no graph to draw")
    for path in [target, *([_weights_of(target)] if ending == _GRAPH else []), options.picture]:
        if path and os.path.exists(path) and not options.force:
            raise ArgumentError(f"{path}: the file exists; --force replaces it")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = (_to_onnx if ending == _ONNX else _from_onnx if ending == _GRAPH else _to_weights)(options)
    notes = list(dict.fromkeys([*report.notes, *[str(warning.message) for warning in caught]]))
    say(options, {**report.data, "target": target, "notes": notes}, "\n".join([report.text, *notes]))
    return 0


class _ConversionReport(NamedTuple):
    """Report of a conversion: as data, as a line, and a line for each difference."""

    data: Mapping[str, Any]
    text: str
    notes: Sequence[str] = ()


def _to_weights(options: argparse.Namespace) -> _ConversionReport:
    if options.source.endswith(_GRAPH):
        options.model = options.source
        arrays, named = models.model(options).weights, True
        if not arrays:
            raise ArgumentError(f"{options.source}: no file with weights was found; give one by --params")
    else:
        arrays, named = weights.load(options.source)
    if not named and not options.target.endswith((".params", ".npz")):
        ending = os.path.splitext(options.target)[1]
        raise ArgumentError(f"{options.source}: its arrays have no names, which a {ending} file needs")
    records, names = [Record(value) for value in arrays.values()], list(arrays) if named else ()
    put = formats.checkpoint_writer(options.target, records, names)
    size = sum(value.nbytes for value in arrays.values())
    with atomic_write(options.target) as file, _file_with_progress(file, size) as counted:
        put(counted)
    return _ConversionReport({"arrays": len(arrays), "bytes": size},
                             f"{len(arrays)} arrays, {size} bytes: {options.target}")


def _to_onnx(options: argparse.Namespace) -> _ConversionReport:
    options.model = options.source
    net = models.model(options)
    arrays = models.inputs(net, options.input)
    names = [name for name in net.symbol.list_arguments() if name not in net.weights and not name.endswith("label")]
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ArgumentError(f"the shapes of {' and '.join(missing)} are unknown: give inputs by --input "
                            f"{missing[0]}=1x3x224x224, weights by --params FILE")
    dynamic = {name: {0: "batch"} for name in names if arrays[name].ndim} if options.dynamic else None
    onnx.export(net.symbol, options.target, *[arrays[name] for name in names], params=net.weights, dynamic=dynamic,
                opset_version=options.opset)
    names_of_graph = {*net.symbol.list_arguments(), *net.symbol.list_auxiliary_states()}
    left = [name for name in net.weights if name not in names_of_graph]
    outputs, size = net.symbol.list_outputs(), os.path.getsize(options.target)
    pictures = _draw_if_wanted(net.symbol, options, {name: arrays[name].shape for name in names})
    return _ConversionReport({"inputs": names, "outputs": outputs, "bytes": size, **pictures},
                             ", ".join([f"{', '.join(names)} -> {', '.join(outputs)}, {size} bytes: {options.target}",
                                        *pictures.values()]),
                             [f"left out, since the graph has none of that name: {list_names(left, _NAMED)}"] if left
                             else [])


def _weights_of(graph: str) -> str:
    """The weights file that belongs to a graph."""
    return f"{graph.removesuffix(_GRAPH).removesuffix('-symbol')}-0000.params"


def _from_onnx(options: argparse.Namespace) -> _ConversionReport:
    model = read_model(options.source)
    shapes = models.stated_shapes(model, options.input)
    symbol, arguments, states = models.read_onnx(model, shapes)
    arrays = {**{f"arg:{name}": value for name, value in arguments.items()},
              **{f"aux:{name}": value for name, value in states.items()}}
    weights = _weights_of(options.target)
    with atomic_writes():
        save_arrays(weights, arrays)
        symbol.save(options.target)
    lost = [name for name in model.graph.initializers if name not in arguments and name not in states]
    pictures = _draw_if_wanted(symbol, options, shapes)
    return _ConversionReport({"arrays": len(arrays), "weights": weights, **pictures},
                             ", ".join([f"{len(arrays)} arrays: {options.target}", weights, *pictures.values()]),
                             [f"constants of the graph, not weights: {list_names(lost, _NAMED)}"] if lost else [])


def _draw_if_wanted(net: Symbol, options: argparse.Namespace, shapes: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """The file of the picture, drawn if there is to be one."""
    if not options.picture:
        return {}
    plot.draw(net, options.picture, shapes)
    return {"picture": options.picture}


class _CountingFile:
    """A file that reports the number of bytes written."""

    def __init__(self, file: BinaryIO, line: Line, size: int):
        self._file, self._line, self._size, self._done = file, line, size, 0

    def write(self, piece: Any) -> int:
        self._done += len(piece)
        if self._line.due():
            self._line.show(f"writing {progress_text(self._done, self._size, seconds=self._line.seconds)}")
        return self._file.write(piece)

    def writelines(self, pieces: Iterator[Any]) -> None:
        for piece in pieces:
            self.write(piece)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _file_with_progress(file: BinaryIO, size: int) -> Iterator[Any]:
    """The file, with a progress line if there is a terminal."""
    if not is_enabled():
        yield file
        return
    with Line(0.5) as line:
        yield _CountingFile(file, line, size)

"""ONNX's interface of back ends: ``prepare``, ``run_model``, ``run_node``.

``onnx.backend.test`` uses it for its tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opreg.errors import ArgumentError

from ..core.named_errors import name_errors
from .importing.api import read_model
from .importing.api import run_model as _run
from .importing.graph import Model
from .package import onnx

__all__ = ["Prepared", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class Prepared:
    """A model that is ready to run.

    Parameters
    ----------
    model : Model
        The imported model.
    """

    def __init__(self, model: Model):
        self.model = model

    def run(self, inputs: Any, **keywords: Any) -> tuple[Any, ...]:
        """The outputs as NumPy arrays, for inputs in order or by name."""
        names = self.model.graph.inputs
        values = [inputs[name] for name in names] if isinstance(inputs, Mapping) else list(inputs)
        if len(values) != len(names):
            raise ArgumentError(f"{self.model.name}: the model has {len(names)} inputs ({', '.join(names)}), "
                                f"{len(values)} were given")
        return tuple(_run(self.model, values))


def prepare(model: Any, device: str = "CPU", **keywords: Any) -> Prepared:
    """A model prepared for a device."""
    if not supports_device(device):
        raise ArgumentError(f"models run on 'CPU' here, got {device!r}")
    return Prepared(read_model(model))


def run_model(model: Any, inputs: Any, device: str = "CPU", **keywords: Any) -> tuple[Any, ...]:
    """The outputs of a model, as NumPy arrays."""
    return prepare(model, device).run(inputs)


def run_node(node: Any, inputs: Sequence[np.ndarray], device: str = "CPU", outputs_info: Any = None,
             **keywords: Any) -> tuple[Any, ...]:
    """The outputs of one node, as NumPy arrays."""
    return prepare(one_node(node), device).run(inputs)


def one_node(node: Any) -> Any:
    """A model of one node, whose inputs are those that the node has, in their order."""
    single = onnx().NodeProto()
    single.CopyFrom(node)
    for i, name in enumerate(node.input):
        single.input[i] = name and f"input{i}"  # a node may read a value twice
    infos = [[onnx().ValueInfoProto(name=name) for name in names if name] for names in (single.input, single.output)]
    return onnx("helper").make_model(onnx("helper").make_graph([single], "node", *infos))


def supports_device(device: str) -> bool:
    """Whether models run on a device: ``CPU``.

    Examples
    --------
    >>> supports_device("CPU"), supports_device("CUDA")
    (True, False)
    """
    return device.partition(":")[0] == "CPU"


def is_compatible(model: Any, device: str = "CPU", **keywords: Any) -> bool:
    """Whether a model may be run."""
    return supports_device(device)


name_errors(__name__, globals(), __all__)

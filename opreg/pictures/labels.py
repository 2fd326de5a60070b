"""Labels of nodes, and kinds of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opreg.core.graph import Node
from opreg.core.placeholder import placeholder
from opreg.core.rules import Attrs
from opreg.symbol.json import stored_attrs, stored_name

__all__ = ["COLOURS", "detail", "kind_of"]


def _times(dims: Sequence[int]) -> str:
    return "x".join(str(dim) for dim in dims)


def _window(attrs: Attrs) -> str:
    """Kernel and stride as text: ``3x3/2x2``."""
    return _times(attrs["kernel"]) + (f"/{_times(attrs['stride'])}" if attrs.get("stride") else "")


_DETAILS: dict[str, Callable[[Attrs], str]] = {
    "Convolution": lambda attrs: f"{_window(attrs)}, {attrs['num_filter']}",
    "Deconvolution": lambda attrs: f"{_window(attrs)}, {attrs['num_filter']}",
    "FullyConnected": lambda attrs: str(attrs["num_hidden"]),
    "Activation": lambda attrs: attrs["act_type"],
    "LeakyReLU": lambda attrs: attrs["act_type"],
    "Pooling": lambda attrs: attrs["pool_type"] if attrs["global_pool"] else f"{attrs['pool_type']}, {_window(attrs)}",
    "Reshape": lambda attrs: _times(attrs["shape"]),
    "transpose": lambda attrs: ",".join(map(str, attrs["axes"] or ())),
}

#: Colours by kind of operator: ColorBrewer's "Set3".
COLOURS = {"variable": "#8dd3c7", "product": "#fb8072", "activation": "#ffffb3", "norm": "#bebada", "pool": "#80b1d3",
           "shape": "#fdb462", "custom": "#b3de69", "loss": "#fccde5", "other": "#d9d9d9"}

_KINDS = {name: kind for kind, names in {
    "variable": "null",
    "product": "Convolution Deconvolution FullyConnected Embedding RNN dot batch_dot",
    "activation": "Activation LeakyReLU relu sigmoid tanh softsign",
    "norm": "BatchNorm LayerNorm InstanceNorm GroupNorm L2Normalization LRN",
    "pool": "Pooling ROIPooling _contrib_ROIAlign _contrib_AdaptiveAvgPooling2D UpSampling",
    "shape": "Concat Flatten Reshape transpose expand_dims squeeze SwapAxis SliceChannel slice_axis stack tile",
    "custom": "Custom",
    "loss": "SoftmaxOutput softmax log_softmax MakeLoss LinearRegressionOutput LogisticRegressionOutput",
}.items() for name in names.split()}


def kind_of(node: Node) -> str:
    """The kind of an operator; ``unknown`` if it is not registered."""
    if placeholder(node) is not None:
        return "unknown"
    name = stored_name(node)
    if name.startswith("_backward_"):  # a gradient has the kind of the operator that is differentiated
        name = name.split("_")[2]
    return _KINDS.get(name, "other")


def detail(node: Node) -> str:
    """The operator, and its most important attributes."""
    kind = stored_name(node)
    if kind == "Custom":
        kind = f"Custom {stored_attrs(node)['op_type']}"
    # Attributes of placeholders are untyped.
    if kind in _DETAILS and node.op is not None and node.op.signature.schema.fields:
        kind = f"{kind} {_DETAILS[kind](node.attrs)}".rstrip()
    return kind

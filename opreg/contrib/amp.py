"""amp: graphs that compute in half precision where it is safe, with ``amp_cast`` where dtypes meet.

``convert_symbol`` and ``convert_model`` convert graphs in float32. Matrix products and convolutions, which gain most,
compute in half precision. Exponentials, norms and losses, which need the range, compute in float32. Operators that join
arrays compute in the widest dtype of their inputs, and all others in the dtype of their inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from opreg.aliases import inner
from opreg.core.graph import Entry, Graph, Node, rewrite
from opreg.core.registry import find, get, names
from opreg.core.spec import as_dtype
from opreg.errors import ArgumentError
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol
from opreg.train.base_optimizer import Optimizer
from opreg.train.bucketing_module import BucketingModule

from ..core.settings import Checked

__all__ = ["init", "init_trainer", "scale_loss", "unscale", "convert_symbol", "convert_model",
           "convert_bucketing_module", "LossScaler", "list_lp16_ops", "list_fp32_ops", "list_lp16_fp32_ops",
           "list_conditional_fp32_ops", "list_widest_type_cast", "list_loss_output_functions",
           "list_lp16_use_fp32_params"]

#: Operators in half precision.
_HALF = ("Convolution", "Deconvolution", "FullyConnected", "RNN")
#: Operators in float32.
_FULL = (
    "IdentityAttachKLSparseReg", "arccos", "arcsin", "cosh", "erfinv", "sinh", "tan", "arctanh",
    "_contrib_MultiBoxDetection", "_contrib_MultiBoxPrior", "_contrib_MultiBoxTarget", "exp", "expm1", "log", "log10",
    "log2", "log1p", "broadcast_power", "square", "reciprocal", "_rdiv_scalar", "rsqrt", "rcbrt", "_power",
    "_power_scalar", "_rpower_scalar", "_hypot", "_hypot_scalar", "broadcast_hypot", "_square_sum",
    "_contrib_hawkesll", "sum", "nansum", "prod", "nanprod", "mean", "norm", "softmin", "khatri_rao", "moments",
    "gamma", "gammaln", "_linalg_gelqf", "_linalg_gemm", "_linalg_gemm2", "_linalg_potrf", "_linalg_potri",
    "_linalg_sumlogdiag", "_linalg_syevd", "_linalg_syrk", "_linalg_trmm", "_linalg_trsm", "_linalg_makediag",
    "_linalg_extractdiag", "_linalg_maketrian", "_linalg_extracttrian", "_linalg_inverse", "_linalg_det",
    "_linalg_slogdet", "_contrib_count_sketch", "_contrib_SyncBatchNorm", "_contrib_fft", "argsort", "topk",
    "SoftmaxOutput", "softmax", "log_softmax", "InstanceNorm", "LayerNorm", "GroupNorm", "L2Normalization", "LRN",
    "SoftmaxActivation", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput",
    "softmax_cross_entropy", "smooth_l1", "MakeLoss", "make_loss", "CTCLoss", "_contrib_DeformableConvolution",
    "_contrib_DeformablePSROIPooling",
)
#: Operators in the widest dtype of their inputs.
_WIDEST = (
    "elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_mod", "_not_equal", "_equal", "_greater",
    "_greater_equal", "_lesser", "_lesser_equal", "_logical_and", "_logical_or", "_logical_xor", "_maximum",
    "_minimum", "Concat", "Correlation", "add_n", "batch_dot", "broadcast_add", "broadcast_div", "broadcast_equal",
    "broadcast_greater", "broadcast_greater_equal", "broadcast_lesser", "broadcast_lesser_equal",
    "broadcast_logical_and", "broadcast_logical_or", "broadcast_logical_xor", "broadcast_maximum",
    "broadcast_minimum", "broadcast_mod", "broadcast_mul", "broadcast_not_equal", "broadcast_sub", "dot", "stack",
    "_contrib_MultiProposal", "_contrib_PSROIPooling", "_contrib_Proposal", "_contrib_ROIAlign", "_contrib_box_iou",
    "_contrib_box_nms", "where",
)
#: Operators in float32 for some values of an attribute.
_CONDITIONAL = [("Activation", "act_type", ["softrelu"]), ("LeakyReLU", "act_type", ["elu", "selu"])]
_LOSSES = ("SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput")
_TARGETS = ("float16", "bfloat16")

#: Operator, attribute and its values that require float32.
Conditions: TypeAlias = Sequence[tuple[str, str, Sequence[str]]]

__getattr__ = inner(__name__)


def _target(dtype: Any) -> str:
    name = as_dtype(dtype).name
    if name not in _TARGETS:
        raise ArgumentError(f"amp: target_dtype: expected one of {', '.join(_TARGETS)}, got {name}")
    return name


def list_lp16_ops(target_dtype: Any = "float16") -> list[str]:
    """Operators in half precision."""
    _target(target_dtype)
    return list(_HALF)


def list_fp32_ops(target_dtype: Any = "float16") -> list[str]:
    """Operators in float32."""
    _target(target_dtype)
    return list(_FULL)


def list_lp16_fp32_ops(target_dtype: Any = "float16") -> list[str]:
    """Operators in the dtype of their inputs: all that are in no other list."""
    _target(target_dtype)
    listed = {*_HALF, *_FULL, *_WIDEST}
    return [name for name in names() if name not in listed and not name.startswith(("custom.", "_backward"))]


def list_conditional_fp32_ops(target_dtype: Any = "float16") -> list[tuple[str, str, list[str]]]:
    """Operators in float32 for some values of an attribute."""
    _target(target_dtype)
    return list(_CONDITIONAL)


def list_widest_type_cast(target_dtype: Any = "float16") -> list[str]:
    """Operators in the widest dtype of their inputs."""
    _target(target_dtype)
    return list(_WIDEST)


def list_loss_output_functions(target_dtype: Any = "float16") -> list[str]:
    """Losses that define their own gradient, which must be scaled."""
    _target(target_dtype)
    return list(_LOSSES)


def list_lp16_use_fp32_params(target_dtype: Any = "float16") -> None:
    """Operators in half precision with weights in float32; there are none."""
    _target(target_dtype)


# -------------------------------------------------------------------------------------------- graphs


def _canonical(listed: Sequence[str]) -> set[str]:
    """The registry's canonical names, without unknown names."""
    return {op.name for name in listed if (op := find(name)) is not None}


def convert_symbol(sym: Symbol, target_dtype: Any = "float16", target_dtype_ops: Sequence[str] | None = None,
                   fp32_ops: Sequence[str] | None = None, conditional_fp32_ops: Conditions | None = None,
                   excluded_sym_names: Sequence[str] | None = None, data_names: Sequence[str] | None = None,
                   cast_optional_params: bool = False) -> Symbol:
    """Converts a float32 graph so that parts of it compute in half precision.

    Parameters
    ----------
    sym : Symbol
        The graph.
    target_dtype : {"float16", "bfloat16"}
        The half precision dtype.
    target_dtype_ops, fp32_ops : list of str or None
        Operators in half precision and in float32; by default those of ``list_lp16_ops`` and ``list_fp32_ops``.
    conditional_fp32_ops : list of (operator, attribute, values) or None
        Operators in float32 if the attribute has one of the values.
    excluded_sym_names : list of str or None
        Nodes that are not converted.
    data_names : list of str or None
        Inputs, which stay float32.
    cast_optional_params : bool
        Whether weights used only by operators in half precision are cast to it.

    Examples
    --------
    >>> import opreg as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc").exp()
    >>> [type_.__name__ for type_ in convert_symbol(net).infer_type(data="float32")[1]]
    ['float32']
    """
    if not isinstance(sym, Symbol):
        raise ArgumentError(f"convert_symbol: expected a Symbol, got {type(sym).__name__}")
    half, graph = _target(target_dtype), Graph(sym._entries)
    halves, full, widest = _operators(target_dtype_ops, fp32_ops)
    excluded = set(excluded_sym_names or ())
    unknown = excluded - {node.name for node in graph.nodes}
    if unknown:
        raise ArgumentError(f"convert_symbol: excluded_sym_names: there is no node {', '.join(sorted(unknown))}")
    conditions = _CONDITIONAL if conditional_fp32_ops is None else conditional_fp32_ops
    cast, multicast = get("amp_cast"), get("amp_multicast")
    made: dict[tuple[Entry, str], Entry] = {}

    def wanted(entry: Entry, dtype: str) -> Entry:
        """The entry, cast to a dtype; one cast serves all its consumers."""
        source, index = entry
        if source.op is None and dtype == "float32":
            return entry
        key = entry, dtype
        if key not in made:
            attrs = {"dtype": dtype}
            suffix = "" if index == 0 else str(index)
            made[key] = Node(cast, f"{source.name}{suffix}_amp_cast_{dtype}", cast.complete(attrs), [entry], attrs), 0
        return made[key]

    def change(node: Node, inputs: list[Entry]) -> list[Entry] | None:
        if node.op is None or node.name in excluded:
            return None
        count, name = len(node.op.signature.arguments(node.attrs)), node.op.name
        special = any(name == op and str(node.attrs.get(key)) in values for op, key, values in conditions)
        # whether it is a user's operator, whose states and other inputs are float32
        users = node.op.op_type is not None
        special = special or (users and len(inputs) > count and name not in halves)
        if special or name in full:
            new = [wanted(entry, "float32") for entry in inputs[:count]]
        elif name in halves:
            new = [wanted(entry, half) for entry in inputs[:count]]
        elif (users or name in widest) and count > 1 and any(source.op is not None for source, _ in inputs[:count]):
            attrs = {"num_outputs": count}
            joined = Node(multicast, f"{node.name}_amp_multicast", multicast.complete(attrs), inputs[:count], attrs)
            new = [(joined, i) for i in range(count)]
        else:
            return None
        same = node.with_inputs([*new, *inputs[count:]])
        return [(same, i) for i in range(node.count)]

    changed = rewrite(graph, change)
    return Symbol(_declared(changed, half, data_names or _inputs(sym), cast_optional_params).heads)


def _declared(graph: Graph, half: str, inputs: Iterable[str], cast_optional_params: bool) -> Graph:
    """A graph whose weights and states have their dtypes declared; inputs have none."""
    inputs = set(inputs)
    arguments, states = graph.variables()
    narrow = _narrow(graph, half, inputs.union(node.name for node in states)) if cast_optional_params else set()
    dtypes = {node: half if node in narrow else "float32" for node in [*arguments, *states] if node.name not in inputs}

    def change(node: Node, inputs: list[Entry]) -> list[Entry] | None:
        if node not in dtypes:
            return None
        return [(node.copy((), tags={"__dtype__": str(_FLAGS[as_dtype(dtypes[node]).name])}), 0)]

    return rewrite(graph, change)


def _operators(halves: Sequence[str] | None, full: Sequence[str] | None) -> tuple[set[str], set[str], set[str]]:
    """Operators in half precision, those in float32, and those in the widest dtype of their inputs."""
    narrow, wide = _canonical(_HALF if halves is None else halves), _canonical(_FULL if full is None else full)
    both = narrow & wide
    if both:
        raise ArgumentError(f"convert_symbol: {', '.join(sorted(both))} cannot be given both dtypes")
    return narrow, wide, _canonical(_WIDEST) - narrow - wide


_FLAGS = {"float32": 0, "float16": 2, "bfloat16": 12}


def _inputs(sym: Symbol) -> list[str]:
    """Arguments that are inputs by their names, which end in ``data`` or ``label``."""
    return [name for name in sym.list_arguments() if name.endswith(("data", "label"))]


def _narrow(graph: Graph, half: str, left: set[str]) -> set[Node]:
    """The weights used only by casts to half precision."""
    used: dict[Node, set[bool]] = {}
    for node in graph.nodes:
        goes = node.op is not None and node.op.name == "amp_cast" and as_dtype(node.attrs["dtype"]).name == half
        for source, _ in node.inputs:
            if source.op is None:
                used.setdefault(source, set()).add(goes)
    return {node for node, ways in used.items() if ways == {True} and node.name not in left}


def convert_model(sym: Symbol, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray],
                  target_dtype: Any = "float16", target_dtype_ops: Sequence[str] | None = None,
                  fp32_ops: Sequence[str] | None = None, conditional_fp32_ops: Conditions | None = None,
                  excluded_sym_names: Sequence[str] | None = None, cast_optional_params: bool = False
                  ) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Converts a graph and its weights; see ``convert_symbol``."""
    inputs = [name for name in sym.list_arguments() if name not in arg_params]
    converted = convert_symbol(sym, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops,
                               excluded_sym_names, inputs, cast_optional_params)
    tags = converted.attr_dict()
    half = _target(target_dtype)
    narrow = {name for name, tag in tags.items() if tag.get("__dtype__") == str(_FLAGS[half])}
    return converted, {name: value.astype(half) if name in narrow else value for name, value in arg_params.items()}, \
        dict(aux_params)


def convert_bucketing_module(bucketing_mod: BucketingModule, target_dtype: Any = "float16",
                             target_dtype_ops: Sequence[str] | None = None, fp32_ops: Sequence[str] | None = None,
                             conditional_fp32_ops: Conditions | None = None,
                             excluded_sym_names: Sequence[str] | None = None, cast_optional_params: bool = False
                             ) -> BucketingModule:
    """Converts a bound ``BucketingModule`` to a new one with the same weights; see ``convert_symbol``."""
    make = bucketing_mod._sym_gen

    def converted(key: Any) -> Any:
        symbol, data_names, label_names = make(key)
        return convert_symbol(symbol, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops,
                              excluded_sym_names, [*(data_names or ()), *(label_names or ())],
                              cast_optional_params), data_names, label_names

    converted_module = BucketingModule(converted, bucketing_mod._default_bucket_key, bucketing_mod.logger,
                                       **bucketing_mod._settings)
    args, aux = bucketing_mod.get_params()
    dtypes = {name: attributes.get("__dtype__") for name, attributes in converted_module.symbol.attr_dict().items()}
    half = _target(target_dtype)
    converted_module._preset = {name: value.astype(half) if dtypes.get(name) == str(_FLAGS[half]) else value
                                for name, value in args.items()}, aux
    converted_module.params_initialized = True
    return converted_module


# ------------------------------------------------------------------------------------------ training


_STATE: dict[str, str] = {}
#: Whether functions cast their inputs, which libraries such as GluonNLP ask; here they never do.
_amp_initialized = False


def init(target_dtype: Any = "float16", target_precision_ops: Sequence[str] | None = None,
         conditional_fp32_ops: Conditions | None = None, fp32_ops: Sequence[str] | None = None) -> None:
    """Enables loss scaling. The functions of ``nd`` and ``sym`` do not change, about which it warns once.

    MXNet patches these functions to cast their inputs; here ``convert_symbol`` adds casts to a graph.
    """
    if "dtype" not in _STATE:
        warnings.warn("amp.init: functions of nd and sym compute in the dtypes they are given; amp.convert_symbol and "
                      "convert_model put casts into a graph", UserWarning, stacklevel=2)
    _STATE["dtype"] = _target(target_dtype)


class LossScaler(Checked):
    """Dynamic loss scale: halved when gradients overflow, doubled after a number of steps without overflow.

    Examples
    --------
    >>> import opreg as mx
    >>> scaler = LossScaler()
    >>> scaler.has_overflow([mx.nd.array([1.0, np.inf])]), scaler.loss_scale
    (True, 32768.0)
    """

    def __init__(self) -> None:
        self.loss_scale = 2.0 ** 16
        self._most, self._wait, self._since = 2.0 ** 24, 2000, 0

    def has_overflow(self, grads: Sequence[NDArray]) -> bool:
        """Whether a gradient is not finite; also updates the scale for the next step."""
        if not all(bool(np.isfinite(grad.asnumpy()).all()) for grad in grads):
            self.loss_scale, self._since = self.loss_scale / 2, 0
            return True
        self._since += 1
        if self._since == self._wait:
            self.loss_scale, self._since = min(self._most, self.loss_scale * 2), 0
        return False


def init_trainer(optimizer_or_trainer: Optimizer) -> None:
    """Let ``scale_loss`` scale losses for an optimizer."""
    if not isinstance(optimizer_or_trainer, Optimizer):
        raise ArgumentError(f"init_trainer: expected an Optimizer, got {type(optimizer_or_trainer).__name__}")
    attributes = vars(optimizer_or_trainer)
    attributes["_amp_loss_scaler"], attributes["_amp_original_scale"] = LossScaler(), optimizer_or_trainer.rescale_grad


@contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Optimizer) -> Iterator[Any]:
    """A loss, or a list of losses, multiplied by the scale; the optimizer divides the gradients by it.

    Examples
    --------
    >>> import opreg as mx
    >>> optimizer = mx.optimizer.create("sgd")
    >>> init_trainer(optimizer)
    >>> with scale_loss(mx.nd.array([2.0]), optimizer) as scaled:
    ...     (scaled * optimizer.rescale_grad).asscalar().item()
    2.0
    """
    scaler = vars(optimizer_or_trainer).get("_amp_loss_scaler")
    if scaler is None:
        raise ArgumentError("scale_loss: call init_trainer with the optimizer first")
    optimizer_or_trainer.rescale_grad = vars(optimizer_or_trainer)["_amp_original_scale"] / scaler.loss_scale
    yield [each * scaler.loss_scale for each in loss] if isinstance(loss, (list, tuple)) else loss * scaler.loss_scale


def unscale(optimizer_or_trainer: Optimizer) -> None:
    """Not supported: an optimizer has no access to the gradients.

    Raises
    ------
    ArgumentError
        Always.
    """
    raise ArgumentError("unscale: an optimizer does not know the gradients; multiply them by optimizer.rescale_grad, "
                        "and set that to 1")


def __dir__() -> list[str]:
    return sorted(__all__)

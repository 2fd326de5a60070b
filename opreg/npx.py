"""npx: functions of neural networks that NumPy lacks, like ``mxnet.numpy_extension``.

Functions accept arrays and symbols of ``np``. ``set_np`` makes Gluon use arrays of ``np``.

>>> from opreg import np, npx
>>> npx.softmax(np.zeros((2, 4)))[0], npx.one_hot(np.array([1]), 3)
(array([0.25, 0.25, 0.25, 0.25]), array([[0., 1., 0.]]))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .core.doc_examples import doc_examples, translate_example
from .core.named_errors import name_errors
from .core.namespaces import Namespace
from .core.registry import get, ops
from .ndarray import function as surfaces
from .ndarray import io
from .ndarray.context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from .ndarray.creation import waitall
from .ndarray.ndarray import NDArray
from .np import random
from .np.values import as_value
from .symbol.symbol import Symbol, create
from .util import is_np_array, is_np_shape, reset_np, set_np, use_np, use_np_array, use_np_shape

seed = random.seed

if TYPE_CHECKING:  # functions of operators, which are made below

    def __getattr__(name: str) -> Callable[..., Any]: ...

#: The operator behind each function.
_OPERATORS = {
    "activation": "Activation", "arange_like": "_contrib_arange_like", "batch_dot": "batch_dot",
    "batch_flatten": "Flatten", "batch_norm": "BatchNorm", "cast": "Cast", "convolution": "Convolution",
    "deconvolution": "Deconvolution", "dropout": "Dropout", "embedding": "Embedding", "erf": "erf", "erfinv": "erfinv",
    "fully_connected": "FullyConnected", "gamma": "gamma", "gammaln": "gammaln", "gather_nd": "gather_nd",
    "group_norm": "GroupNorm", "instance_norm": "InstanceNorm", "layer_norm": "LayerNorm", "leaky_relu": "LeakyReLU",
    "log_softmax": "log_softmax", "multibox_detection": "_contrib_MultiBoxDetection",
    "multibox_prior": "_contrib_MultiBoxPrior", "multibox_target": "_contrib_MultiBoxTarget",
    "nonzero": "_npx_nonzero", "one_hot": "one_hot", "pick": "pick", "pooling": "Pooling", "relu": "relu",
    "reshape_like": "reshape_like", "rnn": "RNN", "roi_pooling": "ROIPooling", "sequence_mask": "SequenceMask",
    "shape_array": "shape_array", "sigmoid": "sigmoid", "slice": "slice", "smooth_l1": "smooth_l1",
    "softmax": "softmax", "topk": "topk", "ctc_loss": "CTCLoss", "stop_gradient": "BlockGrad",
    "box_nms": "_contrib_box_nms", "box_iou": "_contrib_box_iou",
    "bipartite_matching": "_contrib_bipartite_matching", "sign_ste": "_contrib_sign_ste",
    "round_ste": "_contrib_round_ste", "constraint_check": "_npx_constraint_check",
}


__all__ = [*_OPERATORS, "reshape", "gelu", "masked_softmax", "masked_log_softmax", "index_update",  # noqa: PLE0604
           "image", "waitall", "load", "save", "seed", "Context", "cpu", "cpu_pinned", "gpu", "num_gpus",
           "current_context", "gpu_memory_info", "set_np", "reset_np", "use_np", "use_np_array", "use_np_shape",
           "is_np_array", "is_np_shape"]


def _convert(value: Any) -> Any:
    return as_value(value) if isinstance(value, (NDArray, Symbol)) else value


def _function_of(name: str, operator: str) -> Callable[..., Any]:
    def function(*args: Any, **keywords: Any) -> Any:
        args = tuple(map(_convert, args))
        keywords = {key: _convert(value) for key, value in keywords.items()}
        if any(isinstance(value, Symbol) for value in (*args, *keywords.values())):
            return create(get(operator), args, keywords, name)
        return surfaces.surface(operator)(*args, **keywords)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The operator ``{operator}`` on arrays or symbols of ``np``."
    return function


globals().update({_name: _function_of(_name, _operator) for _name, _operator in _OPERATORS.items()})
image = Namespace("npx.image", ("_image_",), lambda op, name: _function_of(name, op.name))
_SECTIONS = dict(doc_examples("opreg.builtin", "import opreg as mx"))
for _name, _operator in _OPERATORS.items():
    _face = f"mx.nd.{_operator.replace('_contrib_', 'contrib.')}("
    translate_example(_SECTIONS.get(_operator, ""), globals()[_name], (_face, f"mx.npx.{_name}("), ("mx.nd.", "mx.np."))


def reshape(a: Any, newshape: Any, reverse: bool = False, order: str = "C") -> Any:
    """Reshape by codes: -1 is inferred, -2 keeps a length, -3 removes an axis of length one, -4 keeps all remaining
    lengths, -5 merges two, -6 splits one into the next two numbers.

    Examples
    --------
    >>> from opreg import np
    >>> reshape(np.ones((2, 3, 8)), (-2, -2, 2, -1)).shape, reshape(np.ones((2, 3, 8)), (-5, -4)).shape
    ((2, 3, 2, 4), (6, 8))
    """
    codes = (newshape,) if isinstance(newshape, int) else tuple(int(code) for code in newshape)
    return ops._npx_reshape(as_value(a), newshape=codes, reverse=bool(reverse))


def gelu(data: Any) -> Any:
    """``x`` times the standard normal distribution function of ``x``.

    Examples
    --------
    >>> from opreg import np, npx
    >>> print(npx.gelu(np.array([0.0, 1.0])).round(4))
    [0.     0.8413]
    """
    return ops.LeakyReLU(as_value(data), act_type="gelu")


def masked_softmax(data: Any, mask: Any = None, axis: int = -1, temperature: float = 1.0, normalize: bool = True
                   ) -> Any:
    """The softmax over the elements where a mask holds; zeros elsewhere.

    Examples
    --------
    >>> from opreg import np
    >>> masked_softmax(np.zeros((1, 4)), np.array([[1, 1, 0, 0]]))
    array([[0.5, 0.5, 0. , 0. ]])
    """
    value = as_value(data)
    if mask is None:
        return ops.softmax(value, axis=axis, temperature=temperature)
    weights = as_value(mask).astype("float32")
    low = value * weights + (weights - 1) * 1e18
    return ops.softmax(low, axis=axis, temperature=temperature) * weights


def masked_log_softmax(data: Any, mask: Any = None, axis: int = -1, temperature: float = 1.0, normalize: bool = True
                       ) -> Any:
    """The logarithm of ``masked_softmax``; minus infinity where the mask does not hold.

    Examples
    --------
    >>> from opreg import np, npx
    >>> print(npx.masked_log_softmax(np.array([0.0, 0.0, 5.0]), np.array([True, True, False])).round(4))
    [-0.6931 -0.6931    -inf]
    """
    value = as_value(data)
    if mask is None:
        return ops.log_softmax(value, axis=axis, temperature=temperature)
    weights = as_value(mask).astype("float32")
    low = ops.log_softmax(value * weights + (weights - 1) * 1e18, axis=axis, temperature=temperature)
    return ops._npi_where_rscalar(weights, low, scalar=float("-inf"))


def index_update(a: Any, ind: Any, val: Any) -> Any:
    """A copy of an array with values written at the coordinates in the columns of ``ind``.

    Examples
    --------
    >>> from opreg import np, npx
    >>> print(npx.index_update(np.zeros(3), np.array([[1]]), np.array([5.0])))
    [0. 5. 0.]
    """
    return ops._scatter_set_nd(as_value(a), as_value(val), as_value(ind), shape=a.shape)


def load(file: str | os.PathLike[str]) -> Any:
    """Arrays of a ``.params`` or ``.npz`` file."""
    result = io.load(file)
    return {name: as_value(value) for name, value in result.items()} if isinstance(result, Mapping) else \
        [as_value(value) for value in result]


def save(file: str | os.PathLike[str], arr: Any) -> None:
    """Write arrays, listed or by name, to a file."""
    io.save(file, arr)


name_errors(__name__, globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)



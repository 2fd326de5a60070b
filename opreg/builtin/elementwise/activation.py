"""Activation functions chosen by an attribute, and Dropout.

``Activation`` and ``LeakyReLU`` are element-wise operators: the expression of the operator that ``act_type`` names
computes them and their gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from ...core.array_module import number_on
from ...core.attrs import Field, Fraction, Schema
from ...core.launch import Call, Rank
from ...core.registry import declare, get, ops
from ...core.rules import Attrs, BatchedCall
from ...core.spec import Shape, is_known, show
from ...custom.composed import composed
from ...elementwise import expression as e
from ...elementwise.expression import Expression, Term
from ...errors import ShapeError
from ..attention_parts import DroppedWeights
from .elementwise import attach, elementwise

# -------------------------------------------------------------------------------------------- Activation

# the second term keeps exp from overflowing
elementwise(lambda x: e.maximum(x, 0.0) + e.log1p(e.exp(-abs(x))), name="_softrelu", arguments=("data",),
            derivatives=[lambda g, x, y: g * -e.expm1(-y)], doc="log(1 + exp(x)).")

_ACTIVATIONS = {"relu": "relu", "sigmoid": "sigmoid", "softrelu": "_softrelu", "softsign": "softsign", "tanh": "tanh"}


@declare(name="Activation", aliases=("_npx_activation",), inplace=(0,))
def activation(data, *, act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"]):
    """The activation ``act_type`` of each element.

    ``relu`` is ``max(x, 0)``, ``sigmoid`` is ``1 / (1 + exp(-x))``, ``softrelu`` is ``log(1 + exp(x))``, ``softsign``
    is ``x / (1 + |x|)``.
    """


attach(activation, lambda attrs: get(_ACTIVATIONS[attrs["act_type"]]).rules.expression({}))


@activation.grad  # by the gradient rule of the operator for this activation, such as ``relu``
def activation_grad(g, ins, outs, *, act_type):
    return get(_ACTIVATIONS[act_type]).differentiate(g, ins, outs, {}, [True])


# --------------------------------------------------------------------------------------------- LeakyReLU

# G. Klambauer et al., Self-Normalizing Neural Networks, arXiv:1706.02515.
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def _leaky(x: Term, *, slope: float) -> Term:
    below = x * slope
    return e.maximum(x, below) if 0.0 < slope <= 1.0 else e.where(e.greater(x, 0.0), x, below)


def _leaky_slope(g: Term, x: Term, y: Term, *, slope: float) -> Term:
    above = e.greater(x, 0.0)
    return g * e.maximum(above, slope) if 0.0 <= slope <= 1.0 else e.where(above, g, g * slope)


def _elu(x: Term, *, slope: float) -> Term:
    return e.where(e.greater(x, 0.0), x, e.expm1(x) * slope)


def _selu(x: Term) -> Term:
    return e.where(e.greater(x, 0.0), x, e.expm1(x) * _SELU_ALPHA) * _SELU_SCALE


def _gelu(x: Term) -> Term:
    return x * 0.5 * (e.erf(x * math.sqrt(0.5)) + 1.0)


_SLOPE = Schema([Field("slope", float, 0.25)])
elementwise(_leaky, name="_leaky", arguments=("data",), schema=_SLOPE, doc="``x``, or ``slope * x`` where ``x`` is "
                                                                           "negative.",
            derivatives=[_leaky_slope])
elementwise(_elu, name="_elu", arguments=("data",), schema=_SLOPE, doc="``x``, or ``slope * (exp(x) - 1)`` where ``x`` "
                                                                       "is negative.",
            derivatives=[lambda g, x, y, *, slope: e.where(e.greater(x, 0.0), g, g * (y + slope))])
# Below zero the derivative is scale * alpha * exp(x), which is y + scale * alpha. MXNet 1.9.1 takes
# scale * (y + alpha); networks were trained with that, and it is what is computed here.
elementwise(_selu, name="_selu", arguments=("data",), doc="The scaled exponential linear unit: ``lambda * x``, or "
                                                          "``lambda * alpha * (exp(x) - 1)`` where ``x`` is negative.",
            derivatives=[lambda g, x, y: g * _SELU_SCALE * e.where(e.greater(y, 0.0), 1.0, y + _SELU_ALPHA)])
elementwise(_gelu, name="_gelu", arguments=("data",), doc="``x`` times the standard normal distribution function of "
                                                          "``x``.")


@declare(name="LeakyReLU", aliases=("_npx_leaky_relu",), random=True, mode=True, inplace=(0,),
         arguments=lambda *, act_type: ("data", "gamma") if act_type == "prelu" else ("data",),
         outputs=lambda *, act_type: ("output", "mask") if act_type == "rrelu" else ("output",))
def leaky_relu(data, gamma, *, act_type: Literal["elu", "gelu", "leaky", "prelu", "rrelu", "selu"] = "leaky",
               slope: float = 0.25, lower_bound: float = 0.125, upper_bound: float = 0.334):
    """Positive elements of ``data`` unchanged, and negative ones by the function ``act_type``.

    For negative elements, ``leaky`` multiplies by ``slope``, ``prelu`` by ``gamma``, ``rrelu`` by a random factor from
    ``lower_bound`` to ``upper_bound``, or by their mean in inference; ``elu`` gives ``slope * (exp(x) - 1)``, ``selu``
    is a scaled ``elu``. ``gelu`` multiplies every element by the standard normal distribution function at that element.

    ``gamma`` has the shape (channels,) or (1,), or one that fits the first two axes. The second output of ``rrelu`` is
    the factor of each element.
    """


leaky_relu.signature.tags = {"gamma": {"__init__": '["Constant", {"value": 0.25}]'}}


def _align_gamma(gamma: Shape, data: Shape) -> Shape:
    """The shape of gamma that broadcasts with the data: its axes are the second and the first of the data."""
    remaining, result = list(gamma), [1] * len(data)
    for axis in reversed(range(min(len(data), 2))):
        if remaining and (remaining[-1] == data[axis] or remaining[-1] == 1):
            result[axis] = remaining.pop()
    if remaining:
        raise ShapeError(f"gamma: expected a shape that fits the first axes of data {show(data)}, got {show(gamma)}")
    return tuple(result)


@leaky_relu.fill
def leaky_relu_fill(ins, outs, *, act_type):
    if act_type == "prelu" and ins[0] is not None and ins[1] is None and len(ins[0]) > 1:
        return [ins[0], ins[0][1:2]]
    return ins


@leaky_relu.infer  # ``prelu`` and ``rrelu`` have no expression
def leaky_relu_infer(data, *gamma, act_type):
    if gamma and is_known(gamma[0]):
        _align_gamma(gamma[0], data)
    return [data, data] if act_type == "rrelu" else data


def _expression(attrs: Attrs) -> Expression | None:
    """The expression of an activation; None if it needs more than the element."""
    kind = attrs["act_type"]
    return None if kind in ("prelu", "rrelu") else get(f"_{kind}").rules.expression({"slope": attrs["slope"]})


attach(leaky_relu, _expression)  # type: ignore[arg-type]  # the kernels below take what has none


def _only(act_type: str) -> Callable[[Call], str | None]:
    def accepts(call: Call) -> str | None:
        return None if call.attrs["act_type"] == act_type else f"act_type {call.attrs['act_type']}"

    return accepts


@leaky_relu.chance
def leaky_relu_chance(*, act_type):
    return act_type == "rrelu"


@leaky_relu.kernel("prelu", accepts=_only("prelu"), rank=Rank.OPERATOR)  # no body: other types are an expression
def prelu_xp(xp, data, gamma, *, out=None):
    y = xp.multiply(data, gamma.reshape(_align_gamma(gamma.shape, data.shape)))
    if out is None:
        return xp.where(data > 0, data, y)
    out[...] = xp.where(data > 0, data, y)
    return out


@leaky_relu.kernel("rrelu", accepts=_only("rrelu"), rank=Rank.OPERATOR)  # no body: slopes are drawn
def rrelu_xp(xp, data, *, lower_bound, upper_bound, is_train, rng):
    if is_train:
        slope = rng.random(data.shape, dtype=xp.float32) * (upper_bound - lower_bound) + lower_bound
    else:
        slope = (lower_bound + upper_bound) / 2
    mask = xp.where(data > 0, 1.0, slope).astype(data.dtype)
    return data * mask, mask


@leaky_relu.grad  # ``prelu`` and ``rrelu`` have no expression; the others have the derivative of the operator alone
def leaky_relu_grad(g, ins, outs, *, act_type, slope):
    if act_type == "rrelu":
        return g[0] * outs[1]
    if act_type == "prelu":
        return ops._backward_prelu(g, *ins)
    attrs = {"slope": slope} if act_type in ("leaky", "elu") else {}
    return get(f"_{act_type}").differentiate(g, ins, outs, attrs, [True])


def _open_expressions(attrs: Attrs) -> Any:
    """The expressions that slopes share."""
    find = get(f"_{attrs['act_type']}").rules.open_expressions if attrs["act_type"] in ("leaky", "elu") else None
    return None if find is None else find(attrs)


leaky_relu.rules.open_expressions = _open_expressions


@composed(name="_backward_prelu", outputs=("data", "gamma"))
def backward_prelu(g, data, gamma):
    """The gradients of ``LeakyReLU`` with ``prelu``."""
    gamma_shape = _align_gamma(gamma.shape, data.shape)
    above = data > 0.0  # 1 or 0, used in arithmetic, which can be fused; ``where`` cannot
    d_data = (above + (1.0 - above) * gamma.reshape(gamma_shape)) * g
    axes = tuple([i for i, dim in enumerate(gamma_shape) if dim == 1])
    d_gamma = ops._minimum_scalar(data, scalar=0.0) * g
    return d_data, (ops.sum(d_gamma, axis=axes) if axes else d_gamma).reshape(gamma.shape)


# ----------------------------------------------------------------------------------------------- Dropout


@declare(name="Dropout", aliases=("_npx_dropout",), random=True, mode=True, inplace=(0,),
         outputs=("output", "mask"), visible=lambda: 1)
def dropout(data, *, p: Fraction = 0.5, mode: Literal["always", "training"] = "training", axes: tuple[int, ...] = (),
            cudnn_off: bool | None = False):
    """The data with each element set to zero with probability ``p`` and the others divided by ``1 - p``.

    This happens in training only, unless ``mode`` is ``always``. Along ``axes`` elements are dropped together.

    N. Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting, 2014.
    """


@dropout.vmap
def dropout_vmap(ins, batched, *, axes, **attrs):
    rank = len(ins[0].shape) - 1
    return BatchedCall(ins, {**attrs, "axes": tuple([axis % rank + 1 for axis in axes])})


def _mask_shape(data: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(1 if i in axes or i - len(data) in axes else dim for i, dim in enumerate(data))


@dropout.infer
def dropout_infer(data, *, axes):
    return [data, _mask_shape(data, axes)]


@dropout.identity
def dropout_identity(ins, outs, *, p, mode, is_train):
    return not is_train and (p == 0.0 or mode == "training")


@dropout.attends
def dropout_attends(data, *, p, mode, axes):
    return None if axes else DroppedWeights(p, mode)


@dropout.kernel()  # no body: a mask is drawn, and the gradient reads it
def dropout_xp(xp, data, *, p, mode, axes, is_train, rng, out=None):
    shape = _mask_shape(data.shape, axes)
    if p == 0.0 or (mode == "training" and not is_train):
        if out is None:
            return data.copy(), xp.broadcast_to(xp.ones((), data.dtype), shape)
        out[0][...], out[1][...] = data, 1
        return out
    keep = 1.0 - p
    is_kept = rng.random(shape, dtype=xp.float32) < keep
    scale = number_on(xp, 1.0 / keep if keep else 0.0, data.dtype)
    mask = xp.multiply(is_kept, scale, out=None if out is None else out[1])
    return xp.multiply(data, mask, out=None if out is None else out[0]), mask


@dropout.grad
def dropout_grad(g, ins, outs, *, p):
    return g[0] if p == 0.0 else g[0] * outs[1]  # outside of training, outs[1] is ones

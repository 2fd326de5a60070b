"""softmax and its relatives: log_softmax, softmin and SoftmaxActivation.

Data are seen as an array of two or three axes with the classes along the second, two if the last would have one
element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ...core.cache import cached
from ...core.host_memory import empty
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import Shape, as_dtype, check_axis, limits
from ...core.threads import by_rows, whole
from ...core.value import Value
from ...errors import AttrError, DTypeError
from ...typing import Array, ArrayModule
from ..outputs import as_output, floating, out_like, out_or_empty_like, together, wide, write_out
from ..samples import along

__all__ = ["SHORT", "soften", "soften_by_rows", "fold"]

#: Up to here classes come first while numbers are reduced: reductions of short rows cost more than two transpositions.
SHORT = 32


@cached(1024)
def fold(shape: Shape, axis: int) -> Shape:
    """The shape that data are seen in: what is before the axis, the axis, and what is behind if it is more than one.

    Examples
    --------
    >>> fold((2, 3, 4, 5), 1), fold((2, 3, 4), -1)
    ((2, 3, 20), (6, 4))
    """
    axis %= len(shape)
    behind = math.prod(shape[axis + 1:])
    return (math.prod(shape[:axis]), shape[axis], *((behind,) if behind != 1 else ()))


def _sum(xp: ArrayModule, x: Array, axis: int) -> Array:
    words = ("ij->j", "ij->i", "ijk->ik")[axis + x.ndim - 2]
    return xp.einsum(words, x)[(slice(None), None) if axis else None]


def soften(xp: ArrayModule, x: Array, scale: float = 1.0, length: Array | None = None, log: bool = False,
           out: Array | None = None) -> Array:
    """Softmax of ``scale * x`` along the second axis, or its logarithm.

    Parameters
    ----------
    xp : module
        Array module.
    x : array
        Floating, of two or three axes.
    scale : float
        One by the temperature.
    length : array or None
        How many classes count, of the shape of ``x`` without the second axis; the others get 0.
    log : bool
        Whether to take the logarithm, more exactly than afterwards.
    out : array or None
        Where to write; it may be ``x``.
    """
    if x.size == 0:
        return xp.empty_like(x) if out is None else out
    axis, y = 1, out
    if length is not None:
        counts = xp.arange(x.shape[1]).reshape(-1, *[1] * (x.ndim - 2)) < xp.expand_dims(length, 1)
        x, scale = xp.where(counts, x * scale, -math.inf), 1.0
    if x.ndim == 2 and x.shape[1] <= SHORT:
        axis, x, y = 0, xp.array(x.T, order="C"), None
    top = x.max(axis=axis, keepdims=True) if scale > 0 else x.min(axis=axis, keepdims=True)
    if length is not None:
        top = xp.maximum(top, limits(x.dtype)[0])  # where nothing counts
    y = xp.subtract(x, top, out=x if axis == 0 else y)
    if scale != 1.0:
        y *= scale
    if log:
        y -= xp.log(_sum(xp, xp.exp(y), axis))
    else:
        xp.exp(y, out=y)
        total = _sum(xp, y, axis)
        if length is not None:
            total += total == 0
        y *= 1.0 / total  # of at least one; faster than as many divisions
    if axis == 1:
        return y
    if out is None:
        return y.T
    out[...] = y.T
    return out


def soften_by_rows(xp: ArrayModule, x: Array, scale: float = 1.0, length: Array | None = None, log: bool = False,
                   out: Array | None = None) -> Array:
    """``soften`` in parts that stay in the cache, which threads share."""
    y = out_or_empty_like(xp, out, x)
    by_rows(xp, x, lambda rows: soften(xp, x[rows], scale, None if length is None else length[rows], log, y[rows]))
    return y


def _scale(temperature: float | None) -> float:
    return 1.0 if temperature is None else 1.0 / temperature


def _softened(xp: ArrayModule, data: Array, axis: int, scale: float, out: Array | None, dtype: np.dtype | None = None,
              length: Array | None = None, log: bool = False) -> Array:
    """A kernel's result, computed in the wider of two dtypes."""
    x = wide(data).reshape(fold(data.shape, axis))
    if dtype is not None and dtype.itemsize > x.dtype.itemsize:
        x = x.astype(dtype)
    if length is not None:
        length = length.reshape(x.shape[:1] + x.shape[2:])
    target = out_like(out, x)
    return write_out(out, target, soften_by_rows(xp, x, scale, length, log, target), data.shape)


def _settled(data: Array, axis: int, scale: float, dtype: np.dtype | None, log: bool = False
             ) -> Callable[[Array], Array] | None:
    """What ``_softened`` does with arrays like this one; None where another dtype has a part in it."""
    own, shape, folded = data.dtype, data.shape, fold(data.shape, axis)
    if own.name not in ("float32", "float64") or (dtype is not None and dtype != own):
        return None

    at_once = whole(data.reshape(folded))

    def run(data: Array) -> Array:
        x, y = data.reshape(folded), empty(folded, own)
        if at_once:
            return soften(np, x, scale, None, log, y).reshape(shape)
        return soften_by_rows(np, x, scale, None, log, y).reshape(shape)

    return run


def _infer(data, *, axis, temperature, use_length):
    check_axis(axis, len(data))
    if temperature == 0:
        raise AttrError("temperature=0: nothing can be divided by it")
    if use_length:
        raise AttrError("use_length=True: this operator has no input for lengths, softmax has")
    return data


def _types(ins, outs, *, dtype):
    if dtype is None:
        common = floating([*ins, *outs])
        return [common], [common]
    return [floating(ins)], [floating([dtype, *outs])]


# ----------------------------------------------------------------------------------------------- softmax


@declare(aliases=("_npx_softmax",), inplace=(0,),
         arguments=lambda *, use_length: ("data", "length") if use_length else ("data",))
def softmax(data, length, *, axis: int = -1, temperature: float | None = None, dtype: np.dtype | None = None,
            use_length: bool | None = False):
    """Exponentials of ``data / temperature``, scaled to add up to one along ``axis``.

    With ``use_length`` only the first ``length`` numbers along the axis count, an integer for each row, and the
    others get 0. ``dtype`` is that of the output, by default that of the data.
    """


along(softmax)


@softmax.fill
def softmax_fill(ins, outs, *, axis, use_length):
    data = together([ins[0], outs[0]])
    if not use_length or data is None:
        return [data, *ins[1:]]
    axis = check_axis(axis, len(data))
    return [data, data[:axis] + data[axis + 1:]]


@softmax.infer
def softmax_infer(data, *length, axis, temperature):
    return _infer(data, axis=axis, temperature=temperature, use_length=False)


@softmax.types
def softmax_types(ins, outs, *, dtype):
    (data,), outs = _types(ins[:1], outs, dtype=dtype)
    if len(ins) == 1:
        return [data], outs
    length = ins[1] or as_dtype("int32")
    if length.kind not in "iu":
        raise DTypeError(f"length: expected integers, got {length}")
    return [data, length], outs


@softmax.kernel()
def softmax_xp(xp, data, length=None, *, axis, temperature, dtype, out=None):
    return _softened(xp, data, axis, _scale(temperature), out, dtype, length)


@softmax.prepare
def softmax_prepare(data, length=None, *, axis, temperature, dtype):
    return None if length is not None else _settled(data, axis, _scale(temperature), dtype)


@softmax.grad
def softmax_grad(g, ins, outs, *, axis, temperature, dtype):
    dx = _backward(ops._backward_softmax, g, outs[0], ins[0], axis, temperature, dtype)
    return (dx, None)[:len(ins)]


@declare(inplace=(0,))
def softmin(data, *, axis: int = -1, temperature: float | None = None, dtype: np.dtype | None = None,
            use_length: bool | None = False):
    """Exponentials of ``-data / temperature``, scaled to add up to one along ``axis``."""


along(softmin)


softmin.fill(as_output)
softmin.infer(_infer)
softmin.types(_types)


@softmin.kernel()
def softmin_xp(xp, data, *, axis, temperature, dtype, out=None):
    return _softened(xp, data, axis, -_scale(temperature), out, dtype)


@softmin.prepare
def softmin_prepare(data, *, axis, temperature, dtype):
    return _settled(data, axis, -_scale(temperature), dtype)


@softmin.grad
def softmin_grad(g, ins, outs, *, axis, temperature, dtype):
    return _backward(ops._backward_softmax, g, outs[0], ins[0], axis, -(temperature or 1.0), dtype)


@declare(aliases=("_npx_log_softmax",), inplace=(0,))
def log_softmax(data, *, axis: int = -1, temperature: float | None = None, dtype: np.dtype | None = None,
                use_length: bool | None = False):
    """The logarithm of ``softmax``, without the rounding of taking it afterwards."""


along(log_softmax)


log_softmax.fill(as_output)
log_softmax.infer(_infer)
log_softmax.types(_types)


@log_softmax.kernel()
def log_softmax_xp(xp, data, *, axis, temperature, dtype, out=None):
    return _softened(xp, data, axis, _scale(temperature), out, dtype, log=True)


@log_softmax.prepare
def log_softmax_prepare(data, *, axis, temperature, dtype):
    return _settled(data, axis, _scale(temperature), dtype, log=True)


@log_softmax.grad
def log_softmax_grad(g, ins, outs, *, axis, temperature, dtype):
    return _backward(ops._backward_log_softmax, g, outs[0], ins[0], axis, temperature, dtype)


@declare(name="SoftmaxActivation", inplace=(0,))
def softmax_activation(data, *, mode: Literal["channel", "instance"] = "instance"):
    """``softmax`` along the last axis, or along the second in the mode ``channel``."""


softmax_activation.fill(as_output)


@softmax_activation.infer
def softmax_activation_infer(data, *, mode):
    check_axis(_axis(mode), len(data))
    return data


@softmax_activation.types
def softmax_activation_types(ins, outs):
    return _types(ins, outs, dtype=None)


@softmax_activation.kernel()
def softmax_activation_xp(xp, data, *, mode, out=None):
    return _softened(xp, data, _axis(mode), 1.0, out)


@softmax_activation.grad
def softmax_activation_grad(g, ins, outs, *, mode):
    return ops._backward_softmax(g, outs[0], axis=_axis(mode))


def _axis(mode: str) -> int:
    return 1 if mode == "channel" else -1


# --------------------------------------------------------------------------------------------- gradients


def _backward(op: Op, g: Value, y: Value, data: Value, axis: int, temperature: float | None, dtype: np.dtype | None
              ) -> Value:
    """The gradient of the data, whose dtype the output need not have."""
    dx = op(g, y, axis=axis, temperature=temperature)
    return dx if dtype is None else ops._backward_cast(dx, data)


@declare(name="_backward_softmax", inplace=(0,))
def backward_softmax(g, output, *, axis: int = -1, temperature: float | None = None):
    """The gradient of ``softmax``."""


along(backward_softmax)


def _through_softmax(xp: ArrayModule, g: Array, y: Array, scale: float, out: Array) -> None:
    xp.subtract(g, xp.expand_dims(xp.einsum("ij,ij->i" if g.ndim == 2 else "ijk,ijk->ik", g, y), 1), out=out)
    out *= y
    if scale != 1.0:
        out *= scale


def _through_log_softmax(xp: ArrayModule, g: Array, y: Array, scale: float, out: Array) -> None:
    xp.exp(y, out=out)
    out *= -_sum(xp, g, 1)
    out += g
    if scale != 1.0:
        out *= scale


#: Stores the gradient of the data: of what arrives, the output and the scale.
Through = Callable[[ArrayModule, Array, Array, float, Array], None]


def _differentiated(through: Through, xp: ArrayModule, g: Array, output: Array, axis: int, scale: float,
                    out: Array | None) -> Array:
    """A kernel's result, computed in a dtype that is wide enough."""
    shape = fold(g.shape, axis)
    g, y = wide(g).reshape(shape), wide(output).reshape(shape)
    target = out_like(out, g)
    dx = out_or_empty_like(xp, target, g)
    by_rows(xp, g, lambda rows: through(xp, g[rows], y[rows], scale, dx[rows]))
    return write_out(out, target, dx, output.shape)


def _settled_gradient(through: Through, g: Array, axis: int, scale: float) -> Callable[[Array, Array], Array] | None:
    """What ``_differentiated`` does with arrays like this one."""
    dtype, shape, folded = g.dtype, g.shape, fold(g.shape, axis)
    if dtype.name not in ("float32", "float64"):
        return None

    at_once = whole(g.reshape(folded))

    def run(g: Array, y: Array) -> Array:
        g, y, dx = g.reshape(folded), y.reshape(folded), empty(folded, dtype)
        if at_once:
            through(np, g, y, scale, dx)
            return dx.reshape(shape)
        by_rows(np, g, lambda rows: through(np, g[rows], y[rows], scale, dx[rows]))
        return dx.reshape(shape)

    return run


@backward_softmax.kernel()
def backward_softmax_xp(xp, g, output, *, axis, temperature, out=None):
    return _differentiated(_through_softmax, xp, g, output, axis, _scale(temperature), out)


@backward_softmax.prepare
def backward_softmax_prepare(g, output, *, axis, temperature):
    return _settled_gradient(_through_softmax, g, axis, _scale(temperature))


@backward_softmax.grad
def backward_softmax_grad(h, ins, outs, *, axis, temperature):
    g, y = ins
    scale = _scale(temperature)
    total = ops.sum(g * y, axis=axis, keepdims=True)
    dy = h * (g - total) - g * ops.sum(h * y, axis=axis, keepdims=True)
    return (ops._backward_softmax(h, y, axis=axis, temperature=temperature), dy * scale)


@declare(name="_backward_log_softmax", inplace=(1,))
def backward_log_softmax(g, output, *, axis: int = -1, temperature: float | None = None):
    """The gradient of ``log_softmax``."""


along(backward_log_softmax)


@backward_log_softmax.kernel()
def backward_log_softmax_xp(xp, g, output, *, axis, temperature, out=None):
    return _differentiated(_through_log_softmax, xp, g, output, axis, _scale(temperature), out)


@backward_log_softmax.prepare
def backward_log_softmax_prepare(g, output, *, axis, temperature):
    return _settled_gradient(_through_log_softmax, g, axis, _scale(temperature))


@backward_log_softmax.grad
def backward_log_softmax_grad(h, ins, outs, *, axis, temperature):
    g, y = ins
    scale = _scale(temperature)
    hp = h * ops.exp(y)
    dy = hp * ops.sum(g, axis=axis, keepdims=True) * -scale
    return ((h - ops.sum(hp, axis=axis, keepdims=True)) * scale, dy)

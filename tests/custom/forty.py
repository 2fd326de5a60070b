"""Forty operators as users write them, each with inputs, its results in NumPy, and its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

import opreg as mx

__all__ = ["CASES", "Case"]


@dataclass
class Case:
    """One operator, with its inputs and attributes.

    Attributes
    ----------
    op : Op
        The operator.
    inputs : list of array
        Arguments, then states.
    expected : callable
        A function of the inputs that returns the outputs in training, by NumPy: one or a list. None where they are
        random.
    attrs : dict
        Attributes.
    states : list of array
        States as a run in training leaves them.
    loss : bool
        Whether its gradient is not that of its output.
    smooth : bool
        Whether its gradient has a gradient, to be held against central differences.
    grad : bool
        Whether it has a gradient.
    """

    op: Any
    inputs: list[np.ndarray]
    expected: Callable[..., Any] | None
    attrs: dict[str, Any] = field(default_factory=dict)
    states: Callable[..., Sequence[np.ndarray]] | None = None
    loss: bool = False
    smooth: bool = False
    grad: bool = True


CASES: dict[str, Case] = {}
_RNG = np.random.default_rng(7)


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _case(op: Any, inputs: Sequence[np.ndarray], expected: Callable[..., Any] | None, **keywords: Any) -> None:
    CASES[op.op_type] = Case(op, list(inputs), expected, **keywords)


def _prop(op_type: str) -> Any:
    return mx.operator.get(f"custom.{op_type}")


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ------------------------------------------------------------------------------------------- element by element


@mx.operator.define(name="forty_softplus")
def softplus(x):
    return np.log1p(np.exp(x.asnumpy()))


@softplus.grad
def softplus_grad(g, ins, outs):
    return g * mx.nd.sigmoid(ins[0])


_case(softplus, [_normal(3, 4)], lambda x: np.log1p(np.exp(x)), smooth=True)


@mx.operator.define(traced=True, name="forty_swish")
def swish(x, *, beta: float = 1.5):
    return x * mx.nd.sigmoid(beta * x)


_case(swish, [_normal(3, 4)], lambda x: x * _sigmoid(2 * x), attrs={"beta": 2.0}, smooth=True)


@mx.operator.define(name="forty_power")
def power(x, *, exponent: int):
    return x ** exponent


@power.grad
def power_grad(g, ins, outs, *, exponent):
    return g * exponent * ins[0] ** (exponent - 1)


_case(power, [_normal(3, 4)], lambda x: x ** 3, attrs={"exponent": 3}, smooth=True)


@mx.operator.define(name="forty_leaky")
def leaky(x, *, slope: float = 0.1, above: bool = False):
    x = x.asnumpy()
    return np.where((x > 0) ^ above, x, np.asarray(slope, x.dtype) * x)


@leaky.grad
def leaky_grad(g, ins, outs, *, slope, above):
    positive = ins[0] <= 0 if above else ins[0] > 0
    return mx.nd.where(positive, g, slope * g)


_case(leaky, [_normal(3, 4)], lambda x: np.where(x > 0, 0.1 * x, x), attrs={"above": True}, smooth=True)


@mx.operator.define(name="forty_wave")
def wave(x, *, kind: Literal["sin", "cos"] = "sin"):
    return mx.nd.sin(x) if kind == "sin" else mx.nd.cos(x)


@wave.grad
def wave_grad(g, ins, outs, *, kind):
    return g * (wave(ins[0], kind="cos") if kind == "sin" else -wave(ins[0], kind="sin"))


_case(wave, [_normal(5)], np.cos, attrs={"kind": "cos"}, smooth=True)


@mx.operator.define(name="forty_roll")
def roll(x, *, by: tuple[int, ...] = (1,)):
    return np.roll(x.asnumpy(), by, tuple(range(len(by))))


@roll.grad
def roll_grad(g, ins, outs, *, by):
    return roll(g, by=tuple(-each for each in by))


_case(roll, [_normal(3, 4)], lambda x: np.roll(x, (1, 2), (0, 1)), attrs={"by": (1, 2)}, smooth=True)


@mx.operator.define(name="forty_maybe")
def maybe(x, *, scale: float | None = None):
    return x + 0 if scale is None else x * scale


@maybe.grad
def maybe_grad(g, ins, outs, *, scale):
    return g if scale is None else g * scale


_case(maybe, [_normal(3)], lambda x: x, smooth=True)


@mx.operator.define(name="forty_unit", traced=True)
def unit(x, *, eps: float = 1e-3):
    return x / mx.nd.sqrt(mx.nd.sum(x * x, axis=-1, keepdims=True) + eps)


_case(unit, [_normal(3, 4)], lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-3), smooth=True)


@mx.operator.define(name="forty_numpy_traced", traced=True)
def numpy_traced(x):
    return np.tanh(x) * np.exp(-x * x)


_case(numpy_traced, [_normal(2, 3)], lambda x: np.tanh(x) * np.exp(-x * x), smooth=True)

# ------------------------------------------------------------------------------------------- inputs and outputs


class Affine(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        x, w, b = (each.asnumpy() for each in in_data)
        self.assign(out_data[0], req[0], mx.nd.array(x * w + b, dtype=x.dtype))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        (g,), (x, w, _) = out_grad, in_data
        for dst, asked, value in zip(in_grad, req, (g * w, g * x, g)):
            self.assign(dst, asked, value)


@mx.operator.register("forty_affine")
class AffineProp(mx.operator.CustomOpProp):
    def list_arguments(self):
        return ["x", "w", "b"]

    def create_operator(self, ctx, shapes, dtypes):
        return Affine()


_case(_prop("forty_affine"), [_normal(3, 2), _normal(3, 2), _normal(3, 2)], lambda x, w, b: x * w + b)


@mx.operator.define(outputs=["sine", "cosine"], name="forty_sincos")
def sincos(x):
    return mx.nd.sin(x), mx.nd.cos(x)


@sincos.grad
def sincos_grad(g, ins, outs):
    return g[0] * outs[1] - g[1] * outs[0]


_case(sincos, [_normal(4)], lambda x: [np.sin(x), np.cos(x)], smooth=True)


class Halves(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        half = out_data[0].shape[1]
        self.assign(out_data[0], req[0], in_data[0][:, :half])
        self.assign(out_data[1], req[1], in_data[0][:, half:])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], mx.nd.concat(*out_grad, dim=1))


@mx.operator.register("forty_halves")
class HalvesProp(mx.operator.CustomOpProp):
    def list_outputs(self):
        return ["left", "right"]

    def infer_shape(self, in_shape):
        (rows, columns), = in_shape
        return in_shape, [(rows, columns // 2), (rows, columns - columns // 2)], []

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        return out_grad

    def create_operator(self, ctx, shapes, dtypes):
        return Halves()


_case(_prop("forty_halves"), [_normal(2, 5)], lambda x: [x[:, :2], x[:, 2:]])


@mx.operator.define(name="forty_outer")
def outer(row, column):
    return row.asnumpy()[:, None] * column.asnumpy()[None]


@outer.grad
def outer_grad(g, ins, outs):
    row, column = ins
    return mx.nd.dot(g, column), mx.nd.dot(g, row, transpose_a=True)


_case(outer, [_normal(3), _normal(2)], np.outer, smooth=True)


@mx.operator.define(name="forty_broadcast")
def broadcast(x, scale):
    return x.asnumpy() * scale.asnumpy()


@broadcast.infer
def broadcast_infer(x, scale):
    return tuple(x)


@broadcast.grad
def broadcast_grad(g, ins, outs):
    x, scale = ins
    return mx.nd.broadcast_mul(g, scale), mx.nd.sum(g * x, axis=0)


_case(broadcast, [_normal(3, 4), _normal(4)], lambda x, s: x * s, smooth=True)

# ------------------------------------------------------------------------------------------- indices


@mx.operator.define(types="int32,T->T", name="forty_embedding")
def embedding(ids, table):
    return table.asnumpy()[ids.asnumpy()]


@embedding.infer
def embedding_infer(ids, table):
    return (*ids, *table[1:])


@embedding.grad
def embedding_grad(g, ins, outs):
    ids, table = ins
    found = np.zeros(table.shape, table.dtype)
    np.add.at(found, ids.asnumpy(), g.asnumpy())
    return None, mx.nd.array(found, dtype=found.dtype)


_case(embedding, [np.int32([[0, 2], [2, 1]]), _normal(4, 3)], lambda i, t: t[i])


@mx.operator.define(traced=True, name="forty_picked")
def picked(x, index):
    return mx.nd.pick(x, index, axis=1) * 2


_case(picked, [_normal(3, 4), np.int64([0, 3, 1])], lambda x, i: 2 * x[np.arange(3), i], smooth=True)


@mx.operator.define(name="forty_largest", outputs=["values", "places"], types="T->T,int32")
def largest(x):
    x = x.asnumpy()
    places = x.argmax(1)
    return x[np.arange(len(x)), places], places.astype(np.int32)


@largest.grad
def largest_grad(g, ins, outs):
    return mx.nd.one_hot(outs[1], ins[0].shape[1], dtype=g[0].dtype) * g[0].expand_dims(1)


_case(largest, [_normal(3, 4)], lambda x: [x.max(1), x.argmax(1)], smooth=True)


@mx.operator.define(types="T->int64", name="forty_ranks")
def ranks(x):
    return x.asnumpy().argsort(-1).argsort(-1)


_case(ranks, [_normal(3, 4)], lambda x: x.argsort(-1).argsort(-1), grad=False)


class Sorted(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.order = mx.nd.argsort(in_data[0], axis=-1)
        self.assign(out_data[0], req[0], mx.nd.sort(in_data[0], axis=-1))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        back, g = np.argsort(self.order.asnumpy(), axis=-1), out_grad[0].asnumpy()
        self.assign(in_grad[0], req[0], np.take_along_axis(g, back, -1))


@mx.operator.register("forty_sorted")
class SortedProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Sorted()


_case(_prop("forty_sorted"), [_normal(3, 4)], lambda x: np.sort(x, -1))

# ------------------------------------------------------------------------------------------- losses


@mx.operator.define(loss=True, name="forty_huber")
def huber(pred, label, *, delta: float = 1.0):
    away = mx.nd.abs(pred - label)
    return mx.nd.where(away < delta, away * away / 2, delta * away - delta * delta / 2)


@huber.grad
def huber_grad(g, ins, outs, *, delta):
    return mx.nd.clip(ins[0] - ins[1], -delta, delta), None


def _huber(pred, label):
    away = np.abs(pred - label)
    return np.where(away < 1, away * away / 2, away - 0.5)


_case(huber, [_normal(3, 2), _normal(3, 2)], _huber, loss=True)


class CrossEntropy(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.softmax(in_data[0]))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        hot = mx.nd.one_hot(in_data[1], in_data[0].shape[1], dtype=in_data[0].dtype)
        self.assign(in_grad[0], req[0], out_data[0] - hot)
        self.assign(in_grad[1], req[1], 0)


@mx.operator.register("forty_cross_entropy")
class CrossEntropyProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["pred", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], in_shape[0][:1]], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return CrossEntropy()


_case(_prop("forty_cross_entropy"), [_normal(3, 4), np.float32([0, 3, 1])], lambda x, i: _softmax(x), loss=True)

# ------------------------------------------------------------------------------------------- states, mode and chance


@mx.operator.define(auxiliary=["moving_mean"], name="forty_centred")
def centred(x, moving_mean, *, momentum: float = 0.9, is_train):
    if is_train:
        mean = mx.nd.mean(x, axis=0)
        moving_mean[:] = momentum * moving_mean + (1 - momentum) * mean
        return mx.nd.broadcast_sub(x, mean)
    return mx.nd.broadcast_sub(x, moving_mean)


@centred.grad
def centred_grad(g, ins, outs, *, momentum, is_train):
    return mx.nd.broadcast_sub(g, mx.nd.mean(g, axis=0)) if is_train else g


_case(centred, [_normal(3, 2), _normal(2)], lambda x, m: x - x.mean(0),
      states=lambda x, m: [0.9 * m + 0.1 * x.mean(0)], smooth=True)


@mx.operator.define(auxiliary=["count"], name="forty_counted")
def counted(x, count, *, is_train):
    if is_train:
        count[:] = count + 1
    return x * 1


@counted.grad
def counted_grad(g, ins, outs, *, is_train):
    return g


_case(counted, [_normal(3), np.float32([4])], lambda x, n: x, states=lambda x, n: [n + 1], smooth=True)


class Whitened(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0]
        if is_train:
            aux[0][:] = 0.5 * aux[0] + 0.5 * mx.nd.mean(x * x, axis=0)
        self.assign(out_data[0], req[0], mx.nd.broadcast_mul(x, in_data[1]))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], mx.nd.broadcast_mul(out_grad[0], in_data[1]))
        self.assign(in_grad[1], req[1], mx.nd.sum(out_grad[0] * in_data[0], axis=0))


@mx.operator.register("forty_whitened")
class WhitenedProp(mx.operator.CustomOpProp):
    def list_arguments(self):
        return ["x", "gamma"]

    def list_auxiliary_states(self):
        return ["moving_var"]

    def infer_shape(self, in_shape):
        return [in_shape[0], in_shape[0][1:]], [in_shape[0]], [in_shape[0][1:]]

    def create_operator(self, ctx, shapes, dtypes):
        return Whitened()


_case(_prop("forty_whitened"), [_normal(3, 2), _normal(2), np.float32([1, 2])], lambda x, w, v: x * w,
      states=lambda x, w, v: [0.5 * v + 0.5 * (x * x).mean(0)])


@mx.operator.define(name="forty_by_mode", traced=True)
def by_mode(x, *, is_train):
    return x * x if is_train else x + 1


_case(by_mode, [_normal(3)], lambda x: x * x, smooth=True)


@mx.operator.define(outputs=["out", "mask"], name="forty_dropped")
def dropped(x, *, p: float = 0.5, is_train):
    mask = mx.nd.random.uniform(shape=x.shape) > p if is_train else mx.nd.ones(x.shape)
    mask = mask.astype(x.dtype)
    return x * mask / (1 - p), mask


@dropped.grad
def dropped_grad(g, ins, outs, *, p, is_train):
    return g[0] * outs[1] / (1 - p)


_case(dropped, [_normal(3, 4)], None, smooth=True)


@mx.operator.define(name="forty_noisy")
def noisy(x, *, scale: float = 0.1):
    return x + scale * mx.nd.random.normal(shape=x.shape, dtype=x.dtype)


@noisy.grad
def noisy_grad(g, ins, outs, *, scale):
    return g


_case(noisy, [_normal(4)], None)

# ------------------------------------------------------------------------------------------- reductions


@mx.operator.define(name="forty_logsumexp")
def logsumexp(x, *, axis: int = -1, keepdims: bool = True):
    x = x.asnumpy()
    top = x.max(axis, keepdims=True)
    found = np.log(np.exp(x - top).sum(axis, keepdims=True)) + top
    return found if keepdims else found.squeeze(axis)


@logsumexp.infer
def logsumexp_infer(x, *, axis, keepdims):
    axis %= len(x)
    return (*x[:axis], *((1,) if keepdims else ()), *x[axis + 1:])


@logsumexp.grad
def logsumexp_grad(g, ins, outs, *, axis, keepdims):
    g = g if keepdims else g.expand_dims(axis)
    return mx.nd.broadcast_mul(g, mx.nd.softmax(ins[0], axis=axis))


_case(logsumexp, [_normal(3, 4)], lambda x: np.log(np.exp(x).sum(1)), attrs={"axis": 1, "keepdims": False}, smooth=True)


@mx.operator.define(traced=True, name="forty_variance")
def variance(x):
    away = mx.nd.broadcast_sub(x, mx.nd.mean(x, axis=1, keepdims=True))
    return mx.nd.mean(away * away, axis=1)


_case(variance, [_normal(3, 4)], lambda x: x.var(1), smooth=True)


@mx.operator.define(name="forty_total")
def total(x):
    return np.asarray(x.asnumpy().sum())


@total.grad
def total_grad(g, ins, outs):
    return mx.nd.broadcast_like(g.reshape((1, 1)), ins[0])


_case(total, [_normal(3, 4)], np.sum, smooth=True)

# ------------------------------------------------------------------------------------------- shapes from data


@mx.operator.define(name="forty_positive")
def positive(x):
    return x.asnumpy()[x.asnumpy() > 0]


@positive.infer_from_data
def positive_shape(x):
    return (int((x.asnumpy() > 0).sum()),)


@positive.grad
def positive_grad(g, ins, outs):
    x = ins[0]
    return mx.nd._internal._backward_contrib_boolean_mask(g, x > 0, x)


_case(positive, [_normal(6)], lambda x: x[x > 0], smooth=True)


class Different(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        found = np.unique(in_data[0].asnumpy())
        self.assign(out_data[0], req[0], mx.nd.array(found, dtype=found.dtype))


@mx.operator.register("forty_different")
class DifferentProp(mx.operator.CustomOpProp):
    def infer_shape_from_data(self, in_data):
        return [(len(np.unique(in_data[0].asnumpy())),)]

    def create_operator(self, ctx, shapes, dtypes):
        return Different()


_case(_prop("forty_different"), [np.float32([2, 1, 2, 3, 1])], np.unique, grad=False)

# ------------------------------------------------------------------------------------------- types


@mx.operator.define(types="T->float32", name="forty_to_single")
def to_single(x):
    return (x * 2).astype("float32")


@to_single.grad
def to_single_grad(g, ins, outs):
    return (g * 2).astype(ins[0].dtype)


_case(to_single, [_normal(3).astype(np.float16)], lambda x: (2 * x).astype(np.float32))


class Precise(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.sum(in_data[0].astype("float64") ** 2, axis=1))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        g = mx.nd.broadcast_mul(2 * in_data[0].astype("float64"), out_grad[0].expand_dims(1))
        self.assign(in_grad[0], req[0], g.astype(in_data[0].dtype))


@mx.operator.register("forty_precise")
class PreciseProp(mx.operator.CustomOpProp):
    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0][:1]], []

    def infer_type(self, in_type):
        return in_type, [np.float64], []

    def create_operator(self, ctx, shapes, dtypes):
        return Precise()


_case(_prop("forty_precise"), [_normal(3, 4)], lambda x: (x.astype(np.float64) ** 2).sum(1))


@mx.operator.define(types="T,U->T", name="forty_mixed")
def mixed(x, scale):
    return x * scale.astype(x.dtype)


@mixed.grad
def mixed_grad(g, ins, outs):
    x, scale = ins
    return g * scale.astype(x.dtype), (g * x).astype(scale.dtype)


_case(mixed, [_normal(3), np.float64([1, 2, 3])], lambda x, s: x * s.astype(np.float32))

# ------------------------------------------------------------------------------------------- any number of inputs


@mx.operator.define(traced=True, name="forty_product_of")
def product_of(*factors):
    found = factors[0]
    for each in factors[1:]:
        found = found * each
    return found


_case(product_of, [_normal(2, 2), _normal(2, 2), _normal(2, 2)], lambda a, b, c: a * b * c, smooth=True)


@mx.operator.define(name="forty_columns")
def columns(*parts):
    return np.concatenate([each.asnumpy() for each in parts], 1)


@columns.infer
def columns_infer(*parts):
    return (parts[0][0], sum(each[1] for each in parts))


@columns.grad
def columns_grad(g, ins, outs):
    found, at = [], 0
    for each in ins:
        found.append(mx.nd.slice_axis(g, axis=1, begin=at, end=at + each.shape[1]))
        at += each.shape[1]
    return found


_case(columns, [_normal(2, 1), _normal(2, 3)], lambda a, b: np.concatenate([a, b], 1), smooth=True)

# ------------------------------------------------------------------------------------------- recurrent


class Leaking(mx.operator.CustomOp):
    def __init__(self, keep):
        self.keep = keep

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        found, h = np.empty_like(x), np.zeros(x.shape[1:], x.dtype)
        for t, each in enumerate(x):
            h = found[t] = np.tanh(self.keep * h + each)
        self.assign(out_data[0], req[0], mx.nd.array(found, dtype=x.dtype))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        g, y = out_grad[0].asnumpy(), out_data[0].asnumpy()
        found, after = np.empty_like(g), np.zeros(g.shape[1:], g.dtype)
        for t in reversed(range(len(g))):
            found[t] = (g[t] + after) * (1 - y[t] * y[t])
            after = self.keep * found[t]
        self.assign(in_grad[0], req[0], mx.nd.array(found, dtype=g.dtype))


@mx.operator.register("forty_leaking")
class LeakingProp(mx.operator.CustomOpProp):
    def __init__(self, keep: float = 0.5):
        super().__init__()
        self.keep = keep

    def create_operator(self, ctx, shapes, dtypes):
        return Leaking(self.keep)


def _leaking(x, w=0.5):
    found, h = [], 0 * x[0]
    for each in x:
        h = np.tanh(w * h + each)
        found.append(h)
    return np.stack(found)


_case(_prop("forty_leaking"), [_normal(4, 2)], _leaking)


@mx.operator.define(traced=True, name="forty_recurrent")
def recurrent(x, w):
    h, found = mx.nd.zeros_like(x[0]), []
    for t in range(x.shape[0]):
        h = mx.nd.tanh(mx.nd.dot(h, w) + x[t])
        found.append(h)
    return mx.nd.stack(*found)


def _recurrent(x, w):
    found, h = [], 0 * x[0]
    for each in x:
        h = np.tanh(h @ w + each)
        found.append(h)
    return np.stack(found)


_case(recurrent, [_normal(3, 2, 2), _normal(2, 2)], _recurrent, smooth=True)

# ------------------------------------------------------------------------------------------- images and attention


@mx.operator.define(name="forty_edges")
def edges(image):
    x = np.pad(image.asnumpy(), ((0, 0), (0, 0), (1, 1), (1, 1)))
    return x[..., 1:-1, 2:] - x[..., 1:-1, :-2]


@edges.grad
def edges_grad(g, ins, outs):
    return -edges(g)


_case(edges, [_normal(1, 2, 3, 4)], lambda x: np.pad(x, ((0, 0),) * 3 + ((0, 1),))[..., 1:] - np.pad(
    x, ((0, 0),) * 3 + ((1, 0),))[..., :-1], smooth=True)


@mx.operator.define(traced=True, name="forty_blurred")
def blurred(image):
    return mx.nd.Pooling(image, kernel=(2, 2), pool_type="avg") ** 2


_case(blurred, [_normal(1, 1, 3, 3)], lambda x: ((x[..., 1:, 1:] + x[..., 1:, :-1] + x[..., :-1, 1:] + x[..., :-1, :-1])
                                                 / 4) ** 2, smooth=True)


@mx.operator.define(traced=True, name="forty_attention")
def attention(q, k, v, *, scale: float = 1.0):
    return mx.nd.batch_dot(mx.nd.softmax(mx.nd.batch_dot(q, k, transpose_b=True) * scale), v)


def _attention(q, k, v):
    return _softmax(0.5 * q @ k.transpose(0, 2, 1)) @ v


_case(attention, [_normal(1, 2, 3), _normal(1, 3, 3), _normal(1, 3, 2)], _attention, attrs={"scale": 0.5}, smooth=True)


class Attention(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        q, k, v = (each.asnumpy() for each in in_data)
        self.weights = _softmax(0.5 * q @ k.transpose(0, 2, 1))
        self.assign(out_data[0], req[0], mx.nd.array(self.weights @ v, dtype=q.dtype))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        (g,), (q, k, v), w = [each.asnumpy() for each in out_grad], [each.asnumpy() for each in in_data], self.weights
        to_w = g @ v.transpose(0, 2, 1)
        scores = 0.5 * w * (to_w - (to_w * w).sum(-1, keepdims=True))
        found = scores @ k, scores.transpose(0, 2, 1) @ q, w.transpose(0, 2, 1) @ g
        for dst, asked, value in zip(in_grad, req, found):
            self.assign(dst, asked, mx.nd.array(value, dtype=value.dtype))


@mx.operator.register("forty_attention_numpy")
class AttentionProp(mx.operator.CustomOpProp):
    def list_arguments(self):
        return ["q", "k", "v"]

    def infer_shape(self, in_shape):
        q, _, v = in_shape
        return in_shape, [(*q[:2], v[2])], []

    def create_operator(self, ctx, shapes, dtypes):
        return Attention()


_case(_prop("forty_attention_numpy"), [_normal(1, 2, 3), _normal(1, 3, 3), _normal(1, 3, 2)], _attention)

# ------------------------------------------------------------------------------------------- writing by hand


class ByHand(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if req[0] == "add":
            out_data[0][:] += mx.nd.exp(in_data[0])
        elif req[0] != "null":
            out_data[0][:] = mx.nd.exp(in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        if req[0] == "add":
            in_grad[0][:] += out_grad[0] * out_data[0]
        elif req[0] != "null":
            for row in range(in_grad[0].shape[0]):
                in_grad[0][row] = out_grad[0][row] * out_data[0][row]


@mx.operator.register("forty_by_hand")
class ByHandProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return ByHand()


_case(_prop("forty_by_hand"), [_normal(3, 2)], np.exp)


class Summed(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.cumsum(in_data[0] * in_data[0], axis=0))


@mx.operator.register("forty_summed")
class SummedProp(mx.operator.CustomOpProp):
    traced = True

    def create_operator(self, ctx, shapes, dtypes):
        return Summed()


_case(_prop("forty_summed"), [_normal(4, 2)], lambda x: np.cumsum(x * x, 0), smooth=True)


@mx.operator.define(name="forty_where_it_runs")
def where_it_runs(x, *, ctx):
    return x + mx.nd.ones(x.shape, ctx=ctx, dtype=x.dtype)


@where_it_runs.grad
def where_it_runs_grad(g, ins, outs):
    return g


_case(where_it_runs, [_normal(3)], lambda x: x + 1, smooth=True)

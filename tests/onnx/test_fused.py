"""Operators of ONNX Runtime that stand for several of ONNX: their values, as Cells and symbols, gradients, and
errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import opreg as mx
from opreg.errors import OpError
from tests.questions import of_each

onnx = pytest.importorskip("onnx")

from opreg.onnx import import_model, import_to_cell  # noqa: E402  the package may be missing

RNG = np.random.default_rng(3)
Expected = Callable[..., Any]


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def whole(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int32)


class Row(NamedTuple):
    """A node, its inputs in order, with None for one that is left out, and its expected outputs."""

    op: str
    inputs: list[Any]
    expected: Expected
    attrs: dict[str, Any] = {}
    domain: str = "com.microsoft"
    close: float = 1e-5


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def fast_gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def layer_norm(x: np.ndarray, scale: Any, bias: Any = 0.0, epsilon: float = 1e-12) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + epsilon) * scale + bias


def rms_norm(x: np.ndarray, scale: np.ndarray, epsilon: float = 1e-12) -> np.ndarray:
    return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + epsilon) * scale


def convolved(x: np.ndarray, w: np.ndarray, b: Any = 0.0) -> np.ndarray:
    """A convolution with windows of one element."""
    return np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]) + np.reshape(b, (-1, 1, 1))


X, IMAGE = draw(2, 5, 12), draw(2, 3, 4, 4)
KERNEL = [draw(4, 3, 1, 1), draw(4)]
ROWS = [
    Row("Gelu", [X], gelu),
    Row("BiasGelu", [X, draw(12)], lambda x, b: gelu(x + b)),
    Row("FastGelu", [X], fast_gelu),
    Row("FastGelu", [X, draw(12)], lambda x, b: fast_gelu(x + b)),
    Row("GemmFastGelu", [X, draw(12, 3), draw(3)], lambda x, w, b: fast_gelu(x @ w + b)),
    Row("QuickGelu", [X], lambda x: x * logistic(1.5 * x), {"alpha": 1.5}),
    Row("BiasAdd", [X, draw(12), draw(2, 5, 12)], lambda x, b, skip: x + b + skip),
    Row("BiasSplitGelu", [X, draw(12)], lambda x, b: (x + b)[..., :6] * gelu((x + b)[..., 6:])),
    *[Row("FusedConv", [IMAGE, *KERNEL], lambda x, w, b, f=function: f(convolved(x, w, b)),
          {"activation": name, **params}) for name, params, function in (
              ("Relu", {}, lambda y: np.maximum(y, 0)), ("Tanh", {}, np.tanh), ("Sigmoid", {}, logistic),
              ("LeakyRelu", {"activation_params": [0.25]}, lambda y: np.where(y > 0, y, 0.25 * y)),
              ("Clip", {"activation_params": [-0.5, 0.75]}, lambda y: np.clip(y, -0.5, 0.75)),
              ("HardSigmoid", {"activation_params": [0.3, 0.4]}, lambda y: np.clip(0.3 * y + 0.4, 0, 1)))],
    Row("FusedConv", [IMAGE, *KERNEL, draw(2, 4, 4, 4)], lambda x, w, b, z: np.maximum(convolved(x, w, b) + z, 0),
        {"activation": "Relu"}),
    Row("NhwcConv", [IMAGE, draw(5, 1, 1, 4)], lambda x, w: np.einsum("nhwc,oc->nhwo", x, w[:, 0, 0])),
    Row("FusedGemm", [draw(4, 5), draw(6, 5), draw(6)], lambda a, b, c: np.tanh(0.5 * a @ b.T + 0.25 * c),
        {"activation": "Tanh", "transB": 1, "alpha": 0.5, "beta": 0.25}),
    Row("FusedGemm", [draw(4, 5), draw(5, 6)], lambda a, b: np.where(a @ b > 0, a @ b, 0.2 * (a @ b)),
        {"activation": "LeakyRelu", "activation_alpha": 0.2}),
    Row("FusedMatMul", [draw(2, 3, 4, 5), draw(2, 3, 6, 5)], lambda a, b: 0.5 * a @ b.swapaxes(2, 3),
        {"transB": 1, "alpha": 0.5}),
    Row("FusedMatMul", [draw(4, 2, 3, 5), draw(5, 2, 3, 6)], lambda a, b: np.moveaxis(a, 0, 2) @ np.moveaxis(b, 0, 2),
        {"transBatchA": 1, "transBatchB": 1}),
    Row("FusedMatMul", [draw(5, 2, 3, 4), draw(2, 3, 5, 6)], lambda a, b: np.moveaxis(a, 0, 3) @ b,
        {"transBatchA": 1, "transA": 1}),
    Row("TransposeMatMul", [draw(5, 4), draw(5, 6)], lambda a, b: a.T @ b, {"transA": 1}),
    Row("SimplifiedLayerNormalization", [X, draw(12)], lambda x, w: rms_norm(x, w, 1e-5), domain=""),
    Row("SimplifiedLayerNormalization", [X, draw(12)], lambda x, w: rms_norm(x, w, 0.5), {"epsilon": 0.5}),
    Row("SkipLayerNormalization", [X, draw(2, 5, 12), draw(12), draw(12), draw(12)],
        lambda x, s, w, b, c: (layer_norm(x + s + c, w, b, 0.1), None, None, x + s + c), {"epsilon": 0.1}),
    Row("SkipLayerNormalization", [X, draw(5, 12), draw(12)], lambda x, s, w: layer_norm(x + s, w)),
    Row("SkipSimplifiedLayerNormalization", [X, draw(2, 5, 12), draw(12), draw(12)],
        lambda x, s, w, c: (rms_norm(x + s + c, w), None, None, x + s + c)),
    Row("GroupNorm", [IMAGE, draw(4), draw(4)], lambda x, w, b: layer_norm(
        x.reshape(2, 12, 2, 2).swapaxes(1, 2).reshape(2, 2, 24), 1.0, 0.0, 1e-5).reshape(2, 2, 12, 2).swapaxes(
            1, 2).reshape(x.shape) * w + b, {"activation": 0, "groups": 2}),
    Row("SkipGroupNorm", [draw(2, 4, 3, 3), draw(4), draw(4), draw(2, 4), draw(4)], lambda x, w, b, s, c: (
        (lambda y: y * logistic(y))(layer_norm((x + s[:, :, None, None] + c[:, None, None]).reshape(2, 2, 18), 1.0,
                                               0.0, 1e-5).reshape(x.shape) * w[:, None, None] + b[:, None, None]),
        x + s[:, :, None, None] + c[:, None, None]), {"activation": 1, "groups": 2, "channels_last": 0}),
    Row("Trilu", [draw(4, 4)], np.tril, {"upper": 0}),
    Row("Range", [np.float32(1), np.float32(3), np.float32(0.5)], np.arange),
    Row("Range", [np.int32(1), np.int32(5)], np.arange),
    Row("Pad", [draw(2, 3), np.array([1, 0, 0, 2])], lambda x, pads: np.pad(x, [(1, 0), (0, 2)])),
    Row("ExpandDims", [draw(2, 3), np.int32(1)], lambda x, axis: x[:, None]),
    Row("Inverse", [draw(3, 3)], np.linalg.inv, close=1e-4),
    Row("CDist", [draw(3, 4), draw(5, 4)], lambda a, b: ((a[:, None] - b) ** 2).sum(-1), {"metric": "sqeuclidean"}),
    Row("CDist", [draw(3, 4), draw(5, 4)], lambda a, b: np.sqrt(((a[:, None] - b) ** 2).sum(-1)),
        {"metric": "euclidean"}),
]

WORDS, PLACES = RNG.integers(0, 7, (2, 5)).astype(np.int32), RNG.integers(0, 9, (2, 5)).astype(np.int32)
SHOWN = whole([1, 1, 1, 1, 1], [1, 1, 1, 0, 0])
TABLES = [draw(7, 12), draw(9, 12), draw(2, 12), draw(12), draw(12)]
ROWS += [
    Row("EmbedLayerNormalization", [WORDS, WORDS % 2, *TABLES, SHOWN], lambda i, s, w, p, t, scale, bias, mask: (
        layer_norm(w[i] + p[:5] + t[s], scale, bias, 0.1), mask.sum(1).astype(np.int32), w[i] + p[:5] + t[s]),
        {"epsilon": 0.1}),
    Row("EmbedLayerNormalization", [WORDS, None, TABLES[0], TABLES[1], None, *TABLES[3:], None, PLACES],
        lambda i, _, w, p, __, scale, bias, ___, at: (layer_norm(w[i] + p[at], scale, bias), np.zeros(2, np.int32),
                                                      w[i] + p[at])),
]

# --------------------------------------------------------------------------------------------------- attention

FILL = -10000.0


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads(x: np.ndarray, count: int) -> np.ndarray:
    return x.reshape(*x.shape[:2], count, -1).swapaxes(1, 2)


def flat(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, bias: Any = 0.0, scale: float | None = None,
             causal: bool = False) -> np.ndarray:
    scores = q @ k.swapaxes(2, 3) * (scale or q.shape[3] ** -0.5) + bias
    if causal:
        scores = np.where(np.tri(q.shape[2], k.shape[2], k.shape[2] - q.shape[2], bool), scores, -np.inf)
    return flat(softmax(scores) @ v)


def hidden(mask: np.ndarray, keys: int, fill: float = FILL) -> np.ndarray:
    """The values that a mask adds to the scores of its sequences."""
    at = np.arange(keys)
    if mask.ndim == 1:
        ends, begins = (mask[:2], mask[2:]) if len(mask) == 4 else (mask, np.zeros_like(mask))
        seen = (at < ends[:, None]) & (at >= begins[:, None])
        return np.where(seen, 0, fill)[:, None, None]
    return np.where(mask > 0, 0, fill)[:, None, None] if mask.ndim == 2 else np.where(mask > 0, 0, fill)[:, None]


def self_attention(x: np.ndarray, w: np.ndarray, b: np.ndarray, mask: Any = None, past: Any = None, added: Any = 0.0,
                   *, causal: bool = False, scale: float | None = None, fill: float = FILL) -> Any:
    q, k, v = (heads(each, 3) for each in np.split(x @ w + b, (12, 24), axis=2))
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    bias = (0 if mask is None else hidden(mask, k.shape[2], fill)) + (0.0 if added is None else added)
    y = attended(q, k, v, bias, scale, causal)
    return y if past is None else (y, np.stack([k, v]))


#: Masks of keys: none, one value for each key, the length of each sequence, its end and beginning, and one row for each
#: query.
MASKS = [None, SHOWN, whole(5, 3), whole(5, 4, 0, 1), np.maximum(SHOWN[:, None], np.eye(5, dtype=np.int32))]
WEIGHTS = [draw(12, 36) / 4, draw(36)]
PAST = draw(2, 2, 3, 4, 4)
ROWS += [
    *[Row("Attention", [X, *WEIGHTS, mask], lambda *each, c=causal: self_attention(*each, causal=c),
          {"num_heads": 3, "unidirectional": int(causal)}) for causal, mask in itertools.product((False, True), MASKS)],
    Row("Attention", [X, *WEIGHTS, SHOWN, None, draw(1, 3, 5, 5)], lambda *each: self_attention(
        *each, scale=0.3, fill=-2.0), {"num_heads": 3, "scale": 0.3, "mask_filter_value": -2.0}),
    *[Row("Attention", [X, *WEIGHTS, whole([1, 0, 1, 1, 0, 1, 1, 1, 1], [1] * 9), PAST], lambda *each, c=causal:
          self_attention(*each, causal=c), {"num_heads": 3, "unidirectional": int(causal)})
      for causal in (False, True)],
    Row("Attention", [X, draw(12, 30), draw(30)], self_attention,
        {"num_heads": 3, "qkv_hidden_sizes": [12, 12, 6]}),
    Row("Attention", [X, *WEIGHTS, np.tile(np.pad(SHOWN, [(0, 0), (0, 2)])[:, None, None], (1, 1, 7, 1))],
        lambda x, w, b, mask: self_attention(x, w, b, mask[:, 0, :5, :5]), {"num_heads": 3}),
]

Q, K, V = draw(2, 5, 12), draw(2, 7, 12), draw(2, 7, 18)


def crossed(q: np.ndarray, k: np.ndarray, v: np.ndarray, b: Any = None, mask: Any = None, added: Any = None,
            k_past: Any = None, v_past: Any = None, *, causal: bool = False) -> Any:
    if b is not None:
        q, k, v = (x + part for x, part in zip((q, k, v), np.split(b, (12, 24))))
    q, k, v = (heads(x, 3) for x in (q, k, v))
    if k_past is not None:
        k, v = np.concatenate([k_past, k], 2), np.concatenate([v_past, v], 2)
    bias = (0 if mask is None else hidden(mask, k.shape[2])) + (0.0 if added is None else added)
    y = attended(q, k, v, bias, causal=causal)
    return y if k_past is None else (y, k, v)


ROWS += [
    Row("MultiHeadAttention", [Q, K, V, draw(42)], crossed, {"num_heads": 3}),
    Row("MultiHeadAttention", [Q, K, V, None, whole(7, 4)], crossed, {"num_heads": 3}),
    Row("MultiHeadAttention", [Q, K, V, None, whole([1] * 7, [1] * 3 + [0] * 4), draw(2, 3, 5, 7)], crossed,
        {"num_heads": 3}),
    *[Row("MultiHeadAttention", [X, Q, Q * 2, draw(36), None, None, *PAST], lambda *each, c=causal: crossed(
        *each, causal=c), {"num_heads": 3, "unidirectional": int(causal)}) for causal in (False, True)],
    Row("MultiHeadAttention", [Q, draw(2, 3, 7, 4), draw(2, 3, 7, 4)], lambda q, k, v: attended(heads(q, 3), k, v),
        {"num_heads": 3}),
    Row("MultiHeadAttention", [Q, draw(2, 7, 3, 2, 4)], lambda q, kv: attended(heads(q, 3), *(
        kv.transpose(3, 0, 2, 1, 4))), {"num_heads": 3}),
    Row("MultiHeadAttention", [draw(2, 7, 3, 3, 4)], lambda qkv: attended(*qkv.transpose(3, 0, 2, 1, 4)),
        {"num_heads": 3}),
]

COS, SIN = np.cos(draw(30, 8)), np.sin(draw(30, 8))


def turned(x: np.ndarray, at: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool = False) -> np.ndarray:
    """Heads rotated by the angles of positions, (batch, length)."""
    half, y = cos.shape[1], x.copy()
    order = np.arange(2 * half).reshape(half, 2).T if interleaved else np.arange(2 * half).reshape(2, half)
    first, second = order
    real, imaginary, cos, sin = x[..., first], x[..., second], cos[at][:, None], sin[at][:, None]
    y[..., first], y[..., second] = real * cos - imaginary * sin, real * sin + imaginary * cos
    return y


AT, LONG = RNG.integers(0, 30, (2, 5)), draw(2, 5, 48)
ROWS += [
    Row("RotaryEmbedding", [LONG, AT, COS, SIN], lambda x, at, c, s: flat(turned(heads(x, 3), at, c, s))),
    Row("RotaryEmbedding", [LONG, np.array([4]), COS, SIN], lambda x, at, c, s: flat(turned(
        heads(x, 3), np.tile(np.arange(4, 9), (2, 1)), c, s))),
    Row("RotaryEmbedding", [heads(LONG, 3).copy(), AT, COS, SIN], lambda x, at, c, s: turned(x, at, c, s, True),
        {"interleaved": 1}),
    Row("RotaryEmbedding", [LONG, AT, COS[:, :4], SIN[:, :4]], lambda x, at, c, s: flat(turned(heads(x, 3), at, c, s)),
        {"num_heads": 3, "rotary_embedding_dim": 8}),
]


def grouped(q: np.ndarray, k: Any, v: Any, k_past: np.ndarray, v_past: np.ndarray, last: np.ndarray, total: np.ndarray,
            cos: Any = None, sin: Any = None, at: Any = None, added: Any = None, sink: Any = None, *,
            interleaved: bool = False, window: int = 0, softcap: float = 0.0, smooth: bool = False, causal: bool = True
            ) -> Any:
    """Attention of one sequence after another; rows after its end are zeros."""
    if k is None:
        q, k, v = np.split(q, (64, 96), axis=2)
    room = max(int(total), k_past.shape[2])
    outs, caches = np.zeros((2, q.shape[1], 64)), np.zeros((2, 2, 2, room, 16))
    for i, count in enumerate(last + 1):
        new = min(q.shape[1], count)
        before = count - new
        spots = (np.arange(before, count) if at is None else at[i, :new])[None]
        own, key, value = (heads(x[i:i + 1, :new], x.shape[2] // 16) for x in (q, k, v))
        if cos is not None:
            own, key = (turned(x, spots, cos, sin, interleaved) for x in (own, key))
        for cache, past, x in zip(caches, (k_past, v_past), (key, value)):
            cache[i, :, :count] = np.concatenate([past[i, :, :before], x[0]], 1)
        key, value = (np.repeat(cache[i:i + 1, :, :count], 2, 1) for cache in caches)
        scores = own @ key.swapaxes(2, 3) / 4
        scores = np.tanh(scores / softcap) * softcap if softcap else scores
        scores += 0 if added is None else added[i if len(added) > 1 else 0][None, :, :new, :count]
        apart = np.arange(before, count)[:, None] - np.arange(count)
        hide = ((apart < 0) & causal) | ((apart >= window) if window else False)
        scores = np.where(hide, -np.inf, scores)
        if smooth or sink is not None:
            extra = np.zeros(4) if sink is None else sink
            scores = np.concatenate([scores, np.broadcast_to(extra[None, :, None, None], (*scores.shape[:3], 1))], 3)
        outs[i, :new] = flat(softmax(scores)[..., :count] @ value)[0]
    return outs, *caches


def group(length: int = 5, past: int = 0, last: Any = None, room: int = 0, packed: bool = False, rotary: bool = False,
          more: tuple[Any, ...] = (), attrs: dict[str, Any] | None = None, **words: Any) -> Row:
    """A row of four heads, of which two share keys and values."""
    ends = whole(*([past + length - 1] * 2 if last is None else last))
    given = [draw(2, length, 128), None, None] if packed else [draw(2, length, 64), draw(2, length, 32),
                                                               draw(2, length, 32)]
    inputs = [*given, draw(2, 2, room or past, 16), draw(2, 2, room or past, 16), ends, np.int32(past + length),
              *((COS, SIN) if rotary else (None, None)), *more]
    return Row("GroupQueryAttention", inputs, lambda *each: grouped(*each, **words),
               {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary), **(attrs or {})})


ROWS += [
    group(), group(rotary=True), group(rotary=True, attrs={"rotary_interleaved": 1}, interleaved=True),
    group(packed=True, rotary=True), group(last=[4, 2]), group(1, 4, rotary=True), group(1, 4, [4, 2], packed=True),
    group(1, 4, room=9), group(1, 4, [4, 1], 9, rotary=True), group(attrs={"local_window_size": 2}, window=2),
    group(1, 6, attrs={"local_window_size": 3}, window=3), group(attrs={"softcap": 2.0}, softcap=2.0),
    group(attrs={"smooth_softmax": 1}, smooth=True), group(attrs={"causal": 0}, causal=False),
    group(more=(None, draw(1, 1, 5, 5))), group(more=(None, None, draw(4))), group(room=9),
    group(rotary=True, more=(np.tile(np.arange(3, 8), (2, 1)),)),
]

# ------------------------------------------------------------------------------------- integers and a scale

A8, B8 = RNG.integers(0, 255, (2, 5, 12), dtype=np.uint8), RNG.integers(0, 255, (12, 36), dtype=np.uint8)
STEP, ZERO = np.float32(0.02), np.uint8(120)


def real(x: np.ndarray, scale: Any = STEP, zero: Any = ZERO) -> np.ndarray:
    return (x.astype(np.float64) - np.float64(zero)) * scale


def rounded(x: np.ndarray) -> np.ndarray:
    """An array quantized to bytes and back, with a range of its own that contains zero."""
    low, high = min(x.min(), 0.0), max(x.max(), 0.0)
    step = (high - low) / 255
    zero = np.rint(-low / step)
    return (np.clip(np.rint(x / step) + zero, 0, 255) - zero) * step


ROWS += [
    Row("MatMulIntegerToFloat", [A8, B8, STEP, draw(36), ZERO, None, draw(36)],
        lambda a, b, s, t, z, _, c: real(a, s, z) @ real(b, t, 0) + c),
    Row("DynamicQuantizeMatMul", [draw(4, 12), B8, STEP, ZERO, draw(36)],
        lambda a, b, s, z, c: rounded(a) @ real(b, s, z) + c),
    Row("QAttention", [A8, B8, draw(36), STEP, np.float32(0.01), whole(5, 3), ZERO, ZERO],
        lambda x, w, b, s, t, mask, y, z: self_attention(real(x, s, y), real(w, t, z), b, mask), {"num_heads": 3}),
    Row("NhwcMaxPool", [RNG.integers(0, 255, (2, 4, 4, 3), dtype=np.uint8)],
        lambda x: x.reshape(2, 2, 2, 2, 2, 3).max((2, 4)), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Row("QLinearConv", [RNG.integers(0, 255, (2, 4, 4, 3), dtype=np.uint8), STEP, ZERO,
                        RNG.integers(0, 255, (4, 3, 1, 1), dtype=np.uint8), STEP, ZERO, np.float32(0.5), ZERO],
        lambda x, s, y, w, t, z, r, q: np.clip(np.rint(convolved(real(x, s, y).transpose(0, 3, 1, 2), real(
            w, t, z)).transpose(0, 2, 3, 1) / r) + q, 0, 255).astype(np.uint8),
        {"channels_last": 1}),
]



def experts(x: np.ndarray, router: np.ndarray, first: np.ndarray, b: Any, second: np.ndarray, c: Any = None,
            third: Any = None, k: int = 1, act: Expected = lambda x: np.maximum(x, 0), share: bool = False) -> Any:
    """The two layers of the router's ``k`` best experts, token by token."""
    flat, weights = x.reshape(-1, x.shape[-1]), np.exp(router) / np.exp(router).sum(-1, keepdims=True)
    out = np.zeros_like(flat)
    for t, token in enumerate(flat):
        best = np.argsort(-weights[t])[:k]
        for e in best:
            h = act(first[e] @ token + (0 if b is None else b[e])) * (1 if third is None else third[e] @ token)
            out[t] += (second[e] @ h + (0 if c is None else c[e])) * weights[t, e] / (weights[t, best].sum() if share
                                                                                      else 1)
    return out.reshape(x.shape)


def swiglu(x: np.ndarray) -> np.ndarray:
    gate, line = np.minimum(x[::2], 0.7), np.clip(x[1::2], -0.7, 0.7)
    return gate * logistic(1.7 * gate) * (line + 1)


EXPERTS = [draw(2, 3, 8), draw(6, 4), draw(4, 5, 8), draw(4, 5), draw(4, 8, 5), draw(4, 8)]
TWICE = [*EXPERTS[:2], draw(4, 10, 8), draw(4, 10), *EXPERTS[4:]]
CODES = RNG.integers(0, 256, 60, dtype=np.uint8)
FP4 = [0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4]


def of_codes(a: np.ndarray, codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    signed = np.array([*FP4, *[-x for x in FP4]])[np.stack([codes >> 4, codes & 15], 1).reshape(-1)]
    return a @ (signed * np.repeat(scales, 16)[:120]).reshape(5, 24).T


ROWS += [
    Row("MoE", EXPERTS, experts), Row("MoE", EXPERTS, lambda *each: experts(*each, k=2), {"k": 2}),
    Row("MoE", EXPERTS, lambda *each: experts(*each, k=3, share=True), {"k": 3, "normalize_routing_weights": 1}),
    Row("MoE", [*EXPERTS[:3], None, EXPERTS[4]], lambda *each: experts(*each, act=fast_gelu),
        {"activation_type": "gelu"}),
    Row("MoE", [*EXPERTS, draw(4, 5, 8)], lambda *each: experts(*each, act=lambda x: x * logistic(x), k=2),
        {"k": 2, "activation_type": "silu"}),
    Row("MoE", TWICE, lambda *each: experts(*each, act=swiglu, k=2),
        {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.7, "activation_beta": 1.0,
         "swiglu_limit": 0.7}),
    Row("MoE", TWICE, lambda *each: experts(*each, act=lambda x: x[:5] * logistic(x[:5]) * x[5:]),
        {"activation_type": "swiglu", "swiglu_fusion": 2}),
    Row("MatMulBnb4", [draw(3, 24), CODES, np.abs(draw(8))], of_codes,
        {"K": 24, "N": 5, "block_size": 16, "quant_type": 0}),
]

#: The inputs of operators that are constants where a symbol is made.
FIXED = {"Range": (0, 1, 2), "Pad": (1,), "ExpandDims": (1,), "GroupQueryAttention": (6,), "MatMulBnb4": (1,),
         "MatMulIntegerToFloat": (1, 5), "DynamicQuantizeMatMul": (1, 3), "QAttention": (1, 7), "QLinearConv": (3, 5)}


def made(row: Row, outputs: list[str]) -> tuple[Any, dict[str, np.ndarray]]:
    """A model of the node, and the values of its inputs."""
    names = ["" if each is None else f"x{i}" for i, each in enumerate(row.inputs)]
    fixed = FIXED.get(row.op, ())
    given = {name: np.asarray(each) for i, (name, each) in enumerate(zip(names, row.inputs)) if name and i not in fixed}
    node = onnx.helper.make_node(row.op, names, outputs, domain=row.domain, **row.attrs)
    infos = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
             for name, each in given.items()]
    held = [onnx.numpy_helper.from_array(np.asarray(row.inputs[i]), names[i]) for i in fixed
            if i < len(names) and names[i]]
    graph = onnx.helper.make_graph([node], "test", infos, [onnx.ValueInfoProto(name=each) for each in outputs if each],
                                   held)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), given


def known(row: Row, results: Any) -> list[np.ndarray]:
    """The outputs, with zeros for values that the operator does not define: rows after the end of a sequence."""
    arrays = [np.array(each, copy=True) for each in results]
    if row.op == "GroupQueryAttention":
        for i, count in enumerate(row.inputs[5] + 1):
            arrays[0][i, min(count, arrays[0].shape[1]):] = 0
            for cache in arrays[1:]:
                cache[i, :, count:] = 0
    return arrays


def wide(row: Row) -> Row:
    """The row in float64."""
    return row._replace(inputs=[each.astype(np.float64) if getattr(each, "dtype", None) == np.float32 else each
                                for each in row.inputs])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op)
def test_fused_operators_give_the_expected_values(row: Row) -> None:
    """Outputs of a Cell and of a symbol equal the expected ones."""
    found = row.expected(*wide(row).inputs)
    wants = found if isinstance(found, tuple) else (found,)
    model, given = made(row, ["" if each is None else f"y{i}" for i, each in enumerate(wants)])
    cell = import_to_cell(model)(*map(mx.Tensor, given.values()))
    symbol, args, _ = import_model(model)
    bound = {name: mx.nd.array(each, dtype=each.dtype) for name, each in given.items()
             if name in symbol.list_arguments()}
    outputs = symbol.bind(mx.cpu(), {**bound, **args}).forward()
    for results in (cell if isinstance(cell, tuple) else (cell,), outputs):
        arrays = known(row, [each.asnumpy() for each in results])
        for own, want in zip(arrays, [each for each in wants if each is not None], strict=True):
            assert own.shape == want.shape
            np.testing.assert_allclose(own, want, rtol=row.close, atol=row.close)


#: Rows whose values have gradients: all of real numbers that no host reads.
SMOOTH = [row for row in ROWS if row.op not in ("Range", "Pad", "ExpandDims", "MatMulIntegerToFloat", "NhwcMaxPool",
                                                "DynamicQuantizeMatMul", "QAttention", "QLinearConv")]


@pytest.mark.parametrize("row", SMOOTH, ids=lambda row: row.op)
def test_gradients_of_fused_operators_agree_with_central_differences(row: Row) -> None:
    """The derivative along one direction of all real inputs agrees with central differences."""
    row = wide(row)
    results = row.expected(*row.inputs)
    outputs = ["" if each is None else f"y{i}" for i, each in enumerate(results if isinstance(results, tuple) else (
        results,))]
    model, given = made(row, outputs)
    cell, draws = import_to_cell(model), np.random.default_rng(1)
    values = list(given.values())
    real = [i for i, each in enumerate(values) if each.dtype == np.float64]
    steps = [draws.standard_normal(each.shape) if i in real else 0 * each for i, each in enumerate(values)]
    weights: list[Any] = []

    def loss(*inputs: Any) -> Any:
        found = cell(*inputs)
        arrays = [each for each in (found if isinstance(found, tuple) else (found,)) if each.dtype == mx.float64]
        weights.extend(mx.Tensor(draws.standard_normal(each.shape)) for each in arrays[len(weights):])
        return sum((each * weight).sum() for each, weight in zip(arrays, weights))

    inputs = [mx.Tensor(each) for each in values]
    gradients = mx.grad(loss, tuple(real))(*inputs)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    along = sum(float((each.asnumpy() * steps[i]).sum()) for i, each in zip(real, gradients))
    above, below = (float(loss(*[mx.Tensor(each + sign * 1e-6 * step) if i in real else mx.Tensor(each)
                                 for i, (each, step) in enumerate(zip(values, steps))]).asnumpy()) for sign in (1, -1))
    assert along == pytest.approx((above - below) / 2e-6, rel=1e-6, abs=1e-6)


@of_each([
    ("MultiHeadAttention", [Q], {"num_heads": 3}, "expected keys and values"),
    ("MultiHeadAttention", [Q, K, V], {"num_heads": 5}, "MultiHeadAttention: query has 12 elements for each position, "
                                                        "which cannot be divided among 5"),
    ("Attention", [X, *WEIGHTS, whole(1, 2, 3)], {"num_heads": 3}, "a mask of 3 elements for 2 sequences"),
    ("Attention", [X, *WEIGHTS], {"num_heads": 3, "do_rotary": 1}, "Attention: do_rotary is not supported"),
    ("RotaryEmbedding", [heads(LONG, 12).copy(), AT, COS, SIN], {}, "8 angles for heads of 4 numbers"),
    ("RotaryEmbedding", [LONG, AT, COS, SIN], {"is_packed_batching": 1}, "is_packed_batching is not supported"),
    ("GroupQueryAttention", [LONG, LONG, LONG], {"num_heads": 3, "kv_num_heads": 3}, "expected seqlens_k and total"),
    ("GroupQueryAttention", [*group().inputs[:6], np.int32(400000)], group().attrs, "length is 400000; .* 5 are new"),
    ("MoE", EXPERTS, {"activation_type": "swigl"}, "activation_type='swigl'. Did you mean 'swiglu'"),
    ("MatMulBnb4", [draw(3, 24), CODES, np.ones(7, np.float32)], {"K": 24, "N": 5, "block_size": 16, "quant_type": 0},
     "60 bytes and scales of shape"),
    ("FusedConv", [IMAGE, *KERNEL], {"activation": "Rellu"}, "activation 'Rellu'. Did you mean 'relu'"),
    ("CDist", [draw(3, 4), draw(5, 4)], {"metric": "cosine"}, "metric='cosine': expected euclidean or sqeuclidean"),
])
def test_wrong_uses_of_fused_nodes_are_refused(op: str, inputs: list[Any], attrs: dict[str, Any], words: str) -> None:
    model, given = made(Row(op, inputs, lambda *each: None, attrs), ["y"])
    with pytest.raises(OpError, match=words):
        import_to_cell(model)(*map(mx.Tensor, given.values()))

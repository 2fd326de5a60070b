"""Rows of Convolution, Deconvolution and their backward operators."""

from __future__ import annotations

import itertools

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]


def _numbers(attrs):
    rank = len(attrs["kernel"])
    return (attrs["kernel"], *(attrs.get(name, default) for name, default in
                               (("stride", (1,) * rank), ("dilate", (1,) * rank), ("pad", (0,) * rank))))


def _taps(x, attrs, places):
    """For each tap, its index and the parts of the padded data that it reads."""
    kernel, stride, dilate, _ = _numbers(attrs)
    for tap in itertools.product(*map(range, kernel)):
        yield tap, x[(..., *(slice(t * d, t * d + (n - 1) * s + 1, s)
                             for t, d, n, s in zip(tap, dilate, places, stride)))]


def _padded(x, pad):
    return np.pad(x, ((0, 0), (0, 0), *((p, p) for p in pad)))


def _convolution(attrs):
    """Channels-first convolution, tap by tap."""
    kernel, stride, dilate, pad = _numbers(attrs)
    groups = attrs.get("num_group", 1)

    def expected(x, w, b=None):
        x = _padded(x, pad)
        places = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(x.shape[2:], kernel, dilate, stride)]
        y = 0.0
        for tap, part in _taps(x, attrs, places):
            parts = zip(np.split(part, groups, 1), np.split(w[(..., *tap)], groups))
            y = y + np.concatenate([np.einsum("nc...,oc->no...", part, v) for part, v in parts], 1)
        return y if b is None else y + b.reshape(-1, *(1,) * len(kernel))

    return expected


def _deconvolution(attrs, places, pad=None):
    """Channels-first transposed convolution, tap by tap."""
    if pad is None:
        pad = _numbers(attrs)[3]
    groups = attrs.get("num_group", 1)

    def expected(x, w, b=None):
        # The output has room for whole windows beyond the padding, which is cropped.
        y = np.zeros((len(x), w.shape[1] * groups, *(n + 2 * p + 9 for n, p in zip(places, pad))), x.dtype)
        for tap, part in _taps(y, attrs, x.shape[2:]):
            parts = zip(np.split(x, groups, 1), np.split(w[(..., *tap)], groups))
            part += np.concatenate([np.einsum("no...,oc->nc...", part, v) for part, v in parts], 1)
        y = y[(..., *(slice(p, p + n) for n, p in zip(places, pad)))]
        return y if b is None else y + b.reshape(-1, *(1,) * len(pad))

    return expected


def _last(array):
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def _channels_last(expected):
    return lambda x, w, b=None: _last(expected(np.moveaxis(x, -1, 1), np.moveaxis(w, -1, 1), b))


def _rows(op, attrs, inputs, expected, name):
    """Rows of the operator and of its three backward operators, which are each other's gradients."""
    attrs = {"num_filter": 4, **attrs, "no_bias": len(inputs) == 2}
    layout = attrs.get("layout") or ("NCW", "NCHW", "NCDHW")[len(attrs["kernel"]) - 1]
    x, w = inputs[:2]
    g = normal(*expected(*inputs).shape, seed=3)
    axes = tuple(i for i, axis in enumerate(layout) if axis != "C")
    return [
        Row(op, inputs, attrs, expected=expected, grad=tuple(range(len(inputs))), second=True, name=name),
        Row(f"_backward_{op}_data", (g, w, x), attrs, grad=(0, 1), second=True, name=name),
        Row(f"_backward_{op}_weight", (g, x, w), attrs, grad=(0, 1), second=True, name=name),
        Row("_backward_Convolution_bias", (g,), {"layout": layout}, expected=lambda g: g.sum(axes), grad=(0,),
            second=True, name=name),
    ]


# Attributes, data shape, weight shape.
_CASES = [
    ("3x3", {"kernel": (3, 3), "pad": (1, 1)}, (2, 3, 5, 6), (4, 3, 3, 3)),
    ("valid", {"kernel": (3, 2)}, (2, 3, 5, 4), (4, 3, 3, 2)),
    ("strided", {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}, (2, 3, 6, 5), (4, 3, 3, 3)),
    ("strided along one axis", {"kernel": (2, 3), "stride": (1, 2), "pad": (0, 1)}, (2, 3, 4, 5), (4, 3, 2, 3)),
    ("dilated", {"kernel": (3, 3), "dilate": (2, 2), "pad": (2, 2)}, (1, 2, 5, 5), (4, 2, 3, 3)),
    ("pointwise", {"kernel": (1, 1)}, (2, 3, 3, 3), (4, 3, 1, 1)),
    ("pointwise strided", {"kernel": (1, 1), "stride": (2, 2)}, (2, 3, 3, 4), (4, 3, 1, 1)),
    ("whole", {"kernel": (3, 2)}, (3, 2, 3, 2), (4, 2, 3, 2)),
    ("padded beyond the kernel", {"kernel": (2, 1), "pad": (2, 1)}, (1, 2, 3, 2), (4, 2, 2, 1)),
    ("few places", {"kernel": (2, 2), "stride": (2, 2)}, (3, 5, 4, 4), (4, 5, 2, 2)),
    ("groups", {"kernel": (3, 3), "num_group": 2, "pad": (1, 1)}, (2, 4, 4, 5), (4, 2, 3, 3)),
    ("groups pointwise", {"kernel": (1, 1), "num_group": 2}, (2, 4, 2, 3), (4, 2, 1, 1)),
    ("depthwise", {"kernel": (3, 3), "num_group": 4, "pad": (1, 1)}, (1, 4, 4, 4), (4, 1, 3, 3)),
    ("depthwise strided", {"kernel": (3, 3), "num_group": 4, "pad": (1, 1), "stride": (2, 2)},
     (1, 4, 5, 4), (4, 1, 3, 3)),
    ("1-d", {"kernel": (3,), "stride": (2,), "layout": "NCW"}, (2, 3, 7), (4, 3, 3)),
    ("1-d dilated", {"kernel": (2,), "dilate": (3,), "pad": (1,)}, (2, 3, 6), (4, 3, 2)),
    ("3-d", {"kernel": (2, 3, 2), "pad": (0, 1, 1), "stride": (1, 2, 1)}, (1, 2, 3, 4, 2), (4, 2, 2, 3, 2)),
]

# Attributes, data shape, weight shape, output places and, with a target shape, the padding it comes to.
_TRANSPOSED = [
    ("3x3", {"kernel": (3, 3)}, (2, 3, 3, 4), (3, 4, 3, 3), (5, 6)),
    ("doubling", {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1)}, (1, 2, 2, 3), (2, 4, 4, 4), (4, 6)),
    ("adjusted", {"kernel": (3, 2), "stride": (3, 2), "adj": (2, 1)}, (1, 2, 2, 2), (2, 4, 3, 2), (8, 5)),
    ("target", {"kernel": (3, 3), "stride": (2, 2), "target_shape": (6, 5)}, (1, 2, 3, 3), (2, 4, 3, 3), (6, 5),
     (1, 1)),
    ("dilated", {"kernel": (2, 2), "dilate": (2, 1), "pad": (1, 0)}, (1, 2, 3, 2), (2, 4, 2, 2), (3, 3)),
    ("groups", {"kernel": (2, 2), "stride": (2, 2), "num_group": 2}, (2, 4, 2, 2), (4, 2, 2, 2), (4, 4)),
    ("pointwise", {"kernel": (1, 1)}, (2, 3, 2, 2), (3, 4, 1, 1), (2, 2)),
    ("from one place", {"kernel": (2, 3)}, (3, 2, 1, 1), (2, 4, 2, 3), (2, 3)),
    ("1-d", {"kernel": (3,), "stride": (2,)}, (2, 3, 4), (3, 4, 3), (9,)),
    ("3-d", {"kernel": (2, 2, 2), "stride": (1, 2, 1)}, (1, 2, 2, 2, 1), (2, 4, 2, 2, 2), (3, 4, 2)),
]


def _cases():
    for number, (name, attrs, data, weight) in enumerate(_CASES):
        inputs = (normal(*data), normal(*weight, seed=1), *((normal(4, seed=2),) if number % 2 else ()))
        yield "Convolution", attrs, inputs, _convolution(attrs), name
    for number, (name, attrs, data, weight, places, *pad) in enumerate(_TRANSPOSED):
        inputs = (normal(*data), normal(*weight, seed=1), *((normal(4, seed=2),) if number % 2 else ()))
        yield "Deconvolution", attrs, inputs, _deconvolution(attrs, places, *pad), name
    for layout, kernel, data, weight in (("NHWC", (3, 2), (2, 4, 4, 3), (4, 3, 2, 3)),
                                         ("NHWC", (1, 1), (2, 2, 3, 3), (4, 1, 1, 3)),
                                         ("NDHWC", (2, 1, 3), (1, 3, 2, 3, 2), (4, 2, 1, 3, 2))):
        attrs = {"kernel": kernel, "layout": layout, "pad": tuple(k // 2 for k in kernel)}
        inputs = (normal(*data), normal(*weight, seed=1), normal(4, seed=2))
        yield "Convolution", attrs, inputs, _channels_last(_convolution(attrs)), f"{layout} {kernel}"
    attrs = {"kernel": (2, 2), "layout": "NHWC", "stride": (2, 1)}
    yield ("Deconvolution", attrs, (normal(1, 2, 3, 2), normal(2, 2, 2, 4, seed=1), normal(4, seed=2)),
           _channels_last(_deconvolution(attrs, (4, 4))), "NHWC")


ROWS: list[Row] = [
    *(row for case in _cases() for row in _rows(*case)),
    Row("Convolution", (normal(2, 3, 5, 6), normal(4, 3, 3, 3, scale=0.2), normal(4)),
        {"kernel": (3, 3), "num_filter": 4}, expected=_convolution({"kernel": (3, 3)}), dtypes=("float16",),
        name="half"),
    Row("Convolution", (normal(0, 3, 5, 6), normal(4, 3, 3, 3), normal(4)), {"kernel": (3, 3), "num_filter": 4},
        expected=_convolution({"kernel": (3, 3)}), name="empty"),
]

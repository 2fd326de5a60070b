"""Rows of the operators on images."""

from __future__ import annotations

import colorsys
import itertools

import numpy as np

from . import Row, integers, normal, uniform

__all__ = ["ROWS"]

_IMAGE = uniform(0, 255, 4, 5, 3)
_BATCH = uniform(0, 255, 2, 3, 4, 3)
_BYTES = integers(0, 256, 4, 5, 3, dtype="uint8")
_ONE = uniform(0, 255, 3, 4, 1)

# ---------------------------------------------------------------------------------- cut, turned, normalized


def _crop(x, y, width, height):
    return lambda data: data[..., y:y + height, x:x + width, :]


def _put(x, y, width, height):
    def expected(g, data):
        found = np.zeros_like(data)
        found[..., y:y + height, x:x + width, :] = g
        return found

    return expected


def _normalize(mean=0.0, std=1.0):
    def expected(data):
        by_channel = [np.broadcast_to(values, data.shape[-3])[:, None, None] for values in (mean, std)]
        return (data - by_channel[0]) / by_channel[1]

    return expected


ROWS: list[Row] = [
    *[Row("_image_to_tensor", [data], expected=lambda x: np.moveaxis(x.astype("float32"), -1, -3) / np.float32(255),
          name=name, tolerance=1e-6) for name, data in (("image", _IMAGE), ("batch", _BATCH), ("bytes", _BYTES))],
    *[Row("_image_normalize", [data], attrs, expected=_normalize(**attrs), grad=(0,), second=True,
          name=f"{name},{attrs}")
      for name, data in (("image", normal(3, 4, 5)), ("batch", normal(2, 3, 2, 4)))
      for attrs in ({}, {"mean": 0.5, "std": 2.0}, {"mean": (1.0, 2.0, 3.0), "std": (0.5, 2.0, 4.0)})],
    Row("_image_normalize", [integers(100, 256, 1, 3, 4, dtype="uint8")], {"mean": 1.0, "std": 2.0},
        expected=lambda x: ((x - 1.0) / 2.0).astype("uint8"), name="bytes"),
    *[Row("_image_crop", [data], attrs, expected=_crop(**attrs), grad=(0,), second=True, name=f"{name},{attrs}")
      for name, data in (("image", _IMAGE), ("batch", _BATCH))
      for attrs in ({"x": 1, "y": 0, "width": 2, "height": 3}, {"x": 3, "y": 2, "width": 1, "height": 1})],
    Row("_image_crop", [_BYTES], {"x": 0, "y": 1, "width": 5, "height": 2}, expected=_crop(0, 1, 5, 2), name="bytes"),
    Row("_backward_image_crop", [normal(2, 3, 3), _IMAGE], {"x": 1, "y": 2, "width": 3, "height": 2},
        expected=_put(1, 2, 3, 2), grad=(0,), second=True),
    *[Row(f"_image_flip_{words}", [data], expected=lambda x, axis=axis: np.flip(x, axis), grad=grad, second=bool(grad),
          name=name)
      for words, axis in (("left_right", 1), ("top_bottom", 0))
      for name, data, grad in (("image", _IMAGE, (0,)), ("bytes", _BYTES, ()))],
    *[Row(f"_image_random_flip_{words}", [_IMAGE], deterministic=False) for words in ("left_right", "top_bottom")],
]

# -------------------------------------------------------------------------------------------------- colors


def _gray(x):
    return x if x.shape[-1] == 1 else (x @ np.array([0.299, 0.587, 0.114], x.dtype))[..., None]


def _hue(x, turns):
    found = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        h, l, s = colorsys.rgb_to_hls(*(float(each) / 255 for each in x[place]))
        found[place] = [each * 255 for each in colorsys.hls_to_rgb((h + turns) % 1, l, s)]
    return found


def _lighting(alpha):
    directions = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    return lambda x: x + directions @ (np.array(alpha) * [55.46, 4.794, 1.148]) if x.shape[-1] == 3 else x


_CHANGES = {
    "brightness": lambda x, a: x * a,
    "contrast": lambda x, a: x * a + (1 - a) * _gray(x).mean(),
    "saturation": lambda x, a: x if x.shape[-1] == 1 else x * a + (1 - a) * _gray(x),
    "hue": lambda x, a: x if x.shape[-1] == 1 else _hue(x, a),
}


def _bytes(change):
    """The change in single precision, cut off to bytes."""
    return lambda x: np.clip(change(x.astype("float32")), 0, 255).astype("uint8")


ROWS += [
    *[Row(f"_image_random_{what}", [data], {"min_factor": factor, "max_factor": factor},
          expected=lambda x, change=change, factor=factor: change(x, factor), name=f"{name},{factor}")
      for what, change in _CHANGES.items() for name, data in (("image", _IMAGE), ("one", _ONE))
      for factor in (0.3, 1.7)],
    *[Row(f"_image_random_{what}", [_BYTES], {"min_factor": 1.7, "max_factor": 1.7},
          expected=_bytes(lambda x, change=_CHANGES[what]: change(x, np.float32(1.7))), name="bytes")
      for what in ("brightness", "contrast")],
    *[Row(f"_image_random_{what}", [_IMAGE], {"min_factor": 0.2, "max_factor": 0.4}, deterministic=False)
      for what in _CHANGES],
    Row("_image_random_color_jitter", [_IMAGE], {"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0},
        expected=lambda x: x),
    Row("_image_random_color_jitter", [_BYTES], {"brightness": 0.2, "contrast": 0.3, "saturation": 0.4, "hue": 0.5},
        deterministic=False, name="bytes"),
    Row("_image_random_color_jitter", [_IMAGE], {"brightness": 0.2, "contrast": 0.3, "saturation": 0.4, "hue": 0.5},
        deterministic=False),
    *[Row("_image_adjust_lighting", [data], {"alpha": (0.1, -0.2, 0.3)}, expected=_lighting((0.1, -0.2, 0.3)),
          grad=(0,), second=True, name=name) for name, data in (("image", _IMAGE), ("one", _ONE))],
    Row("_image_adjust_lighting", [_BYTES], {"alpha": (0.1, -0.2, 0.3)}, name="bytes",
        expected=_bytes(_lighting((0.1, -0.2, 0.3)))),
    Row("_image_random_lighting", [_IMAGE], {"alpha_std": 0.0}, expected=lambda x: x),
    Row("_image_random_lighting", [_IMAGE], deterministic=False),
]

# ------------------------------------------------------------------------------------- resized, bordered


def _keys(t):
    a, t = -0.75, abs(t)
    return ((a + 2) * t - (a + 3)) * t * t + 1 if t <= 1 else (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


_KERNELS = {
    1: lambda t: max(0.0, 1 - abs(t)),
    2: _keys,
    4: lambda t: float(np.sinc(t) * np.sinc(t / 4)) if abs(t) < 4 else 0.0,
}


def _weights(n, m, interp):
    found = np.zeros((m, n))
    for i in range(m):
        if interp == 0:
            found[i, int(i * n / m)] = 1
        elif interp == 3 and n >= m:
            for j in range(n):
                found[i, j] = max(0.0, min((i + 1) * n / m, j + 1) - max(i * n / m, j)) * m / n
        else:
            place = (i + 0.5) * n / m - 0.5
            for j in range(int(np.floor(place)) - 3, int(np.floor(place)) + 5):
                found[i, min(max(j, 0), n - 1)] += _KERNELS[interp](place - j)
            found[i] /= found[i].sum()
    return found


def _resize(height, width, interp=1):
    return lambda x: np.einsum("ih,jw,...hwc->...ijc", _weights(x.shape[-3], height, interp),
                               _weights(x.shape[-2], width, interp), x)


_SMALL = np.array([[0, 101, 203, 7], [52, 255, 31, 90], [17, 4, 250, 133]], "uint8")[..., None]

# Results of OpenCV 3.4 for six columns and four rows, and for three columns and two rows.
_RECORDED: dict[int, tuple[list, list]] = {
    0: ([[0, 0, 101, 203, 203, 7], [0, 0, 101, 203, 203, 7],
         [52, 52, 255, 31, 31, 90], [17, 17, 4, 250, 250, 133]],
        [[0, 101, 203], [52, 255, 31]]),
    1: ([[0, 50, 118, 186, 105, 7], [33, 115, 180, 112, 77, 59],
         [39, 100, 153, 121, 110, 106], [17, 10, 45, 209, 191, 133]],
        [[34, 150, 50], [32, 131, 134]]),
    2: ([[0, 31, 120, 218, 120, 0], [21, 147, 221, 96, 47, 54],
         [33, 122, 180, 104, 94, 117], [17, 0, 26, 236, 227, 125]],
        [[32, 175, 43], [30, 140, 138]]),
    3: ([[0, 51, 101, 203, 105, 7], [35, 119, 203, 88, 75, 62],
         [40, 106, 171, 104, 104, 104], [17, 11, 4, 250, 192, 133]],
        [[51, 149, 62], [43, 132, 133]]),
    4: ([[0, 13, 120, 225, 123, 0], [16, 154, 227, 96, 31, 62],
         [31, 129, 183, 104, 83, 123], [26, 0, 25, 241, 237, 113]],
        [[30, 183, 37], [27, 142, 142]]),
}


def _border(top, bot, left, right, type=0, value=0.0, values=()):
    modes = ["constant", "edge", "symmetric", "wrap", "reflect"]

    def expected(x):
        pads = ((top, bot), (left, right))
        if type:
            return np.pad(x, (*pads, (0, 0)), modes[type])
        return np.stack([np.pad(x[..., i], pads, constant_values=int(values[i] if values else value))
                         for i in range(x.shape[-1])], axis=-1)

    return expected


ROWS += [
    *[Row("_image_resize", [data], {"size": size, "interp": interp}, name=f"{name},{size},{interp}", tolerance=1e-5,
          expected=_resize(size[1], size[0], interp), dtypes=("float64",))
      for name, data in (("image", _IMAGE), ("batch", _BATCH))
      for size, interp in itertools.product([(2, 2), (7, 8), (3, 9)], range(5)) if interp != 3 or size == (2, 2)],
    *[Row("_image_resize", [_IMAGE], attrs, expected=_resize(*shape), tolerance=1e-5, dtypes=("float64",))
      for attrs, shape in (({"size": 3}, (3, 3)), ({"size": (3,), "keep_ratio": True}, (3, 3)),
                           ({"size": 8, "keep_ratio": True}, (8, 10)), ({"size": (5, 4)}, (4, 5)))],
    Row("_image_resize", [uniform(0, 1, 6, 4, 2)], {"size": 2, "keep_ratio": True}, expected=_resize(3, 2),
        name="tall", tolerance=1e-5, dtypes=("float64",)),
    *[Row("_image_resize", [_SMALL], {"size": size, "interp": interp}, name=f"bytes,{size},{interp}",
          expected=lambda x, interp=interp, i=i: np.array(_RECORDED[interp][i], "uint8")[..., None])
      for interp in _RECORDED for i, size in enumerate([(6, 4), (3, 2)])],
    Row("_cvimresize", [_SMALL], {"w": 6, "h": 4}, expected=lambda x: np.array(_RECORDED[1][0], "uint8")[..., None]),
    *[Row("_cvcopyMakeBorder", [_BYTES], attrs, expected=_border(**attrs)) for attrs in (
        {"top": 1, "bot": 2, "left": 3, "right": 0, "value": 9.0},
        {"top": 1, "bot": 0, "left": 1, "right": 2, "values": (1.0, 2.0, 3.0)},
        *({"top": 1, "bot": 7, "left": 9, "right": 3, "type": kind} for kind in (1, 2, 3, 4)))],
]

"""Random changes of images over many draws, and refused images."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from opreg.core import generators
from opreg.core.registry import get
from opreg.errors import AttrError, ShapeError
from opreg.ndarray import array, autograd
from tests.questions import of_each

_IMAGE = np.random.default_rng(0).uniform(20, 200, (4, 5, 3))


def _draws(name: str, count: int, **attrs: float) -> np.ndarray:
    generators.seed(5)
    return np.stack([get(name)(array(_IMAGE, None, "float64"), **attrs).asnumpy() for _ in range(count)])


@pytest.mark.parametrize("words, axis", [("left_right", 1), ("top_bottom", 0)])
def test_random_flips_turn_half_of_the_images(words: str, axis: int) -> None:
    found = _draws(f"_image_random_flip_{words}", 200)
    flipped = (found == np.flip(_IMAGE, axis)).all(axis=(1, 2, 3))
    assert (flipped | (found == _IMAGE).all(axis=(1, 2, 3))).all()
    assert 70 < flipped.sum() < 130


def test_factors_fill_their_range() -> None:
    factors = _draws("_image_random_brightness", 200, min_factor=0.5, max_factor=2.0)[:, 0, 0, 0] / _IMAGE[0, 0, 0]
    assert 0.5 <= factors.min() < 0.55 and 1.95 < factors.max() <= 2.0 and 1.1 < factors.mean() < 1.4


def test_jitter_draws_every_factor() -> None:
    """A factor b or c of brightness or contrast scales pixels, or their distances from the mean gray."""
    found = _draws("_image_random_color_jitter", 100, brightness=0.5, contrast=0.3, saturation=0.0, hue=0.0)
    gray = _IMAGE @ [0.299, 0.587, 0.114]
    brightness = (found @ [0.299, 0.587, 0.114]).mean(axis=(1, 2)) / gray.mean()
    contrast = [np.polyfit(_IMAGE.ravel(), each.ravel(), 1)[0] for each in found] / brightness
    for factors, most in ((brightness, 0.5), (contrast, 0.3)):
        assert 1 - most <= factors.min() < 1 - 0.9 * most and 1 + 0.9 * most < factors.max() <= 1 + most
    (hue,) = (_draws("_image_random_color_jitter", 1, brightness=0, contrast=0, saturation=0, hue=0.4))
    np.testing.assert_allclose(hue.max(axis=2) + hue.min(axis=2), _IMAGE.max(axis=2) + _IMAGE.min(axis=2))


def test_lighting_moves_all_pixels_alike() -> None:
    moved = _draws("_image_random_lighting", 200, alpha_std=1.0) - _IMAGE
    assert np.ptp(moved, axis=(1, 2)).max() < 1e-9
    assert moved[:, 0, 0].std(axis=0) == pytest.approx([31.7, 32.2, 32.5], rel=0.15)


def test_random_changes_give_the_output_gradient_as_mxnet_does() -> None:
    factors = {"min_factor": 0.5, "max_factor": 2.0}
    for name, attrs in (("flip_left_right", {}), ("flip_top_bottom", {}), ("brightness", factors),
                        ("contrast", factors), ("saturation", factors), ("hue", factors), ("lighting", {}),
                        ("color_jitter", {"brightness": 0.5, "contrast": 0.5, "saturation": 0.5, "hue": 0.5})):
        x = array(_IMAGE)
        x.attach_grad()
        with autograd.record():
            y = get(f"_image_random_{name}")(x, **attrs)
        y.backward(array(_IMAGE + 1))
        np.testing.assert_allclose(x.grad.asnumpy(), _IMAGE + 1, 1e-6, err_msg=name)


#: CRC-32 of bytes that MXNet 1.9.1 resized to a height and width by each of its five interpolations.
_RESIZED = [
    ((68, 51, 1), (24, 78), (0xfad1d7c5, 0x90a6482e, 0xea46048a, 0x39cd03bc, 0xf13c1892)),
    ((174, 14, 1), (58, 7), (0xb36592af, 0xa28f634d, 0x43a5d831, 0xf766942f, 0xc83dffc6)),
    ((74, 24, 3), (20, 18), (0x5ed77b34, 0xb46d8df3, 0x6527de1e, 0xe823bdeb, 0xd7c7d587)),
    ((50, 86, 3), (86, 59), (0x0f2e4f62, 0x277aa56b, 0xcf430d97, 0x3c7732a8, 0x581d5bde)),
    ((36, 24, 1), (36, 47), (0xd42334ee, 0xf32eb7c9, 0x33beff37, 0x6a2308fd, 0x331fb9d7)),
    ((20, 82, 1), (74, 47), (0xa1eac559, 0x2de9f16e, 0x73124c2a, 0x4f2c2acb, 0xd53220a1)),
    ((89, 66, 3), (267, 198), (0xe555efc0, 0xda8ccef1, 0xc6624953, 0xe555efc0, 0x66525f05)),
    ((40, 60, 3), (20, 30), (0x3925cdc0, 0xa44a85e2, 0x640413d5, 0xa44a85e2, 0x2e40befb)),
    ((7, 5, 3), (1, 1), (0x3fec0201, 0x4a75853e, 0x4a75853e, 0xf40321d6, 0x4a75853e)),
    ((3, 2, 1), (30, 20), (0x0a8c6aaf, 0xe6724250, 0x81fac7e4, 0x0a8c6aaf, 0x0d6c3908)),
    ((98, 49, 3), (2, 1), (0x30c6c649, 0xc332e997, 0xc332e997, 0xfd1ebbdb, 0xc332e997)),
]


@pytest.mark.parametrize("shape, size, expected", _RESIZED)
def test_bytes_are_resized_to_the_bit_as_by_mxnet(shape: tuple, size: tuple, expected: tuple) -> None:
    image = (np.arange(np.prod(shape), dtype=np.uint32) * np.uint32(2654435761) >> 24).astype(np.uint8).reshape(shape)
    for interp, code in enumerate(expected):
        made = get("_cvimresize")(array(image, None, "uint8"), h=size[0], w=size[1], interp=interp).asnumpy()
        assert (interp, zlib.crc32(made)) == (interp, code)


@of_each([
    ("_image_crop", (4, 5, 3), {"x": 4, "y": 0, "width": 2, "height": 2}, AttrError, "x=4"),
    ("_image_crop", (4, 5, 3), {"x": 0, "y": -1, "width": 2, "height": 2}, AttrError, "y=-1"),
    ("_image_to_tensor", (4, 5), {}, ShapeError, "height, width, channel"),
    ("_image_normalize", (2, 4, 5), {}, ShapeError, "one or three channels"),
    ("_image_normalize", (3, 4, 5), {"mean": (1.0, 2.0)}, AttrError, "one for each channel"),
    ("_image_flip_left_right", (2, 4, 5, 3), {}, ShapeError, "height, width, channel"),
    ("_image_random_hue", (4, 5, 4), {"min_factor": 0, "max_factor": 1}, ShapeError, "one or three channels"),
    ("_image_random_contrast", (4, 5, 3), {"min_factor": 2, "max_factor": 1}, AttrError, "above max_factor"),
    ("_image_adjust_lighting", (4, 5, 3), {"alpha": (1, 2)}, AttrError, "three numbers"),
    ("_image_resize", (4, 5, 3), {"size": (0, 2)}, AttrError, "positive"),
    ("_image_resize", (4, 5, 3), {"size": 2, "interp": 5}, AttrError, "interp"),
    ("_image_resize", (0, 5, 3), {"size": 2}, ShapeError, "no pixels"),
    ("_cvcopyMakeBorder", (4, 5, 3), {"top": -1, "bot": 0, "left": 0, "right": 0}, AttrError, "top=-1"),
])
def test_wrong_arguments_of_images_are_refused(name: str, shape: tuple, attrs: dict, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        get(name)(array(np.zeros(shape), None, "float64"), **attrs)

"""What random changes of images do over many draws, and what images are refused."""

from __future__ import annotations

import numpy as np
import pytest

from opreg.core import generators
from opreg.core.registry import get
from opreg.errors import AttrError, ShapeError
from opreg.ndarray import array

_IMAGE = np.random.default_rng(0).uniform(20, 200, (4, 5, 3))


def _draws(name: str, count: int, **attrs: float) -> np.ndarray:
    generators.seed(5)
    return np.stack([get(name)(array(_IMAGE, None, "float64"), **attrs).asnumpy() for _ in range(count)])


@pytest.mark.parametrize("words, axis", [("left_right", 1), ("top_bottom", 0)])
def test_flips_half_of_the_time(words: str, axis: int) -> None:
    found = _draws(f"_image_random_flip_{words}", 200)
    flipped = (found == np.flip(_IMAGE, axis)).all(axis=(1, 2, 3))
    assert (flipped | (found == _IMAGE).all(axis=(1, 2, 3))).all()
    assert 70 < flipped.sum() < 130


def test_factors_fill_their_range() -> None:
    factors = _draws("_image_random_brightness", 200, min_factor=0.5, max_factor=2.0)[:, 0, 0, 0] / _IMAGE[0, 0, 0]
    assert 0.5 <= factors.min() < 0.55 and 1.95 < factors.max() <= 2.0 and 1.1 < factors.mean() < 1.4


def test_jitter_draws_every_factor() -> None:
    """Brightness b and contrast c make pixels b c times as far from the mean gray, which becomes b times itself."""
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


@pytest.mark.parametrize("name, shape, attrs, kind, words", [
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
    ("_image_resize", (0, 5, 3), {"size": 2}, ShapeError, "no pixel"),
    ("_cvcopyMakeBorder", (4, 5, 3), {"top": -1, "bot": 0, "left": 0, "right": 0}, AttrError, "top=-1"),
])
def test_says_what_is_wrong(name: str, shape: tuple, attrs: dict, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        get(name)(array(np.zeros(shape), None, "float64"), **attrs)

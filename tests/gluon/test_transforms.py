"""Gluon's transforms, which change images before they become batches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError
from opreg.gluon import nn
from opreg.gluon.data import DataLoader, SimpleDataset
from opreg.gluon.data.vision import transforms
from tests.questions import of_each

PIXELS = np.random.default_rng(3).integers(0, 256, (12, 10, 3), np.uint8)


def _image() -> Any:
    return mx.nd.array(PIXELS, dtype="uint8")


def test_to_tensor_scales_images() -> None:
    expected = PIXELS.transpose(2, 0, 1).astype("float32") / 255
    np.testing.assert_allclose(transforms.ToTensor()(_image()).asnumpy(), expected, rtol=1e-6)
    batch = transforms.ToTensor()(mx.nd.stack(_image(), _image()))
    np.testing.assert_allclose(batch.asnumpy(), np.stack([expected, expected]), rtol=1e-6)
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    normal = transforms.Normalize(mean, std)(transforms.ToTensor()(_image())).asnumpy()
    np.testing.assert_allclose(normal, (expected - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1)), rtol=1e-5)
    assert transforms.Cast("float16")(_image()).dtype == np.float16


def test_images_are_cropped_and_resized() -> None:
    part = transforms.CropResize(2, 1, 5, 4)(_image())
    assert (part.asnumpy() == PIXELS[1:5, 2:7]).all()
    assert transforms.CropResize(2, 1, 5, 4, (8, 6))(_image()).shape == (6, 8, 3)
    assert transforms.CropResize(2, 1, 5, 4, 7, 1)(mx.nd.stack(_image(), _image())).shape == (2, 7, 7, 3)
    assert (transforms.CenterCrop(4)(_image()).asnumpy() == PIXELS[4:8, 3:7]).all()
    assert transforms.CenterCrop((6, 4))(_image()).shape == (4, 6, 3)
    assert transforms.Resize(5)(_image()).shape == (5, 5, 3)
    assert transforms.Resize(5, keep_ratio=True)(_image()).shape == (6, 5, 3)
    assert transforms.Resize((4, 8))(mx.nd.stack(_image(), _image())).shape == (2, 8, 4, 3)
    assert transforms.RandomResizedCrop((4, 6))(_image()).shape == (6, 4, 3)
    assert transforms.image is mx.image  # scripts read it there


def test_random_flips_flip_some_images() -> None:
    mx.random.seed(0)
    for flip, flipped in ((transforms.RandomFlipLeftRight(), PIXELS[:, ::-1]),
                          (transforms.RandomFlipTopBottom(), PIXELS[::-1])):
        found = {bool((flip(_image()).asnumpy() == flipped).all()) for _ in range(30)}
        assert found == {True, False}


@pytest.mark.parametrize("transform", [
    transforms.RandomBrightness(0.3), transforms.RandomContrast(0.3), transforms.RandomSaturation(0.3),
    transforms.RandomHue(0.3), transforms.RandomColorJitter(0.1, 0.1, 0.1, 0.1), transforms.RandomLighting(0.5),
], ids=lambda transform: type(transform).__name__)
def test_colours_are_drawn(transform: Any) -> None:
    mx.random.seed(0)
    image = _image().astype("float32")
    first, second = transform(image).asnumpy(), transform(image).asnumpy()
    assert first.shape == image.shape and (first != second).any()
    transform.hybridize()
    third, fourth = transform(image).asnumpy(), transform(image).asnumpy()
    assert (third != fourth).any(), "a plan draws anew each time"


def test_brightness_is_a_factor() -> None:
    mx.random.seed(0)
    image = _image().astype("float32") + 1
    for _ in range(20):
        factors = transforms.RandomBrightness(0.25)(image).asnumpy() / image.asnumpy()
        assert factors.min() >= 0.75 - 1e-5 and factors.max() <= 1.25 + 1e-5
        np.testing.assert_allclose(factors, factors[0, 0, 0], rtol=1e-5)


def test_rotations_keep_the_shape() -> None:
    image = transforms.ToTensor()(_image())
    assert transforms.Rotate(0)(image).shape == image.shape
    assert transforms.RandomRotation((-10, 10), zoom_in=True)(image).shape == image.shape
    assert transforms.RandomRotation((-10, 10), rotate_with_proba=0.0)(image) is image
    with pytest.raises(TypeError, match="expected float32, got uint8"):
        transforms.Rotate(5)(_image())
    with pytest.raises(TypeError, match="ToTensor"):
        transforms.RandomRotation((1, 5))(_image())
    with pytest.raises(ValueError, match="smaller one first"):
        transforms.RandomRotation((5, 1))
    with pytest.raises(ValueError, match="from 0 to 1"):
        transforms.RandomRotation((1, 5), rotate_with_proba=1.5)


def test_transforms_are_composed() -> None:
    parts = [transforms.Resize(8), transforms.ToTensor(), transforms.CenterCrop(4), transforms.Cast("float16")]
    together = transforms.Compose(parts)
    assert len(parts) == 4, "the list stays as it is"
    assert [type(part) for part in together] == [nn.HybridSequential, transforms.CenterCrop, transforms.Cast]
    whole = transforms.Compose([transforms.Resize(8), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
    expected = _image()
    for step in (transforms.Resize(8), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)):
        expected = step(expected)
    assert (whole(_image()).asnumpy() == expected.asnumpy()).all()
    assert transforms.Compose([])(expected) is expected


@of_each([
    (lambda: transforms.RandomRotation(30), "RandomRotation: angle_limits=30: expected two numbers"),
    (lambda: transforms.RandomRotation((0, 30), rotate_with_proba=2), "proba=2: expected a number from 0 to 1"),
    (lambda: transforms.RandomColorJitter(hue=-1), "RandomColorJitter: hue=-1: expected a number of at least 0"),
    (lambda: transforms.RandomLighting(float("nan")), "RandomLighting: alpha=nan"),
    (lambda: transforms.RandomApply(transforms.Cast(), 1.5), "RandomApply: p=1.5: expected a number from 0 to 1"),
    (lambda: transforms.Compose([3]), r"Compose: transforms=\[3\]: expected a list of functions"),
    (lambda: transforms.CenterCrop("4"), "CenterCrop: size='4': expected an int or a tuple of ints"),
    (lambda: transforms.RandomResizedCrop(4, ratio=(0, 1))(_image()), "size_crop: ratio=0: expected a number above 0"),
    (lambda: transforms.RandomResizedCrop(4, -1)(_image()), "size_crop: area=-1: expected a number of at least 0"),
])
def test_wrong_settings_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make()


def test_random_apply_applies_to_some_images() -> None:
    random.seed(1)
    twice = transforms.RandomApply(lambda image: image * 2, p=0.5)
    found = {float(twice(mx.nd.ones(1)).asscalar()) for _ in range(30)}
    assert found == {1.0, 2.0}


def test_transforms_run_in_workers() -> None:
    make = transforms.Compose([transforms.RandomFlipLeftRight(), transforms.RandomBrightness(0.5),
                               transforms.ToTensor()])
    samples = SimpleDataset([(_image(), number) for number in range(8)]).transform_first(make)
    mx.random.seed(0)
    batches = list(DataLoader(samples, 4, num_workers=2))
    assert [batch.shape for batch, _ in batches] == [(4, 3, 12, 10)] * 2
    numbers = np.concatenate([batch.asnumpy() for batch, _ in batches])
    assert len({image.tobytes() for image in numbers}) > 4

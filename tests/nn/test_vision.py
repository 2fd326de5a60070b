"""``dataset.vision`` and ``dataset.transforms``: answers of MindSpore 2.10, and random changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opreg.dataset import transforms, vision

import opreg as ms
from opreg import dataset as ds
from opreg.errors import ArgumentError, DTypeError, ShapeError
from tests.questions import function_of, of_each
from tests.recorded.mindspore_vision import CASES, INPUTS, POLICIES, answer, draws

_ANSWERS = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_vision.json").read_text())
RECORDED = {(case, name): made for case, name, made in _ANSWERS["cases"]}


@of_each(CASES, by=lambda case: function_of(case[0]))
def test_answers_are_those_of_mindspore(case: str, name: str) -> None:
    """Integer results are equal to the last bit."""
    found = answer(ms, case, name)
    expected = RECORDED[case, name]
    assert [[each.dtype.name, list(each.shape)] for each in found] == [each[:2] for each in expected]
    for each, (dtype, shape, numbers) in zip(found, expected):
        wanted = np.array(numbers, dtype).reshape(shape)
        if each.dtype.kind == "f":
            np.testing.assert_allclose(each, wanted, 2e-3 if dtype == "float16" else 2e-6, 1e-6)
        else:
            np.testing.assert_array_equal(each, wanted)


@pytest.fixture
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ds.config, "_chosen", {**ds.config._chosen})
    ds.config.set_seed(5)


@pytest.mark.usefixtures("_seeded")
@pytest.mark.parametrize("case", POLICIES)
def test_policies_draw_the_images_of_mindspore(case: str) -> None:
    """Every image that MindSpore draws is drawn, to the last bit; images of a single color, which its wrong translation
    makes, are left out."""
    found: set[int] = set()
    expected = set(_ANSWERS["draws"][case])
    for _ in range(18):
        found.update(draws(ms, case, 500))
        if expected <= found:
            break
    assert expected <= found
    assert case != "V.AutoAugment()" or found == expected  # AutoAugment translates nothing


def test_policies_translate_images() -> None:
    policy = vision.RandomSelectSubpolicy([[(lambda image: image[::-1], 1.0)], [(lambda image: image, 0.0)]])
    assert {policy(RGB).tobytes() for _ in range(20)} == set(_as(lambda image: image[::-1], lambda image: image))
    made = {image.tobytes() for image in (vision.RandAugment(1, 30, 31, fill_value=7)(RGB) for _ in range(400))}
    right = np.full_like(RGB, 7)
    right[:, 4:] = RGB[:, :5]
    assert right.tobytes() in made and right[:, ::-1].tobytes() not in made


RGB: np.ndarray = INPUTS["rgb"]
#: A batch of four images of one value each, and their classes.
BATCH: np.ndarray = np.broadcast_to(np.arange(0, 160, 40, dtype=np.uint8)[:, None, None, None], (4, 10, 10, 3))
LABELS = np.eye(4, dtype=np.int64)


def _as(*operations: Callable[[np.ndarray], np.ndarray]) -> list[bytes]:
    return [operation(RGB).tobytes() for operation in operations]


@pytest.mark.usefixtures("_seeded")
@of_each([
    (vision.RandomPosterize((2, 4)), _as(*[vision.Posterize(bits) for bits in (2, 3, 4)])),
    (vision.RandomSolarize((254, 255)), _as(vision.Solarize(254), vision.Solarize(255), vision.Solarize((254, 255)))),
    (vision.RandomResize((3, 4)), _as(*[vision.Resize((3, 4), kind) for kind in vision.Inter])),
    (vision.RandomInvert(), _as(vision.Invert(), vision.ToNumpy())),
    (vision.UniformAugment([vision.Invert(), vision.Posterize(2)]), _as(*map(transforms.Compose, (
        [vision.Invert()], [vision.Posterize(2)], [vision.ToNumpy()], [vision.Invert(), vision.Posterize(2)])))),
    (vision.RandomEqualize(), _as(vision.Equalize(), vision.ToNumpy())),
    (vision.RandomGrayscale(0.5), _as(vision.Grayscale(3), vision.ToNumpy())),
    (vision.RandomAutoContrast(10.0), _as(vision.AutoContrast(10.0), vision.ToNumpy())),
    (vision.RandomAdjustSharpness(0.0), _as(vision.AdjustSharpness(0.0), vision.ToNumpy())),
    (vision.RandomColorAdjust((2, 2), (0.5, 0.5)), _as(
        transforms.Compose([vision.AdjustBrightness(2), vision.AdjustContrast(0.5)]),
        transforms.Compose([vision.AdjustContrast(0.5), vision.AdjustBrightness(2)])))])
def test_each_choice_is_drawn_and_no_other(drawn: Callable[[np.ndarray], np.ndarray], every: list[bytes]) -> None:
    assert {drawn(RGB).tobytes() for _ in range(80)} == set(every)


@pytest.mark.usefixtures("_seeded")
@pytest.mark.parametrize("drawn, measured, low, high", [
    (vision.RandomColorAdjust(brightness=0.4), lambda made: made.mean() / 100, 0.6, 1.4),
    (vision.RandomColorAdjust(brightness=(0.5, 2.0)), lambda made: made.mean() / 100, 0.5, 2.0),
    (vision.RandomLighting(0.1), lambda made: made[0, 0, 0] - 100.0, -18, 18),
    (vision.RandomAffine(0, (0.0, 0.4)), lambda made: float((made[..., 0] == 0).mean()), 0.0, 0.4),
    (vision.RandomAffine(0, (0.0, 0.0, -0.4, 0.0)), lambda made: float((made[..., 0] == 0).mean()), 0.0, 0.4),
    (vision.RandomAffine(0, scale=(0.5, 1.0)), lambda made: float((made[..., 0] > 0).mean() ** 0.5), 0.5, 1.0),
    (vision.RandomErasing(1.0, (0.1, 0.3), (0.5, 2.0)), lambda made: float((made[0] == 0).mean()), 0.08, 0.32),
    (vision.CutOut(20), lambda made: float((made[..., 0] == 0).mean()), 0.0, 0.25),
    (vision.RandomPerspective(0.5, 1.0), lambda made: float((made[..., 0] == 0).mean()), 0.1, 0.7)])
def test_random_numbers_fill_their_range(drawn: Callable[[np.ndarray], np.ndarray], measured: Callable[..., float],
                                         low: float, high: float) -> None:
    """The measured effect on a flat image stays in its range, and comes within a third of either end."""
    flat = np.full((3, 40, 40) if isinstance(drawn, vision.RandomErasing) else (40, 40, 3), 100, np.uint8)
    found = np.array([measured(drawn(flat)) for _ in range(120)])
    slack = 0.03 * (high - low)
    assert low - slack <= found.min() < low + (high - low) / 3 and high - (high - low) / 3 < found.max() <= high + slack


@pytest.mark.usefixtures("_seeded")
@pytest.mark.parametrize("degrees, low, high", [(30, -30, 30), ((10, 50), 10, 50), ((-50, -10), -50, -10)])
def test_random_rotations_are_counter_clockwise(degrees: Any, low: float, high: float) -> None:
    """The angle of a spot to the right of the middle shows the direction."""
    spot = np.zeros((101, 101, 3), np.uint8)
    spot[50, 88:93] = 255

    def angle(made: np.ndarray) -> float:
        rows, columns = np.nonzero(made[..., 0])
        return float(np.degrees(np.arctan2(50 - rows.mean(), columns.mean() - 50)))

    found = [angle(vision.RandomRotation(degrees)(spot)) for _ in range(60)]
    assert low - 2 < min(found) < low + 12 and high - 12 < max(found) < high + 2


@pytest.mark.usefixtures("_seeded")
@pytest.mark.parametrize("mix, dtypes", [
    (vision.MixUp(4, 0.5), ["float64", "float64"]), (vision.MixUpBatch(0.5), ["uint8", "float32"]),
    (vision.CutMixBatch(vision.ImageBatchFormat.NHWC), ["uint8", "float32"])])
def test_labels_are_mixed_in_the_proportion_of_the_images(mix: Callable[..., Any], dtypes: list[str]) -> None:
    seen = set()
    for _ in range(20):
        images, labels = mix(BATCH, LABELS)
        assert [images.dtype.name, labels.dtype.name] == dtypes and np.allclose(labels.sum(1), 1)
        np.testing.assert_allclose(images.mean((1, 2, 3)), labels @ np.arange(0, 160, 40), atol=1)
        seen.add(labels.tobytes())
    assert len(seen) > 10


@pytest.mark.usefixtures("_seeded")
def test_mixes_take_other_layouts_and_odd_batches() -> None:
    images, labels = vision.CutMixBatch(vision.ImageBatchFormat.NCHW)(BATCH.transpose(0, 3, 1, 2), LABELS)
    assert images.shape == (4, 3, 10, 10) and (labels > 0).sum() > 4
    mix = vision.MixUp(4, 0.5, is_single=False)
    first, _ = mix(BATCH, LABELS)
    assert (first == BATCH).all()
    second, labels = mix(BATCH + 100, LABELS[::-1])
    part, numbers = labels[:, ::-1].diagonal(), BATCH[:, 0, 0, 0]
    np.testing.assert_allclose(second.mean((1, 2, 3)), part * (numbers + 100) + (1 - part) * numbers)


@pytest.mark.usefixtures("_seeded")
@pytest.mark.parametrize("operation", [
    vision.RandomCropWithBBox(12), vision.RandomCropWithBBox((23, 12), (3, 1, 0, 2)),
    vision.RandomCropWithBBox(30, pad_if_needed=True), vision.RandomResizedCropWithBBox((16, 24), (0.1, 1.0), (0.5, 2)),
    vision.RandomHorizontalFlipWithBBox(), vision.RandomVerticalFlipWithBBox(), vision.ResizeWithBBox((40, 10)),
    vision.RandomResizeWithBBox((30, 60))])
def test_boxes_follow_their_objects(operation: Callable[..., tuple[np.ndarray, np.ndarray]]) -> None:
    image = np.zeros((20, 24, 3), np.uint8)
    image[6:11, 4:14] = 200
    for _ in range(30):
        made, boxes = operation(image, np.array([[4, 6, 10, 5, 3]]))
        assert boxes.dtype == np.float32
        rows, columns = np.nonzero(made[..., 0] > 100)
        if not len(rows):
            assert not len(boxes) or boxes[0, 2:4].min() < 1
            continue
        (x, y, width, height, kind), = boxes
        found = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        np.testing.assert_allclose([x, y, x + width, y + height], found, atol=1.5)
        assert kind == 3


@pytest.mark.usefixtures("_seeded")
def test_boxes_are_columns_of_datasets() -> None:
    rows = ds.GeneratorDataset([(RGB, np.float32([[1, 2, 3, 4]]))], ["image", "boxes"]).map(
        vision.RandomHorizontalFlipWithBBox(1.0), ["image", "boxes"])
    (image, boxes), = rows.create_tuple_iterator(output_numpy=True)
    assert (image == RGB[:, ::-1]).all() and boxes.tolist() == [[5, 2, 3, 4]]


def test_a_normalized_image_has_a_channel_of_zeros() -> None:
    """Both layouts have it; with channels last MindSpore 2.10 puts the zeros after the pixels."""
    made = vision.NormalizePad([10.0, 20.0, 30.0], [2.0, 4.0, 8.0])(RGB)
    assert made.dtype == np.float32 and (made[..., 3] == 0).all()
    np.testing.assert_allclose(made[..., :3], (RGB - np.array([10, 20, 30])) / np.array([2, 4, 8]))


def test_erase_changes_the_image_in_place_on_request() -> None:
    image = RGB.copy()
    assert vision.Erase(0, 0, 2, 2, 9)(image) is not image and (image == RGB).all()
    assert vision.Erase(0, 0, 2, 2, 9, inplace=True)(image) is image and (image[:2, :2] == 9).all()


@of_each([
    (lambda: vision.AdjustHue(0.6), ArgumentError, "AdjustHue: hue_factor must be from -0.5 to 0.5, got 0.6"),
    (lambda: vision.AdjustContrast(-1), ArgumentError, "contrast_factor must not be negative, got -1"),
    (lambda: vision.RandomColorAdjust(contrast=(2, 1)), ArgumentError, "contrast must be a range from 0.* got \\(2, 1"),
    (lambda: vision.RandAugment(2, 31), ArgumentError, "num_magnitude_bins of 2 or more and a magnitude below"),
    (lambda: vision.TrivialAugmentWide(1), ArgumentError, "num_magnitude_bins must be 2 at least, got 1"),
    (lambda: vision.AutoAugment()(INPUTS["gray"]), ShapeError, "AutoAugment: expected an image of 3 channels"),
    (lambda: vision.RandAugment()(INPUTS["floats"]), DTypeError, "RandAugment: expected an image of uint8"),
    (lambda: vision.UniformAugment([vision.Invert()]), ArgumentError, "num_ops must be from 1 to 1, the count of"),
    (lambda: vision.RandomSelectSubpolicy([[]]), ArgumentError, "expected lists of pairs of an operation"),
    (lambda: vision.ResizeWithBBox(4)(RGB, [1, 2, 3, 4]), ShapeError, r"rows of x, y, width and height, got the shape"),
    (lambda: vision.RandomCropWithBBox(4)(RGB, [[1, 2, 3, 6]]), ArgumentError,
     r"RandomCropWithBBox: the box \[1.0, 2.0, 3.0, 6.0\] is not inside of an image of 7 by 9"),
    (lambda: vision.BoundingBoxAugment(3), ArgumentError, "transform=3: expected a function"),
    (lambda: vision.Posterize(9), ArgumentError, "bits must be from 0 to 8, got 9"),
    (lambda: vision.RandomPosterize((5, 3)), ArgumentError, "the smaller number first"),
    (lambda: vision.GaussianBlur(4), ArgumentError, "kernel_size must be odd, got 4"),
    (lambda: vision.Grayscale(2), ArgumentError, "num_output_channels must be 1 or 3, got 2"),
    (lambda: vision.AutoContrast(50), ArgumentError, "cutoff must be from 0 to below 50"),
    (lambda: vision.Affine(0, (0, 0), 0, 0), ArgumentError, "scale must be positive, got 0"),
    (lambda: vision.RandomAffine((2, 1)), ArgumentError, "degrees must be ranges, the smaller end first"),
    (lambda: vision.RandomRotation((2, 1)), ArgumentError, "the smaller angle first"),
    (lambda: vision.Perspective([[0, 0]], [[1, 1]]), ArgumentError, "four points x, y twice"),
    (lambda: vision.RandomPerspective(2), ArgumentError, "distortion_scale must be from 0 to 1"),
    (lambda: vision.RandomErasing(value="none"), ArgumentError, "numbers or 'random', got 'none'"),
    (lambda: vision.NormalizePad([1], [1], "int8"), ArgumentError, "'float32' or 'float16', got 'int8'"),
    (lambda: vision.LinearTransformation(np.eye(2), np.ones(3)), ShapeError, "a square matrix for a mean of 3"),
    (lambda: vision.LinearTransformation(np.eye(2), np.ones(2))(RGB), ShapeError, "expected 2 numbers"),
    (lambda: vision.MixUp(2, 0), ArgumentError, "MixUp: alpha must be positive, got 0"),
    (lambda: vision.MixUpBatch()(RGB, LABELS), ShapeError, "MixUpBatch: expected a batch of images and one of one-hot"),
    (lambda: vision.RgbToHsv()(RGB), ShapeError, "RgbToHsv: expected images of three channels along axis -3"),
    (lambda: vision.AdjustBrightness(1)(RGB[..., 0]), ShapeError, "AdjustBrightness: expected an image of 3 channels"),
    (lambda: vision.Invert()(RGB / 255), DTypeError, "Invert: expected an image of uint8, got float64"),
    (lambda: vision.Erase(0, 0, 8, 2)(RGB), ShapeError, "Erase: .* beyond an image of 7 by 9"),
    (lambda: vision.FiveCrop(8)(RGB), ShapeError, "FiveCrop: a crop of 8 by 8 exceeds an image of 7 by 9"),
    (lambda: vision.PadToSize(8)(RGB), ShapeError, "PadToSize: an image of 7 by 9 from .* exceeds 8 by 8"),
    (lambda: vision.SlicePatches(8, 1)(RGB), ShapeError, "an image of 7 by 9 has no 8 by 1 parts"),
    (lambda: vision.RandomErasing()(RGB[..., 0]), ShapeError, "expected an image as .channels, height, width."),
    (lambda: transforms.Mask(9, 1), ValueError, "9 is not a valid Relational")])
def test_wrong_uses_of_image_operations_are_refused(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()

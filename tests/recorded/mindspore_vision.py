"""Answers of ``dataset.vision`` and ``dataset.transforms``, asked of MindSpore or of opreg, which have the same names.

The answers of MindSpore 2.10 are kept in ``mindspore_vision.json``. Where it is installed, this file writes them:

    python tests/recorded/mindspore_vision.py tests/recorded/mindspore_vision.json
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CASES", "INPUTS", "POLICIES", "answer", "draws"]

_PLACES = np.arange(7 * 9 * 3).reshape(7, 9, 3)
#: Inputs of the cases, by their names.
INPUTS: dict[str, np.ndarray] = {
    "rgb": (_PLACES * 89 % 256).astype(np.uint8), "soft": (60 + _PLACES % 70).astype(np.uint8),
    "gray": (_PLACES[..., 0] * 89 % 251).astype(np.uint8), "one": (_PLACES[..., :1] * 37 % 256).astype(np.uint8),
    "row": (np.arange(192).reshape(1, 64, 3) ** 2 * 89 % 256).astype(np.uint8),
    "flat": np.full((7, 9, 3), 77, np.uint8), "floats": (_PLACES * 89 % 256 / 255).astype(np.float32),
    "chw": (_PLACES * 89 % 256 / 255).transpose(2, 0, 1).copy(), "vector": np.array([3, 1, 3, 7, 1]),
    "label": np.array([3]), "matrix": np.array([[3, 1, 3], [7, 1, 2]]), "halves": np.array([0.5, 1.5, 2.5], np.float32),
    "boxes": np.array([[1, 2, 3, 4], [0, 0, 9, 7], [4.5, 1.25, 3.5, 2]], np.float32),
    "marked": np.array([[2, 1, 5, 5, 7, 1], [6, 4, 3, 3, 8, 0]], np.float32),
    "rgba": (np.arange(5 * 6 * 4).reshape(5, 6, 4) * 61 % 256).astype(np.uint8)}

#: An operation, and the inputs that it is applied to.
CASES: list[tuple[str, str]] = [
    *[(f"V.AdjustBrightness({factor})", "rgb") for factor in (0.0, 0.37, 1.0, 2.3)],
    *[(f"V.AdjustContrast({factor})", name) for factor in (0.0, 0.37, 1.6) for name in ("rgb", "soft")],
    *[(f"V.AdjustSaturation({factor})", "rgb") for factor in (0.0, 0.37, 1.6)],
    *[(f"V.AdjustHue({factor})", "row") for factor in (-0.5, -0.21, 0.0, 0.3, 0.5)],
    *[(f"V.AdjustSharpness({factor})", name) for factor in (0.0, 0.37, 1.6) for name in ("rgb", "soft")],
    ("V.AdjustGamma(0.7)", "rgb"), ("V.AdjustGamma(2.0, 1.3)", "rgb"), ("V.AdjustGamma(1.7, 0.9)", "floats"),
    ("V.AdjustGamma(0.5)", "gray"), ("V.AdjustGamma(0.5)", "one"),
    *[("V.AutoContrast()", name) for name in ("rgb", "soft", "gray", "one", "flat")],
    ("V.AutoContrast(10.0)", "soft"), ("V.AutoContrast(cutoff=30.0, ignore=[60, 70, 129])", "soft"),
    ("V.AutoContrast(5.0, 77)", "flat"),
    *[("V.Equalize()", name) for name in ("rgb", "soft", "gray", "one", "flat")],
    ("V.Invert()", "rgb"), *[(f"V.Posterize({bits})", "rgb") for bits in (0, 1, 4, 8)],
    ("V.Solarize(100)", "rgb"), ("V.Solarize((50, 180))", "rgb"), ("V.Solarize((90, 90))", "rgb"),
    ("V.Solarize((0, 255))", "gray"),
    *[(f"V.ConvertColor(V.ConvertMode.{mode})", "rgb") for mode in (
        "COLOR_BGR2BGRA", "COLOR_RGB2RGBA", "COLOR_BGR2RGBA", "COLOR_RGB2BGRA", "COLOR_BGR2RGB", "COLOR_RGB2BGR",
        "COLOR_BGR2GRAY", "COLOR_RGB2GRAY")],
    *[(f"V.ConvertColor(V.ConvertMode.{mode})", "rgba") for mode in (
        "COLOR_BGRA2BGR", "COLOR_RGBA2RGB", "COLOR_RGBA2BGR", "COLOR_BGRA2RGB", "COLOR_BGRA2RGBA", "COLOR_RGBA2BGRA",
        "COLOR_BGRA2GRAY", "COLOR_RGBA2GRAY")],
    *[(f"V.ConvertColor(V.ConvertMode.{mode})", "gray") for mode in (
        "COLOR_GRAY2BGR", "COLOR_GRAY2RGB", "COLOR_GRAY2BGRA", "COLOR_GRAY2RGBA")],
    ("V.Grayscale()", "rgb"), ("V.Grayscale(3)", "rgb"), ("V.RgbToHsv(True)", "floats"), ("V.RgbToHsv()", "chw"),
    ("V.HsvToRgb(True)", "floats"), ("V.HsvToRgb()", "chw"),
    *[(f"V.GaussianBlur({given})", "rgb") for given in ("1", "3", "5", "(3, 5)", "3, 0.6", "(5, 7), (1.3, 0.4)")],
    ("V.GaussianBlur(3)", "gray"), ("V.GaussianBlur(5, 2.0)", "floats"),
    ("V.Erase(1, 2, 3, 4)", "rgb"), ("V.Erase(2, 1, 5, 8, (10, 20, 30))", "rgb"), ("V.Erase(0, 0, 2, 2, 7)", "rgb"),
    ("V.FiveCrop(3)", "rgb"), ("V.FiveCrop((4, 5))", "gray"), ("V.TenCrop((3, 4))", "rgb"),
    ("V.TenCrop((3, 4), use_vertical_flip=True)", "rgb"),
    ("V.ResizedCrop(1, 2, 4, 5, (6, 3))", "rgb"), ("V.ResizedCrop(0, 0, 5, 5, 8, V.Inter.NEAREST)", "rgb"),
    ("V.ResizedCrop(0, 1, 5, 5, 8, V.Inter.BICUBIC)", "rgb"),
    ("V.ResizedCrop(1, 0, 6, 8, (3, 4), V.Inter.AREA)", "rgb"),
    ("V.PadToSize((10, 12))", "rgb"), ("V.PadToSize(11, (1, 2), 5)", "rgb"), ("V.PadToSize(11, 1, (1, 2, 3))", "rgb"),
    ("V.PadToSize((9, 9), None, 0, V.Border.EDGE)", "rgb"), ("V.PadToSize((9, 11), 1, 0, V.Border.REFLECT)", "rgb"),
    ("V.PadToSize((9, 11), 1, 0, V.Border.SYMMETRIC)", "rgb"),
    ("V.Pad(2, (1, 2, 3))", "rgb"), ("V.Pad((1, 2), 0, V.Border.REFLECT)", "rgb"),
    ("V.Pad((1, 2, 2, 1), 0, V.Border.SYMMETRIC)", "gray"),
    ("V.SlicePatches(2, 3)", "rgb"), ("V.SlicePatches(2, 2, V.SliceMode.DROP)", "rgb"),
    ("V.SlicePatches(3, 2, V.SliceMode.PAD, 9)", "rgb"), ("V.SlicePatches()", "rgb"), ("V.SlicePatches(2, 2)", "gray"),
    ("V.NormalizePad([0.1, 0.2, 0.3], [2.0, 3.0, 4.0], 'float16', False)", "chw"),
    ("V.NormalizePad([0.1, 0.2, 0.3], [2.0, 3.0, 4.0], is_hwc=False)", "chw"),
    ("V.LinearTransformation(np.eye(189) * 2 + np.eye(189, k=1), np.arange(189) / 10)", "chw"), ("V.ToNumpy()", "rgb"),
    *[(f"V.Rotate({degrees}, V.Inter.{kind})", "rgb") for degrees in (30, -75.5, 90)
      for kind in ("NEAREST", "BILINEAR", "BICUBIC")],
    ("V.Rotate(45, V.Inter.AREA)", "rgb"), ("V.Rotate(30, V.Inter.BILINEAR, False, (2, 3), 9)", "rgb"),
    ("V.Rotate(30, V.Inter.NEAREST, True)", "rgb"), ("V.Rotate(117, V.Inter.BILINEAR, True, fill_value=5)", "rgb"),
    ("V.Rotate(90, V.Inter.NEAREST, True)", "rgb"), ("V.Rotate(20)", "gray"), ("V.Rotate(20, V.Inter.LINEAR)", "one"),
    ("V.Rotate(20, V.Inter.LINEAR)", "floats"),
    ("V.Affine(15, (0.2, -0.1), 1.2, (5.0, 8.0))", "rgb"),
    ("V.Affine(-30, (0, 0.3), 0.7, 10.0, V.Inter.BILINEAR)", "rgb"),
    ("V.Affine(60, (0.1, 0.1), 1.0, (0.0, 0.0), V.Inter.BICUBIC, (3, 6, 9))", "rgb"),
    ("V.Affine(10, (0, 0), 1.1, (3, 4), V.Inter.AREA, 9)", "rgb"), ("V.Affine(0, (0.0, 0.0), 1.0, 20.0)", "gray"),
    *[(f"V.Perspective([[0, 0], [8, 0], [8, 6], [0, 6]], [[1, 2], [7, 0], [8, 5], [0, 6]], V.Inter.{kind})", "rgb")
      for kind in ("NEAREST", "BILINEAR", "CUBIC", "AREA")],
    ("V.Perspective([[0, 5], [3, 1], [8, 6], [2, 6]], [[1, 2], [7, 0], [8, 5], [0, 6]])", "gray"),
    # Random operations where nothing is left to chance.
    ("V.RandomAdjustSharpness(1.6, 1.0)", "rgb"), ("V.RandomAutoContrast(10.0, [60], 1.0)", "soft"),
    ("V.RandomColor((0.4, 0.4))", "rgb"), ("V.RandomColor((1.7, 1.7))", "soft"), ("V.RandomEqualize(1.0)", "soft"),
    ("V.RandomColorAdjust((1.3, 1.3))", "rgb"), ("V.RandomColorAdjust(contrast=(0.6, 0.6))", "rgb"),
    ("V.RandomColorAdjust(saturation=(1.6, 1.6))", "rgb"), ("V.RandomColorAdjust(hue=(0.2, 0.2))", "row"),
    ("V.RandomColorAdjust()", "rgb"), ("V.RandomInvert(1.0)", "rgb"), ("V.RandomInvert(0.0)", "rgb"),
    ("V.RandomPosterize((3, 3))", "rgb"), ("V.RandomPosterize(2)", "rgb"), ("V.RandomSharpness((0.3, 0.3))", "rgb"),
    ("V.RandomSharpness((1.8, 1.8))", "soft"), ("V.RandomSolarize((100, 100))", "rgb"),
    ("V.RandomAffine((20, 20), None, (1.3, 1.3))", "rgb"),
    ("V.RandomAffine((0, 0), (0.3, 0.3, -0.2, -0.2), None, (4, 4, 9, 9), V.Inter.BILINEAR)", "rgb"),
    ("V.RandomRotation((40, 40), V.Inter.BILINEAR)", "rgb"), ("V.RandomRotation((40, 40), expand=True)", "rgb"),
    ("V.RandomRotation((-40, -40), V.Inter.BICUBIC, False, (1, 2), 3)", "rgb"),
    ("V.RandomErasing(0.0)", "chw"), ("V.RandomGrayscale(1.0)", "rgb"), ("V.RandomGrayscale(0.0)", "rgb"),
    ("V.RandomLighting(0.0)", "rgb"), ("V.RandomPerspective(0.5, 0.0)", "rgb"),
    *[(f"V.{case}", f"rgb, {boxes}") for boxes in ("boxes", "marked") for case in (
        "RandomHorizontalFlipWithBBox(1.0)", "RandomHorizontalFlipWithBBox(0.0)", "RandomVerticalFlipWithBBox(1.0)",
        "ResizeWithBBox((14, 6))", "ResizeWithBBox(5, V.Inter.NEAREST)", "RandomCropWithBBox((7, 9))",
        "RandomCropWithBBox((9, 9), (0, 1), padding_mode=V.Border.EDGE)",
        "RandomCropWithBBox((9, 11), 1, fill_value=5)",
        "RandomResizedCropWithBBox((6, 8), (1.0, 1.0), (9 / 7, 9 / 7))",
        "BoundingBoxAugment(V.HorizontalFlip(), 1.0)", "BoundingBoxAugment(V.Invert(), 0.0)",
        "BoundingBoxAugment(V.Crop((0, 0), 2), 1.0)")],
    ("V.RandAugment(0)", "rgb"),
    ("V.RandomSelectSubpolicy([[(V.Invert(), 1.0), (V.Posterize(3), 1.0), (V.Solarize(9), 0.0)]])", "rgb"),
    *[(f"T.Mask(T.Relational.{relation}, 3)", name) for relation in ("EQ", "NE", "GT", "GE", "LT", "LE")
      for name in ("vector", "matrix")],
    ("T.Mask(T.Relational.GE, 1.5, D.int32)", "halves"), ("T.Mask(T.Relational.LT, 2, D.float32)", "vector"),
    *[(f"T.Slice({given})", "vector") for given in ("1", "-1", "[0, 3]", "slice(1, 4)", "slice(0, 5, 2)", "None",
                                                    "...", "slice(4, 0, -2)", "[-1, 0]")],
    *[(f"T.Slice({given})", "matrix") for given in ("1", "..., 1", "1, [0, 2]", "slice(1), slice(2)", "None, [1]")],
    ("T.PadEnd([7])", "vector"), ("T.PadEnd([3], 4)", "vector"), ("T.PadEnd([3, 4], -1)", "matrix"),
    ("T.PadEnd([4], 9.5)", "halves"),
    ("T.Concatenate(0, np.array([5]), np.array([6, 7]))", "vector"),
    ("T.Concatenate(-1, np.array([5]))", "vector"), ("T.Duplicate()", "vector"),
    ("T.Unique()", "matrix"), ("T.Fill(4)", "vector"), ("T.Fill(4.7)", "vector"), ("T.Fill(True)", "halves"),
    ("T.TypeCast(D.int32)", "halves"), ("T.TypeCast(np.uint8)", "vector"), ("T.TypeCast(D.bool_)", "halves"),
    ("T.OneHot(8)", "vector"), ("T.OneHot(9, 0.3)", "label")]
#: Operations that MindSpore applies to images of PIL alone.
_OF_PIL = ("FiveCrop", "TenCrop", "Grayscale", "RandomGrayscale", "RandomPerspective")


#: Operations that draw others.
POLICIES = ["V.AutoAugment()", "V.AutoAugment(V.AutoAugmentPolicy.SVHN, V.Inter.BILINEAR, 9)",
            "V.AutoAugment(V.AutoAugmentPolicy.CIFAR10)", "V.RandAugment(1, 20, 31, V.Inter.BILINEAR, 3)",
            "V.TrivialAugmentWide(9, V.Inter.BICUBIC, 200)"]


def draws(ms: Any, case: str, count: int = 3000) -> list[int]:
    """Checksums of all images that an operation makes of one, except images of a single color."""
    operation = eval(case, {"V": ms.dataset.vision})
    rows = ms.dataset.GeneratorDataset([(INPUTS["rgb"],)] * count, ["image"], shuffle=False).map(operation, "image")
    found = {image.tobytes(): image for image, in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)}
    return sorted(zlib.crc32(text) for text, image in found.items() if (image != image[0, 0]).any())


def answer(ms: Any, case: str, name: str) -> list[np.ndarray]:
    """Arrays that an operation makes of an input."""
    given: list[Any] = [INPUTS[each].copy() for each in name.split(", ")]
    package = ms.dataset
    operation = eval(case, {"V": package.vision, "T": package.transforms, "D": ms, "np": np})
    if ms.__name__ == "mindspore" and type(operation).__name__ in _OF_PIL:
        given = [package.vision.ToPIL()(*given)]
    made = operation(*given)
    return [np.asarray(each) for each in (made if isinstance(made, (tuple, list)) else [made])]


def _written(ms: Any, case: str, name: str) -> str:
    try:
        made: Any = [[each.dtype.name, list(each.shape), each.ravel().tolist()] for each in answer(ms, case, name)]
    except Exception as error:
        made = f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
    return json.dumps([case, name, made])


if __name__ == "__main__":
    import mindspore

    Path(sys.argv[1]).write_text('{"about": "What MindSpore 2.10.0 answers; see mindspore_vision.py.",\n"cases": [\n'
                                 + ",\n".join(_written(mindspore, *case) for case in CASES) + "\n],\n\"draws\": {\n"
                                 + ",\n".join(f"{json.dumps(case)}: {draws(mindspore, case)}" for case in POLICIES)
                                 + "\n}}\n")

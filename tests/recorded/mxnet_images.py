"""Calls of functions on images by name, for MXNet and for this package, and a program that writes MXNet's answers.

``python tests/recorded/mxnet_images.py`` under MXNet 1.9.1 and opencv-python 4.5.5 writes ``mxnet_images.npz``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np

FILE = os.path.join(os.path.dirname(__file__), "mxnet_images.npz")


def picture() -> np.ndarray:
    """An image of 18 by 24 pixels."""
    y, x = np.mgrid[:18, :24]
    return np.stack([x * 9 + y * 2, 255 - (x - 12) ** 2 - y * 4, (x * y + x * x) % 200], axis=2).astype(np.uint8)


BOXES = np.array([[0, 0.1, 0.2, 0.5, 0.6], [1, 0.4, 0.4, 0.9, 0.9]], np.float32)

#: Shares by which colours change.
JITTER = {"mean": True, "std": True, "brightness": 0.1, "contrast": 0.1, "saturation": 0.1, "hue": 0.1,
          "pca_noise": 0.1, "rand_gray": 0.3}


def through(augmenters: Any, *values: Any) -> Any:
    """Results of augmenters for an image, or for an image and boxes."""
    for each in augmenters:
        made = each(*values)
        values = made if isinstance(made, tuple) else (made,)
    return values


#: Name -> function of the module of images, an image of bytes and one of floats.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{f"resize {w}x{h} {interp}": lambda image, src, x, w=w, h=h, interp=interp: image.imresize(src, w, h, interp)
       for w, h in ((12, 9), (7, 13), (31, 20), (48, 36)) for interp in range(5)},
    **{f"border {kind}": lambda image, src, x, kind=kind: image.copyMakeBorder(
        src, 1, 2, 3, 4, type=kind, values=(1, 2, 3)) for kind in range(5)},
    "border value": lambda image, src, x: image.copyMakeBorder(src, 1, 2, 3, 4, value=9),
    "short": lambda image, src, x: image.resize_short(src, 11),
    "short auto": lambda image, src, x: image.resize_short(src, 11, 9),
    "fixed": lambda image, src, x: image.fixed_crop(src, 3, 2, 10, 9, (8, 8)),
    "random": lambda image, src, x: image.random_crop(src, (10, 12)),
    "random larger": lambda image, src, x: image.random_crop(src, (40, 20)),
    "center": lambda image, src, x: image.center_crop(src, (11, 12)),
    "random size": lambda image, src, x: image.random_size_crop(src, (10, 10), 0.1, (0.75, 1.33)),
    "random method": lambda image, src, x: image.random_size_crop(src, (10, 10), (0.1, 0.5), (0.75, 1.33), interp=10),
    "rotate": lambda image, src, x: image.imrotate(x.transpose((2, 0, 1)), 30),
    "rotate in": lambda image, src, x: image.imrotate(x.transpose((2, 0, 1)), 30, zoom_in=True),
    "rotate out": lambda image, src, x: image.imrotate(x.transpose((2, 0, 1)), -100, zoom_out=True),
    "random rotate": lambda image, src, x: image.random_rotate(x.transpose((2, 0, 1)), (-30, 30)),
    "brightness": lambda image, src, x: image.BrightnessJitterAug(0.3)(x),
    "contrast": lambda image, src, x: image.ContrastJitterAug(0.3)(x),
    "saturation": lambda image, src, x: image.SaturationJitterAug(0.3)(x),
    "hue": lambda image, src, x: image.HueJitterAug(0.3)(x),
    "jitter": lambda image, src, x: image.ColorJitterAug(0.3, 0.3, 0.3)(x),
    "gray": lambda image, src, x: image.RandomGrayAug(1.0)(x),
    "flip": lambda image, src, x: image.HorizontalFlipAug(1.0)(x),
    "cast": lambda image, src, x: image.CastAug("float64")(src),
    "sequence": lambda image, src, x: image.SequentialAug([image.ForceResizeAug((9, 8), 9), image.CastAug()])(src),
    "order": lambda image, src, x: image.RandomOrderAug([image.BrightnessJitterAug(0.3), image.HueJitterAug(0.3)])(x),
    "boxes crop": lambda image, src, x: image.DetRandomCropAug()(src, BOXES.copy()),
    "boxes pad": lambda image, src, x: image.DetRandomPadAug()(src, BOXES.copy()),
    "boxes flip": lambda image, src, x: image.DetHorizontalFlipAug(1.0)(src, BOXES.copy()),
    **{f"augmenters {i}": lambda image, src, x: through(image.CreateAugmenter(
        (3, 12, 12), resize=16, rand_crop=True, rand_resize=True, rand_mirror=True, **JITTER), src) for i in range(4)},
    **{f"boxes {i}": lambda image, src, x: through(image.CreateDetAugmenter(
        (3, 12, 12), resize=16, rand_crop=0.8, rand_pad=0.8, rand_mirror=True, **JITTER), src, BOXES.copy())
       for i in range(4)},
}


def answers(mx: Any, name: str) -> list[np.ndarray]:
    """Results of a call, from seeds that follow from its name."""
    random.seed(sum(map(ord, name)))
    np.random.seed(sum(map(ord, name)))  # noqa: NPY002
    src = mx.nd.array(picture(), dtype="uint8")
    made = CALLS[name](mx.image, src, src.astype("float32"))
    made = made if isinstance(made, tuple) else (made,)
    return [np.asarray(each if isinstance(each, (np.ndarray, tuple)) else each.asnumpy()) for each in made]


#: Records of which some hold the magic number where it has to be cut out, and some where not.
MAGIC = bytes.fromhex("0a23d7ce")
RECORDS = [b"abc", MAGIC, b"xx" + MAGIC, b"abcd" + MAGIC + b"e", MAGIC + MAGIC, b"", b"1234" + MAGIC,
           MAGIC + b"1" + MAGIC + b"234" + MAGIC]

#: Labels of images' records.
LABELS: tuple[Any, ...] = (3.0, [1.0, 2.5, 3.0])


#: Name -> arguments of ``ImageRecordIter`` for a record of one image.
RECORD_ITERS: dict[str, dict[str, Any]] = {
    "plain": {}, "gray": {"data_shape": (1, 18, 24)}, "middle": {"data_shape": (3, 11, 10)},
    "larger": {"data_shape": (3, 27, 27)}, "higher": {"data_shape": (3, 25, 12)},
    **{f"resized {method}": {"data_shape": (3, 10, 11), "resize": 12, "inter_method": method}
       for method in (0, 1, 2, 3, 4, 9)},
    "turned": {"rotate": 30}, "turned right": {"rotate": 90, "fill_value": 7, "data_shape": (3, 18, 18)},
    "twice": {"max_random_scale": 2, "min_random_scale": 2, "data_shape": (3, 12, 12)},
    "half": {"max_random_scale": 0.5, "min_random_scale": 0.5, "data_shape": (3, 8, 8)},
    "wide": {"max_aspect_ratio": 2, "min_aspect_ratio": 2, "data_shape": (3, 12, 12)},
    "least size": {"min_img_size": 30, "data_shape": (3, 12, 12)},
    "framed": {"pad": 2, "fill_value": 9, "data_shape": (3, 22, 28)},
    "framed and cut": {"pad": 2, "fill_value": 9, "data_shape": (3, 20, 24)},
    "square": {"max_crop_size": 14, "min_crop_size": 14, "data_shape": (3, 9, 9)},
    "whole": {"random_resized_crop": True, "min_aspect_ratio": 4 / 3, "max_aspect_ratio": 4 / 3,
              "data_shape": (3, 10, 10)},
    "middle after all": {"random_resized_crop": True, "data_shape": (3, 10, 10)},
    "mirrored": {"mirror": True, "mean_r": 10, "mean_g": 20, "mean_b": 30, "std_r": 3, "scale": 0.1},
    "bytes": {"dtype": "uint8", "mean_r": 10}, "signed": {"dtype": "int8", "mean_r": 130.6, "mean_b": 100},
}


def read_by(mx: Any, name: str, path: str) -> np.ndarray:
    """Array that an iterator makes of the one image in a file of records."""
    keywords = {"data_shape": (3, 18, 24), "preprocess_threads": 1, "verbose": 0, **RECORD_ITERS[name]}
    batches = mx.io.ImageRecordIter(path_imgrec=path, batch_size=1, **keywords)
    return np.asarray(batches.next().data[0].asnumpy()[0])


def _main() -> None:
    import cv2  # type: ignore[import-not-found]
    import mxnet as mx  # type: ignore[import-not-found]

    made: dict[str, Any] = {}
    for name in CALLS:
        for number, answer in enumerate(answers(mx, name)):
            made[f"{name}|{number}"] = answer
    for extension in (".jpg", ".png"):
        data = cv2.imencode(extension, picture()[:, :, ::-1])[1].tobytes()
        made[f"file {extension}"] = np.frombuffer(data, np.uint8)
        for flag in (0, 1):
            made[f"decoded {extension} {flag}"] = mx.image.imdecode(data, flag=flag).asnumpy()
    one = mx.recordio.MXRecordIO("/tmp/one.rec", "w")
    one.write(mx.recordio.pack(mx.recordio.IRHeader(0, 1.0, 0, 0), made["file .png"].tobytes()))
    one.close()
    for name in RECORD_ITERS:
        made[f"record {name}"] = read_by(mx, name, "/tmp/one.rec")
    writer = mx.recordio.MXIndexedRecordIO("/tmp/mxnet.idx", "/tmp/mxnet.rec", "w")
    for key, record in enumerate(RECORDS):
        writer.write_idx(key, record)
    for key, label in enumerate(LABELS):
        header = mx.recordio.IRHeader(0, label, 7 + key, 0)
        writer.write_idx(100 + key, mx.recordio.pack_img(header, picture()[:, :, ::-1], quality=9, img_fmt=".png"))
    writer.close()
    for extension in ("idx", "rec"):
        with open(f"/tmp/mxnet.{extension}", "rb") as file:
            made[extension] = np.frombuffer(file.read(), np.uint8)
    np.savez_compressed(FILE, **made)


if __name__ == "__main__":
    _main()

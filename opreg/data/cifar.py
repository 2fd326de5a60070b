"""Image files in CIFAR's format: rows of labels and of the bytes of an image, channel by channel."""

from __future__ import annotations

import os

import numpy as np

from ..errors import FileFormatError

__all__ = ["of_rows"]


def of_rows(content: bytes, labels: int, name: str | os.PathLike) -> tuple[np.ndarray, np.ndarray]:
    """The images (rows, 32, 32, 3) and the labels (rows, ``labels``), both uint8, of the content of a file.

    Raises
    ------
    FileFormatError
        When the content does not consist of whole images.
    """
    size = labels + 3072
    if not content or len(content) % size:
        raise FileFormatError(f"{name}: {len(content)} bytes, which is not a multiple of the {size} bytes of an image")
    rows = np.frombuffer(content, np.uint8).reshape(-1, size)
    return rows[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), rows[:, :labels]

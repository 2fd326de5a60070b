"""Handwritten digits for examples: load them, and look at one in the terminal.

The pictures are the 1,797 of the UCI repository's "Optical Recognition of Handwritten Digits" test set;
``data/README.md`` has their source and licence.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["FILE", "TRAIN_SIZE", "Digits", "load", "show"]

FILE = Path(__file__).parent / "data" / "digits.csv.gz"
TRAIN_SIZE = 1437  # four fifths


class Digits(NamedTuple):
    """Pictures and their labels, in the same order."""

    images: np.ndarray
    """float32, (n, 1, 8, 8): number, channel, row, column; 0 is paper and 1 is full ink."""
    labels: np.ndarray
    """float32, (n,): the digits 0.0 to 9.0."""


def load() -> tuple[Digits, Digits]:
    """Return the digits to learn from and the digits held out.

    The split is fixed and follows the stored order, without a shuffle: the first 1,437 pictures, then the
    last 360. This is the harder test, since pictures close together in the file look alike: copying the
    label of the nearest training picture is right for 95.6 % of these 360, and for 98.7 % after a shuffle.

    >>> train, held_out = load()
    >>> train.images.shape, held_out.images.shape
    ((1437, 1, 8, 8), (360, 1, 8, 8))
    >>> train.labels[:12]
    array([0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 0., 1.], dtype=float32)
    >>> float(train.images.min()), float(train.images.max()), train.images.dtype
    (0.0, 1.0, dtype('float32'))
    """
    table = np.loadtxt(FILE, delimiter=",", dtype=np.float32)
    images = (table[:, :64] / 16).reshape(-1, 1, 8, 8)
    labels = table[:, 64].copy()
    return (
        Digits(images[:TRAIN_SIZE], labels[:TRAIN_SIZE]),
        Digits(images[TRAIN_SIZE:], labels[TRAIN_SIZE:]),
    )


def show(image: np.ndarray, shades: str = " ░▒▓█") -> str:
    """Draw one picture as text, two characters a pixel, since a character is about twice as high as wide.

    ``image`` has shape (8, 8) or (1, 8, 8), values 0 to 1. ``shades`` goes from paper to ink; another such
    string, as short as ``" #"``, serves a terminal without block characters.

    >>> train, held_out = load()
    >>> print(show(train.images[4], shades=" .+#"))
            ++
          ..++
          ++..
        ..##  ++++
      ..##++  ##..
      ..####++##
          ..##++
            ##..
    """
    levels = np.rint(np.clip(image, 0, 1) * (len(shades) - 1)).astype(int)
    rows = levels.reshape(levels.shape[-2:])
    return "\n".join("".join(2 * shades[level] for level in row).rstrip() for row in rows)


if __name__ == "__main__":
    for digit in load()[0].images[:10]:
        print(show(digit), end="\n\n")

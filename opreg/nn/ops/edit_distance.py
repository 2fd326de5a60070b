"""Edit distances of sequences, given as sparse tensors."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import TensorLike
from ...errors import ArgumentError, ShapeError
from .lift import tensor
from .primitive import adder

__all__: list[str] = []

_add = adder(globals(), __all__)


def _sequences(name: str, indices: TensorLike, values: TensorLike, shape: TensorLike
               ) -> tuple[dict[tuple[int, ...], list[float]], tuple[int, ...]]:
    """The sequences of a sparse tensor by their places, and its shape."""
    places, elements = tensor(indices).asnumpy(), tensor(values).asnumpy()
    lengths = tuple(int(n) for n in tensor(shape).asnumpy().reshape(-1))
    if places.shape != (len(elements), len(lengths)):
        raise ShapeError(f"EditDistance: {name}_indices must have shape {(len(elements), len(lengths))}, the place of "
                         f"each value, got {places.shape}")
    rows = groupby(zip(map(tuple, places[:, :-1].tolist()), elements.tolist()), lambda pair: pair[0])
    return {place: [value for _, value in row] for place, row in rows}, lengths


def distance(first: list[float], second: list[float]) -> int:
    """The least number of elements to insert, delete or replace in one sequence to get the other."""
    row = list(range(len(second) + 1))
    for i, one in enumerate(first, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (one != other))
    return row[-1]


def _edit_distance(hypothesis_indices: TensorLike, hypothesis_values: TensorLike, hypothesis_shape: TensorLike,
                   truth_indices: TensorLike, truth_values: TensorLike, truth_shape: TensorLike, *, normalize: bool
                   ) -> Tensor:
    """Distances between sequences along the last axis of two sparse tensors, by place; see ``ops.EditDistance``."""
    guesses, guessed = _sequences("hypothesis", hypothesis_indices, hypothesis_values, hypothesis_shape)
    truths, true = _sequences("truth", truth_indices, truth_values, truth_shape)
    if len(guessed) != len(true):
        raise ShapeError(f"EditDistance: expected shapes with equally many axes, got {guessed} and {true}")
    found = np.zeros([max(pair) for pair in zip(guessed[:-1], true[:-1])], np.float32)
    for place in {**guesses, **truths}:
        if any(not 0 <= i < n for i, n in zip(place, found.shape)):
            raise ArgumentError(f"EditDistance: expected places of sequences in the shape {found.shape}, got {place}")
        guess, truth = guesses.get(place, []), truths.get(place, [])
        steps = float(distance(guess, truth))
        found[place] = steps / len(truth) if normalize and truth else np.inf if normalize else steps
    return tensor(found)


_add("EditDistance", _edit_distance, {"normalize": True})

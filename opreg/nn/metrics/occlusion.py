"""Sensitivity of a prediction to occluded parts of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...core.settings import real_number, whole_number
from ...errors import ArgumentError, OpError
from .metric import Metric, rearrange_inputs

__all__ = ["OcclusionSensitivity"]


class OcclusionSensitivity(Metric):
    """For each point, the decrease of the prediction for a label when the surroundings of the point are covered.

    Parameters
    ----------
    pad_val : float
        Value of the cover.
    margin : int
        Extent of the cover around the point; on the far side it is exclusive.
    n_batch : int
        Number of covered images in one call of the model.
    b_box : list of int, optional
        The first and the last point along each axis after the first: ``[min1, max1, min2, max2, …]``; a last point
        below 0 is the end. All points by default.

    Examples
    --------
    >>> from opreg import nn, ops
    >>> class Mean(nn.Cell):
    ...     def construct(self, x):
    ...         return ops.mean(x, (1, 2)).reshape((-1, 1))
    >>> metric = OcclusionSensitivity(margin=1)
    >>> metric.update(Mean(), Tensor(np.ones((1, 2, 2), np.float32)), Tensor([0]))
    >>> metric.eval()
    array([[0.25, 0.5 ],
           [0.5 , 1.  ]])
    """

    def __init__(self, pad_val: float = 0.0, margin: int = 2, n_batch: int = 128, b_box: list[int] | None = None):
        super().__init__()
        self.pad_val = real_number("OcclusionSensitivity: pad_val", pad_val, -np.inf)
        self.margin = whole_number("OcclusionSensitivity: margin", margin, 1)
        self.n_batch = whole_number("OcclusionSensitivity: n_batch", n_batch, 1)
        if b_box is not None and not isinstance(b_box, list):
            raise ArgumentError(f"OcclusionSensitivity: b_box must be a list of int, got {type(b_box).__name__}")
        self.b_box = b_box
        self.clear()

    def clear(self) -> None:
        self._falls: np.ndarray | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a Cell, its input, which is one sample, and the label."""
        if len(inputs) != 3:
            raise ArgumentError(f"OcclusionSensitivity.update: expected 3 inputs, a model, a sample and its label, got "
                                f"{len(inputs)}")
        model, sample, label = inputs[0], self._convert_data(inputs[1]), self._convert_data(inputs[2])
        if not isinstance(model, Cell):
            raise ArgumentError(f"OcclusionSensitivity.update: the model must be a Cell, got {type(model).__name__}")
        if len(sample) != 1 or label.size != 1:
            raise OpError(f"OcclusionSensitivity.update: expected one sample and its label, got the shapes "
                          f"{sample.shape} and {label.shape}")
        first, last = self._bounds(sample.shape[1:])
        column = int(label.item())
        points = list(np.ndindex(*(last - first + 1)))
        scores: list[float] = []
        for start in range(0, len(points), self.n_batch):
            covered = [self._cover(sample, first + point) for point in points[start:start + self.n_batch]]
            scores += model(Tensor(np.concatenate(covered))).asnumpy()[:, column].tolist()
        full_score = model(Tensor(sample)).asnumpy()[0, column].item()
        self._falls = np.squeeze(full_score - np.array(scores).reshape(last - first + 1))

    def _cover(self, sample: np.ndarray, point: np.ndarray) -> np.ndarray:
        result = sample.copy()
        around = [slice(max(0, i - self.margin), i + self.margin) for i in point]
        result[:, *around] = self.pad_val
        return result

    def _bounds(self, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        if self.b_box is None:
            return np.zeros(len(shape), int), np.array(shape) - 1
        if len(self.b_box) != 2 * len(shape):
            raise ArgumentError(f"OcclusionSensitivity: b_box must have two numbers for each of {len(shape)} axes, got "
                                f"{len(self.b_box)}")
        first, last = np.maximum(self.b_box[::2], 0), np.array(self.b_box[1::2])
        last = np.where(last < 0, np.array(shape) - 1, last)
        if (last >= shape).any() or (first > last).any():
            raise ArgumentError(f"OcclusionSensitivity: b_box {self.b_box} must lie within the shape {tuple(shape)}, "
                                f"each first index before the last")
        return first, last

    def eval(self) -> Any:
        self._some(self._falls is not None)
        return self._falls

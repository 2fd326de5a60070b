"""Training and evaluation of an estimator on one batch."""

from __future__ import annotations

from typing import Any

from opreg.ndarray import autograd

from ....core.settings import Checked
from ...utils import split_and_load

__all__ = ["BatchProcessor"]


class BatchProcessor(Checked):
    """Trains or evaluates on one batch of data and labels; override its methods for other batches."""

    def _get_data_and_label(self, batch: Any, ctx: Any, batch_axis: int = 0) -> tuple[list[Any], list[Any]]:
        return split_and_load(batch[0], ctx, batch_axis), split_and_load(batch[1], ctx, batch_axis)

    def evaluate_batch(self, estimator: Any, val_batch: Any, batch_axis: int = 0) -> tuple[Any, Any, Any, Any]:
        """Data, labels, predictions and losses of a batch, each a list with one part for each context."""
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        return data, label, pred, [estimator.val_loss(y, target) for y, target in zip(pred, label, strict=True)]

    def fit_batch(self, estimator: Any, train_batch: Any, batch_axis: int = 0) -> tuple[Any, Any, Any, Any]:
        """Run a training batch forward and backward; returns the same as ``evaluate_batch``. A handler updates the
        parameters."""
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = [estimator.loss(y, target) for y, target in zip(pred, label, strict=True)]
        for single_loss in loss:
            single_loss.backward()
        return data, label, pred, loss

"""Rows of the normalisation that MindSpore's layer runs in training."""

from __future__ import annotations

from . import Row, normal
from .norm import _batch, _batch_inputs

__all__ = ["ROWS"]

_TRAIN = dict(grad=(0, 1, 2), second=True)

ROWS: list[Row] = [
    Row("_nn_batch_norm", _batch_inputs(3, 2, 4), {}, _batch(eps=1e-5, fix_gamma=False), **_TRAIN),
    Row("_nn_batch_norm", _batch_inputs(5, 3), {"eps": 0.1, "momentum": 0.5}, _batch(eps=0.1, fix_gamma=False),
        **_TRAIN),
    Row("_nn_batch_norm", _batch_inputs(3, 4, 2, axis=2), {"axis": -1},
        _batch(axis=-1, eps=1e-5, fix_gamma=False), **_TRAIN),
    Row("_nn_batch_norm", _batch_inputs(3, 2, 4), {}, _batch(eps=1e-5, fix_gamma=False, moving=False), train=False,
        name="inference", grad=(0, 1, 2)),
    Row("_nn_batch_norm", [normal(3, 0, 4), normal(0), normal(0), normal(0), normal(0)], {}, lambda x, *_: x,
        name="no channels"),
]

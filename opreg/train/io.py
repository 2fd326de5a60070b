"""Batches and iterators over them, as ``mx.io`` has them."""

from __future__ import annotations

from ..aliases import inner
from ..data.batches import (
    DataBatch,
    DataDesc,
    DataIter,
    NDArrayIter,
    PrefetchingIter,
    ResizeIter,
)
from ..data.text import CSVIter

__all__ = ["DataDesc", "DataBatch", "DataIter", "NDArrayIter", "CSVIter", "ResizeIter", "PrefetchingIter"]


__getattr__ = inner(__name__)

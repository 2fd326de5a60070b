"""Batches, and iterators over them, with the names of ``mx.io``."""

from __future__ import annotations

from ..aliases import inner
from ..data.batches import DataBatch, DataDesc, DataIter, NDArrayIter, PrefetchingIter, ResizeIter
from ..data.mnist import MNISTIter
from ..data.record_iter import (
    ImageDetRecordIter,
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordUInt8Iter,
    ImageRecordUInt8Iter_v1,
    MXDataIter,
)
from ..data.text import CSVIter, LibSVMIter

__all__ = ["DataDesc", "DataBatch", "DataIter", "NDArrayIter", "MXDataIter", "CSVIter", "LibSVMIter", "MNISTIter",
           "ImageRecordIter", "ImageRecordIter_v1", "ImageRecordUInt8Iter", "ImageRecordUInt8Iter_v1",
           "ImageRecordInt8Iter", "ImageDetRecordIter", "ResizeIter", "PrefetchingIter"]


__getattr__ = inner(__name__)

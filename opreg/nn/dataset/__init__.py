"""dataset: rows from functions, arrays and files, which are shuffled, mapped and batched, with the names of
``mindspore.dataset``.

>>> from opreg import dataset as ds
>>> rows = ds.GeneratorDataset(lambda: ((i, i * i) for i in range(3)), ["number", "square"])
>>> [batch["square"].asnumpy().tolist() for batch in rows.batch(2).create_dict_iterator()]
[[0, 1], [4]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...aliases import inner
from . import config, text, transforms, vision
from .pipeline import BatchInfo, Dataset, zip
from .records import MindDataset
from .samplers import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from .sources import (
    Cifar10Dataset,
    Cifar100Dataset,
    FashionMnistDataset,
    GeneratorDataset,
    ImageFolderDataset,
    KMnistDataset,
    MnistDataset,
    NumpySlicesDataset,
    PaddedDataset,
    TextFileDataset,
)
from .tfrecords import Schema, Shuffle, TFRecordDataset

__all__ = ["BatchInfo", "Cifar10Dataset", "Cifar100Dataset", "Dataset", "DistributedSampler", "FashionMnistDataset",
           "GeneratorDataset", "ImageFolderDataset", "KMnistDataset", "MindDataset", "MnistDataset",
           "NumpySlicesDataset", "PaddedDataset", "RandomSampler", "Sampler", "Schema", "SequentialSampler",
           "Shuffle", "SubsetRandomSampler", "SubsetSampler", "TFRecordDataset", "TextFileDataset",
           "WeightedRandomSampler", "config", "text", "transforms", "vision", "zip"]

if not TYPE_CHECKING:  # its submodules
    __getattr__ = inner(__name__)

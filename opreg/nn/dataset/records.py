"""Datasets from files of records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from opreg.data.mindrecord import files_of

from ...errors import ArgumentError, did_you_mean
from .config import Epoch
from .pipeline import Row, as_column
from .samplers import sampler_of
from .sources import MappableDataset

__all__ = ["MindDataset"]


class MindDataset(MappableDataset):
    """Rows of MindRecord files, as ``mindrecord.FileWriter`` writes them.

    Parameters
    ----------
    dataset_files : str, path, or list of them
        A file, with all that were written together with it; or a list of files.
    columns_list : list of str, optional
        Names of the columns; by default all fields in alphabetical order. Numbers and text have no axes, bytes are a
        vector of one element of the dtype ``S``, arrays have their shape.
    num_samples, shuffle, sampler, num_shards, shard_id
        See ``GeneratorDataset``; the order is random by default.
    num_parallel_workers, cache
        Accepted without effect.
    padded_sample, num_padded
        A row, as a dict, and the number of its copies that follow the other rows.

    Raises
    ------
    ArgumentError
        When a column does not exist.
    FileFormatError
        When a file is no MindRecord file, or damaged.

    Examples
    --------
    >>> import tempfile
    >>> from opreg.data.mindrecord import FileWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = FileWriter(f"{folder}/rows.mindrecord")
    ...     schema = writer.add_schema({"label": {"type": "int32"}})
    ...     writer.write_raw_data([{"label": 7}, {"label": 8}])
    ...     writer.commit()
    ...     rows = MindDataset(f"{folder}/rows.mindrecord", shuffle=False)
    ...     [row["label"].asnumpy().item() for row in rows.create_dict_iterator()]
    [7, 8]
    """

    def __init__(self, dataset_files: str | os.PathLike | Sequence[str | os.PathLike],
                 columns_list: Sequence[str] | None = None, num_parallel_workers: int | None = None,
                 shuffle: bool | None = None, num_shards: int | None = None, shard_id: int | None = None,
                 sampler: Any = None, padded_sample: Mapping[str, Any] | None = None, num_padded: int | None = None,
                 num_samples: int | None = None, cache: object = None):
        files = files_of(dataset_files)
        fields = files[0].fields
        names = sorted(fields) if columns_list is None else list(columns_list)
        for name in names:
            if name not in fields:
                raise ArgumentError(f"MindDataset: there is no column {name!r}. {did_you_mean(str(name), fields)}")
        if (padded_sample is None) is not (num_padded is None):
            raise ArgumentError("MindDataset: give both padded_sample and num_padded, or neither")
        ends = list(accumulate(map(len, files)))

        def column(name: str, value: Any) -> np.ndarray:
            kind = fields[name]["type"]
            if isinstance(value, bytes):
                return np.array([value], f"S{max(len(value), 1)}")
            return np.asarray(value) if kind == "string" else as_column(value, "MindDataset").astype(kind)

        def at(place: int) -> Row:
            if place >= ends[-1]:
                values: Mapping[str, Any] = padded_sample  # type: ignore[assignment]
            else:
                file = int(np.searchsorted(ends, place, "right"))
                values = files[file].row(place - (ends[file - 1] if file else 0))
            return tuple([column(name, values[name]) for name in names])

        def rows(places: Sequence[int], epoch: Epoch) -> Iterator[Row]:
            return (at(place) for place in places)

        self._set_sampler(names, rows, ends[-1] + (num_padded or 0),
                          sampler_of("MindDataset", sampler, shuffle, num_samples, num_shards, shard_id))

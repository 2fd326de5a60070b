"""Datasets from TFRecord files, and schemas: names, dtypes and shapes of columns."""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from opreg.data.tfrecord import RecordFile, features_of

from ...cells import dtype as dtypes
from ...cells.typing import TensorDType
from ...core.settings import CheckedMethods
from ...errors import ArgumentError, FileFormatError
from .config import Epoch
from .pipeline import Row
from .samplers import sampler_of
from .sources import MappableDataset, files_that_match

__all__ = ["Schema", "Shuffle", "TFRecordDataset"]


class Shuffle(enum.StrEnum):
    """Kinds of shuffling; with each of them all rows come in random order."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"


class Schema(CheckedMethods):
    """Names, dtypes and shapes of columns.

    Parameters
    ----------
    schema_file : str or path, optional
        A file in JSON: ``{"columns": {"x": {"type": "int64", "shape": [2]}}, "numRows": 12}``.

    Raises
    ------
    ArgumentError
        When a column has no name or type.

    Examples
    --------
    >>> schema = Schema()
    >>> schema.add_column("x", "int64", [2])
    >>> print(json.dumps(json.loads(schema.to_json())))
    {"columns": [{"name": "x", "rank": 1, "shape": [2], "type": "int64"}]}
    """

    def __init__(self, schema_file: str | os.PathLike | None = None):
        #: By name: the dtype, and the shape or None.
        self.columns: dict[str, tuple[np.dtype, list[int] | None]] = {}
        self.dataset_type, self.num_rows = "", 0
        if schema_file:
            self.from_json(json.loads(Path(schema_file).read_text(encoding="utf-8")))

    def add_column(self, name: str, de_type: TensorDType, shape: Sequence[int] | None = None) -> None:
        """Add a column; its dtype may be ``"string"``. A shape may have one -1; None is a vector of any length."""
        self.columns[name] = (np.dtype(dtypes.dtype_to_nptype("String" if de_type == "string" else de_type)),
                              None if shape is None else [int(size) for size in shape])

    def parse_columns(self, columns: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> None:
        """Add columns: a dict of ``{"type": ..., "shape": ...}`` by name, or a list of such dicts with a ``name``."""
        rows = [{"name": name, **row} for name, row in columns.items()] if isinstance(columns, Mapping) else columns
        for row in rows:
            for word in ("name", "type"):
                if word not in row:
                    raise ArgumentError(f"Schema: a column has no {word!r}: {dict(row)}")
            self.add_column(row["name"], row["type"], row.get("shape", [] if row.get("rank") == 0 else None))

    def from_json(self, json_obj: Mapping[str, Any]) -> None:
        """Read the schema from a dict, as a file has it."""
        if "columns" not in json_obj:
            raise ArgumentError("Schema: there are no 'columns'")
        self.dataset_type, self.num_rows = json_obj.get("datasetType", ""), json_obj.get("numRows", 0)
        columns = json_obj["columns"]
        self.parse_columns(dict(sorted(columns.items())) if isinstance(columns, Mapping) else columns)

    def to_json(self) -> str:
        """The schema as text in JSON."""
        rows = [{"name": name, **({"rank": 1} if shape is None else {"rank": len(shape), "shape": shape}),
                 "type": "string" if dtype.kind == "U" else dtype.name}
                for name, (dtype, shape) in self.columns.items()]
        kept = {"datasetType": self.dataset_type} if self.dataset_type else {}
        return json.dumps({"columns": rows, **kept, **({"numRows": self.num_rows} if self.num_rows else {})}, indent=2)

    def __str__(self) -> str:
        return self.to_json()

    @staticmethod
    def get_num_rows(schema: Schema | str | os.PathLike) -> int:
        """The number of rows that a schema, or its file, states; 0 for no number."""
        return (schema if isinstance(schema, Schema) else Schema(schema)).num_rows


class TFRecordDataset(MappableDataset):
    """Rows of TFRecord files, whose records are an ``Example`` of TensorFlow, a feature for each column.

    Parameters
    ----------
    dataset_files : str, path, or list of them
        Files, or patterns such as ``train-*.tfrecord``; they are read in the order of their names.
    schema : Schema, str or path, optional
        Names, dtypes and shapes of the columns, or a file with them. By default features are vectors of float32 or
        int64, and of the bytes of text; with a dtype ``"string"`` text stays text.
    columns_list : list of str, optional
        Names of the columns; by default those of the schema, or else all features of the first record, by name.
    num_samples, shuffle, num_shards, shard_id
        See ``GeneratorDataset``; the order is random by default. ``num_samples`` is that of the schema by default.
    num_parallel_workers, shard_equal_rows, cache
        Accepted without effect: each process gets an equal number of rows, whatever files they are in.
    compression_type : {None, "", "GZIP", "ZLIB"}
        How all files are compressed.

    Raises
    ------
    ArgumentError
        When there are no such files, or, during iteration, when a record lacks a column or has other values.
    FileFormatError
        When a file is no TFRecord file, or damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from opreg.core.protobuf import field
    >>> from opreg.data.tfrecord import record_of
    >>> example = field(1, field(1, field(1, "x") + field(2, field(3, field(1, bytes([1, 5]))))))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = pathlib.Path(folder, "a.tfrecord").write_bytes(record_of(example))
    ...     [row["x"].asnumpy().tolist() for row in TFRecordDataset(f"{folder}/a.tfrecord").create_dict_iterator()]
    [[1, 5]]
    """

    def __init__(self, dataset_files: str | os.PathLike | Sequence[str | os.PathLike],
                 schema: Schema | str | os.PathLike | None = None, columns_list: Sequence[str] | None = None,
                 num_samples: int | None = None, num_parallel_workers: int | None = None,
                 shuffle: bool | Shuffle | None = None, num_shards: int | None = None, shard_id: int | None = None,
                 shard_equal_rows: bool = False, cache: object = None, compression_type: str | None = None):
        files = [RecordFile(path, compression_type) for path in files_that_match("TFRecordDataset", dataset_files)]
        ends = list(accumulate(map(len, files)))
        known = schema if isinstance(schema, Schema) else Schema(schema) if schema is not None else Schema()
        first: Iterator[Iterable[str]] = (features_of(file.record(0)) for file in files if len(file))
        names = list(columns_list or known.columns or sorted(next(first, ())))
        if not names:
            raise ArgumentError("TFRecordDataset: the files have no records, so give a schema")

        def at(place: int) -> Row:
            which = int(np.searchsorted(ends, place, "right"))
            number = place - (ends[which - 1] if which else 0)
            features = features_of(files[which].record(number))
            row = []
            for name in names:
                try:
                    row.append(_column(features.get(name), known.columns.get(name), schema is None))
                except ValueError as error:
                    raise FileFormatError(f"TFRecordDataset: {files[which].path}: record {number}: column {name!r}: "
                                          f"{error}") from None
            return tuple(row)

        def rows(places: Sequence[int], epoch: Epoch) -> Iterator[Row]:
            return (at(place) for place in places)

        self._set_sampler(names, rows, ends[-1], sampler_of(
            "TFRecordDataset", None, shuffle, num_samples or known.num_rows or None, num_shards, shard_id))


def _column(value: list[bytes] | np.ndarray | None, kind: tuple[np.dtype, list[int] | None] | None, padded: bool
            ) -> np.ndarray:
    """A feature as an array. Several texts are one vector of bytes; ``padded`` to the length of the longest."""
    if value is None:
        raise ValueError("it has no values")
    dtype, shape = kind or (np.dtype(np.uint8) if isinstance(value, list) else value.dtype, None)
    if not isinstance(value, list):
        if dtype.kind == "U":
            raise ValueError(f"{value.dtype} is no text")
        return value.astype(dtype) if shape is None else value.astype(dtype).reshape(shape)
    if dtype.kind == "U":
        array = np.array([text.decode() for text in value])
    elif dtype == np.uint8:
        longest = max(map(len, value), default=0) if padded else 0
        array = np.frombuffer(b"".join(text.ljust(longest) for text in value), np.uint8)
        shape = None if shape is not None and -1 in shape else shape  # as in MindSpore
    else:
        raise ValueError(f"text cannot be {dtype}")
    return array if shape is None else array.reshape(shape)

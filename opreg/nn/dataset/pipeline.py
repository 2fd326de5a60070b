"""Datasets: rows of columns, and operations on them that can be chained."""

from __future__ import annotations

import bisect
import builtins
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...core.named_errors import name_errors
from ...core.rules import as_list
from ...core.settings import CheckedMethods
from ...errors import ArgumentError, OpError, ShapeError, did_you_mean, note
from .config import Epoch
from .workers import count_of, map_rows

__all__ = ["BatchInfo", "Dataset", "as_column", "zip"]

#: A row: an array for each column.
Row: TypeAlias = tuple[np.ndarray, ...]
#: A function that yields the rows of an epoch.
Rows: TypeAlias = Callable[[Epoch], Iterator[Row]]


def as_column(value: Any, owner: str) -> np.ndarray:
    """The result of a user's function as an array; a dict becomes an object array without axes."""
    if isinstance(value, dict):
        column = np.empty((), object)
        column[()] = value
        return column
    array = np.asarray(value.asnumpy() if isinstance(value, TensorBase) or hasattr(value, "asnumpy") else value)
    if array.dtype.kind == "O":
        raise ArgumentError(f"{owner}: expected numbers, text, arrays of them or a dict, got {type(value).__name__}")
    return array


def _column_value(column: np.ndarray) -> Any:
    """The value of a column that users' functions receive: an array, or a dict that the array holds."""
    return column.item() if column.dtype.kind == "O" else column


class BatchInfo:
    """Epoch number and batch number, for functions that are called with batches."""

    def __init__(self, batch: int, epoch: int):
        self._batch, self._epoch = batch, epoch

    def get_batch_num(self) -> int:
        """The number of earlier batches in this epoch."""
        return self._batch

    def get_epoch_num(self) -> int:
        """The number of earlier epochs."""
        return self._epoch


class _ReplacedColumns:
    """Columns that a function replaces.

    Parameters
    ----------
    places : tuple of int
        Indices of the columns that the function receives.
    new : tuple of str
        Names of its results. As many as there are ``places`` take their places; another number comes before the
        remaining columns.
    """

    def __init__(self, places: tuple[int, ...], new: tuple[str, ...]):
        self.places, self.new = places, new

    def columns(self, columns: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """All columns, with the results among them; the names of columns are put together in the same way."""
        if len(self.new) != len(self.places):
            return [*results, *(column for i, column in enumerate(columns) if i not in self.places)]
        changed = list(columns)
        for place, result in builtins.zip(self.places, results):
            changed[place] = result
        return changed


class Dataset(CheckedMethods):
    """Rows of columns, which are iterated epoch by epoch.

    Each method returns another dataset, which computes its rows from this one's when they are needed; rows are not
    stored, except in the buffer of ``shuffle``. Rows are computed in the program, or in processes if
    ``python_multiprocessing`` and ``num_parallel_workers`` ask for that.

    Parameters
    ----------
    column_names : sequence of str
        Names of the columns.
    rows : callable
        A function of an ``Epoch`` that yields its rows as tuples of arrays.
    size : callable, optional
        A function that returns the number of rows of an epoch; without it they are counted.

    Examples
    --------
    >>> from opreg import dataset as ds
    >>> numbers = ds.NumpySlicesDataset({"x": [1.0, 2.0, 3.0]}, shuffle=False)
    >>> [row["x"].asnumpy().tolist() for row in numbers.map(lambda x: x * 2, "x").batch(2).create_dict_iterator()]
    [[2.0, 4.0], [6.0]]
    """

    def __init__(self, column_names: Sequence[str], rows: Rows, size: Callable[[], int] | None = None):
        self._names = tuple(column_names)
        self._made, self._sized = rows, size
        self._counted: int | None = None
        self._batch_size, self._repeats = 1, 1
        if len(set(self._names)) != len(self._names):
            raise ArgumentError(f"a dataset has each column only once, got {list(self._names)}")

    def _derive(self, rows: Rows, size: Callable[[], int] | None, names: Sequence[str] | None = None) -> Dataset:
        """A dataset whose rows are computed from this one's."""
        dataset = Dataset(self._names if names is None else names, rows, size)
        dataset._batch_size, dataset._repeats = self._batch_size, self._repeats
        return dataset

    def _places(self, columns: str | Sequence[str] | None, owner: str) -> tuple[int, ...]:
        """Indices of columns; that of the first one by default."""
        selected = self._names[:1] if columns is None or not columns else (columns,) if isinstance(columns, str) \
            else tuple(columns)
        for name in selected:
            if name not in self._names:
                raise ArgumentError(f"{owner}: there is no column {name!r}. {did_you_mean(name, self._names)}")
        return tuple(map(self._names.index, selected))

    # --------------------------------------------------------------------------------------- size and columns

    def get_col_names(self) -> list[str]:
        """The names of the columns."""
        return list(self._names)

    def _rows(self, epoch: Epoch) -> Iterator[Row]:
        """The rows of an epoch, which are counted if their number may change."""
        rows = self._made(epoch)
        return rows if self._sized is not None else self._count_rows(rows)

    def _count_rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        count = 0
        for row in rows:
            count += 1
            yield row
        self._counted = count

    def get_dataset_size(self) -> int:
        """Number of rows of an epoch, or of batches after ``batch``. For a generator or a filter they are those of the
        last complete epoch; before the first one they are counted by running it."""
        if self._sized is not None:
            return self._sized()
        if self._counted is None:
            return sum(1 for _ in self._rows(Epoch()))
        return self._counted

    def __len__(self) -> int:
        return self.get_dataset_size()

    def get_batch_size(self) -> int:
        """Number of rows of a batch; 1 without batches."""
        return self._batch_size

    def get_repeat_count(self) -> int:
        """Number of repetitions of the rows in an epoch."""
        return self._repeats

    def _first(self) -> Row:
        for row in self._rows(Epoch()):
            return row
        raise ArgumentError("the dataset has no rows")

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """The shapes of the columns in the first row; with ``estimate``, None for lengths that differ between rows."""
        shapes: list[list[int | None]] = [list(column.shape) for column in self._first()]
        if estimate:
            for row in self._rows(Epoch()):
                for shape, column in builtins.zip(shapes, row):
                    shape[:] = [a if a == b else None for a, b in builtins.zip(shape, column.shape)]
        return shapes

    def output_types(self) -> list[np.dtype]:
        """The dtypes of the columns in the first row."""
        return [column.dtype for column in self._first()]

    def create_tuple_iterator(self, columns: Sequence[str] | None = None, num_epochs: int = -1,
                              output_numpy: bool = False, do_copy: bool = False) -> Iterator[Any]:
        """Rows as lists of tensors; each loop over the iterator is an epoch.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns; all by default.
        num_epochs : int
            Number of epochs; -1 for no limit.
        output_numpy : bool
            Whether rows hold NumPy arrays.
        """
        places = range(len(self._names)) if columns is None else self._places(columns, "create_tuple_iterator")
        return _Epochs(self, lambda row: [_as_user_column(row[i], output_numpy) for i in places], num_epochs)

    def create_dict_iterator(self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
                             ) -> Iterator[Any]:
        """Rows as dicts of tensors; see ``create_tuple_iterator``."""
        return _Epochs(self, lambda row: {name: _as_user_column(column, output_numpy)
                                          for name, column in builtins.zip(self._names, row)}, num_epochs)

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self.create_tuple_iterator())

    def reset(self) -> None:
        """Do nothing: each loop is a new epoch."""

    # ------------------------------------------------------------------------------------------ rows by number

    def take(self, count: int = -1) -> Dataset:
        """The first ``count`` rows of an epoch; all for -1."""
        if count == -1:
            return self
        _positive("take", count)
        return self._derive(lambda epoch: itertools.islice(self._rows(epoch), count),
                            lambda: min(count, self.get_dataset_size()))

    def skip(self, count: int) -> Dataset:
        """The rows of an epoch without the first ``count``."""
        _positive("skip", count, 0)
        return self._derive(lambda epoch: itertools.islice(self._rows(epoch), count, None),
                            lambda: max(0, self.get_dataset_size() - count))

    def repeat(self, count: int | None = None) -> Dataset:
        """The rows repeated ``count`` times in one epoch; unchanged for None and -1, which mean no limit of epochs."""
        if count is None or count == -1:
            return self
        _positive("repeat", count)

        def rows(epoch: Epoch) -> Iterator[Row]:
            for i in range(count):
                yield from self._rows(epoch.inner(count, i))

        dataset = self._derive(rows, lambda: self.get_dataset_size() * count)
        dataset._repeats = self._repeats * count
        return dataset

    def shuffle(self, buffer_size: int) -> Dataset:
        """The rows in random order, each drawn from a buffer of the next ``buffer_size`` rows."""
        _positive("shuffle", buffer_size, 2)

        def rows(epoch: Epoch) -> Iterator[Row]:
            random = epoch.random()
            buffer: list[Row] = []
            for row in self._rows(epoch):
                if len(buffer) < buffer_size:
                    buffer.append(row)
                else:
                    at = int(random.integers(buffer_size))
                    drawn, buffer[at] = buffer[at], row
                    yield drawn
            for at in random.permutation(len(buffer)):
                yield buffer[at]

        return self._derive(rows, self.get_dataset_size)

    def split(self, sizes: Sequence[int | float], randomize: bool = True) -> list[Dataset]:
        """Datasets with given numbers of rows, or given fractions of the rows.

        Parameters
        ----------
        randomize : bool
            Whether rows are shuffled first, in one order for all epochs.
        """
        count = self.get_dataset_size()
        counts = [round(size * count) if isinstance(size, float) else int(size) for size in sizes]
        if all(isinstance(size, float) for size in sizes):
            counts[0] += count - sum(counts)
        if sum(counts) != count or min(counts) < 1:
            raise ArgumentError(f"split: {list(sizes)} of {count} rows would be parts of {counts} rows")
        random = Epoch().random()
        order = random.permutation(count) if randomize else np.arange(count)
        seed = int(random.integers(2 ** 31))  # a seed that is the same for all parts, so that they use one random order
        parts, start = [], 0
        for part in counts:
            parts.append(self._chosen(order[start:start + part].tolist(), seed))
            start += part
        return parts

    def _chosen(self, places: list[int], seed: int) -> Dataset:
        def rows(epoch: Epoch) -> Iterator[Row]:
            wanted_rows = set(places)
            row_at = {i: row for i, row in enumerate(self._rows(Epoch(0, seed))) if i in wanted_rows}
            return iter([row_at[place] for place in places])

        return self._derive(rows, lambda: len(places))

    def concat(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """The rows of this dataset, then those of others, which have the same columns."""
        joined = [self, *([datasets] if isinstance(datasets, Dataset) else datasets)]
        for dataset in joined[1:]:
            if dataset._names != self._names:
                raise ArgumentError(f"concat: expected the columns {list(self._names)}, got {list(dataset._names)}")
        return self._derive(lambda epoch: itertools.chain.from_iterable(dataset._rows(epoch) for dataset in joined),
                            lambda: sum(dataset.get_dataset_size() for dataset in joined))

    def __add__(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        return self.concat(datasets)

    def zip(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """The columns of this dataset and of others, row by row."""
        return zip((self, *([datasets] if isinstance(datasets, Dataset) else datasets)))

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """The dataset that a function returns for this one."""
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise ArgumentError(f"apply: expected the function to give a dataset, got {type(result).__name__}")
        return result

    # ------------------------------------------------------------------------------------------------- columns

    def project(self, columns: str | Sequence[str]) -> Dataset:
        """Rows with the given columns only, in that order."""
        places = self._places(columns, "project")
        return self._derive(lambda epoch: (tuple(row[i] for i in places) for row in self._rows(epoch)),
                            self.get_dataset_size, [self._names[i] for i in places])

    def rename(self, input_columns: str | Sequence[str], output_columns: str | Sequence[str]) -> Dataset:
        """The same rows, with other names for columns."""
        places = self._places(input_columns, "rename")
        new = (output_columns,) if isinstance(output_columns, str) else tuple(output_columns)
        if len(new) != len(places):
            raise ArgumentError(f"rename: expected {len(places)} new names, got {list(new)}")
        names = list(self._names)
        for place, name in builtins.zip(places, new):
            names[place] = name
        return self._derive(self._rows, self.get_dataset_size, names)

    def map(self, operations: Any, input_columns: str | Sequence[str] | None = None,
            output_columns: str | Sequence[str] | None = None, num_parallel_workers: int | None = None, *,
            column_order: Sequence[str] | None = None, python_multiprocessing: bool = False, max_rowsize: Any = None,
            cache: Any = None, offload: Any = None) -> Dataset:
        """Rows whose columns are transformed by functions, applied in a row.

        Parameters
        ----------
        operations : callable, or a list of them
            The functions; the first is called with the columns, each of the others with the results of the one before.
        input_columns : str or sequence of str, optional
            The columns to transform; the first one by default.
        output_columns : str or sequence of str, optional
            Names of the resulting columns; by default those of the input columns. If their number differs, they are
            placed before the other columns.
        num_parallel_workers : int, optional
            Number of processes that call the functions, with ``python_multiprocessing``; set in ``config`` by default.
        column_order : sequence of str, optional
            Columns of the result, in their order; see ``project``.
        python_multiprocessing : bool
            Whether worker processes call the functions.
        """
        steps = as_list(operations)
        for step in steps:
            if not callable(step):
                raise ArgumentError(f"map: expected functions, got {type(step).__name__}")
        replaced = self._replaced(self._places(input_columns, "map"), output_columns)
        workers = count_of(num_parallel_workers, python_multiprocessing)

        def changed(at: int, row: Row) -> Row:
            results = _call_functions(steps, tuple(row[i] for i in replaced.places), f"map of row {at}")
            if len(results) != len(replaced.new):
                raise ArgumentError(f"map: expected {len(replaced.new)} columns, {list(replaced.new)}, but the "
                                    f"functions returned {len(results)}; give output_columns")
            return tuple(replaced.columns(row, results))

        def rows(epoch: Epoch) -> Iterator[Row]:
            return map_rows("map", workers, changed, self._rows(epoch), epoch)

        dataset = self._derive(rows, self.get_dataset_size, replaced.columns(self._names, replaced.new))
        return dataset if column_order is None else dataset.project(column_order)

    def filter(self, predicate: Callable[..., Any], input_columns: str | Sequence[str] | None = None,
               num_parallel_workers: int | None = None) -> Dataset:
        """The rows for which a function of columns, by default of all, is true."""
        places = tuple(range(len(self._names))) if input_columns is None else self._places(input_columns, "filter")

        def rows(epoch: Epoch) -> Iterator[Row]:
            for at, row in enumerate(self._rows(epoch)):
                if _call_functions([predicate], tuple(row[i] for i in places), f"filter of row {at}")[0]:
                    yield row

        return self._derive(rows, None)

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """The rows of the datasets that a function returns for each row."""
        def rows(epoch: Epoch) -> Iterator[Row]:
            for row in self._rows(epoch):
                yield from func(*row)._rows(epoch)

        return Dataset(func(*self._first())._names, rows)

    # ------------------------------------------------------------------------------------------------- batches

    def batch(self, batch_size: int | Callable[[BatchInfo], int], drop_remainder: bool = False,
              num_parallel_workers: int | None = None, *, input_columns: str | Sequence[str] | None = None,
              output_columns: str | Sequence[str] | None = None, per_batch_map: Callable[..., Any] | None = None,
              pad_info: Mapping[str, Any] | None = None, python_multiprocessing: bool = False, max_rowsize: Any = None
              ) -> Dataset:
        """Rows stacked in batches.

        Parameters
        ----------
        batch_size : int or callable
            Number of rows of a batch, or a function of the ``BatchInfo`` that returns it.
        drop_remainder : bool
            Whether an incomplete last batch is dropped.
        per_batch_map : callable, optional
            A function of a list of a batch's values for each of ``input_columns``, and the ``BatchInfo``; its results
            replace these columns.
        num_parallel_workers, python_multiprocessing
            Worker processes that call ``per_batch_map``; see ``map``.

        Raises
        ------
        ShapeError
            During iteration, when rows of a batch differ in shape.
        """
        if not callable(batch_size):
            _positive("batch", batch_size)
        places = tuple(range(len(self._names))) if not input_columns else self._places(input_columns, "batch")
        replaced = self._replaced(places, output_columns)
        names = replaced.columns(self._names, replaced.new)
        workers = count_of(num_parallel_workers, python_multiprocessing) if per_batch_map is not None else 0

        def stack_batch(number: int, batch: tuple[BatchInfo, list[Row]]) -> Row:
            info, some = batch
            columns = self._column_values(some)
            if per_batch_map is not None:
                results = _call_functions([per_batch_map], (*(columns[i] for i in places), info), f"batch {number}",
                                          list)
                if len(results) != len(replaced.new):
                    raise ArgumentError(f"batch: per_batch_map gave {len(results)} columns for {list(replaced.new)}")
                columns = replaced.columns(columns, results)
            return _stack_columns(names, columns, pad_info or {})

        def rows(epoch: Epoch) -> Iterator[Row]:
            return map_rows("batch", workers, stack_batch, self._grouped(epoch, batch_size, drop_remainder), epoch)

        def size() -> int:
            count = self.get_dataset_size()
            return count // fixed_size if drop_remainder else -(-count // fixed_size)

        fixed_size = -1 if callable(batch_size) else batch_size
        dataset = self._derive(rows, None if callable(batch_size) else size, names)
        dataset._batch_size = fixed_size
        return dataset

    def _replaced(self, places: tuple[int, ...], output_columns: str | Sequence[str] | None) -> _ReplacedColumns:
        new = tuple(self._names[i] for i in places) if not output_columns else \
            (output_columns,) if isinstance(output_columns, str) else tuple(output_columns)
        return _ReplacedColumns(places, new)

    def _column_values(self, rows: Sequence[Row]) -> list[list[Any]]:
        """The values of each column in some rows."""
        return [[_column_value(row[i]) for row in rows] for i in range(len(self._names))]

    def _grouped(self, epoch: Epoch, batch_size: int | Callable[[BatchInfo], int], drop_remainder: bool
                 ) -> Iterator[tuple[BatchInfo, list[Row]]]:
        """The rows of each batch, not yet stacked."""
        source = self._rows(epoch)
        for number in itertools.count():
            info = BatchInfo(number, epoch.number)
            length = int(batch_size(info)) if callable(batch_size) else batch_size
            some = list(itertools.islice(source, length))
            if not some or (drop_remainder and len(some) < length):
                return
            yield info, some

    def padded_batch(self, batch_size: int, drop_remainder: bool = False, num_parallel_workers: int | None = None,
                     pad_info: Mapping[str, Any] | None = None) -> Dataset:
        """Rows padded to one shape, and stacked in batches.

        Parameters
        ----------
        pad_info : dict, optional
            For each column to pad, the shape, with None for the longest of the batch, and the fill value; by default
            all columns are padded to the longest with zeros.
        """
        return self.batch(batch_size, drop_remainder,
                          pad_info=dict.fromkeys(self._names, (None, 0)) if pad_info is None else pad_info)


    def bucket_batch_by_length(self, column_names: str | Sequence[str], bucket_boundaries: Sequence[int],
                               bucket_batch_sizes: Sequence[int],
                               element_length_function: Callable[..., int] | None = None,
                               pad_info: Mapping[str, Any] | None = None, pad_to_bucket_boundary: bool = False,
                               drop_remainder: bool = False) -> Dataset:
        """Batches of rows of similar length, padded to the longest.

        A batch is emitted when its bucket is full; incomplete ones come at the end.

        Parameters
        ----------
        column_names : str or sequence of str
            One column, whose first axis is the length, or those that ``element_length_function`` is called with.
        bucket_boundaries : sequence of int
            Increasing lengths at which the next bucket begins.
        bucket_batch_sizes : sequence of int
            Number of rows of a batch of each bucket; one value more than boundaries.
        pad_info : dict, optional
            See ``padded_batch``.
        pad_to_bucket_boundary : bool
            Whether lengths that ``pad_info`` leaves open are padded to the bucket's largest length; the last bucket has
            no largest length.
        drop_remainder : bool
            Whether incomplete batches are dropped.

        Raises
        ------
        ArgumentError
            For invalid boundaries or sizes; with ``pad_to_bucket_boundary`` during iteration, for a row of the last
            bucket, which has no largest length.

        Examples
        --------
        >>> from opreg import dataset as ds
        >>> rows = ds.GeneratorDataset(lambda: iter([[1], [2, 2, 2], [3, 3]]), "x")
        >>> [batch["x"].asnumpy().tolist() for batch in rows.bucket_batch_by_length("x", [3], [2, 1])
        ...                                                 .create_dict_iterator()]
        [[[2, 2, 2]], [[1, 0], [3, 3]]]
        """
        bounds, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        places = self._places(column_names, "bucket_batch_by_length")
        _check_buckets(bounds, sizes)
        if element_length_function is None and len(places) != 1:
            raise ArgumentError("bucket_batch_by_length: several columns need an element_length_function")

        def length(at: int, row: Row) -> int:
            if element_length_function is None:
                return len(row[places[0]])
            where = f"bucket_batch_by_length of row {at}"
            return int(_call_functions([element_length_function], tuple(row[i] for i in places), where)[0])

        def stack_batch(bucket: int, some: list[Row]) -> Row:
            if pad_info is None:
                shapes: Mapping[str, Any] = dict.fromkeys(self._names, (None, 0))
            else:
                shapes = _bucket_shapes(pad_info, bounds, bucket) if pad_to_bucket_boundary else pad_info
            return _stack_columns(self._names, self._column_values(some), shapes)

        def rows(epoch: Epoch) -> Iterator[Row]:
            samples: list[list[Row]] = [[] for _ in sizes]
            for at, row in enumerate(self._rows(epoch)):
                bucket = bisect.bisect_right(bounds, length(at, row))
                samples[bucket].append(row)
                if len(samples[bucket]) == sizes[bucket]:
                    yield stack_batch(bucket, samples[bucket])
                    samples[bucket] = []
            for bucket, some in enumerate(samples):
                if some and not drop_remainder:
                    yield stack_batch(bucket, some)

        return self._derive(rows, None)


def zip(datasets: Sequence[Dataset]) -> Dataset:
    """The columns of several datasets, row by row, until one has no more rows.

    Examples
    --------
    >>> from opreg import dataset
    >>> x = dataset.NumpySlicesDataset([1, 2], ["x"], shuffle=False)
    >>> y = dataset.NumpySlicesDataset([3, 4], ["y"], shuffle=False)
    >>> [(int(a), int(b)) for a, b in dataset.zip((x, y)).create_tuple_iterator(output_numpy=True, num_epochs=1)]
    [(1, 3), (2, 4)]
    """
    joined = list(datasets)
    if not joined or not all(isinstance(dataset, Dataset) for dataset in joined):
        raise ArgumentError("zip: expected a tuple of datasets")
    return Dataset([name for dataset in joined for name in dataset._names],
                   lambda epoch: (tuple(itertools.chain.from_iterable(rows))
                                  for rows in _rowwise([dataset._rows(epoch) for dataset in joined])),
                   lambda: min(dataset.get_dataset_size() for dataset in joined))


def _rowwise(sources: list[Iterator[Row]]) -> Iterator[list[Row]]:
    while True:
        rows = []
        for source in sources:
            row = next(source, None)
            if row is None:
                return
            rows.append(row)
        yield rows


class _Epochs:
    """Iterates over a dataset; each loop is an epoch."""

    def __init__(self, dataset: Dataset, shown: Callable[[Row], Any], num_epochs: int):
        self._dataset, self._shown, self._most = dataset, shown, num_epochs
        self._epoch = -1
        self._open: Iterator[Row] | None = None

    def __iter__(self) -> Iterator[Any]:
        self._begin()
        return self

    def _begin(self) -> Iterator[Row]:
        self._epoch += 1
        if 0 < self._most <= self._epoch:
            raise OpError(f"all {self._most} epochs of this iterator are over; for more, set num_epochs")
        self._open = self._dataset._rows(Epoch(self._epoch))
        return self._open

    def __next__(self) -> Any:
        return self._shown(next(self._begin() if self._open is None else self._open))

    def get_dataset_size(self) -> int:
        """Number of rows of an epoch."""
        return self._dataset.get_dataset_size()


def _as_user_column(column: np.ndarray, output_numpy: bool) -> Any:
    """A column as the user receives it; text stays NumPy, and a dict is converted value by value."""
    if column.dtype.kind != "O":
        return column if output_numpy or column.dtype.kind in "US" else Tensor(column)
    return _as_user_value(column.item(), output_numpy)


def _as_user_value(value: Any, output_numpy: bool) -> Any:
    if isinstance(value, dict):
        return {key: _as_user_value(part, output_numpy) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        inside = [_as_user_value(parts, output_numpy) for parts in value]
        return tuple(inside) if isinstance(value, tuple) else inside
    return _as_user_column(as_column(value, "a dict of a row"), output_numpy)


def _positive(owner: str, count: Any, least: int = 1) -> None:
    if not isinstance(count, (int, np.integer)) or count < least:
        raise ArgumentError(f"{owner}: expected an int of {least} at least, got {count!r}")


def _call_functions(steps: Sequence[Callable[..., Any]], columns: tuple[Any, ...], where: str, kind: Any = None
                    ) -> tuple[Any, ...]:
    """Columns transformed by functions in a row; an error names the function."""
    columns = tuple([_column_value(column) if isinstance(column, np.ndarray) else column for column in columns])
    for step in steps:
        try:
            results = step(*columns)
        except Exception as error:
            note(error, f"in {getattr(step, '__qualname__', type(step).__name__)}, called by {where}")
            raise
        columns = results if isinstance(results, tuple) else (results,)
    return columns if kind is list else tuple([as_column(value, where) for value in columns])


def _pad_values(values: Sequence[Any], shape: Sequence[int | None] | None, number: float) -> list[np.ndarray]:
    """Values padded at their ends, to a shape or to the longest."""
    arrays = [np.asarray(value) for value in values]
    most = np.max([array.shape for array in arrays], axis=0)
    lengths = [int(longest) if target is None else target
               for longest, target in builtins.zip(most, [None] * len(most) if shape is None else shape)]
    filled = []
    for array in arrays:
        if any(length < have for length, have in builtins.zip(lengths, array.shape)):
            raise ShapeError(f"padded_batch: a row of the shape {array.shape} is larger than {tuple(lengths)}")
        padded = np.full(lengths, number, array.dtype)
        padded[tuple([slice(length) for length in array.shape])] = array
        filled.append(padded)
    return filled


def _check_buckets(bounds: Sequence[int], sizes: Sequence[int]) -> None:
    if not bounds or bounds[0] < 1 or any(a >= b for a, b in itertools.pairwise(bounds)):
        raise ArgumentError(f"bucket_batch_by_length: bucket_boundaries must rise from 1 or more, got {bounds}")
    if len(sizes) != len(bounds) + 1:
        raise ArgumentError(f"bucket_batch_by_length: {len(bounds)} bucket_boundaries need {len(bounds) + 1} "
                            f"bucket_batch_sizes, got {sizes}")
    for size in sizes:
        _positive("bucket_batch_by_length", size)


def _bucket_shapes(pad_info: Mapping[str, Any], bounds: Sequence[int], bucket: int) -> dict[str, Any]:
    """``pad_info`` with the largest length of a bucket for the lengths that it leaves open."""
    if bucket == len(bounds):
        raise ArgumentError("bucket_batch_by_length: a row of the last bucket has no boundary to pad to; "
                            f"leave out pad_to_bucket_boundary, or add a boundary above {bounds[-1]}")
    return {name: (shape and [bounds[bucket] - 1 if n is None else n for n in shape], number)
            for name, (shape, number) in pad_info.items()}


def _stack_columns(names: Sequence[str], columns: Sequence[Sequence[Any]], pad_info: Mapping[str, Any]) -> Row:
    """A batch: each column as one array, padded where ``pad_info`` has its name."""
    return tuple([_stack_values(name, _pad_values(column, *pad_info[name]) if name in pad_info else column)
                  for name, column in builtins.zip(names, columns)])


def _stack_values(name: str, values: Any) -> np.ndarray:
    """The rows of a column as one array; dicts become a dict of arrays."""
    dicts = [value for value in values if isinstance(value, dict)]
    if dicts:
        keys = dicts[0].keys()
        if len(dicts) < len(values) or any(each.keys() != keys for each in dicts):
            raise ArgumentError(f"batch: rows of column {name!r} are dicts with different keys, or only some are; "
                                f"convert them to arrays with map or per_batch_map")
        stacked = {key: _stack_values(f"{name}[{key!r}]", [each[key] for each in dicts]) for key in keys}
        return as_column({key: _column_value(array) for key, array in stacked.items()}, name)
    arrays = [as_column(value, f"batch: column {name!r}") for value in values]
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) > 1:
        raise ShapeError(f"batch: rows of column {name!r} have the shapes {shapes[0]} and {shapes[1]}; pad them by "
                         f"padded_batch, or make them equal by map")
    return np.stack(arrays)


name_errors(__name__, globals(), __all__)

"""Batches, and iterators over arrays and other iterators."""

from __future__ import annotations

import functools
import queue
import threading
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NoReturn, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from opreg.ndarray.context import cpu, current_context
from opreg.ndarray.ndarray import NDArray, array
from opreg.ndarray.sparse_arrays import sparse_array
from opreg.ndarray.sparse_numbers import Csr

from ..core.named_errors import named
from ..core.settings import Checked, whole_number
from ..core.spec import Shape, as_dtype, is_floating
from ..errors import ArgumentError, ShapeError, did_you_mean, nearest, warn
from ..typing import DTypeLike

__all__ = ["DataDesc", "DataBatch", "DataIter", "NDArrayIter", "ResizeIter", "PrefetchingIter"]


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """Name and shape of an input, with its dtype and layout; it unpacks as the pair of name and shape.

    Examples
    --------
    >>> name, shape = DataDesc("data", (32, 3, 224, 224))
    >>> name, shape
    ('data', (32, 3, 224, 224))
    """

    name: str
    shape: Shape
    dtype: type
    layout: str | None

    @named
    def __new__(cls, name: str, shape: Iterable[int], dtype: DTypeLike = np.float32, layout: str | None = "NCHW"
                ) -> DataDesc:
        if not isinstance(name, str) or isinstance(shape, str) or not hasattr(  # type: ignore[redundant-expr]
                shape, "__iter__"):
            raise ArgumentError(f"DataDesc: expected a name and a shape, got {name!r} and {shape!r}")
        self = super().__new__(cls, name, tuple(shape))
        self.dtype, self.layout = as_dtype(dtype).type, layout
        return self

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    def __reduce__(self) -> tuple[type[DataDesc], tuple[object, ...]]:
        return DataDesc, (self.name, self.shape, self.dtype, self.layout)

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """The axis of samples: that of N in the layout, or the first."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Iterable[tuple[str, Sequence[int]]], types: Iterable[tuple[str, DTypeLike]] | None = None
                 ) -> list[DataDesc]:
        """Descriptions, from pairs of name and shape, and of name and dtype."""
        dtypes = dict(types or ())
        return [DataDesc(name, shape, dtypes.get(name, np.float32)) for name, shape in shapes]


#: Descriptions of inputs, or pairs of name and shape.
Descriptions: TypeAlias = Sequence[DataDesc | tuple[str, Sequence[int]]]


class DataBatch(Checked):
    """Inputs and labels of a batch.

    Attributes
    ----------
    data, label : list of NDArray
        Arrays in the order of the iterator's ``provide_data`` and ``provide_label``.
    pad : int
        Number of padding samples at the end.
    index : array or None
        Numbers of the samples.
    bucket_key, provide_data, provide_label
        For batches that differ in shape.

    Examples
    --------
    >>> batch = DataBatch(data=[array([[1.0, 2.0]])], label=[array([0.0])], pad=0)
    >>> print(batch)
    DataBatch: data shapes: [(1, 2)] label shapes: [(1,)]
    """

    def __init__(self, data: Sequence[NDArray], label: Sequence[NDArray] | None = None, pad: int | None = None,
                 index: np.ndarray | None = None, bucket_key: Any = None, provide_data: Descriptions | None = None,
                 provide_label: Descriptions | None = None):
        for what, arrays in (("data", data), ("label", label)):
            if arrays is not None and not isinstance(arrays, (list, tuple)):
                raise ArgumentError(f"DataBatch: {what} must be a list of arrays, got {type(arrays).__name__}")
        self.data, self.label, self.pad, self.index = data, label, pad, index
        self.bucket_key, self.provide_data, self.provide_label = bucket_key, provide_data, provide_label

    def __str__(self) -> str:
        data = [array.shape for array in self.data]
        labels = None if self.label is None else [array.shape for array in self.label]
        return f"{type(self).__name__}: data shapes: {data} label shapes: {labels}"


def leave(what: str, keywords: Iterable[str], valid: Iterable[str]) -> None:
    """Warn of unknown keywords, which MXNet's file iterators ignore."""
    for name in keywords:
        near = nearest(name, list(valid))
        meant = f"; did you mean {near[0]!r}?" if near else ""
        warnings.warn(f"{what}: there is no keyword {name!r}: it is ignored{meant}", UserWarning, stacklevel=3)


class DataIter(Checked):
    """Base of iterators over batches, which restart after ``reset``.

    A subclass defines ``iter_next`` and the ``get`` methods, or ``next``; and ``provide_data`` and ``provide_label``,
    descriptions of the batches.
    """

    def __init__(self, batch_size: int = 0):
        self.batch_size = batch_size

    provide_data: Any
    provide_label: Any

    def __iter__(self) -> Iterator[DataBatch]:
        return self

    def reset(self) -> None:
        """Restart."""

    def next(self) -> DataBatch:
        """The next batch.

        Raises
        ------
        StopIteration
            After the last.
        """
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def __next__(self) -> DataBatch:
        return self.next()

    def iter_next(self) -> bool:
        """Advance to the next batch; returns whether there is one."""
        raise NotImplementedError(f"{type(self).__name__} must define next, or iter_next and getdata")

    def getdata(self) -> Any:
        """Inputs of this batch."""
        raise NotImplementedError(f"{type(self).__name__} does not define getdata")

    def getlabel(self) -> Any:
        """Labels of this batch."""
        return None

    def getindex(self) -> np.ndarray | None:
        """Numbers of the samples in this batch."""
        return None

    def getpad(self) -> int | None:
        """Number of padding samples at the end."""
        return 0


class Batches(Protocol):
    """The interface of data iterators: batches with a description."""

    @property
    def provide_data(self) -> Any: ...

    @property
    def provide_label(self) -> Any: ...

    def reset(self) -> None: ...

    def __iter__(self) -> Iterator[Any]: ...


def part(owner: str, count: int, num_parts: int, part_index: int) -> slice:
    """The rows of one of ``count`` parts, whose lengths differ by at most one.

    Examples
    --------
    >>> [part("iterator", 5, 2, i) for i in range(2)]
    [slice(0, 2, None), slice(2, 5, None)]
    """
    if not 0 <= part_index < num_parts:
        raise ArgumentError(f"{owner}: part_index={part_index} of num_parts={num_parts}: expected an integer from 0 on "
                            "that is less than the number of parts")
    if num_parts > count:
        raise ArgumentError(f"{owner}: num_parts={num_parts}, but there are {count} rows")
    return slice(count * part_index // num_parts, count * (part_index + 1) // num_parts)


def _name_arrays(data: Any, default: str, empty: bool) -> list[tuple[str, Source]]:
    """Arrays with names, on the host."""
    if data is None:
        data = []
    if not isinstance(data, (list, tuple, Mapping)):
        data = [data]
    if not len(data) and not empty:
        raise ArgumentError("NDArrayIter: there is no data")
    if not isinstance(data, Mapping):
        names = [default] if len(data) == 1 else [f"_{i}_{default}" for i in range(len(data))]
        data = OrderedDict(zip(names, data))
    named = []
    for name, value in data.items():
        host = _on_host(value)
        if not host.shape or not (host.dtype.kind in "iub" or is_floating(host.dtype)):
            raise ArgumentError(f"NDArrayIter: {name}: expected an array of numbers, got {type(value).__name__}")
        # as in nd.array: NumPy arrays become float32, NDArrays keep their dtype
        if isinstance(host, np.ndarray) and not isinstance(value, NDArray):
            host = host.astype(np.float32, copy=False)
        named.append((name, host))
    return named


def _on_host(value: Any) -> Source:
    """An array on the host: the array itself if it lies there, so that batches see later writes; otherwise a copy."""
    if not isinstance(value, NDArray):
        return np.asarray(value)
    if value.stype == "csr":
        stored: Csr = value._memory.to(cpu())
        return stored
    return value._data if value._ctx.backend_name == "cpu" and not value._sparse else value.asnumpy()


#: An array that an iterator divides into batches of rows: a dense one, or a CSR matrix, whose batches are CSR matrices.
Source: TypeAlias = np.ndarray | Csr
#: Arrays to iterate over: one, several, or by name.
Arrays: TypeAlias = ArrayLike | Sequence[ArrayLike] | Mapping[str, ArrayLike] | None


class NDArrayIter(DataIter):
    """Batches of rows of arrays, along the axis of samples.

    Parameters
    ----------
    data, label : array, list of arrays, or dict of them by name
        NumPy arrays or NDArrays; all with the same number of rows. NumPy's come as float32, and batches of a CSR matrix
        as CSR matrices. Later writes to an array appear in batches, unless it was copied: sparse arrays, arrays on
        devices, and NumPy arrays of other dtypes are copied.
    batch_size : int
        Number of rows of a batch.
    shuffle : bool
        Whether rows are shuffled in each epoch; ``np.random.seed`` seeds the order.
    last_batch_handle : {"pad", "discard", "roll_over"}
        Treatment of an incomplete last batch: pad it with the first rows, drop it, or move its rows to the next epoch.
    data_name, label_name : str
        Names of arrays without one.
    layout : str
        Axes of the arrays; N are the rows. Samples of arrays without that axis lie along the first.
    num_parts, part_index : int
        Number of parts of the rows, and index of the part to use.

    Examples
    --------
    >>> batches = NDArrayIter(np.arange(5), batch_size=2)
    >>> [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in batches]
    [([0.0, 1.0], 0), ([2.0, 3.0], 0), ([4.0, 0.0], 1)]
    """

    def __init__(self, data: Arrays, label: Arrays = None, batch_size: int = 1, shuffle: bool = False,
                 last_batch_handle: str = "pad", data_name: str = "data", label_name: str = "softmax_label",
                 layout: str = "NCHW", num_parts: int = 1, part_index: int = 0):
        super().__init__(batch_size)
        valid = ("pad", "discard", "roll_over")
        if last_batch_handle not in valid:
            raise ArgumentError(f"there is no last_batch_handle {last_batch_handle!r}. "
                                f"{did_you_mean(last_batch_handle, valid)}")
        batch_size = self.batch_size = whole_number(f"{type(self).__name__}: batch_size", batch_size, 1)
        self.data, self.label = _name_arrays(data, data_name, False), _name_arrays(label, label_name, True)
        self.shuffle, self.last_batch_handle, self.layout = shuffle, last_batch_handle, layout
        self.num_data = self._count(self.data[0][1])
        for name, value in self.data + self.label:
            text = f"NDArrayIter: {name} has {self._count(value)} rows, {self.data[0][0]} has {self.num_data}"
            if self._count(value) < self.num_data:
                raise ShapeError(text)
            if self._count(value) > self.num_data:
                warn(f"{text}: only the first ones are used")
                self._keep(slice(0, self.num_data))
        if num_parts != 1 or part_index:
            self._keep(part("NDArrayIter", self.num_data, num_parts, part_index))
        self.data_list = [value for _, value in self.data + self.label]
        self.num_source = len(self.data_list)
        if batch_size > self.num_data:
            warn(f"{type(self).__name__}: batch_size={batch_size} is more than the {self.num_data} rows: "
                 + {"pad": "every batch repeats rows, pad says how many", "discard": "there is no batch",
                    "roll_over": "rows are collected over several epochs until they fill a batch"}[last_batch_handle])
        self.idx = np.arange(self.num_data)
        self._order = self.idx.copy()
        self._rows: list[np.ndarray] = []
        self._rest = self._left = np.arange(0)  # an incomplete last batch, and the rows moved to the next epoch
        self.cursor = -1
        self.hard_reset()

    def _keep(self, rows: slice) -> None:
        """Restrict to some of the rows."""
        for arrays in (self.data, self.label):
            arrays[:] = [(name, value.part(rows.start, rows.stop) if isinstance(value, Csr) else
                          value[(slice(None),) * self._axis(value) + (rows,)]) for name, value in arrays]
        self.num_data = rows.stop - rows.start

    def _axis(self, value: Source) -> int:
        """Axis along which the rows of an array lie; the first axis of a CSR matrix."""
        axis = max(self.layout.find("N"), 0)
        return axis if isinstance(value, np.ndarray) and axis < value.ndim else 0

    def _count(self, value: Source) -> int:
        return value.shape[self._axis(value)]

    @property
    def provide_data(self) -> list[DataDesc]:
        """Names, shapes and dtypes of the inputs of a batch."""
        return self._describe(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Names, shapes and dtypes of the labels of a batch."""
        return self._describe(self.label)

    def _describe(self, arrays: list[tuple[str, Source]]) -> list[DataDesc]:
        descriptions = []
        for name, value in arrays:
            axis = self._axis(value)
            shape = (*value.shape[:axis], self.batch_size, *value.shape[axis + 1:])
            layout = self.layout if self.layout.find("N") == axis else None
            descriptions.append(DataDesc(name, shape, value.dtype, layout))
        return descriptions

    def hard_reset(self) -> None:
        """Restart, and drop rows that were moved to this epoch."""
        self._left = self._left[:0]
        self._plan()

    def reset(self) -> None:
        """Restart."""
        self._plan()

    def _plan(self) -> None:
        """Choose the rows of each batch of this epoch."""
        if self.shuffle:
            # as in MXNet, from the seeded generator: each shuffle is applied to the order before
            np.random.shuffle(self.idx)  # noqa: NPY002
            self._order = self._order[self.idx]
        rows, size = np.concatenate([self._left, self._order]), self.batch_size
        full = len(rows) // size * size
        self._rows = list(rows[:full].reshape(-1, size))
        self._rest, self._pad = rows[full:], 0
        if self.last_batch_handle == "pad" and len(self._rest):
            self._pad = size - len(self._rest)
            self._rows.append(np.concatenate([self._rest, np.resize(self._order, self._pad)]))
        self._left = self._left[:0]
        self.cursor = -1

    def iter_next(self) -> bool:
        self.cursor += 1
        if self.cursor == len(self._rows) and self.last_batch_handle == "roll_over":
            self._left = self._rest  # only a complete epoch moves rows to the next
        return self.cursor < len(self._rows)

    def _take(self, arrays: list[tuple[str, Source]]) -> list[NDArray]:
        rows = self._rows[self.cursor]
        in_order = len(rows) and rows[-1] - rows[0] == len(rows) - 1 and not self.shuffle
        key = slice(int(rows[0]), int(rows[-1]) + 1) if in_order else rows
        return [sparse_array(value.rows_at(rows), current_context()) if isinstance(value, Csr) else
                array(value[(slice(None),) * self._axis(value) + (key,)], dtype=value.dtype) for _, value in arrays]

    def getdata(self) -> list[NDArray]:
        return self._take(self.data)

    def getlabel(self) -> list[NDArray]:
        return self._take(self.label)

    def getpad(self) -> int:
        return self._pad if self.cursor == len(self._rows) - 1 else 0


class SingleArrayIter(NDArrayIter):
    """Base of iterators with one data and one label array, which batches and the ``get`` methods return without a
    list."""

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def getdata(self) -> Any:
        """The data of this batch, one array."""
        return self._take(self.data)[0]

    def getlabel(self) -> Any:
        """The labels of this batch, one array."""
        return self._take(self.label)[0]

    def getindex(self) -> np.ndarray:
        """The numbers of this batch's rows, uint64."""
        return self._rows[self.cursor].astype(np.uint64)


class ResizeIter(DataIter):
    """Another iterator's batches, a given number in each epoch, restarting it if it ends early.

    Parameters
    ----------
    data_iter : DataIter
        The other iterator.
    size : int
        Number of batches of an epoch.
    reset_internal : bool
        Whether the other iterator is reset at each epoch.

    Examples
    --------
    >>> short = ResizeIter(NDArrayIter(np.zeros((10, 3)), batch_size=2), 3)
    >>> len([*short])
    3
    """

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True):
        super().__init__(data_iter.batch_size)
        self.data_iter, self.reset_internal, self.cur = data_iter, reset_internal, 0
        self.size = whole_number("ResizeIter: size", size)
        self.provide_data, self.provide_label = data_iter.provide_data, data_iter.provide_label
        self.current_batch: DataBatch | None = None

    def reset(self) -> None:
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def next(self) -> DataBatch:
        if self.cur == self.size:
            raise StopIteration
        try:
            batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            batch = self.data_iter.next()
        self.cur += 1
        self.current_batch = batch
        return batch


class PrefetchingIter(DataIter):
    """Prefetches another iterator's batches on a thread.

    Parameters
    ----------
    iters : DataIter or list of them
        The other iterator; the batches of several are merged.
    rename_data, rename_label : list of dict of str to str
        New names of inputs and labels, a dict for each iterator.

    Examples
    --------
    >>> with_thread = PrefetchingIter(NDArrayIter(np.zeros((4, 3)), batch_size=2))
    >>> [batch.data[0].shape for batch in with_thread]
    [(2, 3), (2, 3)]
    """

    def __init__(self, iters: DataIter | Sequence[DataIter], rename_data: Sequence[Mapping[str, str]] | None = None,
                 rename_label: Sequence[Mapping[str, str]] | None = None):
        self.iters: list[Any] = list(iters) if isinstance(iters, (list, tuple)) else [iters]
        self._rename = {"provide_data": rename_data, "provide_label": rename_label}
        super().__init__(self.provide_data[0].shape[0])
        self._begin()

    def _descriptions(self, what: str) -> list[DataDesc]:
        names = self._rename[what] or [{} for _ in self.iters]
        return [DataDesc(renamed.get(desc[0], desc[0]), desc[1], getattr(desc, "dtype", np.float32))
                for source, renamed in zip(self.iters, names) for desc in getattr(source, what)]

    @property
    def provide_data(self) -> list[DataDesc]:
        """Names, shapes and dtypes of the inputs of a batch."""
        return self._descriptions("provide_data")

    @property
    def provide_label(self) -> list[DataDesc]:
        """Names, shapes and dtypes of the labels of a batch."""
        return self._descriptions("provide_label")

    def _begin(self) -> None:
        self._ahead = PrefetchedResults(functools.partial(_next_of_all, self.iters), 1)

    def reset(self) -> None:
        self._ahead.close()
        for source in self.iters:
            source.reset()
        self._begin()

    def next(self) -> DataBatch:
        batches = self._ahead.get()
        labels = [label for batch in batches for label in batch.label or ()]
        return DataBatch([array for batch in batches for array in batch.data], labels, batches[0].pad, batches[0].index,
                         provide_data=self.provide_data, provide_label=self.provide_label)


def _next_of_all(sources: Sequence[DataIter]) -> list[DataBatch]:
    return [source.next() for source in sources]


T = TypeVar("T")


class PrefetchedResults(Generic[T]):
    """Results of a function, computed in advance on a thread.

    The thread ends with the first exception, which each later ``get`` raises, when it is closed, or when this object is
    deleted; so the function must not refer to the owner of this object.
    """

    def __init__(self, make: Callable[[], T], most: int):
        self._ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(max(1, most))
        stop = threading.Event()
        self.thread = threading.Thread(target=_fetch, args=(make, self._ready, stop), daemon=True)
        self._end = weakref.finalize(self, stop.set)
        self.thread.start()

    def __reduce__(self) -> NoReturn:
        raise ArgumentError("an iterator that reads ahead in a thread cannot be copied: make a new one over copies "
                            "of its sources")

    def get(self) -> T:
        """The next result."""
        thing, error = self._ready.get()
        if error is not None:
            self._ready.put((None, error))  # raised again by each later call
            raise error
        return thing  # type: ignore[return-value]

    def close(self) -> None:
        """End the thread, and wait for it."""
        self._end()
        self.thread.join()


def _fetch(make: Callable[[], Any], ready: queue.Queue[tuple[Any, BaseException | None]], stop: threading.Event
           ) -> None:
    """Run in the thread: compute results and put them into the queue."""
    error = None
    while error is None and not stop.is_set():
        thing = None
        try:
            thing = make()
        except BaseException as raised:  # get() raises it, also StopIteration
            error = raised
        while not stop.is_set():
            try:
                ready.put((thing, error), timeout=0.1)
                break
            except queue.Full:
                continue

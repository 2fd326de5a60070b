"""Parameter files of PyTorch, as ``torch.save`` writes them from 1.6 on, a zip of a pickle and of storages::

    NAME/data.pkl | NAME/byteorder | NAME/data/0 | NAME/data/1 | … | NAME/version

and before, or with ``_use_new_zipfile_serialization=False``, pickles and after them the storages::

    magic number | version 1001 | the system | the dict | keys of storages | storages × (i64 count | numbers)

A written file is a dict of tensors, which ``torch.load`` reads with ``weights_only`` or maps into memory. Reading runs
no code of the pickle: it may name only the functions and classes of which dicts of tensors consist, and each of these
is replaced by one of this module. Names in nested dicts are joined by points.
"""

from __future__ import annotations

import collections
import io
import math
import pickle
import pickletools
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from opreg.core.spec import strides_of
from opreg.errors import FileFormatError, list_names, warn

from .formats import READ_TORCH, TORCH_WRITER
from .npz_file import ZIP_DAMAGE
from .pickles import PICKLE_DAMAGE, SafeUnpickler
from .records import DENSE_FLOOR, DENSE_RATIO, MAX_NDIM, Pairs, Record, bytes_of, decode, whole_arrays

#: By the class of a storage: NumPy's name of the dtype, and the dtype of the stored elements without byte order.
_STORAGES = {"DoubleStorage": ("float64", "f8"), "FloatStorage": ("float32", "f4"), "HalfStorage": ("float16", "f2"),
             "BFloat16Storage": ("bfloat16", "u2"), "LongStorage": ("int64", "i8"), "IntStorage": ("int32", "i4"),
             "ShortStorage": ("int16", "i2"), "CharStorage": ("int8", "i1"), "ByteStorage": ("uint8", "u1"),
             "BoolStorage": ("bool", "u1"), "ComplexFloatStorage": ("complex64", "c8"),
             "ComplexDoubleStorage": ("complex128", "c16"), "UntypedStorage": ("bytes", "u1")}
#: Dtypes without a storage class. Their storages are bytes, and the tensor gives the dtype.
_UNTYPED = {"uint16": "u2", "uint32": "u4", "uint64": "u8"}
_NAMES = {name: code for code, (name, _) in _STORAGES.items() if name != "bytes"}
_STORED = {**{name: stored for name, stored in _STORAGES.values() if name != "bytes"}, **_UNTYPED}
#: Storages begin at a multiple of this in the file, so that they may be mapped into memory.
_ALIGNED = 64
#: The extra field of a zip file that is used as padding: its code and length.
_PADDING = b"FB\0\0"
#: Bytes of the header of a zip member without its name, and of the extra field for sizes beyond 32 bits.
_HEADER, _SIZES = 30, 20
_DEEPEST = 32  # levels of nested dicts


class _Kind(NamedTuple):
    """A storage class: its dtype, and the dtype of stored elements."""

    dtype: str
    stored: str


class _Storage(NamedTuple):
    """A storage: the elements of one member of the zip."""

    kind: _Kind
    values: np.ndarray
    order: str


class _Tensor(NamedTuple):
    """A tensor: a view of a storage, and its dtype."""

    view: np.ndarray
    dtype: str


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> _Tensor:
    """``torch._utils._rebuild_tensor_v2``: a view of a storage."""
    if not isinstance(storage, _Storage):
        raise FileFormatError(f"expected a tensor with a storage, found one with {type(storage).__name__}")
    for what, each in (("size", size), ("stride", stride)):
        if not isinstance(each, tuple) or len(each) > MAX_NDIM or not all(type(n) is int and n >= 0 for n in each):
            raise FileFormatError(f"expected a {what} of counts, found {str(each)[:80]}")
    values = storage.values
    last = offset + sum((count - 1) * step for count, step in zip(size, stride)) if type(offset) is int else -1
    if len(size) != len(stride) or type(offset) is not int or offset < 0 or (math.prod(size) and last >= len(values)):
        raise FileFormatError(f"expected a tensor within its {len(values)} elements, found one of shape {size}, "
                              f"strides {stride}, offset {offset}")
    most = DENSE_FLOOR + DENSE_RATIO * values.nbytes  # an axis with a stride of 0 repeats its elements
    if math.prod(size) * values.itemsize > most:
        raise FileFormatError(f"expected at most {most} bytes for the stored data, found a tensor of shape {size}")
    steps = [step * values.itemsize for step in stride]
    view = np.lib.stride_tricks.as_strided(values[offset:], size, steps) if math.prod(size) else np.empty(
        size, values.dtype)
    return _Tensor(view, storage.kind.dtype)


def _tensor_of_bytes(storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, kind: Any, *_: Any
                     ) -> _Tensor:
    """``torch._utils._rebuild_tensor_v3``: a view of a storage of bytes."""
    if not isinstance(storage, _Storage) or not isinstance(kind, _Kind):
        raise FileFormatError(f"expected a tensor with a storage and a dtype, found {type(storage).__name__} and "
                              f"{type(kind).__name__}")
    typed = _Storage(kind, storage.values.view(storage.order + kind.stored), storage.order)
    return _tensor(typed, offset, size, stride)


def _parameter(data: Any, *_: Any) -> Any:
    """``torch._utils._rebuild_parameter``: the tensor of a parameter."""
    return data


class _Dict(collections.OrderedDict):
    """A dict of the file. State in the pickle other than items is ignored."""

    def __setstate__(self, state: object) -> None:
        return None


class _IgnoredObject(NamedTuple):
    """An object of the file that is not needed, such as a device."""

    what: tuple[Any, ...]


def _ignored_object(*what: Any) -> _IgnoredObject:
    return _IgnoredObject(what)


#: Functions and classes that a pickle may name.
_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): _Dict, ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_bytes,
    ("torch._utils", "_rebuild_parameter"): _parameter, ("torch", "Size"): tuple, ("torch", "device"): _ignored_object,
}


class _Unpickler(SafeUnpickler):
    """Reads the pickle. Only functions and classes of this module are called."""

    def __init__(self, content: bytes, storage: Callable[[_Kind, str, int], _Storage]):
        super().__init__(content, encoding="utf-8")
        self.storage = storage

    def replacement(self, module: str, name: str) -> Any:
        """The replacement of a function or class that the pickle names."""
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _Kind(*_STORAGES[name])
        if module == "torch" and name in _UNTYPED:
            return _Kind(name, _UNTYPED[name])
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]
        raise FileFormatError(f"expected tensors and dicts of them, found {module}.{name}: save net.state_dict()")

    def persistent_load(self, pid: Any) -> _Storage:
        """The storage that a persistent id names."""
        if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage" or \
                not isinstance(pid[1], _Kind) or not isinstance(pid[2], str) or type(pid[4]) is not int:
            raise FileFormatError(f"expected a storage, found {str(pid)[:80]}")
        storage = self.storage(pid[1], pid[2], pid[4])
        return storage if len(pid) == 5 or pid[5] is None else _part(storage, pid[5])


def _part(storage: _Storage, view: Any) -> _Storage:
    """A part of a storage, as files of the oldest versions name it: by a key, where it begins, and its length."""
    if not isinstance(view, tuple) or len(view) != 3 or not all(type(n) is int and n >= 0 for n in view[1:]) or \
            view[1] + view[2] > len(storage.values):
        raise FileFormatError(f"expected a part of {len(storage.values)} elements, found {str(view)[:80]}")
    return storage._replace(values=storage.values[view[1]:view[1] + view[2]])


class _Pickles:
    """A file from before 1.6. Its storages are after the pickle that names them, and are filled when it is read."""

    def __init__(self, content: bytes, name: str):
        self.content, self.name, self.unclaimed = memoryview(content), name, len(content)
        self.storages: dict[str, _Storage] = {}

    def fail(self, what: str) -> NoReturn:
        raise FileFormatError(f"{self.name}: {what}")

    def storage(self, kind: _Kind, key: str, count: int) -> _Storage:
        """Make room for a storage."""
        if key not in self.storages:
            dtype = np.dtype("<" + kind.stored)
            self.unclaimed -= max(count, 0) * dtype.itemsize
            if count < 0 or self.unclaimed < 0:
                self.fail(f"storage {key!r}: expected numbers that the file has, found {count} of {kind.dtype}")
            self.storages[key] = _Storage(kind, np.empty(count, dtype), "<")
        storage = self.storages[key]
        if (storage.kind, len(storage.values)) != (kind, count):
            self.fail(f"storage {key!r}: expected {len(storage.values)} numbers of {storage.kind.dtype}, as before, "
                      f"found {count} of {kind.dtype}")
        return storage

    def value(self) -> Any:
        """The object of the file."""
        parts, stream = [], io.BytesIO(self.content)
        for _ in range(5):
            start = stream.tell()
            for _ in pickletools.genops(stream):  # reads the stream up to the end of the pickle
                pass
            parts.append(bytes(self.content[start:stream.tell()]))
        _, version, _, value, keys = [_Unpickler(part, self.storage).load() for part in parts]
        if version != 1001:
            self.fail(f"expected version 1001 of the format, found {str(version)[:80]}")
        self.fill(keys, stream.tell())
        return value

    def fill(self, keys: Any, at: int) -> None:
        """Read the storages, which are in the order of their keys."""
        if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(self.storages):
            self.fail(f"expected storages {list_names(sorted(self.storages), 5)}, found {str(keys)[:80]}")
        for key in keys:
            values = self.storages[key].values
            count, end = int.from_bytes(self.content[at:at + 8], "little"), at + 8 + values.nbytes
            if count != len(values) or end > len(self.content):
                self.fail(f"storage {key!r}: expected {len(values)} numbers, found {count}, and "
                          f"{len(self.content) - at - 8} bytes")
            values[:] = np.frombuffer(self.content[at + 8:end], values.dtype)
            at = end


class _Reader:
    """The zip of a file of PyTorch, and its length, which bounds all sizes in it."""

    def __init__(self, archive: zipfile.ZipFile, size: int, name: str):
        self.archive, self.size, self.name = archive, size, name
        first = next((member for member in archive.namelist() if member.endswith("/data.pkl")), "")
        self.folder = first.removesuffix("data.pkl")
        self.order = "<"
        if f"{self.folder}byteorder" in archive.namelist():
            self.order = ">" if self.content("byteorder") == b"big" else "<"
        self.storages: dict[str, _Storage] = {}

    def fail(self, what: str) -> NoReturn:
        raise FileFormatError(f"{self.name}: {what}")

    def content(self, part: str) -> bytes:
        """The bytes of an uncompressed member of the zip."""
        info = self.archive.getinfo(self.folder + part)
        longest = max(info.file_size, info.compress_size)
        if info.compress_type != zipfile.ZIP_STORED or longest > self.size:
            self.fail(f"{part}: expected bytes that are not packed, at most {self.size}, found {longest}")
        return self.archive.read(info)

    def storage(self, kind: _Kind, key: str, count: int) -> _Storage:
        """Read a storage."""
        if key not in self.storages:
            content = self.content(f"data/{key}")
            dtype = np.dtype(self.order + kind.stored)
            if len(content) != count * dtype.itemsize:
                self.fail(f"data/{key}: expected {count} numbers of {kind.dtype}, found {len(content)} bytes")
            self.storages[key] = _Storage(kind, np.frombuffer(content, dtype), self.order)
        storage = self.storages[key]
        if storage.kind != kind:
            self.fail(f"data/{key}: expected {storage.kind.dtype}, as before, found {kind.dtype}")
        return storage


def _tensors(value: Any, prefix: str, skipped: list[str], depth: int = 0) -> Iterator[tuple[str, _Tensor]]:
    """The tensors of nested dicts, by name. Names of other values are appended to ``skipped``."""
    if isinstance(value, _Tensor):
        yield prefix, value
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, part in value.items():
            yield from _tensors(part, f"{prefix}.{key}" if prefix else str(key), skipped, depth + 1)
    else:
        skipped.append(prefix or "everything")


@READ_TORCH.provide
def _read(file: BinaryIO, size: int, name: str) -> tuple[list[Record], list[str]]:
    zipped = file.read(2) == b"PK"
    file.seek(0)
    try:
        if zipped:
            with zipfile.ZipFile(file) as archive:
                reader = _Reader(archive, size, name)
                value = _Unpickler(reader.content("data.pkl"), reader.storage).load()
        else:
            value = _Pickles(file.read(), name).value()
    except FileFormatError as error:
        raise FileFormatError(str(error) if str(error).startswith(name) else f"{name}: {error}") from None
    except (*PICKLE_DAMAGE, *ZIP_DAMAGE) as error:
        raise FileFormatError(f"{name}: expected a file of PyTorch, found {type(error).__name__}: {error}") from None
    skipped: list[str] = []
    tensors: dict[str, _Tensor] = {}
    for key, tensor in _tensors(value, "", skipped):
        if key in tensors or not key:
            raise FileFormatError(f"{name}: expected a different name for each array, found two arrays {key!r}")
        tensors[key] = tensor
    nbytes, most = sum(tensor.view.nbytes for tensor in tensors.values()), DENSE_FLOOR + DENSE_RATIO * size
    if nbytes > most:  # tensors may share a storage
        raise FileFormatError(f"{name}: expected at most {most} bytes for the stored data, found tensors of {nbytes}")
    if skipped:
        warn(f"{name}: {len(skipped)} entries that are not tensors are left out: {list_names(skipped, 5)}")
    arrays = [decode(view.astype(view.dtype.newbyteorder("=")), dtype) for view, dtype in tensors.values()]
    return [Record(array) for array in arrays], list(tensors)


# ------------------------------------------------------------------------------------------------------ writing


@TORCH_WRITER.provide
def _writer(records: Pairs, names: Sequence[str]) -> Callable[[BinaryIO], None]:
    arrays = whole_arrays(records, names, ".pt", _STORED)

    def put(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            _write_member(archive, "data.pkl", _pickle(arrays))
            _write_member(archive, "byteorder", b"little")
            for i, array in enumerate(arrays.values()):
                stored = np.dtype(_STORED[array.dtype.name]).newbyteorder("<")
                _write_member(archive, f"data/{i}", bytes_of(array, stored.str))
            _write_member(archive, "version", b"3\n")

    return put


def _write_member(archive: zipfile.ZipFile, part: str, content: bytes | memoryview) -> None:
    """Write a member of the zip, whose content begins at a multiple of ``_ALIGNED``."""
    info = zipfile.ZipInfo(f"archive/{part}")
    info.file_size = len(content)
    long = info.file_size * 1.05 > zipfile.ZIP64_LIMIT  # the criterion of zipfile
    begins = archive.start_dir + _HEADER + len(info.filename) + _SIZES * long + len(_PADDING)
    padding = -begins % _ALIGNED
    info.extra = _PADDING[:2] + padding.to_bytes(2, "little") + b"Z" * padding
    with archive.open(info, "w") as member:
        member.write(content)


def _pickle(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The pickle of a dict of tensors, each with its own storage."""
    hooks = pickle.GLOBAL + b"collections\nOrderedDict\n" + pickle.EMPTY_TUPLE + pickle.REDUCE
    items = []
    for i, (name, array) in enumerate(arrays.items()):
        kind = array.dtype.name
        count, version, last = array.size, b"v2", b""
        if kind in _UNTYPED:
            count, version, last = array.nbytes, b"v3", pickle.GLOBAL + b"torch\n%s\n" % kind.encode()
        storage = (b"torch.storage\nUntypedStorage\n" if kind in _UNTYPED else b"torch\n%s\n" % _NAMES[kind].encode())
        items += [
            _simple_pickle(name), pickle.GLOBAL, b"torch._utils\n_rebuild_tensor_%s\n" % version, pickle.MARK,
            pickle.MARK, _simple_pickle("storage"), pickle.GLOBAL, storage, _simple_pickle(str(i)),
            _simple_pickle("cpu"), _simple_pickle(count), pickle.TUPLE, pickle.BINPERSID,
            _simple_pickle(0), _simple_pickle(array.shape), _simple_pickle(strides_of(array.shape)), pickle.NEWFALSE,
            hooks, last, pickle.TUPLE, pickle.REDUCE]
    return b"".join([pickle.PROTO, b"\2", pickle.EMPTY_DICT, pickle.MARK, *items, pickle.SETITEMS, pickle.STOP])


def _simple_pickle(value: str | int | tuple[int, ...]) -> bytes:
    """The pickled form of a text, an int or a tuple of ints, without header and end."""
    return pickle.dumps(value, 2)[2:-1]

"""Saving and loading arrays: MXNet's ``.params`` files, ``.npz`` and ``.safetensors``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from opreg.core.spec import as_dtype
from opreg.errors import ArgumentError, DTypeError, note

from . import formats, params_file, sparse_arrays
from .context import Context, cpu, present_context
from .ndarray import NDArray
from .records import Record

__all__ = ["save", "load", "load_frombuffer"]


def save(fname: str | os.PathLike, data: NDArray | Sequence[NDArray] | Mapping[str, NDArray]) -> None:
    """Save arrays to a file. If writing fails, the file is as it was before.

    Parameters
    ----------
    fname : str or path
        The file. ``.npz`` selects NumPy's format, ``.safetensors`` that of this name, and any other ending MXNet's.
    data : NDArray, list of them, or dict by name
        The arrays.

    Examples
    --------
    >>> import tempfile
    >>> from opreg.ndarray import array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/arrays", {"w": array([1.0, 2.0])})
    ...     print(load(f"{folder}/arrays")["w"].asnumpy())
    [1. 2.]
    """
    if isinstance(data, NDArray):
        data = [data]
    if isinstance(data, Mapping):
        names, arrays = [str(name) for name in data], list(data.values())
    elif isinstance(data, (list, tuple)):
        names, arrays = [], list(data)
    else:
        raise ArgumentError(f"save: expected an NDArray, a list or a dict of them, got {type(data).__name__}")
    for i, array in enumerate(arrays):
        if not isinstance(array, NDArray):
            raise ArgumentError(f"save: {names[i] if names else i}: expected an NDArray, got {type(array).__name__}")
    records = [sparse_arrays.record_of(array) for array in arrays]
    if os.fspath(fname).endswith((".npz", ".safetensors")):  # formats without sparse arrays
        records = [record._replace(array=record.dense(), sparse=None) for record in records]
    formats.save(os.fspath(fname), records, names)


def _arrays(records: Sequence[Record], names: Sequence[str]
            ) -> list[NDArray | None] | dict[str, NDArray | None]:
    arrays = [_array_of_record(record, names[i] if names else str(i)) for i, record in enumerate(records)]
    return dict(zip(names, arrays)) if names else arrays


def _array_of_record(record: Record, name: str) -> NDArray | None:
    if record.array is None:
        return None
    try:
        as_dtype(record.array.dtype)
    except DTypeError as error:
        note(error, f"loading the array {name!r}")
        raise
    kind, number = record.device
    # As in MXNet, arrays of a device that this machine lacks are loaded to the host.
    ctx = present_context(Context(kind, number)) if kind in ("cpu", "gpu") else cpu()
    if record.sparse is not None:
        return sparse_arrays.of_record(record, ctx)
    return NDArray(record.array if ctx.backend_name == "cpu" else ctx.backend.asarray(record.array, device=number), ctx)


def load(fname: str | os.PathLike) -> Any:
    """Read arrays from a file of any version of MXNet's format, from ``.npz`` or ``.safetensors``.

    Returns
    -------
    list or dict of NDArray
                A dict if the file holds names.

    Raises
    ------
    FileFormatError
        If the file is damaged. The error names the place.
    """
    return _arrays(*formats.load(os.fspath(fname)))


def load_frombuffer(buf: bytes) -> Any:
    """Read arrays from the content of a ``.params`` file."""
    return _arrays(*params_file.read(buf, "<buffer>"))

"""Helpers of training: splitting batches, clipping gradients, finding files."""

from __future__ import annotations

import hashlib
import itertools
import os
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import opreg.ndarray as nd
from opreg.base import data_dir
from opreg.errors import ArgumentError, OpError, ShapeError, warn
from opreg.ndarray import NDArray, array
from opreg.ndarray.context import Context
from opreg.ndarray.sparse_arrays import BaseSparseNDArray

from ..core.files import atomic_write, open_to_read
from ..core.named_errors import name_errors
from ..core.settings import number, whole_number
from ..train.test_data import find_data_file
from .structure import gluon_value

__all__ = ["split_data", "split_and_load", "clip_global_norm", "check_sha1", "download", "replace_file"]

#: Bytes of a file that are read at a time.
_BLOCK = 1 << 20


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Contiguous parts of a batch along an axis.

    Parameters
    ----------
    data : NDArray
        The batch.
    num_slice : int
        Number of parts.
    batch_axis : int
        The axis of samples.
    even_split : bool
        Whether all parts must have the same length; otherwise the first ones may have one sample more.

    Raises
    ------
    ShapeError
        When the batch cannot be divided like this.

    Examples
    --------
    >>> [part.shape for part in split_data(nd.zeros((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    size = data.shape[batch_axis]
    whole_number("split_data: num_slice", num_slice, 1)
    least, more = divmod(size, num_slice)
    if even_split and more:
        raise ShapeError(f"split_data: {size} samples along axis {batch_axis} of shape {data.shape} cannot be split "
                         f"into {num_slice} equal parts: give a batch whose size is a multiple of {num_slice}, or "
                         f"even_split=False")
    ends = np.cumsum([0] + [least + (number < more) for number in range(num_slice)]).tolist()
    if batch_axis == 0:
        return [data[start:end] for start, end in itertools.pairwise(ends)]
    return [nd.slice_axis(data, axis=batch_axis, begin=start, end=end) for start, end in itertools.pairwise(ends)]


def split_and_load(data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
                   ) -> list[NDArray]:
    """Parts of a batch, one on each context.

    Parameters
    ----------
    data : NDArray or array_like
        The batch.
    ctx_list : list of Context
        The contexts; each gets a part.
    batch_axis, even_split : int, bool
        See ``split_data``.

    Examples
    --------
    >>> import opreg as mx
    >>> [part.asnumpy().tolist() for part in split_and_load([1, 2, 3, 4], [mx.cpu(0), mx.cpu(1)])]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    batch = data if isinstance(data, NDArray) else gluon_value(array(data, ctx=ctx_list[0]))
    parts = [batch] if len(ctx_list) == 1 else split_data(batch, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(ctx) for part, ctx in zip(parts, ctx_list, strict=True)]


def clip_global_norm(arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool = True) -> NDArray | float:
    """Scale arrays in place so that their common 2-norm is at most ``max_norm``; returns the norm before.

    Parameters
    ----------
    arrays : list of NDArray
        The arrays, usually gradients.
    max_norm : float
        Greatest allowed norm.
    check_isfinite : bool
        Whether to warn of infinities and NaN, which waits for the result; without it the norm is an NDArray of shape
        (1,).

    Examples
    --------
    >>> gradient = nd.array([3, 4])
    >>> norm = clip_global_norm([gradient], 1.0)
    >>> float(norm), gradient.asnumpy().round(4)
    (5.0, array([0.6, 0.8], dtype=float32))
    """
    if not arrays:
        raise ArgumentError("clip_global_norm: expected one array or more")
    number("clip_global_norm: max_norm", max_norm, 0)
    ctx = arrays[0].context
    flat = [(each.data if isinstance(each, BaseSparseNDArray) else each).reshape((-1,)) for each in arrays]
    norm = nd.sqrt(nd.add_n(*[nd.dot(each, each).as_in_context(ctx) for each in flat]))
    if check_isfinite and not np.isfinite(norm.asscalar()):
        warn("clip_global_norm: an array has NaN or infinite elements, so the result is undefined")
    scale = nd.minimum(max_norm / (norm + 1e-8), 1.0)
    for each in arrays:
        if isinstance(each, BaseSparseNDArray):
            (each * float(scale.asscalar())).copyto(each)
        else:
            each *= scale.as_in_context(each.context)
    return norm.asscalar() if check_isfinite else norm


def check_sha1(filename: str | os.PathLike, sha1_hash: str) -> bool:
    """Whether a file has this SHA-1, given in hexadecimal digits.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "empty")
    ...     path.touch()
    ...     check_sha1(path, "da39a3ee5e6b4b0d3255bfef95601890afd80709")
    True
    """
    digest = hashlib.sha1(usedforsecurity=False)
    with open_to_read(filename) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest() == sha1_hash


def _get_repo_url() -> str:
    """The base address of MXNet's models and datasets, or the value of ``MXNET_GLUON_REPO``."""
    address = os.environ.get("MXNET_GLUON_REPO", "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/")
    return address if address.endswith("/") else address + "/"


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """The address of a file at the base address."""
    return f"{_get_repo_url()}{namespace}/{filename}"


def download(url: str, path: str | os.PathLike | None = None, overwrite: bool = False, sha1_hash: str | None = None,
             retries: int = 5, verify_ssl: bool = True) -> str:
    """The path of a file that already is on this machine; nothing is downloaded.

    Parameters
    ----------
    url : str
        An address; a local path or ``file://`` address is copied.
    path : str or None
        The file, or its folder. If it is not there, it is copied from the current folder, its ``data``, ``MXNET_HOME``,
        or the folder of a dataset in one of these.
    overwrite : bool
        Whether to look in the other folders even if it is there.
    sha1_hash : str or None
        The SHA-1 that the file must have; other files are skipped.
    retries, verify_ssl : int, bool
        Accepted without effect.

    Raises
    ------
    OpError
        When the file is missing; the message says where to put it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.bin").write_bytes(b"12")
    ...     download("https://example.org/a.bin", folder) == str(Path(folder, "a.bin"))
    True
    """
    split = urllib.parse.urlsplit(url)
    name = os.path.basename(split.path)
    target = Path(name if path is None else os.path.expanduser(path))
    if target.is_dir():
        target /= name
    if not name:
        raise ArgumentError(f"download: {url!r} does not name a file")

    def is_it(file: Path | None) -> bool:
        return file is not None and file.is_file() and (not sha1_hash or check_sha1(file, sha1_hash))

    if is_it(target) and not overwrite:
        return str(target)
    is_local = split.scheme in ("", "file")
    source = Path(urllib.request.url2pathname(split.path)) if is_local else find_data_file(target.name)
    if source is None or not is_it(source):
        difference = " of another SHA-1" if sha1_hash and target.is_file() else ""
        raise OpError(f"download: {url} is not downloaded: put the file {target.name!r} into "
                      f"{str(target.absolute().parent)!r} or {data_dir()!r}"
                      + (f"; the existing one is{difference}, expected {sha1_hash}" if difference else ""))
    if source.absolute() != target.absolute():
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_to_read(source) as file, atomic_write(target) as copy:
            while block := file.read(_BLOCK):
                copy.write(block)
    return str(target)


def replace_file(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> None:
    """Move a file to another name, in place of a file of that name, in one step.

    Raises
    ------
    OSError
        When the file cannot be moved; it is removed then.
    """
    try:
        os.replace(src, dst)
    except OSError:
        Path(src).unlink(missing_ok=True)
        raise


name_errors(__name__, globals(), __all__)

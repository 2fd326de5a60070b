"""Functions beside training: batches in parts, gradients of a bounded norm, files that are to be there."""

from __future__ import annotations

import hashlib
import itertools
import os
import urllib.parse
import urllib.request
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import opreg.ndarray as nd
from opreg.base import data_dir
from opreg.errors import ArgumentError, OpError, ShapeError
from opreg.ndarray import NDArray, array
from opreg.ndarray.context import Context
from opreg.ndarray.sparse_arrays import BaseSparseNDArray

from ..core.files import reading, whole
from ..train.test_data import nearby
from .structure import faced

__all__ = ["split_data", "split_and_load", "clip_global_norm", "check_sha1", "download"]

#: Bytes of a file that are read at a time.
_BLOCK = 1 << 20


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Parts of a batch along an axis, in their order.

    Parameters
    ----------
    data : NDArray
        The batch.
    num_slice : int
        Number of parts.
    batch_axis : int
        The axis of samples.
    even_split : bool
        Whether all parts must be as long as each other; else the first ones have one sample more where they differ.

    Raises
    ------
    ShapeError
        The batch cannot be divided so.

    Examples
    --------
    >>> [part.shape for part in split_data(nd.zeros((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    size = data.shape[batch_axis]
    least, more = divmod(size, num_slice)
    if even_split and more:
        raise ShapeError(f"split_data: {size} samples along axis {batch_axis} of shape {data.shape} make no "
                         f"{num_slice} equal parts: give a batch of a multiple of {num_slice}, or even_split=False")
    ends = np.cumsum([0] + [least + (number < more) for number in range(num_slice)]).tolist()
    if batch_axis == 0:
        return [data[start:end] for start, end in itertools.pairwise(ends)]
    return [nd.slice_axis(data, axis=batch_axis, begin=start, end=end) for start, end in itertools.pairwise(ends)]


def split_and_load(data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
                   ) -> list[NDArray]:
    """Parts of a batch, one in each context.

    Parameters
    ----------
    data : NDArray or array_like
        The batch.
    ctx_list : list of Context
        Where the parts go; as many as there are contexts.
    batch_axis, even_split : int, bool
        As of ``split_data``.

    Examples
    --------
    >>> import opreg as mx
    >>> [part.asnumpy().tolist() for part in split_and_load([1, 2, 3, 4], [mx.cpu(0), mx.cpu(1)])]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    batch = data if isinstance(data, NDArray) else faced(array(data, ctx=ctx_list[0]))
    parts = [batch] if len(ctx_list) == 1 else split_data(batch, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(ctx) for part, ctx in zip(parts, ctx_list, strict=True)]


def clip_global_norm(arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool = True) -> NDArray | float:
    """Scale arrays down in place, so that the 2-norm of all together is ``max_norm`` at most; returns what it was.

    Parameters
    ----------
    arrays : list of NDArray
        As a rule gradients.
    max_norm : float
        The norm they may have.
    check_isfinite : bool
        Whether to warn of infinities and NaN, which waits for the number; without it the norm is an NDArray of shape
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
    ctx = arrays[0].context
    flat = [(each.data if isinstance(each, BaseSparseNDArray) else each).reshape((-1,)) for each in arrays]
    norm = nd.sqrt(nd.add_n(*[nd.dot(each, each).as_in_context(ctx) for each in flat]))
    if check_isfinite and not np.isfinite(norm.asscalar()):
        warnings.warn("clip_global_norm: there are NaN or infinities, the result is undefined", stacklevel=2)
    scale = nd.minimum(max_norm / (norm + 1e-8), 1.0)
    for each in arrays:
        if isinstance(each, BaseSparseNDArray):
            (each * float(scale.asscalar())).copyto(each)
        else:
            each *= scale.as_in_context(each.context)
    return norm.asscalar() if check_isfinite else norm


def check_sha1(filename: str | os.PathLike, sha1_hash: str) -> bool:
    """Whether a file has this SHA-1, in hexadecimal digits.

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
    with reading(filename) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest() == sha1_hash


def _get_repo_url() -> str:
    """The address that MXNet's models and datasets were kept at, or what ``MXNET_GLUON_REPO`` says."""
    address = os.environ.get("MXNET_GLUON_REPO", "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/")
    return address if address.endswith("/") else address + "/"


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """The address of a file there."""
    return f"{_get_repo_url()}{namespace}/{filename}"


def download(url: str, path: str | os.PathLike | None = None, overwrite: bool = False, sha1_hash: str | None = None,
             retries: int = 5, verify_ssl: bool = True) -> str:
    """The path of a file that is on this machine already; nothing is fetched.

    Parameters
    ----------
    url : str
        An address, or a ``file://`` or path of this machine, which is copied.
    path : str or None
        The file, or the folder where it is. It is looked for there, and then, and copied, in the current folder, its
        ``data``, ``MXNET_HOME`` and the folders of data sets in there.
    overwrite : bool
        Whether to look elsewhere, too, where it is there.
    sha1_hash : str or None
        What its SHA-1 must be; a file with another is passed over.
    retries, verify_ssl : int, bool
        Of MXNet's connection, count for nothing.

    Raises
    ------
    OpError
        It is nowhere; the message says what to put where.

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
        raise ArgumentError(f"download: {url!r} names no file")

    def is_it(file: Path | None) -> bool:
        return file is not None and file.is_file() and (not sha1_hash or check_sha1(file, sha1_hash))

    if is_it(target) and not overwrite:
        return str(target)
    source = Path(urllib.request.url2pathname(split.path)) if split.scheme in ("", "file") else nearby(target.name)
    if source is None or not is_it(source):
        other = " of another SHA-1" if sha1_hash and target.is_file() else ""
        raise OpError(f"download: nothing is fetched from {url}: put the file {target.name!r} into "
                      f"{str(target.absolute().parent)!r} or {data_dir()!r}"
                      + (f"; the one that is there is{other}, expected {sha1_hash}" if other else ""))
    if source.absolute() != target.absolute():
        target.parent.mkdir(parents=True, exist_ok=True)
        with reading(source) as file, whole(target) as copy:
            while block := file.read(_BLOCK):
                copy.write(block)
    return str(target)

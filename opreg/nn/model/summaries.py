"""Summaries: scalars, images and histograms of a training in files for TensorBoard."""

from __future__ import annotations

import io
import os
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from opreg.data import codec
from opreg.data.tfrecord import record_of

from ...aliases import inner
from ...core.protobuf import field, varint
from ...core.settings import Checked, flag, whole_number
from ...errors import ArgumentError, ShapeError, did_you_mean
from .callback import Callback, RunContext, loss_of

__all__ = ["SummaryCollector", "SummaryRecord"]

if not TYPE_CHECKING:  # a module in a package of MindSpore
    __getattr__ = inner(__name__)

# ----------------------------------------------------------------------------------------- kinds of values


def _scalar(name: str, value: np.ndarray) -> bytes:
    if value.size != 1:
        raise ShapeError(f"SummaryRecord: the scalar {name!r} must be one number, got the shape {value.shape}")
    return varint(2 << 3 | 5) + struct.pack("<f", float(value.reshape(())))


def _image(name: str, value: np.ndarray) -> bytes:
    """The first image of a batch, with its values scaled to the range of bytes."""
    if value.ndim != 4 or value.shape[1] not in (1, 3):
        raise ShapeError(f"SummaryRecord: the image {name!r} must be (batch, 1 or 3 channels, height, width), got the "
                         f"shape {value.shape}")
    pixels = value[0].transpose(1, 2, 0)
    if pixels.dtype != np.uint8:
        low, high = float(pixels.min()), float(pixels.max())
        pixels = ((pixels - low) * (255 / ((high - low) or 1))).astype(np.uint8)
    height, width, channels = pixels.shape
    encoded = codec.encode(pixels, ".png", 3)
    return field(4, field(1, height) + field(2, width) + field(3, channels) + field(4, encoded))


def _histogram(name: str, value: np.ndarray) -> bytes:
    numbers = value[np.isfinite(value)].astype(np.float64)
    counts, ends = np.histogram(numbers, min(max(numbers.size, 1), 90))
    facts = (ends[0], ends[-1], numbers.size, numbers.sum(), (numbers ** 2).sum())
    return field(5, b"".join(field(place, float(fact)) for place, fact in enumerate(facts, 1))
                 + field(6, ends[1:].astype("<f8").tobytes()) + field(7, counts.astype("<f8").tobytes()))


#: Numbers of dtypes in TensorFlow's tensors.
_DTYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10,
           "uint16": 17, "float16": 19, "uint32": 22, "uint64": 23}


def _tensor(name: str, value: np.ndarray) -> bytes:
    if value.dtype.name not in _DTYPES:
        value = value.astype(np.float32)
    shape = b"".join(field(2, field(1, length)) for length in value.shape)
    return field(8, field(1, _DTYPES[value.dtype.name]) + field(2, shape) + field(4, value.tobytes()))


_KINDS: dict[str, Callable[[str, np.ndarray], bytes]] = {
    "scalar": _scalar, "image": _image, "histogram": _histogram, "tensor": _tensor}


# ------------------------------------------------------------------------------------------------ the files


class SummaryRecord(Checked):
    """Values of a training, written step by step into a file for TensorBoard.

    Parameters
    ----------
    log_dir : str
        The folder, which is created if it is missing.
    file_prefix, file_suffix : str
        Prefix and suffix of the file's name.
    num_process, network, max_file_size, raise_exception, export_options
        Accepted without effect.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SummaryRecord(folder) as record:
    ...         record.add_value("scalar", "loss", 0.5)
    ...         record.record(1)
    ...     len(os.listdir(folder))
    True
    1
    """

    def __init__(self, log_dir: str | os.PathLike, file_prefix: str = "events", file_suffix: str = "_MS",
                 num_process: int = 32, network: object = None, max_file_size: int | None = None,
                 raise_exception: bool = False, export_options: object = None):
        folder = Path(log_dir)
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        name = f"{file_prefix}.out.tfevents.{now:.0f}.{os.getpid()}.{socket.gethostname()}{file_suffix}"
        self._log_dir = str(folder.resolve())
        self._file: io.BufferedWriter = (folder / name).open("wb")
        self._values: list[tuple[str, bytes]] = []
        self._write(field(1, now) + field(3, "brain.Event:2"))

    @property
    def log_dir(self) -> str:
        """The folder of the file."""
        return self._log_dir

    def _write(self, message: bytes) -> None:
        self._file.write(record_of(message))

    def set_mode(self, mode: str) -> None:
        """Accept ``"train"`` or ``"eval"``, without effect on the file."""
        if mode not in ("train", "eval"):
            raise ArgumentError(f"SummaryRecord: mode must be 'train' or 'eval', got {mode!r}")

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Store a value for the next ``record``.

        Parameters
        ----------
        plugin : {"scalar", "image", "histogram", "tensor"}
            The kind of value. An image is the first of a batch (batch, 1 or 3 channels, height, width).
        name : str
            The tag of the value.
        value : Tensor, array or number
            The value, which is copied.

        Raises
        ------
        ArgumentError
            For an unknown kind, or an invalid name.
        ShapeError
            For a scalar with several elements, or an image with the wrong shape.
        """
        if plugin not in _KINDS:
            raise ArgumentError(f"SummaryRecord: there is no plugin {plugin!r}. {did_you_mean(plugin, _KINDS)}")
        if not name or type(name) is not str:
            raise ArgumentError(f"SummaryRecord: a value needs a name, got {name!r}")
        numbers = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
        self._values.append((plugin, field(1, name) + _KINDS[plugin](name, numbers)))

    def record(self, step: int, train_network: object = None,
               plugin_filter: Callable[[str], bool] | None = None) -> bool:
        """Write the values added since the last call.

        Parameters
        ----------
        step : int
            Number of the step.
        plugin_filter : callable, optional
            A function of a kind of values that tells whether it is written.

        Returns
        -------
        bool
            Whether the file is open.
        """
        values, self._values = self._values, []
        if self._file.closed:
            return False
        fields = [field(1, value) for plugin, value in values if plugin_filter is None or plugin_filter(plugin)]
        if fields:
            self._write(field(1, time.time()) + field(2, int(step)) + field(5, b"".join(fields)))
        return True

    def flush(self) -> None:
        """Flush the file to disk."""
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Close the file, if it is open."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class SummaryCollector(Callback):
    """Writes the loss of a training into a file for TensorBoard, as ``loss/auto``.

    Parameters
    ----------
    summary_dir : str
        The folder of the file.
    collect_freq : int
        Number of steps between two values.
    keep_default_action : bool
        Whether the loss is written by default.
    collect_specified_data : dict, optional
        Its entry ``collect_metric`` tells whether the loss is written; others have no effect.
    num_process, custom_lineage_data, collect_tensor_freq, max_file_size, export_options
        Accepted without effect.
    """

    def __init__(self, summary_dir: str | os.PathLike, collect_freq: int = 10, num_process: int = 32,
                 collect_specified_data: dict[str, Any] | None = None, keep_default_action: bool = True,
                 custom_lineage_data: object = None, collect_tensor_freq: int | None = None,
                 max_file_size: int | None = None, export_options: object = None):
        self._every = whole_number("SummaryCollector: collect_freq", collect_freq, 1)
        metric = (collect_specified_data or {}).get("collect_metric")
        keeps_default = flag("SummaryCollector: keep_default_action", keep_default_action)
        self._wanted = keeps_default if metric is None else metric
        self._folder = summary_dir
        self._record: SummaryRecord | None = None

    def __enter__(self) -> Self:
        self._record = SummaryRecord(self._folder)
        return self

    def __exit__(self, *error: object) -> None:
        if self._record is not None:
            self._record.close()

    def step_end(self, run_context: RunContext) -> None:
        """Write the loss if it is time."""
        params = run_context.original_args()
        step = params["cur_step_num"]
        if self._wanted and self._record is not None and step % self._every == 0:
            loss = loss_of(params["net_outputs"])
            self._record.add_value("scalar", "loss/auto", loss)
            self._record.record(step)

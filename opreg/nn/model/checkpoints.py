"""Checkpoints during training: times, names, and the number of files kept."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...cells.cell import Cell
from ...core.settings import Checked, flag, whole_number
from ...errors import ArgumentError
from ..checkpoint import save_checkpoint
from .callback import Callback, RunContext

__all__ = ["CheckpointConfig", "ModelCheckpoint"]


class CheckpointConfig(Checked):
    """Settings of checkpoints: when they are written, and how many are kept.

    Parameters
    ----------
    save_checkpoint_steps : int, optional
        Number of steps between two checkpoints.
    save_checkpoint_seconds : int, optional
        Seconds between two checkpoints, if no steps are given.
    keep_checkpoint_max : int, optional
        Number of newest checkpoints that are kept.
    keep_checkpoint_per_n_minutes : int, optional
        If no maximum is given, one checkpoint for each such interval is kept, besides the newest.
    saved_network : Cell, optional
        The network to save; by default that of the training, with its optimizer.
    append_info : list, optional
        ``"epoch_num"``, ``"step_num"``, and a dict of numbers and Tensors to save, too.
    exception_save : bool
        Whether a failing training writes a checkpoint, whose name ends in ``_breakpoint``.
    format : {"ckpt", "safetensors"}
        Format of the files.
    integrated_save, async_save, enc_key, enc_mode, crc_check
        See ``save_checkpoint``.

    Examples
    --------
    >>> config = CheckpointConfig(save_checkpoint_steps=100, keep_checkpoint_max=2)
    >>> config.get_checkpoint_policy()["keep_checkpoint_max"]
    2
    """

    def __init__(self, save_checkpoint_steps: int | None = 1, save_checkpoint_seconds: int | None = 0,
                 keep_checkpoint_max: int | None = 5, keep_checkpoint_per_n_minutes: int | None = 0,
                 integrated_save: bool = True, async_save: bool = False, saved_network: Cell | None = None,
                 append_info: Sequence[object] | None = None, enc_key: object = None, enc_mode: str = "AES-GCM",
                 exception_save: bool = False, crc_check: bool = False, *, format: str = "ckpt"):
        numbers = {"save_checkpoint_steps": save_checkpoint_steps, "save_checkpoint_seconds": save_checkpoint_seconds,
                   "keep_checkpoint_max": keep_checkpoint_max,
                   "keep_checkpoint_per_n_minutes": keep_checkpoint_per_n_minutes}
        for name, value in numbers.items():
            if value is not None:
                whole_number(f"CheckpointConfig: {name}", value)
        if not any(numbers.values()):
            raise ArgumentError(f"CheckpointConfig: one of {', '.join(numbers)} must be above 0")
        if saved_network is not None and not isinstance(saved_network, Cell):
            raise ArgumentError(f"CheckpointConfig: saved_network must be a Cell, got {type(saved_network).__name__}")
        if format not in ("ckpt", "safetensors"):
            raise ArgumentError(f"CheckpointConfig: format must be 'ckpt' or 'safetensors', got {format!r}")
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = None if save_checkpoint_steps else save_checkpoint_seconds
        self.keep_checkpoint_max = keep_checkpoint_max or (None if keep_checkpoint_per_n_minutes else 1)
        self.keep_checkpoint_per_n_minutes = None if keep_checkpoint_max else keep_checkpoint_per_n_minutes
        self.integrated_save, self.async_save = integrated_save, async_save
        self.saved_network, self.append_dict = saved_network, _append_info(append_info)
        self.enc_key, self.enc_mode, self.crc_check, self.format = enc_key, enc_mode, crc_check, format
        self.exception_save = flag("CheckpointConfig: exception_save", exception_save)

    def get_checkpoint_policy(self) -> dict[str, Any]:
        """The settings of times and number of files, as a dict."""
        return {name: getattr(self, name) for name in (
            "save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max",
            "keep_checkpoint_per_n_minutes", "saved_network")}


def _append_info(info: Sequence[object] | None) -> dict[str, Any] | None:
    if not info:
        return None
    if not isinstance(info, list):
        raise ArgumentError(f"CheckpointConfig: append_info must be a list, got {type(info).__name__}")
    result: dict[str, Any] = {}
    for entry in info:
        if isinstance(entry, Mapping):
            result.update(entry)
        elif entry in ("epoch_num", "step_num"):
            result.setdefault(str(entry), 0)
        else:
            raise ArgumentError(f"CheckpointConfig: append_info: expected 'epoch_num', 'step_num' or a dict, got "
                                f"{entry!r}")
    return result


#: A name, or a function of the callbacks' state.
Name = str | Callable[[Any], str]


class ModelCheckpoint(Callback):
    """Writes checkpoints of a training, each completely or not at all: ``CKP-2_30.ckpt`` after step 30 of epoch 2.

    If files of that name exist already, another prefix is used: ``CKP_1-2_30.ckpt``.

    Parameters
    ----------
    prefix : str or callable
        Prefix of the names; or a function of the callbacks' state that returns the whole name.
    directory : str or callable, optional
        The folder, which is created, or a function of the callbacks' state; the current one by default.
    config : CheckpointConfig, optional
        When to write: by default after each step, and the last five are kept.

    Examples
    --------
    >>> import os, tempfile
    >>> import opreg as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params()))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = ms.ModelCheckpoint("net", folder, ms.CheckpointConfig(keep_checkpoint_max=2))
    ...     model.train(2, [([[0.0, 1.0]], [[2.0]])] * 2, callbacks=kept)
    ...     sorted(os.listdir(folder)), os.path.basename(kept.latest_ckpt_file_name)
    (['net-2_1.ckpt', 'net-2_2.ckpt'], 'net-2_2.ckpt')
    """

    def __init__(self, prefix: Name = "CKP", directory: Name | None = None, config: CheckpointConfig | None = None):
        if config is not None and not isinstance(config, CheckpointConfig):
            raise ArgumentError(f"ModelCheckpoint: config must be a CheckpointConfig, got {type(config).__name__}")
        self._config = CheckpointConfig() if config is None else config
        self._prefix, self._directory = prefix, os.getcwd() if directory is None else directory
        self._extra = dict(self._config.append_dict or {})
        self._saved_at, self._kept_at = time.monotonic(), -float("inf")
        self._step = 0
        self._files: list[str] = []
        self._params: Any = None
        self.latest_ckpt_file_name = ""
        if not callable(prefix):
            _base(prefix)
            if not callable(self._directory):
                os.makedirs(self._directory, exist_ok=True)
                self._prefix = _unused_prefix(self._directory, prefix)

    def begin(self, run_context: RunContext) -> None:
        """Reset the count of steps."""
        self._step = 0

    def step_end(self, run_context: RunContext) -> None:
        """Save if it is time."""
        self._params = params = run_context.original_args()
        every, seconds = self._config.save_checkpoint_steps, self._config.save_checkpoint_seconds
        if params["cur_step_num"] < self._step:  # another training has started
            self._step = 0
        if every:
            due = params["cur_step_num"] >= self._step + every
        else:
            due = bool(seconds) and time.monotonic() - self._saved_at > (seconds or 0)
        if due:
            self._save(params)

    def end(self, run_context: RunContext) -> None:
        """Save the final state, if checkpoints are written."""
        params = run_context.original_args()
        if self._config.save_checkpoint_steps or self._config.save_checkpoint_seconds:
            self._save(params)

    def __exit__(self, *err: object) -> None:
        if err[0] is not None and self._config.exception_save and self._params is not None:
            self._write(self._params, "_breakpoint")
        self._params = None

    def _save(self, params: Any) -> None:
        if params["cur_step_num"] == self._step:
            return
        self._step, self._saved_at = params["cur_step_num"], time.monotonic()
        path = self._write(params)
        if path in self._files:
            self._files.remove(path)
        self._drop()
        self._files.append(path)
        self.latest_ckpt_file_name = path
        params["last_save_ckpt_step"], params["latest_ckpt_file"] = self._step, path

    def _write(self, params: Any, ending: str = "") -> str:
        config = self._config
        prefix = self._prefix(params) if callable(self._prefix) else self._prefix
        directory = self._directory(params) if callable(self._directory) else self._directory
        os.makedirs(directory, exist_ok=True)
        step = (params["cur_step_num"] - 1) % params["batch_num"] + 1
        name = "" if callable(self._prefix) else f"-{params['cur_epoch_num']}_{step}"
        path = os.path.join(directory, f"{_base(prefix)}{name}{ending}.{config.format}")
        before = config.append_dict or {}
        for what, done in (("epoch_num", "cur_epoch_num"), ("step_num", "cur_step_num")):
            if what in before:
                self._extra[what] = before[what] + params[done]
        network = params["train_network"] if config.saved_network is None else config.saved_network
        save_checkpoint(network, path, config.integrated_save, config.async_save, self._extra, config.enc_key,
                        config.enc_mode, crc_check=config.crc_check, format=config.format)
        return path

    def _drop(self) -> None:
        """Remove surplus files after a checkpoint was written."""
        most, minutes = self._config.keep_checkpoint_max, self._config.keep_checkpoint_per_n_minutes
        while most and len(self._files) >= most:
            self._remove(self._files.pop(0))
        if minutes and self._files:
            if self._saved_at - self._kept_at < 60 * minutes:
                self._remove(self._files.pop())
            else:
                self._kept_at = self._saved_at

    @staticmethod
    def _remove(path: str) -> None:
        with contextlib.suppress(OSError):  # it was moved by another program
            os.remove(path)


def _base(prefix: object) -> str:
    if not isinstance(prefix, str) or "/" in prefix:
        raise ArgumentError(f"ModelCheckpoint: prefix must be text without '/', or a function that returns it, got "
                            f"{prefix!r}")
    return prefix


def _unused_prefix(directory: str, prefix: str) -> str:
    """The prefix, with a number appended if there are checkpoints of that name."""
    existing = {name.rpartition("-")[0] for name in os.listdir(directory)
                if name.endswith((".ckpt", ".safetensors")) and not name.endswith("_breakpoint.ckpt")}
    number = 0
    while (f"{prefix}_{number}" if number else prefix) in existing:
        number += 1
    return f"{prefix}_{number}" if number else prefix

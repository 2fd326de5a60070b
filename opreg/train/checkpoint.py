"""Checkpoints: a symbol and its weights in two files, ``prefix-symbol.json`` and ``prefix-0001.params``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from opreg.ndarray.io import load, save
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.json import load as load_symbol
from opreg.symbol.symbol import Symbol

from ..core.files import atomic_writes
from ..core.named_errors import name_errors
from ..core.settings import whole_number
from ..errors import FileFormatError

if TYPE_CHECKING:
    from .metric import EvalMetric

__all__ = ["BatchEndParam", "save_checkpoint", "load_params", "load_checkpoint"]


class BatchEndParam(NamedTuple):
    """The argument of a callback at the end of a batch."""

    epoch: int
    nbatch: int
    eval_metric: EvalMetric | None
    locals: dict[str, Any]


def save_checkpoint(prefix: str, epoch: int, symbol: Symbol | None, arg_params: Mapping[str, NDArray],
                    aux_params: Mapping[str, NDArray], remove_amp_cast: bool = True) -> None:
    """Write weights, and a symbol if there is one: both files, or neither.

    Parameters
    ----------
    prefix : str
        Prefix of the paths.
    epoch : int
        Number of the checkpoint, written with four digits in the file's name.
    symbol : Symbol or None
        The network.
    arg_params, aux_params : dict of str to NDArray
        Its weights and auxiliary states.
    remove_amp_cast : bool
        Whether to remove ``amp_cast`` and ``amp_multicast`` from the symbol.

    Examples
    --------
    >>> import tempfile
    >>> from opreg import nd, sym
    >>> net = sym.FullyConnected(sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_checkpoint(f"{folder}/net", 3, net, {"fc_weight": nd.ones((2, 4))}, {})
    ...     loaded, arg_params, aux_params = load_checkpoint(f"{folder}/net", 3)
    >>> loaded.list_arguments(), arg_params["fc_weight"].shape
    (['data', 'fc_weight'], (2, 4))
    """
    whole_number("save_checkpoint: epoch", epoch)
    with atomic_writes():
        write(prefix, epoch, symbol, arg_params, aux_params, remove_amp_cast)
    tell_saved("checkpoint", f"{prefix}-{epoch:04d}.params")


def write(prefix: str, epoch: int, symbol: Symbol | None, arg_params: Mapping[str, NDArray],
          aux_params: Mapping[str, NDArray], remove_amp_cast: bool) -> None:
    """Write the files of ``save_checkpoint``."""
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast)
    save(f"{prefix}-{epoch:04d}.params", prefix_names(arg_params, aux_params))


def tell_saved(what: str, path: str) -> None:
    """Log the path of a saved file."""
    logging.info('Saved %s to "%s"', what, path)


def prefix_names(arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Weights and auxiliary states in one dict, with the prefixes of a file."""
    return {**{f"arg:{name}": value for name, value in arg_params.items()},
            **{f"aux:{name}": value for name, value in aux_params.items()}}


def split(fname: str, loaded: object) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Weights and auxiliary states from the content of a file.

    Raises
    ------
    FileFormatError
        When arrays have no names, or names without a valid prefix.
    """
    params: dict[str, dict[str, NDArray]] = {"arg": {}, "aux": {}}
    if not isinstance(loaded, dict):
        if not loaded:
            return params["arg"], params["aux"]
        raise FileFormatError(f"{fname}: the arrays have no names, so they are no checkpoint")
    for key, value in loaded.items():
        kind, _, name = key.partition(":")
        if kind not in params or not name:
            raise FileFormatError(f"{fname}: expected names that begin with arg: or aux:, got {key!r}")
        params[kind][name] = value
    return params["arg"], params["aux"]


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Weights and auxiliary states of a checkpoint."""
    name = f"{prefix}-{epoch:04d}.params"
    return split(name, load(name))


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Symbol, weights and auxiliary states of a checkpoint."""
    return load_symbol(f"{prefix}-symbol.json"), *load_params(prefix, epoch)


name_errors(__name__, globals(), __all__)

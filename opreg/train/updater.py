"""The updater: an optimizer together with the states of its weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.sharding import map_arrays

from ..builtin.optimizers.updating import Row, WeightGroup
from ..core.files import open_to_read
from ..core.named_errors import name_errors
from ..core.settings import CheckedMethods
from ..errors import ArgumentError, DTypeError, OpError, ShapeError, note
from . import states as files
from .base_optimizer import UPDATER, Index, Optimizer, State, Update, rows
from .pickled_states import write_pickle

if TYPE_CHECKING:
    from opreg.symbol.sharding import Sharding

__all__ = ["Updater", "get_updater"]


class Updater(CheckedMethods):
    """Applies an optimizer to weights by index, and holds their states.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer.

    Examples
    --------
    >>> import opreg as mx
    >>> updater = get_updater(mx.optimizer.create("sgd", learning_rate=0.5))
    >>> weight = mx.nd.array([1, 2])
    >>> updater(0, mx.nd.array([1, 1]), weight); weight.asnumpy().tolist()
    [0.5, 1.5]
    """

    _plain_methods = "one_by_one", "count_updates"

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.states: dict[Index, Any] = {}
        self.states_synced: dict[Index, bool] = {}
        self._unused: set[Index] = set()  # indices of states from a file that no weight has used so far
        self.aggregate_updates = False
        #: The division of states among ranks, if an executor divides them.
        self.sharding: Sharding | None = None

    def __call__(self, index: Index | Sequence[Index], grad: NDArray | Sequence[NDArray],
                 weight: NDArray | Sequence[NDArray]) -> None:
        """Update one weight, or the weights of a list.

        Raises
        ------
        ShapeError, DTypeError, ArgumentError
            When a gradient or a state that was read does not fit its weight.
        """
        self.optimizer.update_all(self._updates_with_states(index, grad, weight))

    def _updates_with_states(self, index: Index | Sequence[Index], grad: NDArray | Sequence[NDArray],
                             weight: NDArray | Sequence[NDArray]) -> list[Update]:
        """Updates with their states; missing states are created."""
        updates = []
        for i, g, w in rows(index, grad, weight):
            if i not in self.states and not self._found_as(i):
                if not w.writable:
                    w.check_writable(f"{type(self.optimizer).__name__}, {self.optimizer._label(i)}")
                self.states[i] = self.optimizer.create_state_multi_precision(i, w)
                self.states_synced[i] = True
            elif not self.states_synced.get(i, True):
                if self.sharding is not None:
                    self.states[i] = self.sharding.part(i, self.states[i])
                self.states[i] = self.sync_state_context(self._check_state(i, w), w.context)
                self.states_synced[i] = True
                self._unused.discard(i)
            updates.append((i, w, g, self.states[i]))
        return updates

    def _found_as(self, index: Index) -> bool:
        """Move a weight's state and counts to its index, if a file has them by its name or number.

        Modules number their weights, stores name them.
        """
        if not self._unused:
            return False
        names = self.optimizer.idx2name
        name = names.get(index, index)
        others = (name, *(number for number, each in names.items() if each == name))
        other = next((each for each in others if each in self._unused), None)
        if other is None:
            return False
        self._unused.remove(other)
        for held in (self.states, self.states_synced, *self.optimizer._all_index_update_counts.values()):
            if other in held:
                held[index] = held.pop(other)
        return True

    # --------------------------------------------------------------- as executors have it, see opreg.symbol.update

    def indices(self, names: Sequence[str]) -> dict[str, Index]:
        """Keys of weights in the optimizer: their numbers in its ``param_idx2name``, or their names."""
        numbers = {name: i for i, name in self.optimizer.idx2name.items()}
        return {name: numbers.get(name, name) for name in names}

    def one_by_one(self) -> str | None:
        """The reason why weights are updated one by one; None if one call of an operator updates many."""
        if type(self).__call__ is not Updater.__call__:
            return f"{type(self).__name__} defines its own updates"
        return self.optimizer.one_by_one()

    def undivided_reason(self) -> str | None:
        """The reason why a part of a weight cannot be updated separately; None if all elements are independent."""
        return self.optimizer.undivided_reason()

    def rows(self, index: Sequence[Index], grad: Sequence[NDArray], weight: Sequence[NDArray]) -> list[Row]:
        """Weights in the form of ``count_updates``.

        Raises
        ------
        ShapeError, DTypeError, ArgumentError
            When a gradient or a state that was read does not fit its weight.
        """
        return self.optimizer.rows_of(self._updates_with_states(index, grad, weight))

    def count_updates(self, rows: Sequence[Row]) -> list[WeightGroup]:
        """Count an update of each weight; returns the weights that can be updated together, with their attributes."""
        return self.optimizer.count_updates(rows)

    def _check_state(self, index: Index, weight: NDArray) -> State:
        """A state from a file, after a check that it fits this weight and optimizer."""
        fresh = self.optimizer.create_state_multi_precision(index, weight)
        return _fit(self.optimizer._label(index), self.states[index], fresh, weight)

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """A state, moved to a device."""
        return map_arrays(state, lambda array: array.as_in_context(context))

    def get_states(self, dump_optimizer: bool = False, format: str = "npz") -> bytes:
        """All states as bytes, with the update counts.

        The bytes are a ``.npz`` file of numbers and names, never code, or a pickle for MXNet, which has the counts
        only with the optimizer. States that are divided among ranks are gathered, for which all ranks have to call
        this.

        Parameters
        ----------
        dump_optimizer : bool
            Whether the optimizer's own settings are included.
        format : {"npz", "mxnet"}
            The format. ``set_states`` reads both.

        Raises
        ------
        ArgumentError
            For another format, or for an optimizer that MXNet does not have.

        Examples
        --------
        >>> import opreg as mx
        >>> updater = get_updater(mx.optimizer.create("adam"))
        >>> updater(0, mx.nd.array([1, 1]), mx.nd.array([1, 2]))
        >>> states = updater.get_states(dump_optimizer=True, format="mxnet")
        >>> updater.set_states(states); updater.optimizer.num_update
        1
        """
        if format not in ("npz", "mxnet"):
            raise ArgumentError(f"optimizer states: format must be 'npz' or 'mxnet', got {format!r}")
        optimizer = self.optimizer
        states = self.states
        if self.sharding is not None:
            synced = {i: state for i, state in states.items() if self.states_synced.get(i, True)}
            states = {**states, **self.sharding.gather_states(synced)}
        if format == "mxnet":
            return write_pickle(states, optimizer if dump_optimizer else None)
        more = (type(optimizer).__name__.lower(), optimizer.settings()) if dump_optimizer else ()
        return files.dumps(files.SavedStates(states, optimizer._all_index_update_counts, optimizer.num_update, *more))

    def set_states(self, states: bytes) -> None:
        """Restore the result of ``get_states``, of opreg or of MXNet, completely or not at all.

        MXNet's pickles are read without running code from them.

        Raises
        ------
        FileFormatError
            When the bytes are not such states, or hold settings that the optimizer does not have.
        ArgumentError
            When they are those of another kind of optimizer.
        """
        optimizer = self.optimizer
        saved = files.loads(states, optimizer.settings())
        class_name = type(optimizer).__name__.lower()
        if saved.optimizer not in (None, class_name):
            raise ArgumentError(f"the states belong to optimizer {saved.optimizer!r}, this one is {class_name!r}")
        optimizer.check_settings(saved.settings)
        vars(optimizer).update(saved.settings)
        if saved.schedule is not None:
            optimizer.lr_scheduler = saved.schedule
        self.states, self.states_synced = saved.states, dict.fromkeys(saved.states, False)
        self._unused = set(saved.states)
        optimizer._all_index_update_counts = saved.counts or {0: {}}
        optimizer._set_current_context(0)
        optimizer.num_update = saved.num_update

    def read_states(self, fname: str | os.PathLike[str]) -> None:
        """Restore the states in a file, see ``set_states``; an error about them names the file."""
        with open_to_read(fname) as file:
            states = file.read()
        try:
            self.set_states(states)
        except OpError as error:
            note(error, f"reading {os.fspath(fname)}")
            raise


def _fit(label: str, saved: State, fresh: State, weight: NDArray) -> State:
    """The saved state if it has the form of a new one; the new one if nothing was saved."""
    if saved is None:
        return fresh
    if isinstance(saved, NDArray) and (fresh is None or isinstance(fresh, NDArray)):
        like = weight if fresh is None else fresh  # a momentum whose factor is zero now does no harm
        if saved.shape != like.shape:
            raise ShapeError(f"{label} of shape {weight.shape}: the loaded state has shape {saved.shape}, "
                             f"expected {like.shape}")
        if saved.dtype != like.dtype:
            raise DTypeError(f"{label} of dtype {np.dtype(weight.dtype)}: the loaded state has dtype "
                             f"{np.dtype(saved.dtype)}, expected {np.dtype(like.dtype)}")
        return saved
    if isinstance(saved, tuple) and isinstance(fresh, (tuple, list)) and len(saved) == len(fresh):
        return type(fresh)([_fit(label, old, new, weight) for old, new in zip(saved, fresh)])
    if isinstance(saved, (int, float, str)) and isinstance(fresh, (int, float, str)):
        return saved
    raise ArgumentError(f"{label}: the loaded state is {_kind(saved)}, this optimizer has {_kind(fresh)}")


def _kind(state: State) -> str:
    if isinstance(state, (tuple, list)):
        return f"{len(state)} values"
    return "an array" if isinstance(state, NDArray) else "nothing" if state is None else repr(state)


@UPDATER.provide
def get_updater(optimizer: Optimizer) -> Updater:
    """A function of index, gradient and weight that updates the weight and stores its state.

    Examples
    --------
    >>> from opreg import nd, optimizer
    >>> weight, update = nd.array([1.0]), get_updater(optimizer.SGD(learning_rate=0.5))
    >>> update(0, nd.array([1.0]), weight)
    >>> weight.asnumpy()
    array([0.5], dtype=float32)
    """
    return Updater(optimizer)


name_errors(__name__, globals(), __all__)

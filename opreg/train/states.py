"""States of optimizers as bytes: a ``.npz`` file of numbers and names, never code, accepted completely or not at all.

States that MXNet pickled are read, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from opreg.ndarray.ndarray import NDArray, array
from opreg.ndarray.npz_file import npz, read_npz
from opreg.ndarray.records import Record

from ..core.json_text import json_of
from ..core.spec import as_dtype
from ..errors import ArgumentError, DTypeError, FileFormatError
from .lr_scheduler import LRScheduler
from .pickled_states import OTHER, PickleContent, read_pickle

__all__ = ["SavedStates", "dumps", "loads"]

T = TypeVar("T")

_FORMAT = "opreg optimizer states 1"
_NAME = "optimizer states"
_DEEPEST = 8  # the tuples of each optimizer are less than half as deep


class SavedStates(NamedTuple):
    """The saved states of an optimizer.

    Attributes
    ----------
    states : dict
        By index or name of the weight: arrays, numbers, None, or tuples of those.
    counts : dict of int to dict
        Update counts, by device and weight.
    num_update : int
        The largest count.
    optimizer : str or None
        Its name.
    settings : dict of str to number, text or None
        Its settings.
    schedule : LRScheduler or None
        Its schedule of the rate, if it is one of MXNet's, pickled by MXNet.
    """

    states: dict[int | str, Any]
    counts: dict[int, dict[int | str, int]]
    num_update: int
    optimizer: str | None = None
    settings: Mapping[str, float | str | None] = {}
    schedule: LRScheduler | None = None


# ---------------------------------------------------------------------------------------------- writing


def dumps(saved: SavedStates) -> bytes:
    """The states as bytes."""
    arrays: dict[str, np.ndarray] = {}
    about: dict[str, object] = {
        "format": _FORMAT,
        "states": [[_index(i), _pack_state(state, arrays)] for i, state in saved.states.items()],
        "num_update": saved.num_update,
        "counts": [[device, [[_index(i), count] for i, count in counts.items()]]
                   for device, counts in saved.counts.items()],
    }
    if saved.optimizer is not None:
        about.update(optimizer=saved.optimizer, settings=dict(saved.settings))
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    return npz([Record(array) for array in arrays.values()], list(arrays))


def _index(index: object) -> int | str:
    if isinstance(index, (int, str)):
        return index
    raise ArgumentError(f"states can be saved only for weights with a number or a name, not with "
                        f"{type(index).__name__}")


def _pack_state(state: object, arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """A state as JSON, with its arrays separated."""
    if isinstance(state, NDArray):
        name, host = f"array{len(arrays)}", state.asnumpy()
        arrays[name] = host.view(np.uint16) if host.dtype.name == "bfloat16" else host
        return {"array": name, "dtype": host.dtype.name}
    if isinstance(state, (tuple, list)):
        return {"tuple": [_pack_state(part, arrays) for part in state]}
    if state is None or isinstance(state, (int, float, str)):
        return {"value": state}
    raise ArgumentError(f"states can be saved of arrays, numbers and tuples of those, not {type(state).__name__}")


# ---------------------------------------------------------------------------------------------- reading


def loads(content: bytes, settings: Collection[str] = ()) -> SavedStates:
    """Read what ``dumps`` wrote, or states that MXNet pickled.

    Parameters
    ----------
    content : bytes
        The states.
    settings : collection of str
        Names of settings. Other attributes of a pickled optimizer are left out.

    Raises
    ------
    FileFormatError
        When the bytes have another format, or are damaged.
    """
    if not content.startswith(b"PK"):
        return _from_pickle(read_pickle(content, _NAME), settings)
    records, names = read_npz(content, _NAME)
    arrays = {name: record.array for name, record in zip(names, records)}
    text = arrays.pop("about", None)
    _check(text is not None and text.dtype == np.uint8 and text.ndim == 1, "about", "the text of get_states", "none")
    assert text is not None
    about = json_of(text.tobytes(), _NAME)
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise FileFormatError(f"{_NAME}: this is a .npz file, but not a result of get_states")
    states = _pairs("states", about.get("states"), lambda place, packed: _restore_state(place, packed, arrays, 0))
    _check(not arrays, "states", "all arrays to be named", ", ".join(arrays))
    counts = _pairs("counts", about.get("counts"), lambda place, pairs: _pairs(place, pairs, _number))
    _check(all(type(device) is int for device in counts), "counts", "numbers of devices", list(counts))
    optimizer, values = about.get("optimizer"), about.get("settings", {})
    _check(optimizer is None or isinstance(optimizer, str), "optimizer", "a name", optimizer)
    _check(isinstance(values, dict), "settings", "names with values", values)
    return SavedStates(states, counts, _number("num_update", about.get("num_update")), optimizer, values)


def _from_pickle(pickled: PickleContent, settings: Collection[str]) -> SavedStates:
    """The states of a pickle of MXNet."""
    attributes = pickled.attributes
    counts = attributes.get("_all_index_update_counts", {0: attributes.get("_index_update_count", {})})
    _check(isinstance(counts, dict) and all(type(device) is int and isinstance(each, dict)
                                            for device, each in counts.items()), "counts", "dicts by device", counts)
    for index in (*pickled.states, *(index for each in counts.values() for index in each)):
        _check(type(index) in (int, str), "states", "numbers or names", index)
    counts = {device: {index: _number(f"counts: {index}", count) for index, count in each.items()}
              for device, each in counts.items()}
    schedule = attributes.pop("lr_scheduler", None)
    kept = {name: attributes[name] for name in settings if attributes.get(name, OTHER) is not OTHER}
    optimizer = None if pickled.optimizer is None else pickled.optimizer.lower()
    return SavedStates(pickled.states, counts, _number("num_update", attributes.get("num_update", 0)), optimizer, kept,
                       schedule if isinstance(schedule, LRScheduler) else None)


def _check(holds: bool, place: str, expected: str, found: object) -> None:
    if not holds:
        raise FileFormatError(f"{_NAME}: {place}: expected {expected}, got {str(found)[:80]}")


def _pairs(place: str, pairs: Any, read: Callable[[str, Any], T]) -> dict[Any, T]:
    """A list of pairs of an index and a value as a dict."""
    _check(isinstance(pairs, list), place, "a list", pairs)
    values: dict[Any, T] = {}
    for pair in pairs:
        _check(isinstance(pair, list) and len(pair) == 2, place, "pairs", pair)
        index, value = pair
        _check(type(index) in (int, str), place, "a number or a name", index)
        _check(index not in values, place, "each weight once", index)
        values[index] = read(f"{place}: {index}", value)
    return values


def _number(place: str, value: Any) -> int:
    _check(type(value) is int and 0 <= value < 1 << 63, place, "a number of updates", value)
    return value


def _restore_state(place: str, packed: Any, arrays: dict[str, Any], depth: int) -> Any:
    """A state from its JSON; each array can be used once, so a file cannot expand in memory."""
    _check(isinstance(packed, dict) and depth <= _DEEPEST, place, "a state", packed)
    if packed.keys() == {"array", "dtype"}:
        name, dtype = packed["array"], packed["dtype"]
        _check(isinstance(name, str) and name in arrays, place, "the name of an array", name)
        host = arrays.pop(name)
        stored = host.dtype.name
        _check(dtype == stored or (dtype, stored) == ("bfloat16", "uint16"), place, f"the array's dtype {stored}",
               dtype)
        try:
            stored_dtype = as_dtype(dtype)
        except DTypeError as error:
            raise FileFormatError(f"{_NAME}: {place}: {error}") from None
        return array(host.view(stored_dtype), dtype=stored_dtype)
    if packed.keys() == {"tuple"}:
        _check(isinstance(packed["tuple"], list), place, "a list", packed["tuple"])
        return tuple([_restore_state(place, part, arrays, depth + 1) for part in packed["tuple"]])
    _check(packed.keys() == {"value"} and isinstance(packed["value"], (int, float, str, type(None))), place, "a state",
           packed)
    return packed["value"]

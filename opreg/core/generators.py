"""Random generators: one for each device, seeded together or one by one.

A bound plan holds the generator, and a captured CUDA graph the memory of its state. So a generator is never replaced,
and seeding overwrites its state in place. The same holds for the counters of devices with counter-based random kernels.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeAlias

import numpy as np

from ..errors import ArgumentError
from ..typing import Array
from .array_module import backend
from .cache import cached
from .locks import lock

__all__ = ["States", "same_draws", "counter", "before_draw", "generator", "go_back", "initial", "keep_states",
           "noted_states", "restore", "seed", "set_state", "snapshot", "state"]

#: States of generators, by device.
States: TypeAlias = dict[tuple[str, int], Any]


_GENERATORS: dict[tuple[str, int], np.random.Generator] = {}
_COUNTERS: dict[tuple[str, int], Array | None] = {}  # entered together with the generator
_ORDERS: dict[tuple[str, int], Callable[[], None]] = {}  # functions that order draws on several streams
_STATE = {"seed": 0}  # as in MXNet, a program without a seed draws the same values in every run
_LOCK = lock()


def generator(device_type: str, device_id: int = 0) -> np.random.Generator:
    """The generator of a device, made at first use.

    Returns
    -------
    generator
        An object with the part of the interface of ``numpy.random.Generator`` that CuPy has, too. It is always the same
        object.

    Examples
    --------
    >>> generator("cpu", 0) is generator("cpu", 0)
    True
    """
    key = device_type, device_id
    try:
        return _GENERATORS[key]
    except KeyError:
        pass
    with _LOCK:
        if key not in _GENERATORS:
            entropy, served = _entropy(_STATE["seed"], device_id), backend(device_type)
            _COUNTERS[key] = served.counter(entropy, device_id)
            order = served.order(device_id)
            if order is not None:
                _ORDERS[key] = order
            _GENERATORS[key] = served.generator(entropy, device_id)
        return _GENERATORS[key]


def counter(device_type: str, device_id: int = 0) -> Array | None:
    """The counter that random kernels of a device read and increase, always the same array; None on the host.

    Returns
    -------
    array of shape (2,), uint64, on the device
        A key, which depends on the seed, and the number of draws.

    Examples
    --------
    >>> counter("cpu") is None
    True
    """
    generator(device_type, device_id)
    return _COUNTERS[device_type, device_id]


def seed(value: int, device_type: str | None = None, device_id: int = 0) -> None:
    """Seed the generators.

    Parameters
    ----------
    value : int
        The seed, of which the lowest 64 bits are used.
    device_type : str or None
        The device whose generator is seeded. None seeds all generators, also those that are made later; devices of
        different indices then draw different sequences. For a single device, the sequence depends on the seed alone.

    Raises
    ------
    ArgumentError
        If the seed is no integer.

    Examples
    --------
    >>> seed(7)
    >>> first = generator("cpu").random(3)
    >>> seed(7)
    >>> bool((generator("cpu").random(3) == first).all())
    True
    """
    try:
        value = int(value.__index__()) & 0xFFFFFFFFFFFFFFFF
    except AttributeError:
        raise ArgumentError(f"seed: expected an integer, got {value!r}") from None
    if device_type is not None:
        _restart(device_type, device_id, (value,))
        return
    with _LOCK:
        _STATE["seed"] = value
        for kind, number in _GENERATORS:
            _restart(kind, number, _entropy(value, number))


@contextlib.contextmanager
def keep_states() -> Iterator[None]:
    """A context manager that restores the states of all generators.

    Examples
    --------
    >>> with keep_states():
    ...     first = generator("cpu").random(3)
    >>> bool((generator("cpu").random(3) == first).all())
    True
    """
    before = _STATE["seed"], _states()
    try:
        yield
    finally:
        _seed_and_restore(*before)


class _Noting(threading.local):
    drawn: States | None = None  # the states of the innermost ``noted_states`` block of this thread


_NOTING = _Noting()


class noted_states:
    """A context manager that records the states of generators before the first draw of its block; see ``same_draws``.

    Examples
    --------
    >>> with noted_states() as drawn:
    ...     before_draw("cpu", 0)
    ...     first = generator("cpu").random(3)
    >>> with same_draws(drawn):
    ...     bool((generator("cpu").random(3) == first).all())
    True
    """

    __slots__ = ("drawn", "_outer")

    def __init__(self) -> None:
        self.drawn: States = {}

    def __enter__(self) -> States:
        self._outer, _NOTING.drawn = _NOTING.drawn, self.drawn
        return self.drawn

    def __exit__(self, *_: object) -> None:
        outer = _NOTING.drawn = self._outer
        if outer is not None:
            for place, before in self.drawn.items():
                outer.setdefault(place, before)


def before_draw(device_type: str, device_id: int) -> None:
    """Called before a draw from the generator of a device: it orders the draw after those on other streams, and
    records the state for ``noted_states``."""
    order = _ORDERS.get((device_type, device_id))
    if order is not None:
        order()
    drawn = _NOTING.drawn
    if drawn is not None and (device_type, device_id) not in drawn:
        drawn[device_type, device_id] = state(device_type, device_id)


def go_back(drawn: States) -> None:
    """Restore recorded states of generators."""
    for place, before in drawn.items():
        set_state(before, *place)


class same_draws:
    """A context manager that draws the same random numbers again: generators start from recorded states, and their
    current states are restored at the end."""

    __slots__ = ("_drawn", "_now")

    def __init__(self, drawn: States):
        self._drawn = drawn

    def __enter__(self) -> Self:
        self._now = {place: state(*place) for place in self._drawn}
        go_back(self._drawn)
        return self

    def __exit__(self, *_: object) -> None:
        go_back(self._now)


def initial() -> int:
    """The last seed of all generators.

    Examples
    --------
    >>> seed(7)
    >>> initial()
    7
    """
    return _STATE["seed"]


def snapshot() -> dict[str, Any]:
    """The states of all generators, in memory of the host, for ``restore``. The dict can be pickled.

    Examples
    --------
    >>> now = snapshot()
    >>> first = generator("cpu").random(3)
    >>> restore(now)
    >>> bool((generator("cpu").random(3) == first).all())
    True
    """
    devices = {}
    for (kind, number), (bits, counted) in _states().items():
        fetch = backend(kind).to_numpy
        devices[kind, number] = (bits if isinstance(bits, dict) else fetch(bits),
                                 None if counted is None else fetch(counted))
    return {"seed": _STATE["seed"], "devices": devices}


def restore(value: Mapping[str, Any]) -> None:
    """Restore the states of all generators from a ``snapshot``. Generators that it lacks are seeded with its seed.

    Raises
    ------
    ArgumentError
        For a value that is no snapshot. No state is changed.
    DeviceError
        If it has the state of a missing device. No state is changed.
    """
    before = _STATE["seed"], _states()
    try:
        devices = {}
        for (kind, number), (bits, counted) in value["devices"].items():
            generator(kind, number)
            put = functools.partial(backend(kind).asarray, device=number)
            devices[kind, number] = (bits if isinstance(bits, dict) else put(bits),
                                     None if counted is None else put(counted))
        with _LOCK:
            _seed_and_restore(int(value["seed"]), devices)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        with _LOCK:
            _seed_and_restore(*before)
        raise ArgumentError(f"expected a state that get_state returned, got {value!r:.80}"
                            ) from error


def _states() -> States:
    return {place: state(*place) for place in list(_GENERATORS)}


def _seed_and_restore(value: int, states: Mapping[tuple[str, int], Any]) -> None:
    """Set the seed, restore the generators that have states, and seed the others."""
    _STATE["seed"] = value
    for place in list(_GENERATORS):
        if place in states:
            set_state(states[place], *place)
        else:
            _restart(*place, _entropy(value, place[1]))


def state(device_type: str, device_id: int = 0) -> tuple[Any, Any]:
    """The state of a device's generator and its counter, for ``set_state``."""
    bits: Any = generator(device_type, device_id).bit_generator
    counted, served = _COUNTERS[device_type, device_id], backend(device_type)
    if (order := _ORDERS.get((device_type, device_id))) is not None:
        order()
    # CuPy's ``state`` is the address of an array on the device.
    return (served.asarray(bits._state, device=device_id) if callable(bits.state) else bits.state,
            None if counted is None else served.asarray(counted, device=device_id))


def set_state(value: Any, device_type: str, device_id: int = 0) -> None:
    """Restore the state of a device's generator and its counter."""
    drawn, count = value
    bits: Any = generator(device_type, device_id).bit_generator
    counted, served = _COUNTERS[device_type, device_id], backend(device_type)
    if (order := _ORDERS.get((device_type, device_id))) is not None:
        order()
    if callable(bits.state):
        served.overwrite(bits._state, drawn, device_id)
    else:
        bits.state = drawn
    if counted is not None:
        served.overwrite(counted, count, device_id)


def _entropy(value: int, device_id: int) -> tuple[int, ...]:
    return value, device_id + 1


@cached(64)
def _first_state(entropy: tuple[int, ...]) -> Any:
    """The state with which a generator of the host begins."""
    return backend("cpu").generator(entropy, 0).bit_generator.state


def _restart(device_type: str, device_id: int, entropy: tuple[int, ...]) -> None:
    if device_type == "cpu":
        generator(device_type, device_id).bit_generator.state = _first_state(entropy)
        return
    served = backend(device_type)
    bits: Any = served.generator(entropy, device_id).bit_generator
    set_state((bits._state if callable(bits.state) else bits.state, served.counter(entropy, device_id)),
              device_type, device_id)

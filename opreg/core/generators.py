"""Random generators: one a device, all seeded together or one by one.

A bound plan keeps the object it got, and a captured CUDA graph the memory the object's state lives in. So a
generator stays the same object for good, and seeding overwrites its state in place. The same holds for the counters of
devices that have kernels which draw by counting.
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
from .locks import lock

__all__ = ["States", "again", "counter", "drawing", "generator", "go_back", "initial", "kept", "noting", "restore",
           "seed", "set_state", "snapshot", "state"]

#: A device, and where its generator stood.
States: TypeAlias = dict[tuple[str, int], Any]


_GENERATORS: dict[tuple[str, int], np.random.Generator] = {}
_COUNTERS: dict[tuple[str, int], Array | None] = {}  # made together with the generator
_ORDERS: dict[tuple[str, int], Callable[[], None]] = {}  # of devices whose streams draw in turn
_STATE = {"seed": 0}  # as MXNet: a program that never seeds gets the same values in every run
_LOCK = lock()


def generator(device_type: str, device_id: int = 0) -> np.random.Generator:
    """The generator of a device, made at first use.

    Returns
    -------
    generator
        With the interface of ``numpy.random.Generator``, as far as CuPy has it too. Always the same object.

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
    """The counter that kernels of a device read and move on when they draw, always the same array; None on the host.

    Returns
    -------
    array of shape (2,), uint64, on the device
        A key, which follows from the seed, and how often it was drawn from.

    Examples
    --------
    >>> counter("cpu") is None
    True
    """
    generator(device_type, device_id)
    return _COUNTERS[device_type, device_id]


def seed(value: int, device_type: str | None = None, device_id: int = 0) -> None:
    """Start the generators over from a seed.

    Parameters
    ----------
    value : int
        The seed; its lowest 64 bits count.
    device_type : str or None
        The device whose generator is meant. Without one all are seeded, those to come included, and devices
        with different numbers draw different sequences; with one the sequence does not depend on the number.

    Raises
    ------
    ArgumentError
        When the seed is not an integer.

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
def kept() -> Iterator[None]:
    """A stretch of code that leaves all generators as they were.

    Examples
    --------
    >>> with kept():
    ...     first = generator("cpu").random(3)
    >>> bool((generator("cpu").random(3) == first).all())
    True
    """
    before = _STATE["seed"], _states()
    try:
        yield
    finally:
        _go_on(*before)


class _Noting(threading.local):
    drawn: States | None = None  # what the innermost ``noting`` of this thread has noted


_NOTING = _Noting()


class noting:
    """A stretch of code of which it is noted where generators stood before it drew from them; see ``again``.

    Examples
    --------
    >>> with noting() as drawn:
    ...     drawing("cpu", 0)
    ...     first = generator("cpu").random(3)
    >>> with again(drawn):
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


def drawing(device_type: str, device_id: int) -> None:
    """Note where the generator of a device stands, if somebody wants to know: it is about to be drawn from, behind
    what draws from it on other streams."""
    order = _ORDERS.get((device_type, device_id))
    if order is not None:
        order()
    drawn = _NOTING.drawn
    if drawn is not None and (device_type, device_id) not in drawn:
        drawn[device_type, device_id] = state(device_type, device_id)


def go_back(drawn: States) -> None:
    """Let generators stand where they stood: the same is drawn once more."""
    for place, before in drawn.items():
        set_state(before, *place)


class again:
    """A stretch of code that draws what was drawn before: generators begin where it was noted that they stood, and
    stand where they do now when it is over."""

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
    """The seed that all generators were started from last.

    Examples
    --------
    >>> seed(7)
    >>> initial()
    7
    """
    return _STATE["seed"]


def snapshot() -> dict[str, Any]:
    """States of all generators, in memory of the host: a dict that can be pickled, for ``restore``.

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
    """Let all generators go on from a ``snapshot``; those that were not there at that time start from its seed.

    Raises
    ------
    ArgumentError
        For what is no snapshot. Nothing is changed then.
    DeviceError
        When it has the generator of a device that is not here. Nothing is changed then.
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
            _go_on(int(value["seed"]), devices)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        with _LOCK:
            _go_on(*before)
        raise ArgumentError(f"expected a state of the random generators, as it was given out, got {value!r:.80}"
                            ) from error


def _states() -> States:
    return {place: state(*place) for place in list(_GENERATORS)}


def _go_on(value: int, states: Mapping[tuple[str, int], Any]) -> None:
    """Set the seed and the generators that have states; the others start over."""
    _STATE["seed"] = value
    for place in list(_GENERATORS):
        if place in states:
            set_state(states[place], *place)
        else:
            _restart(*place, _entropy(value, place[1]))


def state(device_type: str, device_id: int = 0) -> tuple[Any, Any]:
    """State of a device's generator and its counter, for ``set_state``."""
    bits: Any = generator(device_type, device_id).bit_generator
    counted, served = _COUNTERS[device_type, device_id], backend(device_type)
    if (order := _ORDERS.get((device_type, device_id))) is not None:
        order()
    # CuPy's ``state`` is its address; what is there is an array on the device.
    return (served.asarray(bits._state, device=device_id) if callable(bits.state) else bits.state,
            None if counted is None else served.asarray(counted, device=device_id))


def set_state(value: Any, device_type: str, device_id: int = 0) -> None:
    """Let the generator of a device, and its counter, go on from a ``state``."""
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


def _restart(device_type: str, device_id: int, entropy: tuple[int, ...]) -> None:
    served = backend(device_type)
    bits: Any = served.generator(entropy, device_id).bit_generator
    set_state((bits._state if callable(bits.state) else bits.state, served.counter(entropy, device_id)),
              device_type, device_id)

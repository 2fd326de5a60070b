"""Random generators: one a device, all seeded together or one by one.

A bound plan keeps the object it got, and a captured CUDA graph the memory the object's state lives in. So a
generator stays the same object for good, and seeding overwrites its state in place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .array_module import backend
from .locks import lock

__all__ = ["generator", "kept", "seed", "state", "set_state"]


_GENERATORS: dict[tuple[str, int], np.random.Generator] = {}
_STATE = {"seed": 0}  # as MXNet: a program that never seeds gets the same numbers in every run
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
            _GENERATORS[key] = backend(device_type).generator(_entropy(_STATE["seed"], device_id), device_id)
        return _GENERATORS[key]


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
        _restart(device_type, device_id, generator(device_type, device_id), (value,))
        return
    with _LOCK:
        _STATE["seed"] = value
        for (kind, number), stream in _GENERATORS.items():
            _restart(kind, number, stream, _entropy(value, number))


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
    value, before = _STATE["seed"], {key: _state(stream.bit_generator) for key, stream in _GENERATORS.items()}
    try:
        yield
    finally:
        _STATE["seed"] = value
        for (device_type, device_id), stream in list(_GENERATORS.items()):
            state = before.get((device_type, device_id))
            if state is None:
                _restart(device_type, device_id, stream, _entropy(value, device_id))
            else:
                _set_state(device_type, device_id, stream.bit_generator, state)


def state(device_type: str, device_id: int = 0) -> object:
    """Where the generator of a device stands, for ``set_state``."""
    return _state(generator(device_type, device_id).bit_generator)


def set_state(value: object, device_type: str, device_id: int = 0) -> None:
    """Let the generator of a device go on from a ``state``."""
    _set_state(device_type, device_id, generator(device_type, device_id).bit_generator, value)


def _entropy(value: int, device_id: int) -> tuple[int, ...]:
    return value, device_id + 1


def _restart(device_type: str, device_id: int, held: np.random.Generator, entropy: tuple[int, ...]) -> None:
    fresh = backend(device_type).generator(entropy, device_id).bit_generator
    _set_state(device_type, device_id, held.bit_generator, _state(fresh))


def _state(bits: Any) -> object:
    """A copy of what a generator goes on from. CuPy's ``state`` is its address; it is an array on the device."""
    return bits._state.copy() if callable(bits.state) else bits.state


def _set_state(device_type: str, device_id: int, bits: Any, state: object) -> None:
    if callable(bits.state):
        with backend(device_type).xp.cuda.Device(device_id):
            bits._state[...] = state
    else:
        bits.state = state

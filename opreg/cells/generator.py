"""The state of random numbers by MindSpore's names, as tensors that can be saved beside weights."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

import numpy as np

from ..core import generators
from ..errors import ArgumentError
from .tensor import Tensor, from_numpy

__all__ = ["get_rng_state", "set_rng_state", "manual_seed", "initial_seed", "seed"]


def get_rng_state() -> Tensor:
    """State of the random generators of all devices.

    Returns
    -------
    Tensor
        Of dtype uint8 and one axis, whose length is not always the same.

    Examples
    --------
    >>> from opreg import ops
    >>> state = get_rng_state()
    >>> first = ops.standard_normal((3,)).asnumpy()
    >>> set_rng_state(state)
    >>> bool((ops.standard_normal((3,)).asnumpy() == first).all())
    True
    """
    state = generators.snapshot()
    devices = [[place, drawn] for place, drawn in state["devices"].items()]
    text = json.dumps({"seed": state["seed"], "devices": devices}, default=_encoded)
    return from_numpy(np.frombuffer(text.encode(), np.uint8).copy())


def set_rng_state(state: Tensor) -> None:
    """Restore the state of the random generator from a ``get_rng_state``.

    Raises
    ------
    ArgumentError
        For what ``get_rng_state`` does not give.
    DeviceError
        When the state is that of a device that is not here.

    Examples
    --------
    >>> set_rng_state(get_rng_state())
    """
    if not isinstance(state, Tensor):
        raise ArgumentError(f"set_rng_state: expected a Tensor that get_rng_state gave, got {type(state).__name__}")
    try:
        value = json.loads(state.asnumpy().astype(np.uint8).tobytes(), object_hook=_decoded)
        devices = {tuple(place): tuple(drawn) for place, drawn in value["devices"]}
    except (KeyError, TypeError, ValueError):
        raise ArgumentError("set_rng_state: expected a tensor that get_rng_state gave, this one holds something else"
                            ) from None
    generators.restore({"seed": value["seed"], "devices": devices})


def manual_seed(seed: int) -> None:
    """Start the random numbers of operators and initializers over; ``set_seed`` does it for NumPy's, too.

    Examples
    --------
    >>> manual_seed(5)
    >>> initial_seed()
    5
    """
    generators.seed(seed)


def seed() -> int:
    """Seed the generator from the system's entropy; returns the seed.

    Examples
    --------
    >>> seed() == initial_seed()
    True
    """
    manual_seed(secrets.randbits(48))
    return initial_seed()


def initial_seed() -> int:
    """The seed that random numbers were started from last."""
    return generators.initial()


def _encoded(array: np.ndarray) -> dict[str, object]:
    """An array of a device's generator, in JSON."""
    return {"dtype": array.dtype.str, "shape": array.shape, "base64": base64.b64encode(array.tobytes()).decode()}


def _decoded(value: dict[str, Any]) -> object:
    if "base64" not in value:
        return value
    return np.frombuffer(base64.b64decode(value["base64"]), value["dtype"]).reshape(value["shape"])

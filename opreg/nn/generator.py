"""States of random generators by MindSpore's names, as tensors that can be saved with the weights."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

import numpy as np

from ..cells.tensor import Tensor, from_numpy
from ..core import generators
from ..core.named_errors import name_errors
from ..errors import ArgumentError

__all__ = ["get_rng_state", "set_rng_state", "manual_seed", "initial_seed", "seed"]


def get_rng_state() -> Tensor:
    """The state of the random generators of all devices.

    Returns
    -------
    Tensor
        A vector of uint8, of varying length.

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
    text = json.dumps({"seed": state["seed"], "devices": devices}, default=_encode)
    return from_numpy(np.frombuffer(text.encode(), np.uint8).copy())


def set_rng_state(state: Tensor) -> None:
    """Restore the state of the random generator from a ``get_rng_state``.

    Raises
    ------
    ArgumentError
        When the tensor is no result of ``get_rng_state``.
    DeviceError
        When the state belongs to a device that this machine lacks.

    Examples
    --------
    >>> set_rng_state(get_rng_state())
    """
    if not isinstance(state, Tensor):
        raise ArgumentError(f"set_rng_state: expected a Tensor returned by get_rng_state, got {type(state).__name__}")
    try:
        value = json.loads(state.asnumpy().astype(np.uint8).tobytes(), object_hook=_decode)
        devices = {tuple(place): tuple(drawn) for place, drawn in value["devices"]}
    except (KeyError, TypeError, ValueError):
        raise ArgumentError("set_rng_state: expected a tensor returned by get_rng_state, got a tensor of other contents"
                            ) from None
    generators.restore({"seed": value["seed"], "devices": devices})


def manual_seed(seed: int) -> None:
    """Seed the random generators of operators and initializers; ``set_seed`` seeds NumPy's, too.

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
    """The last seed of the random generators."""
    return generators.initial()


def _encode(array: np.ndarray) -> dict[str, object]:
    """An array of a device's generator, encoded for JSON."""
    return {"dtype": array.dtype.str, "shape": array.shape, "base64": base64.b64encode(array.tobytes()).decode()}


def _decode(value: dict[str, Any]) -> object:
    if "base64" not in value:
        return value
    return np.frombuffer(base64.b64decode(value["base64"]), value["dtype"]).reshape(value["shape"])


name_errors(__name__, globals(), __all__)

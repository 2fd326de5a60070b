"""The state of NumPy's global random generator, which is copied only after a draw."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__all__ = ["global_state"]

#: Bytes of a Mersenne Twister: 624 numbers of 32 bits, and the position among them.
_SIZE = 625 * 4
#: The memory of the generator at the last copy of its state, and this copy.
_LAST: list[tuple[bytes, tuple[Any, ...]]] = []


def global_state() -> tuple[Any, ...]:
    """The state of NumPy's global random generator, as ``np.random.get_state()`` returns it.

    NumPy copies the 624 numbers one by one, which takes as long as a tenth of a small trace. Here the last copy is
    returned until the generator's memory changes.

    Examples
    --------
    >>> np.random.seed(1)  # no second normal number waits
    >>> before = global_state()
    >>> before is global_state()
    True
    >>> _ = np.random.rand()
    >>> before is global_state()
    False
    """
    bits = np.random.mtrand._rand._bit_generator
    if not isinstance(bits, np.random.MT19937):  # a program has set another bit generator
        return np.random.get_state()  # type: ignore[return-value]  # noqa: NPY002
    memory = ctypes.string_at(bits.ctypes.state_address, _SIZE)
    if _LAST and _LAST[0][0] == memory:
        return _LAST[0][1]
    state: Any = np.random.get_state()  # noqa: NPY002  the legacy generator is shared by users' code
    # A normal number is drawn together with the next one, which NumPy keeps outside of this memory.
    _LAST[:] = [] if state[3] else [(memory, state)]
    return state

"""Arrays of random numbers: ``nd.random``, and ``mx.random`` with seeds and states of the generators.

A parameter of a distribution may be a scalar or an array; for each element of an array, ``shape`` values are drawn. By
default, the generator of the current context is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opreg.core import generators
from opreg.core.named_errors import name_errors
from opreg.core.random_functions import Sampling
from opreg.errors import ArgumentError

from .context import Context
from .function import surface
from .ndarray import NDArray

__all__ = ["seed", "get_state", "set_state", "uniform", "normal", "randn", "gamma", "exponential", "poisson",
           "negative_binomial", "generalized_negative_binomial", "randint", "multinomial", "shuffle"]


_SAMPLING: Sampling[NDArray] = Sampling(surface, (1,))

uniform = _SAMPLING.uniform
normal = _SAMPLING.normal
randn = _SAMPLING.randn
gamma = _SAMPLING.gamma
exponential = _SAMPLING.exponential
poisson = _SAMPLING.poisson
negative_binomial = _SAMPLING.negative_binomial
generalized_negative_binomial = _SAMPLING.generalized_negative_binomial
randint = _SAMPLING.randint
multinomial = _SAMPLING.multinomial
shuffle = _SAMPLING.shuffle


def seed(seed_state: int, ctx: Context | str = "all") -> None:
    """Seed the random generators.

    Parameters
    ----------
    seed_state : int
        The seed.
    ctx : Context or "all"
        The device whose generator is seeded. With ``"all"``, devices of different indices draw different sequences;
        with a context, the sequence depends on the seed alone.

    Raises
    ------
    ArgumentError
        If the seed is no integer.

    Examples
    --------
    >>> seed(1)
    >>> first = uniform(shape=3).asnumpy()
    >>> seed(1)
    >>> bool((uniform(shape=3).asnumpy() == first).all())
    True
    """
    if ctx == "all":
        generators.seed(seed_state)
    elif isinstance(ctx, Context):
        generators.seed(seed_state, ctx.backend_name, ctx.device_id)
    else:
        raise ArgumentError(f'seed: ctx must be a context or "all", got {ctx!r}')


def get_state() -> dict[str, object]:
    """The state of the random generators of all devices, which operators, initializers and bound graphs use.

    Iterators that shuffle use ``np.random`` and ``random``, whose states are ``np.random.get_state()`` and
    ``random.getstate()``.

    Returns
    -------
    dict
        The argument of ``set_state``, in this or another process; it can be pickled.

    Examples
    --------
    >>> state = get_state()
    >>> first = uniform(shape=3).asnumpy()
    >>> set_state(state)
    >>> bool((uniform(shape=3).asnumpy() == first).all())
    True
    """
    return generators.snapshot()


def set_state(state: Mapping[str, object]) -> None:
    """Set the random generators to a state that ``get_state`` returned.

    Raises
    ------
    ArgumentError
        For any other value.
    DeviceError
        If the state contains that of a missing device.

    Examples
    --------
    >>> set_state(get_state())
    """
    generators.restore(state)


def __getattr__(name: str) -> Callable[..., NDArray]:
    return getattr(_SAMPLING, name)


def __dir__() -> list[str]:
    return sorted(__all__)


name_errors(__name__, globals(), __all__)

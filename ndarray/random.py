"""Random numbers as arrays: ``nd.random``, and with ``seed`` and the state of what draws them also ``mx.random``.

A parameter may be a number or an array; with arrays ``shape`` numbers are drawn for each place. Without
``ctx`` the numbers come from the generator of the current context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opreg.core import generators
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
    """Start random numbers over.

    Parameters
    ----------
    seed_state : int
        The seed.
    ctx : Context or "all"
        The device meant. With "all" devices of different numbers draw different sequences; with a context the
        sequence depends on the seed alone.

    Raises
    ------
    ArgumentError
        When the seed is not an integer.

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
    """State of the random generators on all devices: those of operators, of initializers and of bound graphs.

    ``np.random`` and ``random`` have states of their own, ``np.random.get_state()`` and ``random.getstate()``;
    iterators that shuffle draw from them.

    Returns
    -------
    dict
        For ``set_state``, in this process or another; it can be pickled.

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
    """Let random numbers go on from where they stood at a ``get_state``.

    Raises
    ------
    ArgumentError
        For what ``get_state`` does not give.
    DeviceError
        When the state is that of a device that is not here.

    Examples
    --------
    >>> set_state(get_state())
    """
    generators.restore(state)


def __getattr__(name: str) -> Callable[..., NDArray]:
    return getattr(_SAMPLING, name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Standard random numbers in the shape that NumPy's functions draw: that of ``size``, or else of the parameters, whose
shapes a graph finds. Arithmetic around them gives the distributions, and their gradients by the parameters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ...core.attrs import Count, Limit, Number
from ...core.declarations import ZERO
from ...core.registry import declare
from ...core.spec import Shape, broadcast
from ..shapes.joining import MANY

Size = Count | tuple[Count, ...] | None
#: The number of inputs, of which there may be none.
Inputs = Annotated[int, Limit("from 0 to 65,536", lambda number: 0 <= number <= 1 << 16)]


def _drawn_shape(parameters: tuple[Shape, ...], size: Size, batch: bool = False) -> Shape:
    """The shape of the drawn values; with ``batch``, ``size`` comes before the axes of the parameters."""
    common = broadcast(*parameters) if parameters else ()
    if size is None:
        return common
    size = (size,) if isinstance(size, int) else size
    if batch:
        return (*size, *common)
    broadcast(size, common)
    return size


@declare(name="_numpy_noise", types="*?->float32", random=True, unread=range(MANY))
def noise(*like, num_args: Inputs = 0, distribution: Literal["uniform", "normal"], size: Size = None,
          batch: bool = False):
    """Random values of the uniform distribution from 0 to 1, or of the standard normal one. They have the shape
    ``size``, by default the shape to which the inputs broadcast; with ``batch``, there are ``size`` of them for each
    element of that shape."""


noise.infer(lambda *like, size, batch: _drawn_shape(like, size, batch))
noise.grad(ZERO)


@noise.kernel()  # no body: random values are drawn
def noise_xp(xp: Any, *like: Any, rng: Any, num_args: int, distribution: str, size: Size, batch: bool) -> Any:
    shape = _drawn_shape(tuple(each.shape for each in like), size, batch)
    return (rng.random if distribution == "uniform" else rng.standard_normal)(shape, dtype="float32")


@declare(name="_numpy_gamma", types="*?->float32", random=True)
def gamma(*parameter, num_args: Inputs = 0, alpha: Number = 1.0, size: Size = None):
    """Random values of the gamma distribution with scale one. Its shape parameter is the input, or ``alpha`` without an
    input; the result has the shape ``size``, by default that of the input."""


gamma.infer(lambda *parameter, size: _drawn_shape(parameter, size))
gamma.grad(ZERO)


@gamma.kernel()  # no body: random values are drawn
def gamma_xp(xp: Any, *parameter: Any, rng: Any, num_args: int, alpha: float, size: Size) -> Any:
    shape = _drawn_shape(tuple(each.shape for each in parameter), size)
    values = parameter[0].astype(xp.float32) if parameter else alpha
    return rng.standard_gamma(xp.broadcast_to(xp.asarray(values, dtype=xp.float32), shape), shape, dtype="float32")

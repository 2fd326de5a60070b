"""grad_func: the functions of MindSpore's ``ops.function.grad.grad_func``, and ``custom_vjp``, defined here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from ..cells.cell import Cell
from ..cells.grad import get_grad, grad, stop_gradient, value_and_grad
from ..cells.jacobian import jacfwd, jacrev, jvp, vjp
from ..errors import ArgumentError

__all__ = ["custom_vjp", "get_grad", "grad", "jacfwd", "jacrev", "jvp", "stop_gradient", "value_and_grad", "vjp"]


class CustomVjp(Cell):
    """A function whose gradient is another function; see ``custom_vjp``."""

    _has_mode = False

    def __init__(self, fwd: Callable):
        super().__init__(auto_prefix=False)
        self.fwd = fwd
        self.bwd: Callable | None = None

    def defbwd(self, bwd: Callable) -> None:
        """Declare the gradient."""
        self.bwd = bwd

    def construct(self, *args: Any) -> Any:
        return self.fwd(*args)

    def bprop(self, *args: Any) -> Any:
        if self.bwd is None:
            raise ArgumentError("custom_vjp: there is no gradient yet; set it by defbwd(function)")
        return self.bwd(*args)


@overload
def custom_vjp(fn: Callable[..., Any]) -> CustomVjp: ...


@overload
def custom_vjp(fn: None = None) -> Callable[[Callable[..., Any]], CustomVjp]: ...


def custom_vjp(fn: Callable[..., Any] | None = None) -> CustomVjp | Callable[[Callable[..., Any]], CustomVjp]:
    """A Cell that calls a function, with the gradient that ``defbwd`` declares.

    Parameters
    ----------
    fn : callable
        A function of tensors; without it a decorator is returned.

    Returns
    -------
    Cell
        ``defbwd(bwd)`` declares the gradient: a function of the inputs, the output and the output gradient, which
        returns a gradient for each input.

    Examples
    --------
    >>> from opreg import Tensor
    >>> @custom_vjp
    ... def step(x):
    ...     return (x > 0).astype("float32")
    >>> step.defbwd(lambda x, out, dout: (dout * 0.5,))
    >>> grad(step)(Tensor(3.0))
    Tensor(shape=[], dtype=Float32, value= 0.5)
    """
    return custom_vjp if fn is None else CustomVjp(fn)

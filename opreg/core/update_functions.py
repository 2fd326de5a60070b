"""Functions of ``contrib`` that update weights: ``rescale_grad`` may be a scalar, and some take lists of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from .arguments import non_none
from .value import Value

__all__ = ["Updates", "updates"]

V = TypeVar("V", bound=Value)


class Updates(Generic[V]):
    """Updates of one kind of value, arrays or symbols.

    In all methods, ``out`` receives the new weights and is usually the weights themselves; states are changed in place.
    Further keywords are attributes of the operator.

    Parameters
    ----------
    surface : function of a name
        Gives the users' function of that name, ``nd._adamw_update`` or ``sym._adamw_update``.
    """

    def __init__(self, surface: Callable[[str], Callable]):
        self._surface = surface

    def _scale(self, rescale_grad: Any, weight: Any) -> Any:
        """``rescale_grad`` as an array on the weight's device, or as a symbol."""
        place = getattr(weight, "context", None)
        if isinstance(rescale_grad, Value):
            return rescale_grad if place is None else rescale_grad.as_in_context(place)  # type: ignore[attr-defined]
        return self._surface("_full")(shape=(1,), value=rescale_grad, **non_none(ctx=place))

    def adamw_update(self, weight: V, grad: V, mean: V, var: V, rescale_grad: V | float, lr: float, eta: float,
                     beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0,
                     clip_gradient: float = -1, out: Any = None, name: str | None = None, **kwargs: Any) -> V:
        """Adam with decoupled weight decay: ``weight - eta * (lr * mean / (sqrt(var) + epsilon) + wd * weight)``.

        Nothing is changed if ``rescale_grad``, a scalar or an array of one element, is zero or not finite.
        """
        return self._surface("_adamw_update")(
            weight, grad, mean, var, self._scale(rescale_grad, weight), lr=lr, eta=eta, beta1=beta1, beta2=beta2,
            epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, **non_none(out=out, name=name), **kwargs)

    def mp_adamw_update(self, weight: V, grad: V, mean: V, var: V, weight32: V, rescale_grad: V | float, lr: float,
                        eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0,
                        clip_gradient: float = -1, out: Any = None, name: str | None = None, **kwargs: Any) -> V:
        """``adamw_update`` computed in ``weight32``, a float32 copy of the weight."""
        return self._surface("_mp_adamw_update")(
            weight, grad, mean, var, weight32, self._scale(rescale_grad, weight), lr=lr, eta=eta, beta1=beta1,
            beta2=beta2, epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, **non_none(out=out, name=name), **kwargs)

    def multi_adamw_update(self, weights: Sequence[V], grads: Sequence[V], mean: Sequence[V], var: Sequence[V],
                           rescale_grad: V | float, lrs: Sequence[float], wds: Sequence[float], etas: Sequence[float],
                           out: Any = None, name: str | None = None, size: int = 0, **kwargs: Any) -> Any:
        """``adamw_update`` of several weights, each with its own rate, decay and schedule multiplier."""
        scale = self._scale(rescale_grad, weights[0])
        return self._call_by_weight("_multi_adamw_update", (weights, grads, mean, var), [scale], "num_weights", size,
                                    lrs=lrs, wds=wds, etas=etas, **non_none(out=out, name=name), **kwargs)

    def multi_mp_adamw_update(self, weights: Sequence[V], grads: Sequence[V], mean: Sequence[V], var: Sequence[V],
                              weights32: Sequence[V], rescale_grad: V | float, lrs: Sequence[float],
                              wds: Sequence[float], etas: Sequence[float], out: Any = None, name: str | None = None,
                              size: int = 0, **kwargs: Any) -> Any:
        """``multi_adamw_update`` computed in ``weights32``, float32 copies of the weights."""
        scale = self._scale(rescale_grad, weights[0])
        return self._call_by_weight("_multi_mp_adamw_update", (weights, grads, mean, var, weights32), [scale],
                                    "num_weights", size, lrs=lrs, wds=wds, etas=etas, **non_none(out=out, name=name),
                                    **kwargs)

    def multi_lamb_update(self, weights: Sequence[V], grads: Sequence[V], mean: Sequence[V], var: Sequence[V],
                          step_count: Sequence[int], lrs: Sequence[float], wds: Sequence[float], out: Any = None,
                          num_tensors: int = 0, **kwargs: Any) -> Any:
        """LAMB of several weights, each with its own step count, learning rate and weight decay."""
        return self._call_by_weight("_multi_lamb_update", (weights, grads, mean, var), [], "num_tensors", num_tensors,
                                    step_count=step_count, learning_rates=lrs, wds=wds, **non_none(out=out), **kwargs)

    def multi_mp_lamb_update(self, weights: Sequence[V], grads: Sequence[V], mean: Sequence[V], var: Sequence[V],
                             weights32: Sequence[V], step_count: Sequence[int], lrs: Sequence[float],
                             wds: Sequence[float], out: Any = None, num_tensors: int = 0, **kwargs: Any) -> Any:
        """``multi_lamb_update`` computed in ``weights32``, float32 copies of the weights."""
        return self._call_by_weight("_multi_mp_lamb_update", (weights, grads, mean, var, weights32), [], "num_tensors",
                                    num_tensors, step_count=step_count, learning_rates=lrs, wds=wds,
                                    **non_none(out=out), **kwargs)

    def _call_by_weight(self, operator: str, groups: Sequence[Sequence[V]], tail: list[V], counted: str,
                        count: int, **attrs: Any) -> Any:
        """Call an operator with the inputs grouped by weight: those of the first weight, then of the second, and so
        on."""
        inputs = [value for group in zip(*groups) for value in group]
        return self._surface(operator)(*inputs, *tail, **{counted: count or len(groups[0])}, **attrs)


#: The names of the functions.
UPDATES = ("adamw_update", "mp_adamw_update", "multi_adamw_update", "multi_mp_adamw_update", "multi_lamb_update",
           "multi_mp_lamb_update")


def updates(surface: Callable[[str], Callable]) -> dict[str, Callable]:
    """The functions of one kind of value by name."""
    namespace: Updates = Updates(surface)
    return {name: getattr(namespace, name) for name in UPDATES}

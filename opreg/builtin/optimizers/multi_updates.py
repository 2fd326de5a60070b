"""LAMB for several weights in one call, and sums and checks over many arrays.

The inputs are those of the first weight, ``weight_0, grad_0, …``, then those of the second, and so on; the outputs are
the new weights.
"""

from __future__ import annotations

from typing import Any

from ...core.attrs import Few
from ...core.registry import declare
from ...elementwise import expression as e
from ...elementwise.expression import Term
from ...typing import Array, ArrayModule
from ..elementwise.elementwise import attach, expressions_of
from ..forms import declare_form
from .declared import each_weight, grouped, groups
from .optimizer_updates import lamb_direction, lamb_step
from .updating import single, update_together

ADAM = ("weight", "grad", "mean", "var")


@declare(variadic=None, **groups("num_tensors", ADAM))
def _multi_lamb_update(*data, learning_rates: tuple[float, ...], beta1: float = 0.9, beta2: float = 0.999,
                       epsilon: float = 1e-6, wds: tuple[float, ...], rescale_grad: float = 1.0,
                       lower_bound: float = -1.0, upper_bound: float = -1.0, clip_gradient: float = -1.0,
                       bias_correction: bool = True, step_count: tuple[int, ...], num_tensors: Few = 1):
    """LAMB's update of several weights; the inputs are weight, grad, mean and var of each."""


@declare(variadic=None, **groups("num_tensors", (*ADAM, "weight32")))
def _multi_mp_lamb_update(*data, learning_rates: tuple[float, ...], beta1: float = 0.9, beta2: float = 0.999,
                          epsilon: float = 1e-6, wds: tuple[float, ...], rescale_grad: float = 1.0,
                          lower_bound: float = -1.0, upper_bound: float = -1.0, clip_gradient: float = -1.0,
                          bias_correction: bool = True, step_count: tuple[int, ...], num_tensors: Few = 1):
    """LAMB's update of several weights by their float32 copies; the inputs are weight, grad, mean, var and weight32 of
    each."""


def _norm(xp: ArrayModule, array: Array) -> Array:
    """The Euclidean norm, as an array of one element."""
    flat = array.reshape(-1)
    return xp.sqrt(xp.vdot(flat, flat)).reshape(1)


_direction = single(lamb_direction)


def _lamb(xp: ArrayModule, *arrays: Array, learning_rates: tuple[float, ...], wds: tuple[float, ...],
          step_count: tuple[int, ...], num_tensors: int, lower_bound: float, upper_bound: float, out: Any = None,
          **attrs: Any) -> tuple[Array, ...]:
    results = []
    for i, group, new in each_weight(xp, arrays, out, num_tensors, len(arrays) // num_tensors):
        weight, grad, mean, var, *wide = group
        moved = new
        for moved in wide:
            weight, grad = moved, grad.astype(moved.dtype)
        direction = _direction(xp, weight, grad, mean, var, wd=wds[i], t=step_count[i], **attrs)
        norms = _norm(xp, weight), _norm(xp, direction)
        update_together(xp, lamb_step, [(moved, [weight, direction, *norms])], lr=learning_rates[i],
                        lower_bound=lower_bound, upper_bound=upper_bound)
        if wide:
            new[...] = moved
        results.append(new)
    return tuple(results)


for _op, _parts in ((_multi_lamb_update, 4), (_multi_mp_lamb_update, 5)):
    grouped(_op, _parts, wide=range(2, 5) if _parts == 5 else (), lists=("learning_rates", "wds", "step_count"),
            count="num_tensors")
    _op.kernel()(_lamb)  # no body: it moves states


# ------------------------------------------------------------------------------- sums and checks over many


@declare
def multi_lars(lrs, weights_sum_sq, grads_sum_sq, wds, *, eta: float, eps: float, rescale_grad: float = 1.0):
    """Learning rates scaled as in LARS: ``lr * eta * |w| / (|g| + wd * |w| + eps)``, if neither norm is zero.

    The norms are given squared, as returned by ``multi_sum_sq``.
    """


def _lars(lrs: Term, weights_sum_sq: Term, grads_sum_sq: Term, wds: Term, *, eta: float, eps: float,
          rescale_grad: float) -> Term:
    w, g = e.sqrt(weights_sum_sq), e.sqrt(grads_sum_sq) * rescale_grad
    return lrs * e.where(e.greater(e.minimum(w, g), 0.0), w * eta / (g + wds * w + eps), 1.0)


attach(multi_lars, expressions_of(_lars, 4))


def _arrays(*, num_arrays: int) -> list[str]:
    return [f"array_{i}" for i in range(num_arrays)]


@declare(variadic="num_arrays", arguments=_arrays, types="*T->float32")
def multi_sum_sq(*data, num_arrays: Few):
    """The sum of squares of each array."""


declare_form(multi_sum_sq, "-> (@num_arrays)")


@multi_sum_sq.kernel()  # no body: a dot for each of three arrays takes 80% longer
def multi_sum_sq_xp(xp, *data):
    flat = [array.reshape(-1) for array in data]
    wide = [array if array.dtype.itemsize >= 4 else array.astype("float32") for array in flat]
    return xp.stack([xp.vdot(array, array) for array in wide])


@declare(types="T->float32")
def all_finite(data, *, init_output: bool = True):
    """1 if all elements are finite, else 0; with ``init_output=False`` a 0 that the output array already holds
    remains."""


@declare(variadic="num_arrays", arguments=_arrays, types="*T->float32")
def multi_all_finite(*data, num_arrays: Few = 1, init_output: bool = True):
    """1 if all elements of all arrays are finite, else 0."""


def _finite(xp: ArrayModule, *data: Array, init_output: bool, out: Array | None = None) -> Array:
    fine = xp.stack([xp.all(xp.isfinite(array)) for array in data])
    fine = xp.all(fine).reshape(1).astype("float32")
    if out is None:
        return fine
    out[...] = fine if init_output else xp.minimum(out, fine)
    return out


for _op in (all_finite, multi_all_finite):
    declare_form(_op, "-> (1)")
    _op.kernel()(_finite)  # no body: it reads its own output

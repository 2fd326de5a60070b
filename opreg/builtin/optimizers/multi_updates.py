"""Optimizer updates of several weights a call, and the sums and checks over many arrays that go with them.

The inputs are the parts of the first weight, ``weight_0, grad_0, …``, then those of the second, and so on;
new weights come out. The rules are those of ``optimizer_updates``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.attrs import Few
from ...core.op import Op
from ...core.registry import declare
from ...core.spec import Shape, as_dtype, common_dtype, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import numbered
from .optimizer_updates import adamw, lamb_step, lamb_update_phase1, mp_adamw_xp, sgd, sgd_mom
from .updating import Update, mixed, single, tiled, together, widened

__all__: list[str] = []


def _groups(count: int, *parts: str, tail: Sequence[str] = ()) -> list[str]:
    """Input names: all parts of the first weight, then of the second, and so on."""
    return [f"{part}_{i}" for i in range(count) for part in parts] + list(tail)


def _weights(*, num_weights: int) -> list[str]:
    return numbered(num_weights)


def _tensors(*, num_tensors: int) -> list[str]:
    return numbered(num_tensors)


def _check_lengths(count: int, **lists: Sequence[Any]) -> None:
    for name, values in lists.items():
        if len(values) != count:
            raise AttrError(f"attribute {name}: expected {count} numbers, one a weight, got {len(values)}")


def _several(op: Op, parts: int, tail: int = 0, wide: Sequence[int] = (), lists: Sequence[str] = (),
             count: str = "num_weights") -> None:
    """Shape and dtype rules of groups of ``parts`` inputs alike, of which those in ``wide`` are float32."""

    def fill(ins: list, outs: list, **attrs: Any) -> list:
        shapes: list[Any] = []
        for i in range(attrs[count]):
            group = ins[i * parts:(i + 1) * parts]
            weight_shape = next((shape for shape in (*group, outs[i]) if shape is not None), None)
            shapes += [weight_shape if shape is None else shape for shape in group]
        numbers = (attrs[count],) if tail == 2 else (1,)
        return shapes + [numbers if shape is None else shape for shape in ins[len(ins) - tail:len(ins)]]

    def infer(*shapes: Shape, **attrs: Any) -> list[Shape]:
        number = attrs[count]
        _check_lengths(number, **{name: attrs[name] for name in lists})
        for position in range(number * parts):
            first = shapes[position - position % parts]
            if shapes[position] != first:
                raise ShapeError(f"{op.arguments(attrs)[position]}: expected shape {show(first)}, "
                                 f"got {show(shapes[position])}")
        return list(shapes[:number * parts:parts])

    def types(ins: list, outs: list, **attrs: Any) -> tuple[list, list]:
        number = attrs[count]
        dtypes = list(ins)
        for i in range(number):
            own = [i * parts + j for j in range(parts) if j not in wide]
            dtype = common_dtype([*(ins[j] for j in own), outs[i]])
            for j in own:
                dtypes[j] = dtype
            for j in wide:
                dtypes[i * parts + j] = common_dtype([ins[i * parts + j], as_dtype("float32")])
        return dtypes, [dtypes[i * parts] for i in range(number)]

    op.per_instance = True
    # States follow weight and gradient.
    op.mutates = tuple([i for i in range(1024 * parts) if i % parts >= 2])
    op.fill(fill)
    op.infer(infer)
    op.types(types)


def _each(xp: ArrayModule, arrays: Sequence[Array], out: Array | tuple[Array | None, ...] | None, count: int, parts: int
          ) -> Iterator[tuple[int, Sequence[Array], Array]]:
    """Number, arrays and place of the result of each weight."""
    for i in range(count):
        group = arrays[i * parts:(i + 1) * parts]
        new = out[i] if isinstance(out, (tuple, list)) else out
        yield i, group, xp.empty_like(group[0]) if new is None else new


def _multi(rule: Callable, parts: int, dtype: np.dtype | None) -> Callable:
    """A kernel that runs a rule for each weight, with its own rate and decay; ``dtype`` is that of the scratch."""

    def kernel(xp, *arrays, lrs, wds, num_weights, out=None, **attrs):
        alike: dict[tuple[float, float], list[Update]] = {}
        news = []
        for i, group, new in _each(xp, arrays, out, num_weights, parts):
            alike.setdefault((lrs[i], wds[i]), []).append((new, group))
            news.append(new)
        for (lr, wd), updates in alike.items():
            together(xp, rule, updates, dtype, lr=lr, wd=wd, **attrs)
        return tuple(news)

    return kernel


def _preloaded(rule: Callable, parts: int) -> Callable:
    """The same with lr and wd in arrays, the last two inputs."""

    def kernel(xp, *arrays, num_weights, out=None, **attrs):
        lrs, wds = arrays[-2:]
        return tuple([rule(xp, *group, lr=lrs[i:i + 1], wd=wds[i:i + 1], out=new, **attrs)
                      for i, group, new in _each(xp, arrays, out, num_weights, parts)])

    return kernel


def _options(parts: Sequence[str], tail: Sequence[str] = ()) -> dict[str, Any]:
    """What the declarations of operators on groups of these inputs share."""

    def arguments(*, num_weights: int) -> list[str]:
        return _groups(num_weights, *parts, tail=tail)

    return dict(variadic=None, arguments=arguments, outputs=_weights)


LISTS = ("lrs", "wds")
SGD, MOM = ("weight", "grad"), ("weight", "grad", "mom")
MP_SGD, MP_MOM = (*SGD, "weight32"), (*MOM, "weight32")


@declare(**_options(SGD))
def multi_sgd_update(*data, lrs: tuple[float, ...], wds: tuple[float, ...], rescale_grad: float = 1.0,
                     clip_gradient: float = -1.0, num_weights: Few = 1):
    """``sgd_update`` of several weights: weight, grad of the first, then of the second, and so on."""


@declare(**_options(MOM))
def multi_sgd_mom_update(*data, lrs: tuple[float, ...], wds: tuple[float, ...], momentum: float = 0.0,
                         rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: Few = 1):
    """``sgd_mom_update`` of several weights: weight, grad, mom of each."""


@declare(**_options(MP_SGD))
def multi_mp_sgd_update(*data, lrs: tuple[float, ...], wds: tuple[float, ...], rescale_grad: float = 1.0,
                        clip_gradient: float = -1.0, num_weights: Few = 1):
    """``mp_sgd_update`` of several weights: weight, grad, weight32 of each."""


@declare(**_options(MP_MOM))
def multi_mp_sgd_mom_update(*data, lrs: tuple[float, ...], wds: tuple[float, ...], momentum: float = 0.0,
                            rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: Few = 1):
    """``mp_sgd_mom_update`` of several weights: weight, grad, mom, weight32 of each."""


@declare(**_options(SGD, LISTS))
def preloaded_multi_sgd_update(*data, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                               num_weights: Few = 1):
    """``multi_sgd_update`` with rates and decays in two arrays, the last inputs."""


@declare(**_options(MOM, LISTS))
def preloaded_multi_sgd_mom_update(*data, momentum: float = 0.0, rescale_grad: float = 1.0,
                                   clip_gradient: float = -1.0, num_weights: Few = 1):
    """``multi_sgd_mom_update`` with rates and decays in two arrays, the last inputs."""


@declare(**_options(MP_SGD, LISTS))
def preloaded_multi_mp_sgd_update(*data, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                                  num_weights: Few = 1):
    """``multi_mp_sgd_update`` with rates and decays in two arrays, the last inputs."""


@declare(**_options(MP_MOM, LISTS))
def preloaded_multi_mp_sgd_mom_update(*data, momentum: float = 0.0, rescale_grad: float = 1.0,
                                      clip_gradient: float = -1.0, num_weights: Few = 1):
    """``multi_mp_sgd_mom_update`` with rates and decays in two arrays, the last inputs."""


for _op, _loaded, _parts, _wide, _rule in (
    (multi_sgd_update, preloaded_multi_sgd_update, SGD, (), sgd),
    (multi_sgd_mom_update, preloaded_multi_sgd_mom_update, MOM, (), sgd_mom),
    (multi_mp_sgd_update, preloaded_multi_mp_sgd_update, MP_SGD, (2,), sgd),
    (multi_mp_sgd_mom_update, preloaded_multi_mp_sgd_mom_update, MP_MOM, (2, 3), sgd_mom),
):
    _several(_op, len(_parts), wide=_wide, lists=LISTS)
    _op.kernel()(_multi(widened(_rule) if _wide else _rule, len(_parts), as_dtype("float32") if _wide else None))
    _several(_loaded, len(_parts), tail=2, wide=_wide)
    _loaded.kernel()(_preloaded(mixed(_rule) if _wide else single(_rule), len(_parts)))


ADAM, MP_ADAM = ("weight", "grad", "mean", "var"), ("weight", "grad", "mean", "var", "weight32")


@declare(**_options(ADAM, ("rescale_grad",)))
def _multi_adamw_update(*data, lrs: tuple[float, ...], beta1: float = 0.9, beta2: float = 0.999,
                        epsilon: float = 1e-8, wds: tuple[float, ...], etas: tuple[float, ...],
                        clip_gradient: float = -1.0, num_weights: Few = 1):
    """``_adamw_update`` of several weights: weight, grad, mean, var of each; one rescale_grad at the end."""


@declare(**_options(MP_ADAM, ("rescale_grad",)))
def _multi_mp_adamw_update(*data, lrs: tuple[float, ...], beta1: float = 0.9, beta2: float = 0.999,
                           epsilon: float = 1e-8, wds: tuple[float, ...], etas: tuple[float, ...],
                           clip_gradient: float = -1.0, num_weights: Few = 1):
    """``_mp_adamw_update`` of several weights: weight, grad, mean, var, weight32 of each; rescale_grad."""


@_multi_adamw_update.kernel()
def multi_adamw_xp(xp, *arrays, lrs, wds, etas, num_weights, out=None, **attrs):
    return tuple([single(adamw)(xp, *group, arrays[-1], lr=lrs[i], wd=wds[i], eta=etas[i], out=new, **attrs)
                  for i, group, new in _each(xp, arrays, out, num_weights, 4)])


@_multi_mp_adamw_update.kernel()
def multi_mp_adamw_xp(xp, *arrays, lrs, wds, etas, num_weights, out=None, **attrs):
    return tuple([mp_adamw_xp(xp, *group, arrays[-1], lr=lrs[i], wd=wds[i], eta=etas[i], out=new, **attrs)
                  for i, group, new in _each(xp, arrays, out, num_weights, 5)])


_several(_multi_adamw_update, 4, tail=1, lists=(*LISTS, "etas"))
_several(_multi_mp_adamw_update, 5, tail=1, wide=(2, 3, 4), lists=(*LISTS, "etas"))


def _lamb_arguments(*parts: str) -> dict[str, Any]:
    def arguments(*, num_tensors: int) -> list[str]:
        return _groups(num_tensors, *parts)

    return dict(variadic=None, arguments=arguments, outputs=_tensors)


@declare(**_lamb_arguments(*ADAM))
def _multi_lamb_update(*data, learning_rates: tuple[float, ...], beta1: float = 0.9, beta2: float = 0.999,
                       epsilon: float = 1e-6, wds: tuple[float, ...], rescale_grad: float = 1.0,
                       lower_bound: float = -1.0, upper_bound: float = -1.0, clip_gradient: float = -1.0,
                       bias_correction: bool = True, step_count: tuple[int, ...], num_tensors: Few = 1):
    """LAMB of several weights: weight, grad, mean, var of each."""


@declare(**_lamb_arguments(*MP_ADAM))
def _multi_mp_lamb_update(*data, learning_rates: tuple[float, ...], beta1: float = 0.9, beta2: float = 0.999,
                          epsilon: float = 1e-6, wds: tuple[float, ...], rescale_grad: float = 1.0,
                          lower_bound: float = -1.0, upper_bound: float = -1.0, clip_gradient: float = -1.0,
                          bias_correction: bool = True, step_count: tuple[int, ...], num_tensors: Few = 1):
    """LAMB of several float32 copies of weights: weight, grad, mean, var, weight32 of each."""


def _norm(xp: ArrayModule, array: Array) -> Array:
    """The Euclidean norm, one number in an array."""
    flat = array.reshape(-1)
    return xp.sqrt(xp.vdot(flat, flat)).reshape(1)


def _lamb(xp, weight, grad, mean, var, new, *, lr, lower_bound, upper_bound, **attrs):
    direction = lamb_update_phase1.kernels[0].rule.function(xp, weight, grad, mean, var, **attrs)
    tiled(xp, lamb_step, new, [weight, direction, _norm(xp, weight), _norm(xp, direction)], lr=lr,
           lower_bound=lower_bound, upper_bound=upper_bound)
    return new


@_multi_lamb_update.kernel()
def multi_lamb_xp(xp, *arrays, learning_rates, wds, step_count, num_tensors, out=None, **attrs):
    results = []
    for i, (weight, grad, mean, var), new in _each(xp, arrays, out, num_tensors, 4):
        own = dict(lr=learning_rates[i], wd=wds[i], t=step_count[i])
        results.append(_lamb(xp, weight, grad, mean, var, new, **own, **attrs))
    return tuple(results)


@_multi_mp_lamb_update.kernel()
def multi_mp_lamb_xp(xp, *arrays, learning_rates, wds, step_count, num_tensors, out=None, **attrs):
    results = []
    for i, (_, grad, mean, var, weight32), new in _each(xp, arrays, out, num_tensors, 5):
        own = dict(lr=learning_rates[i], wd=wds[i], t=step_count[i])
        _lamb(xp, weight32, grad.astype(weight32.dtype), mean, var, weight32, **own, **attrs)
        new[...] = weight32
        results.append(new)
    return tuple(results)


LAMB_LISTS = ("learning_rates", "wds", "step_count")
_several(_multi_lamb_update, 4, lists=LAMB_LISTS, count="num_tensors")
_several(_multi_mp_lamb_update, 5, wide=(2, 3, 4), lists=LAMB_LISTS, count="num_tensors")


# ------------------------------------------------------------------------------- sums and checks over many


@declare
def multi_lars(lrs, weights_sum_sq, grads_sum_sq, wds, *, eta: float, eps: float, rescale_grad: float = 1.0):
    """Learning rates scaled as in LARS: ``lr * eta * |w| / (|g| + wd * |w| + eps)``, if neither norm is zero.

    The norms come squared, as ``multi_sum_sq`` gives them.
    """


@multi_lars.kernel()
def multi_lars_xp(xp, lrs, weights_sum_sq, grads_sum_sq, wds, *, eta, eps, rescale_grad):
    w, g = xp.sqrt(weights_sum_sq), xp.sqrt(grads_sum_sq) * rescale_grad
    below = g + wds * w + eps
    usable = (w > 0) & (g > 0)
    return lrs * xp.where(usable, eta * w / xp.where(usable, below, xp.ones_like(below)), xp.ones_like(below))


def _arrays(*, num_arrays: int) -> list[str]:
    return [f"array_{i}" for i in range(num_arrays)]


@declare(variadic="num_arrays", arguments=_arrays, types="*T->float32")
def multi_sum_sq(*data, num_arrays: Few):
    """The sum of squares of each array."""


@multi_sum_sq.infer
def multi_sum_sq_infer(*data, num_arrays):
    return (num_arrays,)


@multi_sum_sq.kernel()
def multi_sum_sq_xp(xp, *data):
    flat = [array.reshape(-1) for array in data]
    wide = [array if array.dtype.itemsize >= 4 else array.astype("float32") for array in flat]
    return xp.stack([xp.vdot(array, array) for array in wide])


@declare(types="T->float32")
def all_finite(data, *, init_output: bool = True):
    """One if every number is finite, else zero; with ``init_output=False`` a zero in the output stays."""


@declare(variadic="num_arrays", arguments=_arrays, types="*T->float32")
def multi_all_finite(*data, num_arrays: Few = 1, init_output: bool = True):
    """``all_finite`` over all the arrays together."""


def _finite(xp: ArrayModule, *data: Array, init_output: bool, out: Array | None = None) -> Array:
    fine = xp.stack([xp.all(xp.isfinite(array)) for array in data])
    fine = xp.all(fine).reshape(1).astype("float32")
    if out is None:
        return fine
    out[...] = fine if init_output else xp.minimum(out, fine)
    return out


for _op in (all_finite, multi_all_finite):
    _op.infer(lambda *data: (1,))
    _op.kernel()(_finite)

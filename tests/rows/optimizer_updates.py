"""Rows of the optimizer updates, with each formula in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Row, normal, uniform

__all__ = ["ROWS"]

SHAPE = (3, 4)


def _n(seed: int, *shape: int) -> np.ndarray:
    return normal(*(shape or SHAPE), seed=seed)


def _p(seed: int, *shape: int) -> np.ndarray:
    return uniform(0.1, 2.0, *(shape or SHAPE), seed=seed)


def _clip(x: np.ndarray, bound: float) -> np.ndarray:
    return np.clip(x, -bound, bound) if bound >= 0 else x


class Given:
    """Attributes of an operator, with the defaults that nearly all updates share."""

    def __init__(self, **attrs: Any):
        self.__dict__.update(dict(wd=0.0, rescale_grad=1.0, clip_gradient=-1.0, clip_weights=-1.0))
        self.__dict__.update(attrs)

    def g(self, grad: np.ndarray) -> np.ndarray:
        return _clip(self.rescale_grad * grad, self.clip_gradient)

    def s(self, grad: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return _clip(self.rescale_grad * grad + self.wd * weight, self.clip_gradient)


def _sgd(a, w, g):
    return w - a.lr * (a.g(g) + a.wd * w)


def _sgd_mom(a, w, g, mom):
    return w + a.momentum * mom - a.lr * (a.g(g) + a.wd * w)


def _nag(a, w, g, mom):
    step = a.lr * (a.g(g) + a.wd * w)
    return w + a.momentum * (a.momentum * mom - step) - step


def _signsgd(a, w, g):
    return (1 - a.lr * a.wd) * w - a.lr * np.sign(g)


def _signum(a, w, g, mom):
    mom = a.momentum * mom - (1 - a.momentum) * (a.g(g) + a.wd * w)
    return (1 - a.lr * a.wd_lh) * w + a.lr * np.sign(mom)


def _moments(a, s, mean, var):
    return a.beta1 * mean + (1 - a.beta1) * s, a.beta2 * var + (1 - a.beta2) * s**2


def _adam(a, w, g, mean, var):
    mean, var = _moments(a, a.s(g, w), mean, var)
    return w - a.lr * mean / (np.sqrt(var) + a.epsilon)


def _adamw(a, w, g, mean, var, scale):
    if scale[0] == 0 or not np.isfinite(scale[0]):
        return w
    mean, var = _moments(a, _clip(scale * g, a.clip_gradient), mean, var)
    return w - a.eta * (a.lr * mean / (np.sqrt(var) + a.epsilon) + a.wd * w)


def _lamb_direction(a, w, g, mean, var):
    mean, var = _moments(a, a.g(g), mean, var)
    if a.bias_correction:
        mean, var = mean / (1 - a.beta1**a.t), var / (1 - a.beta2**a.t)
    return mean / (np.sqrt(var) + a.epsilon) + a.wd * w


def _lamb_step(a, w, g, r1, r2):
    r1 = max(r1[0], a.lower_bound) if a.lower_bound > 0 else r1[0]
    r1 = min(r1, a.upper_bound) if a.upper_bound > 0 else r1
    return w - a.lr * (r1 / r2[0] if r1 and r2[0] else 1.0) * g


def _lamb(a, w, g, mean, var):
    direction = _lamb_direction(a, w, g, mean, var)
    return _lamb_step(a, w, direction, [np.linalg.norm(w)], [np.linalg.norm(direction)])


def _ftml(a, w, g, d, v, z):
    s = _clip(a.rescale_grad * g + a.wd * w, a.clip_grad)
    v = a.beta2 * v + (1 - a.beta2) * s**2
    now = (1 - a.beta1**a.t) / a.lr * (np.sqrt(v / (1 - a.beta2**a.t)) + a.epsilon)
    return -(a.beta1 * z + (1 - a.beta1) * s - (now - a.beta1 * d) * w) / now


def _ftrl(a, w, g, z, n):
    g = a.g(g)
    z = z + g - (np.sqrt(n + g**2) - np.sqrt(n)) * w / a.lr
    below = (a.beta + np.sqrt(n + g**2)) / a.lr + a.wd
    return np.where(np.abs(z) > a.lamda1, (np.sign(z) * a.lamda1 - z) / below, 0.0)


def _rmsprop(a, w, g, n):
    s = a.s(g, w)
    n = a.gamma1 * n + (1 - a.gamma1) * s**2
    return _clip(w - a.lr * s / np.sqrt(n + a.epsilon), a.clip_weights)


def _rmspropalex(a, w, g, n, mean, delta):
    s = a.s(g, w)
    n, mean = a.gamma1 * n + (1 - a.gamma1) * s**2, a.gamma1 * mean + (1 - a.gamma1) * s
    return _clip(w + a.gamma2 * delta - a.lr * s / np.sqrt(n - mean**2 + a.epsilon), a.clip_weights)


def _adagrad(a, w, g, history):
    g = a.g(g)
    return w - a.lr * (g / np.sqrt(history + g**2 + a.epsilon) + a.wd * w)


def _group_adagrad(a, w, g, history):
    g = a.g(g)
    return w - a.lr * g / np.sqrt(history + (g**2).mean(axis=1, keepdims=True) + a.epsilon)


# Name, formula, inputs, attributes besides the usual ones.
_ADAM = dict(beta1=0.8, beta2=0.99, epsilon=1e-4)
_SINGLE = [
    ("sgd_update", _sgd, [_n(0), _n(1)], {}),
    ("sgd_mom_update", _sgd_mom, [_n(0), _n(1), _n(2)], dict(momentum=0.9)),
    ("nag_mom_update", _nag, [_n(0), _n(1), _n(2)], dict(momentum=0.9)),
    ("signsgd_update", _signsgd, [_n(0), _n(1)], {}),
    ("signum_update", _signum, [_n(0), _n(1), _n(2)], dict(momentum=0.9, wd_lh=0.1)),
    ("adam_update", _adam, [_n(0), _n(1), _n(2), _p(3)], _ADAM),
    ("ftrl_update", _ftrl, [_n(0), _n(1), _n(2), _p(3)], dict(lamda1=0.3, beta=0.9)),
    ("rmsprop_update", _rmsprop, [_n(0), _n(1), _p(2)], dict(gamma1=0.9, epsilon=1e-4)),
    ("rmsprop_update", _rmsprop, [_n(0), _n(1), _p(2)], dict(gamma1=0.9, epsilon=1e-4, clip_weights=0.4)),
    ("rmspropalex_update", _rmspropalex, [_n(0), _n(1), 2 + _p(2), _n(3) * 0.1, _n(4)],
     dict(gamma1=0.9, gamma2=0.7, epsilon=1e-4)),
    ("_sparse_adagrad_update", _adagrad, [_n(0), _n(1), _p(2)], dict(epsilon=1e-4)),
]
_USUAL = [{}, dict(wd=0.1, rescale_grad=0.5, clip_gradient=0.3), dict(wd=0.3, rescale_grad=2.0)]


def _row(op: str, formula: Any, inputs: list, attrs: dict[str, Any], **more: Any) -> Row:
    given = Given(**attrs)
    return Row(op, inputs, attrs, lambda *arrays: formula(given, *arrays), **more)


ROWS = [_row(op, formula, inputs, dict(lr=0.1, **more, **usual))
        for op, formula, inputs, more in _SINGLE for usual in _USUAL]

ROWS += [
    _row("ftml_update", _ftml, [_n(0), _n(1), _p(2), _p(3), _n(4)],
         dict(lr=0.1, beta1=0.6, beta2=0.9, epsilon=1e-4, t=3, wd=wd, rescale_grad=0.5, clip_grad=bound))
    for wd, bound in ((0.0, -1.0), (0.1, 0.3))
]
ROWS += [
    _row("_adamw_update", _adamw, [_n(0), _n(1), _n(2), _p(3), np.array([scale])],
         dict(lr=0.1, eta=0.5, wd=wd, clip_gradient=bound, **_ADAM))
    for scale, wd, bound in ((0.7, 0.0, -1.0), (0.7, 0.1, 0.3), (0.0, 0.1, 0.3), (np.inf, 0.0, -1.0),
                             (np.nan, 0.1, -1.0))
]
ROWS += [
    _row("lamb_update_phase1", _lamb_direction, [_n(0), _n(1), _n(2), _p(3)],
         dict(t=3, wd=0.1, bias_correction=corrected, rescale_grad=0.5, clip_gradient=bound, **_ADAM))
    for corrected, bound in ((True, -1.0), (False, 0.3))
]
ROWS += [
    _row("lamb_update_phase2", _lamb_step, [_n(0), _n(1), np.array([r1]), np.array([r2])],
         dict(lr=0.1, lower_bound=low, upper_bound=high))
    for r1, r2, low, high in ((3.0, 2.0, -1.0, -1.0), (3.0, 2.0, 0.5, 2.5), (0.0, 2.0, -1.0, -1.0),
                              (0.0, 2.0, 0.5, -1.0), (3.0, 0.0, -1.0, -1.0))
]
ROWS += [
    _row("_contrib_group_adagrad_update", _group_adagrad, [_n(0), _n(1), _p(2, 3, 1)],
         dict(lr=0.1, epsilon=1e-4, rescale_grad=0.5, clip_gradient=bound)) for bound in (-1.0, 0.3)
]


# ---------------------------------------------------------------------------------------- float32 copies


def _of_copy(formula: Any) -> Any:
    """The formula for the float32 copy of the weight, which is the last input, or comes before AdamW's scale."""

    def mixed(a, w, g, *rest):
        if formula is _adamw:
            *states, weight32, scale = rest
            return _adamw(a, weight32, g, *states, scale)
        *states, weight32 = rest
        return formula(a, weight32, g, *states)

    return mixed


_MIXED = [
    ("mp_sgd_update", _sgd, [_n(0), _n(1), _n(5)], dict(lr=0.1, wd=0.1)),
    ("mp_sgd_mom_update", _sgd_mom, [_n(0), _n(1), _n(2), _n(5)], dict(lr=0.1, momentum=0.9, wd=0.1)),
    ("mp_nag_mom_update", _nag, [_n(0), _n(1), _n(2), _n(5)], dict(lr=0.1, momentum=0.9, wd=0.1)),
    ("_mp_adamw_update", _adamw, [_n(0), _n(1), _n(2), _p(3), _n(5), np.array([0.7])],
     dict(lr=0.1, eta=0.5, wd=0.1, **_ADAM)),
    ("mp_lamb_update_phase1", _lamb_direction, [_n(0), _n(1), _n(2), _p(3), _n(5)],
     dict(t=2, wd=0.1, bias_correction=True, **_ADAM)),
    ("mp_lamb_update_phase2", _lamb_step, [_n(0), _n(1), np.array([3.0]), np.array([2.0]), _n(5)],
     dict(lr=0.1, lower_bound=-1.0, upper_bound=-1.0)),
]
ROWS += [_row(op, _of_copy(formula), inputs, attrs, dtypes=("float32",)) for op, formula, inputs, attrs in _MIXED]


# -------------------------------------------------------------------------------------- several at a time


def _groups(*makers: Any) -> list[np.ndarray]:
    """Arrays for a weight of SHAPE, then for one of five elements."""
    return [maker(10 * i + j, *shape) for i, shape in enumerate((SHAPE, (5,))) for j, maker in enumerate(makers)]


def _one_by_one(formula: Any, parts: int, lists: dict[str, str], attrs: dict[str, Any], tail: int = 0) -> Any:
    """The formula for each weight, with its number from each list in ``lists`` (attribute in the lists' operator:
    attribute in the formula)."""

    def several(*arrays):
        results = []
        for i in range(2):
            own = {name: attrs[source][i] for name, source in lists.items()}
            if tail == 2:
                own = dict(lr=arrays[-2][i], wd=arrays[-1][i])
            group = arrays[i * parts:(i + 1) * parts]
            results.append(formula(Given(**{**attrs, **own}), *group, *(arrays[-1:] if tail == 1 else ())))
        return results

    return several


_RATES = dict(lrs=(0.1, 0.2), wds=(0.1, 0.0), num_weights=2)
_EACH = dict(lr="lrs", wd="wds")
_CLIPPED = dict(rescale_grad=0.5, clip_gradient=0.3)
for _name, _formula, _makers, _more in [
    ("sgd", _sgd, (_n, _n), _CLIPPED), ("sgd_mom", _sgd_mom, (_n, _n, _n), dict(momentum=0.9, **_CLIPPED)),
    ("mp_sgd", _of_copy(_sgd), (_n, _n, _n), _CLIPPED),
    ("mp_sgd_mom", _of_copy(_sgd_mom), (_n, _n, _n, _n), dict(momentum=0.9)),
]:
    _dtypes = ("float32",) if _name.startswith("mp") else ("float64", "float32")
    _attrs = {**_RATES, **_more}
    ROWS.append(Row(f"multi_{_name}_update", _groups(*_makers), _attrs,
                    _one_by_one(_formula, len(_makers), _EACH, _attrs), dtypes=_dtypes))
    _loaded = [np.array(_RATES["lrs"]), np.array(_RATES["wds"])]
    ROWS.append(Row(f"preloaded_multi_{_name}_update", _groups(*_makers) + _loaded, dict(num_weights=2, **_more),
                    _one_by_one(_formula, len(_makers), {}, _more, tail=2), dtypes=("float32",)))

_attrs = dict(**_RATES, etas=(1.0, 0.5), **_ADAM)
_each = dict(**_EACH, eta="etas")
ROWS += [
    Row("_multi_adamw_update", [*_groups(_n, _n, _n, _p), np.array([0.7])], _attrs,
        _one_by_one(_adamw, 4, _each, _attrs, tail=1)),
    Row("_multi_mp_adamw_update", [*_groups(_n, _n, _n, _p, _n), np.array([0.7])], _attrs,
        _one_by_one(_of_copy(_adamw), 5, _each, _attrs, tail=1), dtypes=("float32",)),
]
_attrs = dict(learning_rates=(0.1, 0.2), wds=(0.1, 0.0), step_count=(2, 3), num_tensors=2, lower_bound=0.5,
              upper_bound=2.0, bias_correction=True, **_ADAM)
_each = dict(lr="learning_rates", wd="wds", t="step_count")
ROWS += [
    Row("_multi_lamb_update", _groups(_n, _n, _n, _p), _attrs, _one_by_one(_lamb, 4, _each, _attrs)),
    Row("_multi_mp_lamb_update", _groups(_n, _n, _n, _p, _n), _attrs,
        _one_by_one(_of_copy(_lamb), 5, _each, _attrs), dtypes=("float32",)),
]


# ------------------------------------------------------------------------------------------ sums and checks


def _lars(lrs, w2, g2, wds, eta=0.3, eps=0.01, scale=0.5):
    w, g = np.sqrt(w2), np.sqrt(g2) * scale
    return np.where((w > 0) & (g > 0), lrs * eta * w / (g + wds * w + eps), lrs)


_BAD = np.array([1.0, np.inf])
ROWS += [
    Row("multi_lars", [_p(0, 4), np.array([1.0, 0, 2, 3]), np.array([1.0, 2, 0, 3]), _p(1, 4)],
        dict(eta=0.3, eps=0.01, rescale_grad=0.5), _lars),
    Row("multi_sum_sq", [_n(0), _n(1, 5)], dict(num_arrays=2), lambda *x: np.array([(a**2).sum() for a in x])),
    Row("all_finite", [_n(0)], {}, lambda x: np.array([1.0])),
    Row("all_finite", [_BAD], {}, lambda x: np.array([0.0]), name="infinite"),
    Row("multi_all_finite", [_n(0), _n(1, 5)], dict(num_arrays=2), lambda *x: np.array([1.0])),
    Row("multi_all_finite", [_n(0), _BAD], dict(num_arrays=2), lambda *x: np.array([0.0]), name="infinite"),
]

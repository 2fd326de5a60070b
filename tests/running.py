"""How one use of an operator is run, eagerly and in an executor. What comes back are NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opreg.core.mode import Recording
from opreg.core.op import Op
from opreg.core.registry import get
from opreg.ndarray import NDArray, array, cpu
from opreg.ndarray.autograd import backward, grad
from opreg.ndarray.function import invoke
from opreg.symbol import Group, Symbol, Variable
from opreg.symbol.symbol import create

__all__ = ["Result", "Use", "agree", "bind", "difference", "eager", "graph", "heads", "second", "symbol", "TOLERANCES"]

#: Relative tolerances; those of float64 are the case's own.
TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 3e-2}


@dataclass
class Use:
    """An operator with attributes and inputs: arguments, then auxiliary states."""

    op: Op
    arrays: list[np.ndarray]
    given: dict[str, Any]
    train: bool = True
    attrs: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        given = dict(self.given)
        if self.op.variadic and self.op.variadic not in given:
            given[self.op.variadic] = len(self.arrays)
        self.attrs = self.op.complete(given)

    @classmethod
    def of(cls, row: Any, dtype: str | None = None) -> Use:
        """A row's use of its operator, floating inputs in a dtype, or in what the operator makes of it for them."""
        use = cls(get(row.op), [np.asarray(each) for each in row.inputs], dict(row.attrs), row.train)
        floats = [i for i, each in enumerate(use.arrays) if each.dtype.kind == "f"]
        if dtype is None or not floats:
            return use
        known = [np.dtype(dtype) if i == floats[0] else None if i in floats else each.dtype
                 for i, each in enumerate(use.arrays)]
        found, _ = use.op.infer_dtypes(known, [None] * len(use.op.outputs(use.attrs)), use.attrs)
        for i in floats:
            kind = found[i]
            use.arrays[i] = use.arrays[i].astype(kind if kind is not None and kind.kind == "f" else dtype)
        return use

    def having(self, arrays: Sequence[np.ndarray]) -> Use:
        """The same use of other inputs."""
        return Use(self.op, list(arrays), self.given, self.train)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.op.arguments(self.attrs) + self.op.auxiliary(self.attrs)

    @property
    def wanted(self) -> list[int]:
        """The inputs that can have a gradient: floating arguments that are not written in place."""
        count = len(self.op.arguments(self.attrs))
        return [i for i, each in enumerate(self.arrays[:count])
                if each.dtype.kind in "fV" and i not in self.op.mutates]

    def call(self, values: Sequence[Any], ctx: Any = None) -> tuple[tuple, dict[str, Any]]:
        """Arguments and keywords of a call as users write it, arrays among the attributes on a context."""
        given = self.given if ctx is None else {name: _placed(value, ctx) for name, value in self.given.items()}
        if self.op.variadic or self.op.per_instance:
            return tuple(values), dict(given)
        return (), {**dict(zip(self.names, values)), **given}


@dataclass
class Result:
    """Visible outputs, gradients by input number, and all inputs as they are afterwards."""

    outs: list[np.ndarray]
    after: list[np.ndarray]
    grads: dict[int, np.ndarray] = field(default_factory=dict)


def _placed(value: Any, ctx: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_placed(each, ctx) for each in value)
    return ctx.backend.asarray(value, device=ctx.device_id) if isinstance(value, np.ndarray) else value


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def heads(use: Use, outs: Sequence[np.ndarray], seed: int = 1) -> list[np.ndarray | None] | None:
    """Gradients to send to each output, None to one that is no floating number; None altogether for a loss."""
    if use.op.loss(use.attrs):
        return None
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(out.shape).astype(out.dtype) if out.dtype.kind in "fV" else None for out in outs]


def _differentiable(outs: Sequence[NDArray], given: Sequence[Any] | None, ctx: Any) -> tuple[list, list | None]:
    """The outputs that gradients arrive at, and these."""
    kept = [i for i, out in enumerate(outs) if out._entry is not None and out._data.dtype.kind in "fV"]
    if given is None:
        return [outs[i] for i in kept], None
    return [outs[i] for i in kept], [array(given[i], ctx, given[i].dtype) for i in kept]


def eager(use: Use, ctx: Any = None, given: Sequence[np.ndarray | None] | None = None, grads: bool = False,
          raw: Sequence[NDArray] | None = None, out: Sequence[NDArray] | None = None) -> Result:
    """Run eagerly; with ``grads`` also backward from the given head gradients."""
    ctx = ctx or cpu()
    values = list(raw) if raw is not None else [array(each, ctx, each.dtype) for each in use.arrays]
    if grads:
        for i in use.wanted:
            values[i].attach_grad()
    args, keywords = use.call(values, ctx)
    if out is not None:
        keywords["out"] = list(out)
    with Recording(grads, use.train):
        outs = _listed(invoke(use.op, args, {**keywords, "ctx": ctx}))
    found = {}
    if grads:
        targets, arrived = _differentiable(outs, given, ctx)
        if targets:
            backward(targets, arrived, train_mode=use.train)
        found = {i: values[i].grad.asnumpy() for i in use.wanted}
    return Result([each.asnumpy() for each in outs], [value.asnumpy() for value in values], found)


def second(use: Use, given: Sequence[np.ndarray | None], weights: dict[int, np.ndarray]) -> tuple[dict, dict]:
    """Gradients of the weighted sum of the gradients, with respect to inputs and to head gradients."""
    values = [array(each, None, each.dtype) for each in use.arrays]
    for i in use.wanted:
        values[i].attach_grad()
    with Recording(True, use.train):
        args, keywords = use.call(values)
        targets, arrived = _differentiable(_listed(invoke(use.op, args, keywords)), given, cpu())
        for each in arrived or ():
            each.attach_grad()
        first = grad(targets, [values[i] for i in weights], arrived, create_graph=True, train_mode=use.train)
    live = [(g, array(w, None, w.dtype)) for g, w in zip(first, weights.values()) if g._entry is not None]
    if live:
        backward([g for g, _ in live], [w for _, w in live], train_mode=use.train)
    return ({i: values[i].grad.asnumpy() for i in use.wanted},
            {i: each.grad.asnumpy() for i, each in enumerate(arrived or ())})


def symbol(use: Use, around: bool = False, ctx: Any = None) -> Symbol:
    """The use as a symbol of variables; with ``around`` there are nodes before it and behind it too."""
    values: list[Any] = [Variable(name) for name in use.names]
    count = len(use.op.arguments(use.attrs))
    if around:
        values = [value + 0.0 if i < count and i not in use.op.mutates and use.arrays[i].dtype.kind == "f" else value
                  for i, value in enumerate(values)]
    args, keywords = use.call(values, ctx)
    made = create(use.op, args, {**keywords, "name": "op"}, "op")
    if around:
        kinds = made.infer_type(**{name: each.dtype for name, each in zip(use.names, use.arrays)})[1]
        made = Group([each + 0.0 if np.dtype(kind).kind == "f" else each for each, kind in zip(made, kinds)])
    return made


def bind(use: Use, ctx: Any = None, reqs: dict[int, str] | None = None, before: dict[int, np.ndarray] | None = None,
         around: bool = False) -> Any:
    """An executor of the use, with a request for each input number and what its gradient holds before."""
    ctx = ctx or cpu()
    names, count = use.names, len(use.op.arguments(use.attrs))
    values = {name: array(each, ctx, each.dtype) for name, each in zip(names, use.arrays)}
    kept, asked = {}, {}
    for i, req in (reqs or {}).items():
        held = (before or {}).get(i, np.zeros_like(use.arrays[i]))
        kept[names[i]], asked[names[i]] = array(held, ctx, held.dtype), req
    return symbol(use, around, ctx).bind(ctx, {name: values[name] for name in names[:count]}, kept, asked,
                                         {name: values[name] for name in names[count:]})


def graph(use: Use, ctx: Any = None, given: Sequence[np.ndarray | None] | None = None,
          reqs: dict[int, str] | None = None, before: dict[int, np.ndarray] | None = None, around: bool = False,
          grads: bool = False) -> Result:
    """Run in an executor; ``grads`` says whether backward too."""
    ctx = ctx or cpu()
    if grads and reqs is None:
        reqs = dict.fromkeys(use.wanted, "write")
    executor = bind(use, ctx, reqs, before, around)
    outs = [each.asnumpy() for each in executor.forward(is_train=use.train)]
    found = {}
    if grads:
        executor.backward(None if given is None else [
            array(np.zeros_like(out) if each is None else each, ctx, out.dtype) for each, out in zip(given, outs)])
        found = {i: executor.grad_dict[use.names[i]].asnumpy() for i in reqs or ()}
    by_name = {**executor.arg_dict, **executor.aux_dict}
    return Result(outs, [by_name[name].asnumpy() for name in use.names], found)


def agree(actual: np.ndarray, expected: Any, tolerance: float | None = None, what: str = "") -> None:
    """Assert shape and numbers equal; relative to the largest number, and exactly what is no floating number."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, expected {expected.shape}"
    if actual.dtype.kind in "iub" and expected.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected, what)
        return
    if tolerance is None:
        tolerance = max(TOLERANCES.get(actual.dtype.name, 0.0), TOLERANCES.get(expected.dtype.name, 0.0))
    wide, target = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(target[np.isfinite(target)])
    np.testing.assert_allclose(wide, target, tolerance, 0.1 * tolerance * max(1.0, finite.max(initial=0.0)),
                               err_msg=what)


def difference(function: Any, arrays: Sequence[np.ndarray], i: int, gradient: np.ndarray, tolerance: float,
               what: str = "") -> None:
    """Assert that a gradient fits central differences of a scalar function, at some elements and in two directions."""
    base = arrays[i]
    rng = np.random.default_rng(i)
    directions = [rng.standard_normal(base.shape) for _ in range(2)]
    for flat in rng.permutation(base.size)[:10]:
        unit = np.zeros(base.size)
        unit[flat] = 1.0
        directions.append(unit.reshape(base.shape))
    scale = max(1.0, float(np.abs(gradient).max(initial=0.0)))
    for direction in directions:
        step = 2e-6
        ahead, behind = (function([*arrays[:i], base + sign * step * direction, *arrays[i + 1:]]) for sign in (1, -1))
        numeric, exact = (ahead - behind) / (2 * step), float((gradient * direction).sum())
        norm = scale * max(1.0, float(np.abs(direction).sum()) ** 0.5)
        assert abs(numeric - exact) <= 10 * tolerance * norm, \
            f"{what} input {i}: gradient {exact}, central difference {numeric}, at {np.flatnonzero(direction)[:5]}"

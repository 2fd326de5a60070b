"""The steps of a user's operator: its ``forward`` and ``backward``, called with arrays that wait in lists.

The first run is watched: an output that is never written, or a list entry put in another's place, is an error that
names it. Later runs are the user's method and nothing else.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .custom_gradient import UserOp
from .dispatch import write
from .errors import OpError, note
from .op import Call, FirstRun
from .spec import show

__all__ = ["forward_steps", "backward_steps", "default", "is_default"]


def default(method: Callable) -> Callable:
    """Mark a method as what counts where a user's class has none of its own."""
    method.default = True  # type: ignore[attr-defined]
    return method


def is_default(method: Callable) -> bool:
    """Whether a method is one that is there by default."""
    return getattr(method, "default", False)


class _Undeclared:
    """Stands where backward gets an array that its Prop did not ask for."""

    shape: tuple = ()
    dtype = None
    context = None

    def __init__(self, what: str):
        self._what = what

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise OpError(f"{self._what} was not asked for: need_top_grad=False or declare_backward_dependency leaves it "
                      "out, so it is not kept for backward")

    asnumpy = asscalar = copy = astype = reshape = __getitem__ = __setitem__ = __len__ = __array__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()

_MARK = 0xA5


def _mark(data: Any, req: str) -> Any:
    """Fill an output with a pattern that tells whether it was written; None where that cannot be told."""
    if req != "write" or data.nbytes < 4:
        return None
    if hasattr(data, "unwritten"):  # of a body that is followed: it knows
        return data
    flat = data.reshape(-1).view("uint8")
    flat.fill(_MARK)
    return flat


def _untouched(mark: Any) -> bool:
    """Whether an output holds the pattern still. A device is asked for one truth value, on the first run alone."""
    if hasattr(mark, "unwritten"):
        return mark.unwritten
    if isinstance(mark, np.ndarray) and mark[0] != _MARK:  # on the host one look will nearly always do
        return False
    same = (mark == _MARK).all()
    return bool(same.get() if hasattr(same, "get") else same)


def _watched(run: Callable, raws: Sequence[Any], reqs: Sequence[str], lists: dict[str, list], title: str,
             unwritten: Callable[[int], list[Callable]]) -> FirstRun:
    """The first run of an operator: no list may be rebound, and ``unwritten(i)`` hears of outputs left alone."""

    def first() -> list[Callable]:
        marks = [_mark(data, req) for data, req in zip(raws, reqs)]
        before = [list(arrays) for arrays in lists.values()]
        run()
        for (name, arrays), old in zip(lists.items(), before):
            if len(arrays) != len(old) or any(map(operator.is_not, arrays, old)):
                raise OpError(f"{title} put another array into the list {name}: what it holds is lost. Write "
                              f"self.assign({name}[i], req[i], value)")
        left = [i for i, mark in enumerate(marks) if mark is not None and _untouched(mark)]
        return [step for i in left for step in unwritten(i)] + [run]

    return FirstRun(first)


def _noted(error: BaseException, title: str, **given: list) -> None:
    """Note on an exception of a user's method what the method was given."""
    texts = [f"{name} {', '.join(f'{show(a.shape)} {np.dtype(a.dtype)}' for a in arrays if a.dtype)}"
             for name, arrays in given.items() if arrays]
    note(error, f"in {title}, given {'; '.join(texts)}")


def _stand_ins(call: Call) -> list[Any]:
    """Raw outputs, with temporary memory for those nobody asked for: careless operators write them all the same."""
    return [call.scratch(i, spec.shape, spec.dtype) if out is None else out
            for i, (out, spec) in enumerate(zip(call.outs, call.specs))]


def forward_steps(call: Call) -> list[Callable]:
    """The step that calls ``forward``."""
    attrs: Any = call.attrs
    record: Any = call.op
    wrap, ctx, count, reqs = call.wrap, call.ctx, len(attrs.arguments), list(call.reqs)
    made = record.create(call, call.ins)
    title = f"{type(made).__name__}.forward of operator {record.op_type!r}"
    raws = _stand_ins(call)
    in_data, out_data = [wrap(a, ctx, True) for a in call.ins[:count]], [wrap(a, ctx) for a in raws]
    aux, forward, is_train = [wrap(a, ctx) for a in call.ins[count:]], made.forward, call.is_train

    def run() -> None:
        try:  # keywords spelt out take half as long as a dict of them
            forward(is_train=is_train, req=reqs, in_data=in_data, out_data=out_data, aux=aux)
        except Exception as error:
            _noted(error, title, in_data=in_data, out_data=out_data, aux=aux)
            raise

    def unwritten(i: int) -> Any:
        raise OpError(f"{title} never wrote {attrs.outputs[i]!r}, which was requested. Write "
                      f"self.assign(out_data[{i}], req[{i}], value)")

    return [_watched(run, raws, call.reqs, {"in_data": in_data, "out_data": out_data}, title, unwritten)]


def _automatic(forward: UserOp, attrs: Any, req: list[str], out_grad: list, in_data: list, out_data: list,
               in_grad: list, aux: list) -> None:
    """The backward of a traced operator that has none: the derivative of its forward."""
    for given in (*out_grad, *in_data):
        if isinstance(given, _Undeclared):
            given.asnumpy()  # says what is missing
    found = forward.derive(tuple(out_grad), [*in_data, *aux], attrs, [each != "null" for each in req])
    for dst, request, value in zip(in_grad, req, found):
        if value is not None:
            write(dst, request, value)


def backward_steps(call: Call) -> list[Callable]:
    """The step that calls ``backward``."""
    attrs: Any = call.attrs
    record: Any = call.op
    wrap, ctx, n_out, n_in = call.wrap, call.ctx, len(attrs.outputs), len(attrs.arguments)
    states = call.ins[len(attrs.needed) + len(attrs.unread):]
    made = record.forward.create(call, [*call.specs, *states])
    title = f"{type(made).__name__}.backward of operator {record.forward.op_type!r}"
    every: list[Any] = [*[_Undeclared(f"out_grad[{i}]") for i in range(n_out)],
                        *[_Undeclared(f"in_data[{i}]") for i in range(n_in)],
                        *[_Undeclared(f"out_data[{i}]") for i in range(n_out)]]
    for position, data in zip(attrs.needed, call.ins):
        every[position] = wrap(data, ctx, True)
    reqs = list(call.reqs) if attrs.needs is None else [req if need else "null"
                                                        for req, need in zip(call.reqs, attrs.needs)]
    raws = _stand_ins(call)
    in_grad, aux = [wrap(a, ctx) for a in raws], [wrap(a, ctx) for a in states]
    out_grad, in_data, out_data = every[:n_out], every[n_out:n_out + n_in], every[n_out + n_in:]
    backward = made.backward
    if record.traced and is_default(backward):
        backward = functools.partial(_automatic, record.forward, attrs)

    def run() -> None:
        try:
            backward(req=reqs, out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=in_grad, aux=aux)
        except Exception as error:
            _noted(error, title, out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=in_grad, aux=aux)
            raise

    def unwritten(i: int) -> list[Callable]:
        # As in MXNet a gradient that is left alone counts as zeros: losses do that with their labels.
        zero = functools.partial(raws[i].fill, 0)
        zero()
        return [zero]

    return [_watched(run, raws, tuple(reqs), {"in_grad": in_grad}, title, unwritten)]

"""The steps of a user's operator: its ``forward`` and ``backward``, called with arrays that wait in lists.

The first run is watched: an output that is never written, or a list entry put in another's place, is an error that
names it; a result that is repeated to fill its output, or a gradient that is never written, is a warning. Later runs
are the user's method and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .custom_gradient import UserOp
from .custom_signature import check_keywords
from .custom_watch import is_default, warn_unwritten, watched
from .dispatch import write
from .errors import OpError, note
from .op import Call
from .spec import show

__all__ = ["forward_steps", "backward_steps"]

_FORWARD = ("is_train", "req", "in_data", "out_data", "aux")
_BACKWARD = ("req", "out_grad", "in_data", "out_data", "in_grad", "aux")


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


def _noted(error: BaseException, title: str, attrs: Any, **given: list) -> None:
    """Note on an exception of a user's method what the method was given."""
    texts = [f"{name} {', '.join(f'{show(a.shape)} {np.dtype(a.dtype)}' for a in arrays if a.dtype)}"
             for name, arrays in given.items() if arrays]
    note(error, f"in {title}, given {'; '.join(texts)}")
    attrs.explain(error)


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
    check_keywords(forward, _FORWARD, title)

    def run() -> None:
        try:  # keywords spelt out take half as long as a dict of them
            forward(is_train=is_train, req=reqs, in_data=in_data, out_data=out_data, aux=aux)
        except Exception as error:
            _noted(error, title, attrs, in_data=in_data, out_data=out_data, aux=aux)
            raise

    def unwritten(left: list[int]) -> list[Callable]:
        for i in left:
            raise OpError(f"{title} never wrote {attrs.outputs[i]!r}, which was requested. Write "
                          f"self.assign(out_data[{i}], req[{i}], value)")
        return []

    lists = {"in_data": in_data, "out_data": out_data}
    return [watched(run, made, title, raws, reqs, lists, attrs.outputs, unwritten)]


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
    check_keywords(backward, _BACKWARD, title)
    if record.traced and is_default(backward):
        backward = functools.partial(_automatic, record.forward, attrs)

    def run() -> None:
        try:
            backward(req=reqs, out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=in_grad, aux=aux)
        except Exception as error:
            _noted(error, title, attrs, out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=in_grad,
                   aux=aux)
            raise

    def unwritten(left: list[int]) -> list[Callable]:
        # As in MXNet a gradient that is left alone counts as zeros: losses do that with their labels.
        zeros: list[Callable] = [functools.partial(raws[i].fill, 0) for i in left]
        for zero in zeros:
            zero()
        warn_unwritten(record.forward.told, [attrs.arguments[i] for i in left], made.backward, title)
        return zeros

    return [watched(run, made, title, raws, reqs, {"in_grad": in_grad}, attrs.arguments, unwritten)]

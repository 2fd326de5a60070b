"""The steps of a user's operator, which call its ``forward`` and ``backward`` with prepared lists of arrays.

The first run is checked. An output that is never written, or a list entry that was replaced, is an error that names it;
a result that broadcasts to its output, or a gradient that is never written, is a warning. Later runs only call the
user's method.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core.dispatch import write
from ..core.launch import ANEW, Call
from ..core.spec import show
from ..errors import OpError
from .first_run import check_first_run, is_default, note_given, note_ignored, warn_unwritten
from .gradient import derive
from .signature import check_keywords

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..ndarray.ndarray import NDArray
    from ..typing import Array
    from .custom_op import CustomOp
    from .prop_use import PropUse

__all__ = ["forward_steps", "run_forward", "backward_steps", "run_backward", "read_by"]

_FORWARD = ("is_train", "req", "in_data", "out_data", "aux")
_BACKWARD = ("req", "out_grad", "in_data", "out_data", "in_grad", "aux")


class _UndeclaredArray:
    """Replaces an array that the Prop did not declare for backward. Every use of it raises an error."""

    shape: tuple = ()
    dtype = None
    context = None
    __hash__ = object.__hash__

    def __init__(self, what: str):
        self._what = what

    def __repr__(self) -> str:
        return f"<{self._what}, not available in backward>"

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise OpError(f"{self._what} is not available in backward: need_top_grad=False or declare_backward_dependency "
                      f"excludes it")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


#: Names of Python's and NumPy's special methods for operators, comparisons and conversions.
_DONE = """add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift
           neg pos abs invert round eq ne lt le gt ge bool int float complex index
           getitem setitem len iter contains array array_ufunc array_function dlpack dlpack_device"""
for _name in _DONE.split():
    for _prefix in ("", "r", "i") if _name in _DONE.split()[:14] else ("",):
        setattr(_UndeclaredArray, f"__{_prefix}{_name}__", _UndeclaredArray._refuse)


def _notes_of_specs(error: BaseException, title: str, attrs: PropUse, **lists: list) -> None:
    """Add to an exception of a user's method the specs of the method's arguments."""
    specs = {name: ", ".join([f"{show(a.shape)} {np.dtype(a.dtype)}" for a in arrays if a.dtype])
             for name, arrays in lists.items()}
    note_given(error, title, "; ".join([f"{name} {text}" for name, text in specs.items() if text]))
    attrs.explain(error)


def _title(custom_op: CustomOp, method: str, attrs: PropUse) -> str:
    """The name of a user's method in errors."""
    return f"{type(custom_op).__name__}.{method} of operator {attrs.registered.op_type!r}"


def run_forward(attrs: PropUse, custom_op: CustomOp, is_train: bool, req: list[str], in_data: list, out_data: list,
                aux: list) -> object:
    """Call ``forward``; return its result, which must be None."""
    forward: Callable[..., object] = custom_op.forward
    try:  # a call with explicit keywords takes half the time of one with a dict
        return forward(is_train=is_train, req=req, in_data=in_data, out_data=out_data, aux=aux)
    except Exception as error:
        _notes_of_specs(error, _title(custom_op, "forward", attrs), attrs, in_data=in_data, out_data=out_data, aux=aux)
        raise


def _run_new_operator(attrs: PropUse, make: Callable[[], CustomOp], *lists: Any) -> None:
    """Call ``forward`` of an operator that is made for this run; ``backward`` will be called on the same operator."""
    run_forward(attrs, make(), *lists)


def _run_latest_backward(attrs: PropUse, call: Call, *lists: Any) -> None:
    """Call ``backward`` of the operator whose ``forward`` ran last."""
    custom_op = attrs.create(call.ctx, call.memo, ())
    run_backward(attrs, custom_op, False, *lists)


def forward_steps(call: Call) -> list[Callable]:
    """The step that calls ``forward``."""
    attrs: Any = call.attrs
    custom_op = attrs.create(call.ctx, call.memo, call.ins)
    title, reqs, raws = _title(custom_op, "forward", attrs), list(call.reqs), call.places()
    count, wrap, ctx = len(attrs.arguments), call.wrap, call.ctx
    in_data, out_data = [wrap(a, ctx, True) for a in call.ins[:count]], [wrap(a, ctx) for a in raws]
    arguments = call.is_train, reqs, in_data, out_data, [wrap(a, ctx) for a in call.ins[count:]]
    run: Callable[[], object] = functools.partial(run_forward, attrs, custom_op, *arguments)
    later = run
    if ANEW in call.memo:
        later = functools.partial(_run_new_operator, attrs, attrs.maker(ctx, call.memo, call.ins), *arguments)
    check_keywords(custom_op.forward, _FORWARD, title)

    def unwritten(indices: list[int], returned: object) -> list[Callable]:
        for i in indices:
            raise OpError(f"{title} never wrote {attrs.outputs[i]!r}, which was requested{note_ignored(returned)}. "
                          f"Write self.assign(out_data[{i}], req[{i}], value)")
        return []

    lists = {"in_data": in_data, "out_data": out_data}
    return [check_first_run(run, later, custom_op, title, raws, reqs, lists, attrs.outputs, unwritten)]


def _automatic(attrs: PropUse, req: list[str], out_grad: list, in_data: list, out_data: list,
               in_grad: list, aux: list) -> None:
    """The backward of a traced operator without one: the derivative of its forward."""
    for array in (*out_grad, *in_data):
        if isinstance(array, _UndeclaredArray):
            array.asnumpy()  # raises the error that this gradient or input is undeclared
    gradients = derive(attrs.inner, tuple(out_grad), [*in_data, *aux], [request != "null" for request in req])
    for dst, request, value in zip(in_grad, req, gradients):
        if value is not None:
            write(dst, request, value)


def run_backward(attrs: PropUse, custom_op: CustomOp, traced: bool, req: list[str], out_grad: list, in_data: list,
                 out_data: list, in_grad: list, aux: list) -> object:
    """Call an operator's current ``backward``, or the derivative of a traced forward; return its result."""
    try:
        if traced and is_default(custom_op.backward):
            _automatic(attrs, req, out_grad, in_data, out_data, in_grad, aux)
            return None
        backward: Callable[..., object] = custom_op.backward
        return backward(req=req, out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=in_grad, aux=aux)
    except Exception as error:
        _notes_of_specs(error, _title(custom_op, "backward", attrs), attrs, out_grad=out_grad, in_data=in_data,
                        out_data=out_data, in_grad=in_grad, aux=aux)
        raise


def read_by(attrs: PropUse, needed: Sequence[int], read: Sequence[Array], ctx: Context, wrap: Callable[..., NDArray]
            ) -> tuple[list[Any], list[Any], list[Any]]:
    """Output gradients, inputs and outputs as backward gets them. An array that the Prop did not request is replaced
    by a value that raises an error when used."""
    n_out, n_in = len(attrs.outputs), len(attrs.arguments)
    every: list[Any] = [wrap(data, ctx, True) for data in read]
    if len(needed) < 2 * n_out + n_in:
        shown = dict(zip(needed, every))
        titles = [f"{name}[{i}]" for name, count in (("out_grad", n_out), ("in_data", n_in), ("out_data", n_out))
                  for i in range(count)]
        every = [shown[i] if i in shown else _UndeclaredArray(title) for i, title in enumerate(titles)]
    return every[:n_out], every[n_out:n_out + n_in], every[n_out + n_in:]


def backward_steps(call: Call) -> list[Callable]:
    """The step that calls ``backward``."""
    attrs: Any = call.attrs
    needed, unread = attrs.reads()
    states = call.ins[len(needed) + len(unread):]
    custom_op = attrs.create(call.ctx, call.memo, [*call.specs, *states])
    title, raws = _title(custom_op, "backward", attrs), call.places()
    reqs = list(call.reqs) if attrs.needs is None else [req if need else "null"
                                                        for req, need in zip(call.reqs, attrs.needs)]
    wrap, ctx = call.wrap, call.ctx
    in_grad, aux = [wrap(a, ctx) for a in raws], [wrap(a, ctx) for a in states]
    reading = read_by(attrs, needed, call.ins[:len(needed)], ctx, wrap)
    if ANEW in call.memo and not attrs.op.traits.traced:
        run: Callable[[], object] = functools.partial(_run_latest_backward, attrs, call, reqs, *reading, in_grad, aux)
    else:
        run = functools.partial(run_backward, attrs, custom_op, attrs.op.traits.traced, reqs, *reading, in_grad, aux)
    check_keywords(custom_op.backward, _BACKWARD, title)

    def unwritten(indices: list[int], returned: object) -> list[Callable]:
        # As in MXNet, a gradient that is not written is zero; losses rely on that for labels.
        zeros: list[Callable] = [functools.partial(raws[i].fill, 0) for i in indices]
        for zero in zeros:
            zero()
        warn_unwritten(attrs.registered.warned, [attrs.arguments[i] for i in indices], custom_op.backward, title,
                       returned)
        return zeros

    return [check_first_run(run, run, custom_op, title, raws, reqs, {"in_grad": in_grad}, attrs.arguments, unwritten)]

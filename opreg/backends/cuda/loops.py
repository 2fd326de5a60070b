"""Loops as kernels of rows and columns, or of elements if there are no reductions."""

from __future__ import annotations

from collections.abc import Callable

from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.elementwise.loops import Loop
from opreg.elementwise.rows import RowLayout
from opreg.typing import Array

from . import elementwise
from .compiler import attach as attach_compiled
from .compiler import keep_details
from .instructions import declines
from .rows import bound_rows
from .sets import bound_sets

__all__ = ["attach"]


def attach(op: Op, loop_of: Callable[[Call], Loop], ufuncs: Callable[[Call], list[Callable[[], object]]]) -> None:
    """Give an operator that is described by a loop the kernel ``cuda``."""

    def accepts(call: Call) -> str | None:
        loop = loop_of(call)
        return declines([*call.ins[:len(loop.rows.inputs)], *call.outs]) or keep_details(call, loop)

    attach_compiled(op, accepts, _steps)


def _steps(call: Call) -> list[Callable[[], None]]:
    loop: Loop = call.details
    rows = loop.rows
    ins: list[Array] = [array.reshape(loop.place(along)) for array, along in zip(call.ins, rows.inputs)]
    outs = [None if out is None else out.reshape(loop.place(along)) for out, along in zip(call.outs, rows.results)]
    if loop.elements is not None:
        return [elementwise.bound_to(loop.elements, ins, outs, call.xp)]
    if len(loop.view) == 2 and loop.axes == (1,) and RowLayout.ELEMENT in rows.results:
        return [bound_rows(rows, ins, outs, *loop.view, call.xp)]
    return bound_sets(rows.expression, ins, rows.inputs, outs, loop.axes, call.xp, call.scratch)

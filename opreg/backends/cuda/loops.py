"""Loops as kernels of rows and columns, or of elements if there are no reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.elementwise.loops import Loop
from opreg.elementwise.rows import ACROSS, RowLayout
from opreg.typing import Array

from . import elementwise
from .compiler import attach as attach_compiled
from .compiler import keep_details
from .instructions import declines
from .rows import bound_rows, counted_in
from .sets import bound_sets

__all__ = ["attach"]


def attach(op: Op, loop_of: Callable[[Call], Loop | str], ufuncs: Callable[[Call], list[Callable[[], object]]]) -> None:
    """Give an operator whose calls are loops, or some of them, the kernel ``cuda``."""

    def accepts(call: Call) -> str | None:
        loop = loop_of(call)
        if isinstance(loop, str):
            return loop
        return declines([*call.ins[:len(loop.rows.inputs)], *call.outs]) or keep_details(call, loop)

    attach_compiled(op, accepts, _steps)


def _steps(call: Call) -> list[Callable[[], None]]:
    loop: Loop = call.details
    rows, xp = loop.rows, call.xp
    ins: list[Array] = [array.reshape(loop.place(along)) for array, along in zip(call.ins, rows.inputs)]
    outs = [None if out is None else out.reshape(loop.place(along)) for out, along in zip(call.outs, rows.results)]
    alike = {*rows.inputs} == {RowLayout.ELEMENT} and not loop.numbers_places
    if len(loop.view) == 2 and loop.axes == (1,) and RowLayout.ELEMENT in rows.results and not (
            {*ACROSS} & {*rows.results} or (alike and loop.elements is not None)):
        return [bound_rows(rows, ins, outs, *loop.view, xp)]
    if loop.elements is None:
        return bound_sets(rows.expression, ins, rows.inputs, outs, loop.axes, xp, call.scratch)
    if loop.numbers_places:
        wide = any(array.dtype.itemsize == 8 for array in ins) or counted_in(loop.size) == "double"
        places = xp.arange(loop.size, dtype=np.float64 if wide else np.float32)
        ins.append(places.reshape(loop.place(RowLayout.COLUMN)))
    return [elementwise.bound_to(loop.elements, ins, outs, xp)]

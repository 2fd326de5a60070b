"""In-place writes while operators are recorded: in memory, and on the tape.

A write is recorded as the operator ``_subscript_assign``, whose gradient reads no elements. Views share memory, and so
also its record: a write to a view is a write to its base, and to all other views that overlap it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opreg.core.mode import MODE
from opreg.core.registry import get, ops
from opreg.core.rules import Attrs
from opreg.core.spec import Shape, show
from opreg.core.versions import view_at
from opreg.errors import ShapeError
from opreg.typing import Array

from . import tape
from .context import Context

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["RecordedWrite", "writable", "make_writable", "assign", "update", "without_overlap"]

#: The largest number of nodes that are taken as the expression of a value.
_EXPRESSION = 16


class RecordedWrite(tape.TapeNode):
    """A recorded write. Later readers of the array are nodes behind it, so the array may be written again."""

    __slots__ = ()


def writable(array: NDArray) -> bool:
    """Whether a recorded array may be written: its last node is a write, or was released, or it is a view of such an
    array."""
    if array._entry is None:
        return True
    node = array._entry[0]
    if node.__class__ is RecordedWrite or (node.ins is None and node.op is not None):
        return True
    part_of = _base_and_place(array)
    return part_of is not None and node.op is not None and writable(part_of[0])


def make_writable(array: NDArray) -> None:
    """Make a recorded copy writable, such as the one between reading and writing in ``h[:, 0] += x``."""
    array._entry = _node("_copy", {}, (array._entry or tape.CONSTANT,), [array.shape], array, RecordedWrite), 0


def assign(array: NDArray, key: object, value: object, basic: bool) -> None:
    """Run ``array[key] = value`` where operators, or the array, are recorded."""
    entry, recording = array._entry, MODE.recording
    if recording and (entry is not None or getattr(value, "_entry", None) is not None):
        _assign_recorded(array, key, value, basic)
    else:
        array._store(key, value, basic)
        if entry is not None and not recording and entry[0].__class__ is RecordedWrite and _all_elements(key):
            array._entry = None  # the array now holds values that no operator recorded


def update(array: NDArray, other: Any, compute: Callable[[Any, Any], NDArray], name: str) -> None:
    """Run an in-place operator such as ``array += other`` while operators are recorded; ``compute`` is
    ``operator.add``."""
    operand = array
    if array._entry is not None:
        operand = _copy_on_tape(array)
        other = operand if other is array else without_overlap([other], [array])[0]
    result = compute(operand, other)
    if result.shape != array.shape:
        raise ShapeError(f"in-place {name}: the result has shape {show(result.shape)}, the array {show(array.shape)}")
    assign(array, Ellipsis, result, True)


def without_overlap(values: Sequence[Any], targets: Sequence[NDArray]) -> list[Any]:
    """The values, with copies of those that share memory with a target that is about to be written."""
    def overlaps(value: Any) -> bool:
        return hasattr(value, "_entry") and any(_share(value._data, target._data, target._ctx) for target in targets)

    return [_copy_on_tape(value) if overlaps(value) else value for value in values]


def _share(first: Array, second: Array, ctx: Context) -> bool:
    return type(first) is type(second) and ctx.xp.may_share_memory(first, second)


def _copy_on_tape(array: NDArray) -> NDArray:
    """A copy in new memory, with the same entry on the tape."""
    result = tape.wrapped(array._ctx.run(array._data.copy), array._ctx)
    result._entry = array._entry
    return result


def _all_elements(key: object) -> bool:
    return key is Ellipsis or (key.__class__ is slice and key == slice(None))


def _base_and_place(array: NDArray) -> tuple[NDArray, object] | None:
    """The base of a view and its subscript, or None for a reshape; None for an array that is no view."""
    return getattr(array, "_part_of", None)


def _region(array: NDArray, place: object) -> Array:
    """The memory of a base that belongs to a view, or to a copy that acts as one."""
    return array._data if place is None else view_at(array._data, place)


def _parts(array: NDArray, but: NDArray | None, written: Array) -> Iterator[tuple[NDArray, object]]:
    """The living views of an array that overlap the written memory, except ``but``, and their subscripts."""
    for reference in getattr(array, "_views", ()):
        part = reference()
        if part is not None and part is not but:
            place = part._part_of[1]
            if _share(_region(array, place), written, array._ctx):
                yield part, place


def _assign_recorded(array: NDArray, key: object, value: Any, basic: bool) -> None:
    # The array, its base, the base of its base, and so on: each with the memory that is written and the view that it is
    # written through.
    written = view_at(array._data, key) if basic else array._data
    line: list[tuple[NDArray, Array, NDArray | None]] = [(array, written, None)]
    while (part_of := _base_and_place(line[-1][0])) is not None:
        part, written, _ = line[-1]
        region = _region(*part_of)
        line.append((part_of[0], written if _share(written, region, array._ctx) else region, part))
    for base, written, below in line:
        base.check_writable()
        for part, _ in _parts(base, below, written):
            part.check_writable()
    if hasattr(value, "_entry"):
        if value._data.dtype != array._data.dtype:
            value = ops.Cast(value, dtype=array._data.dtype)
        if value._ctx.backend_name != array._ctx.backend_name:
            value = value.copyto(array._ctx)
    entry = getattr(value, "_entry", None)
    if entry is not None and array._entry is None:
        _copy_shared_inputs(entry[0], array._data)
    array._store(key, value, basic)
    _record(array, key, value)
    for (part, _, _), (base, _, _) in itertools.pairwise(line):
        place = part._part_of[1]
        if place is None:
            data = part._data.reshape(base.shape)
            part, place = _recorded_result("_np_reshape", {"newshape": base.shape}, part, data), Ellipsis
        base._store(place, part)  # writes nothing new unless the view is a copy
        _record(base, place, part)
    for base, written, below in line:
        _refresh(base, below, written)


def _record(array: NDArray, key: object, value: Any) -> None:
    """Record that the array has a new value at the key."""
    old, entry = array._entry, getattr(value, "_entry", None)
    if old is None or old[0].ins is None or (entry is not None and _all_elements(key)):
        old = tape.CONSTANT  # no gradient flows to the old elements, or their nodes are released
    shapes = [array.shape, () if entry is None else value.shape]
    array._entry = _node("_subscript_assign", {"key": key}, (old, entry or tape.CONSTANT), shapes, array,
                         RecordedWrite), 0


def _refresh(array: NDArray, but: NDArray | None, written: Array) -> None:
    """Record the views that overlap the written memory as views of the new array."""
    for part, place in _parts(array, but, written):
        region, below = _region(array, place), written
        if not _share(part._data, region, array._ctx):  # a copy, whose memory nodes of the tape may hold
            part._data = below = array._ctx.run(region.reshape(part.shape).copy)
        name, attrs = ("_subscript", {"key": place}) if place is not None else ("_np_reshape", {"newshape": part.shape})
        part._entry = _recorded_result(name, attrs, array, part._data)._entry
        _refresh(part, None, below)


def _recorded_result(name: str, attrs: Attrs, array: NDArray, data: Array) -> NDArray:
    """The recorded output of an operator on an array, over elements that are computed already."""
    result = tape.wrapped(data, array._ctx)
    result._entry = _node(name, attrs, (array._entry or tape.CONSTANT,), [array.shape], result, tape.TapeNode), 0
    return result


def _node(name: str, attrs: Attrs, entries: tuple[tape.TapeEntry, ...], shapes: Sequence[Shape], array: NDArray,
          kind: type[tape.TapeNode]) -> tape.TapeNode:
    """A node of an operator whose gradient reads only shapes. It holds no arrays."""
    op = get(name)
    xp = array._ctx.xp
    number = array._ctx.run(xp.zeros, (), array._data.dtype)
    return kind(op, op.complete(attrs), entries, [xp.broadcast_to(number, shape) for shape in shapes],
                [xp.broadcast_to(number, array.shape)], 1, array._ctx, tape.frame())


def _copy_shared_inputs(node: tape.TapeNode, data: Array) -> None:
    """Copy inputs of the nodes of one expression that share memory about to be written, as in ``h[0] = h[0] * x +
    y``."""
    nodes = [node]
    for node in nodes:
        if node.op is None or node.ins is None:
            continue
        node.ins = [node.ctx.run(array.copy) if _share(array, data, node.ctx) else array for array in node.ins]
        if len(nodes) < _EXPRESSION:
            nodes += [source for source, _ in node.inputs]

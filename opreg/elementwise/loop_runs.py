"""Loops as functions of arrays: their generated functions, compiled for an array module and called on whole arrays.

If it is faster, the sets are split into parts that fit into the cache, and threads share the parts.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ..core.addresses import address_of
from ..core.array_module import add_reduce, einsum_of
from ..core.cache import cached
from ..core.host_memory import LARGE, empty
from ..core.spec import Shape, is_numpy_float
from ..core.steps import own_bytes
from ..core.threads import parts_of, run
from ..typing import Array, ArrayModule
from .loop_text import Layout, text_and_constants
from .loops import Loop
from .rows import ACROSS, REDUCTIONS, RowLayout

__all__ = ["LONG", "bound_loop", "computed_in", "prepared_loop", "run_loop"]

# Sets of up to _SHORT elements are transposed before their reduction: reductions of short rows cost more than two
# transpositions. Sums of more than LONG elements are pairwise.
_SHORT, LONG = 32, 1 << 14
# Threads are used from this number of element-wise instructions on: with fewer, memory is the limit.
_SHARED = 4


def computed_in(loop: Loop, ins: Sequence[np.dtype], outs: Sequence[np.dtype | None]) -> np.dtype:
    """The dtype that a loop is computed in.

    It is float64 if an input or output with a value per element, or an output of a reduction, has this dtype. It is
    ``loop.integer_dtype`` if all such inputs, or all outputs of a reduction, are integers. Otherwise it is float32.
    """
    reduces = RowLayout.ELEMENT not in loop.rows.results
    read = [dtype for dtype, along in zip(ins, loop.rows.inputs) if along is RowLayout.ELEMENT]
    result_dtypes = [dtype for dtype, along in zip(outs, loop.rows.results)
                     if dtype is not None and (reduces or along is RowLayout.ELEMENT)]
    wide = any(is_numpy_float(dtype) and dtype.itemsize == 8 for dtype in (*read, *result_dtypes))
    if reduces and result_dtypes and all(dtype.kind in "iu" for dtype in result_dtypes):
        return np.dtype(loop.integer_dtype)
    if not wide and all(dtype.kind in "iub" for dtype in read):
        return np.dtype(loop.integer_dtype)
    return np.dtype(np.float64 if wide else np.float32)


@cached(512)
def _compiled(text: str) -> CodeType:
    module_code = compile(text, "<loop>", "exec")
    return next(const for const in module_code.co_consts if isinstance(const, CodeType))


def _index_in_set(xp: ArrayModule, size: int, dtype: np.dtype, shape: Shape) -> Array:
    """Index of each element in its set."""
    return xp.arange(size, dtype=dtype).reshape(shape)


def _reduction(xp: ArrayModule, name: str) -> Callable[..., Array]:
    """A reduction with the parameters of ``ufunc.reduce``."""
    if xp is np:
        of_name: dict[str, Callable[..., Array]] = {
            "row_sum": add_reduce, "row_max": np.maximum.reduce, "row_min": np.minimum.reduce,
            "row_product": np.multiply.reduce}
        return of_name[name]
    if name in ("row_max", "row_min"):
        if name == "row_max":
            return lambda array, axis, dtype, out, _: xp.max(array, axis=axis, out=out, keepdims=True)

        def least(array: Array, axis: Any, dtype: Any, out: Array | None, _: bool) -> Array:
            found = xp.min(array, axis=axis, keepdims=True)  # CuPy 14.2 fails with `out`, which it takes for a dtype
            if out is None:
                return found
            out[...] = found
            return out

        return least
    add = xp.sum if name == "row_sum" else xp.prod
    return lambda array, axis, dtype, out, _: add(array, axis=axis, dtype=dtype, out=out, keepdims=True)


@cached(512)
def _tile(loop: Loop, layout: Layout, dtype: np.dtype, xp: ArrayModule) -> Callable[..., None]:
    """The compiled function of the inputs and outputs of some sets."""
    size = loop.size
    space: dict[str, Any] = {
        "__builtins__": builtins, "dtype": dtype, "divide": xp.divide,
        "empty": empty if xp is np else xp.empty, "array": xp.array, "einsum": einsum_of(xp),
        "power": xp.power, "shape": loop.view, "size": np.asarray(size, dtype) if xp is np else float(size)}
    for prim, _ in loop.rows.expression.code:
        if prim.name in REDUCTIONS:
            space[prim.name] = _reduction(xp, prim.name)
        elif prim.name == "column":
            place = (size, 1) if layout.turned else loop.place(RowLayout.COLUMN)
            make = functools.partial(_index_in_set, xp, size, dtype, place)
            # On the host one array serves all runs, since making it takes as long as comparing 300 elements with it.
            space["places"] = itertools.repeat(make()).__next__ if xp is np and size <= LONG else make
        elif prim.name not in ("row_size", "column_sum"):
            space[prim.name] = prim.resolve(xp)
            # Values that are the same for all sets are computed on the host.
            space[f"host_{prim.name}"] = prim.resolve(np)
    if layout.turned:
        space["ones"] = xp.ones(size, dtype)
    text, constants = text_and_constants(loop.rows, layout)
    # a ufunc of the host takes half as long for a constant in an array as for a Python number
    for number, value in enumerate(constants):
        space[f"c{number}"] = np.asarray(value, dtype) if xp is np else value
    tile = FunctionType(_compiled(text), space)
    tile.__dict__["plain"] = True  # the function calls only ufuncs
    return tile


def _layout_of(loop: Loop, ins: Sequence[np.dtype], outs: Sequence[np.dtype | None], dtype: np.dtype, xp: ArrayModule,
               shared: tuple[tuple[int, ...], ...] | None = None) -> Layout:
    rows, size = loop.rows, loop.size
    extreme = any(prim.name in ("row_max", "row_min") for prim, _ in rows.expression.code)
    reduces = RowLayout.ELEMENT not in rows.results
    turned = xp is np and len(loop.view) == 2 and size <= _SHORT and extreme and not reduces
    floating = is_numpy_float(dtype)  # a quotient of integers cannot be written to an integer array
    direct = tuple([None if out is None else out == dtype and floating and not (turned and along is RowLayout.ELEMENT)
                    for out, along in zip(outs, rows.results)])
    return Layout(len(loop.view), loop.axes, tuple([dtype_in != dtype for dtype_in in ins]), direct,
                  shared or ((),) * len(outs), turned, reduces or size > LONG, reduces)


def _as_view(loop: Loop, array: Array, along: RowLayout) -> Array:
    """An array reshaped to the view of a loop."""
    shape = loop.place(along)
    return array if array.shape == shape else array.reshape(shape)


def _is_empty(loop: Loop) -> bool:
    """Whether there is nothing to compute, and nothing to reduce."""
    return math.prod(loop.view) == 0 and all(along is RowLayout.ELEMENT for along in loop.rows.results)


def _split_arrays(loop: Loop, arrays: Sequence[Array], row_layouts: Sequence[RowLayout], rows: slice) -> list[Array]:
    """The parts of the arrays that belong to some sets."""
    length = loop.view[0]
    return [array if array.shape[0] != length or along is RowLayout.COLUMN else array[rows]
            for array, along in zip(arrays, row_layouts)]


def run_loop(loop: Loop, xp: ArrayModule, ins: Sequence[Array], outs: Sequence[Array | None] | None,
             dtype: np.dtype) -> list[Array]:
    """The results of a loop, computed in ``dtype``: in ``outs`` if given, else in new arrays."""
    rows = loop.rows
    ins = ins[:len(rows.inputs)]
    views = [_as_view(loop, array, along) for array, along in zip(ins, rows.inputs)]
    made: list[Array] = []
    for i, along in enumerate(rows.results):
        out, shape = None if outs is None else outs[i], loop.place(along)
        if out is None or not out.flags.c_contiguous:
            made.append(empty(shape, dtype) if xp is np else xp.empty(shape, dtype))
        else:
            made.append(out.reshape(shape))
    if not _is_empty(loop):
        shared = tuple([tuple([i for i, view in enumerate(views) if xp.may_share_memory(view, array)])
                        for array in made])
        layout = _layout_of(loop, [array.dtype for array in ins], [array.dtype for array in made], dtype, xp, shared)
        tile = _tile(loop, layout, dtype, xp)
        arrays, row_layouts = [*views, *made], (*rows.inputs, *rows.results)
        parts = _slices(loop, dtype) if xp is np else [slice(None)]
        _run(*_in_parts(loop, tile, arrays, row_layouts, parts, dtype))
    results = [array.reshape(shape) for array, shape in zip(made, loop.results)]
    for i, out in enumerate(outs or ()):
        if out is not None and not out.flags.c_contiguous:
            out[...] = results[i]
            results[i] = out
    return results


def _in_parts(loop: Loop, tile: Callable[..., None], arrays: Sequence[Array], row_layouts: Sequence[RowLayout],
              parts: Sequence[slice], dtype: np.dtype, ins: int | None = None,
              scratch: Callable[[int, Shape, np.dtype], Array] | None = None
              ) -> tuple[list[Callable[[], None]], list[Callable[[], object]]]:
    """Functions that run parts of a loop, and functions that then add up the parts' results over sets.

    Each part stores its own sums over sets, in arrays that ``scratch`` gives; ``ins`` is the number of arrays that are
    inputs.
    """
    if len(parts) == 1:
        return [functools.partial(tile, *arrays)], []
    divided = [_split_arrays(loop, arrays, row_layouts, part) for part in parts]
    endings: list[Callable[[], object]] = []
    for place in range(len(loop.rows.inputs) if ins is None else ins, len(arrays)):
        if row_layouts[place] in ACROSS:
            shape = (len(parts), *arrays[place].shape)
            sums = empty(shape, dtype) if scratch is None else scratch(place, shape, dtype)
            for each, own in zip(divided, sums):
                each[place] = own
            endings.append(functools.partial(np.add.reduce, sums, 0, None, arrays[place]))
    return [functools.partial(tile, *each) for each in divided], endings


def _run(calls: Sequence[Callable[[], None]], endings: Sequence[Callable[[], object]]) -> None:
    run(calls)
    for ending in endings:
        ending()


def _do_nothing(*arrays: Array) -> None:
    """Does nothing, for sets without elements."""


def _slices(loop: Loop, dtype: np.dtype) -> list[slice]:
    """Slices of the first axis that are computed separately: parts that fit into the cache, shared among threads."""
    rows = loop.rows
    count = sum(rows.registers[a] is RowLayout.ELEMENT for _, args in rows.expression.code for a in args[:1]
                if isinstance(a, int))
    # A comparison with the places of elements is stored, and read at once: in the cache, if it is a part.
    spans = 0 in loop.axes and any(prim.name in REDUCTIONS for prim, _ in rows.expression.code)
    if (count < _SHARED and not loop.numbers_places) or spans:
        return [slice(None)]
    return parts_of(np.broadcast_to(np.empty((), dtype), loop.view))


def prepared_loop(loop: Loop, xp: ArrayModule, ins: Sequence[Array], result: np.dtype | None = None
                  ) -> Callable[..., Any]:
    """A function ``run(*arrays, out=None)`` of arrays with the shapes and dtypes of ``ins``. It returns the results as
    new arrays, in the dtype that the loop is computed in for results of the dtype ``result``, or writes them to
    ``out``."""
    rows, shapes = loop.rows, loop.results
    count = len(ins)
    ins = ins[:len(rows.inputs)]
    dtypes = [array.dtype for array in ins]
    dtype = computed_in(loop, dtypes, [result] * len(rows.results))
    layout = _layout_of(loop, dtypes, [dtype] * len(rows.results), dtype, xp)
    tile = _do_nothing if _is_empty(loop) else _tile(loop, layout, dtype, xp)
    places = [loop.place(along) for along in rows.inputs]
    targets = [loop.place(along) for along in rows.results]
    row_layouts = (*rows.inputs, *rows.results)
    seen = [None if array.shape == place else place for array, place in zip(ins, places)]
    reshaped = [None if target == shape else shape for target, shape in zip(targets, shapes)]
    parts = _slices(loop, dtype) if xp is np else [slice(None)]

    def compute(arrays: Sequence[Array], outs: Sequence[Array]) -> None:
        views = [*[array if place is None else array.reshape(place) for array, place in zip(arrays, seen)], *outs]
        if len(parts) == 1:
            tile(*views)
        else:
            _run(*_in_parts(loop, tile, views, row_layouts, parts, dtype))

    def write(arrays: Sequence[Array], out: Any) -> Any:
        outs = out if isinstance(out, tuple) else (out,)
        if all(each.dtype == dtype and each.flags.c_contiguous for each in outs) and not any(
                xp.may_share_memory(array, each) for array in arrays[:len(seen)] for each in outs):
            compute(arrays, [each.reshape(target) for each, target in zip(outs, targets)])
        else:
            run_loop(loop, xp, arrays, outs, computed_in(loop, dtypes, [each.dtype for each in outs]))
        return out

    if count == len(shapes) == 1 and len(parts) == 1:
        (place,), (target,), (shape,) = seen, targets, reshaped
        code, keeps = rows.expression.code, shape is None
        small = math.prod(target) * dtype.itemsize < LARGE
        make: Callable[..., Array] = empty if xp is np and not small else xp.empty

        def run_one(array: Array, out: Array | None = None) -> Array:
            if out is not None:
                return write((array,), out)
            made = make(target, dtype)
            tile(array if place is None else array.reshape(place), made)
            return made if shape is None else made.reshape(shape)

        if xp is np and layout.reduces and place is None and loop.axes and len(code) == 1 and (
                code[0][0].name in REDUCTIONS):
            reduce, axes = _reduction(np, code[0][0].name), loop.axes if len(loop.axes) > 1 else loop.axes[0]
            sums = dtype if layout.converted[0] and code[0][0].name in ("row_sum", "row_product") else None
            # A single call computes the result, if the array is contiguous.
            if keeps or len(shapes[0]) == len(target) - len(loop.axes) > 0:
                return lambda array, out=None: (reduce(array, axes, sums, None, keeps)
                                                if out is None and array.flags.c_contiguous else run_one(array, out))
            return lambda array, out=None: (reduce(array, axes, sums, None, True).reshape(shape)
                                            if out is None and array.flags.c_contiguous else run_one(array, out))
        return run_one

    def run_all(*arrays: Array, out: Any = None) -> Any:
        if out is not None:
            return write(arrays, out)
        outs = [empty(target, dtype) if xp is np else xp.empty(target, dtype) for target in targets]
        compute(arrays, outs)
        results = [made if shape is None else made.reshape(shape) for made, shape in zip(outs, reshaped)]
        return results[0] if len(results) == 1 else tuple(results)

    return run_all


def bound_loop(loop: Loop, xp: ArrayModule, ins: Sequence[Array], outs: Sequence[Array | None],
               scratch: Callable[[int, Shape, np.dtype], Array] | None = None) -> list[Callable[[], object]]:
    """Functions without arguments that compute a loop into ``outs``; all arrays are contiguous.

    ``scratch`` gives memory by number, shape and dtype."""
    if _is_empty(loop):
        return []
    rows = loop.rows
    ins = ins[:len(rows.inputs)]
    dtype = computed_in(loop, [array.dtype for array in ins], [None if out is None else out.dtype for out in outs])
    places = [address_of(array) for array in ins]
    shared = tuple([() if out is None else tuple([i for i, place in enumerate(places) if place == address_of(out)])
                    for out in outs])
    layout = _layout_of(loop, [array.dtype for array in ins], [None if out is None else out.dtype for out in outs],
                        dtype, xp, shared)
    tile = _tile(loop, layout, dtype, xp)
    pairs = [(_as_view(loop, array, along), along) for array, along in zip((*ins, *outs), (*rows.inputs, *rows.results))
             if array is not None]
    arrays, row_layouts = [array for array, _ in pairs], [along for _, along in pairs]
    parts = _slices(loop, dtype) if xp is np else [slice(None)]
    calls, endings = _in_parts(loop, tile, arrays, row_layouts, parts, dtype, len(ins), scratch)
    step = functools.partial(run, calls) if len(calls) > 1 else functools.partial(tile, *arrays)
    moved = list(map(own_bytes, arrays))
    step.__dict__.update(read=sum(moved[:len(ins)]), written=sum(moved[len(ins):]))
    return [step, *endings]

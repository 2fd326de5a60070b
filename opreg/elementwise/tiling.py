"""Expressions bound to memory: which ufunc reads and writes which array, in tiles that fit into the cache, on threads.

A schedule says for each instruction of an expression where it reads and writes: inputs, outputs, temporaries and
constants, by index. Bound to arrays it gives a list of functions without arguments. Large arrays are split into tiles;
the same schedule is bound to each tile, and each tile is computed by one thread.
"""

from __future__ import annotations

import functools
import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import threads
from ..core.addresses import address_of
from ..core.cache import cached
from ..core.host_memory import Workspace, empty
from ..core.keys import exact
from ..core.processor import processor
from ..core.rules import as_list
from ..core.spec import Shape, is_single_or_double
from ..typing import Array, ArrayModule
from .expression import IN_TILES, Expression, Primitive
from .output_memory import OutputMemory
from .special_functions import of_equal_zeros

__all__ = ["Schedule", "pieces", "scheduled", "steps"]

# Elements in a tile. An instruction has at most three arrays, and three tiles of float32 fit into a core's second-level
# cache. Smaller tiles would be slower even if more arrays are alive, since threads wait for each other between calls.
# Larger tiles gain nothing from a larger cache.
TILE = min(1 << 16, processor().l2 // 16)
# Threads are used if the number of elements, times the number of arrays and instructions, is at least this: then they
# gain more than the 50 microseconds that it takes to wake them.
_SHARED = 1 << 21
# Up to this number of elements, dividing arrays into tiles costs an eager call more than it gains.
_DIVIDED = 4 * TILE
# From this number of elements on, the computation takes longer than the call.
_MANY = 1 << 11
# These need ``out`` as a keyword in NumPy, and are three times as fast if a constant is given as an array of the other
# operand's shape.
_LIMITS = frozenset({"maximum", "minimum"})
# NumPy's ``clip`` as a ufunc. It takes a quarter of the time of ``maximum`` and ``minimum`` of an array and a number.
_CLIP: np.ufunc = (getattr(np, "_core", None) or np.core).umath.clip


def steps(expression: Expression, xp: ArrayModule, ins: Sequence[Array], out: Array | list[Array] | tuple[Array, ...],
          scratch: Callable[[int, Shape, np.dtype], Array]) -> list[Callable[[], object]]:
    """Functions without arguments that, called in order, compute an expression into ``out``; they read the arrays when
    called.

    Large arrays of the host are computed tile by tile, on several threads if that is faster. One thread computes a
    whole tile, so results do not depend on the number of threads.

    Parameters
    ----------
    expression : Expression
        An expression of as many inputs as there are ``ins``.
    xp : module
        Array module.
    ins, out : arrays
        Arrays of floating-point dtypes; ``out`` is a list for several results. Inputs broadcast to the shape of
        ``out``. An input may share memory with an output only if both begin at the same address, and with the first
        only if it covers exactly the same elements.
    scratch : function of number, shape and dtype
        Gives the memory of a temporary.

    Examples
    --------
    >>> from opreg.elementwise.expression import trace
    >>> out = np.empty(3)
    >>> made = steps(trace(lambda x: x * 2 + 1, 1), np, [np.arange(3.0)], out, lambda n, *spec: np.empty(*spec))
    >>> for step in made:
    ...     _ = step()
    >>> out
    array([1., 3., 5.])
    """
    outs = as_list(out)
    places = [address_of(array) for array in ins]
    shared = tuple([tuple([i for i, place in enumerate(places) if place == goal]) for goal in map(address_of, outs)])
    schedule = scheduled(expression, xp, tuple([array.dtype for array in ins]), tuple([array.dtype for array in outs]),
                         shared, outs[0].size >= _MANY)
    shape, size = outs[0].shape, outs[0].size
    array_count = len(outs) + len(schedule.temporaries) + schedule.filled + sum(array.size == size for array in ins)
    tile = max(1, TILE // 8, TILE * 32 // (max(array_count, 8) * max(outs[0].itemsize, 4)))
    parallel = xp is np and size * (len(expression.code) + array_count) >= _SHARED and threads.count() > 1
    alone = len(schedule.steps) < 2 and not parallel and not schedule.filled
    if xp is not np or size <= tile or alone:
        return schedule.bind([*ins, *outs], shape, scratch, 0)
    tiles = pieces([*[array if array.shape == shape else xp.broadcast_to(array, shape) for array in ins], *outs], tile)
    # Twice as many parts as threads, so that one slow thread does not delay the rest; but not many more than a fourth
    # of the number of tiles, since each part has temporaries of its own.
    count = min(len(tiles), max(2, min(2 * threads.count(), len(tiles) // 4))) if parallel else 1
    parts = [[step for arrays in tiles[part] for step in schedule.bind(arrays, arrays[-1].shape, scratch, i)]
             for i, part in enumerate(threads.split_evenly(len(tiles), count))]
    if count == 1:
        return parts[0]
    return [functools.partial(threads.run, [functools.partial(threads.call_all, part) for part in parts])]


@IN_TILES.provide
def _compute(expression: Expression, arrays: Sequence[Array]) -> Array:
    """The value of an expression on large arrays, which broadcast, in a new array."""
    first, dtype = arrays[0], arrays[0].dtype
    shape = first.shape if len(arrays) == 1 else np.broadcast_shapes(*[array.shape for array in arrays])
    out = empty(shape, dtype)
    if out.size > _DIVIDED:
        for step in steps(expression, np, arrays, out, Workspace().array):
            step()
    else:
        schedule = scheduled(expression, np, (dtype,) * len(arrays), (dtype,), ((),), True)
        schedule.run([*arrays, out], lambda number: empty(shape, schedule.temporaries[number]))
    return out


class Schedule:
    """The arrays that each instruction reads and writes, as indices into inputs, outputs, temporaries and constants.

    Attributes
    ----------
    steps : list
        For each instruction the function, whether its output is a keyword, and a function that picks the arrays it
        reads and the one it writes.
    temporaries : list of dtype
        Dtypes of the temporary arrays; their indices come after those of the outputs.
    constants : list of function of a shape
        Constants as arrays; their indices are negative. ``filled`` is the number of constants that have the full shape.
    fills, copies : list
        Pairs of source and target array, copied before the first step and after the last.

    A schedule is made for the dtypes of inputs and outputs, for the inputs that share memory with each output
    (``shared``), and for many or few elements.
    """

    __slots__ = ("xp", "steps", "temporaries", "constants", "filled", "fills", "copies", "_known", "_free", "_place",
                 "_dtypes", "_last", "_first", "_outputs", "_many")

    def __init__(self, expression: Expression, xp: ArrayModule, ins: Sequence[np.dtype], outs: Sequence[np.dtype],
                 shared: Sequence[Sequence[int]], many: bool):
        code, arity = expression.code, expression.arity
        self.xp, self._many = xp, many
        self.steps: list[tuple[Callable, bool, Callable[[Sequence[Array]], tuple[Array, ...]]]] = []
        self.temporaries: list[np.dtype] = []
        self.constants: list[Callable[[Shape], Array]] = []
        self.filled = 0
        self.fills: list[tuple[int, int]] = []
        self.copies: list[tuple[int, int]] = []
        self._known: dict[object, int] = {}
        self._free: dict[np.dtype, list[int]] = {}
        self._place = list(range(arity))  # register -> array
        self._dtypes = list(ins)
        self._last = {arg: position for position, (_, args) in enumerate(code) for arg in args if arg.__class__ is int}
        self._first = arity + len(outs)  # index of the first temporary
        self._outputs = OutputMemory(expression.results, arity, self._last, shared)
        targets: dict[int | float, int] = {}
        for j, result in enumerate(expression.results):
            if result.__class__ is int and result >= arity:
                targets.setdefault(result, j)
        for position, (prim, args) in enumerate(code):
            self._instruct(position, prim, args, targets.get(arity + position), expression, outs)
        for j, result in enumerate(expression.results):
            if targets.get(result) == j:
                continue
            home = self._constant(result, outs[j]) if isinstance(result, float) else self._place[result]
            # An input is copied before it can be overwritten, unless the copy itself would overwrite another input.
            late = bool(shared[j]) or (isinstance(result, int) and result >= arity)
            (self.copies if late else self.fills).append((home, arity + j))

    def _instruct(self, position: int, prim: Primitive, args: Sequence[int | float], goal: int | None,
                  expression: Expression, outs: Sequence[np.dtype]) -> None:
        """Schedule one instruction; ``goal`` is the output that its result is for, if any."""
        register = expression.arity + position
        source = next(self._dtypes[arg] for arg in args if arg.__class__ is int)
        dtype = source if prim.dtype is None else prim.dtype
        function, named = prim.resolve(self.xp), prim.name in _LIMITS
        bounds = None
        if named and self.xp is np and {*map(type, args)} == {int, float}:
            bounds = _bounds(prim.name, exact(next(arg for arg in args if arg.__class__ is float)), source,
                             args[0].__class__ is float)
        if bounds is not None:
            function, named, args = _CLIP, False, (next(arg for arg in args if arg.__class__ is int), *bounds)
        read = [self._place[arg] if arg.__class__ is int else self._constant(arg, source, named) for arg in args]
        self._release(position, args)
        output = (self._outputs.borrow(register, position, lambda j: outs[j] == dtype) if goal is None else
                  self._outputs.own(register, position))
        if output is not None:
            home = expression.arity + output
        else:
            home = self._temporary(dtype)
            if goal is not None:
                self.copies.append((home, expression.arity + goal))
                self._last[register] = len(expression.code)
        self._place.append(home)
        self._dtypes.append(dtype)
        if self.xp is np and prim.name == "reciprocal":  # the ufunc reciprocal takes twice as long as a division
            function, read = np.divide, [self._constant(1.0, source), *read]
        elif (self.xp is np and prim.name == "positive" and self._many
                and of_equal_zeros("maximum", source) != "first"):
            # The ufunc takes twice as long as these two; its input is never -0.0 here.
            self._add(_CLIP, False, [*read, self._constant(0.0, source), self._constant(1.0, source)], home)
            function, read = np.ceil, [home]
        self._add(function, named, read, home)

    def _add(self, function: Callable, named: bool, read: Sequence[int], home: int) -> None:
        self.steps.append((function, named, operator.itemgetter(*read, home)))

    def _constant(self, value: float, dtype: np.dtype, filled: bool = False) -> int:
        filled = filled and self.xp is np
        key = exact(value), dtype, filled
        if key not in self._known:
            array = self.xp.asarray(value, dtype)
            self.constants.append(functools.partial(_repeated, array.tobytes(), dtype) if filled else
                                  lambda shape: array)
            self.filled += filled
            self._known[key] = -len(self.constants)  # from the end, since the number of constants is not known yet
        return self._known[key]

    def _release(self, position: int, args: Sequence[int | float]) -> None:
        """Free the memory of registers that are read for the last time here."""
        for arg in set(args):
            if arg.__class__ is int and self._last[arg] == position and not self._outputs.give_back(arg) \
                    and self._place[arg] >= self._first:
                self._free.setdefault(self._dtypes[arg], []).append(self._place[arg])

    def _temporary(self, dtype: np.dtype) -> int:
        if not self._free.get(dtype):
            self.temporaries.append(dtype)
            self._free[dtype] = [self._first + len(self.temporaries) - 1]
        return self._free[dtype].pop()

    def run(self, arrays: list[Array], scratch: Callable[[int], Array]) -> None:
        """Run the steps on inputs and outputs, a list that is extended; an input may be a scalar."""
        shape = arrays[-1].shape
        arrays += map(scratch, range(len(self.temporaries)))
        if self.constants:
            arrays += [constant(shape) for constant in reversed(self.constants)]
        for source, target in self.fills:
            arrays[target][...] = arrays[source]
        for function, named, pick in self.steps:
            *read, out = pick(arrays)
            function = _correct_function(function, out)
            if named:
                function(*read, out=out)
            else:
                function(*read, out)
        for source, target in self.copies:
            arrays[target][...] = arrays[source]

    def bind(self, arrays: Sequence[Array], shape: Shape, scratch: Callable[[int, Shape, np.dtype], Array], part: int
             ) -> list[Callable[[], object]]:
        """The steps bound to inputs and outputs; each ``part`` has its own temporaries."""
        count = len(self.temporaries)
        arrays = [*arrays, *[scratch(part * count + i, shape, dtype) for i, dtype in enumerate(self.temporaries)],
                  *[constant(shape) for constant in reversed(self.constants)]]
        bound: list[Callable[[], object]] = [functools.partial(arrays[out].__setitem__, Ellipsis, arrays[source])
                                             for source, out in self.fills]
        for function, named, pick in self.steps:
            *read, out = pick(arrays)
            function = _correct_function(function, out)
            bound.append(functools.partial(function, *read, out=out) if named else
                         functools.partial(function, *read, out))
        return bound + [functools.partial(arrays[out].__setitem__, Ellipsis, arrays[source])
                        for source, out in self.copies]


def _correct_function(function: Callable, out: Array) -> Callable:
    """The function, or a replacement for one that computes wrong results into such an array.

    ``negative`` of NumPy 2.4 is wrong if the output is strided and the input has a stride of 4 elements of 32 bits, or
    8 of 64 bits.
    """
    return _NEGATED if function is np.negative and not out.flags.c_contiguous else function


@cached(256)
def _bounds(name: str, key: Any, dtype: np.dtype, leads: bool) -> tuple[float, float] | None:
    """The bounds for which ``clip`` gives the bits of ``maximum`` or ``minimum`` of data and a constant, which with
    ``leads`` is the first operand; None if there are none. ``key`` is that of the constant."""
    if not is_single_or_double(dtype):
        return None
    number = struct.unpack("d", key[1])[0] if isinstance(key[1], bytes) else key[1]
    bounds = (number, math.inf) if name == "maximum" else (-math.inf, number)
    # The choice between 0.0 and -0.0 depends on the processor.
    constant, data = np.asarray(number, dtype), np.repeat(np.array([0.0, -0.0, math.nan, 1.0, -1.0], dtype), 64)
    expected = getattr(np, name)(*((constant, data) if leads else (data, constant)))
    return bounds if _CLIP(data, *np.array(bounds, dtype)).tobytes() == expected.tobytes() else None


_NEGATED = functools.partial(np.subtract, -0.0)

#: Schedules are cached: equal groups of equal layers, and equal updates, have the same expression and schedule.
scheduled = cached(256)(Schedule)


def _repeated(number: bytes, dtype: np.dtype, shape: Shape) -> Array:
    """A number, repeated to a shape; read-only."""
    size = math.prod(shape)
    return _constant_array(number, dtype, 1 << max(size - 1, 0).bit_length())[:size].reshape(shape)


@cached(32)
def _constant_array(number: bytes, dtype: np.dtype, size: int) -> Array:
    array = np.full(size, np.frombuffer(number, dtype)[0])
    array.flags.writeable = False
    return array


def pieces(arrays: list[Array], tile: int) -> list[list[Array]]:
    """Split arrays of one shape along the leading axes into tiles of ``tile`` elements or fewer.

    Examples
    --------
    >>> [[part.shape for part in piece] for piece in pieces([np.zeros((2, 3))], 4)]
    [[(4,)], [(2,)]]
    """
    last = arrays[-1]
    if last.size <= tile:
        return [arrays]
    if all(array.flags.c_contiguous for array in arrays):
        arrays = [array.reshape(-1) for array in arrays]
    length = arrays[-1].shape[0]
    rows = tile // (last.size // length)
    if not rows:
        return [piece for i in range(length) for piece in pieces([array[i] for array in arrays], tile)]
    return [[array[part] for array in arrays] for part in threads.chunks(length, rows)]

"""Expressions over memory: which ufunc reads and writes which array, in tiles that stay in a cache, on threads.

A schedule says for each instruction of an expression where it reads and writes: inputs, outputs, temporaries and
constants, by number. Bound to arrays it is a list of functions without arguments. Large arrays are cut into tiles, to
each of which the same schedule is bound; a tile is one thread's alone.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from ..core import threads
from ..core.addresses import address_of
from ..core.cache import cached
from ..core.keys import exact
from ..core.processor import processor
from ..core.spec import Shape
from ..typing import Array, ArrayModule
from .expression import Expression, Primitive
from .special_functions import of_equal_zeros

__all__ = ["Schedule", "pieces", "scheduled", "steps"]

# Three arrays of so many float32 numbers, and an instruction has no more, stay in a core's second-level cache. Less
# would be worse even where more are alive: between calls threads wait for each other. More gains nothing where the
# cache is larger.
TILE = min(1 << 16, processor().l2 // 16)
# From so many elements times arrays and instructions on, threads gain more than the 50 microseconds it takes to wake
# them.
_SHARED = 1 << 21
# So many numbers take longer than a call.
_MANY = 1 << 11
# NumPy wants their output named, and is four times as fast when their constant is an array like the other operand.
_LIMITS = frozenset({"maximum", "minimum"})


def steps(expression: Expression, xp: ArrayModule, ins: Sequence[Array], out: Array | list[Array] | tuple[Array, ...],
          scratch: Callable[[int, Shape, np.dtype], Array]) -> list[Callable[[], object]]:
    """Functions without arguments that compute an expression into ``out``, in order; arrays are read when they run.

    Large arrays of the host are worked on a tile at a time, and shared among threads if that pays. One thread
    computes a whole tile, so results do not depend on the number of threads.

    Parameters
    ----------
    expression : Expression
        Of as many arrays as there are ``ins``.
    xp : module
        Array module.
    ins, out : arrays
        Inputs broadcast against ``out``, an array, or a list of them where there are several results; of floating
        dtypes. An input may share memory with the first output if it covers exactly the same elements; no others
        than those of one address may share memory.
    scratch : function of number, shape and dtype
        Memory of its own for temporaries.

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
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    places = [address_of(array) for array in ins]
    shared = tuple([tuple([i for i, place in enumerate(places) if place == goal]) for goal in map(address_of, outs)])
    schedule = scheduled(expression, xp, tuple([array.dtype for array in ins]), tuple([array.dtype for array in outs]),
                          shared, outs[0].size >= _MANY)
    shape, size = outs[0].shape, outs[0].size
    held = len(outs) + len(schedule.temporaries) + schedule.filled + sum(array.size == size for array in ins)
    tile = max(1, TILE // 8, TILE * 32 // (max(held, 8) * max(outs[0].itemsize, 4)))
    parallel = xp is np and size * (len(expression.code) + held) >= _SHARED and threads.count() > 1
    alone = len(expression.code) < 2 and not parallel and not schedule.filled
    if xp is not np or size <= tile or alone:
        return schedule.bind([*ins, *outs], shape, scratch, 0)
    tiles = pieces([*[xp.broadcast_to(array, shape) for array in ins], *outs], tile)
    # Twice as many parts as threads, so that one which is held up does not hold up the rest; but as each part has
    # temporaries of its own, not many more than a fourth of the tiles.
    count = min(len(tiles), max(2, min(2 * threads.count(), len(tiles) // 4))) if parallel else 1
    parts = [[step for arrays in tiles[part] for step in schedule.bind(arrays, arrays[-1].shape, scratch, i)]
             for i, part in enumerate(threads.evenly(len(tiles), count))]
    if count == 1:
        return parts[0]
    return [functools.partial(threads.run, [functools.partial(threads.in_turn, part) for part in parts])]


class Schedule:
    """Places that each instruction reads and writes: indices of arrays, of inputs, outputs, temporaries, constants.

    Attributes
    ----------
    steps : list
        A function, whether its output is named, and what picks the arrays it reads and the one it writes.
    temporaries : list of dtype
        Arrays of memory that is needed in between; their numbers follow those of the outputs.
    constants : list of function of a shape
        Numbers as arrays, counted from the end. ``filled`` is how many of them have the shape.
    fills, copies : list
        From which array to which, before the first step and behind the last.

    It is made for the dtypes of inputs and outputs, for the inputs that lie in the memory of each output (``shared``),
    and for whether the numbers are many.
    """

    __slots__ = ("xp", "steps", "temporaries", "constants", "filled", "fills", "copies", "_known", "_free", "_place",
                 "_dtypes", "_last", "_first", "_lent", "_many")

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
        self._first = arity + len(outs)  # temporary
        self._lent: dict[int, int] = {}  # the registers that live in outputs until their own results come
        # An output may be written from the step on that is the last to read the inputs in its memory.
        opens = [max([self._last.get(i, -1) for i in numbers], default=-2) for numbers in shared]
        targets: dict[int | float, int] = {}
        for j, result in enumerate(expression.results):
            if result.__class__ is int and result >= arity:
                targets.setdefault(result, j)
        for position, (prim, args) in enumerate(code):
            self._instruct(position, prim, args, targets.get(arity + position), opens, expression, outs)
        for j, result in enumerate(expression.results):
            if targets.get(result) == j:
                continue
            home = self._constant(result, outs[j]) if isinstance(result, float) else self._place[result]
            # Inputs are copied before they can be written over, unless the copy itself would do so to another.
            late = opens[j] > -2 or (isinstance(result, int) and result >= arity)
            (self.copies if late else self.fills).append((home, arity + j))

    def _instruct(self, position: int, prim: Primitive, args: Sequence[int | float], goal: int | None,
                  opens: Sequence[int], expression: Expression, outs: Sequence[np.dtype]) -> None:
        """Prepare one instruction, whose result is output ``goal`` or none."""
        register = expression.arity + position
        source = next(self._dtypes[arg] for arg in args if arg.__class__ is int)
        dtype = source if prim.dtype is None else prim.dtype
        function, named = prim.resolve(self.xp), prim.name in _LIMITS
        read = [self._place[arg] if arg.__class__ is int else self._constant(arg, source, named) for arg in args]
        self._release(position, args)
        lender = self._lender(register, dtype, opens, expression, outs) if goal is None else None
        if goal is not None and opens[goal] <= position and goal not in self._lent:
            home = expression.arity + goal
        elif lender is not None:
            home = expression.arity + lender
            self._lent[lender] = register
        else:
            home = self._temporary(dtype)
            if goal is not None:
                self.copies.append((home, expression.arity + goal))
                self._last[register] = len(expression.code)
        self._place.append(home)
        self._dtypes.append(dtype)
        if self.xp is np and prim.name == "reciprocal":  # half as fast as the division
            function, read = np.divide, [self._constant(1.0, source), *read]
        elif (self.xp is np and prim.name == "positive" and self._many
                and of_equal_zeros("maximum", source) != "first"):  # half as fast as two; then no -0.0 comes here
            self._add(np.minimum, True, [*read, self._constant(1.0, source, True)], home)
            function, read = np.ceil, [home]
        self._add(function, named, read, home)

    def _lender(self, register: int, dtype: np.dtype, opens: Sequence[int], expression: Expression,
                outs: Sequence[np.dtype]) -> int | None:
        """The output whose memory a register may have, by preference until the output's own result comes."""
        lenders = [(self._last[register] != final - expression.arity, j) for j, final in enumerate(expression.results)
                   if isinstance(final, int) and register < final and j not in self._lent and dtype == outs[j]
                   and opens[j] <= register - expression.arity and self._last[register] <= final - expression.arity]
        return min(lenders)[1] if lenders else None

    def _add(self, function: Callable, named: bool, read: Sequence[int], home: int) -> None:
        self.steps.append((function, named, operator.itemgetter(*read, home)))

    def _constant(self, value: float, dtype: np.dtype, filled: bool = False) -> int:
        filled = filled and self.xp is np
        key = exact(value), dtype, filled
        if key not in self._known:
            array = self.xp.asarray(value, dtype)
            self.constants.append(functools.partial(_repeated, array) if filled else lambda shape: array)
            self.filled += filled
            self._known[key] = -len(self.constants)  # from the end, where their number is not known yet
        return self._known[key]

    def _release(self, position: int, args: Sequence[int | float]) -> None:
        """Free the memory of what is read for the last time."""
        for arg in set(args):
            if arg.__class__ is int and self._last[arg] == position:
                if arg in self._lent.values():
                    self._lent = {j: register for j, register in self._lent.items() if register != arg}
                elif self._place[arg] >= self._first:
                    self._free.setdefault(self._dtypes[arg], []).append(self._place[arg])

    def _temporary(self, dtype: np.dtype) -> int:
        if not self._free.get(dtype):
            self.temporaries.append(dtype)
            self._free[dtype] = [self._first + len(self.temporaries) - 1]
        return self._free[dtype].pop()

    def run(self, arrays: list[Array], scratch: Callable[[int], Array]) -> None:
        """Take the steps over inputs and outputs at once, whose list becomes longer; an input may be a number."""
        shape = arrays[-1].shape
        arrays += map(scratch, range(len(self.temporaries)))
        if self.constants:
            arrays += [constant(shape) for constant in reversed(self.constants)]
        for source, target in self.fills:
            arrays[target][...] = arrays[source]
        for function, named, pick in self.steps:
            *read, out = pick(arrays)
            function = _right(function, out)
            if named:
                function(*read, out=out)
            else:
                function(*read, out)
        for source, target in self.copies:
            arrays[target][...] = arrays[source]

    def bind(self, arrays: Sequence[Array], shape: Shape, scratch: Callable[[int, Shape, np.dtype], Array], part: int
             ) -> list[Callable[[], object]]:
        """The steps over inputs and outputs, with temporaries of their own for each ``part``."""
        count = len(self.temporaries)
        arrays = [*arrays, *[scratch(part * count + i, shape, dtype) for i, dtype in enumerate(self.temporaries)],
                  *[constant(shape) for constant in reversed(self.constants)]]
        bound: list[Callable[[], object]] = [functools.partial(arrays[out].__setitem__, Ellipsis, arrays[source])
                                 for source, out in self.fills]
        for function, named, pick in self.steps:
            *read, out = pick(arrays)
            function = _right(function, out)
            bound.append(functools.partial(function, *read, out=out) if named else
                         functools.partial(function, *read, out))
        return bound + [functools.partial(arrays[out].__setitem__, Ellipsis, arrays[source])
                        for source, out in self.copies]


def _right(function: Callable, out: Array) -> Callable:
    """The function, or another for one that computes wrongly into such an array.

    ``negative`` of NumPy 2.4 does where the output has strides and the input steps over 4 numbers of 32 bits, or 8 of
    64.
    """
    return _NEGATED if function is np.negative and not out.flags.c_contiguous else function


_NEGATED = functools.partial(np.subtract, -0.0)

#: Equal groups, as those of equal layers, and equal updates have one expression and one schedule.
scheduled = cached(256)(Schedule)


def _repeated(number: Array, shape: Shape) -> Array:
    """An array of one element, to be read alone."""
    size = math.prod(shape)
    return _filled(number.tobytes(), number.dtype, 1 << max(size - 1, 0).bit_length())[:size].reshape(shape)


@cached(32)
def _filled(number: bytes, dtype: np.dtype, size: int) -> Array:
    array = np.full(size, np.frombuffer(number, dtype)[0])
    array.flags.writeable = False
    return array


def pieces(arrays: list[Array], tile: int) -> list[list[Array]]:
    """The arrays, which have one shape, cut into tiles of so many elements along the leading axes.

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
    return [[array[part] for array in arrays] for part in threads.stretches(length, rows)]

"""Products of matrices, and of stacks of them, by oneDNN: in plans whose convolutions it computes, or with a large
product that it multiplies no slower than BLAS.

A plan takes one library's threads for all its products, since those of the other would look out for work beside them.
If our threads compute in between, oneDNN's leave them the cores sooner; it multiplies a stack in one call, adds
a bias as it stores, and finds the same bits with any number of threads more often. BLAS has the plan where it
multiplies faster by a tenth with the threads of the plan, which is tried. So is a copy of a transposed left factor:
where its columns are a page apart they share few places of the first cache, and the library takes twice as long.
A caller that had to wait for threads computes alone for a while, as with BLAS's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from opreg.builtin.matrices.dense import FACTORS, bias_of, factors_of
from opreg.core import threads
from opreg.core.cache import cached
from opreg.core.launch import Call, Rank, reference
from opreg.core.spec import Shape
from opreg.errors import OpError, passing
from opreg.typing import Array

from ... import blas, trials
from .. import engine, matmul, shared_library
from ..primitives import Copy, Product, implementation
from ..shared_library import Library
from . import convolution

__all__ = ["Matrices", "matrices_of"]

_ONEDNN, _BLAS = "oneDNN", "BLAS"
_IN_PLACE, _COPIED = "the product of what lies transposed", "a copy of it and the product"
#: In the memo of a plan: why BLAS multiplies, or nothing where it does not.
_DECIDED = "products by BLAS"
# Multiplications of a product that is worth deciding for a plan, those of one that takes too long to be tried, and
# sides of a matrix that is tried in its place.
_LEAST, _LONG, _SIDE = 1 << 22, 1 << 31, 1024
# Numbers of temporaries: of a copy, and from which on those that the copy needs.
_COPY, _BESIDE = 8, 9

#: Memory for temporaries by number, shape and dtype.
Room: TypeAlias = Callable[[int, Shape, np.dtype], Array]


class _Watched(blas.Watched):
    """A product that one thread and several find to the same bits."""

    __slots__ = ()
    until: ClassVar[float] = 0.0

    def held(self) -> AbstractContextManager[None]:
        return _one_thread()


def _one_thread() -> AbstractContextManager[None]:
    """The library in the calling thread alone, where its threads can be held."""
    openmp = shared_library.openmp()
    return nullcontext() if openmp is None else openmp.one_thread()


@cached(1024)
def _impossible(product: Product, strides: tuple[Shape, ...]) -> str | None:
    """The reason why the library does not multiply such matrices, or None where it does."""
    library = shared_library.library()
    if not isinstance(library, Library):
        return library
    try:
        name = implementation(library, product.describe(library, "forward", strides)[0][0])
    except OpError as error:
        if passing(error):
            raise
        return str(error)
    return f"oneDNN has only {name} for it" if name.startswith("ref") else None


class Matrices(NamedTuple):
    """Operands of a product of matrices, or of stacks of them: factors, bias and output."""

    a: Array
    b: Array
    bias: Array | None
    out: Array

    @property
    def work(self) -> int:
        """How many multiplications it takes."""
        return math.prod(self.a.shape) * self.b.shape[-1]


def matrices_of(call: Call) -> Matrices | str:
    """Operands of a call's product, or the reason why the library does not read them in place."""
    bias, out = bias_of(call), call.outs[0]
    declined = convolution.declined(call, [*call.ins[:2], *bias, out])
    if declined is not None:
        return declined
    factors = factors_of(call)
    if factors is None or len(bias) > 1 or call.attrs.get("alpha", 1.0) != 1.0:
        return "it is more than the product of two of its inputs"
    a, b, shape = factors
    if not all(array.flags.c_contiguous and array.flags.aligned for array in (out, *bias)):
        return "an array does not lie in one piece"
    if a.shape[:-2] != b.shape[:-2] or not (matmul.straight(a) and matmul.straight(b)):
        return "a matrix is not laid out as BLAS reads it"
    return Matrices(a, b, bias[0] if bias else None, out.reshape(shape))


def _accepts(call: Call) -> str | None:
    """The reason why another kernel multiplies; leaves the operands."""
    found = matrices_of(call)
    if isinstance(found, str):
        return found
    if found.work <= matmul.SMALL:
        return "the product is small"
    call.found = found
    return _impossible(*_describe(found)) or _left_to_blas(call, found)


def _left_to_blas(call: Call, found: Matrices) -> str | None:
    """The reason why BLAS multiplies in a plan, which its first large product decides."""
    if convolution.HERE in call.memo:
        return None
    if _DECIDED not in call.memo:
        if found.work < _LEAST or found.a.ndim > 2:
            return "no convolution of this plan runs there, and no large product before it"
        if shared_library.openmp() is None:
            return "the library has no threads to be held"
        if not trials.allowed():
            return "nothing is tried, says OPREG_TUNE"
        choice = _tried(found.a, found.b)
        call.memo[_DECIDED] = choice.reason if choice.way == _BLAS else None
    return call.memo[_DECIDED]


def _tried(a: Array, b: Array) -> trials.Choice:
    """The faster library for products of such matrices, with the threads of a plan."""
    found, layout = _sample(a, b)
    by_blas: Callable[..., object] = blas.multiplier(np, found.a, found.b)
    if isinstance(by_blas, blas.Watched):
        by_blas = by_blas.function
    return trials.faster(f"{layout}: {_ONEDNN} {shared_library.version()} or {_BLAS}", _ONEDNN, _BLAS, {
        _ONEDNN: _by_threads(_bound(found), found), _BLAS: functools.partial(by_blas, found.a, found.b, found.out)},
        apart=True)


def _sample(a: Array, b: Array) -> tuple[Matrices, str]:
    """Matrices like these, with long sides cut where a product takes long, and their layout in words."""
    side = _SIDE if len(a) * a.shape[1] * b.shape[1] > _LONG else max(*a.shape, *b.shape)
    left, right = [blas.noise(tuple([min(size, side) for size in array.shape]), array.strides, array.dtype)
                   for array in (a, b)]
    layout = " and ".join(f"{array.shape} by {array.strides}" for array in (left, right))
    return Matrices(left, right, None, np.empty((len(left), right.shape[1]), np.float32)), layout


def _by_threads(run: Callable[[], object], found: Matrices) -> Callable[[], object]:
    """A product by the threads that a plan gives it: one, if it has no others, or where several find other bits and it
    is not large."""
    several = threads.count() > 1 and (found.work >= blas.LARGE or _same_bits(*_describe(found)))
    return run if several else functools.partial(_alone, run)


def _arranged(found: Matrices, room: Room) -> tuple[Matrices, list[Callable[[], None]]]:
    """Operands as they are multiplied, and what copies the left one before, if it is tried and faster."""
    a, b = found.a, found.b
    if a.ndim > 2 or a.strides[1] <= a.strides[0] or found.work < _LEAST or not trials.allowed():
        return found, []
    sample, layout = _sample(a, b)
    straight, copy = _copied(sample.a, _new)
    product, after = _bound(sample), _bound(sample._replace(a=straight))

    def both() -> None:
        copy()
        after()

    choice = trials.faster(f"{layout}: {_IN_PLACE} or {_COPIED}, {_ONEDNN} {shared_library.version()}", _IN_PLACE,
                           _COPIED, {_IN_PLACE: _by_threads(product, sample), _COPIED: _by_threads(both, sample)})
    if choice.way == _IN_PLACE:
        return found, []
    straight, copy = _copied(a, room)
    return found._replace(a=straight), [copy]


def _copied(a: Array, room: Room) -> tuple[Array, Callable[[], None]]:
    """Memory for a copy of a matrix with its rows in one piece, and a function that copies it there."""
    copy = room(_COPY, a.shape, a.dtype)
    work = engine.Work("forward", Copy(a.shape), tuple([tuple([step // 4 for step in x.strides]) for x in (a, copy)]))
    return copy, work.bind([a, copy], [room(_BESIDE + i, (n,), np.dtype(np.uint8))
                                       for i, n in enumerate(work.nbytes)])


def _describe(found: Matrices) -> tuple[Product, tuple[Shape, ...]]:
    """A product and the strides of its arrays."""
    return Product(found.a.shape, found.b.shape, found.bias is not None), tuple([
        tuple([step // 4 for step in array.strides]) for array in _arrays(found)])


def _arrays(found: Matrices) -> list[Array]:
    """In the library's order; a bias has as many axes as the others."""
    a, b, bias, out = found
    return [a, b, out] if bias is None else [a, b, out, bias.reshape((1,) * (a.ndim - 1) + (-1,))]


def _alone(run: Callable[[], object]) -> None:
    """Call what computes by the library, by this thread."""
    with _one_thread():
        run()


def _new(number: int, shape: Shape, dtype: np.dtype) -> Array:
    """Memory of its own for a temporary."""
    return np.empty(shape, dtype)


def _bound(found: Matrices, room: Room = _new) -> Callable[[], None]:
    """A function that multiplies these matrices; ``room`` gives temporaries by number, shape and dtype."""
    work = engine.Work("forward", *_describe(found))
    return work.bind(_arrays(found), [room(i, (n,), np.dtype(np.uint8)) for i, n in enumerate(work.nbytes)])


@cached(1024)
def _same_bits(product: Product, strides: tuple[Shape, ...]) -> bool:
    """Whether one thread and several find the same product of such matrices."""
    arrays = [blas.noise(shape, steps, np.dtype(np.float32))
              for shape, steps in zip(product.shapes("forward"), strides)]
    a, b, out = arrays[:3]
    run = _bound(Matrices(a, b, arrays[3] if product.bias else None, out))
    run()
    several = out.copy()
    _alone(run)
    return bool((several == out).all())


def _steps(call: Call) -> Callable[[], object]:
    call.memo[convolution.HERE] = True
    found, before = _arranged(call.found, call.scratch)
    product = _bound(found, call.scratch)

    def multiply() -> None:
        for copy in before:
            copy()
        product()

    run: Callable[[], object] = _by_threads(multiply if before else product, found)
    if found.work < blas.LARGE and not isinstance(run, functools.partial):
        run = _Watched(run, found.work)
    instead, _ = reference(call).steps()

    def step() -> None:
        if shared_library.forked():
            for function in instead:
                function()
            return
        run()

    return step


for _op in FACTORS:
    _op.kernel("onednn", bound=True, accepts=_accepts, rank=Rank.LIBRARY)(_steps)

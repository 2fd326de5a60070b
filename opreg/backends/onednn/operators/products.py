"""Products of matrices, and of stacks of them, by oneDNN's threads: in plans whose convolutions use them, or with
products that are worth a second thread.

A plan takes one library's threads for all its products, since those of the other would look out for work beside them.
Where threads of ours compute in between, oneDNN's leave them the cores sooner; it multiplies a stack in one call, adds
a bias as it stores, and finds the same bits with any number of threads more often. BLAS has the plan where one thread
of it multiplies faster by a tenth, which is tried. Whoever has been kept waiting for threads computes alone for a
while, as with BLAS's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, NamedTuple

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
from ..primitives import Product, implementation
from ..shared_library import Library
from . import convolution

__all__ = ["Matrices", "matrices_of"]

_ONEDNN, _BLAS = "oneDNN", "BLAS"
#: In the memo of a plan: why BLAS multiplies, or nothing where it does not.
_DECIDED = "products by BLAS"
# Multiplications of a product that is worth deciding for a plan, and sides of a matrix that is tried in place of a
# larger one.
_LEAST, _SIDE = 1 << 22, 1024


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
    """Why the library does not multiply such matrices, or None where it does."""
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
    """Why another kernel multiplies; leaves what is multiplied."""
    found = matrices_of(call)
    if isinstance(found, str):
        return found
    if found.work <= matmul.SMALL:
        return "the product is small"
    call.found = found
    return _impossible(*_describe(found)) or _left_to_blas(call, found)


def _left_to_blas(call: Call, found: Matrices) -> str | None:
    """Why BLAS multiplies in a plan, which its first large product decides."""
    if convolution.HERE in call.memo:
        return None
    if _DECIDED not in call.memo:
        if found.work < _LEAST or found.a.ndim > 2:
            return "no convolution of this plan runs there, and no large product before it"
        if threads.count() < 2 or shared_library.openmp() is None:
            return "the library has no threads to be held"
        if not trials.allowed():
            return "nothing is tried, says OPREG_TUNE"
        choice = _tried(found.a, found.b)
        call.memo[_DECIDED] = choice.reason if choice.way == _BLAS else None
    return call.memo[_DECIDED]


def _tried(a: Array, b: Array) -> trials.Choice:
    """The faster library for products of such matrices on one thread; long sides are cut for the trial."""
    left, right = [blas.noise(tuple([min(size, _SIDE) for size in array.shape]), array.strides, array.dtype)
                   for array in (a, b)]
    out = np.empty((len(left), right.shape[1]), np.float32)
    run = _bound(Matrices(left, right, None, out))

    layout = " and ".join(f"{array.shape} by {array.strides}" for array in (left, right))
    return trials.faster(f"{layout}: a thread of {_ONEDNN} {shared_library.version()} or {_BLAS}", _ONEDNN, _BLAS, {
        _ONEDNN: functools.partial(_alone, run), _BLAS: functools.partial(blas.matmul_alone, left, right, out)})


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


def _bound(found: Matrices, room: Callable[[int, Shape, np.dtype], Array] = lambda number, shape, dtype: np.empty(
        shape, dtype)) -> Callable[[], None]:
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
    run = _bound(call.found, call.scratch)
    if call.found.work < blas.LARGE:
        run = _Watched(run, call.found.work) if _same_bits(*_describe(call.found)) else functools.partial(_alone, run)
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

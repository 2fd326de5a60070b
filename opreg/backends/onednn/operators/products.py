"""Matrix products, also of stacks, by oneDNN: in plans whose convolutions it computes, or with a large product for
which it is no slower than BLAS; and in every plan, smaller products that it computes faster by a tenth.

A plan uses the threads of one library for all its products, since those of the other would spin beside them. oneDNN has
several advantages: its threads sooner leave the cores to ours; it multiplies a stack in one call; it adds a bias while
it stores the result; and more often its results have the same bits with any number of threads. BLAS is used for the
plan if a trial shows it to be faster by a tenth with the threads of the plan. Each shape of smaller products has a
trial of its own: with the plan's threads of oneDNN if there are any, else with one thread, which in inference reads
weights in oneDNN's layout. Another trial decides whether a transposed left factor is copied first: if its columns are a
page apart, they compete for few lines of the first-level cache, and the library takes twice as long. A caller that had
to wait for threads computes alone for a while, as with BLAS's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from opreg.builtin.matrices.dense import FACTORS, bias_of, factors_of
from opreg.core import host_memory, threads
from opreg.core.cache import cached
from opreg.core.launch import Call, Rank
from opreg.core.spec import Shape
from opreg.core.versions import is_unchanged, write_count
from opreg.errors import OpError, is_transient
from opreg.typing import Array

from ... import blas, trials
from ...blas import SMALL
from .. import engine, shared_library
from ..primitives import Copy, Product, implementation
from ..shared_library import Library
from . import convolution

__all__ = ["Matrices", "matrices_of"]

_ONEDNN, _BLAS = "oneDNN", "BLAS"
_IN_PLACE, _COPIED = "the product of what lies transposed", "a copy of it and the product"
#: A key in the memo of a plan: the reason why BLAS computes its products, or None if it does not.
_DECIDED = "products by BLAS"
# The least number of multiplications of a product that is tried for its plan; the number above which a trial would take
# too long; and the side of the square matrices that are tried instead of such products.
_LEAST, _LONG, _SIDE = 1 << 22, 1 << 31, 1024
# Indices of temporaries: that of a copy, and the first of those that the copy needs.
_COPY, _BESIDE = 8, 9

#: Gives memory for a temporary by index, shape and dtype.
Allocate: TypeAlias = Callable[[int, Shape, np.dtype], Array]


class _ReproducibleProduct(blas.Watched):
    """A product whose bits are the same with one thread and several."""

    __slots__ = ()
    until: ClassVar[float] = 0.0

    def held(self) -> AbstractContextManager[None]:
        return _one_thread()


def _one_thread() -> AbstractContextManager[None]:
    """A context manager that restricts the library to the calling thread, if its threads can be controlled."""
    openmp = shared_library.openmp()
    return nullcontext() if openmp is None else shared_library.OneThread(openmp)


@cached(1024)
def _impossible(product: Product, strides: tuple[Shape, ...]) -> str | None:
    """The reason why the library does not multiply such matrices, or None if it does."""
    library = shared_library.library()
    if not isinstance(library, Library):
        return library
    try:
        name = implementation(library, product.describe(library, "forward", strides)[0][0])
    except OpError as error:
        if is_transient(error):
            raise
        return str(error)
    return f"oneDNN has only {name} for it" if name.startswith("ref") else None


def _is_straight(a: Array) -> bool:
    """Whether a matrix, or each one in a stack, has contiguous rows or columns that do not overlap."""
    if a.ndim > 2:
        return _is_straight(a[(0,) * (a.ndim - 2)]) and not any(step % 4 for step in a.strides)
    (rows, columns), (m, n) = a.strides, a.shape
    return a.flags.aligned and ((columns == 4 and rows % 4 == 0 and rows >= 4 * n)
                                or (rows == 4 and columns % 4 == 0 and columns >= 4 * m))


class Matrices(NamedTuple):
    """The operands of a matrix product, or of a stack of them: factors, bias and output."""

    a: Array
    b: Array
    bias: Array | None
    out: Array

    @property
    def work(self) -> int:
        """The number of multiplications."""
        return math.prod(self.a.shape) * self.b.shape[-1]


def matrices_of(call: Call) -> Matrices | str:
    """The operands of a call's product, or the reason why the library cannot read them in place."""
    bias, out = bias_of(call), call.outs[0]
    declined = convolution.declined(call, [*call.ins[:2], *bias, out])
    if declined is not None:
        return declined
    factors = factors_of(call)
    if factors is None or len(bias) > 1 or call.attrs.get("alpha", 1.0) != 1.0:
        return "it is more than the product of two of its inputs"
    a, b, shape = factors
    if not all(array.flags.c_contiguous and array.flags.aligned for array in (out, *bias)):
        return "an array is not contiguous"
    if a.shape[:-2] != b.shape[:-2] or not (_is_straight(a) and _is_straight(b)):
        return "a matrix is not laid out as BLAS reads it"
    return Matrices(a, b, bias[0] if bias else None, out.reshape(shape))


def _accepts(call: Call) -> str | None:
    """The reason why another kernel computes the product, or None; stores the operands with the call."""
    matrices = matrices_of(call)
    if isinstance(matrices, str):
        return matrices
    if matrices.work <= SMALL:
        return "the product is small"
    call.details = matrices
    return _impossible(*_describe(matrices)) or _left_to_blas(call, matrices)


def _left_to_blas(call: Call, matrices: Matrices) -> str | None:
    """The reason why BLAS computes the products of a plan, or None; the plan's first large product decides."""
    in_plan, small = convolution.HERE in call.memo, _is_small(matrices)
    if in_plan and not (small and shared_library.openmp() is not None and trials.are_allowed()):
        return None
    if small or _DECIDED not in call.memo:
        if matrices.a.ndim > 2:
            return "no convolution of this plan runs there, and no large product before it"
        if shared_library.openmp() is None:
            return "the library has no threads to be held"
        if not trials.are_allowed():
            return "OPREG_TUNE=0 allows no trial"
        choice = _faster_library(matrices.a, matrices.b, in_plan, small and _caches_right(call))
        reason = choice.reason if choice.way == _BLAS else None
        if small:
            return reason
        call.memo[_DECIDED] = reason
    return call.memo[_DECIDED]


def _is_small(matrices: Matrices) -> bool:
    """Whether the product has a trial of its own, and decides for no other."""
    return matrices.work < _LEAST and matrices.a.ndim == 2


def _caches_right(call: Call) -> bool:
    """Whether a plan keeps the right factor in the library's layout, until it is written: a weight, in inference."""
    return (not call.is_train and 1 in call.variables and convolution.HERE not in call.memo
            and call.xp.may_share_memory(call.details.b, call.ins[1]) and is_unchanged(call.details.b, write_count()))


def _faster_library(a: Array, b: Array, in_plan: bool = False, kept: bool = False) -> trials.Choice:
    """The faster library for products of such matrices, with the threads of a plan.

    A small product uses oneDNN's threads, and not BLAS's, if the plan already uses oneDNN (``in_plan``); otherwise it
    uses one thread.
    """
    sample, layout = _sample(a, b)
    run, small = _bound(sample, kept=kept), _is_small(sample)
    by_onednn = functools.partial(_on_one_thread, run) if small and not in_plan else _product_by_threads(run, sample)
    by_blas: Callable[..., object] = blas.matmul_on_one_thread if in_plan else blas.multiplier(np, sample.a, sample.b)
    if isinstance(by_blas, blas.Watched):
        by_blas = by_blas.function
    usual, alternative = (_BLAS, _ONEDNN) if small else (_ONEDNN, _BLAS)
    meanwhile = " computes before" if in_plan else " keeps the right one" if kept else ""
    question = f"{layout}: {usual} or {alternative}, {_ONEDNN} {shared_library.version()}{meanwhile}"
    return trials.faster(question, usual, alternative, {
        _ONEDNN: by_onednn, _BLAS: functools.partial(by_blas, sample.a, sample.b, sample.out)}, apart=True)


def _sample(a: Array, b: Array) -> tuple[Matrices, str]:
    """Matrices like these, with long sides shortened if the product takes long, and their layout as text."""
    side = _SIDE if len(a) * a.shape[1] * b.shape[1] > _LONG else max(*a.shape, *b.shape)
    left, right = [blas.noise(tuple([min(size, side) for size in array.shape]), array.strides, array.dtype)
                   for array in (a, b)]
    layout = " and ".join(f"{array.shape} by {array.strides}" for array in (left, right))
    return Matrices(left, right, None, np.empty((len(left), right.shape[1]), np.float32)), layout


def _product_by_threads(run: Callable[[], object], matrices: Matrices) -> Callable[[], object]:
    """A product by the number of threads that a plan uses for it: by one thread if there is only one, or if several
    give other bits and the product is not large."""
    several = threads.count() > 1 and (matrices.work >= blas.LARGE or _same_bits(*_describe(matrices)))
    return run if several else functools.partial(_on_one_thread, run)


def _arrange(matrices: Matrices, room: Allocate) -> tuple[Matrices, list[Callable[[], None]]]:
    """The operands of the product, and the functions that copy the left one first, if a trial shows that to be
    faster."""
    a, b = matrices.a, matrices.b
    if a.ndim > 2 or a.strides[1] <= a.strides[0] or matrices.work < _LEAST or not trials.are_allowed():
        return matrices, []
    sample, layout = _sample(a, b)
    straight, copy = _copy_before(sample.a, _new)
    product, after = _bound(sample), _bound(sample._replace(a=straight))

    def both() -> None:
        copy()
        after()

    choice = trials.faster(f"{layout}: {_IN_PLACE} or {_COPIED}, {_ONEDNN} {shared_library.version()}", _IN_PLACE,
                           _COPIED, {_IN_PLACE: _product_by_threads(product, sample),
                                     _COPIED: _product_by_threads(both, sample)})
    if choice.way == _IN_PLACE:
        return matrices, []
    straight, copy = _copy_before(a, room)
    return matrices._replace(a=straight), [copy]


def _copy_before(a: Array, room: Allocate) -> tuple[Array, Callable[[], None]]:
    """Memory for a copy of a matrix with contiguous rows, and a function that copies it there."""
    copy = room(_COPY, a.shape, a.dtype)
    work = engine.Work("forward", Copy(a.shape), tuple([tuple([step // 4 for step in x.strides]) for x in (a, copy)]))
    return copy, work.bind([a, copy], [room(_BESIDE + i, (n,), np.dtype(np.uint8))
                                       for i, n in enumerate(work.nbytes)])


def _describe(matrices: Matrices, kept: bool = False) -> tuple[Product, tuple[Shape, ...]]:
    """The geometry of a product and the strides of its arrays."""
    return Product(matrices.a.shape, matrices.b.shape, matrices.bias is not None, kept), tuple([
        tuple([step // 4 for step in array.strides]) for array in _arrays(matrices)])


def _arrays(matrices: Matrices) -> list[Array]:
    """The arrays in the library's order; a bias is reshaped to the rank of the others."""
    a, b, bias, out = matrices
    return [a, b, out] if bias is None else [a, b, out, bias.reshape((1,) * (a.ndim - 1) + (-1,))]


def _on_one_thread(run: Callable[[], object]) -> None:
    """Call a function with the library restricted to this thread."""
    with _one_thread():
        run()


def _new(number: int, shape: Shape, dtype: np.dtype) -> Array:
    """New memory for a temporary."""
    return host_memory.empty(shape, dtype)


def _bound(matrices: Matrices, room: Allocate = _new, kept: bool = False) -> Callable[[], None]:
    """A function that multiplies these matrices; ``room`` gives the memory of temporaries."""
    work = engine.Work("forward", *_describe(matrices, kept))
    return work.bind(_arrays(matrices), [(_new if kept and i == work.kept else room)(i, (n,), np.dtype(np.uint8))
                                         for i, n in enumerate(work.nbytes)], kept)


@cached(1024)
def _same_bits(product: Product, strides: tuple[Shape, ...]) -> bool:
    """Whether one thread and several compute the same product of such matrices bit for bit."""
    arrays = [blas.noise(shape, steps, np.dtype(np.float32))
              for shape, steps in zip(product.shapes("forward"), strides)]
    a, b, out = arrays[:3]
    run = _bound(Matrices(a, b, arrays[3] if product.bias else None, out))
    run()
    several = out.copy()
    _on_one_thread(run)
    return bool((several == out).all())


def _steps(call: Call) -> Callable[[], object]:
    if convolution.HERE not in call.memo and _is_small(call.details):
        product = _bound(call.details, call.scratch, _caches_right(call))
        return engine.step_of(call, functools.partial(_on_one_thread, product))
    call.memo[convolution.HERE] = True
    matrices, before = _arrange(call.details, call.scratch)
    product = _bound(matrices, call.scratch)

    def multiply() -> None:
        for copy in before:
            copy()
        product()

    run: Callable[[], object] = _product_by_threads(multiply if before else product, matrices)
    if matrices.work < blas.LARGE and not isinstance(run, functools.partial):
        run = _ReproducibleProduct(run, matrices.work)
    return engine.step_of(call, run)


for _op in FACTORS:
    _op.kernel("onednn", bound=True, accepts=_accepts, rank=Rank.LIBRARY)(_steps)

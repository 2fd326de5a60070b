"""NumPy's BLAS: how many threads it uses, work shared among our threads while BLAS uses one, and sums in place.

BLAS splits every product among threads of its own, which synchronise at the end of it by spinning: a thread that waits
does not give up its core. If other programs need the cores too, a product of a millisecond takes until the system
schedules all threads: convolutions have been measured 20 times slower. So a convolution is split into parts that each
copy, multiply and add, for our threads: they synchronise once, and a thread without a core does no part.

A product that is a step of its own is different. BLAS's threads start within microseconds as long as they still spin;
ours have to be woken. So large enough products use BLAS's threads, until one takes far longer than the same product
took before: then the calling thread computes all products alone for a while. For some shapes, BLAS with one thread adds
up in another order than with several. Such shapes are found by trying. Their product is computed as the sum of two
products that are the same either way, or always by one thread, so that results are the same in every run. In a stack of
matrices, each product is computed by one of our threads, like the parts of a convolution, since BLAS's threads would
synchronise for every matrix.

Another library whose own threads also spin for a while reports when it has computed, by ``report_other_threads``. For
some time after that, BLAS's threads are not used: if both libraries compute in turn, each waits for cores on which the
other's threads spin.

The number of threads can be set for the OpenBLAS that comes with NumPy, and for others that manage their own threads.
With
any other, parts run one after the other and BLAS splits each product.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, TypeAlias

import numpy as np

from opreg.core import threads
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.spec import Shape
from opreg.core.steps import PlainStep
from opreg.typing import Array, ArrayModule

__all__ = ["Watched", "device_products", "matmul", "matmul_on_one_thread", "multiple", "multiplier",
           "noise", "report_other_threads", "share"]

#: ``matmul`` of two arrays, and optionally the array to write to.
Matmul: TypeAlias = Callable[..., Array]
#: Functions that read and set the number of BLAS's threads.
Control: TypeAlias = tuple[Callable[[], int], Callable[[int], None]]

#: Patterns for the names of OpenBLAS's functions, around a name such as "openblas_set_num_threads".
_NAMES = ("scipy_{}64_", "scipy_{}", "{}64_", "{}")

#: Counts of multiplications: the largest for which OpenBLAS wakes no thread, the least for which it may, and the least
#: for which opreg wakes one.
SMALL, SHARED, LEAST = 1 << 18, 1 << 19, 1 << 24
#: The number of multiplications from which the wait for a thread is short compared to the product.
LARGE = 1 << 26
#: Seconds for which BLAS's threads are not used after another library has computed. Idle threads of either library spin
#: for less, and most programs take less from a backward pass to its updates.
ASIDE = 0.05
#: The number of multiplications in a product with a vector up to which OpenBLAS wakes no thread.
VECTOR = 9216

# Sums over a multiple of this length are split into the same blocks by one thread and by several.
_STEP = 64

# The least number of parts of a stack of products: with fewer, one slow thread would delay the rest.
_PARTS = 8

_clock = time.perf_counter
_OWN_THREADS = 1  # openblas_get_parallel returns it unless the threads are OpenMP's


@functools.cache
def _library() -> tuple[ctypes.CDLL, str] | None:
    """OpenBLAS as NumPy has loaded it, and the pattern of its functions' names; or None."""
    try:
        # Found through a module of NumPy, since another OpenBLAS may be loaded too.
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return None
    for pattern in _NAMES:
        if hasattr(library, pattern.format("openblas_get_parallel")):
            return library, pattern
    return None


@functools.cache
def _functions() -> Control | None:
    """The functions that read and set the number of threads, or None if there are none."""
    loaded = _library()
    if loaded is None:
        return None
    library, pattern = loaded
    parallel, get, change = [getattr(library, pattern.format(f"openblas_{name}"), None)
                             for name in ("get_parallel", "get_num_threads", "set_num_threads")]
    if parallel is None or get is None or change is None or parallel() != _OWN_THREADS:
        return None
    change.restype, change.argtypes = None, [ctypes.c_int]
    return get, change


class _SingleThreaded:
    """Restricts BLAS to the calling thread, until the last ``with`` block has ended."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before = 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.depth:
                get, change = _control()
                self.before = get()
                change(1)
            self.depth += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if not self.depth:
                _, change = _control()
                change(self.before)

    def leave_parent_blocks(self) -> None:
        """In a forked child, end the blocks that threads of the parent were in."""
        depth, before = self.depth, self.before
        self.forget()
        if depth:
            _, change = _control()
            change(before)


@functools.cache
def _control() -> Control:
    """The functions that read and set the number of threads; if there are none, functions that do nothing."""
    return _functions() or (lambda: 1, lambda count: None)


_HOLD = _SingleThreaded()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HOLD.leave_parent_blocks)


#: Functions of an array module that give the ``matmul`` of a back end for its arrays, or None; back ends add theirs.
device_products: list[Callable[[ArrayModule], Matmul | None]] = []


def matmul(xp: ArrayModule, a: Array, b: Array, out: Array | None = None) -> Array:
    """``a @ b`` by one thread of BLAS or more, as BLAS decides; on a device by its back end if that multiplies.

    A product of CuPy's own cannot be a part of a graph that is replayed.
    """
    return np.matmul(a, b, out=out) if xp is np else _on_device(xp)(a, b, out)


@cached(16)
def _on_device(xp: ArrayModule) -> Matmul:
    results = filter(None, (product(xp) for product in device_products))
    return next(results, functools.partial(_by_keyword, xp))


def multiplier(xp: ArrayModule, a: Array, b: Array) -> Matmul:
    """The ``matmul`` for arrays like these; it takes the two and optionally the array to write to."""
    if xp is not np:
        return _on_device(xp)
    if threads.count() < 2 or a.dtype.char not in "fdFD":  # BLAS does not compute this dtype, or has one thread
        return np.matmul
    return _host_multiplier(a.shape, a.strides, b.shape, b.strides, a.dtype)


def _by_keyword(xp: ArrayModule, a: Array, b: Array, out: Array | None = None) -> Array:
    """``matmul`` of a module that takes ``out`` only as a keyword, as CuPy does."""
    return xp.matmul(a, b, out=out)


@cached(1024)
def _host_multiplier(a: Shape, by_a: Shape, b: Shape, by_b: Shape, dtype: np.dtype) -> Matmul:
    work = math.prod(a) * b[-1]
    if len(a) > 2 and a[:-2] == b[:-2] and work >= LEAST and _functions() is not None:
        most = max(a[:-2])
        if most >= threads.count() and work < LARGE * most:
            return functools.partial(_stack_matmul, a.index(most), work)
    if work <= (SMALL if len(a) > 1 else VECTOR) or work >= LARGE:
        return np.matmul
    if len(a) > 1 and work < SHARED:
        return matmul_on_one_thread
    if _same_bits(a, by_a, b, by_b, dtype):
        return Watched(np.matmul, work)
    cut = b[-2] // _STEP * _STEP
    if len(a) == len(b) == 2 and 0 < cut < b[0] and all(
            _same_bits((a[0], k), by_a, (k, b[1]), by_b, dtype) for k in (cut, b[0] - cut)):
        return Watched(functools.partial(_split_product, cut), work)
    return matmul_on_one_thread


def _same_bits(a: Shape, by_a: Shape, b: Shape, by_b: Shape, dtype: np.dtype) -> bool:
    """Whether one thread and several compute the same product bit for bit, for arrays with this layout."""
    left, right = noise(a, by_a, dtype), noise(b, by_b, dtype)
    return bool((matmul_on_one_thread(left, right) == np.matmul(left, right)).all())


def noise(shape: Shape, strides: Shape, dtype: np.dtype) -> Array:
    """An array of varied elements with its axes in the order of these strides."""
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    numbers = np.resize(np.sin(np.arange(1.0, 4096.0)).astype(dtype), [shape[axis] for axis in order])
    return numbers.transpose(np.argsort(order))


def matmul_on_one_thread(a: Array, b: Array, out: Array | None = None) -> Array:
    """``matmul`` by the calling thread alone."""
    with _HOLD:
        return np.matmul(a, b, out)


matmul_on_one_thread.plain = True  # type: ignore[attr-defined]


def _stack_matmul(axis: int, work: int, a: Array, b: Array, out: Array | None = None) -> Array:
    """The products of two stacks of matrices, split along an axis of the stack, by our threads.

    BLAS's threads would synchronise for every matrix.
    """
    if out is None:
        out = np.empty((*a.shape[:-1], b.shape[-1]), np.result_type(a, b))
    count = a.shape[axis]
    parts = min(count, max(_PARTS, threads.count()))
    before = (slice(None),) * axis
    cuts = [(*before, part) for part in threads.split_evenly(count, parts)]
    share(np, [functools.partial(np.matmul, a[cut], b[cut], out[cut]) for cut in cuts], work)
    return out


_stack_matmul.plain = True  # type: ignore[attr-defined]


def _split_product(cut: int, a: Array, b: Array, out: Array | None = None) -> Array:
    """The product of two matrices as the sum of two products."""
    total = np.matmul(a[:, :cut], b[:cut], out)
    return np.add(total, np.matmul(a[:, cut:], b[cut:]), total)


class Watched(PlainStep):
    """A function for arrays of one size that uses a library's threads, unless a call had to wait for them recently.

    The library is BLAS; subclasses are for others. After a call that had to wait, the calling thread computes alone
    for twenty times as long, so at most a twentieth of the time is lost.
    """

    __slots__ = ("function", "limit")
    until: ClassVar[float] = 0.0  # the time from which on the threads are tried again

    def __init__(self, function: Callable[..., object], work: int):
        self.function = function
        self.limit = 1e-3 + work * 1e-9  # seconds; a first estimate, more than most processors need

    def held(self) -> AbstractContextManager[None]:
        """A context manager that restricts the library to the calling thread."""
        return _HOLD

    def __call__(self, *args: object) -> Any:
        kind = type(self)
        begin = _clock()
        alone = begin < kind.until
        if alone:
            with self.held():
                result = self.function(*args)
        else:
            result = self.function(*args)
        end = _clock()
        took = end - begin
        if alone:  # if no other threads ran, the time includes no wait for them
            self.limit = max(self.limit, 2 * took)
        elif took > self.limit:
            kind.until = end + 20 * took
        elif 8 * took + 1e-3 < self.limit:
            self.limit = 8 * took + 1e-3
        return result


def report_other_threads() -> None:
    """Report that the threads of another library have just computed."""
    until = _clock() + ASIDE
    if until > Watched.until:
        Watched.until = until


def share(xp: ArrayModule, parts: Sequence[Callable[[], object]], work: int) -> None:
    """Call all functions, which must not depend on each other, some at the same time.

    They run one after the other if the arrays are not on the host, if BLAS's threads cannot be controlled, or if there
    are fewer functions than threads. ``work`` is the number of multiplications in all of them; if it is small, no other
    thread is woken.
    """
    shared = work >= LEAST and xp is np and len(parts) >= threads.count() > 1 and _functions() is not None
    restricts_blas = shared or (SMALL < work < LEAST and xp is np and threads.count() > 1)
    with _HOLD if restricts_blas else nullcontext():
        threads.run(parts, shared=shared)


# ------------------------------------------------------------------------------------------------- sums


@cached(1024)
def _axpy(dtype: np.dtype, count: int) -> Callable[..., object] | None:
    """BLAS's ``y += a * x`` for vectors of this size, or None if it has none."""
    letter, real = {"float32": ("s", ctypes.c_float), "float64": ("d", ctypes.c_double)}.get(dtype.name, ("", None))
    loaded = _library()
    if real is None or loaded is None:
        return None
    library, pattern = loaded
    function = getattr(library, pattern.format(f"cblas_{letter}axpy"), None)
    if function is None:
        return None
    # Integers of 64 bits; a BLAS that takes 32 bits reads the lower half.
    vector = [ctypes.c_void_p, ctypes.c_int64]
    function.restype, function.argtypes = None, [ctypes.c_int64, real, *vector, *vector]
    return Watched(function, 10 * count)


class Multiple(PlainStep):
    """Adds ``a * x`` to ``y``, in one pass over memory; ``a`` may be changed."""

    __slots__ = ("a", "_function", "_count", "_places", "_arrays")

    def __init__(self, function: Callable[..., object], y: Array, a: float, x: Array):
        self.a, self._function, self._count = a, function, y.size
        self._places, self._arrays = (address_of(x), address_of(y)), (x, y)

    def __call__(self) -> None:
        x, y = self._places
        self._function(self._count, self.a, x, 1, y, 1)


def multiple(y: Array, a: float, x: Array) -> Multiple | None:
    """A function that adds ``a * x`` to ``y`` in place, in one pass over memory; None if BLAS cannot: if it does not
    support the dtype or the order, if ``y`` is read-only, or if ``a`` is zero, since BLAS then adds nothing even if
    ``x`` is not finite. Both are host arrays of one shape that share no memory."""
    function = _axpy(y.dtype, y.size)
    if function is None or not a or x.dtype != y.dtype or not (
            x.flags.c_contiguous and x.flags.aligned and y.flags.carray):
        return None
    return Multiple(function, y, a, x)

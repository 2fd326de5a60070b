"""NumPy's BLAS: how many threads it may take, work shared among ours with BLAS held to one meanwhile, sums in place.

BLAS that shares every product among threads of its own has them meet at the end of each, where the one waits for the
other without letting go of its processor. When other programs want the processors too, a product that takes a
millisecond then takes as long as the system lets them wait: convolutions have been measured 20 times slower. Parts of
a convolution that each copy, multiply and add meet once, and a thread that gets no processor does no part.

A product that is a step of its own is different. BLAS's threads are there within microseconds, as long as they still
look out for work; ours have to be woken. So products that are large enough go to them, until one takes far longer than
the same has taken before: then all are computed by the calling thread for a while. For some shapes BLAS adds up in
another order there. Such products, which are found by trying, are made of two products that are the same either
way, or stay with one thread, so that results are the same in every run. Each matrix of a stack is computed by one
thread of ours, as parts of a convolution are: BLAS's would meet once for every one.

Another library that has threads of its own, which look out for work as well, says when it has computed (``aside``). For
a while BLAS's stay out of its way then: where both compute in turn, each waits for processors that the other holds.

The OpenBLAS that NumPy brings, and others with threads of their own kind, can be told how many to use; otherwise
parts run one after the other and BLAS shares each product.
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

__all__ = ["Watched", "add_multiple", "aside", "matmul_alone", "multiple", "multiplier", "noise", "share"]

#: ``matmul`` of two arrays, and perhaps where to write.
Matmul: TypeAlias = Callable[..., Array]
#: Functions that read and set the number of BLAS's threads.
Control: TypeAlias = tuple[Callable[[], int], Callable[[int], None]]

#: How OpenBLAS calls its functions, around "openblas_set_num_threads".
_NAMES = ("scipy_{}64_", "scipy_{}", "{}64_", "{}")

#: Multiplications up to which OpenBLAS wakes no thread, from which it may, and from which we wake one.
SMALL, SHARED, LEAST = 1 << 18, 1 << 19, 1 << 24
#: Multiplications that take so long that waiting for a thread is little beside it.
LARGE = 1 << 26
#: Seconds that BLAS's threads stay out of the way of another library's: longer than either look out for work, and than
#: most programs take between a backward pass and the updates that belong to it.
ASIDE = 0.05
#: Multiplications with a vector up to which OpenBLAS wakes no thread.
VECTOR = 9216

# Sums of a multiple of so many elements are cut into the same blocks by one thread and by several.
_STEP = 64

# Parts of a stack of products: enough for a thread that is held up.
_PARTS = 8

_clock = time.perf_counter
_OWN_THREADS = 1  # what openblas_get_parallel says where they are not those of OpenMP


@functools.cache
def _library() -> tuple[ctypes.CDLL, str] | None:
    """OpenBLAS as NumPy has loaded it, and how its functions are called; or None."""
    try:
        # Looked for in what NumPy has loaded, not in a library of this name.
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return None
    for pattern in _NAMES:
        if hasattr(library, pattern.format("openblas_get_parallel")):
            return library, pattern
    return None


@functools.cache
def _functions() -> Control | None:
    """The two functions, or None where they cannot be had."""
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


class _Hold:
    """BLAS in the calling thread alone, until the last who asked for it has ended."""

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

    def forked(self) -> None:
        """In a child nobody holds what threads of its parent held."""
        depth, before = self.depth, self.before
        self.forget()
        if depth:
            _, change = _control()
            change(before)


@functools.cache
def _control() -> Control:
    """The two functions, or where there are none others that do nothing."""
    return _functions() or (lambda: 1, lambda count: None)


_HOLD = _Hold()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HOLD.forked)


def multiplier(xp: ArrayModule, a: Array, b: Array) -> Matmul:
    """``matmul`` for arrays like these, called with the two and perhaps where to write."""
    if xp is not np:
        return functools.partial(_by_keyword, xp)
    if threads.count() < 2 or a.dtype.char not in "fdFD":  # no work for BLAS
        return np.matmul
    return _host_multiplier(a.shape, a.strides, b.shape, b.strides, a.dtype)


def _by_keyword(xp: ArrayModule, a: Array, b: Array, out: Array | None = None) -> Array:
    """``matmul`` of a module that is told by keyword alone where to write, as CuPy's is."""
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
        return matmul_alone
    if _same_bits(a, by_a, b, by_b, dtype):
        return Watched(np.matmul, work)
    cut = b[-2] // _STEP * _STEP
    if len(a) == len(b) == 2 and 0 < cut < b[0] and all(
            _same_bits((a[0], k), by_a, (k, b[1]), by_b, dtype) for k in (cut, b[0] - cut)):
        return Watched(functools.partial(_in_two, cut), work)
    return matmul_alone


def _same_bits(a: Shape, by_a: Shape, b: Shape, by_b: Shape, dtype: np.dtype) -> bool:
    """Whether one thread and several find the same product of arrays laid out like this, to the bit."""
    left, right = noise(a, by_a, dtype), noise(b, by_b, dtype)
    return bool((matmul_alone(left, right) == np.matmul(left, right)).all())


def noise(shape: Shape, strides: Shape, dtype: np.dtype) -> Array:
    """An array of uneven numbers with its axes in the order of these strides."""
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    numbers = np.resize(np.sin(np.arange(1.0, 4096.0)).astype(dtype), [shape[axis] for axis in order])
    return numbers.transpose(np.argsort(order))


def matmul_alone(a: Array, b: Array, out: Array | None = None) -> Array:
    """``matmul`` by the calling thread."""
    with _HOLD:
        return np.matmul(a, b, out)


matmul_alone.plain = True  # type: ignore[attr-defined]


def _stack_matmul(axis: int, work: int, a: Array, b: Array, out: Array | None = None) -> Array:
    """The products of as many matrices as both have, cut along an axis that counts them, by our threads.

    Threads of BLAS would meet once for every matrix.
    """
    if out is None:
        out = np.empty((*a.shape[:-1], b.shape[-1]), np.result_type(a, b))
    count = a.shape[axis]
    parts = min(count, max(_PARTS, threads.count()))
    before = (slice(None),) * axis
    cuts = [(*before, part) for part in threads.evenly(count, parts)]
    share(np, [functools.partial(np.matmul, a[cut], b[cut], out[cut]) for cut in cuts], work)
    return out


_stack_matmul.plain = True  # type: ignore[attr-defined]


def _in_two(cut: int, a: Array, b: Array, out: Array | None = None) -> Array:
    """The product of two matrices as the sum of two."""
    total = np.matmul(a[:, :cut], b[:cut], out)
    return np.add(total, np.matmul(a[:, cut:], b[cut:]), total)


class Watched(PlainStep):
    """A function for arrays of one size, by a library's threads unless a caller had to wait for them just now.

    The library is BLAS; subclasses are for others.

    A thread that has waited computes alone for twenty times as long, so that at most a twentieth of the time is lost.
    """

    __slots__ = ("function", "limit")
    until: ClassVar[float] = 0.0  # when waiting is worth trying again

    def __init__(self, function: Callable[..., object], work: int):
        self.function = function
        self.limit = 1e-3 + work * 1e-9  # seconds; a first guess, more than most processors need

    def held(self) -> AbstractContextManager[None]:
        """The library in the calling thread alone."""
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
        if alone:  # what takes as long without other threads has not waited for them
            self.limit = max(self.limit, 2 * took)
        elif took > self.limit:
            kind.until = end + 20 * took
        elif 8 * took + 1e-3 < self.limit:
            self.limit = 8 * took + 1e-3
        return result


def aside() -> None:
    """Say that the threads of another library have just computed."""
    until = _clock() + ASIDE
    if until > Watched.until:
        Watched.until = until


def share(xp: ArrayModule, parts: Sequence[Callable[[], object]], work: int) -> None:
    """Call all functions, which must not depend on each other, some at the same time.

    They run one after the other where arrays are another device's, or, with BLAS in threads of its own, where there
    are fewer of them than threads. ``work`` is the number of multiplications in all of them; when there are few no
    other thread is woken.
    """
    shared = work >= LEAST and xp is np and len(parts) >= threads.count() > 1 and _functions() is not None
    held = shared or (SMALL < work < LEAST and xp is np and threads.count() > 1)
    with _HOLD if held else nullcontext():
        threads.run(parts, shared=shared)


# ------------------------------------------------------------------------------------------------- sums


@cached(1024)
def _axpy(dtype: np.dtype, count: int) -> Callable[..., object] | None:
    """BLAS's ``y += a * x`` for vectors of this size, or None where BLAS has none."""
    letter, real = {"float32": ("s", ctypes.c_float), "float64": ("d", ctypes.c_double)}.get(dtype.name, ("", None))
    loaded = _library()
    if real is None or loaded is None:
        return None
    library, pattern = loaded
    function = getattr(library, pattern.format(f"cblas_{letter}axpy"), None)
    if function is None:
        return None
    # Integers of 64 bits: where BLAS takes 32, it reads the lower half.
    vector = [ctypes.c_void_p, ctypes.c_int64]
    function.restype, function.argtypes = None, [ctypes.c_int64, real, *vector, *vector]
    return Watched(function, 10 * count)


def add_multiple(y: Array, a: float, x: Array) -> bool:
    """Add ``a * x`` to ``y`` where it stands, in one pass over memory; say whether that was possible.

    Both are arrays of the host, of one shape, which share no memory. It is not possible where BLAS does not know their
    dtype or order, where ``y`` is read-only, nor with a factor of zero, of which BLAS makes nothing even if ``x`` is
    not finite.
    """
    added = multiple(y, a, x)
    if added is not None:
        added()
    return added is not None


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
    """A function that repeats ``add_multiple`` on these arrays; None where BLAS cannot."""
    function = _axpy(y.dtype, y.size)
    if function is None or not a or x.dtype != y.dtype or not (
            x.flags.c_contiguous and x.flags.aligned and y.flags.carray):
        return None
    return Multiple(function, y, a, x)

"""Texts of functions compiled to machine code with numba, the extra ``opreg[fast]``: when, and where it is kept.

Compiling takes some tenths of a second, and no run waits for it. A step runs NumPy's functions until they have taken
about as long as compiling does; then the function is compiled beside the program, and the step runs it as soon as
it is there. So the results of an executor may change once, in their last bits, from one run to a later one, and at
which run is not the same every time. A program that needs the same bits every time names the kernels that compute:

- ``auto``: as described; the default.
- ``numpy``: those that need no compiler.
- ``numba``: the compiled ones, whatever the size, and ``bind`` waits for the compiler.

The environment variable ``OPREG_JIT`` says so for a process, ``use`` for the executors that are bound while it holds.
How many threads share the work makes no difference to the numbers.

Machine code is kept in files, so that a program finds what an earlier one compiled; ``cache`` says where, and which of
them are believed.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opreg.core import threads
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.steps import JoinableStep, PlainStep, TieredStep
from opreg.elementwise import special_functions as special
from opreg.errors import ArgumentError, did_you_mean, passing
from opreg.typing import Array

from . import gemm, pointers, rnn_cells, simd, values, vector
from .cache import Kept
from .values import FORMATS, FloatValue
from .vector import VECTOR

if TYPE_CHECKING:
    from llvmlite import ir
    from llvmlite.ir import IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.ccallback import CFunc
    from numba.core.types import Type
    from numba.core.typing import Signature
    from numba.core.typing.context import BaseContext as Typing

__all__ = ["CompiledStep", "CompilingStep", "Function", "ThreadedStep", "cut", "function_of", "idle", "mode", "over",
           "runner", "steps", "unavailable", "use", "wait"]

_MODES = ("auto", "numpy", "numba")

# Seconds that NumPy computes what a function would, before it is compiled: about as long as that takes.
_PATIENCE = 0.3
# Numbers times instructions that are worth another thread's while.
_SHARED = 1 << 20


class _Chosen(threading.local):
    name: str | None = None


# No context variable: operators run in a context of their own, see ``mode.quiet``.
_CHOSEN = _Chosen()


def mode() -> str:
    """The kernels that plans bind: ``auto``, ``numpy`` or ``numba``."""
    return _CHOSEN.name or _known(os.environ.get("OPREG_JIT") or "auto")


def _known(name: str) -> str:
    if name not in _MODES:
        raise ArgumentError(f"OPREG_JIT: expected {', '.join(_MODES)}, got {name!r}. {did_you_mean(name, _MODES)}")
    return name


@contextmanager
def use(name: str) -> Iterator[None]:
    """Within a ``with`` block, which kernels steps are bound to.

    Parameters
    ----------
    name : str
        ``auto``, ``numpy`` or ``numba``, as the module says.

    Examples
    --------
    >>> with use("numpy"):
    ...     mode()
    'numpy'
    """
    before, _CHOSEN.name = _CHOSEN.name, _known(name)
    try:
        yield
    finally:
        _CHOSEN.name = before


@functools.cache
def _missing() -> str | None:
    """The reason why there is no numba."""
    return None if importlib.util.find_spec("numba") else "numba is not installed"


def idle() -> str | None:
    """The reason why nothing is compiled at all."""
    return "numpy is asked for" if mode() == "numpy" else _missing()


def unavailable(call: Call) -> str | None:
    """The reason why nothing is compiled for a call, whatever it computes."""
    return idle() or (None if call.xp is np else "only arrays of NumPy")


# ------------------------------------------------------------------------------------------------- compiling


class Function:
    """A function ``kernel(table, first, last)`` of one text and dtype, compiled once a process.

    Attributes
    ----------
    length : int
        How many instructions a number takes, about.
    left : float
        Seconds that NumPy may still compute before it is compiled.
    address : int or None
        Where its machine code is, once there is some.
    """

    __slots__ = ("source", "dtype", "length", "left", "thread", "address", "compiled")

    def __init__(self, source: str, dtype: np.dtype, length: int):
        self.source, self.dtype, self.length = source, dtype, length
        self.left = _PATIENCE
        self.thread: threading.Thread | None = None  # that compiles it, once somebody has asked for that
        self.address: int | None = None
        self.compiled: CFunc | None = None  # what keeps that code alive

    def compile(self) -> None:
        """Compile it, or find it among the files, unless that is done."""
        with _COMPILING:
            if self.address is None:
                compiled = self.compiled = _compile(self.source, self.dtype)
                _caller()  # now, so that no run waits for it
                self.address = compiled.address

    def ask(self) -> None:
        """Have it compiled beside the program."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._work, name="opreg compiler")
            self.thread.start()

    def spent(self, seconds: float) -> None:
        """Count what NumPy took in its place; have it compiled when that is as long as compiling takes."""
        self.left -= seconds
        if self.left < 0:
            self.ask()

    def _work(self) -> None:
        with _COMPILING:
            if not threading.main_thread().is_alive():  # there is no program left to compile for
                return
            try:
                self.compile()
            except Exception as error:
                if passing(error):
                    self.left, self.thread = _PATIENCE, None  # it is asked for again
                    return
                warnings.warn(f"a function could not be compiled, NumPy goes on: {error}", RuntimeWarning, stacklevel=1)


_FUNCTIONS: dict[tuple[str, np.dtype], Function] = {}
_COMPILING = threading.RLock()


def _forked() -> None:
    """A forked child has none of its parent's threads: what they had been asked for is asked for again."""
    _COMPILING.release()
    for function in _FUNCTIONS.values():
        function.thread = None


if hasattr(os, "register_at_fork"):  # a child of a process that was just compiling could never compile
    importlib.import_module("logging")  # numba does, perhaps while a fork waits: half of its handlers would run
    os.register_at_fork(before=_COMPILING.acquire, after_in_parent=_COMPILING.release, after_in_child=_forked)


def function_of(source: str, dtype: np.dtype, length: int) -> Function:
    """The function of a text, one a process."""
    key = source, dtype
    if key not in _FUNCTIONS:
        _FUNCTIONS[key] = Function(source, dtype, length)
    return _FUNCTIONS[key]


def wait() -> None:
    """Return when every function that is being compiled is there."""
    for function in list(_FUNCTIONS.values()):
        if function.thread is not None:
            function.thread.join()


def _compile(source: str, dtype: np.dtype) -> CFunc:
    numba = importlib.import_module("numba")
    types = numba.types
    signature = types.void(types.CPointer(types.int64), types.int64, types.int64)
    # As numba.cfunc makes it, whose cache is pickles that it opens unseen.
    function = importlib.import_module("numba.core.ccallback").CFunc(
        _defined(source, _scope(dtype)), (signature.args, signature.return_type), locals={},
        options={"error_model": "numpy"})
    function._cache = _kept(source, dtype)
    function.compile()
    return function


def _defined(source: str, scope: Mapping[str, object]) -> Callable[..., None]:
    """The Python function of a text."""
    namespace = {**scope, "__name__": __name__}  # numba looks it up by its module
    exec(compile(source, "<compiled>", "exec"), namespace)
    kernel = namespace["kernel"]
    assert callable(kernel)
    return kernel


@functools.cache
def _version() -> bytes:
    """Facts that the machine code of a text depends on beside signature and processor."""
    numba = importlib.import_module("numba")
    files = __file__, *(str(module.__file__) for module in (values, vector, simd, rnn_cells, pointers, gemm, special))
    zeros = [special.of_equal_zeros(name, dtype) for name in ("maximum", "minimum") for dtype in FORMATS]
    parts = [numba.__version__.encode(), repr(zeros).encode(), *(Path(file).read_bytes() for file in files)]
    return hashlib.sha256(b"\0".join(parts)).digest()


def _kept(source: str, dtype: np.dtype) -> Kept:
    """Cache entry for the machine code of a text."""
    return Kept(_version() + dtype.name.encode() + source.encode())


if TYPE_CHECKING:
    Emitted = tuple[Signature, Callable[..., Value]]  # what an intrinsic of numba returns


def _fill_registers(function: ir.Function) -> None:
    """Have loops of a function vectorised for registers of 64 bytes where there are such.

    For most processors the compiler prefers half of them, as what little would be gained elsewhere may cost clock.
    """
    if simd.register_bytes() == 64:
        set.add(function.attributes, '"prefer-vector-width"="512"')  # ``add`` has no word for attributes with values


@cached(16)
def _scope(dtype: np.dtype) -> dict[str, object]:
    """Names that texts use: instructions, ``address``, which makes a pointer of an integer, ``place``, which makes an
    integer of a pointer, and a panel's ``width``."""
    numba = importlib.import_module("numba")
    extending = importlib.import_module("numba.extending")
    kind = FORMATS[dtype]
    number = numba.types.float32 if kind.bits == 32 else numba.types.float64
    pointer = numba.types.CPointer(number)

    def instruction(function: Callable[..., FloatValue]) -> object:
        def emit(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
            return function(*[FloatValue(builder, value, kind) for value in values]).ir

        def unary(typing: Typing, a: Type) -> Emitted:
            return number(number), emit

        def binary(typing: Typing, a: Type, b: Type) -> Emitted:
            return number(number, number), emit

        def ternary(typing: Typing, a: Type, b: Type, c: Type) -> Emitted:
            return number(number, number, number), emit

        return extending.intrinsic((unary, binary, ternary)[len(inspect.signature(function).parameters) - 1])

    def address(typing: Typing, integer: Type) -> Emitted:  # numba has no pointers from integers of its own
        def emit(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
            _fill_registers(builder.function)
            return builder.inttoptr(values[0], context.get_value_type(pointer))

        return pointer(numba.types.int64), emit

    def place(typing: Typing, integer: Type) -> Emitted:
        def emit(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
            return builder.sitofp(values[0], context.get_value_type(number))

        return number(numba.types.int64), emit

    functions = {**VECTOR, "plus": vector.plus, "times": vector.times, "largest": vector.largest}
    return {"address": extending.intrinsic(address), "place": extending.intrinsic(place), "width": gemm.width(dtype),
            **pointers.access(dtype),
            **{make.__name__: make(dtype) for make in (gemm.product, gemm.transposed, gemm.pack, gemm.turned)},
            **{name: instruction(function) for name, function in functions.items()},
            **{name: simd.row(step, dtype) for name, step in rnn_cells.STEPS.items()}}


_CALLER = """\
def kernel(calls, count):
    for i in range(count):
        call(calls + 32 * i)
"""


@functools.cache
def _caller() -> Callable[[int, int], None]:
    """A function that calls ``count`` functions one after the other without the GIL.

    From the address ``calls`` on there are four integers for each: the addresses of the function and of its table,
    and from where to where it computes. Python calls this as it calls its own functions; by ctypes a single call with
    three arguments takes four times as long.
    """
    numba = importlib.import_module("numba")
    ir = importlib.import_module("llvmlite.ir")
    word = ir.IntType(64)
    words = word.as_pointer()
    prototype = ir.FunctionType(ir.VoidType(), [words, word, word]).as_pointer()

    def call(typing: Typing, place: Type) -> Emitted:
        def emit(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
            start = builder.inttoptr(values[0], words)
            function, table, first, last = [builder.load(builder.gep(start, [ir.Constant(word, i)])) for i in range(4)]
            builder.call(builder.inttoptr(function, prototype), [builder.inttoptr(table, words), first, last])
            return context.get_dummy_value()

        return numba.types.void(numba.types.int64), emit

    function = _defined(_CALLER, {"call": importlib.import_module("numba.extending").intrinsic(call)})
    dispatcher = numba.njit(nogil=True)(function)
    dispatcher._cache = _kept(_CALLER, np.dtype(np.int64))
    return dispatcher.compile(numba.types.void(numba.types.int64, numba.types.int64))


# --------------------------------------------------------------------------------------------------- running


def runner(function: Function, arrays: Sequence[Array], rest: Sequence[int], total: int, numbers: int
           ) -> Callable[[], None]:
    """A function without arguments that runs a compiled one from 0 to ``total``.

    Its table is the addresses of the arrays, then the ``rest``; so many ``numbers`` are computed for every one of the
    total.
    """
    table = np.array([*map(address_of, arrays), *rest], np.int64)
    keepalive = function, list(arrays), table  # alive as long as what reads them
    return over(function, table, total, total * numbers * function.length, keepalive)


def over(function: Function, table: Array, total: int, work: int, keepalive: object) -> Callable[[], None]:
    """The same of a table; ``work`` is numbers times instructions, ``keepalive`` what has to be alive."""
    # Some more parts than threads, one of which may be kept waiting.
    parts = min(4 * threads.count(), total, work // _SHARED)
    if parts < 2 or threads.count() < 2:
        parts = 1
    calls = cut(function, table, threads.evenly(total, parts), keepalive)
    return ThreadedStep(calls) if parts > 1 else calls[0]


def cut(function: Function, table: Array, parts: Sequence[slice], keepalive: object) -> list[CompiledStep]:
    """Calls of a compiled one, one for each part; they may run at the same time."""
    return [CompiledStep(np.array([[function.address, address_of(table), part.start, part.stop]], np.int64), keepalive)
            for part in parts]


class CompiledStep(JoinableStep):
    """Compiled functions, each over arrays of its own, one after the other.

    Attributes
    ----------
    calls : array of int64
        A row for each, as ``_caller`` reads it.
    keepalive
        What has to be alive for that.
    run : function
        Calls them; it holds nothing alive.
    """

    __slots__ = ("calls", "keepalive", "run")

    def __init__(self, calls: Array, keepalive: object):
        self.calls, self.keepalive = calls, keepalive
        self.run = functools.partial(_caller(), address_of(calls), len(calls))

    def __call__(self) -> None:
        self.run()

    def join(self, following: Sequence[CompiledStep]) -> CompiledStep:
        """Each further function costs a few nanoseconds, not a call of Python."""
        if not following:
            return self
        steps = (self, *following)
        return CompiledStep(np.concatenate([step.calls for step in steps]), steps)


class ThreadedStep(PlainStep):
    """A compiled function over parts of its arrays, side by side."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[CompiledStep]):
        self.parts = parts

    def __call__(self) -> None:
        threads.run(self.parts, apart=True)


class CompilingStep(TieredStep):
    """A step that runs NumPy's functions until its own is compiled, which is ``made`` then."""

    __slots__ = ("steps", "function", "make", "made")

    def __init__(self, steps: Sequence[Callable[[], object]], function: Function,
                 make: Callable[[], Callable[[], object]]):
        self.steps, self.function, self.make = steps, function, make
        self.made: Callable[[], object] | None = None

    def __call__(self) -> None:
        if self.made is None:
            self._wait()
        else:
            self.made()

    def _wait(self) -> None:
        function = self.function
        if function.address is not None:
            self.made = self.make()
            self.steps = ()
            self.made()
            return
        start = time.perf_counter()
        for step in self.steps:
            step()
        function.spent(time.perf_counter() - start)


def steps(function: Function, make: Callable[[], Callable[[], object]],
          numpy: Callable[[], Sequence[Callable[[], object]]]) -> list[Callable[[], object]]:
    """The steps of a bound kernel.

    ``make`` makes a function without arguments of the compiled one, and ``numpy`` the steps until there is one.
    """
    if mode() == "numba":
        function.compile()
    if function.address is not None:
        return [make()]
    return [CompilingStep(numpy(), function, make)]

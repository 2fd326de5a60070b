"""Generated functions compiled to machine code with numba, the extra ``opreg[fast]``: when they are compiled, and how
they run.

Compiling takes some tenths of a second, and no run waits for it. A step runs NumPy's functions until they have taken
about as long as compiling does. Then the function is compiled in another thread, and the step uses it as soon as it is
ready. So the results of an executor may change once, in their last bits, and not at the same run every time. A program
that needs the same bits every time chooses a mode:

- ``auto``: as described; the default.
- ``numpy``: only kernels that need no compiler.
- ``numba``: compiled kernels for arrays of any size; ``bind`` waits for the compiler.

The environment variable ``OPREG_JIT`` sets the mode of a process, ``use`` that of executors bound in its ``with``
block. Results do not depend on the number of threads.

Machine code is cached in files for later programs; see ``cache``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from opreg.core import threads
from opreg.core.addresses import address_of
from opreg.core.cache import Recent, cached
from opreg.core.chosen import Chosen
from opreg.core.launch import Call
from opreg.core.steps import JoinableStep, PlainStep, TieredStep
from opreg.elementwise import special_functions as special
from opreg.errors import ArgumentError, did_you_mean, is_transient
from opreg.typing import Array

from ..rnn_cells import CELLS
from . import gemm, pointers, simd, values, vector
from .cache import CodeFile
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

__all__ = ["CompiledStep", "CompilingStep", "Function", "ThreadedStep", "calls_of_parts", "function_of",
           "idle_reason", "mode", "runner", "steps", "table_runner", "unavailable", "use", "wait"]

_MODES = ("auto", "numpy", "numba")

# The seconds that NumPy computes a function before it is compiled: about the time of compiling.
_PATIENCE = 0.3
# Another thread is used for at least this number of elements times instructions.
_SHARED = 1 << 20


_CHOSEN: Chosen[str] = Chosen()


def mode() -> str:
    """The mode by which plans choose kernels: ``auto``, ``numpy`` or ``numba``."""
    return _CHOSEN.value or _known(os.environ.get("OPREG_JIT") or "auto")


def _known(name: str) -> str:
    if name not in _MODES:
        raise ArgumentError(f"OPREG_JIT: expected {', '.join(_MODES)}, got {name!r}. {did_you_mean(name, _MODES)}")
    return name


def use(name: str) -> AbstractContextManager[None]:
    """Set the mode by which kernels are chosen, within a ``with`` block.

    Parameters
    ----------
    name : str
        ``auto``, ``numpy`` or ``numba``, see the module's docstring.

    Examples
    --------
    >>> with use("numpy"):
    ...     mode()
    'numpy'
    """
    return _CHOSEN.override(_known(name))


@functools.cache
def _missing() -> str | None:
    """The reason why numba cannot be used, or None."""
    return None if importlib.util.find_spec("numba") else "numba is not installed"


def idle_reason() -> str | None:
    """The reason why this process compiles nothing, or None."""
    return "OPREG_JIT=numpy forbids it" if mode() == "numpy" else _missing()


def unavailable(call: Call) -> str | None:
    """The reason why no kernel of numba accepts a call, independent of its operator, or None."""
    return idle_reason() or (None if call.xp is np else "it computes only arrays of NumPy")


# ------------------------------------------------------------------------------------------------- compiling


class Function:
    """A function ``kernel(table, first, last)`` of one text and dtype, compiled once and shared.

    Attributes
    ----------
    length : int
        About how many instructions it runs for an element.
    left : float
        How many more seconds NumPy computes before the function is compiled.
    address : int or None
        The address of its machine code, once it is compiled.
    """

    __slots__ = ("source", "dtype", "length", "left", "thread", "address", "compiled")

    def __init__(self, source: str, dtype: np.dtype, length: int):
        self.source, self.dtype, self.length = source, dtype, length
        self.left = _PATIENCE
        self.thread: threading.Thread | None = None  # the thread that compiles it, after a request
        self.address: int | None = None
        self.compiled: CFunc | None = None  # owns the machine code

    def compile(self) -> None:
        """Compile the function, or load its machine code from the cache, unless the address is known."""
        with _COMPILING:
            if self.address is None:
                compiled = self.compiled = _compile(self.source, self.dtype)
                _caller()  # compiled here, so that no run waits for it
                self.address = compiled.address

    def request(self) -> None:
        """Let another thread compile the function."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._work, name="opreg compiler")
            self.thread.start()

    def add_numpy_time(self, seconds: float) -> None:
        """Count the time that NumPy took in place of the function. If the sum is as long as compiling takes, another
        thread compiles it."""
        self.left -= seconds
        if self.left < 0:
            self.request()

    def _work(self) -> None:
        with _COMPILING:
            if not threading.main_thread().is_alive():  # the program is ending
                return
            try:
                self.compile()
            except Exception as error:
                if is_transient(error):
                    self.left, self.thread = _PATIENCE, None  # so that it can be requested again
                    return
                warnings.warn(f"a function could not be compiled, and NumPy computes "
                              f"it instead: {error}", RuntimeWarning, stacklevel=1)


_FUNCTIONS = Recent(1024, "functions for numba")
_COMPILING = threading.RLock()


def _forget_compilations() -> None:
    """In a forked child, let functions be requested again that threads of the parent were compiling: the child has none
    of these threads."""
    _COMPILING.release()
    for function in _FUNCTIONS.entries():
        function.thread = None


if hasattr(os, "register_at_fork"):  # otherwise a child forked during a compilation could never compile
    if _missing() is None:
        # ``logging`` registers handlers for forks; imported by numba while a fork waits, only half of them would run.
        importlib.import_module("logging")
    os.register_at_fork(before=_COMPILING.acquire, after_in_parent=_COMPILING.release,
                        after_in_child=_forget_compilations)


def function_of(source: str, dtype: np.dtype, length: int) -> Function:
    """The function of a text, shared by all plans."""
    key = source, dtype
    function: Function | None = _FUNCTIONS[key]
    if function is None:
        function = Function(source, dtype, length)
        _FUNCTIONS.keep(key, function)
    return function


def wait() -> None:
    """Wait until all functions that are being compiled are ready."""
    for function in _FUNCTIONS.entries():
        if function.thread is not None:
            function.thread.join()


def _compile(source: str, dtype: np.dtype) -> CFunc:
    numba = importlib.import_module("numba")
    types = numba.types
    signature = types.void(types.CPointer(types.int64), types.int64, types.int64)
    # This does what numba.cfunc does, but without its cache, which loads pickles unchecked.
    function = importlib.import_module("numba.core.ccallback").CFunc(
        _define_function(source, _scope(dtype)), (signature.args, signature.return_type), locals={},
        options={"error_model": "numpy"})
    function._cache = _code_file(source, dtype)
    function.compile()
    return function


def _define_function(source: str, scope: Mapping[str, object]) -> Callable[..., None]:
    """The Python function that a text defines."""
    namespace = {**scope, "__name__": __name__}  # numba looks the function up by its module
    exec(compile(source, "<compiled>", "exec"), namespace)
    kernel = namespace["kernel"]
    assert callable(kernel)
    return kernel


@functools.cache
def _version() -> bytes:
    """A hash of everything else that the machine code of a text depends on, except signature and processor."""
    import hashlib
    from pathlib import Path

    numba = importlib.import_module("numba")
    files = __file__, *(str(module.__file__) for module in (values, vector, simd, pointers, gemm, special))
    zeros = [special.of_equal_zeros(name, dtype) for name in ("maximum", "minimum") for dtype in FORMATS]
    cells = [(name, cell, cell.results) for name, cell in CELLS.items()]
    parts = [numba.__version__.encode(), repr((zeros, cells)).encode(), *(Path(file).read_bytes() for file in files)]
    return hashlib.sha256(b"\0".join(parts)).digest()


def _code_file(source: str, dtype: np.dtype) -> CodeFile:
    """The cache entry for the machine code of a text."""
    return CodeFile(_version() + dtype.name.encode() + source.encode())


if TYPE_CHECKING:
    Emitted = tuple[Signature, Callable[..., Value]]  # the result of a function decorated with numba's ``intrinsic``


def _fill_registers(function: ir.Function) -> None:
    """Let loops of a function use vector registers of 64 bytes, if the processor has them.

    For most processors the compiler prefers 32 bytes by default, since wide registers may lower the clock rate.
    """
    if simd.register_bytes() == 64:
        set.add(function.attributes, '"prefer-vector-width"="512"')  # the method ``add`` rejects attributes with values


@cached(16)
def _scope(dtype: np.dtype) -> dict[str, object]:
    """The names that texts use: instructions; ``address``, which converts an integer to a pointer; ``place``, which
    converts an index to an element of the dtype; and ``width``, the width of a panel."""
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

    def address(typing: Typing, integer: Type) -> Emitted:  # numba itself cannot convert integers to pointers
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
            **{make.__name__: make(dtype) for make in (gemm.product, gemm.transposed, gemm.pack, gemm.pack_transpose)},
            **{name: instruction(function) for name, function in functions.items()},
            **{name: simd.row(cell, dtype) for name, cell in CELLS.items()}}


_CALLER = """\
def kernel(calls, count):
    for i in range(count):
        call(calls + 32 * i)
"""


@functools.cache
def _caller() -> Callable[[int, int], None]:
    """A function that calls ``count`` functions one after the other without Python's global lock.

    At the address ``calls`` there are four integers for each function: its address, the address of its table, and the
    first and last index that it computes. Python calls this like its own functions; through ctypes, a single call with
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

    function = _define_function(_CALLER, {"call": importlib.import_module("numba.extending").intrinsic(call)})
    dispatcher = numba.njit(nogil=True)(function)
    dispatcher._cache = _code_file(_CALLER, np.dtype(np.int64))
    return dispatcher.compile(numba.types.void(numba.types.int64, numba.types.int64))


# --------------------------------------------------------------------------------------------------- running


def runner(function: Function, arrays: Sequence[Array], extents: Sequence[int], total: int, numbers: int
           ) -> Callable[[], None]:
    """A function without arguments that runs a compiled one from 0 to ``total``.

    Its table holds the addresses of the arrays, then the ``extents``. For each index up to ``total`` it computes
    ``numbers`` elements.
    """
    table = np.array([*map(address_of, arrays), *extents], np.int64)
    # the machine code reads their memory by address, so references keep them alive
    keepalive = function, list(arrays), table
    return table_runner(function, table, total, total * numbers * function.length, keepalive)


def table_runner(function: Function, table: Array, total: int, work: int, keepalive: object) -> Callable[[], None]:
    """A ``runner`` for a given table. ``work`` is the number of elements times instructions, ``keepalive`` holds
    references to everything that the function reads."""
    # More parts than threads, so that one slow thread does not delay the rest.
    parts = min(4 * threads.count(), total, work // _SHARED)
    if parts < 2 or threads.count() < 2:
        parts = 1
    calls = calls_of_parts(function, table, threads.split_evenly(total, parts), keepalive)
    return ThreadedStep(calls) if parts > 1 else calls[0]


def calls_of_parts(function: Function, table: Array, parts: Sequence[slice], keepalive: object) -> list[CompiledStep]:
    """Calls of a compiled function, one for each part; they may run at the same time."""
    return [CompiledStep(np.array([[function.address, address_of(table), part.start, part.stop]], np.int64), keepalive)
            for part in parts]


class CompiledStep(JoinableStep):
    """Calls of compiled functions, one after the other, each with its own arrays.

    Attributes
    ----------
    calls : array of int64
        A row for each call, as ``_caller`` reads it.
    keepalive
        References to all that the functions read.
    run : function
        Makes the calls; it holds no references.
    """

    __slots__ = ("calls", "keepalive", "run")

    def __init__(self, calls: Array, keepalive: object):
        self.calls, self.keepalive = calls, keepalive
        self.run = functools.partial(_caller(), address_of(calls), len(calls))

    def __call__(self) -> None:
        self.run()

    def join(self, following: Sequence[CompiledStep]) -> CompiledStep:
        """Join with further steps: each of these then costs a few nanoseconds, not a Python call."""
        if not following:
            return self
        steps = (self, *following)
        return CompiledStep(np.concatenate([step.calls for step in steps]), steps)


class ThreadedStep(PlainStep):
    """A compiled function called for parts of its arrays, on several threads."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[CompiledStep]):
        self.parts = parts

    def __call__(self) -> None:
        threads.run(self.parts, apart=True)


class CompilingStep(TieredStep):
    """A step that runs NumPy's functions until its function is compiled, and then the compiled step, ``made``."""

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
        threads.call_all(self.steps)
        function.add_numpy_time(time.perf_counter() - start)


def steps(function: Function, make: Callable[[], Callable[[], object]],
          numpy: Callable[[], Sequence[Callable[[], object]]]) -> list[Callable[[], object]]:
    """The steps of a bound kernel.

    ``make`` gives the compiled step, and ``numpy`` the steps to run until the function is compiled.
    """
    if mode() == "numba":
        function.compile()
    if function.address is not None:
        return [make()]
    return [CompilingStep(numpy(), function, make)]

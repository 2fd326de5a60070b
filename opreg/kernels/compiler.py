"""Texts of functions compiled to machine code with numba, the extra ``opreg[fast]``: when, and where it is kept.

Compiling takes some tenths of a second, and no run waits for it. A step runs NumPy's functions until they have taken
about as long as compiling does; then the function is compiled beside the program, and the step runs it as soon as
it is there. So the results of an executor may change once, in their last bits, from one run to a later one, and at
which run is not the same every time. Who needs the same bits every time says which kernels compute:

- ``auto``: as described; the default.
- ``numpy``: those that need no compiler.
- ``numba``: the compiled ones, whatever the size, and ``bind`` waits for the compiler.

The environment variable ``OPREG_JIT`` says so for a process, ``use`` for the executors that are bound while it holds.
How many threads share the work makes no difference to the numbers.

Machine code is kept in files, under ``OPREG_CACHE_DIR`` or else the user's directory for caches (``opreg/jit`` in
it), so that a program finds what an earlier one compiled. The directory is made when there is something to keep;
where it cannot be written, nothing is kept. It may be deleted at any time. It has to be as trustworthy as the program
itself: what it holds is executed.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from .. import special, threads
from ..errors import ArgumentError, did_you_mean
from ..files import whole
from ..op import Call
from . import vector
from .vector import KINDS, VECTOR

__all__ = ["Function", "function_of", "mode", "runner", "steps", "unavailable", "use", "wait"]

_MODES = ("auto", "numpy", "numba")

# Seconds that NumPy computes what a function would, before it is compiled: about as long as that takes.
_PATIENCE = 0.3
# Numbers times instructions that are worth another thread's while.
_SHARED = 1 << 20

_CHOSEN: ContextVar[str | None] = ContextVar("kernels of compiled functions", default=None)


def mode() -> str:
    """Which kernels are bound: ``auto``, ``numpy`` or ``numba``."""
    return _CHOSEN.get() or _known(os.environ.get("OPREG_JIT") or "auto")


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
    token = _CHOSEN.set(_known(name))
    try:
        yield
    finally:
        _CHOSEN.reset(token)


@functools.cache
def _missing() -> str | None:
    """Why there is no numba."""
    return None if importlib.util.find_spec("numba") else "numba is not installed"


def unavailable(call: Call) -> str | None:
    """Why nothing is compiled for a call, whatever it computes."""
    if mode() == "numpy":
        return "numpy is asked for"
    return _missing() or (None if call.xp is np else "only arrays of NumPy")


# ------------------------------------------------------------------------------------------------- compiling


class Function:
    """A function ``kernel(table, first, last)`` of one text and dtype, compiled once a process.

    Attributes
    ----------
    length : int
        How many instructions a number takes, about.
    left : float
        Seconds that NumPy may still compute before it is compiled.
    address : function or None
        What is called, once there is something.
    """

    __slots__ = ("source", "dtype", "length", "left", "thread", "address", "held")

    def __init__(self, source: str, dtype: np.dtype, length: int):
        self.source, self.dtype, self.length = source, dtype, length
        self.left = _PATIENCE
        self.thread: threading.Thread | None = None  # that compiles it, once somebody has asked for that
        self.address: Any = None
        self.held: Any = None

    def compile(self) -> None:
        """Compile it, or find it among the files, unless that is done."""
        with _COMPILING:
            if self.address is None:
                self.held = _compile(self.source, self.dtype)
                self.address = _PROTOTYPE(self.held.address)

    def ask(self) -> None:
        """Have it compiled beside the program."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._work, name="opreg compiler")
            self.thread.start()

    def _work(self) -> None:
        with _COMPILING:
            if not threading.main_thread().is_alive():  # there is no program left to compile for
                return
            try:
                self.compile()
            except Exception as error:
                warnings.warn(f"a function could not be compiled, NumPy goes on: {error}", RuntimeWarning, stacklevel=1)


_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)  # calls without the GIL
_FUNCTIONS: dict[tuple[str, np.dtype], Function] = {}
_COMPILING = threading.RLock()


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


def _compile(source: str, dtype: np.dtype) -> Any:
    numba = importlib.import_module("numba")
    types = numba.types
    signature = types.void(types.CPointer(types.int64), types.int64, types.int64)
    path = _kept(source, dtype)
    scope = {**_scope(dtype), "__name__": __name__}  # numba looks for its module
    exec(compile(source, str(path or "<compiled>"), "exec"), scope)
    return numba.cfunc(signature, cache=path is not None, error_model="numpy")(scope["kernel"])


@functools.cache
def _scope(dtype: np.dtype) -> dict[str, Any]:
    """What the texts name: instructions, and ``address``, which makes a pointer of an integer."""
    numba = importlib.import_module("numba")
    extending = importlib.import_module("numba.extending")
    kind = KINDS[dtype]
    number = numba.types.float32 if kind.bits == 32 else numba.types.float64
    pointer = numba.types.CPointer(number)

    def instruction(function: Callable[..., Any]) -> Callable:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return function(*[vector.Number(builder, value, kind) for value in values]).ir

        def one(typing: Any, a: Any) -> Any:
            return number(number), emit

        def two(typing: Any, a: Any, b: Any) -> Any:
            return number(number, number), emit

        def three(typing: Any, a: Any, b: Any, c: Any) -> Any:
            return number(number, number, number), emit

        return extending.intrinsic((one, two, three)[len(inspect.signature(function).parameters) - 1])

    def address(typing: Any, integer: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(pointer))

        return pointer(numba.types.int64), emit

    known = {**VECTOR, "plus": vector.plus, "largest": vector.largest}
    return {"address": extending.intrinsic(address), **{name: instruction(f) for name, f in known.items()}}


# --------------------------------------------------------------------------------------------- kept in files


def _directory() -> Path:
    """Where machine code is kept."""
    chosen = os.environ.get("OPREG_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "opreg" / "jit"


@functools.cache
def _version() -> bytes:
    """What the machine code of a text depends on beside the processor, which numba keeps apart itself."""
    numba = importlib.import_module("numba")
    parts = [numba.__version__.encode(), *(Path(str(module.__file__)).read_bytes() for module in (vector, special))]
    return hashlib.sha256(b"\0".join(parts)).digest()


def _kept(source: str, dtype: np.dtype) -> Path | None:
    """The file of a text, beside which numba keeps its machine code; None where nothing can be kept."""
    with suppress(OSError, RuntimeError):
        digest = hashlib.sha256(_version() + dtype.name.encode() + source.encode()).hexdigest()[:32]
        path = _directory() / f"{digest}.py"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole(path) as file:
                file.write(source.encode())
        (path.parent / "__pycache__").mkdir(exist_ok=True)
        if os.access(path.parent / "__pycache__", os.W_OK):
            return path
    return None


# --------------------------------------------------------------------------------------------------- running


def runner(function: Function, arrays: Sequence[Any], rest: Sequence[int], total: int, each: int
           ) -> Callable[[], None]:
    """A function without arguments that runs a compiled one from 0 to ``total``.

    Its table is the addresses of the arrays, then the ``rest``; ``each`` numbers are computed for every one of the
    total.
    """
    table = np.array([*[array.__array_interface__["data"][0] for array in arrays], *rest], np.int64)
    held = function, list(arrays), table  # alive as long as what reads them
    place = ctypes.c_void_p(table.__array_interface__["data"][0])
    # Some more parts than threads, one of which may be kept waiting.
    parts = min(4 * threads.count(), total, total * each * function.length // _SHARED)
    if parts < 2 or threads.count() < 2:
        return _Alone(function.address, place, total, held)
    ends = [total * i // parts for i in range(parts + 1)]
    return _Shared(function.address, place, list(itertools.pairwise(ends)), held)


class _Alone:
    """A compiled function over all of its arrays."""

    __slots__ = ("run", "held")

    def __init__(self, address: Any, table: Any, total: int, held: Any):
        self.run, self.held = functools.partial(address, table, 0, total), held

    def __call__(self) -> None:
        self.run()


class _Shared:
    """A compiled function over parts of its arrays, side by side."""

    __slots__ = ("parts", "held")

    def __init__(self, address: Any, table: Any, parts: Sequence[tuple[int, int]], held: Any):
        self.parts, self.held = [functools.partial(address, table, *part) for part in parts], held

    def __call__(self) -> None:
        threads.run(self.parts)


class _Switch:
    """A step that runs NumPy's functions until its own is compiled."""

    __slots__ = ("run", "steps", "function", "make")

    def __init__(self, steps: Sequence[Callable], function: Function, make: Callable[[], Callable]):
        self.steps, self.function, self.make = steps, function, make
        self.run: Callable[[], None] = self._wait

    def __call__(self) -> None:
        self.run()

    def _wait(self) -> None:
        function = self.function
        if function.address is not None:
            self.run = self.make()
            self.steps = ()
            self.run()
            return
        start = time.perf_counter()
        for step in self.steps:
            step()
        function.left -= time.perf_counter() - start
        if function.left < 0:
            function.ask()


def steps(function: Function, make: Callable[[], Callable], numpy: Callable[[], Sequence[Callable]]
          ) -> list[Callable]:
    """The steps of a bound kernel.

    ``make`` makes a function without arguments of the compiled one, and ``numpy`` the steps until there is one.
    """
    if mode() == "numba":
        function.compile()
    if function.address is not None:
        return [make()]
    return [_Switch(numpy(), function, make)]

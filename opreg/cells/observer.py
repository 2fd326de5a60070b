"""Observer: what Python code reads from outside while a function is traced.

A profile hook names each function of the user's that runs. Its byte code says which globals, closure variables and
attributes it loads. Attributes of objects are noted as they are read (``class_hooks``); those of modules, classes and
functions, where no hook can stand, by all names that appear in the code. Each place becomes a comparison. What cannot
be compared is named in a warning, or leaves the function to Python.
"""

from __future__ import annotations

import abc
import builtins
import contextvars
import datetime
import decimal
import enum
import functools
import gc
import importlib.util
import inspect
import io
import os
import random
import sys
import sysconfig
import threading
import time
import types
import weakref
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.array_module import active
from ..core.cache import cached
from ..core.comparisons import ABSENT, BUFFERS, CONTAINERS, MOST_ELEMENTS, PLAIN, elements
from ..core.loads import loads
from ..errors import Where, is_ours
from .class_hooks import hook, hookable, runs_python, unhook
from .initializer import get_seed
from .parameter_container import ParameterContainer
from .reads import TABLES
from .state import STATE, get_context
from .tensor_base import TensorBase

if TYPE_CHECKING:
    from .reads import Reads

__all__ = ["Observer"]

#: Packages that are no user code, besides Python's own modules.
_LIBRARIES = frozenset({"opreg", "numpy", "cupy", "numba", "scipy"})
_STANDARD = tuple({os.path.join(sysconfig.get_paths()[name], "") for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_EXAMPLES = os.path.join("opreg", "examples", "")

#: Functions of Python that answer otherwise each time.
_CLOCKS = {getattr(time, name): f"time.{name}()" for name in dir(time) if name.removesuffix("_ns") in (
    "time", "perf_counter", "monotonic", "process_time", "thread_time")}
#: Functions that read files, what is typed, a setting of the process, or chance.
_READERS = {io.open: "open()", input: "input()", decimal.getcontext: "decimal.getcontext()", np.fromfile: "fromfile()",
            **{getattr(os, name): f"os.{name}()" for name in (
                "access", "listdir", "lstat", "open", "scandir", "stat", "urandom")}}
#: Functions that answer by settings of the process, without reading anything else: they are asked again.
_SETTINGS: dict[Any, str] = {
    os.getcwd: "os.getcwd", gc.isenabled: "gc.isenabled",
    **{getattr(sys, name): f"sys.{name}" for name in (
        "getrecursionlimit", "getswitchinterval", "get_int_max_str_digits") if hasattr(sys, name)},
    **{getattr(np, name): f"np.{name}" for name in ("geterr", "geterrcall", "getbufsize", "get_printoptions")},
    abc.get_cache_token: "abc.get_cache_token", get_context: "get_context", get_seed: "get_seed"}
#: Those of them that are written in Python, by the identity of their code.
_ASKED = {id(code): function for function in _SETTINGS
          if (code := getattr(inspect.unwrap(function), "__code__", None)) is not None}
#: Names by which code reads environment variables, as text or as bytes.
_ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})
_NOW = frozenset({"now", "today", "utcnow"})
#: Names of all these functions, and of those that start programs and receive messages.
_OUTSIDE = frozenset({*(function.__name__ for function in (*_CLOCKS, *_READERS, *_SETTINGS)), *_NOW, "fork_exec",
                      "recv", "recv_into", "recvfrom"})
#: Modules that read source files to show a line of them.
_SHOWING = frozenset({"linecache", "tokenize", "traceback", "warnings"})
_BUILT_IN = frozenset(vars(builtins))
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
#: Names by which code asks a random generator for its state.
_STATES = frozenset({"getstate", "get_state", "bit_generator"})
_DRAWS = ("it draws random numbers from a generator of Python's or NumPy's, which a graph cannot; ops and mx.random "
          "have generators that can")
#: Modules of opreg whose objects, as optimizers and iterators of data, programs read attributes of.
_FLOORS = ("opreg.nn.", "opreg.train.", "opreg.data.", "opreg.examples.")
#: Attributes of a Parameter that are no numbers.
_OF_PARAMETERS = frozenset({"name", "requires_grad"})
#: Names by which code asks an object for its class.
_OF_CLASS = frozenset({"type", "__class__"})
#: Attributes of every Cell, which change together and which few layers read.
_MODES = frozenset({"training", "requires_grad"})
#: Functions that read an attribute whose name is text.
_BY_TEXT = frozenset({"getattr", "hasattr", "vars", "eval", "operator", "attrgetter", "__dict__"})
#: Values of which nothing is read.
_SIMPLE = frozenset({bool, int, float, complex, str, bytes, type(None)})
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)
_FINALIZER = weakref.finalize.__call__.__code__
_CACHED = type(functools.lru_cache(len))


@cached(4096)
def _is_user_file(name: str) -> bool:
    """Whether the code of a file is the user's: not opreg's, nor that of a numeric library, nor Python's own."""
    installed = next((name.index(folder) + len(folder) for folder in _INSTALLED if folder in name), None)
    if installed is not None:
        return name[installed:].split(os.sep)[0] not in _LIBRARIES
    return not name.startswith(("<frozen", *_STANDARD))


def _is_user_code(code: types.CodeType) -> bool:
    """Whether a function of the user's has this code; bodies of modules and classes are none."""
    if not code.co_flags & inspect.CO_OPTIMIZED and loads(code).stores:  # no ``eval("K * 2")``
        return False
    return _EXAMPLES in code.co_filename or (not is_ours(code) and _is_user_file(code.co_filename))


def _is_aside(frame: types.FrameType | None, outside: types.FrameType | None) -> bool:
    """Whether a function runs since, inside of the frame ``outside``, an object has gone or a module is imported: that
    may happen in any call."""
    while frame is not None and frame is not outside:
        code = frame.f_code
        if code is _FINALIZER or code.co_name == "__del__" or code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _is_of_library(code: types.CodeType, name: object) -> bool:
    """Whether a module of this name has code that is not the user's although its file does not tell: it computes for a
    backend, or a library wrote the code as text, as NamedTuple does."""
    if not isinstance(name, str):
        return False
    if code.co_filename.startswith("<") and (name.startswith("namedtuple_") or not _is_user_module(name)):
        return True
    return any((name + ".").startswith(module + ".") for backend in active() for module in backend.modules)


def _is_user_module(name: object) -> bool:
    """Whether a module of this name is the user's."""
    if not isinstance(name, str) or name.startswith("opreg.examples"):
        return True
    package = name.partition(".")[0]
    return package not in _LIBRARIES and package not in sys.stdlib_module_names


def _stored(cls: type, name: str) -> tuple[type | None, Any]:
    """Attribute of a class as it is stored, and the class that stores it."""
    for base in cls.__mro__:
        found = base.__dict__.get(name, ABSENT)
        if found is not ABSENT:
            return base, found
    return None, ABSENT


@cached(1024)
def _names_of(cls: type) -> frozenset[str]:
    """Names of attributes that the methods of a layer read."""
    between = cls.__mro__[:cls.__mro__.index(ParameterContainer) - 1]  # without Cell, which all layers derive from
    return frozenset(name for base in between for function in vars(base).values()
                     if isinstance(function, types.FunctionType) for name in loads(function.__code__).names)


def _is_descriptor(found: object) -> bool:
    """Whether Python code may run where an attribute that a class has stored is read: a property and its like."""
    return hasattr(type(found), "__get__") and not isinstance(found, (
        types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.MemberDescriptorType,
        types.GetSetDescriptorType, types.WrapperDescriptorType, staticmethod, classmethod, type))


def _asked(function: Any) -> str:
    """Call of a C function that reads the world outside of the process, as a warning names it; an empty text for
    others.
    """
    name, owner = function.__name__, getattr(function, "__self__", None)
    if isinstance(owner, type):
        return f"{owner.__name__}.{name}()" if name in _NOW and issubclass(owner, datetime.date) else ""
    if not isinstance(owner, types.ModuleType):
        return f"{name}() of a socket" if type(owner).__module__ in ("_socket", "socket") else ""
    return _CLOCKS.get(function) or _READERS.get(function) or ("a program" if name == "fork_exec" else "")


def _state_of(generator: Any) -> Any:
    """The state of a random generator, to be compared."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return repr(generator.bit_generator.state)
    key, *others = generator.get_state()[1:]
    return key.tobytes(), others


class Observer:
    """A stretch of code in which reads are noted, of one thread.

    Parameters
    ----------
    reads : Reads
        Where they are noted.

    Attributes
    ----------
    reason : str
        Why the function cannot be a graph, if it cannot.
    """

    def __init__(self, reads: Reads):
        self.reads, self.comparisons, self.reason = reads, reads.comparisons, ""
        self._users: dict[int, bool] = {}  # by identity of code: whether it is the user's
        self._codes: list[types.CodeType] = []  # kept alive, so that identities stay theirs
        self._scanned: set[tuple[int, int]] = set()
        self._inner: set[int] = set()  # code that is defined in code that has run
        self._methods: set[tuple[int, int]] = set()  # code that has run, with the class of its first argument
        self._functions: dict[int, list[types.FunctionType]] = {}  # that were met, by code
        self._names: set[str] = set()  # of attributes that code reads
        self._texts: set[str] = set()  # which name attributes, too, where code reads some by text
        self._by_text = False
        self._updates: set[str] = set()  # and that it changes
        self._owners: list[Any] = []
        self._met: dict[int, object] = {}  # kept alive, so that identities stay theirs
        self._read: set[int] = set()
        self._changed: dict[tuple[int, str], Any] = {}  # what places had that were only changed so far
        self._noted: dict[tuple[int, str], bool] = {}  # attributes that were read, and whether in user code
        self._hooked: list[type] = []
        self._generators: list[tuple[Any, Any]] = []  # with their states
        self._profile: Any = None
        self._outside: types.FrameType | None = None  # the frame in which the trace begins

    def __enter__(self) -> Observer:
        common = [random._inst, np.random.mtrand._rand]
        self._generators = [(generator, _state_of(generator)) for generator in common]
        for callback in gc.callbacks:  # they run wherever memory is collected, as ``__del__`` does
            code = getattr(callback, "__code__", None)
            if code is not None:
                self._users[id(code)] = False
        self.reads.observer, self._outside = self, sys._getframe(1)
        self._profile = sys.getprofile()
        if self._profile is not None and not callable(self._profile):
            self._profile.disable()  # cProfile of Python 3.11, which cannot be called from here
        sys.setprofile(self._profiler())
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        if callable(self._profile):
            sys.setprofile(self._profile)
        elif self._profile is not None:
            self._profile.enable()
        self.reads.observer = self._outside = None
        for cls in self._hooked:
            unhook(cls)
        if (self._generators[2:] or "random" in self._names) and not self._names.isdisjoint(_STATES):
            self.reason = self.reason or "it asks for the state of a random generator, which changes with each draw"
        drawn = [generator for generator, before in self._generators if _state_of(generator) != before]
        if any("random" in self._names or id(generator) in self._met for generator in drawn):
            self.reason = self.reason or _DRAWS
        self._met, self._functions, self._owners, self._generators, self._codes = {}, {}, [], [], []

    # ------------------------------------------------------------------------------------------------ code that runs

    def _profiler(self) -> Callable[[types.FrameType, str, Any], None]:
        """Function that Python calls where functions begin and end: thousands of times, nearly always for library
        code."""
        known, another = self._users.get, self._profile if callable(self._profile) else None

        def profile(frame: types.FrameType, event: str, arg: Any) -> None:
            if another is not None:
                another(frame, event, arg)
            if event == "c_call" and arg.__name__ in _OUTSIDE and STATE.trace is not None:
                self._asks_outside(frame, arg)
            if known(id(frame.f_code)) is not False and self._is_user(frame):
                if STATE.trace is not None:
                    self._event(frame, event, arg)
            elif event == "return" and STATE.trace is not None and frame.f_back is not None and known(
                    id(frame.f_back.f_code)):
                self._answers(frame, arg)

        return profile

    def _event(self, frame: types.FrameType, event: str, arg: Any) -> None:
        """Code of the user's begins, ends, or calls a function written in C."""
        if event == "call":
            self._begin(frame)
        elif event == "return":
            self.meet(arg)
            for name, level in loads(frame.f_code).imports:
                if level:
                    name = importlib.util.resolve_name("." * level + name, frame.f_globals.get("__package__") or "")
                self._imported(name)

    def _imported(self, name: str) -> None:
        """A module is found by its name."""
        module = sys.modules.get(name)
        self.meet(module)
        if module is not None and _is_user_module(name):
            self.comparisons.entry(sys.modules, name, module, f"the module {name}")

    def _answers(self, frame: types.FrameType, answer: Any) -> None:
        """A library's function returns to the user's code."""
        setting = _ASKED.get(id(frame.f_code))
        if setting is None:
            self.meet(answer)
        elif answer is not None or not frame.f_code.co_argcount:
            self._asks_setting(setting, *map(frame.f_locals.get, frame.f_code.co_varnames[:frame.f_code.co_argcount]))

    def _asks_setting(self, function: Any, *args: Any) -> None:
        """A function answered by a setting of the process: it is asked again before each run."""
        call = f"{{}}({', '.join(map(repr, args))})"
        self.comparisons.path(function, f"repr({call})", repr(function(*args)), _SETTINGS[function] + call[2:])

    def _asks_outside(self, frame: types.FrameType, function: Any) -> None:
        """A function written in C is called that may answer by the time, by files or by chance: note it where code of
        the user's did so, or a library that it calls."""
        title = _asked(function) or _SETTINGS.get(function)
        caller = self._caller(frame) if title else None
        if caller is None or title is None:
            return
        if function in _SETTINGS:
            self._asks_setting(function)
            return
        if function is os.urandom:
            self.reason = self.reason or _DRAWS
        elif function not in _CLOCKS:
            self.comparisons.unseen[f"{title} at {Where((caller.f_code.co_filename, caller.f_lineno))}"] = None
        elif caller is frame:  # logging asks for the time, too
            self.comparisons.unseen[title] = None

    def _caller(self, frame: types.FrameType | None) -> types.FrameType | None:
        """The function of the user's that runs, itself or in a library; None where opreg runs, or something aside."""
        if _is_aside(frame, self._outside):
            return None
        while frame is not None and frame is not self._outside:
            if self._is_user(frame):
                return frame
            if is_ours(frame.f_code) or frame.f_globals.get("__name__") in _SHOWING:
                return None
            frame = frame.f_back
        return None

    def _is_user(self, frame: types.FrameType) -> bool:
        code = frame.f_code
        user = self._users.get(id(code))
        if user is None:
            if _is_aside(frame, self._outside):
                return False
            self._codes.append(code)
            user = self._users[id(code)] = _is_user_code(code) and not _is_of_library(
                code, frame.f_globals.get("__name__"))
        return user

    def _begin(self, frame: types.FrameType) -> None:
        """A function of the user's begins."""
        code, scope = frame.f_code, frame.f_globals
        if (id(code), id(scope)) not in self._scanned:
            self._scanned.add((id(code), id(scope)))
            self._scan(code, scope)
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS) \
            + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        if not count:
            return
        values = frame.f_locals
        for name in code.co_varnames[:count]:
            self.meet(values.get(name))
        cls = type(values.get(code.co_varnames[0]))
        if (id(code), id(cls)) not in self._methods and hookable(cls):  # perhaps called by no name, as in a + b
            self._methods.add((id(code), id(cls)))
            for name in [name for base in cls.__mro__ for name, found in vars(base).items()
                         if isinstance(found, types.FunctionType) and found.__code__ is code]:
                self._class_attribute(cls, name)

    def _scan(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        """Note what code loads by name, and what its function has."""
        self._inner.update(id(const) for const in code.co_consts if isinstance(const, types.CodeType))
        found = loads(code)
        self._texts.update(filter(str.isidentifier, found.texts))
        self._by_text = self._by_text or not _BY_TEXT.isdisjoint(found.names.union(found.scope))
        new = found.names.union(found.scope, self._texts if self._by_text else ()) - self._names
        self._names |= new
        for name, is_read in found.scope.items():
            value = scope.get(name, ABSENT)
            if value is not ABSENT or not hasattr(builtins, name):
                value = self._first((id(scope), name), value, is_read)
                if is_read:
                    label = f"the global {name}"
                    self.comparisons.entry(scope, name, value, label)
                    self.read(value, label)
            elif is_read and name not in _BUILT_IN:
                value = vars(builtins)[name]
                self.comparisons.entry(vars(builtins), name, value, f"the built-in {name}")
                self.read(value, f"the built-in {name}")
        self._updates.update(found.changes.values())
        for owner in tuple(self._owners):
            for name in found.changes.values():
                self._first((id(owner), name), getattr(owner, name, ABSENT), False)
            for name in new:
                self._owned(owner, name)
        if not new.isdisjoint(_OF_CLASS):
            for value in tuple(self._met.values()):
                if hookable(type(value)):
                    self.meet(type(value))
        if not _ENVIRONMENT.isdisjoint(new):
            self.read(os.environ, "os.environ")
        for text in found.texts:
            self._imported(text)
            if "globals" in found.scope:
                self.comparisons.entry(scope, text, scope.get(text, ABSENT), f"the global {text}")
        functions = self._functions.get(id(code), [])
        if not functions and code.co_freevars and id(code) not in self._inner:
            functions = [each for each in gc.get_referrers(code) if isinstance(each, types.FunctionType)]
            if gc.get_freeze_count():  # there may be others
                self.reason = self.reason or f"gc.freeze() hides the variables that {code.co_name} has from outside"
        for function in functions:
            self._runs(function)

    def _runs(self, function: types.FunctionType) -> None:
        """Note what a function that runs has beside its code: closure variables and defaults."""
        title = function.__qualname__.rpartition("<locals>.")[2]
        self.comparisons.path(function, "{}.__code__", function.__code__, f"the code of {title}")
        for name in ("__defaults__", "__kwdefaults__"):
            value = getattr(function, name)
            if value is not None:
                self.comparisons.path(function, "{}." + name, value, f"a default of {title}")
                self.read(value, f"a default of {title}")
        outer = loads(function.__code__).outer
        for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            value = self._first((id(cell), ""), value, name in outer)
            if name in outer:
                label = f"the variable {name} that {title} has from outside"
                self.comparisons.variable(cell, value, label)
                self.read(value, label)

    # ---------------------------------------------------------------------------------------------------- values

    def _first(self, place: tuple[int, str], value: Any, is_read: bool) -> Any:
        """The value that a place had first; it is remembered where the place is about to be changed."""
        if is_read:
            return self._changed.pop(place, value)
        if place not in self._changed:
            self._changed[place] = value
            self.comparisons.remember(value)
        return value

    def read(self, value: Any, label: str) -> None:
        """A value was read that was there before: its contents are compared, too."""
        if isinstance(value, PLAIN):
            return
        cls = type(value)
        self.meet(value)
        if id(value) in self._read:
            return
        self._read.add(id(value))
        if isinstance(value, CONTAINERS):
            if self.comparisons.content(value, label):
                for element in elements(value):
                    self.read(element, label)
        elif isinstance(value, BUFFERS):
            self.comparisons.content(value, label)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.read(part, label)
        elif isinstance(value, _BOUND):
            self.read(value.__self__, label)
        elif isinstance(value, types.MappingProxyType):
            for part in gc.get_referents(value):
                self.read(part, label)
        elif isinstance(value, weakref.ReferenceType):
            self.comparisons.path(value, "{}()", value(), label)
            self.read(value(), label)
        elif isinstance(value, contextvars.ContextVar):
            self.comparisons.path(value, "{}.get(absent)", value.get(ABSENT), label)
        elif isinstance(value, io.IOBase):
            printed = value in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
            if not printed and not value.closed and value.readable():
                self.reason = self.reason or f"it reads from a file, {label}"
        elif isinstance(value, Iterator) and not (
                _is_user_module(cls.__module__) and isinstance(_stored(cls, "__next__")[1], types.FunctionType)):
            self.reason = self.reason or f"it takes from an iterator, {label}"
        elif isinstance(value, types.SimpleNamespace) or (
                isinstance(value, Collection) and hasattr(value, "__dict__")
                and cls.__module__.partition(".")[0] in sys.stdlib_module_names):
            self.read(vars(value), label)  # Python's own ChainMap, UserDict, os.environ

    def meet(self, value: Any) -> None:
        """A value takes part, wherever it comes from: reads of its attributes are noted from now on."""
        cls = type(value)
        if cls in _SIMPLE or id(value) in self._met:
            return
        self._met[id(value)] = value
        if isinstance(value, types.ModuleType):
            if _is_user_module(value.__name__) or value.__name__.partition(".")[0] in sys.stdlib_module_names:
                self._own(value)
            if value is random or value.__name__ == "numpy.random":
                self._names.add("random")
        elif isinstance(value, type):
            if _is_user_module(value.__module__):
                self._own(value)
                if isinstance(value, abc.ABCMeta):  # register() makes isinstance() answer otherwise
                    self._asks_setting(abc.get_cache_token)
        elif isinstance(value, types.FunctionType):
            self._functions.setdefault(id(value.__code__), []).append(value)
            if (id(value.__code__), id(value.__globals__)) in self._scanned or value.__code__.co_filename.startswith(
                    _STANDARD):  # made by Python's own decorators, as singledispatch is
                self._runs(value)
            if value.__dict__:
                self._own(value)
        elif isinstance(value, (types.MethodType, types.BuiltinMethodType, classmethod, staticmethod)):
            self.meet(getattr(value, "__self__", None))
            self.meet(getattr(value, "__func__", None))
        elif isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.meet(part)
        elif isinstance(value, CONTAINERS):
            for element in elements(value) if len(value) <= MOST_ELEMENTS else ():
                self.meet(element)
        elif isinstance(value, _GENERATORS):
            self._generators.append((value, _state_of(value)))
        elif isinstance(value, TensorBase):
            if getattr(value, "__dict__", None):
                self._own(value)
        elif getattr(cls, "compiled", False) is True:
            self.meet(value.function)
        elif isinstance(value, ParameterContainer) and not _is_user_module(cls.__module__):
            self._of_layer(value)
        elif hookable(cls) and (cls.__module__.partition(".")[0] not in _LIBRARIES
                                or cls.__module__.startswith(_FLOORS)):
            self._hook(cls)
            if not self._names.isdisjoint(_OF_CLASS):
                self.meet(cls)
        elif cls is threading.local or isinstance(value, enum.Enum):
            self._own(value)
        if cls is _CACHED:
            function = value.__wrapped__
            self.meet(function)
            if isinstance(function, types.FunctionType) and _is_user_code(function.__code__):
                self._scan(function.__code__, function.__globals__)  # it may not run again

    # --------------------------------------------------------------------------- attributes that no hook can note

    def _own(self, owner: Any) -> None:
        """A module, class, function or tensor takes part: its attributes are read by names that code has."""
        self._owners.append(owner)
        for name in tuple(self._names):
            self._owned(owner, name)
        for name in self._updates - self._names:
            self._first((id(owner), name), getattr(owner, name, ABSENT), False)

    def _owned(self, owner: Any, name: str) -> None:
        if isinstance(owner, type):
            self._class_attribute(owner, name)
        elif isinstance(owner, threading.local):
            if not hasattr(threading.local, name):
                value = getattr(owner, name, ABSENT)
                self.comparisons.path(owner, f"getattr({{}}, {name!r}, absent)", value, f"local.{name}")
                self.read(value, f"local.{name}")
        elif isinstance(owner, TensorBase) and isinstance(_stored(type(owner), name)[1], property):
            if name in _OF_PARAMETERS and hasattr(owner, name):
                self.comparisons.path(owner, f"{{}}.{name}", getattr(owner, name), f"a Parameter's {name}")
        elif name in owner.__dict__ and not name.startswith("__"):
            value = owner.__dict__[name]
            if isinstance(owner, types.ModuleType) and not _is_user_module(owner.__name__) and (
                    value is sys.modules or not isinstance(value, (*PLAIN, *CONTAINERS))):
                return  # functions and classes of Python's own modules stay
            value = self._first((id(owner), name), value, True)
            label = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
            self.comparisons.entry(owner.__dict__, name, value, label)
            self.read(value, label)

    def _class_attribute(self, cls: type, name: str) -> None:
        """Note what a class has by a name, from itself or another class of the user's."""
        base, found = _stored(cls, name)
        label = f"{cls.__name__}.{name}"
        if name == "__subclasses__":
            self.comparisons.path(cls, "repr({}.__subclasses__())", repr(cls.__subclasses__()), label)
        if base is None or not _is_user_module(base.__module__):
            return
        if isinstance(found, classmethod):
            self.comparisons.path(cls, f"{{}}.{name}.__func__", found.__func__, label)
        elif _is_descriptor(found) and not isinstance(found, property):
            self.comparisons.path(base, f"{{}}.__dict__.get({name!r}, absent)", found, label)
        else:
            value = found.__func__ if isinstance(found, staticmethod) else self._first((id(cls), name), found, True)
            self.comparisons.path(cls, f"{{}}.{name}", value, label)
            self.read(value, label)

    # --------------------------------------------------------------------------------- attributes, as they are read

    def _hook(self, cls: type) -> None:
        hooked = hook(cls)
        if hooked is not None:
            self._hooked.append(hooked)

    def attribute(self, owner: Any, name: str, value: Any, frame: types.FrameType) -> None:
        """An attribute of an object, whose class is hooked, is read in a frame."""
        place = id(owner), name
        if self._noted.get(place):
            return
        cls, user = type(owner), self._is_user(frame)
        if not user and place in self._noted:
            return
        self._met[id(owner)] = owner
        is_read = not user or frame.f_lasti not in loads(frame.f_code).changes
        value = self._first(place, value, is_read)
        if not is_read:
            return
        self._noted[place] = user
        if not issubclass(cls, ParameterContainer):
            if user or _is_user_module(cls.__module__) or (
                    id(owner) in self._read and not isinstance(value, CONTAINERS)):  # of Python's own, as a Logger is
                self._of_object(owner, name, value)
            return
        own = object.__getattribute__(owner, "__dict__")
        if name == "__dict__" and user:
            for each in own:
                if not each.startswith("_"):
                    self._of_cell(owner, each, own[each], user)
        elif name in own:
            self._of_cell(owner, name, value, user)
        elif "_params" in own and value is not ABSENT and not name.startswith("__"):
            base, found = _stored(cls, name)
            if base is not None and _is_user_module(base.__module__):
                self.reads.attribute(owner, name, ABSENT)
                if found is value and user:
                    self.comparisons.path(owner, f"{{}}.{name}", value, f"{owner.path}.{name}")
                    self.read(value, f"{owner.path}.{name}")
                else:
                    self._class_attribute(cls, name)

    def _of_layer(self, owner: ParameterContainer) -> None:
        """A layer of opreg takes part: its settings are read, and what else its methods name."""
        names = _names_of(type(owner))
        for name, value in owner.__dict__.items():
            if name in names or name in TABLES or not (name.startswith("_") or name in _MODES):
                self._of_cell(owner, name, value, False)

    def _of_cell(self, owner: ParameterContainer, name: str, value: Any, user: bool) -> None:
        """An attribute of a Cell is read: a change is counted, unless it goes past the Cell, by its ``__dict__``."""
        self.reads.attribute(owner, name, value)
        if user and isinstance(value, PLAIN):
            self.comparisons.path(owner, f"{{}}.{name}", value, f"{owner.path}.{name}")
        elif not name.startswith("_") and (user or isinstance(value, CONTAINERS)):
            self.read(value, f"{owner.path}.{name}")

    def _of_object(self, owner: Any, name: str, value: Any) -> None:
        """An attribute of an object that is no Cell is read in user code."""
        cls = type(owner)
        label = f"{cls.__name__}.{name}"
        if name == "__getstate__":  # a copy is made of it
            value = getattr(owner, "__dict__", ABSENT)
        if value is not ABSENT:
            self.read(value, label)
        if name.startswith("__") or not name.isidentifier() or runs_python(cls):
            return
        own, found = getattr(owner, "__dict__", {}), _stored(cls, name)[1]
        if value is ABSENT:
            if _stored(cls, "__getattr__")[1] is ABSENT:
                self.comparisons.path(owner, f"getattr({{}}, {name!r}, absent)", ABSENT, label)
        elif _is_descriptor(found) and (name not in own or hasattr(type(found), "__set__")):
            self._class_attribute(cls, name)  # what its code reads is noted by itself
        elif name not in own and isinstance(value, _BOUND) and value.__self__ is owner:
            pass  # a method written in C, another object each time
        elif name in own or not isinstance(value, types.MethodType):
            self.comparisons.path(owner, f"{{}}.{name}", value, label)
        else:
            self.comparisons.path(owner, f"{{}}.{name}.__func__", value.__func__, label)

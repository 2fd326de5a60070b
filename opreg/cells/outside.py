"""Functions whose results change although their arguments do not, and the way each is watched.

Settings of the process are read again before each run. Clocks, files, programs and messages cannot be compared: a
warning names them. A function that draws random values outside of the library's generators runs as Python.
"""

from __future__ import annotations

import abc
import array
import atexit
import codecs
import collections
import contextvars
import copy
import copyreg
import datetime
import decimal
import enum
import faulthandler
import functools
import gc
import inspect
import io
import locale
import logging
import os
import random
import re
import signal
import struct
import sys
import sysconfig
import threading
import time
import types
import weakref
from typing import Any

import numpy as np

from opreg.ndarray.autograd import is_recording
from opreg.symbol.naming import AttrScope, NameManager, Prefix
from opreg.symbol.symbol import Symbol

from ..core.bytecode_names import HANDLERS
from ..core.files import open_to_read
from ..core.held_values import package_of
from ..core.mode import is_np_shape
from ..core.numpy_random import global_state
from ..core.registry import unknown_operator
from ..core.setting_reads import READERS
from ..custom.prop import RegisteredProp

__all__ = ["ABOUT", "ARRAYS_AS_TEXT", "AT_PLACES", "BY_NAME", "CLOCKS", "DRAWS", "FILES", "INSIDE", "INSTEAD",
           "MISSING_OPERATORS", "OF_TRACES", "OUTSIDE", "QUESTIONS", "SETTINGS", "STATES", "THREADS",
           "TELLING_METHODS", "copiers", "decimal_context", "does_not_answer", "error_handlers", "is_generator",
           "is_opaque", "state_of", "title_of", "unknown"]

#: Python functions that return another result each time.
CLOCKS = {getattr(time, name): f"time.{name}()" for name in dir(time) if name.removesuffix("_ns") in (
    "time", "perf_counter", "monotonic", "process_time", "thread_time")}
#: Functions that read files, the keyboard, or entropy.
_READERS = {io.open: "open()", input: "input()", np.fromfile: "fromfile()",
            codecs.lookup_error: "codecs.lookup_error()",
            **{getattr(os, name): f"os.{name}()" for name in (
                "access", "listdir", "lstat", "open", "scandir", "stat", "urandom")}}


def decimal_context() -> tuple[Any, ...]:
    """Settings of decimal arithmetic in this thread, without the flags, which each computation sets.

    Examples
    --------
    >>> decimal_context()[:2]
    (28, 'ROUND_HALF_EVEN')
    """
    now = decimal.getcontext()
    traps = [each.__name__ for each, trapped in now.traps.items() if trapped]
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, traps


def locale_settings() -> str:
    """The locale of the process.

    Examples
    --------
    >>> isinstance(locale_settings(), str)
    True
    """
    return locale.setlocale(locale.LC_ALL)


def start_method() -> object:
    """The start method of ``multiprocessing``; None where it was neither set nor asked.

    Examples
    --------
    >>> start_method() in (None, "fork", "forkserver", "spawn")
    True
    """
    module = sys.modules.get("multiprocessing")
    return None if module is None else module.get_start_method(allow_none=True)


def zone_paths() -> object:
    """The folders in which ``zoneinfo`` looks for time zones.

    Examples
    --------
    >>> isinstance(zone_paths(), (tuple, type(None)))
    True
    """
    return getattr(sys.modules.get("zoneinfo"), "TZPATH", None)


def text_domain() -> tuple[Any, ...]:
    """The message catalogue of ``gettext``.

    Examples
    --------
    >>> len(text_domain())
    2
    """
    module = sys.modules.get("gettext")
    return getattr(module, "_current_domain", None), repr(getattr(module, "_localedirs", None))


def short_texts() -> object:
    """Settings by which ``reprlib`` shortens texts.

    Examples
    --------
    >>> isinstance(short_texts(), (list, type(None)))
    True
    """
    module = sys.modules.get("reprlib")
    return None if module is None else sorted(vars(module.aRepr).items())


def temporary_files() -> object:
    """The folder in which ``tempfile`` makes files, and what their names begin with.

    Examples
    --------
    >>> isinstance(temporary_files(), (tuple, type(None)))
    True
    """
    module = sys.modules.get("tempfile")
    return None if module is None else (module.gettempdir(), module.template)


def file_types() -> object:
    """The types of files that ``mimetypes`` knows by their names.

    Examples
    --------
    >>> isinstance(file_types(), (tuple, type(None)))
    True
    """
    module = sys.modules.get("mimetypes")
    if module is None:
        return None
    if not module.inited:
        module.init()
    return module._db.types_map, module.suffix_map, module.encodings_map


def copiers() -> dict[type, Any]:
    """The functions that copy objects of a class, as ``copyreg`` has them.

    Examples
    --------
    >>> complex in copiers()
    True
    """
    return copyreg.dispatch_table


def error_handlers() -> tuple[Any, ...]:
    """The functions that handle errors of Python's codecs, by the standard names.

    Examples
    --------
    >>> error_handlers()[0].__name__
    'strict_errors'
    """
    return tuple(map(codecs.lookup_error, HANDLERS))


def arguments() -> list[str]:
    """The arguments of the program.

    Examples
    --------
    >>> arguments() is sys.argv
    True
    """
    return sys.argv


def time_zone() -> tuple[Any, ...]:
    """The time zone of the process.

    Examples
    --------
    >>> len(time_zone())
    3
    """
    return time.tzname, time.timezone, time.altzone


#: Functions whose result depends on a setting of the process only: they are called again.
SETTINGS: dict[Any, str] = {
    os.getcwd: "os.getcwd", decimal_context: "decimal.getcontext", locale_settings: "locale.setlocale",
    time_zone: "time.tzname", start_method: "multiprocessing.get_start_method", zone_paths: "zoneinfo.TZPATH",
    text_domain: "gettext.textdomain", short_texts: "reprlib.aRepr", temporary_files: "tempfile.gettempdir",
    file_types: "mimetypes.types_map", arguments: "sys.argv", error_handlers: "codecs.lookup_error",
    copiers: "copyreg.pickle",
    **{getattr(module, name): f"{module.__name__}.{name}" for module, names in (
        (atexit, "_ncallbacks"), (faulthandler, "is_enabled"),
        (gc, "isenabled get_threshold get_freeze_count get_debug"),
        (locale, "localeconv getlocale"), (logging, "getLevelName"),
        (os, "cpu_count getpid getppid getuid geteuid getgid getegid getpgrp"),
        (signal, "getsignal"), (sysconfig, "get_config_var get_config_vars get_path get_platform"),
        (sys, "getrecursionlimit getswitchinterval get_int_max_str_digits gettrace getdlopenflags get_asyncgen_hooks "
              "get_coroutine_origin_tracking_depth"),
        (threading, "stack_size active_count current_thread"))
       for name in names.split() if hasattr(module, name)},
    **{getattr(np, name): f"np.{name}" for name in ("geterr", "geterrcall", "getbufsize", "get_printoptions")},
    abc.get_cache_token: "abc.get_cache_token"}
READERS.update((id(code), function) for function in SETTINGS
               if (code := getattr(inspect.unwrap(function), "__code__", None)) is not None)
#: Functions that depend on a setting but cannot be called again, and the setting that each depends on.
INSTEAD: dict[Any, Any] = {decimal.getcontext: decimal_context, decimal.localcontext: decimal_context,
                           locale.setlocale: locale_settings, np.array2string: np.get_printoptions, copy.copy: copiers,
                           copy.deepcopy: copiers}
READERS.update((id(inspect.unwrap(function).__code__), setting) for function, setting in INSTEAD.items()
               if hasattr(inspect.unwrap(function), "__code__"))
#: Code that writes arrays as text, also when a library or opreg calls it.
ARRAYS_AS_TEXT = id(inspect.unwrap(np.array2string).__code__)
#: Code that reads the environment, also when a library calls it.
ENVIRONMENT = frozenset(map(id, (type(os.environ).__getitem__.__code__, type(os.environ).__iter__.__code__)))
#: Code that opens a file to read it, for opreg's readers.
FILES = id(inspect.unwrap(open_to_read).__code__)
#: Code that makes a user's ``CustomOpProp``.
PROPS = id(RegisteredProp.make_use.__code__)
#: Code that reports a name without an operator.
MISSING_OPERATORS = id(unknown_operator.__code__)
#: Code whose calls are recorded from any caller, also from a library.
INSIDE = frozenset({ARRAYS_AS_TEXT, FILES, MISSING_OPERATORS, PROPS, *ENVIRONMENT})
#: Settings that code reads by a name.
BY_NAME: dict[str, Any] = {"FloatingPointError": np.geterr, "seterr": np.geterr, "errstate": np.geterr,
                           "timestamp": time_zone, "astimezone": time_zone, "mktime": time_zone,
                           "get_start_method": start_method, "TZPATH": zone_paths,
                           "textdomain": text_domain, "gettext": text_domain, "ngettext": text_domain,
                           "reprlib": short_texts, "gettempdir": temporary_files, "gettempprefix": temporary_files,
                           "guess_type": file_types, "guess_extension": file_types, "guess_all_extensions": file_types,
                           "parse_args": arguments, "parse_known_args": arguments,
                           "encode": error_handlers, "decode": error_handlers}
#: Methods whose results depend on the content of their object, by their code, each with an expression of this content.
TELLING_METHODS = {
    **{method.__code__: "repr({}.attr_dict())" for method in (Symbol.attr, Symbol.list_attr, Symbol.attr_dict)},
    AttrScope.get.__code__: "repr({}._attr)"}
#: Functions written in Python that read files, memory at an address, or past the hooks of classes.
AT_PLACES = frozenset({"linecache.getline", "linecache.getlines", "ctypes.string_at", "ctypes.wstring_at",
                       "inspect.getattr_static"})
#: Names of functions whose result depends on the content of an argument.
ABOUT = frozenset({"signature", "get_type_hints", *(code.co_name for code in TELLING_METHODS),
                   *(name.partition(".")[2] for name in AT_PLACES)})
#: Functions that read state which a trace itself changes, by the identity of their code, with the reason why a function
#: that calls them runs as Python.
OF_TRACES = {id(is_np_shape.__code__): "it asks for the convention of shapes, which a trace sets",
             id(is_recording.__code__): "it asks whether it is recorded, which a trace is",
             **{id(method.__code__): "it takes the next name of a NameManager"
                for method in (NameManager.get, Prefix.get)}}
_NOW = frozenset({"now", "today", "utcnow"})
#: Functions that start a thread, in which nothing is traced.
THREADS = frozenset({"start_new_thread", "start_joinable_thread"})
#: Names of all these functions, and of functions that start programs and receive messages: calls by libraries count,
#: too.
OUTSIDE = frozenset({*(function.__name__ for function in (*CLOCKS, *_READERS, *SETTINGS, *INSTEAD)), *_NOW, *THREADS,
                     "fork_exec", "recv", "recv_into", "recvfrom"})

#: Modules written in C whose functions depend on their arguments only, or make new objects.
_PURE = frozenset({
    "_abc", "_bisect", "_blake2", "_bz2", "_codecs", "_collections", "_contextvars", "_datetime", "_functools",
    "_hashlib", "_heapq", "_io", "_json", "_lzma", "_md5", "_operator", "_pickle", "_random", "_sha1", "_sha2",
    "_sha256", "_sha3", "_sha512", "_sre", "_stat", "_statistics", "_string", "_struct", "_typing", "_warnings",
    "binascii", "builtins", "cmath", "itertools", "math", "unicodedata", "zlib"})
#: Packages whose C functions compute from their arguments.
_COMPUTING = frozenset({"numpy", "scipy", "cupy", "numba", "opreg"})
#: Names of functions whose result, if any, never changes.
_ACTS = frozenset({
    "RLock", "__enter__", "__exit__", "_getframe", "_path_normpath", "_path_splitroot", "_path_splitroot_ex",
    "acquire_lock", "add_note", "allocate_lock", "audit", "chdir", "chmod", "close", "collect", "disable", "enable",
    "exc_info", "exception", "flush", "fspath", "fsync", "getdefaultencoding", "getfilesystemencoding", "intern",
    "mkdir", "proxy", "put", "reader", "register", "release", "release_lock", "remove", "rename", "replace", "rmdir",
    "send", "sendall", "sleep", "symlink", "truncate", "unlink", "unregister", "utime", "with_traceback", "write",
    "writer"})
#: Methods without arguments of objects written in C, which are called again before each run.
QUESTIONS = frozenset({
    "alive", "cache_info", "cache_parameters", "cancelled", "done", "empty", "fileno", "getblocking", "gettimeout",
    "isatty", "locked", "qsize", "tell"})
#: Types written in C whose objects are compared, or never change.
_KNOWN = (
    bool, int, float, complex, str, bytes, type(None), type, list, tuple, dict, set, frozenset, collections.deque,
    bytearray, array.array, memoryview, np.ndarray, np.generic, np.dtype, range, slice, property, classmethod,
    staticmethod, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType,
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType,
    types.CellType, types.MappingProxyType, types.GenericAlias, types.UnionType, types.EllipsisType,
    types.NotImplementedType, contextvars.ContextVar, contextvars.Token, datetime.date, datetime.time,
    datetime.timedelta, datetime.tzinfo, decimal.Decimal, functools.partial, re.Pattern, re.Match, io.IOBase,
    weakref.ReferenceType, BaseException, random.Random, enum.Enum,
    struct.Struct)

#: Names by which code reads the state of a random generator.
STATES = frozenset({"getstate", "get_state", "bit_generator", "n_children_spawned"})
DRAWS = ("it draws random numbers from a generator of Python's or NumPy's, which a graph cannot; ops and mx.random "
         "have generators that can")


def is_generator(value: object) -> bool:
    """Whether a value is a random generator, a bit generator or a seed sequence.

    NumPy's classes are loaded by the first call of this function: importing them takes as long as importing all Cells.
    """
    return issubclass(type(value), (random.Random, np.random.RandomState, np.random.Generator, np.random.BitGenerator,
                                    np.random.SeedSequence))


def state_of(generator: Any) -> Any:
    """The state of a random generator, for ``is_same_state`` and ``set_state``.

    Examples
    --------
    >>> state_of(np.random.SeedSequence(1))
    0
    """
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.SeedSequence):
        return generator.n_children_spawned
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if generator is np.random.mtrand._rand:
        return global_state()
    return generator.state if isinstance(generator, np.random.BitGenerator) else generator.get_state()


def is_same_state(state: Any, other: Any) -> bool:
    """Whether two states of a random generator are the same.

    Examples
    --------
    >>> generator = random.Random(1)
    >>> before = state_of(generator)
    >>> _ = generator.random()
    >>> is_same_state(state_of(generator), before), is_same_state(before, before)
    (False, True)
    """
    try:
        return state is other or bool(state == other)
    except ValueError:  # comparing states that contain arrays fails
        pass
    if isinstance(state, dict):
        return all(is_same_state(part, other[name]) for name, part in state.items())
    return all(map(is_same_state, state, other)) if isinstance(state, tuple) else np.array_equal(state, other)


def set_state(generator: Any, state: Any) -> None:
    """Set the state of a random generator back, so that it draws the same numbers again. The count of the seeds that
    were made from a ``SeedSequence`` cannot be set.

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> before, first = state_of(generator), generator.random()
    >>> set_state(generator, before)
    >>> generator.random() == first
    True
    """
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.BitGenerator):
        generator.state = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)


def title_of(function: Any) -> str:
    """The name, for a warning, of a C function that reads the world outside of the process; empty for others.

    Examples
    --------
    >>> title_of(time.time), title_of(datetime.date.today), title_of(len)
    ('time.time()', 'date.today()', '')
    """
    name, owner = function.__name__, getattr(function, "__self__", None)
    if isinstance(owner, type):
        is_clock = name == "from_address" or (name in _NOW and issubclass(owner, datetime.date))
        return f"{owner.__name__}.{name}()" if is_clock else ""
    if not isinstance(owner, types.ModuleType):
        return f"{name}() of a socket" if type(owner).__module__ in ("_socket", "socket") and name.startswith(
            "recv") else ""
    return CLOCKS.get(function) or _READERS.get(function) or ("a program" if name == "fork_exec" else "")


def unknown(function: Any) -> str:
    """The name, for a warning, of a C function not known to depend on its arguments only; empty for others.

    Examples
    --------
    >>> unknown(sys.getrefcount), unknown(len), unknown([].copy)
    ('sys.getrefcount()', '', '')
    """
    name, owner = function.__name__, getattr(function, "__self__", None)
    if not isinstance(owner, types.ModuleType) or does_not_answer(name):
        return ""
    module = owner.__name__
    if module in _PURE or module.partition(".")[0] in _COMPUTING:
        return ""
    return f"{module.removeprefix('_')}.{name}()".replace("posix.", "os.")


def does_not_answer(name: str) -> bool:
    """Whether a function of this name acts instead of returning information.

    Examples
    --------
    >>> does_not_answer("release"), does_not_answer("locked")
    (True, False)
    """
    return name in _ACTS or name.startswith(("set", "_set"))


def is_opaque(cls: type) -> bool:
    """Whether objects of a type written in C may change unnoticed.

    Examples
    --------
    >>> import queue
    >>> is_opaque(queue.SimpleQueue), is_opaque(list), is_opaque(object)
    (True, False, False)
    """
    return cls is not object and not issubclass(cls, _KNOWN) and package_of(cls) not in _COMPUTING

"""Observer: finds the outside values that Python code reads while a function is traced.

A profile hook reports each function of the user's that runs. Its byte code tells the globals, closure variables and
attributes that it loads. Attributes of objects are noted as they are read (``class_hooks``); those of modules, classes
and functions, which cannot be hooked, by all names in the code. Each read place becomes a comparison. State that cannot
be compared is named in a warning, or the function runs as Python.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import os
import random
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..core.bytecode_names import COMPUTED, call_arguments, key_of, loads, loads_after
from ..core.held_values import ABSENT, PLAIN
from ..core.parameters import annotations_of
from ..core.registry import count_of_names
from ..core.setting_reads import READERS
from ..custom.purity import METHODS
from ..errors import Where, is_ours
from .attribute_reads import class_attribute
from .buffers import BufferContainer
from .class_hooks import attributes_of, hookable, unhook
from .code_reads import CodeReads, imported_by
from .outside import (
    ABOUT,
    ARRAYS_AS_TEXT,
    AT_PLACES,
    CLOCKS,
    DRAWS,
    FILES,
    INSIDE,
    INSTEAD,
    MISSING_OPERATORS,
    OF_TRACES,
    OUTSIDE,
    PROPS,
    QUESTIONS,
    SETTINGS,
    STATES,
    TELLING_METHODS,
    THREADS,
    copiers,
    does_not_answer,
    error_handlers,
    is_opaque,
    is_same_state,
    state_of,
    title_of,
    unknown,
)
from .state import STATE, untraced
from .user_code import is_of_library, is_side_effect, is_standard, is_user_code, is_user_module
from .value_reads import CACHED

__all__ = ["Observer"]

#: Functions that read an attribute by a name that code may have computed.
_BY_NAME = frozenset({"getattr", "hasattr", "vars"})
_IMPORTS = frozenset({"__import__"})
#: Methods of ``object`` that read attributes without the hook of the class.
_PAST_HOOKS = frozenset({"__getattribute__", "__getstate__"})
#: Modules that read source files to show a line of them.
_SHOWING = frozenset({"linecache", "tokenize", "traceback", "warnings"})
# The code that stores the value of a cached property in its object's ``__dict__``; the property is noted by itself.
_CACHES = functools.cached_property.__get__.__code__


class Observer(CodeReads):
    """A context in which the reads that ``CodeReads`` describes are noted, in one thread."""

    def __enter__(self) -> Observer:
        common = [random._inst, np.random.mtrand._rand]
        self._generators = [(generator, state_of(generator)) for generator in common]
        for callback in gc.callbacks:  # they run whenever memory is collected, as ``__del__`` does
            code = getattr(callback, "__code__", None)
            if code is not None:
                self._users[id(code)] = False
        self._outside, self._profile = sys._getframe(1), sys.getprofile()
        profiler = self._profiler()
        try:
            self._before, STATE.observer = STATE.observer, self
            self.reads.observer = self
            if self._profile is not None and not callable(self._profile):
                self._profile.disable()  # cProfile of Python 3.11, which cannot be called from here
            sys.setprofile(profiler)
        except BaseException:
            self._stop_watching()
            raise
        return self

    def _stop_watching(self) -> None:
        """Restore the thread's observer and profile function."""
        sys.setprofile(None)
        if callable(self._profile):
            sys.setprofile(self._profile)
        elif self._profile is not None:
            self._profile.enable()
        STATE.observer, self._before = self._before, None
        self.reads.observer = self._outside = None

    def __exit__(self, *_: object) -> None:
        self._stop_watching()
        for cls in self._hooked:
            unhook(cls)
        self._keep_notes()
        self._names, self._texts, self._owners = self._all_names, self._all_texts, list(self._all_owners.values())
        if (self._generators[2:] or "random" in self._names) and not self._names.isdisjoint(STATES):
            self.reason = self.reason or "it asks for the state of a random generator, which changes with each draw"
        self.drawn = [(generator, before) for generator, before in self._generators
                      if not is_same_state(state_of(generator), before)]
        if any("random" in self._names or id(generator) in self._met for generator, _ in self.drawn):
            self.reason = self.reason or DRAWS
        if "_data" in self._names and self._memory_is_read():
            self.reason = self.reason or "it reads the memory of a tensor by _data"
        past_hooks = not self._names.isdisjoint(_PAST_HOOKS)
        for value in tuple(self._met.values()) if past_hooks or "__get__" in self._names else ():
            self._read_slots(value)
            if past_hooks:
                self._read_all_attributes(value)
        self._meet_functions()
        if self._all_by_text:
            self._close_tensors()
        for cls in self._classes:
            self._close_class(cls)
        for owner in [each for each in self._owners if isinstance(each, types.ModuleType)]:
            for name in self._names.intersection(vars(owner)):  # functions that a module makes at their first use
                self._read_attribute(owner, name)
        for function in self._caches:
            self._close_cache(function)
        self._met, self._functions, self._generators, self._codes = {}, {}, [], []
        self._owners, self._all_owners, self._holders = [], {}, {}
        self._ran = {}
        self._classes, self._caches = {}, []

    def begin_again(self) -> None:
        """Note from now on also reads of places that were read before: a call of Python in the graph may change them.
        Functions that run may read all names that the rest of their code loads."""
        self._keep_notes()
        self._forget()
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._outside:
            if self._is_user(frame):
                for value in frame.f_locals.values():
                    self.note_use(value)
                self._read_code(frame.f_code, frame.f_globals, loads_after(frame.f_code, frame.f_lasti))
            frame = frame.f_back

    def note_changes(self, names: Iterable[str], title: str) -> None:
        """Note that an operator may change variables and attributes of these names: code that reads them later cannot
        be a graph."""
        new = dict.fromkeys(names, title)
        if new:
            self._changing.update(new)
            self.begin_again()

    def _keep_notes(self) -> None:
        """Add the notes since the last call of Python in the graph to those from before."""
        self._all_names |= self._names
        self._all_texts |= self._texts
        self._all_by_text |= self._by_text
        self._all_owners.update(zip(map(id, self._owners), self._owners))

    def _memory_is_read(self) -> bool:
        """Whether an attribute ``_data`` that code reads belongs to tensors: no other object has it."""
        owners = [value for value in self._met.values() if "_data" in (attributes_of(value) or ())]
        return not owners and any(isinstance(value, NDArray) for value in self._met.values())

    def _is_from_outside(self, code: types.CodeType) -> bool:
        """Whether user code is that of a function, and no code that has run defines it."""
        return bool(code.co_flags & inspect.CO_OPTIMIZED) and id(code) not in self._inner

    def _meet_functions(self) -> None:
        """Note the functions that ran although no code of the user's names them. All objects of the process are
        searched only for code that did not end in view: that of a suspended generator, or of another thread."""
        self._find_ended_calls()
        ran = [function for function in self._ran.values() if self._is_from_outside(function.__code__) and not any(
            function is named for named in self._functions.get(id(function.__code__), ()))]
        found = {id(function.__code__) for function in ran}.union(self._functions)
        codes = [code for code in self._codes
                 if self._users[id(code)] and self._is_from_outside(code) and id(code) not in found]
        for function in (*ran, *(gc.get_referrers(*codes) if codes else ())):
            if isinstance(function, types.FunctionType):
                self._read_function(function)

    def _find_ended_calls(self) -> None:
        """Find the functions of frames that have ended: only then Python shows the function of a frame."""
        for frame in self._ended:
            for value in gc.get_referents(frame):
                if type(value) is types.FunctionType and value.__code__ is frame.f_code:
                    self._ran[id(value)] = value
        self._ended.clear()

    # ------------------------------------------------------------------------------------------------ code that runs

    def _profiler(self) -> Callable[[types.FrameType, str, Any], None]:
        """The profile function; Python calls it at the begin and end of functions: thousands of times, nearly always
        for library code."""
        known, another = self._users.get, self._profile if callable(self._profile) else None
        ended = self._ended

        def profile(frame: types.FrameType, event: str, arg: Any) -> None:
            if another is not None:
                another(frame, event, arg)
            if ended:
                self._find_ended_calls()
            if event == "c_call" and STATE.observer is not None and (
                    arg.__name__ in OUTSIDE or known(id(frame.f_code))):
                self._note_outside_call(frame, arg)
            if known(id(frame.f_code)) is not False and self._is_user(frame):
                if STATE.observer is not None:
                    self._note_event(frame, event, arg)
                if event == "return" and self._is_from_outside(frame.f_code):
                    ended.append(frame)  # until the next event
            elif event == "return" and STATE.observer is not None and frame.f_back is not None and known(
                    id(frame.f_back.f_code)):
                self._note_answer(frame, arg)
            elif event == "call" and STATE.observer is not None and id(frame.f_code) in INSIDE:
                self._note_library_call(frame)

        return profile

    def _note_event(self, frame: types.FrameType, event: str, arg: Any) -> None:
        """Handle an event: a user's function begins or ends, or calls a function written in C."""
        if event == "call":
            self._note_begin(frame)
        elif event == "return":
            self.note_use(arg)
            for name in imported_by(frame.f_code, frame.f_globals):
                self._read_module(name)
                if name not in sys.modules:
                    self.comparisons.entry(sys.modules, name, ABSENT, f"the module {name}")

    def _note_answer(self, frame: types.FrameType, answer: Any) -> None:
        """Note the result of a library function called by the user's code."""
        setting = READERS.get(id(frame.f_code))
        if id(frame.f_code) in OF_TRACES:
            self.reason = self.reason or OF_TRACES[id(frame.f_code)]
        elif setting is None or setting is copiers:
            if setting is copiers:
                self._read_setting(setting)
            if frame.f_code.co_name in ABOUT:
                self._note_answer_about(frame)
            elif frame.f_code is importlib.import_module.__code__:
                self._read_modules({getattr(answer, "__name__", COMPUTED)})
            self.note_use(answer)
            # a context manager of contextlib is a new object in each call
            if hookable(type(answer)) and frame.f_globals.get("__name__") != "contextlib":
                self.ignore(answer)
        elif inspect.unwrap(setting).__code__ is not frame.f_code:  # it answers instead
            self._read_setting(setting)
        elif answer is not None or not frame.f_code.co_argcount:
            self._read_setting(setting, *map(frame.f_locals.get, frame.f_code.co_varnames[:frame.f_code.co_argcount]))

    def _note_answer_about(self, frame: types.FrameType) -> None:
        """Note a call of a library function whose result depends on the content of an argument."""
        code = frame.f_code
        about: Any = frame.f_locals.get(code.co_varnames[0])
        if code is inspect.signature.__code__ or code is typing.get_type_hints.__code__:
            if isinstance(about, types.FunctionType):
                self._read_function(about)
                self.comparisons.entry(vars(about), "__signature__", vars(about).get("__signature__", ABSENT),
                                       f"the signature of {about.__qualname__}")
            self.read(annotations_of(about), f"annotations of {about!r}")
        elif code in TELLING_METHODS:
            expression = TELLING_METHODS[code]
            content = eval(expression.format("about"))
            self.comparisons.path(about, expression, content, f"attributes of {about!r}")
        elif (title := f"{frame.f_globals.get('__name__')}.{code.co_name}") in AT_PLACES:
            self.comparisons.unseen[f"{title}()"] = None

    def _note_library_call(self, frame: types.FrameType) -> None:
        """Note a library function whose result depends on a setting, a file or a class, called somewhere inside of
        libraries."""
        if id(frame.f_code) == ARRAYS_AS_TEXT:
            if self._caller(frame, ours=True) is not None:
                self._read_setting(np.get_printoptions)
        elif id(frame.f_code) == FILES:
            if (caller := self._caller(frame, ours=True)) is not None:
                self.comparisons.unseen[f"a file at {Where((caller.f_code.co_filename, caller.f_lineno))}"] = None
        elif id(frame.f_code) == MISSING_OPERATORS:
            self._read_setting(count_of_names)
        elif id(frame.f_code) == PROPS:
            self._read_prop(frame.f_locals["self"].prop_class)
        elif self._caller(frame) is not None:
            self.read(os.environ, "os.environ")

    def _read_prop(self, cls: type) -> None:
        """Note the methods of a ``CustomOpProp``, whose answers a graph holds; defaults are methods of opreg's."""
        self.note_use(cls)
        for name in METHODS:
            self.comparisons.path(cls, f"getattr({{}}, {name!r}, absent)", getattr(cls, name, ABSENT),
                                  f"{cls.__name__}.{name}")

    def _note_outside_call(self, frame: types.FrameType, function: Any) -> None:
        """Note a call of a C function whose result may depend on time, files, randomness or an object's content, by the
        user's code or a library that it calls."""
        if function is getattr or function is hasattr or function is vars:
            self._read_by_name(*call_arguments(frame, _BY_NAME))
        elif function is globals:
            self._read_globals(frame.f_globals, key_of(frame))
        elif function is __import__:
            self._read_modules({call_arguments(frame, _IMPORTS)[0]})
        if not issubclass(type(getattr(function, "__self__", None)), (types.ModuleType, type, types.NoneType)):
            self._note_method_call(frame, function)
        setting = INSTEAD.get(function, function)
        title = title_of(function) or SETTINGS.get(setting) or ("a thread" if function.__name__ in THREADS else "")
        caller = self._caller(frame)
        if caller is None:
            return
        if not title:
            title = unknown(function) if caller is frame else ""
        if not title:
            return
        if setting in SETTINGS:
            self._read_setting(setting)
        elif function.__name__ in THREADS:
            self.reason = self.reason or "it starts a thread, in which nothing is traced"
        elif function is sys.getprofile:
            self.reason = self.reason or "it asks for the profile function, which a trace sets"
        elif function is os.urandom:
            self.reason = self.reason or DRAWS
        elif function not in CLOCKS:
            self.comparisons.unseen[f"{title} at {Where((caller.f_code.co_filename, caller.f_lineno))}"] = None
        elif caller is frame:  # not when logging reads the clock
            self.comparisons.unseen[title] = None

    def _note_method_call(self, frame: types.FrameType, method: Any) -> None:
        """Note a call of a C method of an outside object: its result depends on the object's content."""
        owner, name = method.__self__, method.__name__
        if id(owner) not in self._read or issubclass(type(owner), PLAIN):
            return
        base = class_attribute(type(owner), name)[0]
        if base is None or not (is_opaque(base) or type(owner) is CACHED) or does_not_answer(name):
            return
        label = f"{name}() of a {type(owner).__name__}"
        if name in QUESTIONS:
            self.comparisons.path(owner, f"repr({{}}.{name}())", repr(method()), label)
        else:
            self.comparisons.unseen[f"{label} at {Where((frame.f_code.co_filename, frame.f_lineno))}"] = None

    def _caller(self, frame: types.FrameType | None, ours: bool = False) -> types.FrameType | None:
        """The frame of the user's function that runs now, perhaps through calls of a library. None while code of opreg
        runs, unless ``ours``, and while code runs that is skipped."""
        if is_side_effect(frame, self._outside):
            return None
        while frame is not None and frame is not self._outside:
            if self._is_user(frame):
                return frame
            if (is_ours(frame.f_code) and not ours) or frame.f_globals.get("__name__") in _SHOWING:
                return None
            frame = frame.f_back
        return None

    def _is_user(self, frame: types.FrameType) -> bool:
        code = frame.f_code
        user = self._users.get(id(code))
        if user is None:
            if is_side_effect(frame, self._outside):
                return False
            user = self._users[id(code)] = is_user_code(code) and not is_of_library(
                code, frame.f_globals.get("__name__"))
            self._codes.append(code)
        return user

    def _note_begin(self, frame: types.FrameType) -> None:
        """Note that a user's function begins."""
        code, scope = frame.f_code, frame.f_globals
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS) \
            + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        values = frame.f_locals if count else {}
        for name in code.co_varnames[:count]:
            self.note_use(values.get(name))
        first = values.get(code.co_varnames[0]) if count else None
        if count:
            self._begin_method(code, first)
        if (id(code), id(scope)) not in self._scanned:
            self._scanned.add((id(code), id(scope)))
            self._read_code(code, scope)
        if issubclass(type(first), UnicodeError) and count == 1:
            if any(getattr(handler, "__code__", None) is code for handler in error_handlers()):
                self._read_setting(error_handlers)
            else:
                self.comparisons.unseen["codecs.register_error()"] = None

    def _begin_method(self, code: types.CodeType, first: Any) -> None:
        """Note the members of a class with this code, which begins to run. The first argument is an object of the
        class, or the class."""
        for cls in (type(first), first) if issubclass(type(first), type) else (type(first),):
            if (id(code), id(cls)) in self._methods or not (hookable(cls) or is_user_module(cls.__module__)):
                continue
            self._methods.add((id(code), id(cls)))  # an operator such as a + b may call the method without its name
            for base in cls.__mro__:
                for name, member in tuple(vars(base).items()):
                    if getattr(getattr(member, "__func__", member), "__code__", None) is code:
                        self._read_class_attribute(cls, name)
                        if class_attribute(cls, name)[0] is not base:  # called by super()
                            self._read_class_attribute(base, name)
                    elif isinstance(member, property):
                        for function in (member.fget, member.fset, member.fdel):
                            if getattr(function, "__code__", None) is code:
                                self.note_use(function)
            if "super" in loads(code).scope:
                for base in cls.__mro__:
                    for name in loads(code).names.intersection(vars(base)):
                        self._read_class_attribute(base, name)

    # --------------------------------------------------------------------------------- attributes, as they are read

    def attribute(self, owner: Any, name: str, value: Any, frame: types.FrameType) -> None:
        """Note that an attribute of an object with a hooked class is read in a frame."""
        place = id(owner), name
        if self._noted.get(place) or (name == "__dict__" and frame.f_code is _CACHES):
            return
        cls, user = type(owner), self._is_user(frame)
        if not user and place in self._noted:
            return
        self.note_use(owner)  # an object may have the hook of another thread's trace, which may end before this one
        is_read = not user or frame.f_lasti not in loads(frame.f_code).changes
        value = self._first_value(place, value, is_read)
        if not is_read:
            return
        self._noted[place] = user
        if not issubclass(cls, BufferContainer):
            if user or is_user_module(cls.__module__) or (
                    id(owner) in self._read and not issubclass(type(value), dict)):
                self._read_object_attribute(owner, name, value)
            elif id(owner) in self._read and not is_standard(cls.__module__):
                # attributes of a standard class, such as a Logger, are caches
                self._read_table(owner, name, value)
            return
        attributes = attributes_of(owner)
        if name == "__dict__" and user:
            self._read_attributes_of_cell(owner, attributes)
        elif name in attributes:
            self._read_cell_attribute(owner, name, value, user)
        elif "_params" in attributes and value is not ABSENT and not name.startswith("__"):
            base, stored_value = class_attribute(cls, name)
            if base is not None and is_user_module(base.__module__):
                self._read_missing_attribute(owner, name)
                if stored_value is value and user:
                    self.comparisons.path(owner, f"{{}}.{name}", value, f"{owner.path}.{name}")
                    self.read(value, f"{owner.path}.{name}")
                else:
                    self._read_class_attribute(cls, name)

    def _read_table(self, owner: Any, name: str, table: dict[Any, Any]) -> None:
        """Note that a library reads a dict of an object: its entries, or a text by which the object tells of changes.
        """
        if hasattr(type(owner), "_traced_state"):
            with untraced():
                state = owner._traced_state()
            self.comparisons.path(owner, "{}._traced_state()", state, f"the {type(owner).__name__}")
        else:
            self._read_object_attribute(owner, name, table)

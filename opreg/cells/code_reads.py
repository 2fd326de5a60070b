"""Names that the code of a traced function loads, and the values that they have.

They are found in byte code: globals, built-in functions, imported modules, and attributes that are set.
"""

from __future__ import annotations

import builtins
import gc
import os
import sys
import types
import warnings
from typing import Any

from ..core.bytecode_names import HANDLERS, Loads, loads, module_keys
from ..core.held_values import ABSENT
from .class_hooks import hookable
from .outside import BY_NAME, error_handlers
from .user_code import is_user_module
from .value_reads import OF_CLASS, ValueReads

__all__ = ["CodeReads", "imported_by"]

_BUILT_IN = frozenset(name for name, value in vars(builtins).items() if isinstance(value, type))
#: Attributes of frames and functions by which code reaches globals without loading their names.
_ATTRIBUTES_OF_FRAMES = frozenset({"__globals__", "f_builtins", "f_globals"})
#: Names by which code reads the state of warnings.
_WARNS = frozenset({"catch_warnings", "simplefilter", "warn", "warn_explicit"})
#: Names of functions that read attributes by names that byte code does not tell.
_BY_ANY_NAME = frozenset({"attrgetter", "getmembers", "getmembers_static", "methodcaller"})
#: Attributes that library functions of a name read.
_READ_BY = {"getdoc": ("__doc__",), "getclosurevars": ("__closure__", "__globals__"),
            **dict.fromkeys(("getfullargspec", "getcallargs"), (
                "__code__", "__defaults__", "__kwdefaults__", "__annotations__")),
            **dict.fromkeys(("getsource", "getsourcelines", "isgeneratorfunction", "iscoroutinefunction"), (
                "__code__",))}
#: Functions that read an attribute whose name is text.
_BY_TEXT = frozenset({"getattr", "hasattr", "vars", "eval", "operator", "attrgetter", "__dict__"})
#: Names by which code reads environment variables, as text or as bytes.
_ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})


def imported_by(code: types.CodeType, scope: dict[str, Any]) -> list[str]:
    """The full names of the modules that code with these globals imports."""
    package = (scope.get("__package__") or "").split(".")
    return [".".join(filter(None, (*package[:len(package) - level + 1], name))) if level else name
            for name, level in loads(code).imports]


class CodeReads(ValueReads):
    """Names that code loads during one trace, with their values and attributes."""

    def _read_module(self, name: str) -> None:
        """Note that a module is found by its name."""
        module = sys.modules.get(name)
        self.note_use(module)
        if not isinstance(module, types.ModuleType):
            self.read(module, f"the module {name}")
        if module is not None and is_user_module(name):
            self.comparisons.entry(sys.modules, name, module, f"the module {name}")

    def _read_code(self, code: types.CodeType, scope: dict[str, Any], found: Loads | None = None) -> None:
        """Note the names that code loads, and their values; those that running code loads from now on if ``found`` is
        given."""
        self._inner.update(id(const) for const in code.co_consts if isinstance(const, types.CodeType))
        names_loaded = found or loads(code)
        self._texts.update(filter(str.isidentifier, names_loaded.texts))
        named = names_loaded.names.union(names_loaded.scope)
        self._by_text = self._by_text or not _BY_TEXT.isdisjoint(named)
        if not _BY_ANY_NAME.isdisjoint(named):
            self._read_by_any_name()
        read = (_READ_BY[name] for name in named & _READ_BY.keys())
        new = named.union(*read, self._texts if self._by_text else ()) - self._names
        self._names |= new
        self._read_names(names_loaded, scope)
        self._note_stores(names_loaded, scope)
        self._updates.update(names_loaded.changes.values())
        for owner in tuple(self._owners):
            for name in names_loaded.changes.values():
                self._first_value((id(owner), name), getattr(owner, name, ABSENT), False)
            for name in new:
                self._read_attribute(owner, name)
        if not new.isdisjoint(OF_CLASS):
            for value in tuple(self._met.values()):
                if hookable(type(value)):
                    self.note_use(type(value))
        for name in new & BY_NAME.keys():
            self._read_setting(BY_NAME[name])
        if not names_loaded.texts.isdisjoint(HANDLERS):
            self._read_setting(error_handlers)
        if not new.isdisjoint(_WARNS):
            self.read(warnings.filters, "warnings.filters")
        for name in new & _ATTRIBUTES_OF_FRAMES:
            self.comparisons.unseen[f"{name} of a frame or a function"] = None
        if not _ENVIRONMENT.isdisjoint(new):
            self.read(os.environ, "os.environ")
        for text in names_loaded.texts:
            self._read_module(text)
        for name in imported_by(code, scope):
            # not a module but an object, whose attributes a hook notes
            if not isinstance(sys.modules.get(name), types.ModuleType):
                self._read_module(name)
        if "modules" in names_loaded.names:
            self._read_modules(module_keys(code, scope))
        self._read_functions_of(code, found)
        if self._changing:
            scope_names = {name for name, is_read in names_loaded.scope.items() if is_read}
            self._refuse_changing({*names_loaded.names, *names_loaded.outer, *scope_names})

    def _read_names(self, names_loaded: Loads, scope: dict[str, Any]) -> None:
        """Note the globals and built-ins that code loads, and their values."""
        for name, is_read in names_loaded.scope.items():
            value = scope.get(name, ABSENT)
            if value is not ABSENT or not hasattr(builtins, name):
                value = self._first_value((id(scope), name), value, is_read)
                if is_read:
                    label = f"the global {name}"
                    self.comparisons.entry(scope, name, value, label)
                    self._read_existing(value, label)
            elif is_read:
                self.comparisons.missing(scope, name, "a global like a built-in function")
                if name not in _BUILT_IN:
                    value = vars(builtins)[name]
                    self.comparisons.entry(vars(builtins), name, value, f"the built-in {name}")
                    self.read(value, f"the built-in {name}")

    def _read_functions_of(self, code: types.CodeType, found: Loads | None) -> None:
        """Note the functions that have this code."""
        functions = self._functions.get(id(code), [])
        if not functions and code.co_freevars and id(code) not in self._inner:
            functions = [referrer for referrer in gc.get_referrers(code) if isinstance(referrer, types.FunctionType)]
            if not functions and gc.get_freeze_count():
                self.reason = self.reason or f"gc.freeze() hides the variables that {code.co_name} has from outside"
        for function in functions:
            self._read_function(function, found)

    def _note_stores(self, names_loaded: Loads, scope: dict[str, Any]) -> None:
        """Note the places outside of code that it sets."""
        texts = set(filter(str.isidentifier, names_loaded.texts))
        for name in names_loaded.places["global"].union(texts if "globals" in names_loaded.scope else ()):
            self.comparisons.place(scope, name, f"the global {name}")
        new = names_loaded.places["attribute"].union(texts if "setattr" in names_loaded.scope else ()) - self._stores
        self._stores |= new
        for owner in tuple(self._holders.values()):
            self._note_stores_on(owner, new)

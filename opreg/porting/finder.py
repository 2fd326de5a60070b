"""Import hooks of a script: its own modules are ported as they are loaded, and the library for which it was written is
found in this package.

NumPy and the standard library are not changed, so other libraries use them unmodified.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

import opreg
from opreg import aliases

from .compiling import compiled
from .patched_libraries import COMPANIONS, SCRIPT, complete

__all__ = ["install", "VERSIONS"]

#: The library versions that scripts see; scripts choose their calls by them.
VERSIONS = {"mxnet": "1.9.1", "mindspore": "2.10.0"}

#: For each library its name, and the page of ``docs/`` that lists missing parts.
_PAGES = {"mxnet": ("MXNet", "mxnet"), "mindspore": ("MindSpore", "mindspore_names")}


def install(library: str, main: str | None = None) -> None:
    """From now on, find a library's name in this package, and port modules that are not installed.

    Parameters
    ----------
    library : str
        ``mxnet`` or ``mindspore``.
    main : str, optional
        Path of the script, in a child process that imports it.
    """
    finder = _Modules(library, main)
    sys.meta_path.insert(0, finder)
    for name in COMPANIONS.keys() & sys.modules.keys():
        complete(sys.modules[name], finder)


class _RewritingLoader(SourceFileLoader):
    """Loads a module of the script, ported; compiled code is not cached, since it differs from the file."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        package = fullname if self.is_package(fullname) else fullname.rpartition(".")[0]
        return compiled(self.get_data(path), path, package)


class _PatchingLoader(SourceFileLoader):
    """Loads an installed module, and patches it."""

    def __init__(self, loader: SourceFileLoader, finder: _Modules) -> None:
        super().__init__(loader.name, loader.path)
        self._finder = finder

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        complete(module, self._finder)


class _Modules:
    """Finds the modules of a script, which are those that are not installed, and the modules of its library."""

    def __init__(self, library: str, main: str | None) -> None:
        self.library = library
        self.main = main
        paths = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
        paths |= {*site.getsitepackages(), site.getusersitepackages()}
        self._installed = tuple(os.path.join(os.path.realpath(path), "") for path in paths if path)

    def is_own(self, path: str) -> bool:
        """Whether a file belongs to the script, and is not installed."""
        return not os.path.realpath(path).startswith(self._installed)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if name == self.library or name.startswith(f"{self.library}."):
            return ModuleSpec(name, _Library(self.library), is_package=True)  # type: ignore[arg-type]
        if name == SCRIPT and self.main is not None:
            return ModuleSpec(name, _RewritingLoader(name, self.main), origin=self.main)
        spec = None if name.partition(".")[0] == "opreg" else PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.origin is None:
            return None
        if name in COMPANIONS:
            spec.loader = _PatchingLoader(spec.loader, self)
            return spec
        return self.rewrite_by_loader(spec) if self.is_own(spec.origin) else None

    def rewrite_by_loader(self, spec: ModuleSpec) -> ModuleSpec:
        """A module's spec, whose loader rewrites the module if it belongs to the script."""
        if type(spec.loader) is SourceFileLoader and self.is_own(spec.loader.path):
            spec.loader = _RewritingLoader(spec.loader.name, spec.loader.path)
            spec.cached = None
        return spec


class _Library:
    """Loads ``mxnet`` and its submodules: modules of this package."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return _Front(self.name) if spec.name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name == self.name:
            return
        submodule = name.removeprefix(f"{self.name}.")
        try:
            sys.modules[name] = aliases.module_below(submodule)
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("opreg."):
                raise
            try:
                getattr(opreg, error.name.split(".")[1])
                library, page = _PAGES[self.name]
                message = f"{submodule!r} of {library} is no part of opreg. See docs/{page}.md"
            except AttributeError as absent:
                message = str(absent)
            raise ModuleNotFoundError(message, name=name) from None


class _Front(ModuleType):
    """The library's top module: this package, with the version that scripts check."""

    def __init__(self, name: str) -> None:
        super().__init__(name, opreg.__doc__)
        self.__version__ = VERSIONS[name]
        self.__file__ = opreg.__file__

    def __getattr__(self, name: str) -> Any:
        return getattr(opreg, name)

    def __dir__(self) -> list[str]:
        return dir(opreg)

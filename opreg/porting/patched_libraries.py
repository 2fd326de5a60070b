"""Libraries that read modules, or start interpreters, themselves: importlib, pytest, its workers, multiprocessing.

Each is patched when a script imports it, so that tests rewritten by pytest, and other interpreters, import the same
modules as the script.
"""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from .compiling import compiled

__all__ = ["COMPANIONS", "SCRIPT", "Finder", "complete"]

#: Name under which other processes import the script.
SCRIPT = "__script__"


class Finder(Protocol):
    """Finder of a script's modules."""

    library: str
    main: str | None

    def is_own(self, path: str) -> bool:
        """Whether a file belongs to the script, and is not installed."""

    def rewrite_by_loader(self, spec: ModuleSpec) -> ModuleSpec:
        """A module's spec, whose loader rewrites the module if it belongs to the script."""


def complete(module: ModuleType, finder: Finder) -> None:
    """Patch a module that has just been imported, if it is in ``COMPANIONS``."""
    if (change := COMPANIONS.get(module.__name__)) is not None:
        change(module, finder)


def _files(module: Any, finder: Finder) -> None:
    """Rewrite modules that the script loads from a file by ``spec_from_file_location``."""
    find = module.spec_from_file_location

    @functools.wraps(find)
    def spec_from_file_location(*args: Any, **keywords: Any) -> ModuleSpec | None:
        spec = find(*args, **keywords)
        return None if spec is None else finder.rewrite_by_loader(spec)

    module.spec_from_file_location = spec_from_file_location


def _pytest(module: ModuleType, finder: Finder) -> None:
    """Make pytest rewrite the assertions of code that was ported.

    Its import hook comes before all others, and reads tests, conftests and plugins itself. No compiled files of these
    are cached: pytest would use them in a run without porting.
    """
    hook = module.AssertionRewritingHook
    execute = hook.exec_module

    def exec_module(self: Any, tested: ModuleType) -> None:
        spec = tested.__spec__
        if spec is None or spec.origin is None or not finder.is_own(spec.origin):
            execute(self, tested)
            complete(tested, finder)  # pytest loads the modules of its plugins, too
            return
        path = Path(spec.origin)
        self._rewritten_names[spec.name] = path

        def change(tree: ast.Module, text: str) -> None:
            module.rewrite_asserts(tree, text.encode(), str(path), self.config)

        exec(compiled(path.read_bytes(), str(path), spec.parent or "", change), vars(tested))

    hook.exec_module = exec_module


def _workers(module: ModuleType, finder: Finder) -> None:
    """Make workers of pytest-xdist find the script's modules."""
    worker = module.WorkerController
    set_up = worker.setup

    def setup(self: Any) -> None:
        self.gateway.remote_exec(_program(finder, finder.main)).waitclose()
        set_up(self)

    worker.setup = setup


def _prepare_children(module: Any, finder: Finder) -> None:
    """Make spawned processes find the script's modules, and load them under the right names.

    They first unpickle a description of this process, and import the main program by its name, if it has one: the
    finder gives the script a name for this.
    """
    describe = module.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = describe(name)
        main = data.pop("init_main_from_path", finder.main)
        if main is not None:
            data["init_main_from_name"] = SCRIPT
        return {"opreg": _Run(_program(finder, main)), **data}

    module.get_preparation_data = get_preparation_data


class _Run:
    """A program that runs when it is unpickled."""

    def __init__(self, program: str) -> None:
        self.program = program

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.program, {})


def _program(finder: Finder, main: str | None) -> str:
    """A program with which another interpreter finds the same modules."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return f"import sys\nsys.path.insert(0, {folder!r})\nfrom opreg.porting.finder import install\n" \
           f"del sys.path[0]\ninstall({finder.library!r}, {main!r})\n"


#: Modules -> the patch that is applied after their import.
COMPANIONS: dict[str, Callable[[ModuleType, Finder], None]] = {
    "_pytest.assertion.rewrite": _pytest, "xdist.workermanage": _workers,
    "multiprocessing.spawn": _prepare_children, "importlib.util": _files}

"""Libraries that read modules, or start interpreters, by themselves: pytest, its workers, multiprocessing.

Each of them is completed when a script imports it: the tests that pytest rewrites, and what other interpreters import,
are then what the script imports here.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from .compiling import compiled

__all__ = ["COMPANIONS", "SCRIPT", "Finder", "complete"]

#: The name by which other processes import the script.
SCRIPT = "__script__"


class Finder(Protocol):
    """Finder of the modules of a script."""

    library: str
    main: str | None

    def is_own(self, path: str) -> bool:
        """Whether a file is part of the script, and not installed."""


def complete(module: ModuleType, finder: Finder) -> None:
    """Complete a module that has just been imported, if it is one of ``COMPANIONS``."""
    if (change := COMPANIONS.get(module.__name__)) is not None:
        change(module, finder)


def _pytest(module: ModuleType, finder: Finder) -> None:
    """Let pytest rewrite the assertions of a tree that is rewritten already.

    Its hook stands before all others, and reads the files of tests, conftests and plugins itself. Nothing compiled is
    kept of them: pytest would take it for its own when it runs them without us.
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
    """Let the workers of pytest-xdist find what the script finds."""
    worker = module.WorkerController
    set_up = worker.setup

    def setup(self: Any) -> None:
        self.gateway.remote_exec(_program(finder, finder.main)).waitclose()
        set_up(self)

    worker.setup = setup


def _children(module: Any, finder: Finder) -> None:
    """Let processes that are spawned find what the script finds, and load it as what it is.

    They unpickle a description of this process before anything else, and import the main program by its name where
    there is one: the finder knows the script by a name of its own.
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
    """A program that is run where this is unpickled."""

    def __init__(self, program: str) -> None:
        self.program = program

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.program, {})


def _program(finder: Finder, main: str | None) -> str:
    """Program that another interpreter runs to find the same modules."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return f"import sys\nsys.path.insert(0, {folder!r})\nfrom opreg.porting.finder import install\n" \
           f"del sys.path[0]\ninstall({finder.library!r}, {main!r})\n"


#: Modules -> what is done with them when they have been imported.
COMPANIONS: dict[str, Callable[[ModuleType, Finder], None]] = {
    "_pytest.assertion.rewrite": _pytest, "xdist.workermanage": _workers,
    "multiprocessing.spawn": _children}

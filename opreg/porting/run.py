"""Running a script, written for another library and perhaps another Python, as it lies there.

Its text, and that of the modules it imports, is rewritten in memory by the rules of ``port`` as it is loaded. NumPy
and the standard library are left alone, so other libraries see both as they are.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import io
import os
import site
import sys
import sysconfig
import tokenize
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

import opreg
from opreg import aliases

from . import port
from .legacy import divide, divide_in_place
from .source import Place, unbuilt

__all__ = ["run_script", "compiled", "VERSIONS"]

#: Versions of the libraries whose names these are; scripts choose by them what to call.
VERSIONS = {"mxnet": "1.9.1", "mindspore": "2.10.0"}

#: The name of each library, and the page of ``docs/`` that says what is not here of it.
_PAGES = {"mxnet": ("MXNet", "mxnet"), "mindspore": ("MindSpore", "mindspore_names")}

_DIVIDE, _DIVIDE_IN_PLACE = "__divide__", "__divide_in_place__"


class _Here(Place):
    """Where a module is that is being imported."""

    def __init__(self, path: str, package: str) -> None:
        self.folder = os.path.dirname(os.path.abspath(path))
        self.package = package

    def sibling(self, top: str, old: bool) -> bool:
        there = bool(self.package) and _is_module(os.path.join(self.folder, top))
        return there and (old or (PathFinder.find_spec(top) is None and top not in sys.builtin_module_names))

    def found(self, module: str, level: int) -> bool:
        if level and not self.package:
            return True
        if not level and unbuilt(os.path.join(self.folder, *module.split("."))):
            return False
        try:
            return importlib.util.find_spec("." * level + module, self.package or None) is not None \
                or _is_module(os.path.join(self.folder, *module.split(".")))
        except (ImportError, ValueError):
            return False


def _is_module(path: str) -> bool:
    return os.path.isfile(path + ".py") or os.path.isfile(os.path.join(path, "__init__.py"))


def compiled(data: bytes, path: str, package: str = "") -> CodeType:
    """The code of a file, rewritten, with the lines of the file as it is.

    In a file for Python 2 alone ``/`` divides as it did there.

    Raises
    ------
    SyntaxError
        The file is of neither Python.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        ported = port(data.decode(encoding), _Here(path, package))
    except SyntaxError as error:
        error.filename = path
        raise
    tree = ast.parse(ported.text, path)
    if ported.old and not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" and any(
            alias.name == "division" for alias in node.names) for node in tree.body):
        tree = ast.fix_missing_locations(_Divisions().visit(tree))
    if ported.text != ported.before:
        _place_back(tree, ported.origins(), ported.before.split("\n"))
    return compile(tree, path, "exec", dont_inherit=True)


def _place_back(tree: ast.AST, origins: list[tuple[int, bool]], before: list[str]) -> None:
    """Give nodes the lines that they had; those of lines that have changed stretch over all of it."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias)):
            continue
        first, same = origins[node.lineno - 1]
        last, same_end = origins[(node.end_lineno or node.lineno) - 1]
        if not (same and same_end):
            line = before[first - 1]
            node.col_offset = len(line) - len(line.lstrip())
            node.end_col_offset = len(before[last - 1].encode())
        node.lineno, node.end_lineno = first, last


class _Divisions(ast.NodeTransformer):
    """Calls of functions that divide as Python 2 does."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.copy_location(_call(_DIVIDE, node.left, node.right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or any(isinstance(each, ast.Call) for each in ast.walk(node.target)):
            return node
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.copy_location(ast.Assign([node.target], _call(_DIVIDE_IN_PLACE, read, node.value)), node)


def _call(name: str, a: ast.expr, b: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [a, b], [])


class _Rewriting(SourceFileLoader):
    """Loads a module of the script, rewritten; nothing compiled is kept, since what runs is not what the file says."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        package = fullname if self.is_package(fullname) else fullname.rpartition(".")[0]
        return compiled(self.get_data(path), path, package)

    def exec_module(self, module: ModuleType) -> None:
        _supply(module)
        super().exec_module(module)


def _supply(module: ModuleType) -> None:
    vars(module).update({_DIVIDE: divide, _DIVIDE_IN_PLACE: divide_in_place})


class _Modules:
    """Finds the modules of a script, which are those that are not installed, and those of the library it is for."""

    def __init__(self, name: str) -> None:
        self.name = name
        paths = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
        paths |= {*site.getsitepackages(), site.getusersitepackages()}
        self.installed = tuple(os.path.join(os.path.realpath(path), "") for path in paths if path)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if name == self.name or name.startswith(f"{self.name}."):
            return ModuleSpec(name, _Library(self.name), is_package=True)  # type: ignore[arg-type]
        spec = None if name.partition(".")[0] == "opreg" else PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.origin is None or (
                os.path.realpath(spec.origin).startswith(self.installed)):
            return None
        spec.loader = _Rewriting(spec.loader.name, spec.loader.path)
        spec.cached = None
        return spec


class _Library:
    """Loads ``mxnet`` and what is below it: the modules of this package themselves."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return _Front(self.name) if spec.name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name == self.name:
            return
        rest = name.removeprefix(f"{self.name}.")
        try:
            sys.modules[name] = aliases.below(rest)
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("opreg."):
                raise
            try:
                getattr(opreg, error.name.split(".")[1])
                library, page = _PAGES[self.name]
                said = f"{rest!r} of {library} is no part of opreg. See docs/{page}.md"
            except AttributeError as absent:
                said = str(absent)
            raise ModuleNotFoundError(said, name=name) from None


class _Front(ModuleType):
    """The library's own module: this package, and the version that scripts ask for."""

    def __init__(self, name: str) -> None:
        super().__init__(name, opreg.__doc__)
        self.__version__ = VERSIONS[name]
        self.__file__ = opreg.__file__

    def __getattr__(self, name: str) -> Any:
        return getattr(opreg, name)

    def __dir__(self) -> list[str]:
        return dir(opreg)


def _found(module: str) -> tuple[CodeType, ModuleSpec]:
    """The code of a module, or of what a package has to be run, and its spec."""
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.submodule_search_locations is not None:
        return _found(f"{module}.__main__")
    code = getattr(spec and spec.loader, "get_code", lambda name: None)(module)
    if spec is None or code is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    return code, spec


def _script(path: str) -> tuple[CodeType, ModuleSpec | None]:
    """The code of a file, which has no spec."""
    with open(path, "rb") as file:
        return compiled(file.read(), path), None


def run_script(library: str, script: str, args: Sequence[str], module: bool = False) -> None:
    """Run a script as ``python script args`` does, in this process, with a library's name meaning this package.

    Parameters
    ----------
    library : str
        ``mxnet`` or ``mindspore``.
    script : str
        Path of the file.
    args : sequence of str
        What it finds in ``sys.argv`` behind its path.
    module : bool
        Whether the script is the name of a module, which is run as by ``python -m``.

    Raises
    ------
    SystemExit
        The script exits, or has failed; its traceback, which begins with its own lines, is printed first.
    """
    sys.argv = [script, *args]
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(script))
    sys.meta_path.insert(0, _Modules(library))
    main = ModuleType("__main__")
    _supply(main)
    sys.modules["__main__"] = main
    try:
        code, spec = _found(script) if module else _script(script)
    except (OSError, SyntaxError, ModuleNotFoundError) as error:
        missing = getattr(error, "name", None)  # else it comes from a package that the module is in
        inside = module and missing and not f"{script}.".startswith(f"{missing.removesuffix('.__main__')}.")
        where = error.__traceback__ if inside else None
        sys.excepthook(type(error), error.with_traceback(where), where)
        sys.exit(1)
    if spec is not None:
        script = sys.argv[0] = str(spec.origin)
        vars(main).update(__package__=spec.parent, __loader__=spec.loader)
    vars(main).update(__file__=script, __builtins__=builtins, __spec__=spec)
    try:
        exec(code, vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        below = error.__traceback__.tb_next if error.__traceback__ is not None else None
        sys.excepthook(type(error), error.with_traceback(below), below)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)

"""Rules for imports, and for names that imports define."""

from __future__ import annotations

import ast
import sys

from .rules import rule
from .source import Source
from .tables import BROUGHT, GONE, HELPERS, MEMBERS, MODULES, STARRED

__all__ = ["imported", "imported_from", "replace_star_import", "member", "loads"]

#: Names of compiled helpers in detection repositories.
_COMPILED = {"bbox", "bbox_self", "cython_bbox", "cpu_nms", "gpu_nms", "cython_nms", "anchors"}
#: This library's module with the same helpers.
_DETECTION = "opreg.contrib.detection"


def _as(name: str, bound: str | None) -> str:
    return f"{name} as {bound}" if bound and bound != name else name


@rule(ast.Import)
def imported(node: ast.Import, source: Source) -> None:
    """``import a.b as c``."""
    if source.is_guarded(node):
        return
    lines = []
    for alias in node.names:
        name = alias.name
        top, dot, path_after = name.partition(".")
        bound = alias.asname
        if (bound or not dot) and _unbuilt(name, 0, source):
            lines.append(f"import {_as(_DETECTION, bound or name)}")
            continue
        if name == "find_mxnet" and not source.place.found(name, 0) and _is_unused(bound or name, source):
            continue  # the module only let programs in MXNet's folders find the library
        if source.place.sibling(top, source.old) and not _says_absolute(source):
            if dot and not bound:
                source.report(node, f"import {name} means the module beside this one: import it by from .{top} import")
            elif dot:
                package, _, last = name.rpartition(".")
                lines.append(f"from .{package} import {_as(last, bound)}")
                continue
            else:
                lines.append(f"from . import {_as(name, bound)}")
                continue
        if top in source.place.names:
            new = source.place.names[top]
            if dot and not bound:
                lines.append(f"import {_as(new, top)}")
            name = f"{new}{dot}{path_after}"
            bound = bound or (top if not dot else None)
        elif name in MODULES:
            name, bound = MODULES[name], bound or name
        elif name.startswith("distutils.") or name in GONE:
            if not _is_replaced(bound or top, source):
                source.report(node, f"{name} is gone: {GONE[top]}")
            elif name not in sys.stdlib_module_names or not _is_unused(bound or top, source):
                continue
        elif name == "urllib2":
            name, bound = "urllib.request", bound or name
        lines.append(f"import {_as(name, bound)}")
    _write(node, lines, source)


@rule(ast.ImportFrom)
def imported_from(node: ast.ImportFrom, source: Source) -> None:
    """``from a.b import c as d``."""
    module = node.module or ""
    top = module.partition(".")[0]
    if _replace_compiled_import(node, source) or source.is_guarded(node) or node.level:
        return
    if source.place.sibling(top, source.old) and not _says_absolute(source):
        start, end = source.span(node)
        text = source.between(start, end)
        source.put(start, end, text.replace(module, f".{module}", 1))
        return
    if top in source.place.names:
        start, end = source.span(node)
        source.put(start, end, source.between(start, end).replace(top, source.place.names[top], 1))
        return
    lines: list[str] = []
    moved = False
    for alias in node.names:
        full = f"{module}.{alias.name}"
        new = MEMBERS.get(full)
        if new is None:
            owner, name = MODULES.get(module, module), alias.name
            if owner == module and (top in GONE or module == "urllib2") and top not in sys.stdlib_module_names:
                source.report(node, f"{module} is gone: {GONE.get(top, 'urllib.request')}")
        else:
            owner, _, name = new.rpartition(".")
        moved |= owner != module
        if not owner:  # a builtin
            if name != (alias.asname or alias.name):
                lines.append(f"{alias.asname or alias.name} = {name}")
            continue
        text = _as(name, alias.asname or alias.name)
        if lines and lines[-1].startswith(f"from {owner} import "):
            lines[-1] += f", {text}"
        else:
            lines.append(f"from {owner} import {text}")
        moved |= name != alias.name
    if moved:
        _write(node, lines, source)


@rule(ast.ImportFrom)
def replace_star_import(node: ast.ImportFrom, source: Source) -> None:
    """``from mxnet.test_utils import *``, which also defines ``os`` and other names that MXNet's file imports."""
    brought = STARRED.get(node.module or "", {}) if node.names[0].name == "*" and not node.level else {}
    for name, full in brought.items():
        if source.reads(name):
            module, _, member = full.rpartition(".")
            source.add_import(f"import {full}" if not module or " as " in full else f"from {module} import {member}")


def _write(node: ast.stmt, lines: list[str], source: Source) -> None:
    """Replace an import by others; in one line if more statements follow on it."""
    if lines == [f"import {_as(alias.name, alias.asname)}" for alias in getattr(node, "names", ())] or \
            (len(lines) == 1 and lines[0] == ast.unparse(node)):
        return
    start, end = source.span(node)
    line = source.lines[node.lineno - 1]
    alone = not line[:node.col_offset].strip() and not line[node.end_col_offset:].strip(" \t\r;")
    if not lines and alone and any(len(getattr(source.parents[node], body, ())) > 1 for body in ("body", "orelse")):
        source.put(start - node.col_offset, min(start - node.col_offset + len(line.encode()) + 1,
                                                len(source.text.encode())), "")
        return
    text = (f"\n{line[:node.col_offset]}" if alone else "; ").join(lines) or "pass"
    if source.between(start, end) != text:
        source.put(start, end, text)


def _says_absolute(source: Source) -> bool:
    return "absolute_import" in source.futures


def _is_unused(name: str, source: Source) -> bool:
    return not source.named(source.tree, name)


def _is_replaced(name: str, source: Source) -> bool:
    """Whether nothing needs a module's name once its members are replaced."""
    return all(_replaces_part(node, source) for node in source.named(source.tree, name))


def _replaces_part(node: ast.AST, source: Source) -> bool:
    """Whether a name is a part of a dotted one that ``MEMBERS`` replaces."""
    while isinstance(node := source.parents[node], ast.Attribute):
        if source.resolve(node) in MEMBERS:
            return not source.is_guarded(node) and isinstance(node.ctx, ast.Load)
    return False


def _imports(module: str, source: Source) -> bool:
    """Whether an import anywhere in the file loads a module."""
    return any(name == module or name.startswith(f"{module}.") for node in ast.walk(source.tree)
               for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                            [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
                            if isinstance(node, ast.ImportFrom) else ()))


def _unbuilt(module: str, level: int, source: Source) -> bool:
    """Whether a module is a compiled helper whose binary is missing."""
    return module.rpartition(".")[2] in _COMPILED and not source.place.found(module, level)


def _replace_compiled_import(node: ast.ImportFrom, source: Source) -> bool:
    """Replace the import of a compiled helper whose binary is missing, or of one of its functions."""
    module = node.module or ""
    if not _unbuilt(module, node.level, source):
        modules = [alias for alias in node.names if alias.name in _COMPILED
                   and source.place.unbuilt(f"{module}.{alias.name}".lstrip("."), node.level)]
        if modules and len(modules) == len(node.names):
            package, _, ours = _DETECTION.rpartition(".")
            source.replace(node, f"from {package} import " + ", ".join(
                _as(ours, alias.asname or alias.name) for alias in modules))
        return bool(modules) and len(modules) == len(node.names)
    helpers = [alias for alias in node.names if alias.name in HELPERS]
    if not helpers:
        return False
    if len(helpers) < len(node.names):
        source.report(node, f"{module} is not built; {_DETECTION} has "
                      + ", ".join(sorted({HELPERS[alias.name] for alias in helpers})))
        return False
    names = ", ".join(_as(HELPERS[alias.name], alias.asname or alias.name) for alias in helpers)
    source.replace(node, f"from {_DETECTION} import {names}")
    return True


@rule(ast.Attribute)
def member(node: ast.Attribute, source: Source) -> None:
    """``urllib.urlopen``, ``time.clock``, ``collections.Iterable``, and ``multiprocessing.pool`` without its import."""
    full = source.resolve(node)
    owner, _, name = full.rpartition(".")
    if owner == _DETECTION and HELPERS.get(name, name) != name:
        source.rename(node, HELPERS[name])
    if full in BROUGHT and not _imports(full, source):
        source.add_import(f"import {full}")
    new = MEMBERS.get(full)
    if new is None or full.startswith("urllib2.") or source.is_guarded(node) or not isinstance(node.ctx, ast.Load):
        if full == "string.join":
            source.report(node, "string.join is gone: str.join")
        return
    owner, _, name = new.rpartition(".")
    if owner.startswith("opreg"):
        if name not in source.bound:
            source.add_import(f"from {owner} import {name}")
        source.replace(node, name)
        return
    if owner and owner != "str":
        source.add_import(f"import {owner}")
    source.replace(node, new)


def _open_in_binary(file: ast.AST, source: Source) -> None:
    """Open the file of a pickle in binary mode, if a visible call opens it as text."""
    if not isinstance(file, ast.Name):
        _binary(file, source)
        return

    def find() -> bool:
        contexts = [up.context_expr for context in source.named(scope, file.id)
                    if isinstance(up := source.parents[context], ast.withitem) and up.optional_vars is context]
        for value in (*contexts, *source.assigned_values(scope, file.id)):
            _binary(value, source)
        return True

    scope = source.scope(file)
    source.once(("a pickle is read from", scope, file.id), find)


def _binary(call: ast.AST, source: Source) -> None:
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in ("open", "file"):
        return
    if len(call.args) == 1 and not call.keywords:
        source.wrap_argument(call, call.args[0], "", ", 'rb'")
    elif len(call.args) == 2 and ast.unparse(call.args[1]) in ("'r'", "'rt'"):
        source.replace(call.args[1], "'rb'")


@rule(ast.Call)
def loads(node: ast.Call, source: Source) -> None:
    """``pickle.loads`` of an operator's keyword, which is text, and ``pickle.load`` of files of Python 2."""
    name = source.resolve(node.func)
    if name not in ("cPickle.loads", "pickle.loads", "cPickle.load", "pickle.load") or len(node.args) != 1:
        return
    argument = node.args[0]
    if name.endswith(".load"):
        _open_in_binary(argument, source)
        if source.old and not node.keywords:
            source.wrap_argument(node, argument, "", ", encoding='latin1'")
        return
    scope = source.scope(node)
    inside = source.parents.get(scope)
    if isinstance(argument, ast.Name) and isinstance(scope, ast.FunctionDef) and scope.name == "__init__" \
            and argument.id in {argument.arg for argument in scope.args.args} and isinstance(inside, ast.ClassDef) \
            and any(ast.unparse(base).endswith("Prop") for base in inside.bases):
        source.add_import("import ast")
        text = argument.id
        source.wrap_argument(node, argument, "ast.literal_eval(", f") if isinstance({text}, str) else {text}")

"""The amount of handwritten engine code: rules and kernels of operators, attributes of the large records, places in the
code that implement the same idea, lines.

``python -m benchmarks.counts`` prints a table. Built-in operators are counted once, whatever aliases they have. A rule
or kernel counts if an operator has it, attached by a decorator or by a call. A function that several operators share
counts once, and so do all functions that one factory returns. Compilers of expressions and loops count where their
device is in use. The places of an idea are found by their syntax.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from opreg.backends import BACKENDS
from opreg.backends.private_operators import PRIVATE
from opreg.core.op import Op
from opreg.core.registry import operators
from opreg.core.rules import TypeRule
from opreg.symbol.executor import Executor

__all__ = ["counts", "held", "main", "places"]

ROOT = Path(__file__).resolve().parent.parent
#: The engine: everything below what programs call, by folder.
ENGINE = ("opreg/core", "opreg/custom", "opreg/elementwise", "opreg/backends", "opreg/builtin", "ndarray", "symbol")

#: The counted rules, by the names of their decorators.
RULES = ("infer", "shapes", "fill", "types", "grad", "view", "vmap", "kernel")


def _calls(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names


def _ends(node: ast.AST, *words: str) -> bool:
    return ast.unparse(node).endswith(words)


#: A condition on the syntax tree for each idea of ``docs/homes.md``; the fewer places meet it, the better.
FAMILIES: dict[str, Callable[[ast.AST], bool]] = {
    "addresses of arrays": lambda node: isinstance(node, ast.Attribute) and _ends(
        node, "__array_interface__", ".ctypes.data", ".data.ptr"),
    "facts about operators": lambda node: isinstance(node, ast.Compare) and _ends(node.left, "op.name") and any(
        isinstance(each, ast.Constant) and isinstance(each.value, str)
        for right in node.comparators for each in ast.walk(right)),
    "prepared uses": lambda node: isinstance(node, ast.Call) and ast.unparse(node.func) == "prepare" and (
        len(node.args) == 1),
    "replaced nodes": lambda node: isinstance(node, ast.AnnAssign) and node.value is not None
    and ast.unparse(node.target).rpartition(".")[2] == "became",
    "work divided among threads": lambda node: isinstance(node, (ast.ListComp, ast.GeneratorExp)) and _calls(
        node.generators[0].iter, "range") and _calls(node.elt, "slice") and not ast.unparse(node.elt).startswith(
            "slice(None"),
    "temporary memory": lambda node: isinstance(node, ast.ClassDef) and node.name.endswith(
        ("Workspace", "Scratch", "Buffers", "PlanMemory")),
    "values without elements": lambda node: isinstance(node, ast.ClassDef) and any(
        _ends(base, "Tracer") for base in node.bases),
    "instruments on steps": lambda node: _calls(node, "instrument", "instrument_all"),
}
#: Functions and classes that make caches.
CACHES = ("cached", "cached_by_value", "Recent", "following")


@functools.cache
def places() -> dict[str, list[str]]:
    """For each idea, the module of each place.

    Examples
    --------
    >>> sorted(set(places()["addresses of arrays"]))
    ['opreg.core.addresses', 'opreg.ndarray.dlpack']
    """
    found: dict[str, list[str]] = {name: [] for name in FAMILIES}
    for folder in (*ENGINE, "opreg/cells"):
        for path in sorted(_files(folder)):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            module = name if name.startswith("opreg.") else f"opreg.{name}"
            for node in ast.walk(ast.parse(path.read_text())):
                for family, belongs in FAMILIES.items():
                    if belongs(node):
                        found[family].append(module)
    return found


def _caches() -> int:
    """The number of caches in the engine."""
    return sum(_calls(node, *CACHES) or (isinstance(node, ast.Attribute) and ast.unparse(node) == "functools.cache")
               for folder in ENGINE for path in _files(folder) for node in ast.walk(ast.parse(path.read_text())))


def _files(folder: str) -> Iterator[Path]:
    yield from (ROOT / folder).rglob("*.py")


def _lines(folder: str) -> int:
    return sum(len(path.read_text().splitlines()) for path in _files(folder))


def _written(function: Any) -> tuple[str, CodeType] | None:
    """The module and the code of a function, which all functions of one factory share; None for functions outside of
    opreg, such as ufuncs."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    module = getattr(function, "__module__", None) or ""
    return (module, code) if code is not None and module.split(".")[0] == "opreg" else None


def held(every: Iterable[Op], name: str) -> int:
    """The number of handwritten functions that operators have as a rule of this name, or as ``"kernel"``.

    Parameters
    ----------
    every : iterable of Op
        The operators.
    name : str
        A rule, by its decorator's name.

    Returns
    -------
    int
        Functions of one factory count once.

    Examples
    --------
    >>> from opreg.core.registry import ops
    >>> held([ops.dot, ops.dot], "kernel") == held([ops.dot], "kernel"), held([ops.exp, ops.log], "grad")
    (True, 1)
    """
    found: set[tuple[str, CodeType] | None] = {None}
    for op in every:
        rules = [getattr(op.rules, name)] if name != "kernel" else [
            kernel.parts or kernel.rule for kernel in op.kernels]
        found.update([_written(getattr(rule, "function", rule)) for rule in rules
                      if callable(rule) and not isinstance(rule, TypeRule)])
    return len(found) - 1


def _attributes_of(cls: type) -> int:
    """Attributes of a class: methods, properties, and what ``__init__`` sets on itself."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls)))
    set_here = {target.attr for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.AnnAssign))
                for target in ast.walk(node.targets[0] if isinstance(node, ast.Assign) else node.target)
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
                and target.value.id == "self"}
    return len({*set_here, *[name for name in vars(cls) if not name.startswith("__")]})


def counts() -> dict[str, int]:
    """All counts, by title.

    Examples
    --------
    >>> found = counts()
    >>> found["operators"] > 500, found["composed operators"] > 0
    (True, True)
    """
    for name in BACKENDS:
        importlib.import_module(f"opreg.backends.{name}.operators")
    every = [op for op in operators() if op.where is None]
    found = {"operators": len(every), "composed operators": sum(op.traits.traced for op in every),
             "element-wise operators": sum(op.rules.expression is not None for op in every),
             "operators that are loops": sum(op.rules.sets is not None for op in every)}
    for name in RULES:
        found[f"functions that are a rule: {name}"] = held([*every, *PRIVATE], name)
    found["attributes of Op"], found["attributes of Executor"] = _attributes_of(Op), _attributes_of(Executor)
    found["caches"] = _caches()
    found |= {f"places in the engine: {name}": len(modules) for name, modules in places().items()}
    for folder in ENGINE:
        found[f"lines of {folder}"] = _lines(folder)
    found["lines of the engine"] = sum(map(_lines, ENGINE))
    return found


def main() -> None:
    """Print the table."""
    for what, number in counts().items():
        print(f"{number:8,}  {what}")


if __name__ == "__main__":
    main()

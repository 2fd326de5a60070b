"""How much of the engine is written by hand: rules and kernels of operators, attributes of the large records, lines.

``python -m benchmarks.counts`` prints a table. Built-in operators are counted once, whatever aliases they have; what is
registered in a loop counts as often as it is registered, and a rule that several share counts once.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opreg.core.op import Op
from opreg.core.registry import operators
from opreg.symbol.executor import Executor

__all__ = ["counts", "main"]

ROOT = Path(__file__).parent.parent
#: The engine: everything below what programs call, by folder.
ENGINE = ("opreg/core", "opreg/custom", "opreg/elementwise", "opreg/backends", "opreg/builtin", "ndarray", "symbol")


def _files(folder: str) -> Iterator[Path]:
    yield from (ROOT / folder).rglob("*.py")


def _lines(folder: str) -> int:
    return sum(len(path.read_text().splitlines()) for path in _files(folder))


def _decorated(name: str) -> int:
    """How many functions of built-in operators and back ends are decorated with a rule of this name."""
    found = 0
    for folder in ("opreg/builtin", "opreg/backends"):
        for path in _files(folder):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef):
                    calls = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
                    found += any(isinstance(each, ast.Attribute) and each.attr == name for each in calls)
    return found


def _own(cls: type) -> int:
    """Attributes of a class: methods, properties, and what ``__init__`` sets on itself."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls)))
    set_here = {target.attr for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.AnnAssign))
                for target in ast.walk(node.targets[0] if isinstance(node, ast.Assign) else node.target)
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
                and target.value.id == "self"}
    return len({*set_here, *[name for name in vars(cls) if not name.startswith("__")]})


def counts() -> dict[str, int]:
    """Numbers by what is counted.

    Examples
    --------
    >>> found = counts()
    >>> found["operators"] > 500, found["composed operators"] > 0
    (True, True)
    """
    every: list[Any] = [op for op in operators() if op.where is None]
    found = {"operators": len(every), "composed operators": sum(op.traits.traced for op in every),
             "element-wise operators": sum(op.rules.expression is not None for op in every),
             "operators that are loops": sum(op.rules.sets is not None for op in every)}
    for rule in ("infer", "fill", "types", "grad", "kernel"):
        found[f"functions that are a rule: {rule}"] = _decorated(rule)
    found["attributes of Op"], found["attributes of Executor"] = _own(Op), _own(Executor)
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

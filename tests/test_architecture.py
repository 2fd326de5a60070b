"""Imports point downwards: the order the parts stand in, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: From the ground up. A module imports from lines above its own; the modules of a package that has a line to itself
#: may import each other.
ORDER = [line.split() for line in """
    opreg.aliases opreg.locks opreg._extends opreg.cache
    opreg.errors opreg.engine
    opreg.mode opreg.files opreg.special
    opreg.spec
    opreg.attrs opreg.util
    opreg.dispatch
    opreg.rules opreg.steps
    opreg.launch
    opreg.op
    opreg.registry
    opreg.calls
    opreg.value
    opreg.surface opreg.sampling opreg.graph
    opreg.gradient opreg.placeholder
    opreg.backend
    opreg.generators
    opreg.threads
    opreg.schedule
    opreg.expression
    opreg.composition opreg.algebra
    opreg.custom_gradient opreg.custom_signature opreg.custom_dry_run opreg.custom_watch
    opreg.custom_run
    opreg.custom_prop opreg.custom_function
    opreg.custom
    opreg.backends
    opreg.builtin
    opreg.backends.onednn.private_operators
    opreg.backends.numba.rnn opreg.backends.numba.row_operators opreg.backends.onednn.convolution
    opreg.backends.onednn.batch_norm
    opreg.backends.numba.operators opreg.backends.onednn.operators
    opreg.ndarray.params_file opreg.ndarray.context
    opreg.ndarray.custom_runs
    opreg.ndarray.eager
    opreg.ndarray.recipes
    opreg.ndarray.writes
    opreg.ndarray.tape
    opreg.ndarray.changes
    opreg.ndarray.ndarray
    opreg.ndarray.loops opreg.ndarray.bound opreg.ndarray.cached_op opreg.ndarray.followed_numpy
    opreg.ndarray.followed
    opreg.ndarray.numpy_protocol
    opreg.ndarray.function
    opreg.ndarray.creation opreg.ndarray.random opreg.ndarray.io opreg.ndarray.autograd
    opreg.ndarray
    opreg.symbol.naming opreg.symbol.infer opreg.symbol.program
    opreg.symbol.symbol
    opreg.symbol.rules
    opreg.symbol.passes opreg.backends.onednn.channels_last opreg.backends.onednn.fuse_bn_backward
    opreg.backends.onednn.passes
    opreg.symbol.plan
    opreg.symbol.profile opreg.symbol.checking opreg.symbol.arrivals
    opreg.symbol.compile
    opreg.symbol.executor
    opreg.symbol.stages
    opreg.symbol.binding
    opreg.symbol.unrolled
    opreg.symbol.loops
    opreg.symbol.loop_functions
    opreg.symbol.function opreg.symbol.json
    opreg.symbol.show
    opreg.symbol
    opreg.base opreg.contrib
    opreg.train opreg.nn
    opreg.common opreg.context
    opreg
    opreg.stubs
""".strip().splitlines()]

#: Functions that open a floor above them when they are called: ``Symbol.bind`` needs an executor.
LATE = {
    "opreg.op": {"opreg.ndarray.bound"},
    "opreg.custom_gradient": {"opreg.ndarray.function", "opreg.symbol.passes.follow", "opreg.symbol.rules"},
    "opreg.custom_dry_run": {"opreg.ndarray.context", "opreg.ndarray.ndarray", "opreg.ndarray.followed"},
    "opreg.ndarray.tape": {"opreg.ndarray.ndarray"},
    "opreg.ndarray.ndarray": {"opreg.ndarray.function", "opreg.ndarray.numpy_protocol"},
    "opreg.ndarray.autograd": {"opreg.symbol.symbol"},
    "opreg.symbol.symbol": {f"opreg.symbol.{name}" for name in (
        "function", "json", "rules", "show", "passes.gradient", "binding")},
}

#: Packages whose modules have floors of their own. Their folders stand beside that of ``opreg``, which links to them.
PACKAGES = ("opreg", "opreg.ndarray", "opreg.symbol")


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_name(path): path for package in PACKAGES
           for path in sorted(ROOT.joinpath(*package.split(".")).rglob("*.py"))}


def _imports(name: str) -> Iterator[tuple[str, int, bool]]:
    """What a module imports, on which line, and whether when it is itself imported."""
    path = MODULES[name]
    tree = ast.parse(path.read_text())
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    inner = {node for function in ast.walk(tree) if isinstance(function, (ast.FunctionDef, ast.Lambda))
             for node in ast.walk(function)}
    typing_only = {node for block in ast.walk(tree) if isinstance(block, ast.If)
                   and "TYPE_CHECKING" in ast.unparse(block.test) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            found = [full if (full := f"{base}.{alias.name}") in MODULES else base for alias in node.names]
        else:
            continue
        for each in found:
            yield each, node.lineno, node not in inner


def _floor(name: str) -> int:
    """The line of ``ORDER`` a module stands on, its own or that of the package it belongs to; programs stand on top."""
    if name.endswith(".__main__"):
        return len(ORDER)
    while name:
        for number, line in enumerate(ORDER):
            if name in line:
                return number
        name = name.rpartition(".")[0]
        if name in PACKAGES:  # a new module of a package with floors of its own has none yet
            break
    return -1


def _package(name: str) -> str:
    """The entry of ``ORDER`` a module belongs to."""
    while not any(name in line for line in ORDER):
        name = name.rpartition(".")[0]
    return name


@pytest.mark.parametrize("name", MODULES)
def test_points_down(name: str) -> None:
    assert _floor(name) >= 0, f"{name} has no place in the order"
    for other, line, _ in _imports(name):
        if other not in MODULES or other == name or other in LATE.get(name, ()):
            continue
        assert _floor(other) < _floor(name) or _package(other) == _package(name), \
            f"{MODULES[name]}:{line}: {name} imports {other}, which stands above it"


def test_late_imports_are_late() -> None:
    for name, others in LATE.items():
        found = {other: early for other, _, early in _imports(name)}
        for other in others:
            assert found.get(other) is False, f"{name} is listed as importing {other} late"


def test_no_circles() -> None:
    """Nothing that is imported while importing comes round."""
    graph = {name: {other for other, _, early in _imports(name) if early and other in MODULES and other != name}
             for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("name", MODULES)
def test_needs_numpy_alone(name: str) -> None:
    """Optional libraries are imported where they are first used."""
    for other, line, early in _imports(name):
        top = other.partition(".")[0]
        assert not early or top == "opreg" or top == "numpy" or top in sys.stdlib_module_names, \
            f"{MODULES[name]}:{line}: {other} is imported whether it is used or not"


def test_front_door_imports_nothing() -> None:
    for other, line, early in _imports("opreg"):
        assert not early or other in ("__future__", "opreg.aliases", *sys.stdlib_module_names), \
            f"opreg/__init__.py:{line}: {other}"


@pytest.mark.parametrize("name", [name for name in MODULES if name != "opreg.spec"])
def test_floating_dtypes_are_asked_for_in_one_place(name: str) -> None:
    """To NumPy bfloat16 is of no floating kind: ``spec.is_floating`` knows it, or ``is_numpy_float`` leaves it out."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        asked = (isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "kind"
                 and any(isinstance(each, ast.Constant) and isinstance(each.value, str)
                         and "f" in each.value and set(each.value) <= set("biufcV") for each in node.comparators))
        named = isinstance(node, ast.Attribute) and node.attr in ("issubdtype", "floating", "inexact")
        assert not (asked or named), f"{MODULES[name]}:{node.lineno}: {ast.unparse(node)}"

"""Imports lead downwards in the order of the parts, as read from the source."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from opreg.core import registry, slots
from opreg.core.op import Op
from opreg.core.slots import Slot
from tests.imports import imports
from tests.questions import of_each

ROOT = Path(__file__).parent.parent

#: The floors, lowest first: modules on a line may import from the lines above it. A folder includes all of its
#: modules, except those with their own line. Within a folder imports make no circles.
FLOORS = """
    opreg.aliases opreg.core.slots opreg.engine opreg.log opreg.typing
    opreg.core.cache opreg.core.reports
    opreg.errors
    opreg.core
    opreg.distributed opreg.elementwise
    opreg.custom opreg.fills opreg.measures opreg.training_line
    opreg.backends
    opreg.builtin
    opreg.backends.private_operators
    opreg.backends.cuda.operators opreg.backends.numba.operators opreg.backends.onednn.operators
    opreg.backends.operators opreg.ndarray
    opreg.custom.dry_run
    opreg.custom.function
    opreg.custom.operator opreg.symbol
    opreg.backends.passes opreg.data
    opreg.backends.cuda.passes opreg.backends.onednn.passes opreg.base opreg.np opreg.runtime opreg.util
    opreg.cells opreg.error opreg.npx opreg.rtc opreg.train
    opreg.nn
    opreg.interop opreg.nn.experimental opreg.nn.model opreg.nn.numpy
    opreg.nn.dataset opreg.nn.mint opreg.gluon
    opreg._extends opreg.common opreg.notebook opreg.onnx opreg.pictures opreg.testing opreg.trace_events
    opreg.contrib opreg.profiler
    opreg
    opreg.context opreg.porting
    opreg.command opreg.examples opreg.reference opreg.stubs
    opreg.pytest_plugin
"""
#: Modules that import something other than an optional library inside of functions, and the reason.
LATE = {
    "opreg.command": "a subcommand is imported when it is asked for",
    "opreg.pytest_plugin": "tests of operators are made where somebody asks for them",
    "opreg.command.launch": "systems without POSIX have no launcher, and say so when it is asked for",
    "opreg.command.parsing": "a module of the user's is imported when it is named",
    "opreg": "the front door opens names at first use",
    "opreg.onnx": "its doors open names at first use, as the front door does",
    "opreg.onnx.package": "the package onnx is imported when a model is read",
    "opreg.onnx.runtime": "ONNX Runtime is imported when a session is asked for",
    "opreg.aliases": "second names of modules are imported by those who ask for them",
    "opreg.backends": "a back end is imported when a device that it serves is used",
    "opreg.backends.numba.cache": "paths are made where machine code is stored or read",
    "opreg.backends.numba.compiler": "texts are hashed when one is compiled",
    "opreg.backends.onednn.shared_library": "the system is asked for a library when no environment has it",
    "opreg.errors": "similar names are looked for when an error names one",
    "opreg.custom.signature": "similar names are looked for when a program registers an operator",
    "opreg.ndarray.finite": "a debugger is imported when it is asked for",
    "opreg.core.slots": "who fills a slot is imported when it is asked for, as the front door says",
}

#: Optional libraries, imported inside of the functions that need them.
OPTIONAL = {"PIL", "cudnn", "cupy", "fissix", "jax", "llvmlite", "ml_dtypes", "mpi4py", "numba", "pandas", "scipy",
            "pytest", "torch"}

#: Packages whose modules have floors of their own. Their folders stand beside that of ``opreg``, which links to them.
PACKAGES = ("opreg", "opreg.ndarray", "opreg.symbol")


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_name(path): path for package in PACKAGES
           for path in sorted(ROOT.joinpath(*package.split(".")).rglob("*.py"))}


def _imports(name: str, types: bool = False) -> list[tuple[str, int, bool]]:
    """Imports of a module, with their lines, and whether they run when it is imported; with ``types`` also those for
    type checkers only. A name known only at run time is a question mark."""
    return [(other, line, early) for other, line, early, for_types in _all_imports(name) if types or not for_types]


@functools.cache
def _all_imports(name: str) -> list[tuple[str, int, bool, bool]]:
    """Imports as ``_imports`` has them, and whether they are for type checkers only."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    found = []
    for each in imports(MODULES[name].read_text(), package):
        if isinstance(each.node, ast.Call):
            names = _named(name, each.node.args[0])
        else:
            names = [full if (full := f"{base}.{taken}") in MODULES else base for base, taken in each.names]
        found += [(other, each.node.lineno, each.early, each.for_types) for other in names]
    return found


def _named(name: str, text: ast.expr) -> list[str]:
    """Modules that a text names; any word fits where something is filled in."""
    if isinstance(text, ast.Constant):
        return [str(text.value)]
    if not isinstance(text, ast.JoinedStr) or name in LATE:
        return ["?"]
    pattern = ""
    for part in text.values:
        if isinstance(part, ast.Constant):
            pattern += re.escape(str(part.value))
        else:
            pattern += re.escape(name) if ast.unparse(part.value) == "__name__" else r"\w+"  # type: ignore[attr-defined]
    matching = [module for module in MODULES if re.fullmatch(pattern, module) and not module.endswith("__main__")]
    return matching or [pattern.replace("\\", "")]


PLACES = {name: floor for floor, line in enumerate(FLOORS.strip().splitlines()) for name in line.split()}


def _entry(name: str) -> str:
    """Entry of the floors that contains a module: the module itself, or its nearest folder."""
    while name not in PLACES and name != "opreg":
        name = name.rpartition(".")[0]
    return name


def _place(name: str) -> int:
    """Floor of a module; programs are on the top floor."""
    return len(PLACES) if name.endswith(".__main__") else PLACES[_entry(name)]


@of_each(MODULES)
def test_imports_point_down(name: str) -> None:
    assert _entry(name) != "opreg" or name in ("opreg", "opreg.__main__"), f"{name} has no place on the floors"
    for other, line, _ in _imports(name):
        assert other not in MODULES or _place(other) < _place(name) or _entry(other) == _entry(name), \
            f"{MODULES[name]}:{line}: {name} imports {other}, which stands above it, or beside it"


def test_floors_list_existing_folders() -> None:
    assert not PLACES.keys() - MODULES.keys(), "a place has no module"


@of_each(MODULES)
def test_only_optional_libraries_are_imported_inside_of_functions(name: str) -> None:
    """Only optional libraries are imported inside of functions, apart from listed imports with a reason."""
    for other, line, early in _imports(name):
        assert early or name in LATE or other.partition(".")[0] in OPTIONAL, \
            f"{MODULES[name]}:{line}: {other} is imported inside of a function"
        assert other != "?" or name in LATE, f"{MODULES[name]}:{line}: nobody can tell from the text what is imported"


def test_late_imports_are_listed() -> None:
    for name in LATE:
        assert not all(early for _, _, early in _imports(name)), f"{name} imports nothing inside of a function"


def test_imports_form_no_circles() -> None:
    """No module imports itself over others, neither at once nor later."""
    graph = {name: {other for other, _, _ in _imports(name) if other in MODULES and other != name} for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


#: Circles of imports within an entry of the floors, where those for type checkers count: how many modules each has. The
#: list may only shrink.
CIRCLES = {
    "opreg.cells": [10, 8],
    "opreg.core": [5],
    "opreg.custom": [2],
    "opreg.gluon": [2],
    "opreg.ndarray": [5, 2, 2],
    "opreg.symbol": [3],
    "opreg.train": [2],
}
#: Entries of the floors whose types a lower entry names, and the modules that name them. The list may only shrink.
TYPES_FROM_ABOVE = {
    "opreg.builtin": ["opreg.backends"],
    "opreg.ndarray": ["opreg.core", "opreg.custom"],
    "opreg.cells": ["opreg.custom.operator"],
    "opreg.symbol": ["opreg.custom.operator", "opreg.ndarray"],
    "opreg.testing": ["opreg.custom.operator"],
}


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Nodes that can be reached in one step or more."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = graph[ahead.pop()] - found
        found |= new
        ahead += new
    return found


def test_circles_of_imports_for_types_do_not_grow() -> None:
    named = {name: {other for other, _, _ in _imports(name, types=True) if other in MODULES and other != name}
             for name in MODULES}
    within = {name: {other for other in others if _entry(other) == _entry(name)} for name, others in named.items()}
    reached = {name: _reached(within, name) for name in MODULES}
    circles = {frozenset(other for other in reached[name] if name in reached[other]) for name in MODULES}
    found: dict[str, list[int]] = {}
    for circle in sorted(filter(None, circles), key=len, reverse=True):
        found.setdefault(_entry(min(circle)), []).append(len(circle))
    assert found == CIRCLES
    above = {(_entry(other), _entry(name)) for name, others in named.items() for other in others
             if _entry(other) != _entry(name) and _place(other) >= _place(name)}
    assert above == {(upper, lower) for upper, names in TYPES_FROM_ABOVE.items() for lower in names}


#: The modules of each framework's interface, by the framework.
INTERFACES = {
    "MindSpore": ("opreg.nn", "opreg.common"),
    "MXNet": ("opreg.train", "opreg.gluon", "opreg.np", "opreg.npx", "opreg.util", "opreg.base", "opreg.error",
              "opreg.rtc", "opreg.notebook", "opreg.contrib"),
}
#: The machinery of Cells, and the modules that the frameworks' training shares.
SHARED = ("opreg.cells", "opreg.data", "opreg.fills", "opreg.measures", "opreg.training_line")


def _framework(name: str) -> str | None:
    """The framework to whose interface a module belongs."""
    for framework, packages in INTERFACES.items():
        if name.startswith(tuple(f"{package}." for package in packages)) or name in packages:
            return framework
    return None


@of_each([name for name in MODULES if _framework(name)])
def test_interfaces_do_not_import_each_other(name: str) -> None:
    for other, line, _ in _imports(name, types=True):
        assert _framework(other) in (None, _framework(name)), \
            f"{MODULES[name]}:{line}: {name} imports {other} of another framework: move what both need to SHARED"


@of_each([name for name in MODULES if name.startswith(SHARED)])
def test_shared_parts_import_no_interface(name: str) -> None:
    for other, line, _ in _imports(name, types=True):
        assert _framework(other) is None, f"{MODULES[name]}:{line}: {name} imports {other}"


#: Modules of the machine of Cells that name a framework, and why. The list may only shrink.
NAMES_A_FRAMEWORK = {
    "dtype": "dtypes are MindSpore's, with its names and its promotion",
    "initializer": "initial values have MindSpore's names",
    "jit": "options of MindSpore's compiler are accepted",
    "parameter": "a parameter has another name in files of MindSpore",
    "printing": "the text of a tensor is MindSpore's",
    "tensor": "a Tensor behaves as MindSpore's does",
    "tensor_base": "a Tensor behaves as MindSpore's does",
}


@of_each([name for name in MODULES if name.startswith("opreg.cells")])
def test_the_machine_of_cells_names_no_framework(name: str) -> None:
    found = [f"{number}: {line.strip()}" for number, line in enumerate(MODULES[name].read_text().splitlines(), 1)
             if re.search("mindspore|mxnet|gluon", line, re.IGNORECASE)]
    assert bool(found) == (name.rpartition(".")[2] in NAMES_A_FRAMEWORK), f"{MODULES[name]}: {found}"


@pytest.mark.parametrize("name", [
    "opreg.backends.onednn.passes.channels_last", "opreg.builtin.matrices.dense", "opreg.custom.operator",
    "opreg.nn.ops.random", "opreg.core.registry", "opreg.symbol.passes.fuse"])
def test_every_module_may_be_imported_first(name: str) -> None:
    program = (f"import {name}, opreg, numpy\n"
               "from opreg.core.registry import get\n"
               "get('square').create_operator(None, [(2,)], ['float32'])\n"
               "x = opreg.sym.Variable('x')\n"
               "assert x.exp().eval(x=opreg.nd.zeros((2,)))[0].asnumpy().tolist() == [1, 1]\n")
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, cwd=ROOT)


def test_slots_are_filled() -> None:
    """The modules that ``opreg/__init__.py`` names fill them."""
    found = 0
    for name, path in MODULES.items():
        if name == "opreg.core.slots" or "= Slot(" not in path.read_text():
            continue
        module = importlib.import_module(name)
        for title, slot in vars(module).items():
            if isinstance(slot, Slot):
                found += 1
                slots.load(slot.provider)
                assert callable(slot.function), f"{name}.{title}"
    assert found > 10


@of_each(MODULES)
def test_opreg_imports_only_numpy(name: str) -> None:
    """Optional libraries are imported at their first use. ``annotationlib`` is in the standard library of 3.14."""
    for other, line, early in _imports(name):
        top = other.partition(".")[0]
        assert not early or top in {"opreg", "numpy", "annotationlib"} | sys.stdlib_module_names, \
            f"{MODULES[name]}:{line}: {other} is imported whether it is used or not"


def test_importing_opreg_loads_nothing() -> None:
    for other, line, early in _imports("opreg"):
        assert not early or other in ("__future__", "opreg.aliases", "opreg.core.slots", *sys.stdlib_module_names), \
            f"opreg/__init__.py:{line}: {other}"


#: Steps of one program, with modules that neither a step nor those before it need.
STEPS = {
    "opreg.nd.ones((2,)) * 2": ["numpy.random", "json", "hashlib", "shutil", "opreg.builtin"],
    "opreg.nd.exp(opreg.nd.ones((2,)))": ["numpy.random", "subprocess", "pathlib", "hashlib"],
    "opreg.Tensor([1.0]) * 2": ["numpy.random", "opreg.nn.layers", "opreg.nn.optim"],
    "from opreg.gluon import nn": ["numpy.random", "subprocess", "statistics", "opreg.nn.layers"],
}


def test_first_steps_leave_slow_modules_alone() -> None:
    """Modules that take milliseconds to import are imported at their first use."""
    program = ["import sys, numpy; there = {*sys.modules}; import opreg",
               *[f"{step}; print(*{{*sys.modules}} - there)" for step in STEPS]]
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], check=True, cwd=ROOT, capture_output=True,
                          text=True)
    for (step, slow), loaded in zip(STEPS.items(), done.stdout.splitlines(), strict=True):
        assert not {*slow} & {*loaded.split()}, step


#: Modules of the engine that know single operators, with the knowledge that is no fact about operators.
NAMING = {
    "opreg.symbol.json": "how many outputs the files of MXNet count, which casts they leave out",
    "opreg.symbol.json_loader": "the meaning of attributes in old files of MXNet",
    "opreg.symbol.symbol": "how names begin that MXNet gives to results of Python's operators",
    "opreg.core.other_names": "what others call attributes of tensors",
    "opreg.core.conversions": "words of Python",
    "opreg.core.bytecode_names": "words of Python",
    "opreg.symbol.control_flow": "the loops and the branch that it declares itself",
    "opreg.symbol.unrolled": "how each kind of loop and branch is unrolled",
    "opreg.symbol.passes.reduce_gradients": "the node of a bucket, which it declares itself",
    "opreg.backends.onednn.passes.fuse_bn_backward": "the two operators that its own is attached to",
    "opreg.backends.cuda.passes.fuse_dense_backward": "the two operators that its own is attached to",
}

#: Parts of the engine that are asked about names and sets of names, too. Others have words of libraries and of C++.
NAMELESS = r"opreg\.(symbol|core)\b|opreg\.backends\.\w+$"


def known_one_by_one(text: str, space: Mapping[str, object], names: Set[str], nameless: bool = True) -> list[str]:
    """Places where a module names single operators: comparisons of an operator, or of ``Node.built_in``, with another
    one or with a name, and sets and tables of operators. With ``nameless`` also comparisons, sets and tables of
    operators' names."""

    def operator(part: ast.expr) -> bool:
        return isinstance(part, ast.Name) and isinstance(space.get(part.id), Op)

    def name(part: ast.expr) -> bool:
        return isinstance(part, ast.Constant) and part.value in names

    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            words = ast.unparse(node.left)
            asked = words.endswith((".built_in", "op.name", ".op"))
            parts = [part for side in sides for part in ast.walk(side) if isinstance(part, ast.expr)]
            if any(map(operator, parts)) or ((asked or nameless) and any(map(name, parts))) or ".built_in" in words:
                found.append(node)
        elif isinstance(node, (ast.Set, ast.Dict)):
            found += [each for each in (node.elts if isinstance(node, ast.Set) else node.keys)
                      if each and (operator(each) or (nameless and name(each)))]
    return [f"{each.lineno}: {ast.unparse(each)}" for each in found]


@of_each([name for name in MODULES if re.match(r"opreg\.(symbol|core|backends)\b", name)])
def test_facts_about_operators_are_declared_with_them(name: str) -> None:
    """Facts that hold for some operators are traits or rules, so that users' operators can declare them."""
    importlib.import_module("opreg.symbol.control_flow")  # it declares operators at its first use
    known = {name for name in registry.names() if registry.get(name).where is None}
    module = importlib.import_module(name)
    found = known_one_by_one(MODULES[name].read_text(), vars(module), known, bool(re.match(NAMELESS, name)))
    assert bool(found) == (name in NAMING), f"{MODULES[name]}:{found}"


@of_each([
    "node.built_in == 'Convolution'", "node.op is relu", "relu is not node.op", "node.op in (relu,)",
    "node.op.name in ('sum', other)", "operator == 'sum'", "{'sum': 1}", "{'sum'}", "{relu: 1}", "frozenset({relu})",
    "node.built_in in TABLE"])
def test_checks_for_operator_names_are_detected(text: str) -> None:
    known = {"Convolution", "relu", "sum"}
    assert known_one_by_one(text, {"relu": registry.get("relu")}, known)
    assert not known_one_by_one("node.op is op and op.rules.grad is not ZERO and len({'other'}) == 1",
                                {"ZERO": "zero"}, known)


@of_each([name for name in MODULES if name != "opreg.core.spec"])
def test_floating_dtypes_are_checked_in_one_place(name: str) -> None:
    """NumPy does not count bfloat16 as floating: ``spec.is_floating`` includes it, ``is_numpy_float`` excludes it."""
    text = MODULES[name].read_text()
    if not re.search(r"\.kind\b|\b(issubdtype|floating|inexact)\b", text):
        return
    for node in ast.walk(ast.parse(text)):
        asked = (isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "kind"
                 and any(isinstance(each, ast.Constant) and isinstance(each.value, str)
                         and "f" in each.value and set(each.value) <= set("biufcV") for each in node.comparators))
        named = isinstance(node, ast.Attribute) and node.attr in ("issubdtype", "floating", "inexact")
        assert not (asked or named), f"{MODULES[name]}:{node.lineno}: {ast.unparse(node)}"

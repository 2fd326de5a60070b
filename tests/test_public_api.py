"""Public names are listed, exist and have docstrings; importing the package is fast."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import opreg as mx
from opreg.core.namespaces import Namespace
from opreg.core.registry import operators
from opreg.errors import AttrError
from tests.questions import of_each
from tests.test_architecture import MODULES, PACKAGES, ROOT

PUBLIC = [name for name in MODULES if not any(part.startswith("_") for part in name.split("."))]


def _own(name: str) -> Iterator[tuple[str, Any]]:
    """The public functions and classes that a module defines, and the public methods of these classes."""
    module = importlib.import_module(name)
    for word in getattr(module, "__all__", ()):
        value = getattr(module, word)
        if getattr(value, "__module__", None) != name or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        yield word, value
        for key, member in vars(value).items() if inspect.isclass(value) else ():
            member = member.func if isinstance(member, functools.cached_property) else member
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if not key.startswith("_") and inspect.isroutine(inner) and inner.__module__ == name \
                    and not inner.__name__.startswith("_"):
                yield f"{word}.{key}", inner


@of_each(PUBLIC)
def test_names_in_all_exist(name: str) -> None:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", ())
    assert listed or not hasattr(module, "__all__"), f"{name}.__all__ is empty: leave it out"
    assert len(set(listed)) == len(listed), f"{name}.__all__ lists a name twice"
    for word in listed:
        if name != "opreg":  # its doors are opened below
            assert hasattr(module, word), f"{name}.__all__ lists {word}, which is not there"
    assert inspect.getdoc(module), f"{name} does not say what it is"


@of_each([name for name in PUBLIC if name != "opreg"])
def test_docstrings_begin_with_a_sentence(name: str) -> None:
    """The first line of each docstring is a sentence."""
    for word, value in _own(name):
        text = value.__doc__
        if text is None and "." in word:  # a method that overrides one with documentation
            text = inspect.getdoc(getattr(getattr(importlib.import_module(name), word.split(".")[0]),
                                          word.split(".")[1]))
        assert text and text.strip(), f"{name}.{word} has no docstring"
        first = text.strip().split("\n\n")[0]
        assert first[0].isupper() or not first[0].isalpha(), f"{name}.{word}: {first!r} begins in the middle"
        assert first.rstrip().endswith((".", ":", "?")), f"{name}.{word}: {first!r} is no sentence"


@of_each([name for name, path in MODULES.items() if path.name == "__init__.py"])
def test_no_module_takes_the_place_of_a_public_name(name: str) -> None:
    """Importing a module of such a name, for example by an alias of the package, would replace the public name."""
    package = importlib.import_module(name)
    for word in getattr(package, "__all__", ()):
        if f"{name}.{word}" in MODULES:
            assert inspect.ismodule(getattr(package, word)), f"{name}.{word} is a module and something else"


@of_each([each for each in dir(mx) if not each.startswith("_")])
def test_public_names_are_loaded(name: str) -> None:
    assert getattr(mx, name) is not None


@of_each([name for name, (_, attribute) in vars(mx)["_DOORS"].items() if attribute is None])
def test_dir_lists_public_names(name: str) -> None:
    module = getattr(mx, name)
    inner = [getattr(module, each) for each in module.__all__]
    spaces = [module, *[each for each in inner if isinstance(each, Namespace)]]
    for space in spaces:
        assert dir(space), space.__name__
        assert not [each for each in dir(space) if each.startswith("_")], space.__name__
    if module not in (mx.nd, mx.sym):  # operators of these are not listed one by one
        assert set(dir(module)) <= set(module.__all__)


def test_doors_are_listed() -> None:
    assert {each for each in mx.__all__ if not each.startswith("_")} == set(dir(mx))
    with pytest.raises(AttributeError, match="symbol"):
        mx.symbl  # noqa: B018


@pytest.mark.parametrize("name", ["nd", "sym"])
def test_names_that_a_namespace_lists_exist_and_have_signatures(name: str) -> None:
    """Every name that a namespace lists exists and has a signature."""
    space = getattr(mx, name)
    for word in dir(space):
        value = getattr(space, word)
        if inspect.isfunction(value):
            inspect.signature(value)


def _loaded(code: str) -> set[str]:
    found = subprocess.run([sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], check=True, text=True,
                           capture_output=True, cwd=ROOT)
    return set(found.stdout.split())


def test_import_loads_nothing() -> None:
    loaded = _loaded("import opreg")
    assert "numpy" not in loaded
    assert {name for name in loaded if name.partition(".")[0] in PACKAGES} == {
        "opreg", "opreg.aliases", "opreg.core", "opreg.core.slots"}


def test_use_loads_no_optional_library() -> None:
    """Arrays, graphs and operators need only NumPy."""
    loaded = _loaded("import opreg as mx; mx.nd.abs(mx.nd.array([1])); mx.sym.Variable('x').eval(x=mx.nd.array([1]))")
    for name in ("scipy", "cupy", "ml_dtypes", "numba", "matplotlib", "threadpoolctl"):
        assert name not in loaded


#: Functions that take any keywords: they wrap other functions, or only raise an error.
ANY_KEYWORDS = {
    "opreg.cells.tensor.__new__",  # ``__init__`` looks at them
    "opreg.nn.layers.basic.__init__",  # Identity, as MindSpore's
    "opreg.ndarray.dlpack.__dlpack__",  # keywords that the protocol may add
    # Handlers of events, which get more keywords from an estimator than each of them reads.
    *[f"opreg.gluon.contrib.estimator.event_handler.{event}_{when}" for event in ("train", "epoch", "batch")
      for when in ("begin", "end")],
    # Keywords that the interface of ONNX may add.
    *(f"opreg.onnx.backend.{name}" for name in ("run", "prepare", "run_model", "run_node", "is_compatible")),
}


@of_each([name for name in MODULES if not name.startswith("opreg.builtin")])
def test_no_function_swallows_keywords(name: str) -> None:
    """Every function checks its keywords, so that a misspelt one is refused."""
    text = MODULES[name].read_text()
    tree = ast.parse(text if "**" in text else "")
    for function in [each for part in (tree, *tree.body)
                     if isinstance(part, (ast.Module, ast.ClassDef)) for each in part.body]:
        if not isinstance(function, ast.FunctionDef) or function.args.kwarg is None \
                or re.match("_(?!_)", function.name):
            continue
        words = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
        if ast.unparse(function.body) == "...":  # an overload for type checkers
            continue
        refuses = isinstance(function.body[-1], ast.Raise)
        assert refuses or function.args.kwarg.arg in words or f"{name}.{function.name}" in ANY_KEYWORDS, \
            f"{MODULES[name]}:{function.lineno}: {function.name} never looks at **{function.args.kwarg.arg}"


MISSPELT = [
    (lambda: mx.nd.zeros((2,), dtyp="int32"), "'dtyp'.*'dtype'"),
    (lambda: mx.nd.zeros((2,), stpe="default"), "'stpe'.*'stype'"),
    (lambda: mx.nd.ones((2,), contxt=mx.cpu()), "'contxt'"),
    (lambda: mx.nd.eye(2, dtyp="int32"), "'dtyp'.*'dtype'"),
    (lambda: mx.nd.full((2,), 1, dtyp="int32"), "dtyp"),
    (lambda: mx.nd.empty((2,), dtyp="int32"), "dtyp"),
    (lambda: mx.nd.arange(3, dtyp="int32"), "dtyp"),
    (lambda: mx.nd.linspace(0, 1, 3, dtyp="int32"), "dtyp"),
    (lambda: mx.nd.array([1], dtyp="int32"), "dtyp"),
    (lambda: mx.sym.zeros((2,), dtyp="int32"), "'dtyp'.*'dtype'"),
    (lambda: mx.sym.eye(2, dtyp="int32"), "'dtyp'.*'dtype'"),
    (lambda: mx.sym.var("x", dtyp="int32"), "dtyp"),
    (lambda: mx.nd.random.uniform(shpe=(2,)), "'shpe'.*'shape'"),
    (lambda: mx.nd.random.multinomial(mx.nd.ones(2) / 2, shpe=2), "'shpe'.*'shape'"),
    (lambda: mx.nd.ones(2).sum(axs=0), "'axs'.*'axis'"),
    (lambda: mx.nd.ones(2).reshape((2,), revers=True), "'reverse'"),
    (lambda: mx.jit(lambda x: x, jit_levle="O1"), "'jit_levle'.*'jit_level'"),
    (lambda: mx.jit(jit_levle="O1"), "'jit_level'"),
    (lambda: mx.nn.Cell().recompute(use_reentrent=True), "'use_reentrent'.*'use_reentrant'"),
    (lambda: mx.nn.Dense(2, 2).set_inputs(y=1), "'y'.*Valid: x"),
    (lambda: mx.init.Zero(value=1), "value"),
    (lambda: mx.init.One(value=1), "value"),
    (lambda: mx.init.Bilinear(scale=1), "scale"),
    (lambda: mx.set_context(mod=1), "'mod'.*'mode'"),
    (lambda: mx.Tensor([1], dtyp="int32"), "dtyp"),
    (lambda: mx.optimizer.SGD(learing_rate=1), "learing_rate"),
    (lambda: mx.metric.Accuracy(axs=1), "axs"),
    (lambda: mx.Parameter([1.0]).init_data(layot=1), "layot"),
    (lambda: mx.test_utils.rand_ndarray((2,), dtyp="f"), "dtyp"),
]


@of_each(MISSPELT)
def test_misspelt_keywords_are_refused(call: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_misspelt_attributes_are_refused() -> None:
    for op in operators():
        if op.where is None and not op.signature.schema.open:
            with pytest.raises((AttrError, TypeError), match=r"misspelt|is required"):
                op.complete({"misspelt": 1})


def test_names_are_taken_by_all_functions_that_make_arrays() -> None:
    """Operators take ``name``, and these functions are operators in MXNet."""
    for made in (mx.nd.zeros((2,), name="x"), mx.nd.ones((2,), name="x"), mx.nd.eye(2, name="x")):
        assert made.shape[0] == 2


def test_a_star_import_leaves_out_names_whose_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.delitem(vars(mx), "bfloat16", raising=False)
    monkeypatch.delitem(vars(importlib.import_module("opreg.cells.dtype")), "bfloat16", raising=False)
    names: dict[str, Any] = {}
    exec("from opreg import *", names)
    assert {"nd", "sym", "operator", "nn"} <= set(names)
    assert "bfloat16" not in names

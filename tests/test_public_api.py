"""What is public is listed, exists and says what it is; and the front door costs nothing."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import opreg as mx
from tests.test_architecture import MODULES, PACKAGES, ROOT

PUBLIC = [name for name in MODULES if not any(part.startswith("_") for part in name.split("."))]


def _own(name: str) -> Iterator[tuple[str, Any]]:
    """The public functions and classes that a module defines, and the public methods of these classes."""
    module = importlib.import_module(name)
    for word in module.__all__:
        value = getattr(module, word)
        if getattr(value, "__module__", None) != name or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        yield word, value
        for key, member in vars(value).items() if inspect.isclass(value) else ():
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if not key.startswith("_") and inspect.isroutine(inner) and inner.__module__ == name \
                    and not inner.__name__.startswith("_"):
                yield f"{word}.{key}", inner


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_there(name: str) -> None:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    assert listed is not None, f"{name} has no __all__"
    assert len(set(listed)) == len(listed), f"{name}.__all__ lists a name twice"
    for word in listed:
        if name != "opreg":  # its doors are opened below
            assert hasattr(module, word), f"{name}.__all__ lists {word}, which is not there"
    assert inspect.getdoc(module), f"{name} does not say what it is"


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "opreg"])
def test_says_what_it_is(name: str) -> None:
    """The first line of a docstring is a sentence."""
    for word, value in _own(name):
        text = value.__doc__
        if text is None and "." in word:  # a method that overrides one with documentation
            text = inspect.getdoc(getattr(getattr(importlib.import_module(name), word.split(".")[0]),
                                          word.split(".")[1]))
        assert text and text.strip(), f"{name}.{word} has no docstring"
        first = text.strip().split("\n\n")[0]
        assert first[0].isupper() or not first[0].isalpha(), f"{name}.{word}: {first!r} begins in the middle"
        assert first.rstrip().endswith((".", ":", "?")), f"{name}.{word}: {first!r} is no sentence"


@pytest.mark.parametrize("name", [each for each in dir(mx) if not each.startswith("_")])
def test_door_opens(name: str) -> None:
    assert getattr(mx, name) is not None


def test_doors_are_listed() -> None:
    assert {each for each in mx.__all__ if not each.startswith("_")} <= set(dir(mx))
    with pytest.raises(AttributeError, match="symbol"):
        mx.symbl  # noqa: B018


@pytest.mark.parametrize("name", ["nd", "sym"])
def test_operators_open(name: str) -> None:
    """Every name that a namespace lists is there and has a signature."""
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
    assert {name for name in loaded if name.partition(".")[0] in PACKAGES} == {"opreg", "opreg.aliases"}


def test_use_loads_no_option() -> None:
    """Arrays, graphs and operators need NumPy and nothing else that had to be installed."""
    loaded = _loaded("import opreg as mx; mx.nd.abs(mx.nd.array([1])); mx.sym.Variable('x').eval(x=mx.nd.array([1]))")
    for name in ("scipy", "cupy", "ml_dtypes", "numba", "matplotlib", "threadpoolctl"):
        assert name not in loaded

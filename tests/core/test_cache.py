"""Caches between calls, and their sizes."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np

import opreg as mx
from opreg.core.cache import Recent, cached


def test_recently_used_entries_stay() -> None:
    cache = Recent(100)
    cache.keep("often", 1)
    for number in range(1000):
        cache.keep(number, number)
        assert cache["often"] == 1
        assert len([*cache.entries()]) <= 100
    assert cache[999] == 999
    assert cache[0] is None


def test_clear_empties_the_cache() -> None:
    cache = Recent(4)
    for number in range(4):
        cache.keep(number, number + 1)
    cache.clear()
    assert [*cache.entries()] == []
    assert cache[1] is None


def test_results_are_computed_once() -> None:
    asked = []

    @cached(2)
    def double(number: int) -> int:
        asked.append(number)
        return 2 * number

    assert [double(each) for each in (1, 1, 2, 1)] == [2, 2, 4, 2]
    assert asked == [1, 2]


def test_many_shapes_stay_within_bounds() -> None:
    """Calls with many other shapes do not remove an entry that is in use."""
    used = mx.nd.ones((2, 1))
    for length in range(1, 5000):
        mx.nd.relu(mx.nd.array(np.ones(length % 2600 + 1)))
        if length % 500 == 0:
            mx.nd.relu(used)
    for each in mx.caches():
        assert each.entries <= each.limit, each
    assert any(each.name == "prepared eager calls" for each in mx.caches())


def test_results_by_arguments_are_cached_within_bounds() -> None:
    """``functools.cache`` is only used for functions without arguments, since ``caches`` does not list it."""
    package = Path(mx.__file__).parent
    for folder in ("core", "custom", "elementwise", "backends", "builtin", "ndarray", "symbol"):
        for path in package.joinpath(folder).resolve().rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef) and "functools.cache" in map(ast.unparse, node.decorator_list):
                    assert not ast.unparse(node.args), f"{path}: {node.name}"


def test_numbers_are_keys_by_value() -> None:
    """Functions of numbers are ``cached_by_value``: for ``cached``, 0.0 equals -0.0 and 1.0 equals True."""
    package = Path(mx.__file__).parent
    for path in [path for folder in ("", "ndarray", "symbol") for path in (package / folder).resolve().rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                    ast.unparse(each).startswith("cached(") and "typed" not in ast.unparse(each)
                    for each in node.decorator_list):
                assert "float" not in {ast.unparse(arg.annotation) for arg in node.args.args if arg.annotation}, (
                    f"{path}: {node.name}")


def test_prints_as_a_table() -> None:
    mx.nd.exp(mx.nd.ones((2,)))
    head, *rows = str(mx.caches()).splitlines()
    assert head.split() == ["entries", "limit", "cache"]
    assert any(row.endswith("prepared eager calls") for row in rows)

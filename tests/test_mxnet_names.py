"""Public names of MXNet 1.9.1 exist, or a page names a replacement."""

from __future__ import annotations

import importlib
import json
import re
import warnings
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import opreg as mx

HERE = Path(__file__).parent
NAMES: dict[str, dict[str, list[str]]] = json.loads((HERE / "recorded" / "mxnet_names.json").read_text())
PAGE = (HERE.parent / "docs" / "mxnet.md").read_text()


def explained() -> list[str]:
    """Patterns of names in the first column of the table."""
    table = PAGE[PAGE.index("## Missing names"):]
    return [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall("`([^`]+)`", row)]


def has(cls: object, member: str) -> bool:
    """Whether a class has a member, which may be set in its constructor."""
    return hasattr(cls, member) or any(member in vars(base).get("__annotations__", ())
                                       for base in getattr(cls, "__mro__", ()))


def absent() -> Iterator[str]:
    for module, names in NAMES.items():
        try:
            own = importlib.import_module(f"opreg.{module}" if module else "opreg")
        except ModuleNotFoundError:
            yield module
            yield from (f"{module}.{name}" for name in names)
            continue
        for name, members in names.items():
            full = f"{module}.{name}" if module else name
            if not hasattr(own, name):
                yield full
            else:
                yield from (f"{full}.{member}" for member in members if not has(getattr(own, name), member))


def test_missing_names_are_explained() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missing = sorted(set(absent()))
    patterns = explained()
    unexplained = [name for name in missing if not any(fnmatchcase(name, pattern) for pattern in patterns)]
    assert not unexplained
    stale = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in missing)]
    assert not stale, "these are here now"


def test_an_error_says_that_a_module_of_mxnet_is_absent() -> None:
    """The page and the error message name each of these modules."""
    for name in ("tvmop", "library", "torch"):
        assert f"`{name}`" in PAGE
        assert name in vars(mx)["_ABSENT"]

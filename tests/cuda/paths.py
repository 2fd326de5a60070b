"""Operators whose kernels bring CuPy no call and no text that those of other operators do not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from opreg.core.array_module import backend
from opreg.core.op import runs_body
from opreg.core.registry import get
from tests.rows import Row
from tests.running import Use

__all__ = ["by_operator", "instructions", "rows_by_operator", "without_a_path"]


def by_operator(rows: Iterable[Row]) -> list[Any]:
    """The names of the rows' operators as parameters of a test on CuPy. On the bed, which compiles each kernel on the
    host, those of ``without_a_path`` are marked ``once``."""
    found = rows_by_operator(rows)
    left_out = without_a_path(found) if os.environ.get("OPREG_TEST_GPU") == "bed" else set()
    return [pytest.param(name, marks=[pytest.mark.once] if name in left_out else []) for name in found]


def rows_by_operator(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each operator, by its name, in the order of the alphabet."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.op):
        found.setdefault(row.op, []).append(row)
    return found


def without_a_path(rows: Mapping[str, Sequence[Row]]) -> set[str]:
    """Operators that a GPU computes by other operators, those of a body, or by an expression of which operators before
    it have all instructions."""
    xp = backend("gpu").xp
    found, known = set(), set[str]()
    for name, its in rows.items():
        used = instructions(its)
        if runs_body(get(name), xp) or (used is not None and used <= known):
            found.add(name)
        else:
            known |= used or set()
    return found


def instructions(rows: Sequence[Row]) -> set[str] | None:
    """The instructions of the expressions that compute an operator's rows; None if a row is computed otherwise."""
    expression = get(rows[0].op).rules.expression
    found = [None if expression is None else expression(Use.of(row).attrs) for row in rows]
    return None if None in found else {primitive.name for each in found for primitive, _ in each.code}

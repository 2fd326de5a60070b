"""Operators whose kernels bring CuPy no call and no text that those of other operators do not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

from opreg.core.array_module import backend
from opreg.core.op import runs_body
from opreg.core.registry import get
from tests.rows import Row
from tests.running import Use

__all__ = ["by_operator"]


def by_operator(rows: Iterable[Row]) -> list[Any]:
    """The names of the rows' operators as parameters of a test on CuPy, sorted. On the bed, which compiles each kernel
    on the host, names that ``without_a_path`` gives are marked ``once``."""
    uses: dict[str, list[Row]] = {}
    for row in rows:
        uses.setdefault(row.op, []).append(row)
    left_out = without_a_path(uses) if os.environ.get("OPREG_TEST_GPU") == "bed" else set()
    return [pytest.param(name, marks=[pytest.mark.once] if name in left_out else []) for name in sorted(uses)]


def without_a_path(uses: dict[str, list[Row]]) -> set[str]:
    """Names of operators that a GPU computes by other operators, those of a body, or by an expression whose
    instructions are all in expressions of operators before it in the alphabet."""
    xp = backend("gpu").xp
    found, known = set(), set()
    for name in sorted(uses):
        op = get(name)
        if runs_body(op, xp):
            found.add(name)
        elif op.rules.expression is not None:
            expressions = [op.rules.expression(Use.of(row).attrs) for row in uses[name]]
            if None not in expressions:
                instructions = {primitive.name for each in expressions for primitive, _ in each.code}
                if instructions <= known:
                    found.add(name)
                known |= instructions
    return found

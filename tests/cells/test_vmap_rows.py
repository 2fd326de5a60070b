"""vmap of every operator agrees with a loop over samples, by its batching rule, by its body, or by that loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from opreg import Tensor, jit
from opreg.cells.vmap import vmap
from opreg.core import effects
from opreg.core.dispatch import apply
from opreg.core.mode import Recording
from opreg.core.registry import get
from opreg.errors import ArgumentError, OpError
from tests.builtin.test_operators import plannable
from tests.questions import of_each
from tests.rows import Row, all_rows
from tests.running import TOLERANCES, Use, agree

SIZE = 3


def _samples(array: np.ndarray) -> np.ndarray:
    """Samples of an input, along a new first axis: floating values differ, integers stay, since they may be indices."""
    if array.dtype.kind != "f":
        return np.stack([array] * SIZE)
    return np.stack([array * factor for factor in (1.0, 1.0 - 2.0**-6, 1.0 - 2.0**-5)]).astype(array.dtype)


def _applied(use: Use) -> Any:
    def function(*inputs: Any) -> tuple[Any, ...]:
        outs = apply(use.op, inputs, use.attrs)
        return tuple(outs) if isinstance(outs, (tuple, list)) else (outs,)

    return function


def _choices(count: int) -> Iterable[tuple[int | None, ...]]:
    """Sets of inputs that are batched: all of them, and each alone."""
    yield (0,) * count
    if count > 1:
        for i in range(min(count, 3)):
            yield tuple([0 if i == j else None for j in range(count)])


def _looped(function: Any, inputs: Sequence[np.ndarray], axes: Sequence[int | None]) -> list[np.ndarray]:
    rows = [[out.asnumpy() for out in function(*[Tensor(each if axis is None else each[i])
                                                 for each, axis in zip(inputs, axes)])] for i in range(SIZE)]
    return [np.stack(column) for column in zip(*rows)]


def _changes(use: Use, train: bool) -> bool:
    return bool(use.op.traits.mutates or effects.changed_states(use.op, use.attrs) or (use.op.traits.states and train))


@of_each([row for row in all_rows() if row.deterministic and row.inputs and plannable(row)], by=lambda row: row.op)
def test_vmap_equals_a_loop_over_samples(row: Row) -> None:
    use = Use.of(row, "float32" if "float32" in row.dtypes else None)
    function = _applied(use)
    if use.op.rules.data_dependent:
        pytest.skip("its shapes depend on values")
    for axes in _choices(len(use.arrays)):
        inputs = [array if axis is None else _samples(array) for array, axis in zip(use.arrays, axes)]
        with Recording(False, row.train):
            if _changes(use, row.train):
                with pytest.raises(ArgumentError, match="changes its inputs in place"):
                    vmap(function, axes)(*map(Tensor, inputs))
                continue
            try:
                expected = _looped(function, inputs, axes)
            except OpError:  # the samples are outside of its domain
                continue
            found = vmap(function, axes)(*map(Tensor, inputs))
        for i, (out, want) in enumerate(zip(found, expected)):
            agree(out.asnumpy(), want, max(row.tolerance, TOLERANCES.get(want.dtype.name, 0.0)), f"{axes}, output {i}")


def _by_operator() -> dict[str, Row]:
    """The first row of each operator that has a rule."""
    rows: dict[str, Row] = {}
    for row in all_rows():
        if row.deterministic and row.inputs and get(row.op).rules.vmap is not None:
            rows.setdefault(row.op, row)
    return rows


@of_each(_by_operator().values(), by=lambda row: row.op[:2])
def test_rules_join_compiled_functions(row: Row) -> None:
    use = Use.of(row, "float32" if "float32" in row.dtypes else None)
    function = _applied(use)
    inputs = [_samples(array) for array in use.arrays]
    with Recording(False, False):
        expected = _looped(function, inputs, (0,) * len(inputs))
        found = jit(vmap(function))(*map(Tensor, inputs))
    for i, (out, want) in enumerate(zip(found, expected)):
        agree(out.asnumpy(), want, max(row.tolerance, TOLERANCES.get(want.dtype.name, 0.0)), f"output {i}")


def test_usual_operators_have_batching_rules() -> None:
    """The usual operators of networks have batching rules; a loop over samples would be as slow as Python's."""
    without = [name for name in ("broadcast_add", "relu", "sum", "softmax", "log_softmax", "transpose", "Reshape",
                                 "Concat", "FullyConnected", "batch_dot", "_npi_matmul", "take", "pick", "LayerNorm",
                                 "BatchNorm", "Convolution", "Pooling", "Dropout", "_subscript", "where",
                                 "_reduce_like", "_backward_FullyConnected_weight", "_backward_LayerNorm",
                                 "_backward_take")
               if not get(name).rules.vmap is not None]
    assert not without

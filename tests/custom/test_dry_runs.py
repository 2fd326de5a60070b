"""Functions whose shapes are found by a dry run on the given dtypes, and on integers if floats are impossible."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym

X = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)
_NAMES = itertools.count()

INDEXING: list[tuple[Callable[..., Any], list[np.ndarray]]] = [
    (lambda x, i: x.asnumpy()[i.asnumpy()], [X, np.array([0, 2], np.int32)]),
    (lambda i, x: x.asnumpy()[i.asnumpy()], [np.array([0, 2], np.int64), X]),
    (lambda x, i, j: x.asnumpy()[i.asnumpy(), j.asnumpy()], [X, np.array([0, 2]), np.array([1, 3])]),
    (lambda x, mask: x.asnumpy() * ~mask.asnumpy(), [X, X > 0]),
    (lambda i: np.unpackbits(i.asnumpy()), [np.array([3, 5], np.uint8)]),
    (lambda i: np.left_shift(i.asnumpy(), 1), [np.array([3, 5], np.int16)])]


@pytest.mark.parametrize("case", range(len(INDEXING)))
@pytest.mark.parametrize("declared", [False, True])
def test_functions_that_fail_on_floats_work_in_graphs(case: int, declared: bool) -> None:
    body, arrays = INDEXING[case]
    wanted = body(*[nd.array(each, dtype=each.dtype) for each in arrays])
    types = f"{','.join('ABC'[:len(arrays)])}->{wanted.dtype}" if declared else None
    op = mx.operator.define(body, name=f"_example_dry_run_{next(_NAMES)}", types=types)
    names = ["a", "b", "c"][:len(arrays)]
    symbol = op(*map(sym.var, names))
    kinds = {name: each.dtype for name, each in zip(names, arrays)}
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", type_dict=kinds,
                                  **{name: each.shape for name, each in zip(names, arrays)})
    values = {name: nd.array(each, dtype=each.dtype) for name, each in zip(names, arrays)}
    for out in (executor.forward(**values)[0], symbol.eval(**values)[0], op(*values.values()),
                mx.jit(lambda *inputs: op(*inputs))(*map(mx.Tensor, arrays)),
                sym.load_json(symbol.tojson()).eval(**values)[0]):
        assert out.dtype == wanted.dtype
        np.testing.assert_array_equal(out.asnumpy(), wanted)


def test_shapes_alone_are_enough_for_functions_of_indices() -> None:
    op = mx.operator.define(INDEXING[0][0], name=f"_example_dry_run_{next(_NAMES)}")
    assert op(sym.var("x"), sym.var("i")).infer_shape(x=(3, 4), i=(2,))[1] == [(2, 4)]


def test_a_function_that_fails_on_known_dtypes_is_tried_on_no_others() -> None:
    """A bind that fails asks once more, for its error."""
    runs = []

    def body(x: Any) -> Any:
        runs.append(x.dtype)
        raise ValueError("no")

    op = mx.operator.define(body, name=f"_example_dry_run_{next(_NAMES)}", types="float32->float32")
    with pytest.raises(ValueError, match="no"):
        op(sym.var("x")).simple_bind(mx.cpu(), x=(2,))
    assert runs == [np.float32] * 2

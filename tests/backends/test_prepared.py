"""Kernels in two parts give the reference's results for all arrays with the layout of the first ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import opreg as mx
from opreg.core.mode import quiet
from opreg.core.registry import declare, get, ops
from tests.questions import of_each

_NUMBERS = np.random.default_rng(0)
_SHAPES = [(5,), (3, 4), (2, 3, 4), (4, 1, 3), (0, 3)]
_KEEP = [{"keepdims": keep} for keep in (False, True)]
_AXES = [{"axis": axis} for axis in (None, 0, -1, (0,))]
_EXCLUDING = [{}, {"exclude": True}]


def _data(shape: tuple[int, ...], dtype: str, strided: bool = False) -> np.ndarray:
    """Random values with NaN and infinities; with ``strided`` a view of every second element."""
    wide = (*shape[:-1], shape[-1] * 2) if strided else shape
    found = (_NUMBERS.standard_normal(wide) * 3).astype(dtype)
    if found.size > 5 and found.dtype.kind == "f":
        found.reshape(-1)[[1, 3, 5]] = np.nan, np.inf, -np.inf
    return found[..., ::2] if strided else found


def _mixed(*groups: list[dict]) -> list[dict]:
    found: list[dict] = [{}]
    for group in groups:
        found = [{**left, **right} for left in found for right in group]
    return found


def _same(name: str, given: dict[str, Any], first: list[np.ndarray], then: list[np.ndarray]) -> None:
    """Compares a kernel in two parts, which has decided by the first arrays, with the same kernel that decides anew."""
    op = get(name)
    attrs = op.complete(given)
    rule, parts = op.kernels[0].rule, op.kernels[0].parts
    assert parts is not None
    function = quiet(parts, attrs, np, *first)
    for arrays in (first, then):
        expected = quiet(rule.function, np, *arrays, **rule.select(attrs))
        found = quiet(function, *arrays)
        assert isinstance(found, np.ndarray) and found.flags.c_contiguous and found.flags.writeable
        assert found.shape == expected.shape and found.dtype in (expected.dtype, first[0].dtype)
        np.testing.assert_array_equal(found, expected)
        assert not any(np.may_share_memory(found, array) for array in arrays)
        if op.kernels[0].takes_out:
            strided = np.repeat(found, 2, -1)[..., ::2] if found.ndim else np.empty_like(found)
            for out in (np.empty_like(found), strided):
                assert quiet(function, *arrays, out=out) is out
                np.testing.assert_array_equal(out, found)


@of_each(itertools.product(["sum", "mean", "prod", "max", "min", "_np_sum", "_npi_mean", "_np_max", "_npi_std"],
                           _SHAPES, ["float16", "float32", "float64", "int32"]), by=lambda case: case[0])
def test_prepared_reductions_equal_the_kernels(name, shape, dtype):
    excluding = [{}] if name.startswith("_np") else _EXCLUDING
    for given in _mixed(_AXES, _KEEP, excluding):
        if name in ("max", "min", "_np_max") and 0 in shape:
            continue
        with np.errstate(all="ignore"):
            arrays = [_data(shape, dtype)], [_data(shape, dtype, strided=True)]
        _same(name, given, *arrays)


@of_each(itertools.product([("sum", "_backward_sum"), ("mean", "_backward_mean"), ("_np_sum", "_backward_np_sum")],
                           _SHAPES, ["float16", "float32", "float64", "int32"]), by=lambda case: case[0][0])
def test_prepared_gradients_of_reductions_equal_the_kernels(names, shape, dtype):
    forward, name = names
    for given in _mixed(_AXES, _KEEP):
        op = get(forward)
        with np.errstate(all="ignore"):
            data = _data(shape, dtype)
            (narrow,) = op.infer_shapes([shape], [None], op.complete(given))[1]
            g = [_data(narrow, dtype) if narrow else np.asarray(2.5).astype(dtype) for _ in range(2)]
        given = {name: value for name, value in given.items() if name in get("_backward_sum").signature.schema}
        _same(name, given, [g[0], data], [g[1], data])


@of_each(itertools.product([((5,), 0), ((3, 4), -1), ((3, 4), 0), ((2, 3, 4), 1), ((0, 3), 1)],
                           ["int32", "int64", "float32", "uint8"], ["clip", "wrap"]))
def test_prepared_pick_equals_the_kernel(picked, kind, mode):
    shape, axis = picked
    reduced = tuple(np.delete(shape, axis))
    low = 0 if kind == "uint8" else -7
    indices = [np.asarray(_NUMBERS.integers(low, 9, reduced)).astype(kind) for _ in range(2)]
    for keepdims in (False, True):
        given = {"axis": axis, "mode": mode, "keepdims": keepdims}
        data = _data(shape, "float32"), _data(shape, "float32", strided=True)
        _same("pick", given, [data[0], indices[0]], [data[1], indices[1]])
        g = [np.asarray(_NUMBERS.standard_normal(reduced), np.float32) for _ in range(2)]
        _same("_backward_pick", given, [g[0], indices[0], data[0]], [g[1], indices[1], data[1]])


def test_many_indices_are_picked_as_few():
    """An array of all places takes too much memory there."""
    data, index = _data((1 << 15, 2), "float32"), _NUMBERS.integers(0, 2, 1 << 15)
    expected = np.take_along_axis(data, index[:, None], 1)
    put = np.where(np.arange(2) == index[:, None], expected, 0)
    for given in (data, np.asfortranarray(data)):
        found = [ops.pick(mx.nd.array(given), mx.nd.array(index, dtype="int64"), keepdims=True)._data,
                 get("pick").kernels[0].rule.function(np, given, index, axis=-1, keepdims=True, mode="clip")]
        for each in found:
            np.testing.assert_array_equal(each, expected)
        back = get("_backward_pick").kernels[0].rule.function(np, expected, index, given, axis=-1, mode="clip")
        np.testing.assert_array_equal(back, put)


def test_arithmetic_of_rank_zero_gives_arrays():
    x = mx.nd.NDArray(np.asarray(3.0, np.float32))
    for found in (x * 2, 2 * x, x + x, x > 1, ops._npi_mean(x), ops._np_sum(x)):
        assert isinstance(found._data, np.ndarray) and found.shape == ()


def test_prepared_calls_write_to_out():
    x, out = mx.nd.array([[1, 2], [3, 4]]), mx.nd.zeros((2,))
    assert mx.nd.sum(x, axis=0, out=out) is out and out.asnumpy().tolist() == [4, 6]
    assert ops._backward_sum(out, x, axis=0).asnumpy().tolist() == [[4, 6], [4, 6]]


@of_each(itertools.product(["softmax", "softmin", "log_softmax"],
                           [((5,), 0), ((3, 4), -1), ((3, 40), 1), ((2, 3, 4), 1), ((0, 3), 1)],
                           ["float16", "float32", "float64"]), by=lambda case: case[0])
def test_prepared_softmax_and_its_gradients_equal_the_kernels(name, rows, dtype):
    shape, axis = rows
    for given in _mixed([{"axis": axis}], [{}, {"temperature": 2.0}]):
        with np.errstate(all="ignore"):
            arrays = [[_data(shape, dtype)], [_data(shape, dtype, strided=True)]]
            pairs = [[*arrays[0], _data(shape, dtype)], [*arrays[1], _data(shape, dtype, strided=True)]]
        _same(name, given, *arrays)
        _same("_backward_log_softmax" if name == "log_softmax" else "_backward_softmax", given, *pairs)


def test_prepared_softmax_takes_lengths_and_other_dtypes():
    data, length = _data((2, 3), "float32"), np.ones(2, np.int32)
    for given, arrays in (({"use_length": True}, [data, length]), ({"dtype": "float64"}, [data])):
        _same("softmax", given, arrays, arrays)


@of_each(itertools.product([((5, 3), 4), ((2, 3, 4), 5), ((0, 3), 2), ((3, 0), 2), ((80, 90), 70), ((200, 30, 10), 50)],
                           [False, True], ["float16", "float32", "float64"]))
def test_prepared_dense_layers_equal_the_kernels(sizes, flatten, dtype):
    shape, hidden = sizes
    inputs = int(np.prod(shape[1:])) if flatten else shape[-1]
    rows = shape[:1] if flatten else shape[:-1]
    given = {"num_hidden": hidden, "flatten": flatten}
    data, doubled, weight, bias, g = (_NUMBERS.standard_normal(each).astype(dtype) for each in (
        shape, (*shape[:-1], 2 * shape[-1]), (hidden, inputs), hidden, (*rows, hidden)))
    strided = doubled[..., ::2]
    for others in ([weight], [weight, bias]):
        _same("FullyConnected", {**given, "no_bias": len(others) == 1}, [data, *others],
              [strided, *others])
    _same("_backward_FullyConnected_data", given, [g, weight, data], [-g, weight, strided])
    _same("_backward_FullyConnected_weight", given, [g, data, weight], [-g, strided, weight])


def test_plans_decide_once():
    ran: list[str] = []

    @declare(name="_example_prepared")
    def twice(x):
        """Twice."""

    @twice.in_parts
    def twice_in_parts(xp, x):
        ran.append("decided")

        def run(x, out=None):
            ran.append("run")
            return xp.multiply(x, 2, out=out)

        return run

    symbol = get("_example_prepared")(mx.sym.Variable("x"))
    executor = symbol.bind(mx.cpu(), {"x": mx.nd.ones((3,))})
    for _ in range(2):
        assert executor.forward()[0].asnumpy().tolist() == [2] * 3
    assert ran == ["decided", "run", "run"]

"""Checks of arguments accept and refuse what MindSpore's do, and name the argument; batches are fed to own loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opreg.ops._primitive_cache import _get_cache_prim

import opreg as ms
from opreg import _checkparam as checkparam
from opreg import dataset
from opreg.nn import checkparam as home
from tests.questions import of_each

NAN = float("nan")
#: A check, its arguments, and the kind of error of MindSpore 2.10, or None where the value is returned.
ROWS: list[tuple[str, tuple[Any, ...], type[Exception] | None]] = [
    ("check_positive_int", (3, "x", "P"), None), ("check_positive_int", (0, "x", "P"), ValueError),
    ("check_positive_int", (True, "x", "P"), TypeError), ("check_positive_int", (1.5, "x", "P"), TypeError),
    ("check_non_negative_int", (0, "x"), None), ("check_non_negative_int", (-1, "x"), ValueError),
    ("check_negative_float", (-1.5, "x"), None), ("check_negative_float", (0.0, "x"), ValueError),
    ("check_non_positive_float", (0.0, "x"), None), ("check_positive_float", (2, "x"), TypeError),
    ("check_positive_float", (NAN, "x"), ValueError), ("check_positive_float", (float("inf"), "x"), ValueError),
    ("check_positive_int_sequence", ([1, 2], "x"), None), ("check_positive_int_sequence", ((1, 0), "x"), ValueError),
    ("check_non_negative_int_sequence", ([True], "x"), TypeError),
    ("check_int", (3, 0, checkparam.GT, "x"), None), ("check_int", (0, 0, checkparam.NE, "x"), ValueError),
    ("check_equal_int", (3, 3, "x"), None), ("check_equal_int", (2, 3, "x"), ValueError),
    ("check_float", (0.5, 0.5, checkparam.LE, "x"), None), ("check_float", (1, 0.5, checkparam.LE, "x"), TypeError),
    ("check_is_int", (True, "x"), TypeError), ("check_is_float", (1.5, "x"), None),
    ("check_int_range", (0, 0, 3, checkparam.INC_LEFT, "x"), None),
    ("check_int_range", (0, 0, 3, checkparam.INC_RIGHT, "x"), ValueError),
    ("check_int_range", (3, 0, 3, checkparam.INC_BOTH, "x"), None),
    ("check_float_range", (0.0, 0.0, 1.0, checkparam.INC_NEITHER, "x"), ValueError),
    ("check_float_range", (1, 0.0, 1.0, checkparam.INC_BOTH, "x"), TypeError),
    ("check_number", ("x", 3, 4, checkparam.LT, "P"), None),
    ("check_number", ("x", NAN, 4, checkparam.LT, "P"), ValueError),
    ("check_type_name", ("x", ms.float32, [ms.float32], "P"), None),
    ("check_type_name", ("x", ms.float32, ms.int32, "P"), TypeError), ("twice", ((1, 2, 3),), TypeError),
    ("check_bool", (True, "x"), None), ("check_bool", (1, "x"), TypeError),
    ("check_string", ("a", ["a", "b"], "x"), None), ("check_string", ("c", ["a", "b"], "x"), ValueError),
    ("check_value_type", ("x", 3, [int, float]), None), ("check_value_type", ("x", 3, int), None),
    ("check_value_type", ("x", True, [int]), TypeError), ("check_value_type", ("x", True, [int, bool]), None),
    ("check_value_type", ("x", "a", (int,)), TypeError), ("check_value_type", ("x", None, [type(None)]), None),
    ("check_isinstance", ("x", 3, (int, str)), None), ("check_isinstance", ("x", 1.5, int), ValueError),
    ("check", ("x", 3, "y", 3), None), ("check", ("x", 3, "y", 4, checkparam.GE), ValueError),
    ("check", ("x", 3, "y", [3], checkparam.IN), None), ("check", ("x", 3, "y", [3], checkparam.NOT_IN), ValueError),
    ("check", ("x", 3, "y", 4, checkparam.EQ, "P", TypeError), TypeError),
    ("check_element_type_of_iterable", ("x", [1, "a"], [int]), TypeError),
    ("check_element_type_of_dict", ("x", {"a": 1.5}, [str], [int]), TypeError),
]


@of_each(ROWS)
def test_checks_accept_and_refuse(name: str, given: tuple[Any, ...], error: type[Exception] | None) -> None:
    if error is None:
        value = next(each for each in given if each != "x")
        assert getattr(checkparam, name)(*given) == value
    else:
        with pytest.raises(error, match="x"):
            getattr(checkparam, name)(*given)


def test_a_check_names_argument_caller_and_value() -> None:
    with pytest.raises(ValueError, match="For 'Grid', the 'size' must be int and greater than 0, but got -2"):
        home.check_positive_int(-2, "size", "Grid")


def test_types_of_arguments_are_checked_by_a_decorator() -> None:
    @home.args_type_check(size=int, name=str)
    def make(size: int, name: str | None = None) -> int:
        return size

    assert make(3) == make(3, None) == 3
    with pytest.raises(TypeError, match="The parameter 'name' of make must be"):
        make(3, name=4)  # type: ignore[arg-type]


def rows() -> Any:
    """A dataset of two batches."""
    columns = {"x": np.arange(8, dtype=np.float32).reshape(4, 2), "y": np.arange(4, dtype=np.int32)}
    return dataset.NumpySlicesDataset(columns, shuffle=False).batch(2)


@pytest.mark.parametrize("settings, passes", [
    ({"dataset_sink_mode": False}, [[[0, 1], [2, 3]], [[0, 1], [2, 3]]]),
    ({}, [[[0, 1], [2, 3]], [[0, 1], [2, 3]]]),
    ({"sink_size": 1}, [[[0, 1]], [[2, 3]], [[0, 1]]]),
    ({"sink_size": 3}, [[[0, 1], [2, 3], [0, 1]], [[2, 3], [0, 1], [2, 3]]]),
], ids=["without sinking", "sinking", "one batch", "over the end"])
def test_a_dataset_helper_gives_batches_again_in_each_pass(settings: Any, passes: Any) -> None:
    helper = ms.DatasetHelper(rows(), **settings)
    assert [[y.asnumpy().tolist() for _, y in helper] for _ in passes] == passes
    assert helper.sink_size() == len(passes[0])


@pytest.mark.parametrize("size, error", [(0, ValueError), (-2, ValueError), (1.5, TypeError)])
def test_a_wrong_sink_size_is_refused(size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="sink_size"):
        ms.DatasetHelper(rows(), sink_size=size)


@pytest.mark.parametrize("compiled", [False, True])
def test_data_sink_feeds_the_next_batches(compiled: bool) -> None:
    step = ms.data_sink(lambda x, y: x.sum() + y.sum(), rows(), 1, ms.JitConfig() if compiled else None)
    assert [float(step().asnumpy()) for _ in range(3)] == [7, 27, 7]


def test_a_cached_primitive_is_made_once() -> None:
    make = _get_cache_prim(ms.ops.MatMul)
    assert make(True) is make(True)
    assert make(False) is not make(True)
    assert make(transpose_b=True).transpose_b  # type: ignore[attr-defined]


def test_cached_primitives_have_their_own_arguments() -> None:
    class Table(ms.ops.Primitive):
        def __init__(self, values: Any) -> None:
            super().__init__("Table")
            self.values = values

    make: Any = _get_cache_prim(Table)
    zeros, ones = np.zeros(2000), np.zeros(2000)
    ones[1000] = 1  # both print alike
    for values in (zeros, ones, 1, True, 1.0, "1"):
        assert make(values).values is values


def test_a_primitive_with_checks_refuses_shapes_and_dtypes() -> None:
    class Row(ms.ops.PrimitiveWithCheck):
        @ms.ops.prim_attr_register
        def __init__(self) -> None:
            pass

        def check_shape(self, shape: Any) -> None:
            checkparam.check_int(len(shape), 1, checkparam.EQ, "rank", self.name)

        def check_dtype(self, dtype: Any) -> None:
            checkparam.check_subclass("x", dtype, [ms.float32], self.name)

    Row().__check__({"shape": (3,), "dtype": ms.float32})
    Row().__check__({"shape": (-1, 3), "dtype": ms.float32})  # an unknown length
    with pytest.raises(ValueError, match="'Row', the 'rank' must be int and equal to 1, but got 2"):
        Row().__check__({"shape": (3, 2), "dtype": ms.float32})
    with pytest.raises(TypeError, match="'Row'"):
        Row().__check__({"shape": (3,), "dtype": ms.int32})

"""The text of tensors equals MindSpore's, character by character; its answers are recorded in
mindspore_printing.json."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg.cells.printing import show
from opreg.nn import Tensor
from tests.questions import of_each

RECORDED = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_printing.json").read_text())


def _array(case: dict[str, Any]) -> np.ndarray:
    """Array of a case: its values, or evenly spaced ones, optionally with a value of another size in the middle."""
    dtype = np.dtype(ml_dtypes.bfloat16 if case["dtype"] == "bfloat16" else case["dtype"])
    if "values" in case:
        found = np.array([float(each) if isinstance(each, str) else each for each in case["values"]],
                         None if dtype.kind in "iub" else np.float64)
    else:
        found = case["start"] + case["step"] * np.arange(math.prod(case["shape"]))
        if "middle" in case:
            found[found.size // 2 + 20] = case["middle"]
    if dtype.kind == "b":
        found = found % 2 == 1
    with np.errstate(over="ignore", under="ignore"):
        return found.astype(dtype).reshape(case["shape"])


@of_each(RECORDED, by=lambda case: case["dtype"])
def test_tensors_are_printed_as_recorded_from_mindspore(case: dict[str, Any]) -> None:
    assert show(_array(case)).split("\n") == case["text"]


def test_the_table_covers_every_form() -> None:
    """The cases have every dtype and rank, shortened and whole texts, empty arrays, NaN and infinities."""
    assert {case["dtype"] for case in RECORDED} == {
        "bool", "float16", "float32", "float64", "bfloat16",
        *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))}
    assert {len(case["shape"]) for case in RECORDED} >= {0, 1, 2, 3, 4}
    assert any(0 in case["shape"] for case in RECORDED)
    text = "\n".join("\n".join(case["text"]) for case in RECORDED)
    for word in (" ... ", "\n ...\n", "\n  ...\n", "-nan", "-inf", "e+300", "e-310", "9223372036854775808"):
        assert word in text, word


def test_print_options_of_numpy_have_no_effect() -> None:
    with np.printoptions(precision=2, threshold=3, linewidth=20, suppress=True):
        assert show(np.float32([1, 2, 3, 4])) == ("Tensor(shape=[4], dtype=Float32, value= [ 1.00000000e+00,  "
                                                  "2.00000000e+00,  3.00000000e+00,  4.00000000e+00])")


def test_a_tuple_of_tensors_prints_each_as_alone() -> None:
    x = Tensor(np.float32(2))
    assert repr((x, x)) == ("(Tensor(shape=[], dtype=Float32, value= 2), "
                            "Tensor(shape=[], dtype=Float32, value= 2))")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=4), st.sampled_from(["int32", "float32"]))
def test_values_are_printed_in_order(shape: list[int], dtype: str) -> None:
    """The text has the elements of the array, without the middle of a long axis, in matching brackets."""
    array = (np.arange(math.prod(shape)) * 0.3).astype(dtype).reshape(shape)
    text = show(array).partition("value=")[2][:-1]
    assert text.count("[") == text.count("]")
    if len(shape) > 1:
        for axis, length in enumerate(shape):
            if length > 6:
                array = np.delete(array, np.s_[3:-3], axis)
    found = [float(word) for word in re.findall(r"[^\s\[\],]+", text) if word != "..."]
    np.testing.assert_array_equal(np.array(found, dtype), array.ravel())
    if array.size:
        assert text.count("[") == sum(math.prod(array.shape[:axis]) for axis in range(array.ndim))

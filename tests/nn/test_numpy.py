"""``opreg.numpy``: MindSpore's functions with NumPy's names agree with its answers and with NumPy's."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import opreg.numpy as mnp
import pytest

import opreg as ms
from opreg.errors import ArgumentError, ShapeError
from tests.questions import function_of, of_each
from tests.recorded.mindspore_numpy import CASES, DIFFERENT, asked

RECORDED = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_numpy.json").read_text())
ANSWERS = dict(RECORDED["cases"])
REFUSED = {case for case, answer in ANSWERS.items() if isinstance(answer, dict) and "error" in answer}


def _same(answer: Any, ours: Any) -> bool:
    if isinstance(answer, list):
        return isinstance(ours, list) and len(answer) == len(ours) and all(map(_same, answer, ours))
    if not isinstance(answer, dict) or not isinstance(ours, dict) or "error" in ours:
        return bool(answer == ours)
    if (answer["dtype"], answer["shape"]) != (ours["dtype"], ours["shape"]):
        return False
    near = 2e-3 if answer["dtype"] == "Float16" else 1e-5
    left, right = (np.array(each["numbers"], np.float64) for each in (answer, ours))
    return np.allclose(left, right, near, near, equal_nan=True)


def test_every_recorded_case_is_compared() -> None:
    assert list(ANSWERS) == list(dict.fromkeys(CASES)) and set(DIFFERENT) <= set(ANSWERS) - REFUSED


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@of_each([case for case in dict.fromkeys(CASES) if case not in REFUSED], by=function_of)
def test_answers_are_those_of_mindspore(case: str) -> None:
    ours = asked(ms, mnp, case)
    assert _same(ANSWERS[case], ours) is (case not in DIFFERENT), (DIFFERENT.get(case), ANSWERS[case], ours)


#: Uses that MindSpore 2.10 refuses, such as numbers beside tensors and lists, and that opreg and NumPy compute.
_ALIKE = [case for case in dict.fromkeys(CASES) if case in REFUSED and case not in (
    "mnp.sum(f, axis=5)", "mnp.array((1, [2]))", "mnp.array('x')", "mnp.ones(-1)", "mnp.zeros(2.5)", "mnp.split(v, 3)",
    "mnp.e", "mnp.newaxis", "mnp.cross([1, 2], [3, 4])", "mnp.take(f, [[0, 5]], mode='clip')")]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@of_each(_ALIKE)
def test_numpy_answers_where_mindspore_refuses(case: str) -> None:
    ours = asked(ms, mnp, case)
    assert not isinstance(ours, dict) or "error" not in ours, ours
    numpys = asked(SimpleNamespace(Tensor=np.asarray), np, case)
    for mine, its in zip(*(each if isinstance(each, list) else [each] for each in (ours, numpys))):
        assert mine["shape"] == its["shape"]
        near = 2e-3 if mine["dtype"] == "Float16" else 1e-5
        assert np.allclose(np.array(mine["numbers"], float), np.array(its["numbers"], float), near, near)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
@pytest.mark.parametrize("operands", ["f, g", "i, j", "i, f", "f, 2", "2, v"])
def test_logaddexp_equals_numpys(name: str, operands: str) -> None:
    """The expected values are NumPy's, since MindSpore refuses these calls at times."""
    ours, numpys = (asked(tensors, module, f"mnp.{name}({operands})")["numbers"]
                    for tensors, module in ((ms, mnp), (SimpleNamespace(Tensor=np.asarray), np)))
    assert np.allclose(np.array(ours, float), np.array(numpys, float), 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "int32", "float32", "float64"])
def test_angles_of_narrow_integers_are_float16(dtype: str) -> None:
    """MindSpore 2.10 and NumPy have float16 for integers of 8 bits and booleans."""
    x = ms.Tensor(np.array([0, 1], dtype))
    wanted = {1: "float16", 8: "float64"}.get(x.itemsize, "float32")
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh"):
        found = getattr(mnp, name)(x).asnumpy()
        assert found.dtype == wanted
        np.testing.assert_allclose(found, getattr(np, name)(x.asnumpy().astype("f8")), 2e-3)
    assert mnp.arctan2(x, x).asnumpy().dtype == wanted


def test_signatures_are_those_of_mindspore() -> None:
    for name, parameters in RECORDED["parameters"].items():
        assert list(inspect.signature(getattr(mnp, name)).parameters) == parameters, name


@pytest.mark.parametrize(("call", "host"), [
    (lambda x: mnp.array_split(x, [-1], axis=1), lambda x: np.array_split(x, [-1], axis=1)),
    (lambda x: mnp.split(x, (-2, -1), axis=1), lambda x: np.split(x, (-2, -1), axis=1)),
    (lambda x: mnp.hsplit(x, (2, 1)), lambda x: np.hsplit(x, (2, 1))),
    (lambda x: [mnp.digitize(x, [4, 2, 1])], lambda x: [np.digitize(x, [4, 2, 1])]),
    (lambda x: [mnp.digitize(x, [4, 2, 1], right=True)], lambda x: [np.digitize(x, [4, 2, 1], right=True)]),
    (lambda x: [mnp.mean(x > 2)], lambda x: [np.mean(x > 2)]),
])
def test_answers_are_those_of_numpy(call: Any, host: Any) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for found, expected in zip(call(ms.Tensor(x)), host(x), strict=True):
        np.testing.assert_allclose(found.asnumpy(), expected, 1e-6)


@of_each([
    lambda x: mnp.cov(x), lambda x: mnp.pad(x, 1, mode="reflect"), lambda x: mnp.interp(x, [-3, 0, 4], x[0]),
    lambda x: mnp.cross(x, x + mnp.arange(3)), lambda x: mnp.convolve(x[0], x[1]), lambda x: mnp.kron(x, x),
    lambda x: mnp.nanstd(x, 0), lambda x: mnp.linspace(x[0], x[1], 4), lambda x: mnp.select([x > 1], [x * x], 2.0),
    lambda x: mnp.gradient(x, axis=1), lambda x: mnp.diagflat(x), lambda x: mnp.polyval(x[0], x[1]),
    lambda x: mnp.take_along_axis(x, ms.Tensor([[2], [0]]), 1), lambda x: mnp.average(x, 1, x[0]),
    lambda x: mnp.histogram(x, 3, weights=x)[0], lambda x: mnp.apply_along_axis(lambda row: row * row.sum(), 1, x)])
def test_gradients_agree_with_differences_and_compiled_functions(call: Any) -> None:
    """Gradients are those of central differences, and a compiled function gives the same."""
    x = ms.Tensor(np.array([[-2.1, -0.7, 0.3], [0.9, 1.6, 3.2]]), ms.float64)
    weights = np.cos(np.arange(call(x).size)).reshape(call(x).shape)

    def loss(x: Any) -> Any:
        return (call(x) * ms.Tensor(weights)).sum()

    found = ms.grad(loss)(x).asnumpy()
    assert np.allclose(ms.jit(ms.grad(loss))(x).asnumpy(), found, 1e-6, 1e-6)
    for place in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[place] = 1e-4
        change = float(loss(x + ms.Tensor(step)).asnumpy()) - float(loss(x - ms.Tensor(step)).asnumpy())
        assert abs(change / 2e-4 - found[place]) < 2e-2 * max(1.0, abs(found[place])), place


@pytest.mark.parametrize("call, error, said", [
    (lambda: mnp.split(mnp.arange(4), 3), ArgumentError, "4 elements along axis 0 cannot be split into 3 equal parts"),
    (lambda: mnp.ones((2, -1)), ShapeError, "no negative lengths"),
    (lambda: mnp.pad(mnp.ones(3), 1, mode="mirror"), ArgumentError, "mode among constant"),
    (lambda: mnp.gcd(1.5, 2.0), ArgumentError, "gcd: expected integers"),
    (lambda: mnp.interp(1.0, [1, 2], [1.0]), ShapeError, "two vectors of equal length"),
    (lambda: mnp.where([True], 1), ArgumentError, "both x and y"),
    (lambda: mnp.cross([1.0], [2.0]), ShapeError, "two or three elements"),
    (lambda: mnp.searchsorted([1, 2], 1, side="middle"), ArgumentError, "'left' or 'right', got 'middle'")])
def test_errors_for_mistakes_name_the_expected_value(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_gcd_and_lcm_handle_the_largest_integers() -> None:
    """Divisors of the largest integers, and neighbouring Fibonacci numbers, need the most steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype, pair in (("int8", (55, 89)), ("int32", (1836311903, 1134903170)),
                            ("int64", (7540113804746346429, 4660046610375530309))):
            assert mnp.gcd(*(np.array([each], dtype) for each in pair)).asnumpy().tolist() == [1]
    assert mnp.gcd([0, 12, -12], [5, 0, 18]).asnumpy().tolist() == [5, 12, 6]
    assert mnp.lcm([0, 4], [3, 6]).asnumpy().tolist() == [0, 12]


def test_random_functions_fill_their_ranges() -> None:
    ms.set_seed(3)
    assert mnp.rand().shape == (1,) and mnp.rand(2, 3, dtype=ms.float16).dtype == ms.float16
    whole = mnp.randint(2, 5, (200,)).asnumpy()
    assert set(whole) == {2, 3, 4} and whole.dtype == np.int32
    assert set(mnp.randint(3, shape=(200,)).asnumpy()) == {0, 1, 2}
    assert abs(float(mnp.randn(1000).asnumpy().mean())) < 0.2

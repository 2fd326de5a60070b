"""Integer tensors agree with Python's integers: exact in every dtype, eagerly, compiled, and in a Cell."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, nn, ops
from opreg.common.initializer import initializer

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def limits(dtype):
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def extremes(dtype):
    """Integers at which arithmetic in another dtype goes wrong, if the dtype holds them."""
    least, most = limits(dtype)
    numbers = {least, least + 1, -2 ** 53 - 1, -2 ** 53, -7, -2, -1, 0, 1, 2, 3, 10, 2 ** 53 - 1, 2 ** 53, 2 ** 53 + 1,
               2 ** 62 + 1, most // 2, most - 1, most}
    return sorted(number for number in numbers if least <= number <= most)


def wrapped(number, dtype):
    """A Python integer, wrapped around to the range of the dtype."""
    least, most = limits(dtype)
    return (number - least) % (most - least + 1) + least


# ---------------------------------------------------------------------------------- values computed by Python


def infinite(x, dtype):
    """Quotient by zero: the largest or the least number of the dtype, and zero for 0 / 0."""
    least, most = limits(dtype)
    return most if x > 0 else least if x < 0 else 0


def floored(x, y, dtype):
    return x // y if y else infinite(x, dtype)


def cut(x, y, dtype):
    return (abs(x) // abs(y)) * (-1 if (x < 0) != (y < 0) else 1) if y else infinite(x, dtype)


def modulo(x, y, dtype):
    return x % y if y else 0


def power(x, y, dtype):
    if y >= 0:
        return pow(x, y, 1 << 64)
    return {0: limits(dtype)[1], 1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


def exact(function):
    return lambda x, y, dtype: function(x, y)


#: Functions of two tensors, and their counterparts for Python's integers.
ROWS = {
    "add": (operator.add, exact(operator.add)), "sub": (operator.sub, exact(operator.sub)),
    "mul": (operator.mul, exact(operator.mul)), "floordiv": (operator.floordiv, floored),
    "mod": (operator.mod, modulo), "pow": (operator.pow, power),
    "divmod": (divmod, lambda x, y, dtype: (floored(x, y, dtype), modulo(x, y, dtype))),
    "floor_div": (ops.floor_div, floored), "floor_divide": (ops.floor_divide, floored),
    "div floor": (lambda x, y: ops.div(x, y, rounding_mode="floor"), floored),
    "div trunc": (lambda x, y: ops.div(x, y, rounding_mode="trunc"), cut),
    "fmod": (ops.fmod, lambda x, y, dtype: x - y * cut(x, y, dtype) if y else x),
    "remainder": (ops.remainder, lambda x, y, dtype: x % y if y else x),
    "floor_mod": (ops.floor_mod, modulo), "ops.pow": (ops.pow, power),
    "maximum": (ops.maximum, exact(max)), "minimum": (ops.minimum, exact(min)),
    "eq": (operator.eq, exact(operator.eq)), "ne": (operator.ne, exact(operator.ne)),
    "lt": (operator.lt, exact(operator.lt)), "le": (operator.le, exact(operator.le)),
    "gt": (operator.gt, exact(operator.gt)), "ge": (operator.ge, exact(operator.ge)),
    "and": (operator.and_, exact(operator.and_)), "or": (operator.or_, exact(operator.or_)),
    "xor": (operator.xor, exact(operator.xor)),
    "where": (lambda x, y: ops.where(x > 3, x, y), lambda x, y, dtype: x if x > 3 else y),
    "clamp": (lambda x, y: ops.clamp(x, y, 3), lambda x, y, dtype: min(max(x, y), 3)),
    "subtract": (lambda x, y: ops.subtract(x, y, alpha=3), lambda x, y, dtype: x - 3 * y),
    "addcmul": (lambda x, y: ops.addcmul(x, y, y, 3), lambda x, y, dtype: x + 3 * y * y),
    "diff": (lambda x, y: ops.diff(ops.stack([x, y], -1)).reshape(x.shape), lambda x, y, dtype: y - x),
    "outer": (lambda x, y: ops.bmm(x.reshape((-1, 1, 1)), y.reshape((-1, 1, 1))).reshape(x.shape),
              exact(operator.mul)),
}


def leaves(result):
    """All tensors of a nested result."""
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


def everywhere(function, *tensors):
    """Results of a function eagerly, compiled and in a Cell, after a check that they are equal."""
    class Net(nn.Cell):
        def construct(self, *inputs):
            return function(*inputs)

    net = Net()
    net.compile(*tensors)
    results = [function(*tensors), ms.jit(function)(*tensors), net(*tensors)]
    eager, *others = [leaves(result) for result in results]
    for other in others:
        assert len(other) == len(eager)
        for i, (one, same) in enumerate(zip(eager, other)):
            assert one.dtype == same.dtype, f"result {i}"
            np.testing.assert_array_equal(one.asnumpy(), same.asnumpy(), f"result {i}, {one.dtype}")
    return results[0]


def check(found, expected, dtype, what):
    """Compares a result with Python's integers, element by element."""
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected[0], tuple) else [(number,) for number in expected]
    for i, part in enumerate(found):
        assert part.dtype in (dtype, "bool")
        for number, right, name in zip(part.asnumpy().ravel().tolist(), expected, what):
            right = right[i] if isinstance(right[i], bool) else wrapped(right[i], dtype)
            assert number == right, name


@pytest.mark.parametrize("name", ROWS)
def test_operators_of_two_integer_tensors_equal_numpys(name):
    function, right = ROWS[name]
    pairs = {dtype: list(itertools.product(extremes(dtype), repeat=2)) for dtype in DTYPES}
    sides = [Tensor(np.array(side, dtype)) for dtype in DTYPES for side in zip(*pairs[dtype])]
    found = everywhere(lambda *sides: tuple(function(x, y) for x, y in zip(sides[::2], sides[1::2])), *sides)
    for dtype, each in zip(DTYPES, found):
        check(each, [right(*pair, dtype) for pair in pairs[dtype]], dtype,
              [f"{name} of {pair}, {dtype}" for pair in pairs[dtype]])


#: Numbers in arithmetic with tensors; some of them fit no dtype, or not all dtypes.
NUMBERS = [-2 ** 63, -2 ** 53 - 1, -300, -2, -1, 0, 1, 2, 44, 300, 2 ** 24 + 1, 2 ** 53 - 1, 2 ** 53 + 1,
           2 ** 62 + 1, 2 ** 63 - 1, 2 ** 63, 2 ** 63 + 1, 2 ** 64 - 1]
COMPARED = ("maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge")


@pytest.mark.parametrize("name", [
    "add", "sub", "mul", "floordiv", "mod", "divmod", "pow", "floor_div", "div floor", "div trunc", "fmod", "remainder",
    "floor_mod", "and", "or", "xor", *COMPARED])
def test_operators_of_an_integer_tensor_and_a_number_equal_numpys(name):
    """In arithmetic a number is wrapped around to the tensor's dtype, as in MindSpore, except an exponent; in
    comparisons it is exact."""
    function, right = ROWS[name]

    def held(number, dtype):
        least, most = limits(dtype)
        if name in ("maximum", "minimum"):  # a number beyond the dtype compares like the end of its range
            return min(max(number, least), most)
        return number if name in COMPARED else wrapped(number, dtype)

    numbers = [*NUMBERS, 2 ** 64, -2 ** 70] if name in COMPARED else NUMBERS
    # Each dtype has every second number, which one depends on the name.
    used = {dtype: numbers[(len(name) + turn) % 2::2] for turn, dtype in enumerate(DTYPES)}
    found = everywhere(lambda *xs: tuple((function(x, number), function(number, x))
                                         for x, dtype in zip(xs, DTYPES) for number in used[dtype]),
                       *[Tensor(np.array(extremes(dtype), dtype)) for dtype in DTYPES])
    pairs = [(dtype, number) for dtype in DTYPES for number in used[dtype]]
    for (dtype, number), (behind, ahead) in zip(pairs, found, strict=True):
        integers = extremes(dtype)
        exponent = number if name == "pow" else held(number, dtype)
        check(behind, [right(each, exponent, dtype) for each in integers], dtype,
              [f"{name} of {each} and {number}, {dtype}" for each in integers])
        check(ahead, [right(held(number, dtype), each, dtype) for each in integers], dtype,
              [f"{name} of {number} and {each}, {dtype}" for each in integers])


@pytest.mark.parametrize("function", [operator.add, operator.floordiv, operator.mod, ops.fmod])
def test_a_number_of_more_than_64_bits_is_refused(function):
    with pytest.raises(OverflowError):
        function(Tensor([1]), 2 ** 64)


# ------------------------------------------------------------------------------- scalars that become elements

LARGE = [2 ** 53 + 1, -2 ** 53 - 1, 2 ** 62 + 1, 300, -1, 2 ** 63 - 1, 2 ** 64 - 1]


def changed(x, key, value):
    """A copy of a tensor with another value in one part."""
    y = x.copy()
    y[key] = value
    return y


#: Functions of a tensor of three elements and of a number.
STORED = {
    "full": lambda x, n: ops.full((1,), n, dtype=x.dtype), "full_like": lambda x, n: ops.full_like(x, n),
    "fill": lambda x, n: ops.fill(x.dtype, (1,), n), "fill_": lambda x, n: x.copy().fill_(n),
    "where left": lambda x, n: ops.where(x > 0, n, x), "where right": lambda x, n: ops.where(x > 0, x, n),
    "select": lambda x, n: ops.select(x > 0, x, n), "masked_fill": lambda x, n: ops.masked_fill(x, x > 0, n),
    "pad": lambda x, n: ops.pad(x, (1, 1), value=n), "ConstantPad1d": lambda x, n: nn.ConstantPad1d(1, n)(x),
    "index_fill": lambda x, n: ops.index_fill(x, 0, Tensor([-1]), n),
    "scatter": lambda x, n: ops.tensor_scatter_elements(x, Tensor([1]), ops.full((1,), n, dtype=x.dtype)),
    "one place": lambda x, n: changed(x, 0, n), "a slice": lambda x, n: changed(x, slice(1, None), n),
    "a mask": lambda x, n: changed(x, [True, False, True], n), "a list": lambda x, n: changed(x, [0, 2], [n, n]),
    "arange": lambda x, n: ops.arange(n, n + 3, dtype=x.dtype)[0],
    "arange down": lambda x, n: ops.arange(n, n - 9, -3, dtype=x.dtype)[0],
    "initializer": lambda x, n: initializer(n, (2,), x.dtype), "Tensor": lambda x, n: Tensor([n, n], x.dtype),
}


@pytest.mark.parametrize("name", STORED)
def test_assigned_python_integers_wrap_around(name):
    every = everywhere(lambda *xs: tuple(STORED[name](x, number) for x in xs for number in LARGE),
                       *[Tensor(np.array([0, 1, 2], dtype)) for dtype in DTYPES])
    for (dtype, number), found in zip(itertools.product(DTYPES, LARGE), every, strict=True):
        assert found.dtype == dtype, f"{name} of {number}, {dtype}"
        assert wrapped(number, dtype) in found.asnumpy().ravel().tolist(), f"{name} of {number}, {dtype}"


def test_arange_of_large_integers_is_exact():
    for first, last, step in [(2 ** 53 + 1, 2 ** 53 + 9, 3), (-2 ** 53 - 1, -2 ** 53 - 9, -3),
                              (2 ** 63 - 3, 2 ** 63 - 1, 1), (-2 ** 63, 2 ** 63 - 1, 2 ** 62 + 1)]:
        for found in (ops.arange(first, last, step), ms.jit(lambda: ops.arange(first, last, step))()):
            assert found.dtype == ms.int64 and found.asnumpy().tolist() == list(range(first, last, step))
    assert ops.arange(2 ** 64 - 3, 2 ** 64 - 1, dtype=ms.uint64).asnumpy().tolist() == [2 ** 64 - 3, 2 ** 64 - 2]
    assert ops.arange(0, 2, 0.5, dtype=ms.int32).asnumpy().tolist() == [0, 0, 1, 1]


def test_tensors_of_python_integers_are_exact():
    for numbers in ([2 ** 53 + 1, -2 ** 63], [2 ** 63, 1], [[2 ** 64 - 1, 0]], 2 ** 64 - 1, 2 ** 63 - 1):
        assert Tensor(numbers).asnumpy().tolist() == numbers
    assert Tensor([2 ** 63, 1]).dtype == ms.uint64
    assert Tensor([2 ** 63 + 1, -1], ms.int64).asnumpy().tolist() == [-2 ** 63 + 1, -1]
    assert Tensor([2 ** 64, 1.0]).dtype == ms.float32 and Tensor(2 ** 64, ms.float32).item() == 2.0 ** 64


@pytest.mark.parametrize("numbers", [2 ** 64, [2 ** 64], [2 ** 63, -1], -2 ** 63 - 1, [[1, 2], [2 ** 70, 3]]])
def test_integers_without_a_dtype_are_refused(numbers):
    with pytest.raises(OverflowError, match="no integer dtype"):
        Tensor(numbers)


@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_between_integer_dtypes_wrap_around(dtype):
    numbers = extremes(dtype)
    x = Tensor(np.array(numbers, dtype))
    for wide in DTYPES:
        found = everywhere(lambda x: x.astype(wide), x)
        assert found.asnumpy().tolist() == [wrapped(number, wide) for number in numbers]
        if limits(wide)[0] <= limits(dtype)[0] and limits(wide)[1] >= limits(dtype)[1]:
            assert found.astype(dtype).asnumpy().tolist() == numbers
    assert [x[i].item() for i in range(len(numbers))] == numbers == [int(x[i]) for i in range(len(numbers))]


# ----------------------------------------------------------------------------------------------------- reductions


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_integers_have_exact_values_and_dtypes(dtype):
    """Sums and products are int64, or uint64 for uint64; other reductions keep the dtype."""
    numbers = extremes(dtype)
    total = dtype if dtype in ("uint16", "uint32", "uint64") else "int64"
    x = Tensor(np.array(numbers, dtype))
    product = 1
    for number in numbers:
        product *= number
    mean = abs(sum(numbers)) // len(numbers) * (-1 if sum(numbers) < 0 else 1)
    for function, kind, right in [
            (ops.sum, total, sum(numbers)), (ops.prod, total, product), (ops.mean, dtype, mean),
            (ops.amax, dtype, max(numbers)), (ops.amin, dtype, min(numbers)),
            (lambda x: ops.sum(x, dtype=dtype), dtype, sum(numbers)), (lambda x: x.sum(), total, sum(numbers)),
            (lambda x: ops.cumsum(x, 0)[-1], dtype, sum(numbers)),
            (lambda x: ops.sort(x)[0][0], dtype, min(numbers)), (lambda x: ops.topk(x, 1)[0], dtype, max(numbers)),
            (lambda x: ops.max(x, 0)[0], dtype, max(numbers)),
            (lambda x: ops.bmm(x.reshape((1, 1, -1)), x.reshape((1, -1, 1))), dtype, sum(n * n for n in numbers))]:
        found = everywhere(function, x)
        assert found.dtype == kind and found.asnumpy().item() == wrapped(right, kind)


@pytest.mark.parametrize("name, expected", [
    ("add", [-2, 10, -7]), ("sub", [0, -4, 7]), ("mul", [6, 21, 0]), ("max", [2, 7, 0]), ("min", [-3, 3, -7]),
    ("div", [0, 0, 0])])
def test_integers_are_scattered_exactly(name, expected):
    function = getattr(ops, f"tensor_scatter_{name}")
    found = everywhere(function, Tensor([-1, 3, 0]), Tensor([[0], [1], [-1], [0]]), Tensor([2, 7, -7, -3]))
    assert found.dtype == ms.int64 and found.asnumpy().tolist() == expected
    large = Tensor([2 ** 53 + 1, 0, 0])
    kept = everywhere(function, large, Tensor([[1]]), Tensor([1]))
    assert kept[0].item() == 2 ** 53 + 1


# -------------------------------------------------------------------------------------------- divided by zero


def test_division_by_zero_gives_the_documented_values():
    """Division by zero gives the numbers that docs/mindspore.md lists."""
    x = Tensor([7, -7, 0])
    most, least = 2 ** 63 - 1, -2 ** 63
    for function, right in [
            (lambda x: x // 0, [most, least, 0]), (lambda x: ops.div(x, 0, rounding_mode="trunc"), [most, least, 0]),
            (lambda x: x % 0, [0, 0, 0]), (lambda x: ops.fmod(x, 0), [7, -7, 0]),
            (lambda x: ops.remainder(x, 0), [7, -7, 0]), (lambda x: x ** -1, [0, 0, most])]:
        assert everywhere(function, x).asnumpy().tolist() == right
    floats = everywhere(lambda x: (x // 0.0, x % 0.0, x / 0), x)
    np.testing.assert_array_equal(floats[0].asnumpy(), [np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(floats[1].asnumpy(), [np.nan] * 3)
    np.testing.assert_array_equal(floats[2].asnumpy(), [np.inf, -np.inf, np.nan])


def test_divmod_rounds_down():
    for found in (divmod(Tensor([7, -7]), 2), divmod(Tensor([7.5, -7.5]), 2)):
        assert [part.asnumpy().tolist() for part in found] in ([[3, -4], [1, 1]], [[3.0, -4.0], [1.5, 0.5]])
    assert [part.asnumpy().tolist() for part in divmod(7, Tensor([2, -2]))] == [[3, -4], [1, -1]]

"""Dtypes by MindSpore's names, and MindSpore's promotion, recorded for each pair."""

from __future__ import annotations

import copy
import operator
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import opreg as ms
import opreg.common.dtype as common
from opreg.cells import dtype as dtypes
from opreg.cells.dtype import DType, of, promote, promote_number
from opreg.core.spec import DTYPES, as_dtype
from opreg.errors import DTypeError
from opreg.nn import Tensor
from tests.questions import of_each

#: Name in opreg, text, repr, and NumPy's class.
TABLE = [
    ("float16", "Float16", "mindspore.float16", np.float16), ("float32", "Float32", "mindspore.float32", np.float32),
    ("float64", "Float64", "mindspore.float64", np.float64),
    ("bfloat16", "BFloat16", "mindspore.bfloat16", ml_dtypes.bfloat16),
    ("int8", "Int8", "mindspore.int8", np.int8), ("int16", "Int16", "mindspore.int16", np.int16),
    ("int32", "Int32", "mindspore.int32", np.int32), ("int64", "Int64", "mindspore.int64", np.int64),
    ("uint8", "UInt8", "mindspore.uint8", np.uint8), ("uint16", "UInt16", "mindspore.uint16", np.uint16),
    ("uint32", "UInt32", "mindspore.uint32", np.uint32), ("uint64", "UInt64", "mindspore.uint64", np.uint64),
    ("bool_", "Bool", "mindspore.bool", np.bool_),
]
NAMES = [row[0] for row in TABLE]


@of_each(TABLE)
def test_a_dtype_has_its_text_and_its_numpy_dtype(name: str, text: str, shown: str, kind: type) -> None:
    found = getattr(dtypes, name)
    assert isinstance(found, DType)
    assert (str(found), repr(found), f"{found}") == (text, shown, text)
    plain = np.dtype(kind)
    assert found.dtype == np.dtype(found) == plain
    assert np.zeros(2, found).dtype == plain and np.ones(2).astype(found).dtype == plain
    assert found == plain and plain == found and found == kind and kind == found
    assert found == text and text == found and found == plain.name and found == found
    assert hash(found) == hash(plain) and {plain: 1}[found] == 1 and {found: 1}[plain] == 1
    assert found.itemsize == plain.itemsize
    assert found.is_floating_point == ("float" in name) and found.is_signed == (name[0] not in "ub" or name[:2] == "bf")
    for word in (found, plain, kind, text, plain.name):
        assert of(word) is found, word
    assert copy.deepcopy(found) is found and pickle.loads(pickle.dumps(found)) is found
    assert dtypes.dtype_to_nptype(found) is kind and dtypes.pytype_to_dtype(kind) is found
    assert dtypes.dtype_to_pytype(found) is (bool if name == "bool_" else float if "float" in name else int)
    assert getattr(common, name) is found


def test_different_dtypes_are_unequal() -> None:
    everyone = [getattr(dtypes, name) for name in NAMES]
    for i, one in enumerate(everyone):
        for k, other in enumerate(everyone):
            assert (one == other) is (i == k) and (one == other.dtype) is (i == k) and (one == str(other)) is (i == k)
    for other in (None, 1, 1.5, float, int, [], np.zeros(3), np.float32(1), "x", object):
        assert (dtypes.float64 == other) is False and (dtypes.float64 != other) is True


@of_each([
    ("float16", "half"), ("float32", "single"), ("float64", "double"), ("float64", "float_"), ("int8", "byte"),
    ("int16", "short"), ("int32", "intc"), ("int64", "long"), ("int64", "intp"), ("int64", "int_"),
    ("uint8", "ubyte"), ("uint16", "ushort"), ("uint32", "uintc"), ("uint64", "uintp"), ("uint64", "uint")])
def test_aliases_are_the_same_dtypes(name: str, alias: str) -> None:
    assert getattr(dtypes, alias) is getattr(dtypes, name)


def test_python_types_stand_for_dtypes() -> None:
    assert [of(kind) for kind in (bool, int, float)] == [dtypes.bool_, dtypes.int64, dtypes.float64]
    assert dtypes.pytype_to_dtype(float) is dtypes.float64
    assert of(np.longlong) is dtypes.int64  # another class than np.int64, the same numbers


@of_each([None, "flaot32", 3, [], {}, str, list, np.generic, np.floating, np.clongdouble,
          np.zeros(2), np.float32(1), np.dtype("datetime64[s]"), object, "complex256", ">f4"])
def test_invalid_dtypes_are_refused(value: object) -> None:
    with pytest.raises(DTypeError, match="no dtype"):
        of(value)


def test_errors_name_the_nearest_dtype() -> None:
    with pytest.raises(DTypeError, match="Did you mean 'float32'"):
        of("flaot32")
    with pytest.raises(DTypeError, match="expected a type"):
        dtypes.pytype_to_dtype("int32")
    with pytest.raises(AttributeError, match="Did you mean 'float16'"):
        dtypes.float17  # noqa: B018


def test_as_dtype_takes_mindspores_dtypes() -> None:
    """Every argument for a dtype accepts them."""
    assert sorted(DTYPES.values()) == sorted(name.removesuffix("_") for name in NAMES)
    for name in NAMES:
        assert as_dtype(getattr(dtypes, name)) == as_dtype(name.removesuffix("_"))


def test_without_ml_dtypes_only_bfloat16_is_missing() -> None:
    """Without ml_dtypes only bfloat16 is missing."""
    program = """if True:
        import sys
        sys.modules["ml_dtypes"] = None
        from opreg.cells import dtype
        assert not hasattr(dtype, "bfloat16") and repr(dtype.of("float16")) == "mindspore.float16"
        try:
            dtype.of("bfloat16")
        except TypeError as error:
            assert "ml_dtypes" in str(error)
        else:
            raise AssertionError
        """
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


# ----------------------------------------------------------------------------------------------- promotion

#: Dtypes of ``x + y`` in MindSpore 2.10; a dash if it refuses.
PROMOTION = """
          bool_   int8    int16   int32   int64   uint8   uint16 uint32 uint64 float16 bfloat16 float32 float64
bool_     bool    int8    int16   int32   int64   uint8   uint16 uint32 uint64 float16 bfloat16 float32 float64
int8      int8    int8    int16   int32   int64   int16   -      -      -      float16 bfloat16 float32 float64
int16     int16   int16   int16   int32   int64   int16   -      -      -      float16 bfloat16 float32 float64
int32     int32   int32   int32   int32   int64   int32   -      -      -      float16 bfloat16 float32 float64
int64     int64   int64   int64   int64   int64   int64   -      -      -      float16 bfloat16 float32 float64
uint8     uint8   int16   int16   int32   int64   uint8   -      -      -      float16 bfloat16 float32 float64
uint16    uint16  -       -       -       -       -       uint16 -      -      -       -        -       -
uint32    uint32  -       -       -       -       -       -      uint32 -      -       -        -       -
uint64    uint64  -       -       -       -       -       -      -      uint64 -       -        -       -
float16   float16 float16 float16 float16 float16 float16 -      -      -      float16 float32  float32 float64
bfloat16  bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 - -     -      float32 bfloat16 float32 float64
float32   float32 float32 float32 float32 float32 float32 -      -      -      float32 float32  float32 float64
float64   float64 float64 float64 float64 float64 float64 -      -      -      float64 float64  float64 float64
"""
ROWS = [line.split() for line in PROMOTION.strip().splitlines()]
PAIRS = [(row[0], other, expected) for row in ROWS[1:] for other, expected in zip(ROWS[0], row[1:])]


def test_the_table_has_all_dtypes() -> None:
    assert sorted(ROWS[0]) == sorted(row[0] for row in ROWS[1:]) == sorted(NAMES)
    assert len(PAIRS) == len(NAMES) ** 2


@of_each(PAIRS, by=lambda pair: pair[0])
def test_promotion_of_two_dtypes_is_mindspores(case: tuple[str, str, str]) -> None:
    a, b, expected = case
    left, right = getattr(dtypes, a), getattr(dtypes, b)
    for pair in ((left, right), (left.dtype, right.dtype), (left.dtype, right)):
        if expected == "-":
            with pytest.raises(DTypeError, match="no common dtype"):
                promote(*pair)
        else:
            found = promote(*pair)
            assert isinstance(found, np.dtype) and found.name == expected


#: Dtypes of True, 2 and 2.5 combined with an array, on either side.
NUMBERS = """
bool_    bool     int64    float32
int8     int8     int8     float32
int16    int16    int16    float32
int32    int32    int32    float32
int64    int64    int64    float32
uint8    uint8    uint8    float32
uint16   uint16   uint16   float32
uint32   uint32   uint32   float32
uint64   uint64   uint64   float32
float16  float16  float16  float16
bfloat16 bfloat16 bfloat16 bfloat16
float32  float32  float32  float32
float64  float64  float64  float64
"""


@pytest.mark.parametrize("row", [line.split() for line in NUMBERS.strip().splitlines()], ids=lambda row: row[0])
def test_promotion_with_a_number_is_mindspores(row: list[str]) -> None:
    own = getattr(dtypes, row[0])
    for numbers, expected in zip([(True, np.True_), (2, -3, 10**12, np.int64(2), np.uint8(2)),
                                  (2.5, float("inf"), np.float32(2), np.float64(1e300))], row[1:]):
        for number in numbers:
            assert promote_number(own, number).name == promote_number(own.dtype, number).name == expected


# --------------------------------------------------------------------------------------------- in tensors

@of_each(PAIRS, by=lambda pair: pair[0])
def test_operators_of_tensors_have_the_promised_dtypes(case: tuple[str, str, str]) -> None:
    """Operators of tensors give the promised dtypes, and ``/`` gives no integers."""
    a, b, word = case
    left, right = Tensor(np.ones(2), getattr(dtypes, a)), Tensor(np.ones(2), getattr(dtypes, b))
    if word == "-":
        for operation in (operator.mul, operator.truediv, operator.eq):
            with pytest.raises(DTypeError, match="no common dtype"):
                operation(left, right)
        return
    expected = of(promote(left.dtype, right.dtype))
    assert (left * right).dtype is expected
    assert (left / right).dtype is (expected if expected.is_floating_point else dtypes.float32)


#: Results of MindSpore 2.10 for 1 and 2 in small and in unsigned integers. MindSpore refuses a scalar with unsigned
#: integers of more than a byte; these results follow the rule for scalars.
WHOLE = """
               int16                    uint16                   uint64
x + 2          [3, 4] int16             [3, 4] uint16            [3, 4] uint64
x + True       [2, 3] int16             [2, 3] uint16            [2, 3] uint64
x + 2.5        [3.5, 4.5] float32       [3.5, 4.5] float32       [3.5, 4.5] float32
-x             [-1, -2] int16           [65535, 65534] uint16    [18446744073709551615, 18446744073709551614] uint64
x / 2          [0.5, 1.0] float32       [0.5, 1.0] float32       [0.5, 1.0] float32
x // 2         [0, 1] int16             [0, 1] uint16            [0, 1] uint64
x ** 2         [1, 4] int16             [1, 4] uint16            [1, 4] uint64
x < 2          [True, False] bool       [True, False] bool       [True, False] bool
x & x          [1, 2] int16             [1, 2] uint16            [1, 2] uint64
x[0]           1 int16                  1 uint16                 1 uint64
x.sum()        3 int64                  3 uint16                 3 uint64
ops.prod(x)    2 int64                  2 uint16                 2 uint64
x.max()        2 int16                  2 uint16                 2 uint64
x.mean()       1 int16                  1 uint16                 1 uint64
x.cumsum(0)    [1, 3] int32             [1, 3] uint16            [1, 3] uint64
ops.cumsum(x,0)        [1, 3] int16     [1, 3] uint16            [1, 3] uint64
ops.cumprod(x,0)       [1, 2] int64     [1, 2] int64             [1, 2] int64
ops.ReduceSum()(x)     3 int16          3 uint16                 3 uint64
ops.ReduceProd()(x)    2 int16          2 uint16                 2 uint64
ops.sqrt(x*x)  [1.0, 2.0] float32       [1.0, 2.0] float32       [1.0, 2.0] float32
x.astype(ms.int8)      [1, 2] int8      [1, 2] int8              [1, 2] int8
"""
_LINES = [re.split(r" {2,}", line) for line in WHOLE.strip("\n").splitlines()]
WHOLE_CASES = [(text, dtype, each) for text, *answers in _LINES[1:] for dtype, each in zip(_LINES[0][1:], answers)]


@of_each(WHOLE_CASES)
def test_results_of_other_integer_dtypes_are_mindspores(text: str, dtype: str, answer: str) -> None:
    numbers, _, wanted = answer.rpartition(" ")
    x = Tensor([1, 2], getattr(dtypes, dtype))
    for found in (eval(text, {"x": x, "ops": ms.ops, "ms": ms}),
                  ms.jit(lambda x: eval(text, {"x": x, "ops": ms.ops, "ms": ms}))(x)):
        assert (found.asnumpy().tolist(), found.asnumpy().dtype.name) == (eval(numbers), wanted)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32", "uint64"])
def test_other_integer_dtypes_stay_unchanged(dtype: str, tmp_path: Path) -> None:
    """Integer dtypes are kept in all kinds of files, in arrays, graphs and texts."""
    largest = np.iinfo(dtype).max
    x = Tensor(np.array([0, largest], dtype))
    assert repr(x) == f"Tensor(shape=[2], dtype={getattr(dtypes, dtype)}, value= [{0:>{len(str(largest))}}, {largest}])"
    array = ms.nd.array([0, largest // 2], dtype=dtype)
    assert array.dtype is np.dtype(dtype).type and (array + array).asnumpy().tolist() == [0, largest // 2 * 2]
    for name in ("x.ckpt", "x.npz"):
        ms.save_checkpoint({"x": x}, str(tmp_path / name))
        found = ms.load_checkpoint(str(tmp_path / name))["x"]
        assert found.dtype is getattr(dtypes, dtype) and found.asnumpy().tolist() == [0, largest]
    ms.nd.save(str(tmp_path / "x.params"), [array])
    assert ms.nd.load(str(tmp_path / "x.params"))[0].dtype is array.dtype
    executor = (ms.sym.var("x") * 2).bind(ms.cpu(), {"x": ms.nd.array([1, 3], dtype=dtype)})
    assert executor.forward()[0].asnumpy().tolist() == [2, 6] and executor.outputs[0].dtype is array.dtype


@pytest.mark.parametrize("make", [
    lambda: Tensor([1.0], ms.complex64), lambda: Tensor([1.0]).astype(ms.complex128),
    lambda: Tensor([1.0], "complex64"), lambda: Tensor(np.ones(2, np.complex64)),
    lambda: ms.ops.zeros((2,), ms.complex64), lambda: Tensor([1.0, 2.0]).view(ms.complex64)])
def test_programs_only_compare_with_complex_dtypes(make: Callable[[], object]) -> None:
    assert ms.cfloat == ms.complex64 == np.complex64 != ms.float32 and str(ms.cdouble) == "Complex128"
    with pytest.raises(TypeError, match=r"complex(64|128).* is not a dtype of arrays"):
        make()

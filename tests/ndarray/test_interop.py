"""Arrays in Python and other libraries: as numbers, as NumPy's arrays, as shared memory."""

from __future__ import annotations

import copy
import datetime
import gc
import io
import json
import math
import operator
import pickle
import re
import statistics
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import Parameter, Tensor
from opreg.errors import ArgumentError, DTypeError, ShapeError


def tensor(numbers: Any, dtype: str = "float32") -> Tensor:
    return Tensor(np.array(numbers), getattr(mx, dtype, mx.bool_))


#: Arrays of each class, of numbers and a dtype.
KINDS: dict[str, Callable[..., Any]] = {
    "NDArray": lambda numbers, dtype="float32": mx.nd.array(numbers, dtype=dtype),
    "Tensor": tensor,
    "Parameter": lambda *args: Parameter(tensor(*args), "p"),
}


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return KINDS[request.param]


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed")


def address(array: Any) -> int:
    return array._data.__array_interface__["data"][0]


# ---------------------------------------------------------------------------------------------- one element


@pytest.mark.parametrize("ask, expected", [
    (lambda m: float(m([2.5])), 2.5),
    (lambda m: int(m([[2.5]])), 2),
    (lambda m: bool(m([2.5])), True),
    (lambda m: complex(m([2.5])), 2.5 + 0j),
    (lambda m: f"{m([2.567]):.2f} {m([3], 'int32'):4d} {m([1e-3]):e}", "2.57    3 1.000000e-03"),
    (lambda m: "{:>6.1f}|{:+}".format(m([2.5]), m([3], "int64")), "   2.5|+3"),
    (lambda m: "%.1f %d" % (m([2.5]), m([3], "int32")), "2.5 3"),  # noqa: UP031
    (lambda m: round(m([2.567]), 1), round(float(np.float32(2.567)), 1)),
    (lambda m: operator.index(m([3], "int8")), 3),
    (lambda m: [10, 11, 12][m([2], "int64")], 12),
    (lambda m: list(range(m([3], "uint8"))), [0, 1, 2]),
    (lambda m: (math.sqrt(m([4])), math.floor(m([1.5])), math.ceil(m([1.5])), math.trunc(m([-1.5]))), (2, 1, 2, -1)),
    (lambda m: json.dumps([m([2.5]).item(), m([3], "int32").item(), m([1], "bool").item()]), "[2.5, 3, true]"),
    (lambda m: json.dumps(m([[1, 2], [3, 4]], "int32").tolist()), "[[1, 2], [3, 4]]"),
    (lambda m: [m([1, 2, 3]).item(1), m([[1, 2], [3, 4]]).item((1, 0))], [2.0, 3.0]),
    (lambda m: float(sum([m([1]), m([2])])), 3.0),
    (lambda m: statistics.fmean([m([1]), m([2])]), 1.5),
    (lambda m: m([0.75]).as_integer_ratio(), (3, 4)),
    (lambda m: float(max([m([1]), m([3]), m([2])])), 3.0),
    (lambda m: (m([2.5], "bfloat16").item(), f"{m([2.5], 'bfloat16'):.1f}"), (2.5, "2.5")),
])
def test_an_array_of_one_element_is_a_number(make, ask, expected):
    answer = ask(make)
    assert answer == expected and type(answer) is type(expected)


def test_an_array_of_one_element_is_rounded_to_an_int():
    """A Tensor of one element becomes a Tensor, as in MindSpore."""
    assert type(round(mx.nd.array([2.567]))) is int and round(mx.nd.array([2.567])) == 3
    assert type(round(mx.Tensor([2.567]))) is mx.Tensor


@pytest.mark.parametrize("dtype, kind", [("float32", float), ("float16", float), ("bfloat16", float), ("int8", int),
                                         ("int64", int), ("bool", bool)])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_an_item_is_a_python_number(make, dtype, kind, shape):
    assert type(make(np.ones(shape), dtype).item()) is kind


def test_mean_of_the_statistics_module_keeps_the_kind_of_array():
    for kind in (KINDS["NDArray"], KINDS["Tensor"]):
        mean = statistics.mean([kind([1]), kind([2])])
        assert type(mean) is type(kind([1])) and float(mean) == 1.5


@pytest.mark.parametrize("title, ask", [
    ("float()", float), ("int()", int), ("float()", complex), ("float()", math.sqrt), ("trunc()", math.trunc),
    ("round()", lambda x: round(x, 2)), ("item", lambda x: x.item()), ("asscalar", lambda x: x.asscalar()),
    ("float()", lambda x: "%f" % x),  # noqa: UP031
    ("format '.3f'", lambda x: f"{x:.3f}"), ("float()", lambda x: statistics.fmean([x])),
])
@pytest.mark.parametrize("shape", [(2, 3), (0,)])
def test_several_elements_are_no_number(make, title, ask, shape):
    words = f"{title}: expected one element, the array has shape {shape}; "
    with pytest.raises(ShapeError, match=f"{re.escape(words)}.*asnumpy"):
        ask(make(np.zeros(shape)))


@pytest.mark.parametrize("numbers, dtype", [([2.5], "float32"), ([1, 2], "int32")])
def test_invalid_indices_are_named(make, numbers, dtype):
    with pytest.raises(TypeError, match=rf"one element, got one of shape [(]{len(numbers)},.* dtype {dtype}"):
        operator.index(make(numbers, dtype))


def test_several_elements_are_formatted_as_text(make):
    x = make([1, 2])
    assert f"{x}" == str(x) and f"{x:>80}" == f"{x!s:>80}"


def test_values_are_read_in_compiled_functions():
    def count(x):
        return x * round(x.sum() + 0.4) + math.trunc(x.sum()) + len(f"{x.sum():.3f}")

    for numbers in ([1.0, 2.25], [8.0, 3.0]):
        x = Tensor(np.array(numbers, np.float32))
        assert mx.jit(count)(x).asnumpy().tolist() == count(x).asnumpy().tolist()


# ---------------------------------------------------------------------------------------------------- NumPy


def test_numpy_gets_a_copy_or_a_view_as_it_asks(make):
    x = make([[5, 2], [3, 4]])
    copies, views = [np.array(x), np.asarray(x, copy=True)], [np.asarray(x, copy=False), np.from_dlpack(x)]
    x[0, 0] = 1
    assert [each[0, 0] for each in (*copies, *views)] == [5, 5, 1, 1]
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, np.int32, copy=False)
    np.testing.assert_allclose(x, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(x, x)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(x, x + 1)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
def test_copies_are_of_the_same_class_and_memory_of_their_own(make, again, dtype):
    x = make([[1, 0], [1, 1]], dtype)
    other = again(x)
    assert type(other) is type(x) and other.dtype == x.dtype and other.asnumpy().tolist() == x.asnumpy().tolist()
    other[:] = 0
    assert x.asnumpy().tolist() != other.asnumpy().tolist()


def test_numpys_files_take_arrays(make):
    file = io.BytesIO()
    np.savez(file, a=make([1, 2]), b=make([3], "int32"))
    file.seek(0)
    with np.load(file) as loaded:
        assert loaded["a"].tolist() == [1, 2] and loaded["b"].dtype == np.int32


# --------------------------------------------------------------------------------------------------- DLPack


DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]


class Speaker:
    """Another library's array that supports only DLPack, and records the arguments of its calls."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0), **refused: type[Exception]):
        self.array, self.device, self.refused, self.asked = array, device, refused, {}

    def __dlpack__(self, **keywords: Any) -> object:
        self.asked = keywords
        for word, error in self.refused.items():
            if word == "always" or word in keywords:
                raise error(f"{word} is not known here")
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (0, 2), ()])
def test_memory_is_shared_by_dlpack_in_both_directions(make, dtype, shape):
    x = make(np.ones(shape), dtype)
    for source in (x, Speaker(x), Speaker(x, max_version=TypeError), x.to_dlpack_for_read()):
        shared = mx.nd.from_dlpack(source)
        assert shared.shape == shape and np.dtype(shared.dtype) == np.dtype(x.dtype)
        assert not shared.size or address(shared) == address(x)
        shared[:] = 0
        assert not x.asnumpy().any()
        x[...] = 1


def test_a_capsule_owns_its_memory_until_it_is_freed(make):
    x = make([1, 2, 3], "bfloat16")
    held = x._data
    before = sys.getrefcount(held)
    shared = mx.nd.from_dlpack(x)
    assert sys.getrefcount(held) > before
    del shared
    capsule = x.__dlpack__(max_version=(1, 0))
    del capsule
    gc.collect()
    assert sys.getrefcount(held) == before


def test_a_capsule_is_read_once():
    x = mx.nd.array([1, 2, 3])
    capsule = x.to_dlpack_for_read()
    mx.nd.from_dlpack(capsule)
    with pytest.raises(ArgumentError, match="was read already"):
        mx.nd.from_dlpack(capsule)
    with pytest.raises(ArgumentError, match="of DLPack"):
        mx.nd.from_dlpack(datetime.datetime_CAPI)  # another capsule of Python's


def test_a_copy_is_returned_on_request(make):
    x = make([1, 2])
    for dtype in ("float32", "bfloat16"):
        x = make([1, 2], dtype)
        taken = mx.nd.from_dlpack(x.__dlpack__(copy=True, dl_device=(1, 0), max_version=(1, 0)))
        taken[:] = 5
        assert x.asnumpy().tolist() == [1, 2]
    with pytest.raises(BufferError, match="cannot be exported to a device of kind 2"):
        x.__dlpack__(dl_device=(2, 0))


def test_read_only_arrays_refuse_writes():
    shown = mx.nd.array([1, 2]).shown()
    with pytest.raises(BufferError):
        shown.__dlpack__()  # old versions of the protocol have no read-only arrays
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert not np.from_dlpack(shown).flags.writeable
        with pytest.raises(mx.OpError, match="does not let be written"):
            mx.nd.from_dlpack(shown)[:] = 1


@pytest.mark.parametrize("use, expected", [
    (lambda other: mx.nd.array(other), [1, 2]),
    (lambda other: Tensor(other), [1, 2]),
    (lambda other: mx.tensor(other), [1, 2]),
    (lambda other: mx.nd.ones(2) + other, [2, 3]),
    (lambda other: other - mx.nd.ones(2), [0, 1]),
    (lambda other: Tensor([1.0, 1.0]) * other, [1, 2]),
    (lambda other: other / Tensor([2.0, 2.0]), [0.5, 1]),
    (lambda other: _assigned(mx.nd.zeros(2), other), [1, 2]),
    (lambda other: _assigned(Tensor([0.0, 0.0]), other), [1, 2]),
])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "bfloat16"])
def test_foreign_arrays_are_accepted_in_arithmetic(use, expected, dtype):
    other = Speaker(mx.nd.array([1, 2], dtype=dtype))
    assert use(other).asnumpy().tolist() == expected
    assert other.array.asnumpy().tolist() == [1, 2]


def _assigned(array: Any, value: Any) -> Any:
    array[:] = value
    return array


def test_arrays_whose_dlpack_fails_are_copied_by_numpy():
    class Both(Speaker):
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.array([7, 8], dtype)

    for error in (BufferError, TypeError, ValueError):
        other = Both(mx.nd.array([1, 2]), always=error)
        assert mx.nd.array(other).asnumpy().tolist() == Tensor(other).asnumpy().tolist() == [7, 8]
    with pytest.raises(DTypeError, match=r"complex64.* is not a dtype of arrays"):
        mx.nd.array(Both(np.zeros(2, np.complex64)))


# ------------------------------------------------------------------------------------------------- gradients


LEAVES = {"np.asarray": np.asarray, "np.array": np.array, "np.from_dlpack": np.from_dlpack,
          "nd.from_dlpack": mx.nd.from_dlpack, "a capsule": lambda x: x.to_dlpack_for_read()}


@pytest.mark.parametrize("way", LEAVES)
def test_conversions_that_leave_the_tape_cause_a_warning(way):
    x = mx.nd.array([1, 2])
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
        with pytest.warns(UserWarning, match="recorded array .* no gradient.*if that is intended"):
            LEAVES[way](y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            LEAVES[way](y.detach())
            float(y[0])
            y.asnumpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LEAVES[way](y)


# ------------------------------------------------------------------------------------------- other libraries


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")  # PyTorch's
def test_pytorch_takes_arrays(make):
    torch = library("torch")
    for dtype in ("float32", "bfloat16", "int64", "bool"):
        x = make([1, 0], dtype)
        for tensor in (torch.from_dlpack(x), torch.as_tensor(x), torch.asarray(x)):
            assert tensor.data_ptr() == address(x) and str(tensor.dtype) == f"torch.{dtype}"
        back = mx.nd.from_dlpack(torch.ones(2, dtype=getattr(torch, dtype)))
        assert np.dtype(back.dtype) == np.dtype(x.dtype) and back.asnumpy().all()
    assert torch.from_dlpack(x, copy=True).data_ptr() != address(x)
    one = torch.ones(2, requires_grad=True)
    with pytest.raises(BufferError, match="detach"):
        mx.nd.from_dlpack(one)
    with pytest.raises(RuntimeError, match="detach"):
        mx.nd.array(one)
    assert (make([1, 2]) + torch.ones(2)).asnumpy().tolist() == (torch.ones(2) + make([1, 2])).asnumpy().tolist()


def test_jax_takes_arrays(make):
    jax = library("jax")
    for dtype in ("float32", "bfloat16", "int32", "bool"):
        x = make([1, 0], dtype)
        for array in (jax.numpy.asarray(x), jax.numpy.array(x), jax.numpy.from_dlpack(x)):
            assert str(array.dtype) == dtype and array.tolist() == [1, 0]
    assert jax.numpy.from_dlpack(x, copy=True).unsafe_buffer_pointer() != address(x)
    kept = jax.numpy.asarray(x)
    x[...] = 1
    assert kept.tolist() == [1, 0]  # arrays of JAX never change
    assert type(jax.numpy.ones(2) + make([1, 2])) is type(kept)
    given = jax.numpy.arange(3.0)
    assert mx.nd.array(given).asnumpy().tolist() == Tensor(given).asnumpy().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        mx.nd.from_dlpack(given)[:] = 1


def test_pandas_takes_arrays(make):
    pandas = library("pandas")
    assert pandas.Series(make([1, 2])).tolist() == [1, 2]
    frame = pandas.DataFrame({"a": make([1, 2]), "b": make([3, 4], "int32")})
    frame["c"] = make([5, 6])
    assert frame["b"].dtype == np.int32 and frame.to_numpy().tolist() == [[1, 3, 5], [2, 4, 6]]
    assert pandas.DataFrame(make([[1, 2], [3, 4]])).shape == (2, 2)
    assert mx.nd.array(frame).shape == Tensor(frame).shape == (2, 3)
    assert Tensor(frame["b"]).dtype == mx.int32


def test_matplotlib_takes_arrays(make):
    matplotlib = library("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    (line,) = axes.plot(make([1, 2, 3]), make([4, 5, 6]))
    assert line.get_xydata().tolist() == [[1, 4], [2, 5], [3, 6]]
    axes.imshow(make(np.zeros((4, 4, 3)), "uint8"))
    axes.scatter(make([1, 2]), make([1, 2]), c=make([0, 1]))
    axes.hist(make([1, 2, 2]))
    axes.errorbar(make([1, 2]), make([1, 2]), yerr=make([0.1, 0.1]))
    figure.canvas.draw()
    pyplot.close(figure)


def test_scipy_takes_arrays(make):
    library("scipy")
    from scipy import linalg, ndimage, optimize, sparse, special, stats

    assert special.expit(make([0])).tolist() == [0.5]
    assert special.logsumexp(make([0, 0])) == pytest.approx(math.log(2))
    assert stats.pearsonr(make([1, 2, 3]), make([2, 4, 6]))[0] == pytest.approx(1)
    assert linalg.inv(make([[2, 0], [0, 4]])).tolist() == [[0.5, 0], [0, 0.25]]
    assert ndimage.shift(make([1, 2]), 1).tolist() == [0, 1]
    assert sparse.csr_matrix(make([[1, 0], [0, 4]])).nnz == 2
    assert (sparse.eye(2) @ make([[1, 2], [3, 4]])).tolist() == [[1, 2], [3, 4]]
    start = make([0, 0], "float64")
    found = optimize.minimize(lambda x: float(((mx.nd.array(x, dtype="float64") - 3) ** 2).sum()), start)
    np.testing.assert_allclose(found.x, [3, 3], atol=1e-4)


def test_pillow_exchanges_images(make):
    library("PIL")
    from PIL import Image

    pixels = make(np.arange(24).reshape(2, 4, 3), "uint8")
    picture = Image.fromarray(pixels.asnumpy())
    assert picture.size == (4, 2)
    assert mx.nd.array(picture, dtype="uint8").asnumpy().tolist() == pixels.asnumpy().tolist()
    assert Tensor(picture).dtype == mx.uint8
    assert not hasattr(pixels, "__array_interface__")  # else np.asarray would share the memory


def test_safetensors_exchanges_arrays(make):
    numpy_files = library("safetensors.numpy")
    saved = numpy_files.save({"a": make([[1, 2]]).asnumpy()})
    assert mx.nd.array(numpy_files.load(saved)["a"]).asnumpy().tolist() == [[1, 2]]

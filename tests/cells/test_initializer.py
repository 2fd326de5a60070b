"""Initializers: bounds and moments by their formulas, names, seeds, and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg import common, ndarray
from opreg.cells import dtype as dtypes
from opreg.cells import initializer as init
from opreg.cells.initializer import get_seed, initializer, set_seed
from opreg.common.initializer import initializer as from_common
from opreg.core import generators
from opreg.errors import ArgumentError, AttrError, ShapeError
from opreg.nn import Parameter, Tensor
from tests.questions import of_each

SHAPE = (120, 80, 3, 2)  # 120 * 6 outputs, 80 * 6 inputs, 57600 numbers


@pytest.fixture(autouse=True)
def seeded() -> None:
    set_seed(1)


# --------------------------------------------------------------------------------------- sizes of the numbers

#: Initializer, bound of uniform numbers.
UNIFORM = [
    (init.Uniform(), 0.07), (init.Uniform(3.0), 3.0),
    (init.XavierUniform(), math.sqrt(6 / 1200)), (init.XavierUniform(2), 2 * math.sqrt(6 / 1200)),
    (init.HeUniform(), math.sqrt(6 / 480)), (init.HeUniform(mode="fan_out"), math.sqrt(6 / 720)),
    (init.HeUniform(math.sqrt(5)), math.sqrt(1 / 480)), (init.HeUniform(nonlinearity="relu"), math.sqrt(6 / 480)),
    (init.HeUniform(nonlinearity="tanh"), 5 / 3 * math.sqrt(3 / 480)),
    (init.HeUniform(nonlinearity="sigmoid"), math.sqrt(3 / 480)),
    (init.HeUniform(nonlinearity="conv_transpose2d"), math.sqrt(3 / 480)),
    (init.VarianceScaling(2.0, "fan_avg", "uniform"), math.sqrt(6 / 600)),
]
#: Initializer, mean, standard deviation.
NORMAL = [
    (init.Normal(), 0, 0.01), (init.Normal(3.0, -1.0), -1, 3),
    (init.XavierNormal(), 0, math.sqrt(2 / 1200)), (init.XavierNormal(3), 0, 3 * math.sqrt(2 / 1200)),
    (init.HeNormal(), 0, math.sqrt(2 / 480)), (init.HeNormal(1, "FAN_OUT"), 0, math.sqrt(1 / 720)),
    (init.HeNormal(nonlinearity="linear"), 0, math.sqrt(1 / 480)),
    (init.VarianceScaling(2.0, "fan_out", "untruncated_normal"), 0, math.sqrt(2 / 720)),
]
SHOWN = str


@pytest.mark.parametrize("kind, bound", UNIFORM, ids=SHOWN)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_values_fill_their_range(kind: init.Initializer, bound: float, dtype: str) -> None:
    x = kind.fill(SHAPE, dtype)
    assert x.shape == SHAPE and x.dtype == dtype
    assert 0.999 * bound < abs(x).max() <= bound * (1 + 1e-6)
    assert abs(x.mean()) < 0.02 * bound
    assert x.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize("kind, mean, deviation", NORMAL, ids=SHOWN)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_values_have_mean_and_deviation(kind: init.Initializer, mean: float, deviation: float,
                                               dtype: str) -> None:
    x = kind.fill(SHAPE, dtype)
    assert x.dtype == dtype
    z = (x - mean) / deviation
    assert abs(z.mean()) < 0.02 and z.std() == pytest.approx(1, abs=0.02)
    assert 3.5 < abs(z).max() < 6
    assert (abs(z) < 1).mean() == pytest.approx(math.erf(math.sqrt(0.5)), abs=0.01)


@pytest.mark.parametrize("mean, sigma, a, b", [
    (0.0, 0.01, -2.0, 2.0), (5.0, 2.0, -1.0, 3.0), (0.0, 1.0, -2.0, 2.0), (0.0, 1.0, 1.0, 1.5), (1.0, 2.0, -9.0, 0.0),
    (0.0, 1.0, 3.0, 8.0)])
def test_truncated_normal_values_lie_within_the_ends(mean: float, sigma: float, a: float, b: float) -> None:
    """Values lie within the given ends; moments follow Johnson, Kotz and Balakrishnan, section 13.10."""
    x = init.TruncatedNormal(sigma, mean, a, b).fill((400, 200), np.float64)
    assert a <= x.min() and x.max() <= b
    low, high = (a - mean) / sigma, (b - mean) / sigma
    bell = [math.exp(-z * z / 2) / math.sqrt(2 * math.pi) for z in (low, high)]
    mass = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
    shift = (bell[0] - bell[1]) / mass
    variance = 1 + (low * bell[0] - high * bell[1]) / mass - shift**2
    assert x.mean() == pytest.approx(mean + sigma * shift, abs=0.02 * sigma)
    assert x.std() == pytest.approx(sigma * math.sqrt(variance), rel=0.02)


def test_variance_scaling_truncates() -> None:
    """The normal distribution is cut at two of its own standard deviations, which exceed those of the result."""
    x = init.VarianceScaling(3.0).fill(SHAPE, np.float64)
    deviation = math.sqrt(3 / 480)
    assert x.std() == pytest.approx(deviation, rel=0.01)
    assert abs(x).max() == pytest.approx(2 * deviation / 0.87962566103423978, rel=0.001)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=4), st.sampled_from([1.0, 0.5, -2.0]))
def test_orthogonal_weights_have_orthogonal_rows_or_columns(shape: list[int], gain: float) -> None:
    x = init.Orthogonal(gain).fill(tuple(shape), np.float64).reshape(shape[0], -1)
    product = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    np.testing.assert_allclose(product, gain**2 * np.eye(len(product)), atol=1e-12)


def test_orthogonal_matrices_are_uniformly_distributed() -> None:
    """No direction is preferred: the sign of each element is equally often positive and negative."""
    signs = sum(np.sign(init.Orthogonal().fill((3, 3), np.float64)) for _ in range(400))
    assert abs(signs).max() < 90  # 4.5 standard deviations


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_identity_gives_an_identity_matrix(shape: tuple[int, int]) -> None:
    np.testing.assert_array_equal(init.Identity().fill(shape, np.float32), np.eye(*shape))


@pytest.mark.parametrize("shape", [(4, 3, 3), (2, 3, 3, 5), (3, 2, 1, 3, 4)])
def test_dirac_has_one_in_the_center_of_each_kernel(shape: tuple[int, ...]) -> None:
    x = init.Dirac().fill(shape, np.float32)
    count = min(shape[:2])
    assert x.sum() == count
    for i in range(count):
        assert x[(i, i, *(length // 2 for length in shape[2:]))] == 1


def test_dirac_weights_copy_input_channels() -> None:
    """A convolution with this weight, in two groups, returns its input."""
    x = Tensor(np.random.randn(1, 4, 5, 5).astype(np.float32))  # noqa: NPY002
    weight = initializer(init.Dirac(groups=2), (4, 2, 3, 3))
    y = ndarray.Convolution(x, weight, kernel=(3, 3), pad=(1, 1), num_filter=4, num_group=2, no_bias=True)
    np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())


@pytest.mark.parametrize("sparsity, zeros", [(0, 0), (0.25, 3), (0.3, 3), (0.5, 5), (1, 10)])
def test_sparse_has_zeros_in_each_column(sparsity: float, zeros: int) -> None:
    x = init.Sparse(sparsity, 2.0).fill((10, 500), np.float64)
    assert ((x == 0).sum(axis=0) == zeros).all()
    assert len({tuple(column) for column in (x == 0).T}) > 50 or zeros in (0, 10)
    if zeros < 10:
        assert x[x != 0].std() == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize("value, dtype, expected", [
    (2.5, "float32", [2.5, 2.5]), (2, "int32", [2, 2]), (True, "bool", [True, True]),
    (np.array([1, 2]), "float32", [1, 2]), (np.float32(0.5), "float16", [0.5, 0.5])])
def test_constant_fills_with_its_value(value: Any, dtype: str, expected: list) -> None:
    x = init.Constant(value).fill((2,), dtype)
    assert x.dtype == dtype and x.tolist() == expected


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "int32", "uint8", "bool_"])
@pytest.mark.parametrize("kind", [init.Zero(), init.One(), init.Uniform(), init.Normal(), init.TruncatedNormal(),
                                  init.XavierNormal(), init.Orthogonal(), init.Identity(), init.Sparse(0.5)], ids=SHOWN)
def test_initializers_make_every_dtype(kind: init.Initializer, dtype: str) -> None:
    wanted = getattr(dtypes, dtype)
    x = initializer(kind, (3, 3), wanted)
    assert x.dtype is wanted and x.shape == (3, 3)


# ----------------------------------------------------------------------------------------------- by any name

NAMES = {
    "zero": "Zero", "zeros": "Zero", "one": "One", "ones": "One", "ONES": "One", "normal": "Normal",
    "uniform": "Uniform", "xavier_uniform": "XavierUniform", "XavierUniform": "XavierUniform",
    "xavier_normal": "XavierNormal", "xaviernormal": "XavierNormal", "he_uniform": "HeUniform",
    "HeUniform": "HeUniform", "he_normal": "HeNormal", "henormal": "HeNormal", "truncatedNormal": "TruncatedNormal",
    "orthogonal": "Orthogonal", "identity": "Identity", "variancescaling": "VarianceScaling",
}


@of_each(NAMES.items())
def test_an_initializer_is_found_by_its_name(name: str, kind: str) -> None:
    set_seed(3)
    by_name = initializer(name, [4, 3], dtypes.float32)
    set_seed(3)
    expected = getattr(init, kind)().fill((4, 3), np.float32)
    assert isinstance(by_name, Tensor) and by_name.dtype is dtypes.float32
    np.testing.assert_array_equal(by_name.asnumpy(), expected)


def test_dirac_by_name() -> None:
    assert initializer("dirac", (2, 2, 3)).asnumpy().sum() == 2


def test_a_tensor_is_returned_unchanged() -> None:
    x = Tensor(np.float32([1, 2]))
    assert initializer(x) is x and initializer(x, [2]) is x and initializer(x, 2, dtypes.float16) is x


@pytest.mark.parametrize("shape, expected", [(3, (3,)), ([3], (3,)), ((2, 3), (2, 3)), ((), ()), (np.int64(2), (2,)),
                                             ([np.int32(2), 1], (2, 1))])
def test_a_shape_may_be_a_number_a_tuple_or_a_tensor(shape: Any, expected: tuple[int, ...]) -> None:
    for name in ("ones", "normal"):
        assert initializer(name, shape).shape == expected
    assert initializer(2.5, shape).asnumpy().ravel()[0] == 2.5


def test_a_users_subclass_fills_the_array() -> None:
    """``_initialize`` fills the array in place, as documented; its return value is ignored."""

    class Ramp(init.Initializer):
        def __init__(self, step: float):
            self.step = step

        def _initialize(self, arr: np.ndarray) -> Any:
            arr[:] = np.arange(arr.size).reshape(arr.shape) * self.step
            return "anything"

    w = Parameter(initializer(Ramp(0.5), [2, 2]), name="w")
    assert w.asnumpy().tolist() == [[0, 0.5], [1, 1.5]]
    arr = np.zeros(3)
    Ramp(2)(arr)
    assert arr.tolist() == [0, 2, 4]
    assert repr(Ramp(2)) == "Ramp()"


def test_the_repr_shows_the_settings() -> None:
    assert repr(init.HeUniform(0.1)) == "HeUniform(negative_slope=0.1, mode='fan_in', nonlinearity='leaky_relu')"


def test_common_initializer_has_the_same_names() -> None:
    assert from_common is initializer and common.initializer.Normal is init.Normal
    assert common.set_seed is set_seed and common.dtype.float32 is dtypes.float32
    assert set(common.initializer.__all__) == set(init.__all__) and set(common.dtype.__all__) == set(dtypes.__all__)
    assert common.Tensor is Tensor and common.Parameter is Parameter


# -------------------------------------------------------------------------------------------------- the seed

RANDOM = [init.Uniform(), init.Normal(), init.TruncatedNormal(), init.XavierUniform(), init.XavierNormal(),
          init.HeUniform(), init.HeNormal(), init.VarianceScaling(), init.Orthogonal(), init.Sparse(0.5)]


@pytest.mark.parametrize("kind", RANDOM, ids=SHOWN)
def test_a_seed_repeats_the_values(kind: init.Initializer) -> None:
    set_seed(5)
    first, second = kind.fill((4, 4), np.float32), kind.fill((4, 4), np.float32)
    assert (first != second).any()
    set_seed(5)
    np.testing.assert_array_equal(first, kind.fill((4, 4), np.float32))
    ndarray.random.seed(5)  # both functions seed one generator
    np.testing.assert_array_equal(first, kind.fill((4, 4), np.float32))
    set_seed(6)
    assert (first != kind.fill((4, 4), np.float32)).any()


def test_set_seed_reaches_everything() -> None:
    def draw() -> list[float]:
        return [np.random.randn(), ndarray.random.uniform(shape=1).asscalar(),  # noqa: NPY002
                generators.generator("cpu").random()]

    set_seed(2**40 + 1)
    first = draw()
    assert get_seed() == 2**40 + 1
    set_seed(2**40 + 1)
    assert draw() == first


# ---------------------------------------------------------------------------------------------------- errors

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unknown name": (lambda: initializer("bogus", [2]), ValueError, "class corresponding to 'bogus' was not found"),
    "near name": (lambda: initializer("he_unifrom", [2]), AttrError, "Did you mean 'he_uniform'"),
    "zero": (lambda: initializer("ones", [0]), ValueError, r"positive integers, got \[0\]"),
    "negative": (lambda: initializer("ones", (2, -1)), ValueError, "positive integers"),
    "float dimension": (lambda: initializer("ones", [2.0]), ValueError, "positive integers"),
    "text dimension": (lambda: initializer("ones", "2"), ValueError, "positive integers"),
    "no shape": (lambda: initializer("ones"), ArgumentError, "needs a shape"),
    "list": (lambda: initializer([1], [2]), TypeError, "got list"),
    "None": (lambda: initializer(None, [2]), TypeError, "got NoneType"),
    "complex": (lambda: initializer(1j, [2]), TypeError, "got complex"),
    "class": (lambda: initializer(init.Normal, [2]), TypeError, r"make one, Normal\(\)"),
    "other shape": (lambda: initializer(Tensor(np.ones(2)), [3]), ValueError, r"shape \(2,\), expected \(3,\)"),
    "fans": (lambda: initializer("xavier_uniform", [3]), ShapeError, r"XavierUniform: .* two axes.*\(3,\)"),
    "fans, he": (lambda: initializer("he_normal", [3]), ValueError, "HeNormal: .* two axes"),
    "identity": (lambda: initializer("identity", [2, 3, 4]), ValueError, "Identity: expected two axes"),
    "sparse": (lambda: initializer(init.Sparse(0.1), [2]), ValueError, "Sparse: expected two axes"),
    "dirac": (lambda: initializer("dirac", [2, 3]), ValueError, "Dirac: expected three to five axes"),
    "groups": (lambda: initializer(init.Dirac(2), [3, 3, 3]), ValueError, "multiple of groups=2"),
    "orthogonal": (lambda: initializer("orthogonal", [3]), ValueError, "Orthogonal: expected at least two"),
    "array": (lambda: initializer(init.Constant([1, 2]), [3]), ValueError, r"Constant: .*\(2,\) broadcasts"),
    "sigma": (lambda: init.Normal(-1.0), ValueError, "sigma must not be negative"),
    "sparse sigma": (lambda: init.Sparse(0.5, -1.0), ValueError, "sigma must not be negative"),
    "sparsity": (lambda: init.Sparse(1.5), ValueError, "from 0 to 1"),
    "truncated": (lambda: init.TruncatedNormal(0.0), ValueError, "sigma must be positive"),
    "ends": (lambda: init.TruncatedNormal(a=2.0, b=-2.0), ValueError, "between a=2.0 and b=-2.0"),
    "nothing there": (lambda: init.TruncatedNormal(1.0, 0.0, 20.0, 30.0), ValueError, "has no values between"),
    "scale": (lambda: init.VarianceScaling(0), ValueError, "scale must be positive"),
    "mode": (lambda: init.VarianceScaling(1.0, "fan"), ValueError, "no mode 'fan'"),
    "distribution": (lambda: init.VarianceScaling(distribution="uniforn"), ValueError, "Did you mean 'uniform'"),
    "he mode": (lambda: init.HeNormal(mode="fan_avg"), ValueError, "HeNormal: there is no mode"),
    "nonlinearity": (lambda: init.HeUniform(nonlinearity="rleu"), ValueError, "Did you mean 'relu'"),
    "slope": (lambda: init.HeUniform("x"), ValueError, "HeUniform: negative_slope='x': expected a number"),  # type: ignore
    "undefined": (lambda: initializer(init.Initializer(), [2]), NotImplementedError, "define _initialize"),
    "seed": (lambda: set_seed(-1), ValueError, "not negative, got -1"),
    "text seed": (lambda: set_seed("a"), TypeError, "expected an integer"),  # type: ignore
    "float seed": (lambda: set_seed(1.5), TypeError, "expected an integer"),  # type: ignore
    "bool seed": (lambda: set_seed(True), TypeError, "expected an integer"),
}


@pytest.mark.parametrize("mistake, kind, message", MISTAKES.values(), ids=MISTAKES)
def test_wrong_uses_of_initializers_are_refused(
        mistake: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        mistake()


def test_an_error_of_a_users_initializer_keeps_its_type() -> None:
    class Bad(init.Initializer):
        def _initialize(self, arr: np.ndarray) -> None:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        initializer(Bad(), [2]).asnumpy()


#: Initializers, and arrays that they fill.
ROWS = [
    *[(kind, SHAPE) for kind, *_ in [*UNIFORM, *NORMAL]], (init.Zero(), (3,)), (init.One(), (3,)),
    (init.Constant(2.5), (3,)), (init.TruncatedNormal(), (3, 2)), (init.Orthogonal(0.5), (3, 2, 2)),
    (init.Identity(), (3, 2)), (init.Dirac(), (4, 2, 3)), (init.Sparse(0.5), (4, 3)),
]
_KINDS = [name for name in init.__all__ if isinstance(getattr(init, name), type)]


@of_each([name for name in _KINDS if name != "Initializer"])
def test_every_initializer_has_a_row(name: str) -> None:
    assert any(type(kind) is getattr(init, name) for kind, _ in ROWS), f"initializer {name} has no row in ROWS"


@pytest.mark.parametrize("kind, shape", ROWS, ids=SHOWN)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_seed_determines_all_values(kind: init.Initializer, shape: tuple[int, ...], dtype: str) -> None:
    """Values in an array and in a new tensor are equal; an initializer made from its text draws the same."""
    again, arr = eval(repr(kind), vars(init).copy()), np.full(shape, np.nan, dtype)
    set_seed(3)
    kind(arr)
    assert np.isfinite(arr).all()
    for make in (lambda: kind.fill(shape, dtype), lambda: again.fill(shape, dtype),
                 lambda: initializer(again, shape, dtypes.float32 if dtype == "float32" else dtype).asnumpy()):
        set_seed(3)
        np.testing.assert_array_equal(make(), arr)


@pytest.mark.parametrize("kind, first", [
    (init.Uniform(1.0), [-0.336255, 0.223792]), (init.Normal(1.0), [0.533354, 1.242246]),
    (init.TruncatedNormal(1.0), [-0.413767, 0.271001]), (init.XavierUniform(), [-0.411827, 0.274088]),
    (init.VarianceScaling(), [-0.332616, 0.21785]), (init.Orthogonal(), [0.946482, 0.322757]),
    (init.Sparse(0.5, 1.0), [0.533354, 0.0])], ids=SHOWN)
def test_values_of_a_seed_equal_recorded_ones(kind: init.Initializer, first: list[float]) -> None:
    """Values for a seed stay the same in all versions, so that experiments can be repeated."""
    np.testing.assert_allclose(kind.fill((2, 2), np.float64).ravel()[:2], first, atol=1e-6)


def test_fan_in_and_fan_out_are_computed_from_the_shape() -> None:
    assert common.initializer._calculate_fan_in_and_fan_out((4, 3, 5, 5)) == (75, 100)
    assert common.initializer._calculate_fan_in_and_fan_out((2, 3)) == (3, 2)
    with pytest.raises(ShapeError, match=r"at least two axes, .* got the shape \(3,?\)"):
        common.initializer._calculate_fan_in_and_fan_out((3,))
    assert common.initializer._calculate_correct_fan((4, 3, 5, 5), "fan_out") == 100
    with pytest.raises(AttrError, match=r"no mode 'fan'\. Did you mean 'fan_in'"):
        common.initializer._calculate_correct_fan((4, 3), "fan")


@pytest.mark.parametrize("words, gain", [
    (("relu",), 2 ** 0.5), (("tanh",), 5 / 3), (("conv2d",), 1), (("leaky_relu",), 1.4141428569978354),
    (("leaky_relu", 0.2), 1.3867504905630728)])
def test_gains_are_those_of_mindspore(words: tuple[Any, ...], gain: float) -> None:
    assert common.initializer._calculate_gain(*words) == pytest.approx(gain)


def test_a_gain_for_an_unknown_activation_is_refused() -> None:
    with pytest.raises(AttrError, match=r"there is no nonlinearity 'relo'\. Did you mean 'relu'"):
        common.initializer._calculate_gain("relo")

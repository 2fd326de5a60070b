"""Smaller parts of MindSpore's interface, the same eagerly and compiled."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Parameter, Tensor, nn, ops
from opreg.errors import NotDifferentiableError

Run = Callable[[Any], Any]


@pytest.fixture(params=["eager", "compiled"])
def run(request: pytest.FixtureRequest) -> Run:
    return (lambda function: function) if request.param == "eager" else ms.jit


def count(*shape: int) -> Tensor:
    return Tensor(np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape))


def numbers(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(numbers, value))
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


# ------------------------------------------------------------------------------------------------ primitives


@pytest.mark.parametrize("turned, shapes, expected", [
    ((), [(2, 3), (3, 4)], (2, 4)), ((), [(3,), (3,)], ()), ((), [(2, 3), (3,)], (2,)), ((), [(3,), (3, 2)], (2,)),
    ((True, False), [(3, 2), (3, 4)], (2, 4)), ((False, True), [(5, 2, 3), (4, 3)], (5, 2, 4)),
    ((True, True), [(3,), (2, 3)], (2,)), ((True, True), [(3, 2), (3,)], (2,)), ((True, True), [(3,), (3,)], ())])
def test_matmul_equals_numpys_with_transposed_factors(run, turned, shapes, expected):
    left, right = count(*shapes[0]), count(*shapes[1])
    found = run(nn.MatMul(*turned))(left, right)
    a, b = left.asnumpy(), right.asnumpy()
    a, b = (x.T if turn and x.ndim == 2 else x.swapaxes(-1, -2) if turn and x.ndim > 2 else x
            for x, turn in zip((a, b), turned or (False, False)))
    assert found.shape == expected
    np.testing.assert_allclose(found.asnumpy(), a @ b)


def test_matmul_refuses_wrong_arguments():
    with pytest.raises(TypeError, match="transpose_x1=1: expected True or False"):
        nn.MatMul(1)
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 3\)"):
        nn.MatMul()(count(2, 3), count(2, 3))


def test_insert_gradient_of_calls_its_function(run):
    """The function changes gradients of any order, also of nested inputs; other values pass unchanged."""
    triple = ops.InsertGradientOf(lambda g: g * 3)
    x = count(2)
    assert numbers(run(lambda a: triple(a))(x)) == [1, 2] and triple(3) == 3
    assert numbers(run(ms.grad(lambda a: triple(a) * a))(x)) == [4, 8]
    assert numbers(run(ms.grad(ms.grad(lambda a: triple(a) * a * a)))(x)) == [14, 28]
    swap = ops.InsertGradientOf(lambda g: {"a": g["b"], "b": g["a"]})
    both = lambda a, b: (lambda pair: pair["a"] * 5 + pair["b"] * 7)(swap({"a": a, "b": b}))  # noqa: E731
    found = run(ms.grad(both, (0, 1)))(x, x)
    assert numbers(found) == ([7, 7], [5, 5])


def test_insert_gradient_of_may_clip_gradients():
    """The function compares numbers, like the example in MindSpore's documents."""
    low, high = Tensor([0.2]), Tensor([1.0])

    def clip(g: Any) -> Any:
        return high if g > high else low if g < low else g

    inserted = ops.InsertGradientOf(clip)
    found = ops.GradOperation(get_all=True)(lambda a, b: inserted(a) * inserted(b))(Tensor([1.1]), Tensor([0.1]))
    np.testing.assert_allclose(numbers(found), [[0.2], [1.0]], rtol=1e-6)


@pytest.mark.parametrize("f, kind, message", [
    (lambda g: None, TypeError, "size is 0 not equal to expect"), (lambda g: 2.0, TypeError, "size is 0"),
    (lambda g: g[:1], ValueError, r"shape \(1,\), expected \(2,\)"), (lambda g: 1 / 0, ZeroDivisionError, "division")])
def test_errors_of_gradient_functions_name_the_function(run, f, kind, message):
    with pytest.raises(kind, match=message) as caught:
        run(ms.grad(lambda a: ops.InsertGradientOf(f)(a)))(count(2))
    assert any("in the function" in note and "of an InsertGradientOf" in note for note in caught.value.__notes__)
    with pytest.raises(TypeError, match="f=3: expected a function"):
        ops.InsertGradientOf(3)


IMAGES = Tensor(np.random.default_rng(0).normal(2, 3, (4, 3, 2, 2)).astype(np.float32))


@pytest.mark.parametrize("held", ["parameters", "tensors"])
def test_batch_norm_moves_its_statistics(run, held):
    made: Any = (lambda array, name: Parameter(array, name=name)) if held == "parameters" else lambda array, _: array
    mean, variance = made(ops.zeros(3), "mean"), made(ops.ones(3), "variance")
    primitive = ops.BatchNorm(is_training=True, epsilon=1e-3)
    scale, bias = Tensor([1.0, 2.0, 3.0]), Tensor([0.0, 1.0, 2.0])
    x = IMAGES.asnumpy().astype("f8")
    own, spread = x.mean((0, 2, 3)), x.var((0, 2, 3))
    wide = (slice(None), None, None)
    out = (x - own[wide]) / np.sqrt(spread[wide] + 1e-3) * scale.asnumpy()[wide] + bias.asnumpy()[wide]
    for found, expected in zip(run(lambda a: primitive(a, scale, bias, mean, variance))(IMAGES),
                               (out, own, spread, own, spread)):
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=2e-5, atol=2e-5)
    if held == "parameters":  # moving statistics, with the variance divided by the count less one
        np.testing.assert_allclose(mean.asnumpy(), 0.1 * own, rtol=1e-5)
        np.testing.assert_allclose(variance.asnumpy(), 0.9 + 0.1 * spread * 16 / 15, rtol=1e-5)
    found = run(lambda a: ops.BatchNorm()(a, scale, bias, mean, variance))(IMAGES)
    assert [each.shape for each in found] == [(4, 3, 2, 2)] + [(3,)] * 4
    inference = ops.BatchNorm(data_format="NHWC")(IMAGES.transpose(0, 2, 3, 1), scale, bias, mean, variance)
    np.testing.assert_allclose(inference[0].transpose(0, 3, 1, 2).asnumpy(), found[0].asnumpy(), rtol=1e-5, atol=1e-6)


def test_batch_norm_has_gradients(run):
    primitive = ops.BatchNorm(is_training=True)
    weights = Tensor(np.cos(np.arange(48)).reshape(4, 3, 2, 2).astype(np.float32))
    zeros, ones = ops.zeros(3), ops.ones(3)

    def composed(a: Any, g: Any, b: Any) -> Any:
        mean = a.mean(axis=(0, 2, 3), keep_dims=True)
        away = a - mean
        spread = (away * away).mean(axis=(0, 2, 3), keep_dims=True)
        return ((away / ops.sqrt(spread + 1e-5) * g.reshape(1, 3, 1, 1) + b.reshape(1, 3, 1, 1)) * weights).sum()

    held = Parameter(zeros, name="m"), Parameter(ones, name="v")
    expected = ms.grad(composed, (0, 1, 2))(IMAGES, ones, zeros)
    for mean, variance in ((zeros, ones), held):
        found = run(ms.grad(lambda a, g, b, m=mean, v=variance: (primitive(a, g, b, m, v)[0] * weights).sum(),
                            (0, 1, 2)))(IMAGES, ones, zeros)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings, size, expected", [
    ({}, (4, 6), [[1, 1.5, 2, 2.5, 3, 3], [2.5, 3, 3.5, 4, 4.5, 4.5], [4, 4.5, 5, 5.5, 6, 6], [4, 4.5, 5, 5.5, 6, 6]]),
    ({"align_corners": True}, (4, 6), [[1, 1.4, 1.8, 2.2, 2.6, 3], [2, 2.4, 2.8, 3.2, 3.6, 4],
                                       [3, 3.4, 3.8, 4.2, 4.6, 5], [4, 4.4, 4.8, 5.2, 5.6, 6]]),
    ({"half_pixel_centers": True}, [4, 6], [[1, 1.25, 1.75, 2.25, 2.75, 3], [1.75, 2, 2.5, 3, 3.5, 3.75],
                                            [3.25, 3.5, 4, 4.5, 5, 5.25], [4, 4.25, 4.75, 5.25, 5.75, 6]]),
    ({"half_pixel_centers": True}, (1, 2), [[2.75, 4.25]]), ({}, Tensor([1, 2]), [[1, 2.5]])])
def test_resized_images_have_the_expected_values(run, settings, size, expected):
    resize = ops.ResizeBilinearV2(**settings)
    found = run(lambda a: resize(a, size))(count(1, 1, 2, 3))
    np.testing.assert_allclose(found.asnumpy()[0, 0], expected, rtol=1e-6)
    back = run(ms.grad(lambda a: resize(a, size).sum()))(count(1, 1, 2, 3))
    assert float(back.sum()) == pytest.approx(np.size(expected))


@pytest.mark.parametrize("settings, rows, columns", [
    ({}, [0, 2], [0, 1, 3]), ({"align_corners": True}, [0, 3], [0, 2, 4]),
    ({"align_corners": True}, [0, 1, 1, 2, 2, 3, 3], [0, 1, 1, 2, 2, 3, 3, 4, 4]),
    ({}, [0, 0, 1, 1, 2, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3, 4]),
    ({"half_pixel_centers": True}, [0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])])
def test_nearest_pixels_of_resized_images_are_mindspores(run, settings, rows, columns):
    """The chosen pixels are those that MindSpore chooses."""
    image, size = count(1, 1, 4, 5), (len(rows), len(columns))
    expected = image.asnumpy()[:, :, rows][..., columns]
    for resize in (ops.ResizeNearestNeighbor(size, **settings),
                   lambda a: ops.ResizeNearestNeighborV2(**settings)(a, Tensor(size))):
        np.testing.assert_array_equal(run(lambda a, resize=resize: resize(a))(image).asnumpy(), expected)
    back = run(ms.grad(lambda a: ops.ResizeNearestNeighbor(size, **settings)(a).sum()))(image).asnumpy()
    counts = np.bincount(rows, minlength=4), np.bincount(columns, minlength=5)
    np.testing.assert_array_equal(back[0, 0], np.outer(*counts))


_ROWS = [[0.003088, 0.313131, 0.481231, 0.326219, 0.190293], [0.711616, 0.58399, 0.718121, 0.258823, 0.121847],
         [0.781316, 0.591508, 0.858185, 0.091935, 0.444639]]


@pytest.mark.parametrize("mode, settings, expected", [
    ("bilinear", {"scale_factor": (0.5, 1.5)}, [0.71162, 0.63869, 0.62231, 0.71812, 0.39005, 0.20012, 0.12185]),
    ("bicubic", {"size": (5, 3)}, [0.0382, 0.4633, 0.2283, 0.2875, 0.5581, 0.1868, 0.6718, 0.7181, 0.1438]),
    ("bicubic", {"size": (5, 3), "align_corners": True}, [0.0031, 0.4812, 0.1903, 0.3508, 0.5865, 0.1258, 0.7116]),
    ("bicubic", {"scale_factor": (2.0, 1.5)}, [-0.0797, 0.1242, 0.3599, 0.4603, 0.3781, 0.2638, 0.1884, 0.1227])])
def test_interpolated_images_equal_mindspores(run, mode, settings, expected):
    """The numbers are those of MindSpore."""
    made = nn.Upsample(mode=mode, recompute_scale_factor=True, **settings)
    found = run(lambda a: made(a))(Tensor([[_ROWS]])).asnumpy().ravel()
    np.testing.assert_allclose(found[:len(expected)], expected, atol=6e-5)


@pytest.mark.parametrize("mode, settings, expected", [
    ("trilinear", {}, [0.0, 0.6538, 1.4231, 2.1923, 2.9615, 2.0, 2.6538, 3.4231, 4.1923, 4.9615, 4.6667, 5.3205]),
    ("area", {}, [0.0, 0.5, 1.5, 2.5, 3.0, 2.0, 2.5, 3.5, 4.5, 5.0, 6.0, 6.5]),
    ("area", {"size": (3, 2, 5)}, [2.0, 2.5, 3.5, 4.5, 5.0, 6.0, 6.5, 7.5, 8.5, 9.0, 8.0, 8.5])])
def test_interpolated_volumes_equal_mindspores(run, mode, settings, expected):
    settings = settings or {"scale_factor": (1.5, 1.5, 1.3)}
    found = run(lambda a: ops.interpolate(a, mode=mode, **settings))(count(1, 1, 2, 3, 4) - 1).asnumpy().ravel()
    np.testing.assert_allclose(found[:12], expected, atol=6e-5)


_SAMPLED = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_grid_sample.json").read_text())


@pytest.mark.parametrize("case", _SAMPLED["answers"], ids=lambda case: "-".join(map(str, list(case.values())[:4])))
def test_grid_samples_and_gradients_equal_mindspores(run, case):
    """Values, and gradients of images and grids, equal MindSpore's."""
    given = _SAMPLED["inputs"][str(case["axes"])]
    x = Tensor(np.array(given["input"], np.float32).reshape(given["shape"]))
    grid = Tensor(np.array(given["grid"], np.float32).reshape(given["grid_shape"]))

    def sample(x: Tensor, grid: Tensor) -> Tensor:
        return ops.grid_sample(x, grid, case["mode"], case["padding"], case["align"])

    np.testing.assert_allclose(run(sample)(x, grid).asnumpy().ravel(), case["value"], rtol=1e-5, atol=1e-5)
    for found, expected in zip(run(ms.grad(lambda a, b: sample(a, b).sum(), (0, 1)))(x, grid), case["gradients"]):
        np.testing.assert_allclose(found.asnumpy().ravel(), expected, rtol=1e-4, atol=3e-5)


@pytest.mark.parametrize("x, grid, settings, kind, message", [
    ((1, 1, 2, 2), (1, 2, 2, 3), {}, ValueError, r"got \(1, 1, 2, 2\) and \(1, 2, 2, 3\)"),
    ((1, 1, 2, 2), (2, 2, 2, 2), {}, ValueError, "grid_sample: expected images"),
    ((1, 1, 2, 2), (1, 2, 2, 2), {"mode": "bicubic"}, ValueError, "mode must be one of bilinear, nearest"),
    ((1, 1, 2, 2), (1, 2, 2, 2), {"padding_mode": "none"}, ValueError, "padding_mode must be one of zeros")])
def test_grids_that_do_not_fit_are_refused(x, grid, settings, kind, message):
    with pytest.raises(kind, match=message):
        ops.grid_sample(count(*x), count(*grid), **settings)


@pytest.mark.parametrize("args, expected", [
    ((2, 9.0), [[1, 2], [9, 4]]), ((-1, 9), [[1, 2], [3, 9]]), (((0, 1), 4), [[1, 4], [3, 4]])])
def test_itemset_gives_a_copy(run, args, expected):
    x = count(2, 2)
    assert numbers(run(lambda a: a.itemset(*args))(x)) == expected
    assert numbers(x) == [[1, 2], [3, 4]]
    assert numbers(Tensor([1.0]).itemset(4)) == [4] and numbers(Tensor([1, 1]).itemset(0, 4.7)) == [4, 1]


@pytest.mark.parametrize("args, kind", [((4.0,), IndexError), ((9, 1.0), IndexError), (((0,), 1.0), IndexError),
                                        (("a", 1.0), TypeError), ((), TypeError)])
def test_itemset_refuses_wrong_arguments(args, kind):
    with pytest.raises(kind, match="itemset: "):
        count(2, 2).itemset(*args)


def test_a_parameter_takes_another_dtype():
    """A compiled function is compiled again for the new dtype."""
    p = Parameter(Tensor([1.5, 2.0]), name="w")
    scaled = ms.jit(lambda a: a * p)
    assert scaled(Tensor([1.0, 1.0])).dtype == ms.float32
    assert p.set_dtype(ms.float16) == ms.float16 == p.dtype
    assert scaled(Tensor([1.0, 1.0], ms.float16)).dtype == ms.float16 and numbers(p.value()) == [1.5, 2.0]


def test_the_value_of_a_parameter_is_a_tensor(run):
    """The tensor shares the parameter's memory and gradient; assigning to the tensor does not change the parameter."""
    p = Parameter(Tensor([1.5, 2.0]), name="w")
    value = p.value()
    assert str(value) == "[1.5 2. ]" and not isinstance(value, Parameter)
    value[0] = 9.0
    assert numbers(p) == [1.5, 2.0]
    gradients = run(ms.grad(lambda x: (x * p.value() * p.value()).sum(), None, [p]))(Tensor([1.0, 2.0]))
    assert numbers(gradients[0]) == [3.0, 8.0]


def test_containers_of_cells_are_true_if_they_are_not_empty():
    assert not nn.CellList() and not nn.SequentialCell() and nn.CellDict()
    assert nn.CellList([nn.ReLU()]) and nn.SequentialCell(nn.ReLU())


@pytest.mark.parametrize("call, expected", [
    (lambda x: ops.addn([x, x]), [2, 4]), (lambda x: ops.strided_slice(x, (0,), (2,), (2,)), [1]),
    (lambda x: ops.tensor_slice(x, (1,), (1,)), [2]), (lambda x: ops.t(x), [1, 2]),
    (lambda x: ops.t(x.reshape(1, 2)), [[1], [2]]), (lambda x: ops.inv(x), [1, 0.5]),
    (lambda x: ops.absolute(-x), [1, 2]), (lambda x: ops.floordiv(x, 2), [0, 1]),
    (lambda x: ops.floormod(x, 2), [1, 0]), (lambda x: ops.soft_shrink(x), [0.5, 1.5]),
    (lambda x: ops.is_floating_point(x), True),
    (lambda x: ops.dtype(x) == ms.float32, True), (lambda x: ops.make_range(1, 3), (1, 2)),
    (lambda x: ops.scalar_max(1, 2), 2), (lambda x: ops.SparseGatherV2()(x, Tensor([1, 0, 1]), 0), [2, 1, 2])])
def test_functions_of_older_programs_run(run, call, expected):
    assert numbers(run(call)(Tensor([1.0, 2.0]))) == expected


def test_bessel_functions_have_gradients(run):
    x = Tensor([-3.0, -0.5, 0.0, 0.5, 2.0, 20.0])
    first, second = ops.BesselI0(), ops.BesselI1()
    assert numbers(run(ms.grad(lambda a: first(a)))(x)) == numbers(second(x))
    np.testing.assert_allclose(numbers(first(x)), np.i0(x.asnumpy().astype("f8")), rtol=1e-6)
    np.testing.assert_allclose(numbers(run(ms.grad(ms.grad(ops.bessel_i0)))(x))[2], 0.5)


def test_a_users_primitive_may_declare_its_outputs():
    class Scaled(ops.PrimitiveWithInfer):
        @ops.prim_attr_register
        def __init__(self, factor: float, bias: float = 0.5) -> None:
            self.init_prim_io_names(inputs=["x"], outputs=["y"])

        def infer_shape(self, x: Any) -> Any:
            return x

        def infer_dtype(self, x: Any) -> Any:
            return x

        def __call__(self, x: Any) -> Any:
            return x * self.factor + self.bias

    scaled = Scaled(2.0)
    assert repr(scaled) == "Prim[Scaled]<factor=2.0, bias=0.5>" and scaled.name == scaled.instance_name == "Scaled"
    assert scaled.attrs["input_names"] == ["x"] and scaled.attrs["output_names"] == ["y"]
    assert repr(scaled.add_prim_attr("kind", 3)) == "Prim[Scaled]<factor=2.0, bias=0.5, kind=3>"
    assert repr(scaled.del_prim_attr("kind").del_prim_attr("kind")) == "Prim[Scaled]<factor=2.0, bias=0.5>"
    assert scaled.set_prim_instance_name("mine").instance_name == "mine"
    assert scaled.__infer__({"shape": (2,), "dtype": ms.float32, "value": None}) == {
        "dtype": ms.float32, "shape": (2,), "value": None}
    assert numbers(ms.grad(lambda a: scaled(a))(count(2))) == [2, 2]


@pytest.mark.parametrize("make, kind, message", [
    (lambda: ops.BatchNorm(is_training=1), TypeError, "is_training must be a bool"),
    (lambda: ops.BatchNorm(epsilon=2.0), ValueError, "epsilon"),
    (lambda: ops.BatchNorm(data_format="X"), ValueError, "data_format"),
    (lambda: ops.ResizeBilinearV2(True, True), ValueError, "half_pixel_centers must be false when align_corners"),
    (lambda: ops.ResizeBilinearV2(1), TypeError, "align_corners must be a bool"),
    (lambda: ops.ResizeBilinearV2()(count(1, 2, 3), (2, 2)), ValueError, "rank must be equal to 4"),
    (lambda: ops.ResizeBilinearV2()(count(1, 1, 2, 3), (2,)), ValueError, "two lengths"),
    (lambda: nn.ParameterUpdate(3), TypeError, "'param' must be 'Parameter', but got int"),
])
def test_errors_of_wrong_calls(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


# ------------------------------------------------------------------------------------------------ Custom


def product(a: Any, b: Any) -> Any:
    assert type(a) is np.ndarray
    return a * b


def product_bprop(a: Any, b: Any, out: Any, dout: Any) -> Any:
    return dout * b, dout * a


def test_a_function_of_arrays_becomes_a_primitive(run):
    custom = ops.Custom(product, lambda a, b: a, lambda a, b: a, "pyfunc", bprop=product_bprop)
    x, y = count(2), count(2) + 2
    function = run(lambda a, b: custom(a, b) * 2)
    assert [numbers(function(x, y)) for _ in range(2)] == [[6, 16]] * 2 and numbers(function(y, y)) == [18, 32]
    assert numbers(run(ms.grad(lambda a, b: custom(a, b) * 2, (0, 1)))(x, y)) == ([6, 8], [2, 4])
    assert numbers(run(ms.grad(lambda a: ms.grad(lambda b: custom(b, b))(a)))(x)) == [2, 2]


@pytest.mark.parametrize("function, shape, dtype, expected", [
    (lambda a: (a + 1, a.astype("i4")), ((2,), (2,)), (ms.float32, ms.int32), ([2, 3], [1, 2])),
    (lambda a: a * 2, ((2,),), (ms.float32,), ([2, 4],)), (lambda a: a.sum(), (), ms.float32, 3),
    (lambda a: a.astype("f8") * 2, [2], ms.float32, [2, 4]),
    (lambda a: [a[:1]], lambda s: [s[0] - 1], lambda d: d, [1]),
    (lambda a: None, (), (), None)])
def test_results_of_custom_functions_become_tensors(run, function, shape, dtype, expected):
    seen: list[Any] = []

    def called(a: Any) -> Any:
        seen.append(a.tolist())
        return function(a)

    custom = ops.Custom(called, shape, dtype, "pyfunc", reg_info={"op_name": "inert"})
    assert numbers(run(lambda a: (custom(a), a * 1))(count(2))[0]) == expected and seen == [[1, 2]]


def test_custom_functions_take_scalars_and_may_lack_gradients(run):
    custom = ops.Custom(lambda a, by: a * by, lambda a, by: a, lambda a, by: a)
    assert numbers(run(lambda a: custom(a, 3))(count(2))) == [3, 6]
    with pytest.raises(NotDifferentiableError, match="Custom <lambda> has no gradient: give one, as bprop="):
        run(ms.grad(lambda a: custom(a, 3)))(count(2))


@pytest.mark.parametrize("function, shape, dtype, kind, message", [
    (lambda a: a[:1], (2,), ms.float32, ValueError, r"result 0 has shape \(1,\), out_shape says \(2,\)"),
    (lambda a: a, (2,), ms.int32, TypeError, "result 0 has dtype float32, out_dtype says int32"),
    (lambda a: (a, a), (2,), ms.float32, ValueError, "expected 1 results, the function returned 2"),
    (lambda a: 1 / 0, (2,), ms.float32, ZeroDivisionError, "division")])
def test_mistakes_of_custom_functions_are_named(run, function, shape, dtype, kind, message):
    with pytest.raises(kind, match=message):
        run(lambda a: ops.Custom(function, shape, dtype)(a))(count(2))


@pytest.mark.parametrize("make, kind, message", [
    (lambda: ops.Custom(3, (2,), ms.float32), TypeError, "Custom: func=3: expected a function"),
    (lambda: ops.Custom("./x.so:f", (2,), ms.float32, "aot"), ValueError, "func_type 'aot' is not available"),
    (lambda: ops.Custom(product, (2,), ms.float32, "pyfnc"), ValueError, "Did you mean 'pyfunc'"),
    (lambda: ops.Custom(product, None, ms.float32), TypeError, "'out_shape'"),
    (lambda: ops.Custom(product, (2,), None), TypeError, "'out_dtype'"),
    (lambda: ops.Custom(product, (2,), ms.float32, bprop=3), TypeError, "Custom: bprop=3: expected a function or None"),
    (lambda: ops.Custom(count(2)), ValueError, r"Custom\(func, out_shape, out_dtype, 'pyfunc'\); or the inputs and "
                                               r"op_type="),
    (lambda: ops.Custom(), ValueError, "op_type="),
])
def test_custom_refuses_wrong_arguments(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


# ------------------------------------------------------------------------------------ tensors and Parameters


def test_data_of_a_parameter_is_a_tensor_over_its_memory(run):
    p = Parameter(count(2), name="p")
    assert type(p.data) is Tensor and p.data is not p
    p.data[0] = 9.0
    assert numbers(p) == [9, 2]
    p.data = Tensor([3.0, 4.0])
    assert numbers(p) == [3, 4]
    assert numbers(run(ms.grad(lambda a: (p.data * p * a).sum(), 0, [p]))(count(2))) == ([9, 16], ([3, 8],))
    function = run(lambda a: p.data + a)
    assert numbers(function(count(2))) == [4, 6]
    p.set_data(count(2))
    assert numbers(function(count(2))) == [2, 4]
    with pytest.raises(ValueError, match=r"\(2,\)"):
        p.data = count(3)


def test_data_of_a_tensor_shares_its_memory(run):
    x = count(2)
    x.data[0] = 9.0
    assert numbers(x) == [9, 2]
    x.data = [5.0, 6.0]
    assert numbers(x) == [5, 6]
    assert numbers(run(ms.grad(lambda a: (a.data * a).sum()))(x)) == [5, 6]
    with pytest.raises(ValueError, match=r"expected shape \(2,\), got \(3,\)"):
        x.data = count(3)


def test_copied_parameters_share_no_memory(run):
    p = Parameter(count(2), name="p", requires_grad=False)
    for made in (p.copy(), copy.copy(p), copy.deepcopy(p)):
        assert type(made) is Parameter and (made.name, made.requires_grad) == ("p", False)
        made[0] = 9.0
        assert numbers(p) == [1, 2]
    p.requires_grad = True
    assert numbers(run(ms.grad(lambda a: p.copy() * a, 0, [p]))(count(2))) == ([1, 2], ([1, 2],))


def test_deepcopy_takes_memodict():
    for x in (count(2), Parameter(count(2), name="p")):
        copied = x.__deepcopy__(memodict={})
        assert type(copied) is type(x) and copied is not x and numbers(copied) == [1, 2]


def test_tensor_makes_tensors_or_returns_its_argument(run):
    x = count(2)
    assert ms.tensor(x) is x
    for made in (ms.tensor([1, 2], dtype=ms.float16), ms.tensor(x, ms.float16), ms.tensor(input_data=(1, 2),
                                                                                          dtype=ms.float16)):
        assert made.dtype == ms.float16 and numbers(made) == [1, 2]
    assert ms.tensor(shape=(2, 1), dtype=ms.int8).shape == (2, 1)
    assert run(ms.grad(lambda a: ms.tensor(a, dtype=ms.float64) * 3))(x).dtype == ms.float32
    assert numbers(run(ms.grad(lambda a: ms.tensor(a, dtype=ms.float64) * 3))(x)) == [3, 3]
    with pytest.raises(TypeError, match="expected values, or shape="):
        ms.tensor()


def test_tensors_become_numpy_arrays_by_numpy(run):
    for x in (count(2), Parameter(count(2), name="p")):
        assert type(x.numpy()) is np.ndarray and x.numpy().tolist() == [1, 2]
    assert numbers(run(lambda a: a * a.numpy().sum())(count(2))) == [3, 6]


def test_programs_may_set_attributes_of_tensors():
    x = count(2)
    x.tag = "mine"
    assert x.tag == "mine" and not hasattr(count(2), "tag") and not hasattr(x * 2, "tag")


def test_parameter_update_stores_a_value(run):
    net = nn.Dense(3, 2)
    update = nn.ParameterUpdate(net.weight)
    assert numbers(run(update)(count(2, 3))) == numbers(net.weight) == numbers(count(2, 3))
    with pytest.raises(ValueError, match=r"expected shape \(2, 3\)"):
        run(update)(count(3, 2))


@pytest.mark.parametrize("shape", [2, (2,), [2]])
def test_a_shape_that_contradicts_the_values_is_refused(shape):
    assert Tensor([1.0, 2.0], shape=shape).shape == Tensor(shape=shape, dtype=ms.float32).shape == (2,)
    with pytest.raises(ValueError, match=r"expected shape \(2,\), the values have \(3,\)"):
        Tensor([1.0, 2.0, 3.0], shape=shape)


def test_a_tensor_may_have_unknown_lengths():
    x = Tensor(shape=[None, 2], dtype=ms.float32)
    assert (x.shape, x.dtype, isinstance(x, Tensor)) == ((-1, 2), ms.float32, True)
    assert repr(x) == "Tensor(shape=[-1, 2], dtype=Float32, value=\n)"
    assert all((one.shape, one.dtype) == (x.shape, x.dtype) for one in (*copy.deepcopy([x]), x.copy()))
    net = nn.Dense(2, 3)
    net.set_inputs(x)
    assert net.compile(count(4, 2))(count(4, 2)).shape == (4, 3)
    for use in (lambda: x + 1, x.asnumpy, lambda: net(x)):
        with pytest.raises(ValueError, match=r"shape \(-1, 2\) has no values.*set_inputs"):
            use()
    assert Tensor(shape=None, dtype=ms.float32).shape == Tensor(dtype=ms.float32).shape == (-2,)
    with pytest.raises(ValueError, match="needs a dtype"):
        Tensor(shape=[None, 2])
    assert numbers(Tensor(shape=(2,), dtype=ms.int32)) == [0, 0]


@pytest.mark.parametrize("name, args, expected", [
    ("add_", (3.0,), [4, 5]), ("add_", (Tensor([1.0, 2.0]),), [2, 4]), ("sub_", (1.0,), [0, 1]), ("mul_", (3,), [3, 6]),
    ("div_", (2.0,), [0.5, 1]), ("fill_", (7.0,), [7, 7]), ("zero_", (), [0, 0]),
    ("copy_", (Tensor([5.0, 6.0]),), [5, 6]), ("clamp_", (1.5, 3.0), [1.5, 2]), ("exp_", (), np.exp([1, 2])),
    ("masked_fill_", (Tensor([True, False]), 9.0), [9, 2])])
def test_in_place_methods_equal_an_assignment(run, name, args, expected):
    """A method gives the same values and gradients as an assignment to the whole tensor."""

    def function(a: Any) -> Any:
        b = a * 1
        assert getattr(b, name)(*args) is b
        return b

    np.testing.assert_allclose(numbers(run(function)(count(2))), expected, rtol=1e-6)

    def assigned(a: Any) -> Any:
        b = a * 1
        b[...] = {"add_": ops.add, "sub_": ops.sub, "mul_": ops.mul, "div_": ops.div, "exp_": ops.exp,
                  "clamp_": ops.clamp, "masked_fill_": ops.masked_fill}[name](b, *args)
        return b

    if name not in ("fill_", "zero_", "copy_"):
        assert numbers(run(ms.grad(function))(count(2))) == numbers(ms.grad(assigned)(count(2)))
    else:
        assert numbers(run(ms.grad(function))(count(2))) == [0, 0]
    x = count(2)
    assert x.add_(1.0, alpha=2) is x and numbers(x) == [3, 4]


# ---------------------------------------------------------------------------------------------------- Cells


class Slots(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(count(2), name="w")
        self.c = nn.ReLU()

    def construct(self, a: Any) -> Any:
        return a


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("name, value, kind", [
    ("w", nn.Tanh(), KeyError), ("c", Parameter(count(2), name="z"), KeyError),
    ("w", 3, TypeError), ("c", 3, TypeError), ("w", Parameter(count(2), name="z"), None), ("c", nn.Tanh(), None)])
def test_an_attribute_keeps_its_kind(empty, name, value, kind):
    """An attribute of a Parameter or Cell accepts only its kind, also if it is None; it is free once it is deleted."""
    cell = Slots()
    if empty:
        setattr(cell, name, None)
        assert getattr(cell, name) is None
    if kind is None:
        setattr(cell, name, value)
        assert getattr(cell, name) is value
        return
    with pytest.raises(kind, match=f"'{name}'"):
        setattr(cell, name, value)
    delattr(cell, name)
    setattr(cell, name, value)
    assert getattr(cell, name) is value


def test_names_of_children_may_have_a_dash():
    cell = Slots()
    setattr(cell, "a-b", nn.Dense(1, 1))
    assert [p.name for p in cell.get_parameters()] == ["w", "a-b.weight", "a-b.bias"]
    with pytest.raises(ValueError, match="a-b"):
        cell.update_parameters_name("a-b.")


def test_parameters_with_the_same_name_are_told_apart_by_path_or_refused():
    """Compiling raises an error; a call names them by their paths."""

    class Twins(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Parameter(count(2), name="same"), Parameter(count(2), name="same")

        def construct(self, x: Any) -> Any:
            return x * self.a * self.b

    with pytest.raises(ValueError, match=r"The value of b is Parameter .*its name 'same' already exists"):
        Twins().compile(count(2))
    net = Twins()
    with pytest.warns(UserWarning, match="a and b are both named 'same'"):
        assert numbers(net(count(2))) == [1, 8]
    assert [p.name for p in net.get_parameters()] == ["a", "b"]
    assert numbers(net.compile(count(2))(count(2))) == [1, 8]


def test_settings_without_effect_are_accepted():
    ms.set_context(jit_config={"jit_level": "O0"}, jit_level="O1", memory_optimize_level="O0")
    for level in ms.STRICT, ms.context.COMPATIBLE, ms.LAX:
        ms.set_context(jit_syntax_level=level)
    with pytest.raises(ValueError, match="Did you mean 'mode'"):
        ms.set_context(mod=1)


def test_context_is_the_module_of_both_libraries():
    from opreg import context

    class Net(nn.Cell):
        runs = 0

        def construct(self, x: Any) -> Any:
            Net.runs += 1
            return x * 2

    net = Net()
    context.set_context(mode=context.GRAPH_MODE)
    try:
        assert context.get_context("mode") == ms.get_context("mode") == ms.GRAPH_MODE
        assert numbers(net(count(2))) == numbers(net(count(2))) == [2, 4] and Net.runs == 1
    finally:
        context.set_context(mode=context.PYNATIVE_MODE)
    assert context.cpu(1) == ms.Context("cpu", 1) and context.current_context() == ms.cpu()
    assert {"set_context", "Context"} <= set(dir(context)) and not hasattr(context, "set_contex")


@pytest.mark.parametrize("name", ["get_grad", "grad", "jacfwd", "jacrev", "jvp", "value_and_grad", "vjp"])
def test_gradients_are_in_ops_too(name: str):
    assert getattr(ops, name) is getattr(ms, name)


def test_recompute_calls_once(run: Run):
    calls = []

    class Square(nn.Cell):
        def construct(self, x: Any, power: int = 2) -> Any:
            calls.append(1)
            return x ** power

    @contextlib.contextmanager
    def noting() -> Any:
        calls.append("in")
        yield
        calls.append("out")

    net = Square()
    cube = run(ms.grad(lambda x: ms.recompute(net, x, use_reentrant=False, power=3).sum()))
    assert numbers(cube(count(2))) == [3, 12]
    assert calls == [1]
    calls.clear()
    assert numbers(ms.recompute(net, count(2), context_fn=lambda: (noting(), noting()))) == [1, 4]
    assert calls == ["in", 1, "out"]
    with pytest.raises(TypeError, match="recompute: expected a Cell or a function, got int"):
        ms.recompute(3, count(2))


# --------------------------------------------------------------------------------- functions of several types


def chosen() -> Any:
    graph = ops.MultitypeFuncGraph("chosen")
    for i, names in enumerate([("Number", "Number"), ("Tensor", "Tensor"), ("Tuple", "Tensor"), ("Bool", "String"),
                               ("None", "Dictionary"), ("Function", "List"), (ms.int32, "Number")]):
        graph.register(*names)(lambda *args, i=i: i)
    return graph


@pytest.mark.parametrize("args, expected", [
    ((1, 2.5), 0), ((1.0, True), 0), ((count(2), count(1)), 1), ((Parameter(count(2)), count(1)), 1),
    (((count(2),), count(1)), 2), ((True, "a"), 3), ((None, {}), 4), ((len, []), 5), ((Tensor([1], ms.int32), 3), 6)])
def test_the_types_of_arguments_choose_a_body(args, expected):
    assert chosen()(*args) == expected


@pytest.mark.parametrize("args, kind, message", [
    ((count(2), 1), ValueError, r"chosen: cannot find fn match given args \(Tensor, int\); there are \(Number, Nu"),
    (([1], count(2)), ValueError, "cannot find fn"), ((1,), ValueError, "cannot find fn"),
    ((np.ones(2), count(2)), TypeError, "can not be numpy.ndarray")])
def test_arguments_without_a_matching_body_are_refused(args, kind, message):
    with pytest.raises(kind, match=message):
        chosen()(*args)


def test_bodies_with_misspelt_types_are_refused():
    with pytest.raises(ValueError, match="Did you mean 'Tensor'"):
        ops.MultitypeFuncGraph("f").register("Tensr")
    with pytest.raises(TypeError, match="only support str or a dtype, but got 3"):
        ops.MultitypeFuncGraph("f").register(3)


@pytest.mark.parametrize("widths, value, expected", [
    (("Int32", "Int64", "Float32"), 1, 1), (("Int32", "Int64", "Float32"), np.int32(1), 0),
    (("Int32", "Float32"), 1, 0), (("Float16", "Float64", "Float32"), 2.5, 1), (("Float16", "UInt8"), 2.5, 0),
    (("Bool", "UInt8"), True, 0), (("String", "UInt8"), 3, 1)])
def test_a_multitype_graph_chooses_by_the_type_of_a_scalar(widths, value, expected):
    graph = ops.MultitypeFuncGraph("widths")
    for i, name in enumerate(widths):
        graph.register(name)(lambda value, i=i: i)
    assert graph(value) == ms.jit(lambda: graph(value))() == expected
    for wrong in ("text", count(2)) if "String" not in widths else (2.5,):
        with pytest.raises(ValueError, match="cannot find fn"):
            graph(wrong)


def test_gradients_scaled_as_training_scripts_do(run):
    scale = ops.MultitypeFuncGraph("scale")

    @scale.register("Tensor", "Tensor")
    def scale_tensor(by: Any, g: Any) -> Any:
        return g * ops.Reciprocal()(by)

    mapped, by = ops.HyperMap(), Tensor(2.0)
    found = run(lambda a, b: mapped(ops.partial(scale, by), (a, [b, (a,)])))(count(2), count(1))
    assert numbers(found) == ([0.5, 1], ([0.5], ([0.5, 1],)))
    square = ops.HyperMap(lambda a, b: a * b)
    assert numbers(run(lambda a: square((a, a), [a, a + 1]))(count(2))) == ([1, 4], [2, 6])
    assert ops.Map(len)(["a", "bc"]) == (1, 2) and ops.Map()(len, [(1, 2)]) == (2,)
    for wrong in (lambda: square((1, 2), (1,)), lambda: ops.Map(len)(), lambda: ops.HyperMap(3)):
        with pytest.raises((TypeError, ValueError), match=r"lengths: 2, 1|no inputs to map|expected a function"):
            wrong()


# ------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize("layer, x, message", [
    (nn.Dense(3, 2), count(2, 4), "Dense: x has 4 features in axis -1 (shape (2, 4)), Dense takes 3"),
    (nn.Dense(3, 2), Tensor(1.0), "Dense: expected at least one axis, 3 features in axis -1, got the shape ()"),
    (nn.Dense(3, 2), None, "Dense: x must be a Tensor, got NoneType"),
    (nn.Dense(3, 2), count(1, 3).astype(ms.float64),
     "Dense: an input is of ms.float64, the parameters are of ms.float32: convert one, as with x.astype(ms.float32)"),
    (nn.Dense(3, 2), count(1, 3).astype(ms.int32),
     "Dense: an input is of ms.int32, the parameters are of ms.float32: convert one, as with x.astype(ms.float32)"),
    (nn.SequentialCell(nn.ReLU(), nn.Dense(5, 2)), count(2, 3),
     "SequentialCell.1: x has 3 features in axis -1 (shape (2, 3)), Dense takes 5"),
    (nn.Conv1d(3, 2, 3), count(1, 4, 8), "Conv1d: x has 4 channels in axis 1 (shape (1, 4, 8)), Conv1d takes 3"),
    (nn.Conv2d(3, 2, 3), count(1, 4, 8, 8), "Conv2d: x has 4 channels in axis 1 (shape (1, 4, 8, 8)), Conv2d takes 3"),
    (nn.Conv2d(3, 2, 3), count(3, 8, 8), "Conv2d: expected 4 axes, 3 channels in axis 1, got the shape (3, 8, 8)"),
    (nn.Conv3d(3, 2, 3), count(1, 4, 3, 3, 3), "Conv3d takes 3"),
    (nn.Conv2dTranspose(3, 2, 3), count(1, 4, 8, 8), "Conv2dTranspose takes 3"),
    (nn.LSTM(3, 2), count(5, 1, 4), "LSTM: expected 3 axes, 3 inputs in the last, got the shape (5, 1, 4)"),
    (nn.RNNCell(3, 2), count(1, 4), "RNNCell: expected x of shape (batch, 3), got (1, 4)"),
    (nn.BatchNorm2d(3), count(1, 4, 2, 2), "BatchNorm2d: expected 4 axes, 3 channels in axis 1"),
    (nn.LayerNorm((3,)), count(2, 4), "LayerNorm: x has 4 numbers in axis -1 (shape (2, 4)), LayerNorm takes 3"),
    (nn.GroupNorm(2, 4), count(1, 6, 2, 2), "GroupNorm: expected 4 channels in the second axis"),
    (nn.MultiheadAttention(4, 2), count(2, 1, 6), "MultiheadAttention: expected 2 or 3 axes, 4 features in the last"),
    (nn.PReLU(3), count(1, 4, 2, 2), "PReLU: expected 3 channels in the second axis")])
def test_wrong_inputs_are_to_blame_and_not_weights(run, layer, x, message):
    given = {nn.MultiheadAttention: (x, x, x), nn.RNNCell: (x, count(1, 2))}.get(type(layer), (x,))
    if x is None:
        given = (None,)
    for hooked in (False, True):
        handle = layer.register_forward_hook(lambda *_: None) if hooked else None
        with pytest.raises((TypeError, ValueError)) as caught:
            run(layer)(*given)
        assert message in str(caught.value) and "weight: expected" not in str(caught.value)
        if handle is not None:
            handle.remove()


def test_an_error_of_an_inner_cell_does_not_name_the_outer_one():
    """An error of an inner Cell, or with another cause, keeps its message."""

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.inner = Parameter(count(2), name="w"), nn.Dense(3, 2)

        def construct(self, x: Any) -> Any:
            return self.inner(count(2, 3)) + count(5)

    with pytest.raises(ValueError, match="do not broadcast"):
        Outer()(count(2).astype(ms.float64))
    with pytest.raises(ValueError, match="spans 3 positions"):
        nn.Conv2d(3, 2, 3, pad_mode="valid")(count(1, 3, 2, 2))


# ------------------------------------------------------------------------------------------------- settings


def test_settings_of_the_compiler_are_stored():
    assert ms.JitConfig(jit_level="O1", extra=2).jit_config_dict["extra"] == 2
    assert ms.lazy_inline(len)("ab") == ms.lazy_inline(policy="front")(len)("ab") == 2
    assert ops.constexpr(check=False)(len)("ab") == ops.constexpr(len)("ab") == 2
    assert ops.add_flags(nn.Dense(2, 2), predict=True).get_flags()["predict"]
    ms.set_device("CPU")
    ms.set_deterministic(False)
    for wrong, kind in ((lambda: ms.JitConfig("O9"), ValueError), (lambda: ms.set_device("NPU"), ValueError),
                        (lambda: ms.set_deterministic("ON"), TypeError),
                        (lambda: ms.lazy_inline(policy="back"), ValueError),
                        (lambda: ms.jit_class(len), TypeError), (lambda: ms.from_numpy([1]), TypeError)):
        with pytest.raises(kind):
            wrong()


def test_from_numpy_shares_the_memory_of_the_array():
    array = np.ones(2, np.float32)
    shared = ms.from_numpy(array)
    also = Tensor.from_numpy(array)
    array[0] = 5.0
    assert numbers(shared) == numbers(also) == [5, 1] and ms.is_tensor(shared) and not ms.is_tensor(array)


def test_clip_by_global_norm_uses_one_norm_of_all_tensors(run):
    found = run(lambda a, b: ops.clip_by_global_norm([a, b], 1.0))(Tensor([3.0]), Tensor([4.0]))
    np.testing.assert_allclose(numbers(found), [[0.6], [0.8]], rtol=1e-6)
    assert numbers(ops.clip_by_global_norm(Tensor([0.5]), 1.0)) == [0.5]
    with pytest.raises(ValueError, match="use_norm"):
        ops.clip_by_global_norm([Tensor([3.0])], 1.0, 2.0)


@pytest.mark.parametrize("given, expected", [
    (Tensor([2.5, -1.5, 0.4]), [2.0, -2.0, 0.0]), (Tensor(2.6), 3.0), (Tensor([[7]], ms.int32), [[7]])])
def test_round_gives_a_tensor(run: Run, given: Tensor, expected: Any) -> None:
    """The tensor has the same dtype and shape; with a count of digits, ``round`` gives a Python number."""
    rounded = run(lambda a: round(a))(given)
    assert isinstance(rounded, Tensor) and rounded.dtype == given.dtype and numbers(rounded) == expected
    assert run(lambda a: round(a, 1))(Tensor(2.64)) == 2.6


def test_deep_copies_are_apart_and_have_the_gradient_of_the_original(run):
    def changed(x):
        one, (two, named) = copy.deepcopy(x), copy.deepcopy([x, {"a": x}])
        one[0], two[1] = 5.0, 7.0
        return x * 1.0, one, two, named["a"]

    assert numbers(run(changed)(count(3))) == ([1, 2, 3], [5, 2, 3], [1, 7, 3], [1, 7, 3])
    assert numbers(run(ms.grad(lambda x: copy.deepcopy(x) * x))(count(3))) == [2, 4, 6]


#: Functions in which a list or tuple of tensors is an operand.
OPERANDS: dict[str, Callable[[Any, Any], Any]] = {
    "tuple": lambda x, y: (x + (y,)) * x, "reflected": lambda x, y: (y,) - x * x,
    "elements": lambda x, y: x * [y[0], y[1]], "numbers beside tensors": lambda x, y: x / [y[0], 2.0],
    "nested": lambda x, y: x * [[y[0], 1.0], [y[1], y[0]]], "function": lambda x, y: ops.mul([x], y),
    "maximum": lambda x, y: ops.maximum(x, (y,)), "mint": lambda x, y: ms.mint.mul([x, y], y)}


@pytest.mark.parametrize("name", OPERANDS)
def test_gradients_pass_to_tensors_in_operands(run, name):
    x, y = Tensor([1.5, -2.0]), Tensor([0.5, 3.0])
    function = OPERANDS[name]
    found = run(ms.grad(lambda x, y: function(x, y).sum(), (0, 1)))(x, y)
    for i, gradient in enumerate(found):
        for j in range(2):
            step = np.eye(2)[j] * 1e-2
            high, low = (function(*[a + Tensor(sign * step, ms.float32) if k == i else a for k, a in enumerate((x, y))])
                         .sum().item() for sign in (1, -1))
            assert gradient[j].item() == pytest.approx((high - low) / 2e-2, abs=2e-2)


def test_gradients_pass_to_tensors_in_a_stored_list(run):
    def stored(x, y):
        z = x * 1.0
        z[0:2] = [y[1], 2.0]
        return (z * x).sum()

    assert numbers(run(ms.grad(stored, (0, 1)))(count(3), Tensor([4.0, 5.0]))) == ([5, 2, 6], [0, 1])

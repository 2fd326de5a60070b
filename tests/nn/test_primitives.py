"""Primitives: creation, text, copies and errors; their values are tested in ``test_ops``."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import ops
from opreg.nn.ops import detection, layer_primitives, primitives
from tests.questions import of_each

X = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])


@of_each([
    ("MatMul()", "Prim[MatMul]<transpose_a=False, transpose_b=False>"),
    ("MatMul(transpose_b=True)", "Prim[MatMul]<transpose_a=False, transpose_b=True>"),
    ("ReLU()", "Prim[ReLU]"),
    ("ReLU6()", "Prim[ReLU6]"),
    ("ReduceSum()", "Prim[ReduceSum]<keep_dims=False, skip_mode=False>"),
    ("ReduceMean(True)", "Prim[ReduceMean]<keep_dims=True>"),
    ("Softmax()", "Prim[Softmax]<axis=(-1,)>"),
    ("LogSoftmax(0)", "Prim[LogSoftmax]<axis=0>"),
    ("Concat(1)", "Prim[Concat]<axis=1>"),
    ("Unstack()", "Prim[Unstack]<axis=0, num=None>"),
    ("Squeeze()", "Prim[Squeeze]<axis=()>"),
    ("Dropout2D(0.8)", "Prim[Dropout2D]"),
    ("L2Normalize()", "Prim[L2Normalize]<axis=[0], epsilon=0.0001>"),
    ("LRN()", "Prim[LRN]"),
    ("MaxPool()", "Prim[MaxPool]<kernel_size=(1, 1, 1, 1), strides=(1, 1, 1, 1), pad_mode=VALID, data_format=NCHW>"),
    ("SparseSoftmaxCrossEntropyWithLogits()", "Prim[SparseSoftmaxCrossEntropyWithLogits]<is_grad=False, sens=1.0>"),
    ("Sort()", "Prim[Sort]<axis=-1, descending=False>"),
    ("Elu()", "Prim[Elu]<alpha=1.0>"),
    ("TensorSummary()", "Prim[TensorSummary]<side_effect_io=True, channel_name=ms_tensor_summary>"),
    ("ScalarSummary()", "Prim[ScalarSummary]<side_effect_io=True, channel_name=ms_scalar_summary, "
                        "dyn_input_sizes=[-1, 1]>"),
    ("Greater()", "Prim[Greater]"),
])
def test_primitives_print_as_in_mindspore(text: str, shown: str) -> None:
    assert repr(eval(f"ops.{text}", {"ops": ops})) == shown


MADE = {"BroadcastTo": ((2, 2),), "ReverseV2": ([1],), "Roll": (1, 1), "Pad": (((0, 1), (0, 0)),),
        "Einsum": ("ij->ji",), "SpaceToDepth": (2,), "DepthToSpace": (2,), "Conv2D": (2, 3), "Conv3D": (2, 3),
        "Conv2DTranspose": (2, 3), "Conv2DBackpropInput": (2, 3), "AdaptiveAvgPool2D": (2,), "Primitive": ("Mine",),
        "PrimitiveWithInfer": ("Mine",), "PrimitiveWithCheck": ("Mine",), "ResizeNearestNeighbor": ((2, 2),),
        "ResizeBilinear": ((2, 2),),
        "IndexAdd": (0,), "InplaceAdd": (0,), "InplaceSub": (0,), "InplaceUpdate": ((0, 1),), "Bucketize": ([1.0],),
        "ChannelShuffle": (2,), "Cummax": (0,), "Cummin": (0,), "Mvlgamma": (2,), "Renorm": (2, 0, 1.0),
        "InTopK": (1,), "LpNorm": (0,),
        "ReverseSequence": (1,), "BoundingBoxDecode": ((9, 9),), "ROIAlign": (2, 2, 1.0)}
CLASSES = [name for module in (primitives, layer_primitives, detection) for name in module.__all__
           if inspect.isclass(getattr(module, name))]


@of_each(CLASSES)
def test_every_primitive_has_a_signature_a_copy_and_documentation(name: str) -> None:
    """Each class has a signature, documentation, a copy with its settings, and a place in ``ops``."""
    kind = getattr(ops, name)
    made = kind(*MADE.get(name, ()))
    assert isinstance(made, ops.Primitive)
    assert repr(copy.deepcopy(made)) == repr(made) == repr(made.clone())
    assert kind.__name__ in (name, "Add")
    assert inspect.signature(kind) is not None


class Net(ms.nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.matmul, self.relu, self.softmax = ops.MatMul(transpose_b=True), ops.ReLU(), ops.Softmax()

    def construct(self, x: Any) -> Any:
        return self.softmax(self.relu(self.matmul(x, x)))


def test_primitives_run_in_a_cell() -> None:
    """An eager, a compiled and a copied Cell give the same values and gradients."""
    net = Net()
    wanted, gradient = net(X).asnumpy(), ms.grad(net)(X).asnumpy()
    compiled = ms.jit(lambda x: net(x))
    np.testing.assert_allclose(compiled(X).asnumpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(ms.jit(ms.grad(net))(X).asnumpy(), gradient, atol=1e-6)
    np.testing.assert_allclose(copy.deepcopy(net)(X).asnumpy(), wanted)


def test_a_users_primitive_runs_and_prints() -> None:
    class Twice(ops.Primitive):
        """Two times the number."""

        def __init__(self) -> None:
            super().__init__("Twice")
            self.add_prim_attr("times", 2)

        def __call__(self, x: Any) -> Any:
            return x * 2

    assert repr(Twice()) == "Prim[Twice]<times=2>"
    np.testing.assert_array_equal(Twice()(X).asnumpy(), X.asnumpy() * 2)
    with pytest.raises(NotImplementedError, match="Mine"):
        ops.Primitive("Mine")(X)


@of_each([
    ("MatMul()(x[None], x)", ValueError, "two matrices"),
    ("MatMul()(x, y)", ValueError, "axes to sum over"),
    ("MatMul(1)", TypeError, "must be a bool"),
    ("MatMul(transpose_c=True)", ValueError, "transpose_a"),
    ("BatchMatMul()(x[0], x)", ValueError, "two axes"),
    ("Dropout2D(1.5)", ValueError, "from 0 to 1"),
    ("Dropout2D('x')", TypeError, "must be a float"),
    ("Dropout2D(0.5)(x)", ValueError, "expected 4 axes"),
    ("Dropout(0.0)", ValueError, "from 0 to 1"),
    ("Conv2D(3, 3)(x[None, None], x[None, None])", ValueError, "3 filters"),
    ("Conv2D(3, 3, data_format='NHWC')", ValueError, "channels second"),
    ("MaxPool(2, pad_mode='pad')(x[None, None])", ValueError, "same or valid"),
    ("Split(0, 3)(x)", ValueError, "equal parts"),
    ("MirrorPad('CONSTANT')(x, ((1, 1), (1, 1)))", ValueError, "REFLECT"),
    ("StridedSlice(ellipsis_mask=1)(x, (0,), (1,), (1,))", ValueError, "not available"),
    ("SoftmaxCrossEntropyWithLogits()(x, y)", ValueError, "one shape"),
    ("BroadcastTo()", ValueError, "shape"),
])
def test_wrong_arguments_of_primitives_raise_errors(text: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        eval(f"ops.{text}", {"ops": ops, "x": X, "y": ms.Tensor([[1.0, 2.0, 3.0]])})


@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("compiled", [False, True])
def test_dropout2d_drops_whole_channels(keep: float, compiled: bool) -> None:
    """Whole channels are dropped, the others are divided by the probability; the mask has the full shape."""
    drop = ops.Dropout2D(keep)
    image = ms.Tensor(np.arange(1.0, 1 + 40 * 30 * 4).reshape(40, 30, 2, 2).astype("f4"))
    out, mask = (ms.jit(lambda x: drop(x)) if compiled else drop)(image)
    assert mask.dtype == ms.bool_
    assert mask.shape == image.shape
    kept = mask.asnumpy()
    assert (kept == kept[:, :, :1, :1]).all()
    assert kept.mean() == pytest.approx(keep, abs=0.06)
    np.testing.assert_allclose(out.asnumpy(), np.where(kept, image.asnumpy() / (keep or 1), 0), rtol=1e-6)


def test_assigning_primitives_change_a_parameter() -> None:
    weight = ms.Parameter(ms.Tensor([1.0]), name="w")
    add = ms.jit(lambda x: ops.AssignAdd()(weight, x))
    add(ms.Tensor([2.0]))
    add(ms.Tensor([2.0]))
    ops.AssignSub()(weight, ms.Tensor([1.0]))
    ops.Assign()(weight, weight * 2)
    assert weight.asnumpy().tolist() == [8.0]


#: A tensor as ``Print`` shows it.
PRINTED = "Tensor(shape=[1], dtype=Float32, value= [ {:.8e}])\n"


def test_print_prints_in_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    """A compiled function prints in every run, too."""
    show = ms.jit(lambda x: ops.Print()("value:", x) * 2)
    ops.Print()(ms.Tensor([1.0]))
    show(ms.Tensor([2.0]))
    show(ms.Tensor([3.0]))
    assert capsys.readouterr().out == "".join([PRINTED.format(1), "value:\n", PRINTED.format(2), "value:\n",
                                               PRINTED.format(3)])


@pytest.mark.parametrize("kind", ["Scalar", "Image", "Tensor", "Histogram"])
@pytest.mark.parametrize("run", [lambda function: function, ms.jit])
def test_summaries_do_not_change_values_or_gradients(run: Any, kind: str) -> None:
    summary = getattr(ops, f"{kind}Summary")()

    def function(x: Any) -> Any:
        assert summary("x", x) is None
        return x * x

    assert run(ms.grad(function))(ms.Tensor([3.0])).asnumpy().tolist() == [6.0]
    with pytest.raises(TypeError, match="the name must be text, got int"):
        summary(3, ms.Tensor([3.0]))


def test_print_runs_even_if_its_result_is_unread(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        y = x + 1
        ops.Print()(x * 2)
        return y

    shown, differentiated = ms.jit(function), ms.jit(ms.grad(function))
    for _ in range(2):
        shown(ms.Tensor([1.0]))
        differentiated(ms.Tensor([3.0]))
        ms.grad(shown)(ms.Tensor([5.0]))
    assert capsys.readouterr().out == "".join(map(PRINTED.format, (2, 6, 10))) * 2


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("text, wanted", [
    ("ScatterUpdate()(p, [1], [[8.0, 9.0]])", [[1, 2], [8, 9]]),
    ("ScatterAdd()(p, [1, 1], [[8.0, 9.0], [1.0, 1.0]])", [[1, 2], [12, 14]]),
    ("ScatterMul()(p, [0], [[2.0, 3.0]])", [[2, 6], [3, 4]]),
    ("ScatterMax()(p, [0, 1], [[2.0, 1.0], [9.0, 1.0]])", [[2, 2], [9, 4]]),
    ("ScatterNdUpdate()(p, [[0, 1], [1, 0]], [8.0, 9.0])", [[1, 8], [9, 4]]),
    ("ScatterNdSub()(p, [[0, 1], [0, 1]], [1.0, 2.0])", [[1, -1], [3, 4]]),
])
def test_scalars_are_assigned_to_a_parameter_in_place(text: str, wanted: Any, compiled: bool) -> None:
    """The parameter is written in place, and is the result."""
    p = ms.Parameter(X.copy(), name="p")
    put = ms.jit(lambda: eval(f"ops.{text}", {"ops": ops, "p": p})) if compiled else \
        lambda: eval(f"ops.{text}", {"ops": ops, "p": p})
    assert put().asnumpy().tolist() == p.asnumpy().tolist() == wanted


@of_each([
    ("InvertPermutation()((0, 0))", ValueError, "expected a permutation"),
    ("DiagPart()(ms.Tensor([[1.0, 2.0]]))", ValueError, "half of the axes"),
    ("cholesky(ms.Tensor([[1.0, 2.0]]))", ValueError, "square matrices"),
    ("cholesky_solve(x, ops.ones((3, 3)))", ValueError, "as long as the matrices"),
    ("block_diag(ops.ones((1, 1, 1)))", ValueError, "two axes at most"),
    ("cov(ops.ones((1, 1, 1)))", ValueError, "one or two axes"),
    ("diag_embed(x, 0, 1, 1)", ValueError, "both 1"),
    ("select_scatter(x, x, 0, 1)", ValueError, "expected src of shape"),
    ("diagonal_scatter(x, x)", ValueError, "expected src of shape"),
    ("reverse_sequence(x, ms.Tensor([1, 1]), 1, 1)", ValueError, "both 1"),
    ("combinations(x)", ValueError, "one axis"),
    ("histc(x, 0)", ValueError, "at least one bin"),
    ("affine_grid(x, (1, 1, 2, 2))", ValueError, "expected theta of shape"),
    ("iou(x, x)", ValueError, "boxes of four numbers"),
    ("iou(x, x, 'area')", ValueError, "'iou' or 'iof'"),
    ("gumbel_softmax(x, 0)", ValueError, "above 0"),
    ("gcd(x, x)", ValueError, "integers"),
])
def test_wrong_arguments_of_functions_are_refused(text: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        eval(f"ops.{text}", {"ops": ops, "x": X, "ms": ms})


def test_samples_of_classes_have_gradients() -> None:
    """The gradient of hard samples is that of the soft ones; each call draws another sample."""
    soft, hard = ops.gumbel_softmax(X, 0.5), ops.gumbel_softmax(X, 0.5, True)
    np.testing.assert_allclose(soft.sum(1).asnumpy(), 1.0, rtol=1e-6)
    assert sorted(hard.asnumpy().round(5).ravel().tolist()) == [0, 0, 1, 1]
    gradient = ms.grad(lambda x: (ops.gumbel_softmax(x, 1.0, True) * ms.Tensor([1.0, 3.0])).sum())(X).asnumpy()
    np.testing.assert_allclose(gradient.sum(1), 0.0, atol=1e-6)
    assert (gradient != 0).all()


#: Expressions, and the values that MindSpore 2.10 gives.
CUBE = ms.Tensor(np.arange(8.0, dtype=np.float32).reshape((1, 1, 2, 2, 2)))
COLORS = ms.Tensor([[0.1, 0.4, 0.2], [0.9, 0.3, 0.3], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [0.8, 0.1, 0.9]])
VALUES: dict[str, Any] = {
    "ops.AvgPool3D(2, 2, 'pad', 1, True, False, 3)(CUBE).sum()": 28 / 3,
    "ops.AvgPool3D(2, 2, pad_mode='pad', pad=1, count_include_pad=False)(CUBE)": [[[[[0, 1], [2, 3]],
                                                                                    [[4, 5], [6, 7]]]]],
    "ops.MaxPool3D(2, 2, 'pad', 1)(CUBE)": [[[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]],
    "ops.MaxPool3D(2, 2, 'pad', (1, 0, 1, 0, 1, 0), True)(CUBE)": [[[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]],
    "ops.AffineGrid(align_corners=True)(ms.Tensor([[[1., 0, 0], [0, 1, 0]]]), (1, 1, 1, 2))": [[[[-1, 0], [1, 0]]]],
    "ops.CholeskyInverse(upper=True)(ms.Tensor([[2., 0], [0, 2]]))": [[0.25, 0], [0, 0.25]],
    "ops.MatrixInverse(adjoint=True)(ms.Tensor([[2., 1], [0, 1]]))": [[0.5, 0], [-0.5, 1]],
    "ops.Range(maxlen=100)(0, 6, 2)": [0, 2, 4],
    "ops.ChannelShuffle(group=2)(ms.Tensor([[[[0.]], [[1.]], [[2.]], [[3.]]]])).reshape(4)": [0, 2, 1, 3],
    "ops.PopulationCount()(ms.Tensor([-1, 255, 3, 0], ms.int16))": [16, 8, 2, 0],
    "ops.UniqueWithPad()(ms.Tensor([1, 2, 2, 3, 5, 5], ms.int32), 8)[0]": [1, 2, 3, 5, 8, 8],
    "ms.Tensor([3, 1, 3, 2, 0]).unique_with_pad(7)[1]": [0, 1, 0, 2, 3],
    "ops.RGBToHSV()(COLORS)": [[7 / 18, 0.75, 0.4], [0, 2 / 3, 0.9], [0, 0, 0.5], [0, 0, 0], [0.8125, 8 / 9, 0.9]],
    "ops.HSVToRGB()(ops.RGBToHSV()(COLORS)) - COLORS": [[0, 0, 0]] * 5,
    "ops.MirrorPad('SYMMETRIC')(ms.Tensor([[1., 2.], [3., 4.]]), ((1, 0), (0, 2)))": [
        [1, 2, 2, 1], [1, 2, 2, 1], [3, 4, 4, 3]],
    "ops.isclose(INF, INF[::-1])": [False, True, False],
    "ops.isclose(INF, ms.Tensor([np.inf, 1., -np.inf]))": [True, True, True],
    "ops.isclose(ms.Tensor([1., np.nan]), ms.Tensor([np.inf, np.nan]), equal_nan=True)": [False, True],
    "len(ops.atleast_1d([1, 2]) + ops.atleast_2d([1, 2]))": 4,
}
INF = ms.Tensor([np.inf, 1.0, -np.inf])

#: Methods by PyTorch's arguments, which MindSpore 2.10 takes, too.
M = ms.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
VALUES |= {
    "M.transpose(0, 1)": [[1, 4], [2, 5], [3, 7]], "M.transpose((0, 1))": [[1, 2, 3], [4, 5, 7]],
    "M.select(1, 0)": [1, 4], "M.select(dim=0, index=-1)": [4, 5, 7], "M.select(M > 2, M * 0)": [[0, 0, 3], [4, 5, 7]],
    "M.add(M, alpha=2)": [[3, 6, 9], [12, 15, 21]], "M.sub(1, alpha=0.5)": [[0.5, 1.5, 2.5], [3.5, 4.5, 6.5]],
    "M.std(dim=1, correction=0)": [0.8164966, 1.2472191], "M.std(1, 1, True)": [[1], [1.5275252]],
    "M.median(dim=1)[0]": [2, 5], "M.median(1, keepdim=True)[1]": [[1], [1]],
    "M.repeat_interleave(2, dim=1)[0]": [1, 1, 2, 2, 3, 3], "M.index_select(dim=1, index=ms.Tensor([0]))": [[1], [4]],
    "M.scatter_add(ms.Tensor([[0, 0]]), ms.Tensor([5.]))": [[6, 2, 3], [4, 5, 7]],
    "M.scatter_add(indices=ms.Tensor([[0, 0]]), updates=ms.Tensor([5.]))": [[6, 2, 3], [4, 5, 7]],
    "M.scatter_add(1, ms.Tensor([[0], [1]]), ms.Tensor([[9.], [8.]]))": [[10, 2, 3], [4, 13, 7]],
    "M.index_add(0, ms.Tensor([1]), M[:1])": [[1, 2, 3], [5, 7, 10]],
    "M.index_add(ms.Tensor([1]), M[:1], 0)": [[1, 2, 3], [5, 7, 10]],
    "M.index_add(dim=1, index=ms.Tensor([0]), source=M[:, 1:2], alpha=2)": [[5, 2, 3], [14, 5, 7]],
    "M.gather(dim=1, index=ms.Tensor([[0], [2]]))": [[1], [7]], "M.gather(1, index=ms.Tensor([[0], [2]]))": [[1], [7]],
    "M[0].searchsorted(v=ms.Tensor([2.]), side='right')": [2], "M[0].searchsorted(ms.Tensor([2.]))": [1],
    "abs(M.T.qr(some=False)[0]).shape[1]": 3, "M.T.qr()[0].shape[1]": 2, "M.take(index=ms.Tensor([1, 5]))": [2, 7],
    "M.approximate_equal(other=M)": [[True] * 3] * 2, "M.isclose(x2=M)": [[True] * 3] * 2,
    "M.float_power(other=2)": [[1, 4, 9], [16, 25, 49]], "M.matmul(tensor2=M.T)": [[14, 35], [35, 90]],
    "M.remainder(divisor=2)": [[1, 0, 1], [0, 1, 1]], "M.sub(y=M)": [[0] * 3] * 2,
    "M[0].expand_as(x=M)": [[1, 2, 3]] * 2,
    "M.copy().copy_(src=M + 1, non_blocking=True)": [[2, 3, 4], [5, 6, 8]],
    "(7 in M, 6 in M, ms.Tensor(7.0) in M, M[1] in M, 'a' in M) == (True, False, True, True, False)": True,
    "ops.zeros((2, 3, 4)).flatten(0, 1).sum(0)": [0] * 4, "ops.zeros((2, 3, 4)).flatten(1, -1).sum(1)": [0] * 2,
    "M.copy().uniform_(5, 6) // 1": [[5] * 3] * 2, "abs(ops.zeros(1000).normal_(5, 0.1).mean() - 5) < 0.1": True,
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16"])
@pytest.mark.parametrize("call, wanted", [
    ("ops.ReduceSum()(x, 0)", [8, 5]), ("ops.ReduceProd()(x, 0)", [7, 6]), ("ops.reduce_sum(x, 0)", [8, 5]),
    ("ops.CumSum()(x, 0)", [[7, 2], [8, 5]]), ("ops.CumProd()(x, 0)", [[7, 2], [7, 6]]),
    ("ops.RealDiv()(x, 2)", [[3, 1], [0, 1]]), ("ops.tensor_div(x, 2)", [[3, 1], [0, 1]]),
])
def test_primitives_of_integers_keep_their_dtype(call: str, wanted: list, dtype: str) -> None:
    x = ms.Tensor([[7, 2], [1, 3]]).astype(getattr(ms, dtype))
    if "div" in call.lower() and dtype == "float16":
        wanted = [[3.5, 1], [0.5, 1.5]]
    names = {"ops": ops, "x": x}
    for run in (eval, ms.jit(eval)):
        found = run(call, names)
        assert found.dtype == x.dtype
        assert found.asnumpy().tolist() == wanted


@of_each(VALUES)
def test_values_of_further_settings_eagerly_and_compiled(text: str) -> None:
    given = {"ops": ops, "ms": ms, "np": np, "CUBE": CUBE, "COLORS": COLORS, "INF": INF, "M": M}
    for run in (eval, ms.jit(eval)):
        found = run(text, given)
        np.testing.assert_allclose(found if isinstance(found, int) else found.asnumpy(), VALUES[text], 1e-5, 1e-6)


def test_optimizers_primitives_return_tensors() -> None:
    """The results are values, which later changes of the Parameter do not move."""
    weight, sums = (ms.Parameter(ms.Tensor([1.0]), name=name) for name in "ws")
    moved = ops.ApplyGradientDescent()(weight, 0.5, ms.Tensor([1.0]))
    both = ops.ApplyAdagrad()(weight, sums, 0.5, ms.Tensor([1.0]))
    assert [type(each) for each in (moved, *both)] == [ms.Tensor] * 3
    assert moved.asnumpy() == 0.5 and weight.asnumpy() == both[0].asnumpy() == pytest.approx(0.5 - 0.5 / 2 ** 0.5)


@pytest.mark.parametrize("kind, settings", [("MaxPool3D", {"pad_list": 1}), ("AvgPool3D", {"pad": 1})])
def test_a_padding_needs_its_mode(kind: str, settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{kind}: pad_mode must be 'pad' for a padding of 1, got 'valid'"):
        getattr(ops, kind)(2, **settings)

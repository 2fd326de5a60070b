"""Graphs as ONNX models: rows of every operator, compared with the package's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core.registry import get
from opreg.errors import ArgumentError, OpError
from opreg.symbol import Symbol, Variable
from tests import processes
from tests.questions import of_each
from tests.rows import Row, all_rows

onnx = pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator  # noqa: E402  the package may be missing

from opreg.onnx import export_model, import_model, to_model  # noqa: E402

#: Operators that ONNX lacks, and whose kernels cannot be traced.
UNSAID = frozenset([
    "_attention_dropout", "_sparse_retain",
    "AllGather", "AllReduce", "AlltoAll", "Broadcast", "ReduceScatter", "CTCLoss", "Correlation",
    "_boolean_mask_like", "_contrib_PSROIPooling", "_contrib_RROIAlign",
    "_contrib_calibrate_entropy", "_contrib_count_sketch", "_cvcopyMakeBorder", "_cvimresize", "_image_resize",
    "_linalg_gelqf", "_linalg_syevd", "_normalize_moments", "_normalize_scale",
    "lamb_update_phase2", "multi_sgd_update", "preloaded_multi_sgd_update", "sgd_update",
    "signsgd_update", "_arctan2", "_copysign", "_kept_by_deletion", "_npi_arctan2", "_npi_arctan2_scalar",
    "_npi_bincount", "_npi_copysign", "_npi_copysign_scalar", "_npi_eig", "_npi_eigh", "_npi_eigvals", "_npi_eigvalsh",
    "_npi_lcm", "_npi_lcm_scalar", "_npi_percentile", "_npi_pinv", "_npi_pinv_scalar_rcond", "_npi_rarctan2_scalar",
    "_npi_rcopysign_scalar", "_npi_solve", "_npi_svd", "_npi_tensorsolve", "_npx_constraint_check",
])
#: Rows of other operators that are refused, since ONNX lacks their settings.
PARTLY = frozenset(["RNN", "_contrib_ROIAlign", "_linalg_gemm2", "_np_max", "_np_min", "_npi_around",
                    "_npi_bitwise_not", "_npi_norm", "_subscript"])
#: Rows that the evaluator computes in another way than ONNX says: groups of transposed convolutions, windows of padding
#: alone, logarithms of softmax from its exponentials, activations and lengths of recurrent layers, elements of many
#: rows; it has no pooling of regions. A query of ONNX's attention that sees no key gives zeros, and NaN here.
EVALUATOR = ("Deconvolution-groups", "Pooling-nan", "log_softmax-large", "RNN-rnn_relu", "RNN-rnn_tanh,2,True,[4,1]",
             "RNN-lstm,2,True,[4,1]", "RNN-gru,2,True,[4,1]", "_contrib_box_nms-many", "ROIPooling",
             "_contrib_Proposal-rpn_pre_nms_top_n=6000", "_contrib_MultiProposal-rpn_pre_nms_top_n=6000",
             "_contrib_scaled_dot_product_attention-many-seen")


def _asked(row: Row) -> bool:
    op = get(row.op)
    return (row.deterministic and not op.name.startswith("_backward") and not op.traits.mutates and op.where is None
            and (not op.traits.random or op.name in ("Dropout", "RNN", "_contrib_scaled_dot_product_attention")))


ROWS = [row for row in all_rows() if _asked(row)]


def _applied(row: Row) -> tuple[Symbol, dict[str, Any]]:
    """The operator applied to variables, and their arrays, in float32 if possible."""
    op = get(row.op)
    arrays = {}
    for i, value in enumerate(row.inputs):
        value = np.asarray(value)
        value = value.astype(np.float32) if value.dtype == np.float64 else value
        arrays[f"x{i}"] = mx.nd.array(value, dtype=value.dtype)
    symbol = op(*[Variable(name, shape=value.shape or None) for name, value in arrays.items()], **row.attrs)
    return symbol, arrays


def _ours(symbol: Symbol, arrays: dict[str, Any]) -> list[np.ndarray]:
    executor = symbol.bind(mx.cpu(), {name: arrays[name] for name in symbol.list_arguments()}, grad_req="null",
                           aux_states={name: arrays[name] for name in symbol.list_auxiliary_states()})
    return [out.asnumpy() for out in executor.forward(is_train=False)]


def _run(model: Any, arrays: dict[str, Any]) -> list[np.ndarray]:
    onnx.checker.check_model(model, full_check=True)
    given = {each.name: np.asarray(arrays[each.name].asnumpy()) for each in model.graph.input}
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, given)


def _same(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float = 2e-4) -> None:
    assert len(found) == len(wanted)
    for value, want in zip(found, wanted):
        assert value.dtype == want.dtype and value.shape == want.shape
        np.testing.assert_allclose(value.astype(np.float64), want.astype(np.float64), tolerance, 1e-5)


@of_each(ROWS, by=lambda row: row.op)
def test_rows_of_operators_are_exported_or_refused(row: Row) -> None:
    """Every row is exported with the same values, shapes and dtypes, or refused with the operator's name."""
    name = get(row.op).name
    try:
        symbol, arrays = _applied(row)
        wanted = _ours(symbol, arrays)
    except (OpError, TypeError, ValueError):
        pytest.skip("not of float32, or not in inference")
    order = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    model = _model_or_refusal(symbol, [arrays[each].asnumpy() for each in order])
    if isinstance(model, ArgumentError):
        assert name in UNSAID | PARTLY, str(model)
        assert f"operator {name}" in str(model)
    elif not str(row).startswith(EVALUATOR):
        _same(_run(model, arrays), wanted)


def _model_or_refusal(symbol: Symbol, examples: Sequence[np.ndarray]) -> Any:
    try:
        return to_model(symbol, *examples)
    except ArgumentError as error:
        return error


def test_operators_without_a_translation_are_listed() -> None:
    """The list names operators by their own names, not by aliases."""
    for name in UNSAID:
        assert get(name).name == name


# -------------------------------------------------------------------------------------------------- matrices


def _matrices(*stack: int, size: int) -> np.ndarray:
    """Matrices whose diagonals begin with zeros, so that rows have to be exchanged."""
    x = _floats(*stack, size, size)
    x[..., np.arange(size // 2), np.arange(size // 2)] = 0
    return x


@pytest.mark.parametrize("stack", [(), (3,), (2, 3)])
@pytest.mark.parametrize("name", ["inverse", "slogdet", "potrf", "potri"])
def test_stacks_of_matrices_are_exported(name: str, stack: tuple[int, ...]) -> None:
    """Stacks of square matrices of any rank and size; determinants beyond the range have a finite logarithm."""
    size = 60 if name == "slogdet" else 7
    x = _matrices(*stack, size=size) * (100 if name == "slogdet" else 1)
    if name.startswith("po"):
        x = x @ np.swapaxes(x, -1, -2) + np.eye(size, dtype=np.float32)
    symbol = getattr(mx.sym.linalg, name)(Variable("x"))
    dynamic = {"x": {0: "n"}} if stack else None
    model = to_model(symbol, x, dynamic=dynamic)
    for part in (x, x[:1]) if stack else (x,):
        held = {"x": mx.nd.array(part)}
        _same(_run(model, held), _ours(symbol, held), 1e-3)


def test_determinants_of_singular_matrices_are_exported() -> None:
    x = np.array([[[1, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 0]]], np.float32)
    sign, logarithm = _run(to_model(mx.sym.linalg.slogdet(Variable("x")), x), {"x": mx.nd.array(x)})
    assert sign.tolist() == [0, -1, 0] and logarithm.tolist() == [-np.inf, 0, -np.inf]


# ------------------------------------------------------------------------------------------------ lookups


@pytest.mark.parametrize("like", [True, False])
def test_values_are_added_at_coordinates(like: bool) -> None:
    """Values at equal coordinates are added, from opset 16 on; an array or a shape gives the size of the sum."""
    values, places = np.float32([[1, 2], [3, 4], [5, 6]]), np.array([[2, 0, 2]])
    arrays = {"x0": mx.nd.array(values), "x1": mx.nd.array(places, dtype="int64"), "x2": mx.nd.zeros((4, 2))}
    given = [Variable(name) for name in arrays][:3 if like else 2]
    symbol = mx.sym._backward_gather_nd(*given, **({} if like else {"shape": (4, 2)}))
    examples = [arrays[name].asnumpy() for name in symbol.list_arguments()]
    _same(_run(to_model(symbol, *examples), arrays), [np.float32([[3, 4], [0, 0], [6, 8], [0, 0]])])
    with pytest.raises(OpError, match="from opset 16 on, but the model is to have opset 15"):
        to_model(symbol, *examples, opset_version=15)


# ------------------------------------------------------------------------------------------- loops, branches


def _compared(symbol: Symbol, **arrays: Any) -> Any:
    held = {name: mx.nd.array(np.asarray(value), dtype=np.asarray(value).dtype) for name, value in arrays.items()}
    model = to_model(symbol, *[held[name].asnumpy() for name in symbol.list_arguments()])
    _same(_run(model, held), _ours(symbol, held))
    return model


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def test_a_loop_over_rows_is_a_scan() -> None:
    outs, state = mx.sym.contrib.foreach(lambda row, state: (row * Variable("w") + state, row + state),
                                         Variable("x"), Variable("s"))
    model = _compared(mx.sym.Group([outs, state]), x=_floats(4, 3), s=_floats(3), w=_floats(3))
    assert [node.op_type for node in model.graph.node].count("Scan") == 1


@pytest.mark.parametrize("end", [1, 4, 9])
def test_a_loop_with_a_condition_is_a_loop(end: int) -> None:
    outs, states = mx.sym.contrib.while_loop(
        lambda i, s: i < Variable("n"), lambda i, s: (s * 2, (i + 1, s + i)), (Variable("i"), Variable("s")),
        max_iterations=6)
    _compared(mx.sym.Group([outs, *states]), i=np.float32([0]), s=np.float32([1]), n=np.float32([end]))


@pytest.mark.parametrize("left", [1.0, 3.0])
def test_a_branch_is_an_if(left: float) -> None:
    chosen = mx.sym.contrib.cond(Variable("p") > Variable("q"), lambda: Variable("a") * 2,
                                 lambda: Variable("b") - Variable("a"))
    _compared(chosen, p=np.float32([left]), q=np.float32([2]), a=_floats(3), b=_floats(3))


@pytest.mark.parametrize("drawn, kind, words", [
    (mx.sym.random.uniform(2, 5, shape=(300, 4)), "RandomUniform", {"low": 2.0, "high": 5.0}),
    (mx.sym.random.normal(2, 5, shape=(300, 4), dtype="float64"), "RandomNormal", {"mean": 2.0, "scale": 5.0}),
    (mx.sym.random.uniform_like(Variable("x"), 2, 5), "RandomUniformLike", {"low": 2.0, "high": 5.0}),
    (mx.sym.random.normal_like(Variable("x"), 2, 5), "RandomNormalLike", {"mean": 2.0, "scale": 5.0}),
])
def test_random_operators_are_exported(drawn: Symbol, kind: str, words: dict[str, float]) -> None:
    """The node draws from the same distribution, with the same shape and dtype, and can be imported."""
    given = [_floats(300, 4)][:len(drawn.list_arguments())]
    model = to_model(drawn, *given)
    onnx.checker.check_model(model, full_check=True)
    (node,) = model.graph.node
    found = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert node.op_type == kind and words.items() <= found.items()
    out = mx.onnx.import_to_cell(model)(*map(mx.Tensor, given)).asnumpy()
    assert out.shape == (300, 4) and out.dtype == (np.float64 if kind == "RandomNormal" else np.float32)
    mean, spread = (3.5, 3 / 12 ** 0.5) if "Uniform" in kind else (2, 5)
    assert abs(out.mean() - mean) < spread / 4 and abs(out.std() / spread - 1) < 0.2


def _drawn(thing: Any, *given: np.ndarray, opset: int | None = None) -> tuple[Any, list[np.ndarray]]:
    """The exported model of a symbol or function that draws, and results of the evaluator and of its import."""
    model = to_model(thing, *given, opset_version=opset)
    onnx.checker.check_model(model, full_check=True)
    named = dict(zip([each.name for each in model.graph.input], given))
    found = mx.onnx.import_to_cell(model)(*map(mx.Tensor, given))
    found = found if isinstance(found, tuple) else (found,)
    theirs = [] if any(node.op_type == "Multinomial" for node in model.graph.node) else ReferenceEvaluator(model).run(
        None, named)  # the evaluator cannot draw it
    return model, [*theirs, *[each.asnumpy() for each in found]]


@pytest.mark.parametrize("drawn, given, mean, spread", [
    (mx.sym.random.exponential(2.0, shape=(400, 5)), [], 2.0, 2.0),
    (mx.sym.random.randint(-3, 5, shape=(400, 5)), [], 0.5, (63 / 12) ** 0.5),
    (mx.sym.random.exponential_like(Variable("x"), 0.5), [(400, 5)], 2.0, 2.0)])
def test_exported_distributions_made_of_uniform_values_have_their_moments(
        drawn: Symbol, given: list[Any], mean: float, spread: float) -> None:
    _, found = _drawn(drawn, *[_floats(*shape) for shape in given])
    dtype = np.int32 if mean == 0.5 else np.float32
    for out in found:
        assert out.shape == (400, 5) and out.dtype == dtype
        assert abs(out.mean() - mean) < spread / 4 and abs(out.std() / spread - 1) < 0.2
        assert out.min() >= (-3 if dtype == np.int32 else 0) and (dtype != np.int32 or out.max() == 4)


@pytest.mark.parametrize("name, parameters, mean, spread", [
    ("uniform", ([0, 4, 2], [2, 4, 1]), (1, 4, np.nan), (3 ** -0.5, 0, np.nan)),
    ("normal", ([0, 4, 2], [2, 0, -1]), (0, 4, np.nan), (2, 0, np.nan)),
    ("exponential", ([4, 0.5, -1],), (0.25, 2, np.nan), (0.25, 2, np.nan))])
def test_exported_sample_operators_draw_by_their_parameters(
        name: str, parameters: Sequence[Any], mean: Any, spread: Any) -> None:
    given = [np.float32(each) for each in parameters]
    op = getattr(mx.sym, f"sample_{name}")
    _, found = _drawn(op(*map(Variable, "ab"[:len(given)]), shape=(3000,)), *given)
    for out in found:
        assert out.shape == (3, 3000) and out.dtype == np.float32
        np.testing.assert_allclose(out.mean(1), mean, atol=0.2)
        np.testing.assert_allclose(out.std(1), spread, atol=0.2)


@pytest.mark.parametrize("shape", [(2, 4), (4,), (2, 1, 4)])
def test_sample_multinomial_is_exported_with_probabilities(shape: tuple[int, ...]) -> None:
    """A class with probability zero is not drawn, and the logarithms belong to the drawn classes."""
    chances = np.broadcast_to(np.float32([0.1, 0, 0.3, 0.2]), shape).copy()
    drawn = mx.sym.sample_multinomial(Variable("p"), shape=(600,), get_prob=True)
    model, (places, logs) = _drawn(drawn, chances)
    assert "Multinomial" in [node.op_type for node in model.graph.node]
    assert places.shape == logs.shape == (*shape[:-1], 600) and places.dtype == np.int32
    np.testing.assert_allclose(logs, np.log(np.float32([0.1, 1, 0.3, 0.2]))[places], rtol=1e-5)
    np.testing.assert_allclose([(places == i).mean() for i in range(4)], [1 / 6, 0, 1 / 2, 1 / 3], atol=0.12)


def test_rows_are_shuffled() -> None:
    x = _floats(40, 3)
    for out in _drawn(mx.sym.shuffle(Variable("x")), x)[1]:
        assert not np.array_equal(out, x)
        np.testing.assert_array_equal(out[np.lexsort(out.T)], x[np.lexsort(x.T)])


@pytest.mark.parametrize("words", [{}, {"axes": (1,)}, {"axes": (0, 2)}])
@pytest.mark.parametrize("p", [0.25, 0.5])
def test_dropout_is_exported_in_training_mode(words: dict[str, Any], p: float) -> None:
    """Dropout is exported in training mode; along ``axes`` the mask is the same."""
    x = np.ones((20, 120, 15), np.float32)
    model, found = _drawn(mx.sym.Dropout(Variable("x"), p=p, mode="always", **words), x)
    assert "Dropout" in [node.op_type for node in model.graph.node]
    for out in found:
        assert {float(each) for each in np.unique(out)} == {0.0, float(np.float32(1 / (1 - p)))}
        assert np.all(out == np.take(out, [0], words["axes"][0])) if len(words.get("axes", ())) == 1 else True
        assert 0.02 < (out == 0).mean() < 0.98
    with pytest.raises(ArgumentError, match="opset 12"):
        to_model(mx.sym.Dropout(Variable("x"), p=p, mode="always"), x, opset_version=11)


def test_attention_is_exported_as_attention() -> None:
    """Attention is one node from opset 23 on, also with shared heads; with dropout it is several."""
    q, k, v = _floats(2, 4, 5, 3), _floats(2, 2, 6, 3), _floats(2, 2, 6, 2)
    seen = _floats(5, 6) > 0
    seen[:, 0] = True
    names = [Variable(name) for name in "qkvm"]
    attention = mx.sym.contrib.scaled_dot_product_attention
    for words, given in (({}, (q, k, v)), ({"causal": True, "scale": 0.3}, (q, k, v)),
                         ({"use_mask": True}, (q, k, v, seen)), ({"use_mask": True}, (q, k, v, _floats(2, 1, 5, 6)))):
        symbol = attention(*names[:len(given)], **words)
        model = _compared(symbol, **dict(zip("qkvm", given)))
        assert [node.op_type for node in model.graph.node] == ["Attention"]
        model = to_model(symbol, *given, opset_version=22)
        assert "Attention" not in [node.op_type for node in model.graph.node]
    dropping = attention(*names[:3], p=0.5, mode="always")
    model, found = _drawn(dropping, q, k, v)
    assert "Dropout" in [node.op_type for node in model.graph.node]
    assert all(out.shape == (2, 4, 5, 2) for out in found)


@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
@pytest.mark.parametrize("kernel, stride, pad", [
    ((1,), (5,), (0,)), ((2, 3), (4, 4), (1, 2)), ((3, 3), (2, 2), (1, 1))])
def test_no_pooling_pads_by_a_whole_window(kind: str, kernel: tuple[int, ...], stride: tuple[int, ...],
                                           pad: tuple[int, ...]) -> None:
    """Runtimes refuse padding as long as a window, which rounding up might need."""
    symbol = mx.sym.Pooling(Variable("x"), kernel=kernel, stride=stride, pad=pad, pool_type=kind,
                            pooling_convention="full")
    arrays = {"x": mx.nd.array(_floats(1, 2, *[8] * len(kernel)))}
    model = to_model(symbol, arrays["x"].asnumpy())
    for node in model.graph.node:
        words = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        assert all(edge < size for edge, size in zip(words.get("pads", ()), 2 * words.get("kernel_shape", [])))
    _same(_run(model, arrays), _ours(symbol, arrays))


# -------------------------------------------------------------------------------------- dynamic dimensions


def _dense(data: Symbol) -> Symbol:
    return mx.sym.FullyConnected(data, num_hidden=3, name="fc")


_NETWORKS: list[tuple[str, Callable[[Symbol], Symbol], tuple[int, ...]]] = [
    ("dense", _dense, (2, 5)),
    ("flatten", lambda data: _dense(mx.sym.Flatten(data)), (2, 5, 2)),
    ("reshape", lambda data: mx.sym.reshape(data, shape=(-1, 4)), (2, 6, 2)),
    ("heads", lambda data: mx.sym.transpose(mx.sym.reshape(data, shape=(0, 0, 2, -1)), axes=(0, 2, 1, 3)), (2, 3, 4)),
    ("mean", lambda data: mx.sym.broadcast_sub(data, mx.sym.mean(data, axis=0, keepdims=True)), (2, 3)),
    ("mask", lambda data: mx.sym.ones_like(data) * mx.sym.broadcast_like(mx.sym.sum(data, axis=1, keepdims=True), data),
     (2, 3)),
    ("pool", lambda data: mx.sym.Pooling(mx.sym.Convolution(data, kernel=(3, 3), num_filter=2, name="conv"),
                                         kernel=(2, 2), stride=(2, 2), pool_type="max"), (2, 1, 8, 8)),
]


@pytest.mark.parametrize("name, network, shape", _NETWORKS, ids=[each[0] for each in _NETWORKS])
@pytest.mark.parametrize("batch", [1, 7])
def test_a_dynamic_first_axis_computes_other_batches(name: str, network: Callable[[Symbol], Symbol],
                                                     shape: tuple[int, ...], batch: int) -> None:
    symbol = network(Variable("data"))
    shapes = dict(zip(symbol.list_arguments(), symbol.infer_shape(data=shape)[0]))
    params = {each: mx.nd.array(_floats(*shapes[each])) for each in shapes if each != "data"}
    model = to_model(symbol, shape, params=params, dynamic=True)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    arrays = {"data": mx.nd.array(_floats(batch, *shape[1:])), **params}
    _same(_run(model, arrays), _ours(symbol, arrays))


def test_two_axes_may_be_dynamic() -> None:
    symbol = mx.sym.reshape(mx.sym.transpose(Variable("data"), axes=(1, 0, 2)), shape=(0, 0, 2, -1))
    model = to_model(symbol, (2, 3, 4), dynamic={"data": {0: "batch", 1: "length"}})
    arrays = {"data": mx.nd.array(_floats(5, 7, 4))}
    _same(_run(model, arrays), _ours(symbol, arrays))


def test_arithmetic_with_a_dynamic_length_is_refused() -> None:
    def centred(x: Any) -> Any:
        return x / x.shape[0]

    with pytest.raises(ArgumentError, match=r"operator _div_scalar, node .* computes with the length of a dynamic"):
        to_model(mx.jit(centred), (2, 3), dynamic=True)


@pytest.mark.parametrize("constant", [
    lambda length: np.full(3, length, np.float32), lambda length: np.ones((length, 1), np.float32)])
def test_a_constant_of_a_dynamic_length_is_refused(constant: Any) -> None:
    def scaled(x: Any) -> Any:
        return x * mx.Tensor(constant(x.shape[0]))

    with pytest.raises(ArgumentError, match=r"scaled makes a constant of shape .* of the length of a dynamic"):
        to_model(scaled, (2, 3), dynamic=True)


@pytest.mark.parametrize("name, key, dynamic", [
    ("columns", (slice(None), [2, 0, -1]), True), ("planes", (Ellipsis, [1, 1]), True), ("rows", ([1, 0],), False),
    ("a table of rows", (np.array([[0, 1], [1, 1]]),), False), ("pairs", ([1, 0], [2, -1]), False),
    ("a mask", (np.array([True, False]),), False), ("pairs behind a part", (slice(None), [0, 2], [1, 0]), False),
    ("part of columns", (slice(1, None), [2, 0]), False)])
def test_subscripts_are_exported(name: str, key: Any, dynamic: bool) -> None:
    model = to_model(mx.jit(lambda x: x[key] * 2), (2, 3, 4), dynamic=dynamic)
    for rows in (2, 5) if dynamic else (2,):
        x = _floats(rows, 3, 4)
        (found,) = _run(model, {model.graph.input[0].name: mx.nd.array(x)})
        np.testing.assert_allclose(found, np.asarray(x)[key] * 2, rtol=1e-6)


def test_a_branch_is_exported_for_all_lengths() -> None:
    """A branch is exported once for all lengths; a branch that computes with the length is refused."""
    def chosen(x: Any) -> Any:
        return mx.ops.cond(x.sum() > 0, lambda: x * 2, lambda: mx.ops.tanh(x))

    def shared(x: Any) -> Any:
        return mx.ops.cond(x.sum() > 0, lambda: x / x.shape[0], lambda: x)

    model = to_model(chosen, (2, 3), dynamic=True)
    for x in (np.ones((4, 3), np.float32), -np.ones((1, 3), np.float32)):
        (found,) = _run(model, {model.graph.input[0].name: mx.nd.array(x)})
        np.testing.assert_allclose(found, x * 2 if x.sum() > 0 else np.tanh(x), rtol=1e-6)
    with pytest.raises(ArgumentError, match="operator _cond computes with the length of a dynamic dimension"):
        to_model(shared, (2, 3), dynamic=True)


# --------------------------------------------------------------------------------------- MXNet's arguments


def test_mxnets_modules_for_onnx_are_found() -> None:
    """MXNet's modules for ONNX are there, from which scripts import."""
    assert mx.onnx.mx2onnx.export_model is mx.onnx.export_model is mx.contrib.onnx.export_model
    assert mx.contrib.onnx.onnx2mx.import_model is mx.onnx.import_model
    assert mx.contrib.onnx.onnx2mx.import_to_gluon is mx.onnx.import_to_gluon
    script = ("from opreg.contrib.onnx.onnx2mx.import_model import get_model_metadata, import_model\n"
              "from opreg.contrib.onnx.onnx2mx.import_to_gluon import import_to_gluon\n"
              "from opreg.onnx.mx2onnx._export_model import export_model\nimport opreg as mx\n"
              "assert import_model is mx.onnx.import_model and export_model is mx.onnx.mx2onnx.export_model\n"
              "assert (get_model_metadata, import_to_gluon) == (mx.onnx.get_model_metadata, mx.onnx.import_to_gluon)\n")
    done = processes.run(script)
    assert done.returncode == 0, done.stderr


def test_names_are_found_without_the_package_onnx() -> None:
    script = ("import sys\nsys.modules['onnx'] = None\nimport opreg as mx\n"
              "assert all(hasattr(mx.onnx, name) for name in mx.onnx.__all__)\n"
              "try:\n    mx.onnx.export_model(mx.sym.var('x'), {}, [(2,)])\n"
              "except mx.errors.ArgumentError as error:\n    print(error)\n")
    done = processes.run(script)
    assert done.stdout == "opreg.onnx needs the package onnx: pip install 'opreg[onnx]'\n", done.stderr


def test_export_model_takes_the_arguments_of_mxnet(tmp_path: Any) -> None:
    """Arguments are files or objects, and parameters in one dictionary or two; labels need no shape."""
    symbol = mx.sym.SoftmaxOutput(_dense(Variable("data")), name="softmax")
    weight, bias = mx.nd.array(_floats(3, 5)), mx.nd.array(_floats(3))
    symbol.save(str(tmp_path / "net-symbol.json"))
    mx.nd.save(str(tmp_path / "net-0000.params"), {"arg:fc_weight": weight, "arg:fc_bias": bias})
    file = str(tmp_path / "net.onnx")
    ways: list[tuple[Any, Any]] = [
        (str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params")),
        (symbol, {"fc_weight": weight, "fc_bias": bias}), (symbol, [{"fc_weight": weight, "fc_bias": bias}, {}])]
    for sym, params in ways:
        assert export_model(sym, params, [(2, 5)], np.float32, file) == file
        model = onnx.load(file)
        assert [each.name for each in model.graph.input] == ["data"]
        assert [each.name for each in model.graph.output] == ["softmax_output"]
        assert {each.name for each in model.graph.initializer} == {"fc_weight", "fc_bias"}
        data = mx.nd.array(_floats(2, 5))
        _same(_run(model, {"data": data}), [mx.nd.softmax(
            mx.nd.FullyConnected(data, weight, bias, num_hidden=3)).asnumpy()])


def test_export_model_takes_a_network_without_parameters(tmp_path: Any) -> None:
    """The file of parameters is empty, as Gluon's ``export`` writes it."""
    net = mx.gluon.nn.HybridLambda("relu")
    net.hybridize()
    net(mx.nd.ones((2, 3)))
    net.export(str(tmp_path / "net"))
    files = [str(tmp_path / name) for name in ("net-symbol.json", "net-0000.params", "net.onnx")]
    model = onnx.load(export_model(files[0], files[1], [(2, 3)], np.float32, files[2]))
    assert [node.op_type for node in model.graph.node] == ["Relu"]
    mx.nd.save(files[1], [mx.nd.ones(2)])
    with pytest.raises(ArgumentError, match="its arrays have no names"):
        export_model(files[0], files[1], [(2, 3)], np.float32, files[2])


@pytest.mark.parametrize("types, expected", [
    (np.float32, [1, 1]), ([np.float32, np.int64], [1, 7]), ((np.float64, np.float32), [11, 1])])
def test_export_model_takes_one_dtype_or_one_for_each_input(tmp_path: Any, types: Any, expected: list[int]) -> None:
    total = mx.sym.broadcast_add(*[mx.sym.cast(Variable(name), dtype="float64") for name in "ab"])
    file = export_model(total, {}, [(2, 3), (2, 3)], types, str(tmp_path / "a.onnx"))
    assert [value.type.tensor_type.elem_type for value in onnx.load(file).graph.input] == expected
    with pytest.raises(ArgumentError, match="in_types are 3 dtypes for 2 in_shapes"):
        export_model(total, {}, [(2, 3), (2, 3)], [np.float32] * 3, str(tmp_path / "b.onnx"))


def test_export_model_finds_the_dimensions_that_are_open(tmp_path: Any) -> None:
    file = str(tmp_path / "net.onnx")
    params = {"fc_weight": mx.nd.array(_floats(3, 10)), "fc_bias": mx.nd.array(_floats(3))}
    export_model(_dense(Variable("data")), params, [(1, 5, 2)], onnx_file_path=file, dynamic=True)
    dims = onnx.load(file).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 5, 2]
    export_model(_dense(Variable("data")), params, [(1, 5, 2)], onnx_file_path=file, dynamic=True,
                 dynamic_input_shapes=[("n", 5, 2)])
    dims = onnx.load(file).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["n", 5, 2]


def test_weights_are_stored_in_a_second_file_on_request(tmp_path: Any) -> None:
    weight = mx.nd.array(_floats(30, 50))
    symbol = mx.sym.FullyConnected(Variable("data"), num_hidden=30, no_bias=True, name="fc")
    file = str(tmp_path / "net.onnx")
    for _ in range(2):  # a file that is there is replaced
        mx.onnx.export(symbol, file, (2, 50), params={"fc_weight": weight}, external_data=True)
        assert (tmp_path / "net.onnx.data").stat().st_size == weight.size * 4
    data = mx.nd.array(_floats(2, 50))
    _same(_run(onnx.load(file), {"data": data}), [mx.nd.dot(data, weight, transpose_b=True).asnumpy()])


def test_large_weights_need_a_second_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large weights are written to a file beside the model, which ONNX's package, ONNX Runtime and opreg read; without
    a file the model is refused. The limit is small in this test, and 2 GiB otherwise."""
    from opreg.onnx.exporting import files

    monkeypatch.setattr(files, "EXTERNAL", 5000)
    x, file = Variable("x"), str(tmp_path / "net.onnx")
    params = {"w": mx.nd.array(_floats(50, 30)), "b": mx.nd.array(_floats(30), dtype="float16"),
              "v": mx.nd.array(_floats(30, 21), dtype="float16")}
    symbol = mx.sym.cast(mx.sym.dot(x, Variable("w")), "float16")
    symbol = mx.sym.dot(mx.sym.broadcast_add(symbol, Variable("b")), Variable("v"))
    with pytest.raises(ArgumentError, match="the weights take 7320 bytes, and a model in memory"):
        to_model(symbol, (2, 50), params=params)
    assert mx.onnx.export(symbol, file, (2, 50), params=params) == file
    held = onnx.load(file, load_external_data=False).graph.initializer
    assert {each.name: {entry.key: entry.value for entry in each.external_data} for each in held if each.external_data
            } == {"w": {"location": "net.onnx.data", "offset": "0", "length": "6000"},
                  "v": {"location": "net.onnx.data", "offset": "6016", "length": "1260"}}
    onnx.checker.check_model(file, full_check=True)
    wanted = _ours(symbol, {**params, "x": mx.nd.array(_floats(2, 50))})
    again, arguments, _ = import_model(file)
    _same(_ours(again, {**arguments, "x": mx.nd.array(_floats(2, 50))}), wanted)
    _same(_run(onnx.load(file), {"x": mx.nd.array(_floats(2, 50))}), wanted)


@pytest.mark.parametrize("wrong, said", [
    (lambda: to_model(mx.sym.relu(Variable("x")), (2,), opset_version=3), "opset_version=3: expected a number from 7"),
    (lambda: to_model(mx.sym.relu(Variable("x")), (2,), (3,)), "2 examples for 1 inputs, x"),
    (lambda: to_model(mx.sym.relu(Variable("data")), (2,), dynamic={"dta": {0: "n"}}), "Did you mean 'data'"),
    (lambda: to_model(3), "expected a Symbol, a Cell, a function of tensors or an executor, got 3"),
    (lambda: to_model(mx.sym.linalg.gelqf(Variable("x")), (2, 4)), "operator _linalg_gelqf, node "),
    (lambda: to_model(mx.sym.contrib.boolean_mask(Variable("x"), Variable("i")), (2, 4), (2,), opset_version=8),
     "ONNX has Compress from opset 9 on, but the model is to have opset 8"),
])
def test_mistakes_raise_errors_that_explain(wrong: Callable[[], Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        wrong()


# -------------------------------------------------------------------------------------- operators of users


@pytest.fixture
def operators() -> Any:
    """Users' operators: a traced one, one that runs as Python, and Props."""
    from opreg.operator import CustomOp, CustomOpProp, define, register

    @define(name="onnx_swish", traced=True)
    def swish(x: Any, *, beta: float = 1.0) -> Any:
        return x / (1 + np.exp(-beta * x))

    @define(name="onnx_python")
    def python(x: Any, *, factor: int = 2) -> Any:
        return np.asarray(x) * factor

    class Body(CustomOp):
        def __init__(self, factor: float):
            super().__init__()
            self.factor = factor

        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], in_data[0] * self.factor)

    class Plain(CustomOpProp):
        def __init__(self, factor: Any = 3.0):
            super().__init__()
            self.factor = float(factor)

        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> Any:
            return Body(self.factor)

    class Said(Plain):
        def to_onnx(self, g: Any, use: Any, x: Any) -> Any:
            return g("Mul", x, self.factor)

    register("onnx_plain")(Plain)
    register("onnx_said")(Said)
    return swish, python


def test_a_traced_operator_is_a_function_under_its_name(operators: Any) -> None:
    swish, _ = operators
    x = Variable("x")
    model = _compared(swish(swish(x, beta=2.0), beta=2.0) + swish(x), x=_floats(2, 3))
    assert [node.op_type for node in model.graph.node] == ["onnx_swish", "onnx_swish", "onnx_swish_2", "Add"]
    assert {each.domain for each in model.functions} == {"opreg"}
    assert [each.name for each in model.functions] == ["onnx_swish", "onnx_swish_2"]


@pytest.mark.parametrize("opset", [11, 15, 17, 21])
def test_a_loop_may_call_a_traced_operator(operators: Any, opset: int) -> None:
    """The operator's function is part of the model; the loop's body calls it, and nodes outside call it with other
    attributes."""
    swish, _ = operators
    zeros = mx.sym.zeros((4,))
    rows, _ = mx.sym.contrib.foreach(lambda row, s: (swish(row, beta=2.0) + s, s + 1), Variable("x"), zeros)
    arrays = {"x": mx.nd.array(_floats(3, 4))}
    model = to_model(swish(rows), (3, 4), opset_version=opset)
    onnx.checker.check_model(model, full_check=True)
    _same(_run(model, arrays), _ours(swish(rows), arrays))


def test_a_traced_operator_of_an_old_version_is_its_body(operators: Any) -> None:
    symbol = operators[0](Variable("x"))
    model = to_model(symbol, (2, 3), opset_version=11)
    assert {node.domain for node in model.graph.node} == {""}
    arrays = {"x": mx.nd.array(_floats(2, 3))}
    _same(_run(model, arrays), _ours(symbol, arrays))


def test_a_traced_operator_takes_dynamic_lengths(operators: Any) -> None:
    symbol = operators[0](Variable("x"))
    model = to_model(symbol, (2, 3), dynamic=True)
    arrays = {"x": mx.nd.array(_floats(5, 3))}
    _same(_run(model, arrays), _ours(symbol, arrays))


def test_python_is_a_node_of_our_domain(operators: Any) -> None:
    """The node has the operator's name and attributes, so that the import finds the operator."""
    model = to_model(operators[1](Variable("x"), factor=5), (2, 3))
    (node,) = model.graph.node
    assert (node.domain, node.op_type) == ("opreg", "onnx_python")
    assert {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute} == {"factor": 5}
    (node,) = to_model(mx.sym.Custom(Variable("x"), op_type="onnx_plain", factor=2), (2, 3)).graph.node
    assert (node.domain, node.op_type) == ("opreg", "onnx_plain")
    assert {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute} == {"factor": 2}
    assert {each.domain for each in to_model(operators[1](Variable("x")), (2, 3)).opset_import} == {"", "opreg"}


def test_users_define_the_export_of_their_operators(operators: Any) -> None:
    """A rule of an operator, or a method of a Prop, gives the nodes."""
    _, python = operators
    python.onnx(lambda g, use, x: g("Mul", x, use.attrs["factor"]))
    _compared(python(Variable("x"), factor=5), x=_floats(2, 3))
    _compared(mx.sym.Custom(Variable("x"), op_type="onnx_said", factor=2), x=_floats(2, 3))


def _traced_operators() -> dict[str, tuple[Symbol, dict[str, np.ndarray]]]:
    """Calls of traced users' operators: several outputs, attributes of every kind, optional inputs and lists of inputs,
    loops and operators in their bodies."""
    from opreg.operator import define

    @define(name="onnx_two", traced=True, outputs=("mean", "spread"))
    def two(x: Any, *, axis: int = -1, least: float = 1e-3) -> Any:
        mean = x.mean(axis=axis, keepdims=True)
        return mean, ((x - mean) ** 2).mean(axis=axis, keepdims=True) + least

    @define(name="onnx_kinds", traced=True)
    def kinds(x: Any, *, scale: float = 2.0, times: int = 3, on: bool = True, mode: str = "tanh",
              weights: tuple[float, ...] = (1.0, 2.0), names: tuple[str, ...] = ("a", "b"), limit: float | None = None
              ) -> Any:
        y = getattr(mx.nd, mode)(x)
        for _ in range(times):
            y = y * scale
        y = y + sum(weights) + len(names) if on else y
        return y if limit is None else mx.nd.clip(y, -limit, limit)

    @define(name="onnx_optional", traced=True)
    def optional(x: Any, *bias: Any) -> Any:
        return x * 2 + bias[0] if bias else x * 2

    @define(name="onnx_many", traced=True)
    def many(*xs: Any, power: float = 1.0) -> Any:
        return sum(x * i for i, x in enumerate(xs, 1)) ** 2 * power

    @define(name="onnx_loop", traced=True)
    def loop(x: Any, *, decay: float = 0.5) -> Any:
        return mx.nd.contrib.foreach(lambda row, state: (row + state * decay,) * 2, x, mx.nd.zeros_like(x[0]))[0]

    @define(name="onnx_rounds", traced=True)
    def rounds(x: Any) -> Any:
        return mx.nd.contrib.while_loop(lambda i, y: i < 4, lambda i, y: (y, [i + 1, y * 0.5 + x]),
                                        [mx.nd.zeros((1,)), x], max_iterations=6)[1][1]

    @define(name="onnx_numpy", traced=True)
    def softplus(x: Any, *, beta: float = 1.0) -> Any:
        x = x.asnumpy()
        return np.log1p(np.exp(-np.abs(x) * beta)) + np.maximum(x, 0)

    @define(name="onnx_nested", traced=True)
    def nested(x: Any) -> Any:
        return softplus(x, beta=2.0) + mx.nd.where(x > 0, x * 3, x * x)

    @define(name="onnx_heads", traced=True)
    def heads(x: Any, w: Any, *, count: int = 2) -> Any:
        return mx.nd.dot(x, w).reshape((0, count, -1)).transpose((1, 0, 2)).softmax(axis=-1)

    @define(name="onnx_cut", traced=True, outputs=("a", "b", "c"))
    def cut(x: Any, *, at: tuple[int, ...] = (1, 2)) -> Any:
        return x[:, :at[0]] * 2, x[:, at[0]:at[1]], x[:, at[1]:].sum()

    @define(name="onnx_looked_up", traced=True)
    def looked_up(x: Any, index: Any, *, fill: float = 0.0) -> Any:
        return mx.nd.take(x, index) + fill

    x, y, z = (Variable(name) for name in "xyz")
    one = {"x": _floats(4, 6)}
    three = {**one, "y": _floats(4, 6) + 1, "z": _floats(4, 6) + 2}
    return {
        "two": (mx.sym.Group(list(two(x, axis=0))), one),
        "kinds": (kinds(x) + kinds(x, scale=0.5, times=2, mode="relu", weights=(3.0,), names=("c",), limit=2.0)
                  + kinds(x, on=False), one),
        "optional": (optional(x) + optional(x, y), {"x": three["x"], "y": three["y"]}),
        "many": (many(x, y, z, power=0.5), three), "loop": (loop(x, decay=0.25), one), "rounds": (rounds(x), one),
        "numpy": (softplus(x, beta=0.7), one), "nested": (nested(x), one),
        "heads": (heads(x, y), {**one, "y": _floats(6, 8)}),
        "cut": (mx.sym.Group(list(cut(x, at=(2, 4)))), one),
        "looked up": (looked_up(x, y, fill=1.0), {**one, "y": np.float32([0, 3, 1])}),
    }


def _differentiated(symbol: Symbol, arrays: dict[str, np.ndarray]) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Outputs of a symbol, and gradients of its inputs."""
    given = {name: mx.nd.array(arrays[name], dtype=arrays[name].dtype) for name in symbol.list_arguments()}
    executor = symbol.bind(mx.cpu(), given, args_grad={name: x.zeros_like() for name, x in given.items()})
    outs = executor.forward(is_train=True)
    executor.backward([mx.nd.array(_floats(*out.shape)) for out in outs])
    return [out.asnumpy() for out in outs], {name: x.asnumpy() for name, x in executor.grad_dict.items()}


@of_each(["two", "kinds", "optional", "many", "loop", "rounds", "numpy", "nested", "heads",
          "cut", "looked up"])
def test_a_traced_operator_is_exported_and_imported(name: str) -> None:
    """An imported model gives the same values and gradients; ONNX Runtime, if installed, gives the same values."""
    symbol, arrays = _traced_operators()[name]
    model = to_model(symbol, *[arrays[each] for each in symbol.list_arguments()])
    assert any(each.domain == "opreg" for each in model.graph.node)
    outs, slopes = _differentiated(symbol, arrays)
    _same(_run(model, {key: mx.nd.array(value) for key, value in arrays.items()}), outs)
    again, constants, _ = import_model(model)
    found, others = _differentiated(again, {**arrays, **{key: x.asnumpy() for key, x in constants.items()}})
    _same(found, outs)
    for key, slope in slopes.items():
        np.testing.assert_allclose(others[key], slope, 2e-4, 1e-5)
    try:
        runtime = pytest.importorskip("onnxruntime")
    except pytest.skip.Exception:
        return
    _same(runtime.InferenceSession(model.SerializeToString()).run(None, arrays), outs)


#: Attributes of an operator that runs as Python, and values that a file might lose.
KEPT = [
    {}, {"scale": 0.1, "limit": 1e-9, "times": -1, "on": False}, {"mode": "a, (b) = [c] 'd'"},
    {"weights": (0.1, 2.0), "names": ("x, y", "", "it's"), "empty": ()}, {"one": None, "pairs": ((1, 2), (3,), ())},
    {"weights": (), "names": ()}, {"words": (("a, b",), ("c", "d"))},
]


@pytest.mark.parametrize("attrs", KEPT, ids=[" ".join(each) or "defaults" for each in KEPT])
def test_attributes_are_exported_and_imported(attrs: dict[str, Any]) -> None:
    """An operator that runs as Python keeps its attributes in models, as in files of graphs."""
    from opreg.operator import define

    seen: list[dict[str, Any]] = []

    @define(name="onnx_kept")
    def kept(x: Any, *, scale: float = 2.0, times: int = 3, on: bool = True, mode: str = "tanh",
             weights: tuple[float, ...] = (1.0, 2.0), names: tuple[str, ...] = ("a", "b"), limit: float | None = None,
             empty: tuple[int, ...] = (7,), one: int | None = 3, pairs: tuple[tuple[int, ...], ...] = ((1,),),
             words: tuple[tuple[str, ...], ...] = ()) -> Any:
        seen.append({"scale": scale, "times": times, "on": on, "mode": mode, "weights": weights, "names": names,
                     "limit": limit, "empty": empty, "one": one, "pairs": pairs, "words": words})
        return x * 2

    symbol = kept(Variable("x"), **attrs)
    again, _, _ = import_model(to_model(symbol, (2, 3)))
    for each in (symbol, mx.sym.load_json(symbol.tojson()), again):
        each.bind(mx.cpu(), {"x": mx.nd.ones((2, 3))}).forward()[0].wait_to_read()
    assert all(each == seen[0] for each in seen) and attrs.items() <= seen[0].items()


def test_states_of_users_operators_are_exported_and_imported() -> None:
    from opreg.operator import define

    @define(name="onnx_centred", auxiliary=("mean",))
    def centred(x: Any, mean: Any, *, momentum: float = 0.75, is_train: bool = False) -> Any:
        if is_train:
            mean[:] = mean * momentum + x.mean(axis=0) * (1 - momentum)
        return x - mean

    symbol = centred(Variable("x"), Variable("m"))
    again, arguments, states = import_model(to_model(symbol, (2, 3), params={"m": mx.nd.ones(3)}))
    assert (again.list_arguments(), again.list_auxiliary_states(), list(arguments)) == (["x"], ["m"], [])
    executor = again.bind(mx.cpu(), {"x": mx.nd.array(_floats(2, 3))}, aux_states=states, grad_req="null")
    executor.forward(is_train=True)
    np.testing.assert_allclose(executor.aux_dict["m"].asnumpy(), 0.75 + 0.25 * _floats(2, 3).mean(0), 1e-6)


# ----------------------------------------------------------------------------------------- Cells, executors


def test_cells_and_compiled_functions_and_executors_are_exported() -> None:
    """Weights keep their names, layers are exported for inference, and the Cell does not change."""
    net = mx.nn.SequentialCell(mx.nn.Dense(4, 8), mx.nn.BatchNorm1d(8), mx.nn.ReLU(), mx.nn.Dropout(p=0.5),
                               mx.nn.Dense(8, 3))
    net.set_train(True)
    x = mx.Tensor(_floats(2, 4))
    model = to_model(net, x, dynamic=True)
    assert net.training
    net.set_train(False)
    names = {each.name for each in model.graph.initializer}
    assert {each.name for each in net.trainable_params()} <= names
    more = _floats(5, 4)
    given = {model.graph.input[0].name: mx.nd.array(more)}
    _same(_run(model, given), [net(mx.Tensor(more)).asnumpy()])

    @mx.jit
    def both(a: Any, b: Any) -> Any:
        return net(a) + b, a * 2

    pair = to_model(both, x, mx.Tensor(_floats(3)))
    _same(_run(pair, {"a": mx.nd.array(x.asnumpy()), "b": mx.nd.array(_floats(3))}),
          [net(x).asnumpy() + _floats(3), x.asnumpy() * 2])

    symbol = _dense(Variable("data"))
    executor = symbol.simple_bind(mx.cpu(), data=(2, 5), grad_req="null")
    for name in ("fc_weight", "fc_bias", "data"):
        executor.arg_dict[name][:] = _floats(*executor.arg_dict[name].shape)
    model = to_model(executor)
    assert [each.name for each in model.graph.input] == ["data"]
    _same(_run(model, {"data": executor.arg_dict["data"]}), [executor.forward()[0].asnumpy()])


def test_operators_that_a_cell_calls_compute_as_in_inference() -> None:
    """Batch norm uses moving statistics, and dropout passes all values, in any mode of the Cell."""
    mean, var, x = _floats(4), _floats(4) ** 2 + 1, _floats(3, 4, 2)
    one, zero, *moving = [mx.Tensor(each.astype(np.float32)) for each in (np.ones(4), np.zeros(4), mean, var)]

    class Net(mx.nn.Cell):
        def construct(self, x: Any) -> Any:
            return mx.nd.Dropout(mx.nd.BatchNorm(x, one, zero, *moving, fix_gamma=False, eps=0.5), p=0.5)

    for train in (False, True):
        model = to_model(Net().set_train(train), mx.Tensor(x))
        found = _run(model, {model.graph.input[0].name: mx.nd.array(x)})
        _same(found, [(x - mean[:, None]) / np.sqrt(var[:, None] + 0.5)])

"""Operators on 8-bit integers, and networks of them: MXNet 1.9.1's results, and its mistakes.

``data/mxnet_quantized.npz`` holds uses of operators, in JSON, and networks that MXNet quantised or fused: their files,
parameters, one batch of data, what it gave for every node (``out``), and the network's result before (``plain``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opreg import nd, sym
from opreg.errors import AttrError, DTypeError, FileFormatError
from tests.backends.cuda.test_strict import STRICT

with np.load(Path(__file__).parent.parent / "recorded" / "mxnet_quantized.npz") as _file:
    STORED = dict(_file)
CASES: list[dict[str, Any]] = json.loads(STORED.pop("cases").tobytes())
SYMBOLS: dict[str, str] = json.loads(STORED.pop("symbols").tobytes())

#: Networks whose quantized result in MXNet is far from the original one: it sums int8 and uint8 wrongly, and does not
#: cut off at six without a calibrated range.
WRONG = {"mobile-none", "plain-auto"}


def _array(stored: list) -> np.ndarray:
    dtype, shape, numbers = stored
    return np.array(numbers, dtype).reshape(shape)


def _near(found: Any, expected: np.ndarray, steps: float = 0) -> None:
    """Asserts equal dtypes and shapes, and values that differ by no more than some steps."""
    got = found.asnumpy()
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got.astype("float64"), expected.astype("float64"), 1e-5 * (expected.dtype.kind == "f"),
                               max(steps, 1e-5))


def _called(module: Any, case: dict[str, Any], values: dict[str, Any], **words: Any) -> Any:
    """The call of a case with arrays or symbols; inputs are passed by name if they have one."""
    function = getattr(module.contrib, case["op"].removeprefix("_contrib_"))
    if "num_args" in case["attrs"]:
        return function(*values.values(), **case["attrs"], **words)
    return function(**values, **case["attrs"], **words)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['op'][9:]}-{i}") for i, case in enumerate(CASES)])
def test_an_operator_equals_the_recorded_results_of_mxnet(case):
    inputs = {name: _array(stored) for name, stored in case["inputs"].items()}
    expected = [_array(stored) for stored in case["outputs"]]
    symbol = _called(sym, case, {name: sym.Variable(name) for name in inputs}, name="op")
    assert symbol.list_arguments() == case["arguments"]
    assert symbol.list_auxiliary_states() == case["states"]
    assert symbol.list_outputs() == case["names"]
    shapes = symbol.infer_shape(**{name: array.shape for name, array in inputs.items()})[1]
    dtypes = symbol.infer_type(**{name: array.dtype for name, array in inputs.items()})[1]
    assert [(shape, np.dtype(dtype)) for shape, dtype in zip(shapes, dtypes)][:len(expected)] == [
        (array.shape, array.dtype) for array in expected]
    values = {name: nd.array(array, dtype=array.dtype) for name, array in inputs.items()}
    executor = symbol.bind(nd.cpu(), {name: values[name] for name in case["arguments"]}, grad_req="null",
                           aux_states={name: values[name] for name in case["states"]})
    eager = _called(nd, case, values)
    for outs in (executor.forward(), eager if isinstance(eager, list) else [eager]):
        for out, want in zip(outs, expected):  # without MXNet's wrong results
            _near(out, want, case.get("steps", 0))


def _bound(name: str, symbol: Any, ctx: Any = None) -> Any:
    """Executor of a network with its recorded parameters and data."""
    ctx = ctx or nd.cpu()

    def of(kind: str) -> dict[str, Any]:
        prefix = f"{name}/{kind}/"
        return {key[len(prefix):]: nd.array(value, ctx, value.dtype) for key, value in STORED.items()
                if key.startswith(prefix)}

    return symbol.bind(ctx, {**of("arg"), "data": nd.array(STORED[f"{name}/data"], ctx)}, aux_states=of("aux"))


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_network_equals_the_recorded_results_of_mxnet(name):
    symbol = sym.load_json(SYMBOLS[name])
    plain = STORED[f"{name}/plain"]
    assert symbol.infer_shape(data=STORED[f"{name}/data"].shape)[1] == [plain.shape]
    result = _bound(name, symbol).forward()[0].asnumpy()
    assert np.abs(result - plain).max() < 0.04 * np.abs(plain).max()  # the error of eight bits
    recorded = {key.removeprefix(f"{name}/out/"): value for key, value in STORED.items()
                if key.startswith(f"{name}/out/")}
    assert bool(recorded) is (name not in WRONG)
    inner = symbol.get_internals()
    outs = _bound(name, sym.Group([inner[key] for key in recorded])).forward() if recorded else []
    for out, want in zip(outs, recorded.values()):
        _near(out, want, {"int32": np.abs(want).max() / 60, "float32": 1e-4}.get(want.dtype.name, 1))


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_network_runs_on_the_stand_in_for_a_device(name):
    symbol = sym.load_json(SYMBOLS[name])
    expected = _bound(name, symbol).forward()[0].asnumpy()
    np.testing.assert_allclose(_bound(name, symbol, STRICT).forward()[0].asnumpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_network_is_written_as_mxnet_wrote_it(name):
    assert sym.load_json(SYMBOLS[name]).tojson() == SYMBOLS[name]


# ------------------------------------------------------------------------------- where MXNet is wrong


def _of(numbers: np.ndarray, reach: float) -> np.ndarray:
    """The real values that quantized ones stand for."""
    return numbers * (reach / (255.5 if numbers.dtype == np.uint8 else 127.5))


def _bytes(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    low, high = (0, 256) if dtype == "uint8" else (-127, 128)
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def _given(*values: Any) -> list[Any]:
    """Arrays and ends of ranges, as NDArrays."""
    return [nd.array(value, dtype=value.dtype) if isinstance(value, np.ndarray) else nd.array([value])
            for value in values]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("layer", ["conv", "fully_connected"])
def test_integer_sums_represent_the_real_sums(layer, dtype):
    data, weight, bias = _bytes(dtype, 2, 3, 2, 2), _bytes("int8", 4, 3, 2, 2, seed=1), _bytes("int8", 4, seed=2)
    words = {"kernel": (2, 2), "num_filter": 4} if layer == "conv" else {"num_hidden": 4}
    weights = weight if layer == "conv" else weight.reshape(4, 12)
    sums, low, high = getattr(nd.contrib, f"quantized_{layer}")(
        *_given(data, weights, bias, 0.0, 2.0, -3.0, 1.0, -0.5, 0.25), **words)
    expected = np.einsum("nchw,ochw->no", _of(data, 2), _of(weight, 3)) + _of(bias, 0.5)
    assert low.asscalar() == -high.asscalar()
    np.testing.assert_allclose(sums.asnumpy().reshape(2, 4) * (high.asscalar() / (2 ** 31 - 1)), expected,
                               rtol=0, atol=0.01 * np.abs(expected).max())


def test_sums_of_signed_and_unsigned_values_have_the_range_of_both():
    a, b = _bytes("int8", 3, 4), _bytes("uint8", 3, 4)
    total, _, high = nd.contrib.quantized_elemwise_add(*_given(a, b, -1.0, 2.0, 0.0, 3.0))
    assert (total.dtype, high.asscalar()) == (np.int32, 5)
    np.testing.assert_allclose(total.asnumpy() * (5 / (2 ** 31 - 1)), _of(a, 2) + _of(b, 3), atol=1e-6)


def test_fix_gamma_counts_gamma_as_one():
    data = _bytes("int8", 2, 1, 2, 2)
    states = _given(np.float32([2]), np.float32([0.5]), 0.1, 1.0, -1.0, 2.0)
    words = {"min_calib_range": -4, "max_calib_range": 4, "eps": 1e-3}
    y = nd.contrib.quantized_batch_norm(*_given(data), *states, **words)[0]
    expected = (_of(data, 2) - 0.1) / np.sqrt(1.001) + 0.5
    np.testing.assert_allclose(_of(y.asnumpy(), 4), expected, atol=4 / 127)


def test_relu_of_unsigned_numbers_changes_nothing():
    data = _bytes("uint8", 3, 4)
    out = nd.contrib.quantized_act(*_given(data, 0.0, 2.0), act_type="relu")[0]
    np.testing.assert_array_equal(out.asnumpy(), data)
    assert out.dtype == np.uint8


def test_averages_count_elements_inside_of_the_data():
    data = np.full((1, 1, 3, 3), 8, "uint8")
    out = nd.contrib.quantized_pooling(*_given(data, 0.0, 2.0), kernel=(2, 2), stride=(2, 2), pool_type="avg",
                                       pooling_convention="full")[0]
    np.testing.assert_array_equal(out.asnumpy(), np.full((1, 1, 2, 2), 8))


# ------------------------------------------------------------------------------------------- mistakes

MISTAKES = [  # a call and its error
    (lambda: nd.contrib.dequantize(*_given(np.zeros(3, "int32"), 0.0, 1.0)), DTypeError, "int8 or uint8, got int32"),
    (lambda: nd.contrib.quantize_v2(*_given(_bytes("uint8", 3)), out_type="int8"), DTypeError,
     "quantised to uint8 already, out_type is 'int8'"),
    (lambda: nd.contrib.quantized_pooling(*_given(_bytes("int8", 1, 1, 2, 2), 0.0, 1.0), kernel=(2, 2),
                                          pool_type="sum"), AttrError, "quantised data have only maxima and averages"),
    (lambda: nd.contrib.quantized_conv(
        *_given(_bytes("int8", 1, 2, 2, 1), _bytes("int8", 1, 2, 2, 1), 0.0, 1.0, 0.0, 1.0), kernel=(2, 2),
        num_filter=1, no_bias=True, layout="NHWC"), AttrError, "layout='NHWC': quantised data have their channels"),
    (lambda: nd.contrib.quantized_act(*_given(_bytes("int8", 3), 0.0, 1.0), act_type="tanh"), AttrError,
     "for quantised data only 'relu' is available"),
    (lambda: nd.contrib.quantized_batch_norm(
        *_given(_bytes("int8", 1, 1, 2, 2), 1.0, 0.0, 0.0, 1.0, 0.0, 1.0)), AttrError,
     "min_calib_range and max_calib_range are required"),
]


@pytest.mark.parametrize("call,kind,message", MISTAKES, ids=[message for *_, message in MISTAKES])
def test_a_mistake_is_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def _damaged(change: Any) -> str:
    """A fused network after a change of its first fused node."""
    graph = json.loads(SYMBOLS["residual-fused"])
    change(next(node for node in graph["nodes"] if node["op"] == "_sg_mkldnn_conv"))
    return json.dumps(graph)


def _other(node: dict) -> None:
    node["subgraphs"][0]["nodes"][-1]["op"] = "softmax"
    node["subgraphs"][0]["nodes"][-1]["attrs"] = {}


def _turned(node: dict) -> None:
    node["subgraphs"][0]["nodes"][8]["attrs"]["axis"] = "2"


DAMAGES = [
    (lambda node: node["inputs"].pop(), FileFormatError, r"_sg_mkldnn_conv: expected 7 inputs \(data, weight, "),
    (lambda node: node.pop("subgraphs"), AttrError, "expected one subgraph, got 0"),
    (_turned, AttrError, "expected a subgraph with channels on axis 1"),
    (_other, AttrError, "expected a subgraph of Convolution and then any of .*, got Convolution, BatchNorm, softmax"),
    (lambda node: node["attrs"].update(quantized="maybe"), AttrError, "quantized: expected bool"),
]


@pytest.mark.parametrize("change,kind,message", DAMAGES, ids=[message for *_, message in DAMAGES])
def test_a_damaged_fused_node_is_refused_where_it_is(change, kind, message):
    with pytest.raises(kind, match=message) as caught:
        sym.load_json(_damaged(change))
    assert any("'sg_mkldnn_conv_bn_act_0'" in text
               for text in (str(caught.value), *getattr(caught.value, "__notes__", ())))


def test_a_convolution_may_add_its_own_data():
    graph = json.loads(SYMBOLS["residual-auto"])
    node = [node for node in graph["nodes"] if node["op"] == "_sg_mkldnn_conv"][1]
    (adding,) = [each for each in node["subgraphs"][0]["nodes"] if each["op"] == "elemwise_add"]
    adding["inputs"][1] = [0, 0, 0]
    node["inputs"] = [*node["inputs"][:6], *node["inputs"][7:9]]  # minus the added array, which is the data here
    result = _bound("residual-auto", sym.load_json(json.dumps(graph))).forward()[0]
    _near(result, STORED["residual-auto/out/quantized_sg_mkldnn_fully_connected_0_output"])


@pytest.mark.parametrize("activation,dtype", [("relu", np.uint8), ("sigmoid", np.uint8), ("tanh", np.int8)])
def test_results_that_are_never_negative_are_unsigned(activation, dtype):
    graph = json.loads(SYMBOLS["residual-auto"])
    node = next(node for node in graph["nodes"] if node["op"] == "_sg_mkldnn_conv")
    node["subgraphs"][0]["nodes"][-1]["attrs"]["act_type"] = activation
    inner = sym.load_json(json.dumps(graph)).get_internals()[f"{node['name']}_output"]
    assert inner.infer_type(data="float32")[1] == [dtype]


@pytest.mark.parametrize("name", ["residual-fused", "residual-auto"])
def test_a_fused_norm_that_fixes_gamma_does_not_read_it(name):
    executor = _bound(name, sym.load_json(SYMBOLS[name]))
    expected = executor.forward()[0].asnumpy()
    executor.arg_dict["bn1_gamma"][:] = 3
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), expected)


def test_older_files_call_activations_relu():
    def older(node: dict) -> None:
        node["attrs"]["with_relu"] = node["attrs"].pop("with_act")

    result = _bound("residual-fused", sym.load_json(_damaged(older))).forward()[0].asnumpy()
    np.testing.assert_allclose(result, STORED["residual-fused/plain"], rtol=1e-5)

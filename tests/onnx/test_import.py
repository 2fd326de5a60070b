"""Import of ONNX models: values and gradients, functions, placeholders, files of tensors, and damaged files."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, FileFormatError, OpError, UnknownOperatorError
from tests.questions import of_each

onnx = pytest.importorskip("onnx")
helper, numpy_helper = pytest.importorskip("onnx.helper"), pytest.importorskip("onnx.numpy_helper")
pytest.importorskip("onnx.reference")

from opreg.onnx import get_model_metadata, import_model, import_to_cell, to_model  # noqa: E402  the package may be missing

RNG = np.random.default_rng(5)


def model(nodes: Sequence[Any], inputs: Mapping[str, Sequence[Any]], outputs: Sequence[str],
          parameters: dict[str, np.ndarray] | None = None, opset: int = 17, **more: Any) -> Any:
    """A model of these nodes, with float32 inputs."""
    infos = [helper.make_tensor_value_info(name, 1, list(shape)) for name, shape in inputs.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    numbers = [numpy_helper.from_array(value, name) for name, value in (parameters or {}).items()]
    graph = helper.make_graph(list(nodes), "test", infos, results, numbers)
    opsets = [helper.make_opsetid("", opset), *more.pop("opsets", ())]
    return helper.make_model(graph, opset_imports=opsets, **more)


def numbers(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def operators_of(symbol: Any) -> list[str]:
    return [node.op.name for node in symbol._graph().nodes if node.op is not None]


def dense(batch: Any = 2) -> Any:
    return model([helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1), helper.make_node("Tanh", ["h"], ["t"]),
                  helper.make_node("MatMul", ["t", "v"], ["y"])], {"x": (batch, 3)}, ["y"],
                 {"w": numbers(4, 3), "b": numbers(4), "v": numbers(4, 2)})


def convolution() -> Any:
    return model([helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 0, 0], strides=[2, 1]),
                  helper.make_node("BatchNormalization", ["c", "s", "o", "m", "v"], ["n"]),
                  helper.make_node("LeakyRelu", ["n"], ["r"]),
                  helper.make_node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], ceil_mode=1, strides=[2, 2]),
                  helper.make_node("GlobalAveragePool", ["p"], ["g"]), helper.make_node("Flatten", ["g"], ["f"]),
                  helper.make_node("LogSoftmax", ["f"], ["y"])], {"x": (2, 2, 6, 5)}, ["y"],
                 {"w": numbers(3, 2, 3, 3), "b": numbers(3), "s": numbers(3), "o": numbers(3), "m": numbers(3),
                  "v": np.abs(numbers(3)) + 0.5})


def recurrent() -> Any:
    return model([helper.make_node("LSTM", ["x", "w", "r", "b"], ["out", "last", ""], hidden_size=2),
                  helper.make_node("Squeeze", ["last", "axes"], ["y"])], {"x": (3, 2, 3)}, ["y"],
                 {"w": numbers(1, 8, 3), "r": numbers(1, 8, 2), "b": numbers(1, 16), "axes": np.array([0])})


def resized() -> Any:
    return model([helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="cubic")], {"x": (1, 2, 3, 3)}, ["y"],
                 {"scales": np.array([1, 1, 2, 1.5], np.float32)})


def sampled() -> Any:
    return model([helper.make_node("GridSample", ["x", "grid"], ["y"])], {"x": (1, 2, 4, 4), "grid": (1, 2, 3, 2)},
                 ["y"], opset=20)


def indexed() -> Any:
    return model([helper.make_node("ScatterND", ["x", "i", "u"], ["s"], reduction="add"),
                  helper.make_node("Gather", ["s", "k"], ["y"], axis=1)], {"x": (4, 3), "u": (3, 3)}, ["y"],
                 {"i": np.array([[0], [2], [0]]), "k": np.array([-1, 0, 0])}, opset=18)


def transformed() -> Any:
    return model([helper.make_node("STFT", ["x", "step", "window"], ["y"])], {"x": (1, 12)}, ["y"],
                 {"step": np.array(3), "window": np.abs(numbers(6))})


def multiplied() -> Any:
    """Products along an axis: of all elements, or of all before each."""
    return model([helper.make_node("CumProd", ["x", "axis"], ["p"], reverse=1),
                  helper.make_node("CumProd", ["p", "axis"], ["y"], exclusive=1)], {"x": (2, 5, 2)}, ["y"],
                 {"axis": np.array(1)}, opset=26)


MODELS = [dense, convolution, recurrent, resized, sampled, indexed, transformed, multiplied]


def loss_of(cell: Any) -> Any:
    def loss(*values: Any) -> Any:
        out = cell(*values)
        weights = np.linspace(-1, 1, out.size, dtype=np.float64).reshape(out.shape)
        return (out * mx.Tensor(weights.astype(np.float32))).sum()

    return loss


@pytest.mark.parametrize("make", MODELS)
def test_imported_graphs_train(make: Any) -> None:
    """Gradients of inputs and parameters agree with central differences."""
    made = make()
    cell = import_to_cell(made)
    given = [numbers(*[dim.dim_value for dim in info.type.tensor_type.shape.dim]) * 0.7 for info in made.graph.input]
    tensors = [mx.Tensor(each) for each in given]
    parameters = cell.trainable_params()
    if make is sampled:  # away from the centers of pixels, where it has kinks
        tensors[1] = mx.Tensor(np.array([-0.6, 0.1, 0.4] * 4, np.float32).reshape(1, 2, 3, 2))
    loss = loss_of(cell)
    by_input, by_parameter = mx.grad(loss, tuple(range(len(tensors))), parameters)(*tensors)
    by_input = by_input if isinstance(by_input, tuple) else (by_input,)
    for holder, gradient in [*zip(tensors, by_input), *zip(parameters, by_parameter)]:
        start, slope = holder.asnumpy().copy(), gradient.asnumpy()
        assert slope.shape == start.shape
        for place in list(np.ndindex(*start.shape))[::max(start.size // 4, 1)]:
            ends = []
            for step in (1e-2, -1e-2):
                moved = start.copy()
                moved[place] += step
                if isinstance(holder, mx.Parameter):
                    holder.set_data(mx.Tensor(moved))
                values = [mx.Tensor(moved) if each is holder else each for each in tensors]
                ends.append(float(loss(*values).asnumpy()))
            if isinstance(holder, mx.Parameter):
                holder.set_data(mx.Tensor(start))
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=0.05, abs=0.01)


@pytest.mark.parametrize("make", MODELS)
def test_a_model_gives_equal_results_as_a_symbol_and_as_a_cell(make: Any) -> None:
    made = make()
    cell = import_to_cell(made)
    given = {info.name: numbers(*[dim.dim_value for dim in info.type.tensor_type.shape.dim])
             for info in made.graph.input}
    symbol, args, aux = import_model(made)
    expected = cell(*map(mx.Tensor, given.values())).asnumpy()
    executor = symbol.bind(mx.cpu(), {**{name: mx.nd.array(value) for name, value in given.items()}, **args},
                           aux_states=aux)
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), expected, rtol=1e-5, atol=1e-6)
    again = mx.sym.load_json(symbol.tojson())
    assert again.list_arguments() == symbol.list_arguments()
    assert again.list_auxiliary_states() == symbol.list_auxiliary_states()


@pytest.mark.parametrize("name, gates, words", [
    ("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 1}), ("RNN", 1, {}), ("RNN", 1, {"activations": ["Relu"]})])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("given", [True, False])
def test_recurrent_layers_are_one_node(name: str, gates: int, words: dict[str, Any], directions: int,
                                       given: bool) -> None:
    """The operator RNN computes them for any batch size; lengths of sequences unroll them, with the same values."""
    words = {**words, "hidden_size": 2, "direction": "bidirectional" if directions == 2 else "forward"}
    if "activations" in words:
        words["activations"] = words["activations"] * directions
    parameters = {"w": numbers(directions, gates * 2, 3), "r": numbers(directions, gates * 2, 2)}
    if given:
        parameters.update(b=numbers(directions, gates * 4), h=numbers(directions, 2, 2))
    ins = ["x", "w", "r", "b" if given else "", "", "h" if given else ""]
    made = model([helper.make_node(name, ins, ["y", "last"], **words)], {"x": (5, 2 if given else "n", 3)},
                 ["y", "last"], parameters)
    symbol, args, _ = import_model(made)
    assert operators_of(symbol).count("RNN") == 1
    x = numbers(5, 2, 3)
    found = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
    made.graph.node[0].input[4] = "lengths"
    made.graph.initializer.append(numpy_helper.from_array(np.array([5, 5], np.int32), "lengths"))
    for one, want in zip(found, import_to_cell(made)(mx.Tensor(x))):
        np.testing.assert_allclose(one.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_model_becomes_a_gluon_block() -> None:
    """The block computes like the Cell, and its gradients train; moving statistics and constants have none."""
    made = convolution()
    x = numbers(2, 2, 6, 5)
    net, cell = mx.onnx.import_to_gluon(made), import_to_cell(made)
    np.testing.assert_allclose(net(mx.nd.array(x)).asnumpy(), cell(mx.Tensor(x)).asnumpy(), rtol=1e-5, atol=1e-6)
    trained = [name for name, parameter in net.collect_params().items() if parameter.grad_req != "null"]
    assert sorted(trained) == ["b", "o", "s", "w"]
    with mx.autograd.record():
        loss = (net(mx.nd.array(x)) ** 2).sum()
    loss.backward()
    assert all(np.abs(net.collect_params()[name].grad().asnumpy()).max() > 0 for name in ("s", "w"))
    mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}).step(1)
    assert mx.contrib.onnx.import_to_gluon is mx.onnx.import_to_gluon


def test_metadata_lists_inputs_and_outputs() -> None:
    assert get_model_metadata(dense()) == {"input_tensor_data": [("x", (2, 3))], "output_tensor_data": [("y", ())]}


@pytest.mark.parametrize("batch_length", ["N", -1, None])
def test_open_lengths_stay_open(batch_length: Any) -> None:
    """Open lengths have a name, no name, or are -1, as in models of PaddlePaddle."""
    made = dense(batch_length)
    assert get_model_metadata(made)["input_tensor_data"] == [("x", (0, 3))]
    symbol, args, _ = import_model(made)
    for batch in (1, 5):
        executor = symbol.bind(mx.cpu(), {"x": mx.nd.array(numbers(batch, 3)), **args})
        assert executor.forward()[0].shape == (batch, 2)


def test_parameters_are_initializers_by_name() -> None:
    symbol, args, aux = import_model(convolution())
    assert sorted(name for name in args if not name.startswith("constant")) == ["b", "o", "s", "w"]
    assert all(symbol.attr_dict()[name]["__lr_mult__"] == "0.0" for name in args if name.startswith("constant"))
    assert sorted(aux) == ["m", "v"]
    assert symbol.list_arguments()[0] == "x"
    assert [p.name for p in import_to_cell(convolution()).trainable_params()] == ["w", "b", "s", "o"]
    assert "scales" not in [p.name for p in import_to_cell(resized()).get_parameters()]


def chain(*steps: tuple[Any, ...]) -> list[Any]:
    """Nodes, each given as operator, inputs, output and attributes."""
    return [helper.make_node(name, inputs.split(), [out], **dict(*more)) for name, inputs, out, *more in steps]


#: Nodes that read the initializer ``n``, and whether it is a parameter.
MASKS = {
    "truth values": (chain(("Trilu", "n", "t"), ("Equal", "t 0", "b"), ("Where", "b 0 x", "y")), False),
    "whole numbers": (chain(("Cast", "n", "i", {"to": 7}), ("Cast", "i", "f", {"to": 1}), ("Add", "f x", "y")), False),
    "other floats": (chain(("Cast", "n", "d", {"to": 11}), ("Cast", "d", "f", {"to": 1}), ("Add", "f x", "y")), True),
    "beside": (chain(("Equal", "n 0", "b"), ("Where", "b n x", "y")), True),
    "quantized": (chain(("QuantizeLinear", "n s", "q"), ("DequantizeLinear", "q s", "d"), ("Add", "d x", "y")), True),
    "a result": (chain(("Trilu", "n", "t"), ("Add", "x 0", "y")), True),
    "compared with an input": (chain(("Less", "x n", "b"), ("Where", "b 0 x", "y")), True),
}


@pytest.mark.parametrize("name", MASKS)
def test_an_initializer_that_only_a_mask_is_made_of_is_a_constant(name: str) -> None:
    """No gradient reaches it, and the mask is computed once; an initializer that is combined with an input is a
    parameter."""
    nodes, moves = MASKS[name]
    made = model(nodes, {"x": (3, 3)}, ["y", *(["t"] if name == "a result" else [])],
                 {"n": np.array([[1, 0, 1]] * 3, np.float32), "0": np.zeros((), np.float32),
                  "s": np.array(0.5, np.float32)}, opset=19)
    cell = import_to_cell(made)
    assert [parameter.name for parameter in cell.get_parameters()] == (["n"] if moves else [])
    symbol, args, _ = import_model(made)
    assert ("n" in args) is moves
    x = numbers(3, 3)
    want = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x})[0]
    np.testing.assert_array_equal(symbol.bind(mx.cpu(), {**args, "x": mx.nd.array(x)}).forward()[0].asnumpy(), want)
    assert moves or not {"Cast", "_npi_equal", "_npi_tril", "_npi_triu"} & set(operators_of(symbol))


def test_values_known_only_at_run_time_are_refused_by_name() -> None:
    made = model([helper.make_node("Unique", ["x"], ["i"], sorted=0), helper.make_node("Neg", ["i"], ["y"])],
                 {"x": (2, 2)}, ["y"])
    found = import_to_cell(made)(mx.Tensor(np.array([[2, 1], [2, 0]], np.float32)))
    assert found.asnumpy().tolist() == [-2, -1, 0]
    with pytest.raises(OpError, match=r"Unique needs numbers that are known only when the graph runs.*import_to_cell"):
        import_model(made)


def test_an_error_names_the_lengths_that_a_symbol_needs() -> None:
    """The error names inputs with open lengths, and how to give the lengths; if no length is open, it says nothing
    about them."""
    nodes = chain(("Shape", "x", "s"), ("Gather", "s one", "n"), ("Add", "n one", "m"), ("Range", "one m one", "r"),
                  ("Cast", "r", "f", {"to": 1}), ("Add", "x f", "y"))
    made = model(nodes, {"x": ("n", "time", 4), "z": (2,), "t": ("time",)}, ["y"],
                 {"one": np.array(1)})
    with pytest.raises(OpError, match=r"give them as shapes=\{'x': \(n, time, 4\), 't': \(time,\)\}"):
        import_model(made)
    symbol, args, _ = import_model(made, shapes={"x": (-1, 4, 4)})
    x = numbers(3, 4, 4)
    (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
    np.testing.assert_allclose(found.asnumpy(), x + np.arange(1, 5, dtype=np.float32))
    with pytest.raises(OpError) as told:
        import_model(model(chain(("ReduceMax", "x", "m", {"keepdims": 0}), ("Range", "0 m 1", "y")), {"x": (4,)}, ["y"],
                           {"0": np.zeros((), np.float32), "1": np.ones((), np.float32)}))
    assert "shapes=" not in str(told.value)


def test_functions_of_the_model_are_called() -> None:
    scaled = helper.make_function("mine", "Scaled", ["x"], ["y"], [
        helper.make_node("Constant", [], ["c"]), helper.make_node("Mul", ["x", "c"], ["y"])],
        [helper.make_opsetid("", 17)], ["by"])
    attribute = scaled.node[0].attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = "value_float", "by", 1
    twice = helper.make_function("mine", "Twice", ["x"], ["y"], [
        helper.make_node("Scaled", ["x"], ["h"], domain="mine", by=3.0), helper.make_node("Add", ["h", "h"], ["y"])],
        [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)])
    made = model([helper.make_node("Twice", ["x"], ["y"], domain="mine")], {"x": (2,)}, ["y"],
                 opsets=[helper.make_opsetid("mine", 1)], functions=[scaled, twice])
    assert import_to_cell(made)(mx.Tensor(np.array([1, 2], np.float32))).asnumpy().tolist() == [6, 12]


def test_functions_that_call_themselves_are_refused() -> None:
    own = helper.make_function("mine", "Own", ["x"], ["y"], [helper.make_node("Own", ["x"], ["y"], domain="mine")],
                               [helper.make_opsetid("mine", 1)])
    made = model([helper.make_node("Own", ["x"], ["y"], domain="mine")], {"x": (2,)}, ["y"],
                 opsets=[helper.make_opsetid("mine", 1)], functions=[own])
    with pytest.raises(FileFormatError, match="nested"):
        import_to_cell(made)(mx.Tensor(np.zeros(2, np.float32)))


def custom(name: str) -> Any:
    return model([helper.make_node(name, ["x"], ["h"], name="own", domain="mine", slope=2.0),
                  helper.make_node("Relu", ["h"], ["y"])], {"x": (3,)}, ["y"], opsets=[helper.make_opsetid("mine", 1)])


def test_operators_of_another_domain_are_those_registered_here() -> None:
    @mx.operator.define(name="onnx_import_steeper")
    def steeper(x, *, slope: float = 1.0):  # type: ignore[no-untyped-def]
        return x * slope

    made = custom("onnx_import_steeper")
    given = np.array([-1, 2, 3], np.float32)
    assert import_to_cell(made)(mx.Tensor(given)).asnumpy().tolist() == [0, 4, 6]
    symbol, _, _ = import_model(made)
    assert symbol.bind(mx.cpu(), {"x": mx.nd.array(given)}).forward()[0].asnumpy().tolist() == [0, 4, 6]


def test_unknown_operators_are_placeholders() -> None:
    symbol, _, _ = import_model(custom("OnnxImportNobody"))
    assert symbol.list_arguments() == ["x"]
    again = mx.sym.load_json(symbol.tojson())
    assert "mine.OnnxImportNobody" in again.tojson()
    assert "OnnxImportNobody" in symbol.debug_str()
    with pytest.raises(UnknownOperatorError, match=r"needs the operator 'mine.OnnxImportNobody'"):
        symbol.bind(mx.cpu(), {"x": mx.nd.zeros((3,))})
    with pytest.raises(OpError, match=r"'mine.OnnxImportNobody', opset 1, cannot be run"):
        import_to_cell(custom("OnnxImportNobody"))(mx.Tensor(np.zeros(3, np.float32)))


def branch(name: str, number: float) -> Any:
    return helper.make_graph([helper.make_node("Constant", [], ["c"], value_float=number),
                              helper.make_node("Mul", ["x", "c"], [name])], name, [], [onnx.ValueInfoProto(name=name)])


def held(name: str, *shape: int) -> Any:
    """A node with a constant of these values."""
    value = np.random.default_rng(len(name)).uniform(-1, 1, shape).astype(np.float32)
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name))


def test_weights_in_nodes_are_parameters() -> None:
    """Weights in Constant nodes, as PaddlePaddle writes them, or in branches, are parameters; single numbers are
    not."""
    def side(name: str) -> Any:
        return helper.make_graph([held(f"w{name}", 3, 2), *chain(("MatMul", f"h w{name}", f"m{name}"),
                                                                 ("Add", f"m{name} b{name}", name))],
                                 name, [], [onnx.ValueInfoProto(name=name)],
                                 [numpy_helper.from_array(np.float32([0.5, -1]), f"b{name}")])

    made = model([held("w", 4, 3), held("half", 1), *chain(("MatMul", "x w", "v"), ("Mul", "v half", "h"),
                                                           ("Greater", "s z", "t")),
                  helper.make_node("If", ["t"], ["y"], then_branch=side("one"), else_branch=side("two"))],
                 {"x": (2, 4), "s": ()}, ["y"], {"z": np.float32(0)})
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    names = ["w", "wone", "bone", "wtwo", "btwo"]
    symbol, args, _ = import_model(made)
    assert {*args} - {"constant0"} == {*names}  # zero, which the condition reads
    for sign, own in ((1, "one"), (-1, "two")):
        (want,) = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x, "s": np.float32(sign)})
        cell = import_to_cell(made)
        params = {each.name: each for each in cell.trainable_params()}
        assert sorted(params) == sorted(names)
        given = mx.Tensor(x), mx.Tensor(np.float32(sign))
        found, gradients = mx.value_and_grad(lambda *each, cell=cell: cell(*each).sum(), None, list(params.values()))(
            *given)
        assert found.asnumpy() == pytest.approx(want.sum(), rel=1e-5)
        moved = {name for name, each in zip(params, gradients) if each.asnumpy().any()}
        assert moved == {"w", f"w{own}", f"b{own}"}
        executor = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), "s": mx.nd.array(np.float32(sign)), **args})
        np.testing.assert_allclose(executor.forward()[0].asnumpy(), want, rtol=1e-5, atol=1e-6)


def test_constants_of_one_name_in_two_branches_stay_apart() -> None:
    """Constants of the first branch become parameters; those of the second stay constants."""
    def side(factor: float) -> Any:
        weight = numpy_helper.from_array(np.float32([factor, 1]), "w")
        return helper.make_graph([*chain(("Mul", "x w", "r"))], "side", [], [onnx.ValueInfoProto(name="r")], [weight])

    made = model([*chain(("Greater", "s z", "t")),
                  helper.make_node("If", ["t"], ["y"], then_branch=side(2.0), else_branch=side(-1.0))],
                 {"x": (2,), "s": ()}, ["y"], {"z": np.float32(0)})
    cell, x = import_to_cell(made), mx.Tensor(np.ones(2, np.float32))
    assert [each.name for each in cell.trainable_params()] == ["w"]
    assert [cell(x, mx.Tensor(np.float32(sign))).asnumpy().tolist() for sign in (1, -1)] == [[2, 1], [-1, 1]]


def test_a_branch_becomes_part_of_a_symbol() -> None:
    made = model([helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
                  helper.make_node("Greater", ["s", "z"], ["t"]),
                  helper.make_node("If", ["t"], ["y"], then_branch=branch("a", 2.0), else_branch=branch("b", -1.0))],
                 {"x": (2,)}, ["y"], {"z": np.float32(0)})
    symbol, args, _ = import_model(made)
    for given, expected in (([1, 2], [2, 4]), ([1, -2], [-1, 2])):
        array = np.array(given, np.float32)
        assert import_to_cell(made)(mx.Tensor(array)).asnumpy().tolist() == expected
        executor = symbol.bind(mx.cpu(), {"x": mx.nd.array(array), **args})
        assert executor.forward()[0].asnumpy().tolist() == expected


def external(folder: Path, location: str, length: int = 96) -> Path:
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (2, 4)}, ["y"], {"w": numbers(4, 6)})
    tensor = made.graph.initializer[0]
    (folder / "w.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    for key, value in (("location", location), ("offset", "0"), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_tensors_are_read_from_external_files(tmp_path: Path) -> None:
    _, args, _ = import_model(external(tmp_path, "w.bin"))
    np.testing.assert_array_equal(args["w"].asnumpy().tobytes(), (tmp_path / "w.bin").read_bytes())
    (tmp_path / "inner").mkdir()
    for location in ("../w.bin", str(tmp_path / "w.bin"), "", "nothing.bin"):
        with pytest.raises(FileFormatError, match=r"model\.onnx: tensor 'w': its file"):
            import_model(external(tmp_path / "inner", location))
    with pytest.raises(FileFormatError, match="has 96 bytes"):
        import_model(external(tmp_path, "w.bin", 97))
    path = external(tmp_path, "w.bin")
    path.write_bytes(path.read_bytes().replace(b"w.bin", b"w.bi\xff"))
    with pytest.raises(FileFormatError, match=r"model\.onnx: tensor 'w': .* is not UTF-8"):
        import_model(path)
    with pytest.raises(FileFormatError, match=r"give the name of the model's file"):
        import_model((tmp_path / "model.onnx").read_bytes())


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    path = external(inner, "w.bin")
    (tmp_path / "w.bin").write_bytes((inner / "w.bin").read_bytes())
    (inner / "w.bin").unlink()
    (inner / "w.bin").symlink_to(tmp_path / "w.bin")
    with pytest.raises(FileFormatError, match="not in the model's folder"):
        import_model(path)


@pytest.mark.parametrize("direction", ["forward", "bidirectional", "reverse"])
@pytest.mark.parametrize("kind, gates, attributes", [("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 1}),
                                                     ("RNN", 1, {})], ids=["LSTM", "GRU", "RNN"])
def test_recurrent_layers_take_a_length_for_each_sequence(kind: str, gates: int, attributes: dict[str, int],
                                                          direction: str) -> None:
    """Each sequence has the values that it has alone, with zeros after its end; one operator does it in a symbol,
    too."""
    sides = 2 if direction == "bidirectional" else 1
    weights = {"w": numbers(sides, gates * 2, 3), "r": numbers(sides, gates * 2, 2)}

    def made(*more: str) -> Any:
        inputs = {"x": (4, "n", 3)}
        node = helper.make_node(kind, ["x", "w", "r", *more], ["y", "last"], hidden_size=2, direction=direction,
                                **attributes)
        result = model([node], inputs, ["y", "last"], weights)
        if more:
            result.graph.input.append(helper.make_tensor_value_info("lengths", 6, ["n"]))
        return result

    x, lengths = numbers(4, 3, 3), np.array([2, 4, 1], np.int32)
    found = [each.asnumpy() for each in import_to_cell(made("", "lengths"))(mx.Tensor(x), mx.Tensor(lengths))]
    for i, length in enumerate(lengths):
        y, last = import_to_cell(made())(mx.Tensor(x[:length, i:i + 1]))
        np.testing.assert_allclose(found[0][:length, :, i], y.asnumpy()[:, :, 0], 1e-5, 1e-6)
        np.testing.assert_allclose(found[1][:, i], last.asnumpy()[:, 0], 1e-5, 1e-6)
        assert not found[0][length:, :, i].any()
    if direction != "reverse":
        symbol, given, _ = import_model(made("", "lengths"))
        assert operators_of(symbol).count("RNN") == 1
        given.update(x=mx.nd.array(x), lengths=mx.nd.array(lengths, dtype="int32"))
        for out, want in zip(symbol.bind(mx.cpu(), given, grad_req="null").forward(), found):
            np.testing.assert_allclose(out.asnumpy(), want, 1e-5, 1e-6)


@pytest.mark.parametrize("kind", ["NonZero", "Unique"])
def test_symbols_have_value_dependent_shapes(kind: str) -> None:
    symbol, _, _ = import_model(model([helper.make_node(kind, ["x"], ["y"])], {"x": ("n", 3)}, ["y"]))
    for x in (np.float32([[0, 2, 2], [1, 0, 0]]), np.float32([[5, 0, 5]])):
        wanted = np.stack(np.nonzero(x)) if kind == "NonZero" else np.unique(x)
        found = symbol.bind(mx.cpu(), {"x": mx.nd.array(x)}, grad_req="null").forward()[0].asnumpy()
        assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("groups", [1, 2])
def test_deformable_convolutions_interpolate_at_the_border(groups: int) -> None:
    """A deformable convolution without a mask interpolates between the last pixels and zeros outside."""
    made = model([helper.make_node("DeformConv", ["x", "w", "o"], ["y"], pads=[1, 1, 1, 1], offset_group=groups)],
                 {"x": (1, 2, 5, 5), "o": (1, 18 * groups, 5, 5)}, ["y"], {"w": numbers(3, 2, 3, 3)}, opset=19)
    x, offsets = numbers(1, 2, 5, 5), 4 * numbers(1, 18 * groups, 5, 5)
    (wanted,) = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x, "o": offsets})
    found = import_to_cell(made)(mx.Tensor(x), mx.Tensor(offsets)).asnumpy()
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


def fixed(**values: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in values.items()}


#: Models whose nodes contradict their inputs: a node, shapes of its inputs, its other inputs, and the message.
CONTRADICTIONS = {
    "expand": (("Expand", ["x", "s"], {}), {"x": (4, 3)}, fixed(s=[5, 3]), "shape mismatch"),
    "nothing": (("Expand", ["x"], {}), {"x": (4, 3)}, {}, "its input 1 is missing"),
    "left out": (("ReduceSum", ["", "s"], {}), {"x": (4, 3)}, fixed(s=[0]), "its input 0 is missing"),
    "one hot": (("OneHot", ["i", "d", "v"], {"axis": 4}), {"x": (4, 3)}, fixed(i=0, d=3, v=[0.0, 1.0]), "reshape"),
    "depth": (("OneHot", ["x", "d", "v"], {}), {"x": ("n", 3)}, fixed(d=2**40, v=[0.0, 1.0]), "1099511627776"),
    "resized": (("Resize", ["x", "", "s"], {}), {"x": (1, 1, 2, 2)}, fixed(s=np.float32([1, 1, 2**40, 1])),
                "2199023255552"),
    "endless": (("Resize", ["x", "", "s"], {}), {"x": (1, 1, 2, 2)}, fixed(s=np.float32([1, 1, np.inf, 1])),
                "infinity"),
    "pairs": (("Einsum", ["x"], {"equation": "a->a"}), {"x": (4, 3)}, {}, "names 1 axes"),
    "steps": (("RNN", ["x", "w", "r"], {"hidden_size": 2}), {"x": (4, 3)},
              fixed(w=np.ones((1, 2, 3), np.float32), r=np.ones((1, 2, 2), np.float32)), "expected shape"),
    "axes": (("Gather", ["x", "i"], {"axis": [0, 1]}), {"x": (4, 3)}, fixed(i=[0]), "of type INTS, expected INT"),
}


@of_each(CONTRADICTIONS)
def test_contradictory_models_are_refused(name: str) -> None:
    """The error is opreg's, names the node, and is raised before a huge array is made."""
    (kind, inputs, attributes), shapes, given, words = CONTRADICTIONS[name]
    made = model([helper.make_node(kind, inputs, ["y"], name="wrong", **attributes)], shapes, ["y"], given)
    cell = import_to_cell(made)
    x = mx.Tensor(numbers(*[2 if dim == "n" else dim for dim in shapes["x"]]))
    with pytest.raises(OpError, match=words) as caught:
        cell(*[x] * len(cell.model.graph.inputs))
    assert any("'wrong'" in note for note in caught.value.__notes__) or "'wrong'" in str(caught.value)


def test_a_name_that_is_no_text() -> None:
    content = dense().SerializeToString()
    for name in (b"Gemm", b"\x01h", b"transB"):
        with pytest.raises(FileFormatError, match="not UTF-8"):
            import_model(content.replace(name, name[:-1] + b"\xff"))


def damaged(made: Any, change: Any) -> Any:
    change(made.graph)
    return made


@pytest.mark.parametrize("change, words", [
    (lambda graph: graph.node[0].input.__setitem__(0, "y"), "its input 'y' is neither an output of an earlier node"),
    (lambda graph: graph.node[0].output.__setitem__(0, "x"), "has the name of another value"),
    (lambda graph: graph.output[0].__setattr__("name", "z"), "the output 'z' of a graph is not computed by any"),
    (lambda graph: graph.initializer[0].dims.__setitem__(0, 1 << 40), "fewer or more values than its shape"),
    (lambda graph: graph.initializer[0].dims.__setitem__(0, -4), "a length is negative"),
    (lambda graph: graph.initializer[0].__setattr__("data_type", 99), "no dtype with number 99"),
    (lambda graph: graph.node[0].attribute[0].__setattr__("name", "transC"), "unknown attribute 'transC'"),
    (lambda graph: graph.input[0].type.tensor_type.__setattr__("elem_type", 99),
     "no dtype with number 99.*\n.*input 'x'"),
])
def test_damaged_models_are_refused(change: Any, words: str) -> None:
    with pytest.raises(FileFormatError, match=words):
        import_model(damaged(dense(), change))


@pytest.mark.parametrize("node, words", [
    (helper.make_node("Scan", ["x"], ["y"], num_scan_inputs=[1], body=helper.make_graph([], "b", [], [])),
     "'num_scan_inputs' is of type INTS, expected INT"),
    (helper.make_node("Loop", ["two", "", "x"], ["y"], body=3), "'body' is of type INT, expected GRAPH"),
], ids=lambda each: getattr(each, "op_type", ""))
def test_attributes_of_a_wrong_type_are_refused(node: Any, words: str) -> None:
    made = model([node], {"x": (2, 3)}, ["y"], {"two": np.array(2)})
    with pytest.raises(FileFormatError, match=words):
        import_to_cell(made)(mx.Tensor(numbers(2, 3)))


def test_content_that_is_no_model_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"no model", dense().SerializeToString()[:40]):
        with pytest.raises(FileFormatError):
            import_to_cell(content)
    with pytest.raises(ArgumentError, match="expected the name of a file"):
        import_to_cell(5)
    with pytest.raises(ArgumentError, match=r"'X' is no input. Did you mean 'x'"):
        import_model(dense(), shapes={"X": (2, 3)})


def test_models_that_request_huge_arrays_are_refused() -> None:
    made = model([helper.make_node("ConstantOfShape", ["s"], ["y"])], {"x": (1,)}, ["y"],
                 {"s": np.array([1 << 40, 1 << 20])})
    with pytest.raises(OpError, match="asks for an array of shape"):
        import_to_cell(made)(mx.Tensor(np.zeros(1, np.float32)))


def grams(**words: Any) -> Any:
    """Counts of single words and of pairs."""
    attrs = {"max_gram_length": 2, "max_skip_count": 1, "min_gram_length": 1, "mode": "TF", "ngram_counts": [0, 2],
             "ngram_indexes": [0, 1, 2], "pool_int64s": [2, 3, 5, 4], **words}
    made = model([helper.make_node("TfIdfVectorizer", ["i"], ["c"], **attrs), *chain(("Add", "x c", "y"))], {"x": (3,)},
                 ["y"], {"i": np.array([5, 4, 2, 5, 4])})
    return import_to_cell(made)(mx.Tensor(np.zeros(3, np.float32))).asnumpy()


def test_files_damaged_at_random_do_no_harm() -> None:
    """A few of the files of ``python -m tests.onnx.damage`` are read, or refused with an error of opreg."""
    pytest.importorskip("resource")
    from tests.onnx.damage import run

    assert run(99) == 0


def test_huge_attribute_values_are_cut_or_refused() -> None:
    """Lengths, and counts of rounds, beyond an array's length are cut to it, or are errors."""
    np.testing.assert_array_equal(grams(max_gram_length=1 << 60, max_skip_count=1 << 60), [1, 0, 3])
    for counts in ([0, 1 << 60], [-1 << 60, 2], [2, 0]):
        with pytest.raises(OpError, match="expected ascending indices into a pool of 4"):
            grams(ngram_counts=counts)
    with pytest.raises(OpError, match="asks for an array of shape"):
        grams(ngram_indexes=[0, 1, 1 << 60])
    made = model([helper.make_node("Scan", ["x"], ["y"], num_scan_inputs=1 << 60,
                                   body=helper.make_graph([], "b", [], []))], {"x": (2, 3)}, ["y"])
    with pytest.raises(OpError, match="num_scan_inputs=1152921504606846976 of 1 inputs"):
        import_to_cell(made)(mx.Tensor(numbers(2, 3)))


@pytest.mark.parametrize("make", [dense, convolution, recurrent, indexed])
def test_models_with_changed_bytes_are_read_or_refused(make: Any) -> None:
    """A changed file is read, or refused with an error of opreg, never by a crash or another library's error."""
    content, chance = make().SerializeToString(), random.Random(7)
    for _ in range(500):
        changed = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        if chance.random() < 0.3:
            del changed[chance.randrange(len(changed)):]
        try:
            import_to_cell(bytes(changed))
        except OpError:
            pass


# --------------------------------------------------------------------------------------------------- open lengths


def first_length() -> list[Any]:
    """Nodes that compute the first length of x, as an array of one element."""
    return [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "zero"], ["n"]),
            helper.make_node("Unsqueeze", ["n", "place"], ["first"])]


OPEN: list[tuple[str, list[Any], dict[str, np.ndarray], tuple[int, ...]]] = [
    ("a reshape", [*first_length(), helper.make_node("Concat", ["first", "rest"], ["to"], axis=0),
                   helper.make_node("Reshape", ["x", "to"], ["y"])], {"rest": np.array([2, 6])}, (3, 4)),
    ("a reshape with a rest", [*first_length(), helper.make_node("Concat", ["first", "rest"], ["to"], axis=0),
                               helper.make_node("Reshape", ["x", "to"], ["y"])], {"rest": np.array([2, -1])}, (3, 4)),
    ("places", chain(("Shape", "x", "s", {"start": 1, "end": 2}), ("Squeeze", "s", "n"), ("Range", "zero n one", "r"),
                     ("Cast", "r", "f", {"to": 1}), ("Add", "x f", "y")), {"one": np.array(1)}, (4,)),
    ("places as floats", chain(("Shape", "x", "s", {"start": 1, "end": 2}), ("Squeeze", "s", "n"),
                               ("Cast", "n", "m", {"to": 1}), ("Range", "0.0 m 1.0", "r"), ("Add", "x r", "y")),
     {"0.0": np.zeros((), np.float32), "1.0": np.ones((), np.float32)}, (4,)),
    ("places of rows", chain(("Shape", "x", "s", {"end": 1}), ("Squeeze", "s", "n"), ("Range", "zero n one", "r"),
                             ("Gather", "x r", "t", {"axis": 0}), ("Cast", "r", "f", {"to": 1}),
                             ("Einsum", "t f", "y", {"equation": "nij,n->nij"})), {"one": np.array(1)}, (2, 3)),
    ("a half", [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "two"], ["n"]),
                helper.make_node("Div", ["n", "minus"], ["half"]), helper.make_node("Neg", ["half"], ["positive"]),
                helper.make_node("Slice", ["x", "place", "positive", "two"], ["y"])],
     {"two": np.array([2]), "minus": np.array([-2])}, (3, 5)),
    ("a product", [*first_length(), helper.make_node("Mul", ["first", "twice"], ["more"]),
                   helper.make_node("Concat", ["more", "rest"], ["to"], axis=0),
                   helper.make_node("Reshape", ["x", "to"], ["y"])],
     {"rest": np.array([6]), "twice": np.array([2])}, (3, 4)),
    ("a known part", [helper.make_node("Shape", ["x"], ["shape"]),
                      helper.make_node("Slice", ["shape", "one", "three"], ["to"]),
                      helper.make_node("Expand", ["v", "to"], ["e"]), helper.make_node("Add", ["x", "e"], ["y"])],
     {"one": np.array([1]), "three": np.array([3]), "v": numbers(1)}, (3, 4)),
    ("zeros", [*first_length(), helper.make_node("Concat", ["rest", "first", "rest"], ["to"], axis=0),
               helper.make_node("ConstantOfShape", ["to"], ["o"], value=numpy_helper.from_array(np.float32([2]))),
               helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
               helper.make_node("Unsqueeze", ["s", "last"], ["u"]), helper.make_node("Mul", ["o", "u"], ["y"])],
     {"rest": np.array([2]), "axes": np.array([1, 2]), "last": np.array([1])}, (3, 4)),
    ("spread rows", [*first_length(), helper.make_node("Concat", ["first", "rest"], ["to"], axis=0),
                     helper.make_node("Expand", ["v", "to"], ["e"]), helper.make_node("Mul", ["x", "e"], ["y"])],
     {"rest": np.array([3, 4]), "v": numbers(1, 3, 1)}, (3, 4)),
    ("a row for each, other lengths as they are", [
        *first_length(), helper.make_node("Concat", ["first", "rest"], ["to"], axis=0),
        helper.make_node("Equal", ["to", "minus"], ["kept"]),
        helper.make_node("Where", ["kept", "ones", "to"], ["whole"]),
        helper.make_node("Expand", ["v", "whole"], ["e"]), helper.make_node("Concat", ["e", "x"], ["y"], axis=1)],
     {"rest": np.array([-1, -1]), "minus": np.array([-1, -1, -1]), "ones": np.ones(3, np.int64), "v": numbers(1, 2, 4)},
     (3, 4)),
    ("equal parts", [helper.make_node("Split", ["x"], ["a", "b"], axis=2), helper.make_node("Sub", ["a", "b"], ["y"])],
     {}, (3, 4)),
    ("depth to space", [helper.make_node("DepthToSpace", ["x"], ["d"], blocksize=2),
                        helper.make_node("SpaceToDepth", ["d"], ["y"], blocksize=2)], {}, (4, 2, 3)),
    ("mirrored borders", [helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect")],
     {"pads": np.array([0, 1, 0, 0, 0, 2])}, (3, 4)),
    ("a cut border", [helper.make_node("Pad", ["x", "pads"], ["y"])], {"pads": np.array([-1, -1, 0, 0, 0, 0])}, (3, 4)),
    ("a border before", [helper.make_node("Pad", ["x", "pads"], ["y"])],
     {"pads": np.array([0, 0, 2, 0, 0, 0])}, (3, 4)),
    ("a border of ones", [helper.make_node("Pad", ["x", "pads", "one"], ["y"])],
     {"pads": np.array([0, 1, 0, 0, 2, 3]), "one": np.float32(1)}, (3, 4)),
    ("a border of rows", [helper.make_node("Pad", ["x", "pads"], ["y"])], {"pads": np.array([0, 2, 0, 1])}, (4,)),
    ("a border and a cut", [helper.make_node("Pad", ["x", "pads"], ["y"])],
     {"pads": np.array([-1, 0, 2, 0, -1, 0])}, (3, 4)),
    ("a causal convolution", [helper.make_node("Conv", ["x", "w"], ["y"], pads=[2, 0])],
     {"w": numbers(2, 3, 3)}, (3, 5)),
    ("a transposed convolution", [helper.make_node("ConvTranspose", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
     {"w": numbers(2, 3, 3, 3)}, (2, 4, 4)),
    ("twice the size", [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")],
     {"scales": np.float32([1, 1, 2, 2])}, (2, 3, 4)),
    ("another size", [helper.make_node("Shape", ["x"], ["first"], start=0, end=2),
                      helper.make_node("Concat", ["first", "rest"], ["sizes"], axis=0),
                      helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")],
     {"rest": np.array([5, 3])}, (2, 3, 4)),
    ("elements at places", [helper.make_node("TopK", ["x", "two"], ["v", "p"], axis=2),
                            helper.make_node("GatherElements", ["x", "p"], ["g"], axis=2),
                            helper.make_node("Sub", ["g", "v"], ["y"])], {"two": np.array([2])}, (3, 4)),
    ("elements put at places", [helper.make_node("TopK", ["x", "two"], ["v", "p"], axis=1),
                                helper.make_node("ScatterElements", ["x", "p", "v"], ["y"], axis=1)],
     {"two": np.array([2])}, (3, 4)),
    ("elements added at places of rows", chain(
        ("Shape", "x", "s", {"end": 1}), ("Squeeze", "s", "n"), ("Range", "zero n one", "r"), ("Neg", "r", "back"),
        ("Unsqueeze", "back axes", "u"), ("Expand", "u wide", "places"), ("ReduceSum", "x last", "v", {"keepdims": 0}),
        ("ScatterElements", "v places v", "y", {"reduction": "add"})),
     {"one": np.array(1), "axes": np.array([1]), "wide": np.array([1, 3]), "last": np.array([2])}, (3, 4)),
    ("parts put at places", chain(
        ("Shape", "x", "s", {"end": 1}), ("Squeeze", "s", "n"), ("Range", "zero n one", "r"), ("Neg", "r", "back"),
        ("Unsqueeze", "back axes", "u"), ("ScatterND", "x u x", "y")),
     {"one": np.array(1), "axes": np.array([1])}, (3, 4)),
    ("parts of each row", [helper.make_node("TopK", ["x", "two"], ["v", "p"], axis=1),
                           helper.make_node("Slice", ["p", "zeros", "two", "last"], ["q"]),
                           helper.make_node("GatherND", ["x", "q"], ["y"], batch_dims=1)],
     {"two": np.array([2]), "zeros": np.array([0]), "last": np.array([2])}, (3, 4)),
    ("an expansion of rows", chain(
        ("ReduceSum", "x axes", "s", {"keepdims": 1}), ("Shape", "x", "to"), ("Expand", "s to", "y")),
     {"axes": np.array([1])}, (3, 4)),
    ("rows of an expansion", chain(
        ("ReduceSum", "x axes", "s", {"keepdims": 0}), ("Shape", "x", "n", {"end": 1}),
        ("Concat", "three n", "to", {"axis": 0}), ("Expand", "s to", "y")),
     {"axes": np.array([1, 2]), "three": np.array([3])}, (3, 4)),
    ("a table as long", chain(
        ("Shape", "x", "n", {"end": 1}), ("Slice", "table zeros n axes", "t"), ("ReduceSum", "x axes", "s"),
        ("Mul", "t s", "y")),
     {"axes": np.array([1]), "zeros": np.array([0]), "table": numbers(1, 9, 4)}, (3, 4)),
    ("points of a picture", chain(
        ("Slice", "x zeros two last", "g"), ("Transpose", "g", "grid", {"perm": [0, 2, 3, 1]}),
        ("GridSample", "x grid", "y")),
     {"zeros": np.array([0]), "two": np.array([2]), "last": np.array([1])}, (3, 4, 5)),
    ("a spectrum", chain(("Unsqueeze", "x last", "u"), ("DFT", "u", "y", {"axis": 2})), {"last": np.array([3])},
     (3, 4)),
    ("a mask", [helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
                helper.make_node("Less", ["s", "limit"], ["m"]),
                helper.make_node("Compress", ["x", "m"], ["y"], axis=0)],
     {"axes": np.array([1, 2]), "limit": np.float32([0.3])}, (3, 4)),
]


@pytest.mark.parametrize("title, nodes, parameters, shape", OPEN, ids=[each[0] for each in OPEN])
def test_a_symbol_computes_any_batch(title: str, nodes: list[Any], parameters: dict[str, np.ndarray],
                                     shape: tuple[int, ...]) -> None:
    """One graph computes any number of rows like the Cell."""
    more = {"zero": np.array(0), "place": np.array([0]), **parameters}
    made = model(nodes, {"x": ("n", *shape)}, ["y"], more)
    symbol, args, _ = import_model(made)
    cell = import_to_cell(made)
    for rows in (2, 5):
        x = numbers(rows, *shape)
        want = cell(mx.Tensor(x)).asnumpy()
        (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how, rounding, factor", [
    ("asymmetric", "floor", 2), ("asymmetric", "floor", 3), ("half_pixel", "round_prefer_floor", 2),
    ("half_pixel", "round_prefer_ceil", 4), ("pytorch_half_pixel", "round_prefer_floor", 3),
    ("asymmetric", "round_prefer_floor", 2)])
def test_pictures_of_any_size_are_repeated(how: str, rounding: str, factor: int) -> None:
    """Resizing by an integer factor to nearest neighbours works in a symbol, and in the model exported from it."""
    made = model([helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest", nearest_mode=rounding,
                                   coordinate_transformation_mode=how)],
                 {"x": ("n", 2, "height", "width")}, ["y"], {"scales": np.float32([1, 1, factor, factor])})
    symbol, args, _ = import_model(made)
    again = to_model(import_to_cell(made), (1, 2, 3, 5), dynamic={"x": {0: "n", 2: "height", 3: "width"}})
    for shape in ((1, 2, 3, 5), (2, 2, 4, 1)):
        x = numbers(*shape)
        (want,) = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x})
        for found in (symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()[0],
                      import_to_cell(again)(mx.Tensor(x))):
            np.testing.assert_array_equal(found.asnumpy(), want)


def test_a_reshape_keeps_open_lengths() -> None:
    """A reshape keeps open lengths at their axes, and infers the product of the others."""
    made = model(chain(("Shape", "x", "s", {"end": 2}), ("Concat", "s rest", "to", {"axis": 0}),
                       ("Reshape", "x to", "y")), {"x": ("n", 2, "height", "width")}, ["y"], {"rest": np.array([-1])})
    symbol, _, _ = import_model(made)
    for shape in ((1, 2, 3, 5), (2, 2, 4, 1)):
        x = numbers(*shape)
        (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x)}).forward()
        np.testing.assert_array_equal(found.asnumpy(), x.reshape(*shape[:2], -1))


def test_other_resizes_of_open_lengths_are_refused() -> None:
    made = model([helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest", nearest_mode="ceil")],
                 {"x": ("n", 2, "height", 3)}, ["y"], {"scales": np.float32([1, 1, 2, 1])})
    with pytest.raises(OpError, match="Resize needs lengths"):
        import_model(made)


# ------------------------------------------------------------------------------------------------ loops, as loops


def test_an_imported_cell_is_written_with_the_names_and_open_lengths_of_its_model() -> None:
    """A range up to an open length stays one in the new model; weights are those of the Cell."""
    made = model(chain(("Shape", "words", "s", {"start": 1, "end": 2}), ("Squeeze", "s", "n"), ("Range", "0 n 1", "r"),
                       ("Cast", "r", "f", {"to": 1}), ("Add", "words f", "t"), ("Mul", "t w", "scores"),
                       ("Tanh", "t", "shown")),
                 {"words": ("batch", "time")}, ["scores", "shown"],
                 {"0": np.array(0), "1": np.array(1), "w": numbers(1, 1)})
    cell = import_to_cell(made)
    cell.trainable_params()[0].set_data(mx.Tensor(np.full((1, 1), 0.5, np.float32)))
    again = mx.onnx.to_model(cell, (2, 3), dynamic={"words": {0: "batch", 1: "time"}}, opset_version=17)
    onnx.checker.check_model(again, full_check=True)
    assert get_model_metadata(again)["input_tensor_data"] == [("words", (0, 0))]
    assert [each.name for each in again.graph.output] == ["scores", "shown"]
    for shape in ((2, 3), (4, 7)):
        x = numbers(*shape)
        for found, want in zip(onnx.reference.ReferenceEvaluator(again).run(None, {"words": x}), cell(mx.Tensor(x))):
            np.testing.assert_allclose(found, want.asnumpy(), rtol=1e-5, atol=1e-6)


#: Equations with shapes of the operands; lengths that are text are left open.
EQUATIONS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("btc,ts->bsc", [("b", 6, 8), (6, 5)]),
    ("bshd,bthd->bst", [("b", "s", 2, 3), ("b", "t", 2, 3)]),
    ("bhqd,bhkd->bhqk", [("b", 2, "q", 4), ("b", 2, "k", 4)]),
    ("bqhd,bkhd->bhqk", [("b", "q", 2, 4), ("b", "k", 2, 4)]),
    ("bhqk,bkhd->bqhd", [("b", 2, "q", "k"), ("b", "k", 2, 4)]),
    ("b i j , c k -> b i j c k", [("b", 2, 3), (2, 4)]),
    ("bi,bj->b", [("b", 3), ("b", 4)]),
    ("bij->b", [("b", 3, "j")]),
    ("bi,ij,bj->b", [("b", 3), (3, 4), ("b", 4)]),
    ("bij,ij", [("b", 3, 4), (3, 4)]),
    ("b,->b", [("b",), ()]),
    ("ij,ij->i", [("i", "j")] * 2),
    ("...ij,...jk->...ik", [("b", 2, 3, 4), ("b", 2, 4, 5)]),
    ("...ij,jk->...ik", [("b", 2, "i", 4), (4, 5)]),
    ("...i,...i", [("b", 3), ("b", 3)]),
    ("...i,...i", [(1, 3), ("b", 3)]),
    ("i...,i...->...", [(3, "b"), (3, 1)]),
    ("...ij->...ji", [("b", 3, 4)]),
    ("a...,b...->ab...", [("a", 1, 4), (3, 5, 4)]),
    ("...,...->...", [("b", 1, 4), (3, 1)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
    ("ii->i", [(3, 3)]),
    ("iij->j", [(3, 3, 2)]),
    ("ij->", [(3, 2)]),
    ("ij,jk->ik", [(3, 4), (4, 5)]),
]


@of_each(EQUATIONS)
def test_einsum_takes_open_lengths(equation: str, shapes: list[tuple[Any, ...]]) -> None:
    inputs = {f"x{i}": shape for i, shape in enumerate(shapes)}
    made = model([helper.make_node("Einsum", [*inputs], ["y"], equation=equation)], inputs, ["y"])
    symbol, args, _ = import_model(made)
    assert args == {}
    cell = import_to_cell(made)
    for length in (3, 5):
        sizes = {text: length + i for i, text in enumerate("bqkstaji")}
        given = [separate(*[sizes.get(dim, dim) for dim in shape]) for shape in shapes]
        want = np.einsum(equation.replace(" ", ""), *given)
        executor = symbol.bind(mx.cpu(), dict(zip(inputs, map(mx.nd.array, given))), grad_req="null")
        for found in (executor.forward()[0], cell(*map(mx.Tensor, given))):
            np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("equation, shapes, words", [
    ("ij,jk", [(3, 4)], "names the axes of 2 tensors, there are 1"), ("ij->i", [(3,)], "'ij' names 2 axes of shape"),
    ("ij->ik", [(3, 4)], "has an output axis that no tensor has, or has one "
                         "twice"), ("i,i->i", [(3,), (4,)], "3 and 4"),
    ("i...j->ij", [(3, 4, 2)], "leaves out"), ("ij->iji", [("i", 4)], "has an output axis that no tensor has"),
    ("i->...i", [(3,)], "no tensor has")])
def test_invalid_einsum_equations_are_refused(equation: str, shapes: list[tuple[Any, ...]], words: str) -> None:
    inputs = {f"x{i}": shape for i, shape in enumerate(shapes)}
    made = model([helper.make_node("Einsum", [*inputs], ["y"], equation=equation)], inputs, ["y"])
    with pytest.raises(OpError, match=words):
        import_model(made)


def loop(body: Any, scanned: int, rounds: int | None = 4, condition: bool = False) -> Any:
    """A model of one Loop with the state x; the body's outputs are the condition, the state and ``scanned``."""
    parameters = {"w": numbers(3, 3)}
    if rounds is not None:
        parameters["most"] = np.array(rounds)
    if condition:
        parameters["start"] = np.array(True)
    node = helper.make_node("Loop", ["most" if rounds is not None else "", "start" if condition else "", "x"],
                            ["last", *[f"stacked{i}" for i in range(scanned)]], body=body)
    return model([node], {"x": (2, 3)}, list(node.output), parameters)


def body_of(nodes: Sequence[Any], outputs: Sequence[str]) -> Any:
    infos = [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("on", 9, []),
             helper.make_tensor_value_info("h", 1, [2, 3])]
    return helper.make_graph(list(nodes), "body", infos, [onnx.ValueInfoProto(name=name) for name in outputs])


def counted() -> Any:
    return loop(body_of([
        helper.make_node("Identity", ["on"], ["next"]), helper.make_node("MatMul", ["h", "w"], ["m"]),
        helper.make_node("Cast", ["i"], ["f"], to=1), helper.make_node("Add", ["m", "f"], ["a"]),
        helper.make_node("Tanh", ["a"], ["new"]), helper.make_node("ReduceSum", ["new"], ["s"], keepdims=0)],
        ["next", "new", "m", "s"]), 2)


def conditional() -> Any:
    return loop(body_of([
        helper.make_node("MatMul", ["h", "w"], ["m"]), helper.make_node("Add", ["m", "h"], ["new"]),
        helper.make_node("Constant", [], ["two"], value_int=2),
        helper.make_node("Less", ["i", "two"], ["next"]), helper.make_node("Neg", ["new"], ["n"])],
        ["next", "new", "n"]), 1, rounds=9, condition=True)


def scanned() -> Any:
    infos = [helper.make_tensor_value_info("s", 1, [2]), helper.make_tensor_value_info("r", 1, [2]),
             helper.make_tensor_value_info("q", 1, [])]
    body = helper.make_graph([helper.make_node("Mul", ["s", "c"], ["t"]), helper.make_node("Mul", ["r", "q"], ["u"]),
                              helper.make_node("Add", ["t", "u"], ["new"]), helper.make_node("Sin", ["new"], ["o"])],
                             "body", infos, [onnx.ValueInfoProto(name=name) for name in ("new", "o")])
    node = helper.make_node("Scan", ["s0", "x", "v"], ["last", "out"], body=body, num_scan_inputs=2,
                            scan_input_axes=[1, 0], scan_input_directions=[1, 0], scan_output_axes=[1],
                            scan_output_directions=[1])
    return model([node], {"s0": (2,), "x": (2, 5), "v": (5,)}, ["last", "out"], {"c": numbers(2)})


def test_a_loop_without_end() -> None:
    """The loop has no largest number of rounds, and its condition never changes."""
    nodes = [helper.make_node("Identity", ["on"], ["same"]), helper.make_node("Identity", ["same"], ["next"]),
             helper.make_node("Tanh", ["h"], ["new"])]
    cell = import_to_cell(loop(body_of(nodes, ["next", "new"]), 0, rounds=None))
    with pytest.raises(OpError, match="Loop: it never ends: no iteration changes its condition 'on'"):
        cell(mx.Tensor(numbers(2, 3)))
    nodes[0] = helper.make_node("Constant", [], ["same"], value=numpy_helper.from_array(np.array(False)))
    x = numbers(2, 3)
    found = import_to_cell(loop(body_of(nodes, ["next", "new"]), 0, rounds=None))(mx.Tensor(x))
    np.testing.assert_allclose(found.asnumpy(), np.tanh(x), rtol=1e-6)


@pytest.mark.parametrize("array, words", [(np.zeros(0, bool), r"shape \(0,\), expected one number"),
                                          (np.zeros(2, bool), r"shape \(2,\), expected one number"),
                                          (np.array("on", object), "dtype object")])
def test_a_loop_needs_a_truth_value_as_its_condition(array: np.ndarray, words: str) -> None:
    nodes = [helper.make_node("Constant", [], ["next"], value=numpy_helper.from_array(array)),
             helper.make_node("Tanh", ["h"], ["new"])]
    with pytest.raises(OpError, match=f"Loop: its condition has {words}"):
        import_to_cell(loop(body_of(nodes, ["next", "new"]), 0, rounds=None))(mx.Tensor(numbers(2, 3)))


#: Bodies of loops whose states repeat: nodes that compute ``new`` from ``h``, and the round after which they repeat.
ROUNDS = {
    "the same": (("Identity", "h", "new"),),
    "two by turns": (("Neg", "h", "new"),),
    "after a while": (("Add", "h one", "a"), ("Min", "a four", "new")),
}


@pytest.mark.parametrize("rounds", [None, 2 ** 63 - 1])
@pytest.mark.parametrize("name", ROUNDS)
def test_a_loop_whose_states_come_back_never_ends(name: str, rounds: int | None) -> None:
    """The condition depends on states alone, and the largest number of rounds, if there is one, cannot be reached. A
    loop that ends is computed."""
    constants = [helper.make_node("Constant", [], [key], value_float=value)
                 for key, value in (("one", 1.0), ("four", 4.0), ("five", 5.0), ("zero", 0.0))]
    ends = chain(("ReduceMax", "new", "m", {"keepdims": 0}), ("Less", "m five", "next"))
    cell = import_to_cell(loop(body_of([*constants, *chain(*ROUNDS[name]), *ends], ["next", "new"]), 0, rounds))
    with pytest.raises(OpError, match=r"Loop: it never ends: after iteration \d+ its states are those of iteration "
                                      r"\d+"):
        cell(mx.Tensor(numbers(2, 3)))
    counts = [*constants, *chain(("Add", "h one", "new")), *ends]
    found = import_to_cell(loop(body_of(counts, ["next", "new"]), 0, rounds))(mx.Tensor(np.zeros((2, 3), np.float32)))
    assert (found.asnumpy() == 5).all()


def test_a_loop_that_counts_its_rounds_ends() -> None:
    """The number of the round decides, although the states stay the same."""
    nodes = [helper.make_node("Constant", [], ["ten"], value_int=10), *chain(("Less", "i ten", "next"),
                                                                             ("Identity", "h", "new"))]
    x = numbers(2, 3)
    assert (import_to_cell(loop(body_of(nodes, ["next", "new"]), 0, None))(mx.Tensor(x)).asnumpy() == x).all()


def counting(limit: int, step: float = 1.0) -> Any:
    """A loop without a largest number of rounds, which counts in a state, like TensorFlow's loops."""
    infos = [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("on", 9, []),
             helper.make_tensor_value_info("k", 1, []), helper.make_tensor_value_info("h", 1, [2, 3])]
    constants = [helper.make_node("Constant", [], [key], value_float=value)
                 for key, value in (("step", step), ("limit", float(limit)))]
    body = helper.make_graph([*constants, *chain(("Add", "k step", "k2"), ("Less", "k2 limit", "next"),
                                                 ("Mul", "h k2", "t"), ("Tanh", "t", "h2"))],
                             "body", infos, [onnx.ValueInfoProto(name=name) for name in ("next", "k2", "h2", "h2")])
    return model([helper.make_node("Loop", ["", "yes", "zero", "x"], ["k3", "y", "every"], body=body)], {"x": (2, 3)},
                 ["y", "every"], {"yes": np.array(True), "zero": np.float32(0)})


def test_a_symbol_takes_a_loop_that_counts_in_a_state() -> None:
    """The number of rounds is known if the count and its limit are constants, whatever the other states are."""
    made, x = counting(4), numbers(2, 3)
    rounds = [x]
    for k in range(1, 5):
        rounds.append(np.tanh(rounds[-1] * k))
    symbol, args, _ = import_model(made)
    results = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
    for want, found in zip((rounds[-1], np.stack(rounds[1:])), results):
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-6)
    with pytest.raises(OpError, match=r"Loop: it never ends: after iteration \d its states are those of iteration \d"):
        import_model(counting(4, 0.0))
    with pytest.raises(OpError, match="Loop needs more than 32768 nodes for its iterations"):
        import_model(counting(1 << 30))


LOOPS = [(counted, "_foreach"), (conditional, "_while_loop"), (scanned, "_foreach")]


@pytest.mark.parametrize("make, name", LOOPS)
def test_loops_are_one_node(make: Any, name: str) -> None:
    """Values and gradients equal those of the rounds one by one."""
    made = make()
    given = {info.name: numbers(*[dim.dim_value for dim in info.type.tensor_type.shape.dim])
             for info in made.graph.input}
    cell = import_to_cell(made)
    expected = [out.asnumpy() for out in cell(*map(mx.Tensor, given.values()))]
    symbol, args, aux = import_model(made)
    assert operators_of(symbol).count(name) == 1 and len(operators_of(symbol)) < 20
    arrays = {**{key: mx.nd.array(value) for key, value in given.items()}, **args}
    grads = {key: mx.nd.zeros(value.shape) for key, value in arrays.items() if value.dtype == np.float32}
    executor = symbol.bind(mx.cpu(), arrays, args_grad=grads, aux_states=aux,
                           grad_req={key: "write" if key in grads else "null" for key in arrays})
    found = executor.forward(is_train=True)
    for one, want in zip(found, expected):
        np.testing.assert_allclose(one.asnumpy(), want, rtol=1e-5, atol=1e-6)
    executor.backward([mx.nd.ones(out.shape) for out in found])
    parameters = cell.trainable_params()
    by_input, by_parameter = mx.grad(lambda *values: sum(out.sum() for out in cell(*values)),
                                     tuple(range(len(given))), parameters)(*map(mx.Tensor, given.values()))
    by_input = by_input if isinstance(by_input, tuple) else (by_input,)
    for key, gradient in [*zip(given, by_input), *zip([each.name for each in parameters], by_parameter)]:
        np.testing.assert_allclose(grads[key].asnumpy(), gradient.asnumpy(), rtol=1e-4, atol=1e-5)
    compiled = mx.jit(cell)(*map(mx.Tensor, given.values()))
    for one, want in zip(compiled, expected):
        np.testing.assert_allclose(one.asnumpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make, name", LOOPS)
def test_loops_are_written_again(make: Any, name: str) -> None:
    made = make()
    symbol, args, aux = import_model(made)
    given = {info.name: numbers(*[dim.dim_value for dim in info.type.tensor_type.shape.dim])
             for info in made.graph.input}
    again = mx.onnx.to_model(symbol, *[given[key] for key in symbol.list_arguments() if key in given],
                             params={**args, **aux})
    onnx.checker.check_model(again, full_check=True)
    ordered = [mx.Tensor(given[info.name]) for info in again.graph.input]
    for found, want in zip(import_to_cell(again)(*ordered), import_to_cell(made)(*map(mx.Tensor, given.values()))):
        np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)
    inner, _, _ = import_model(again)
    assert name in operators_of(inner)


def test_a_scan_takes_any_length() -> None:
    made = scanned()
    made.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "n"
    made.graph.input[2].type.tensor_type.shape.dim[0].dim_param = "n"
    symbol, args, _ = import_model(made)
    for length in (1, 7):
        given = {"s0": numbers(2), "x": numbers(2, length), "v": numbers(length)}
        found = symbol.bind(mx.cpu(), {**{key: mx.nd.array(value) for key, value in given.items()}, **args}).forward()
        for one, want in zip(found, import_to_cell(made)(*map(mx.Tensor, given.values()))):
            np.testing.assert_allclose(one.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_state_that_grows_is_unrolled() -> None:
    made = loop(body_of([helper.make_node("Identity", ["on"], ["next"]),
                         helper.make_node("Concat", ["h", "h"], ["new"], axis=0)], ["next", "new"]), 0, rounds=3)
    symbol, args, _ = import_model(made)
    assert "_foreach" not in operators_of(symbol)
    (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.ones((2, 3)), **args}).forward()
    assert found.shape == (16, 3)


def test_loops_with_an_unknown_end() -> None:
    """A loop without a largest number of rounds has no graph; a Cell runs its rounds."""
    made = conditional()
    made.graph.input.append(helper.make_tensor_value_info("go", 9, []))
    made.graph.node[0].input[:2] = ["", "go"]
    with pytest.raises(OpError, match=r"Loop needs numbers that are known only when the graph runs"):
        import_model(made)


# --------------------------------------------------------------------------------------------------- attention


def attending(inputs: Mapping[str, Sequence[Any]], parameters: dict[str, np.ndarray] | None = None,
              outputs: Sequence[str] = ("y",), opset: int = 24, **attrs: Any) -> Any:
    """A model of attention with these inputs; an optional input without a shape is left out."""
    names = ["q", "k", "v", "mask", "past_k", "past_v", "filled"]
    given = [name if name in inputs or name in (parameters or {}) else "" for name in names]
    return model([helper.make_node("Attention", given, list(outputs), **attrs)], inputs,
                 list(filter(None, outputs)), parameters, opset)


QKV = {"q": (2, 4, 3, 6), "k": (2, 2, 5, 6), "v": (2, 2, 5, 7)}
SEEN = RNG.uniform(0, 1, (2, 1, 3, 5)) > 0.4
SEEN[0, 0, 1], SEEN[1, 0, 2, 0] = False, True
ATTENTION = [
    attending(QKV), attending(QKV, is_causal=1, scale=0.3), attending(QKV, {"mask": SEEN}),
    attending(QKV, {"mask": SEEN}, is_causal=1), attending({**QKV, "mask": (3, 5)}), attending({**QKV, "mask": (3, 4)}),
    attending({**QKV, "past_k": (2, 2, 2, 6), "past_v": (2, 2, 2, 7)}, is_causal=1, outputs=("y", "all_k", "all_v")),
    attending(QKV, {"filled": np.array([2, 5])}, is_causal=1), attending(QKV, {"filled": np.array([1, 4])}),
    attending({"q": (2, 3, 24), "k": (2, 5, 12), "v": (2, 5, 14)}, q_num_heads=4, kv_num_heads=2),
]
COMPOSED = [attending(QKV, softcap=0.5, is_causal=1),
            attending({**QKV, "mask": (3, 5)}, outputs=("y", "", "", "scores"), qk_matmul_output_mode=2),
            attending(QKV, {"mask": SEEN}, outputs=("y", "", "", "scores"), qk_matmul_output_mode=3)]


@pytest.mark.parametrize("made", [*ATTENTION, *COMPOSED], ids=range(len(ATTENTION + COMPOSED)))
def test_attention_is_one_operator(made: Any) -> None:
    """Caches, masks and shared heads have ONNX's values; a query that sees no key gives zero, and finite gradients."""
    given = {info.name: numbers(*[dim.dim_value for dim in info.type.tensor_type.shape.dim])
             for info in made.graph.input}
    wanted = onnx.reference.ReferenceEvaluator(made).run(None, given)
    symbol, args, _ = import_model(made)
    held = {**{name: mx.nd.array(value) for name, value in given.items()}, **args}
    grads = {name: mx.nd.zeros(value.shape) for name, value in given.items()}
    executor = symbol.bind(mx.cpu(), held, grads, {name: "write" if name in grads else "null" for name in held})
    for found, want in zip(executor.forward(is_train=True), wanted, strict=True):
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)
    executor.backward([mx.nd.ones(out.shape) for out in executor.outputs])
    assert all(np.isfinite(each.asnumpy()).all() for each in grads.values())
    assert ("_contrib_scaled_dot_product_attention" in operators_of(symbol)) == any(made is each for each in ATTENTION)


def test_attention_takes_any_length() -> None:
    made = attending({"q": ("n", 2, "l", 4), "k": ("n", 2, "l", 4), "v": ("n", 2, "l", 4)}, is_causal=1)
    symbol, _, _ = import_model(made)
    for length in (1, 6):
        given = {name: numbers(3, 2, length, 4) for name in "qkv"}
        (found,) = symbol.bind(mx.cpu(), {name: mx.nd.array(value) for name, value in given.items()}).forward()
        (want,) = onnx.reference.ReferenceEvaluator(made).run(None, given)
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("inputs, attrs, words", [
    ({"q": (2, 3, 23), "k": (2, 5, 12), "v": (2, 5, 14)}, {"q_num_heads": 4, "kv_num_heads": 2},
     "Q has 23 elements for each position, which cannot be divided among 4 heads"),
    ({**QKV, "past_k": (2, 2, 2, 6)}, {}, "expected both past_key and past_value, or neither"),
])
def test_attention_refuses_wrong_inputs(inputs: Mapping[str, Sequence[Any]], attrs: Mapping[str, Any],
                                        words: str) -> None:
    with pytest.raises(OpError, match=words):
        import_model(attending(inputs, **attrs))


# ------------------------------------------------------------------------------- numbers and indices of symbols


def test_single_numbers_are_attributes() -> None:
    """A number in the model is no argument of the symbol, and a power with it is the operator for numbers."""
    made = model([helper.make_node("Pow", ["x", "two"], ["a"]), helper.make_node("Mul", ["half", "a"], ["b"]),
                  helper.make_node("Sub", ["one", "b"], ["c"]), helper.make_node("Div", ["c", "three"], ["y"])],
                 {"x": (2, 3)}, ["y"], {"two": np.array(2), "half": np.array([0.5], np.float32),
                                        "one": np.array(1, np.float32), "three": np.array(3, np.float32)})
    made.graph.node.insert(0, helper.make_node("Constant", [], ["half"], value=made.graph.initializer.pop(1)))
    symbol, args, _ = import_model(made)
    assert symbol.list_arguments() == ["x"] and not args
    x = numbers(2, 3)
    (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x)}).forward()
    np.testing.assert_allclose(found.asnumpy(), (1 - 0.5 * x ** 2) / 3, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "inputs", "ours"), [
    ("Clip", ["x", "low", "high"], ["clip"]), ("Clip", ["x", "", "high"], ["_minimum_scalar"]),
    ("Clip", ["x", "low"], ["_maximum_scalar"]), ("Max", ["x", "low"], ["_maximum_scalar"]),
    ("Min", ["high", "x"], ["_minimum_scalar"]), ("Sum", ["x", "low", "high"], ["_plus_scalar"] * 2)])
def test_single_bounds_are_attributes(name: str, inputs: list[str], ours: list[str]) -> None:
    made = model([helper.make_node(name, inputs, ["y"])], {"x": (3, 4)}, ["y"],
                 {"low": np.array(-0.5, np.float32), "high": np.array(0.5, np.float32)})
    symbol, args, _ = import_model(made)
    assert symbol.list_arguments() == ["x"] and not args and operators_of(symbol) == ours
    x = numbers(3, 4)
    (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x)}).forward()
    (want,) = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_array_equal(found.asnumpy(), want)


def test_a_scalar_operand_with_more_axes_adds_axes() -> None:
    made = model([helper.make_node("Constant", [], ["one"], value=numpy_helper.from_array(np.ones((1, 1), np.float32))),
                  helper.make_node("Add", ["x", "one"], ["y"])], {"x": (3,)}, ["y"])
    assert import_to_cell(made)(mx.Tensor(numbers(3))).shape == (1, 3)


@pytest.mark.parametrize("at", [0, 2, -1])
def test_a_single_index_is_a_view(at: int) -> None:
    made = model([helper.make_node("Gather", ["x", "at"], ["y"], axis=1)], {"x": (2, 3, 4)}, ["y"],
                 {"at": np.array(at)})
    symbol, args, _ = import_model(made)
    assert "take" not in operators_of(symbol)
    x = numbers(2, 3, 4)
    (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
    np.testing.assert_array_equal(found.asnumpy(), x[:, at])


@pytest.mark.parametrize("made, places", [
    (model([helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1)],
           {"x": (2, 4), "i": (2, 2), "u": (2, 2)}, ["y"], opset=18), [[0, -1], [2, 1]]),
    (model([helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction="add")],
           {"x": (3, 2), "i": (2, 2), "u": (2, 2)}, ["y"], opset=18), [[0, -1], [0, 1]]),
    (model([helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction="add")],
           {"x": (3, 4), "i": (2, 1), "u": (2, 4)}, ["y"], opset=18), [[2], [-1]]),
    (model([helper.make_node("ScatterND", ["x", "i", "u"], ["y"])],
           {"x": (3, 4), "i": (2, 2), "u": (2,)}, ["y"], opset=18), [[2, -1], [-3, 0]]),
    (model([helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=1)],
           {"x": (2, 4), "i": (2, 1)}, ["y"], opset=18), [[3], [-2]]),
], ids=range(5))
def test_indices_may_be_inputs(made: Any, places: list[Any]) -> None:
    """Symbols scatter and gather at indices that are inputs."""
    made.graph.input[1].type.tensor_type.elem_type = 7
    given = {info.name: numbers(*[dim.dim_value for dim in info.type.tensor_type.shape.dim])
             for info in made.graph.input}
    given["i"] = np.array(places, np.int64)
    (want,) = onnx.reference.ReferenceEvaluator(made).run(None, given)
    symbol, args, _ = import_model(made)
    held = {name: mx.nd.array(value, dtype=value.dtype) for name, value in given.items()}
    (found,) = symbol.bind(mx.cpu(), {**held, **args}).forward()
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("places", [np.array([1]), np.array([2, -1]), np.array([0, 1, 3]), np.zeros((0, 2), np.int64)])
def test_indices_along_one_axis_name_one_position(places: np.ndarray, computed: bool) -> None:
    """Indices along one axis name one position, which GatherND reads and ScatterND writes."""
    made = model([helper.make_node("GatherND", ["x", "i"], ["y"]), helper.make_node("Neg", ["y"], ["u"]),
                  helper.make_node("ScatterND", ["x", "i", "u"], ["z"])], {"x": (3, 2, 4)}, ["y", "z"],
                 {} if computed else {"i": places})
    x = numbers(3, 2, 4)
    given, shapes = [x], {"x": x.shape}
    if computed:
        made.graph.input.append(helper.make_tensor_value_info("i", 7, places.shape))
        given, shapes = [x, places], {"x": x.shape, "i": places.shape}
    read = x[tuple(np.moveaxis(places, -1, 0))]
    written = x.copy()
    written[tuple(np.moveaxis(places, -1, 0))] = -read
    symbol, args, _ = import_model(made, shapes)
    bound = {**args, **{name: mx.nd.array(each, dtype=each.dtype) for name, each in zip(shapes, given)}}
    for found in (import_to_cell(made)(*map(mx.Tensor, given)), symbol.bind(mx.cpu(), bound).forward()):
        for one, want in zip(found, (read, written)):
            np.testing.assert_array_equal(one.asnumpy(), want)


def _pooled(x: np.ndarray, kind: str, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], ceil: int,
            include: int) -> np.ndarray:
    """Pooling by ONNX's definition: an axis is padded at both ends, and no window begins after the array."""
    spans = []
    for n, k, s, p, q in zip(x.shape[2:], kernel, strides, pads[:2], pads[2:]):
        begins = [i * s for i in range(n + p + q) if i * s + (1 if ceil else k) <= n + p + (0 if ceil else q)]
        begins = [each for each in begins if each - s + k < n + p + q or not each]
        spans.append([(each, min(each + k, n + p + q)) for each in begins])
    frame = [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])]
    counted = np.pad(np.ones_like(x), frame, constant_values=include)
    data = np.pad(x, frame, constant_values=-np.inf if kind == "MaxPool" else 0)
    out = np.empty((*x.shape[:2], *map(len, spans)), np.float32)
    for i, (top, bottom) in enumerate(spans[0]):
        for j, (left, right) in enumerate(spans[1]):
            part = (..., slice(top, bottom), slice(left, right))
            out[..., i, j] = (data[part].max((2, 3)) if kind == "MaxPool" else
                              data[part].sum((2, 3)) / counted[part].sum((2, 3)))
    return out


@pytest.mark.parametrize("kind, include", [("MaxPool", 0), ("AveragePool", 0), ("AveragePool", 1)])
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("kernel, strides, pads", [
    ((3, 3), (2, 2), (0, 0, 1, 1)), ((3, 3), (2, 2), (1, 1, 0, 0)), ((3, 2), (2, 3), (1, 0, 1, 0)),
    ((2, 2), (2, 2), (0, 0, 0, 0)), ((4, 2), (1, 1), (1, 0, 2, 1)), ((2, 3), (3, 4), (1, 2, 1, 2))])
@pytest.mark.parametrize("size", [(6, 7), (9, 8)])
def test_windows_of_uneven_padding_are_pooled(kind: str, include: int, ceil: int, kernel: tuple[int, ...],
                                              strides: tuple[int, ...], pads: tuple[int, ...],
                                              size: tuple[int, int]) -> None:
    """Uneven padding and rounded lengths become one pooling, with ONNX's values."""
    words = {} if kind == "MaxPool" else {"count_include_pad": include}
    made = model([helper.make_node(kind, ["x"], ["y"], kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=ceil,
                                   **words)], {"x": ("n", 2, *size)}, ["y"], opset=19)
    x = numbers(2, 2, *size)
    symbol, args, _ = import_model(made)
    out = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()[0].asnumpy()
    np.testing.assert_allclose(out, _pooled(x, kind, kernel, strides, pads, ceil, include), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(import_to_cell(made)(mx.Tensor(x)).asnumpy(), out)
    assert "Pooling" in operators_of(symbol) and "take" not in operators_of(symbol)


def separate(*shape: int) -> np.ndarray:
    """Values with large distances from each other."""
    return (np.random.default_rng(shape).permutation(int(np.prod(shape))).reshape(shape) - 2.5).astype(np.float32)


@pytest.mark.parametrize("reduction, best", [("max", np.maximum), ("min", np.minimum)])
@pytest.mark.parametrize("name", ["ScatterElements", "ScatterND"])
def test_scatter_keeps_the_largest_or_the_smallest_update(name: str, reduction: str, best: Any) -> None:
    """The gradient goes to the largest value at each position, in equal parts to several."""
    x, updates = separate(4, 3), separate(5, 3)[::-1].copy()
    updates[0, 0] = x[0, 0]
    rows = np.array([0, 3, 3, -2, 0])
    places = rows[:, None] if name == "ScatterND" else np.repeat(rows[:, None], 3, 1)
    made = model([helper.make_node(name, ["x", "i", "u"], ["y"], reduction=reduction)],
                 {"x": x.shape, "u": updates.shape}, ["y"], {"i": places}, opset=18)
    wanted = x.copy()
    best.at(wanted, rows, updates)
    there, given = x == wanted, updates == wanted[rows]
    count = there.astype(np.float32)
    np.add.at(count, rows, given)
    weights = separate(4, 3)
    cell = import_to_cell(made)
    by_x, by_updates = mx.grad(lambda *ins: (cell(*ins) * mx.Tensor(weights)).sum(), (0, 1))(
        mx.Tensor(x), mx.Tensor(updates))
    np.testing.assert_array_equal(cell(mx.Tensor(x), mx.Tensor(updates)).asnumpy(), wanted)
    np.testing.assert_allclose(by_x.asnumpy(), there * weights / count, rtol=1e-6)
    np.testing.assert_allclose(by_updates.asnumpy(), given * (weights / count)[rows], rtol=1e-6)
    symbol, args, _ = import_model(made)
    bound = {"x": mx.nd.array(x), "u": mx.nd.array(updates), **args}
    np.testing.assert_array_equal(symbol.bind(mx.cpu(), bound).forward()[0].asnumpy(), wanted)


def test_a_product_of_updates_has_no_gradient() -> None:
    """A request for one raises an error, instead of giving zeros."""
    made = model([helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction="mul")], {"x": (4,), "u": (2,)},
                 ["y"], {"i": np.array([[1], [1]])}, opset=18)
    cell = import_to_cell(made)
    x, u = mx.Tensor(np.float32([1, 2, 3, 4])), mx.Tensor(np.float32([5, 6]))
    np.testing.assert_array_equal(cell(x, u).asnumpy(), [1, 60, 3, 4])
    with pytest.raises(ArgumentError, match="ScatterND: there is no gradient with reduction='mul'"):
        mx.grad(lambda *ins: cell(*ins).sum(), (0, 1))(x, u)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot_takes_computed_classes(axis: int) -> None:
    """OneHot of computed classes is a symbol, and its two values can be trained; an unknown class gives the off
    value."""
    made = model([helper.make_node("Cast", ["x"], ["c"], to=7),
                  helper.make_node("OneHot", ["c", "depth", "values"], ["y"], axis=axis)], {"x": ("n", 3)}, ["y"],
                 {"depth": np.array(4), "values": np.float32([0.5, 2])})
    x = np.float32([[0, 3, -1], [-4, 4, -5]])
    wanted = np.moveaxis(np.where(np.arange(4) == np.int64([[0, 3, 3], [0, 9, 9]])[..., None], 2, 0.5), -1, axis)
    symbol, args, _ = import_model(made)
    (bound,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
    for found in (import_to_cell(made)(mx.Tensor(x)), bound):
        np.testing.assert_array_equal(found.asnumpy(), wanted)
    cell = import_to_cell(made)
    (by_values,) = mx.grad(lambda x: cell(x).sum(), None, cell.trainable_params())(mx.Tensor(x))
    np.testing.assert_array_equal(by_values.asnumpy(), [20, 4])


def test_pooling_with_positions_of_maxima_and_unpooling_are_imported() -> None:
    """Pooling with positions of maxima, and unpooling by them, are symbols that can be trained."""
    made = model([helper.make_node("MaxPool", ["x"], ["p", "i"], kernel_shape=[2, 2], strides=[2, 2]),
                  helper.make_node("MaxUnpool", ["p", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
                 {"x": (2, 3, 4, 6)}, ["y", "i"])
    x = separate(2, 3, 4, 6)
    windows = x.reshape(2, 3, 2, 2, 3, 2)
    kept = (windows == windows.max((3, 5), keepdims=True)).reshape(x.shape)
    symbol, args, _ = import_model(made)
    for y, places in (import_to_cell(made)(mx.Tensor(x)),
                      symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()):
        np.testing.assert_array_equal(y.asnumpy(), np.where(kept, x, 0))
        np.testing.assert_array_equal(np.sort(places.asnumpy().reshape(-1)), np.flatnonzero(kept))
        assert places.dtype == np.int64
    cell = import_to_cell(made)
    gradient = mx.grad(lambda x: (cell(x)[0] * mx.Tensor(x.asnumpy())).sum(), 0)(mx.Tensor(x))
    np.testing.assert_array_equal(gradient.asnumpy(), np.where(kept, x, 0))


def regions(mode: str = "avg") -> Any:
    return model([helper.make_node("RoiAlign", ["x", "rois", "batch"], ["y"], mode=mode, output_height=2,
                                   output_width=3, sampling_ratio=2)], {"x": (2, 2, 5, 6)}, ["y"],
                 {"rois": np.float32([[0.5, 1, 4, 3.5], [1, 0, 5, 4]]), "batch": np.array([1, 0])})


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_gradients_reach_the_images_of_regions(mode: str) -> None:
    cell, x = import_to_cell(regions(mode)), separate(2, 2, 5, 6)
    out = cell(mx.Tensor(x))
    gradient = mx.grad(lambda x: (cell(x) * mx.Tensor(out.asnumpy())).sum(), 0)(mx.Tensor(x)).asnumpy()
    assert np.abs(gradient).max() > 0
    np.testing.assert_allclose((gradient * x).sum(), (out.asnumpy() ** 2).sum(), rtol=1e-4)  # as for a linear function


def quantized(kind: str) -> Any:
    """A layer of integers whose scales are parameters, with its quantized input."""
    bytes_ = np.random.default_rng(7).integers(-100, 100, (4, 3), dtype=np.int8)
    more = {"w": bytes_, "ws": np.linspace(0.01, 0.04, 3, dtype=np.float32), "wz": np.array([1, 0, -2], np.int8),
            "xs": np.array([0.02], np.float32), "xz": np.array(3, np.uint8), "ys": np.array([0.05], np.float32),
            "b": np.array([10, -20, 30], np.int32), "bs": np.array([0.001], np.float32),
            "k": np.random.default_rng(8).integers(-100, 100, (3, 4, 1, 2), dtype=np.int8), "kz": np.zeros(3, np.int8)}
    enter = ("QuantizeLinear", "x xs xz", "q")
    steps: dict[str, list[Any]] = {
        "QDQ": [enter, ("DequantizeLinear", "q xs xz", "d"), ("DequantizeLinear", "w ws wz", "wd", {"axis": 1}),
                ("MatMul", "d wd", "m"), ("DequantizeLinear", "b bs", "bd"), ("Add", "m bd", "y")],
        "MatMulInteger": [("DynamicQuantizeLinear", "x", "q"), ("MatMulInteger", "q w dz wz", "i"),
                          ("Cast", "i", "y", {"to": 1})],
        "QLinearMatMul": [enter, ("QLinearMatMul", "q xs xz w ws wz ys xz", "r"), ("DequantizeLinear", "r ys xz", "y")],
        "ConvInteger": [("Unsqueeze", "x last", "u"), ("Concat", "u u", "c", {"axis": 3}),
                        ("QuantizeLinear", "c xs xz", "q"),
                        ("ConvInteger", "q k xz", "i"), ("Cast", "i", "y", {"to": 1})],
        "QLinearConv": [("Unsqueeze", "x last", "u"), ("Concat", "u u", "c", {"axis": 3}),
                        ("QuantizeLinear", "c xs xz", "q"),
                        ("QLinearConv", "q xs xz k ws kz ys xz b", "r"), ("DequantizeLinear", "r ys xz", "y")]}
    nodes = chain(*steps[kind])
    if kind == "MatMulInteger":
        nodes[0].output.extend(["ds", "dz"])
    return model(nodes, {"x": ("n", 4)}, ["y"], {**more, "last": np.array([2, 3])}, opset=19)


@pytest.mark.parametrize("kind", ["QDQ", "MatMulInteger", "QLinearMatMul", "ConvInteger", "QLinearConv"])
def test_layers_of_integers_are_symbols(kind: str) -> None:
    """Symbols for any batch size give the values of ONNX's reference evaluator, also after a second export."""
    made = quantized(kind)
    symbol, args, _ = import_model(made)
    again = mx.onnx.to_model(symbol, (2, 4), params=args, dynamic={"x": {0: "n"}}, opset_version=19)
    onnx.checker.check_model(again, full_check=True)
    for rows in (2, 5):
        x = numbers(rows, 4)
        want = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x})[0]
        found = symbol.bind(mx.cpu(), {**args, "x": mx.nd.array(x)}).forward()[0].asnumpy()
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(import_to_cell(made)(mx.Tensor(x)).asnumpy(), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(onnx.reference.ReferenceEvaluator(again).run(None, {"x": x})[0], want, rtol=1e-5,
                                   atol=1e-6)


@pytest.mark.parametrize("computed", [True, False])
@pytest.mark.parametrize("size, zero", [(1, 0), (127, 0), (100, -27)])
def test_sums_of_bytes_are_exact(size: int, zero: int, computed: bool) -> None:
    """Sums are exact whether or not float32 holds them; constant weights tell in advance."""
    weight = np.full((601, 2), size, np.int8) * np.int8([1, -1])
    more: dict[str, Any] = {"w": weight, "z": np.int8(zero), "zero": np.uint8(0), "one": np.float32(1)}
    steps = [("QuantizeLinear", "x one zero", "q"), ("MatMulInteger", f"q {'v' if computed else 'w'} zero z", "i"),
             ("Cast", "i", "y", {"to": 11})]
    if computed:  # known only when the graph runs
        steps = [("ReduceMin", "x", "least", {"keepdims": 0}), ("Mul", "least zeros", "none"), ("Cast", "w", "f", {
            "to": 1}), ("Add", "f none", "g"), ("Cast", "g", "v", {"to": 3}), *steps]
        more["zeros"] = np.float32(0)
    made = model(chain(*steps), {"x": (1, 601)}, ["y"], more)
    x = np.full((1, 601), 255, np.float32)
    want = (x.astype(np.int64) @ (weight.astype(np.int64) - zero))
    symbol, args, _ = import_model(made)
    (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
    for result in (import_to_cell(made)(mx.Tensor(x)), found):
        np.testing.assert_array_equal(result.asnumpy(), want)


# ------------------------------------------------------------------------------------------- halves


@pytest.mark.parametrize("states", ["half", "FLOAT"])
@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16"])
def test_norms_in_half_precision_keep_the_dtype_of_the_input(kind: str, states: str) -> None:
    """Moving statistics have the input's dtype or another; the result has the input's."""
    half = getattr(onnx.TensorProto, kind)
    kinds = [helper.tensor_dtype_to_np_dtype(each) for each in (half, half if states == "half" else 1)]
    made = model(chain(("Cast", "x", "h", {"to": half}), ("BatchNormalization", "h s b m v", "n"),
                       ("Cast", "n", "y", {"to": 1})), {"x": (2, 3, 4)}, ["y"],
                 {"s": np.array([1, 2, 0.5], kinds[0]), "b": np.array([0, 1, -1], kinds[0]),
                  "m": np.array([0.5, 0, -0.5], kinds[1]), "v": np.array([1, 4, 0.25], kinds[1])})
    x = numbers(2, 3, 4)
    s, b, m, v = (np.float32(each).reshape(3, 1) for each in ([1, 2, 0.5], [0, 1, -1], [0.5, 0, -0.5], [1, 4, 0.25]))
    found = import_to_cell(made)(mx.Tensor(x)).asnumpy()
    np.testing.assert_allclose(found, (x - m) / np.sqrt(v) * s + b, atol=2e-3 if kind == "FLOAT16" else 2e-2)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("kind, other", [("FLOAT16", "FLOAT"), ("FLOAT", "FLOAT16")])
def test_a_grid_may_have_another_dtype_than_the_image(kind: str, other: str, mode: str) -> None:
    """The grid has a dtype of its own; the result has the image's."""
    made = model(chain(("Cast", "x", "h", {"to": getattr(onnx.TensorProto, kind)}),
                       ("Cast", "g", "p", {"to": getattr(onnx.TensorProto, other)}),
                       ("GridSample", "h p", "y", {"mode": mode})), {"x": (2, 3, 4, 5), "g": (2, 3, 2, 2)}, ["y"],
                 opset=20)
    plain = model(chain(("GridSample", "x g", "y", {"mode": mode})), {"x": (2, 3, 4, 5), "g": (2, 3, 2, 2)}, ["y"],
                  opset=20)
    x, places = numbers(2, 3, 4, 5), np.round(numbers(2, 3, 2, 2), 1) * 0.9
    found = import_to_cell(made)(mx.Tensor(x), mx.Tensor(places)).asnumpy()
    assert found.dtype == {"FLOAT16": np.float16, "FLOAT": np.float32}[kind]
    np.testing.assert_allclose(found, import_to_cell(plain)(mx.Tensor(x), mx.Tensor(places)).asnumpy(), atol=1e-2)


# ----------------------------------------------------------------------------- ONNX Runtime's quantized operators


def bytes_of(x: np.ndarray, scale: float, zero: int) -> np.ndarray:
    return np.clip(np.rint(x / np.float32(scale)) + zero, 0, 255).astype(np.uint8)


def real(numbers: np.ndarray, scale: float, zero: int) -> np.ndarray:
    return (numbers.astype(np.float32) - zero) * np.float32(scale)


def windows(x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2).mean((3, 5))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


#: An operator, its inputs behind the quantized image ``a`` (``b`` is another), attributes, and its real values.
MICROSOFT: dict[str, tuple[str, dict[str, Any], Any]] = {
    "QLinearAdd": ("a sa za b sb zb sy zy", {}, lambda a, b: a + b),
    "QLinearMul": ("a sa za b sb zb sy zy", {}, lambda a, b: a * b),
    "QLinearSigmoid": ("a sa za sy zy", {}, lambda a, b: 1 / (1 + np.exp(-a))),
    "QLinearLeakyRelu": ("a sa za sy zy", {"alpha": 0.3}, lambda a, b: np.where(a > 0, a, a * np.float32(0.3))),
    "QLinearSoftmax": ("a sa za sy zy", {"axis": -1, "opset": 13}, lambda a, b: softmax(a)),
    "QLinearSoftmax of all axes": ("a sa za sy zy", {"axis": 1, "opset": 11}, lambda a, b: softmax(
        a.reshape(len(a), -1)).reshape(a.shape)),
    "QLinearAveragePool": ("a sa za sy zy", {"kernel_shape": [2, 2], "strides": [2, 2]}, lambda a, b: windows(a)),
    "QLinearAveragePool of last channels": (
        "a sa za sy zy", {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": 1},
        lambda a, b: windows(a.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)),
    "QLinearGlobalAveragePool": ("a sa za sy zy", {"channels_last": 0}, lambda a, b: a.mean((2, 3), keepdims=True)),
    "QLinearConcat": ("sy zy a sa za b sb zb", {"axis": 1}, lambda a, b: np.concatenate([a, b], 1)),
    "QLinearWhere": ("which a sa za b sb zb sy zy", {}, lambda a, b: np.where(WHICH, a, b)),
}
WHICH = np.arange(4) % 2 == 0


@of_each(MICROSOFT)
def test_quantized_operators_of_onnx_runtime_compute_real_values(title: str) -> None:
    """Values are dequantized, computed, and quantized again, in Cells and in symbols."""
    inputs, attrs, function = MICROSOFT[title]
    steps = {"a": (0.02, 120), "b": (0.03, 140), "y": (0.015, 110)}
    more: dict[str, Any] = {"which": WHICH}
    for name, (scale, zero) in steps.items():
        more.update({f"s{name}": np.float32(scale), f"z{name}": np.uint8(zero)})
    made = model([*chain(("QuantizeLinear", "x sa za", "a"), ("QuantizeLinear", "v sb zb", "b")),
                  helper.make_node(title.split()[0], inputs.split(), ["q"], domain="com.microsoft", **attrs),
                  *chain(("DequantizeLinear", "q sy zy", "y"))],
                 {"x": ("n", 2, 2, 4), "v": ("n", 2, 2, 4)}, ["y"], more)
    x, v = numbers(3, 2, 2, 4) * 2, numbers(3, 2, 2, 4) * 2
    a, b = (real(bytes_of(each, *steps[name]), *steps[name]) for each, name in ((x, "a"), (v, "b")))
    want = real(bytes_of(function(a, b), *steps["y"]), *steps["y"])
    symbol, args, _ = import_model(made, shapes={"x": x.shape})
    given = {name: mx.nd.array(each) for name, each in (("x", x), ("v", v)) if name in symbol.list_arguments()}
    (found,) = symbol.bind(mx.cpu(), {**given, **args}).forward()
    for result in (import_to_cell(made)(mx.Tensor(x), mx.Tensor(v)), found):
        np.testing.assert_allclose(result.asnumpy(), want, atol=1e-6)


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("turned", [0, 1])
def test_qgemm_without_an_output_scale_gives_real_values(turned: int, rounded: bool) -> None:
    """``QGemm`` gives real values if it gets no scale for its result."""
    weight = np.random.default_rng(3).integers(-100, 100, (3, 4), dtype=np.int8)
    scales, zeros = np.float32([0.01, 0.02, 0.005]), np.int8([0, 2, -1])
    bias = np.int32([100, -200, 0])
    more = {"w": weight if turned else np.ascontiguousarray(weight.T), "sw": scales, "zw": zeros, "c": bias,
            "sa": np.float32(0.02), "za": np.uint8(120), "sy": np.float32(0.03), "zy": np.uint8(100)}
    inputs = "a sa za w sw zw c" + (" sy zy" if rounded else "")
    made = model([*chain(("QuantizeLinear", "x sa za", "a")),
                  helper.make_node("QGemm", inputs.split(), ["q" if rounded else "y"], domain="com.microsoft",
                                   transB=turned, alpha=0.5),
                  *(chain(("DequantizeLinear", "q sy zy", "y")) if rounded else ())], {"x": (2, 4)}, ["y"], more)
    x = numbers(2, 4)
    whole = (bytes_of(x, 0.02, 120).astype(np.int64) - 120) @ (weight.T.astype(np.int64) - zeros) + bias
    want = whole * (0.5 * 0.02 * scales.astype(np.float64))
    want = real(bytes_of(want, 0.03, 100), 0.03, 100) if rounded else want
    np.testing.assert_allclose(import_to_cell(made)(mx.Tensor(x)).asnumpy(), want, rtol=1e-6, atol=1e-6)


def packed(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Rows of values of a few bits packed into bytes, lowest bits first."""
    each = 8 // bits
    wide = np.pad(numbers, [(0, 0), (0, -numbers.shape[1] % each)]).reshape(len(numbers), -1, each)
    return (wide << np.arange(0, 8, bits)).sum(-1).astype(np.uint8)


@pytest.mark.parametrize("zeros", ["none", "bytes", "floats"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_of_a_few_bits_are_unpacked(bits: int, zeros: str) -> None:
    """``MatMulNBits`` with a shorter last block in each row, and with gradients of its scales."""
    draw = np.random.default_rng(5)
    weight, scales = draw.integers(0, 2 ** bits, (3, 20)), draw.uniform(0.1, 0.2, (3, 2)).astype(np.float32)
    starts = np.full((3, 2), 2 ** (bits - 1)) if zeros == "none" else draw.integers(0, 2 ** bits, (3, 2))
    more = {"w": packed(np.pad(weight, [(0, 0), (0, 12)]), bits).reshape(3, 2, 2 * bits), "s": scales.reshape(-1),
            "z": packed(starts, bits).reshape(-1) if zeros == "bytes" else starts.astype(np.float32), "b": numbers(3)}
    inputs = ["x", "w", "s", "" if zeros == "none" else "z", "", "b"]
    made = model([helper.make_node("MatMulNBits", inputs, ["y"], domain="com.microsoft", K=20, N=3, block_size=16,
                                   bits=bits)], {"x": ("n", 20)}, ["y"], more)
    x = numbers(2, 20)
    steps = np.repeat(scales, 16, 1)[:, :20], np.repeat(starts, 16, 1)[:, :20]
    want = x @ ((weight - steps[1]) * steps[0]).T + more["b"]
    symbol, args, _ = import_model(made)
    (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
    cell = import_to_cell(made)
    for result in (cell(mx.Tensor(x)), found):
        np.testing.assert_allclose(result.asnumpy(), want, rtol=1e-5, atol=1e-5)
    assert "s" in [each.name for each in cell.trainable_params()]


@pytest.mark.parametrize("of_bytes", [True, False])
def test_a_quantized_embedding_table_is_imported(of_bytes: bool) -> None:
    """``GatherBlockQuantized`` with bytes that hold two values each, or with four-bit values."""
    draw = np.random.default_rng(6)
    table, scales = draw.integers(0, 16, (5, 32)), draw.uniform(0.1, 0.2, (5, 2)).astype(np.float32)
    starts = draw.integers(0, 16, (5, 2))
    small = np.dtype(helper.tensor_dtype_to_np_dtype(onnx.TensorProto.UINT4))
    more = {name: packed(each, 4) if of_bytes else each.astype(small) for name, each in (("t", table), ("z", starts))}
    made = model([helper.make_node("GatherBlockQuantized", ["t", "i", "s", "z"], ["g"], domain="com.microsoft",
                                   block_size=16, gather_axis=0, quantize_axis=1),
                  *chain(("Add", "x g", "y"))], {"x": ("n", 32)}, ["y"], {**more, "s": scales, "i": np.array([3, 1])})
    want = ((table - np.repeat(starts, 16, 1)) * np.repeat(scales, 16, 1))[[3, 1]]
    found = import_to_cell(made)(mx.Tensor(np.zeros((2, 32), np.float32)))
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-6)


def test_a_recurrent_layer_with_quantized_weights_is_imported() -> None:
    """``DynamicQuantizeLSTM`` computes the layer with dequantized weights, which are stored transposed."""
    draw = np.random.default_rng(9)
    w, r = draw.integers(-100, 100, (2, 8, 3), dtype=np.int8), draw.integers(-100, 100, (2, 8, 2), dtype=np.int8)
    more: dict[str, Any] = {"b": numbers(2, 16), "sw": np.float32([0.01, 0.02]), "zw": np.int8([3, -3]),
                            "sr": np.full((2, 8), 0.01, np.float32), "zr": np.zeros((2, 8), np.int8)}
    inputs = ["x", "w", "r", "b", "", "", "", "", "sw", "zw", "sr", "zr"]
    attrs = {"hidden_size": 2, "direction": "bidirectional"}
    own = model([helper.make_node("DynamicQuantizeLSTM", inputs, ["y"], domain="com.microsoft", **attrs)],
                {"x": (4, 2, 3)}, ["y"], {**more, "w": w.transpose(0, 2, 1).copy(),
                                          "r": r.transpose(0, 2, 1).copy()})
    plain = model([helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], **attrs)], {"x": (4, 2, 3)}, ["y"],
                  {"b": more["b"], "r": r * np.float32(0.01),
                   "w": (w - more["zw"][:, None, None].astype(np.float32)) * more["sw"][:, None, None]})
    x = mx.Tensor(numbers(4, 2, 3))
    np.testing.assert_allclose(import_to_cell(own)(x).asnumpy(), import_to_cell(plain)(x).asnumpy(), atol=1e-6)


def test_four_bit_constants_of_a_symbol_have_scales_as_parameters() -> None:
    """Weights of four bits have scales that are parameters."""
    small = np.dtype(helper.tensor_dtype_to_np_dtype(onnx.TensorProto.INT4))
    whole = np.random.default_rng(2).integers(-8, 8, (4, 3))
    made = model(chain(("DequantizeLinear", "w s z", "d", {"axis": 1}), ("MatMul", "x d", "y")), {"x": ("n", 4)}, ["y"],
                 {"w": whole.astype(small), "s": np.float32([0.1, 0.2, 0.3]), "z": np.array([1, 0, -1]).astype(small)},
                 opset=21)
    symbol, args, _ = import_model(made)
    x = numbers(2, 4)
    (found,) = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward()
    want = x @ ((whole - [1, 0, -1]) * np.float32([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op, inputs, attrs, words", [
    ("QLinearAdd", "a s", {}, "node 'q' .QLinearAdd.*: an input is missing"),
    ("QLinearSigmoid", "a s", {}, "node 'q' .QLinearSigmoid.*: an input is missing"),
    ("QLinearConcat", "s z a s", {"axis": 0}, "scale and zero point of each part, got 2 inputs"),
    ("QLinearSoftmax", "a s z s z", {}, "the attribute 'opset' is missing"),
    ("QLinearSoftmax", "a s z s z", {"opset": 0}, "opset=0: ONNX has no Softmax of this opset"),
    ("MatMulNBits", "x a s", {"K": 2, "N": 1, "block_size": 16, "bits": 3}, "bits=3: expected 2, 4 or 8"),
    ("MatMulNBits", "x a s", {"K": 2, "N": 1, "block_size": 16, "bits": 1 << 40}, "bits=1099511627776: expected"),
    ("GatherBlockQuantized", "a z s", {"bits": 1 << 40}, "bits=1099511627776: expected"),
    ("MatMulNBits", "x a s", {"K": 200, "N": 1, "block_size": 16}, "MatMulNBits"),
    ("QLinearConcat", "s z x s z", {"axis": helper.make_graph([], "b", [], [])}, "QLinearConcat does not fit"),
], ids=lambda each: each if isinstance(each, str) and each.isalnum() else "")
def test_mistakes_in_operators_of_onnx_runtime_are_refused(op: str, inputs: str, attrs: dict[str, Any],
                                                           words: str) -> None:
    made = model([helper.make_node(op, inputs.split(), ["y"], "q", domain="com.microsoft", **attrs)], {"x": (1, 2)},
                 ["y"], {"a": np.arange(2, dtype=np.uint8), "s": np.float32(0.1), "z": np.uint8(1)})
    with pytest.raises((FileFormatError, OpError), match=words):
        import_to_cell(made)(mx.Tensor(numbers(1, 2)))


@pytest.mark.parametrize("make", [counted, conditional])
def test_a_loop_of_many_rounds_takes_no_memory_as_a_node(make: Any) -> None:
    """A symbol of a loop does not grow with the largest number of rounds."""
    made = make()
    most = next(each for each in made.graph.initializer if each.name == "most")
    most.CopyFrom(numpy_helper.from_array(np.array(1 << 27), "most"))
    tracemalloc.start()
    try:
        symbol, _, _ = import_model(made)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20 and "_while_loop" in operators_of(symbol)

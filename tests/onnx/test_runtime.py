"""Models with operators that run as Python: ONNX Runtime agrees with the same graphs in opreg."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opreg.operator import CustomOp, CustomOpProp, define, register

import opreg as mx
from opreg.errors import ArgumentError
from opreg.symbol import Symbol, Variable

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime_extensions")

from opreg.onnx import export, inference_session, to_model  # noqa: E402  packages may be missing


@define(name="_example_runtime_scaled")
def scaled(x: Any, *, factor: float = 2.0, steps: tuple[int, ...] = (1,), limit: float | None = None) -> Any:
    y = np.asarray(x) * np.asarray(factor, x.dtype) + np.asarray(sum(steps), x.dtype)
    return y if limit is None else np.minimum(y, np.asarray(limit, x.dtype))


@define(name="_example_runtime_parts", outputs=("kept", "count"), types="T,T->T,int64")
def parts(x: Any, *more: Any) -> Any:
    return np.asarray(sum(map(np.asarray, more), start=np.asarray(x))), np.asarray([1 + len(more)], np.int64)


@define(name="_example_runtime_refusing")
def refusing(x: Any) -> Any:
    if np.any(x.asnumpy()):  # its shapes are found on zeros
        raise ZeroDivisionError("nothing is divided")
    return np.asarray(x)


@define(name="_example_runtime_around", traced=True)
def around(x: Any, *, factor: float = 3.0) -> Any:
    return mx.nd.tanh(scaled(x, factor=factor)) + 1


class Centred(CustomOp):
    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], in_data[0] - aux[0])


@register("_example_runtime_centred")
class CentredProp(CustomOpProp):
    def list_auxiliary_states(self) -> list[str]:
        return ["mean"]

    def infer_shape(self, in_shape: Any) -> Any:
        return in_shape, in_shape, [in_shape[0][1:]]

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> Any:
        return Centred()


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def _graphs() -> dict[str, Symbol]:
    x, y = Variable("x"), Variable("y")
    return {
        "one": scaled(x, factor=0.1),
        "attributes that differ": scaled(scaled(x, steps=(1, 2)), factor=3.0, limit=0.5) + scaled(x, factor=0.5),
        "several outputs": mx.sym.Group([*parts(mx.sym.relu(x)), *parts(y, x), parts(x, x)[0]]),
        "float16": mx.sym.cast(scaled(mx.sym.cast(x, "float16")), "float32") + 1,
        "integers": scaled(mx.sym.cast(x * 10, "int32"), factor=3.0),
        "a loop": mx.sym.contrib.foreach(lambda row, s: (scaled(row) + s, s + scaled(row, factor=3.0)), x,
                                         mx.sym.zeros((3,)))[0],
        "a function": around(x) + around(y, factor=0.5),
        "states": mx.sym.Custom(x, name="c", op_type="_example_runtime_centred"),
    }


@pytest.mark.parametrize("name", list(_graphs()))
def test_python_runs_in_onnx_runtime(name: str) -> None:
    symbol = _graphs()[name]
    given = {"x": _floats(2, 3), "y": _floats(2, 3)}
    given = {key: given[key] for key in symbol.list_arguments()}
    states = {key: mx.nd.array(_floats(3)) for key in symbol.list_auxiliary_states()}
    model = to_model(symbol, *given.values(), params=states)
    before = model.SerializeToString()
    executor = symbol.bind(mx.cpu(), {key: mx.nd.array(value) for key, value in given.items()}, grad_req="null",
                           aux_states=states)
    wanted = [out.asnumpy() for out in executor.forward()]
    for source in (model, before):
        found = inference_session(source).run(None, given)
        assert [each.dtype for each in found] == [want.dtype for want in wanted]
        for each, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(each, want, 1e-6, 1e-6)
    assert model.SerializeToString() == before


def test_a_session_reads_weights_beside_the_model(tmp_path: Any) -> None:
    file = str(tmp_path / "net.onnx")
    x, weight = _floats(2, 40), _floats(40, 30)
    export(scaled(mx.sym.dot(Variable("x"), Variable("w"))), file, x.shape, params={"w": mx.nd.array(weight)},
           dynamic=True, external_data=True)
    found, = inference_session(file).run(None, {"x": _floats(5, 40)})
    np.testing.assert_allclose(found, _floats(5, 40) @ weight * 2 + 1, 1e-5, 1e-5)


def test_errors_of_python_are_raised() -> None:
    """An error would otherwise end the process; the session can be used again."""
    x = Variable("x")
    session = inference_session(to_model(mx.sym.Group([refusing(x) @ x, scaled(x)]), (3, 3)))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="nothing is divided"):
            session.run(None, {"x": _floats(3, 3)})


def test_unregistered_operators_are_named() -> None:
    model = to_model(scaled(Variable("x")), (2, 3))
    model.graph.node[0].op_type = "_example_runtime_scald"
    with pytest.raises(ArgumentError, match="'_example_runtime_scald' is not registered"):
        inference_session(model)


def test_models_without_python_operators_run() -> None:
    session = inference_session(to_model(mx.sym.relu(Variable("x")), (2, 3)))
    np.testing.assert_array_equal(session.run(None, {"x": _floats(2, 3)})[0], np.maximum(_floats(2, 3), 0))

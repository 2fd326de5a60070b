"""``export`` with MindSpore's arguments: networks as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import nn, ops
from opreg.errors import ArgumentError


class Sum(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 2)
        self.drop = nn.Dropout(p=0.5)

    def construct(self, x: ms.Tensor, others: Any = ()) -> ms.Tensor:
        for each in others:
            x = x + each
        return self.drop(ops.relu(self.dense(x)))


X = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


@pytest.mark.parametrize("name", ["net", "net.onnx", Path("net.v2")], ids=str)
@pytest.mark.parametrize("inputs", [(X,), (X, (X, X)), (X, [X])], ids=["one", "tuple", "list"])
def test_a_file_computes_the_same_as_the_network(tmp_path: Path, name: str | Path, inputs: tuple[Any, ...]) -> None:
    pytest.importorskip("onnx")
    net = Sum().set_train()
    ms.export(net, *inputs, file_name=tmp_path / name, file_format="ONNX")
    assert net.training
    file, = tmp_path.iterdir()
    assert file.name == f"{str(name).removesuffix('.onnx')}.onnx"
    leaves = [inputs[0], *(inputs[1] if len(inputs) > 1 else ())]
    np.testing.assert_allclose(ms.onnx.import_to_cell(str(file))(*leaves).asnumpy(),
                               net.set_train(False)(*inputs).asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("given, said", [
    ({"file_format": "MINDIR"}, "export: files of MINDIR are not written, .*file_format='ONNX'.*save_checkpoint"),
    ({"file_format": "AIR"}, "export: files of AIR are not written"),
    ({"file_format": "onnx"}, "export: file_format must be 'ONNX', got 'onnx'"),
    ({"file_format": "ONNX", "enc_key": b"0123456789abcdef"}, "export: files are not encrypted")])
def test_invalid_exports_are_refused_and_write_nothing(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        ms.export(Sum(), X, file_name=str(tmp_path / "net"), **given)
    assert not any(tmp_path.iterdir())


def test_export_is_imported_from_several_modules() -> None:
    from opreg.train.serialization import export

    from opreg.train import export as of_train

    assert export is of_train is ms.export

"""Summaries: values that TensorBoard would find in their files, by a separate reader."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, nn
from opreg.errors import ArgumentError, ShapeError


def varint(file: io.BytesIO) -> int:
    number = shift = 0
    while True:
        (byte,) = file.read(1)
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number


def fields(message: bytes) -> dict[int, list[Any]]:
    """Fields of a message by their numbers."""
    found: dict[int, list[Any]] = {}
    file = io.BytesIO(message)
    while file.tell() < len(message):
        place, kind = divmod(varint(file), 8)
        value: Any = varint(file) if kind == 0 else struct.unpack("<d", file.read(8))[0] if kind == 1 else \
            file.read(varint(file)) if kind == 2 else struct.unpack("<f", file.read(4))[0]
        found.setdefault(place, []).append(value)
    return found


def events(folder: Path) -> Iterator[tuple[int, dict[str, dict[int, list[Any]]]]]:
    """Steps in the only file of a folder, and their values by tag."""
    (path,) = folder.iterdir()
    assert ".tfevents." in path.name
    file = io.BytesIO(path.read_bytes())
    first = True
    while header := file.read(12):
        (length,) = struct.unpack("<Q", header[:8])
        event = fields(file.read(length))
        file.read(4)
        if first:
            assert event[3] == [b"brain.Event:2"]
        else:
            values = map(fields, fields(event[5][0])[1])
            yield event[2][0], {value[1][0].decode(): value for value in values}
        first = False


def test_values_are_written_by_steps(tmp_path: Path) -> None:
    numbers = np.array([[0.0, 1.0, 4.0], [np.nan, 2.0, 3.0]], np.float32)
    with ms.SummaryRecord(tmp_path / "new", "run", "_end") as record:
        record.add_value("scalar", "loss", Tensor([0.5]))
        record.add_value("histogram", "weights", numbers)
        record.add_value("tensor", "table", Tensor(numbers))
        assert record.record(3)
        record.add_value("scalar", "loss", 2)
        record.add_value("scalar", "left out", 2)
        record.record(300, plugin_filter=lambda plugin: plugin == "histogram")
        record.record(301)
        record.add_value("scalar", "loss", np.float64(-1))
        record.flush()
        record.record(1000)
        assert record.log_dir == str(tmp_path / "new")
    record.close()
    assert not record.record(1001)
    (path,) = (tmp_path / "new").iterdir()
    assert path.name.startswith("run") and path.name.endswith("_end")
    (first, values), (last, others) = events(tmp_path / "new")
    assert (first, last) == (3, 1000)
    assert values["loss"][2] == [0.5] and others["loss"][2] == [-1.0]
    histogram = fields(values["weights"][5][0])
    assert [histogram[place][0] for place in (1, 2, 3, 4, 5)] == [0.0, 4.0, 5.0, 10.0, 30.0]
    ends, counts = (np.frombuffer(histogram[place][0], "<f8") for place in (6, 7))
    assert ends[-1] == 4.0 and counts.sum() == 5 and len(ends) == len(counts)
    table = fields(values["table"][8][0])
    assert [fields(each)[1] for each in fields(table[2][0])[2]] == [[2], [3]] and table[1] == [1]
    np.testing.assert_array_equal(np.frombuffer(table[4][0], "<f4").reshape(2, 3), numbers)


def test_an_image_is_a_picture(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    with ms.SummaryRecord(tmp_path) as record:
        record.add_value("image", "digits", Tensor(pixels))
        record.record(1)
    ((_, values),) = events(tmp_path)
    written = fields(values["digits"][4][0])
    assert (written[1], written[2], written[3]) == ([2], [2], [3])
    shown = np.asarray(image.open(io.BytesIO(written[4][0])))
    np.testing.assert_array_equal(shown, (pixels[0].transpose(1, 2, 0) * 255 / 11).astype(np.uint8))


@pytest.mark.parametrize("plugin, name, value, kind, text", [
    ("scalars", "a", 1, ArgumentError, "Did you mean 'scalar'"),
    ("scalar", "", 1, ArgumentError, "a value needs a name"),
    ("scalar", "a", [1, 2], ShapeError, "must be one number"),
    ("image", "a", np.zeros((2, 2)), ShapeError, "1 or 3 channels"),
])
def test_wrong_values_are_refused(plugin: str, name: str, value: Any, kind: type[Exception], text: str,
                                  tmp_path: Path) -> None:
    with ms.SummaryRecord(tmp_path) as record, pytest.raises(kind, match=text):
        record.add_value(plugin, name, value)


@pytest.mark.parametrize("settings, steps", [
    ({"collect_freq": 2}, [2, 4]), ({"collect_freq": 3}, [3]), ({"keep_default_action": False}, []),
    ({"collect_freq": 4, "keep_default_action": False, "collect_specified_data": {"collect_metric": True}}, [4]),
])
def test_a_collector_writes_the_loss(settings: dict[str, Any], steps: list[int], tmp_path: Path) -> None:
    net = nn.Dense(2, 1, "zeros", has_bias=False)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.25))
    batches = [([[0.0, 1.0]], [[2.0]])] * 2
    model.train(2, batches, callbacks=ms.SummaryCollector(tmp_path, **settings))
    losses = [4.0, 1.0, 0.25, 0.0625]
    assert [(step, values["loss/auto"][2]) for step, values in events(tmp_path)] == [
        (step, [losses[step - 1]]) for step in steps]

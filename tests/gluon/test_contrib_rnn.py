"""Recurrent cells of ``gluon.contrib``: results are those of MXNet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.gluon.contrib import rnn
from opreg.gluon.rnn import BidirectionalCell, LSTMCell

#: For each cell: a function that makes it, the shape of its inputs, its text, and MXNet's sums of outputs and of each
#: state.
CELLS: list[tuple[Callable[[], Any], tuple[int, ...], str, float, list[float]]] = [
    (lambda: rnn.Conv1DRNNCell((3, 8), 4, 3, 3), (3, 8), "Conv1DRNNCell(3 -> 4, tanh, NCW)", -5.73, [1.297]),
    (lambda: rnn.Conv2DLSTMCell((3, 8, 8), 4, 3, (3, 3), i2h_pad=1, activation="relu"), (3, 8, 8),
     "Conv2DLSTMCell(3 -> 16, relu, NCHW)", 285.215, [111.238, 231.375]),
    (lambda: rnn.Conv2DGRUCell((3, 8, 8), 4, (3, 3), (5, 3), h2h_dilate=2), (3, 8, 8),
     "Conv2DGRUCell(3 -> 12, tanh, NCHW)", 23.671, [4.225]),
    (lambda: rnn.Conv3DGRUCell((3, 4, 4, 4), 2, 3, 3, i2h_pad=1), (3, 4, 4, 4),
     "Conv3DGRUCell(3 -> 6, tanh, NCDHW)", 76.113, [34.376]),
    (lambda: rnn.LSTMPCell(6, 3), (5,), "LSTMPCell(5 -> 24 -> 3)", -1.674, [-0.68, 3.58]),
    (lambda: rnn.Conv3DRNNCell((1, 4, 4, 4), 2, 1, 1), (1, 4, 4, 4),
     "Conv3DRNNCell(1 -> 2, tanh, NCDHW)", -90.527, [-44.409]),
]


@pytest.mark.parametrize(("make", "shape", "text", "total", "states"), CELLS, ids=[text for _, _, text, _, _ in CELLS])
def test_unrolled_cells_give_the_results_of_mxnet(make: Callable[[], Any], shape: tuple[int, ...], text: str,
                                                  total: float, states: list[float]) -> None:
    cell, draw = make(), np.random.RandomState(0)
    cell.initialize()
    x = mx.nd.array(draw.uniform(size=(2, 3, *shape)))
    cell.unroll(3, x)
    for parameter in cell.collect_params().values():
        parameter.set_data(mx.nd.array(draw.uniform(-.5, .5, parameter.shape)))
    outputs, last = cell.unroll(3, x, merge_outputs=True)
    assert repr(cell) == text
    assert float(outputs.asnumpy().astype("float64").sum()) == pytest.approx(total, rel=1e-3, abs=2e-3)
    assert [float(state.asnumpy().sum()) for state in last] == pytest.approx(states, rel=1e-3, abs=2e-3)
    cell.hybridize()
    with mx.autograd.record():
        again, _ = cell.unroll(3, x, merge_outputs=True)
    again.backward()
    np.testing.assert_allclose(again.asnumpy(), outputs.asnumpy(), rtol=1e-4, atol=1e-5)
    assert all(np.isfinite(each.grad().asnumpy()).all() for each in cell.collect_params().values())


def test_steps_have_mxnets_names() -> None:
    cell = rnn.Conv2DLSTMCell((3, 8, 8), 4, 3, 3, prefix="c_")
    outputs, _ = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    assert mx.sym.Group(outputs).list_outputs() == ["c_t0_out_output", "c_t1_out_output"]
    assert cell.state_info(2) == [{"shape": (2, 4, 6, 6), "__layout__": "NCHW"}] * 2


@pytest.mark.parametrize(("call", "words"), [
    (lambda: rnn.Conv2DRNNCell((3, 8, 8), 4, 3, 2), "expected odd numbers"),
    (lambda: rnn.Conv2DRNNCell((3, 8, 8), 4, (3, 3, 3), 3), r"i2h_kernel=\(3, 3, 3\): expected a number, or 2"),
    (lambda: rnn.VariationalDropoutCell(BidirectionalCell(LSTMCell(2), LSTMCell(2)), drop_states=0.5), "two orders"),
])
def test_invalid_settings_of_cells_are_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(mx.errors.ArgumentError, match=words):
        call()


@pytest.mark.parametrize("states", [0.0, 0.5])
def test_variational_dropout_uses_one_mask_for_all_steps(states: float) -> None:
    mx.random.seed(3)
    cell = rnn.VariationalDropoutCell(LSTMCell(8, input_size=5), 0.3, states, 0.5)
    cell.initialize()
    x = mx.nd.random.uniform(shape=(6, 2, 5))
    with mx.autograd.record():
        outputs, _ = cell.unroll(6, x, layout="TNC", merge_outputs=True)
    dropped = (outputs.asnumpy() == 0).sum(axis=0)
    assert set(dropped.ravel().tolist()) == {0, 6}, "a number is dropped in every step, or in none"
    plain, _ = cell.unroll(6, x, layout="TNC", merge_outputs=True)
    assert (plain.asnumpy() != 0).all()


@pytest.mark.parametrize("layout", ["TNC", "NTC"])
@pytest.mark.parametrize("lengths", [None, [3, 5]])
def test_a_loop_equals_single_steps(layout: str, lengths: list[int] | None) -> None:
    cell = LSTMCell(4, input_size=5)
    cell.initialize(mx.init.Uniform(1))
    x = mx.nd.random.uniform(shape=(6, 2, 5) if layout == "TNC" else (2, 6, 5))
    valid = None if lengths is None else mx.nd.array(lengths)
    begin = cell.begin_state(batch_size=2)
    outputs, states = rnn.dynamic_unroll(cell, x, begin, layout=layout, valid_length=valid)
    expected, last = cell.unroll(6, x, begin, layout, merge_outputs=True, valid_length=valid)
    np.testing.assert_allclose(outputs.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
    for state, other in zip(states, last, strict=True):
        np.testing.assert_allclose(state.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-6)


def test_submodules_have_mxnets_names() -> None:
    from opreg.gluon.contrib.data.sampler import IntervalSampler
    from opreg.gluon.contrib.rnn.conv_rnn_cell import Conv1DRNNCell
    from opreg.gluon.contrib.rnn.rnn_cell import LSTMPCell

    from opreg.gluon.contrib import data

    assert Conv1DRNNCell is rnn.Conv1DRNNCell and LSTMPCell is rnn.LSTMPCell
    assert IntervalSampler is data.IntervalSampler

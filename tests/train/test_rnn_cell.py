"""Recurrent cells: outputs, formats of weights, and training on sentences."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, OpError, ShapeError
from tests.questions import of_each

nd, sym, rnn = mx.nd, mx.sym, mx.rnn


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(3)


def run(cell, length=3, shape=(2, 3, 5), weights=None, layout="NTC", merge=True, **more):
    """Outputs, states and weights of an unrolled cell on fixed numbers."""
    outputs, states = cell.unroll(length, sym.var("data"), layout=layout, merge_outputs=merge, **more)
    graph = sym.Group([*(outputs if isinstance(outputs, list) else [outputs]), *states])
    executor = graph.simple_bind(mx.cpu(), data=shape, grad_req="null")
    rng = np.random.default_rng(0)
    for name, held in executor.arg_dict.items():
        held[:] = nd.array(rng.normal(size=held.shape) * 0.5) if weights is None or name == "data" else weights[name]
    executor.forward()
    found = [each.asnumpy() for each in executor.outputs]
    return found, {name: value for name, value in executor.arg_dict.items() if name != "data"}


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_steps_are_the_formulas():
    data = np.random.default_rng(0).normal(size=(2, 3, 5)) * 0.5
    found, weights = run(rnn.LSTMCell(4, prefix=""))
    w = {name: value.asnumpy().astype(float) for name, value in weights.items()}
    h = c = np.zeros((2, 4))
    for t in range(3):
        gates = data[:, t] @ w["i2h_weight"].T + w["i2h_bias"] + h @ w["h2h_weight"].T + w["h2h_bias"]
        i, f, g, o = np.split(gates, 4, axis=1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        assert np.allclose(found[0][:, t], h, atol=1e-5)
    assert np.allclose(found[1], h, atol=1e-5) and np.allclose(found[2], c, atol=1e-5)

    found, weights = run(rnn.GRUCell(4, prefix=""))
    w = {name: value.asnumpy().astype(float) for name, value in weights.items()}
    h = np.zeros((2, 4))
    for t in range(3):
        ir, iz, io = np.split(data[:, t] @ w["i2h_weight"].T + w["i2h_bias"], 3, axis=1)
        hr, hz, ho = np.split(h @ w["h2h_weight"].T + w["h2h_bias"], 3, axis=1)
        z = _sigmoid(iz + hz)
        h = (1 - z) * np.tanh(io + _sigmoid(ir + hr) * ho) + z * h
        assert np.allclose(found[0][:, t], h, atol=1e-5)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("layers, both", [(1, False), (2, False), (1, True), (2, True)])
def test_fused_and_single_cells_compute_the_same(mode, layers, both):
    fused = rnn.FusedRNNCell(4, layers, mode, bidirectional=both, get_next_state=True, prefix="z_")
    expected, packed = run(fused)
    parts = fused.unpack_weights(packed)
    assert np.array_equal(fused.pack_weights(parts)["z_parameters"].asnumpy(), packed["z_parameters"].asnumpy())
    single = fused.unfuse()
    found, _ = run(single, weights=single.pack_weights(parts))
    assert np.allclose(found[0], expected[0], atol=1e-5)
    # Fused states hold all layers: outputs, then cells; single cells give theirs in turn.
    count = len(fused.state_info)
    for number, state in enumerate(found[1:]):
        assert np.allclose(state, expected[1 + number % count][number // count], atol=1e-5)


@pytest.mark.parametrize("make", [
    lambda: rnn.RNNCell(5), lambda: rnn.LSTMCell(5), lambda: rnn.GRUCell(5),
    lambda: rnn.FusedRNNCell(5, prefix="f_"), lambda: rnn.ResidualCell(rnn.GRUCell(5)),
    lambda: rnn.BidirectionalCell(rnn.LSTMCell(3, prefix="l_"), rnn.RNNCell(2, prefix="r_")),
])
def test_layouts_and_lists_give_the_same_values(make):
    whole, weights = run(make())
    steps, _ = run(make(), weights=weights, merge=False)
    assert all(np.allclose(whole[0][:, t], steps[t], atol=1e-6) for t in range(3))
    cell = make()
    outputs, _ = cell.unroll(3, sym.swapaxes(sym.var("data"), dim1=0, dim2=1), layout="TNC", merge_outputs=True)
    executor = outputs.simple_bind(mx.cpu(), data=(2, 3, 5), grad_req="null")
    executor.copy_params_from(weights, allow_extra_params=True)
    executor.arg_dict["data"][:] = nd.array(np.random.default_rng(0).normal(size=(2, 3, 5)) * 0.5)
    assert np.allclose(executor.forward()[0].asnumpy().swapaxes(0, 1), whole[0], atol=1e-6)


def test_stacks_pass_states_on():
    stack = rnn.SequentialRNNCell()
    for cell in (rnn.LSTMCell(4, prefix="a_"), rnn.DropoutCell(0.5), rnn.GRUCell(3, prefix="b_")):
        stack.add(cell)
    assert stack.state_shape == [(0, 4), (0, 4), (0, 3)]
    found, weights = run(stack)
    assert [each.shape for each in found] == [(2, 3, 3), (2, 4), (2, 4), (2, 3)]
    steps = [sym.var(f"x{t}") for t in range(3)]
    stack.reset()
    states, outputs = stack.begin_state(), []
    for step in steps:
        output, states = stack(step, states)
        outputs.append(output)
    data = np.random.default_rng(0).normal(size=(2, 3, 5)) * 0.5
    values = {f"x{t}": nd.array(data[:, t]) for t in range(3)}
    executor = sym.Group(outputs).bind(mx.cpu(), {**values, **weights})
    assert all(np.allclose(found[0][:, t], each.asnumpy(), atol=1e-5) for t, each in enumerate(executor.forward()))


@pytest.mark.parametrize("conv, plain", [
    (rnn.ConvRNNCell, rnn.RNNCell), (rnn.ConvLSTMCell, rnn.LSTMCell), (rnn.ConvGRUCell, rnn.GRUCell)])
def test_convolutions_of_single_pixels_are_products(conv, plain):
    pixel = dict(i2h_kernel=(1, 1), i2h_pad=(0, 0), h2h_kernel=(1, 1))
    one, other = conv((2, 5, 1, 1), 4, prefix="c_", activation="tanh", **pixel), plain(4, prefix="c_")
    rng, steps = np.random.default_rng(0), [sym.var(f"t{i}") for i in range(3)]
    data = {f"t{i}": rng.normal(size=(2, 5)) for i in range(3)}
    outputs, states = other.unroll(3, steps)
    net = sym.Group([*outputs, *states])
    shapes = dict(zip(net.list_arguments(), net.infer_shape(t0=(2, 5), t1=(2, 5), t2=(2, 5))[0]))
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items() if name.startswith("c_")}
    expected = net.eval(**{name: nd.array(value) for name, value in {**data, **weights}.items()})
    outputs, states = one.unroll(3, steps)
    images = {name: nd.array(value.reshape(*value.shape, 1, 1) if value.ndim == 2 else value)
              for name, value in {**data, **weights}.items()}
    found = sym.Group([*outputs, *states]).eval(**images)
    for left, right in zip(found, expected):
        np.testing.assert_allclose(left.asnumpy().reshape(right.shape), right.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell, gates, states", [
    (rnn.ConvRNNCell, 1, 1), (rnn.ConvLSTMCell, 4, 2), (rnn.ConvGRUCell, 3, 1)])
def test_convolutional_cells_read_windows(cell, gates, states):
    made = cell(input_shape=(2, 3, 16, 10), num_hidden=5, i2h_stride=(2, 2), h2h_kernel=(3, 5), h2h_dilate=(2, 1))
    outputs, after = made.unroll(2, [sym.var("a"), sym.var("b")])
    net = sym.Group(outputs)
    shapes, out, _ = net.infer_shape(a=(2, 3, 16, 10), b=(2, 3, 16, 10))
    found = dict(zip(net.list_arguments(), shapes))
    assert out == [(2, 5, 8, 5)] * 2 and len(after) == states
    assert [each["shape"] for each in made.state_info] == [(0, 5, 8, 5)] * states
    name = cell.__name__.removesuffix("Cell") + "_"
    assert found[f"{name}i2h_weight"] == (5 * gates, 3, 3, 3) and found[f"{name}h2h_weight"] == (5 * gates, 5, 3, 5)
    assert net.list_outputs() == [f"{name}t0_out_output", f"{name}t1_out_output"]
    module = mx.mod.Module(net, ["a", "b"], None)
    module.bind([("a", (2, 3, 16, 10)), ("b", (2, 3, 16, 10))])
    module.init_params(mx.init.One())
    args, _ = module.get_params()
    assert not args[f"{name}i2h_bias"].asnumpy().any()
    packed = made.pack_weights(made.unpack_weights(args))
    assert all(np.array_equal(packed[each].asnumpy(), value.asnumpy()) for each, value in args.items())


def test_programs_unroll_with_variables_of_their_own():
    with pytest.warns(DeprecationWarning, match=r"cell\.unroll"):
        outputs, _ = rnn.rnn_unroll(rnn.RNNCell(3, prefix="x_"), 2, input_prefix="in_")
    assert [name for name in sym.Group(outputs).list_arguments() if name.startswith("in_")] == \
        ["in_t0_data", "in_t1_data"]


def test_zoneout_keeps_some_elements_of_the_previous_step():
    cell = rnn.ZoneoutCell(rnn.RNNCell(50, prefix="q_"), zoneout_states=0.5)
    outputs, states = cell.unroll(2, sym.var("data"), merge_outputs=True)
    executor = sym.Group([outputs, *states]).simple_bind(mx.cpu(), data=(4, 2, 5))
    for held in executor.arg_arrays:
        held[:] = mx.nd.random.normal(shape=held.shape)
    mixed, last = executor.forward(is_train=True)[1].asnumpy(), executor.outputs[0].asnumpy()[:, 1]
    kept = mixed == last
    assert 0.3 < kept.mean() < 0.7  # the rest is the state of the step before
    plain, _ = run(rnn.ZoneoutCell(rnn.RNNCell(4, prefix="q_"), 0.3, 0.3))
    assert np.allclose(plain[0], run(rnn.RNNCell(4, prefix="q_"))[0][0])  # nothing stays outside training


def test_weights_are_shared_through_params_and_begin_as_they_should():
    params = rnn.RNNParams("s_")
    outputs = [rnn.LSTMCell(4, prefix="s_", params=params).unroll(1, sym.var(name), merge_outputs=True)[0]
               for name in ("a", "b")]
    assert (outputs[0] + outputs[1]).list_arguments().count("s_i2h_weight") == 1
    bias = params.get("i2h_bias")
    held = nd.zeros(16)
    mx.init.Xavier()(mx.init.InitDesc("s_i2h_bias", bias.list_attr()), held)
    assert held.asnumpy().reshape(4, 4).tolist() == [[0] * 4, [1] * 4, [0] * 4, [0] * 4]


def test_parts_of_the_fused_array_are_initialized_separately():
    cell = rnn.FusedRNNCell(4, 2, "lstm", prefix="z_", forget_bias=2.0)
    size = 16 * (5 + 4) + 16 * (4 + 4) + 4 * 16
    held = nd.zeros(size)
    desc = mx.init.InitDesc("z_parameters", cell.params.get("parameters").list_attr(), mx.init.Constant(7))
    mx.init.Constant(7)(desc, held)
    for name, part in cell.unpack_weights({"z_parameters": held}).items():
        assert (part.asnumpy() == (7 if name.endswith("weight") else 2 if name.endswith("f_bias") else 0)).all(), name


def test_sequential_cells_take_params_and_residual_cells_pass_init_sym_on():
    params = rnn.RNNParams("x_")
    assert rnn.SequentialRNNCell(params)._params is params
    (state,) = rnn.ResidualCell(rnn.GRUCell(3)).begin_state(init_sym=sym.var)
    assert state.list_arguments() == ["gru_begin_state_0"]


def test_begin_states_can_be_inputs():
    cell = rnn.GRUCell(4, prefix="g_")
    outputs, _ = cell.unroll(2, sym.var("data"), begin_state=cell.begin_state(func=sym.var), merge_outputs=True)
    assert "g_begin_state_0" in outputs.list_arguments()
    assert outputs.infer_shape(data=(3, 2, 5))[0][outputs.list_arguments().index("g_begin_state_0")] == (3, 4)


def test_checkpoints_hold_weights_by_gate(tmp_path):
    prefix = str(tmp_path / "net")
    fused = rnn.FusedRNNCell(4, 2, "lstm", prefix="z_")
    outputs, _ = fused.unroll(3, sym.var("data"), merge_outputs=True)
    _, weights = run(fused)
    rnn.do_rnn_checkpoint(fused, prefix)(0, outputs, weights, {})
    assert "arg:z_l1_h2h_f_bias" in nd.load(f"{prefix}-0001.params")
    graph, args, aux = rnn.load_rnn_checkpoint([fused], prefix, 1)
    assert np.array_equal(args["z_parameters"].asnumpy(), weights["z_parameters"].asnumpy()) and aux == {}
    assert graph.list_arguments() == outputs.list_arguments()


# -------------------------------------------------------------------------------------------------- sentences


def test_words_are_encoded_as_numbers():
    encoded, vocab = rnn.encode_sentences([["a", "b"], ["c", "a"]], invalid_label=1, start_label=0)
    assert encoded == [[0, 2], [3, 0]] and vocab == {"\n": 1, "a": 0, "b": 2, "c": 3}
    assert rnn.encode_sentences([["a", "x"]], vocab, unknown_token="c")[0] == [[0, 3]]
    with pytest.raises(ArgumentError, match="'x' is not in vocab"):
        rnn.encode_sentences([["x"]], vocab)


def test_sentences_come_in_buckets(caplog):
    sentences = [[1, 2], [3, 4], [5, 6, 7], [8, 9, 10], [11], [1, 2, 3, 4, 5]]
    batches = rnn.BucketSentenceIter(sentences, 1, buckets=[3, 2], invalid_label=0)
    assert "1 sentences are longer" in caplog.text and batches.default_bucket_key == 3
    for _ in range(2):
        seen = []
        for batch in batches:
            data, label = batch.data[0].asnumpy(), batch.label[0].asnumpy()
            assert data.shape == (1, batch.bucket_key) and batch.provide_data[0].shape == data.shape
            assert (label[:, :-1] == data[:, 1:]).all() and (label[:, -1] == 0).all()
            seen.append(data[0, 0])
        assert sorted(seen) == [1, 3, 5, 8, 11]
        batches.reset()
    turned = rnn.BucketSentenceIter(sentences, 2, invalid_label=0, layout="TN").next()
    assert turned.data[0].shape == (turned.bucket_key, 2) and turned.provide_data[0].layout == "TN"


def test_buckets_without_sentences_are_left_out():
    batches = rnn.BucketSentenceIter([[1, 2, 3]] * 4 + [[1] * 5] * 4, 2, buckets=[2, 4, 6, 9], invalid_label=0)
    assert batches.buckets == [4, 6] and batches.default_bucket_key == 6
    assert batches.provide_data[0].shape == (2, 6)
    with pytest.raises(ArgumentError, match="no sentence fits a bucket; the longest is 2"):
        rnn.BucketSentenceIter([[1, 2, 3]], 1, buckets=[2])


def test_a_language_model_learns():
    # Every word is followed by the next number.
    sentences = [[first + i for i in range(length)] for first in range(1, 4) for length in (4, 6) for _ in range(8)]
    batches = rnn.BucketSentenceIter(sentences, 4, buckets=[4, 6], invalid_label=0)
    cell = rnn.LSTMCell(16, prefix="l_")

    def generate(length):
        data, label = sym.var("data"), sym.var("softmax_label")
        embedded = sym.Embedding(data, input_dim=12, output_dim=8, name="embed")
        cell.reset()
        outputs, _ = cell.unroll(length, embedded, merge_outputs=True)
        net = sym.FullyConnected(sym.reshape(outputs, shape=(-1, 16)), num_hidden=12, name="fc")
        net = sym.SoftmaxOutput(net, sym.reshape(label, shape=(-1,)), use_ignore=True, ignore_label=0, name="softmax")
        return net, ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(generate, batches.default_bucket_key)
    module.fit(batches, num_epoch=30, eval_metric=mx.metric.Perplexity(0), optimizer="adam",
               optimizer_params={"learning_rate": 0.03}, initializer=mx.init.Xavier())
    assert module.score(batches, mx.metric.Perplexity(0))[0][1] < 1.3


@of_each([
    (lambda: rnn.FusedRNNCell(4, mode="lstmm"), ArgumentError, "Did you mean 'lstm'"),
    (lambda: rnn.FusedRNNCell(4)(None, None), OpError, "cannot run single steps"),
    (lambda: rnn.RNNCell(4).unroll(3, [sym.var("a")]), ArgumentError, "expected 3 inputs, one a step, got 1"),
    (lambda: rnn.RNNCell(4).unroll(2, sym.var("a"), layout="NC"), ArgumentError, "expected a layout with T"),
    (lambda: rnn.BaseRNNCell()(None, None), NotImplementedError, "define __call__"),
    (lambda: rnn.ZoneoutCell(rnn.FusedRNNCell(4)), ArgumentError, "zoneout needs single steps, which a FusedRNNCell "
                                                                  "cannot run"),
    (lambda: rnn.FusedRNNCell(4).unpack_weights({"lstm_parameters": nd.ones(5)}), ShapeError, "5 elements"),
    (lambda: rnn.BucketSentenceIter([[1], [1, 2]], 5), ArgumentError, "no length occurs 5 times"),
    (lambda: rnn.BucketSentenceIter([[1]], 1, layout="NTC"), ArgumentError, "NT, TN"),
    (lambda: rnn.ConvRNNCell((1, 2, 4, 4), 3, h2h_kernel=(2, 3)), ArgumentError, r"h2h_kernel=\(2, 3\): expected odd"),
])
def test_wrong_uses_of_cells_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_a_wrapped_cell_leaves_initial_states_to_its_wrapper():
    base = rnn.RNNCell(4)
    rnn.ResidualCell(base)
    with pytest.raises(OpError, match="the cell that wraps this one"):
        base.begin_state()


class Written(mx.rnn.BaseRNNCell):
    """A user's cell, in the style of MXNet's."""

    def __init__(self, num_hidden, activation):
        super().__init__("own_")
        self._num_hidden, self._activation = num_hidden, activation
        self._iW, self._iB = self.params.get("i2h_weight"), self.params.get("i2h_bias")

    @property
    def state_info(self):
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def __call__(self, inputs, states):
        self._counter += 1
        name = f"{self._prefix}t{self._counter}_"
        product = mx.sym.FullyConnected(inputs, self._iW, self._iB, num_hidden=self._num_hidden, name=f"{name}i2h")
        output = self._get_activation(product + states[0], self._activation, name=f"{name}out")
        return output, [output]


@pytest.mark.parametrize("activation, function", [("tanh", np.tanh), (mx.sym.square, np.square)])
def test_users_cells_are_unrolled(activation, function):
    outputs, _ = Written(2, activation).unroll(2, mx.sym.var("x"), layout="NTC", merge_outputs=True)
    assert "own_t1_out_output" in outputs.get_internals().list_outputs()
    x, w, b = np.arange(6.0).reshape(1, 2, 3) / 10, np.ones((2, 3)), np.array([0.5, 0])
    (y,) = outputs.eval(x=mx.nd.array(x), own_i2h_weight=mx.nd.array(w), own_i2h_bias=mx.nd.array(b))
    first = function(x[:, 0] @ w.T + b)
    expected = np.stack([first, function(x[:, 1] @ w.T + b + first)], axis=1)
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-5)

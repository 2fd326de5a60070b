"""The memory plan: no value is overwritten while it is needed, and no more memory is held than necessary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.core.host_memory import LARGE, PAGE
from opreg.elementwise import tiling as schedule
from opreg.symbol.passes.memory import _FreeRanges

# Operations on one or two entries: views, in-place operators, reductions to other sizes and back.
GROW = {
    "relu": lambda a, b: mx.sym.relu(a),
    "tanh": lambda a, b: mx.sym.tanh(a),
    "double": lambda a, b: a * 2.0,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "flat": lambda a, b: mx.sym.reshape(mx.sym.reshape(a, shape=(-1,)), shape=(3, 4)),
    "turn": lambda a, b: mx.sym.transpose(mx.sym.transpose(a)),
    "turned": lambda a, b: mx.sym.reshape(mx.sym.transpose(a), shape=(3, 4)),
    "cut": lambda a, b: mx.sym.Concat(*mx.sym.SliceChannel(a, num_outputs=2, axis=1), dim=1),
}


@st.composite
def networks(draw):
    """A random symbol over two variables, and the names of its steps."""
    values = [mx.sym.Variable("x"), mx.sym.Variable("y")]
    for _ in range(draw(st.integers(1, 12))):
        name = draw(st.sampled_from(sorted(GROW)))
        pick = st.integers(max(0, len(values) - 4), len(values) - 1)
        values.append(GROW[name](values[draw(pick)], values[draw(pick)]))
    heads = draw(st.lists(st.sampled_from(range(2, len(values))), min_size=1, max_size=3, unique=True))
    return mx.sym.Group([values[i] for i in heads])


def eagerly(net, arrays, head_grads):
    """Outputs and gradients on the tape, which plans no memory."""
    found = {node.name: array for node, array in zip(net._graph().variables()[0],
                                                     [arrays[name] for name in net.list_arguments()])}
    values = {}
    for array in found.values():
        array.attach_grad()
    with mx.autograd.record():
        for node in net._graph().nodes:
            if node.op is None:
                values[node, 0] = found[node.name]
                continue
            outs = node.op(*[values[entry] for entry in node.inputs], **node.attrs)
            for i, out in enumerate(outs if isinstance(outs, list) else [outs]):
                values[node, i] = out
        heads = [values[entry] for entry in net._entries]
    mx.autograd.backward(heads, head_grads)
    return heads, {name: array.grad for name, array in found.items()}


@settings(max_examples=80, deadline=None)
@given(networks(), st.integers(0, 2**16))
def test_plans_equal_the_tape(net, seed):
    rng = np.random.default_rng(seed)
    names = net.list_arguments()
    arrays = {name: mx.nd.array(rng.standard_normal((3, 4)), dtype="float64") for name in names}
    head_grads = [mx.nd.array(rng.standard_normal((3, 4)), dtype="float64") for _ in net.list_outputs()]
    grads = {name: mx.nd.zeros((3, 4), dtype="float64") for name in names}
    executor = net.bind(mx.cpu(), arrays, grads)
    for _ in range(2):  # the second run must not read values of the first one
        executor.forward(is_train=True)
        executor.backward(head_grads)
    inferred = executor.forward(is_train=False)
    heads, expected = eagerly(net, {name: array.copy() for name, array in arrays.items()}, head_grads)
    for got, want in zip(inferred, heads):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-12)
    for name in names:
        np.testing.assert_allclose(grads[name].asnumpy(), expected[name].asnumpy(), rtol=1e-10, atol=1e-12)


# Operations on one or two square entries, with views whose axes are in another order.
TURN = {
    "tanh": lambda a, b: mx.sym.tanh(a),
    "double": lambda a, b: a * 2.0,
    "add": lambda a, b: a + b,
    "with its turned self": lambda a, b: a + mx.sym.transpose(a),
    "turned": lambda a, b: mx.sym.transpose(a),
    "turned and half": lambda a, b: mx.sym.transpose(a) * 0.5 + b,
    "moved": lambda a, b: mx.sym.reshape(
        mx.sym.transpose(mx.sym.reshape(a, shape=(2, 2, 4)), axes=(1, 0, 2)), shape=(4, 4)),
    "swapped": lambda a, b: mx.sym.Concat(*mx.sym.SliceChannel(a, num_outputs=2, axis=0)[::-1], dim=0),
    "product": lambda a, b: mx.sym.dot(a, b) * 0.1,
    "turned product": lambda a, b: mx.sym.dot(mx.sym.transpose(a), b) * 0.1,
    "split and crossed": lambda a, b: (lambda parts: mx.sym.Concat(parts[1] * 2.0, parts[0] + parts[1], dim=1))(
        mx.sym.SliceChannel(b, num_outputs=2, axis=1)),
}


@st.composite
def turned_networks(draw):
    """A random symbol over a product in planned memory, which operators read as a whole and by views."""
    values = [mx.sym.dot(mx.sym.Variable("x"), mx.sym.Variable("y"))]
    for _ in range(draw(st.integers(1, 8))):
        name = draw(st.sampled_from(sorted(TURN)))
        pick = st.integers(max(0, len(values) - 3), len(values) - 1)
        values.append(TURN[name](values[draw(pick)], values[draw(pick)]))
    heads = draw(st.lists(st.sampled_from(range(len(values))), min_size=1, max_size=2, unique=True))
    return mx.sym.Group([mx.sym.sum(values[i]) if i % 2 else values[i] * 1.5 for i in heads])


@pytest.mark.parametrize("watched", [False, True])
@settings(max_examples=80, deadline=None)
@given(net=turned_networks(), seed=st.integers(0, 2**16))
def test_memory_read_through_a_view_is_not_overwritten(watched, net, seed):
    rng = np.random.default_rng(seed)
    names = net.list_arguments()
    arrays = {name: mx.nd.array(rng.standard_normal((4, 4)), dtype="float64") for name in names}
    grads = {name: mx.nd.zeros((4, 4), dtype="float64") for name in names}
    executor = net.bind(mx.cpu(), arrays, grads)
    if watched:  # every operator has a step of its own
        executor.set_monitor_callback(lambda name, value: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "TILE", 8)  # in parts, like large arrays, so that NumPy sees one part at a time
        outputs = executor.forward(is_train=True)
        head_grads = [mx.nd.array(rng.standard_normal(out.shape), dtype="float64") for out in outputs]
        executor.backward(head_grads)
        inferred = executor.forward(is_train=False)
    heads, expected = eagerly(net, {name: array.copy() for name, array in arrays.items()}, head_grads)
    for got in (outputs, inferred):
        for each, want in zip(got, heads):
            np.testing.assert_allclose(each.asnumpy(), want.asnumpy(), rtol=1e-9, atol=1e-9)
    for name in names:
        np.testing.assert_allclose(grads[name].asnumpy(), expected[name].asnumpy(), rtol=1e-9, atol=1e-9)


def test_an_input_is_not_taken_over_while_another_reads_it_by_a_view():
    """tanh(t + tᵀ) must not be written over t, since the same step reads tᵀ in another order."""
    x = mx.sym.Variable("x")
    t = mx.sym.dot(x, x)
    turned = mx.sym.transpose(t)
    net = mx.sym.sum(mx.sym.tanh(t + turned) + 0.5 * turned)
    executor = net.simple_bind(mx.cpu(), grad_req="null", x=(300, 300), type_dict={"x": "float64"})
    value = np.random.default_rng(0).standard_normal((300, 300)) / 30
    product = value @ value
    expected = (np.tanh(product + product.T) + 0.5 * product.T).sum()
    executor.arg_dict["x"][:] = value
    for watched in (False, True):
        executor.set_monitor_callback((lambda name, array: None) if watched else None)
        np.testing.assert_allclose(executor.forward()[0].asnumpy(), [expected], rtol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 1000) | st.integers(LARGE - 64, LARGE + 2 * PAGE)),
                max_size=60))
def test_free_stretches_never_overlap(actions):
    free, held = _FreeRanges(), []
    for give, nbytes in actions:
        if give and held:
            free.give(*held.pop(nbytes % len(held)))
        else:
            offset = free.take(nbytes)
            assert offset % (PAGE if nbytes >= LARGE else 64) == 0
            assert all(offset + nbytes <= o or o + n <= offset for o, n in held)
            assert offset + nbytes <= free.end
            held.append((offset, nbytes))
    for offset, nbytes in held:
        free.give(offset, nbytes)
    assert sum(length for _, length in free.by_offset) == free.end
    assert len(free.by_offset) <= 1  # all merged again


def test_a_plan_holds_large_arrays_at_one_place_of_a_page_behind_small_ones():
    x, small = mx.sym.Variable("x"), mx.sym.Variable("small")
    total = mx.sym.sum(mx.sym.dot(small, small))
    turned = mx.sym.transpose(mx.sym.dot(x, mx.sym.broadcast_add(mx.sym.dot(x, x), total)))
    net = mx.sym.dot(turned, mx.sym.dot(turned, x))
    executor = net.simple_bind(mx.cpu(), x=(256, 256), small=(3, 3))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((256, 256)))
    plan = executor.plan(True)
    places = [storage for storage in plan.memory.storage.values() if storage.pinned is None]
    assert any(storage.offset % PAGE for storage in places)
    assert all(storage.offset % PAGE == 0 for storage in places if storage.nbytes >= LARGE)


def deep(layers: int, width: int):
    net = mx.sym.Variable("data")
    for i in range(layers):
        net = mx.sym.Activation(mx.sym.FullyConnected(net, num_hidden=width, name=f"fc{i}"), act_type="relu")
    return net


@pytest.mark.parametrize(("is_train", "layers_held"), [(True, 102), (False, 2)])
def test_a_deep_network_holds_one_array_a_layer(is_train, layers_held):
    # Training must store the output of every layer and two gradients; inference needs two arrays.
    executor = deep(100, 64).simple_bind(mx.cpu(), data=(128, 64))
    assert executor.plan(is_train).nbytes <= layers_held * 128 * 64 * 4


def test_views_have_no_step_and_no_memory():
    x = mx.sym.Variable("x")
    net = mx.sym.transpose(mx.sym.Flatten(mx.sym.relu(x))) * 2
    executor = net.simple_bind(mx.cpu(), grad_req="null", x=(2, 3, 4))
    executor.arg_dict["x"][:] = np.arange(-12, 12).reshape(2, 3, 4)
    kernels = [step.kernel for step in executor.plan(False).forward.steps]
    assert kernels.count("view") == 2
    assert executor.plan(False).nbytes == 128  # the output of relu, 96 bytes in units of 64
    expected = np.maximum(np.arange(-12, 12), 0).reshape(2, 12).T * 2
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), expected)


def test_nodes_wanted_for_their_shape_alone_are_not_computed():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    net = mx.sym.slice_like(mx.sym.exp(x), mx.sym.exp(y, name="unread"))
    executor = net.simple_bind(mx.cpu(), x=(4, 3), y=(2, 3))
    executor.arg_dict["x"][:] = np.arange(12).reshape(4, 3) / 8
    expected = np.exp(np.arange(12).reshape(4, 3) / 8)
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), expected[:2], rtol=1e-6)
    executor.backward(mx.nd.ones((2, 3)))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), expected * [[1], [1], [0], [0]], rtol=1e-6)
    assert not executor.grad_dict["y"].asnumpy().any()
    assert "unread" not in executor.explain().replace("y: no gradient", "")


def test_an_output_stays_when_backward_reuses_memory():
    x = mx.sym.Variable("x")
    inner = mx.sym.tanh(x)
    net = mx.sym.Group([inner, mx.sym.relu(inner)])
    executor = net.simple_bind(mx.cpu(), x=(8,))
    executor.arg_dict["x"][:] = np.linspace(-1, 1, 8)
    before = [out.asnumpy() for out in executor.forward(is_train=True)]
    executor.backward([mx.nd.ones((8,)), mx.nd.ones((8,))])
    for old, new in zip(before, executor.outputs):
        np.testing.assert_array_equal(old, new.asnumpy())


def test_an_argument_is_never_overwritten():
    x = mx.sym.Variable("x")
    executor = mx.sym.relu(mx.sym.tanh(mx.sym.relu(x))).simple_bind(mx.cpu(), x=(4,))
    executor.arg_dict["x"][:] = [-2, -1, 1, 2]
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((4,)))
    np.testing.assert_array_equal(executor.arg_dict["x"].asnumpy(), [-2, -1, 1, 2])

"""Writes to memory after recording: gradients are right or refused, and refused only for a reason."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

import opreg as mx
from opreg import nn
from opreg.core import versions
from opreg.errors import OpError
from opreg.ndarray.context import Context
from tests.cuda import strict  # noqa: F401  registers a device
from tests.questions import of_each

nd, autograd, sym = mx.nd, mx.autograd, mx.sym
ROWS, COLUMNS = 4, 3


def array(host):
    return nd.array(host, dtype="float64")


# ---------------------------------------------------------------------------------------------------- the reference


class Value:
    """An array of opreg, a copy of its first values, and a backward pass over such copies.

    Attributes
    ----------
    here : NDArray
        The array.
    host : NumPy array
        A copy of its values when it was computed.
    wanted : bool
        Whether its gradient is wanted, or that of a value from which it was computed.
    back : list of (Value, function)
        Values from which it was computed, and functions from its gradient to theirs.
    needs : list of (NDArray, NumPy array)
        Arrays that its gradient may read, and copies of their values.
    """

    def __init__(self, here, wanted=False, back=(), needs=()):
        self.here, self.host = here, here.asnumpy()
        self.wanted, self.back = wanted, [(source, way) for source, way in back if source.wanted]
        self.needs = [(value.detach(), value.asnumpy()) for value in needs]

    def order(self):
        """All values that it is computed from, sources first."""
        found = {}

        def visit(value):
            if value not in found:
                for source, _ in value.back:
                    visit(source)
                found[value] = None

        visit(self)
        return list(found)

    def gradients(self):
        """Gradients of its sum, by source."""
        grads = {self: np.ones_like(self.host)}
        for value in reversed(self.order()):
            for source, way in value.back:
                grads[source] = grads.get(source, 0) + way(grads[value])
        return grads

    def changed(self):
        """Whether values that its gradient may read were overwritten."""
        return any(not np.array_equal(there.asnumpy(), before)
                   for value in self.order() for there, before in value.needs)


class Cube(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x * x

    def backward(self, dy):
        (x,) = self.saved_tensors
        return dy * x * x * 3


class Twice(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * 2

    def backward(self, dy):
        return dy * 2


@mx.operator.register("versions_square")
class SquareProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        class Square(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] * in_data[0])

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], out_grad[0] * in_data[0] * 2)

        return Square()


@mx.operator.register("versions_triple")
class TripleProp(SquareProp):
    def create_operator(self, ctx, shapes, dtypes):
        class Triple(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] * 3)

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                in_grad[0][:] = out_grad[0] * 3

        return Triple()


@mx.operator.define
def versions_tanh(x):
    return np.tanh(x.asnumpy())


@versions_tanh.grad
def versions_tanh_grad(g, ins, outs):
    return (g * (1 - outs[0] * outs[0]),)


def unary(compute, slope, reads=()):
    """A function of one array, its derivative, and the arrays that this may read: 0 the input, 1 the output."""
    def apply(values):
        (x,) = values
        y = compute(x.here)
        host, result = x.host, y.asnumpy()
        return Value(y, x.wanted, [(x, lambda g: g * slope(host, result))], [(x.here, y)[i] for i in reads])

    return 1, apply


def binary(compute, left, right, reads=None):
    """A function of two arrays of one shape, its derivatives, and the arrays that these may read; by default each
    derivative reads the other array."""
    def apply(values):
        x, y = values
        a, b, z = x.host, y.host, compute(x.here, y.here)
        needs = [*([y.here] if x.wanted else []), *([x.here] if y.wanted else [])] if reads is None else [
            (x.here, y.here, z)[i] for i in reads]
        return Value(z, x.wanted or y.wanted, [(x, lambda g: g * left(a, b)), (y, lambda g: g * right(a, b))], needs)

    return 2, apply


def product(values):
    """x times y transposed, like a layer without bias, repeated to the common shape."""
    x, y = values
    z = nd.FullyConnected(x.here, y.here, num_hidden=ROWS, no_bias=True)
    needs = [*([y.here] if x.wanted else []), *([x.here] if y.wanted else [])]
    a, b = x.host, y.host
    inner = Value(z, x.wanted or y.wanted, [(x, lambda g: g @ b), (y, lambda g: g.T @ a)], needs)
    return Value(nd.slice_axis(z, axis=1, begin=0, end=COLUMNS), inner.wanted,
                 [(inner, lambda g: np.concatenate([g, np.zeros((ROWS, ROWS - COLUMNS))], 1))])


def normalised(values):
    """Batch norm by the statistics of the batch, which updates the given moving ones."""
    (x,) = values
    ones, zeros = nd.ones(COLUMNS, dtype="float64"), nd.zeros(COLUMNS, dtype="float64")
    y = nd.BatchNorm(x.here, ones, zeros, STATES[0], STATES[1], fix_gamma=False, eps=1e-3, momentum=0.5)
    host = x.host
    deviation = np.sqrt(host.var(axis=0) + 1e-3)
    centred = (host - host.mean(axis=0)) / deviation

    def back(g):
        return (g - g.mean(axis=0) - centred * (g * centred).mean(axis=0)) / deviation

    return Value(y, x.wanted, [(x, back)], [x.here])


STATES = [nd.zeros(COLUMNS, dtype="float64"), nd.ones(COLUMNS, dtype="float64")]

FUNCTIONS = {
    "product": binary(lambda x, y: x * y, lambda a, b: b, lambda a, b: a),
    "sum": binary(lambda x, y: x + y, lambda a, b: 1, lambda a, b: 1, ()),
    "difference": binary(lambda x, y: x - y, lambda a, b: 1, lambda a, b: -1, ()),
    "quotient": binary(lambda x, y: x / (y * y + 1), lambda a, b: 1 / (b * b + 1),
                       lambda a, b: -2 * a * b / (b * b + 1) ** 2, (0, 1, 2)),
    "larger": binary(nd.maximum, lambda a, b: a >= b, lambda a, b: a < b, (0, 1)),
    "layer": (2, product), "batch norm": (1, normalised),
    "exp": unary(nd.exp, lambda a, y: y, (1,)), "tanh": unary(nd.tanh, lambda a, y: 1 - y * y, (1,)),
    "sine": unary(nd.sin, lambda a, y: np.cos(a), (0,)), "square": unary(nd.square, lambda a, y: 2 * a, (0,)),
    "relu": unary(nd.relu, lambda a, y: a > 0, (0, 1)), "times two": unary(lambda x: x * 2, lambda a, y: 2),
    "reversed": (1, lambda values: Value(nd.reverse(values[0].here, axis=0), values[0].wanted,
                                         [(values[0], lambda g: g[::-1])])),
    "a row": (1, lambda values: Value(nd.broadcast_to(values[0].here[1:2], (ROWS, COLUMNS)), values[0].wanted,
                                      [(values[0], lambda g: np.eye(ROWS)[:, 1:2] * g.sum(axis=0))])),
    "a user's": unary(lambda x: nd.Custom(x, op_type="versions_square"), lambda a, y: 2 * a, (0,)),
    "a user's that reads nothing": unary(lambda x: nd.Custom(x, op_type="versions_triple"), lambda a, y: 3),
    "a user's function": unary(versions_tanh, lambda a, y: 1 - y * y, (1,)),
    "a Function": unary(lambda x: Cube()(x), lambda a, y: 3 * a * a, (0,)),
    "a Function that reads nothing": unary(lambda x: Twice()(x), lambda a, y: 2),
}


# ------------------------------------------------------------------------------------------------------- the writes


def executor_of(target):
    """An executor that has the array among its arguments and writes to it."""
    a = sym.Variable("a")
    return (a * 2).bind(mx.cpu(), {"a": target})


def pulled(target, new):
    store = mx.kv.create("local")
    store.init("w", new)
    store.pull("w", out=target)


def moved(target, new):
    optimizer = mx.optimizer.create("sgd", learning_rate=1.0)
    updater = mx.optimizer.get_updater(optimizer)
    updater(0, target - new, target)


def shared(target, new):
    nd.from_dlpack(target.to_dlpack_for_write())[:] = new


def zeroed(target, new):
    nd.reset_arrays(target, num_arrays=1)
    target += new


def by_state(target, new):
    """Gives ``target`` new values by an update that has it as momentum."""
    nd.sgd_mom_update(nd.zeros_like(target), target - new, target, lr=1.0, momentum=1.0, out=nd.zeros_like(target))


def stored(target, new):
    executor_of(target).copy_params_from({"a": new})


def keyed(key):
    def write(target, new):
        target[key] = new.asnumpy()[key]

    return write


def part(write):
    def through(target, new):
        write(target[1:3], new[1:3].copy())

    return through


WAYS = {
    "all": keyed(slice(None)), "dots": keyed(Ellipsis), "a row": keyed(2), "the last": keyed(-1),
    "rows": keyed(slice(0, 2)), "every other": keyed(slice(None, None, 2)), "backwards": keyed(slice(2, None, -1)),
    "a column": keyed((slice(None), 1)), "an element": keyed((1, 2)), "nothing": keyed(slice(2, 2)),
    "listed": keyed([0, 3]), "pairs": keyed(([1, 2], [0, 2])),
    "added": lambda target, new: target.__iadd__(new), "multiplied": lambda target, new: target.__imul__(new),
    "out": lambda target, new: nd.elemwise_add(target, new, out=target),
    "another's out": lambda target, new: nd.sin(new, out=target),
    "several outs": lambda target, new: nd.split(new, num_outputs=2, axis=0, out=[target[:2], target[2:]]),
    "copied": lambda target, new: new.copyto(target),
    "a view": lambda target, new: target[1].__setitem__(slice(None), new[1]),
    "a view of a view": lambda target, new: target[1:][1:2].__iadd__(new[2:3]),
    "reshaped": lambda target, new: target.reshape((-1,)).__setitem__(slice(2, 5), new.reshape((-1,))[2:5]),
    "detached": lambda target, new: target.detach().__setitem__(slice(None), new),
    "an update": lambda target, new: nd.sgd_update(target, new, lr=0.5, out=target),
    "an optimizer": moved, "a state": by_state, "pulled": pulled, "shared": shared, "an executor's argument": stored,
    "drawn": lambda target, new: nd.random.uniform(1, 2, shape=target.shape, dtype="float64", out=target),
    "ufunc": lambda target, new: np.add(target, new, out=target),
    "assigned": lambda target, new: mx.operator.CustomOp().assign(target, "write", new),
    "assigned more": lambda target, new: mx.operator.CustomOp().assign(target, "add", new.asnumpy()),
    "the same": lambda target, new: target.__setitem__(slice(None), target.asnumpy()),
    "zeros": zeroed, "part": part(lambda a, b: b.copyto(a)),
    "part out": part(lambda a, b: nd.sin(b, out=a)),
}


def unrelated(count):
    """Many writes to unrelated arrays."""
    for _ in range(count):
        other = nd.zeros(1)
        another = other.detach()
        other[:] = 1
        del another


class Program:
    """A random program: records, writes and backward passes, in any order."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.leaves = [self.marked() for _ in range(2)]
        self.constants = [Value(array(self.new())) for _ in range(2)]
        host = self.new()
        self.hosts = [host]  # host arrays that share memory with arrays
        self.constants.append(Value(nd.from_numpy(host)))
        self.executor = executor_of(array(self.new()))
        self.constants.append(Value(self.executor.forward()[0]))
        self.results = []
        self.refused = self.right = 0

    def new(self):
        return self.numbers.uniform(0.2, 1.5, (ROWS, COLUMNS)) * self.numbers.choice([-1, 1], (ROWS, COLUMNS))

    def marked(self):
        here = array(self.new())
        here.attach_grad()
        return Value(here, True)

    def renewed(self, value):
        """A source with its current values."""
        return Value(value.here, value.wanted)

    def record(self):
        count, apply = FUNCTIONS[self.random.choice(list(FUNCTIONS))]
        self.leaves, self.constants = list(map(self.renewed, self.leaves)), list(map(self.renewed, self.constants))
        pool = [*self.leaves, *self.leaves, *self.constants, *self.results[-4:]]
        values = [self.random.choice(pool) for _ in range(count)]
        values = [value if np.array_equal(value.here.asnumpy(), value.host) else self.constants[0] for value in values]
        with autograd.record():
            result = apply(values)
        if result.wanted:
            self.results.append(result)

    def write(self, inside=False):
        pool = self.constants if inside else [*self.constants, *self.leaves, *self.results[-4:]]
        target, way = self.random.choice(pool).here, WAYS[self.random.choice(list(WAYS))]
        if inside:
            with autograd.record():
                way(target, array(self.new()))
        elif self.random.random() < 0.2:
            with autograd.record(), autograd.pause():
                way(target, array(self.new()))
        else:
            way(target, array(self.new()))

    def run_again(self):
        self.executor.forward(a=array(self.new()))

    def backward(self):
        if not self.results:
            return
        head = self.random.choice(self.results)
        expected, before = head.gradients(), [leaf.here.grad.asnumpy() for leaf in self.leaves]
        try:
            head.here.backward(retain_graph=True)
        except OpError as error:
            assert "changed in place" in str(error)  # noqa: PT017
            assert head.changed(), error  # noqa: PT017
            for leaf, numbers in zip(self.leaves, before):
                np.testing.assert_array_equal(leaf.here.grad.asnumpy(), numbers)
            self.refused += 1
            return
        self.right += 1
        for leaf in self.leaves:
            reached = [expected[value] for value in head.order() if value.here is leaf.here and value in expected]
            if reached:
                np.testing.assert_allclose(leaf.here.grad.asnumpy(), sum(reached), rtol=1e-9, atol=1e-9)

    def run(self, steps=24):
        for _ in range(steps):
            step = self.random.choice([self.record] * 5 + [self.write] * 3 + [self.backward] * 3 + [
                functools.partial(self.write, True), self.run_again, functools.partial(unrelated, 30)])
            step()
        self.backward()
        return self


@pytest.mark.parametrize("start", range(0, 300, 20))
def test_any_program_of_reads_and_writes(start):
    """Each gradient is that of the recorded values, or is refused if some of them were overwritten."""
    refused = right = 0
    for seed in range(start, start + 20):
        program = Program(seed).run()
        refused, right = refused + program.refused, right + program.right
    assert min(refused, right) > 5


# --------------------------------------------------------------------------------------------------------- one by one

NEEDED = (r"^operator \w+, recorded at .*test_versions\.py:\d+: its gradient needs numbers that were changed in place, "
          r"at .*test_versions\.py:\d+\. Change a copy of its input rhs, of shape \(4, 3\)")
HOST = np.arange(1.0, 13).reshape(ROWS, COLUMNS)


def marked():
    x = array(HOST)
    x.attach_grad()
    return x


@pytest.mark.parametrize("many", [0, 1500], ids=["", "long ago"])
@pytest.mark.parametrize("way", [name for name in WAYS if name not in ("nothing", "the same")])
def test_every_way_to_write(way, many):
    """The error names the lines of the record and of the write, after any number of further writes."""
    x, w = marked(), array(HOST)
    with autograd.record():
        y = x * w
    WAYS[way](w, array(HOST + 20))
    unrelated(many)
    for call in (y.backward, lambda: autograd.grad(y, x), lambda: autograd.grad(y, x, create_graph=True)):
        with pytest.raises(OpError, match=NEEDED):
            call()
    assert not x.grad.asnumpy().any()


@of_each([name for name in WAYS if name not in (
    "shared", "ufunc", "assigned more", "the same", "listed", "pairs", "a state", "pulled", "an executor's argument")])
def test_every_way_to_write_on_a_device(way):
    with Context("strict", 0):
        x, w = marked(), array(HOST)
        with autograd.record():
            y = x * w
        WAYS[way](w, array(HOST + 20))
        if way == "nothing":
            y.backward()
            np.testing.assert_array_equal(x.grad.asnumpy(), HOST)
        else:
            with pytest.raises(OpError, match="changed in place"):
                y.backward()


def test_a_write_while_recording_long_ago():
    x = marked()
    with autograd.record():
        h = nd.zeros((ROWS, COLUMNS), dtype="float64")
        h[:] = 2
        y = x * h
        h[:] = 100
        for other in [nd.zeros(1) for _ in range(1500)]:
            other[:] = 1
    with pytest.raises(OpError, match="changed in place"):
        y.backward()


REGIONS = {
    "the whole, a part read": (slice(1, 2), slice(None), True), "the whole, by dots": (slice(1, 2), Ellipsis, True),
    "a part, the whole read": (slice(None), 2, True), "the part that was read": (2, 2, True),
    "a part inside": (slice(1, 3), (2, 0), True), "one that begins before": (slice(1, 3), slice(0, 2), True),
    "one that ends behind": (slice(1, 3), slice(2, 4), True), "backwards, over it": (0, slice(1, None, -1), True),
    "backwards, behind it": (0, slice(None, 0, -1), False), "a column": (0, (slice(None), 1), True),
    "before it": (slice(2, 4), slice(0, 2), False), "behind it": (slice(0, 2), slice(2, 4), False),
    "the next row": (1, 2, False), "every other, with it": (2, slice(None, None, 2), True),
    "every other, without it": (1, slice(None, None, 2), False), "a list, with it": (3, [0, 3], True),
    "a list, without it": (1, [0, 3], False), "elements, with it": (1, ([1, 3], [0, 0]), True),
    "elements, without it": (2, ([1, 3], [0, 0]), False), "nothing": (slice(None), slice(1, 1), False),
}


@pytest.mark.parametrize("inside", [True, False], ids=["while recording", "afterwards"])
@pytest.mark.parametrize("name", REGIONS)
def test_a_write_to_an_overlapping_part_is_found(name, inside):
    read, key, overlaps = REGIONS[name]
    x, h = marked(), array(HOST)
    x = marked()
    with autograd.record():
        y = x[read] * h[read]
        if inside:
            h[key] = -1
    if not inside:
        h[key] = -1
    if overlaps:
        with pytest.raises(OpError, match="changed in place"):
            y.backward()
    else:
        y.backward()
        expected = np.zeros((ROWS, COLUMNS))
        expected[read] = HOST[read]
        np.testing.assert_array_equal(x.grad.asnumpy(), expected)


@pytest.mark.parametrize("row", range(ROWS))
def test_a_part_that_was_written_before_the_memory_was_handed_to_others(row):
    x, h = marked(), array(HOST)
    with autograd.record():
        parts = [x[i] * h[i] for i in range(ROWS)]
    h[row] = -1
    held = h.to_dlpack_for_write()
    for i, part in enumerate(parts):
        if i == row:
            with pytest.raises(OpError, match="changed in place"):
                part.backward(retain_graph=True)
        else:
            part.backward(retain_graph=True)
            np.testing.assert_array_equal(x.grad.asnumpy()[i], HOST[i])
    assert held is not None


@pytest.mark.parametrize("row", range(ROWS))
def test_writes_before_memory_is_exported_are_found(row):
    """A row is written again before another library gets the memory."""
    x, h = marked(), array(HOST)
    with autograd.record():
        parts = [x[i] * h[i] for i in range(ROWS)]
    h[:] = HOST + 1
    h[row] = -1
    held = h.to_dlpack_for_write()
    for part in parts:
        with pytest.raises(OpError, match="changed in place"):
            part.backward(retain_graph=True)
    assert held is not None


def test_a_view_that_is_written_before_and_after_the_memory_was_handed_to_others():
    x, h = marked(), array(HOST)
    row, assign = h[1], mx.operator.CustomOp().assign
    assign(row, "write", 5)
    there = nd.from_dlpack(h.to_dlpack_for_write())
    with autograd.record():
        y = x * there
    assign(row, "write", 6)
    with pytest.raises(OpError, match="changed in place"):
        y.backward()


def test_a_write_to_a_row_leaves_gradients_of_other_rows_valid():
    """Writing one row of an array does not invalidate other rows that were read, for any number of rows."""
    x, h = array(np.ones(2)), nd.zeros((3000, 2), dtype="float64")
    x.attach_grad()
    total = 0
    with autograd.record():
        for i in range(3000):
            h[i] = i
            total = total + x * h[i]
    total.backward()
    assert x.grad.asnumpy().tolist() == [sum(range(3000))] * 2


FREE = {
    "a sum": lambda x, w: x + w, "a difference": lambda x, w: w - x, "by a number": lambda x, w: x * 3 + w * 0,
    "joined": lambda x, w: nd.concat(x, w, dim=0), "a copy": lambda x, w: x * w.copy(),
    "its own factor": lambda x, w: w * x.detach() * 0 + x, "reduced": lambda x, w: (x + w).sum(axis=1),
    "elsewhere": lambda x, w: (x + w).as_in_context(mx.cpu(1)),
    "a bias": lambda x, w: nd.FullyConnected(x, array(HOST), w.reshape((-1,))[:ROWS], num_hidden=ROWS),
    "a user's that does not read it": lambda x, w: nd.Custom(x + w, op_type="versions_triple"),
    "a Function that does not read it": lambda x, w: Twice()(x + w),
}


@of_each(FREE)
def test_arrays_that_no_gradient_reads_may_be_written(name):
    x, w = marked(), array(HOST)
    with autograd.record():
        y = FREE[name](x, w)
    y.backward(retain_graph=True)
    first = x.grad.asnumpy()
    assert first.any()
    w[:] = -5
    np.testing.assert_array_equal(autograd.grad(y, x, create_graph=True)[0].asnumpy(), first)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), first)


def test_only_requested_gradients_count():
    """The gradient of a product for the first factor needs only the second, so the first may change."""
    x, w = marked(), array(HOST + 1)
    with autograd.record():
        y = x * w
    x[:] = 0
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), HOST + 1)


def test_a_gradient_that_another_pass_overwrites():
    x = marked()
    with autograd.record():
        y = x * x
    y.backward()
    with autograd.record():
        z, again = x * x.grad, x * 3
    again.backward()
    with pytest.raises(OpError, match="changed in place"):
        z.backward()


def test_an_output_that_is_given_to_backward_twice():
    x, v = marked(), marked()
    with autograd.record():
        y, z = x * x, v * v * v
    autograd.backward([y, z, y], [nd.ones_like(y), nd.ones_like(y), nd.ones_like(y) * 2], retain_graph=True)
    np.testing.assert_array_equal(x.grad.asnumpy(), 6 * HOST)
    autograd.backward([y, y])
    np.testing.assert_array_equal(x.grad.asnumpy(), 4 * HOST)
    np.testing.assert_array_equal(v.grad.asnumpy(), 3 * HOST ** 2)


def test_an_executor_writes_shared_arrays():
    """An executor writes outputs, gradients, states in training, and updated weights; it does not write states that it
    reads."""
    a, w = sym.Variable("a"), sym.Variable("w")
    net = sym.MakeLoss(sym.BatchNorm(a * w, name="bn", fix_gamma=True))
    executor = net.simple_bind(mx.cpu(), a=(ROWS, COLUMNS), w=(ROWS, COLUMNS), type_dict={"a": "float64"})
    executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.1), ["w"])
    for name, number in (("a", 2), ("w", 3), ("bn_gamma", 1)):
        executor.arg_dict[name][:] = number
    executor.arg_dict["a"][:] = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))

    def forward():
        executor.forward(is_train=True)

    executor.forward()
    cases = {
        "output": (lambda: executor.outputs[0], executor.forward, True),
        "output of training": (lambda: executor.outputs[0], forward, True),
        "gradient": (lambda: executor.grad_dict["w"], lambda: (forward(), executor.backward()), True),
        "weight": (lambda: executor.arg_dict["w"], executor.update, True),
        "step": (lambda: executor.arg_dict["w"], executor.step, True),
        "argument": (lambda: executor.arg_dict["a"], lambda: executor.forward(a=nd.ones((ROWS, COLUMNS))), True),
        "state": (lambda: executor.aux_dict["bn_moving_mean"], forward, True),
        "state in inference": (lambda: executor.aux_dict["bn_moving_mean"], executor.forward, False),
        "argument that is read": (lambda: executor.arg_dict["a"], executor.forward, False),
        "gradient that is not computed": (lambda: executor.grad_dict["w"], executor.forward, False),
    }
    for name, (of, run, writes) in cases.items():
        there = of()
        x = nd.ones(there.shape, dtype=there.dtype)
        x.attach_grad()
        with autograd.record():
            y = x * there
        run()
        if writes:
            with pytest.raises(OpError, match=r"changed in place, at .*test_versions\.py:\d+"):
                y.backward()
        else:
            y.backward()
            np.testing.assert_array_equal(x.grad.asnumpy(), there.asnumpy(), err_msg=name)


def test_writes_to_many_rows_in_reverse_order_are_recorded():
    """Writes to many rows are recorded as one range from the first row to the last."""
    memory = np.zeros((20_000, 4))
    since = versions.write_count()
    versions.wrote(memory[10_000:0:-1, :2])
    assert [versions.written(memory[row], since) is None for row in (0, 1, 10_000, 10_001)] == [
        True, False, False, True]


def test_records_of_freed_memory_are_dropped():
    x = marked()
    before = len(versions._OWNED), len(versions._VIEWS)
    arrays = [nd.zeros(4, dtype="float64") for _ in range(50)]
    with autograd.record():
        kept = [x[0] * other[:3] for other in arrays]
    for other in arrays:
        other[1:] = 2
    views = [other._data[:2] for other in arrays]
    for view in views:
        versions.wrote(view)
    assert (len(versions._OWNED), len(versions._VIEWS)) == (before[0] + 50, before[1] + 50)
    del arrays, other, kept, views, view
    assert (len(versions._OWNED), len(versions._VIEWS)) == before


# --------------------------------------------------------------------------------------------------- scripts that run


def trained(step, x, w):
    """Three training steps, each with a new record."""
    losses = []
    for _ in range(3):
        with autograd.record():
            loss = ((x * w - 1) ** 2).sum()
        loss.backward()
        step(w)
        losses.append(float(loss.asscalar()))
    assert losses[0] > losses[1] > losses[2]


def by_updater(optimizer):
    updater = mx.optimizer.get_updater(mx.optimizer.create(optimizer, learning_rate=0.001))
    return lambda w: updater(0, w.grad, w)


STEPS = {
    "subscript": lambda w: w.__setitem__(slice(None), w - 0.001 * w.grad),
    "in place": lambda w: w.__isub__(0.001 * w.grad),
    "operator": lambda w: nd.sgd_update(w, w.grad, lr=0.001, out=w),
    **{name: by_updater(name) for name in ("sgd", "nag", "adam", "rmsprop", "signum")},
}


@pytest.mark.parametrize("name", STEPS)
def test_a_weight_may_be_updated_between_steps(name):
    trained(STEPS[name], array(HOST / 12), marked())


def test_accumulated_gradients_survive_updates():
    w, x = marked(), array(HOST)
    w.attach_grad("add")
    for _ in range(2):
        for _ in range(3):
            with autograd.record():
                y = w * x
            y.backward()
        np.testing.assert_array_equal(w.grad.asnumpy(), 3 * HOST)
        w -= 0.1 * w.grad
        w.grad[:] = 0


def test_a_state_that_is_carried_from_batch_to_batch():
    w, state = marked(), nd.zeros((ROWS, COLUMNS), dtype="float64")
    for _ in range(3):
        with autograd.record():
            state = nd.tanh(state * w)
            loss = (state + w).sum()
        loss.backward()
        w -= 0.1 * w.grad
        state = state.detach()
        state[:] = state * 0.5 + 0.1


def test_two_networks_may_train_against_each_other():
    """The second head reads values recorded after the update of the first network."""
    w, v, noise = marked(), marked(), array(HOST / 12)
    with autograd.record():
        made = noise * v
        judged = (made.detach() * w).sum()
    judged.backward()
    w -= 0.1 * w.grad
    now = w.asnumpy()
    with autograd.record():
        fooled = (made * w).sum()
    fooled.backward()
    np.testing.assert_allclose(v.grad.asnumpy(), now * HOST / 12)


def test_an_update_between_two_backward_passes_invalidates_dependent_gradients():
    """An update of ``w`` leaves gradients valid that do not need ``w``; it invalidates those that do."""
    x, w, v = marked(), marked(), marked()
    with autograd.record():
        first, second = (x.detach() * w).sum(), (x.detach() * v).sum()
        shared = (x * w).sum()
    first.backward()
    w -= w.grad
    second.backward()
    np.testing.assert_array_equal(v.grad.asnumpy(), HOST)
    with pytest.raises(OpError, match="changed in place"):
        shared.backward()


def test_marked_variables_may_be_updated():
    w, gradient = array(HOST), nd.zeros((ROWS, COLUMNS), dtype="float64")
    autograd.mark_variables(w, gradient)
    for _ in range(2):
        with autograd.record():
            y = w * w
        before = w.asnumpy()
        y.backward()
        np.testing.assert_array_equal(gradient.asnumpy(), 2 * before)
        w -= gradient * 0.1


def test_states_that_an_operator_moves():
    """Two calls share statistics; a user's operator counts in a state."""
    @mx.operator.register("versions_counts")
    class Prop(mx.operator.CustomOpProp):
        def list_auxiliary_states(self):
            return ["count"]

        def infer_shape(self, shapes):
            return shapes, shapes, [(1,)]

        def create_operator(self, ctx, shapes, dtypes):
            class Counts(mx.operator.CustomOp):
                def forward(self, is_train, req, in_data, out_data, aux):
                    aux[0][:] += 1
                    self.assign(out_data[0], req[0], in_data[0] * in_data[0])

                def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                    self.assign(aux[0], "add", 10)
                    self.assign(in_grad[0], req[0], out_grad[0] * in_data[0] * 2)

            return Counts()

    x, count = marked(), nd.zeros(1, dtype="float64")
    ones, zeros = nd.ones(COLUMNS, dtype="float64"), nd.zeros(COLUMNS, dtype="float64")
    mean, variance = zeros.copy(), ones.copy()
    with autograd.record():
        y = nd.BatchNorm(x, ones, zeros, mean, variance) * nd.BatchNorm(x * x, ones, zeros, mean, variance)
        z = nd.Custom(x, count, op_type="versions_counts") + nd.Custom(x, count, op_type="versions_counts")
    autograd.backward([y, z])
    assert mean.asnumpy().all()
    assert count.asscalar() == 22
    still = ones * 4
    with autograd.record(train_mode=False):  # it keeps copies of the values that it needs
        y = nd.BatchNorm(x, ones, zeros, mean, still, use_global_stats=True, eps=0)
    mean[:] = still[:] = 5
    y.backward(train_mode=False)
    np.testing.assert_allclose(x.grad.asnumpy(), 0.5)


# --------------------------------------------------------------------------------------------------- Tensors, Cells


def vector(*numbers):
    return nn.Tensor(np.float32(numbers))


class Squares(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (2 * x * dout,)


class Doubles(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (2 * dout,)


class Scales(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(vector(2, 2), name="w")
        self.internal_params = [self.w]

    def construct(self, x):
        return x * self.w

    def bprop(self, x, out, dout):
        return (self.w * dout,), {self.w: x * dout}


class Saved(mx._Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x * 2)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return ctx.saved_tensors[0] * 2 * g


def written_after(change, of, expected):
    """Values change between forward and backward: gradients stay right, or an error is raised if ``expected`` is
    None."""
    def check():
        x, w = vector(3, 4), nn.Parameter(vector(2, 2), name="w")
        _, back = mx.vjp(of(x, w), x)
        change(x, w)
        if expected is None:
            with pytest.raises(OpError, match=r"changed in place, at .*test_versions\.py"):
                back(vector(1, 1))
        else:
            assert back(vector(1, 1))[0].asnumpy().tolist() == expected

    return check


def optimised(x, w):
    nn.SGD([w], 1.0)((vector(1, 1),))


SET = {
    "subscript": lambda x, w: w.__setitem__(0, 9.0), "set_data": lambda x, w: w.set_data(vector(9, 9)),
    "assign": lambda x, w: mx.ops.assign(w, vector(9, 9)),
    "add_": lambda x, w: w.add_(vector(1, 1)), "optimizer": optimised,
}
TENSORS = {
    **{f"{name} of a weight": written_after(change, lambda x, w: lambda x: x * w, None)
       for name, change in SET.items()},
    **{f"{name} of a weight, compiled": written_after(change, lambda x, w: mx.jit(lambda x: x * w), None)
       for name, change in SET.items()},
    "a weight that is added": written_after(SET["set_data"], lambda x, w: lambda x: x * 2 + w, [2, 2]),
    "a weight that is added, compiled": written_after(SET["set_data"], lambda x, w: mx.jit(lambda x: x * x + w),
                                                      [6, 8]),
    "an argument": written_after(lambda x, w: x.__setitem__(0, 9.0), lambda x, w: lambda x: x * x, None),
    "an argument, compiled": written_after(lambda x, w: x.__setitem__(0, 9.0), lambda x, w: mx.jit(lambda x: x * x),
                                           [6, 8]),
    "bprop": written_after(lambda x, w: x.__setitem__(0, 9.0), lambda x, w: Squares(), None),
    "bprop that reads nothing": written_after(lambda x, w: x.__setitem__(0, 9.0), lambda x, w: Doubles(), [2, 2]),
    "_Function": written_after(lambda x, w: x.__setitem__(0, 9.0), lambda x, w: lambda x: Saved.apply(x), None),
    "the same numbers": written_after(lambda x, w: w.set_data(vector(2, 2)), lambda x, w: lambda x: x * w, [2, 2]),
}


@pytest.mark.parametrize("name", TENSORS)
def test_writes_to_tensors_are_found(name):
    TENSORS[name]()


def test_a_changed_weight_of_a_cell_with_bprop_is_found():
    cell, x = Scales(), vector(3, 4)
    _, back = mx.vjp(lambda x: cell(x), x)
    cell.w.set_data(vector(9, 9))
    with pytest.raises(OpError, match="changed in place"):
        back(vector(1, 1))


def test_a_compiled_call_brings_a_weight_back_to_where_the_tape_has_it():
    """An assignment while recording gives a weight other memory, until a compiled function reads the weight."""
    w, compiled = nn.Parameter(vector(2, 2), name="w"), mx.jit(lambda x: x * w)
    compiled(vector(1, 1))

    def function(x):
        y = x * w
        w.set_data(vector(5, 5))
        return y

    _, back = mx.vjp(function, vector(3, 4))
    assert back(vector(1, 1))[0].asnumpy().tolist() == [2, 2]
    compiled(vector(1, 1))
    with pytest.raises(OpError, match="changed in place"):
        back(vector(1, 1))


@pytest.mark.parametrize("changed", [None, 0, 40_000, -1], ids=["none", "first", "inner", "last"])
@pytest.mark.parametrize("shape", [(100_000,), (4, 25_000), (1, 100_000), (25_000, 4)], ids=str)
def test_an_assignment_that_changes_any_bit_is_seen(shape, changed):
    array = np.zeros(shape, "float32")
    for source in (array.copy(), array.astype("float64"), array.copy().T.copy().T):
        if changed is not None:
            source.flat[changed] = -0.0
        assert versions.keeps_all_bits(array, source) is (changed is None)
        assert versions.keeps_all_bits(array[::-1], source[::-1]) is (changed is None)

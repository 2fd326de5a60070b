"""Eager calls of a CustomOp: work that is done once and cached must have no visible effect."""

from __future__ import annotations

import gc
import itertools
import threading
import traceback
import warnings
import weakref

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, nd
from opreg.core.attrs import to_text
from opreg.core.registry import get
from opreg.custom.purity import lasting_answers
from opreg.errors import OpError, ShapeError
from tests.cuda.strict import StrictArray
from tests.questions import of_each

UNIQUE = itertools.count()
CALLS = range(4)


def register(prop):
    """Registers a Prop under a new name."""
    name = f"test_runs_{next(UNIQUE)}"
    mx.operator.register(name)(prop)
    return name


class Scale(mx.operator.CustomOp):
    """A multiple of the input; forward stores the factor in an attribute."""

    factor = 2

    def forward(self, is_train, req, in_data, out_data, aux):
        self.seen = in_data[0].asnumpy()
        self.assign(out_data[0], req[0], in_data[0] * self.factor)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * nd.array(self.seen))


class ScaleProp(mx.operator.CustomOpProp):
    operator = Scale

    def create_operator(self, ctx, shapes, dtypes):
        return self.operator()


def recorded(function, *values, req="write"):
    """Recorded results of a function for arrays of these values, and the arrays."""
    arrays = [nd.array(value) for value in values]
    for each in arrays:
        each.attach_grad(req)
    with autograd.record():
        return function(*arrays), arrays


# --------------------------------------------------------------------------- a new Prop and operator for each call


def test_backward_reads_the_state_of_its_own_forward():
    name = register(ScaleProp)
    runs = [recorded(lambda x: nd.Custom(x, op_type=name), [i, i + 1.0]) for i in CALLS]
    for i, (y, (x,)) in reversed([*enumerate(runs)]):
        y.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), [i, i + 1])


def test_state_on_a_prop_is_of_one_call():
    class Prop(ScaleProp):
        def __init__(self):
            super().__init__()
            self.found = []

        def infer_shape(self, in_shape):
            self.found.append(tuple(in_shape[0]))
            return in_shape, in_shape, []

        def create_operator(self, ctx, shapes, dtypes):
            op, op.prop = Scale(), self
            op.factor = len(self.found)
            return op

    name = register(Prop)
    for _ in CALLS:
        assert nd.Custom(nd.ones(2), op_type=name).asnumpy().tolist() == [1, 1]


def test_each_prop_has_the_same_calls_as_the_first():
    asked = []

    class Prop(ScaleProp):
        def __init__(self, k="1"):
            super().__init__()
            asked.append(f"init {k}")

    def noting(method):
        def ask(self, *args):
            asked.append(method)
            return getattr(ScaleProp, method)(self, *args)
        return ask

    methods = ["list_arguments", "list_outputs", "list_auxiliary_states", "infer_shape", "infer_type",
               "create_operator", "declare_backward_dependency"]
    for method in methods:
        setattr(Prop, method, noting(method))
    name, calls = register(Prop), []
    for _ in CALLS:
        y, _x = recorded(lambda x: nd.Custom(x, op_type=name, k=3), [1.0, 2.0])
        y.backward()
        calls.append([*asked])
        asked.clear()
    assert all(call == calls[0] for call in calls)
    own = [each for each in calls[0] if each not in methods[1:3]]  # the inherited methods call these two as well
    assert own == ["init 3", "list_arguments", *methods[3:]]


ANSWERS = {
    "shape": lambda world, op: setattr(world, "shape", (3,)),
    "dtype": lambda world, op: setattr(world, "dtype", np.float16),
    "operator": lambda world, op: setattr(world, "operator", type("Thrice", (Scale,), {"factor": 3})),
    "outputs": lambda world, op: setattr(world, "outputs", ["a", "b"]),
    "arguments": lambda world, op: setattr(world, "arguments", ["a", "b"]),
}


@pytest.mark.parametrize("change", ANSWERS)
def test_results_of_a_props_methods_may_change(change):
    class World:
        shape, dtype, operator, outputs, arguments = (2,), np.float32, Scale, ["a"], ["a"]

    class Prop(mx.operator.CustomOpProp):
        def list_arguments(self):
            return World.arguments

        def list_outputs(self):
            return World.outputs

        def infer_shape(self, in_shape):
            return in_shape, [World.shape] * len(World.outputs), []

        def infer_type(self, in_type):
            return in_type, [World.dtype] * len(World.outputs), []

        def create_operator(self, ctx, shapes, dtypes):
            class Filled(World.operator):
                def forward(self, is_train, req, in_data, out_data, aux):
                    for out, request in zip(out_data, req):
                        self.assign(out, request, self.factor * len(in_data))

            return Filled()

    def run():
        found = nd.Custom(*[nd.ones(2)] * len(World.arguments), op_type=name)
        return [(each.shape, each.dtype, each.asnumpy()[0]) for each in (found if isinstance(found, list) else [found])]

    name = register(Prop)
    for _ in CALLS:
        assert run() == [((2,), np.float32, 2)]
    ANSWERS[change](World, None)
    expected = {"shape": [((3,), np.float32, 2)], "dtype": [((2,), np.float16, 2)],
                "operator": [((2,), np.float32, 3)], "outputs": [((2,), np.float32, 2)] * 2,
                "arguments": [((2,), np.float32, 4)]}[change]
    for _ in CALLS:
        assert run() == expected


def test_a_list_that_a_prop_changes_later_changes_its_inputs():
    names = ["a"]

    class Prop(ScaleProp):
        def list_arguments(self):
            return names

    name = register(Prop)
    for _ in CALLS:
        nd.Custom(nd.ones(2), op_type=name)
    names.append("b")
    with pytest.raises(OpError, match="expected 2 inputs"):
        nd.Custom(nd.ones(2), op_type=name)
    assert nd.Custom(nd.ones(2), nd.ones(2), op_type=name).shape == (2,)


def test_arrays_that_backward_reads_may_change():
    needs = [True]

    class Prop(ScaleProp):
        def __init__(self):
            super().__init__(need_top_grad=needs[0])

    name = register(Prop)

    def run():
        y, (x,) = recorded(lambda x: nd.Custom(x, op_type=name), [3.0])
        y.backward()
        return x.grad.asscalar()

    assert [run() for _ in CALLS] == [3] * 4
    needs[0] = False
    for _ in CALLS:
        with pytest.raises(OpError, match=r"out_grad\[0\] is not available in backward"):
            run()


# ------------------------------------------------------------------------------------------------- keywords


class Text:
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


KEYWORDS = {
    "numbers": [1, 2, 1.0, True, 1, -0.0, 0.0, None], "text": ["1", 1, "1.0"], "tuples": [(1, 2), (1, 3), (1.0, 2)],
    "lists": [[1, 2], [1, 3]], "dicts": [{"a": 1}, {"a": 2}], "NumPy": [np.arange(2), np.arange(3), np.float32(1)],
    "dtypes": [np.float32, np.dtype("float16")], "objects": [Text("a"), Text("b")],
}


@pytest.mark.parametrize("kind", KEYWORDS)
def test_each_call_has_its_own_keywords(kind):
    given = []

    class Prop(ScaleProp):
        def __init__(self, k="none"):
            super().__init__()
            given.append(k)

    name, expected = register(Prop), []
    for k in KEYWORDS[kind] * 3:
        expected.append(to_text(k))
        nd.Custom(nd.ones(2), op_type=name, k=k)
        if isinstance(k, Text):
            k.text += "!"
    assert given == expected


class Difference(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] - in_data[1])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.requests = req
        Difference.requests = [*req]
        for i, sign in enumerate((1, -1)):
            self.assign(in_grad[i], req[i], out_grad[0] * sign)


class DifferenceProp(ScaleProp):
    operator = Difference

    def list_arguments(self):
        return ["a", "b"]


def test_inputs_may_be_passed_by_keyword_in_any_order():
    name = register(DifferenceProp)
    a, b = nd.array([5.0]), nd.array([2.0])
    for _ in CALLS:
        assert nd.Custom(a, b, op_type=name).asscalar() == 3
        assert nd.Custom(b=b, a=a, op_type=name).asscalar() == 3
        assert nd.Custom(a=b, b=a, op_type=name).asscalar() == -3
        assert nd.Custom(b=a, a=a, op_type=name).asscalar() == 0
        with pytest.raises(OpError, match="missing b"):
            nd.Custom(a=a, op_type=name)


def test_the_order_of_inputs_may_change():
    names = ["a", "b"]
    name = register(type("Prop", (DifferenceProp,), {"list_arguments": lambda self: names}))
    a, b = nd.array([5.0]), nd.array([2.0])
    for _ in CALLS:
        assert nd.Custom(a=a, b=b, op_type=name).asscalar() == 3
    names = ["b", "a"]
    for _ in CALLS:
        assert nd.Custom(a=a, b=b, op_type=name).asscalar() == -3


# -------------------------------------------------------------------------------------------------- requests


@pytest.mark.parametrize("wanted, requests", [((True, True), ["write", "write"]), ((True, False), ["write", "null"]),
                                              ((False, True), ["null", "write"])])
@pytest.mark.parametrize("req", ["write", "add"])
def test_only_requested_gradients_are_written(wanted, requests, req):
    name = register(DifferenceProp)
    a, b = nd.array([5.0]), nd.array([2.0])
    for each, want in zip((a, b), wanted):
        if want:
            each.attach_grad(req)
    for i in CALLS:
        with autograd.record():
            y = nd.Custom(a, b, op_type=name)
        y.backward()
        assert Difference.requests == requests
        for each, want, sign in zip((a, b), wanted, (1, -1)):
            assert not want or each.grad.asscalar() == sign * (i + 1 if req == "add" else 1)


def test_a_gradient_left_alone_is_zeros_on_every_call():
    class Op(Difference):
        calls = 0

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            Op.calls += 1
            if Op.calls % 2:
                self.assign(in_grad[0], req[0], out_grad[0])

    name = register(type("Prop", (DifferenceProp,), {"operator": Op}))
    for i in CALLS:
        y, (a, b) = recorded(lambda a, b: nd.Custom(a, b, op_type=name), np.ones(1000), np.ones(1000))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if i < 1 else "error")
            y.backward()
        assert set(a.grad.asnumpy()) == {float(1 - i % 2)} and not b.grad.asnumpy().any()


def test_each_call_changes_its_auxiliary_states():
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            aux[0] += in_data[0]
            self.assign(out_data[0], req[0], aux[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * aux[0])

    class Prop(ScaleProp):
        operator = Op

        def list_auxiliary_states(self):
            return ["sum"]

        def infer_shape(self, in_shape):
            return in_shape, in_shape, in_shape

    name, state = register(Prop), nd.zeros(1)
    for i in CALLS:
        y, (x,) = recorded(lambda x: nd.Custom(x, state, op_type=name), [2.0])
        y.backward()
        assert y.asscalar() == state.asscalar() == x.grad.asscalar() == 2 * (i + 1)


def test_a_second_backward_adds_the_gradient_again():
    name = register(ScaleProp)
    for _ in CALLS:
        y, (x,) = recorded(lambda x: nd.Custom(x, op_type=name), [3.0], req="add")
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.asscalar() == 6


@pytest.mark.parametrize("traced", [False, True])
def test_a_gradient_of_a_gradient_is_computed(traced):
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * in_data[0] * in_data[0])

    class Prop(ScaleProp):
        operator = Op

    Prop.traced = traced
    if not traced:
        Prop.gradient = lambda self, g, ins, outs: [g * 3 * ins[0] * ins[0]]
    name, x = register(Prop), nd.array([2.0])
    x.attach_grad()
    for _ in CALLS:
        with autograd.record():
            y = nd.Custom(x, op_type=name)
            slope = autograd.grad(y, x, create_graph=True, retain_graph=True)[0]
        slope.backward()
        assert (slope.asscalar(), x.grad.asscalar()) == (12, 12)
        with autograd.record():
            y = nd.Custom(x, op_type=name)
        y.backward()
        assert x.grad.asscalar() == 12


def test_the_mode_is_each_calls_own():
    class Op(Scale):
        def forward(self, is_train, req, in_data, out_data, aux):
            assert autograd.is_training() == is_train and not autograd.is_recording()
            self.assign(out_data[0], req[0], int(is_train))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            assert not autograd.is_recording()
            self.assign(in_grad[0], req[0], 10 + autograd.is_training())

    name, x = register(type("Prop", (ScaleProp,), {"operator": Op})), nd.ones(1)
    x.attach_grad()
    for _ in CALLS:
        assert nd.Custom(x, op_type=name).asscalar() == 0
        for train in (True, False):
            with autograd.record(train):
                y = nd.Custom(x, op_type=name)
                assert autograd.is_recording() and autograd.is_training() == train
            y.backward(train_mode=train)
            assert (y.asscalar(), x.grad.asscalar()) == (train, 10 + train)


def test_methods_run_in_the_context_of_the_call():
    class Op(Scale):
        def forward(self, is_train, req, in_data, out_data, aux):
            assert mx.current_context() == in_data[0].context == nd.zeros(1).context
            super().forward(is_train, req, in_data, out_data, aux)

    class Prop(ScaleProp):
        operator = Op

        def create_operator(self, ctx, shapes, dtypes):
            assert mx.current_context() == ctx == mx.cpu(i)
            return Op()

    name = register(Prop)
    for i in (0, 1, 0, 1, 1):
        y = nd.Custom(nd.ones(2, ctx=mx.cpu(i)), op_type=name)
        assert y.context == mx.cpu(i) and mx.current_context() == mx.cpu(0)


def test_an_operator_runs_on_another_device():
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * in_data[0])

    name, x = register(type("Prop", (ScaleProp,), {"operator": Op})), nd.array([3.0], ctx=mx.Context("strict", 0))
    x.attach_grad()
    for _ in CALLS:
        with autograd.record():
            y = nd.Custom(x, op_type=name)
        y.backward()
        assert isinstance(y._data, StrictArray)
        assert (y.as_in_context(mx.cpu()).asscalar(), x.grad.as_in_context(mx.cpu()).asscalar()) == (6, 3)


# ------------------------------------------------------------------------------------------- checks and errors


def test_the_first_run_of_each_kind_is_watched():
    class Careless(Scale):
        def forward(self, is_train, req, in_data, out_data, aux):
            pass

    class Repeats(Scale):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], nd.ones((1, 2)))

    kinds = {"good": Scale, "careless": Careless, "repeats": Repeats}

    class Prop(ScaleProp):
        def __init__(self, kind):
            super().__init__()
            self.operator = kinds[kind]

    name = register(Prop)

    def run(kind, rows=3):
        return nd.Custom(nd.ones((rows, 2)), op_type=name, kind=kind)

    for _ in CALLS:
        run("good")
        with pytest.raises(OpError, match=r"Careless.forward .* never wrote 'output'"):
            run("careless")
    for rows in (3, 4):
        with pytest.warns(UserWarning, match="is repeated to fill it"):
            run("repeats", rows)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run("repeats", rows)
    kinds["good"] = Careless
    with pytest.raises(OpError, match="never wrote"):
        run("good")


def test_a_warning_names_arrays_that_lose_imaginary_parts():
    class Op(Scale):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0].asnumpy() * 2j)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0].asnumpy() * 2j)

    name = register(type("Prop", (ScaleProp,), {"operator": Op}))
    for _ in CALLS:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            y, _x = recorded(lambda x: nd.Custom(x, op_type=name), [1.0])
            y.backward()
        assert told and all("imaginary parts are lost; assign the .real part" in str(each.message) for each in told)


MISTAKES = {
    "__init__": ScaleProp, "list_arguments": ScaleProp, "list_outputs": ScaleProp, "list_auxiliary_states": ScaleProp,
    "infer_shape": ScaleProp, "infer_type": ScaleProp, "create_operator": ScaleProp,
    "declare_backward_dependency": ScaleProp, "forward": Scale, "backward": Scale,
}


@of_each(MISTAKES)
def test_errors_say_the_same_on_every_call(method):
    class Broken(Exception):
        pass

    broken = [False]

    def breaks(self, *args, **keywords):
        if broken[0]:
            raise Broken("on purpose")
        return getattr(MISTAKES[method], method)(self, *args, **keywords)

    made = type("Made", (MISTAKES[method],), {method: breaks})
    prop = made if issubclass(made, mx.operator.CustomOpProp) else type("Prop", (ScaleProp,), {"operator": made})

    def run(name):
        y, _ = recorded(lambda x: nd.Custom(x, op_type=name), [1.0, 2.0])
        y.backward()

    def text(name):
        with pytest.raises(Broken) as caught:
            run(name)
        return [line.replace(name, "NAME") for line in traceback.format_exception_only(caught.value)]

    name, new = register(prop), register(prop)
    for _ in CALLS:
        run(name)
    broken[0] = True
    first, later = text(new), text(name)
    assert first == later and "on purpose" in first[0] and len(first) > 1
    broken[0] = False
    run(name)
    run(new)


RETURNS = {
    "list_outputs": "ab", "list_arguments": ["a", "a"], "infer_shape": ([(2,)], [(2,)], [], []),
    "infer_type": ([np.float32], ["float33"], []), "create_operator": 3, "declare_backward_dependency": [7],
}


@pytest.mark.parametrize("method", RETURNS)
def test_wrong_answers_are_refused_on_every_call(method):
    wrong = [False]
    prop = type("Prop", (ScaleProp,), {method: lambda self, *args: RETURNS[method] if wrong[0] else getattr(
        ScaleProp, method)(self, *args)})

    def run(name):
        y, _ = recorded(lambda x: nd.Custom(x, op_type=name), [1.0, 2.0])
        y.backward()

    name = register(prop)
    for _ in CALLS:
        run(name)
    wrong[0] = True
    for _ in CALLS:
        with pytest.raises(OpError, match=method):
            run(name)


def test_shapes_that_do_not_follow_from_inputs_are_refused():
    known = [(2,)]

    class Prop(ScaleProp):
        def infer_shape(self, in_shape):
            return in_shape, known, []

    name = register(Prop)
    for _ in CALLS:
        nd.Custom(nd.ones(2), op_type=name)
    known[0] = (None,)
    with pytest.raises((ShapeError, OpError), match="infer_shape"):
        nd.Custom(nd.ones(2), op_type=name)


def test_inputs_stay_read_only():
    class Op(Scale):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], 1)
            with pytest.raises(OpError, match="read-only"):
                in_data[0][:] = 5
            with pytest.raises(ValueError, match="read-only"):
                in_data[0]._data[:] = 5

    name, x = register(type("Prop", (ScaleProp,), {"operator": Op})), nd.ones(2)
    for _ in CALLS:
        nd.Custom(x, op_type=name)
    assert x.asnumpy().tolist() == [1, 1]


# ---------------------------------------------------------------------------------------------- lifetime of caches


def test_a_new_registration_is_used():
    class Tenfold(Scale):
        factor = 10

    name = register(ScaleProp)
    for _ in CALLS:
        assert nd.Custom(nd.ones(1), op_type=name).asscalar() == 2
    with pytest.warns(UserWarning, match="is replaced by"):
        mx.operator.register(name)(type("Prop", (ScaleProp,), {"operator": Tenfold}))
    for _ in CALLS:
        assert nd.Custom(nd.ones(1), op_type=name).asscalar() == 10

    @get(f"custom.{name}").kernel("better", bound=True)
    def better(call):
        return [lambda: call.outs[0].fill(7)]

    for _ in CALLS:
        assert nd.Custom(nd.ones(1), op_type=name).asscalar() == 7


def test_the_cache_is_bounded():
    class Prop(ScaleProp):
        def __init__(self, k: int = 0):
            super().__init__()

    name = register(Prop)
    for i in range(300):
        nd.Custom(nd.ones(2), op_type=name, k=i)
        nd.Custom(nd.ones(i + 1), op_type=name)
    calls = get(f"custom.{name}").signature.schema.calls
    kept = [*calls.entries()]
    assert calls.limit // 2 <= len(kept) <= calls.limit
    assert calls.limit // 2 <= max(len([*each.runs.entries()]) for each in kept) <= calls.limit


def test_nothing_of_a_call_stays_alive():
    made = []

    class Op(Scale):
        def __init__(self):
            super().__init__()
            made.append(weakref.ref(self))

    class Prop(ScaleProp):
        operator = Op

        def __init__(self):
            super().__init__()
            made.append(weakref.ref(self))

    name = register(Prop)
    gc.disable()
    try:
        for _ in CALLS:
            y, (x,) = recorded(lambda x: nd.Custom(x, op_type=name), [1.0])
            y.backward()
            arrays = [weakref.ref(x), weakref.ref(y)]
            del x, y
            assert not any(each() for each in (*made, *arrays))
    finally:
        gc.enable()


# --------------------------------------------------------------------------------------- recursion and threads


def test_an_operator_may_call_itself():
    class Power(mx.operator.CustomOp):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def forward(self, is_train, req, in_data, out_data, aux):
            x = in_data[0].copy()
            x.attach_grad()
            with autograd.record():
                self.x, self.y = x, x * (nd.Custom(x, op_type=name, n=self.n - 1) if self.n > 1 else 1)
            self.assign(out_data[0], req[0], self.y)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.y.backward(out_grad[0])
            self.assign(in_grad[0], req[0], self.x.grad)

    class Prop(mx.operator.CustomOpProp):
        def __init__(self, n: int):
            super().__init__()
            self.n = n

        def create_operator(self, ctx, shapes, dtypes):
            return Power(self.n)

    name = register(Prop)
    for n in (1, 3, 4, 3):
        y, (x,) = recorded(lambda x, n=n: nd.Custom(x, op_type=name, n=n), [2.0])
        y.backward()
        assert (y.asscalar(), x.grad.asscalar()) == (2 ** n, n * 2 ** (n - 1))


def test_two_threads_may_run_an_operator_at_once():
    both = threading.Barrier(2, timeout=30)

    class Op(Scale):
        def forward(self, is_train, req, in_data, out_data, aux):
            super().forward(is_train, req, in_data, out_data, aux)
            both.wait()

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            both.wait()
            super().backward(req, out_grad, in_data, out_data, in_grad, aux)

    name, found = register(type("Prop", (ScaleProp,), {"operator": Op})), {}

    def work(number):
        for i in range(20):
            y, (x,) = recorded(lambda x: nd.Custom(x, op_type=name), [number + i, 1.0])
            y.backward()
            found[number, i] = y.asnumpy()[0], x.grad.asnumpy()[0]

    threads = [threading.Thread(target=work, args=(number,)) for number in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {(number, i): (2 * (number + i), number + i) for number in (100, 200) for i in range(20)}


# ------------------------------------------------------------------------------------- Props that answer alike

MODULE = [1]
NUMBER = 3


def helper():
    return 1


class Usual(mx.operator.CustomOpProp):
    def __init__(self, k: int = 3, pad="0"):
        super().__init__(need_top_grad=False)
        self.k, self._twice = k, int(k) * 2
        self.pad = tuple([int(each) for each in pad.split(",")])

    def list_arguments(self):
        return ["data", "label"]

    def list_outputs(self):
        return [f"output{i}" for i in range(self.k)]

    def infer_shape(self, in_shape):
        data = in_shape[0]
        if len(data) < 1:
            raise ValueError("no batch")
        in_shape[1] = [data[0]]
        return in_shape, [[data[0], int(np.prod(data[1:]))]] * len(self.list_outputs()), []

    def infer_type(self, in_type):
        return [in_type[0]] * 2, [np.float32] * self.k, []

    def create_operator(self, ctx, shapes, dtypes):
        return Scale()


class Derived(Usual):
    def __init__(self, **keywords):
        super().__init__(**keywords)


class Inherited(ScaleProp):
    pass


@pytest.mark.parametrize("prop", [Usual, Derived, Inherited, mx.operator.CustomOpProp])
def test_props_whose_methods_always_return_the_same_are_shared(prop):
    assert lasting_answers(prop()) is not None


def prop_with(**members):
    return type("Prop", (mx.operator.CustomOpProp,), members)


def stores(self, shapes):
    self.asked = True
    return shapes, shapes, []


def aliased(self, *args):
    other = self
    return Scale(other)


def imports(self, shapes):
    import time
    return shapes, [[time.time_ns() % 2 + 1]], []


def keeps_operator(self, *args):
    self.operator = Scale()
    return self.operator


class HasAList(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__()
        self.asked = []


def counts_globally(self):
    global NUMBER  # noqa: PLW0603
    NUMBER += 0
    return ["data"]


def of_its_class():
    class Prop(mx.operator.CustomOpProp):
        number = 1

        def list_arguments(self):
            return ["a", "b"][:Prop.number]

    return Prop


def of_its_cell():
    class Prop(mx.operator.CustomOpProp):
        number = 1

        def list_arguments(self):
            return ["a", "b"][:__class__.number]

    return Prop


def of_a_closure():
    number = 1
    return prop_with(list_arguments=lambda self: ["a", "b"][:number])


class StoresByProperty(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__()
        self.k = 1

    k = property(lambda self: 1, lambda self, value: MODULE.append(value))


def counting_gradient(self, g, ins, outs):
    self.asked = True
    return [g]


UNALIKE = {
    "stores by a property": StoresByProperty,
    "stores on itself in its gradient": prop_with(gradient=counting_gradient),
    "changes a list of the module": prop_with(infer_shape=lambda self, s: (MODULE.append(1) or s, s, [])),
    "stores on itself": prop_with(infer_shape=stores),
    "reads a number of the module": prop_with(infer_shape=lambda self, s: (s, [[NUMBER]], [])),
    "calls a function of the module": prop_with(infer_shape=lambda self, s: (s, [[helper()]], [])),
    "draws": prop_with(infer_shape=lambda self, s: (s, [[np.random.default_rng().integers(1, 3)]], [])),
    "prints": prop_with(infer_shape=lambda self, s: (print(s) or s, s, [])),
    "imports": prop_with(infer_shape=imports),
    "changes the module": prop_with(list_arguments=counts_globally),
    "hands itself on": prop_with(create_operator=lambda self, *args: Scale(self)),
    "hands itself on by another name": prop_with(create_operator=aliased),
    "hands on a method": prop_with(create_operator=lambda self, *args: Scale(self.infer_shape)),
    "keeps its operator": prop_with(create_operator=keeps_operator),
    "reads its class": prop_with(names=["a"], list_arguments=lambda self: self.names),
    "reads its class by name": of_its_class(),
    "reads its class by a cell": of_its_cell(),
    "reads a closure": of_a_closure(),
    "asks for its class": prop_with(list_arguments=lambda self: self.__class__.names),
    "asks for its dict": prop_with(list_arguments=lambda self: self.__dict__["names"]),
    "has a list as default": prop_with(list_arguments=lambda self, names=[]: names),
    "has a property": prop_with(list_arguments=property(lambda self: lambda: ["data"])),
    "has a static method": prop_with(list_arguments=staticmethod(lambda: ["data"])),
    "has a hook": prop_with(__getattr__=lambda self, name: 1),
    "has a list": HasAList,
    "evaluates": prop_with(list_outputs=lambda self: eval("['output']")),
    "is in a comprehension": prop_with(list_outputs=lambda self: [str(each) for each in (self,)]),
}


@of_each(UNALIKE)
def test_props_whose_methods_may_return_something_else_are_not_shared(kind):
    assert lasting_answers(UNALIKE[kind]()) is None


def test_a_method_that_is_replaced_is_called():
    class Prop(ScaleProp):
        pass

    name = register(Prop)
    for _ in CALLS:
        assert nd.Custom(nd.ones(2), op_type=name).shape == (2,)
    Prop.infer_shape = lambda self, in_shape: (in_shape, [[3, 2]], [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two elements are broadcast
        for _ in CALLS:
            assert nd.Custom(nd.ones(2), op_type=name).shape == (3, 2)


def test_lists_that_create_operator_changes_are_its_own():
    given = []

    class Prop(ScaleProp):
        def create_operator(self, ctx, shapes, dtypes):
            given.append(([*shapes], [*dtypes]))
            shapes[0].append(1)
            dtypes.clear()
            return Scale()

    name = register(Prop)
    for _ in CALLS:
        nd.Custom(nd.ones(2), op_type=name)
    assert [len(dtypes) for _, dtypes in given] == [1] * 4


def _counting():
    """Name of an operator that multiplies by the number of its runs."""
    class Op(mx.operator.CustomOp):
        count = 0

        def forward(self, is_train, req, in_data, out_data, aux):
            self.count += 1
            self.assign(out_data[0], req[0], in_data[0] * self.count)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * self.count)

    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Op()

    return register(Prop)


@pytest.mark.parametrize("hybrid", [False, True])
def test_each_call_has_an_operator_of_its_own(hybrid):
    name = _counting()

    class Counts(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.Custom(x, op_type=name)

    block, x = Counts(), nd.ones((2,))
    if hybrid:
        block.hybridize()
    x.attach_grad()
    for _ in range(4):
        with autograd.record():
            y = block(x)
        y.backward()
        assert (y.asnumpy().tolist(), x.grad.asnumpy().tolist()) == ([1, 1], [1, 1])
        assert block(x).asnumpy().tolist() == [1, 1]
    with autograd.record():
        y = block(x) + block(x * 3)
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 4]


def test_a_compiled_function_makes_an_operator_for_each_run():
    op = get(f"custom.{_counting()}")
    function = mx.jit(lambda x: op(x) + 1)
    gradient = mx.grad(function)
    x = mx.Tensor(np.ones(2, "float32"))
    for _ in range(4):
        assert function(x).asnumpy().tolist() == [2, 2]
        assert gradient(x).asnumpy().tolist() == [1, 1]


def test_an_executor_keeps_its_operator():
    x = mx.sym.Variable("x")
    executor = mx.sym.Custom(x, op_type=_counting()).simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = 1
    for count in (1, 2, 3):
        assert executor.forward(is_train=True)[0].asnumpy().tolist() == [count] * 2
        executor.backward(nd.ones((2,)))
        assert executor.grad_dict["x"].asnumpy().tolist() == [count] * 2

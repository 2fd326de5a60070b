"""Mistakes in users' operators: the error or warning for each, and when it appears."""

from __future__ import annotations

import inspect
import itertools
import re
import warnings

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, OpError
from tests.questions import of_each

nd, sym, autograd = mx.nd, mx.sym, mx.autograd
CustomOp, CustomOpProp = mx.operator.CustomOp, mx.operator.CustomOpProp
_NUMBERS = itertools.count()


class Twice(CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


def registered(operator=Twice, inputs=("data",), **methods) -> str:
    """Register a Prop with these methods under a name of its own."""
    name = f"test_mistakes_{next(_NUMBERS)}"
    methods = {"create_operator": lambda self, ctx, shapes, dtypes: operator(),
               "list_arguments": lambda self: list(inputs), **methods}
    mx.operator.register(name)(type("P", (CustomOpProp,), {key: each for key, each in methods.items() if each}))
    return name


def doing(forward=None, backward=None):
    """A CustomOp with these functions as methods; they get the operator and the lists."""
    def run_forward(self, is_train, req, in_data, out_data, aux):
        forward(self, req, in_data, out_data)

    def run_backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        backward(self, req, out_grad, in_grad)

    methods = {"forward": forward and run_forward, "backward": backward and run_backward}
    return type("Op", (Twice,), {key: each for key, each in methods.items() if each})


def composed(name, **keywords):
    """Makes a symbol."""
    sym.Custom(sym.Variable("x"), op_type=name, **keywords)


def eagerly(name, **keywords):
    """Takes a gradient on the tape."""
    x = nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type=name, **keywords)
    y.backward()
    return x.grad


def in_a_graph(name, **keywords):
    """Takes a gradient of a bound symbol."""
    executor = sym.Custom(sym.Variable("x"), op_type=name, name="node", **keywords).simple_bind(mx.cpu(), x=(2, 3))
    executor.arg_dict["x"][:] = 1
    executor.forward(is_train=True)
    executor.backward(nd.ones((2, 3)))
    return executor.grad_dict["x"]


BOTH = pytest.mark.parametrize("run", [eagerly, in_a_graph])


# ------------------------------------------------------------------------------------------------- refused


def forgets(self):
    self.k = 1


MISTAKES = [
    (dict(create_operator=None), ArgumentError, r"P has no create_operator\(self, ctx, shapes, dtypes\)"),
    (dict(create_operator=lambda *_: Twice), ArgumentError, r"returned <class .*, expected a CustomOp: Twice\(\)"),
    (dict(__init__=forgets), ArgumentError, r"P\.__init__ does not call super\(\).__init__\(\)"),
    (dict(operator=type("Op", (Twice,), {"forward": lambda self, is_train, req, ins, outs, aux: None})), ArgumentError,
     r"Op\.forward of operator '.*' takes \(is_train, req, ins, outs, aux\); it is called by keyword, so its "
     "parameters must be named is_train, req, in_data, out_data, aux"),
    (dict(operator=type("Op", (Twice,), {"backward": lambda self, req, top, bottom, out, grad, aux: None})),
     ArgumentError, "must be named req, out_grad, in_data, out_data, in_grad, aux"),
    (dict(operator=doing(lambda self, req, ins, outs: ins[0].__setitem__(0, 1))), OpError,
     r"an input of the operator and is read-only: copy it first, x = x\.copy\(\)\. \(In MXNet"),
]


@BOTH
@pytest.mark.parametrize("made, kind, words", MISTAKES)
def test_errors_for_mistakes_name_the_remedy(run, made, kind, words):
    name = registered(**made)
    for _ in range(2):
        with pytest.raises(kind, match=words) as caught:
            run(name)
        assert name in str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))


def init(convert):
    """A constructor that converts its keyword ``k``."""
    def made(self, k):
        CustomOpProp.__init__(self)
        self.k = convert(k)

    return made


def forward_of(statement):
    return dict(operator=doing(forward=statement))


def backward_of(statement):
    return dict(operator=doing(backward=statement))


LISTED = (r"in_data has 1 entry \(data\), by list_arguments; out_data has 1 entry \(output\), by list_outputs; "
          "aux has no entry")
CALL = r"assign: expected an array, its request and a value, as in self\.assign\(out_data\[0\], req\[0\], value\), got "
CREATES = r"P\.create_operator takes \(.*\), expected \(self, ctx, shapes, dtypes\)"
TEXTS = "keywords of a Prop without an annotation are passed as text, as in MXNet: k="
WORDS = [  # a mistake, the keywords of the call, the class of the error, words of its message or of a note
    (forward_of(lambda self, req, ins, outs: self.assign(outs, req, ins)), {}, ArgumentError, CALL + "list, list, li"),
    (forward_of(lambda self, req, ins, outs: self.assign(outs, req[0], 1)), {}, ArgumentError, CALL + "list, str, int"),
    (forward_of(lambda self, req, ins, outs: self.assign(outs[0], req, 1)), {}, ArgumentError, CALL + "NDArray, list"),
    (forward_of(lambda self, req, ins, outs: self.assign(outs[0], ins[0], "add")), {}, ArgumentError,
     CALL + "NDArray, NDArray, str$"),
    (backward_of(lambda self, req, tops, grads: self.assign(grads, req, tops)), {}, ArgumentError, CALL),
    (forward_of(lambda self, req, ins, outs: self.assign(outs[0], ins[0])), {}, TypeError,
     r"^CustomOp\.assign\(\) missing 1 required positional argument: 'src'"),
    (forward_of(lambda self, req, ins, outs: outs[1]), {}, IndexError, LISTED),
    (forward_of(lambda self, req, ins, outs: outs.__setitem__(1, 0)), {}, IndexError, LISTED),
    (forward_of(lambda self, req, ins, outs: ins[1]), {}, IndexError, LISTED),
    (forward_of(lambda self, req, ins, outs: ins[0].dat), {}, AttributeError,
     "^'NDArray' object has no attribute 'dat'"),
    (forward_of(lambda self, req, ins, outs: ins[0]()), {}, TypeError, "^'NDArray' object is not callable"),
    (forward_of(lambda self, req, ins, outs: (lambda a, b: 0)(*ins)), {}, TypeError, "in Op.forward of operator"),
    (backward_of(lambda self, req, tops, grads: grads[1]), {}, IndexError, LISTED),
    (dict(infer_shape=lambda self, shapes: (shapes, [shapes[1]], [])), {}, IndexError, LISTED),
    (dict(infer_shape=lambda self, shapes: (shapes, [(2, -3)], [])), {}, ArgumentError,
     r"P\.infer_shape returned the shape \(2, -3\), expected no negative dimensions"),
    (dict(infer_shape=lambda self, shapes: ([(-2, 3)], shapes, [])), {}, ArgumentError,
     r"P\.infer_shape returned the shape \(-2, 3\), expected no negative dim"),
    (dict(infer_shape=lambda self, shapes: (shapes, (2, 3), [])), {}, ArgumentError,
     r"returned .*, expected lists of shapes: return \[\[2, 3\]\], \[\(2, 3\)\], \[\]"),
    (dict(infer_shape=lambda self, shapes: (shapes, (2,))), {}, ArgumentError,
     r"shapes: return \[\[2, 3\]\], \[\(2,\)\]"),
    (dict(infer_type=lambda self, types: (types, "float32", [])), {}, ArgumentError,
     r"P\.infer_type returned .*, expected lists of dtypes: return .*, \['float32'\], \[\]"),
    (dict(infer_type=lambda self, types: (types, np.float32, [])), {}, ArgumentError, "expected lists of dtypes"),
    (dict(create_operator=lambda self: Twice()), {}, TypeError, CREATES),
    (dict(create_operator=lambda self, ctx, shapes: Twice()), {}, TypeError, CREATES),
    (dict(create_operator=lambda: Twice()), {}, TypeError, CREATES),
    (dict(create_operator=lambda self, *_: None), {}, ArgumentError,
     r"create_operator returned None, expected a CustomOp, as in return Op\(\)"),
    (dict(create_operator=None, create_op=lambda self, *_: Twice()), {}, ArgumentError,
     "returns the CustomOp that computes; is it .create_op"),
    (dict(infer_shape=lambda shapes: (shapes, shapes, [])), {}, TypeError,
     r"P\.infer_shape takes \(shapes\), expected \(self, in_shape\)"),
    (dict(list_arguments=lambda: ["data"]), {}, TypeError, r"P\.list_arguments takes \(\), expected \(self\)"),
    (dict(__init__=init(float)), {"k": "abc"}, ValueError, TEXTS + "'abc'"),
    (dict(__init__=init(float)), {"k": None}, ValueError, TEXTS + "'None'"),
    (dict(__init__=init(int)), {"k": 1.5}, ValueError, TEXTS + "'1.5'"),
    (dict(__init__=init(str), infer_shape=lambda self, shapes: (shapes, [(int(self.k),)])), {"k": "ten"}, ValueError,
     TEXTS + "'ten'"),
]


@BOTH
@pytest.mark.parametrize("made, keywords, kind, words", WORDS)
def test_errors_have_the_stated_texts(run, made, keywords, kind, words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about misspelt methods
        name = registered(**made)
    for _ in range(2):
        with pytest.raises(kind) as caught:
            run(name, **keywords)
        said = [str(caught.value), *getattr(caught.value, "__notes__", ())]
        assert any(re.search(words, each) for each in said), said
        assert name in "".join(said)


@pytest.mark.parametrize("make, noted", [
    (lambda x: mx.sym.Custom(x, kk=3, op_type=registered(__init__=init(int))), False),
    (lambda x: mx.sym.Custom(3, op_type=registered()), True),
    (lambda x: mx.sym.FullyConnected(data=3, num_hidden=2), True)])
def test_a_number_in_place_of_a_symbol_is_refused(make, noted):
    with pytest.raises(ArgumentError) as caught:
        make(mx.sym.var("x"))
    assert any("expected a symbol, got a number" in each for each in caught.value.__notes__) == noted


@BOTH
@pytest.mark.parametrize("mistake", [
    lambda shapes: (lambda: 0)(shapes), lambda shapes: {}["x"], lambda shapes: [][shapes]])
def test_errors_inside_a_method_do_not_mention_its_parameters(run, mistake):
    with pytest.raises((TypeError, KeyError)) as caught:
        run(registered(infer_shape=lambda self, shapes: mistake(shapes)))
    assert "expected (self" not in "".join(caught.value.__notes__)


@BOTH
def test_the_error_for_a_misspelt_attribute_names_the_nearest(run):
    for statement, near in ((lambda self, req, ins, outs: self.asign(outs[0], req[0], ins[0]), "assign"),
                            (lambda self, req, ins, outs: ins[0].asnump(), "asnumpy")):
        with pytest.raises(AttributeError) as caught:
            run(registered(doing(statement)))
        assert f"Did you mean {near!r}" in "".join(caught.value.__notes__)


def test_a_constructor_is_checked_when_a_symbol_is_made():
    with pytest.raises(ArgumentError, match=r"does not call super\(\)"):
        composed(registered(__init__=forgets))
    with_answer = registered(__init__=forgets, declare_backward_dependency=lambda self, tops, ins, outs: [*tops, *ins])
    assert (in_a_graph(with_answer).asnumpy() == 2).all()


TEXT = [  # use of a keyword that is text
    lambda self, k: [0] * k, lambda self, k: k + 1, lambda self, k: np.zeros(3) * k, lambda self, k: range(k),
]


@BOTH
@pytest.mark.parametrize("use", TEXT)
@pytest.mark.parametrize("place", ["__init__", "infer_shape", "forward", "backward"])
def test_a_keyword_is_text(run, use, place):
    def init(self, k):
        CustomOpProp.__init__(self)
        self.k = k
        if place == "__init__":
            use(self, k)

    def infer_shape(self, shapes):
        if place == "infer_shape":
            use(self, self.k)
        return shapes, shapes, []

    def create_operator(self, ctx, shapes, dtypes):
        class Op(Twice):
            def forward(op, **given):
                if place == "forward":
                    use(self, self.k)
                Twice.forward(op, **given)

            def backward(op, **given):
                if place == "backward":
                    use(self, self.k)

        return Op()

    name = registered(__init__=init, infer_shape=infer_shape, create_operator=create_operator)
    with pytest.raises(TypeError) as caught:
        run(name, k=3)
    assert any("keywords of a Prop without an annotation are passed as text, as in MXNet: k='3'" in each
               for each in caught.value.__notes__)


def test_other_exceptions_do_not_mention_text_attributes():
    def init(self, word, k: int = 1):
        CustomOpProp.__init__(self)

    for kind, keywords in ((ValueError, {"word": 3}), (TypeError, {"word": "three", "k": 3}), (TypeError, {"word": 3})):
        def infer_shape(self, shapes, kind=kind):
            raise kind("mine")

        with pytest.raises(kind, match="mine") as caught:
            eagerly(registered(__init__=init, infer_shape=infer_shape), **keywords)
        assert "annotation" not in "".join(caught.value.__notes__)


@pytest.mark.parametrize("namespace", ["nd", "sym"])
def test_users_operators_have_a_namespace(namespace):
    name = registered()
    with pytest.raises(AttributeError, match=rf"A user's operator has this name: {namespace}.custom.{name}"):
        getattr(getattr(mx, namespace), name)


# ---------------------------------------------------------------------------------------------------- warned of


def method(self, *args, **keywords):
    """A method to be given any name."""


MISSPELT = [  # the class, its methods, the nearest word or None
    (CustomOpProp, ["list_argument"], "list_arguments"), (CustomOpProp, ["list_inputs"], "list_arguments"),
    (CustomOpProp, ["infer_shapes"], "infer_shape"), (CustomOpProp, ["create_op"], "create_operator"),
    (CustomOpProp, ["list_aux_states"], "list_auxiliary_states"), (CustomOpProp, ["infer_dtype"], "infer_type"),
    (CustomOpProp, ["gradients"], "gradient"), (CustomOpProp, ["Infer_Shape"], "infer_shape"),
    (CustomOp, ["foward", "backward"], "forward"), (CustomOp, ["forward", "backwards"], "backward"),
    (CustomOp, ["forward", "backword"], "backward"), (mx.operator.PythonOp, ["lsit_outputs"], "list_outputs"),
    (CustomOpProp, ["infer_shape", "infer_shapes"], None), (CustomOpProp, ["shape", "setup", "get_params"], None),
    (CustomOp, ["forward", "backward", "forwards"], None), (CustomOp, ["forward_cpu", "my_forward"], None),
    (CustomOp, ["_foward", "run", "step", "reset"], None), (CustomOpProp, ["vmap", "gradient", "to_onnx"], None),
]


@of_each(MISSPELT)
def test_misspelt_methods_of_a_class_cause_a_warning(base, methods, near):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        type("Mine", (base,), dict.fromkeys(methods, method))
    assert [str(each.message) for each in said] == ([] if near is None else [
        f"class Mine: {base.__name__} has no method {next(name for name in methods if name not in dir(base))!r}, so "
        f"opreg never calls it. Did you mean {near!r}?"])
    assert all(each.filename == __file__ for each in said)


def test_a_class_says_once_that_it_is_misspelt():
    """Derived classes, and attributes that are no methods, cause no warning."""
    with pytest.warns(UserWarning, match="'foward'"):
        base = type("Base", (CustomOp,), {"foward": method, "backwards": [1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type("Derived", (base,), {"run": method})


def line_of(function) -> int:
    return inspect.getsourcelines(function)[1]


@BOTH
@pytest.mark.parametrize("value, words", [
    (lambda x: x.sum(axis=0), r"\(3,\)"), (lambda x: np.ones((2, 1)), r"\(2, 1\)"), (lambda x: [1, 2, 3], r"\(3,\)"),
])
def test_a_result_that_is_broadcast_causes_a_warning(run, value, words):
    def forward(self, req, ins, outs):
        self.assign(outs[0], req[0], value(ins[0]))

    name = registered(doing(forward))
    with pytest.warns(UserWarning, match=rf"^Op\.forward of operator '{name}': out_data\[0\], 'output', has shape "
                                         rf"\(2, 3\) and is assigned {words}, which is repeated to fill it$") as caught:
        run(name)
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, line_of(forward) + 1)]


@BOTH
def test_a_gradient_that_is_broadcast_causes_a_warning(run):
    name = registered(doing(backward=lambda self, req, tops, grads: self.assign(grads[0], req[0], tops[0].sum(axis=0))))
    with pytest.warns(UserWarning, match=r"Op\.backward of .*: in_grad\[0\], 'data', has shape \(2, 3\) and is ass"):
        found = run(name)
    assert (found.asnumpy() == 2).all()


@BOTH
@pytest.mark.parametrize("value", [
    3, 2.5, np.float32(2), np.ones(1), np.ones((1, 1)), np.ones((1, 2, 3)), nd.ones(1), [1.0], np.ones((2, 3), int)])
def test_scalars_are_broadcast_without_a_warning(run, value):
    run(registered(doing(lambda self, req, ins, outs: self.assign(outs[0], req[0], value))))


@BOTH
def test_imaginary_parts_are_lost(run):
    """The warning names the user's line, in every run."""
    def forward(self, req, ins, outs):
        self.assign(outs[0], req[0], np.fft.fft(ins[0].asnumpy()))

    def often():
        run(name)
        executor = sym.Custom(sym.Variable("x"), op_type=name).simple_bind(mx.cpu(), x=(2, 3))
        for _ in range(3):
            executor.forward()

    name = registered(doing(forward))
    with pytest.warns(np.exceptions.ComplexWarning, match="whose imaginary parts are lost; assign the "
                                                          ".real part") as caught:
        often()
    assert {(each.filename, each.lineno) for each in caught} == {(__file__, line_of(forward) + 1)}


def test_after_the_first_run_assign_is_the_operators_own():
    """The check that watches ``assign`` is gone after the first run, and leaves an operator's own ``assign`` alone."""
    made = []

    class Own(Twice):
        def __init__(self):
            made.append(self)

        def assign(self, dst, req, src):
            dst[:] = src

    for operator in (Own, type("Op", (Own,), {"assign": CustomOp.assign})):
        in_a_graph(registered(operator))
        assert "assign" not in vars(made[-1])


def gradients_of(name, count):
    """The gradients of all inputs, eagerly and in a graph."""
    arrays = [nd.ones(2) for _ in range(count)]
    for each in arrays:
        each.attach_grad()
    with autograd.record():
        y = nd.Custom(*arrays, op_type=name)
    y.backward()
    net = sym.Custom(*[sym.Variable(f"x{i}") for i in range(count)], op_type=name)
    executor = net.simple_bind(mx.cpu(), **{f"x{i}": (2,) for i in range(count)})
    executor.forward(is_train=True)
    executor.backward(nd.ones(2))
    return [each.grad.asnumpy().tolist() for each in arrays], [each.asnumpy().tolist() for each in executor.grad_arrays]


UNWRITTEN = [  # inputs, backward, message
    (["a", "b"], lambda self, req, tops, grads: self.assign(grads[0], req[0], tops[0]),
     r"the gradient of 'b': nothing is written by Op\.backward of operator '.*', so zeros are used"),
    (["a", "b"], lambda self, req, tops, grads: tops[0] * 2, "the gradients of 'a', 'b': nothing is written by"),
    (["a", "label", "b"], lambda self, req, tops, grads: self.assign(grads[0], req[0], 1),
     "the gradient of 'b': nothing is written by"),
]


@pytest.mark.parametrize("inputs, backward, words", UNWRITTEN)
def test_gradients_that_are_never_written(inputs, backward, words):
    """One warning names the line of backward."""
    name = registered(doing(backward=backward), inputs)
    with pytest.warns(UserWarning, match=words) as caught:
        eager, graph = gradients_of(name, len(inputs))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert eager == graph
    assert eager[-1] == [0, 0]


def test_an_operator_without_backward_gives_zero_gradients_with_a_warning():
    class Op(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

    name = registered(Op, ["a", "b"])
    with pytest.warns(UserWarning, match=r"the gradients of 'a', 'b': there is no Op\.backward of operator") as caught:
        assert gradients_of(name, 2) == ([[0, 0]] * 2, [[0, 0]] * 2)
    assert [each.filename for each in caught] == [__file__]


def passes(self, req, out_grad, in_data, out_data, in_grad, aux):
    """A backward that does nothing."""
    pass  # noqa: PIE790  as users write it


@pytest.mark.parametrize("inputs, operator", [
    (["a", "b"], type("Op", (Twice,), {"backward": passes})),
    (["data", "label"], Twice), (["data", "softmax_label"], Twice),
    (["a"], doing(backward=lambda self, req, tops, grads: self.assign(grads[0], req[0], 0))),
])
def test_inputs_without_gradient_cause_no_warning(inputs, operator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients_of(registered(operator, inputs), len(inputs))


def test_gradients_that_were_not_requested():
    name = registered(Twice, ["a", "b"])
    x = nd.ones(2)
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, nd.ones(2), op_type=name)
    y.backward()
    executor = sym.Custom(sym.Variable("a"), sym.Variable("b"), op_type=name).simple_bind(
        mx.cpu(), {"a": "write", "b": "null"}, a=(2,), b=(2,))
    executor.forward(is_train=True)
    executor.backward(nd.ones(2))


def test_all_names_of_mxnet_are_there():
    """``from mxnet.operator import *`` imports them."""
    assert {"OperatorArguments", "CustomOp", "CustomOpProp", "register", "get_operator_arguments",
            "get_all_registered_operators"} <= set(mx.operator.__all__)


@pytest.mark.parametrize("base", [mx.operator.NumpyOp, mx.operator.NDArrayOp])
def test_errors_of_numpy_ops_name_their_class(base):
    """The error names their class, and the user's line if there is one."""
    class Partial(base):
        def list_arguments(self):
            return ["a", "b"]

        def backward(self, out_grad, in_data, out_data, in_grad):
            in_grad[0][:] = 1

    executor = Partial()(sym.Variable("a"), sym.Variable("b")).simple_bind(mx.cpu(), a=(2,), b=(2,))
    executor.forward(is_train=True)
    with pytest.warns(UserWarning, match=r"the gradient of 'b': nothing is written by Partial\.backward of") as caught:
        executor.backward(nd.ones(2))
    assert [each.filename for each in caught] == [__file__]

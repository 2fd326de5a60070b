"""Errors of mistaken programs: keywords, duplicate names, results of Props and functions."""

from __future__ import annotations

import difflib
import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import errors, nn
from opreg.core import other_names
from opreg.core.registry import declare
from opreg.core.settings import Checked
from opreg.errors import ArgumentError, OpError, ShapeError
from opreg.train.named import BASES
from tests.questions import of_each

nd, sym = mx.nd, mx.sym
_NUMBERS = itertools.count()


def defined(function: Callable[..., Any], **options: Any) -> Any:
    return mx.operator.define(function, name=f"test_mistaken_{next(_NUMBERS)}", **options)


def prop(**methods: Any) -> str:
    """Registers a Prop with these methods; returns its name."""
    name = f"test_mistaken_{next(_NUMBERS)}"

    class Body(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], in_data[0])

    if "backward" in methods:
        Body.backward = methods.pop("backward")  # type: ignore[method-assign]
    kind = type("Told", (mx.operator.CustomOpProp,), {"create_operator": lambda self, *_: Body(), **methods})
    mx.operator.register(name)(kind)
    return name


# --------------------------------------------------------------------------------------------------- keywords


@pytest.mark.parametrize("make, words", [
    (lambda: nn.Dense(2, 3, bias=True), r"Dense\(\) takes no keyword 'bias'. Did you mean 'has_bias'"),
    (lambda: nn.Conv2d(1, 2, 3, paddng=1), r"Conv2d\(\) takes no keyword 'paddng'. Did you mean 'padding'"),
    (lambda: nn.BatchNorm2d(3, epsilon=1), r"BatchNorm2d\(\) takes no keyword 'epsilon'. Did you mean 'eps'"),
    (lambda: nn.SGD([], lr=0.1), r"SGD\(\) takes no keyword 'lr'. Did you mean 'learning_rate'"),
    (lambda: nn.MSELoss(reductoin="sum"), r"MSELoss\(\) takes no keyword 'reductoin'. Did you mean 'reduction'"),
])
def test_a_cell_names_the_nearest_keyword(make: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make()


def test_a_users_cell_names_the_nearest_keyword() -> None:
    class Scaled(nn.Cell):
        def __init__(self, factor: float):
            super().__init__()
            self.factor = factor

    class Open(nn.Cell):
        def __init__(self, **keywords: Any):
            super().__init__()
            self.keywords = keywords

    with pytest.raises(TypeError, match=r"Scaled\(\) takes no keyword 'facto'. Did you mean 'factor'"):
        Scaled(facto=2)  # type: ignore[call-arg]
    assert Scaled(factor=2).factor == 2
    assert Open(facto=2).keywords == {"facto": 2}


def test_an_optimizer_is_found_by_its_abbreviation() -> None:
    for make in (lambda: mx.optimizer.create("sgd", lr=0.1), lambda: mx.optimizer.SGD(lr=0.1)):  # type: ignore[call-arg]
        with pytest.raises(ArgumentError, match=r"SGD\(\) takes no keyword 'lr'. Did you mean 'learning_rate'"):
            make()


def test_a_kernel_of_too_few_axes_says_which() -> None:
    with pytest.raises(ShapeError, match=r"kernel=\(3,\) has 1 axis, data \(1, 1, 4, 4\) has 2 beside batch and "
                                         r"channel: kernel=\(3, 3\)"):
        nd.Convolution(nd.ones((1, 1, 4, 4)), nd.ones((2, 1, 3, 3)), nd.ones(2), kernel=3, num_filter=2)
    with pytest.raises(ShapeError, match="expected 4 axes"):
        nd.Convolution(nd.ones((1, 4)), nd.ones((2, 1, 3, 3)), nd.ones(2), kernel=(3, 3), num_filter=2)


# ------------------------------------------------------------------------------------------------------ Cells


def test_a_cell_with_forward_raises_an_error_that_names_construct() -> None:
    class Net(nn.Cell):
        def forward(self, x: Any) -> Any:
            return x

    with pytest.raises(AttributeError, match="no attribute 'construct': rename forward to construct"):
        Net()(mx.Tensor([1.0]))


def test_the_error_for_a_wrong_bprop_names_its_arguments() -> None:
    class Twice(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

        def bprop(self, x: Any, dout: Any) -> Any:
            return dout

    with pytest.raises(TypeError) as caught:
        mx.grad(Twice())(mx.Tensor([1.0]), mx.Tensor([1.0]))
    assert "its arguments are the inputs, the output and the output gradient: bprop(self, x, y, out, dout)" in "".join(
        caught.value.__notes__)

    class Failing(Twice):
        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            raise TypeError("of its own")

    with pytest.raises(TypeError) as caught:
        mx.grad(Failing())(mx.Tensor([1.0]), mx.Tensor([1.0]))
    assert "it is given" not in "".join(caught.value.__notes__)


# ------------------------------------------------------------------------------------------------------ names


def _twice(first: Any, second: Any) -> Any:
    return sym.FullyConnected(first, num_hidden=2, name=second)


def test_two_nodes_of_one_name_are_refused_where_their_variables_are_bound() -> None:
    net = _twice(_twice(sym.var("data"), "fc"), "fc")
    words = r"two variables are named 'fc_weight' \(made at .*test_mistakes.py:\d+ and .*test_mistakes.py:\d+\): .*name"
    with pytest.raises(ArgumentError, match=words):
        net.simple_bind(mx.cpu(), data=(2, 2))
    with pytest.raises(ArgumentError, match=words):
        mx.mod.Module(net, label_names=None).bind([("data", (2, 2))])
    arrays = {"data": nd.ones((2, 2)), "fc_weight": nd.ones((2, 2)), "fc_bias": nd.ones(2)}
    with pytest.raises(ArgumentError, match=words):
        net.bind(mx.cpu(), arrays)
    loaded = sym.load_json(net.tojson())
    with pytest.raises(ArgumentError, match=r"named 'fc_weight' \(made at <text>:node 1 and <text>:node 4\)"):
        loaded.simple_bind(mx.cpu(), data=(2, 2))


def test_names_that_may_occur_twice() -> None:
    """A shared variable, nodes without variables, and arrays given in order may have names that occur twice, as in
    MXNet."""
    x, weight, bias = sym.var("data"), sym.var("fc_weight"), sym.var("fc_bias")
    shared = sym.FullyConnected(sym.FullyConnected(x, weight, bias, num_hidden=2, name="fc"), weight, bias,
                                num_hidden=2, name="fc")
    assert shared.simple_bind(mx.cpu(), data=(2, 2)).arg_dict["fc_weight"].shape == (2, 2)
    relu = sym.Activation(sym.Activation(x, act_type="relu", name="relu"), act_type="tanh", name="relu")
    relu.simple_bind(mx.cpu(), data=(2, 2))
    both = sym.var("x") + sym.var("x")
    assert both.bind(mx.cpu(), [nd.ones(2), nd.ones(2) * 2]).forward()[0].asnumpy().tolist() == [3, 3]


# ----------------------------------------------------------------------------------- wrong answers of users' code


def test_a_shape_in_the_place_of_a_list_of_shapes() -> None:
    name = prop(infer_shape=lambda self, s: (s[0], s[0]))
    for run in (lambda: nd.Custom(nd.ones((2, 3)), op_type=name),
                lambda: sym.Custom(sym.var("x"), op_type=name).infer_shape(x=(2, 3))):
        with pytest.raises(ArgumentError, match=r"infer_shape returned \(\[2, 3\], \[2, 3\]\), expected lists of "
                                                r"shapes: return \[\[2, 3\]\], \[\[2, 3\]\], \[\]"):
            run()
    name = prop(infer_type=lambda self, t: (t[0], t[0]))
    with pytest.raises(ArgumentError, match="expected lists of dtypes: return"):
        nd.Custom(nd.ones((2, 3)), op_type=name)
    name = prop(infer_shape=lambda self, s: (s, [s[0], s[0]], []))
    with pytest.raises(ArgumentError, match="returned 2 entries for its outputs, expected 1"):
        nd.Custom(nd.ones((2, 3)), op_type=name)


def test_the_error_for_a_shape_that_follows_from_values_names_the_method() -> None:
    op = defined(lambda x: nd.array(x.asnumpy()[x.asnumpy() > 0]))
    executor = op(sym.var("x")).simple_bind(mx.cpu(), x=(3,))
    with pytest.raises(ShapeError, match=rf"expected shape \(0,\), the function returned \(2,\); a run on other "
                                         rf"numbers found the first.*bind it again.* @{op.op_type}.infer_from_data"):
        executor.forward(x=nd.array([1, -1, 2]))
    op = defined(lambda x: x[0:1])
    op.infer(lambda x: x)
    with pytest.raises(ShapeError, match=rf"expected shape \(3,\), the function returned \(1,\); its shape rule, "
                                         rf"@{op.op_type}.infer, says the first"):
        op(sym.var("x")).simple_bind(mx.cpu(), x=(3,)).forward()


UNDECLARED = ["o ** 2", "2 ** o", "o @ o", "o > 0", "o >= 0", "o < 0", "o <= 0", "o == 1", "o != 1", "float(o)",
              "int(o)", "complex(o)", "abs(o)", "-o", "+o", "~o", "1 - o", "1 / o", "o // 2", "2 // o", "o % 2",
              "divmod(o, 2)", "round(o)", "o & o", "o | 1", "o ^ 1", "1 << o", "o >> 1", "bool(o)", "list(o)", "1 in o",
              "o.sum()", "o.asnumpy()", "np.sin(o)", "np.ones(2) * o", "np.asarray(o)", "nd.ones(2) * o", "nd.sin(o)",
              "o[0]", "len(o)", "o.T", "o.size", "o.ndim", "np.from_dlpack(o)", "[1, 2][o]"]


@of_each(UNDECLARED)
def test_every_use_of_an_undeclared_array_raises_the_error(what: str) -> None:
    def backward(self: Any, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        eval(what, {"o": out_data[0], "np": np, "nd": nd})
        self.assign(in_grad[0], req[0], 1.0)

    name = prop(declare_backward_dependency=lambda self, o, i, d: [*o, *i], backward=backward)
    x = nd.ones(2)
    x.attach_grad()
    with mx.autograd.record():
        y = nd.Custom(x, op_type=name)
    with pytest.raises(OpError, match=r"out_data\[0\] is not available in backward: .* excludes it"):
        y.backward()


def test_an_undeclared_array_can_be_printed_and_stored() -> None:
    seen = []

    def backward(self: Any, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        seen.append((repr(out_data[0]), str(out_data[0]), out_data[0] is None, {out_data[0]: 1}))
        self.assign(in_grad[0], req[0], out_grad[0])

    name = prop(declare_backward_dependency=lambda self, o, i, d: [*o, *i], backward=backward)
    x = nd.ones(2)
    x.attach_grad()
    with mx.autograd.record():
        y = nd.Custom(x, op_type=name)
    y.backward()
    assert seen[0][:3] == (*["<out_data[0], not available in backward>"] * 2, False)


# ---------------------------------------------------------------------------------- names of other libraries


_ELSEWHERE = sorted({**other_names._BOTH, **other_names._ARRAYS})


@of_each(itertools.product(_ELSEWHERE, ["array", "tensor", "symbol"]), by=lambda case: case[1])
def test_errors_for_attributes_of_other_libraries_name_ours(name: str, kind: str) -> None:
    """The code that the message suggests runs, for arrays, tensors and symbols."""
    make: Callable[[Any], Any] = {
        "array": lambda data: nd.array(data), "tensor": lambda data: mx.Tensor(np.float32(data)),
        "symbol": lambda data: sym.var("x")}[kind]
    x = make([[1, 2], [3, 4]])
    if hasattr(x, name):
        return
    if kind == "symbol" and name not in other_names._BOTH:
        with pytest.raises(AttributeError, match=f"a Symbol has no attribute '{name}'"):
            getattr(x, name)
        return
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'.* write .* here") as told:
        getattr(x, name)
    words = str(told.value).split("write ")[1].removesuffix(" here")
    index = {"array": nd.array([0], dtype="int32"), "tensor": mx.Tensor([0]), "symbol": x}[kind]
    known = {"mx": mx, "x": x, "y": make([[0, 1], [1, 0]]), "z": make([[[1, 2], [3, 4]]]), "index": index,
             "mask": make([[0, 1], [1, 0]]), "axes": (1, 0), "axis": 0, "shape": (2, 2), "dtype": "float32", "count": 2}
    if "gpu" not in words:
        exec(words, known)


def test_exceptions_of_properties_are_reported() -> None:
    class Mine(mx.Tensor):
        @property
        def view(self) -> Any:
            raise AttributeError("mine")

    with pytest.raises(AttributeError, match=r"^mine"):
        _ = Mine([1.0]).view


@pytest.mark.parametrize("name, words", [
    ("step", r"call it: optimizer\(grads\)"), ("zero_grad", "they are given: call it"), ("param_groups", "get_lr")])
def test_pytorchs_methods_of_optimizers_are_explained(name: str, words: str) -> None:
    weight = mx.Parameter(mx.Tensor([1.0]), name="w")
    with pytest.raises(AttributeError, match=f"'SGD' object has no attribute '{name}': .*{words}"):
        getattr(nn.SGD([weight], 0.1), name)


@pytest.mark.parametrize("name", ["step", "zero_grad"])
def test_optimizers_of_modules_update(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'SGD' object has no attribute '{name}': .*update\\(index, weight"):
        getattr(mx.optimizer.create("sgd"), name)


@of_each(sorted(other_names.CELLS))
def test_methods_of_pytorchs_modules_are_explained_for_cells(name: str) -> None:
    net = nn.Dense(1, 1)
    if not hasattr(net, name):
        with pytest.raises(AttributeError, match=f"'Dense' object has no attribute '{name}': ") as told:
            getattr(net, name)
        for method in re.findall(r"net\.(\w+)\(", str(told.value)):
            assert callable(getattr(net, method))


def _prop_of_text() -> str:
    def __init__(self, alpha):  # without annotation
        mx.operator.CustomOpProp.__init__(self)
        self.alpha = alpha * 2.0

    return prop(__init__=__init__)


def _plain(x: Any) -> Any:
    return x * nd.sigmoid(x)


def _without_return() -> Any:
    class Function(mx.autograd.Function):
        def forward(self, x: Any) -> None:
            x * 2

    return Function()(nd.ones(2))


@pytest.mark.parametrize("make, kind, words", [
    (lambda: _plain(sym.Variable("x")), ArgumentError, r"decorate the function around it by operator.define"),
    (lambda: nd.Custom(nd.ones(2), op_type=_prop_of_text(), alpha=0.1), TypeError, "multiply sequence"),
    (lambda: mx.operator.CustomOpProp(nd.ones(2)), ArgumentError, r"takes no arrays: call nd.Custom\("),
    (lambda: (sym.Variable("x") * 2)(nd.ones(2)), TypeError, r"expected symbols, got NDArray; eval and bind"),
    (_without_return, ArgumentError, "Function.forward returned None, expected an NDArray or a list of them"),
    (lambda: setattr(nd.ones(2), "requires_grad", True), AttributeError, r"'requires_grad': write x.attach_grad\(\)"),
    (lambda: setattr(mx.Tensor([1.0]), "device", "cpu"), AttributeError, "'device': write x.context"),
    (lambda: mx.gluon.Trainer(mx.gluon.nn.Dense(3), "sgd"), mx.base.MXNetError, r"net.collect_params\(\) has those"),
    (lambda: nn.Adam(nn.Dense(2, 2)), TypeError, r"net.trainable_params\(\) lists those"),
])
def test_errors_of_beginners_say_what_to_write(make: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words) as told:
        make()
    if words == "multiply sequence":
        assert "passed as text, as in MXNet: alpha='0.1'" in told.value.__notes__[-1]


def test_a_gradient_of_none_warns() -> None:
    def body(x: Any) -> None:
        x * 2

    body.__name__ = f"body{next(_NUMBERS)}"
    with pytest.warns(UserWarning, match="it returned None, so its gradients are zero. Is a return missing"):
        gradient = mx.grad(body)(mx.Tensor([1.0]))
    assert gradient.asnumpy().tolist() == [0.0]


def test_a_plain_function_is_checked_on_lists() -> None:
    assert mx.operator.check(lambda x: x * x, [[0.5, 1.0]]).ok


def test_repeated_hasattr_of_a_missing_name_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test runner asks all modules for names of its own; the nearest valid words are searched only once."""
    looked_for = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda word, *_, **__: looked_for.append(word) or [])
    for _ in range(3):
        assert not hasattr(mx, "name_of_a_test_runner")
    assert looked_for == ["name_of_a_test_runner"]


def _rows() -> Any:
    return mx.io.NDArrayIter(np.ones((4, 3)), np.ones(4), 2)


@of_each([
    ("NDArrayIter: batch_size", lambda value: mx.io.NDArrayIter(np.ones((4, 3)), np.ones(4), value)),
    ("ResizeIter: size", lambda value: mx.io.ResizeIter(_rows(), value)),
    ("DataLoader: batch_size", lambda value: mx.gluon.data.DataLoader([1, 2, 3], value)),
    ("DataLoader: num_workers", lambda value: mx.gluon.data.DataLoader([1, 2, 3], 2, num_workers=value)),
    ("Dense: units", mx.gluon.nn.Dense),
    ("Conv2D: channels", lambda value: mx.gluon.nn.Conv2D(value, 3)),
    ("LSTM: hidden_size", mx.gluon.rnn.LSTM),
    ("LSTMCell: num_hidden", mx.rnn.LSTMCell),
    ("FactorScheduler: step", mx.lr_scheduler.FactorScheduler),
    ("TopKAccuracy: top_k", mx.metric.TopKAccuracy)])
def test_settings_that_count_are_whole_numbers(setting: str, make: Callable[[Any], Any]) -> None:
    for wrong in ("2", 2.5, -1):
        with pytest.raises(ArgumentError, match=re.escape(f"{setting}={wrong!r}: expected an int")):
            make(wrong)
    make(np.int64(3))


def _settings() -> dict[str, Any]:
    """The constructors, registered or public, whose settings are compared with their annotations."""
    classes = [cls for registered in BASES.values() for cls in registered.values()]
    for module in (mx.callback, mx.lr_scheduler, mx.gluon.nn, mx.gluon.rnn, mx.gluon.loss, mx.gluon.data,
                   mx.gluon.contrib.estimator, mx.rnn, mx.mon):
        classes += [getattr(module, name) for name in module.__all__]
    return {cls.__name__: cls for cls in classes if isinstance(cls, type) and issubclass(cls, Checked)
            and cls.__module__.startswith("opreg.")}


def test_text_is_refused_where_a_setting_is_a_number() -> None:
    """Each parameter that a constructor annotates as a number refuses text, when the object is made, and is named."""
    asked = 0
    for name, cls in _settings().items():
        for parameter in inspect.signature(cls).parameters.values():
            kinds = set(str(parameter.annotation).split(" | "))
            if kinds & {"int", "float"} and kinds <= {"int", "float", "None"}:
                with pytest.raises(ArgumentError, match=re.escape(f"{name}: {parameter.name}='2': expected a")):
                    cls(**{parameter.name: "2"})
                asked += 1
    assert asked > 150


@of_each([
    (lambda: mx.optimizer.SGD(learning_rate="0.1"), "SGD: learning_rate='0.1': expected a number or None"),
    (lambda: mx.optimizer.create("adam", wd=[0.1]), r"Adam: wd=\[0.1\]: expected a number"),
    (lambda: mx.optimizer.SGD(lazy_update="False"), "SGD: lazy_update='False': expected True or False"),
    (lambda: mx.optimizer.SGD().set_learning_rate("2"), "SGD.set_learning_rate: lr='2': expected a number"),
    (lambda: mx.optimizer.SGD().set_lr_mult({"w": "2"}), "SGD: lr_mult of 'w'='2': expected a number"),
    (lambda: mx.lr_scheduler.MultiFactorScheduler(["2"]), r"MultiFactorScheduler: step=\['2'\]: expected a tuple"),
    (lambda: mx.callback.do_checkpoint("net", "2"), "do_checkpoint: period='2': expected an int"),
    (lambda: mx.model.save_checkpoint("net", "2", None, {}, {}), "save_checkpoint: epoch='2': expected an int"),
    (lambda: mx.gluon.nn.Conv2D(4, ("3", 3)), r"Conv2D: kernel_size=\('3', 3\): expected an int or a tuple of ints"),
    (lambda: mx.gluon.utils.split_data(nd.ones(4), "2"), "split_data: num_slice='2': expected an int of at least 1"),
    (lambda: mx.gluon.Trainer({}, "sgd").step("2"), "Trainer.step: batch_size='2': expected a number"),
    (lambda: mx.gluon.Trainer({}, "sgd").step(0), "Trainer.step: batch_size=0: gradients are divided by it"),
    (lambda: nn.BatchNorm2d(3, eps="1"), "BatchNorm2d: eps='1': expected a number")])
def test_settings_are_numbers(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make()


@of_each([
    (lambda: mx.gluon.nn.Dense(3, activaton="relu"), "Dense() takes no keyword 'activaton'. Did you mean 'activation'"),
    (lambda: mx.init.Xavier(magnitud=3), "Xavier() takes no keyword 'magnitud'. Did you mean 'magnitude'"),
    (lambda: mx.metric.Accuracy(axiss=1), "Accuracy() takes no keyword 'axiss'. Did you mean 'axis'"),
    (lambda: mx.lr_scheduler.FactorScheduler(stepp=3), "FactorScheduler() takes no keyword 'stepp'. Did you mean"),
    (lambda: nn.Dense(activation="relu"), "Dense() needs in_channels, out_channels. It takes in_channels, out_ch"),
    (lambda: nn.ReLU(1, 2), "ReLU(): expected no arguments, got 2"),
    (lambda: nn.Upsample(scale_factor="a"), "Upsample: scale_factor='a': expected a number or a list of numbers or"),
    (lambda: nn.Roll("a", 0), "Roll: shift='a': expected an int or a tuple of ints"),
    (lambda: nn.Unflatten(1, 3.5), "Unflatten: unflattened_size=3.5: expected a tuple of ints"),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 1, norm="a"), "norm='a': expected a Cell or No"),
    (lambda: nn.PoissonNLLLoss(log_input=[1]), "PoissonNLLLoss: log_input=[1]: expected True or False"),
    (lambda: nn.LARS(mx.optimizer.SGD(), lars_filter="a"), "LARS: lars_filter='a': expected a function or None"),
])
def test_arguments_of_constructors_are_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(words)):
        make()


def _dense(**keywords: Any) -> Any:
    block = mx.gluon.nn.Dense(2, prefix="fc_", **keywords)
    block.initialize()
    return block


@pytest.mark.parametrize("call, kind, words, notes", [
    (lambda: _dense(in_units=3)(nd.ones((4, 2))), ShapeError, "weight: expected shape",
     ["in block fc, Dense(3 -> 2, linear), given (4, 2) float32"]),
    (lambda: _dense()(np.ones((4, 2))), ArgumentError, r"type of the args: ndarray\. mx\.nd\.array\(x\) makes",
     ["in block fc, Dense(None -> 2, linear), given ndarray"]),
    (lambda: mx.gluon.loss.L2Loss(prefix="loss_")(nd.ones((4, 2)), nd.ones((3, 2))), ShapeError, "does not fit",
     ["in block loss, L2Loss(batch_axis=0, w=1.0), given (4, 2) float32, (3, 2) float32"]),
    (lambda: mx.gluon.nn.Sequential(mx.gluon.nn.Dense(2)), ArgumentError,
     r"Sequential: prefix: expected a str or None, got Dense; children are added by add\(block\)", []),
    (lambda: mx.gluon.Trainer(mx.gluon.nn.Dense(2, in_units=2).collect_params(), "sgd"), ArgumentError,
     r"has not been initialized: call initialize\(\) of the block", []),
    (lambda: mx.metric.Accuracy().update(nd.ones(2), nd.ones(3)), ShapeError,
     r"labels and predictions differ in shape: \(2,\) and \(3,\)", [])])
def test_a_block_that_fails_is_named_with_its_inputs(call: Any, kind: Any, words: str, notes: list[str]) -> None:
    with pytest.raises(kind, match=words) as caught:
        call()
    assert [note for note in getattr(caught.value, "__notes__", []) if note.startswith("in block")] == notes


def test_an_error_in_a_block_whose_repr_fails_leaves_as_itself() -> None:
    class Broken(mx.gluon.Block):
        def forward(self, x):  # type: ignore[no-untyped-def]
            raise KeyError("the user's")

        def __repr__(self) -> str:
            raise RuntimeError("another")

    with pytest.raises(KeyError, match="the user's") as caught:
        Broken(prefix="broken_")(nd.ones(2))
    assert caught.value.__notes__[-1] == "in block broken, Broken, given (2,) float32"


def test_annotations_of_a_users_class_are_not_checked_but_keywords_that_it_passes_on_are() -> None:
    class Decayed(mx.optimizer.SGD):
        def __init__(self, rate, often: int = None, **rest):  # type: ignore[no-untyped-def,assignment]  # noqa: RUF013
            super().__init__(**rest)

    Decayed("any", None, momentum=np.float32(0.5))
    Decayed("any", "often")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"Decayed: momentum=.0\.5.: expected a number"):
        Decayed("any", momentum="0.5")
    with pytest.raises(TypeError, match="takes no arguments"):
        type("Even", (mx.gluon.data.Sampler,), {})(3)
    assert type("Named", (mx.gluon.data.Sampler, str), {})("even").upper() == "EVEN"


@pytest.mark.parametrize("call, kind, words", [
    (lambda: np.sin(sym.var("x")), TypeError, r"np.sin: <Symbol x> has no values, .* write mx.sym.sin\(…\)"),
    (lambda: np.ones(2) + sym.var("x"), TypeError, "np.add: <Symbol x> has no values"),
    (lambda: (sym.var("x") * 2).simple_bind(mx.cpu(), x=2), ArgumentError, r"x: expected a shape, .*, got 2$"),
    (lambda: (sym.var("x") * 2).simple_bind(mx.cpu(), x=nd.ones(2)), ArgumentError, "a shape, .*, got NDArray"),
    (lambda: mx.cuda(0), AttributeError, r"opreg has no 'cuda': write mx.gpu\(i\)"),
    (lambda: mx.randn(3), AttributeError, r"write mx.nd.random.normal\(shape=shape\)"),
    (lambda: nd.maximun(nd.ones(2), 1), OpError, "Did you mean 'maximum'"),
    (lambda: nn.Dense(2, 2)(nd.ones((1, 2))), TypeError, r"x must be a Tensor, got NDArray; Tensor\(x\) makes one"),
    (lambda: nd.Custom(nd.ones(2), op_type="mine"), OpError, r"@mx.operator.register\('mine'\) above a Prop"),
])
def test_errors_name_the_line_to_write(call: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_the_equivalents_of_other_packages_exist() -> None:
    for name, advice in other_names.PACKAGES.items():
        assert not hasattr(mx, name)
        for path in re.findall(r"mx\.([\w.]+)", advice):
            found: Any = mx
            for part in path.split("."):
                found = getattr(found, part)


def test_numbers_of_numpy_combine_with_symbols() -> None:
    x = sym.var("x")
    for result, expected in ((np.float32(2) * x, [2, 4]), (np.int64(3) - x, [2, 1]), (np.float32(1) < x, [0, 1])):
        assert result.eval(x=nd.array([1, 2]))[0].asnumpy().tolist() == expected


def test_a_model_without_loss_says_what_the_network_gets() -> None:
    with pytest.raises(TypeError) as caught:
        mx.Model(nn.Dense(2, 1)).train(1, [([[1.0, 2.0]], [1.0])])
    assert "Model without a loss_fn passes all 2 columns" in "".join(caught.value.__notes__)


def test_reading_a_file_of_another_kind_names_the_function_that_reads_it(tmp_path: Any) -> None:
    arrays, graph = str(tmp_path / "a.params"), str(tmp_path / "a.json")
    nd.save(arrays, {"x": nd.ones(2)})
    sym.var("x").save(graph)
    for read, path, words in ((sym.load, arrays, "nd.load reads it"), (nd.load, graph, "sym.load reads a graph")):
        with pytest.raises(errors.FileFormatError, match=words):
            read(path)


@pytest.mark.parametrize("rule, found", [
    (lambda x: [*x], [(2, 3)]), (lambda x: [x], [(2, 3)]), (lambda x: (x,), [(2, 3)]),
    *((lambda x, answer=answer: answer, None) for answer in ("ab", 3, (2.0, 3), (-1, 3), None, ((2,), (3,))))])
def test_results_of_shape_rules_are_checked(rule: Any, found: Any) -> None:
    same = defined(lambda x: x)
    same.infer(rule)
    symbol = same(sym.var("x"))
    if found is not None:
        assert symbol.infer_shape(x=(2, 3))[1] == found
        return
    with pytest.raises(ArgumentError, match=r"its rule infer returned .*, expected a shape for .*, such as \(2, 3\)"):
        symbol.infer_shape(x=(2, 3))


@pytest.mark.parametrize("answer, found", [
    (lambda x: [x, [3]], [(2, 3), (3,)]), (lambda x: (None, x[1:]), [(2, 3), (3,)]),
    *((lambda x, answer=answer: answer, None) for answer in (
        [(2, 3)], [(2, 3), (3,), (1,)], ([(2, 3), (3,)], [(2, 3)]), [(2, 3), 3], (3,), None))])
def test_results_of_the_rule_fill_are_checked(answer: Any, found: Any) -> None:
    plus = defined(lambda x, bias: x + bias)
    plus.fill(lambda ins, outs: answer(ins[0]))
    symbol = plus(sym.var("x"))
    if found is not None:
        assert symbol.infer_shape(x=(2, 3))[0] == found
        return
    with pytest.raises(ArgumentError, match=r"its rule fill returned .*, expected a shape for each of its inputs"):
        symbol.infer_shape(x=(2, 3))


@pytest.mark.parametrize("answer", [
    None, 3, "float64", ("float64",), ([], [np.float32]), ([np.float32], []), np.float32, ([np.float32], "float32")])
def test_results_of_dtype_rules_are_checked(answer: Any) -> None:
    same = defined(lambda x: x * 1)
    same.types(lambda ins, outs: answer)
    for use in (lambda: same(nd.ones((2, 3))), lambda: same(sym.var("x")).simple_bind(ctx=mx.cpu(), x=(2, 3))):
        with pytest.raises(ArgumentError, match=r"rule types returned .*, expected two lists: 1 of inputs and"):
            use()


@pytest.mark.parametrize("dtype", ["flaot", list, [np.float32], object])
def test_dtypes_that_a_dtype_rule_gives_are_checked(dtype: Any) -> None:
    same = defined(lambda x: x * 1)
    same.types(lambda ins, outs: (ins, [dtype]))
    with pytest.raises(errors.DTypeError, match="is not a dtype of arrays") as caught:
        same(sym.var("x")).infer_type(x="float32")
    assert any("its rule types returned" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("dtype", ["float64", np.float64, float, np.dtype(np.float64), 1, None])
def test_a_dtype_rule_gives_a_dtype_in_any_form(dtype: Any) -> None:
    double = defined(lambda x: x.astype("float64") * 2)
    double.types(lambda ins, outs: (ins, [np.float64 if dtype is None else dtype]))
    double.grad(lambda g, ins, outs: g.astype("float32") * 2)
    bound = double(sym.var("x")).simple_bind(ctx=mx.cpu(), x=(2,))
    assert bound.forward()[0].dtype == double(nd.ones((2,))).dtype == np.float64


@pytest.mark.parametrize("answer", [
    lambda ins: None, lambda ins: ins, lambda ins: "ab", lambda ins: (ins, []), lambda ins: ([], ins),
    lambda ins: ((2, 3), (2, 3)), lambda ins: (ins, ins, [])])
def test_results_of_the_rule_shapes_are_checked(answer: Any) -> None:
    same = defined(lambda x: x * 1)
    same.shapes(lambda ins, outs: answer(ins))
    with pytest.raises(ArgumentError, match=r"rule shapes returned .*, expected two lists: 1 of inputs and"):
        same(sym.var("x")).infer_shape(x=(2, 3))
    same.shapes(lambda ins, outs: (ins, [(2.0, 3)]))
    with pytest.raises(ArgumentError, match=r"its rule shapes returned .*, expected a shape for each of its outputs"):
        same(sym.var("x")).infer_shape(x=(2, 3))


def test_a_shape_rule_gives_several_shapes_in_a_tuple_or_a_list() -> None:
    for kind in (tuple, list):
        halves = defined(lambda x: (x[:1], x[1:]), outputs=["first", "rest"])
        halves.infer(lambda x, kind=kind: kind([(1, *x[1:]), (x[0] - 1, *x[1:])]))
        assert halves(sym.var("x")).infer_shape(x=(3, 2))[1] == [(1, 2), (2, 2)]
    halves.infer(lambda x: x)
    with pytest.raises(ArgumentError, match=r"expected a shape for each of its outputs \(first, rest\)"):
        halves(sym.var("x")).infer_shape(x=(3, 2))


def test_an_unknown_trait_names_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"no trait 'inplaec'\. Did you mean 'inplace'"):
        declare(name="_example_misspelt", inplaec=(0,))(lambda data: None)

"""Errors of public functions name them; exceptions of users' code leave as they are."""

from __future__ import annotations

import ast
import builtins
import collections
import copy
import importlib
import pickle
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nn, ops
from opreg.core.named_errors import named
from opreg.core.setting_reads import READERS
from opreg.errors import ArgumentError, OpError, ShapeError
from tests.questions import of_each

Tensor = mx.Tensor
A, X = mx.nd.ones((2, 3)), Tensor(np.ones((2, 3), np.float32))


def _third(values: Any, at: int = 2) -> Any:
    if at < 0:
        raise ShapeError("too few")
    return values[at] if at else float("_third: no number")


#: ``_third`` as if it were opreg's, in that its frames are no user code.
third = named(_third)


def test_exceptions_of_users_functions_leave_as_they_are() -> None:
    def body(x: Any) -> Any:
        return {}["missing"]

    class Mine(collections.UserDict[int, Any]):  # its method is called by one of Python's own
        def __missing__(self, key: int) -> Any:
            raise KeyError("mine")

    for call in (lambda: ops.vmap(body)(Tensor([1.0])), lambda: ops.grad(body)(Tensor([1.0])),
                 lambda: third([]), lambda: third(Mine())):
        with pytest.raises(LookupError) as caught:
            call()
        assert type(caught.value) in (KeyError, IndexError) and not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("call, kind, words", [
    (lambda: ops.gather(Tensor([1.0]), Tensor([0]), "a"), TypeError, "gather: axis must be an int, got str"),
    (lambda: ops.sum(Tensor([1.0]), 1.5), ArgumentError, "^sum: dim=1.5: expected an int or a tuple of ints or None"),
    (lambda: ops.concat(3), TypeError, "^concat: expected a list or tuple of tensors, got int"),
    (lambda: ops.clamp(Tensor([1.0]), mn=1), ArgumentError, r"^clamp\(\) takes no keyword 'mn'. Did you mean 'min'"),
    (lambda: mx.image.resize_short([[1]], 4), ArgumentError, r"^resize_short: src=\[\[1\]\]: expected an array"),
    (lambda: mx.image.scale_down((8, 8), ("a", 4)), ArgumentError,
     r"^scale_down: size=\('a', 4\): expected a tuple of ints"),
    (lambda: mx.image.imread(1.5), ArgumentError, "^imread: filename=1.5: expected text or a path"),
    (lambda: ops.jet(lambda x: x, [3.0], [Tensor([1.0])]), ArgumentError, "^expected tensors, got float"),
    (lambda: ops.jvp(lambda x: x, 3.0, Tensor([1.0])), ArgumentError, "^jvp: input 0 must be a Tensor, got float"),
    (lambda: mx.jacrev(3), ArgumentError, "^jacrev: expected a function or a Cell, got int"),
    (lambda: mx.optimizer.create(3), ArgumentError, "^create_optimizer: name=3: expected text"),
    (lambda: mx.gluon.nn.Dense(2).register_forward_hook(3), ArgumentError,
     "^Dense.register_forward_hook: hook=3: expected a function"),
    (lambda: mx.gluon.data.ArrayDataset(3), ArgumentError, "^ArrayDataset: array 0: expected a list or an array"),
    (lambda: mx.gluon.data.BatchSampler(3, 2), ArgumentError, "^BatchSampler: sampler=3: expected a sampler"),
    (lambda: mx.gluon.data.vision.ImageRecordDataset("a", transform=3), ArgumentError, "transform=3: expected a"),
    (lambda: mx.nd.ones((2, 3)).__setitem__(0, mx.nd.ones(2)), ShapeError,
     r"^values of shape \(2,\) do not broadcast to elements of shape \(3,\)"),
    (lambda: mx.nd.ones((2, 3)).__setitem__([0], mx.nd.ones(2)), ShapeError,
     r"^values of shape \(2,\) do not broadcast to elements of shape \(1, 3\)"),
    (lambda: mx.nd.ones(2).__setitem__(0, None), ArgumentError, "^expected numbers, got None"),
    (lambda: mx.nd.array(None), ArgumentError, "^expected numbers, got None"),
    (lambda: mx.np.ones(2).dot(None), ArgumentError, "^expected numbers, got None"),
    (lambda: mx.np.where(None, mx.np.ones(2), 0), ArgumentError, "expected numbers, got None"),
    (lambda: mx.nd.ones(2).tostype([]), ArgumentError, r"^storage type \[\]"),
    (lambda: A[[1, "a"]], IndexError, r"^a list in a subscript must have integers, got \[1, 'a'\]"),
    (lambda: mx.np.ones(2).reshape(None), ArgumentError, "shape=None: expected an int or a tuple of ints"),
    (lambda: mx.operator.get(3), ArgumentError, "^expected the name of an operator, got 3"),
    (lambda: mx.get_context([]), ArgumentError, r"^get_context: there is no setting \[\]"),
    (lambda: mx.gluon.nn.Dense(2).collect_params("("), ArgumentError, r"select='\(': expected a regular expression"),
    (lambda: mx.init.Mixed(["["], ["one"]), ArgumentError, r"pattern='\[': expected a regular expression"),
    (lambda: mx.mon.Monitor(1, pattern="*"), ArgumentError, r"^Monitor: pattern='\*': expected a regular expression"),
    (lambda: mx.sym.var("x").grad(None), ArgumentError, "^Symbol.grad: wrt=None: expected"),
    (lambda: mx.sym.load(3), ArgumentError, "^load: fname=3: expected text or a path"),
    (lambda: _executor().set_optimizer(3), ArgumentError, "^set_optimizer: expected an optimizer"),
    (lambda: _executor().set_monitor_callback(), ArgumentError, r"^Executor.set_monitor_callback\(\) needs callback"),
    (lambda: _executor().copy_params_from(3), ArgumentError, "^copy_params_from: expected a dict of arrays, got int"),
    (lambda: _executor().explain(True, 3), ArgumentError, r"^Executor.explain\(\): expected 1 argument"),
    (lambda: mx.np.split(mx.np.ones(3), 2), ValueError, "^split: array split does not result in an equal division"),
])
def test_errors_name_the_function(call: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, OpError)


def test_an_error_of_opreg_without_the_name_has_a_note() -> None:
    with pytest.raises(ShapeError) as caught:
        ops.add(Tensor(np.ones(2)), Tensor(np.ones(3)))
    assert caught.value.__notes__[-1] == "in add"


#: Modules whose public functions name themselves in errors.
NAMED = ["cells.grad", "cells.jacobian", "cells.taylor", "cells.vmap", "data.pixels", "data.recordio", "gluon.utils",
         "ndarray.random", "nn.checkpoint", "nn.communication", "nn.metrics.metric", "nn.mint.linalg",
         "nn.mint.nn.functional", "nn.optim.schedule", "np.linalg", "np.random", "pictures.summary", "train.callback",
         "train.checkpoint", "train.initializer", "train.kvstore", "train.metric", "train.rnn"]


@of_each(NAMED)
def test_a_wrong_keyword_is_refused_by_all_functions_of_a_module(name: str) -> None:
    module = importlib.import_module(f"opreg.{name}")
    for function in map(vars(module).get, module.__all__):
        if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
            with pytest.raises(OpError):
                function(no_such_keyword=1)


OUT = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1), mx.sym.var("y"))


def _module() -> Any:
    return mx.mod.Module(OUT, label_names=["y"])


@of_each([
    (lambda: _module().bind([("data", (2, 3))], for_trainig=True),
     r"^Module.bind\(\) takes no keyword 'for_trainig'. Did you mean 'for_training'"),
    (lambda: _module().bind(), r"^Module.bind\(\) needs data_shapes. It takes data_shapes, label_shapes"),
    (lambda: _module().bind("data"), "^Module.bind: data_shapes='data': expected a list of pairs of a name and a"),
    (lambda: _module().bind([("data", (2, 3))], shared_module=3),
     "^Module.bind: shared_module=3: expected a Module or None"),
    (lambda: _module().fit(mx.io.NDArrayIter(np.ones((2, 3)), np.ones(2), label_name="y"), num_epoch=1, monitor=1),
     "^Module.fit: monitor=1: expected a Monitor or None"),
    (lambda: _module().bind([3]), r"^Module.bind: data_shapes=\[3\]: expected a list of pairs of a name and a"),
    (lambda: _module().score(3, "acc"), "is not ready: call bind and init_params first"),
    (lambda: mx.mod.BucketingModule(3), "^BucketingModule: sym_gen=3: expected a function"),
    (lambda: mx.mod.Module("net"), "^Module: symbol='net': expected a Symbol"),
    (lambda: mx.mod.Module(OUT, label_names="y"), "^Module: label_names='y': expected a list of names or None"),
    (lambda: mx.metric.Accuracy().update([mx.nd.ones(1)]), r"^Accuracy.update\(\) needs preds. It takes labels, preds"),
    (lambda: mx.gluon.data.SimpleDataset([1]).transform(len, lazi=1),
     r"^SimpleDataset.transform\(\) takes no keyword 'lazi'. Did you mean 'lazy'"),
    (lambda: mx.gluon.Trainer({}, "sgd").step(bach_size=1), r"^Trainer.step\(\) takes no keyword 'bach_size'"),
    (lambda: mx.gluon.ParameterDict().get(), r"^ParameterDict.get\(\) needs name"),
    (lambda: mx.Model(nn.Dense(1, 1)).train(epohc=1), r"^Model.train\(\) takes no keyword 'epohc'. Did you mean"),
    (lambda: mx.dataset.NumpySlicesDataset([1]).batch(), r"^NumpySlicesDataset.batch\(\) needs batch_size"),
    (lambda: mx.kv.create("local").init("a", valeu=1), r"^KVStore.init\(\) takes no keyword 'valeu'"),
    (lambda: mx.gluon.nn.Dense(2).initialize(ctx="cpu"), "^ctx='cpu': expected a context or a list of contexts"),
    (lambda: mx.gluon.Parameter("a", shape=(2,)).reset_ctx(3), "^ctx=3: expected a context or a list of contexts"),
    (lambda: mx.gluon.nn.Dense(2).cast("flot32"), "'flot32' is not a dtype"),
    (lambda: mx.gluon.nn.BatchNorm().cast("flot32"), "'flot32' is not a dtype"),
    (lambda: mx.gluon.nn.Sequential().add(mx.gluon.nn.Dense(2), 3),
     "^Sequential: expected a block as a child, got int"),
    (lambda: mx.gluon.nn.Sequential().save_parameters(None),
     "^Sequential.save_parameters: filename=None: expected text or a"),
    (lambda: mx.gluon.nn.Dense(2).load_parameters(3), "^Dense.load_parameters: filename=3: expected text or a"),
    (lambda: mx.gluon.nn.Dense(2).apply(None), "^Dense.apply: fn=None: expected a function"),
    (lambda: mx.gluon.nn.Dense(2).collect_params(3), "^Dense.collect_params: select=3: expected text or None"),
    (lambda: mx.gluon.Parameter("a", shape=(2,)).set_data(None), "^Parameter.set_data: "),
    (lambda: mx.optimizer.SGD().set_lr_mult("a"), "^SGD.set_lr_mult: "),
    (lambda: mx.optimizer.get_updater("sgd"), "^get_updater: optimizer='sgd': expected an optimizer"),
    (lambda: mx.rnn.LSTMCell(2).unroll("a"), r"^LSTMCell.unroll\(\) needs inputs"),
    (lambda: mx.dataset.text.Vocab.from_list(None), "^Vocab.from_list: "),
    (lambda: Tensor([1.0]).sum(axs=1), r"^Tensor.sum\(\) takes no keyword 'axs'. Did you mean 'axis'"),
    (lambda: Tensor([1.0]).reshape(None), "^Tensor.reshape: "),
    (lambda: Tensor([1.0]).histc(None), "^histc: bins=None: expected an int"),
    (lambda: Tensor([1.0]).item("a"), r"^item\('a'\) of shape \(1,\): "),
    (lambda: mx.nd.ones(2).item(9), r"^item\(9\) of shape \(2,\): index 9 is out of bounds"),
    (lambda: mx.nd.ones(2).split_v2(None), "^split_v2: indices_or_sections=None: expected an int or a tuple of ints"),
    (lambda: mx.nd.histogram(None), "^histogram: "),
    (lambda: Tensor([1.0]).tensor_split(2 ** 60), "^tensor_split: expected 1 to 65,536 parts"),
    (lambda: ops.mvlgamma(Tensor([1.0]), 2 ** 40), "^mvlgamma: expected p from 1 to 65,536"),
    (lambda: mx.operator.define(3), "^define: expected a function, got 3"),  # type: ignore[call-overload]
    (lambda: mx.operator.define(lambda x: x, name="test_named_error").vmap(3), "^the vmap rule of operator "),
    (lambda: mx.nd.divide(1, 0), "^divide of 1 and 0: division by zero"),
    (lambda: mx.nd.NDArray("a"), "could not convert string to float"),
    (lambda: mx.np.empty((2 ** 40, 2 ** 20)), "^empty: "),
    (lambda: mx.optimizer.Adam().update(0, OUT, grd=2),
     r"^Adam.update\(\) takes no keyword 'grd'. Did you mean 'grad'"),
])
def test_errors_of_methods_name_class_and_method(call: Any, words: str) -> None:
    with pytest.raises(OpError, match=words):
        call()


def test_functions_of_ops_raise_errors_of_opreg() -> None:
    for path in Path(ops.__file__).parent.glob("*.py"):
        raised = [node.exc.func for node in ast.walk(ast.parse(path.read_text()))
                  if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
        plain = [each.id for each in raised if isinstance(each, ast.Name) and hasattr(builtins, each.id)]
        assert {*plain} <= {"NotImplementedError", "AttributeError", "ImportError"}, path


def test_functions_of_nd_take_tensors() -> None:
    x = Tensor([3.0, 4.0])
    for name, numbers in (("hypot", [5.0, 5.0]), ("maximum", [4.0, 4.0]), ("logical_and", [1.0, 1.0])):
        for other in (Tensor([4.0, 3.0]), np.float32([4, 3])):
            assert getattr(mx.nd, name)(x, other).asnumpy().tolist() == numbers
    assert mx.nd.minimum(x, 3.5).asnumpy().tolist() == [3.0, 3.5]


def test_powers_of_large_integers_end() -> None:
    assert mx.nd.power(2, 10) == 1024 and mx.nd.power(10, 30) == 1e30
    with pytest.raises(OverflowError, match=r"^power of 10 and 1000000000: ") as caught:
        mx.nd.power(10, 10 ** 9)
    assert isinstance(caught.value, OpError)


def _executor() -> Any:
    return mx.sym.var("x").simple_bind(mx.cpu(), x=(2,))


class Pair(nn.Cell):
    def construct(self, x: Any, y: Any, scale: float = 1.0) -> Any:
        return x + y * scale


class Failing(nn.Cell):
    def construct(self, x: Any) -> Any:
        return (lambda: x)(3)  # type: ignore[call-arg]


class PairBlock(mx.gluon.Block):
    def forward(self, x: Any, y: Any) -> Any:
        return x + y


class ScaledPair(mx.gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.scale = self.params.get("scale", shape=(1,), init="ones")

    def hybrid_forward(self, F: Any, x: Any, y: Any, scale: Any) -> Any:
        return F.broadcast_mul(x + y, scale)


def _initialized(block: Any, hybridized: bool = False) -> Any:
    block.initialize()
    block.hybridize(hybridized)
    return block


@pytest.mark.parametrize("call, words", [
    (lambda: Pair()(X), r"^Pair.construct\(\) needs y. It takes x, y, scale"),
    (lambda: Pair()(X, X, 1.0, X), r"^Pair.construct\(\): expected 3 arguments \(x, y, scale\), got 4"),
    (lambda: Pair()(X, X, scal=2.0), r"^Pair.construct\(\) takes no keyword 'scal'. Did you mean 'scale'"),
    (lambda: mx.jit(Pair())(X), r"^Pair.construct\(\) needs y. It takes x, y, scale"),
    (lambda: mx.grad(Pair())(X), r"^Pair.construct\(\) needs y. It takes x, y, scale"),
    (lambda: nn.Dense(3, 2)(X, X), r"^Dense.construct\(\): expected 1 argument \(x\), got 2"),
    (lambda: nn.SequentialCell(Pair())(X), r"^Pair.construct\(\) needs y"),
    (lambda: nn.MSELoss()(X), r"^MSELoss.construct\(\) needs labels. It takes logits, labels"),
    (lambda: PairBlock()(A), r"^PairBlock.forward\(\) needs y. It takes x, y"),
    (lambda: PairBlock()(), r"^PairBlock.forward\(\) needs x, y. It takes x, y"),
    (lambda: _initialized(ScaledPair())(A), r"^ScaledPair.hybrid_forward\(\) needs y. It takes x, y"),
    (lambda: _initialized(ScaledPair(), True)(A), r"^ScaledPair.hybrid_forward\(\) needs y. It takes x, y"),
    (lambda: _initialized(mx.gluon.nn.Dense(2))(A, A), r"^Dense.hybrid_forward\(\): expected 1 argument \(x\), got 2"),
    (lambda: _initialized(mx.gluon.nn.Dense(2), True)(), r"^Dense.hybrid_forward\(\) needs x. It takes x"),
    (lambda: mx.gluon.loss.L2Loss()(A), r"^L2Loss.hybrid_forward\(\) needs label. It takes pred, label, sample_weight"),
])
def test_a_wrong_call_of_a_layer_names_the_layer_and_its_inputs(call: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        call()


def test_a_wrong_call_inside_a_layer_leaves_as_it_is() -> None:
    for cell in (Failing(), mx.jit(Failing())):
        with pytest.raises(TypeError, match="positional argument") as caught:
            cell(X)
        assert type(caught.value) is TypeError


def test_methods_of_users_subclasses_stay_as_they_are() -> None:
    class Mine(mx.mod.Module):
        def score(self, eval_data: Any) -> Any:  # type: ignore[override]
            return eval_data["missing"]

    mine = Mine(OUT, label_names=["y"])
    assert not hasattr(Mine.score, "__wrapped__")
    with pytest.raises(KeyError) as caught:
        mine.score({})
    assert type(caught.value) is KeyError


@of_each([mx.cpu, mx.gpu, mx.operator.register, mx.npx.gelu, mx.common.mutable, mx.ops.Map,
          mx.ops.Primitive, mx.ops.AllReduce, mx.profiler.Marker, mx.nn.Buffer, mx.nd.CachedOp, mx.rtc.CudaKernel,
          mx.dataset.vision.RandAugment, mx.dataset.vision.HsvToRgb])
def test_a_wrong_keyword_is_refused(function: Any) -> None:
    with pytest.raises(OpError, match="no_such_keyword"):
        function(no_such_keyword=1)


class Wide(nn.Dense):
    """A layer whose constructor leaves an argument out."""

    def __init__(self) -> None:
        super().__init__(3)


class Same(nn.Dense):
    pass


class OfSizes(nn.Cell):
    def __init__(self, sizes: Any):
        super().__init__()
        self.first = sizes["first"]


class Misspelt(mx.operator.CustomOpProp):
    def __init__(self) -> None:
        super().__init__(need_topgrad=True)  # type: ignore[call-arg]


@of_each([
    (lambda: mx.gluon.nn.Dense(), r"^Dense\(\) needs units. It takes units, activation, use_bias"),  # type: ignore
    (lambda: nn.Dense(3), r"^Dense\(\) needs out_channels. It takes in_channels, out_channels"),  # type: ignore
    (lambda: Wide(), r"^Dense\(\) needs out_channels. It takes in_channels, out_channels"),
    (lambda: Same(), r"^Dense\(\) needs in_channels, out_channels. It takes"),  # type: ignore
    (lambda: mx.io.NDArrayIter(), r"^NDArrayIter\(\) needs data. It takes data, label"),  # type: ignore
    (lambda: mx.gluon.rnn.LSTM(), r"^LSTM\(\) needs hidden_size. It takes hidden_size"),
    (lambda: mx.Parameter(), r"^Parameter\(\) needs default_input. It takes default_input, name"),  # type: ignore
    (lambda: mx.Context(), r"^Context\(\) needs device_type. It takes device_type, device_id"),  # type: ignore
    (lambda: mx.Tensor(1.0, dtyp="f"), r"^Tensor\(\) takes no keyword 'dtyp'. Did you mean 'dtype'"),
    (lambda: mx.Tensor(shp=2), r"^Tensor\(\) takes no keyword 'shp'. Did you mean 'shape'"),
    (lambda: mx.dataset.ImageFolderDataset("/no/such"), "^ImageFolderDataset: there is no folder '/no/such'"),
    (lambda: mx.init.Mixed(["a"], 3), "^Mixed: object of type 'int' has no len"),  # type: ignore
    (lambda: Misspelt(), r"^CustomOpProp\(\) takes no keyword 'need_topgrad'. Did you mean 'need_top_grad'"),
    (lambda: mx.autograd.record(tran_mode=False), r"^record\(\) takes no keyword 'tran_mode'. Did you mean 'train_"),
    (lambda: mx.np.round(mx.np.ones(2), decimal=1), r"^around\(\) takes no keyword 'decimal'. Did you mean 'decimals"),
])
def test_errors_of_constructors_name_the_class(call: Any, words: str) -> None:
    with pytest.raises(OpError, match=words):
        call()


def test_errors_of_users_constructors_stay_as_they_are() -> None:
    for call, kind in ((lambda: OfSizes({}), KeyError), (lambda: OfSizes(), TypeError)):  # type: ignore[call-arg]
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind


def test_objects_are_copied_without_the_arguments_of_their_constructor() -> None:
    layer = nn.Dense(2, 3)
    for copied in (copy.copy(layer), copy.deepcopy(layer), pickle.loads(pickle.dumps(mx.gluon.data.ArrayDataset([1])))):
        assert type(copied) in (nn.Dense, mx.gluon.data.ArrayDataset)


def test_functions_that_answer_with_a_setting_stay_as_traces_know_them() -> None:
    assert id(mx.get_seed.__code__) in READERS and not hasattr(mx.get_seed, "__wrapped__")


def test_functions_are_pickled_by_their_public_names() -> None:
    for function in (ops.relu, mx.mint.add, mx.np.zeros, mx.np.abs):
        assert pickle.loads(pickle.dumps(function)) is function

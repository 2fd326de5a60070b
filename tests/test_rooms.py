"""Small modules that scripts for MXNet import: base, util, log, runtime, operators from before CustomOp, helpers of
modules, executor_manager, test data."""

from __future__ import annotations

import gzip
import logging
import os
import pickle
import struct
import sys
import zipfile
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, FileFormatError, OpError, ShapeError
from tests.questions import of_each

nd, sym = mx.nd, mx.sym



@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(3)


# ------------------------------------------------------------------------------------------------- base


def test_names_of_the_c_interface_can_be_imported_and_name_replacements():
    from opreg.base import _LIB, NDArrayHandle, _Null, c_array, c_str, check_call, mx_uint

    assert not _Null and repr(_Null) == "_Null" and mx_uint(3) == 3
    for use, words in ((lambda: check_call(0), "base.check_call.*functions of nd and sym"),
                       (lambda: _LIB.MXNDArraySave(), "base._LIB.MXNDArraySave"), (lambda: c_str("x"), "base.c_str"),
                       (lambda: c_array(int, []), "base.c_array"), (NDArrayHandle, "have no handle")):
        with pytest.raises(mx.MXNetError, match=words):
            use()
    assert not hasattr(_LIB, "MXNDArraySave")
    with pytest.raises(AttributeError, match="Did you mean 'check_call'"):
        mx.base.chek_call  # noqa: B018


def test_util_sets_environment_variables_and_scopes(monkeypatch):
    monkeypatch.delenv("ROOMS", raising=False)
    mx.util.setenv("ROOMS", "3")
    assert mx.util.getenv("ROOMS") == os.environ["ROOMS"] == "3"
    mx.util.setenv("ROOMS", None)
    assert mx.util.getenv("ROOMS") is None
    assert not mx.util.is_np_array() and mx.util.get_gpu_count() == mx.num_gpus()
    with mx.util.np_array(True):
        assert mx.util.is_np_array() and not mx.is_np_shape()
    with pytest.raises(ArgumentError, match="expected a GPU"):
        mx.util.get_cuda_compute_capability(mx.cpu())


def test_a_logger_is_made_once_and_writes_to_its_file(tmp_path):
    name = "opreg.tests.rooms"
    logger = mx.log.get_logger(name, str(tmp_path / "log"), level=mx.log.INFO)
    assert mx.log.get_logger(name) is logger and len(logger.handlers) == 1
    logger.info("so %s", "it is")
    logger.debug("not this")
    (handler,) = logger.handlers
    logger.removeHandler(handler)
    handler.close()
    (line,) = (tmp_path / "log").read_text().splitlines()
    place = "test_rooms.py:test_a_logger_is_made_once_and_writes_to_its_file:"
    assert line.startswith("I") and place in line and line.endswith("] so it is")
    with pytest.warns(DeprecationWarning, match="get_logger"):
        assert mx.log.getLogger() is logging.getLogger()


@pytest.mark.parametrize("level, said", [(None, "WEC"), ("0", "DIWEC"), ("1", "IWEC"), ("3", "EC"), ("?", "WEC")])
def test_log_writes_messages_of_its_level_and_above(level, said, monkeypatch, capsys):
    logger = mx.log.get_logger("opreg.said")
    (handler,) = logger.handlers
    monkeypatch.setattr(handler, "stream", sys.stderr)
    monkeypatch.delenv("GLOG_v", raising=False)
    if level is not None:
        monkeypatch.setenv("GLOG_v", level)
    for name in ("debug", "info", "warning", "error", "critical"):
        getattr(mx.log, name)("%d is %s", 3, name)
    lines = capsys.readouterr().err.splitlines()
    assert "".join(line[0] for line in lines) == said
    assert all("test_rooms.py:test_log_writes" in line for line in lines) and lines[-1].endswith("] 3 is critical")
    assert mx.log.get_level() == (level if level in ("0", "1", "3") else "2")


def test_features_name_the_options_of_a_build():
    features = mx.runtime.Features()
    assert features is mx.runtime.Features() is mx.runtime.Features.instance
    assert features.is_enabled("lapack") and not features.is_enabled("DIST_KVSTORE")
    assert features.keys() == {feature.name for feature in mx.runtime.feature_list()}
    assert features.is_enabled("CUDA") == bool(mx.num_gpus())
    with pytest.raises(RuntimeError, match="Did you mean 'OPENCV'"):
        features.is_enabled("opencv2")


# --------------------------------------------------------------------------- operators before CustomOp


class NumpySoftmax(mx.operator.NumpyOp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]]

    def forward(self, in_data, out_data):
        assert all(type(array) is np.ndarray for array in in_data + out_data)
        y = out_data[0]
        y[:] = np.exp(in_data[0] - in_data[0].max(axis=1).reshape((-1, 1)))
        y /= y.sum(axis=1).reshape((-1, 1))

    def backward(self, out_grad, in_data, out_data, in_grad):
        assert out_grad == []
        dx, label = in_grad[0], in_data[1].astype(int)
        dx[:] = out_data[0]
        dx[np.arange(len(label)), label] -= 1


class Scaled(mx.operator.NDArrayOp):
    """The input times a factor, which is an attribute."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0] * self.factor

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_grad[0] * self.factor


def test_numpy_op_is_the_operator_it_describes():
    x, label = np.random.default_rng(0).normal(size=(4, 3)).astype("f"), [0, 1, 2, 0]
    fc = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    own, built_in = NumpySoftmax()(data=fc, name="softmax"), sym.SoftmaxOutput(fc, name="softmax")
    assert own.list_arguments() == built_in.list_arguments()
    assert own.list_outputs() == built_in.list_outputs()
    results = []
    for net in (own, built_in):
        executor = net.simple_bind(mx.cpu(), data=(4, 3))
        executor.arg_dict["fc_weight"][:] = np.eye(3)
        executor.forward(is_train=True, data=nd.array(x), softmax_label=nd.array(label))
        executor.backward()
        results.append([executor.outputs[0].asnumpy(), executor.grad_dict["fc_weight"].asnumpy()])
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_ndarray_ops_nest_and_have_gradients():
    net = Scaled(2.0)(Scaled(3.0)(sym.var("x"), name="inner"), name="outer")
    assert net.list_outputs() == ["outer_output"]
    grad = nd.ones(2)
    executor = net.bind(mx.cpu(), {"x": nd.array([1, 2])}, {"x": grad}, "add")
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [6, 12]
    executor.backward(nd.ones(2))
    assert grad.asnumpy().tolist() == [7, 7]  # added, as was asked for
    assert Scaled(5.0)(nd.ones(1)).asscalar() == 5


def test_a_module_trains_through_a_numpy_op():
    net = NumpySoftmax()(data=sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    data = np.array([[0, 1], [1, 0]] * 4, "f")
    batches = mx.io.NDArrayIter(data, data[:, 0], 4)
    module = mx.mod.Module(net)
    module.fit(batches, num_epoch=40, optimizer_params={"learning_rate": 0.5})
    assert module.score(batches, "acc") == [("accuracy", 1.0)]
    with pytest.raises(NotImplementedError, match="derive from NumpyOp"):
        mx.operator.PythonOp()(net)


# -------------------------------------------------------------------------------- helpers of modules


def test_helpers_of_modules_parse_descriptions():
    from opreg.module.base_module import _as_list, _check_input_names, _parse_data_desc

    data, labels = _parse_data_desc(["data"], ["label"], [("data", (2, 3))], [mx.io.DataDesc("label", (2,))])
    assert data == [mx.io.DataDesc("data", (2, 3))] and labels == [("label", (2,))]
    assert all(isinstance(desc, mx.io.DataDesc) for desc in data + labels)
    with pytest.warns(UserWarning, match="label_shapes: described are none; label_names says label"):
        assert _parse_data_desc(["data"], ["label"], [("data", (2, 3))], None)[1] is None
    with pytest.raises(ValueError, match="data_shapes: described are dat; data_names says data"):
        _parse_data_desc(["data"], [], [("dat", (2, 3))], None)
    net = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc")
    _check_input_names(net, ["data"], "data", True)
    with pytest.raises(ValueError, match="Did you mean 'data'"):
        _check_input_names(net, ["dat"], "data", True)
    with pytest.warns(UserWarning, match="label_names: the symbol has no argument 'softmax_label'"):
        _check_input_names(net, ["softmax_label"], "label", False)
    assert _as_list("x") == ["x"] and _as_list(["x"]) == ["x"]


def test_the_executor_manager_divides_batches():
    from opreg.executor_manager import DataParallelExecutorManager, _check_arguments, _split_input_slice

    assert _split_input_slice(10, [1, 3]) == [slice(0, 2), slice(2, 10)]
    with pytest.raises(ValueError, match="cannot be divided"):
        _split_input_slice(2, [1, 1, 1])
    with pytest.raises(ValueError, match="the argument 'x' twice"):
        _check_arguments(sym.var("x") + sym.var("x"))
    net = sym.LinearRegressionOutput(sym.FullyConnected(sym.var("data"), num_hidden=1, name="fc"), sym.var("y"))
    batches = mx.io.NDArrayIter(np.arange(8.0).reshape(4, 2), np.arange(4.0), 4, label_name="y")
    manager = DataParallelExecutorManager(net, [mx.cpu(0), mx.cpu(1)], batches)
    assert manager.param_names == ["fc_weight", "fc_bias"] and manager.slices == [slice(0, 2), slice(2, 4)]
    manager.set_params({"fc_weight": nd.ones((1, 2)), "fc_bias": nd.zeros(1)}, {})
    batch, metric = next(batches), mx.metric.create("mse")
    manager.load_data_batch(batch)
    manager.forward(is_train=True)
    manager.backward()
    manager.update_metric(metric, batch.label)
    assert metric.get()[1] == np.mean((np.arange(8).reshape(4, 2).sum(1) - np.arange(4)) ** 2)
    slopes = [sum(grad.asnumpy() for grad in grads) for grads in manager.grad_arrays]
    assert slopes[1].tolist() == [(np.arange(8).reshape(4, 2).sum(1) - np.arange(4)).sum()]
    out = {"fc_weight": nd.zeros((1, 2)), "fc_bias": nd.zeros(1)}
    manager.copy_to(out, {})
    assert out["fc_weight"].asnumpy().tolist() == [[1, 1]]


def test_an_old_training_loop_over_executors_runs():
    """A loop over executors, as programs wrote it before Module, with the helpers of ``model``."""
    from opreg.model import _create_kvstore, _initialize_kvstore, _update_params, _update_params_on_kvstore

    def weights(kind, contexts):
        net = sym.LinearRegressionOutput(sym.FullyConnected(sym.var("data"), num_hidden=1, name="fc"), sym.var("y"))
        batches = mx.io.NDArrayIter(np.arange(8.0).reshape(4, 2) / 8, np.arange(4.0), 4, label_name="y")
        manager = mx.executor_manager.DataParallelExecutorManager(net, contexts, batches)
        args = {"fc_weight": nd.ones((1, 2)), "fc_bias": nd.zeros(1)}
        manager.set_params(args, {})
        optimizer = mx.optimizer.create("sgd", learning_rate=0.1, rescale_grad=0.25, momentum=0.5)
        store, there = _create_kvstore(kind, len(contexts), args)
        if store:
            _initialize_kvstore(store, manager.param_arrays, args, manager.param_names, there)
        if there:
            store.set_optimizer(optimizer)
        updater = mx.optimizer.get_updater(optimizer)
        manager.load_data_batch(next(batches))
        for _ in range(3):
            manager.forward(is_train=True)
            manager.backward()
            if there:
                _update_params_on_kvstore(manager.param_arrays, manager.grad_arrays, store, manager.param_names)
            else:
                _update_params(manager.param_arrays, manager.grad_arrays, updater, len(contexts), store,
                               manager.param_names)
        return [[array.asnumpy() for array in copies] for copies in manager.param_arrays]

    expected = weights("local", [mx.cpu()])
    for copies, (alone,) in zip(weights("local", [mx.cpu(0), mx.cpu(1)]), expected):
        for copy in copies:
            np.testing.assert_allclose(copy, alone, rtol=1e-6)


@of_each([
    (lambda: mx.mod.SequentialModule().add(None, take_label=True), ArgumentError, "Did you mean 'take_labels'"),
    (lambda: mx.mod.SequentialModule().bind([("data", (1,))]), ArgumentError, "the module is empty"),
    (lambda: mx.mod.PythonLossModule(data_names=["a", "b"]), ArgumentError, "one input and one label"),
    (lambda: mx.mod.PythonLossModule(grad_func=1), TypeError, "expected a function"),
    (lambda: mx.mod.PythonLossModule().bind([("x", (1, 2))]), ArgumentError, "data_shapes: expected data, got x"),
    (lambda: mx.model.FeedForward(3), TypeError, "expected a Symbol"),
    (lambda: mx.model.FeedForward(sym.var("data")).fit(np.ones((2, 1)), np.ones(2)), ArgumentError, "num_epoch"),
    (lambda: mx.model.FeedForward(sym.var("data"), num_epoch=1).fit(np.ones((2, 1))), ArgumentError, "labels"),
    (lambda: mx.model.FeedForward(sym.var("data"), num_epoch=1).fit(np.ones((2, 1)), np.ones(3)), ShapeError,
     "X has 2 samples, y has 3"),
    (lambda: mx.model.FeedForward(sym.var("data")).predict(np.ones((2, 1))), ArgumentError, "no weights yet"),
    (lambda: mx.model.FeedForward(sym.var("data")).predict([1]), TypeError, "got list"),
    (lambda: mx.model.FeedForward(sym.var("x") + sym.var("x")), ArgumentError, "'x' twice"),
])
def test_wrong_uses_of_feed_forward_models_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_feed_forward_trains_with_buckets():
    def make(length):
        scores = sym.Embedding(sym.var("data"), input_dim=3, output_dim=3, name="embed")
        label = sym.Reshape(sym.var("softmax_label"), shape=(-1,))
        return sym.SoftmaxOutput(sym.Reshape(scores, shape=(-1, 3)), label, use_ignore=True, ignore_label=0,
                                 name="softmax")

    sentences = [[1, 1, 1], [2, 2], [1, 1], [2, 2, 2]] * 4
    batches = mx.rnn.BucketSentenceIter(sentences, 4, buckets=[2, 3], invalid_label=0)
    model = mx.model.FeedForward(make, num_epoch=20, learning_rate=2.0)
    model.fit(batches, eval_metric=mx.metric.Perplexity(ignore_label=0))
    assert model.arg_params["embed_weight"].asnumpy().argmax(axis=1).tolist()[1:] == [1, 2]


# ------------------------------------------------------------------------------------- data of tests


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "home" / "datasets" / "mnist").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def mnist(home):
    """Files of twelve digits for training and six for validation, compressed and not."""
    rng, folder = np.random.default_rng(0), home / "datasets" / "mnist"
    for prefix, count in (("train", 12), ("t10k", 6)):
        images, labels = rng.integers(0, 256, (count, 28, 28), np.uint8), rng.integers(0, 10, count, np.uint8)
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(labels))
    return folder


def test_get_mnist_reads_the_files_of_a_folder(mnist):
    found = mx.test_utils.get_mnist()
    assert {name: (array.shape, str(array.dtype)) for name, array in found.items()} == {
        "train_data": ((12, 1, 28, 28), "float32"), "train_label": ((12,), "int8"),
        "test_data": ((6, 1, 28, 28), "float32"), "test_label": ((6,), "int8")}
    assert 0 <= found["train_data"].min() < 0.01 and found["train_data"].max() == 1
    with pytest.warns(UserWarning, match="batch_size=4 is more than the 3 rows: there is no batch"):
        train, validate = mx.test_utils.get_mnist_iterator(4, (784,), num_parts=2, part_index=1)
    assert train.provide_data == [("data", (4, 784))] and train.provide_label == [("softmax_label", (4,))]
    assert [len(list(each)) for each in (train, validate)] == [1, 0]
    assert mx.test_utils.get_mnist_iterator(2, (1, 28, 28))[0].provide_data == [("data", (2, 1, 28, 28))]
    mx.test_utils.get_mnist_ubyte()
    assert sorted(os.listdir("data")) == ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
                                          "train-images-idx3-ubyte", "train-labels-idx1-ubyte"]
    assert Path("data/train-images-idx3-ubyte").read_bytes() == gzip.decompress(
        (mnist / "train-images-idx3-ubyte.gz").read_bytes())


def test_a_damaged_file_of_mnist_is_refused(mnist):
    path = mnist / "t10k-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileFormatError, match="t10k-labels-idx1-ubyte: its header gives"):
        mx.test_utils.get_mnist()


def test_download_explains_a_missing_network(home, monkeypatch):
    def unreachable(url, timeout):
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    with pytest.raises(OpError, match=r"/a\.bin cannot be fetched \(no network\).*put a file 'a.bin' into"):
        mx.test_utils.download("http://x.org/a.bin")
    (home / "a.bin").write_bytes(b"here")
    assert mx.test_utils.download("http://x.org/a.bin?raw=true", dirname="sub") == os.path.join("sub", "a.bin")
    assert Path("sub/a.bin").read_bytes() == b"here"
    assert mx.test_utils.download("http://x.org/other", fname="sub/a.bin") == os.path.join("sub", "a.bin")
    assert mx.test_utils.download(str(home / "a.bin"), fname="b.bin") == "b.bin"
    (home / "a.bin").write_bytes(b"new")
    for overwrite, content in ((False, b"here"), (True, b"new")):
        path = mx.test_utils.download((home / "a.bin").as_uri(), fname="b.bin", overwrite=overwrite)
        assert Path(path).read_bytes() == content
    with pytest.raises(FileNotFoundError):
        mx.test_utils.download("file:///nowhere/x.bin")


def test_packed_datasets_are_unpacked(home):
    with zipfile.ZipFile(home / "cifar10.zip", "w") as packed:
        for name in ("train.rec", "test.rec", "train.lst", "test.lst"):
            packed.writestr(f"cifar/{name}", name)
    mx.test_utils.get_cifar10()
    mx.test_utils.get_cifar10()
    assert Path("data/cifar/train.rec").read_text() == "train.rec"


# --------------------------------------------------------------------- names that libraries over Gluon take


def _pickled(samples, batchify_fn, dataset):
    batch = batchify_fn([10 * number for number in samples])
    return pickle.dumps(batch) if dataset is None else batch


@pytest.mark.parametrize("dataset", [None, [0]])
def test_a_round_over_a_pool_of_workers(dataset):
    from opreg.gluon.data.dataloader import ForkingPickler, _as_in_context, _MultiWorkerIter, default_batchify_fn

    assert callable(ForkingPickler.dumps)
    sampler = mx.gluon.data.BatchSampler(mx.gluon.data.SequentialSampler(5), 2)
    with ThreadPool(2) as pool:
        batches = _MultiWorkerIter(pool, default_batchify_fn, sampler, worker_fn=_pickled, prefetch=1, dataset=dataset,
                                   pin_memory=True)
        assert len(batches) == 3 and next(batches).asnumpy().tolist() == [0, 10]
        rest = [batches.next(), *batches]
    assert [batch.asnumpy().tolist() for batch in rest] == [[20, 30], [40]]
    assert rest[0].context == mx.cpu_pinned()
    assert _as_in_context((rest[0], 3), mx.cpu())[0].context == mx.cpu()
    with pytest.raises(ValueError, match="worker_fn"):
        _MultiWorkerIter(None, default_batchify_fn, sampler)


def test_names_that_models_and_transforms_of_other_libraries_take(monkeypatch):
    from opreg.image.image import _get_interp_method

    from opreg.gluon.block import _flatten, _regroup
    from opreg.gluon.model_zoo import model_store
    from opreg.gluon.model_zoo.vision.resnet import _conv3x3
    from opreg.gluon.utils import _get_repo_file_url, _get_repo_url
    from opreg.ndarray.ndarray import _STORAGE_TYPE_STR_TO_ID, py_slice

    values = [nd.ones(1), [nd.zeros(2), None]]
    flat, form = _flatten(values, "input")
    assert form == [0, [0, -1]] and _regroup(flat, form) == values
    assert _conv3x3(4, 2, 3)._kwargs["kernel"] == (3, 3)
    assert [_get_interp_method(*each) for each in ((9,), (9, (2, 2, 4, 4)), (9, (4, 4, 2, 2)), (1,))] == [2, 2, 3, 1]
    assert py_slice is slice and _STORAGE_TYPE_STR_TO_ID[nd.ones((2, 2)).tostype("csr").stype] == 2
    monkeypatch.setitem(model_store._model_sha1, "transformer_en_de", "e25287c5a924b7025e08d626f02626d5fa3af2d1")
    assert model_store.short_hash("transformer_en_de") == "e25287c5"
    monkeypatch.setenv("MXNET_GLUON_REPO", "file:///models")
    assert _get_repo_url() == "file:///models/"
    assert _get_repo_file_url("gluon/models", "a.zip") == "file:///models/gluon/models/a.zip"


def test_a_library_may_register_classes_of_its_own_base():
    from opreg import registry

    class Fruit:
        def __init__(self, size=1):
            self.size = size

    register, create = registry.get_register_func(Fruit, "fruit"), registry.get_create_func(Fruit, "fruit")
    alias = registry.get_alias_func(Fruit, "fruit")

    @alias("green", "Red")
    @register
    class Apple(Fruit):
        pass

    register(type("Apple", (Fruit,), {}), "other")
    found = registry.get_registry(Fruit)
    assert list(found) == ["apple", "green", "red", "other"] and found["red"] is Apple is not found["other"]
    found.clear()
    assert "apple" in registry.get_registry(Fruit)
    made = create("Apple", size=3)
    assert type(made) is Apple and made.size == 3 and create(made) is made
    assert create(fruit="green").size == 1 and create({"fruit": "red", "size": 2}).size == 2
    assert create('["apple", {"size": 4}]').size == create('{"fruit": "apple", "size": 4}').size == 4
    with pytest.warns(UserWarning, match="fruit 'apple': .* replaces"):
        register(type("Apple", (Fruit,), {}))
    for wrong, words in ((lambda: register(int), "subclass of Fruit"), (create, "must be of string type"),
                         (lambda: create("appel"), "Did you mean 'apple'"), (lambda: create(3), "must be of string"),
                         (lambda: create(made, 1), "already an instance")):
        with pytest.raises(AssertionError, match=words):
            wrong()


def test_classes_that_are_registered_here_are_found_by_their_base():
    assert mx.registry.get_registry(mx.metric.EvalMetric)["acc"] is mx.metric.Accuracy
    assert mx.registry.get_registry(mx.init.Initializer)["xavier"] is mx.init.Xavier
    assert mx.registry.get_registry(mx.optimizer.Optimizer)["sgd"] is mx.optimizer.SGD
    assert mx.registry.get_create_func(mx.metric.EvalMetric, "metric")("mse").name == "mse"
    with pytest.raises(AttributeError, match="has no attribute 'get_registri'"):
        _ = mx.registry.get_registri

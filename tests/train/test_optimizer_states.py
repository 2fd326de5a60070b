"""States of optimizers as bytes: training continues from them, and invalid bytes change nothing."""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import re
import sys
import types
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.errors import ArgumentError, DTypeError, FileFormatError, ShapeError
from opreg.ndarray.npz_file import npz
from opreg.ndarray.records import Record
from tests.questions import of_each
from tests.recorded import mxnet_states
from tests.train.test_optimizer import steps, updater, weights

nd = mx.nd


def test_saved_states_contain_no_code():
    move = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    move("layer_weight", nd.ones(2), nd.ones(2))
    saved = move.get_states(dump_optimizer=True)
    assert saved[:2] == b"PK"
    again = mx.optimizer.get_updater(mx.optimizer.create("adam", learning_rate=9))
    again.set_states(saved)
    assert list(again.states) == ["layer_weight"] and again.optimizer.lr == 0.001
    assert np.array_equal(again.states["layer_weight"][0].asnumpy(), move.states["layer_weight"][0].asnumpy())
    with pytest.raises(ArgumentError, match="belong to optimizer 'adam'"):
        mx.optimizer.get_updater(mx.optimizer.create("sgd")).set_states(saved)


class _Trap:
    def __reduce__(self):
        return pytest.fail, ("unpickling ran code",)


@pytest.mark.parametrize("data", [b"", b"nonsense", pickle.dumps([1]), pickle.dumps(_Trap())],
                         ids=["empty", "text", "pickle", "trap"])
def test_other_bytes_are_refused(data):
    with pytest.raises(FileFormatError, match="get_states"):
        updater("sgd").set_states(data)


@pytest.mark.parametrize("name", mxnet_states.OPTIMIZERS)
def test_training_goes_on_from_states_that_mxnet_pickled(name):
    with open(mxnet_states.FILE) as file:
        recorded = json.load(file)[name]
    kind, options, dtype = mxnet_states.OPTIMIZERS[name]
    move = mx.optimizer.get_updater(mx.optimizer.create(kind, **{**options, "learning_rate": 9}))
    move.set_states(bytes.fromhex(recorded["states"]))
    before, after = recorded["weights"]
    weight = nd.array(before, dtype=dtype)
    mxnet_states.steps(nd, move, weight, 3, 6)
    assert move.optimizer.lr == 0.1 and move.optimizer.num_update == 6
    assert np.allclose(weight.asnumpy(), after, rtol=3e-6 if dtype == "float32" else 1e-3)


class _Pickled:
    """An array as MXNet pickles it."""

    __module__, __qualname__ = "mxnet.ndarray.ndarray", "NDArray"

    def __init__(self, array=None):
        self.array = array

    def __reduce__(self):
        return _Pickled, (None,), {"handle": bytearray(self.array.__getstate__()["handle"])}


class _Optimizer:
    """An optimizer as MXNet pickles it."""

    __module__, __qualname__ = "mxnet.optimizer.optimizer", "Adam"


def as_mxnet(monkeypatch, value, protocol):
    """A pickle of a value whose classes are MXNet's."""
    for module in ("mxnet", "mxnet.ndarray", "mxnet.optimizer"):
        monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
    for made in (_Pickled, _Optimizer):
        monkeypatch.setitem(sys.modules, made.__module__, types.SimpleNamespace(**{made.__qualname__: made}))
    return pickle.dumps(value, protocol)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_mxnet_are_read_in_every_protocol(monkeypatch, protocol):
    optimizer = _Optimizer()
    counts = {0: 3, "fc_bias": 2}
    vars(optimizer).update(beta1=0.5, lr=np.float64(0.25), num_update=3, lr_scheduler=_Optimizer(),
                           _index_update_count=counts, _all_index_update_counts={0: counts}, aggregate_num=0)
    states = {index: [_Pickled(nd.array(values)) for values in ([1, 2], [3, 4])] for index in (0, "fc_bias")}
    content = as_mxnet(monkeypatch, (states, optimizer), protocol)
    move = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    move.set_states(content)
    assert [array.asnumpy().tolist() for array in move.states["fc_bias"]] == [[1, 2], [3, 4]]
    assert move.optimizer._index_update_count == {0: 3, "fc_bias": 2} and move.optimizer.num_update == 3
    assert (move.optimizer.beta1, move.optimizer.lr) == (0.5, 0.25) and move.optimizer.lr_scheduler is None
    with pytest.raises(ArgumentError, match="belong to optimizer 'adam'"):
        mx.optimizer.get_updater(mx.optimizer.create("sgd")).set_states(content)


@pytest.mark.parametrize("value", [
    {0: {1: 2}}, {0: _Optimizer()}, {(0, 1): None}, [1, 2], ({0: None}, 3), {0: b"text"},
    ({0: None}, {"num_update": 3})],
    ids=["dict", "object", "pair", "list", "number", "bytes", "settings"])
def test_pickles_of_other_things_are_refused(monkeypatch, value):
    move = updater("adam")
    with pytest.raises(FileFormatError, match="optimizer states"):
        move.set_states(as_mxnet(monkeypatch, value, 4))
    assert not move.states


def test_states_are_found_by_name_and_by_number():
    names = {0: "fc_weight", 1: "fc_bias"}
    weights = {index: nd.ones((2,)) for index in names}
    by_number, by_name = (mx.optimizer.get_updater(mx.optimizer.create("adam", param_idx2name=names)) for _ in range(2))
    for index, weight in weights.items():
        by_number(index, nd.ones((2,)), weight)
    by_name.set_states(by_number.get_states())
    copies = {index: weight.copy() for index, weight in weights.items()}
    for index, name in names.items():
        by_number(index, nd.full((2,), 2), weights[index])
        by_name(name, nd.full((2,), 2), copies[index])
        assert np.array_equal(weights[index].asnumpy(), copies[index].asnumpy())
    again = mx.optimizer.get_updater(mx.optimizer.create("adam", param_idx2name=names))
    again.set_states(by_name.get_states())
    again(1, nd.ones((2,)), copies[1])
    assert set(again.states) == {"fc_weight", 1} and again.optimizer._index_update_count[1] == 3


@given(st.data())
@settings(deadline=None, max_examples=60, derandomize=True)
def test_damaged_states_are_refused_or_read(data):
    move = updater("adam")
    steps(move, weights(), 0, 1)
    saved = bytearray(move.get_states(dump_optimizer=True))
    for _ in range(data.draw(st.integers(1, 4))):
        saved[data.draw(st.integers(0, len(saved) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(saved)))
    for damaged in (saved, saved[:cut]):
        try:
            updater("adam").set_states(bytes(damaged))
        except FileFormatError:
            pass


def crafted(change=lambda about, arrays: None, text=lambda text: text, **more):
    """Bytes of the states of one weight of two elements, changed before they are written."""
    arrays = {"array0": np.ones(2, "f"), "array1": np.ones(2, "f")}
    state = {"tuple": [{"array": name, "dtype": "float32"} for name in arrays]}
    about = {"format": "opreg optimizer states 1", "num_update": 3, "counts": [[0, [[0, 3]]]], "states": [[0, state]],
             "optimizer": "adam", "settings": {}, **more}
    change(about, arrays)
    arrays["about"] = np.frombuffer(text(json.dumps(about)).encode(), np.uint8)
    return npz([Record(each) for each in arrays.values()], list(arrays))


def packed(*members, method=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def npy(shape, descr="<f4", content=b""):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + content


def one(key, value):
    return lambda about, arrays: about["states"].__setitem__(0, [0, {key: value}])


@of_each([
    (lambda: packed(("a.npy", npy("(1000000000000,)"))), "expected 4000000000"),
    (lambda: packed(("a.npy", npy(f"({2**70},)"))), "header of an array of numbers"),
    (lambda: packed(("a.npy", npy("(8,)", content=bytes(32))), method=zipfile.ZIP_DEFLATED), "a stored member"),
    (lambda: packed(("a.txt", "text")), "expected a .npy file"),
    (lambda: packed(("a.npy", "text")), "start of a .npy file"),
    (lambda: packed(), "the text of get_states, got none"),
    (lambda: crafted(text=lambda text: "[" * 100_000), "nested too deeply"),
    (lambda: crafted(text=lambda text: '{"format": ' + "1" * 5000 + "}"), "absurdly long number"),
    (lambda: crafted(text=lambda text: text.replace("{", '{"format": 1, ', 1)), "'format' stands twice"),
    (lambda: crafted(text=lambda text: text[:-1]), "no JSON"),
    (lambda: crafted(text=lambda text: "7"), "not a result of get_states"),
    (lambda: crafted(format="another"), "not a result of get_states"),
    (lambda: crafted(num_update=math.inf), "num_update: expected a number of updates, got inf"),
    (lambda: crafted(num_update=-1), "expected a number of updates, got -1"),
    (lambda: crafted(num_update=True), "expected a number of updates, got True"),
    (lambda: crafted(num_update=1 << 70), "expected a number of updates"),
    (lambda: crafted(counts=[[0, [[0, math.inf]]]]), "counts: 0: 0: expected a number of updates, got inf"),
    (lambda: crafted(counts=[["cpu", []]]), "numbers of devices"),
    (lambda: crafted(counts=[[0, 3]]), "counts: 0: expected a list, got 3"),
    (lambda: crafted(counts={}), "counts: expected a list"),
    (lambda: crafted(states=[[0]]), "states: expected pairs"),
    (lambda: crafted(states=[[[], {"value": 1}]]), "a number or a name"),
    (lambda: crafted(states=[[0, {"value": 1}]] * 2), "each weight once, got 0"),
    (lambda: crafted(states=[[0, 7]]), "expected a state, got 7"),
    (lambda: crafted(one("value", [])), "expected a state"),
    (lambda: crafted(one("other", 1)), "expected a state"),
    (lambda: crafted(one("tuple", 1)), "expected a list, got 1"),
    (lambda: crafted(one("tuple", [{"array": "array7", "dtype": "float32"}])), "the name of an array, got array7"),
    (lambda: crafted(one("tuple", [{"array": "array0", "dtype": "float32"}] * 2)), "the name of an array, got array0"),
    (lambda: crafted(one("tuple", [{"array": [], "dtype": "float32"}])), "the name of an array"),
    (lambda: crafted(one("tuple", [{"array": "array0", "dtype": "int32"}])), "the array's dtype float32, got int32"),
    (lambda: crafted(lambda about, arrays: arrays.update(array0=np.ones(2, "c8"))), "dtype complex64, got float32"),
    (lambda: crafted(lambda about, arrays: arrays.update(more=np.ones(2))), "all arrays to be named, got more"),
    (lambda: crafted(lambda about, arrays: [about["states"].__setitem__(0, [0, {"tuple": [about["states"][0][1]]}])
                                            for _ in range(9)]), "expected a state"),
    (lambda: crafted(optimizer=7), "optimizer: expected a name, got 7"),
    (lambda: crafted(settings=[1]), "settings: expected names with values"),
    (lambda: crafted(settings=7), "settings: expected names with values, got 7"),
    (lambda: crafted(settings={"lr": "abc"}), "setting lr: expected a number, got 'abc'"),
    (lambda: crafted(settings={"lr": None}), "setting lr: expected a number, got None"),
    (lambda: crafted(settings={"lr": True}), "setting lr: expected a number, got True"),
    (lambda: crafted(settings={"lr": math.nan}), "setting lr: expected a number, got nan"),
    (lambda: crafted(settings={"lr_scheduler": "x"}), "setting lr_scheduler: expected a number, got 'x'"),
    (lambda: crafted(settings={"param_dict": 5}), "Adam has no setting 'param_dict'"),
    (lambda: crafted(settings={"beta1": "a"}), "setting beta1: expected a number, got 'a'"),
    (lambda: crafted(settings={"lazy_update": 1}), "setting lazy_update: expected a bool, got 1"),
    (lambda: crafted(settings={"begin_num_update": 0.5}), "expected a number of updates, got 0.5"),
    (lambda: crafted(settings={"__dict__": {"a": 1}}), "no setting '__dict__'"),
    (lambda: crafted(settings={"_index_update_count": 3}), "no setting '_index_update_count'"),
    (lambda: crafted(settings={"update": 3}), "no setting 'update'"),
    (lambda: crafted(settings={"momentum": 0.9}), "no setting 'momentum'"),
])
def test_states_that_are_wrong_change_nothing(content, words):
    move = updater("adam")
    steps(move, weights(), 0, 2)
    states, before = dict(move.states), copy.deepcopy(vars(move.optimizer))
    with pytest.raises(FileFormatError, match=f"optimizer states: .*{re.escape(words)}"):
        move.set_states(content())
    assert vars(move.optimizer) == before and move.states == states


def test_the_crafted_states_are_valid_before_damage():
    move = updater("adam")
    move.set_states(crafted(settings={"lr": 0.5, "clip_gradient": None, "lazy_update": False, "num_update": 3}))
    assert move.optimizer.num_update == 3 and move.optimizer.lr == 0.5 and move.optimizer.lazy_update is False
    move(0, *reversed((nd.ones((2,)), nd.ones((2,)))))
    assert move.optimizer._index_update_count == {0: 4}


@pytest.mark.parametrize("saved, now, kind, words", [
    ({"momentum": 0.9}, {"momentum": 0.9, "shape": (3,)}, ShapeError,
     r"of shape \(3,\): the loaded state has shape \(2"),
    ({"momentum": 0.9}, {"momentum": 0.9, "dtype": "float64"}, DTypeError, "has dtype float32, expected float64"),
    ({"name": "adam"}, {"momentum": 0.9}, ArgumentError, "loaded state is 2 values, this optimizer has an array"),
    ({"momentum": 0.9}, {"name": "adam"}, ArgumentError, "loaded state is an array, this optimizer has 2 values"),
    ({"momentum": 0.9, "multi_precision": True, "dtype": "float16"}, {"momentum": 0.9}, ArgumentError, "2 values"),
])
def test_states_that_were_read_must_fit_at_first_use(saved, now, kind, words):
    def made(name="sgd", shape=(2,), dtype="float32", **keywords):
        return updater(name, **keywords), nd.ones(shape, dtype=dtype)

    first, weight = made(**saved)
    first(0, weight, weight)
    second, weight = made(**now)
    second.set_states(first.get_states())
    with pytest.raises(kind, match=f"weight 'a_weight'.*{words}"):
        second(0, weight, weight)
    assert second.optimizer._index_update_count == {0: 1}
    assert (weight.asnumpy() == 1).all()


def test_a_momentum_may_come_or_go_between_saving_and_reading():
    for before, after in ((0.0, 0.9), (0.9, 0.0)):
        first, second = updater("sgd", momentum=before), updater("sgd", momentum=after)
        weight, grad = nd.ones((2,)), nd.ones((2,))
        first(0, grad, weight)
        second.set_states(first.get_states())
        second(0, grad, weight)
        second(0, grad, weight)
        steps = (1 + 1.9) if after else 2
        assert weight.asnumpy() == pytest.approx(1 - 0.01 * (1 + steps))


class _Named:
    """An object of a class that a pickle names: the name, and the state."""

    def __new__(cls, *_):
        return object.__new__(cls)

    def __init__(self, *_):
        pass

    def __setstate__(self, state):
        self.state = state

    def __eq__(self, other):
        return (type(self).__qualname__, self.state) == (type(other).__qualname__, other.state)

    __hash__ = None  # type: ignore[assignment]


class _Names(pickle.Unpickler):
    """Reads a pickle without the library that wrote it."""

    def find_class(self, module, name):
        return bytearray if name == "bytearray" else type(f"{module}.{name}", (_Named,), {})


def unpickled(content):
    return _Names(io.BytesIO(content)).load()


def trained(name):
    """An updater after three updates, as in the recording."""
    kind, options, dtype = mxnet_states.OPTIMIZERS[name]
    move = mx.optimizer.get_updater(mx.optimizer.create(kind, **options))
    mxnet_states.steps(nd, move, nd.array([1.5, -2.0], dtype=dtype), 0, 3)
    return move


def parts(state):
    """The parts of an unpickled state: classes, dtypes, numbers."""
    if isinstance(state, (tuple, list)):
        return [type(state), *(part for each in state for part in parts(each))]
    if isinstance(state, _Named):
        array = nd.array([0.0])
        array.__setstate__(state.state)
        return [type(state).__qualname__, array.dtype, *array.asnumpy().tolist()]
    return [state]


@pytest.mark.parametrize("name", mxnet_states.OPTIMIZERS)
def test_the_pickle_for_mxnet_is_the_one_that_mxnet_writes(name):
    with open(mxnet_states.FILE) as file:
        expected, theirs = unpickled(bytes.fromhex(json.load(file)[name]["states"]))
    states, ours = unpickled(trained(name).get_states(dump_optimizer=True, format="mxnet"))
    assert states.keys() == expected.keys() == {0}
    assert parts(states[0]) == [pytest.approx(part, rel=1e-3) if isinstance(part, float) else part
                                for part in parts(expected[0])]
    assert type(ours).__qualname__ == type(theirs).__qualname__
    assert {key: ours.state[key] for key in theirs.state} == theirs.state


@pytest.mark.parametrize("name", mxnet_states.OPTIMIZERS)
@pytest.mark.parametrize("dump", (False, True), ids=["states", "all"])
def test_the_pickle_for_mxnet_is_read_back(name, dump):
    move = trained(name)
    again = mx.optimizer.get_updater(mx.optimizer.create(mxnet_states.OPTIMIZERS[name][0]))
    again.set_states(move.get_states(dump, format="mxnet"))
    if dump:
        assert again.get_states(True) == move.get_states(True)
    else:
        assert unpickled(again.get_states(format="mxnet")).keys() == {0}


class _Schedule:
    """A schedule of the rate as MXNet pickles it."""


@pytest.mark.parametrize("schedule, attributes", [
    (mx.lr_scheduler.FactorScheduler(2, 0.5, 1e-3, warmup_steps=2, warmup_begin_lr=0.001), {}),
    (mx.lr_scheduler.MultiFactorScheduler([3, 7], 0.1, base_lr=0.5), {}),
    (mx.lr_scheduler.PolyScheduler(9, 0.5, 3, 0.1), {}),
    (mx.lr_scheduler.CosineScheduler(9, 0.5), {}),
    (mx.lr_scheduler.FactorScheduler(2), {"step": 0}),
    (mx.lr_scheduler.FactorScheduler(2), {"count": -10**9}),
    (mx.lr_scheduler.MultiFactorScheduler([2]), {"step": ["2"]}),
    (mx.lr_scheduler.PolyScheduler(9), {"base_lr": None})],
    ids=["factor", "multi", "poly", "cosine", "step", "count", "text", "none"])
def test_schedules_in_pickles_of_mxnet_go_on_or_are_refused(monkeypatch, schedule, attributes):
    rates = [schedule(n) for n in range(6)]
    _Schedule.__module__, _Schedule.__qualname__ = "mxnet.lr_scheduler", type(schedule).__name__
    module = types.SimpleNamespace(**{type(schedule).__name__: _Schedule})
    monkeypatch.setitem(sys.modules, "mxnet.lr_scheduler", module)
    optimizer, pickled = _Optimizer(), _Schedule()
    vars(pickled).update(vars(schedule), **attributes)
    vars(optimizer).update(num_update=5, lr_scheduler=pickled)
    content = as_mxnet(monkeypatch, ({}, optimizer), 2)
    move = updater("adam", lr_scheduler=mx.lr_scheduler.FactorScheduler(1))
    before = move.optimizer.lr_scheduler
    if attributes:
        with pytest.raises(FileFormatError, match=r"optimizer states: .*(step|count|base_lr)"):
            move.set_states(content)
        assert move.optimizer.lr_scheduler is before
    else:
        move.set_states(content)
        assert move.optimizer.learning_rate == rates[-1]
        assert [move.optimizer.lr_scheduler(n) for n in range(6, 12)] == [schedule(n) for n in range(6, 12)]


def test_a_pickle_for_mxnet_has_the_schedule_and_refuses_what_mxnet_lacks():
    schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=0.25)
    _, optimizer = unpickled(updater("sgd", lr_scheduler=schedule).get_states(True, format="mxnet"))
    written = optimizer.state["lr_scheduler"]
    assert type(written).__qualname__ == "mxnet.lr_scheduler.FactorScheduler" and written.state == vars(schedule)
    again = updater("sgd")
    again.set_states(updater("sgd", lr_scheduler=schedule).get_states(True, format="mxnet"))
    assert vars(again.optimizer.lr_scheduler) == vars(schedule)
    _, optimizer = unpickled(updater("groupadagrad").get_states(True, format="mxnet"))
    assert type(optimizer).__qualname__ == "mxnet.optimizer.contrib.GroupAdaGrad"
    with pytest.raises(ArgumentError, match="no optimizer AdamW"):
        updater("adamw").get_states(True, format="mxnet")
    with pytest.raises(ArgumentError, match="'npz' or 'mxnet', got 'pickle'"):
        updater("sgd").get_states(format="pickle")


def test_equal_states_are_equal_bytes():
    one, other = updater("adam"), updater("adam")
    assert [steps(each, weights()).tolist() for each in (one, other)]
    assert one.get_states(dump_optimizer=True) == other.get_states(dump_optimizer=True)


def test_errors_of_states_in_files_name_the_file(tmp_path):
    path = tmp_path / "net.states"
    path.write_bytes(b"no states")
    weight = mx.gluon.Parameter("weight", shape=(2,))
    weight.initialize()
    store = mx.kv.create("local")
    store.set_optimizer(mx.optimizer.SGD())
    module = mx.mod.Module(mx.sym.LinearRegressionOutput(mx.sym.var("data"), mx.sym.var("label"), name="out"),
                           label_names=["label"])
    module.bind([("data", (2, 1))], [("label", (2, 1))])
    module.init_params()
    module.init_optimizer(kvstore=None)
    for read in (mx.gluon.Trainer([weight], "sgd").load_states, store.load_optimizer_states,
                 module.load_optimizer_states):
        with pytest.raises(FileFormatError) as caught:
            read(str(path))
        assert caught.value.__notes__[0] == f"reading {path}"

"""Checkpoints: restored values, errors, and detection of damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg.cells.cell import Cell
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.core.spec import as_dtype
from opreg.errors import FileFormatError
from opreg.ndarray.creation import ones
from opreg.ndarray.io import save
from opreg.nn import optim
from opreg.nn.checkpoint import _CHECKSUM, _checksum, load_checkpoint, load_param_into_net, save_checkpoint
from opreg.nn.layers import CellList


class Layer(Cell):
    def __init__(self, value):
        super().__init__()
        self.weight = Parameter(np.full((3, 2), value, np.float32))
        self.bias = Parameter(np.full(3, value, np.float32))


class Net(Cell):
    def __init__(self, value=0.0):
        super().__init__()
        self.a = Layer(value)
        self.scale = Parameter(Tensor(value + 0.5), name="scale")

    def construct(self, x):
        return x * self.scale


class Outer(Cell):
    def __init__(self, value=0.0):
        super().__init__()
        self.net = Net(value)


NAMES = ["scale", "a.weight", "a.bias"]


@pytest.mark.parametrize("ending", ["ckpt", "npz"])
def test_saved_parameters_are_loaded(tmp_path, ending):
    path = str(tmp_path / f"net.{ending}")
    save_checkpoint(Net(2.0), path)
    found = load_checkpoint(path)
    assert list(found) == NAMES and [p.name for p in found.values()] == NAMES
    assert all(isinstance(p, Parameter) for p in found.values()) and found["scale"].shape == ()
    net = Net()
    memory = net.a.weight.asnumpy()
    run = net.compile(Tensor(1.0))
    assert run(Tensor(1.0)).asnumpy() == 0.5
    assert load_param_into_net(net, found) == ([], [])
    assert net.a.weight.asnumpy() is memory and (memory == 2).all()
    assert run(Tensor(1.0)).asnumpy() == net(Tensor(1.0)).asnumpy() == 2.5
    other = Net()
    load_checkpoint(path, net=other)
    assert other.scale.asnumpy() == 2.5


def test_training_goes_on_from_a_checkpoint(tmp_path):
    """The optimizer's states are saved like those of any Cell."""
    def step(optimizer, times):
        for _ in range(times):
            optimizer(tuple([Tensor(np.full(p.shape, 0.5, np.float32)) for p in optimizer.parameters]))

    whole, first, second = (optim.Adam(Net(1.0).trainable_params(), [0.1, 0.2, 0.3]) for _ in range(3))
    step(whole, 3)
    step(first, 2)
    save_checkpoint(first, tmp_path / "state.ckpt")
    assert load_param_into_net(second, load_checkpoint(tmp_path / "state.ckpt")) == ([], [])
    step(second, 1)
    for p, q in zip(whole.get_parameters(), second.get_parameters()):
        np.testing.assert_array_equal(p.asnumpy(), q.asnumpy())


ARRAYS = {"f16": np.float16([1.5, -2]), "f32": np.float32(3.25), "f64": np.array([[1e300]]), "i8": np.int8([-1]),
          "u8": np.uint8([255]), "i32": np.int32([[7]]), "i64": np.int64(-(2**40)), "truth": np.array([True, False]),
          "none": np.zeros((0, 3), np.float32)}


@pytest.mark.parametrize("ending", ["ckpt", "npz"])
def test_dtypes_and_shapes_stay(tmp_path, ending):
    path = tmp_path / f"all.{ending}"
    save_checkpoint([{"name": name, "data": Tensor(value)} for name, value in ARRAYS.items()], path)
    for name, p in load_checkpoint(path).items():
        assert p.asnumpy().dtype == ARRAYS[name].dtype and p.shape == ARRAYS[name].shape
        np.testing.assert_array_equal(p.asnumpy(), ARRAYS[name])


def test_bfloat16_is_saved_and_loaded(tmp_path):
    value = np.array([[1.5, -0.0078125], [3.0, 1e30]], np.float32).astype(as_dtype("bfloat16"))
    save_checkpoint({"b": Tensor(value)}, tmp_path / "b.ckpt")
    found = load_checkpoint(tmp_path / "b.ckpt")["b"]
    assert found.asnumpy().dtype == value.dtype
    np.testing.assert_array_equal(found.asnumpy().view(np.uint16), value.view(np.uint16))
    with pytest.raises(TypeError, match="bfloat16"):
        save_checkpoint({"b": Tensor(value)}, tmp_path / "b.npz")
    assert [each.name for each in tmp_path.iterdir()] == ["b.ckpt"]


def test_files_get_an_ending_and_are_known_by_their_content(tmp_path):
    save_checkpoint(Net(), str(tmp_path / "plain"))
    assert [each.name for each in tmp_path.iterdir()] == ["plain.ckpt"]
    (tmp_path / "plain.ckpt").rename(tmp_path / "other.data")  # the content says what it is
    assert list(load_checkpoint(tmp_path / "other.data")) == NAMES


def test_other_parameter_files_are_read(tmp_path):
    path = str(tmp_path / "net.params")
    save(path, {"w": Tensor([1.0, 2.0])})
    np.testing.assert_array_equal(load_checkpoint(path)["w"].asnumpy(), [1, 2])
    save(path, [Tensor([1.0])])
    with pytest.raises(FileFormatError, match="a different name for each"):
        load_checkpoint(path)


def test_choice_func_selects_saved_and_filter_prefix_skips_loaded_parameters(tmp_path):
    path = tmp_path / "x.ckpt"
    save_checkpoint(Net(), path, append_dict={"epoch": 3, "rate": 0.5, "done": True},
                    choice_func=lambda name: name != "a.bias")
    found = load_checkpoint(path)
    assert list(found) == ["scale", "a.weight", "epoch", "rate", "done"]
    assert found["epoch"].asnumpy() == 3 and found["epoch"].asnumpy().dtype == np.int64
    assert found["rate"].asnumpy().dtype == np.float32 and found["done"].asnumpy().dtype == bool
    assert list(load_checkpoint(path, filter_prefix="a")) == ["scale", "epoch", "rate", "done"]
    assert list(load_checkpoint(path, filter_prefix=["a.", "sca", "epoch"])) == ["scale", "rate", "done"]
    assert list(load_checkpoint(path, specify_prefix="a")) == ["a.weight"]
    assert list(load_checkpoint(path, specify_prefix=("scale", "a"), filter_prefix="a")) == ["scale"]
    assert list(load_checkpoint(path, choice_func=lambda name: name == "rate")) == ["rate"]


@pytest.mark.parametrize("ending", [".ckpt", ".npz", ".safetensors"])
def test_texts_are_saved_beside_parameters(tmp_path, ending):
    path, texts = tmp_path / f"x{ending}", {"run": "größer", "note.run": "", "epoch:text": "3"}
    save_checkpoint(Net(), path, append_dict={**texts, "epoch": 3})
    found = load_checkpoint(path)
    assert {name: value for name, value in found.items() if isinstance(value, str)} == texts
    assert load_param_into_net(Net(), found) == ([], [*texts, "epoch"])
    assert list(load_checkpoint(path, specify_prefix="note")) == ["note.run"]


def test_fitting_parameters_are_loaded_and_the_rest_is_named():
    net = Net()
    given = {"scale": Parameter(4.0, name="scale"), "other": Parameter(1.0, name="other")}
    for strict in (False, True):
        assert load_param_into_net(net, given, strict_load=strict) == (["a.weight", "a.bias"], ["other"])
    assert net.scale.asnumpy() == 4
    with pytest.warns(UserWarning, match="nothing was loaded: the Cell has 'scale', the dict 'other'"):
        assert load_param_into_net(net, {"other": given["other"]}) == (NAMES, ["other"])


def test_names_with_a_prefix_are_loaded(tmp_path):
    save_checkpoint(Outer(3.0), tmp_path / "outer.ckpt")
    found, net = load_checkpoint(tmp_path / "outer.ckpt"), Net()
    assert list(found) == [f"net.{name}" for name in NAMES]
    with pytest.warns(UserWarning, match="nothing was loaded"):
        assert load_param_into_net(net, found, strict_load=True) == (NAMES, list(found))
    assert load_param_into_net(net, found) == ([], [])
    assert net.scale.asnumpy() == 3.5


def stack(blocks: int, value: float) -> Cell:
    """A net whose list was filled after its assignment; MindSpore's names of its parameters lack the list's name."""
    net = Cell()
    net.blocks = CellList()
    for _ in range(blocks):
        block = Cell()
        block.layers = CellList()
        block.layers.append(Layer(value))
        net.blocks.append(block)
    net.head = Layer(value)
    return net


@pytest.mark.parametrize("prefix", ["", "network."])
@pytest.mark.parametrize("how", ["mindspore_name", "name"])
def test_names_of_mindspore_and_of_places_are_both_loaded(tmp_path, how, prefix):
    path = str(tmp_path / "net.safetensors")
    saved = stack(3, 2.0)
    for number, parameter in enumerate(saved.get_parameters()):
        parameter.set_data(float(number))
    save_checkpoint([{"name": prefix + getattr(p, how), "data": p} for p in saved.get_parameters()], path)
    found, net = load_checkpoint(path), stack(3, 0.0)
    assert (f"{prefix}0.layers.1.layers.0.weight" in found) == (how == "mindspore_name")
    assert load_param_into_net(net, found) == ([], [])
    assert [p.asnumpy().max() for p in net.get_parameters()] == list(range(8))
    load_checkpoint(path, other := stack(3, 0.0))
    assert [p.asnumpy().max() for p in other.get_parameters()] == list(range(8))


def test_names_of_mindspore_are_not_those_of_a_strict_load():
    net = stack(2, 1.0)
    found = {p.mindspore_name: Parameter(p.asnumpy() * 0) for p in net.get_parameters()}
    kept = ["head.weight", "head.bias"]
    missing, unused = load_param_into_net(net, found, strict_load=True)
    assert missing == [p.name for p in net.get_parameters() if p.name not in kept]
    assert unused == [name for name in found if name not in kept]


def test_optimizers_load_states_by_mindspores_names():
    net = stack(2, 1.0)
    optimizer, other = (optim.Momentum(net.trainable_params(), 0.1, 0.9) for _ in range(2))
    for number, moment in enumerate(optimizer.moments):
        moment.set_data(float(number))
    found = {p.mindspore_name: p for p in optimizer.get_parameters()}
    assert "moments.0.layers.1.layers.0.bias" in found
    assert load_param_into_net(other, found) == ([], [])
    assert [moment.asnumpy().max() for moment in other.moments] == list(range(6))


def test_a_name_that_mindspore_gives_to_two():
    """MindSpore's file has the values of one parameter under the name of both."""
    net = Cell()
    net.a, net.b = CellList(), CellList()
    net.a.append(Layer(1.0))
    net.b.append(Layer(2.0))
    found = {name: Parameter(np.zeros(shape, np.float32)) for name, shape in (("0.weight", (3, 2)), ("0.bias", (3,)))}
    with pytest.raises(ValueError, match=r"'0.weight' .* a\.0\.weight and b\.0\.weight"):
        load_param_into_net(net, found)
    paths = {p.name: Parameter(p.asnumpy() * 0) for p in net.get_parameters()}
    assert load_param_into_net(net, {**paths, **found}) == ([], ["0.weight", "0.bias"])
    assert not any(p.asnumpy().any() for p in net.get_parameters())


@pytest.mark.parametrize("own", ["float32", "float16", "float64", "bfloat16", "int32", "int64", "bool"])
@pytest.mark.parametrize("other", ["float32", "float16", "float64", "bfloat16", "int32", "int64", "bool"])
def test_values_of_fitting_dtypes_are_loaded(own, other):
    floating, integers = {"float32", "float16", "float64", "bfloat16"}, {"int32", "int64"}
    allowed = own == other or {own, other} <= floating or {own, other} <= integers

    class One(Cell):
        def __init__(self):
            super().__init__()
            self.p = Parameter(np.zeros(1).astype(as_dtype(own)))

    for strict, fits in ((False, allowed), (True, own == other)):
        net, value = One(), {"p": Parameter(np.ones(1).astype(as_dtype(other)), name="p")}
        if fits:
            load_param_into_net(net, value, strict)
            assert net.p.asnumpy().dtype == as_dtype(own) and net.p.asnumpy() == 1
        else:
            with pytest.raises(RuntimeError, match="p has dtype"):
                load_param_into_net(net, value, strict)


def test_nothing_changes_when_something_does_not_fit():
    net = Net()
    given = {"scale": Parameter(4.0, name="scale"), "a.weight": Parameter(np.ones((2, 3), np.float32), name="a.weight")}
    with pytest.raises(RuntimeError, match=r"a.weight has shape \(3, 2\), got \(2, 3\)"):
        load_param_into_net(net, given)
    assert net.scale.asnumpy() == 0.5
    load_param_into_net(net, {"scale": Parameter(np.ones(1, np.float32), name="scale")})  # one number is one number
    assert net.scale.asnumpy() == 1 and net.scale.shape == ()


def test_an_earlier_file_stays_when_saving_fails(tmp_path):
    path = tmp_path / "net.ckpt"
    save_checkpoint(Net(1.0), path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="complex"):
        save_checkpoint({"x": np.zeros(2, np.complex64)}, path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def refused(folder: Path) -> list:
    path, net, p = str(folder / "r.ckpt"), Net(), Parameter(1.0, name="p")
    save_checkpoint(net, path)
    return [
        (lambda: save_checkpoint(3, path), TypeError, "a Cell, a dict or a list, got int"),
        (lambda: save_checkpoint([3], path), TypeError, "element 0"),
        (lambda: save_checkpoint([{"nam": "p", "data": p}], path), TypeError, "'data', 'nam'"),
        (lambda: save_checkpoint([{"name": 3, "data": p}], path), TypeError, "names must be text"),
        (lambda: save_checkpoint([{"name": "p", "data": p}] * 2, path), ValueError, "two arrays 'p'"),
        (lambda: save_checkpoint({"p": "text"}, path), TypeError, "'p' must be a Tensor"),
        (lambda: save_checkpoint({"checkpoint:crc32": p}, path), ValueError, "checksum"),
        (lambda: save_checkpoint(net, 3), TypeError, "name of the file"),
        (lambda: save_checkpoint(net, path, enc_key=b"k"), ValueError, "not encrypted"),
        (lambda: save_checkpoint(net, path, append_dict={"scale": 1}), ValueError, "already a parameter 'scale'"),
        (lambda: save_checkpoint(net, str(folder / "no" / "r.ckpt")), OSError, "no"),
        (lambda: load_checkpoint(str(folder / "none.ckpt")), ValueError, "there is no file"),
        (lambda: load_checkpoint(path, dec_key=b"k"), ValueError, "not encrypted"),
        (lambda: load_checkpoint(path, filter_prefix=3), TypeError, "filter_prefix"),
        (lambda: load_checkpoint(path, specify_prefix=[3]), TypeError, "specify_prefix"),
        (lambda: load_checkpoint(path, specify_prefix="q"), ValueError, "no parameters"),
        (lambda: load_checkpoint(path, filter_prefix=["a", "scale"]), ValueError, "no parameters"),
        (lambda: load_checkpoint(3), TypeError, "name of the file"),
        (lambda: load_param_into_net(3, {}), TypeError, "net must be a Cell"),
        (lambda: load_param_into_net(net, [p]), TypeError, "parameter_dict must be a dict"),
        (lambda: load_param_into_net(net, {"scale": Tensor(1.0)}), TypeError, "Tensor under 'scale'"),
        (lambda: load_param_into_net(net, {3: p}), TypeError, "under 3"),
        (lambda: load_param_into_net(net, {}, strict_load=3), TypeError, "strict_load"),
    ]


@pytest.mark.parametrize("number", range(23))
def test_errors_of_wrong_calls(tmp_path, number):
    rows = refused(tmp_path)
    assert len(rows) == 23
    call, kind, text = rows[number]
    with pytest.raises(kind, match=text):
        call()


# ------------------------------------------------------------------------------------------------------- damage


def content(folder: Path, ending: str) -> bytes:
    path = folder / f"sound.{ending}"
    if ending == "params":  # as version 0.2 wrote checkpoints
        save(str(path), {name: Tensor(value) for name, value in {**ARRAYS, _CHECKSUM: _checksum(ARRAYS)}.items()})
    else:
        save_checkpoint([{"name": name, "data": Tensor(value)} for name, value in ARRAYS.items()], path)
    return path.read_bytes()


@pytest.fixture(scope="module", params=["ckpt", "npz", "params"])
def sound(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage")
    return content(folder, request.param), folder / "damaged.ckpt"


@given(st.data())
@settings(deadline=None, max_examples=150, derandomize=True)
def test_a_shorter_file_is_refused(sound, data):
    whole, path = sound
    path.write_bytes(whole[:data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(FileFormatError, match="damaged"):  # names the file
        load_checkpoint(path)


@given(st.data())
@settings(deadline=None, max_examples=300, derandomize=True)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_flipped_byte_is_found_or_changes_nothing(sound, data):
    whole, path = sound
    at = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(1, 255))
    path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1:])
    try:
        found = load_checkpoint(path)
    except FileFormatError:
        return
    assert {name: (p.asnumpy().dtype, p.shape, p.asnumpy().tobytes()) for name, p in found.items()} == {
        name: (value.dtype, value.shape, value.tobytes()) for name, value in ARRAYS.items()}


def test_load_checkpoint_finds_the_added_suffix(tmp_path):
    save_checkpoint(Net(), str(tmp_path / "net"))
    assert sorted(load_checkpoint(str(tmp_path / "net"))) == sorted(p.name for p in Net().get_parameters())


@pytest.fixture(scope="module")
def params(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twice")
    return content(folder, "params"), folder


@given(st.data())
@settings(deadline=None, max_examples=300, derandomize=True)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("ending", ["ckpt", "params"])
def test_two_flips_are_found_though_one_hides_the_checksum(params, ending, data):
    """One bit flips in the name of the checksum, and one anywhere, also in a renamed file."""
    whole, folder = params
    start = whole.index(b"checkpoint:crc32")
    damaged = bytearray(whole)
    for at in (start + data.draw(st.integers(0, 15)), data.draw(st.integers(0, len(whole) - 1))):
        damaged[at] ^= data.draw(st.integers(1, 255))
    path = folder / f"damaged.{ending}"
    path.write_bytes(damaged)
    try:
        found = load_checkpoint(path)
    except FileFormatError:
        return
    assert {name: (p.asnumpy().dtype, p.shape, p.asnumpy().tobytes()) for name, p in found.items()} == {
        name: (value.dtype, value.shape, value.tobytes()) for name, value in ARRAYS.items()}


def test_a_checkpoint_without_a_checksum_is_refused(tmp_path):
    save(str(tmp_path / "w.params"), {"w": ones(2)})
    assert sorted(load_checkpoint(tmp_path / "w.params")) == ["w"]
    (tmp_path / "w.ckpt").write_bytes((tmp_path / "w.params").read_bytes())
    with pytest.raises(FileFormatError, match=r"w\.ckpt: there is no checksum of 1 arrays"):
        load_checkpoint(tmp_path / "w.ckpt")


@pytest.mark.parametrize("name", ["", "  ", "n" * 1025])
def test_names_that_no_parameter_has_are_reported(tmp_path, name):
    with pytest.raises(ValueError, match="save_checkpoint: a name has 1 to 1024 characters"):
        save_checkpoint({name: Tensor([1.0])}, tmp_path / "x.ckpt")
    save(str(tmp_path / "x.params"), {"a": ones(1), name: ones(2)})
    with pytest.raises(FileFormatError, match=r"x\.params: expected names of 1 to 1024 characters, found one of \d+ "):
        load_checkpoint(tmp_path / "x.params")

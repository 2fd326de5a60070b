"""Errors of operators: errors of opreg and of users' code, as early as possible."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import opreg as mx
from opreg.core.attrs import REQUIRED, Schema, to_text
from opreg.core.op import Op
from opreg.core.registry import get, operators
from opreg.errors import AttrError, OpError, Where, as_op_error, warn
from opreg.symbol.symbol import create
from tests.questions import of_each

ONES = np.ones((2, 2), "float32")
HUGE = 2 ** 31


def eager(name, arrays, attrs):
    return get(name)(*map(mx.nd.array, arrays), **attrs) if arrays else getattr(mx.nd, name)(**attrs)


def graph(name, arrays, attrs):
    values = [mx.sym.Variable(f"v{i}") for i in range(len(arrays))]
    symbol = create(get(name), tuple(values), {**attrs, "name": "mine"}, "op")
    return symbol.bind(mx.cpu(), {f"v{i}": mx.nd.array(each) for i, each in enumerate(arrays)}).forward()


@pytest.mark.parametrize("run", [eager, graph])
@pytest.mark.parametrize("name, arrays, attrs, kind, words", [
    ("take", [ONES, [5]], {"mode": "raise"}, IndexError, "index 5 is out of bounds"),
    ("_linalg_inverse", [ONES], {}, np.linalg.LinAlgError, "Singular matrix"),
    ("_linalg_potrf", [-ONES], {}, np.linalg.LinAlgError, "not positive definite"),
    ("_linalg_trsm", [0 * ONES, ONES], {}, np.linalg.LinAlgError, "Singular matrix"),
    ("tile", [ONES], {"reps": (HUGE, 2 ** 20)}, MemoryError, r"\(4294967296, 2097152\) float32.* 36,028,797,018,963"),
    ("tile", [ONES], {"reps": (HUGE, HUGE)}, ValueError, r"\(4294967296, 4294967296\) float32, 73,786,976,294,838"),
    ("_full", [], {"shape": (HUGE, HUGE), "value": 1}, ValueError, r"\(2147483648, 2147483648\) float32, 18,446,744"),
    ("_random_uniform", [], {"shape": (HUGE, HUGE)}, ValueError, r"\(2147483648, 2147483648\) float32, 18,446,744"),
    ("one_hot", [[1]], {"depth": 2 ** 62}, (MemoryError, ValueError), r"\(1, 4611686018427387904\) float32, 18,446"),
])
def test_errors_of_numpy_name_the_operator(run, name, arrays, attrs, kind, words):
    with pytest.raises(kind, match=rf"(?s)(?=.*operator {name}\b).*{words}") as caught:
        run(name, arrays, attrs)
    assert isinstance(caught.value, mx.MXNetError)
    if run is graph:
        assert "node 'mine'" in str(caught.value)
    assert type(pickle.loads(pickle.dumps(caught.value))) is type(caught.value)


@pytest.mark.parametrize("run, words", [(eager, "operator tile applied to data"), (graph, "node 'mine_")])
@pytest.mark.parametrize("arrays, reps", [([ONES[:0]], (HUGE, HUGE)), ([ONES], (1,) * 40)])
def test_errors_of_numpy_in_a_body_name_the_operator(run, words, arrays, reps):
    with pytest.raises(ValueError, match=words) as caught:
        run("tile", arrays, {"reps": reps})
    assert isinstance(caught.value, OpError)


@pytest.mark.parametrize("reps, kind, words", [
    ((2 ** 20, 2 ** 20), MemoryError, r"\(2097152, 2097152\) float32"),
    ((HUGE, HUGE), ValueError, "too large"),
    ((2 ** 70,), ValueError, r"\(1, 2, 1180591620717411303424, 2\) float32"),
    ((1,) * 40, ValueError, "maximum supported dimension"),
])
def test_errors_of_too_large_intermediate_results_name_the_node(reps, kind, words):
    huge = mx.sym.tile(mx.sym.Variable("x"), reps=reps, name="huge")
    with pytest.raises(kind, match=f"node 'huge.*{words}") as caught:
        mx.sym.sum(huge).bind(mx.cpu(), {"x": mx.nd.ones((2, 2))}).forward()
    assert isinstance(caught.value, OpError)


@pytest.mark.parametrize("make", [mx.nd.zeros, mx.nd.ones, mx.nd.empty])
def test_arrays_that_are_too_large_raise_an_error(make):
    with pytest.raises(ValueError, match="2147483648") as caught:
        make((HUGE, HUGE))
    assert isinstance(caught.value, OpError)


@pytest.mark.parametrize("load", [mx.nd.load, mx.sym.load])
def test_missing_files_raise_an_error(load, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load(str(tmp_path / "none"))
    assert isinstance(caught.value, mx.MXNetError)
    assert caught.value.filename == str(tmp_path / "none")
    with pytest.raises(FileNotFoundError) as caught:
        mx.nd.save(str(tmp_path / "none" / "file"), [mx.nd.ones((1,))])
    assert isinstance(caught.value, mx.MXNetError)


@pytest.mark.parametrize("error, kind", [
    (IndexError("a"), IndexError), (KeyError("a"), KeyError), (ZeroDivisionError("a"), ZeroDivisionError),
    (np.linalg.LinAlgError("a"), np.linalg.LinAlgError), (MemoryError(), MemoryError),
    (np.exceptions.AxisError(3, 2), (ValueError, IndexError)),
    (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), ValueError),
    (ExceptionGroup("a", [ValueError("b")]), Exception), (FileNotFoundError(2, "no", "name"), FileNotFoundError)])
def test_converted_errors_keep_their_type(error, kind):
    error.add_note("a note")
    found = as_op_error(error, "operator mine")
    assert isinstance(found, OpError)
    assert isinstance(found, kind)
    assert found.__notes__ == ["a note"]
    assert type(found).__name__.startswith("Op")
    assert type(pickle.loads(pickle.dumps(found))) is type(found)
    assert as_op_error(found, "again") is found


def test_errors_of_users_keep_their_type():
    class Mine(Exception):
        pass

    def fail(xp, x):
        raise Mine("as it is")

    op = Op("mine", Schema([]), ("data",))
    op.kernel()(fail)
    with pytest.raises(Mine, match="as it is"):
        op(mx.nd.ones((1,)))
    with pytest.raises(Mine, match="as it is"):
        op(mx.sym.Variable("x")).bind(mx.cpu(), {"x": mx.nd.ones((1,))}).forward()


@of_each([
    ("_arange", 0, {"start": 0, "stop": float("nan")}, "stop: expected float that is finite or None, got nan"),
    ("_arange", 0, {"start": float("inf")}, "start: expected float that is finite, got inf"),
    ("_arange", 0, {"start": 0, "stop": 5, "step": float("-inf")}, "step: expected float that is finite"),
    ("_linspace", 0, {"start": 0, "stop": float("nan"), "num": 3}, "stop: expected float that is finite"),
    ("_linspace", 0, {"start": 0, "stop": 1, "num": -3}, "num: expected int of at least 0"),
    ("_eye", 0, {"N": -1}, "N: expected int of at least 0"),
    ("broadcast_axis", 1, {"axis": 0, "size": -1}, "size: expected int of at least 0 or tuple of int of at least 0"),
    ("broadcast_axis", 1, {"axis": (0,), "size": (-1,)}, r"size: .*got \(-1,\)"),
    ("_sample_multinomial", 1, {"shape": -1}, "shape: expected int of at least 0"),
    ("_random_normal", 0, {"shape": (2, -2)}, "shape: expected int of at least 0, or -1 where a graph finds it"),
    ("_ones", 0, {"shape": (2, -2)}, "shape: expected int of at least 0, or -1 where a graph finds it"),
    ("SliceChannel", 1, {"num_outputs": 0}, "num_outputs: expected int from 1 to 65,536, got 0"),
    ("SliceChannel", 1, {"num_outputs": -1}, "num_outputs: expected int from 1 to 65,536, got -1"),
    ("SliceChannel", 1, {"num_outputs": HUGE}, "num_outputs: expected int from 1 to 65,536"),
    ("_split_v2", 1, {"indices": (), "sections": -1}, "sections: expected int from 0 to 65,536, got -1"),
    ("_split_v2", 1, {"indices": (), "sections": HUGE}, "sections: expected int from 0 to 65,536"),
    ("Concat", 2, {"num_args": HUGE - 1}, "num_args: expected int from 1 to 65,536"),
    ("stack", 2, {"num_args": HUGE - 1}, "num_args: expected int from 1 to 65,536"),
    ("UpSampling", 2, {"num_args": HUGE, "scale": 2, "sample_type": "nearest"}, "num_args: expected int from 1 to"),
    ("add_n", 2, {"num_args": "100000"}, "num_args: expected int from 1 to 65,536, got '100000'"),
    ("repeat", 1, {"repeats": -1}, "repeats: expected int of at least 0, got -1"),
    ("tile", 1, {"reps": (2, -1)}, "reps: expected int of at least 0"),
    ("one_hot", 1, {"depth": -1}, "depth: expected int of at least 0"),
    ("RNN", 3, {"state_size": 0, "num_layers": 1, "mode": "gru"}, "state_size: expected int of at least 1, got 0"),
    ("RNN", 3, {"state_size": 2, "num_layers": HUGE, "mode": "gru"}, "num_layers: expected int from 1 to 65,536"),
    ("FullyConnected", 3, {"num_hidden": 0}, "num_hidden: expected int of at least 1"),
    ("Convolution", 3, {"kernel": (1, 1), "num_filter": 0}, "num_filter: expected int of at least 1"),
])
def test_values_out_of_range_are_refused_when_a_symbol_is_made(name, count, attrs, words):
    symbols = tuple(mx.sym.Variable(f"v{i}") for i in range(count))
    with pytest.raises(AttrError, match=f"attribute {words}"):
        create(get(name), symbols, dict(attrs), "op")
    with pytest.raises(AttrError, match=f"attribute {words}"):
        getattr(mx.nd, name)(*[mx.nd.ones((2, 2))] * count, **attrs)


@pytest.mark.parametrize("op", [op for op in operators() if op.signature.variadic], ids=str)
def test_huge_numbers_of_inputs_are_refused(op):
    attrs = {"UpSampling": {"scale": 2, "sample_type": "nearest"}, "_numpy_noise": {"distribution": "normal"}}.get(
        op.name, {})
    words = f"attribute {op.signature.variadic}: expected int from [01] to 65,536, got 65537"
    for ask in (lambda **attrs: op(mx.nd.ones((2, 2)), **attrs), lambda **attrs: op(mx.sym.Variable("x"), **attrs),
                op.list_arguments, op.list_outputs):
        with pytest.raises(AttrError, match=words):
            ask(**{op.signature.variadic: 65537}, **attrs)


def test_defaults_may_be_given():
    """A default is accepted as a value, and as the text that files hold."""
    fields = [field for op in operators() if "custom." not in op.name
              for field in op.signature.schema.fields if field.default is not REQUIRED]
    assert len(fields) > 1000
    for field in fields:
        for value in (field.default, to_text(field.default)):
            assert Schema([field]).complete({field.name: value})[field.name] == field.default


@pytest.mark.parametrize("attrs, words", [
    ({"adj": (-1, 0)}, r"adj=\(-1, 0\)"), ({"adj": (0,) * 7}, "expected 2 numbers"),
    ({"pad": (1,)}, "pad"), ({"stride": (0, 1)}, "stride")])
def test_invalid_attributes_are_refused_even_with_a_target_shape(attrs, words):
    with pytest.raises(AttrError, match=words):
        mx.nd.Deconvolution(mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 2, 2)), kernel=(2, 2), num_filter=1,
                            target_shape=(3, 3), **attrs)


def test_a_target_shape_takes_the_place_of_pad_and_adj():
    data, weight = mx.nd.ones((1, 1, 4, 4)), mx.nd.ones((1, 1, 3, 3))
    words = {"kernel": (3, 3), "stride": (2, 2), "num_filter": 1}
    expected = mx.nd.Deconvolution(data, weight, target_shape=(8, 8), **words).asnumpy()
    found = mx.nd.Deconvolution(data, weight, target_shape=(8, 8), pad=(99, 99), adj=(101, 101), **words)
    assert (found.asnumpy() == expected).all()
    with pytest.raises(AttrError, match="smaller than"):
        mx.nd.Deconvolution(data, weight, adj=(2, 2), **words)


def test_long_rows_of_names_are_not_listed():
    with pytest.raises(OpError) as caught:
        mx.nd.concat(*[mx.nd.ones((1, 1))] * 2, num_args=60000)
    assert str(caught.value) == ("operator Concat: expected 60000 inputs "
                                 "(arg0, arg1, arg2, arg3, arg4, arg5, arg6, ..., arg59999), got 2")


@pytest.mark.parametrize("shape, expected", [(0, (2, 0)), ((0,), (2, 0)), ((2, 0), (2, 2, 0)), ((), (2,)), (3, (2, 3))])
def test_zero_samples_may_be_drawn(shape, expected):
    chances = mx.nd.array([[.5, .5], [.1, .9]])
    for prob in (False, True):
        found = mx.nd.sample_multinomial(chances, shape=shape, get_prob=prob)
        assert all(each.shape == expected for each in (found if prob else [found]))


def test_a_warning_is_given_for_the_same_line_of_each_file() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for name in ("first.py", "second.py", "first.py"):
            warn("_example of a warning", where=Where((name, 3)))
    assert [each.filename for each in said] == ["first.py", "second.py"]

"""Shape inference: from outputs to inputs, from one input to another, from given shapes."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg import sym
from opreg.core.registry import declare, get
from opreg.core.rules import TypeRule
from opreg.core.spec import ANY, as_dtype, is_known
from opreg.errors import AttrError, DTypeError, ShapeError
from opreg.symbol.symbol import create
from tests.questions import of_each
from tests.rows import all_rows

# -------------------------------------------------------------------------------- declared shapes and dtypes


@pytest.mark.parametrize("given, expected", [
    ({}, (2, 3)), ({"a": ()}, (2, 3)), ({"a": (5, 6)}, (5, 6)), ({"a": (5, 6, 7)}, (5, 6, 7)), ({"a": (0, 3)}, (2, 3)),
])
def test_a_shape_that_is_given_wins_over_the_one_of_the_variable(given, expected):
    net = sym.Variable("a", shape=(2, 3)) + sym.Variable("b")
    assert net.infer_shape(**given) == ([expected] * 2, [expected], [])
    assert net.infer_shape_partial(**given)[1] == [expected]
    executor = net.simple_bind(mx.cpu(), **given)
    assert [each.shape for each in (*executor.arg_arrays, *executor.forward())] == [expected] * 3


def test_arrays_that_are_bound_win_over_the_shape_of_the_variable():
    net = sym.Variable("a", shape=(2, 3)) * 2
    assert net.bind(mx.cpu(), {"a": mx.nd.ones((5, 6))}).forward()[0].shape == (5, 6)
    module = mx.mod.Module(net, ("a",), None)
    module.bind([("a", (5, 6))])
    assert module.output_shapes[0][1] == (5, 6)


def test_a_shape_that_is_given_in_part_has_to_fit_the_one_of_the_variable():
    with pytest.raises(ShapeError, match=r"\(\?, 6\) and \(2, 3\) differ"):
        sym.Variable("a", shape=(2, 3)).infer_shape(a=(0, 6))


@pytest.mark.parametrize("name, attrs", [
    ("_zeros", {}), ("_ones", {}), ("_full", {"value": 2}), ("_zeros_without_dtype", {}), ("_random_uniform", {}),
    ("_random_normal", {}), ("_random_gamma", {}), ("_random_randint", {"low": 0, "high": 2})])
def test_arrays_made_in_a_graph_find_their_dimensions(name, attrs):
    for shape in ((2, -1), (2, 0), (-1, 5), ()):
        made = create(get(name), (), {**attrs, "shape": shape}, name)
        assert (made + sym.Variable("b")).infer_shape(b=(2, 5))[1] == [(2, 5)]
    with pytest.raises(AttrError, match="-1 is inferred only in graphs"):
        getattr(mx.nd, name)(**attrs, shape=(2, -1))


def test_under_np_shape_an_array_is_made_as_it_is_stated():
    with mx.util.np_shape(True):
        for shape in ((2, 0), (), (2, -1)):
            for made in (sym.zeros(shape=shape), sym.random.uniform(shape=shape)):
                assert made.infer_shape_partial()[1] == [shape]


# ------------------------------------------------------------------------------------- from outputs to inputs


def parts(which, **attrs):
    return lambda x: sym.SliceChannel(x, **attrs)[which]


def convolved(**attrs):
    return lambda x: sym.Convolution(x, num_filter=4, **attrs)


@of_each([
    (parts(1, num_outputs=10, axis=1, squeeze_axis=True), (0, 10), (5,), (5, 10)),
    (parts(1, num_outputs=3), (0, 15, 0), (3, 5, 2), (3, 15, 2)),
    (parts(0, num_outputs=2, axis=-1), None, (3, 5, 2), (3, 5, 4)),
    (lambda x: sym.split_v2(x, 2, axis=0, squeeze_axis=True)[0], (0, 3), (3,), (2, 3)),
    (convolved(kernel=(3, 3), pad=(1, 1)), (0, 3, 0, 0), (2, 4, 5, 6), (2, 3, 5, 6)),
    (convolved(kernel=(3, 3), stride=(1, 2)), (0, 3, 0, 0), (2, 4, 5, 6), (2, 3, 7, 0)),
    (convolved(kernel=(3, 3), layout="NHWC"), (0, 0, 0, 3), (2, 5, 6, 4), (2, 7, 8, 3)),
    (convolved(kernel=(3,), dilate=(2,)), (0, 3, 0), (2, 4, 5), (2, 3, 9)),
    (lambda x: sym.Reshape(x, shape=(24,)), (0, 3, 4), (24,), (2, 3, 4)),
    (lambda x: sym.Reshape(x, shape=(-4, 2, -1, -2)), (0, 3), (2, 5, 3), (10, 3)),
    (lambda x: sym.expand_dims(x, axis=1), (0, 12), (2, 1, 12), (2, 12)),
    (lambda x: sym.expand_dims(x, axis=-1), None, (2, 12, 1), (2, 12)),
    (lambda x: sym.transpose(x, axes=(1, 0)), (0, 3), (3, 2), (2, 3)),
    (lambda x: sym.SwapAxis(x, dim1=0, dim2=1), (0, 3), (3, 2), (2, 3)),
    (lambda x: sym.linalg.trsm(sym.Variable("a"), x, rightside=True), (0, 3), (2, 3), (2, 3)),
    (lambda x: sym.sample_normal(x, sym.Variable("b"), shape=4), None, (2, 3, 4), (2, 3)),
    (lambda x: sym.unravel_index(x, shape=(7, 6)), None, (2, 5), (5,)),
    (lambda x: sym.ravel_multi_index(x, shape=(7, 6)), None, (5,), (2, 5)),
    *[(lambda x, name=name, attrs=attrs: getattr(sym, name)(x, **attrs), declared, (2, 2), (2, 2))
      for name, attrs in [("flip", {"axis": 0}), ("cumsum", {"axis": 0}), ("softmax", {}), ("log_softmax", {}),
                          ("softmin", {}), ("SoftmaxActivation", {}), ("linalg_potrf", {}), ("linalg_potri", {}),
                          ("amp_multicast", {"num_outputs": 1}), ("cast_storage", {"stype": "default"})]
      for declared in (None, (0, 2))],
])
def test_shapes_are_inferred_from_the_output_to_the_input(make, declared, out, expected):
    x = sym.Variable("x", shape=declared) if declared else sym.Variable("x")
    net = make(x) + sym.Variable("out", shape=out)
    found = dict(zip(net.list_arguments(), net.infer_shape_partial()[0]))
    assert found["x"] == expected


@pytest.mark.parametrize("make, given, expected", [
    (lambda x, y: sym.linalg.gemm(x, x, y), {"x": (3, 3)}, (3, 3)),
    (lambda x, y: sym.linalg.trmm(y, x), {"x": (2, 3, 4)}, (2, 3, 3)),
    (lambda x, y: sym.pick(x, y), {"x": (2, 3), "y": (0,)}, (2,)),
    (lambda x, y: sym.pick(x, y), {"x": (2, 3), "y": (0, 0)}, (2, 1)),
    (lambda x, y: sym.SoftmaxOutput(x, y), {"x": (2, 3), "y": (0,)}, (2,)),
    (lambda x, y: sym.SoftmaxOutput(x, y), {"x": (2, 3), "y": (0, 0)}, (2, 3)),
    (lambda x, y: sym.SequenceMask(x, y, use_sequence_length=True), {"x": (4, 2, 3), "y": (0,)}, (2,)),
    (lambda x, y: sym.random_pdf_exponential(x, y), {"x": (2, 3), "y": (0, )}, (2,)),
    (lambda x, y: get("_slice_assign")(x, y, begin=(1,), end=(3,)), {"x": (4, 2)}, (2, 2)),
])
def test_the_shape_of_an_input_is_inferred_from_another_input(make, given, expected):
    net = make(sym.Variable("x"), sym.Variable("y"))
    assert dict(zip(net.list_arguments(), net.infer_shape(**given)[0]))["y"] == expected


def test_inferred_shapes_are_the_true_ones():
    """Hidden dimensions of one input are inferred from the rest, with and without outputs, for every operator."""
    wrong = []
    for row in all_rows():
        op = get(row.op)
        attrs = op.complete(row.attrs)
        unknown = [None] * len(op.signature.outputs(attrs))
        ins, outs = op.infer_shapes([np.shape(each) for each in row.inputs], unknown, attrs)
        if not all(map(is_known, outs)):
            continue
        for i, shape in enumerate(ins):
            for hidden in ((ANY,) * len(shape), *[(*shape[:k], ANY, *shape[k + 1:]) for k in range(len(shape))]):
                for given in (outs, [None] * len(outs)):
                    found = op.infer_shapes([*ins[:i], hidden, *ins[i + 1:]], list(given), attrs)
                    for new, true in zip((*found[0], *found[1]), (*ins, *outs)):
                        if new is not None and (len(new) != len(true) or new != true):
                            wrong.append((str(row), i, hidden, new, true))
    assert not wrong


# ------------------------------------------------------------------------------------------ dtypes in writing


_KNOWN = {"h": "float16", "f": "float32", "i": "int32", "b": "int8", "q": "bool"}


def _dtypes(letters: str) -> list[np.dtype | None]:
    return [np.dtype(_KNOWN[letter]) if letter in _KNOWN else None for letter in letters]


@pytest.mark.parametrize(("text", "ins", "outs", "expected"), [
    ("T:floating,L=T->T", "f.", ".", "ff f"), ("T:floating,L=T->T", "fi", ".", "fi f"),
    ("T:floating,L=T->T", "..", "h", "hh h"), ("T:floating,L=T->T", ".i", ".", ".i ."),
    ("*T:floating,I=int32,T->*T", "...f", "..", "ffif ff"), ("L=R,R=L->bool", "f.", ".", "ff q"),
    ("L=R,R=L->bool", ".i", ".", "ii q"), ("L=R,R=L->bool", "..", ".", ".. q"), ("*?->", "f.", "", "f. "),
    ("T:byte,*float32->int8", "b..", ".", "bff b"), ("I,T=@dtype->T", "i.", ".", "ih h"),
    ("I,T=@dtype->T", "if", ".", "if f"), ("T->@dtype=T", "f", ".", "f h"), ("T->@none=T", "f", ".", "f f"),
    ("T->@none=T", ".", "f", "f f"), ("T,L=T->@none=T", "..", "h", "hh h"), ("T->@dtype=T", ".", "h", ". h"),
])
def test_dtypes_follow_from_a_signature(text, ins, outs, expected):
    """A default dtype counts if nothing determines the dtype otherwise."""
    found = TypeRule(text)(_dtypes(ins), _dtypes(outs), {"dtype": "float16", "none": None})
    assert found == tuple(map(_dtypes, expected.split(" ")))


def test_an_error_names_the_input_of_another_kind():
    net = mx.sym.softmax(mx.sym.var("x"), mx.sym.var("rows"), use_length=True)
    with pytest.raises(DTypeError, match="length: expected integers, got float32"):
        net.infer_type(rows="float32")


@pytest.mark.parametrize(("text", "given", "words"), [
    ("*T:floating->*T", "i", "expected a floating dtype, got int32"),
    ("*T:whole->T", "f", "expected integers or bool, got float32"),
    ("T:byte->float32", "i", "expected quantised data, int8 or uint8, got int32"),
    ("T:byte->float32", "q", "expected quantised data, int8 or uint8, got bool"),
])
def test_a_dtype_of_another_kind_is_refused(text, given, words):
    with pytest.raises(DTypeError, match=words):
        TypeRule(text)(_dtypes(given), [None], {})


def test_equal_layers_are_inferred_once() -> None:
    """A rule is called for the given shape and once for an equal inferred one, however many operators stand between."""
    calls = []

    @declare(name="_example_halved")
    def halved(data):
        """Half of the rows."""

    @halved.infer
    def halved_infer(data):
        calls.append(data)
        return (data[0] // 2, *data[1:])

    net = sym.Variable("x")
    for _ in range(20):
        net = sym.concat(halved(net), halved(net), dim=0)
    assert net.infer_shape(x=(8, 3))[1] == [(8, 3)]
    assert calls == [(8, 3)] * 2


def test_the_dtype_of_a_programs_object_is_read_at_each_use() -> None:
    class Described:
        dtype: np.dtype = np.dtype(np.float32)

    described = Described()
    assert [as_dtype(described), as_dtype(Described)] == [np.float32] * 2
    described.dtype, Described.dtype = np.dtype(np.int32), np.dtype(np.float64)
    assert [as_dtype(described), as_dtype(Described)] == [np.int32, np.float64]

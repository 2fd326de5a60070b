"""Operators that shape, cut and look up, beyond their rows: partial shapes, views, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg
from opreg import nd, sym
from opreg.builtin.shapes.shape import as_view, reshape_codes
from opreg.core.registry import get
from opreg.core.spec import ANY
from opreg.errors import AttrError, NotDifferentiableError, ShapeError
from tests.questions import of_each

_ = ANY


# ------------------------------------------------------------------------------------------ partial shapes


def shown(shapes):
    """Shapes as text, in which an unknown dimension differs from a known one."""
    return [str(shape) for shape in shapes]


@of_each([
    ("Reshape", {"shape": (0, -1)}, [(_, 3, 4)], [(_, 12)]),
    ("Reshape", {"shape": (-1, 12)}, [(_, 3, 4)], [(_, 12)]),
    ("Reshape", {"shape": (-3, -4, 2, -1)}, [(_, 3, 4)], [(_, 2, 2)]),
    ("Reshape", {"shape": (-4, -1, 2, -2)}, [(_, 3)], [(_, 2, 3)]),
    ("Flatten", {}, [(_, 3, 4)], [(_, 12)]),
    ("squeeze", {"axis": (0,)}, [(_, 3)], [(3,)]),
    ("squeeze", {}, [(_, 1)], [None]),
    ("transpose", {}, [(_, 3)], [(3, _)]),
    ("slice", {"begin": (0, 1), "end": (2, 3)}, [(_, 3, _)], [(_, 2, _)]),
    ("slice_axis", {"axis": 0, "begin": 1, "end": 3}, [(_, 3)], [(_, 3)]),
    ("slice_axis", {"axis": 0, "begin": -3, "end": None}, [(_, 3)], [(_, 3)]),
    ("slice_axis", {"axis": 1, "begin": -2, "end": None}, [(_, 3)], [(_, 2)]),
    ("slice_axis", {"axis": 0, "begin": 1, "end": -1}, [(_, 3)], [(_, 3)]),
    ("SliceChannel", {"num_outputs": 2, "axis": 0}, [(_, 3)], [(_, 3), (_, 3)]),
    ("SliceChannel", {"num_outputs": 2, "axis": 0, "squeeze_axis": True}, [(_, 3)], [(3,), (3,)]),
    ("_split_v2", {"indices": (0, 2), "axis": 0}, [(_, 3)], [(_, 3), (_, 3)]),
    ("Concat", {"num_args": 2, "dim": 1}, [(2, _), (_, 3)], [(2, _)]),
    ("tile", {"reps": (2, 2)}, [(_, 3)], [(_, 6)]),
    ("broadcast_to", {"shape": (0, 4)}, [(_, 1)], [(_, 4)]),
    ("_arange", {"start": 0, "infer_range": True}, [], [(_,)]),
    ("_zeros", {"shape": (0, 3)}, [], [(_, 3)]),
    ("_contrib_boolean_mask", {}, [(4, 3), (4,)], [(_, 3)]),
    ("_npx_nonzero", {}, [(4, 3)], [(_, 2)]),
    ("_npi_unique", {"return_inverse": True}, [(4, 3)], [(_,), (12,)]),
    ("_npi_unique", {"axis": 1}, [(4, 3)], [(4, _)]),
    ("diag", {}, [(_, 3)], [(_,)]),
    ("im2col", {"kernel": (2, 2)}, [(_, 3, 4, 4)], [(_, 12, 9)]),
])
def test_outputs_follow_as_far_as_they_can(op, attrs, ins, outs):
    op = get(op)
    attrs = op.complete(attrs)
    found = op.infer_shapes(list(ins), [None] * len(op.signature.outputs(attrs)), attrs)[1]
    assert shown(found) == shown(outs)


@of_each([
    ("Reshape", {"shape": (0, -1)}, [(_, 3, 4)], [(2, 12)], [(2, 3, 4)]),
    ("Flatten", {}, [(_, 3, 4)], [(2, 12)], [(2, 3, 4)]),
    ("expand_dims", {"axis": 1}, [None], [(2, 1, 3)], [(2, 3)]),
    ("transpose", {"axes": (1, 2, 0)}, [None], [(2, 3, 4)], [(4, 2, 3)]),
    ("transpose", {}, [(_, 3)], [(3, 4)], [(4, 3)]),
    ("SwapAxis", {"dim1": 0, "dim2": 1}, [None], [(2, 3)], [(3, 2)]),
    ("_copy", {}, [None], [(2, 3)], [(2, 3)]),
    ("Concat", {"num_args": 2, "dim": 1}, [(2, 3), None], [None], [(2, 3), (2, _)]),
    ("Concat", {"num_args": 2, "dim": 0}, [(2,), (_,)], [(5,)], [(2,), (3,)]),
    ("stack", {"num_args": 2}, [(2, _), (_, 3)], [None], [(2, 3), (2, 3)]),
    ("stack", {"num_args": 2, "axis": -1}, [None, None], [(4, 3, 2)], [(4, 3), (4, 3)]),
    ("where", {}, [(2,), None, (2, _)], [(_, 3)], [(2,), (2, 3), (2, 3)]),
    ("Embedding", {"input_dim": 7, "output_dim": 5}, [(2, 3), None], [None], [(2, 3), (7, 5)]),
    ("pick", {"axis": 1}, [(2, 3, 4), None], [None], [(2, 3, 4), (2, 4)]),
    ("SequenceMask", {"use_sequence_length": True}, [(4, 3, 2), None], [None], [(4, 3, 2), (3,)]),
    ("UpSampling", {"scale": 2, "sample_type": "bilinear", "num_args": 2}, [(1, 3, 4, 4), None], [None],
     [(1, 3, 4, 4), (3, 1, 4, 4)]),
])
def test_inputs_follow_from_the_rest(op, attrs, ins, outs, expected):
    op = get(op)
    found = op.infer_shapes(list(ins), list(outs), op.complete(attrs))[0]
    assert shown(found) == shown(expected)


def test_states_of_unknown_batch_take_their_shape_from_the_graph():
    data = sym.var("data")
    states = [sym.op._zeros(shape=(0, 3)), sym.op._full(shape=(0, 3), value=2.0),
              sym.op._zeros_without_dtype(shape=(0, 0))]
    total = data + states[0] + states[1] + states[2]
    bound = total.simple_bind(opreg.cpu(), data=(2, 3))
    np.testing.assert_array_equal(bound.forward()[0].asnumpy(), np.full((2, 3), 2.0))


def test_a_range_of_unknown_length_takes_it_from_the_graph():
    data = sym.var("data")
    bound = (sym.op._arange(start=2, step=3, infer_range=True) + data).simple_bind(opreg.cpu(), data=(4,))
    np.testing.assert_array_equal(bound.forward()[0].asnumpy(), [2, 5, 8, 11])
    with pytest.raises(ShapeError, match="cannot be inferred"):
        nd.op._arange(start=2, infer_range=True)


# --------------------------------------------------------------------------------------------------- views


@st.composite
def _reshapes(draw):
    """An array with a random layout, and another shape with as many elements."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    array = np.arange(np.prod(shape)).reshape(shape).transpose(draw(st.permutations(range(len(shape)))))
    array = array[tuple(slice(None, None, draw(st.sampled_from([1, 1, 2, -1]))) for _ in shape)]
    target, rest = [], array.size
    while rest > 1:
        target.append(draw(st.sampled_from([n for n in range(1, rest + 1) if rest % n == 0])))
        rest //= target[-1]
    return array, tuple(target)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(_reshapes())
def test_a_reshape_is_a_view_exactly_where_the_layout_allows(case):
    array, target = case
    copied = array.reshape(target)
    view = as_view(array, target)
    assert (view is None) == (not np.shares_memory(copied, array))
    if view is not None:
        np.testing.assert_array_equal(view, copied)
        assert np.shares_memory(view, array)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_reshape_codes_keep_the_number_of_elements(shape, data):
    """Random codes keep, merge, split or infer dimensions of a shape; the result has as many elements."""
    codes, expected, rest = [], [], list(shape)
    while rest:
        dim = rest.pop(0)
        kind = data.draw(st.sampled_from(["keep", "number", "split", "merge", "all"]))
        if kind == "keep":
            codes, expected = [*codes, 0], [*expected, dim]
        elif kind == "number":
            codes, expected = [*codes, dim], [*expected, dim]
        elif kind == "split":
            left = data.draw(st.sampled_from([n for n in range(1, dim + 1) if dim % n == 0]))
            codes, expected = [*codes, -4, left, -1], [*expected, left, dim // left]
        elif kind == "merge" and rest:
            codes, expected = [*codes, -3], [*expected, dim * rest.pop(0)]
        else:
            codes, expected, rest = [*codes, -2], [*expected, dim, *rest], []
    assert reshape_codes(codes, tuple(shape)) == tuple(expected)


# ------------------------------------------------------------------------------------------------ refusals


@of_each([
    ("Reshape", {"shape": (5, -1)}, [(2, 3)], ShapeError, r"does not fit \(2, 3\), which has 6 elements"),
    ("Reshape", {"shape": (7,)}, [(2, 3)], ShapeError, "does not fit"),
    ("Reshape", {"shape": (-1, -1)}, [(2, 3)], AttrError, "only one dimension"),
    ("Reshape", {"shape": (-5,)}, [(2, 3)], AttrError, "codes 0 to -4, got -5"),
    ("Reshape", {"shape": (0, 0, 0)}, [(2, 3)], ShapeError, "needs more dimensions"),
    ("Reshape", {"shape": (-4, 4, -1, 0)}, [(2, 3)], ShapeError, "is not the dimension 2"),
    ("Reshape", {"shape": (0, -4, 3)}, [(2, 3)], AttrError, "followed by two numbers"),
    ("Reshape", {}, [(2, 3)], AttrError, "shape .* is required"),
    ("reshape_like", {}, [(2, 3), (5,)], ShapeError, "numbers of elements differ"),
    ("reshape_like", {"lhs_begin": 3}, [(2, 3), (6,)], AttrError, "lhs_begin=3"),
    ("squeeze", {"axis": 0}, [(2, 3)], ShapeError, "length 2, expected 1"),
    ("transpose", {"axes": (0, 0)}, [(2, 3)], AttrError, "a permutation of the 2 axes"),
    ("slice", {"begin": (0,), "end": (1, 2)}, [(2, 3)], AttrError, "equally many"),
    ("slice", {"begin": (0,), "end": (1,), "step": (0,)}, [(2, 3)], AttrError, "cannot be zero"),
    ("slice", {"begin": (0, 0), "end": (1, 1)}, [(3,)], AttrError, "names 2 axes, the array has 1"),
    ("slice_axis", {"axis": 1, "begin": 2, "end": 2}, [(2, 3)], AttrError, "not a part of an axis of length 3"),
    ("slice_like", {}, [(2, 3), (2,)], ShapeError, "differ in rank"),
    ("slice_like", {"axes": (0,)}, [(2, 3), (4, 3)], ShapeError, "cannot cut 4"),
    ("Crop", {"num_args": 1, "h_w": (5, 1)}, [(1, 1, 4, 4)], ShapeError, "cannot crop 5"),
    ("_slice_assign", {"begin": (0,), "end": (1,)}, [(2, 3), (3,)], ShapeError, r"expected shape \(1, 3\)"),
    ("Concat", {"num_args": 2, "dim": 0}, [(2, 3), (2, 4)], ShapeError, "differ along axis 0 alone"),
    ("SliceChannel", {"num_outputs": 2}, [(2, 3)], ShapeError, "2 equal parts"),
    ("SliceChannel", {"num_outputs": 2, "squeeze_axis": True}, [(2, 4)], ShapeError, "lengths 2, 2"),
    ("_split_v2", {"indices": (1, 2)}, [(2, 3)], AttrError, "of at least 0 in ascending order"),
    ("_split_v2", {"indices": (0, 4)}, [(2, 3)], AttrError, "none beyond 3"),
    ("broadcast_to", {"shape": (3, 1)}, [(1, 2)], ShapeError, "2 against 1 in dimension 1"),
    ("broadcast_axis", {"axis": 0, "size": 2}, [(3,)], ShapeError, "length 3, expected 1"),
    ("broadcast_like", {"lhs_axes": 0}, [(1,), (3,)], AttrError, "equally many"),
    ("repeat", {"repeats": -1}, [(2, 3)], AttrError, "repeats: expected int of at least 0, got -1"),
    ("repeat", {"repeats": -1, "axis": 1}, [(2, 3)], AttrError, "repeats: expected int of at least 0, got -1"),
    ("Pad", {"mode": "reflect", "pad_width": (0, 3)}, [(3,)], ShapeError, "cannot add 3"),
    ("Pad", {"mode": "edge", "pad_width": (1, 1)}, [(3, 3)], AttrError, "expected 4 numbers"),
    ("Pad", {"mode": "mirror", "pad_width": (1, 1)}, [(3,)], AttrError, "constant, edge, reflect"),
    ("take", {"axis": 2}, [(2, 3), (1,)], AttrError, "out of range"),
    ("Embedding", {"input_dim": 4, "output_dim": 2}, [(3,), (4, 3)], ShapeError, r"weight: expected shape \(4, 2\)"),
    ("pick", {}, [(2, 3), (3,)], ShapeError, r"index: expected shape \(2,\)"),
    ("pick", {"axis": None}, [(2, 3), (2,)], AttrError, "name the axis"),
    ("batch_take", {}, [(2, 3), (3,)], ShapeError, r"indices: expected shape \(2,\)"),
    ("where", {}, [(3,), (2, 3), (2, 3)], ShapeError, "condition"),
    ("gather_nd", {}, [(2, 3), (3, 4)], ShapeError, "3 rows are indices along as many axes"),
    ("gather_nd", {}, [(2, 3), (2,)], ShapeError, "two axes or more"),
    ("diag", {"k": 7}, [(2, 3)], AttrError, "no such diagonal"),
    ("diag", {"axis1": 1}, [(2, 3)], AttrError, "the same axis"),
    ("topk", {"k": 5}, [(2, 3)], AttrError, "3 elements to choose from"),
    ("topk", {"ret_typ": "indexes"}, [(3,)], AttrError, "Did you mean 'indices'"),
    ("_histogram", {"bin_cnt": 3}, [(4,)], AttrError, "and their range"),
    ("SequenceMask", {"axis": 2}, [(2, 3)], AttrError, "expected one of 0, 1"),
    ("SequenceLast", {"use_sequence_length": True}, [(2, 3), (2,)], ShapeError, "sequence_length"),
    ("space_to_depth", {"block_size": 2}, [(1, 1, 3, 4)], ShapeError, "blocks of 2"),
    ("depth_to_space", {"block_size": 2}, [(1, 3, 2, 2)], ShapeError, "3 channels"),
    *((op, {"block_size": 2}, [shape], ShapeError, r"empty images, \(") for op in
      ("space_to_depth", "depth_to_space") for shape in ((2, 0, 4, 4), (2, 4, 0, 4), (2, 4, 4, 0))),
    ("Pooling", {"kernel": (2,), "stride": (2, 2)}, [(1, 1, 8)], AttrError, r"stride=\(2, 2\): expected 1 number"),
    ("Pooling", {"kernel": (2,), "pad": (0, 0, 1)}, [(1, 1, 8)], AttrError, r"pad=\(0, 0, 1\): expected 1 number"),
    ("Pooling", {"kernel": (2, 2), "pad": (0,)}, [(1, 1, 8, 8)], AttrError, "expected 2 numbers"),
    ("im2col", {"kernel": (4, 4)}, [(1, 1, 3, 3)], ShapeError, "spans 4 positions"),
    ("im2col", {"kernel": (2,)}, [(1, 1, 3, 3)], AttrError, "expected 2 numbers, one for each axis"),
    ("col2im", {"kernel": (2, 2), "output_size": (3, 3)}, [(1, 4, 5)], ShapeError, r"channels x 4, 4"),
    ("UpSampling", {"scale": 2, "sample_type": "nearest", "num_args": 2}, [(1, 1, 2, 2), (1, 1, 3, 3)], ShapeError,
     "cannot be enlarged to 4 x 4"),
    ("khatri_rao", {"num_args": 2}, [(2, 3), (2, 4)], ShapeError, "differ"),
    ("_arange", {"start": 5, "stop": 1}, [], AttrError, "no values from 5.0 to 1.0"),
    ("_eye", {"N": -1}, [], AttrError, "of at least 0"),
    ("cast_storage", {"stype": "rows"}, [(2, 3)], AttrError, "row_sparse"),
    ("_ravel_multi_index", {"shape": (2, 3)}, [(3, 4)], ShapeError, r"data: expected shape \(2, axis, \.\.\.\)"),
])
def test_invalid_arguments_raise_errors_that_name_the_expected_value(op, attrs, shapes, kind, words):
    def ask(op):
        complete = op.complete(attrs)
        return op.infer_shapes(list(shapes), [None] * len(op.signature.outputs(complete)), complete)

    with pytest.raises(kind, match=words):
        ask(get(op))


def test_an_index_out_of_range_is_refused_in_the_mode_raise():
    data = nd.array([[1, 2], [3, 4]])
    for index in (2, -1):
        with pytest.raises(IndexError):
            nd.take(data, nd.array([index]), mode="raise")
    with pytest.raises(IndexError):
        nd.gather_nd(data, nd.array([[5], [0]]))


def test_reset_arrays_writes_in_place():
    arrays = [nd.ones((2, 3)), nd.ones((4,))]
    assert not nd.reset_arrays(*arrays, num_arrays=2)
    assert all((array.asnumpy() == 0).all() for array in arrays)


def test_an_error_names_operators_without_a_gradient():
    data = nd.ones((2, 3))
    data.attach_grad()
    with opreg.autograd.record():
        result = nd.op.fill_element_0index(data, nd.ones((2,)), nd.zeros((2,)))
    with pytest.raises(NotDifferentiableError, match="fill_element_0index"):
        result.backward()


@of_each([
    ("moments", 1, {}, ["op_output0", "op_output1"]),
    ("_linalg_syevd", 1, {}, ["op_output0", "op_output1"]),
    ("_linalg_gelqf", 1, {}, ["op_output0", "op_output1"]),
    ("amp_multicast", 1, {"num_outputs": 1}, ["op_output"]),
    ("amp_multicast", 2, {"num_outputs": 2}, ["op_output0", "op_output1"]),
    ("SliceChannel", 1, {"num_outputs": 1}, ["op_output0"]),
    ("_split_v2", 1, {"indices": (0,), "sections": 1}, ["op_output"]),
    ("multi_sgd_update", 2, {"num_weights": 1, "lrs": (.1,), "wds": (0,)}, ["op_output"]),
    ("BatchNorm", 1, {"output_mean_var": True}, ["op_output", "op_mean", "op_var"]),
    ("LayerNorm", 1, {"output_mean_var": True}, ["op_output", "op_mean", "op_std"]),
    ("RNN", 4, {"mode": "lstm", "state_size": 2, "num_layers": 1, "state_outputs": True},
     ["op_output", "op_state_output", "op_statecell_output"]),
    ("topk", 1, {"ret_typ": "both"}, ["op_output0", "op_output1"]),
    ("_sample_multinomial", 1, {"get_prob": True}, ["op_output0", "op_output1"]),
])
def test_outputs_have_the_names_mxnet_gives_them(op, count, attrs, names):
    made = getattr(sym, op)(*[sym.Variable(f"v{i}") for i in range(count)], name="op", **attrs)
    assert made.list_outputs() == names


@pytest.mark.parametrize("op, arrays, attrs, shapes", [
    ("diag", [(0, 3)], {}, [(0,)]), ("diag", [(2, 3)], {"k": 3}, [(0,)]), ("diag", [(0,)], {}, [(0, 0)]),
    ("diag", [(0,)], {"k": 2}, [(2, 2)]),
    ("take", [(3, 0), (2,)], {}, [(2, 0)]), ("take", [(0, 3), (0,)], {}, [(0, 3)]),
    ("gather_nd", [(3, 4), (0, 2)], {}, [(2, 3, 4)]), ("gather_nd", [(3, 0), (1, 2)], {}, [(2, 0)]),
    ("squeeze", [(1, 0)], {}, [(0,)]), ("repeat", [(0, 2)], {"repeats": 2, "axis": 1}, [(0, 4)]),
    ("_linalg_syevd", [(2, 0, 0)], {}, [(2, 0, 0), (2, 0)]), ("_linalg_potrf", [(2, 0, 0)], {}, [(2, 0, 0)]),
    ("_contrib_interleaved_matmul_selfatt_qk", [(3, 2, 0)], {"heads": 2}, [(4, 3, 3)]),
    ("_contrib_interleaved_matmul_selfatt_valatt", [(0, 2, 12), (4, 0, 0)], {"heads": 2}, [(0, 2, 4)]),
    ("_contrib_interleaved_matmul_encdec_qk", [(5, 2, 0), (3, 2, 0)], {"heads": 2}, [(4, 5, 3)]),
    ("_contrib_interleaved_matmul_encdec_valatt", [(0, 2, 8), (4, 5, 0)], {"heads": 2}, [(5, 2, 4)]),
])
def test_operators_take_empty_arrays(op, arrays, attrs, shapes):
    data = [nd.zeros(shape) for shape in arrays]
    for each in data:
        each.attach_grad()
    with opreg.autograd.record():
        found = getattr(nd, op)(*data, **attrs)
    found = found if isinstance(found, list) else [found]
    assert [each.shape for each in found] == shapes
    opreg.autograd.backward(found)
    symbols = [sym.Variable(f"v{i}") for i in range(len(data))]
    executor = getattr(sym, op)(*symbols, **attrs).bind(
        opreg.cpu(), {f"v{i}": each for i, each in enumerate(data)},
        {f"v{i}": nd.zeros_like(each) for i, each in enumerate(data)})
    assert [each.shape for each in executor.forward(is_train=True)] == shapes
    executor.backward([nd.ones_like(each) for each in found])
    for i, each in enumerate(data):
        np.testing.assert_array_equal(each.grad.asnumpy(), executor.grad_arrays[i].asnumpy())


def test_arrays_of_several_dtypes_are_reset_together():
    arrays = [nd.ones((2,)), nd.ones((3,), dtype="float16"), nd.ones((1,), dtype="int32")]
    nd.reset_arrays(*arrays, num_arrays=3)
    assert [array.asnumpy().tolist() for array in arrays] == [[0, 0], [0, 0, 0], [0]]


@pytest.mark.parametrize("parts", [1, 2])
def test_a_gradient_of_another_number_of_parts_than_the_mask_names_is_refused(parts):
    back = get("_backward_contrib_boolean_mask")
    with pytest.raises(ShapeError, match="the index selects a different number of slices"):
        back(nd.ones((parts, 2)), nd.array([1, 1, 1, 0]), nd.zeros((4, 2)))


@pytest.mark.parametrize("shape, axes", [
    ((2, 3, 40, 30), (0, 2, 3, 1)), ((4, 2000), (1, 0)), ((2, 5000), (1, 0)), ((3, 5, 700), (1, 2, 0)),
    ((2, 2, 2, 4, 20, 30), (0, 3, 4, 1, 5, 2))])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_large_arrays_with_a_short_last_axis_are_transposed(shape, axes, dtype):
    data = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    expected, x = data.transpose(axes), sym.var("x")
    for result in (nd.transpose(nd.array(data, dtype=dtype), axes=axes),
                   sym.transpose(x, axes=axes).eval(x=nd.array(data, dtype=dtype))[0],
                   sym.Reshape(sym.transpose(x, axes=axes), shape=(-1,)).eval(x=nd.array(data, dtype=dtype))[0]):
        assert np.dtype(result.dtype) == dtype
        np.testing.assert_array_equal(result.asnumpy().reshape(expected.shape), expected)


# -------------------------------------------------------------------------------------------------- topk


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0,)])
@pytest.mark.parametrize("function", ["sort", "argsort"])
def test_empty_arrays_are_sorted(function, shape):
    for axis in (0, -1, None):
        result, expected = (getattr(each, function)(each.zeros(shape), axis=axis) for each in (nd, np))
        assert result.shape == expected.shape


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("odd", [None, -0.0, np.inf, np.nan])
@pytest.mark.parametrize(("axis", "is_ascend"), [(-1, False), (0, True), (1, False), (None, True)])
def test_few_of_many_are_those_that_a_stable_sort_puts_first(dtype, odd, axis, is_ascend, monkeypatch):
    """Equal elements, of which there are many, come in their order; NaN counts as the largest."""
    monkeypatch.setattr("opreg.builtin.reductions.ordering._MANY", 0)
    data = np.random.default_rng(0).integers(0, 9, (16, 24)).astype(dtype)
    if odd is not None and dtype.startswith("float"):
        data[3, ::5] = odd
    value, index = (a.asnumpy() for a in nd.topk(nd.array(data, dtype=dtype), axis=axis, k=2, ret_typ="both",
                                                 is_ascend=is_ascend, dtype="int64"))
    flat, place = (data.reshape(-1), 0) if axis is None else (data, axis)
    keys = np.argsort(flat.astype("float64"), axis=place, kind="stable") if is_ascend else (
        flat.shape[place] - 1 - np.flip(np.argsort(np.flip(flat.astype("float64"), place), axis=place, kind="stable"),
                                        place))
    want = np.take(keys, range(2), axis=place)
    np.testing.assert_array_equal(index, want)
    np.testing.assert_array_equal(value, np.take_along_axis(flat, want, place))

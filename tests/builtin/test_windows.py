"""Convolution, pooling and matrix products beyond the small arrays of rows: blocks, ways, errors, inference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg import autograd, nd
from opreg.builtin.layers import correlation, pooling
from opreg.builtin.layers.sliding import span, window
from opreg.builtin.vision import roi
from opreg.core.registry import get
from opreg.core.spec import ANY
from opreg.errors import AttrError, DTypeError, ShapeError
from opreg.ndarray import array
from tests.questions import of_each
from tests.rows import convolution as convolution_rows
from tests.rows import normal
from tests.rows import pooling as pooling_rows
from tests.rows import roi as roi_rows
from tests.running import Use, agree, eager

# ------------------------------------------------------------------------------------------------ blocks


#: Rows of each family; the object and the name of the attribute with its block size.
BLOCKS = {"convolution": (convolution_rows.ROWS, correlation.BLOCK, "numpy", (300, 2000)),
          "pooling": (pooling_rows.ROWS, pooling.BLOCK, "numpy", (1,)),
          "regions": (roi_rows.ROWS, vars(roi), "BLOCK", (1,))}


@of_each([(family, row) for family, (rows, *_) in BLOCKS.items() for row in rows if "float64" in row.dtypes],
         by=lambda case: case[0])
def test_convolutions_in_blocks_equal_whole_ones(family, row):
    """The sums are the same for any size of blocks: of images, groups or rows."""
    whole = eager(Use.of(row)).outs
    _, holder, name, sizes = BLOCKS[family]
    for size in sizes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(holder, name, size)
            for out, expected in zip(eager(Use.of(row)).outs, whole):
                agree(out, expected)


_numbers = st.integers(1, 3)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(1, 3), st.integers(1, 2), _numbers, _numbers, st.integers(0, 2), st.integers(1, 2),
       st.integers(0, 3), st.sampled_from([200, 1 << 20]), st.booleans())
def test_columns_and_rows_give_the_same_convolution(images, groups, channels, kernel, pad, dilate, more, block, folded):
    """Convolutions by rows and by columns give the same output and gradients, with images one by one or joined."""
    win = window((kernel, kernel), (1, 1), (dilate, dilate), (pad, pad))
    size = max(1, win.reach[0] - 2 * pad) + more
    places = size + 2 * pad - win.reach[0] + 1
    x = normal(images, groups * channels, size, size)
    w = normal(groups * 2, channels, kernel, kernel, seed=1)
    g = normal(images, groups * 2, places, places, seed=2)
    plan = correlation._Plan(x.shape, w.shape, g.shape, win, groups)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlation, "_plan", lambda *_: plan)
        patch.setitem(correlation.BLOCK, "numpy", block)
        for by_rows in (True, False):
            plan.folded = folded
            plan.by_rows = by_rows
            y, dx, dw = np.empty_like(g), np.empty_like(x), np.empty_like(w)
            correlation.correlate(np, x, w, y, win, groups)
            correlation.spread(np, g, w, dx, win, groups)
            correlation.match(np, g, x, dw, win, groups)
            found.append((y, dx, dw))
    for one, other in zip(*found):
        agree(one, other)
    y, dx, dw = found[0]
    np.testing.assert_allclose([(dx * x).sum(), (dw * w).sum()], (g * y).sum(), 1e-9, 1e-9)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.integers(1, 9), st.integers(-9, 12), st.integers(1, 4), st.integers(0, 9))
def test_a_span_pairs_outputs_and_inputs_at_valid_indices(size, offset, stride, count):
    """A span pairs outputs and inputs exactly where the input's index is valid."""
    pairs = [(q, q * stride + offset) for q in range(count) if 0 <= q * stride + offset < size]
    outputs, inputs = span(size, offset, stride, count)
    assert list(zip(range(count)[outputs], range(size)[inputs])) == pairs


def test_a_large_convolution_is_computed_by_rows():
    """The choice follows measurements: rows for images with many channels, columns for few."""

    def by_rows(channels, filters, size, kernel, images=16):
        win = window((kernel, kernel), pad=(kernel // 2, kernel // 2))
        return correlation._Plan((images, channels, size, size), (filters, channels, kernel, kernel),
                                 (images, filters, size, size), win, 1).by_rows

    assert by_rows(32, 32, 32, 3)
    assert by_rows(64, 64, 56, 3)
    assert not by_rows(1, 20, 28, 5)
    assert not by_rows(512, 512, 7, 3)
    assert not by_rows(256, 256, 14, 3, images=1)


def test_images_share_a_block_while_they_stay_in_the_cache(monkeypatch):
    """A block has one image if its buffers fill the cache, and several if channels are few or weights are larger."""
    monkeypatch.setitem(correlation.BLOCK, "numpy", 3 << 20)
    monkeypatch.setattr(correlation, "NEAR", 1 << 19)
    monkeypatch.setattr(correlation, "_shares", lambda: 1)

    def images(channels, size):
        win, shape = window((3, 3), pad=(1, 1)), (4, channels, size, size)
        plan = correlation._Plan(shape, (channels, channels, 3, 3), shape, win, 1)
        return [n.stop - n.start for n, _, _ in plan.blocks(np, np.dtype("float32"))]

    assert images(32, 32) == [1, 1, 1, 1]
    assert images(4, 32) == [2, 2]
    assert images(512, 7) == [4]


def test_gradient_of_equal_maxima_goes_to_the_first():
    """The first of equal maxima in a cell, in reading order, has the gradient, whichever block finds it."""
    data = np.zeros((1, 1, 5, 6))
    data[0, 0, 1:, 2:] = 1  # in the lower rows the largest values begin further left
    data[0, 0, 3, 0] = 1
    x = array(data, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = nd.ROIPooling(x, array([[0, 0, 0, 5, 4]], dtype="float64"), pooled_size=(1, 1), spatial_scale=1.0)
    y.backward()
    assert list(zip(*np.nonzero(x.grad.asnumpy()[0, 0]))) == [(1, 2)]


# ------------------------------------------------------------------------------------------------ dtypes


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_float16_is_summed_in_float32(dtype):
    """A sum of 2304 ones in half precision would stop growing before the end."""
    ones = nd.ones((1, 2304), dtype=dtype)
    image = ones.reshape((1, 9, 16, 16))
    for total in (
        nd.FullyConnected(ones, ones, num_hidden=1, no_bias=True),
        nd.dot(ones, ones, transpose_b=True),
        nd.Convolution(image, image, kernel=(16, 16), num_filter=1, no_bias=True),
        nd.Pooling(ones.reshape((1, 1, 48, 48)), global_pool=True, pool_type="sum"),
    ):
        assert total.dtype == np.dtype(dtype)
        assert total.asnumpy().astype("float32") == 2304


# ------------------------------------------------------------------------------------------------ errors

_CONVOLUTION = {"kernel": (3, 3), "num_filter": 4, "no_bias": True}
_POOLING = {"kernel": (3, 3)}

_ERRORS = [
    ("FullyConnected", [(), (5, 4)], {"num_hidden": 5, "no_bias": True}, ShapeError, "at least one axis"),
    ("FullyConnected", [(3, 4), (5, 3)], {"num_hidden": 5, "no_bias": True}, ShapeError,
     r"weight: .*\(5, 4\).*\(5, 3\)"),
    ("FullyConnected", [(3, 4), (0, 4)], {"num_hidden": 0, "no_bias": True}, AttrError, "num_hidden: .* got 0"),
    ("dot", [(3, 2), (3, 4)], {}, ShapeError, r"\(3, 2\) and \(3, 4\)"),
    ("dot", [(3,), (3,)], {"transpose_a": True}, AttrError, "vectors"),
    ("batch_dot", [(3, 4), (4, 5)], {}, ShapeError, r"\(first, \.\.\., m, k\)"),
    ("batch_dot", [(1, 3, 4), (2, 4, 5)], {}, ShapeError, r"rhs: expected shape \(1, 4, n\)"),
    ("Convolution", [(1, 2, 2, 2), None], _CONVOLUTION, ShapeError, "spans 3 positions"),
    ("Convolution", [(2, 5, 5), None], _CONVOLUTION, ShapeError, "beside batch and channel"),
    ("Convolution", [(1, 3, 5, 5), None], {**_CONVOLUTION, "num_group": 2}, AttrError, "num_group=2 .* 3 channels"),
    ("Convolution", [(1, 3, 5, 5), None], {**_CONVOLUTION, "num_group": 3}, AttrError, "num_group=3 .* 4 filters"),
    ("Convolution", [(1, 3, 5, 5), None], {**_CONVOLUTION, "num_filter": 0}, AttrError, "num_filter: .* got 0"),
    ("Convolution", [(1, 3, 5, 5), None], {**_CONVOLUTION, "stride": (2,)}, AttrError, "stride"),
    ("Convolution", [(1, 3, 5, 5), None], {**_CONVOLUTION, "stride": (0, 1)}, AttrError, "stride"),
    ("Convolution", [(1, 3, 5, 5), None], {**_CONVOLUTION, "kernel": (1,) * 4}, AttrError, "one, two or three"),
    ("Convolution", [(1, 3, 5, 5), None], {**_CONVOLUTION, "layout": "NCW"}, AttrError, "layout='NCW' has 3 axes"),
    ("Convolution", [(1, 3, 5, 5), None], {**_CONVOLUTION, "layout": "NCWH"}, AttrError, "NCHW"),
    ("Deconvolution", [(1, 2, 8, 8), None], {**_CONVOLUTION, "adj": (1, 0)}, AttrError, "adj"),
    ("Deconvolution", [(1, 2, 8, 8), None], {**_CONVOLUTION, "target_shape": (11, 9)}, ShapeError,
     r"at most \(10, 10\)"),
    ("Deconvolution", [(1, 2, 8, 8), None], {**_CONVOLUTION, "target_shape": (9,)}, AttrError, "target_shape"),
    ("Deconvolution", [(1, 2, 1, 1), None], {**_CONVOLUTION, "pad": (2, 2)}, ShapeError, "removes all of an output"),
    ("Pooling", [(1, 2, 5, 5)], {}, AttrError, "kernel is required"),
    ("Pooling", [(1, 2, 2, 5)], _POOLING, ShapeError, "larger than the input"),
    ("Pooling", [(1, 2, 5, 5)], {**_POOLING, "pad": (3, 0)}, AttrError, "less than kernel"),
    ("Pooling", [(1, 2, 5, 5)], {**_POOLING, "pool_type": "lp"}, AttrError, "p_value=None"),
    ("Pooling", [(1, 2, 5, 5)], {**_POOLING, "pad": (1, 1), "pooling_convention": "same"}, AttrError, "no padding"),
    ("Pooling", [(2, 5, 5)], _POOLING, ShapeError, "beside batch and channel"),
    ("_contrib_AdaptiveAvgPooling2D", [(2, 3, 5)], {"output_size": 2}, ShapeError, "four axes"),
    ("_contrib_AdaptiveAvgPooling2D", [(2, 3, 5, 5)], {"output_size": (2, 0)}, AttrError, "output_size"),
    ("_contrib_BilinearResize2D", [(2, 3, 1, 5)], {"mode": "to_even_down"}, AttrError, "positive"),
    ("_contrib_BilinearResize2D", [(2, 3, 5, 5)], {"mode": "odd_scale"}, AttrError, "scale_height"),
    ("GridGenerator", [(2, 5)], {"transform_type": "affine", "target_shape": (2, 2)}, ShapeError, "affine"),
    ("GridGenerator", [(2, 6)], {"transform_type": "affine"}, AttrError, "target_shape"),
    ("GridGenerator", [(2, 3, 4, 4)], {"transform_type": "warp"}, ShapeError, "flow"),
    ("BilinearSampler", [(2, 3, 4, 4), (1, 2, 4, 4)], {}, ShapeError, "grid"),
    ("SpatialTransformer", [(2, 3, 4), None], {"transform_type": "affine", "sampler_type": "bilinear"}, ShapeError,
     "SpatialTransformer|data"),
    ("_contrib_ROIAlign", [(2, 3, 4, 4), (5, 4)], {"pooled_size": (2, 2), "spatial_scale": 1}, ShapeError, "rois"),
    ("_contrib_ROIAlign", [(2, 3, 4, 4), (5, 5)],
     {"pooled_size": (2, 2), "spatial_scale": 1, "position_sensitive": True}, ShapeError, "4channels"),
    ("_contrib_PSROIPooling", [(2, 3, 4, 4), (5, 5)], {"pooled_size": 2, "output_dim": 2, "spatial_scale": 1},
     ShapeError, r"data: expected shape \(batch, 8,"),
    ("ROIPooling", [(2, 3, 4, 4), (5, 5)], {"pooled_size": (2,), "spatial_scale": 1}, AttrError, "pooled_size"),
    ("_contrib_DeformableConvolution", [(1, 3, 5, 5), None, None], {**_CONVOLUTION, "num_deformable_group": 2},
     AttrError, "num_deformable_group=2"),
    ("_contrib_DeformableConvolution", [(1, 3, 5, 5), (1, 9, 3, 3), None], _CONVOLUTION, ShapeError, "offset"),
    ("Correlation", [(1, 3, 5, 5), (1, 3, 5, 5)], {"kernel_size": 2}, AttrError, "odd"),
    ("Correlation", [(1, 3, 5, 5), (1, 3, 5, 4)], {}, ShapeError, "one shape"),
    ("Correlation", [(1, 3, 5, 5), (1, 3, 5, 5)], {"max_displacement": 3}, ShapeError, "no position"),
]


@of_each(_ERRORS)
def test_wrong_shapes_and_attributes_are_refused(name, shapes, attrs, kind, says):
    with pytest.raises(kind, match=says):
        _inferred(get(name), shapes, attrs)


def _inferred(op, shapes, attrs):
    attrs = op.complete(attrs)
    return op.infer_shapes(shapes, [None] * len(op.signature.outputs(attrs)), attrs)


@pytest.mark.parametrize("kind", ["avg", "lp"])
def test_averages_need_a_floating_dtype(kind):
    with pytest.raises(DTypeError, match="int32"):
        nd.Pooling(array(np.ones((1, 1, 4, 4), "int32"), dtype="int32"), kernel=(2, 2), pool_type=kind, p_value=2)


# --------------------------------------------------------------------------------------------- inference

_INFERRED = [
    ("FullyConnected", [(ANY, 6, 2), None, None], {"num_hidden": 4}, [(ANY, 6, 2), (4, 12), (4,)], [(ANY, 4)]),
    ("FullyConnected", [None, None, None], {"num_hidden": 4}, [None, None, (4,)], [None]),
    ("Convolution", [(ANY, 6, ANY, ANY), None, None], {"kernel": (3, 3), "num_filter": 4, "num_group": 2},
     [(ANY, 6, ANY, ANY), (4, 3, 3, 3), (4,)], [(ANY, 4, ANY, ANY)]),
    ("Convolution", [(2, 8, 8, 6), None, None], {"kernel": (3, 3), "num_filter": 4, "layout": "NHWC"},
     [(2, 8, 8, 6), (4, 3, 3, 6), (4,)], [(2, 6, 6, 4)]),
    ("Convolution", [None, None, None], {"kernel": (3, 3), "num_filter": 4}, [None, None, (4,)], [None]),
    ("Deconvolution", [(2, 6, ANY, 8), None], {"kernel": (3, 3), "num_filter": 4, "num_group": 2},
     [(2, 6, ANY, 8), (6, 2, 3, 3)], [(2, 4, ANY, 10)]),
    ("Deconvolution", [(2, 6, ANY, 8), None], {"kernel": (3, 3), "num_filter": 4, "target_shape": (9, 9)},
     [(2, 6, ANY, 8), (6, 4, 3, 3)], [(2, 4, 9, 9)]),
    ("Pooling", [(ANY, 3, ANY, 7)], {"kernel": (2, 2), "pooling_convention": "full", "stride": (2, 2)},
     [(ANY, 3, ANY, 7)], [(ANY, 3, ANY, 4)]),
    ("Pooling", [(ANY, 3, ANY, ANY)], {"global_pool": True}, [(ANY, 3, ANY, ANY)], [(ANY, 3, 1, 1)]),
    ("_contrib_BilinearResize2D", [(2, 3, ANY, 5)], {"scale_height": 2.0, "scale_width": 2.0}, [(2, 3, ANY, 5)],
     [(2, 3, ANY, 10)]),
    ("SpatialTransformer", [(2, 3, 4, 4), None],
     {"transform_type": "affine", "sampler_type": "bilinear", "target_shape": (5, 6)}, [(2, 3, 4, 4), (2, 6)],
     [(2, 3, 5, 6)]),
    ("_contrib_DeformableConvolution", [(2, 4, 5, 5), None, None, None], {"kernel": (3, 3), "num_filter": 6},
     [(2, 4, 5, 5), (2, 18, 3, 3), (6, 4, 3, 3), (6,)], [(2, 6, 3, 3)]),
]


@of_each(_INFERRED)
def test_partly_known_shapes_are_completed(name, ins, attrs, filled, outs):
    # ANY equals every number, so compare what is written.
    assert repr(_inferred(get(name), ins, attrs)) == repr((filled, outs))


def test_batch_follows_from_the_output():
    op = get("FullyConnected")
    ins, _ = op.infer_shapes([(ANY, 6), None, None], [(5, 4)], op.complete({"num_hidden": 4}))
    assert repr(ins[0]) == "(5, 6)"


def test_parameters_without_effect_are_taken():
    x, w = normal(1, 2, 4, 4), normal(3, 2, 3, 3)
    plain = nd.Convolution(array(x), array(w), kernel=(3, 3), num_filter=3, no_bias=True)
    tuned = nd.Convolution(array(x), array(w), kernel=(3, 3), num_filter=3, no_bias=True, workspace=1, cudnn_off=True,
                           cudnn_tune="fastest")
    np.testing.assert_array_equal(plain.asnumpy(), tuned.asnumpy())


@pytest.mark.parametrize("train_mode", [True, False])
def test_maximum_pooling_passes_gradients_to_the_maximum_in_each_mode(train_mode):
    x = array([[[[1, 4], [3, 2]]]])
    x.attach_grad()
    with autograd.record(train_mode=train_mode):
        y = nd.Pooling(x, kernel=(2, 2), pool_type="max")
    y.backward(train_mode=train_mode)
    assert x.grad.asnumpy().tolist() == [[[[0, 1], [0, 0]]]]

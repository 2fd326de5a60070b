"""Private operators that oneDNN's passes insert into plans. They are in no file and in no list of operators."""

from __future__ import annotations

from opreg.builtin.layers.normalize import backward_normalize_xp, backward_sums_xp
from opreg.builtin.layouts import by_axis
from opreg.builtin.outputs import like_inputs

from ...private_operators import private

__all__ = ["batch_norm_gradient"]

batch_norm_gradient = private(
    "_batch_norm_gradient", lambda *, scaled: ("g", "data", *(("gamma",) if scaled else ()), "mean", "inverse"),
    "The gradient of batch norm's data, and the sums that those of gamma and beta are.",
    outputs=("gradient", "product", "total"), inplace=(0,))

by_axis(batch_norm_gradient, (0, 1))
batch_norm_gradient.infer(like_inputs(1, -1, -1))


@batch_norm_gradient.kernel()
def batch_norm_gradient_xp(xp, g, data, *vectors, axis):
    *gamma, mean, inverse = vectors
    words = {"over": "batch", "axis": axis, "num_groups": 0}
    product, total = backward_sums_xp(xp, g, data, mean, inverse, **words)
    return backward_normalize_xp(xp, g, data, *gamma, mean, inverse, product, total, **words), product, total

"""Private operators that oneDNN's passes insert into plans. They are in no file and in no list of operators."""

from __future__ import annotations

from opreg.builtin.layers.normalize import backward_normalize_loop, backward_sums_xp
from opreg.builtin.layouts import by_axis
from opreg.builtin.looped import results_of
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
    sums = backward_sums_xp(xp, g, data, mean, inverse, axis=axis)
    arrays = [g, data, *gamma, mean, inverse, *sums]
    loop = backward_normalize_loop(scaled=bool(gamma), axis=axis).on([array.shape for array in arrays], ufuncs=True)
    return results_of(loop, xp, arrays, None, {}), *sums

"""Convolutions of few elements: a single image gives the same values and gradients as in a large batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opreg import autograd, nd
from opreg.builtin.layers.small_correlation import MOST

CASES: list[dict[str, Any]] = [
    dict(size=(9,), kernel=(3,)),
    dict(size=(9,), kernel=(3,), stride=(2,), pad=(2,), dilate=(2,)),
    dict(size=(7, 6), kernel=(3, 2)),
    dict(size=(7, 6), kernel=(3, 3), pad=(1, 1)),
    dict(size=(7, 6), kernel=(2, 3), stride=(3, 2), pad=(1, 2)),
    dict(size=(9, 8), kernel=(3, 3), dilate=(2, 3), pad=(0, 1)),
    dict(size=(7, 6), kernel=(3, 3), num_group=2),
    dict(size=(7, 6), kernel=(3, 3), num_group=4, pad=(1, 1), no_bias=True),
    dict(size=(3, 3), kernel=(3, 3), pad=(2, 2)),
    dict(size=(5, 4, 6), kernel=(2, 2, 3), stride=(1, 2, 1), pad=(0, 1, 1)),
    dict(size=(7, 6), kernel=(3, 3), layout="NHWC"),
    dict(size=(7, 6), kernel=(3, 3), layout="NHWC", pad=(1, 0), stride=(2, 1)),
]


def _computed(operator: str, x: np.ndarray, weights: list[np.ndarray], slope: np.ndarray, attrs: dict[str, Any]
              ) -> list[np.ndarray]:
    """Output, and gradients of the data, the weight and the bias."""
    arrays = [nd.array(value, dtype=value.dtype) for value in (x, *weights)]
    for each in arrays:
        each.attach_grad()
    with autograd.record():
        y = getattr(nd, operator)(*arrays, num_filter=4, **attrs)
    y.backward(nd.array(np.broadcast_to(slope, y.shape), dtype=y.dtype))
    return [y.asnumpy(), *[each.grad.asnumpy() for each in arrays]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("operator", ["Convolution", "Deconvolution"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_single_image_gives_the_result_of_a_batch(case: dict[str, Any], operator: str, dtype: str) -> None:
    attrs = dict(case)
    size, last = attrs.pop("size"), attrs.get("layout") == "NHWC"
    if last and operator == "Deconvolution":
        pytest.skip("has its channels first")
    rng, groups = np.random.default_rng(0), attrs.get("num_group", 1)
    shape = (1, *size, 4) if last else (1, 4, *size)
    taps = (*attrs["kernel"], 4 // groups) if last else (4 // groups, *attrs["kernel"])
    x = rng.standard_normal(shape).astype(dtype)
    weights = [rng.standard_normal((4, *taps)).astype(dtype)]
    if not attrs.get("no_bias"):
        weights.append(rng.standard_normal(4).astype(dtype))
    attrs.setdefault("no_bias", False)
    alone = _computed(operator, x, weights, np.asarray(1.0, dtype), attrs)
    batch = np.concatenate([x, np.zeros((MOST // 8, *x.shape[1:]), dtype)])
    slope = np.zeros((len(batch), *(1,) * (x.ndim - 1)), dtype)
    slope[0] = 1
    many = _computed(operator, batch, weights, slope, attrs)
    tolerance = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-12}[dtype]
    for one, other in zip(alone, [many[0][:1], many[1][:1], *many[2:]], strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)

"""``ops.flash_attention_score`` agrees with attention in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import ops
from tests.questions import of_each

BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 4, 5, 7, 3
_DRAW = np.random.default_rng(3)
QUERY = _DRAW.normal(size=(BATCH, HEADS, QUERIES, SIZE))
KEY, VALUE = _DRAW.normal(size=(2, BATCH, 2, KEYS, SIZE))
SHIFT = _DRAW.normal(size=(1, HEADS, QUERIES, KEYS))
HIDDEN = _DRAW.random((BATCH, 1, QUERIES, KEYS)) < 0.4
HIDDEN[1, 0, 2] = True  # a query that sees nothing


def written_out(query: np.ndarray, key: np.ndarray, value: np.ndarray, shift: Any = 0.0, hidden: Any = False,
                scale: float = 1.0) -> np.ndarray:
    key, value = [np.repeat(x, query.shape[1] // x.shape[1], axis=1) for x in (key, value)]
    scores = np.where(hidden, -1e300, query @ key.swapaxes(2, 3) * scale + shift)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def laid(x: np.ndarray, layout: str) -> np.ndarray:
    """An array with the axes batch, heads, length and size, brought into a layout."""
    laid = x.transpose(["BNSD".index(axis) for axis in layout.replace("H", "ND")])
    return laid.reshape((*laid.shape[:2], -1)) if "H" in layout else laid


I, J = np.arange(QUERIES)[:, None], np.arange(KEYS)
BEHIND = KEYS - QUERIES  # if the last query has the position of the last key

#: Settings, and the same attention written out.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "alone": ({}, {}),
    "scaled": ({"scalar_value": 0.5}, {"scale": 0.5}),
    "shifted": ({"real_shift": SHIFT, "scalar_value": 0.5}, {"shift": SHIFT, "scale": 0.5}),
    "masked": ({"attn_mask": HIDDEN}, {"hidden": HIDDEN}),
    "masked by bytes": ({"attn_mask": HIDDEN.astype("u1"), "sparse_mode": 1}, {"hidden": HIDDEN}),
    "masked by one matrix": ({"attn_mask": HIDDEN[0, 0]}, {"hidden": HIDDEN[0, 0]}),
    "shifted and masked": ({"real_shift": SHIFT, "attn_mask": HIDDEN}, {"shift": SHIFT, "hidden": HIDDEN}),
    "tokens without a mask": ({"pre_tokens": 1, "next_tokens": 0}, {}),
    "tokens and a mask": ({"attn_mask": HIDDEN, "pre_tokens": 3, "next_tokens": 1},
                          {"hidden": HIDDEN | (J < I - 3) | (J > I + 1)}),
    "tokens beside a whole mask": ({"attn_mask": HIDDEN, "sparse_mode": 1, "pre_tokens": 1}, {"hidden": HIDDEN}),
    "causal": ({"sparse_mode": 2, "attn_mask": np.tri(9) == 0}, {"hidden": J > I}),
    "causal and shifted": ({"sparse_mode": 2, "real_shift": SHIFT}, {"hidden": J > I, "shift": SHIFT}),
    "causal from the last": ({"sparse_mode": 3}, {"hidden": J > I + BEHIND}),
    "a band": ({"sparse_mode": 4, "pre_tokens": 2, "next_tokens": 1},
               {"hidden": (J > I + BEHIND + 1) | (J < I + BEHIND - 2)}),
    "a band behind": ({"sparse_mode": 4, "pre_tokens": 4, "next_tokens": -1},
                      {"hidden": (J > I + BEHIND - 1) | (J < I + BEHIND - 4)}),
}


def tensors(settings: dict[str, Any], dtype: str) -> dict[str, Any]:
    return {name: ms.Tensor(value.astype(dtype) if value.dtype.kind == "f" else value)
            if isinstance(value, np.ndarray) else value for name, value in settings.items()}


@pytest.mark.parametrize("layout", ["BSH", "BNSD", "SBH", "BSND"])
@pytest.mark.parametrize("case", CASES)
def test_values_equal_explicit_attention(case: str, layout: str) -> None:
    settings, meaning = CASES[case]
    wanted = laid(written_out(QUERY, KEY, VALUE, **meaning), layout)

    def attend(*given: ms.Tensor) -> ms.Tensor:
        return ops.flash_attention_score(*given, HEADS, input_layout=layout, **tensors(settings, "float32"))

    given = [ms.Tensor(laid(x, layout).astype("f")) for x in (QUERY, KEY, VALUE)]
    for function in attend, ms.jit(attend):
        np.testing.assert_allclose(function(*given).asnumpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", ["alone", "masked", "shifted and masked", "causal from the last"])
def test_flash_attention_runs_in_half_precision(case: str, dtype: str) -> None:
    settings, meaning = CASES[case]
    given = [ms.Tensor(x.astype("f")).astype(getattr(ms, dtype)) for x in (QUERY, KEY, VALUE)]
    found = ops.flash_attention_score(*given, HEADS, input_layout="BNSD", **tensors(settings, "float32"))
    assert str(found.dtype).lower().endswith(dtype)
    np.testing.assert_allclose(found.astype(ms.float32).asnumpy(), written_out(QUERY, KEY, VALUE, **meaning), atol=0.05)


@of_each(CASES)
def test_gradients_agree_with_central_differences(case: str) -> None:
    settings, _ = CASES[case]
    points = [laid(x, "BSH") for x in (QUERY, KEY, VALUE)]

    def total(*given: ms.Tensor) -> ms.Tensor:
        found = ops.flash_attention_score(*given, HEADS, **tensors(settings, "float64"))
        return (found * ms.Tensor(np.cos(np.arange(found.size)).reshape(found.shape))).sum()

    found = ms.grad(total, (0, 1, 2))(*map(ms.Tensor, points))
    draw = np.random.default_rng(5)
    for _ in range(2):
        ways, step = [draw.normal(size=point.shape) for point in points], 1e-6
        ahead, back = [float(total(*[ms.Tensor(point + sign * step * way) for point, way in zip(points, ways)]))
                       for sign in (1, -1)]
        expected = sum(float((g.asnumpy() * way).sum()) for g, way in zip(found, ways))
        assert (ahead - back) / (2 * step) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("settings, match", [
    ({"input_layout": "BSDN"}, "'BSND'"), ({"input_layout": "TND"}, "input_layout 'TND'"),
    ({"sparse_mode": 5}, "from 0 to 4, got 5"), ({"keep_prob": 0.9}, "keep_prob=0.9"),
    ({"prefix": (1, 2)}, "prefix is not available"), ({"head_num": 0}, "head_num must be a positive integer, got 0"),
    ({"head_num": 5}, r"query: expected 5 heads in axes B S H, got shape \(2, 5, 12\)"),
    ({"query": np.ones((2, 12))}, r"query: expected axes B S H, got shape \(2, 12\)"),
    ({"key": np.ones((2, 7, 5))}, r"key: expected axes B S H with heads of size 3, got shape \(2, 7, 5\)"),
])
def test_wrong_arguments_are_refused(settings: dict[str, Any], match: str) -> None:
    given = {"query": laid(QUERY, "BSH"), "key": laid(KEY, "BSH"), "value": laid(VALUE, "BSH"), "head_num": HEADS}
    with pytest.raises(ValueError, match=match):
        ops.flash_attention_score(**tensors({**given, **settings}, "float32"))

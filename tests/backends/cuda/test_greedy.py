"""Suppression of boxes and matching on a GPU: the same choices as on the host, in few launches for any number of
boxes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda.operators import greedy
from opreg.core.registry import REGISTERED
from tests.cuda import host, nvrtc
from tests.cuda.device import gpus
from tests.cuda.host import Host, array

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

DTYPES = ["float16", "bfloat16", "float32", "float64"]
#: Numbers of boxes: none, one, a tile, one more, several tiles with a part of one.
COUNTS = [0, 1, 64, 65, 300]


def boxes(n: int, dtype: Any, form: str = "corner", images: int = 2) -> np.ndarray:
    """Boxes on a grid, so that many have equal overlaps; some have no area, and some are NaN."""
    rng = np.random.default_rng(n)
    corner, sides = rng.integers(0, 24, (images, n, 2)) / 4, rng.integers(-1, 12, (images, n, 2)) / 4
    found = np.concatenate([corner, sides if form == "center" else corner + sides], axis=-1)
    found[:, 5::50] = np.nan
    return found.astype(dtype)


def reference(name: str, *ins: np.ndarray, **attrs: Any) -> Any:
    with np.errstate(invalid="ignore"):  # boxes without area
        return REGISTERED[name].kernels[0].rule.function(np, *ins, **attrs)


def asked(name: str, ins: Any, attrs: dict[str, Any], xp: Any) -> tuple[list[np.ndarray], list[str]]:
    """Results of an eager call on a GPU, and the kernels that it launches."""
    arrays = [mx.nd.array(each, ctx=mx.gpu(0), dtype=each.dtype) for each in ins]
    before = len(xp.kernels)
    outs = getattr(mx.nd, name)(*arrays, **attrs)
    found = [each.asnumpy() for each in (outs if isinstance(outs, list) else [outs])]
    return found, xp.kernels[before:]


@pytest.fixture
def gpu() -> Iterator[Any]:
    with gpus(132) as xp:
        yield xp


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attrs", [
    {"threshold": 0.3}, {"threshold": 0.25, "closed": True}, {"threshold": 0.4, "border": 1, "most": 20},
    {"threshold": 0.2, "form": "center"}, {"threshold": 0.2, "grouped": True}], ids=str)
def test_the_same_boxes_remain_as_on_the_host(attrs: dict[str, Any], dtype: str, gpu: Any) -> None:
    for n in COUNTS:
        data = boxes(n, dtype, attrs.get("form", "corner"))
        ins = [data, np.array([n, n // 2])]
        if attrs.get("grouped"):
            ins.append(np.random.default_rng(n).integers(0, 3, data.shape[:2]).astype(dtype))
        given = {"closed": False, "form": "corner", "border": 0, "most": -1, **attrs}
        given.pop("grouped", None)
        (found,), launched = asked("_survivors", ins, attrs, gpu)
        np.testing.assert_array_equal(found, reference("_survivors", *ins, **given), f"{n} boxes")
        assert launched == (["compare", "survive"] if n else [])


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 7, 5), (1, 300, 9), (3, 4, 70), (1, 1, 1), (2, 0, 3)], ids=str)
def test_the_hosts_rows_and_columns_match(shape: tuple[int, ...], dtype: str, gpu: Any) -> None:
    rng = np.random.default_rng(1)
    scores = (rng.integers(-8, 9, shape) / 8).astype(dtype)
    scores[..., ::4] = np.nan
    scores[:, 1:2, 1:2], scores[:, 2:3, 1:2] = np.inf, -np.inf
    for attrs in ({"above": 0.1}, {"above": -2.0}, {"above": -np.inf, "most": 2}):
        found, launched = asked("_matching", [scores], attrs, gpu)
        for one, other in zip(found, reference("_matching", scores, **{"most": -1, **attrs}), strict=True):
            np.testing.assert_array_equal(one, other, str(attrs))
        assert launched == (["search", "match"] if scores.size else [])


@needs_compiler
def test_images_whose_bits_are_too_many_are_suppressed_in_groups(monkeypatch: pytest.MonkeyPatch, gpu: Any) -> None:
    monkeypatch.setattr(greedy, "MOST_BYTES", 2 * 70 * 2 * 8)
    data, counts = boxes(70, "float32", images=5), np.array([70, 3, 0, 70, 65])
    (found,), launched = asked("_survivors", [data, counts], {"threshold": 0.3}, gpu)
    np.testing.assert_array_equal(found, reference("_survivors", data, counts, threshold=0.3, closed=False,
                                                   form="corner", border=0, most=-1))
    assert launched == ["compare", "survive"] * 3


@needs_compiler
def test_detections_are_replayed_and_views_are_read(gpu: Any) -> None:
    """The boxes are a view of rows of six numbers in the graph; replay includes their kernels."""
    rng = np.random.default_rng(2)
    kinds, scores = rng.integers(0, 3, (2, 90, 1)), rng.uniform(0, 1, (2, 90, 1))
    data = np.concatenate([kinds, scores, boxes(90, "float32")], axis=-1)
    net = mx.sym.contrib.box_nms(mx.sym.var("x"), id_index=0, overlap_thresh=0.3)
    runs = [net.bind(ctx, {"x": mx.nd.array(data, ctx=ctx)}) for ctx in (mx.cpu(), mx.gpu(0))]
    for _ in range(4):
        expected, found = [each.forward()[0].asnumpy() for each in runs]
        np.testing.assert_array_equal(found, expected)
    assert {"compare", "survive"} <= set(gpu.kernels)
    assert not [line for line in runs[1].explain().splitlines() if "_survivors" in line and "island" in line]


def launched_on(device: Host, data: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    """Results of suppression and of matching, by the device that collects launches."""
    images, n, _ = data.shape
    tiles = -(-n // greedy.TILE)
    counts = array(np.full(images, n), np.int64)
    groups = array(np.arange(images * n).reshape(images, n) % 2, np.int32)
    alive = array(np.zeros((images, n)), bool)
    steps = greedy.bound_suppression(
        device, data, counts, groups, array(np.zeros((images, n, tiles)), np.uint64),  # type: ignore[arg-type]
        array(np.zeros((images, tiles)), np.uint64), alive, threshold=0.3, closed=False, form="corner", border=0,
        most=-1)
    matrices, rows, columns = scores.shape
    outs = [array(np.zeros((matrices, size)), np.int64) for size in (rows, columns)]
    lines = matrices, min(rows, columns)
    steps += greedy.bound_matching(device, scores, array(np.zeros(lines), np.float32),  # type: ignore[arg-type]
                                   array(np.zeros(lines), np.int32), *outs, above=0.0, most=-1)
    for step in steps:
        step()
    return [alive, *outs]


@needs_compiler
def test_choices_are_the_same_in_any_order_of_blocks_and_threads_without_races() -> None:
    found = []
    for sanitizer, order in (("thread", "forward"), ("address", "reversed")):
        device = Host()
        outs = launched_on(device, array(boxes(130, np.float32)),
                           array(np.random.default_rng(3).integers(-4, 5, (2, 40, 33)) / 4, np.float32))
        device.run(sanitizer, order)
        found.append(outs)
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


@needs_nvrtc
def test_kernels_compile_for_gpus_without_spilling() -> None:
    texts = [greedy.SURVIVE]
    for name, form in itertools.product(DTYPES, ("corner", "center")):
        dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
        texts += [greedy.compare_source(dtype, np.dtype("int64") if form == "center" else None, form, 1, True),
                  greedy.search_source(dtype), greedy.match_source(dtype)]
    assert all(made.spills == made.stack == 0 for made in nvrtc.compile(texts))

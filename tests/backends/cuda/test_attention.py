"""Attention on a GPU without scores in memory: its kernels against the host, memory, dropout, and mistakes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda.operators import attention
from opreg.core.steps import bytes_moved
from tests.cuda import host, nvrtc
from tests.cuda.device import gpus
from tests.cuda.host import Host, KernelError, array

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

KERNELS = list(attention.PASSES)
#: The relative error of results and gradients, by the norms of arrays.
ALLOWED = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1e-2}


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


class Run:
    """The result and the gradients of attention, and the steps of its executor."""

    def __init__(self, ctx: mx.Context, dtype: str, arrays: dict[str, np.ndarray], tf32: bool | None = None,
                 **attrs: Any):
        net = mx.sym.contrib.scaled_dot_product_attention(*map(mx.sym.var, arrays), use_mask="mask" in arrays, **attrs)
        types = {name: "bool" if each.dtype == np.bool_ else dtype for name, each in arrays.items()}
        requests = {name: "null" if name == "mask" else "write" for name in arrays}
        self.executor = net.simple_bind(ctx, grad_req=requests, type_dict=types, tf32=tf32,
                                        **{name: each.shape for name, each in arrays.items()})
        for name, each in arrays.items():
            self.executor.arg_dict[name][:] = each
        self.run(arrays)

    def run(self, arrays: dict[str, np.ndarray]) -> None:
        (out,) = self.executor.forward(is_train=True)
        self.executor.backward(mx.nd.array(numbers(*out.shape, seed=9), ctx=out.context, dtype=out.dtype))
        self.found = [out, *[self.executor.grad_dict[name] for name in arrays if name != "mask"]]
        self.found = [each.asnumpy().astype("float64") for each in self.found]

    def far(self, other: Run) -> float:
        """The largest relative difference."""
        return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in zip(self.found, other.found))


def seen(*shape: int) -> np.ndarray:
    """A mask that hides some keys, but never the first."""
    found = numbers(*shape, seed=5) > -0.5
    found[..., 0] = True
    return found


#: Shapes of queries, keys and values, a mask and attributes: tails, several blocks, shared heads, wide heads.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, np.ndarray | None, dict[str, Any]]] = {
    "tails": ((1, 2, 37, 16), (1, 2, 21, 16), 16, None, {}),
    "causal": ((2, 1, 70, 24), (2, 1, 70, 24), 8, None, {"causal": True, "scale": 0.3}),
    "shared heads, truths": ((1, 4, 9, 16), (1, 2, 70, 16), 24, seen(9, 70), {}),
    "filled": ((1, 2, 20, 16), (1, 1, 40, 16), 16, seen(1, 2, 20, 40), {"causal": True, "fill": -1.0}),
    "terms": ((2, 2, 20, 16), (2, 2, 20, 16), 16, numbers(2, 1, 1, 20, seed=6), {}),
    "wide": ((1, 1, 66, 72), (1, 1, 34, 72), 80, None, {}),
}


@needs_compiler
@pytest.mark.parametrize("name, dtype", [
    *[("tails", dtype) for dtype in ALLOWED], ("causal", "float16"), ("shared heads, truths", "bfloat16"),
    ("filled", "float32"), ("terms", "float16"), ("wide", "float32"), ("wide", "bfloat16")])
def test_attention_kernels_equal_the_host(name: str, dtype: str) -> None:
    query, key, features, mask, attrs = CASES[name]
    arrays = {"q": numbers(*query), "k": numbers(*key, seed=1), "v": numbers(*key[:3], features, seed=2)}
    if mask is not None:
        arrays["mask"] = mask
    expected = Run(mx.cpu(), "float64", arrays, **attrs)
    with gpus() as xp:
        found = Run(mx.gpu(0), dtype, arrays, **attrs)
        ran = [kernel for kernel in xp.kernels if kernel in KERNELS]
    assert ran == (KERNELS if name != "wide" or dtype != "float32" else [])
    assert found.far(expected) < ALLOWED[dtype]


@needs_compiler
def test_tf32_allows_less_precise_products() -> None:
    arrays = dict(zip("qkv", (numbers(1, 1, 20, 16, seed=seed) for seed in range(3))))
    expected = Run(mx.cpu(), "float64", arrays)
    with gpus():
        assert 2e-6 < Run(mx.gpu(0), "float32", arrays, tf32=True).far(expected) < 1e-4


@needs_compiler
def test_queries_without_keys_give_nan() -> None:
    arrays = {**dict(zip("qkv", (numbers(1, 1, 8, 8, seed=seed) for seed in range(3)))), "mask": seen(8, 8)}
    arrays["mask"][2] = False
    with np.errstate(invalid="ignore"):
        expected = Run(mx.cpu(), "float32", arrays).found[0]
        with gpus():
            found = Run(mx.gpu(0), "float32", arrays).found[0]
    assert np.isnan(expected[0, 0, 2]).all()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_gradient_drops_what_forward_dropped(dtype: str) -> None:
    """The values are an identity matrix, so the output shows the dropped weights of forward, and the gradient of values
    those of backward. Each run drops other weights, the same ones for the same seed."""
    arrays = {"q": numbers(1, 2, 24, 8), "k": numbers(1, 2, 16, 8, seed=1),
              "v": np.broadcast_to(np.eye(16), (1, 2, 16, 16))}
    with gpus():
        mx.random.seed(3)
        run = Run(mx.gpu(0), dtype, arrays, p=0.4)
        whole = Run(mx.gpu(0), dtype, arrays).found[0]
        weights, _, _, slope = run.found
        g = numbers(1, 2, 24, 16, seed=9)
        kept = weights / whole
        run.run(arrays)
        assert (run.found[0] != weights).any()
        mx.random.seed(3)
        run.run(arrays)
        np.testing.assert_array_equal(run.found[0], weights)
    np.testing.assert_allclose(kept[kept != 0], 1 / 0.6, rtol=1e-5 if dtype == "float32" else 5e-3)
    assert 0.3 < (kept == 0).mean() < 0.5
    expected = np.einsum("bhqk,bhqe->bhke", weights, g)
    np.testing.assert_allclose(slope, expected, atol=1e-5 if dtype == "float32" else 1e-2)


@needs_compiler
def test_memory_grows_linearly_with_the_length() -> None:
    """A step reads each input once and writes each output, and nothing of the size of the scores is in the plan."""
    length, size = 512, 16
    with gpus():
        net = mx.sym.contrib.scaled_dot_product_attention(*map(mx.sym.var, "qkv"))
        executor = net.simple_bind(mx.gpu(0), type_dict=dict.fromkeys("qkv", "float16"),
                                   **dict.fromkeys("qkv", (1, 1, length, size)))
        plan, whole = executor.plan(True), 2 * length * size
        steps = [step for step in (*plan.forward.steps, *plan.backward.steps) if step.kernel == "cuda"]
        moved = [bytes_moved(function) for step in steps if "attention" in step.node.op.name for function in step.run]
        logs = 4 * length
        assert moved == [(3 * whole, whole + logs), (4 * whole + 2 * logs, whole), (4 * whole + 2 * logs, 2 * whole)]
        assert sum(each.size for each in plan._arenas.values()) < 20 * whole < 2 * length * length


@needs_compiler
@pytest.mark.parametrize(("shape", "dtype", "reason"), [
    ((1, 1, 4, 12), "float16", "sizes 12 and 12: expected multiples of 8, up to 128"),
    ((1, 1, 4, 16), "float64", "dtype float64: kernels are compiled for dtypes of 16 and 32 bits")])
def test_unsupported_arrays_are_declined_with_a_reason(shape: tuple[int, ...], dtype: str, reason: str) -> None:
    with gpus():
        net = mx.sym.contrib.scaled_dot_product_attention(*map(mx.sym.var, "qkv"))
        executor = net.simple_bind(mx.gpu(0), type_dict=dict.fromkeys("qkv", dtype), **dict.fromkeys("qkv", shape))
        assert f"cuda declined: {reason}" in str(executor.explain())


# --------------------------------------------------------------------------------------------- the kernels


def launch(device: Host, name: str, queries: int = 19, keys: int = 13) -> list[np.ndarray]:
    """A launch of a kernel with arrays that end where their rows do; its outputs."""
    size = 8
    kind = attention.Kind("float16", size, size, 1, 1, False, True, False)
    q, g = (array(numbers(1, 1, queries, size, seed=seed), np.float16) for seed in (0, 1))
    k, v = (array(numbers(1, 1, keys, size, seed=seed), np.float16) for seed in (2, 3))
    mask, rest = array(seen(queries, keys)), array(np.zeros((1, 1, queries)), np.float32)
    places = [[each, *[np.int64(step // 2) for step in each.strides[:3]]] for each in (g, q, k, v)]
    rules = [mask, *map(np.int64, (0, 0, keys, 1)), rest, rest, np.uint32(0), np.float32(0), np.float32(0.5),
             *map(np.int32, (1, 1, queries, keys, size, size))]
    if name == "attention":
        places, more, outs = places[1:], [], [np.zeros_like(q), np.zeros_like(rest)]
    else:
        more = [rest, rest]
        outs = [np.zeros_like(q)] if name == "attention_query" else [np.zeros_like(k), np.zeros_like(v)]
    outs = [array(each) for each in outs]
    device.RawModule(attention.source(kind, name)).get_function(name)(
        (1,), (128,), (*[each for place in places for each in place], *rules, *more, *outs))
    return outs


@needs_compiler
@pytest.mark.parametrize("name", KERNELS)
def test_no_access_out_of_bounds_and_no_race_between_threads(name: str) -> None:
    found = []
    for sanitizer, order in (("address", "forward"), ("thread", "reversed")):
        device = Host()
        outs = launch(device, name)
        device.run(sanitizer, order)
        found.append([np.asarray(out, np.float32) for out in outs])
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)
        assert np.isfinite(one).all() and one.any()


@needs_compiler
@pytest.mark.parametrize(("replaced", "by", "sanitizer", "message"), [
    ("first + row < from.rows", "first + row <= from.rows", "address", "heap-buffer-overflow"),
    ("        __syncthreads();\n        Sums scores", "        Sums scores", "thread", "data race")])
def test_the_emulator_finds_planted_races_and_bad_accesses(replaced: str, by: str, sanitizer: str,
                                                           message: str) -> None:
    device = Host()
    launch(device, "attention")
    device.rewrite(replaced, by)
    with pytest.raises(KernelError, match=message):
        device.run(sanitizer)


@needs_nvrtc
@pytest.mark.parametrize("name", KERNELS)
def test_attention_kernels_compile_for_gpus_with_few_spills(name: str) -> None:
    """One kind is compiled for the oldest architecture with these tensor cores, and the others for the newest, since no
    kernel depends on the architecture. The first kind is the one that compiles fastest."""
    kinds = [attention.Kind(dtype, size, size, parts, mask, mask == 1, True, drops)
             for dtype, size, parts, mask, drops in (
                 ("bfloat16", 64, 1, 0, False), ("float16", 128, 1, 1, True), ("float32", 64, 3, 0, False))]
    texts = [attention.source(kind, name) for kind in kinds]
    compiled = nvrtc.compile(texts[:1], 80) + nvrtc.compile(texts[1:], nvrtc.ARCHITECTURES[-1])
    for kind, made in zip(kinds, compiled, strict=True):
        assert made.spills + made.stack <= 128 and made.registers <= 255, kind
        assert any(access.startswith("ld.global") and (".v4" in access or ".v2" in access) for access in made.accesses)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16], ids=str)
def test_unaligned_rows_are_left_to_the_reference(dtype: Any) -> None:
    assert not attention._lies_in_rows(array(np.zeros((1, 1, 4, 17)), dtype)[..., 1:])
    assert attention._lies_in_rows(array(np.zeros((1, 1, 4, 24)), dtype)[..., 8:])

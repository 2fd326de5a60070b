"""Dropout on a GPU: the random numbers of its kernel, their counter, and replay."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import elementwise
from opreg.backends.cuda.layout import DRAW, Layout, Operand, Reach
from opreg.backends.cuda.operators import dropout
from opreg.backends.cuda.operators.private import dropped
from opreg.core import generators
from opreg.core.steps import bytes_moved
from opreg.elementwise import counting
from tests.cuda import host, nvrtc
from tests.cuda.device import gpus
from tests.cuda.host import Host, KernelError, array

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

BFLOAT = np.dtype(ml_dtypes.bfloat16)

KEY = 0x123456789ABCDEF0
#: Counter, key and result of Philox4x32-10, as published with Random123.
ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
WORDS = """
extern "C" __global__ void words(const unsigned* given, unsigned* found, unsigned count) {
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        const unsigned* at = given + 6 * i;
        const Words made = philox(Words{{at[0], at[1], at[2], at[3]}}, at[4], at[5]);
        for (int word = 0; word < 4; ++word) found[4 * i + word] = made.at[word];
    }
}
"""


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def philox(counter: list[int], key: list[int]) -> list[int]:
    """The generator Philox, in Python."""
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return counter


def kept(key: int, first: int, count: int, share: float) -> np.ndarray:
    """Mask of the elements that dropout keeps, from the numbers of its counter."""
    drawn = [philox([place & 0xFFFFFFFF, place >> 32, 0, 0], [key & 0xFFFFFFFF, key >> 32])
             for place in range(first, first + -(-count // 4))]
    uniform = (np.array(drawn, np.uint32).reshape(-1)[:count] >> 8) * np.float32(2.0 ** -24)
    return uniform < np.float32(share)


@needs_compiler
def test_philox_gives_the_published_answers() -> None:
    given = array([[*words(counter), *words(key)] for counter, key, _ in ANSWERS], np.uint32)
    found = array(np.zeros((3, 4)), np.uint32)
    device = Host()
    device.RawModule(WORDS).get_function("words")((1,), (2,), (given, found, np.uint32(3)))
    device.run()
    assert found.tolist() == [words(expected) for _, _, expected in ANSWERS]
    assert found.tolist() == [philox(words(counter), words(key)) for counter, key, _ in ANSWERS]


def launch(device: Host, dtype: Any, count: int, start: int | np.ndarray, share: float = 0.6, lanes: int | None = None,
           blocks: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Data, output, mask and counter of a launch of the kernel, which begins at a position or reads a counter."""
    dtype = np.dtype(dtype)
    data = array(np.linspace(-2, 3, count), dtype)
    out, mask = (array(np.full(count, np.nan), dtype) for _ in range(2))
    counter = start if isinstance(start, np.ndarray) else array([KEY, start], np.uint64)
    text = dropout.source(dtype, True, True, True, 16 // dtype.itemsize if lanes is None else lanes, False)
    factor = np.asarray(1 / share, dtype).astype("float64" if dtype.itemsize == 8 else "float32")[()]
    place = array(np.zeros(2), np.uint64)
    device.RawModule(dropout.CLAIM).get_function("claim")((1,), (1,), (counter, place, np.uint64(-(-count // 4))))
    device.RawModule(text).get_function("dropout")(
        (blocks,), (256,), (data, out, mask, place, np.float32(share), factor, np.uint32(count)))
    return data, out, mask, counter


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", BFLOAT, "float32", "float64"], ids=str)
def test_elements_are_dropped_and_the_counter_advances(dtype: Any) -> None:
    device = Host()
    cases = [(count, start, launch(device, dtype, count, start, lanes=lanes))
             for count, start, lanes in ((1, 0, None), (7, 5, None), (4099, 2 ** 32 - 3, None), (4099, 1, 1))]
    device.run("address")
    for count, start, (data, out, mask, counter) in cases:
        expected = np.where(kept(KEY, start, count, 0.6), np.asarray(1 / 0.6, data.dtype), 0)
        np.testing.assert_array_equal(np.asarray(mask, float), expected.astype(data.dtype).astype(float))
        np.testing.assert_array_equal(np.asarray(out, float), np.asarray(data * mask, float))
        assert counter.tolist() == [KEY, start + -(-count // 4)]


@needs_compiler
def test_a_repeated_launch_draws_new_values() -> None:
    device = Host()
    _, _, mask, counter = launch(device, "float32", 1000, 0)
    device.launches *= 3
    device.run("address", "reversed")
    assert counter.tolist() == [KEY, 750]
    np.testing.assert_array_equal(mask != 0, kept(KEY, 500, 1000, 0.6))


@needs_compiler
@pytest.mark.parametrize("order", ["forward", "reversed"])
@pytest.mark.parametrize("counts", [(9000, 9000), (9000, 700), (700, 9000, 300)], ids=str)
def test_concurrent_launches_draw_from_separate_ranges(counts: tuple[int, ...],
                                                       order: str) -> None:
    device = Host()
    counter = array([KEY, 5], np.uint64)
    masks = []
    for device.stream, count in enumerate(counts):
        masks += [launch(device, "float32", count, counter, blocks=-(-count // 1024))[2] for _ in range(2)]
    device.run("address", order)
    total = sum(-(-mask.size // 4) for mask in masks)
    assert counter.tolist() == [KEY, 5 + total]
    sequence = kept(KEY, 5, 4 * total, 0.6)
    drawn = np.zeros(total, int)
    for mask in masks:
        (start,) = [place for place in range(total - mask.size // 4 + 1)
                    if (sequence[4 * place:4 * place + mask.size] == (mask != 0)).all()]
        drawn[start:start + -(-mask.size // 4)] += 1
    assert (drawn == 1).all()


@needs_compiler
def test_launches_that_do_not_claim_draw_the_same() -> None:
    """The planted mistake: the counter is read and written in two steps, and two streams read it before either
    writes."""
    device = Host()
    counter = array([KEY, 0], np.uint64)
    masks = []
    for device.stream in range(2):
        masks.append(launch(device, "float32", 900, counter)[2])
    device.rewrite("atomicAdd(counter + 1, count)", "counter[1]")
    device.run("address")
    np.testing.assert_array_equal(masks[0], masks[1])


@needs_compiler
def test_the_dropped_share_is_as_expected() -> None:
    device = Host()
    masks = {share: launch(device, "float32", 40000, 7, share)[2] for share in (0.1, 0.5, 0.9)}
    device.run("")
    for share, mask in masks.items():
        found = mask != 0
        assert abs(found.mean() - share) < 5 * np.sqrt(share * (1 - share) / 40000)
        assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.025  # neighbouring masks are independent


@needs_nvrtc
def test_it_compiles_for_gpus_and_reads_16_bytes_at_once() -> None:
    texts = [dropout.source(np.dtype(dtype), data, data, mask, 16 // np.dtype(dtype).itemsize, far)
             for dtype in ("float16", BFLOAT, "float32", "float64")
             for data, mask, far in ((True, True, False), (True, False, True), (False, True, False))]
    *drawing, claiming = nvrtc.compile([*texts, dropout.CLAIM])
    assert claiming.spills == claiming.stack == 0
    for i, made in enumerate(drawing):
        assert made.spills == made.stack == 0 and made.registers <= 64
        assert any(access.startswith("st.global.v") for access in made.accesses)
        assert i % 3 == 2 or any(".v4" in access or ".v2" in access for access in made.accesses if "ld" in access)


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_an_element_wise_kernel_that_draws_stays_in_registers(dtype: str) -> None:
    number = np.dtype(dtype)
    operands = (Operand(number, Reach.FLAT, False, False), Operand(DRAW, Reach.DRAWN, False, False),
                Operand(number, Reach.FLAT, True, False))
    expression = dropped.rules.expression({"share": 0.75, "factor": 4 / 3})
    text = elementwise.source(expression, Layout((0, 1), (2,), operands, 1, 16 // number.itemsize, False))
    made, = nvrtc.compile([text])
    assert made.spills == made.stack == 0 and made.registers <= 64
    assert any(access.startswith("st.global.v") for access in made.accesses)


# ------------------------------------------------------------------------------------------- whole executors


def bound(check_kernels: bool = False, **attrs: Any) -> Any:
    net = mx.sym.Dropout(mx.sym.var("x"), name="drop", **attrs)
    return net.simple_bind(mx.gpu(0), x=(40, 50), check_kernels=check_kernels)


def mask_of(executor: Any) -> np.ndarray:
    executor.arg_dict["x"][:] = 1
    return executor.forward(is_train=True)[0].asnumpy()


@needs_compiler
def test_an_executor_draws_anew_each_time_and_the_same_for_the_same_seed() -> None:
    with gpus() as xp:
        executor = bound(p=0.25)
        mx.random.seed(5)
        first, second = mask_of(executor), mask_of(executor)
        assert xp.kernels == ["claim", "elementwise"] * 2
        assert (first != second).any() and set(np.unique(first)) == {0.0, np.float32(1 / 0.75)}
        mx.random.seed(5)
        np.testing.assert_array_equal(mask_of(executor), first)
        mx.random.seed(6)
        assert (mask_of(executor) != first).any()
        state = generators.state("gpu", 0)
        third = mask_of(executor)
        generators.set_state(state, "gpu", 0)
        np.testing.assert_array_equal(mask_of(executor), third)


@needs_compiler
def test_backward_multiplies_by_the_mask_of_the_last_forward_also_where_that_is_repeated() -> None:
    with gpus() as xp:
        executor = bound(p=0.5)
        found = mask_of(executor)
        for _ in range(2):  # the second backward runs forward again, with its last random numbers
            executor.backward(mx.nd.ones((40, 50), ctx=mx.gpu(0)))
            np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), found)
        assert xp.kernels == ["claim", "elementwise", "elementwise"] * 2
        assert (mask_of(executor) != found).any()


@needs_compiler
def test_elements_along_given_axes_are_dropped_together() -> None:
    with gpus() as xp:
        found = mask_of(bound(p=0.5, axes=(1,)))
        assert xp.kernels == ["claim", "dropout", "elementwise"]
    assert (found == found[:, :1]).all() and 0 < (found[:, 0] == 0).sum() < 40


@needs_compiler
def test_all_may_be_dropped_and_a_gradient_of_a_loop_draws_the_same_again() -> None:
    with gpus():
        assert (mask_of(bound(p=1.0)) == 0).all()
        data, state = mx.sym.var("data"), mx.sym.var("state")
        outs, _ = mx.sym.contrib.foreach(lambda each, total: (mx.sym.Dropout(each, p=0.5) + total * 0, total), data,
                                         state)
        executor = outs.simple_bind(mx.gpu(0), data=(3, 200), state=(200,))
        executor.arg_dict["data"][:] = 1
        dropped = executor.forward(is_train=True)[0].asnumpy()
        executor.backward(mx.nd.ones((3, 200), ctx=mx.gpu(0)))
        np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), dropped)
        assert (dropped[0] != dropped[1]).any()


def test_dropout_of_nothing_declines_with_the_reason() -> None:
    with gpus():
        executor = bound(p=0.0)
        assert "nothing is dropped" in str(executor.explain())


@needs_compiler
def test_random_values_are_not_compared_with_the_reference() -> None:
    with gpus():
        assert set(np.unique(mask_of(bound(p=0.5, axes=(1,), check_kernels=True)))) == {0.0, 2.0}


# ------------------------------------------------------------------------------------- plans without a mask


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("shape", "name"), [((40, 50), "flat"), ((7, 3), "with a tail"), ((5, 9), "transposed"),
                                             ((1, 1), "one element")], ids=str)
def test_the_gradient_draws_again_what_forward_dropped(shape: tuple[int, ...], name: str, dtype: str) -> None:
    """Dropout between neighbours that fuse with it."""
    x, y = mx.sym.var("x"), mx.sym.var("y")
    inner = mx.sym.transpose(x) if name == "transposed" else x
    net = mx.sym.tanh(mx.sym.Dropout(inner * 2, p=0.25, name="drop")) + y
    with gpus() as xp:
        turned = shape[::-1] if name == "transposed" else shape
        executor = net.simple_bind(mx.gpu(0), type_dict={"x": dtype, "y": dtype}, x=shape, y=turned)
        executor.arg_dict["x"][:] = 0.25
        executor.arg_dict["y"][:] = 0
        key, place = map(int, generators.state("gpu", 0)[1].get())
        dropped = kept(key, place, math.prod(shape), 0.75).reshape(turned) / 0.75
        out = executor.forward(is_train=True)[0].asnumpy().astype("float64")
        executor.backward(mx.nd.ones(turned, mx.gpu(0), dtype))
        slope = executor.grad_dict["x"].asnumpy().astype("float64")
        assert "dropout" not in xp.kernels
    tolerance = 1e-12 if dtype == "float64" else 1e-6 if dtype == "float32" else 2e-2
    np.testing.assert_allclose(out, np.tanh(0.5 * dropped), atol=tolerance)
    expected = 2 * dropped * (1 - np.tanh(0.5 * dropped) ** 2)
    np.testing.assert_allclose(slope.T if name == "transposed" else slope, expected, atol=4 * tolerance)


@needs_compiler
def test_masks_are_not_stored_in_memory() -> None:
    """A sum of an array and a dropout's result reads both arrays and writes one; its gradient reads one and writes
    one."""
    x, y = mx.sym.var("x"), mx.sym.var("y")
    net = mx.sym.BlockGrad(y) + mx.sym.Dropout(x, p=0.25)
    with gpus():
        executor = net.simple_bind(mx.gpu(0), x=(40, 50), y=(40, 50))
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((40, 50), mx.gpu(0)))
        plan, whole = executor.plan(True), 4 * 40 * 50
        for half, read, written in ((plan.forward, 2 * whole, whole), (plan.backward, whole, whole)):
            moved = [bytes_moved(function) for step in half.steps if step.node is not None for function in step.run]
            found = tuple(map(sum, zip(*moved)))
            assert read <= found[0] <= read + 64 and written <= found[1] <= written + 64


@needs_compiler
@pytest.mark.parametrize("read", ["mask", "axes"])
def test_a_mask_that_another_operator_reads_is_stored(read: str) -> None:
    drop = mx.sym.Dropout(mx.sym.var("x"), p=0.5, axes=(1,) if read == "axes" else (), name="drop")
    ((node, _),) = drop._entries
    net = mx.sym.Symbol([(node, 0), (node, 1)]) if read == "mask" else drop
    with gpus() as xp:
        executor = net.simple_bind(mx.gpu(0), x=(4, 6))
        found = mask_of(executor)
        assert "dropout" in xp.kernels
        if read == "mask":
            np.testing.assert_array_equal(executor.outputs[1].asnumpy(), found)


@needs_compiler
def test_its_kernel_is_checked_against_the_reference_which_draws_the_same() -> None:
    with gpus():
        executor = bound(p=0.5, check_kernels=True)
        assert set(np.unique(mask_of(executor))) == {0.0, 2.0}
        executor.backward(mx.nd.ones((40, 50), mx.gpu(0)))
        rows = executor.kernel_report().rows
        assert [(row.half, row.runs, row.absolute) for row in rows] == [("forward", 1, 0), ("backward", 1, 0)]


def test_the_reference_gives_the_published_answers() -> None:
    expected = (np.array(words(ANSWERS[0][2]), np.uint32) >> 8) * np.float32(2.0 ** -24)
    np.testing.assert_array_equal(counting.uniform(np, np.zeros(2, np.uint64), 4), expected)
    found = counting.uniform(np, np.array([KEY, 2 ** 32 - 3], np.uint64), 4099) < np.float32(0.6)
    np.testing.assert_array_equal(found, kept(KEY, 2 ** 32 - 3, 4099, 0.6))


@needs_compiler
def test_a_read_out_of_bounds_is_found() -> None:
    device = Host()
    launch(device, "float32", 7, 0)
    device.rewrite("at + lane < total", "at + lane <= total")
    with pytest.raises(KernelError, match="heap-buffer-overflow"):
        device.run("address")

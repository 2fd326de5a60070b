"""Kernels of convolutions, pooling and dense layers agree with the reference kernels."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg import symbol
from opreg.backends.onednn import engine, shared_library
from opreg.backends.onednn.operators import convolution as onednn_convolution
from opreg.backends.onednn.primitives import Pooling
from opreg.core.launch import Call, Kernel
from opreg.core.registry import get
from opreg.errors import OpError
from opreg.ndarray import array, cpu
from opreg.ndarray.autograd import record
from opreg.ndarray.context import Context
from tests.backends.kernels import lacking, skip_lacking
from tests.cuda import strict


@pytest.fixture(autouse=True, scope="module")
def _any_size() -> Iterator[None]:
    """Lets the library compute small arrays, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onednn_convolution, "LEAST", 0)
        yield


FAST = pytest.mark.skipif(shared_library.missing() is not None, reason="needs oneDNN")


def kernel(op: str, name: str) -> Kernel:
    return next(each for each in get(op).kernels if each.name == name)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def call(op: str, ins: list[Any], attrs: dict[str, Any], xp: Any = np) -> Call:
    return Call(get(op), get(op).complete(attrs), ins, [], [], xp, cpu(), True, memo={"onednn": True})


def apply(op: str, name: str, ins: list[np.ndarray], attrs: dict[str, Any], out: Any = None) -> np.ndarray:
    """Results of a kernel that returns them; the kernel has to accept the call."""
    found, full = kernel(op, name), get(op).complete(attrs)
    reason = None if found.accepts is None else found.accepts(call(op, ins, attrs))
    skip_lacking(reason)
    assert reason is None, reason
    return found.rule.function(np, *ins, **found.rule.select(full), out=out)


def declines(op: str, name: str, ins: list[Any], attrs: dict[str, Any], xp: Any = np) -> str | None:
    found = kernel(op, name)
    assert found.accepts is not None
    return found.accepts(call(op, ins, attrs, xp))


def close(found: Any, expected: Any) -> None:
    """Asserts that arrays are equal up to rounding, with NaN and infinities in the same places."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    finite = expected[np.isfinite(expected)]
    scale = float(np.abs(finite).max()) if finite.size else 1.0
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5 * max(scale, 1e-3))


# ------------------------------------------------------------------------------------------ convolutions


def convolution_case(op: str, x: tuple, kernel: tuple, filters: int, layout: str | None = None, **attrs: Any
                     ) -> tuple[list[np.ndarray], np.ndarray, dict[str, Any]]:
    """Inputs of an operator, a gradient of its output, and its attributes; ``x`` has channels on axis 1."""
    groups = attrs.get("num_group", 1)
    attrs = {"kernel": kernel, "num_filter": filters, "layout": layout, "no_bias": False, **attrs}
    ends = (filters, x[1] // groups) if op == "Convolution" else (x[1], filters // groups)
    shapes = [x, (*ends, *kernel), (filters,)]
    if layout and layout[-1] == "C":
        shapes = [(s[0], *s[2:], s[1]) if len(s) > 1 else s for s in shapes]
    ins = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    _, (out,) = get(op).infer_shapes([a.shape for a in ins], [None], get(op).complete(attrs))
    assert out is not None
    return ins, numbers(*out, seed=7), attrs


def steps(op: str, ins: list[np.ndarray], g: np.ndarray) -> list[tuple[str, list[np.ndarray]]]:
    x, w, *_ = ins
    return [(op, ins), (f"_backward_{op}_data", [g, w, x]), (f"_backward_{op}_weight", [g, x, w])]


CASES = [
    ("Convolution", (2, 3, 9, 8), (3, 3), 5, {"pad": (1, 1)}),
    ("Convolution", (2, 16, 9, 8), (3, 3), 32, {"pad": (1, 1)}),
    ("Convolution", (2, 17, 9, 8), (5, 3), 19, {"stride": (2, 1), "pad": (2, 0)}),
    ("Convolution", (2, 8, 11, 10), (3, 3), 8, {"dilate": (2, 3), "pad": (2, 3)}),
    ("Convolution", (2, 8, 7, 7), (3, 3), 8, {"num_group": 8, "pad": (1, 1)}),
    ("Convolution", (2, 32, 7, 7), (3, 3), 64, {"num_group": 2, "pad": (1, 1)}),
    ("Convolution", (2, 4, 7, 7), (1, 1), 8, {"stride": (2, 2)}),
    ("Convolution", (2, 4, 19), (4,), 6, {"stride": (3,), "pad": (1,)}),
    ("Convolution", (1, 4, 5, 6, 7), (3, 2, 3), 6, {"pad": (1, 0, 1)}),
    ("Convolution", (2, 6, 9, 8), (3, 3), 5, {"layout": "NHWC", "pad": (1, 1)}),
    ("Convolution", (2, 8, 9, 8), (3, 3), 16, {"layout": "NHWC", "num_group": 2}),
    ("Convolution", (1, 4, 5, 6, 7), (3, 2, 3), 6, {"layout": "NDHWC"}),
    ("Convolution", (1, 3, 8, 8), (3, 3), 4, {"stride": (3, 3)}),  # no window reads the last rows and columns
    ("Deconvolution", (2, 6, 5, 4), (4, 4), 3, {"stride": (2, 2), "pad": (1, 1)}),
    ("Deconvolution", (2, 16, 5, 4), (3, 3), 16, {"stride": (2, 3), "adj": (1, 2)}),
    ("Deconvolution", (2, 32, 5, 4), (3, 3), 32, {"num_group": 2}),
    ("Deconvolution", (2, 6, 5, 4), (3, 2), 3, {"layout": "NHWC", "stride": (2, 1)}),
    ("Deconvolution", (2, 4, 9), (3,), 6, {"dilate": (2,)}),
]


@FAST
@pytest.mark.parametrize("case", CASES, ids=str)
def test_onednn_convolution_equals_the_reference(case: Any) -> None:
    op, x, window, filters, attrs = case
    ins, g, attrs = convolution_case(op, x, window, filters, **attrs)
    reasons = []
    for name, arrays in steps(op, ins, g):
        expected = apply(name, "reference", arrays, attrs)
        reasons.append(declines(name, "onednn, a call", arrays, attrs))
        if reasons[-1] is None:
            close(apply(name, "onednn, a call", arrays, attrs), expected)
    assert None in reasons or all(map(lacking, reasons))


@st.composite
def convolutions(draw: Any) -> Any:
    rank = draw(st.integers(1, 3))
    least, many = st.integers(1, 3), lambda element: draw(st.tuples(*[element] * rank))
    groups = draw(least)
    window, dilate = many(least), many(least)
    pad = many(st.integers(0, 2))
    size = tuple(draw(st.integers(max(1, (k - 1) * d + 1 - 2 * p), 9)) for k, d, p in zip(window, dilate, pad))
    layout = draw(st.sampled_from([None, ("NCW", "NHWC", "NDHWC")[rank - 1]]))
    return ((draw(least), groups * draw(st.sampled_from([1, 2, 16])), *size), window,
            groups * draw(st.sampled_from([1, 3, 16])),
            {"stride": many(least), "dilate": dilate, "pad": pad, "num_group": groups, "layout": layout,
             "no_bias": draw(st.booleans())})


@FAST
@settings(deadline=None, max_examples=40, derandomize=True)
@given(convolutions(), st.sampled_from(["Convolution", "Deconvolution"]), st.sampled_from([None, np.nan, np.inf]))
def test_onednn_equals_the_reference_for_random_convolutions(case: Any, op: str, odd: float | None) -> None:
    x, window, filters, attrs = case
    if op == "Deconvolution":
        assume(all((n - 1) * s + (k - 1) * d + 1 > 2 * p for n, s, k, d, p in
                   zip(x[2:], attrs["stride"], window, attrs["dilate"], attrs["pad"])))
    ins, g, attrs = convolution_case(op, x, window, filters, **attrs)
    ins = ins[:2] if attrs["no_bias"] else ins
    if odd is not None:
        for a in (ins[0], g):
            a.flat[a.size // 2] = odd
    for name, arrays in steps(op, ins, g):
        with np.errstate(all="ignore"):
            expected = apply(name, "reference", arrays, attrs)
            if declines(name, "onednn, a call", arrays, attrs) is None:
                found = apply(name, "onednn, a call", arrays, attrs)
                if name.endswith("weight"):  # the reference also multiplies NaN and infinities by zeros of the padding
                    found[~np.isfinite(expected)] = expected[~np.isfinite(expected)]
                close(found, expected)


@FAST
def test_onednn_takes_arrays_of_any_layout() -> None:
    """Inputs may be transposed, reversed or unaligned; results may be written to a part of an array."""
    (x, w, b), _, attrs = convolution_case("Convolution", (2, 6, 8, 8), (3, 3), 5)
    expected = apply("Convolution", "reference", [x, w, b], attrs)
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    assert not odd.flags.aligned
    room = np.zeros((2, 5, 6, 12), np.float32)
    for other in (x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2), x[:, :, ::-1].copy()[:, :, ::-1], odd):
        close(apply("Convolution", "onednn, a call", [other, w, b], attrs), expected)
        assert apply("Convolution", "onednn, a call", [other, w, b], attrs, room[..., ::2]).base is room
        close(room[..., ::2], expected)
        assert not room[..., 1::2].any()


@FAST
def test_plans_run_onednn_convolutions() -> None:
    """Executors choose the library, name it, and agree with eager calls and with the reference kernels."""
    net = symbol.Variable("data")
    net = symbol.Convolution(net, kernel=(3, 3), num_filter=8, pad=(1, 1), name="first")
    net = symbol.Pooling(symbol.relu(net), kernel=(2, 2), stride=(2, 2), pool_type="max", name="most")
    net = symbol.Deconvolution(net, kernel=(2, 2), stride=(2, 2), num_filter=4, no_bias=False, name="wider")
    net = symbol.Pooling(net, kernel=(3, 3), pool_type="avg", name="mean")
    net = symbol.FullyConnected(net, num_hidden=300, name="dense")
    found = {}
    for there in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not there:
                patch.setattr(shared_library, "library", lambda: "oneDNN was not found")
            executor = net.simple_bind(cpu(), data=(6, 3, 12, 12))
            for i, value in enumerate(executor.arg_arrays):
                value[:] = numbers(*value.shape, seed=i)
            executor.forward(is_train=True)
            executor.backward(array(numbers(6, 300, seed=9)))
            found[there] = [each.asnumpy() for each in (*executor.outputs, *executor.grad_arrays)]
            for name in ("first", "most", "wider", "mean", "dense"):
                step = next(each for each in executor.plan(True).forward.steps if each.node.name == name)
                assert (step.kernel == "onednn") is there or (there and lacking(str(step.declined)))
            assert ("declined: oneDNN was not found" in executor.explain()) is not there
    for one, other in zip(found[True], found[False], strict=True):
        close(one, other)


@FAST
def test_recorded_calls_run_onednn() -> None:
    x, w = array(numbers(2, 3, 8, 8)), array(numbers(4, 3, 3, 3, seed=1))
    x.attach_grad()
    w.attach_grad()
    with record():
        y = get("Convolution")(x, w, kernel=(3, 3), num_filter=4, no_bias=True)
    y.backward()
    attrs = {"kernel": (3, 3), "num_filter": 4, "no_bias": True}
    g = np.ones(y.shape, np.float32)
    close(x.grad.asnumpy(), apply("_backward_Convolution_data", "reference", [g, w.asnumpy(), x.asnumpy()], attrs))
    close(w.grad.asnumpy(), apply("_backward_Convolution_weight", "reference", [g, x.asnumpy(), w.asnumpy()], attrs))


@FAST
def test_threads_run_onednn_at_the_same_time() -> None:
    """Calls of one shape in several threads do not disturb each other."""
    cases = [convolution_case("Convolution", (2, 6, 8, 8), (3, 3), 5) for _ in range(4)]
    for i, (ins, _, _) in enumerate(cases):
        ins[0] += i
    skip_lacking(declines("Convolution", "onednn, a call", cases[0][0], cases[0][2]))
    expected = [apply("Convolution", "reference", ins, attrs) for ins, _, attrs in cases]
    found: list[list[np.ndarray]] = [[] for _ in cases]

    def work(i: int) -> None:
        ins, _, attrs = cases[i]
        for _ in range(20):
            found[i].append(apply("Convolution", "onednn, a call", ins, attrs))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for many, one in zip(found, expected):
        assert len(many) == 20
        for each in many:
            close(each, one)


@FAST
def test_the_cache_of_onednn_primitives_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn_convolution, "MOST", 2)
    onednn_convolution._WORKS.by_kind.clear()
    for n in range(5, 10):
        ins, _, attrs = convolution_case("Convolution", (1, 2, n, n), (3, 3), 2)
        close(apply("Convolution", "onednn, a call", ins, attrs), apply("Convolution", "reference", ins, attrs))
        assert len(onednn_convolution._WORKS.by_kind) <= 2


@FAST
def test_a_forked_child_does_not_use_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that were bound before the fork do not use the library in the child, either."""
    data = symbol.Variable("data")
    executor = symbol.Convolution(data, kernel=(3, 3), num_filter=4, name="c").simple_bind(cpu(), data=(1, 2, 5, 5))
    for i, value in enumerate(executor.arg_arrays):
        value[:] = numbers(*value.shape, seed=i)
    expected = executor.forward()[0].asnumpy()
    skip_lacking(executor.explain(False))
    assert "c [channels last]: onednn ->" in executor.explain(False)
    monkeypatch.setattr(shared_library, "_FORKED", [True])
    monkeypatch.setattr(engine.Work, "run", None)
    executor.outputs[0][:] = 0
    close(executor.forward()[0].asnumpy(), expected)
    assert "forked" in str(shared_library.missing())


# ------------------------------------------------------------------------------------------ declined calls


@pytest.mark.parametrize("op, ins, attrs", [
    ("Convolution", [(2, 3, 8, 8), (4, 3, 3, 3), (4,)], {"kernel": (3, 3), "num_filter": 4}),
    ("Pooling", [(2, 3, 8, 8)], {"kernel": (2, 2)}),
])
def test_onednn_kernels_decline_without_the_library(op: str, ins: Any, attrs: Any,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    names = [each.name for each in get(op).kernels if each.name.startswith("onednn") and not each.bound]
    assert names
    with monkeypatch.context() as patch:
        patch.setattr(shared_library, "missing", lambda: "oneDNN was not found")
        for name in names:
            assert declines(op, name, [numbers(*shape) for shape in ins], attrs) == "oneDNN was not found"
            wide = [numbers(*shape).astype(np.float64) for shape in ins]
            assert "float64" in str(declines(op, name, wide, attrs))
            there = [array(numbers(*shape), Context("strict", 0))._data for shape in ins]
            assert "host" in str(declines(op, name, there, attrs, strict.xp))


@FAST
def test_onednn_computes_dense_layers_of_plans_with_convolutions():
    """BLAS computes all products of a plan without convolutions, if nothing is tried."""
    data = symbol.Variable("data")
    dense = symbol.FullyConnected(symbol.FullyConnected(data, num_hidden=240), num_hidden=240, name="dense")
    text = dense.simple_bind(cpu(), data=(64, 240)).explain()
    assert text.count("onednn declined: OPREG_TUNE=0 allows no trial") == 6 and ": onednn ->" not in text


@FAST
def test_onednn_declines_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn_convolution, "LEAST", 1 << 16)
    ins, _, attrs = convolution_case("Convolution", (2, 6, 8, 8), (3, 3), 5)
    assert declines("Convolution", "onednn, a call", ins, attrs) == "it is small"
    assert declines("Pooling", "onednn, a call", ins[:1], {"kernel": (2, 2)}) == "it is small"
    large, _, attrs = convolution_case("Convolution", (2, 16, 16, 16), (3, 3), 16)
    assert declines("Convolution", "onednn, a call", large, attrs) is None


@FAST
@pytest.mark.parametrize("op, ins, attrs, reason", [
    ("Convolution", [(2, 3, 8, 8), (4, 3, 1, 1)], {"kernel": (1, 1), "no_bias": True}, "product"),
    ("Convolution", [(2, 3, 3, 3), (4, 3, 3, 3)], {"kernel": (3, 3), "no_bias": True}, "product"),
    ("Convolution", [(0, 3, 8, 8), (4, 3, 3, 3)], {"kernel": (3, 3), "no_bias": True}, "no numbers"),
    ("Pooling", [(2, 3, 8, 8)], {"kernel": (2, 2), "pool_type": "sum"}, "pool_type"),
    ("Pooling", [(2, 3, 8, 8)], {"kernel": (2, 2), "pool_type": "lp", "p_value": 2}, "pool_type"),
    ("Pooling", [(2, 3, 8, 8)], {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full",
                                 "pool_type": "avg"}, "beyond"),
])
def test_onednn_gives_the_reason_for_declining_a_call(op: str, ins: Any, attrs: Any, reason: str) -> None:
    attrs = {"num_filter": 4, **attrs} if op == "Convolution" else attrs
    assert reason in str(declines(op, "onednn, a call", [numbers(*shape) for shape in ins], attrs))


def test_a_file_that_is_no_library_is_not_loaded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "libdnnl.so.3"
    path.write_bytes(b"nothing")
    monkeypatch.setattr(shared_library, "_candidates", lambda: iter([str(path)]))
    assert "does not load" in str(shared_library.library.__wrapped__())
    monkeypatch.setattr(shared_library, "_candidates", lambda: iter(["there-is-no-such-library.so"]))
    assert shared_library.library.__wrapped__() == "oneDNN was not found"


@FAST
def test_work_refuses_arrays_that_do_not_fit() -> None:
    geometry = Pooling((1, 1, 4, 4), (1, 1, 2, 2), (2, 2), (2, 2), (0, 0), "max")
    work = engine.Work("forward", geometry, ((16, 16, 4, 1), (4, 4, 2, 1)))
    x, y = numbers(1, 1, 4, 4), np.empty((1, 1, 2, 2), np.float32)
    for arrays in ((x, x), (y, y), (x.astype(np.float64), y), (numbers(1, 1, 4, 8)[..., ::2], y), (x[:, :, ::-1], y)):
        with pytest.raises(OpError, match="does not fit"):
            work.bind(arrays, [])
    with pytest.raises(OpError, match="no arrays"):
        work.run()
    work.bind((x, y), [])()
    np.testing.assert_array_equal(y, x.reshape(2, 2, 2, 2).max((1, 3)).reshape(1, 1, 2, 2))
    work.release()
    with pytest.raises(OpError, match="no arrays"):
        work.run()


@FAST
def test_errors_of_the_library_are_exceptions() -> None:
    geometry = Pooling((1, 1, 4, 4), (1, 2, 2, 2), (2, 2), (2, 2), (0, 0), "max")
    strides = (16, 16, 4, 1), (8, 4, 2, 1)
    assert "invalid arguments" in str(engine.possible("forward", geometry, strides))
    with pytest.raises(OpError, match="invalid arguments"):
        engine.Work("forward", geometry, strides)


# ----------------------------------------------------------------------------------------------- pooling


@st.composite
def poolings(draw: Any) -> Any:
    rank = draw(st.integers(1, 3))
    window = draw(st.tuples(*[st.integers(1, 3)] * rank))
    pad = tuple(draw(st.integers(0, k - 1)) for k in window)
    size = tuple(draw(st.integers(max(1, k - 2 * p), 8)) for k, p in zip(window, pad))
    last = draw(st.booleans())
    x = (2, *size, 3) if last else (2, 3, *size)
    return x, {"kernel": window, "pad": pad, "stride": draw(st.tuples(*[st.integers(1, 3)] * rank)),
               "layout": ("NWC", "NHWC", "NDHWC")[rank - 1] if last else None,
               "pool_type": draw(st.sampled_from(["max", "avg"])),
               "pooling_convention": draw(st.sampled_from(["valid", "full"])),
               "count_include_pad": draw(st.sampled_from([None, False, True])),
               "global_pool": draw(st.sampled_from([False, False, True]))}


@FAST
@settings(deadline=None, max_examples=50, derandomize=True)
@given(poolings(), st.sampled_from([[0.5, 1, 2], [0.5, np.nan], [1, np.inf, -np.inf], [-np.inf, np.nan]]))
def test_onednn_pooling_equals_the_reference(case: Any, values: list[float]) -> None:
    """Windows with several equal maxima, and windows of NaN only, are among the cases."""
    shape, attrs = case
    x = np.random.default_rng(1).choice(np.array(values, np.float32), shape)
    with np.errstate(all="ignore"):
        expected = apply("Pooling", "reference", [x], attrs)
        g = numbers(*expected.shape)
        backward = ("_backward_Pooling_max", [g, x, expected]) if attrs["pool_type"] == "max" else \
            ("_backward_Pooling_sum", [g, x])
        for name, ins in (("Pooling", [x]), backward):
            if declines(name, "onednn, a call", ins, attrs) is None:
                like = kernel(name, "reference")
                close(apply(name, "onednn, a call", ins, attrs),
                      like.rule.function(np, *ins, **like.rule.select(get(name).complete(attrs))))


# -------------------------------------------------------------------------------------- weights that are kept


def _by_whole(w: Any) -> None:
    w[:] = numbers(*w.shape, seed=1)


def _by_element(w: Any) -> None:
    w[2, 1, 0, 0] = 9.0


def _by_view(w: Any) -> None:
    part = w[3]
    part[:] = 2.0


def _by_reshaped(w: Any) -> None:
    w.reshape((-1,))[5:70] = 0.5


def _by_arithmetic(w: Any) -> None:
    w *= 2


def _by_out(w: Any) -> None:
    mx.nd.exp(w, out=w)


def _by_random(w: Any) -> None:
    mx.nd.random.uniform(-1, 1, shape=w.shape, out=w)


def _by_update(w: Any) -> None:
    mx.nd.sgd_update(w, array(numbers(*w.shape, seed=2)), lr=0.5, out=w)


def _by_optimizer(w: Any) -> None:
    mx.optimizer.get_updater(mx.optimizer.Adam())(0, w, array(numbers(*w.shape, seed=3)))


def _by_store(w: Any) -> None:
    store = mx.kv.create("local")
    store.init("w", array(numbers(*w.shape, seed=4)))
    store.pull("w", out=w)


def _by_copy(w: Any) -> None:
    array(numbers(*w.shape, seed=5)).copyto(w)


def _by_dlpack(w: Any) -> None:
    np.asarray(np.from_dlpack(w))[0] = 7.0


def _by_array_protocol(w: Any) -> None:
    w.__array__(copy=False)[1] = 8.0


def _by_initializer(w: Any) -> None:
    mx.init.Xavier()(mx.init.InitDesc("w_weight"), w)


def _by_step(w: Any) -> None:
    """Updates the weight along the gradient of another executor that shares it."""
    w.attach_grad()
    other = symbol.Variable("w") * 2
    trained = other.bind(cpu(), {"w": w}, {"w": mx.nd.zeros(w.shape)})
    trained.forward(is_train=True)
    trained.backward(array(numbers(*w.shape, seed=6)))
    mx.nd.sgd_update(w, trained.grad_dict["w"], lr=0.25, out=w)


CHANGES = [each for name, each in sorted(globals().items()) if name.startswith("_by_")]


def _bound_convolution(w: Any, relu: bool) -> Any:
    """Executor of a convolution, alone or with a norm and relu."""
    data, weight = symbol.Variable("data"), symbol.Variable("w")
    out = symbol.Convolution(data, weight, kernel=(3, 3), num_filter=32, no_bias=True, name="c")
    if relu:
        out = symbol.relu(symbol.BatchNorm(out, name="n", fix_gamma=False))
    states = {"n_moving_mean": numbers(32), "n_moving_var": np.ones(32, np.float32)} if relu else {}
    args = {"n_gamma": numbers(32, seed=8), "n_beta": numbers(32, seed=9)} if relu else {}
    return out.bind(cpu(), {"data": array(numbers(2, 16, 9, 9)), "w": w, **{k: array(v) for k, v in args.items()}},
                    aux_states={k: array(v) for k, v in states.items()}, grad_req="null")


@FAST
@pytest.mark.parametrize("relu", [False, True])
def test_a_weight_is_stored_in_the_layout_of_the_library(relu: bool) -> None:
    """A write that the library does not record is not seen, so the weight is laid out only once."""
    w = array(numbers(32, 16, 3, 3))
    executor = _bound_convolution(w, relu)
    first = executor.forward()[0].asnumpy()
    w._data[...] = 0.0
    assert (executor.forward()[0].asnumpy() == first).all()


@FAST
@pytest.mark.parametrize("relu", [False, True])
@settings(max_examples=30, deadline=None)
@given(changes=st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4))
def test_a_changed_weight_changes_the_result(relu: bool, changes: list[Any]) -> None:
    """The output follows every change of the weight, by any writer, before, between and after runs."""
    w = array(numbers(32, 16, 3, 3))
    executor = _bound_convolution(w, relu)
    for change in changes:
        executor.forward()
        change(w)
        found = executor.forward()[0].asnumpy()
        close(found, _bound_convolution(array(w.asnumpy()), relu).forward()[0].asnumpy())


@FAST
def test_weights_in_foreign_memory_are_read_in_each_run() -> None:
    """The weight is in the memory of a NumPy array, which its owner changes."""
    for make in (mx.nd.from_numpy, mx.nd.from_dlpack):
        host = numbers(32, 16, 3, 3)
        w = make(host)
        host.flags.writeable = True
        executor = _bound_convolution(w, False)
        for seed in range(3):
            host[...] = numbers(*host.shape, seed=seed)
            close(executor.forward()[0].asnumpy(), _bound_convolution(array(host), False).forward()[0].asnumpy())


@FAST
def test_a_weight_is_current_in_training_and_inference_by_turns() -> None:
    w = array(numbers(32, 16, 3, 3))
    data = symbol.Variable("data")
    net = symbol.Convolution(data, symbol.Variable("w"), kernel=(3, 3), num_filter=32, no_bias=True)
    x, grad = array(numbers(2, 16, 9, 9)), mx.nd.zeros(w.shape)
    executor = net.bind(cpu(), {"data": x, "w": w}, {"w": grad}, {"data": "null", "w": "write"})
    for _ in range(3):
        found = executor.forward(is_train=False)[0].asnumpy()
        close(found, _bound_convolution(array(w.asnumpy()), False).forward()[0].asnumpy())
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones(found.shape))
        mx.nd.sgd_update(w, grad, lr=0.01, out=w)


def test_stand_in_runs_reference_kernels() -> None:
    """Arrays of a device never reach a library of the host."""
    there = Context("strict", 0)
    y = get("Convolution")(array(numbers(1, 2, 5, 5), there), array(numbers(3, 2, 3, 3), there), kernel=(3, 3),
                           num_filter=3, no_bias=True)
    assert isinstance(y._data, strict.StrictArray)

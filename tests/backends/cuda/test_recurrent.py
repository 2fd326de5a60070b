"""Recurrent layers on a GPU: a product and a kernel in each step give the results of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda.operators import recurrent
from opreg.builtin.layers import rnn_layer
from opreg.builtin.layers.rnn import run, run_back
from opreg.builtin.layers.rnn_parts import count, kind_of
from tests.cuda import host, nvrtc
from tests.cuda.device import gpus
from tests.cuda.host import Host

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
TIME, BATCH, INPUTS, SIZE = 3, 2, 5, 7


class AtOnce(Host):
    """NumPy with kernels that run at their launch, under sanitizers."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def RawModule(self, code: str, options: Sequence[str] = ()) -> Any:
        """A module of kernels."""
        module = super().RawModule(code, options)
        launch = module._launch

        def at_once(*given: Any) -> None:
            launch(*given)
            self.run("address")

        module._launch = at_once  # type: ignore[method-assign]
        return module


def attributes(mode: str, layers: int = 1, bidirectional: bool = True) -> dict[str, Any]:
    return {"state_size": SIZE, "num_layers": layers, "bidirectional": bidirectional, "mode": mode, "p": 0.0,
            "state_outputs": True, "projection_size": None, "lstm_state_clip_min": None, "lstm_state_clip_max": None,
            "lstm_state_clip_nan": False, "use_sequence_length": False}


def inputs(attrs: dict[str, Any], dtype: str) -> list[np.ndarray]:
    kind, rng = kind_of(**attrs), np.random.default_rng(2)
    rows = kind.layers * kind.directions
    shapes = [(TIME, BATCH, INPUTS), (count(kind, INPUTS),), *[(rows, BATCH, SIZE)] * (1 + (kind.mode == "lstm"))]
    return [rng.uniform(-0.8, 0.8, shape).astype(dtype) for shape in shapes]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", MODES)
def test_recurrent_steps_equal_the_reference(mode: str, dtype: str) -> None:
    attrs, rng = attributes(mode), np.random.default_rng(0)
    ins, device = inputs(attrs, dtype), AtOnce()
    found = run(device, recurrent.forward, ins, True, rng, None, attrs)
    expected = run(np, rnn_layer.forward, ins, True, rng, None, attrs)
    heads = [rng.standard_normal(out.shape).astype(dtype) for out in expected[:-1] if out is not None]
    back = run_back(device, recurrent.backward, [*heads, *ins, found[-1]], None, attrs)
    slopes = run_back(np, rnn_layer.backward, [*heads, *ins, expected[-1]], None, attrs)
    for one, other in zip([*found, *back], [*expected, *slopes], strict=True):
        assert one is not None and other is not None
        np.testing.assert_allclose(one, other, *[3e-5 if dtype == "float32" else 1e-11] * 2)


@needs_nvrtc
def test_kernels_compile_for_gpus_without_spilling() -> None:
    texts = [source(mode, np.dtype(dtype)) for mode in MODES for dtype in ("float32", "float64")
             for source in (recurrent.forward_source, recurrent.backward_source)]
    assert all(made.spills == made.stack == 0 for made in nvrtc.compile(texts))


@needs_compiler
@pytest.mark.parametrize(("mode", "dtype"), [("lstm", "float32"), ("gru", "float16")])
def test_recurrent_layers_of_an_executor_equal_the_host(mode: str, dtype: str) -> None:
    attrs = attributes(mode, layers=2)
    values = dict(zip(("data", "parameters", "state", "state_cell"), inputs(attrs, "float32")))
    net = mx.sym.RNN(*map(mx.sym.var, values), **{key: attrs[key] for key in (
        "state_size", "num_layers", "bidirectional", "mode", "state_outputs")})

    def results(ctx: Any) -> list[np.ndarray]:
        args = {name: mx.nd.array(value, ctx=ctx, dtype=dtype) for name, value in values.items()}
        executor = net.bind(ctx, args, args_grad={name: mx.nd.zeros(value.shape, ctx=ctx, dtype=dtype)
                                                  for name, value in values.items()})
        outs = executor.forward(is_train=True)
        executor.backward([mx.nd.ones(out.shape, ctx=ctx, dtype=dtype) for out in outs])
        return [each.asnumpy().astype(float) for each in (*outs, *executor.grad_dict.values())]

    expected = results(mx.cpu())
    with gpus() as xp:
        found = results(mx.gpu(0))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, *[2e-2 if dtype == "float16" else 1e-4] * 2)
        assert xp.kernels.count("cell") == xp.kernels.count("cell_back") == 2 * TIME


@needs_compiler
def test_steps_without_a_kernel_are_left_to_the_reference() -> None:
    with gpus():
        net = mx.sym.RNN(mx.sym.var("data"), mx.sym.var("parameters"), mx.sym.var("state"), mx.sym.var("state_cell"),
                         state_size=4, num_layers=1, mode="lstm", projection_size=2)
        text = str(net.simple_bind(mx.gpu(0), data=(TIME, BATCH, INPUTS)).explain())
        assert "without lengths, projections and limits" in text

"""``operator.check`` of functions of PyTorch and JAX; tests of a missing library are skipped."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="JAX is not installed")


def verdicts(what: Any, *inputs: Any, **keywords: Any) -> dict[str, str]:
    """The failed checks, each with the text of its verdict."""
    return {verdict.name: verdict.text for verdict in mx.operator.check(what, *inputs, **keywords).failed}


def function(torch: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """An ``autograd.Function`` of these methods."""
    return type("Example", (torch.autograd.Function,), {"forward": staticmethod(forward),
                                                        "backward": staticmethod(backward)})


def saving(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A ``forward`` that saves its inputs for backward."""
    def forward(ctx, *inputs):
        ctx.save_for_backward(*inputs)
        return compute(*inputs)

    return forward


# -------------------------------------------------------------------------------------------------- PyTorch


def test_functions_of_pytorch_pass_the_check(torch: Any) -> None:
    x, y = torch.tensor([0.5, -1.2, 2.0]), torch.tensor([1.5, 0.3, -0.7])

    def two_outputs(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h

    def in_place(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    def indices(ctx, x):
        values, order = x.sort()
        ctx.save_for_backward(order)
        ctx.mark_non_differentiable(order)
        return values, order

    def in_numpy(ctx, x):
        ctx.values = x.detach().numpy()
        return torch.as_tensor(np.tanh(ctx.values))

    once = torch.autograd.function.once_differentiable(
        lambda ctx, g: g * torch.as_tensor(1 - np.tanh(ctx.values) ** 2))
    masked = function(torch, saving(lambda x, mask: x * mask), lambda ctx, g: (g * ctx.saved_tensors[1], None))
    for what, inputs in [
            (function(torch, saving(lambda x, y: (x * y, x + y)), two_outputs), (x, y)),
            (function(torch, in_place, lambda ctx, g: 2 * g), (x,)),
            (function(torch, indices, lambda ctx, g, _: torch.zeros_like(g).scatter_(0, *ctx.saved_tensors, g)), (x,)),
            (function(torch, in_numpy, once), (x,)),
            (lambda x: masked.apply(x, (torch.rand(x.shape) > 0.5).to(x.dtype)), (x,)),
            (lambda weights: weights["w"] * weights["b"], ({"w": x, "b": y},)),
            (torch.cat, ([x, y],)),
            (torch.tanh, (x.bfloat16(),)),
            (torch.nn.functional.cross_entropy, (torch.rand(2, 3), torch.tensor([0, 2])))]:
        assert verdicts(what, *inputs) == {}, what


def test_the_check_finds_faults_of_functions_of_pytorch(torch: Any) -> None:
    """Each function has one fault, which the named check finds."""
    x, y = torch.tensor([0.5, -1.2, 2.0]), torch.tensor([1.5, 0.3, -0.7])
    cached = {}

    def storing(ctx, x):
        cached["x"] = x
        return x * x

    def detaching(ctx, x):
        ctx.x = x.detach()
        return x * x

    for forward, backward, inputs, check, text in [
            (saving(lambda x, y: x * y), lambda ctx, g: (g * ctx.saved_tensors[0], g * ctx.saved_tensors[1]), (x, y),
             "gradient", "the gradient of 'input 0' at (0,) is 0.5, central differences say 1.5"),
            (lambda ctx, x: x.add_(1) * 2, lambda ctx, g: 2 * g, (x,), "inputs", "forward changes the input 'x'"),
            (saving(lambda x: x + x), lambda ctx, g: g.mul_(2), (x,), "inputs", "an output gradient in place"),
            (detaching, lambda ctx, g: 2 * g * ctx.x, (x,), "second order", "the second derivative in 'x'"),
            (lambda ctx, x: x * 2, lambda ctx, g: (2 * g, g), (x,), "backward", "an incorrect number of gradients"),
            (storing, lambda ctx, g: 2 * g * cached["x"], (x,), "interleaved", "when it runs once more"),
            (lambda ctx, x: x * float(np.random.rand()), lambda ctx, g: g, (x,),  # noqa: NPY002  as users do
             "deterministic", "the same torch.manual_seed differ")]:
        failed = verdicts(function(torch, forward, backward), *inputs)
        assert check in failed and text in failed[check], (check, failed)


def test_modules_of_pytorch_pass_the_check(torch: Any) -> None:
    """Weights are inputs, statistics are states, and the user's module stays as it is."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = torch.rand(4, 3)
    state = torch.get_rng_state()
    report = mx.operator.check(net, x)
    assert report.ok and str(report).startswith("module Sequential of PyTorch: ")
    assert "torch.manual_seed" in report["deterministic"].text
    assert torch.get_rng_state().equal(state)
    assert all(value.equal(before[name]) for name, value in net.state_dict().items())

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.calls = nn.Parameter(torch.ones(3)), 0

        def forward(self, x):
            self.calls += 1
            return x * self.weight * self.calls

    class Detached(Counting):
        def forward(self, x):
            return x * self.weight.detach()

    frozen = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4).eval())
    assert verdicts(frozen, torch.rand(1, 3)) == {}  # in training, one row is too few
    assert verdicts(Counting(), torch.rand(2, 3)).keys() == {"deterministic"}
    assert "the gradient of 'weight'" in verdicts(Detached(), torch.rand(2, 3))["gradient"]


def test_operators_of_pytorch_are_compared_with_their_fake_implementation(torch: Any) -> None:
    """The fake implementation and the schema are compared with a run."""
    def sinh(x: torch.Tensor) -> torch.Tensor:
        return x.sinh()

    def column_sums(x: torch.Tensor) -> torch.Tensor:
        return x.sum(0)

    def shifted(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 1

    for body, failed in ((sinh, set()), (column_sums, {"inferred"}), (shifted, {"inputs", "inferred"})):
        body.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
        operator = torch.library.custom_op(f"opreg_example::{body.__name__}", body, mutates_args=())
        operator.register_fake(lambda x: torch.empty_like(x))
        assert verdicts(operator, torch.rand(2, 3)).keys() == failed, body
        if body is sinh:
            operator.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cosh(),
                                       setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
            assert mx.operator.check(operator, torch.rand(2, 3))["second order"].outcome == "ok"
    assert verdicts(torch.ops.aten.sin.default, [0.5, 1.0]) == {}


def test_arrays_passed_by_keyword_are_inputs(torch: Any) -> None:
    """Gradients of keyword arguments are checked, too; numbers and lists of numbers are settings."""
    x, scale = torch.tensor([0.5, -1.2, 2.0]), torch.tensor([1.5, 0.3, -0.7])
    wrong = function(torch, saving(lambda x, y: x * y), lambda ctx, g: (g * ctx.saved_tensors[1], g))
    for keywords in ({"scale": scale}, {"scale": {"inside": [scale]}}):
        def call(x, *, scale, power=(2,)):
            return wrong.apply(x ** power[0], scale["inside"][0] if isinstance(scale, dict) else scale)

        failed = verdicts(call, x, **keywords, power=[1.0])
        assert failed.keys() == {"gradient"} and "scale" in failed["gradient"]


def test_arrays_of_jax_passed_by_keyword_are_inputs(jax: Any) -> None:
    def call(x, *, scale):
        return x * jax.lax.stop_gradient(scale) + scale

    report = mx.operator.check(call, jax.numpy.array([0.5, 2.0]), scale=jax.numpy.array([1.5, 0.3]))
    assert "scale" in {verdict.name: verdict.text for verdict in report.failed}["gradient"]



def test_mistakes_in_checks_of_pytorch(torch: Any) -> None:
    double = function(torch, lambda ctx, x, k=1.0: x * 2 * k, lambda ctx, g: (g * 2, None))
    with pytest.raises(mx.OpError, match="takes no keywords: got k"):
        mx.operator.check(double, [1.0], k=2.0)
    with pytest.raises(mx.OpError, match="needs at least one array"):
        mx.operator.check(double, 1.0)
    x = torch.rand(2)
    assert "at most 1 argument" in verdicts(torch.ops.aten.sin.default, x, x)["runs"]

    def refusing(x):
        raise RuntimeError("this mode is not supported")

    assert verdicts(refusing, x)["runs"] == "RuntimeError: this mode is not supported"


# ------------------------------------------------------------------------------------------------------ JAX


def ruled(jax: Any, compute: Callable[..., Any], gradient: Callable[..., Any]) -> Any:
    """A ``custom_vjp`` function: ``gradient`` takes the inputs and the output gradient."""
    made = jax.custom_vjp(compute)
    made.defvjp(lambda *inputs: (made(*inputs), inputs), lambda inputs, g: gradient(*inputs, g))
    return made


def test_functions_of_jax_pass_the_check(jax: Any) -> None:
    jnp = jax.numpy
    x, y = jnp.array([0.5, -1.2, 2.0]), jnp.array([1.5, 0.3, -0.7])
    cube = jax.custom_jvp(lambda x: x ** 3)
    cube.defjvp(lambda values, tangents: (cube(*values), 3 * values[0] ** 2 * tangents[0]))
    times = functools.partial(jax.custom_vjp, nondiff_argnums=(1,))(lambda x, n: x * n)
    times.defvjp(lambda x, n: (times(x, n), None), lambda n, residuals, g: (g * n,))
    called = ruled(jax, lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
                   lambda x, g: (g * jnp.cos(x),))
    for what, inputs in [
            (ruled(jax, lambda x, n: jnp.sin(x) * n, lambda x, n, g: (g * jnp.cos(x) * n, (g * jnp.sin(x)).sum())),
             (x, 2.0)),
            (cube, (x,)), (times, (x, 3)), (called, (x,)), (jax.jit(jnp.tanh), (x,)), (jax.nn.gelu, (x,)),
            (lambda weights, x: {"a": weights["w"] * x, "b": (x + 1, x.astype(int))}, ({"w": y}, x)),
            (lambda key, x: x * jax.random.bernoulli(key, 0.5, x.shape), (jax.random.key(0), x)),
            (lambda x, i: x[i], (x, jnp.array([0, 2, 2])))]:
        assert verdicts(what, *inputs) == {}, what


def test_the_check_finds_faults_of_functions_of_jax(jax: Any) -> None:
    jnp, calls = jax.numpy, []
    x = jnp.array([0.5, -1.2, 2.0])
    cube = jax.custom_jvp(lambda x: x ** 3)
    cube.defjvp(lambda values, tangents: (cube(*values), 2 * values[0] ** 2 * tangents[0]))

    def counting(x):
        calls.append(1)
        return x * len(calls)

    def noticing(x):
        return x * (2 if isinstance(x, jax.core.Tracer) else 1)

    for what, check, text in [
            (ruled(jax, jnp.sin, lambda x, g: (2 * g * jnp.cos(x),)), "gradient", "the gradient of 'x'"),
            (cube, "gradient", "the gradient of 'x' at (0,) is 0.5, central differences say 0.75"),
            (ruled(jax, lambda x: x * x, lambda x, g: (2 * g * jax.lax.stop_gradient(x),)), "second order",
             "the second derivative in 'x'"),
            (counting, "deterministic", "it stores something between calls")]:
        failed = verdicts(what, x)
        assert check in failed and text in failed[check], (check, failed)
    assert {"gradient", "compiled"} & verdicts(noticing, x).keys()

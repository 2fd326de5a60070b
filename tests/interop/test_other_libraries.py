"""Operators of opreg in PyTorch and JAX, checked by these libraries; tests of a missing library are skipped."""

from __future__ import annotations

import gc
import importlib
import itertools
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core.registry import get
from opreg.core.spec import is_floating
from opreg.interop import translation
from opreg.interop.source import Source
from tests import processes
from tests.rows import all_rows

pytestmark = pytest.mark.usefixtures("unregistered")
_COUNT = itertools.count()


@pytest.fixture
def jax() -> Any:
    module = pytest.importorskip("jax", reason="JAX is not installed")
    importlib.import_module("jax.test_util")
    with module.enable_x64(True):
        yield module


def swish(**keywords: Any) -> Any:
    @mx.operator.define(name=f"swish{next(_COUNT)}", traced=True, **keywords)
    def swish(x, *, beta: float = 1.0):
        x = x.asnumpy()
        return x / (1 + np.exp(-beta * x))

    return swish


def ruled() -> Any:
    """A traced body with a gradient that is not its derivative."""
    @mx.operator.define(name=f"ruled{next(_COUNT)}", traced=True)
    def ruled(x, y, *, scale: float = 3.0):
        return mx.nd.broadcast_mul(x, y)

    @ruled.grad
    def ruled_grad(g, ins, outs, *, scale):
        return g * scale, None

    return ruled


def cube() -> Any:
    """A body that runs as Python, with a gradient made of operators."""
    @mx.operator.define(name=f"cube{next(_COUNT)}")
    def cube(x, y, *, k: float = 1.0):
        return x.asnumpy() ** 3 * k + y.asnumpy()

    @cube.grad
    def cube_grad(g, ins, outs, *, k):
        return 3 * ins[0] ** 2 * g * k, g

    return cube


def masked() -> str:
    """Name of a Prop whose operator stores a value in forward for backward."""
    class Masked(mx.operator.CustomOp):
        def __init__(self, factor: float):
            self.factor = factor

        def forward(self, is_train, req, in_data, out_data, aux):
            self.mask = in_data[0] > 0.5
            self.assign(out_data[0], req[0], in_data[0] * self.mask * self.factor)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * self.mask * self.factor)

    name = f"masked{next(_COUNT)}"

    @mx.operator.register(name)
    class MaskedProp(mx.operator.CustomOpProp):
        def __init__(self, factor=2.0):
            super().__init__()
            self.factor = float(factor)

        def create_operator(self, ctx, shapes, dtypes):
            return Masked(self.factor)

    return name


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).uniform(0.6, 1.9, shape)


# -------------------------------------------------------------------------------------------------- PyTorch

#: An operator, its fixed attributes, the attributes of the call, the shapes of the inputs, and whether it has a
#: translation into PyTorch's own operations.
USES: dict[str, tuple[Callable[[], Any], dict[str, Any], dict[str, Any], list[tuple[int, ...]], bool]] = {
    "a traced function": (swish, {}, {"beta": 2.0}, [(3, 4)], True),
    "a traced function with a rule": (ruled, {}, {"scale": 1.0}, [(3, 4), (1, 4)], True),
    "a function": (cube, {}, {"k": 2.0}, [(3, 4), (3, 4)], False),
    "softmax": (lambda: "softmax", {}, {"axis": 0}, [(3, 4)], True),
    "sum": (lambda: "sum", {}, {"axis": (1,), "keepdims": True}, [(3, 4, 2)], True),
    "split": (lambda: "SliceChannel", {"num_outputs": 2}, {}, [(3, 4)], True),
    "stack": (lambda: "stack", {"num_args": 2}, {"axis": 1}, [(3, 4), (3, 4)], True),
    "dense": (lambda: "FullyConnected", {"num_hidden": 2}, {}, [(3, 4), (2, 4), (2,)], True),
    "convolution": (lambda: "Convolution", {"num_filter": 2, "kernel": (3, 3)}, {}, [(1, 2, 5, 5), (2, 2, 3, 3), (2,)],
                    False),
    "layer norm": (lambda: "LayerNorm", {}, {}, [(3, 4), (4,), (4,)], False),
    "a symbol": (lambda: mx.sym.softmax(mx.sym.var("a") * 2 + mx.sym.var("b")), {}, {}, [(3, 4), (3, 4)], True)}


@pytest.mark.parametrize("name", USES)
def test_pytorch_checks_its_arguments(torch: Any, name: str) -> None:
    """opcheck, gradcheck and gradgradcheck pass, except for ``ruled``, whose gradient differs on purpose."""
    make, fixed, attrs, shapes, traced = USES[name]
    operator = mx.operator.to_torch(make(), **fixed)
    inputs = [torch.tensor(numbers(*shape, seed=i), requires_grad=True) for i, shape in enumerate(shapes)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert set(torch.library.opcheck(operator, inputs, attrs).values()) == {"SUCCESS"}
    if make is not ruled:
        assert torch.autograd.gradcheck(lambda *xs: operator(*xs, **attrs), inputs)
        assert torch.autograd.gradgradcheck(lambda *xs: operator(*xs, **attrs), inputs)
    assert isinstance(operator, torch._ops.OpOverload) == traced


def test_pytorch_uses_the_declared_gradient(torch: Any) -> None:
    operator = mx.operator.to_torch(ruled())
    x, y = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    operator(x, y, scale=5.0).sum().backward()
    assert x.grad.tolist() == [[5.0] * 3] * 2 and y.grad.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("make", [swish, ruled, cube, lambda: "sigmoid"])
def test_pytorch_checkpoints_an_operator(torch: Any, make: Callable[[], Any]) -> None:
    from torch.utils.checkpoint import checkpoint

    operator = mx.operator.to_torch(make())
    inputs = [torch.tensor(numbers(3, 4, seed=i), requires_grad=True) for i in range(2 if make in (ruled, cube) else 1)]
    expected = torch.autograd.grad(operator(*inputs).sum(), inputs, allow_unused=True)
    got = torch.autograd.grad(checkpoint(operator, *inputs, use_reentrant=False).sum(), inputs, allow_unused=True)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore")  # PyTorch warns that it runs each sample by itself
def test_torch_func_maps_operators_and_refuses_their_gradients(torch: Any) -> None:
    operator, rows = mx.operator.to_torch("sigmoid"), torch.tensor(numbers(3, 4))
    torch.testing.assert_close(torch.func.vmap(operator)(rows), torch.sigmoid(rows))
    for function in (torch.func.grad, torch.func.hessian, torch.func.jacfwd):
        with pytest.raises(mx.errors.ArgumentError, match="differentiates no operator"):
            function(lambda x: operator(x).sum())(rows[0])


@pytest.mark.filterwarnings("ignore")  # warnings of PyTorch's compiler
@pytest.mark.parametrize("make", [swish, ruled, cube, lambda: "LayerNorm"])
def test_torch_compile_compiles_an_operator(torch: Any, make: Callable[[], Any]) -> None:
    operator = mx.operator.to_torch(make())
    count = len(get("LayerNorm").signature.input_names) if make() == "LayerNorm" else 1 if make is swish else 2
    shapes = [(3, 4), (4,), (4,)] if count == 3 else [(3, 4)] * count
    inputs = [torch.tensor(numbers(*shape, seed=i), requires_grad=True) for i, shape in enumerate(shapes)]

    def loss(*xs: Any) -> Any:
        return (operator(xs[0] * 2, *xs[1:]) ** 2).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for got, expected in zip(torch.autograd.grad(compiled(*inputs), inputs),
                             torch.autograd.grad(loss(*inputs), inputs, allow_unused=True)):
        torch.testing.assert_close(got, expected)


@pytest.mark.filterwarnings("ignore")
def test_pytorch_sees_its_own_operations(torch: Any) -> None:
    """The compiled function of PyTorch contains PyTorch's operators in place of a traced body."""
    seen: list[str] = []

    def look(graph: Any, inputs: Any) -> Any:
        seen.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    backend = torch._dynamo.backends.common.aot_autograd(fw_compiler=look)
    for make, own in ((swish, True), (cube, False)):
        operator = mx.operator.to_torch(make())
        seen.clear()
        torch.compile(lambda *xs, f=operator: f(*xs), backend=backend, fullgraph=True)(
            *[torch.ones(2)] * (1 if make is swish else 2))
        assert any("opreg" in target for target in seen) != own, seen


def test_pytorch_calls_bodies_without_a_translation(torch: Any) -> None:
    """PyTorch calls a body as a whole if an operator in it has no translation."""
    @mx.operator.define(name=f"sorted{next(_COUNT)}", traced=True)
    def ordered(x):
        return mx.nd.sort(x * 2, axis=0)

    operator = mx.operator.to_torch(ordered)
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y = operator(x)
    y.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert y.tolist() == [2, 4, 6] and x.grad.tolist() == [6, 2, 4]
    assert "ordered" not in str(operator) and "sorted" in str(operator)


def test_pytorch_runs_a_prop(torch: Any) -> None:
    """Backward reads values that forward stored on the operator; attributes without annotation are text."""
    name = masked()
    operator = mx.operator.to_torch(name)
    x = torch.tensor([0.25, 1.0], requires_grad=True)
    operator(x, factor="3.0").sum().backward()
    assert x.grad.tolist() == [0, 3] and mx.operator.to_torch(name, factor=4)(x).tolist() == [0, 4]
    with pytest.raises(mx.OpError, match="cannot be differentiated again"):
        torch.autograd.gradgradcheck(operator, [x.double().detach().requires_grad_()])


def test_memory_is_shared_with_pytorch(torch: Any) -> None:
    seen: list[int] = []

    @mx.operator.define(name=f"looks{next(_COUNT)}")
    def looks(x):
        seen.append(x._data.__array_interface__["data"][0])
        return x

    looks.infer(lambda x: x)
    x = torch.ones(3)
    y = mx.operator.to_torch(looks)(x)
    assert seen == [x.data_ptr()] and y.data_ptr() != x.data_ptr() and y.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_pytorch_operators_keep_dtypes(torch: Any, dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16")
    x = torch.ones(2, 3, dtype=getattr(torch, dtype), requires_grad=True)
    for name, count in (("sigmoid", 1), ("softmax", 1), ("LayerNorm", 3)):
        y = mx.operator.to_torch(name)(*[x, *[torch.ones(3, dtype=x.dtype)] * 2][:count])
        assert y.dtype == x.dtype and torch.autograd.grad(y.sum(), x)[0].dtype == x.dtype


def test_integers_have_no_gradient_in_pytorch(torch: Any) -> None:
    rows = torch.ones(3, 2, requires_grad=True)
    places = torch.tensor([2, 0], dtype=torch.int32)
    mx.operator.to_torch("take")(rows, places).sum().backward()
    assert rows.grad.tolist() == [[1, 1], [0, 0], [1, 1]]
    assert mx.operator.to_torch("argmax", axis=1)(rows.detach()).tolist() == [0, 0, 0]


def test_pytorch_operators_change_states(torch: Any) -> None:
    """States are passed after the inputs, and move if ``is_train`` is true."""
    operator = mx.operator.to_torch("BatchNorm", fix_gamma=False)
    x, ones, zeros = torch.tensor(numbers(4, 3)).requires_grad_(), torch.ones(3).double(), torch.zeros(3).double()
    mean, variance = torch.zeros(3).double(), torch.ones(3).double()
    operator(x, ones, zeros, mean, variance)
    assert mean.tolist() == [0, 0, 0]
    y = operator(x, ones, zeros, mean, variance, is_train=True)
    torch.testing.assert_close(mean, 0.1 * x.detach().mean(0))
    y.square().sum().backward()
    assert not mean.requires_grad and x.grad is not None
    assert torch.autograd.gradcheck(lambda x: operator(x, ones, zeros, mean.clone(), variance.clone(), is_train=True),
                                    [x])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert set(torch.library.opcheck(operator.custom_op, [x, ones, zeros, mean, variance], {"is_train": True}
                                         ).values()) == {"SUCCESS"}


def test_pytorch_seeds_repeat_random_values(torch: Any) -> None:
    """Random numbers repeat after manual_seed, and backward uses those of forward."""
    operator, x = mx.operator.to_torch("Dropout"), torch.ones(40, requires_grad=True)
    torch.manual_seed(3)
    first = operator(x, is_train=True)
    (gradient,) = torch.autograd.grad(first.sum(), x)
    again = operator(x, is_train=True)
    torch.manual_seed(3)
    assert operator(x, is_train=True).equal(first) and not again.equal(first) and gradient.equal(first.detach())

    @mx.operator.define(name=f"noise{next(_COUNT)}")
    def noise(x):
        return x.asnumpy() * np.random.rand(*x.shape)  # noqa: NPY002  as users do

    noise.infer(lambda x: x)
    noisy = mx.operator.to_torch(noise, random=True)
    torch.manual_seed(3)
    first, state = noisy(x), np.random.get_state()[1].tolist()  # noqa: NPY002
    torch.manual_seed(3)
    assert noisy(x).equal(first) and np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_a_cell_is_a_module_of_pytorch(torch: Any) -> None:
    """Parameters share names and memory, so an optimizer of PyTorch trains the Cell."""
    cell = mx.nn.SequentialCell(mx.nn.Dense(4, 8), mx.nn.ReLU(), mx.nn.Dense(8, 2))
    module = mx.operator.to_torch(cell)
    assert [*module.state_dict()] == [each.name for each in cell.get_parameters()]
    x = torch.tensor(numbers(5, 4), dtype=torch.float32)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = module(x).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    cell[0].weight.requires_grad = False
    assert [each.requires_grad for each in mx.operator.to_torch(cell).parameters()] == [False, True, True, True]
    np.testing.assert_allclose(module(x).detach().numpy(), cell(mx.Tensor(x.numpy())).asnumpy(), rtol=1e-5, atol=1e-6)


def layers(parts: int = 4) -> Any:
    return mx.nn.SequentialCell(*[mx.nn.Dense(3, 4), mx.nn.BatchNorm1d(4), mx.nn.Dropout(p=0.5),
                                  mx.nn.Dense(4, 2)][:parts]).set_train(True)


def test_weights_are_freed_with_the_module(torch: Any) -> None:
    held = []
    for _ in range(3):
        cell = mx.nn.Dense(3, 4)
        module = mx.operator.to_torch(cell)
        module(torch.ones(2, 3)).sum().backward()
        held += [weakref.ref(cell.weight), weakref.ref(module)]
        del cell, module
    gc.collect()
    assert [ref() for ref in held] == [None] * 6


def test_the_mode_of_a_module_is_that_of_the_cell(torch: Any) -> None:
    """In training Dropout draws and statistics move, otherwise neither does; the Cell's own mode does not change."""
    cell = layers()
    module, x = mx.operator.to_torch(cell), torch.tensor(numbers(8, 3), dtype=torch.float32)
    mean = module.state_dict()["1.moving_mean"]
    assert not module.train()(x).equal(module(x)) and mean.abs().sum() > 0
    module(x).sum().backward()
    assert all(each.grad is not None for each in module.parameters())
    before = mean.clone()
    assert module.eval()(x).equal(module(x)) and mean.equal(before)
    module(x).sum().backward()
    expected = cell.set_train(False)(mx.Tensor(x.numpy())).asnumpy()
    np.testing.assert_allclose(module(x).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_dtypes_that_arrays_cannot_have_are_errors(torch: Any, jax: Any) -> None:
    with pytest.raises(mx.errors.DTypeError, match="to_torch: opreg has no arrays of complex64"):
        mx.operator.to_torch("sigmoid")(torch.ones(2, dtype=torch.complex64))
    with pytest.raises(mx.errors.DTypeError, match="to_jax: opreg has no arrays of complex64"):
        mx.operator.to_jax("sigmoid")(jax.numpy.ones(2, "complex64"))



def test_jax_functions_take_the_mode_of_a_cell(jax: Any) -> None:
    function, x = mx.operator.to_jax(layers()), jax.numpy.asarray(numbers(8, 3), "float32")
    first, states = function(x)
    assert (function(x)[0] == first).all() and (states[0] == function.parameters["1.moving_mean"]).all()
    trained, moved = function(x, is_train=True, seed=1)
    assert not (trained == first).all() and not (moved[0] == states[0]).all()


def test_pytorch_operators_have_value_dependent_shapes(torch: Any) -> None:
    operator, x = mx.operator.to_torch("_contrib_boolean_mask"), torch.ones(3, 2, requires_grad=True)
    y = operator(x, torch.tensor([1, 0, 1], dtype=torch.int32))
    y.sum().backward()
    assert y.shape == (2, 2) and x.grad.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_conversions_are_cached(torch: Any) -> None:
    name = cube().name.removeprefix("custom.")
    assert mx.operator.to_torch(name) is mx.operator.to_torch(name)
    assert mx.operator.to_torch(name, k=2.0) is not mx.operator.to_torch(name)


# ------------------------------------------------------------------------------------------------------ JAX


@pytest.mark.parametrize("name", USES)
def test_jax_differentiates_compiles_and_maps(jax: Any, name: str) -> None:
    make, fixed, attrs, shapes, traced = USES[name]
    function = mx.operator.to_jax(make(), **fixed)
    inputs = [jax.numpy.asarray(numbers(*shape, seed=i)) for i, shape in enumerate(shapes)]

    def one(*xs: Any) -> Any:
        outs = function(*xs, **attrs)
        return sum(out.sum() for out in outs) if isinstance(outs, tuple) else (outs * outs).sum()

    if make is not ruled:
        jax.test_util.check_grads(one, inputs, 2, modes=["fwd", "rev"] if traced else ["rev"], eps=1e-4)
    every = tuple(range(len(inputs)))
    gradients = jax.grad(one, every)(*inputs)
    for got, expected in zip(jax.jit(jax.grad(one, every))(*inputs), gradients):
        np.testing.assert_allclose(got, expected, rtol=1e-9)
    twice = [jax.numpy.stack([x, 2 * x]) for x in inputs]
    for got, expected in zip(jax.vmap(jax.grad(one, every))(*twice), gradients):
        np.testing.assert_allclose(got[0], expected, rtol=1e-9)
    assert ("callback" in str(jax.make_jaxpr(one)(*inputs))) != traced


def test_jax_uses_the_declared_gradient(jax: Any) -> None:
    function = mx.operator.to_jax(ruled())
    x = jax.numpy.ones((2, 3))
    gx, gy = jax.grad(lambda x, y: function(x, y, scale=5.0).sum(), (0, 1))(x, x)
    assert gx.tolist() == [[5.0] * 3] * 2 and gy.tolist() == [[0.0] * 3] * 2


def test_jax_runs_a_prop(jax: Any) -> None:
    function = mx.operator.to_jax(masked())
    assert jax.jit(jax.grad(lambda x: function(x, factor=3.0).sum()))(jax.numpy.array([0.25, 1.0])).tolist() == [0, 3]


def test_jax_functions_return_states_and_take_seeds(jax: Any) -> None:
    """States are returned beside the outputs; random numbers follow from a seed, which may be traced."""
    x, ones, zeros = jax.numpy.asarray(numbers(4, 3)), jax.numpy.ones(3), jax.numpy.zeros(3)
    y, (mean, _) = mx.operator.to_jax("BatchNorm", fix_gamma=False)(x, ones, zeros, zeros, ones, is_train=True)
    assert y.shape == x.shape
    np.testing.assert_allclose(mean, 0.1 * x.mean(0))
    dropout = mx.operator.to_jax("Dropout")
    first = dropout(x, is_train=True, seed=3)
    compiled = jax.jit(lambda x, seed: dropout(x, is_train=True, seed=seed))
    assert (compiled(x, 3) == first).all() and not (compiled(x, 4) == first).all()
    gradient = jax.grad(lambda x: dropout(x, is_train=True, seed=3).sum())(x)
    np.testing.assert_allclose(gradient * x, first)


def test_jax_functions_take_integers_and_small_dtypes(jax: Any) -> None:
    rows = jax.numpy.ones((3, 2))
    take = mx.operator.to_jax("take")
    assert jax.grad(lambda a: take(a, jax.numpy.array([2, 0])).sum())(rows).tolist() == [[1, 1], [0, 0], [1, 1]]
    for dtype in ("float16", "bfloat16", "float32"):
        x = jax.numpy.ones((2, 3), dtype)
        for function in (mx.operator.to_jax("sigmoid"), lambda x: mx.operator.to_jax("LayerNorm")(x, x[0], x[0])):
            assert function(x).dtype == dtype and jax.grad(lambda x: function(x).sum())(x).dtype == dtype


def test_a_cell_is_a_function_of_its_parameters_in_jax(jax: Any) -> None:
    cell = mx.nn.SequentialCell(mx.nn.Dense(4, 8), mx.nn.ReLU(), mx.nn.Dense(8, 2))
    function, x = mx.operator.to_jax(cell), jax.numpy.asarray(numbers(5, 4), "float32")
    np.testing.assert_allclose(function(x), cell(mx.Tensor(np.asarray(x))).asnumpy(), rtol=1e-5, atol=1e-6)
    gradients = jax.grad(lambda p: function(x, parameters=p).sum())(function.parameters)
    assert gradients.keys() == {each.name for each in cell.get_parameters()}
    np.testing.assert_allclose(gradients["2.bias"], [5, 5])


# -------------------------------------------------------------------------------------------- every operator


def gradients_here(program: Any, ins: Sequence[np.ndarray]) -> tuple[list, list, list, list] | None:
    """Outputs, output gradients, indices of floating inputs, and their gradients; None if the operator refuses."""
    arrays = [mx.nd.array(each, dtype=each.dtype) for each in ins]
    try:
        outs = [out.asnumpy() for out in program.forward(arrays, None)]
        heads = [np.random.default_rng(1).standard_normal(out.shape).astype(out.dtype) for out in outs
                 if is_floating(out.dtype)]
        needs = [i for i, each in enumerate(ins) if is_floating(each.dtype)]
        arriving = [mx.nd.array(head, dtype=head.dtype) for head in heads]
        found = program.gradients(arrays, arriving, needs, None)
    except mx.OpError:
        return None
    return outs, heads, needs, [each.asnumpy() for each in found]


def by_torch(torch: Any, translate: Callable[..., Any], ins: Sequence[np.ndarray], heads: Sequence[np.ndarray],
             needs: Sequence[int]) -> tuple[list, list]:
    tensors = [torch.tensor(each, requires_grad=i in needs) for i, each in enumerate(ins)]
    outs = translate(tensors)
    floating = [out for out in outs if out.dtype.is_floating_point]
    pairs = [(out, torch.tensor(head)) for out, head in zip(floating, heads) if out.requires_grad]
    found = torch.autograd.grad([out for out, _ in pairs], [tensors[i] for i in needs], [head for _, head in pairs],
                                allow_unused=True) if pairs and needs else [None] * len(needs)
    return [out.detach().numpy() for out in outs], [np.zeros_like(ins[i]) if each is None else each.numpy()
                                                    for i, each in zip(needs, found)]


def by_jax(jax: Any, translate: Callable[..., Any], ins: Sequence[np.ndarray], heads: Sequence[np.ndarray],
           needs: Sequence[int]) -> tuple[list, list]:
    def function(*moved: Any) -> Any:
        arrays = [jax.numpy.asarray(each) for each in ins]
        for i, each in zip(needs, moved):
            arrays[i] = each
        return translate(arrays)

    outs, back = jax.vjp(function, *[jax.numpy.asarray(ins[i]) for i in needs])
    rest = iter(heads)
    return [*map(np.asarray, outs)], [*map(np.asarray, back([
        jax.numpy.asarray(next(rest)) if is_floating(np.dtype(out.dtype)) else np.zeros(out.shape, jax.dtypes.float0)
        for out in outs]))]


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.filterwarnings("ignore")
def test_translations_give_the_results_of_the_operators(library: str, request: pytest.FixtureRequest) -> None:
    """Values and gradients of each row, and of the same row with integers, at which functions have corners."""
    module = request.getfixturevalue(library)
    if library == "torch":
        from opreg.interop.torch_operators import _dialect
    else:
        from opreg.interop.jax_functions import _dialect
    looked_at: set[str] = set()
    for row in all_rows():
        op = get(row.op)
        said = op.name in translation.TABLE or op.rules.expression is not None
        if op.name in looked_at or not said or not row.deterministic:
            continue
        count = {op.signature.variadic: len(row.inputs)} if op.signature.variadic else {}
        source = Source(op, "test", None, None, {**count, **row.attrs})
        program = source.program({}, row.train)
        nodes = program.graph.nodes
        for whole in (False, True):
            ins = [np.round(each) if whole and is_floating(each.dtype) else each
                   for each in map(np.asarray, row.inputs)]
            here = gradients_here(program, ins)
            if here is None:
                continue
            outs, heads, needs, expected = here

            def translate(values: Sequence[Any]) -> list[Any]:
                known = {(node, 0): values[source.inputs.index(node.name)] for node in nodes if node.op is None}
                return translation.translate(_dialect(), nodes, known, program.graph.heads, row.train)

            try:
                got, gradients = (by_torch if library == "torch" else by_jax)(module, translate, ins, heads, needs)
            except translation.Untranslatable:
                continue
            for one, other in zip([*got, *gradients], [*outs, *expected]):
                assert one.shape == other.shape and one.dtype == other.dtype, row
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9, err_msg=f"{row}, whole numbers: {whole}")
            looked_at.add(op.name)
    assert len(looked_at) > 200 and translation.TABLE.keys() <= looked_at


# ------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_mistakes_raise_errors_at_conversion(library: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(library)
    convert = getattr(mx.operator, f"to_{library}")
    word = f"to_{library}"
    for what, attrs, said in [
            ("sofmax", {}, "there is no operator 'sofmax'. Did you mean 'softmax'"),
            ("Concat", {}, rf"takes any number of inputs: give their number, as in {word}\('Concat', num_args=2\)"),
            ("softmax", {"axsi": 1}, "unknown attribute 'axsi'. Did you mean 'axis'"),
            ("sgd_mom_update", {"lr": 0.1}, "changes its inputs"),
            ("_zeros", {}, "has no input"),
            ("softmax", {"parameters": {"x": 1}}, "for a Symbol or a Cell"),
            (3, {}, "expected an operator, its name, a Symbol or a Cell, got 3"),
            (mx.sym.var("x") * 2, {"scalar": 2}, "has no attributes: got scalar"),
            (mx.sym.var("data") * 2, {"parameters": {"dta": 1}}, "has no variable 'dta'. Did you mean 'data'")]:
        with pytest.raises(mx.OpError, match=said):
            pytest.fail(f"no error, but {convert(what, **attrs)}")


def test_mistakes_in_calls_of_jax(jax: Any) -> None:
    function = mx.operator.to_jax(cube())
    x = jax.numpy.ones(2)
    with pytest.raises(mx.OpError, match=r"expected 2 arrays \(x, y\), got 1"):
        function(x)
    with pytest.raises(mx.OpError, match="unknown attribute 'kk'"):
        function(x, x, kk=2.0)
    with pytest.raises(mx.OpError, match="static_argnames='k'"):
        jax.jit(lambda x, k: function(x, x, k=k))(x, 2.0)
    with pytest.raises(mx.OpError, match="give seed="):
        mx.operator.to_jax("Dropout")(x, is_train=True)
    assert (mx.operator.to_jax("Dropout")(x) == x).all()
    with pytest.raises(mx.OpError, match="draws no random numbers"):
        function(x, x, seed=1)
    with pytest.raises(mx.OpError, match="depend on values"):
        mx.operator.to_jax("_contrib_boolean_mask")
    with pytest.raises(mx.OpError, match="'k' was fixed by to_jax"):
        mx.operator.to_jax(cube(), k=2.0)(x, x, k=3.0)


def test_attributes_that_inputs_follow_from_are_fixed(torch: Any) -> None:
    with pytest.raises(mx.OpError, match="pass the attributes that decide the inputs to to_torch"):
        mx.operator.to_torch("FullyConnected", num_hidden=2)(torch.ones(1, 3), torch.ones(2, 3), torch.ones(2),
                                                             no_bias=True)
    assert mx.operator.to_torch("FullyConnected", num_hidden=2, no_bias=True)(torch.ones(1, 3), torch.ones(2, 3)
                                                                              ).tolist() == [[3, 3]]


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_a_missing_library_is_named(library: str) -> None:
    program = (f"import sys; sys.modules[{library!r}] = None\n"
               "import opreg as mx\n"
               "assert mx.nd.ones(2).sum().asscalar() == 2\n"
               f"try:\n    mx.operator.to_{library}('relu')\n"
               "except ImportError as error:\n    print(error)\n")
    done = processes.run(program)
    assert library in done.stdout, done.stderr


def test_no_library_is_loaded_without_need() -> None:
    program = ("import sys, opreg as mx\n"
               "mx.operator.check('relu', [1.0]).raise_if_failed()\n"
               "assert 'torch' not in sys.modules and 'jax' not in sys.modules\n")
    done = processes.run(program)
    assert done.returncode == 0, done.stderr

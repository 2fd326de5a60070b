"""Names of users' operators: registered again, with dots, and in capitals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import gluon, nd, nn, sym
from opreg.errors import UnknownOperatorError

X = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.filterwarnings("ignore:.*is replaced by")
@pytest.mark.parametrize("traced", [False, True])
def test_a_new_registration_replaces_the_operator_everywhere(traced: bool, unregistered: None) -> None:
    name = "_example_first_anew"

    def register(k: float) -> None:
        op = mx.operator.define(lambda x: x * k, name=name, traced=traced)
        if not traced:
            op.grad(lambda g, ins, outs: g * k)

    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.Custom(x, op_type=name)

    register(2.0)
    x, t = nd.array(X), mx.Tensor(X)
    symbol = sym.Custom(sym.var("x"), op_type=name)
    loop = sym.contrib.foreach(lambda d, s: (sym.Custom(d, op_type=name), s), sym.var("x"), sym.var("s"))[0]
    plain, static, block = Net(), Net(), gluon.SymbolBlock(symbol, [sym.var("x")])
    plain.hybridize()
    static.hybridize(static_alloc=True, static_shape=True)
    compiled = mx.jit(lambda t: mx.ops.Custom(t, op_type=name))
    differentiated = mx.jit(mx.grad(lambda t: mx.ops.Custom(t, op_type=name).sum()))
    cell = nn.from_symbol(symbol, inputs=["x"])
    entries: list[Callable[[], Any]] = [
        lambda: nd.Custom(x, op_type=name), lambda: symbol.eval(x=x)[0], lambda: loop.eval(x=x, s=nd.zeros((1,)))[0],
        lambda: plain(x), lambda: static(x), lambda: block(x), lambda: compiled(t), lambda: cell(t)]
    for k in (2.0, 3.0):
        if k == 3.0:
            register(k)
        for entry in entries:
            close(entry(), X * k)
        close(differentiated(t), np.full_like(X, k))


def test_names_that_differ_in_case_or_dots_are_different_operators(unregistered: None) -> None:
    for name, k in (("_example.first.it", 2.0), ("_Example.first.It", 3.0)):
        op = mx.operator.define(_multiple(k), name=name)
        symbol = sym.Custom(sym.var("x"), op_type=name)
        for each in (op(nd.array(X)), nd.Custom(nd.array(X), op_type=name), getattr(nd.custom, name)(nd.array(X)),
                     symbol.eval(x=nd.array(X))[0], sym.load_json(symbol.tojson()).eval(x=nd.array(X))[0]):
            close(each, X * k)
    with pytest.raises(UnknownOperatorError, match=r"_example\.first\.it"):
        nd.Custom(nd.array(X), op_type="_example.first.It")


def _multiple(k: float) -> Callable[..., Any]:
    return lambda x: x * k


class _Weighted(mx.operator.CustomOpProp):
    """The sum of two arrays, the second times a number."""

    def __init__(self, by: float = 2.0, kind: Any = "plain") -> None:
        super().__init__()

    def list_arguments(self) -> list[str]:
        return ["x", "y"]


class _Heir(_Weighted):
    def list_arguments(self) -> list[str]:
        return ["z"]


class _Several(mx.operator.CustomOpProp):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def list_arguments(self) -> list[str]:
        return [f"x{i}" for i in range(self.count)]


def _sum(x: Any, y: Any, *, by: float = 2.0, kind="plain") -> Any:  # type: ignore[no-untyped-def]
    """The sum of two arrays, the second times a number."""
    return x + y * by


@pytest.mark.parametrize(("made", "parameters", "doc"), [
    (_sum, "(x, y, *, by: float = 2.0, kind='plain', ", _sum.__doc__),
    (_Weighted, "(x, y, *, by: float = 2.0, kind='plain', ", _Weighted.__doc__),
    (_Heir, "(z, *, by: float = 2.0, kind='plain', ", _Weighted.__doc__),
    (_Several, "(*data, count: int, ", "")])
def test_help_shows_inputs_attributes_and_docstring(made: Any, parameters: str, doc: str, unregistered: None) -> None:
    name = "_example_names_help"
    if made is _sum:
        mx.operator.define(made, name=name)
    else:
        mx.operator.register(name)(made)
    for function in (mx.operator.get(f"custom.{name}"), getattr(nd.custom, name), getattr(sym.custom, name)):
        assert str(inspect.signature(function)).startswith(parameters)
        assert function.__doc__ == doc

"""Tensors from outside of a compiled function are read in each run, whatever the function does with them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import nd
from opreg.cells.cell import Cell
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.nn import ops
from opreg.nn.layers import Dropout
from tests.questions import of_each

X = np.array([1.0, 2.0, 3.0], np.float32)


def built(x: Any, m: Any) -> Any:
    """A tensor that is made in the function and filled with values of the graph."""
    made = Tensor(np.zeros(3, np.float32))
    made[0] = m[0] * x[0]
    made[1] = made[1] + m[1]
    return made


#: Operations of a function on an input and a tensor from outside.
USES: dict[str, Callable[[Any, Any], Any]] = {
    "x * m": lambda x, m: x * m, "m * x": lambda x, m: m * x, "x + 2 * m": lambda x, m: x + 2.0 * m,
    "exp": lambda x, m: x + ops.exp(m), "-m": lambda x, m: x + (-m), "m + m": lambda x, m: x + (m + m),
    "an element": lambda x, m: x + m[0], "a slice": lambda x, m: x[0:2] + m[0:2], "sum": lambda x, m: x + m.sum(),
    "reshape": lambda x, m: x + m.reshape((3,)), "astype": lambda x, m: x + m.astype(ms.float16).astype(ms.float32),
    "copy": lambda x, m: x + m.copy(), "copy.copy": lambda x, m: x + copy.copy(m),
    "deepcopy": lambda x, m: x + copy.deepcopy(m), "cat": lambda x, m: ops.cat((x, ops.cat((m, m)))),
    "where": lambda x, m: ops.where(m > 1.5, x, -x), "stop_gradient": lambda x, m: x + ops.stop_gradient(m),
    "Tensor(m)": lambda x, m: x + Tensor(m), "Tensor(m, dtype)": lambda x, m: x + Tensor(m, ms.float64),
    "detach": lambda x, m: x + m.detach(), "data": lambda x, m: x + m.data, "value": lambda x, m: x + m.value(),
    "float": lambda x, m: x * float(m[0]), "int": lambda x, m: x * int(m[0]),
    "bool": lambda x, m: x * 2 if m[0] > 2 else x, "item": lambda x, m: x * m[1].item(),
    "item(1)": lambda x, m: x * m.item(1), "tolist": lambda x, m: x * m.tolist()[0],
    "asnumpy": lambda x, m: x * float(m.asnumpy()[2]), "np.asarray": lambda x, m: x * float(np.asarray(m)[0]),
    "np.exp": lambda x, m: x + np.exp(m), "np.sum": lambda x, m: x + np.sum(m), "iter": lambda x, m: x + sum(list(m)),
    "argmax": lambda x, m: x + m.argmax(), "subscript": lambda x, m: x[m.astype(ms.int32) % 3],
    "mask": lambda x, m: x[m > 1.5], "mask of NumPy": lambda x, m: (x * 1)[(m > 1.5).asnumpy()],
    "product": lambda x, m: x.reshape(1, 3) @ m.reshape(3, 1),
    "cond": lambda x, m: ops.cond(m[0] > 2, lambda x: x * 2, lambda x: x * 3, x),
    "range": lambda x, m: sum([x for _ in range(int(m[0]))], x), "full_like": lambda x, m: ops.full_like(x, m.item(0)),
    "stack": lambda x, m: ops.stack([m, m]), "m alone": lambda x, m: m * 2.0, "returned": lambda x, m: (x, m),
    "beside a constant": lambda x, m: ops.stack([m, Tensor([1.0, 1.0, 1.0])]) + x,
    "a list of elements": lambda x, m: x + Tensor([m[0], m[1], 2.0]), "built": built,
    "clamp": lambda x, m: ops.clamp(m, 0, 2) + x, "m ** 2": lambda x, m: x * m ** 2, "2 ** m": lambda x, m: x * 2 ** m,
    "logic": lambda x, m: x * ((m > 1) & (m < 9)).astype(ms.float32), "softmax": lambda x, m: x + ops.softmax(m),
    "a layer": lambda x, m: x + Dropout(p=0.0)(m), "masked_fill": lambda x, m: x.masked_fill(m > 1.5, 0.0),
    "gather": lambda x, m: ops.gather(m, Tensor([0, 1]), 0), "one_hot": lambda x, m: ops.one_hot(m.astype(ms.int32), 9),
    "its text": lambda x, m: x * sum(str(m).encode()), "its text in a list": lambda x, m: x * sum(str([m]).encode()),
    "a format": lambda x, m: x * sum(f"{m} {m[0]:.3f}".encode()),
    "a key": lambda x, m: {id(m): m}[id(m)] * x,
}


class Holds(Cell):
    """A Cell with a tensor."""

    def __init__(self, use: Callable, held: Tensor, way: str):
        super().__init__()
        self.use, self.way = use, way
        if way == "attribute":
            self.m = held
        elif way == "buffer":
            self.register_buffer("m", held)
        elif way == "list":
            self.listed = [held]
        elif way == "Parameter":
            self.m = Parameter(held, requires_grad=False)

    @property
    def held(self) -> Tensor:
        return self.listed[0] if self.way == "list" else self.m

    def construct(self, x: Any) -> Any:
        return self.use(x, self.held)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "an element": lambda m: m.__setitem__(0, 5.0), "all": lambda m: m.__setitem__(slice(None), Tensor([7.0, 0.5, 2.0])),
    "assign": lambda m: ops.assign(m, Tensor([4.0, 1.0, 0.0]))}


def total(result: Any) -> Any:
    return sum([part.sum() for part in (result if isinstance(result, tuple) else (result,))])


def numbers(result: Any) -> list[Any]:
    return [part.asnumpy().tolist() for part in (result if isinstance(result, tuple) else (result,))]


WAYS = ["variable", "attribute", "buffer", "list", "Parameter"]


@of_each([(use, way, (number + turn) % len(CHANGES))
          for turn, way in enumerate(WAYS) for number, use in enumerate(USES) if (number + turn) % 5 < 3],
         by=lambda case: case[1])
def test_a_changed_tensor_from_outside_changes_the_result(use, way, first):
    """Each use is tested with three of five ways to hold the tensor. Each case begins with another kind of change; the
    remaining kinds follow in order."""
    held = Tensor([1.0, 2.0, 3.0])
    if way == "variable":
        function: Any = lambda x: USES[use](x, held)  # noqa: E731
    else:
        function = Holds(USES[use], held, way)
        held = function.held
    slope = ms.grad(lambda x: total(function(x)).astype(ms.float32))
    pairs = [(function, jit(function)), (slope, jit(slope))]
    names = list(CHANGES)
    for name in ["nothing", *names[first:], *names[:first], "another element"]:
        {"nothing": lambda m: None, "another element": lambda m: m.__setitem__(1, 2.5), **CHANGES}[name](held)
        for eager, compiled in pairs:
            for _ in range(2):
                assert numbers(compiled(Tensor(X))) == numbers(eager(Tensor(X))), name


def test_objects_that_a_function_makes_are_made_in_each_run():
    """A tensor that the function fills does not keep values of an earlier run."""
    def function(x: Any) -> Any:
        made = Tensor(np.zeros(3, np.float32))
        made[0] = made[0] + x[0]
        return made

    compiled = jit(function)
    for value in (1.0, 2.0, 3.0):
        x = Tensor([value, 0.0, 0.0])
        assert compiled(x).asnumpy().tolist() == function(x).asnumpy().tolist() == [value, 0, 0]


def test_constants_compute_while_tracing():
    """Computations on Python values alone run once, while tracing."""
    compiled = jit(lambda x: x + (Tensor([1.0, 2.0, 3.0]) * 2.0 + 1.0)[1])
    assert compiled(Tensor(X)).asnumpy().tolist() == [6.0, 7.0, 8.0]
    assert len([line for line in str(compiled.explain()).splitlines() if "->" in line]) == 1


def test_a_tensor_that_a_bprop_reads_is_current():
    """The gradient is taken inside of the compiled function or around it."""
    class Own(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.mask, self.factors = Tensor([1.0, 2.0, 3.0]), [Tensor(2.0)]

        def construct(self, x: Any) -> Any:
            return x * 1.0

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * (1.0 * self.mask) * self.factors[0],)

    net = Own()
    inner = jit(net)
    ways = [ms.grad(lambda x: inner(x)), jit(ms.grad(net)), ms.grad(lambda x: jit(lambda y: net(y))(x))]
    for change in (lambda: None, lambda: net.mask.__setitem__(0, 5.0), lambda: ops.assign(net.factors[0], Tensor(3.0)),
                   lambda: setattr(net, "mask", Tensor([0.0, 1.0, 2.0]))):
        change()
        for way in ways:
            assert way(Tensor(X)).asnumpy().tolist() == ms.grad(net)(Tensor(X)).asnumpy().tolist()


# ------------------------------------------------------------------------------------------------ arrays of nd

#: Operations of Python on an NDArray from outside and a tensor of the graph.
OF_ARRAYS: dict[str, Callable[[Any, Any], Any]] = {
    "joins": lambda x, m: x * m, "a function of nd": lambda x, m: x + nd.exp(m), "arithmetic": lambda x, m: x + 2 * m,
    "negative": lambda x, m: x + -m, "comparison": lambda x, m: x * (m > 1.5),
    "between arrays": lambda x, m: x + m / m.max(),
    "float": lambda x, m: x * float(m[0]), "truth": lambda x, m: x * 2 if m[0] > 2 else x,
    "asnumpy": lambda x, m: x * m.asnumpy()[0], "a view": lambda x, m: x[:2] + m[:2],
    "reshape": lambda x, m: x + m.reshape((3, 1)).reshape((-1,)),
    "NumPy": lambda x, m: x + np.exp(m), "copy": lambda x, m: x + m.copy(), "detach": lambda x, m: x + m.detach(),
    "iteration": lambda x, m: x + sum(list(m)),
    "copyto": lambda x, m: x + m.copyto(ms.cpu()), "item": lambda x, m: x * m[0].item(),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_arrays_from_outside_are_read_in_each_run(name: str) -> None:
    """The graph reads them, or the function is left to Python with a warning."""
    array = nd.array([1.0, 2.0, 3.0])

    def function(x: Any) -> Any:
        return OF_ARRAYS[name](x, array)

    compiled = ms.jit(function)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*computes with an NDArray")
        for change in (lambda: None, lambda: None, lambda: array.__setitem__(0, 5.0), lambda: array.__iadd__(1.0)):
            change()
            np.testing.assert_array_equal(compiled(Tensor([1.0, 2.0, 3.0])).asnumpy(),
                                          function(Tensor([1.0, 2.0, 3.0])).asnumpy())


def test_an_array_is_changed_in_each_run() -> None:
    array = nd.zeros((1,))

    def counts(x: Any) -> Any:
        array[:] += 1
        return x * 2

    compiled = ms.jit(counts)
    with pytest.warns(UserWarning, match="counts is not compiled but runs as Python: it computes with an NDArray"):
        compiled(Tensor([1.0]))
    for _ in range(2):
        compiled(Tensor([1.0]))
    assert array.asscalar() == 3


def test_arrays_that_the_function_makes_are_constants() -> None:
    def function(x: Any) -> Any:
        rows = nd.zeros((3,))
        rows[1] = 2
        return x + rows * 2 + nd.array([1, 0, 0])

    compiled = ms.jit(function)
    for _ in range(2):
        assert compiled(Tensor([1.0, 1.0, 1.0])).asnumpy().tolist() == [2, 5, 1]


def test_a_cached_graph_reads_arrays_from_outside_in_each_run() -> None:
    array, graph = nd.array([1.0, 2.0]), nd.CachedOp(ms.sym.exp(ms.sym.var("x")))
    compiled = ms.jit(lambda x: x + Tensor(graph(array)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*computes with an NDArray")
        for value in (1.0, 1.0, 3.0):
            array[0] = value
            np.testing.assert_array_equal(compiled(Tensor([0.0, 0.0])).asnumpy(), np.exp(array.asnumpy()))

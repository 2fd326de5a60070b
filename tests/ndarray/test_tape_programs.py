"""Random programs on the tape: gradients agree with a tape of NumPy's, or an error says why there are none."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from opreg import nd
from opreg.errors import OpError
from opreg.ndarray import autograd


class Value:
    """An array of the reference: its numbers, and for each parent the function from its gradient to the parent's."""

    def __init__(self, data: Any, parents: Sequence[tuple[Value, Callable[[Any], Any]]] = ()):
        self.data, self.parents = np.array(data, np.float64), list(parents)
        self.req, self.grad = "null", np.zeros(3)


def backward(head: Value, g: np.ndarray, retained: bool) -> None:
    """Gradients of a head; without ``retained``, arrays that were computed are constants from here on."""
    order: list[Value] = []

    def visit(value: Value) -> None:
        if value not in order:
            for parent, _ in value.parents:
                visit(parent)
            order.append(value)

    visit(head)
    gradients: dict[Value, Any] = {head: g}
    for value in reversed(order):
        if value not in gradients:
            continue
        if value.req != "null":
            value.grad = gradients[value] + (value.grad if value.req == "add" else 0.0)
        for parent, rule in value.parents:
            gradients[parent] = gradients.get(parent, 0.0) + rule(gradients[value])
        if not retained:
            value.parents = []


def _product(x: Value, y: Value) -> Value:
    a, b = x.data, y.data
    return Value(a * b, [(x, lambda g: g * b), (y, lambda g: g * a)])


def _tanh(x: Value, y: Value) -> Value:
    out = np.tanh(x.data)
    return Value(out, [(x, lambda g: g * (1 - out * out))])


def _larger(x: Value, y: Value) -> Value:
    mask = x.data > y.data
    return Value(np.where(mask, x.data, y.data), [(x, lambda g: g * mask), (y, lambda g: g * ~mask)])


#: Functions of two arrays, each with its reference.
STEPS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Value, Value], Value]]] = {
    "product": (lambda x, y: x * y, _product), "tanh": (lambda x, y: nd.tanh(x), _tanh),
    "sum": (lambda x, y: x + y, lambda x, y: Value(x.data + y.data, [(x, lambda g: g), (y, lambda g: g)])),
    "flip": (lambda x, y: nd.flip(x, axis=0) * 2,
             lambda x, y: Value(x.data[::-1] * 2, [(x, lambda g: g[::-1] * 2)])),
    "larger": (lambda x, y: nd.where(x > y, x, y), _larger),
    "block": (lambda x, y: nd.BlockGrad(x), lambda x, y: Value(x.data, [(x, lambda g: g * 0.0)])),
    "detach": (lambda x, y: x.detach().copy(), lambda x, y: Value(x.data)),
    "reshape": (lambda x, y: x.reshape((3, 1)).reshape((3,)) * 3,
                lambda x, y: Value(x.data * 3, [(x, lambda g: g * 3)])),
}


class Program:
    """Arrays and their references, by names; ``done`` tells what was done to them."""

    def __init__(self, seed: int):
        self.choose, self.done = random.Random(seed), list[str]()
        numbers = np.random.RandomState(seed).uniform(-1, 1, (4, 3))
        self.arrays: dict[str, Any] = {name: nd.array(row, dtype="float64") for name, row in zip("abcd", numbers)}
        self.values = {name: Value(row) for name, row in zip("abcd", numbers)}
        self.leaves: list[tuple[Any, Value]] = []
        for name in "ab":
            self.attach(name)

    def attach(self, name: str) -> None:
        """Mark an array for a gradient again, which detaches it from earlier records."""
        req = self.choose.choice(("write", "add"))
        self.arrays[name].attach_grad(req)
        self.values[name] = value = Value(self.values[name].data)
        value.req = req
        self.leaves.append((self.arrays[name].grad, value))
        self.done.append(f"{name}.attach_grad({req!r})")

    def record(self, recorded: list[str]) -> None:
        """Compute a new array, or write into one that was computed here."""
        name, other = (self.choose.choice(list(self.arrays)) for _ in "xy")
        x, y, one, two = self.arrays[name], self.arrays[other], self.values[name], self.values[other]
        if name in recorded and self.choose.random() < 0.3:
            i, mask = self.choose.randrange(3), np.ones(3)
            mask[i] = 0.0
            x[i:i + 1] = y[i:i + 1]
            self.values[name] = Value(one.data * mask + two.data * (1 - mask),
                                      [(one, lambda g: g * mask), (two, lambda g: g * (1 - mask))])
            self.done.append(f"{name}[{i}] = {other}[{i}]")
            return
        step, new = self.choose.choice(list(STEPS)), f"t{len(self.arrays)}"
        function, reference = STEPS[step]
        if self.choose.random() < 0.1:
            with autograd.pause():
                self.arrays[new], self.values[new] = function(x, y), Value(reference(one, two).data)
        else:
            self.arrays[new], self.values[new] = function(x, y), reference(one, two)
        recorded.append(new)
        self.done.append(f"{new} = {step}({name}, {other})")

    def change(self) -> None:
        """Change something between two recordings."""
        name, kind = self.choose.choice("abcd"), self.choose.randrange(3)
        if kind == 0:
            self.arrays[name][:] = 0.5
            self.values[name].data = np.full(3, 0.5)
            self.done.append(f"{name}[:] = 0.5")
        elif kind == 1:
            self.attach(name)
        else:
            for grad, value in self.leaves:
                grad[:] = 1.0
                value.grad = np.ones(3)
            self.done.append("gradients are 1")

    def run(self) -> None:
        """Record, differentiate and compare three times, or until an error refuses."""
        for _ in range(3):
            recorded: list[str] = []
            with autograd.record():
                for _ in range(self.choose.randint(2, 6)):
                    self.record(recorded)
            if not recorded:
                continue
            head, g = self.choose.choice(recorded), np.array([0.5, -1.0, 2.0])
            for retained in self.choose.choice(((False,), (True, False))):
                self.arrays[head].backward(nd.array(g, dtype="float64"), retain_graph=retained)
                backward(self.values[head], g, retained)
                self.done.append(f"{head}.backward(retain_graph={retained})")
                for grad, value in self.leaves:
                    np.testing.assert_allclose(grad.asnumpy(), value.grad, 1e-9, 1e-12, err_msg=str(self.done))
            for name in "abcd":
                np.testing.assert_allclose(self.arrays[name].asnumpy(), self.values[name].data, err_msg=str(self.done))
            for name in recorded:
                del self.arrays[name], self.values[name]
            self.change()


@pytest.mark.parametrize("part", range(4))
def test_gradients_of_random_programs_are_right(part: int) -> None:
    for seed in range(60 * part, 60 * part + 60):
        try:
            Program(seed).run()
        except OpError as error:  # nothing was recorded, or an array that was recorded would be changed
            if "record" not in str(error):
                raise

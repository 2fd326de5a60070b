"""Primitives of optimizers: values of MindSpore's kernels, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import ops

#: Numbers of a weight, a gradient and states.
GIVEN = {"var": [0.6, -0.4, 0.1, -0.5], "g": [0.3, -0.7, 0.1, 0.8], "s": [0.5, 0.2, 0.3, 0.7],
         "t": [0.2, 0.4, 0.6, 0.1], "l": [0.9, 0.1, 0.7, 0.8]}

#: A primitive and its arguments, and the values of its Parameters afterwards.
MOVED: dict[tuple[str, str], list[list[float]]] = {
    ("Adam()", "var s t 0.9 0.99 0.1 0.9 0.99 0.001 g"): [
        [0.492613, -0.417346, 0.06372, -0.718023], [0.48, 0.11, 0.28, 0.71], [0.1989, 0.4009, 0.5941, 0.1054]],
    ("Adam(use_nesterov=True)", "var s t 0.9 0.99 0.1 0.9 0.99 0.001 g"): [
        [0.49664, -0.404573, 0.066052, -0.720787], [0.48, 0.11, 0.28, 0.71], [0.1989, 0.4009, 0.5941, 0.1054]],
    ("AdamWeightDecay()", "var s t 0.1 0.9 0.99 0.001 0.05 g"): [
        [0.489613, -0.415346, 0.06322, -0.715523], [0.48, 0.11, 0.28, 0.71], [0.1989, 0.4009, 0.5941, 0.1054]],
    ("ApplyAdaMax()", "var s t 0.9 0.1 0.9 0.99 0.001 g"): [
        [-0.994684, -0.556919, -0.370588, -1.386392], [0.48, 0.11, 0.28, 0.71], [0.3, 0.7, 0.594, 0.8]],
    ("ApplyAdadelta()", "var s t 0.1 0.9 0.001 g"): [
        [0.580169, -0.307571, 0.085135, -0.530497], [0.459, 0.229, 0.271, 0.694],
        [0.183933, 0.44543, 0.54221, 0.099301]],
    ("ApplyAdagrad()", "var s 0.1 g"): [
        [0.560943, -0.31573, 0.082039, -0.569109], [0.59, 0.69, 0.31, 1.34]],
    ("ApplyAdagrad(update_slots=False)", "var s 0.1 g"): [
        [0.557574, -0.243475, 0.081743, -0.595618], [0.5, 0.2, 0.3, 0.7]],
    ("ApplyAdagradV2(epsilon=1e-2)", "var s 0.1 g"): [
        [0.561445, -0.316732, 0.082356, -0.568518], [0.59, 0.69, 0.31, 1.34]],
    ("ApplyAdagradV2(epsilon=1e-2, update_slots=False)", "var s 0.1 g"): [
        [0.558165, -0.246899, 0.08207, -0.594489], [0.5, 0.2, 0.3, 0.7]],
    ("ApplyAddSign()", "var s 0.1 1.0 0.8 0.9 g"): [
        [0.546, -0.386, 0.082, -0.644], [0.48, 0.11, 0.28, 0.71]],
    ("ApplyPowerSign()", "var s 0.1 2.7 0.8 0.9 g"): [
        [0.339866, -0.391927, 0.013289, -1.193691], [0.48, 0.11, 0.28, 0.71]],
    ("ApplyCenteredRMSProp()", "var s t l g 0.1 0.8 0.9 0.01"): [
        [0.6, -0.382952, -0.54535, -0.5], [0.46, 0.02, 0.26, 0.72], [0.178, 0.418, 0.482, 0.208],
        [0.9, -0.017048, 0.64535, 0.8]],
    ("ApplyFtrl()", "var s t g 0.1 0.01 0.02 -0.5"): [
        [-0.016054, -0.146622, -0.121429, -0.21476], [0.59, 0.69, 0.31, 1.34],
        [0.133953, 1.233795, 0.690946, 2.504618]],
    ("ApplyGradientDescent()", "var 0.1 g"): [
        [0.57, -0.33, 0.09, -0.58]],
    ("ApplyMomentum()", "var s 0.1 g 0.9"): [
        [0.525, -0.348, 0.063, -0.643], [0.75, -0.52, 0.37, 1.43]],
    ("ApplyMomentum(use_nesterov=True)", "var s 0.1 g 0.9"): [
        [0.5025, -0.2832, 0.0567, -0.7087], [0.75, -0.52, 0.37, 1.43]],
    ("ApplyMomentum(gradient_scale=4.0)", "var s 0.1 g 0.9"): [
        [0.525, -0.348, 0.063, -0.643], [0.75, -0.52, 0.37, 1.43]],
    ("ApplyProximalAdagrad()", "var s 0.1 0.01 0.02 g"): [
        [0.558188, -0.313771, 0.079956, -0.567266], [0.59, 0.69, 0.31, 1.34]],
    ("ApplyProximalGradientDescent()", "var 0.1 0.01 0.02 g"): [
        [0.567864, -0.328343, 0.088822, -0.577844]],
    ("ApplyRMSProp()", "var s t 0.1 g 0.8 0.9 0.01"): [
        [0.374144, -0.624783, -0.45992, -0.685755], [0.418, 0.258, 0.242, 0.688],
        [0.225856, 0.224783, 0.55992, 0.185755]],
    ("SGD()", "var g 0.1 s 0.9 t"): [
        [0.57, -0.33, 0.09, -0.58], [0.3, -0.7, 0.1, 0.8], [0.0, 0.0, 0.0, 0.0]],
    ("SGD(dampening=0.1, weight_decay=0.2, nesterov=False)", "var g 0.1 s 0.9 t"): [
        [0.558, -0.322, 0.088, -0.57], [0.42, -0.78, 0.12, 0.7], [0.0, 0.0, 0.0, 0.0]],
    ("SGD(nesterov=True)", "var g 0.1 s 0.9 t"): [
        [0.543, -0.267, 0.081, -0.652], [0.3, -0.7, 0.1, 0.8], [0.0, 0.0, 0.0, 0.0]],
    ("ApplyKerasMomentum()", "var s 0.1 g 0.9"): [
        [1.02, -0.15, 0.36, 0.05], [0.42, 0.25, 0.26, 0.55]],
    ("ApplyKerasMomentum(use_nesterov=True)", "var s 0.1 g 0.9"): [
        [0.948, -0.105, 0.324, -0.085], [0.42, 0.25, 0.26, 0.55]],
}


class Moves(ms.nn.Cell):
    """A Cell that applies a primitive to Parameters and a gradient."""

    def __init__(self, primitive: str, given: str) -> None:
        super().__init__()
        self.move, self.given = eval(f"ops.{primitive}", {"ops": ops}), given.split()
        self.kept = ms.ParameterTuple([ms.Parameter(ms.Tensor(np.float32(GIVEN[word])), name=word)
                                       for word in self.given if word in GIVEN and word != "g"])

    def construct(self, g: Any, *numbers: Any) -> Any:
        states, rest = iter(self.kept), iter(numbers)
        return self.move(*[g if word == "g" else next(states) if word in GIVEN else next(rest) for word in self.given])


@pytest.mark.parametrize("numbers", ["as tensors", "as numbers"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("primitive, given", MOVED)
def test_weights_and_states_move_as_by_mindspore(primitive: str, given: str, compiled: bool, numbers: str) -> None:
    cell = Moves(primitive, given)
    rates = [float(word) for word in given.split() if word not in GIVEN]
    rates = [ms.Tensor(rate, ms.float32) for rate in rates] if numbers == "as tensors" else rates
    result = (ms.jit(cell) if compiled else cell)(ms.Tensor(np.float32(GIVEN["g"])), *rates)
    for state, expected in zip(cell.kept, MOVED[primitive, given], strict=True):
        np.testing.assert_allclose(state.asnumpy(), expected, atol=2e-6)
    first = result[0] if isinstance(result, tuple) else result
    np.testing.assert_allclose(first.asnumpy(), MOVED[primitive, given][0], atol=2e-6)


def test_an_update_keeps_the_dtype_of_a_float16_weight() -> None:
    weight = ms.Parameter(ms.Tensor([1.0], ms.float16), name="weight")
    ops.ApplyGradientDescent()(weight, 0.5, ms.Tensor([1.0], ms.float32))
    assert (weight.dtype, weight.asnumpy().tolist()) == (ms.float16, [0.5])

"""Random programs that change an optimizer between its steps: planned steps and compiled ones agree with Python."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Parameter, Tensor, nn, ops

#: Calls that make an optimizer of the parameters ``w`` and ``beta``.
OPTIMIZERS = (
    "nn.SGD(both, learning_rate=0.1, momentum=0.5)", "nn.Momentum(both, 0.1, 0.9, weight_decay=0.01)",
    "nn.Adam(both, learning_rate=0.05)", "nn.Adam(both, learning_rate=Falling())",
    "nn.Adagrad(both, learning_rate=0.1)",
    "nn.SGD(both, learning_rate=[0.1, 0.2, 0.3])", "nn.AdamWeightDecay(both, learning_rate=0.05, weight_decay=0.1)",
    "nn.Momentum([dict(params=[w], lr=0.2, weight_decay=0.1), dict(params=[beta])], 0.1, 0.9)",
)
#: Changes of the optimizer ``o`` and its parameters; ``V`` is a number, ``P`` a parameter, ``T`` a boolean. A change
#: that does not fit the optimizer is refused in all three ways.
CHANGES = (
    "o.learning_rate = V", "o.learning_rate.set_data(Tensor(V))", "o.get_lr_parameter(P).set_data(Tensor(V))",
    "o.weight_decay = V", "o.loss_scale = V + 1", "o.momentum = V", "o.momentum.set_data(Tensor(V))", "o.beta1 = V",
    "o.eps = V", "o.global_step.set_data(Tensor([3], ms.int32))", "P.set_data(P * V + 1)", "P[0] = V",
    "P.requires_grad = T", "o.scale_grad = lambda gradients: tuple(each * V for each in gradients)",
    "vars(o).pop('scale_grad', None)", "Falling.construct = lambda self, step: V / (2.0 + step.astype(ms.float32))",
    "[each.set_data(each * V) for each in o.get_parameters() if each.dtype == ms.float32]",
    "ms.load_param_into_net(o, dict(o.parameters_dict()))", "o.decay_weight = lambda gradients: gradients",
    "o.use_nesterov = T", "o.decay_flags = (T, T)", "o.need_scale = T", "factor = V",
)


def filled(text: str, words: dict[str, str]) -> str:
    return re.sub(r"\b[VPT]\b", lambda found: words[found[0]], text)


class Side:
    """An optimizer that runs as Python, as a plan, or in a compiled function."""

    def __init__(self, make: str, way: str):
        class Falling(nn.LearningRateSchedule):
            def construct(self, step: Any) -> Any:
                return 0.5 / (1.0 + step.astype(ms.float32))

        w = Parameter(Tensor([[1.0, -2.0, 0.5], [0.25, 1.5, -1.0]]), name="w")
        beta = Parameter(Tensor([0.5, -0.25, 2.0]), name="beta")
        self.names: dict[str, Any] = {"w": w, "beta": beta, "both": [w, beta], "nn": nn, "ms": ms, "Tensor": Tensor,
                                      "Falling": Falling, "factor": 1.0}
        self.optimizer = self.names["o"] = eval(make, self.names)
        if way == "python":
            self.optimizer._planned = False
        self._step: Any = ms.jit(self._learn) if way == "compiled" else self._learn

    def _learn(self, x: Tensor) -> Tensor:
        w, beta = self.names["both"]

        def total() -> Any:
            return (ops.tanh(x * w + beta) * self.names["factor"]).sum()

        loss, gradients = ms.value_and_grad(total, None, [w, beta])()
        self.optimizer(gradients)
        return loss

    def change(self, text: str) -> type[Exception] | None:
        try:
            exec(text, self.names)
        except Exception as error:
            return type(error)
        return None

    def step(self, x: Tensor) -> list[np.ndarray] | type[Exception]:
        """The loss, and all parameters behind the step."""
        try:
            loss = self._step(x)
        except Exception as error:
            return type(error)
        return [np.array(each.asnumpy()) for each in (loss, *self.names["both"], *self.optimizer.get_parameters())]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(5))
def test_steps_agree_with_python_after_any_changes(seed: int) -> None:
    chooses = random.Random(seed)
    make, x = chooses.choice(OPTIMIZERS), Tensor([[0.5, 1.0, -1.0], [2.0, 0.25, 1.0]])
    sides, done = [Side(make, way) for way in ("python", "planned", "compiled")], [make]
    for _ in range(6):
        words = {"V": chooses.choice(["0.25", "0.5", "2.0"]), "P": chooses.choice(["w", "beta"]),
                 "T": chooses.choice(["True", "False"])}
        done.append(filled(chooses.choice(CHANGES), words))
        assert len({side.change(done[-1]) for side in sides}) == 1, done
        expected, *others = [side.step(x) for side in sides]
        for found in others:
            if isinstance(expected, type) or isinstance(found, type):
                assert found is expected, done
                continue
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6, err_msg=str(done))
        if isinstance(expected, type):
            return

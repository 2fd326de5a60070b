"""Count the mistakes that ``mx.operator.check`` finds: it checks operators with planted mistakes, and correct ones.

``python -m benchmarks.planted`` prints each mistake with the verdict that found it, then the number of mistakes by
verdict, and the correct operators on which a verdict failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import opreg as mx
from opreg.testing import Report
from tests.custom.forty import CASES
from tests.testing.test_operator_check import MISTAKES, defined, prop

__all__ = ["CASES", "MISTAKES", "MORE", "UNDECIDABLE", "found", "false_alarms", "main"]

X = np.array([[0.3, -1.2, 0.7], [1.4, 0.9, -0.4]])
Y = np.array([[1.1, 0.6, -0.8], [0.5, -1.3, 0.2]])
_COUNT = [0]


def _slope(rule: Callable[..., Any]) -> Callable[[], Any]:
    """The square, with the gradient ``gradient``."""
    return lambda: defined(lambda x: x * x, lambda g, ins, outs: rule(g, ins[0], outs[0]))


def _body(body: Callable[..., Any], gradient: Callable[..., Any], **keywords: Any) -> Callable[[], Any]:
    return lambda: defined(body, gradient, **keywords)


def _shared(kept: dict[tuple[int, ...], np.ndarray]) -> Callable[..., Any]:
    def body(x: Any) -> Any:
        place = kept.setdefault(x.shape, np.zeros(x.shape, x.dtype))
        np.square(x.asnumpy(), out=place)
        return place

    return body


def _fixed_batch(self: Any, in_shape: Any) -> Any:
    return in_shape, [[2, *in_shape[0][1:]]], []


def _writes_top(self: Any, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
    out_grad[0][:] = out_grad[0] * 2
    self.assign(in_grad[0], req[0], in_data[0] * out_grad[0])


def _first_run(self: Any, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
    self.x = getattr(self, "x", None) if hasattr(self, "x") else in_data[0].copy()
    self.assign(out_data[0], req[0], self.x * self.x)


def _changes_input(self: Any, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
    in_data[0][:] = in_data[0] + 1
    self.assign(out_data[0], req[0], in_data[0] * in_data[0])


def _nothing(self: Any, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
    pass


def _adds_twice(self: Any, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
    for _ in range(2 if req[0] == "add" else 1):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


def _one_for_two(g: Any, ins: Any, outs: Any) -> Any:
    return g * ins[1]


def _times_calls(x: Any) -> Any:
    _COUNT[0] += 1
    return x * (1.0 if _COUNT[0] < 10 ** 6 else 2.0)


def _by_mode(x: Any, *, is_train: bool) -> Any:
    return x * 2 if is_train else x[:1]


#: Mistakes besides those in the tests of the check: a function that makes the operator, and its inputs.
MORE: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "a buffer of all calls is returned": (_body(_shared({}), lambda g, ins, outs: 2 * g * ins[0]), (X,)),
    "infer_shape knows one batch": (lambda: prop(infer_shape=_fixed_batch), (X,)),
    "backward writes into out_grad": (lambda: prop(backward=_writes_top), (X,)),
    "forward keeps the input of its first run": (lambda: prop(forward=_first_run), (X,)),
    "forward writes into its input": (lambda: prop(forward=_changes_input), (X,)),
    "backward does nothing": (lambda: prop(backward=_nothing), (X,)),
    "add adds twice": (lambda: prop(backward=_adds_twice), (X,)),
    "one gradient for two inputs": (_body(lambda x, y: x * y, _one_for_two), (X, Y)),
    "a gradient without the one from above": (_slope(lambda g, x, y: 2 * x), (X,)),
    "a gradient that is 1 % off": (_slope(lambda g, x, y: 2.02 * x * g), (X,)),
    "a gradient that is 0.1 % off": (_slope(lambda g, x, y: 2.002 * x * g), (X,)),
    "a gradient of the wrong sign": (_slope(lambda g, x, y: -2 * x * g), (X,)),
    "a gradient of the mean of those from above": (_slope(lambda g, x, y: 2 * x * mx.nd.mean(g)), (X,)),
    "a gradient of the output for the input": (_slope(lambda g, x, y: 2 * y * g), (X,)),
    "a gradient without the sign of the input": (_slope(lambda g, x, y: 2 * mx.nd.abs(x) * g), (X,)),
    "a gradient that is cut at one": (_slope(lambda g, x, y: mx.nd.clip(2 * x * g, -1, 1)), (X,)),
    "a gradient with rows in another order": (_slope(lambda g, x, y: 2 * x * mx.nd.flip(g, axis=0)), (X,)),
    "a gradient in float32": (_slope(lambda g, x, y: (2 * x * g).astype("float32").astype(g.dtype)), (X,)),
    "a row of weights gets the gradient of one row": (
        _body(lambda x, w: x * w, lambda g, ins, outs: (mx.nd.broadcast_mul(g, ins[1]), g[0] * ins[0][0])),
        (X, X[0])),
    "always float32": (_body(lambda x: mx.nd.array(x.asnumpy() ** 2, dtype="float32"),
                             lambda g, ins, outs: (2 * g.astype(ins[0].dtype) * ins[0]), types="T->T"), (X,)),
    "another shape where nothing trains": (_body(_by_mode, lambda g, ins, outs, *, is_train: g * 2), (X,)),
    "a mode that the gradient leaves out": (
        _body(lambda x, *, is_train: x * 2 if is_train else x * 1, lambda g, ins, outs: g * 2), (X,)),
    "exponentials that leave float16": (
        _body(lambda x: mx.nd.log(mx.nd.sum(mx.nd.exp(x * 10), axis=1)), lambda g, ins, outs: mx.nd.broadcast_mul(
            10 * mx.nd.softmax(ins[0] * 10), g.expand_dims(1))), (X,)),
    "a rule of samples that adds them up": (lambda: _with_rules(vmap=lambda ins, batched: mx.nd.broadcast_add(
        ins[0] * ins[0] * 0, mx.nd.sum(ins[0] * ins[0], axis=0, keepdims=True))), (X,)),
    "a rule of directions without a factor": (lambda: _with_rules(jvp=lambda t, ins, outs: t[0] * ins[0]), (X,)),
}

#: Mistakes that no run on these inputs can show, since the operator is correct on them.
UNDECIDABLE: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "a gradient that is wrong beyond five": (
        _slope(lambda g, x, y: mx.nd.where(x > 5, x * g, 2 * x * g)), (X,)),
    "a gradient that is none at zero, where no zero is given": (
        _body(lambda x: mx.nd.sqrt(x * x), lambda g, ins, outs: g * ins[0] / outs[0]), (X,)),
    "another result after a million calls": (_body(_times_calls, lambda g, ins, outs: g), (X,)),
}


def _with_rules(**rules: Callable[..., Any]) -> Any:
    op = defined(lambda x: np.square(x.asnumpy()), lambda g, ins, outs: 2 * g * ins[0])
    for name, rule in rules.items():
        getattr(op, name)(rule)
    return op


def found(planted: dict[str, tuple[Any, ...]]) -> dict[str, list[str]]:
    """The failed verdicts, by planted mistake."""
    return {name: _failed(mx.operator.check(make(), *inputs)) for name, (make, inputs, *_) in planted.items()}


def false_alarms() -> dict[str, list[str]]:
    """The failed verdicts, by correct operator."""
    failed = {name: _failed(mx.operator.check(case.op, *case.inputs, **case.attrs)) for name, case in CASES.items()}
    return {name: verdicts for name, verdicts in failed.items() if verdicts}


def _failed(report: Report) -> list[str]:
    return [verdict.name for verdict in report.failed]


def main() -> None:
    """Print the table."""
    told = found({**MISTAKES, **MORE})
    for name, verdicts in told.items():
        print(f"{', '.join(verdicts) or 'NOT FOUND':30}  {name}")
    for name, verdicts in found(UNDECIDABLE).items():
        print(f"{', '.join(verdicts) or 'undecidable':30}  {name}")
    first = Counter(verdicts[0] for verdicts in told.values() if verdicts)
    print(f"\n{sum(map(bool, told.values()))} of {len(told)} mistakes found, by " + ", ".join(
        f"{name} {count}" for name, count in first.most_common()))
    print(f"{len(UNDECIDABLE)} more are right on what they are given")
    alarms = false_alarms()
    print(f"{len(alarms)} false alarms on {len(CASES)} right operators{': ' if alarms else ''}{', '.join(alarms)}")


if __name__ == "__main__":
    main()

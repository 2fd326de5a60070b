"""The tape: what was computed while recording, and the walk back over it.

A tape node holds raw arrays and the nodes its inputs came from, never an NDArray: nothing forms a cycle, and a
result that nobody keeps frees what led to it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.dispatch import REQUESTS, write
from opreg.errors import ArgumentError, DTypeError, OpError, ShapeError, Where, did_you_mean, here
from opreg.gradient import walk
from opreg.graph import topological
from opreg.mode import MODE
from opreg.spec import show

__all__ = ["TapeNode", "leaf", "record", "backward", "gradients", "Taped", "TRANSFER", "CONSTANT"]


class TapeNode:
    """One recorded application of an operator.

    Attributes
    ----------
    op : Op or Taped
        What was applied; None for an array whose gradient is wanted, and for constants.
    attrs
        Its attributes.
    inputs : tuple of entries
        Where its inputs come from: ``(node, output number)``.
    ins, outs : list of arrays
        Raw inputs and outputs; None once a backward pass has released them.
    count : int
        Number of outputs.
    ctx, where
        Context, and the line of user code that applied it.
    """

    __slots__ = ("op", "attrs", "inputs", "ins", "outs", "count", "ctx", "where", "__weakref__")
    grad: Any = None

    def __init__(self, op: Any, attrs: Any, inputs: tuple, ins: Sequence[Any] | None, outs: Sequence[Any] | None,
                 count: int, ctx: Any, where: Where | None):
        self.op, self.attrs, self.inputs, self.ins, self.outs = op, attrs, inputs, ins, outs
        self.count, self.ctx, self.where = count, ctx, where

    def describe(self) -> str:
        """As an error note names it."""
        kind = "array" if self.op is None else f"operator {self.op.name}"
        return f"{kind}, recorded at {self.where}" if self.where else kind


class Leaf(TapeNode):
    """An array whose gradient is wanted: where it is stored, and whether it is overwritten or added to."""

    __slots__ = ("grad", "req")

    def __init__(self, array: Any, grad: Any, req: str):
        super().__init__(None, None, (), None, [array._data], 1, array._ctx, None)
        self.grad, self.req = grad, req


class Taped:
    """What the tape may hold instead of an operator: something that knows its gradient.

    ``differentiate`` is as of ``Op``.
    """

    name: str
    partial = False
    blind = False

    def visible(self, attrs: Any) -> int:
        """Number of outputs that have gradients."""
        return 1

    def loss(self, attrs: Any) -> bool:
        """Whether its gradient needs none from above."""
        return False

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> list[Any]:
        """Gradients of the inputs, None where there is none."""
        raise NotImplementedError


class _Transfer(Taped):
    """A copy to another context, from ``attrs["source"]``: its gradient is copied back."""

    name = "copyto"

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> list[Any]:
        return [g.copyto(attrs["source"])]


TRANSFER = _Transfer()
#: The entry of what nobody wants the gradient of.
CONSTANT = (TapeNode(None, None, (), None, None, 1, None, None), 0)


def leaf(array: Any, grad: Any, req: str) -> tuple[TapeNode, int]:
    """The entry of an array whose gradient goes to ``grad``."""
    if req not in REQUESTS:
        raise ArgumentError(f"grad_req {req!r}. {did_you_mean(req, ('write', 'add', 'null'))}")
    if grad is not None and grad.shape != array.shape:
        raise ShapeError(f"gradient buffer: expected shape {show(array.shape)}, got {show(grad.shape)}")
    return Leaf(array, grad, req), 0


def record(op: Any, attrs: Any, values: Sequence[Any], arrays: Sequence[Any], outs: Sequence[Any]) -> None:
    """Remember an application, if a gradient is wanted of one of its inputs."""
    entries = tuple([getattr(value, "_entry", None) or CONSTANT for value in values])
    for entry in entries:
        if entry is not CONSTANT:
            break
    else:
        return
    node = TapeNode(op, attrs, entries, arrays, [out._data for out in outs], len(outs), outs[0]._ctx, here())
    for i, out in enumerate(outs):
        out._entry = (node, i)


@functools.cache
def _wrap() -> Any:
    from .ndarray import wrap  # which imports this module

    return wrap


def _filled(like: Any, number: int) -> Any:
    data = like._data
    if data.__class__ is np.ndarray:
        data = np.empty(data.shape, data.dtype)
    else:
        data = like._ctx.backend.empty(data.shape, data.dtype, like._ctx.device_id)
    data.fill(number)
    return _wrap()(data, like._ctx)


def _zeros_like(array: Any) -> Any:
    return _filled(array, 0)


def _seeds(heads: Sequence[Any], head_grads: Sequence[Any] | None) -> dict:
    if not heads:
        raise ArgumentError("expected at least one head to differentiate")
    if head_grads is not None and len(head_grads) != len(heads):
        raise ArgumentError(f"expected {len(heads)} head gradients, got {len(head_grads)}")
    seeds: dict = {}
    for i, head in enumerate(heads):
        entry = head._entry
        if entry is None:
            raise OpError(f"head {i}: cannot differentiate an array that is not in a recorded computation; compute "
                          "it inside `with autograd.record()`, from arrays with attach_grad()")
        given = None if head_grads is None else head_grads[i]
        if given is None:
            given = _filled(head, 1)
        elif given.shape != head.shape:
            raise ShapeError(f"head gradient {i}: expected shape {show(head.shape)}, got {show(given.shape)}")
        elif given._data.dtype != head._data.dtype:
            raise DTypeError(f"head gradient {i}: expected dtype {head._data.dtype}, got {given._data.dtype}")
        seeds[entry] = given if entry not in seeds else seeds[entry] + given
    return seeds


def _walk(seeds: dict, wanted: Sequence[TapeNode], order: list[TapeNode], keep: bool, train_mode: bool) -> dict:
    """Gradients by entry; recorded themselves where ``keep``."""
    wrap = _wrap()

    def values(node: TapeNode) -> tuple[list, list]:
        ctx, ins, outs = node.ctx, node.ins, node.outs
        if ins is None or outs is None:
            raise OpError(f"{node.describe()}: cannot differentiate again, the first backward pass released what it "
                          "needs; call it with retain_graph=True")
        wrapped = [wrap(data, ctx) for data in ins], [wrap(data, ctx) for data in outs]
        if keep:
            for value, entry in zip(wrapped[0], node.inputs):
                value._entry = None if entry is CONSTANT else entry
            for i, value in enumerate(wrapped[1]):
                value._entry = node, i
        return wrapped

    before = MODE.recording, MODE.training
    MODE.recording, MODE.training = keep, train_mode
    try:
        return walk(order, seeds, wanted, values, _zeros_like, train_mode)
    finally:
        MODE.recording, MODE.training = before


def backward(heads: Sequence[Any], head_grads: Sequence[Any] | None = None, retain_graph: bool = False,
             train_mode: bool = True) -> None:
    """Store the gradients of heads in the buffers of all arrays they were computed from."""
    seeds = _seeds(heads, head_grads)
    order: list[Any] = topological(seeds)
    leaves = [node for node in order if node.grad is not None]
    found = _walk(seeds, leaves, order, False, train_mode)
    for node in leaves:
        g = found.get((node, 0))
        if g is not None:
            write(node.grad._data, node.req, g._data)
        elif node.req != "add":
            write(node.grad._data, node.req, 0)
    if not retain_graph:
        _release(order)


def gradients(heads: Sequence[Any], variables: Sequence[Any], head_grads: Sequence[Any] | None, retain_graph: bool,
              create_graph: bool, train_mode: bool) -> list[Any]:
    """Gradients of heads with respect to variables, as new arrays; recorded themselves with ``create_graph``."""
    seeds = _seeds(heads, head_grads)
    for i, variable in enumerate(variables):
        if variable._entry is None:
            raise OpError(f"variable {i}: it is not recorded; call attach_grad() on it before recording")
    order: list[Any] = topological(seeds)
    found = _walk(seeds, [variable._entry[0] for variable in variables], order, create_graph, train_mode)
    result, handed = [], {id(seed._data) for seed in seeds.values()}
    for variable in variables:
        g = found.get(variable._entry)
        g = _filled(variable, 0) if g is None else g
        if id(g._data) in handed or not g.writable:  # who changes one gradient must not change another
            entry, g = g._entry, _wrap()(g._data.copy(), g._ctx)
            g._entry = entry
        handed.add(id(g._data))
        result.append(g)
    if not (retain_graph or create_graph):
        _release(order)
    return result


def _release(order: list[TapeNode]) -> None:
    for node in order:
        if node.op is not None:
            node.ins = node.outs = None

"""The tape: what was computed while recording, and the walk back over it.

A tape node holds raw arrays and the nodes its inputs came from, never an NDArray: nothing forms a cycle, and a
result that nobody keeps frees what led to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opreg.dispatch import REQUESTS, write
from opreg.errors import ArgumentError, OpError, ShapeError, Where, did_you_mean, here
from opreg.gradient import walk
from opreg.graph import topological
from opreg.mode import MODE
from opreg.spec import show

__all__ = ["TapeNode", "leaf", "record", "backward", "gradients", "Recording"]


class TapeNode:
    """One recorded application of an operator, or an array whose gradient is wanted (``op`` None)."""

    __slots__ = ("op", "attrs", "inputs", "ins", "outs", "count", "ctx", "is_train", "where", "grad", "req", "fresh",
                 "__weakref__")

    def __init__(self, op: Any, attrs: Any, inputs: tuple, ins: Sequence[Any] | None, outs: Sequence[Any] | None,
                 count: int, ctx: Any, where: Where | None):
        self.op, self.attrs, self.inputs, self.ins, self.outs = op, attrs, inputs, ins, outs
        self.count, self.ctx, self.where = count, ctx, where
        self.is_train = MODE.training
        self.grad: Any = None
        self.req = "null"
        self.fresh = False

    def describe(self) -> str:
        """As an error note names it."""
        kind = "array" if self.op is None else f"operator {self.op.name}"
        return f"{kind}, recorded at {self.where}" if self.where else kind


class Taped:
    """What the tape may hold instead of an operator: something of one output that knows its gradient.

    ``differentiate`` is as of ``Op``.
    """

    name: str
    count = 1

    def visible(self, attrs: Any) -> int:
        """Number of outputs."""
        return self.count

    def loss(self, attrs: Any) -> bool:
        """Whether its gradient needs none from above."""
        return False


_CONSTANT = (TapeNode(None, None, (), None, None, 1, None, None), 0)


def leaf(array: Any, grad: Any, req: str) -> tuple[TapeNode, int]:
    """The entry of an array whose gradient goes to ``grad``."""
    if req not in REQUESTS:
        raise ArgumentError(f"grad_req {req!r}. {did_you_mean(req, ('write', 'add', 'null'))}")
    if grad is not None and grad.shape != array.shape:
        raise ShapeError(f"gradient buffer: expected shape {show(array.shape)}, got {show(grad.shape)}")
    node = TapeNode(None, None, (), None, [array._data], 1, array._ctx, None)
    node.grad, node.req = grad, req
    return node, 0


def record(op: Any, attrs: Any, values: Sequence[Any], arrays: Sequence[Any], outs: Sequence[Any]) -> None:
    """Remember an application, if a gradient is wanted of one of its inputs."""
    entries = tuple([getattr(value, "_entry", None) or _CONSTANT for value in values])
    for entry in entries:
        if entry is not _CONSTANT:
            break
    else:
        return
    node = TapeNode(op, attrs, entries, arrays, [out._data for out in outs], len(outs), outs[0]._ctx, here())
    for i, out in enumerate(outs):
        out._entry = (node, i)


class Recording:
    """A stretch of code with its own mode; usable as a context manager and as a decorator."""

    __slots__ = ("_recording", "_training", "_before")

    def __init__(self, recording: bool | None, training: bool | None):
        self._recording, self._training = recording, training
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> Recording:
        self._before.append((MODE.recording, MODE.training))
        if self._recording is not None:
            MODE.recording = self._recording
        if self._training is not None:
            MODE.training = self._training
        return self

    def __exit__(self, *_: Any) -> None:
        MODE.recording, MODE.training = self._before.pop()

    def __call__(self, function: Any) -> Any:
        import functools

        @functools.wraps(function)
        def inside(*args: Any, **keywords: Any) -> Any:
            with Recording(self._recording, self._training):
                return function(*args, **keywords)

        return inside


def _seeds(heads: Sequence[Any], head_grads: Sequence[Any] | None) -> dict:
    from .ndarray import NDArray

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
            given = NDArray(head._ctx.xp.ones(head.shape, head._data.dtype), head._ctx)
        elif not isinstance(given, NDArray):
            given = NDArray(head._ctx.backend.asarray(given, head._data.dtype), head._ctx)
        if given.shape != head.shape:
            raise ShapeError(f"head gradient {i}: expected shape {show(head.shape)}, got {show(given.shape)}")
        seeds[entry] = given if entry not in seeds else seeds[entry] + given
    return seeds


def _walk(seeds: dict, wanted: Sequence[TapeNode], order: list[TapeNode], keep: bool, train_mode: bool) -> dict:
    from .ndarray import NDArray, wrap

    def value(data: Any, entry: Any, ctx: Any) -> Any:
        if keep:
            result = NDArray(data, ctx)
            result._entry = None if entry is _CONSTANT else entry
            return result
        return wrap(data, ctx)

    def values(node: TapeNode) -> tuple[list, list]:
        if node.ins is None:
            raise OpError(f"{node.describe()}: cannot differentiate again, the first backward pass released what it "
                          "needs; call it with retain_graph=True")
        MODE.training = node.is_train
        return ([value(data, entry, node.ctx) for data, entry in zip(node.ins, node.inputs)],
                [value(data, (node, i), node.ctx) for i, data in enumerate(node.outs or ())])

    def zeros(like: Any) -> Any:
        return NDArray(like._ctx.xp.zeros(like.shape, like._data.dtype), like._ctx)

    with Recording(keep, train_mode):
        return walk(order, seeds, wanted, values, zeros, train_mode)


def backward(heads: Sequence[Any], head_grads: Sequence[Any] | None = None, retain_graph: bool = False,
             train_mode: bool = True) -> None:
    """Store the gradients of heads in the buffers of all arrays they were computed from."""
    seeds = _seeds(heads, head_grads)
    order = topological(seeds)
    leaves = [node for node in order if node.op is None and node.grad is not None]
    found = _walk(seeds, leaves, order, False, train_mode)
    for node in leaves:
        g = found.get((node, 0))
        if node.req != "null":
            if g is not None:
                write(node.grad._data, node.req, g._data)
            elif node.req != "add":
                node.grad._data[...] = 0
            node.fresh = True
    if not retain_graph:
        _release(order)


def gradients(heads: Sequence[Any], variables: Sequence[Any], head_grads: Sequence[Any] | None, retain_graph: bool,
              create_graph: bool, train_mode: bool) -> list[Any]:
    """Gradients of heads with respect to variables, as new arrays; recorded themselves with ``create_graph``."""
    from .ndarray import NDArray

    seeds = _seeds(heads, head_grads)
    for i, variable in enumerate(variables):
        if variable._entry is None:
            raise OpError(f"variable {i}: it is not recorded; call attach_grad() on it before recording")
    order = topological(seeds)
    found = _walk(seeds, [variable._entry[0] for variable in variables], order, create_graph, train_mode)
    result = []
    for variable in variables:
        g = found.get(variable._entry)
        result.append(NDArray(variable._ctx.xp.zeros(variable.shape, variable._data.dtype), variable._ctx)
                      if g is None else g)
    if not (retain_graph or create_graph):
        _release(order)
    return result


def _release(order: list[TapeNode]) -> None:
    for node in order:
        if node.op is not None:
            node.ins = node.outs = None

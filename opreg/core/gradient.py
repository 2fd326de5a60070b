"""The reverse walk: gradients of heads with respect to variables, for graphs and tapes.

It does not depend on the kind of values: the caller passes functions that differentiate a node and add gradients. The
former is usually ``by_rule``. Rules are ordinary code that calls operators on values, so a walk over a graph adds
nodes, and a walk over a tape computes arrays. ``fit_gradient`` checks every gradient that a user's rule returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ..errors import NotDifferentiableError, OpError, ShapeError, note, warn
from .declarations import ZERO
from .registry import ops
from .rules import Attrs
from .spec import Shape, broadcast, show, size

if TYPE_CHECKING:
    from .op import Op
    from .value import Value

__all__ = ["CUT", "by_rule", "filled_gradients", "fit_gradient", "push", "walk"]

_SINGLE_INPUT = (True,)


class _Cut(threading.local):
    """Gradients of integer dtype whose fractions were cut off in the current backward pass.

    Gradients of masks and indices inside of a function are cut, too, but are not requested. So kernels only record the
    loss, and a warning is issued if a gradient of integer dtype is returned.
    """

    lost = ""

    def note(self, dtype: np.dtype, before: Any, after: Any) -> None:
        """Record that a gradient was cut."""
        self.lost = self.lost or f"a gradient of {dtype} is cut to {dtype}: {before:g} became {after}"

    def warn(self, dtypes: Iterable[np.dtype]) -> None:
        """Warn if a returned gradient has an integer dtype, and reset the record."""
        lost, self.lost = self.lost, ""
        if any(dtype.kind in "iub" for dtype in dtypes):
            warn(f"{lost}. Convert the variable to a floating dtype first, as in x.astype('float32')")


CUT = _Cut()


class Recorded(Protocol):
    """A node of a graph or of a tape."""

    @property
    def op(self) -> Op | None:
        """The operator; None for a variable."""

    @property
    def attrs(self) -> Attrs:
        """Complete typed attributes."""

    @property
    def inputs(self) -> Sequence[tuple[Any, int]]:
        """Entries of other nodes."""

    @property
    def count(self) -> int:
        """The number of outputs."""

    def describe(self) -> str:
        """The node as text for an error."""

    def in_training(self, is_train: bool | None) -> bool:
        """Whether the node computes as in training; ``is_train`` is the mode of the pass."""


N = TypeVar("N", bound=Recorded)
G = TypeVar("G")
V = TypeVar("V")
W = TypeVar("W", bound="Value")


def fit_gradient(g: Any, like: Any, what: str) -> Any:
    """A gradient, reduced to the shape of its value.

    If the value was broadcast, the gradient is larger, and is summed. A smaller gradient is an error, since repeating
    its elements would be wrong.

    Parameters
    ----------
    g, like : values of one kind
        The gradient and its value.
    what : str
        The name of the gradient in errors.

    Raises
    ------
    ShapeError
        If the value cannot be broadcast to the shape of the gradient.
    """
    if g._shape_is(like):
        return g
    try:
        got, target = g.shape, like.shape
    except OpError:  # shapes are unknown before the graph is bound
        return ops._reduce_like(g, like)
    if got == target:
        return g
    if size(got) == size(target) == 1:  # sums of NumPy are 0-d, those of NDArrays have one axis
        return ops.reshape_like(g, like)
    if not _broadcasts_to(target, got):
        raise ShapeError(f"{what} has shape {show(got)}, expected {show(target)}")
    return ops._reduce_like(g, like)


def _broadcasts_to(shape: Shape, target: Shape) -> bool:
    """Whether a value of the first shape broadcasts to the second."""
    try:
        return broadcast(shape, target) == target
    except ShapeError:
        return False


def _dependents(order: Iterable[N], targets: set[N]) -> set[N]:
    """The targets, and all nodes through which gradients reach them."""
    found = targets.copy()
    for node in order:
        if node.op is None or node.op.rules.grad is ZERO:  # no gradient passes, so earlier hooks are not called
            continue
        for source, _ in node.inputs:
            if source in found:
                found.add(node)
                break
    return found


def walk(order: Sequence[N], seeds: dict[tuple[N, int], G | None], wanted: Iterable[N],
         differentiate: Callable[[N, list[G | None], tuple[bool, ...]], Sequence[G | None]],
         add: Callable[[tuple[N, int], G, G], G], live: Collection[N] | None = None) -> dict[tuple[N, int], G | None]:
    """Gradients of the sum of heads, weighted by seeds. A loss on which heads depend adds its gradient even if no
    gradient reaches it, as in MXNet: behind BlockGrad or argmax, for example.

    Parameters
    ----------
    order : sequence of nodes
        Inputs before users.
    seeds : dict of entry to value
        Gradients of the heads; None for a loss. The dict is extended by all gradients.
    wanted : iterable of nodes
        Variables or inner nodes whose gradients are requested.
    differentiate : function of a node, its output gradients, and whether each input needs a gradient
        Returns a gradient or None for each input.
    add : function of an entry and two gradients of it
        Returns their sum.
    live : set of nodes, optional
        The wanted nodes and all nodes that depend on them, if they are known.

    Returns
    -------
    dict of entry to value
        Gradients of wanted nodes that the heads depend on, and perhaps of others.

    Raises
    ------
    NotDifferentiableError
        If a path from a head to a wanted variable contains an operator without gradient. The error names operator and
        node.
    """
    targets = set(wanted)
    if live is None:
        live = _dependents(order, targets)
    grads: dict[Any, Any] = seeds
    for node in reversed(order):
        op = node.op
        if op is None or node not in live:
            continue
        take = grads.get if node in targets else grads.pop
        if node.count == 1:
            g = take((node, 0), None)
            if g is None and not op.loss(node.attrs):
                continue
            out_grads = [g]
        else:
            out_grads = [take((node, i), None) for i in range(node.count)]
            if all(g is None for g in out_grads) and not op.loss(node.attrs):
                continue
        inputs = node.inputs
        needs = _SINGLE_INPUT if len(inputs) == 1 and inputs[0][0] in live else tuple(
            [source in live for source, _ in inputs])
        try:
            results = differentiate(node, out_grads, needs)
        except NotDifferentiableError as error:
            note(error, node.describe())
            raise
        except Exception as error:
            note(error, f"in the gradient of {node.describe()}")
            raise
        for entry, need, result in zip(inputs, needs, results):
            if need and result is not None:
                total = grads.get(entry)
                grads[entry] = result if total is None else add(entry, total, result)
    return grads


def push(order: Iterable[N], tangents: dict[tuple[N, int], G], along: Callable[[N, list[G | None]], Sequence[G | None]]
         ) -> None:
    """Directional derivatives (forward mode), from inputs to heads.

    Parameters
    ----------
    order : sequence of nodes
        Inputs before users.
    tangents : dict of entry to value
        Tangents of variables. The dict is extended by the tangents of all nodes that depend on these.
    along : function of a node and the tangents of its inputs
        Returns a tangent or None for each output.
    """
    for node in order:
        in_tangents = [tangents.get(entry) for entry in node.inputs]
        if node.op is None or all(t is None for t in in_tangents):
            continue
        try:
            results = along(node, in_tangents)
        except Exception as error:
            note(error, f"in the derivative of {node.describe()}")
            raise
        tangents.update([((node, i), result) for i, result in enumerate(results) if result is not None])


def by_rule(node: N, out_grads: Sequence[W | None], needs: Sequence[bool],
            values: Callable[[N], tuple[Sequence[W], Sequence[W]]], zeros: Callable[[W], W], is_train: bool | None
            ) -> Sequence[W | None]:
    """Gradients of a node's inputs by the rule of its operator.

    Parameters
    ----------
    values : function of a node
        Returns its inputs and outputs as values.
    zeros : function of a value
        Returns zeros of the same shape and dtype, for outputs without a gradient if other outputs have one.
    is_train : bool or None
        The mode of the forward pass; None if each node has its own.
    """
    op = node.op
    assert op is not None
    ins, outs = values(node) if op.traits.grad_reads else ((), ())
    out_grads = filled_gradients(node, out_grads, outs, zeros)
    return op.differentiate(out_grads[0] if node.count == 1 else tuple(out_grads), ins, outs, node.attrs, needs,
                            node.in_training(is_train))


def filled_gradients(node: Recorded, out_grads: Sequence[G | None], outs: Sequence[V], zeros: Callable[[V], G]
                     ) -> Sequence[G | None]:
    """The output gradients of a node, with zeros for missing ones if the operator's rule needs them."""
    op = node.op
    if op is None or node.count == 1 or op.traits.optional_out_grads:
        return out_grads
    visible = op.signature.visible(node.attrs)
    return [zeros(outs[i]) if g is None and i < visible else g for i, g in enumerate(out_grads)]

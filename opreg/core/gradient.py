"""The reverse walk: gradients of heads with respect to variables, for a graph and a tape alike.

It knows nothing of arrays or symbols: who walks says how a node is differentiated, and how gradients that meet are
added. As a rule that is ``by_rule``: rules are ordinary code that calls operators on values; so a graph's walk grows a
graph, and a tape's computes. ``fitted`` is what every gradient that a user wrote goes through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ..errors import NotDifferentiableError, OpError, ShapeError, note, warn
from .registry import ops
from .rules import Attrs
from .spec import Shape, broadcast, show, size

if TYPE_CHECKING:
    from .op import Op
    from .value import Value

__all__ = ["CUT", "by_rule", "filled", "fitted", "push", "walk"]

_ALONE = (True,)
# Stands for the missing gradient of an output; None is for losses, which need none.
_UNREACHED = object()


class _Cut(threading.local):
    """Gradients of integers whose fractions were cut when they were stored, in the pass that runs.

    A mask or an index within the function loses a gradient that nobody asks for. So the kernel only notes the loss,
    and who hands out the gradient of a tensor of integers says it.
    """

    lost = ""

    def note(self, dtype: np.dtype, before: Any, after: Any) -> None:
        """Note a loss."""
        self.lost = self.lost or f"a gradient of {dtype} is cut to {dtype}: {before:g} became {after}"

    def tell(self, dtypes: Iterable[np.dtype]) -> None:
        """Warn of the loss, if gradients of such dtypes are handed out; forget it."""
        lost, self.lost = self.lost, ""
        if any(dtype.kind in "iub" for dtype in dtypes):
            warn(f"{lost}. Convert what is differentiated to floating numbers before, as in x.astype('float32')")


CUT = _Cut()


class Recorded(Protocol):
    """A node of a graph or a tape."""

    @property
    def op(self) -> Op | None:
        """None for a variable."""

    @property
    def attrs(self) -> Attrs:
        """Typed attributes, complete."""

    @property
    def inputs(self) -> Sequence[tuple[Any, int]]:
        """Entries of other such nodes."""

    @property
    def count(self) -> int:
        """Number of outputs."""

    def describe(self) -> str:
        """The node as an error note names it."""

    def in_training(self, is_train: bool | None) -> bool:
        """Whether the node computes as in training, given the mode of the pass."""


N = TypeVar("N", bound=Recorded)
G = TypeVar("G")
V = TypeVar("V")
W = TypeVar("W", bound="Value")


def fitted(g: Any, like: Any, what: str) -> Any:
    """A gradient in the shape of the value that it is the gradient of.

    A gradient that is larger because the value was broadcast is summed down. One that is too small is refused:
    repeating it would make up numbers.

    Parameters
    ----------
    g, like : values of one kind
        The gradient, and the value that it belongs to.
    what : str
        The gradient, as an error names it.

    Raises
    ------
    ShapeError
        When broadcasting does not explain the difference.
    """
    if g._shape_is(like):
        return g
    try:
        got, wanted = g.shape, like.shape
    except OpError:  # of a graph that is not bound: found out then
        return ops._reduce_like(g, like)
    if got == wanted:
        return g
    if size(got) == size(wanted) == 1:  # NumPy's sums have no axes, those of arrays have one
        return ops.reshape_like(g, like)
    if not _stretches(wanted, got):
        raise ShapeError(f"{what} has shape {show(got)}, expected {show(wanted)}")
    return ops._reduce_like(g, like)


def _stretches(shape: Shape, wanted: Shape) -> bool:
    """Whether a value of the first shape broadcasts to the second."""
    try:
        return broadcast(shape, wanted) == wanted
    except ShapeError:
        return False


def walk(order: Sequence[N], seeds: dict[tuple[N, int], G | None], wanted: Iterable[N],
         differentiate: Callable[[N, list[G | None], tuple[bool, ...]], Sequence[G | None]],
         add: Callable[[tuple[N, int], G, G], G]) -> dict[tuple[N, int], G | None]:
    """Gradients of the sum of heads times seeds.

    Parameters
    ----------
    order : sequence of nodes
        Inputs before users.
    seeds : dict of entry to value
        Gradients of the heads; None for a loss that needs none. All gradients are noted in it.
    wanted : iterable of nodes
        Variables (or inner nodes) whose gradients the caller wants.
    differentiate : function of a node, the gradients of its outputs and which inputs need one
        Gradients of the inputs, None for an input that has none.
    add : function of an entry and two gradients of it
        Their sum.

    Returns
    -------
    dict of entry to value
        Gradients of the entries of wanted nodes that the heads depend on, perhaps beside others.

    Raises
    ------
    NotDifferentiableError
        Naming operator and node, when the way from a head to a wanted variable leads through an operator
        without gradient.
    """
    targets = set(wanted)
    live = targets.copy()
    for node in order:
        for source, _ in node.inputs:
            if source in live:
                live.add(node)
                break
    grads: dict[Any, Any] = seeds
    for node in reversed(order):
        op = node.op
        if op is None or node not in live:
            continue
        take = grads.get if node in targets else grads.pop
        if node.count == 1:
            g = take((node, 0), _UNREACHED)
            if g is _UNREACHED or (g is None and not op.loss(node.attrs)):
                continue
            out_grads = [g]
        else:
            entering = [take((node, i), _UNREACHED) for i in range(node.count)]
            out_grads = [None if g is _UNREACHED else g for g in entering]
            if all(g is None for g in out_grads) and (all(g is _UNREACHED for g in entering)
                                                     or not op.loss(node.attrs)):
                continue
        inputs = node.inputs
        needs = _ALONE if len(inputs) == 1 and inputs[0][0] in live else tuple([source in live for source, _ in inputs])
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
    """Derivatives along directions, from inputs to heads.

    Parameters
    ----------
    order : sequence of nodes
        Inputs before users.
    tangents : dict of entry to value
        Directions of variables. Derivatives of the outputs of all nodes that move with these are noted in it.
    along : function of a node and the derivatives of its inputs
        Derivatives of the node's outputs, None for an output that has none.
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
        Its inputs and outputs as values.
    zeros : function of a value
        Zeros like it, for outputs that no gradient reaches while others of the node have one.
    is_train : bool or None
        The mode the forward pass ran in; None where each node knows its own.
    """
    op = node.op
    assert op is not None
    ins, outs = values(node) if op.traits.grad_reads else ((), ())
    out_grads = filled(node, out_grads, outs, zeros)
    return op.differentiate(out_grads[0] if node.count == 1 else tuple(out_grads), ins, outs, node.attrs, needs,
                            node.in_training(is_train))


def filled(node: Recorded, out_grads: Sequence[G | None], outs: Sequence[V], zeros: Callable[[V], G]
           ) -> Sequence[G | None]:
    """Gradients of a node's outputs, with zeros where there is none and the rule of the operator expects some."""
    op = node.op
    if op is None or node.count == 1 or op.traits.optional_out_grads:
        return out_grads
    visible = op.signature.visible(node.attrs)
    return [zeros(outs[i]) if g is None and i < visible else g for i, g in enumerate(out_grads)]

"""The reverse walk: gradients of heads with respect to variables, for a graph and a tape alike.

It knows nothing of arrays or symbols. Values come from ``values(node)``; rules are ordinary code that calls
operators on them; so a graph's walk grows a graph, and a tape's computes. ``fitted`` is what every gradient that a
user wrote goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .errors import NotDifferentiableError, OpError, ShapeError, note
from .registry import ops
from .spec import broadcast, show, size

__all__ = ["fitted", "walk"]


def fitted(g: Any, like: Any, what: str) -> Any:
    """A gradient in the shape of the value that it is the gradient of.

    Where it is larger because that value was broadcast it is summed down. One that is too small is refused: repeating
    it would make up numbers.

    Parameters
    ----------
    g, like : values of one kind
        The gradient, and what it is the gradient of.
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


def _stretches(shape: Any, wanted: Any) -> bool:
    """Whether broadcasting makes one shape of another."""
    try:
        return broadcast(shape, wanted) == wanted
    except ShapeError:
        return False


def walk(order: Sequence[Any], seeds: Mapping[tuple[Any, int], Any], wanted: Iterable[Any],
         values: Callable[[Any], tuple[Sequence[Any], Sequence[Any]]],
         zeros: Callable[[Any], Any], is_train: bool | None = True,
         repeat: Callable[[Any, Any, list[bool]], Sequence[Any] | None] | None = None,
         found_for: Callable[[Any, Sequence[Any]], None] | None = None) -> dict[tuple[Any, int], Any]:
    """Gradients of the sum of heads times seeds.

    Parameters
    ----------
    order : sequence of nodes
        Inputs before users. A node has ``op`` (None for a variable), ``attrs``, ``inputs``, ``in_training()``,
        ``describe()``.
    seeds : mapping of entry to value
        Gradients that arrive at the heads; None for a loss that needs none.
    wanted : iterable of nodes
        Variables (or inner nodes) whose gradient is asked for.
    values : function of a node
        Its inputs and outputs as values.
    zeros : function of a value
        Zeros like it, for outputs that no gradient reaches while others of the node have one.
    is_train : bool or None
        The mode the forward pass ran in; None where each node knows its own.
    repeat : function of a node, the gradient of its output and which inputs need one, optional
        What the rule of an operator with one output gives, where that is known without running it; else None.
    found_for : function of a node and the gradients of its inputs, optional
        Told of them.

    Returns
    -------
    dict of entry to value
        Gradients of the entries of wanted nodes that the heads depend on.

    Raises
    ------
    NotDifferentiableError
        Naming operator and node, when the way from a head to a wanted variable leads through an operator
        without gradient.
    """
    targets = set(wanted)
    live = set(targets)
    for node in order:
        for source, _ in node.inputs:
            if source in live:
                live.add(node)
                break
    grads: dict[tuple[Any, int], Any] = {}
    reached = set()
    for entry, seed in seeds.items():
        reached.add(entry[0])
        if seed is not None:
            grads[entry] = seed
    found: dict[tuple[Any, int], Any] = {}
    for node in reversed(order):
        if node not in reached:
            continue
        op, attrs, count = node.op, node.attrs, node.count
        if node in targets:
            for i in range(count):
                if (node, i) in grads:
                    found[node, i] = grads[node, i]
        if op is None or node not in live:
            continue
        g = grads.pop((node, 0), None) if count == 1 else [grads.pop((node, i), None) for i in range(count)]
        if (g is None or (count != 1 and all(each is None for each in g))) and not op.loss(attrs):
            continue
        needs = [source in live for source, _ in node.inputs]
        try:
            results = None if repeat is None or count != 1 else repeat(node, g, needs)
            if results is None:
                ins, outs = ((), ()) if not op.grad_reads else values(node)
                if count != 1 and not op.optional_out_grads:
                    visible = op.visible(attrs)
                    g = tuple(zeros(outs[i]) if each is None and i < visible else each for i, each in enumerate(g))
                results = op.differentiate(g, ins, outs, attrs, needs, node.in_training(is_train))
        except NotDifferentiableError as error:
            note(error, node.describe())
            raise
        except Exception as error:
            note(error, f"in the gradient of {node.describe()}")
            raise
        if found_for is not None:
            found_for(node, results)
        for entry, need, result in zip(node.inputs, needs, results):
            if need and result is not None:
                reached.add(entry[0])
                before = grads.get(entry)
                grads[entry] = result if before is None else before + result
    return found

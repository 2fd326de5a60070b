"""The backward pass: gradients of the operators on a tape, in the reverse of the order in which they were recorded."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opreg.core import host_memory
from opreg.core.array_module import ENTERED
from opreg.core.cache import Recent
from opreg.core.declarations import ZERO
from opreg.core.dispatch import write
from opreg.core.gradient import CUT, by_rule, filled_gradients, walk
from opreg.core.mode import MODE, quiet
from opreg.core.op import Op
from opreg.core.spec import show
from opreg.core.versions import LATEST, WATCHED, Targets, must_record_write, tick, wrote_all
from opreg.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    OpError,
    ShapeError,
)
from opreg.typing import Array

from . import finite
from .eager import CachedUse, runner_of
from .finite import CheckedRecording, deliberate
from .overwritten import present
from .sparse_numbers import Rows
from .tape import CONSTANT, UNDIFFERENTIATED, WRAP, CopiedVariable, TapeEntry, TapeNode, number_names
from .traced_rules import differentiate

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["PASS", "ROW_GRADIENTS", "arrays_of", "backward", "gradients", "node_gradients", "order_of", "raw_gradients"]

#: By operator, a function of a node and its output gradients; it returns the input gradients as `Rows`, or None if the
#: gradients are dense.
ROW_GRADIENTS: dict[str, Callable[[TapeNode, Sequence[Any]], Sequence[Any] | None]] = {}


def _constant_like(like: NDArray, number: int) -> NDArray:
    data = like._data
    if data.__class__ is np.ndarray:
        data = host_memory.empty(data.shape, data.dtype)
    else:
        data = like._ctx.backend.empty(data.shape, data.dtype, like._ctx.device_id)
    like._ctx.run(data.fill, number)
    return WRAP.function(data, like._ctx)


def _zeros_like(array: NDArray) -> NDArray:
    return _constant_like(array, 0)


_FEW = 1024
_ONES: Recent = Recent(_FEW, "small arrays of ones")


def _ones(like: NDArray) -> Array:
    """Raw ones with the shape and dtype of an array. Small arrays are shared and read-only."""
    data = like._data
    if data.__class__ is not np.ndarray or data.size > _FEW:
        return _constant_like(like, 1)._data
    key = data.shape, data.dtype
    ones = _ONES[key]
    if ones is None:
        ones = np.ones(data.shape, data.dtype)
        ones.flags.writeable = False
        _ONES.keep(key, ones)
    return ones


def _seeds(heads: Sequence[NDArray], head_grads: Sequence[Any] | None, recorded: bool
           ) -> dict[TapeEntry, Any]:
    """Gradients of the heads, by entry: NDArrays if gradients are recorded, or else raw arrays."""
    if len(heads) == 1 and head_grads is None and not recorded and heads[0]._entry is not None:  # the usual case
        return {heads[0]._entry: _ones(heads[0])}
    if not heads:
        raise ArgumentError("expected at least one head to differentiate")
    if head_grads is not None and len(head_grads) != len(heads):
        raise ArgumentError(f"expected {len(heads)} head gradients, got {len(head_grads)}")
    seeds: dict[TapeEntry, Any] = {}
    for i, head in enumerate(heads):
        entry = head._entry
        if entry is None:
            raise OpError(f"head {i}: cannot differentiate an array that is not in a recorded computation; compute "
                          "it inside `with autograd.record()`, from arrays with attach_grad(), by operators; results "
                          "of asnumpy(), detach() and pause() are not recorded")
        head_grad = None if head_grads is None else head_grads[i]
        if head_grad is None:
            value: Any = _constant_like(head, 1) if recorded else _ones(head)
        elif not hasattr(head_grad, "_data"):
            raise ArgumentError(f"head gradient {i}: expected an NDArray, got {type(head_grad).__name__}")
        elif not head_grad._ctx.shares(head._ctx):
            raise DeviceError(f"head gradient {i} lives on {head_grad._ctx}, its head on {head._ctx}: move it, as in "
                              f"x.as_in_context(mx.{head._ctx})")
        elif head_grad.shape != head.shape:
            raise ShapeError(f"head gradient {i}: expected shape {show(head.shape)}, got {show(head_grad.shape)}")
        elif head_grad._data.dtype != head._data.dtype:
            raise DTypeError(f"head gradient {i}: expected dtype {head._data.dtype}, got {head_grad._data.dtype}")
        else:
            value = head_grad if recorded else head_grad._data
        if entry in seeds:
            value = seeds[entry] + value if recorded else _sum(set(), entry, seeds[entry], value)
        seeds[entry] = value
    return seeds


class _Pass(threading.local):
    """The backward pass of a thread.

    Attributes
    ----------
    last : TapeNode or None
        The node that ``backward`` differentiates last. Since nothing reads these gradients afterwards, it may compute
        them in the memory of leaves whose request is ``write``.
    targets : Targets or None
        The memory of leaves in which that node computed gradients.
    """

    last: TapeNode | None = None
    targets: Targets | None = None


PASS = _Pass()
_number = operator.attrgetter("number")


#: The nodes of operators that entries depend on, in the order of recording, so inputs before users; the variables that
#: they depend on, also those of constants; and a set of all, or None if no gradient passes some of them: a released
#: node counts as a constant, and some operators have the derivative zero.
_Reached: TypeAlias = "tuple[list[TapeNode], list[TapeNode], set[TapeNode] | None]"


def _reachable_nodes(seeds: Iterable[TapeEntry]) -> _Reached:
    """The nodes that entries depend on.

    A released node counts as a constant for nodes that were recorded after its release, such as those that read the
    carried state of a recurrent network. For nodes recorded before, it is an error.
    """
    nodes: list[TapeNode] = []
    variables: list[TapeNode] = []
    every = {UNDIFFERENTIATED}
    for node, _ in seeds:
        if node not in every:
            every.add(node)
            (variables if node.op is None else nodes).append(node)
    ends: TapeNode | None = None
    passes = True
    for node in nodes:
        if node.ins is None:
            _raw_arrays(node)
        if node.op.rules.grad is ZERO:
            passes = False
        for source, _ in node.inputs:
            if source in every:
                continue
            if source.op is None:
                variables.append(source)
            elif source.ins is None and node.number > source.number:
                ends = source
                continue
            else:
                nodes.append(source)
            every.add(source)
    if ends is not None and not variables:
        _raw_arrays(ends)
    every.remove(UNDIFFERENTIATED)
    if len(nodes) > 1:
        nodes.sort(key=_number)
    return nodes, variables, every if ends is None and passes else None


def _raw_arrays(node: TapeNode) -> tuple[Sequence[Array], Sequence[Array]]:
    """The raw inputs and outputs of a node."""
    ins, outs = node.ins, node.outs
    if ins is None or outs is None:
        raise OpError(f"{node.describe()}: cannot differentiate again, the first backward pass released what it "
                      "needs; call it with retain_graph=True")
    return ins, outs


def _walk(seeds: dict[TapeEntry, Any], leaves: Sequence[TapeNode], reached: _Reached, train_mode: bool | None,
          recorded: bool = False) -> dict[TapeEntry, Any]:
    """Run the backward pass. Gradients by entry: NDArrays if they are to be ``recorded``, or else raw arrays."""
    order, variables, live = reached
    thread, CUT.lost, wanted = MODE.__dict__, "", set(leaves)
    if not wanted.issuperset(variables):
        live = None
    checked = next(filter(None, [node.checked for node in order]), None) if finite.USED else None
    mode, choice = thread["current"](), (recorded and (checked or True), train_mode is not False)
    try:
        thread["set"](mode.following.get(choice) or mode.recorded(*choice))
        if not recorded:
            step: Callable[..., Any] = _IN_MODE[train_mode]
            if ENTERED:
                step = functools.partial(_step_on_device, step)
            for node in leaves:
                if node.grad is not None and node.grad._sparse:
                    step = functools.partial(_sparse_step, step)
                    break
            if checked is not None:
                return walk(order, seeds, wanted, functools.partial(_checked_step, step, checked),
                            functools.partial(_checked_sum, checked), live)
            return walk(order, seeds, wanted, step, functools.partial(_sum, set()), live)
        return walk(order, seeds, wanted,
                    lambda node, out_grads, needs: by_rule(node, out_grads, needs, functools.partial(
                        _recorded_arrays, out_grads, needs, node.in_training(train_mode)), _zeros_like, train_mode),
                    lambda _, first, second: first + second, live)
    finally:
        thread["set"](mode)


def _recorded_arrays(out_grads: Sequence[Any], needs: tuple[bool, ...], is_train: bool, node: TapeNode
            ) -> tuple[list[NDArray], list[NDArray]]:
    """The inputs and outputs of a node as recorded arrays."""
    ctx, wrap, (ins, outs) = node.ctx, WRAP.function, _raw_arrays(node)
    if LATEST[0] > node.number:
        ins, outs = present(node, out_grads, needs, is_train)
    wrapped = [wrap(data, ctx) for data in ins], [wrap(data, ctx) for data in outs[:node.count]]
    for value, entry in zip(wrapped[0], node.inputs):
        value._entry = None if entry is CONSTANT else entry
    for i, value in enumerate(wrapped[1]):
        value._entry = node, i
    return wrapped


def _differentiate(train_mode: bool | None, node: TapeNode, out_grads: Sequence[Array | None], needs: tuple[bool, ...]
                   ) -> Sequence[Array | None]:
    """Raw gradients of a node's inputs; None for an input without one."""
    op, attrs, ctx = node.op, node.attrs, node.ctx
    is_train = node.in_training(None) if train_mode is None else train_mode
    ins, outs = node.ins, node.outs
    if not op.traits.grad_reads:
        ins = outs = ()
    elif ins is None or outs is None:
        ins, outs = _raw_arrays(node)  # raises the error
    if node.count != 1:
        out_grads = filled_gradients(node, out_grads, outs, lambda out: ctx.xp.zeros(out.shape, out.dtype))
    if op.traits.grad_reads:
        if LATEST[0] > node.number:
            ins, outs = present(node, out_grads, needs, is_train)
        prepared = node.prepared
        if prepared is None and not op.signature.per_instance and op.where is None:
            prepared = runner_of(op, attrs, ins, ctx)
        if isinstance(prepared, CachedUse):
            grads = differentiate(prepared, out_grads, ins, outs, needs, is_train, node.inputs)
            if grads is not None:
                return grads
    elif op.rules.raw_grad is not None:
        return op.rules.raw_grad(attrs, out_grads, needs, ctx)
    wrap = WRAP.function
    back = getattr(node.prepared, "back", None)
    if back is not None:
        raws: Sequence[Array | None] | None = back(attrs, out_grads, ins, outs, needs, wrap)
        if raws is not None:
            return raws
    g = [None if data is None else wrap(data, ctx) for data in out_grads]
    values = op.differentiate(g[0] if node.count == 1 else tuple(g), [wrap(data, ctx) for data in ins],
                              [wrap(data, ctx) for data in outs[:node.count]], attrs, needs, is_train)
    return [None if value is None else value._data for value in values]


def _sparse_step(step: Callable[..., Any], node: TapeNode, out_grads: Sequence[Any], needs: tuple[bool, ...]) -> Any:
    """A step of the backward pass, in which gradients for sparse arrays may be `Rows`."""
    rule = ROW_GRADIENTS.get(getattr(node.op, "name", ""))
    grads = None if rule is None else node.ctx.run(rule, node, out_grads)
    return step(node, out_grads, needs) if grads is None else grads


def _step_on_device(step: Callable[..., Any], node: TapeNode, *args: Any) -> Any:
    """A step of the backward pass on the device of its node."""
    with node.ctx.entered():
        return step(node, *args)


def _checked_step(step: Callable[..., Any], checked: CheckedRecording, node: TapeNode,
                  out_grads: Sequence[Array | None], needs: tuple[bool, ...]) -> Sequence[Array | None]:
    """A step of the backward pass, and a check of its results."""
    ins, outs = (node.ins or (), node.outs or ()) if getattr(node.op, "grad_reads", True) else ((), ())
    grads = step(node, out_grads, needs)
    op, attrs = node.op, node.attrs
    if deliberate(op, attrs):
        return grads
    registered = isinstance(op, Op)
    names = op.signature.inputs(attrs) if registered else number_names("input", node.inputs)
    made = op.signature.outputs(attrs) if registered else number_names("output", out_grads)
    named_arrays = [*zip([f"gradient of {name}" for name in made], out_grads), *zip(names, ins), *zip(made, outs)]
    finite.check_step(f"in the gradient of {node.describe()}", node.ctx.xp, named_arrays,
                      [(f"gradient of {name}", grad) for name, grad, need in zip(names, grads, needs) if need],
                      checked.choice)
    return grads


def _checked_sum(checked: CheckedRecording, entry: TapeEntry, first: Array, second: Array) -> Array:
    """The sum of two raw gradients of an entry, and a check of it."""
    total = _sum(set(), entry, first, second)
    finite.check_step(f"in the sum of gradients of {entry[0].describe()}", entry[0].ctx.xp,
                      [("one", first), ("another", second)], [("sum", total)], checked.choice,
                      lambda xp, ins: [ins[0] + ins[1]])
    return total


_IN_MODE = {mode: functools.partial(_differentiate, mode) for mode in (None, False, True)}


def _sum(summed: set[TapeEntry], entry: TapeEntry, first: Any, second: Any) -> Any:
    """The sum of two raw gradients of an entry, in the memory of the first if ``summed`` has that as such a sum."""
    if first.__class__ is second.__class__ is np.ndarray and first.dtype is second.dtype and first.dtype.kind != "b":
        into = first if entry in summed and first.shape == second.shape else None
        summed.add(entry)
        total = quiet(np.add, first, second, into)
        return total if total.__class__ is np.ndarray else np.asarray(total)
    if isinstance(first, Rows) or isinstance(second, Rows):
        return entry[0].ctx.run(operator.add, *((second, first) if isinstance(second, Rows) else (first, second)))
    wrap, ctx = WRAP.function, entry[0].ctx
    return (wrap(first, ctx) + wrap(second, ctx))._data


def backward(heads: Sequence[NDArray], head_grads: Sequence[NDArray | None] | None = None, retain_graph: bool = False,
             train_mode: bool | None = True) -> None:
    """Compute the gradients of heads with respect to all arrays with ``attach_grad``, and store them there."""
    seeds = _seeds(heads, head_grads, False)
    reached = _reachable_nodes(seeds)
    nodes, variables, _ = reached
    leaves: list[Any] = [node for node in variables if node.grad is not None]  # of class Leaf
    before, PASS.last = PASS.last, nodes[0] if nodes else None
    try:
        gradients = _walk(seeds, leaves, reached, train_mode)
    finally:
        targets, PASS.last, PASS.targets = PASS.targets, before, None
        if targets is not None and WATCHED:
            targets.wrote()
    changed = []
    for leaf in leaves:
        if leaf.req == "null":  # as in MXNet, where the first backward pass drops the array of zeros
            leaf.grad = None
            continue
        leaf.fresh = True
        g = gradients.get((leaf, 0))
        if g is None:
            if leaf.req == "add":
                continue
            g = 0
        if leaf.grad._sparse:
            leaf.grad._receive(leaf.req, g)
            continue
        data = leaf.grad._data
        if g is data:  # the gradient was computed in the target array
            continue
        if ENTERED:
            leaf.ctx.run(write, data, leaf.req, g)
        else:
            write(data, leaf.req, g)
        if must_record_write(leaf.grad, 1):
            changed.append(data)
    if changed:
        wrote_all(changed)
    if CUT.lost:
        CUT.warn([np.dtype(leaf.grad.dtype) for leaf in leaves if leaf.grad is not None])
    if not retain_graph:
        _release(nodes)


def gradients(heads: Sequence[NDArray], variables: Sequence[NDArray], head_grads: Sequence[Any] | None,
              retain_graph: bool, create_graph: bool, train_mode: bool | None) -> list[NDArray]:
    """Gradients of heads with respect to variables, as new arrays, which ``create_graph`` records."""
    entries: list[TapeEntry] = []
    for i, variable in enumerate(variables):
        if variable._entry is None:
            raise OpError(f"variable {i}: it is not recorded; call attach_grad() on it before recording")
        entries.append(variable._entry)
    wrap = WRAP.function
    if not create_graph:
        raws = raw_gradients(heads, variables, entries, head_grads, retain_graph, train_mode)
        return [wrap(data, variable._ctx) for data, variable in zip(raws, variables)]
    seeds = _seeds(heads, head_grads, True)
    handed = {id(seed._data) for seed in seeds.values()}
    recorded = _walk(seeds, [node for node, _ in entries], _reachable_nodes(seeds), train_mode, True)
    result = []
    for variable, key in zip(variables, entries):
        g = recorded.get(key)
        g = _constant_like(variable, 0) if g is None else g
        if id(g._data) in handed or not g.writable:  # no two results share memory
            entry, g = g._entry, wrap(g._ctx.run(g._data.copy), g._ctx)
            g._entry = entry
        handed.add(id(g._data))
        result.append(g)
    return result


def order_of(entries: Iterable[TapeEntry]) -> list[TapeNode]:
    """The nodes that entries depend on, inputs before users."""
    nodes, variables, _ = _reachable_nodes(entries)
    return [*variables, *nodes]


def arrays_of(node: TapeNode) -> tuple[list[NDArray], list[NDArray]]:
    """The inputs and outputs of a node as recorded arrays, in the mode of the recording."""
    return _recorded_arrays([None] * node.count, (True,) * len(node.inputs), node.in_training(None), node)


def node_gradients(node: TapeNode, out_grads: Sequence[NDArray | None]) -> dict[TapeEntry, NDArray]:
    """Recorded gradients of the inputs of one node, from those of its outputs."""
    seeds = {(node, i): g for i, g in enumerate(out_grads) if g is not None}
    sources = {source for source, _ in node.inputs if source is not UNDIFFERENTIATED}
    return _walk(dict(seeds), list(sources), ([node], [], {node, *sources}), None, True)


def raw_gradients(heads: Sequence[NDArray], variables: Sequence[NDArray], entries: Sequence[TapeEntry],
                  head_grads: Sequence[Any] | None, retain_graph: bool, train_mode: bool | None) -> list[Array]:
    """Gradients of heads with respect to variables with these entries, as raw arrays that share no memory."""
    seeds = _seeds(heads, head_grads, False)
    handed = {*map(id, seeds.values())}
    reached = _reachable_nodes(seeds)
    grads = _walk(seeds, [node for node, _ in entries], reached, train_mode)
    result = []
    for variable, entry in zip(variables, entries):
        data = grads.get(entry)
        if data is None:
            data = _constant_like(variable, 0)._data
        elif data.__class__ is Rows:
            data = data.dense()
        elif id(data) in handed or (data.__class__ is np.ndarray and not data.flags.writeable):
            data = variable._ctx.run(data.copy)
        handed.add(id(data))
        result.append(data)
    if CUT.lost:
        CUT.warn([variable._data.dtype for variable in variables])
    if not retain_graph:
        _release(reached[0])
    return result


def _release(nodes: list[TapeNode]) -> None:
    """Release the arrays of operators' nodes, and renew their time stamps."""
    released = tick()
    for node in nodes:
        if node.__class__ is not CopiedVariable:
            node.ins = node.outs = None
            node.number = released

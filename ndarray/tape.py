"""The tape: the recorded operators, and the backward pass over them.

A tape node holds raw arrays and the nodes of its inputs, and no NDArray. So there are no cycles, and a result that is
dropped frees all nodes that only it needs.
"""

from __future__ import annotations

import functools
import operator
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from opreg.core import host_memory
from opreg.core.array_module import ENTERED
from opreg.core.attrs import AS_GIVEN
from opreg.core.cache import Recent, cached
from opreg.core.declarations import Rules
from opreg.core.dispatch import REQUESTS, write
from opreg.core.gradient import CUT, by_rule, filled_gradients, walk
from opreg.core.graph import Entry, Node
from opreg.core.mode import MODE, quiet
from opreg.core.op import Op
from opreg.core.rules import SAME_TYPE, Attrs, AttrsRule
from opreg.core.signature import Signature
from opreg.core.slots import Slot
from opreg.core.spec import show
from opreg.core.traits import Traits
from opreg.core.versions import LATEST, WATCHED, must_record_write, tick, write_count, wrote_all
from opreg.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    OpError,
    ShapeError,
    Where,
    did_you_mean,
    line_at,
    user_frame,
    user_line,
)
from opreg.typing import Array

from . import finite
from .context import Context
from .custom_calls import CustomRun
from .eager import CachedUse, Prepared, runner_of
from .finite import Checked, deliberate
from .gradient_target import GradientTarget
from .overwritten import present
from .sparse_numbers import Rows
from .traced_rules import differentiate

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["TapeNode", "TapeEntry", "Variable", "TargetVariable", "Leaf", "PASS", "leaf", "record", "add", "backward",
           "constant",
           "gradients", "frame", "raw_gradients", "Taped", "CheckedNode", "TRANSFER", "CONSTANT", "WRAP", "wrapped"]

#: Makes an NDArray of a raw array and its context.
WRAP = Slot("arrays")
#: By operator, a function of a node and its output gradients; it returns the input gradients as `Rows`, or None if the
#: gradients are dense.
ROW_GRADIENTS: dict[str, Callable[[TapeNode, Sequence[Any]], Sequence[Any] | None]] = {}


class TapeNode:
    """A recorded call of an operator.

    Attributes
    ----------
    op : Op or Taped
        The operator; None for an array whose gradient is requested, and for constants.
    attrs
        Its attributes.
    inputs : tuple of entries
        The entries of its inputs, each ``(node, output index)``.
    ins, outs : list of arrays
        Raw inputs, and raw outputs followed by residuals; None for variables and constants, and after a backward pass
        has released them.
    count : int
        The number of outputs.
    ctx, place
        The context, and the instruction of user code that called the operator.
    prepared : Runner or None
        The prepared call, if it is known.
    number : float
        A time stamp, larger than those of all earlier nodes; renewed when the node is released.
    """

    __slots__ = ("op", "attrs", "inputs", "ins", "outs", "count", "ctx", "place", "prepared", "number", "__weakref__")
    grad: NDArray | None = None
    checked: Checked | None = None
    gradient_target: GradientTarget | None = None
    op: Any  # Op, Taped or None
    number: float

    def __init__(self, op: Op | Taped | None, attrs: Any, inputs: tuple[TapeEntry, ...], ins: Sequence[Array] | None,
                 outs: Sequence[Array] | None, count: int, ctx: Context, frame: FrameType | None,
                 prepared: Prepared | None = None):
        self.op, self.attrs, self.inputs, self.ins, self.outs = op, attrs, inputs, ins, outs
        self.count, self.ctx, self.prepared, self.number = count, ctx, prepared, tick()
        self.place = None if frame is None else (frame.f_code, frame.f_lasti)

    @property
    def where(self) -> Where | None:
        """The line of user code that called the operator."""
        return line_at(self.place)

    def in_training(self, is_train: bool | None) -> bool:
        """Whether this node is differentiated as in training; for None, the mode in which it was recorded decides."""
        if is_train is not None:
            return is_train
        if self.prepared is not None:
            return self.prepared.is_train
        return getattr(self.attrs, "training", True)  # a run of a plan knows the mode of its caller

    def describe(self) -> str:
        """The node as text for an error."""
        kind = "array" if self.op is None else f"operator {self.op.name}"
        return f"{kind}, recorded at {self.where}" if self.where else kind


class CheckedNode(TapeNode):
    """A node whose gradients are checked for NaN and infinities; see ``finite``."""

    __slots__ = ("checked",)
    checked: Checked | None


#: An output of a node: the node and the index of the output.
TapeEntry: TypeAlias = tuple[TapeNode, int]


class Variable(TapeNode):
    """An array whose gradient a caller of ``gradients`` requests."""

    __slots__ = ()
    op = ins = outs = prepared = place = None
    inputs, count = (), 1

    def __init__(self, array: NDArray):
        self.attrs, self.ctx, self.number = None, array._ctx, tick() if WATCHED else write_count()


class TargetVariable(Variable):
    """A variable whose gradient may be computed in a gradient target."""

    __slots__ = ("gradient_target",)

    gradient_target: GradientTarget | None

    def __init__(self, array: NDArray, gradient_target: GradientTarget):
        super().__init__(array)
        self.gradient_target = gradient_target


class Leaf(TapeNode):
    """An array with ``attach_grad``: the array of its gradient, the request, and whether a gradient was stored since
    ``fresh`` was last set to False."""

    __slots__ = ("grad", "req", "fresh")

    grad: NDArray | None

    def __init__(self, array: NDArray, grad: NDArray | None, req: str):
        super().__init__(None, None, (), None, None, 1, array._ctx, None)
        write_count()  # starts the tracking of writes
        self.grad, self.req, self.fresh = grad, req, False


@cached(64)
def _numbered_signature(count: int) -> Signature:
    """The signature of a `Taped` with ``count`` outputs."""
    return Signature(AS_GIVEN, (), visible=AttrsRule(lambda attrs: count), per_instance=True)


@cached(64)
def _traits(grad_reads: bool, optional_out_grads: bool) -> Traits:
    return Traits(grad_reads=grad_reads, optional_out_grads=optional_out_grads)


class Taped:
    """A function with its own gradient, which takes the place of an operator on the tape.

    Parameters
    ----------
    name : str
        Its name in errors.
    differentiate : function
        The gradient, with the parameters of ``Op.differentiate``.
    count : int
        The number of outputs that have gradients.
    grad_reads, optional_out_grads : bool
        See ``Traits``.
    raw_gradient : function or None
        See ``Op.raw_grad``.
    graph : function or None
        ``graph(attrs)`` returns the graph of the function: the variables of its inputs, in order, and its outputs.
    """

    rules = Rules(SAME_TYPE)  # shared, without rules

    def __init__(self, name: str, differentiate: Callable[..., Sequence[Any]], count: int = 1, *,
                 grad_reads: bool = True, optional_out_grads: bool = False,
                 raw_gradient: Callable[..., Sequence[Array | None]] | None = None,
                 graph: Callable[[Any], tuple[Sequence[Node], Sequence[Entry]]] | None = None):
        self.name, self.differentiate, self.graph = name, differentiate, graph
        self.signature, self.traits = _numbered_signature(count), _traits(grad_reads, optional_out_grads)
        if raw_gradient is not None:
            self.rules = Rules(SAME_TYPE)
            self.rules.raw_grad = raw_gradient

    def loss(self, attrs: object) -> bool:
        """Whether it is a loss, whose gradient needs no output gradient."""
        return False


#: A copy from the context ``attrs["source"]`` to another one. The gradient is copied back to ``attrs["source"]``.
TRANSFER = Taped("copyto", lambda g, ins, outs, attrs, needs, is_train=True: [g.copyto(attrs["source"])],
                 grad_reads=False)
#: A function whose derivative is zero, such as the gradient of a linear function.
_CONSTANT_OF = Taped("constant", lambda g, ins, outs, attrs, needs, is_train=True: [None] * len(needs),
                     grad_reads=False, raw_gradient=lambda attrs, out_grads, needs, ctx: [None] * len(needs))
#: The entry of an array without a gradient.
_UNDIFFERENTIATED = TapeNode(None, None, (), None, None, 1, Context("cpu"), None)
CONSTANT = _UNDIFFERENTIATED, 0


def frame() -> FrameType | None:
    """The frame of the user code that records an operator: for nested layers, the code that called the outermost."""
    user_code: Any = MODE.frame
    if not user_code:
        is_layer, user_code = user_code is not None, user_frame(sys._getframe(1))
        if is_layer:
            MODE.frame = user_code
    return user_code


def leaf(array: NDArray, grad: NDArray | None, req: str) -> TapeEntry:
    """The entry of an array whose gradient is stored in ``grad``."""
    if req not in REQUESTS:
        raise ArgumentError(f"grad_req {req!r}. {did_you_mean(req, ('write', 'add', 'null'))}")
    if grad is not None and grad.shape != array.shape:
        raise ShapeError(f"gradient buffer: expected shape {show(array.shape)}, got {show(grad.shape)}")
    if grad is not None and not grad.writable:
        grad.check_writable("gradient buffer")
    return Leaf(array, grad, req), 0


def constant(entries: Sequence[TapeEntry], array: NDArray) -> TapeEntry:
    """The entry of an array whose derivative with respect to these entries is zero."""
    return TapeNode(_CONSTANT_OF, None, tuple(entries), (), [array._data], 1, array._ctx, frame()), 0


def record(op: Op | Taped, attrs: Any, values: Sequence[object], arrays: Sequence[Array], outs: Sequence[NDArray],
           prepared: Prepared | None = None, recording: Literal[True] | Checked = True, residuals: Sequence[Array] = ()
           ) -> None:
    """Record a call, if one of its inputs is recorded. ``residuals`` are raw arrays that the gradient reads beside
    inputs and outputs."""
    if recording is not True:
        _look(op, attrs, arrays, outs, recording)
    entries, recorded = [], False
    for value in values:
        entry = getattr(value, "_entry", None)
        if entry is None:
            entry = CONSTANT
        elif entry is not CONSTANT:
            recorded = True
        entries.append(entry)
    if not recorded:
        return
    node: TapeNode = (TapeNode if recording is True else CheckedNode)(
        op, attrs, tuple(entries), arrays, [outs[0]._data] if len(outs) == 1 and not residuals
        else [*[out._data for out in outs], *residuals], len(outs),
        outs[0]._ctx, user_frame(sys._getframe(1)) if MODE.frame is None else frame(), prepared)
    if recording is not True:
        node.checked = recording  # type: ignore[misc]  # of class CheckedNode
    for i, out in enumerate(outs):
        out._entry = (node, i)


def add(op: Op, attrs: Attrs, entries: tuple[TapeEntry, ...], arrays: Sequence[Array], out: NDArray,
        recording: Literal[True] | Checked = True) -> None:
    """Record a call with one output, at least one of whose inputs is recorded."""
    if recording is True:
        out._entry = TapeNode(op, attrs, entries, arrays, (out._data,), 1, out._ctx,
                              user_frame(sys._getframe(1)) if MODE.frame is None else frame()), 0
    else:
        _look(op, attrs, arrays, [out], recording)
        node = CheckedNode(op, attrs, entries, arrays, (out._data,), 1, out._ctx, frame())
        out._entry, node.checked = (node, 0), recording


def _look(op: Any, attrs: Any, arrays: Sequence[Array], outs: Sequence[NDArray], checked: Checked) -> None:
    """Check the results of an operator; see ``finite.look``."""
    if not outs or deliberate(op, attrs):
        return
    ctx, where, registered = outs[0]._ctx, user_line(), isinstance(op, Op)
    names = op.signature.inputs(attrs) if registered else _number_names("input", arrays)
    output_names = op.signature.outputs(attrs) if registered else _number_names("output", outs)
    finite.look(f"operator {op.name}" + (f", recorded at {where}" if where else ""), ctx.xp, list(zip(names, arrays)),
                [*zip(output_names, [out._data for out in outs[:op.signature.visible(attrs)]])], checked.choice,
                finite.reference_of(op, attrs, MODE.training, None) if registered else None)


def _number_names(what: str, values: Sequence[object]) -> list[str]:
    return [f"{what} {i}" for i in range(len(values))] if len(values) > 1 else [what]


def wrapped(data: Array, ctx: Context) -> NDArray:
    """An NDArray over a raw array."""
    return WRAP.function(data, ctx)


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
        them in the memory of leaves whose request is ``write``; it then records that it wrote there.
    """

    last: TapeNode | None = None


PASS = _Pass()
_number = operator.attrgetter("number")


def _order(seeds: Iterable[TapeEntry]) -> list[TapeNode]:
    """The nodes that entries depend on, in the order of recording, inputs before users.

    A released node counts as a constant for nodes that were recorded after its release, such as those that read the
    carried state of a recurrent network. For nodes recorded before, it is an error.
    """
    order = [node for node, _ in seeds]
    visited = {_UNDIFFERENTIATED, *order}
    if len(visited) <= len(order):  # several outputs of one node
        order = list(dict.fromkeys(order))
    ends: TapeNode | None = None
    for node in order:
        if node.ins is None and node.op is not None:
            _numbers(node)
        for source, _ in node.inputs:
            if source in visited:
                continue
            if source.ins is None and source.op is not None and node.number > source.number:
                ends = source
            else:
                visited.add(source)
                order.append(source)
    if ends is not None and all(node.op is not None for node in order):  # no variable is left
        _numbers(ends)
    order.sort(key=_number)
    return order


def _numbers(node: TapeNode) -> tuple[Sequence[Array], Sequence[Array]]:
    """The raw inputs and outputs of a node."""
    ins, outs = node.ins, node.outs
    if ins is None or outs is None:
        raise OpError(f"{node.describe()}: cannot differentiate again, the first backward pass released what it "
                      "needs; call it with retain_graph=True")
    return ins, outs


def _walk(seeds: dict[TapeEntry, Any], leaves: Sequence[TapeNode], order: list[TapeNode], train_mode: bool | None,
          recorded: bool = False) -> dict[TapeEntry, Any]:
    """Run the backward pass. Gradients by entry: NDArrays if they are to be ``recorded``, or else raw arrays."""
    thread, CUT.lost = MODE.__dict__, ""
    checked = next(filter(None, [node.checked for node in order]), None) if finite.USED else None
    mode, choice = thread["current"](), (recorded and (checked or True), train_mode is not False)
    token = thread["set"](mode.following.get(choice) or mode.recorded(*choice))
    try:
        if not recorded:
            step: Callable[..., Any] = _IN_MODE[train_mode]
            if ENTERED:
                step = functools.partial(_step_on_device, step)
            if any(node.grad is not None and node.grad._sparse for node in leaves):
                step = functools.partial(_by_rows, step)
            if checked is not None:
                return walk(order, seeds, leaves, functools.partial(_checked_step, step, checked),
                            functools.partial(_checked_sum, checked))
            return walk(order, seeds, leaves, step, functools.partial(_sum, set()))
        return walk(order, seeds, leaves,
                    lambda node, out_grads, needs: by_rule(node, out_grads, needs, functools.partial(
                        _values, out_grads, needs, node.in_training(train_mode)), _zeros_like, train_mode),
                    lambda _, first, second: first + second)
    finally:
        thread["reset"](token)


def _values(out_grads: Sequence[Any], needs: tuple[bool, ...], is_train: bool, node: TapeNode
            ) -> tuple[list[NDArray], list[NDArray]]:
    """The inputs and outputs of a node as recorded arrays."""
    ctx, wrap, (ins, outs) = node.ctx, WRAP.function, _numbers(node)
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
        ins, outs = _numbers(node)  # raises the error
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
    if isinstance(node.prepared, CustomRun):
        grads = node.prepared.back(attrs, out_grads, ins, outs, needs, wrap)
        if grads is not None:
            return grads
    g = [None if data is None else wrap(data, ctx) for data in out_grads]
    values = op.differentiate(g[0] if node.count == 1 else tuple(g), [wrap(data, ctx) for data in ins],
                              [wrap(data, ctx) for data in outs[:node.count]], attrs, needs, is_train)
    return [None if value is None else value._data for value in values]


def _by_rows(step: Callable[..., Any], node: TapeNode, out_grads: Sequence[Any], needs: tuple[bool, ...]) -> Any:
    """A step of the backward pass, in which gradients for sparse arrays may be `Rows`."""
    rule = ROW_GRADIENTS.get(getattr(node.op, "name", ""))
    grads = None if rule is None else node.ctx.run(rule, node, out_grads)
    return step(node, out_grads, needs) if grads is None else grads


def _step_on_device(step: Callable[..., Any], node: TapeNode, *args: Any) -> Any:
    """A step of the backward pass on the device of its node."""
    with node.ctx.entered():
        return step(node, *args)


def _checked_step(step: Callable[..., Any], checked: Checked, node: TapeNode, out_grads: Sequence[Array | None],
                  needs: tuple[bool, ...]) -> Sequence[Array | None]:
    """A step of the backward pass, and a check of its results."""
    ins, outs = (node.ins or (), node.outs or ()) if getattr(node.op, "grad_reads", True) else ((), ())
    grads = step(node, out_grads, needs)
    op, attrs = node.op, node.attrs
    if deliberate(op, attrs):
        return grads
    registered = isinstance(op, Op)
    names = op.signature.inputs(attrs) if registered else _number_names("input", node.inputs)
    made = op.signature.outputs(attrs) if registered else _number_names("output", out_grads)
    named_arrays = [*zip([f"gradient of {name}" for name in made], out_grads), *zip(names, ins), *zip(made, outs)]
    finite.look(f"in the gradient of {node.describe()}", node.ctx.xp, named_arrays,
                [(f"gradient of {name}", grad) for name, grad, need in zip(names, grads, needs) if need],
                checked.choice)
    return grads


def _checked_sum(checked: Checked, entry: TapeEntry, first: Array, second: Array) -> Array:
    """The sum of two raw gradients of an entry, and a check of it."""
    total = _sum(set(), entry, first, second)
    finite.look(f"in the sum of gradients of {entry[0].describe()}", entry[0].ctx.xp,
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
    order = _order(seeds)
    leaves: list[Any] = []  # of class Leaf
    last: TapeNode | None = None
    for node in order:
        if node.grad is not None:
            leaves.append(node)
        elif last is None and node.op is not None:
            last = node
    before, PASS.last = PASS.last, last
    try:
        gradients = _walk(seeds, leaves, order, train_mode)
    finally:
        PASS.last = before
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
        if g is data:  # it was computed there
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
        _release(order)


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
    recorded = _walk(seeds, [node for node, _ in entries], _order(seeds), train_mode, True)
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
    return _order(list(entries))


def arrays_of(node: TapeNode) -> tuple[list[NDArray], list[NDArray]]:
    """The inputs and outputs of a node as recorded arrays, in the mode of the recording."""
    return _values([None] * node.count, (True,) * len(node.inputs), node.in_training(None), node)


def node_gradients(node: TapeNode, out_grads: Sequence[NDArray | None]) -> dict[TapeEntry, NDArray]:
    """Recorded gradients of the inputs of one node, from those of its outputs."""
    seeds = {(node, i): g for i, g in enumerate(out_grads) if g is not None}
    return _walk(dict(seeds), [source for source, _ in node.inputs if source is not _UNDIFFERENTIATED], [node], None,
                 True)


def raw_gradients(heads: Sequence[NDArray], variables: Sequence[NDArray], entries: Sequence[TapeEntry],
                  head_grads: Sequence[Any] | None, retain_graph: bool, train_mode: bool | None) -> list[Array]:
    """Gradients of heads with respect to variables with these entries, as raw arrays that share no memory."""
    seeds = _seeds(heads, head_grads, False)
    handed = {*map(id, seeds.values())}
    order = _order(seeds)
    grads = _walk(seeds, [node for node, _ in entries], order, train_mode)
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
        _release(order)
    return result


def _release(order: list[TapeNode]) -> None:
    """Release the arrays of nodes, and renew their time stamps."""
    released = tick()
    for node in order:
        if node.op is not None:
            node.ins = node.outs = None
            node.number = released

"""The tape: the recorded operators.

A tape node holds raw arrays and the nodes of its inputs, and no NDArray. So there are no cycles, and a result that is
dropped frees all nodes that only it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from opreg.core.attrs import AS_GIVEN
from opreg.core.cache import cached
from opreg.core.declarations import Rules
from opreg.core.dispatch import REQUESTS
from opreg.core.graph import Entry, Node
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.rules import SAME_TYPE, Attrs, AttrsRule
from opreg.core.signature import Signature
from opreg.core.slots import Slot
from opreg.core.spec import show
from opreg.core.traits import Traits
from opreg.core.versions import WATCHED, tick, write_count
from opreg.errors import (
    ArgumentError,
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
from .eager import Prepared
from .finite import CheckedRecording, deliberate
from .gradient_target import GradientTarget

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["TapeNode", "TapeEntry", "Variable", "SharedVariable", "CopiedVariable", "Leaf", "leaf", "record",
           "record_entries", "add", "constant", "frame", "TapedFunction", "CheckedNode", "TRANSFER", "CONSTANT",
           "UNDIFFERENTIATED", "WRAP", "number_names", "wrapped"]

#: Makes an NDArray of a raw array and its context.
WRAP = Slot("arrays")


class TapeNode:
    """A recorded call of an operator.

    Attributes
    ----------
    op : Op or TapedFunction
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
    checked: CheckedRecording | None = None
    gradient_target: GradientTarget | None = None
    op: Any  # Op, TapedFunction or None
    number: float

    def __init__(self, op: Op | TapedFunction | None, attrs: Any, inputs: tuple[TapeEntry, ...],
                 ins: Sequence[Array] | None, outs: Sequence[Array] | None, count: int, ctx: Context,
                 frame: FrameType | None, prepared: Prepared | None = None):
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
        return True if self.prepared is None else self.prepared.is_train

    def describe(self) -> str:
        """The node as text for an error."""
        kind = "array" if self.op is None else f"operator {self.op.name}"
        return f"{kind}, recorded at {self.where}" if self.where else kind


class CheckedNode(TapeNode):
    """A node whose gradients are checked for NaN and infinities; see ``finite``."""

    __slots__ = ("checked",)
    checked: CheckedRecording | None


#: An output of a node: the node and the index of the output.
TapeEntry: TypeAlias = tuple[TapeNode, int]


class Variable(TapeNode):
    """An array whose gradient a caller of ``gradients`` requests."""

    __slots__ = ()
    op = ins = outs = prepared = place = None
    inputs, count = (), 1

    def __init__(self, array: NDArray):
        self.attrs, self.ctx, self.number = None, array._ctx, tick() if WATCHED else write_count()


class SharedVariable(Variable):
    """A variable of all running functions that are differentiated with respect to an array.

    Attributes
    ----------
    users : int
        The number of these functions.
    gradient_target : GradientTarget or None
        Memory in which its gradient may be computed, if shape and dtype are the array's.
    """

    __slots__ = ("users", "gradient_target")

    gradient_target: GradientTarget | None

    def __init__(self, array: NDArray, gradient_target: GradientTarget | None = None):
        self.attrs, self.ctx, self.number = None, array._ctx, tick() if WATCHED else write_count()
        self.users, self.gradient_target = 1, None
        if gradient_target is not None:
            data = array._data
            if gradient_target.shape == data.shape and gradient_target.dtype == data.dtype:
                self.gradient_target = gradient_target


class CopiedVariable(TapeNode):
    """A variable with the values of another entry. Other threads may read through it, so it is never released."""

    __slots__ = ()


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
    """The signature of a `TapedFunction` with ``count`` outputs."""
    return Signature(AS_GIVEN, (), visible=AttrsRule(lambda attrs: count), per_instance=True)


@cached(64)
def _traits(grad_reads: bool, optional_out_grads: bool) -> Traits:
    return Traits(grad_reads=grad_reads, optional_out_grads=optional_out_grads)


class TapedFunction:
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
TRANSFER = TapedFunction("copyto", lambda g, ins, outs, attrs, needs, is_train=True: [g.copyto(attrs["source"])],
                         grad_reads=False)
#: A function whose derivative is zero, such as the gradient of a linear function.
_CONSTANT_OF = TapedFunction("constant", lambda g, ins, outs, attrs, needs, is_train=True: [None] * len(needs),
                             grad_reads=False, raw_gradient=lambda attrs, out_grads, needs, ctx: [None] * len(needs))
#: The entry of an array without a gradient.
UNDIFFERENTIATED = TapeNode(None, None, (), None, None, 1, Context("cpu"), None)
CONSTANT = UNDIFFERENTIATED, 0


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


def record(op: Op | TapedFunction, attrs: Any, values: Sequence[object], arrays: Sequence[Array],
           outs: Sequence[NDArray], prepared: Prepared | None = None,
           recording: Literal[True] | CheckedRecording = True, residuals: Sequence[Array] = ()) -> None:
    """Record a call, if one of its inputs is recorded. ``residuals`` are raw arrays that the gradient reads beside
    inputs and outputs."""
    entries, recorded = [], False
    for value in values:
        entry = getattr(value, "_entry", None)
        if entry is None:
            entry = CONSTANT
        elif entry is not CONSTANT:
            recorded = True
        entries.append(entry)
    if recorded:
        record_entries(op, attrs, tuple(entries), arrays, outs, prepared, recording, residuals)
    elif recording is not True:
        _check_results(op, attrs, arrays, outs, recording)


def record_entries(op: Op | TapedFunction, attrs: Any, entries: tuple[TapeEntry, ...], arrays: Sequence[Array],
                   outs: Sequence[NDArray], prepared: Prepared | None, recording: Literal[True] | CheckedRecording,
                   residuals: Sequence[Array] = ()) -> TapeNode:
    """Record a call with inputs of these entries."""
    if recording is not True:
        _check_results(op, attrs, arrays, outs, recording)
    node: TapeNode = (TapeNode if recording is True else CheckedNode)(
        op, attrs, entries, arrays, [outs[0]._data] if len(outs) == 1 and not residuals
        else [*[out._data for out in outs], *residuals], len(outs),
        outs[0]._ctx, user_frame(sys._getframe(2)) if MODE.frame is None else frame(), prepared)
    if recording is not True:
        node.checked = recording  # type: ignore[misc]  # of class CheckedNode
    if len(outs) == 1:
        outs[0]._entry = node, 0
    else:
        for i, out in enumerate(outs):
            out._entry = node, i
    return node


def add(op: Op, attrs: Attrs, entries: tuple[TapeEntry, ...], arrays: Sequence[Array], out: NDArray,
        recording: Literal[True] | CheckedRecording = True) -> None:
    """Record a call with one output, at least one of whose inputs is recorded."""
    if recording is True:
        out._entry = TapeNode(op, attrs, entries, arrays, (out._data,), 1, out._ctx,
                              user_frame(sys._getframe(1)) if MODE.frame is None else frame()), 0
    else:
        _check_results(op, attrs, arrays, [out], recording)
        node = CheckedNode(op, attrs, entries, arrays, (out._data,), 1, out._ctx, frame())
        out._entry, node.checked = (node, 0), recording


def _check_results(op: Any, attrs: Any, arrays: Sequence[Array], outs: Sequence[NDArray],
                   checked: CheckedRecording) -> None:
    """Check the results of an operator; see ``finite.check_step``."""
    if not outs or deliberate(op, attrs):
        return
    ctx, where, registered = outs[0]._ctx, user_line(), isinstance(op, Op)
    names = op.signature.inputs(attrs) if registered else number_names("input", arrays)
    output_names = op.signature.outputs(attrs) if registered else number_names("output", outs)
    finite.check_step(
        f"operator {op.name}" + (f", recorded at {where}" if where else ""), ctx.xp, list(zip(names, arrays)),
        [*zip(output_names, [out._data for out in outs[:op.signature.visible(attrs)]])], checked.choice,
        finite.reference_of(op, attrs, MODE.training, None) if registered else None)


def number_names(what: str, values: Sequence[object]) -> list[str]:
    """Names of values for errors: the word alone for one value, with numbers for more."""
    return [f"{what} {i}" for i in range(len(values))] if len(values) > 1 else [what]


def wrapped(data: Array, ctx: Context) -> NDArray:
    """An NDArray over a raw array."""
    return WRAP.function(data, ctx)

"""Traced tensors: tensors of a function that is traced, with a shape and a dtype and without values.

An operator on a traced tensor adds a node to its trace. Code that reads the values asks the trace, which computes them
and guards them, or refuses.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import numbers_of
from opreg.ndarray.scalars import ScalarConversions

from ..core.graph import Entry
from ..core.op import Op
from ..core.patches import copy_patches
from ..core.registry import ops
from ..core.rules import Attrs
from ..core.spec import Spec, is_known, show
from ..core.tracing import Sized, TraceError
from . import dtype as dtypes
from . import printing
from .state import STATE
from .subscripts import mask_of, subscript
from .tensor import Tensor, operand, stack_nesting, take_masked, take_slices, tensor
from .tensor_base import TensorBase
from .typing import TensorLike
from .user_code import is_user_code

if TYPE_CHECKING:
    from .trace import FunctionTracer

__all__ = ["TRACE_IS_OVER", "TracedTensor", "has_attribute"]

#: Error text for a value whose trace has ended.
TRACE_IS_OVER = "belongs to another compiled function, which is over: nothing may keep it beyond the call"


def has_attribute(tensor: object, name: str) -> bool:
    """Whether a program has put an attribute of this name on a tensor."""
    return name in getattr(tensor, "__dict__", ())


class TracedTensor(Sized, ScalarConversions, TensorBase):
    """A traced tensor: its shape and dtype are known, its values are not."""

    __slots__ = ("_entry", "_spec", "_home", "__weakref__")
    __hash__ = object.__hash__
    __round__ = TensorBase.__round__
    _rank = 3
    has_init = False

    def __init__(self, trace: FunctionTracer, entry: Entry, spec: Spec):
        self._home, self._entry, self._spec = trace.ref, entry, spec

    if not TYPE_CHECKING:  # type checkers know all attributes of the class

        def __getattr__(self, name):
            """Refuse an attribute that the class lacks; a program may have put it on the caller's tensor."""
            trace = None if STATE.trace is None else STATE.trace.root
            if trace is not None and id(self) in trace.caller_tensors and is_user_code(sys._getframe(1).f_code):
                if has_attribute(trace.caller_tensors[id(self)], name):
                    trace.leave(f"it reads the attribute {name!r} of an argument")
                trace.missing_attributes.add(name)
            raise AttributeError(f"'Tensor' object has no attribute {name!r}", name=name, obj=self)

        def __setattr__(self, name, value):
            if name not in TracedTensor.__slots__:
                (STATE.trace or self._trace).leave(f"it puts the attribute {name!r} on a tensor")
            object.__setattr__(self, name, value)

    @property
    def _trace(self) -> FunctionTracer:
        """Its trace, which it does not keep alive."""
        trace = self._home()
        if trace is None:
            raise TraceError(f"{self._title()} {TRACE_IS_OVER}")
        return trace

    def _apply(self, op: Op, values: Sequence[Any], keywords: Attrs) -> Any:
        return (STATE.trace or self._trace).call(op, values, keywords)

    def _trace_call(self, op: Op, attrs: Attrs, values: Sequence[Any]) -> tuple[types.SimpleNamespace, Sequence[Any]]:
        return (STATE.trace or self._trace).trace_call(op, attrs, values)

    def _lift(self, value: TensorLike) -> Tensor:
        return operand(value)

    def _shape_is(self, other: Any) -> bool:
        theirs = other._spec.shape if isinstance(other, TracedTensor) else other.shape
        return is_known(self._spec.shape) and is_known(theirs) and self._spec.shape == theirs

    def _watched(self) -> str:
        return "trace"

    # -------------------------------------------------------------------------------------------- questions

    @property
    def _dt(self) -> np.dtype:
        return np.dtype(np.float32) if self._spec.dtype is None else self._spec.dtype

    @property
    def dtype(self) -> dtypes.DType:
        """The dtype, such as ``ms.float32``."""
        return dtypes.of(self._dt)

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        shape = self._spec.shape
        if not is_known(shape):
            raise TraceError(f"the shape of {self._title()} is not known: give example inputs, as in cell.to_symbol(x)")
        return shape

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def context(self) -> Context:
        """The current context, in which a trace computes."""
        return current_context()

    _ctx = ctx = context

    def __repr__(self) -> str:
        return printing.show(self.asnumpy()) if self.has_text else self._title()

    def __str__(self) -> str:
        return str(self.asnumpy()) if self.has_text else self._title()

    def _title(self) -> str:
        """Its text without its elements."""
        shape = "?" if self._spec.shape is None else show(self._spec.shape)
        return f"<tensor of a trace, shape {shape}, {self._dt}, {self._entry[0].name}>"

    @property
    def has_text(self) -> bool:
        """Whether the text of a tensor shows its values: in the trace of a function, but not in that of a Symbol."""
        return STATE.trace is not None and not STATE.trace.root.symbolic

    def value(self) -> TracedTensor:
        """This tensor."""
        return self

    def copy(self) -> Tensor:
        """A tensor with the same values."""
        return ops._copy(self)

    def detach(self) -> Tensor:
        """The same values, through which no gradient passes."""
        return ops.BlockGrad(self)

    def __deepcopy__(self, memodict: object) -> Tensor:
        return self.copy()

    # -------------------------------------------------------------------------------------------- subscripts

    def __getitem__(self, key: Any) -> Tensor:
        mask = mask_of(key, self.shape)
        if mask is not None:
            return take_masked(self, mask)
        key = subscript(key, self.shape)
        if isinstance(key, TensorBase):
            return take_slices(self, key)
        return ops._subscript(self, key=key)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = subscript(key, self.shape)
        if isinstance(key, TensorBase):
            key = subscript(key.asnumpy(), self.shape)
        if not isinstance(value, TensorBase):
            joined = stack_nesting(value) if isinstance(value, (list, tuple)) else None
            value = tensor(numbers_of(value, self._dt)) if joined is None else joined
        self._replace_value(ops._subscript_assign(self, value._cast(self._dt), key=key))

    def _replace_value(self, changed: TracedTensor) -> None:
        """Replace the value of this tensor from here on."""
        trace = STATE.trace or self._trace
        if id(self) in trace.caller_tensors:
            trace.leave("it changes an argument in place")
        self._entry, self._spec = changed._entry, changed._spec

    # --------------------------------------------------------------------------------------------- numbers

    def _look(title: str) -> Callable[[TracedTensor], Any]:  # type: ignore[misc]
        def method(self: TracedTensor) -> Any:
            """The values; reading them adds a guard."""
            return (STATE.trace or self._trace).ask(self, title)

        return method

    __bool__, __int__, __float__, __index__ = map(_look, ("bool()", "int()", "float()", "an index"))
    asscalar = _look("asscalar()")

    def asnumpy(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        """The values as a NumPy array; reading them adds a guard."""
        trace = STATE.trace or self._trace
        if out is not None:
            trace.leave("asnumpy(out=) writes to an array of NumPy")
        return trace.ask(self, "asnumpy()")

    def item(self, index: int | tuple[int, ...] | None = None) -> Any:
        """The only element, or the one at a flat or full index, as a Python number."""
        if index is None:
            return (STATE.trace or self._trace).ask(self, "item()")
        return (self[index] if isinstance(index, tuple) else self.reshape((-1,))[index]).item()

    # --------------------------------------------------------------------------------------- refused methods

    def _refuse(what: str, instead: str) -> Callable[..., NoReturn]:  # type: ignore[misc]
        def method(self: TracedTensor, *_: object, **__: object) -> NoReturn:
            """Refused: it would leave the graph."""
            raise TraceError(f"{what} of a tensor would leave the graph of a compiled function. {instead}")

        return method

    __array__ = _refuse("NumPy", "Use functions of ops, or a CustomOp; or x.asnumpy() for a value outside of the graph")
    backward = attach_grad = _refuse("backward()", "Use grad, which compiles too")


copy_patches(Tensor, TracedTensor)

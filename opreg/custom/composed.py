"""Composed operators: built-in ones that are a signature and a body of other operators, and nothing else.

Values without numbers go through the body in graphs, and in the first eager call of a kind, as through that of a user's
operator that is ``traced``. So gradients of any order, fusion and the kernels of every back end follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.attrs import Attributes, Schema
from ..core.launch import Call
from ..core.op import Op
from ..core.registry import declare
from ..core.rules import Rule
from ..core.value import Value
from .gradient import Arriving, Use, derive

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..typing import Array

__all__ = ["composed"]


class ComposedUse(Use):
    """Attributes of one use of a composed operator."""

    def version(self, ctx: Context, arrays: Sequence[Array]) -> Hashable:
        """The use itself: a body reads nothing that changes."""
        return self if self.lasting else None


class _ComposedSchema(Schema):
    """The attributes of a composed operator."""

    __slots__ = ("op",)
    op: Op

    def _made(self, typed: dict[str, Any], lasting: bool) -> Attributes:
        use = ComposedUse(typed, lasting)
        use.op, use.memo = self.op, {}
        return use


def composed(function: Callable | None = None, /, **options: Any) -> Any:
    """Declare an operator whose body is the function: it calls operators on values and returns one, or several as a
    tuple.

    Shapes have a rule of their own (``infer``), as those of other operators: it serves where they are partly known, and
    says what is wrong with them in words of the operator. The same holds for dtypes. The body may ask for both.

    Parameters
    ----------
    function : callable
        See ``declare``, which also says what the options are.

    Examples
    --------
    >>> from opreg import nd
    >>> @composed(name="_example_swish")
    ... def swish(data, *, beta: float = 1.0):
    ...     "The data, where they are large."
    ...     return data * nd.sigmoid(data * beta)
    >>> @swish.infer
    ... def swish_infer(data):
    ...     return data
    >>> x = nd.array([0.0, 100.0])
    >>> swish(x).asnumpy().tolist()
    [0.0, 100.0]
    """
    if function is None:
        return lambda function: composed(function, **options)
    op = declare(function, traced=True, differentiate=_gradients, **options)
    schema = _ComposedSchema(op.schema.fields)
    schema.op, op.schema = op, schema
    rule = Rule(function)

    @op.kernel("composed", bound=True)
    def body(call: Call) -> list[Callable[[], None]]:
        values = [call.wrap(data, call.ctx, True) for data in call.ins]

        def run() -> None:
            results = rule(call.attrs, *values)
            for out, result in zip(call.outs, results if isinstance(results, (tuple, list)) else [results]):
                if out is not None:
                    out[...] = result._data

        return [run]

    return op


def _gradients(op: Op, g: Arriving, ins: Sequence[Value], outs: Sequence[Value], use: Any, needs: Sequence[bool],
               is_train: bool) -> list[Value | None]:
    """The rule where one was declared, else the derivative of the body."""
    if op.has_grad:
        return list(op.by_rule(g, ins, outs, use, needs, is_train))
    return derive(use, g, ins, needs)

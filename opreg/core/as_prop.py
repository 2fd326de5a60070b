"""The methods of a ``CustomOpProp`` for operators of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, other_count
from .rules import Attrs
from .slots import Slot
from .spec import ANY, as_dtype

if TYPE_CHECKING:
    from ..ndarray.bound import BoundOperator
    from ..ndarray.context import Context
    from .op import Op

__all__ = ["PropMethods", "Prop", "BOUND_OPERATOR"]

#: Makes an object with ``forward`` and ``backward`` from an operator, its attributes and a context.
BOUND_OPERATOR = Slot("arrays")


class Prop:
    """An operator with fixed attributes, which has the methods of a ``CustomOpProp``.

    Examples
    --------
    >>> from opreg.core.registry import get
    >>> get("FullyConnected").prop(num_hidden=3).list_arguments()
    ['data', 'weight', 'bias']
    """

    def __init__(self, op: Op, keywords: Attrs):
        self.op = op
        if op.signature.variadic and op.signature.variadic not in keywords:
            keywords = {op.signature.variadic: 1, **keywords}
        self.attrs = op.complete(keywords)

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return list(self.op.signature.arguments(self.attrs))

    def list_outputs(self) -> list[str]:
        """Names of the visible outputs."""
        return list(self.op.signature.outputs(self.attrs)[:self.op.signature.visible(self.attrs)])

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states."""
        return list(self.op.signature.auxiliary(self.attrs))

    def _apply_rule(self, known_ins: Sequence[Any], rule: Callable[..., tuple[list, list]]) -> tuple[list, list, list]:
        arguments, auxiliary = self.list_arguments(), self.list_auxiliary_states()
        if len(known_ins) not in (len(arguments), len(arguments) + len(auxiliary)):
            raise ArgumentError(f"operator {self.op.name}: {other_count(arguments, len(known_ins))}")
        ins = list(known_ins) + [None] * (len(arguments) + len(auxiliary) - len(known_ins))
        ins, outs = rule(ins, [None] * len(self.op.signature.outputs(self.attrs)), self.attrs)
        return ins[:len(arguments)], outs[:self.op.signature.visible(self.attrs)], ins[len(arguments):]

    def infer_shape(self, in_shape: Sequence[Sequence[int | None] | None]) -> tuple[list, list, list]:
        """Infer shapes of arguments, outputs and auxiliary states, as lists of lists; None for an unknown shape."""
        ins = [tuple(ANY if dim in (0, None) else int(dim) for dim in shape) if shape else None
               for shape in in_shape]
        answer = self._apply_rule(ins, self.op.infer_shapes)
        return tuple([None if shape is None else [None if dim is ANY else dim for dim in shape]  # type: ignore
                      for shape in group] for group in answer)

    def infer_type(self, in_type: Sequence[object]) -> tuple[list, list, list]:
        """Infer dtypes of arguments, outputs and auxiliary states, as NumPy classes; None for an unknown dtype."""
        answer = self._apply_rule([None if t is None else as_dtype(t) for t in in_type], self.op.infer_dtypes)
        return tuple([None if t is None else t.type for t in group] for group in answer)  # type: ignore

    def create_operator(self, ctx: Context, in_shapes: object, in_dtypes: object) -> BoundOperator:
        """An object with ``forward`` and ``backward`` that write results as a ``CustomOp`` does."""
        return BOUND_OPERATOR.function(self.op, self.attrs, ctx)


class PropMethods:
    """A base of ``Op``: the methods of a ``CustomOpProp``, with attributes as keywords."""

    def prop(self: Any, **attrs: Any) -> Prop:
        """This operator with fixed attributes, as an object with the methods of a ``CustomOpProp``."""
        return Prop(self, attrs)

    def list_arguments(self, **attrs: Any) -> list[str]:
        """Names of the inputs for these attributes."""
        return self.prop(**attrs).list_arguments()

    def list_outputs(self, **attrs: Any) -> list[str]:
        """Names of the visible outputs for these attributes."""
        return self.prop(**attrs).list_outputs()

    def list_auxiliary_states(self, **attrs: Any) -> list[str]:
        """Names of the auxiliary states for these attributes."""
        return self.prop(**attrs).list_auxiliary_states()

    def infer_shape(self, in_shape: Sequence[Sequence[int]], **attrs: Any) -> tuple[list, list, list]:
        """Infer shapes of arguments, outputs and auxiliary states; ``()`` or None is an unknown input shape."""
        return self.prop(**attrs).infer_shape(in_shape)

    def infer_type(self, in_type: Sequence[object], **attrs: Any) -> tuple[list, list, list]:
        """Infer dtypes of arguments, outputs and auxiliary states, as NumPy classes."""
        return self.prop(**attrs).infer_type(in_type)

    def create_operator(self, ctx: Context, in_shapes: object, in_dtypes: object, **attrs: Any) -> BoundOperator:
        """An object with ``forward`` and ``backward`` that write results as a ``CustomOp`` does."""
        return self.prop(**attrs).create_operator(ctx, in_shapes, in_dtypes)

"""Op: the class of all operators, built-in ones and users'.

An operator has a signature (inputs, attributes and outputs), traits (properties of all its uses), rules (for shapes,
dtypes, gradients and more), and kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NoReturn, TypeVar

from ..errors import (
    ArgumentError,
    AttrError,
    DTypeError,
    NotDifferentiableError,
    OpError,
    ShapeError,
    Where,
    as_op_error,
    family,
    note,
    user_line,
)
from ..typing import Array, ArrayModule
from .as_prop import PropMethods
from .attrs import Attributes, Schema
from .cache import cached
from .declarations import ZERO, Check, Declarations, Rules
from .dispatch import apply
from .invalidation import invalidate
from .launch import Call, Kernel
from .mode import Recording
from .rules import SAME_TYPE, Attrs, AttrsRule, Dtypes, Rule, Shapes, TypeRule, UnfitDtype, counted, warn_of_none
from .signature import Names, Signature
from .spec import ANY, Shape, Spec, as_dtype, bytes_of, is_known, show, unify
from .traits import Traits

__all__ = ["Op", "combined_shape", "filled_shapes", "gradients_by_rule", "infer_specs", "runs_body", "shapes_from_data"]

V = TypeVar("V")


def combined_shape(name: str, old: Shape | None, new: Shape | None) -> Shape | None:
    """A known shape combined with that of a rule.

    Raises
    ------
    ShapeError
        If they disagree. The error names the input or output.
    """
    if old is new or new is None:
        return old
    try:
        return unify(old, new)
    except ShapeError:
        raise ShapeError(f"{name}: expected shape {show(new)}, got {show(old)}") from None


#: The dtype rule of a signature: operators with one text share it.
_type_rule = cached(1024)(TypeRule)


def runs_body(op: Op, xp: ArrayModule) -> bool:
    """Whether arrays of a module are computed by the operators of a traced body: no other kernel serves them."""
    return op.traits.traced and not any(kernel.serves is None or kernel.serves(xp) for kernel in op.kernels[1:])


class Op(Declarations, PropMethods):
    """An operator: its name, signature, traits, rules and kernels.

    Parameters
    ----------
    name : str
        The name in the registry, in files and in reports.
    schema, arguments, outputs, auxiliary, variadic, visible, input_names, per_instance
        See ``Signature``; names are a sequence of str, or a function of attributes.
    types : str or function
        A ``TypeRule`` signature, or ``f(ins, outs, **attrs) -> (ins, outs)``.
    loss : bool or function of attributes
        Whether it is a loss, whose gradient needs no output gradient.
    op_type : str or None
        The name of a user's operator in calls and files.
    call, differentiate, check_rule
        See ``Rules``; ``call`` is by default ``apply``.
    doc : str
        Documentation of its computation.
    **traits
        See ``Traits``.

    Attributes
    ----------
    aliases : tuple of str
        Further names.
    where : Where or None
        The line that made a user's operator; None for a built-in one, which has a family.
    related : dict
        Operators that are derived from a user's operator, such as its gradients, by kind.
    """

    #: Whether it was applied before.
    used = False
    #: The operator that replaced it under its name.
    successor: Op | None = None

    def __init__(self, name: str, schema: Schema, arguments: Names, *, outputs: Names = ("output",),
                 auxiliary: Names = (), types: str | Callable = SAME_TYPE.text, variadic: str | None = None,
                 visible: Callable[..., int] | None = None, input_names: Sequence[str] | None = None,
                 per_instance: bool = False, loss: bool | Callable[..., bool] = False, op_type: str | None = None,
                 call: Callable[..., Any] = apply, differentiate: Callable[..., Sequence[Any]] | None = None,
                 check_rule: Check | None = None, doc: str = "", **traits: Any):
        self.name, self.doc, self.op_type = name, doc, op_type
        self.aliases: tuple[str, ...] = ()
        self.where: Where | None = user_line()
        self.family = family()
        self.signature = Signature(schema, arguments, auxiliary, outputs, visible=visible, variadic=variadic,
                                   input_names=input_names, per_instance=per_instance)
        self.traits = Traits(**traits)
        self.rules = Rules(_type_rule(types) if isinstance(types, str) else Rule.of(types),
                           Rule.of(loss) if callable(loss) else bool(loss), call, differentiate, check_rule)
        self.kernels: list[Kernel] = []
        self.related: dict[object, Op] = {}
        self.__name__ = self.__qualname__ = name

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def replace(self, successor: Op | None) -> None:
        """Give its name to another operator, which existing symbols then use; None takes the name back."""
        self.successor = successor
        invalidate(self)

    @property
    def current(self) -> Op:
        """The operator that has its name now, which is this one unless it was replaced."""
        op = self
        while op.successor is not None:
            op = op.successor
        return op

    def complete(self, keywords: Attrs) -> Attributes:
        """Complete typed attributes from values or text."""
        self.used = True
        try:
            return self.signature.schema.complete(keywords)
        except (AttrError, TypeError) as error:
            if not hasattr(error, "__notes__"):  # a user's operator has added notes
                note(error, f"operator {self.name}")
            raise

    @property
    def differentiable(self) -> bool:
        """Whether it has a gradient: by a rule, or as the derivative of its body."""
        return self.traits.traced or self.rules.grad is not None

    def loss(self, attrs: Attrs) -> bool:
        """Whether its gradient needs no output gradient: it is a loss, or the gradient is zero."""
        loss = self.rules.loss
        return loss(attrs) if isinstance(loss, Rule) else loss or self.rules.grad is ZERO

    def adds(self, xp: ArrayModule) -> bool:
        """Whether a kernel for an array module supports the request ``add``."""
        return self.traits.supports_add or any(kernel.adds and (kernel.serves is None or kernel.serves(xp))
                                               for kernel in self.kernels)

    def infer_shapes(self, ins: Shapes, outs: Shapes, attrs: Attrs) -> tuple[Shapes, Shapes]:
        """Infer shapes of inputs (arguments, then auxiliary states) and outputs from those that are known.

        Raises
        ------
        ShapeError, AttrError
            If known shapes do not fit the operator.
        """
        if self.rules.shapes is not None:
            answer = self.rules.shapes(attrs, ins, outs)
            if _is_users(self, self.rules.shapes):
                given = _sides_of(self, "shapes", answer, ins, outs)
                return (_shapes_of(self, "shapes", given[0], self.signature.inputs(attrs), "inputs"),
                        _shapes_of(self, "shapes", given[1], self.signature.outputs(attrs)))
            return list(answer[0]), list(answer[1])
        if self.rules.infer is None:  # by default all have the same shape
            shape_of_all: Shape | None = None
            for shape in (*ins, *outs):
                shape_of_all = unify(shape_of_all, shape)
            return [shape_of_all] * len(ins), [shape_of_all] * len(outs)
        ins = filled_shapes(self, ins, outs, attrs)
        if any(shape is None for shape in ins):
            return ins, outs
        results = self.rules.infer(attrs, *self.signature.in_all_places(attrs, ins))
        if self.op_type is not None:
            results = _shapes_of(self, "infer", results, self.signature.outputs(attrs))
        elif not isinstance(results, list):
            results = [results]
        outs = [combined_shape(name, old, new) for name, old, new in zip(self.signature.outputs(attrs), outs, results)]
        if not all(map(is_known, ins)):
            ins = filled_shapes(self, ins, outs, attrs)  # outputs may now be known better
        return ins, outs

    def infer_dtypes(self, ins: Dtypes, outs: Dtypes, attrs: Attrs) -> tuple[Dtypes, Dtypes]:
        """Infer dtypes of inputs and outputs from those that are known.

        Raises
        ------
        DTypeError
            If dtypes contradict each other.
        """
        if isinstance(self.rules.types, TypeRule):
            try:
                return self.rules.types(ins, outs, attrs)
            except UnfitDtype as error:
                names = *self.signature.inputs(attrs), *self.signature.outputs(attrs)
                raise DTypeError(f"{names[error.place]}: {error}") from None
        answer = self.rules.types(attrs, list(ins), list(outs))
        if _is_users(self, self.rules.types):
            return _dtypes_of(self, answer, ins, outs)
        return list(answer[0]), list(answer[1])

    def specs(self, ins: Sequence[Spec | Array], attrs: Attrs) -> list[Spec]:
        """Infer the specs of outputs from those of all inputs, or from arrays, as far as they follow."""
        if self.rules.specs is not None:
            return infer_specs(self, ins, [Spec()] * len(self.signature.outputs(attrs)), attrs)[1]
        nothing: list[Any] = [None] * len(self.signature.outputs(attrs))
        _, shapes = self.infer_shapes([array.shape for array in ins], list(nothing), attrs)
        _, dtypes = self.infer_dtypes([array.dtype for array in ins], nothing, attrs)
        return list(map(Spec, shapes, dtypes))

    def differentiate(self, g: V | Sequence[V | None] | None, ins: Sequence[V], outs: Sequence[V], attrs: Attrs,
                      needs: Sequence[bool], is_train: bool = True) -> Sequence[V | None]:
        """Gradients of the inputs; None for an input without one.

        Raises
        ------
        NotDifferentiableError
            If the operator has no gradient rule.
        """
        rule = self.rules.differentiate or gradients_by_rule
        if self.where is None:
            return rule(self, g, ins, outs, attrs, needs, is_train)
        with Recording(None, is_train):  # operators in a user's rule run in the mode of the operator
            return rule(self, g, ins, outs, attrs, needs, is_train)

    def fail(self, error: Exception, specs: Sequence[Spec] = (), node: str = "") -> NoReturn:
        """Raise an error that a rule or a kernel of this operator has raised. An error of users' code stays
        unchanged; others become an `OpError` that names operator and node, and the ``specs`` of the outputs if memory
        was short."""
        try:
            calls_users = self.kernels and self.kernels[0].bound and not self.traits.traced
            if isinstance(error, OpError) or self.where is not None or calls_users:
                raise error
            text = f"operator {self.name}" + (f", node {node!r}" if node else "")
            if isinstance(error, MemoryError) or "too big" in str(error) or "Maximum allowed" in str(error):
                text += "".join([f", output {spec}, {bytes_of(spec.shape, spec.dtype)}" for spec in specs
                                 if spec.shape is not None and is_known(spec.shape) and spec.dtype is not None])
            raise as_op_error(error, text)
        finally:
            del error  # its traceback references this frame

    def __call__(self, *values: object, **keywords: Any) -> Any:
        """Apply the operator to arrays, which computes it, or to symbols, which adds a node."""
        return self.rules.call(self, values, keywords)


def infer_specs(op: Op, ins: Sequence[Spec | Array], outs: Sequence[Spec], attrs: Attrs
                ) -> tuple[list[Spec], list[Spec]]:
    """Infer shapes and dtypes of inputs and outputs of an operator from those that are known."""
    if op.rules.specs is not None:
        return op.rules.specs(attrs, [each if type(each) is Spec else Spec(each.shape, each.dtype) for each in ins],
                              list(outs))
    in_shapes, out_shapes = op.infer_shapes([each.shape for each in ins], [each.shape for each in outs], attrs)
    in_dtypes, out_dtypes = op.infer_dtypes([each.dtype for each in ins], [each.dtype for each in outs], attrs)
    return list(map(Spec, in_shapes, in_dtypes)), list(map(Spec, out_shapes, out_dtypes))


def filled_shapes(op: Op, ins: Shapes, outs: Shapes, attrs: Attrs) -> Shapes:
    """Input shapes, with those that the operator's rule ``fill`` infers from the others."""
    if op.rules.fill is None:
        return ins
    filled_in = op.rules.fill(attrs, list(op.signature.in_all_places(attrs, ins)), list(outs))
    names = op.signature.inputs(attrs)
    if op.op_type is None or isinstance(filled_in, (list, tuple)):
        filled_in = op.signature.present_values(attrs, filled_in)
    if op.op_type is not None:
        filled_in = _shapes_of(op, "fill", filled_in, names, "inputs")
    return [combined_shape(name, old, new) for name, old, new in zip(names, ins, filled_in)]


def shapes_from_data(op: Op, call: Call) -> list[Shape]:
    """Shapes of the outputs, from the values of the inputs of a call."""
    rule: Any = op.rules.infer_from_data
    if op.op_type is not None:
        arrays = op.signature.in_all_places(call.attrs, [call.wrap(data, call.ctx, True) for data in call.ins])
        return _shapes_of(op, "infer_from_data", rule(call.attrs, *arrays), op.signature.outputs(call.attrs))
    answer = rule(call.attrs, call.xp, *call.ins)
    return [tuple([dim if isinstance(dim, int) else int(call.ctx.backend.to_numpy(dim)) for dim in shape])
            for shape in (answer if isinstance(answer, list) else [answer])]


def _is_users(op: Op, rule: Rule) -> bool:
    """Whether a user has written a rule, so that its answers are checked."""
    return op.op_type is not None and not isinstance(rule, AttrsRule)


def _sides_of(op: Op, rule: str, answer: Any, ins: Sequence[object], outs: Sequence[object]) -> Sequence[Any]:
    """The answers for inputs and outputs that a user's rule returned, after a check of their counts."""
    lists = (list, tuple)
    if not (isinstance(answer, lists) and len(answer) == 2 and all(
            isinstance(side, lists) and len(side) == len(given) for side, given in zip(answer, (ins, outs)))):
        raise ArgumentError(f"operator {op.op_type!r}: its rule {rule} returned {answer!r}, expected two lists: "
                            f"{len(ins)} of inputs and {len(outs)} of outputs")
    return answer


def _dtypes_of(op: Op, answer: Any, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Dtypes of inputs and outputs that a user's rule returned, after a check."""
    try:
        of_ins, of_outs = [[None if dtype is None else as_dtype(dtype) for dtype in side]
                           for side in _sides_of(op, "types", answer, ins, outs)]
    except DTypeError as error:
        note(error, f"operator {op.op_type!r}: its rule types returned {answer!r}")
        raise
    return of_ins, of_outs


def _shapes_of(op: Op, rule: str, answer: Any, names: Sequence[str], side: str = "outputs") -> list[Any]:
    """Shapes that a user's rule returned, after a check: one for each of ``names``, which are inputs or outputs.

    Except from ``infer_from_data``, a dimension may be ANY; None means the same in shapes that depend on values, and
    in those from ``fill`` and ``shapes`` an unknown shape or dimension.
    """
    complete, has_unknown = rule == "infer_from_data", rule in ("fill", "shapes") or op.rules.data_dependent
    several = isinstance(answer, (list, tuple)) and len(answer) == len(names) and all(
        shape is None or isinstance(shape, (list, tuple)) for shape in answer)
    shapes = answer if several else [answer]
    result: list[Any] = []
    try:
        for shape in shapes:
            if shape is None and has_unknown and not complete:
                result.append(None)
            else:
                result.append(tuple([_dimension(dim, has_unknown, complete) for dim in shape]))
    except TypeError:
        pass
    if len(result) != len(names):
        raise ArgumentError(f"operator {op.op_type!r}: its rule {rule} returned {answer!r}, expected a shape for each "
                            f"of its {side} ({', '.join(names)}), such as (2, 3)")
    return result


def _dimension(dim: Any, has_unknown: bool, complete: bool) -> Any:
    if not complete and (dim is ANY or (dim is None and has_unknown)):
        return ANY
    length = index(dim)
    if length < 0:
        raise TypeError
    return length


def gradients_by_rule(op: Op, g: V | Sequence[V | None] | None, ins: Sequence[V], outs: Sequence[V], attrs: Attrs,
                      needs: Sequence[bool], is_train: bool) -> Sequence[V | None]:
    """Gradients of the inputs by the gradient rule of an operator; see ``Op.differentiate``."""
    rule = op.rules.grad
    if rule is ZERO:
        return [None] * len(ins)
    if rule is None:
        raise NotDifferentiableError(f"operator {op.name} has no gradient"
                                     + ("" if op.where is None else f" (registered at {op.where})"))
    if isinstance(rule, AttrsRule):
        return rule(attrs, g, ins, outs, needs, is_train)
    extra: dict[str, Any] = {}
    if "needs" in rule.names:
        extra["needs"] = needs
    if "is_train" in rule.names:
        extra["is_train"] = is_train
    result = rule.function(g, ins, outs, **rule.select(attrs), **extra)
    if result is None and op.op_type is not None and any(needs) and len(op.signature.arguments(attrs)) == 1:
        warn_of_none(rule.function, f"the gradient of operator {op.op_type!r}")
    gradients = result if isinstance(result, (tuple, list)) else (result,)
    if len(gradients) != len(ins) and op.traits.grad_reads:
        names = op.signature.arguments(attrs)
        if len(gradients) == len(names):  # auxiliary states have no gradient
            return [*gradients, *[None] * (len(ins) - len(gradients))]
        raise ArgumentError(f"the gradient of operator {op.op_type or op.name!r} returned {counted(result)}, expected "
                            f"a tuple of {len(names)}, one for each input ({', '.join(names)})")
    return gradients

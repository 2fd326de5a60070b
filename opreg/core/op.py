"""Op: the one record an operator is, built-in or a user's.

Its signature says what it takes and gives, its traits what holds for every use of it, its rules how shapes, dtypes and
gradients follow, its kernels how it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..errors import (
    ArgumentError,
    AttrError,
    NotDifferentiableError,
    OpError,
    ShapeError,
    Where,
    adopted,
    family,
    here,
    note,
)
from ..typing import ArrayModule
from .as_prop import AskedAsProp
from .attrs import Attributes, Schema
from .declarations import ZERO, Check, Declarations, Rules
from .dispatch import apply
from .edition import tell
from .launch import Call, Kernel
from .mode import Recording
from .rules import SAME_TYPE, Attrs, AttrsRule, Dtypes, Rule, Shapes, TypeRule
from .signature import Names, Signature
from .spec import ANY, Shape, Spec, bytes_of, known, show, unify
from .traits import Traits

if TYPE_CHECKING:
    from .value import Value

__all__ = ["Op", "agreed", "filled", "gradients_by_rule", "shapes_from_data"]

V = TypeVar("V", bound="Value")


def agreed(name: str, old: Shape | None, new: Shape | None) -> Shape | None:
    """A shape from what was known of it and what a rule says.

    Raises
    ------
    ShapeError
        Naming whose shape it is.
    """
    if old is new or new is None:
        return old
    try:
        return unify(old, new)
    except ShapeError:
        raise ShapeError(f"{name}: expected shape {show(new)}, got {show(old)}") from None


class Op(Declarations, AskedAsProp):
    """An operator: a name, what it takes, what comes out, how it is computed and differentiated.

    Parameters
    ----------
    name : str
        The name it is registered, saved and reported by.
    schema, arguments, outputs, auxiliary, variadic, visible, input_names, per_instance
        See ``Signature``; names are a sequence of str, or a function of attributes.
    types : str or function
        A ``TypeRule`` signature, or ``f(ins, outs, **attrs) -> (ins, outs)``.
    loss : bool or function of attributes
        Whether its gradient needs no gradient from above.
    op_type : str or None
        Of a user's operator, the name that it goes by and that files have for it.
    call, differentiate, check_rule
        See ``Rules``; it is called by ``apply`` by default.
    doc : str
        Documentation of its computation.
    **traits
        See ``Traits``.

    Attributes
    ----------
    aliases : tuple of str
        Further names.
    where : Where or None
        Where a user made it; None for a built-in one, which has a family.
    related : dict
        Of a user's operator: operators that compute gradients of it, or do the same in another form, by what they are.
    """

    #: Whether it was ever applied.
    used = False
    #: The operator registered by its name after it.
    successor: Op | None = None

    def __init__(self, name: str, schema: Schema, arguments: Names, *, outputs: Names = ("output",),
                 auxiliary: Names = (), types: str | Callable = SAME_TYPE.text, variadic: str | None = None,
                 visible: Callable[..., int] | None = None, input_names: Sequence[str] | None = None,
                 per_instance: bool = False, loss: bool | Callable[..., bool] = False, op_type: str | None = None,
                 call: Callable[..., Any] = apply, differentiate: Callable[..., Sequence[Any]] | None = None,
                 check_rule: Check | None = None, doc: str = "", **traits: Any):
        self.name, self.doc, self.op_type = name, doc, op_type
        self.aliases: tuple[str, ...] = ()
        self.where: Where | None = here()
        self.family = family()
        self.signature = Signature(schema, arguments, auxiliary, outputs, visible=visible, variadic=variadic,
                                   input_names=input_names, per_instance=per_instance)
        self.traits = Traits(**traits)
        self.rules = Rules(TypeRule(types) if isinstance(types, str) else Rule.of(types),
                           Rule.of(loss) if callable(loss) else bool(loss), call, differentiate, check_rule)
        self.kernels: list[Kernel] = []
        self.related: dict[object, Op] = {}
        self.__name__ = self.__qualname__ = name

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def replace(self, other: Op | None) -> None:
        """Give its name to another operator, or, with None, have it again. Symbols made of it mean the other then."""
        self.successor = other
        tell(self)

    @property
    def current(self) -> Op:
        """The operator that has its name now: itself, unless another was registered by that name."""
        op = self
        while op.successor is not None:
            op = op.successor
        return op

    def complete(self, given: Attrs) -> Attributes:
        """Typed attributes from what was given, as values or text."""
        self.used = True
        try:
            return self.signature.schema.complete(given)
        except (AttrError, TypeError) as error:
            if not hasattr(error, "__notes__"):  # a user's operator has said more
                note(error, f"operator {self.name}")
            raise

    @property
    def differentiable(self) -> bool:
        """Whether it has a gradient: by a rule, or by what its body does."""
        return self.traits.traced or self.rules.grad is not None

    def loss(self, attrs: Attrs) -> bool:
        """Whether the gradient starts or ends here and needs none from above."""
        loss = self.rules.loss
        return loss(attrs) if isinstance(loss, Rule) else loss or self.rules.grad is ZERO

    def adds(self, xp: ArrayModule) -> bool:
        """Whether a kernel for arrays of a module obeys the request ``add``."""
        return self.traits.supports_add or any(kernel.adds and (kernel.serves is None or kernel.serves(xp))
                                               for kernel in self.kernels)

    def infer_shapes(self, ins: Shapes, outs: Shapes, attrs: Attrs) -> tuple[Shapes, Shapes]:
        """Complete what is known of input (arguments, then auxiliary) and output shapes.

        Raises
        ------
        ShapeError, AttrError
            When what is known does not fit the operator.
        """
        if self.rules.shapes is not None:
            ins, outs = self.rules.shapes(attrs, ins, outs)
            return list(ins), list(outs)
        if self.rules.infer is None:  # everything has one shape
            one: Shape | None = None
            for shape in (*ins, *outs):
                one = unify(one, shape)
            return [one] * len(ins), [one] * len(outs)
        ins = filled(self, ins, outs, attrs)
        if any(shape is None for shape in ins):
            return ins, outs
        results = self.rules.infer(attrs, *ins)
        if not isinstance(results, list):
            results = [results]
        if self.rules.data_dependent and self.op_type is not None:  # a user says None where nothing is known
            results = [shape if shape is None else tuple([ANY if dim is None else dim for dim in shape])
                       for shape in results]
        outs = [agreed(name, old, new) for name, old, new in zip(self.signature.outputs(attrs), outs, results)]
        if not all(map(known, ins)):
            ins = filled(self, ins, outs, attrs)  # attributes may say more of the outputs than was known
        return ins, outs

    def infer_dtypes(self, ins: Dtypes, outs: Dtypes, attrs: Attrs) -> tuple[Dtypes, Dtypes]:
        """Complete what is known of input and output dtypes.

        Raises
        ------
        DTypeError
            When they contradict each other.
        """
        if isinstance(self.rules.types, TypeRule):
            return self.rules.types(ins, outs, attrs)
        ins, outs = self.rules.types(attrs, list(ins), list(outs))
        return list(ins), list(outs)

    def differentiate(self, g: V | Sequence[V | None] | None, ins: Sequence[V], outs: Sequence[V], attrs: Attrs,
                      needs: Sequence[bool], is_train: bool = True) -> Sequence[V | None]:
        """Gradients of the inputs, None where there is none.

        Raises
        ------
        NotDifferentiableError
            When the operator has no gradient rule.
        """
        rule = self.rules.differentiate or gradients_by_rule
        if self.where is None:
            return rule(self, g, ins, outs, attrs, needs, is_train)
        with Recording(None, is_train):  # what a user's rule calls computes as the operator does
            return rule(self, g, ins, outs, attrs, needs, is_train)

    def fail(self, error: Exception, specs: Sequence[Spec] = (), node: str = "") -> NoReturn:
        """Raise what came out of its rules or kernels: an error of users' code as itself, another as an `OpError` that
        names operator and node, and for arrays too large to be had the outputs' ``specs``."""
        try:
            if isinstance(error, OpError) or self.where is not None or (self.kernels and self.kernels[0].bound):
                raise error
            text = f"operator {self.name}" + (f", node {node!r}" if node else "")
            if isinstance(error, MemoryError) or "too big" in str(error) or "Maximum allowed" in str(error):
                text += "".join([f", output {spec}, {bytes_of(spec.shape, spec.dtype)}" for spec in specs
                                 if spec.shape is not None and known(spec.shape) and spec.dtype is not None])
            raise adopted(error, text)
        finally:
            del error  # its traceback keeps this frame

    def __call__(self, *values: object, **keywords: Any) -> Any:
        """Apply the operator to values: arrays compute now, symbols grow a graph."""
        return self.rules.call(self, values, keywords)


def filled(op: Op, ins: Shapes, outs: Shapes, attrs: Attrs) -> Shapes:
    """Input shapes with those filled in that the operator says follow from the rest."""
    if op.rules.fill is None:
        return ins
    said = op.rules.fill(attrs, list(ins), list(outs))
    return [agreed(name, old, new) for name, old, new in zip(op.signature.inputs(attrs), ins, said)]


def shapes_from_data(op: Op, call: Call) -> list[Shape]:
    """Shapes of the outputs, from the numbers in the inputs of a call."""
    rule: Any = op.rules.infer_from_data
    if op.op_type is not None:
        return _shapes_of(op, rule(call.attrs, *[call.wrap(data, call.ctx, True) for data in call.ins]), call.attrs)
    answer = rule(call.attrs, call.xp, *call.ins)
    return [tuple([dim if isinstance(dim, int) else int(call.ctx.backend.to_numpy(dim)) for dim in shape])
            for shape in (answer if isinstance(answer, list) else [answer])]


def _shapes_of(op: Op, answer: Any, attrs: Attrs) -> list[Shape]:
    """Shapes of the outputs from the answer of a user's rule, checked."""
    names, shapes = op.signature.outputs(attrs), answer if isinstance(answer, list) else [answer]
    found: list[Shape] = []
    try:
        found += [tuple([index(dim) for dim in shape]) for shape in shapes]
    except TypeError:
        pass
    if len(found) != len(names):
        raise ArgumentError(f"operator {op.op_type!r}: its rule for shapes that depend on values returned "
                            f"{answer!r}, expected a shape for each of its outputs ({', '.join(names)})")
    return found


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
    if not isinstance(result, (tuple, list)):
        result = (result,)
    if len(result) != len(ins) and op.traits.grad_reads:
        if len(result) == len(op.signature.arguments(attrs)):  # auxiliary states have no gradient
            return list(result) + [None] * (len(ins) - len(result))
        raise ArgumentError(f"gradient of {op.name}: expected {len(ins)} values, one for each input, "
                            f"got {len(result)}")
    return result

"""Operators made from a registered ``CustomOpProp``, and their backward operators."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.arguments import LateSignature, is_tensor, signature
from ..core.attrs import AS_GIVEN, REQUIRED, AsText, Field, to_text
from ..core.cache import Recent
from ..core.dispatch import call
from ..core.invalidation import renew
from ..core.op import Op
from ..core.parameters import signature_of
from ..core.rules import AttrsRule, Rule
from ..core.value import Value
from ..errors import (
    ArgumentError,
    OpError,
    note,
    unknown_keyword,
)
from .answers import check_names
from .custom_op import CustomOpProp
from .first_run import is_default
from .gradient import OutGrads, UsersSchema
from .invocation import backward_steps, forward_steps
from .prop_use import LISTS, MOST_USES, BackwardUse, CallCache, PropUse
from .signature import attribute, check_rule, hints

if TYPE_CHECKING:
    pass

__all__ = ["RegisteredProp", "of_prop"]


class RegisteredProp(UsersSchema):
    """The schema of an operator that is a ``CustomOpProp``: the parameters of its constructor are the attributes.

    Attributes
    ----------
    op_type, prop_class
        The name and the class that were registered.
    calls : Recent
        Caches of eager calls, by their keywords.
    warned : set of str
        Inputs for which a warning was issued that their gradient is not written.
    rule_of_class : Rule
        The gradient rule of the class: ``gradient`` of the Prop, or ``backward`` of its operator.
    """

    def __init__(self, op_type: str, prop: type[CustomOpProp]):
        self.op_type, self.prop_class = op_type, prop
        self.calls = Recent(MOST_USES)
        self.read_class()
        self.warned: set[str] = set()
        self.rule_of_class = AttrsRule(PropUse.differentiate)

    def read_class(self) -> None:
        """Read the attributes from the constructor of the class."""
        prop = self.prop_class
        make, annotated = prop.__init__, hints(prop.__init__)
        self._members = [vars(kind) for kind in prop.__mro__]
        self._sizes = [*map(len, self._members)]
        self._ask = operator.attrgetter("__init__", "__mro__", *[
            name for name in (*_FLAGS, *_RULES) if hasattr(prop, name)])
        self._asked = self._ask(prop)
        self._code, self._defaults = getattr(make, "__code__", None), getattr(make, "__defaults__", None)
        self._named = dict(getattr(make, "__kwdefaults__", None) or {})
        fields, is_open = [], False
        for parameter in list(signature_of(prop.__init__).parameters.values())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                is_open = True
            elif parameter.kind is not parameter.VAR_POSITIONAL:
                default = REQUIRED if parameter.default is parameter.empty else parameter.default
                fields.append(attribute(parameter.name, annotated.get(parameter.name, AsText), default))
        super().__init__(fields, is_open)
        self.calls.clear()

    def follow_class(self) -> bool:
        """Read the class again if a program has changed its constructor, its flags or its optional methods; returns
        whether it has."""
        prop: Any = self.prop_class
        if [*map(len, self._members)] == self._sizes and all(map(operator.is_, self._ask(prop), self._asked)) and (
                self._code is None or self._has_same_code(prop.__init__)):
            return False
        self.read_class()
        _declare_class(self.op, self.prop_class)
        renew(self.op)
        return True

    def _has_same_code(self, make: Any) -> bool:
        """Whether the constructor has the code and the defaults that it had."""
        named = make.__kwdefaults__
        return make.__code__ is self._code and make.__defaults__ is self._defaults and (named is None or (
            named.keys() == self._named.keys() and all(map(operator.is_, named.values(), self._named.values()))))

    @property
    def plain_types(self) -> bool:
        """Whether ``infer_type`` is the default; a program may replace the method at any time."""
        return is_default(self.prop_class.infer_type)

    @property
    def plain_shapes(self) -> bool:
        """Whether ``infer_shape`` is the default, and no shape depends on values."""
        return is_default(self.prop_class.infer_shape) and not hasattr(self.prop_class, "infer_shape_from_data")

    @property
    def declared_rule(self) -> Any:
        """The gradient rule that was declared by ``Op.grad``; None if there is none beside the class."""
        rule = self.op.rules.grad
        return None if rule is self.rule_of_class else rule

    @property
    def written(self) -> Any:
        """The Prop's class."""
        return self.prop_class

    @property
    def rule_code(self) -> Any:
        """The declared gradient rule, or the method ``gradient`` of the Prop's class."""
        rule = self.declared_rule
        return rule.function if isinstance(rule, Rule) else getattr(self.prop_class, "gradient", None)

    def complete(self, keywords: Mapping[str, object]) -> PropUse:
        """Typed attributes, with a new Prop and the names that it lists; attributes of another use stay as they are."""
        self.follow_class()
        if isinstance(keywords, PropUse) and keywords.registered is self:
            return self.make_use(keywords)  # its defaults are no text: True and None would become 'True' and 'None'
        typed: dict[str, object] = {}
        for name, value in keywords.items():
            if name in self:
                field = self[name]
                typed[name] = self._text(name, value) if field.kind is AsText else self._convert_value(field, value)
            elif self.open:
                typed[name] = self._text(name, value)
            elif not (name.startswith("__") and name.endswith("__")):
                raise ArgumentError(f"operator {self.op_type!r}: "
                                    f"{unknown_keyword(self.prop_class.__name__, name, self.names)}")
        for field in self.fields:
            if field.required and field.name not in typed:
                raise ArgumentError(f"operator {self.op_type!r}: {self.prop_class.__name__}() needs the keyword "
                                    f"{field.name!r}")
            typed.setdefault(field.name, field.default)  # declared rules read defaults, too
        return self.make_use(typed)

    def _text(self, name: str, value: object) -> str:
        if is_tensor(value):
            raise ArgumentError(f"operator {self.op_type!r}: the keyword {name!r} is an attribute of "
                                f"{self.prop_class.__name__}, got {type(value).__name__}; inputs are those that "
                                "list_arguments names")
        return to_text(value)

    def _convert_value(self, field: Field, value: object) -> object:
        try:
            return field(value)
        except OpError as error:
            note(error, f"operator {self.op_type!r}: making a {self.prop_class.__name__}")
            raise

    def make_use(self, keywords: Mapping[str, object], cache: CallCache | None = None) -> PropUse:
        """Make a Prop from typed keywords and list its names. Names that equal the cached ones are not checked
        again."""
        use = PropUse(keywords)
        use.registered, use.op, use.memo = self, self.op, {}
        method, lists = "", []
        try:
            use.prop = prop = self.prop_class(**use)
            if hasattr(prop, "need_top_grad_") or not is_default(prop.declare_backward_dependency):
                for method in LISTS:
                    lists.append(getattr(prop, method)())
        except Exception as error:
            if method:
                use.blame(error, method)
                raise
            note(error, f"operator {self.op_type!r}: making a {self.prop_class.__name__}")
            use.explain(error)
            raise
        if not lists:
            raise ArgumentError(f"operator {self.op_type!r}: {self.prop_class.__name__}.__init__ does not call "
                                "super().__init__(), whose need_top_grad says whether backward needs the output "
                                "gradient")
        if cache is not None and lists == cache.listed:
            use.arguments, use.outputs, use.auxiliary = cache.names
            use.cache = cache
        else:
            use.arguments, use.outputs, use.auxiliary = map(check_names, map(use.title, LISTS), lists)
            check_names(f"{use.title(LISTS[0])} and {LISTS[2]}", use.arguments + use.auxiliary)
        return use

    def backward(self, use: PropUse) -> Op:
        """The backward operator of a use, which depends on the number of arrays that it reads."""
        gradients, counts = self.op.related, tuple(map(len, use.reads()))
        if ("backward", counts) not in gradients:
            gradients["backward", counts] = _backward(self.op, *counts)
        return gradients["backward", counts]


def of_prop(op_type: str, prop: type[CustomOpProp]) -> Op:
    """Make the operator of a ``CustomOpProp``."""
    registered = RegisteredProp(op_type, prop)
    op = registered.op = Op(f"custom.{op_type}", registered, AttrsRule(lambda use: use.arguments),
                            outputs=AttrsRule(lambda use: use.outputs), auxiliary=AttrsRule(lambda use: use.auxiliary),
                            types=AttrsRule(PropUse.infer_dtypes), mode=True, per_instance=True, op_type=op_type,
                            loss=AttrsRule(lambda use: not any(i < len(use.outputs) for i in use.needed)), call=call,
                            differentiate=_gradients, check_rule=_check_rule, doc=_own_doc(prop))
    op.__doc__, op.__module__ = op.doc, prop.__module__
    op.__signature__ = LateSignature(lambda: signature(op))  # type: ignore[attr-defined]
    op.shapes(AttrsRule(PropUse.infer_shapes))
    op.kernel("CustomOp.forward", bound=True)(forward_steps)
    op.grad(registered.rule_of_class)
    _declare_class(op, prop)
    return op


#: Flags of a class that are traits of its operator.
_FLAGS = ("traced", "capturable", "cheap")
#: Optional methods of a class that are rules of its operator: the rule's name, the rule that asks the Prop, and the
#: method's parameters.
_RULES = {
    "infer_shape_from_data": ("infer_from_data", AttrsRule(PropUse.shapes_from_data), ("in_data",)),
    "vmap": ("vmap", AttrsRule(lambda use, ins, batched: use.ask("vmap", ins, batched)), ("ins", "batched")),
    "jvp": ("jvp", AttrsRule(lambda use, t, ins, outs: use.ask("jvp", t, ins, outs)), ("t", "ins", "outs")),
}


def _declare_class(op: Op, prop: type[CustomOpProp]) -> None:
    """Set the traits of an operator, and declare its rules, by the flags and the optional methods of its class."""
    flags: dict[str, Any] = {name: bool(getattr(prop, name, False)) for name in _FLAGS}
    op.traits = op.traits.but(**flags)
    for method, (rule, ask, parameters) in _RULES.items():
        if getattr(op.rules, rule) is None and _has_rule(str(op.op_type), prop, method, parameters):
            getattr(op, rule)(ask)


def _gradients(op: Op, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], use: PropUse, needs: Sequence[bool],
               is_train: bool) -> list[Value | None]:
    return use.differentiate(g, ins, outs, needs, is_train)


#: Methods of a Prop in the place of rules of other operators.
_METHODS = {"infer": "infer_shape", "shapes": "infer_shape", "fill": "infer_shape", "together": "infer_shape",
            "types": "infer_type", "infer_from_data": "infer_shape_from_data"}


def _check_rule(op: Op, what: str, function: Any) -> None:
    """Check a rule that is declared beside a Prop, which tells shapes and dtypes itself."""
    if what in _METHODS:
        prop: Any = op.signature.schema
        raise ArgumentError(f"operator {op.op_type!r}: write the method {_METHODS[what]} of "
                            f"{prop.prop_class.__name__} instead of a rule {what!r}")
    check_rule(op, what, function)


def _own_doc(prop: type[CustomOpProp]) -> str:
    """The docstring of a class, or of the first of its bases that has one before ``CustomOpProp``."""
    bases = prop.__mro__[:prop.__mro__.index(CustomOpProp)]
    return inspect.cleandoc(next(filter(None, (base.__doc__ for base in bases)), ""))


def _has_rule(op_type: str, prop: type[CustomOpProp], name: str, parameters: Sequence[str]) -> bool:
    """Whether a class has a method of this name; an error if it cannot be called with the parameters."""
    method = getattr(prop, name, None)
    if method is None:
        return False
    try:
        signature_of(method).bind(None, *parameters)
    except TypeError:
        raise ArgumentError(f"register({op_type!r}): {prop.__name__}.{name} takes {signature_of(method)}, "
                            f"expected ({', '.join(['self', *parameters])})") from None
    return True


def _backward(forward: Op, read: int, unread: int) -> Op:
    """Make the backward operator for ``read`` arrays that backward reads and ``unread`` arguments."""
    op = Op(f"_backward_{forward.name}", AS_GIVEN, AttrsRule(BackwardUse.inputs),
            outputs=AttrsRule(lambda use: tuple([f"{name}_grad" for name in use.arguments])),
            auxiliary=AttrsRule(lambda use: use.auxiliary), types=AttrsRule(BackwardUse.like_arguments),
            unread=range(read, read + unread), mode=True, per_instance=True, supports_add=True,
            traced=forward.traits.traced, capturable=forward.traits.capturable)
    op.shapes(AttrsRule(BackwardUse.like_arguments))
    op.kernel("CustomOp.backward", bound=True)(backward_steps)
    op.grad(AttrsRule(BackwardUse.differentiate))
    return op

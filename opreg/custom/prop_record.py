"""The record of a registered ``CustomOpProp``, and that of its backward."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.attrs import REQUIRED, Field, Schema, to_text
from ..core.cache import Recent
from ..core.launch import Call
from ..core.spec import ANY, Shape, TypeFlag, as_dtype, known
from ..errors import ArgumentError, DTypeError, NotDifferentiableError, OpError, did_you_mean, note
from .first_run import is_default
from .gradient import Attrs, UserOp, shown
from .invocation import backward_steps, forward_steps
from .signature import hints

__all__ = ["CustomRecord", "BackwardRecord", "Kept"]


_PLAIN = {str}
_NOTHING = object()
_LISTS = ("list_arguments", "list_outputs", "list_auxiliary_states")
#: For how many sets of keywords, and specs each, an operator keeps what follows from its Prop's answers.
_KEPT = 128


class _Attrs(Attrs):
    """Attributes of one use of an operator, with the Prop made of them and what it answered.

    Attributes
    ----------
    record : CustomRecord
        The operator.
    prop : CustomOpProp
        Made of these attributes.
    arguments, outputs, auxiliary : tuple of str
        Names that the Prop listed.
    needs : tuple of bool, or None
        Of a backward: the arguments whose gradient is wanted, None for all.
    kept : Kept or None
        Of an eager call: what it has in common with others.
    """

    record: CustomRecord
    prop: Any
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    auxiliary: tuple[str, ...]
    needs: tuple[bool, ...] | None = None
    kept: Kept | None = None
    _reads: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    @property
    def needed(self) -> tuple[int, ...]:
        """Positions, among the output gradients, inputs and outputs, of what backward reads."""
        return self.reads()[0]

    @property
    def unread(self) -> tuple[int, ...]:
        """Numbers of the arguments that backward does not read; their gradients have their shapes all the same."""
        return self.reads()[1]

    def reads(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """``needed`` and ``unread``, for which the Prop is asked once a use."""
        if self._reads is not None:
            return self._reads
        n_out, n_in, kept, plain = len(self.outputs), len(self.arguments), self.kept, None
        if is_default(self.prop.declare_backward_dependency):  # the answer follows
            plain = bool(self.prop.need_top_grad_)
            if kept is not None and plain in kept.reads:
                self._reads = kept.reads[plain]
                return self._reads
        last = 2 * n_out + n_in
        declared = self.ask("declare_backward_dependency", [*range(n_out)], [*range(n_out, n_out + n_in)],
                            [*range(n_out + n_in, last)])
        if not isinstance(declared, (list, tuple, set)) or any(i not in range(last) for i in declared):
            raise ArgumentError(f"{self.title('declare_backward_dependency')} returned {declared!r}, expected a list "
                                f"of numbers from 0 to {last - 1}")
        needed = tuple(sorted(set(declared)))
        self._reads = needed, tuple([i for i in range(n_in) if n_out + i not in needed])
        if kept is not None and plain is not None:
            kept.reads[plain] = self._reads
        return self._reads

    def of_backward(self, needs: Sequence[bool]) -> _Attrs:
        """The same for a backward that is asked for some gradients only."""
        made = _Attrs(self)
        made.__dict__.update(self.__dict__, needs=tuple(needs), kept=None)
        return made

    def title(self, method: str) -> str:
        """A method of the Prop as errors name it."""
        return f"operator {self.record.op_type!r}: {type(self.prop).__name__}.{method}"

    def ask(self, method: str, *args: Any) -> Any:
        """What the Prop answers; its exceptions leave with a note."""
        try:
            return getattr(self.prop, method)(*args)
        except Exception as error:
            self.blame(error, method, *args)
            raise

    def blame(self, error: Exception, method: str, *args: Any) -> None:
        """Note on an exception which method of the Prop it comes from."""
        note(error, self.title(method) + (f", given {args[0]}" if args else ""))
        self.explain(error)

    def explain(self, error: BaseException) -> None:
        """Note on a TypeError which keywords are text and look like something else."""
        texts = [f"{name}={value!r}" for name, value in self.items() if type(value) is str and _looks_otherwise(value)]
        if texts and isinstance(error, TypeError):
            note(error, f"keywords of a Prop are text where they have no annotation, as in MXNet: {', '.join(texts)}; "
                        "write one, as in __init__(self, k: int), or convert them")

    def names(self, method: str, found: Any) -> tuple[str, ...]:
        """What the Prop lists, checked."""
        if not isinstance(found, (list, tuple)) or not (
                {*map(type, found)} <= _PLAIN or all(isinstance(name, str) for name in found)):
            raise ArgumentError(f"{self.title(method)} returned {found!r}, expected a list of names")
        names = tuple(found)
        if len(names) > 1 and len(set(names)) < len(names):
            raise ArgumentError(f"{self.title(method)} returned {found!r}, which names one twice")
        return names


class Kept:
    """What eager calls of an operator with the same keywords have in common, for as long as their Props agree.

    Attributes
    ----------
    given : dict
        The keywords, typed.
    names : list of tuple of str
        Arguments, outputs and auxiliary states, as the first Prop listed them.
    order : list of int
        Which of the arrays in the call each input is.
    reads : dict of bool
        What backward reads and does not read, by whether it needs the gradient from above; of Props that declare
        nothing else.
    runs : Recent
        What follows for inputs of certain specs, see ``opreg.ndarray.custom_calls``.
    """

    __slots__ = ("given", "names", "order", "reads", "runs")

    def __init__(self, attrs: _Attrs, order: list[int]):
        self.given, self.order = dict(attrs), order
        self.names = [attrs.arguments, attrs.outputs, attrs.auxiliary]
        self.reads: dict[bool, Any] = {}
        self.runs = Recent(_KEPT)


def _looks_otherwise(value: str) -> bool:
    """Whether a text is that of a number, a tuple or a truth value."""
    try:
        return not isinstance(ast.literal_eval(value), str)
    except (ValueError, SyntaxError):
        return False


def _prop_schema(cls: Any) -> Schema:
    annotated = hints(cls.__init__)
    fields, is_open = [], False
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            default = REQUIRED if parameter.default is parameter.empty else parameter.default
            fields.append(Field(parameter.name, annotated.get(parameter.name, text), default))
    return Schema(fields, is_open)


class text(str):
    """The kind of a parameter without annotation, which gets any value as text."""


class CustomRecord(UserOp):
    """The record of a registered ``CustomOpProp``."""

    def __init__(self, name: str, prop: type):
        super().__init__(f"custom.{name}", _prop_schema(prop), (), doc=inspect.getdoc(prop) or "")
        self.op_type, self.prop_class = name, prop
        self.traced = bool(getattr(prop, "traced", False))
        self.mode = self.per_instance = True
        self.kernel("CustomOp.forward", bound=True)(forward_steps)
        self._backwards: dict[Any, BackwardRecord] = {}
        self.calls = Recent(_KEPT)  # eager calls, by their keywords
        self.told: set[str] = set()  # the inputs whose gradient is never written, once that has been said
        self.plain_types = is_default(prop.infer_type)  # type: ignore[attr-defined]

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A Prop of these attributes, and what it answers."""
        typed: dict[str, Any] = {}
        for name, value in given.items():
            if name in self.schema:
                field = self.schema[name]
                typed[name] = to_text(value) if field.kind is text else self._typed(field, value)
            elif self.schema.open:
                typed[name] = to_text(value)
            elif not (name.startswith("__") and name.endswith("__")):
                raise ArgumentError(f"operator {self.op_type!r}: {self.prop_class.__name__}() takes no keyword "
                                    f"{name!r}. {did_you_mean(name, self.schema.names)}")
        for field in self.schema.fields:
            if field.required and field.name not in typed:
                raise ArgumentError(f"operator {self.op_type!r}: {self.prop_class.__name__}() needs the keyword "
                                    f"{field.name!r}")
        return self.anew(typed)

    def anew(self, given: Mapping[str, Any], kept: Kept | None = None) -> _Attrs:
        """A Prop of typed keywords, which is asked for its names. Those that an earlier one gave were checked."""
        attrs = _Attrs(given)
        attrs.record, attrs.memo = self, {}
        method, listed = "", []
        try:
            attrs.prop = prop = self.prop_class(**attrs)
            if hasattr(prop, "need_top_grad_") or not is_default(prop.declare_backward_dependency):
                for method in _LISTS:
                    listed.append(getattr(prop, method)())
        except Exception as error:
            if method:
                attrs.blame(error, method)
                raise
            note(error, f"operator {self.op_type!r}: making a {self.prop_class.__name__}")
            attrs.explain(error)
            raise
        if not listed:
            raise ArgumentError(f"operator {self.op_type!r}: {self.prop_class.__name__}.__init__ does not call "
                                "super().__init__(), which is told whether backward needs the gradient from above")
        if kept is not None and [(*found,) if found.__class__ is list else None for found in listed] == kept.names:
            attrs.arguments, attrs.outputs, attrs.auxiliary = kept.names
            attrs.kept = kept
        else:
            attrs.arguments, attrs.outputs, attrs.auxiliary = map(attrs.names, _LISTS, listed)
        return attrs

    def _typed(self, field: Field, value: Any) -> Any:
        try:
            return field(value)
        except OpError as error:
            note(error, f"operator {self.op_type!r}: making a {self.prop_class.__name__}")
            raise

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs, where the operator can be made without attributes; else nobody knows."""
        try:
            attrs: Any = self.complete({})
        except Exception:
            return ()
        return attrs.arguments + attrs.auxiliary

    def arguments(self, attrs: Any) -> tuple[str, ...]:
        return attrs.arguments

    def outputs(self, attrs: Any) -> tuple[str, ...]:
        return attrs.outputs

    def auxiliary(self, attrs: Any) -> tuple[str, ...]:
        return attrs.auxiliary

    def visible(self, attrs: Any) -> int:
        return len(attrs.outputs)

    def loss(self, attrs: Any) -> bool:
        return not any(i < len(attrs.outputs) for i in attrs.needed)

    @property
    def differentiable(self) -> bool:
        return True

    def _answer(self, attrs: Any, method: str, given: list, complete: bool) -> Any:
        """What the Prop says to shapes or dtypes; nothing when it cannot say while some are unknown."""
        try:
            return attrs.ask(method, given)
        except Exception:
            if complete:
                raise
            return _NOTHING

    def _groups(self, attrs: Any, method: str, found: Any) -> list[list]:
        """An answer as lists for arguments, outputs and auxiliary states, checked."""
        expected = (attrs.arguments, attrs.outputs, attrs.auxiliary)
        groups: list = [*found] if isinstance(found, (tuple, list)) else []
        if len(groups) == 2:
            groups.append(())
        try:
            if [*map(len, groups)] == [*map(len, expected)]:
                return groups
        except TypeError:  # something has no length: it is no list
            groups = []
        title = f"{attrs.title(method)} returned"
        if len(groups) != 3:
            raise ArgumentError(f"{title} {found!r}, expected 2 or 3 lists: of arguments, outputs and auxiliary states")
        what, names, group = next(each for each in zip(("arguments", "outputs", "auxiliary states"), expected, groups)
                                  if len(each[1]) != len(each[2]))
        raise ArgumentError(f"{title} {len(group)} entries for its {what}, expected {len(names)}"
                            f" ({', '.join(names) or 'none'})")

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        given = ins[:len(attrs.arguments)]
        complete = all(map(known, given))
        found = self._answer(attrs, "infer_shape", [[] if shape is None else list(shape) for shape in given], complete)
        return (ins, outs) if found is _NOTHING else self.shapes_by(found, ins, outs, attrs, complete)

    def shapes_by(self, answer: Any, ins: Any, outs: Any, attrs: Any, complete: bool = True) -> Any:
        """Shapes of inputs and outputs, by what ``infer_shape`` answered where those of the arguments are complete."""
        settled = [complete, complete and not self.data_dependent, complete]
        arguments, results, states = [[_shape(shape, each, attrs) for shape in group] for group, each in
                                      zip(self._groups(attrs, "infer_shape", answer), settled)]
        return (self._agreed(attrs.arguments + attrs.auxiliary, ins, arguments + states),
                self._agreed(attrs.outputs, outs, results))

    @property
    def data_dependent(self) -> bool:
        return hasattr(self.prop_class, "infer_shape_from_data")

    def shapes_from_data(self, call: Call) -> list[Shape]:
        attrs: Any = call.attrs
        found = attrs.ask("infer_shape_from_data", [call.wrap(each, call.ctx, True)
                                                    for each in call.ins[:len(attrs.arguments)]])
        if not isinstance(found, (list, tuple)) or len(found) != len(attrs.outputs):
            raise ArgumentError(f"{attrs.title('infer_shape_from_data')} returned {found!r}, expected a list of "
                                f"{len(attrs.outputs)} shapes ({', '.join(attrs.outputs)})")
        return [_shape(shape, True, attrs) for shape in found]  # type: ignore[misc]

    def _agreed(self, names: Sequence[str], olds: Sequence[Any], news: Sequence[Any]) -> list[Any]:
        return [new if old is None else self._agree(name, old, new) for name, old, new in zip(names, olds, news)]

    def infer_dtypes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        given = ins[:len(attrs.arguments)]
        found = None
        if not (self.plain_types and given):
            found = self._answer(attrs, "infer_type", [None if dtype is None else dtype.type for dtype in given],
                                 all(dtype is not None for dtype in given))
            if found is _NOTHING:
                return ins, outs
        return self.dtypes_by(found, ins, outs, attrs)

    def dtypes_by(self, answer: Any, ins: Any, outs: Any, attrs: Any) -> Any:
        """Dtypes of inputs and outputs, by what ``infer_type`` answered if it was asked."""
        given = ins[:len(attrs.arguments)]
        if self.plain_types and given:  # what the method of CustomOpProp answers
            arguments, results, states = given, given[:1] * len(outs), given[:1] * len(attrs.auxiliary)
        else:
            arguments, results, states = [[_dtype(dtype, attrs) for dtype in group]
                                          for group in self._groups(attrs, "infer_type", answer)]
        return (_same(attrs.arguments + attrs.auxiliary, ins, arguments + states),
                _same(attrs.outputs, outs, results))

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        if hasattr(attrs.prop, "gradient"):
            return self.by_rule(g, ins, outs, attrs, needs, is_train)
        count, states = len(attrs.arguments), list(ins[len(attrs.arguments):])
        every = [*(g if isinstance(g, tuple) else (g,)), *ins[:count], *outs]
        read = [every[i] for i in attrs.needed] + [ins[i] for i in attrs.unread] + states
        deciding = ins[0] if ins else outs[0]
        found = deciding._apply(self.backward(attrs), read, attrs.of_backward(needs[:count]))
        return [found, *[None] * len(states)] if count == 1 else [*found, *[None] * len(states)]

    def ruled(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool) -> list[Any]:
        count = len(attrs.arguments)
        found = attrs.ask("gradient", *shown((g, list(ins[:count]), list(outs))))
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        if len(found) != count:
            raise ArgumentError(f"{attrs.title('gradient')} returned {len(found)} values, expected {count}, one "
                                "for each input")
        return self.own(found, ins, attrs, f"{attrs.title('gradient')}: the gradient")

    def backward(self, attrs: _Attrs) -> BackwardRecord:
        """The record of its backward, for one that reads as many arrays."""
        key = len(attrs.needed), len(attrs.unread)
        if key not in self._backwards:
            self._backwards[key] = BackwardRecord(self, *key)
        return self._backwards[key]

    def create(self, attrs: Any, ctx: Any, memo: dict, inputs: Sequence[Any]) -> Any:
        """The operator object of one executor, or one eager call, made at its first step.

        ``inputs`` have the shapes and dtypes of arguments and auxiliary states.
        """
        prop = attrs.prop
        if id(prop) not in memo:
            if is_default(prop.create_operator):
                raise ArgumentError(f"operator {self.op_type!r}: {type(prop).__name__} has no create_operator(self, "
                                    "ctx, shapes, dtypes), which returns the CustomOp that computes")
            shapes, dtypes = [[*each.shape] for each in inputs], [_flag(each.dtype) for each in inputs]
            try:
                made = prop.create_operator(ctx, shapes, dtypes)
            except Exception as error:
                attrs.blame(error, "create_operator", ctx)
                raise
            if isinstance(made, type) or not hasattr(made, "forward") or not hasattr(made, "backward"):
                raise ArgumentError(f"{attrs.title('create_operator')} returned {made!r}, expected a CustomOp"
                                    + (f": {made.__name__}()" if isinstance(made, type) else ""))
            memo[id(prop)] = made, prop  # which is kept so that its address stays its own
        return memo[id(prop)][0]


_flag = functools.cache(TypeFlag)


def _shape(shape: Any, complete: bool, attrs: _Attrs) -> Shape | None:
    """A shape that a Prop returned; an empty one means that it is unknown, unless everything is known."""
    try:
        if complete:
            return tuple(map(operator.index, shape))
        return None if shape is None else tuple([ANY if dim is ANY or dim is None else operator.index(dim)
                                                 for dim in shape]) or None
    except TypeError:
        raise ArgumentError(f"{attrs.title('infer_shape')} returned the shape {shape!r}, expected a tuple or list of "
                            "ints") from None


def _same(names: Sequence[str], olds: Sequence[Any], news: Sequence[Any]) -> list[Any]:
    """Dtypes where what was known and what was said agree."""
    for name, old, new in zip(names, olds, news):
        if old is not new and old is not None and new is not None and old != new:
            raise DTypeError(f"{name}: expected dtype {new}, got {old}")
    return [new if old is None else old for old, new in zip(olds, news)]


def _dtype(dtype: Any, attrs: _Attrs) -> np.dtype | None:
    """A dtype that a Prop returned: a scalar class, a dtype, a name, or MXNet's integer."""
    try:
        return None if dtype is None else as_dtype(dtype)
    except DTypeError as error:
        note(error, f"{attrs.title('infer_type')} returned {dtype!r}")
        raise


class BackwardRecord(UserOp):
    """The backward of a ``CustomRecord``: gradients from whatever its Prop declared to read.

    Its inputs are these, then the other arguments, of which only the shape matters, then the auxiliary states.
    """

    def __init__(self, forward: CustomRecord, read: int, unread: int):
        super().__init__(f"_backward_{forward.name}", Schema([], True), (), unread=range(read, read + unread))
        self.forward = forward
        self.mode = self.supports_add = True
        self.traced = forward.traced
        self.kernel("CustomOp.backward", bound=True)(backward_steps)

    def complete(self, given: Any) -> Any:
        return given

    def arguments(self, attrs: Any) -> tuple[str, ...]:
        every = [*[f"{name}_grad" for name in attrs.outputs], *attrs.arguments, *attrs.outputs]
        return tuple([every[i] for i in attrs.needed] + [attrs.arguments[i] for i in attrs.unread])

    def auxiliary(self, attrs: Any) -> tuple[str, ...]:
        return attrs.auxiliary

    def outputs(self, attrs: Any) -> tuple[str, ...]:
        return tuple([f"{name}_grad" for name in attrs.arguments])

    def visible(self, attrs: Any) -> int:
        return len(attrs.arguments)

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        return ins, self._like_arguments(ins, attrs)

    def infer_dtypes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        return ins, self._like_arguments(ins, attrs)

    def _like_arguments(self, ins: Any, attrs: Any) -> list:
        """Of each argument what is known of the input that it is: gradients look like the arguments."""
        first = len(attrs.outputs)
        found = dict(zip([*attrs.needed, *[first + i for i in attrs.unread]], ins))
        return [found[first + i] for i in range(len(attrs.arguments))]

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        if self.traced:
            return self.derive(g, ins, attrs, needs)
        raise NotDifferentiableError(
            f"the backward of custom operator {self.forward.op_type!r} is Python code that cannot be differentiated "
            f"again; give {self.forward.prop_class.__name__} a method gradient(self, g, ins, outs), written in "
            "operators, to make it differentiable to any order, or let it be followed with traced = True")

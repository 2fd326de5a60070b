"""A use of an operator that a Prop describes: the answers of the Prop for some attributes, and its kernels."""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..core.cache import Recent
from ..core.keys import Same
from ..core.op import Op
from ..core.parameters import signature_of
from ..core.rules import Dtypes, Shapes, as_list, counted, warn_of_none
from ..core.spec import Shape, TypeFlag, is_known
from ..core.value import Value
from ..errors import (
    ArgumentError,
    NotDifferentiableError,
    is_it,
    list_names,
    nearest,
    note,
)
from .answers import agree_dtypes, agree_shapes, check_dtype, check_groups, check_shape, check_stypes
from .custom_op import CustomOp, CustomOpProp
from .first_run import is_default
from .gradient import READS, OutGrads, OutsideValues, Use, by_rule, check_gradients, derive, read_only
from .purity import is_plain, lasting_answers

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..ndarray.ndarray import NDArray
    from ..typing import Array
    from .reads import BodyReads

__all__ = ["PropUse", "BackwardUse", "CallCache", "operator_specs", "LISTS", "MOST_USES"]

T = TypeVar("T")

_NOTHING = object()
#: Words for text in errors of Python and NumPy.
_OF_TEXT = re.compile(r"\bstr\b|\btext\b|<U|multiply sequence")
#: Python's errors for an index beyond the end of a list.
_PAST_THE_END = {"list index out of range", "list assignment index out of range"}
#: The methods of a Prop that give names.
LISTS = ("list_arguments", "list_outputs", "list_auxiliary_states")
#: The number of sets of keywords, and of specs for each, for which answers of Props are cached.
MOST_USES = 128


class PropParts(Protocol):
    """The parts of a ``RegisteredProp`` that its uses read."""

    op_type: str
    prop_class: type[CustomOpProp]
    warned: set[str]

    @property
    def plain_types(self) -> bool:
        """Whether the Prop declares no dtypes."""

    @property
    def plain_shapes(self) -> bool:
        """Whether the Prop declares no shapes."""

    @property
    def declared_rule(self) -> Any:
        """The declared gradient rule."""

    def backward(self, use: PropUse) -> Op:
        """The operator that computes the gradients of a use."""

    def reads(self, with_rule: bool = True) -> OutsideValues:
        """Reads of the code that is traced."""


class PropUse(Use):
    """The attributes of one use of an operator, with the Prop made from them and its answers.

    Attributes
    ----------
    registered : RegisteredProp
        The schema.
    prop : CustomOpProp
        The Prop with these attributes.
    arguments, outputs, auxiliary : tuple of str
        The names that the Prop lists.
    inner : PropUse
        For a backward, the attributes of the forward.
    needs : tuple of bool, or None
        For a backward, whether the gradient of each argument is requested; None for all.
    cache : CallCache or None
        For an eager call, the cache that it shares with others.
    answers_alike : bool
        Whether the Prop is shared with other calls, since it would answer all of them alike.
    """

    registered: PropParts
    prop: CustomOpProp
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    auxiliary: tuple[str, ...]
    inner: PropUse
    needs: tuple[bool, ...] | None = None
    cache: CallCache | None = None
    answers_alike = False
    _reads: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    # --------------------------------------------------------------------------------- answers of the Prop

    @property
    def needed(self) -> tuple[int, ...]:
        """The arrays that backward reads: indices among the output gradients, inputs and outputs."""
        return self.reads()[0]

    @property
    def unread(self) -> tuple[int, ...]:
        """Indices of the arguments that backward does not read. Their shapes are needed for the gradients."""
        return self.reads()[1]

    def reads(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The pair of ``needed`` and ``unread``; the Prop is asked once for each use."""
        if self._reads is not None:
            return self._reads
        n_out, n_in, cache, plain = len(self.outputs), len(self.arguments), self.cache, None
        if self.answers_alike or is_default(self.prop.declare_backward_dependency):  # answer by need_top_grad
            plain = bool(getattr(self.prop, "need_top_grad_", False))
            if cache is not None and plain in cache.reads:
                self._reads = cache.reads[plain]
                return self._reads
        last = 2 * n_out + n_in
        declared = self.ask("declare_backward_dependency", [*range(n_out)], [*range(n_out, n_out + n_in)],
                            [*range(n_out + n_in, last)])
        if not isinstance(declared, (list, tuple, set)) or any(i not in range(last) for i in declared):
            raise ArgumentError(f"{self.title('declare_backward_dependency')} returned {declared!r}, expected a list "
                                f"of numbers from 0 to {last - 1}")
        needed = tuple(sorted(set(declared)))
        self._reads = needed, tuple([i for i in range(n_in) if n_out + i not in needed])
        if cache is not None and plain is not None:
            cache.reads[plain] = self._reads
        return self._reads

    def named_rule(self, rule: str) -> str:
        """A method that its author may write."""
        return f"the method {type(self.prop).__name__}.{rule}"

    def title(self, method: str) -> str:
        """The name of a method of the Prop in errors."""
        return f"operator {self.registered.op_type!r}: {type(self.prop).__name__}.{method}"

    def ask(self, method: str, *args: object) -> Any:
        """Call a method of the Prop. Its exceptions get a note."""
        try:
            return getattr(self.prop, method)(*args)
        except Exception as error:
            self.blame(error, method, *args)
            raise

    def blame(self, error: Exception, method: str, *args: object) -> None:
        """Add to an exception the method of the Prop that raised it."""
        note(error, self.title(method) + (f", given {args[0]}" if args else ""))
        if isinstance(error, TypeError):
            self._compare(error, method, *args)
        self.explain(error)

    def _compare(self, error: TypeError, method: str, *args: object) -> None:
        """Add to an exception the expected parameters of a method, if it cannot be called with these."""
        kind = type(self.prop)
        try:
            signature_of(getattr(self.prop, method)).bind(*args)
        except (TypeError, ValueError):
            base = next(cls for cls in reversed(kind.__mro__) if hasattr(cls, method))
            expected = ", ".join(signature_of(getattr(base, method)).parameters)
            with contextlib.suppress(TypeError, ValueError):  # no signature
                note(error, f"{kind.__name__}.{method} takes {signature_of(getattr(kind, method))}, expected "
                            f"({expected})")

    def explain(self, error: BaseException) -> None:
        """Add to an exception its possible causes: keywords that are text, the lengths of lists, a misspelt
        attribute."""
        message = str(error)
        texts = [f"{name}={value!r}" for name, value in self.items() if type(value) is str and (
            (_looks_otherwise(value) and _OF_TEXT.search(message)) if isinstance(error, TypeError) else
            isinstance(error, ValueError) and repr(value) in message)]
        if texts:
            note(error, f"keywords of a Prop without an annotation are passed as text, as in MXNet: "
                        f"{', '.join(texts)}; write one, as in __init__(self, k: int), or convert them")
        if message in _PAST_THE_END and hasattr(self, "auxiliary"):
            lists = zip(("in_data", "out_data", "aux"), (self.arguments, self.outputs, self.auxiliary), LISTS)
            note(error, "; ".join([_count_text(*entry) for entry in lists]))
        if isinstance(error, AttributeError) and message.endswith(f"has no attribute {error.name!r}"):
            near = nearest(str(error.name), dir(error.obj))
            if near:
                note(error, f"Did you mean {' or '.join(map(repr, near))}?")

    # ------------------------------------------------------------------------------ shapes and dtypes

    @property
    def _name_lists(self) -> tuple[tuple[str, ...], ...]:
        return self.arguments, self.outputs, self.auxiliary

    def _answer(self, method: str, question: list, complete: bool) -> Any:
        """The Prop's answer about shapes or dtypes. An exception while some are unknown counts as no answer."""
        try:
            return self.ask(method, question)
        except Exception:
            if complete:
                raise
            return _NOTHING

    def infer_shapes(self, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
        """Infer shapes of inputs and outputs by the Prop, as far as it knows them."""
        arguments = ins[:len(self.arguments)]
        # the default infer_shape: inputs have the shape of the output
        if self.registered.plain_shapes and arguments and arguments[0] is None:
            arguments[0] = next((shape for shape in outs if shape is not None), None)
        complete = all(map(is_known, arguments))
        answer = self._answer("infer_shape", [[] if shape is None else list(shape) for shape in arguments], complete)
        return (ins, outs) if answer is _NOTHING else self.shapes_by(answer, ins, outs, complete)

    def shapes_by(self, answer: object, ins: Shapes, outs: Shapes, complete: bool = True) -> tuple[Shapes, Shapes]:
        """Shapes of inputs and outputs from an answer of ``infer_shape``. ``complete``: whether all shapes of arguments
        were known."""
        are_known = [complete, complete and not self.op.rules.data_dependent, complete]
        title = self.title("infer_shape")
        groups = zip(check_groups(title, "infer_shape", answer, self._name_lists), are_known)
        arguments, results, states = [[check_shape(title, shape, is_known) for shape in group]
                                      for group, is_known in groups]
        return (agree_shapes(self.arguments + self.auxiliary, ins, arguments + states),
                agree_shapes(self.outputs, outs, results))

    def shapes_from_data(self, *arrays: NDArray) -> list[Shape]:
        """Shapes of the outputs, by ``infer_shape_from_data``."""
        title = self.title("infer_shape_from_data")
        answer = self.ask("infer_shape_from_data", [*arrays[:len(self.arguments)]])
        if not isinstance(answer, (list, tuple)) or len(answer) != len(self.outputs):
            raise ArgumentError(f"{title} returned {answer!r}, expected a list of {len(self.outputs)} shapes "
                                f"({', '.join(self.outputs)})")
        return [check_shape(title, shape, True) for shape in answer]  # type: ignore[misc]

    def infer_dtypes(self, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
        """Infer dtypes of inputs and outputs by the Prop, as far as it knows them."""
        arguments = ins[:len(self.arguments)]
        answer = None
        if not (self.registered.plain_types and arguments):
            answer = self._answer("infer_type", [None if dtype is None else dtype.type for dtype in arguments],
                                  all(dtype is not None for dtype in arguments))
            if answer is _NOTHING:
                return ins, outs
        return self.dtypes_by(answer, ins, outs)

    def dtypes_by(self, answer: object, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
        """Dtypes of inputs and outputs from an answer of ``infer_type``, if it was called."""
        inputs = ins[:len(self.arguments)]
        if self.registered.plain_types and inputs:  # the default infer_type, which also infers inputs from outputs
            first = inputs[0]
            if first is None:
                first = next((dtype for dtype in (*outs, *ins[len(inputs):]) if dtype is not None), None)
            arguments, results, states = [first, *inputs[1:]], [first] * len(outs), [first] * len(self.auxiliary)
        else:
            title = self.title("infer_type")
            groups = check_groups(title, "infer_type", answer, self._name_lists)
            arguments, results, states = [[check_dtype(title, dtype) for dtype in group] for group in groups]
        return (agree_dtypes(self.arguments + self.auxiliary, ins, arguments + states),
                agree_dtypes(self.outputs, outs, results))

    @property
    def says_stypes(self) -> bool:
        """Whether its Prop declares storage types."""
        return not is_default(self.prop.infer_storage_type)

    def stypes(self, method: str, *lists: list[str]) -> list[list[str]]:
        """The storage types that a method of the Prop returns, checked; it may omit those of the states."""
        answer, states = self.ask(method, *lists), ["default"] * len(self.auxiliary)
        expected: Sequence[Sequence[str]] = lists if len(lists) > 1 else (self.arguments, self.outputs, states)
        return check_stypes(self.title(method), answer, expected, states)

    # ------------------------------------------------------------------------------ running and gradients

    def create(self, ctx: Context, memo: dict[Any, Any], inputs: Sequence[Any]) -> CustomOp:
        """The operator object of an executor or of an eager call, made at its first step.

        ``inputs`` are arrays with the shapes and dtypes of arguments and auxiliary states.
        """
        key = Same(self.prop)
        if key not in memo:
            custom_op = self.make(ctx, *operator_specs(inputs))
            self.check(custom_op)
            memo[key] = custom_op
        return memo[key]

    def maker(self, ctx: Context, memo: dict[Any, Any], inputs: Sequence[Any]) -> Callable[[], CustomOp]:
        """A function that makes a new operator for such inputs and stores it instead of the former one."""
        key, (shapes, dtypes) = Same(self.prop), operator_specs(inputs)

        def make() -> CustomOp:
            custom_op = memo[key] = self.make(ctx, [[*shape] for shape in shapes], [*dtypes])
            return custom_op

        return make

    def make(self, ctx: Context, shapes: list[list[int]], dtypes: list[TypeFlag]) -> CustomOp:
        """Call ``create_operator``. Its exceptions get a note."""
        return self.ask("create_operator", ctx, shapes, dtypes)

    def check(self, custom_op: Any) -> None:
        """Check that the class defines ``create_operator``, and that it returned an operator."""
        if is_default(self.prop.create_operator):
            raise ArgumentError(f"operator {self.registered.op_type!r}: {type(self.prop).__name__} has no "
                                "create_operator(self, ctx, shapes, dtypes), which returns the CustomOp that computes"
                                + is_it(type(self.prop), "create_operator"))
        if isinstance(custom_op, type) or not hasattr(custom_op, "forward") or not hasattr(custom_op, "backward"):
            raise ArgumentError(f"{self.title('create_operator')} returned {custom_op!r}, expected a CustomOp"
                                + (f": {custom_op.__name__}()" if isinstance(custom_op, type) else
                                   ", as in return Op()" if custom_op is None else ""))

    def differentiate(self, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
                      is_train: bool) -> list[Value | None]:
        """Gradients of the inputs: by a declared rule, ``gradient`` of the Prop, or ``backward`` of its operator."""
        if self.has_rule:
            rule = self._gradient if self.registered.declared_rule is None else self.declared_gradient
            return by_rule(rule, self, g, ins, outs, needs, is_train)
        body = None if self.cache is None else self.cache.body
        if self.op.traits.traced and body is not None and body.comparable:
            return derive(self, g, ins, needs)  # the operator has no ``backward``
        count = len(self.arguments)
        states = self.memo["states"] if "states" in self.memo else list(ins[count:])
        every = [*(g if isinstance(g, tuple) else (g,)), *ins[:count], *outs]
        read = [every[i] for i in self.needed] + [ins[i] for i in self.unread] + states
        deciding, backward = ins[0] if ins else outs[0], self.backward(needs[:count])
        computed = deciding._apply(backward.op, read, backward)
        return [computed, *[None] * len(states)] if count == 1 else [*computed, *[None] * len(states)]

    def _gradient(self, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
                  is_train: bool) -> list[Value | None]:
        count = len(self.arguments)
        returned = self.ask("gradient", *read_only((g, list(ins[:count]), list(outs))))
        if returned is None and count == 1 and needs[0]:
            prop: Any = self.prop
            warn_of_none(prop.gradient, self.title("gradient"))
        gradients = as_list(returned)
        if len(gradients) != count:
            raise ArgumentError(f"{self.title('gradient')} returned {counted(returned)}, expected {count}, one for "
                                "each input")
        return check_gradients(self.arguments, gradients, ins, f"{self.title('gradient')}: the gradient")

    @property
    def has_rule(self) -> bool:
        """Whether there is a gradient rule: a declared one, or the Prop's method ``gradient``."""
        return self.registered.declared_rule is not None or hasattr(self.prop, "gradient")

    @property
    def gradients(self) -> dict[tuple[bool, ...], Any]:
        """Attributes of the derivative of the body, shared by all uses of the same Prop."""
        if self.cache is not None and self.answers_alike:
            return self.cache.gradients
        return self.__dict__.setdefault("own_gradients", {})

    def version(self, ctx: Context, arrays: Sequence[Array]) -> Hashable:
        """A key that stays equal until a value changes that the Prop or its operator has read. None if answers may vary
        between calls, or if the operator has a ``backward``, which must be called."""
        cache = self.cache
        if cache is None or not self.answers_alike or len(self.needed) < 2 * len(self.outputs) + len(self.arguments):
            return None
        if cache.body is None:
            custom_op = self.make(ctx, *operator_specs(arrays))
            self.check(custom_op)
            plain = is_default(custom_op.backward) and all(map(is_plain, vars(custom_op).values()))
            cache.body = READS.function([type(self.prop), type(custom_op)], plain)
        version = cache.body.version()
        return None if version is None else (cache, version)

    def outside(self) -> OutsideValues:
        """Reads of the traced classes of the Prop and of its operator, and of the gradient rule."""
        return self.registered.reads(not self.calls_rule)

    def backward(self, needs: Sequence[bool]) -> BackwardUse:
        """The attributes of the backward operator for requested gradients."""
        use = BackwardUse(self)
        use.__dict__.update(self.__dict__, needs=tuple(needs), cache=None, inner=self, own_gradients={},
                            op=self.registered.backward(self))
        return use


class BackwardUse(PropUse):
    """The attributes of one use of a backward operator.

    Its inputs are the arrays that the Prop declared, then the other arguments, of which only the shapes are read, then
    the auxiliary states.
    """

    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        every = [*[f"{name}_grad" for name in self.outputs], *self.arguments, *self.outputs]
        return tuple([every[i] for i in self.needed] + [self.arguments[i] for i in self.unread])

    def like_arguments(self, ins: list[T], outs: list[T]) -> tuple[list[T], list[T]]:
        """Shapes or dtypes of the gradients, which are those of the arguments among the inputs."""
        first = len(self.outputs)
        by_number = dict(zip([*self.needed, *[first + i for i in self.unread]], ins))
        return ins, [by_number[first + i] for i in range(len(self.arguments))]

    def differentiate(self, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
                      is_train: bool) -> list[Value | None]:
        """Gradients of the gradient, if the body is traced."""
        if self.op.traits.traced:
            return derive(self, g, ins, needs)
        raise NotDifferentiableError(
            f"the backward of custom operator {self.registered.op_type!r} is Python code that cannot be differentiated "
            f"again; give {self.registered.prop_class.__name__} a method gradient(self, g, ins, outs), written in "
            "operators, to make it differentiable to any order, or let it be traced with traced = True in a "
            "CustomOpProp")


class CallCache:
    """The cache that eager calls of an operator with the same keywords share, as long as their Props agree.

    Attributes
    ----------
    given : dict
        The typed keywords.
    names : list of tuple of str
        Arguments, outputs and auxiliary states, as the first Prop listed them.
    listed : list of list of str
        The same as lists, to compare with later Props.
    order : list of int
        For each input, the index of its array in the call.
    reads : dict of bool
        ``PropUse.reads()`` by ``need_top_grad``, for Props whose answer depends only on that.
    runs : Recent
        Prepared calls by specs of the inputs, see ``opreg.ndarray.custom_calls``.
    body : BodyReads or None
        The reads of a traced body, once they are determined.
    gradients : dict
        Attributes of the derivative of the body.
    """

    __slots__ = ("given", "names", "listed", "order", "reads", "runs", "body", "gradients", "_use", "_changed",
                 "_asked")

    def __init__(self, use: PropUse, order: list[int]):
        self.given, self.order = dict(use), order
        self._use: dict[str, Any] = {}
        self._changed: Callable[[], bool] | None = None
        self._asked = False
        self.names = [use.arguments, use.outputs, use.auxiliary]
        self.listed = [*map(list, self.names)]
        self.reads: dict[bool, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self.runs = Recent(MOST_USES)
        self.body: BodyReads | None = None
        self.gradients: dict[tuple[bool, ...], Any] = {}

    def share(self, use: PropUse) -> None:
        """Let later calls share the Prop of a use, if all Props would give the same answers. This is determined
        once."""
        if not self._asked:
            self._changed = lasting_answers(use.prop)
            if self._changed is not None:
                self._use = {**use.__dict__, "memo": None, "answers_alike": True}
            self._asked = True  # set last, since other threads read it first

    def shared(self) -> PropUse | None:
        """A new use with the shared Prop; None if Props are not shared."""
        shared = self._use
        if not shared:
            return None
        if self._changed():  # type: ignore[misc]  # it is set before the use is
            self._use = {}
            return None
        use = PropUse(self.given)
        use.__dict__.update(shared, memo={})
        return use


def _count_text(list_name: str, names: Sequence[str], method: str) -> str:
    """Words for an error: the number of entries of a list, and the method that determines it."""
    if not names:
        return f"{list_name} has no entry, by {method}"
    return (f"{list_name} has {len(names)} {'entry' if len(names) == 1 else 'entries'} ({list_names(names)}), by "
            f"{method}")


def _looks_otherwise(value: str) -> bool:
    """Whether a text is a Python literal other than a string."""
    try:
        return not isinstance(ast.literal_eval(value), str)
    except (ValueError, SyntaxError):
        return False


_flag = functools.cache(TypeFlag)


def operator_specs(inputs: Sequence[Any]) -> tuple[list[list[int]], list[TypeFlag]]:
    """Shapes and dtypes of inputs in the form of ``create_operator``'s arguments."""
    return [[*data.shape] for data in inputs], [_flag(data.dtype) for data in inputs]

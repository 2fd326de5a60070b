"""Rules of an operator, and the decorators that declare them.

The positional parameters of a rule are the inputs, and its keyword-only parameters are the attributes that it reads.
``Rule`` reads them from the signature, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ..typing import Array, ArrayModule
from .dispatch import apply
from .invalidation import invalidate
from .launch import Call, ChannelsLast, Kernel, Rank
from .rules import Attrs, AttrsRule, Dtypes, Rule, Shapes, TypeRule
from .spec import Shape, Spec

if TYPE_CHECKING:
    from .op import Op

__all__ = ["Declarations", "Rules", "ZERO"]

#: The gradient rule of an operator whose derivative is zero, such as comparisons, rounding and indices.
ZERO: Any = "zero"

F = TypeVar("F", bound=Callable[..., Any])


class Check(Protocol):
    """Checks that rules can be called."""

    def __call__(self, op: Op, what: str, function: object, /) -> object:
        """Raise an error if a rule, declared by the decorator ``what``, cannot be called."""


class Rules:
    """The declared rules of an operator, named as their decorators; None for a rule that was not declared.

    Attributes
    ----------
    types : TypeRule or Rule
        The dtype rule.
    loss : Rule or bool
        Whether the gradient rule needs no output gradient.
    expression
        The expression of an element-wise operator, see ``opreg.builtin.elementwise``.
    open_expressions : function of attributes, or None
        The expressions that different floats among the attributes share, and these floats, see
        ``opreg.elementwise.settings``.
    sets : Rule or None
        The loop of an operator that is declared as one, see ``opreg.builtin.looped``.
    unrolled : function or None
        Computes a loop or branch by operators that autograd records.
    call : function of the operator, values and keywords
        Calls the operator.
    differentiate : function or None
        Applies the gradient rule, if calling it is not enough; the parameters are the operator and those of
        ``Op.differentiate``.
    specs : Rule or None
        The rule for shapes and dtypes, declared by ``together``.
    check : function of the operator, the decorator's name, and a rule; or None
        Checks the rules of a user's operator when they are declared.
    """

    specs: Rule | None = None
    infer: Rule | None = None
    shapes: Rule | None = None
    fill: Rule | None = None
    infer_from_data: Rule | None = None
    view: Rule | None = None
    grad: Rule | Any = None
    raw_grad: Callable[..., Any] | None = None
    vmap: Rule | None = None
    jvp: Rule | None = None
    onnx: Callable[..., Any] | None = None
    inline: Rule | None = None
    body: Rule | None = None
    moves: Rule | None = None
    chance: Rule | None = None
    flops: Rule | None = None
    layout: Rule | None = None
    identity: Rule | None = None
    recompute: Rule | None = None
    few_rows: Rule | None = None
    norm: Rule | None = None
    tail: Rule | None = None
    attends: Rule | None = None
    expression: Any = None
    open_expressions: Callable[[Attrs], Any] | None = None
    sets: Rule | None = None
    unrolled: Callable[..., Any] | None = None

    def __init__(self, types: TypeRule | Rule, loss: Rule | bool = False, call: Callable[..., Any] = apply,
                 differentiate: Callable[..., Sequence[Any]] | None = None, check: Check | None = None):
        self.types, self.loss, self.call, self.differentiate, self.check = types, loss, call, differentiate, check

    @property
    def shaped(self) -> bool:
        """Whether a shape rule was declared, by ``infer`` or ``shapes``."""
        return self.infer is not None or self.shapes is not None

    @property
    def data_dependent(self) -> bool:
        """Whether shapes of outputs depend on values in the inputs."""
        return self.infer_from_data is not None

    def work(self, ins: Sequence[Shape], outs: Sequence[Shape], attrs: Attrs) -> int | None:
        """The number of additions and multiplications for these shapes; None without a rule."""
        return None if self.flops is None else int(self.flops(attrs, ins, outs))

    def as_view(self, array: Array, attrs: Attrs, out_shapes: Shapes | None = None, xp: ArrayModule = np) -> Any:
        """The output as a view of the first input's array, or None.

        A rule may have parameters ``out_shape``, the inferred shape of the output or a list for several, and ``xp``,
        the array module.
        """
        if self.view is None:
            return None
        out_shape = out_shapes[0] if out_shapes is not None and len(out_shapes) == 1 else out_shapes
        return self.view({**attrs, "out_shape": out_shape, "xp": xp}, array)


class Declarations:
    """The decorators that declare rules and kernels of an operator."""

    rules: Rules
    kernels: list[Kernel]

    def _declare(self: Any, what: str, function: F, rule: object = None) -> F:
        """Store a function as a rule, after a check that it can be called, if there is one."""
        if self.rules.check is not None and not isinstance(function, Rule) and function is not ZERO:
            self.rules.check(self, what, function)
        setattr(self.rules, what, Rule.of(function) if rule is None else rule)
        invalidate(self)
        return function

    def infer(self, function: F) -> F:
        """Declare the shape rule: ``f(*shapes, **attrs)`` returns the shape of the output, or a list for several."""
        self._declare("infer", function)
        self.rules.shapes = None
        return function

    def shapes(self, function: F) -> F:
        """Declare the shape rule as a function ``f(ins, outs, **attrs) -> (ins, outs)``; unknown shapes are None."""
        return self._declare("shapes", function)

    def together(self, function: F) -> F:
        """Declare one rule for shapes and dtypes, where either depends on the other: a function
        ``f(ins, outs, **attrs) -> (ins, outs)`` of specs, as far as they are known."""
        rule = Rule.of(function)

        def shapes(attrs: Attrs, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
            in_specs, out_specs = rule(attrs, list(map(Spec, ins)), list(map(Spec, outs)))
            return [spec.shape for spec in in_specs], [spec.shape for spec in out_specs]

        def dtypes(attrs: Attrs, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
            in_specs, out_specs = rule(attrs, [Spec(None, each) for each in ins], [Spec(None, each) for each in outs])
            return [spec.dtype for spec in in_specs], [spec.dtype for spec in out_specs]

        self._declare("shapes", AttrsRule(shapes))
        self._declare("types", AttrsRule(dtypes))
        return self._declare("specs", function, rule)

    def fill(self, function: F) -> F:
        """Declare the rule for unknown input shapes: ``f(ins, outs, **attrs)`` returns all input shapes."""
        return self._declare("fill", function)

    def infer_from_data(self, function: F) -> F:
        """Declare that shapes of outputs depend on values: ``f(xp, *arrays, **attrs)`` returns the shape of the output,
        or a list for several. Its dimensions may be arrays of one element. Such dimensions are ``ANY`` in the shape
        rule. A graph is planned up to such an operator, and the rest for each set of shapes that occurs. The rule of a
        user's operator gets NDArrays, and no ``xp``."""
        return self._declare("infer_from_data", function)

    def types(self, function: F) -> F:
        """Declare the dtype rule as a function ``f(ins, outs, **attrs) -> (ins, outs)``."""
        return self._declare("types", function)

    def view(self, function: F) -> F:
        """Declare that the output is a view of the input: ``f(array, **attrs)`` returns the view, or None if there is
        none."""
        return self._declare("view", function)

    def kernel(self: Any, name: str = "reference", *, bound: bool = False,
               accepts: Callable[[Call], str | None] | None = None,
               serves: Callable[[ArrayModule], bool] | None = None, adds: bool = False, rank: Rank = Rank.USER,
               channels_last: ChannelsLast | None = None) -> Callable[[F], F]:
        """Attach a kernel; see ``Kernel`` for its forms and for the choice among kernels. The first one is the
        reference."""

        def attach(function: F) -> F:
            if self.rules.check is not None:
                self.rules.check(self, "kernel", function)
            self.kernels.append(Kernel(function, name, bound, accepts, serves, adds, rank, channels_last))
            self.kernels[1:] = sorted(self.kernels[1:], key=lambda kernel: kernel.order)
            invalidate(self)
            return function

        return attach

    def in_parts(self: Any, function: F, takes_out: bool = True) -> F:
        """Declare the reference kernel in two parts, for operators whose decisions cost more than the computation of
        small arrays.

        ``f(xp, *arrays, **attrs)`` decides by the shapes and dtypes of the first arrays, and returns a function
        ``run(*arrays, out=None)`` for all arrays like these, which returns the output; it writes to ``out`` if given,
        or has no such parameter, with ``takes_out=False``.
        """
        rule = Rule(function)

        def in_parts_xp(xp: ArrayModule, *arrays: Array, out: Any = None, **attrs: Any) -> Any:
            run = rule(attrs, xp, *arrays)
            return run(*arrays) if out is None else run(*arrays, out=out)

        self.kernels.append(Kernel(in_parts_xp, parts=rule))
        self.kernels[-1].takes_out = takes_out
        invalidate(self)
        return function

    def grad(self, function: F) -> F:
        """Declare the gradient: ``f(g, ins, outs, **attrs)`` returns a value or None for each input.

        It is ordinary code that calls operators on values. It may have parameters ``needs``, whether each input needs a
        gradient, and ``is_train``. An ``AttrsRule`` gets all: ``f(attrs, g, ins, outs, needs, is_train)``.
        """
        self.rules.open_expressions = None  # it has the former gradient
        return self._declare("grad", function, ZERO if function is ZERO else None)

    def raw_grad(self, function: F) -> F:
        """Declare a second form of the gradient, for raw arrays on the tape: ``f(attrs, out_grads, needs, ctx)``, for a
        gradient that reads no inputs and no outputs."""
        return self._declare("raw_grad", function, function)

    def vmap(self, function: F) -> F:
        """Declare the vmap rule, which computes many samples at once: ``f(ins, batched, **attrs)`` returns the outputs.

        ``batched`` tells for each input whether its first axis is that of the samples; at least one is, and the others
        are shared by all samples. The first axis of each output is that of the samples. Like a gradient, the rule is
        ordinary code that calls operators on values. Without a rule, ``vmap`` loops over the samples.
        """
        return self._declare("vmap", function)

    def jvp(self, function: F) -> F:
        """Declare the directional derivative: ``f(t, ins, outs, **attrs)`` returns a value or None for each output.

        ``t`` are the tangents of the inputs, None for a constant one. Like a gradient, the rule is ordinary code that
        calls operators on values; it is linear in ``t``. Without a rule, it is derived from the gradient.
        """
        return self._declare("jvp", function)

    def onnx(self, function: F) -> F:
        """Declare the translation to ONNX: ``f(g, use, *inputs)`` calls ``g`` with names of ONNX's operators, values
        and attributes, and returns the output, or a list for several."""
        return self._declare("onnx", function, function)

    def inline(self, function: F) -> F:
        """Declare the nodes that replace a node of a graph after the gradient pass: ``f(inputs, specs, **attrs)`` gets
        the entries of the inputs, adds the specs of new nodes, and returns the nodes and the entries of the outputs."""
        return self._declare("inline", function)

    def body(self, function: F) -> F:
        """Declare the body of a node for tracing: ``f(inputs, **attrs)`` returns the entries of its outputs in the
        body, and the inputs that variables of the body stand for."""
        return self._declare("body", function)

    def moves(self, function: F) -> F:
        """Declare the inputs that a run changes in place, such as states of operators in a body: ``f(**attrs)`` returns
        their indices."""
        return self._declare("moves", function)

    def chance(self, function: F) -> F:
        """Declare whether a run draws random numbers in a body: ``f(**attrs)`` returns a boolean."""
        return self._declare("chance", function)

    def flops(self, function: F) -> F:
        """Declare the arithmetic of a run: ``f(ins, outs, **attrs)`` of shapes returns the number of additions and
        multiplications. It is meant for matrix products and convolutions, whose time is mostly arithmetic."""
        return self._declare("flops", function)

    def layout(self, function: F) -> F:
        """Declare the conversion to channels-last layout: ``f(ins, **attrs)`` of the inputs' shapes, with channels
        second.

        It returns the attributes that change, and the indices of the inputs and outputs whose channels become the last
        axis; or, as text, the reason why this is impossible. If a library convolves with channels last, operators
        after the convolution with this rule are converted, too; element-wise operators need no rule.
        """
        return self._declare("layout", function)

    def identity(self, function: F) -> F:
        """Declare when the operator is an identity, so that its first output equals its first input: ``f(ins, outs,
        **attrs)`` of specs returns a boolean. It may have a parameter ``is_train``. In a graph, readers of such a node
        read its input instead.
        """
        return self._declare("identity", function)

    def recompute(self, function: F) -> F:
        """Declare the computation of the first output from the inputs and the other outputs, for operators that cannot
        be run a second time, or for which this is cheaper.

        Like a gradient, ``f(ins, outs, **attrs)`` is ordinary code that calls operators on values. It may have a
        parameter ``specs``, those of the inputs, and may return None to decline.
        """
        return self._declare("recompute", function)

    def few_rows(self, function: F) -> F:
        """Declare the inputs whose gradients have few rows that are not zero: ``f(stypes, **attrs)`` of the storage
        types of the inputs returns their indices. Variables at these inputs get ``row_sparse`` gradients."""
        return self._declare("few_rows", function)

    def norm(self, function: F) -> F:
        """Declare that in inference the operator normalises by given statistics: ``f(**attrs)`` returns a ``Norm``, or
        None if it does not. It may then be fused into an operator with a tail."""
        return self._declare("norm", function)

    def tail(self, function: F) -> F:
        """Declare the operator that computes this one and a tail of operators after it, in inference on the host:
        ``f(**attrs)`` returns an ``EpilogueOperator``."""
        return self._declare("tail", function)

    def attends(self, function: F) -> F:
        """Declare the operator's role in attention that is composed of several operators: ``f(*shapes, **attrs)``
        returns a part, see ``opreg.builtin.attention_parts``, or None. Graphs replace such operators by one, for long
        sequences."""
        return self._declare("attends", function)

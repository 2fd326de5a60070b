"""Rules of an operator, and the decorators that declare them.

A rule names only what it reads: the positional parameters are the inputs, the keyword-only ones those attributes it
wants. ``Rule`` finds that out once, from the signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ..typing import Array, ArrayModule
from .dispatch import apply
from .edition import tell
from .launch import Call, ChannelsLast, Kernel, Rank
from .rules import Attrs, Rule, Shapes, TypeRule
from .spec import Shape

if TYPE_CHECKING:
    from .op import Op

__all__ = ["Declarations", "Rules", "ZERO"]

#: The gradient rule of an operator whose outputs do not move with its inputs (comparisons, rounding, indices).
ZERO: Any = "zero"

F = TypeVar("F", bound=Callable[..., Any])


class Check(Protocol):
    """Refuses rules that cannot be called."""

    def __call__(self, op: Op, what: str, function: object, /) -> object:
        """Raise where a rule, declared by the decorator ``what``, cannot be called."""


class Rules:
    """The declared rules of an operator, each under the name of its decorator; None for a rule that was not declared.

    Attributes
    ----------
    types : TypeRule or Rule
        The dtype rule.
    loss : Rule or bool
        Whether the gradient rule needs no output gradient.
    expression
        The expression of an element-wise operator, see ``opreg.builtin.elementwise``.
    sets : Rule or None
        The loop of an operator that is computed by one, see ``opreg.builtin.looped``.
    unrolled : function or None
        A function that computes a loop or branch by operators that autograd records.
    call : function of the operator, values and keywords
        How the operator is called.
    differentiate : function or None
        How its gradient rule is applied, if it takes more than to call it: as ``Op.differentiate``, after the
        operator.
    check : function of the operator, what is declared, and a rule; or None
        Refuses rules that cannot be called: those of a user's operator, when they are declared.
    """

    __slots__ = ("types", "infer", "shapes", "fill", "infer_from_data", "view", "prepare", "grad", "raw_grad", "vmap",
                 "jvp", "onnx", "inline", "body", "moves", "chance", "flops", "layout", "identity", "again", "few_rows",
                 "norm", "tail", "attends", "loss", "expression", "sets", "unrolled", "call", "differentiate", "check")

    def __init__(self, types: TypeRule | Rule, loss: Rule | bool = False, call: Callable[..., Any] = apply,
                 differentiate: Callable[..., Sequence[Any]] | None = None, check: Check | None = None):
        self.types, self.loss = types, loss
        self.call, self.differentiate, self.check = call, differentiate, check
        self.infer: Rule | None = None
        self.shapes: Rule | None = None
        self.fill: Rule | None = None
        self.infer_from_data: Rule | None = None
        self.view: Rule | None = None
        self.prepare: Rule | None = None
        self.grad: Rule | Any = None
        self.raw_grad: Callable[..., Any] | None = None
        self.vmap: Rule | None = None
        self.jvp: Rule | None = None
        self.onnx: Callable[..., Any] | None = None
        self.inline: Rule | None = None
        self.body: Rule | None = None
        self.moves: Rule | None = None
        self.chance: Rule | None = None
        self.flops: Rule | None = None
        self.layout: Rule | None = None
        self.identity: Rule | None = None
        self.again: Rule | None = None
        self.few_rows: Rule | None = None
        self.norm: Rule | None = None
        self.tail: Rule | None = None
        self.attends: Rule | None = None
        self.expression: Any = None
        self.sets: Rule | None = None
        self.unrolled: Callable[..., Any] | None = None

    @property
    def shaped(self) -> bool:
        """Whether a shape rule was declared, in either form."""
        return self.infer is not None or self.shapes is not None

    @property
    def data_dependent(self) -> bool:
        """Whether shapes of outputs depend on values in the inputs."""
        return self.infer_from_data is not None

    def work(self, ins: Sequence[Shape], outs: Sequence[Shape], attrs: Attrs) -> int | None:
        """Additions and multiplications of a run on these shapes; None where no rule says so."""
        return None if self.flops is None else int(self.flops(attrs, ins, outs))

    def as_view(self, array: Array, attrs: Attrs, out_shapes: Shapes | None = None, xp: ArrayModule = np) -> Any:
        """The output as a view of the first input's array, or None.

        A rule may name ``out_shape``, the inferred shape of the output (a list of them for several), and ``xp``,
        the module of the array.
        """
        if self.view is None:
            return None
        out_shape = out_shapes[0] if out_shapes is not None and len(out_shapes) == 1 else out_shapes
        return self.view({**attrs, "out_shape": out_shape, "xp": xp}, array)


class Declarations:
    """The decorators by which rules and kernels of an operator are declared."""

    rules: Rules
    kernels: list[Kernel]

    def _declare(self: Any, what: str, function: F, rule: object = None) -> F:
        """Keep a function as the rule of a name, refused where somebody looks and it cannot be called."""
        if self.rules.check is not None and not isinstance(function, Rule) and function is not ZERO:
            self.rules.check(self, what, function)
        setattr(self.rules, what, Rule.of(function) if rule is None else rule)
        tell(self)
        return function

    def infer(self, function: F) -> F:
        """Declare the shape rule: ``f(*shapes, **attrs)`` returns a shape, or a list of them, one an output."""
        self._declare("infer", function)
        self.rules.shapes = None
        return function

    def shapes(self, function: F) -> F:
        """Declare the shape rule as a function ``f(ins, outs, **attrs) -> (ins, outs)``, of which some may be None."""
        return self._declare("shapes", function)

    def fill(self, function: F) -> F:
        """Declare the rule for unknown input shapes: ``f(ins, outs, **attrs)`` returns all input shapes."""
        return self._declare("fill", function)

    def infer_from_data(self, function: F) -> F:
        """Declare that shapes of outputs depend on values: ``f(xp, *arrays, **attrs)`` returns a shape, or a list of
        them, one an output, whose dimensions may be arrays of one element. Such dimensions are ``ANY`` in the shape
        rule. A graph is planned up to such an operator, and from there on for the shapes that come. The rule of a
        user's operator is given NDArrays, and no ``xp``."""
        return self._declare("infer_from_data", function)

    def types(self, function: F) -> F:
        """Declare the dtype rule as a function ``f(ins, outs, **attrs) -> (ins, outs)``."""
        return self._declare("types", function)

    def view(self, function: F) -> F:
        """Declare that the output is a view: ``f(array, **attrs)`` returns it, or None where it cannot be."""
        return self._declare("view", function)

    def kernel(self, name: str = "reference", *, bound: bool = False,
               accepts: Callable[[Call], str | None] | None = None,
               serves: Callable[[ArrayModule], bool] | None = None, adds: bool = False, rank: Rank = Rank.USER,
               channels_last: ChannelsLast | None = None) -> Callable[[F], F]:
        """Attach a kernel; see ``Kernel`` for its forms, and for which one runs. The first is the reference."""

        def attach(function: F) -> F:
            self.kernels.append(Kernel(function, name, bound, accepts, serves, adds, rank, channels_last))
            self.kernels[1:] = sorted(self.kernels[1:], key=lambda kernel: kernel.order)
            tell(self)  # type: ignore[arg-type]
            return function

        return attach

    def prepare(self, function: F) -> F:
        """Declare the reference kernel in two parts, for eager calls on the host.

        ``f(*ins, **attrs)`` is shown the first arrays of their shapes and dtypes. It returns the function of arrays
        that gives the only output for all like them, what follows from shapes prepared before; or None.
        """
        return self._declare("prepare", function)

    def grad(self, function: F) -> F:
        """Declare the gradient: ``f(g, ins, outs, **attrs)`` returns a value or None for each input.

        It is ordinary code over values and calls operators. It may also name ``needs``, the inputs whose gradient
        somebody wants, and ``is_train``. An ``AttrsRule`` is given all: ``f(attrs, g, ins, outs, needs, is_train)``.
        """
        return self._declare("grad", function, ZERO if function is ZERO else None)

    def raw_grad(self, function: F) -> F:
        """Declare the gradient once more, for raw arrays on the tape: ``f(attrs, out_grads, needs, ctx)``. It reads no
        inputs and no outputs."""
        return self._declare("raw_grad", function, function)

    def vmap(self, function: F) -> F:
        """Declare how it computes many samples at once: ``f(ins, batched, **attrs)`` returns the outputs of all.

        ``batched`` says which inputs have a first axis of samples; there is at least one, and the others are the same
        for all samples. Each output has a first axis of samples. It is ordinary code over values, as a gradient is.
        Without a rule ``vmap`` goes from sample to sample.
        """
        return self._declare("vmap", function)

    def jvp(self, function: F) -> F:
        """Declare the derivative along directions: ``f(t, ins, outs, **attrs)`` returns a value or None for each
        output.

        ``t`` are the directions of the inputs, None for those that stay. It is ordinary code over values, as a
        gradient is, and linear in ``t``. Without a rule the derivative is made from the gradient.
        """
        return self._declare("jvp", function)

    def onnx(self, function: F) -> F:
        """Declare how it is said in ONNX: ``f(g, use, *inputs)`` calls ``g`` with names of ONNX's operators, values and
        attributes, and returns the output, or a list of them."""
        return self._declare("onnx", function, function)

    def inline(self, function: F) -> F:
        """Declare the nodes that replace a node of a graph once gradients are made: ``f(inputs, specs, **attrs)`` gets
        the entries of the inputs, adds the specs of new nodes, and returns the nodes and the entries of the outputs."""
        return self._declare("inline", function)

    def body(self, function: F) -> F:
        """Declare what the outputs of a node stand for while a graph grows: ``f(inputs, **attrs)`` returns their
        entries, and what variables of these stand for."""
        return self._declare("body", function)

    def moves(self, function: F) -> F:
        """Declare which inputs a run changes in place, as the states of operators in a body: ``f(**attrs)`` returns
        the positions of these inputs."""
        return self._declare("moves", function)

    def chance(self, function: F) -> F:
        """Declare whether a run draws random numbers in a body: ``f(**attrs)`` returns a boolean."""
        return self._declare("chance", function)

    def flops(self, function: F) -> F:
        """Declare how much arithmetic a run is: ``f(ins, outs, **attrs)`` of shapes returns the number of additions and
        multiplications. For operators whose time is arithmetic: products of matrices, convolutions."""
        return self._declare("flops", function)

    def layout(self, function: F) -> F:
        """Declare how a use is told that channels are the last axis of its inputs, not the second: ``f(ins, **attrs)``
        of the inputs' shapes, with channels second.

        It returns the attributes that change, the numbers of the inputs and those of the outputs whose channels come
        last then; or, as text, why it cannot be told. If a library convolves with channels last, the operators
        behind that have such a rule do so, too; element-wise ones, whose expression is known, do without.
        """
        return self._declare("layout", function)

    def identity(self, function: F) -> F:
        """Declare when it is an identity, its first output the first input, element for element: ``f(ins, outs,
        **attrs)`` of specs returns a boolean. It may also name ``is_train``. Readers of such a node in a graph read
        its input instead.
        """
        return self._declare("identity", function)

    def again(self, function: F) -> F:
        """Declare how the first output follows from the inputs and the other outputs, where it cannot be had by running
        the operator a second time or is cheaper that way.

        ``f(ins, outs, **attrs)`` is ordinary code over values, as a gradient is. It may also name ``specs``, those of
        the inputs, and return None where it does not know.
        """
        return self._declare("again", function)

    def few_rows(self, function: F) -> F:
        """Declare the inputs whose gradients have few rows that are not zero: ``f(stypes, **attrs)`` of the storage
        types of the inputs returns their positions. Variables there are given ``row_sparse`` gradients."""
        return self._declare("few_rows", function)

    def norm(self, function: F) -> F:
        """Declare that in inference it is a norm by statistics that it is given: ``f(**attrs)`` returns a ``Norm``, or
        None for a use that is none. An operator with a tail may do it then."""
        return self._declare("norm", function)

    def tail(self, function: F) -> F:
        """Declare the operator that computes this one and its tail in inference on the host: ``f(**attrs)`` returns a
        ``Tail``."""
        return self._declare("tail", function)

    def attends(self, function: F) -> F:
        """Declare which part of attention it is, where a graph computes that by several operators: ``f(*shapes,
        **attrs)`` returns a part, see ``opreg.builtin.attending``, or None. Graphs compute long attention by one."""
        return self._declare("attends", function)

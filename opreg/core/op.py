"""Op: the one record an operator is, built-in or a user's.

It answers what it takes (arguments, auxiliary states, attributes), what comes out (outputs, shapes, dtypes),
how it is computed (kernels) and how it is differentiated (a function of values that calls operators).

A rule names only what it reads: the positional parameters are the inputs, the keyword-only ones those attributes
it wants. ``Rule`` finds that out once, from the signature.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import numpy as np

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
    passing,
)
from ..typing import Array, ArrayModule
from .as_prop import Prop
from .attrs import Attributes, Schema
from .cache import Recent
from .dispatch import apply
from .launch import Call, Kernel, Rank
from .locks import lock
from .mode import Recording
from .rules import SAME_TYPE, Attrs, AttrsRule, Dtypes, Rule, Shapes, TypeRule
from .spec import ANY, Shape, Spec, bytes_of, known, show, unify

if TYPE_CHECKING:
    from ..ndarray.bound import BoundOperator
    from ..ndarray.context import Context
    from .graph import Entry, Node
    from .value import Value

__all__ = ["Op", "agreed", "following", "keep", "watch", "EDITION", "ZERO"]

#: The gradient rule of an operator whose outputs do not move with its inputs (comparisons, rounding, indices).
ZERO: Any = "zero"


class Keeper(Protocol):
    """Who keeps what follows from operators."""

    def on_register(self, op: Op) -> None:
        """Hear that something is registered about an operator that was used already."""


_WATCHERS: weakref.WeakSet[Keeper] = weakref.WeakSet()
_FOLLOWING: list[Recent] = []
_WATCHING = lock()
#: How often something was registered about operators that had been used.
EDITION = [0]


def watch(keeper: Keeper) -> None:
    """Call ``keeper.on_register(op)`` when something is registered about an operator that was used already.

    For objects that keep what follows from operators: executors, compiled functions.
    """
    with _WATCHING:
        _WATCHERS.add(keeper)


def following(limit: int, name: str) -> Recent:
    """A cache of a module for what follows from operators: registering something about one empties it."""
    cache = Recent(limit, name)
    _FOLLOWING.append(cache)
    return cache


def keep(cache: Recent, key: object, value: object, edition: int) -> None:
    """Keep what follows from operators as they were at an edition, unless another thread has registered something
    since."""
    cache.keep(key, value)
    if edition != EDITION[0]:
        cache.clear()


F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V", bound="Value")
Names = Sequence[str] | Callable[..., Sequence[str]]


def _names(names: Names) -> Callable[[Attrs], tuple[str, ...]]:
    if isinstance(names, AttrsRule):
        return names.function
    if callable(names):
        rule = Rule(names)
        return lambda attrs: tuple(rule(attrs))
    fixed = tuple(names)
    return lambda attrs: fixed


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


class Op:
    """An operator: a name, what it takes, what comes out, how it is computed and differentiated.

    Parameters
    ----------
    name : str
        The name it is registered, saved and reported by.
    schema : Schema
        Its attributes; ``AS_GIVEN`` for one that only graphs and tapes apply. That of a user's operator holds what the
        user wrote, and attributes that it completes are one use of that.
    arguments, outputs, auxiliary : sequence of str, or function of attributes
        Names, in order. Auxiliary states follow the arguments among a node's inputs.
    types : str or function
        A ``TypeRule`` signature, or ``f(ins, outs, **attrs) -> (ins, outs)``.
    variadic : str or None
        The attribute that counts the inputs of an operator that takes any number.
    visible : function of attributes, or None
        How many of the outputs a user sees; all by default.
    states : sequence of int
        For an operator with auxiliary states: the kernel returns, after its outputs and only when training, the
        new values of these auxiliary states, which are stored at the end of the forward pass.
    mutates : sequence of int
        Inputs the kernel writes in place (optimizer updates).
    random, mode : bool
        Whether kernels take ``rng`` and ``is_train``. A user's operator may ask for the mode in many ways, so it always
        has one.
    loss : bool or function of attributes
        Whether its gradient needs no gradient from above.
    inplace : sequence of int
        Inputs whose memory output 0 may take over.
    unread : sequence of int
        Inputs of which only the shape matters.
    partly : sequence of int
        Inputs of which as many bytes are read as outputs have: they are looked up in, or cut.
    per_instance : bool
        Whether each use has attributes of its own, without which not even the names of the inputs are known.
    has_side_effect : bool
        Whether it does something beside computing, and runs when nobody reads its outputs.
    grad_reads : bool
        Whether its gradient reads inputs or outputs; that of a linear operator does not.
    optional_out_grads : bool
        Whether its gradient is given None, not zeros, for outputs that no gradient reaches.
    supports_add : bool
        Whether all its kernels obey the request ``add``.
    op_type : str or None
        Of a user's operator, the name that it goes by and that files have for it.
    traced : bool
        Whether its body is followed instead of run, inside graphs.
    capturable : bool or None
        Whether users' code may be recorded on a device and replayed; None for an operator that runs none.
    call : function of the operator, values and keywords
        How it is called; ``apply`` by default.
    differentiate : function, or None
        How its gradient rule is applied, where that takes more than to call it: as ``differentiate``, after the
        operator.
    check_rule : function of the operator, what is declared, and a rule, or None
        Refuses rules that cannot be called: those of a user's operator, when they are declared.
    """

    #: Whether it was ever applied.
    used = False
    #: What was registered by its name after it.
    successor: Op | None = None
    #: What its inputs are called together, where there may be any number.
    many = "data"

    def __init__(self, name: str, schema: Schema, arguments: Names, *, outputs: Names = ("output",),
                 auxiliary: Names = (), types: str | Callable = SAME_TYPE.text, variadic: str | None = None,
                 visible: Callable[..., int] | None = None, states: Sequence[int] = (), mutates: Sequence[int] = (),
                 random: bool = False, mode: bool = False, loss: bool | Callable[..., bool] = False,
                 inplace: Sequence[int] = (), unread: Sequence[int] = (), partly: Sequence[int] = (),
                 input_names: Sequence[str] | None = None, per_instance: bool = False, has_side_effect: bool = False,
                 grad_reads: bool = True, optional_out_grads: bool = False, supports_add: bool = False,
                 op_type: str | None = None, traced: bool = False, capturable: bool | None = None,
                 call: Callable[..., Any] = apply, differentiate: Callable[..., Sequence[Any]] | None = None,
                 check_rule: Callable[[Op, str, object], object] | None = None, doc: str = ""):
        self.name, self.schema, self.variadic, self.doc = name, schema, variadic, doc
        self.aliases: tuple[str, ...] = ()
        self.where: Where | None = here()  # None for a built-in one, which has a family
        self.family = family()
        self._input_names = input_names
        self._arguments, self._outputs, self._auxiliary = _names(arguments), _names(outputs), _names(auxiliary)
        self.stateful = bool(auxiliary)  # whether it may have auxiliary states
        self._visible = Rule.of(visible) if visible else None
        self._loss = Rule.of(loss) if callable(loss) else bool(loss)
        self._types: TypeRule | Rule = TypeRule(types) if isinstance(types, str) else Rule.of(types)
        self._shapes: Rule | None = None
        self._all_shapes: Rule | None = None
        self._fill: Rule | None = None
        self._from_data: Rule | None = None
        self._view: Rule | None = None
        self._gradient: Rule | Any = None
        self._flops: Rule | None = None
        self._again: Rule | None = None
        self._raw_gradient: Callable | None = None
        self._vmap: Rule | None = None
        self._jvp: Rule | None = None
        self.onnx_rule: Callable[..., Any] | None = None  # what says a user's operator in ONNX
        self._body: Rule | None = None
        self._moved: Rule | None = None
        self._draws: Rule | None = None
        self._inline: Rule | None = None
        self.states, self.mutates = tuple(states), tuple(mutates)
        self.random, self.mode = random, mode
        self.inplace, self.unread, self.partly = frozenset(inplace), frozenset(unread), frozenset(partly)
        self.variable_tags: dict[str, dict[str, str]] = {}  # of variables made for inputs left out
        self.has_side_effect, self.per_instance = has_side_effect, per_instance
        self.grad_reads, self.optional_out_grads, self.supports_add = grad_reads, optional_out_grads, supports_add
        self.op_type, self.traced, self.capturable = op_type, traced, capturable
        self._call, self._differentiate, self._check_rule = call, differentiate, check_rule
        self.gradients: dict[tuple[object, ...], Op] = {}  # of a user's operator: those that compute gradients of it
        self.forms: dict[str, Op] = {}  # of a user's operator: those that do the same in another form
        self.kernels: list[Kernel] = []
        self.expression: Any = None  # of an element-wise operator, see builtin.elementwise
        self.sets: Rule | None = None  # of one that is a loop, see builtin.looped
        self.prepared: Rule | None = None
        self.unrolled: Callable | None = None  # of a loop or branch: by operators that autograd sees
        self.__name__ = self.__qualname__ = name

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def _changed(self) -> None:
        """Tell whoever keeps what follows from it."""
        if not self.used:
            return
        EDITION[0] += 1
        for cache in _FOLLOWING:
            cache.clear()
        with _WATCHING:
            keepers = list(_WATCHERS)
        for keeper in keepers:
            keeper.on_register(self)

    def replace(self, other: Op | None) -> None:
        """Give its name to another operator, or, with None, have it again. Symbols made of it mean the other then."""
        self.successor = other
        self._changed()

    @property
    def current(self) -> Op:
        """The operator that has its name now: itself, unless another was registered by that name."""
        op = self
        while op.successor is not None:
            op = op.successor
        return op

    # ------------------------------------------------------------------------------ declaring, by decorator

    def _look_at(self, what: str, function: object) -> None:
        """Refuse a rule that cannot be called, where somebody looks."""
        if self._check_rule is not None and not isinstance(function, Rule) and function is not ZERO:
            self._check_rule(self, what, function)

    def infer(self, function: F) -> F:
        """Declare the shape rule: ``f(*shapes, **attrs)`` returns a shape, or a list of them, one an output."""
        self._look_at("infer", function)
        self._shapes, self._all_shapes = Rule(function), None
        self._changed()
        return function

    def fill(self, function: F) -> F:
        """Declare how inputs follow from the rest: ``f(ins, outs, **attrs)`` returns all input shapes."""
        self._look_at("fill", function)
        self._fill = Rule(function)
        self._changed()
        return function

    def infer_from_data(self, function: F) -> F:
        """Declare that shapes of outputs follow from numbers: ``f(xp, *arrays, **attrs)`` returns a shape, or a list of
        them, one an output, whose dimensions may be arrays of one number. Those that follow so are ``ANY`` in the shape
        rule. A graph is planned up to such an operator, and from there on for the shapes that come. That of a user's
        operator is given NDArrays, and no ``xp``."""
        self._look_at("infer_from_data", function)
        self._from_data = Rule.of(function)
        self._changed()
        return function

    def shapes(self, function: F) -> F:
        """Declare the shape rule as a function ``f(ins, outs, **attrs) -> (ins, outs)``, of which some may be None."""
        self._look_at("shapes", function)
        self._all_shapes = Rule.of(function)
        self._changed()
        return function

    def types(self, function: F) -> F:
        """Declare the dtype rule as a function ``f(ins, outs, **attrs) -> (ins, outs)``."""
        self._look_at("types", function)
        self._types = Rule.of(function)
        self._changed()
        return function

    def view(self, function: F) -> F:
        """Declare that the output is a view: ``f(array, **attrs)`` returns it, or None where it cannot be."""
        self._view = Rule(function)
        self._changed()
        return function

    def kernel(self, name: str = "reference", *, bound: bool = False,
               accepts: Callable[[Call], str | None] | None = None,
               serves: Callable[[ArrayModule], bool] | None = None, adds: bool = False, rank: Rank = Rank.USER
               ) -> Callable[[F], F]:
        """Attach a kernel; see ``Kernel`` for its forms, and for which one runs. The first is the reference."""

        def attach(function: F) -> F:
            self.kernels.append(Kernel(function, name, bound, accepts, serves, adds, rank))
            self.kernels[1:] = sorted(self.kernels[1:], key=lambda kernel: kernel.order)
            self._changed()
            return function

        return attach

    def prepare(self, function: F) -> F:
        """Declare the reference kernel in two parts, for eager calls on the host.

        ``f(*ins, **attrs)`` is shown the first arrays of their shapes and dtypes. It returns the function of arrays
        that gives the only output for all like them, what follows from shapes settled before; or None.
        """
        self.prepared = Rule(function)
        self._changed()
        return function

    def grad(self, function: F) -> F:
        """Declare the gradient: ``f(g, ins, outs, **attrs)`` returns a value or None for each input.

        It is ordinary code over values and calls operators. It may also name ``needs``, the inputs whose gradient
        somebody wants, and ``is_train``. An ``AttrsRule`` is given all: ``f(attrs, g, ins, outs, needs, is_train)``.
        """
        self._look_at("grad", function)
        self._gradient = function if function is ZERO else Rule.of(function)
        self._changed()
        return function

    def raw_grad(self, function: F) -> F:
        """Declare the gradient once more, for raw arrays on the tape: ``f(attrs, arriving, needs, ctx)``. It reads no
        inputs and no outputs."""
        self._raw_gradient = function
        self._changed()
        return function

    def vmap(self, function: F) -> F:
        """Declare how it computes many samples at once: ``f(ins, batched, **attrs)`` returns the outputs of all.

        ``batched`` says which inputs have a first axis of samples; there is at least one, and the others are the same
        for all samples. Each output has a first axis of samples. It is ordinary code over values, as a gradient is.
        Without a rule ``vmap`` goes from sample to sample.
        """
        self._look_at("vmap", function)
        self._vmap = Rule.of(function)
        self._changed()
        return function

    def jvp(self, function: F) -> F:
        """Declare the derivative along directions: ``f(t, ins, outs, **attrs)`` returns a value or None for each
        output.

        ``t`` are the directions of the inputs, None for those that stay. It is ordinary code over values, as a
        gradient is, and linear in ``t``. Without a rule it follows from the gradient.
        """
        self._look_at("jvp", function)
        self._jvp = Rule.of(function)
        self._changed()
        return function

    def onnx(self, function: F) -> F:
        """Declare how it is said in ONNX: ``f(g, use, *inputs)`` calls ``g`` with names of ONNX's operators, values and
        attributes, and returns the output, or a list of them."""
        self.onnx_rule = function
        return function

    def inline(self, function: F) -> F:
        """Declare what takes a node's place in a graph once gradients are made: ``f(inputs, specs, **attrs)`` gets the
        entries of the inputs, adds the specs of new nodes, and returns these and the entries of the outputs."""
        self._inline = Rule(function)
        self._changed()
        return function

    def body(self, function: F) -> F:
        """Declare what the outputs of a node stand for while a graph grows: ``f(inputs, **attrs)`` returns their
        entries, and what variables of these stand for."""
        self._body = Rule(function)
        self._changed()
        return function

    def moves(self, function: F) -> F:
        """Declare which inputs a run changes in place, as the states of operators in a body: ``f(**attrs)`` returns
        their numbers."""
        self._moved = Rule.of(function)
        return function

    def chance(self, function: F) -> F:
        """Declare whether a run draws random numbers in a body: ``f(**attrs)`` returns a truth value."""
        self._draws = Rule.of(function)
        return function

    def flops(self, function: F) -> F:
        """Declare how much arithmetic a run is: ``f(ins, outs, **attrs)`` of shapes returns the number of additions and
        multiplications. For operators whose time is arithmetic: products of matrices, convolutions."""
        self._flops = Rule.of(function)
        self._changed()
        return function

    def again(self, function: F) -> F:
        """Declare how the first output follows from the inputs and the other outputs, where it cannot be had by running
        the operator a second time or is cheaper that way.

        ``f(ins, outs, **attrs)`` is ordinary code over values, as a gradient is. It may also name ``specs``, those of
        the inputs, and return None where it does not know.
        """
        self._again = Rule(function)
        self._changed()
        return function

    # -------------------------------------------------------------------------------------------- questions

    @property
    def infers(self) -> bool:
        """Whether a shape rule was declared."""
        return self._shapes is not None or self._all_shapes is not None

    def adds(self, xp: ArrayModule) -> bool:
        """Whether a kernel for arrays of a module obeys the request ``add``."""
        return self.supports_add or any(kernel.adds and (kernel.serves is None or kernel.serves(xp))
                                        for kernel in self.kernels)

    def complete(self, given: Attrs) -> Attributes:
        """Typed attributes from what was given, as values or text."""
        self.used = True
        try:
            return self.schema.complete(given)
        except (AttrError, TypeError) as error:
            if not hasattr(error, "__notes__"):  # a user's operator has said more
                note(error, f"operator {self.name}")
            raise

    def arguments(self, attrs: Attrs) -> tuple[str, ...]:
        """Names of the inputs."""
        return self._arguments(attrs)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Every input the operator can have, whatever its attributes, in the order of a call; none where nobody knows
        without attributes."""
        if self._input_names is not None:
            return tuple(self._input_names)
        if not self.per_instance:
            return self.arguments({}) + self.auxiliary({})
        try:
            attrs = self.complete({})
            return self.arguments(attrs) + self.auxiliary(attrs)
        except Exception as error:
            if passing(error):  # the answer is kept in signatures
                raise
            return ()

    def auxiliary(self, attrs: Attrs) -> tuple[str, ...]:
        """Names of the auxiliary states."""
        return self._auxiliary(attrs)

    def outputs(self, attrs: Attrs) -> tuple[str, ...]:
        """Names of all outputs, hidden ones included."""
        return self._outputs(attrs)

    def visible(self, attrs: Attrs) -> int:
        """How many outputs a user sees; they come first."""
        return len(self.outputs(attrs)) if self._visible is None else self._visible(attrs)

    def loss(self, attrs: Attrs) -> bool:
        """Whether the gradient starts or ends here and needs none from above."""
        return self._loss(attrs) if isinstance(self._loss, Rule) else self._loss or self._gradient is ZERO

    @property
    def type_rule(self) -> TypeRule | Rule:
        """How dtypes follow."""
        return self._types

    @property
    def shaped(self) -> bool:
        """Whether a rule says which shapes outputs have."""
        return self._shapes is not None

    @property
    def fills(self) -> bool:
        """Whether shapes of some inputs follow from those of others."""
        return self._fill is not None

    @property
    def opaque(self) -> bool:
        """Whether it runs Python of users, of which nobody knows what it draws and which states it moves."""
        return self.where is not None and bool(self.kernels) and self.kernels[0].bound and not self.traced

    @property
    def varies(self) -> bool:
        """Whether another run on the same inputs may give something else, or move something."""
        return self.random or self.mode or bool(self.states) or self.opaque

    @property
    def differentiable(self) -> bool:
        """Whether it has a gradient: by a rule, or by what its body does."""
        return self.traced or self._gradient is not None

    @property
    def has_grad(self) -> bool:
        """Whether a gradient rule exists."""
        return self._gradient is not None

    @property
    def has_vmap(self) -> bool:
        """Whether a rule says how it computes many samples at once."""
        return self._vmap is not None

    @property
    def has_jvp(self) -> bool:
        """Whether a rule says its derivative along directions."""
        return self._jvp is not None

    def over_samples(self, ins: Sequence[Any], batched: Sequence[bool], attrs: Attrs) -> Any:
        """The outputs of many samples, by its rule."""
        return self._vmap(attrs, ins, batched)  # type: ignore[misc]

    def along(self, t: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any], attrs: Attrs) -> Any:
        """The derivatives of the outputs along directions of the inputs, by its rule."""
        return self._jvp(attrs, t, ins, outs)  # type: ignore[misc]

    @property
    def raw_gradient(self) -> Callable | None:
        """Its gradient as a function of raw arrays, where there is one."""
        return self._raw_gradient

    @property
    def inlines(self) -> bool:
        """Whether nodes of it are replaced once gradients are made."""
        return self._inline is not None

    def inlined(self, attrs: Attrs, inputs: Sequence[Entry], specs: dict[Node, list[Spec]]
                ) -> tuple[list[Node], list[Entry]]:
        """The nodes that take the place of one, and the entries that its outputs become."""
        return self._inline(attrs, inputs, specs)  # type: ignore[misc]

    def stands_for(self, attrs: Attrs, inputs: Sequence[Entry]) -> tuple[Sequence[Entry], Mapping[Node, Entry]] | None:
        """The entries that outputs of a node stand for, and what variables of these do; None where it computes."""
        return None if self._body is None else self._body(attrs, inputs)

    def moved(self, attrs: Attrs) -> Sequence[int]:
        """Inputs that users' code changes in place while it runs: auxiliary states."""
        if self._moved is not None:
            return self._moved(attrs)
        if not (self.stateful and self.opaque):
            return ()
        first = len(self.arguments(attrs))
        return range(first, first + len(self.auxiliary(attrs)))

    def draws(self, attrs: Attrs) -> bool:
        """Whether a run draws random numbers, as far as that is known: users' code may."""
        return self.random or self.opaque if self._draws is None else self._draws(attrs)

    def runs_unread(self, attrs: Attrs) -> bool:
        """Whether it runs when nobody reads its outputs: it does something beside computing, or draws random numbers,
        of which others draw those that follow."""
        return self.has_side_effect or self.draws(attrs)

    def work(self, ins: Sequence[Shape], outs: Sequence[Shape], attrs: Attrs) -> int | None:
        """Additions and multiplications of a run on these shapes; None where no rule says so."""
        return None if self._flops is None else int(self._flops(attrs, ins, outs))

    @property
    def data_dependent(self) -> bool:
        """Whether shapes of outputs follow from the numbers in the inputs."""
        return self._from_data is not None

    def shapes_from_data(self, call: Call) -> list[Shape]:
        """Shapes of the outputs, from the inputs of a call."""
        if self.op_type is not None:
            answer = self._from_data(call.attrs, *[call.wrap(data, call.ctx, True) for data in call.ins])  # type: ignore
            return self._shapes_of(answer, call.attrs)
        answer = self._from_data(call.attrs, call.xp, *call.ins)  # type: ignore[misc]
        return [tuple([dim if isinstance(dim, int) else int(call.ctx.backend.to_numpy(dim)) for dim in shape])
                for shape in (answer if isinstance(answer, list) else [answer])]

    def _shapes_of(self, answer: Any, attrs: Attrs) -> list[Shape]:
        """Shapes of the outputs from the answer of a user's rule, checked."""
        names, shapes = self.outputs(attrs), answer if isinstance(answer, list) else [answer]
        found: list[Shape] = []
        try:
            found += [tuple([index(dim) for dim in shape]) for shape in shapes]
        except TypeError:
            pass
        if len(found) != len(names):
            raise ArgumentError(f"operator {self.op_type!r}: its rule for shapes that follow from numbers returned "
                                f"{answer!r}, expected a shape for each of its outputs ({', '.join(names)})")
        return found

    def as_view(self, array: Array, attrs: Attrs, out_shapes: Shapes | None = None, xp: ArrayModule = np
                ) -> Any:
        """The output as a view of the first input's array, or None.

        A rule may name ``out_shape``, the inferred shape of the output (a list of them for several), and ``xp``,
        the module of the array.
        """
        if self._view is None:
            return None
        out_shape = out_shapes[0] if out_shapes is not None and len(out_shapes) == 1 else out_shapes
        return self._view({**attrs, "out_shape": out_shape, "xp": xp}, array)

    def infer_shapes(self, ins: Shapes, outs: Shapes, attrs: Attrs) -> tuple[Shapes, Shapes]:
        """Complete what is known of input (arguments, then auxiliary) and output shapes.

        Raises
        ------
        ShapeError, AttrError
            When what is known does not fit the operator.
        """
        if self._all_shapes is not None:
            ins, outs = self._all_shapes(attrs, ins, outs)
            return list(ins), list(outs)
        if self._shapes is None:  # everything has one shape
            one: Shape | None = None
            for shape in (*ins, *outs):
                one = unify(one, shape)
            return [one] * len(ins), [one] * len(outs)
        ins = self.filled(ins, outs, attrs)
        if any(shape is None for shape in ins):
            return ins, outs
        results = self._shapes(attrs, *ins)
        if not isinstance(results, list):
            results = [results]
        if self.data_dependent and self.op_type is not None:  # a user says None where nothing is known
            results = [shape if shape is None else tuple([ANY if dim is None else dim for dim in shape])
                       for shape in results]
        outs = [agreed(name, old, new) for name, old, new in zip(self.outputs(attrs), outs, results)]
        if not all(map(known, ins)):
            ins = self.filled(ins, outs, attrs)  # attributes may say more of the outputs than was known
        return ins, outs

    def filled(self, ins: Shapes, outs: Shapes, attrs: Attrs) -> Shapes:
        """Input shapes with those filled in that the operator says follow from the rest."""
        if self._fill is None:
            return ins
        filled = self._fill(attrs, list(ins), list(outs))
        return [agreed(name, old, new) for name, old, new in
                zip(self.arguments(attrs) + self.auxiliary(attrs), ins, filled)]

    def infer_dtypes(self, ins: Dtypes, outs: Dtypes, attrs: Attrs) -> tuple[Dtypes, Dtypes]:
        """Complete what is known of input and output dtypes.

        Raises
        ------
        DTypeError
            When they contradict each other.
        """
        if isinstance(self._types, TypeRule):
            return self._types(ins, outs, attrs)
        ins, outs = self._types(attrs, list(ins), list(outs))
        return list(ins), list(outs)

    def differentiate(self, g: V | Sequence[V | None] | None, ins: Sequence[V], outs: Sequence[V], attrs: Attrs,
                      needs: Sequence[bool], is_train: bool = True) -> Sequence[V | None]:
        """Gradients of the inputs, None where there is none.

        Raises
        ------
        NotDifferentiableError
            When the operator has no gradient rule.
        """
        rule = self._differentiate or Op.by_rule
        if self.where is None:
            return rule(self, g, ins, outs, attrs, needs, is_train)
        with Recording(None, is_train):  # what a user's rule calls computes as the operator does
            return rule(self, g, ins, outs, attrs, needs, is_train)

    def by_rule(self, g: V | Sequence[V | None] | None, ins: Sequence[V], outs: Sequence[V], attrs: Attrs,
                needs: Sequence[bool], is_train: bool) -> Sequence[V | None]:
        """The same, by the rule that was declared as it stands."""
        rule = self._gradient
        if rule is ZERO:
            return [None] * len(ins)
        if rule is None:
            raise NotDifferentiableError(f"operator {self.name} has no gradient"
                                         + ("" if self.where is None else f" (registered at {self.where})"))
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
        if len(result) != len(ins) and self.grad_reads:
            if len(result) == len(self.arguments(attrs)):  # auxiliary states have no gradient
                return list(result) + [None] * (len(ins) - len(result))
            raise ArgumentError(f"gradient of {self.name}: expected {len(ins)} values, one for each input, "
                                f"got {len(result)}")
        return result

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
        return self._call(self, values, keywords)

    # ------------------------------------------------------------------- the record, as a CustomOpProp is asked

    def prop(self, **attrs: Any) -> Prop:
        """This operator with attributes given: answers what a ``CustomOpProp`` answers."""
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
        """Shapes of arguments, outputs and auxiliary states; ``()`` or ``None`` is an unknown input shape."""
        return self.prop(**attrs).infer_shape(in_shape)

    def infer_type(self, in_type: Sequence[object], **attrs: Any) -> tuple[list, list, list]:
        """Dtypes, as NumPy classes, of arguments, outputs and auxiliary states."""
        return self.prop(**attrs).infer_type(in_type)

    def create_operator(self, ctx: Context, in_shapes: object, in_dtypes: object, **attrs: Any) -> BoundOperator:
        """An object with ``forward`` and ``backward`` that write results as a ``CustomOp`` does."""
        return self.prop(**attrs).create_operator(ctx, in_shapes, in_dtypes)

"""Launch: the choice and the call of kernels.

A ``Call`` describes one use of an operator: its attributes and arrays. ``prepare`` chooses the kernel. The result is
either a function of arrays, which eager calls cache, or, for plans, a list of steps: functions without arguments that
are bound to the arrays of the call.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import OpError
from ..typing import Array, ArrayModule
from .mode import quiet
from .parameters import parameters_of
from .rules import Attrs, Rule, as_list
from .spec import Shape, Spec, is_known, show, size

if TYPE_CHECKING:
    from .op import Op

__all__ = ["ANEW", "Call", "ChannelsLast", "FirstRun", "Kernel", "Prepared", "Rank", "prepare",
           "reference"]

#: A key that compiled functions set in ``Call.memo``: each run makes new ``CustomOp``s, as each eager call does.
ANEW = "anew"

Step = Callable[[], object]
#: A function of attributes, specs of inputs, specs of outputs, mode, array module and device. It returns None, or the
#: reason why the kernel declines contiguous arrays.
ChannelsLast: TypeAlias = Callable[[Attrs, Sequence[Spec], Sequence[Spec], bool, ArrayModule, int], str | None]


class Rank(enum.IntEnum):
    """The origin of a kernel. If several kernels accept a call, the one of the highest rank runs."""

    OPERATOR = 0  # a kernel declared in the operator's module
    COMPILED = 1  # a back end that compiles
    LIBRARY = 2  # a back end that calls a library
    USER = 3


class Kernel:
    """A kernel: a function that computes an operator.

    There are two forms. A *returning* kernel is ``f(xp, *arrays, **attrs)``. If it has a parameter ``out``, it writes
    its result there when an array is given, or a tuple of arrays for several outputs. A *bound* kernel is ``f(call)``:
    it gets a ``Call`` with the arrays of one step, and returns a function without arguments, or a list of them, which
    is called in each run. A returning kernel in ``parts`` has a rule that returns its function for one use.

    ``accepts(call)`` returns None, or the reason why the kernel declines. Among the kernels that accept, the one of the
    highest ``order`` runs: first users' kernels, then kernels with ``serves``, and among these and the others the one
    of the highest ``rank``; of equal ones, the last one attached. ``serves(xp)`` tells whether the kernel serves an
    array module. A bound kernel with ``adds`` supports the request ``add``. ``channels_last`` is set if the layout of
    the operator may be changed to channels-last only when this kernel runs: it returns None, or the reason why the
    kernel declines contiguous arrays with given specs.
    """

    __slots__ = ("name", "rule", "accepts", "bound", "takes_out", "serves", "adds", "order", "channels_last",
                 "parts")

    def __init__(self, function: Callable, name: str = "reference", bound: bool = False,
                 accepts: Callable[[Call], str | None] | None = None,
                 serves: Callable[[ArrayModule], bool] | None = None, adds: bool = False, rank: Rank = Rank.USER,
                 channels_last: ChannelsLast | None = None, parts: Rule | None = None):
        self.order = rank is Rank.USER, rank is not Rank.USER and serves is not None, rank
        parameters = parameters_of(function)
        self.name, self.rule, self.accepts = name, Rule(function, parameters), accepts
        self.bound, self.serves, self.adds, self.channels_last = bound, serves, adds, channels_last
        self.parts = parts
        self.takes_out = "out" in parameters.keyword_only or "out" in parameters.positional

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def with_attributes(self, call: Call) -> Callable[..., Any]:
        """This returning kernel with fixed attributes, as a function of arrays, and of ``out`` if it has that
        parameter."""
        keywords = self.rule.select(call.attrs)
        for name in ("is_train", "rng"):
            if name in self.rule.names:
                keywords[name] = getattr(call, name)
        return functools.partial(self.rule.function, call.xp, **keywords)

    def check(self, op: Op, results: Sequence[object], shapes: Sequence[Shape | None]) -> None:
        """Check the number and the shapes of the results of a first run.

        A scalar or a 0-d array counts as an array of one element.

        Raises
        ------
        OpError
            If a result is missing, or has a wrong shape. The error names operator, kernel and output.
        """
        if len(results) < len(shapes):
            raise OpError(f"operator {op.name}, kernel {self.name}: expected {len(shapes)} outputs, got {len(results)}")
        for i, (result, shape) in enumerate(zip(results, shapes)):
            actual = getattr(result, "shape", () if isinstance(result, (int, float)) else None)
            if actual is None:
                raise OpError(f"operator {op.name}, kernel {self.name}, output {i}: expected an array, "
                              f"got {type(result).__name__}")
            single = math.prod(actual) == 1 and shape is not None and is_known(shape) and size(shape) == 1
            if shape is not None and not single and (len(actual) != len(shape) or actual != shape):
                raise OpError(f"operator {op.name}, kernel {self.name}, output {i}: expected shape {show(shape)}, "
                              f"got {show(actual)}")


class Call:
    """One use of an operator: kernels are chosen by it, and bound kernels get it.

    Attributes
    ----------
    op, attrs
        The operator and its typed attributes.
    ins, outs : list of arrays
        Inputs (arguments, then auxiliary states) and outputs, arrays of ``xp``. They are written in place, so their
        addresses do not change. An output that is not read is None. For a returning kernel there are no outputs yet.
    reqs : list of str
        The request of each output: ``write``, ``null`` for None, or ``add`` for kernels that support it.
    xp, ctx, is_train, rng
        Array module, device, mode and random generator.
    specs : list of Spec
        Shapes and dtypes of all outputs, also of those that are None.
    scratch : function of a key, shape and dtype
        Allocates memory for temporaries, which other steps share.
    wrap : function of array, ctx and frozen
        Makes an NDArray of an array of ``xp``, for kernels that run users' code.
    memo : dict
        Stores values of a forward step for its backward step, as long as the executor lives.
    details
        A value that ``accepts`` of a kernel computes for the kernel.
    variables : sequence of int
        Indices of inputs that are bound arrays of users, whose writes are noted, and that no earlier step of the plan
        changes in place. An output that is also such an input is assigned.
    states : sequence of arrays
        Auxiliary states that a bound kernel must update, if any.
    store : function or None
        Stores the new states after all steps that read the old ones. A bound kernel sets it. It may be called twice.
    moves : sequence of (list of arrays, function)
        The states that earlier steps of the plan have moved, and functions that store their values from then.
    """

    __slots__ = ("op", "attrs", "ins", "outs", "reqs", "xp", "ctx", "is_train", "rng", "specs", "scratch", "wrap",
                 "memo", "details", "states", "store", "variables", "moves")

    def __init__(self, op: Op, attrs: Attrs, ins: list[Any], outs: list[Any], reqs: list[str], xp: ArrayModule,
                 ctx: Any, is_train: bool, rng: Any = None, specs: Sequence[Spec] = (), scratch: Any = None,
                 wrap: Any = None, memo: dict | None = None):
        self.op, self.attrs, self.ins, self.outs, self.reqs = op, attrs, ins, outs, reqs
        self.xp, self.ctx, self.is_train, self.rng, self.specs = xp, ctx, is_train, rng, specs
        self.scratch, self.wrap, self.memo = scratch, wrap, {} if memo is None else memo
        self.details: Any = None
        self.variables: Sequence[int] = ()
        self.states: Sequence[Array] = ()
        self.store: Callable[[], object] | None = None
        self.moves: Sequence[tuple[Sequence[Array], Callable[[], object]]] = ()

    def places(self) -> list[Array]:
        """The outputs, with temporary memory for those that are None."""
        return [self.scratch(i, spec.shape, spec.dtype) if out is None else out
                for i, (out, spec) in enumerate(zip(self.outs, self.specs))]

    def redirect_adds(self) -> list[Step]:
        """Redirect outputs with the request ``add`` to temporary memory; return functions that add them later."""
        adding: list[Step] = []
        for i, (out, req) in enumerate(zip(self.outs, self.reqs)):
            if req == "add":
                self.outs[i] = self.scratch(-1 - i, out.shape, out.dtype)  # kernels' own keys are not negative
                self.reqs[i] = "write"
                adding.append(functools.partial(self.xp.add, out, self.outs[i], out))
        return adding


class FirstRun:
    """A step that returns, from its first run, the steps that replace it in later runs."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[], list[Step]]):
        self.run = run

    def __call__(self) -> list[Step]:
        return self.run()


class Prepared:
    """A use of an operator with the chosen kernel.

    Attributes
    ----------
    kernel : Kernel
        The chosen kernel.
    declined : list of (str, str)
        Kernels of a higher order that declined, with their reasons.
    """

    __slots__ = ("kernel", "declined", "_call", "_after", "_general")

    def __init__(self, call: Call, kernel: Kernel, declined: list[tuple[str, str]], after: Sequence[Step] = (),
                 general: bool = False):
        self.kernel, self.declined, self._call, self._after = kernel, declined, call, after
        self._general = general  # whether the kernel runs as it was written, for comparisons with others

    def function(self) -> Callable[..., Any]:
        """The returning kernel as a function of arrays, and of ``out`` if it has that parameter."""
        call, parts = self._call, self.kernel.parts
        if parts is None or self._general:
            return self.kernel.with_attributes(call)
        return quiet(parts, call.attrs, call.xp, *call.ins)

    def steps(self, states: Sequence[Array] = ()) -> tuple[list[Step], Step | None]:
        """Functions that compute the outputs of the call, and a function that later stores new values in the arrays
        ``states``, or None."""
        steps, store = self._steps(states)
        return [*steps, *self._after], store

    def _steps(self, states: Sequence[Array]) -> tuple[list[Step], Step | None]:
        call, kernel = self._call, self.kernel
        if kernel.bound:
            call.states = states
            run = kernel.rule.function(call)
            return as_list(run), call.store
        compute = functools.partial(self.function(), *call.ins)
        outs: Sequence[Any] = call.outs
        if kernel.takes_out and call.reqs and "add" not in call.reqs:
            compute = functools.partial(compute, out=_out(call.places()))
            if not states:
                return [compute], None
            outs = [None] * len(outs)  # already written by the kernel
        check = functools.partial(kernel.check, call.op, shapes=[spec.shape for spec in call.specs])
        return _copy_steps(compute, outs, states, check)


def prepare(call: Call, returning: bool = False) -> Prepared:
    """Choose the kernel of the highest order among those that accept. General kernels of the back end come first.

    Parameters
    ----------
    call : Call
        The use of the operator.
    returning : bool
        Whether the kernel must be a returning one.

    Raises
    ------
    OpError
        If no kernel accepts. The error lists the reasons.
    """
    declined: list[tuple[str, str]] = []
    kernels = [kernel for kernel in (*call.ctx.backend.kernels, *reversed(call.op.kernels))
               if not (returning and kernel.bound) and (kernel.serves is None or kernel.serves(call.xp))]
    after: list[Step] = []
    if "add" in call.reqs and not call.op.traits.supports_add:
        for kernel in kernels:
            if kernel.adds and _accepts(kernel, call, declined):
                return Prepared(call, kernel, declined)
        kernels, after = [kernel for kernel in kernels if not kernel.adds], call.redirect_adds()
    for kernel in kernels:
        if _accepts(kernel, call, declined):
            return Prepared(call, kernel, declined, after)
    reasons = "; ".join(f"{name}: {reason}" for name, reason in declined)
    raise OpError(f"operator {call.op.name} has no kernel for this use on {call.ctx}"
                  f"{': ' if reasons else ''}{reasons}")


def _accepts(kernel: Kernel, call: Call, declined: list[tuple[str, str]]) -> bool:
    """Whether a kernel accepts; if not, its reason is appended to ``declined``."""
    reason = None if kernel.accepts is None else kernel.accepts(call)
    if reason is not None:
        declined.append((kernel.name, reason))
    return reason is None


def reference(call: Call) -> Prepared:
    """The call with the operator's first kernel, the reference, which accepts all calls."""
    return Prepared(call, call.op.kernels[0], [], general=True)


def _out(places: list[Array]) -> Array | tuple[Array, ...]:
    return places[0] if len(places) == 1 else tuple(places)


def _copy_steps(compute: Callable[[], Any], outs: Sequence[Array | None], states: Sequence[Array], check: Callable
                ) -> tuple[list[Step], Step | None]:
    """Steps of a returning kernel, which copy its results into the outputs, and check them in the first run."""
    requested = [(i, out) for i, out in enumerate(outs) if out is not None]
    if not requested and not states:
        return [compute], None
    pending: list[Array] = []
    count, checked = len(outs), False

    def run() -> None:
        nonlocal checked
        results = compute()
        if not isinstance(results, (tuple, list)):
            results = (results,)
        if not checked:
            check(results)
            checked = True
        for i, out in requested:
            out[...] = results[i]
        if states:
            pending[:] = results[count:]

    def store() -> None:
        for state, new in zip(states, pending):
            state[...] = new

    return [run], store if states else None

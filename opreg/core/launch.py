"""Launch: one use of an operator made ready to run. The one place that knows how kernels are chosen and called.

A ``Call`` says what is to be run: the operator, its attributes, the arrays. ``prepare`` chooses the kernel; what comes
back is a function of arrays, which eager calls keep, or bound to the arrays of the call, as plans have it: a list of
steps without arguments that leave results where they belong.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import OpError
from ..typing import Array, ArrayModule
from .parameters import parameters_of
from .rules import Attrs, Rule
from .spec import Shape, Spec, known, show, size

if TYPE_CHECKING:
    from .op import Op

__all__ = ["ANEW", "Call", "ChannelsLast", "FirstRun", "Kernel", "Prepared", "Rank", "as_results", "prepare",
           "reference"]

#: A key of ``Call.memo`` in compiled functions: each run makes users' operators anew, as each eager call does.
ANEW = "anew"

Step = Callable[[], object]
#: A function of attributes, specs of inputs and outputs, mode, array module and device.
ChannelsLast: TypeAlias = Callable[[Attrs, Sequence[Spec], Sequence[Spec], bool, ArrayModule, int], str | None]


class Rank(enum.IntEnum):
    """Origin of a kernel. The highest of the kernels that accept a use runs it, whichever was attached first."""

    OPERATOR = 0  # the operator's own module, beside the reference
    COMPILED = 1  # a back end that compiles
    LIBRARY = 2  # a back end that calls a library
    USER = 3


class Kernel:
    """One way to compute an operator.

    Two forms. One *returns*: ``f(xp, *arrays, **attrs)``; when it has a parameter ``out`` it writes there instead
    if an array is given (a tuple of arrays for several outputs). The other is *bound* once and called often:
    ``f(call)`` gets a ``Call`` that holds the arrays of one step and returns a function without arguments, or a
    list of them, that does the work.

    ``accepts(call)`` says None, or why this kernel declines. Among those that accept, the one of the highest ``order``
    runs: of the highest ``rank``, of back ends those first that are for one kind of device alone; of equals the one
    attached last. One that ``serves`` other array modules alone is not asked. A bound one that ``adds`` obeys the
    request ``add``. ``channels_last`` is there where the operator is to have its channels last only if this kernel
    computes it so: it says None, or why the kernel declines contiguous arrays of some specs.
    """

    __slots__ = ("name", "rule", "accepts", "bound", "takes_out", "serves", "adds", "order", "channels_last")

    def __init__(self, function: Callable, name: str = "reference", bound: bool = False,
                 accepts: Callable[[Call], str | None] | None = None,
                 serves: Callable[[ArrayModule], bool] | None = None, adds: bool = False, rank: Rank = Rank.USER,
                 channels_last: ChannelsLast | None = None):
        self.order = rank is Rank.USER, rank is not Rank.USER and serves is not None, rank
        self.name, self.rule, self.accepts, self.bound, self.serves = name, Rule(function), accepts, bound, serves
        self.adds, self.channels_last = adds, channels_last
        parameters = parameters_of(function)
        self.takes_out = "out" in parameters.keyword_only or "out" in parameters.positional

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def with_attributes(self, call: Call) -> Callable[..., Any]:
        """This kernel, one that returns, as a function of arrays, and of ``out`` if it takes that."""
        keywords = self.rule.select(call.attrs)
        for name in ("is_train", "rng"):
            if name in self.rule.names:
                keywords[name] = getattr(call, name)
        return functools.partial(self.rule.function, call.xp, **keywords)

    def check(self, op: Op, results: Sequence[object], shapes: Sequence[Shape | None]) -> None:
        """Look at what it returned the first time: are there as many results as outputs, and have they their shapes?

        A number, of Python or of rank zero, is as good as an array of one.

        Raises
        ------
        OpError
            Naming operator, kernel and output.
        """
        if len(results) < len(shapes):
            raise OpError(f"operator {op.name}, kernel {self.name}: expected {len(shapes)} outputs, got {len(results)}")
        for i, (result, shape) in enumerate(zip(results, shapes)):
            actual = getattr(result, "shape", () if isinstance(result, (int, float)) else None)
            if actual is None:
                raise OpError(f"operator {op.name}, kernel {self.name}, output {i}: expected an array, "
                              f"got {type(result).__name__}")
            one = math.prod(actual) == 1 and shape is not None and known(shape) and size(shape) == 1
            if shape is not None and not one and (len(actual) != len(shape) or actual != shape):
                raise OpError(f"operator {op.name}, kernel {self.name}, output {i}: expected shape {show(shape)}, "
                              f"got {show(actual)}")


class Call:
    """One use of an operator, prepared: what kernels are chosen by, and what a bound one is given to hold.

    Attributes
    ----------
    op, attrs
        The operator and its typed attributes.
    ins, outs : list of arrays
        Inputs (arguments, then auxiliary states) and outputs, of the array module ``xp``; written in place, their
        addresses never change. An output that nobody reads is None. There are none yet where results are returned.
    reqs : list of str
        For each output ``write``, or ``null`` where it is None; ``add`` only for kernels that add.
    xp, ctx, is_train, rng
        Array module, device, mode and random generator.
    specs : list of Spec
        Shape and dtype of every output, wanted or not.
    scratch : function of number, shape and dtype
        Memory for temporaries, shared with other steps.
    wrap : function of array, ctx and frozen
        Makes an NDArray of an array of ``xp``, for kernels that run users' code.
    memo : dict
        Lives as long as the executor: what a forward step leaves for its backward step.
    found
        What ``accepts`` of a kernel found out and leaves for the kernel.
    variables : sequence of int
        Which inputs of a step of a plan are arrays that users have bound, and that no step before it changes in place:
        one that is an output, too, is assigned.
    states : sequence of arrays
        Auxiliary states that a bound kernel has to move; the operator's, where it is to.
    store : function or None
        Moves them, when everything has run that reads them as they were: a bound kernel leaves it here.
    """

    __slots__ = ("op", "attrs", "ins", "outs", "reqs", "xp", "ctx", "is_train", "rng", "specs", "scratch", "wrap",
                 "memo", "found", "states", "store", "variables")

    def __init__(self, op: Op, attrs: Attrs, ins: list[Any], outs: list[Any], reqs: list[str], xp: ArrayModule,
                 ctx: Any, is_train: bool, rng: Any = None, specs: Sequence[Spec] = (), scratch: Any = None,
                 wrap: Any = None, memo: dict | None = None):
        self.op, self.attrs, self.ins, self.outs, self.reqs = op, attrs, ins, outs, reqs
        self.xp, self.ctx, self.is_train, self.rng, self.specs = xp, ctx, is_train, rng, specs
        self.scratch, self.wrap, self.memo = scratch, wrap, {} if memo is None else memo
        self.found: Any = None
        self.variables: Sequence[int] = ()
        self.states: Sequence[Array] = ()
        self.store: Callable[[], object] | None = None

    def places(self) -> list[Array]:
        """The outputs, with temporary memory for those that nobody reads."""
        return [self.scratch(i, spec.shape, spec.dtype) if out is None else out
                for i, (out, spec) in enumerate(zip(self.outs, self.specs))]

    def aside(self) -> list[Step]:
        """Have results that are to be added written to temporary memory; the functions that add them then."""
        adding: list[Step] = []
        for i, (out, req) in enumerate(zip(self.outs, self.reqs)):
            if req == "add":
                self.outs[i] = self.scratch(-1 - i, out.shape, out.dtype)  # numbers that no kernel asks for
                self.reqs[i] = "write"
                adding.append(functools.partial(self.xp.add, out, self.outs[i], out))
        return adding


class FirstRun:
    """A step whose first run is watched; it returns the steps that take its place from then on."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[], list[Step]]):
        self.run = run

    def __call__(self) -> list[Step]:
        return self.run()


class Prepared:
    """A use of an operator with its kernel.

    Attributes
    ----------
    kernel : Kernel
        The one that runs.
    declined : list of (str, str)
        Those that would have come first, and why they do not.
    """

    __slots__ = ("kernel", "declined", "_call", "_after")

    def __init__(self, call: Call, kernel: Kernel, declined: list[tuple[str, str]], after: Sequence[Step] = ()):
        self.kernel, self.declined, self._call, self._after = kernel, declined, call, after

    def function(self) -> Callable[..., Any]:
        """The kernel, one that returns, as a function of arrays, and of ``out`` if it takes that."""
        return self.kernel.with_attributes(self._call)

    def steps(self, states: Sequence[Array] = ()) -> tuple[list[Step], Step | None]:
        """Functions that compute the outputs from the inputs of the call, and one that stores, later, the new values of
        auxiliary states in these arrays; None where there are none."""
        steps, store = self._steps(states)
        return [*steps, *self._after], store

    def _steps(self, states: Sequence[Array]) -> tuple[list[Step], Step | None]:
        call, kernel = self._call, self.kernel
        if kernel.bound:
            call.states = states
            run = kernel.rule.function(call)
            return list(run) if isinstance(run, (list, tuple)) else [run], call.store
        compute = functools.partial(self.function(), *call.ins)
        outs: Sequence[Any] = call.outs
        if kernel.takes_out and call.reqs and "add" not in call.reqs:
            compute = functools.partial(compute, out=_out(call.places()))
            if not states:
                return [compute], None
            outs = [None] * len(outs)  # written already
        check = functools.partial(kernel.check, call.op, shapes=[spec.shape for spec in call.specs])
        return _copying(compute, outs, states, check)


def prepare(call: Call, returning: bool = False) -> Prepared:
    """Choose the kernel of the highest order among those that accept; a back end's own come first.

    Parameters
    ----------
    call : Call
        What is to be run.
    returning : bool
        Whether it has to be one that returns its results.

    Raises
    ------
    OpError
        When none accepts, with the reasons.
    """
    declined: list[tuple[str, str]] = []
    kernels = [kernel for kernel in (*call.ctx.backend.kernels, *reversed(call.op.kernels))
               if not (returning and kernel.bound) and (kernel.serves is None or kernel.serves(call.xp))]
    after: list[Step] = []
    if "add" in call.reqs and not call.op.traits.supports_add:
        for kernel in kernels:
            if kernel.adds and _accepted(kernel, call, declined):
                return Prepared(call, kernel, declined)
        kernels, after = [kernel for kernel in kernels if not kernel.adds], call.aside()
    for kernel in kernels:
        if _accepted(kernel, call, declined):
            return Prepared(call, kernel, declined, after)
    reasons = "; ".join(f"{name}: {reason}" for name, reason in declined)
    raise OpError(f"operator {call.op.name} has no kernel for this use on {call.ctx}"
                  f"{': ' if reasons else ''}{reasons}")


def _accepted(kernel: Kernel, call: Call, declined: list[tuple[str, str]]) -> bool:
    """Whether a kernel accepts; if not, its reason is noted."""
    reason = None if kernel.accepts is None else kernel.accepts(call)
    if reason is not None:
        declined.append((kernel.name, reason))
    return reason is None


def reference(call: Call) -> Prepared:
    """The same with the first kernel of the operator, which declines nothing."""
    return Prepared(call, call.op.kernels[0], [])


def as_results(results: object) -> list[Any]:
    """The arrays that a kernel returned, one or several, as a list."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _out(places: list[Array]) -> Array | tuple[Array, ...]:
    return places[0] if len(places) == 1 else tuple(places)


def _copying(compute: Callable[[], Any], outs: Sequence[Array | None], states: Sequence[Array], check: Callable
             ) -> tuple[list[Step], Step | None]:
    """Steps of a kernel that returns its results: they are copied to where they belong, and looked at first on the
    first run."""
    checked = False
    if len(outs) == 1 and not states:
        out = outs[0]
        if out is None:
            return [compute], None

        def run_one() -> None:
            nonlocal checked
            result = compute()
            if result.__class__ is tuple or result.__class__ is list:
                result = result[0]
            if not checked:
                check([result])
                checked = True
            out[...] = result

        return [run_one], None
    wanted = [(i, out) for i, out in enumerate(outs) if out is not None]
    pending: list[Array] = []
    count = len(outs)

    def run() -> None:
        nonlocal checked
        results = compute()
        if not isinstance(results, (tuple, list)):
            results = (results,)
        if not checked:
            check(results)
            checked = True
        for i, out in wanted:
            out[...] = results[i]
        if states:
            pending[:] = results[count:]

    def store() -> None:
        for state, new in zip(states, pending):
            state[...] = new

    return [run], store if states else None

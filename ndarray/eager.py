"""Eager calls of operators. Work that depends only on operator, attributes and specs is done once.

A *runner* is the prepared form of a call: the chosen kernel with its attributes, and the treatment of its results.
Shapes and dtypes are inferred and checked when the runner is made, at the first call of its kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from opreg.core import generators
from opreg.core.invalidation import EDITION, keep, operator_cache
from opreg.core.launch import Call, prepare
from opreg.core.launch import Prepared as PreparedCall
from opreg.core.mode import MODE, Recording, is_already_entered, quiet
from opreg.core.op import Op, runs_body, shapes_from_data
from opreg.core.rounding import tf32
from opreg.core.rules import Attrs, Shapes, as_list
from opreg.core.slots import Slot
from opreg.core.spec import Shape, Spec, is_known, is_numpy_float, show, unify
from opreg.core.subgraph import Subgraph, subgraph
from opreg.elementwise.settings import filled_settings
from opreg.errors import ArgumentError, ShapeError, note, other_count
from opreg.typing import Array, ArrayModule

from .context import Context
from .custom_calls import CustomRun, Wrap, custom_run
from .device_calls import device_call

if TYPE_CHECKING:
    from opreg.elementwise.expression import OpenExpressions

    from .traced_rules import Recipe

__all__ = ["BODY", "CachedUse", "OpenUse", "Runner", "Prepared", "PreparedOperator", "infer_outputs", "run",
           "runner_of"]

#: Runs a traced operator by its cached body; returns the body and the results, or None if the body cannot be cached.
BODY = Slot("bodies")

_RUNNERS = operator_cache(4096, "prepared eager calls")
_FLOAT32 = np.dtype(np.float32)


class CachedUse:
    """A cached call of an operator, for all arrays of the same specs.

    Called with arrays, it returns the list of outputs, followed in training by new values of auxiliary states.

    Attributes
    ----------
    op, attrs, ctx, is_train
        The operator, its attributes, the device and the mode.
    shapes : list of Shape
        The shapes of the outputs.
    count, visible : int
        The number of outputs, and of those that are visible.
    single : function or None
        The kernel itself, if it returns the only output in its final form.
    takes_out : bool
        Whether ``single`` has a parameter ``out``.
    recipes : dict or None
        Recipes of the gradient, see ``opreg.ndarray.traced_rules``; None if they are not cached.
    constants : sequence of arrays
        Arrays that the gradient reads beside output gradients, inputs and outputs.
    wrap : function or None
        Makes an NDArray, if the gradient contains users' operators.
    """

    __slots__ = ()

    op: Op
    attrs: Attrs
    ctx: Context
    is_train: bool
    shapes: Shapes
    count: int
    visible: int
    single: Callable[..., Array] | None
    takes_out: bool
    recipes: dict[tuple[object, ...], Recipe | None] | None
    constants: Sequence[Array] = ()
    wrap: Wrap | None = None

    def __call__(self, arrays: Sequence[Array], out: Array | None = None) -> list[Array]:
        raise NotImplementedError

    def rule(self, out_grads: tuple[bool, ...], needs: tuple[bool, ...], is_train: bool,
             specs: Callable[[], Sequence[Spec]]) -> Subgraph:
        """The gradient as a subgraph; see ``opreg.core.subgraph.subgraph``."""
        return subgraph(self.op, self.attrs, out_grads, needs, is_train, specs)


class Runner(CachedUse):
    """An operator that is prepared for attributes, specs and mode.

    Its outputs have the inferred dtypes and share no memory with inputs.
    """

    __slots__ = ("op", "attrs", "kernel", "shapes", "dtypes", "visible", "count", "single", "recipes", "ctx",
                 "is_train", "takes_out", "by_expression", "_function", "_xp", "_copies", "_fits", "_first")

    def __init__(self, op: Op, attrs: Attrs, arrays: Sequence[Array], ctx: Context, is_train: bool):
        self.op, self.attrs, self.ctx, self.is_train = op, attrs, ctx, is_train
        self.shapes, self.dtypes = infer_outputs(op, attrs, arrays)
        self.count, self.visible = len(self.shapes), op.signature.visible(attrs)
        rng = generators.generator(ctx.backend_name, ctx.device_id) if op.traits.random else None
        specs = [Spec(shape, dtype) for shape, dtype in zip(self.shapes, self.dtypes) if shape is not None]
        ready = prepare(Call(op, attrs, list(arrays), [], [], ctx.xp, ctx, is_train, rng, specs), returning=True)
        self._xp, self.kernel = ctx.xp, ready.kernel
        self.takes_out = self.kernel.takes_out and self.count == 1 and not op.traits.states
        self._function: Callable[..., Any]
        dtype = self.dtypes[0] if self.dtypes else _FLOAT32
        expression = None if op.rules.expression is None else op.rules.expression(attrs)
        self.by_expression: bool = (expression is not None and self.kernel is op.kernels[0] and is_numpy_float(dtype)
                                    and all(array.dtype == dtype for array in arrays))
        if expression is not None and self.by_expression:
            function = quiet(expression.on, ctx.xp, dtype)
            self._function = function if self.shapes[0] != () else _as_array(ctx.xp, function)
        elif (on_device := None if ctx.xp is np else quiet(device_call, op, attrs, arrays, ctx, is_train, specs)):
            self._function, self.takes_out = on_device, on_device.takes_out
        else:
            self._function = ready.function()
        if op.traits.random:
            self._function = _report_draw(ctx, self._function)
        self.single = None  # None until the first run
        # Users' rules are called each time.
        self.recipes = None if op.where is not None or op.signature.per_instance else {}
        self._copies: list[bool] | None = None
        self._first = True
        self._fits = True

    def __call__(self, arrays: Sequence[Array], out: Array | None = None) -> list[Array]:
        if out is not None and self._may_write(out, arrays):
            self._function(*arrays, out=out)
            return [out]
        returned = self._function(*arrays)
        results = as_list(returned)
        if self._first:
            self._check(arrays, results)
            if self._fits and self.count == 1 and results[0] is returned:
                self.single = self._function
        if self._fits:
            return results
        return self._mend(results)

    def _may_write(self, out: Array, arrays: Sequence[Array]) -> bool:
        """Whether the kernel may write its result into ``out``: shape and dtype fit, and no input that it still reads
        overlaps."""
        if not self.takes_out or self.shapes[0] != out.shape or self.dtypes[0] != out.dtype:
            return False
        shares, inplace = self._xp.may_share_memory, self.op.traits.inplace
        for i, array in enumerate(arrays):
            if (array is not out or i not in inplace) and shares(array, out):
                return False
        return True

    def _mend(self, results: list[Any]) -> list[Array]:
        """Results with the inferred dtypes, in C order, and copies of those that are views of an input."""
        copies = self._copies or []
        for i, dtype in enumerate(self.dtypes):
            result = results[i]
            if not hasattr(result, "shape") or isinstance(result, np.generic):
                result = self._xp.asarray(result, dtype)
            if result.dtype != dtype or copies[i] or not result.flags.c_contiguous:
                result = result.astype(dtype, order="C")
            if result.ndim == 0 or (result.shape != self.shapes[i] and is_known(self.shapes[i])):
                result = result.reshape(self.shapes[i])
            results[i] = result
        return results

    def _check(self, arrays: Sequence[Array], results: list[Any]) -> None:
        """Check the results of the first call, and whether later ones need ``_mend``."""
        xp = self._xp
        self.kernel.check(self.op, results, self.shapes)
        copies = []  # a local list, since other threads may call this at the same time
        for result, shape, dtype in zip(results, self.shapes, self.dtypes):
            plain = hasattr(result, "flags") and not isinstance(result, np.generic) and (
                shape is None or result.shape == shape)
            array = result if plain else xp.asarray(result)
            copies.append(plain and any(xp.may_share_memory(array, source) for source in arrays))
            if not plain or array.dtype != dtype or copies[-1] or not array.flags.c_contiguous:
                self._fits = False
        self._copies, self._first = copies, False


class OpenRunner:
    """The shared part of the runners of one operator for different floats, and the recipe of the gradient, which reads
    its constants as arrays.

    Attributes
    ----------
    runner : Runner
        The runner for the first floats.
    recipes : dict
        The recipes of the gradient.
    forward : function
        The function of the operator, as a function of its constants.
    """

    __slots__ = ("runner", "recipes", "forward", "_slope", "_used", "_constants")
    target_results = ()

    def __init__(self, runner: Runner, expressions: OpenExpressions):
        self.runner, self.recipes = runner, dict[Any, Any]()
        xp, dtype, slope = runner.ctx.xp, runner.dtypes[0], expressions.slope
        self.forward = expressions.forward.open(xp, dtype)
        self._slope: Any = None if slope is None else slope.open(xp, dtype)
        self._used = expressions.used
        self._constants = [[] if expression is None else quiet(expression.constants, xp, dtype)
                           for expression in (expressions.forward, slope)]

    def constants(self, numbers: Sequence[float], gradient: bool = False) -> list[Any]:
        """The constants of the operator, or of its gradient, for some floats."""
        dtype = self.runner.dtypes[0] if self.runner.ctx.xp is np else None
        return quiet(filled_settings, self._constants[gradient], numbers, dtype)

    def __call__(self, arrays: list[Any], targets: object = None) -> Sequence[Array | None]:
        if self._slope is None:
            return (None,)
        return (self._slope(arrays[3:])(*[arrays[i] for i in self._used]),)


class OpenUse(CachedUse):
    """The runner of an operator for some floats, made from an `OpenRunner`."""

    __slots__ = ("attrs", "single", "constants", "shared", "recipes", "_numbers")
    count = visible = 1
    takes_out = False
    op = property(lambda self: self.shared.runner.op, doc="The operator.")
    ctx = property(lambda self: self.shared.runner.ctx, doc="The device.")
    is_train = property(lambda self: self.shared.runner.is_train, doc="The mode.")
    shapes = property(lambda self: self.shared.runner.shapes, doc="The shape of the output, in a list.")
    dtypes = property(lambda self: self.shared.runner.dtypes, doc="The dtype of the output, in a list.")

    def __init__(self, shared: OpenRunner, attrs: Attrs, numbers: Sequence[float]):
        self.attrs, self.shared, self.recipes, self._numbers = attrs, shared, shared.recipes, numbers

    def __getattr__(self, name: str) -> Any:
        """The function of the operator, or the constants of its gradient: many uses need only one of them."""
        if name == "single":
            self.single = self.shared.forward(self.shared.constants(self._numbers))
        elif name == "constants":
            self.constants = self.shared.constants(self._numbers, True)
        else:
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def __call__(self, arrays: Sequence[Array], out: Array | None = None) -> list[Array]:
        return [self.single(*arrays)]  # type: ignore[misc]  # it is never None


class _RunnerOnDevice(Runner):
    """A runner that enters its device, for machines with several devices."""

    __slots__ = ()

    def __init__(self, op: Op, attrs: Attrs, arrays: Sequence[Array], ctx: Context, is_train: bool):
        with ctx.entered():
            super().__init__(op, attrs, arrays, ctx, is_train)
        self._function = functools.partial(ctx.run, self._function)

    def __call__(self, arrays: Sequence[Array], out: Array | None = None) -> list[Array]:
        with self.ctx.entered():
            return super().__call__(arrays, out)


def _report_draw(ctx: Context, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that reports, before it runs, that it draws random numbers."""
    place = ctx.backend_name, ctx.device_id

    def draw(*arrays: Array, **keywords: Any) -> Any:
        generators.before_draw(*place)
        return function(*arrays, **keywords)

    return draw


def _as_array(xp: ArrayModule, function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of 0-d arrays that returns an array; ufuncs would return a scalar."""
    return lambda *arrays, **keywords: xp.asarray(function(*arrays, **keywords))


def _check_count(op: Op, attrs: Attrs, arrays: Sequence[Array]) -> None:
    names = op.signature.inputs(attrs)
    if len(arrays) != len(names):
        raise ArgumentError(f"operator {op.name}: {other_count(names, len(arrays))}")


def infer_outputs(op: Op, attrs: Attrs, arrays: Sequence[Array]) -> tuple[Shapes, list[np.dtype]]:
    """Infer shapes and dtypes of the outputs, after a check of the number of inputs."""
    _check_count(op, attrs, arrays)
    specs = op.specs(arrays, attrs)
    return [shape for shape, _ in specs], [dtype or _FLOAT32 for _, dtype in specs]


class BoundRunner:
    """A single call of an operator whose kernel is bound to its arrays, such as a user's operator."""

    __slots__ = ("op", "count", "visible", "is_train", "_call")
    recipes = None

    def __init__(self, op: Op, attrs: Attrs, arrays: Sequence[Array], ctx: Context, is_train: bool,
                 wrap: Wrap | None):
        self.op, self.is_train = op, is_train
        shapes, dtypes = infer_outputs(op, attrs, arrays)
        self.count, self.visible = len(shapes), op.signature.visible(attrs)
        if op.rules.data_dependent:
            call = Call(op, attrs, list(arrays), [], [], ctx.xp, ctx, is_train, wrap=wrap)
            with Recording(False, is_train), ctx, ctx.entered():
                shapes = [unify(shape, computed) for shape, computed in zip(shapes, shapes_from_data(op, call))]
        if not all(map(is_known, shapes)):
            raise ShapeError(f"operator {op.name}: the shapes of its outputs cannot be inferred from those of its "
                             f"inputs")
        specs = list(map(Spec, shapes, dtypes))

        def empty(number: int, shape: Shape, dtype: np.dtype) -> Array:
            return ctx.backend.empty(shape, dtype, ctx.device_id)

        outs = [empty(0, *spec) for spec in specs]  # type: ignore[arg-type]  # known
        self._call = Call(op, attrs, list(arrays), outs, ["write"] * self.count, ctx.xp, ctx, is_train, None, specs,
                          empty, wrap, getattr(attrs, "memo", None))

    def __call__(self, choose: Callable[[Call], PreparedCall] = prepare) -> list[Array]:
        """Run the kernel that a function chooses, by default that of the highest order."""
        call = self._call
        with Recording(False, call.is_train), call.ctx, call.ctx.entered():
            for step in choose(call).steps()[0]:
                step()
        return call.outs


class FunctionRunner:
    """Calls of a user's function of arrays, whose outputs are known only when it has run. Attributes are passed to each
    call, since they hold this object."""

    __slots__ = ("op", "count", "visible", "ctx", "is_train", "_wrap", "_inputs")
    recipes = None

    def __init__(self, op: Any, attrs: Attrs, arrays: Sequence[Array], ctx: Context, is_train: bool,
                 wrap: Wrap):
        _check_count(op, attrs, arrays)
        self.op, self.ctx, self._wrap = op, ctx, wrap
        self._inputs, self.is_train = len(op.signature.arguments(attrs)), is_train
        self.count = self.visible = len(op.signature.outputs(attrs))

    def run(self, attrs: Any, arrays: Sequence[Array]) -> list[Array]:
        """Call the function with arrays, and return the raw outputs."""
        wrap, ctx, inputs = self._wrap, self.ctx, self._inputs
        values = [wrap(array, ctx, i < inputs) for i, array in enumerate(arrays)]
        with Recording(False, None), ctx, ctx.entered():
            results = attrs.compute(values, ctx, self.is_train)
            return [self._copy_if_shared(result, arrays) for result in results]

    def _copy_if_shared(self, result: object, arrays: Sequence[Array]) -> Array:
        """A result as an array that shares no memory with an input."""
        xp, raw = self.ctx.xp, getattr(result, "_data", result)
        if xp is not np and isinstance(raw, np.ndarray):
            return self.ctx.backend.asarray(raw, device=self.ctx.device_id)
        data = xp.asarray(raw)
        if not data.flags.c_contiguous:
            return xp.array(data, order="C")
        for array in arrays:
            if xp.may_share_memory(data, array):
                return xp.array(data, order="C")
        return data


class RawGradients(Protocol):
    """A prepared call that computes raw gradients itself: of a user's operator object, or of a compiled function."""

    is_train: bool

    def back(self, attrs: Any, out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array],
             needs: tuple[bool, ...], wrap: Any) -> Sequence[Array | None] | None:
        """Gradients of the inputs; None if the gradient rule of the operator has to compute them."""


#: The prepared call of an operator.
PreparedOperator: TypeAlias = CachedUse | BoundRunner | FunctionRunner | CustomRun
#: A prepared call, as the tape holds it.
Prepared: TypeAlias = PreparedOperator | RawGradients


def runner_of(op: Op, attrs: Any, arrays: Sequence[Array], ctx: Context) -> Runner | OpenUse:
    """The runner of a call with complete attributes, cached if the attributes can be compared."""
    is_train = MODE.__dict__["current"]().training if op.traits.mode or op.traits.states else True
    kind: list[object] = [op, attrs, is_train, ctx]
    if ctx.backend_name != "cpu":
        kind.append(tf32())
    for array in arrays:
        kind += array.shape, array.dtype
    key = tuple(kind)
    runner: Runner | OpenUse | None = _RUNNERS[key]
    if runner is None:
        edition = EDITION[0]
        find = op.rules.open_expressions
        opened = None if find is None or ctx.device is not None else find(attrs)
        if opened is not None:
            kind[1] = opened[0].answers
            open_key = tuple(kind)
            shared: OpenRunner | None = _RUNNERS[open_key]
            if shared is not None:
                runner = OpenUse(shared, attrs, opened[1])
        if runner is None:
            runner = (Runner if ctx.device is None else _RunnerOnDevice)(op, attrs, arrays, ctx, is_train)
            if opened is not None and runner.by_expression and arrays[0].shape != () and arrays[0].flags.c_contiguous:
                keep(_RUNNERS, open_key, OpenRunner(runner, opened[0]), edition)
        if attrs.lasting:
            keep(_RUNNERS, key, runner, edition)
    return runner


def run(op: Op, attrs: Any, arrays: Sequence[Array], ctx: Context, out: Array | None = None,
        wrap: Any = None) -> tuple[PreparedOperator, list[Array]]:
    """Apply an operator with complete attributes to raw arrays of one context.

    Returns
    -------
    prepared : CachedUse, BoundRunner, FunctionRunner or CustomRun
        What ran.
    results : list of arrays
        All outputs, then new auxiliary states if there are any.
    """
    prepared: BoundRunner | FunctionRunner | CustomRun | None = None
    runner: Runner | OpenUse | None = None
    if op.traits.traced and (len(op.kernels) == 1 or runs_body(op, ctx.xp)) and (
            result := BODY.function(op, attrs, arrays, ctx)) is not None:
        return result
    try:
        if op.kernels and op.kernels[0].bound:  # users' code, whose warnings are not suppressed
            runs = getattr(attrs, "runs", None)
            if runs is not None and len(op.kernels) == 1:  # a function, whose runners are cached with its attributes
                key = ctx, MODE.__dict__["current"]().training
                function = runs.get(key)
                if function is None:
                    function = runs[key] = FunctionRunner(op, attrs, arrays, *key, wrap)
                prepared = function
                return function, function.run(attrs, arrays)
            if getattr(attrs, "cache", None) is not None and len(op.kernels) == 1:
                often = custom_run(op, attrs, arrays, ctx)
                outs = often.outputs(wrap)
                prepared = often
                return often, often.run(attrs, arrays, outs, wrap)
            prepared = once = BoundRunner(op, attrs, arrays, ctx, MODE.training, wrap)
            return once, once()
        runner = runner_of(op, attrs, arrays, ctx)
        single = runner.single
        run_quietly = MODE.__dict__["current"]().run
        try:
            if single is not None and out is None:
                return runner, [run_quietly(single, *arrays)]
            return runner, run_quietly(runner, arrays, out)
        except RuntimeError as error:
            if not is_already_entered(error):
                raise
        return runner, runner(arrays, out)
    except Exception as error:
        if prepared is not None and op.where is not None:
            raise  # users' code, whose errors have notes already
        names = op.signature.inputs(attrs)
        shapes = ", ".join(f"{name} {show(a.shape)} {a.dtype}" for name, a in zip(names, arrays))
        note(error, f"operator {op.name} applied to {shapes or 'nothing'}")
        op.fail(error, () if runner is None else [*map(Spec, runner.shapes, runner.dtypes)])

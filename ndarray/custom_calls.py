"""Eager calls of operators that are a ``CustomOpProp``, prepared once for inputs of the same specs.

As in MXNet, each call makes a new Prop and a new operator, and calls the same methods of each Prop: a Prop may count
calls, pass itself to its operator, or read global state. If the code of its methods shows that it does none of these
(see ``opreg.custom.purity``), one Prop serves all calls with the same keywords, and is asked once for the same specs.
Checked answers are cached by operator, keywords, specs, context and mode, until an answer differs. The first run of an
operator class, and its first backward for the same inputs, are checked as those of a plan are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.core.keys import Same
from opreg.core.launch import Call, prepare
from opreg.core.mode import MODE
from opreg.core.spec import Shape, Spec, is_known
from opreg.custom.first_run import may_skip_checks
from opreg.custom.invocation import read_by, run_backward, run_forward
from opreg.custom.prop_use import operator_specs
from opreg.errors import ShapeError
from opreg.typing import Array

from .context import Context, current_context

__all__ = ["CustomRun", "Wrap", "custom_run"]

#: A function that makes an NDArray over a raw array, in a context.
Wrap: TypeAlias = Callable[..., Any]

_FLOAT32 = np.dtype(np.float32)


def custom_run(op: Any, attrs: Any, arrays: Sequence[Array], ctx: Context) -> CustomRun:
    """The prepared call for inputs with these specs. A Prop whose answers may vary is asked for shapes again, and for
    dtypes if it defines ``infer_type``."""
    runs, is_train = attrs.cache.runs, MODE.__dict__["current"]().training
    kind: list[object] = [is_train, ctx]
    for array in arrays:
        kind += array.shape, array.dtype
    key = tuple(kind)
    run = runs[key]
    if run is not None and attrs.answers_alike:
        return run
    inputs = arrays[:len(attrs.arguments)]
    shapes = [[*array.shape] for array in inputs]
    try:
        answers = attrs.prop.infer_shape(shapes), None
    except Exception as error:
        attrs.blame(error, "infer_shape", shapes)
        raise
    if not attrs.registered.plain_types or not inputs:
        answers = answers[0], attrs.ask("infer_type", [array.dtype.type for array in inputs])
    if run is None or not run.follows(answers):
        run = (CustomRun if ctx.device is None else _CustomRunOnDevice)(op, attrs, arrays, ctx, is_train, answers)
        runs.keep(key, run)
    return run


class CustomRun:
    """A call of a Prop's operator, prepared for inputs of given specs.

    Parameters
    ----------
    answers : tuple of two
        The results of ``infer_shape``, and of ``infer_type`` or None if that was not called.

    Attributes
    ----------
    count, visible : int
        Number of outputs.
    is_train : bool
        The mode.
    """

    __slots__ = ("count", "visible", "is_train", "_answers", "_specs", "_operator_specs", "_ctx", "_host", "_checked",
                 "_checked_back")
    recipes = None

    def __init__(self, op: Any, attrs: Any, arrays: Sequence[Array], ctx: Context, is_train: bool,
                 answers: tuple[Any, Any]):
        self.is_train, self._ctx, self._host = is_train, ctx, ctx.xp is np
        self.count = self.visible = len(attrs.outputs)
        nothing = [None] * self.count
        _, out_shapes = attrs.shapes_by(answers[0], [array.shape for array in arrays], nothing)
        _, out_dtypes = attrs.dtypes_by(answers[1], [array.dtype for array in arrays], nothing)
        if not all(map(is_known, out_shapes)):
            raise ShapeError(f"operator {op.name}: the shapes of its outputs cannot be inferred from those of its "
                             f"inputs")
        self._specs = [Spec(shape, dtype or _FLOAT32) for shape, dtype in zip(out_shapes, out_dtypes)]
        self._answers, self._operator_specs = _immutable_copy(answers), operator_specs(arrays)
        self._checked: Any = None  # the class of the operator whose first forward was checked
        self._checked_back: dict[tuple[bool, ...], tuple[type, tuple[int, ...]] | None] = {}

    def follows(self, answers: tuple[Any, Any]) -> bool:
        """Whether the call was prepared for equal answers."""
        try:
            return answers == self._answers
        except ValueError:  # comparing answers that contain arrays fails
            return False

    def outputs(self, wrap: Wrap) -> list[Any]:
        """New arrays for the outputs. Since their memory is not shared, writes need not be marked."""
        ctx = self._ctx
        if self._host:
            try:
                return [wrap(np.empty(shape, dtype), ctx) for shape, dtype in self._specs]
            except (MemoryError, ValueError):  # the back end raises an error with the size
                pass
        return [wrap(self._memory(i, *spec), ctx) for i, spec in enumerate(self._specs)]  # type: ignore[arg-type]

    def _memory(self, number: int, shape: Shape, dtype: np.dtype) -> Array:
        return self._ctx.backend.empty(shape, dtype, self._ctx.device_id)

    def run(self, attrs: Any, arrays: Sequence[Array], outs: list[Any], wrap: Wrap) -> list[Array]:
        """Make an operator and compute the outputs by it."""
        ctx, is_train, (shapes, dtypes), thread = self._ctx, self.is_train, self._operator_specs, MODE.__dict__
        mode = thread["current"]()
        try:
            thread["set"](mode.following.get((is_train, ctx)) or mode.for_users_code(is_train, ctx))
            prop = attrs.prop
            custom_op = attrs.make(ctx, [[*shape] for shape in shapes], [*dtypes])
            attrs.memo[Same(prop)] = custom_op
            if custom_op.__class__ is self._checked:
                count = len(attrs.arguments)
                aux = [wrap(array, ctx) for array in arrays[count:]] if len(arrays) > count else []
                run_forward(attrs, custom_op, is_train, ["write"] * self.count,
                            [wrap(array, ctx, True) for array in arrays[:count]], [*outs], aux)
            else:
                attrs.check(custom_op)
                self._first_run(attrs, arrays, [out._data for out in outs], self._specs, wrap)
                self._checked = custom_op.__class__ if may_skip_checks(custom_op) else None
        finally:
            thread["set"](mode)
        return [out._data for out in outs]

    def _first_run(self, attrs: Any, arrays: Sequence[Any], outs: list[Any], specs: Sequence[Spec],
                   wrap: Wrap) -> None:
        """Run with the checks of a first run."""
        ctx = self._ctx
        call = Call(attrs.op, attrs, list(arrays), outs, ["write"] * len(outs), ctx.xp, ctx, MODE.training, None, specs,
                    self._memory, wrap, attrs.memo)
        for step in prepare(call).steps()[0]:
            step()

    def back(self, attrs: Any, out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array],
             needs: tuple[bool, ...], wrap: Wrap) -> list[Array | None] | None:
        """Raw gradients of the inputs, by ``backward`` of the operator whose forward ran. None for a Prop with a
        gradient rule and for a traced body, whose gradients are computed elsewhere."""
        prop, ctx, thread = attrs.prop, self._ctx, MODE.__dict__
        if attrs.op.traits.traced or attrs.has_rule:
            return None
        count, (needed, unread), custom_op = len(attrs.arguments), attrs.reads(), attrs.memo[Same(prop)]
        inputs, states = ins[:count], [state._data for state in attrs.memo.get("states", ())]
        every: list[Any] = [*out_grads, *inputs, *outs]
        read = every if len(needed) == len(every) else [every[i] for i in needed]
        mode = thread["current"]()
        fits = mode.training is self.is_train and current_context() is ctx
        try:
            if not fits:
                thread["set"](mode.recorded(None, self.is_train).within(ctx))
            if self._checked_back.get(needs) == (custom_op.__class__, needed):
                into = [wrap(np.zeros(array.shape, array.dtype) if self._host else
                             ctx.backend.zeros(array.shape, array.dtype, ctx.device_id), ctx) for array in inputs]
                aux = [wrap(state, ctx) for state in states] if states else []
                reqs = ["write" if need else "null" for need in needs[:count]]
                run_backward(attrs, custom_op, False, reqs, *read_by(attrs, needed, read, ctx, wrap), [*into], aux)
                grads = [grad._data for grad in into]
            else:
                grads = [self._memory(i, data.shape, data.dtype) for i, data in enumerate(inputs)]
                self._first_run(attrs.backward(needs[:count]), [*read, *[ins[i] for i in unread], *states], grads,
                                [Spec(data.shape, data.dtype) for data in inputs], wrap)
                self._checked_back[needs] = (custom_op.__class__, needed) if may_skip_checks(custom_op) else None
        finally:
            if not fits:
                thread["set"](mode)
        return [*grads, *[None] * len(states)]


class _CustomRunOnDevice(CustomRun):
    """A prepared call that enters its device, for machines with several devices."""

    __slots__ = ()

    def run(self, attrs: Any, arrays: Sequence[Array], outs: list[Any], wrap: Wrap) -> list[Array]:
        with self._ctx.entered():
            return super().run(attrs, arrays, outs, wrap)


def _immutable_copy(answer: Any) -> Any:
    """An immutable copy of an answer. A part that cannot be copied becomes an object that equals nothing."""
    if answer.__class__ is list or answer.__class__ is tuple:
        return answer.__class__(map(_immutable_copy, answer))
    if answer is None or isinstance(answer, (int, str, type, np.dtype)):
        return answer
    return object()

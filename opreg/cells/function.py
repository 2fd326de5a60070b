"""_Function: an operator of two static methods, forward and backward, with a context between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from opreg.ndarray import tape
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.overwritten import OverwrittenArray, overwritten_error

from ..core.gradient import fit_gradient
from ..core.mode import MODE, Recording
from ..core.parameters import signature_of
from ..core.registry import ops
from ..core.rules import as_list
from ..core.versions import LATEST, write_count, written
from ..errors import ArgumentError, DTypeError, NotDifferentiableError, OpError, note
from .application import Application, Gradients, application_op, in_dtype_of, saved_tensor_error, spread, traced
from .class_hooks import attributes_of
from .parameter import Parameter
from .state import STATE
from .tensor import FRESH, Tensor, copy_on_write, tensor, tensor_over
from .tensor_base import TensorBase
from .trace import FunctionTracer
from .traced_tensor import TracedTensor
from .tree import LEAF, Structure, count, flatten, names, rebuild

__all__ = ["_Function"]


class _Function:
    """An operator with its own gradient: derive from it, define ``forward`` and ``backward``, and call ``apply``.

    ``forward(ctx, *args)`` computes outputs; ``backward(ctx, *grads)`` receives a gradient for each output, and returns
    one for each argument of ``forward``; None stands for values that are no tensors. Both are written in operators, and
    run eagerly or compiled.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        In the context: for each argument, whether it is a tensor whose gradient is wanted.
    saved_tensors : tuple
        In the context: the tensors given to ``save_for_backward``.

    Examples
    --------
    >>> from opreg import Tensor, grad
    >>> class Cube(_Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * x * x * 3
    >>> grad(Cube.apply)(Tensor([1.0, 2.0]))
    Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  1.20000000e+01])
    """

    needs_input_grad: tuple[bool, ...] = ()
    saved_tensors: tuple[TensorBase | None, ...] = ()
    materialize_grads = True
    dirty_tensors: tuple[TensorBase, ...] = ()
    non_differentiable: tuple[TensorBase, ...] = ()

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: a tensor, or a nesting of tensors and other values."""
        raise NotImplementedError("forward function should be customized.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **kwargs: Any) -> Any:
        """Compute a gradient for each argument of ``forward``."""
        raise NotImplementedError("backward function should be customized.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save values for ``backward``; if this is defined, ``forward`` is called without the context."""
        raise NotImplementedError("setup_context is not implemented.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the operator.

        Raises
        ------
        RuntimeError
            When ``backward`` does not return a tensor or None for each argument; when a gradient's shape cannot be
            summed to the argument's; when a marked value is no tensor, or no output.
        NotDifferentiableError
            When a second derivative depends on a saved tensor that is neither argument nor output.
        """
        call = _Call(cls, cls._positional(args, kwargs))
        return call.eager() if STATE.trace is None else call.traced(STATE.trace)

    @classmethod
    def _positional(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Positional arguments, with keyword arguments and needed defaults put in their places."""
        setup = cls.setup_context is not _Function.setup_context
        if not kwargs and not setup:
            return args
        bound = signature_of(cls.forward).bind(*(() if setup else (None,)), *args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(f"{cls.__name__}.apply: backward returns gradients by position: forward must take "
                                f"{', '.join(bound.kwargs)} by position, too")
        return bound.args if setup else bound.args[1:]

    def save_for_backward(self, *tensors: TensorBase | None) -> None:
        """Save tensors, or None, for ``backward``, which reads ``saved_tensors``."""
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors: TensorBase) -> None:
        """Mark arguments that were changed in place; they must be returned."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: TensorBase) -> None:
        """Mark outputs without a gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether ``backward`` receives zeros (the default) or None for outputs that no gradient reaches."""
        self.materialize_grads = value


def _find_tensors(value: object, values: Sequence[object]) -> bool:
    return any(member is value for member in values)


class _Call(Application):
    """One call of a ``_Function``."""

    def __init__(self, function: type[_Function], args: tuple[Any, ...]):
        self.leaves: list[Any] = []
        structure = flatten(list(args), self.leaves)
        super().__init__(function.__name__, function.__name__, structure, len(self.leaves))
        self.function, self.context = function, function()
        self.differentiable: list[bool] = []
        #: The context's attributes without tensors, and the origin of each of its tensors.
        self.state = LEAF
        self.sources: list[tuple[str, int]] = []
        self.kept: list[Tensor] = []
        self.number = 0  # the number of results, set by the call

    # ---------------------------------------------------------------------------------------------- forward

    def forward(self, values: Sequence[TensorBase], needs: Sequence[bool]) -> list[Any]:
        """Run ``forward`` on tensors in the places of the leaves; returns the tensors of the outputs."""
        function, ctx = self.function, self.context
        flags = iter(needs)
        ctx.needs_input_grad = tuple([any(list(itertools.islice(flags, count(part)))) for part in self.inputs[2]])
        args = rebuild(self.inputs, iter(values))
        try:
            if function.setup_context is _Function.setup_context:
                out = function.forward(ctx, *args)
            else:
                out = function.forward(*args)
                function.setup_context(ctx, tuple(args), out)
        except Exception as error:
            note(error, f"in the forward of {self.title}")
            raise
        outs: list[TensorBase] = []
        self.out = flatten(out, outs)
        for name in ("non_differentiable", "dirty_tensors"):
            for marked in getattr(ctx, name):
                if not isinstance(marked, TensorBase):
                    raise DTypeError(f"{self.title}: element of {name} should be a tensor, got "
                                     f"{type(marked).__name__}")
        if not all(_find_tensors(dirty, outs) for dirty in ctx.dirty_tensors):
            raise OpError(f"{self.title}: The dirty tensors must all be outputs of the forward function.")
        self.visible, self.differentiable = len(outs), [not _find_tensors(out, ctx.non_differentiable) for out in outs]
        return outs

    def keep(self, values: Sequence[TensorBase], changed: Sequence[int], outs: Sequence[TensorBase]) -> list[Any]:
        """Find the origin of each tensor in the context; returns those that forward computed and are no outputs."""
        ctx = self.context
        for saved in ctx.saved_tensors:
            if not (saved is None or isinstance(saved, TensorBase)):
                raise DTypeError(f"{self.title}: save_for_backward: only support None and tensor, got "
                                 f"{type(saved).__name__}")
        marks = ("dirty_tensors", "non_differentiable")
        leaves: list[TensorBase] = []
        self.state = flatten({name: value for name, value in attributes_of(ctx).items() if name not in marks}, leaves)
        places = {id(out): ("outs", j) for j, out in enumerate(outs)}
        places.update((id(value), ("ins", i)) for i, value in enumerate(values) if i not in changed)
        tensors: list[TensorBase] = []
        for leaf in leaves:
            place = places.get(id(leaf))
            if place is None:
                place = places[id(leaf)] = "kept", len(tensors)
                tensors.append(leaf)
            self.sources.append(place)
        return tensors

    # ---------------------------------------------------------------------------------------------- eager

    def eager(self) -> Any:
        leaves = self.leaves = [tensor(leaf) for leaf in self.leaves]
        copies = [leaf if isinstance(leaf, Parameter) else _forward_argument(leaf) for leaf in leaves]
        recorded = [MODE.recording and leaf._entry is not None for leaf in leaves]
        with Recording(False, None):
            outs = self.forward(copies, recorded)
        changed = [i for i, (leaf, copy) in enumerate(zip(leaves, copies)) if copy._data is not leaf._data]
        arrays = [leaf._data for leaf in leaves]
        results, taped = [], []
        for out, is_differentiable in zip(outs, self.differentiable):
            at = next((i for i in changed if copies[i] is out), None)
            results.append(tensor_over(out._data, out._ctx) if at is None else leaves[at])
            taped.append(results[-1] if is_differentiable else tensor_over(out._data, out._ctx))
        for i in changed:
            if recorded[i]:
                self._check_change(leaves[i], copies[i])
            leaves[i]._data = copies[i]._data
        if MODE.recording and any(self.differentiable):
            self.kept, self.number = self.keep(copies, changed, outs), write_count()
            tape.record(_TAPED, self, leaves, arrays, taped, None, MODE.recording)
        self.leaves = []  # the tape holds this object; references to its outputs would be a cycle
        return rebuild(self.out, iter(results))

    def _check_change(self, leaf: Tensor, copy: Tensor) -> None:
        if not _find_tensors(copy, self.context.dirty_tensors):
            raise OpError(f"{self.title}: forward changed an argument in place: return it, and say so with "
                          "ctx.mark_dirty")
        if leaf._entry[0].op is None or leaf._entry[0].op is FRESH:
            raise OpError(f"{self.title}: A leaf tensor that need grad is being used in an inplace operator: an "
                          "argument of the function that is differentiated must not be changed")

    # ------------------------------------------------------------------------------------------ in a graph

    def traced(self, trace: FunctionTracer) -> Any:
        changed: list[int] = []

        def run(slots: Sequence[TracedTensor]) -> list[TensorBase]:
            before = [slot._entry for slot in slots]
            outs = self.forward(slots, [True] * len(slots))
            changed.extend(i for i, (slot, entry) in enumerate(zip(slots, before)) if slot._entry != entry)
            places.extend(next((i for i in changed if slots[i] is out), None) for out in outs)
            for i in changed:
                if i not in places or not _find_tensors(slots[i], self.context.dirty_tensors):
                    raise OpError(f"{self.title}: forward changed an argument in place: return it, and say so with "
                                  "ctx.mark_dirty")
            return [*outs, *self.keep(slots, changed, outs)]

        places: list[int | None] = []
        words = [parameter for parameter in signature_of(self.function.forward).parameters if parameter != "ctx"]
        outs = traced(trace, self, _APPLIED, self.leaves, names(words, self.inputs[2]), run)
        results: list[Any] = [out if wanted else ops.BlockGrad(out) for out, wanted in zip(outs, self.differentiable)]
        for i, (result, at) in enumerate(zip(results, places)):
            if at is not None:
                results[i] = _changed_argument(trace, self.leaves[at], result)
        return rebuild(self.out, iter(results))

    # --------------------------------------------------------------------------------------------- backward

    def _compute(self, out_grads: Sequence[TensorBase | None], ins: Sequence[TensorBase], outs: Sequence[TensorBase]
                 ) -> Gradients:
        function, ctx = self.function, self._context(ins, outs)
        if ctx.materialize_grads:
            out_grads = [ops.zeros_like(out) if g is None else g for g, out in zip(out_grads, outs)]
        try:
            returned = function.backward(ctx, *_arguments(self.out, iter(out_grads)))
        except Exception as error:
            note(error, f"in the backward of {self.title}")
            raise
        return self._gradients(returned, ins), []

    def _context(self, ins: Sequence[TensorBase], outs: Sequence[TensorBase]) -> _Function:
        """The context whose tensors are recorded ones, or values of the trace that computes gradients."""
        if STATE.trace is not None:
            tensors: Sequence[TensorBase] = outs[self.visible:]
        elif MODE.recording:
            tensors = [_without_gradient(tensor, ins, self.title) for tensor in self.kept]
        elif LATEST[0] > self.number:
            tensors = list(map(self._saved_value, self.kept))
            if not any(isinstance(value._data, OverwrittenArray) for value in (*ins, *outs, *tensors)):  # type: ignore[attr-defined]
                return self.context
        else:
            return self.context
        values = {"ins": ins, "outs": outs, "kept": tensors}
        ctx = self.function()
        attributes_of(ctx).update(rebuild(self.state, (values[what][i] for what, i in self.sources)))
        return ctx

    def _saved_value(self, value: Tensor) -> Tensor:
        """A saved tensor, or one that raises an error if it was written to since."""
        write = written(value._data, self.number)
        if write is None:
            return value
        text = overwritten_error(f"operator {self.title}", "saved tensor", value._data, write)
        return tensor_over(OverwrittenArray.of(value._data, text), value._ctx)

    def _gradients(self, returned: object, ins: Sequence[TensorBase]) -> list[TensorBase | None]:
        gradients = as_list(returned)
        parts = self.inputs[2]
        if len(gradients) < len(parts) or any(g is not None for g in gradients[len(parts):]):
            raise OpError(f"{self.title}: Function backward return a wrong number of gradients, expected {len(parts)} "
                          f"but got {len(gradients)}")
        leaves, result = iter(ins), list[TensorBase | None]()
        for position, (part, g) in enumerate(zip(parts, gradients)):
            size = count(part)
            if not size and g is not None:
                raise OpError(f"{self.title}: Input is not tensor, but gradient is not none, position: {position} "
                              f"type: {type(g).__name__}")
            several = [None] * size if g is None else [g] if part is LEAF else list(spread(g))
            if len(several) != size:
                raise OpError(f"{self.title}: argument {position} has {size} tensors, backward returned {len(several)} "
                              "gradients for it")
            result += [self._fit_gradient(position, g, next(leaves)) for g in several]
        return result

    def _fit_gradient(self, position: int, g: object, value: TensorBase) -> TensorBase | None:
        if g is None:
            return None
        if not isinstance(g, TensorBase):
            raise OpError(f"{self.title}: Gradient should be none or tensor, position: {position} type: "
                          f"{type(g).__name__}")
        return in_dtype_of(fit_gradient(
            g, value, f"{self.title}: For custom function, grad tensor should be broadcast to expected shape: the "
                      f"gradient of argument {position}"), value)


def _arguments(structure: Structure, out_grads: Iterator[TensorBase | None]) -> list[Any]:
    """Output gradients as ``backward`` receives them: one argument for each part of the output."""
    several = structure is not LEAF and structure[0] in ("tuple", "list")
    return [None if part is not LEAF and part[0] == "constant" else rebuild(part, out_grads)
            for part in (structure[2] if several else [structure])]


def _forward_argument(leaf: Tensor) -> Tensor:
    """The tensor as ``forward`` receives it: in-place changes affect the caller's only if they are marked."""
    result = copy_on_write(leaf)
    result.__dict__ = leaf.__dict__
    return result


def _changed_argument(trace: FunctionTracer, leaf: Tensor | TracedTensor, result: TracedTensor) -> TensorBase:
    """The argument with the values that an in-place change gave it."""
    if isinstance(leaf, TracedTensor):
        leaf._entry, leaf._spec = result._entry, result._spec
        return leaf
    trace.assign(leaf, result)
    return trace.read(leaf)


def _gradients(g: NDArray | tuple[NDArray | None, ...], ins: Sequence[NDArray], outs: Sequence[NDArray], call: _Call,
               needs: Sequence[bool], is_train: bool = True) -> Sequence[Any]:
    out_grads = [None if top is None else copy_on_write(top) for top in (g if isinstance(g, (tuple, list)) else (g,))]
    return call.compute(out_grads, list(map(copy_on_write, ins)), list(map(copy_on_write, outs)))[0]


def _refuse_gradient(g: object, ins: object, outs: object, title: str, needs: object,
                     is_train: bool = True) -> NoReturn:
    raise NotDifferentiableError(saved_tensor_error(title))


def _without_gradient(value: Tensor, ins: Sequence[Any], title: str) -> Tensor:
    result = tensor_over(value._data, value._ctx)
    tape.record(_SAVED_TENSOR, title, ins, [array._data for array in ins], [result])
    return result


#: The application of a ``_Function`` on the tape, and in a graph.
_TAPED = tape.TapedFunction("_Function", _gradients, 1 << 30, optional_out_grads=True)
_APPLIED = application_op("_function", "the bprop of a _Function", optional_out_grads=True)
#: A tensor that forward computed and saved: its dependence on the arguments is unknown.
_SAVED_TENSOR = tape.TapedFunction("_Function", _refuse_gradient)

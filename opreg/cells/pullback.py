"""Pullback: the backward pass from a function's outputs to its differentiated inputs.

It runs on the tape, or adds nodes in a compiled function, and may run more than once.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opreg.ndarray import backward_pass, tape
from opreg.ndarray.finite import recording_value
from opreg.ndarray.ndarray import NDArray

from ..core.mode import MODE
from ..core.registry import ops
from ..core.spec import Spec, show
from ..errors import ArgumentError, DTypeError, OpError, ShapeError
from . import tree
from .gradient_tags import through_hooks
from .parameter import Parameter
from .state import STATE
from .tensor import TENSORS, Tensor, as_tensor, fresh, tensor, tensor_over, zeros_as
from .tensor_base import TensorBase
from .tensor_hooks import gradient_chain, through_own_hooks
from .trace import FunctionTracer
from .traced_tensor import TracedTensor
from .tree import Structure
from .typing import TensorLike
from .variables import begin, end

__all__ = ["Pullback", "pullback", "differentiate", "check_not_blocked", "name_of"]

#: The code of functions, and the classes of Cells, of which a warning was given.
_WARNED: weakref.WeakSet[Any] = weakref.WeakSet()


def name_of(function: object) -> str:
    """The name of a function or Cell in errors."""
    return getattr(function, "__name__", None) or type(function).__name__


def _is_first(function: object) -> bool:
    """Whether a function, or a Cell's class, has had no warning so far; others of the same name have their own."""
    code = getattr(function, "__code__", None) or type(function)
    first = code not in _WARNED
    _WARNED.add(code)
    return first


class _Inputs:
    """The inputs of a call by position: arguments, then keywords in the order of the call.

    Attributes
    ----------
    leaves : list of Tensor
        Tensors of the differentiated inputs, those of one input in a row.
    bare : bool
        Whether all differentiated inputs are tensors themselves.
    """

    __slots__ = ("_values", "_args", "_kwargs", "_structures", "leaves", "bare")

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any], positions: Sequence[int]):
        values: Sequence[Any] = [*args, *kwargs.values()] if kwargs else args
        structures: dict[int, Structure] = {}  # by position
        leaves: list[Any] = []
        bare = True
        for i in positions:
            if i in structures:
                continue
            value = values[i]
            if value.__class__ in TENSORS:
                leaves.append(value)
                structures[i] = tree.LEAF
                continue
            inner: list[TensorLike] = []
            structures[i] = tree.variables(value, inner)
            leaves += map(tensor, inner)
            bare = bare and structures[i] is tree.LEAF
        self._values, self._args, self._kwargs, self._structures = values, args, kwargs, structures
        self.leaves, self.bare = leaves, bare

    def call(self, function: Callable, variables: Sequence[TensorBase]) -> Any:
        """Call the function with variables in the places of the leaves."""
        values = list(self._values)
        if not self.bare:
            leaves = iter(variables)
            variables = [tree.rebuild(structure, leaves) for structure in self._structures.values()]
        for i, variable in zip(self._structures, variables):
            values[i] = variable
        if not self._kwargs:
            return function(*values)
        count = len(self._args)
        return function(*values[:count], **dict(zip(self._kwargs, values[count:])))

    def nest_gradients(self, gradients: Sequence[TensorBase], positions: Sequence[int]) -> list[Any]:
        """Gradients of the leaves in the structure of the inputs, with None in the place of values that are no
        tensors."""
        leaves = iter(gradients)
        nested = {i: tree.rebuild(structure if structure is tree.LEAF else tree.without_constants(structure), leaves)
                  for i, structure in self._structures.items()}
        return [nested[i] for i in positions]


class Pullback:
    """A function that has run, and its backward pass to inputs and weights.

    Attributes
    ----------
    out
        Its results.
    heads : list of tensors
        The outputs whose sum is differentiated.
    """

    __slots__ = ("out", "heads", "_inputs", "_positions", "_weights", "_variables", "_entries")

    out: Any
    heads: Sequence[TensorBase]
    _inputs: _Inputs
    _positions: Sequence[int]
    _weights: Sequence[Parameter]
    _variables: Sequence[TensorBase]
    _entries: list[Any]

    @property
    def entries(self) -> Sequence[Any]:
        """Entries of the differentiated tensors."""
        return self._entries[:len(self._inputs.leaves)]

    def __call__(self, seed: object = None, keep: bool = False) -> tuple[Sequence[Any], Sequence[TensorBase]]:
        """Gradients by position, in the structure of the inputs, and gradients of weights.

        Parameters
        ----------
        seed : tensor or nesting of tensors, optional
            Gradients of the heads; ones by default.
        keep : bool
            Whether the backward pass will run again.
        """
        grads, by_weight = self._input_gradients(None if seed is None else _seeds(self.heads, seed), keep)
        if by_weight:
            by_weight = [_gradient_after_hooks(weight, g) if g is None or weight._hooks else g
                         for weight, g in zip(self._weights, by_weight)]
        if not self._inputs.bare or len(grads) != len(self._positions):
            grads = self._inputs.nest_gradients(grads, self._positions)
        return grads, by_weight

    def _input_gradients(self, out_grads: Sequence[Tensor] | None, keep: bool
              ) -> tuple[Sequence[TensorBase], Sequence[Any]]:
        """Gradients of the leaves, and of the weights, with None for untrained ones."""
        raise NotImplementedError


class _TapePullback(Pullback):
    """Pullback of a function that runs eagerly."""

    __slots__ = ("_trained",)

    _trained: dict[int, int]  # positions of weights among the variables
    heads: list[Tensor]
    _variables: list[Tensor]

    def __init__(self, function: Callable, inputs: _Inputs, positions: Sequence[int], weights: Sequence[Parameter],
                 first_only: bool):
        self._inputs, self._positions, self._weights = inputs, positions, weights
        thread, nested = MODE.__dict__, STATE.nested
        mode = thread["current"]()
        again = mode.recording
        arguments: list[Tensor] = []
        self._entries = entries = []
        for leaf in inputs.leaves:
            variable = fresh(leaf)
            arguments.append(variable)
            entries.append(variable._entry)
        self._variables = arguments
        trained: list[Parameter] = []
        of_weights: list[tape.TapeEntry] = []
        if weights:
            self._trained = places = {}
            for weight in weights:
                if weight._requires_grad and id(weight) not in places:
                    places[id(weight)] = len(arguments) + len(trained)
                    trained.append(weight)
            self._variables = [*arguments, *trained]
            of_weights = begin(trained, again)
            entries += of_weights
        surrounding = STATE.weights
        try:
            choice = again or recording_value(), None
            thread["set"](mode.following.get(choice) or mode.recorded(*choice))
            if weights:
                STATE.weights = (*surrounding, *weights)
            STATE.nested = again
            out = inputs.call(function, arguments)
            # A weight that is a result gets the value that it had while the function ran.
            self.heads = [out] if out.__class__ is Tensor and not first_only else [
                _variable(head, head._entry) if isinstance(head, Parameter) else as_tensor(head)
                for head in _heads(function, out, first_only)]
        finally:
            STATE.nested, STATE.weights = nested, surrounding
            try:
                thread["set"](mode)
            finally:
                if weights:
                    end(trained, of_weights, again)
        self.out = out if again else _drop_record(out)

    def _input_gradients(self, out_grads: Sequence[Tensor] | None, keep: bool
              ) -> tuple[Sequence[TensorBase], Sequence[TensorBase | None]]:
        heads, variables, entries, leaves = self.heads, self._variables, self._entries, self._inputs.leaves
        for head in heads:
            if getattr(head, "_entry", None) is None:
                recorded = [i for i, head in enumerate(heads) if getattr(head, "_entry", None) is not None]
                heads = [heads[i] for i in recorded]
                out_grads = None if out_grads is None else [out_grads[i] for i in recorded]
                break
        if not heads or not entries:
            gradients = [zeros_as(variable) for variable in variables]
        elif MODE.current().recording:
            gradients = [_variable(g, g._entry) for g in backward_pass.gradients(
                heads, list(map(_variable, variables, entries)), out_grads, True, True, None)]
        else:
            raw = backward_pass.raw_gradients(heads, variables, entries, out_grads, keep, None)
            gradients = [tensor_over(data, variable._ctx) for data, variable in zip(raw, variables)]
        for i, leaf in enumerate(leaves):
            if leaf._entry is not None or entries[i][0].attrs is not None:  # a leaf with an entry may have hooks
                gradients[i] = through_own_hooks(leaf._entry, through_own_hooks(entries[i], gradients[i]))
        if not self._weights:
            return gradients, []
        places = self._trained
        return gradients[:len(leaves)], [gradients[places[id(weight)]]
                                         if weight._requires_grad and id(weight) in places else None
                                         for weight in self._weights]


class _InTrace(Pullback):
    """Pullback of a function that is being compiled."""

    __slots__ = ("_weight_entries",)

    heads: list[TracedTensor]
    _variables: list[TracedTensor]

    def __init__(self, trace: FunctionTracer, function: Callable, inputs: _Inputs, positions: Sequence[int],
                 weights: Sequence[Parameter], first_only: bool):
        self._inputs, self._positions, self._weights = inputs, positions, weights
        if trace.root.hooked.intersection([leaf._entry for leaf in inputs.leaves]):
            trace.leave("it is differentiated with respect to an argument with hooks, which differ from call to call")
        for leaf in inputs.leaves:
            if leaf.__class__ is Tensor and leaf._entry is None:  # a tensor from outside, which may get hooks later
                trace.reads.comparisons.path(leaf, "{}._entry", None, "the hooks of a tensor")
        if trace.reads.observer is not None:
            trace.reads.observer.note_use(function)
        self._variables = [ops._copy(trace.read(leaf)) for leaf in inputs.leaves]
        # stored before the function may change the leaves' entries
        self._entries = [variable._entry for variable in self._variables]
        trace.arguments.update((entry, None) for entry in self._entries)
        self._weight_entries = [trace.read(weight)._entry for weight in weights]
        root = trace.root
        root.differentiates, root.differentiating = True, root.differentiating + 1
        try:
            self.out = inputs.call(function, list(self._variables))
        finally:
            root.differentiating -= 1
        self.heads = [trace.read(head) for head in _heads(function, self.out, first_only)]

    def _input_gradients(self, out_grads: Sequence[Tensor] | None, keep: bool
              ) -> tuple[Sequence[TensorBase], Sequence[TensorBase | None]]:
        trace, leaves = STATE.trace, self._inputs.leaves
        assert trace is not None
        if out_grads is None:
            pairs = [(head, ops.ones_like(head)) for head in self.heads]
        else:
            pairs = [(head, trace.read(seed)) for head, seed in zip(self.heads, out_grads)]
        gradients = trace.differentiate(pairs, [*self._entries, *self._weight_entries])
        grads = [ops.zeros_like(variable) if g is None else g for variable, g in zip(self._variables, gradients)]
        for i, (leaf, entry) in enumerate(zip(leaves, self._entries)):
            grads[i] = through_own_hooks(leaf._entry, through_own_hooks(entry, grads[i]))
        of_weights = gradients[len(leaves):]
        return grads, [g if weight._requires_grad else None for weight, g in zip(self._weights, of_weights)]


def check_not_blocked(function: object) -> None:
    """Refuse to differentiate inside ``no_grad``."""
    if MODE.current().blocked:
        raise OpError(f"grad of {name_of(function)}: In no_grad context, you can not calculate gradient")


def pullback(function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any], positions: Sequence[int],
             weights: Sequence[Parameter] = (), first_only: bool = False) -> Pullback:
    """Run a function so that it can be differentiated.

    Parameters
    ----------
    function : callable
        A function that returns a tensor, or a nesting of tensors.
    args, kwargs
        Its arguments.
    positions : sequence of int
        Positions of the differentiated inputs, counted over arguments, then keywords: all tensors in these inputs.
    weights : sequence of Parameter
        Further variables.
    first_only : bool
        Whether only the first of several outputs is differentiated.
    """
    if MODE.current().blocked:
        check_not_blocked(function)
    trace, inputs = STATE.trace, _Inputs(args, kwargs, positions)
    if trace is None:
        return _TapePullback(function, inputs, positions, weights, first_only)
    return _InTrace(trace, function, inputs, positions, weights, first_only)


def differentiate(function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any], positions: Sequence[int],
                  weights: Sequence[Parameter] = (), first_only: bool = False, seed: object = None
                  ) -> tuple[Any, Sequence[Any], Sequence[TensorBase]]:
    """The results of a function, and its gradients by position and of weights; see ``pullback``."""
    back = pullback(function, args, kwargs, positions, weights, first_only)
    if seed is None and len(back.heads) > 1 and not first_only and _is_first(function):
        warnings.warn(f"grad of {name_of(function)}: it returns {len(back.heads)} tensors; the gradient is that of "
                      f"their sum. With has_aux=True only the first is differentiated.", UserWarning, stacklevel=4)
    if back.out is None and _is_first(function):
        warnings.warn(f"grad of {name_of(function)}: it returned None, so its gradients are zero. Is a return missing?",
                      UserWarning, stacklevel=4)
    return back.out, *back(seed)


def _variable(like: NDArray, entry: tuple[tape.TapeNode, int] | None) -> Tensor:
    result = tensor_over(like._data, like._ctx)
    result._entry = entry
    return result


def _gradient_after_hooks(weight: Parameter, g: TensorBase | None) -> TensorBase:
    """A weight's gradient after its hooks; zeros if it has none."""
    if g is None:
        g = zeros_as(weight) if STATE.trace is None else \
            ops.zeros_like(STATE.trace.read(weight))
    if not weight._hooks:
        return g

    title = f"Parameter {weight.name}"
    return through_hooks(functools.partial(gradient_chain, weight._hooks, title), [[g]],
                         [[Spec(weight.shape, weight._dt)]], 0, title)[0]


def _drop_record(out: Any) -> Any:
    """Return the value without its record on the tape, which one backward pass has used."""
    if out.__class__ is Tensor:
        return tensor_over(out._data, out._ctx)
    return tree.map_tensors(lambda leaf: leaf if isinstance(leaf, Parameter) or leaf._entry is None else
                            tensor_over(leaf._data, leaf._ctx), out)


def _heads(function: object, out: object, first_only: bool) -> list[Any]:
    """The outputs whose sum is differentiated."""
    if not first_only:
        return [out] if isinstance(out, TensorBase) else tree.tensors(out)
    if not isinstance(out, (tuple, list)) or len(out) < 2:
        counted = "" if isinstance(out, (tuple, list)) else ", got 1"
        raise ArgumentError(f"grad of {name_of(function)}: has_aux needs at least 2 outputs{counted}")
    return tree.tensors(out[0])


def _seeds(heads: Sequence[TensorBase], out_grads: object) -> Sequence[Tensor]:
    """The gradients of the heads, from the caller's argument."""
    seeds: Sequence[Tensor] = [out_grads] if isinstance(out_grads, Tensor) else tree.tensors(out_grads)
    if len(seeds) != len(heads):
        raise ArgumentError(f"grad: expected {len(heads)} sensitivities, one for each output, got {len(seeds)}")
    for i, (head, seed) in enumerate(zip(heads, seeds)):
        if seed.shape != head.shape:
            raise ShapeError(f"grad: sensitivity {i} has shape {show(seed.shape)}, expected {show(head.shape)}")
        if seed._dt != head._dt:
            raise DTypeError(f"grad: sensitivity {i} has dtype {seed._dt}, expected {head._dt}")
    return seeds

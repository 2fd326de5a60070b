"""grad: gradients of functions and Cells, eagerly on the tape, in compiled functions as further nodes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import tape
from opreg.ndarray.ndarray import NDArray

from ..errors import ArgumentError, DTypeError, OpError, ShapeError
from ..mode import MODE, Recording
from ..registry import ops
from ..spec import Spec, show
from . import tree
from .hooks import gradient_chain, through_hooks, through_own_hooks
from .jit import Jitted, jit
from .manners import Manners
from .parameter import Parameter, parameters
from .state import STATE, compiles
from .tensor import Tensor, fresh, made, tensor

__all__ = ["grad", "value_and_grad", "GradOperation", "get_grad", "jvp", "vjp", "jacrev", "jacfwd", "stop_gradient",
           "no_grad"]

_WARNED: set[str] = set()


class no_grad(Recording):
    """A stretch of code, or a function, whose computations have no gradient."""

    def __init__(self) -> None:
        super().__init__(False, None)

    def __enter__(self) -> no_grad:
        super().__enter__()
        STATE.blocked += 1
        return self

    def __exit__(self, *error: Any) -> None:
        STATE.blocked -= 1
        super().__exit__(*error)

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def inside(*args: Any, **keywords: Any) -> Any:
            with no_grad():
                return function(*args, **keywords)

        return inside


def stop_gradient(value: Any) -> Any:
    """The same numbers, through which no gradient passes.

    Examples
    --------
    >>> grad(lambda x: stop_gradient(x) * x)(Tensor(3.0))
    Tensor(shape=[], dtype=Float32, value= 3)
    """
    return ops.BlockGrad(tensor(value))


# ------------------------------------------------------------------------------------------------- the engine


def _named(function: Any) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def _differentiate(function: Callable, args: Sequence[Any], kwargs: dict[str, Any], positions: Sequence[int],
                   weights: Sequence[Parameter], first_only: bool, seed: Any = None) -> tuple[Any, list, list]:
    """The value of a function, gradients of arguments and of weights."""
    if STATE.blocked:
        raise OpError(f"grad of {_named(function)}: In no_grad context, you can not calculate gradient")
    if STATE.trace is not None:
        return _in_trace(function, args, kwargs, positions, weights, first_only, seed)
    again = MODE.recording
    given = list(args)
    places: dict[int, Tensor] = {}
    for i in positions:
        if i not in places:
            places[i] = given[i] = fresh(given[i])
    variables, entries = [places[i] for i in positions], [places[i]._entry for i in positions]
    before = [(weight, weight._entry) for weight in weights]
    leaves: dict[int, int] = {}  # places among the variables
    for weight in weights:
        if weight._requires_grad and id(weight) not in leaves:
            leaves[id(weight)] = len(variables)
            variables.append(weight)
            weight._entry = fresh(weight)._entry
            entries.append(weight._entry)
    nested = STATE.nested
    MODE.recording, STATE.nested = True, again
    try:
        out = function(*given, **kwargs)
    finally:
        MODE.recording, STATE.nested = again, nested
        for weight, entry in before:
            weight._entry = entry
    found = _found(_heads(function, out, first_only, seed is not None), seed, variables, entries, again)
    for at, i in enumerate(positions):
        if entries[at][0].attrs is not None or args[i]._entry is not None:  # perhaps it has hooks
            found[at] = through_own_hooks(args[i]._entry, through_own_hooks(entries[at], found[at]))
    weight_grads = [_hooked(weight, found[leaves[id(weight)]] if weight._requires_grad else None) for weight in weights]
    return out if again else _unrecorded(out), found[:len(positions)], weight_grads


def _found(heads: Sequence[Any], seed: Any, variables: Sequence[Tensor], entries: Sequence[Any], again: bool
           ) -> list[Any]:
    """Gradients of heads with respect to variables with these entries, recorded themselves when ``again``."""
    arriving = None if seed is None else _seeds(heads, seed)
    recorded = [i for i, head in enumerate(heads) if getattr(head, "_entry", None) is not None]
    if not recorded or not entries:
        return [made(each._ctx.xp.zeros_like(each._data), each._ctx) for each in variables]
    if len(recorded) < len(heads):
        heads = [heads[i] for i in recorded]
        arriving = None if arriving is None else [arriving[i] for i in recorded]
    if not again:
        found = tape.raw_gradients(heads, variables, entries, arriving)
        return [made(data, each._ctx) for data, each in zip(found, variables)]
    return [_as_tensor(g) for g in
            tape.gradients(heads, list(map(_variable, variables, entries)), arriving, True, True, True)]


def _variable(like: NDArray, entry: Any) -> Tensor:
    result = made(like._data, like._ctx)
    result._entry = entry
    return result


def _as_tensor(g: Any) -> Any:
    result = made(g._data, g._ctx)
    result._entry = g._entry
    return result


def _hooked(weight: Parameter, g: Any) -> Any:
    """A weight's gradient after its hooks; zeros where there is none."""
    if g is None:
        g = made(weight._ctx.xp.zeros_like(weight._data), weight._ctx) if STATE.trace is None else \
            ops.zeros_like(STATE.trace.read(weight))
    if not weight._hooks:
        return g

    title = f"Parameter {weight.name}"
    return through_hooks(functools.partial(gradient_chain, weight._hooks, title), [[g]],
                         [[Spec(weight.shape, weight._dt)]], 0, title)[0]


def _unrecorded(out: Any) -> Any:
    """The value without the tape that is used up."""
    if isinstance(out, Tensor):
        return made(out._data, out._ctx)
    leaves: list[Any] = []
    structure = tree.flatten(out, leaves)
    return tree.rebuild(structure, iter([leaf if isinstance(leaf, Parameter) or leaf._entry is None else
                                         made(leaf._data, leaf._ctx) for leaf in leaves]))


def _heads(function: Callable, out: Any, first_only: bool, seeded: bool) -> list[Any]:
    """The tensors whose sum is differentiated."""
    if isinstance(out, Manners):
        if first_only:
            raise ValueError(f"grad of {_named(function)}: has_aux needs at least 2 outputs, got 1")
        return [out]
    if first_only:
        if not isinstance(out, (tuple, list)) or len(out) < 2:
            raise ValueError(f"grad of {_named(function)}: has_aux needs at least 2 outputs")
        return tree.tensors(out[0])
    heads = tree.tensors(out)
    if len(heads) > 1 and not seeded and _named(function) not in _WARNED:
        _WARNED.add(_named(function))
        warnings.warn(f"grad of {_named(function)}: it returns {len(heads)} tensors; the gradients are those of their "
                      "sum. With has_aux=True only the first is differentiated.", UserWarning, stacklevel=5)
    return heads


def _seeds(heads: Sequence[Any], seed: Any) -> list[Any]:
    """The gradients that arrive at the heads, as they were given."""
    given = tree.tensors(seed) if not isinstance(seed, Manners) else [seed]
    if len(given) != len(heads):
        raise ArgumentError(f"grad: expected {len(heads)} sensitivities, one for each output, got {len(given)}")
    for i, (head, each) in enumerate(zip(heads, given)):
        if each.shape != head.shape:
            raise ShapeError(f"grad: sensitivity {i} has shape {show(each.shape)}, expected {show(head.shape)}")
        if each._dt != head._dt:
            raise DTypeError(f"grad: sensitivity {i} has dtype {each._dt}, expected {head._dt}")
    return given


def _in_trace(function: Callable, args: Sequence[Any], kwargs: dict[str, Any], positions: Sequence[int],
              weights: Sequence[Parameter], first_only: bool, seed: Any) -> tuple[Any, list, list]:
    trace = STATE.trace
    given = list(args)
    for i in dict.fromkeys(positions):
        given[i] = ops._copy(trace.read(given[i]))
        trace.arguments[given[i]._entry] = None
    entries = [given[i]._entry for i in positions]
    held = [trace.read(weight) for weight in weights]  # before the function may assign to them
    out = function(*given, **kwargs)
    heads = [trace.read(head) for head in _heads(function, out, first_only, seed is not None)]
    if seed is None:
        pairs = [(head, ops.ones_like(head)) for head in heads]
    else:
        pairs = [(head, trace.read(each)) for head, each in zip(heads, _seeds(heads, seed))]
    wanted = entries + [value._entry for value in held]
    found = trace.differentiate(pairs, wanted)
    grads = [ops.zeros_like(given[i]) if g is None else g for i, g in zip(positions, found)]
    for at, (i, entry) in enumerate(zip(positions, entries)):
        grads[at] = through_own_hooks(args[i]._entry, through_own_hooks(entry, grads[at]))
    weight_grads = [_hooked(weight, g if weight._requires_grad else None)
                    for weight, g in zip(weights, found[len(positions):])]
    return out, grads, weight_grads


# ------------------------------------------------------------------------------------------------- grad


class _Grad:
    """What ``grad`` and ``value_and_grad`` return; see there."""

    def __init__(self, function: Callable, grad_position: Any, weights: Any, has_aux: bool, return_ids: bool,
                 with_value: bool):
        if not callable(function):
            raise TypeError(f"grad: expected a function or a Cell, got {type(function).__name__}")
        if grad_position is None and weights is None:
            raise ValueError("grad: grad_position and weights are both None; one must say with respect to what")
        for what, value in (("has_aux", has_aux), ("return_ids", return_ids)):
            if not isinstance(value, bool):
                raise TypeError(f"grad: {what} must be a bool, got {type(value).__name__}")
        self.positions = _positions(grad_position)
        self.single = isinstance(grad_position, int) or (grad_position is not None and len(grad_position) == 1)
        self.by_position = grad_position is not None
        self.weights = [] if weights is None else list(parameters(weights, "grad: weights"))
        self.single_weight = isinstance(weights, Parameter)
        self.by_weight = weights is not None
        self.has_aux, self.return_ids, self.with_value = has_aux, return_ids, with_value
        self._function = function
        self._compiled: Jitted | None = None
        self.__name__ = f"grad_{_named(function)}"
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if STATE.trace is None and not MODE.recording and (compiles() or self._function.__class__ is Jitted):
            if self._compiled is None:
                self._compiled = jit(self._run)
            return self._compiled(*args, **kwargs)
        return self._run(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        function, positions = self._function, self.positions
        for i in positions:
            if i >= len(args):
                raise OpError(f"grad of {_named(function)}: there is no argument {i}, it was given {len(args)}")
            if not isinstance(args[i], Manners):
                if not isinstance(args[i], (NDArray, np.ndarray)):
                    raise TypeError(f"grad of {_named(function)}: argument {i} is of type {type(args[i]).__name__}, "
                                    "only tensors have gradients")
                args = (*args[:i], tensor(args[i]), *args[i + 1:])
        if function.__class__ is Jitted:
            function = function.function
        out, grads, weight_grads = _differentiate(function, args, kwargs, positions, self.weights, self.has_aux)
        result = self._arranged(grads, weight_grads)
        if self.with_value:
            return out, result
        return (result, tuple(out[1:])) if self.has_aux else result

    def _arranged(self, grads: list[Any], weight_grads: list[Any]) -> Any:
        if self.return_ids:
            grads = list(zip(self.positions, grads))
            weight_grads = [(weight.name, g) for weight, g in zip(self.weights, weight_grads)]
        by_position = grads[0] if self.single and grads else tuple(grads)
        by_weight = weight_grads[0] if self.single_weight else tuple(weight_grads)
        if not self.by_weight:
            return by_position
        return (by_position, by_weight) if self.by_position else by_weight

    def __repr__(self) -> str:
        return f"<gradient of {_named(self._function)}>"


def _positions(grad_position: Any) -> tuple[int, ...]:
    if grad_position is None:
        return ()
    listed = (grad_position,) if isinstance(grad_position, int) else grad_position
    if not isinstance(listed, tuple) or isinstance(grad_position, bool) or not all(
            isinstance(each, int) and not isinstance(each, bool) for each in listed):
        raise TypeError(f"grad: grad_position must be an int or a tuple of ints, got {grad_position!r}")
    for each in listed:
        if each < 0:
            raise ValueError(f"grad: grad_position must not be negative, got {each}")
    return listed


def grad(fn: Callable, grad_position: Any = 0, weights: Any = None, has_aux: bool = False, return_ids: bool = False
         ) -> Callable:
    """A function that computes gradients of a function or Cell.

    Parameters
    ----------
    fn : callable
        Returns a tensor, or several, whose sum is differentiated.
    grad_position : int or tuple of int, optional
        Which arguments; an int gives a bare gradient, a tuple of several a tuple.
    weights : Parameter, or list or tuple of them, optional
        Further variables; with positions the result is ``(by position, by weight)``.
    has_aux : bool
        Only the first output is differentiated, the others are returned behind the gradients, in a tuple.
    return_ids : bool
        Each gradient comes as ``(position or name, gradient)``; see ``get_grad``.

    Returns
    -------
    callable
        Takes the arguments of ``fn``. Unused variables have zeros, and so have parameters that are not trained.

    Examples
    --------
    >>> cube = lambda x: x * x * x
    >>> grad(cube)(Tensor(2.0)), grad(grad(cube))(Tensor(2.0))
    (Tensor(shape=[], dtype=Float32, value= 12), Tensor(shape=[], dtype=Float32, value= 12))
    """
    return _Grad(fn, grad_position, weights, has_aux, return_ids, False)


def value_and_grad(fn: Callable, grad_position: Any = 0, weights: Any = None, has_aux: bool = False,
                   return_ids: bool = False) -> Callable:
    """A function that computes ``(value, gradients)``; see ``grad``.

    Examples
    --------
    >>> value_and_grad(lambda x: x * x)(Tensor(3.0))
    (Tensor(shape=[], dtype=Float32, value= 9), Tensor(shape=[], dtype=Float32, value= 6))
    """
    return _Grad(fn, grad_position, weights, has_aux, return_ids, True)


def get_grad(gradients: Any, identifier: Any) -> Any:
    """The gradient of a position or Parameter among those that ``grad(…, return_ids=True)`` gave.

    Raises
    ------
    RuntimeError
        When there is none.
    """
    if not isinstance(identifier, (int, Parameter)) or isinstance(identifier, bool):
        raise TypeError(f"get_grad: expected a position or a Parameter, got {type(identifier).__name__}")
    wanted = identifier.name if isinstance(identifier, Parameter) else identifier

    def search(value: Any) -> Any:
        if isinstance(value, tuple):
            if len(value) == 2 and isinstance(value[0], (int, str)) and value[0] == wanted:
                return value[1]
            for each in value:
                found = search(each)
                if found is not None:
                    return found
        return None

    found = search(gradients)
    if found is None:
        raise OpError(f"get_grad: there is no gradient of {wanted!r}; was it asked for, with return_ids=True?")
    return found


class GradOperation:
    """Gradients by the older interface: configured once, then applied to a function or Cell.

    Parameters
    ----------
    get_all : bool
        Gradients of all tensors among the arguments, in a tuple; else of the first alone.
    get_by_list : bool
        Gradients of weights, in a tuple; with ``get_all`` both, ``(inputs, weights)``.
    sens_param : bool
        The gradient that arrives at the output is given: as the last argument, or ``sens=``.

    Examples
    --------
    >>> GradOperation(get_all=True)(lambda x, y: x * y)(Tensor(2.0), Tensor(3.0))
    (Tensor(shape=[], dtype=Float32, value= 3), Tensor(shape=[], dtype=Float32, value= 2))
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False):
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise TypeError(f"GradOperation: {name} must be a bool, got {type(value).__name__}")
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable, weights: Any = None) -> Callable:
        if not callable(fn):
            raise TypeError(f"GradOperation: expected a function or a Cell, got {type(fn).__name__}")
        if self.get_by_list and weights is None:
            weights = fn.trainable_params() if hasattr(fn, "trainable_params") else []
        held = parameters(weights, "GradOperation: weights") if self.get_by_list else []
        inner = functools.partial(self._run, fn.function if isinstance(fn, Jitted) else fn, held)
        functools.update_wrapper(inner, fn if hasattr(fn, "__name__") else type(fn), updated=())
        compiled = jit(inner)

        def after_grad(*args: Any, **kwargs: Any) -> Any:
            if STATE.trace is None and not MODE.recording and (compiles() or isinstance(fn, Jitted)):
                return compiled(*args, **kwargs)
            return inner(*args, **kwargs)

        return after_grad

    def _run(self, fn: Callable, weights: Sequence[Parameter], *args: Any, **kwargs: Any) -> Any:
        seed = None
        if self.sens_param:
            if "sens" in kwargs:
                seed = kwargs.pop("sens")
            elif args:
                args, seed = args[:-1], args[-1]
            else:
                raise ArgumentError("GradOperation: with sens_param the last argument is the gradient that arrives")
        tensors = [i for i, arg in enumerate(args) if isinstance(arg, Manners)]
        positions = tensors if self.get_all else [] if self.get_by_list else tensors[:1]
        if not (self.get_all or self.get_by_list or positions):
            raise TypeError(f"GradOperation: {_named(fn)} was given no tensor")
        _, grads, weight_grads = _differentiate(fn, args, kwargs, positions, weights, False, seed)
        if self.get_all and self.get_by_list:
            return tuple(grads), tuple(weight_grads)
        if self.get_by_list:
            return tuple(weight_grads)
        return tuple(grads) if self.get_all else grads[0]

    def __repr__(self) -> str:
        return (f"GradOperation(get_all={self.get_all}, get_by_list={self.get_by_list}, "
                f"sens_param={self.sens_param})")


# ------------------------------------------------------------------------------------------------- products


def vjp(fn: Callable, *inputs: Any, weights: Any = None, has_aux: bool = False) -> tuple:
    """The value of a function, and a function from gradients of its outputs to those of its inputs.

    Examples
    --------
    >>> value, back = vjp(lambda x: x * x, Tensor(3.0))
    >>> back(Tensor(1.0))
    (Tensor(shape=[], dtype=Float32, value= 6),)
    """
    held = [] if weights is None else parameters(weights, "vjp: weights")

    def first(*args: Any) -> Any:
        return fn(*args)[0]

    out = fn(*inputs)

    def back(*seeds: Any) -> Any:
        _, grads, weight_grads = _differentiate(first if has_aux else fn, inputs, {}, range(len(inputs)), held, False,
                                                seeds[0] if len(seeds) == 1 else seeds)
        return (tuple(grads), tuple(weight_grads)) if held else tuple(grads)

    return (out[0], back, tuple(out[1:])) if has_aux else (out, back)


def jvp(fn: Callable, inputs: Any, v: Any, has_aux: bool = False) -> tuple:
    """The value of a function, and its derivative along directions of its inputs.

    The derivative of a gradient with respect to what arrives is linear in it; so it is the gradient of a gradient.

    Examples
    --------
    >>> jvp(lambda x: x * x, Tensor(3.0), Tensor(2.0))
    (Tensor(shape=[], dtype=Float32, value= 9), Tensor(shape=[], dtype=Float32, value= 12))
    """
    given = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    along = list(v) if isinstance(v, (tuple, list)) else [v]
    if len(given) != len(along):
        raise ArgumentError(f"jvp: expected {len(given)} directions, one for each input, got {len(along)}")
    for i, (value, direction) in enumerate(zip(given, along)):
        if value.shape != direction.shape:
            raise ShapeError(f"jvp: direction {i} has shape {show(direction.shape)}, expected {show(value.shape)}")
    whole = fn(*given)
    out = whole[0] if has_aux else whole
    heads = tree.tensors(out)
    probes = [ops.zeros_like(head) for head in heads]

    def inner(*seeds: Any) -> Any:
        _, grads, _ = _differentiate(_first(fn) if has_aux else fn, given, {}, range(len(given)), [], False,
                                     tuple(seeds))
        return tuple(grads)

    _, found, _ = _differentiate(inner, probes, {}, range(len(probes)), [], False, tuple(along))
    leaves: list[Any] = []
    derivative = tree.rebuild(tree.flatten(out, leaves), iter(found))
    return (out, derivative, tuple(whole[1:])) if has_aux else (out, derivative)


def _first(fn: Callable) -> Callable:
    return lambda *args: fn(*args)[0]


def jacrev(fn: Callable, grad_position: Any = 0, has_aux: bool = False) -> Callable:
    """A function that computes Jacobians: the output's shape followed by the input's.

    Parameters
    ----------
    fn : callable
        Returns a tensor, or several.
    grad_position : int or tuple of int
        Which arguments.
    has_aux : bool
        Only the first output is differentiated, the others are returned behind the Jacobian.

    Examples
    --------
    >>> jacrev(lambda x: x * x)(Tensor([1.0, 2.0])).asnumpy()
    array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    positions = _positions(grad_position)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        whole = fn(*args, **kwargs)
        out = whole[0] if has_aux else whole
        heads: list[Any] = []
        structure = tree.flatten(out, heads)
        found = []
        for number, head in enumerate(heads):
            rows: list[list[Any]] = [[] for _ in positions]
            for at in range(head.size):
                seeds = []
                for k, each in enumerate(heads):
                    unit = np.zeros(each.size, each._dt)
                    unit[at:at + 1] = 1 if k == number else 0
                    seeds.append(tensor(unit.reshape(each.shape)))
                _, grads, _ = _differentiate(_first(fn) if has_aux else fn, args, kwargs, positions, [], False,
                                             tuple(seeds))
                for row, g in zip(rows, grads):
                    row.append(g)
            parts = tuple(ops.stack(*row, axis=0, num_args=len(row)).reshape(*head.shape, *args[i].shape)
                          for i, row in zip(positions, rows))
            found.append(parts[0] if isinstance(grad_position, int) else parts)
        result = found[0] if structure is tree.LEAF else tuple(found)
        return (result, tuple(whole[1:])) if has_aux else result

    return jacobian


jacfwd = jacrev

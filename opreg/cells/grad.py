"""grad: gradients of functions and Cells, eagerly on the tape, and as further nodes in compiled functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

from ..core.mode import MODE, Mode, Scope, UserScope
from ..core.named_errors import name_errors
from ..core.registry import ops
from ..core.settings import Checked
from ..errors import ArgumentError, OpError
from . import tree
from .context_settings import compiles
from .jacobian import Jvp, Vjp  # noqa: F401  programs import these names from here
from .jit import Jitted, jit
from .parameter import CastParameter, Parameter, Parameters, parameters
from .positions import Positions, check_positions, positions_of
from .pullback import check_not_blocked, differentiate, name_of
from .state import STATE
from .tensor import TENSORS, tensor
from .tensor_base import TensorBase
from .typing import TensorLike

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["grad", "value_and_grad", "GradOperation", "get_grad", "stop_gradient", "no_grad",
           "differentiated_positions", "answer"]


class no_grad(UserScope, Scope):
    """A context or decorator within which no gradient is recorded.

    Examples
    --------
    >>> from opreg import Tensor, grad
    >>> def function(x):
    ...     with no_grad():
    ...         scale = x * x
    ...     return scale * x
    >>> print(grad(function)(Tensor([3.0])))
    [9.]
    """

    _chosen, _key = ("recording", "paused", "blocked"), "no_grad"

    def __init__(self) -> None:
        self._note_call("no_grad()")

    def _next(self, mode: Mode) -> Mode:
        return mode.but(recording=False, paused=mode.paused or bool(mode.recording), blocked=mode.blocked + 1)

    def _new_scope(self) -> no_grad:
        return no_grad()


def stop_gradient(value: Any) -> Any:
    """The same values, through which no gradient passes; a tuple, list or dict is handled tensor by tensor.

    Examples
    --------
    >>> from opreg import Tensor
    >>> grad(lambda x: stop_gradient(x) * x)(Tensor(3.0))
    Tensor(shape=[], dtype=Float32, value= 3)
    """
    if isinstance(value, (tuple, list, dict)):
        leaves: list[TensorLike] = []
        structure = tree.flatten(value, leaves)
        if leaves:
            return tree.rebuild(structure, iter([ops.BlockGrad(tensor(leaf)) for leaf in leaves]))
    return ops.BlockGrad(tensor(value))


# ------------------------------------------------------------------------------------------------- grad


class _Gradients:
    """The function that ``grad`` and ``value_and_grad`` return; see there."""

    def __init__(self, function: Callable, grad_position: Positions, weights: Parameters | None, has_aux: bool,
                 return_ids: bool, sens_param: bool, with_value: bool):
        if not callable(function):
            raise ArgumentError(f"grad: expected a function or a Cell, got {type(function).__name__}")
        if grad_position is None and weights is None:
            raise ArgumentError("grad: grad_position and weights are both None; give positions of inputs, or weights")
        for what, value in (("has_aux", has_aux), ("return_ids", return_ids), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise ArgumentError(f"grad: {what} must be a bool, got {type(value).__name__}")
        self.positions = positions_of(grad_position)
        self.single = isinstance(grad_position, int) or (grad_position is not None and len(grad_position) == 1)
        self.by_position = grad_position is not None
        self.weights = [] if weights is None else list(parameters(weights, "grad: weights"))
        self.single_weight = isinstance(weights, (Parameter, CastParameter))
        self.by_weight = weights is not None
        self.has_aux, self.return_ids, self.with_value = has_aux, return_ids, with_value
        self.sens_param = sens_param
        self.function = function.function if isinstance(function, Jitted) else function
        self.__name__ = f"grad_{name_of(function)}"

    def __call__(self, *given: Any, **keywords: Any) -> Any:
        args: Sequence[Any] = given
        kwargs: Mapping[str, Any] = keywords
        seed = None
        if self.sens_param:
            args, kwargs, seed = _take_seed("grad", given, keywords)
        positions: Sequence[int] = self.positions if args or kwargs else ()
        for i in positions:
            if i >= len(args) or args[i].__class__ not in TENSORS:
                positions = check_positions(self.function, positions, (*args, *kwargs.values()), True)
                break
        out, grads, weight_grads = differentiate(self.function, args, kwargs, positions, self.weights, self.has_aux,
                                                 seed)
        result = self._arrange(grads, weight_grads, positions)
        if self.with_value:
            return out, result
        return (result, tuple(out[1:])) if self.has_aux else result

    def _arrange(self, grads: Sequence[Any], weight_grads: Sequence[Any], positions: Sequence[int]) -> Any:
        single = len(grads) == 1 and (self.single or len(positions) < len(self.positions))
        if self.return_ids:
            grads = list(zip(positions, grads))
            weight_grads = [(weight.name, g) for weight, g in zip(self.weights, weight_grads)]
        by_position = grads[0] if single else tuple(grads)
        if not self.by_weight:
            return by_position
        by_weight = weight_grads[0] if self.single_weight else tuple(weight_grads)
        return (by_position, by_weight) if self.by_position else by_weight


def _take_seed(owner: str, args: Sequence[Any], kwargs: Mapping[str, Any]
               ) -> tuple[Sequence[Any], Mapping[str, Any], Any]:
    """The arguments of a function, and the output gradient, which is the keyword ``sens`` or the last argument."""
    if "sens" in kwargs:
        return args, {key: value for key, value in kwargs.items() if key != "sens"}, kwargs["sens"]
    if not args:
        raise ArgumentError(f"{owner}: with sens_param the last argument must be the output gradient")
    return args[:-1], kwargs, args[-1]


class _Grad:
    """A function that computes gradients; it is compiled in ``GRAPH_MODE``, and where the function itself is."""

    def __init__(self, function: Callable, compute: Callable):
        self._always = isinstance(function, Jitted)
        self._compute = compute
        self._compiled = jit(compute, check_numbers=function.check_numbers if isinstance(function, Jitted) else None)
        self.__name__, self.__wrapped__ = name_of(compute), function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if STATE.trace is None and not MODE.current().recording and (self._always or compiles()):
            if MODE.current().blocked:
                check_not_blocked(self.__wrapped__)
            return self._compiled(*args, **kwargs)
        return self._compute(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<gradient of {name_of(self.__wrapped__)}>"


@overload
def grad(fn: Callable[P, Any], grad_position: Positions = 0, weights: Parameters | None = None, has_aux: bool = False,
         return_ids: bool = False, sens_param: Literal[False] = False) -> Callable[P, Any]: ...


@overload
def grad(fn: Callable[..., Any], grad_position: Positions = 0, weights: Parameters | None = None,
         has_aux: bool = False, return_ids: bool = False, sens_param: bool = False) -> Callable[..., Any]: ...


def grad(fn: Callable[..., Any], grad_position: Positions = 0, weights: Parameters | None = None,
         has_aux: bool = False, return_ids: bool = False, sens_param: bool = False) -> Callable[..., Any]:
    """A function that computes the gradients of a function or Cell.

    Parameters
    ----------
    fn : callable
        The function. It returns a tensor, or several, whose sum is differentiated.
    grad_position : int or tuple of int, optional
        Positions of inputs, counted over arguments, then keywords in the order of the call. An int gives a bare
        gradient, a tuple of several a tuple. The gradient of a tuple, list or dict has the same nesting, with None in
        the place of values that are no tensors.
    weights : Parameter, or list or tuple of them, optional
        Further variables; with positions the result is ``(by position, by weight)``.
    has_aux : bool
        Whether only the first output is differentiated, and the others are returned after the gradients, in a tuple.
    return_ids : bool
        Whether each gradient is a pair ``(position or name, gradient)``; see ``get_grad``.
    sens_param : bool
        Whether the caller gives the output gradient, as the last argument or as ``sens=``.

    Returns
    -------
    callable
        A function with the arguments of ``fn``. The gradient of an unused variable or an untrained parameter is zeros.

    Examples
    --------
    >>> from opreg import Tensor
    >>> cube = lambda x: x * x * x
    >>> grad(cube)(Tensor(2.0)), grad(grad(cube))(Tensor(2.0))
    (Tensor(shape=[], dtype=Float32, value= 12), Tensor(shape=[], dtype=Float32, value= 12))
    """
    return _Grad(fn, _Gradients(fn, grad_position, weights, has_aux, return_ids, sens_param, False))


@overload
def value_and_grad(fn: Callable[P, R], grad_position: Positions = 0, weights: Parameters | None = None,
                   has_aux: Literal[False] = False, return_ids: bool = False, sens_param: Literal[False] = False
                   ) -> Callable[P, tuple[R, Any]]: ...


@overload
def value_and_grad(fn: Callable[P, Any], grad_position: Positions = 0, weights: Parameters | None = None,
                   has_aux: bool = False, return_ids: bool = False, sens_param: Literal[False] = False
                   ) -> Callable[P, tuple[Any, Any]]: ...


@overload
def value_and_grad(fn: Callable[..., Any], grad_position: Positions = 0, weights: Parameters | None = None,
                   has_aux: bool = False, return_ids: bool = False, sens_param: bool = False
                   ) -> Callable[..., tuple[Any, Any]]: ...


def value_and_grad(fn: Callable[..., Any], grad_position: Positions = 0, weights: Parameters | None = None,
                   has_aux: bool = False, return_ids: bool = False, sens_param: bool = False) -> Callable[..., Any]:
    """A function that computes ``(value, gradients)``; see ``grad``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> value_and_grad(lambda x: x * x)(Tensor(3.0))
    (Tensor(shape=[], dtype=Float32, value= 9), Tensor(shape=[], dtype=Float32, value= 6))
    """
    return _Grad(fn, _Gradients(fn, grad_position, weights, has_aux, return_ids, sens_param, True))


def get_grad(gradients: object, identifier: object) -> Any:
    """The gradient of one position or Parameter in the result of ``grad(…, return_ids=True)``.

    Raises
    ------
    RuntimeError
        When the result has no such gradient.

    Examples
    --------
    >>> from opreg import Tensor, grad
    >>> gradients = grad(lambda x, y: x * y, (0, 1), return_ids=True)(Tensor([2.0]), Tensor([3.0]))
    >>> print(get_grad(gradients, 1))
    [2.]
    """
    if not isinstance(identifier, (int, Parameter)) or isinstance(identifier, bool):
        raise ArgumentError(f"get_grad: expected a position or a Parameter, got {type(identifier).__name__}")
    key = identifier.name if isinstance(identifier, Parameter) else identifier

    def search(value: object) -> Any:
        if isinstance(value, tuple):
            if len(value) == 2 and isinstance(value[0], (int, str)) and value[0] == key:
                return value[1]
            for part in value:
                gradient = search(part)
                if gradient is not None:
                    return gradient
        return None

    gradient = search(gradients)
    if gradient is None:
        raise OpError(f"get_grad: there is no gradient of {key!r}; was it asked for, with return_ids=True?")
    return gradient


def differentiated_positions(inputs: Sequence[object], get_all: bool, get_by_list: bool) -> list[int]:
    """Positions that ``GradOperation`` differentiates in: inputs that are tensors or ``mutable``."""
    positions = [i for i, value in enumerate(inputs)
                 if isinstance(value, TensorBase) or (isinstance(value, tree.Mutable) and tree.varies(value))]
    return positions if get_all else [] if get_by_list else [i for i in positions if i == 0]


def answer(grads: Sequence[Any], by_weight: object, get_all: bool, get_by_list: bool) -> Any:
    """Gradients as ``GradOperation`` returns them."""
    if get_by_list:
        return (tuple(grads), by_weight) if get_all else by_weight
    return grads[0] if grads and not get_all else tuple(grads)


class GradOperation(Checked):
    """Gradients by the older interface: configured once, then applied to a function or Cell.

    Parameters
    ----------
    get_all : bool
        Whether the result is a tuple of gradients of all tensors and ``mutable`` values among the arguments and
        keywords; otherwise it is the gradient of the first input, ``()`` if that is no tensor.
    get_by_list : bool
        Whether gradients of weights are returned, in a tuple, bare for a single Parameter; with ``get_all`` the result
        is ``(inputs, weights)``.
    sens_param : bool
        Whether the caller gives the output gradient, as the last argument or as ``sens=``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> GradOperation(get_all=True)(lambda x, y: x * y)(Tensor(2.0), Tensor(3.0))
    (Tensor(shape=[], dtype=Float32, value= 3), Tensor(shape=[], dtype=Float32, value= 2))
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False):
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise ArgumentError(f"GradOperation: {name} must be a bool, got {type(value).__name__}")
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable[..., Any], weights: Parameters | None = None) -> Callable[..., Any]:
        if not callable(fn):
            raise ArgumentError(f"GradOperation: expected a function or a Cell, got {type(fn).__name__}")
        if self.get_by_list and weights is None:
            weights = fn.trainable_params() if hasattr(fn, "trainable_params") else []
        trained = parameters(weights, "GradOperation: weights") if self.get_by_list else []
        compute = functools.partial(self._run, fn.function if isinstance(fn, Jitted) else fn, trained,
                                    isinstance(weights, (Parameter, CastParameter)))
        functools.update_wrapper(compute, fn if hasattr(fn, "__name__") else type(fn), updated=())
        return _Grad(fn, compute)

    def _run(self, fn: Callable, weights: Sequence[Parameter], bare: bool, *args: Any, **kwargs: Any) -> Any:
        inputs: Sequence[Any] = args
        keywords: Mapping[str, Any] = kwargs
        seed = None
        if self.sens_param:
            inputs, keywords, seed = _take_seed("GradOperation", args, kwargs)
        positions = differentiated_positions([*inputs, *keywords.values()], self.get_all, self.get_by_list)
        _, grads, by_weight = differentiate(fn, inputs, keywords, positions, weights, False, seed)
        return answer(grads, by_weight[0] if bare else tuple(by_weight), self.get_all, self.get_by_list)

    def __repr__(self) -> str:
        return (f"GradOperation(get_all={self.get_all}, get_by_list={self.get_by_list}, "
                f"sens_param={self.sens_param})")


name_errors(__name__, globals(), __all__)

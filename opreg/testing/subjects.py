"""Subjects of checks: operators, Functions, Cells and functions of tensors, with one interface to run them."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import NDArray, autograd, cpu
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import numbers_of

from ..cells.cell import Cell
from ..cells.jacobian import vjp
from ..cells.jit import Jitted
from ..cells.parameter import Parameter
from ..cells.tensor import Tensor, tensor_over
from ..cells.tensor_base import TensorBase
from ..cells.tree import flatten
from ..core.mode import Recording
from ..core.op import Op
from ..core.registry import find, get, operators
from ..core.spec import is_floating, is_known
from ..custom.function import FunctionUse as DefinedUse
from ..custom.operator import CustomOpProp
from ..custom.prop import RegisteredProp, of_prop
from ..custom.python_op import PythonOp
from ..errors import ArgumentError, OpError, note
from .foreign import is_numeric_list
from .jax_functions import function_of_jax
from .torch_functions import function_of_torch
from .uses import Heads, Result, Subject, Use, parameter_names

__all__ = ["FunctionUse", "TensorUse", "compiled", "in_a_cell", "operator_of", "subject", "restore_weights"]


# --------------------------------------------------------------------------------------------- autograd.Function


class FunctionUse(Subject):
    """An ``autograd.Function``: a class and its constructor arguments, or an instance, which is copied for each run."""

    train = True
    body, gradient_code, top = "forward", "backward", "the gradient that backward is given"
    no_graph = "an autograd.Function is for eager code; for a graph use a CustomOpProp or define"

    def __init__(self, function: Any, arrays: Sequence[np.ndarray], keywords: Mapping[str, Any]):
        self.function, self.keywords, self.arrays = function, keywords, list(arrays)
        kind: Any = function if isinstance(function, type) else type(function)
        self.title, self._forward = f"Function {kind.__name__}", kind.forward

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs, those of the parameters of ``forward``."""
        return parameter_names(self._forward, len(self.arrays), skipped=1)

    def invoke(self, values: Sequence[Any], ctx: Context, out: Sequence[NDArray] | None = None) -> Any:
        """Call a new instance, since a Function instance can be called once."""
        if isinstance(self.function, type):
            return self.function(**self.keywords)(*values)
        return copy.copy(self.function)(*values)


# --------------------------------------------------------------------------------------- Cells and functions


class TensorUse(Subject):
    """A Cell, or a function of tensors, with its parameters as the last of the inputs.

    Attributes
    ----------
    function : callable
        The Cell or function.
    args : list
        Its arguments; those at ``places`` are the inputs, and tensors among the keyword arguments, by their names.
    parameters : list of Parameter
        Parameters of a Cell, which is a copy of the user's.
    """

    train = False
    body, gradient_code, top = "construct", "bprop", "dout"

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], title: str):
        self.function, self.args, self.keywords, self.title = function, list(args), dict(keywords), title
        self.places: list[int | str] = [i for i, argument in enumerate(args) if _is_array(argument)]
        self.places += [name for name, value in self.keywords.items() if _is_array(value)]
        owner = getattr(function, "function", function)
        self.parameters: list[Any] = list(owner.trainable_params()) if isinstance(owner, Cell) else []
        self.states: list[Any] = ([parameter for parameter in owner.get_parameters() if not parameter.requires_grad]
                                  if isinstance(owner, Cell) else [])
        self.arrays = [_as_array(self.keywords[i] if isinstance(i, str) else args[i]) for i in self.places] + [
            weight.asnumpy() for weight in (*self.parameters, *self.states)]
        self._words = parameter_names(getattr(owner, "construct", owner), len(args))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs: the function's parameters, then the weights."""
        given = [place if isinstance(place, str) else self._words[place] for place in self.places]
        return (*given, *[weight.name for weight in (*self.parameters, *self.states)])

    @property
    def argument_count(self) -> int:
        """Number of inputs that the caller passes."""
        return len(self.places)

    @property
    def count(self) -> int:
        """Number of inputs that are arguments or trained weights."""
        return len(self.places) + len(self.parameters)

    def settings(self) -> dict[str, Any]:
        """The keyword arguments without tensors, for reports."""
        return {name: value for name, value in self.keywords.items() if name not in self.places}

    def with_function(self, function: Callable[..., Any]) -> TensorUse:
        """A copy of this subject that calls another function."""
        copied = copy.copy(self)
        copied.function = function
        return copied

    def run(self, heads: Heads = None, grads: bool = False, raw: Sequence[np.ndarray] | None = None,
            ctx: Context | None = None, between: Callable[[], object] | None = None) -> Result:
        """Run it as users do; see ``Subject.run``."""
        with Recording(None, self.train):
            return self._run(heads, grads, raw, ctx or cpu(), between)

    def _run(self, head_grads: Heads, grads: bool, raw: Sequence[np.ndarray] | None, ctx: Context,
             between: Callable[[], object] | None) -> Result:
        values = [tensor_over(_array_on(each, ctx), ctx) for each in (raw or self._copies())[:len(self.places)]]
        self._place_weights(raw or self._copies(), ctx)
        self.seed()
        gradients: dict[int, np.ndarray] = {}
        if grads:
            outs, back = self._outputs_and_vjp(values)
            if between is not None:
                between()
                self._place_weights(raw or self._copies(), ctx)
            seeds = ([np.ones_like(out.asnumpy()) for out in outs if is_floating(out._dt)] if head_grads is None else
                     [g for g in head_grads if g is not None])
            heads = [tensor_over(_array_on(seed, ctx), ctx) for seed in seeds]
            if heads and back is not None:
                arrived = back(*heads)
                gradients = {i: each.asnumpy() for i, each in zip(self.wanted, arrived)}
        else:
            outs = self._call(values)
        after = [each.asnumpy() for each in (*values, *self.parameters, *self.states)]
        return Result([output.asnumpy() for output in outs], after, gradients)

    def second(self, head_grads: Heads, weights: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Second derivatives with respect to the arguments: the gradients of a weighted sum of first derivatives."""
        places = [i for i in weights if i < len(self.places)]
        values = [tensor_over(each, cpu()) for each in self._copies()[:len(self.places)]]
        self._place_weights(self._copies(), cpu())
        heads = [tensor_over(g.copy(), cpu()) for g in head_grads or () if g is not None]

        def first(*moved: Any) -> tuple[Any, ...]:
            inside = list(values)
            for i, value in zip(places, moved):
                inside[i] = value
            return vjp(lambda *some: self._floating_outputs(inside, places, some, []),
                       *[inside[i] for i in places])[1](*heads)

        self.seed()
        with Recording(None, self.train):
            _, back = vjp(first, *[values[i] for i in places])
            arrived = back(*[tensor_over(weights[i].copy(), cpu()) for i in places])
        return {i: each.asnumpy() for i, each in zip(places, arrived)}

    def _copies(self) -> list[np.ndarray]:
        return [array.copy() for array in self.arrays]

    def _place_weights(self, arrays: Sequence[np.ndarray], ctx: Context) -> None:
        for weight, numbers in zip((*self.parameters, *self.states), arrays[len(self.places):]):
            weight._data, weight._ctx = _array_on(numbers, ctx), ctx

    def _call(self, values: Sequence[Any]) -> list[Any]:
        args, keywords = list(self.args), dict(self.keywords)
        for i, value in zip(self.places, values):
            if isinstance(i, str):
                keywords[i] = value
            else:
                args[i] = value
        outs: list[Any] = []
        flatten(self.function(*args, **keywords), outs)
        return outs

    def _floating_outputs(self, values: Sequence[Any], places: Sequence[int], moved: Sequence[Any],
                          every: list[Any]) -> Any:
        """Floating outputs with other values for some arguments; ``every`` receives all outputs."""
        values = list(values)
        for i, value in zip(places, moved):
            values[i] = value
        every[:] = self._call(values)
        floating = [tensor for tensor in every if is_floating(tensor._dt)]
        return floating[0] if len(floating) == 1 else tuple(floating)

    def _outputs_and_vjp(self, values: Sequence[Any]) -> tuple[list[Any], Callable[..., Sequence[Any]] | None]:
        """All outputs, and a VJP: a function from gradients of the floating outputs to gradients of the requested
        inputs."""
        every: list[Any] = []
        places = [i for i in self.wanted if i < len(self.places)]
        if not self.wanted:
            return self._call(values), None
        _, back = vjp(lambda *moved: self._floating_outputs(values, places, moved, every), *[values[i] for i in places],
                      weights=self.parameters or None)

        def both(*heads: Any) -> Sequence[Any]:
            arrived = back(*heads)
            return (*arrived[0], *arrived[1]) if self.parameters else arrived

        return every, both


def compiled(use: Subject) -> TensorUse:
    """The subject compiled into a graph."""
    tensors = _tensor_subject(use)
    return tensors.with_function(Jitted(getattr(tensors.function, "function", tensors.function)))


def in_a_cell(use: Subject) -> TensorUse:
    """The subject inside a Cell that has its mode, while the mode outside is the other one."""
    tensors = _tensor_subject(use)

    class Around(Cell):
        def construct(self, *args: Any, **keywords: Any) -> Any:
            return tensors.function(*args, **keywords)

    cell = tensors.with_function(Around().set_train(use.train))
    cell.train = not use.train
    return cell


def _tensor_subject(use: Subject) -> TensorUse:
    """The subject as a function of tensors, with auxiliary states as Parameters."""
    if isinstance(use, TensorUse):
        return use
    assert isinstance(use, Use)
    op, attrs, count = use.op, use.given, use.count
    states = [Parameter(tensor_over(array, cpu()), name=name, requires_grad=False)
              for name, array in zip(use.names[count:], use.arrays[count:])]

    def call(*values: Any) -> Any:
        return op(*values, *states, **attrs)

    tensors = TensorUse(call, [tensor_over(array, cpu()) for array in use.arrays[:count]], {}, use.title)
    tensors.arrays, tensors.states, tensors.stochastic, tensors.train = use.arrays, states, use.stochastic, use.train
    return tensors


# --------------------------------------------------------------------------------------------- users' objects


def subject(what: Any, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Subject:
    """Make the subject of a check from an object, inputs and attributes.

    Raises
    ------
    ArgumentError
        When the object cannot be checked, or the shape of a missing input cannot be inferred.
    """
    op = operator_of(what)
    if op is not None:
        return _operator_use(op, _to_arrays(op, inputs, dict(attrs)), dict(attrs))
    if isinstance(what, autograd.Function) or (isinstance(what, type) and issubclass(what, autograd.Function)):
        return FunctionUse(what, [_as_array(value) for value in inputs], attrs)
    if not isinstance(what, (Cell, Jitted)):
        foreign = function_of_torch(what, inputs, attrs) or function_of_jax(what, inputs, attrs)
        if foreign is not None:
            return foreign
    if isinstance(what, type) and issubclass(what, (Cell, PythonOp)):
        kind = "a Cell" if issubclass(what, Cell) else "an object"
        raise ArgumentError(f"check: {what.__name__} is a class: make {kind} of it, as in check({what.__name__}(), x)")
    if callable(what) and not isinstance(what, type):
        inner = getattr(what, "function", what)
        is_compiled, name = isinstance(what, Jitted), getattr(inner, "__name__", type(inner).__name__)
        title = ("compiled " if is_compiled else "") + (f"Cell {name}" if isinstance(inner, Cell) else
                                                        f"function {name}")
        if isinstance(inner, Cell):
            with contextlib.suppress(Exception):  # a Cell that cannot be copied is checked itself
                inner = copy.deepcopy(inner)
        if not any(_is_array(value) for value in inputs):
            inputs = [_as_array(value) if is_numeric_list(value) else value for value in inputs]
        if not any(_is_array(value) for value in inputs):
            raise ArgumentError(f"check: {title} has no input: call check({name}, x) with a typical x")
        return TensorUse(inner, inputs, attrs, title)
    raise ArgumentError(f"check: expected an operator, its name or Prop, an autograd.Function, a Cell or a function of "
                        f"tensors, got {what!r}")


def _cells(what: Any) -> list[Cell]:
    """The Cells that an object is or uses: itself, the Cell of a method, and the globals and closure of a function."""
    what = getattr(what, "function", what)
    known_by = [what, getattr(what, "__self__", None)]
    if inspect.isfunction(what):
        names = inspect.getclosurevars(what)
        known_by += [*names.nonlocals.values(), *names.globals.values()]
    return [value for value in known_by if isinstance(value, Cell)]


@contextlib.contextmanager
def restore_weights(what: Any) -> Iterator[None]:
    """A context that restores the weights of Cells at its end."""
    weights = [parameter for cell in _cells(what) for parameter in cell.get_parameters()]
    before = [(weight, weight._data, weight._data.copy()) for weight in weights]
    try:
        yield
    finally:
        for weight, data, numbers in before:
            if weight._data is not data or not bool((data == numbers).all()):
                weight._data = data
                data[...] = numbers


def operator_of(what: Any) -> Op | None:
    """The operator of an object: an Op, a name, a function of an operator, or a registered Prop; None for others."""
    if isinstance(what, Op):
        return what
    if isinstance(what, str):
        return find(f"custom.{what}") or get(what)
    if isinstance(what, PythonOp):
        return what.operator
    if isinstance(what, type) and issubclass(what, CustomOpProp):
        registered = [op for op in operators() if isinstance(op.signature.schema, RegisteredProp)
                      and op.signature.schema.prop_class is what]
        return registered[-1] if registered else of_prop(what.__name__, what)
    return getattr(what, "op", None) if isinstance(getattr(what, "op", None), Op) else None


def _operator_use(op: Op, arrays: list[np.ndarray], attrs: dict[str, Any]) -> Use:
    """A subject for an operator; missing inputs are random arrays of the inferred shapes."""
    use = Use(op, arrays, attrs)
    names, count = use.names, len(arrays)
    if count > len(names):
        raise ArgumentError(f"check: {use.title} takes {len(names)} inputs ({', '.join(names)}), got {count}")
    if count == len(names):
        return use
    shapes, _ = op.infer_shapes([*[array.shape for array in arrays], *[None] * (len(names) - count)],
                                [None] * len(op.signature.outputs(use.attrs)), use.attrs)
    dtypes, _ = op.infer_dtypes([*[array.dtype for array in arrays], *[None] * (len(names) - count)],
                                [None] * len(op.signature.outputs(use.attrs)), use.attrs)
    rng = np.random.default_rng(0)
    for name, shape, dtype in list(zip(names, shapes, dtypes))[count:]:
        if not is_known(shape):
            raise ArgumentError(f"check: {use.title} needs {name!r}, whose shape cannot be inferred from the others: "
                                f"give arrays for {', '.join(names)}")
        arrays.append(rng.uniform(0.5, 1.5, shape).astype(dtype or np.float32))
    return Use(op, arrays, attrs)


def _to_arrays(op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[np.ndarray]:
    """Inputs as NumPy arrays; a list gets the operator's declared dtype, or the dtype of the other inputs."""
    arrays = [_as_array(value) for value in inputs]
    lists = [i for i, value in enumerate(inputs) if not _is_array(value)]
    use = Use(op, arrays, attrs)
    floating = {array.dtype for i, array in enumerate(arrays) if i not in lists and is_floating(array.dtype)}
    usual = floating.pop() if len(floating) == 1 else np.dtype(np.float32)
    declared: Sequence[np.dtype | None] = [None] * len(use.names)
    if lists and len(arrays) <= len(use.names) and not (isinstance(use.attrs, DefinedUse) and not use.attrs.declares):
        dtypes = [None if i in lists else array.dtype for i, array in enumerate(arrays)]
        with contextlib.suppress(OpError):
            declared, _ = op.infer_dtypes([*dtypes, *[None] * (len(use.names) - len(dtypes))],
                                          [None] * len(op.signature.outputs(use.attrs)), use.attrs)
    return [array.astype(declared[i] or usual) if i in lists and i < len(declared) else array
            for i, array in enumerate(arrays)]


def _is_array(value: object) -> bool:
    return isinstance(value, (NDArray, TensorBase, np.ndarray))


def _as_array(value: Any) -> np.ndarray:
    """An input as a NumPy array; lists and scalars become float32, as in ``nd.array``."""
    if isinstance(value, (NDArray, Tensor)):
        return value.asnumpy()
    if isinstance(value, np.ndarray):
        return value.copy()
    try:
        return numbers_of(value, np.dtype(np.float32))
    except OpError as error:
        note(error, "check takes arrays or lists of numbers, each input as an argument of its own: check(op, x, w)")
        raise


def _array_on(numbers: np.ndarray, ctx: Context) -> Any:
    return numbers if ctx.backend_name == "cpu" else ctx.backend.asarray(numbers, device=ctx.device_id)

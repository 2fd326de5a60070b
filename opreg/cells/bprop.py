"""bprop: a Cell's own gradient, eagerly and as one node of a graph.

``construct`` runs unrecorded; the tape records one application, whose gradient is the Cell's ``bprop``, called with the
inputs, the output and the output gradients. ``bprop`` is written in operators, so it is itself recorded, or traced, and
can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.ndarray import tape
from opreg.ndarray.ndarray import NDArray

from ..core.gradient import fit_gradient
from ..core.mode import MODE, Recording
from ..core.parameters import signature_of
from ..core.rules import as_list
from ..core.spec import is_floating, show
from ..errors import ArgumentError, DTypeError, OpError, ShapeError, note, warn
from ..typing import Array
from .application import Application, Gradients, application_op, in_dtype_of, spread, traced
from .handles import takes_count
from .parameter import Parameter, tensor_type
from .state import STATE, checks_bprop
from .tensor import Tensor, copy_on_write, tensor, tensor_over
from .tensor_base import TensorBase, is_number
from .trace import FunctionTracer
from .traced_tensor import TracedTensor
from .tree import LEAF, Structure, flatten, names, rebuild

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["NumberGradientError", "apply", "check"]


# ------------------------------------------------------------------------------------------- the user's bprop


def _inputs(cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """The inputs of ``construct`` with defaults filled in, as ``bprop`` receives them, and their keywords."""
    if not kwargs and cell._construct_arity == len(args):
        return list(args), []
    bound = signature_of(cell.construct).bind(*args, **kwargs)
    bound.apply_defaults()
    return [*bound.args, *bound.kwargs.values()], list(bound.kwargs)


def _dout(structure: Structure, out_grads: Iterator[TensorBase | None]) -> Any:
    """Output gradients in the structure of the output, without parts that are no tensors; a single gradient is not
    nested."""
    if structure is LEAF:
        return next(out_grads)
    if structure[0] == "constant":
        return None
    parts = [_dout(part, out_grads) for part in structure[2] if part is LEAF or part[0] != "constant"]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _gradients(cell: Cell, inputs: list[Any], out: object, dout: object, internal: Sequence[Parameter]) -> Gradients:
    """Call ``bprop``: a gradient for each tensor of the inputs and for each internal parameter, None for zeros."""
    if STATE.trace is not None:
        STATE.trace.reads.visit(cell)  # an attribute of the Cell may replace the method
    values = [*inputs, out]
    used = getattr(cell, "used_bprop_inputs", None)
    if used is not None:
        values = [value if i in used else None for i, value in enumerate(values)]
    try:
        gradients = cell.bprop(*values, dout)
    except Exception as error:
        note(error, f"in the bprop of Cell {cell.path}")
        if isinstance(error, TypeError) and not takes_count(cell.bprop, len(values) + 1):
            names = [*signature_of(cell.construct).parameters][:len(inputs)]
            note(error, "its arguments are the inputs, the output and the output gradient: bprop(self, "
                        f"{', '.join([*names, 'out', 'dout'])})")
        raise
    if gradients is None:
        raise ArgumentError(f"Cell {cell.path}: The python function output is none: bprop must return the gradients of "
                            f"its {len(inputs)} input{'s' * (len(inputs) != 1)}")
    weights: Mapping[Parameter, Any] = {}
    if internal:
        if not (isinstance(gradients, tuple) and len(gradients) == 2 and isinstance(gradients[1], dict)):
            raise ArgumentError(f"Cell {cell.path}: Grad size: with internal_params bprop must return the gradients of "
                                "the inputs and a dict of weight to gradient")
        gradients, weights = gradients
        missing = [weight.name for weight in internal if not any(key is weight for key in weights)]
        if missing:
            raise ArgumentError(f"Cell {cell.path}: Grad size: bprop returned no gradient of the internal parameters "
                                f"{', '.join(missing)}")
    elif isinstance(gradients, tuple) and len(gradients) == 2 and isinstance(gradients[1], dict):
        gradients = gradients[0]
    gradients = as_list(gradients)
    surplus = gradients[len(inputs):]
    if surplus and not any(g is not None for g in surplus) and not checks_bprop():
        warn(f"the bprop of Cell {cell.path} returned {len(gradients)} gradients for {len(inputs)} inputs; the "
             f"additional ones are None and ignored")
        del gradients[len(inputs):]
    if len(gradients) != len(inputs):
        what = ", ".join(_kind(value) for value in inputs)
        raise ArgumentError(f"For user defined method 'bprop' of net {cell.path!r}: Grad size should be that of the "
                            f"forward inputs, but got {len(gradients)} vs {len(inputs)}: it must return one gradient "
                            f"for each input ({what})")
    fitting: list[TensorBase | None] = []
    for i, (value, g) in enumerate(zip(inputs, gradients)):
        leaves: list[Tensor] = []
        structure = flatten(value, leaves)
        if structure is LEAF:
            fitting.append(_fit_gradient(cell, i, value, g))
            continue
        parts = list(spread(g)) if leaves and g is not None else [None] * len(leaves)
        if len(parts) != len(leaves):
            raise ArgumentError(f"Cell {cell.path}: input {i} has {len(leaves)} tensors, bprop returned {len(parts)} "
                                "gradients for it")
        fitting += [_fit_gradient(cell, i, leaf, part) for leaf, part in zip(leaves, parts)]
    return fitting, [_fit_gradient(cell, weight.name, weight, weights[weight]) for weight in internal]


def _kind(value: object) -> str:
    return f"Tensor {show(value.shape)}" if isinstance(value, TensorBase) else type(value).__name__


class NumberGradientError(ShapeError, TypeError):
    """A scalar was returned as a tensor's gradient, so both the shape and the type are wrong."""


def _demand_exact(cell: Cell, place: int | str, value: TensorBase, g: object) -> None:
    """Refuse a gradient that is no tensor, or whose shape or dtype differs from its value's."""
    of = f"the {place}th argument" if isinstance(place, int) else f"parameter {place}"
    what = f"For user defined method 'bprop' of net {cell.path!r}, the gradient of {of} that it returned should"
    if not isinstance(g, TensorBase):
        raise ArgumentError(f"{what} be Tensor, but got {type(g).__name__}")
    try:
        shape, expected = g.shape, value.shape
    except OpError:  # in a graph that is not bound
        return
    if shape != expected:
        raise ShapeError(f"{what} have the same shape as {of}, which is {show(expected)}, but got {show(shape)}")
    if g._dt != value._dt:
        raise DTypeError(f"{what} have the same dtype as {of}, which is {tensor_type(value._dt)}, but got "
                         f"{tensor_type(g._dt)}")


def _fit_gradient(cell: Cell, place: int | str, value: TensorBase, g: object) -> TensorBase | None:
    """A gradient brought to the shape and dtype of its value, an input (by number) or a parameter (by name)."""
    if checks_bprop():
        _demand_exact(cell, place, value, g)
    if g is None:
        return None
    what = f"input {place}" if isinstance(place, int) else f"parameter {place}"
    number = is_number(g)
    if number:
        g = tensor(np.asarray(g, value._dt))
    if not isinstance(g, TensorBase):
        raise ArgumentError(f"Cell {cell.path}: Unreasonable data type: the gradient of {what} that bprop returned "
                            "is of "
                            f"type {type(g).__name__}, expected a Tensor: only results of operators can be compiled or "
                            "differentiated again")
    try:
        return in_dtype_of(fit_gradient(
            g, value, f"Cell {cell.path}: For custom function, grad tensor should be broadcast to expected shape: the "
                      f"gradient of {what}"), value)
    except ShapeError as error:
        if not number:
            raise
        raise NumberGradientError(f"{error}: bprop returned a number") from None


# ------------------------------------------------------------------------------------------------ the application


class _Call(Application):
    """One call of a Cell with bprop; ``of`` returns the Cell, which a graph does not keep alive."""

    def __init__(self, cell: Cell, inputs: Structure, count: int, of: Callable[[], Cell]):
        internal = getattr(cell, "internal_params", None) or ()
        super().__init__(cell.path, type(cell).__name__, inputs, count, internal)
        self._of = of

    @property
    def cell(self) -> Cell:
        """The Cell."""
        return self._of()

    @property
    def runs_as_python(self) -> bool:
        return self.cell.bprop_debug

    def _compute(self, out_grads: Sequence[TensorBase | None], ins: Sequence[TensorBase], outs: Sequence[TensorBase]
                 ) -> Gradients:
        dout = _dout(self.out, iter(out_grads))
        return _gradients(self.cell, rebuild(self.inputs, iter(ins)), rebuild(self.out, iter(outs)), dout,
                          self.internal)


def apply(cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Cell that has a ``bprop``."""
    if STATE.trace is not None:
        return _trace_application(STATE.trace, cell, args, kwargs)
    inputs, _ = _inputs(cell, args, kwargs)
    leaves: list[Tensor] = []
    structure = flatten(inputs, leaves)
    with Recording(False, None):
        out = cell.construct(*args, **kwargs)
    results: list[Tensor] = []
    arranged = flatten(out, results)
    if not MODE.recording and not any(result is leaf for result in results for leaf in leaves):
        return out
    fresh = [tensor_over(result._data, result._ctx) for result in results]
    if fresh and MODE.recording:
        record = _Call(cell, structure, len(leaves), lambda: cell)
        record.out = arranged
        every = [*leaves, *record.internal]
        tape.record(_TAPED, record, every, [value._data for value in every], fresh, None, MODE.recording)
    return rebuild(arranged, iter(fresh))


def _differentiate(g: NDArray | tuple[NDArray, ...], ins: Sequence[NDArray], outs: Sequence[NDArray], call: _Call,
                   needs: Sequence[bool], is_train: bool = True) -> list[Any]:
    out_grads = [copy_on_write(top) for top in (g if isinstance(g, tuple) else (g,))]
    now = [weight._data for weight in call.internal]
    try:
        for weight, recorded in zip(call.internal, ins[call.count:]):  # the Cell reads it as its own attribute
            weight._data = recorded._data
        gradients, weights = call.compute(out_grads, list(map(copy_on_write, ins[:call.count])),
                                          list(map(copy_on_write, outs)))
    finally:
        for weight, data in zip(call.internal, now):
            weight._data = data
    return [*gradients, *weights]


#: The application of a Cell with bprop on the tape: an output that no gradient reaches gets zeros.
_TAPED = tape.TapedFunction("Cell with bprop", _differentiate, 1 << 30)
_CELL = application_op("_cell", "the bprop of a Cell")


def _trace_application(trace: FunctionTracer, cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The application of a Cell with bprop as a node of the trace."""
    inputs, keywords = _inputs(cell, args, kwargs)
    leaves: list[Tensor] = []
    structure = flatten(inputs, leaves)
    record = _Call(cell, structure, len(leaves), trace.reference(cell))
    words = [parameter.name for parameter in signature_of(cell.construct).parameters.values()]

    def run(slots: Sequence[TracedTensor]) -> list[TensorBase]:
        values = rebuild(structure, iter(slots))
        first = len(values) - len(keywords)
        outs: list[TensorBase] = []
        record.out = flatten(cell.construct(*values[:first], **dict(zip(keywords, values[first:]))), outs)
        record.visible = len(outs)
        return outs

    results = traced(trace, record, _CELL, leaves, names(words, structure[2]), run)
    return rebuild(record.out, iter(results))


# ------------------------------------------------------------------------------------------------- checking


def check(cell: Cell, inputs: Sequence[object], eps: float, rtol: float, atol: float, seed: int) -> float:
    """The body of ``Cell.check_bprop``."""
    wide = [value._cast(np.dtype(np.float64)) if isinstance(value, TensorBase) and is_floating(value._dt) else value
            for value in inputs]
    rng = np.random.default_rng(seed)
    out = cell.construct(*wide)
    outs: list[Tensor] = []
    structure = flatten(out, outs)
    weights = [rng.standard_normal(out.shape) for out in outs]
    douts = [tensor(np.asarray(weight, out._dt)) for weight, out in zip(weights, outs)]
    internal = list(getattr(cell, "internal_params", None) or ())
    with Recording(False, None):
        gradients, by_weight = _gradients(cell, list(wide), rebuild(structure, iter(map(copy_on_write, outs))),
                                          _dout(structure, iter(douts)), internal)

    def loss() -> float:
        results: list[Tensor] = []
        flatten(cell.construct(*wide), results)
        numbers = [result.asnumpy().astype(np.float64) for result in results]
        return float(sum((host * weight).sum() for host, weight in zip(numbers, weights)))

    leaves: list[Tensor] = []
    flatten(list(wide), leaves)
    places = [(f"input {i}", leaf, g) for i, (leaf, g) in enumerate(zip(leaves, gradients)) if is_floating(leaf._dt)]
    places += [(f"parameter {weight.name}", weight, g) for weight, g in zip(internal, by_weight)]
    if not places:
        raise ArgumentError(f"Cell {cell.path}: check_bprop: none of the inputs is a floating tensor; there is "
                            "nothing to compare")
    worst, wrong = 0.0, []
    for what, leaf, g in places:
        analytic = np.zeros(leaf.shape) if g is None else np.asarray(g.asnumpy(), np.float64)
        step = eps if leaf._dt == np.float64 else 1e-2  # a float32 weight is varied in float32
        numeric = _differences(loss, leaf._data, step)
        error = np.abs(analytic - numeric)
        worst = max(worst, float(error.max(initial=0.0)))
        slack = atol + rtol * np.abs(numeric) + (0 if leaf._dt == np.float64 else 1e-2 * (1 + np.abs(numeric)))
        if (error > slack).any():
            at = np.unravel_index(int(np.argmax(error - slack)), error.shape)
            where = f" at {tuple(map(int, at))}" if at else ""
            wrong.append(f"{what}{where}: bprop says {analytic[at]:.6g}, central differences {numeric[at]:.6g}, off "
                         f"by {error[at]:.3g}")
    if wrong:
        raise AssertionError(f"the bprop of Cell {cell.path} is not the gradient of its construct: {'; '.join(wrong)}")
    return worst


def _differences(loss: Callable[[], float], data: Array, step: float) -> np.ndarray:
    """Central differences of a loss with respect to each element of an array, which is restored."""
    result = np.zeros(data.shape)
    for at in np.ndindex(data.shape):
        before = data[at]
        data[at] = before + step
        above = loss()
        data[at] = before - step
        below = loss()
        data[at] = before
        result[at] = (above - below) / (2 * step)
    return result

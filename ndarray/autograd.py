"""autograd: record the operators that are applied to arrays, and differentiate them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opreg.core.gradient import fit_gradient
from opreg.core.graph import Entry, Node, topological
from opreg.core.mode import MODE, Recording, UserRecording
from opreg.core.named_errors import name_errors, named
from opreg.core.rules import as_list, counted, warn_of_none
from opreg.core.slots import Slot
from opreg.core.value import Value
from opreg.core.versions import LATEST, tick, written
from opreg.errors import ArgumentError, NotDifferentiableError, OpError, line_at, warn

from . import backward_pass, finite, tape
from .context import Context, current_context
from .ndarray import NDArray, array
from .nesting import arrays_in
from .overwritten import OverwrittenArray, overwritten_error
from .tape import TapedFunction

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

__all__ = ["record", "pause", "train_mode", "predict_mode", "is_recording", "is_training", "set_recording",
           "set_training", "mark_variables", "backward", "grad", "jvp", "vmap", "get_symbol", "Function",
           "NDArray"]  # scripts import it from here by a star

#: One array or several.
NDArrays: TypeAlias = NDArray | Sequence[NDArray]
#: Makes a symbol of entries of a graph.
SYMBOL = Slot("graphs")
#: Vectorise a function over samples; compute the value of a function and its derivative along directions.
VMAP, JVP = Slot("transforms"), Slot("transforms")


def record(train_mode: bool = True, check_numbers: bool | str | None = None) -> Recording:
    """A context manager in which operators are recorded, by default in training mode.

    Parameters
    ----------
    train_mode : bool
        Whether operators run as in training.
    check_numbers : bool or "debug", optional
        Whether an operator that makes a NaN or an infinity from finite inputs raises a `NonFiniteError`, also in the
        backward pass. The error names the operator, its line, and the ranges of inputs and outputs. With ``"debug"``, a
        debugger stops there first. The default is set by the environment variable ``OPREG_CHECK_NUMBERS``.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> x = array([3.0])
    >>> x.attach_grad()
    >>> with record():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad.asscalar()
    np.float32(6.0)
    """
    return UserRecording("autograd.record()", finite.recording_value(check_numbers), train_mode)


def pause(train_mode: bool = False) -> Recording:
    """A context manager in which nothing is recorded.

    Examples
    --------
    >>> x = array([2.0])
    >>> x.attach_grad()
    >>> with record():
    ...     y = x * x
    ...     with pause():
    ...         factor = x * 10  # a constant for the gradient
    ...     z = y * factor
    >>> z.backward()
    >>> x.grad.asnumpy()
    array([80.], dtype=float32)
    """
    return UserRecording("autograd.pause()", False, train_mode)


def train_mode() -> Recording:
    """A context manager in which operators run as in training.

    Examples
    --------
    >>> with record(train_mode=False), train_mode():
    ...     print(is_training())
    True
    """
    return UserRecording("autograd.train_mode()", None, True)


def predict_mode() -> Recording:
    """A context manager in which operators run as in inference.

    Examples
    --------
    >>> with record(), predict_mode():
    ...     print(is_recording(), is_training())
    True False
    """
    return UserRecording("autograd.predict_mode()", None, False)


def is_recording() -> bool:
    """Whether operators are recorded now.

    Examples
    --------
    >>> with record():
    ...     print(is_recording())
    True
    """
    return bool(MODE.recording)


def is_training() -> bool:
    """Whether operators run as in training now. In a Cell, it is the mode of the Cell.

    Examples
    --------
    >>> with record():
    ...     print(is_training())
    True
    """
    if MODE.tracer is not None:
        MODE.tracer.mind_training()
    return MODE.training


def set_recording(is_record: bool) -> bool:
    """Set whether operators are recorded; returns the former setting.

    Examples
    --------
    >>> before = set_recording(True)
    >>> before, set_recording(before)
    (False, True)
    """
    checked = isinstance(is_record, finite.CheckedRecording)  # ``is_record`` is a value that an earlier call returned
    before, MODE.recording = MODE.recording, is_record if checked else bool(is_record)
    return before


def set_training(train_mode: bool) -> bool:
    """Set whether operators run as in training; returns what it was.

    Examples
    --------
    >>> before = set_training(True)
    >>> before, set_training(before)
    (False, True)
    """
    before, MODE.training = is_training(), bool(train_mode)
    return before


def _as_list(value: object, what: str) -> list[Any]:
    if isinstance(value, NDArray):
        return [value]
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{what}: expected an NDArray or a list of them, got {type(value).__name__}")
    for i, member in enumerate(value):
        if not (isinstance(member, NDArray) or (member is None and what == "head_grads")):
            raise ArgumentError(f"{what}: expected NDArrays, got {type(member).__name__} at {i}")
    return list(value)


def mark_variables(variables: NDArrays, gradients: NDArrays, grad_reqs: str | Sequence[str] = "write") -> None:
    """Request the gradients of arrays, to be stored in given arrays.

    Parameters
    ----------
    variables, gradients : NDArray or list of them
        The arrays, and those that their gradients are stored in.
    grad_reqs : str or list of str
        ``write``, ``add`` or ``null``.

    Warns
    -----
    UserWarning
        If there are more gradients or requests than variables. The first ones are used, as in MXNet.

    Raises
    ------
    ArgumentError
        If there are fewer.

    Examples
    --------
    >>> x, gradient = array([3.0]), array([0.0])
    >>> mark_variables(x, gradient)
    >>> with record():
    ...     y = x * x
    >>> backward(y)
    >>> gradient.asnumpy()
    array([6.], dtype=float32)
    """
    variables, gradients = _as_list(variables, "variables"), _as_list(gradients, "gradients")
    count = len(variables)
    reqs = [grad_reqs] * count if isinstance(grad_reqs, str) else list(grad_reqs)
    if not count == len(gradients) == len(reqs):
        counts = f"mark_variables: {count} variables, {len(gradients)} gradients and {len(reqs)} requests"
        if min(len(gradients), len(reqs)) < count:
            raise ArgumentError(counts)
        warn(f"{counts}; the first {count} of each are used")
    for variable, gradient, req in zip(variables, gradients, reqs):
        variable._entry = tape.leaf(variable, gradient, req)


def backward(heads: NDArrays, head_grads: NDArray | Sequence[NDArray | None] | None = None, retain_graph: bool = False,
             train_mode: bool = True) -> None:
    """Compute the gradients of heads with respect to all arrays with ``attach_grad``, and store them there.

    Parameters
    ----------
    heads : NDArray or list of them
        The arrays to differentiate.
    head_grads : NDArray or list of them, optional
        Gradients of the heads; ones by default.
    retain_graph : bool
        Keep the recorded operators for another backward pass.
    train_mode : bool
        Whether gradients are those of training, in whatever mode the forward pass ran. It matters for BatchNorm, for
        instance.

    Examples
    --------
    >>> x = array([3.0])
    >>> x.attach_grad()
    >>> with record():
    ...     y, z = x * 2, x * x
    >>> backward([y, z], [array([1.0]), array([10.0])])
    >>> x.grad.asnumpy()
    array([62.], dtype=float32)
    """
    heads = _as_list(heads, "heads")
    backward_pass.backward(heads, None if head_grads is None else _as_list(head_grads, "head_grads"), retain_graph,
                           train_mode)


def grad(heads: NDArrays, variables: NDArrays, head_grads: NDArray | Sequence[NDArray | None] | None = None,
         retain_graph: bool | None = None, create_graph: bool = False, train_mode: bool = True) -> list[NDArray]:
    """Gradients of heads with respect to variables, returned in a list, also for a single variable.

    Parameters
    ----------
    heads, variables : NDArray or list of them
        The arrays to differentiate, and the arrays to differentiate with respect to. A variable may be any recorded
        array, also without ``attach_grad``.
    head_grads : NDArray or list of them, optional
        Gradients of the heads; ones by default.
    retain_graph : bool, optional
        Keep the recorded operators for another backward pass; by default the value of ``create_graph``.
    create_graph : bool
        Record the gradients, so that they can be differentiated again.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> x = array([2.0])
    >>> x.attach_grad()
    >>> with record():
    ...     y = x * x * x
    ...     (first,) = grad(y, x, create_graph=True)
    >>> first.backward()
    >>> x.grad.asscalar()  # the second derivative, 6 x
    np.float32(12.0)
    """
    heads, variables = _as_list(heads, "heads"), _as_list(variables, "variables")
    if not variables:
        raise ArgumentError("grad: expected at least one variable")
    gradients = backward_pass.gradients(
        heads, variables, None if head_grads is None else _as_list(head_grads, "head_grads"),
        create_graph if retain_graph is None else retain_graph, create_graph, train_mode)
    if create_graph:
        for g in gradients:
            g._entry = g._entry or tape.constant([head._entry for head in heads], g)
    return gradients


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that applies a function of one sample to many samples at once; see ``opreg.vmap``.

    Parameters
    ----------
    function : callable
        A function of arrays. It is traced once, with values that have the shape of a sample and no elements.
    in_axes, out_axes : int, None, or nesting of them
        The axis of the samples in inputs and outputs; None for one that all samples share.

    Examples
    --------
    >>> from opreg import nd
    >>> weights, rows = nd.array([1.0, 2.0]), nd.array([[1.0, 1.0], [0.0, 3.0], [2.0, 0.0]])
    >>> vmap(lambda row, w: nd.sum(row * w), in_axes=(0, None))(rows, weights).asnumpy().tolist()
    [[3.0], [6.0], [2.0]]
    """
    return VMAP.function(function, in_axes, out_axes)


def jvp(function: Callable[..., Any], inputs: NDArrays, v: NDArrays) -> tuple[Any, ...]:
    """The value of a function, and its directional derivative; see ``opreg.jvp``.

    Parameters
    ----------
    function : callable
        A function of arrays that returns one or several.
    inputs, v : NDArray or list of them
        Its inputs, and a direction of the same shape for each.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> value, along = jvp(lambda x: x * x, array([3.0]), array([2.0]))
    >>> value.asscalar(), along.asscalar()
    (np.float32(9.0), np.float32(12.0))
    """
    return JVP.function(function, inputs, v)


def get_symbol(x: NDArray) -> Symbol:
    """The recorded computation of an array as a symbol with variables ``var0``, ``var1``, ….

    The operators of a hybridized block are nodes of the symbol.

    Raises
    ------
    OpError
        If the array was not recorded, or if a ``Function`` or other Python code with its own gradient took part.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> x = array([2.0])
    >>> x.attach_grad()
    >>> with record():
    ...     y = x * x + x
    >>> get_symbol(y).list_arguments()
    ['var0']
    """
    if x._entry is None:
        raise OpError("get_symbol: the array is not in a recorded computation")
    variables, applied = itertools.count(), itertools.count()

    def copied(heads: Sequence[Any], places: dict[Any, Node | list[Entry]]) -> list[Entry]:
        """Copy entries of the tape, or of a graph on it, into the symbol; ``places`` holds the nodes that are copied
        already."""
        def entry(source: Any, i: int) -> Entry:
            place = places[source]
            return place[i] if isinstance(place, list) else (place, i)

        for node in topological(heads):
            if node in places:
                continue
            op, inputs = node.op, [entry(source, i) for source, i in node.inputs]
            if op is None:
                places[node] = Node(None, f"var{next(variables)}")
            elif not isinstance(op, TapedFunction):
                name = f"{op.name.lower()}{next(applied)}"
                places[node] = Node(op, name, node.attrs, inputs, where=node.where)
            elif op.graph is None:
                raise OpError(f"get_symbol: {node.describe()} is not an operator of a graph")
            else:
                inside, outputs = op.graph(node.attrs)
                places[node] = copied(outputs, {variable: [value] for variable, value in zip(inside, inputs)})
        return [entry(*head) for head in heads]

    return SYMBOL.function(copied([x._entry], {}))


class _FunctionGradient:
    """The gradient of a ``Function``: it calls the user's ``backward``, which is recorded if gradients are.

    Attributes
    ----------
    saved : list of (NDArray, bool, int)
        The inputs and outputs that ``forward`` saved: the array, whether it is an output, and its index.
    lost : str
        Another saved value, whose dependence on the inputs is unknown; empty without one.
    arrays : list of (str, NDArray, raw array)
        All arrays that ``forward`` saved, by name, with their memory when the call was recorded.
    """

    def __init__(self, function: Function, ctx: Context, inputs: Sequence[NDArray], outputs: Sequence[NDArray],
                 before: Mapping[str, object]):
        self.function, self.ctx = function, ctx
        self.name = f"Function {type(function).__name__}"
        places = {id(array): (False, i) for i, array in enumerate(inputs)}
        places.update((id(array), (True, i)) for i, array in enumerate(outputs) if id(array) not in places)
        self.saved: list[tuple[NDArray, bool, int]] = []
        self.lost, self.number = "", tick()
        frame = tape.frame()
        self.place = None if frame is None else (frame.f_code, frame.f_lasti)
        attributes = [(f"self.{name}", value) for name, value in vars(function).items()
                      if name != "_saved" and before.get(name) is not value]
        saved = [*((f"saved tensor {i}", value) for i, value in enumerate(function._saved)), *attributes]
        self.arrays = [(name, array, array._data) for name, value in saved for array in arrays_in(value)]
        for name, value in saved:
            if id(value) in places:
                self.saved.append((value, *places[id(value)]))
            elif _varies(value):
                self.lost = self.lost or name

    def __call__(self, g: NDArray | tuple[NDArray, ...], ins: Sequence[NDArray], outs: Sequence[NDArray], attrs: object,
                 needs: Sequence[bool], is_train: bool = True) -> list[NDArray | None]:
        out_grads = [gradient.shown() for gradient in (g if isinstance(g, tuple) else (g,))]
        if not MODE.recording:
            return self._call_backward(out_grads, ins)
        if self.lost:
            raise NotDifferentiableError(
                f"{self.name}: its gradient cannot be differentiated, since {self.lost} is neither an input nor an "
                "output of forward. Compute it in backward again, from the inputs, or return it from forward, too")
        for gradient in out_grads:  # each gets an entry, so that results which do not depend on it are found
            if gradient._entry is None:
                gradient._entry = tape.constant([value._entry or tape.CONSTANT for value in ins], gradient)
        before = [(saved, saved._entry) for saved, _, _ in self.saved]
        for saved, is_output, i in self.saved:
            saved._entry = (outs if is_output else ins)[i]._entry
        try:
            results = self._call_backward(out_grads, ins)
        finally:
            for saved, entry in before:
                saved._entry = entry
        for i, result in enumerate(results):
            if needs[i] and result is not None and result._entry is None and result._data.any():
                raise NotDifferentiableError(
                    f"{self.name}: its gradient cannot be differentiated, since gradient {i} of backward is not "
                    "computed by operators from its arguments, but in NumPy or from asnumpy()")
        return results

    def _call_backward(self, out_grads: Sequence[NDArray], ins: Sequence[NDArray]) -> list[NDArray | None]:
        """Call ``backward``. Reading a saved array that was overwritten since is an error."""
        before = [(array, array._data) for _, array, _ in self.arrays] if LATEST[0] > self.number else []
        try:
            if before:
                title = f"operator {self.name}, recorded at {line_at(self.place)}"
                for name, array, raw in self.arrays:
                    write = written(raw, self.number)
                    array._data = raw if write is None else OverwrittenArray.of(
                        raw, overwritten_error(title, name, raw, write))
            return self._check_gradients(self.function.backward(*out_grads), ins)
        finally:
            for array, data in before:
                array._data = data

    def _check_gradients(self, returned: Any, ins: Sequence[NDArray]) -> list[NDArray | None]:
        """The gradients that ``backward`` returned, as a list of arrays."""
        results = as_list(returned)
        if returned is None and len(ins) == 1:
            warn_of_none(self.function.backward, f"{type(self.function).__name__}.backward")
        if len(results) != len(ins):
            raise ArgumentError(f"{self.name}.backward: expected {len(ins)} gradients, one for each input of "
                                f"forward, got {counted(returned)}")
        for i, (gradient, value) in enumerate(zip(results, ins)):
            if gradient is None:
                continue
            if isinstance(gradient, (np.ndarray, np.generic)):
                gradient = results[i] = array(gradient, self.ctx, value._data.dtype)
            if not isinstance(gradient, NDArray):
                raise ArgumentError(f"{self.name}.backward: gradient {i} must be an NDArray, got "
                                    f"{type(gradient).__name__}")
            results[i] = fit_gradient(gradient, value, f"{self.name}.backward: gradient {i}")
        return results


def _varies(value: object) -> bool:
    """Whether a value contains elements that may have a derivative, which are not integers or booleans."""
    if isinstance(value, (list, tuple)):
        return any(map(_varies, value))
    dtype = getattr(getattr(value, "_data", value), "dtype", None)
    return dtype is not None and getattr(dtype, "kind", "f") not in "iub"


class Function:
    """A function of arrays with a user-defined gradient, for eager code.

    Derive a class, define ``forward(*inputs)`` and ``backward(*output_gradients)``, and call each instance once.
    ``backward`` returns a gradient, or None, for each input that is an array. Both may return NumPy arrays.

    For higher derivatives, ``backward`` is recorded. It must then consist of operators on the output gradients and on
    the inputs and outputs of ``forward``.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> class Square(Function):
    ...     def forward(self, x):
    ...         self.save_for_backward(x)
    ...         return x * x
    ...     def backward(self, dy):
    ...         (x,) = self.saved_tensors
    ...         return dy * x * 2
    >>> x = array([3.0])
    >>> x.attach_grad()
    >>> with record():
    ...     y = Square()(x)
    >>> y.backward()
    >>> x.grad.asscalar()
    np.float32(6.0)
    """

    _used = False
    _saved: tuple[Any, ...] = ()

    @named
    def __init__(self, *args: Any):
        if args:
            name, kinds = type(self).__name__, ", ".join(type(argument).__name__ for argument in args)
            raise ArgumentError(f"{name}: make an instance of the autograd.Function first, then call it: {name}()(x), "
                                f"got {kinds}")
        super().__init__()

    def save_for_backward(self, *args: Any) -> None:
        """Save arrays for ``backward``, which reads them from ``saved_tensors``."""
        self._saved = args

    @property
    def saved_tensors(self) -> tuple[NDArray, ...]:
        """The arrays that ``save_for_backward`` saved."""
        return self._saved

    def __call__(self, *inputs: Any) -> Any:
        if self._used:
            raise ArgumentError(f"{type(self).__name__}: an instance of autograd.Function can be called only once; "
                                f"make a new one for each call")
        self._used = True
        self._need_arrays(inputs)
        before = dict(vars(self))
        with Recording(False, None):
            outputs = self.forward(*inputs)
        many = isinstance(outputs, (list, tuple))
        arrays = [value for value in inputs if isinstance(value, NDArray)]
        ctx = arrays[0]._ctx if arrays else current_context()
        results = [array(output, ctx, output.dtype) if isinstance(output, (np.ndarray, np.generic)) else output
                   for output in (outputs if many else [outputs])]
        if not many and outputs is None:
            raise ArgumentError(f"{type(self).__name__}.forward returned None, expected an NDArray or a list of them")
        _as_list(results, f"{type(self).__name__}.forward")
        if MODE.recording:
            fresh = [result.detach() for result in results]
            gradient = _FunctionGradient(self, ctx, arrays, results, before)
            op = TapedFunction(gradient.name, gradient, len(fresh))
            tape.record(op, {}, arrays, [value._data for value in arrays], fresh, None, MODE.recording)
            results = fresh
        return results if many else results[0]

    def _need_arrays(self, inputs: Sequence[object]) -> None:
        """Let a traced function run as Python, and refuse symbols and other values without elements."""
        what = next((value for value in inputs if isinstance(value, Value) and not isinstance(value, NDArray)), None)
        if what is None:
            return
        name = type(self).__name__
        if hasattr(MODE.tracer, "leave"):
            MODE.tracer.leave(f"it calls {name}, an autograd.Function")
        raise ArgumentError(f"{name}: an autograd.Function computes with arrays, got {type(what).__name__}. For a "
                            f"graph, register an operator, by mx.operator.define or as a CustomOpProp")

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """Compute outputs from inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, *output_grads: Any, **keywords: Any) -> Any:
        """Compute the gradients of the inputs from those of the outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")


name_errors(__name__, globals(), [name for name in __all__ if not name.startswith("is_")])


def __dir__() -> list[str]:
    return sorted(__all__)

"""Custom: a Python function of NumPy arrays as a primitive, and a call of a registered operator in MXNet's form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray.ndarray import NDArray
from opreg.symbol import Symbol

from ...cells import dtype as dtypes
from ...cells.cell import Cell
from ...cells.python_op import call
from ...cells.state import STATE
from ...cells.tensor import Tensor, tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import TensorDType
from ...core.rules import as_list
from ...core.spec import Spec, as_dtype, show
from ...custom.operator import custom
from ...errors import ArgumentError, DTypeError, NotDifferentiableError, ShapeError, did_you_mean, note
from .primitive import PrimitiveWithInfer

__all__ = ["Custom"]

#: Types of MindSpore besides ``pyfunc``.
_ELSEWHERE = ("hybrid", "akg", "tbe", "aicpu", "aot", "julia")


#: Shapes of a ``Custom``'s results: a shape, several, or a function of the input shapes; likewise for dtypes.
_Shapes: TypeAlias = Sequence[int] | Sequence[Sequence[int]] | Callable[..., Any]
_Dtypes: TypeAlias = TensorDType | Sequence[TensorDType] | Callable[..., Any]


class Custom(PrimitiveWithInfer):
    """A Python function of NumPy arrays as a primitive: ``Custom(func, out_shape, out_dtype, "pyfunc")``.

    ``Custom(*tensors, op_type="name", **attributes)`` applies a user's operator that was registered with
    ``opreg.operator.register``, and returns its results.

    Parameters
    ----------
    func : callable
        A function of NumPy arrays, and of other arguments of the primitive, which each run calls. Returns an array, or
        a tuple of arrays.
    out_shape : tuple, or callable
        Shape of the result, or a tuple of shapes for several results; or a function of the input shapes that returns
        it.
    out_dtype : dtype, tuple, or callable
        Likewise the dtype. With ``()`` there is no result.
    func_type : {"pyfunc"}
        The type; only this one is available.
    bprop : callable, optional
        A function of the inputs, the output and its gradient, all tensors; returns a gradient for each input. Without
        it there is no gradient.
    reg_info
        Accepted without effect.

    Raises
    ------
    ShapeError, DTypeError
        When a result differs from the declared shape or dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg import Tensor, grad
    >>> def bprop(x, out, dout):
    ...     return dout * x * 2
    >>> square = Custom(lambda x: np.square(x), lambda shape: shape, lambda dtype: dtype, "pyfunc", bprop)
    >>> square(Tensor([1.0, 3.0])), grad(square)(Tensor([1.0, 3.0]))
    (Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  9.00000000e+00]),
     Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  6.00000000e+00]))
    """

    def __new__(cls, *inputs: Any, op_type: str | None = None, **attributes: Any) -> Any:
        if op_type is not None:
            return custom(op_type)(*[tensor(value) for value in inputs], **attributes)
        if (not inputs and "func" not in attributes) or (inputs and isinstance(inputs[0], (TensorBase, np.ndarray))):
            raise ArgumentError("Custom: expected a function and the shape and dtype of its result, as "
                                "Custom(func, out_shape, out_dtype, 'pyfunc'); or the inputs and op_type=, the name of "
                                "an operator registered with opreg.operator.register")
        return super().__new__(cls)

    def __init__(self, func: Callable, out_shape: _Shapes | None = None, out_dtype: _Dtypes = None,
                 func_type: str = "pyfunc", bprop: Callable | None = None, reg_info: object = None):
        super().__init__("Custom")
        if func_type != "pyfunc":
            if func_type in _ELSEWHERE:
                raise ArgumentError(f"Custom: func_type {func_type!r} is not available, only 'pyfunc'; "
                                    "register your own kernels with opreg.operator")
            raise ArgumentError(f"Custom: func_type {func_type!r}. {did_you_mean(str(func_type), ('pyfunc',))}")
        if not callable(func):
            raise ArgumentError(f"For 'Custom', 'func' must be of type function or str, but got {type(func).__name__}")
        for name, value, kinds in (("out_shape", out_shape, (tuple, list)),
                                   ("out_dtype", out_dtype, (tuple, list, dtypes.DType, np.dtype, type, str))):
            if not (callable(value) or isinstance(value, kinds)):
                raise ArgumentError(f"For 'Custom', {name!r} must be a value or a function, but got "
                                    f"{type(value).__name__}")
        if bprop is not None and not callable(bprop):
            raise ArgumentError(f"For 'Custom', 'bprop' must be a function, but got {type(bprop).__name__}")
        self.func, self.out_shape, self.out_dtype, self.func_type = func, out_shape, out_dtype, func_type
        self.bprop, self.reg_info = bprop, reg_info
        self.title = f"Custom {getattr(func, '__name__', type(func).__name__)}"
        self.attrs = {"func_name": getattr(func, "__name__", repr(func)), "func_type": func_type}
        self._cell = _CustomCall(self)

    def __call__(self, *inputs: Any) -> Any:
        inputs = tuple([tensor(value) if isinstance(value, (np.ndarray, NDArray)) and not isinstance(value, TensorBase)
                        else value for value in inputs])
        if any(isinstance(value, Symbol) for value in inputs):
            raise ArgumentError(f"{self.title}: it computes tensors, not symbols. For symbols, register an operator, "
                                f"by opreg.operator.define or as a CustomOpProp")
        if not self.results(inputs)[0]:  # without a result there is no gradient
            return self._cell.construct(*inputs)
        return self._cell(*inputs)

    def infer_shape(self, *shapes: Sequence[int]) -> Any:
        """The shape of the result, or of several, for given input shapes."""
        return _apply_rule(self.out_shape, [list(shape) for shape in shapes])

    def infer_dtype(self, *kinds: dtypes.DType | type) -> Any:
        """The dtype of the result, or of several, for given input dtypes."""
        return _apply_rule(self.out_dtype, kinds)

    def results(self, inputs: tuple[Any, ...]) -> tuple[list[Spec], bool]:
        """Shapes and dtypes of the function's results, and whether it is a single bare result."""
        dtype = self.infer_dtype(*[dtypes.of(value._dt) if isinstance(value, TensorBase) else type(value)
                                   for value in inputs])
        shape = self.infer_shape(*[value.shape if isinstance(value, TensorBase) else () for value in inputs])
        bare = not isinstance(dtype, (tuple, list))
        if bare and shape and all(isinstance(part, (tuple, list)) for part in shape):
            dtype, bare = [dtype] * len(shape), False
        shapes = [shape] if bare else shape
        specs = [Spec(tuple(map(int, lengths)), as_dtype(kind))
                 for lengths, kind in zip(shapes, [dtype] if bare else dtype)]
        if not bare and len(shapes) != len(dtype):
            raise ArgumentError(f"{self.title}: out_shape has {len(shapes)} results, out_dtype {len(dtype)}")
        return specs, bare


def _apply_rule(rule: Any, inputs: Sequence[object]) -> Any:
    """The result of a rule for the inputs; a rule that is no function is itself the result."""
    return rule(*inputs) if callable(rule) and not isinstance(rule, type) else rule


class _CustomCall(Cell):
    """The call of a ``Custom``, with its gradient."""

    _has_mode = False

    def __init__(self, primitive: Custom):
        super().__init__(auto_prefix=False)
        self.primitive = primitive

    @property
    def path(self) -> str:
        return self.primitive.title

    def construct(self, *inputs: Any) -> Any:
        primitive = self.primitive
        specs, bare = primitive.results(inputs)
        values = [value for value in inputs if isinstance(value, Tensor)]

        def run(*arrays: NDArray) -> list[Tensor]:
            rest = iter(arrays)
            arguments = [NDArray.asnumpy(next(rest)) if isinstance(value, TensorBase) else value for value in inputs]
            try:
                returned = primitive.func(*arguments)
            except Exception as error:
                note(error, f"in {primitive.title}")
                raise
            return _check_results(primitive.title, returned, specs)

        if STATE.trace is None:
            results = run(*values)
        else:
            results = call(run, values, [Spec(value.shape, value._dt) for value in values], specs, primitive.title)
        return results[0] if bare else tuple(results) if results else None

    def bprop(self, *args: Any) -> Any:
        primitive = self.primitive
        if primitive.bprop is None:
            raise NotDifferentiableError(f"{primitive.title} has no gradient: give one, as bprop=")
        return primitive.bprop(*args)


def _check_results(title: str, returned: object, specs: list[Spec]) -> list[Tensor]:
    """Results of the function as tensors, checked against their declared shapes and dtypes."""
    if not specs:
        return []
    parts = as_list(returned)
    if len(parts) != len(specs):
        raise ArgumentError(f"{title}: expected {len(specs)} results, the function returned {len(parts)}")
    results = []
    for i, (part, spec) in enumerate(zip(parts, specs)):
        host = part.asnumpy() if isinstance(part, NDArray) else np.asarray(part)
        assert spec.dtype is not None
        if host.shape != spec.shape:
            raise ShapeError(f"{title}: result {i} has shape {show(host.shape)}, out_shape says {show(spec.shape)}")
        if not np.can_cast(host.dtype, spec.dtype, "same_kind"):
            raise DTypeError(f"{title}: result {i} has dtype {host.dtype}, out_dtype says {spec.dtype}")
        results.append(tensor(host.astype(spec.dtype)))
    return results

"""MXNet's operators from before ``CustomOp``: ``NumpyOp`` and ``NDArrayOp``, each one object that describes and
computes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.named_errors import named
from ..core.op import Op
from ..core.registry import register_while_held
from .custom_op import CustomOp, CustomOpProp
from .prop import of_prop
from .signature import RULES, warn_misspelt

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..ndarray.ndarray import NDArray

__all__ = ["PythonOp", "NumpyOp", "NDArrayOp"]

_COUNT = itertools.count()


class PythonOp:
    """The base class of operators in the style before ``CustomOp``: one object that describes and computes.

    Derive from ``NumpyOp`` or ``NDArrayOp``, and define the methods of a Prop and of its operator in one class. Calling
    an instance makes a symbol. Only ``CustomOp`` has attributes, states, dtypes and requests. The rules ``gradient``,
    ``vmap``, ``jvp`` and ``to_onnx`` are those of ``CustomOpProp``.

    Parameters
    ----------
    need_top_grad : bool
        Whether ``backward`` reads the output gradients. Otherwise, as for a loss, it gets an empty list.
    """

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        warn_misspelt(cls, PythonOp)

    @named
    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The same as ``get_symbol``."""
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the operator to symbols, by position or by name, which makes a symbol; or to arrays.

        Raises
        ------
        NotImplementedError
            If the class derives from neither ``NumpyOp`` nor ``NDArrayOp``.
        """
        raise NotImplementedError(f"{type(self).__name__}.get_symbol: derive from NumpyOp or NDArrayOp")

    def forward(self, in_data: list[Any], out_data: list[Any]) -> None:
        """Compute the outputs, in place."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any]) -> None:
        """Compute the gradients of the inputs, in place."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, Any]:
        """Shapes of arguments and outputs, from those of the arguments."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Whether ``backward`` reads the output gradients."""
        return self.need_top_grad_

    def __getstate__(self) -> Any:  # copies get operators of their own
        state: Any = super().__getstate__()
        values, *slots = state if isinstance(state, tuple) else (state or {},)
        values = {name: value for name, value in values.items() if name != "operator"}
        return (values, *slots) if slots else values

    #: The class of the object that computes.
    _run: type[_PythonOpRun]

    @functools.cached_property
    def operator(self) -> Op:
        """The operator of this object, which is found by its name as long as something holds it."""
        kind = type(self).__name__
        rules = {name: _rule(getattr(self, name)) for name in RULES if hasattr(self, name)}
        prop_class = type(kind, (_PythonOpProp,), {"made_of": self, "run": type(kind, (self._run,), {}), **rules})
        return register_while_held(of_prop(f"{kind}{next(_COUNT)}", prop_class))


class NumpyOp(PythonOp):
    """An operator whose ``forward`` and ``backward`` are given NumPy arrays.

    Examples
    --------
    >>> import opreg as mx
    >>> class Softmax(NumpyOp):
    ...     def forward(self, in_data, out_data):
    ...         e = np.exp(in_data[0] - in_data[0].max(axis=1, keepdims=True))
    ...         out_data[0][:] = e / e.sum(axis=1, keepdims=True)
    >>> import numpy as np
    >>> net = Softmax()(data=mx.sym.Variable("x"), name="softmax")
    >>> net.eval(x=mx.nd.zeros((1, 2)))[0].asnumpy().tolist()
    [[0.5, 0.5]]
    """

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """The operator applied: to symbols, by position or by name, which makes a symbol; or to arrays."""
        return self.operator(*args, **kwargs)


class NDArrayOp(PythonOp):
    """An operator whose ``forward`` and ``backward`` are given NDArrays."""

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """The operator applied: to symbols, by position or by name, which makes a symbol; or to arrays."""
        return self.operator(*args, **kwargs)

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """The arrays that ``backward`` reads, chosen from the given indices."""
        return [*(out_grad if self.need_top_grad() else ()), *in_data, *out_data]


def _rule(method: Callable[..., Any]) -> Callable[..., Any]:
    """An optional rule of an object, as a method of its Prop."""
    def rule(prop: _PythonOpProp, *args: Any) -> Any:
        return method(*args)

    return rule


class _PythonOpProp(CustomOpProp):
    """The Prop of a ``PythonOp``."""

    made_of: PythonOp
    run: type[_PythonOpRun]

    def __init__(self) -> None:
        super().__init__(self.made_of.need_top_grad())
        operator = self.made_of
        self.list_arguments, self.list_outputs = operator.list_arguments, operator.list_outputs  # type: ignore[method-assign]
        if isinstance(operator, NDArrayOp):
            self.declare_backward_dependency = operator.declare_backward_dependency  # type: ignore[method-assign]

    def infer_shape(self, in_shape: list[Any]) -> Any:
        return (*self.made_of.infer_shape(in_shape), [])

    def create_operator(self, ctx: Context, shapes: list[Any], dtypes: list[Any]) -> CustomOp:
        return self.run(self.made_of)


class _PythonOpRun(CustomOp):
    """The operator of a ``PythonOp`` that computes on NDArrays."""

    def __init__(self, made_of: PythonOp):
        self.made_of = made_of

    def forward(self, is_train: bool, req: list[str], in_data: list[NDArray], out_data: list[NDArray],
                aux: list[NDArray]) -> None:
        self._compute(self.made_of.forward, req, out_data, "out_data", in_data=in_data)

    def backward(self, req: list[str], out_grad: list[NDArray], in_data: list[NDArray], out_data: list[NDArray],
                 in_grad: list[NDArray], aux: list[NDArray]) -> None:
        self._compute(self.made_of.backward, req, in_grad, "in_grad", in_data=in_data, out_data=out_data,
                      out_grad=out_grad if self.made_of.need_top_grad() else [])

    def _compute(self, function: Callable[..., None], req: list[str], results: list[NDArray], what: str,
                 **lists: list[NDArray]) -> None:
        """Call a method that writes in place, and assign its results as requested."""
        written = [result.copy() for result in results]
        function(**lists, **{what: written})
        for result, request, value in zip(results, req, written):
            self.assign(result, request, value)


class _NumpyOpRun(_PythonOpRun):
    """The operator of a ``NumpyOp``, which computes on NumPy arrays."""

    def _compute(self, function: Callable[..., None], req: list[str], results: list[NDArray], what: str,
                 **lists: list[NDArray]) -> None:
        written = [result.asnumpy() for result in results]
        function(**{name: [array.asnumpy() for array in arrays] for name, arrays in lists.items()}, **{what: written})
        for result, request, value in zip(results, req, written):
            self.assign(result, request, value)


NumpyOp._run, NDArrayOp._run = _NumpyOpRun, _PythonOpRun

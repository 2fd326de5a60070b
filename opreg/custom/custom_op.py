"""The base classes of users' operators: ``CustomOp``, which computes, and ``CustomOpProp``, which describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import is_tensor
from ..core.dispatch import write
from ..core.named_errors import named
from ..core.spec import show
from ..core.versions import must_record_write, wrote
from ..errors import ArgumentError, OpError, ShapeError
from .first_run import default
from .signature import warn_misspelt

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..ndarray.ndarray import NDArray

__all__ = ["CustomOp", "CustomOpProp"]


class CustomOp:
    """The computation of an operator: derive from it, and define ``forward`` and ``backward``.

    Both get lists of NDArrays and write their results through ``assign``.

    Examples
    --------
    >>> class Twice(CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * 2)
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], out_grad[0] * 2)
    """

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        warn_misspelt(cls, CustomOp)

    def forward(self, is_train: bool, req: list[str], in_data: list[NDArray], out_data: list[NDArray],
                aux: list[NDArray]) -> None:
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Whether it runs as in training; in a Cell, whether the Cell was set to train.
        req : list of {"null", "write", "inplace", "add"}
            The request of each output.
        in_data, out_data, aux : list of NDArray
            Inputs, which are read-only; outputs; auxiliary states, which may be changed in place.
        """

    @default
    def backward(self, req: list[str], out_grad: list[NDArray], in_data: list[NDArray], out_data: list[NDArray],
                 in_grad: list[NDArray], aux: list[NDArray]) -> None:
        """Compute the gradients of the inputs from those of the outputs. A gradient that is not written is zero."""

    @default
    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Store ``src`` in ``dst`` as requested: ``write``, ``inplace``, ``add`` or ``null``.

        A scalar fills ``dst``. An array may broadcast to ``dst``, which warns in the first run.

        Raises
        ------
        ArgumentError
            For any other request, and if ``src`` is None, as when a function has no return statement.
        ShapeError
            If ``src`` does not broadcast to ``dst``.
        """
        if src is None and req != "null":  # NumPy would convert None to NaN
            raise ArgumentError("assign: expected an array or a number, got None")
        try:
            if getattr(dst, "_sparse", False):
                raise TypeError("the raw array of a sparse array is a copy")
            # Writes to the raw arrays directly, since this runs for every result of every operator.
            if req == "write" or req == "inplace":
                dst._data[...] = getattr(src, "_data", src)
            elif req == "add":
                dst._data[...] += getattr(src, "_data", src)
            else:
                _check_places(dst, req, src)
                write(dst, req, src)
                return
        except (AttributeError, TypeError, ValueError) as error:
            _check_places(dst, req, src)
            if isinstance(error, OpError):
                raise
            misfit = isinstance(error, ValueError) and tuple(getattr(src, "shape", dst.shape)) != tuple(dst.shape)
        else:
            if must_record_write(dst):
                wrote(dst._data)
            return
        if hasattr(dst, "check_writable"):
            dst.check_writable()
        if misfit:
            raise ShapeError(f"assign: expected shape {show(dst.shape)}, got {show(src.shape)}")
        write(dst, req, src)  # a source on another device, or a target that is sparse or no NDArray


def _check_places(*arguments: Any) -> None:
    """Raise an error if ``assign`` was given a list, or an array instead of a request."""
    if isinstance(arguments[0], (list, tuple)) or not isinstance(arguments[1], str):
        raise ArgumentError(
            "assign: expected an array, its request and a value, as in self.assign(out_data[0], req[0], value), got "
            + ", ".join(type(argument).__name__ for argument in arguments)) from None


class CustomOpProp:
    """The description of an operator: derive from it, and register the class under a name.

    Parameters
    ----------
    need_top_grad : bool
        Whether backward reads the output gradients; that of a loss does not.

    Notes
    -----
    The parameters of the constructor are the operator's attributes. A parameter with an annotation gets a checked value
    of that type; one without gets text, as in MXNet.

    ``traced = True`` promises that the methods of the operator depend only on their arguments. In a graph they are then
    called once, when the plan is built, with values that have a shape and a dtype but no elements. The operators that
    they call replace the user's operator in the graph, and are fused with their neighbours. ``asnumpy`` of such a value
    returns an object that acts as a NumPy array. ``req`` is ``write`` or ``null``. The gradient can be differentiated
    to any order; without a ``backward``, it is the derivative of ``forward``. Reading elements (``if x > 0``,
    ``float(x)``), drawing random numbers and changing auxiliary states are errors. In eager calls the methods run as
    always.

    A class may define three methods that are written in operators: ``gradient(self, g, ins, outs)`` instead of a
    ``backward``, ``vmap(self, ins, batched)``, which computes many samples at once, and ``jvp(self, t, ins, outs)``,
    which computes the directional derivative; see ``Op.grad``, ``Op.vmap`` and ``Op.jvp``.

    ``capturable = True`` promises that, on a GPU, the methods of the operator do all their work by launches on the
    device, that this work depends only on their arrays, and that it changes nothing but these. Graphs then capture the
    launches and replay them, so that Python runs only in the first runs. At capture, a replay is compared with a run on
    other values; a difference is an error.

    ``cheap = True`` tells that ``forward`` takes about as long as reading and writing its arrays, and returns the same
    values each time. With ``bind(recompute=True)``, it may then run again in backward instead of storing its outputs.
    """

    #: Whether the methods of the operator are traced in graphs, instead of run.
    traced = False
    #: Whether the launches of the methods on a GPU may be captured and replayed.
    capturable = False
    #: Whether ``forward`` may run again in backward, instead of storing its outputs.
    cheap = False

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        warn_misspelt(cls, CustomOpProp)

    @named
    def __init__(self, need_top_grad: bool = True):
        if is_tensor(need_top_grad):
            raise ArgumentError(f"{type(self).__name__} describes an operator and takes no arrays: call nd.Custom(…, "
                                "op_type=name) with the name that it is registered under")
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states."""
        return []

    @default
    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Shapes of arguments, outputs and auxiliary states: outputs are shaped as the first argument."""
        if not in_shape and self.list_outputs() and not hasattr(self, "infer_shape_from_data"):
            raise ArgumentError(f"{type(self).__name__} has no arguments, whose shape its outputs could have: write "
                                "infer_shape(self, in_shape), which returns [], the shapes of the outputs, and []")
        first = None if hasattr(self, "infer_shape_from_data") or not in_shape else in_shape[0]
        return in_shape, (first,) * len(self.list_outputs()), ()

    @default
    def infer_type(self, in_type: list[Any]) -> Any:
        """Dtypes of arguments, outputs and auxiliary states: all that of the first argument; without one, float32."""
        dtype = in_type[0] if in_type else np.float32
        return in_type, [dtype] * len(self.list_outputs()), [dtype] * len(self.list_auxiliary_states())

    @default
    def infer_storage_type(self, in_stype: list) -> Any:
        """Storage types of arguments, outputs and auxiliary states, from those of the arguments: ``default`` of all.

        A Prop with a method of its own computes eagerly with sparse arrays. Without one, and in graphs, sparse inputs
        come as dense ones.
        """
        return (in_stype, ["default"] * len(self.list_outputs()),
                ["default"] * len(self.list_auxiliary_states()))

    def infer_storage_type_backward(self, ograd_stype: list, in_stype: list, out_stype: list, igrad_stype: list,
                                    aux_stype: list) -> Any:
        """Storage types of the arrays in backward: of its arguments, and of the input gradients, which are
        ``default``."""
        return ograd_stype, in_stype, out_stype, ["default"] * len(igrad_stype), aux_stype

    @default
    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """The arrays that backward reads, chosen from the given indices."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    @default
    def create_operator(self, ctx: Context, shapes: list[Any], dtypes: list[Any]) -> CustomOp:
        """Make the object that computes; called once for each executor, eager call, and run of a compiled function."""
        return CustomOp()

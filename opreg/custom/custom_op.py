"""Classes that users derive operators from: ``CustomOp``, which computes, and ``CustomOpProp``, which describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dispatch import write
from ..core.spec import show
from ..core.versions import held, wrote
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
            Whether it runs as in training: in a Cell, whether that was set to train.
        req : list of {"null", "write", "inplace", "add"}
            Request of each output.
        in_data, out_data, aux : list of NDArray
            Inputs, which are read-only; outputs; auxiliary states, which may be changed in place.
        """

    @default
    def backward(self, req: list[str], out_grad: list[NDArray], in_data: list[NDArray], out_data: list[NDArray],
                 in_grad: list[NDArray], aux: list[NDArray]) -> None:
        """Compute the gradients of the inputs from those of the outputs; one that is never written counts as zeros."""

    @default
    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Store ``src`` in ``dst`` as requested: ``write``, ``inplace``, ``add`` or ``null``.

        A number fills ``dst``; so does an array that broadcasts to it, with a warning on the first run.

        Raises
        ------
        ArgumentError
            For any other request, and when ``src`` is None, as where a function returns nothing.
        ShapeError
            When ``src`` does not broadcast to ``dst``.
        """
        if src is None and req != "null":  # NumPy takes it for NaN
            raise ArgumentError("assign: expected an array or a number, got None")
        try:
            # Straight to the arrays below: this is called for every result of every operator.
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
            if held(dst):
                wrote(dst._data)
            return
        if hasattr(dst, "check_writable"):
            dst.check_writable()
        if misfit:
            raise ShapeError(f"assign: expected shape {show(dst.shape)}, got {show(src.shape)}")
        write(dst, req, src)  # from another device, or to something that is no NDArray


def _check_places(*given: Any) -> None:
    """Refuse a list, and an array in the place of its request, among what ``assign`` is given."""
    if isinstance(given[0], (list, tuple)) or not isinstance(given[1], str):
        raise ArgumentError(
            "assign: expected an array, its request and a value, as in self.assign(out_data[0], req[0], value), got "
            + ", ".join(type(each).__name__ for each in given)) from None


class CustomOpProp:
    """The description of an operator: derive from it, and register the class under a name.

    Parameters
    ----------
    need_top_grad : bool
        Whether backward needs the gradient from above; a loss does not.

    Notes
    -----
    Constructor parameters are the operator's attributes. One with an annotation gets a value of that type, checked;
    one without gets text, as in MXNet.

    A class that sets ``traced = True`` promises that the methods of its operator depend on nothing but their arguments.
    Inside a graph they are then called once, when its plan is made, with values that have a shape and a dtype and no
    numbers; the operators they call take their place, and are fused with what stands around them. ``asnumpy`` of such
    a value acts as a NumPy array. ``req`` is ``write`` or ``null`` there. The gradient can be differentiated to any
    order, and one whose operator has no ``backward`` follows from its ``forward``. Code that reads values (``if x >
    0``, ``float(x)``), random numbers, and changes of auxiliary states are errors. Eagerly the methods run as
    always.

    A class may have two methods more, written in operators as a ``gradient(self, g, ins, outs)`` is:
    ``vmap(self, ins, batched)`` computes many samples at once, and ``jvp(self, t, ins, outs)`` the derivative along
    directions; see ``Op.vmap`` and ``Op.jvp``.

    A class that sets ``capturable = True`` promises that, on a GPU, everything its operator's methods do is launched on
    the device, and follows from the arrays they are given and leaves nothing behind but what it writes to them. Graphs
    then capture what the methods launch and replay it: Python runs in the first runs alone. When it is captured a
    replay is compared with a run, on other numbers; where they differ that is an error.

    A class that sets ``cheap = True`` says that ``forward`` takes no longer than to read and write its arrays, and
    gives the same each time: with ``bind(recompute=True)`` it may run once more in backward, instead of its outputs
    being held.
    """

    #: Whether the methods of the operator are traced instead of run, inside graphs.
    traced = False
    #: Whether what the methods launch on a GPU may be captured and replayed.
    capturable = False
    #: Whether ``forward`` may run again in backward instead of its outputs being held.
    cheap = False

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        warn_misspelt(cls, CustomOpProp)

    def __init__(self, need_top_grad: bool = True):
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

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Shapes of arguments, outputs and auxiliary states, from those of the arguments."""
        first = None if hasattr(self, "infer_shape_from_data") else in_shape[0]
        return in_shape, (first,) * len(self.list_outputs()), ()

    @default
    def infer_type(self, in_type: list[Any]) -> Any:
        """Dtypes of arguments, outputs and auxiliary states, from those of the arguments."""
        return (in_type, [in_type[0]] * len(self.list_outputs()),
                [in_type[0]] * len(self.list_auxiliary_states()))

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
        """Storage types in backward of what it is given and of the gradients of inputs, which are ``default``."""
        return ograd_stype, in_stype, out_stype, ["default"] * len(igrad_stype), aux_stype

    @default
    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """The numbers, among all given, of the arrays that backward reads."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    @default
    def create_operator(self, ctx: Context, shapes: list[Any], dtypes: list[Any]) -> CustomOp:
        """The object that computes: made once an executor, and for each eager call and run of a compiled function."""
        return CustomOp()

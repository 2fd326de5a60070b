"""Users' operators: ``CustomOp`` and ``CustomOpProp`` as in MXNet, and ``define`` for a function.

Both become an ``Op``, as built-in operators are, with the name ``custom.<name>``. So a user's ``softmax`` and the
built-in one exist side by side. Programs import this module as ``opreg.operator``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
)

from ..core.named_errors import name_errors
from ..core.op import Op
from ..core.registry import count_of_names, find, get, names
from ..core.registry import register as enter
from ..core.registry import user_operator as custom
from ..core.setting_reads import reads_setting
from ..core.slots import Slot
from ..errors import ArgumentError
from .custom_op import CustomOp, CustomOpProp
from .function import of_function
from .prop import of_prop
from .python_op import NDArrayOp, NumpyOp, PythonOp

if TYPE_CHECKING:
    import numpy as np

    from opreg.testing import Report

    from ..cells.tensor import Tensor
    from ..ndarray.ndarray import NDArray
    from ..symbol.symbol import Symbol

P = TypeVar("P", bound="type[CustomOpProp]")
A = ParamSpec("A")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
#: Names of auxiliary states, or a dict of their initializers.
Auxiliary: TypeAlias = Sequence[str] | Mapping[str, Any]

__all__ = ["CustomOp", "CustomOpProp", "register", "define", "check", "to_torch", "to_jax", "get",
           "get_all_registered_operators", "get_operator_arguments", "OperatorArguments", "custom", "PythonOp",
           "NumpyOp", "NDArrayOp"]


#: Runs all checks of ``check``.
CHECK = Slot("checks")
#: Convert operators to functions of PyTorch and of JAX.
TO_TORCH = Slot("other libraries")
TO_JAX = Slot("other libraries")


# ------------------------------------------------------------------------------------------- registering


def register(reg_name: str) -> Callable[[P], P]:
    """Register a ``CustomOpProp`` class as an operator; returns the class unchanged.

    Parameters
    ----------
    reg_name : str
        The ``op_type``, as in ``sym.Custom(x, op_type=reg_name)``, ``sym.custom.<reg_name>(x)``, and the same under
        ``nd``. A class that is registered under an existing name replaces the old one, with a warning: in calls, in
        compiled functions, and in symbols that are bound later. Bound executors are not affected.

    Examples
    --------
    >>> @register("_example_identity")
    ... class Identity(CustomOpProp):
    ...     pass
    >>> get("custom._example_identity").list_arguments()
    ['data']
    """
    if not isinstance(reg_name, str) or not reg_name:  # type: ignore[redundant-expr]  # for callers without a type checker
        raise ArgumentError(f"register: expected a name, as in @register('name'), got {reg_name!r}")

    def enter_class(prop: P) -> P:
        if not (isinstance(prop, type) and issubclass(prop, CustomOpProp)):  # type: ignore[redundant-expr]
            raise ArgumentError(f"register({reg_name!r}): expected a class derived from CustomOpProp, got {prop!r}")
        _enter(of_prop(reg_name, prop), reg_name)
        return prop

    return enter_class


def _enter(op: Op, name: str) -> None:
    before = registered(name)
    # No warning for a module that is imported again, or a notebook cell that is run again.
    if before is not None and before.where != op.where:
        warnings.warn(f"operator {name!r}, registered at {before.where}, is replaced by the operator registered at "
                      f"{op.where}",
                      UserWarning, stacklevel=4)
    enter(op)


def registered(name: str) -> Op | None:
    """A user's operator by its ``op_type``, or None."""
    return find(f"custom.{name}")


# ---------------------------------------------------------------------------------------- one function


if TYPE_CHECKING:  # for type checkers: an operator has the parameters and results of its function

    class _First(Protocol[Q, R]):
        """An operator of a function, where ``Q`` is its parameters without the first."""

        @property
        def _function(self) -> Callable[Concatenate[Any, Q], R]: ...

    class DefinedOperator(Op, Generic[A, R]):
        """An operator that takes the parameters of its function. The type of the first input, a tensor or a symbol,
        determines the type of the result."""

        @property
        def _function(self) -> Callable[A, R]: ...

        @overload  # type: ignore[override]
        def __call__(self: _First[Q, tuple[Any, ...]], x: Tensor, /,  # type: ignore[overload-overlap]
                     *args: Q.args, **keywords: Q.kwargs) -> tuple[Tensor, ...]: ...
        @overload
        def __call__(self: _First[Q, tuple[Any, ...]], x: NDArray | np.ndarray, /,  # type: ignore[overload-overlap]
                     *args: Q.args, **keywords: Q.kwargs) -> list[NDArray]: ...
        @overload
        def __call__(self: _First[Q, R], x: Tensor, /, *args: Q.args, **keywords: Q.kwargs) -> Tensor: ...
        @overload
        def __call__(self: _First[Q, R], x: NDArray | np.ndarray, /, *args: Q.args,
                     **keywords: Q.kwargs) -> NDArray: ...
        @overload
        def __call__(self, x: Symbol, /, *args: Any,  # type: ignore[overload-overlap]
                     **keywords: Any) -> Symbol: ...
        @overload
        def __call__(self: DefinedOperator[A, tuple[Any, ...]], *args: A.args,  # type: ignore[overload-overlap]
                     **keywords: A.kwargs) -> Sequence[NDArray]: ...
        @overload
        def __call__(self, *args: A.args, **keywords: A.kwargs) -> NDArray: ...
        @overload
        def __call__(self, x: NDArray, /, *args: Any, out: NDArray | Sequence[NDArray], **keywords: Any) -> Any: ...
        @overload
        def __call__(self, *args: Any, name: str, **keywords: Any) -> Any: ...
        def __call__(self, *args: Any, **keywords: Any) -> Any: ...  # type: ignore[misc]

    class OperatorDecorator(Protocol):
        """A decorator that makes an operator of a function."""

        def __call__(self, function: Callable[A, R], /) -> DefinedOperator[A, R]: ...


@overload
def define(function: Callable[A, R], /, *, name: str | None = None, outputs: Sequence[str] = ("output",),
           auxiliary: Auxiliary = (), types: str | None = None, loss: bool = False, traced: bool = False,
           capturable: bool = False, cheap: bool = False) -> DefinedOperator[A, R]: ...


@overload
def define(function: None = None, /, *, name: str | None = None, outputs: Sequence[str] = ("output",),
           auxiliary: Auxiliary = (), types: str | None = None, loss: bool = False, traced: bool = False,
           capturable: bool = False, cheap: bool = False) -> OperatorDecorator: ...


def define(function: Callable[..., Any] | None = None, /, *, name: str | None = None,
           outputs: Sequence[str] = ("output",), auxiliary: Auxiliary = (), types: str | None = None,
           loss: bool = False, traced: bool = False, capturable: bool = False,
           cheap: bool = False) -> Any:
    """Make an operator from a function of arrays.

    Parameters
    ----------
    function : callable
        The function. Positional parameters are inputs, which are NDArrays; ``*xs`` stands for any number of them, and a
        call may leave out those with the default None, which rules then get as None. Keyword-only parameters are
        attributes, with their annotations as types, except ``ctx``, the context, and ``is_train``, whether it runs as
        in training (in a Cell, whether the Cell was set to train). It returns an NDArray or a NumPy array, or a tuple
        with one for each name in ``outputs``.
    name : str
        The registered name, by default that of the function. An existing operator is replaced, as in ``register``.
    outputs : sequence of str
        Names of the outputs.
    auxiliary : sequence of str, or dict of str
        Names of the last positional parameters, which are states that the function may change in place. A dict gives
        their initial values in executors, modules and Cells that are made from graphs: an initializer or its name, as
        in ``{"mean": "zeros"}``. By default states are zero, and in a Module they get the initializer for their name.
    types : str, optional
        Dtypes of inputs and outputs, as in ``"T,int32->T"``: equal letters are equal dtypes, ``@dtype`` is the
        attribute of that name, ``*`` before a word repeats it, and ``?`` is any dtype. Inputs and results of other
        dtypes are errors, eagerly and in graphs; Python scalars are converted to the declared dtype. States without a
        declared dtype have that of the first input.
    loss : bool
        Whether the operator is a loss, whose gradient needs no output gradient.
    traced : bool
        Whether the function is traced in graphs instead of run; see ``CustomOpProp``. Without ``@f.grad``, the gradient
        is then the derivative of the function.
    capturable : bool
        Whether launches of the function and its gradient on a GPU may be captured and replayed; see ``CustomOpProp``.
    cheap : bool
        Whether ``bind(recompute=True)`` may call it again in backward instead of storing its results; see
        ``CustomOpProp``.

    Returns
    -------
    Op
        The operator, called on arrays and symbols as the functions of ``nd`` and ``sym`` are. Type checkers see the
        parameters of the function, the first input by position; for them ``ctx`` and ``is_train`` need a default, which
        is not used.

        ``@f.grad`` adds a gradient rule, a function ``(g, ins, outs, **attrs)`` that returns a gradient for each input,
        or None. A gradient has the shape of its input, or one that it broadcasts to. A rule that is written in
        operators becomes nodes of a graph and can be differentiated to any order; a rule that reads elements, for
        instance in NumPy, runs in Python. ``@f.infer`` adds a shape rule. Without one, shapes and dtypes are found by a
        run on zeros when a graph is bound. ``@f.fill`` adds a rule for the shapes of states, as for built-in operators.
        ``@f.infer_from_data``, a function of the NDArrays, returns shapes that depend on values; a compiled function
        that calls such an operator runs in Python, with a warning.

    Raises
    ------
    ArgumentError, TypeError
        If the signature of the function is not possible for an operator, or ``types`` does not fit it. ``@f.grad``,
        ``@f.infer`` and the other decorators raise them for functions that could not be called.

    Examples
    --------
    >>> @define(name="_example_scaled")
    ... def scaled(x, *, by: float = 2.0):
    ...     "A multiple of x."
    ...     return x * by
    >>> @scaled.grad
    ... def scaled_grad(g, ins, outs, *, by):
    ...     return g * by
    >>> scaled.list_arguments(), scaled.signature.schema.names
    (['x'], ('by',))
    """
    if function is None:
        return lambda function: define(function, name=name, outputs=outputs, auxiliary=auxiliary, types=types,
                                       loss=loss, traced=traced, capturable=capturable, cheap=cheap)
    op = of_function(name, function, outputs, auxiliary, types, loss, traced, capturable, cheap)
    _enter(op, op.__name__)
    return op


def check(op_or_cell: Any, /, *inputs: Any, **attrs: Any) -> Report:
    """Check an operator of any kind: values, shapes, dtypes, gradients, and its behaviour in graphs.

    Parameters
    ----------
    op_or_cell
        An operator made by ``define``, a ``CustomOpProp`` class, the name of a registered operator, or a function of
        ``nd`` or ``sym``; an ``autograd.Function``; a Cell; or a function of tensors, compiled by ``jit`` or not. Of
        PyTorch: an ``autograd.Function``, a module, an operator of ``torch.library``, or a function of tensors; of JAX:
        a ``custom_vjp``, ``custom_jvp`` or compiled function, or a function of arrays.
    *inputs : array
        Arguments, then auxiliary states. The last ones may be left out if their shapes are inferred from the others.
        Small arrays without ties and zeros are best. Functions of other libraries get everything else unchanged, and
        arrays inside of lists, tuples and dicts are inputs, too.
    **attrs
        Attributes of an operator, or keywords of a function.

    Returns
    -------
    Report
        A verdict for each check: ok, failed, or skipped for a reason. A failed verdict tells the change to make, and
        shows the smallest inputs that were found. The report prints as a table, and is true if no check failed. In a
        test, write ``mx.operator.check(f, x).raise_if_failed()``.

    Raises
    ------
    ArgumentError
        If ``op_or_cell`` cannot be checked.

    Notes
    -----
    The operator runs some hundred times, as in training. The states of random generators are restored, and a copy of a
    Cell is checked. All runs are in this process: ``sys.exit`` is a failed verdict, but a body that never returns is
    not interrupted, and one that crashes or calls ``os._exit`` ends the program. The command ``opreg check`` runs the
    checks in a separate process, with a time limit.

    Examples
    --------
    >>> @define(name="_example_cube")
    ... def cube(x):
    ...     return x * x * x
    >>> @cube.grad
    ... def cube_grad(g, ins, outs):
    ...     return 3 * ins[0] * g
    >>> report = check(cube, [2.0, 3.0])
    >>> report.ok, [verdict.name for verdict in report.failed]
    (False, ['gradient'])
    >>> print(report["gradient"].text)
    the gradient of 'x' at (0,) is 6, central differences say 12
    """
    return CHECK.function(op_or_cell, inputs, attrs)


def to_torch(op: Any, /, *, parameters: Mapping[str, Any] | None = None, random: bool | None = None, **attrs: Any
             ) -> Any:
    """Convert an operator, a Symbol or a Cell to an operator of PyTorch, which passes ``opcheck`` and can be compiled.

    A traced, composed or built-in operator is translated to PyTorch's own operators if these can express it; it is then
    fused with its neighbours and runs on all their devices. Others become a ``torch.library.custom_op`` with shape and
    gradient functions, which calls them with arrays over the memory of the tensors.

    Parameters
    ----------
    op : Op, str, Symbol or Cell
        An operator or its name; a Symbol; a Cell that needs no example for ``to_symbol``.
    parameters : dict of str to NDArray, optional
        Variables of a Symbol that become parameters. The result is then a ``torch.nn.Module``, as for a Cell with
        Parameters. Its tensors share memory with these arrays, so steps of PyTorch's optimizers change both.
    random : bool, optional
        Whether a user's operator draws random numbers; built-in operators declare it. ``torch.manual_seed`` seeds
        random operators.
    **attrs
        Attributes that are fixed. Other attributes are keywords of each call, as is ``is_train``, by default False.
        Attributes of types that PyTorch lacks, and attributes that determine the inputs, must be fixed.

    Returns
    -------
    torch.library.CustomOpDef, torch.OpOverload, function or torch.nn.Module
        An operator of PyTorch. For an operator with auxiliary states, which follow the inputs and are changed in place,
        or with random numbers, it is a function whose attribute ``custom_op`` is the operator.

    Raises
    ------
    UnknownOperatorError, ArgumentError
        For an unknown operator, with the nearest names; for an operator that changes its inputs.
    ImportError
        If PyTorch is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> @define(name="_example_swish", traced=True)
    ... def swish(x, *, beta: float = 1.0):
    ...     x = x.asnumpy()
    ...     return x / (1 + np.exp(-beta * x))
    >>> import torch                                            # doctest: +SKIP
    >>> to_torch(swish)(torch.zeros(2), beta=2.0)               # doctest: +SKIP
    tensor([0., 0.])
    """
    return TO_TORCH.function(op, parameters, random, attrs)


def to_jax(op: Any, /, *, parameters: Mapping[str, Any] | None = None, random: bool | None = None, **attrs: Any
           ) -> Callable[..., Any]:
    """Convert an operator, a Symbol or a Cell to a function of JAX, which works with ``jit``, ``grad`` and ``vmap``.

    A traced, composed or built-in operator is translated to JAX's own operations if these can express it. Others become
    a ``custom_vjp`` of a ``pure_callback``, which calls them on the host, with arrays over the memory of JAX's arrays.

    Parameters
    ----------
    op : Op, str, Symbol or Cell
        An operator or its name; a Symbol; a Cell that needs no example for ``to_symbol``.
    parameters : dict of str to NDArray, optional
        Variables of a Symbol that become parameters, as those of a Cell do. The attribute ``parameters`` of the
        function holds copies of them, and ``f(x, parameters=changed)`` uses others.
    random : bool, optional
        Whether a user's operator draws random numbers; built-in operators declare it. A call of a random operator takes
        a seed, an integer.
    **attrs
        Attributes that are fixed. Other attributes are keywords of each call, as is ``is_train``, by default False;
        they are not traced.

    Returns
    -------
    function
        A function of the inputs, followed by auxiliary states. With states it returns ``(outputs, states)``.

    Raises
    ------
    UnknownOperatorError, ArgumentError
        For an unknown operator, with the nearest names; for an operator that changes its inputs; for shapes that depend
        on values.
    ImportError
        If JAX is not installed.

    Examples
    --------
    >>> import jax                                              # doctest: +SKIP
    >>> jax.grad(lambda x: to_jax("square")(x))(3.0)            # doctest: +SKIP
    Array(6., dtype=float32, weak_type=True)
    """
    return TO_JAX.function(op, parameters, random, attrs)


@reads_setting(answer=count_of_names)
def get_all_registered_operators() -> list[str]:
    """Names of all built-in operators, and ``Custom``, which applies those of the program."""
    return sorted(["Custom", *(name for name in names() if not name.startswith("custom."))])


class OperatorArguments(NamedTuple):
    """The inputs and attributes of an operator: their number, names, and types with defaults as text."""

    narg: int
    names: list[str]
    types: list[str]


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Names and types of the arguments of an operator.

    Examples
    --------
    >>> get_operator_arguments("Dropout").names[:3]
    ['data', 'p', 'mode']
    >>> get_operator_arguments("Dropout").types[:2]
    ['NDArray-or-Symbol', 'float from 0 to 1, optional, default=0.5']
    """
    if op_name == "Custom":  # ``Custom`` is no operator: it applies one
        return OperatorArguments(2, ["data", "op_type"], ["NDArray-or-Symbol[]", "string"])
    op = get(op_name)
    inputs, fields = list(op.signature.input_names), op.signature.schema.fields
    types = ["NDArray-or-Symbol"] * len(inputs)
    if op.signature.variadic and not inputs:
        inputs, types = [op.signature.many], ["NDArray-or-Symbol[]"]
    names = inputs + [field.name for field in fields]
    types += [field.type_text for field in fields]
    return OperatorArguments(len(names), names, types)


register("custom_op")(CustomOpProp)


name_errors(__name__, globals(), __all__)

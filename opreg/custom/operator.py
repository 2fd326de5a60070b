"""Operators that users write: ``CustomOp`` and ``CustomOpProp`` as in MXNet, and ``define`` for one function.

Both become the same record as a built-in operator, under the name ``custom.<name>``, so a user's ``softmax`` and
the built-in one live side by side. Seen from outside this module is ``opreg.operator``.
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

from ..core.op import Op
from ..core.registry import find, get, names
from ..core.registry import register as enter
from ..core.registry import user_operator as custom
from ..core.slots import Slot
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
#: Names of states, or what each of them begins with.
Auxiliary: TypeAlias = Sequence[str] | Mapping[str, Any]

__all__ = ["CustomOp", "CustomOpProp", "register", "define", "check", "to_torch", "to_jax", "get",
           "get_all_registered_operators", "get_operator_arguments", "OperatorArguments", "custom", "PythonOp",
           "NumpyOp", "NDArrayOp"]


#: Asks all questions of ``check``.
CHECK = Slot("checks")
#: Make operators functions of other libraries.
TO_TORCH = Slot("other libraries")
TO_JAX = Slot("other libraries")


# ------------------------------------------------------------------------------------------- registering


def register(reg_name: str) -> Callable[[P], P]:
    """Register a ``CustomOpProp`` class as an operator; returns the class unchanged.

    Parameters
    ----------
    reg_name : str
        The ``op_type`` it is reached by: ``sym.Custom(x, op_type=reg_name)``, ``sym.custom.<reg_name>(x)``, and the
        same under ``nd``. Registering a name again takes its place, with a warning: for calls, for symbols that are
        bound from then on, and for compiled functions. Bound executors keep their operator.

    Examples
    --------
    >>> @register("_example_identity")
    ... class Identity(CustomOpProp):
    ...     pass
    >>> get("custom._example_identity").list_arguments()
    ['data']
    """
    if not isinstance(reg_name, str) or not reg_name:  # type: ignore[redundant-expr]  # who checks no types
        raise TypeError(f"register: expected a name, as in @register('name'), got {reg_name!r}")

    def enter_class(prop: P) -> P:
        if not (isinstance(prop, type) and issubclass(prop, CustomOpProp)):  # type: ignore[redundant-expr]
            raise TypeError(f"register({reg_name!r}): expected a class derived from CustomOpProp, got {prop!r}")
        _enter(of_prop(reg_name, prop), reg_name)
        return prop

    return enter_class


def _enter(op: Op, name: str) -> None:
    before = registered(name)
    # A module imported again, or a cell run again, defines the same thing anew: no news.
    if before is not None and before.where != op.where:
        warnings.warn(f"operator {name!r}, registered at {before.where}, is replaced by the one at {op.where}",
                      UserWarning, stacklevel=4)
    enter(op)


def registered(name: str) -> Op | None:
    """A user's operator by its ``op_type``, or None."""
    return find(f"custom.{name}")


# ---------------------------------------------------------------------------------------- one function


if TYPE_CHECKING:  # what checkers know of a function that became an operator: its parameters and results

    class _First(Protocol[Q, R]):
        """An operator of a function whose first parameter is left out of ``Q``."""

        @property
        def _function(self) -> Callable[Concatenate[Any, Q], R]: ...

    class Defined(Op, Generic[A, R]):
        """Calls go by the function's own parameters; a tensor or a symbol in the first place decides the type of
        the result."""

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
        def __call__(self: Defined[A, tuple[Any, ...]], *args: A.args,  # type: ignore[overload-overlap]
                     **keywords: A.kwargs) -> Sequence[NDArray]: ...
        @overload
        def __call__(self, *args: A.args, **keywords: A.kwargs) -> NDArray: ...
        @overload
        def __call__(self, x: NDArray, /, *args: Any, out: NDArray | Sequence[NDArray], **keywords: Any) -> Any: ...
        @overload
        def __call__(self, *args: Any, name: str, **keywords: Any) -> Any: ...
        def __call__(self, *args: Any, **keywords: Any) -> Any: ...  # type: ignore[misc]

    class Defining(Protocol):
        """Makes an operator of a function."""

        def __call__(self, function: Callable[A, R], /) -> Defined[A, R]: ...


@overload
def define(function: Callable[A, R], /, *, name: str | None = None, outputs: Sequence[str] = ("output",),
           auxiliary: Auxiliary = (), types: str | None = None, loss: bool = False, traced: bool = False,
           capturable: bool = False, cheap: bool = False) -> Defined[A, R]: ...


@overload
def define(function: None = None, /, *, name: str | None = None, outputs: Sequence[str] = ("output",),
           auxiliary: Auxiliary = (), types: str | None = None, loss: bool = False, traced: bool = False,
           capturable: bool = False, cheap: bool = False) -> Defining: ...


def define(function: Callable[..., Any] | None = None, /, *, name: str | None = None,
           outputs: Sequence[str] = ("output",), auxiliary: Auxiliary = (), types: str | None = None,
           loss: bool = False, traced: bool = False, capturable: bool = False,
           cheap: bool = False) -> Any:
    """Make an operator of one function of arrays.

    Parameters
    ----------
    function : callable
        Positional parameters are inputs, NDArrays, and ``*xs`` any number of them; keyword-only ones are attributes,
        typed by their annotations, but for ``ctx``, the context it computes in, and ``is_train``, whether it runs as in
        training: in a Cell, whether that was set to train. It returns an array, in NumPy or not, or a tuple of as many
        as ``outputs`` names.
    name : str
        Registered name; the function's by default. Defining a name again takes its place, as in ``register``.
    outputs : sequence of str
        Names of the outputs.
    auxiliary : sequence of str, or dict of str
        The last positional parameters, which are states that the function may change in place. A dict says what they
        begin with in executors, modules and Cells that are made of graphs: an initializer or its name, as in
        ``{"mean": "zeros"}``. The default is zero, in a Module the initializer for the name.
    types : str, optional
        Dtypes of inputs and outputs, as in ``"T,int32->T"``: equal letters are equal dtypes, ``@dtype`` is the
        attribute of that name, ``*`` before a word repeats it, ``?`` may be anything. Inputs and results of others are
        refused, eagerly as in graphs; numbers of Python take the declared dtype. States that it does not name have that
        of the first input.
    loss : bool
        Whether its gradient needs none from above.
    traced : bool
        Whether the function is traced instead of run inside graphs, as ``CustomOpProp`` describes it. Without
        ``@f.grad`` the gradient then follows from the function.
    capturable : bool
        Whether what the function and its gradient launch on a GPU may be captured and replayed, as ``CustomOpProp``
        describes it.
    cheap : bool
        Whether ``bind(recompute=True)`` may call it again in backward instead of holding its results, as
        ``CustomOpProp`` describes it.

    Returns
    -------
    Op
        Called on arrays and symbols as functions of ``nd`` and ``sym`` are. Type checkers see the function's own
        parameters, its first input by position; for them ``ctx`` and ``is_train`` want a default, which counts for
        nothing. ``@f.grad`` adds a gradient, a function
        ``(g, ins, outs, **attrs)`` that returns one for each input, of its shape or of one that it broadcasts to; None
        is none. One written in operators becomes nodes of a graph and is differentiated to any order; one that needs
        numbers, in NumPy for one, runs as Python. ``@f.infer`` adds a shape rule. Without one, shapes and dtypes come
        from a run on zeros when a graph is bound. ``@f.fill`` says how shapes of states follow, as it does for
        built-in operators. ``@f.infer_from_data``, a function of the NDArrays, returns shapes that depend on values;
        a compiled function is left to Python there, with a warning.

    Raises
    ------
    ArgumentError, TypeError
        When the function's signature is not one of an operator, or ``types`` does not fit it. ``@f.grad``, ``@f.infer``
        and the other rules refuse functions that they could not call.

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
    """Check an operator, however it is written, against everything that is expected of one.

    Parameters
    ----------
    op_or_cell
        An operator: made by ``define``, a ``CustomOpProp`` class, the name of a registered one, or a function of ``nd``
        or ``sym``; an ``autograd.Function``, PyTorch's too; a ``custom_vjp`` function of JAX; a Cell; a function of
        tensors, compiled by ``jit`` or not.
    *inputs : array
        Inputs: arguments, then auxiliary states. The last ones of an operator may be left out if they
        are filled in from the others. A few numbers are best, without ties and zeros. Python numbers go to
        functions of other libraries unchanged.
    **attrs
        Attributes of an operator, keywords of a function.

    Returns
    -------
    Report
        A verdict for each check, ok, failed or skipped for a reason; one that failed says what to change, and shows
        the smallest inputs that were found. It prints as a table and is true if nothing failed. In a test:
        ``mx.operator.check(f, x).raise_if_failed()``.

    Raises
    ------
    ArgumentError
        When it is given nothing that can be checked.

    Notes
    -----
    What is checked is run some hundred times, as in training; random generators are left as they were, and of a Cell a
    copy is checked. It runs in this process: ``sys.exit`` is a failed verdict, but a body that never returns is not
    interrupted, and one that crashes or calls ``os._exit`` ends the program. The command ``opreg check`` runs it in
    a process of its own, with a limit of time.

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
    """Make an operator of PyTorch of an operator, a Symbol or a Cell; it passes PyTorch's ``opcheck`` and compiles.

    A traced, composed or built-in operator that PyTorch's own operations can express is translated to them: it
    fuses with its neighbours and runs wherever they do. Anything else is called, with arrays over the memory of the
    tensors, as a ``torch.library.custom_op`` that knows its shapes and its gradient.

    Parameters
    ----------
    op : Op, str, Symbol or Cell
        An operator or its name; a Symbol; a Cell that needs no example for ``to_symbol``.
    parameters : dict of str to NDArray, optional
        Variables of a Symbol that become parameters. Then the result is a ``torch.nn.Module`` over their memory, as of
        a Cell with Parameters: tensors of the same values, which a step of PyTorch's optimizers changes here, too.
    random : bool, optional
        Whether a user's operator draws random numbers; built-in ones say so themselves. Random operators repeat
        after ``torch.manual_seed``.
    **attrs
        Attributes that are fixed now. The others are keywords of each call, as ``is_train`` is, which is False by
        default. Attributes that PyTorch has no type for, and attributes that decide the inputs, are fixed here.

    Returns
    -------
    torch.library.CustomOpDef, torch.OpOverload, function or torch.nn.Module
        An operator of PyTorch; for one with auxiliary states, which it changes in place behind the inputs, or with
        random numbers, a function around it, whose attribute ``custom_op`` it is.

    Raises
    ------
    UnknownOperatorError, ArgumentError
        For what is no operator, with the nearest names; for operators that change their inputs.
    ImportError
        Where PyTorch is not installed.

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
    """Make a function of JAX of an operator, a Symbol or a Cell, which ``jit``, ``grad`` and ``vmap`` take.

    A traced, composed or built-in operator that JAX's own operations can express is translated to them. Anything
    else is a ``custom_vjp`` over ``pure_callback``: the host computes it, with arrays over the memory of JAX's.

    Parameters
    ----------
    op : Op, str, Symbol or Cell
        An operator or its name; a Symbol; a Cell that needs no example for ``to_symbol``.
    parameters : dict of str to NDArray, optional
        Variables of a Symbol that become parameters, as those of a Cell are: copies of them are the function's
        attribute ``parameters``, and ``f(x, parameters=changed)`` takes others in their place.
    random : bool, optional
        Whether a user's operator draws random numbers; built-in ones say so themselves. A random operator is given
        a seed with each call, an integer.
    **attrs
        Attributes that are fixed now. The others are keywords of each call, as ``is_train`` is, which is False by
        default; none of them is traced.

    Returns
    -------
    function
        Of arrays, auxiliary states behind the inputs. With states it returns ``(outputs, states)``.

    Raises
    ------
    UnknownOperatorError, ArgumentError
        For what is no operator, with the nearest names; for operators that change their inputs; where shapes follow
        from numbers.
    ImportError
        Where JAX is not installed.

    Examples
    --------
    >>> import jax                                              # doctest: +SKIP
    >>> jax.grad(lambda x: to_jax("square")(x))(3.0)            # doctest: +SKIP
    Array(6., dtype=float32, weak_type=True)
    """
    return TO_JAX.function(op, parameters, random, attrs)


def get_all_registered_operators() -> list[str]:
    """Names of all built-in operators."""
    return [name for name in names() if not name.startswith("custom.")]


class OperatorArguments(NamedTuple):
    """Inputs and attributes of an operator: how many, their names, and their types and defaults in words."""

    narg: int
    names: list[str]
    types: list[str]


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Names and types of the arguments of an operator.

    Examples
    --------
    >>> get_operator_arguments("Dropout").names[:3]
    ['data', 'p', 'mode']
    >>> get_operator_arguments("Dropout").types[:3]
    ['NDArray-or-Symbol', 'float, optional, default=0.5', "{'always', 'training'}, optional, default='training'"]
    """
    op = get(op_name)
    inputs, fields = list(op.signature.input_names), op.signature.schema.fields
    types = ["NDArray-or-Symbol"] * len(inputs)
    if op.signature.variadic and not inputs:
        inputs, types = [op.signature.many], ["NDArray-or-Symbol[]"]
    names = inputs + [field.name for field in fields]
    types += [field.stated for field in fields]
    return OperatorArguments(len(names), names, types)


register("custom_op")(CustomOpProp)

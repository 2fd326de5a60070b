"""Value: the arithmetic and the methods that arrays and symbols have in common; each one applies an operator."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, as_op_error
from .arguments import LateSignature, method_signature, ordered_inputs, split
from .dispatch import apply
from .op import Op
from .parameters import signature_of
from .patches import Patched
from .registry import REGISTERED, get, ops
from .rules import Attrs

__all__ = ["Value", "BINARY", "COMPARISONS", "FORMS", "LOGIC", "METHODS", "ARITHMETIC", "arithmetic", "document",
           "forms", "refuse_sequence", "set_operators"]

#: Operators that Python's arithmetic applies: to tensors of one shape, to tensors that broadcast, with a scalar on the
#: right, with a scalar on the left.
BINARY: dict[str, tuple[str, str, str, str]] = {
    "add": ("elemwise_add", "broadcast_add", "_plus_scalar", "_plus_scalar"),
    "sub": ("elemwise_sub", "broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "mul": ("elemwise_mul", "broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "truediv": ("elemwise_div", "broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "mod": ("_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar"),
    "pow": ("_power", "broadcast_power", "_power_scalar", "_rpower_scalar"),
    "eq": ("_equal", "broadcast_equal", "_equal_scalar", "_equal_scalar"),
    "ne": ("_not_equal", "broadcast_not_equal", "_not_equal_scalar", "_not_equal_scalar"),
    "gt": ("_greater", "broadcast_greater", "_greater_scalar", "_lesser_scalar"),
    "ge": ("_greater_equal", "broadcast_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar"),
    "lt": ("_lesser", "broadcast_lesser", "_lesser_scalar", "_greater_scalar"),
    "le": ("_lesser_equal", "broadcast_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar"),
}

#: Operators of comparisons that give booleans: of tensors, with a scalar on the right, with a scalar on the left.
COMPARISONS: dict[str, tuple[str, str, str]] = {
    "eq": ("_npi_equal", "_npi_equal_scalar", "_npi_equal_scalar"),
    "ne": ("_npi_not_equal", "_npi_not_equal_scalar", "_npi_not_equal_scalar"),
    "gt": ("_npi_greater", "_npi_greater_scalar", "_npi_less_scalar"),
    "ge": ("_npi_greater_equal", "_npi_greater_equal_scalar", "_npi_less_equal_scalar"),
    "lt": ("_npi_less", "_npi_less_scalar", "_npi_greater_scalar"),
    "le": ("_npi_less_equal", "_npi_less_equal_scalar", "_npi_greater_equal_scalar"),
}
#: Python's bitwise operators: on booleans, and on integers.
LOGIC = {"and": ("_npi_logical_and", "_npi_bitwise_and"), "or": ("_npi_logical_or", "_npi_bitwise_or"),
         "xor": ("_npi_logical_xor", "_npi_bitwise_xor")}


def _power(base: Any, exponent: Any) -> Any:
    """A power; one of integers that has more than 64 bits is a float, since the exact one may take hours."""
    return (float(base) if isinstance(base, int) and exponent * base.bit_length() > 64 else base) ** exponent


#: Functions of two operands, arrays, symbols or scalars: the key in ``BINARY``, and the function for two scalars.
ARITHMETIC: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("add", operator.add), "subtract": ("sub", operator.sub), "multiply": ("mul", operator.mul),
    "divide": ("truediv", operator.truediv), "true_divide": ("truediv", operator.truediv),
    "modulo": ("mod", operator.mod), "power": ("pow", _power), "pow": ("pow", _power),
    "maximum": ("maximum", max), "minimum": ("minimum", min), "hypot": ("hypot", math.hypot),
    "equal": ("eq", operator.eq), "not_equal": ("ne", operator.ne),
    "greater": ("gt", operator.gt), "greater_equal": ("ge", operator.ge),
    "lesser": ("lt", operator.lt), "lesser_equal": ("le", operator.le),
    "logical_and": ("logical_and", lambda x, y: bool(x and y)),
    "logical_or": ("logical_or", lambda x, y: bool(x or y)),
    "logical_xor": ("logical_xor", lambda x, y: bool(x) is not bool(y)),
}

#: Other names of the operands of some functions, from MXNet's symbols.
_OPERANDS = {**dict.fromkeys(("maximum", "minimum", "hypot"), ("left", "right")),
             **dict.fromkeys(("power", "pow"), ("base", "exp"))}

#: Methods of arrays and symbols that apply the operator of the same name.
METHODS = (
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmax_channel", "argmin",
    "argsort", "broadcast_axes", "broadcast_like", "broadcast_to", "cbrt", "ceil", "clip", "cos", "cosh",
    "degrees", "depth_to_space", "diag", "exp", "expand_dims", "expm1", "fix", "flatten", "flip", "floor",
    "log", "log10", "log1p", "log2", "log_softmax", "max", "mean", "min", "nanprod", "nansum", "norm",
    "one_hot", "ones_like", "pad", "pick", "prod", "radians", "rcbrt", "reciprocal", "relu", "repeat",
    "reshape_like", "rint", "round", "rsqrt", "shape_array", "sigmoid", "sign", "sin", "sinh", "size_array",
    "slice", "slice_axis", "slice_like", "softmax", "softmin", "sort", "space_to_depth", "split", "split_v2",
    "sqrt", "square", "squeeze", "sum", "swapaxes", "take", "tan", "tanh", "tile", "topk", "transpose", "trunc",
    "zeros_like",
)


def forms(name: str) -> tuple[str, str, str, str]:
    """The four operators of a key of ``BINARY``, or of a symmetric function such as ``maximum``."""
    return BINARY.get(name) or (f"_{name}", f"broadcast_{name}", f"_{name}_scalar", f"_{name}_scalar")


#: The four operators of each key for tensors, with NumPy's remainder: by zero it is NaN, not zero as in MXNet.
FORMS = {**{name: forms(name) for name, _ in ARITHMETIC.values()},
         "mod": ("_numpy_mod", "_numpy_mod", "_npi_mod_scalar", "_npi_rmod_scalar")}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "mod": "%", "pow": "**", "eq": "==", "ne": "!=",
          "gt": ">", "ge": ">=", "lt": "<", "le": "<="}


def refuse_sequence(value: object, name: str, other: object, reflected: bool) -> None:
    """Refuse arithmetic with text and lists: Python would take an integer array as a count and repeat them.

    Raises
    ------
    ArgumentError
        Naming both operands; it is a TypeError.
    """
    if not isinstance(other, Sequence):
        return
    left, right = [type(operand).__name__.removeprefix("Frozen") for operand in
                   ((other, value) if reflected else (value, other))]
    kinds = f"{left} {_SIGNS[name]} {right}" if name in _SIGNS else f"{name} of {left} and {right}"
    if isinstance(other, (str, bytes)):
        raise ArgumentError(f"{kinds}: {other!r} is text, not a number. The keywords of a CustomOpProp come as text "
                            "unless its constructor annotates them, as in __init__(self, alpha: float = 1.0)")
    raise ArgumentError(f"{kinds}: expected an array, a symbol or a number; nd.array converts it to an array")


def _operator(name: str, reflected: bool) -> Callable:
    def method(self: Value, other: object) -> Any:
        return self._binary(name, other, reflected)

    method.__name__ = f"__{'r' if reflected else ''}{name}__"
    return method


def _fluent(name: str) -> Callable:
    def method(self: Value, *args: Any, **keywords: Any) -> Any:
        return self._surface(name)(self, *args, **keywords)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The operator ``{name}`` applied to this."
    method.__signature__ = LateSignature(lambda: method_signature(get(name)))  # type: ignore[attr-defined]
    return method


def document() -> None:
    """Give methods the docstrings of their operators, once these are registered."""
    for name in METHODS:
        op = REGISTERED.get(name)
        if op is not None:
            getattr(Value, name).__doc__ = op.doc


def _call(op: Op, args: Sequence[object], keywords: dict[str, Any]) -> Any:
    """Call an operator on values: inputs by position or by name, then attributes."""
    keywords.pop("name", None)
    inputs, attributes = split(op, args, keywords, lambda value: isinstance(value, (Value, np.ndarray)))
    if not isinstance(inputs, list):
        inputs = ordered_inputs(op, inputs, op.complete(attributes))
    return apply(op, inputs, attributes)


class Value(metaclass=Patched):
    """A value that operators apply to: an array, or a symbol that stands for one.

    A subclass sets ``_rank`` (a call is dispatched to the class of the highest rank among its values), ``_broadcasts``
    (whether its arithmetic broadcasts), and defines ``_apply(op, values, attrs)``. If its functions do more than apply
    operators, it also defines ``_invoke(op, args, keywords)``, which calls an operator as users call it, and
    ``_surface(name)``, the users' function of that name.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    _rank: float = 0
    _broadcasts = True

    if TYPE_CHECKING:  # set below, for all of ``BINARY``

        def _operand(self, other: Any) -> Any: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __mod__ = __pow__ = _operand
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rmod__ = __rpow__ = _operand
        __gt__ = __ge__ = __lt__ = __le__ = _operand

    def _apply(self, op: Op, values: Sequence[Any], attrs: Attrs) -> Any:
        raise NotImplementedError

    def _invoke(self, op: Op, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        return _call(op, args, keywords)

    @classmethod
    def _surface(cls, name: str) -> Callable:
        op = get(name)
        return lambda *args, **keywords: _call(op, args, keywords)

    def shown(self) -> Value:
        """The value as users' gradient rules get it: their writes change nothing that other code reads."""
        return self

    def _shape_is(self, other: object) -> bool:
        """Whether another value is known to have the same shape."""
        return False

    def _binary(self, name: str, other: object, reflected: bool) -> Any:
        same, broadcast, scalar, scalar_left = forms(name)
        if isinstance(other, Value):
            op = getattr(ops, broadcast if self._broadcasts else same)
            return op(other, self) if reflected else op(self, other)
        if other.__class__ is float or isinstance(other, (numbers.Real, np.bool_)):
            number = int(other) if isinstance(other, (bool, np.bool_)) else other
            return getattr(ops, scalar_left if reflected else scalar)(self, scalar=number)
        refuse_sequence(self, name, other, reflected)
        if name in ("eq", "ne"):  # Python would compare identities, without an error
            raise ArgumentError(f"== and != compare numbers here, not {type(self).__name__} and "
                                f"{type(other).__name__}; test for None with `is`")
        return NotImplemented

    def __neg__(self) -> Any:
        return ops._mul_scalar(self, scalar=-1.0)

    def __abs__(self) -> Any:
        return ops.abs(self)

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, Value):
            return NotImplemented
        return ops.dot(self, other)


def arithmetic(title: str) -> Callable:
    """The function of that name with two operands, each an array, a symbol or a scalar."""
    name, of_numbers = ARITHMETIC[title]

    def function(lhs: object, rhs: object) -> Any:
        if isinstance(lhs, Value):
            value = lhs._binary(name, rhs, False)
        elif isinstance(rhs, Value):
            value = rhs._binary(name, lhs, True)
        elif isinstance(lhs, numbers.Real) and isinstance(rhs, numbers.Real):
            try:
                result = of_numbers(lhs, rhs)
            except ArithmeticError as error:
                raise as_op_error(error, f"{title} of {lhs} and {rhs}") from None
            return int(result) if isinstance(result, bool) else result
        else:
            value = NotImplemented
        if value is NotImplemented:
            raise ArgumentError(f"{title}: expected arrays, symbols or numbers, got {type(lhs).__name__} and "
                                f"{type(rhs).__name__}")
        return value

    doc = f"The operator ``{forms(name)[1]}``; either operand may be a number."
    wrapper = function
    if title in _OPERANDS:
        first, second = _OPERANDS[title]
        ours = {first: "lhs", second: "rhs"}

        def wrapper(*operands: object, **named: object) -> Any:
            return function(*operands, **{ours.get(key, key): value for key, value in named.items()})

        wrapper.__signature__ = signature_of(function)  # type: ignore[attr-defined]
        doc += f" They may be named ``{first}`` and ``{second}``, too."
    for surface in (function, wrapper):
        surface.__name__ = surface.__qualname__ = title
    wrapper.__doc__ = doc
    return wrapper


def set_operators(cls: type[Value]) -> None:
    """Set Python's binary operators of a class to those that call ``_binary``."""
    for name in BINARY:
        setattr(cls, f"__{name}__", _operator(name, False))
        if name in ("add", "sub", "mul", "truediv", "mod", "pow"):
            setattr(cls, f"__r{name}__", _operator(name, True))


set_operators(Value)
for _name in METHODS:
    setattr(Value, _name, _fluent(_name))

"""Rules that families of operators share: gradients of adjoint pairs, dtypes, and writing results to ``out``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.op import Op, combined_shape
from ..core.registry import ops
from ..core.rules import Rule
from ..core.spec import Shape, common_dtype, is_floating, is_narrow, unify
from ..errors import DTypeError
from ..typing import Array, ArrayModule

__all__ = ["add_into", "adjoint_pair", "linear", "declare_gradient", "declare_gradient_shapes", "declare_input_shape",
           "declare_array_function", "like_inputs", "names_of_outputs", "as_output", "common_shape", "one_of",
           "common_floating", "wide", "widen", "in_dtype_of"]


def _known_to(op: Op, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of another operator that an operator has, too."""
    return {name: value for name, value in attrs.items() if name in op.signature.schema}


def adjoint_pair(op: Op, adjoint: Op, like: bool = True) -> None:
    """Declare that each of two operators, linear in its first input, is the gradient of the other.

    Parameters
    ----------
    op, adjoint : Op
        ``y = op(x, *others)`` and ``x = adjoint(y, *others, x)``; attributes that only one of them has are left out. An
        operator that is its own gradient is both.
    like : bool
        Whether ``adjoint`` takes that last input, of which it reads the shape. Then its shape rule follows from that of
        ``op``, unless it has one, and both name their inputs alike.
    """

    @op.grad
    def pair_grad(g: Any, ins: Sequence[Any], outs: Sequence[Any], **attrs: Any) -> tuple:
        behind = (*ins[1:], ins[0]) if like else ins[1:]
        return (adjoint.current(g, *behind, **_known_to(adjoint, attrs)), *[None] * (len(ins) - 1))

    linear(adjoint, op, slice(1, -1 if like else None))

    if like and not adjoint.rules.shaped:
        declare_gradient_shapes(op, adjoint)


def linear(op: Op, adjoint: Op | str, others: slice = slice(1, None), without: Sequence[str] = ()) -> None:
    """Declare the gradient of an operator that is linear in its first input, up to a constant.

    Parameters
    ----------
    op : Op
        The operator.
    adjoint : Op or str
        The operator that computes the gradient, or its name: from the output gradient, and other inputs of ``op``, with
        the attributes that both operators have.
    others : slice
        The other inputs that it reads; by default all but the first.
    without : sequence of str
        Attributes that hold the constant.

    Examples
    --------
    >>> from opreg.core.registry import declare
    >>> @declare(name="_example_shifted")
    ... def shifted(data, *, by: float = 0.0): "The data plus a number."
    >>> linear(shifted, "_copy")
    >>> shifted.differentiable
    True
    """

    @op.grad
    def linear_grad(g: Any, ins: Sequence[Any], outs: Sequence[Any], **attrs: Any) -> tuple:
        other = getattr(ops, adjoint) if isinstance(adjoint, str) else adjoint.current
        kwargs = {name: value for name, value in _known_to(other, attrs).items() if name not in without}
        return (other(g, *ins[others], **kwargs), *[None] * (len(ins) - 1))


def _place_of(head: str, outputs: Sequence[str]) -> int:
    """The place of the output that an input of a gradient's operator belongs to, by its name."""
    return outputs.index(head[2:]) if head[2:] in outputs else 0


def _named_results(gradient_op: Op, attrs: Mapping[str, Any], inputs: Sequence[str]) -> Sequence[str]:
    """The names of the inputs whose gradients an operator returns."""
    names = gradient_op.signature.outputs(attrs)
    return inputs[:1] if names == ("output",) else names


def declare_gradient_shapes(op: Op, gradient_op: Op) -> None:
    """Derive the shapes of a gradient's operator from those of the operator that it differentiates.

    Parameters
    ----------
    op, gradient_op : Op
        The operator, and that of its gradient, which reads all inputs of ``op``. The names of inputs and outputs tell
        their meaning, as in ``declare_gradient``.

    Examples
    --------
    >>> from opreg.core.registry import ops
    >>> ops._backward_Pooling_v1.infer_shapes([(1, 1, 3), (1, 1, 4), (1, 1, 3)], [None], {"kernel": (2,)})[1]
    [(1, 1, 4)]
    """

    @gradient_op.infer
    def named_infer(*shapes: Shape, **attrs: Any) -> list[Shape | None]:
        names, typed = gradient_op.signature.arguments(attrs), op.complete(_known_to(op, attrs))
        shape_of = dict(zip(names, shapes))
        inputs, outputs = op.signature.inputs(typed), op.signature.outputs(typed)
        known_shapes: list[Shape | None] = [shape_of[name] for name in inputs]
        ins, outs = op.infer_shapes(known_shapes, [None] * len(outputs), typed)
        for name, shape in shape_of.items():
            if name not in inputs:
                combined_shape(name, shape, outs[outputs.index(name) if name in outputs else _place_of(name, outputs)])
        inferred = dict(zip(inputs, ins))
        return [inferred[name] for name in _named_results(gradient_op, attrs, inputs)]


def declare_gradient(op: Op, *gradient_ops: Op) -> None:
    """Declare that other operators compute the gradients of an operator; their input and output names tell which.

    Parameters
    ----------
    op : Op
        The operator.
    *gradient_ops : Op
        The operators that compute gradients. The name of an input of such an operator tells its meaning: an input or
        output of ``op``, or an output gradient (``g_state`` is that of the output ``state``, any other name that of the
        first output). The attributes are passed on that both operators have. An output has the name of the input of
        ``op`` that it is the gradient of; one called ``output`` is the gradient of the first input. The shapes of an
        operator that reads all inputs of ``op`` are derived from those of ``op``, unless it has a rule.

    Examples
    --------
    >>> from opreg.core.registry import ops
    >>> ops.CTCLoss.list_arguments(), ops._backward_ctc_loss.list_arguments()
    (['data', 'label'], ['g', 'data', 'label', 'output0', 'output1'])
    """
    signature = op.signature

    @op.grad
    def named_grad(g: Any, ins: Sequence[Any], outs: Sequence[Any], *, needs: Sequence[bool], **attrs: Any) -> list:
        heads = g if isinstance(g, (tuple, list)) else (g,)
        inputs, outputs = signature.inputs(attrs), signature.outputs(attrs)
        values = {**dict(zip(outputs, outs)), **dict(zip(inputs, ins))}
        gradients: dict[str, Any] = {}
        for gradient_op in gradient_ops:
            gradient_attrs = gradient_op.complete(_known_to(gradient_op, attrs))
            results = _named_results(gradient_op, gradient_attrs, inputs)
            if not any(need for name, need in zip(inputs, needs) if name in results):
                continue
            arguments = []
            for name in gradient_op.signature.arguments(gradient_attrs):
                place = _place_of(name, outputs)
                arguments.append(values[name] if name in values else
                                 ops.zeros_like(outs[place]) if heads[place] is None else heads[place])
            found = gradient_op.current(*arguments, **gradient_attrs)
            gradients.update(zip(results, [found] if len(results) == 1 else found))
        return [gradients.get(name) for name in inputs]

    for gradient_op in gradient_ops:
        if not gradient_op.rules.shaped and {*signature.input_names} <= {*gradient_op.signature.input_names}:
            declare_gradient_shapes(op, gradient_op)


def declare_input_shape(op: Op, place: int, shapes: Callable[..., tuple[Any, Shape | None]]) -> None:
    """Declare the shape rule of an operator with one input whose shape the other inputs decide.

    Parameters
    ----------
    op : Op
        The operator.
    place : int
        The index of that input. An input of another shape raises an error that names it.
    shapes : function
        ``shapes(*shapes, **attrs)``, given those of all inputs: the shape of the output, or several, and that of this
        input, None where nothing is known of it.

    Examples
    --------
    >>> from opreg.core.registry import declare
    >>> @declare(name="_example_turned_sum")
    ... def turned_sum(lhs, rhs): "The sum of ``lhs`` and of ``rhs`` on its side."
    >>> declare_input_shape(turned_sum, 1, lambda lhs, rhs: (lhs, lhs[::-1]))
    >>> turned_sum.infer_shapes([(2, 3), (2, 3)], [None], {})
    Traceback (most recent call last):
    opreg.errors.ShapeError: rhs: expected shape (3, 2), got (2, 3)
    """
    rule = Rule(shapes)

    @op.infer
    def agreeing_infer(*ins: Shape, **attrs: Any) -> Any:
        checked_value, expected = rule(attrs, *ins)
        combined_shape(op.signature.arguments(attrs)[place], ins[place], expected)
        return checked_value


def declare_array_function(op: Op, function: Callable[..., Any]) -> None:
    """Declare that an operator is a function of the array module, ``function(xp, *arrays, **attrs)``. A single number
    has the shape (1,).

    Examples
    --------
    >>> from opreg import nd
    >>> from opreg.core.registry import declare
    >>> @declare(name="_example_median")
    ... def median(data): "The median."
    >>> median.infer(lambda data: (1,))
    <function <lambda> at ...>
    >>> declare_array_function(median, lambda xp, data: xp.median(data))
    >>> median(nd.array([3.0, 1.0, 2.0])).asnumpy().tolist()
    [2.0]
    """

    @op.kernel()  # no body: the function is the array module's
    def computed_xp(xp: ArrayModule, *arrays: Array, **attrs: Any) -> Any:
        results = function(xp, *arrays, **attrs)
        if results.__class__ is tuple:
            return tuple([array if array.shape else array.reshape(1) for array in results])
        return results if results.shape else results.reshape(1)


def like_inputs(*places: int) -> Callable[..., list[Shape]]:
    """The shape rule of an operator whose outputs have the shapes of these inputs, one each.

    Examples
    --------
    >>> like_inputs(1)((2, 3), (4,))
    [(4,)]
    """
    return lambda *ins: [ins[place] for place in places]


def names_of_outputs(count: int) -> list[str]:
    """Names of ``count`` outputs, as in MXNet: numbered if there are several."""
    return ["output"] if count == 1 else [f"output{i}" for i in range(count)]


def as_output(ins: list, outs: list) -> list:
    """The fill rule of an operator whose outputs have the shapes of its first inputs."""
    return [*outs, *ins[len(outs):]]


def common_shape(shapes: Iterable[Shape | None]) -> Shape | None:
    """The common shape of arrays of equal shapes; a shape that contradicts the first is ignored.

    Examples
    --------
    >>> from opreg.core.spec import ANY
    >>> common_shape([None, (2, ANY), (ANY, 3), (4,)])
    (2, 3)
    """
    joint: Shape | None = None
    for shape in shapes:
        if joint is None or joint == shape:
            joint = unify(joint, shape)
    return joint


def one_of(shape: Shape | None, allowed: Sequence[Shape]) -> Shape | None:
    """A shape with its unknown lengths filled in, if exactly one of the allowed shapes fits.

    Examples
    --------
    >>> from opreg.core.spec import ANY
    >>> one_of((ANY,), [(2, 3), (2,)])
    (2,)
    """
    fitting = [candidate for candidate in allowed if shape == candidate]
    return unify(shape, fitting[0]) if len(fitting) == 1 else shape


def common_floating(dtypes: Sequence[np.dtype | None]) -> np.dtype | None:
    """The one dtype known among several, which must be floating.

    Raises
    ------
    DTypeError
        When two of them differ, or the dtype is not floating.
    """
    dtype = common_dtype(dtypes)
    if dtype is not None and not is_floating(dtype):
        raise DTypeError(f"expected a floating dtype, got {dtype}")
    return dtype


def wide(array: Any) -> Any:
    """The array in a dtype that is accurate for sums and products: float32 for float16 and bfloat16; None for None."""
    return array.astype("float32") if array is not None and is_narrow(array.dtype) else array


def widen(value: Any) -> Any:
    """A value in a body, cast to float32 if its dtype is narrow; see ``wide`` for arrays."""
    return ops.Cast(value, dtype="float32") if is_narrow(np.dtype(value.dtype)) else value


def in_dtype_of(value: Any, like: Any) -> Any:
    """A value in a body, cast to the dtype of another one if it has another."""
    return value if value.dtype == like.dtype else ops.Cast(value, dtype=like.dtype)


#: The dtypes that CuPy adds at indices without losing digits; it refuses bfloat16, integers of 8 and 16 bits, and bool.
_ADDED = frozenset(("float32", "float64", "int32", "int64", "uint32", "uint64", "complex64", "complex128"))


def add_into(xp: ArrayModule, target: Array, key: Any, values: Array) -> None:
    """Add values to an array at indices, which may repeat. On a device, values of dtypes that CuPy cannot add at
    indices, such as 16-bit ones, are added in a wider dtype first."""
    if xp is np or target.dtype.name in _ADDED:
        xp.add.at(target, key, values)
        return
    dtype = np.dtype(np.int64 if target.dtype.kind in "iub" else np.float32)
    total = xp.zeros(target.shape, dtype=dtype)
    xp.add.at(total, key, values.astype(dtype))
    target[...] = (target.astype(dtype) + total).astype(target.dtype)

"""Matrix products: FullyConnected, dot and batch_dot.

For each operator a function of inputs and attributes returns the factors of its product. Eager calls compute the
factors each time. A plan computes them once if they are views of the inputs, and then runs only the product.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ...backends.blas import SMALL, Matmul, multiplier
from ...core.attrs import Positive
from ...core.launch import Call, Rank
from ...core.op import Op
from ...core.registry import declare, ops, register
from ...core.rules import Attrs, Rule
from ...core.spec import Shape, broadcast, is_narrow, is_single_or_double, show
from ...core.value import Value
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..attention_parts import Product, multiplies
from ..forms import declare_form
from ..outputs import like_inputs, wide
from ..samples import declare_row_samples, fold_samples, repeat_inputs

__all__ = ["FACTORS", "adjoint", "bias_of", "bilinear", "dense_weight", "factors_of", "product", "transposable",
           "are_views", "layer_input_names"]

Storage = Literal["default", "row_sparse", "csr"]
#: A function of the arrays of a use that returns the matrices to multiply.
Factors = Callable[..., tuple[Array, Array]]


# ------------------------------------------------------------------------------------------- arithmetic


def product(xp: ArrayModule, a: Array, b: Array, out: Array | None = None) -> Array:
    """``a @ b``, written to ``out`` if it is given. BLAS reads transposed views without a copy."""
    if is_narrow(a.dtype):
        a, b = wide(a), wide(b)
        if out is not None and out.dtype != a.dtype:
            out[...] = multiplier(xp, a, b)(a, b)
            return out
    return multiplier(xp, a, b)(a, b, out)


def _product_like(xp: ArrayModule, a: Array, b: Array) -> Matmul:
    """A ``product`` for matrices of these shapes and dtypes."""
    direct = xp is np and a.dtype == b.dtype and is_single_or_double(a.dtype)
    return np.matmul if direct and a.size * b.shape[-1] <= SMALL else functools.partial(product, xp)


def _product_shape(a: Array, b: Array) -> Shape:
    """The shape of a product of matrices, or of stacks of matrices."""
    return (*broadcast(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])


#: The factors of a call, by operator, for operators that multiply two matrices or stacks of matrices; None if the call
#: computes anything else.
FACTORS: dict[Op, Callable[[Call], tuple[Array, Array] | None]] = {}


def factors_of(call: Call) -> tuple[Array, Array, Shape] | None:
    """The matrices whose product a call computes, and the shape of the result; None if they are not views of the
    inputs."""
    factors = FACTORS[call.op](call) if all(array.size for array in call.ins[:2]) else None
    if factors is None or not are_views(call, factors):
        return None
    return *factors, _product_shape(*factors)


def are_views(call: Call, factors: Sequence[Array]) -> bool:
    """Whether the factors are views of the first two inputs of a call. Copies would keep the values that the inputs had
    when the plan was bound."""
    return all(any(call.xp.may_share_memory(factor, array) for array in call.ins[:2]) for factor in factors)


def declare_product(op: Op, factors: Callable[..., Factors | None], shape: Callable[..., Shape] | None = None) -> None:
    """Attach the kernels of an operator that multiplies two matrices or stacks of matrices: the reference, and a kernel
    with factors bound in advance, for products in the arrays' own dtype.

    ``factors(*arrays, **attrs)`` returns a function that makes the matrices of arrays with these shapes, or None if the
    result is no product alone; ``shape(attrs, *arrays)`` is the shape of the result if it is not that of the product.
    A third input that ``op`` reads is a bias, added to the rows of the product. An operator with a reference kernel
    keeps it.
    """
    rule, biased = Rule(factors), 2 not in op.traits.unread

    def matrices_of(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, Array] | None:
        of_arrays = rule(attrs, *arrays)
        return None if of_arrays is None else of_arrays(*arrays)

    FACTORS[op] = lambda call: matrices_of(call.attrs, call.ins)

    if not op.kernels:
        @op.in_parts  # no body: bodies use it to multiply
        def product_in_parts(xp: ArrayModule, *arrays: Array, **attrs: Any) -> Callable[..., Array]:
            of_arrays = rule(attrs, *arrays)
            a, b = of_arrays(*arrays)
            multiply, full = _product_like(xp, a, b), _product_shape(a, b)
            result, add = full if shape is None else shape(attrs, *arrays), xp.add if biased and arrays[2:] else None
            as_it_is = result == full

            def run(*arrays: Array, out: Array | None = None) -> Array:
                if out is not None and not out.flags.c_contiguous:
                    out[...] = run(*arrays)
                    return out
                a, b = of_arrays(*arrays)
                y = multiply(a, b) if out is None else multiply(a, b, out.reshape(full))
                if add is not None:
                    add(y, arrays[2], y)
                return out if out is not None else y if as_it_is else y.reshape(result)

            return run

    def accepts(call: Call) -> str | None:
        read = [*call.ins[:2], *bias_of(call)]
        if any(not is_single_or_double(array.dtype) for array in (*read, *call.outs)):
            return "it computes only float32 and float64"
        matrices = matrices_of(call.attrs, call.ins)
        if matrices is None:
            return "the result is a sum of several products"
        if matrices[0].ndim > matrices[1].ndim:
            return "BLAS would pack the matrix on the right anew for each on the left"
        if not are_views(call, matrices) or not call.outs[0].flags.c_contiguous:
            return "an array is not contiguous"
        return None

    @op.kernel("specialised", bound=True, accepts=accepts, rank=Rank.OPERATOR)
    def product_specialised(call: Call) -> list[Callable]:
        a, b = rule(call.attrs, *call.ins)(*call.ins)
        out = call.outs[0].reshape(_product_shape(a, b))
        steps: list[Callable] = [functools.partial(multiplier(call.xp, a, b), a, b, out)]
        return steps + [functools.partial(call.xp.add, out, bias, out) for bias in bias_of(call)]


def bias_of(call: Call) -> list[Array]:
    """The third input, if it is read."""
    return [] if 2 in call.op.traits.unread else call.ins[2:]


# ------------------------------------------------------------------------------- gradients of bilinear maps


def layer_input_names(*, no_bias: bool) -> tuple[str, ...]:
    """Names of the inputs of a layer with weights."""
    return ("data", "weight") if no_bias else ("data", "weight", "bias")


def adjoint(name: str, op: Op, arguments: tuple[str, str, str]) -> Op:
    """Register a backward operator: it has the attributes of ``op``, and reads only the shape of its last input."""
    backward = register(Op(name, op.signature.schema, arguments, unread=(2,), types="T,T,U->T",
                        doc=f"The gradient that ``{op.name}`` passes to its {arguments[2]}."))

    backward.infer(like_inputs(2))
    return backward


def bilinear(op: Op, left: Op, right: Op, work: Callable[..., int], bias: Callable | None = None) -> None:
    """Declare the gradients, to any order, and the arithmetic of a bilinear map.

    Parameters
    ----------
    op : Op
        ``y = op(a, b)``, or ``op(a, b, bias)`` with an attribute ``no_bias``.
    left, right : Op
        ``left(g, b, a)`` is the gradient of ``a``, ``right(g, a, b)`` that of ``b``. Each is bilinear in its first
        two inputs, and ``<g, op(a, b)> = <left(g, b, a), a> = <right(g, a, b), b>``, so the three are each other's
        gradients.
    work : function of the shapes of a, b and y, and attributes
        The number of additions and multiplications, which is the same for the three operators.
    bias : function of g and attributes
        The gradient of the bias.
    """

    op.flops(lambda ins, outs, **attrs: work(ins[0], ins[1], outs[0], **attrs))
    left.flops(lambda ins, outs, **attrs: work(ins[2], ins[1], ins[0], **attrs))
    right.flops(lambda ins, outs, **attrs: work(ins[1], ins[2], ins[0], **attrs))

    def forward(a: Value, b: Value, attrs: dict[str, Any]) -> Value:
        return op.current(a, b, **{**attrs, "no_bias": True} if bias else attrs)

    @op.grad
    def bilinear_grad(g: Value, ins: Sequence[Value], outs: Sequence[Value], *, needs: Sequence[bool], **attrs: Any
                      ) -> tuple:
        a, b = ins[:2]
        return (left.current(g, b, a, **attrs) if needs[0] else None,
                right.current(g, a, b, **attrs) if needs[1] else None,
                *(bias(g, attrs) if bias and need else None for need in needs[2:]))

    @left.grad
    def left_grad(h: Value, ins: Sequence[Value], outs: Sequence[Value], *, needs: Sequence[bool], **attrs: Any
                  ) -> tuple:
        g, b, _ = ins
        return (forward(h, b, attrs) if needs[0] else None,
                right.current(g, h, b, **attrs) if needs[1] else None, None)

    @right.grad
    def right_grad(h: Value, ins: Sequence[Value], outs: Sequence[Value], *, needs: Sequence[bool], **attrs: Any
                   ) -> tuple:
        g, a, _ = ins
        return (forward(a, h, attrs) if needs[0] else None,
                left.current(g, h, a, **attrs) if needs[1] else None, None)


def transposable(op: Op) -> Callable:
    """Declare the gradient of an operator that multiplies matrices, each optionally transposed: products by the same
    operator with other attributes. Return the rule."""

    @op.grad
    def product_grad(g: Value, ins: Sequence[Value], outs: Sequence[Value], *, transpose_a: bool, transpose_b: bool,
                     needs: Sequence[bool], **same: Any) -> tuple:
        (a, b), da, db = ins, None, None
        if needs[0]:
            da = (op.current(b, g, transpose_a=transpose_b, transpose_b=True, **same) if transpose_a
                  else op.current(g, b, transpose_b=not transpose_b, **same))
        if needs[1]:
            db = (op.current(g, a, transpose_a=True, transpose_b=transpose_a, **same) if transpose_b
                  else op.current(a, g, transpose_a=not transpose_a, **same))
        return da, db

    return product_grad


# ---------------------------------------------------------------------------------------- FullyConnected


@declare(name="FullyConnected", aliases=("_npx_fully_connected", "_sparse_FullyConnected"), arguments=layer_input_names)
def fully_connected(data, weight, bias, *, num_hidden: Positive, no_bias: bool = False, flatten: bool = True):
    """``data @ weight.T + bias``, over all axes but the first (``flatten``), or over the last axis.

    ``weight`` has shape (num_hidden, inputs).
    """


def _inputs(data: Shape, flatten: bool) -> int:
    """The number of elements in one row of the data."""
    return math.prod(data[1:]) if flatten else data[-1]


@fully_connected.fill
def fully_connected_fill(ins, outs, *, num_hidden, no_bias, flatten):
    data = ins[0]
    if data is None:
        return [None, *_parameters(num_hidden, None, no_bias)]
    if not data:
        raise ShapeError("data: expected at least one axis, got a scalar")
    if outs[0] and (flatten or len(outs[0]) == len(data)):
        data = (outs[0][0], *data[1:]) if flatten else (*outs[0][:-1], data[-1])
    return [data, *_parameters(num_hidden, _inputs(data, flatten), no_bias)]


def _parameters(num_hidden: int, inputs: int | None, no_bias: bool) -> list[Shape | None]:
    weight = None if inputs is None else (num_hidden, inputs)
    return [weight] if no_bias else [weight, (num_hidden,)]


@fully_connected.infer
def fully_connected_infer(data, weight, bias=None, *, num_hidden, flatten):
    return (data[0], num_hidden) if flatten else (*data[:-1], num_hidden)


@fully_connected.vmap
def fully_connected_vmap(ins, batched, *, num_hidden, no_bias, flatten):
    words = {"num_hidden": num_hidden, "no_bias": no_bias, "flatten": flatten}
    if not any(batched[1:]):
        data = fold_samples(ins[0]) if flatten or len(ins[0].shape) > 2 else ins[0]
        return ops.FullyConnected(data, *ins[1:], **words)
    data, weight, *bias = repeat_inputs(ins, batched)
    product = ops.batch_dot(_rows_of_samples(data, flatten), weight, transpose_b=True)
    return ops.broadcast_add(product, bias[0].reshape((-1, 1, num_hidden))) if bias else product


def _rows_of_samples(data: Any, flatten: bool) -> Any:
    """A layer's inputs for several samples as a stack of matrices, (samples, rows, columns)."""
    size, *shape = data.shape
    columns = math.prod(shape[1:]) if flatten else shape[-1]
    return data.reshape((size, shape[0] if flatten else math.prod(shape[:-1]), columns))


def _rows(data: Array, flatten: bool) -> Array:
    """The data as a matrix."""
    inputs = _inputs(data.shape, flatten)
    return data.reshape(data.size // inputs if inputs else math.prod(data.shape[:1 if flatten else -1]), inputs)


def _dense(data: Array, *_: Array, flatten: bool) -> Factors:
    rows = _rows(data, flatten).shape
    return lambda data, weight, *_: (data.reshape(rows), weight.T)


def _dense_shape(attrs: Attrs, data: Array, weight: Array, *_: Array) -> Shape:
    return (*(data.shape[:1] if attrs["flatten"] else data.shape[:-1]), weight.shape[0])


def _like_last(attrs: Attrs, *arrays: Array) -> Shape:
    return arrays[-1].shape


def _dense_data(g: Array, *_: Array) -> Factors:
    rows = _rows(g, False).shape
    return lambda g, weight, _: (g.reshape(rows), weight)


def dense_weight(g: Array, data: Array, *_: Array, flatten: bool) -> Factors:
    """A function that returns the matrices whose product is the gradient of a dense layer's weight."""
    rows, inputs = _rows(g, False).shape, _rows(data, flatten).shape
    return lambda g, data, *_: (g.reshape(rows).T, data.reshape(inputs))


fully_connected_data = adjoint("_backward_FullyConnected_data", fully_connected, ("g", "weight", "data"))
fully_connected_weight = adjoint("_backward_FullyConnected_weight", fully_connected, ("g", "data", "weight"))


@fully_connected_data.vmap
def fully_connected_data_vmap(ins, batched, **attrs):
    g, weight, data = ins
    if batched[1]:
        g, weight, data = repeat_inputs(ins, batched)
        return ops.batch_dot(_rows_of_samples(g, False), weight)
    g, data = repeat_inputs([g, data], [batched[0], batched[2]])
    if attrs["flatten"] or len(data.shape) > 2:
        g, data = fold_samples(g), fold_samples(data)
    return ops._backward_FullyConnected_data(g, weight, data, **attrs)


@fully_connected_weight.vmap
def fully_connected_weight_vmap(ins, batched, *, flatten, **attrs):
    g, data, _ = repeat_inputs(ins, batched)
    return ops.batch_dot(_rows_of_samples(g, False), _rows_of_samples(data, flatten), transpose_a=True)


declare_product(fully_connected, _dense, _dense_shape)
declare_product(fully_connected_data, _dense_data, _like_last)
declare_product(fully_connected_weight, dense_weight, _like_last)
bilinear(fully_connected, fully_connected_data, fully_connected_weight,
         lambda data, weight, out, **attrs: 2 * math.prod(out) * weight[1],
         lambda g, attrs: ops.sum(g, axis=-1, exclude=True))


# --------------------------------------------------------------------------------------------------- dot


@declare(aliases=("_sparse_dot",))
def dot(lhs, rhs, *, transpose_a: bool = False, transpose_b: bool = False, forward_stype: Storage | None = None):
    """The product over the last axis of ``lhs`` and the first of ``rhs``; ``transpose_a`` and ``transpose_b`` first
    exchange the first and last axis of an input.

    For two vectors it is the inner product, with shape (1,).
    """


def _outer(lhs: Shape, rhs: Shape, transpose_a: bool, transpose_b: bool) -> Shape:
    """The shape of a dot product without the axes that are summed over."""
    if not lhs or not rhs:
        raise ShapeError(f"expected at least one axis each, got shapes {show(lhs)} and {show(rhs)}")
    if len(lhs) == len(rhs) == 1:
        if transpose_a or transpose_b:
            raise AttrError("transpose_a and transpose_b do not apply to two vectors")
        return (1,)
    return (lhs[1:] if transpose_a else lhs[:-1]) + (rhs[:-1] if transpose_b else rhs[1:])


@dot.infer
def dot_infer(lhs, rhs, *, transpose_a, transpose_b):
    shape = _outer(lhs, rhs, transpose_a, transpose_b)
    if lhs[0 if transpose_a else -1] != rhs[-1 if transpose_b else 0]:
        raise ShapeError(f"the axes to sum over have different lengths: {show(lhs)}{' transposed' * transpose_a} and "
                         f"{show(rhs)}{' transposed' * transpose_b}")
    return shape


def _left_matrix(lhs: Array, transpose: bool) -> Array:
    """``lhs`` as a matrix whose columns are summed over."""
    shape = lhs.shape
    if transpose:
        return lhs.reshape(shape[0], math.prod(shape[1:])).T
    return lhs.reshape(math.prod(shape[:-1]), shape[-1])


def _rhs_matrix(rhs: Array, transpose: bool) -> Array:
    """``rhs`` as a matrix whose rows are summed over."""
    return _left_matrix(rhs, not transpose).T


def _dot(*_: Array, transpose_a: bool, transpose_b: bool) -> Factors:
    return lambda lhs, rhs: (_left_matrix(lhs, transpose_a), _rhs_matrix(rhs, transpose_b))


dot_lhs = adjoint("_backward_dot_lhs", dot, ("g", "rhs", "lhs"))
dot_rhs = adjoint("_backward_dot_rhs", dot, ("g", "lhs", "rhs"))


@dot.few_rows
def dot_few_rows(stypes, *, transpose_b):
    return (1,) if stypes[0] == "csr" and not transpose_b else ()


@dot.vmap
def dot_vmap(ins, batched, *, transpose_a, transpose_b, **attrs):
    if batched == [True, False] and not transpose_a:
        return ops.dot(*ins, transpose_b=transpose_b)
    left, right = repeat_inputs(ins, batched)
    size, ranks = left.shape[0], [len(left.shape) - 1, len(right.shape) - 1]
    if (max(ranks) > 2 and (transpose_a or transpose_b)) or min(ranks) < 1:
        return NotImplemented
    left = left.reshape((size, -1, left.shape[-1])) if ranks[0] != 2 else left
    right = right.reshape((size, right.shape[1], -1)) if ranks[1] != 2 else right
    return ops.batch_dot(left, right, transpose_a=transpose_a and ranks[0] == 2, transpose_b=transpose_b and
                         ranks[1] == 2)


def _declare_factor_of_samples(op: Op, right: bool) -> None:
    """Declare the gradient of the left or right factor for each sample."""

    @op.vmap
    def factor_vmap(ins, batched, *, transpose_a, transpose_b, **attrs):
        g, factor_of_other, factor = repeat_inputs(ins, batched)
        if len(factor.shape) != 3 or len(factor_of_other.shape) != 3:
            return NotImplemented
        transposed, others = (transpose_b, transpose_a) if right else (transpose_a, transpose_b)
        factors = [(factor_of_other, others), (g, True)] if transposed else [(g, False), (factor_of_other, not others)]
        (a, turns_a), (b, turns_b) = reversed(factors) if right else factors
        return ops.batch_dot(a, b, transpose_a=turns_a, transpose_b=turns_b)


_declare_factor_of_samples(dot_lhs, right=False)
_declare_factor_of_samples(dot_rhs, right=True)


def _dot_lhs(g: Array, rhs: Array, lhs: Array, *, transpose_a: bool, transpose_b: bool) -> Factors:
    rows, columns = math.prod(lhs.shape[1:] if transpose_a else lhs.shape[:-1]), _rhs_matrix(rhs, transpose_b).shape[1]

    def factors(g: Array, rhs: Array, _: Array) -> tuple[Array, Array]:
        b, g = _rhs_matrix(rhs, transpose_b), g.reshape(rows, columns)
        return (b, g.T) if transpose_a else (g, b.T)

    return factors


def _dot_rhs(g: Array, lhs: Array, rhs: Array, *, transpose_a: bool, transpose_b: bool) -> Factors:
    rows, columns = _left_matrix(lhs, transpose_a).shape[0], math.prod(
        rhs.shape[:-1] if transpose_b else rhs.shape[1:])

    def factors(g: Array, lhs: Array, _: Array) -> tuple[Array, Array]:
        a, g = _left_matrix(lhs, transpose_a), g.reshape(rows, columns)
        return (g.T, a) if transpose_b else (a.T, g)

    return factors


declare_product(dot, _dot,
                lambda attrs, lhs, rhs: _outer(lhs.shape, rhs.shape, attrs["transpose_a"], attrs["transpose_b"]))
declare_product(dot_lhs, _dot_lhs, _like_last)
declare_product(dot_rhs, _dot_rhs, _like_last)


def _dot_work(lhs, rhs, out, *, transpose_a, **attrs):
    return 2 * math.prod(lhs) * math.prod(rhs) // max(lhs[0 if transpose_a else -1], 1)


bilinear(dot, dot_lhs, dot_rhs, _dot_work)


@dot.attends
def dot_attends(lhs, rhs, *, transpose_a, transpose_b):
    return Product(transpose_a, transpose_b) if len(lhs) == len(rhs) == 2 else None


# --------------------------------------------------------------------------------------------- batch_dot


@declare(aliases=("_npx_batch_dot",))
def batch_dot(lhs, rhs, *, transpose_a: bool = False, transpose_b: bool = False,
              forward_stype: Storage | None = None):
    """Products of the matrices in the last two axes; the axes before are equal in both inputs."""


declare_form(batch_dot, lambda *, transpose_a, transpose_b: (
    f"(first, ..., {'k, m' if transpose_a else 'm, k'}) (first, ..., {'n, k' if transpose_b else 'k, n'}) "
    "-> (first, ..., m, n)"))
declare_row_samples(batch_dot, 0, 1)


def _stacks(*_: Array, transpose_a: bool, transpose_b: bool) -> Factors:
    return lambda lhs, rhs: (lhs.swapaxes(-1, -2) if transpose_a else lhs,
                             rhs.swapaxes(-1, -2) if transpose_b else rhs)


declare_product(batch_dot, _stacks)


transposable(batch_dot)
batch_dot.attends(multiplies)


@batch_dot.flops
def batch_dot_flops(ins, outs, *, transpose_a):
    return 2 * math.prod(outs[0]) * ins[0][-2 if transpose_a else -1]

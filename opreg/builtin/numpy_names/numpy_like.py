"""Operators with NumPy's rules under MXNet's names: reshape with a literal shape, matmul of any ranks, where with
broadcasting, assignment to a subscript, and others that move or make elements.

Comparisons are in ``numpy_like_logic``, reductions in ``numpy_like_reduce``. Unlike older operators of similar names
these support arrays of rank zero, and booleans have dtype bool instead of the data's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import numpy as np

from ...core.array_module import last_writes, may_repeat
from ...core.attrs import Key, Limit, Number
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, broadcast, check_axis, is_known, is_numpy_float, show
from ...core.value import Value
from ...custom.composed import composed, constant
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..attention_parts import MaskedScores, multiplies
from ..lookup.indexing import declare_choice
from ..matrices.dense import adjoint, bilinear, declare_product, product
from ..outputs import declare_array_function
from ..places import declare_writes
from ..samples import align_inputs, alike, repeat_inputs, summed_like
from ..shapes.broadcasting import reduced_like
from ..shapes.creation import declare_fill
from ..shapes.shape import copy_view, declare_reshape, reshape_fill, stored_in
from ..shapes.subscript import subscript_infer
from .numpy_like_numbers import floating_of, widest_float

Dtypes = list[np.dtype | None]

# ------------------------------------------------------------------------------------------------- reshape


def _literal(source: Shape, *, newshape: int | Sequence[int]) -> Shape:
    """The requested shape, with -1 inferred."""
    codes = (newshape,) if isinstance(newshape, int) else tuple(newshape)
    given = [dim for dim in codes if dim is ANY or dim != -1]
    if any(dim < -1 for dim in codes) or len(codes) > len(given) + 1:
        raise AttrError(f"newshape={newshape}: expected lengths of at least 0 and at most one -1, which is "
                        "inferred")
    have, want, inferred = math.prod(source), math.prod(given), len(codes) > len(given)
    if inferred and want and have % want == 0:
        return tuple([dim if dim is ANY or dim != -1 else have // want for dim in codes])
    if inferred or have != want:
        raise ShapeError(f"newshape={newshape} does not fit {show(source)}, which has {have} elements")
    return codes


@declare(name="_np_reshape")
def reshape(a, *, newshape: int | tuple[int, ...], order: Literal["C"] = "C"):
    """``a`` in the shape ``newshape``: 0 is a length of zero, () a scalar; one length may be -1, and is inferred."""


declare_reshape(reshape, _literal)
reshape.fill(reshape_fill)


def _taken(source: Sequence[int], codes: Sequence[int]) -> Shape:
    """The shape that codes mean, from the front of the shape of the data."""
    rest, shape, place = list(source), list[int](), 0
    codes = list(codes)

    def take() -> int:
        if not rest:
            raise ShapeError(f"newshape={tuple(codes)} names more axes than {show(tuple(source))} has")
        return rest.pop(0)

    while place < len(codes):
        code = codes[place]
        if code == -2:
            shape.append(take())
        elif code == -3:
            if (length := take()) != 1:
                raise ShapeError(f"newshape={tuple(codes)}: -3 removes an axis of length one, but the axis of "
                                 f"{show(tuple(source))} there has length {length}")
        elif code == -4:
            shape, rest = shape + rest, []
        elif code == -5:
            shape.append(take() * take())
        elif code == -6:
            length, parts = take(), codes[place + 1:place + 3]
            shape += [length // max(parts[1 - i], 1) if part == -1 else part for i, part in enumerate(parts)]
            place += 2
        else:
            shape.append(code)
            rest = rest[1:]
        place += 1
    return tuple(shape)


def _reshape_shape(source: Shape, *, newshape: int | Sequence[int], reverse: bool) -> Shape:
    codes = (newshape,) if isinstance(newshape, int) else tuple(newshape)
    if not reverse:
        return _infer_length(source, _taken(source, codes))
    turned, place = list[int](), len(codes)
    while place:  # from the last code on, since the two lengths of a split follow its code
        place -= 1
        width = 3 if place > 1 and codes[place - 2] == -6 else 1
        turned += [-6, codes[place], codes[place - 1]] if width == 3 else [codes[place]]
        place -= width - 1
    return _infer_length(source, _taken(source[::-1], turned)[::-1])


def _infer_length(source: Shape, codes: Shape) -> Shape:
    """The shape with -1 worked out, as far as the lengths of the data are known."""
    return _literal(source, newshape=codes) if is_known(source) else tuple([ANY if dim == -1 else dim for dim in codes])


@declare(name="_npx_reshape")
def coded_reshape(a, *, newshape: int | tuple[int, ...], reverse: bool = False, order: Literal["C"] = "C"):
    """``a`` in the shape ``newshape``: -1 is inferred, -2 keeps a length, -3 removes an axis of length one, -4 keeps
    all remaining lengths, -5 merges two, -6 splits one into the two lengths after it. ``reverse`` matches the axes from
    the last one."""


declare_reshape(coded_reshape, _reshape_shape)


# -------------------------------------------------------------------------------------------------- matmul


def _product_shape(a: Shape, b: Shape) -> Shape:
    """The shape of ``a @ b``; a vector on either side leaves out an axis."""
    if not a or not b:
        raise ShapeError(f"matmul: expected at least one axis each, got shapes {show(a)} and {show(b)}")
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise ShapeError(f"the axes to sum over have different lengths: {show(a)} and {show(b)}")
    return broadcast(a[:-2], b[:-2]) + a[-2:-1] + (b[-1:] if len(b) > 1 else ())


def _factor_matrices(a: Array, b: Array) -> tuple[Array, Array]:
    """The factors as matrices: a vector on the left as a row, one on the right as a column."""
    return a.reshape(1, a.shape[0]) if a.ndim == 1 else a, b.reshape(b.shape[0], 1) if b.ndim == 1 else b


def _fold_batch(a: Array, b: Array) -> tuple[Array, Array]:
    """A product of many matrices and one as a single matrix product, if the many are contiguous."""
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        a = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
    return a, b


def _reshaped_product(xp: ArrayModule, a: Array, b: Array, shape: Shape, out: Array | None) -> Array:
    """The product of two arrays of matrices, as ``shape``, which may lack axes of length one."""
    if xp is np and b.ndim == 2 and a.ndim > 2 and 2 * a.shape[-2] <= b.shape[1]:
        a = np.ascontiguousarray(a)  # BLAS would pack b for each matrix of a; copying the few rows of a costs less
    a, b = _fold_batch(a, b)
    full = broadcast(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])
    target = None if out is None or not out.flags.c_contiguous else out.reshape(full)
    result = product(xp, a, b, target)
    if target is None and out is not None:
        out[...] = result.reshape(shape)
    return result.reshape(shape) if out is None else out


@declare(name="_npi_matmul")
def matmul(a, b):
    """Products of the matrices in the last two axes; the axes before broadcast. A vector on the left is a row, one on
    the right a column; the result lacks this axis."""


matmul.infer(_product_shape)


@matmul.fill
def matmul_fill(ins, outs):
    a, b = ins
    axis = len(b) - 2 if b and len(b) > 1 else 0
    # the shape rule raises an error if both are known and differ
    if not a or not b or (a[-1] is ANY) == (b[axis] is ANY):
        return [a, b]
    size = b[axis] if a[-1] is ANY else a[-1]
    return [(*a[:-1], size), (*b[:axis], size, *b[axis + 1:])]


matmul.attends(multiplies)


matmul_a = adjoint("_backward_npi_matmul_a", matmul, ("g", "b", "a"))
matmul_b = adjoint("_backward_npi_matmul_b", matmul, ("g", "a", "b"))


def _head(g: Array, a: Array, b: Array) -> Array:
    """The gradient of a product with the axes that vectors took away."""
    rows = a.shape[-2] if a.ndim > 1 else 1
    columns = b.shape[-1] if b.ndim > 1 else 1
    return g.reshape(*broadcast(a.shape[:-2], b.shape[:-2]), rows, columns)


def _declare_product(op: Op, factors: Callable[..., tuple[Array, ...]], product_shape: Callable[..., Shape]) -> None:
    """Declare that an operator multiplies arrays of matrices, the two that ``factors(*arrays)`` makes of its inputs.

    If a third operator makes the sum, the products are summed down to its matrices.
    """

    def sums(left: Array, right: Array, *like: Array) -> bool:
        return any(broadcast(left.shape[:-2], right.shape[:-2]) != array.shape[:-2] for array in like)

    @op.kernel()  # no body: bodies use it to multiply
    def multiplying_xp(xp: ArrayModule, *arrays: Array, out: Array | None = None) -> Array:
        left, right, *like = factors(*arrays)
        shape = product_shape(*[array.shape for array in arrays])
        if not sums(left, right, *like):
            return _reshaped_product(xp, left, right, shape, out)
        return copy_view(xp, reduced_like(xp, product(xp, left, right), *like).reshape(shape), out)

    def alone(*arrays: Array) -> Callable[..., tuple[Array, Array]] | None:
        return None if sums(*factors(*arrays)) else lambda *arrays: _fold_batch(*factors(*arrays)[:2])

    declare_product(op, alone)


def _factors_of_a(g: Array, b: Array, a: Array) -> tuple[Array, ...]:
    left, right = _factor_matrices(a, b)
    return _head(g, a, b), right.swapaxes(-1, -2), left


def _factors_of_b(g: Array, a: Array, b: Array) -> tuple[Array, ...]:
    left, right = _factor_matrices(a, b)
    head = _head(g, a, b)
    if right.ndim == 2 and left.ndim > 2:  # one product over all rows also sums over the stack
        rows = math.prod(left.shape[:-1])
        left, head = left.reshape(rows, left.shape[-1]), head.reshape(rows, head.shape[-1])
    return left.swapaxes(-1, -2), head, right


_declare_product(matmul, _factor_matrices, _product_shape)
_declare_product(matmul_a, _factors_of_a, lambda g, b, a: a)
_declare_product(matmul_b, _factors_of_b, lambda g, a, b: b)
bilinear(matmul, matmul_a, matmul_b, lambda a, b, out, **attrs: 2 * math.prod(out) * a[-1])


@matmul.vmap
def matmul_vmap(ins, batched):
    left, right = [value.reshape((*value.shape, 1)[:own] + extra(value.shape[own:])) for value, own, extra in
                   zip(ins, batched, (_row_shape, _column_shape))]
    return ops._npi_matmul(*align_inputs([left, right], batched))


def _row_shape(shape: Shape) -> Shape:
    return shape if len(shape) > 1 else (1, *shape)


def _column_shape(shape: Shape) -> Shape:
    return shape if len(shape) > 1 else (*shape, 1)


def _declare_factor_of_samples(op: Op, right: bool) -> None:
    """Declare the vmap rule of the gradient of one factor, the left or the right one."""

    @op.vmap
    def factor_vmap(ins, batched):
        g, other_factor, factor = repeat_inputs(ins, batched)
        if min(len(other_factor.shape), len(factor.shape)) < 3:
            return NotImplemented
        turned = ops.swapaxes(other_factor, dim1=-1, dim2=-2)
        product = ops._npi_matmul(*align_inputs([turned, g] if right else [g, turned], (True, True)))
        return summed_like(product, product.shape[1:], factor.shape[1:])


_declare_factor_of_samples(matmul_a, right=False)
_declare_factor_of_samples(matmul_b, right=True)


# --------------------------------------------------------------------------------------------------- where


def _declare_choice(op: Op, chosen: int | None, elsewhere: int | None) -> None:
    """Declare that an operator selects between two inputs by its first input: elements come from ``chosen`` if it is
    not zero, and from ``elsewhere`` if it is; None stands for the attribute ``scalar``."""
    op.infer(broadcast)
    alike(op, broadcasts=None not in (chosen, elsewhere))

    declare_choice(op, chosen is None)

    @op.grad
    def choice_grad(g, ins, outs, *, needs):
        gradients: list[Value | None] = [None] * len(ins)
        for place, select in ((chosen, ops._npi_where_rscalar), (elsewhere, ops._npi_where_lscalar)):
            if place is not None and needs[place]:
                gradients[place] = ops._reduce_like(select(ins[0], g, scalar=0.0), ins[place])
        return gradients


@declare(name="_npi_where", types="C,T,T->T", inplace=(2,))
def where(condition, x, y):
    """``x`` where ``condition`` is nonzero, ``y`` elsewhere; shapes broadcast."""


@declare(name="_npi_where_lscalar", types="C,T->T", inplace=(1,))
def where_lscalar(condition, x, *, scalar: Number = 0.0):
    """``scalar`` where ``condition`` is nonzero, ``x`` elsewhere; shapes broadcast."""


@declare(name="_npi_where_rscalar", types="C,T->T")
def where_rscalar(condition, y, *, scalar: Number = 0.0):
    """``y`` where ``condition`` is nonzero, ``scalar`` elsewhere; shapes broadcast."""


_declare_choice(where, 1, 2)
_declare_choice(where_lscalar, None, 1)
_declare_choice(where_rscalar, 1, None)


@where_lscalar.attends
def where_lscalar_attends(condition, x, *, scalar):
    return MaskedScores(False, scalar)


@where_rscalar.attends
def where_rscalar_attends(condition, y, *, scalar):
    return MaskedScores(True, scalar)


# ---------------------------------------------------------------------------------- assignment to a subscript


@declare(name="_subscript_assign", types="T,V=T->T", inplace=(0,))
def subscript_assign(data, value, *, key: Key):
    """A copy of ``data`` with ``data[key] = value``, by NumPy's rules."""


@subscript_assign.infer
def subscript_assign_infer(data, value, *, key):
    part = subscript_infer(data, key=key)
    if part is not None:
        extra = max(len(value) - len(part), 0)
        target = (1,) * extra + part[len(part) + extra - len(value):]
        if any(old not in (1, new) for old, new in zip(value, target)):  # an unknown dimension equals everything
            raise ShapeError(f"value of shape {show(value)} does not broadcast to {show(part)}, the part it replaces")
    return data


# A single element is selected as a scalar, to which NumPy assigns no array with an axis.
declare_writes(subscript_assign, lambda xp, data, value, *, key: (
    data, key, value.reshape(()) if value.size == 1 else value))


@subscript_assign.grad
def subscript_assign_grad(g, ins, outs, *, key, needs):
    value = ins[1]
    return (ops._subscript_assign(g, ops.zeros_like(value), key=key) if needs[0] else None,
            ops._backward_subscript_assign(g, value, key=key) if needs[1] else None)


@declare(name="_backward_subscript_assign", types="T,U->U", unread=(1,))
def subscript_sum(g, value, *, key: Key):
    """``g[key]`` summed to the shape of ``value``; where an index repeats, only the last one counts."""


@subscript_sum.infer
def subscript_sum_infer(g, value, *, key):
    subscript_assign_infer(g, value, key=key)
    return value


@subscript_sum.kernel()  # no body: of repeated writes to one element the last one counts
def subscript_sum_xp(xp, g, value, *, key):
    part = xp.asarray(g[key])
    if may_repeat(key):
        numbers = xp.arange(part.size).reshape(part.shape)
        part = xp.where(last_writes(xp, g.shape, key) == numbers, part, xp.zeros((), part.dtype))
    if part.ndim < value.ndim:
        part = part.reshape((1,) * (value.ndim - part.ndim) + part.shape)
    return reduced_like(xp, part, value)


@subscript_sum.grad
def subscript_sum_grad(g, ins, outs, *, key):
    return (ops._subscript_assign(ops.zeros_like(ins[0]), g, key=key), None)


# ---------------------------------------------------------------------------------------------- true quotients


def _declare_quotient(name: str, doc: str, body: Callable[..., Value]) -> None:
    """Declare a quotient that is floating whatever its operands are."""
    op = composed(body, name=name)
    op.doc = doc
    floating_of(op)


def _true_divide(x1, x2):
    dtype = widest_float(x1.dtype, x2.dtype)
    return ops.broadcast_div(ops.Cast(x1, dtype=dtype), ops.Cast(x2, dtype=dtype))


def _true_divide_scalar(data, *, scalar: float = 1.0):
    return ops._div_scalar(ops.Cast(data, dtype=widest_float(data.dtype)), scalar=scalar)


def _rtrue_divide_scalar(data, *, scalar: float = 1.0):
    return ops._rdiv_scalar(ops.Cast(data, dtype=widest_float(data.dtype)), scalar=scalar)


_declare_quotient("_npi_true_divide", "``x1 / x2``, floating-point also for integers. Shapes broadcast.", _true_divide)
_declare_quotient("_npi_true_divide_scalar", "``data / scalar``, floating-point also for integers.",
                  _true_divide_scalar)
_declare_quotient("_npi_rtrue_divide_scalar", "``scalar / data``, floating-point also for integers.",
                  _rtrue_divide_scalar)


# ----------------------------------------------------------------------------------------- moved and rounded


def _triangle(name: str, upper: bool, doc: str) -> None:
    @composed(name=name)
    def op(data, *, k: int = 0):
        """A triangle."""
        if not data.shape:
            raise ShapeError("expected at least one axis, got a scalar")
        if len(data.shape) == 1:  # a vector becomes each row of a matrix
            data = ops._np_broadcast_to(data, shape=data.shape * 2)
        inside = constant(lambda rows, columns: np.tri(rows, columns, k - upper) != upper, *data.shape[-2:])
        return ops._npi_where_rscalar(inside, data, scalar=0.0)

    op.doc = doc


_triangle("_npi_tril", False, "The matrices in the last two axes with zeros above the diagonal ``k``, which lies ``k`` "
                              "places above the main one.")
_triangle("_npi_triu", True, "The matrices in the last two axes with zeros below the diagonal ``k``, which lies ``k`` "
                             "places above the main one.")

Places = int | tuple[int, ...]


@declare(name="_np_roll")
def roll(data, *, shift: Places, axis: Places | None = None):
    """``data`` shifted by ``shift`` along each ``axis``, or flattened; elements shifted out at the end enter at the
    front."""


@roll.infer
def roll_infer(data, *, shift, axis):
    axes = (axis,) if isinstance(axis, int) else axis
    for a in axes or ():
        check_axis(a, len(data))
    if axes is not None and not isinstance(shift, int) and len(shift) not in (1, len(axes)):
        raise AttrError(f"shift={shift} and axis={axis} have different lengths")
    if axes is None and not isinstance(shift, int) and len(shift) != 1:
        raise AttrError(f"shift={shift}: expected one number, since axis is None")
    return data


def _roll(xp: ArrayModule, data: Array, *, shift: Places, axis: Places | None) -> Array:
    if not isinstance(shift, int) and (axis is None or isinstance(axis, int) or len(shift) < len(axis)):
        (shift,) = shift
    return xp.roll(data, shift, axis)


declare_array_function(roll, _roll)  # no body: slices and Concat take ten times as long for four million elements


@roll.grad
def roll_grad(g, ins, outs, *, shift, axis):
    opposite = -shift if isinstance(shift, int) else tuple([-steps for steps in shift])
    return (ops._np_roll(g, shift=opposite, axis=axis),)


# Exponents of powers of ten within the range of float64.
Decimals = Annotated[int, Limit("from -308 to 308", lambda decimals: abs(decimals) <= 308)]


@declare(name="_npi_around")
def around(x, *, decimals: Decimals = 0):
    """Elements rounded to ``decimals`` digits, halves to the even digit; negative ``decimals`` round to tens, hundreds
    and so on."""


alike(around)


around.grad(ZERO)


@around.kernel()  # no body: the function is the array module's
def around_xp(xp, x, *, decimals, out=None):
    if is_numpy_float(x.dtype):
        return xp.around(x, decimals, out=out)
    return stored_in(xp.around(x, decimals), out)  # NumPy may round integers as floating-point values


@declare(name="_npi_full_like", types="T->@dtype=T", unread=(0,))
def full_like(a, *, fill_value: Number, ctx: str = "", dtype: np.dtype | None = None):
    """An array of the shape of ``a`` filled with ``fill_value``, by default in the dtype of ``a``."""


declare_fill(full_like)

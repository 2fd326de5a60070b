"""Sums of products with NumPy's rules, under MXNet's names for them: ``dot``, ``tensordot`` and ``einsum``.

Each is a body of permutations, reshapes and products of matrices, so ranks and lengths are read when shapes are
inferred, and symbols need not know them.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

from ...core.attrs import Count, Few
from ...core.einsum import contraction, implied_result
from ...core.registry import ops
from ...core.spec import ANY, Shape, check_axis, show, unify
from ...custom.composed import composed
from ...errors import AttrError, ShapeError

# ------------------------------------------------------------------------------------- sums over pairs of axes


def _pairs(a: Shape, b: Shape, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
    """The axes of both that are summed over, from the front."""
    if len(first) != len(second):
        raise AttrError(f"a_axes_summed={tuple(first)} and b_axes_summed={tuple(second)} have different lengths")
    left = [check_axis(axis, len(a), "a_axes_summed") for axis in first]
    right = [check_axis(axis, len(b), "b_axes_summed") for axis in second]
    for one, other in zip(left, right):
        if a[one] != b[other]:
            raise ShapeError(f"the axes to sum over have different lengths: axis {one} of {show(a)} and axis {other} "
                             f"of {show(b)}")
    return left, right


def _contracted_axes(a: Shape, b: Shape, axes: int) -> tuple[list[int], list[int]]:
    """The last axes of ``a`` and the first of ``b``."""
    if axes > min(len(a), len(b)):
        raise AttrError(f"axes={axes}: expected no more axes than {show(a)} and {show(b)} have")
    return list(range(len(a) - axes, len(a))), list(range(axes))


def _rest(shape: Shape, summed: Sequence[int]) -> list[int]:
    return [axis for axis in range(len(shape)) if axis not in summed]


def _permute(value: Any, order: Sequence[int]) -> Any:
    """An array with its axes in an order."""
    return value if list(order) == sorted(order) else ops.transpose(value, axes=tuple(order))


def _matrix(value: Any, rows: Sequence[int], columns: Sequence[int]) -> Any:
    """An array as a matrix, with some of its axes as rows and the others as columns."""
    order = (*rows, *columns)
    value = _permute(value, order)
    height, width = [math.prod([value.shape[order.index(axis)] for axis in axes]) for axes in (rows, columns)]
    return ops._np_reshape(value, newshape=(height, width))


def _sum_of_products(a: Any, b: Any, first: Sequence[int], second: Sequence[int]) -> Any:
    """The sums of products over pairs of axes."""
    left, right = _pairs(a.shape, b.shape, first, second)
    rows, columns = _rest(a.shape, left), _rest(b.shape, right)
    result = ops._npi_matmul(_matrix(a, rows, left), _matrix(b, right, columns))
    return ops._np_reshape(result, newshape=(*[a.shape[axis] for axis in rows], *[b.shape[axis] for axis in columns]))


@composed(name="_npi_tensordot")
def tensordot(a, b, *, a_axes_summed: tuple[int, ...], b_axes_summed: tuple[int, ...]):
    """Sums of products over pairs of axes: ``a_axes_summed`` of ``a``, with ``b_axes_summed`` of ``b``."""
    return _sum_of_products(a, b, a_axes_summed, b_axes_summed)


@composed(name="_npi_tensordot_int_axes")
def tensordot_int_axes(a, b, *, axes: Count):
    """Sums of products over the last ``axes`` axes of ``a`` and the first ``axes`` axes of ``b``."""
    return _sum_of_products(a, b, *_contracted_axes(a.shape, b.shape, axes))


def _axes_of_dot(a: Shape, b: Shape) -> tuple[list[int], list[int]]:
    return [len(a) - 1], [max(len(b) - 2, 0)]


@composed(name="_np_dot")
def dot(a, b):
    """Sums of products over the last axis of ``a`` and the last but one of ``b``; with a scalar, the product."""
    if not a.shape or not b.shape:
        return ops.broadcast_mul(a, b)
    return ops._npi_matmul(a, b) if len(b.shape) < 3 else _sum_of_products(a, b, *_axes_of_dot(a.shape, b.shape))


@dot.fill
def dot_fill(ins, outs):
    a, b = ins
    if not a or not b:
        return [a, b]
    (left,), (right,) = _axes_of_dot(a, b)
    size: Any = unify((a[left],), (b[right],))
    return [(*a[:left], *size), (*b[:right], *size, *b[right + 1:])]


# -------------------------------------------------------------------------------------------------- equations


def _equation(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of the axes of each operand and of the result, with letters in the place of an ellipsis."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    words = inputs.split(",")
    if len(words) != len(ranks):
        raise AttrError(f"subscripts={subscripts!r}: expected {len(words)} operands, got {len(ranks)}")
    free = [letter for letter in string.ascii_letters if letter not in subscripts]
    counts = [rank - len(word.replace("...", "")) for word, rank in zip(words, ranks)]
    for word, rank, count in zip(words, ranks, counts):
        if count < 0 or (count and "..." not in word):
            raise ShapeError(f"subscripts={subscripts!r}: {word!r} does not fit an operand of {rank} axes")
    most = max([count for word, count in zip(words, counts) if "..." in word], default=0)
    hidden = "".join(free[:most])
    if len(hidden) < most:
        raise AttrError(f"subscripts={subscripts!r}: there are more axes than the 52 letters")
    terms = [word.replace("...", hidden[most - count:]) for word, count in zip(words, counts)]
    result = output.replace("...", hidden) if arrow else \
        hidden + "".join(letter for letter in implied_result(inputs.replace(".", "")))
    for letter in result:
        if result.count(letter) > 1 or not any(letter in term for term in terms):
            raise AttrError(f"subscripts={subscripts!r}: expected each letter of the result once, and in an operand")
    return terms, result


def _lengths(terms: Sequence[str], shapes: Sequence[Shape], subscripts: str) -> dict[str, int]:
    """The length of each letter; a length of one repeats."""
    for term, shape in zip(terms, shapes):
        # lengths on a diagonal must be equal: a length of one is not repeated there
        diagonals: dict[str, Shape | None] = {}
        for letter, dim in zip(term, shape):
            diagonals[letter] = unify(diagonals.get(letter), (dim,))
    found: dict[str, int] = {}
    for letter in dict.fromkeys("".join(terms)):
        dims = [dim for term, shape in zip(terms, shapes) for own, dim in zip(term, shape) if own == letter]
        lengths = {dim for dim in dims if dim is not ANY and dim != 1}
        if len(lengths) > 1:
            raise ShapeError(f"subscripts={subscripts!r}: axes {letter!r} have lengths "
                             f"{', '.join(map(str, sorted(lengths)))}")
        found[letter] = lengths.pop() if lengths else ANY if any(dim is ANY for dim in dims) else 1
    return found


def _diagonal(value: Any, term: str) -> tuple[Any, str]:
    """An operand in which each letter stands once: the diagonal of axes that share a letter."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            value = ops.diag(value, axis1=first, axis2=second)
            term = "".join(own for i, own in enumerate(term) if i not in (first, second)) + letter
    return value, term


def _sum_letters(value: Any, term: str, letters: Sequence[str]) -> tuple[Any, str]:
    """An operand summed over axes of its letters."""
    places = tuple([term.index(letter) for letter in letters])
    return (ops._np_sum(value, axis=places, dtype=value.dtype) if places else value,
            "".join(letter for letter in term if letter not in letters))


def _product(left: str, x: Any, right: str, y: Any, later: set[str]) -> tuple[str, Any]:
    """The letters and the value of the product of two operands, each letter once in an operand; letters of both that
    are not needed ``later`` are summed over."""
    stack, summed, rows, columns = contraction(left, right, later)
    length = {**dict(zip(left, x.shape)), **dict(zip(right, y.shape))}

    def matrices(letters: str, value: Any, *groups: list[str]) -> Any:
        groups = groups if stack else groups[1:]
        value = _permute(value, [letters.index(letter) for group in groups for letter in group])
        return ops._np_reshape(value, newshape=tuple([math.prod([length[letter] for letter in group])
                                                      for group in groups]))

    letters = [*stack, *rows, *columns]
    value = ops._npi_matmul(matrices(left, x, stack, rows, summed), matrices(right, y, stack, summed, columns))
    return "".join(letters), ops._np_reshape(value, newshape=tuple([length[letter] for letter in letters]))


@composed(name="_npi_einsum")
def einsum(*data, num_args: Few = 1, subscripts: str, optimize: int = 0):
    """Sums of products over axes with the same letter, with the axes of the result in the order after ``->``. An
    ellipsis stands for all axes without a letter. ``optimize`` has no effect."""
    terms, output = _equation(subscripts, [len(value.shape) for value in data])
    length = _lengths(terms, [value.shape for value in data], subscripts)
    operands = []
    for value, term in zip(data, terms):
        value, term = _diagonal(value, term)
        operands.append(_sum_letters(value, term, [own for own, dim in zip(term, value.shape) if dim != length[own]]))
    value, term = operands[0]
    for i, (other, word) in enumerate(operands[1:], 2):
        later = {*output, *"".join(word for _, word in operands[i:])}
        value, term = _sum_letters(value, term, [own for own in term if own not in later and own not in word])
        other, word = _sum_letters(other, word, [own for own in word if own not in later and own not in term])
        term, value = _product(term, value, word, other, later)
    value, term = _sum_letters(value, term, [own for own in term if own not in output])
    missing = [own for own in output if own not in term]  # axes of operands of length one, which were repeated
    value = _permute(value, [term.index(own) for own in output if own not in missing])
    return ops._np_broadcast_to(ops._np_reshape(value, newshape=tuple([
        1 if own in missing else length[own] for own in output])), shape=tuple([length[own] for own in output])) \
        if missing else value

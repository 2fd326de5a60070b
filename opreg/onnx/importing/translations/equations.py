"""The row of Einsum: sums of products, as an equation of letters says, also where lengths are open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from string import ascii_letters
from typing import Any, NamedTuple

from opreg.core.einsum import contraction, implied_result
from opreg.core.registry import ops
from opreg.core.spec import ANY, is_known
from opreg.errors import ArgumentError, ShapeError
from opreg.nn.ops import einsum as ours

from ..graph import Node
from ..rows import row


class _LetteredTensor(NamedTuple):
    """A tensor with a letter for each of its axes."""

    letters: str
    value: Any


@row("Einsum")
def einsum(node: Node, *values: Any, equation: str) -> Any:
    terms, result = _terms(node, equation.replace(" ", ""), values)
    if all(is_known(node.lengths(value)) for value in values) and len(values) == len(terms):
        return ours(f"{','.join(letters for letters, _ in terms)}->{result}", *[value for _, value in terms])
    product = terms[0]
    for i, term in enumerate(terms[1:], 2):
        product = _product(node, product, term, set(result).union(*[letters for letters, _ in terms[i:]]))
    letters, value = _sum_out(product, result)
    return _transposed(value, letters, result)


def _terms(node: Node, equation: str, values: Sequence[Any]) -> tuple[list[_LetteredTensor], str]:
    """Each tensor with its letters, and those of the result, with letters in the place of ``...``."""
    left, arrow, result = equation.partition("->")
    words = left.split(",")
    if len(words) != len(values):
        raise ArgumentError(f"einsum: {equation!r} names the axes of {len(words)} tensors, there are {len(values)}")
    counts = []
    for word, value in zip(words, values):
        own = word.replace("...", "")
        counts.append(node.rank(value) - len(own) if "..." in word else 0)
        if counts[-1] < 0 or ("..." not in word and len(own) != node.rank(value)):
            raise ShapeError(f"einsum: {word!r} names {len(own)} axes of shape {node.lengths(value)}")
    free = [letter for letter in ascii_letters if letter not in equation][:max(counts)]
    if not arrow:
        result = "..." + implied_result(left.replace("...", ""))
    wide = [word.replace("...", "".join(free[len(free) - count:])) for word, count in zip(words, counts)]
    if free and "..." not in result:
        raise ArgumentError(f"einsum: {equation!r} leaves out the axes of '...' after the arrow")
    if "..." in result and arrow and "..." not in left:
        raise ArgumentError(f"einsum: {equation!r} asks for axes that no tensor has")
    result = result.replace("...", "".join(free))
    if len(set(result)) < len(result) or not set(result).issubset("".join(wide)):
        raise ArgumentError(f"einsum: {equation!r} has an output axis that no tensor has, or has one twice")
    return _broadcast_letters(node, wide, values, free), result


def _broadcast_letters(node: Node, words: Sequence[str], values: Sequence[Any],
                       free: Collection[str]) -> list[_LetteredTensor]:
    """Tensors with their letters, without axes of length one that are broadcast to longer axes of other tensors."""
    wide: dict[str, Any] = {}  # the length of each letter where it is more than one element
    for word, value in zip(words, values):
        for letter, length in zip(word, node.lengths(value)):
            if letter in free and _is_one(length):
                continue
            if wide.get(letter, length) != length:
                raise ShapeError(f"einsum: the axis {letter!r} has lengths {wide[letter]} and {length}")
            if wide.get(letter, ANY) is ANY:
                wide[letter] = length
    terms = []
    for word, value in zip(words, values):
        gone = tuple(at for at, (letter, length) in enumerate(zip(word, node.lengths(value)))
                     if letter in free and letter in wide and _is_one(length))
        letters = "".join(letter for at, letter in enumerate(word) if at not in gone)
        terms.append(_LetteredTensor(letters, ops.squeeze(value, axis=gone) if gone else value))
    return terms


def _is_one(length: Any) -> bool:
    return length is not ANY and length == 1


def _transposed(value: Any, letters: str, order_letters: Sequence[str]) -> Any:
    order = tuple(letters.index(letter) for letter in order_letters)
    return value if order == tuple(range(len(order))) else ops.transpose(value, axes=order)


def _sum_out(term: _LetteredTensor, remaining: Collection[str]) -> _LetteredTensor:
    """The sum over axes whose letters are not in ``remaining``."""
    gone = tuple(at for at, letter in enumerate(term.letters) if letter not in remaining)
    letters = "".join(letter for letter in term.letters if letter in remaining)
    return _LetteredTensor(letters, ops._np_sum(term.value, axis=gone) if gone else term.value)


def _product(node: Node, left: _LetteredTensor, right: _LetteredTensor, later: Collection[str]) -> _LetteredTensor:
    """The product of two tensors as one of matrices, summed over letters that are not needed later.

    Only axes that are summed over are merged into one, so other lengths may be open. If there are several axes of
    rows, or of columns, all but the last are axes of the stack of matrices, with length one in the other operand.
    """
    left, right = _sum_out(left, {*later, *right.letters}), _sum_out(right, {*later, *left.letters})
    for letters, value in (left, right):
        if len(set(letters)) < len(letters):
            node.shape(value)  # a diagonal needs the lengths of its axes
    stack, inner, rows, columns = contraction(left.letters, right.letters, later)
    above, below = rows[:-1], columns[:-1]
    count = len(stack)
    a = _transposed(left.value, left.letters, [*stack, *rows, *inner])
    b = _transposed(right.value, right.letters, [*stack, *below, *inner, *columns[-1:]])
    a = _joined(a, count + len(rows), len(inner))
    b = _joined(b, count + len(below), len(inner))
    if not rows:
        a = ops.expand_dims(a, axis=count)
    if not columns:
        b = ops.expand_dims(b, axis=count + 1)
    for _ in below:
        a = ops.expand_dims(a, axis=count + len(above))
    for _ in above:
        b = ops.expand_dims(b, axis=count)
    product = ops._npi_matmul(a, b)
    stacked = count + len(above) + len(below)
    gone = tuple(at for at, there in ((stacked, rows), (stacked + 1, columns)) if not there)
    return _LetteredTensor("".join([*stack, *above, *below, *rows[-1:], *columns[-1:]]),
                           ops.squeeze(product, axis=gone) if gone else product)


def _joined(value: Any, at: int, count: int) -> Any:
    """A tensor in which ``count`` axes from ``at`` on are joined to one; for no axes, a new axis of length one."""
    if count == 0:
        return ops.expand_dims(value, axis=at)
    for _ in range(count - 1):  # axes are added one by one, so that open lengths stay open
        value = ops.Reshape(value, shape=(*(0,) * at, -3, -2))
    return value

"""Operators that are loops: one description, from which the kernels of all back ends are made.

An operator declares the loop that it computes, for shapes and attributes. Its kernels are derived from it: calls of
ufuncs, for any array module, and compiled code of back ends. ``by_loop`` derives a gradient, too, unless the operator
has a better one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..backends import expressions as kernels_of_backends
from ..backends.blas import multiplier
from ..core.launch import Call, Rank
from ..core.op import Op
from ..core.registry import ops
from ..core.rules import Attrs, Rule
from ..core.spec import Spec, is_single_or_double
from ..core.tracing import NeedsNumbers
from ..core.value import Value
from ..elementwise.loop_runs import bound_loop, prepared_loop
from ..elementwise.loops import Loop, Sets, gradients
from ..elementwise.rows import RowLayout
from ..typing import Array, ArrayModule

__all__ = ["attach_loops", "by_loop", "looped", "results_of"]

F = TypeVar("F", bound=Callable[..., Sets])

#: The instructions of a mean; the first one is those of a sum.
_MEAN = [("row_sum", (0,)), ("row_size", ()), ("divide", (1, 2))]
#: The number of rows from which on their sum is the sum of blocks, and the number of rows of a block.
_MANY, _BLOCK = 1 << 15, 2048


def looped(op: Op) -> Callable[[F], F]:
    """Declare the loop of an operator: ``f(**attrs)`` returns it. It gives the kernels, and the shape rule unless there
    is one."""

    def declare(function: F) -> F:
        rule = op.rules.sets = Rule(function)

        def loop_of(attrs: Attrs, arrays: Sequence[Array]) -> Loop:
            described: Sets = rule(attrs)
            return described.on([array.shape for array in arrays], ufuncs=True)

        if not op.rules.shaped:
            op.infer(lambda *shapes, **attrs: rule(attrs).results(shapes))

        @op.in_parts  # no body: it is the loop
        def loop_in_parts(xp: ArrayModule, *arrays: Array, **attrs: Any) -> Callable[..., Any]:
            specs: list[Any] = [Spec(array.shape, array.dtype) for array in arrays]  # arrays would stay in memory
            prepared = functools.cache(lambda: prepared_loop(loop_of(attrs, specs), xp, specs, _stated_dtype(attrs)))
            folded = rule(attrs).on([array.shape for array in arrays])
            if xp is not np or not _adds_rows(folded, arrays, _stated_dtype(attrs)):
                return prepared()
            total, view, shape = _sum_by_product(folded, xp, arrays[0]), folded.view[1:], folded.results[0]
            count = _mean_divisor(folded, xp, arrays[0].dtype)

            def sum_rows(data: Array, out: Array | None = None) -> Array:
                if not data.flags.c_contiguous:
                    return prepared()(data, out=out)
                result = total(data.reshape(view)).reshape(shape)
                if count is not None:
                    np.divide(result, count, result)
                if out is None:
                    return result
                out[...] = result
                return out

            return sum_rows

        attach_loops(op, lambda call: rule(call.attrs).on([array.shape for array in call.ins]),
                     lambda call: loop_of(call.attrs, call.ins))
        return function

    return declare


def results_of(loop: Loop, xp: ArrayModule, arrays: Sequence[Array], out: Any, attrs: Attrs) -> Any:
    """The results of a loop as a kernel returns them, in new arrays or in ``out``."""
    return prepared_loop(loop, xp, arrays, _stated_dtype(attrs))(*arrays, out=out)


def attach_loops(op: Op, loop_of: Callable[[Call], Loop | str], unfolded: Callable[[Call], Loop] | None = None) -> None:
    """Attach the kernels of ufuncs and of back ends to an operator whose calls are loops, or some of them.

    ``loop_of(call)`` returns the loop, or the reason why the call is left to the reference kernel. ``unfolded(call)``
    returns the loop over the arrays in their own shapes, for reductions: ufuncs reduce arrays that are not contiguous,
    whose axes cannot be joined without a copy.

    Examples
    --------
    >>> from opreg.core.registry import declare
    >>> from opreg.elementwise.expression import floor
    >>> from opreg.elementwise.loops import sets
    >>> @declare(name="_example_rounded")
    ... def rounded(data, *, digits: int = 0): "The data, rounded down to digits."
    >>> _ = rounded.kernel()(lambda xp, data, *, digits: xp.floor(data * 10 ** digits) / 10 ** digits)
    >>> attach_loops(rounded, lambda call: "it rounds to digits" if call.attrs["digits"] else sets(
    ...     floor, -1).on([call.ins[0].shape]))
    >>> [kernel.name for kernel in rounded.kernels][:2]
    ['reference', 'ufuncs']
    """

    of_ufuncs = unfolded or loop_of

    def accepts(call: Call) -> str | None:
        call.details = None
        loop = of_ufuncs(call)
        if isinstance(loop, str):
            return loop
        folded = unfolded is None or any(along is not RowLayout.ROW for along in loop.rows.results)
        read = call.ins[:len(loop.rows.inputs)] if folded else ()
        if all(array is None or array.flags.c_contiguous for array in (*read, *call.outs)):
            return None
        return "an array is not contiguous"

    @op.kernel("ufuncs", bound=True, accepts=accepts, rank=Rank.OPERATOR)
    def loop_ufuncs(call: Call) -> list[Callable[[], object]]:
        loop, folded = of_ufuncs(call), loop_of(call)
        assert isinstance(loop, Loop)
        if isinstance(folded, Loop) and call.outs[0] is not None and call.ins[0].flags.c_contiguous and _adds_rows(
                folded, call.ins, call.outs[0].dtype):
            rows, out = call.ins[0].reshape(folded.view[1:]), call.outs[0].reshape(folded.view[2])
            step, count = functools.partial(_sum_by_product(folded, call.xp, rows), rows, out), _mean_divisor(
                folded, call.xp, rows.dtype)
            return [step] if count is None else [step, functools.partial(call.xp.divide, out, count, out)]
        return bound_loop(loop, call.xp, call.ins, call.outs, call.scratch)

    kernels_of_backends.attach_loop(op, loop_of, loop_ufuncs)


def _adds_rows(loop: Loop, ins: Sequence[Array], result: np.dtype | None) -> bool:
    """Whether a loop computes the sum or the mean of rows of floating-point values."""
    code, dtype = [(prim.name, args) for prim, args in loop.rows.expression.code], ins[0].dtype
    return (code in (_MEAN[:1], _MEAN) and loop.rows.expression.results == (len(code),) and loop.axes == (1,)
            and len(loop.view) == 3 and loop.view[0] == 1 and 0 not in loop.view and is_single_or_double(dtype)
            and result in (None, dtype))


def _sum_by_product(loop: Loop, xp: ArrayModule, like: Array) -> Callable[..., Array]:
    """A function of rows, and optionally of an output, that adds the rows by a product with ones, which takes a half to
    a twentieth of the time of ufuncs. Many rows are added in blocks on the host, so that fewer digits are lost."""
    count, columns = loop.view[1:]
    if xp is np and count >= _MANY:
        return functools.partial(_sum_in_blocks, np.ones(_BLOCK, like.dtype))
    ones = xp.ones(count, like.dtype)
    return functools.partial(multiplier(xp, ones, like.reshape(count, columns)), ones)


def _sum_in_blocks(ones: Array, rows: Array, out: Array | None = None) -> Array:
    """The sum of rows, added in blocks of as many rows as there are ones."""
    left = len(rows) % len(ones)
    sums = np.matmul(ones, rows[:len(rows) - left].reshape(-1, len(ones), rows.shape[1]))
    if left:
        sums[0] += np.matmul(ones[:left], rows[-left:])
    return np.add.reduce(sums, 0, None, out)  # type: ignore[arg-type]


def _mean_divisor(loop: Loop, xp: ArrayModule, dtype: np.dtype) -> Any:
    """The number by which a loop divides a sum of rows, in an array on the host; None for a sum."""
    if len(loop.rows.expression.code) == 1:
        return None
    return np.asarray(loop.size, dtype) if xp is np else loop.size


def _stated_dtype(attrs: Attrs) -> Any:
    """The dtype that attributes ask for, or None."""
    return attrs.get("dtype") or attrs.get("out_dtype")


def _have_one_dtype(values: Sequence[Any]) -> bool:
    """Whether values are known to have one dtype; that of a symbol's value may be unknown."""
    try:
        return len({np.dtype(value.dtype) for value in values}) == 1
    except NeedsNumbers:
        return False


def by_loop(op: Op, mixed: bool = False) -> None:
    """Declare the gradient of an operator that is a loop: the derivative of the loop, as operators.

    With ``mixed``, dtypes of inputs may differ, and these compute in the widest.
    """

    @op.grad
    def loop_grad(g: Any, ins: Sequence[Value], outs: Sequence[Value], *, needs: Sequence[bool], **attrs: Any
                  ) -> list[Value | None]:
        assert op.rules.sets is not None
        values = [*(g if len(outs) > 1 else [g]), *ins, *outs]
        given = [value for value in values if value is not None]
        differ = mixed and not _have_one_dtype(given)
        if differ:
            wide = iter(ops.amp_multicast(*given, num_outputs=len(given)))
            values = [None if value is None else next(wide) for value in values]
        first, last = len(outs), len(outs) + len(ins)
        found = gradients(op.rules.sets(attrs), values[:first], values[first:last], values[last:], needs)
        return [ops._backward_cast(value, x) if differ and value is not None else value for value, x in zip(found, ins)]

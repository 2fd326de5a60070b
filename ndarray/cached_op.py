"""CachedOp: a symbol as a function of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opreg.core.graph import Node
from opreg.core.placeholder import resolve
from opreg.core.rules import as_list
from opreg.core.settings import Checked
from opreg.errors import ArgumentError, note, other_count

from .computation import compute
from .context import Context, current_context
from .ndarray import NDArray

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

__all__ = ["CachedOp"]


class CachedOp(Checked):
    """A symbol as a function of arrays, its inputs in the order of ``list_inputs``.

    Operators run eagerly, one after the other. So autograd records them, and shapes may differ between calls. An
    executor, which runs a plan, is faster.

    Parameters
    ----------
    sym : Symbol
        The graph.
    flags : sequence of pairs
        MXNet's settings of compilation, which have no effect.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> from opreg.symbol import var
    >>> CachedOp(var("x") * 2 + var("y"))(array([1, 2]), array([3, 4])).asnumpy()
    array([5., 8.], dtype=float32)
    """

    def __init__(self, sym: Symbol, flags: Sequence[tuple[str, object]] = ()):
        self._graph = resolve(sym._graph())
        self._names = [node.name for node in self._graph.nodes if node.op is None]

    def __call__(self, *args: NDArray | None, out: NDArray | Sequence[NDArray] | None = None,
                 default_ctx: Context | None = None) -> Any:
        """Compute the outputs.

        Parameters
        ----------
        args : NDArray
            The inputs. For a symbol without inputs, nothing or a single None.
        out : NDArray or list of them, optional
            Arrays to store the outputs in.
        default_ctx : Context, optional
            The device of operators without inputs.
        """
        values = () if len(args) == 1 and args[0] is None and not self._names else args
        if len(values) != len(self._names):
            raise ArgumentError(f"CachedOp: {other_count(self._names, len(values))}")
        inputs: list[NDArray] = []
        for name, value in zip(self._names, values):
            if not isinstance(value, NDArray):
                raise ArgumentError(f"CachedOp: input {name} must be an NDArray, got {type(value).__name__}")
            inputs.append(value)
        outputs = self._run(inputs, default_ctx)
        if out is not None:
            targets: list[Any] = as_list(out)
            if len(targets) != len(outputs):
                raise ArgumentError(f"CachedOp: out= has {len(targets)} arrays, expected {len(outputs)}")
            for target, result in zip(targets, outputs):
                result.copyto(target)
            return out
        return outputs[0] if len(outputs) == 1 else outputs

    def _run(self, args: Sequence[NDArray], default_ctx: Context | None) -> list[NDArray]:
        place = Context(default_ctx) if default_ctx else args[0]._ctx if args else current_context()
        remaining_args = iter(args)
        values: dict[Node, Sequence[NDArray]] = {}
        graph = self._graph = resolve(self._graph)
        for node in graph.nodes:
            if node.op is None:
                values[node] = (next(remaining_args),)
                continue
            inputs = [values[source][i] for source, i in node.inputs]
            try:
                unrolled = node.op.rules.unrolled
                values[node] = unrolled(node.op, node.attrs, inputs) if unrolled else compute(
                    node.op, node.attrs, inputs, inputs[0]._ctx if inputs else place)[1]
            except Exception as error:
                note(error, node.describe())
                raise
        return [values[node][i] for node, i in graph.heads]

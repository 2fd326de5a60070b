"""A built-in operator in the form of a ``CustomOp``: an object with ``forward`` and ``backward``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opreg.core.as_prop import BOUND_OPERATOR
from opreg.core.dispatch import write
from opreg.core.mode import Recording
from opreg.core.op import Op
from opreg.core.spec import is_floating

from . import backward_pass
from .computation import compute
from .context import Context
from .ndarray import NDArray

__all__ = ["BoundOperator"]


@BOUND_OPERATOR.provide
class BoundOperator:
    """A built-in operator with fixed attributes, which writes results as ``req`` says. ``create_operator`` makes it.

    Examples
    --------
    >>> from opreg.ndarray import array, zeros
    >>> from opreg.core.registry import get
    >>> operator = get("square").create_operator(None, [(2,)], ["float32"])
    >>> x, y, dx = array([1, 3]), zeros(2), zeros(2)
    >>> operator.forward(True, ["write"], [x], [y], [])
    >>> operator.backward(["add"], [array([1, 1])], [x], [y], [dx], [])
    >>> y.asnumpy(), dx.asnumpy()
    (array([1., 9.], dtype=float32), array([2., 6.], dtype=float32))
    """

    def __init__(self, op: Op, attrs: Mapping[str, Any], ctx: Context):
        self.op, self.attrs, self.ctx = op, attrs, ctx
        self._recorded: tuple[list[NDArray], list[NDArray]] | None = None

    def _run(self, in_data: Sequence[NDArray], aux: Sequence[NDArray], is_train: bool) -> list[NDArray]:
        """Compute all outputs, hidden ones included. A training run is recorded for the gradient."""
        ins = [array.detach() for array in in_data]
        for array in ins:
            if is_train and is_floating(array._data.dtype):
                array.attach_grad()
        ctx = ins[0].context if ins else self.ctx
        with Recording(is_train, is_train):
            _, outs = compute(self.op, self.attrs, [*ins, *aux], ctx)
        self._recorded = (ins, outs) if is_train else None
        return outs

    def forward(self, is_train: bool, req: Sequence[str], in_data: Sequence[NDArray], out_data: Sequence[NDArray],
                aux: Sequence[NDArray]) -> None:
        """Compute the outputs and store them in ``out_data`` as ``req`` says."""
        for dst, request, src in zip(out_data, req, self._run(in_data, aux, bool(is_train))):
            write(dst, request, src)

    def backward(self, req: Sequence[str], out_grad: Sequence[NDArray], in_data: Sequence[NDArray],
                 out_data: Sequence[NDArray], in_grad: Sequence[NDArray], aux: Sequence[NDArray]) -> None:
        """Compute the gradients of the inputs and store them in ``in_grad`` as ``req`` says.

        These are the gradients of the last training forward. Without one, it is run first, on copies of the states.
        """
        if self._recorded is None or any(old._data is not new._data for old, new in zip(self._recorded[0], in_data)):
            self._run(in_data, [state.copy() for state in aux], True)
        ins, outs = self._recorded  # type: ignore[misc]
        head_grads = [*out_grad, *[None] * (len(outs) - len(out_grad))]
        live = [i for i, out in enumerate(outs[:self.op.signature.visible(self.attrs)])
                if out._entry is not None and is_floating(out._data.dtype)]
        if live:
            backward_pass.backward([outs[i] for i in live], [head_grads[i] for i in live], retain_graph=True)
        for dst, request, array in zip(in_grad, req, ins):
            write(dst, request, 0 if array.grad is None else array.grad)

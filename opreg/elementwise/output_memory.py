"""The memory of outputs while the registers of an expression are computed, for ufuncs and for texts of loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

__all__ = ["OutputMemory"]


class OutputMemory:
    """Outputs that registers are computed into: a register is the result of an output, or uses the memory of another
    one until the result of that is computed.

    Parameters
    ----------
    results : sequence of int or float
        The register of each output, or a number.
    arity : int
        The number of inputs, which are the first registers.
    last : mapping of int to int
        For each register that is read, the position of the last instruction that reads it.
    shared : sequence of sequence of int
        For each output, the inputs that share its memory.

    Attributes
    ----------
    lent : dict of int to int
        The register that uses the memory of an output now.
    """

    def __init__(self, results: Sequence[int | float], arity: int, last: Mapping[int, int],
                 shared: Sequence[Sequence[int]]):
        self._results, self._arity, self._last = results, arity, last
        self._opens = [max([last.get(i, -1) for i in inputs], default=-1) for inputs in shared]
        self.lent: dict[int, int] = {}

    def _is_open(self, output: int, position: int) -> bool:
        """Whether an output may be written by an instruction: all inputs in its memory have been read."""
        return output not in self.lent and self._opens[output] <= position

    def own(self, register: int, position: int) -> int | None:
        """The number of the first output that has the register as its result; None if its memory may not be written."""
        output = next((j for j, result in enumerate(self._results) if isinstance(result, int) and result == register),
                      None)
        return output if output is not None and self._is_open(output, position) else None

    def borrow(self, register: int, position: int, fits: Callable[[int], bool]) -> int | None:
        """An output that fits whose memory a register may use until the output's own result is computed, or None;
        preferably one whose result is computed where the register is last read. None for a register that is never
        read."""
        last = self._last.get(register)
        if last is None:
            return None
        finals = [(final - self._arity, j) for j, final in enumerate(self._results)
                  if isinstance(final, int) and register < final]
        lenders = [(last != final, j) for final, j in finals
                   if last <= final and self._is_open(j, position) and fits(j)]
        if not lenders:
            return None
        output = min(lenders)[1]
        self.lent[output] = register
        return output

    def give_back(self, register: int) -> bool:
        """End the use of an output by a register; whether it used one."""
        outputs = [j for j, borrower in self.lent.items() if borrower == register]
        for output in outputs:
            del self.lent[output]
        return bool(outputs)

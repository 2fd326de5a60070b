"""The texts that the printers of numba and CUDA make: ``printed_texts.txt`` has a sample of each.

``python -m tests.elementwise.test_printed_texts`` writes the file anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opreg.backends.cuda import columns, rows
from opreg.backends.cuda import elementwise as cuda_elementwise
from opreg.backends.cuda import updates as cuda_updates
from opreg.backends.cuda.layout import Layout, Operand, Reach
from opreg.backends.numba import elementwise, loops, updates
from opreg.elementwise.expression import Term, compiled, exp, trace
from opreg.elementwise.rows import RowExpression, RowLayout, row_max, row_sum, trace_rows

FILE = Path(__file__).parent / "printed_texts.txt"
FLOAT = np.dtype(np.float32)
NAMES = ("numba, element-wise", "numba, rows", "numba, updates", "CUDA, element-wise", "CUDA, rows", "CUDA, columns",
         "CUDA, updates")


def printed() -> dict[str, str]:
    """The text of each printer."""
    swish = trace(lambda x: x / (1.0 + exp(-x)), 1)
    centred = trace_rows(lambda x: x - row_max(x), (RowLayout.ELEMENT,))
    totals = RowExpression(trace_rows(row_sum, (RowLayout.ELEMENT,)).expression, [RowLayout.ELEMENT], RowLayout.COLUMN)
    weight, grad, state, rate = [Term(None, (i,)) for i in range(4)]
    moved = state * 0.9 - grad * rate
    momentum = compiled([weight, grad, state, rate], weight + moved, moved)
    flat = [Operand(FLOAT, Reach.FLAT, written, False) for written in (False, True)]
    of_updates, of_rows = updates._text(momentum, 3, False), loops.program(centred)
    assert of_updates is not None and not isinstance(of_rows, str)
    return dict(zip(NAMES, (
        elementwise._source(swish, elementwise.Layout((0,), (1,), (True, True), 1))[0],
        of_rows[0], of_updates[0],
        cuda_elementwise.source(swish, Layout((0,), (1,), tuple(flat), 1, 4, False)),
        rows.rows_source(centred, rows.Shape((FLOAT,), (FLOAT,), 32, 4, 1, False, False, "float", ())),
        columns.columns_source(totals, (FLOAT,), (FLOAT,), columns.Tile(4, 32), 8, False),
        cuda_updates.source(momentum, 3, False, FLOAT, 4))))


def written() -> str:
    """All samples, each below the name of its printer."""
    return "\n".join(f"==== {name}\n{text.strip()}\n" for name, text in printed().items())


@pytest.mark.parametrize("name", NAMES)
def test_printed_text_of_each_loop(name: str) -> None:
    samples = dict(part.split("\n", 1) for part in FILE.read_text().split("==== ")[1:])
    assert printed()[name].strip() == samples[name].strip()


if __name__ == "__main__":
    FILE.write_text(written())

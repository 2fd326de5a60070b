"""The texts that the printers of numba and CUDA make: a sample of each, of loops in ``printed_texts.txt``, of CUDA
kernels that are written for an operator in ``kernel_texts.txt``.

A printer is a function of a module in ``opreg/backends/cuda/`` whose name ends with ``source``, or one of numba.
``python -m tests.elementwise.test_printed_texts`` writes both files anew.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import opreg.backends.cuda
from opreg.backends.cuda import columns, rows
from opreg.backends.cuda import elementwise as cuda_elementwise
from opreg.backends.cuda.layout import Layout, Operand, Reach
from opreg.backends.cuda.operators import attention, dropout, greedy, lookups, pooling, recurrent
from opreg.backends.cuda.operators import updates as cuda_updates
from opreg.backends.numba import elementwise, loops
from opreg.backends.numba.operators import updates
from opreg.elementwise.expression import Term, compiled, exp, trace
from opreg.elementwise.rows import RowExpression, RowLayout, row_max, row_sum, trace_rows

LOOPS, KERNELS = [Path(__file__).parent / f"{name}_texts.txt" for name in ("printed", "kernel")]
FLOAT, INDEX = np.dtype(np.float32), np.dtype(np.int32)
#: Printers of a few constants before a file of CUDA C++, which needs no sample.
OF_FILES = {attention.source}


def of_kernels() -> dict[str, str]:
    """The text of each CUDA kernel that is written for an operator."""
    window = pooling.Shape(FLOAT, "max", 1, (2,), (2,), (0,), (0,), 1, False)
    arguments: dict[Callable[..., str], tuple[object, ...]] = {
        dropout.source: (FLOAT, True, True, False, 1, False),
        greedy.compare_source: (FLOAT, None, "corner", 0, False), greedy.search_source: (FLOAT,),
        greedy.match_source: (FLOAT,),
        lookups.read_source: (FLOAT, INDEX, "clip", 1, 4), lookups.sum_source: (FLOAT, INDEX, "clip", 1, 1),
        lookups.keys_source: (INDEX, "clip", 2), lookups.stretch_source: (FLOAT, 1, 32),
        lookups.run_source: (FLOAT, 1, 32), lookups.picked_source: (FLOAT, INDEX, "clip"),
        lookups.put_source: (FLOAT, INDEX, "none", False),
        pooling.source: (window,), pooling.gather_source: (window,),
        recurrent.forward_source: ("rnn_tanh", FLOAT), recurrent.backward_source: ("rnn_tanh", FLOAT)}
    return {name_of(printer): printer(*given) for printer, given in arguments.items()}


def of_loops() -> dict[str, str]:
    """The text of each printer of loops."""
    swish = trace(lambda x: x / (1.0 + exp(-x)), 1)
    centred = trace_rows(lambda x: x - row_max(x), (RowLayout.ELEMENT,))
    totals = RowExpression(trace_rows(row_sum, (RowLayout.ELEMENT,)).expression, [RowLayout.ELEMENT], RowLayout.COLUMN)
    weight, grad, state, rate = [Term(None, (i,)) for i in range(4)]
    moved = state * 0.9 - grad * rate
    momentum = compiled([weight, grad, state, rate], weight + moved, moved)
    flat = [Operand(FLOAT, Reach.FLAT, written, False) for written in (False, True)]
    of_updates, of_rows = updates._text(momentum, 3, False), loops.program(centred)
    assert of_updates is not None and not isinstance(of_rows, str)
    shape = rows.Shape((FLOAT,), (FLOAT,), 32, 4, 1, False, False, "float", ())
    texts: dict[Callable[..., str], str] = {
        cuda_elementwise.source: cuda_elementwise.source(swish, Layout((0,), (1,), tuple(flat), 1, 4, False)),
        rows.rows_source: rows.rows_source(centred, shape),
        columns.columns_source: columns.columns_source(totals, (FLOAT,), (FLOAT,), columns.Tile(4, 32), 8, False),
        cuda_updates.source: cuda_updates.source(momentum, 3, False, FLOAT, 4)}
    return {"numba, element-wise": elementwise._source(swish, elementwise.Layout((0,), (1,), (True, True), 1))[0],
            "numba, rows": of_rows[0], "numba, updates": of_updates[0],
            **{name_of(printer): text for printer, text in texts.items()}}


def name_of(printer: Callable[..., str]) -> str:
    """The module and function of a printer."""
    return f"CUDA, {printer.__module__.removeprefix('opreg.backends.cuda.')}.{printer.__name__}"


def printers() -> list[Callable[..., str]]:
    """All public functions of the CUDA back end that make the text of a kernel."""
    package = opreg.backends.cuda
    modules = [importlib.import_module(each.name)
               for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [vars(module)[name] for module in modules for name in getattr(module, "__all__", ())
            if name.endswith("source")]


def samples(file: Path) -> dict[str, str]:
    """The texts in a file of samples, by the name of their printer."""
    return dict(part.split("\n", 1) for part in file.read_text().split("==== ")[1:])


@pytest.mark.parametrize(("file", "printed"), [(LOOPS, of_loops), (KERNELS, of_kernels)], ids=["loops", "kernels"])
def test_generated_kernels_have_the_stored_texts(file: Path, printed: Callable[[], dict[str, str]]) -> None:
    assert {name: text.strip() for name, text in printed().items()} == {
        name: text.strip() for name, text in samples(file).items()}


def test_each_printer_has_a_sample() -> None:
    named = {**samples(LOOPS), **samples(KERNELS)}
    assert [name for name in map(name_of, printers()) if name not in named] == list(map(name_of, OF_FILES))


if __name__ == "__main__":
    for path, found in ((LOOPS, of_loops()), (KERNELS, of_kernels())):
        path.write_text("\n".join(f"==== {name}\n{text.strip()}\n" for name, text in found.items()))

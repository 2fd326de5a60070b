"""Arguments and effects of hooks, asked of MindSpore or of opreg, which have the same names.

The answers of MindSpore 2.10 are kept in ``mindspore_hooks.json``. Where it is installed, this file writes them:

    python tests/recorded/mindspore_hooks.py tests/recorded/mindspore_hooks.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CASES", "asked"]

#: Results of a hook for given gradients, inputs or outputs, which are always a tuple.
RETURNS: dict[str, Callable[[Any, tuple], Any]] = {
    "None": lambda ms, given: None,
    "the same": lambda ms, given: given,
    "a tuple": lambda ms, given: tuple(None if each is None else each * 10 for each in given),
    "a tensor": lambda ms, given: given[0] * 10,
    "a list": lambda ms, given: [each * 10 for each in given if each is not None],
    "another shape": lambda ms, given: tuple(ms.Tensor([1.0, 2.0, 3.0]) for _ in given),
    "a shape that broadcasts": lambda ms, given: tuple(ms.Tensor([7.0]) for _ in given),
    "another dtype": lambda ms, given: tuple(None if each is None else each.astype(ms.float16) for each in given),
    "one more": lambda ms, given: (*given, ms.Tensor([1.0, 1.0])),
    "none": lambda ms, given: (),
    "a number": lambda ms, given: 3.0,
    "Nones": lambda ms, given: (None,) * len(given),
    "arrays": lambda ms, given: (np.ones(2, np.float32),) * len(given),
    "text": lambda ms, given: "abc",
}
#: Results of a hook for a single gradient.
SINGLE = {name: RETURNS[name] for name in ("None", "the same", "a tensor", "a list", "a number", "text")} | {
    "a tuple": lambda ms, given: (given[0] * 10,),
    "another shape": lambda ms, given: ms.Tensor([1.0, 2.0, 3.0]),
    "another dtype": lambda ms, given: given[0].astype(ms.float16),
}
_CELLS = ("one input", "two inputs", "two outputs", "one of two outputs", "a weight", "bprop")
_ON_CELLS = ("forward_pre", "forward", "backward_pre", "backward")
_ON_TENSORS = ("a result", "an input", "a Parameter")
#: Cases in which opreg differs on purpose, as docs/mindspore.md says: the kind of hook, its place, and its result.
_OTHERWISE = (
    "forward/bprop/*",  # they run
    "forward*/*/text", "forward_pre/bprop/a list",  # refused
    "tensor/*/another *",  # refused
    "forward/*/none",  # an output without tensors has a gradient of zeros
    "forward_pre/a weight/arrays",  # an array times a Parameter has a gradient
    "forward_pre/a weight/a list",
    "forward/one of two outputs/a tensor",  # the Cell's reader subscripts it, which fails there in a gradient
)
#: Cases: the kind of a hook, the Cell that has it, and the result that the hook returns, or the other hooks there.
CASES = [*((kind, cell, returns) for kind in _ON_CELLS for cell in _CELLS for returns in RETURNS),
         *(("tensor", where, returns) for where in _ON_TENSORS for returns in SINGLE),
         *(("two of each", first, second) for first in _ON_CELLS for second in _ON_CELLS),
         *((kind, "outermost", "None") for kind in _ON_CELLS), ("backward", "an input without gradient", "None"),
         ("backward", "a number among inputs", "None"), ("backward", "keywords", "None")]
CASES = [case for case in CASES if not any(fnmatchcase("/".join(case), pattern) for pattern in _OTHERWISE)]


def _shown(value: Any) -> Any:
    """Tensors in a nested value, as lists."""
    if isinstance(value, (tuple, list)):
        return [_shown(each) for each in value]
    return value.asnumpy().tolist() if hasattr(value, "asnumpy") else value


class _Programs:
    """Cells with hooks that record their arguments."""

    def __init__(self, ms: Any) -> None:
        self.ms, self.called = ms, []
        self.x, self.y = ms.Tensor([1.0, 2.0]), ms.Tensor([5.0, 6.0])

    def cell(self, name: str) -> Any:
        Cell, Parameter, Tensor = self.ms.nn.Cell, self.ms.Parameter, self.ms.Tensor

        class Made(Cell):
            def __init__(self) -> None:
                super().__init__()
                if name == "a weight":
                    self.w = Parameter(Tensor([3.0, 4.0]), name="w")

            def construct(self, x: Any, y: Any = None) -> Any:
                if name == "a weight":
                    return x * self.w
                return (x * 2, x * 3) if "outputs" in name else x * 2 if y is None else x * y

        class Own(Cell):
            def construct(self, x: Any) -> Any:
                return x * 2

            def bprop(self, x: Any, out: Any, dout: Any) -> Any:
                return (dout * 5,)

        return Own() if name == "bprop" else Made()

    def within(self, construct: Callable[..., Any], *cells: Any) -> Any:
        """A Cell that computes a function, with other Cells inside."""

        class Outer(self.ms.nn.Cell):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                for i, cell in enumerate(cells):
                    setattr(self, f"inner{i}", cell)

            def construct(self, *inputs: Any) -> Any:
                return construct(*inputs)

        return Outer()

    def hook(self, cell: Any, kind: str, returned: Callable[[tuple], Any]) -> None:
        """A hook that records its arguments, and returns a function of them."""
        def note(which: Any, *given: Any) -> Any:
            assert which is cell
            self.called.append([kind, *map(_shown, given)])
            flows = given[-1] if kind == "forward" else given[0]
            return returned(flows if isinstance(flows, tuple) else (flows,))

        getattr(cell, f"register_{kind}_hook")(note)

    def on_a_cell(self, kind: str, name: str, returns: str) -> tuple[Any, list[Any], list[Any]]:
        cell = self.cell(name)
        self.hook(cell, kind, lambda given: RETURNS[returns](self.ms, given))
        if name == "outermost":
            return cell, [self.x], []
        if name == "an input without gradient":
            weighted, constant = self.cell("a weight"), self.y
            self.hook(weighted, kind, lambda given: None)
            return self.within(lambda x: weighted(constant) * x, weighted), [self.x], [weighted.w]
        if name == "a number among inputs":
            return self.within(lambda x: cell(x, 3.0), cell), [self.x], []
        if name == "keywords":
            return self.within(lambda x, y: cell(x, y=y), cell), [self.x, self.y], []
        if name == "one of two outputs":
            return self.within(lambda x: cell(x)[0] * 4, cell), [self.x], []
        inputs = [self.x, self.y] if name == "two inputs" else [self.x]
        return self.within(cell, cell), inputs, [cell.w] if name == "a weight" else []

    def on_a_tensor(self, where: str, returns: str) -> tuple[Any, list[Any], list[Any]]:
        def note(g: Any) -> Any:
            self.called.append(_shown(g))
            return SINGLE[returns](self.ms, (g,))

        if where == "a Parameter":
            cell = self.cell("a weight")
            cell.w.register_hook(note)
            return self.within(cell, cell), [self.x], [cell.w]

        def construct(x: Any) -> Any:
            y = x * 2
            (x if where == "an input" else y).register_hook(note)
            return x * 3 if where == "an input" else y * 3

        return self.within(construct), [self.x], []

    def two_of_each(self, first: str, second: str) -> tuple[Any, list[Any], list[Any]]:
        cell = self.cell("one input")
        for factor, kind in enumerate((first, second, first, second), 2):
            self.hook(cell, kind, lambda given, factor=factor: tuple(each * factor for each in given))
        return self.within(cell, cell), [self.x], []


def asked(ms: Any, case: tuple[str, str, str], run: Callable[[Any], Any] = lambda gradient: gradient) -> dict[str, Any]:
    """Arguments of hooks, and the gradients or the kinds of the error, by a module with MindSpore's names."""
    kind, where, what = case
    programs = _Programs(ms)
    answer: dict[str, Any] = {"called": programs.called}
    try:
        net, inputs, weights = (programs.on_a_tensor(where, what) if kind == "tensor" else
                                programs.two_of_each(where, what) if kind == "two of each" else
                                programs.on_a_cell(*case))
        gradient = ms.grad(net, tuple(range(len(inputs))), weights or None)
        answer["gradient"] = _shown(run(gradient)(*inputs))
    except Exception as error:
        answer["error"] = [each.__name__ for each in type(error).__mro__[:-2]]
    return answer


def _answers(ms: Any) -> Iterator[str]:
    for case in CASES:
        answer = asked(ms, case)
        if "error" in answer:
            answer["error"] = answer["error"][0]
        yield json.dumps([case, answer])


if __name__ == "__main__":
    import mindspore

    about = f"What MindSpore {mindspore.__version__} answers; see mindspore_hooks.py for what it is asked."
    lines = ",\n".join(_answers(mindspore))
    Path(sys.argv[1]).write_text(f'{{"about": {json.dumps(about)},\n"cases": [\n{lines}\n]}}\n')

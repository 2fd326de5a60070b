"""The table that ``Block.summary`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opreg.ndarray.ndarray import NDArray

from .errors import BlockError

if TYPE_CHECKING:
    from .base_block import Block
    from .base_parameter import Parameter

__all__ = ["print_summary"]

_LINE = "{:>20}  {:>42} {:>15}"


def _rule(mark: str) -> str:
    return mark * len(_LINE.format("", "", ""))


def _shapes(values: Any) -> Any:
    if isinstance(values, (list, tuple)):
        return [_shapes(value) for value in values]
    return values.shape if isinstance(values, NDArray) else values


def _shapes_text(values: Any) -> str:
    shapes = _shapes(values)
    return str(shapes)[1:-1] if isinstance(shapes, list) else str(shapes)


def print_summary(root: Block, inputs: Sequence[Any]) -> None:
    """Run a block once, and print the output and number of parameters of each layer."""
    rows: list[tuple[str, str, int]] = [("Input", _shapes_text(tuple(inputs)), 0)]
    counted: set[Parameter] = set()
    counts = {"trainable": 0, "shared": 0}
    handles = []

    def note(block: Block, _: Any, outputs: Any) -> None:
        total = 0
        for parameter in block.params.values():
            size = parameter.data().size
            total += size
            counts["trainable"] += 0 if parameter.grad_req == "null" else size
            counts["shared"] += size if parameter in counted else 0
            counted.add(parameter)
        rows.append((f"{type(block).__name__}-{len(rows)}", _shapes_text(outputs), total))

    def watch(block: Block) -> None:
        if getattr(block, "_active", False):
            raise BlockError(f'"{block.name}" must not be hybridized to print summary.')
        if not getattr(block, "is_container", False):
            handles.append(block.register_forward_hook(note))

    try:
        root.apply(watch)
        root(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    total = sum(count for _, _, count in rows)
    print(_rule("-"), _LINE.format("Layer (type)", "Output Shape", "Param #"), _rule("="),
          *[_LINE.format(*row) for row in rows], _rule("="),
          "Parameters in forward computation graph, duplicate included",
          f"   Total params: {total}",
          f"   Trainable params: {counts['trainable']}",
          f"   Non-trainable params: {total - counts['trainable']}",
          f"Shared params in forward computation graph: {counts['shared']}",
          f"Unique parameters in model: {total - counts['shared']}", _rule("-"), sep="\n")

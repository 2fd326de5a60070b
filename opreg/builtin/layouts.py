"""Layouts: the attributes that move an operator's channels from the second axis to the last, as rules for
``Op.layout``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..core.op import Op
from ..core.spec import Shape

__all__ = ["by_axis", "by_layout"]

#: The layouts by how many axes there are.
FIRST, LAST = {3: "NCW", 4: "NCHW", 5: "NCDHW"}, {3: "NWC", 4: "NHWC", 5: "NDHWC"}

Moved: TypeAlias = tuple[dict[str, Any], Sequence[int], Sequence[int]]


def by_layout(op: Op, ins: Sequence[int], outs: Sequence[int] = (0,), **changed: Any) -> None:
    """Declare that the attribute ``layout`` names the axes of inputs and outputs; ``changed`` attributes change with
    it."""

    @op.layout
    def rule(shapes: Sequence[Shape], *, layout: str | None) -> Moved | str:
        rank = len(shapes[0])
        if layout not in (None, FIRST[rank]):
            return f"its layout is {layout}"
        return {"layout": LAST[rank], **changed}, ins, outs


def by_axis(op: Op, ins: Sequence[int] | None = None, name: str = "axis", outs: Sequence[int] = (0,)) -> None:
    """Declare that an attribute is the axis of the channels, for some inputs or all."""

    @op.layout
    def rule(shapes: Sequence[Shape], **attrs: Any) -> Moved | str:
        rank = len(shapes[0])
        if attrs[name] % rank != 1:
            return "the channels are not along its axis"
        return {name: rank - 1}, range(len(shapes)) if ins is None else ins, outs

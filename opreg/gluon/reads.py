"""Reads of blocks: what ``hybrid_forward`` reads from outside while it is traced, to be compared before each call."""

from __future__ import annotations

from types import FrameType
from typing import Any

from opreg.ndarray.autograd import is_recording, is_training
from opreg.util import is_np_shape

from ..cells.graph_reads import GraphObserver, tell
from ..errors import is_ours
from .base_block import Block

__all__ = ["FOUND", "Seen", "observed"]

#: Says of a block, in a warning, how it is used.
FOUND = "is hybridized with what it found while it was traced"

#: Functions that answer by the mode of the caller, by the identity of their code.
_MODES = {id(function.__code__): function for function in (is_recording, is_training, is_np_shape)}
#: Attributes of blocks that opreg's own code reads for what they compute.
_FORWARDS = frozenset({"forward", "hybrid_forward"})


class Seen:
    """Everything that a trace of a block has met.

    Attributes
    ----------
    changed : function or None
        Says what has changed of what was read; None where nothing was.
    blocks : list of Block
        Those that took part and stand nowhere below the block.
    """

    def __init__(self, block: Block, observer: _Observer):
        below: set[int] = set()

        def visit(block: Block) -> None:
            below.add(id(block))
            for child in block._children.values():
                visit(child)

        visit(block)
        self.changed = observer.check()
        self.blocks = [each for key, each in observer.blocks.items() if key not in below]


class _Observer(GraphObserver):
    """An observer of the user's code alone: opreg's own reads of blocks are counted by the blocks' versions."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[int, Block] = {}

    def attribute(self, owner: Any, name: str, value: Any, frame: FrameType) -> None:
        """An attribute of an object is read in a frame."""
        if name in _FORWARDS or not (issubclass(type(owner), Block) and is_ours(frame.f_code)):
            super().attribute(owner, name, value, frame)

    def meet(self, value: Any) -> None:
        """A value takes part."""
        if issubclass(type(value), Block):
            self.blocks[id(value)] = value
        super().meet(value)

    def _answers(self, frame: FrameType, answer: Any) -> None:
        asked = _MODES.get(id(frame.f_code))
        if asked is None:
            super()._answers(frame, answer)
        else:
            self.comparisons.path(asked, "{}()", answer, f"{asked.__name__}()")


def observed(block: Any, *args: Any, **kwargs: Any) -> tuple[Any, Seen]:
    """The result of a block's ``hybrid_forward``, and its reads. A warning names reads that cannot be compared."""
    observer = _Observer()
    with observer:
        observer.meet(block)
        out = block.hybrid_forward(*args, **kwargs)
    tell(f"{block.name} {FOUND}", observer)
    return out, Seen(block, observer)

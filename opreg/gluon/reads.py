"""Reads of blocks: values that ``hybrid_forward`` reads from outside while it is traced, compared before each call."""

from __future__ import annotations

from types import FrameType
from typing import Any

from opreg import symbol
from opreg.ndarray.autograd import is_recording, is_training
from opreg.ndarray.ndarray import NDArray
from opreg.util import is_np_shape

from ..cells.class_hooks import attributes_of
from ..cells.graph_reads import GraphObserver, warn_of_reads
from ..cells.user_code import is_user_module
from ..core.bytecode_names import loads
from ..core.held_values import ABSENT, PLAIN
from ..errors import is_ours
from .base_block import Block

__all__ = ["FOUND", "BlockReads", "observed"]

#: Says of a block, in a warning, how it is used.
FOUND = "uses the values that it read while it was traced"

#: Functions whose result depends on the caller's mode, by the identity of their code.
_MODES = {id(function.__code__): function for function in (is_recording, is_training, is_np_shape)}
#: Attributes of blocks that this library's own code reads, and whose changes no version counts.
_ATTRIBUTES = frozenset({"forward", "hybrid_forward", "_params"})
#: Methods by which blocks are called.
_CALLED = ("__call__", "forward", "hybrid_forward")


def _with_children(block: Block) -> list[Block]:
    """A block, and all blocks inside of it."""
    return [block, *(each for child in block._children.values() for each in _with_children(child))]


class BlockReads:
    """The values and blocks that a trace of a block has used.

    Attributes
    ----------
    changed : function or None
        Returns a text about a read value that has changed; None if no value was read.
    blocks : list of Block
        Blocks that the trace used and that are not inside of the block.
    """

    def __init__(self, block: Block, observer: _Observer):
        blocks = _with_children(block)
        for cls in dict.fromkeys(map(type, (*blocks, *observer.blocks.values()))):
            observer.uses(cls)
        self.changed = observer.check()
        below = set(map(id, blocks))
        self.blocks = [block for key, block in observer.blocks.items() if key not in below]


class _Observer(GraphObserver):
    """An observer of the user's code only: reads of blocks by this library are counted by the blocks' versions."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[int, Block] = {}

    def attribute(self, owner: Any, name: str, value: Any, frame: FrameType) -> None:
        """Note that an attribute of an object is read in a frame."""
        if name in _ATTRIBUTES or not (issubclass(type(owner), Block) and is_ours(frame.f_code)):
            super().attribute(owner, name, value, frame)
        if issubclass(type(owner), Block) and not is_user_module(type(owner).__module__) and (
                name in _CALLED or (frame.f_code.co_name in _CALLED and isinstance(value, PLAIN))):
            own = attributes_of(owner)  # a setting of a layer of this library, or a method that it has itself
            self.comparisons.entry(own, name, own.get(name, ABSENT), f"{owner.name}.{name}")

    def note_use(self, value: Any) -> None:
        """Note a value that the traced code uses."""
        if issubclass(type(value), Block):
            self.blocks[id(value)] = value
        super().note_use(value)

    def uses(self, cls: type[Block]) -> None:
        """Record that the trace calls blocks of a class: the methods of the class, which a program may replace, and
        for layers the operator functions in these methods."""
        for name in _CALLED:
            self.comparisons.path(cls, f"{{}}.{name}", getattr(cls, name), f"{cls.__name__}.{name}")
        code = getattr(getattr(cls, "hybrid_forward", None), "__code__", None)
        for name in loads(code).names if code is not None and is_ours(code) else ():
            self._read_attribute(symbol, name)

    def _note_answer(self, frame: FrameType, answer: Any) -> None:
        mode = _MODES.get(id(frame.f_code))
        if mode is not None:
            self.comparisons.path(mode, "{}()", answer, f"{mode.__name__}()")
            return
        super()._note_answer(frame, answer)
        block: Any = frame.f_locals.get("self")
        # computed while tracing, from these values of the parameters
        if issubclass(type(block), Block) and issubclass(type(answer), NDArray):
            for parameter in block.collect_params().values():
                label = f"the values of {parameter.name}"
                self.comparisons.path(parameter, "{}._data", parameter._data, label)
                self.read(parameter._data, label)


def observed(block: Any, *args: Any, **kwargs: Any) -> tuple[Any, BlockReads]:
    """The result of a block's ``hybrid_forward``, and its reads. A warning names reads that cannot be compared."""
    observer = _Observer()
    with observer:
        # compared before this library's code reads methods that the blocks have themselves
        for each in _with_children(block):
            observer.note_use(each)
        out = block.hybrid_forward(*args, **kwargs)
    warn_of_reads(f"{block.name} {FOUND}", observer)
    return out, BlockReads(block, observer)

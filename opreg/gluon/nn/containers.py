"""Containers: blocks that run in a row."""

from __future__ import annotations

from typing import Any

from ...errors import warn
from ..base_block import Block, block_text
from ..hybrid_block import HybridBlock

__all__ = ["Sequential", "HybridSequential"]


class _Chain(Block):
    """A block whose children run in a row."""

    is_container = True

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        for block in blocks:
            self.register_child(block)

    def __repr__(self) -> str:
        return block_text(self, self._children)

    def __getitem__(self, key: Any) -> Any:
        selected = list(self._children.values())[key]
        if not isinstance(selected, list):
            return selected
        chain = type(self)(prefix=self._prefix)
        with chain.name_scope():
            chain.add(*selected)
        return chain

    def __len__(self) -> int:
        return len(self._children)

    def _run_children(self, x: Any, args: Any) -> Any:
        """The output of the last child."""
        for block in self._children.values():
            x = block(x, *args)
            args = ()
        return x


class Sequential(_Chain):
    """Blocks that run in a row.

    Examples
    --------
    >>> from opreg import nd
    >>> from opreg.gluon import nn
    >>> net = Sequential()
    >>> net.add(nn.Dense(4, in_units=2), nn.Dense(3, in_units=4))
    >>> net.initialize()
    >>> net(nd.zeros((5, 2))).shape, len(net)
    ((5, 3), 2)
    """

    def forward(self, x: Any, *args: Any) -> Any:
        """Run the blocks."""
        return self._run_children(x, args)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Let each block run as a plan; ``HybridSequential`` makes one plan of all."""
        if self._children and all(isinstance(block, HybridBlock) for block in self._children.values()):
            warn(f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. Consider using "
                 "HybridSequential for the best performance.")
        super().hybridize(active, **kwargs)


class HybridSequential(_Chain, HybridBlock):
    """Hybrid blocks that run in a row; hybridized, they are one plan.

    Examples
    --------
    >>> from opreg import nd
    >>> from opreg.gluon import nn
    >>> net = HybridSequential()
    >>> net.add(nn.Dense(4), nn.Dense(3))
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(nd.zeros((5, 2))).shape
    (5, 3)
    """

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """See ``HybridBlock``."""
        return self._run_children(x, args)

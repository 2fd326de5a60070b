"""What a training script needs around an executor; each part is a module of its own and loads when it is
asked for. So do the names that MindSpore has here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..aliases import TRAINING, inner

if not TYPE_CHECKING:
    __all__ = [*TRAINING]  # noqa: PLE0604  they are text
    __getattr__ = inner(__name__)


def __dir__() -> list[str]:
    return sorted(TRAINING)

"""Parts of a training script around an executor; each part is a module that is imported at its first use. MindSpore's
names of this package are found here, too."""

from __future__ import annotations

from ..aliases import TRAINING, inner

__all__ = [*TRAINING]  # noqa: PLE0604  they are text

__getattr__ = inner(__name__)


def __dir__() -> list[str]:
    return sorted(TRAINING)

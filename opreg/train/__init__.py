"""What a training script needs around an executor; each part is a module of its own and loads when it is
asked for."""

from __future__ import annotations

__all__: list[str] = []

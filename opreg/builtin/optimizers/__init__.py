"""Updates of weights."""

__all__: list[str] = []

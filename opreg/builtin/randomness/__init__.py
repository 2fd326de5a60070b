"""Random values and their densities."""

__all__: list[str] = []

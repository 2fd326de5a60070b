"""Random numbers and their densities."""

__all__: list[str] = []

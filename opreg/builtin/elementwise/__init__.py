"""Element-wise operators."""

__all__: list[str] = []

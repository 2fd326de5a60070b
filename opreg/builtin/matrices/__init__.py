"""Products of matrices, and linear algebra."""

__all__: list[str] = []

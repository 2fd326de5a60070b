"""Operators in other libraries: what ``to_torch`` and ``to_jax`` make of them."""

__all__: list[str] = []

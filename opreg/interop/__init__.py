"""Operators in other libraries, and theirs here: what ``to_torch``, ``to_jax`` and ``check`` do with both."""

__all__: list[str] = []

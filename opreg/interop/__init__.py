"""Interoperation with other libraries: ``to_torch`` and ``to_jax`` convert operators."""

__all__: list[str] = []

"""Interoperation with other libraries: ``to_torch`` and ``to_jax`` export operators, ``check`` checks theirs."""

__all__: list[str] = []

"""Interoperation with other libraries: ``to_torch`` and ``to_jax`` convert operators."""

"""Names of MindSpore's ``common._stub_tensor`` that programs use; its tensors stood for results that were to come."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["StubTensor"]

T = TypeVar("T")


class StubTensor:
    """The class of such tensors: none is of it here."""


def _convert_stub(stub: T) -> T:
    """The thing itself."""
    return stub

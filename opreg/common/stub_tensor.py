"""Names of MindSpore's ``common._stub_tensor`` that programs use; there, stub tensors stand for results still being
computed."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["StubTensor"]

T = TypeVar("T")


class StubTensor:
    """The class of stub tensors; no tensor here is an instance."""


def _convert_stub(stub: T) -> T:
    """The argument, unchanged."""
    return stub

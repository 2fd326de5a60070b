"""The mode of a thread: whether operators are recorded, and whether they run as in training."""

from __future__ import annotations

import threading

__all__ = ["MODE"]


class _Mode(threading.local):
    recording = False
    training = False


#: Read on every eager call: attributes of a thread-local, nothing more.
MODE = _Mode()

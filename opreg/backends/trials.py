"""Choices that no rule makes well: which way is faster is tried on this machine, once, and kept.

A trial takes some milliseconds, when something is bound that needs it. The result is stored in the folder for
compiled code, in a file for this processor, and believed as that is: a later program makes the same choice, and
gets the same bits. ``OPREG_TUNE=0`` tries nothing and reads no file: then every choice is the one that needs no
trial.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from opreg.core import threads
from opreg.core.locks import rlock
from opreg.core.processor import processor

from .numba import cache

__all__ = ["Choice", "allowed", "faster"]

# Seconds that a trial takes, and rounds that it has at most: the least times count, which others on the processor
# cannot make less. Longer rounds are worth some more seconds, since the choice is stored.
_SECONDS, _ROUNDS = 0.005, 7
_MORE_SECONDS, _FEW_ROUNDS = 0.1, 3
# A gain smaller than this is not worth another kernel.
_WORTH = 0.9
# Number of choices that are kept.
_MOST = 4096
_clock = time.perf_counter


class Choice(NamedTuple):
    """Result of a trial: the way that it chose, and its measurements in words."""

    way: str
    reason: str


def allowed() -> bool:
    """Whether anything is tried."""
    return os.environ.get("OPREG_TUNE") != "0"


def faster(question: str, usual: str, other: str, ways: Mapping[str, Callable[[], object]], apart: bool = False
           ) -> Choice:
    """The faster of two ways: ``other`` if it is faster by a tenth, else ``usual``. A question is tried once.

    Parameters
    ----------
    question : str
        What is asked, with everything that the answer depends on but for processor and threads.
    usual, other : str
        What the ways are called in a sentence.
    ways : mapping of str to functions without arguments
        Of both. They are called if nobody has asked before.
    apart : bool
        Whether threads of one look out for work beside the other: then all rounds of the usual way come first.
    """
    with _LOCK:
        known = _known()
        found = known.get(question)
        if found is None or found.way not in (usual, other):
            found = known[question] = _tried(usual, other, ways, apart)
            while len(known) > _MOST:
                del known[next(iter(known))]
            cache.store(_name(), json.dumps(known).encode())
        return found


_LOCK = rlock()


def _tried(usual: str, other: str, ways: Mapping[str, Callable[[], object]], apart: bool) -> Choice:
    least = dict.fromkeys((usual, other), float("inf"))
    for names in [(usual,), (other,)] if apart else [(usual, other)]:
        for name in names:
            ways[name]()
        start = _clock()
        for round_number in range(1, _ROUNDS + 1):
            for name in names:
                begin = _clock()
                ways[name]()
                least[name] = min(least[name], _clock() - begin)
            if _clock() > start + (_SECONDS if round_number >= _FEW_ROUNDS else _MORE_SECONDS):
                break
    way = other if least[other] < _WORTH * least[usual] else usual
    return Choice(way, f"{usual} took {least[usual] * 1e6:.0f} µs, {other} {least[other] * 1e6:.0f}")


@functools.cache
def _name() -> str:
    """The name of the file for this processor, with as many threads, and these libraries."""
    key = repr((processor(), threads.count(), np.__version__))
    return f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.choices"


@functools.cache
def _known() -> dict[str, Choice]:
    """Results of earlier trials by question; damaged ones are left out."""
    content = cache.stored(_name())
    try:
        found = json.loads(content or b"{}")
        return {question: Choice(*map(str, choice)) for question, choice in found.items() if len(choice) == 2}
    except (ValueError, TypeError, AttributeError):
        return {}

"""Choices by measurement, where no rule predicts well which of two implementations is faster: each is measured once.

A trial takes some milliseconds at the first bind that needs it. The result is stored in the folder for compiled code,
in a file for this processor, and trusted like the code there: a later program makes the same choice, and gets the same
bits. With ``OPREG_TUNE=0`` nothing is measured and no file is read; then the default implementation is always chosen.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from opreg.core import environment, threads
from opreg.core.locks import rlock
from opreg.core.processor import processor

from .numba import cache

__all__ = ["Choice", "are_allowed", "faster"]

# Seconds and rounds that a trial takes at most. The minimum times are compared, since other programs can only make
# times longer. If rounds are long, a few of them may take more seconds, since the choice is stored.
_SECONDS, _ROUNDS = 0.005, 7
_MORE_SECONDS, _FEW_ROUNDS = 0.1, 3
# The other implementation is chosen if it takes less than this fraction of the time.
_WORTH = 0.9
# The largest number of stored choices.
_MOST = 4096
_clock = time.perf_counter


class Choice(NamedTuple):
    """The result of a trial: the chosen implementation, and the measurements in words."""

    way: str
    reason: str


def are_allowed() -> bool:
    """Whether trials are allowed."""
    return environment.switch("OPREG_TUNE", True)


def faster(question: str, usual: str, alternative: str, ways: Mapping[str, Callable[[], object]], apart: bool = False
           ) -> Choice:
    """The faster of two implementations: ``alternative`` if it is faster by a tenth, else ``usual``. A question is
    measured once.

    Parameters
    ----------
    question : str
        Identifies the choice; names everything that it depends on except processor and threads.
    usual, alternative : str
        The names of the implementations, as used in a sentence.
    ways : mapping of str to functions without arguments
        The functions to measure, by these names; called only if the question has no stored answer.
    apart : bool
        Whether threads of one implementation spin after its call and would slow down the other; if so, all rounds of
        the usual one come first.
    """
    with _LOCK:
        trials_known = _earlier_results()
        choice = trials_known.get(question)
        if choice is None or choice.way not in (usual, alternative):
            choice = trials_known[question] = _try_ways(usual, alternative, ways, apart)
            while len(trials_known) > _MOST:
                del trials_known[next(iter(trials_known))]
            cache.store(_name(), json.dumps(trials_known).encode())
        return choice


_LOCK = rlock()


def _try_ways(usual: str, alternative: str, ways: Mapping[str, Callable[[], object]], apart: bool) -> Choice:
    least = dict.fromkeys((usual, alternative), float("inf"))
    for names in [(usual,), (alternative,)] if apart else [(usual, alternative)]:
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
    way = alternative if least[alternative] < _WORTH * least[usual] else usual
    return Choice(way, f"{usual} took {least[usual] * 1e6:.0f} µs, {alternative} {least[alternative] * 1e6:.0f}")


@functools.cache
def _name() -> str:
    """The name of the file for this processor, this number of threads and this version of NumPy."""
    key = repr((processor(), threads.count(), np.__version__))
    return f"{cache.hash_of(key)}.choices"


@functools.cache
def _earlier_results() -> dict[str, Choice]:
    """The results of earlier trials by question; damaged ones are dropped."""
    content = cache.read_cached(_name())
    try:
        choices = json.loads(content or b"{}")
        return {question: Choice(*map(str, choice)) for question, choice in choices.items() if len(choice) == 2}
    except (ValueError, TypeError, AttributeError):
        return {}

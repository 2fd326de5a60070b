"""Watch: checks of a waiting rank, so that it ends with a reason instead of waiting forever.

A rank that fails notifies the others; one that waits for longer reports its position; one whose program ends reports
that. These notes use the same MPI with a separate communicator, and are read by ranks that have waited for a while, so
normal calls send nothing. A process on this host that died silently is noticed because its process number is gone; a
hung or remote one by a timeout.
"""

from __future__ import annotations

import atexit
import math
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple

from ..core import environment
from ..core.named_errors import name_errors
from ..errors import ArgumentError, RankError

__all__ = ["Watch", "Position", "timeout", "set_timeout", "LIFELINE", "TOGETHER", "APART", "OVER"]

#: The variable with a pipe to which a rank reports three stages: connected, end announced, program finished.
LIFELINE = "OPREG_DISTRIBUTED_LIFELINE"
TOGETHER, APART, OVER = b"+", b"-", b"."

#: Seconds: until a waiting rank reports its position, between two checks of the others, and for which a failed rank
#: waits for the others to report before it ends them; less if the timeout is smaller.
_PATIENCE, _LOOK, _GRACE = 1.0, 0.05, 5.0
#: Seconds of busy waiting before the processor is released, and the longest pause after that.
_SPIN, _PAUSE = 200e-6, 1e-3

_SETTINGS = {"timeout": environment.number("OPREG_DISTRIBUTED_TIMEOUT", 300.0, above=0)}


def timeout() -> float:
    """Seconds that a rank waits for the others: 300, or ``OPREG_DISTRIBUTED_TIMEOUT``."""
    return _SETTINGS["timeout"]


def set_timeout(seconds: float) -> float:
    """Set how long a rank waits for the others; returns the old value.

    Examples
    --------
    >>> before = set_timeout(60)
    >>> set_timeout(before)
    60.0
    """
    if not seconds > 0:
        raise ArgumentError(f"set_timeout: expected seconds, got {seconds!r}")
    before, _SETTINGS["timeout"] = _SETTINGS["timeout"], float(seconds)
    return before


class Position(NamedTuple):
    """Position of a rank in a group: the number of its calls, and the last call. A key, on which the ranks agree,
    distinguishes groups of the same ranks."""

    group: str
    ranks: tuple[int, ...]
    number: int
    call: object  # formatted as text only when needed


class _Note(NamedTuple):
    """Message between ranks: a rank has ``report_failure``, with a reason; or waits (``wait``), or has ``ended``, at a
    position."""

    kind: str
    reason: str
    positions: dict[str, Position]


_SILENT = _Note("", "", {})


class Watch:
    """The notes of all ranks, and the conclusions for a waiting one.

    Parameters
    ----------
    control : mpi4py.MPI.Comm
        A communicator of all ranks, used only here.
    """

    def __init__(self, control: Any):
        self._control, self.rank, self.size = control, control.rank, control.size
        self.places: list[tuple[str, int]] = control.allgather((os.uname().nodename, os.getpid()))
        self._notes: dict[int, _Note] = {}
        self._sending: list[Any] = []
        self.positions: dict[str, Position] = {}  # by group
        self._keys: Counter[str] = Counter()
        self._over, self._process = False, os.getpid()
        self._next_glance = 0.0
        #: Functions that all ranks call together after a regular end, in order of registration.
        self.at_end: list[Callable[[], None]] = []
        _write(TOGETHER)
        self._hook = sys.excepthook
        sys.excepthook = self._excepthook
        atexit.register(self._report_exit)  # before MPI's own exit handler, which would wait forever for a failed rank

    def key(self, name: str, ranks: Sequence[int]) -> str:
        """A key that distinguishes a new group from others, equal on all of its ranks."""
        title = f"{name} {ranks}"
        self._keys[title] += 1
        return f"{title} {self._keys[title]}"

    # ------------------------------------------------------------------------------------------------- waiting

    def wait_until(self, test: Callable[[], bool], position: Position, arrived: Callable[[], bool] | None = None,
                   limit: float | None = None) -> None:
        """Wait until a test succeeds.

        Parameters
        ----------
        test : function
            Makes progress, and returns whether it is complete.
        position : Position
            Position that is reported.
        arrived : function, optional
            Whether all ranks have started; from then on the wait does not sleep.
        limit : float, optional
            Timeout in seconds; ``timeout()`` by default.

        Raises
        ------
        RankError
        """
        start = time.perf_counter()
        patient = start + _SPIN
        while not test():
            now = time.perf_counter()
            if now >= patient:
                break
        else:
            return
        pause, look, reported = _SPIN / 4, start + _LOOK, False
        while not test():
            if arrived is not None and arrived():
                os.sched_yield()
            else:
                time.sleep(pause)
                pause = min(pause * 1.2, _PAUSE)
            now = time.perf_counter()
            if now < look:
                continue
            look = now + _LOOK
            self._read()
            if not reported and now - start > min(_PATIENCE, timeout() / 4):
                reported = True
                self._send_note("wait", str(position.call), position.ranks)
            self._judge(position, now - start, limit)

    def glance(self, position: Position) -> None:
        """Check the others occasionally, for a rank that rarely waits.

        Raises
        ------
        RankError
            When a rank has failed or ended.
        """
        now = time.perf_counter()
        if now >= self._next_glance:
            self._next_glance = now + min(_PATIENCE, timeout() / 4)
            self._read()
            self._judge(position, timeout())

    def _judge(self, position: Position, waited: float, limit: float | None = None) -> None:
        others = [rank for rank in position.ranks if rank != self.rank]
        missing = []
        for rank in others:
            note = self._notes.get(rank, _SILENT)
            other = note.positions.get(position.group)
            if other is None or other.number < position.number:
                missing.append(rank)
            if note.kind == "failed":
                self._refuse([rank], note.reason, position)
            elif note.kind == "ended" and position.group and (other is None or other.number < position.number):
                self._refuse([rank], "its program has ended", position)
            elif other is not None and other.number == position.number and other.call != position.call:
                self._refuse([rank], f"it waits in call {other.number}, {other.call}", position)
            elif note.kind != "ended" and waited > min(_PATIENCE, timeout() / 4) and not self._lives(rank):
                host, process = self.places[rank]
                self._refuse([rank], f"its process, {process} on {host}, is no longer there", position)
        if waited > (timeout() if limit is None else limit):
            last = "; ".join(f"rank {rank} was last seen waiting in {self._notes[rank].reason}"
                             for rank in missing if rank in self._notes)
            self._refuse(missing or others, f"not here after {timeout():g} seconds{f' ({last})' if last else ''}",
                         position)

    def _refuse(self, ranks: Sequence[int], reason: str, position: Position) -> None:
        error = RankError(f"rank {self.rank} cannot go on with call {position.number}, {position.call}: "
                          f"{_ranks_text(ranks)}: {reason}")
        error.rank, error.reason = ranks[0], reason
        raise error

    def _lives(self, rank: int) -> bool:
        """Whether a rank's process exists, as far as this host can tell."""
        host, process = self.places[rank]
        if host != self.places[self.rank][0]:
            return True
        try:
            with open(f"/proc/{process}/stat", "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
        except FileNotFoundError:
            return not os.path.isdir("/proc/self")
        except OSError:
            return True

    # ------------------------------------------------------------------------------------------------- notes

    def _send_note(self, kind: str, reason: str, ranks: Sequence[int]) -> None:
        note = (self.rank, kind, reason, dict(self.positions))
        self._sending = [request for request in self._sending if not request.Test()]
        self._sending += [self._control.isend(note, rank) for rank in ranks if rank != self.rank]

    def _read(self) -> None:
        while (message := self._control.improbe()) is not None:
            rank, *note = message.recv()
            if rank not in self._notes or self._notes[rank].kind != "failed":
                self._notes[rank] = _Note(*note)

    def _report_exit(self) -> None:
        """Report the end of the program, and wait for the others, which may still need notes."""
        if self._over or os.getpid() != self._process:  # a forked child takes no part in this
            return
        self._over = True
        everyone = range(self.size)
        self._send_note("ended", "", everyone)
        goodbye = Position("", tuple(everyone), 0, "the end of the program")
        try:
            # a rank whose memory others may use waits for them without limit
            self.wait_until(self._control.Ibarrier().Test, goodbye, limit=math.inf if self.at_end else None)
        except RankError as error:
            print(f"opreg: {error}", file=sys.stderr, flush=True)
            self._end()
        for each in list(self.at_end):
            each()
        _write(APART)

    def _excepthook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._hook(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        if os.getpid() == self._process:
            self.report_failure("".join(traceback.format_exception_only(kind, error)).strip())

    def report_failure(self, reason: str) -> None:
        """Report to the others why this rank cannot continue, give them time to report, and end all processes."""
        self._over = True
        self._send_note("failed", reason, range(self.size))
        end = time.perf_counter() + min(_GRACE, timeout())
        while time.perf_counter() < end and not all(
                self._notes[rank].kind in ("failed", "ended") if rank in self._notes else not self._lives(rank)
                for rank in range(self.size) if rank != self.rank):
            time.sleep(_PAUSE)
            self._read()
        self._end()

    def _end(self) -> None:
        _write(APART)
        self._control.Abort(1)


def _write(state: bytes) -> None:
    if LIFELINE in os.environ:
        with suppress(OSError):
            os.write(int(os.environ[LIFELINE]), state)


def _ranks_text(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


name_errors(__name__, globals(), __all__)

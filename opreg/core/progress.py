"""Progress: a line that is rewritten while some work goes on.

It is written to the error stream, ten times a second at most, if that is a terminal or the output of a notebook's cell.
``OPREG_PROGRESS=0`` turns it off, and ``OPREG_PROGRESS=1`` turns it on for any error stream; a file or a pipe gets only
the lines that stay. Messages that are logged to the terminal meanwhile appear above the line, as does
the text of ``print_above``. Other text that is printed follows the line, which continues below: ``sys.stdout`` stays as
it is.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self, TextIO, TypeVar

from . import environment

__all__ = ["Line", "counted", "duration", "is_enabled", "is_rewritable", "print_above", "progress_text"]

#: Seconds between two updates of the line, and seconds that ``counted`` waits before it shows a line at all.
_INTERVAL, _PATIENCE = 0.1, 0.5
#: The least ratio of time spent on the work to time spent on finding out what to show of it.
_WORK = 20
_BAR = 20
_clock = time.perf_counter

T = TypeVar("T")


def is_rewritable(stream: object) -> bool:
    """Whether a line can be rewritten on a stream: on a terminal, and in the output of a notebook's cell."""
    if _is_notebook(stream):
        return True
    method = getattr(stream, "isatty", None)
    try:
        return method is not None and bool(method()) and os.environ.get("TERM") != "dumb"
    except ValueError:  # it is closed
        return False


def _is_notebook(stream: object) -> bool:
    return type(stream).__module__.partition(".")[0] == "ipykernel"


def is_enabled(progress: bool | None = None) -> bool:
    """Whether to write a line: by the argument, else by the environment variable, else if a line can be rewritten."""
    return environment.switch("OPREG_PROGRESS", is_rewritable(sys.stderr)) if progress is None else progress


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    Examples
    --------
    >>> duration(7.4), duration(3723)
    ('0:07', '1:02:03')
    """
    minutes, remaining_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remaining_seconds:02}" if hours else f"{minutes}:{remaining_seconds:02}"


def progress_text(done: int, total: int | None, *details: str, seconds: float = 0.0) -> str:
    """The progress of some work as text: a bar and the remaining time if the total is known, then details.

    A narrow terminal cuts the last of them off.

    Examples
    --------
    >>> progress_text(30, 40, "3000 samples/s", seconds=60.0)
    '[###############-----] 30/40  0:20 left  3000 samples/s'
    >>> progress_text(30, None, "3000 samples/s")
    '30  3000 samples/s'
    """
    if not total:
        return "  ".join([str(done), *details])
    done = min(done, total)
    full = _BAR * done // total
    remaining = [f"{duration(seconds * (total - done) / done)} left"] if done else []
    return "  ".join([f"[{'#' * full}{'-' * (_BAR - full)}] {done}/{total}", *remaining, *details])


def print_above(text: str) -> None:
    """Print a text above the line that is shown now, if there is one."""
    if Line.shown is not None:
        Line.shown.clear()
    print(text)


class Line:
    """A line that is rewritten, as a ``with`` statement; at its end the line is cleared, unless it was left there by
    ``leave``.

    Parameters
    ----------
    patience : float
        Seconds before the line is shown for the first time.
    stream : file, optional
        The stream to write to; the error stream by default. A stream on which no line can be rewritten gets only the
        texts of ``leave``.

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> with Line(stream=stream) as line:
    ...     line.show("half")
    ...     line.leave("all")
    >>> stream.getvalue()
    'all\\n'
    """

    #: The line that was shown last, unless it is cleared.
    shown: ClassVar[Line | None] = None

    def __init__(self, patience: float = 0.0, stream: TextIO | None = None):
        self._stream: TextIO = sys.stderr if stream is None else stream
        self._began = _clock()
        self._next = self._due_since = self._began + patience
        self._length = 0
        self._moves = is_rewritable(self._stream)
        self._handlers: list[logging.Handler] = []

    def begin(self) -> None:
        """Restart the count of seconds."""
        self._began = _clock()

    @property
    def seconds(self) -> float:
        """Seconds since the line was made, or since ``begin``."""
        return _clock() - self._began

    def due(self) -> bool:
        """Whether it is time to show another text; if so, the caller must show one."""
        now = _clock()
        if now < self._next:
            return False
        self._next, self._due_since = now + _INTERVAL, now
        return True

    def show(self, text: str) -> None:
        """Show a text in place of the one before, as far as it fits."""
        if self._moves:
            text = f"{text} "  # a space between the line and the program's next text
            if not _is_notebook(self._stream):
                text = text[:max(shutil.get_terminal_size().columns - 1, 1)]
            self._write("\r" + text.ljust(self._length))
            self._length = len(text)
            Line.shown = self
        now = _clock()
        # so that computing the text takes a small part of the time, also with a slow metric
        self._next = max(self._next, now + _WORK * (now - self._due_since))

    def clear(self) -> None:
        """Clear the line; the cursor is at its beginning."""
        if self._length:
            self._write("\r" + " " * self._length + "\r")
            self._note_line_end()

    def leave(self, text: str) -> None:
        """Show a text that stays, and continue on the next line."""
        self._write(("\r" if self._moves else "") + text.ljust(self._length) + "\n")
        self._note_line_end()

    def _note_line_end(self) -> None:
        """Note that the cursor is at the beginning of a line."""
        self._length = 0
        if Line.shown is self:
            Line.shown = None

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # work goes on if its terminal is closed
            self._stream.write(text)
            self._stream.flush()

    def __enter__(self) -> Self:
        loggers: list[Any] = [logging.root, *logging.root.manager.loggerDict.values()]
        handlers = {id(handler): handler for logger in loggers for handler in getattr(logger, "handlers", ())}
        self._handlers = [handler for handler in handlers.values() if is_rewritable(getattr(handler, "stream", None))]
        for handler in self._handlers:
            handler.addFilter(self._clear_line)
        return self

    def _clear_line(self, record: logging.LogRecord) -> bool:
        self.clear()
        return True

    def __exit__(self, *_: object) -> None:
        for handler in self._handlers:
            handler.removeFilter(self._clear_line)
        self.clear()


def counted(things: Iterable[T], what: str, total: int | None = None, text: Callable[[T], str] = lambda thing: ""
            ) -> Iterator[T]:
    """Iterate over values, with a line on the terminal that shows the number of finished ones.

    Parameters
    ----------
    things : iterable
        The values.
    what : str
        The work that is being done, as text.
    total : int, optional
        The number of values.
    text : function, optional
        Returns the text to show for the current value.
    """
    if not is_enabled():
        yield from things
        return
    with Line(_PATIENCE) as line:
        for done, thing in enumerate(things):
            if line.due():
                details = [detail for detail in (text(thing),) if detail]
                line.show(f"{what} {progress_text(done, total, *details, seconds=line.seconds)}")
            yield thing

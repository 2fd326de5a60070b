"""log: loggers whose lines have time, place and level, in colour on a terminal, and functions of a default logger.

``get_logger`` is MXNet's; ``debug``, ``info``, ``warning``, ``error`` and ``critical`` are MindSpore's.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING
from typing import Any, TextIO

__all__ = ["get_logger", "getLogger", "get_level", "debug", "info", "warning", "error", "critical", "CRITICAL",
           "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING"]

_COLOURS = {WARNING: 33, ERROR: 31, CRITICAL: 31, INFO: 32, DEBUG: 32}
_LETTERS = {WARNING: "W", ERROR: "E", CRITICAL: "C", INFO: "I", DEBUG: "D"}


class _Formatter(logging.Formatter):
    """A letter, the time, process, file and line, and the message."""

    def __init__(self, colored: bool):
        super().__init__(datefmt="%m%d %H:%M:%S")
        self._colored = colored

    def format(self, record: logging.LogRecord) -> str:
        head = f"{_LETTERS.get(record.levelno, 'U')}%(asctime)s %(process)d %(pathname)s:%(funcName)s:%(lineno)d]"
        if self._colored:
            head = f"\x1b[{_COLOURS.get(record.levelno, 34)}m{head}\x1b[0m"
        self._style._fmt = f"{head} %(message)s"
        return super().format(record)


def get_logger(name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
               ) -> logging.Logger:
    """A logger that writes to a file or to the standard error. A later call with the same name returns it unchanged.

    Parameters
    ----------
    name : str or None
        Name of the logger; without it the root logger.
    filename, filemode : str or None
        The file to write to, and its mode, by default appending.
    level : int
        The lowest level that is written.

    Examples
    --------
    >>> get_logger("_example", level=INFO).level == INFO
    True
    """
    logger = logging.getLogger(name)
    if name is not None and not getattr(logger, "_init_done", False):
        vars(logger)["_init_done"] = True
        handler: logging.Handler
        if filename:
            handler = logging.FileHandler(filename, filemode or "a")
            handler.setFormatter(_Formatter(False))
        else:
            stream: logging.StreamHandler[TextIO] = logging.StreamHandler()
            stream.setFormatter(_Formatter(getattr(sys.stderr, "isatty", lambda: False)()))
            handler = stream
        logger.addHandler(handler)
        logger.setLevel(level)
    return logger


def getLogger(name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
              ) -> logging.Logger:
    """Former name of ``get_logger``."""
    warnings.warn("log.getLogger is called log.get_logger", DeprecationWarning, stacklevel=2)
    return get_logger(name, filename, filemode, level)


#: Levels by the numbers of the environment variable ``GLOG_v``.
_LEVELS = {"0": DEBUG, "1": INFO, "2": WARNING, "3": ERROR, "4": CRITICAL}


def get_level() -> str:
    """The least level of messages that are written, from "0", debug, to "4", critical.

    The environment variable ``GLOG_v`` sets it; the default is "2".
    """
    level = os.environ.get("GLOG_v", "2")  # noqa: SIM112  its name in MindSpore
    return level if level in _LEVELS else "2"


def _say(level: int, message: object, values: tuple[object, ...], settings: dict[str, Any]) -> None:
    logger = get_logger("opreg.said")
    logger.setLevel(_LEVELS[get_level()])
    logger.log(level, message, *values, stacklevel=3, **settings)


def debug(msg: object, *args: object, **kwargs: Any) -> None:
    """Write ``msg % args`` as a debug message to the standard error, if ``GLOG_v`` is "0"."""
    _say(DEBUG, msg, args, kwargs)


def info(msg: object, *args: object, **kwargs: Any) -> None:
    """Write ``msg % args`` as information to the standard error, if ``GLOG_v`` is at most "1"."""
    _say(INFO, msg, args, kwargs)


def warning(msg: object, *args: object, **kwargs: Any) -> None:
    """Write ``msg % args`` as a warning to the standard error, unless ``GLOG_v`` is above "2"."""
    _say(WARNING, msg, args, kwargs)


def error(msg: object, *args: object, **kwargs: Any) -> None:
    """Write ``msg % args`` as an error to the standard error, unless ``GLOG_v`` is above "3"."""
    _say(ERROR, msg, args, kwargs)


def critical(msg: object, *args: object, **kwargs: Any) -> None:
    """Write ``msg % args`` as a critical error to the standard error."""
    _say(CRITICAL, msg, args, kwargs)


def __dir__() -> list[str]:
    return sorted(__all__)

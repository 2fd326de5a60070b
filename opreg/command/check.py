"""``opreg check module:Prop``: checks an operator, Function, Cell or function with ``operator.check``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from opreg.errors import ArgumentError, OpError
from opreg.testing.report import NOT_ASKED, Report, Verdict

from . import parsing
from .output import add_json, say

__all__ = ["configure", "run"]

#: Code with which the child process starts; it finds the same modules as this process.
_BEGIN = """
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from opreg.command.checked import main
main(int(sys.argv[1]), json.loads(sys.argv[2]))
"""
#: Seconds for each check, which runs the checked code some ten times.
_TIMEOUT = 60.0
#: Seconds to wait for the end of the pipe, which a process outside of the process group may keep open.
_LEFT_OPEN = 1.0

#: Messages of the child process, in order; None after the last.
Lines = queue.SimpleQueue[dict[str, Any] | None]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("what", metavar="WHAT", help="module:Name, file.py:Name, or the name of an operator")
    parser.add_argument("--input", nargs="+", action="extend", default=[], metavar="X",
                        help="in their order: a .npy file; or a shape for random numbers, as 2x3 or 2x3:int32")
    parser.add_argument("--attr", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="an attribute")
    parser.add_argument("--timeout", type=float, default=_TIMEOUT, metavar="SECONDS",
                        help=f"how long one of the checks may take; {_TIMEOUT:g} by default")
    parsing.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the verdicts, and return 1 if a check failed."""
    if not 0 < options.timeout < math.inf:
        raise ArgumentError(f"--timeout {options.timeout:g}: expected seconds")
    for text in options.input:  # words that are wrong are refused before a process starts
        parsing.array(text)
    parsing.attributes(options.attr)
    report = _run_check(options)
    if report is None:
        return 2
    say(options, {"title": report.title, "ok": report.ok, "verdicts": list(map(dataclasses.asdict, report))},
        str(report))
    return int(not report.ok)


def _run_check(options: argparse.Namespace) -> Report | None:
    """Report of a check in a child process; None after the reason for a missing report was printed."""
    words = {name: getattr(options, name) for name in ("what", "input", "attr", "modules")}
    title, verdicts = options.what, list[Verdict]()
    checks: list[list[str]] = []
    with _process(words) as (process, lines):
        while True:
            try:
                line = lines.get(timeout=options.timeout if checks else max(options.timeout, _TIMEOUT))
            except queue.Empty:
                end = f"it has not ended after {options.timeout:g} seconds; --timeout gives it longer"
                break
            if line is None:
                end = _end_of_process(process.wait())
                break
            if "refused" in line:
                raise OpError(line["refused"])
            if "raised" in line:
                print(line["raised"], end="", file=sys.stderr)
                return None
            if "done" in line:
                return Report(title, verdicts)
            checks = line.get("checks", checks)
            title = line.get("title", title)
            if line.get("verdict"):
                verdicts.append(Verdict(**line["verdict"]))
    if checks and len(verdicts) == len(checks):  # the last message has come
        return Report(title, verdicts)
    if not checks:
        raise OpError(f"{options.what}: {end}, while it was imported")
    (name, asks), *others = checks[len(verdicts):]
    verdicts.append(Verdict(name, asks, "failed", end))
    verdicts += [Verdict(later_name, asks, "skipped", f"{NOT_ASKED} {name!r} failed") for later_name, asks in others]
    return Report(title, verdicts)


def _end_of_process(code: int) -> str:
    if code < 0:
        return f"it has ended the process by {signal.Signals(-code).name}"
    return f"it has ended the process with {code}, as os._exit does"


@contextmanager
def _process(words: dict[str, Any]) -> Iterator[tuple[subprocess.Popen[bytes], Lines]]:
    """The child process that runs the checks, and its messages; on exit it and all of its children are ended."""
    command = [sys.executable, "-c", _BEGIN, json.dumps(sys.path), str(os.getpid()), json.dumps(words)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    lines: Lines = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        yield process, lines
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
        process.wait()
        reader.join(_LEFT_OPEN)


def _read(stream: IO[bytes], lines: Lines) -> None:
    """Put each line into ``told`` as it arrives, None after the last, and close ``stream``."""
    with stream:
        for line in stream:
            if line.endswith(b"\n"):  # if not, the process ended within the line
                lines.put(json.loads(line))
    lines.put(None)

"""``opreg profile MODEL|SCRIPT``: time of each operator, as a table and as a trace for Perfetto."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
import traceback

from opreg.core.events import Events
from opreg.core.progress import counted
from opreg.errors import ArgumentError
from opreg.trace_events import collect

from . import models
from .as_mxnet import check_script
from .output import add_json, as_json, say

__all__ = ["configure", "run"]

_TABLES = ("operator", "cell", "line")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    models.add_model(parser, "a -symbol.json file, or its name without this suffix; or a script.py")
    parser.add_argument("--train", action="store_true", help="with gradients")
    parser.add_argument("--repeat", type=int, default=10, metavar="N", help="the number of runs of a model")
    parser.add_argument("--trace", metavar="FILE", help="write a timeline of the run, for https://ui.perfetto.dev")
    parser.add_argument("--args", nargs=argparse.REMAINDER, default=[], metavar="ARG",
                        help="the script's arguments: everything that follows")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table; a script sets the exit status."""
    return _script(options) if options.model.endswith(".py") else _model(options)


def _model(options: argparse.Namespace) -> int:
    if options.repeat < 1 or options.args:
        raise ArgumentError(f"{options.args[0]!r}: a model takes no such word" if options.args else
                            f"--repeat {options.repeat}: expected at least 1")
    net = models.model(options)
    executor = models.bound(net, models.inputs(net, options.input), options, train=options.train, random=True)
    if options.trace:
        with collect() as events:
            for _ in counted(range(options.repeat), "profile", options.repeat):
                outputs = executor.forward(is_train=options.train)
                if options.train:
                    executor.backward([out.ones_like() for out in outputs])
        events.save(options.trace)
    profile = executor.profile(options.repeat, options.train)
    say(options, [row._asdict() for row in profile.rows], str(profile))
    return 0


def _script(options: argparse.Namespace) -> int:
    """Run a script with the profiler."""
    check_script(options.model)
    before = sys.argv, sys.path[:]
    sys.argv = [options.model, *options.args]
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.model)))
    try:  # the output must contain JSON only
        with collect() as events, contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
            code = _exit_status(options.model)
    finally:
        sys.argv, sys.path[:] = before
    if options.trace:
        events.save(options.trace)
    print(as_json(_rows(events)) if options.json else events)
    return code


def _exit_status(script: str) -> int:
    """Exit status of a script."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _rows(events: Events) -> dict[str, list[dict[str, object]]]:
    return {by: [row._asdict() for row in events.rows(by)] for by in _TABLES}

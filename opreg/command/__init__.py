"""The command ``opreg``, also ``python -m opreg``: each subcommand is a module here, and an entry of ``COMMANDS``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import opreg
from opreg.errors import OpError, did_you_mean, is_ours, nearest

__all__ = ["main", "error_text", "users", "COMMANDS"]

#: Subcommands: for each its module, which has ``configure(parser)`` and ``run(options)``, and its purpose.
COMMANDS = {
    "as-mxnet": ("as_mxnet", "run a script with mxnet meaning this package"),
    "as-mindspore": ("as_mindspore", "run a script with mindspore meaning this package"),
    "check": ("check", "check an operator, a Cell or a function"),
    "convert": ("convert", "write weights or a model in another format"),
    "info": ("info", "show versions, the processor and the libraries in use"),
    "launch": ("launch", "start a program as several connected processes"),
    "ops": ("ops", "list operators"),
    "params": ("params", "list the weights in a file, or compare two files"),
    "plot": ("plot", "draw a graph"),
    "port": ("port", "rewrite old scripts for this package and current Python"),
    "profile": ("profile", "measure where a model or a script spends its time"),
    "run": ("run", "run a model on arrays of files"),
    "show": ("show", "describe an operator, or a graph in a file"),
    "show-missing": ("show_missing", "list operators of graphs that are not registered"),
    "summary": ("summary", "list the layers of a graph, with shapes and weights"),
    "trace-cache": ("trace_cache", "list or clear the files that opreg caches on disk"),
}

_ENDS = "The exit status is 0 for success, 1 if something was found, and 2 for a mistake in the call."


class _Parser(argparse.ArgumentParser):
    """A parser whose errors suggest the nearest valid words, and list no argument as missing that may be left out."""

    def add_argument(self, *names: Any, **keywords: Any) -> argparse.Action:
        action = super().add_argument(*names, **keywords)
        action.required = action.required and action.nargs not in ("*", argparse.REMAINDER)
        return action

    def error(self, message: str) -> None:  # type: ignore[override]
        words = message.split("'")
        if "COMMAND" in message and len(words) > 1 and words[1] not in COMMANDS:
            message = f"there is no {words[1]!r}. {did_you_mean(words[1], COMMANDS, limit=len(COMMANDS))}"
        super().error(message)

    def unknown(self, words: Sequence[str]) -> None:
        """Refuse unknown words of a command line, naming the first option if there is one."""
        first = next((word.partition("=")[0] for word in words if word.startswith("-")), words[0])
        valid = [name for name in self._option_string_actions if name.startswith("--")]
        offered = f". {did_you_mean(first, valid, limit=len(valid))}" if first.startswith("-") else ""
        super().error(f"unrecognized arguments: {' '.join(words)}{offered}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Parameters
    ----------
    argv : sequence of str, optional
        The subcommand and its arguments; by default those of the process.

    Returns
    -------
    int
        Exit status: 0, 1 for a negative answer, 2 for an error. A script that is run sets its own.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _Parser(prog="opreg", epilog=_ENDS, description=(
        "Check operators, run and draw models, convert weights, run and port old scripts."))
    parser.add_argument("--version", action="version", version=f"opreg {opreg.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    chosen = argv[0] if argv else ""
    for name, (module, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose[0].upper() + purpose[1:] + ".",
                                      epilog=_ENDS)
        if name == chosen:  # modules of other subcommands are not imported
            code = importlib.import_module(f"{__name__}.{module}")
            code.configure(command)
            command.set_defaults(run=code.run, parser=command)
    if not argv:
        parser.print_help()
        return 2
    if chosen.startswith("-") and not any(name.startswith(chosen) for name in parser._option_string_actions):
        parser.unknown([chosen])
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        options.parser.unknown(unknown)
    try:
        code = options.run(options)
        if sys.stdout is not None:  # the output was closed
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # the status that the system gives to a program that a closed pipe has ended
    except (OpError, OSError) as error:
        print(f"opreg {chosen}: {error_text(error)}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # an error of a user's module, or of this library
        traceback.print_exception(error.with_traceback(users(error.__traceback__)))
    return 2


def users(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback from the first frame of a user's module on; the whole traceback if there is none."""
    below = traceback
    while below is not None and (is_ours(below.tb_frame) or "importlib" in below.tb_frame.f_code.co_filename):
        below = below.tb_next
    return below or traceback


def error_text(error: Exception) -> str:
    """The text of an error; for a missing file with the nearest existing one."""
    if not isinstance(error, FileNotFoundError) or error.filename is None:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    folder, name = os.path.split(os.fsdecode(error.filename))
    near = nearest(name, os.listdir(folder or ".")) if os.path.isdir(folder or ".") else []
    offered = " or ".join(repr(os.path.join(folder, file_name)) for file_name in near)
    return f"no such file or folder: {error.filename}" + (f". Did you mean {offered}?" if near else "")

"""``opreg port FOLDER``: changes that old scripts need to run here, shown as a diff or written."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from opreg.porting.folder import changes, diff, write

from .output import add_json, as_json

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a folder, or a file")
    parser.add_argument("--write", action="store_true", help="change the files; without it a diff is shown")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Show or write the changes; remarks for the user go to the error stream. 1 if a file could not be read or
    written."""
    for root in options.folders:
        if not root.exists():
            raise FileNotFoundError(2, "no such file or folder", str(root))
    # all are computed before one is written, since they depend on neighbouring files
    all_changes = [change for root in options.folders for change in changes(root)]
    reports = []
    written = remaining = failed = 0
    for change in all_changes:
        changed = change.before != change.after
        failed += change.unread
        remarks = []
        if changed and options.write:
            try:
                write(change)
            except OSError as error:
                changed = False
                failed += 1
                remarks.append({"line": 1, "text": f"not written: {error.strerror or error}", "warning": False})
                print(f"{change.path}: {remarks[0]['text']}", file=sys.stderr)
        elif changed and not options.json:
            sys.stdout.write(diff(change))
        written += changed
        for line, text, warning in change.problems:
            remaining += not warning
            shown = line if options.write or not change.origins else change.origins[line - 1][0]
            remarks.append({"line": shown, "text": text, "warning": warning})
            print(f"{change.path}:{shown}: {'warning: ' if warning else ''}{text}", file=sys.stderr)
        if changed or remarks:
            reports.append({"path": str(change.path), "changed": changed, "left": remarks,
                            "diff": diff(change) if changed else ""})
    if options.json:
        print(as_json(reports))
    files = "1 file" if written == 1 else f"{written} files"
    print(f"{files} {'changed' if options.write else 'would change'}, {remaining} left to you", file=sys.stderr)
    return int(failed > 0)

"""Output of subcommands: text, or JSON for programs."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["add_json", "as_json", "columns", "say"]


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def say(options: argparse.Namespace, data: object, text: str) -> None:
    """Print the result as text, or as JSON if ``--json`` is given."""
    print(as_json(data) if options.json else text)


def as_json(data: object) -> str:
    """Standard JSON: infinities and NaN, which it lacks, become texts.

    Examples
    --------
    >>> as_json({"loss": float("nan")})
    '{\\n "loss": "nan"\\n}'
    """
    return json.dumps(_finite(data), indent=1)


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words aligned in columns.

    Examples
    --------
    >>> print(columns([("w", "float32"), ("weight", "int8")]))
    w       float32
    weight  int8
    """
    widths = [max(map(len, words)) for words in zip(*rows)]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows)

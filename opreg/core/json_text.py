"""JSON texts of files and attributes, parsed with errors that name their source."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ..errors import FileFormatError

__all__ = ["json_of"]


def json_of(text: str | bytes, name: str) -> Any:
    """Parse a JSON text to dicts and lists.

    Raises
    ------
    FileFormatError
        If the text is no JSON, has a repeated key, or has too deep brackets or too long numbers. The error names the
        file.

    Examples
    --------
    >>> json_of('{"nodes": []}', "net-symbol.json")
    {'nodes': []}
    >>> json_of('{"nodes": [}', "net-symbol.json")
    Traceback (most recent call last):
    opreg.errors.FileFormatError: net-symbol.json: line 1, column 12: no JSON: Expecting value
    """

    def fail(what: str) -> NoReturn:
        raise FileFormatError(f"{name}: {what}") from None

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        by_key = dict(pairs)
        if len(by_key) != len(pairs):
            names = [key for key, _ in pairs]
            fail(f"the key {next(key for key in names if names.count(key) > 1)!r} stands twice in one object")
        return by_key

    try:
        return json.loads(text, object_pairs_hook=unique, strict=False)
    except FileFormatError:
        raise
    except json.JSONDecodeError as error:
        fail(f"line {error.lineno}, column {error.colno}: no JSON: {error.msg}")
    except UnicodeDecodeError as error:
        fail(f"byte {error.start}: no JSON: it is no text")
    except RecursionError:
        fail("brackets are nested too deeply")
    except ValueError:  # Python refuses to read thousands of digits
        fail("an absurdly long number")

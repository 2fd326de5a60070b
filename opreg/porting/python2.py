"""Conversion of Python 2 syntax by fissix, the maintained fork of lib2to3; only this module uses it."""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..core.locks import lock
from ..errors import DeviceError

__all__ = ["ConvertedText", "NeedsParser", "modern"]

#: Fixers for syntax that Python 3 cannot parse. Rules handle names and changed meanings.
_FIXERS = ("except", "exec", "ne", "print", "raise", "repr", "throw", "tuple_params")


class NeedsParser(DeviceError):
    """A file is Python 2, and the parser for it is not installed."""


#: Its tools have global state, and modules are imported in several threads.
_LOCK = lock()


class ConvertedText(NamedTuple):
    """A text for Python 3: the text, whether it was Python 2, parts that could not be converted, and the old line of
    each line."""

    text: str
    old: bool
    failed: list[str]
    origins: Sequence[int]


def modern(text: str) -> ConvertedText:
    """The code of a module, in the syntax of Python 3.

    Parameters
    ----------
    text : str
        Code of Python 2 or 3; lines end in ``\\n`` alone.

    Raises
    ------
    SyntaxError
        When the code is valid in neither Python.
    NeedsParser
        For Python 2 code, when fissix is not installed.

    Examples
    --------
    >>> modern("x = 1 if True else 2\\n").old
    False
    """
    same = range(1, text.count("\n") + 2)
    first, mixed = _syntax_error(text), False
    if isinstance(first, IndentationError) and (spaces := _spaces(text)) != text:
        text, mixed = spaces, True  # Python 3 refuses files that mix tabs and spaces
        first = _syntax_error(text)
    if first is None:
        return ConvertedText(text, mixed, [], same)
    try:
        tools = _tools()
    except ImportError as error:
        raise NeedsParser(f"line {first.lineno} is not Python 3 ({first.msg}); for Python 2, install its parser: "
                          "pip install 'opreg[port]'") from error
    ended = text if text.endswith("\n") else text + "\n"
    with _LOCK:
        tree, problems = _read(ended, tools)
    if tree is None:
        lines = text.split("\n")
        line, column = max(_place(tool.refused) or (first.lineno or 1, 0) for tool in tools)
        line = min(line, len(lines))  # the position of the end of a text may be on a line of its own
        raise SyntaxError("neither Python 2 nor Python 3", ("<text>", line, column + 1, lines[line - 1]))
    for leaf in tree.leaves():
        if leaf.value[:1].isdigit():
            leaf.value = _number(leaf.value)
        elif leaf.value[-1:] in ("'", '"'):
            leaf.value = re.sub(r"^[uU]([rR])", r"\1", leaf.value)
    result = str(tree).replace("xxx_todo_changeme", "together")  # fissix's name for an argument that was a tuple
    still = _syntax_error(result)
    if isinstance(still, IndentationError):  # tabs matter only if Python 3 refuses the text because of them
        result = _spaces(result)
        still = _syntax_error(result)
    if still is not None:
        raise still
    return ConvertedText(result, True, problems, _lines(tree))


def _lines(tree: Any) -> list[int]:
    """Original lines of the lines of a tree's text."""
    lines = [0]
    for leaf in tree.leaves():
        before, inside = leaf.prefix.count("\n"), leaf.value.count("\n")
        if not leaf.lineno:  # a fixer created the node
            lines += [0] * (before + inside)
            continue
        lines[-1] = lines[-1] or leaf.lineno - before
        lines += range(leaf.lineno - before + 1, leaf.lineno + 1)
        lines += range(leaf.lineno + 1, leaf.lineno + inside + 1) if leaf.value != "\n" else [0]
    for i in reversed(range(len(lines) - 1)):  # in reverse, since a fixer gave the new node the prefix of the next one
        lines[i] = lines[i] or max(0, lines[i + 1] - 1)
    last = 1
    for i, line in enumerate(lines):
        last = lines[i] = max(last, line)
    return lines


def _read(text: str, tools: Sequence[Any]) -> tuple[Any, list[str]]:
    """The tree of a text by the first tool that parses it, and parts that it could not convert; else None."""
    for tool in tools:
        tool.refused = None
        tool.said.clear()
        tool.fixer_log.clear()
        try:
            tree = tool.refactor_string(text, "<text>")
        except (RecursionError, MemoryError):
            raise
        except Exception as error:  # fissix looks for future imports before it records errors
            tool.refused, tree = error, None
        if tree is not None:
            return tree, tool.said + tool.fixer_log
    return None, []


def _place(error: Exception | None) -> tuple[int, int] | None:
    """Line and column of an error of a tool's parser or tokenizer."""
    match getattr(error, "context", getattr(error, "args", None)):
        case (_, (int(line), int(column))):
            return line, column
    return None


@functools.cache
def _tools() -> list[Any]:
    """Parsers of Python 2: with ``print`` as a statement, as a function, and with ``exec`` as one, too."""
    from fissix.refactor import RefactoringTool

    class Tool(RefactoringTool):
        def __init__(self, options: dict[str, bool]) -> None:
            super().__init__([f"fissix.fixes.fix_{name}" for name in _FIXERS], options)
            self.said: list[str] = []
            self.refused: Exception | None = None

        def log_error(self, msg: str, *args: Any, **kwds: Any) -> None:
            self.refused = args[-1]

        def log_message(self, msg: str, *args: Any) -> None:
            self.said.append(msg % args)

        def log_debug(self, msg: str, *args: Any) -> None:
            """Ignore debug messages."""

    functions = ("print_function", "exec_function")
    return [Tool(dict.fromkeys(functions[:count], True)) for count in range(3)]


def _syntax_error(text: str) -> SyntaxError | None:
    """The reason why Python 3 cannot parse a text; None if it can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes, comparisons of literals by `is`
            compile(text, "<text>", "exec", dont_inherit=True)
            for node in ast.walk(ast.parse(text)) if ">>" in text or "except" in text else ():
                match node:
                    case ast.BinOp(op=ast.RShift(), left=ast.Name(id="print")):
                        return SyntaxError("print >>file", ("<text>", node.lineno, 0, ""))
                    case ast.ExceptHandler(type=ast.Tuple(elts=[kind, ast.Name(id=name)]) as both) \
                            if both.col_offset == kind.col_offset and name[0].islower():
                        # Python 3.14 reads it as two kinds of errors
                        return SyntaxError("except Error, name", ("<text>", node.lineno, 0, ""))
    except SyntaxError as error:
        return error
    except ValueError as error:  # a zero byte
        return SyntaxError(str(error))
    return None


def _number(text: str) -> str:
    text = text.rstrip("lL")
    return f"0o{text.lstrip('0')}" if re.fullmatch(r"0+[1-7][0-7]*", text) else text


def _spaces(text: str) -> str:
    """The text with leading tabs expanded to spaces, to multiples of eight columns as in Python 2."""
    inside = set(_continued_lines(text))
    return "".join(line if number in inside else re.sub(r"^[ \t]+", lambda match: match[0].expandtabs(8), line)
                   for number, line in enumerate(text.splitlines(keepends=True), 1))


def _continued_lines(text: str) -> Iterator[int]:
    """Lines that begin inside of a string."""
    quotes = re.compile(r"#[^\n]*|('''|\"\"\")(?:\\.|[^\\])*?\1|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"",
                        re.DOTALL)
    for match in quotes.finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        yield from range(first + 1, first + match[0].count("\n") + 1)

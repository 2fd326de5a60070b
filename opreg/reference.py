"""Docstrings as Markdown, and a page for each module that users open: the reference of the site.

>>> print(markdown('''A number.
...
...     Parameters
...     ----------
...     x : int
...         Any integer.
...
...     The result is even.
... '''))
A number.
<BLANKLINE>
**Parameters**
<BLANKLINE>
- `x : int`: Any integer.
<BLANKLINE>
The result is even.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import opreg

__all__ = ["markdown", "pages"]

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def markdown(docstring: str | None) -> str:
    """A docstring in Markdown: its sections, as numpydoc has them, under bold words, its examples in fences."""
    first, *sections = _HEADING.split(inspect.cleandoc(docstring or ""))
    parts = [_fenced_examples(first)]
    for title, body in zip(sections[::2], sections[1::2]):
        parts += [_fenced_examples(body)] if title == "Examples" else [f"**{title}**",
                                                                       _fenced_examples(_items(body.strip("\n")))]
    return "\n\n".join(part for part in parts if part)


def _items(body: str) -> str:
    """A section with its entries as a list; an entry is a line that indented lines explain. Other paragraphs stay
    unchanged."""
    paragraphs = re.split(r"\n\s*\n(?! )", body)
    return "\n\n".join(_entries(text) if re.search(r"^ +\S", text, re.MULTILINE) else text for text in paragraphs)


def _entries(paragraph: str) -> str:
    entries: list[list[str]] = []
    for line in filter(None, paragraph.splitlines()):
        if line.startswith(" "):
            entries[-1].append(line.strip())
        else:
            entries.append([f"- `{line.replace('`', '')}`:"])
    return "\n".join(" ".join(entry).removesuffix(":") for entry in entries)


def _fenced_examples(text: str) -> str:
    """The text with its examples in fences: each from a prompt up to the next empty line."""
    return re.sub(r"^>>> .*(?:\n.+)*", lambda found: f"```pycon\n{found[0]}\n```", text.strip(), flags=re.MULTILINE)


def _signature(value: Callable, bound: bool = False) -> str:
    """The parameters of a callable, without annotations, and without the first one of a bound method."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of C
        return ""
    empty = inspect.Parameter.empty
    parameters = [each.replace(annotation=empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=parameters[bound:], return_annotation=empty))


def _methods(cls: type, elsewhere: set[type]) -> Iterator[tuple[str, str, str | None]]:
    """Public methods and properties: title, signature, docstring. Methods of bases that are described nowhere else."""
    described = {base for other in cls.__mro__[1:] if other in elsewhere for base in other.__mro__}
    for base in cls.__mro__:
        if base in described or not base.__module__.startswith("opreg"):
            continue
        for name, value in vars(base).items():
            function = getattr(value, "__func__", getattr(value, "fget", value))
            if not name.startswith("_") and inspect.isroutine(function) and value is inspect.getattr_static(cls, name):
                called = _signature(function, not isinstance(value, staticmethod))
                doc = inspect.getdoc(function) or inspect.getdoc(getattr(cls, name))
                yield name, "" if isinstance(value, property) else called, doc


def _entry(level: int, name: str, signature: str, docstring: str | None) -> str:
    return f"{'#' * level} {name}\n\n`{name}{signature}`\n\n{markdown(docstring)}\n"


def _describe_names(names: dict[str, Any], elsewhere: set[type]) -> Iterator[str]:
    """Classes with their methods, and functions."""
    for name, value in names.items():
        if inspect.isclass(value):
            yield _entry(2, name, _signature(value), value.__doc__)
            yield from (_entry(3, *method) for method in _methods(value, elsewhere))
        elif callable(value):
            yield _entry(2, name, _signature(value), inspect.getdoc(value))


def pages() -> dict[str, str]:
    """The pages by name: one for each module behind the front door, and ``index`` for the names in front of it."""
    doors: dict[str, list[str]] = {}
    front = {}
    for name, (path, attribute) in vars(opreg)["_DOORS"].items():
        if attribute is None:
            doors.setdefault(path, []).append(name)
        elif not name.startswith("_"):
            front[name] = getattr(opreg, name)
    modules = {tuple(names): getattr(opreg, names[0]) for names in doors.values()}
    public = {names: {name: getattr(module, name) for name in module.__all__ if not name.startswith("_")}
              for names, module in modules.items()}
    classes = {value for each in (front, *public.values()) for value in each.values() if inspect.isclass(value)}
    texts, table = {}, []
    for names, module in modules.items():
        title = ", ".join(f"opreg.{name}" for name in names)
        described = _describe_names(public[names], classes)
        texts[names[0]] = "\n".join([f"# {title}\n\n{markdown(module.__doc__)}\n", *described])
        table.append(f"| [{title}]({names[0]}.md) | {(module.__doc__ or '').splitlines()[0]} |")
    texts["index"] = "\n".join(["# Reference\n", "Made from the docstrings. Operators, which are functions of `nd` and "
                                "`sym`, have [a page of their own](../operators.md).\n", "| module | what it holds |",
                                "|---|---|", *table, "\n# opreg\n", *_describe_names(front, classes)])
    return texts

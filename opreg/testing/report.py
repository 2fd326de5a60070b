"""Reports of checks, as text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.reports import html_text

__all__ = ["NOT_ASKED", "Verdict", "Report"]

_WIDTH = 120
#: The first words of the reason why a check is skipped: another check failed.
NOT_ASKED = "not asked after"


@dataclass(frozen=True)
class Verdict:
    """The result of one check.

    Attributes
    ----------
    name : str
        The check.
    asks : str
        Its question, as a sentence.
    outcome : {"ok", "failed", "skipped"}
        The outcome.
    text : str
        The finding, or the reason of the skip.
    change : str
        The suggested change, after a failure.
    example : str
        The smallest failing inputs that were found.
    """

    name: str
    asks: str
    outcome: str
    text: str = ""
    change: str = ""
    example: str = ""

    def lines(self) -> list[str]:
        """Lines of the report."""
        return [line for line in (self.text, self.change and f"change: {self.change}",
                                  self.example and f"smallest example: {self.example}") if line]


class Report(Sequence[Verdict]):
    """The report of ``mx.operator.check``: a verdict for each check; prints as a table, and is true if none failed.

    Attributes
    ----------
    title : str
        The checked operator or Cell.
    ok : bool
        Whether nothing failed.

    Examples
    --------
    >>> report = Report("operator f", [Verdict("runs", "It runs.", "ok"),
    ...                                Verdict("gradient", "Gradients are right.", "failed", "off by 2")])
    >>> report.ok, report["gradient"].text, report.without("gradient").ok
    (False, 'off by 2', True)
    """

    def __init__(self, title: str, verdicts: Sequence[Verdict]):
        self.title, self._verdicts = title, list(verdicts)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    @property
    def failed(self) -> list[Verdict]:
        """The verdicts of checks that failed."""
        return [verdict for verdict in self._verdicts if verdict.outcome == "failed"]

    def without(self, *names: str) -> Report:
        """A report without some checks, such as the gradient check of an operator whose gradient is wrong on
        purpose."""
        for name in names:
            self[name]
        return Report(self.title, [verdict for verdict in self._verdicts if verdict.name not in names])

    def raise_if_failed(self) -> Report:
        """Raise an AssertionError with the table if something failed; returns the report."""
        if not self.ok:
            raise AssertionError(str(self))
        return self

    def __getitem__(self, key: int | str) -> Verdict:  # type: ignore[override]
        """The verdict of a check, by its name or index."""
        if isinstance(key, str):
            for verdict in self._verdicts:
                if verdict.name == key:
                    return verdict
            raise KeyError(f"there is no check {key!r}, but {', '.join(verdict.name for verdict in self._verdicts)}")
        return self._verdicts[key]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def __bool__(self) -> bool:
        return self.ok

    def _merge_failures(self) -> list[tuple[Verdict, list[str]]]:
        """Verdicts to print: checks that failed with the same text and change are merged; each comes with their
        names."""
        same: dict[tuple[str, str], list[str]] = {}
        for verdict in self.failed:
            same.setdefault((verdict.text, verdict.change), []).append(verdict.name)
        lines = []
        for verdict in self:
            names = same[verdict.text, verdict.change] if verdict.outcome == "failed" else [verdict.name]
            if verdict.name == names[0]:
                lines.append((verdict, names))
        return lines

    @property
    def _summary(self) -> str:
        count = {outcome: sum(each.outcome == outcome for each in self) for outcome in ("ok", "failed", "skipped")}
        names = f" ({', '.join(verdict.name for verdict in self.failed)})" if self.failed else ""
        return f"{self.title}: {count['ok']} ok, {count['failed']} failed{names}, {count['skipped']} skipped"

    def __str__(self) -> str:
        width = max(len(verdict.name) for verdict in self) + 2
        lines = [self._summary]
        for verdict, names in self._merge_failures():
            if verdict.text.startswith(NOT_ASKED):
                continue
            shown = verdict.lines() or [""]
            if len(names) > 1:
                lines.append(f"{verdict.outcome:<9}{', '.join(names)}")
            for i, text in enumerate(shown):
                head = f"{verdict.outcome:<9}{verdict.name:<{width}}" if i == 0 and len(names) == 1 else \
                    " " * (width + 9)
                lines += textwrap.wrap(text, max(_WIDTH, width + 50), initial_indent=head,
                                       subsequent_indent=" " * (width + 9)) or [head.rstrip()]
        skipped: dict[str, list[str]] = {}
        for verdict in self:
            if verdict.text.startswith(NOT_ASKED):
                skipped.setdefault(verdict.text, []).append(verdict.name)
        for reason, unasked in skipped.items():
            lines += textwrap.wrap(f"{reason}: {', '.join(unasked)}", _WIDTH, initial_indent="skipped  ",
                                   subsequent_indent=" " * 9)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colours = {"ok": "#1a7f37", "failed": "#cf222e", "skipped": "#6e7781"}
        rows = "".join(
            f'<tr><td style="color:{colours[verdict.outcome]}">{verdict.outcome}</td>'
            f'<td style="text-align:left" title="{html_text(verdict.asks)}">{html_text(", ".join(names))}</td>'
            f'<td style="text-align:left">{"<br>".join(map(html_text, verdict.lines()))}</td></tr>'
            for verdict, names in self._merge_failures())
        return f"<table><caption>{html_text(self._summary)}</caption>{rows}</table>"

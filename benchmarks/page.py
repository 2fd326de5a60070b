"""Write two pages from the files of results: the journal, with a section for each kind of processor, and one table of
ratios for users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from .environments import BY_HAND, OURS
from .growth import verdict
from .results import FOLDER, RATIOS, Growth, Results, Row, fastest, load, number

__all__ = ["JOURNAL", "PAGE", "measured", "ratios", "section", "write"]

#: The page for users, and the journal.
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
JOURNAL = Path(__file__).resolve().parent / "journal.md"
_LONG = 1e-3  # a row of more seconds also shows its shares of the machine's rates
_SCATTER = 1.03  # factor of the median without the extra: a row that takes longer with the extra is named
BEGIN, END = "<!-- measured: python -m benchmarks writes what follows -->", "<!-- end of what was measured -->"


def _loaded(folder: Path) -> list[Results]:
    return sorted((load(path) for path in folder.glob("*.json")), key=lambda each: (each.title, each.kind))


def measured(folder: Path = FOLDER) -> str:
    """A section for each kind of processor."""
    return "\n\n".join(f"### {each.title}\n\n{section(each)}" for each in _loaded(folder))


def ratios(folder: Path = FOLDER) -> str:
    """One table: a column for each processor with all its features, with opreg's time over that of the fastest peer,
    with NumPy alone and with the extra."""
    found = [each for each in _loaded(folder) if not each.lesser]
    by_work = [{(row.work, row.title): row for row in each.rows} for each in found]
    # Workloads are in the order of the results with the most of them.
    keys = dict.fromkeys(key for rows in sorted(by_work, key=len, reverse=True) for key in rows)
    return "\n".join([*_head(["work", *(each.title for each in found)]),
                      *(_line([title, *(_both(rows.get((work, title))) for rows in by_work)]) for work, title in keys)])


def _both(row: Row | None) -> str:
    pair = (_ratio(row, "opreg", ()), _ratio(row, "opreg[fast]", ())) if row else ("–",)
    return "\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}".join(pair)


def write(folder: Path = FOLDER, page: Path = PAGE, journal: Path = JOURNAL) -> None:
    """Write both pages from the files in a folder."""
    for path, text in ((page, ratios(folder)), (journal, measured(folder))):
        before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def section(results: Results) -> str:
    """Markdown: the table, the skipped cells and the reasons, the method, and growth."""
    remarks = [*results.remarks, *_remeasured(results.rows), *_slower(results.rows)]
    lines = [*_table(results), "", *(f"- {remark}" for remark in remarks), *([""] if remarks else []),
             _conditions(results)]
    if results.growth:
        lines += ["", "#### How cost grows", *_growths(results.growth)]
    return "\n".join(lines)


def _table(results: Results) -> list[str]:
    names = list(results.columns)
    ratios = [each for each in RATIOS if results.device == "cpu" or each[1] == "opreg"]
    more = ["launches", "expected one by one", "expected replayed"]
    beside = _expected
    if results.device == "cpu":
        more, beside = ["bytes", "of memory", "arithmetic", "of arithmetic"], _shares
        more = more if _known(results) else []
    by_hand = ["ours / by hand"] if BY_HAND in names else []
    lines = _head(["work", "unit", *names, *(title for title, _, _ in ratios), *by_hand, *more])
    for row in results.rows:
        cells = [row.title, row.unit, *(_cell(row.figures.get(name), row.unit) for name in names),
                 *(_ratio(row, ours, without) for _, ours, without in ratios),
                 *(_quotient(row, "opreg", BY_HAND) for _ in by_hand), *(beside(row) if more else [])]
        lines.append(_line(cells))
    return lines


def _head(titles: Iterable[str]) -> list[str]:
    titles = list(titles)
    return [_line(titles), "|---" * len(titles) + "|"]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(figures: list[float] | None, unit: str) -> str:
    if not figures:
        return "–"
    least, *median = [number(figure, unit) for figure in figures]
    return f"{least} ({median[0]})" if median else least


def _ratio(row: Row, ours: str, without: tuple[str, ...]) -> str:
    return _quotient(row, ours, fastest(row, without))


def _quotient(row: Row, ours: str, other: str) -> str:
    both = ours in row.figures and other in row.figures
    return f"{row.figures[ours][0] / row.figures[other][0]:.2f}" if both else "–"


def _expected(row: Row) -> list[str]:
    """The cost model's figures for opreg's executor."""
    found = row.expected
    return [f"{found['launches']:.0f}", number(found["eager"], row.unit),
            number(found["replayed"], row.unit)] if "launches" in found else ["–"] * 3


def _known(results: Results) -> bool:
    """Whether the results have the bytes that rows move; the oldest do not."""
    return any("bytes" in row.expected for row in results.rows)


def _shares(row: Row) -> list[str]:
    """Bytes and operations of opreg's steps, and the share of opreg's time that the machine needs for them at its
    measured rates; for rows of more than a millisecond."""
    ours = min((row.figures[name][0] for name in OURS if name in row.figures), default=0.0)
    found = row.expected
    if "bytes" not in found or ours < _LONG or row.unit == "MB":
        return ["–"] * 4
    return [f"{found['bytes'] / 1e6:,.0f} MB", f"{found['memory'] / ours:.0%}", f"{found['flops'] / 1e9:.3g} G",
            f"{found['arithmetic'] / ours:.0%}"]


def _remeasured(rows: Iterable[Row]) -> Iterator[str]:
    """The rows that were measured after the others, and their dates."""
    titles: dict[str, list[str]] = {}
    for row in rows:
        if row.measured:
            titles.setdefault(row.measured, []).append(row.title)
    yield from (f"Measured again on {when}: {'; '.join(those)}." for when, those in titles.items())


_RATES = (" Bytes are those of inputs and outputs of all steps, each counted once a step, and arithmetic is that of "
          "products and of expressions' instructions; beside either the share of our time that this machine takes for "
          "it at the rate of a large copy, or of a large product. What stays in a cache moves faster.")


def _slower(rows: Iterable[Row]) -> Iterator[str]:
    """The rows that take longer with the extra than without, by more than their scatter: a wrong choice of kernels."""
    plain, fast = OURS
    found = [f"{row.title} ({row.figures[fast][0] / row.figures[plain][0]:.2f})" for row in rows
             if row.unit != "MB" and plain in row.figures and fast in row.figures
             and row.figures[fast][0] > _SCATTER * row.figures[plain][-1]]
    if found:
        yield f"Slower with the extra than without it: {'; '.join(found)}."


def _conditions(results: Results) -> str:
    versions = "; ".join(f"{name} {each['version']} (Python {each['python']}, NumPy {each['numpy']})"
                         for name, each in results.columns.items())
    beside = {"cpu": _RATES if _known(results) else "",
              "gpu": " Between two events on the device; what is expected is of the executor alone, by "
                     + ("figures measured there." if results.machine else
                        "the figures of an H100 that others measured."),
              "dry": " **These times mean nothing**: a stand-in for a GPU, tiny sizes."}[results.device]
    commit = f" at {results.commit}" if results.commit else ""
    return (f"Least time, and the median in brackets, of {results.rounds} rounds; the ratio is of the least."
            f"{beside}{_scatter(results)} Measured on {results.date}{commit} with `{results.command}` on "
            f"{_machine(results)}, {results.threads} threads for everyone. {versions}.")


def _scatter(results: Results) -> str:
    found = results.scatter()
    return (f" Medians are less than {found[len(found) // 2]:.0%} above the least for half of the cells, less than "
            f"{found[len(found) * 9 // 10]:.0%} for nine in ten.") if len(found) > 9 else ""


def _machine(results: Results) -> str:
    """The processor, with the facts on which times depend."""
    found = results.processor
    caches = (f", with {found['l1'] >> 10} KiB and {found['l2'] >> 10} KiB of cache each "
              f"({', '.join(found['features'])})") if found["l1"] else ""
    return f"{results.title}{caches}, {results.system}"


def _growths(growths: Iterable[Growth]) -> list[str]:
    lines: list[str] = []
    last: tuple[str, list[int]] | None = None
    for each in growths:
        if (each.of, each.sizes) != last:
            last = each.of, each.sizes
            lines += ["", *_head([each.of, "unit", "", *(f"{size:,}" for size in each.sizes), "how it grows"])]
        for name, figures in each.figures.items():
            shown = [number(figure, each.unit) for figure in figures] + ["–"] * (len(each.sizes) - len(figures))
            lines.append(_line([each.title, each.unit, name, *shown, verdict(each.of, each.sizes, figures, each.unit)]))
    return lines

"""Results as data: a small file for each kind of processor, and the differences between two of them."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .environments import BY_HAND, COMPILED, OURS
from .processors import LESSER

__all__ = ["FOLDER", "RATIOS", "Growth", "Results", "Row", "changes", "fastest", "load", "number", "renewed",
           "rounded"]

#: The folder of the files.
FOLDER = Path(__file__).resolve().parent / "results"

#: The number of units in a second, or in a byte.
SCALE = {"ns": 1e9, "µs": 1e6, "ms": 1e3, "s": 1.0, "bytes": 1.0, "KB": 2 ** -10, "MB": 2 ** -20}

#: The ratios of a row: their titles, opreg's column, and the excluded peers.
RATIOS = (("ours / best not compiled", "opreg", COMPILED), ("ours / best", "opreg", ()),
          ("fast / best", "opreg[fast]", ()))

#: Ratios that differ by less count as equal, even if times scatter less: they are stored with three digits.
_ROUNDING = 0.02


@dataclass
class Row:
    """One workload: for each column the minimal and the median time in seconds, or bytes; one figure if it ran once.

    ``expected`` are the cost model's figures for the device, or for the host at its measured rates; ``measured`` is the
    date and the commit of a row that was measured after the others.
    """

    work: str
    title: str
    unit: str
    figures: dict[str, list[float]]
    expected: dict[str, float] = field(default_factory=dict)
    measured: str = ""


@dataclass
class Growth:
    """Costs at several sizes, in seconds or bytes by column; there are fewer if a size took too long."""

    of: str
    title: str
    unit: str
    sizes: list[int]
    figures: dict[str, list[float]]


@dataclass
class Results:
    """All measurements on one kind of processor.

    Attributes
    ----------
    processor : dict
        ``name``, ``cores``, bytes of ``l1``, ``l2`` and ``l3``, ``features``; 0 or empty if unknown. lesser : list of
        str The simulated restrictions of the processor. columns : dict
        Versions of the framework, of Python and of NumPy by column.
    """

    processor: dict[str, Any]
    lesser: list[str]
    system: str
    date: str
    commit: str
    command: str
    rounds: int
    threads: int
    columns: dict[str, dict[str, str]]
    rows: list[Row]
    remarks: list[str] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    device: str = "cpu"
    machine: bool = False  # whether the expected times of a device follow from figures measured on it

    @property
    def title(self) -> str:
        """The kind of processor, as readable text."""
        last = self.processor["l3"] >> 20
        about = [self.processor["name"], f"{self.processor['cores']} cores",
                 *([f"{last} MiB of last cache"] if last else []),  # some makers give several processors one name
                 *([f"{self.threads} threads"] if self.threads != self.processor["cores"] else []),
                 *(LESSER[name].about for name in self.lesser)]
        return ", ".join(about)

    @property
    def kind(self) -> str:
        """The kind of processor, as a file name: new results of one kind replace the old ones."""
        found = self.processor
        features = [name for name in ("avx2", "avx512f", "amx_tile", "asimd", "sve2") if name in found["features"]]
        sizes = [f"{level}-{found[level] >> 10}k" for level in ("l2", "l3") if found[level]]
        words = [re.sub(r"\((r|tm)\)|processor|cpu|@.*", "", found["name"].lower()), f"{found['cores']} cores", *sizes,
                 *features[-1:], *([f"{self.threads} threads"] if self.threads != found["cores"] else []), *self.lesser]
        return "-".join(re.findall(r"[a-z0-9]+", " ".join(words)))

    def scatter(self) -> list[float]:
        """The relative distances of medians from minima, sorted."""
        return sorted(median / least - 1 for row in self.rows for least, *more in row.figures.values()
                      for median in more if least)

    def save(self, path: Path) -> None:
        """Write a file."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        # A list of numbers or words is one line.
        text = re.sub(r"\[\s+[^][{}]*?\s+\]", lambda found: json.dumps(json.loads(found[0]), ensure_ascii=False), text)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> Results:
    """Read a file."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Results(**{**kept, "rows": [Row(**row) for row in kept["rows"]],
                      "growth": [Growth(**each) for each in kept["growth"]]})


def renewed(old: Results, new: Results) -> Results:
    """The results with rows, and notes on them, replaced by newer ones."""
    when = f"{new.date}{f' at {new.commit}' if new.commit else ''}"
    rows = {(row.work, row.title): replace(row, measured=when) for row in new.rows}
    growth = {each.of: [more for more in new.growth if more.of == each.of] for each in new.growth}
    titles = tuple([title for _, title in rows])
    return replace(
        old,
        rows=[rows.get((row.work, row.title), row) for row in old.rows],
        growth=[more for of in dict.fromkeys(each.of for each in old.growth)
                for more in growth.get(of) or [each for each in old.growth if each.of == of]],
        remarks=[said for said in old.remarks if not any(f", {title}: " in said for title in titles)]
        + [said for said in new.remarks if any(f", {title}: " in said for title in titles)])


def rounded(figures: Iterable[float]) -> list[float]:
    """Numbers rounded to four digits, more than are significant."""
    return [float(f"{each:.4g}") for each in figures]


def number(value: float, unit: str) -> str:
    """A figure in its unit, to three digits."""
    value *= SCALE[unit]
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def fastest(row: Row, without: tuple[str, ...] = ()) -> str:
    """The column of the fastest peer, or nothing."""
    peers = [name for name in row.figures if name not in (*OURS, BY_HAND, *without)]
    return min(peers, key=lambda name: row.figures[name][0], default="")


# ------------------------------------------------------------------------------------------------- differences


def changes(old: Results, new: Results) -> Iterator[str]:
    """A line for each row whose ratio to its fastest peer has changed by more than the times scatter."""
    before = {(row.work, row.title): row for row in old.rows}
    for row in new.rows:
        last = before.pop((row.work, row.title), None)
        if last is None:
            yield f"{row.title}: was not measured before"
            continue
        said: set[tuple[str, str]] = set()
        for _, ours, without in RATIOS:
            peers = fastest(last, without), fastest(row, without)
            if all(peers) and ours in last.figures and ours in row.figures and (ours, peers[1]) not in said:
                said.add((ours, peers[1]))
                yield from _moved(last, row, ours, peers)
    yield from (f"{title}: is not measured any more" for _, title in before)


def _moved(last: Row, row: Row, ours: str, peers: tuple[str, str]) -> Iterator[str]:
    was, now = (each.figures[ours][0] / each.figures[peer][0] for each, peer in zip((last, row), peers))
    pairs = [each.figures[name] for each, peer in zip((last, row), peers) for name in (ours, peer)]
    scatter = max(_ROUNDING, *(sum(statistics.median(pair) and pair[-1] / pair[0] - 1 for pair in two)
                               for two in (pairs[:2], pairs[2:])))
    if max(was, now) > (1 + scatter) * min(was, now):
        figures = [f"{number(each.figures[ours][0], row.unit)} / {number(each.figures[peer][0], row.unit)} {row.unit} "
                   f"({peer})" for each, peer in zip((last, row), peers)]
        yield f"{row.title}: {ours} {was:.2f} → {now:.2f}, {figures[0]} → {figures[1]}"

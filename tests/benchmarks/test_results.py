"""The benchmark stores facts about a processor, compares with the last run, and describes how cost grows."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import __main__ as benchmark
from benchmarks import environments, growth, measuring, page, processors, results, run_growth
from benchmarks.results import Growth, Results, Row
from benchmarks.workloads import WORKLOADS

XEON = {"name": "Intel(R) Xeon(R) Processor @ 2.0 GHz", "cores": 2, "l1": 48 << 10, "l2": 2 << 20, "l3": 36 << 20,
        "features": ["avx2", "avx512f"]}
FACTS = {"version": "1.0", "python": "3.13.0", "numpy": "2.4.0"}


def made(figures: dict[str, list[float]] | None = None, **changed: Any) -> Results:
    """Results of one row."""
    figures = figures or {"opreg": [2e-6, 2.1e-6], "PyTorch": [4e-6, 4.1e-6], "JAX": [1e-6]}
    row = Row("mlp", "perceptron", "µs", figures)
    grown = Growth("nodes", "binding", "ms", [1, 10], {"opreg": [1e-3, 1e-2]})
    return Results(**{"processor": XEON, "lesser": [], "system": "Linux", "date": "2026-01-02", "commit": "abc",
                      "command": "python -m benchmarks", "rounds": 3, "threads": 2, "rows": [row], "growth": [grown],
                      "columns": dict.fromkeys(figures, FACTS), "remarks": ["something is missing."], **changed})


# ------------------------------------------------------------------------------------------------- files


def test_results_are_restored_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "one.json"
    made().save(path)
    assert results.load(path) == made()
    assert len(path.read_text().splitlines()) < 80  # figures stand on one line


@pytest.mark.parametrize("path", sorted(results.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_file_is_named_by_its_kind(path: Path) -> None:
    assert results.load(path).kind == path.stem


def test_a_kind_is_what_times_depend_on() -> None:
    assert made().kind == "intel-xeon-2-cores-l2-2048k-l3-36864k-avx512f"
    assert made(date="2027-01-01", commit="def", rounds=1).kind == made().kind
    others = [{"processor": {**XEON, **other}} for other in (
        {"cores": 4}, {"l2": 1 << 20}, {"l3": 0}, {"features": ["avx2"]}, {"name": "AMD EPYC"})]
    others += [{"threads": 1}, {"lesser": ["no-avx512"]}, {"lesser": ["no-avx512", "small-cache"]}]
    assert len({made().kind, *(made(**other).kind for other in others)}) == 1 + len(others)


# ------------------------------------------------------------------------------------------------- differences

CHANGES = {
    "the same": ({}, ()),
    "within the scatter": ({"opreg": [2.1e-6, 2.2e-6]}, ()),
    "slower": ({"opreg": [3e-6, 3.1e-6]}, (
        "perceptron: opreg 0.50 → 0.75, 2 / 4 µs (PyTorch) → 3 / 4 µs (PyTorch)",
        "perceptron: opreg 2.00 → 3.00, 2 / 1 µs (JAX) → 3 / 1 µs (JAX)")),
    "slower, but times scatter as much": ({"opreg": [3e-6, 5e-6]}, ()),
    "another peer is ahead": ({"MXNet": [1e-6]}, (
        "perceptron: opreg 0.50 → 2.00, 2 / 4 µs (PyTorch) → 2 / 1 µs (MXNet)",)),
    "a first figure of ours": ({"opreg[fast]": [1e-6]}, ()),
}


@pytest.mark.parametrize("case", CHANGES)
def test_ratios_that_moved_are_named_with_both_figures(case: str) -> None:
    changed, expected = CHANGES[case]
    old = made()
    assert tuple(results.changes(old, made({**old.rows[0].figures, **changed}))) == expected


def test_added_and_removed_rows_are_named() -> None:
    old, new = made(), made()
    new.rows[0] = Row("mlp", "larger perceptron", "µs", new.rows[0].figures)
    assert list(results.changes(old, new)) == ["larger perceptron: was not measured before",
                                               "perceptron: is not measured any more"]


def test_zero_memory_has_no_ratio() -> None:
    assert list(results.changes(made({"opreg": [0.0, 0.0]}), made({"opreg": [0.0, 0.0]}))) == []


# ------------------------------------------------------------------------------------------------- the pages


@pytest.mark.parametrize("path, said", [(page.JOURNAL, page.measured), (page.PAGE, page.ratios)])
def test_the_pages_agree_with_the_files(path: Path, said: Callable[[], str]) -> None:
    """``from benchmarks import page; page.write()`` writes them."""
    text = path.read_text(encoding="utf-8")
    assert text.partition(page.BEGIN)[2].partition(page.END)[0].strip() == said()


def test_ratios_have_a_column_for_each_processor_as_it_is(tmp_path: Path) -> None:
    """The column of a processor without a row has a dash there."""
    other = {**XEON, "name": "Another"}
    adam = Row("adam", "Adam", "ms", {"opreg": [3e-3], "opreg[fast]": [1e-3], "PyTorch": [2e-3]})
    for number, each in enumerate([made(), made(lesser=["no-avx2"]), made(processor=other)]):
        each.rows += [adam] * (number == 2)
        each.save(tmp_path / f"{number}.json")
    assert page.ratios(tmp_path).replace("\N{NO-BREAK SPACE}", " ").splitlines() == [
        f"| work | Another, 2 cores, 36 MiB of last cache | {XEON['name']}, 2 cores, 36 MiB of last cache |",
        "|---|---|---|", "| perceptron | 2.00 / – | 2.00 / – |", "| Adam | 1.50 / 0.50 | – |"]


def test_long_rows_have_their_share_of_the_machine() -> None:
    """The share is that of the faster run of opreg; short rows, and rows without a time, have none."""
    found = {"bytes": 3e6, "memory": 1e-3, "flops": 2e9, "arithmetic": 4e-3}
    figures = {"opreg": [8e-3, 9e-3], "opreg[fast]": [5e-3, 5e-3], "PyTorch": [6e-3]}
    rows = [Row("block", "a block", "ms", figures, found), Row("mlp", "short", "µs", {"opreg": [9e-4]}, found),
            Row("memory", "held", "MB", {"opreg": [2e6]}, found), Row("import", "nothing known", "ms", figures)]
    text = page.section(made(figures, rows=rows))
    titles, _, *lines = [[cell.strip() for cell in line.split("|")][1:-1] for line in text.splitlines()
                         if line.startswith("|")][:6]
    assert titles[-4:] == ["bytes", "of memory", "arithmetic", "of arithmetic"]
    assert [line[-4:] for line in lines] == [["3 MB", "20%", "2 G", "80%"], *[["–"] * 4] * 3]
    assert "at the rate of a large copy" in text and "of memory" not in page.section(made())


def test_rows_that_the_extra_makes_slower_are_named() -> None:
    """A row counts if it is slower by more than the runs without the extra scatter; it may take more memory."""
    slow, same = {"opreg": [5e-3, 6e-3], "opreg[fast]": [9e-3, 9e-3]}, {"opreg": [5e-3, 6e-3], "opreg[fast]": [6.1e-3]}
    rows = [Row("block", "a block", "ms", slow), Row("lstm", "another", "ms", same), Row("held", "held", "MB", slow)]
    assert "- Slower with the extra than without it: a block (1.80).\n" in page.section(made(slow, rows=rows))
    assert "Slower" not in page.section(made(same, rows=rows[1:]))


def test_a_section_has_the_table_and_how_it_was_measured() -> None:
    text = page.section(made(lesser=["no-avx512"]))
    assert "| perceptron | µs | 2 (2.1) | 4 (4.1) | 1 | 0.50 | 2.00 | – |" in text
    assert "- something is missing." in text and "2 cores, 36 MiB of last cache, without AVX-512, with 48 KiB" in text
    assert "2026-01-02 at abc" in text and "JAX 1.0 (Python 3.13.0, NumPy 2.4.0)" in text
    assert "| binding | ms | opreg | 1 | 10 | proportional from 1 on, 1 ms each |" in text


def test_work_by_hand_has_a_ratio_of_its_own_and_is_no_peer() -> None:
    figures = {"opreg": [2e-6], "opreg[fast]": [1e-6], "NumPy": [0.5e-6], "PyTorch": [4e-6]}
    rows = [Row("mlp", "perceptron", "µs", figures), Row("eager", "a call", "µs", {"opreg": [1e-6]})]
    lines = page.section(made(figures, rows=rows)).splitlines()
    assert [lines[0].endswith("| fast / best | ours / by hand |"), *lines[2:4]] == [
        True, "| perceptron | µs | 2 | 1 | 0.5 | 4 | 0.50 | 0.50 | 0.25 | 4.00 |",
        "| a call | µs | 1 | – | – | – | – | – | – | – |"]
    assert "by hand" not in page.section(made())


def test_known_kinds_are_compared_and_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, users, target = tmp_path / "results", tmp_path / "page.md", tmp_path / "journal.md"
    for path in (users, target):
        path.write_text(f"before\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n")
    faster = made({"opreg": [1e-6, 1e-6], "PyTorch": [4e-6, 4e-6]}, date="2026-01-03")
    benchmark._compare_and_keep(made(), True, folder=folder, target=users, journal=target)
    benchmark._compare_and_keep(made(lesser=["no-avx2"]), True, folder=folder, target=users, journal=target)
    assert "Since" not in capsys.readouterr().out
    benchmark._compare_and_keep(faster, True, folder=folder, target=users, journal=target)
    said = capsys.readouterr().out
    assert "Since 2026-01-02 (abc):" in said and "- perceptron: opreg 0.50 → 0.25" in said
    assert {results.load(path).date for path in folder.iterdir()} == {"2026-01-02", "2026-01-03"}
    text = target.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        f"### {XEON['name']}, 2 cores, 36 MiB of last cache",
        f"### {XEON['name']}, 2 cores, 36 MiB of last cache, without AVX2"]
    benchmark._compare_and_keep(made(date="2026-01-04"), False, folder=folder, target=users, journal=target)
    assert "- perceptron: opreg 0.25 → 0.50" in capsys.readouterr().out and target.read_text() == text


def test_rows_measured_again_replace_the_old_ones_with_a_remark(tmp_path: Path) -> None:
    folder, users, target = tmp_path / "results", tmp_path / "page.md", tmp_path / "journal.md"
    for path in (users, target):
        path.write_text(f"{page.BEGIN}\n{page.END}\n")
    other = Row("adam", "the framework's Adam", "ms", {"opreg": [5e-3], "PyTorch": [2e-3]})
    first = made(remarks=["JAX, perceptron: not within 30 s.", "something is missing."])
    first.rows.append(other)
    benchmark._compare_and_keep(first, True, folder=folder, target=users, journal=target)
    again = made({"opreg": [1e-6], "PyTorch": [4e-6], "JAX": [1e-6]}, date="2026-01-05", commit="def", growth=[])
    benchmark._compare_and_keep(again, False, True, folder, users, target)
    kept = results.load(next(folder.iterdir()))
    assert [row.figures["opreg"] for row in kept.rows] == [[1e-6], [5e-3]] and kept.date == "2026-01-02"
    assert kept.growth == first.growth and kept.remarks == ["something is missing."]
    assert "- Measured again on 2026-01-05 at def: perceptron." in target.read_text()


# ------------------------------------------------------------------------------------------------- growth

VERDICTS = [
    ([1, 10, 100, 1000], [1e-6, 1e-5, 1e-4, 1e-3], "proportional from 1 on, 1 µs each"),
    ([1, 10, 100, 1000], [1e-4, 1.1e-4, 2e-4, 1.2e-3], "proportional from 100 on, 1.11 µs each"),
    ([1, 10, 100, 1000], [1e-4, 1e-4, 1e-4, 1.1e-4], "almost constant up to 1,000"),
    ([10, 100, 1000], [1e-5, 1e-4, 1e-2], "not proportional: 100 times as much from 100 to 1,000"),
    ([10, 100, 1000, 10000], [1e-5, 2e-4, 2e-3, 2e-2],
     "proportional from 100 on, 2 µs each; 20 times as much from 10 to 100"),
    ([1, 4, 16, 64], [1e-3, 1e-3, 4e-3, 16e-3], "proportional from 4 on, 250 µs each"),
    ([1, 4], [1e-3, 16e-3], "not proportional: 16 times as much from 1 to 4"),
    ([1, 10, 100], [0.0, 1e-6, 1e-5], "proportional from 10 on, 100 ns each"),
    ([1, 10, 100], [1e-6], "–"),
]


@pytest.mark.parametrize(("sizes", "figures", "expected"), VERDICTS)
def test_growth_is_described_in_words(sizes: list[int], figures: list[float], expected: str) -> None:
    assert growth.verdict("nodes", sizes, figures, "ms") == expected


def test_memory_and_threads_have_units_of_their_own() -> None:
    assert growth.verdict("nodes", [1, 10], [700.0, 7000.0], "MB") == "proportional from 1 on, 700 bytes each"
    assert growth.verdict("threads", [1, 2, 4], [4.0, 2.1, 1.25], "ms") == "3.2 × as fast with 4 threads"


@pytest.mark.parametrize("key", ["nodes", "batch", "parameters"])
def test_every_cost_is_measured(key: str) -> None:
    found = run_growth.MEASURES[key](3, 0.0)
    assert found.keys() == growth.SERIES[key].costs.keys()
    assert all(value > 0 for cost, value in found.items() if cost != "memory")


def test_threads_are_measured_by_rows_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    cases = {each.key: lambda each=each, **sizes: (lambda: ran.append(each.key), None) for each in WORKLOADS}
    monkeypatch.setitem(sys.modules, "benchmarks.run_opreg", SimpleNamespace(CASES={"opreg": cases}))
    assert run_growth.threads(1, 0.0).keys() == growth.SERIES["threads"].costs.keys() == set(ran)


def test_choices_that_take_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(words: list[str], **_: Any) -> Any:
        if words[-1] in ("1000000", "65536"):
            raise growth.subprocess.TimeoutExpired(words, 1, b'{"step": 0.5}\n' if words[3] == "batch" else None)
        costs = growth.SERIES[words[3]].costs
        return SimpleNamespace(stdout="".join(f'{{"{cost}": {size}}}\n' for size in words[6:] for cost in costs))

    monkeypatch.setattr(growth.subprocess, "run", ran)
    options = options_of(columns=["opreg", "PyTorch"], threads=3, seconds=0.1)
    found = {(each.of, each.title): each for each in growth.grown(options)}
    assert {len(each.figures["opreg"]) for each in found.values() if each.of == growth.SERIES["nodes"].of} == {6}
    assert [each.figures["opreg"] for each in found.values() if each.of == growth.SERIES["batch"].of] == [[0.5]]
    assert {tuple(each.sizes) for each in found.values() if each.of == "threads"} == {(1, 2, 3)}
    assert all(each.figures.keys() == {"opreg"} for each in found.values())


# ------------------------------------------------------------------------------------------------- processes


def options_of(**changed: Any) -> Any:
    return SimpleNamespace(**{"here": True, "environments": Path("/nowhere"), "device": "cpu", "machine": None,
                              "processor": [], "cache": "/there", **changed})


def test_without_emulation_workers_get_no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "NUMBA_CPU_NAME", "ATEN_CPU_CAPABILITY", "OPREG_PROCESSOR"):
        monkeypatch.setenv(name, "x")
    found = measuring.variables(Path(sys.executable), options_of(), 2, "numba")
    assert not processors._VARIABLES & found.keys() and found["OMP_NUM_THREADS"] == "2"


def test_workers_get_the_environment_of_an_emulated_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPREG_PROCESSOR", "cores=1")
    found = measuring.variables(Path(sys.executable), options_of(processor=["small-cache"]), 2, "numba")
    assert found["OPREG_PROCESSOR"] == "l1=16K l2=256K l3=2M" and found["OPREG_CACHE_DIR"] == "/there"


@pytest.mark.parametrize("name", [name for name, each in processors.LESSER.items() if each.numpy])
def test_all_libraries_are_notified(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(processors, "_numpy_features", lambda: ["SSE42", "AVX2", "X86_V3", "X86_V4", "AVX512_SPR"])
    monkeypatch.setattr(processors, "_llvm_features", lambda: {"sse4.2": True, "avx2": True, "avx512f": True,
                                                               "amx-tile": False})
    found = processors.settings(name)
    assert found.keys() == processors._VARIABLES - {"OPREG_PROCESSOR", "OPENBLAS_L2_SIZE", "NPY_ENABLE_CPU_FEATURES"}
    avx2 = "-" if name == "no-avx2" else "+"
    assert found["NUMBA_CPU_FEATURES"] == f"+sse4.2,{avx2}avx2,-avx512f,-amx-tile"
    assert found["NPY_DISABLE_CPU_FEATURES"] == ("" if avx2 == "+" else "AVX2 X86_V3 ") + "X86_V4 AVX512_SPR"
    monkeypatch.setattr(processors.platform, "machine", lambda: "arm64")
    with pytest.raises(ValueError, match="x86-64"):
        processors.settings(name)


@pytest.mark.parametrize(("column", "version", "expected"), [
    ("JAX", "0.12.0.1", ""), ("JAX", "0.120.0", "jax==0.12.*"), ("PyTorch", "2.13.0+cpu", ""),
    ("torch.compile", "2.13.1", "torch==2.13.0"), ("MindSpore jit", "2.10.0", ""), ("opreg[fast]", "0.1", "")])
def test_peers_of_other_versions_are_named(column: str, version: str, expected: str) -> None:
    assert environments.other_version(column, version) == expected


def test_interpreters_that_do_not_start_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyenv puts a command for each version on the path; it fails unless the version is chosen."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    places = [tmp_path / "shims" / "python3.99", tmp_path / ".pyenv" / "versions" / "3.99.1" / "bin" / "python"]
    for place, status in zip(places, (127, 0)):
        assert environments._interpreter("python3.99") is None
        place.parent.mkdir(parents=True)
        place.write_text(f"#!/bin/sh\nexit {status}\n")
        place.chmod(0o755)
    assert environments._interpreter("python3.99") == str(places[1])


def test_a_measurement_waits_until_the_worker_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    times, slept = iter([0.0, 0.01, 0.02, 0.02, 9.0]), []
    worker = copy.copy(object.__new__(measuring.Worker))
    worker.process, worker.options = SimpleNamespace(pid=1), options_of()
    monkeypatch.setattr(measuring.Worker, "_time", lambda self: next(times))
    monkeypatch.setattr(measuring, "time", SimpleNamespace(perf_counter=lambda: 0.0, sleep=slept.append))
    worker.rest()
    assert len(slept) == 3

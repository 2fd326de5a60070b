"""Tests of compilation for tests: each text is compiled once, completely, and by any compiler."""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import multiprocessing
import os
from pathlib import Path

import pytest

from tests.cuda import compiled, traffic

TEXT = 'extern "C" float answer() { return wide(narrow<Half>(0.5f)); }'

pytestmark = pytest.mark.skipif(compiled.COMPILER is None, reason="needs a C++ compiler")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder."""
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path)
    for name in ("_header", "_object"):
        monkeypatch.setattr(compiled, name, functools.cache(getattr(compiled, name).__wrapped__))
    return tmp_path


def answer() -> float:
    function = ctypes.CDLL(str(compiled.built(TEXT, "-shared", "-fPIC", suffix=".so"))).answer
    function.restype = ctypes.c_float
    return function()


def test_threads_that_compile_the_same_at_once_leave_one_file(place: Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        assert [*threads.map(lambda _: answer(), range(3))] == [0.5] * 3
    assert sorted(path.suffix for path in place.iterdir()) == [".cpp", ".cpp", ".gch", ".h", ".o", ".so"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_that_compile_the_same_at_once_leave_one_file(place: Path) -> None:
    children = [multiprocessing.get_context("fork").Process(target=answer) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert answer() == 0.5
    assert sorted(path.suffix for path in place.iterdir()) == [".cpp", ".cpp", ".gch", ".h", ".o", ".so"]


def test_cached_functions_are_not_compiled_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer() == 0.5
    monkeypatch.setattr(compiled, "_compile", None)
    assert answer() == 0.5


def test_a_kept_text_is_made_once_for_the_same_parts(place: Path) -> None:
    found = [compiled.kept(lambda: text, *parts) for text, parts in
             [("first", ("-O3", "a")), ("second", ("-O3", "a")), ("third", ("-O3", "b"))]]
    assert found == ["first", "first", "third"]


def test_other_words_in_comments_of_headers_compile_nothing_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header, found = place / "own.h", []
    monkeypatch.setitem(compiled._HEADERS, "own", [header])
    monkeypatch.setitem(compiled._OBJECTS, "own", [])
    for text in ("int a;  // one\n", "int a;  // two\n", "int b;  // two\n"):
        header.write_text(text)
        compiled._content.cache_clear()
        found.append(compiled.built("", "-c", header="own", suffix=".o"))
    assert found[0] == found[1] != found[2]


def test_files_that_nobody_has_read_for_long_are_deleted(place: Path) -> None:
    (place / "numba").mkdir()
    a, b, c, d = (24 * letter for letter in "abcd")
    for name, read in ((f"{a}.so", 10), (f"{b}.so", 1000), (f"numba/{c}.code", 10), (d, 10), ("notes.txt", 10)):
        (place / name).touch()
        os.utime(place / name, (read, 10))  # when it was read, and when it was written
    compiled.forget(place, 500)
    assert sorted(path.name for path in place.rglob("*")) == [f"{b}.so", "notes.txt", "numba"]


def test_libraries_that_are_linked_are_no_part_of_a_compiled_header(place: Path) -> None:
    compiled.built("", "-shared", "-fPIC", *traffic.FLAGS, header="counted host", suffix=".so")
    header, = place.glob("*.gch")
    assert not header.read_bytes().startswith(b"\x7fELF")


def test_a_compiler_that_makes_nothing_of_headers_reads_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile(*arguments: str) -> None:
        if "c++-header" in arguments:
            raise compiled.KernelError("what is that?")
        real(*arguments)

    real = compiled._compile
    monkeypatch.setattr(compiled, "_compile", compile)
    assert answer() == 0.5
    assert not [*place.glob("*.gch*")]

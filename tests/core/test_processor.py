"""Facts about the processor, on systems that describe it completely, partly or not at all."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from opreg.core import processor
from opreg.core.processor import USUAL, Processor
from opreg.errors import ArgumentError

INTEL = ("processor\t: 0\nmodel name\t: Intel(R)  Xeon(R)\nflags\t\t: fpu avx avx2 fma avx512f nonsense\n\n"
         "processor\t: 1\nmodel name\t: another\n")
ARM = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"


def cache(level: object, kind: str, size: str, shared: str) -> dict[str, str]:
    return {"level": f"{level}\n", "type": f"{kind}\n", "size": f"{size}\n", "shared_cpu_list": f"{shared}\n"}


USUALLY = [cache(1, "Data", "48K", "0"), cache(1, "Instruction", "32K", "0"), cache(2, "Unified", "2048K", "0"),
           cache(3, "Unified", "105M", "0-63")]


def system(root: Path, caches: dict[int, list[dict[str, str]]], **files: str) -> Path:
    """A folder with system files of Linux; ``__`` in a name stands for a slash."""
    for cpu, listed in caches.items():
        for number, words in enumerate(listed):
            for word, text in words.items():
                files[f"sys__devices__system__cpu__cpu{cpu}__cache__index{number}__{word}"] = text
    for name, text in files.items():
        path = root.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the system by Linux on processors 0 to 3; the tests write its files."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(processor, "_allowed_cores", lambda: [0, 1, 2, 3])


@pytest.mark.parametrize(("caches", "expected"), [
    pytest.param({0: USUALLY, 3: USUALLY}, (48 << 10, 2 << 20, 105 << 20), id="all is told"),
    pytest.param({}, (USUAL.l1, USUAL.l2, USUAL.l3), id="nothing is told"),
    pytest.param({0: USUALLY[:3]}, (48 << 10, 2 << 20, 0), id="there is no third"),
    pytest.param({0: USUALLY, 3: [cache(1, "Data", "32K", "3"), cache(2, "Unified", "1M", "3")]},
                 (32 << 10, 1 << 20, 105 << 20), id="the last core is a lesser one"),
    pytest.param({0: [cache(1, "Data", "48K", "0-1"), cache(2, "Unified", "4M", "0-3,8")]}, (24 << 10, 1 << 20, 0),
                 id="threads of ours share it"),
    pytest.param({0: [cache(2, "Unified", "2M", "0,64-127")]}, (USUAL.l1, 2 << 20, 0), id="threads of others share it"),
    pytest.param({0: [cache(1, "Data", "0K", "0"), cache(2, "Unified", "much", "0"), cache(3, "Unified", "-1", "0")]},
                 (USUAL.l1, USUAL.l2, USUAL.l3), id="sizes are nonsense"),
    pytest.param({0: [cache(2, "Unified", "9" * 12 + "G", "0"), cache(9, "Unified", "1M", "0"),
                      cache("x", "Data", "1M", "0")]}, (USUAL.l1, USUAL.l2, USUAL.l3), id="sizes cannot be"),
    pytest.param({0: [cache(2, "Unified", "2M", "0-999999999999,x,-,5-1")]}, (USUAL.l1, 512 << 10, 0),
                 id="lists are nonsense"),
])
@pytest.mark.usefixtures("linux")
def test_caches_are_read(tmp_path, caches, expected):
    found = processor.read(system(tmp_path, caches))
    assert (found.l1, found.l2, found.l3) == expected


@pytest.mark.parametrize(("text", "name", "features"), [
    (INTEL, "Intel(R) Xeon(R)", ("avx", "avx2", "fma", "avx512f")), (ARM, "0x41 0xd4f", ("asimd", "sve")),
    ("model name : " + "x" * 10_000, "x" * 100, ())])
@pytest.mark.usefixtures("linux")
def test_names_and_features_are_read(tmp_path, text, name, features):
    found = processor.read(system(tmp_path, {}, proc__cpuinfo=text))
    assert (found.name, found.features) == (name, features)


@pytest.mark.usefixtures("linux")
def test_a_processor_without_a_name_has_that_of_its_kind(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_bytes(b"\xff\0\n" * 10)
    assert processor.read(tmp_path).name


@pytest.mark.parametrize(("files", "cores"), [
    ({}, 4),
    ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpu.max": "200000 100000\n"}, 2),
    ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpu.max": "110000 100000\n"}, 2),
    ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpu.max": "10 100000\n"}, 1),
    ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpu.max": "max 100000\n"}, 4),
    ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpu.max": "much 0\n"}, 4),
    ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpu.max": "100000 0\n"}, 4),
    ({"proc__self__cgroup": "0::/a/b\n", "sys__fs__cgroup__a__cpu.max": "300000 100000"}, 3),
    ({"proc__self__cgroup": "0::/../b\n", "sys__fs__cgroup__cpu.max": "300000 100000"}, 4),
    ({"proc__self__cgroup": "3:cpu,cpuacct:/a\n2:pids:/a\n",
      "sys__fs__cgroup__cpu,cpuacct__a__cpu.cfs_quota_us": "99\n",
      "sys__fs__cgroup__cpu,cpuacct__a__cpu.cfs_period_us": "33\n"}, 3),
    ({"proc__self__cgroup": "3:cpu:/a\n", "sys__fs__cgroup__cpu__a__cpu.cfs_quota_us": "-1\n",
      "sys__fs__cgroup__cpu__a__cpu.cfs_period_us": "33\n"}, 4),
    ({"proc__self__cgroup": "nonsense"}, 4)])
@pytest.mark.usefixtures("linux")
def test_a_group_may_have_less_than_all_cores(tmp_path, files, cores):
    assert processor.read(system(tmp_path, {}, **files)).cores == cores


@pytest.mark.parametrize("answers", [
    {"hw.perflevel0.l1dcachesize": 128 << 10, "hw.perflevel1.l1dcachesize": 64 << 10,
     "hw.perflevel0.l2cachesize": 16 << 20, "hw.perflevel0.cpusperl2": 4, "hw.perflevel1.l2cachesize": 4 << 20,
     "hw.perflevel1.cpusperl2": 4, "hw.l2cachesize": 4 << 20, "machdep.cpu.brand_string": "Apple"},
    {"hw.l1dcachesize": 64 << 10, "hw.l2cachesize": 1 << 20, "machdep.cpu.brand_string": "Apple"}])
def test_facts_of_macos_come_from_sysctl(monkeypatch, answers):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(processor, "_sysctl", lambda name, text=False: answers.get(name))
    found = processor.read(Path("/nowhere"))
    assert (found.name, found.l1, found.l2, found.l3) == ("Apple", 64 << 10, 1 << 20, 0)


@pytest.mark.parametrize(("text", "changed"), [
    ("", {}), ("l2=256K", {"l2": 256 << 10}), ("cores=1, l1=16k l3=0", {"cores": 1, "l1": 16 << 10, "l3": 0}),
    ("l2=65536", {"l2": 1 << 16})])
def test_the_environment_overrides_the_processor(text, changed):
    assert processor._override(USUAL, text) == USUAL._replace(**changed)


@pytest.mark.parametrize(("text", "message"), [
    ("L2=1M", "Did you mean 'l2'"), ("l2", "from 65536 to"), ("l2=1", "from 65536 to"), ("cores=0", "from 1 to"),
    ("l2=1M;l3=1M", "'l2=1M;l3=1M'")])
def test_overridden_properties_are_checked(text, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        processor._override(USUAL, text)


def test_the_running_processor_is_read():
    found = processor.processor()
    assert isinstance(found, Processor) and found.name
    assert 1 <= found.cores <= (os.cpu_count() or 1)

"""Programs of several processes: groups, stores, operators, and the end of all processes when one fails."""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import opreg as mx
from opreg.command import main
from opreg.distributed import segments
from tests.distributed.ranks import ROOT, Done, launch, needs_mpi, outcomes, started

CHECKS = ["reductions", "places", "moves", "under_way", "same_sums", "other_groups", "agreement", "store",
          "store_with_optimizer", "compression", "horovod", "same_answer", "given_stores", "other_networks",
          "executors", "operators", "windows", "no_update_is_lost", "nobody_waits", "weights_on_owners",
          "one_after_the_other", "async_states", "async_learning", "between_two", "symbols", "mindspore_names",
          "cells", "cells_in_the_plan", "reduced_gradients", "statistics_of_all", "devices"]


@needs_mpi
def test_checks_pass_on_two_ranks(tmp_path: Path) -> None:
    """All checks pass on both of two ranks, which run one after the other."""
    wrong = {name: said for name, said in outcomes("distributed_checks", CHECKS, tmp_path).items() if said}
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())


def _stopped(program: str, folder: Path) -> Done:
    """End of a program of two ranks in which rank 0 could not go on."""
    script = folder / "program.py"
    script.write_text(program)
    done = launch(script, patience=1)
    assert done.code > 0 and "RankError: rank 0 cannot go on with call" in done.err, done
    return done


#: The program of rank 1, and the error of rank 0 when rank 1 does something else.
FAULTS = {
    "dies": ("os.kill(os.getpid(), 9)", ["rank 1: its process", "was ended by SIGKILL"]),
    "ends": ("sys.exit(3)", ["rank 1: its program has ended"]),
    "hangs": ("time.sleep(1000)", ["rank 1: not here after 1 seconds", "allreduce(sum) of float32 (4,)"]),
    "raises in an operator": ("broken(mx.nd.ones(2)).asnumpy()", ["rank 1: ValueError: no such digit"]),
    "other shapes": ("group.allreduce(np.ones(5))", ["it waits in call", "allreduce(sum) of float64 (5,)"]),
}
FAULTY = """
import os, sys, time
import numpy as np
import opreg as mx
from opreg.distributed import world

@mx.operator.define
def broken(x):
    raise ValueError("no such digit")

group, own = world(), np.ones(4, np.float32)
group.allreduce(own)
if group.rank == 1:
    {fault}
group.allreduce(own)
print("went on")
"""


@needs_mpi
@pytest.mark.parametrize("fault", FAULTS)
def test_other_ranks_stop_when_one_fails(fault: str, tmp_path: Path) -> None:
    """The error names rank and reason, and all processes end."""
    program, expected = FAULTS[fault]
    done = _stopped(FAULTY.format(fault=program), tmp_path)
    assert "went on" not in done.out and all(text in done.err for text in expected), done


#: Faults of rank 1, and the error of rank 0, which pushes on and on.
ASYNC_FAULTS = {
    "raises": ("raise ValueError('no such digit')", "rank 1: ValueError: no such digit"),
    "dies with a lock": ("kv._entries['a'].lock('').__enter__(); os.kill(os.getpid(), 9)", "rank 1: its process"),
}
PUSHING = """
import os
import opreg as mx

kv = mx.kv.create("dist_async")
kv.init("a", mx.nd.zeros(5))
kv.set_optimizer(mx.optimizer.create("sgd"))
kv.push("a", mx.nd.ones(5))
if kv.rank == 1:
    {fault}
while True:
    kv.push("a", mx.nd.ones(5))
"""


@needs_mpi
@pytest.mark.parametrize("fault", ASYNC_FAULTS)
def test_other_ranks_stop_even_if_they_do_not_wait(fault: str, tmp_path: Path) -> None:
    program, expected = ASYNC_FAULTS[fault]
    done = _stopped(PUSHING.format(fault=program), tmp_path)
    assert expected in done.err, done


@needs_mpi
def test_a_rank_that_has_ended_waits_for_others_that_push(tmp_path: Path) -> None:
    script = tmp_path / "pushing.py"
    script.write_text(PUSHING.format(fault="pass").replace(
        "while True", "else:\n    mx.distributed.set_timeout(0.05)\nfor _ in range(2000 * kv.rank)"))
    done = launch(script)
    assert done == (0, "", ""), done


@needs_mpi
def test_versions_are_compared(tmp_path: Path) -> None:
    script = tmp_path / "versions.py"
    script.write_text("import os, opreg\nif os.environ['PMI_RANK'] == '1':\n    opreg.__version__ = '0.0.7'\n"
                      "opreg.distributed.world()\n")
    done = launch(script, patience=1)
    assert done.code > 0 and "the versions of rank 1 is opreg 0.0.7" in done.err, done


@needs_mpi
def test_training_goes_on_with_fewer_processes(tmp_path: Path) -> None:
    """The example is stopped after its first epoch; one process learns the same as two would have learned."""
    example, last = ROOT / "examples" / "train_distributed.py", tmp_path / "digits-0002.params"
    done = launch(example, "--epochs", 2, "--folder", tmp_path)
    assert done.code == 0 and "2 processes" in done.out, done
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"digits-000{epoch}.{kind}" for epoch in (1, 2) for kind in ("params", "states")]
    together = mx.nd.load(str(last))
    last.unlink()
    subprocess.run([sys.executable, example, "--epochs", "2", "--folder", tmp_path, "--resume"], check=True,
                   cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    for name, value in mx.nd.load(str(last)).items():
        np.testing.assert_allclose(value.asnumpy(), together[name].asnumpy(), 1e-2, 1e-4)


# The end of a job: its exit code, and leftovers.

#: A rank that prints its parent processes up to the launcher, and the names of its shared memory. It waits
#: by reading from a pipe that signals write to: signal.pause() would miss one that comes just before it.
WAITING = """
import multiprocessing, os, signal, sys
signals, written = os.pipe()
os.set_blocking(written, False)
signal.set_wakeup_fd(written)
{first}

def parent(process):
    return int(open(f"/proc/{{process}}/stat").read().rpartition(")")[2].split()[1])

names = [line.split()[5] for line in open("/proc/self/maps") if "/dev/shm/mpich" in line and "deleted" not in line]
processes = [os.getpid()]
while parent(processes[-1]) != {test}:
    processes.append(parent(processes[-1]))
sys.stdout.write(f"{{' '.join(map(str, [*{more}, *processes[:-1]]))}},{{' '.join(names)}}\\n")
sys.stdout.flush()
{then}
"""
OURS = "from opreg.distributed import world\nworld()"
MPI4PY = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()"
needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open") or not os.path.exists("/proc/self/maps"),
                                 reason="processes are watched by Linux's means")


class Job:
    """A job whose ranks all wait: its launcher, all other processes, and names of its shared memory."""

    def __init__(self, folder: Path, first: str = OURS, then: str = "os.read(signals, 1)", more: str = "[]",
                 environ: Mapping[str, str] | None = None):
        script = folder / "waiting.py"
        script.write_text(WAITING.format(first=first, then=then, more=more, test=os.getpid()))
        self.launcher = started(script, environ=environ)
        self.others: dict[int, int] = {}
        self.names: list[str] = []
        for _ in range(2):
            processes, names = self.line().split(",")
            self.names += names.split()
            for process in map(int, processes.split()):
                if process not in self.others:
                    self.others[process] = os.pidfd_open(process)

    def line(self) -> str:
        """The next line that a rank writes."""
        assert self.launcher.stdout is not None
        line = self.launcher.stdout.readline()
        assert line, self.launcher.communicate()
        return line.strip()

    def ended(self) -> Done:
        """End of the launcher, once its processes and files are gone."""
        try:
            out, err = self.launcher.communicate(timeout=60)
            for process, number in self.others.items():
                assert select.select([number], [], [], 60)[0], f"process {process} goes on"
            assert not [name for name in self.names if os.path.exists(name)]
            return Done(self.launcher.returncode, out, err)
        finally:
            for process, number in self.others.items():
                if not select.select([number], [], [], 0)[0]:
                    os.kill(process, signal.SIGKILL)
                os.close(number)


@contextlib.contextmanager
def disposition(name: str, effect: signal.Handlers) -> Iterator[None]:
    """A context in which started programs ignore a signal, or do not, whatever the tests do."""
    number = getattr(signal, name)
    if number == signal.SIGKILL:
        yield
        return
    before = signal.signal(number, effect)
    try:
        yield
    finally:
        signal.signal(number, before)


#: Code that starts a process and waits until it runs, since Python may miss an interrupt while it starts. It waits
#: like a rank, on a pipe. by a pipe of its own.
CHILD = """
begun, begins = os.pipe()

def wait():
    signals, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written)
    os.write(begins, b"!")
    os.read(signals, 1)

child = multiprocessing.get_context("fork").Process(target=wait)
child.start()
os.read(begun, 1)
"""

#: Signals that end a launcher, and its exit code.
SIGNALS = {"SIGTERM": 143, "SIGHUP": 129, "SIGINT": 130, "SIGQUIT": 131, "SIGKILL": -9}


@needs_mpi
@needs_pidfd
@pytest.mark.parametrize("name, first", [
    *[pytest.param(name, OURS, id=name) for name in SIGNALS],
    *[pytest.param(name, MPI4PY, id=f"{name}, mpi4py") for name in ("SIGINT", "SIGKILL")],
    *[pytest.param(name, "", id=f"{name}, without MPI") for name in ("SIGTERM", "SIGKILL")]])
def test_nothing_outlives_the_launcher(name: str, first: str, tmp_path: Path) -> None:
    """All processes end, also those that ranks have started, and shared memory is removed."""
    with disposition(name, signal.SIG_DFL):  # a shell makes background processes ignore some signals
        job = Job(tmp_path, first + CHILD, more="[child.pid]")
    job.launcher.send_signal(getattr(signal, name))
    assert job.ended().code == SIGNALS[name]


#: A rank that is interrupted once more while its interpreter ends, when Python's handlers are gone, before MPI's end.
AGAIN = """
import signal

class Again:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
        kill(process, number)

again = Again() if MPI.COMM_WORLD.rank else None
"""


@needs_mpi
@needs_pidfd
def test_a_second_interrupt_does_not_keep_others_waiting(tmp_path: Path) -> None:
    """MPI's launcher and the process above a rank may both interrupt it."""
    with disposition("SIGINT", signal.SIG_DFL):
        job = Job(tmp_path, MPI4PY + AGAIN)
    job.launcher.send_signal(signal.SIGINT)
    assert job.ended().code == SIGNALS["SIGINT"]


#: Code that rank 1 runs when its Python starts: it waits until rank 0 has made the shared memory.
LATE = """
import os

if os.environ.get("PMI_RANK") == "1":
    while not [name for name in os.listdir("/dev/shm") if name.startswith("mpich") and name not in {before!r}]:
        os.sched_yield()
"""
#: Actions of rank 0 when it gets a signal to end, while rank 1 ends at once.
SAVING = """
import select

if os.environ["PMI_RANK"] == "0":
    def told(number, frame):
        select.select([], [], [], 0.3)  # time for the other to end
        open({saved!r}, "w").close()
        os._exit(5)

    signal.signal(signal.SIGTERM, told)
"""


@needs_mpi
@needs_pidfd
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_rank_saves_its_work_after_another_rank_has_ended(name: str, tmp_path: Path) -> None:
    """The other rank saves its work, also if the first one ended just after its start."""
    (tmp_path / "sitecustomize.py").write_text(LATE.format(before=os.listdir("/dev/shm")))
    saved = tmp_path / "saved"
    job = Job(tmp_path, MPI4PY + SAVING.format(saved=str(saved)),
              environ={"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    job.launcher.send_signal(getattr(signal, name))
    assert job.ended().code == SIGNALS[name] and saved.exists()


#: Actions of a rank that gets a signal to end, and the end of its job when the launcher gets as many.
ON_THE_WAY = {"saves and ends": ("saving", "sys.exit(5)", 1), "does not end": ("no", "pass", 2)}
HANDLER = """
def told(number, frame):
    sys.stdout.write("{word}\\n")
    sys.stdout.flush()
    {then}

signal.signal(signal.SIGTERM, told)
"""


@needs_mpi
@needs_pidfd
@pytest.mark.parametrize("kind", ON_THE_WAY)
def test_a_rank_has_time_to_end(kind: str, tmp_path: Path) -> None:
    """The rank may go on until its launcher gets a second signal."""
    word, then, times = ON_THE_WAY[kind]
    job = Job(tmp_path, HANDLER.format(word=word, then=then), "while True:\n    os.read(signals, 1)")
    job.launcher.terminate()
    assert [job.line(), job.line()] == [word, word]
    for _ in range(times - 1):
        job.launcher.terminate()
    assert job.ended().code == 143


@needs_mpi
@needs_pidfd
def test_a_launcher_goes_on_ignoring_ignored_signals(tmp_path: Path) -> None:
    """A launcher that ``nohup`` started ignores SIGHUP."""
    with disposition("SIGHUP", signal.SIG_IGN):
        job = Job(tmp_path, "")
    job.launcher.send_signal(signal.SIGHUP)
    job.launcher.terminate()
    assert job.ended().code == 143


#: Programs whose rank 1 does not reach its end, and whether an error says so.
UNFINISHED = {
    "at once": ("if rank: os._exit(0)", True),
    "among the others": (f"{OURS}\nif rank: os._exit(0)\nworld().barrier()", True),
    "by mpi4py alone": ("from mpi4py import MPI\nif rank: os._exit(0)\nMPI.COMM_WORLD.Barrier()", True),
    "when it ends": (f"{OURS}\nimport atexit\nif rank: atexit.register(os._exit, 0)", True),
    "a child comes to its end": ("if rank:\n    if os.fork(): os.wait(); os._exit(0)", True),
    "by another program": ("if rank: os.execv(sys.executable, [sys.executable, '-c', ''])", False),
    "by exit": ("if rank: sys.exit()", False),
    "by an exit of a child": ("if rank and not os.fork(): os._exit(0)", False),
}


@needs_mpi
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="tells whether another program has run")
@pytest.mark.parametrize("kind", UNFINISHED)
def test_a_program_that_ends_early_fails_the_job(kind: str, tmp_path: Path) -> None:
    program, said = UNFINISHED[kind]
    script = tmp_path / "program.py"
    script.write_text(f"import os, sys\nrank = int(os.environ['PMI_RANK'])\n{program}\n")
    done = launch(script, patience=1)
    assert bool(done.code) == said and ("rank 1, process" in done.err) == said, done
    assert not said or "has ended before its program did" in done.err


@needs_mpi
def test_rank_0_reads_the_standard_input_of_the_launcher(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import sys\nsys.stdout.write(f'{len(sys.stdin.read())}\\n')\n")
    text = "a line\n" * 100_000
    done = launch(script, given=text)
    assert done.code == 0 and sorted(done.out.split()) == ["0", str(len(text))], done
    assert sorted(launch(script).out.split()) == ["0", "0"]
    script.write_text("pass\n")  # and need not read it
    assert launch(script, given=text) == (0, "", "")


@needs_mpi
def test_a_launcher_runs_without_any_input_or_output(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"import sys\nopen({str(tmp_path)!r} + '/done' + __import__('os').environ['PMI_RANK'], 'w')"
                      ".write(sys.stdin.read() if sys.stdin else 'nothing')\n")
    command = f"exec {sys.executable} -m opreg launch -n 2 {script} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False, timeout=60, cwd=ROOT).returncode == 0
    assert sorted(path.name for path in tmp_path.glob("done*")) == ["done0", "done1"]


@needs_mpi
def test_a_rank_may_launch_processes(tmp_path: Path) -> None:
    """Both ranks of a launched program launch two processes each."""
    inner, outer = tmp_path / "inner.py", tmp_path / "outer.py"
    inner.write_text("import sys\nfrom opreg.distributed import world\nsys.stdout.write(f'{world().size}\\n')\n")
    outer.write_text("import subprocess, sys\nfrom opreg.distributed import world\nworld()\nsubprocess.run("
                     f"[sys.executable, '-m', 'opreg', 'launch', '-n', '2', {str(inner)!r}], check=True)\n")
    done = launch(outer)
    assert done.code == 0 and done.out.split() == ["2"] * 4, done


@pytest.mark.parametrize("words, said", [
    (["-n", "0"], "0 processes: expected 1 to"), (["-n", "-3"], "-3 processes: expected 1 to"),
    (["-n", "100000"], "100000 processes: expected 1 to"), (["-n", "9" * 30], "processes: expected 1 to"),
    (["-n", "2", "--timeout", "nan"], "--timeout nan: expected seconds"),
    (["-n", "2", "--timeout", "-1"], "--timeout -1: expected seconds"),
    (["-n", "2", "--timeout", "inf"], "--timeout inf: expected seconds")])
def test_launches_that_are_refused_before_anything_starts(words: list[str], said: str, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch,
                                                          capsys: pytest.CaptureFixture) -> None:
    script = tmp_path / "program.py"
    script.write_text("")
    monkeypatch.setattr(subprocess, "Popen", None)
    assert main(["launch", *words, str(script)]) == 2
    err = capsys.readouterr().err
    assert said in err and len(err.splitlines()) == 1


def test_shared_memory_in_use_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_FOLDER", str(tmp_path))
    for name in ("shm_mapped", "shm_opened", "shm_unused", "vci_unused"):
        (tmp_path / f"mpich_{name}").write_bytes(b"memory")
    (tmp_path / "of_another_kind").write_bytes(b"")
    with open(tmp_path / "mpich_shm_opened", "rb"):
        with open(tmp_path / "mpich_shm_mapped", "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        segments.remove_unused(1 + max(path.stat().st_ctime_ns for path in tmp_path.iterdir()))
        assert len(list(tmp_path.iterdir())) == 5  # made before that time
        segments.remove_unused(segments.current_time() - 10 ** 10)
        left = sorted(path.name for path in tmp_path.iterdir())
        assert left == ["mpich_shm_mapped", "mpich_shm_opened", "of_another_kind"]
        segments.forget_names()
        assert not (tmp_path / "mpich_shm_mapped").exists() and bytes(mapped) == b"memory"
        mapped.close()

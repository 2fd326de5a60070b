"""Programs of several processes: groups, stores, operators, and what becomes of the others when one fails."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import opreg as mx

from .ranks import ROOT, Done, launch, needs_mpi, outcomes

CHECKS = ["reductions", "places", "moves", "under_way", "same_sums", "other_groups", "agreement", "store",
          "store_with_optimizer", "compression", "horovod", "same_answer", "given_stores", "other_networks",
          "executors", "operators", "windows", "no_update_is_lost", "nobody_waits", "weights_on_owners",
          "one_after_the_other", "async_states", "async_learning", "between_two", "symbols", "mindspore_names",
          "cells", "cells_in_the_plan", "reduced_gradients", "statistics_of_all", "devices"]


@functools.cache
def _outcomes() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        return outcomes("distributed_checks", CHECKS, Path(folder))


@needs_mpi
@pytest.mark.parametrize("name", CHECKS)
def test_two_ranks(name: str) -> None:
    assert not _outcomes()[name], _outcomes()[name]


def _stopped(program: str, folder: Path) -> Done:
    """How a program of two ranks has ended, of which rank 0 could not go on."""
    script = folder / "program.py"
    script.write_text(program)
    done = launch(script, patience=1)
    assert done.code > 0 and "RankError: rank 0 cannot go on with call" in done.err, done
    return done


#: What becomes of rank 0 where rank 1 does something else than it: the program of rank 1, and what the error says.
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
def test_others_stop(fault: str, tmp_path: Path) -> None:
    """With an error that names rank and reason, and all processes are gone."""
    program, expected = FAULTS[fault]
    done = _stopped(FAULTY.format(fault=program), tmp_path)
    assert "went on" not in done.out and all(text in done.err for text in expected), done


#: What becomes of rank 0, which pushes on and on, where rank 1 does not.
ASYNC_FAULTS = {
    "raises": ("raise ValueError('no such digit')", "rank 1: ValueError: no such digit"),
    "dies with a lock": ("kv._entries['a'].locked('').__enter__(); os.kill(os.getpid(), 9)", "rank 1: its process"),
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
def test_others_stop_who_wait_for_nobody(fault: str, tmp_path: Path) -> None:
    program, expected = ASYNC_FAULTS[fault]
    done = _stopped(PUSHING.format(fault=program), tmp_path)
    assert expected in done.err, done


@needs_mpi
def test_who_has_ended_waits_for_who_pushes_on(tmp_path: Path) -> None:
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
    """The example, stopped after its first epoch: one process learns what two would have learned."""
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

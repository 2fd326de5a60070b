"""Programs of two processes for tests, which ``opreg launch`` starts; each is killed after a timeout."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent.parent

#: The reason to skip tests of several processes; None if they can run.
MISSING = (None if importlib.util.find_spec("mpi4py") and
           (Path(sys.executable).with_name("mpiexec").exists() or shutil.which("mpiexec")) else
           "needs mpi4py and mpiexec, which the extra `mpi` brings")
needs_mpi = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


class Done(NamedTuple):
    """End of a program: its exit code, -1 if it had to be killed, and its output."""

    code: int
    out: str
    err: str


def started(*program: object, count: int = 2, patience: float = 10, environ: Mapping[str, str] | None = None,
            folder: Path | None = None, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """A launcher of several single-threaded processes, which wait ``patience`` seconds for each other."""
    own = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPREG_NUM_THREADS": "1",
           "OPENBLAS_NUM_THREADS": "1", "HYDRA_LAUNCHER": "fork", **(environ or {})}
    command = [sys.executable, "-m", "opreg", "launch", "-n", str(count), "--timeout", str(patience),
               *map(str, program)]
    return subprocess.Popen(command, env=own, cwd=folder, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True)


def launch(*program: object, timeout: float = 60, given: str | None = None, **settings: object) -> Done:
    """Runs a program in several processes to its end; ``given`` is its input.

    Starts ranks and waits until all of them have ended; they end with their launcher.
    """
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    with started(*program, stdin=stdin, **settings) as process:  # type: ignore[arg-type]
        try:
            out, err = process.communicate(given, timeout=timeout)
            return Done(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                out, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            return Done(-1, out, err)


def outcomes(module: str, names: list[str], folder: Path, **settings: object) -> dict[str, str]:
    """Outcomes of a module's checks on all ranks, by name: an empty text, or the error.

    The module's functions of these names run one after the other on each of two ranks.
    """
    results = folder / "results.json"
    done = launch(Path(__file__), Path(__file__).with_name(f"{module}.py"), results, *names, folder=folder,
                  **settings)  # type: ignore[arg-type]
    found: dict[str, str] = json.loads(results.read_text()) if results.exists() else {}
    return {name: found.get(name, f"did not run: {done}") for name in names}


def _run(path: str, results: str, *names: str) -> None:
    """Runs one rank of ``outcomes``."""
    import traceback

    from opreg.distributed import world

    spec = importlib.util.spec_from_file_location("checks", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["checks"] = module
    spec.loader.exec_module(module)
    group, found = world(), {}
    for name in names:
        try:
            getattr(module, name)(group)
            mine = ""
        except Exception:
            mine = f"rank {group.rank}:\n{traceback.format_exc()}"
        found[name] = "\n".join(str(each) for each in group.exchange(mine) if each)
        if group.rank == 0:
            Path(results).write_text(json.dumps(found))


if __name__ == "__main__":
    _run(*sys.argv[1:])

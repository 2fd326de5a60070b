"""Programs in separate processes, forked from one that has imported opreg, since the import takes longer than most of
these programs."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["run"]

ROOT = Path(__file__).parent.parent

# Each line that it reads is a program, which a forked process runs after this text; it answers with the exit status.
_SERVER = """
import atexit, gc, json, os, sys, threading, warnings
import opreg
opreg.nd.relu, opreg.sym.var  # not opreg.nn: it reads the environment as it is imported
gc.collect()
gc.freeze()  # a collection in a child would copy the memory of all these objects
for _line in iter(sys.stdin.readline, ""):
    _asked = json.loads(_line)
    with warnings.catch_warnings(action="ignore"):  # Python warns of threads of libraries, of which a child has none
        _child = os.fork()
    if not _child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(_child, 0)[1]), flush=True)
else:
    sys.exit()
for _number, _path in enumerate((os.devnull, *_asked["printed"])):
    _file = os.open(_path, os.O_WRONLY if _number else os.O_RDONLY)
    os.dup2(_file, _number)
    os.close(_file)
os.environ.clear()
os.environ.update(_asked["env"])
os.chdir(_asked["folder"])
sys.argv = ["-c", *_asked["words"]]
_code = 0
try:
    exec(_asked["program"])
except SystemExit as _end:
    _code = _end.code if isinstance(_end.code, int) else int(_end.code is not None)
    if isinstance(_end.code, str):
        print(_end.code, file=sys.stderr)
except BaseException:
    sys.excepthook(*sys.exc_info())
    _code = 1
# The end of Python without its last step, which frees all modules one by one.
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(_code & 255)
"""


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The process that the others are forked from."""
    made = subprocess.Popen([sys.executable, "-W", "error", "-c", _SERVER], stdin=subprocess.PIPE, text=True,
                            stdout=subprocess.PIPE, cwd=ROOT, env={**_ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"})
    atexit.register(made.__exit__, None, None, None)  # closes its input, after which it ends
    return made


#: The environment before tests change it.
_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def run(program: str, *words: object, folder: Path = ROOT,
        env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the text of a program with arguments, where every warning is an error, as ``python -W error -c`` does.

    The modules of opreg are already there. Programs for which the order of imports matters are no programs for this.
    """
    server = _server()
    assert server.stdin and server.stdout
    with tempfile.TemporaryDirectory() as kept:
        printed = [Path(kept, name) for name in ("stdout", "stderr")]
        for path in printed:
            path.touch()
        asked = {"program": program, "words": [*map(str, words)], "folder": str(folder), "env": dict(env or os.environ),
                 "printed": [*map(str, printed)]}
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        assert answer, "the process that forks has ended"
        return subprocess.CompletedProcess([program, *words], int(answer), *[path.read_text() for path in printed])

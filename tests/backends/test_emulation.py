"""Emulation of a smaller processor for libraries and block sizes: results equal those of this processor."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.processors import settings, without
from opreg.backends.numba import compiler
from opreg.backends.onednn import shared_library
from opreg.core.processor import processor

ROOT = Path(__file__).parent.parent.parent

#: Work of the benchmark, in sizes that are soon done and larger than the blocks of a small cache.
SIZES = {"gelu_training": {"n": 150_000}, "norm_softmax": {"rows": 300, "width": 700},
         "lenet": {"batch": 8, "rate": 0.1}, "mlp": {"batch": 32, "layers": (784, 128, 10), "rate": 0.1},
         "lstm": {"steps": 3, "batch": 12, "hidden": 40}, "adam": {"count": 20, "rate": 1e-3}}

PROGRAM = f"""
import json
import numpy as np
from benchmarks.run_opreg import CASES
from opreg.backends.numba import simd
from opreg.elementwise import tiling
found = {{}}
for key, sizes in {SIZES!r}.items():
    run, check = CASES["opreg"][key](**sizes)
    run()
    found[key] = float(check())
print(json.dumps([found, tiling.TILE, simd.lanes(np.dtype("float32"))]))
"""


def _started(**variables: str) -> subprocess.Popen[str]:
    told = {**without(os.environ), "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **variables}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, env=told, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64") or "avx2" not in processor().features,
                    reason="there is no lesser one to be told of")
@pytest.mark.skipif(compiler._missing() is not None or shared_library.missing() is not None,
                    reason="needs numba and oneDNN")
def test_an_emulated_lesser_processor_gives_the_same_results(tmp_path):
    started = (_started(**settings("no-avx512", "small-cache"), OPREG_JIT="numba", OPREG_NUM_THREADS="2",
                        OMP_NUM_THREADS="2", OPREG_CACHE_DIR=str(tmp_path)), _started(OPREG_JIT="numpy"))
    printed = [each.communicate()[0] for each in started]
    (found, tile, lanes), (expected, *_) = map(json.loads, printed)
    assert (tile, lanes) == (1 << 14, 8)
    assert found == pytest.approx(expected, rel=1e-4)

"""Checks of a text by the real NVRTC, in a process of its own, since NVRTC does not run beside the bed's driver."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Sequence

from ..compiled import KernelError

__all__ = ["check"]

_PROGRAM = """
import json, sys
from tests.cuda import nvrtc
for line in sys.stdin:
    text, options = json.loads(line)
    try:
        nvrtc.check(text, *options)
        answer = ""
    except nvrtc.KernelError as error:
        answer = str(error)
    print(json.dumps(answer), flush=True)
"""


@functools.cache
def _process() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def check(source: str, options: Sequence[str], architectures: Sequence[int]) -> None:
    """Compiles a text for GPUs of some architectures.

    Raises
    ------
    KernelError
        NVRTC refuses the text; the message is its own.
    """
    process = _process()
    assert process.stdin is not None and process.stdout is not None
    kept = [each for each in options if not each.startswith(("-arch", "--gpu-architecture"))]
    for architecture in architectures:
        print(json.dumps((source, [*kept, f"-arch=sm_{architecture}"])), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline())
        if answer:
            raise KernelError(f"sm_{architecture}: {answer}")

"""The workloads in Apache MXNet."""

from __future__ import annotations

import os
import re
from typing import Any

from .mxnet_api import cases
from .workloads import start_time

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")  # the default back end makes graphs that it cannot run

import mxnet as mx

__all__ = ["CASES", "VERSION"]


def planned(executor: Any, is_train: bool) -> int:
    """Bytes of the memory pool of a bound executor, which MXNet reports in MB."""
    found = re.search(r"Total (\d+) MB allocated", executor.debug_str())
    if found is None:
        raise RuntimeError("debug_str does not tell what is allocated")
    return int(found[1]) * 2 ** 20


def import_time() -> Any:
    return lambda: start_time("import mxnet"), None


def first_result() -> Any:
    return lambda: start_time("import mxnet as mx; print((mx.nd.ones((10,)) * 2).asnumpy())"), None


VERSION = mx.__version__
CASES = {"MXNet": {**cases(mx, planned, mx.nd.waitall), "import": import_time, "first_result": first_result}}

"""The workloads in opreg."""

from __future__ import annotations

from typing import Any

import opreg as mx

from . import mindspore_api, mxnet_api
from .workloads import start_time

__all__ = ["CASES", "VERSION"]


def planned(executor: Any, is_train: bool) -> int:
    """Bytes of a plan beside arguments, outputs and gradients."""
    return executor.plan(is_train).nbytes


def import_time() -> Any:
    """The import must not load NumPy: programs that only register operators start without it."""
    return lambda: start_time("import opreg, sys; assert 'numpy' not in sys.modules"), None


def first_result() -> Any:
    return lambda: start_time("import opreg; print((opreg.nd.ones((10,)) * 2).asnumpy())"), None


VERSION = mx.__version__
_CASES = {**mxnet_api.cases(mx, planned), **mindspore_api.cases(mx, lambda: None), "import": import_time,
          "first_result": first_result}
CASES = {"opreg": _CASES, "opreg[fast]": _CASES}

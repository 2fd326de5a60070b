"""Sparse arrays on a GPU: the tests of the host with ``gpu(0)`` as the context of new arrays, and copies between both."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, nd
from opreg.errors import DeviceError
from tests.cuda.device import gpus
from tests.custom import test_sparse as custom
from tests.ndarray import test_sparse as arrays
from tests.symbol import test_sparse_executor as executors

for _module in (arrays, executors, custom):
    globals().update({name: value for name, value in vars(_module).items() if name.startswith("test_")})


@pytest.fixture(autouse=True)
def on_device() -> Iterator[None]:
    """Makes ``gpu(0)`` the context of new arrays."""
    with gpus(), mx.gpu(0):
        yield

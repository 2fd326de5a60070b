"""runtime: features of this installation, by MXNet's names for them.

>>> import opreg as mx
>>> mx.runtime.Features().is_enabled("CPU_SSE")
False
"""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from typing import NamedTuple

from .errors import ArgumentError, did_you_mean
from .ndarray.context import num_gpus

__all__ = ["Feature", "Features", "feature_list"]

#: Names of the features of an MXNet build. A feature is on only if a line below checks for it.
_NAMES = ("CUDA", "CUDNN", "NCCL", "CUDA_RTC", "TENSORRT", "CPU_SSE", "CPU_SSE2", "CPU_SSE3", "CPU_SSE4_1",
          "CPU_SSE4_2", "CPU_SSE4A", "CPU_AVX", "CPU_AVX2", "OPENMP", "SSE", "F16C", "JEMALLOC", "BLAS_OPEN",
          "BLAS_ATLAS", "BLAS_MKL", "BLAS_APPLE", "LAPACK", "MKLDNN", "OPENCV", "CAFFE", "PROFILER", "DIST_KVSTORE",
          "CXX14", "INT64_TENSOR_SIZE", "SIGNAL_HANDLER", "DEBUG", "TVM_OP")


class Feature(NamedTuple):
    """A feature by name, and whether it is there."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def _is_available(name: str) -> bool:
    if name in ("CUDA", "CUDNN", "CUDA_RTC"):
        return num_gpus() > 0
    if name == "MKLDNN":
        return importlib.util.find_spec("onednn") is not None
    return name in ("LAPACK", "PROFILER", "INT64_TENSOR_SIZE", "BLAS_OPEN")


def feature_list() -> list[Feature]:
    """All features that MXNet's build knows, and whether they are there."""
    return [Feature(name, _is_available(name)) for name in _NAMES]


class Features(OrderedDict[str, Feature]):
    """Features by name; each call of the class updates and returns the same object.

    Examples
    --------
    >>> Features() is Features(), "CUDA" in Features()
    (True, True)
    """

    instance: Features | None = None

    def __new__(cls) -> Features:
        if cls.instance is None:
            cls.instance = super().__new__(cls)
        return cls.instance

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.values()))}]"

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is there, in any case of letters.

        Raises
        ------
        ArgumentError
            For an unknown name; it is a ``RuntimeError``, as in MXNet.
        """
        name = feature_name.upper()
        if name not in self:
            raise ArgumentError(f"runtime: there is no feature {feature_name!r}. {did_you_mean(name, _NAMES)}")
        return self[name].enabled


def __dir__() -> list[str]:
    return sorted(__all__)

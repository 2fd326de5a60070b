"""Processors with fewer features, simulated by environment variables of libraries: for more tables on one machine, and
for tests.

``python -m benchmarks.processors NAME ...`` prints the variables as JSON, for the interpreter that runs it: NumPy and
LLVM have different names, by version, for the features to exclude. With ``-- COMMAND ...`` after the names it runs the
command with these variables.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["LESSER", "Lesser", "settings", "without"]


class Lesser(NamedTuple):
    """A processor with fewer features than this one.

    Attributes
    ----------
    about : str
        A description, which follows the name of the real processor. numpy, llvm : tuple of str Prefixes of the features
        that NumPy and LLVM exclude. variables : dict Variables for other libraries.
    """

    about: str
    numpy: tuple[str, ...]
    llvm: tuple[str, ...]
    variables: dict[str, str]


def _up_to(isa: str, openblas: str, aten: str, llvm: str) -> dict[str, str]:
    """The variables of BLAS, oneDNN, MKL, PyTorch, XLA and compilers for the most that they may use."""
    return {"OPENBLAS_CORETYPE": openblas, "ONEDNN_MAX_CPU_ISA": isa, "DNNL_MAX_CPU_ISA": isa,
            "MKL_ENABLE_INSTRUCTIONS": isa, "ATEN_CPU_CAPABILITY": aten, "XLA_FLAGS": f"--xla_cpu_max_isa={isa}",
            "TORCHINDUCTOR_CPP_MARCH": llvm, "NUMBA_CPU_NAME": llvm}


_AVX512 = "AVX512", "X86_V4"
_AVX512_LLVM = "avx512", "avx10", "amx"

LESSER = {
    "no-avx512": Lesser("without AVX-512", _AVX512, _AVX512_LLVM, _up_to("AVX2", "Haswell", "avx2", "haswell")),
    # Features that include AVX2 for LLVM have to be excluded, too.
    "no-avx2": Lesser("without AVX2", (*_AVX512, "AVX2", "FMA3", "X86_V3"),
                      (*_AVX512_LLVM, "avx2", "avxvnni", "avxifma", "avxneconvert", "fma", "vaes", "vpclmulqdq",
                       "sha512", "sm3", "sm4"), _up_to("AVX", "Sandybridge", "default", "sandybridge")),
    "small-cache": Lesser("with the blocks of a small cache", (), (), {"OPREG_PROCESSOR": "l1=16K l2=256K l3=2M"}),
}

#: All variables that simulate another processor.
_VARIABLES = {"NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES", "NUMBA_CPU_FEATURES", "OPENBLAS_L2_SIZE",
              *(name for each in LESSER.values() for name in each.variables)}


def without(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment without variables that simulate another processor."""
    return {name: value for name, value in variables.items() if name not in _VARIABLES}


def settings(*names: str) -> dict[str, str]:
    """The variables by which the libraries of this interpreter use a processor with all these restrictions.

    Raises
    ------
    ValueError
        This processor has no such features.

    Examples
    --------
    >>> settings("small-cache")
    {'OPREG_PROCESSOR': 'l1=16K l2=256K l3=2M'}
    """
    found: dict[str, str] = {}
    for name in names:
        each = LESSER[name]
        if each.numpy and platform.machine() not in ("x86_64", "AMD64"):
            raise ValueError(f"{name} is for x86-64")
        found.update(each.variables)
    numpy = {prefix for name in names for prefix in LESSER[name].numpy}
    if numpy:
        found["NPY_DISABLE_CPU_FEATURES"] = " ".join(
            name for name in _numpy_features() if name.startswith(tuple(numpy)))
    llvm = {prefix for name in names for prefix in LESSER[name].llvm}
    if llvm:
        found["NUMBA_CPU_FEATURES"] = ",".join(
            f"{'+' if has and not name.startswith(tuple(llvm)) else '-'}{name}"
            for name, has in _llvm_features().items())
    return {name: value for name, value in found.items() if value}


def _numpy_features() -> list[str]:
    """The features by which NumPy chooses functions, if this processor has them."""
    import numpy as np

    core = sys.modules["numpy._core._multiarray_umath" if hasattr(np, "_core") else "numpy.core._multiarray_umath"]
    return [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]


def _llvm_features() -> dict[str, bool]:
    """The features that LLVM knows, and whether this processor has them; empty without numba."""
    try:
        import llvmlite.binding
    except ImportError:
        return {}
    return dict(llvmlite.binding.get_host_cpu_features())


if __name__ == "__main__":
    if len(without(os.environ)) < len(os.environ):
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.processors", *sys.argv[1:]], without(os.environ))
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    told, command = settings(*sys.argv[1:split]), sys.argv[split + 1:]
    if command:
        os.execvpe(command[0], command, {**os.environ, **told})
    print(json.dumps(told))

"""cublasLt, CUDA's library for matrix products: its functions through ``ctypes``, and their arguments.

Only this module loads the library. It is searched for at first use, in the version of CUDA that CuPy uses. The values
of the enumerations are from ``cublasLt.h``; the library stores matrices by columns.
"""

from __future__ import annotations

import ctypes
import enum
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from opreg.core.cache import cached
from opreg.errors import OpError, is_transient
from opreg.typing import ArrayModule

from .handles import Handles

__all__ = ["Algorithm", "ComputeType", "DataType", "Descriptor", "DescriptorAttribute", "Epilogue", "Heuristic",
           "LayoutAttribute", "Library", "Operation", "PreferenceAttribute", "SIGNATURES", "Status", "answer",
           "library"]

# ------------------------------------------------------------------------------------------ the library's terms


class Status(enum.IntEnum):
    """Status codes of cublasLt's functions."""

    SUCCESS = 0
    NOT_INITIALIZED = 1
    ALLOC_FAILED = 3
    INVALID_VALUE = 7
    ARCH_MISMATCH = 8
    MAPPING_ERROR = 11
    EXECUTION_FAILED = 13
    INTERNAL_ERROR = 14
    NOT_SUPPORTED = 15
    LICENSE_ERROR = 16


class DataType(enum.IntEnum):
    """The types of stored elements."""

    R_32F = 0
    R_64F = 1
    R_16F = 2
    R_16BF = 14


class ComputeType(enum.IntEnum):
    """The types in which products and sums are computed."""

    COMPUTE_32F = 68
    COMPUTE_64F = 70
    COMPUTE_32F_FAST_TF32 = 77


class Operation(enum.IntEnum):
    """Operation on a factor before the product."""

    N = 0
    T = 1


class Epilogue(enum.IntEnum):
    """The epilogue of a product: an operation on its elements before they are stored, or on those of a factor."""

    DEFAULT = 1
    BIAS = 4
    BGRADB = 512


class DescriptorAttribute(enum.IntEnum):
    """Attributes of a product's descriptor."""

    TRANSA = 3
    TRANSB = 4
    EPILOGUE = 7
    BIAS_POINTER = 8


class LayoutAttribute(enum.IntEnum):
    """Attributes of a matrix's layout."""

    BATCH_COUNT = 5
    STRIDED_BATCH_OFFSET = 6


class PreferenceAttribute(enum.IntEnum):
    """Attributes of the preferences for the choice of an algorithm."""

    MAX_WORKSPACE_BYTES = 1
    MIN_ALIGNMENT_A_BYTES = 5
    MIN_ALIGNMENT_B_BYTES = 6
    MIN_ALIGNMENT_C_BYTES = 7
    MIN_ALIGNMENT_D_BYTES = 8


class Algorithm(ctypes.Structure):
    """``cublasLtMatmulAlgo_t``."""

    _fields_ = [("data", ctypes.c_uint64 * 8)]


class Heuristic(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = [("algo", Algorithm), ("workspaceSize", ctypes.c_size_t), ("state", ctypes.c_int),
                ("wavesCount", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


_P, _INT, _SIZE, _U64, _I64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int64

#: Argument types of the functions; all return a status.
SIGNATURES: dict[str, tuple[type, ...]] = {
    "cublasLtCreate": (_P,),
    "cublasLtDestroy": (_P,),
    "cublasLtMatmulDescCreate": (_P, _INT, _INT),
    "cublasLtMatmulDescSetAttribute": (_P, _INT, _P, _SIZE),
    "cublasLtMatmulDescDestroy": (_P,),
    "cublasLtMatrixLayoutCreate": (_P, _INT, _U64, _U64, _I64),
    "cublasLtMatrixLayoutSetAttribute": (_P, _INT, _P, _SIZE),
    "cublasLtMatrixLayoutDestroy": (_P,),
    "cublasLtMatmulPreferenceCreate": (_P,),
    "cublasLtMatmulPreferenceSetAttribute": (_P, _INT, _P, _SIZE),
    "cublasLtMatmulPreferenceDestroy": (_P,),
    "cublasLtMatmulAlgoGetHeuristic": (_P, _P, _P, _P, _P, _P, _P, _INT, _P, _P),
    "cublasLtMatmul": (_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _SIZE, _P),
}


# --------------------------------------------------------------------------------------------------- its use


class Library:
    """The loaded library."""

    def __init__(self, loaded: ctypes.CDLL):
        self.functions: dict[str, Callable[..., int]] = {}
        for name, takes in SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = _INT, takes
            self.functions[name] = function
        self._handles = Handles(self.functions["cublasLtDestroy"])

    def check(self, name: str, *args: object) -> None:
        """Call a function.

        Raises
        ------
        OpError
            When it returns an error, with the function's name and the status.
        """
        status = self.functions[name](*args)
        if status:
            raise OpError(answer(name, status))

    def handle(self, device: int) -> int:
        """The library's handle for a device, which is the current one."""
        return self._handles.of(device, self._create)

    def _create(self) -> int:
        handle = ctypes.c_void_p()
        self.check("cublasLtCreate", ctypes.byref(handle))
        assert handle.value is not None
        return handle.value


def answer(name: str, status: int) -> str:
    """A status code in words.

    Examples
    --------
    >>> answer("cublasLtMatmul", 13)
    'cublasLtMatmul answers CUBLAS_STATUS_EXECUTION_FAILED (13)'
    """
    words = f"CUBLAS_STATUS_{Status(status).name} ({status})" if status in set(Status) else f"status {status}"
    return f"{name} answers {words}"


class Descriptor:
    """A descriptor of the library, destroyed with its last reference.

    Parameters
    ----------
    library : Library
    kind : str
        ``MatmulDesc``, ``MatrixLayout`` or ``MatmulPreference``.
    args
        Further arguments of the function that creates it.
    """

    __slots__ = ("library", "kind", "value")

    def __init__(self, library: Library, kind: str, *args: int):
        self.library, self.kind, self.value = library, kind, ctypes.c_void_p()
        library.check(f"cublasLt{kind}Create", ctypes.byref(self.value), *args)

    def set(self, attribute: int, value: ctypes._SimpleCData) -> None:
        """Set an attribute to a value."""
        self.library.check(f"cublasLt{self.kind}SetAttribute", self.value, attribute, ctypes.byref(value),
                           ctypes.sizeof(value))

    def __del__(self) -> None:
        if self.value.value is not None and not sys.is_finalizing():
            self.library.functions[f"cublasLt{self.kind}Destroy"](self.value)


# --------------------------------------------------------------------------------------------- where it is


def _library_names(major: int) -> Iterator[str]:
    """File names under which the library for a CUDA version may be loaded."""
    windows = sys.platform == "win32"
    name = f"cublasLt64_{major}.dll" if windows else f"libcublasLt.so.{major}"
    yield name  # loaded already by CuPy, or found by the system
    spec = importlib.util.find_spec("nvidia")
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        for part in (f"cu{major}", "cublas"):
            yield str(Path(folder, part, "bin" if windows else "lib", name))
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        if os.environ.get(variable):
            yield str(Path(os.environ[variable], "bin" if windows else "lib64", name))


def load(major: int) -> ctypes.CDLL:
    """The library of a version of CUDA.

    Raises
    ------
    OSError
        When it is not found.
    """
    for place in _library_names(major):
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            if is_transient(error):
                raise
    raise OSError(f"cublasLt of CUDA {major} is not installed (the package nvidia-cublas has it)")


@cached(4)
def library(xp: ArrayModule) -> Library | str:
    """The library for an array module's devices, or the reason why there is none; searched for once."""
    try:
        version = int(xp.cuda.runtime.runtimeGetVersion())
    except Exception as error:  # an error of CuPy, if there is no CUDA runtime
        if is_transient(error):
            raise
        return f"the array module names no version of CUDA: {error}"
    try:
        return Library(load(version // 1000))
    except (OSError, AttributeError) as error:  # the library is missing or lacks a function
        if is_transient(error):
            raise
        return f"cublasLt does not load: {error}"

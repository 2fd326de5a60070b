"""rtc: kernels in CUDA C++ that a program brings along, compiled while it runs: MXNet's ``mx.rtc``, by CuPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.backends.cuda.compiler import first_error
from opreg.core.array_module import backend
from opreg.core.mode import MODE
from opreg.core.spec import as_dtype
from opreg.core.versions import wrote
from opreg.errors import ArgumentError, DTypeError, did_you_mean, is_transient
from opreg.ndarray.arithmetic import leave_trace
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray

from .core.settings import Checked

__all__ = ["CudaKernel", "CudaModule"]

#: The dtypes of C++'s types.
_DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "__half": "float16", "__nv_bfloat16": "bfloat16",
    "bool": "bool", "char": "int8", "int8_t": "int8", "short": "int16", "int16_t": "int16", "int": "int32",
    "int32_t": "int32", "long long": "int64", "int64_t": "int64", "unsigned char": "uint8", "uint8_t": "uint8",
    "unsigned short": "uint16", "uint16_t": "uint16", "unsigned": "uint32", "unsigned int": "uint32",
    "uint32_t": "uint32", "unsigned long long": "uint64", "uint64_t": "uint64", "size_t": "uint64",
}
_PARAMETER = re.compile(r"(const )?((?:unsigned )?long long|unsigned(?: char| short| int)?|\w+)"
                        r" ?(?:(\*) ?(?:__restrict__ ?)?)?(\w+)?")


class _Parameter(NamedTuple):
    text: str
    dtype: np.dtype
    is_array: bool
    is_constant: bool


def _parameter(text: str) -> _Parameter:
    """A parameter of a kernel, read from its declaration in C++."""
    text = " ".join(text.split())
    match = _PARAMETER.fullmatch(text)
    if match is None or match[2] == "const":
        raise ArgumentError(f"get_kernel: the parameter {text!r}: expected \"(const) type (*) (name)\", as in "
                            "\"const float *x\" or \"int n\"")
    if match[2] not in _DTYPES:
        raise DTypeError(f"get_kernel: the parameter {text!r}: there is no dtype for its type. "
                         f"{did_you_mean(match[2], _DTYPES)}")
    return _Parameter(text, as_dtype(_DTYPES[match[2]]), match[3] is not None, match[1] is not None)


class CudaModule(Checked):
    """Kernels in CUDA C++, compiled at run time for the GPU that is current.

    Parameters
    ----------
    source : str
        The text of the kernels, each after ``extern "C"``, or named in ``exports``.
    options : str or sequence of str
        Options of the compiler, for example ``"-I/usr/local/cuda/include"``.
    exports : str or sequence of str
        Names of kernels that are templates, each with its arguments, as ``"axpy<float>"``.

    Raises
    ------
    DeviceError
        If there is no GPU, or CuPy is missing.

    Examples
    --------
    >>> source = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
    >>> x = mx.nd.ones((4,), ctx=mx.gpu(0))  # doctest: +SKIP
    >>> kernel = mx.rtc.CudaModule(source).get_kernel("twice", "float *x")  # doctest: +SKIP
    >>> kernel.launch([x], mx.gpu(0), (1, 1, 1), (4, 1, 1))  # doctest: +SKIP
    """

    def __init__(self, source: str, options: str | Sequence[str] = (), exports: str | Sequence[str] = ()):
        options = (options,) if isinstance(options, str) else tuple(options)
        exports = (exports,) if isinstance(exports, str) else tuple(exports)
        keywords: dict[str, Any] = {"options": options}
        if exports:
            keywords["name_expressions"] = exports
            if not any(option.startswith(("-std", "--std")) for option in options):
                keywords["options"] = ("-std=c++17", *options)
        self._source, self._module = source, backend("gpu").xp.RawModule(code=source, **keywords)

    def get_kernel(self, name: str, signature: str) -> CudaKernel:
        """Compile a kernel of this name.

        Parameters
        ----------
        name : str
            Its name in the source, or one of the exports.
        signature : str
            Its parameters in C++, as in ``"const float *x, float *y, float alpha"``; names may be missing. A ``*``
            marks an array, and ``const`` an array that the kernel only reads.

        Raises
        ------
        ArgumentError
            If a parameter is written otherwise, or the kernel does not compile.
        DTypeError
            If a parameter has a type without a dtype.
        """
        parameters = [_parameter(each) for each in signature.split(",")] if signature.strip() else []
        try:
            function = self._module.get_function(name)
        except Exception as error:  # CuPy's own
            if is_transient(error):
                raise
            raise ArgumentError(f"get_kernel: the kernel {name!r} does not compile: "
                                f"{first_error(str(error), self._source)}") from error
        return CudaKernel(function, name, parameters)


class CudaKernel(Checked):
    """A compiled kernel, made by ``CudaModule.get_kernel``."""

    def __init__(self, function: Any, name: str, parameters: Sequence[_Parameter]):
        self._function, self._name, self._parameters = function, name, parameters

    def __repr__(self) -> str:
        return f"<CUDA kernel {self._name}({', '.join([each.text for each in self._parameters])})>"

    def launch(self, args: Sequence[Any], ctx: Context, grid_dims: Sequence[int], block_dims: Sequence[int],
               shared_mem: int = 0) -> None:
        """Launch the kernel on the stream that is current; the host does not wait for it.

        Parameters
        ----------
        args : sequence of NDArray and numbers
            One for each parameter: an array of the parameter's dtype for ``*``, otherwise a number. No gradient
            passes through the arrays that it writes.
        ctx : Context
            The GPU on which the arrays are.
        grid_dims, block_dims : sequences of three int
            The number of blocks in the grid, and of threads in a block.
        shared_mem : int
            Bytes of the shared memory whose size the kernel leaves open.

        Raises
        ------
        ArgumentError
            If the number of arguments, an argument, or a dimension does not fit.
        DTypeError
            If an array has another dtype than its parameter.
        """
        if ctx.backend_name != "gpu":
            raise ArgumentError(f"{self._title}: expected a GPU, got ctx={ctx}")
        for word, dims in (("grid_dims", grid_dims), ("block_dims", block_dims)):
            if len(dims) != 3:
                raise ArgumentError(f"{self._title}: expected three integers as {word}, got {dims!r}")
        if len(args) != len(self._parameters):
            raise ArgumentError(f"{self._title}: expected {len(self._parameters)} arguments, got {len(args)}")
        written = []
        values: list[Any] = []
        for value, parameter in zip(args, self._parameters):
            if not parameter.is_array:
                values.append(self._number(value, parameter))
                continue
            self._check(value, parameter, ctx)
            if not parameter.is_constant:
                value.check_writable()
                written.append((value, len(values)))
            values.append(value._data)
        with ctx.entered():
            values = [ctx.xp.ascontiguousarray(value) if isinstance(value, ctx.xp.ndarray) else value
                      for value in values]
            self._function(tuple(grid_dims), tuple(block_dims), tuple(values),
                           **({"shared_mem": shared_mem} if shared_mem else {}))
            for array, place in written:
                if values[place] is not array._data:  # its strides leave gaps
                    array._data[...] = values[place]
                wrote(array._data)

    @property
    def _title(self) -> str:
        return f"the CUDA kernel {self._name!r}"

    def _number(self, value: Any, parameter: _Parameter) -> np.generic:
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if not isinstance(value, (bool, int, float, np.generic)):
            raise ArgumentError(f"{self._title}: the parameter {parameter.text!r} takes a number, got "
                                f"{type(value).__name__}")
        return parameter.dtype.type(value)

    def _check(self, value: Any, parameter: _Parameter, ctx: Context) -> None:
        if not isinstance(value, NDArray):
            raise ArgumentError(f"{self._title}: the parameter {parameter.text!r} takes an NDArray, got "
                                f"{type(value).__name__}")
        if MODE.tracer is not None:
            leave_trace((value,))
        if value.ctx != ctx:
            raise ArgumentError(f"{self._title}: the parameter {parameter.text!r} takes an array on {ctx}, got one on "
                                f"{value.ctx}; as_in_context({ctx}) copies it there")
        if value.dtype != parameter.dtype:
            raise DTypeError(f"{self._title}: the parameter {parameter.text!r} takes an array of {parameter.dtype}, "
                             f"got {np.dtype(value.dtype)}")


def __dir__() -> list[str]:
    return sorted(__all__)

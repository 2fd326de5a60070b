"""CuPy's ways to write kernels, on the stand-in: their source runs on the host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.cuda import strict

from .machine import MACHINE

__all__ = ["ElementwiseKernel", "as_argument"]

_PARAMETER = re.compile(r"(?:const\s+)?(\w+)\s+(\w+)$")
_TYPES = {"float16": "_Float16", "float32": "float", "float64": "double", "int32": "int", "int64": "long long",
          "uint8": "unsigned char", "bool": "bool"}
_BLOCK = 128


def as_argument(value: Any) -> Any:
    """The argument of a user's kernel for a value: an array, or a number, in 64 bits if it is Python's. CuPy's error
    for other types."""
    if isinstance(value, (bool, np.generic, strict.StrictArray)):
        return np.bool_(value) if isinstance(value, bool) else value
    if isinstance(value, (int, float)):
        return np.int64(value) if isinstance(value, int) else np.float64(value)
    raise TypeError(f"Unsupported type {type(value)}")


class ElementwiseKernel:
    """Arithmetic of one element, in C++, for all elements of arrays that broadcast."""

    def __init__(self, xp: Any, in_params: str, out_params: str, operation: str, name: str = "kernel"):
        self.xp, self.operation, self.name = xp, operation, name
        self.ins, self.outs = _parameters(in_params), _parameters(out_params)

    def __call__(self, *args: Any, size: int | None = None) -> Any:
        ins, given = args[:len(self.ins)], list(args[len(self.ins):])
        if len(ins) < len(self.ins) or len(given) not in (0, len(self.outs)) or size is not None:
            raise strict.StrictError(f"{self.name}: expected {len(self.ins)} inputs, and perhaps the outputs")
        strict.check_device(self.name, args)
        shape = np.broadcast_shapes(*[each.shape for each in (*ins, *given) if isinstance(each, strict.StrictArray)])
        types: dict[str, np.dtype] = {}
        for (kind, _), value in zip((*self.ins, *self.outs), (*ins, *given)):
            if isinstance(value, strict.StrictArray) and types.setdefault(kind, value.dtype) != value.dtype:
                raise strict.StrictError(f"{self.name}: {kind} is {types[kind]} and {value.dtype}")
        dtypes = [types[kind] if kind in types else np.dtype(kind) for kind, _ in (*self.ins, *self.outs)]
        hosts = [np.array(np.broadcast_to(strict._host(value), shape), dtype) for value, dtype in zip(ins, dtypes)]
        results = [np.empty(shape, dtype) for dtype in dtypes[len(ins):]]
        arrays = [strict.StrictArray(MACHINE.owned(each)) for each in (*hosts, *results)]
        self.xp.RawKernel(self._text(dtypes), self.name)(
            (2,), (_BLOCK,), (*arrays, np.uint64(np.prod(shape, dtype=int))))
        outs = given or arrays[len(ins):]
        for out, result in zip(given, arrays[len(ins):]):
            out[...] = result
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _text(self, dtypes: Sequence[np.dtype]) -> str:
        named = [(_TYPES[dtype.name], name) for dtype, (_, name) in zip(dtypes, (*self.ins, *self.outs))]
        pointers = ", ".join(f"{kind}* {name}_" for kind, name in named)
        values = " ".join(f"{kind}& {name} = {name}_[i];" for kind, name in named)
        names = {kind: _TYPES[dtype.name] for dtype, (kind, _) in zip(dtypes, (*self.ins, *self.outs))
                 if kind not in _TYPES}
        types = " ".join(f"using {kind} = {name};" for kind, name in names.items())
        return (f'extern "C" __global__ void {self.name}({pointers}, unsigned long long size) {{\n'
                "    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < size; "
                f"i += blockDim.x * gridDim.x) {{ {types} {values} {self.operation}; }}\n}}\n")


def _parameters(text: str) -> list[tuple[str, str]]:
    found = []
    for part in filter(None, map(str.strip, text.split(","))):
        match = _PARAMETER.match(part)
        if match is None:
            raise strict.StrictError(f"{part!r}: expected a type and a name; the stand-in knows no raw parameters")
        found.append((match[1], match[2]))
    return found

"""A stand-in for the package ``cudnn``: the used part of its API, over memory of the host.

A graph computes only from the tensors that were declared, with their sizes, strides and ids, at the addresses of a
call. Wrong orders of calls, and graphs that the library has no kernels for, raise errors.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from opreg.backends.cuda import cudnn

from .cublaslt import _Runtime
from .device import Gpu, gpus
from .machine import MACHINE, CUDARuntimeError


class data_type(enum.Enum):
    """Dtypes in which numbers are stored, and computed with."""

    HALF = np.dtype(np.float16)
    BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
    FLOAT = np.dtype(np.float32)
    DOUBLE = np.dtype(np.float64)


heur_mode = enum.Enum("heur_mode", "A B FALLBACK OPENSOURCE")
numerical_note = enum.Enum("numerical_note", "TENSOR_CORE DOWN_CONVERT_INPUTS REDUCED_PRECISION_REDUCTION FFT "
                                             "NONDETERMINISTIC WINOGRAD")


class cudnnGraphNotSupportedError(Exception):
    """There is no kernel for a graph."""


class Handle:
    """Handle of the library: the stream that receives work."""

    stream = 0
    live = 0  # number of handles that were not destroyed


class Tensor:
    """Description of an array in a graph."""

    def __init__(self, dim: Sequence[int] | None = None, stride: Sequence[int] | None = None, data_type: Any = None,
                 uid: int | None = None):
        self.dim, self.stride, self.data_type, self.uid, self.output = dim, stride, data_type, uid, False

    def _set(self, name: str, value: object) -> Tensor:
        setattr(self, name, value)
        return self

    def set_output(self, value: bool) -> Tensor:
        """Sets whether it is an output, in an array of the caller."""
        return self._set("output", value)

    def set_dim(self, dim: list[int]) -> Tensor:
        """Sets the lengths of its axes."""
        return self._set("dim", dim)

    def set_stride(self, stride: list[int]) -> Tensor:
        """Sets the distance between neighbouring elements along each axis."""
        return self._set("stride", stride)

    def set_uid(self, uid: int) -> Tensor:
        """Sets the identifier by which a run of the graph finds it."""
        return self._set("uid", uid)

    def set_data_type(self, dtype: Any) -> Tensor:
        """Sets the dtype in which elements are stored."""
        return self._set("data_type", dtype)

    def array(self, address: int) -> np.ndarray:
        """The array at an address."""
        assert self.dim is not None and self.stride is not None
        dtype = self.data_type.value
        count = sum((size - 1) * stride for size, stride in zip(self.dim, self.stride)) + 1
        memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
        return np.lib.stride_tricks.as_strided(np.frombuffer(memory, dtype), self.dim,
                                               [stride * dtype.itemsize for stride in self.stride])


#: The stages of a graph, each behind the one before.
_STAGES = ("told", "validated", "lowered", "planned", "supported", "built")
_WORKSPACE = 1000


class pygraph:
    """A graph of one part of a convolution, optionally with a bias."""

    #: The executed graph: the function, its arguments, and the notes that plans must not have.
    done: list[tuple[str, dict[str, Any], set[Any]]] = []
    #: Number of graphs that were built.
    built = 0

    def __init__(self, name: str = "test_graph", io_data_type: Any = None, intermediate_data_type: Any = None,
                 compute_data_type: Any = None, handle: Any = None):
        assert isinstance(handle, Handle)
        self.stored, self.computed, self.stage = io_data_type, compute_data_type, 0
        self.given: list[Tensor] = []
        self.words: dict[str, Any] = {}
        self.function = ""
        self.notes: set[Any] = set()

    def tensor(self, dim: list[int], stride: list[int] | None = None, data_type: Any = None, name: str = "",
               uid: int | None = None) -> Tensor:
        """Adds an input to the graph."""
        self.given.append(Tensor(dim, stride, data_type or self.stored, uid))
        return self.given[-1]

    def _convolution(self, function: str, words: dict[str, Any]) -> Tensor:
        assert not self.function and words["compute_data_type"] is self.computed
        self.function, self.words = function, words
        self.product = self.result = Tensor()
        return self.product

    def conv_fprop(self, *, image: Tensor, weight: Tensor, padding: list[int], stride: list[int], dilation: list[int],
                   compute_data_type: Any = None, name: str = "") -> Tensor:
        """The output of a convolution."""
        return self._convolution("conv_fprop", {"x": image, "w": weight, "padding": padding, "stride": stride,
                                                "dilation": dilation, "compute_data_type": compute_data_type})

    def conv_dgrad(self, *, loss: Tensor, filter: Tensor, padding: list[int], stride: list[int],
                   dilation: list[int], compute_data_type: Any = None, name: str = "") -> Tensor:
        """The gradient of the data."""
        return self._convolution("conv_dgrad", {"y": loss, "w": filter, "padding": padding, "stride": stride,
                                                "dilation": dilation, "compute_data_type": compute_data_type})

    def conv_wgrad(self, *, image: Tensor, loss: Tensor, padding: list[int], stride: list[int], dilation: list[int],
                   compute_data_type: Any = None, name: str = "") -> Tensor:
        """The gradient of the weight."""
        return self._convolution("conv_wgrad", {"x": image, "y": loss, "padding": padding, "stride": stride,
                                                "dilation": dilation, "compute_data_type": compute_data_type})

    def bias(self, *, input: Tensor, bias: Tensor, compute_data_type: Any = None, name: str = "") -> Tensor:
        """The sum of an array and a bias for each channel."""
        assert input is self.product
        self.words["b"], self.result = bias, Tensor()
        return self.result

    def _pass(self, stage: str) -> None:
        assert _STAGES[self.stage + 1] == stage, f"{stage} behind {_STAGES[self.stage]}"
        self.stage += 1

    def validate(self) -> None:
        """Raises an error if the tensors do not fit each other, or the result is not an output."""
        self._pass("validated")
        result = self.result
        if not result.output or result.uid is None or result.data_type is not self.stored:
            raise ValueError("the result is not said to be written")
        for each in (*self.given, self.product, result):
            if not each.dim or not each.stride or len(each.dim) != len(each.stride) or len(each.dim) not in (4, 5):
                raise ValueError(f"a tensor of {each.dim}, {each.stride}")
        self.named = {**{name: each for name, each in self.words.items() if name in "xwyb"},
                      {"conv_fprop": "y", "conv_dgrad": "x", "conv_wgrad": "w"}[self.function]: result}
        x, w, y = [list(self.named[name].dim) for name in "xwy"]
        if x[0] != y[0] or w[0] != y[1] or x[1] % w[1] or w[0] % (x[1] // w[1]):
            raise ValueError(f"a convolution of {x} with {w} to {y}")
        for n, k, q, p, s, d in zip(x[2:], w[2:], y[2:], self.words["padding"], self.words["stride"],
                                    self.words["dilation"], strict=True):
            if q != (n + 2 * p - (k - 1) * d - 1) // s + 1:
                raise ValueError(f"a convolution of {x} with {w} to {y}")

    def build_operation_graph(self) -> None:
        """Passes the graph to the library."""
        self._pass("lowered")

    def create_execution_plans(self, heuristics: list[Any] | None = None) -> None:
        """Lists the available plans."""
        assert heuristics and all(isinstance(mode, heur_mode) for mode in heuristics)
        self._pass("planned")

    def deselect_numeric_notes(self, notes: list[Any]) -> pygraph:
        """Excludes plans with these numeric notes."""
        assert _STAGES[self.stage] == "planned" and all(isinstance(note, numerical_note) for note in notes)
        self.notes |= set(notes)
        return self

    def check_support(self) -> None:
        """Raises an error if no engine supports the graph."""
        self._pass("supported")
        if "b" in self.words and numerical_note.TENSOR_CORE in self.notes:
            raise cudnnGraphNotSupportedError("no engine for a bias without tensor cores")
        if self.stored is data_type.DOUBLE and len(self.named["x"].dim) == 5:
            raise cudnnGraphNotSupportedError("no engine for so much")

    def build_plans(self) -> None:
        """Builds the first plan."""
        self._pass("built")
        type(self).built += 1

    def get_workspace_size(self) -> int:
        """Size of the workspace in bytes."""
        assert _STAGES[self.stage] == "built"
        return _WORKSPACE

    def execute(self, tensor_dict: Mapping[int, int], workspace: Any = None, handle: Any = None) -> None:
        """Computes the graph, with arrays at addresses."""
        assert _STAGES[self.stage] == "built"
        if not isinstance(handle, Handle) or handle.stream != MACHINE.stream().ptr:
            raise ValueError("the handle is not that of the current stream")
        if set(tensor_dict) != {each.uid for each in self.named.values()}:
            raise ValueError("arrays are missing")
        if any(type(address) is not int or address % 16 for address in (*tensor_dict.values(), workspace)):
            raise ValueError("an address is not one of 16 bytes")
        memory = tuple([MACHINE.memory_at(address) for address in (*tensor_dict.values(), workspace)])
        MACHINE.run("cuDNN", lambda *_: self._compute(dict(tensor_dict), workspace), memory, {})

    def _compute(self, addresses: dict[int, int], workspace: int) -> None:
        ctypes.memset(workspace, 255, _WORKSPACE)
        arrays = {name: each.array(addresses[each.uid]) for name, each in self.named.items()}
        wide = {name: array.astype(np.float64) for name, array in arrays.items()}
        target = {"conv_fprop": "y", "conv_dgrad": "x", "conv_wgrad": "w"}[self.function]
        _convolve(target, wide, self.words)
        if "b" in wide:
            wide[target] += wide["b"]
        arrays[target][...] = wide[target]
        self.done.append((self.function, self.words, self.notes))


def _convolve(target: str, arrays: dict[str, np.ndarray], words: dict[str, Any]) -> None:
    """Convolution tap by tap, without the positions outside of the input."""
    x, w, y = [arrays[name] for name in "xwy"]
    groups = x.shape[1] // w.shape[1]
    arrays[target][...] = 0
    for group, tap in itertools.product(range(groups), np.ndindex(*w.shape[2:])):
        ins = slice(group * w.shape[1], (group + 1) * w.shape[1])
        outs = slice(group * w.shape[0] // groups, (group + 1) * w.shape[0] // groups)
        reads = [np.arange(q) * s - p + t * d for q, s, p, t, d in
                 zip(y.shape[2:], words["stride"], words["padding"], tap, words["dilation"])]
        inside = [np.flatnonzero((read >= 0) & (read < n)) for read, n in zip(reads, x.shape[2:])]
        here = np.ix_(range(x.shape[0]), range(y.shape[1])[outs], *inside)
        there = np.ix_(range(x.shape[0]), range(x.shape[1])[ins], *[read[i] for read, i in zip(reads, inside)])
        weight = w[(outs, slice(None), *tap)]
        if target == "y":
            y[here] += np.einsum("ni...,oi->no...", x[there], weight)
        elif target == "x":
            x[there] += np.einsum("no...,oi->ni...", y[here], weight)
        else:
            w[(outs, slice(None), *tap)] = np.einsum("nop,nip->oi", y[here].reshape(*y[here].shape[:2], -1),
                                                     x[there].reshape(*x[there].shape[:2], -1))


class Module:
    """The package."""

    data_type, heur_mode, numerical_note, pygraph = data_type, heur_mode, numerical_note, pygraph
    cudnnGraphNotSupportedError = cudnnGraphNotSupportedError

    @staticmethod
    def backend_version() -> int:
        """Version of the library."""
        return 91900

    @staticmethod
    def create_handle() -> Handle:
        """Creates a handle for the current device, on its first stream; it takes memory, which a capture forbids."""
        if MACHINE.capturing() is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
        Handle.live += 1
        return Handle()

    @staticmethod
    def destroy_handle(handle: Handle) -> None:
        """Frees the memory of a handle."""
        if MACHINE.capturing() is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
        Handle.live -= 1

    @staticmethod
    def set_stream(handle: Handle, stream: int) -> None:
        """Sets the stream of a handle."""
        handle.stream = stream


@contextlib.contextmanager
def installed() -> Iterator[Gpu]:
    """Context in which ``gpu(0)`` is a stand-in that has this package."""
    real = cudnn.load
    cudnn.load = Module  # type: ignore[assignment]
    pygraph.done.clear()
    try:
        with gpus() as xp:
            runtime = type("runtime", (_Runtime, xp.cuda.runtime), {})
            xp.cuda = type("cuda", (xp.cuda,), {"runtime": runtime})
            yield xp
    finally:
        cudnn.load = real
        for cache in (cudnn.frontend, cudnn.build):
            cache.cache_clear()  # type: ignore[attr-defined]

"""cuDNN through its frontend, the package ``cudnn``: descriptions of convolutions, and the steps that compute them.

Only this module imports the package, at first use. A convolution is described by the sizes and strides of its arrays,
with the axes in the order batch, channels, spatial axes, whatever their order in memory. The library makes a graph with
an execution plan of it, which is cached for equal descriptions. There is one handle per device, which is created when
the first convolution there is planned, and set to the current stream before each use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.locks import lock
from opreg.core.spec import Shape
from opreg.core.steps import PlainStep, Work, index_at, own_bytes
from opreg.errors import OpError, is_transient
from opreg.typing import Array, ArrayModule

from .handles import Handles

__all__ = ["BuiltGraph", "Convolution", "Convolve", "DTYPES", "Part", "Tensor", "are_aligned", "build",
           "frontend", "load"]

#: The part of a convolution of ``x`` with ``w`` to ``y`` that is computed: ``y``, or the gradient of ``x`` or of ``w``.
Part = Literal["forward", "data", "weight"]

#: For each dtype, the library's names of the type and of the type it computes in.
DTYPES = {"float16": ("HALF", "FLOAT"), "bfloat16": ("BFLOAT16", "FLOAT"), "float32": ("FLOAT", "FLOAT"),
          "float64": ("DOUBLE", "DOUBLE")}

#: For each part, the library's function, the arrays it reads, by parameter, and the array it writes.
_FUNCTIONS: dict[Part, tuple[str, dict[str, str], str]] = {
    "forward": ("conv_fprop", {"image": "x", "weight": "w"}, "y"),
    "data": ("conv_dgrad", {"loss": "y", "filter": "w"}, "x"),
    "weight": ("conv_wgrad", {"image": "x", "loss": "y"}, "w"),
}
_UIDS = {"x": 1, "w": 2, "y": 3, "b": 4}

# The alignment of addresses, in bytes, that the library assumes by default.
_ALIGNED = 16


class Tensor(NamedTuple):
    """Sizes, and strides in elements."""

    sizes: Shape
    strides: Shape


class Convolution(NamedTuple):
    """Everything that a plan of the library depends on.

    Attributes
    ----------
    part : str
        The part that is computed.
    dtype : str
    x, w, y : Tensor
        Data, weight and output.
    stride, dilate, pad : tuple of int
        One value for each spatial axis.
    bias : bool
        Whether one value for each channel is added to ``y``.
    tf32 : bool
        Whether values of float32 may be rounded to TF32 before they are multiplied.
    """

    part: Part
    dtype: str
    x: Tensor
    w: Tensor
    y: Tensor
    stride: Shape
    dilate: Shape
    pad: Shape
    bias: bool
    tf32: bool

    def __str__(self) -> str:
        x, w, y = [" x ".join(map(str, descriptor.sizes)) for descriptor in (self.x, self.w, self.y)]
        return f"{self.part} of {x} with {w} to {y} in {self.dtype}"


def _with_two_axes(kind: Convolution) -> Convolution:
    """A convolution with a single spatial axis, given another of length 1, since the library needs at least two."""
    if len(kind.stride) > 1:
        return kind
    x, w, y = [Tensor((*sizes[:2], 1, *sizes[2:]), (*strides[:2], sizes[2] * strides[2], *strides[2:]))
               for sizes, strides in (kind.x, kind.w, kind.y)]
    return kind._replace(x=x, w=w, y=y, stride=(1, *kind.stride), dilate=(1, *kind.dilate), pad=(0, *kind.pad))


# ------------------------------------------------------------------------------------------------ the library


class Frontend:
    """The package, and its handles, which only one thread uses at a time."""

    def __init__(self, module: Any):
        self.module, self.using = module, lock()
        module.backend_version()  # loads the library, or raises an error if there is none
        self._handles = Handles(module.destroy_handle)

    def handle(self, device: int) -> Any:
        """The library's handle for a device, which is the current one."""
        return self._handles.of(device, self.module.create_handle)

    def execute(self, built: BuiltGraph, device: int, stream: int, addresses: Mapping[int, int], workspace: int | None
                ) -> None:
        """Launch a plan on a stream of a device, which is the current one."""
        with self.using:
            handle = self.handle(device)
            self.module.set_stream(handle, stream)
            built.graph.execute(addresses, workspace, handle=handle)


def load() -> Any:
    """The package.

    Raises
    ------
    ImportError
        When it is not installed.
    """
    import cudnn

    return cudnn


@cached(4)
def frontend(xp: ArrayModule) -> Frontend | str:
    """The library for an array module's devices, or the reason why there is none; searched for once."""
    try:
        xp.cuda.runtime.runtimeGetVersion()
        return Frontend(load())
    except Exception as error:  # the package, the libraries it loads, and CuPy have their own classes of errors
        if is_transient(error):
            raise
        return f"cuDNN does not load: {error}"


class BuiltGraph(NamedTuple):
    """A graph of the library with its plan, and the size of its workspace in bytes."""

    graph: Any
    workspace: int


@cached(512)
def build(library: Frontend, device: int, kind: Convolution) -> BuiltGraph | str:
    """The graph that cuDNN builds for a description of convolutions, or the reason why it builds none."""
    try:
        with library.using:
            return _build(library.module, library.handle(device), _with_two_axes(kind))
    except Exception as error:  # the package has several classes of errors
        if is_transient(error):
            raise
        return f"cuDNN has no plan: {' '.join(str(error).split()) or type(error).__name__}"


def _build(cudnn: Any, handle: Any, kind: Convolution) -> BuiltGraph:
    stored, computed = [getattr(cudnn.data_type, name) for name in DTYPES[kind.dtype]]
    graph = cudnn.pygraph(name="convolution", io_data_type=stored, intermediate_data_type=computed,
                          compute_data_type=computed, handle=handle)
    name, reads, writes = _FUNCTIONS[kind.part]
    tensors = {parameter: _tensor(graph, read, getattr(kind, read)) for parameter, read in reads.items()}
    result = getattr(graph, name)(**tensors, padding=list(kind.pad), stride=list(kind.stride),
                                  dilation=list(kind.dilate), compute_data_type=computed, name="product")
    into: Tensor = getattr(kind, writes)
    if kind.bias:
        channels = into.sizes[1]
        ones = (1,) * len(kind.stride)
        bias = _tensor(graph, "b", Tensor((1, channels, *ones), (channels, 1, *[channels] * len(ones))))
        result.set_dim(list(into.sizes)).set_stride(list(into.strides))
        result = graph.bias(input=result, bias=bias, compute_data_type=computed, name="sum")
    result.set_output(True).set_data_type(stored).set_uid(_UIDS[writes])
    result.set_dim(list(into.sizes)).set_stride(list(into.strides))
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    notes = [cudnn.numerical_note.NONDETERMINISTIC]
    if kind.dtype == "float32" and not kind.tf32:
        notes += [cudnn.numerical_note.TENSOR_CORE, cudnn.numerical_note.DOWN_CONVERT_INPUTS]
    graph.deselect_numeric_notes(notes)
    graph.check_support()
    graph.build_plans()
    return BuiltGraph(graph, graph.get_workspace_size())


def _tensor(graph: Any, name: str, tensor: Tensor) -> Any:
    return graph.tensor(dim=list(tensor.sizes), stride=list(tensor.strides), name=name, uid=_UIDS[name])


# --------------------------------------------------------------------------------------------------- a step


def are_aligned(arrays: Sequence[Array]) -> bool:
    """Whether arrays have the alignment that the library assumes."""
    return not any(address_of(array) % _ALIGNED for array in arrays)


def _execute(title: str, execute: Callable[..., None], *arguments: Any) -> None:
    try:
        execute(*arguments)
    except Exception as error:
        raise OpError(f"{title}: cuDNN answers {error}") from error


class Convolve(PlainStep):
    """One part of a convolution with its arrays, to which it holds references.

    Parameters
    ----------
    xp : module
        The array module.
        device : int
        The index of the current device.
    title : str
        The node's name, for error messages.
    built : BuiltGraph
    arrays : dict of arrays
        The arrays by name: ``x``, ``w``, ``y`` and ``b``.
    writes : str
        The name of the array that is computed.
    scratch : function of shape and dtype
        Gives memory for the workspace.
    """

    __slots__ = ("execute", "stream", "title", "addresses", "place", "held", "read", "written")
    capturable = True

    def __init__(self, xp: ArrayModule, device: int, title: str, built: BuiltGraph, arrays: Mapping[str, Array],
                 writes: str, scratch: Callable[..., Array]):
        library = frontend(xp)
        assert isinstance(library, Frontend)
        workspace = scratch((built.workspace,), np.uint8) if built.workspace else None
        addresses = {_UIDS[name]: address_of(array) for name, array in arrays.items()}
        place = None if workspace is None else address_of(workspace)

        self.execute = functools.partial(library.execute, built, device)
        self.stream, self.title = xp.cuda.get_current_stream, title
        self.addresses, self.place, self.held = addresses, place, (arrays, workspace)
        self.written = own_bytes(arrays[writes])
        self.read = sum(map(own_bytes, arrays.values())) - self.written

    def __call__(self) -> None:
        _execute(self.title, self.execute, self.stream().ptr, self.addresses, self.place)

    def work(self, arrays: Sequence[Array]) -> Work:
        """The convolution of other arrays."""
        bound, workspace = self.held
        numbers = {name: index_at(arrays, array) for name, array in bound.items()}
        moved = [(_UIDS[name], number) for name, number in numbers.items() if number is not None]
        constants = {_UIDS[name]: self.addresses[_UIDS[name]] for name, number in numbers.items() if number is None}
        held = [array for name, array in bound.items() if numbers[name] is None]
        scratch = None if workspace is None else index_at(arrays, workspace)
        execute, stream, title = self.execute, self.stream, self.title

        def convolve(others: Sequence[Array]) -> None:
            addresses = {**constants, **{uid: address_of(others[number]) for uid, number in moved}}
            place = None if scratch is None else address_of(others[scratch])
            _execute(title, execute, stream().ptr, addresses, place)

        convolve.held = held  # type: ignore[attr-defined]
        return convolve

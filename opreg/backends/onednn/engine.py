"""Operations of oneDNN prepared to run on arrays: parts of convolutions, pooling and batch norm, and matrix products.

A ``Work`` is one such part. Arrays may have any strides, while the library chooses the layouts in which it is fastest;
so a ``Work`` also includes the copies of operands to these layouts and back. It holds references to all objects of the
library that it uses, and to the arrays that it is bound to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from ctypes import Array as Arguments
from ctypes import c_void_p
from typing import TypeAlias

import numpy as np

from opreg.core import threads
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.launch import Call, reference
from opreg.core.spec import Shape, show
from opreg.core.versions import is_unchanged, write_count
from opreg.errors import OpError, is_transient

from ..addressing import bounds_of
from . import shared_library
from .primitives import (
    BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    SCRATCHPAD,
    SRC,
    WEIGHTS,
    WORKSPACE,
    Convolution,
    Geometry,
    Part,
    declined,
    group_weight,
)
from .shared_library import Argument, Object, plain

__all__ = ["Work", "possible"]

#: A primitive, the number of its arguments, and the arguments.
Step: TypeAlias = tuple[Object, int, Arguments[Argument]]

#: For arguments whose layout a primitive chooses, the code of the query for it; other arguments have the declared
#: layout.
QUERY = {SRC: 129, DIFF_SRC: 130, WEIGHTS: 131, BIAS: 131, DIFF_WEIGHTS: 132, DST: 133, DIFF_DST: 134, WORKSPACE: 135,
         SCRATCHPAD: 136}


@cached(1024)
def possible(part: Part, geometry: Geometry, strides: tuple[Shape, ...]) -> str | None:
    """The reason why the library does not compute a part, or None if it does."""
    library = shared_library.library()
    if isinstance(library, str):
        return library
    if any(0 in shape for shape in geometry.shapes(part)):
        return "there are no numbers"
    try:
        return declined(library, geometry.describe(library, part, strides)[-1][0])
    except OpError as error:
        if is_transient(error):
            raise
        return str(error)


def step_of(call: Call, run: Callable[[], object], fits: Callable[[], bool] | None = None) -> Callable[[], None]:
    """The step of a plan that runs a function of the library; in a forked child, or where its arrays do not fit, the
    reference kernel."""
    instead, _ = reference(call).steps()

    def step() -> None:
        if shared_library.forked() or not (fits is None or fits()):
            threads.call_all(instead)
        else:
            run()

    return step


class Work:
    """A part of an operation, for arrays of given shapes and strides.

    Parameters
    ----------
    part : str
        ``forward``, ``data`` for the gradient of the data, or ``weight`` for the gradient of the weight.
    geometry : Convolution, Pooling, Norm, Product or Copy
    strides : tuple of tuple of int
        The strides of each array, in elements.

    Attributes
    ----------
    nbytes : list of int
        The sizes of the buffers it needs.
    kept : int or None
        The index of the buffer for the weight in the library's layout; None if that is the array's own layout.
    """

    def __init__(self, part: Part, geometry: Geometry, strides: tuple[Shape, ...]):
        library = shared_library.library()
        if isinstance(library, str):
            raise OpError(library)
        self._library = library
        self.nbytes: list[int] = []
        self._buffers: list[Object] = []
        self._held: tuple[np.ndarray, ...] | None = None
        self.kept: int | None = None
        self._lays_out: Step | None = None  # the step that copies the weight to the buffer
        # ``versions.write_count`` at the copy of the weight; None if the buffer is not valid
        self._since: int | None = None
        self._keeps_weight = False
        self._arrays: list[tuple[Object, Object]] = []  # the library's layout and memory of each array
        self._sizes: list[tuple[int, int]] = []  # the number of elements, and of bytes from first to last
        groups = geometry.groups if isinstance(geometry, Convolution) else 1
        for i, (shape, steps) in enumerate(zip(geometry.shapes(part), strides, strict=True)):
            layout = plain(library, *(group_weight(shape, steps, groups) if i == 1 else (shape, steps)))
            self._arrays.append((layout, self._memory(layout.pointer, layout)))
            last = sum([(size - 1) * step for size, step in zip(shape, steps)])
            self._sizes.append((math.prod(shape), 4 * (last + 1)))
        named: dict[str, Object] = {}
        self._steps: list[Step] = []
        for description, operands in geometry.describe(library, part, strides):
            after: list[Step] = []
            memories = []
            for argument, which in operands:
                if isinstance(which, str):
                    if which not in named:
                        named[which] = self._buffer(self._chosen_layout(description, argument), description)
                    memory = named[which]
                elif argument in QUERY:
                    memory = self._inner(self._chosen_layout(description, argument), description, which, argument,
                                         after)
                else:
                    memory = self._arrays[which][1]
                memories.append((argument, memory))
            self._steps.append(self._step(description, memories))
            self._steps += after

    def _chosen_layout(self, description: Object, argument: int) -> c_void_p:
        """The layout that a primitive chose for an argument; it is owned by the description."""
        layout = self._library.functions["primitive_desc_query_md"](description.pointer, QUERY[argument],
                                                                    1 if argument == BIAS else 0)
        if layout is None:
            raise OpError("oneDNN: a primitive does not report the layout that it expects")
        return c_void_p(layout)

    def _memory(self, layout: c_void_p, using: object) -> Object:
        return Object(self._library, "memory", "memory_create", layout, self._library.engine, None, using=using)

    def _buffer(self, layout: c_void_p, using: object) -> Object:
        self.nbytes.append(self._library.functions["memory_desc_get_size"](layout))
        self._buffers.append(self._memory(layout, using))
        return self._buffers[-1]

    def _inner(self, chosen: c_void_p, description: Object, which: int, argument: int, after: list[Step]
               ) -> Object:
        """The memory of an array in the chosen layout: its own, or a buffer that it is copied to or from."""
        layout, memory = self._arrays[which]
        if self._library.functions["memory_desc_equal"](layout.pointer, chosen):
            return memory
        inner = self._buffer(chosen, description)
        if argument in (DST, DIFF_SRC, DIFF_WEIGHTS):
            after.append(self._reorder(chosen, inner, layout.pointer, memory))
        elif argument == WEIGHTS:
            self.kept = len(self.nbytes) - 1
            self._lays_out = self._reorder(layout.pointer, memory, chosen, inner)
        else:
            self._steps.append(self._reorder(layout.pointer, memory, chosen, inner))
        return inner

    def _step(self, description: Object, operands: Sequence[tuple[int, Object]]) -> Step:
        primitive = Object(self._library, "primitive", "primitive_create", description.pointer, using=operands)
        arguments = (Argument * len(operands))(*[Argument(argument, memory.pointer)
                                                 for argument, memory in operands])
        return primitive, len(operands), arguments

    def _reorder(self, source: c_void_p, a: Object, target: c_void_p, b: Object) -> Step:
        engine = self._library.engine
        description = Object(self._library, "primitive_desc", "reorder_primitive_desc_create", source, engine, target,
                             engine, None)
        return self._step(description, [(SRC, a), (DST, b)])

    def bind(self, arrays: Sequence[np.ndarray], buffers: Sequence[np.ndarray], keeps: bool = False
             ) -> Callable[[], None]:
        """A function that computes on these arrays.

        Parameters
        ----------
        arrays : sequence of float32 arrays
            Arrays with the shapes and strides that were declared, in order; one of them is written. An array may also
            have its axes in another order, if it is laid out the same in memory.
        buffers : sequence of arrays
            Buffers of ``nbytes`` bytes. Their contents are not needed between two calls, except the one at ``kept``.
        keeps : bool
            Whether nothing else writes to that one; then the weight is copied again only after it has changed.

        Raises
        ------
        OpError
            When the size of an array, or of the memory it covers, differs from the declared one.
        """
        for (_, memory), (size, end), array in zip(self._arrays, self._sizes, arrays, strict=True):
            if array.dtype != np.float32 or array.size != size or bounds_of(array, 0) != (0, end):
                raise OpError(f"oneDNN: an array of {array.dtype}, shape {show(array.shape)} and strides "
                              f"{show(array.strides)} does not fit: expected {size} numbers of float32 within "
                              f"{end} bytes")
            self._place(memory, array)
        for memory, buffer, nbytes in zip(self._buffers, buffers, self.nbytes, strict=True):
            if buffer.nbytes < nbytes:
                raise OpError(f"oneDNN: a buffer of {buffer.nbytes} bytes, expected {nbytes}")
            self._place(memory, buffer)
        self._held, self._since, self._keeps_weight = (*arrays, *buffers), None, keeps
        return self.run

    def _place(self, memory: Object, array: np.ndarray) -> None:
        self._library.check("memory_set_data_handle", memory.pointer, address_of(array))

    def release(self) -> None:
        """Drop the references to the arrays, until the next ``bind``."""
        self._held = None

    def run(self) -> None:
        """Compute."""
        if self._held is None:
            raise OpError("oneDNN: no arrays are bound")
        library = self._library
        if self._lays_out is not None and (self._since is None or not is_unchanged(self._held[1], self._since)):
            since = write_count() if self._keeps_weight else None
            self._execute(self._lays_out)
            self._since = since
        for step in self._steps:
            self._execute(step)
        library.check("stream_wait", library.stream)
        shared_library.report_computation()

    def _execute(self, step: Step) -> None:
        primitive, count, arguments = step
        self._library.check("primitive_execute", primitive.pointer, self._library.stream, count, arguments)

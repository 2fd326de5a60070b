"""Primitives of oneDNN: convolutions, pooling, batch norm, matrix products and copies, each described by a geometry.

A geometry holds the shapes of its arrays, and describes the primitives that compute a part of the operation. Shapes
always have the channels on axis 1; strides tell where the channels are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_char_p
from typing import Literal, NamedTuple

from opreg.core.spec import Shape
from opreg.errors import OpError, is_transient

from .shared_library import Library, Object, any_layout, numbers, plain

__all__ = ["Convolution", "Copy", "Geometry", "Norm", "Part", "Pooling", "Product", "declined", "group_weight",
           "implementation"]

Part = Literal["forward", "data", "weight"]

# Constants of the library's interface, fixed for version 3.
DIRECT = 1
TRAINING, INFERENCE, BACKWARD = 64, 96, 128
MAX, AVG_ALL, AVG_INSIDE = 0x1FF, 0x2FF, 0x3FF
ADD, MULTIPLY = 0x1FFF0, 0x1FFF1
GLOBAL_STATISTICS, SCALE_AND_SHIFT = 1, 6
WORKSPACE, SCRATCHPAD = 64, 80
OURS = 1  # the caller provides the memory that a primitive needs while it runs
SRC, DST, WEIGHTS, BIAS, DIFF_SRC, DIFF_DST, DIFF_WEIGHTS = 1, 17, 33, 41, 129, 145, 161
MEAN, VARIANCE, SCALE, SHIFT, DIFF_SCALE, DIFF_SHIFT = 49, 50, 51, 52, 255, 256
FOLLOWING, SECOND = 1 << 15, 2  # the operand of the first operation in an epilogue, and the step to the next
QUERY_NAME = 8  # of the implementation

#: A primitive and its operands: arrays by index, buffers by name.
Description = tuple[Object, list[tuple[int, int | str]]]


def group_weight(shape: Shape, strides: Shape, groups: int) -> tuple[Shape, Shape]:
    """Shape and strides of the weight, with an axis of groups in front if there are several."""
    if groups == 1:
        return shape, strides
    outs = shape[0] // groups
    return (groups, outs, *shape[1:]), (outs * strides[0], *strides)


def implementation(library: Library, description: Object) -> str:
    """The library's name for the implementation that it chose for a primitive."""
    name = c_char_p()
    library.check("primitive_desc_query", description.pointer, QUERY_NAME, 0, byref(name))
    return (name.value or b"").decode(errors="replace")


def declined(library: Library, description: Object) -> str | None:
    """The reason why the library is not used for a primitive, or None if it is."""
    name = implementation(library, description)
    # The library's fallbacks: im2col and a matrix product, as other kernels compute it, or plain loops.
    fallback = "gemm" in name or name.startswith(("ref", "simple"))
    return f"oneDNN has only {name} for it" if fallback else None


class Convolution(NamedTuple):
    """A convolution: the shapes of data (N, C, *size), weight (O, C / groups, *kernel) and output (N, O, *places);
    stride, dilation and padding for each spatial axis; and the number of groups.

    Further operations on the output are ``bias``, which adds a bias; ``scaled``, which multiplies the channels by a
    vector and adds another; and ``added``, which adds an array.

    With ``last``, data and output have their channels last in memory, in which the library is fastest, and are used in
    this layout if possible. Otherwise they are copied to a layout that the library chooses; weights always are.
    """

    x: Shape
    w: Shape
    y: Shape
    stride: Shape
    dilate: Shape
    pad: Shape
    groups: int = 1
    bias: bool = False
    last: bool = False
    scaled: bool = False
    added: bool = False

    def shapes(self, part: Part) -> tuple[Shape, ...]:
        """Shapes of a part's arrays: data, weight, output, and the operands of its epilogue."""
        column = (1, self.w[0], *(1,) * len(self.stride))
        return (self.x, self.w, self.y, *[self.w[:1]] * self.bias, *[column] * (2 * self.scaled),
                *[self.y] * self.added)

    def describe(self, library: Library, part: Part, strides: Sequence[Shape]) -> list[Description]:
        """The primitive that computes a part."""
        if self.last:
            try:
                descriptions = self._describe(library, part, strides, True)
                if declined(library, descriptions[0][0]) is None:
                    return descriptions
            except OpError as error:
                if is_transient(error):
                    raise  # other errors mean that the library has nothing for this layout
        return self._describe(library, part, strides, False)

    def _describe(self, library: Library, part: Part, strides: Sequence[Shape], keep: bool) -> list[Description]:
        x, y = [plain(library, shape, steps) if keep else any_layout(library, shape)
                for shape, steps in ((self.x, strides[0]), (self.y, strides[2]))]
        w = any_layout(library, group_weight(self.w, self.w, self.groups)[0])
        b = any_layout(library, self.w[:1]) if self.bias else None
        words = [numbers(values) for values in (self.stride, [d - 1 for d in self.dilate], self.pad, self.pad)]
        epilogue = self._epilogue(library, strides) if self.scaled or self.added else None
        # both kinds give equal results, by different implementations
        kind = INFERENCE if self.last and part == "forward" else TRAINING
        forward = Object(library, "primitive_desc", "convolution_forward_primitive_desc_create", library.engine, kind,
                         DIRECT, x.pointer, w.pointer, None if b is None else b.pointer, y.pointer, *words,
                         None if epilogue is None else epilogue.pointer)
        if part == "forward":
            first = 3 + self.bias
            return [(forward, [(SRC, 0), (WEIGHTS, 1), (DST, 2), *[(BIAS, 3)] * self.bias,
                               *[(FOLLOWING * (i + 1) | SECOND, first + i) for i in range(2 * self.scaled + self.added)]
                               ])]
        if part == "data":
            backward = Object(library, "primitive_desc", "convolution_backward_data_primitive_desc_create",
                              library.engine, DIRECT, x.pointer, w.pointer, y.pointer, *words, forward.pointer, None)
            return [(backward, [(DIFF_SRC, 0), (WEIGHTS, 1), (DIFF_DST, 2)])]
        backward = Object(library, "primitive_desc", "convolution_backward_weights_primitive_desc_create",
                          library.engine, DIRECT, x.pointer, w.pointer, None, y.pointer, *words, forward.pointer, None)
        return [(backward, [(SRC, 0), (DIFF_WEIGHTS, 1), (DIFF_DST, 2)])]

    def _epilogue(self, library: Library, strides: Sequence[Shape]) -> Object:
        """The epilogue: operations on each element of the output before it is stored."""
        operations = Object(library, "post_ops", "post_ops_create")
        kinds = [MULTIPLY, ADD] * self.scaled + [ADD] * self.added
        shapes, strides = self.shapes("forward")[3 + self.bias:], strides[3 + self.bias:]
        for kind, shape, steps in zip(kinds, shapes, strides, strict=True):
            operand = plain(library, shape, steps)
            library.check("post_ops_append_binary", operations.pointer, kind, operand.pointer)
        attributes = Object(library, "primitive_attr", "primitive_attr_create")
        library.check("primitive_attr_set_post_ops", attributes.pointer, operations.pointer)
        return attributes


class Pooling(NamedTuple):
    """Pooling: the shapes of data (N, C, *size) and output (N, C, *places); kernel, stride and padding for each spatial
    axis; and the kind: ``max``, ``all`` for averages that include the padding, or ``inside`` for averages that do
    not."""

    x: Shape
    y: Shape
    kernel: Shape
    stride: Shape
    pad: Shape
    kind: str

    def shapes(self, part: Part) -> tuple[Shape, ...]:
        """Shapes of a part's arrays: data and output, or their gradients and, for maxima, the data."""
        return (self.x, self.y, self.x) if part == "data" and self.kind == "max" else (self.x, self.y)

    def describe(self, library: Library, part: Part, strides: Sequence[Shape]) -> list[Description]:
        """The primitives that compute a part, in order."""
        x, y = [plain(library, shape, steps) for shape, steps in zip((self.x, self.y), strides)]
        after = [max(0, (q - 1) * s + k - n - p) for n, q, k, s, p in
                 zip(self.x[2:], self.y[2:], self.kernel, self.stride, self.pad)]
        words = [numbers(values) for values in (self.stride, self.kernel, [0] * len(after), self.pad, after)]
        algorithm = {"max": MAX, "all": AVG_ALL, "inside": AVG_INSIDE}[self.kind]
        forward = Object(library, "primitive_desc", "pooling_forward_primitive_desc_create", library.engine,
                         INFERENCE if part == "forward" else TRAINING, algorithm, x.pointer, y.pointer, *words, None)
        if part == "forward":
            return [(forward, [(SRC, 0), (DST, 1)])]
        backward = Object(library, "primitive_desc", "pooling_backward_primitive_desc_create", library.engine,
                          algorithm, x.pointer, y.pointer, *words, forward.pointer, None)
        if self.kind != "max":
            return [(backward, [(DIFF_SRC, 0), (DIFF_DST, 1)])]
        # A forward pass is needed to find which element of a window is its maximum.
        return [(forward, [(SRC, 2), (DST, "maxima"), (WORKSPACE, "places")]),
                (backward, [(DIFF_SRC, 0), (DIFF_DST, 1), (WORKSPACE, "places")])]


class Norm(NamedTuple):
    """Batch norm of data of shape (N, C, *size); mean and variance are computed from the data if ``measured``, else
    they are inputs."""

    x: Shape
    eps: float
    measured: bool = True

    def shapes(self, part: Part) -> tuple[Shape, ...]:
        """Shapes of a part's arrays. ``forward``: data, output, mean, variance, scale, shift. Gradients: data, the
        gradients of output and of data, mean, variance, scale, the gradients of scale and of shift."""
        vector = self.x[1:2]
        return (self.x, self.x, *[vector] * 4) if part == "forward" else (*[self.x] * 3, *[vector] * 5)

    def describe(self, library: Library, part: Part, strides: Sequence[Shape]) -> list[Description]:
        """The primitive that computes a part."""
        data = plain(library, self.x, strides[0])
        x = data.pointer
        flags = SCALE_AND_SHIFT | GLOBAL_STATISTICS * (not self.measured)
        forward = Object(library, "primitive_desc", "batch_normalization_forward_primitive_desc_create",
                         library.engine, TRAINING if self.measured else INFERENCE, x, x, self.eps, flags, None)
        if part == "forward":
            return [(forward, [(SRC, 0), (DST, 1), (MEAN, 2), (VARIANCE, 3), (SCALE, 4), (SHIFT, 5)])]
        backward = Object(library, "primitive_desc", "batch_normalization_backward_primitive_desc_create",
                          library.engine, BACKWARD, x, x, x, self.eps, flags, forward.pointer, None)
        return [(backward, [(SRC, 0), (DIFF_DST, 1), (DIFF_SRC, 2), (MEAN, 3), (VARIANCE, 4), (SCALE, 5),
                            (DIFF_SCALE, 6), (DIFF_SHIFT, 7)])]


class Product(NamedTuple):
    """A product of matrices (m, k) and (k, n), or of two stacks of them; with ``bias``, a vector (n) is added to each
    row; with ``kept``, the right factor is read in the library's layout."""

    a: Shape
    b: Shape
    bias: bool = False
    kept: bool = False

    def shapes(self, part: Part) -> tuple[Shape, ...]:
        """Shapes of the factors, the product and the bias."""
        return self.a, self.b, (*self.a[:-1], self.b[-1]), *[(*(1,) * (len(self.a) - 1), self.b[-1])] * self.bias

    def describe(self, library: Library, part: Part, strides: Sequence[Shape]) -> list[Description]:
        """The primitive."""
        a, b, y, *bias = [plain(library, shape, steps) for shape, steps in zip(self.shapes(part), strides)]
        if self.kept:
            b = any_layout(library, self.b)
        attributes = Object(library, "primitive_attr", "primitive_attr_create")
        # otherwise each primitive has its own scratchpad
        library.check("primitive_attr_set_scratchpad_mode", attributes.pointer, OURS)
        product = Object(library, "primitive_desc", "matmul_primitive_desc_create", library.engine, a.pointer,
                         b.pointer, bias[0].pointer if bias else None, y.pointer, attributes.pointer)
        return [(product, [(SRC, 0), (WEIGHTS, 1), (DST, 2), *[(BIAS, 3)] * self.bias, (SCRATCHPAD, "scratch")])]


class Copy(NamedTuple):
    """A copy of an array to one with other strides."""

    x: Shape

    def shapes(self, part: Part) -> tuple[Shape, ...]:
        """Shapes of the two arrays."""
        return self.x, self.x

    def describe(self, library: Library, part: Part, strides: Sequence[Shape]) -> list[Description]:
        """The primitive."""
        source, target = [plain(library, self.x, steps) for steps in strides]
        reorder = Object(library, "primitive_desc", "reorder_primitive_desc_create", source.pointer, library.engine,
                         target.pointer, library.engine, None)
        return [(reorder, [(SRC, 0), (DST, 1)])]


Geometry = Convolution | Pooling | Norm | Product | Copy

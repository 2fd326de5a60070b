"""Builder of an ONNX graph: nodes, constants, names, and the operations used by translations.

Operations have the same meaning for all versions of ONNX's operators; this module chooses the encoding. Each node is
checked against the schema of its operator, and its outputs get the shapes and dtypes inferred by ONNX.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.chosen import override
from ...core.spec import ANY, Shape, Spec, is_floating
from ...interop.translation import Untranslatable
from ..package import onnx
from .values import REST, Length, Numbers, Value, dynamic, length_of, product

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, NodeProto, OperatorSetIdProto, TypeProto, ValueInfoProto
    from onnx.defs import OpSchema

__all__ = ["REST", "Builder", "Length", "Model", "Names", "Numbers", "Value", "dynamic", "length_of", "product"]


_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(bool)


class Names:
    """Unique names of values and nodes in a graph with its bodies, or in a function."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        count = self._taken.get(name)
        self._taken[name] = (count or 0) + 1
        return name if count is None else self(f"{name}_{count}")


class Model:
    """State shared by the graph, its functions and bodies.

    Attributes
    ----------
    opset : int
        Version of ONNX's operators.
    sizes : int
        Number of sample sizes for dynamic dimensions; one if there are none.
    functions : dict of domain and name to FunctionProto
        Functions called by nodes.
    domains : dict of domain to version
        Domains of nodes.
    training : bool
        Mode of nodes without a mode of their own; nodes of Cells have one.
    """

    def __init__(self, opset: int, sizes: int = 1, training: bool = False):
        self.opset, self.sizes, self.training = opset, sizes, training
        self.functions: dict[tuple[str, str], FunctionProto] = {}
        self.domains: dict[str, int] = {"": opset}

    @property
    def opsets(self) -> list[OperatorSetIdProto]:
        """The domains as models and functions import them."""
        return [onnx("helper").make_opsetid(domain, version) for domain, version in self.domains.items()]


class Builder:
    """A graph, or the body of a loop, branch or function, under construction.

    Called with an operator's name, values or numbers, and attributes, it adds a node and returns its output, or a list
    of several.

    Parameters
    ----------
    model : Model
        The model that it belongs to.
    outer : Builder, optional
        The graph around a body.
    function : bool
        Whether it is the body of a function, which holds constants as nodes.
    """

    def __init__(self, model: Model, outer: Builder | None = None, function: bool = False):
        self.model, self.opset, self.sizes, self.outer, self.function = (
            model, model.opset, model.sizes, outer, function)
        self.names: Names = Names() if outer is None else outer.names
        self.nodes: list[NodeProto] = []
        self.initializers: dict[str, np.ndarray] = {}
        self.inputs: list[Value] = []
        self.prefix = ""
        self._constants: dict[tuple[object, ...], Value] = {}
        self.primitives: Mapping[str, Callable[..., Value]] = {}

    def of(self, name: str) -> override:
        """Prefix the names of values made inside with a node's name."""
        return override(self, prefix=name)

    # ------------------------------------------------------------------------------------------- nodes

    def __call__(self, kind: str, *ins: Numbers, count: int = 1, **attrs: Any) -> Any:
        """Add a node of ONNX's own domain."""
        schema = self.schema(kind)
        first = next((each for each in ins if isinstance(each, Value)), None)
        values = [None if each is None else self.like(each, first) for each in ins]
        attrs = {key: value for key, value in attrs.items() if value is not None}
        for key in attrs:
            if key not in schema.attributes:
                raise Untranslatable(f"{kind} of opset {self.opset} has no attribute {key!r}")
        self._check(schema, kind, values)
        names = ["" if value is None else value.name for value in values]
        outs = [self.names(f"{self.prefix or 'value'}_{kind.lower()}" + (f"{i}" if count > 1 else ""))
                for i in range(count)]
        node = onnx("helper").make_node(kind, names, outs, name=self.names(self.prefix or kind.lower()), **attrs)
        self.nodes.append(node)
        results = [Value(self, name, shapes, dtype) for name, (shapes, dtype)
                   in zip(outs, self._infer_outputs(schema, node, values, count))]
        return results[0] if count == 1 else results

    def custom(self, domain: str, kind: str, ins: Sequence[Value], outs: Sequence[tuple[Sequence[Shape | None], Any]],
               /, **attrs: Any) -> list[Value]:
        """Add a node of another domain, with outputs of the given shapes and dtypes."""
        self.model.domains.setdefault(domain, 1)
        names = [self.names(f"{self.prefix or kind}_output" + (f"{i}" if len(outs) > 1 else ""))
                 for i in range(len(outs))]
        node = onnx("helper").make_node(kind, [value.name for value in ins], names, domain=domain,
                                        name=self.names(self.prefix or kind))
        node.attribute.extend([onnx("helper").make_attribute(key, attrs[key]) for key in sorted(attrs)])
        self.nodes.append(node)
        return [Value(self, name, shapes, dtype) for name, (shapes, dtype) in zip(names, outs)]

    def schema(self, kind: str) -> OpSchema:
        """The schema of ONNX's operator at this opset."""
        try:
            schema = onnx("defs").get_schema(kind, self.opset, "")
        except onnx("defs").SchemaError:
            newest = min((each.since_version for each in onnx("defs").get_all_schemas_with_history()
                          if each.name == kind and each.domain == ""), default=None)
            raise Untranslatable(f"ONNX has {kind} from opset {newest} on, but the model is to have opset {self.opset}"
                                 ) from None
        if schema.deprecated:
            raise Untranslatable(f"ONNX no longer has {kind} in opset {self.opset}")
        return schema

    def _check(self, schema: OpSchema, kind: str, values: Sequence[Value | None]) -> None:
        for i, value in enumerate(values):
            formal = schema.inputs[min(i, len(schema.inputs) - 1)]
            if value is None:
                if formal.option == formal.option.Single:
                    raise Untranslatable(f"input {formal.name!r} of {kind} has neither an example nor a value")
                continue
            text = _type_text(value.dtype)
            if text not in formal.types:
                raise Untranslatable(f"{kind} of opset {self.opset} takes no {value.dtype}")

    def _infer_outputs(self, schema: OpSchema, node: NodeProto, values: Sequence[Value | None], count: int
                       ) -> list[tuple[list[Shape | None], np.dtype]]:
        """Shapes and dtypes of a node's outputs as inferred by ONNX, for each sample size."""
        dtype = next((value.dtype for value in values if value is not None), np.dtype(np.float32))
        results: list[tuple[list[Shape | None], np.dtype]] = [([], dtype) for _ in range(count)]
        data = {value.name: onnx("numpy_helper").from_array(value.array, value.name) for value in values
                if value is not None and isinstance(value.array, np.ndarray) and value.array.size <= 64}
        for size in range(self.sizes):
            types = {value.name: _type_of(value.dtype, value.shapes[size]) for value in values if value is not None}
            try:
                answer = onnx("shape_inference").infer_node_outputs(schema, node, types, data,
                                                                    opset_imports=self.model.opsets)
            except (onnx("shape_inference").InferenceError, RuntimeError) as error:
                raise Untranslatable(f"{node.op_type}: {str(error).strip().splitlines()[-1]}") from None
            for i, name in enumerate(node.output):
                shape, inferred = _spec_of(answer.get(name))
                results[i][0].append(shape)
                results[i] = results[i][0], results[i][1] if inferred is None else inferred
        return results

    # --------------------------------------------------------------------------------------- constants

    def constant(self, array: Any, name: str = "") -> Value:
        """An array as a constant; equal unnamed constants are shared."""
        array = np.asarray(array)
        if self.outer is not None:
            constant = self.outer.constant(array, name)
            return Value(self, constant.name, constant.shapes, constant.dtype, constant.array)
        key = (array.dtype, array.shape, array.tobytes()) if array.size <= 4096 and not name else (object(),)
        if key not in self._constants:
            name = self.names(name or "constant")
            if self.function:
                tensor = onnx("numpy_helper").from_array(array, name)
                self.nodes.append(onnx("helper").make_node("Constant", [], [name], name=name, value=tensor))
            else:
                self.initializers[name] = array
            self._constants[key] = Value(self, name, [array.shape] * self.sizes, array.dtype, array)
        return self._constants[key]

    def like(self, number: Numbers, value: Value | None) -> Value:
        """A value, or a number as a constant in the dtype of another value."""
        if isinstance(number, Value):
            return number
        return self.constant(np.asarray(number, _INT64 if value is None else value.dtype))

    def ints(self, *numbers: int) -> Value:
        """A vector of int64."""
        return self.constant(np.asarray(numbers, _INT64))

    # --------------------------------------------------------- the words of a dialect, arguments as NumPy's

    def spec(self, x: Value) -> Spec:
        """Shape and dtype."""
        return Spec(x.shape, x.dtype)

    def cast(self, x: Value, dtype: Any) -> Value:
        """A value cast to a dtype."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if isinstance(x.array, np.ndarray):
            return self.constant(x.array.astype(dtype))
        return self("Cast", x, to=onnx("helper").np_dtype_to_tensor_dtype(dtype))

    def array(self, numbers: np.ndarray, like: Any) -> Value:
        """An array as a constant."""
        return self.constant(numbers)

    def number(self, value: float, like: Value) -> Value:
        """A scalar constant in the dtype of ``like``."""
        return self.constant(np.asarray(value, like.dtype))

    def stop(self, x: Value) -> Value:
        """The value itself: an exported model has no gradient to stop."""
        return x

    def reshape(self, x: Value, shape: Sequence[Any]) -> Value:
        """A value in another shape; dynamic lengths are computed when the model runs."""
        before, shape = x.known_shape, tuple(shape)
        if before == shape:
            return x
        moving = [i for i, dim in enumerate(shape) if dynamic(dim)]
        if isinstance(x.array, np.ndarray) and not moving:
            return self.constant(x.array.reshape(shape))
        if len(moving) == 1:
            target = self.ints(*[-1 if dynamic(dim) else dim for dim in shape])
        else:
            target = self.lengths(shape, x, free=True)
        empty = any(not dynamic(dim) and dim == 0 for dim in shape)
        result: Value = self("Reshape", x, target, allowzero=1 if empty else None)
        if REST not in shape:
            result.shapes = self.shape_by_size(shape)
        return result

    def shape_by_size(self, shape: Sequence[Any]) -> tuple[Shape, ...]:
        """A shape for each sample size."""
        return tuple([tuple([dim.sizes[size] if dynamic(dim) else dim for dim in shape])
                      for size in range(self.sizes)])

    def lengths(self, shape: Sequence[Any], x: Value | None = None, free: bool = False) -> Value:
        """A shape as a vector. Dynamic lengths are taken from ``x`` or from inputs; with ``free``, one that is in
        neither is inferred."""
        if not any(map(dynamic, shape)):
            return self.ints(*shape)
        parts: list[Value] = []
        for dim in shape:
            result = self.ints(dim) if not dynamic(dim) else self._dynamic_length(dim, x)
            if result is None and not free:
                raise Untranslatable("a dynamic length that is not the length of an input axis")
            if result is None:
                result, free = self.ints(-1), False
            parts.append(result)
        return self("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def _dynamic_length(self, length: Length, x: Value | None) -> Value | None:
        """A dynamic length as a vector with one element, taken from an axis of ``x`` or of an input."""
        for value in ([] if x is None else [x]) + self.inputs:
            for axis, dim in enumerate(value.known_shape or ()):
                if dim == length:
                    return self.length(value, axis)
        if self.outer is None:
            return None
        result = self.outer._dynamic_length(length, None)
        return None if result is None else Value(self, result.name, result.shapes, result.dtype)

    def length(self, x: Value, axis: int) -> Value:
        """The length of an axis, as a vector with one element."""
        dim = x.shape[axis]
        return self.gather(self("Shape", x), self.ints(axis), 0) if dynamic(dim) else self.ints(dim)

    def transpose(self, x: Value, axes: Sequence[int]) -> Value:
        """A value with permuted axes."""
        axes = [int(axis) for axis in axes]
        if axes == [*range(len(axes))]:
            return x
        if isinstance(x.array, np.ndarray):
            return self.constant(np.ascontiguousarray(x.array.transpose(axes)))
        return self("Transpose", x, perm=axes)

    def broadcast(self, x: Value, shape: Sequence[Any]) -> Value:
        """A value broadcast to a shape."""
        shape = tuple(shape)
        before = x.shape
        if before == shape:
            return x
        padded = (1,) * (len(shape) - len(before)) + before
        target = self.lengths([1 if old == new else new for old, new in zip(padded, shape)])
        result: Value = self("Expand", x, target)
        result.shapes = self.shape_by_size(shape)
        return result

    def broadcast_like(self, x: Value, like: Value) -> Value:
        """A value broadcast to the shape of another."""
        if x.known_shape == like.known_shape:
            return x
        if not any(map(dynamic, like.shape)):
            return self.broadcast(x, like.shape)
        result: Value = self("Expand", x, self("Shape", like))
        result.shapes = like.shapes
        return result

    def constant_like(self, value: float, like: Value, dtype: np.dtype) -> Value:
        """A constant in the shape of another value."""
        return self.broadcast_like(self.constant(np.asarray(value, dtype)), like)

    def reduce(self, kind: str, x: Value, axes: Sequence[int], keepdims: bool = True) -> Value:
        """A reduction over axes: ``Sum``, ``Mean``, ``Prod``, ``Max``, ``Min``, ``L1`` or ``L2``."""
        axes = [int(axis) for axis in axes]
        if not axes:
            return x
        name = f"Reduce{kind}"
        if self.opset >= (13 if kind == "Sum" else 18):
            return self(name, x, self.ints(*axes), keepdims=int(keepdims))
        return self(name, x, axes=axes, keepdims=int(keepdims))

    def sum(self, x: Value, axes: Sequence[int]) -> Value:
        """The sum over axes, which remain with length one."""
        return self.reduce("Sum", x, axes)

    def prod(self, x: Value, axes: Sequence[int]) -> Value:
        """The product over axes, which remain with length one."""
        return self.reduce("Prod", x, axes)

    def max(self, x: Value, axes: Sequence[int]) -> Value:
        """The maximum over axes, which remain with length one."""
        return self.reduce("Max", x, axes)

    def min(self, x: Value, axes: Sequence[int]) -> Value:
        """The minimum over axes, which remain with length one."""
        return self.reduce("Min", x, axes)

    def mean(self, x: Value, axes: Sequence[int]) -> Value:
        """The mean over axes, which remain with length one."""
        return self.reduce("Mean", x, axes)

    def concat(self, xs: Sequence[Value], axis: int) -> Value:
        """Values concatenated along an axis."""
        if len(xs) == 1:
            return xs[0]
        if all(isinstance(x.array, np.ndarray) for x in xs):
            return self.constant(np.concatenate([x.array for x in xs], axis))
        return self("Concat", *xs, axis=int(axis))

    def flip(self, x: Value, axes: Sequence[int]) -> Value:
        """A value reversed along axes."""
        return self.slice(x, [-1] * len(axes), [-_FAR] * len(axes), axes, [-1] * len(axes)) if len(axes) else x

    def where(self, condition: Value, x: Numbers, y: Numbers) -> Value:
        """Elements of ``x`` or ``y``, selected by booleans."""
        like = x if isinstance(x, Value) else y
        condition, x, y = self.truth(condition), self.like(x, like), self.like(y, like)
        if x.dtype == _BOOL:  # ONNX Runtime computes no Where of booleans
            return self("Or", self("And", condition, x), self("And", self("Not", condition), y))
        return self("Where", condition, x, y)

    def matmul(self, x: Value, y: Value) -> Value:
        """The matrix product."""
        return self("MatMul", x, y)

    def softmax(self, x: Value, axis: int, kind: str = "Softmax") -> Value:
        """The softmax along an axis."""
        rank = len(x.shape)
        if self.opset >= 13 or axis == rank - 1:
            return self(kind, x, axis=axis)
        order = [i for i in range(rank) if i != axis] + [axis]
        inverse = [order.index(i) for i in range(rank)]
        return self.transpose(self(kind, self.transpose(x, order), axis=rank - 1), inverse)

    def log_softmax(self, x: Value, axis: int) -> Value:
        """The logarithm of the softmax along an axis."""
        return self.softmax(x, axis, "LogSoftmax")

    def subscript(self, x: Value, key: Sequence[Any]) -> Value:
        """``x[key]`` for integers, slices, None and ``...``."""
        rank = len(x.shape)
        used = sum(part is not None and part is not Ellipsis for part in key)
        whole = [slice(None)] * (rank - used)
        at = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
        parts = [*key[:at], *whole, *key[at + 1:]]
        starts, ends, axes, steps, gone, new, axis, place = [], [], [], [], [], [], 0, 0
        for part in parts:
            if part is None:
                new.append(place)
                place += 1
                continue
            if isinstance(part, slice):
                if part != slice(None):
                    step = 1 if part.step is None else int(part.step)
                    starts.append((0 if step > 0 else -1) if part.start is None else int(part.start))
                    ends.append((_FAR if step > 0 else -_FAR) if part.stop is None else int(part.stop))
                    axes.append(axis)
                    steps.append(step)
                place += 1
            else:
                starts.append(int(part))
                ends.append(int(part) + 1 or _FAR)
                axes.append(axis)
                steps.append(1)
                gone.append(axis)
            axis += 1
        x = self.slice(x, starts, ends, axes, steps) if axes else x
        x = self.squeeze(x, gone) if gone else x
        return self.unsqueeze(x, new) if new else x

    def elementwise(self, forward: Callable[..., Any], pull: Callable[..., Any], xs: Sequence[Value]) -> Any:
        """The outputs of forward; an exported model has no gradient."""
        return forward(*xs)

    def with_gradient(self, forward: Callable[..., Sequence[Any]], backward: Callable[..., Sequence[Any]],
                      xs: Sequence[Value]) -> Sequence[Any]:
        """The outputs of forward; an exported model has no gradient."""
        return forward(*xs)

    # -------------------------------------------------------------------------------------- further words

    def compare(self, kind: str, x: Value, y: Numbers) -> Value:
        """A comparison, as booleans."""
        y = self.like(y, x)
        if kind in ("GreaterOrEqual", "LessOrEqual") and self.opset < 12:
            return self("Or", self.compare(kind.removesuffix("OrEqual"), x, y), self.compare("Equal", x, y))
        if kind == "Equal" and self.opset < 11 and is_floating(x.dtype):
            return self._equal(x, y)
        if _type_text(x.dtype) not in self.schema(kind).inputs[0].types:
            wider = np.dtype(np.int64) if kind == "Equal" else np.dtype(np.float64)
            x, y = self.cast(x, wider), self.cast(y, wider)
        return self(kind, x, y)

    def _equal(self, x: Value, y: Value) -> Value:
        """Equality of floats: neither is larger, and neither is NaN. Old opsets have Equal only for integers."""
        numbers = [self("Or", self("Less", each, math.inf), self("Greater", each, -math.inf)) for each in (x, y)]
        apart = self("Or", self("Less", x, y), self("Greater", x, y))
        return self("And", self("Not", apart), self("And", *numbers))

    def truth(self, x: Value) -> Value:
        """Whether elements are nonzero."""
        return x if x.dtype == _BOOL else x != 0

    def squeeze(self, x: Value, axes: Sequence[int]) -> Value:
        """A value without the given axes of length one."""
        axes = [int(axis) for axis in axes]
        if not axes:
            return x
        return self("Squeeze", x, self.ints(*axes)) if self.opset >= 13 else self("Squeeze", x, axes=axes)

    def unsqueeze(self, x: Value, axes: Sequence[int]) -> Value:
        """A value with new axes of length one at the given positions of the output."""
        axes = [int(axis) for axis in axes]
        if not axes:
            return x
        return self("Unsqueeze", x, self.ints(*axes)) if self.opset >= 13 else self("Unsqueeze", x, axes=axes)

    def slice(self, x: Value, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int],
              steps: Sequence[int] | None = None) -> Value:
        """``x[start:end:step]`` along axes."""
        if steps is not None and all(step == 1 for step in steps):
            steps = None
        starts, ends, axes = ([int(number) for number in numbers] for numbers in (starts, ends, axes))
        if isinstance(x.array, np.ndarray):
            key = [slice(None)] * x.array.ndim
            for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(axes)):
                key[axis] = slice(start, None if step < 0 and end <= -_FAR else end, step)
            return self.constant(np.ascontiguousarray(x.array[tuple(key)]))
        if self.opset < 10:
            if steps is not None:
                raise Untranslatable("ONNX has Slice with steps from opset 10 on, but the model is to have opset "
                                     f"{self.opset}")
            return self("Slice", x, starts=starts, ends=ends, axes=axes)
        return self("Slice", x, self.ints(*starts), self.ints(*ends), self.ints(*axes),
                    *([] if steps is None else [self.ints(*steps)]))

    def pad(self, x: Value, before: Sequence[int], after: Sequence[int], value: float = 0.0, mode: str = "constant"
            ) -> Value:
        """A value padded before and after each axis."""
        pads = [int(number) for number in (*before, *after)]
        if not any(pads):
            return x
        if self.opset < 11:
            return self("Pad", x, pads=pads, mode=mode, value=float(value))
        return self("Pad", x, self.ints(*pads), *([self.number(value, x)] if mode == "constant" else []), mode=mode)

    def split(self, x: Value, axis: int, parts: Sequence[int]) -> list[Value]:
        """Parts of the given lengths along an axis."""
        if len(parts) == 1:
            return [x]
        if self.opset >= 13:
            return list(self("Split", x, self.ints(*parts), axis=axis, count=len(parts)))
        return list(self("Split", x, axis=axis, split=[int(part) for part in parts], count=len(parts)))

    def gather(self, x: Value, indices: Value, axis: int) -> Value:
        """The elements at indices along an axis."""
        return self("Gather", x, indices, axis=axis)

    def clip(self, x: Value, low: float | None, high: float | None) -> Value:
        """A value clipped to [``low``, ``high``]."""
        if self.opset >= 11 and _type_text(x.dtype) in self.schema("Clip").inputs[0].types:
            return self("Clip", x, None if low is None else self.number(low, x),
                        *([] if high is None else [self.number(high, x)]))
        if low is not None:
            x = self.larger(x, low)
        return x if high is None else self.smaller(x, high)

    def larger(self, x: Value, y: Numbers) -> Value:
        """The elementwise maximum."""
        return self._extreme("Max", x, y)

    def smaller(self, x: Value, y: Numbers) -> Value:
        """The elementwise minimum."""
        return self._extreme("Min", x, y)

    def _extreme(self, kind: str, x: Value, y: Numbers) -> Value:
        y = self.like(y, x)
        if _type_text(x.dtype) in self.schema(kind).inputs[0].types and self.opset >= 8:
            return self(kind, x, y)
        return self.where(x > y if kind == "Max" else x < y, x, y)

    def numbers_to(self, count: Value) -> Value:
        """The integers below a vector with one element."""
        return self("Range", self.constant(np.asarray(0, _INT64)), self.squeeze(count, [0]),
                    self.constant(np.asarray(1, _INT64)))

    def round_down(self, x: Value) -> Value:
        """A value rounded down; integers unchanged."""
        return self("Floor", x) if is_floating(x.dtype) else x

    def topk(self, x: Value, k: int | Value, axis: int, largest: bool) -> tuple[Value, Value]:
        """The ``k`` largest or smallest elements in order, and their indices."""
        number = self.ints(k) if isinstance(k, int) else k
        if self.opset >= 11:
            values, places = self("TopK", x, number, axis=axis, largest=int(largest), sorted=1, count=2)
            return values, places
        if not largest:
            values, places = self.topk(-x, k, axis, True)
            return -values, places
        if self.opset == 10:
            values, places = self("TopK", x, number, axis=axis, count=2)
        elif isinstance(k, int):
            values, places = self("TopK", x, axis=axis, k=k, count=2)
        else:
            raise Untranslatable("ONNX has TopK with a dynamic k from opset 10 on")
        return values, places

    def body(self) -> Builder:
        """A new graph inside this one."""
        inner = Builder(self.model, self)
        inner.primitives, inner.prefix = self.primitives, self.prefix
        return inner

    def graph(self, name: str, ins: Sequence[Value], outs: Sequence[Value]) -> GraphProto:
        """The graph as ONNX's GraphProto."""
        ends = self.ends(outs)
        tensors = [onnx("numpy_helper").from_array(array, key) for key, array in self.initializers.items()]
        return onnx("helper").make_graph(self.nodes, name, [_info(value) for value in ins],
                                         [_info(value) for value in ends], tensors)

    def ends(self, outs: Sequence[Value]) -> list[Value]:
        """Outputs, each from a node of its own: inputs, constants and repeated outputs are copied."""
        outputs = {each for node in self.nodes if node.op_type != "Constant" for each in node.output}
        ends: list[Value] = []
        for out in outs:
            ends.append(out if out.name in outputs else self.copy(out))
            outputs.discard(ends[-1].name)
        return ends

    def copy(self, value: Value, name: str = "") -> Value:
        """A copy of a value under another name."""
        result: Value = self("Identity", value)
        result.shapes = value.shapes
        if name:
            self.nodes[-1].output[0] = result.name = name
        return result


#: An index beyond any length.
_FAR = 2 ** 31 - 1


def _type_text(dtype: np.dtype) -> str:
    kind = onnx().TensorProto.DataType.Name(onnx("helper").np_dtype_to_tensor_dtype(dtype)).lower()
    return f"tensor({_KINDS.get(dtype, kind)})"


_KINDS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


def _type_of(dtype: np.dtype, shape: Shape | None, names: Sequence[str | None] = ()) -> TypeProto:
    kind = onnx("helper").np_dtype_to_tensor_dtype(dtype)
    if shape is None:
        return onnx("helper").make_tensor_type_proto(kind, None)
    dims = [None if dim is ANY or dynamic(dim) else int(dim) for dim in shape]
    return onnx("helper").make_tensor_type_proto(kind, dims)


def _info(value: Value) -> ValueInfoProto:
    return onnx("helper").make_value_info(value.name, _type_of(value.dtype, value.known_shape))


def _spec_of(type_proto: TypeProto | None) -> tuple[Shape | None, np.dtype | None]:
    if type_proto is None or not type_proto.HasField("tensor_type"):
        return None, None
    kind = type_proto.tensor_type
    dtype = np.dtype(onnx("helper").tensor_dtype_to_np_dtype(kind.elem_type)) if kind.elem_type else None
    if not kind.HasField("shape"):
        return None, dtype
    return tuple([dim.dim_value if dim.HasField("dim_value") else ANY for dim in kind.shape.dim]), dtype

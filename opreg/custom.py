"""Operators that users write: ``CustomOp`` and ``CustomOpProp`` as in MXNet, and ``define`` for one function.

Both become the same record as a built-in operator, under the name ``custom.<name>``, so a user's ``softmax`` and
the built-in one live side by side. Seen from outside this module is ``opreg.operator``.
"""

from __future__ import annotations

import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .attrs import REQUIRED, Field, Schema, to_text
from .dispatch import write
from .errors import (
    ArgumentError,
    DTypeError,
    NotDifferentiableError,
    OpError,
    ShapeError,
    UnknownOperatorError,
    Where,
    did_you_mean,
    note,
)
from .op import Call, FirstRun, Op, Rule
from .registry import find, get, names
from .registry import register as enter
from .spec import ANY, Shape, Spec, TypeFlag, as_dtype, known, show
from .value import Value

__all__ = ["CustomOp", "CustomOpProp", "register", "define", "get", "get_all_registered_operators",
           "get_operator_arguments", "custom"]


#: Makes an NDArray of a NumPy array. The package of arrays stands above this one and sets it.
host_array: Callable[[Any], Any] = np.asarray


def shown(value: Any) -> Any:
    """Values as users' code is given them, also in lists: arrays that refuse to be changed."""
    if isinstance(value, (list, tuple)):
        return type(value)(shown(each) for each in value)
    return value.shown() if isinstance(value, Value) else value


class CustomOp:
    """What computes: derive from it, and define ``forward`` and ``backward``.

    Both get lists of NDArrays and write their results through ``assign``.

    Examples
    --------
    >>> class Twice(CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * 2)
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], out_grad[0] * 2)
    """

    def forward(self, is_train: bool, req: list[str], in_data: list, out_data: list, aux: list) -> None:
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Whether a backward pass may follow.
        req : list of {"null", "write", "inplace", "add"}
            What to do with each output.
        in_data, out_data, aux : list of NDArray
            Inputs, which are read-only; outputs; auxiliary states, which may be changed in place.
        """

    def backward(self, req: list[str], out_grad: list, in_data: list, out_data: list, in_grad: list,
                 aux: list) -> None:
        """Compute the gradients of the inputs from those of the outputs."""

    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Store ``src`` in ``dst`` as requested: ``write``, ``inplace``, ``add`` or ``null``.

        Raises
        ------
        ArgumentError
            For any other request.
        ShapeError
            When ``src`` does not broadcast to ``dst``.
        """
        try:
            # Straight to the arrays below: this is called for every result of every operator.
            if req == "write" or req == "inplace":
                dst._data[...] = getattr(src, "_data", src)
            elif req == "add":
                dst._data[...] += getattr(src, "_data", src)
            else:
                write(dst, req, src)
            return
        except (AttributeError, TypeError, ValueError) as error:
            if isinstance(error, OpError):
                raise
            misfit = isinstance(error, ValueError) and tuple(getattr(src, "shape", dst.shape)) != tuple(dst.shape)
        if hasattr(dst, "check_writable"):
            dst.check_writable()
        if misfit:
            raise ShapeError(f"assign: expected shape {show(dst.shape)}, got {show(src.shape)}")
        write(dst, req, src)  # from another device, or to something that is no NDArray


class CustomOpProp:
    """What an operator is: derive from it, and register the class under a name.

    Parameters
    ----------
    need_top_grad : bool
        Whether backward needs the gradient from above; a loss does not.

    Notes
    -----
    Constructor parameters are the operator's attributes. One with an annotation gets a value of that type, checked;
    one without gets text, as in MXNet.
    """

    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states."""
        return []

    def infer_shape(self, in_shape: list) -> Any:
        """Shapes of arguments, outputs and auxiliary states, from those of the arguments."""
        return in_shape, (in_shape[0],) * len(self.list_outputs()), ()

    def infer_type(self, in_type: list) -> Any:
        """Dtypes of arguments, outputs and auxiliary states, from those of the arguments."""
        return (in_type, [in_type[0]] * len(self.list_outputs()),
                [in_type[0]] * len(self.list_auxiliary_states()))

    def infer_storage_type(self, in_stype: list) -> Any:
        """Storage types, always ``default``."""
        return (in_stype, ["default"] * len(self.list_outputs()),
                ["default"] * len(self.list_auxiliary_states()))

    def infer_storage_type_backward(self, ograd_stype: list, in_stype: list, out_stype: list, igrad_stype: list,
                                    aux_stype: list) -> Any:
        """Storage types in backward, always ``default``."""
        return ograd_stype, in_stype, out_stype, ["default"] * len(igrad_stype), aux_stype

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """The numbers, among all given, of the arrays that backward reads."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    def create_operator(self, ctx: Any, shapes: list, dtypes: list) -> CustomOp:
        """The object that computes, made once an executor."""
        return CustomOp()


# ------------------------------------------------------------------------------------------------ the record


class _Attrs(dict):
    """Attributes of one use of an operator, with the Prop made of them and what it answered.

    Attributes
    ----------
    record : CustomRecord
        The operator.
    prop : CustomOpProp
        Made of these attributes.
    arguments, outputs, auxiliary : tuple of str
        Names that the Prop listed.
    needs : tuple of bool, or None
        Of a backward: the arguments whose gradient is wanted, None for all.
    memo : dict
        What an eager forward leaves for its backward.
    """

    record: CustomRecord
    prop: Any
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    auxiliary: tuple[str, ...]
    needs: tuple[bool, ...] | None = None
    memo: dict

    @functools.cached_property
    def needed(self) -> tuple[int, ...]:
        """Positions, among the output gradients, inputs and outputs, of what backward reads."""
        n_out, n_in = len(self.outputs), len(self.arguments)
        numbers = list(range(2 * n_out + n_in))
        declared = self.ask("declare_backward_dependency", numbers[:n_out], numbers[n_out:n_out + n_in],
                            numbers[n_out + n_in:])
        if not isinstance(declared, (list, tuple, set)) or any(i not in numbers for i in declared):
            raise ArgumentError(f"{self.title('declare_backward_dependency')} returned {declared!r}, expected a list "
                                f"of numbers from 0 to {len(numbers) - 1}")
        return tuple(sorted(set(declared)))

    @functools.cached_property
    def unread(self) -> tuple[int, ...]:
        """Numbers of the arguments that backward does not read; their gradients have their shapes all the same."""
        first = len(self.outputs)
        return tuple([i for i in range(len(self.arguments)) if first + i not in self.needed])

    def of_backward(self, needs: Sequence[bool]) -> _Attrs:
        """The same for a backward that is asked for some gradients only."""
        made = _Attrs(self)
        made.__dict__.update(self.__dict__, needs=tuple(needs))
        return made

    def title(self, method: str) -> str:
        """A method of the Prop as errors name it."""
        return f"operator {self.record.op_type!r}: {type(self.prop).__name__}.{method}"

    def ask(self, method: str, *args: Any) -> Any:
        """What the Prop answers; its exceptions leave with a note."""
        try:
            return getattr(self.prop, method)(*args)
        except Exception as error:
            note(error, self.title(method) + (f", given {args[0]}" if args else ""))
            raise

    def names(self, method: str) -> tuple[str, ...]:
        """What the Prop lists, checked."""
        found = self.ask(method)
        if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) for name in found):
            raise ArgumentError(f"{self.title(method)} returned {found!r}, expected a list of names")
        names = tuple(found)
        if len(set(names)) < len(names):
            raise ArgumentError(f"{self.title(method)} returned {found!r}, which names one twice")
        return names


class _Undeclared:
    """Stands where backward gets an array that its Prop did not ask for."""

    shape: tuple = ()
    dtype = None
    context = None

    def __init__(self, what: str):
        self._what = what

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise OpError(f"{self._what} was not asked for: need_top_grad=False or declare_backward_dependency leaves it "
                      "out, so it is not kept for backward")

    asnumpy = asscalar = copy = astype = reshape = __getitem__ = __setitem__ = __len__ = __array__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()


def _hints(function: Callable) -> dict[str, Any]:
    """Types of the annotated parameters; an annotation that cannot be evaluated is none."""
    found = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        try:
            while isinstance(hint, str):
                hint = eval(hint, function.__globals__)
        except Exception:  # it names what only a type checker sees
            continue
        found[name] = hint
    return found


def _prop_schema(cls: Any) -> Schema:
    hints = _hints(cls.__init__)
    fields, is_open = [], False
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            default = REQUIRED if parameter.default is parameter.empty else parameter.default
            fields.append(Field(parameter.name, hints.get(parameter.name, text), default))
    return Schema(fields, is_open)


class text(str):
    """The kind of a parameter without annotation, which gets any value as text."""


class CustomRecord(Op):
    """The record of a registered ``CustomOpProp``."""

    def __init__(self, name: str, prop: type):
        super().__init__(f"custom.{name}", _prop_schema(prop), (), doc=inspect.getdoc(prop) or "")
        self.op_type, self.prop_class = name, prop
        self.mode = self.late = True
        self.kernel("CustomOp.forward", bound=True)(_forward)
        self._backwards: dict[Any, _BackwardRecord] = {}
        self._plain_types = prop.infer_type is CustomOpProp.infer_type  # type: ignore[attr-defined]

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A Prop of these attributes, and what it answers."""
        attrs = _Attrs()
        attrs.record, attrs.memo = self, {}
        for name, value in given.items():
            if name in self.schema:
                field = self.schema[name]
                attrs[name] = to_text(value) if field.kind is text else self._typed(field, value)
            elif self.schema.open:
                attrs[name] = to_text(value)
            elif not (name.startswith("__") and name.endswith("__")):
                raise ArgumentError(f"operator {self.op_type!r}: {self.prop_class.__name__}() takes no keyword "
                                    f"{name!r}. {did_you_mean(name, self.schema.names)}")
        for field in self.schema.fields:
            if field.required and field.name not in attrs:
                raise ArgumentError(f"operator {self.op_type!r}: {self.prop_class.__name__}() needs the keyword "
                                    f"{field.name!r}")
        try:
            attrs.prop = self.prop_class(**attrs)
        except Exception as error:
            note(error, f"operator {self.op_type!r}: making a {self.prop_class.__name__}")
            raise
        attrs.arguments, attrs.outputs = attrs.names("list_arguments"), attrs.names("list_outputs")
        attrs.auxiliary = attrs.names("list_auxiliary_states")
        return attrs

    def _typed(self, field: Field, value: Any) -> Any:
        try:
            return field(value)
        except OpError as error:
            note(error, f"operator {self.op_type!r}: making a {self.prop_class.__name__}")
            raise

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs, where the operator can be made without attributes; else nobody knows."""
        try:
            attrs: Any = self.complete({})
        except Exception:
            return ()
        return attrs.arguments + attrs.auxiliary

    def arguments(self, attrs: Any) -> tuple[str, ...]:
        return attrs.arguments

    def outputs(self, attrs: Any) -> tuple[str, ...]:
        return attrs.outputs

    def auxiliary(self, attrs: Any) -> tuple[str, ...]:
        return attrs.auxiliary

    def visible(self, attrs: Any) -> int:
        return len(attrs.outputs)

    def loss(self, attrs: Any) -> bool:
        return not any(i < len(attrs.outputs) for i in attrs.needed)

    @property
    def differentiable(self) -> bool:
        return True

    def _answer(self, attrs: Any, method: str, given: list, complete: bool) -> list[list] | None:
        """What the Prop says to shapes or dtypes; None when it cannot say while some are unknown."""
        try:
            found = attrs.ask(method, given)
        except Exception:
            if not complete:
                return None
            raise
        expected = (attrs.arguments, attrs.outputs, attrs.auxiliary)
        groups: list = [*found] if isinstance(found, (tuple, list)) else []
        if len(groups) == 2:
            groups.append(())
        try:
            if [*map(len, groups)] == [*map(len, expected)]:
                return groups
        except TypeError:  # something has no length: it is no list
            groups = []
        title = f"{attrs.title(method)} returned"
        if len(groups) != 3:
            raise ArgumentError(f"{title} {found!r}, expected 2 or 3 lists: of arguments, outputs and auxiliary states")
        what, names, group = next(each for each in zip(("arguments", "outputs", "auxiliary states"), expected, groups)
                                  if len(each[1]) != len(each[2]))
        raise ArgumentError(f"{title} {len(group)} entries for its {what}, expected {len(names)}"
                            f" ({', '.join(names) or 'none'})")

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        given = ins[:len(attrs.arguments)]
        complete = all(map(known, given))
        found = self._answer(attrs, "infer_shape", [[] if shape is None else list(shape) for shape in given], complete)
        if found is None:
            return ins, outs
        arguments, results, states = [[_shape(shape, complete, attrs) for shape in group] for group in found]
        return (self._agreed(attrs.arguments + attrs.auxiliary, ins, arguments + states),
                self._agreed(attrs.outputs, outs, results))

    def _agreed(self, names: Sequence[str], olds: Sequence[Any], news: Sequence[Any]) -> list[Any]:
        return [new if old is None else self._agree(name, old, new) for name, old, new in zip(names, olds, news)]

    def infer_dtypes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        given = ins[:len(attrs.arguments)]
        known_ones = [dtype for dtype in given if dtype is not None]  # float64 == None, so `in` will not do
        if given and not known_ones:
            return ins, outs  # there is nothing to ask with
        if self._plain_types and given:  # what the method of CustomOpProp answers
            arguments, results, states = given, given[:1] * len(outs), given[:1] * len(attrs.auxiliary)
        else:
            found = self._answer(attrs, "infer_type", [None if dtype is None else dtype.type for dtype in given],
                                 len(known_ones) == len(given))
            if found is None:
                return ins, outs
            arguments, results, states = [[_dtype(dtype, attrs) for dtype in group] for group in found]
        return (_same(attrs.arguments + attrs.auxiliary, ins, arguments + states),
                _same(attrs.outputs, outs, results))

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        count, states = len(attrs.arguments), list(ins[len(attrs.arguments):])
        if hasattr(attrs.prop, "gradient"):
            found = attrs.ask("gradient", *shown((g, list(ins[:count]), list(outs))))
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            if len(found) != count:
                raise ArgumentError(f"{attrs.title('gradient')} returned {len(found)} values, expected {count}, one "
                                    "for each input")
        else:
            every = [*(g if isinstance(g, tuple) else (g,)), *ins[:count], *outs]
            read = [every[i] for i in attrs.needed] + [ins[i] for i in attrs.unread] + states
            deciding = ins[0] if ins else outs[0]
            found = deciding._apply(self._backward(attrs), read, attrs.of_backward(needs[:count]))
            found = [found] if count == 1 else list(found)
        return found + [None] * len(states)

    def _backward(self, attrs: _Attrs) -> _BackwardRecord:
        key = len(attrs.needed), len(attrs.unread)
        if key not in self._backwards:
            self._backwards[key] = _BackwardRecord(self, *key)
        return self._backwards[key]

    def create(self, call: Call, inputs: Sequence[Any]) -> CustomOp:
        """The operator object of one executor, or one eager call, made at its first step.

        ``inputs`` have the shapes and dtypes of arguments and auxiliary states.
        """
        attrs: Any = call.attrs
        prop = attrs.prop
        if id(prop) not in call.memo:
            made = attrs.ask("create_operator", call.ctx, [list(each.shape) for each in inputs],
                             [_flag(each.dtype) for each in inputs])
            if not hasattr(made, "forward") or not hasattr(made, "backward"):
                raise ArgumentError(f"{attrs.title('create_operator')} returned {made!r}, expected a CustomOp")
            call.memo[id(prop)] = made, prop  # which is kept so that its address stays its own
        return call.memo[id(prop)][0]


_flag = functools.cache(TypeFlag)


def _shape(shape: Any, complete: bool, attrs: _Attrs) -> Shape | None:
    """A shape that a Prop returned; an empty one means that it is unknown, unless everything is known."""
    try:
        if complete:
            return tuple(map(operator.index, shape))
        return None if shape is None else tuple([ANY if dim is ANY or dim is None else operator.index(dim)
                                                 for dim in shape]) or None
    except TypeError:
        raise ArgumentError(f"{attrs.title('infer_shape')} returned the shape {shape!r}, expected a tuple or list of "
                            "ints") from None


def _same(names: Sequence[str], olds: Sequence[Any], news: Sequence[Any]) -> list[Any]:
    """Dtypes where what was known and what was said agree."""
    for name, old, new in zip(names, olds, news):
        if old is not new and old is not None and new is not None and old != new:
            raise DTypeError(f"{name}: expected dtype {new}, got {old}")
    return [new if old is None else old for old, new in zip(olds, news)]


def _dtype(dtype: Any, attrs: _Attrs) -> np.dtype | None:
    """A dtype that a Prop returned: a scalar class, a dtype, a name, or MXNet's integer."""
    try:
        return None if dtype is None else as_dtype(dtype)
    except DTypeError as error:
        note(error, f"{attrs.title('infer_type')} returned {dtype!r}")
        raise


class _BackwardRecord(Op):
    """The backward of a ``CustomRecord``: gradients from whatever its Prop declared to read.

    Its inputs are these, then the other arguments, of which only the shape matters, then the auxiliary states.
    """

    def __init__(self, forward: CustomRecord, read: int, unread: int):
        super().__init__(f"_backward_{forward.name}", Schema([], True), (), unread=range(read, read + unread))
        self.forward = forward
        self.mode = self.adds = True
        self.kernel("CustomOp.backward", bound=True)(_backward)

    def complete(self, given: Any) -> Any:
        return given

    def arguments(self, attrs: Any) -> tuple[str, ...]:
        every = [*[f"{name}_grad" for name in attrs.outputs], *attrs.arguments, *attrs.outputs]
        return tuple([every[i] for i in attrs.needed] + [attrs.arguments[i] for i in attrs.unread])

    def auxiliary(self, attrs: Any) -> tuple[str, ...]:
        return attrs.auxiliary

    def outputs(self, attrs: Any) -> tuple[str, ...]:
        return tuple([f"{name}_grad" for name in attrs.arguments])

    def visible(self, attrs: Any) -> int:
        return len(attrs.arguments)

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        return ins, self._like_arguments(ins, attrs)

    def infer_dtypes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        return ins, self._like_arguments(ins, attrs)

    def _like_arguments(self, ins: Any, attrs: Any) -> list:
        """Of each argument what is known of the input that it is: gradients look like the arguments."""
        first = len(attrs.outputs)
        found = dict(zip([*attrs.needed, *[first + i for i in attrs.unread]], ins))
        return [found[first + i] for i in range(len(attrs.arguments))]

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        raise NotDifferentiableError(
            f"the backward of custom operator {self.forward.op_type!r} is Python code that cannot be differentiated "
            f"again; give {self.forward.prop_class.__name__} a method gradient(self, g, ins, outs), written in "
            "operators, to make it differentiable to any order")


_MARK = 0xA5


def _mark(data: Any, req: str) -> Any:
    """Fill an output with a pattern that tells whether it was written; None where that cannot be told."""
    if req != "write" or data.nbytes < 4:
        return None
    flat = data.reshape(-1).view("uint8")
    flat.fill(_MARK)
    return flat


def _untouched(mark: Any) -> bool:
    """Whether an output holds the pattern still. A device is asked for one truth value, on the first run alone."""
    if isinstance(mark, np.ndarray) and mark[0] != _MARK:  # on the host one look will nearly always do
        return False
    same = (mark == _MARK).all()
    return bool(same.get() if hasattr(same, "get") else same)


def _watched(run: Callable, raws: Sequence[Any], reqs: Sequence[str], lists: dict[str, list], title: str,
             unwritten: Callable[[int], list[Callable]]) -> FirstRun:
    """The first run of an operator: no list may be rebound, and ``unwritten(i)`` hears of outputs left alone."""

    def first() -> list[Callable]:
        marks = [_mark(data, req) for data, req in zip(raws, reqs)]
        before = [list(arrays) for arrays in lists.values()]
        run()
        for (name, arrays), old in zip(lists.items(), before):
            if len(arrays) != len(old) or any(map(operator.is_not, arrays, old)):
                raise OpError(f"{title} put another array into the list {name}: what it holds is lost. Write "
                              f"self.assign({name}[i], req[i], value)")
        left = [i for i, mark in enumerate(marks) if mark is not None and _untouched(mark)]
        return [step for i in left for step in unwritten(i)] + [run]

    return FirstRun(first)


def _noted(function: Callable, title: str, **keywords: Any) -> Callable[[], None]:
    """A step that calls a user's method; exceptions leave with a note of what it was given."""

    def run() -> None:
        try:
            function(**keywords)
        except Exception as error:
            given = [f"{name} {', '.join(f'{show(a.shape)} {np.dtype(a.dtype)}' for a in arrays if a.dtype)}"
                     for name, arrays in keywords.items() if isinstance(arrays, list) and arrays and name != "req"]
            note(error, f"in {title}, given {'; '.join(given)}")
            raise

    return run


def _stand_ins(call: Call) -> list[Any]:
    """Raw outputs, with temporary memory for those nobody asked for: careless operators write them all the same."""
    return [call.scratch(i, spec.shape, spec.dtype) if out is None else out
            for i, (out, spec) in enumerate(zip(call.outs, call.specs))]


def _forward(call: Call) -> list[Callable]:
    attrs: Any = call.attrs
    record: Any = call.op
    wrap, ctx, count, reqs = call.wrap, call.ctx, len(attrs.arguments), list(call.reqs)
    made = record.create(call, call.ins)
    title = f"{type(made).__name__}.forward of operator {record.op_type!r}"
    raws = _stand_ins(call)
    in_data, out_data = [wrap(a, ctx, True) for a in call.ins[:count]], [wrap(a, ctx) for a in raws]
    run = _noted(made.forward, title, is_train=call.is_train, req=reqs, in_data=in_data, out_data=out_data,
                 aux=[wrap(a, ctx) for a in call.ins[count:]])

    def unwritten(i: int) -> Any:
        raise OpError(f"{title} never wrote {attrs.outputs[i]!r}, which was requested. Write "
                      f"self.assign(out_data[{i}], req[{i}], value)")

    return [_watched(run, raws, call.reqs, {"in_data": in_data, "out_data": out_data}, title, unwritten)]


def _backward(call: Call) -> list[Callable]:
    attrs: Any = call.attrs
    record: Any = call.op
    wrap, ctx, n_out, n_in = call.wrap, call.ctx, len(attrs.outputs), len(attrs.arguments)
    aux = call.ins[len(attrs.needed) + len(attrs.unread):]
    made = record.forward.create(call, [*call.specs, *aux])
    title = f"{type(made).__name__}.backward of operator {record.forward.op_type!r}"
    every: list[Any] = [*[_Undeclared(f"out_grad[{i}]") for i in range(n_out)],
                        *[_Undeclared(f"in_data[{i}]") for i in range(n_in)],
                        *[_Undeclared(f"out_data[{i}]") for i in range(n_out)]]
    for position, data in zip(attrs.needed, call.ins):
        every[position] = wrap(data, ctx, True)
    reqs = list(call.reqs) if attrs.needs is None else [req if need else "null"
                                                        for req, need in zip(call.reqs, attrs.needs)]
    raws = _stand_ins(call)
    in_grad = [wrap(a, ctx) for a in raws]
    run = _noted(made.backward, title, req=reqs, out_grad=every[:n_out], in_data=every[n_out:n_out + n_in],
                 out_data=every[n_out + n_in:], in_grad=in_grad, aux=[wrap(a, ctx) for a in aux])

    def unwritten(i: int) -> list[Callable]:
        # As in MXNet a gradient that is left alone counts as zeros: losses do that with their labels.
        zero = functools.partial(raws[i].fill, 0)
        zero()
        return [zero]

    return [_watched(run, raws, tuple(reqs), {"in_grad": in_grad}, title, unwritten)]


# ------------------------------------------------------------------------------------------- registering


def register(reg_name: Any) -> Callable[[Any], Any]:
    """Register a ``CustomOpProp`` class as an operator; returns the class unchanged.

    Parameters
    ----------
    reg_name : str
        The ``op_type`` it is reached by: ``sym.Custom(x, op_type=reg_name)``, ``sym.custom.<reg_name>(x)``, and the
        same under ``nd``. Registering a name again takes its place, with a warning.

    Examples
    --------
    >>> @register("_example_identity")
    ... class Identity(CustomOpProp):
    ...     pass
    >>> get("custom._example_identity").list_arguments()
    ['data']
    """
    if not isinstance(reg_name, str) or not reg_name:
        raise TypeError(f"register: expected a name, as in @register('name'), got {reg_name!r}")

    def enter_class(prop: Any) -> Any:
        if not (isinstance(prop, type) and issubclass(prop, CustomOpProp)):
            raise TypeError(f"register({reg_name!r}): expected a class derived from CustomOpProp, got {prop!r}")
        _enter(CustomRecord(reg_name, prop), reg_name)
        return prop

    return enter_class


def _enter(op: Op, name: str) -> None:
    before = registered(name)
    # A module imported again, or a cell run again, defines the same thing anew: no news.
    if before is not None and before.where != op.where:
        warnings.warn(f"operator {name!r}, registered at {before.where}, is replaced by the one at {op.where}",
                      UserWarning, stacklevel=4)
    enter(op)


def registered(name: str) -> Op | None:
    """A user's operator by its ``op_type``, or None."""
    return find(f"custom.{name}")


def custom(op_type: Any) -> Op:
    """A user's operator by its ``op_type``.

    Raises
    ------
    UnknownOperatorError
        With the nearest names.
    """
    if op_type is None:
        raise ArgumentError("Custom: the keyword op_type is required: the name an operator was registered by")
    op = registered(str(op_type))
    if op is None:
        options = [name[len("custom."):] for name in names("custom.")]
        raise UnknownOperatorError(f"there is no custom operator {op_type!r}. {did_you_mean(op_type, options)}")
    return op


# ---------------------------------------------------------------------------------------- one function


class FunctionRecord(Op):
    """The record of a function: called with NDArrays, returning one, or several as a tuple."""

    def __init__(self, name: str, function: Callable, **options: Any):
        positional = [p.name for p in inspect.signature(function).parameters.values()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        super().__init__(f"custom.{name}", Schema.of(function), positional, input_names=positional,
                         doc=inspect.getdoc(function) or "", **options)
        self.op_type = name
        self._dry = "types" not in options
        self.where = (Where((function.__code__.co_filename, function.__code__.co_firstlineno))
                      if hasattr(function, "__code__") else self.where)
        self._called = Rule(function)
        self.kernel("function", bound=True)(self._bind)

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        attrs: Any = _Attrs(super().complete(given))
        attrs.memo = {}
        return attrs

    def compute(self, arrays: Sequence[Any], attrs: Any) -> list[Any]:
        """What the function makes of NDArrays: an NDArray, array or number for each output."""
        try:
            found = self._called(attrs, *arrays)
        except Exception as error:
            given = ", ".join(f"{name} {show(a.shape)} {np.dtype(a.dtype)}"
                              for name, a in zip(self.input_names, arrays))
            note(error, f"in operator {self.op_type!r}, given {given or 'nothing'}")
            raise
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        names = self.outputs(attrs)
        if len(found) != len(names):
            raise ArgumentError(f"operator {self.op_type!r} returned {len(found)} values, expected {len(names)} "
                                f"({', '.join(names)})")
        for name, each in zip(names, found):
            if each is None:
                raise ArgumentError(f"operator {self.op_type!r} returned None for {name!r}, expected an array")
            try:
                as_dtype(getattr(each, "dtype", float))
            except DTypeError as error:
                note(error, f"operator {self.op_type!r} returned it for {name!r}")
                raise
        return found

    def _dry_run(self, shapes: Sequence[Shape], dtypes: Sequence[np.dtype], attrs: Any) -> list[Spec]:
        """Shapes and dtypes of the results, from one run on zeros."""
        key = tuple(shapes), tuple(dtypes)
        if key not in attrs.memo:
            zeros = [host_array(np.zeros(shape, dtype)) for shape, dtype in zip(shapes, dtypes)]
            try:
                found = self.compute(zeros, attrs)
            except Exception as error:
                note(error, f"in the dry run on zeros that finds the shapes of operator {self.op_type!r}; declare them "
                            f"with @{self.op_type}.infer to do without")
                raise
            attrs.memo[key] = [_spec(each) for each in found]
        return attrs.memo[key]

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        if self._shapes is not None:
            return super().infer_shapes(ins, outs, attrs)
        if not all(known(shape) for shape in ins):
            return ins, outs
        attrs.shapes = list(ins)
        specs = self._dry_run(ins, [np.dtype(np.float32)] * len(ins), attrs)
        return ins, [self._agree(name, old, spec.shape) for name, old, spec in zip(self.outputs(attrs), outs, specs)]

    def infer_dtypes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        shapes = getattr(attrs, "shapes", None)
        if not self._dry or shapes is None or any(dtype is None for dtype in ins):
            return super().infer_dtypes(ins, outs, attrs)
        return ins, [spec.dtype for spec in self._dry_run(shapes, ins, attrs)]

    def _bind(self, call: Call) -> list[Callable]:
        ins = [call.wrap(data, call.ctx, True) for data in call.ins]
        attrs, outs = call.attrs, call.outs

        def run() -> None:
            self._store(outs, self.compute(ins, attrs))

        def first() -> list[Callable]:
            found = self.compute(ins, attrs)
            for name, expected, got in zip(self.outputs(attrs), call.specs, map(_spec, found)):
                if got.shape != expected.shape:
                    raise ShapeError(f"operator {self.op_type!r}, {name}: expected shape {show(expected.shape)}, the "
                                     f"function returned {show(got.shape)}")
                if np.dtype(got.dtype).kind != np.dtype(expected.dtype).kind:
                    raise DTypeError(f"operator {self.op_type!r}, {name}: expected dtype {expected.dtype}, the "
                                     f"function returned {got.dtype}")
            self._store(outs, found)
            return [run]

        return [FirstRun(first)]

    def _store(self, outs: Sequence[Any], found: Sequence[Any]) -> None:
        for out, result in zip(outs, found):
            if out is not None:
                out[...] = getattr(result, "_data", result)

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        if self._gradient is None:
            raise NotDifferentiableError(f"operator {self.op_type!r} has no gradient: add one, written in operators, "
                                         f"with @{self.op_type}.grad (registered at {self.where})")
        return super().differentiate(g, ins, outs, attrs, needs, is_train)


def _spec(value: Any) -> Spec:
    return Spec(tuple(getattr(value, "shape", ())), np.dtype(getattr(value, "dtype", type(value))))


def define(function: Callable | None = None, /, *, name: str | None = None, **options: Any) -> Any:
    """Make an operator of one function of arrays.

    Parameters
    ----------
    function : callable
        Positional parameters are inputs, NDArrays; keyword-only ones are attributes, typed by their annotations. It
        returns an array, or a tuple of as many as ``outputs`` names.
    name : str
        Registered name; the function's by default.
    outputs : sequence of str, optional
        Names of the outputs.

    Returns
    -------
    Op
        Callable on arrays and symbols. ``@f.grad`` adds a gradient, a function ``(g, ins, outs, **attrs)`` written in
        operators; ``@f.infer`` a shape rule. Without one, shapes and dtypes come from one run on zeros.

    Examples
    --------
    >>> @define(name="_example_scaled")
    ... def scaled(x, *, by: float = 2.0):
    ...     "A multiple of x."
    ...     return x * by
    >>> @scaled.grad
    ... def scaled_grad(g, ins, outs, *, by):
    ...     return g * by
    >>> scaled.list_arguments(), scaled.schema.names
    (['x'], ('by',))
    """
    if function is None:
        return lambda function: define(function, name=name, **options)
    record = FunctionRecord(name or function.__name__, function, **options)
    _enter(record, record.op_type)
    return record


def get_all_registered_operators() -> list[str]:
    """Names of all built-in operators."""
    return [name for name in names() if not name.startswith("custom.")]


class OperatorArguments(NamedTuple):
    """Inputs and attributes of an operator: how many, their names, and their types in words."""

    narg: int
    names: list[str]
    types: list[str]


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """What an operator can be given.

    Examples
    --------
    >>> get_operator_arguments("LeakyReLU").names[:3]
    ['data', 'gamma', 'act_type']
    """
    op = get(op_name)
    inputs, fields = list(op.input_names), op.schema.fields
    names = inputs + [field.name for field in fields]
    types = ["NDArray-or-Symbol"] * len(inputs) + [field.describes for field in fields]
    return OperatorArguments(len(names), names, types)


register("custom_op")(CustomOpProp)

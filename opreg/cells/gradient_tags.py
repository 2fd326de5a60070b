"""Tags: identity operators whose gradient rule calls hooks.

The same rule serves eager and graph gradients. A Cell with backward hooks has a tag at its inputs and one at its
outputs; a tensor with hooks has one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from opreg.ndarray import tape
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray

from ..core.attrs import AS_GIVEN
from ..core.mode import MODE
from ..core.op import Op
from ..core.rules import Attrs
from ..core.spec import Spec, show
from ..core.value import Value
from ..errors import ArgumentError
from ..typing import Array
from .python_op import call, spec_of
from .state import STATE
from .tensor import Tensor, copy_on_write, lent_raw, tensor_over
from .tensor_base import TensorBase

__all__ = ["Chain", "Gradients", "INPUT_TAG", "Link", "OUTPUT_TAG", "Title", "checked_gradients", "tag",
           "through_hooks"]

#: Gradients as hooks receive them, with None for a missing one.
Gradients: TypeAlias = Sequence[Tensor | None]
#: A function that runs hooks in a row: on output gradients, or on output and input gradients; returns the new ones.
Chain: TypeAlias = Callable[..., Gradients]
#: A name in errors, or a function that finds it.
Title: TypeAlias = str | Callable[[], str]
#: The type of ``through_hooks``, and of the same function for raw gradients.
Through: TypeAlias = Callable[
    [Chain, Sequence[Sequence[Any]], Sequence[Sequence[Spec]], int | None, Title], Sequence[Any]]
V = TypeVar("V", bound=TensorBase | NDArray)


class Link:
    """State shared by the two tags around one call of a Cell, or the state of a single tag.

    Attributes
    ----------
    backward : function of output and input gradients, or None
        Returns the input gradients, replaced or not.
    backward_pre : function of output gradients, or None
    ins, outs : list of Spec
        Shapes and dtypes of the tensors at the two tags.
    out_grads : list
        Output gradients, with None for a missing one.
    title : str or function
        Its name in errors.
    count, out_count : int
        Number of tensors at the inputs, and at the outputs.
    """

    __slots__ = ("backward", "backward_pre", "ins", "outs", "out_grads", "title", "count", "out_count")

    def __init__(self, backward: Chain | None, backward_pre: Chain | None, title: Title):
        self.count = self.out_count = 0
        self.backward, self.backward_pre, self.title = backward, backward_pre, title
        self.ins: Sequence[Spec] = ()
        self.outs: Sequence[Spec] = ()
        self.out_grads: Gradients = ()

    def specs(self, op: Op, values: Sequence[TensorBase]) -> None:
        """Store shapes and dtypes, which a graph needs before values exist."""
        if op is OUTPUT_TAG:
            self.outs = list(map(spec_of, values))
        else:
            self.ins = list(map(spec_of, values))

    def __str__(self) -> str:
        return self.title() if callable(self.title) else self.title

    __repr__ = __str__


def _are_numbers(groups: Sequence[Gradients]) -> bool:
    for group in groups:
        for g in group:
            if not (g is None or isinstance(g, NDArray)):
                return False
    return True


def through_hooks(function: Chain, groups: Sequence[Sequence[Any]], specs: Sequence[Sequence[Spec]],
                  number: int | None, title: Title) -> Sequence[Any]:
    """Call a function with groups of gradients; it returns one group, replaced or not.

    ``number`` says which group that is; None if the result is not used.
    """
    if _are_numbers(groups):
        lent_groups = [tuple([None if g is None else copy_on_write(g) for g in group]) for group in groups]
        returned = function(*lent_groups)
        return groups[number] if number is not None and returned is lent_groups[number] else returned
    present = [(i, j) for i, group in enumerate(groups) for j, g in enumerate(group) if g is not None]
    values = [groups[i][j] for i, j in present]
    expected = [j for i, j in present if i == number]
    counts = list(map(len, groups))  # the original lists would keep nodes alive that keep the function alive

    def on_tensors(*values: Tensor) -> list[Tensor | None]:
        arranged: list[list[Tensor | None]] = [[None] * count for count in counts]
        for (i, j), value in zip(present, values):
            arranged[i][j] = copy_on_write(value)
        shown = [tuple(group) for group in arranged]
        returned = function(*shown)
        if number is None:
            return []
        if returned is shown[number]:  # the hook replaced nothing; its in-place changes are ignored
            return [value for (i, _), value in zip(present, values) if i == number]
        if any(new is not None and j not in expected for j, new in enumerate(returned)):
            raise ArgumentError(f"{title}: the hook returned a gradient for a missing one, which a compiled function "
                                f"does not support; return None there, or use PYNATIVE_MODE")
        return [returned[j] for j in expected]

    title = title() if callable(title) else title
    outs = [] if number is None else [specs[number][j] for j in expected]
    results = call(on_tensors, values, [specs[i][j] for i, j in present], outs, title)
    if number is None:
        return results
    replaced: list[Any] = [None] * len(groups[number])
    for j, value in zip(expected, results):
        replaced[j] = value
    return replaced


def _through_raw(ctx: Context, function: Chain, groups: Sequence[Sequence[Array | None]],
                 specs: Sequence[Sequence[Spec]], number: int | None, title: Title) -> Sequence[Array | None]:
    """``through_hooks`` for raw gradients."""
    lent_groups = [tuple([None if g is None else lent_raw(g, ctx) for g in group]) for group in groups]
    returned = function(*lent_groups)
    if number is None:
        return ()
    if returned is lent_groups[number]:
        return groups[number]
    return [None if g is None else g._data for g in returned]


def _output_hooks_gradient(attrs: Attrs, out_grads: Sequence[Any], needs: Sequence[bool], through: Through
                           ) -> Sequence[Any]:
    """Gradient of the tag at a Cell's outputs: the output gradients, changed by hooks called with ``through``."""
    link, count = attrs["link"], attrs["count"]
    if link.backward_pre is not None:
        out_grads = through(link.backward_pre, [out_grads], [link.outs], 0, link.title)
    tied = attrs["given"] > count
    if tied and needs[-1]:
        link.out_grads = out_grads
    elif link.backward is not None:  # no gradient reaches the inputs
        through(link.backward, [out_grads, [None] * link.count], [link.outs, link.ins], None, link.title)
    return [*out_grads, None] if tied else list(out_grads)


def _input_hooks_gradient(attrs: Attrs, out_grads: Sequence[Any], needs: Sequence[bool], through: Through
                           ) -> Sequence[Any]:
    """Gradient of the tag at a Cell's inputs, or of a single tag."""
    link, leaving = attrs["link"], out_grads
    out_grads, link.out_grads = link.out_grads or (None,) * link.out_count, ()
    return through(link.backward, (out_grads, leaving), (link.outs, link.ins), 1, link.title)


def _tag_operator(name: str, back: Callable[[Attrs, Sequence[Any], Sequence[bool], Through], Sequence[Any]],
                  loss: Callable[..., bool] | None = None) -> Op:
    """An identity operator whose gradient calls Python."""
    op = Op(name, AS_GIVEN, lambda *, given: [f"data{i}" for i in range(given)],
            outputs=lambda *, count: [f"output{i}" for i in range(count)],
            per_instance=True, grad_reads=False, optional_out_grads=True, hooks=True, loss=loss or False,
            doc="gradient hooks")
    op.shapes(lambda ins, outs, *, count: (ins, ins[:count]))
    op.types(lambda ins, outs, *, count: (ins, ins[:count]))
    op.inline(lambda inputs, specs, *, count: ([], list(inputs[:count])))
    op.body(lambda inputs, *, count: (list(inputs[:count]), {}))

    @op.grad
    def grad(g: Any, ins: Sequence[Value], outs: Sequence[Value], *, needs: Sequence[bool], **attrs: Any
             ) -> Sequence[Value | None]:
        return back(attrs, g if attrs["count"] != 1 else (g,), needs, through_hooks)

    @op.raw_grad
    def raw_grad(attrs: Attrs, out_grads: Sequence[Array | None], needs: Sequence[bool], ctx: Context
                 ) -> Sequence[Array | None]:
        return back(attrs, out_grads, needs, functools.partial(_through_raw, ctx))

    return op

#: The tag at the outputs of a Cell; its last input is an output of the tag at the inputs, if there is one.
OUTPUT_TAG = _tag_operator("_hook_outputs", _output_hooks_gradient)
# Hooks at the inputs are called after the tag at the outputs, although no gradient may reach the inputs.
INPUT_TAG = _tag_operator("_hook_inputs", _input_hooks_gradient, lambda *, link: bool(link.out_grads))


def tag(op: Op, values: Sequence[Any], extra: Sequence[Any], link: Link) -> Sequence[Any]:
    """The tensors, tagged."""
    attrs = {"link": link, "count": len(values), "given": len(values) + len(extra)}
    if STATE.trace is not None:
        link.specs(op, values)
        outs = STATE.trace.call(op, [*values, *extra], attrs)
        return list(outs) if isinstance(outs, tuple) else [outs]
    if not MODE.current().recording:
        return values
    entries = tuple([value._entry or tape.CONSTANT for value in (*values, *extra)])
    for entry in entries:
        if entry is not tape.CONSTANT:
            break
    else:
        return values
    node = tape.TapeNode(op, attrs, entries, (), (), len(values), values[0]._ctx, None)
    outs = []
    for i, value in enumerate(values):
        out = tensor_over(value._data, value._ctx)
        out._entry = node, i
        outs.append(out)
    return outs


def checked_gradients(cell_path: str, kind: str, returned: object, now: Gradients) -> tuple[Tensor | None, ...]:
    """The checked result of a backward hook."""
    if isinstance(returned, Tensor):
        returned = (returned,)
    if not isinstance(returned, tuple):
        raise ArgumentError(f"{cell_path}: The {kind} hook must return None, a Tensor or a tuple of Tensors, got "
                            f"{type(returned).__name__}")
    if len(returned) != len(now):
        of = "output" if kind == "backward pre" else "grad input"
        raise ArgumentError(f"{cell_path}: The {kind} hook return value size is {len(returned)} not equal to expect "
                            f"{of} size {len(now)}")
    for i, (new, old) in enumerate(zip(returned, now)):
        if old is None and new is None:
            continue
        if not isinstance(new, NDArray):
            raise ArgumentError(f"{cell_path}: The {kind} hook must return Tensors, got {type(new).__name__} at {i}")
        if old is not None and new.shape != old.shape:
            raise ArgumentError(f"{cell_path}: gradient {i} that the {kind} hook returned has shape {show(new.shape)}, "
                                f"expected {show(old.shape)}")
        if old is not None and new._data.dtype != old._data.dtype:
            raise ArgumentError(f"{cell_path}: gradient {i} that the {kind} hook returned has dtype {new._data.dtype}, "
                                f"expected {old._data.dtype}")
    return (*returned,)  # a new tuple: the hook may have changed arrays of the given one in place

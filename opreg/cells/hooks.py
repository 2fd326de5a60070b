"""Hooks: users' functions that see, and may replace, values in a Cell or gradients of a tensor.

Forward hooks are called with the inputs or outputs. Backward hooks belong to *tags*: identity operators whose gradient
rule calls Python. The same rule serves eager and graph gradients.
"""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

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
from .bailout import HookSignatureChanged
from .handles import KINDS, Hook, HookHandle, Hooks, convention, running_hook
from .python_op import call
from .state import STATE
from .tensor import FRESH, TENSORS, Tensor, copy_on_write, lent_raw, tensor, tensor_over
from .tensor_base import TensorBase, is_number
from .trace import FunctionTracer
from .traced_tensor import TracedTensor
from .tree import constants, flatten, key_of, rebuild, tensors

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["Hooks", "HookHandle", "HookBackward", "InsertGradientOf", "convention", "register_hook", "registered_hooks",
           "forward", "forward_pre", "changed_inputs", "tag_inputs", "tag_outputs", "Link", "through_hooks",
           "through_own_hooks", "has_hooks", "gradient_chain", "KINDS", "TensorHooks"]

Args: TypeAlias = tuple[Any, ...]
Keywords: TypeAlias = dict[str, Any]
#: Gradients as hooks receive them, with None for a missing one.
Gradients: TypeAlias = Sequence[Tensor | None]
#: A function that runs hooks in a row: on output gradients, or on output and input gradients; returns the new ones.
Chain: TypeAlias = Callable[..., Gradients]
#: A name in errors, or a function that finds it.
Title: TypeAlias = str | Callable[[], str]
#: ``through_hooks``, or its form for raw gradients.
Through: TypeAlias = Callable[
    [Chain, Sequence[Sequence[Any]], Sequence[Sequence[Spec]], int | None, Title], Sequence[Any]]
T = TypeVar("T")
V = TypeVar("V", bound=TensorBase | NDArray)


def cell_id(cell: Cell) -> str:
    """The name of a Cell for backward hooks of the convention ``document``: class and identity."""
    return f"{type(cell).__name__}({id(cell)})"


# ------------------------------------------------------------------------------------------------ forward


def _spec(value: TensorBase | NDArray) -> Spec:
    return Spec(value.shape, value._dt) if isinstance(value, TensorBase) else Spec(value.shape, value._data.dtype)


def _lifted(trace: FunctionTracer, chain: Callable[..., Any], args: tuple[Any, ...], like: object, title: str) -> Any:
    """Add a chain of hooks to a trace, as one node whose results have the structure of ``like``."""
    leaves: list[TensorBase] = []
    structure = flatten(args, leaves)
    key = title, trace.unique(title)
    expected: list[TensorBase] = []
    arranged = flatten(like, expected)
    arranged, specs = trace.signatures.known.get(key, (arranged, [_spec(leaf) for leaf in expected]))
    kind = key_of(arranged)

    def function(*values: Tensor) -> list[Tensor]:
        results: list[Tensor] = []
        now = flatten(chain(*rebuild(structure, iter(values))), results)
        if key_of(now) != kind or list(map(_spec, results)) != specs:
            raise HookSignatureChanged(key, now, results, list(map(_spec, results)))
        return results

    results = call(function, leaves, [_spec(leaf) for leaf in leaves], specs, title, key)
    return rebuild(arranged, iter(results))


def _reference(cell: Cell) -> Callable[[], Cell]:
    """A function that returns the Cell to its hooks."""
    return (lambda: cell) if STATE.trace is None else STATE.trace.reference(cell)


def _current_hooks(hooks: Hooks) -> Callable[[], list[Hook]]:
    """A function that returns the hooks that are registered at that time.

    A trace does not keep hooks alive, since it becomes invalid when one is removed. It does keep hooks that are
    registered within it, since each of its runs would register them.
    """
    trace, registered = STATE.trace, list(hooks.values())
    if trace is None:
        return lambda: registered
    ids = {handle.hook_id for handle in trace.root.registered}
    references: list[Callable[[], Hook | None]] = [
        functools.partial(_itself, hook) if number in ids else weakref.ref(hook) for number, hook in hooks.items()]
    return lambda: [hook for reference in references if (hook := reference()) is not None]


def _itself(hook: Hook) -> Hook:
    return hook


def forward_pre(cell: Cell, args: Args, kwargs: Keywords) -> tuple[Args, Keywords]:
    """Run the forward pre-hooks of a Cell; returns the new inputs."""
    hooks, of = _current_hooks(cell._hooks["forward_pre"]), _reference(cell)

    def chain(args: Args, kwargs: Keywords) -> tuple[Args, Keywords]:
        cell = of()
        for hook in hooks():
            with running_hook("forward pre-hook", hook, cell):
                returned = hook.function(cell, args, kwargs) if hook.with_kwargs else hook.function(cell, args)
                if returned is None:
                    continue
                if not hook.with_kwargs:
                    returned = returned if isinstance(returned, tuple) else (returned,), kwargs
                elif isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], dict):
                    returned = returned[0] if isinstance(returned[0], tuple) else (returned[0],), returned[1]
                else:
                    raise ArgumentError(f"{cell.path}: a forward pre hook with kwargs must return None or a tuple of "
                                        f"(new_args, new_kwargs), got {type(returned).__name__}")
                args, kwargs = _fit(cell, "forward pre-hook", returned, (args, kwargs))
        return args, kwargs

    if STATE.trace is not None:
        return _lifted(STATE.trace, chain, (args, kwargs), (args, kwargs), f"the forward pre-hooks of {cell.path}")
    return chain(args, kwargs)


def _fit(cell: Cell, kind: str, returned: T, before: object) -> T:
    """The checked result of a forward hook: tensors, numbers, and objects of types that the old value has."""
    if returned.__class__ in TENSORS:
        return returned
    types_before = {type(constant) for constant in constants(before)}
    for constant in constants(returned):
        if not (constant is None or is_number(constant) or isinstance(constant, np.ndarray)
                or type(constant) in types_before):
            raise TypeError(f"{cell.path}: the {kind} must return None, or tensors that replace its arguments, got "
                            f"{type(constant).__name__}")
    return returned


def changed_inputs(cell: Cell, before: object, after: object) -> str | None:
    """A note for an error of a Cell that its hooks changed the inputs; None if none did."""
    was, now = ([f"Tensor {show(leaf._spec.shape if isinstance(leaf, TracedTensor) else leaf.shape)}"
                 for leaf in tensors(inputs)] for inputs in (before, after))
    if was == now or not cell._hooks["forward_pre"]:
        return None
    names = ", ".join(map(repr, cell._hooks["forward_pre"].values()))
    return f"the forward pre-hook {names} of {cell.path} had made {', '.join(now)} of its inputs, {', '.join(was)}"


def forward(cell: Cell, args: Args, kwargs: Keywords, out: Any, failed: bool = False) -> Any:
    """Run the forward hooks of a Cell; returns the new output. After a failure only ``always_call`` hooks run."""
    hooks, of = _current_hooks(cell._hooks["forward"]), _reference(cell)

    def chain(args: Args, kwargs: Keywords, out: Any) -> Any:
        error, only = None, failed
        for hook in hooks():
            if only and not hook.always_call:
                continue
            try:
                cell = of()
                with running_hook("forward hook", hook, cell):
                    flows = (args, kwargs, out) if hook.with_kwargs else (args, out)
                    returned = hook.function(cell, *flows)
                    out = out if returned is None else _fit(cell, "forward hook", returned, out)
            except Exception as raised:
                error, only = error or raised, True
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        return out

    if not failed and STATE.trace is not None:
        return _lifted(STATE.trace, chain, (args, kwargs, out), out, f"the forward hooks of {cell.path}")
    return chain(args, kwargs, out)


# ------------------------------------------------------------------------------------------------ backward


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
            self.outs = list(map(_spec, values))
        else:
            self.ins = list(map(_spec, values))

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

    ``which`` is the number of that group, or None if the result is not used.
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
                 specs: Sequence[Sequence[Spec]], which: int | None, title: Title) -> Sequence[Array | None]:
    """``through_hooks`` for raw gradients."""
    lent_groups = [tuple([None if g is None else lent_raw(g, ctx) for g in group]) for group in groups]
    returned = function(*lent_groups)
    if which is None:
        return ()
    if returned is lent_groups[which]:
        return groups[which]
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


def _before_inputs(attrs: Attrs, out_grads: Sequence[Any], needs: Sequence[bool], through: Through
                           ) -> Sequence[Any]:
    """Gradient of the tag at a Cell's inputs, or of a single tag."""
    link, leaving = attrs["link"], out_grads
    out_grads, link.out_grads = link.out_grads or (None,) * link.out_count, ()
    return through(link.backward, (out_grads, leaving), (link.outs, link.ins), 1, link.title)


def _tag(name: str, back: Callable[[Attrs, Sequence[Any], Sequence[bool], Through], Sequence[Any]]) -> Op:
    """An identity operator whose gradient calls Python."""
    op = Op(name, AS_GIVEN, lambda *, given: [f"data{i}" for i in range(given)],
            outputs=lambda *, count: [f"output{i}" for i in range(count)],
            per_instance=True, grad_reads=False, optional_out_grads=True, hooks=True)
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
OUTPUT_TAG = _tag("_hook_outputs", _output_hooks_gradient)
INPUT_TAG = _tag("_hook_inputs", _before_inputs)


def _tagged(op: Op, values: Sequence[Any], extra: Sequence[Any], link: Link) -> Sequence[Any]:
    """The tensors, tagged."""
    attrs = {"link": link, "count": len(values), "given": len(values) + len(extra)}
    if STATE.trace is not None:
        link.specs(op, values)
        outs = STATE.trace.call(op, [*values, *extra], attrs)
        return list(outs) if isinstance(outs, tuple) else [outs]
    if not MODE.now().recording:
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


def _replaced(cell_path: str, kind: str, returned: object, now: Gradients) -> tuple[Tensor | None, ...]:
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
            raise TypeError(f"{cell_path}: The {kind} hook must return Tensors, got {type(new).__name__} at {i}")
        if old is not None and new.shape != old.shape:
            raise ValueError(f"{cell_path}: gradient {i} that the {kind} hook returned has shape {show(new.shape)}, "
                             f"expected {show(old.shape)}")
        if old is not None and new._data.dtype != old._data.dtype:
            raise ValueError(f"{cell_path}: gradient {i} that the {kind} hook returned has dtype {new._data.dtype}, "
                             f"expected {old._data.dtype}")
    return (*returned,)  # another tuple: it may be the given one with other elements


def _backward_chain(cell: Cell, kind: str, of: Callable[[], Cell]) -> Chain | None:
    """The hooks of a kind as one function of gradients, which returns the last ones as the hooks leave them; None
    without hooks. The gradients are those of the outputs, and for ``backward`` also those of the inputs."""
    hooks, words = cell._hooks[kind], kind.replace("_", " ")
    if not hooks:
        return None
    title = "backward hook" if kind == "backward" else "backward pre-hook"

    def chain(*gradients: Gradients) -> Gradients:
        cell, (*out_grads, left) = of(), gradients
        for hook in list(hooks.values()):
            with running_hook(title, hook, cell):
                if out_grads and hook.convention == "document":
                    returned = hook.function(cell_id(cell), *out_grads, left)
                else:
                    returned = hook.function(cell, left, *out_grads)
                if returned is not None:
                    left = _replaced(cell.path, words, returned, left)
        return left

    return chain


def tag_inputs(cell: Cell, args: Args) -> tuple[Args, Link, Sequence[TensorBase]]:
    """The inputs of a Cell, tagged; the link to the tag at its outputs; and the tagged tensors."""
    of = _reference(cell)
    link = Link(_backward_chain(cell, "backward", of), _backward_chain(cell, "backward_pre", of),
                lambda: f"the backward hooks of {of().path}")
    if link.backward is None:
        return args, link, ()
    if args and TENSORS.issuperset(map(type, args)):
        link.count = len(args)
        tagged = _tagged(INPUT_TAG, args, (), link)
        return tuple(tagged), link, tagged
    leaves: list[TensorBase] = []
    structure = flatten(args, leaves)
    if not leaves:
        return args, link, ()
    link.count = len(leaves)
    tagged = _tagged(INPUT_TAG, leaves, (), link)
    return rebuild(structure, iter(tagged)), link, tagged


def tag_outputs(out: T, link: Link, tagged: Sequence[TensorBase]) -> T:
    """The outputs of a Cell, tagged."""
    if out.__class__ in TENSORS:
        link.out_count = 1
        return _tagged(OUTPUT_TAG, (out,), tagged[:1], link)[0]
    leaves: list[TensorBase] = []
    structure = flatten(out, leaves)
    if not leaves:
        return out
    link.out_count = len(leaves)
    return rebuild(structure, iter(_tagged(OUTPUT_TAG, leaves, tagged[:1], link)))


# --------------------------------------------------------------------------------------- hooks of tensors


class HookBackward:
    """An operator that returns its tensors, and calls a function with their gradients in backward.

    Parameters
    ----------
    hook_fn : callable
        Called with a tuple of gradients; returns None or new gradients, a tensor or a tuple.
    cell_id : str
        Stored without effect.

    Examples
    --------
    >>> from opreg import grad
    >>> double = HookBackward(lambda gradients: gradients[0] * 2)
    >>> grad(lambda x: double(x) * 3)(Tensor(1.0))
    Tensor(shape=[], dtype=Float32, value= 6)
    """

    def __init__(self, hook_fn: Callable[[Any], Any], cell_id: str = ""):
        if not callable(hook_fn):
            raise TypeError(f"HookBackward: expected a function, got {type(hook_fn).__name__}")
        if getattr(hook_fn, "compiled", False):
            raise TypeError("HookBackward: expected a Python function; a compiled function has no values that it could "
                            "pass")
        self.hook_fn, self.cell_id = hook_fn, cell_id
        self._hook = Hook(hook_fn)

    def __call__(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        for i, value in enumerate(inputs):
            if not isinstance(value, (TensorBase, NDArray)):
                raise TypeError(f"HookBackward: expected tensors, got {type(value).__name__} at {i}")
        if not inputs:
            raise TypeError("HookBackward: expected at least one tensor")

        def function(_: Gradients, gradients: Gradients) -> Gradients:
            with running_hook("function", self._hook, "a HookBackward"):
                returned = self.hook_fn(gradients)
                return gradients if returned is None else _replaced("HookBackward", "backward", returned, gradients)

        link = Link(function, None, "a HookBackward")
        tagged = _tagged(INPUT_TAG, [tensor(value) for value in inputs], (), link)
        return tagged[0] if len(tagged) == 1 else tuple(tagged)

    def __repr__(self) -> str:
        return f"Prim[HookBackward]<cell_id={self.cell_id}>"


class InsertGradientOf:
    """An identity operator whose gradient passes through a function.

    Parameters
    ----------
    f : callable
        Called with the gradient; returns a new one of the same shape and dtype.

    Examples
    --------
    >>> from opreg import grad
    >>> double = InsertGradientOf(lambda g: g * 2)
    >>> grad(lambda x: double(x) * 3)(Tensor(1.0))
    Tensor(shape=[], dtype=Float32, value= 6)
    """

    def __init__(self, f: Callable[[Any], Any]):
        if not callable(f):
            raise TypeError(f"InsertGradientOf: expected a function, got {type(f).__name__}")
        self.f = f
        self._hook = Hook(f)

    def __call__(self, input_x: T) -> T:
        leaves: list[TensorBase] = []
        structure = flatten(input_x, leaves)
        if not leaves:
            return input_x

        def function(_: Gradients, gradients: Gradients) -> Gradients:
            with running_hook("function", self._hook, "an InsertGradientOf"):
                returned: list[Tensor] = []
                flatten(self.f(rebuild(structure, iter(gradients))), returned)
                return _replaced("InsertGradientOf", "backward", tuple(returned), gradients)

        link = Link(function, None, "an InsertGradientOf")
        return rebuild(structure, iter(_tagged(INPUT_TAG, [tensor(leaf) for leaf in leaves], (), link)))

    def __repr__(self) -> str:
        return f"Prim[InsertGradientOf]<f={self._hook}>"


class TensorHooks:
    """The hooks of one tensor, to which handles refer; it lives as long as the record of the tensor."""

    def __init__(self) -> None:
        self.hooks = Hooks()

    def _touch(self) -> None:
        pass

    def __call__(self, _: Gradients, gradients: Gradients) -> Gradients:
        return gradient_chain(self.hooks, "a tensor", gradients)

    def through(self, g: V, specs: Sequence[Spec] = ()) -> V:
        """A gradient after the hooks."""
        return through_hooks(self, [(), [g]], [(), specs], 1, "a tensor's hook")[0]


def gradient_chain(hooks: Hooks, title: str, gradients: Gradients) -> Gradients:
    """The gradient of one tensor after its hooks."""
    for hook in list(hooks.values()):
        with running_hook("hook", hook, title):
            returned = hook.function(gradients[0])
            if returned is None:
                continue
            if not isinstance(returned, Tensor):
                raise ArgumentError(f"{title}: Tensor hook should be return Tensor, but get type: "
                                    f"{type(returned).__name__}")
            gradients = _replaced(title, "tensor", returned, gradients)
    return gradients


def register_hook(self: Any, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Call a function with the gradient of this tensor each time it is computed.

    Parameters
    ----------
    hook : callable
        Called with the gradient; returns None or a new gradient.

    Returns
    -------
    HookHandle
        Its ``remove`` removes the hook, which also ends with the record of the tensor.
    """
    trace, entry = STATE.trace, self._entry
    if trace is None and entry is None:
        entry = self._entry = tape.Variable(self), 0
    owner = hooks_of(entry)
    if owner is None:
        owner = TensorHooks()
        if trace is not None:
            _hook_traced(trace, self, owner)
        elif entry[0].op is FRESH or (entry[0].op is None and not isinstance(entry[0], tape.Leaf)):
            entry[0].attrs = owner  # for an argument that is differentiated the hook sees the whole gradient
        elif entry[0].op is None:
            self._entry = tape.TapeNode(INPUT_TAG, _tag_attrs(owner, 0, 1), (entry,), (), (), 1, self._ctx, None), 0
        else:
            _hook_recorded(entry, owner)
    return HookHandle.add(owner, owner.hooks, hook)


def _tag_attrs(owner: TensorHooks, number: int, count: int) -> dict[str, Any]:
    """Attributes of a tag at the outputs of a node, with hooks for the output of that number."""
    return {"link": Link(OutputHooks({number: owner}), None, "a tensor's hook"), "count": count, "given": count}


def _hook_recorded(entry: tape.TapeEntry, owner: TensorHooks) -> None:
    """Put hooks after an output of a recorded call: the call moves to a new node, and its old node, which all readers
    refer to, becomes the tag."""
    node, number = entry
    if node.op is INPUT_TAG and isinstance(hooks := node.attrs["link"].backward, OutputHooks):
        hooks.owners[number] = owner
        return
    call = copy.copy(node)
    call.number = node.number - 0.5  # before the tag, behind all earlier nodes
    node.op, node.attrs, node.prepared = INPUT_TAG, _tag_attrs(owner, number, node.count), None
    node.inputs, node.ins, node.outs = tuple([(call, i) for i in range(node.count)]), (), ()


def _hook_traced(trace: FunctionTracer, value: Any, owner: TensorHooks) -> None:
    """Put hooks between a traced tensor and all of its readers, including those from before the registration."""
    entry = value._entry
    if entry in trace.arguments:
        trace.arguments[entry] = owner
        return
    # An array from outside has no entry, and a tensor of a surrounding trace is a variable of this one.
    if trace.read(value) is not value or not (entry[0].op is None or entry[0] in trace.nodes):
        (tagged,) = _tagged(INPUT_TAG, [value], (), Link(owner, None, "a tensor's hook"))
        value._entry = tagged._entry
        return
    node, number = entry
    if node.op is INPUT_TAG and isinstance(hooks := node.attrs["link"].backward, OutputHooks):
        hooks.owners[number] = owner
        return
    link = Link(OutputHooks({number: owner}), None, "a tensor's hook")
    tagged = _tagged(INPUT_TAG, [trace.wrap((node, i)) for i in range(len(trace.specs[node]))], (), link)[number]
    tag = tagged._entry[0]
    is_last = tag is trace.nodes[-1] and tag.op is INPUT_TAG
    if is_last and node.op is not None:
        trace.move_behind(node, tag)
        return
    value._entry = tagged._entry
    if is_last:
        trace.read_through(entry, tagged._entry)


class OutputHooks:
    """The hooks of the outputs of a node, by their numbers."""

    def __init__(self, owners: dict[int, TensorHooks]):
        self.owners = owners

    def __call__(self, _: Gradients, gradients: Gradients) -> Gradients:
        changed = list(gradients)
        for number, owner in self.owners.items():
            if changed[number] is not None:
                (changed[number],) = owner((), (changed[number],))
        return tuple(changed)


def registered_hooks(self: Any) -> list[Callable]:
    """The functions that were registered with ``register_hook``, in order."""
    owner = hooks_of(self._entry)
    return [] if owner is None else [hook.function for hook in owner.hooks.values()]


def hooks_of(entry: Any) -> TensorHooks | None:
    """The hooks of the tensor with that entry, or None."""
    if STATE.trace is not None and entry in STATE.trace.arguments:
        return STATE.trace.arguments[entry]
    owner: Any = entry[0].attrs if entry is not None else None
    if entry is not None and entry[0].op is INPUT_TAG:
        owner = owner["link"].backward
        if isinstance(owner, OutputHooks):
            return owner.owners.get(entry[1])
    return owner if isinstance(owner, TensorHooks) else None


def has_hooks(value: NDArray) -> bool:
    """Whether a tensor has hooks."""
    owner = hooks_of(value._entry)
    return owner is not None and bool(owner.hooks)


def through_own_hooks(entry: Any, g: V) -> V:
    """The gradient of an argument after the argument's hooks; the argument is given by its entry."""
    owner = hooks_of(entry)
    return g if owner is None else owner.through(g, [_spec(g)])

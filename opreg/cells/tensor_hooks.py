"""Hooks of tensors: users' functions that see, and may replace, the gradient of a tensor."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from opreg.ndarray import tape
from opreg.ndarray.ndarray import NDArray

from ..core.settings import Checked
from ..core.spec import Spec
from ..errors import ArgumentError
from .gradient_tags import INPUT_TAG, Gradients, Link, checked_gradients, spec_of, tag, through_hooks
from .handles import Hook, HookHandle, Hooks, running_hook
from .state import STATE
from .tensor import FRESH, Tensor, tensor
from .tensor_base import TensorBase
from .trace import FunctionTracer
from .tree import flatten, rebuild

__all__ = ["HookBackward", "InsertGradientOf", "TensorHooks", "gradient_chain", "has_hooks", "register_hook",
           "registered_hooks", "through_own_hooks"]

T = TypeVar("T")
V = TypeVar("V", bound=TensorBase | NDArray)


class HookBackward(Checked):
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
            raise ArgumentError(f"HookBackward: expected a function, got {type(hook_fn).__name__}")
        if getattr(hook_fn, "compiled", False):
            raise ArgumentError("HookBackward: expected a Python function; a compiled function has no values that it "
                                "could pass")
        self.hook_fn, self.cell_id = hook_fn, cell_id
        self._hook = Hook(hook_fn)

    def __call__(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        for i, value in enumerate(inputs):
            if not isinstance(value, (TensorBase, NDArray)):
                raise ArgumentError(f"HookBackward: expected tensors, got {type(value).__name__} at {i}")
        if not inputs:
            raise ArgumentError("HookBackward: expected at least one tensor")

        def function(_: Gradients, gradients: Gradients) -> Gradients:
            with running_hook("function", self._hook, "a HookBackward", ("gradients",)):
                returned = self.hook_fn(gradients)
                if returned is None:
                    return gradients
                return checked_gradients("HookBackward", "backward", returned, gradients)

        link = Link(function, None, "a HookBackward")
        tagged = tag(INPUT_TAG, [tensor(value) for value in inputs], (), link)
        return tagged[0] if len(tagged) == 1 else tuple(tagged)

    def __repr__(self) -> str:
        return f"Prim[HookBackward]<cell_id={self.cell_id}>"


class InsertGradientOf(Checked):
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
            raise ArgumentError(f"InsertGradientOf: expected a function, got {type(f).__name__}")
        self.f = f
        self._hook = Hook(f)

    def __call__(self, input_x: T) -> T:
        leaves: list[TensorBase] = []
        structure = flatten(input_x, leaves)
        if not leaves:
            return input_x

        def function(_: Gradients, gradients: Gradients) -> Gradients:
            with running_hook("function", self._hook, "an InsertGradientOf", ("gradient",)):
                returned: list[Tensor] = []
                flatten(self.f(rebuild(structure, iter(gradients))), returned)
                return checked_gradients("InsertGradientOf", "backward", tuple(returned), gradients)

        link = Link(function, None, "an InsertGradientOf")
        return rebuild(structure, iter(tag(INPUT_TAG, [tensor(leaf) for leaf in leaves], (), link)))

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

    def apply(self, g: V, specs: Sequence[Spec] = ()) -> V:
        """A gradient after the hooks."""
        return through_hooks(self, [(), [g]], [(), specs], 1, "a tensor's hook")[0]


def gradient_chain(hooks: Hooks, title: str, gradients: Gradients) -> Gradients:
    """The gradient of one tensor after its hooks."""
    for hook in list(hooks.values()):
        with running_hook("hook", hook, title, ("gradient",)):
            returned = hook.function(gradients[0])
            if returned is None:
                continue
            if not isinstance(returned, Tensor):
                raise ArgumentError(f"{title}: Tensor hook should be return Tensor, but get type: "
                                    f"{type(returned).__name__}")
            gradients = checked_gradients(title, "tensor", returned, gradients)
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
            attributes = _tag_attributes(owner, 0, 1)
            self._entry = tape.TapeNode(INPUT_TAG, attributes, (entry,), (), (), 1, self._ctx, None), 0
        else:
            _hook_recorded(entry, owner)
    return HookHandle.add(owner, owner.hooks, hook)


def _tag_attributes(owner: TensorHooks, number: int, count: int) -> dict[str, Any]:
    """Attributes of a tag at the outputs of a node, with hooks for the output of that number."""
    return {"link": Link(OutputHooks({number: owner}), None, "a tensor's hook"), "count": count, "given": count}


def _hook_recorded(entry: tape.TapeEntry, owner: TensorHooks) -> None:
    """Put hooks after an output of a recorded call. The call moves to a new node. All readers refer to the old node,
    which becomes the tag."""
    node, number = entry
    if node.op is INPUT_TAG and isinstance(hooks := node.attrs["link"].backward, OutputHooks):
        hooks.owners[number] = owner
        return
    call = copy.copy(node)
    call.number = node.number - 0.5  # orders it before the tag and after all earlier nodes
    node.op, node.attrs, node.prepared = INPUT_TAG, _tag_attributes(owner, number, node.count), None
    node.inputs, node.ins, node.outs = tuple([(call, i) for i in range(node.count)]), (), ()


def _hook_traced(trace: FunctionTracer, value: Any, owner: TensorHooks) -> None:
    """Put hooks between a traced tensor and all of its readers, including those from before the registration."""
    entry = value._entry
    if entry in trace.arguments:
        trace.arguments[entry] = owner
        return
    # In a trace, an array from outside has no entry; a tensor of a surrounding trace is a variable.
    if trace.read(value) is not value or not (entry[0].op is None or entry[0] in trace.nodes):
        (tagged,) = tag(INPUT_TAG, [value], (), Link(owner, None, "a tensor's hook"))
        value._entry = tagged._entry
        return
    node, number = entry
    if node.op is INPUT_TAG and isinstance(hooks := node.attrs["link"].backward, OutputHooks):
        hooks.owners[number] = owner
        return
    link = Link(OutputHooks({number: owner}), None, "a tensor's hook")
    tagged = tag(INPUT_TAG, [trace.wrap((node, i)) for i in range(len(trace.specs[node]))], (), link)[number]
    tag_node = tagged._entry[0]
    is_last = tag_node is trace.nodes[-1] and tag_node.op is INPUT_TAG
    if is_last and node.op is not None:
        trace.move_after(node, tag_node)
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
    return g if owner is None else owner.apply(g, [spec_of(g)])

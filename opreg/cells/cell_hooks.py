"""Hooks of Cells: users' functions that see, and may replace, the inputs, outputs and gradients of a Cell.

Forward hooks are called with the inputs or outputs. Backward hooks belong to the tags around a call of the Cell.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from ..core.spec import show
from ..errors import ArgumentError
from .bailout import CallSignature
from .gradient_tags import INPUT_TAG, OUTPUT_TAG, Chain, Gradients, Link, checked_gradients, tag
from .handles import Hook, Hooks, running_hook
from .python_op import add_call, spec_of
from .state import STATE
from .tensor import TENSORS, Tensor
from .tensor_base import TensorBase, is_number
from .trace import FunctionTracer
from .traced_tensor import TracedTensor
from .tree import constants, flatten, rebuild, tensors

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["changed_inputs", "forward", "forward_pre", "tag_inputs", "tag_outputs"]

Args: TypeAlias = tuple[Any, ...]
Keywords: TypeAlias = dict[str, Any]
T = TypeVar("T")


def cell_id(cell: Cell) -> str:
    """The name of a Cell for backward hooks of the convention ``document``: class and identity."""
    return f"{type(cell).__name__}({id(cell)})"


def forward_pre(cell: Cell, args: Args, kwargs: Keywords) -> tuple[Args, Keywords]:
    """Run the forward pre-hooks of a Cell; returns the new inputs."""
    hooks, of = _current_hooks(cell._hooks["forward_pre"]), _cell_reference(cell)

    def chain(args: Args, kwargs: Keywords) -> tuple[Args, Keywords]:
        cell = of()
        for hook in hooks():
            keywords = ("keywords",) if hook.with_kwargs else ()
            with running_hook("forward pre-hook", hook, cell, ("cell", "inputs", *keywords)):
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
                args, kwargs = _checked_result(cell, "forward pre-hook", returned, (args, kwargs))
        return args, kwargs

    if STATE.trace is not None:
        inputs = args, kwargs
        return _add_to_trace(STATE.trace, chain, inputs, inputs, f"the forward pre-hooks of {cell.path}")
    return chain(args, kwargs)


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
    hooks, of = _current_hooks(cell._hooks["forward"]), _cell_reference(cell)

    def chain(args: Args, kwargs: Keywords, out: Any) -> Any:
        error, only = None, failed
        for hook in hooks():
            if only and not hook.always_call:
                continue
            try:
                cell = of()
                keywords = ("keywords",) if hook.with_kwargs else ()
                with running_hook("forward hook", hook, cell, ("cell", "inputs", *keywords, "output")):
                    flows = (args, kwargs, out) if hook.with_kwargs else (args, out)
                    returned = hook.function(cell, *flows)
                    out = out if returned is None else _checked_result(cell, "forward hook", returned, out)
            except Exception as raised:
                error, only = error or raised, True
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        return out

    if not failed and STATE.trace is not None:
        return _add_to_trace(STATE.trace, chain, (args, kwargs, out), out, f"the forward hooks of {cell.path}")
    return chain(args, kwargs, out)


def _add_to_trace(trace: FunctionTracer, chain: Callable[..., Any], args: Args, like: object, title: str) -> Any:
    """Add a chain of hooks to a trace, as one node whose results replace ``like``, the last of ``args``."""
    leaves: list[TensorBase] = []
    structure = flatten(args, leaves)
    expected: list[TensorBase] = []
    arranged = flatten(like, expected)
    before = len(leaves) - len(expected)
    assumed = CallSignature(arranged, list(map(spec_of, expected)), (),
                            tuple([frozenset({before + i}) for i in range(len(expected))]))

    def function(*values: Tensor) -> Any:
        return chain(*rebuild(structure, iter(values)))

    signature, results = add_call(trace, function, leaves, assumed, title, structured=True)
    return rebuild(signature.structure, iter(results))


def _cell_reference(cell: Cell) -> Callable[[], Cell]:
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


def _checked_result(cell: Cell, kind: str, returned: T, before: object) -> T:
    """The checked result of a forward hook: tensors, numbers, and objects of types that the old value has."""
    if returned.__class__ in TENSORS:
        return returned
    types_before = {type(constant) for constant in constants(before)}
    for constant in constants(returned):
        if not (constant is None or is_number(constant) or isinstance(constant, np.ndarray)
                or type(constant) in types_before):
            raise ArgumentError(f"{cell.path}: the {kind} must return None, or tensors that replace its arguments, got "
                                f"{type(constant).__name__}")
    return returned


def tag_inputs(cell: Cell, args: Args) -> tuple[Args, Link, Sequence[TensorBase]]:
    """The inputs of a Cell, tagged; the link to the tag at its outputs; and the tagged tensors."""
    of = _cell_reference(cell)
    link = Link(_backward_chain(cell, "backward", of), _backward_chain(cell, "backward_pre", of),
                lambda: f"the backward hooks of {of().path}")
    if link.backward is None:
        return args, link, ()
    if args and TENSORS.issuperset(map(type, args)):
        link.count = len(args)
        tagged = tag(INPUT_TAG, args, (), link)
        return tuple(tagged), link, tagged
    leaves: list[TensorBase] = []
    structure = flatten(args, leaves)
    if not leaves:
        return args, link, ()
    link.count = len(leaves)
    tagged = tag(INPUT_TAG, leaves, (), link)
    return rebuild(structure, iter(tagged)), link, tagged


def tag_outputs(out: T, link: Link, tagged: Sequence[TensorBase]) -> T:
    """The outputs of a Cell, tagged."""
    if out.__class__ in TENSORS:
        link.out_count = 1
        return tag(OUTPUT_TAG, (out,), tagged[:1], link)[0]
    leaves: list[TensorBase] = []
    structure = flatten(out, leaves)
    if not leaves:
        return out
    link.out_count = len(leaves)
    return rebuild(structure, iter(tag(OUTPUT_TAG, leaves, tagged[:1], link)))


def _backward_chain(cell: Cell, kind: str, of: Callable[[], Cell]) -> Chain | None:
    """The hooks of a kind as one function of gradients, which returns the gradients that the last hook leaves; None
    without hooks. The gradients are those of the outputs, and for ``backward`` also those of the inputs."""
    hooks, words = cell._hooks[kind], kind.replace("_", " ")
    if not hooks:
        return None
    title = "backward hook" if kind == "backward" else "backward pre-hook"

    def chain(*gradients: Gradients) -> Gradients:
        cell, (*out_grads, left) = of(), gradients
        for hook in list(hooks.values()):
            document = bool(out_grads) and hook.convention == "document"
            arguments = ("output_gradients",) if not out_grads else (
                ("output_gradients", "input_gradients") if document else ("input_gradients", "output_gradients"))
            with running_hook(title, hook, cell, ("cell_id" if document else "cell", *arguments)):
                if document:
                    returned = hook.function(cell_id(cell), *out_grads, left)
                else:
                    returned = hook.function(cell, left, *out_grads)
                if returned is not None:
                    left = checked_gradients(cell.path, words, returned, left)
        return left

    return chain

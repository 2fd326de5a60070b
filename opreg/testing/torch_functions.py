"""Functions, modules and operators of PyTorch as subjects of checks."""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import array as ndarray
from opreg.ndarray.context import Context
from opreg.ndarray.exchange import from_dlpack

from ..errors import ArgumentError, NotDifferentiableError
from .foreign import ForeignUse, arrays_in, arrays_in_keywords
from .uses import Heads, Result, parameter_names

__all__ = ["TorchUse", "function_of_torch"]


def function_of_torch(what: Any, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> TorchUse | None:
    """A subject for an ``autograd.Function``, a module or an operator of PyTorch, or for a function that is given
    tensors of PyTorch; None for others."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(what, type) and issubclass(what, torch.autograd.Function):
        if keywords:
            raise ArgumentError(f"check: {what.__name__}.apply takes no keywords: got {', '.join(keywords)}")
        has_ctx = what.setup_context is torch.autograd.Function.setup_context  # type: ignore[attr-defined]
        return TorchUse(what.apply, inputs, {}, what.__name__,  # type: ignore[attr-defined]
                        parameter_names(what.forward, len(inputs), int(has_ctx)))  # type: ignore[attr-defined]
    if isinstance(what, torch.nn.Module):
        return _ModuleUse(what, inputs, keywords)
    registered = (torch.library.CustomOpDef, torch._ops.OpOverload, torch._ops.OpOverloadPacket)
    if isinstance(what, registered):
        return _OperatorUse(what, inputs, keywords)
    if not callable(what) or isinstance(what, type) or not any(
            True for _ in arrays_in([list(inputs), keywords], lambda value: isinstance(value, torch.Tensor))):
        return None
    return TorchUse(what, inputs, keywords, getattr(what, "__name__", type(what).__name__),
                    parameter_names(what, len(inputs)))


class TorchUse(ForeignUse):
    """A function of PyTorch. Its inputs keep their devices."""

    library, body, gradient_code = "PyTorch", "forward", "backward"
    refusals = (*ForeignUse.refusals, RuntimeError)
    seeder, generator = "torch.manual_seed", "torch.rand and its kin"
    top = "the gradient that backward is given"
    second_order_change = ("compute the gradient by operations of PyTorch on saved tensors, or mark backward by "
                           "@once_differentiable")

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], keywords: Mapping[str, Any], name: str,
                 words: Sequence[str]):
        self.torch = sys.modules["torch"]
        self.array_class = self.torch.Tensor
        super().__init__(function, inputs, keywords, name, words)
        every = [leaf for _, leaf in (*arrays_in(self.args, self.is_array),
                                      *arrays_in_keywords(self.keywords, self.is_array))]
        self._devices = [getattr(value, "device", None) if isinstance(value, self.array_class) else None
                         for value in every]

    def on_host(self, value: Any) -> np.ndarray:
        """A tensor as an array of NumPy."""
        if not isinstance(value, self.array_class):
            return super().on_host(value)
        value = value.detach().cpu().resolve_conj().resolve_neg()
        try:
            return np.array(value.numpy())
        except TypeError:  # bfloat16
            return from_dlpack(value.contiguous()).asnumpy().copy()

    def seed(self) -> None:
        """Seed PyTorch's generators."""
        if self.stochastic:
            self.torch.manual_seed(1)

    def restore_generators(self) -> Any:
        """A context that restores PyTorch's generator at its end."""
        return self.torch.random.fork_rng(devices=[])

    def run(self, head_grads: Heads = None, grads: bool = False, raw: Sequence[np.ndarray] | None = None,
            ctx: Context | None = None, between: Callable[[], object] | None = None) -> Result:
        """Run it as users do; see ``Subject.run``."""
        leaves, values = self._tensors(raw, grads)
        outs = self._outputs(values, grads)
        if between is not None:
            between()
        gradients: dict[int, np.ndarray] = {}
        if grads:
            found = self._gradients(outs, head_grads, [leaves[i] for i in self.wanted])
            gradients = {i: np.zeros(self.arrays[i].shape, self.arrays[i].dtype) if g is None else self.on_host(g)
                         for i, g in zip(self.wanted, found)}
        changeable = self._declared_changes(values, outs)
        after = [before if i in changeable else self.on_host(value)
                 for i, (value, before) in enumerate(zip(values, self.arrays))]
        return Result([self.on_host(out) for out in outs], after, gradients)

    def second(self, head_grads: Heads, weights: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Second derivatives: the gradients of a weighted sum of first derivatives."""
        leaves, values = self._tensors(None, True)
        try:
            wanted = [leaves[i] for i in weights]
            first = self._gradients(self._outputs(values, True), head_grads, wanted, create_graph=True)
            pairs = [(g, self._tensor(weight)) for g, weight in zip(first, weights.values())
                     if g is not None and g.requires_grad]
            if pairs:  # by ``backward``, since ``grad`` does not call the node by which once_differentiable refuses
                self.torch.autograd.backward([g for g, _ in pairs], [weight.to(g) for g, weight in pairs])
        except Exception as error:  # PyTorch has no class for a gradient that cannot be differentiated
            raise NotDifferentiableError(str(error)) from error
        return {i: np.zeros_like(self.arrays[i]) if leaf.grad is None else self.on_host(leaf.grad)
                for i, leaf in zip(weights, wanted)}

    def _tensor(self, value: np.ndarray) -> Any:
        """A tensor over the memory of an array, where PyTorch knows its dtype and layout."""
        if any(stride < 0 for stride in value.strides):
            value = value.copy()
        try:
            return self.torch.from_numpy(value)
        except TypeError:  # bfloat16
            return self.torch.from_dlpack(ndarray(value, None, value.dtype))

    def _tensors(self, raw: Sequence[np.ndarray] | None, grads: bool) -> tuple[list[Any], list[Any]]:
        """Leaves whose gradients are found, and the tensors over the same memory that the function is given: PyTorch
        refuses to change a leaf in place."""
        leaves, values = [], []
        for i, value in enumerate(raw or [array.copy() for array in self.arrays]):
            leaf = self._tensor(value)
            device = self._devices[i] if i < len(self._devices) else None
            leaf = leaf if device is None else leaf.to(device)
            leaves.append(leaf)
            if grads and i in self.wanted:
                leaf.requires_grad_()
                values.append(_entrance().apply(leaf, [leaf.detach()]))
            else:
                values.append(leaf)
        return leaves, values

    def _outputs(self, values: Sequence[Any], grads: bool) -> list[Any]:
        """The tensors among the results."""
        self.seed()
        with self.torch.set_grad_enabled(grads), self.dtype_errors():
            results = self._call(values)
        return [leaf for _, leaf in arrays_in([results], lambda value: isinstance(value, self.array_class))]

    def _call(self, values: Sequence[Any]) -> Any:
        return self.call(self.function, values)

    def _gradients(self, outs: Sequence[Any], head_grads: Heads, leaves: Sequence[Any], create_graph: bool = False
                   ) -> Sequence[Any]:
        """Gradients of leaves; None for a leaf that the outputs do not depend on. With ``create_graph``, output
        gradients require gradients, too: ``once_differentiable`` refuses only then."""
        heads = [None] * len(outs) if head_grads is None else head_grads
        pairs = [(out, (self.torch.ones_like(out) if head is None else self._tensor(head).to(out.device)
                        ).requires_grad_(create_graph))
                 for out, head in zip(outs, heads) if out.requires_grad and out.dtype.is_floating_point]
        if not pairs or not leaves:
            return [None] * len(leaves)
        try:
            return self.torch.autograd.grad([out for out, _ in pairs], leaves, [head for _, head in pairs],
                                            create_graph=create_graph, allow_unused=True)
        except RuntimeError as error:
            if "no autograd formula was registered" in str(error):
                raise NotDifferentiableError(str(error)) from error
            raise

    def _declared_changes(self, values: Sequence[Any], outs: Sequence[Any]) -> set[int]:
        """The inputs that the function is known to change: those it returns, as ``ctx.mark_dirty`` demands."""
        return {i for i, value in enumerate(values) if any(out is value for out in outs)}


@functools.cache
def _entrance() -> Any:
    import torch

    class Entrance(torch.autograd.Function):
        """The identity, whose result is no view of its input for PyTorch."""

        @staticmethod
        def forward(ctx: Any, leaf: Any, value: list[Any]) -> Any:
            return value[0]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    return Entrance


class _OperatorUse(TorchUse):
    """An operator of ``torch.library``."""

    kind = "operator"

    def __init__(self, operator: Any, inputs: Sequence[Any], keywords: Mapping[str, Any]):
        self.operator = operator
        self.overload = getattr(operator, "_opoverload", None) or getattr(operator, "default", operator)
        names = [argument.name for argument in self.overload._schema.arguments]
        super().__init__(operator, inputs, keywords, str(self.overload),
                         [*names, *[f"input {i}" for i in range(len(names), len(inputs))]])

    def _declared_changes(self, values: Sequence[Any], outs: Sequence[Any]) -> set[int]:
        changed = [argument.name for argument in self.overload._schema.arguments
                   if argument.alias_info is not None and argument.alias_info.is_write]
        return {i for i, name in enumerate(self.names) if name in changed}

    def check_inference(self) -> bool:
        """Compare the fake implementation and the schema with a run; true.

        Raises
        ------
        torch.library.OpCheckError
            If they differ.
        """
        _, values = self._tensors(None, False)
        self.torch.library.opcheck(self.operator, *self.arguments(values),
                                   test_utils=("test_schema", "test_faketensor"))
        return True


class _ModuleUse(TorchUse):
    """A copy of a module, with its parameters as further inputs and its buffers as states."""

    kind = "module"

    def __init__(self, module: Any, inputs: Sequence[Any], keywords: Mapping[str, Any]):
        with contextlib.suppress(Exception):  # a module that cannot be copied is checked itself
            module = copy.deepcopy(module)
        self.module, self.train = module, module.training
        self._modes = [(part, part.training) for part in module.modules()]
        super().__init__(module, inputs, keywords, type(module).__name__,
                         parameter_names(module.forward, len(inputs)))
        weights = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
        states = {**{name: weight for name, weight in module.named_parameters() if name not in weights},
                  **dict(module.named_buffers())}
        self._given, self._trained = len(self.arrays), len(weights)
        self._weights = [*weights, *states]
        for weight in (*weights.values(), *states.values()):
            self.arrays.append(self.on_host(weight))
            self._devices.append(weight.device)
        self._names += self._weights

    @property
    def argument_count(self) -> int:
        """Number of inputs that the caller passes."""
        return self._given

    @property
    def count(self) -> int:
        """Number of inputs that are arguments or trained weights."""
        return self._given + self._trained

    def run(self, head_grads: Heads = None, grads: bool = False, raw: Sequence[np.ndarray] | None = None,
            ctx: Context | None = None, between: Callable[[], object] | None = None) -> Result:
        """Run it; see ``Subject.run``. Weights are contiguous, since some gradients of PyTorch are wrong for others."""
        if raw is not None:
            raw = [*raw[:self._given], *[weight.copy() for weight in raw[self._given:]]]
        return super().run(head_grads, grads, raw, ctx, between)

    def _call(self, values: Sequence[Any]) -> Any:
        as_given = self.train == self._modes[0][1]
        for part, mode in self._modes:  # a part may have a mode of its own
            part.training = mode if as_given else self.train
        return self.torch.func.functional_call(self.module, dict(zip(self._weights, values[self._given:])),
                                               *self.arguments(values[:self._given]))

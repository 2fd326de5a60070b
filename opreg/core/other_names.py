"""Other names: the equivalents of attributes of PyTorch's and JAX's tensors, modules and optimizers."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import NoReturn

__all__ = ["CELLS", "OPTIMIZERS", "PACKAGES", "UPDATES", "elsewhere", "name_others", "own_names"]

#: Equivalents of attributes, for arrays, tensors and symbols; ``F`` is ``mx.nd`` or ``mx.sym``.
_BOTH = {
    "permute": "x.transpose(axes)", "view": "x.reshape(shape)",
    "unsqueeze": "x.expand_dims(axis)", "expand": "x.broadcast_to(shape)", "to": "x.astype(dtype)",
    "type": "x.astype(dtype)", "float": "x.astype('float32')",
    "double": "x.astype('float64')", "half": "x.astype('float16')", "long": "x.astype('int64')",
    "int": "x.astype('int32')", "mT": "x.swapaxes(-1, -2)", "t": "x.transpose()", "squeeze_": "x.squeeze()",
    "repeat_interleave": "x.repeat(count, axis=axis)", "unbind": "F.split(x, num_outputs=count, squeeze_axis=True)",
    "matmul": "F.dot(x, y)", "mm": "F.dot(x, y)", "dot": "F.dot(x, y)", "bmm": "F.batch_dot(z, z)",
    "masked_fill": "F.where(mask, y, x)", "where": "F.where(mask, x, y)", "index_select": "x.take(index, axis=axis)",
    "gather": "x.take(index, axis=axis)", "cumsum": "F.cumsum(x, axis=axis)"}

#: Equivalents for arrays and tensors only.
_ARRAYS = {
    "view_as": "x.reshape(y.shape)", "expand_as": "x.broadcast_to(y.shape)", "type_as": "x.astype(y.dtype)",
    "cuda": "x.as_in_context(mx.gpu())", "cpu": "x.as_in_context(mx.cpu())", "device": "x.context",
    "devices": "x.context", "is_cuda": "x.context.device_type", "numpy": "x.asnumpy()", "clone": "x.copy()",
    "contiguous": "x.copy()", "dim": "x.ndim", "numel": "x.size", "nelement": "x.size",
    "item": "x.asscalar()", "data": "x.detach()", "requires_grad_": "x.attach_grad()",
    "requires_grad": "x.attach_grad()",
    "retain_grad": "x.attach_grad()", "block_until_ready": "x.wait_to_read()", "zero_": "x[:] = 0", "fill_": "x[:] = y",
    "copy_": "x[:] = y", "add_": "x[:] += y", "sub_": "x[:] -= y", "mul_": "x[:] *= y", "div_": "x[:] /= y",
    "new_zeros": "F.zeros(shape, dtype=x.dtype)", "new_ones": "F.ones(shape, dtype=x.dtype)"}

#: Equivalents for Cells.
CELLS = {
    "train": "write net.set_train()", "eval": "write net.set_train(False)",
    "parameters": "write net.trainable_params(), or net.get_parameters() for all",
    "named_parameters": "write net.parameters_and_names()", "modules": "write net.cells_and_names()",
    "named_modules": "write net.cells_and_names()", "children": "write net.cells()",
    "named_children": "write net.name_cells()", "zero_grad": "value_and_grad gives gradients anew in each call",
    "cuda": "it computes where its inputs lie, and where its Parameters were made",
    "to": "it computes where its inputs lie; net.to_float(dtype) computes in another dtype"}

#: Equivalents for names in the packages of PyTorch and JAX.
PACKAGES = {
    "cuda": "mx.gpu(i) for a device, mx.num_gpus() for their number", "device": "mx.cpu() or mx.gpu(i)",
    "devices": "mx.num_gpus()", "device_count": "mx.num_gpus()", "device_put": "x.as_in_context(mx.gpu(i))",
    "rand": "mx.nd.random.uniform(shape=shape)", "randn": "mx.nd.random.normal(shape=shape)",
    "cat": "mx.nd.concat(x, y, dim=axis), or mx.ops.cat", "matmul": "mx.nd.dot(x, y), or mx.ops.matmul",
    "as_tensor": "mx.Tensor(values)", "optim": "mx.optimizer, or an optimizer of mx.nn",
    "functional": "mx.nd or mx.ops", "compile": "mx.jit", "inference_mode": "mx.no_grad()",
    "DataLoader": "mx.gluon.data.DataLoader, or mx.io.NDArrayIter", "save": "mx.nd.save, or mx.save_checkpoint",
    "load": "mx.nd.load, or mx.load_checkpoint", "autocast": "mx.amp", "jnp": "mx.np",
    **{name: f"mx.nd.{name}, or mx.ops.{name}" for name in (
        "zeros", "ones", "arange", "concat", "stack", "where", "sigmoid", "relu", "tanh", "softmax", "exp", "sqrt",
        "abs", "sum", "mean", "max", "min", "dot")},
    "array": "mx.nd.array(values), or mx.Tensor(values)", "empty": "mx.nd.empty(shape)"}

_STEP = "call it: optimizer(grads), with the gradients that value_and_grad(forward, None, optimizer.parameters) gives"

#: Equivalents for optimizers that are Cells.
OPTIMIZERS = {"step": _STEP, "zero_grad": f"gradients are not kept, they are given: {_STEP}",
              "param_groups": "the groups are in optimizer.parameters, their rate is optimizer.get_lr()"}

_UPDATE = "optimizer.update(index, weight, gradient, state) updates a weight, and Module.update() or a KVStore calls it"

#: Equivalents for MXNet's optimizers.
UPDATES = {"step": _UPDATE,
           "zero_grad": f"a gradient is written anew by each backward() with grad_req='write'; {_UPDATE}"}


def elsewhere(name: str) -> str | None:
    """Advice for an attribute that symbols lack and tensors of other libraries have; None for other attributes.

    Examples
    --------
    >>> elsewhere("permute")
    'write x.transpose(axes) here'
    """
    return None if name not in _BOTH else f"write {_BOTH[name].replace('F.', 'mx.sym.')} here"


class _NameElsewhere:
    """A descriptor for an attribute of other libraries, whose error tells the equivalent. Existing attributes stay as
    fast as before."""

    __slots__ = ("name", "words")

    def __init__(self, name: str, words: str):
        self.name, self.words = name, words.replace("F.", "mx.nd.")

    def __set__(self, value: object, _: object) -> NoReturn:
        self.__get__(value, type(value))

    def __get__(self, value: object, kind: type) -> NoReturn:
        text = f"'{kind.__name__}' object has no attribute {self.name!r}: write {self.words} here"
        raise AttributeError(text, name=self.name, obj=value)


def name_others(kind: type) -> None:
    """Add descriptors to a class of arrays, for attributes that only tensors of other libraries have."""
    for name, words in {**_BOTH, **_ARRAYS}.items():
        if not hasattr(kind, name):
            setattr(kind, name, _NameElsewhere(name, words))


def own_names(kind: type, names: Iterable[str]) -> list[str]:
    """Names of attributes without those of such descriptors."""
    return [name for name in names if not isinstance(inspect.getattr_static(kind, name, None), _NameElsewhere)]

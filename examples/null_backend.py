"""A back end in sixty lines, whose arrays have no readable elements and whose only kernel counts launches and computes
nothing.

It shows the parts that a back end needs: an array module, a name, and kernels. Networks are planned for it as for any
device, so it counts the launches of a training step and the bytes that they move, without the time of the computation.

    python examples/null_backend.py
"""

from __future__ import annotations

from collections import Counter

import numpy as np

import opreg as mx
from opreg.core.array_module import Backend, register_backend
from opreg.core.launch import Kernel

# --------------------------------------------------------------------------------------------------- the back end
LAUNCHES: Counter[str] = Counter()
BYTES: Counter[str] = Counter()
QUESTIONS = ("shape", "dtype", "strides", "ndim", "size", "itemsize", "nbytes", "flags", "may_share_memory")
VIEWS = ("reshape", "transpose", "swapaxes", "squeeze", "view", "broadcast_to", "expand_dims", "moveaxis", "ravel")


def launched(name, ins, outs):
    LAUNCHES[name] += 1
    BYTES[name] += sum(each.nbytes for each in (*ins, *outs) if isinstance(each, NullArray))
    return outs


class NullArray:
    def __init__(self, layout):
        self._layout = layout  # an array of NumPy over memory that is reserved, and never written or read

    def __getattr__(self, name):
        if name not in (*QUESTIONS, *VIEWS):
            raise AttributeError(f"an array of the null back end has no {name}")
        found = getattr(self._layout, name)
        return found if name in QUESTIONS else lambda *args, **keywords: _array(found(*args, **keywords))

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        return NullArray(self._layout[keys if Ellipsis in keys else (*keys, ...)])

    def __setitem__(self, key, value):
        launched("copy", [value], [self[key]])

    def astype(self, dtype, **_):
        return launched("astype", [self], [NullArray(np.empty(self.shape, dtype))])[0]

    def copy(self, **_):
        return self.astype(self.dtype)

    def fill(self, value):
        self[...] = value

    def __array__(self, *_, **__):
        raise TypeError("an array of the null back end has no elements: ask for its shape, dtype or strides")

    __bool__ = __int__ = __float__ = __index__ = __iter__ = __array__
    data = property(lambda self: type("Data", (), {"ptr": self._layout.ctypes.data}))


class Null:
    __name__, ndarray = "null", NullArray

    def __getattr__(self, name):
        function = getattr(np, name)
        if name in (*VIEWS, *QUESTIONS) or name.startswith("empty"):
            return lambda *args, **keywords: _array(function(*map(_layout, args), **keywords))
        if name in ("zeros", "ones", "full", "array", "asarray"):
            return lambda first, *args, **keywords: _made(name, first, (*args, *keywords.values()))
        return lambda *args, out=None, **_: launched(name, args, [args[-1] if out is None else out])[0]


def _layout(value):
    return getattr(value, "_layout", value)


def _array(value):
    return NullArray(value) if isinstance(value, np.ndarray) else value


def _made(name, first, rest):
    like = np.empty(first) if isinstance(first, (int, tuple)) else np.asarray(_layout(first))
    dtype = next((each for each in rest if isinstance(each, (np.dtype, type))), like.dtype)
    return launched(name, (), [NullArray(np.empty(like.shape, dtype))])[0]


class NullKernel(Kernel):
    def with_attributes(self, call):
        first, states = len(call.op.signature.arguments(call.attrs)), call.op.traits.states if call.is_train else ()

        def run(*ins, out=None):
            outs = [call.xp.empty(*spec) for spec in call.specs] if out is None else out
            outs = launched(call.op.name, ins, outs if isinstance(outs, (list, tuple)) else [outs])
            return outs[0] if len(outs) == 1 and not states else [*outs, *(ins[first + i] for i in states)]

        return run


class NullBackend(Backend):
    name, xp, modules = "null", Null(), (__name__,)
    kernels = (NullKernel(lambda xp, *ins, out=None: None, "null"),)


register_backend("null", NullBackend)
# ------------------------------------------------------------------------------------------------------ its use


def network():
    """A small convolutional network, with a loss."""
    x = mx.sym.Variable("data")
    for filters in (6, 16):
        x = mx.sym.Convolution(x, num_filter=filters, kernel=(5, 5))
        x = mx.sym.Pooling(mx.sym.Activation(x, act_type="tanh"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    for hidden in (120, 84):
        x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=hidden), act_type="tanh")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=10), name="softmax")


def main():
    executor = network().simple_bind(mx.Context("null", 0), data=(64, 1, 32, 32))
    LAUNCHES.clear()
    BYTES.clear()
    executor.forward(is_train=True)
    executor.backward()
    for name, nbytes in BYTES.most_common(5):
        print(f"{name}: launched {LAUNCHES[name]} times, {nbytes} bytes")
    print(f"a step: {LAUNCHES.total()} launches, {BYTES.total()} bytes")


if __name__ == "__main__":
    main()

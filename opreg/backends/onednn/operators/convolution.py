"""Kernels of convolutions and pooling by oneDNN; see ``engine``.

If the library has no good implementation for a convolution, the reference kernel computes it.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from opreg.builtin.layers.convolution import ROLES, Role, convolution_window, shift_of, weight_layout
from opreg.builtin.layers.correlation import product_alone
from opreg.builtin.layers.fused_convolution import factors, folded_convolution, parts_of
from opreg.builtin.layers.pooling import pooling, pooling_max, pooling_sum, window_of
from opreg.builtin.layers.sliding import Window, channels_first
from opreg.core import host_memory, threads
from opreg.core.cache import cached
from opreg.core.launch import Call, ChannelsLast, Rank
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import Shape, Spec, strides_of
from opreg.errors import OpError
from opreg.typing import Array, ArrayModule

from .. import engine, shared_library
from ..primitives import Convolution, Geometry, Part, Pooling

__all__ = ["HERE", "Description", "compute", "declined", "reason_by_specs"]

#: A geometry and the strides of its arrays.
Description: TypeAlias = tuple[Geometry, tuple[Shape, ...]]

LOWEST = float(np.finfo(np.float32).min)

#: From this number of multiplications or comparisons on, it pays to wake the library's threads. The library's threads
#: synchronise, which takes long if other programs use the cores.
LEAST = 1 << 16

#: A key in the memo of a plan: some of its convolutions or products are computed by the library.
HERE = "onednn"

#: The number of kinds of eager calls that each thread caches.
MOST = 256


def declined(call: Call, read: Sequence[Array]) -> str | None:
    """The reason why oneDNN cannot compute with these arrays, or None."""
    if call.xp is not np:
        return "the arrays are not on the host"
    for array in read:
        if array.dtype != np.float32:
            return f"oneDNN takes float32 here, not {array.dtype}"
    return shared_library.missing()


# ------------------------------------------------------------------------------------------ the two kernels


def reason_by_specs(op: Op, accepts: Callable[[Call], str | None]) -> ChannelsLast:
    """A function that gives the reason why the library does not compute an operator on contiguous arrays, by
    ``accepts``."""

    def reason(attrs: Attrs, ins: Sequence[Spec], outs: Sequence[Spec], is_train: bool, xp: ArrayModule, device: int
               ) -> str | None:
        read, written = [[_placeholder(spec.shape or (), spec.dtype) for spec in specs] for specs in (ins, outs)]
        return accepts(Call(op, attrs, read, written, [], np, None, is_train))

    return reason


def _placeholder(shape: Shape, dtype: np.dtype | None) -> Array:
    """A placeholder for a contiguous array, with memory for one element only."""
    number = np.empty(1, dtype)
    return np.lib.stride_tricks.as_strided(number, shape, [step * number.itemsize for step in strides_of(shape)])


_BYTE = np.dtype(np.uint8)


class _EagerPrimitives(threading.local):
    """Primitives made by eager calls of one thread; each call binds them to its arrays."""

    def __init__(self) -> None:
        self.by_kind: dict[tuple[Part, Description], engine.Work] = {}


_WORKS = _EagerPrimitives()


def compute(part: Part, description: Description, arrays: Sequence[Array]) -> None:
    """Compute a part in an eager call; its primitives are cached for arrays of the same kind."""
    key = part, description
    work = _WORKS.by_kind.get(key)
    if work is None:
        if len(_WORKS.by_kind) >= MOST:
            _WORKS.by_kind.clear()
        work = _WORKS.by_kind[key] = engine.Work(part, *description)
    work.bind(arrays, [host_memory.empty((n,), _BYTE) for n in work.nbytes])()
    work.release()


def _bound(work: engine.Work, call: Call, arrays: Sequence[Array]) -> Callable[[], None]:
    """A function that computes a part on the arrays of a step. In inference, a bound weight is stored in the library's
    layout, since converting it takes as long as the convolution of a few images."""
    keeps = not call.is_train and 1 in call.variables
    temporaries = [host_memory.empty((n,), _BYTE) if keeps and i == work.kept else call.scratch(i, (n,), _BYTE)
                   for i, n in enumerate(work.nbytes)]
    return work.bind(arrays, temporaries, keeps)


G = TypeVar("G", Convolution, Pooling)


class _Kernels(Generic[G]):
    """An operator's two kernels, for eager calls and for plans.

    Subclasses describe the operator to the library.

    Parameters
    ----------
    op : Op
    part : str
        The part of a convolution or of pooling that it computes.
    read : int
        The number of its inputs that it reads.
    begins : bool
        Whether the pass ``channels_last`` may change the operator's layout for this kernel.
    """

    def __init__(self, op: Op, part: Part, read: int, begins: bool = False):
        self.op, self.part, self.read = op, part, read
        self.reference = op.kernels[0].rule
        op.kernel("onednn, a call", accepts=self.accepts, rank=Rank.LIBRARY)(self.call)
        self.attach(begins)

    def attach(self, begins: bool) -> None:
        """Attach the kernel for plans."""
        self.op.kernel("onednn", bound=True, accepts=self.accepts_bound, rank=Rank.LIBRARY,
                       channels_last=reason_by_specs(self.op, self.accepts_bound) if begins else None)(self.bound)

    def describe(self, ins: Sequence[Shape], out: Shape, attrs: Attrs) -> tuple[G, tuple[Shape, ...]]:
        """The geometry, and the strides of contiguous arrays, from the shapes of inputs and output."""
        raise NotImplementedError

    def declines(self, geometry: G, attrs: Attrs) -> str | None:
        """The reason why other kernels are faster, or None."""
        return None

    def arrays(self, ins: Sequence[Array], out: Array) -> list[Array]:
        """The arrays in the order of the geometry."""
        raise NotImplementedError

    def finish(self, ins: Sequence[Array], out: Array, attrs: Attrs) -> Callable[[], object] | None:
        """A function for the work that remains after the library's, or None."""
        return None

    def fits(self, ins: Sequence[Array]) -> bool:
        """Whether the library's result for these elements is right."""
        return True

    def accepts(self, call: Call) -> str | None:
        """The reason why the library does not compute a call, or None."""
        reason = declined(call, call.ins[:self.read])
        if reason is not None:
            return reason
        ins = [array.shape for array in call.ins]
        out = self.op.infer_shapes(list(ins), [None], call.attrs)[1][0]
        assert out is not None
        try:
            geometry, strides = self.describe(ins, out, call.attrs)
        except OpError:
            return "oneDNN has no convolution with this padding and these output sizes"
        return self.declines(geometry, call.attrs) or engine.possible(self.part, geometry, strides)

    def accepts_bound(self, call: Call) -> str | None:
        """``accepts`` for a call in a plan."""
        for array in (*call.ins[:self.read], *call.outs):
            if call.xp is np and (array is None or not array.flags.carray):
                return "an array is not contiguous"
        return self.accepts(call)

    def bound(self, call: Call) -> Callable[[], object]:
        """The step of a plan."""
        call.memo[HERE] = True
        ins, out, attrs = call.ins[:self.read], call.outs[0], call.attrs
        work = engine.Work(self.part, *self.describe([array.shape for array in call.ins], out.shape, attrs))
        run = _bound(work, call, self.arrays(ins, out))
        finish = self.finish(ins, out, attrs)
        if finish is not None:
            run = functools.partial(threads.call_all, (run, finish))
        return engine.step_of(call, run, functools.partial(self.fits, ins))

    def call(self, xp: ArrayModule, *ins: Array, out: Array | None = None, **attrs: Any) -> Array:
        """A call that returns its result, or writes it to ``out``."""
        if shared_library.forked() or not self.fits(ins):
            result: Array = self.reference.function(xp, *ins, **self.reference.select(attrs))
            if out is None:
                return result
            out[...] = result
            return out
        shapes = [array.shape for array in ins]
        if out is not None and out.flags.carray:
            target = out
        else:
            shape = self.op.infer_shapes(list(shapes), [None], attrs)[1][0]
            assert shape is not None
            target = host_memory.empty(shape, np.dtype(np.float32))
        ins = tuple([np.require(array, requirements=["C", "A"]) for array in ins[:self.read]])
        compute(self.part, self.describe(shapes, target.shape, attrs), self.arrays(ins, target))
        finish = self.finish(ins, target, attrs)
        if finish is not None:
            finish()
        if out is None or out is target:
            return target
        out[...] = target
        return out


# ------------------------------------------------------------------------------------------ convolutions


@cached(1024)
def _convolution(x: Shape, w: Shape, y: Shape, win: Window, groups: int, layout: str | None, weights_first: bool,
                 **epilogue: bool) -> tuple[Convolution, tuple[Shape, ...]]:
    """Description of a convolution for oneDNN, and the strides of contiguous arrays of these shapes with channels on
    axis 1."""
    layouts = layout, weight_layout(layout, weights_first), layout
    places = [channels_first(strides_of(shape), order) for shape, order in zip((x, w, y), layouts)]
    x, w, y = [channels_first(shape, order) for shape, order in zip((x, w, y), layouts)]
    last = layout is not None and layout[-1] == "C"
    geometry = Convolution(x, w, y, win.stride, win.dilate, win.pad, groups, last=last, **epilogue)
    column = (w[0], *(1,) * len(y[1:]))
    return geometry, (*places, *[(1,)] * geometry.bias, *[column] * (2 * geometry.scaled),
                      *[places[2]] * geometry.added)


class _ConvolutionKernels(_Kernels[Convolution]):
    """Kernels of an operator that has a role in convolutions."""

    def __init__(self, op: Op, role: Role):
        self.role = role
        super().__init__(op, role.part, len(role.reads), begins="adj" not in op.signature.schema)

    def describe(self, ins: Sequence[Shape], out: Shape, attrs: Attrs) -> tuple[Convolution, tuple[Shape, ...]]:
        shapes, layout = self.role.named(ins, out), attrs["layout"]
        win = convolution_window(attrs, channels_first(shapes["y"], layout))
        return _convolution(shapes["x"], shapes["w"], shapes["y"], win, attrs["num_group"], layout,
                            attrs.get("weights_first", False), bias="b" in shapes and self.part == "forward")

    def declines(self, geometry: Convolution, attrs: Attrs) -> str | None:
        if math.prod(geometry.y) * math.prod(geometry.w[1:]) < LEAST:
            return "it is small"
        win = Window(geometry.w[2:], geometry.stride, geometry.dilate, geometry.pad)
        if not geometry.last and product_alone(geometry.x, geometry.w, geometry.y, win, geometry.groups):
            return "it is one product of matrices"
        return None

    def arrays(self, ins: Sequence[Array], out: Array) -> list[Array]:
        named = self.role.named(ins, out)
        return [named[name] for name in ("xwyb" if self.part == "forward" else "xwy") if name in named]

    def finish(self, ins: Sequence[Array], out: Array, attrs: Attrs) -> Callable[[], object] | None:
        bias = self.role.named(ins, out).get("b") if self.part == "data" else None
        return None if bias is None else functools.partial(
            np.add, out, shift_of(bias, len(attrs["kernel"]), attrs["layout"]), out=out)


class _FoldedKernels(_ConvolutionKernels):
    """Kernels of a convolution with a norm, an addition and relu. The library computes these in its epilogue, except
    relu, since its relu turns NaN into zero, and the addition of an array in another layout."""

    def __init__(self, op: Op):
        self.op, self.part, self.read = op, "forward", 8
        self.attach(begins=True)

    def describe(self, ins: Sequence[Shape], out: Shape, attrs: Attrs) -> tuple[Convolution, tuple[Shape, ...]]:
        layout, scaled = attrs["layout"], attrs["normalized"]
        last = layout is not None and layout[-1] == "C"
        return _convolution(ins[0], ins[1], out, convolution_window(attrs, out), attrs["num_group"], layout,
                            attrs.get("weights_first", False), bias=not (attrs["no_bias"] or scaled),
                            scaled=scaled, added=attrs["added"] and last)

    def bound(self, call: Call) -> Callable[[], object]:
        call.memo[HERE] = True
        (data, weight, *optional), (out,), attrs = call.ins, call.outs, call.attrs
        bias, norm, other = parts_of(optional, attrs["no_bias"], attrs["normalized"], attrs["added"])
        geometry, strides = self.describe([data.shape, weight.shape], out.shape, attrs)
        work = engine.Work("forward", geometry, strides)
        folded = [np.empty(weight.shape[0], np.float32) for _ in range(2)] if norm else []  # scale and shift
        arrays = [data, weight, out, *([bias] if geometry.bias else []), *folded, *([other] if geometry.added else [])]
        run = _bound(work, call, arrays)
        epilogue: list[Callable[[], object]] = []
        if attrs["added"] and not geometry.added:
            epilogue.append(functools.partial(np.add, out, other, out=out))
        if attrs["relu"]:
            epilogue.append(functools.partial(np.clip, out, 0.0, math.inf, out=out))

        def convolve() -> None:
            if norm:
                folded[0][...], folded[1][...] = factors(np, bias, norm, attrs["eps"], attrs["fix_gamma"])
            run()
            threads.call_all(epilogue)

        return engine.step_of(call, convolve)


for _op, _role in ROLES.items():
    _ConvolutionKernels(_op, _role)
_FoldedKernels(folded_convolution)


# ----------------------------------------------------------------------------------------------- pooling


@cached(1024)
def _pooling(x: Shape, y: Shape, win: Window, kind: str, layout: str | None, arrays: int
             ) -> tuple[Pooling, tuple[Shape, ...]]:
    strides = [channels_first(strides_of(shape), layout) for shape in (x, y, x)[:arrays]]
    x, y = channels_first(x, layout), channels_first(y, layout)
    return Pooling(x, y, win.kernel, win.stride, win.pad, kind), tuple(strides)


class _PoolingKernels(_Kernels[Pooling]):
    """Maxima, averages and their gradients."""

    def describe(self, ins: Sequence[Shape], out: Shape, attrs: Attrs) -> tuple[Pooling, tuple[Shape, ...]]:
        x, y = (ins[0], out) if self.part == "forward" else (out, ins[0])
        win = window_of(x, **{name: attrs[name] for name in ("kernel", "stride", "pad", "global_pool", "layout",
                                                             "pooling_convention")})
        kind = "max" if attrs["pool_type"] == "max" else "inside" if attrs["count_include_pad"] is False else "all"
        return _pooling(x, y, win, kind, attrs["layout"], 3 if kind == "max" and self.part == "data" else 2)

    def declines(self, geometry: Pooling, attrs: Attrs) -> str | None:
        if attrs["pool_type"] not in ("max", "avg"):
            return f"oneDNN has no pool_type {attrs['pool_type']!r}"
        if math.prod(geometry.y) * math.prod(geometry.kernel) < LEAST:
            return "it is small"
        reach = [(q - 1) * s + k for q, s, k in zip(geometry.y[2:], geometry.stride, geometry.kernel)]
        if any(r > n + 2 * p for r, n, p in zip(reach, geometry.x[2:], geometry.pad)):
            return "windows reach beyond the padding"
        return None

    def arrays(self, ins: Sequence[Array], out: Array) -> list[Array]:
        return [ins[0], out] if self.part == "forward" else [out, *ins[:2]]

    def fits(self, ins: Sequence[Array]) -> bool:
        """Whether no maximum is the lowest float32, which is the maximum of a window with only NaN: for such a window
        the library computes a gradient, and this operator none."""
        return self.read < 3 or bool(ins[2].min(initial=0) > LOWEST)


_PoolingKernels(pooling, "forward", 1)
_PoolingKernels(pooling_sum, "data", 1)
_PoolingKernels(pooling_max, "data", 3)

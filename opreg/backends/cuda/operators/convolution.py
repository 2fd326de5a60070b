"""Convolution and Deconvolution with their gradients, by cuDNN."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from opreg.builtin.layers.convolution import ROLES, Role, convolution_window, shift_of, weight_layout
from opreg.builtin.layers.sliding import channels_first, extent
from opreg.core.launch import Call, Rank
from opreg.core.op import Op
from opreg.core.rounding import tf32
from opreg.core.rules import Attrs
from opreg.core.spec import Shape, Spec, strides_of
from opreg.typing import ArrayModule

from ..compiler import can_compile, keep_details
from ..cudnn import DTYPES, BuiltGraph, Convolution, Convolve, Frontend, Tensor, are_aligned, build, frontend


class _Plan(NamedTuple):
    """A convolution and what cuDNN built for it."""

    kind: Convolution
    built: BuiltGraph


def _tensor(shape: Shape, layout: str | None) -> Tensor:
    """The description of a contiguous array in a layout, with its channels on axis 1."""
    return Tensor(channels_first(shape, layout), channels_first(strides_of(shape), layout))


def _planned(library: Frontend, device: int, kind: Convolution) -> _Plan | str:
    """The plan for a convolution, without the bias if cuDNN has none with it; or the reason why there is none."""
    built = build(library, device, kind)
    if isinstance(built, str) and kind.bias:
        kind = kind._replace(bias=False)
        built = build(library, device, kind)
    return built if isinstance(built, str) else _Plan(kind, built)


class _Kernel:
    """The kernel ``cuDNN`` of an operator that has a role in convolutions."""

    def __init__(self, op: Op, role: Role):
        self.op, self.role = op, role
        op.kernel("cuDNN", bound=True, accepts=self.accepts, serves=can_compile, rank=Rank.LIBRARY,
                  channels_last=self.refused)(self.bound)

    def describe(self, shapes: dict[str, Shape], attrs: Attrs, dtype: str) -> Convolution | str:
        """The description of the convolution for these shapes, or the reason why there is none."""
        layout = attrs["layout"]
        layouts = layout, weight_layout(layout, attrs.get("weights_first", False)), layout
        x, w, y = [_tensor(shapes[name], order) for name, order in zip("xwy", layouts)]
        win = convolution_window(attrs, y.sizes)
        if extent(x.sizes[2:], win) != y.sizes[2:]:
            return "cuDNN has no convolution with this padding and these output sizes"
        return Convolution(self.role.part, dtype, x, w, y, win.stride, win.dilate, win.pad,
                           self.role.writes != "w" and "b" in shapes, tf32() and dtype == "float32")

    def accepts(self, call: Call) -> str | None:
        """The reason why the library does not compute a call, or None."""
        library = frontend(call.xp)
        if not isinstance(library, Frontend):
            return library
        if call.attrs["cudnn_off"]:
            return "cudnn_off=True"
        arrays = self.role.named(call.ins, call.outs[0])
        dtype = call.outs[0].dtype.name
        if dtype not in DTYPES or any(array.dtype.name != dtype for array in arrays.values()):
            dtypes = ", ".join(sorted({str(array.dtype) for array in arrays.values()}))
            return f"dtype {dtypes}: cuDNN takes one of {', '.join(DTYPES)}"
        if not all(array.size for array in arrays.values()):
            return "nothing to compute"
        if not all(array.flags.c_contiguous for array in arrays.values()) or not are_aligned([*arrays.values()]):
            return "an array is not contiguous, or not aligned to 16 bytes"
        kind = self.describe({name: array.shape for name, array in arrays.items()}, call.attrs, dtype)
        return keep_details(call, kind if isinstance(kind, str) else _planned(library, call.ctx.device_id, kind))

    def bound(self, call: Call) -> list[Callable]:
        """The steps of a plan."""
        (kind, built), arrays, after = call.details, self.role.named(call.ins, call.outs[0]), []
        if "b" in arrays and not kind.bias:
            bias, out = arrays.pop("b"), call.outs[0]
            after = [functools.partial(call.xp.add, out, shift_of(bias, len(kind.stride), call.attrs["layout"]), out)]
        return [Convolve(call.xp, call.ctx.device_id, f"{call.op.name}: {kind}", built, arrays,
                         self.role.writes, functools.partial(call.scratch, 0)), *after]

    def refused(self, attrs: Attrs, ins: Sequence[Spec], outs: Sequence[Spec], is_train: bool, xp: ArrayModule,
                device: int) -> str | None:
        """The reason why the library should not compute contiguous arrays with channels last, or None.

        Without tensor cores it is fastest with channels first, and copies other arrays to that layout in its workspace.
        """
        library, dtype = frontend(xp), str(outs[0].dtype)
        if not isinstance(library, Frontend) or dtype not in DTYPES or attrs["cudnn_off"]:
            return "cuDNN does not compute it"
        if dtype == "float64" or (dtype == "float32" and not tf32()):
            return f"cuDNN computes {dtype} with channels first"
        shapes = {name: spec.shape or () for name, spec in self.role.named(ins, outs[0]).items()}
        kind = self.describe(shapes, attrs, dtype)
        plan = kind if isinstance(kind, str) else _planned(library, device, kind)
        return plan if isinstance(plan, str) else None


for _op, _role in ROLES.items():
    _Kernel(_op, _role)

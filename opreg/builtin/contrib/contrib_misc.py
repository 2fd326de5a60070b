"""Contributed operators without a family: the Fourier transform of real values, and the count sketch."""

from __future__ import annotations

from ...core.attrs import Positive
from ...core.registry import declare, ops
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import add_into, adjoint_pair, declare_array_function, wide

# ------------------------------------------------------------------------------------ Fourier transforms


@declare(name="_contrib_fft")
def fft(data, *, compute_size: int = 128):
    """The discrete Fourier transform along the last axis; real and imaginary parts alternate in the result."""


declare_form(fft, "(..., n) -> (..., 2n)")


@declare(name="_contrib_ifft")
def ifft(data, *, compute_size: int = 128):
    """The real part of the inverse Fourier transform, unscaled; ``data`` has the layout of the result of ``fft``."""


declare_form(ifft, "(..., 2n) -> (..., n)")


def _spectrum(xp: ArrayModule, data: Array, *, compute_size: int) -> Array:
    spectrum = xp.fft.fft(wide(data), axis=-1)
    return xp.stack((spectrum.real, spectrum.imag), axis=-1).reshape((*data.shape[:-1], 2 * data.shape[-1]))


def _of_spectrum(xp: ArrayModule, data: Array, *, compute_size: int) -> Array:
    pairs = wide(data).reshape((*data.shape[:-1], data.shape[-1] // 2, 2))
    return xp.fft.ifft(pairs[..., 0] + 1j * pairs[..., 1], axis=-1).real * pairs.shape[-2]


declare_array_function(fft, _spectrum)
declare_array_function(ifft, _of_spectrum)
adjoint_pair(fft, ifft, like=False)


# ------------------------------------------------------------------------------------------ count sketch


@declare(name="_contrib_count_sketch", types="T,I,S->T")
def count_sketch(data, h, s, *, out_dim: Positive, processing_batch_size: int = 32):
    """The count sketch: elements of each row, with signs ``s``, are added up at the ``out_dim`` positions in ``h``.

    M. Charikar, K. Chen, M. Farach-Colton, Finding frequent items in data streams, 2002.
    """


declare_form(count_sketch, "(..., n) (1..., n) (1..., n) -> (..., @out_dim)")


@count_sketch.kernel()  # no body: it takes half again as long, for its transposes, and twice for a small array
def count_sketch_xp(xp, data, h, s, *, out_dim):
    result = xp.zeros((*data.shape[:-1], out_dim), wide(data).dtype)
    add_into(xp, result, (..., h.reshape(-1).astype(xp.int64)), data * s.reshape(-1))
    return result


@count_sketch.grad
def count_sketch_grad(g, ins, outs):
    places, signs = [ops.Reshape(index, shape=(-1,)) for index in ins[1:]]
    return (ops.broadcast_mul(ops.take(g, places, axis=-1, mode="wrap"), ops.Cast(signs, dtype=g.dtype)), None, None)

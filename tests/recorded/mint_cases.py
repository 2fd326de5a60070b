"""Results of ``mint``'s functions and layers, asked of opreg, or of PyTorch, whose names and arguments they have.

The answers of PyTorch are kept in ``mint.json``; kernels of MindSpore's own ``mint`` are for Ascend. Where PyTorch
is installed, this file writes them:

    PYTHONPATH=. python tests/recorded/mint_cases.py tests/recorded/mint.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["CASES", "INPUTS", "asked"]

INPUTS = {
    "f": "np.array([[-2.1, -0.7, 0.3], [0.9, 1.6, 3.2]], 'f4')", "g": "np.array([[0.5, -1.2, 2.2]], 'f4')",
    "p": "np.array([0.15, 0.35, 0.55, 0.9], 'f4')", "i": "np.array([[1, 5, -3], [4, 0, 2]], 'i4')",
    "j": "np.array([3, 2, 4], 'i4')", "k": "np.array([0, 2, 1, 2], 'i8')", "b": "np.array([True, False, True])",
    "r": "np.array([3, 1, 1, 2, 2, 3], 'i8')", "n": "np.array([1.0, np.nan, 3.0, np.inf, -np.inf], 'f4')",
    "x": "np.sin(np.arange(96.0)).reshape(2, 3, 4, 4).astype('f4')",
    "s": "np.cos(np.arange(24.0)).reshape(2, 3, 4).astype('f4')",
    "w": "np.cos(np.arange(54.0)).reshape(2, 3, 3, 3).astype('f4')",
    "u": "np.cos(np.arange(18.0)).reshape(2, 3, 3).astype('f4')",
    "h": "np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], 'f4')", "c": "np.array([2, 0], 'i8')",
    "q": "np.array([[1, 0, 1], [0, 1, 0]], 'f4')", "a": "np.array([[0, 2], [1, 1]], 'i8')",
}
#: Cases: expressions of ``mint``, ``F``, which is ``mint.nn.functional``, and the inputs, as tensors.
CASES = [
    "mint.add(f, g, alpha=2)", "mint.sub(f, g, alpha=2)", "mint.equal(f, f)", "mint.allclose(f, f + 1e-9)",
    "mint.equal(f, g)", "mint.bitwise_not(i)", "mint.bitwise_not(b)", "mint.fix(f)", "mint.isneginf(n)",
    "mint.gcd(j, j * 2)", "mint.vdot(p, p)", "mint.dot(p, p)", "mint.linalg.matrix_norm(s, dim=(0, 2))",
    "mint.clone(f)", "mint.all(f)", "mint.all(i, dim=1)", "mint.any(i, 0, True)", "mint.amax(f)", "mint.amax(f, 1)",
    "mint.amin(f, dim=(0, 1), keepdim=True)", "mint.max(f)", "mint.max(f, 1)", "mint.max(f, dim=0, keepdim=True)",
    "mint.max(f, g)", "mint.min(f)", "mint.min(i, 1)", "mint.min(f, g)", "mint.argmax(f)", "mint.argmax(f, 1)",
    "mint.argmin(f, dim=0, keepdim=True)", "mint.argmin(i)", "mint.mean(f)", "mint.mean(f, (0, 1))",
    "mint.mean(f, dim=1, keepdim=True)", "mint.sum(f, dim=0)", "mint.sum(i)", "mint.sum(b)", "mint.prod(f, 1)",
    "mint.prod(i)", "mint.nansum(n[:3])", "mint.var(f)", "mint.var(f, 1)", "mint.std(f)",
    "mint.std(f, dim=1, keepdim=True)", "mint.std(f, dim=0, correction=0)", "mint.var_mean(f, 1)", "mint.std_mean(f)",
    "mint.count_nonzero(i)", "mint.count_nonzero(i, dim=1)", "mint.norm(f)", "mint.norm(f, 1, 1)",
    "mint.norm(f, dim=0)", "mint.median(f)", "mint.median(f, 1)", "mint.median(f, dim=0, keepdim=True)",
    "mint.kthvalue(f, 2)", "mint.kthvalue(f, 1, 0, True)", "mint.histc(f, 4)", "mint.histc(f, 4, -1, 1)",
    "mint.histc(p, 3, 0, 1)", "mint.cumsum(f, 1)", "mint.cumsum(i, 0)", "mint.cumsum(f, dim=0, dtype=f64)",
    "mint.cummax(f, 1)", "mint.cummin(f, 1)", "mint.cumprod(f, 1)", "mint.diff(f)", "mint.diff(f, dim=0)",
    "mint.diff(p, n=2)", "mint.sort(f, dim=0, descending=True)", "mint.sort(i)", "mint.argsort(f, 1, True)",
    "mint.topk(f, 2)", "mint.topk(f, 1, 0, False)", "mint.unique(r)",
    "mint.unique(r, return_inverse=True, return_counts=True)", "mint.unique(i, return_inverse=True)",
    "mint.unique_consecutive(r)", "mint.unique_consecutive(r, return_inverse=True, return_counts=True)",
    "mint.cat((f, g))", "mint.cat((f, f), dim=1)", "mint.concat((f, f), 1)", "mint.stack((f, f), dim=-1)",
    "mint.chunk(f, 2, 1)", "mint.split(f, 2, dim=1)", "mint.split(f, [1, 2], 1)", "mint.flatten(x)",
    "mint.flatten(x, 1, 2)", "mint.permute(s, (2, 0, 1))", "mint.transpose(s, 0, -1)", "mint.squeeze(g, 0)",
    "mint.squeeze(g, 1)", "mint.diag(p)", "mint.diag(f, 1)", "mint.meshgrid(p, p * 2, indexing='ij')",
    "mint.meshgrid(p, p * 2, indexing='xy')", "mint.narrow(f, 1, 1, 2)", "mint.select(s, 1, 2)",
    "mint.select(s, -1, -1)", "mint.repeat_interleave(f, 2, dim=1)", "mint.repeat_interleave(j, 2)",
    "mint.gather(f, 1, a)", "mint.gather(f, 0, a[:1] * 0)", "mint.index_select(f, 1, k)",
    "mint.index_add(p, 0, k[:3], p[:3], alpha=2)", "mint.scatter(f, 1, a, f)", "mint.scatter(f, 1, a, 2.5)",
    "mint.scatter(i, 1, a, 7)", "mint.scatter_add(f, 1, a, f)",
    "mint.take(f, k)", "mint.zeros((2, 3))", "mint.ones((2,))", "mint.softmax(f, 0)", "mint.bincount(k)",
    "mint.matmul(f, f.T)", "mint.bmm(s, mint.transpose(s, 1, 2))", "mint.where(f > 0, f, g)", "mint.tril(f, 1)",
    "mint.linspace(0, 1, 5)", "mint.eye(2)", "mint.full((2,), 1.5)", "mint.arange(0, 3)",
    "mint.arange(0.0, 1.0, 0.25)", "mint.outer(p, p)", "mint.cdist(f, g)", "mint.logsumexp(f, 1)",
    "mint.lerp(f, g, 0.5)", "mint.clamp(f, -1, 1)", "mint.flip(f, (1,))", "mint.roll(p, 1)",
    "mint.searchsorted(p, p)", "mint.unbind(f, 1)", "mint.tile(p, (2, 1))", "mint.nonzero(i)", "mint.isclose(f, f)",
    "mint.einsum('ij,kj->ik', f, g)", "mint.linalg.norm(f)", "mint.linalg.vector_norm(f, dim=1)",
    "mint.linalg.matrix_norm(f)", "abs(mint.linalg.qr(f.T)[1])", "mint.special.log1p(p)",
    "mint.conv2d(x, w, padding=1)", "F.elu(f)", "F.elu(f, 0.5)", "F.relu6(f * 4)", "F.hardtanh(f)", "F.leaky_relu(f)",
    "F.leaky_relu(f, 0.2)", "F.silu(f)", "F.threshold(f, 0.5, 7.0)", "F.logsigmoid(f)", "F.glu(s)",
    "F.glu(s, dim=-1)", "F.gelu(f)", "F.gelu(f, approximate='tanh')", "F.softmax(f, 1)", "F.softmax(s, dim=-1)",
    "F.log_softmax(f, dim=0)", "F.softplus(f)", "F.mish(f)", "F.selu(f)", "F.hardswish(f)", "F.hardsigmoid(f)",
    "F.softshrink(f)", "F.hardshrink(f)", "F.conv1d(s, u)", "F.conv1d(s, u, stride=2, padding=1)",
    "F.conv2d(x, w, stride=2)", "F.conv2d(x, w, padding='same')", "F.conv2d(x, w, padding=(1, 2), dilation=(1, 2))",
    "F.conv_transpose2d(x[:, :2], w)", "F.conv_transpose2d(x[:, :2], w, stride=2, padding=1, output_padding=1)",
    "F.avg_pool1d(s, 2)", "F.avg_pool2d(x, 2)", "F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)",
    "F.avg_pool2d(x, 2, divisor_override=3)", "F.max_pool2d(x, 2)", "F.max_pool2d(x, 3, 1, 1)",
    "F.max_pool2d(x, 2, return_indices=True)", "F.adaptive_avg_pool2d(x, 2)", "F.adaptive_avg_pool3d(x, (2, 2, 3))",
    "F.adaptive_max_pool1d(s, 3)", "F.adaptive_max_pool2d(x, (2, 3))",
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)", "F.unfold(x, 2)",
    "F.unfold(x, (2, 3), padding=1, stride=2)", "F.fold(F.unfold(x, 2), (4, 4), 2)",
    "F.fold(F.unfold(x, 3, padding=1, stride=2), 4, 3, padding=1, stride=2)", "F.pad(f, (1, 2))",
    "F.pad(x, (1, 1, 2, 0), mode='reflect')", "F.pad(f, (1, 0, 0, 1), value=3.0)", "F.batch_norm(x, p[:3], p[1:])",
    "F.batch_norm(x, p[:3], p[1:], p[:3], p[1:], eps=0.1)", "F.normalize(f)", "F.normalize(s, p=1.0, dim=-1)",
    "F.dropout(f, 0.5, False)", "F.dropout2d(x, 0.5, False)", "F.one_hot(k)", "F.one_hot(k, 4)",
    "F.layer_norm(s, (4,))", "F.group_norm(x, 3)", "F.linear(f, f, p[:2])",
    "F.binary_cross_entropy_with_logits(f, q)", "F.binary_cross_entropy_with_logits(f, q, pos_weight=g + 2)",
    "F.binary_cross_entropy(h, q)", "F.kl_div(f, h)", "F.kl_div(f, h, reduction='batchmean')",
    "F.kl_div(f, q, reduction='sum')", "F.kl_div(f, f, reduction='none', log_target=True)", "F.l1_loss(f, g + f)",
    "F.smooth_l1_loss(f, h)", "F.smooth_l1_loss(f, h, beta=0.5)", "F.smooth_l1_loss(f, h, beta=0.0)",
    "F.nll_loss(f, c)", "F.mse_loss(f, h)", "F.nll_loss(f, c, reduction='sum')", "F.cross_entropy(f, c)",
    "F.cross_entropy(f, c, label_smoothing=0.1)", "F.interpolate(x, scale_factor=2.0)",
    "F.interpolate(x, size=(3, 5), mode='bilinear')", "F.embedding(k, f.T)", "mint.nn.AvgPool2d(2)(x)",
    "mint.nn.MaxPool2d(3, 1, 1)(x)", "mint.nn.Softmax(dim=1)(f)", "mint.nn.LogSoftmax(1)(f)", "mint.nn.ELU(0.5)(f)",
    "mint.nn.GELU()(f)", "mint.nn.GELU('tanh')(f)", "mint.nn.Threshold(0.5, 7.0)(f)",
    "mint.nn.Unfold(2, stride=2)(x)", "mint.nn.Fold((4, 4), 2)(F.unfold(x, 2))",
    "mint.nn.Upsample(scale_factor=2)(x)", "mint.nn.UpsamplingNearest2d(scale_factor=2)(x)",
    "mint.nn.UpsamplingBilinear2d(size=(3, 5))(x)", "mint.nn.BCEWithLogitsLoss()(f, q)",
    "mint.nn.BCEWithLogitsLoss(None, reduction='sum')(f, q)", "mint.nn.CrossEntropyLoss(label_smoothing=0.1)(f, c)",
    "mint.nn.NLLLoss(g[0] + 3)(f, c)", "mint.nn.KLDivLoss()(f, h)", "mint.nn.L1Loss(reduction='none')(f, h)",
    "mint.nn.SmoothL1Loss()(f, h)", "mint.nn.MSELoss()(f, h)", "mint.nn.ZeroPad2d((1, 0, 2, 1))(x)",
    "mint.nn.ZeroPad1d(1)(s)", "mint.nn.ZeroPad3d(1)(x)", "mint.nn.PReLU()(f)", "mint.nn.PReLU(3, 0.5)(f)",
    "mint.nn.LayerNorm(4)(s)", "mint.nn.LayerNorm((3, 4), 0.1)(s)", "mint.nn.GroupNorm(3, 3)(x)",
    "mint.nn.Flatten()(x)", "mint.nn.Identity()(f)", "mint.nn.ReLU6()(f)", "mint.nn.SiLU()(f)", "mint.nn.GLU()(s)",
    "mint.nn.Hardtanh(-1.0, 2.0)(f)", "mint.nn.AdaptiveAvgPool2d(2)(x)", "mint.nn.AdaptiveMaxPool2d((2, 3))(x)",
    "mint.nn.Hardshrink(1.0)(f)", "mint.nn.Softshrink(0.2)(f)", "mint.nn.Hardswish()(f)",
    "mint.nn.PixelShuffle(1)(x)", "mint.nn.MaxUnpool2d(2)(*F.max_pool2d(x, 2, return_indices=True))",
    "mint.nn.ConstantPad1d(1, 2.0)(s)",
]


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if hasattr(value, "dtype"):
        numbers = value.asnumpy() if hasattr(value, "asnumpy") else value.detach().numpy()
        return {"dtype": numbers.dtype.name, "shape": list(numbers.shape),
                "numbers": [repr(float(each)) for each in numbers.astype(np.float64).ravel()]}
    return value


def asked(mint: ModuleType, tensor: Callable[[np.ndarray], Any], f64: Any, case: str) -> Any:
    """Result of one expression, or the name of the error that it raises."""
    names = {"mint": mint, "F": mint.nn.functional, "f64": f64}
    names |= {name: tensor(eval(text)) for name, text in INPUTS.items()}
    try:
        return _plain(eval(case, names))
    except Exception as error:
        return {"error": type(error).__name__}


if __name__ == "__main__":
    import torch

    lines = ",\n".join(json.dumps([case, asked(torch, torch.from_numpy, torch.float64, case)]) for case in CASES)
    about = "What PyTorch answers; see tests/recorded/mint_cases.py for what it is asked."
    Path(sys.argv[1]).write_text(f'{{"about": "{about}",\n'
                                 f'"cases": [\n{lines}\n]}}\n')

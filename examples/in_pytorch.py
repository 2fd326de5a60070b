"""Two operators and a Cell of opreg in a training loop of PyTorch.

The traced operator is translated to PyTorch's own operations. The other one stays NumPy code, which is called with
arrays that share the memory of the tensors. A step of PyTorch's optimizer changes the Cell's own weights.

    python examples/in_pytorch.py
"""

from __future__ import annotations

import numpy as np

import opreg as mx
from opreg import nn


@mx.operator.define(traced=True)
def swish(x, *, beta: float = 1.0):
    """``x * sigmoid(beta * x)``; its gradient is derived from the body."""
    x = x.asnumpy()
    return x / (1 + np.exp(-beta * x))


@mx.operator.define
def soft_rank(x):
    """A smooth rank: each element's sum of sigmoids of its differences to all elements of its row."""
    x = x.asnumpy()
    return (1 / (1 + np.exp(x[:, None, :] - x[:, :, None]))).sum(2).astype(x.dtype)


@soft_rank.infer
def soft_rank_infer(x):
    return x


@soft_rank.grad
def soft_rank_grad(g, ins, outs):
    x = ins[0]
    larger = mx.nd.sigmoid(mx.nd.broadcast_sub(x.expand_dims(2), x.expand_dims(1)))
    slope = larger * (1 - larger)
    return g * slope.sum(axis=2) - mx.nd.batch_dot(slope, g.expand_dims(2)).reshape((0, -1))


def main() -> None:
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: nothing was run")
        return
    torch.manual_seed(0)
    mx.set_seed(0)
    activation, ranks = mx.operator.to_torch(swish), mx.operator.to_torch(soft_rank)
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(activation, [x]) and torch.autograd.gradcheck(ranks, [x])

    cell = nn.Dense(5, 3)
    layer = mx.operator.to_torch(cell)
    before = cell.weight.asnumpy().copy()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    data, wanted = torch.randn(32, 5), torch.tensor([0.5, 1.5, 2.5])
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (ranks(activation(layer(data), beta=2.0) * 4) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2 and not np.allclose(cell.weight.asnumpy(), before)
    print(f"mean square of what ranks are wrong: {losses[0]:.2f} at first, {losses[-1]:.2f} after {len(losses)} steps")


if __name__ == "__main__":
    main()

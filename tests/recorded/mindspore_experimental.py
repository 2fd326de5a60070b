"""Results of ``experimental.optim``, asked of MindSpore or of opreg, which have the same names.

The answers of MindSpore 2.10 are kept in ``mindspore_experimental.json``. Where it is installed, this file writes
them:

    python tests/recorded/mindspore_experimental.py tests/recorded/mindspore_experimental.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["OPTIMIZERS", "SCHEDULERS", "scheduled", "trained"]

#: Optimizers of the parameters ``p``.
OPTIMIZERS = [
    "SGD(p, 0.1)", "SGD(p, 0.1, 0.9, weight_decay=0.01)", "SGD(p, 0.1, 0.9, nesterov=True)", "SGD(p, 0.1, 0.9, 0.5)",
    "SGD(p, 0.1, maximize=True)", "SGD([{'params': [p[0]], 'lr': 0.5}, {'params': [p[1]], 'weight_decay': 0.3}], 0.1)",
    "Adam(p, 0.1)", "Adam(p, 0.1, weight_decay=0.1, eps=1e-2)", "AdamW(p, 0.1)",
    "AdamW(p, 0.1, amsgrad=True, maximize=True)", "Adamax(p, 0.1)", "NAdam(p, 0.1)", "RAdam(p, 0.1)",
    "RAdam(p, 0.1, (0.9, 0.9))", "RMSprop(p, 0.1)", "RMSprop(p, 0.1, momentum=0.9, centered=True)",
    "Adagrad(p, 0.1, 0.1, 0.1, 0.5)", "Adadelta(p, 0.5)", "Rprop(p, 0.1)", "ASGD(p, 0.1, lambd=0.01, t0=2.0)"]
#: Schedulers of the optimizer ``o``, which has two groups.
SCHEDULERS = [
    "StepLR(o, 2, 0.5)", "MultiStepLR(o, [2, 5])", "ExponentialLR(o, 0.9)", "ConstantLR(o, 0.5, 3)",
    "LinearLR(o, 0.25, 1.0, 4)", "PolynomialLR(o, 4, 2.0)", "LambdaLR(o, lambda e: 0.9 ** e)",
    "LambdaLR(o, [lambda e: 0.9 ** e, lambda e: 1 / (e + 1)])", "MultiplicativeLR(o, lambda e: 0.9)",
    "CosineAnnealingLR(o, 4, 0.01)", "CosineAnnealingWarmRestarts(o, 2, 2)",
    "CyclicLR(o, 0.01, 0.1, 2, 3, 'triangular2')",
    "CyclicLR(o, 0.01, 0.1, 2, mode='exp_range', gamma=0.9)",
    "SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)], [4])", "ReduceLROnPlateau(o, patience=1)",
    "ReduceLROnPlateau(o, factor=0.5, patience=0, cooldown=1, min_lr=0.03)",
    "ReduceLROnPlateau(o, 'max', patience=1, threshold_mode='abs')"]
_LOSSES = [1.0, 0.9, 0.95, 0.93, 0.92, 0.91, 0.5, 0.6, 0.7]


def trained(ms: Any, optim: Any, case: str) -> list[Any]:
    """Values of two parameters after five steps."""
    p = [ms.Parameter(ms.Tensor(np.array(numbers, np.float32)), name=name)
         for name, numbers in (("w", [1.0, -2.0, 0.5]), ("b", [[0.3, -0.1]]))]
    optimizer = eval(f"optim.{case}", {"optim": optim, "p": p})
    for i in range(5):
        optimizer((ms.Tensor(np.array([0.5, -1, 0.2], np.float32) * (i + 1) * (-1) ** (i // 2)),
                   ms.Tensor(np.array([[1, 0.3]], np.float32) * (1 - i))))
    return [each.asnumpy().tolist() for each in p]


def scheduled(ms: Any, optim: Any, case: str) -> list[list[float]]:
    """Learning rates of both groups in nine steps."""
    groups = [{"params": [ms.Parameter(ms.Tensor([1.0], ms.float32), name="w")]},
              {"params": [ms.Parameter(ms.Tensor([1.0], ms.float32), name="b")], "lr": 0.05}]
    optimizer = optim.SGD(groups, 0.1)
    scheduler = eval(f"L.{case}", {"L": optim.lr_scheduler, "o": optimizer})
    rates = []
    for loss in _LOSSES:
        rates.append([float(rate.asnumpy()) for rate in optimizer.lrs])
        scheduler.step(*([loss] if "Plateau" in case else []))
    return rates


if __name__ == "__main__":
    import mindspore
    from mindspore.experimental import optim

    rows = [json.dumps([case, asked(mindspore, optim, case)])
            for asked, cases in ((trained, OPTIMIZERS), (scheduled, SCHEDULERS)) for case in cases]
    Path(sys.argv[1]).write_text('{"about": "What MindSpore 2.10.0 answers; see mindspore_experimental.py.",\n'
                                 '"cases": [\n' + ",\n".join(rows) + "\n]}\n")

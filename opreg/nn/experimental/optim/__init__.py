"""optim: optimizers with groups as dicts, and learning rate schedulers, with the names of
``mindspore.experimental.optim``.

>>> from opreg import Parameter, Tensor
>>> from opreg.experimental import optim
>>> w = Parameter(Tensor([1.0, 2.0]), name="w")
>>> optimizer = optim.SGD([w], lr=0.5)
>>> scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
>>> for _ in range(2):
...     _ = optimizer((Tensor([1.0, 1.0]),))
...     scheduler.step()
>>> print(w.asnumpy(), scheduler.get_last_lr()[0].asnumpy())
[0.25 1.25] 0.125
"""

from __future__ import annotations

from . import lr_scheduler, rules
from .optimizer import Optimizer
from .rules import ASGD, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop

__all__ = ["ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop",
           "Rprop", "lr_scheduler", "rules"]

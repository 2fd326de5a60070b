"""Operators and autograd under their names from before MXNet 1.0.

``contrib.nd`` and ``contrib.sym`` are ``mx.nd.contrib`` and ``mx.sym.contrib``.
"""

from __future__ import annotations

from typing import NoReturn

from opreg import aliases as _aliases
from opreg import onnx
from opreg.errors import did_you_mean
from opreg.ndarray import contrib as nd
from opreg.ndarray import contrib as ndarray
from opreg.symbol import contrib as sym
from opreg.symbol import contrib as symbol

from . import autograd, detection, io, text

#: Names of MXNet that are missing here, with their replacements.
_ABSENT = {
    **dict.fromkeys(("quantization", "quant"), "files of quantised networks run; making them is MXNet's"),
    "tensorboard": "a batch_end_callback may hand param.eval_metric.get_name_value() to any writer of summaries",
}

__all__ = ["autograd", "detection", "io", "nd", "ndarray", "onnx", "sym", "symbol", "text"]


_aliases.refuse("MXNet", {f"opreg.contrib.{name}": f"contrib.{name} of MXNet is no part of opreg: {instead}. See "
                          "docs/mxnet.md" for name, instead in _ABSENT.items()})


def __getattr__(name: str) -> NoReturn:
    if name in _ABSENT:
        raise AttributeError(_aliases.refusal_reason(f"opreg.contrib.{name}"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}. {did_you_mean(name, [*__all__, *_ABSENT])}")


def __dir__() -> list[str]:
    return sorted(__all__)

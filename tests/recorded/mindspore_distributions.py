"""Distributions, asked of MindSpore or of opreg, which have the same names.

The answers of MindSpore 2.10 are kept in ``mindspore_distributions.json``. Where it is installed, this file writes
them:

    python tests/recorded/mindspore_distributions.py tests/recorded/mindspore_distributions.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["CASES", "CLASSES", "asked"]

#: Class, its parameters, other parameters, and values.
CLASSES: dict[str, tuple[list[Any], list[Any], list[float]]] = {
    "Normal": [[[0.0, 1.0], [1.0, 2.0]], [[0.5, 1.5], [1.0, 3.0]], [0.3, 2.0]],
    "Uniform": [[[0.0, 1.0], [1.0, 3.0]], [[0.0, 0.5], [2.0, 3.0]], [0.3, 4.0]],
    "Exponential": [[[0.5, 2.0]], [[1.0, 3.0]], [0.3, -2.0]],
    "Bernoulli": [[[0.3, 0.6]], [[0.2, 0.7]], [0.0, 1.0]],
    "Cauchy": [[[0.0, 1.0], [1.0, 2.0]], [[0.5, 1.5], [1.0, 3.0]], [0.3, 2.0]],
    "Gamma": [[[0.7, 2.0], [1.0, 3.0]], [[1.5, 2.5], [1.0, 0.5]], [0.3, 2.0]],
    "Geometric": [[[0.3, 0.6]], [[0.2, 0.7]], [0.0, 2.0]],
    "Gumbel": [[[0.0, 1.0], [1.0, 2.0]], [[0.5, 1.5], [1.0, 3.0]], [0.3, 2.0]],
    "LogNormal": [[[0.0, 0.3], [1.0, 0.5]], [[0.5, 1.5], [1.0, 3.0]], [0.3, 2.0]],
    "Logistic": [[[0.0, 1.0], [1.0, 2.0]], [[0.5, 1.5], [1.0, 3.0]], [0.3, 2.0]],
    "Poisson": [[[0.5, 2.3]], [[1.0, 3.0]], [1.0, 2.0]],
    "Categorical": [[[[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]], [[[0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]], [0.0, 2.0]],
}
_OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival")
_MOMENTS = ("mean", "mode", "sd", "var", "entropy")
_OF_TWO = ("kl_loss", "cross_entropy")
#: Class, method, and the place of the parameters: the Cell, the call, or both.
CASES = [(name, method, place) for name in CLASSES for method in (*_OF_VALUES, *_MOMENTS, *_OF_TWO)
         for place in ("Cell", "call", "both")
         if (name, method) != ("Bernoulli", "mode")  # it fails in MindSpore
         and (name != "Gumbel" or place == "Cell")]  # its methods take no parameters there


def asked(ms: Any, distribution: Any, case: tuple[str, str, str], dtype: str = "float32") -> Any:
    """The result of a method, as lists, or the names of the kinds of its error."""
    name, method, place = case
    own, others, values = CLASSES[name]
    given = [ms.Tensor(each, getattr(ms, dtype)) for each in others]
    settings = {"dtype": getattr(ms, dtype)} if name not in ("Bernoulli", "Categorical", "Geometric") else {}
    cell = getattr(distribution, name)(*([] if place == "call" else own), **settings)
    first = [ms.Tensor(values, getattr(ms, dtype))] if method in _OF_VALUES else []
    try:
        if method in _OF_TWO:
            first = [name, *given]
        result = cell(method, *first, *([] if place == "Cell" else given))
        return result.asnumpy().tolist()
    except Exception as error:
        return {"error": [each.__name__ for each in type(error).__mro__[:-2]]}


if __name__ == "__main__":
    import mindspore
    import mindspore.nn.probability.distribution as theirs

    about = f"What MindSpore {mindspore.__version__} answers; see mindspore_distributions.py for what it is asked."
    lines = ",\n".join(json.dumps([case, asked(mindspore, theirs, case)]) for case in CASES)
    Path(sys.argv[1]).write_text(f'{{"about": {json.dumps(about)},\n"cases": [\n{lines}\n]}}\n')

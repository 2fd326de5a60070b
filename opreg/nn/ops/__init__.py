"""ops: functions and primitives of tensors by MindSpore's names, all over registered operators.

Functions take tensors, NumPy arrays, lists and numbers, eagerly and while a function is compiled. A primitive is a
class: an object is made with settings, and then called on tensors.

>>> from opreg import Tensor, ops
>>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
>>> print(ops.sum(x, 0), ops.ReduceSum(keep_dims=True)(x, 1).shape)
[4. 6.] (2, 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import aliases as _aliases
from ...cells.grad import GradOperation, get_grad, grad, value_and_grad
from ...cells.jacobian import jacfwd, jacrev, jvp, vjp
from ...cells.taylor import derivative, jet, linearize
from ...cells.tensor_hooks import HookBackward, InsertGradientOf
from ...cells.vmap import vmap
from ...core.doc_examples import add_examples, translate_example
from ...core.named_errors import name_errors
from ...errors import did_you_mean
from ..compiler_settings import add_flags, constexpr
from . import (
    activation,
    array,
    attention,
    blocks,
    collectives,
    control,
    creation,
    custom,
    detection,
    edit_distance,
    factors,
    indexing,
    layer_primitives,
    linalg,
    losses,
    math,
    multitype,
    nn,
    primitives,
    random,
    reduce,
    sampling,
    scalars,
    shorthands,
    signals,
    slices,
    special,
    transposed,
    updates,
    windows,
)
from .activation import *  # noqa: F403
from .array import *  # noqa: F403
from .attention import *  # noqa: F403
from .blocks import *  # noqa: F403
from .collectives import *  # noqa: F403
from .control import *  # noqa: F403
from .creation import *  # noqa: F403
from .custom import *  # noqa: F403
from .detection import *  # noqa: F403
from .edit_distance import *  # noqa: F403
from .factors import *  # noqa: F403
from .indexing import *  # noqa: F403
from .layer_primitives import *  # noqa: F403
from .linalg import *  # noqa: F403
from .losses import *  # noqa: F403
from .math import *  # noqa: F403
from .methods import attach
from .multitype import *  # noqa: F403
from .nn import *  # noqa: F403
from .primitives import *  # noqa: F403
from .random import *  # noqa: F403
from .reduce import *  # noqa: F403
from .sampling import *  # noqa: F403
from .scalars import *  # noqa: F403
from .shorthands import *  # noqa: F403
from .signals import *  # noqa: F403
from .slices import *  # noqa: F403
from .special import *  # noqa: F403
from .transposed import *  # noqa: F403
from .updates import *  # noqa: F403
from .windows import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the star imports
    __all__ = ["GradOperation", "HookBackward", "InsertGradientOf", "add_flags", "constexpr", "get_grad",  # noqa: PLE0604
               "derivative", "grad", "jacfwd", "jacrev", "jet", "jvp", "linearize", "value_and_grad", "vjp", "vmap",
               *activation.__all__, *array.__all__, *attention.__all__, *blocks.__all__, *collectives.__all__,
               *control.__all__, *creation.__all__, *custom.__all__, *detection.__all__,
               *edit_distance.__all__, *factors.__all__,
               *indexing.__all__, *layer_primitives.__all__, *linalg.__all__, *losses.__all__, *math.__all__,
               *multitype.__all__, *nn.__all__, *primitives.__all__, *random.__all__, *reduce.__all__,
               *sampling.__all__, *scalars.__all__, *shorthands.__all__, *signals.__all__, *slices.__all__,
               *special.__all__, *transposed.__all__, *updates.__all__, *windows.__all__]

    def _said(name: str) -> str:
        if "fft" in name.lower():
            return (f"opreg.ops has no {name!r}: there are no complex dtypes. nd.contrib.fft gives real and imaginary "
                    "parts of real arrays, one beside the other, and nd.contrib.ifft takes them")
        return (f"opreg.ops has no {name!r}. {did_you_mean(name, __all__)} What MindSpore has beside is listed in "
                "docs/mindspore_names.md")

    __getattr__ = _aliases.inner(__name__, _said)

    def __dir__() -> list[str]:
        return sorted(__all__)

attach()
add_examples(__name__, globals(), "import opreg as ms", "from opreg import Tensor, ops")
for _name, _function in primitives.WITHOUT_SETTINGS.items():
    translate_example(_function.__doc__ or "", globals()[_name], (f"ops.{_function.__name__}(", f"ops.{_name}()("))
if not TYPE_CHECKING:
    name_errors(__name__, globals(), __all__)

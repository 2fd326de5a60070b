"""symbol: graphs of operators, built once and run many times."""

from __future__ import annotations

from opreg.core.named_errors import name_errors

if __name__ != "opreg.symbol":  # imported as ``symbol``, the folder's name: be opreg.symbol, not a second copy
    from opreg.aliases import adopt

    adopt(__name__)

from typing import TYPE_CHECKING, Any

from opreg.aliases import module_below
from opreg.core.namespaces import public

from .function import custom, random, sparse, surface
from .json import fromjson, load, load_json
from .naming import AttrScope, NameManager, Prefix
from .symbol import Custom, Group, NotImplementedForSymbol, Symbol, Variable, var

__all__ = [
    "Symbol", "Variable", "var", "Group", "Custom", "load", "load_json", "fromjson", "AttrScope", "NameManager",
    "Prefix", "NotImplementedForSymbol", "linalg", "random", "contrib", "image", "op", "custom", "sparse", "zeros",
    "ones", "full", "arange", "linspace", "eye",
]


def _create(operator: str, shape: ShapeLike | None = None, dtype: DTypeLike = None, **keywords: Any) -> Symbol:
    if shape is not None:
        keywords["shape"] = (shape,) if isinstance(shape, int) else tuple(shape)
    return surface(operator)(dtype="float32" if dtype is None else dtype, **keywords)


def zeros(shape: ShapeLike, dtype: DTypeLike = None, **keywords: Any) -> Symbol:
    """An array of zeros; float32 by default.

    Examples
    --------
    >>> zeros((2,)).eval()[0].asnumpy()
    array([0., 0.], dtype=float32)
    """
    return _create("_zeros", shape, dtype, **keywords)


def ones(shape: ShapeLike, dtype: DTypeLike = None, **keywords: Any) -> Symbol:
    """An array of ones; float32 by default."""
    return _create("_ones", shape, dtype, **keywords)


def full(shape: ShapeLike, val: float, dtype: DTypeLike = None, **keywords: Any) -> Symbol:
    """An array of a shape whose elements are all ``val``; float32 by default."""
    return _create("_full", shape, dtype, value=val, **keywords)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
           name: str | None = None, dtype: DTypeLike = None) -> Symbol:
    """Values from ``start`` to below ``stop`` in steps of ``step``, each ``repeat`` times. With one argument, start is
    0."""
    return _create("_arange", None, dtype, start=start, stop=stop, step=step, repeat=repeat, infer_range=infer_range,
                 name=name)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None,
             dtype: DTypeLike = None) -> Symbol:
    """``num`` evenly spaced values from ``start`` to ``stop``."""
    return _create("_linspace", None, dtype, start=start, stop=stop, num=num, endpoint=endpoint, name=name)


def eye(N: int, M: int = 0, k: int = 0, dtype: DTypeLike = None, **keywords: Any) -> Symbol:
    """A matrix with ones on the k-th diagonal and zeros elsewhere."""
    return _create("_eye", None, dtype, N=N, M=M, k=k, **keywords)


if TYPE_CHECKING:  # stubs, made from the operators
    from collections.abc import Callable

    from opreg.typing import DTypeLike, ShapeLike

    from . import contrib, image, linalg
    from . import operators as op
    from .operators import *  # noqa: F403

    _internal: Any
else:
    from .function import contrib, image, linalg, op

    _internal = op

    def __getattr__(name: str) -> Callable[..., Symbol]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("np", "npx"):
            return module_below("np.graphs" if name == "np" else name)
        value = globals()[name] = surface(name)
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *public()})


name_errors(__name__, globals(), [name for name in __all__ if name != "Custom"])  # its errors name the operator

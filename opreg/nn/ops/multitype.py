"""Functions with a body for each combination of argument types, and maps over nestings, for training scripts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ...cells import dtype as dtypes
from ...cells.parameter import Parameter
from ...cells.tensor_base import TensorBase, is_number
from ...cells.typing import TensorDType
from ...core.settings import Checked
from ...core.spec import is_floating
from ...errors import ArgumentError, did_you_mean

__all__ = ["HyperMap", "Map", "MultitypeFuncGraph", "mixed_precision_cast", "partial"]

partial = functools.partial

_F = TypeVar("_F", bound=Callable[..., Any])


def mixed_precision_cast(dst_type: TensorDType, x: Any) -> Any:
    """Floating tensors cast to a dtype, also in tuples, lists and dicts; other values are unchanged."""
    if isinstance(x, TensorBase):
        return x.astype(dst_type) if is_floating(x._dt) else x
    if isinstance(x, (tuple, list)):
        return tuple(mixed_precision_cast(dst_type, part) for part in x)
    if isinstance(x, dict):
        return {name: mixed_precision_cast(dst_type, part) for name, part in x.items()}
    return x


def _is_tensor(value: object) -> bool:
    return isinstance(value, (TensorBase, NDArray))


#: A test of a value's type.
_Test: TypeAlias = Callable[[Any], bool]

#: Tests of values by the name of a type.
_KINDS: dict[str, _Test] = {
    "Tensor": _is_tensor, "Number": is_number, "Bool": lambda value: isinstance(value, (bool, np.bool_)),
    "Int": lambda value: isinstance(value, (int, np.integer)) and not isinstance(value, bool),
    "Float": lambda value: isinstance(value, float) or (isinstance(value, np.generic) and is_floating(value.dtype)),
    "String": lambda value: isinstance(value, str), "Tuple": lambda value: isinstance(value, tuple),
    "List": lambda value: isinstance(value, list), "Dictionary": lambda value: isinstance(value, dict),
    "None": lambda value: value is None, "Function": lambda value: callable(value) and not _is_tensor(value),
    "Slice": lambda value: isinstance(value, slice), "Ellipsis": lambda value: value is Ellipsis,
    "Ref": lambda value: isinstance(value, Parameter),
    **dict.fromkeys(("COOTensor", "CSRTensor", "MapTensor", "RowTensor", "SparseTensor"), lambda value: False)}

#: Names of scalar types with a width, and the Python type and NumPy types that belong to each.
_WIDTHS = {**{f"{kind}{bits}": (kind.removeprefix("U"), f"{kind.lower()}{bits}")
              for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
           **{f"Float{bits}": ("Float", f"float{bits}") for bits in (16, 32, 64)}}
_OF_PYTHON = {int: ("int64",), float: ("float32", "float64")}


def _kind(name: str | dtypes.DType, strict: bool = True) -> _Test:
    """A test of a value, for a type's name or a dtype; unless strict, scalars of another width pass it."""
    if isinstance(name, dtypes.DType):
        return lambda value: _is_tensor(value) and value._dt == name.dtype
    if not isinstance(name, str):
        raise ArgumentError(f"For 'MultitypeFuncGraph', register only support str or a dtype, but got {name!r}")
    if name in _WIDTHS:
        kind, width = _WIDTHS[name]
        if not strict:
            return _KINDS[kind]
        return lambda value: is_number(value) and width in _OF_PYTHON.get(type(value), (str(np.asarray(value).dtype),))
    if name not in _KINDS:
        suggestion = did_you_mean(name, (*_KINDS, *_WIDTHS))
        raise ArgumentError(f"MultitypeFuncGraph: there is no type {name!r}. {suggestion}")
    return _KINDS[name]


class MultitypeFuncGraph(Checked):
    """A function with several bodies, chosen by the types of the arguments.

    Parameters
    ----------
    name : str
        Its name in errors.
    read_value
        Accepted without effect.

    Examples
    --------
    >>> from opreg import Tensor
    >>> add = MultitypeFuncGraph("add")
    >>> @add.register("Number", "Number")
    ... def add_numbers(x, y):
    ...     return x + y
    >>> @add.register("Tensor", "Tensor")
    ... def add_tensors(x, y):
    ...     return x + y * 10
    >>> add(1, 2), add(Tensor(1), Tensor(2))
    (3, Tensor(shape=[], dtype=Int64, value= 21))
    """

    def __init__(self, name: str, read_value: bool = False):
        self.name = name
        self.entries: list[tuple[tuple[str | dtypes.DType, ...], Callable]] = []
        self._kinds: list[tuple[tuple[_Test, ...], ...]] = []

    def register(self, *type_names: str | dtypes.DType) -> Callable[[_F], _F]:
        """Decorate the body for arguments of the given types.

        Parameters
        ----------
        *type_names : str or dtype
            A type for each argument: "Tensor", "Number", "Tuple" and so on; a dtype means tensors of that dtype.
            "Int64" and similar names mean scalars of that width; they also match another width that has no body.
        """
        kinds = tuple([tuple([_kind(name, strict) for name in type_names]) for strict in (True, False)])

        def deco(function: _F) -> _F:
            self.entries.append((type_names, function))
            self._kinds.append(kinds)
            return function

        return deco

    def __call__(self, *args: Any) -> Any:
        if any(isinstance(arg, np.ndarray) for arg in args):
            raise ArgumentError(f"MultitypeFuncGraph {self.name}: the input can not be numpy.ndarray; make a Tensor "
                                "of it")
        if len(self.entries) == 1:
            return self.entries[0][1](*args)
        for manner in zip(*self._kinds):  # types with an exact width come before those of any width
            for (_, function), kinds in zip(self.entries, manner):
                if len(kinds) == len(args) and all(kind(arg) for kind, arg in zip(kinds, args)):
                    return function(*args)
        overloads = "; ".join(f"({', '.join(map(str, names))})" for names, _ in self.entries)
        raise ArgumentError(f"MultitypeFuncGraph {self.name}: cannot find fn match given args "
                            f"({', '.join(type(arg).__name__ for arg in args)}); there are {overloads or 'none'}")

    def __repr__(self) -> str:
        return f"MultitypeFuncGraph[{self.name}]"


class _MapBase(Checked):
    """Base of ``Map`` and ``HyperMap``, whose function is given to the constructor or as the first argument."""

    def __init__(self, ops: Callable | None = None, reverse: bool = False):
        if ops is not None and not callable(ops):
            raise ArgumentError(f"{type(self).__name__}: expected a function or None, got {type(ops).__name__}")
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        function, trees = (self.ops, args) if self.ops is not None else (args[0], args[1:])
        if not trees:
            raise ArgumentError(f"{type(self).__name__}: there are no inputs to map over")
        return self._map_trees(function, trees)

    def _map_trees(self, function: Callable, trees: Sequence[Any]) -> Any:
        raise NotImplementedError

    def _rows(self, trees: Sequence[Any]) -> list[tuple[Any, ...]]:
        lengths = [len(tree) for tree in trees]
        if len(set(lengths)) > 1:
            raise ArgumentError(f"{type(self).__name__}: sequences of different lengths: "
                                f"{', '.join(map(str, lengths))}")
        return list(zip(*trees))


class Map(_MapBase):
    """Applies a function to the elements of sequences: ``Map(f)((a, b), (c, d))`` is ``(f(a, c), f(b, d))``.

    Examples
    --------
    >>> Map(lambda x, y: x + y)((1, 2), (3, 4)), Map()(abs, [-1, 2])
    ((4, 6), (1, 2))
    """

    def _map_trees(self, function: Callable, trees: Sequence[Any]) -> Any:
        return tuple([function(*row) for row in self._rows(trees)])


class HyperMap(_MapBase):
    """A ``Map`` that recurses into nested tuples and lists.

    Examples
    --------
    >>> HyperMap(lambda x: -x)((1, [2, 3]))
    (-1, (-2, -3))
    """

    def _map_trees(self, function: Callable, trees: Sequence[Any]) -> Any:
        if not isinstance(trees[0], (tuple, list)):
            return function(*trees)
        return tuple([self._map_trees(function, row) for row in self._rows(trees)])

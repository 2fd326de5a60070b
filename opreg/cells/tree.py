"""Trees: flattens and rebuilds nestings of tuples, lists, dicts and dataclasses with tensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..core.comparisons import PLAIN, plain_key
from .tensor_base import TensorBase

__all__ = ["flatten", "rebuild", "mapped", "without_constants", "tensors", "variables", "varies", "constants", "count",
           "names", "key_of", "LEAF", "Structure", "Mutable", "mutable"]

class Mutable:
    """An input in which functions are differentiated, although it is no tensor; see ``mutable``."""

    __slots__ = ()


class _Tuple(Mutable, tuple):
    __slots__ = ()


class _List(Mutable, list):
    __slots__ = ()


class _Dict(Mutable, dict):
    __slots__ = ()


class _Int(Mutable, int):
    __slots__ = ()


class _Float(Mutable, float):
    __slots__ = ()


T = TypeVar("T")

_MUTABLE: dict[type, type] = {tuple: _Tuple, list: _List, dict: _Dict, int: _Int, float: _Float}


def mutable(input_data: T, dynamic_len: bool = False) -> T:
    """A number, tuple, list or dict in which ``grad`` and ``GradOperation`` differentiate, too.

    A function is differentiated in the numbers, including those in containers; they are tensors without dimensions
    while it runs, and so are their gradients. Booleans have no gradient.

    Parameters
    ----------
    input_data : Tensor, bool, int, float, tuple, list or dict
        The value; tensors and booleans are returned unchanged.
    dynamic_len : bool
        Accepted for tuples and lists: a compiled function is traced for each length anyway.

    Raises
    ------
    TypeError
        For other types, also inside of a container.

    Examples
    --------
    >>> from opreg import grad
    >>> grad(lambda pair: pair[0] * pair[1])(mutable((2.0, 3.5)))
    (Tensor(shape=[], dtype=Float32, value= 3.5), Tensor(shape=[], dtype=Float32, value= 2))
    """
    if dynamic_len and not isinstance(input_data, (tuple, list)):
        raise TypeError(f"mutable: with dynamic_len the data must be a tuple or list, got {type(input_data).__name__}")
    _check_mutable(input_data)
    if isinstance(input_data, (Mutable, TensorBase, bool)):
        return input_data
    return next(kind for plain, kind in _MUTABLE.items() if isinstance(input_data, plain))(input_data)


def _check_mutable(value: object) -> None:
    if isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            _check_mutable(part)
    elif not isinstance(value, (TensorBase, bool, int, float)):
        raise TypeError("mutable: expected a Tensor, bool, int, float, or a tuple, list or dict of them, got "
                        f"{type(value).__name__}: {value!r}")


class Structure(tuple):
    """A tree without its tensors: its kind, the data of that kind, and its parts."""

    __slots__ = ()


#: Stands for a tensor in a structure.
LEAF = Structure(("tensor",))


def flatten(value: object, leaves: list[Any], is_leaf: Callable[[object], bool] | None = None) -> Structure:
    """The structure of a tree; its tensors are appended to ``leaves``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> leaves = []
    >>> flatten((Tensor(1), {"a": 2}), leaves), len(leaves)
    (('tuple', None, (('tensor',), ('dict', ('a',), (('constant', 2),)))), 1)
    """
    if isinstance(value, (TensorBase, NDArray)) or (is_leaf is not None and is_leaf(value)):
        leaves.append(value)
        return LEAF
    if isinstance(value, Mutable) and not isinstance(value, (int, float)):
        plain = next(kind for kind in _MUTABLE if isinstance(value, kind))
        return Structure(("mutable", None, (flatten(plain(value), leaves, is_leaf),)))
    if isinstance(value, tuple):
        kind = type(value) if hasattr(value, "_fields") else None
        return Structure(("tuple", kind, tuple([flatten(part, leaves, is_leaf) for part in value])))
    if isinstance(value, list):
        return Structure(("list", None, tuple([flatten(part, leaves, is_leaf) for part in value])))
    if isinstance(value, dict):
        return Structure(("dict", tuple(value), tuple([flatten(part, leaves, is_leaf) for part in value.values()])))
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        parts = [flatten(getattr(value, name), leaves, is_leaf) for name in fields]
        return Structure(("dataclass", type(value), tuple(parts)))
    return Structure(("constant", value))


def rebuild(structure: Structure, leaves: Iterator[object]) -> Any:
    """The tree of a structure with the given tensors.

    Examples
    --------
    >>> leaves = []
    >>> rebuild(flatten([1, (2,)], leaves), iter(leaves))
    [1, (2,)]
    """
    if structure is LEAF:
        return next(leaves)
    kind = structure[0]
    if kind == "constant":
        return structure[1]
    parts = [rebuild(part, leaves) for part in structure[2]]
    if kind == "mutable":
        return mutable(parts[0])
    if kind == "dataclass":
        new = object.__new__(structure[1])
        for name, part in zip(structure[1].__dataclass_fields__, parts):
            object.__setattr__(new, name, part)
        return new
    if kind == "tuple":
        return tuple(parts) if structure[1] is None else structure[1](*parts)
    return parts if kind == "list" else dict(zip(structure[1], parts))


def mapped(function: Callable[[Any], object], value: Any) -> Any:
    """The tree with each tensor replaced by the function's result.

    Examples
    --------
    >>> from opreg import Tensor
    >>> mapped(lambda x: x * 2, [1, (Tensor(2.0),)])
    [1, (Tensor(shape=[], dtype=Float32, value= 4),)]
    """
    leaves: list[Any] = []
    structure = flatten(value, leaves)
    return rebuild(structure, iter([function(leaf) for leaf in leaves]))


def without_constants(structure: Structure) -> Structure:
    """The plain structure with None in the places of values that are no tensors, in which gradients are nested.

    Examples
    --------
    >>> without_constants(flatten({"a": 2}, []))
    ('dict', ('a',), (('constant', None),))
    """
    if structure is LEAF:
        return LEAF
    if structure[0] == "constant":
        return Structure(("constant", None))
    if structure[0] == "mutable":
        return without_constants(structure[2][0])
    return Structure((structure[0], structure[1], tuple(map(without_constants, structure[2]))))


def tensors(value: object) -> list[Any]:
    """The tensors of a tree in order."""
    leaves: list[Any] = []
    flatten(value, leaves)
    return leaves


def variables(value: object, leaves: list[Any]) -> Structure:
    """The structure of a differentiated input; tensors and arrays are appended to ``leaves``, and numbers if it is
    mutable.

    Examples
    --------
    >>> leaves = []
    >>> variables(mutable([1, True]), leaves), leaves
    (('mutable', None, (('list', None, (('tensor',), ('constant', True))),)), [1])
    """
    return flatten(value, leaves, _is_number_or_array if isinstance(value, Mutable) else _is_array)


def varies(value: object) -> bool:
    """Whether an input contains a value in which it can be differentiated."""
    leaves: list[Any] = []
    variables(value, leaves)
    return bool(leaves)


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _is_number_or_array(value: object) -> bool:
    return isinstance(value, (np.ndarray, int, float)) and not isinstance(value, bool)


def constants(value: object) -> list[object]:
    """The leaves of a tree that are no tensors, in order."""
    values: list[object] = []

    def collect(structure: Structure) -> None:
        if structure is not LEAF:
            if structure[0] == "constant":
                values.append(structure[1])
            else:
                for part in structure[2]:
                    collect(part)

    collect(flatten(value, []))
    return values


def count(structure: Structure) -> int:
    """Number of tensors of a tree of that structure."""
    if structure is LEAF:
        return 1
    return 0 if structure[0] == "constant" else sum(map(count, structure[2]))


def names(words: Sequence[str], parts: Sequence[Structure]) -> list[str]:
    """Names of the tensors in arguments of these structures, made from the arguments' names.

    Examples
    --------
    >>> names(["x", "rest"], [LEAF, LEAF, LEAF, Structure(("tuple", None, (LEAF, LEAF)))])
    ['x', 'rest', 'rest2', 'rest_0', 'rest_1']
    """
    result: list[str] = []
    for i, part in enumerate(parts):
        word = words[min(i, len(words) - 1)] if words else f"input{i}"
        if part is LEAF:
            result.append(word if word not in result else f"{word}{i}")
        else:
            result += [f"{word}_{j}" for j in range(count(part))]
    return result


def key_of(structure: Structure) -> Hashable:
    """A key of a structure; equal keys mean equal structures. Arrays and objects count by identity."""
    if structure is LEAF:
        return LEAF
    if structure[0] != "constant":
        return structure[0], structure[1], tuple(map(key_of, structure[2]))
    return _key(structure[1])


def _key(constant: Any) -> Hashable:
    if isinstance(constant, slice):
        return slice, *map(_key, (constant.start, constant.stop, constant.step))
    if isinstance(constant, range):
        return range, repr(constant)
    return plain_key(constant) if isinstance(constant, PLAIN) else (type(constant), id(constant))

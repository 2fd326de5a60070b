"""Trees: flattens and rebuilds nestings of tuples, lists, dicts and dataclasses with tensors."""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..core.held_values import PLAIN, plain_key
from ..core.named_errors import name_errors
from ..errors import ArgumentError
from .class_hooks import attributes_of
from .tensor_base import TensorBase

__all__ = ["flatten", "rebuild", "map_tensors", "without_constants", "tensors", "variables", "varies", "constants",
           "count", "names", "key_of", "with_class", "LEAF", "Structure", "Mutable", "is_variable", "mutable"]

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
    while it runs, and so are their gradients. Booleans have no gradient. Compiled functions take mutable numbers as
    tensors, too, so that a new number needs no new trace.

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
        raise ArgumentError("mutable: with dynamic_len the data must be a tuple or list, got "
                            f"{type(input_data).__name__}")
    _check_mutable(input_data)
    if isinstance(input_data, (Mutable, TensorBase, bool)):
        return input_data
    return next(kind for plain, kind in _MUTABLE.items() if isinstance(input_data, plain))(input_data)


def _check_mutable(value: object) -> None:
    if isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            _check_mutable(part)
    elif not isinstance(value, (TensorBase, bool, int, float)):
        raise ArgumentError("mutable: expected a Tensor, bool, int, float, or a tuple, list or dict of them, got "
                            f"{type(value).__name__}: {value!r}")


class Structure(tuple):
    """A tree without its tensors: its kind, the data of that kind, and its parts.

    A container of another class than tuple, list and dict, or with attributes, has a fourth element: the class, and
    the names of its attributes, whose values are the last parts.
    """

    __slots__ = ()

    @property
    def members(self) -> tuple[Structure, ...]:
        """The parts without attributes."""
        parts: tuple[Structure, ...] = self[2]
        return parts if len(self) == 3 else parts[:len(parts) - len(self[3][1])]


_PLAIN = (tuple, list, dict)

#: Stands for a tensor in a structure.
LEAF = Structure(("tensor",))


def flatten(value: Any, leaves: list[Any], is_leaf: Callable[[object], bool] | None = None) -> Structure:
    """The structure of a tree; its tensors are appended to ``leaves``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> leaves = []
    >>> flatten((Tensor(1), {"a": 2}), leaves), len(leaves)
    (('tuple', None, (('tensor',), ('dict', ('a',), (('constant', 2),)))), 1)
    """
    cls = type(value)  # objects may answer anything as their __class__, or raise an error
    if issubclass(cls, (TensorBase, NDArray)) or (is_leaf is not None and is_leaf(value)):
        leaves.append(value)
        return LEAF
    if issubclass(cls, Mutable) and not issubclass(cls, (int, float)):
        plain = next(kind for kind in _MUTABLE if issubclass(cls, kind))
        inside = _is_number_or_array if is_leaf is is_variable else is_leaf
        return Structure(("mutable", None, (flatten(plain(value), leaves, inside),)))
    kind: str
    data: Any
    if issubclass(cls, tuple):
        kind, data = "tuple", cls if hasattr(value, "_fields") else None
        parts = [flatten(part, leaves, is_leaf) for part in tuple.__iter__(value)]
    elif issubclass(cls, list):
        kind, data = "list", None
        parts = [flatten(part, leaves, is_leaf) for part in list.__iter__(value)]
    elif issubclass(cls, dict):
        kind, data = "dict", tuple(value)
        parts = [flatten(part, leaves, is_leaf) for part in value.values()]
    else:
        fields = getattr(cls, "__dataclass_fields__", None)
        if fields is None:
            return Structure(("constant", value))
        kind, data = "dataclass", cls
        parts = [flatten(getattr(value, name), leaves, is_leaf) for name in fields]
    if cls in _PLAIN:
        return Structure((kind, data, tuple(parts)))
    further = _other_attributes(value, cls, data.__dataclass_fields__ if kind == "dataclass" else ())
    if cls is data and not further:
        return Structure((kind, data, tuple(parts)))
    for attribute in further.values():
        parts.append(flatten(attribute, leaves, is_leaf) if isinstance(attribute, (TensorBase, NDArray)) else
                     Structure(("constant", attribute)))
    return Structure((kind, data, tuple(parts), (cls, tuple(further))))


def _other_attributes(value: object, cls: type, fields: Collection[str]) -> dict[str, Any]:
    """Attributes of a container beside its elements and fields, by name."""
    further = {name: attribute for name, attribute in attributes_of(value, {}).items() if name not in fields}
    if issubclass(cls, collections.defaultdict):
        further["default_factory"] = value.default_factory  # type: ignore[attr-defined]  # a subclass
    return further


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
    parts = [next(leaves) if part is LEAF else rebuild(part, leaves) for part in structure[2]]
    if len(structure) > 3:
        return _rebuild_class(structure, parts)
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


def with_class(value: Any) -> Iterator[Any]:
    """The containers in a tree that have a class of their own."""
    cls = type(value)
    fields: Any = getattr(cls, "__dataclass_fields__", None)
    if issubclass(cls, _PLAIN) or fields is not None:
        if cls not in _PLAIN:
            yield value
        parts = value.values() if issubclass(cls, dict) else value if issubclass(cls, _PLAIN) else [
            getattr(value, name) for name in fields]
        for part in parts:
            yield from with_class(part)


def _rebuild_class(structure: Structure, parts: list[Any]) -> Any:
    """A container of a class of its own, with its attributes; no code of the class runs."""
    kind, data, _, (cls, names) = structure
    count = len(parts) - len(names)
    if kind == "tuple":
        new = tuple.__new__(cls, parts[:count])
    elif kind == "dataclass":
        new = object.__new__(cls)
        names = (*cls.__dataclass_fields__, *names)
        count = 0
    else:
        new = cls.__new__(cls)
        if kind == "list":
            list.extend(new, parts[:count])
        else:
            ordered = issubclass(cls, collections.OrderedDict)
            store = collections.OrderedDict.__setitem__ if ordered else dict.__setitem__
            for key, part in zip(data, parts):
                store(new, key, part)
    for name, part in zip(names, parts[count:]):
        object.__setattr__(new, name, part)
    return new


def map_tensors(function: Callable[[Any], object], value: Any) -> Any:
    """The tree with each tensor replaced by the function's result.

    Examples
    --------
    >>> from opreg import Tensor
    >>> map_tensors(lambda x: x * 2, [1, (Tensor(2.0),)])
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
    return Structure((*structure[:2], tuple(map(without_constants, structure[2])), *structure[3:]))


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


def is_variable(value: object) -> bool:
    """Whether an argument of a compiled function is taken as a tensor, although it is none: a NumPy array, or a mutable
    number.

    Examples
    --------
    >>> is_variable(mutable(2.0)), is_variable(2.0)
    (True, False)
    """
    return issubclass(type(value), (np.ndarray, _Int, _Float))


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _is_number_or_array(value: object) -> bool:
    return isinstance(value, (np.ndarray, int, float)) and not isinstance(value, bool)


def constants(value: object) -> list[object]:
    """The leaves of a tree that are no tensors, in order."""
    return list(constants_of(flatten(value, [])))


def constants_of(structure: Structure) -> Iterator[Any]:
    """The constants in a structure, in order.

    Examples
    --------
    >>> list(constants_of(flatten((1, [2, {"a": 3}]), [])))
    [1, 2, 3]
    """
    if structure is LEAF:
        return
    if structure[0] == "constant":
        yield structure[1]
    else:
        for part in structure[2]:
            yield from constants_of(part)


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
        return *structure[:2], tuple(map(key_of, structure[2])), *structure[3:]
    return _key(structure[1])


def _key(constant: Any) -> Hashable:
    cls = type(constant)
    if cls is slice:
        return slice, *map(_key, (constant.start, constant.stop, constant.step))
    if cls is range:
        return range, repr(constant)
    return plain_key(constant) if issubclass(cls, PLAIN) else (cls, id(constant))


name_errors(__name__, globals(), ["mutable"])

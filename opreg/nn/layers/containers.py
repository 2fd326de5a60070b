"""Containers: Cells in a list, in a row, or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import islice
from typing import Any, Self, TypeAlias, overload

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...errors import ArgumentError, SubscriptError, WrongNameError, did_you_mean

__all__ = ["CellList", "SequentialCell", "CellDict"]

#: Cells by name, as a caller gives them.
NamedCells: TypeAlias = "CellDict | Mapping[str, Cell] | Iterable[tuple[str, Cell]]"


class _Children(Cell):
    """Base of the three containers, whose Cells can be added, removed and renamed."""

    def _check_cell(self, cell: object) -> Cell:
        if not isinstance(cell, Cell):
            raise ArgumentError(f"For '{type(self).__name__}', each cell must be a Cell, got {type(cell).__name__}")
        return cell

    def _replace(self, named: Iterable[tuple[str, object]]) -> None:
        """Set the Cells of the container; their parameters are named after their places."""
        cells = [(name, self._check_cell(cell)) for name, cell in named]
        before, prefix = dict(self._cells), _prefix(self._cells)
        for name in self._cells:
            self.__dict__.pop(name, None)
        self._cells.clear()
        names = {id(parameter): parameter.mindspore_name for cell in before.values()
                 for parameter in cell.get_parameters()}
        for name, cell in cells:
            self._put_cell(name, cell)
            if before.get(name) is not cell:
                names.update((id(parameter), f"{prefix}{name}.{path}")
                             for path, parameter in cell.parameters_and_names())
        if self._auto_prefix:
            for path, parameter in self.parameters_and_names(self.param_prefix):
                parameter.name, parameter._mindspore_name = path, names[id(parameter)]
        self._touch()

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, cell: object) -> bool:
        return any(child is cell for child in self._cells.values())


def _prefix(cells: Mapping[str, Cell]) -> str:
    """The prefix that MindSpore puts before the names of an added Cell's parameters, found from the Cells already
    there.

    It compares the names of the first parameters of two Cells, and uses the last position where they contain the Cells'
    own names.
    """
    named = [(name, parameter.mindspore_name.split(".")) for name, cell in cells.items()
             for parameter in islice(cell.get_parameters(), 1)][:2]
    prefix: list[str] = []
    for place in range(len(named[0][1]) if named else 0):
        matches = [words[place:place + 1] == [name] for name, words in named]
        if matches[0]:
            prefix = named[0][1][:place]
            if matches[1:] == [True]:
                break
    return "".join(f"{word}." for word in prefix)


class _Row(_Children):
    """Base of containers whose Cells are numbered."""

    def __bool__(self) -> bool:
        return bool(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def _index(self, index: int, last: int = 0) -> int:
        """An index from the front; ``last`` is 1 if the index after the end is valid, too."""
        who, count = type(self).__name__, len(self._cells)
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise ArgumentError(f"For '{who}', the index must be an int or a slice, got {type(index).__name__}")
        index = operator.index(index)  # reads the value of a tensor
        if not -count <= index < count + last:
            raise SubscriptError(f"For '{who}', the index must be in range [{-count}, {count}{']' if last else ')'}, "
                                 f"got {index}")
        return index + count if index < 0 else index

    def _hold_named(self, named: Iterable[tuple[str, object]]) -> None:
        """Set the Cells; names that are numbers are renumbered."""
        self._replace((str(i) if name.isdigit() else name, cell) for i, (name, cell) in enumerate(named))

    def _part(self, index: slice) -> Self:
        """Some of the Cells, which stay children of this container and keep their parameters' names."""
        part = type(self)()
        for name, cell in list(self._cells.items())[index]:
            part._cells[name] = part.__dict__[name] = cell
        return part

    @overload
    def __getitem__(self, index: int) -> Cell: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Cell | Self:
        if isinstance(index, slice):
            return self._part(index)
        return list(self._cells.values())[self._index(index)]

    def __setitem__(self, index: int, cell: Cell) -> None:
        named, place = list(self._cells.items()), self._index(index)
        named[place] = (named[place][0], cell)
        self._replace(named)

    def __delitem__(self, index: int | slice) -> None:
        named = list(self._cells.items())
        del named[index if isinstance(index, slice) else self._index(index)]
        self._hold_named(named)

    def append(self, cell: Cell) -> Self:
        """Append a Cell; returns this container."""
        self._hold_named([*self._cells.items(), ("0", cell)])
        return self

    def insert(self, index: int, cell: Cell) -> None:
        """Insert a Cell at an index; the later ones are renumbered."""
        named = list(self._cells.items())
        named.insert(self._index(index, 1), ("0", cell))
        self._hold_named(named)


class CellList(_Row):
    """Cells in a list; their parameters are named ``0.weight``, ``1.weight`` and so on.

    Parameters
    ----------
    *cells : Cells, or one list of them
    auto_prefix : bool
        See ``Cell``.

    Examples
    --------
    >>> from opreg.nn.layers import Flatten, Identity
    >>> blocks = CellList([Flatten()])
    >>> len(blocks.append(Identity())), blocks[-1]
    (2, Identity())
    """

    def __init__(self, *cells: Cell | Iterable[Cell], auto_prefix: bool = True):
        super().__init__(auto_prefix)
        if len(cells) == 1 and (isinstance(cells[0], _Row) or not isinstance(cells[0], Cell)):
            self.extend(cells[0])
        else:
            self._hold_named(("0", cell) for cell in cells)

    def extend(self, cells: Iterable[Cell]) -> Self:
        """Append several Cells; returns this container."""
        if isinstance(cells, Mapping) or not isinstance(cells, Iterable):
            raise ArgumentError(f"For '{type(self).__name__}', expected Cells or a list of them, got "
                                f"{type(cells).__name__}")
        self._hold_named([*self._cells.items(), *(("0", cell) for cell in cells)])
        return self

    __iadd__ = extend

    def construct(self, *inputs: Any) -> Any:
        """Not available: a list does not define the order in which its Cells run."""
        raise NotImplementedError("A CellList is not called itself: call its Cells, or use a SequentialCell")


class SequentialCell(_Row):
    """Cells that run in a row, each on the output of the one before; without Cells, the identity.

    Parameters
    ----------
    *cells : Cells, one list of them, or one OrderedDict, whose keys become names

    Examples
    --------
    >>> from opreg.nn.layers import Flatten, ReLU
    >>> SequentialCell(Flatten(), ReLU())
    SequentialCell(
      (0): Flatten()
      (1): ReLU()
    )
    """

    def __init__(self, *cells: Cell | list[Cell] | OrderedDict[str, Cell]):
        super().__init__()
        first = cells[0] if len(cells) == 1 else None
        if isinstance(first, OrderedDict):
            self._replace(first.items())
            return
        if len(cells) == 1 and not isinstance(first, (Cell, list)):
            raise ArgumentError(f"For '{type(self).__name__}', expected Cells, a list of them or an OrderedDict, got "
                                f"{type(first).__name__}")
        self._hold_named(("0", cell) for cell in (first if isinstance(first, list) else cells))

    def construct(self, input_data: Tensor) -> Tensor:
        """The output of the last Cell."""
        for cell in self._cells.values():
            input_data = cell(input_data)
        return input_data


class CellDict(_Children):
    """Cells by name, as in a dict.

    Parameters
    ----------
    cells : dict of str to Cell, or pairs

    Examples
    --------
    >>> from opreg.nn.layers import ReLU, Tanh
    >>> choices = CellDict({"relu": ReLU(), "tanh": Tanh()})
    >>> choices["tanh"], list(choices.keys()), "gelu" in choices
    (Tanh(), ['relu', 'tanh'], False)
    """

    def __init__(self, cells: NamedCells | None = None, auto_prefix: bool = True):
        super().__init__(auto_prefix)
        if cells is not None:
            self.update(cells)

    def _check_entry(self, name: str, cell: Cell) -> tuple[str, Cell]:
        if not isinstance(name, str):
            raise ArgumentError(f"For 'CellDict', a key must be text, got {type(name).__name__}")
        if not name or "." in name:
            raise WrongNameError(f"For 'CellDict', the key {name!r} is empty or has a dot")
        if name not in self._cells and hasattr(self, name):
            raise WrongNameError(f"For 'CellDict', the key {name!r} is an attribute of every Cell")
        if isinstance(cell, _Children):
            raise ArgumentError(f"For 'CellDict', the value of {name!r} can not be a {type(cell).__name__}")
        return name, self._check_cell(cell)

    def __getitem__(self, name: str) -> Cell:
        if name not in self._cells:
            raise WrongNameError(f"For 'CellDict', there is no Cell {name!r}. {did_you_mean(str(name), self._cells)}")
        return self._cells[name]

    def __setitem__(self, name: str, cell: Cell) -> None:
        self.update([(name, cell)])

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __contains__(self, name: object) -> bool:
        return name in self._cells

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._cells.keys()

    def values(self) -> ValuesView[Cell]:
        """The Cells."""
        return self._cells.values()

    def items(self) -> ItemsView[str, Cell]:
        """Names with Cells."""
        return self._cells.items()

    def pop(self, key: str) -> Cell:
        """Remove a Cell; returns it."""
        cell = self[key]
        self._replace((name, child) for name, child in list(self._cells.items()) if name != key)
        return cell

    def clear(self) -> None:
        """Remove all Cells."""
        self._replace(())

    def update(self, cells: NamedCells) -> None:
        """Add Cells, or replace those with the same names.

        Parameters
        ----------
        cells : CellDict, dict or list of pairs
        """
        if isinstance(cells, (Mapping, CellDict)):
            cells = list(cells.items())
        if not isinstance(cells, Iterable):
            raise ArgumentError(f"For 'CellDict', expected a dict or pairs, got {type(cells).__name__}")
        named = dict(self._cells)
        for i, pair in enumerate(cells):
            if not isinstance(pair, (tuple, list)):
                raise ArgumentError(f"For 'CellDict', expected a pair at {i}, got {type(pair).__name__}")
            if len(pair) != 2:
                raise ArgumentError(f"For 'CellDict', expected a pair at {i}, got {len(pair)} things")
            named.update([self._check_entry(*pair)])
        self._replace(named.items())

    def construct(self, *inputs: Any) -> Any:
        """Not available: a dict does not define the order in which its Cells run."""
        raise NotImplementedError("A CellDict is not called itself: call its Cells")

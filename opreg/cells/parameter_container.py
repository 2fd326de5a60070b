"""ParameterContainer: the parameters, children and buffers of a Cell, registered by assigning them to attributes."""

from __future__ import annotations

import copy
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..core.cache import cached
from ..core.other_names import CELLS
from ..core.reports import report
from ..core.spec import is_floating
from ..errors import ArgumentError, did_you_mean, warn
from .buffers import Buffer, BufferContainer
from .cast_parameter import cast_parameter
from .context_settings import EPOCH
from .handles import Hooks
from .parameter import Parameter, ParameterTuple, is_prefix
from .reads import TABLES, attribute
from .state import STATE
from .tables import Table
from .tensor import Tensor, has_values
from .tensor_base import TensorBase
from .tree import tensors

if TYPE_CHECKING:
    from .cell import Cell
    from .trace import FunctionTracer

__all__ = ["NameTakenError", "ParameterContainer"]

#: Classes of attributes that ``==`` compares completely.
_PLAIN = frozenset({bool, int, str, type(None)})
_NESTED = (list, tuple, dict)


class NameTakenError(TypeError, KeyError):
    """A name is used by an object of another kind; programs catch a TypeError or a KeyError."""


class ParameterContainer(BufferContainer):
    """Parameters, children and buffers by attribute, with paths and names.

    Parameters
    ----------
    auto_prefix : bool
        Whether parameters of children are named after the attributes that lead to them.
    """

    _params: OrderedDict[str, Parameter | None]
    _cells: OrderedDict[str, Any]  # Cells by name; None for a removed one
    _buffers: OrderedDict[str, Tensor | None]
    _hooks: dict[str, Hooks]
    _other_names: Mapping[str, str] = CELLS

    def __init__(self, auto_prefix: bool = True):
        self.__dict__.update(_params=Table(self), _cells=Table(self), _buffers=Table(self), _transient=set(),
                             _version=0, _auto_prefix=auto_prefix, _name=None, _parent=None, _cast=None, _cast_out=None,
                             _running=0, _checked_names=False, _groups={})

    def _touch(self) -> None:
        """Note a change that invalidates compiled functions."""
        self.__dict__["_version"] = self._version + 1
        EPOCH[0] += 1

    def _edited(self, name: str, before: object, now: object) -> None:
        """Update the attribute of a name after an entry of a table was edited."""
        attributes = self.__dict__
        if before is not None and attributes.get(name) is before:
            attributes[name] = now
            if not any(name in attributes[table] for table in TABLES):
                del attributes[name]
        self._touch()

    # --------------------------------------------------------------------------------------------- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if "_params" not in own:
            self._set_early(name, value)
            return
        if STATE.trace is not None:
            self._set_in_trace(STATE.trace, name, value)
        if value.__class__ in _PLAIN and name in own and own[name].__class__ is value.__class__ and own[name] == value:
            return  # nothing changes, so compiled functions stay valid
        own["_version"] += 1
        EPOCH[0] += 1
        if isinstance(value, Parameter):
            self._put_parameter(name, value)
        elif isinstance(value, ParameterContainer):
            self._put_cell(name, value)
        elif isinstance(value, Buffer):
            self.register_buffer(name, value.data, value.persistent)
        elif name in own["_params"]:
            self._over_parameter(name, value)
        elif name in own["_cells"]:
            if value is not None:
                raise ArgumentError(f"{self.path}: Sub cell {name!r} already exists, can not assign this type "
                                    f"{type(value).__name__}; only a Cell or None")
            own["_cells"][name] = None
            own[name] = None
        elif name in own["_buffers"]:
            if value is not None and not has_values(value):
                raise ArgumentError(f"{self.path}: Buffer {name!r} already exists in network, can not assign this type "
                                    f"{type(value).__name__}; only a Tensor or None")
            own["_buffers"][name] = value
        elif isinstance(value, ParameterTuple):
            self._put_tuple(value)
            self._put_group(name, value)
        elif _is_group(value):
            _check_names(self, value)
            self._put_group(name, value)
        else:
            own["_groups"].pop(name, None)
            object.__setattr__(self, name, value)

    def _set_early(self, name: str, value: object) -> None:
        """Set an attribute before ``__init__`` has run, when there is no registry yet."""
        if isinstance(value, (Parameter, ParameterTuple, ParameterContainer, Buffer)):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '_auto_prefix': please call "
                                 f"Cell.__init__() firstly, as in super().__init__(), before {name!r} is set to a "
                                 f"{type(value).__name__}")
        object.__setattr__(self, name, value)

    def _set_in_trace(self, trace: FunctionTracer, name: str, value: object) -> None:
        """Note that a trace sets an attribute; values of the trace cannot be stored there."""
        trace.reads.change(self, name)
        leaves = [value] if isinstance(value, TensorBase) else tensors(value) if isinstance(value, _NESTED) else []
        if name not in self.__dict__["_params"] and not all(isinstance(leaf, NDArray) for leaf in leaves):
            trace.leave(f"it keeps a value on {self.path}.{name}, which is no Parameter")

    def _put_parameter(self, name: str, value: Parameter) -> None:
        attributes = self.__dict__
        if name in self._cells:
            raise NameTakenError(f"{self.path}: {name!r} is a sub cell already, it can not become a Parameter")
        if not value.has_name:
            value.name = name
        before = attributes["_params"].get(name)
        if before is not None and before._hooks and not value._hooks:  # hooks belong to the attribute's name
            value._hooks = before._hooks
        attributes["_params"][name] = value
        if attributes["_cast"] is None:
            attributes[name] = value
        attributes["_checked_names"] = False

    def _put_cell(self, name: str, value: ParameterContainer) -> None:
        attributes = self.__dict__
        if "_params" not in value.__dict__:
            raise AttributeError(f"'{type(value).__name__}' object has no attribute '_auto_prefix': please call "
                                 f"Cell.__init__() firstly, before it becomes {name!r} of {type(self).__name__}")
        if name in attributes["_params"]:
            raise NameTakenError(f"{self.path}: {name!r} is a Parameter already, it can not become a sub cell")
        attributes["_cells"][name] = value
        attributes[name] = value
        value._adopt(self, name)
        if attributes["_auto_prefix"]:
            value.update_parameters_name(name + ".", recurse=True, _from_paths=True)
        attributes["_checked_names"] = False

    def _over_parameter(self, name: str, value: object) -> None:
        parameter = self._params[name]
        if value is None:
            self._params[name] = None
            self.__dict__[name] = None
        elif isinstance(value, TensorBase) and parameter is not None:
            parameter.set_data(value)
        else:
            raise ArgumentError(f"{self.path}: Parameter {name!r} already exists in network, can not assign this type "
                                f"{type(value).__name__}; only a Parameter, a Tensor or None")

    def _put_tuple(self, members: ParameterTuple) -> None:
        _check_names(self, members)
        for i, member in enumerate(members):
            if not member.has_name:
                member.name = f"Parameter${i + 1}"
            self._params[member.name] = member
        self.__dict__["_checked_names"] = False

    def _put_group(self, name: str, members: Sequence[Parameter]) -> None:
        """Keep several Parameters under one attribute, which ``__getattr__`` has to find if it casts them."""
        own = self.__dict__
        if own["_cast"] is None:
            object.__setattr__(self, name, members)
        else:
            own.pop(name, None)
            own["_groups"][name] = members

    def _set_cast(self, dtype: np.dtype) -> None:
        """Cast the Parameters that attributes hold while this Cell runs: ``__getattr__`` finds them from now on."""
        own = self.__dict__
        own["_cast"] = dtype
        own["_groups"].update({name: value for name, value in own.items() if _is_group(value)})
        for name in (*own["_params"], *own["_groups"]):
            own.pop(name, None)
        self._touch()

    def _value_in_run(self, parameter: Parameter) -> Tensor:
        """A Parameter as the running Cell reads it: cast if ``to_float`` asks for it."""
        cast = self.__dict__["_cast"]
        return cast_parameter(parameter, cast) if cast is not None and self._running and is_floating(parameter._dt) \
            else parameter

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_params" not in own:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}: please call "
                                 "Cell.__init__() firstly, as in super().__init__()")
        if STATE.trace is not None:
            STATE.trace.reads.attribute(self, name, attribute(self, name))
        if name in own["_params"]:
            value = own["_params"][name]
            return None if value is None else self._value_in_run(value)
        if name in own["_groups"]:
            members = own["_groups"][name]
            return (list if isinstance(members, list) else tuple)(map(self._value_in_run, members)) if own["_running"] \
                else members
        if name in own["_buffers"]:
            return own["_buffers"][name]
        if name in own["_cells"]:
            return own["_cells"][name]
        words = self._other_names.get(name)
        if words:
            words = f": {words}"
        else:
            others = *[key for key in own if key[0] != "_"], *_attributes_of_class(type(self))
            words = f". {did_you_mean(name, [*own['_params'], *own['_cells']], unlisted=others)}"
        raise AttributeError(f"The '{type(self).__name__}' object has no attribute '{name}'{words}")

    def __delattr__(self, name: str) -> None:
        attributes = self.__dict__
        if STATE.trace is not None:
            STATE.trace.reads.change(self, name)
        was_registered = False
        for group in (self._params, self._cells, self._buffers, attributes["_groups"]):
            if name in group:
                del group[name]
                was_registered = True
        if name in attributes:
            object.__delattr__(self, name)
        elif not was_registered:
            raise AttributeError(f"The '{type(self).__name__}' object has no attribute '{name}'.")
        self._touch()

    def _adopt(self, parent: ParameterContainer, name: str) -> None:
        self.__dict__["_parent"], self.__dict__["_name"] = weakref.ref(parent), name

    @property
    def path(self) -> str:
        """Path of the container in its tree: ``Net.block.relu``."""
        attributes = self.__dict__
        parent = attributes["_parent"]() if attributes.get("_parent") is not None else None
        if parent is None or attributes["_name"] is None:
            return type(self).__name__
        return f"{parent.path}.{attributes['_name']}"

    # ----------------------------------------------------------------------------------------- parameters

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their paths, each once: first its own, then those of its children.

        Parameters
        ----------
        name_prefix : str
            Prefix of the paths.
        expand : bool
            Whether the parameters of children are included.
        """
        visited: set[int] = set()
        cells = self.cells_and_names(name_prefix) if expand else [(name_prefix, self)]
        for prefix, cell in cells:
            for name, parameter in cell._params.items():
                if parameter is not None and id(parameter) not in visited:
                    visited.add(id(parameter))
                    yield (f"{prefix}.{name}" if prefix else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Parameters that are trained."""
        return [parameter for parameter in self.get_parameters(recurse) if parameter.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Parameters that are not trained."""
        return [parameter for parameter in self.get_parameters(recurse) if not parameter.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Parameters by name."""
        return OrderedDict((parameter.name, parameter) for parameter in self.get_parameters(recurse))

    def parameters_broadcast_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter] | None:
        """All parameters by name; None if there are none."""
        return self.parameters_dict(recurse) or None

    def update_parameters_name(self, prefix: str = "", recurse: bool = True, _from_paths: bool = False) -> None:
        """Put a prefix before the names of all parameters."""
        if not (_from_paths or prefix == "" or is_prefix(prefix)):
            raise ArgumentError(f"{self.path}: the prefix {prefix!r} may only have letters, digits, dots and "
                                "underscores")
        for path, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + (path if _from_paths else parameter.name)

    def check_names(self, refuse: bool = False) -> None:
        """Rename parameters by their paths where two different ones have the same name, or refuse that."""
        by_name: dict[str, str] = {}
        for path, parameter in self.parameters_and_names():
            first_path = by_name.setdefault(parameter.name, path)
            if first_path != path:
                if refuse:
                    raise ArgumentError(f"The value of {path} is {parameter}, its name {parameter.name!r} already "
                                        "exists: give each parameter a different name, or none")
                # both parameters are in one Cell, where only the user can have given them one name
                if first_path.rpartition(".")[0] == path.rpartition(".")[0]:
                    warn(f"{self.path}: {first_path} and {path} are both named {parameter.name!r}, so all its "
                         f"parameters are named by their paths from now on: give each a different name, or none")
                for own_path, renamed in self.parameters_and_names():
                    renamed.name = own_path
                break
        self.__dict__["_checked_names"] = True

    def insert_param_to_cell(self, param_name: str, param: Parameter, check_name_contain_dot: bool = True) -> None:
        """Add a parameter under a name."""
        self._check_name("parameter", param_name, self._params, not check_name_contain_dot)
        if not isinstance(param, Parameter):
            raise ArgumentError(f"{self.path}: {param_name!r} must be a Parameter, got {type(param).__name__}")
        self._put_parameter(param_name, param)
        self._touch()

    # ----------------------------------------------------------------------------------------- children

    def cells(self) -> ValuesView[Cell]:
        """The child Cells, each once."""
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """The child Cells by name, each once."""
        children: OrderedDict[str, Cell] = OrderedDict()
        visited: set[int] = set()
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in visited:
                visited.add(id(cell))
                children[name] = cell
        return children

    def cells_and_names(self, name_prefix: str = "", cells: set[int] | None = None) -> Iterator[tuple[str, Cell]]:
        """All Cells of the tree with their paths, itself first, each once."""
        visited = set() if cells is None else cells
        if id(self) in visited:
            return
        visited.add(id(self))
        yield name_prefix, self  # type: ignore[misc]  # every container is a Cell
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(f"{name_prefix}.{name}" if name_prefix else name, visited)

    def get_sub_cell(self, target: str) -> Cell:
        """The Cell at a path of attributes, such as ``block.conv``; for an empty path this Cell."""
        cell: Any = self
        for name in target.split(".") if target else ():
            if cell._cells.get(name) is None:
                raise AttributeError(f"{cell.path} has no attribute {name!r} that is a Cell. "
                                     f"{did_you_mean(name, cell._cells)}")
            cell = cell._cells[name]
        return cell

    def insert_child_to_cell(self, child_name: str, child_cell: Cell | None) -> None:
        """Add a child under a name; its parameters keep their names."""
        self._check_name("sub cell", child_name, self._cells)
        if child_cell is not None and not isinstance(child_cell, ParameterContainer):
            raise ArgumentError(f"{self.path}: {child_name!r} must be a Cell, got {type(child_cell).__name__}")
        self._cells[child_name] = child_cell
        self.__dict__[child_name] = child_cell
        if child_cell is not None:
            child_cell._adopt(self, child_name)
        self._touch()

    def apply(self, fn: Callable[[Cell], object]) -> Self:
        """Call a function with every Cell of the tree, children first; returns this Cell."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)  # type: ignore[arg-type]  # every container is a Cell
        return self

    # ------------------------------------------------------------------------------------------ copies, text

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        attributes = new.__dict__
        for name, value in self.__dict__.items():
            if name in ("_parent", "_jitted"):
                attributes[name] = None
            elif name == "_hooks":
                attributes[name] = {kind: Hooks(registered) for kind, registered in value.items()}
            else:
                attributes[name] = copy.deepcopy(value, memo)
        new._own_tables()
        for name, child in new._cells.items():
            if child is not None:
                child._adopt(new, name)
        return new

    def _own_tables(self) -> None:
        """Replace the tables that a copied Cell shares with its original by copies."""
        for name in TABLES:
            self.__dict__[name] = Table(self, self.__dict__[name])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parent": None, "_jitted": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._own_tables()
        for name, child in self._cells.items():
            if child is not None:
                child._adopt(self, name)

    def extend_repr(self) -> str:
        """The text inside the brackets of the repr, such as ``in_channels=3``."""
        return ""

    def __repr__(self) -> str:
        extra = self.extend_repr()
        children = [f"({report([name])}): {_indent(repr(cell))}" for name, cell in self._cells.items()
                    if cell is not None]
        if not children and "\n" not in extra:
            return f"{type(self).__name__}({extra})"
        lines = ([extra] if extra else []) + children
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return id(self)


@cached(64)  # hasattr asks for the same missing names repeatedly
def _attributes_of_class(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def _is_group(value: object) -> bool:
    """Whether a value is a list or tuple of Parameters, and of nothing else."""
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(
        isinstance(member, Parameter) for member in value)


def _check_names(cell: ParameterContainer, members: Sequence[Parameter]) -> None:
    by_name: dict[str, Parameter] = {}
    for member in members:
        if member.has_name and by_name.setdefault(member.name, member) is not member:
            raise ArgumentError(f"{cell.path}: two different Parameters are named {member.name!r}")

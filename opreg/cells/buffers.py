"""Buffers: tensors of a Cell that are state but no parameters, and ``state_dict``, all state of a Cell."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, MutableMapping
from typing import Any, NamedTuple

from opreg.ndarray.ndarray import NDArray

from ..core.settings import Checked
from ..core.spec import show
from ..errors import ArgumentError, WrongNameError, did_you_mean
from .handles import Hook, HookHandle, Hooks
from .tensor import Tensor, has_values

__all__ = ["Buffer", "BufferContainer", "IncompatibleKeys"]


class Buffer(Checked):
    """A tensor that becomes a buffer of a Cell when it is assigned to an attribute.

    Parameters
    ----------
    data : Tensor
    persistent : bool
        Whether ``state_dict`` includes it.

    Examples
    --------
    >>> from opreg import nn
    >>> cell = nn.Cell()
    >>> cell.mean = Buffer(Tensor([1.0]))
    >>> cell.mean, list(cell.state_dict())
    (Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00]), ['mean'])
    """

    __slots__ = ("data", "persistent")

    def __init__(self, data: Tensor, *, persistent: bool = True):
        if not has_values(data):
            raise ArgumentError(f"Buffer: expected a Tensor, got {type(data).__name__}")
        self.data, self.persistent = data, persistent


class IncompatibleKeys(NamedTuple):
    """Names missing from a ``state_dict``, and names in it that the Cell does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class BufferContainer:
    """Base of containers with buffers, and with parameters and buffers as a dict."""

    _params: OrderedDict[str, Any]  # Parameters
    _cells: OrderedDict[str, Any]  # Cells, or None for a removed one
    _buffers: OrderedDict[str, Tensor | None]
    _transient: set[str]
    _touch: Callable[[], None]
    cells_and_names: Callable[..., Iterator[tuple[str, Any]]]
    get_sub_cell: Callable[[str], Any]

    @property
    def path(self) -> str:
        """Path of the container in its tree."""
        raise NotImplementedError

    def _check_name(self, kind: str, name: object, own: Container[str], dots: bool = False) -> None:
        """Refuse a name that is no text, is empty, has a dot unless ``dots`` allows it, or is one of an attribute that
        is not among ``own``, the attributes of this kind."""
        if not isinstance(name, str):
            raise ArgumentError(f"{self.path}: the {kind} name should be a string, got {type(name).__name__}")
        if not name or ("." in name and not dots):
            raise WrongNameError(f"{self.path}: the {kind} name {name!r} is empty or has a dot")
        if hasattr(self, name) and name not in own:
            raise WrongNameError(f"{self.path}: {name!r} already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor as state that is no parameter; ``state_dict`` includes it when persistent."""
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not has_values(tensor):
            raise ArgumentError(f"{self.path}: buffer {name!r} must be a Tensor or None, got {type(tensor).__name__}")
        self._buffers[name] = tensor
        (self._transient.discard if persistent else self._transient.add)(name)
        self._touch()

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
                      ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their paths, each once unless ``remove_duplicate`` is off."""
        visited: set[int] = set()
        for path, cell in self.cells_and_names(prefix) if recurse else [(prefix, self)]:
            for name, buffer in cell._buffers.items():
                if buffer is None or (remove_duplicate and id(buffer) in visited):
                    continue
                visited.add(id(buffer))
                yield (f"{path}.{name}" if path else name), buffer

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path of attributes, such as ``block.norm.mean``."""
        path, _, name = target.rpartition(".")
        cell = self.get_sub_cell(path)
        buffer = cell._buffers.get(name)
        if buffer is None:
            raise AttributeError(f"{cell.path} has no attribute {name!r} that is a buffer. "
                                 f"{did_you_mean(name, cell._buffers)}")
        return buffer

    # ---------------------------------------------------------------------------------------------- all state

    def state_dict(self, destination: MutableMapping[str, Any] | None = None, prefix: str = "",
                   keep_vars: bool = False) -> MutableMapping[str, Any]:
        """Parameters and persistent buffers by path, first its own, then those of its children; values are not copied.

        Parameters
        ----------
        destination : dict, optional
            The dict to fill; a new one by default.
        prefix : str
            Prefix of the paths.
        keep_vars : bool
            Passed to hooks.
        """
        state = OrderedDict() if destination is None else destination
        for hook in self._state_hooks("state_dict_pre"):
            hook.function(self, prefix, keep_vars)
        state.update(self._own_state(prefix))
        for name, cell in self._cells.items():
            if cell is not None:
                cell.state_dict(state, f"{prefix}{name}.", keep_vars)
        for hook in self._state_hooks("state_dict_post"):
            _check_no_result(hook, hook.function(self, state, prefix, {}))
        return state

    def load_state_dict(self, state_dict: MutableMapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Load the values of a ``state_dict``; returns missing and unexpected names.

        Raises
        ------
        ArgumentError
            With ``strict``, when names are missing or unexpected; always, when a value does not fit. Nothing is changed
            then.
        """
        state, cells = OrderedDict(state_dict), list(self.cells_and_names())
        missing: list[str] = []
        surplus: list[str] = []
        wrong: list[str] = []
        for path, cell in cells:
            for hook in cell._state_hooks("load_state_dict_pre"):
                hook.function(cell, state, f"{path}." if path else "", {}, strict, missing, surplus, wrong)
        buffers = self._whole_state()
        missing += [name for name in buffers if name not in state]
        surplus += [name for name in state if name not in buffers]
        for name, value in state.items():
            if name in buffers and not isinstance(value, NDArray):
                wrong.append(f"{name} must be a Tensor, got {type(value).__name__}")
            elif name in buffers and buffers[name].shape != value.shape:
                wrong.append(f"{name} has shape {show(value.shape)}, expected {show(buffers[name].shape)}")
        if strict and (missing or surplus):
            wrong.append(f"missing {', '.join(missing) or 'nothing'}; too much {', '.join(surplus) or 'nothing'}")
        if wrong:
            raise ArgumentError(f"{self.path}: load_state_dict: {'; '.join(wrong)}")
        for name, value in state.items():
            if name in buffers:
                buffers[name]._write(Ellipsis, value)
        result = IncompatibleKeys(missing, surplus)
        for _, cell in reversed(cells):
            for hook in cell._state_hooks("load_state_dict_post"):
                _check_no_result(hook, hook.function(cell, result))
        return result

    def _own_state(self, prefix: str) -> dict[str, Tensor]:
        return {prefix + name: value for table in (self._params, self._buffers) for name, value in table.items()
                if value is not None and not (table is self._buffers and name in self._transient)}

    def _whole_state(self, prefix: str = "") -> dict[str, Tensor]:
        state = self._own_state(prefix)
        for name, cell in self._cells.items():
            if cell is not None:
                state.update(cell._whole_state(f"{prefix}{name}."))
        return state

    def _state_hooks(self, kind: str) -> list[Hook]:
        return list(self.__dict__.get("_on_state", {}).get(kind, {}).values())

    def _on_state_hook(self, kind: str, function: Callable[..., Any]) -> HookHandle:
        hooks = self.__dict__.setdefault("_on_state", {}).setdefault(kind, Hooks())
        return HookHandle.add(self, hooks, function)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(cell, prefix, keep_vars)`` before ``state_dict``."""
        return self._on_state_hook("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(cell, state_dict, prefix, local_metadata)`` after ``state_dict``; it may change the dict."""
        return self._on_state_hook("state_dict_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call a function before loading.

        Parameters
        ----------
        hook : callable
            Called with ``(cell, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
            error_msgs)``; it may change the lists, and the dict, which is a copy.
        """
        return self._on_state_hook("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(cell, incompatible_keys)`` after ``load_state_dict``; it may change the lists."""
        return self._on_state_hook("load_state_dict_post", hook)


def _check_no_result(hook: Hook, returned: object) -> None:
    if returned is not None:
        raise ArgumentError(f"the state dict hook {hook} must change its argument and return None, got "
                            f"{type(returned).__name__}")

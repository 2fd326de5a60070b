"""Blocks: networks as trees of blocks with parameters, named as in MXNet."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from opreg.ndarray.io import load, save
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.naming import Prefix, new_name

from ..cells.state import STATE, untraced
from ..cells.tables import Table
from ..core.files import atomic_write, open_to_read
from ..core.json_text import json_of
from ..core.named_errors import wrong_call
from ..core.settings import CheckedMethods
from ..core.spec import show
from ..errors import ArgumentError, FileFormatError, is_it, note, warn
from ..train.initializer import InitializerLike
from ..typing import DTypeLike
from .base_parameter import Contexts, Parameter
from .errors import BlockError
from .hook_handle import HookHandle
from .parameter_dict import ParameterDict, shorten_names
from .summary import print_summary

__all__ = ["Block", "indent", "block_text"]


class _BlockScope:
    """The name scope of a block, a ``with`` statement: blocks made in it are named after the block, with a counter for
    each hint."""

    _current: ContextVar[_CurrentScope | None] = ContextVar("the block in whose scope blocks are made", default=None)

    def __init__(self, block: Block):
        self._block = block
        self._counter: dict[str, int] = {}

    def number(self, hint: str) -> str:
        """A name made of a hint and its count in this scope."""
        count = self._counter.get(hint, 0)
        self._counter[hint] = count + 1
        return f"{hint}{count}"

    @classmethod
    def create(cls, prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
        """Prefix and parameters of a new block."""
        inside = cls._current.get()
        scope = None if inside is None else inside.scope
        if prefix is None:
            prefix = f"{new_name(None, hint) if scope is None else scope.number(hint)}_"
        outer = None if scope is None else scope._block
        if params is not None:
            params = ParameterDict(params.prefix, params)
        elif outer is None:
            params = ParameterDict(prefix)
        else:
            params = ParameterDict(outer.params.prefix + prefix, outer.params._shared)
        return prefix if outer is None else outer.prefix + prefix, params

    def __enter__(self) -> Self:
        if not self._block._empty_prefix:
            inside = _CurrentScope(self, Prefix(self._block.prefix), _BlockScope._current.get())
            _BlockScope._current.set(inside)
            inside.names.__enter__()
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        if not self._block._empty_prefix:
            inside = _BlockScope._current.get()
            assert inside is not None
            inside.names.__exit__(*error)
            _BlockScope._current.set(inside.outer)


class _CurrentScope(NamedTuple):
    """The scope that a thread has entered, its names, and the scope entered before; threads share scopes."""

    scope: _BlockScope
    names: Prefix
    outer: _CurrentScope | None


class Block(CheckedMethods):
    """A network or a layer: derive from it, make children in the constructor, and define ``forward``.

    Blocks and parameters that become attributes are registered, so that ``collect_params``, ``initialize`` and files
    include them.

    Parameters
    ----------
    prefix : str, optional
        Prefix of its parameters' names; by default the name of its class and a number.
    params : ParameterDict, optional
        Parameters of another block, to share them.

    Examples
    --------
    >>> from opreg import gluon, nd
    >>> class Net(gluon.Block):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         with self.name_scope():
    ...             self.first = gluon.nn.Dense(4, in_units=2)
    ...             self.second = gluon.nn.Dense(1, in_units=4)
    ...     def forward(self, x):
    ...         return self.second(self.first(x).relu())
    >>> net = Net(prefix="net_")
    >>> net.initialize()
    >>> net(nd.zeros((3, 2))).shape, list(net.collect_params(".*bias"))
    ((3, 1), ['net_dense0_bias', 'net_dense1_bias'])
    """

    _version = 0
    _plain_methods = "forward", "hybrid_forward"

    def __init__(self, prefix: Any = None, params: ParameterDict | None = None):
        if not (prefix is None or isinstance(prefix, str)):
            add = "; children are added by add(block)" if isinstance(prefix, Block) else ""
            raise BlockError(f"{type(self).__name__}: prefix: expected a str or None, got {type(prefix).__name__}{add}")
        self._empty_prefix = prefix == ""
        self._prefix, self._params = _BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix.removesuffix("_")
        self._scope = _BlockScope(self)
        self._children: dict[str, Block] = Table(self)
        self._reg_params: dict[str, Parameter] = Table(self)
        self._forward_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.update(_children=Table(self, self._children), _reg_params=Table(self, self._reg_params))

    def __repr__(self) -> str:
        return block_text(self, {name: value for name, value in vars(self).items() if isinstance(value, Block)})

    def __setattr__(self, name: str, value: Any) -> None:
        existing = self.__dict__.get(name)
        if isinstance(existing, (Parameter, Block)) and not isinstance(value, type(existing)):
            raise BlockError(f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not "
                             "allowed.")
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if self._reg_params.get(name, value) is not value:
                raise BlockError(f"Overriding Parameter attribute {name} is not allowed. To share parameters between "
                                 "blocks, give params= where a block is made")
            self._reg_params[name] = value
        super().__setattr__(name, value)

    def _alias(self) -> str:
        """The word from which a block without a prefix gets its name."""
        return type(self).__name__.lower()

    @property
    def prefix(self) -> str:
        """The prefix of its parameters' names."""
        return self._prefix

    @property
    def name(self) -> str:
        """Its name: the prefix without ``_`` at the end."""
        return self._name

    def name_scope(self) -> _BlockScope:
        """The name scope, a ``with`` statement in which new blocks and parameters are named after this block."""
        return self._scope

    @property
    def params(self) -> ParameterDict:
        """Its own parameters, without its children's."""
        return self._params

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """The parameters of this block and of all blocks inside.

        Parameters
        ----------
        select : str, optional
            A regular expression that the beginning of a name has to match.
        """
        self._check_containers()
        collected = ParameterDict(self._params.prefix)
        collected.update(self.params, select)
        for child in self._children.values():
            collected.update(child.collect_params(select=select))
        return collected

    def _check_containers(self) -> None:
        """Warn of blocks in lists and dicts, which are not registered as children."""
        children = set(map(id, self._children.values()))

        def holds(value: Any) -> bool:
            if isinstance(value, Block):
                return id(value) not in children
            parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
            return any(map(holds, parts))

        for name, value in vars(self).items():
            if name != "_children" and isinstance(value, (list, tuple, dict)) and holds(value):
                warn(f'"{type(self).__name__}.{name}" is an unregistered container with Blocks. Blocks inside a list, '
                     "tuple or dict are not registered by themselves: use register_child(), nn.Sequential or "
                     "nn.HybridSequential")

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters by their paths of attributes."""
        prefix = f"{prefix}." if prefix else ""
        collected = {prefix + name: parameter for name, parameter in self._reg_params.items()}
        for name, child in self._children.items():
            collected.update(child._collect_params_with_prefix(prefix + name))
        return collected

    # ------------------------------------------------------------------------------------------------ files

    def save_parameters(self, filename: str | os.PathLike[str], deduplicate: bool = False) -> None:
        """Write all parameters to a ``.params`` file, named by their paths of attributes.

        Parameters
        ----------
        deduplicate : bool
            Whether a shared parameter is written once, under its last path.
        """
        collected = self._collect_params_with_prefix()
        if deduplicate:
            last = {id(parameter): path for path, parameter in collected.items()}
            collected = {path: parameter for path, parameter in collected.items() if last[id(parameter)] == path}
        save(filename, {path: parameter._reduce() for path, parameter in collected.items()})

    def save_params(self, filename: str | os.PathLike[str]) -> None:
        """Write all parameters under their names without the prefix; deprecated, use ``save_parameters``."""
        warn("save_params is deprecated. Please use save_parameters, or export for a SymbolBlock")
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_parameters(self, filename: str | os.PathLike[str], ctx: Contexts = None, allow_missing: bool = False,
                        ignore_extra: bool = False, cast_dtype: bool = False, dtype_source: str = "current") -> None:
        """Read parameters from a file of ``save_parameters``, ``save_params``, ``ParameterDict.save`` or ``export``.

        Parameters
        ----------
        ctx : Context or list of Context, optional
            Contexts of parameters that are not initialized yet; the host by default.
        allow_missing, ignore_extra : bool
            Whether the file may lack parameters, or have others.
        cast_dtype : bool
            Whether arrays of other dtypes are cast.
        dtype_source : {"current", "saved"}
            Dtype of the result: the parameter's, or the file's.

        Raises
        ------
        BlockError
            When names, shapes or dtypes do not agree.
        """
        loaded, parameters = load(filename), self._collect_params_with_prefix()
        if not loaded and not parameters:
            return
        if not isinstance(loaded, Mapping):
            raise BlockError(f"load_parameters: {filename} has {len(loaded)} arrays without names")
        if not any("." in name for name in loaded):  # by full names
            self.collect_params().load_dict(loaded, ctx, allow_missing, ignore_extra, self.prefix, filename,
                                            cast_dtype, dtype_source)
            return
        if not allow_missing:
            loaded_ids = {id(parameters[path]) for path in loaded if path in parameters}
            for path, parameter in parameters.items():
                if id(parameter) not in loaded_ids:
                    raise BlockError(f"Parameter '{path}' is missing in file '{filename}', which contains parameters: "
                                     f"{shorten_names(loaded)}. Set allow_missing=True to ignore missing parameters.")
        for path, value in loaded.items():
            if path in parameters:
                parameters[path]._load_init(value, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
            elif not ignore_extra:
                raise BlockError(f"Parameter '{path}' loaded from file '{filename}' is not present in this block, "
                                 f"which contains parameters {shorten_names(parameters)}. Set ignore_extra=True to "
                                 f"ignore.")

    def load_params(self, filename: str | os.PathLike[str], ctx: Contexts = None, allow_missing: bool = False,
                    ignore_extra: bool = False) -> None:
        """Read parameters; deprecated, use ``load_parameters``."""
        warn("load_params is deprecated. Please use load_parameters.")
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Write names and traced graphs to ``<prefix>-model.json`` and parameters to ``<prefix>-model.params``."""
        model: dict[str, Any] = {}
        for key, block, inside in _number_blocks(self, model):
            inside[key] = {"orig_name": block.name, **block._saved_graph(),
                           "children": {child.name: name for name, child in block._children.items()}}
        with atomic_write(f"{prefix}-model.json") as file:
            file.write(json.dumps(model).encode())
        self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix: str) -> None:
        """Read a file that ``save`` wrote into a block of the same structure: names, graphs and parameters."""
        path = f"{prefix}-model.json"
        with open_to_read(path) as file:
            model = json_of(file.read(), path)
        try:
            entries = [(block, inside[key]) for key, block, inside in _number_blocks(self, model)]
            names = {block: str(entry["orig_name"]) for block, entry in entries}
            children = [{entry["children"][names[child]]: child for child in block._children.values()}
                        for block, entry in entries]
        except (LookupError, TypeError) as error:
            raise FileFormatError(f"{path} has no {error} for a block of {self.name}: its blocks are others, or it is "
                                  f"damaged") from None
        for block, entry in entries:
            block.__dict__["_name"] = names[block]
            block._load_graph(entry)
            params, block.params._params = block.params._params, {}
            for name, parameter in params.items():
                parameter._rename(f"{block.name}_{name[len(block.params.prefix):]}")
                block.params._params[parameter.name] = parameter
        for (block, _), by_name in zip(entries, children):
            block.__dict__["_children"] = Table(block, by_name)
        self.load_parameters(f"{prefix}-model.params")

    def _saved_graph(self) -> dict[str, Any]:
        """The traced graph in the form that ``save`` writes."""
        return {}

    def _load_graph(self, entry: Mapping[str, Any]) -> None:
        """Restore the graph that ``save`` wrote."""

    # ----------------------------------------------------------------------------------------------- children

    def _edited(self, name: str, before: object, now: object) -> None:
        """Count a change of a child or a registered Parameter: it was added, replaced or deleted."""
        self.__dict__["_version"] = self._version + 1

    def _traced_state(self) -> str:
        """Text that changes with all that a compiled function finds in this block itself: children, settings, arrays
        of parameters, hooks."""
        parameters = {id(each): each for each in (*self._reg_params.values(), *self.params.values())}
        arrays = [id(array) for parameter in parameters.values() for array in parameter._data or ()]
        return f"{self._version} {arrays} {len(self.params)} {[*self._forward_hooks]} {[*self._forward_pre_hooks]}"

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Register a block as a child; its name is its number by default."""
        if not isinstance(block, Block):
            raise BlockError(f"{type(self).__name__}: expected a block as a child, got {type(block).__name__}")
        self._children[str(len(self._children)) if name is None else name] = block

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Register ``hook(block, inputs)``, called before each forward; returns a handle, whose ``detach`` removes
        it."""
        return HookHandle.of(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Register ``hook(block, inputs, outputs)``, called after each forward; returns a handle, whose ``detach``
        removes it."""
        return HookHandle.of(self._forward_hooks, hook)

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """Register ``callback(name, operator, array)``, called with each output of an operator in hybridized blocks.

        Parameters
        ----------
        callback : function
            Called with the array's name, such as ``dense0_fwd_output``, the operator's name, and the array.
        monitor_all : bool
            Whether it is called with the operators' inputs, too.
        """
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def apply(self, fn: Callable[[Block], Any]) -> Self:
        """Call a function with each block inside, then with this block; returns this block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def initialize(self, init: InitializerLike = None, ctx: Contexts = None, verbose: bool = False,
                   force_reinit: bool = False) -> None:
        """Initialize all parameters; see ``ParameterDict.initialize``."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Let hybrid blocks run as plans; see ``HybridBlock.hybridize``."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def cast(self, dtype: DTypeLike) -> None:
        """Cast all parameters to another dtype; batch norms use float32 in place of float16."""
        for child in self._children.values():
            child.cast(dtype)
        for parameter in self.params.values():
            parameter.cast(dtype)

    # ------------------------------------------------------------------------------------------------- calls

    def __call__(self, *args: Any) -> Any:
        if self._forward_pre_hooks:
            for hook in list(self._forward_pre_hooks.values()):
                hook(self, args)
        try:
            out = self.forward(*args)
        except Exception as error:
            wrong = self._wrong_call(error, args)
            if not any(text.startswith("in block ") for text in getattr(error, "__notes__", ())):
                given = ", ".join([_describe_input(value) for value in args])
                note(wrong or error, f"in block {self.name}, {_title(self)}, given {given}")
            if wrong is not None:
                raise wrong from None
            raise
        if self._forward_hooks:
            for hook in list(self._forward_hooks.values()):
                hook(self, args, out)
        if STATE.trace is not None:
            reads = STATE.trace.reads
            with untraced():  # otherwise each of the values that the array is made of would be compared, too
                reads.comparisons.path(self, "{}._traced_state()", self._traced_state(), f"the block {self.name}")
        return out

    def _wrong_call(self, error: Exception, args: tuple[Any, ...]) -> ArgumentError | None:
        """The error for inputs that the block does not take; None if an exception from the block has another cause."""
        return wrong_call(error, f"{type(self).__name__}.forward", self.forward, args, {})

    def forward(self, *args: Any) -> Any:
        """Compute outputs from inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no forward{is_it(type(self), 'forward')}")

    def summary(self, *inputs: Any) -> None:
        """Run the block, and print the output shape and number of parameters of each layer.

        Raises
        ------
        BlockError
            When the block is hybridized.
        """
        print_summary(self, inputs)


def _title(block: Block) -> str:
    """A block in errors: its repr if that is one line, else its class."""
    try:
        text = repr(block)
    except Exception:  # a user's __repr__
        text = "\n"
    return type(block).__name__ if "\n" in text else text


def _describe_input(value: Any) -> str:
    """An input of a block in errors: shape and dtype of an array, the class of others."""
    if not isinstance(value, NDArray):
        return type(value).__name__
    return f"{show(value.shape)} {np.dtype(value.dtype)}"


def _number_blocks(root: Block, model: dict[str, Any]) -> Iterator[tuple[str, Block, dict[str, Any]]]:
    """The blocks of a tree by class and number, each with its dict in the file of ``save``."""
    count = 0

    def visit(block: Block, inside: dict[str, Any]) -> Iterator[tuple[str, Block, dict[str, Any]]]:
        nonlocal count
        key = f"{type(block).__name__.lower()}{count}"
        yield key, block, inside
        for child in block._children.values():
            count += 1
            yield from visit(child, inside[key])

    return visit(root, model)


def indent(text: str, spaces: int = 2) -> str:
    """Text with all lines but the first indented.

    Examples
    --------
    >>> indent("a\\nb")
    'a\\n  b'
    """
    return re.sub("\n", f"\n{' ' * spaces}", text)


def block_text(block: Block, children: Mapping[str, Block]) -> str:
    """A block as MXNet prints it, with children."""
    inner = "\n".join(f"  ({name}): {indent(repr(child))}" for name, child in children.items())
    return f"{type(block).__name__}(\n{inner}\n)"

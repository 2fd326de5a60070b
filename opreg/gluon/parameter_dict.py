"""Dicts of parameters: the parameters of a block by name, initialized, saved and loaded together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from opreg.ndarray.context import Context
from opreg.ndarray.io import load, save
from opreg.ndarray.ndarray import NDArray

from ..core import settings
from ..core.settings import CheckedMethods
from ..errors import WrongNameError, did_you_mean
from ..train import initializer
from ..train.initializer import InitializerLike
from .base_parameter import Constant, Contexts, Dims, Parameter
from .errors import BlockError

__all__ = ["ParameterDict", "shorten_names"]


class ParameterDict(CheckedMethods):
    """Parameters by their full names, in the order in which they were made.

    Parameters
    ----------
    prefix : str
        Prefix that ``get`` adds to names.
    shared : ParameterDict, optional
        Dict in which ``get`` looks for parameters that are missing here.

    Examples
    --------
    >>> params = ParameterDict("net_")
    >>> params.get("weight", shape=(2, 3)).name, list(params)
    ('net_weight', ['net_weight'])
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None):
        self._prefix, self._shared = prefix, shared
        self._params: dict[str, Parameter] = {}

    def __repr__(self) -> str:
        inner = "\n".join(f"  {parameter!r}" for parameter in self.values())
        return f"{self._prefix} (\n{inner}\n)" if self._prefix else f"(\n{inner}\n)"

    def __getitem__(self, key: str) -> Parameter:
        try:
            return self._params[key]
        except KeyError:
            raise WrongNameError(f"there is no parameter {key!r}. {did_you_mean(key, self._params)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> Any:
        """Pairs of name and parameter."""
        return self._params.items()

    def keys(self) -> Any:
        """The names."""
        return self._params.keys()

    def values(self) -> Any:
        """The parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """The prefix that ``get`` adds to names."""
        return self._prefix

    def _get_impl(self, name: str) -> Parameter | None:
        """The parameter of a full name, from here or from ``shared``."""
        if name not in self._params and self._shared is not None and name in self._shared._params:
            self._params[name] = self._shared._params[name]
        return self._params.get(name)

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """The parameter of a name; it is made with these keywords if there is none.

        Raises
        ------
        BlockError
            When the parameter exists with other attributes.
        """
        name = self.prefix + name
        parameter = self._get_impl(name)
        if parameter is None:
            parameter = self._params[name] = Parameter(name, **kwargs)
            return parameter
        for key, value in kwargs.items():
            existing = getattr(parameter, key, None)
            if existing is None:
                setattr(parameter, key, value)
                continue
            if key == "shape" and value is not None:
                value = (value,) if isinstance(value, int) else value
                joined = _merge_shapes(value, existing)
                if joined is not None:
                    parameter._shape = joined
                    continue
            elif key == "dtype" and np.dtype(value) == np.dtype(existing):
                continue
            if value is not None and value != existing:
                raise BlockError(f"Cannot retrieve Parameter '{name}' because desired attribute does not match with "
                                 f"stored for attribute '{key}': desired '{value}' vs stored '{existing}'.")
        return parameter

    def get_constant(self, name: str, value: Any = None) -> Parameter:
        """The constant of a name; it is made with these values if there is none.

        Raises
        ------
        KeyError
            When the constant does not exist, and no value is given.
        BlockError
            When the constant exists with other values.
        """
        name = self.prefix + name
        parameter = self._get_impl(name)
        if parameter is None:
            if value is None:
                raise WrongNameError(f"No constant named '{name}'. Please specify value if you want to create a new "
                                     "constant.")
            parameter = self._params[name] = Constant(name, value)
        elif value is not None:
            if not isinstance(parameter, Constant):
                raise BlockError(f"Parameter '{name}' already exists but it is not a constant.")
            value = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
            if parameter.shape != value.shape or not (parameter.value.asnumpy() == value).all():
                raise BlockError(f"Constant '{name}' already exists but it's value doesn't match new value")
        return parameter

    def update(self, other: ParameterDict | Mapping[str, Parameter], select: str | re.Pattern[str] | None = None
               ) -> None:
        """Add the parameters of another dict; with ``select``, those whose names match this pattern at the beginning.

        Raises
        ------
        BlockError
            When both have different parameters of the same name.
        """
        selected = settings.pattern("select", ".*" if select is None else select)
        for name, parameter in other.items():
            if self._params.get(name, parameter) is not parameter:
                raise BlockError("Cannot update self with other because they have different Parameters with the same "
                                 f"name '{name}'")
        self._params.update((name, parameter) for name, parameter in other.items() if selected.match(name))

    # ------------------------------------------------------------------------------------------- all at once

    def initialize(self, init: InitializerLike = None, ctx: Contexts = None, verbose: bool = False,
                   force_reinit: bool = False) -> None:
        """Initialize all; see ``Parameter.initialize``.

        Parameters
        ----------
        init : Initializer or str, optional
            Initial values of parameters without their own; uniform values by default.
        verbose : bool
            Whether to log each initialization.
        """
        init = initializer.Uniform() if init is None else init
        if verbose:
            init = initializer.create(init)
            init.set_verbosity(verbose=verbose)  # type: ignore[union-attr]
        for parameter in self.values():
            parameter.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for parameter in self.values():
            parameter.zero_grad()

    def reset_ctx(self, ctx: Contexts) -> None:
        """Move all parameters to other contexts."""
        for parameter in self.values():
            parameter.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """The contexts of all parameters."""
        return list(dict.fromkeys(ctx for parameter in self.values() for ctx in parameter.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all parameters, such as ``params.setattr("grad_req", "null")``."""
        for parameter in self.values():
            setattr(parameter, name, value)

    def save(self, filename: str | os.PathLike[str], strip_prefix: str = "") -> None:
        """Write all parameters to a ``.params`` file.

        Parameters
        ----------
        strip_prefix : str
            Prefix that is removed from names.

        Raises
        ------
        BlockError
            When a name does not begin with the prefix.
        """
        arrays = {}
        for parameter in self.values():
            if not parameter.name.startswith(strip_prefix):
                raise BlockError(f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name "
                                 f"'{parameter.name}' does not start with it: it is shared with another block, or "
                                 "its block was made outside of name_scope()")
            arrays[parameter.name[len(strip_prefix):]] = parameter._reduce()
        save(filename, arrays)

    def load(self, filename: str | os.PathLike[str], ctx: Contexts = None, allow_missing: bool = False,
             ignore_extra: bool = False, restore_prefix: str = "", cast_dtype: bool = False,
             dtype_source: str = "current") -> None:
        """Read all parameters from a ``.params`` file.

        Parameters
        ----------
        ctx, allow_missing, ignore_extra, cast_dtype, dtype_source
            See ``Block.load_parameters``, also for errors.
        restore_prefix : str
            Prefix that is added to names of the file.
        """
        for name in self.keys() if restore_prefix else ():
            if not name.startswith(restore_prefix):
                raise BlockError(f"restore_prefix is '{restore_prefix}' but Parameters name '{name}' does not start "
                                 "with it")
        self.load_dict(load(filename), ctx, allow_missing, ignore_extra, restore_prefix, filename, cast_dtype,
                       dtype_source)

    def load_dict(self, param_dict: Any, ctx: Contexts = None, allow_missing: bool = False,
                  ignore_extra: bool = False, restore_prefix: str = "",
                  filename: str | os.PathLike[str] | None = None, cast_dtype: bool = False,
                  dtype_source: str = "current") -> None:
        """Set all parameters from arrays by name; see ``load``."""
        pairs = param_dict.items() if isinstance(param_dict, Mapping) else param_dict
        arrays = {restore_prefix + re.sub("^(arg|aux):", "", name): value for name, value in pairs}
        source, cut = f"file '{filename}'" if filename else "param_dict", len(restore_prefix)
        for name in () if allow_missing else self.keys():
            if name not in arrays:
                raise BlockError(f"Parameter '{name[cut:]}' is missing in {source}, which contains parameters: "
                                 f"{shorten_names(arrays)}. Make sure that source and target networks have the same "
                                 f"prefix, "
                                 "or set allow_missing=True")
        for name, value in arrays.items():
            if name in self._params:
                self[name]._load_init(value, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
            elif not ignore_extra:
                raise BlockError(f"Parameter '{name[cut:]}' loaded from {source} is not present in ParameterDict, "
                                 f"choices are: {shorten_names(self._params)}. Set ignore_extra=True to ignore. "
                                 "Make sure that source and target networks have the same prefix.")


def _merge_shapes(new: Dims, old: Dims) -> tuple[int, ...] | None:
    """Two shapes with unknown lengths, merged; None where they disagree."""
    if len(new) != len(old) or any(a != b and a > 0 and b > 0 for a, b in zip(new, old)):
        return None
    return tuple(b if a in (0, -1) else a for a, b in zip(new, old))


def shorten_names(names: Any, limit: int = 7) -> str:
    """Names in quotes; of many only the first and the last.

    Examples
    --------
    >>> shorten_names(["a", "b"])
    "'a', 'b'"
    """
    names = list(names)
    if len(names) > limit:
        return f"{shorten_names(names[:limit // 2], limit)}, ..., {shorten_names(names[-limit // 2:], limit)}"
    return ", ".join(f"'{name}'" for name in names)

"""Checkpoints: parameters in files, which are written completely or not at all, and never executed.

A ``.ckpt`` file has MindSpore's format, with a checksum. A ``.npz`` file has a checksum for each array. A
``.safetensors`` file has the common format, without a checksum. Files of PyTorch are read, too, and those of version
0.2: ``.params`` files with one more array, a checksum of the others. The format is recognised by the content.
"""

from __future__ import annotations

import difflib
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opreg.ndarray import formats
from opreg.ndarray.records import Record

from ..aliases import inner
from ..cells.cell import Cell
from ..cells.parameter import LONGEST_NAME, Parameter
from ..cells.tensor import has_values, tensor
from ..cells.tensor_base import is_number
from ..core.files import atomic_write
from ..core.named_errors import name_errors
from ..core.spec import is_floating, show
from ..errors import ArgumentError, DTypeError, FileFormatError, ShapeError, warn

__all__ = ["save_checkpoint", "load_checkpoint", "load_param_into_net", "read_checkpoint"]

if not TYPE_CHECKING:  # names that MindSpore has, too
    __getattr__ = inner(__name__)

#: Content of a checkpoint: a Cell, arrays by name, or dicts with a name and its data.
Saved: TypeAlias = Cell | Mapping[str, Any] | Sequence[Mapping[str, Any]]

#: Endings of checkpoint files.
_ENDINGS = (".ckpt", ".npz", ".safetensors")
#: The name of the checksum among the arrays of a file of version 0.2.
_CHECKSUM = "checkpoint:crc32"


def save_checkpoint(save_obj: Saved, ckpt_file_name: str | os.PathLike, integrated_save: bool = True,
                    async_save: bool = False, append_dict: Mapping[str, object] | None = None, enc_key: object = None,
                    enc_mode: str = "AES-GCM", choice_func: Callable[[str], bool] | None = None,
                    crc_check: bool = False, format: str = "ckpt") -> None:
    """Write parameters to a file, completely or not at all.

    Parameters
    ----------
    save_obj : Cell, dict by name, or list of ``{"name": …, "data": …}``
        The content: all parameters of a Cell by their names, or Tensors.
    ckpt_file_name : str or path
        The file. ``.ckpt`` writes MindSpore's format, which MindSpore reads, ``.npz`` NumPy's; a name without an
        ending gets that of ``format``.
    append_dict : dict, optional
        Numbers, Tensors and texts to save too.
    choice_func : callable, optional
        A function of a name that tells whether it is saved.
    format : {"ckpt", "safetensors"}
        Format of a file whose name has no ending.
    integrated_save, async_save, enc_mode, crc_check
        Accepted without effect: checksums are always written.
    enc_key
        Must be None; files are not encrypted.

    Raises
    ------
    TypeError
        When the content has another type, or the name of the file is no text.
    OSError
        When the folder is missing, the file is not writable, or the disk is full.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "net.ckpt")
    ...     save_checkpoint({"w": tensor([1.0, 2.0])}, path)
    ...     load_checkpoint(path)
    {'w': Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)}
    """
    if enc_key is not None:
        raise ArgumentError("save_checkpoint: files are not encrypted; enc_key must be None")
    if format not in ("ckpt", "safetensors"):
        raise ArgumentError(f"save_checkpoint: format must be 'ckpt' or 'safetensors', got {format!r}")
    arrays = dict(_names_and_arrays(save_obj))
    for name, value in (append_dict or {}).items():
        if name in arrays:
            raise ArgumentError(f"save_checkpoint: append_dict: there is already a parameter {name!r}")
        if isinstance(value, str):
            arrays[f"{name}{formats.TEXT}"] = np.frombuffer(value.encode(), np.uint8)
        else:
            arrays[name] = _array(f"append_dict: {name!r}", value)
    if choice_func is not None:
        arrays = {name: value for name, value in arrays.items() if choice_func(name)}
    path = _path("save_checkpoint", ckpt_file_name)
    if not path.endswith(_ENDINGS):
        path += f".{format}"
    put = formats.checkpoint_writer(path, [Record(array) for array in arrays.values()], list(arrays))
    with atomic_write(path) as file:
        put(file)


def _path(owner: str, name: object) -> str:
    if not isinstance(name, (str, os.PathLike)):
        raise ArgumentError(f"{owner}: the name of the file must be text, got {type(name).__name__}")
    return os.fsdecode(name)


def _names_and_arrays(save_obj: Saved) -> Iterable[tuple[str, np.ndarray]]:
    """Names and arrays of the content to save."""
    if isinstance(save_obj, Cell):
        save_obj.check_names()
        pairs = [(parameter.name, parameter) for parameter in save_obj.get_parameters()]
    elif isinstance(save_obj, Mapping):
        pairs = list(save_obj.items())
    elif isinstance(save_obj, (list, tuple)):
        for i, entry in enumerate(save_obj):
            if not isinstance(entry, Mapping) or not {"name", "data"} <= set(entry):
                raise ArgumentError(f"save_checkpoint: element {i} must be a dict with 'name' and 'data', got "
                                    f"{sorted(entry, key=str) if isinstance(entry, Mapping) else type(entry).__name__}")
        pairs = [(entry["name"], entry["data"]) for entry in save_obj]
    else:
        raise ArgumentError(f"save_checkpoint: expected a Cell, a dict or a list, got {type(save_obj).__name__}")
    visited: set[str] = set()
    for name, value in pairs:
        if not isinstance(name, str):
            raise ArgumentError(f"save_checkpoint: names must be text, got {type(name).__name__}")
        if not name.strip() or len(name) > LONGEST_NAME:
            raise ArgumentError(f"save_checkpoint: a name has 1 to {LONGEST_NAME} characters, got {len(name)}")
        if name in visited or name == _CHECKSUM:
            raise ArgumentError(f"save_checkpoint: there are two arrays {name!r}" if name in visited else
                                f"save_checkpoint: the name {name!r} is that of the checksum")
        visited.add(name)
        yield name, _array(repr(name), value)


def _array(label: str, value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray) or is_number(value):
        value = tensor(value)
    if not has_values(value):
        raise ArgumentError(f"save_checkpoint: {label} must be a Tensor or a number, got {type(value).__name__}")
    return value.asnumpy()


def _checksum(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The CRC-32 of names, dtypes, shapes and elements, as in version 0.2."""
    checksum = 0
    for name, array in arrays.items():
        checksum = zlib.crc32(f"{name}\0{array.dtype.name}\0{array.shape}".encode(), checksum)
        checksum = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, checksum)
    return np.array([checksum], np.int64)


# ------------------------------------------------------------------------------------------------------ loading


def load_checkpoint(ckpt_file_name: str | os.PathLike, net: Cell | None = None, strict_load: bool = False,
                    filter_prefix: str | Sequence[str] | None = None, dec_key: object = None, dec_mode: str = "AES-GCM",
                    specify_prefix: str | Sequence[str] | None = None, choice_func: Callable[[str], bool] | None = None,
                    crc_check: bool = False, remove_redundancy: bool = False, format: str = "ckpt"
                    ) -> dict[str, Any]:
    """Read the parameters of a file.

    Parameters
    ----------
    ckpt_file_name : str or path
        A file of ``save_checkpoint``, or any ``.params``, ``.npz`` or ``.safetensors`` file with names.
    net : Cell, optional
        A Cell that the parameters are loaded into; see ``load_param_into_net``.
    strict_load : bool
        See ``load_param_into_net``.
    filter_prefix, specify_prefix : str or list of str, optional
        Names, or prefixes up to a dot: names to skip, and the only names to read.
    choice_func : callable, optional
        A function of a name that tells whether it is read.
    dec_key
        Must be None; files are not encrypted.
    dec_mode, crc_check, remove_redundancy, format
        Accepted without effect: checksums are always verified.

    Returns
    -------
    dict
        Parameters by name, in the order of the file, and texts that were saved with them.

    Raises
    ------
    FileFormatError
        When the file is damaged (the message tells where), or has names that are invalid for a Parameter.
    ValueError
        When the file is missing, or no name is left to read.
    """
    if dec_key is not None:
        raise ArgumentError("load_checkpoint: files are not encrypted; dec_key must be None")
    path = _path("load_checkpoint", ckpt_file_name)
    if not os.path.exists(path) and os.path.exists(f"{path}.ckpt"):  # the ending that save_checkpoint appends
        path = f"{path}.ckpt"
    filtered, kept_prefixes = _prefixes("filter_prefix", filter_prefix), _prefixes("specify_prefix", specify_prefix)
    parameters: dict[str, Parameter | str] = {}
    for stored, array in read_checkpoint(path).items():
        is_text = stored.endswith(formats.TEXT) and array.dtype == np.uint8
        name = stored.removesuffix(formats.TEXT) if is_text else stored
        if (_has_prefix(name, filtered) or (specify_prefix is not None and not _has_prefix(name, kept_prefixes))
                or (choice_func is not None and not choice_func(name))):
            continue
        parameters[name] = _text(path, name, array) if is_text else Parameter(tensor(array), name=name)
    if not parameters:
        raise ArgumentError(f"load_checkpoint: {path} has no parameters that filter_prefix, specify_prefix and "
                            f"choice_func select")
    if net is not None:
        load_param_into_net(net, parameters, strict_load)
    return parameters


def _text(path: str, name: str, array: np.ndarray) -> str:
    try:
        return array.tobytes().decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: expected {name!r} to be text, found {error}") from error


def _prefixes(what: str, prefixes: str | Sequence[str] | None) -> tuple[str, ...]:
    listed = () if prefixes is None else (prefixes,) if isinstance(prefixes, str) else prefixes
    if not isinstance(listed, (tuple, list)) or not all(isinstance(prefix, str) for prefix in listed):
        raise ArgumentError(f"load_checkpoint: {what} must be text or a list of texts, got {prefixes!r}")
    return tuple(listed)


def _has_prefix(name: str, prefixes: Iterable[str]) -> bool:
    """Whether a name is one of the prefixes, or begins with a prefix and a dot."""
    return any(name == prefix or name.startswith(prefix if prefix.endswith(".") else f"{prefix}.")
               for prefix in prefixes)


def read_checkpoint(path: str) -> dict[str, np.ndarray]:
    """The arrays of a file by name, verified by its checksum.

    Raises
    ------
    FileFormatError
        When the file is damaged (the message tells where), or has names that are invalid for a Parameter.
    ValueError
        When the file is missing.
    """
    try:
        records, names = formats.load(path)
    except FileNotFoundError as error:
        raise ArgumentError(f"load_checkpoint: there is no file {path}") from error
    if len(names) != len(records) or len(set(names)) != len(names):
        raise FileFormatError(f"{path}: expected a different name for each of {len(records)} arrays, found "
                              f"{len(set(names))} names")
    arrays: dict[str, np.ndarray] = {}
    for i, (name, record) in enumerate(zip(names, records)):
        if not name.strip() or len(name) > LONGEST_NAME:
            raise FileFormatError(f"{path}: expected names of 1 to {LONGEST_NAME} characters, found one of {len(name)} "
                                  f"for array {i}")
        if (dense := record.dense()) is None:
            raise FileFormatError(f"{path}: expected an array {name!r}, found a record without one")
        arrays[name] = dense
    return _verify_checksum(path, arrays)


def _verify_checksum(path: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Verify the checksum, which is the last array of a file; returns the other arrays.

    The checksum is found by its name, or by its value if the name is damaged. If both are damaged, a checksum counts
    as missing in a file that ends in ``.ckpt``, or that has an array with a similar name.
    """
    *rest, last = arrays or [""]
    others = {name: arrays[name] for name in rest}
    stored = arrays.get(last)
    single = stored is not None and stored.shape == (1,) and stored.dtype == np.int64
    sound = single and np.array_equal(stored, _checksum(others))  # type: ignore[arg-type]
    meant = _CHECKSUM in arrays or (path.endswith(".ckpt") and formats.is_params(path)) or (
        single and difflib.SequenceMatcher(None, last, _CHECKSUM).ratio() > 0.6)
    if sound != meant:
        has_checksum = single or _CHECKSUM in arrays
        what = (f"the checksum is not that of {len(others)}" if has_checksum else
                f"there is no checksum of {len(arrays)}")
        raise FileFormatError(f"{path}: {what} arrays: the file is damaged")
    return others if sound else arrays


def load_param_into_net(net: Cell, parameter_dict: Mapping[str, Parameter | str], strict_load: bool = False,
                        remove_redundancy: bool = False) -> tuple[list[str], list[str]]:
    """Load Parameters into a Cell by name; everything is checked before anything changes.

    Parameters
    ----------
    net : Cell
        The Cell, whose parameters change in place.
    parameter_dict : dict of Parameter and str
        Parameters by name, as returned by ``load_checkpoint``; texts are ignored.
    strict_load : bool
        Whether dtypes and names have to be equal. Otherwise floating-point values are cast to other floating dtypes and
        integers to integers; and names in the dict may have an additional prefix, or be the names of the same Cell in
        MindSpore (``Parameter.mindspore_name``).
    remove_redundancy
        Accepted without effect.

    Returns
    -------
    not_loaded, unused : list of str
        Names of the Cell's parameters that are missing in the dict, and names of the dict that the Cell lacks.

    Raises
    ------
    RuntimeError
        When a shape or dtype does not fit.
    TypeError
        When an argument or element has the wrong type.
    ValueError
        When a name of the dict is the MindSpore name of several of the Cell's parameters.

    Examples
    --------
    >>> from opreg import nn
    >>> net, other = nn.Dense(2, 1), nn.Dense(2, 1)
    >>> load_param_into_net(other, net.parameters_dict())
    ([], [])
    """
    if not isinstance(net, Cell):
        raise ArgumentError(f"load_param_into_net: net must be a Cell, got {type(net).__name__}")
    if not isinstance(parameter_dict, Mapping):
        raise ArgumentError(f"load_param_into_net: parameter_dict must be a dict, got {type(parameter_dict).__name__}")
    if not isinstance(strict_load, bool):
        raise ArgumentError(f"load_param_into_net: strict_load must be a bool, got {type(strict_load).__name__}")
    for name, value in parameter_dict.items():
        if type(name) is not str or not isinstance(value, (Parameter, str)):
            raise ArgumentError("load_param_into_net: parameter_dict must have Parameters by name, got "
                                f"{type(value).__name__} under {name!r}")
    loaded = {name: value for name, value in parameter_dict.items() if isinstance(value, Parameter)}
    parameters = {parameter.name: parameter for parameter in net.get_parameters()}
    if strict_load:
        source = {name: name for name in parameters if name in loaded}
    else:  # a dict has opreg's names or MindSpore's; if both fit equally, opreg's are assumed
        namings = ({name: name for name in parameters},
                   {name: parameter.mindspore_name for name, parameter in parameters.items()})
        source = max((_sources(names, loaded) for names in namings), key=lambda keys: len({*keys.values()}))
    _refuse_shared(source)
    for name, key in source.items():
        _check(parameters[name], loaded[key], strict_load)
    for name, key in source.items():
        parameters[name]._write(Ellipsis, loaded[key].reshape(parameters[name].shape))
    used = set(source.values())
    missing = [name for name in parameters if name not in source]
    unused = [key for key in parameter_dict if key not in used]
    if missing and unused and not source:
        warn(f"load_param_into_net: nothing was loaded: the Cell has {missing[0]!r}, the dict {unused[0]!r}")
    return missing, unused


def _sources(names: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """The keys of parameters in a dict, given their names; a common prefix of the keys may come first."""
    keys = set(keys)
    sources = {name: source for name, source in names.items() if source in keys}
    missing = {name: source for name, source in names.items() if name not in sources}
    first = next(iter(missing.values()), "")
    for key in sorted(keys) if missing else ():
        if key.endswith(f".{first}"):
            prefix = key.removesuffix(first)
            if all(prefix + source in keys for source in missing.values()):
                return sources | {name: prefix + source for name, source in missing.items()}
    return sources


def _refuse_shared(source: Mapping[str, str]) -> None:
    """Refuse a key that belongs to several parameters, as MindSpore's names may."""
    first: dict[str, str] = {}
    for name, key in source.items():
        if first.setdefault(key, name) != name:
            raise ArgumentError(
                f"load_param_into_net: {key!r} is MindSpore's name for both {first[key]} and {name}, and the file has "
                f"the values of only one. A file that MindSpore saves after a call of the network names them by their "
                f"paths")


def _check(parameter: Parameter, incoming: Parameter, strict: bool) -> None:
    if parameter.shape != incoming.shape and not parameter.size == incoming.size == 1:
        raise ShapeError(f"load_param_into_net: {parameter.name} has shape {show(parameter.shape)}, got "
                         f"{show(incoming.shape)} from {incoming.name}")
    mine, incoming_dtype = parameter._dt, incoming._dt
    alike = mine == incoming_dtype or (not strict and ((is_floating(mine) and is_floating(incoming_dtype))
                                                       or (mine.kind in "iu" and incoming_dtype.kind in "iu")))
    if not alike:
        raise DTypeError(f"load_param_into_net: {parameter.name} has dtype {parameter.dtype}, got {incoming.dtype} "
                         f"from {incoming.name}{', and strict_load allows no cast' if strict else ''}")


name_errors(__name__, globals(), __all__)

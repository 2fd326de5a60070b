"""Stub files for type checkers and editors, made from the declarations of operators that modules provide at run time.

    python -m opreg.builtin --stubs

writes the stub files beside the modules. Stubs of functions and methods of arrays and symbols, such as
``operators.pyi``, are made from the operators' schemas; those of tensors from the functions of ``ops``; and that of
the package ``opreg`` from its table of names.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union

import numpy as np

import opreg

from . import ndarray, symbol
from .aliases import TRAINING
from .cells import typing as tensor_types
from .cells.tensor_base import TensorBase
from .core.arguments import examples, signature
from .core.namespaces import WRITTEN, Namespace
from .core.op import Op
from .core.registry import find, names
from .core.value import ARITHMETIC, BINARY, METHODS
from .nn import ops
from .nn.ops.methods import METHODS as TENSOR_METHODS
from .nn.ops.primitive import Primitive

__all__ = ["stubs"]

_TITLE = "# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.\n"
_WIDTH = 118

_TENSOR_IMPORTS = """
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

"""
_IMPORTS = """
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

"""
#: Headings of the stubs of arrays and of symbols: types of arguments.
_HEADS = {
    "nd": """
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.core.value import Value

Input = NDArray | np.ndarray[Any, Any]
Operand = NDArray | np.ndarray[Any, Any] | float | np.number[Any] | np.bool_
Out = NDArray | Sequence[NDArray] | None
""",
    "sym": """
from opreg.ndarray.context import Context
from opreg.symbol.symbol import Symbol
from opreg.core.value import Value

Input = Symbol
Operand = Symbol | float | np.number[Any] | np.bool_
""",
}
_KINDS = """Ints = int | Sequence[int]
Floats = float | Sequence[float]
DType = str | type[Any] | np.dtype[Any]
"""
_ALIASES = {"nd": "DType, Floats, Input, Ints, Operand, Out", "sym": "DType, Floats, Input, Ints, Operand"}
_FURTHER = {"nd": ["out: Out = None", "name: str | None = None"],
            "sym": ["name: str | None = None", "attr: Mapping[str, str] | None = None"]}
_RESULT = {"nd": "NDArray", "sym": "Symbol"}
_SPACES = {"nd": ndarray, "sym": symbol}

_MOMENTS = ("weight: Input", "grad: Input", "mean: Input", "var: Input")
_ADAMW = ("rescale_grad: Input | float", "lr: float", "eta: float", "beta1: float = 0.9", "beta2: float = 0.999",
          "epsilon: float = 1e-08", "wd: float = 0", "clip_gradient: float = -1", "out: Any = None",
          "name: str | None = None", "**kwargs: Any")
_LISTS = tuple(f"{name}: Sequence[Input]" for name in ("weights", "grads", "mean", "var"))
_RATES = ("lrs: Sequence[float]", "wds: Sequence[float]")
_ADAMWS = ("rescale_grad: Input | float", *_RATES, "etas: Sequence[float]", "out: Any = None",
           "name: str | None = None", "size: int = 0", "**kwargs: Any")
_LAMBS = ("step_count: Sequence[int]", *_RATES, "out: Any = None", "num_tensors: int = 0", "**kwargs: Any")

#: Functions that choose an operator by what they are given.
_BY_HAND = {
    "split_v2": ("ary: Input", "indices_or_sections: int | Sequence[int]", "axis: int = 0",
                 "squeeze_axis: bool = False"),
    "histogram": ("a: Input", "bins: Input | int = 10", "range: tuple[float, float] | None = None"),
    **dict.fromkeys(ARITHMETIC, ("lhs: Operand", "rhs: Operand")),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), ("data: Input",)),
    "rand_zipfian": ("true_classes: Input", "num_sampled: int", "range_max: int", "ctx: Context | None = None"),
    "adamw_update": (*_MOMENTS, *_ADAMW), "mp_adamw_update": (*_MOMENTS, "weight32: Input", *_ADAMW),
    "multi_adamw_update": (*_LISTS, *_ADAMWS),
    "multi_mp_adamw_update": (*_LISTS, "weights32: Sequence[Input]", *_ADAMWS),
    "multi_lamb_update": (*_LISTS, *_LAMBS),
    "multi_mp_lamb_update": (*_LISTS, "weights32: Sequence[Input]", *_LAMBS),
}
_LOOPS = ("cond", "foreach", "while_loop")

#: Types in the annotations of functions of tensors; the stubs import or define all of them.
_TENSOR_TYPES = f"""from opreg.cells.tensor import Tensor
from opreg.cells.typing import {", ".join(tensor_types.__all__)}
"""
_TYPE_NAMES = {*dir(builtins), *tensor_types.__all__, "Tensor", "Any", "Callable", "Iterable", "Mapping", "Sequence",
               "Literal", "np", "_T"}


# --------------------------------------------------------------------------------------------------- text


def _sentence(text: str | None) -> str:
    """The first sentence of a docstring, on one line."""
    first = " ".join((text or "").strip().split("\n\n")[0].split())
    first = re.split(r"(?<=[.:;])\s", first)[0].rstrip(".:;").replace('"', "'").replace("\\", "\\\\")
    return first and textwrap.shorten(first, _WIDTH - 16, placeholder=" …") + "."


def _function(name: str, parameters: Iterable[str], result: str, doc: str | None, indent: str = "",
              example: str = "") -> str:
    """A function without a body, its lines no longer than the others'."""
    lines = [f"{indent}def {name}("]
    margin = " " * len(lines[0])
    parts = list(parameters)
    for i, part in enumerate(parts):
        part += f") -> {result}:" if i == len(parts) - 1 else ","
        if len(lines[-1]) + len(part) < _WIDTH:
            lines[-1] += part if i == 0 else f" {part}"
        else:
            lines.append(margin + part)
    text = "\n".join(lines) if parts else f"{lines[0]}) -> {result}:"
    sentence = _sentence(doc)
    if example:
        sentence += f"\n\n{textwrap.indent(example, f'{indent}    ')}\n{indent}    "
    return f'{text}\n{indent}    """{sentence}"""\n' if sentence else f"{text} ...\n"


def _kind(kind: Any) -> str:
    """The annotation of a parameter in a stub: it allows all types that the function converts."""
    simple = {Any: "Any", None: "None", type(None): "None", np.dtype: "DType", inspect.Parameter.empty: "Any",
              tuple: "Sequence[Any]", list: "Sequence[Any]", np.ndarray: "np.ndarray[Any, Any]"}
    if kind in simple:
        return simple[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    if origin in (Union, types.UnionType):
        parts = list(dict.fromkeys(_kind(part) for part in args))
        if "Ints" in parts:
            parts = [part for part in parts if part != "int"]
        return "Any" if "Any" in parts else " | ".join(parts)
    if origin is tuple and args[0] in (int, float):
        return "Ints" if args[0] is int else "Floats"
    if origin in (tuple, list):
        inner = ", ".join("..." if part is ... else _kind(part) for part in args)
        return f"Sequence[{inner.removesuffix(', ...')}]"
    if origin is not None and origin.__module__ == "collections.abc":
        return "Callable[..., Any]" if origin is Callable else f"{origin.__name__}[{', '.join(map(_kind, args))}]"
    return kind.__name__ if kind in (int, float, bool, str, complex) else "Any"


def _default(value: Any) -> str:
    """A default as a stub has it."""
    if isinstance(value, np.dtype):
        return repr(value.name)
    if isinstance(value, type) and issubclass(value, np.generic):
        return repr(value.__name__)
    plain = isinstance(value, (int, str, type(None))) or (isinstance(value, float) and abs(value) < float("inf"))
    if plain or (isinstance(value, tuple) and all(isinstance(number, (int, float)) for number in value)):
        return repr(value)
    return "..."


def _parameters_text(parameters: Iterable[inspect.Parameter], kinds: Mapping[str, str]) -> Iterator[str]:
    """Parameters as text; ``kinds`` has the annotations by name, Any where there is none."""
    behind_star = False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not behind_star:
            yield "*"
        behind_star |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (parameter.kind is parameter.VAR_KEYWORD)
        kind = kinds.get(parameter.name, "Any")
        text = f"{stars}{parameter.name}: {kind}" if kind else f"{stars}{parameter.name}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        yield text


# ------------------------------------------------------------------------------------------ from the schemas


def _parameters(op: Op, manner: str) -> list[inspect.Parameter]:
    return list(signature(op, (), manner == "sym").parameters.values())


def _texts(op: Op, manner: str, parameters: list[inspect.Parameter], further: list[str]) -> list[str]:
    fields = {field.name for field in op.signature.schema.fields}
    kinds = {parameter.name: "Context | str | None" if parameter.name == "ctx" else _kind(parameter.annotation)
             if parameter.name in fields else "Input" for parameter in parameters}
    for parameter in parameters:
        if parameter.default is None and not re.search(r"\b(None|Any)\b", kinds[parameter.name]):
            kinds[parameter.name] += " | None"
    if op.signature.variadic or op.signature.per_instance:
        kinds[op.signature.many] = "Input | Sequence[Input]"
    texts = list(_parameters_text(parameters, kinds))
    if not any(text.startswith("*") for text in texts):
        texts.append("*")
    signature = op.signature
    if manner == "nd" and not (signature.variadic or signature.per_instance or signature.input_names
                               or "ctx" in fields):
        texts.append("ctx: Context | str | None = None")
    return texts + further


def _result(op: Op, manner: str) -> str:
    try:
        many = manner == "nd" and op.signature.visible(examples(op)[0]) > 1
    except (KeyError, TypeError):
        many = False
    return f"list[{_RESULT[manner]}]" if many else _RESULT[manner]


def _of_operators(manner: str, operators: Mapping[str, Op]) -> Iterator[str]:
    """Functions of operators by name; further names of one are aliases."""
    first: dict[Op, str] = {}
    for name in sorted(operators, key=lambda name: (operators[name].name != name, name)):
        first.setdefault(operators[name], name)
    for name in sorted(first.values()):
        op = operators[name]
        parameters = _texts(op, manner, _parameters(op, manner), _FURTHER[manner])
        example = "".join(op.doc.partition("Examples\n")[1:]) if manner == "nd" else ""
        yield _function(name, parameters, _result(op, manner), op.doc, example=example)
    for name in sorted(set(operators) - set(first.values())):
        yield f"{name} = {first[operators[name]]}\n"


def _handwritten(manner: str, name: str, function: Callable) -> str:
    result = _RESULT[manner]
    several = {"split_v2": f"list[{result}]", "histogram": f"list[{result}]",
               "rand_zipfian": f"tuple[{result}, {result}, {result}]",
               **{each: f"list[{result}]" for each in _BY_HAND if each.startswith("multi_")}}
    kept = several.get(name, result) if manner == "nd" or name == "rand_zipfian" else result
    return _function(name, _BY_HAND[name], kept, function.__doc__)


def _arithmetic(result: str) -> Iterator[str]:
    """Python's operators."""
    for name in BINARY:
        compared = name in ("eq", "ne", "gt", "ge", "lt", "le")
        ignored = "" if not compared else "  # type: ignore[override]" if name in ("eq", "ne") else \
            "  # type: ignore[misc]" if result != "Symbol" else ""  # NumPy's arrays compare, too
        for start in ("",) if compared else ("", "r", "i") if result == "Tensor" else ("", "r"):
            yield f"    def __{start}{name}__(self, other: Operand) -> {result}: ...{ignored}\n"


def _methods(manner: str) -> Iterator[str]:
    """The class of methods that arrays and symbols have for operators, and of Python's operators."""
    result, indent = _RESULT[manner], " " * 4
    yield f"{_TITLE}{_IMPORTS.rstrip()}\n{_HEADS[manner]}{_KINDS}\n"
    yield f'class Methods(Value):\n{indent}"""Operators as methods."""\n'
    yield from _arithmetic(result)
    yield f"{indent}def __neg__(self) -> {result}: ...\n{indent}def __abs__(self) -> {result}: ...\n"
    yield f"{indent}def __matmul__(self, other: {result}) -> {result}: ...\n"
    members = vars(ndarray.NDArray if manner == "nd" else symbol.Symbol)
    for name in METHODS:
        op = find(name)
        if name in members:
            continue
        if op is None:
            results = f"list[{result}]" if manner == "nd" else result
            yield _function(name, ["self", *_BY_HAND[name][1:]], results, WRITTEN[name].__doc__, indent)
            continue
        parameters = _parameters(op, manner)[1:] if not op.signature.variadic else _parameters(op, manner)
        yield _function(name, ["self", *_texts(op, manner, parameters, _FURTHER[manner][:1])], _result(op, manner),
                        op.doc, indent)


def _head(manner: str, imported: str = "") -> str:
    """First lines of a stub of functions."""
    package, name = ("ndarray", "NDArray") if manner == "nd" else ("symbol", "Symbol")
    return (f"{_TITLE}{_IMPORTS}from opreg.ndarray.context import Context\n{imported}"
            f"from opreg.{package}.methods import {_ALIASES[manner]}\nfrom opreg.{package}.{package} import {name}\n\n")


def _operators(manner: str) -> str:
    space = _SPACES[manner]
    operators = {name: op for name in names() if name.isidentifier() and not name.startswith("_")
                 and name not in WRITTEN and name not in space.__all__ and (op := find(name)) is not None
                 and op.where is None}
    return "".join([_head(manner), *_of_operators(manner, operators),
                    *[_handwritten(manner, name, WRITTEN[name]) for name in sorted(WRITTEN)]])


def _namespace(manner: str, space: Namespace) -> str:
    """``linalg``, ``contrib`` or ``image``."""
    operators = {name: op for name in dir(space) if name not in _BY_HAND
                 for op in [space.operator(name)] if op is not None}
    by_hand = [name for name in sorted(vars(space)) if name in _BY_HAND]
    loops = [f"{name} as {name}" for name in _LOOPS if name in vars(space)]
    home = "ndarray.control_flow" if manner == "nd" else "symbol.control_flow_functions"
    return "".join([_head(manner, f"from opreg.{home} import {', '.join(loops)}\n" if loops else ""),
                    *_of_operators(manner, operators),
                    *[_handwritten(manner, name, vars(space)[name]) for name in by_hand]])


# ----------------------------------------------------------------------------------------- from the functions


def _annotations(function: Callable) -> dict[str, str]:
    """The annotations of a function as they are written; ``Any`` for an annotation that names what the stubs lack."""
    return {name: text if _TYPE_NAMES.issuperset(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)) else "Any"
            for name, text in inspect.unwrap(function).__annotations__.items()}


def _like(name: str, function: Callable, indent: str = "", own: bool = False) -> str:
    """The stub of a function of tensors, with all of its overloads."""
    forms = typing.get_overloads(inspect.unwrap(function))
    return "".join([f"{indent}@overload\n{_form(name, form, form.__doc__ or function.__doc__, indent, own)}"
                    for form in forms]) or _form(name, function, function.__doc__, indent, own)


def _form(name: str, function: Callable, doc: str | None, indent: str, own: bool) -> str:
    kinds = _annotations(function)
    parameters = list(inspect.signature(function).parameters.values())
    if own:
        parameters[0] = parameters[0].replace(name="self", kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        kinds["self"] = ""
    return _function(name, _parameters_text(parameters, kinds), kinds.get("return", "Any"), doc, indent)


def _primitive(name: str, primitive: type[Primitive]) -> str:
    """The stub of a primitive's class: the constructor takes settings, a call takes the other parameters of its
    function."""
    function = inspect.getclosurevars(primitive.__call__).nonlocals["function"]
    settings, kinds = inspect.signature(primitive).parameters, _annotations(function)
    inputs = [parameter for parameter in inspect.signature(function).parameters.values()
              if parameter.name not in settings and parameter.kind is not parameter.VAR_KEYWORD]
    indent, sentence, result = " " * 4, _sentence(primitive.__doc__), kinds.get("return", "Any")
    return "".join([f"class {name}(Primitive):\n", f'{indent}"""{sentence}"""\n' if sentence else "",
                    _function("__init__", ["self", *_parameters_text(settings.values(), kinds)], "None", None, indent),
                    _function("__call__", ["self", *_parameters_text(inputs, kinds)], result, None, indent)])


def _ops() -> str:
    """Functions and primitives of ``opreg.nn.ops``."""
    lines, imported = [], []
    for name in sorted(vars(ops)["__all__"]):
        value = getattr(ops, name)
        if inspect.isclass(value) and issubclass(value, Primitive) and value.__module__ == ops.__name__:
            lines.append(_primitive(name, value))
        elif inspect.isfunction(value) and inspect.unwrap(value).__module__.startswith(ops.__name__):
            lines.append(_like(name, value))
        else:
            home = value.__module__
            known = name if hasattr(sys.modules[home], name) else value.__name__
            imported.append(f"from {home} import {known} as {name}\n")
    modules = sorted({line.partition(" import ")[0] for line in imported})
    grouped = [f"{module} import " + ", ".join(line.partition(" import ")[2].strip() for line in imported
                                               if line.startswith(f"{module} ")) + "\n" for module in modules]
    return "".join([_TITLE, _TENSOR_IMPORTS, *grouped, _TENSOR_TYPES, '\n_T = TypeVar("_T")\n\n', *lines])


def _tensor_methods() -> str:
    """Methods of tensors."""
    indent = " " * 4
    lines = [_TITLE, _TENSOR_IMPORTS, "from opreg.core.value import Value\n", _TENSOR_TYPES,
             "\nOperand = TensorLike\n_int = int\n_float = float\n_bool = bool\n",  # names of methods
             f"\nclass Methods(Value):\n{indent}\"\"\"Functions of ``ops`` as methods.\"\"\"\n"]
    lines += _arithmetic("Tensor")
    for name in sorted(TENSOR_METHODS):
        if getattr(TensorBase, name) is TENSOR_METHODS[name]:
            text = _like(name, TENSOR_METHODS[name], indent, own=True)
            lines.append(re.sub(r"(?<!def )\b(int|float|bool)\b", r"_\1", text))
    return "".join(lines)


# ------------------------------------------------------------------------------------------------- the door


def _door_stub(names: Mapping[str, tuple[str, str | None]], further: str = "") -> str:
    """A package whose names are loaded at first use: plain imports of these names, each from its module."""
    lines = [_TITLE, "\n"]
    for name, (module, attribute) in sorted(names.items(), key=lambda door: door[1][0]):
        package, _, last = module.rpartition(".") if attribute is None else (module, "", attribute)
        lines.append(f"from {package} import {last} as {name}\n")
    listed = textwrap.fill(", ".join(f'"{name}"' for name in [*re.findall(r"^\w+(?=:)", further), *sorted(names)]),
                           _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return "".join([*lines, f"\n__all__ = [\n{listed},\n]\n", further and f"\n{further}\n"])


def stubs() -> dict[str, str]:
    """The text of every stub, by its path in the package.

    Examples
    --------
    >>> "def expand_dims(data: Input, axis: int," in stubs()["ndarray/operators.pyi"]
    True
    """
    texts = {"__init__.pyi": _door_stub(vars(opreg)["_DOORS"], "__version__: str"),
             "train/__init__.pyi": _door_stub({name: (module, name) for name, module in TRAINING.items()}),
             "nn/ops/__init__.pyi": _ops(), "cells/tensor_methods.pyi": _tensor_methods()}
    for manner, package in (("nd", "ndarray"), ("sym", "symbol")):
        texts[f"{package}/operators.pyi"] = _operators(manner)
        texts[f"{package}/methods.pyi"] = "".join(_methods(manner))
        for part in ("linalg", "contrib", "image"):
            texts[f"{package}/{part}.pyi"] = _namespace(manner, getattr(_SPACES[manner], part))
    return texts


def write(folder: Path) -> None:
    """Write every stub below a folder."""
    for name, text in stubs().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

"""Rules for names that NumPy has removed or renamed."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from .rules import rule
from .source import Source
from .tables import NUMPY, NUMPY_KEYWORDS

__all__ = ["names", "calls", "methods", "sizes", "numbers", "formats", "subscripts", "dtype_words"]


@rule(ast.Attribute)
def names(node: ast.Attribute, source: Source) -> None:
    """``np.float``, ``np.product``."""
    full = source.resolve(node)
    if not full.startswith("numpy.") or not isinstance(node.ctx, ast.Load) or source.is_guarded(node):
        return
    new = NUMPY.get(full.removeprefix("numpy."))
    if full == "numpy.NINF":
        source.replace(node, f"-{_module(node, source)}.inf")
    elif full == "numpy.random.random_integers":
        source.report(node, "random_integers is gone: randint, whose upper end is not included")
    elif full == "numpy.safe_eval":
        source.add_import("import ast")
        source.replace(node, "ast.literal_eval")
    elif new is None:
        return
    elif new.startswith("import "):
        if (module := new.removeprefix("import ")) not in source.bound or source.aliases.get(module) == module:
            source.add_import(new)
            source.replace(node, module)
    elif new.startswith("opreg."):
        owner, _, name = new.rpartition(".")
        if name not in source.bound or source.aliases.get(name) == new:
            source.add_import(f"from {owner} import {name}")
            source.replace(node, name)
    elif new.startswith(":"):
        if new[1:] not in source.bound:
            source.replace(node, new[1:])
        else:
            source.rename(node, {"int": "int_", "float": "float64", "bool": "bool_", "complex": "complex128",
                                 "object": "object_", "str": "str_"}.get(new[1:], node.attr))
    else:
        source.replace(node, f"{_module(node, source)}.{new}")


def _module(node: ast.AST, source: Source) -> str:
    """The text by which the code refers to NumPy."""
    while isinstance(node, ast.Attribute):
        node = node.value
        if source.resolve(node) == "numpy":
            return source.of(node)
    source.add_import("import numpy")
    return "numpy"


@rule(ast.Call)
def calls(node: ast.Call, source: Source) -> None:
    """``np.reshape(newshape=)``, ``np.percentile(interpolation=)`` and functions that were replaced by others."""
    name = source.resolve(node.func)
    if not name.startswith("numpy.") or source.is_guarded(node):
        return
    name = name.removeprefix("numpy.")
    keywords = {keyword.arg: keyword for keyword in node.keywords}
    for old, new in NUMPY_KEYWORDS.get(name, {}).items():
        if old in keywords and new not in keywords:
            start = source.span(keywords[old])[0]
            source.put(start, start + len(old), new)
    if name == "reshape" and "newshape" in keywords:
        keyword = keywords["newshape"]
        if len(node.args) == 1 and node.keywords[0] is keyword:
            start, end = source.span(keyword)  # the span of the value alone begins inside of its parentheses
            equals = source.between(start, end).index("=")
            source.put(start, start + equals + 1, "")
        else:
            source.report(node, "np.reshape has no newshape: give it as the second argument")
    elif name == "asscalar" and len(node.args) == 1:
        source.replace(node, f"{_module(node.func, source)}.asarray({source.of(node.args[0])}).item()")
    elif name == "asfarray" and len(node.args) == 1 and not node.keywords:
        source.replace(node, f"{_module(node.func, source)}.asarray({source.of(node.args[0])}, dtype=float)")
    elif name == "fromstring" and "sep" not in keywords and len(node.args) < 4:
        source.put(*source.span(node), f"{_module(node.func, source)}.frombuffer"
                   f"{source.between(source.span(node.func)[1], source.span(node)[1])}.copy()")
    elif name == "msort" and len(node.args) == 1 and not node.keywords:
        source.replace(node, f"{_module(node.func, source)}.sort({source.of(node.args[0])}, axis=0)")
    elif name == "array" and "copy" in keywords and ast.unparse(keywords["copy"].value) == "False":
        source.replace(keywords["copy"].value, "None")


@rule(ast.Call)
def methods(node: ast.Call, source: Source) -> None:
    """``x.tostring()``, ``x.ptp()``, ``x.itemset(i, v)``, methods that arrays no longer have."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr in source.functions or source.is_guarded(node) \
            or source.resolve(function):
        return
    if function.attr == "tostring" and not node.args and not node.keywords:
        source.rename(function, "tobytes")
    elif function.attr == "ptp" and "numpy" in source.aliases.values():
        arguments = [source.of(function.value), *(source.of(argument) for argument in (*node.args, *node.keywords))]
        name = next(name for name, full in source.aliases.items() if full == "numpy")
        source.replace(node, f"{name}.ptp({', '.join(arguments)})")
    elif function.attr == "itemset" and node.args and not node.keywords and isinstance(
            source.parents[node], ast.Expr):
        place = _item(source.of(function.value), function.value, node.args[:-1], source)
        if place:
            source.replace(node, f"{place} = {source.of(node.args[-1])}")


def _item(array: str, value: ast.expr, index: list[ast.expr], source: Source) -> str:
    """The target of ``itemset``: an integer is a flat index, a tuple a subscript; empty if this is unknown without
    computing the array twice."""
    text = ", ".join(source.of(part) for part in index)
    if len(index) != 1 or isinstance(index[0], ast.Tuple):
        return f"{array}[{text or '()'}]"
    if isinstance(index[0], (ast.Constant, ast.UnaryOp, ast.BinOp)):
        return f"{array}.flat[{text}]"
    if any(isinstance(each, ast.Call) for part in (value, index[0]) for each in ast.walk(part)):
        return ""
    return f"({array} if isinstance({text}, tuple) else {array}.flat)[{text}]"


@rule(ast.Call)
def sizes(node: ast.Call, source: Source) -> None:
    """``npr.choice(size=x)`` with a computed number: older NumPys accepted floats."""
    name = source.resolve(node.func)
    if not re.fullmatch(r"numpy\.random\.(choice|randint|permutation|shuffle|randn|rand)", name):
        return
    size = next((keyword.value for keyword in node.keywords if keyword.arg == "size"), None)
    if size is None and name.endswith("choice") and len(node.args) > 1:
        size = node.args[1]
    if size is not None and _number(size, source, 2):
        source.wrap(size, "int(", ")")


#: Functions that return a number, which may be a float.
_NUMBERS = {"round", "rint", "floor", "ceil", "minimum", "maximum", "min", "max", "sum", "abs", "float"}


def _number(node: ast.AST, source: Source, depth: int) -> bool:
    """Whether an expression is a number that may be a float, and certainly not a shape."""
    if isinstance(node, ast.BinOp):
        return not any(isinstance(side, (ast.Tuple, ast.List)) for side in ast.walk(node)) and (
            not isinstance(node.op, ast.FloorDiv))
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        return name in _NUMBERS
    if isinstance(node, ast.Name) and depth:
        values = source.assigned_values(scope := source.scope(node), node.id)
        return source.once(("is a number", scope, node.id, depth), lambda: any(
            _number(value, source, depth - 1) for value in values))
    return False


@rule(ast.Call)
def numbers(node: ast.Call, source: Source) -> None:
    """``float(x.asnumpy())``, ``math.exp(x.asnumpy())``: NumPy no longer converts arrays with axes to numbers."""
    name = node.func.id if isinstance(node.func, ast.Name) and node.func.id not in source.bound else ""
    if name in ("float", "int") or source.resolve(node.func).startswith("math."):
        for argument in node.args:
            _take_element(argument, source)


@rule(ast.BinOp)
def formats(node: ast.BinOp, source: Source) -> None:
    """``'%f' % x.asnumpy()``."""
    if not isinstance(node.op, ast.Mod) or not isinstance(node.left, ast.Constant) \
            or not isinstance(node.left.value, str):
        return
    codes = re.findall(r"%[-+ #0]*\d*(?:\.\d+)?[hlL]?([a-zA-Z%(*])", node.left.value)
    if "(" in codes or "*" in codes:
        return
    values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    for code, value in zip([code for code in codes if code != "%"], values):
        if code not in "sra":
            _take_element(value, source)


def _take_element(node: ast.AST, source: Source) -> None:
    """Take the single element of the result of ``asnumpy``, in files that use MXNet."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "asnumpy" \
            and source.once("uses MXNet", lambda: any(full.partition(".")[0] in ("mxnet", "opreg")
                                                      for full in source.aliases.values())):
        source.wrap(node, "", ".item()")


@rule(ast.Subscript)
def subscripts(node: ast.Subscript, source: Source) -> None:
    """``x[[slice(0, 2), 1]]``: a list of slices, which older NumPys treated as a tuple."""
    if _slices(node.slice, source):
        source.wrap(node.slice, "tuple(", ")")


def _slices(node: ast.AST, source: Source) -> bool:
    """Whether an expression is a list with slices, or a name of such lists only, in its function."""
    if isinstance(node, ast.BinOp):
        return _slices(node.left, source) or _slices(node.right, source)
    if isinstance(node, (ast.List, ast.ListComp)):
        return any(_is_slice(part) for part in (node.elts if isinstance(node, ast.List) else [node.elt]))
    if not isinstance(node, ast.Name):
        return False
    scope, word = source.scope(node), node.id
    return source.once(("is a list of slices", scope, word), lambda: _named_slices(source.named(scope, word), source))


def _named_slices(names: Sequence[ast.Name], source: Source) -> bool:
    stored = [source.parents[name] for name in names if isinstance(name.ctx, ast.Store)]
    values = [statement.value for statement in stored if isinstance(statement, ast.Assign)]
    return bool(stored) and len(values) == len(stored) and all(
        isinstance(value, (ast.List, ast.ListComp, ast.BinOp)) for value in values) and (
        any(_slices(value, source) for value in values) or any(_appends_slice(name, source) for name in names))


def _appends_slice(name: ast.Name, source: Source) -> bool:
    """Whether a name occurs in ``name.append(slice(...))``."""
    method = source.parents[name]
    call = source.parents[method]
    return isinstance(method, ast.Attribute) and method.attr == "append" and isinstance(call, ast.Call) \
        and call.func is method and bool(call.args) and _is_slice(call.args[0])


def _is_slice(node: ast.AST) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_slice(node.body) or _is_slice(node.orelse)
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "slice"


@rule(ast.Constant)
def dtype_words(node: ast.Constant, source: Source) -> None:
    """``astype('Int32')``."""
    if not isinstance(node.value, str) or not re.fullmatch(r"(U?[Ii]nt|Float|Complex)\d+|Bool", node.value) \
            or node.value.islower():
        return
    up = source.parents[node]
    if (isinstance(up, ast.Call) and node in source.positions and ast.unparse(up.func).endswith(".astype")) or (
            isinstance(up, ast.keyword) and up.arg == "dtype"):
        source.replace(node, f"'{node.value.lower()}'")

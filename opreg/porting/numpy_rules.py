"""What NumPy has no more, or has under another name."""

from __future__ import annotations

import ast
import re

from .rules import rule
from .source import Source
from .tables import NUMPY

__all__ = ["names", "calls", "sizes", "dtype_words"]


@rule(ast.Attribute)
def names(node: ast.Attribute, source: Source) -> None:
    """``np.float``, ``np.product``."""
    full = source.resolve(node)
    if not full.startswith("numpy.") or not isinstance(node.ctx, ast.Load) or source.guarded(node):
        return
    new = NUMPY.get(full.removeprefix("numpy."))
    if full == "numpy.NINF":
        source.replace(node, f"-{_module(node, source)}.inf")
    elif full == "numpy.random.random_integers":
        source.report(node, "random_integers is gone: randint, whose upper end is not included")
    elif new is not None and new.startswith(":"):
        if new[1:] not in source.bound:
            source.replace(node, new[1:])
        else:
            source.rename(node, {"int": "int_", "float": "float64", "bool": "bool_", "complex": "complex128",
                                 "object": "object_", "str": "str_"}[new[1:]])
    elif new is not None:
        source.replace(node, f"{_module(node, source)}.{new}")


def _module(node: ast.AST, source: Source) -> str:
    """The text by which NumPy itself is called."""
    while isinstance(node, ast.Attribute):
        node = node.value
        if source.resolve(node) == "numpy":
            return source.of(node)
    source.need("import numpy")
    return "numpy"


@rule(ast.Call)
def calls(node: ast.Call, source: Source) -> None:
    """``np.reshape(newshape=)`` and functions that others have taken over."""
    name = source.resolve(node.func)
    if not name.startswith("numpy.") or source.guarded(node):
        return
    name = name.removeprefix("numpy.")
    keywords = {keyword.arg: keyword for keyword in node.keywords}
    if name == "reshape" and "newshape" in keywords:
        keyword = keywords["newshape"]
        if len(node.args) == 1 and node.keywords[0] is keyword:
            source.put(source.span(keyword)[0], source.span(keyword.value)[0], "")
        else:
            source.report(node, "np.reshape has no newshape: give it as the second argument")
    elif name == "asscalar" and len(node.args) == 1:
        source.replace(node, f"{_module(node.func, source)}.asarray({source.of(node.args[0])}).item()")
    elif name == "asfarray" and len(node.args) == 1 and not node.keywords:
        source.replace(node, f"{_module(node.func, source)}.asarray({source.of(node.args[0])}, dtype=float)")
    elif name == "fromstring" and "sep" not in keywords and len(node.args) < 4:
        source.put(*source.span(node), f"{_module(node.func, source)}.frombuffer"
                   f"{source.between(source.span(node.func)[1], source.span(node)[1])}.copy()")
    elif name == "array" and "copy" in keywords and ast.unparse(keywords["copy"].value) == "False":
        source.replace(keywords["copy"].value, "None")


@rule(ast.Call)
def sizes(node: ast.Call, source: Source) -> None:
    """``npr.choice(size=x)`` of a number that is computed: NumPy took one with a point for the integer in it."""
    name = source.resolve(node.func)
    if not re.fullmatch(r"numpy\.random\.(choice|randint|permutation|shuffle|randn|rand)", name):
        return
    size = next((keyword.value for keyword in node.keywords if keyword.arg == "size"), None)
    if size is None and name.endswith("choice") and len(node.args) > 1:
        size = node.args[1]
    if size is not None and _number(size, source, 2):
        source.wrap(size, "int(", ")")


#: Functions that give one number, perhaps with a point.
_NUMBERS = {"round", "rint", "floor", "ceil", "minimum", "maximum", "min", "max", "sum", "abs", "float"}


def _number(node: ast.AST, source: Source, depth: int) -> bool:
    """Whether it is a number that may have a point, and surely no shape."""
    if isinstance(node, ast.BinOp):
        return not any(isinstance(side, (ast.Tuple, ast.List)) for side in ast.walk(node)) and (
            not isinstance(node.op, ast.FloorDiv))
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        return name in _NUMBERS
    if isinstance(node, ast.Name) and depth:
        values = source.assigned(scope := source.scope(node), node.id)
        return source.once(("is a number", scope, node.id, depth), lambda: any(
            _number(value, source, depth - 1) for value in values))
    return False


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

"""Rules by kind of node: names, methods, and lists and integers of Python 2."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .source import Source
from .tables import ATTRIBUTES, BUILTINS

__all__ = ["RULES", "rule", "looks_old"]

Rule = Callable[[Any, Source], None]
_F = TypeVar("_F", bound=Rule)

#: Rules by the kind of their nodes.
RULES: dict[type[ast.AST], list[Rule]] = {}


def rule(*kinds: type[ast.AST]) -> Callable[[_F], _F]:
    """A decorator of functions that handle nodes of these kinds and change their text."""
    def wrap(function: _F) -> _F:
        for kind in kinds:
            RULES.setdefault(kind, []).append(function)
        return function
    return wrap


_VIEWS = {"iteritems": "items", "itervalues": "values", "iterkeys": "keys", "viewitems": "items",
          "viewvalues": "values", "viewkeys": "keys"}


def looks_old(source: Source) -> bool:
    """Whether a file that Python 3 can parse uses names or methods of Python 2 only."""
    for node in source.parents:
        if isinstance(node, ast.Name):
            is_old = node.id in BUILTINS and node.id not in source.bound and not source.is_guarded(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            is_old = (method in _VIEWS and method not in source.functions and not node.args
                      and not source.is_guarded(node))
        else:
            continue
        if is_old:
            return True
    return False


@rule(ast.Name)
def builtin(node: ast.Name, source: Source) -> None:
    """``xrange`` and other builtins that were renamed."""
    new = BUILTINS.get(node.id)
    if new is None or node.id in source.bound or source.is_guarded(node) or not isinstance(node.ctx, ast.Load):
        return
    call = source.parents.get(node)
    called = isinstance(call, ast.Call) and call.func is node
    if node.id in ("file", "reload", "cmp", "execfile", "apply", "intern", "buffer") and not called:
        return
    if node.id == "reload" and isinstance(call, ast.Call) and ast.unparse(call) == "reload(sys)":
        if isinstance(up := source.parents[call], ast.Expr):
            source.replace(up, "pass")  # ``reload(sys)`` is only written for setdefaultencoding
        return
    if node.id == "execfile" and isinstance(call, ast.Call) and len(call.args) == 1:
        source.wrap_argument(call, call.args[0], "", ", globals()")
    module, _, name = new.rpartition(".")
    if not module:
        source.rename(node, name)
    elif module.startswith("opreg"):
        source.add_import(f"from {module} import {name}")
    else:
        source.add_import(f"import {module}")
        source.rename(node, new)


@rule(ast.Call)
def methods(node: ast.Call, source: Source) -> None:
    """``d.iteritems()``, ``d.has_key(k)``, ``it.next()`` and other removed methods."""
    function = node.func
    if not isinstance(function, ast.Attribute) or source.is_guarded(node):
        return
    name, is_own = function.attr, function.attr in source.functions
    if name in _VIEWS and not node.args and not is_own:
        source.rename(function, _VIEWS[name])
        # A list of a view is not needed: lazy iterators must not see changes in either Python.
    elif name == "has_key" and len(node.args) == 1 and not is_own:
        key, of = source.of(node.args[0]), source.of(function.value)
        if not isinstance(node.args[0], (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call)):
            key = f"({key})"
        up = source.parents[node]
        if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not):
            source.replace(up, f"{key} not in {of}" if _is_truth_value(up, source) else f"({key} not in {of})")
        else:
            source.replace(node, f"{key} in {of}" if _is_truth_value(node, source) else f"({key} in {of})")
    elif name == "next" and not node.args and not node.keywords and _is_iterator(function.value, source):
        source.replace(node, f"next({source.of(function.value)})")
    elif name == "setdefaultencoding" and ast.unparse(function.value) == "sys":
        if isinstance(up := source.parents[node], ast.Expr):
            source.replace(up, "pass")
    elif source.resolve(function) == "yaml.load" and len(node.args) == 1 and not node.keywords:
        source.rename(function, "safe_load")


#: Functions that return iterators.
_ITERATORS = {"iter", "enumerate", "zip", "map", "filter", "izip", "imap", "open", "walk", "reader", "cycle", "chain",
              "count", "islice", "finditer", "iteritems", "itervalues", "iterkeys"}


def _is_iterator(node: ast.AST, source: Source) -> bool:
    """Whether ``next`` accepts a value: in a file for Python 2 any value except the object of this method, whose own
    ``next`` may be called by ``__next__``; otherwise only values that are iterators."""
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        return name in _ITERATORS or name in source.generators or (source.old and name != "super")
    if isinstance(node, ast.GeneratorExp):
        return True
    if isinstance(node, ast.Name) and not source.old:
        values = source.assigned_values(scope := source.scope(node), node.id)
        return source.once(("is an iterator", scope, node.id), lambda: bool(values) and all(
            isinstance(value, (ast.Call, ast.GeneratorExp)) and _is_iterator(value, source) for value in values))
    return source.old and not (isinstance(node, ast.Name) and node.id == "self")


def _is_truth_value(node: ast.AST, source: Source) -> bool:
    up = source.parents[node]
    return isinstance(up, (ast.If, ast.While, ast.Assert, ast.Assign, ast.Return, ast.Expr, ast.BoolOp,
                           ast.keyword)) or node in source.positions \
        or (isinstance(up, ast.IfExp) and up.test is node)


@rule(ast.Attribute)
def attributes(node: ast.Attribute, source: Source) -> None:
    """``f.func_name`` and similar attributes."""
    if node.attr in ATTRIBUTES and source.old and not source.is_guarded(node):
        source.rename(node, ATTRIBUTES[node.attr])


@rule(ast.Expr)
def bare_print(node: ast.Expr, source: Source) -> None:
    """``print`` alone on a line."""
    if isinstance(node.value, ast.Name) and node.value.id == "print":
        source.wrap(node.value, "", "()")


@rule(ast.ClassDef)
def special_methods(node: ast.ClassDef, source: Source) -> None:
    """``next`` of an iterator, ``__nonzero__``, ``__div__``, and the metaclass."""
    methods = {method.name: method for method in node.body if isinstance(method, ast.FunctionDef)}
    names = {*methods, *(ast.unparse(target) for each in node.body if isinstance(each, ast.Assign)
                         for target in each.targets)}
    bases = [ast.unparse(base) for base in node.bases]
    if source.is_guarded(node):
        return
    for old, new in (("next", "__next__"), ("__nonzero__", "__bool__"), ("__div__", "__truediv__"),
                     ("__idiv__", "__itruediv__"), ("__rdiv__", "__rtruediv__")):
        if old in methods and new not in names and (set(bases) <= {"object"} or (source.old and old != "next")) and (
                old != "next" or (("__iter__" in names or source.old) and len(methods[old].args.args) == 1)):
            method = methods[old]
            _, end = source.span(method)
            source.put(end, end, f"\n\n{' ' * method.col_offset}{new} = {old}")
    for each in node.body:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__metaclass__":
            source.report(each, "a metaclass stands behind the bases: class C(B, metaclass=M)")
    for name in ("__cmp__", "__getslice__", "__setslice__", "__coerce__"):
        if name in methods and source.old:
            source.report(methods[name], f"{name} is not called by Python 3")


@rule(ast.Call)
def replace_comparison(node: ast.Call, source: Source) -> None:
    """``sort(cmp=f)``: the comparison becomes a key function."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    for keyword in node.keywords if name in ("sort", "sorted") else ():
        if keyword.arg == "cmp" and not any(keyword.arg == "key" for keyword in node.keywords):
            source.add_import("import functools")
            source.replace(keyword, f"key=functools.cmp_to_key({source.of(keyword.value)})")
    if name == "sort" and len(node.args) == 1 and not node.keywords and isinstance(
            node.args[0], (ast.Lambda, ast.Name)) and source.old and isinstance(source.parents[node], ast.Expr):
        source.add_import("import functools")
        source.wrap_argument(node, node.args[0], "key=functools.cmp_to_key(", ")")
    if name == "input" and "input" not in source.bound and source.old and isinstance(node.func, ast.Name) \
            and "raw_input" not in source.text:
        source.report(node, "input() of Python 2 evaluates what is typed", warning=True)


# Lists.

_LAZY = {"zip", "map", "filter", "range"}
_TAKES_ANY = {"list", "tuple", "set", "frozenset", "dict", "sorted", "sum", "min", "max", "any", "all", "enumerate",
              "zip", "map", "filter", "iter", "OrderedDict", "Counter", "deque", "chain", "reduce", "functools.reduce",
              "itertools.chain", "collections.OrderedDict", "collections.Counter", "collections.deque", "isinstance"}
_TAKES_ANY_METHODS = {"join", "extend", "update", "writelines", "fromkeys", "from_iterable"}
_NEEDS_LIST = {"array", "asarray", "concatenate", "stack", "vstack", "hstack", "shuffle", "choice", "sample", "dumps",
               "permutation", "dump", "deepcopy", "copy"}
_LIST_METHODS = {"sort", "append", "index", "extend", "remove", "insert", "pop", "reverse", "count"}


def _lazy(node: ast.AST, source: Source) -> str:
    """The name of a function that returns an iterator or view where Python 2 returned a list; else empty."""
    if not isinstance(node, ast.Call) or source.is_guarded(node):
        return ""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id if function.id in _LAZY and function.id not in source.bound and node.args else ""
    if isinstance(function, ast.Attribute) and function.attr in ("keys", "values", "items") and not node.args \
            and not node.keywords and function.attr not in source.functions:
        return function.attr
    return ""


@rule(ast.Call)
def lists(node: ast.Call, source: Source) -> None:
    """``zip``, ``map``, ``filter``, ``range``, ``d.keys()`` where a list is meant."""
    name = _lazy(node, source)
    if not name or source.resolve(node.func):
        return
    if _fails(node, name, source) or _named_list(node, name, source) or _changes_meanwhile(node, source) \
            or (source.old and name != "range" and not _iterates(node, source)):
        source.wrap(node, "list(", ")")


def _fails(node: ast.AST, name: str, source: Source) -> bool:
    """Whether the use of an iterator or view as a list fails in Python 3, or has another result."""
    up = source.parents[node]
    if isinstance(up, ast.Subscript) and up.value is node:
        return name != "range" or not isinstance(up.ctx, ast.Load)
    if isinstance(up, ast.BinOp):
        return isinstance(up.op, (ast.Add, ast.Mult))
    if isinstance(up, ast.Attribute):
        return up.attr in (_LIST_METHODS - {"index", "count"} if name == "range" else _LIST_METHODS)
    if isinstance(up, ast.Call) and node in source.positions:
        called = up.func.attr if isinstance(up.func, ast.Attribute) else ast.unparse(up.func)
        if name == "range":
            return called == "shuffle"
        return called in _NEEDS_LIST or (name in ("zip", "map", "filter") and called in ("len", "reversed"))
    return False


def _named_list(node: ast.AST, name: str, source: Source) -> bool:
    """Whether the value is assigned to a name that is used as a list in the same function."""
    up = source.parents[node]
    if not isinstance(up, ast.Assign) or len(up.targets) != 1 or not isinstance(up.targets[0], ast.Name):
        return False
    word = up.targets[0].id
    scope = source.scope(up)
    stands = source.named(scope, word)
    stored = any(isinstance(use.ctx, ast.Store) and use is not up.targets[0] for use in stands)
    return not stored and any(isinstance(use.ctx, ast.Load) and _fails(use, name, source) for use in stands)


def _changes_meanwhile(node: ast.Call, source: Source) -> bool:
    """Whether a loop iterates over the keys of a dict from which its body removes entries."""
    up = source.parents[node]
    if not isinstance(up, ast.For) or up.iter is not node or not isinstance(node.func, ast.Attribute):
        return False
    of = ast.unparse(node.func.value)
    for each in (each for statement in up.body for each in ast.walk(statement)):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Del) and ast.unparse(each.value) == of:
            return True
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "pop" \
                and ast.unparse(each.func.value) == of and isinstance(source.parents[each], (ast.Expr, ast.Assign)):
            return True
    return False


def _iterates(node: ast.AST, source: Source) -> bool:
    """Whether the enclosing expression accepts any iterable."""
    up = source.parents[node]
    if isinstance(up, (ast.For, ast.comprehension)):
        return up.iter is node
    if isinstance(up, ast.Compare):
        return up.left is not node and all(isinstance(each, (ast.In, ast.NotIn)) for each in up.ops)
    if isinstance(up, (ast.Starred, ast.YieldFrom)):
        return True
    if isinstance(up, ast.Assign):
        return all(isinstance(target, (ast.Tuple, ast.List)) for target in up.targets)
    if isinstance(up, ast.Call) and node in source.positions:
        if isinstance(up.func, ast.Attribute) and up.func.attr in _TAKES_ANY_METHODS:
            return True
        return ast.unparse(up.func) in _TAKES_ANY or (_lazy(node, source) in _VIEWS.values() \
                                                      and ast.unparse(up.func) in ("len", "reversed"))
    return isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Add)


# Integers.

#: Functions with integer arguments, by the last part of their names: the positions of these arguments, or all.
_INTEGERS: dict[str, tuple[int, ...] | None] = {
    "range": None, "xrange": None, "randint": None, "randrange": None, "reshape": None, "zeros": (0,), "ones": (0,),
    "empty": (0,), "full": (0,), "tile": (1,), "repeat": (1,), "linspace": (2,), "roll": (1,), "islice": None,
    "eye": None, "identity": (0,), "Reshape": None, "split": (1,), "sample": (1,)}
_INTEGER_KEYWORDS = {"shape", "size", "num_hidden", "num_filter", "batch_size", "newshape", "low", "high",
                     "num_outputs", "num_group", "reps"}


@rule(ast.BinOp)
def division(node: ast.BinOp, source: Source) -> None:
    """``/`` where an integer must stand; elsewhere in a file for Python 2 a warning."""
    if not isinstance(node.op, ast.Div) or source.is_guarded(node) or "division" in source.futures:
        return
    if _must_be_integer(node, source):
        left_end, right_start = source.span(node.left)[1], source.span(node.right)[0]
        between = source.between(left_end, right_start)
        if _is_float(node):
            source.wrap(node, "int(", ")")
        elif between.count("/") == 1:
            source.put(left_end, right_start, between.replace("/", "//"))
    elif source.old and not _is_float(node):
        source.report(node, "/ of two integers gave an integer in Python 2: // where that is meant", warning=True)


@rule(ast.AugAssign)
def division_in_place(node: ast.AugAssign, source: Source) -> None:
    """``/=`` in a file for Python 2."""
    if isinstance(node.op, ast.Div) and source.old and not _is_float(node.value) \
            and "division" not in source.futures:
        source.report(node, "/= of two integers gave an integer in Python 2: //= where that is meant", warning=True)


_FLOATS = {"float", "float32", "float64", "sqrt", "exp", "log", "log2", "mean", "time", "clock", "perf_counter", "ceil",
           "floor"}


def _is_float(node: ast.AST) -> bool:
    """Whether a float occurs in the expression."""
    if isinstance(node, ast.BinOp):
        return _is_float(node.left) or _is_float(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_float(node.operand)
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in _FLOATS
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def _arithmetic(node: ast.AST, source: Source) -> Iterator[ast.AST]:
    """The enclosing nodes of a node that are arithmetic or a tuple, and the first one that is neither."""
    for up in source.ancestors(node):
        yield up
        if not isinstance(up, (ast.UnaryOp, ast.Tuple, ast.List)) and not (
                isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))):
            return


def _must_be_integer(node: ast.BinOp, source: Source) -> bool:
    below: ast.AST = node
    for up in _arithmetic(node, source):
        if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult) and any(
                isinstance(side, ast.List) for side in (up.left, up.right) if side is not below):
            return True
        if isinstance(up, ast.Slice):
            return True
        if isinstance(up, ast.Subscript) and up.slice is below:
            return (source.old and not isinstance(up.value, ast.Name)) or _all_slices(below)
        if isinstance(up, ast.keyword):
            return up.arg in _INTEGER_KEYWORDS and not (up.arg in ("low", "high", "size") and _continuous(up, source))
        if isinstance(up, ast.Call) and below in source.positions:
            name = up.func.attr if isinstance(up.func, ast.Attribute) else ast.unparse(up.func)
            where = _INTEGERS.get(name, ())
            return where is None or source.positions[below] in where
        if isinstance(up, (ast.Return, ast.Assign)) and isinstance(below, (ast.Tuple, ast.List)):
            function = source.scope(up)
            return source.old and isinstance(function, ast.FunctionDef) and function.name == "infer_shape"
        below = up
    return False


def _all_slices(node: ast.AST) -> bool:
    return isinstance(node, ast.Tuple) and any(isinstance(elt, ast.Slice) for elt in node.elts)


def _continuous(keyword: ast.keyword, source: Source) -> bool:
    """Whether a call has float bounds, as ``uniform(low=, high=)``."""
    call = source.parents[keyword]
    return keyword.arg != "size" and isinstance(call, ast.Call) and not ast.unparse(call.func).endswith("randint")

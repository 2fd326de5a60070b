"""Groups of nodes guessed from their names: ``stage1_unit2_conv1`` belongs to ``unit2`` of ``stage1``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from opreg.core.graph import Node

__all__ = ["Path", "by_cells", "by_names", "short_name"]

#: The groups around a node, the outermost first.
Path = tuple[str, ...]

_BREAK = re.compile(r"[._/]")
_BACKWARD = "_backward"


def _operators(nodes: Iterable[Node]) -> set[str]:
    """The names of operators, in the form used in default names of nodes."""
    operator_names: set[str] = set()
    for node in nodes:
        if node.op is not None:
            operator_names.update(name.lower().strip("_") for name in (node.op.name, *node.attrs.get("operators", ())))
    return operator_names


def _without_number(name: str) -> set[str]:
    """The name without one, several or all of the digits at its end, and unchanged: operators such as ``linalg_gemm2``
    end in a digit."""
    return {name[:end] for end in range(len(name.rstrip("0123456789")), len(name) + 1)}


def _scope(name: str, operators: set[str]) -> Path:
    """The parts of a name, without the operator's or variable's own name."""
    parts = [part for part in _BREAK.split(name.removesuffix(_BACKWARD)) if part]
    for i in range(len(parts)):
        if not operators.isdisjoint(_without_number("_".join(parts[i:]))):
            return tuple(parts[:i])
    return tuple(parts[:-1])


def _has_default_name(node: Node) -> bool:
    """Whether a node has a default name, as that of ``a + b``."""
    name = node.name.removesuffix(_BACKWARD)
    if node.op is None:
        return False
    operators = {alias.strip("_").lower() for alias in (node.op.name, *node.op.aliases)}
    return not operators.isdisjoint(bare.strip("_").lower() for bare in _without_number(name) - {name})


def _scopes(nodes: Sequence[Node]) -> list[Path]:
    """The parts of each node's name.

    A node with a default name belongs to the deepest group that contains both an input and a consumer, so that no line
    leaves a group and re-enters it. Neighbours with default names are skipped: their neighbours count instead.
    """
    operators, unnamed = _operators(nodes), {node for node in nodes if _has_default_name(node)}
    scopes = {node: () if node in unnamed else _scope(node.name, operators) for node in nodes}
    above: dict[Node, set[Path]] = {node: set() for node in nodes}
    below: dict[Node, set[Path]] = {node: set() for node in nodes}
    for node in nodes:
        for source, _ in node.inputs:
            if source in above:
                above[node] |= above[source] if source in unnamed else _prefixes(scopes[source])
    for node in reversed(nodes):
        for source, _ in node.inputs:
            if source in unnamed:
                below[source] |= below[node] if node in unnamed else _prefixes(scopes[node])
    return [max(sorted(above[node] & below[node]), key=len, default=()) if node in unnamed else scopes[node]
            for node in nodes]


def _prefixes(scope: Path) -> set[Path]:
    """The groups that a name in parts may belong to."""
    return {scope[:depth] for depth in range(1, len(scope) + 1)}


def by_names(nodes: Sequence[Node]) -> list[Path]:
    """The groups around each node, guessed from names: those with at least two operators, but not all.

    Examples
    --------
    >>> from opreg import sym
    >>> x = sym.Variable("x")
    >>> for name in ("a_1", "a_2", "b"):
    ...     x = sym.relu(x, name=name)
    >>> by_names(x._graph().nodes)
    [(), ('a',), ('a',), ()]
    """
    scopes = _scopes(nodes)
    count = Counter(scope[:depth] for node, scope in zip(nodes, scopes) if node.op is not None
                    for depth in range(len(scope) + 1))
    paths = []
    for scope in scopes:
        path, joined, around = [], [], count[()]
        for depth in range(1, len(scope) + 1):
            inside = count[scope[:depth]]
            joined.append(scope[depth - 1])
            if 1 < inside < around:
                path.append("_".join(joined))
                joined, around = [], inside
        paths.append(tuple(path))
    return paths


def by_cells(nodes: Sequence[Node], cells: Mapping[Path, str]) -> list[Path]:
    """The Cells around each node, without a Cell that contains everything; names of nodes start with the Cell's
    path."""
    ways = {"_".join(path): path for path in cells}
    paths: list[Path] = []
    for node in nodes:
        parts = _BREAK.split(node.name)
        paths.append(next((ways[way] for end in range(len(parts) - 1, 0, -1)
                           if (way := "_".join(parts[:end])) in ways), ()))
    count = Counter(path[:depth] for path in paths for depth in range(1, len(path) + 1))
    return [path[:sum(count[path[:depth]] > 1 for depth in range(1, len(path) + 1))] for path in paths]


def short_name(node: Node, path: Path) -> str:
    """The name of a node relative to its group."""
    begin = "_".join(path)
    name = node.name
    if begin and len(name) > len(begin) and _BREAK.sub("_", name[:len(begin)]) == begin:
        name = name[len(begin):].lstrip("._/") or name
    if node.op is None:
        return name
    bare, operator = name.rstrip("0123456789"), "_" + node.op.name.lower().strip("_")
    return bare.removesuffix(operator) or name if bare.endswith(operator) else name  # the layer's name is clearer

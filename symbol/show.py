"""The text of ``Symbol.debug_str``."""

from __future__ import annotations

from opreg.core.graph import Graph
from opreg.core.reports import report

from .entries import DEBUG_STR
from .json import stored_attrs, stored_name, versions

__all__ = ["debug_str"]


@DEBUG_STR.provide
def debug_str(graph: Graph) -> str:
    """List every node with its inputs and attributes, in MXNet's format.

    Examples
    --------
    >>> from opreg import symbol
    >>> print(symbol.flatten(symbol.Variable("x"), name="flat").debug_str(), end="")
    Symbol Outputs:
        output[0]=flat(0)
    Variable:x
    --------------------
    Op:Flatten, Name=flat
    Inputs:
        arg[0]=x(0) version=0
    """
    lines = []
    if len(graph.nodes) > 1:
        lines = ["Symbol Outputs:", *(f"\toutput[{i}]={node.name}({index})"
                                      for i, (node, index) in enumerate(graph.heads))]
    version = versions(graph)
    for node in graph.nodes:
        if node.op is None:
            lines.append(f"Variable:{node.name}")
            continue
        lines += ["-" * 20, f"Op:{stored_name(node)}, Name={node.name}", "Inputs:"]
        for i, ((source, index), count) in enumerate(zip(node.inputs, version.get(node, ()))):
            lines.append(f"\targ[{i}]={source.name}({index})" + (f" version={count}" if source.op is None else ""))
        attrs = stored_attrs(node)
        if attrs:
            lines += ["Attrs:", *(f"\t{name}={text}" for name, text in attrs.items())]
    return report(lines) + "\n"

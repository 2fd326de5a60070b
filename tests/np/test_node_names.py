"""Names of nodes that functions of ``np`` and ``npx`` add to graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opreg as mx
from opreg import sym
from tests.questions import of_each


@of_each([
    ("mean0", lambda x: sym.np.mean(x, axis=0)), ("einsum0", lambda x: sym.np.einsum("ij,kj->ik", x, x)),
    ("add0", lambda x: x + x), ("rsubtract_scalar0", lambda x: 2 - x), ("zeros0", lambda x: sym.np.zeros((2,))),
    ("arange0", lambda x: sym.np.arange(3)), ("softmax0", lambda x: sym.npx.softmax(x)),
    ("batch_norm0", lambda x: sym.npx.batch_norm(x, *[sym.var("s").as_np_ndarray()] * 4)),
    ("fully_connected0", lambda x: sym.npx.fully_connected(x, num_hidden=3)),
    ("mine", lambda x: sym.npx.fully_connected(x, num_hidden=3, name="mine")),
])
def test_nodes_are_named_after_functions(name: str, compose: Callable[[Any], Any]) -> None:
    """Files of MXNet have these names, and variables made for missing inputs begin with them."""
    with mx.name.NameManager():
        made = compose(sym.var("x").as_np_ndarray())
    assert made.name == name and repr(made) == f"<_Symbol {name}>" and repr(made.as_nd_ndarray()) == f"<Symbol {name}>"
    assert all(each.startswith((f"{name}_", "x", "s")) for each in made.list_arguments())

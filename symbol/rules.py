"""What gradient rules are given when a graph is grown: symbols whose nodes are noted, and what is known of them."""

from __future__ import annotations

import contextlib
import math
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from opreg.custom_gradient import REHEARSED, NeedsNumbers
from opreg.graph import Entry, Node, fail
from opreg.op import Op
from opreg.registry import ops
from opreg.spec import Shape, Spec, known
from opreg.value import Value

from .infer import declared_shape
from .symbol import Symbol

__all__ = ["RULES", "RuleSymbol", "Specs", "rehearsed"]


class Specs:
    """Shapes and dtypes of entries, as far as they follow from what is known of some nodes; found when asked for.

    Parameters
    ----------
    nodes : mapping of Node to list of Spec
        Of nodes whose specs are known, an entry each.
    """

    def __init__(self, nodes: Mapping[Node, Sequence[Spec]] = {}):
        self._known = nodes
        self._found: dict[Node, Sequence[Spec]] = {}

    def __call__(self, entry: Entry) -> Spec:
        waiting = [entry[0]]
        while waiting:
            node = waiting[-1]
            missing = [] if self._of(node) else [source for source, _ in node.inputs if not self._of(source)]
            if not missing:
                self._found[waiting.pop()] = self._of(node) or self._follows(node)
            waiting += missing
        return self._found[entry[0]][entry[1]]

    def _of(self, node: Node) -> Sequence[Spec] | None:
        return self._known.get(node) or self._found.get(node)

    def _follows(self, node: Node) -> list[Spec]:
        """What an operator makes of its inputs, and what a variable declares."""
        if node.op is None:
            declared = node.tags.get("__shape__")
            return [Spec(declared_shape(declared) if declared else None)]
        ins = [self._found[source][i] if source in self._found else self._known[source][i] for source, i in node.inputs]
        unknown = [None] * node.count
        try:
            _, shapes = node.op.infer_shapes([spec.shape for spec in ins], list(unknown), node.attrs)
            _, dtypes = node.op.infer_dtypes([spec.dtype for spec in ins], list(unknown), node.attrs)
        except Exception as error:
            fail(error, node)
        return list(map(Spec, shapes, dtypes))


class _Rules(threading.local):
    """What gradient rules of a thread are making.

    Attributes
    ----------
    made : list of Node
        Where nodes are noted.
    source : Node or None
        Of which node they are the gradient.
    specs : Specs
        What is known of entries.
    """

    source: Node | None = None

    def __init__(self) -> None:
        self.made: list[Node] = []
        self.specs = Specs()

    @contextlib.contextmanager
    def noting(self, made: list[Node], source: Node | None = None, specs: Specs | None = None) -> Iterator[None]:
        """A stretch of code in which rules make nodes of a list."""
        before = self.made, self.source, self.specs
        self.made, self.source, self.specs = made, source, specs or self.specs
        try:
            yield
        finally:
            self.made, self.source, self.specs = before


RULES = _Rules()


class RuleSymbol(Symbol):
    """What gradient rules are given: a symbol that acts as an array without numbers.

    Its arithmetic broadcasts, it has a shape and a dtype where these are known, and its nodes are noted as made.
    """

    __slots__ = ()
    _broadcasts = True
    _called = Value._called

    def _apply(self, op: Op, values: Sequence[Any], given: Any) -> Any:
        attrs = op.complete(given)
        inputs = []
        for value in values:
            if not isinstance(value, Symbol):
                raise NeedsNumbers(f"a gradient calls operator {op.name} on {type(value).__name__} beside values that "
                                   "have no numbers")
            inputs.append(value._entries[0])
        source = RULES.source
        name, tags, where = ("gradient", {}, None) if source is None else (
            f"{source.name}_backward", source.tags, source.where)
        node = Node(op, name, attrs, inputs, given, tags, where)
        RULES.made.append(node)
        visible = op.visible(attrs)
        if visible == 1:
            return RuleSymbol(((node, 0),))
        return [RuleSymbol(((node, i),)) for i in range(visible)]

    def _follow(self, op: Op, attrs: Any, values: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The operator applied by a function of ``nd``: how many outputs a user sees, and the outputs."""
        found = self._apply(op, values, attrs)
        outs = found if isinstance(found, list) else [found]
        return types.SimpleNamespace(visible=len(outs)), outs

    _surface = vars(Value)["_surface"]

    # -------------------------------------------------------------------------------------------- questions

    def _known(self, what: str) -> Any:
        return NeedsNumbers(f"the {what} of {self!r} is not known where its gradient is made: bind the symbol, or "
                            "declare the shapes of its variables with sym.var(name, shape=…)")

    @property
    def shape(self) -> Shape:
        """Dimensions."""
        shape = RULES.specs(self._entries[0]).shape
        if shape is None or not known(shape):
            raise self._known("shape")
        return shape

    @property
    def dtype(self) -> type:
        """The dtype as a NumPy scalar class."""
        dtype = RULES.specs(self._entries[0]).dtype
        if dtype is None:
            raise self._known("dtype")
        return dtype.type

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return self if self.ndim < 2 else ops.transpose(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts):
            raise self._no_numbers()
        found = ops._subscript(self, key=key)
        return found if self.ndim and found.ndim else found.reshape((1,))

    # ------------------------------------------------------------------------------------------------ methods

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)):
            shape = tuple(shape[0])
        return ops.Reshape(self, shape=tuple(keywords.pop("shape", shape)), **keywords)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return ops.Cast(self, dtype=dtype)

    def copy(self) -> Any:
        """The same numbers in another node."""
        return ops._copy(self)

    def detach(self) -> Any:
        """The same numbers, as a constant to whoever differentiates."""
        return ops.BlockGrad(self)

    def _no_numbers(self, *_: Any, **__: Any) -> NeedsNumbers:
        return NeedsNumbers(f"{self!r} stands for numbers that are not there where a gradient is made")

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise self._no_numbers()

    def _lift(self, value: Any) -> NoReturn:
        self._refuse()

    def _binary(self, name: str, other: Any, reflected: bool) -> Any:
        if isinstance(other, np.ndarray):
            self._refuse()
        return super()._binary(name, other, reflected)

    __array_ufunc__ = __array_function__ = _refuse  # type: ignore[assignment]
    __bool__ = __float__ = __int__ = __index__ = __setitem__ = _refuse
    __array__ = asnumpy = asscalar = item = tolist = as_in_context = wait_to_read = _refuse
    context = ctx = property(_refuse)
    #: ``x += y`` makes a new value, since what a rule is shown it may not change.
    __iadd__, __isub__, __imul__, __itruediv__, __imod__ = [
        vars(Value)[f"__{name}__"] for name in ("add", "sub", "mul", "truediv", "mod")]


@REHEARSED.fill
@contextlib.contextmanager
def rehearsed() -> Iterator[Callable[[Any], Any]]:
    """A stretch of code in which a rule is tried on symbols in the place of arrays; gives what makes them."""
    specs: dict[Node, list[Spec]] = {}

    def stand(array: Any) -> RuleSymbol:
        node = Node(None, "array")
        specs[node] = [Spec(array.shape, array._data.dtype)]
        return RuleSymbol(((node, 0),))

    with RULES.noting([], None, Specs(specs)):
        yield stand

"""Symbol: one or several outputs of nodes of a graph. An operator called on symbols adds a node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import numpy as np

from opreg.core.arguments import input_error, split, superfluous, value_error
from opreg.core.attrs import to_text
from opreg.core.backward_graph import gradients
from opreg.core.cache import cached
from opreg.core.graph import Entry, Node, rewrite
from opreg.core.op import Op
from opreg.core.other_names import elsewhere
from opreg.core.placeholder import resolve
from opreg.core.registry import user_operator
from opreg.core.reports import SVG, report
from opreg.core.rules import Attrs
from opreg.core.settings import dimensions, named_methods, number
from opreg.core.slots import Slot
from opreg.core.spec import dtype_flag
from opreg.core.value import Value
from opreg.errors import (
    ArgumentError,
    AttrError,
    OpError,
    SubscriptError,
    did_you_mean,
    list_names,
    note,
    other_count,
    user_line,
    warn,
)
from opreg.ndarray import autograd
from opreg.ndarray.ndarray import _STORAGE_TYPE_STR_TO_ID, AS_NUMPY, STORAGE_TYPES
from opreg.ndarray.protocols import BINARY_METHODS
from opreg.typing import DTypeLike, ShapeLike

from .entries import Entries, refuse_declared
from .naming import HIDDEN, attributes, new_name, output_name

if TYPE_CHECKING:

    from .methods import Methods  # a stub, made from the operators
else:
    Methods = Value

__all__ = ["Symbol", "Variable", "var", "Group", "create", "Custom", "output_name",
           "NotImplementedForSymbol"]

T = TypeVar("T")

#: Gives the function of ``sym`` that has a name.
SURFACE = Slot("graphs")


class Initializer(Protocol):
    """An initializer of a variable, which is stored in files as text."""

    def dumps(self) -> str:
        """The initializer as text."""


class NotImplementedForSymbol(OpError, NotImplementedError, TypeError):
    """An operation on a symbol needs the values of an array."""


#: Prefix of the operators of ``np`` and ``npx``. The names of their nodes begin with the function: ``mean0``.
_NUMPY_PREFIX = re.compile("^_np[ix]?_")
# First parts of the names of nodes that Python's operators make.
_HINTS = {
    "elemwise_add": "_plus", "elemwise_sub": "_minus", "elemwise_mul": "_mul", "elemwise_div": "_div",
    "_plus_scalar": "_plusscalar", "_minus_scalar": "_minusscalar", "_rminus_scalar": "_rminusscalar",
    "_mul_scalar": "_mulscalar", "_div_scalar": "_divscalar", "_rdiv_scalar": "_rdivscalar",
    "_mod_scalar": "_modscalar", "_rmod_scalar": "_rmodscalar", "_power_scalar": "_powerscalar",
    "_rpower_scalar": "_rpowerscalar", "_maximum_scalar": "_maximumscalar", "_minimum_scalar": "_minimumscalar",
    "_hypot_scalar": "_hypotscalar",
}


#: Attributes of arrays that symbols lack, each with advice for the error.
_OF_NUMBERS = {
    **dict.fromkeys(("shape", "ndim", "size"), "Shapes follow from those of its arguments: infer_shape(name=shape, ...)"
                    " finds them, and the operator shape_array gives them in the graph"),
    "dtype": "Dtypes follow from those of its arguments: infer_type(name=dtype, ...) finds them",
    "attach_grad": "Gradients are an executor's: bind with args_grad, then run forward(is_train=True) and backward()",
}


@cached(256)
def _no_attribute(kind: type, name: str) -> str:
    public = [attribute for attribute in dir(kind) if not attribute.startswith("_")]
    words = _OF_NUMBERS.get(name) or elsewhere(name)
    return f"a {kind.__name__} has no attribute {name!r}. {words or did_you_mean(name, public)}"


@autograd.SYMBOL.provide
@named_methods()
class Symbol(Entries, Methods):
    """One or several entries of a graph.

    Arithmetic between symbols is element-wise and does not broadcast; ``broadcast_add`` and the other ``broadcast_``
    operators do. ``Variable`` and operators make symbols; programs do not call this class.

    Examples
    --------
    >>> x = Variable("x")
    >>> (x * 2).list_arguments()
    ['x']
    """

    __slots__ = ()
    _rank: float = 2
    _shown_as = "Symbol"
    _broadcasts = False
    __hash__ = None  # type: ignore[assignment]  # == makes a symbol
    __array_priority__ = 1000.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute ``number + symbol`` for a number of NumPy, and refuse NumPy's functions."""
        name = ufunc.__name__
        if method == "__call__" and not keywords and name in BINARY_METHODS and inputs[1] is self:
            number = inputs[0][()] if isinstance(inputs[0], np.ndarray) else inputs[0]  # comparisons give 0-d arrays
            result = getattr(self, BINARY_METHODS[name][1])(number)
            if result is not NotImplemented:
                return result
        raise NotImplementedForSymbol(
            f"np.{name}: {self!r} has no values, which NumPy's functions need: write mx.sym.{name}(…), or make the "
            f"function an operator by @mx.operator.define(traced=True)")

    if not TYPE_CHECKING:  # otherwise a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(_no_attribute(type(self), name))

    def as_nd_ndarray(self) -> Symbol:
        """This symbol, as it follows the conventions of ``mx.sym``."""
        return self

    def as_np_ndarray(self) -> Any:
        """The same outputs as a symbol that follows NumPy's conventions, as those of ``mx.np`` do."""
        return AS_NUMPY.function(self)

    # --------------------------------------------------------------------------------------------- operators

    def _apply(self, op: Op, values: Sequence[Symbol | None], written: Mapping[str, Any]) -> Symbol:
        return _node(op, values, op.complete(written), written, None, None, _HINTS.get(op.name, op.name))

    def _invoke(self, op: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Symbol:
        return create(op, args, keywords, "custom", {"op_type": op.op_type})

    @classmethod
    def _surface(cls, name: str) -> Callable:
        return SURFACE.function(name)

    def reshape(self, *shape: Any, **keywords: Any) -> Symbol:
        """Apply the operator ``reshape``; the shape is a tuple or separate integers."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)):
            shape = tuple(shape[0])
        return self._surface("reshape")(self, shape=tuple(keywords.pop("shape", shape)), **keywords)

    def astype(self, dtype: DTypeLike) -> Symbol:
        """Apply the operator ``cast``."""
        return self._surface("cast")(self, dtype=dtype)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedForSymbol(f"{self!r} has no values before it is bound: bind it, or call eval")

    __bool__ = __iadd__ = __isub__ = __imul__ = __itruediv__ = __imod__ = __float__ = __int__ = _refuse
    asnumpy = asscalar = wait_to_read = backward = copy = as_in_context = detach = __array__ = _refuse

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (type(self)((entry,)) for entry in self._entries)

    def __getitem__(self, key: int | str | slice) -> Symbol:
        if isinstance(key, str):
            names = self.list_outputs()
            places = [i for i, name in enumerate(names) if name == key]
            if len(places) != 1:
                what = "there is no" if not places else "more than one"
                raise ArgumentError(f"{self!r}: {what} output {key!r}. {did_you_mean(key, names)}")
            return type(self)((self._entries[places[0]],))
        if isinstance(key, slice):
            return type(self)(self._entries[key])
        if not isinstance(key, (int, np.integer)):
            raise ArgumentError(f"{self!r}: select outputs by index, name or slice, got {type(key).__name__}")
        if not -len(self._entries) <= key < len(self._entries):
            raise SubscriptError(f"{self!r}: there is no output {key}; its outputs, from 0 on, are "
                             f"{list_names(self.list_outputs())}")
        return type(self)((self._entries[key],))

    def __repr__(self) -> str:
        if self.name is not None:
            return report([f"<{self._shown_as} {self.name}>"])
        return report([f"<{self._shown_as} group [{', '.join(node.name for node, _ in self._entries)}]>"])

    def _repr_svg_(self) -> str | None:
        picture: str | None = SVG.function(self)
        return picture

    def __copy__(self) -> Symbol:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[Any, Any]) -> Symbol:
        # symbols that share nodes still share them after they are copied together
        copies: dict[Node, Node] = memo.setdefault(Node, {})
        for node in self._graph().nodes:  # each copy has its own nodes, since names and attributes of nodes may be set
            if node not in copies:
                copies[node] = node.copy([(copies[source], i) for source, i in node.inputs])
        return Symbol([(copies[node], i) for node, i in self._entries])

    def __call__(self, *args: Symbol, **keywords: Any) -> Symbol:
        """Put other symbols in the place of variables, by position or by name.

        Examples
        --------
        >>> inner, outer = Variable("x") * 2, Variable("y") + 1
        >>> outer(y=inner).list_arguments()
        ['x']
        """
        name = keywords.pop("name", None)
        for value in (*args, *keywords.values()):
            if not isinstance(value, Symbol):
                raise ArgumentError(f"compose: expected symbols, got {type(value).__name__}; eval and bind compute the "
                                "symbol on arrays, as in symbol.eval(data=x)")
        if args and keywords:
            raise ArgumentError("compose: pass symbols by position or by name, not both")
        arguments = self.list_arguments()
        if len(args) > len(arguments):
            raise ArgumentError(f"compose: {self!r} has {len(arguments)} arguments, got {len(args)} symbols")
        places = dict(zip(arguments, args)) or dict(keywords)
        for key in places:
            if key not in arguments:
                raise ArgumentError(f"compose: {self!r} has no argument {key!r}. {did_you_mean(key, arguments)}")
        head = self._entries[0][0] if name and len({node for node, _ in self._entries}) == 1 else None

        def change(node: Node, inputs: list[Entry]) -> list[Entry] | None:
            if node.op is None:
                return [places[node.name]._single_entry(node.name)] if node.name in places else None
            if node is head:
                renamed = node.copy(inputs, name)
                return [(renamed, i) for i in range(node.count)]
            return None

        return Symbol(rewrite(self._graph(), change).heads)

    # ------------------------------------------------------------------------------------------------ graphs

    def get_internals(self) -> Symbol:
        """The outputs of all nodes of the graph, in topological order.

        Examples
        --------
        >>> (Variable("x") * 2 + 1).get_internals().list_outputs()[0]
        'x'
        """
        return Symbol([(node, i) for node in self._graph().nodes
                       for i in range(1 if node.op is None else node.op.signature.visible(node.attrs))])

    def get_children(self) -> Symbol | None:
        """The inputs of the nodes that compute these outputs; None where they are variables."""
        entries = [entry for node in dict.fromkeys(node for node, _ in self._entries) for entry in node.inputs]
        return Symbol(entries) if entries else None

    def gradient(self, wrt: Sequence[str]) -> Symbol:
        """A symbol that computes the gradients of the sum of all outputs with respect to arguments.

        Examples
        --------
        >>> x = Variable("x")
        >>> (x * x).gradient(["x"]).list_arguments()
        ['x']
        """
        wrt = [wrt] if isinstance(wrt, str) else list(wrt)
        graph = resolve(self._graph())
        arguments = {node.name: node for node in graph.variables()[0]}
        for name in wrt:
            if name not in arguments:
                raise ArgumentError(f"gradient: {self!r} has no argument {name!r}. {did_you_mean(name, arguments)}")
        return Symbol(gradients(graph, [arguments[name] for name in wrt]))

    def grad(self, wrt: Sequence[str]) -> Symbol:
        """The same as ``gradient``."""
        return self.gradient(wrt)


# ------------------------------------------------------------------------------------------------ making


def _node(op: Op, values: Sequence[Symbol | None], attrs: Attrs, written: Mapping[str, Any], name: str | None,
          tags: dict[str, str] | None, hint: str) -> Symbol:
    """A symbol of a new node. An input that is None becomes a variable, named after the node and the input."""
    name = new_name(name, _NUMPY_PREFIX.sub("", hint.lower()))
    tags = attributes(tags)
    if tags:
        refuse_declared(op, name, tags, written)
    where = user_line()
    names = op.signature.inputs(attrs)
    if len(values) != len(names):
        raise ArgumentError(f"operator {op.name}, node {name!r}: {other_count(names, len(values))}")
    inputs: list[Entry] = []
    for key, value in zip(names, values):
        if isinstance(value, Symbol):
            inputs.append(value._entries[0] if len(value._entries) == 1 else
                          value._single_entry(f"operator {op.name}, node {name!r}, input {key}"))
        elif value is None:
            texts = {**op.signature.schema.texts(written), **tags, **op.signature.tags.get(key, {})}
            inputs.append((Node(None, f"{name}_{key}", tags=texts, where=where), 0))
        else:
            raise value_error(op, key, value)
    node = Node(op, name, attrs, inputs, written, tags, where)
    visible = op.signature.visible(attrs)
    kind = next((type(value) for value in values if isinstance(value, Symbol) and type(value) is not Symbol), Symbol)
    return kind(((node, 0),) if visible == 1 else [(node, i) for i in range(visible)])


def _tag(value: Any) -> str:
    """The text of an attribute that the operator does not declare. An initializer is written by its ``dumps``."""
    return value.dumps() if hasattr(value, "dumps") else to_text(value)


def _tags(op: Op, written: Mapping[str, Any] | None, keywords: dict[str, Any]) -> dict[str, str]:
    """The attributes of a node that its operator does not declare. Tags are removed from
    ``keywords``."""
    loose = {key: keywords.pop(key) for key in list(keywords)
             if (key.startswith("__") and key.endswith("__")) or (key in HIDDEN and key not in op.signature.schema)}
    declared = {key: value for key, value in (written or {}).items() if not (key in HIDDEN or key.startswith("__"))}
    dropped = superfluous(op, {**declared, **keywords}, lambda value: isinstance(value, Symbol))  # stored in files
    loose.update({key: keywords.pop(key) for key in dropped if key in keywords})
    tags = {key: _tag(value) for key, value in {**(written or {}), **loose}.items()}
    for key in declared:
        if key not in dropped and not op.signature.schema.open:
            raise AttrError(f"operator {op.name}: attr={{{key!r}: …}} is neither one of its attributes nor written "
                            f"as __{key}__. {did_you_mean(key, op.signature.schema.names)}")
    return tags


def create(op: Op, args: Sequence[Any], keywords: dict[str, Any], hint: str,
           extra: Mapping[str, str] | None = None) -> Symbol:
    """Call an operator on symbols with the arguments of a user's call. Inputs left out become variables.

    Parameters
    ----------
    op : Op
        The operator.
    args, keywords
        Inputs, attributes, ``name`` and ``attr``.
    hint : str
        First part of the node's name, if no name is given.
    extra : mapping, optional
        Attributes that are written to files in addition (``op_type``).
    """
    name, tags = keywords.pop("name", None), keywords.pop("attr", None)
    keywords.pop("out", None)
    if "ctx" in keywords and "ctx" in op.signature.schema and keywords["ctx"] is not None:
        keywords["ctx"] = str(keywords["ctx"])  # a Context is text in a graph
    if name is not None and not isinstance(name, str):
        raise ArgumentError(f"operator {op.name}: name must be text, got {name!r}")
    if tags or keywords:
        tags = _tags(op, tags, keywords)
        if not op.signature.input_names and not op.signature.variadic and not op.signature.per_instance:
            for key in [key for key, value in keywords.items() if isinstance(value, Symbol)]:
                warn(f"operator {op.name} has no inputs: {key} is ignored")
                del keywords[key]
    try:
        inputs, written = split(op, args, keywords, lambda value: isinstance(value, Symbol))
        written = {key: value for key, value in written.items()
                 if value is not None or key in op.signature.schema or op.signature.schema.open}
        tagged = op.signature.per_instance and op.signature.schema.open
        attrs = op.complete({**written, **attributes(tags)} if tagged else written)
        names = op.signature.inputs(attrs)
        if isinstance(inputs, dict):
            for key, value in inputs.items():
                if key not in names and value is not None:
                    raise input_error(op, key, names)
            values: Sequence[Symbol | None] = [inputs.get(key) for key in names]
        else:
            values = list(inputs) + [None] * (len(names) - len(inputs))
        return _node(op, values, attrs, {**written, **(extra or {})}, name, tags, hint)
    except OpError as error:
        note(error, f"making a symbol of operator {op.name}" + (f", named {name!r}" if name else ""))
        if isinstance(error, ArgumentError):
            _hint(error, [*args, *[value for key, value in keywords.items() if key in op.signature.input_names]])
        raise


def _hint(error: ArgumentError, inputs: Sequence[object]) -> None:
    """Note on an error what to write for the first input that is no symbol."""
    value = next((value for value in inputs if value is not None and not isinstance(value, Symbol)), None)
    if isinstance(value, str):
        note(error, f"expected a symbol, got text; Variable({value!r}) is a variable of this name")
    elif isinstance(value, (int, float, np.ndarray)):
        note(error, "expected a symbol, got a number: write numbers in arithmetic, as in x + 1, or bind a Variable")


def Custom(*args: Any, op_type: str | None = None, **keywords: Any) -> Symbol:
    """Apply a user's operator, registered as ``op_type``; see ``opreg.operator``."""
    return create(user_operator(op_type), args, keywords, "custom", {"op_type": str(op_type)})


def Variable(name: str, attr: Mapping[str, str] | None = None, shape: ShapeLike | None = None,
             lr_mult: float | None = None, wd_mult: float | None = None, dtype: DTypeLike | int = None,
             init: str | Initializer | None = None, stype: str | int | None = None, profiler_scope: object = None,
             **kwargs: Any) -> Symbol:
    """A symbol of an array that is given when the graph is bound.

    Parameters
    ----------
    name : str
        Its name.
    attr : dict of str, optional
        Further attributes.
    shape : int or tuple of int, optional
        Its shape; 0 is an unknown dimension.
    lr_mult, wd_mult : float, optional
        Factors by which optimizers multiply its learning rate and weight decay.
    dtype : dtype, optional
        Its dtype.
    init : Initializer or str, optional
        The initializer of its values.
    stype : str, optional
        Its storage type: "default", "row_sparse" or "csr". The attribute ``__storage_type__`` is MXNet's number.

    Raises
    ------
    ArgumentError
        For an unknown storage type, or a keyword that is not written as ``__keyword__``.

    Examples
    --------
    >>> Variable("x", shape=(0, 3)).attr("__shape__")
    '(0, 3)'
    """
    if not isinstance(name, str):
        raise ArgumentError(f"Variable: expected a name, got {name!r}")
    tags = dict(attributes(dict(attr) if attr else None))
    if shape is not None:
        tags["__shape__"] = to_text(dimensions(f"Variable({name!r}): shape", shape, -1))
    for what, factor in (("lr_mult", lr_mult), ("wd_mult", wd_mult)):
        if factor is not None:
            tags[f"__{what}__"] = to_text(number(f"Variable({name!r}): {what}", factor))
    if dtype is not None:
        tags["__dtype__"] = str(dtype_flag(dtype))
    if init is not None:
        tags["__init__"] = _tag(init)
    if stype is not None:
        stored = _STORAGE_TYPE_STR_TO_ID.get(stype) if isinstance(stype, str) else stype
        if stored is None:
            raise ArgumentError(f"Variable({name!r}): there is no storage type {stype!r}. "
                                f"{did_you_mean(str(stype), STORAGE_TYPES)}")
        tags["__storage_type__"] = str(stored)
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise ArgumentError(f"Variable({name!r}): there is no keyword {key!r}; write your own attributes as "
                                f"__{key}__")
        tags[key] = _tag(value)
    return Symbol([(Node(None, name, tags=tags, where=user_line()), 0)])


var = Variable


def Group(symbols: Sequence[Symbol]) -> Symbol:
    """One symbol with the outputs of several.

    Examples
    --------
    >>> Group([Variable("a"), Variable("b")]).list_outputs()
    ['a', 'b']
    """
    symbols = list(symbols)
    if not symbols or not all(isinstance(symbol, Symbol) for symbol in symbols):
        raise ArgumentError(f"Group: expected a list of at least one symbol, got {symbols!r}")
    return Symbol([entry for symbol in symbols for entry in symbol._entries])

"""Sources of functions for another library: an operator, Symbol or Cell, as a graph that runs on shared arrays.

Another library needs shapes and dtypes of the outputs, the outputs, and gradients. Outputs and gradients are computed
as by ``autograd``, so each library gets this library's results. A backward pass runs forward again, since other
libraries store arrays in between, but no tape.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import NDArray, autograd
from opreg.ndarray.cached_op import CachedOp
from opreg.ndarray.context import Context

from ..cells.cell import Cell
from ..core import generators
from ..core.addresses import address_of
from ..core.attrs import REQUIRED, Field
from ..core.cache import Recent
from ..core.graph import Graph
from ..core.invalidation import EDITION, keep, operator_cache
from ..core.keys import exact
from ..core.mode import Recording
from ..core.op import Op
from ..core.placeholder import resolve
from ..core.registry import find, names
from ..core.rules import as_list
from ..core.spec import Spec, as_dtype, is_floating
from ..errors import ArgumentError, AttrError, DTypeError, ShapeError, UnknownOperatorError, did_you_mean, note
from ..symbol import Symbol, Variable
from ..symbol.infer import infer_specs

__all__ = ["Program", "Source", "gradient_inputs", "numpy_dtype"]


_PROGRAMS = operator_cache(256, "operators in other libraries")


class Source:
    """An operator, Symbol or Cell to be converted to a function of another library.

    Parameters
    ----------
    what : str, Op, Symbol or Cell
        The operator, Symbol or Cell.
    way : str
        Name of the converting function, for errors.
    parameters : mapping of str to array, or None
        Values of a Symbol's variables; a Cell has its own.
    random : bool or None
        Whether it draws random values; with None the operators decide.
    attrs : mapping
        Fixed attributes.

    Attributes
    ----------
    name : str
        Name that is valid in other libraries.
    title : str
        Its name in errors.
    inputs, states, outputs : tuple of str
        Names of the inputs with parameters last, of auxiliary states, and of outputs.
    fields : list of Field
        Attributes that are arguments of each call.
    mode : bool
        Whether it may depend on ``is_train``.
    """

    def __init__(self, what: Any, way: str, parameters: Mapping[str, Any] | None, random: bool | None,
                 attrs: Mapping[str, Any]):
        self.way = way
        self.op: Op | None = None
        self.symbols: dict[bool, Symbol] = {}
        self.fields: list[Field] = []
        self.parameters: dict[str, NDArray] = {}
        if isinstance(what, Cell):
            cell_parameters = {parameter.name: parameter for parameter in what.get_parameters()}
            twin = copy.deepcopy(what)
            self._from_symbols({mode: twin.set_train(mode).to_symbol() for mode in (False, True)},
                               f"Cell {type(what).__name__}", cell_parameters, parameters or {}, attrs)
        elif isinstance(what, Symbol):
            self._from_symbols(dict.fromkeys((False, True), what), f"Symbol {what.name or 'of several outputs'!r}", {},
                               parameters or {}, attrs)
        elif parameters:
            raise ArgumentError(f"{way}: parameters= is for a Symbol or a Cell, got {what!r}")
        else:
            self._from_operator(what, attrs)
        nodes = self._operators()
        self.mode = (any(op.traits.mode or op.traits.random for op in nodes)
                     or self.symbols.get(False) is not self.symbols.get(True))
        self.forced, self.random = bool(random), any(op.traits.random for op in nodes) if random is None else random
        mutating = next((op for op in nodes if op.traits.mutates), None)
        if mutating is not None:
            raise ArgumentError(f"{way}: operator {mutating.name!r} changes its inputs, which functions of other "
                                "libraries do not")
        self.data_dependent = next((op.name for op in nodes if op.rules.data_dependent), None)

    def _from_symbols(self, symbols: dict[bool, Symbol], title: str, cell_parameters: Mapping[str, Any],
                      parameters: Mapping[str, Any], attrs: Mapping[str, Any]) -> None:
        """``cell_parameters`` are the parameters of a Cell, ``parameters`` those that the caller gave."""
        if attrs:
            raise ArgumentError(f"{self.way}: {title} has no attributes: got {', '.join(attrs)}")
        self.symbols, self.title = symbols, title
        self.name = _identifier(symbols[True].name or "graph")
        states = list(dict.fromkeys([*symbols[True].list_auxiliary_states(), *symbols[False].list_auxiliary_states()]))
        arguments = [name for name in dict.fromkeys([*symbols[True].list_arguments(), *symbols[False].list_arguments()])
                     if name not in states]
        unknown = [name for name in parameters if name not in [*arguments, *states]]
        if unknown:
            raise ArgumentError(f"{self.way}: {title} has no variable {unknown[0]!r}. "
                                f"{did_you_mean(unknown[0], [*arguments, *states])}")
        values = {**cell_parameters, **parameters}
        self.parameters = {name: values[name] for name in [*arguments, *states] if name in values}
        self.inputs = tuple(sorted(arguments, key=lambda name: name in values))
        self.states, self.outputs = tuple(states), tuple(symbols[True].list_outputs())

    def _from_operator(self, what: Any, attrs: Mapping[str, Any]) -> None:
        op = _operator_of_name(what) if isinstance(what, str) else what
        if not isinstance(op, Op):
            raise ArgumentError(f"{self.way}: expected an operator, its name, a Symbol or a Cell, got {what!r}")
        self.op, self.title = op, f"operator {op.op_type or op.name!r}"
        self.name = _identifier(op.op_type or op.name)
        fields = list(op.signature.schema.fields)
        if op.signature.variadic:
            fields = [field for field in fields if field.name != op.signature.variadic]
        self._fixed = dict(attrs)
        if op.signature.variadic and op.signature.variadic not in attrs:
            raise ArgumentError(f"{self.way}: {self.title} takes any number of inputs: give their number, as in "
                                f"{self.way}({op.op_type or op.name!r}, {op.signature.variadic}=2)")
        self.fields = [field for field in fields if field.name not in attrs]
        missing = {field.name: _valid_value(field) for field in self.fields if field.required}
        try:
            use = op.complete({**missing, **attrs})
            self.inputs, self.states = op.signature.arguments(use), op.signature.auxiliary(use)
            self.outputs = op.signature.outputs(use)[:op.signature.visible(use)]
        except Exception as error:
            note(error, f"{self.way}: {self.title}: give here the attributes that decide the inputs and outputs")
            raise
        if not self.inputs:
            raise ArgumentError(f"{self.way}: {self.title} has no input")

    def _operators(self) -> list[Op]:
        """All operators in it."""
        if self.op is not None:
            return [self.op]
        return [node.op for symbol in self.symbols.values() for node in resolve(symbol._graph()).nodes
                if node.op is not None]

    def program(self, attrs: Mapping[str, Any], is_train: bool) -> Program:
        """The program with all attributes fixed, in one mode."""
        try:
            key: Any = self, is_train, exact(sorted(attrs.items()))
        except TypeError:
            key = None
        compiled = None if key is None else _PROGRAMS[key]
        if compiled is None:
            edition = EDITION[0]
            compiled = Program(self, attrs, is_train)
            if key is not None:
                keep(_PROGRAMS, key, compiled, edition)
        return compiled

    def check_names(self, attrs: Mapping[str, Any]) -> None:
        """Refuse unknown attributes.

        Raises
        ------
        AttrError
            The error names the nearest valid one.
        """
        open_ones = [field.name for field in self.fields]
        for name in attrs:
            if name not in open_ones:
                is_fixed = self.op is not None and name in self._fixed
                raise AttrError(f"{self.title}: attribute {name!r} was fixed by {self.way}" if is_fixed else
                                f"{self.title}: unknown attribute {name!r}. {did_you_mean(name, open_ones)}")


def _operator_of_name(name: str) -> Op:
    """An operator by its name; users' operators come before built-in ones."""
    op = find(f"custom.{name}") or find(name)
    if op is None:
        known_names = [name.removeprefix("custom.") for name in names()]
        raise UnknownOperatorError(f"there is no operator {name!r}. " + did_you_mean(name, [
            other for other in known_names if other.startswith("_") == name.startswith("_")]))
    return op


def _identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name).strip("_") or "operator"
    return f"graph_{name}" if name[0].isdigit() else name


def _valid_value(field: Field) -> Any:
    """A valid value of an attribute, for finding the names of inputs."""
    for value in (1, "1", (1,), True):
        with contextlib.suppress(Exception):
            field(value)
            return value
    return REQUIRED


class Program:
    """A graph that runs on arrays, with its attributes fixed.

    Attributes
    ----------
    graph : Graph
        The graph.
    draws : bool
        Whether a run draws random values.
    """

    def __init__(self, source: Source, attrs: Mapping[str, Any], is_train: bool):
        self.source, self.is_train = source, is_train
        if source.op is not None:
            op = source.op.current
            settings = {**source._fixed, **attrs}
            use = op.complete(settings)
            inputs = op.signature.arguments(use)
            if inputs != source.inputs or op.signature.auxiliary(use) != source.states:
                raise ArgumentError(f"{source.title} takes {', '.join(inputs) or 'nothing'} with these attributes, not "
                                    f"{', '.join(source.inputs)}: pass the attributes that decide the inputs to "
                                    f"{source.way}")
            values: list[Any] = [Variable(name) for name in source.inputs + source.states]
            self.symbol = values[0]._apply(op, values, settings)
        else:
            self.symbol = source.symbols[is_train]
        self.graph: Graph = resolve(self.symbol._graph())
        self.draws = source.random and (source.forced or any(
            node.op is not None and node.op.traits.random
            and (is_train or not node.op.traits.mode or node.attrs.get("mode") == "always")
            for node in self.graph.nodes))
        self._cached: CachedOp = CachedOp(self.symbol)
        places = {name: i for i, name in enumerate(source.inputs + source.states)}
        self._order: list[int] = [places[node.name] for node in self.graph.nodes if node.op is None]
        self._specs: Recent = Recent(64)

    def specs(self, specs: Sequence[Spec]) -> list[Spec]:
        """Shapes and dtypes of the outputs, from those of inputs and states; lengths that depend on values are ``ANY``.

        Raises
        ------
        ShapeError
            When the number of axes cannot be inferred from the inputs.
        """
        key = tuple(specs)
        cached = self._specs[key]
        if cached is None:
            variables = [node for node in self.graph.nodes if node.op is None]
            specs_by_variable = dict(zip(variables, [specs[i] for i in self._order]))
            found = infer_specs(self.graph, {node: spec.shape for node, spec in specs_by_variable.items()},
                                {node: spec.dtype for node, spec in specs_by_variable.items()}, decide=False)
            cached = [Spec(found[node][i].shape, found[node][i].dtype or np.dtype(np.float32))
                      for node, i in self.graph.heads]
            for name, spec in zip(self.source.outputs, cached):
                if spec.shape is None:
                    raise ShapeError(f"{self.source.title}: the shape of {name!r} depends on values of the inputs, "
                                     "not only on their shapes")
            self._specs.keep(key, cached)
        return cached

    def _apply(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        results = self._cached(*[arrays[i] for i in self._order])
        return as_list(results)

    def forward(self, arrays: Sequence[NDArray], seed: int | None) -> list[NDArray]:
        """The outputs, then the new states; each in memory of its own."""
        count = len(self.source.inputs)
        inputs = [*arrays[:count], *[array.copy() for array in arrays[count:]]]
        with Recording(False, self.is_train), seeded_generators(seed, inputs):
            results = [*self._apply(inputs), *inputs[count:]]
        addresses = {address_of(array._data) for array in arrays}
        owned = []
        for result in results:
            data = result._data
            if getattr(data, "base", None) is not None or not data.flags.c_contiguous or address_of(data) in addresses:
                result = result.copy()
            addresses.add(address_of(result._data))
            owned.append(result)
        return owned

    def gradients(self, arrays: Sequence[NDArray], heads: Sequence[NDArray], needs: Sequence[int],
                  seed: int | None) -> list[NDArray]:
        """Gradients of the inputs in ``needs``, from gradients of the floating outputs."""
        inputs, outs = self._record_run(arrays, needs, seed)
        return _variable_gradients(outs, heads, [inputs[i] for i in needs], self.is_train)

    def second(self, arrays: Sequence[NDArray], heads: Sequence[NDArray], needs: Sequence[int], tops: Sequence[NDArray],
               indices: Sequence[int], seed: int | None) -> list[NDArray]:
        """Gradients of ``heads``, then of the inputs in ``indices``, from gradients of the gradients of the inputs in
        ``needs``."""
        inputs, outs = self._record_run(arrays, indices, seed)
        heads = [head.detach() for head in heads]
        for head in heads:
            head.attach_grad()
        with Recording(True, self.is_train):
            first = _variable_gradients(outs, heads, [inputs[i] for i in needs], self.is_train, create_graph=True)
        return _variable_gradients(first, tops, [*heads, *[inputs[i] for i in indices]], self.is_train)

    def _record_run(self, arrays: Sequence[NDArray], indices: Sequence[int], seed: int | None
                    ) -> tuple[list[NDArray], list[NDArray]]:
        """The inputs, with gradients for some, and the floating outputs, recorded."""
        count = len(self.source.inputs)
        copies = [*[array.detach() for array in arrays[:count]], *[array.copy() for array in arrays[count:]]]
        for i in indices:
            copies[i].attach_grad()
        with Recording(True, self.is_train), seeded_generators(seed, copies):
            return copies, [out for out in self._apply(copies) if is_floating(np.dtype(out.dtype))]


def _variable_gradients(outs: Sequence[NDArray], heads: Sequence[NDArray], variables: Sequence[NDArray], is_train: bool,
                        create_graph: bool = False) -> list[NDArray]:
    """Gradients of variables from gradients of outputs; zeros without a path."""
    pairs = [(out, head) for out, head in zip(outs, heads) if out._entry is not None]
    if not pairs:
        return [variable.zeros_like() for variable in variables]
    return autograd.grad([out for out, _ in pairs], [*variables], [head for _, head in pairs],
                         create_graph=create_graph, train_mode=is_train)


def gradient_inputs(dtypes: Sequence[Any], requested: Sequence[bool]) -> list[int]:
    """The indices of the inputs whose gradient is requested and exists."""
    return [i for i, (dtype, want) in enumerate(zip(dtypes, requested)) if want and is_floating(np.dtype(dtype))]


@functools.cache
def numpy_dtype(name: str, way: str) -> np.dtype:
    """The dtype that another library calls ``name``; ``way`` is the converting function, for the error of a dtype that
    arrays cannot have."""
    try:
        return as_dtype(name)
    except (DTypeError, TypeError):
        raise DTypeError(f"{way}: opreg has no arrays of {name}") from None


@contextlib.contextmanager
def seeded_generators(seed: int | None, arrays: Sequence[NDArray]) -> Iterator[None]:
    """A context whose random values are derived from a seed, including NumPy's global ones; generators are restored.
    Without a seed nothing changes."""
    if seed is None:
        yield
        return
    context: Context = arrays[0]._ctx
    shared = np.random.get_state()  # noqa: NPY002  which users' operators draw from
    with generators.keep_states():
        generators.seed(int(seed), context.backend_name, context.device_id)
        np.random.seed(int(seed) % 2 ** 32)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(shared)  # noqa: NPY002

"""Optimizer updates as operators, each declared by one function: its signature is that of the operator, its body is a
formula.

The same function also declares related operators: the update of a float32 copy of a 16-bit weight, of several weights
in one call, and of several weights with rates and decays in arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.attrs import Few, Field, Schema
from ...core.cache import cached
from ...core.op import Op
from ...core.parameters import parameters_of
from ...core.registry import declare, register
from ...core.rules import Attrs
from ...core.spec import Shape, as_dtype, common_dtype, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import names_of_outputs
from .update_formulas import Formula
from .updating import Update, single, update_together, widened

__all__ = ["each_weight", "groups", "grouped", "update", "updates"]

# Attributes that have a value for each weight, where an operator updates several.
_OWN = ("lr", "wd", "eta")


def update(function: Callable | None = None, /, **options: Any) -> Any:
    """Declare the update of a weight by a formula.

    The function's parameters are those of the operator: weight, gradient, states, and keyword-only attributes. Its body
    computes, from terms, the new weight followed by the new states.

    Parameters
    ----------
    function : callable
        The formula; its name is the operator's unless ``name`` is given.
    **options
        See ``updates``.

    Examples
    --------
    >>> from opreg import nd
    >>> @update(name="_example_heavy_update")
    ... def heavy(weight, grad, mom, *, lr: float, momentum: float = 0.9):
    ...     "The heavy ball: ``mom = momentum * mom - lr * grad``, ``weight + mom``."
    ...     mom = mom * momentum - grad * lr
    ...     return weight + mom, mom
    >>> mom = nd.zeros((2,))
    >>> heavy(nd.ones((2,)), nd.ones((2,)), mom, lr=0.5).asnumpy(), mom.asnumpy()
    (array([0.5, 0.5], dtype=float32), array([-0.5, -0.5], dtype=float32))
    """
    if function is None:
        return lambda function: update(function, **options)
    return updates(function, Formula(function), **options)


def updates(function: Callable, rule: Callable, *, name: str | None = None, aliases: Sequence[str] = (),
            tail: int = 0, halves: bool = False, several: bool = False, preloaded: bool = False) -> Op:
    """Declare the updates that run a rule.

    Parameters
    ----------
    function : callable
        The function whose signature the first operator has.
    rule : callable
        See ``updating``.
    name, aliases
        The name, by default that of the function, and further names.
    tail : int
        Number of scalar inputs after the states.
    halves : bool
        Whether to declare ``mp_<name>``, which updates a float32 copy of the weight, too.
    several, preloaded : bool
        Whether to declare ``multi_<name>`` for several weights, and ``preloaded_multi_<name>`` with rates and decays in
        two arrays.

    Returns
    -------
    Op
        The first operator.
    """
    op: Op = declare(function, name=name, aliases=aliases, inplace=(0,), **_update_signature(function, tail, False))
    op.kernel()(single(rule))  # no body: it moves states
    forms = [(op, False)]
    if halves:
        wide = _register_variant(op, "mp_{}", "``{}`` of a float32 copy of the weight.", op.signature.schema.fields,
                                 inplace=(0,), **_update_signature(function, tail, True))
        wide.kernel()(single(rule, copy=-1 - tail))  # no body: it moves states
        forms.append((wide, True))
    for form, is_wide in forms:
        if tail:
            declare_form(form, f"{'(...) ' * (len(form.signature.arguments({})) - 1)}(1...) -> (...)")
        if several:
            _declare_multi_update(form, rule, tail, is_wide, preloaded)
    return op


def _register_variant(op: Op, name: str, doc: str, fields: list[Field], **options: Any) -> Op:
    """Register an operator derived from another, whose name and documentation are made from that one's name."""
    hidden = "_" if op.name.startswith("_") else ""
    return register(Op(hidden + name.format(op.name.removeprefix("_")), Schema(fields), doc=doc.format(op.name),
                       **options))


def _update_signature(function: Callable, tail: int, wide: bool) -> dict[str, Any]:
    """The inputs, the inputs that are updated in place, and the dtypes of an update, from a function's signature."""
    names = parameters_of(function).positional
    parts, last = list(names[:len(names) - tail]), names[len(names) - tail:]
    dtypes = ["T"] * len(parts)
    if wide:
        parts, dtypes = [*parts, "weight32"], ["T", "T", *["float32"] * (len(parts) - 1)]
    return dict(arguments=(*parts, *last), input_names=(*parts, *last), mutates=range(2, len(parts)),
                types=f"{','.join([*dtypes, *['S'] * tail])}->T")


# --------------------------------------------------------------------------------------- several weights a call


def _declare_multi_update(op: Op, rule: Callable, tail: int, wide: bool, preloaded: bool) -> None:
    """Declare the update of several weights by the rule of a single one."""
    names = op.signature.arguments({})
    parts, last = names[:len(names) - tail], names[len(names) - tail:]
    per_weight = [name for name in _OWN if name in op.signature.schema.names]
    count = Field("num_weights", int, 1, Few)
    fields = [Field(f"{field.name}s", tuple[float, ...]) if field.name in per_weight else field
              for field in op.signature.schema.fields if field.name != "lazy_update"]
    multi = _register_variant(op, "multi_{}", f"``{{}}`` of several weights: {', '.join(parts)} of each"
                              f"{''.join([f', and one {name} at the end' for name in last])}.", [*fields, count],
                              **groups("num_weights", parts, last))
    grouped(multi, len(parts), tail, range(2, len(parts)) if wide else (), [f"{name}s" for name in per_weight])
    run = widened(rule, tail) if wide else rule
    multi.kernel()(_kernel_of_groups(run, len(parts), wide, per_weight))  # no body: it moves states
    if preloaded:
        loaded = _register_variant(multi, "preloaded_{}",
                                   "``{}`` with rates and decays in two arrays, the last inputs.",
                                   [*[field for field in fields if field.name not in ("lrs", "wds")], count],
                                   **groups("num_weights", parts, ("lrs", "wds")))
        grouped(loaded, len(parts), 2, range(2, len(parts)) if wide else ())
        loaded.kernel()(_kernel_of_groups(run, len(parts), wide, ("lr", "wd"), True))  # no body: it moves states


def _kernel_of_groups(rule: Callable, parts: int, wide: bool, rate_names: Sequence[str],
                      loaded: bool = False) -> Callable:
    """A kernel that runs a rule for all weights, those with equal rates together; with ``loaded`` the rates are the
    last inputs."""
    dtype = as_dtype("float32") if wide else None

    def kernel(xp: ArrayModule, *arrays: Array, num_weights: int, out: Any = None, **attrs: Any) -> tuple[Array, ...]:
        last = arrays[num_weights * parts:]
        rates = last if loaded else [attrs.pop(f"{name}s") for name in rate_names]
        alike: dict[tuple, list[Update]] = {}
        news = []
        for i, group, new in each_weight(xp, arrays, out, num_weights, parts):
            news.append(new)
            if loaded:
                own_rates = [rate[i:i + 1] for rate in rates]
                update_together(xp, rule, [(new, group)], dtype, **dict(zip(rate_names, own_rates)), **attrs)
                continue
            # An update that reads a scalar of all weights updates one by one: the scalar is not divided among them.
            key = tuple([rate[i] for rate in rates]) + (i,) * len(last)
            alike.setdefault(key, []).append((new, [*group, *last]))
        for key, moved in alike.items():
            update_together(xp, rule, moved, dtype, **dict(zip(rate_names, key)), **attrs)
        return tuple(news)

    return kernel


def each_weight(xp: ArrayModule, arrays: Sequence[Array], out: Any, count: int, parts: int
                ) -> Iterator[tuple[int, Sequence[Array], Array]]:
    """Index, arrays and output of each weight."""
    for i in range(count):
        group = arrays[i * parts:(i + 1) * parts]
        new = out[i] if isinstance(out, (tuple, list)) else out
        yield i, group, xp.empty_like(group[0]) if new is None else new


def groups(count: str, parts: Sequence[str], tail: Sequence[str] = ()) -> dict[str, Any]:
    """Options of a declaration whose inputs are grouped by weight: all of the first weight, then of the second, and so
    on."""

    def arguments(**attrs: Any) -> list[str]:
        return [f"{part}_{i}" for i in range(attrs[count]) for part in parts] + list(tail)

    return dict(arguments=arguments, outputs=lambda **attrs: names_of_outputs(attrs[count]), per_instance=True,
                mutates=_states(len(parts)))


@cached(16)
def _states(parts: int) -> tuple[int, ...]:
    """The inputs that are states, of up to 1,024 weights: for each they come after weight and gradient."""
    return tuple([i for i in range(1024 * parts) if i % parts >= 2])


def grouped(op: Op, parts: int, tail: int = 0, wide: Sequence[int] = (), lists: Sequence[str] = (),
            count: str = "num_weights") -> None:
    """Shape and dtype rules of groups of ``parts`` inputs with equal shapes, of which those in ``wide`` are float32."""

    @op.fill
    def fill(ins: list, outs: list, **attrs: Any) -> list:
        shapes: list[Any] = []
        for i in range(attrs[count]):
            group = ins[i * parts:(i + 1) * parts]
            weight_shape = next((shape for shape in (*group, outs[i]) if shape is not None), None)
            shapes += [weight_shape if shape is None else shape for shape in group]
        numbers = (attrs[count],) if tail == 2 else (1,)
        return shapes + [numbers if shape is None else shape for shape in ins[len(ins) - tail:len(ins)]]

    @op.infer
    def infer(*shapes: Shape, **attrs: Any) -> list[Shape]:
        number = attrs[count]
        _check_lengths(number, attrs, lists)
        for position in range(number * parts):
            first = shapes[position - position % parts]
            if shapes[position] != first:
                raise ShapeError(f"{op.signature.arguments(attrs)[position]}: expected shape {show(first)}, "
                                 f"got {show(shapes[position])}")
        return list(shapes[:number * parts:parts])

    @op.types
    def types(ins: list, outs: list, **attrs: Any) -> tuple[list, list]:
        number = attrs[count]
        dtypes = list(ins)
        for i in range(number):
            positions = [i * parts + j for j in range(parts) if j not in wide]
            dtype = common_dtype([*(ins[j] for j in positions), outs[i]])
            for j in positions:
                dtypes[j] = dtype
            for j in wide:
                dtypes[i * parts + j] = common_dtype([ins[i * parts + j], as_dtype("float32")])
        return dtypes, [dtypes[i * parts] for i in range(number)]


def _check_lengths(count: int, attrs: Attrs, lists: Sequence[str]) -> None:
    for name in lists:
        if len(attrs[name]) != count:
            raise AttrError(f"attribute {name}: expected {count} numbers, one for each weight, got {len(attrs[name])}")

"""Facts that hold for every operator, tested on every row: see ``rows``."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from opreg.core import generators
from opreg.core.attrs import to_text
from opreg.core.mode import Recording
from opreg.core.registry import operators
from opreg.core.spec import ANY, unify
from opreg.errors import NotDifferentiableError, OpError
from opreg.ndarray import NDArray, array, cpu
from opreg.ndarray import eager as eager_module
from opreg.ndarray.eager import run
from opreg.symbol import Symbol, load_json
from opreg.testing.registered import plannable as in_advance
from opreg.testing.variations import LAYOUTS
from tests.questions import Questions, of_each
from tests.rows import Row, all_rows, chosen, spread
from tests.running import TOLERANCES, Result, Use, agree, bind, eager, fit, graph, heads, second, symbol

ROWS = all_rows()
#: Rows for questions about what surrounds a kernel, which its attributes rarely change.
SOME = spread(ROWS)


def named(rows: Iterable[Row]) -> list[Any]:
    """Rows by name; rows of the same name are numbered."""
    seen: dict[str, int] = {}
    params = []
    for row in rows:
        name = str(row)
        seen[name] = seen.get(name, 0) + 1
        params.append(pytest.param(row, id=name if seen[name] == 1 else f"{name}#{seen[name]}"))
    return params


_question = Questions()


def _kinds(row: Row) -> tuple[str | None, ...]:
    """Dtypes in which a row runs; a row without floating inputs runs once, in its own dtypes."""
    if any(np.asarray(each).dtype.kind == "f" for each in row.inputs):
        return tuple(row.dtypes) or (None,)
    return (None,)


@functools.lru_cache(maxsize=8)
def _made(row: Row, dtype: str | None) -> Use:
    return Use.of(row, dtype)


def _use(row: Row, dtype: str | None = None) -> Use:
    """A use of a row, which a question may change."""
    return copy.copy(_made(row, dtype or _kinds(row)[0]))


@functools.lru_cache(maxsize=8)  # several questions about a row compare with the same run
def _ran(row: Row, dtype: str | None, train: bool, grads: bool) -> Result:
    use = _use(row, dtype)
    use.train = train
    given = _heads(row, dtype, train) if grads else None
    result = eager(use, head_grads=given, grads=grads)
    for each in (*result.outs, *result.after, *result.grads.values()):
        each.flags.writeable = False
    return result


@functools.lru_cache(maxsize=8)
def _heads(row: Row, dtype: str | None, train: bool) -> list[np.ndarray | None] | None:
    """Gradients of the outputs, as ``heads`` draws them."""
    return heads(_made(row, dtype), _ran(row, dtype, train, False).outs)


def _reference(row: Row, dtype: str | None = None, train: bool | None = None, grads: bool = False) -> Result:
    """Results of an eager run in a mode, by default the row's; ``grads`` says whether backward runs, too."""
    return _ran(row, dtype or _kinds(row)[0], row.train if train is None else train, grads)


def _smooth(row: Row) -> bool:
    return bool(row.grad) and row.deterministic


def _fixed(row: Row) -> bool:
    return row.deterministic


def _asked(row: Row, question: Callable[[Use], Any]) -> bool:
    """The answer to a question about a row's use; true for an invalid row, so that its test reports the error."""
    try:
        return bool(question(_use(row)))
    except OpError:
        return True


@functools.cache
def plannable(row: Row) -> bool:
    """Whether an executor can run the row: its output shapes do not depend on values, or the operator finds them."""
    return _asked(row, lambda use: in_advance(use) or use.op.rules.data_dependent)


def _drawing(row: Row) -> bool:
    return _asked(row, lambda use: use.op.traits.random)


def _in_graphs(row: Row) -> bool:
    return row.deterministic and plannable(row)


@functools.cache
def differentiated(row: Row) -> bool:
    """Whether an executor can compute the row's gradient."""
    return _in_graphs(row) and _asked(row, lambda use: use.op.differentiable and use.wanted) and not _drawing(row)


def _between(row: Row) -> bool:
    return row in SOME and differentiated(row) and _asked(row, lambda use: not use.op.loss(use.attrs))


# Operators with graphs as attributes, which are tested in tests/symbol/test_loops.py and
# tests/builtin/test_quantized.py. Tests of two processes are in tests/distributed/distributed_checks.py.
_ELSEWHERE = frozenset(["Send", "Receive", *(f"{prefix}{name}" for name in ("_foreach", "_while_loop", "_cond")
                                             for prefix in ("", "_backward")),
                         "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected"])


def test_every_operator_has_a_row() -> None:
    there = {row.op for row in ROWS}
    lacking = [op.name for op in operators() if chosen(op.name) and op.name not in there | _ELSEWHERE
               and not op.name.startswith(("custom.", "_backward_custom.", "_example"))]
    assert not lacking, f"operators have no row in tests/rows: {', '.join(sorted(lacking))}"


@of_each(ROWS, by=lambda row: row.op)
def test_a_row_answers_all_questions(row: Row) -> None:
    """All questions below, as one test for the rows of each operator."""
    _question.ask(row)


# ------------------------------------------------------------------------------------------------- values


@_question(lambda row: row.expected is not None and row.deterministic, dtype=_kinds)
def _value(row: Row, dtype: str | None) -> None:
    use = _use(row, dtype)
    outs = _reference(row, dtype).outs
    expected = row.expected(*[each.copy() for each in use.arrays])  # type: ignore[misc]
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    assert len(outs) == len(expected)
    for i, (out, want) in enumerate(zip(outs, expected)):
        kind = out.dtype.name if dtype is None else dtype
        agree(out, want, row.tolerance if kind == "float64" else TOLERANCES.get(kind), f"output {i}")


@_question(dtype=_kinds)
def _inferred(row: Row, dtype: str | None) -> None:
    """Shapes and dtypes equal the inferred ones, also of hidden outputs and new states."""
    use = _use(row, dtype)
    with Recording(False, row.train):
        _, results = run(use.op, use.attrs, [each.copy() for each in use.arrays], cpu(), wrap=lambda data, *_: data)
    count = len(use.op.signature.outputs(use.attrs))
    _, shapes = use.op.infer_shapes([each.shape for each in use.arrays], [None] * count, use.attrs)
    _, dtypes = use.op.infer_dtypes([each.dtype for each in use.arrays], [None] * count, use.attrs)
    for result, shape in zip(results, shapes):
        assert unify(shape, result.shape) == result.shape
    assert [result.dtype for result in results[:count]] == [kind or np.dtype("float32") for kind in dtypes]
    states = use.arrays[len(use.op.signature.arguments(use.attrs)):]
    assert len(results) - count in ((0, len(use.op.traits.states)) if row.train else (0,))
    for new, state in zip(results[count:], use.op.traits.states):
        assert new.shape == states[state].shape
    if not all(each.size for each in (*use.arrays, *results)) or not all(map(np.ndim, use.arrays)) \
            or not in_advance(use):
        return  # a symbol takes a zero for a dimension that is not known, () for a shape
    made = symbol(use)
    by_name = dict(zip(use.names, use.arrays))
    found = made.infer_shape(**{name: each.shape for name, each in by_name.items()})
    kinds = made.infer_type(**{name: each.dtype for name, each in by_name.items()})
    visible = use.op.signature.visible(use.attrs)
    assert (found[1], kinds[1]) == (shapes[:visible], [result.dtype.type for result in results[:visible]])


@_question()
def _partly_known(row: Row) -> None:
    """Specs inferred from less never contradict those inferred from everything, and no error is raised."""
    use = _use(row)
    ins, count = [each.shape for each in use.arrays], len(use.op.signature.outputs(use.attrs))
    _, outs = use.op.infer_shapes(list(ins), [None] * count, use.attrs)
    less: list[list] = [[(ANY,) * len(shape) for shape in ins]]
    for i, shape in enumerate(ins):
        less += [[*ins[:i], (*shape[:axis], ANY, *shape[axis + 1:]), *ins[i + 1:]] for axis in range(len(shape))]
    for given in less:
        found = use.op.infer_shapes(list(given), [None] * count, use.attrs)
        for side, whole in zip(found, (ins, outs)):
            assert len(side) == len(whole)
            for some, shape in zip(side, whole):
                assert some is None or unify(some, shape) == shape, f"from {given}"
    # An input of which nothing is known may be given the shape or dtype that it has most often.
    for given in [[None] * len(ins), *([*ins[:i], None, *ins[i + 1:]] for i in range(len(ins)))]:
        use.op.infer_shapes(list(given), [None] * count, use.attrs)
        use.op.infer_shapes(list(given), list(outs), use.attrs)
    for i in range(len(ins)):
        given = [None if j == i else each.dtype for j, each in enumerate(use.arrays)]
        use.op.infer_dtypes(given, [None] * count, use.attrs)


@_question(_fixed)
def _inputs_stay(row: Row) -> None:
    """Only declared inputs are changed, and values of inputs that are declared unread do not matter."""
    use = _use(row)
    first = len(use.op.signature.arguments(use.attrs))
    moved = {*use.op.traits.mutates, *(first + state for state in use.op.traits.states if row.train)}
    result = _reference(row)
    for i, (before, after) in enumerate(zip(use.arrays, result.after)):
        if i not in moved:
            np.testing.assert_array_equal(after, before, f"input {i}")
    if use.op.traits.unread:
        blind = [np.full_like(each, np.nan if each.dtype.kind == "f" else 0) if i in use.op.traits.unread else each
                 for i, each in enumerate(use.arrays)]
        for out, other in zip(result.outs, eager(use.on_arrays(blind)).outs):
            np.testing.assert_array_equal(out, other)


@_question(_fixed)
def _out(row: Row) -> None:
    """The call writes its results to ``out``."""
    use = _use(row)
    expected = _reference(row)
    targets = [array(np.full_like(out, 77), None, out.dtype) for out in expected.outs]
    result = eager(use, out=targets)
    for i, (out, want) in enumerate(zip(result.outs, expected.outs)):
        agree(out, want, what=f"output {i}")
    for i, (after, want) in enumerate(zip(result.after, expected.after)):
        agree(after, want, what=f"input {i} afterwards")


@_question(_fixed, layout=lambda row: LAYOUTS)
def _layout(row: Row, layout: str) -> None:
    use = _use(row)
    raw = [NDArray(LAYOUTS[layout](each.copy()) if each.ndim else each.copy(), cpu()) for each in use.arrays]
    result, expected = eager(use, raw=raw), _reference(row)
    for i, (out, want) in enumerate(zip(result.outs, expected.outs)):
        agree(out, want, what=f"output {i}")
    for i, (after, want) in enumerate(zip(result.after, expected.after)):
        agree(after, want, what=f"input {i} afterwards")


@_question(lambda row: row.deterministic and row.inputs and row in SOME)
def _results_are_their_own(row: Row) -> None:
    """A result shares no memory with an input, whatever layouts were used before."""
    use = _use(row)
    eager_module._RUNNERS.clear()
    layouts = list(LAYOUTS.values())
    for layout in (layouts[0], np.copy, layouts[1], np.copy):
        arrays = [layout(each) if each.ndim else each.copy() for each in use.arrays]
        with Recording(False, row.train):
            _, results = run(use.op, use.attrs, arrays, cpu(), wrap=lambda data, *_: data)
        for result in results[:len(use.op.signature.outputs(use.attrs))]:
            assert not any(np.may_share_memory(result, each) for each in arrays)


@_question(lambda row: row.inputs and np.ndim(row.inputs[0]) and not row.op.startswith(("_backward_", "_subscript")))
def _empty(row: Row) -> None:
    """A first dimension of zero is computed, or refused with an error of opreg."""
    use = _use(row)
    batch = use.arrays[0].shape[0]
    none = use.on_arrays([each[:0] if each.ndim and each.shape[0] == batch else each for each in use.arrays])
    try:
        _, shapes = use.op.infer_shapes([each.shape for each in none.arrays],
                                        [None] * len(use.op.signature.outputs(use.attrs)), use.attrs)
        outs = eager(none).outs
    except OpError:
        return
    assert [out.shape for out in outs] == shapes[:len(outs)]


@_question(lambda row: len(row.inputs) and all(map(np.size, row.inputs)) and not row.op.startswith("_backward_"))
def _scalars(row: Row) -> None:
    """Inputs without axes are computed, or refused with an error of opreg."""
    use = _use(row)
    use = use.on_arrays([each.reshape(-1)[0].reshape(()) for each in use.arrays])
    try:
        outs = eager(use).outs
    except OpError:
        return
    if outs:
        graph(use)


# ---------------------------------------------------------------------------------------------- gradients


def _weighed(use: Use, given: Any) -> Callable[[list[np.ndarray]], float]:
    def total(arrays: list[np.ndarray]) -> float:
        outs = eager(use.on_arrays(arrays)).outs
        return float(sum((out * g).sum() for out, g in zip(outs, given) if g is not None))

    return total


@_question(_smooth)
def _gradient(row: Row) -> None:
    use = _use(row, "float64")
    given = heads(use, _reference(row, "float64").outs)
    assert given is not None, "the gradient of a loss is not that of its output"
    grads = _reference(row, "float64", grads=True).grads
    fit(_weighed(use, given), use.arrays, {i: grads[i] for i in row.grad}, row.tolerance, row.op)


@_question(lambda row: _smooth(row) and row.second)
def _second_gradient(row: Row) -> None:
    use = _use(row, "float64")
    given = heads(use, _reference(row, "float64").outs)
    assert given is not None
    rng = np.random.default_rng(2)
    weights = {i: rng.standard_normal(use.arrays[i].shape) for i in row.grad}
    by_input, by_head = second(use, given, weights)

    count = len(use.arrays)

    def total(arrays: list[Any]) -> float:
        grads = eager(use.on_arrays(arrays[:count]), head_grads=arrays[count:], grads=True).grads
        return float(sum((grads[i] * weight).sum() for i, weight in weights.items()))

    fit(total, [*use.arrays, *given], {**{i: by_input[i] for i in row.grad},
                                       **{count + i: gradient for i, gradient in by_head.items()}},
        row.tolerance, f"{row.op}, output gradients as further inputs:")


@_question(_fixed)
def _gradient_or_word(row: Row) -> None:
    """A gradient exists in every mode; otherwise the error names the operator."""
    use = _use(row)
    given = heads(use, _reference(row).outs)
    if use.op.differentiable:
        for i, gradient in _reference(row, grads=True).grads.items():
            assert gradient.shape == use.arrays[i].shape and gradient.dtype == use.arrays[i].dtype
    elif use.wanted and (given is None or any(g is not None for g in given)):
        with pytest.raises(NotDifferentiableError, match=use.op.name):
            eager(use, head_grads=given, grads=True)


# ----------------------------------------------------------------------------------------------- executor


def _same(result: Any, expected: Any, use: Use, tolerance: float | None = None) -> None:
    assert len(result.outs) == len(expected.outs)
    for i, (out, want) in enumerate(zip(result.outs, expected.outs)):
        assert out.dtype == want.dtype
        agree(out, want, tolerance, f"output {i}")
    for i, (after, want) in enumerate(zip(result.after, expected.after)):
        agree(after, want, tolerance, f"input {i} afterwards")


@_question(_in_graphs, dtype=_kinds)
def _graph(row: Row, dtype: str | None) -> None:
    """An executor computes the same, and a second run of it, too: the first run leaves no traces."""
    use = _use(row, dtype)
    executor = bind(use, reqs=dict.fromkeys(use.wanted, "null"))
    first = [each.asnumpy() for each in executor.forward(is_train=row.train)]
    by_name = {**executor.arg_dict, **executor.aux_dict}
    _same(Result(first, [by_name[name].asnumpy() for name in use.names]), _reference(row, dtype), use)
    if not use.op.traits.mutates and not (use.op.traits.states and row.train):
        for out, want in zip(executor.forward(is_train=row.train), first):
            np.testing.assert_array_equal(out.asnumpy(), want)


@_question(lambda row: _in_graphs(row) and _asked(row, lambda use: use.op.traits.mode or use.op.traits.states)
           and not _drawing(row))
def _graph_in_the_other_mode(row: Row) -> None:
    use = _use(row)
    use.train = not row.train
    _same(graph(use), _reference(row, train=use.train), use)


@_question(lambda row: _in_graphs(row) and row in SOME)
def _graph_around(row: Row) -> None:
    """The results stay right between other nodes, which share memory or take it over."""
    use = _use(row)
    if not use.names:
        return
    _same(graph(use, around=True), _reference(row), use)


def _trained(row: Row) -> tuple[Use, Any, Any]:
    use = _use(row)
    use.train = True
    return use, _heads(row, _kinds(row)[0], True), _reference(row, train=True, grads=True)


@_question(differentiated)
def _graph_gradients(row: Row) -> None:
    use, given, expected = _trained(row)
    result = graph(use, head_grads=given, grads=True)
    _same(result, expected, use)
    for i in use.wanted:
        agree(result.grads[i], expected.grads[i], what=f"gradient of input {i}")


@_question(lambda row: row in SOME and differentiated(row))
def _requests(row: Row) -> None:
    """Gradients are written, added or kept, in mixtures of requests: the first two inputs are asked to add and to
    keep."""
    use, given, expected = _trained(row)
    before = {i: np.random.default_rng(i).standard_normal(use.arrays[i].shape).astype(use.arrays[i].dtype)
              for i in use.wanted}
    for turn in (("add", "null", "write"), ("null", "add", "add")):
        reqs = {i: turn[number % 3] for number, i in enumerate(use.wanted)}
        if {*reqs.values()} == {"null"}:
            continue
        result = graph(use, head_grads=given, reqs=reqs, before=before, grads=True)
        for i, req in reqs.items():
            want = {"write": expected.grads[i], "add": before[i] + expected.grads[i], "null": before[i]}[req]
            agree(result.grads[i], want, what=f"{req} the gradient of input {i}")


@_question(_between)
def _graph_gradients_around(row: Row) -> None:
    use, given, expected = _trained(row)
    result = graph(use, head_grads=given, grads=True, around=True)
    _same(result, expected, use)
    for i in use.wanted:
        agree(result.grads[i], expected.grads[i], what=f"gradient of input {i}")


# ------------------------------------------------------------------------------ the record, as a Prop is asked


@_question(lambda row: row in SOME and row.deterministic and _asked(
    row, lambda use: in_advance(use) and not use.op.traits.mutates))
def _as_a_custom_operator(row: Row) -> None:
    """The operator's ``CustomOpProp`` lists the same names, and its object writes results like a ``CustomOp``."""
    use = _use(row)
    use.train = True
    expected = _reference(row, train=True)
    prop = use.op.prop(**use.attrs)
    names = prop.list_arguments()
    assert tuple(names + prop.list_auxiliary_states()) == use.names
    assert len(prop.list_outputs()) == len(expected.outs)
    ins = [array(each, dtype=each.dtype) for each in use.arrays]
    data, aux = ins[:len(names)], ins[len(names):]
    if all(each.size and each.ndim for each in use.arrays):  # a Prop takes () for unknown, zero for such a dimension
        assert prop.infer_shape([list(each.shape) for each in data])[1] == [list(out.shape) for out in expected.outs]
    for kind, out in zip(prop.infer_type([each.dtype for each in data])[1], expected.outs, strict=True):
        assert kind in (None, out.dtype.type)
    outs = [array(np.full_like(out, 7), dtype=out.dtype) for out in expected.outs]
    operator = prop.create_operator(cpu(), [list(each.shape) for each in ins], [each.dtype for each in ins])
    operator.forward(is_train=True, req=["add"] + ["write"] * (len(outs) - 1), in_data=data, out_data=outs, aux=aux)
    for i, (out, want) in enumerate(zip(outs, expected.outs)):
        agree(out.asnumpy(), (want + np.full_like(want, 7)).astype(want.dtype) if i == 0 else want, what=f"output {i}")
    if not differentiated(row):
        return
    _, given, expected = _trained(row)
    arrived = [] if given is None else [
        array(np.zeros_like(out) if g is None else g, dtype=out.dtype) for g, out in zip(given, expected.outs)]
    grads = [array(np.full_like(each, 5), dtype=each.dtype) for each in use.arrays[:len(names)]]
    reqs = ["add" if i in use.wanted else "null" for i in range(len(names))]
    for times in (1, 2):  # a second pass belongs to the same forward
        operator.backward(req=reqs, out_grad=arrived, in_data=data, out_data=outs, in_grad=grads, aux=aux)
        for i, gradient in expected.grads.items():
            agree(grads[i].asnumpy(), times * gradient + np.full_like(gradient, 5), what=f"gradient of input {i}")


# ------------------------------------------------------------------------------------------------- texts


def _in_files(row: Row) -> bool:
    """Whether a file can hold the node: a subscript can be any Python object, so files do not hold it."""
    return "_subscript" not in row.op and _asked(row, lambda use: use.op.signature.outputs(use.attrs))


@_question(_in_files)
def _attributes_as_text(row: Row) -> None:
    use = _use(row)
    schema = use.op.signature.schema
    for name, value in use.attrs.items():
        if name in schema:
            assert schema[name](to_text(value)) == value, name


@_question(_in_files)
def _json(row: Row) -> None:
    """A node that is read from a file again is equal, and gives the same results."""
    use = _use(row)
    made = symbol(use)
    again = load_json(made.tojson(remove_amp_cast=False))
    assert isinstance(again, Symbol)
    assert again.tojson(remove_amp_cast=False) == made.tojson(remove_amp_cast=False)
    assert again._entries[0][0].attrs == made._entries[0][0].attrs
    for question in ("list_arguments", "list_outputs", "list_auxiliary_states"):
        assert getattr(again, question)() == getattr(made, question)()


# ------------------------------------------------------------------------------------------------- chance


@_question(lambda row: not row.deterministic, dtype=_kinds)
def _random(row: Row, dtype: str | None) -> None:
    """The same seed gives the same values, eagerly and in an executor."""
    use = _use(row, dtype)
    for way in (eager, graph):
        found = []
        for seed in (7, 7, 8):
            generators.seed(seed)
            found.append(way(use))
        for i, (out, want) in enumerate(zip(found[0].outs, found[1].outs)):
            np.testing.assert_array_equal(out, want, f"output {i}")
        sizes = [out.size for out in found[0].outs]
        assert [out.shape for out in found[0].outs] == [out.shape for out in found[2].outs], sizes

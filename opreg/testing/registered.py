"""Checks of registered operators: inferred shapes and dtypes, requests, graphs and files."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opreg.ndarray import NDArray, array, cpu
from opreg.ndarray import load as load_arrays
from opreg.ndarray import save as save_arrays
from opreg.symbol import load_json

from ..core.mode import Recording
from ..core.registry import find
from ..core.spec import is_floating, is_known, show
from ..custom.first_run import is_default
from ..custom.prop_use import PropUse
from ..errors import OpError, ShapeError
from . import gradients  # noqa: F401  its checks come first
from .comparison import disagreement, position
from .contract import CheckSkipped, Failed, check, compare, first_line, run_with_gradients, scaled_inputs
from .foreign import ForeignUse
from .subjects import TensorUse
from .uses import Subject, Use, bind, graph, heads, symbol

__all__ = ["plannable"]

#: Values that results hold before two runs; an element that holds both of them afterwards was never written.
_FILLS = (7, 13)


def _operator(use: Subject) -> Use:
    if not isinstance(use, Use):
        raise CheckSkipped("it is not registered, so it infers nothing")
    return use


def _prop(use: Subject) -> tuple[Use, Any]:
    """The subject of an operator that is a ``CustomOpProp``, and the Prop; skips other subjects."""
    if not (isinstance(use, Use) and isinstance(use.attrs, PropUse)):
        raise CheckSkipped("it returns its results" if not isinstance(use, Use) or use.op.op_type else "it is built in")
    return use, use.attrs.prop


# ---------------------------------------------------------------------------------------------------- inference


@check("pure", ())
def pure(use: Subject) -> None:
    """``list_*`` and ``infer_*`` methods repeat their answers, and do not change their arguments."""
    use = _operator(use)
    arguments = use.arrays[:use.count]
    shapes, kinds = [list(argument.shape) for argument in arguments], [argument.dtype.type for argument in arguments]
    if not isinstance(use.attrs, PropUse):
        count = len(use.op.signature.outputs(use.attrs))
        first, second = (use.op.infer_shapes([each.shape for each in use.arrays], [None] * count,
                                             Use(use.op, use.arrays, use.given).attrs) for _ in range(2))
        if first != second:
            raise Failed(f"infer returns {first[1]}, then {second[1]}, for the same shapes",
                         "compute it from the shapes and attributes alone")
        return
    prop, again = use.attrs.prop, Use(use.op, use.arrays, use.given).attrs.prop  # type: ignore[attr-defined]
    kind = type(prop).__name__
    questions: list[tuple[str, list[Any] | None]] = [
        ("list_arguments", None), ("list_outputs", None), ("list_auxiliary_states", None), ("infer_shape", shapes),
        ("infer_type", kinds)]
    for method, args in questions:
        answers = []
        for who in (prop, prop, again):
            given = [] if args is None else [[list(answer) if isinstance(answer, list) else answer for answer in args]]
            answers.append(_copied_answer(getattr(who, method)(*given)))
            if given and given[0] != args:
                raise Failed(f"{kind}.{method} changes the list it is given: {args} became {given[0]}",
                             f"make a new list in {method}, as in [in_shape[0], …]")
        for answer in answers[1:]:
            if answer != answers[0]:
                raise Failed(f"{kind}.{method} returns {answers[0]}, then {answer}, for the same arguments",
                             "compute it from attributes and arguments alone")


def _copied_answer(answer: Any) -> Any:
    """A copy of an answer, since the Prop may change its lists later."""
    return [_copied_answer(part) for part in answer] if isinstance(answer, (list, tuple)) else answer


def _sizes(use: Use) -> list[Use]:
    """Subjects with other sizes: each length is replaced by one and by its double, in all inputs that have it."""
    uses = [use]
    for size in sorted({dim for each in use.arrays for dim in each.shape if dim}):
        for factor in (0, 2):
            arrays = []
            for example in use.arrays:
                for axis, dim in enumerate(example.shape):
                    if dim == size:
                        example = np.concatenate([example] * factor, axis) if factor else example.take([0], axis)
                arrays.append(example)
            if sum(each.size for each in arrays) <= 1 << 16:
                uses.append(use.on_arrays(arrays))
    return uses[:9]


@check("inferred", ())
def inferred(use: Subject) -> str | None:
    """Outputs have the inferred shapes and dtypes, for several sizes and dtypes."""
    if isinstance(use, ForeignUse) and use.check_inference():
        return None
    use = _operator(use)
    if use.op.rules.data_dependent:
        raise CheckSkipped("its shapes depend on values")
    looked = 0
    variants = _sizes(use)
    for dtype in (np.float64, np.float16):
        try:
            variants.append(use.cast(dtype))
        except OpError:
            continue
    for variant in variants:
        try:
            specs = variant.op.specs(variant.arrays, variant.attrs)
        except Exception:  # the operator refuses these inputs
            continue
        shapes, kinds = [spec.shape for spec in specs], [spec.dtype for spec in specs]
        _check_assignment(variant, shapes, kinds)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                outs = variant.run().outs
        except ShapeError as error:
            if variant is use or variant.op.op_type:
                raise Failed(first_line(error), "return the shape of the output from infer_shape") from None
            continue
        except Exception:  # the operator does not support these sizes
            if variant is use:
                raise
            continue
        for warning in caught:
            if "is repeated to fill it" in str(warning.message):
                raise Failed(str(warning.message), "return the shape of the output from infer_shape")
        looked += 1
        for i, out in enumerate(outs):
            if (is_known(shapes[i]) and out.shape != shapes[i]) or (kinds[i] is not None and out.dtype != kinds[i]):
                raise Failed(f"output {i} is {show(out.shape)} {out.dtype}, inferred was {show(shapes[i])} {kinds[i]}",
                             "return the shape and dtype of the output from infer_shape and infer_type")
    return f"{looked} kinds of inputs"


def _check_assignment(use: Use, shapes: Sequence[Any], kinds: Sequence[Any]) -> None:
    """Fail where ``assign`` receives values that the inferred dtype of the output cannot hold."""
    if not isinstance(use.attrs, PropUse) or not all(map(is_known, shapes)):
        return
    ctx, names = cpu(), use.attrs.outputs
    custom_op = use.attrs.create(ctx, {}, use.arrays)
    if not is_default(custom_op.assign):
        return
    changed: dict[int, Any] = {}
    outs = [NDArray(np.zeros(shape, kind or np.float32), ctx) for shape, kind in zip(shapes, kinds)]

    def assign(dst: Any, req: str, src: Any) -> None:
        changed[next((i for i, out in enumerate(outs) if out is dst), -1)] = src
        type(custom_op).assign(custom_op, dst, req, src)

    custom_op.assign = assign  # type: ignore[method-assign]
    ins = [array(each, ctx, each.dtype) for each in use.arrays]
    try:
        with Recording(False, use.train):
            custom_op.forward(is_train=use.train, req=["write"] * len(outs), in_data=ins[:use.count], out_data=outs,
                              aux=ins[use.count:])
    except Exception:  # another check reports this error
        return
    widest = max([value.dtype.itemsize for value in use.arrays if is_floating(value.dtype)], default=0)
    for i, src in changed.items():
        if i < 0 or not hasattr(src, "dtype") or not np.shape(src):
            continue
        source_dtype, kind = np.dtype(src.dtype), np.dtype(outs[i].dtype)
        if (is_floating(source_dtype) and not is_floating(kind)) or (
                is_floating(source_dtype) and kind.itemsize < min(source_dtype.itemsize, widest)):
            raise Failed(f"{names[i]!r} is inferred to be {kind} and is assigned {source_dtype}: values are rounded",
                         f"let infer_type return {source_dtype} for it" if not is_floating(kind) else
                         "let infer_type return the dtype of the input, in_type[0], for it")


# ---------------------------------------------------------------------------------------------------- requests


def _fill_outputs(like: Sequence[np.ndarray], fill: int) -> list[NDArray]:
    return [array(np.full_like(output, fill), None, output.dtype) for output in like]


def _fresh(use: Use) -> list[NDArray]:
    return [array(each, None, each.dtype) for each in use.arrays]


def _forward(use: Use, reqs: Sequence[str], fill: int, like: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs after ``forward`` wrote into arrays that were filled with one value."""
    custom_op: Any = use.attrs.create(cpu(), {}, use.arrays)  # type: ignore[attr-defined]
    ins, outs = _fresh(use), _fill_outputs(like, fill)
    with Recording(False, use.train):
        custom_op.forward(is_train=use.train, req=list(reqs), in_data=ins[:use.count], out_data=outs,
                          aux=ins[use.count:])
    return [out.asnumpy() for out in outs]


def _backward(use: Use, reqs: Sequence[str], fill: int, blind: bool = False) -> list[np.ndarray]:
    """The gradients after ``backward`` wrote into arrays filled with one value; ``blind`` hides undeclared arrays."""
    custom_op: Any = use.attrs.create(cpu(), {}, use.arrays)  # type: ignore[attr-defined]
    like = use.run().outs
    ins, outs, grads = _fresh(use), _fill_outputs(like, 0), _fill_outputs(use.arrays[:use.count], fill)
    out_grads = heads(use, like) or [np.ones_like(out) for out in like]
    tops = [array(np.zeros_like(out) if g is None else g, None, out.dtype) for g, out in zip(out_grads, like)]
    with Recording(False, use.train):
        custom_op.forward(is_train=True, req=["write"] * len(outs), in_data=ins[:use.count], out_data=outs,
                          aux=ins[use.count:])
        every = [*tops, *ins[:use.count], *outs]
        if blind:
            needed = use.attrs.needed  # type: ignore[attr-defined]
            every = [each if i in needed else _unknown_values(each) for i, each in enumerate(every)]
        n = len(outs)
        custom_op.backward(req=list(reqs), out_grad=every[:n], in_data=every[n:n + use.count],
                           out_data=every[n + use.count:], in_grad=grads, aux=ins[use.count:])
    return [grad.asnumpy() for grad in grads]


def _unknown_values(each: NDArray) -> NDArray:
    return array(np.full(each.shape, np.nan if is_floating(each._data.dtype) else 77), None, each.dtype)


def _differentiable(use: Use, prop: Any) -> bool:
    """Whether the Prop's operator has a ``backward`` of its own."""
    custom_op = use.attrs.create(cpu(), {}, use.arrays)  # type: ignore[attr-defined]
    return bool(use.wanted) and not is_default(custom_op.backward) and not hasattr(prop, "gradient")


@check("written", ["backward"], before="deterministic")
def written(use: Subject) -> None:
    """Every element of every output and gradient is written."""
    use, prop = _prop(use)
    like = use.run().outs
    first, second = (_forward(use, ["write"] * len(like), fill, like) for fill in _FILLS)
    for i, (first_run, two) in enumerate(zip(first, second)):
        unwritten = (first_run == np.full_like(first_run, _FILLS[0])) & (two == np.full_like(two, _FILLS[1]))
        if unwritten.any() and first_run.dtype.itemsize > 1:
            raise Failed(f"forward never writes {use.attrs.outputs[i]!r}"  # type: ignore[attr-defined]
                         f"{position(int(np.argmax(unwritten)), unwritten.shape)}: old memory content stays",
                         f"self.assign(out_data[{i}], req[{i}], value) with a value for every element")
    if not _differentiable(use, prop):
        return
    first, second = (_backward(use, ["write"] * use.count, fill) for fill in _FILLS)
    for i in use.wanted:
        unwritten = (first[i] == _FILLS[0]) & (second[i] == _FILLS[1])
        if unwritten.any() and not ("label" in use.names[i] and unwritten.all()):
            where = ": it counts as zeros" if unwritten.all() else \
                f"{position(int(np.argmax(unwritten)), unwritten.shape)}: old memory content stays"
            raise Failed(f"backward never writes the gradient of {use.names[i]!r}{where}",
                         f"self.assign(in_grad[{i}], req[{i}], value), with 0 where the gradient is zero")


@check("requests")
def requests(use: Subject) -> str | None:
    """The requests ``write``, ``add`` and ``null`` store, add to, and leave alone each output and gradient."""
    use = _operator(use)
    if isinstance(use.attrs, PropUse) and not use.stochastic:
        _requests_of(use)
    if not plannable(use) or use.stochastic:
        raise CheckSkipped("it draws random numbers" if use.stochastic else "its shapes depend on values")
    out_grads, expected = run_with_gradients(use)
    if not expected.grads:
        return "it has no gradient"
    before = {i: np.full_like(use.arrays[i], _FILLS[0]) for i in expected.grads}
    for turn in range(3):
        reqs = {i: ("write", "add", "null")[(i + turn) % 3] for i in expected.grads}
        result = graph(use, head_grads=out_grads, reqs=reqs, before=before, grads=True)
        for i, req in reqs.items():
            _check_request(f"backward in a graph: the gradient of {use.names[i]!r}", f"in_grad[{i}]", i, req,
                           result.grads[i], expected.grads[i])
    return None


def _requests_of(use: Use) -> None:
    prop, like = use.attrs.prop, use.run().outs  # type: ignore[attr-defined]
    for req in ("write", "add", "null"):
        for i, (out, want) in enumerate(zip(_forward(use, [req] * len(like), _FILLS[0], like), like)):
            _check_request(f"forward: {use.attrs.outputs[i]!r}", f"out_data[{i}]", i, req, out,  # type: ignore[attr-defined]
                           want)
    if not _differentiable(use, prop):
        return
    expected = _backward(use, ["write"] * use.count, 0)
    for req in ("write", "add", "null"):
        reqs = [req if i in use.wanted else "null" for i in range(use.count)]
        for i, grad in enumerate(_backward(use, reqs, _FILLS[0])):
            if i in use.wanted and not ("label" in use.names[i] and not expected[i].any()):
                _check_request(f"backward: the gradient of {use.names[i]!r}", f"in_grad[{i}]", i, req, grad,
                               expected[i])


def _check_request(what: str, place: str, i: int, req: str, actual: np.ndarray, result: np.ndarray) -> None:
    old = np.full_like(actual, _FILLS[0])
    want = {"write": result, "add": (old + result).astype(actual.dtype) if actual.dtype != bool else old,
            "null": old}[req]
    if actual.dtype == bool and req == "add":
        return
    far = disagreement(actual, want, 1e-5 if actual.dtype.itemsize > 2 else 2e-2)
    if far:
        does = {"write": "is not stored", "add": "is not added to the old value", "null": "is written"}
        raise Failed(f"{what}: with the request {req!r} it {does[req]}: {far}",
                     f"self.assign({place}, req[{i}], value), which obeys the request")


@check("dependencies")
def dependencies(use: Subject) -> str | None:
    """Backward reads only arrays that the operator declared."""
    use = _operator(use)
    if isinstance(use.attrs, PropUse):
        prop, attrs = use.attrs.prop, use.attrs
        every = 2 * len(attrs.outputs) + use.count
        if not _differentiable(use, prop):
            raise CheckSkipped("it has no backward")
        if len(attrs.needed) == every:
            return "all are declared"
        reqs = ["write" if i in use.wanted else "null" for i in range(use.count)]
        seeing, blind = _backward(use, reqs, 0), _backward(use, reqs, 0, blind=True)
        for i in use.wanted:
            far = disagreement(blind[i], seeing[i])
            if far:
                raise Failed(f"the gradient of {use.names[i]!r} reads an array that was not declared: without it {far}",
                             "super().__init__(need_top_grad=True), or name it in declare_backward_dependency")
        return None
    if use.loss and use.wanted:
        outs = use.run().outs
        rng = np.random.default_rng(3)
        sent = [rng.standard_normal(out.shape).astype(out.dtype) if is_floating(out.dtype) else None for out in outs]
        alone, top = use.run(None, grads=True).grads, use.run(sent, grads=True).grads
        for i, want in alone.items():
            if disagreement(top[i], want):
                raise Failed(f"a loss has no output gradient, but the gradient of {use.names[i]!r} reads one: "
                             f"{disagreement(top[i], want)}", "remove loss=True, or g from the gradient")
        return None
    if use.op.traits.unread:
        unread = use.op.traits.unread
        blind_use = use.on_arrays([
            np.full_like(value, np.nan if is_floating(value.dtype) else 0) if i in unread else value
            for i, value in enumerate(use.arrays)])
        compare(blind_use.run(), use.run(), use, "without the numbers of inputs that are declared unread")
        return None
    raise CheckSkipped("it declares no dependencies")


# ---------------------------------------------------------------------------------------------------- graphs


def plannable(use: Use) -> bool:
    """Whether the operator has outputs whose shapes do not depend on values."""
    outputs: list[Any] = [None] * len(use.op.signature.outputs(use.attrs))
    shapes = use.op.infer_shapes([value.shape for value in use.arrays], outputs, use.attrs)[1]
    return bool(shapes) and all(is_known(shape) for shape in shapes)


@check("graph")
def in_a_graph(use: Subject) -> None:
    """A graph gives the eager results in each run, with the operator alone and between other nodes."""
    use = _operator(use)
    if not plannable(use):
        raise CheckSkipped("its shapes depend on values")
    out_grads, expected = run_with_gradients(use)
    change = "let what is computed depend on what the method is given, nothing else"
    compare(graph(use, head_grads=out_grads, grads=bool(expected.grads)), expected, use, "in a graph", change)
    if use.arrays and not use.loss:
        compare(graph(use, head_grads=out_grads, grads=bool(expected.grads), around=True), expected, use,
                "between other nodes of a graph", change)
    moved_use = scaled_inputs(use)
    executor, expected_after = bind(use), moved_use.run()
    executor.forward(is_train=use.train)
    places = {**executor.arg_dict, **executor.aux_dict}
    for name, value in zip(use.names, moved_use.arrays):
        places[name][:] = array(value, None, value.dtype)
    use.seed()
    for out, want in zip(executor.forward(is_train=use.train), expected_after.outs):
        far = disagreement(out.asnumpy(), want)
        if far:
            raise Failed(f"a second run in a graph, on other inputs, differs from eager: {far}", change)


# ---------------------------------------------------------------------------------------------------- files


@check("states")
def states(use: Subject) -> None:
    """States change only in training."""
    use = _operator(use)
    if len(use.arrays) == use.count:
        raise CheckSkipped("it has no states")
    after = use.in_mode(False).run().after
    for name, state, actual in zip(use.names[use.count:], use.arrays[use.count:], after[use.count:]):
        far = disagreement(actual, state)
        if far:
            raise Failed(f"it changes the state {name!r} outside of training: {far}",
                         "change it only if is_train: a keyword-only parameter of a function, a parameter of forward")


@check("saved", ("written",))
def saved(use: Subject) -> None:
    """A file restores the operator: its attributes, names, weights and results."""
    if isinstance(use, TensorUse):
        return _checkpoint(use)
    if not isinstance(use, Use):
        raise CheckSkipped("it is no operator, so a file cannot hold it")
    if find(use.op.name) is not use.op:
        raise CheckSkipped("it is not registered, so a file cannot name it")
    schema = use.op.signature.schema
    for name, value in use.attrs.items():
        if name in schema:
            try:
                text = schema[name].text(value)
                again = schema[name](text)
            except Exception as error:
                raise Failed(f"the attribute {name}={value!r} cannot be read from text: {first_line(error)}",
                             f"annotate it with a type that can be written as text: {name}: float, int, bool, str or a "
                             f"tuple"
                             ) from None
            equal = type(again) is type(value) and schema[name].text(again) == text  # arrays have no single truth value
            if not equal and again != value and again == again:  # NaN differs from itself
                raise Failed(f"the attribute {name}={value!r} is {again!r} after saving and loading",
                             f"annotate it with its type, as in {name}: {type(value).__name__}, or take it as text")
    if not plannable(use) or not use.arrays:
        raise CheckSkipped("its shapes depend on values" if use.arrays else "it has no inputs")
    net = symbol(use)
    loaded: Any = load_json(net.tojson(remove_amp_cast=False))
    for question in ("list_arguments", "list_outputs", "list_auxiliary_states"):
        if getattr(loaded, question)() != getattr(net, question)():
            raise Failed(f"{question} returns {getattr(loaded, question)()} after loading, "
                         f"{getattr(net, question)()} before", "compute it from the attributes alone")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "check.params")
        save_arrays(path, {name: array(value, None, value.dtype) for name, value in zip(use.names, use.arrays)})
        weights: Any = load_arrays(path)
    if use.stochastic:
        return None
    names = use.names
    executor = loaded.bind(cpu(), {name: weights[name] for name in names[:use.count]},
                           aux_states={name: weights[name] for name in names[use.count:]})
    for i, (out, want) in enumerate(zip(executor.forward(is_train=use.train), use.run().outs)):
        far = disagreement(out.asnumpy(), want)
        if far:
            raise Failed(f"output {i} differs after saving and loading: {far}",
                         "values that decide results have to be attributes: keywords of the constructor or function")
    return None


def _checkpoint(use: TensorUse) -> None:
    weights = [*use.parameters, *use.states]
    if not weights:
        raise CheckSkipped("it has no parameters")
    names = [weight.name for weight in weights]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Failed(f"two parameters are called {twice!r}: a checkpoint holds one of them",
                     "give each a different name: Parameter(value, name=…)")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "check.params")
        save_arrays(path, {name: array(each, None, each.dtype)
                           for name, each in zip(names, use.arrays[len(use.places):])})
        loaded: Any = load_arrays(path)
    expected = use.run()
    restored = use.on_arrays([*use.arrays[:len(use.places)], *[loaded[name].asnumpy() for name in names]]).run()
    if not use.stochastic:
        compare(restored, expected, use, "with weights that were saved and loaded")

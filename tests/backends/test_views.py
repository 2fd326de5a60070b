"""Every kernel gives the same results for views as for whole arrays, and writes nothing beside them; eager calls and
plans likewise."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym
from opreg.backends.numba import compiler
from opreg.core.launch import Call, Kernel
from opreg.core.mode import Recording
from opreg.core.op import Op
from opreg.core.registry import get
from opreg.core.spec import is_floating, is_numpy_float
from opreg.errors import OpError
from opreg.ndarray import NDArray, array, cpu, gpu
from opreg.ndarray import eager as eager_calls
from opreg.ndarray.autograd import backward
from opreg.ndarray.context import Context
from opreg.symbol.symbol import create
from opreg.testing.registered import plannable
from tests.backends.kernels import applies, called, computed, fast
from tests.backends.views import READ, WRITTEN, Place
from tests.cuda import cublaslt, cudnn, host
from tests.cuda.machine import MACHINE
from tests.cuda.strict import StrictArray
from tests.questions import of_each
from tests.rows import Row, all_rows
from tests.running import TOLERANCES, Use, agree, eager, heads

#: If numba and oneDNN are installed, their kernels are tested; otherwise all others.
LIBRARIES = importlib.util.find_spec("numba") is not None
#: Operators that need inputs of a certain form, or matrices without repeated rows; with other values they have no
#: result.
RELATED = frozenset({"_backward_Pooling_max", "_backward_contrib_boolean_mask", "_boolean_mask_like", "_npi_tensorinv"})


# ---------------------------------------------------------------------------------------- runs on views


ROWS: dict[Op, list[Row]] = defaultdict(list)
for _row in all_rows():
    if _row.deterministic and _row.inputs and all(np.size(each) for each in _row.inputs):
        ROWS[get(_row.op)].append(_row)


def _uses(op: Op) -> Iterator[Use]:
    """Uses of an operator in each dtype, in the order of its rows."""
    for row in ROWS[op]:
        for dtype in row.dtypes or (None,):
            use = Use.of(row, dtype)
            if applies(use) and plannable(use):
                yield use


@functools.cache
def used(op: Op) -> list[Use]:
    """Uses of an operator; those with most inputs and axes come first."""
    return sorted(_uses(op), key=lambda use: (-len(use.arrays), -max(each.ndim for each in use.arrays)))


def kernels(counts: Callable[[Kernel], bool], most: int) -> list[tuple[Op, Kernel]]:
    """Operators with a kernel for which ``counts`` is true, at most ``most`` of them for each kernel function."""
    found: dict[CodeType, list[tuple[Op, Kernel]]] = defaultdict(list)
    for op in sorted(ROWS, key=lambda op: (max(len(row.inputs) for row in ROWS[op]), op.name)):
        counting = [kernel for kernel in op.kernels if counts(kernel)]
        if counting and next(_uses(op), None) is not None:
            for kernel in counting:
                found[kernel.rule.function.__code__].append((op, kernel))
    return [pairs[i] for pairs in found.values()
            for i in sorted(set(np.linspace(0, len(pairs) - 1, most).round().astype(int)))]


KERNELS = kernels(lambda kernel: (kernel.serves is None or kernel.serves(np)) and kernel.rule.function.__module__.
                  startswith(("opreg.backends.numba", "opreg.backends.onednn")) is LIBRARIES, 6)
NAMES = sorted({op.name for op, _ in KERNELS})


class There(NamedTuple):
    """A device: how bytes are copied to its memory, and the class of its arrays."""

    ctx: Context
    memory: Callable[[np.ndarray], np.ndarray]
    array: Callable[[np.ndarray], Any]

    def place(self, name: str, numbers: np.ndarray) -> Place:
        """The array in the memory of the device."""
        return Place(name, numbers, self.memory)

    def wrapped(self, places: Sequence[Place]) -> list[NDArray]:
        """The NDArrays of users over these places."""
        return [NDArray(self.array(place.array), self.ctx) for place in places]


HOST = There(cpu(), lambda whole: whole, lambda array: array)


def _turned(name: str, count: int) -> list[str]:
    """Names of ``count`` layouts of arrays in turn, beginning with ``name``."""
    names = list(WRITTEN)
    start = names.index(name)
    return [names[(start + i) % len(names)] for i in range(count)]


# ---------------------------------------------------------------------------------------------- kernels


class Run(NamedTuple):
    """Layouts of inputs and outputs, requests, and the input whose memory the first output takes over."""

    ins: list[str]
    outs: str = "own"
    req: str = "write"
    over: int | None = None


def small(use: Use) -> Iterator[Run]:
    """Runs in which all inputs, the outputs, or all arrays are views, and runs in place."""
    count = len(use.arrays)
    for name in WRITTEN:
        yield Run([name] * count)
        yield Run(["own"] * count, name)
        yield Run(_turned(name, count), name, "add")
        for over in use.op.traits.inplace:
            if over < count and not use.op.traits.mutates:
                yield Run([name] * count, over=over)
    if use.op.name not in RELATED:
        for name in READ:
            yield Run([name] * count)


def large(use: Use) -> Iterator[Run]:
    """Runs in which all inputs and outputs are views."""
    for name in WRITTEN:
        yield Run(_turned(name, len(use.arrays)), _turned(name, 2)[1])


def accepted(op: Op, kernel: Kernel) -> list[Use]:
    """Uses of different dtypes in which a kernel accepts whole arrays."""
    found: dict[np.dtype, Use] = {}
    for use in used(op):
        if kernel.accepts is None or kernel.accepts(called(use)) is None:
            found.setdefault(use.arrays[0].dtype, use)
    return list(found.values())[:3]


def reference(use: Use) -> Call | None:
    """Results of the reference on whole arrays; None if it raises an error."""
    call = called(use)
    try:
        assert computed(call, use.op.kernels[0]) is None
    except (OpError, np.linalg.LinAlgError):
        return None
    return call


def check(use: Use, kernel: Kernel, run: Run, plain: Call | None, there: There = HOST) -> str | None:
    """Compares a run of a kernel with the reference's results; returns the kernel's reason to decline."""
    states = range(len(use.op.signature.arguments(use.attrs)), len(use.arrays))
    moved = {*use.op.traits.mutates, *([states[i] for i in use.op.traits.states] if use.train else [])}
    ins = [there.place("own" if i in moved and name in READ else name, numbers)
           for i, (name, numbers) in enumerate(zip(run.ins, use.arrays))]
    if not {"own", *WRITTEN}.issuperset(run.ins):
        plain = reference(use.on_arrays([np.array(place.array) for place in ins]))
    if plain is None:
        return None
    before = [np.resize(np.arange(1, 8), out.shape).astype(out.dtype) for out in plain.outs]
    outs = [there.place(run.outs, numbers) for numbers in before]
    if run.over is not None:
        if (ins[run.over].array.shape, ins[run.over].array.dtype) != (outs[0].array.shape, outs[0].array.dtype):
            return None
        outs[0] = ins[run.over]
    call = called(use, [there.array(place.array) for place in ins], [there.array(place.array) for place in outs],
                  [run.req] * len(outs), there.ctx)
    for place in ins:
        place.halve()
    reason = computed(call, kernel, lambda: [place.fill() for place in ins])
    if reason is not None:
        return reason
    what = f"{use.op.name} {use.given} {[each.dtype.name for each in use.arrays]}, kernel {kernel.name}, {run}"
    for i, (place, want, had) in enumerate(zip(outs, plain.outs, before)):
        agree(place.found(what), had + want if run.req == "add" else want, TOLERANCES.get(want.dtype.name),
              f"{what}: output {i}")
    for i, (place, want) in enumerate(zip(ins, plain.ins)):
        if i != run.over:
            agree(place.found(what), want, TOLERANCES.get(want.dtype.name) if i in moved else 0.0,
                  f"{what}: input {i} afterwards")
    return None


@of_each(KERNELS, by=lambda case: case[0].name)
def test_kernels_on_views_equal_the_reference(op: Op, kernel: Kernel) -> None:
    """The first use has every layout, others have half of them, except for kernels that are compiled for each."""
    with fast():
        uses = accepted(op, kernel)
        plain = [reference(use) for use in uses]
        for turn, (use, own) in enumerate(zip(uses, plain)):
            for number, run in enumerate(small(use)):
                if LIBRARIES or not turn or number % 2 == turn % 2:
                    check(use, kernel, run, own)
    with fast(few=True):
        for use, own in zip(uses, plain):
            for run in large(use):
                check(use, kernel, run, own)


# ------------------------------------------------------------------------------------------ eager calls


@pytest.mark.parametrize("name", NAMES)
def test_eager_calls_on_views_equal_the_reference(name: str) -> None:
    """Gradients, and results written to ``out``, are compared, too. Each operator is called with one of three layouts
    in turn: calls do not depend on the operator, and ``test_kernels_on_views_equal_the_reference`` runs each kernel
    with every layout."""
    use, turn = used(get(name))[0], NAMES.index(name)
    for way in (*WRITTEN, *READ)[turn % 3::3]:
        if way in READ and (use.op.traits.mutates or use.op.traits.states or name in RELATED):
            continue
        places = [Place(way, numbers) for numbers in use.arrays]
        like = use.on_arrays([np.array(place.array) for place in places])
        with fast():
            try:
                given = heads(use, eager(like).outs)
            except OpError:
                continue
            grads = use.op.differentiable and bool(use.wanted)
            eager_calls._RUNNERS.clear()  # a prepared call, made with such arrays, also serves others
            found = eager(use, head_grads=given, grads=grads, raw=HOST.wrapped(places))
            want = eager(like, head_grads=given, grads=grads)
            targets = [Place(way if way in WRITTEN else "own", np.zeros_like(out)) for out in want.outs]
            eager(like, out=HOST.wrapped(targets))
        for i, (one, target, other) in enumerate(zip(found.outs, targets, want.outs, strict=True)):
            agree(one, other, None, f"{way}: output {i}")
            agree(target.found(way), other, None, f"{way}: out={i}")
        for i, gradient in want.grads.items():
            agree(found.grads[i], gradient, None, f"{way}: gradient of input {i}")
        for i, (place, other) in enumerate(zip(places, want.after)):
            agree(place.found(way), other, None, f"{way}: input {i} afterwards")


# ------------------------------------------------------------------------------------------------ plans


class Seen(NamedTuple):
    """A kind of view in graphs: the whole array for given elements, and how ``nd`` or ``sym`` makes the view."""

    whole: Callable[[np.ndarray], np.ndarray]
    view: Callable[[Any, Any, tuple[int, ...]], Any]


SEEN = {
    "as it is": Seen(np.copy, lambda F, x, shape: x),
    "slice_axis": Seen(lambda x: np.concatenate([x.take([0], -1), x, x], -1),
                       lambda F, x, shape: F.slice_axis(x, axis=-1, begin=1, end=1 + shape[-1])),
    "reshape": Seen(lambda x: x.reshape(-1, *x.shape[:-1]), lambda F, x, shape: F.reshape(x, shape=shape)),
    "reshape of a part": Seen(lambda x: np.stack([x.ravel()] * 2), lambda F, x, shape: F.reshape(
        F.slice_axis(x, axis=0, begin=1, end=2), shape=shape)),
    "slice": Seen(lambda x: np.repeat(x, 2, -1), lambda F, x, shape: F.slice(
        x, begin=(0,) * len(shape), end=(*shape[:-1], 2 * shape[-1]), step=(*(1,) * (len(shape) - 1), 2))),
    "split": Seen(lambda x: np.concatenate([x, x], -1), lambda F, x, shape: F.split(x, num_outputs=2, axis=-1)[1]),
    "split of rows": Seen(lambda x: np.concatenate([x, x]), lambda F, x, shape: F.SliceChannel(
        x, num_outputs=2, axis=0)[0]),
    "split of the second axis": Seen(
        lambda x: np.concatenate([x, x], min(1, x.ndim - 1)),
        lambda F, x, shape: F.split(x, num_outputs=2, axis=min(1, len(shape) - 1))[1]),
    "transpose": Seen(lambda x: x.T.copy(), lambda F, x, shape: F.transpose(x)),
    "swapaxes": Seen(lambda x: np.swapaxes(x, 0, -1).copy(),
                     lambda F, x, shape: F.swapaxes(x, dim1=0, dim2=len(shape) - 1)),
    "reverse": Seen(lambda x: x[::-1].copy(), lambda F, x, shape: F.reverse(x, axis=0)),
    "broadcast_to": Seen(lambda x: x.take([0], 0), lambda F, x, shape: F.broadcast_to(x, shape=shape)),
}


class Bound(NamedTuple):
    """Settings of a plan: views as arguments, views as gradients, the request, and whether the variables are computed
    before they are viewed."""

    args: bool
    grads: bool
    req: str
    before: bool


BOUND = {"to arrays of their own": Bound(False, False, "write", False), "to views": Bound(True, True, "add", False),
         "behind others": Bound(False, True, "write", True)}


def plan(use: Use, name: str, way: Bound, there: There = HOST) -> None:
    """Runs a use whose inputs are views of variables, or of computed values, in a plan and on a tape."""
    seen, count, names, ctx = SEEN[name], len(use.op.signature.arguments(use.attrs)), use.names, there.ctx
    floats = [is_numpy_float(each.dtype) for each in use.arrays]
    viewed = [i < count and i not in use.op.traits.mutates and each.ndim > 0 and (kind or name != "broadcast_to")
              for i, (each, kind) in enumerate(zip(use.arrays, floats))]
    arrays = [seen.whole(each) if apart else each for each, apart in zip(use.arrays, viewed)]

    def views(F: Any, values: Sequence[Any]) -> list[Any]:
        values = [F.negative(F.negative(x)) if way.before and apart and kind else x
                  for x, apart, kind in zip(values, viewed, floats)]
        return [seen.view(F, x, each.shape) if apart else x for x, apart, each in zip(values, viewed, use.arrays)]

    wanted = use.wanted if use.op.differentiable else []
    variables = [array(each, None, each.dtype) for each in arrays]
    for i in wanted:
        variables[i].attach_grad()
    with Recording(bool(wanted), use.train):
        found = use.invoke(views(nd, variables), cpu())
    expected = list(found) if isinstance(found, (list, tuple)) else [found]
    given = heads(use, [out.asnumpy() for out in expected])
    live = [i for i, out in enumerate(expected) if is_floating(out._data.dtype) and out._entry is not None]
    if live:
        backward([expected[i] for i in live], None if given is None else [
            array(given[i], None, given[i].dtype) for i in live], train_mode=use.train)

    args, keywords = use.call(views(sym, [sym.Variable(each) for each in names]), ctx)
    network = create(use.op, args, {**keywords, "name": "op"}, "op")
    ways = _turned(list(WRITTEN)[list(SEEN).index(name)], 2 * len(arrays))
    had = [np.resize(np.arange(1, 8), each.shape).astype(each.dtype) for each in arrays]
    places = [there.place(each if way.args else "own", numbers) for each, numbers in zip(ways, arrays)]
    grads = {i: there.place(ways[-1 - i] if way.grads else "own", had[i]) for i in wanted}
    bound = there.wrapped(places)
    for place in places:
        place.halve()
    executor = network.bind(ctx, bound[:count], dict(zip([names[i] for i in grads], there.wrapped(list(
        grads.values())))), way.req, bound[count:])
    arrived = None if given is None else [array(np.zeros(out.shape) if each is None else each, ctx, out._data.dtype)
                                          for each, out in zip(given, expected)]
    what = f"{use.op.name} {use.given} of {name}, {way}"
    for _ in range(2):  # the second time with other numbers in the same arrays
        with np.errstate(all="ignore"):
            results = [each.asnumpy() for each in executor.forward(is_train=use.train)]
            if wanted:
                executor.backward(arrived)
        gradients = {i: place.found(what) for i, place in grads.items()}
        after = [place.found(what) for place in places]
    for i, (one, want) in enumerate(zip(results, expected)):
        agree(one, want.asnumpy(), None, f"{what}: output {i}")
    for i, one in gradients.items():
        agree(one, variables[i].grad.asnumpy() + (had[i] if way.req == "add" else 0), None,
              f"{what}: gradient of input {i}")
    for i, (one, variable) in enumerate(zip(after, variables)):
        agree(one, variable.asnumpy(), None, f"{what}: input {i} afterwards")


@of_each(itertools.product(NAMES, BOUND), by=lambda case: case[0])
def test_plans_on_views_equal_the_reference(name: str, way: str) -> None:
    """Each operator has every view in a plan. The settings of plans take turns, since plans treat all operators
    alike."""
    turn = NAMES.index(name) + list(BOUND).index(way)
    with fast(few=BOUND[way].grads):
        for seen in list(SEEN)[turn % 3::3]:
            if seen != "broadcast_to" or name not in RELATED:
                plan(used(get(name))[0], seen, BOUND[way])


# --------------------------------------------------------------------------------------------- networks


def _gates() -> Any:
    """A gated layer, whose result is transposed for the product of a recurrent layer."""
    left, right = sym.split(sym.FullyConnected(sym.var("x"), num_hidden=12, name="first"), num_outputs=2, axis=1)
    return sym.FullyConnected(sym.slice_axis(left * sym.sigmoid(right), axis=1, begin=0, end=4), num_hidden=5)


def _attention() -> Any:
    heads = sym.FullyConnected(sym.var("x"), num_hidden=12, flatten=False, no_bias=True)
    q, k, v = sym.split(heads, num_outputs=3, axis=-1)
    return sym.FullyConnected(sym.batch_dot(sym.softmax(sym.batch_dot(q, k, transpose_b=True)), v), num_hidden=3)


def _convolutions() -> Any:
    x = sym.Convolution(sym.var("x"), kernel=(3, 3), pad=(1, 1), num_filter=6, no_bias=True, name="first")
    x = sym.relu(sym.BatchNorm(x, fix_gamma=False, name="norm"))
    x = sym.Convolution(sym.slice_axis(x, axis=1, begin=1, end=5), kernel=(3, 3), num_filter=4, name="second")
    return sym.FullyConnected(sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max"), num_hidden=3)


def _loop() -> Any:
    """A loop over the rows of a sequence with the same weights."""
    weight = sym.var("weight", shape=(4, 4))
    states, _ = sym.contrib.foreach(lambda row, state: (sym.tanh(sym.dot(row + state, weight)),) * 2, sym.var("x"),
                                    sym.var("state", shape=(3, 4)))
    return sym.sum(states, axis=0)


def _picked() -> Any:
    """Rows chosen by indices, and a function of them."""
    rows = sym.contrib.boolean_mask(sym.var("x"), sym.var("chosen", shape=(6,)) > 0)
    return sym.FullyConnected(rows, num_hidden=3)


def _recurrent() -> Any:
    return sym.RNN(sym.slice_axis(sym.var("x"), axis=2, begin=1, end=4), sym.var("parameters"), sym.var("state"),
                   sym.var("cell"), state_size=4, num_layers=1, mode="lstm")


#: Networks whose layers read parts of earlier results, and the shapes of their data.
NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "gates": (_gates, (6, 8)), "attention": (_attention, (2, 5, 8)), "convolutions": (_convolutions, (2, 3, 8, 8)),
    "loop": (_loop, (2, 3, 4)), "rows that are picked": (_picked, (6, 4)), "a recurrent layer": (_recurrent, (3, 2, 5)),
}


def results(network: Any, arrays: dict[str, np.ndarray], way: str, optimizer: Any, there: There) -> list[np.ndarray]:
    """Outputs and gradients of two steps of training and of inference, with the arguments and states after each."""
    names, states = network.list_arguments(), network.list_auxiliary_states()
    ways = _turned(way, 2 * len(arrays)) if way in WRITTEN else [way] * 2 * len(arrays)
    places = {name: there.place(each, arrays[name]) for each, name in zip(ways, (*names, *states))}
    grads = {name: there.place(each, np.zeros_like(arrays[name])) for each, name in zip(reversed(ways), names)}
    bound = dict(zip(places, there.wrapped(list(places.values()))))
    executor = network.bind(there.ctx, {name: bound[name] for name in names},
                            dict(zip(grads, there.wrapped(list(grads.values())))), "add" if optimizer is None else
                            "write", {name: bound[name] for name in states})
    if optimizer is not None:
        executor.set_optimizer(optimizer)
    found: list[np.ndarray] = []
    for _ in range(2):
        out = executor.forward(is_train=True)[0]
        found.append(out.asnumpy())
        executor.backward([array(np.sin(np.arange(out.size, dtype=np.float32)).reshape(out.shape), there.ctx)])
        if optimizer is not None:
            executor.update()
    found.append(executor.forward(is_train=False)[0].asnumpy())
    return [*found, *[place.found(way) for place in (*grads.values(), *places.values())]]


def compare(name: str, way: str, optimizer: Callable[[], Any], there: There = HOST) -> None:
    """Compares a network bound to views, whose arrays are large, with the same network bound to whole arrays on the
    host."""
    make, shape = NETWORKS[name]
    network = make()
    shapes, _, states = network.infer_shape_partial(x=shape)
    rng = np.random.default_rng(0)
    arrays = {each: rng.uniform(0.5 if "var" in each else -1.0, 1.5, size).astype(np.float32) for each, size in zip(
        (*network.list_arguments(), *network.list_auxiliary_states()), (*shapes, *states))}
    with compiler.use("numpy"):
        expected = results(network, arrays, "own", optimizer(), HOST)
    with fast(few=True):
        for i, (one, other) in enumerate(zip(results(network, arrays, way, optimizer(), there), expected, strict=True)):
            agree(one, other, 1e-3, f"{name} of {way}: array {i} of outputs, gradients and arguments")


#: Steps after a backward pass: nothing, or an update.
STEPS = (lambda: None, lambda: mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9),
         lambda: mx.optimizer.create("adam", learning_rate=0.1))


@pytest.mark.parametrize("way", WRITTEN)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_on_views_equal_the_reference(name: str, way: str) -> None:
    compare(name, way, STEPS[len(way) % len(STEPS)])


# ------------------------------------------------------------------------------------ the stand-in for a GPU

DEVICE = There(gpu(0), MACHINE.owned, StrictArray)
needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")


@contextlib.contextmanager
def device() -> Iterator[Any]:
    """A stand-in for a GPU with cublasLt and cuDNN."""
    with cudnn.installed(), cublaslt.installed() as found:
        yield found.xp


@needs_compiler
@pytest.mark.parametrize("part", range(8))
def test_kernels_of_a_gpu_on_views_equal_the_reference(part: int) -> None:
    with device() as xp, fast():
        get("exp")
        for op, kernel in kernels(lambda kernel: kernel.serves is not None and kernel.serves(xp), 2)[part::8]:
            accepting = False
            for use in [use for use in used(op) if use.arrays[0].dtype != np.float64] or used(op):
                own = reference(use)
                accepting = check(use, kernel, Run(["own"] * len(use.arrays)), own, DEVICE) is None
                if accepting:
                    break
            assert accepting, f"kernel {kernel.name} of {op.name} declines all rows"
            for run in small(use):
                if "unaligned" not in (*run.ins, run.outs):  # CuPy's own kernels cannot read arrays of this layout
                    check(use, kernel, run, own, DEVICE)


@needs_compiler
@pytest.mark.parametrize("name", ["FullyConnected", "batch_dot", "Convolution", "LayerNorm", "tanh", "Embedding"])
def test_plans_of_a_gpu_on_views_equal_the_reference(name: str) -> None:
    use = next(use for use in used(get(name)) if np.float32 in [each.dtype for each in use.arrays])
    for number, seen in enumerate(SEEN, len(name)):
        with device(), fast():
            plan(use, seen, list(BOUND.values())[number % 3], DEVICE)


@needs_compiler
@pytest.mark.parametrize("way", ["columns", "block transposed", "every other row"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_a_gpu_on_views_equal_the_reference(name: str, way: str) -> None:
    with device():
        compare(name, way, STEPS[len(way) % len(STEPS)], DEVICE)

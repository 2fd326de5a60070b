"""The contract of an operator: what is true of one however it is written, a function for each question.

A check returns where all is well, a note or nothing; raises ``Failed`` with what is wrong and what to change, or
``Skipped`` with the reason why it is not asked. Any other exception that leaves it counts as a failure.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray import array, cpu
from opreg.ndarray.context import gpu, num_gpus

from ..core import generators
from ..core.spec import is_floating, is_numpy_float, show
from ..custom.prop import PropUse
from ..errors import NotDifferentiableError, OpError
from .comparison import Slope, disagreement, position, worst_slope
from .subjects import FunctionUse, TensorUse, compiled, in_a_cell
from .uses import Heads, Result, Subject, Use, heads

__all__ = ["CHECKS", "Check", "Failed", "LAYOUTS", "Skipped", "check", "compare", "differentiated", "first_line",
           "moved", "runs", "told_again"]


class Failed(Exception):
    """Something is wrong; ``change`` says what to write."""

    def __init__(self, text: str, change: str = ""):
        super().__init__(text)
        self.change = change


class Skipped(Exception):
    """The question is not asked, for a reason."""


#: What it is given is run, as often as it likes within reason.
Question: TypeAlias = Callable[[Any], str | None]


@dataclass(frozen=True)
class Check:
    """A question with its name, in a sentence; and the checks without which it is not asked."""

    name: str
    asks: str
    ask: Question
    needs: tuple[str, ...]


CHECKS: list[Check] = []


def check(name: str, needs: Sequence[str] = ("backward", "deterministic")) -> Callable[[Question], Question]:
    """Add a function to the checks; its docstring is what it asks."""

    def add(ask: Question) -> Question:
        CHECKS.append(Check(name, (ask.__doc__ or "").split("\n\n")[0], ask, ("runs", *needs) if CHECKS else ()))
        return ask

    return add


# ---------------------------------------------------------------------------------------------------- words


def _top(use: Subject) -> str:
    """What the gradient from above is called where the gradient of something is written."""
    if isinstance(use, Use):
        return "out_grad[0]" if isinstance(use.attrs, PropUse) else "g"
    return "the gradient that backward is given" if isinstance(use, FunctionUse) else "dout"


def _place(use: Subject, i: int) -> str:
    """Where the gradient of an input is written."""
    if isinstance(use, Use) and isinstance(use.attrs, PropUse):
        return f"in_grad[{i}] in backward"
    where = {Use: "the gradient rule", FunctionUse: "backward", TensorUse: "bprop"}[type(use)]
    return f"value {i} that {where} returns"


def _written(use: Subject) -> str:
    """What computes, as a user calls it."""
    if isinstance(use, Use):
        return "forward" if isinstance(use.attrs, PropUse) else "the function"
    return "forward" if isinstance(use, FunctionUse) else "construct"


def compare(found: Result, expected: Result, use: Subject, what: str, change: str = "",
            tolerance: float | None = None) -> None:
    """Fail where outputs, states or gradients differ."""
    if len(found.outs) != len(expected.outs):
        raise Failed(f"{what} there are {len(found.outs)} outputs, not {len(expected.outs)}", change)
    for i, (out, want) in enumerate(zip(found.outs, expected.outs)):
        far = disagreement(out, want, tolerance)
        if far:
            raise Failed(f"{what} output {i} is another: {far}", change)
    for i, want in expected.grads.items():
        far = disagreement(found.grads[i], want, tolerance) if i in found.grads else "it is missing"
        if far:
            raise Failed(f"{what} the gradient of {use.names[i]!r} is another: {far}", change)
    for i, (after, want) in list(enumerate(zip(found.after, expected.after)))[use.count:]:
        far = disagreement(after, want, tolerance)
        if far:
            raise Failed(f"{what} the state {use.names[i]!r} is another afterwards: {far}", change)


def _sent(use: Subject) -> Heads:
    return heads(use, use.run().outs)


def differentiated(use: Subject) -> tuple[Heads, Result]:
    """Head gradients and a run with gradients; without, where there are none."""
    result = use.run()
    given = heads(use, result.outs)
    if not use.wanted or not any(is_floating(out.dtype) for out in result.outs):
        return given, result
    try:
        return given, use.run(given, grads=True)
    except NotDifferentiableError:
        return given, result


def moved(use: Subject) -> Subject:
    """The same with other numbers: every floating one is moved a little, and its sign kept."""
    return use.having([each * each.dtype.type(0.75) if is_numpy_float(each.dtype) else each for each in use.arrays])


# ---------------------------------------------------------------------------------------------------- chance


@check("runs")
def runs(use: Subject) -> None:
    """It runs on these inputs."""
    use.run()


@check("backward", ())
def runs_backward(use: Subject) -> str | None:
    """Its gradient runs, with what it declared to read."""
    outs = use.run().outs
    if not use.wanted or not any(is_floating(out.dtype) for out in outs):
        raise Skipped("no floating input, or no floating output")
    try:
        use.run(heads(use, outs), grads=True)
    except NotDifferentiableError as error:
        raise Skipped(f"it has no gradient: {first_line(error)}") from None
    except OpError as error:
        if "was not asked for" in str(error):
            raise Failed(first_line(error), _declare(str(error))) from None
        raise
    return None


def _declare(text: str) -> str:
    """What a Prop has to say so that backward gets what it reads."""
    if "out_grad" in text:
        return "super().__init__(need_top_grad=True), or return out_grad too from declare_backward_dependency"
    what = "in_data" if "in_data" in text else "out_data"
    return f"return {what} too from declare_backward_dependency: [*out_grad, *in_data, *out_data]"


@check("deterministic", ())
def deterministic(use: Subject) -> str | None:
    """The same inputs give the same, and random numbers come from generators that ``mx.random.seed`` seeds."""

    def twice(seed: Callable[[], None]) -> bool:
        found = []
        for _ in range(3):
            seed()
            found.append(use.run().outs)
        return all(np.array_equal(out, want, equal_nan=is_numpy_float(out.dtype))
                   for outs in found[1:] for out, want in zip(outs, found[0]))

    if use.stochastic:
        use.stochastic = False
    if twice(lambda: None):
        return None
    if twice(lambda: generators.seed(1)):
        use.stochastic = True
        return "draws random numbers: the same for the same mx.random.seed"
    if twice(_seed_others):
        raise Failed("runs with the same inputs and the same mx.random.seed differ: it draws from NumPy's or Python's "
                     "own generator", "draw with mx.nd.random, as in mx.nd.random.uniform(shape=x.shape)")
    raise Failed("runs with the same inputs differ, whatever is seeded: it keeps something from call to call, or draws "
                 "from a generator of its own", "keep what lasts in an auxiliary state (a Parameter of a Cell), draw "
                 "with mx.nd.random")


def _seed_others() -> None:
    np.random.seed(1)  # noqa: NPY002  it is what users draw from
    random.seed(1)


# ---------------------------------------------------------------------------------------------------- memory


@check("inputs")
def inputs_stay(use: Subject) -> None:
    """Inputs, and the gradients that arrive, are as they were."""
    given = _sent(use)
    sent = None if given is None else [None if g is None else g.copy() for g in given]
    moved = ({*use.op.mutates} if isinstance(use, Use) else set())
    runs = [("forward", use.run())]
    if use.wanted:
        with contextlib.suppress(NotDifferentiableError):
            runs.append(("backward", use.run(given, grads=True)))
    for way, result in runs:
        for i, (before, after) in list(enumerate(zip(use.arrays, result.after)))[:use.count]:
            if i not in moved and not np.array_equal(before, after, equal_nan=is_numpy_float(before.dtype)):
                raise Failed(f"{way} changes the input {use.names[i]!r}: {disagreement(after, before, 0.0)}",
                             f"work on a copy: {use.names[i]} = {use.names[i]}.copy()")
    for g, kept in zip(given or (), sent or ()):
        if g is not None and kept is not None and not np.array_equal(g, kept):
            raise Failed("backward changes the gradient that arrives", "work on a copy of it")


@check("own memory", ())
def own_memory(use: Subject) -> None:
    """Outputs share memory with nothing."""
    if isinstance(use, TensorUse):
        raise Skipped("tensors are values: changing one changes no other")
    values = [array(each, None, each.dtype) for each in use.arrays]
    outs = use.invoke(values, cpu())
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    for i, out in enumerate(outs):
        for name, value in zip(use.names, values):
            if np.may_share_memory(out._data, value._data):
                raise Failed(f"output {i} shares memory with the input {name!r}: who changes one changes both",
                             f"return a copy: {name}.copy()")
        for j in range(i):
            if np.may_share_memory(out._data, outs[j]._data):
                raise Failed(f"outputs {j} and {i} share memory: who changes one changes both", "return a copy")


# ---------------------------------------------------------------------------------------------------- gradients


def _wide(use: Subject) -> tuple[Subject, bool]:
    """The same in float64 where it can be, and whether it is computed in less all the same."""
    try:
        wide = use.having([each.astype(np.float32) if is_floating(each.dtype) and not is_numpy_float(each.dtype)
                           else each for each in use.arrays]).cast(np.float64)  # bfloat16 is none of NumPy's own
        outs = [out for out in wide.run().outs if is_numpy_float(out.dtype)]
    except Exception:  # whatever keeps it from float64, its own dtype is what it is made for
        return use, True
    with np.errstate(all="ignore"):
        coarse = all(np.array_equal(out.astype(np.float32), out, equal_nan=True) for out in outs)
    return wide, any(out.dtype.itemsize < 8 for out in outs) or (coarse and not _integral(outs))


def _integral(outs: Sequence[np.ndarray]) -> bool:
    """Whether all numbers are so round that they tell nothing about how they were computed."""
    with np.errstate(all="ignore"):
        return all(np.array_equal(out * 1024, np.round(out * 1024), equal_nan=True) for out in outs)


def _weighed(use: Subject, given: Heads, arrays: Sequence[np.ndarray]) -> float:
    outs = use.having(arrays).run().outs
    return float(sum((out.astype(np.float64) * g).sum() for out, g in zip(outs, given or ()) if g is not None))


def _jittered(use: Subject) -> Subject:
    """The same a little aside, where it has a derivative if it had none by chance."""
    rng = np.random.default_rng(5)
    return use.having([each + (0.01 * rng.standard_normal(each.shape) * (0.1 + np.abs(each))).astype(each.dtype)
                       if is_numpy_float(each.dtype) else each for each in use.arrays])


def _off(use: Subject, coarse: bool, ones: bool = False) -> tuple[int, Slope, list[Slope]] | None:
    """An input whose gradient is not that by central differences, with its worst element and others.

    The gradients from above are random numbers, or ``ones``, with which what comes is easier to read.
    """
    given, result = differentiated(use)
    if ones:
        given = [None if g is None else np.ones_like(g) for g in given or ()]
        result = use.run(given, grads=True)
    for i in use.wanted:
        base = use.arrays[i]
        gradient = result.grads.get(i)
        if gradient is None:
            continue

        def total(moved: np.ndarray, i: int = i) -> float:
            return _weighed(use, given, [*use.arrays[:i], moved, *use.arrays[i + 1:]])

        worst, every = worst_slope(total, base, gradient, coarse or base.dtype.itemsize < 8, i)
        if worst is not None:
            return i, worst, every
    return None


@check("gradient")
def gradient(use: Subject) -> str | None:
    """Gradients are those by central differences in float64, in random directions."""
    if use.loss:
        raise Skipped("a loss: its gradient is not that of what it returns")
    given = _sent(use)
    if not use.wanted or all(g is None for g in given or ()):
        raise Skipped("no floating input, or no floating output")
    use.run(given, grads=True)
    wide, coarse = _wide(use)
    if not all(np.isfinite(each).all() for each in (*wide.arrays, *wide.run().outs) if is_numpy_float(each.dtype)):
        raise Skipped("a number among its inputs or outputs is infinite or none: give it others")
    off = _off(wide, coarse)
    if off is None or _off(_jittered(wide), coarse) is None:  # steps and corners have no derivative
        return "in float32, which something inside computes in" if coarse else None
    if len(wide.arrays) > wide.count and wide.train:
        wide = wide.having(wide.arrays)
        wide.train = False
        if _off(wide, coarse) is None:
            return "with its states at rest: when it trains they move with its inputs, which its gradient leaves out"
    plain = _off(wide, coarse, ones=True)
    i, worst, every = plain or off
    above = "" if plain else ", where those from above are others than one"
    raise Failed(f"the gradient of {use.names[i]!r}{position(worst.flat, use.arrays[i].shape)} is {worst.exact:.6g}, "
                 f"central differences say {worst.numeric:.6g}{above}", _mend(wide, i, every))


def _factor(every: Sequence[Slope]) -> float | None:
    """How many times too large all elements are, where they agree in that."""
    pairs = np.array([(each.exact, each.numeric) for each in every])
    pairs = pairs[np.abs(pairs[:, 1]) > 1e-6 + 1e-3 * np.abs(pairs[:, 1]).max()]
    if len(pairs) < 2:
        return None
    ratios = pairs[:, 0] / pairs[:, 1]
    return float(ratios[0]) if np.ptp(ratios) <= 1e-3 * abs(ratios[0]) and abs(ratios[0]) > 1e-6 else None


def _mend(use: Subject, i: int, every: Sequence[Slope]) -> str:
    """What to write instead."""
    name, place = use.names[i], _place(use, i)
    if all(each.exact == 0 for each in every):
        return f"nothing arrives at {name!r}: {place} is never computed"
    given = _sent(use) or []
    doubled = [None if g is None else 2 * g for g in given]
    try:
        once, twice = use.run(given, grads=True).grads[i], use.run(doubled, grads=True).grads[i]
    except Exception:
        once = twice = np.zeros(0)
    if once.size and np.array_equal(once, twice):
        return f"multiply by the gradient from above: {place} has to be {_top(use)} * …"
    factor = _factor(every)
    if factor is not None:
        return f"{place}: multiply it by {1 / factor:.4g}, all of it is {factor:.4g} times what it should be"
    wrong = sum(abs(each.exact - each.numeric) > 1e-4 * max(1e-3, abs(each.exact), abs(each.numeric))
                for each in every)
    return f"{place}: {wrong} of the {len(every)} elements that were looked at are wrong" + (
        f". With traced = True and without a gradient of its own it follows from {_written(use)}"
        if isinstance(use, Use) and use.op.op_type else "")


@check("second order")
def second_order(use: Subject) -> str | None:
    """The gradient of the gradient is that by central differences, where there is one."""
    if use.loss:
        raise Skipped("a loss: its gradient is not that of what it returns")
    wide, coarse = _wide(use)
    given = _sent(wide)
    wanted = [i for i in wide.wanted if not (isinstance(wide, TensorUse) and i >= len(wide.places))]
    if not wanted or all(g is None for g in given or ()):
        raise Skipped("no floating input, or no floating output")
    if coarse or any(wide.arrays[i].dtype.itemsize < 8 for i in wanted):
        raise Skipped("it does not compute in float64, and differences of differences need it")
    wide.run(given, grads=True)
    if _off(wide, coarse) is not None:
        raise Skipped("the first is not right, or has no derivative here")
    rng = np.random.default_rng(2)
    weights = {i: rng.standard_normal(wide.arrays[i].shape) for i in wanted}
    try:
        found = wide.second(given, weights)
    except NotDifferentiableError as error:
        raise Skipped(f"refused: {first_line(error)}") from None
    for i in wanted:
        if i not in found:
            continue

        def total(moved: np.ndarray, i: int = i) -> float:
            grads = wide.having([*wide.arrays[:i], moved, *wide.arrays[i + 1:]]).run(given, grads=True).grads
            return float(sum((grads[j] * weight).sum() for j, weight in weights.items()))

        worst, _ = worst_slope(total, wide.arrays[i], found[i], coarse, i)
        if worst is not None and abs(worst.numeric) > 1e6 * max(1.0, abs(worst.exact)):
            raise Skipped("the gradient makes a jump here")
        if worst is not None:
            raise Failed(f"the second derivative in {wide.names[i]!r}{position(worst.flat, wide.arrays[i].shape)} is "
                         f"{worst.exact:.6g}, central differences of the gradient say {worst.numeric:.6g}",
                         "write the gradient in operators of what it is given; numbers that were taken out (asnumpy, "
                         "detach, BlockGrad) count as constants")
    return None


def first_line(error: BaseException) -> str:
    """What an exception says, as far as its first line; its kind where it says nothing."""
    return (str(error) or type(error).__name__).split("\n")[0]


@check("interleaved")
def interleaved(use: Subject) -> None:
    """Two runs forward, then the first one backward: a run keeps what it needs apart from others'."""
    given, expected = differentiated(use)
    if not expected.grads:
        raise Skipped("no gradient")
    other = moved(use)
    result = use.run(given, grads=True, between=lambda: other.run(given, grads=True))
    compare(Result(result.outs, [], result.grads), expected, use, "when it runs once more before backward",
            "keep nothing outside of the call: what backward needs it is given, or finds in what this call saved")


# ---------------------------------------------------------------------------------------------------- graphs


@check("compiled")
def runs_compiled(use: Subject) -> str | None:
    """Compiled by ``jit`` it gives what it gives eagerly, with gradients."""
    _in_graphs(use)
    given, expected = differentiated(use)
    compare(_run_like(compiled(use), given, expected), expected, use, "compiled",
            f"{_written(use)} must depend on its inputs alone: no numbers of other arrays, no time, no counters")
    return None


@check("in a Cell")
def runs_in_a_cell(use: Subject) -> None:
    """As part of a Cell, eager and compiled, it gives what it gives alone, with gradients."""
    _in_graphs(use)
    given, expected = differentiated(use)
    cell = in_a_cell(use)
    change = f"{_written(use)} must depend on its inputs alone"
    compare(_run_like(cell, given, expected), expected, use, "in a Cell", change)
    compare(_run_like(compiled(cell), given, expected), expected, use, "in a compiled Cell", change)


@check("traced")
def traced(use: Subject) -> None:
    """Followed once and run on other numbers it gives what running it gives."""
    if isinstance(use, FunctionUse) or (isinstance(use, Use) and not use.op.traced):
        raise Skipped("not traced: it runs as Python")
    _in_graphs(use)
    graph, other = compiled(use), moved(use)
    for each in (use, other, use):
        given, expected = differentiated(each)
        compare(_run_like(graph.having(each.arrays), given, expected), expected, use,
                "followed once and run on other numbers" if each is other else "followed",
                f"{_written(use)} must not look at numbers, or keep any: use mx.nd.where instead of if, or leave "
                "traced away")


def _in_graphs(use: Subject) -> None:
    if isinstance(use, FunctionUse):
        raise Skipped("an autograd.Function is for eager code; a CustomOpProp or define enters graphs")
    if isinstance(use, Use) and len(use.arrays) > use.count:
        raise Skipped("it has auxiliary states, which tensors do not have: see graph")
    if isinstance(use, Use) and (use.op.mutates or not use.arrays):
        raise Skipped("it changes its inputs" if use.op.mutates else "it has no inputs")
    if isinstance(use, Use) and use.op.data_dependent:
        raise Skipped("its shapes follow from numbers")
    if use.stochastic:
        raise Skipped("it draws random numbers, in an order of its own")


def _run_like(use: Subject, given: Heads, expected: Result) -> Result:
    return use.run(given, grads=True) if expected.grads else use.run()


# ---------------------------------------------------------------------------------------------------- other inputs


@check("dtypes")
def dtypes(use: Subject) -> str | None:
    """In float16, float32 and float64 it gives the same, as far as these tell numbers apart."""
    if not any(is_numpy_float(each.dtype) for each in use.arrays) or use.stochastic:
        raise Skipped("it draws random numbers, others for each" if use.stochastic else "no floating input")
    try:
        rounded = use.cast(np.float16).cast(np.float64)
        wide = differentiated(rounded)[1]
    except Exception as error:
        if isinstance(error, OpError):
            raise Skipped(f"refused in float64: {first_line(error)}") from None
        raise Failed(f"it fails in float64: {type(error).__name__}: {first_line(error)}",
                     "take the dtype of the input: x.dtype") from error
    refused = []
    for dtype, tolerance in ((np.float32, 1e-3), (np.float16, 6e-2)):
        title, use_so = np.dtype(dtype).name, rounded.cast(dtype)
        try:
            result = differentiated(use_so)[1]
        except OpError:
            refused.append(title)
            continue
        except Exception as error:
            raise Failed(f"it fails in {title}: {type(error).__name__}: {first_line(error)}",
                         "take the dtype of the input: x.dtype, or refuse it in infer_type") from error
        _same_in(title, tolerance, use_so, result, wide)
    return f"refused in {', '.join(refused)}" if refused else None


def _same_in(title: str, tolerance: float, use: Subject, result: Result, wide: Result) -> None:
    largest = float(np.finfo(title).max)
    pairs = [(f"output {i}", out, want, True) for i, (out, want) in enumerate(zip(result.outs, wide.outs))]
    pairs += [(f"the gradient of {use.names[i]!r}", result.grads[i], want, False) for i, want in wide.grads.items()
              if i in result.grads]
    for what, out, want, strict in pairs:
        if out.shape != want.shape:
            raise Failed(f"in {title} the shape of {what} is {show(out.shape)}, not {show(want.shape)}")
        if not (is_numpy_float(out.dtype) and is_numpy_float(want.dtype)):
            continue
        with np.errstate(all="ignore"):
            lost = ~np.isfinite(out) & np.isfinite(want) & (np.abs(want) < largest)
        if lost.any():
            flat = int(np.argmax(lost))
            raise Failed(f"in {title} {what}{position(flat, out.shape)} is {out.flat[flat]}, not {want.flat[flat]:.6g}",
                         f"something on the way leaves the range of {title}: small constants are 0 in it, large ones "
                         "infinite; compute that part in float32, and cast the result")
        big = np.abs(want) >= largest
        far = disagreement(np.where(big, 0, out).astype(out.dtype), np.where(big, 0, want), tolerance)
        if far and strict:
            raise Failed(f"in {title} {what} is another: {far}", "compute in float32 what adds up or cancels, and cast "
                                                                 "the result")


@check("empty", ())
def empty(use: Subject) -> str | None:
    """With no rows it gives no rows, or refuses in words."""
    shapes = [each.shape for each in use.arrays[:_places(use)]]
    if not shapes or not shapes[0]:
        raise Skipped("its first input has no dimensions")
    rows = shapes[0][0]
    none = use.having([each[:0] if i < len(shapes) and each.ndim and each.shape[0] == rows else each
                       for i, each in enumerate(use.arrays)])
    expected = None
    try:
        if isinstance(use, Use):
            expected = use.op.infer_shapes([each.shape for each in none.arrays],
                                           [None] * len(use.op.outputs(use.attrs)), use.attrs)[1]
        outs = none.run().outs
    except (OpError, ValueError) as error:
        raise Skipped(f"refused: {first_line(error)}") from None
    except Exception as error:
        raise Failed(f"it fails on shape {show(none.arrays[0].shape)}: {type(error).__name__}: {first_line(error)}",
                     "let no rows pass, or refuse them in infer_shape with a ValueError that says so") from error
    for i, (out, shape) in enumerate(zip(outs, expected or [out.shape for out in outs])):
        if out.shape != shape:
            raise Failed(f"the shape of output {i} is {show(out.shape)}, inferred was {show(shape)}")
    return None


def _places(use: Subject) -> int:
    return len(use.places) if isinstance(use, TensorUse) else use.count


def _strided(each: np.ndarray) -> np.ndarray:
    wide = np.full((*each.shape[:-1], 2 * each.shape[-1]), 99, each.dtype)
    wide[..., ::2] = each
    return wide[..., ::2]


#: Layouts of arrays in memory.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda each: each.T.copy().T,
    "strided": _strided,
    "reversed": lambda each: np.flip(np.flip(each).copy()),
}


@check("strided")
def strided(use: Subject) -> None:
    """However its inputs lie in memory it gives the same."""
    if not any(each.ndim and each.size > 1 for each in use.arrays):
        raise Skipped("its inputs have one element")
    given, expected = differentiated(use)
    for name, layout in LAYOUTS.items():
        raw = [layout(each) if each.ndim else each.copy() for each in use.arrays]
        result = use.run(given, grads=bool(expected.grads), raw=raw)
        compare(result, expected, use, f"on {name} inputs",
                "use elements by their place, not by their order in memory: np.ascontiguousarray(x) first, where code "
                "needs that")


# ---------------------------------------------------------------------------------------------------- devices


@check("devices")
def devices(use: Subject) -> None:
    """On a GPU it gives what it gives on the host."""
    if not num_gpus():
        raise Skipped("no GPU here")
    given, expected = differentiated(use)
    if use.stochastic:
        raise Skipped("it draws random numbers, others on each device")
    tolerance = max([1e-6, *[{2: 2e-2, 4: 1e-3}.get(out.dtype.itemsize, 1e-6) for out in expected.outs]])
    compare(use.run(given, grads=bool(expected.grads), ctx=gpu(0)), expected, use, "on the GPU",
            "use nd, or the array's own module", tolerance)


# ---------------------------------------------------------------------------------------------------- state


@contextlib.contextmanager
def told_again(use: Subject) -> Iterator[None]:
    """A stretch of code after which warnings come as if it had not been."""
    registered = getattr(use.attrs, "registered", None) if isinstance(use, Use) else None
    told = set() if registered is None else set(registered.told)
    try:
        yield
    finally:
        if registered is not None:
            registered.told.clear()
            registered.told.update(told)

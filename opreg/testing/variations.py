"""Checks that an operator gives the same results in threads, graphs, other dtypes, layouts and devices."""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from opreg.ndarray import NDArray, array
from opreg.ndarray.autograd import vmap
from opreg.ndarray.context import cpu, gpu, num_gpus

from ..core.bytecode_names import loads
from ..core.mode import Recording
from ..core.spec import is_known, is_numpy_float, show
from ..custom.function import FunctionUse as CustomUse
from ..custom.prop_use import PropUse
from ..errors import OpError, is_ours
from . import registered  # noqa: F401  its checks come first
from .comparison import disagreement, position
from .contract import CheckSkipped, Failed, check, compare, first_line, name_of_body, run_with_gradients, scaled_inputs
from .foreign import ForeignUse
from .subjects import TensorUse, compiled, in_a_cell
from .uses import Heads, Result, Subject, Use

__all__ = ["LAYOUTS"]

_NO_VALUES = "must not read values, or store any: use mx.nd.where instead of if, or leave out traced"


@check("interleaved")
def interleaved(use: Subject) -> None:
    """Backward of one run is right after another forward run: runs store nothing in common."""
    out_grads, expected = run_with_gradients(use)
    if not expected.grads:
        raise CheckSkipped("no gradient")
    moved_use = scaled_inputs(use)
    result = use.run(out_grads, grads=True, between=lambda: moved_use.run(out_grads, grads=True))
    compare(Result(result.outs, [], result.grads), expected, use, "when it runs once more before backward",
            "store nothing outside of the call: backward reads its arguments and the arrays saved by its own forward")


#: Runs in two threads, and the seconds that a thread waits for the other ahead of each line of user code.
_RUNS, _TURN = 20, 0.02


def _lockstep(lines: threading.Barrier) -> Callable[..., Any]:
    """A trace function that makes two threads run user code line by line together; a thread whose wait ends goes on
    alone."""
    def each(frame: types.FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        if event == "line":
            with contextlib.suppress(threading.BrokenBarrierError):
                lines.wait(_TURN)
        return None if is_ours(frame) else each

    return each


@check("threads")
def threads(use: Subject) -> None:
    """Two threads that run it at once, on inputs of one shape, get the results of one thread."""
    if isinstance(use, TensorUse) or len(use.arrays) > use.argument_count:
        raise CheckSkipped("it has one set of parameters")
    if use.stochastic:
        raise CheckSkipped("it draws random values, whose order depends on the threads")
    pairs = [(subject, *run_with_gradients(subject)) for subject in (use, scaled_inputs(use))]
    ready, wrong = threading.Barrier(len(pairs)), []
    runs = [threading.Barrier(len(pairs)) for _ in range(_RUNS)]

    def run_in_lockstep(lines: threading.Barrier, subject: Subject, heads: Heads, expected: Result) -> Result:
        ready.wait()
        sys.settrace(_lockstep(lines))
        try:
            return _run_like(subject, heads, expected)
        finally:
            sys.settrace(None)
            lines.abort()

    def run(subject: Subject, heads: Heads, expected: Result) -> None:
        try:
            for lines in runs:
                compare(run_in_lockstep(lines, subject, heads, expected), expected, use, "in two threads at once",
                        "store nothing outside of the call: both threads write to memory that calls share")
        except threading.BrokenBarrierError:
            pass  # the other thread found the fault
        except Exception as error:
            wrong.append(error)
            ready.abort()

    workers = [threading.Thread(target=run, args=pair) for pair in pairs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for error in wrong:
        raise error


# ---------------------------------------------------------------------------------------------------- graphs


@check("compiled", ("backward", "written", "deterministic", "graph"))
def runs_compiled(use: Subject) -> str | None:
    """``jit`` gives the eager results and gradients."""
    compiled_use: Subject | None = use.compiled() if isinstance(use, ForeignUse) else None
    if compiled_use is None:
        _in_graphs(use)
        compiled_use = compiled(use)
    out_grads, expected = run_with_gradients(use)
    compare(_run_like(compiled_use, out_grads, expected), expected, use, "compiled",
            f"{name_of_body(use)} must depend on its inputs alone: no values of other arrays, no time, no counters")
    return None


@check("in a Cell", ("backward", "written", "deterministic", "graph", "compiled"))
def runs_in_a_cell(use: Subject) -> None:
    """A Cell around it gives its results and gradients, eager and compiled, in training and outside of it."""
    _in_graphs(use)
    change = f"{name_of_body(use)} must depend on its inputs alone, and on its mode by is_train"
    for mode_use in (use.in_mode(True), use.in_mode(False)) if isinstance(use, Use) else (use,):
        out_grads, expected = run_with_gradients(mode_use)
        cell = in_a_cell(mode_use)
        mode = "in training" if mode_use.train else "outside of training"
        compare(_run_like(cell, out_grads, expected), expected, use, f"in a Cell {mode}", change)
        compare(_run_like(compiled(cell), out_grads, expected), expected, use, f"in a compiled Cell {mode}", change)


@check("traced")
def traced(use: Subject) -> str | None:
    """A trace made with some inputs gives the right results on others."""
    if use.no_graph or (isinstance(use, Use) and not use.op.traits.traced):
        raise CheckSkipped("not traced: it runs as Python")
    _in_graphs(use)
    graph, moved_use = compiled(use), scaled_inputs(use)
    for subject in (use, moved_use, use):
        out_grads, expected = run_with_gradients(subject)
        if isinstance(subject, Use) and isinstance(subject.attrs, CustomUse):
            compare(Result(expected.outs, []), _results_without_trace(subject), use, "traced",
                    f"{name_of_body(use)} {_NO_VALUES}")
        compare(_run_like(graph.on_arrays(subject.arrays), out_grads, expected), expected, use,
                "traced once and run on other inputs" if subject is moved_use else "traced",
                f"{name_of_body(use)} {_NO_VALUES}")
    outside = sorted({name for function in _bodies(use) for name in _outside_values(function)})
    return f"it reads {', '.join(outside)} from outside: graphs use their values at the time of tracing" \
        if outside else None


@check("samples")
def samples(use: Subject) -> None:
    """The vmap rule gives the results of a loop over the samples."""
    if not isinstance(use, Use) or use.op.where is None or use.op.rules.vmap is None:
        raise CheckSkipped("it has no vmap rule")
    if use.stochastic or len(use.arrays) > use.count:
        raise CheckSkipped("it draws random numbers" if use.stochastic else "it has states")
    ctx = cpu()

    def outputs(*values: NDArray) -> Any:
        return use.invoke(values, ctx)

    for batched in dict.fromkeys([(True,) * use.count, *[tuple(i == j for j in range(use.count))
                                                         for i in range(use.count)]]):
        uses = [use, scaled_inputs(use), use]
        stacked = [np.stack([one.arrays[i] for one in uses]) if own else use.arrays[i] for i, own in enumerate(batched)]
        alone = [use.on_arrays([one.arrays[i] if own else use.arrays[i] for i, own in enumerate(batched)]).run().outs
                 for one in uses]
        with Recording(False, use.train):
            outs = vmap(outputs, tuple([0 if own else None for own in batched]))(
                *[array(one, ctx, one.dtype) for one in stacked])
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        names = ", ".join(name for name, own in zip(use.names, batched) if own)
        compare(Result([out.asnumpy() for out in outs], []), Result([np.stack(one) for one in zip(*alone)], []), use,
                f"for many samples of {names}", "the vmap rule returns outputs with a first axis of samples; "
                                                "each depends on its sample alone")


def _results_without_trace(use: Use) -> Result:
    """The results of a user's function called with arrays, without tracing."""
    ctx, attrs = cpu(), cast(CustomUse, use.attrs)
    use.seed()
    with Recording(False, use.train), ctx:
        outs = attrs.compute([array(each, ctx, each.dtype).shown() for each in use.arrays], ctx, use.train)
    return Result([output.asnumpy() if isinstance(output, NDArray) else np.asarray(output) for output in outs], [])


def _bodies(use: Subject) -> list[Any]:
    """The user's functions and methods that are traced."""
    if not isinstance(use, Use) or use.op.where is None:
        return []
    if not isinstance(use.attrs, PropUse):
        return [getattr(use.op, "__wrapped__", None)]
    custom_op = use.attrs.create(cpu(), {}, use.arrays)
    return [custom_op.forward, custom_op.backward]


def _outside_values(function: Any) -> list[str]:
    """Globals and closure variables that a function reads and that hold values: no modules, functions or classes."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(function, types.FunctionType) or is_ours(function):
        return []
    read, code = loads(function.__code__), function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    values = {name: function.__globals__[name] for name, is_read in read.scope.items()
              if is_read and name in function.__globals__}
    for name in read.outer & cells.keys():
        with contextlib.suppress(ValueError):  # a variable without a value yet
            values[name] = cells[name].cell_contents
    return [name for name, value in values.items() if not callable(value) and not inspect.ismodule(value)]


def _in_graphs(use: Subject) -> None:
    if use.no_graph:
        raise CheckSkipped(use.no_graph)
    if isinstance(use, Use) and (use.op.traits.mutates or not use.arrays):
        raise CheckSkipped("it changes its inputs" if use.op.traits.mutates else "it has no inputs")
    if isinstance(use, Use) and use.op.rules.data_dependent:
        raise CheckSkipped("its shapes depend on values")


def _run_like(use: Subject, heads: Heads, expected: Result) -> Result:
    return use.run(heads, grads=True) if expected.grads else use.run()


# ---------------------------------------------------------------------------------------------------- other inputs


@check("dtypes")
def dtypes(use: Subject) -> str | None:
    """Results in float16 and float32 agree with float64, within the precision of the dtype."""
    if not any(is_numpy_float(value.dtype) for value in use.arrays) or use.stochastic:
        raise CheckSkipped("its random numbers differ from call to call" if use.stochastic else "no floating input")
    try:
        rounded = use.cast(np.float16).cast(np.float64)
        wide = run_with_gradients(rounded)[1]
    except Exception as error:
        if isinstance(error, OpError):
            raise CheckSkipped(f"refused in float64: {first_line(error)}") from None
        raise Failed(f"it fails in float64: {type(error).__name__}: {first_line(error)}",
                     "take the dtype of the input: x.dtype") from error
    refused = []
    for dtype, tolerance in ((np.float32, 1e-3), (np.float16, 6e-2)):
        title, use_so = np.dtype(dtype).name, rounded.cast(dtype)
        try:
            result = run_with_gradients(use_so)[1]
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
                         f"an intermediate value leaves the range of {title}: small constants are 0 in it, large ones "
                         "infinite; compute that part in float32, and cast the result")
        big = np.abs(want) >= largest
        far = disagreement(np.where(big, 0, out).astype(out.dtype), np.where(big, 0, want), tolerance)
        if far and strict:
            raise Failed(f"in {title} {what} differs: {far}", "compute sums and differences in float32, and cast "
                         "the result")


@check("empty", ())
def empty(use: Subject) -> str | None:
    """Inputs without rows give outputs without rows, or an error that says so."""
    shapes = [value.shape for value in use.arrays[:use.argument_count]]
    if not shapes or not shapes[0]:
        raise CheckSkipped("its first input has no dimensions")
    rows = shapes[0][0]
    none = use.on_arrays([value[:0] if i < len(shapes) and value.ndim and value.shape[0] == rows else value
                          for i, value in enumerate(use.arrays)])
    expected = None
    try:
        if isinstance(use, Use):
            expected = [spec.shape for spec in use.op.specs(none.arrays, use.attrs)]
        outs = none.run().outs
    except use.refusals as error:
        raise CheckSkipped(f"refused: {first_line(error)}") from None
    except Exception as error:
        raise Failed(f"it fails on shape {show(none.arrays[0].shape)}: {type(error).__name__}: {first_line(error)}",
                     "accept inputs without rows, or raise a ValueError in infer_shape that says so") from error
    for i, (out, shape) in enumerate(zip(outs, expected or [out.shape for out in outs])):
        if is_known(shape) and out.shape != shape:
            raise Failed(f"the shape of output {i} is {show(out.shape)}, inferred was {show(shape)}")
    return None


def _strided_view(each: np.ndarray) -> np.ndarray:
    wide = np.full((*each.shape[:-1], 2 * each.shape[-1]), 99, each.dtype)
    wide[..., ::2] = each
    return wide[..., ::2]


#: Layouts of arrays in memory.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda each: each.T.copy().T,
    "strided": _strided_view,
    "reversed": lambda each: np.flip(np.flip(each).copy()),
}


@check("strided")
def strided(use: Subject) -> None:
    """Inputs of any memory layout give the same results."""
    if not any(value.ndim and value.size > 1 for value in use.arrays):
        raise CheckSkipped("its inputs have one element")
    if isinstance(use, ForeignUse) and (use.stochastic or not use.any_layout):
        raise CheckSkipped("its random numbers follow the layout" if use.stochastic else
                           f"arrays of {use.library} have one layout")
    out_grads, expected = run_with_gradients(use)
    for name, layout in LAYOUTS.items():
        raw = [layout(value) if value.ndim else value.copy() for value in use.arrays]
        result = use.run(out_grads, grads=bool(expected.grads), raw=raw)
        compare(result, expected, use, f"on {name} inputs",
                "index elements, do not rely on their order in memory: np.ascontiguousarray(x) first, where code "
                "needs that")


# ---------------------------------------------------------------------------------------------------- devices


@check("devices")
def devices(use: Subject) -> None:
    """A GPU gives the results of the host."""
    if not num_gpus():
        raise CheckSkipped("no GPU here")
    if isinstance(use, ForeignUse):
        raise CheckSkipped(f"it runs on devices of {use.library}")
    out_grads, expected = run_with_gradients(use)
    if use.stochastic:
        raise CheckSkipped("its random numbers differ between devices")
    tolerance = max([1e-6, *[{2: 2e-2, 4: 1e-3}.get(out.dtype.itemsize, 1e-6) for out in expected.outs]])
    compare(use.run(out_grads, grads=bool(expected.grads), ctx=gpu(0)), expected, use, "on the GPU",
            "use nd, or the array's own module", tolerance)

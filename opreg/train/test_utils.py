"""Checks for authors of operators: outputs and gradients of symbols against NumPy and central differences.

An ``AssertionError`` tells the position and size of a difference. Random values come from a generator that ``set_seed``
seeds; a failed check names the seed that repeats it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from opreg.ndarray import autograd
from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import NDArray, array
from opreg.symbol.symbol import Symbol

from ..core.named_errors import name_errors
from ..core.spec import as_dtype, is_floating
from ..errors import ArgumentError, did_you_mean, other_count
from ..runtime import Features
from ..typing import DTypeLike
from ..util import get_cuda_compute_capability, getenv, setenv, use_np
from . import test_arrays, test_data, test_samples, test_tools
from .test_arrays import *  # noqa: F403
from .test_arrays import assert_almost_equal, default_context, drawing, host
from .test_data import *  # noqa: F403
from .test_samples import *  # noqa: F403
from .test_tools import *  # noqa: F403

if TYPE_CHECKING:
    from opreg.symbol.executor import Executor

__all__ = [  # noqa: PLE0604  names of other modules are text, too
           "simple_forward", "numeric_grad", "check_numeric_gradient", "check_symbolic_forward",
           "check_symbolic_backward", "check_consistency", "check_gluon_hybridize_consistency",
           *test_arrays.__all__, *test_data.__all__, *test_samples.__all__, *test_tools.__all__,
           # names that programs expect from ``from test_utils import *``
           "mx", "np", "array", "Context", "current_context", "Features", "Symbol",  # noqa: F405  see __getattr__
           "get_cuda_compute_capability", "getenv", "setenv", "use_np"]


def __getattr__(name: str) -> Any:
    if name == "mx":  # the package opreg; not a variable, since tests walk through the variables of modules
        return sys.modules["opreg"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


#: Arrays by name or in order; None where there are none.
Arrays: TypeAlias = Mapping[str, ArrayLike] | Sequence[ArrayLike] | None


def _locate_arrays(sym: Symbol, what: str, names: Sequence[str], arrays: Arrays, ctx: Context, dtype: DTypeLike
                   ) -> dict[str, NDArray]:
    """Arrays by name, from a dict or a list in the symbol's order."""
    if arrays is None:
        arrays = {}
    if isinstance(arrays, Mapping):
        for name in arrays:
            if name not in names:
                raise ArgumentError(f"{what}: the symbol has no {name!r}. {did_you_mean(name, names)}")
        missing = [name for name in names if name not in arrays]
    else:
        if len(arrays) != len(names):
            raise ArgumentError(f"{what}: {other_count(names, len(arrays), 'array')}")
        arrays, missing = dict(zip(names, arrays)), []
    if missing:
        raise ArgumentError(f"{what}: {', '.join(missing)} missing")
    located = {}
    for name in names:
        value: Any = arrays[name]
        kind = value.dtype if isinstance(value, NDArray) or dtype is None else dtype
        located[name] = array(host(value), ctx, as_dtype(kind)).tostype(getattr(value, "stype", "default"))
    return located


def simple_forward(sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: ArrayLike) -> Any:
    """The outputs of a symbol for NumPy arrays, as NumPy arrays; a list if there are several."""
    ctx = ctx or default_context()
    executor = sym.bind(ctx, {name: array(host(value), ctx) for name, value in inputs.items()})
    outputs = [output.asnumpy() for output in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def numeric_grad(executor: Executor | _WeightedSum, location: Mapping[str, ArrayLike],
                 aux_states: Mapping[str, ArrayLike] | None = None, eps: float = 1e-4, use_forward_train: bool = True,
                 dtype: DTypeLike = np.float32) -> dict[str, np.ndarray]:
    """Gradients of the sum of an executor's outputs, by central differences.

    Parameters
    ----------
    executor : Executor
        The executor to run.
    location : dict of str to array
        The arguments at which the gradients are computed.
    aux_states : dict of str to array or None
        Auxiliary states, set before every run.
    eps : float
        Step of the central differences.
    use_forward_train : bool
        Whether to run in training mode.
    """
    values = {name: host(value) for name, value in location.items()}
    executor.copy_params_from({name: array(value, dtype=value.dtype) for name, value in values.items()},
                              allow_extra_params=True)

    def total() -> float:
        for name, value in (aux_states or {}).items():
            executor.aux_dict[name][:] = host(value)
        outputs = executor.forward(is_train=use_forward_train)
        return float(sum(output.asnumpy().astype(np.float64).sum() for output in outputs))

    slopes = {}
    for name, value in values.items():
        if not is_floating(value.dtype):
            continue
        slope = np.zeros(value.shape, value.dtype)
        for place in np.ndindex(value.shape):
            ends = []
            for sign in (0.5, -0.5):
                moved = value.copy()
                moved[place] += sign * eps
                executor.arg_dict[name][:] = moved
                ends.append(total())
            slope[place] = (ends[0] - ends[1]) / eps
        executor.arg_dict[name][:] = value
        slopes[name] = slope
    return slopes


def check_numeric_gradient(sym: Symbol, location: Arrays, aux_states: Arrays = None, numeric_eps: float | None = None,
                           rtol: float | None = None, atol: float | None = None,
                           grad_nodes: Sequence[str] | Mapping[str, str] | None = None,
                           use_forward_train: bool = True, ctx: Context | None = None,
                           grad_stype_dict: Mapping[str, str | None] | None = None,
                           dtype: DTypeLike = np.float32) -> None:
    """Fail unless a symbol's gradients agree with central differences.

    The differences are computed in float64, if the symbol runs in it.

    Parameters
    ----------
    sym : Symbol
        The symbol; its outputs are summed with random weights.
    location : list or dict of array
        Its arguments.
    aux_states : list or dict of array
        Its auxiliary states.
    numeric_eps, rtol, atol : float
        Step of the central differences, and tolerances.
    grad_nodes : list of str, or dict of str to request
        Arguments whose gradients are checked; by default all real ones. With the request "add" they must be added
        to the gradient before; with "null" it must stay.
    grad_stype_dict : dict of str to str
        Storage types of gradients by argument; ``default`` for others.
    dtype : dtype
        Dtype of the gradients that are checked.

    Raises
    ------
    AssertionError
        Naming the argument, and the seed of the random numbers.

    Examples
    --------
    >>> import opreg as mx
    >>> check_numeric_gradient(mx.sym.tanh(mx.sym.var("x")), {"x": np.array([0.3, -1.0])})
    """
    ctx = ctx or default_context()
    names = sym.list_arguments()
    args = _locate_arrays(sym, "location", names, location, ctx, dtype)
    aux = _locate_arrays(sym, "aux_states", sym.list_auxiliary_states(), aux_states, ctx, dtype)
    if grad_nodes is None:
        grad_nodes = [name for name in names if is_floating(np.dtype(args[name].dtype))]
    requests = dict(grad_nodes) if isinstance(grad_nodes, Mapping) else dict.fromkeys(grad_nodes, "write")
    with drawing() as rng:
        shapes: Any = sym.infer_shape(**{name: value.shape for name, value in args.items()})[1]
        heads = [rng.uniform(0.1, 1.1, shape) for shape in shapes]  # not near zero, where errors would go unnoticed
        before: dict[str, np.ndarray] = {
            name: rng.normal(size=value.shape).astype(value.dtype) for name, value in args.items()}
        grads = _gradients(sym, ctx, args, aux, requests, before, heads, grad_stype_dict or {})
        expected, usual = _differences(sym, ctx, args, aux, requests, heads, numeric_eps, use_forward_train)
        rtol, atol = usual[0] if rtol is None else rtol, usual[1] if atol is None else atol
        for name, request in requests.items():
            value = before[name] if request == "null" else expected[name] + (before[name] if request == "add" else 0.0)
            assert_almost_equal(grads[name], value, rtol, atol,
                                (f"gradient of {name} ({request})", "central differences"))


def _gradients(sym: Symbol, ctx: Context, args: Mapping[str, NDArray], aux: Mapping[str, NDArray],
               requests: Mapping[str, str], before: Mapping[str, np.ndarray], heads: Sequence[np.ndarray],
               stypes: Mapping[str, str | None]) -> dict[str, np.ndarray]:
    """Gradients after backward, in arrays that held other values before."""
    grads = {name: array(before[name], ctx, args[name].dtype).tostype(stypes.get(name) or "default")
             for name in requests}
    executor = sym.bind(ctx, {name: value.copy() for name, value in args.items()}, grads,
                        {name: requests.get(name, "null") for name in args},
                        {name: value.copy() for name, value in aux.items()})
    executor.forward(is_train=True)
    executor.backward([array(head, ctx, out.dtype) for head, out in zip(heads, executor.outputs)])
    return {name: grad.asnumpy() for name, grad in grads.items()}


# By item size of gradients: step of the central differences, relative and absolute tolerance.
_SLOPES = {2: (1e-3, 1e-2, 1e-1), 4: (1e-3, 1e-3, 1e-4), 8: (1e-6, 1e-4, 1e-6)}
#: The same, where some part computes in float32.
_COARSE = (2.0 ** -7, 2.5e-3, 5e-4)


def _differences(sym: Symbol, ctx: Context, args: Mapping[str, NDArray], aux: Mapping[str, NDArray],
                 requests: Mapping[str, str], heads: Sequence[np.ndarray], eps: float | None, is_train: bool
                 ) -> tuple[dict[str, np.ndarray], tuple[float, float]]:
    """Central differences for the requested gradients, and their tolerances."""
    usual = _SLOPES[min([np.dtype(args[name].dtype).itemsize for name in requests] or [8])]
    try:
        weighed, args, aux = _weighted_outputs(sym, ctx, _wide(args, ctx), _wide(aux, ctx), heads, is_train)
    except Exception:  # it does not run in float64, so its own dtype is used
        weighed, args, aux = _weighted_outputs(sym, ctx, args, aux, heads, is_train)
    requested = {name: args[name].asnumpy() for name, request in requests.items() if request != "null"}
    states = {name: value.asnumpy() for name, value in aux.items()}
    slopes = numeric_grad(weighed, requested, states, usual[0] if eps is None else eps, is_train)
    if weighed.coarse and usual[1] < _COARSE[1]:
        usual = _COARSE
        slopes = numeric_grad(weighed, requested, states, usual[0], is_train) if eps is None else slopes
    return slopes, usual[1:]


def _wide(arrays: Mapping[str, NDArray], ctx: Context) -> dict[str, NDArray]:
    return {name: value if np.dtype(value.dtype).kind in "iub" else array(value, ctx, np.float64)
            for name, value in arrays.items()}


def _weighted_outputs(sym: Symbol, ctx: Context, args: Mapping[str, NDArray], aux: Mapping[str, NDArray],
                      heads: Sequence[np.ndarray], is_train: bool
                      ) -> tuple[_WeightedSum, Mapping[str, NDArray], Mapping[str, NDArray]]:
    executor = sym.bind(ctx, {name: value.copy() for name, value in args.items()}, grad_req="null",
                        aux_states={name: value.copy() for name, value in aux.items()})
    executor.forward(is_train=is_train)
    return _WeightedSum(executor, heads), args, aux


class _WeightedSum:
    """An executor whose outputs are summed with given weights.

    Attributes
    ----------
    coarse : bool
        Whether float32 represents all outputs so far, so that some part computes in float32.
    """

    def __init__(self, executor: Executor, heads: Sequence[np.ndarray]):
        self._executor, self._heads, self.coarse = executor, heads, True
        self.arg_dict, self.aux_dict = executor.arg_dict, executor.aux_dict
        self.copy_params_from = executor.copy_params_from

    def forward(self, is_train: bool) -> list[NDArray]:
        outputs = [output.asnumpy() for output in self._executor.forward(is_train=is_train)]
        self.coarse = self.coarse and all((out.astype(np.float32) == out).all() for out in outputs)
        return [array(out * head, dtype="float64") for out, head in zip(outputs, self._heads)]


def check_symbolic_forward(sym: Symbol, location: Arrays, expected: Any, rtol: float | None = None,
                           atol: float | None = None, aux_states: Arrays = None, ctx: Context | None = None,
                           equal_nan: bool = False, dtype: DTypeLike = np.float32) -> list[NDArray]:
    """Fail unless a symbol's outputs are the expected ones.

    Parameters
    ----------
    sym : Symbol
        The graph to run.
    location, aux_states : list or dict of array
        Its arguments and auxiliary states.
    expected : list of array, or dict by output name
        Expected outputs.

    Examples
    --------
    >>> import opreg as mx
    >>> outputs = check_symbolic_forward(mx.sym.var("x") * 2, [np.array([1.0, 2.0])], [np.array([2.0, 4.0])])
    """
    ctx = ctx or default_context()
    names = sym.list_outputs()
    executor = sym.bind(ctx, _locate_arrays(sym, "location", sym.list_arguments(), location, ctx, dtype),
                        aux_states=_locate_arrays(sym, "aux_states", sym.list_auxiliary_states(), aux_states, ctx,
                                                  dtype))
    values = [expected[name] for name in names] if isinstance(expected, Mapping) else expected
    outputs = executor.forward(is_train=False)
    for name, value, output in zip(names, values, outputs, strict=True):
        assert_almost_equal(value, output, rtol, atol, (f"expected {name}", "output"), equal_nan)
    return outputs


def check_symbolic_backward(sym: Symbol, location: Arrays, out_grads: Arrays, expected: Any,
                            rtol: float | None = None, atol: float | None = None, aux_states: Arrays = None,
                            grad_req: str | Sequence[str] | Mapping[str, str] = "write",
                            ctx: Context | None = None, grad_stypes: Mapping[str, str | None] | None = None,
                            equal_nan: bool = False, dtype: DTypeLike = np.float32) -> dict[str, NDArray]:
    """Fail unless a symbol's gradients are the expected ones.

    Parameters
    ----------
    sym : Symbol
        The graph to run.
    location, aux_states : list or dict of array
        Its arguments and auxiliary states.
    out_grads : list of array, dict by output name, or None
        Gradients of the outputs.
    expected : list or dict of array
        Gradients of the arguments; only those that are in a dict are checked.
    grad_req : str, list or dict
        Requests. With "add", gradient arrays begin with random values, to which backward must add the expected
        gradients.
    grad_stypes : dict of str to str
        Storage types of gradients by argument; ``default`` for others.

    Returns
    -------
    dict of str to NDArray
        The gradients.
    """
    ctx = ctx or default_context()
    names = sym.list_arguments()
    args = _locate_arrays(sym, "location", names, location, ctx, dtype)
    expected_grads = dict(expected) if isinstance(expected, Mapping) else dict(zip(names, expected, strict=True))
    if isinstance(grad_req, str):
        requests = {name: grad_req if name in expected_grads else "null" for name in names}
    else:
        requests = dict(grad_req) if isinstance(grad_req, Mapping) else dict(zip(names, grad_req))
    states = _locate_arrays(sym, "aux_states", sym.list_auxiliary_states(), aux_states, ctx, dtype)
    with drawing() as rng:
        before: dict[str, np.ndarray] = {
            name: rng.normal(size=args[name].shape).astype(args[name].dtype) for name in expected_grads}
        grads = {name: array(value, ctx, value.dtype).tostype((grad_stypes or {}).get(name) or "default")
                 for name, value in before.items()}
        executor = sym.bind(ctx, args, grads, requests, states)
        executor.forward(is_train=True)
        if isinstance(out_grads, Mapping):
            out_grads = [out_grads[name] for name in sym.list_outputs()]
        heads = None if out_grads is None else [array(host(head), ctx, out.dtype)
                                                for head, out in zip(out_grads, executor.outputs)]
        executor.backward(heads)
        for name, value in expected_grads.items():
            request = requests.get(name, "null")
            target = {"write": host(value), "add": host(value) + before[name], "null": before[name]}[request]
            assert_almost_equal(target, grads[name], rtol, atol,
                                (f"expected gradient of {name} ({request})", "gradient"), equal_nan)
    return grads


def check_consistency(sym: Symbol | Sequence[Symbol], ctx_list: Sequence[Mapping[str, Any]], scale: float = 1.0,
                      grad_req: str = "write",
                      arg_params: Mapping[str, ArrayLike] | None = None,
                      aux_params: Mapping[str, ArrayLike] | None = None,
                      rtol: float | None = None, atol: float | None = None, raise_on_err: bool = True,
                      ground_truth: object = None, equal_nan: bool = False, use_uniform: bool = False,
                      rand_type: DTypeLike = np.float64) -> list[np.ndarray]:
    """Fail unless a symbol gives the same results on several contexts or in several dtypes.

    Parameters
    ----------
    sym : Symbol, or list of Symbol
        The symbol, or one for each entry of ``ctx_list``.
    ctx_list : list of dict
        Each with ``ctx``, the shapes of inputs by name, and optionally ``type_dict``, their dtypes.
    scale : float
        Standard deviation of the random inputs.
    grad_req : str
        Gradients are compared too unless it is "null".
    arg_params, aux_params : dict of str to array
        Initial arguments and auxiliary states.
    use_uniform : bool
        Whether inputs are uniform between ``-scale`` and ``scale``.
    rand_type : dtype
        Dtype of the random inputs.

    Returns
    -------
    list of arrays
        Outputs of the entry with the most precise dtype, the reference of the comparison.
    """
    symbols = sym if isinstance(sym, (list, tuple)) else [sym] * len(ctx_list)
    executors = [symbol.simple_bind(grad_req=grad_req, **settings) for symbol, settings in zip(symbols, ctx_list)]
    with drawing() as rng:
        numbers = {name: rng.uniform(-scale, scale, arg.shape) if use_uniform else rng.normal(0, scale, arg.shape)
                   for name, arg in executors[0].arg_dict.items()}
        numbers.update({name: host(value) for name, value in (arg_params or {}).items()})
        results = []
        for executor in executors:
            for name, arg in executor.arg_dict.items():
                arg[:] = numbers[name].astype(rand_type).astype(arg.dtype)
            for name, state in executor.aux_dict.items():
                state[:] = host(aux_params[name]) if aux_params else 0.0
            results.append(_results(executor, grad_req != "null"))
        finest = max(range(len(results)), key=lambda i: min(value.dtype.itemsize for value in results[i].values()))
        for i, result in enumerate(results):
            for name, value in result.items() if i != finest else ():
                try:
                    assert_almost_equal(value, results[finest][name], rtol, atol,
                                        (f"{name} of entry {i}", f"entry {finest}"), equal_nan)
                except AssertionError:
                    if raise_on_err:
                        raise
    return [value for name, value in results[finest].items() if name.startswith("output")]


def _results(executor: Executor, backward: bool) -> dict[str, np.ndarray]:
    """Outputs of a run, and on request gradients."""
    outputs = executor.forward(is_train=backward)
    results = {f"output {i}": output.asnumpy() for i, output in enumerate(outputs)}
    if backward:
        executor.backward(list(outputs))
        results.update({f"gradient of {name}": grad.asnumpy() for name, grad in executor.grad_dict.items()
                        if grad is not None})
    return results


def check_gluon_hybridize_consistency(net_builder: Callable[..., Any], data_l: Sequence[NDArray],
                                      numpy_func: Callable[..., ArrayLike] | None = None, test_grad: bool = True,
                                      rtol: float = 1e-4, atol: float = 1e-4) -> None:
    """Compare a block with itself hybridized: outputs, gradients of inputs, and those of parameters.

    Parameters
    ----------
    net_builder : function
        Makes the block; called with ``prefix=``.
    data_l : list of NDArray
        Its inputs.
    numpy_func : function, optional
        Expected outputs, a function of the inputs as NumPy arrays.
    test_grad : bool
        Whether gradients are compared, too.

    Raises
    ------
    AssertionError
        When values differ by more than ``rtol`` and ``atol`` allow.
    """
    net = net_builder(prefix="net_")
    net.initialize()
    results = []
    for _ in range(2):
        inputs = [each.copy() for each in data_l]
        found = [net(*inputs)]
        if test_grad:
            for each in inputs:
                each.attach_grad()
            with autograd.record():
                found.append(net(*inputs))
            found[-1].backward(found[-1])
            found += [each.grad for each in inputs]
            found += [parameter.grad() for parameter in net.collect_params().values() if parameter.grad_req != "null"]
        results.append([each.asnumpy() for each in found])
        net.hybridize()
    for plain, hybridized in zip(*results):
        assert_almost_equal(hybridized, plain, rtol=rtol, atol=atol)
    if numpy_func is not None:
        assert_almost_equal(results[0][0], np.asarray(numpy_func(*[each.asnumpy() for each in data_l])), rtol=rtol,
                            atol=atol)


name_errors(__name__, globals(), __all__)

"""Inference of shapes and dtypes of a function's results, by a run on zeros."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray.context import Context, cpu
from opreg.ndarray.ndarray import NDArray, wrap
from opreg.ndarray.traced import BodyTracer, wrap_traced

from ..core import generators
from ..core.mode import Recording
from ..core.spec import Spec, size
from ..errors import note

__all__ = ["dry_run", "restored_generators"]

#: A function of NDArrays and their context, which returns NDArrays, other arrays or scalars.
Compute: TypeAlias = Callable[[list[NDArray], Context], list[Any]]

#: The largest number of bytes of inputs for a run on arrays; above it, the function is traced.
_LIMIT = 1 << 26


def dry_run(op_type: str, compute: Compute, specs: Sequence[Spec], traced: bool = False) -> list[Spec]:
    """Specs of the results of a function of arrays, for inputs of given specs.

    The function is run on zeros; if that fails, on positive values, with invertible square matrices. If inputs would be
    too large, the function is traced instead, as that of a traced operator. The states of random generators are
    restored.

    Parameters
    ----------
    op_type : str
        The operator, for errors.
    compute : function of a list of NDArrays and their context
        Returns a list of arrays.
    specs : sequence of Spec
        Specs of the inputs.
    traced : bool
        Whether the function is traced, whatever the size of its inputs.
    """
    nbytes = sum(size(spec.shape) * spec.dtype.itemsize for spec in specs)  # type: ignore
    with restored_generators(), Recording(False, None), np.errstate(all="ignore"):
        try:
            if traced or nbytes > _LIMIT:
                what = f"on values without numbers, since inputs of {nbytes:,} bytes are too large for others,"
                results = compute(_numberless(specs, cpu()), cpu())
            else:
                what = "on zeros"
                results = _run_on_numbers(compute, specs, cpu())
        except Exception as error:
            note(error, f"in the dry run {what} that finds the shapes of operator {op_type!r}; declare them with "
                        f"@{op_type}.infer to do without")
            raise
    return list(map(spec_of, results))


def _run_on_numbers(compute: Compute, specs: Sequence[Spec], ctx: Context) -> list[Any]:
    try:
        return compute([wrap(np.zeros(*spec), ctx) for spec in specs], ctx)  # type: ignore[arg-type]  # they are known
    except Exception as error:
        try:
            return compute([wrap(_positive(spec), ctx) for spec in specs], ctx)
        except Exception:
            raise error from None


def _numberless(specs: Sequence[Spec], ctx: Context) -> list[NDArray]:
    body = BodyTracer("dry", {}, ctx)
    return [wrap_traced(body.value(body.variable(f"input{i}", spec)), ctx) for i, spec in enumerate(specs)]


def _positive(spec: Any) -> np.ndarray:
    """Positive values that most functions accept."""
    shape, dtype = spec
    if dtype.kind in "iub":
        return np.ones(shape, dtype)
    numbers = np.linspace(0.25, 0.75, size(shape)).reshape(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        numbers = np.full(shape, 0.5) + shape[-1] * np.eye(shape[-1])
    return numbers.astype(dtype)


@contextlib.contextmanager
def restored_generators() -> Iterator[None]:
    """A context manager that restores the states of all random generators: those of operators, NumPy's and Python's."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002  it is what users draw from
    try:
        with generators.keep_states():
            yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


def spec_of(value: object) -> Spec:
    """Shape and dtype of a function's result, an array or a scalar."""
    return Spec(tuple(getattr(value, "shape", ())), np.dtype(getattr(value, "dtype", type(value))))

"""Checks of the first run of a user's operator."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..core.launch import FirstRun, Step
from ..core.rules import does_nothing
from ..core.spec import show, size
from ..errors import OpError, Where, is_ours, note, warn

if TYPE_CHECKING:
    from ..typing import Array
    from .custom_op import CustomOp

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["AssignCheck", "check_first_run", "may_skip_checks", "default", "is_default", "note_given", "warn_unwritten"]


def default(method: F) -> F:
    """Mark a method of a base class as the default."""
    method.default = True  # type: ignore[attr-defined]
    return method


def is_default(method: object) -> bool:
    """Whether a method is the default, which a user's class did not override."""
    return getattr(method, "default", False)


def note_given(error: BaseException, where: str, arguments: str) -> None:
    """Add notes to an exception of users' code: the place where it was raised, and the specs of the code's
    arguments."""
    note(error, f"in {where}, given {arguments}")
    if isinstance(error, TypeError) and str(error).startswith("Unsupported type") and "NDArray" in str(error):
        note(error, "a RawKernel takes arrays of CuPy alone: give it cupy.from_dlpack(x), which shares the memory")


_MARK = 0xA5


def _mark(data: Any, req: str) -> Any:
    """Fill an output with a pattern, to see later whether it was written; None if that cannot be seen."""
    if req != "write" or data.nbytes < 4:
        return None
    if hasattr(data, "unwritten"):  # a traced value has an attribute for this
        return data
    flat = data.reshape(-1).view("uint8")
    flat.fill(_MARK)
    return flat


def _is_unwritten(mark: Any) -> bool:
    """Whether an output still holds the pattern. On a device, this copies one boolean to the host."""
    if hasattr(mark, "unwritten"):
        return mark.unwritten
    if isinstance(mark, np.ndarray) and mark[0] != _MARK:  # on the host, comparing one element nearly always suffices
        return False
    same = (mark == _MARK).all()
    return bool(same.get() if hasattr(same, "get") else same)


def check_first_run(run: Step, later: Step, custom_op: CustomOp, title: str, raws: Sequence[Array], reqs: Sequence[str],
                    lists: dict[str, list], names: Sequence[str],
                    unwritten: Callable[[list[int], object], list[Step]]) -> FirstRun:
    """The first run of a method of an operator, with checks.

    Parameters
    ----------
    run, later : function without arguments
        Call the method, in the first run and in those after it.
    custom_op : CustomOp
        The operator.
    title : str
        The name of the method in errors.
    raws, reqs : sequence
        Raw results and their requests.
    lists : dict of str to list
        Lists whose items must not be replaced, by parameter; the last one holds the results.
    names : sequence of str
        Names of the results.
    unwritten : function of a list of int and a value
        Called with the indices of results that were not written, and with the value that the method returned; returns
        steps to run before the method from then on.
    """

    def first() -> list[Step]:
        marks = [_mark(data, req) for data, req in zip(raws, reqs)]
        before = [list(arrays) for arrays in lists.values()]
        key, results = [*lists.items()][-1]
        places = {id(array): f"{key}[{i}], {name!r}," for i, (array, name) in enumerate(zip(results, names))}
        watch = AssignCheck(custom_op, title, places)
        try:
            returned = run()
        finally:
            watch.end()
        for (key, arrays), old in zip(lists.items(), before):
            if len(arrays) != len(old) or any(map(operator.is_not, arrays, old)):
                raise OpError(f"{title} replaced an array in the list {key}, which has no effect. Write "
                              f"self.assign({key}[i], req[i], value)")
        unwritten_outputs = [i for i, mark in enumerate(marks) if mark is not None and _is_unwritten(mark)]
        return [*unwritten(unwritten_outputs, returned), later]

    return FirstRun(first)


def may_skip_checks(custom_op: CustomOp) -> bool:
    """Whether operators of the same class need no checks, since the first run left this one's ``assign`` unchanged."""
    return not isinstance(getattr(custom_op, "assign", None), AssignCheck)


class AssignCheck:
    """Replaces an operator's ``assign`` in its first run, to check what is assigned."""

    def __init__(self, custom_op: Any, title: str, names: Mapping[int, str]):
        self._assign, self._names, self._title = getattr(custom_op, "assign", None), names, title
        self._made = custom_op if is_default(self._assign) and hasattr(custom_op, "__dict__") else None
        self._keep = False
        if self._made is not None:
            custom_op.assign = self

    def __call__(self, dst: Any, req: str, src: Any) -> None:
        name = self._names.get(id(dst), "an array")
        if getattr(getattr(src, "dtype", None), "kind", "") == "c":
            self._keep, src = True, src.real  # else NumPy would warn each time, and name a line of this library
            warnings.warn(f"{self._title}: {name} is real and is assigned complex values, whose imaginary parts are "
                          f"lost; assign the .real part", np.exceptions.ComplexWarning, stacklevel=2)
        self._assign(dst, req, src)  # type: ignore[misc]
        shape = np.shape(src) if isinstance(src, (list, tuple)) else getattr(src, "shape", ())
        if req != "null" and size(shape) not in (1, size(dst.shape)):
            warnings.warn(f"{self._title}: {name} has shape {show(dst.shape)} and is assigned {show(shape)}, which is "
                          "repeated to fill it", UserWarning, stacklevel=2)

    __call__.__qualname__ = "CustomOp.assign"  # Python's error about missing arguments has this name

    def end(self) -> None:
        """Restore ``assign``, unless the check is needed in later runs."""
        if self._made is not None and not self._keep:
            del self._made.assign


def note_ignored(returned: object) -> str:
    """The note that a method's result is ignored; empty if the result is None."""
    return "" if returned is None else f"; the {type(returned).__name__} that it returned is ignored"


def warn_unwritten(warned: set[str], names: Sequence[str], backward: Callable[..., None], title: str,
                   returned: object = None) -> None:
    """Warn once of requested gradients that were not written, unless ``backward`` is only ``pass``."""
    code = getattr(getattr(backward, "__func__", backward), "__code__", None)
    missing = is_default(backward)
    names = [name for name in names if name not in warned and "label" not in name]  # labels have no gradients
    if not names or (code is not None and not missing and does_nothing(code)):
        return
    warned.update(names)
    where = None if missing or code is None or is_ours(code) else Where((code.co_filename, code.co_firstlineno))
    what = "there is no" if missing else "nothing is written by"
    listed = f"the gradient{'s' * (len(names) > 1)} of {', '.join(map(repr, names))}"
    warn(f"{listed}: {what} {title}{note_ignored(returned)}, so zeros are used. If that is intended, write "
         "self.assign(in_grad[i], req[i], 0), or set need_top_grad=False", where=where)

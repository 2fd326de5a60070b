"""The contract of an operator: what a check is, what it answers, and how its findings are worded.

A check returns where all is well, a note or nothing; raises ``Failed`` with what is wrong and what to change, or
``Skipped`` with the reason why it is not asked. Any other exception that leaves it counts as a failure. The questions
are in ``behaviour``, ``gradients``, ``registered`` and ``ways``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..core.spec import is_floating, is_numpy_float
from ..custom.prop import PropUse
from ..errors import NotDifferentiableError
from .comparison import disagreement
from .subjects import FunctionUse, TensorUse
from .uses import Heads, Result, Subject, Use, heads

__all__ = ["CHECKS", "Check", "Failed", "Skipped", "arriving", "check", "compare", "differentiated", "first_line",
           "moved", "name_of_body", "name_of_top", "place_of", "told_again"]


class Failed(Exception):
    """Something is wrong; ``change`` says what to write."""

    def __init__(self, text: str, change: str = ""):
        super().__init__(text)
        self.change = change


class Skipped(Exception):
    """The question is not asked, for a reason."""


#: It is given a function, and may call it several times.
Question: TypeAlias = Callable[[Any], str | None]


@dataclass(frozen=True)
class Check:
    """A question with its name, in a sentence; and the checks without which it is not asked."""

    name: str
    asks: str
    ask: Question
    needs: tuple[str, ...]


CHECKS: list[Check] = []


def check(name: str, needs: Sequence[str] = ("backward", "written", "deterministic"), before: str | None = None
          ) -> Callable[[Question], Question]:
    """Add a function to the checks, as the last one or ``before`` another; its docstring is what it asks."""

    def add(ask: Question) -> Question:
        place = len(CHECKS) if before is None else [each.name for each in CHECKS].index(before)
        CHECKS.insert(place, Check(name, (ask.__doc__ or "").split("\n\n")[0], ask, ("runs", *needs) if CHECKS else ()))
        return ask

    return add


# ---------------------------------------------------------------------------------------------------- words


def name_of_top(use: Subject) -> str:
    """Name of the output gradient in the code that computes the gradient of this subject."""
    if isinstance(use, Use):
        return "out_grad[0]" if isinstance(use.attrs, PropUse) else "g"
    return "the gradient that backward is given" if isinstance(use, FunctionUse) else "dout"


def place_of(use: Subject, i: int) -> str:
    """Place in the user's code that writes the gradient of an input."""
    if isinstance(use, Use) and isinstance(use.attrs, PropUse):
        return f"in_grad[{i}] in backward"
    where = {Use: "the gradient rule", FunctionUse: "backward", TensorUse: "bprop"}[type(use)]
    return f"value {i} that {where} returns"


def name_of_body(use: Subject) -> str:
    """The code that computes, as a user calls it."""
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


def arriving(use: Subject) -> Heads:
    """Gradients of its outputs: the same random numbers each time."""
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


def first_line(error: BaseException) -> str:
    """First line of an exception's text; its kind where it has none."""
    return (str(error) or type(error).__name__).split("\n")[0]


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

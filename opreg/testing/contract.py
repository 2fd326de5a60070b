"""The form of a check: a function that examines a subject, and the outcomes that it reports.

A check that passes returns None or a note. It raises ``Failed`` with the fault and a change, or ``CheckSkipped`` with a
reason. Any other exception counts as a failure. The checks stand in ``behaviour``, ``gradients``, ``registered`` and
``ways``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..core.spec import is_floating, is_numpy_float
from ..custom.prop_use import PropUse
from ..errors import NotDifferentiableError
from .comparison import disagreement
from .uses import Heads, Result, Subject, Use, heads

__all__ = ["CHECKS", "Check", "Failed", "CheckSkipped", "check", "compare", "run_with_gradients", "first_line",
           "scaled_inputs", "name_of_body", "name_of_top", "place_of", "told_again"]


class Failed(Exception):
    """The check found a fault; ``change`` says how to mend it."""

    def __init__(self, text: str, change: str = ""):
        super().__init__(text)
        self.change = change


class CheckSkipped(Exception):
    """The check does not apply, for the reason given."""


#: Type of check functions; one may be called several times.
Question: TypeAlias = Callable[[Any], str | None]


@dataclass(frozen=True)
class Check:
    """A check: its function, its name, its question as a sentence, and the checks that have to pass first."""

    name: str
    asks: str
    ask: Question
    needs: tuple[str, ...]


CHECKS: list[Check] = []


def check(name: str, needs: Sequence[str] = ("backward", "written", "deterministic"), before: str | None = None
          ) -> Callable[[Question], Question]:
    """Register a function as the last check, or ahead of the check ``before``; its docstring is its question."""

    def add(ask: Question) -> Question:
        place = len(CHECKS) if before is None else [each.name for each in CHECKS].index(before)
        CHECKS.insert(place, Check(name, (ask.__doc__ or "").split("\n\n")[0], ask, ("runs", *needs) if CHECKS else ()))
        return ask

    return add


# ---------------------------------------------------------------------------------------------------- words


def name_of_top(use: Subject) -> str:
    """The name of the output gradient in the user's gradient code."""
    return "out_grad[0]" if isinstance(use, Use) and isinstance(use.attrs, PropUse) else use.top


def place_of(use: Subject, i: int) -> str:
    """The place in the user's code that sets the gradient of an input."""
    if isinstance(use, Use) and isinstance(use.attrs, PropUse):
        return f"in_grad[{i}] in backward"
    return f"value {i} that {use.gradient_code} returns"


def name_of_body(use: Subject) -> str:
    """The name of the user's function that computes the outputs."""
    return "forward" if isinstance(use, Use) and isinstance(use.attrs, PropUse) else use.body


def compare(actual: Result, expected: Result, use: Subject, what: str, change: str = "",
            tolerance: float | None = None) -> None:
    """Fail where outputs, states or gradients differ."""
    if len(actual.outs) != len(expected.outs):
        raise Failed(f"{what} there are {len(actual.outs)} outputs, not {len(expected.outs)}", change)
    for i, (out, want) in enumerate(zip(actual.outs, expected.outs)):
        far = disagreement(out, want, tolerance)
        if far:
            raise Failed(f"{what} output {i} differs: {far}", change)
    for i, want in expected.grads.items():
        far = disagreement(actual.grads[i], want, tolerance) if i in actual.grads else "it is missing"
        if far:
            raise Failed(f"{what} the gradient of {use.names[i]!r} differs: {far}", change)
    for i, (after, want) in list(enumerate(zip(actual.after, expected.after)))[use.count:]:
        far = disagreement(after, want, tolerance)
        if far:
            raise Failed(f"{what} the state {use.names[i]!r} differs afterwards: {far}", change)


def output_gradients(use: Subject) -> Heads:
    """Output gradients of a subject: random values, the same in each call."""
    return heads(use, use.run().outs)


def run_with_gradients(use: Subject) -> tuple[Heads, Result]:
    """Output gradients, and the result of a run; with input gradients, if the subject has any."""
    result = use.run()
    out_grads = heads(use, result.outs)
    if not use.wanted or not any(is_floating(out.dtype) for out in result.outs):
        return out_grads, result
    try:
        return out_grads, use.run(out_grads, grads=True)
    except NotDifferentiableError:
        return out_grads, result


def scaled_inputs(use: Subject) -> Subject:
    """The same subject on other inputs: all floating values are scaled by 0.75."""
    return use.on_arrays([each * each.dtype.type(0.75) if is_numpy_float(each.dtype) else each for each in use.arrays])


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, or its class where it has no text."""
    return (str(error) or type(error).__name__).split("\n")[0]


# ---------------------------------------------------------------------------------------------------- state


@contextlib.contextmanager
def told_again(use: Subject) -> Iterator[None]:
    """A context that forgets, on exit, the warnings that were given inside, so that they can appear again."""
    registered = getattr(use.attrs, "registered", None) if isinstance(use, Use) else None
    warned = set() if registered is None else set(registered.warned)
    try:
        yield
    finally:
        if registered is not None:
            registered.warned.clear()
            registered.warned.update(warned)

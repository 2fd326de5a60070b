"""Runs all checks on an operator, and looks for a smaller example of each failure."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.mode import Recording
from ..core.progress import counted
from ..core.spec import is_numpy_float
from ..custom.dry_run import restored_generators
from ..custom.operator import CHECK
from ..errors import NotDifferentiableError, warn
from . import variations  # noqa: F401  importing it registers all checks
from .behaviour import runs
from .contract import CHECKS, Check, CheckSkipped, Failed, told_again
from .foreign import ForeignUse
from .gradients import NOT_LOOKED_AT, integer_dtypes
from .report import NOT_ASKED, Report, Verdict
from .subjects import FunctionUse, TensorUse, restore_weights, subject
from .uses import Subject, Use

__all__ = ["examine", "names"]

#: Smaller examples tried after a failure.
_TRIALS = 16
#: The report shows the values of an input up to this many elements, and the shape of a larger one.
_MAX_SHOWN = 12


@CHECK.provide
def examine(what: Any, inputs: Sequence[Any], attrs: Mapping[str, Any],
            tell: Callable[[str, Verdict | None], object] = lambda title, verdict: None) -> Report:
    """The body of ``mx.operator.check``. It calls ``tell(title, None)`` at the start, and ``tell(title, verdict)``
    after each check."""
    with restored_generators(), Recording(False, False), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        use = subject(what, inputs, attrs)
        tell(use.title, None)
        verdicts: list[Verdict] = []
        with told_again(use), restore_weights(what), use.restore_generators():
            for verdict in counted(_verdicts(use), f"checking {use.title}", len(CHECKS), lambda verdict: verdict.name):
                tell(use.title, verdict)
                verdicts.append(verdict)
    report = Report(use.title, verdicts)
    if report["gradient"].text.startswith(NOT_LOOKED_AT) and (isinstance(use, (FunctionUse, ForeignUse)) or (
            isinstance(use, Use) and use.op.where is not None and use.op.differentiable)):
        warn(f"check: {use.title}: {integer_dtypes(use).replace(', give', ', so no gradient was looked at: give')}")
    return report


def names() -> list[tuple[str, str]]:
    """The name and the question of each check, in the order in which they run."""
    return [(check.name, check.asks) for check in CHECKS]


def _verdicts(use: Subject) -> Iterator[Verdict]:
    failed: set[str] = set()
    for check in CHECKS:
        missing = [name for name in check.needs if name in failed]
        if missing:
            yield Verdict(check.name, check.asks, "skipped", f"{NOT_ASKED} {missing[0]!r} failed")
            continue
        verdict = _verdict(check, use)
        if verdict.outcome == "failed":
            failed.add(check.name)
        yield verdict


def _check_result(ask: Callable[[Subject], str | None], use: Subject) -> tuple[str, str, str]:
    """Run one check: the outcome, the finding, and the suggested change."""
    try:
        return "ok", ask(use) or "", ""
    except CheckSkipped as reason:
        return "skipped", str(reason), ""
    except Failed as failure:
        return "failed", str(failure), failure.change
    except NotDifferentiableError as error:
        return "skipped", f"no gradient: {_short(error)}", ""
    except (Exception, SystemExit) as error:  # errors of the checked code
        notes = [*getattr(error, "__notes__", ())]
        return "failed", f"{type(error).__name__}: {_short(error)}" + (f" ({notes[0]})" if notes else ""), ""


def _short(error: BaseException) -> str:
    return (str(error) or "without a message").split("\n")[0]


def _verdict(check: Check, use: Subject) -> Verdict:
    outcome, text, change = _check_result(check.ask, use)
    example = ""
    if outcome == "failed":
        small = use
        for _ in range(3):
            failure = next(((smaller, reason) for smaller in itertools.islice(_smaller(small), _TRIALS)
                            if (reason := _same_failure(smaller, check, text))), None)
            if failure is None:
                break
            small, text = failure  # the text of the smaller example, since a failure may not repeat
        example = _use_text(small)
    return Verdict(check.name, check.asks, outcome, text, change, example)


def _same_failure(use: Subject, check: Check, text: str) -> str | None:
    """The text of a failure of this check on smaller inputs that begins as the first failure did; else None."""
    if check.name != "runs" and _check_result(runs, use)[0] != "ok":
        return None
    outcome, outcome_text, _ = _check_result(check.ask, use)
    return outcome_text if outcome == "failed" and outcome_text.split()[:1] == text.split()[:1] else None


def _smaller(use: Subject) -> Iterator[Subject]:
    """The same subject with fewer rows and columns, then with rounded values."""
    for size in sorted({dim for array in use.arrays for dim in array.shape if dim > 1}, reverse=True):
        for fewer in (1, 2):
            if fewer < size:
                arrays = []
                for array in use.arrays:
                    for axis, dim in enumerate(array.shape):
                        if dim == size:
                            array = array.take(range(fewer), axis)
                    arrays.append(array)
                yield use.on_arrays(arrays)
    round_ones = [np.round(array, 1) if is_numpy_float(array.dtype) else array for array in use.arrays]
    if any((rounded != array).any() for rounded, array in zip(round_ones, use.arrays)):
        yield use.on_arrays(round_ones)


def _use_text(use: Subject) -> str:
    """Inputs and attributes as text."""
    parts = []
    for name, each in zip(use.names, use.arrays):
        numbers = " ".join(np.array2string(each, precision=4, separator=", ").split()) if each.size <= _MAX_SHOWN else \
            f"{each.shape}"
        parts.append(f"{name} = {numbers} {each.dtype}")
    keywords: Mapping[str, Any] = use.given if isinstance(use, Use) else \
        use.settings() if isinstance(use, (ForeignUse, TensorUse)) else \
        use.keywords if isinstance(use, FunctionUse) else {}
    return "; ".join(parts + [f"{name}={value!r}" for name, value in keywords.items()])

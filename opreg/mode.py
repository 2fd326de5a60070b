"""The mode of a thread: whether operators are recorded, whether they run as in training; and how they are run."""

from __future__ import annotations

import contextvars
import threading
from typing import Any, Callable

import numpy as np

__all__ = ["MODE", "quiet"]


class _Mode(threading.local):
    recording = False
    training = False
    #: Calls a function in a context of its own, in which NumPy's numeric warnings are off. NumPy keeps that setting
    #: in a context variable; entering the context costs a tenth of ``np.errstate``.
    run: Callable[..., Any]

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


#: Read on every eager call: attributes of a thread-local, nothing more.
MODE = _Mode()


def quiet(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call a function without numeric warnings: infinities and NaN are results here.

    Examples
    --------
    >>> quiet(np.log, np.zeros(1))
    array([-inf])
    """
    try:
        return MODE.run(function, *args, **keywords)
    except RuntimeError as error:
        # A context is entered once at a time: inside another quiet call it is quiet already.
        if not str(error).startswith("cannot enter context"):
            raise
        return function(*args, **keywords)

"""Traits: the properties of an operator that hold for every use of it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from ..errors import ArgumentError, did_you_mean

__all__ = ["Traits"]


class Traits:
    """The properties of an operator that hold for every use of it; they do not change.

    Attributes
    ----------
    states : sequence of int
        Inputs that are auxiliary states. In training the kernel returns their new values after its outputs; these are
        stored at the end of the forward pass.
    mutates : sequence of int
        Inputs the kernel writes in place (optimizer updates).
    random, mode : bool
        Whether kernels take ``rng`` and ``is_train``. A user's operator can find out the mode in many ways, so ``mode``
        is always set for it.
    inplace : set of int, or another collection
        Inputs whose memory may be used for output 0.
    unread : set of int, or another collection
        Inputs whose elements are not read, only their shapes.
    partly : set of int, or another collection
        Inputs that are indexed or sliced: of these, only as many bytes are read as the outputs have.
    has_side_effect : bool
        Whether it does something besides computing its outputs, and so runs even if nothing reads them.
    grad_reads : bool
        Whether its gradient rule reads inputs or outputs; that of a linear operator reads neither.
    optional_out_grads : bool
        Whether its gradient rule is given None, not zeros, for outputs without a gradient.
    supports_add : bool
        Whether all its kernels support the request ``add``.
    traced : bool
        Whether its body is traced instead of run, inside graphs.
    capturable : bool or None
        Whether users' code that it runs may be recorded on a device and replayed; None if it runs no such code.
    casts : bool
        Whether its output is its first input converted to the output's dtype.
    mixes : bool
        Whether it is a cast of mixed precision: its outputs are its inputs in other dtypes, and a graph computes
        without it, too.
    hooks : bool
        Whether its outputs are its first inputs, and only its gradient does something: it calls hooks.
    constant : float or None
        The value of all elements of its outputs; None if it has no such value.
    cheap : bool
        Whether a run costs about as much as reading its inputs and writing its outputs, so that plans may run it again
        in backward instead of holding its results. For expressions, loops and views this is derived.
    """

    states: Sequence[int] = ()
    mutates: Sequence[int] = ()
    random: bool = False
    mode: bool = False
    inplace: Set[int] = frozenset()
    unread: Set[int] = frozenset()
    partly: Set[int] = frozenset()
    has_side_effect: bool = False
    grad_reads: bool = True
    optional_out_grads: bool = False
    supports_add: bool = False
    traced: bool = False
    capturable: bool | None = None
    casts: bool = False
    mixes: bool = False
    hooks: bool = False
    constant: float | None = None
    cheap: bool = False

    def __init__(self, **declared: Any):
        for name, value in declared.items():
            if name not in Traits.__annotations__:
                raise ArgumentError(f"operators have no trait {name!r}. {did_you_mean(name, Traits.__annotations__)}")
            kind = type(getattr(Traits, name))
            setattr(self, name, kind(value) if kind in (tuple, frozenset) else value)

    @property
    def minds_training(self) -> bool:
        """Whether it may compute otherwise in training than in inference."""
        return self.mode or bool(self.states)

    def but(self, **declared: Any) -> Traits:
        """These traits with some declared otherwise."""
        return Traits(**{**vars(self), **declared})

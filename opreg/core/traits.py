"""Traits: facts about an operator that hold for every use of it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

__all__ = ["Traits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Facts about an operator that hold for every use of it.

    Attributes
    ----------
    states : sequence of int
        For an operator with auxiliary states: the kernel returns, after its outputs and only when training, the
        new values of these auxiliary states, which are stored at the end of the forward pass.
    mutates : sequence of int
        Inputs the kernel writes in place (optimizer updates).
    random, mode : bool
        Whether kernels take ``rng`` and ``is_train``. A user's operator may ask for the mode in many ways, so it always
        has one.
    inplace : set of int, or another collection
        Inputs whose memory output 0 may take over.
    unread : set of int, or another collection
        Inputs of which only the shape matters.
    partly : set of int, or another collection
        Inputs of which as many bytes are read as outputs have: they are looked up in, or cut.
    has_side_effect : bool
        Whether it does something beside computing, and runs when nobody reads its outputs.
    grad_reads : bool
        Whether its gradient reads inputs or outputs; that of a linear operator does not.
    optional_out_grads : bool
        Whether its gradient is given None, not zeros, for outputs that no gradient reaches.
    supports_add : bool
        Whether all its kernels obey the request ``add``.
    traced : bool
        Whether its body is traced instead of run, inside graphs.
    capturable : bool or None
        Whether users' code may be recorded on a device and replayed; None for an operator that runs none.
    casts : bool
        Whether its output is the first input in the output's dtype, element for element.
    constant : float or None
        What all elements of its outputs are; None if it is not one number.
    cheap : bool
        Whether a run takes about as long as to read what it reads and to write what it writes, so that plans may run it
        again in backward instead of holding its results. The rule of expressions, loops and views is derived from
        these.
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
    constant: float | None = None
    cheap: bool = False

    @property
    def minds_training(self) -> bool:
        """Whether it may compute otherwise in training than in inference."""
        return self.mode or bool(self.states)

    def __post_init__(self) -> None:
        for name in ("states", "mutates"):  # in order
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("inplace", "unread", "partly"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))

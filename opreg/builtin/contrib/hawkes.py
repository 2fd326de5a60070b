"""The log-likelihood of Hawkes processes, in which events make further events more likely for a while."""

from __future__ import annotations

from ...core.registry import declare
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import declare_gradient, wide


@declare(name="_contrib_hawkesll", types="T:floating,T,T,T,T,I=int32,T,T->T,T", outputs=("output", "out_state"))
def hawkesll(lda, alpha, beta, state, lags, marks, valid_length, max_time):
    """Log-likelihoods of event sequences, each of several Hawkes processes with exponential decay.

    Parameters
    ----------
    lda : array of shape (batch, processes)
        Intensity without events.
    alpha, beta : arrays of shape (processes,)
        Mean number of events that one event causes, and the decay rate of its influence.
    state : array of shape (batch, processes)
        Influence of earlier events at the start.
    lags, marks : arrays of shape (batch, events)
        Times between events, and the process of each event.
    valid_length, max_time : arrays of shape (batch,)
        Number of valid events, and the observation time.

    The outputs are the log-likelihoods, (batch,), and the influence at the end, (batch, processes). ``lda``, ``alpha``,
    ``beta`` and ``state`` have gradients; the times have none.

    E. Bacry, I. Mastromatteo, J.-F. Muzy, Hawkes processes in finance, arXiv:1502.04592.
    """


declare_form(hawkesll, "(batch, processes) (processes) (processes) (batch, processes) (batch, events) (batch, events) "
             "(batch) (batch) -> (batch) (batch, processes)")


def _sums(xp: ArrayModule, lags: Array) -> Array:
    """The time of each event, added up in float32 for 16 bits; CuPy has no running sums of bfloat16."""
    return xp.cumsum(wide(lags), axis=1).astype(lags.dtype, copy=False)


def _influences(xp: ArrayModule, beta: Array, state: Array, lags: Array, marks: Array, valid_length: Array,
                max_time: Array) -> tuple[Array, Array, Array, Array]:
    """The influence and its derivative by ``beta``: for each event's process just before the event, and for all at the
    end."""
    batch, events = lags.shape
    row = xp.arange(batch)
    memory, slope, last = state.copy(), xp.zeros_like(state), xp.zeros_like(state)
    before, before_slope = xp.zeros_like(lags), xp.zeros_like(lags)
    time = _sums(xp, lags)
    for j in range(events):
        counts = j < valid_length
        at = row, marks[:, j]
        passed = time[:, j] - last[at]
        fade = xp.exp(-beta[marks[:, j]] * passed)
        # d/dbeta of s exp(-beta t) is (s' - t s) exp(-beta t).
        before_slope[:, j] = (slope[at] - passed * memory[at]) * fade
        before[:, j] = memory[at] * fade
        memory[at] = xp.where(counts, before[:, j] + 1.0, memory[at])
        slope[at] = xp.where(counts, before_slope[:, j], slope[at])
        last[at] = xp.where(counts, time[:, j], last[at])
    passed = max_time.reshape(-1, 1) - last
    fade = xp.exp(-beta * passed)
    return before, before_slope, memory * fade, (slope - passed * memory) * fade


def _valid(xp: ArrayModule, lags: Array, marks: Array, valid_length: Array, processes: int) -> tuple[Array, Array]:
    """Marks clipped to the range, and a mask of valid events: (batch, events, processes), one at the event's
    process."""
    marks = xp.clip(marks.astype("int64"), 0, processes - 1)
    counts = xp.arange(lags.shape[1]) < valid_length.reshape(-1, 1)
    return marks, xp.expand_dims(counts, 2) & (xp.expand_dims(marks, 2) == xp.arange(processes))


@hawkesll.kernel()  # no body: each event depends on the one before
def hawkesll_xp(xp, lda, alpha, beta, state, lags, marks, valid_length, max_time):
    marks, member = _valid(xp, lags, marks, valid_length, lda.shape[1])
    before, _, end, _ = _influences(xp, beta, state, lags, marks, valid_length, max_time)
    row = xp.arange(lda.shape[0]).reshape(-1, 1)
    intensity = lda[row, marks] + alpha[marks] * beta[marks] * before
    log_intensities = xp.sum(xp.where(xp.any(member, axis=2), xp.log(intensity), 0.0), axis=1)
    # the influence of an event sums up to alpha, less the part that has not yet decayed
    expected = lda * max_time.reshape(-1, 1) + alpha * (state + xp.sum(member, axis=1) - end)
    return log_intensities - xp.sum(expected, axis=1), end


@declare(name="_contrib_backward_hawkesll", types="*T:floating,I=int32,T,T->*T",
         outputs=("lda", "alpha", "beta", "state"))
def backward_hawkesll(g, g_out_state, lda, alpha, beta, state, lags, marks, valid_length, max_time):
    """The gradients of the inputs of ``_contrib_hawkesll``, from the gradients of its outputs."""


declare_gradient(hawkesll, backward_hawkesll)


@backward_hawkesll.kernel()  # no body: each event depends on the one before
def backward_hawkesll_xp(xp, g, g_out_state, lda, alpha, beta, state, lags, marks, valid_length, max_time):
    marks, member = _valid(xp, lags, marks, valid_length, lda.shape[1])
    before, before_slope, end, end_slope = _influences(xp, beta, state, lags, marks, valid_length, max_time)
    row = xp.arange(lda.shape[0]).reshape(-1, 1)
    inverse = 1.0 / (lda[row, marks] + alpha[marks] * beta[marks] * before)

    def by_process(values: Array) -> Array:
        return xp.sum(xp.where(member, xp.expand_dims(values, 2), 0.0), axis=1)

    g, length = g.reshape(-1, 1), max_time.reshape(-1, 1)
    d_lda = by_process(inverse) - length
    d_alpha = beta * by_process(before * inverse) - (state + xp.sum(member, axis=1) - end)
    d_beta = alpha * (by_process((before + beta[marks] * before_slope) * inverse) + end_slope)
    # the remaining influence of events before the start, at each event and at the end
    decay, left_end = xp.exp(-beta[marks] * _sums(xp, lags)), xp.exp(-beta * length)
    d_state = alpha * (beta * by_process(decay * inverse) - 1.0 + left_end)
    return (g * d_lda, xp.sum(g * d_alpha, axis=0), xp.sum(g * d_beta + g_out_state * end_slope, axis=0),
            g * d_state + g_out_state * left_end)

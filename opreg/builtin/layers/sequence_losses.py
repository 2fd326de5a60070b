"""Losses of sequences: CTCLoss, for class scores over time that should spell a shorter sequence of labels.

Sums over all alignments are logarithms, computed one time step after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ...core.registry import declare
from ...core.spec import as_dtype, common_dtype, show
from ...errors import ShapeError
from ...typing import Array, ArrayModule
from ..outputs import add_into, common_floating, declare_gradient, wide
from .softmax import log_softmax_of


def _ctc_arguments(*, use_data_lengths, use_label_lengths):
    return ("data", "label", *(("data_lengths",) if use_data_lengths else ()),
            *(("label_lengths",) if use_label_lengths else ()))


@declare(name="CTCLoss", aliases=("ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"), arguments=_ctc_arguments,
         outputs=("output0", "output1"), visible=lambda: 1)
def ctc_loss(data, label, data_lengths, label_lengths, *, use_data_lengths: bool = False,
             use_label_lengths: bool = False, blank_label: Literal["first", "last"] = "first"):
    """The negative log-probability that the scores spell the labels, after blanks and repetitions are removed.

    Parameters
    ----------
    data : array of shape (time, batch, classes)
        Scores, before softmax.
    label : array of shape (batch, length)
        Class indices. Without ``label_lengths`` they end at the first 0, or at the first -1 if the blank is the last
        class.
    data_lengths, label_lengths : arrays of shape (batch,)
        Valid lengths of both, with ``use_data_lengths`` and ``use_label_lengths``.
    blank_label : {"first", "last"}
        Whether the blank is the first or the last class.

    The output has the shape (batch,). A sample whose scores are too short for its labels has loss and gradient 0, as in
    MXNet.

    A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, Connectionist Temporal Classification, 2006.
    """


@ctc_loss.infer
def ctc_loss_infer(data, label, *lengths):
    if len(data) != 3 or len(label) != 2:
        raise ShapeError(f"expected data of shape (time, batch, classes) and label of shape (batch, length), "
                         f"got {show(data)} and {show(label)}")
    if data[1] != label[0] or any(length != (data[1],) for length in lengths):
        raise ShapeError(f"data {show(data)} have a batch of {data[1]}, label {show(label)}, lengths "
                         f"{', '.join(map(show, lengths)) or 'not given'}")
    if data[0] < label[1]:
        raise ShapeError(f"label {show(label)}: {label[1]} labels do not fit into {data[0]} time steps")
    return [data[1:2], (data[0], data[1], 2 * label[1] + 1)]


@ctc_loss.fill
def ctc_loss_fill(ins, outs):
    if ins[0] is None:
        return ins
    return [*ins[:2], *[ins[0][1:2]] * (len(ins) - 2)]


@ctc_loss.types
def ctc_loss_types(ins, outs):
    data = common_floating([ins[0], outs[0]])
    label = ins[1] or data
    return [data, label, *[lengths or label for lengths in ins[2:]]], [data, _wide_dtype(data)]


def _wide_dtype(dtype: np.dtype | None) -> np.dtype | None:
    return as_dtype("float32") if dtype is not None and dtype.itemsize < 4 else dtype


class _Spelling:
    """The labels of a batch with blanks between them, and the allowed transitions.

    ``words`` (batch, 2 length + 1) are class indices, ``ends`` (batch,) the index of the last blank, ``skips`` is true
    where the blank before a label may be left out, ``steps`` (batch,) is the number of valid time steps, ``possible``
    whether they suffice for the labels.
    """

    def __init__(self, xp: ArrayModule, data: Array, label: Array, lengths: Sequence[Array], use_data_lengths: bool,
                 use_label_lengths: bool, blank_label: str):
        time, batch, classes = data.shape
        last = blank_label == "last"
        blank, padding = (classes - 1, -1) if last else (0, 0)
        label = label.astype("int64")
        if use_label_lengths:
            count = lengths[-1].astype("int64")
        else:  # labels before the first padding
            count = xp.sum(xp.cumsum(label == padding, axis=1) == 0, axis=1)
        self.steps = lengths[0].astype("int64") if use_data_lengths else xp.full((batch,), time)
        self.words = xp.full((batch, 2 * label.shape[1] + 1), blank)
        self.words[:, 1::2] = xp.clip(label, 0, classes - 1)
        differs = label[:, 1:] != label[:, :-1]
        self.skips = xp.zeros(self.words.shape, dtype=bool)
        self.skips[:, 3::2] = differs
        repeated = ~differs & (xp.arange(1, max(label.shape[1], 1)) < xp.expand_dims(count, 1))
        self.ends = 2 * count
        self.possible = count + xp.sum(repeated, axis=1) <= self.steps

    def word_scores(self, xp: ArrayModule, logp: Array) -> Array:
        """Log probabilities of the words, (time, batch, words)."""
        return xp.take_along_axis(logp, xp.expand_dims(self.words, 0), axis=2)

    def final(self, xp: ArrayModule, dtype: np.dtype) -> Array:
        """0 at the last label and the blank after it, minus infinity elsewhere."""
        place = xp.arange(self.words.shape[1])
        ends = xp.expand_dims(self.ends, 1)
        return xp.where((place == ends) | (place == ends - 1), 0.0, -xp.inf).astype(dtype)


def _ctc_step(xp: ArrayModule, logs: Array, skips: Array, shift: int) -> Array:
    """Logarithms of the sums over the transitions into each word, or with ``shift=-1`` out of it."""
    by_one = xp.full_like(logs, -xp.inf)
    by_two = xp.full_like(logs, -xp.inf)
    if shift > 0:
        by_one[:, 1:] = logs[:, :-1]
        by_two[:, 2:] = xp.where(skips[:, 2:], logs[:, :-2], -xp.inf)
    else:
        by_one[:, :-1] = logs[:, 1:]
        by_two[:, :-2] = xp.where(skips[:, 2:], logs[:, 2:], -xp.inf)
    return xp.logaddexp(xp.logaddexp(logs, by_one), by_two)


def _ctc_scores(xp: ArrayModule, data: Array) -> Array:
    return log_softmax_of(xp, wide(data))


@ctc_loss.kernel()  # no body: each time step follows from the one before
def ctc_loss_xp(xp, data, label, *lengths, use_data_lengths, use_label_lengths, blank_label):
    spelling = _Spelling(xp, data, label, lengths, use_data_lengths, use_label_lengths, blank_label)
    word_scores = spelling.word_scores(xp, _ctc_scores(xp, data))
    alpha = xp.empty_like(word_scores)
    logs = xp.full_like(word_scores[0], -xp.inf)
    logs[:, :2] = word_scores[0, :, :2]
    alpha[0] = logs
    for t in range(1, data.shape[0]):
        logs = _ctc_step(xp, logs, spelling.skips, 1) + word_scores[t]
        alpha[t] = logs
    last = xp.clip(spelling.steps - 1, 0, data.shape[0] - 1)
    closing = alpha[last, xp.arange(data.shape[1])] + spelling.final(xp, alpha.dtype)
    top = xp.max(closing, axis=1, keepdims=True)
    loss = -top[:, 0] - xp.log(xp.sum(xp.exp(closing - top), axis=1))
    return xp.where(spelling.possible, loss, 0.0), alpha


@declare(name="_backward_ctc_loss", arguments=lambda *, use_data_lengths, use_label_lengths: (
    "g", *_ctc_arguments(use_data_lengths=use_data_lengths, use_label_lengths=use_label_lengths), "output0", "output1"))
def backward_ctc_loss(g, data, label, data_lengths, label_lengths, output0, output1, *, use_data_lengths: bool = False,
                      use_label_lengths: bool = False, blank_label: Literal["first", "last"] = "first"):
    """The gradient of ``CTCLoss``; its outputs are the loss and the forward sums."""


declare_gradient(ctc_loss, backward_ctc_loss)


@backward_ctc_loss.types
def backward_ctc_loss_types(ins, outs):
    data = common_floating([*ins[:2], ins[-2], *outs])
    return [data, data, *ins[2:-2], data, common_dtype([ins[-1], _wide_dtype(data)])], [data]


@backward_ctc_loss.kernel()  # no body: each time step is computed from the next
def backward_ctc_loss_xp(xp, g, data, label, *rest, use_data_lengths, use_label_lengths, blank_label):
    *lengths, loss, alpha = rest
    time, batch, _ = data.shape
    spelling = _Spelling(xp, data, label, lengths, use_data_lengths, use_label_lengths, blank_label)
    logp = _ctc_scores(xp, data)
    word_scores = spelling.word_scores(xp, logp)
    final = spelling.final(xp, word_scores.dtype)
    last = xp.expand_dims(spelling.steps - 1, 1)
    share = xp.empty_like(word_scores)
    logs = xp.full_like(final, -xp.inf)
    for t in reversed(range(time)):
        if t + 1 < time:
            logs = _ctc_step(xp, logs + word_scores[t + 1], spelling.skips, -1)
        # the recursion of a sample begins at its last step; values at the padding after it are dropped
        logs = xp.where(last == t, final, logs)
        share[t] = logs
    share = xp.exp(share + alpha + loss.reshape(1, batch, 1).astype(alpha.dtype))
    dx = xp.exp(logp)
    at = (xp.arange(time).reshape(-1, 1, 1), xp.arange(batch).reshape(1, -1, 1), xp.expand_dims(spelling.words, 0))
    add_into(xp, dx, at, -share)
    counts = (xp.arange(time).reshape(-1, 1) < spelling.steps) & spelling.possible
    return xp.where(xp.expand_dims(counts, 2), dx * g.reshape(1, batch, 1), 0.0)

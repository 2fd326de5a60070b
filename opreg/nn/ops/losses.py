"""Loss functions, which the classes in ``nn.losses`` call."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import TensorLike
from ...core.registry import ops
from ...core.spec import is_floating, show
from ...errors import ArgumentError, ShapeError
from .array import concat, stack
from .indexing import gather_nd, nonzero
from .lift import as_floating, like, tensor, to_common_dtype
from .math import logical_and, where
from .reduce import amax, cumsum, logsumexp

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
           "ctc_greedy_decoder", "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div",
           "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
           "multilabel_soft_margin_loss", "nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss"]


#: Lower bound of values before their logarithm is computed.
_LEAST = 1e-12


def reduced(loss: Tensor, reduction: str, name: str) -> Tensor:
    """The mean or sum of losses, or the losses."""
    if reduction == "mean":
        return ops._npi_mean(loss)
    if reduction == "sum":
        return ops._np_sum(loss)
    if reduction != "none":
        raise ArgumentError(f"{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return loss


def above(x: Tensor, least: float = 0.0) -> Tensor:
    """The larger of each element and ``least``."""
    return ops._maximum_scalar(x, scalar=float(least))


def _reduce_in_dtype(loss: Tensor, reduction: str, name: str) -> Tensor:
    """The mean or sum in the input's dtype; narrow dtypes are reduced in float32."""
    if loss._dt == np.float64:
        return reduced(loss, reduction, name)
    return reduced(loss._cast(np.dtype(np.float32)), reduction, name)._cast(loss._dt)


def mse_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The squared difference; of integers in float32."""
    x, y = to_common_dtype(input, target, real=True)
    return _reduce_in_dtype(ops.square(x - y), reduction, "mse_loss")


def l1_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The absolute difference; of integers in float32."""
    x, y = to_common_dtype(input, target, real=True)
    return _reduce_in_dtype(ops.abs(x - y), reduction, "l1_loss")


def smooth_l1_loss(input: TensorLike, target: TensorLike, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """``0.5 * d ** 2 / beta`` where the absolute difference ``d`` is below ``beta``, ``d - 0.5 * beta`` elsewhere.

    R. Girshick, Fast R-CNN, arXiv:1504.08083.
    """
    x, y = to_common_dtype(input, target, real=True)
    apart = ops.abs(x - y)
    return reduced(where(apart < beta, apart * apart * (0.5 / beta), apart - 0.5 * beta), reduction, "smooth_l1_loss")


def huber_loss(input: TensorLike, target: TensorLike, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """``0.5 * d ** 2`` where the absolute difference ``d`` is up to ``delta``, ``delta * (d - 0.5 * delta)`` beyond."""
    x, y = to_common_dtype(input, target, real=True)
    apart = ops.abs(x - y)
    return reduced(where(apart <= delta, apart * apart * 0.5, (apart - 0.5 * delta) * delta), reduction, "huber_loss")


def _log_probabilities(x: Tensor) -> Tensor:
    return ops.log_softmax(x, axis=1 if x.ndim > 1 else 0)


def cross_entropy(input: TensorLike, target: TensorLike, weight: TensorLike | None = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """The cross-entropy of targets and the softmax of scores.

    Parameters
    ----------
    input : tensor of shape (batch, classes, ...) or (classes,)
        Scores.
    target : tensor
        Class indices, of the shape without classes; or probabilities, of the shape of ``input``.
    weight : tensor of shape (classes,), optional
        Weights of the classes.
    ignore_index : int
        A class index whose samples are ignored.
    label_smoothing : float
        Part of each target that is spread evenly over all classes.
    """
    x, target = as_floating(input), tensor(target)
    if not is_floating(target._dt):
        return nll_loss(_log_probabilities(x), target, weight, ignore_index, reduction, label_smoothing)
    if target.shape != x.shape:
        raise ShapeError(f"cross_entropy: probabilities of shape {target.shape} do not fit scores of {x.shape}")
    axis = 1 if x.ndim > 1 else 0
    logs = _log_probabilities(x)
    smooth = target._cast(x._dt) * (1 - label_smoothing) + label_smoothing / x.shape[axis]
    if weight is not None:
        logs = logs * like(weight, x).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    loss = -ops._np_sum(logs * smooth, axis=axis)
    return ops._np_sum(loss) / (loss.size or 1) if reduction == "mean" else reduced(loss, reduction, "cross_entropy")


def nll_loss(inputs: TensorLike, target: TensorLike, weight: TensorLike | None = None, ignore_index: int = -100,
             reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """The negative log-probability of the target; the mean is weighted. See ``cross_entropy``.

    Negative class indices count from the end; invalid ones are refused, except for ``ignore_index``.
    """
    x, target = as_floating(inputs), tensor(target)
    axis = 1 if x.ndim > 1 else 0
    expected = x.shape[:axis] + x.shape[axis + 1:]
    if target.shape != expected:
        raise ShapeError(f"nll_loss: labels must have shape {show(expected)}, got {show(target.shape)}")
    weights = None if weight is None else like(weight, x)
    counts = target != ignore_index
    named = where(counts, target, 0)
    shares = counts._cast(x._dt) if weights is None else \
        where(counts, ops.take(weights, named, axis=0, mode="index"), 0.0)
    picked = ops.pick(x, named, axis=axis, mode="index")  # a single sample has an axis of length one here
    loss = where(counts, -(picked if axis else picked.reshape(())), 0.0)
    loss = loss if weights is None else loss * shares
    if label_smoothing:
        wide = x if weights is None else x * weights.reshape((-1,) + (1,) * (x.ndim - axis - 1))
        spread = where(counts, -ops._np_sum(wide, axis=axis), 0.0)
        loss = loss * (1 - label_smoothing) + spread * (label_smoothing / x.shape[axis])
    if reduction == "mean":
        return ops._np_sum(loss) / ops._np_sum(shares)
    return reduced(loss, reduction, "nll_loss")


def binary_cross_entropy(logits: TensorLike, labels: TensorLike, weight: TensorLike | None = None,
                         reduction: str = "mean") -> Tensor:
    """``-(labels log(p) + (1 - labels) log(1 - p))`` of probabilities, clipped from below at 1e-12."""
    p, y = to_common_dtype(logits, labels, real=True)
    loss = -(y * ops.log(above(p, _LEAST)) + (1 - y) * ops.log(above(1 - p, _LEAST)))
    return reduced(loss if weight is None else loss * like(weight, p), reduction, "binary_cross_entropy")


def binary_cross_entropy_with_logits(input: TensorLike, target: TensorLike, weight: TensorLike | None = None,
                                     pos_weight: TensorLike | None = None, reduction: str = "mean") -> Tensor:
    """The binary cross-entropy of labels and the sigmoid of scores; ``pos_weight`` is the weight of positive labels."""
    x, y = to_common_dtype(input, target, real=True)
    negative = ops._softrelu(-x)
    positive = y * negative if pos_weight is None else y * negative * like(pos_weight, x)
    loss = (1 - y) * (x + negative) + positive
    return reduced(loss if weight is None else loss * like(weight, x), reduction, "binary_cross_entropy_with_logits")


def kl_div(logits: TensorLike, labels: TensorLike, reduction: str = "mean") -> Tensor:
    """``labels (log(labels) - logits)``, 0 where a label is not positive; "batchmean" divides by the number of
    samples."""
    x, y = to_common_dtype(logits, labels, real=True)
    positive = y > 0
    loss = where(positive, y * (ops.log(where(positive, y, 1.0)) - x), 0.0)
    if reduction == "batchmean":
        return ops._np_sum(loss) / (x.shape[0] if x.shape else 1)
    return reduced(loss, reduction, "kl_div")


def soft_margin_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """``log(1 + exp(-target input))``, with targets 1 or -1."""
    x, y = to_common_dtype(input, target, real=True)
    return reduced(ops._softrelu(-y * x), reduction, "soft_margin_loss")


def hinge_embedding_loss(inputs: TensorLike, targets: TensorLike, margin: float = 1.0, reduction: str = "mean"
                        ) -> Tensor:
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1."""
    x, y = to_common_dtype(inputs, targets, real=True)
    loss = where(y == 1, x, 0.0) + where(y == -1, ops.relu(margin - x), 0.0)
    return reduced(loss, reduction, "hinge_embedding_loss")


def margin_ranking_loss(input1: TensorLike, input2: TensorLike, target: TensorLike, margin: float = 0.0,
                        reduction: str = "mean") -> Tensor:
    """``max(0, -target (input1 - input2) + margin)``."""
    x, y, sign = to_common_dtype(input1, input2, target, real=True)
    return reduced(above(-sign * (x - y) + margin), reduction, "margin_ranking_loss")


def cosine_embedding_loss(input1: TensorLike, input2: TensorLike, target: TensorLike, margin: float = 0.0,
                          reduction: str = "mean") -> Tensor:
    """One minus the cosine along the second axis where the target is 1, ``max(0, cosine - margin)`` where it is -1."""
    x, y = to_common_dtype(input1, input2, real=True)
    length, norms_product = (ops.sqrt(ops._np_sum(ops.square(vector), axis=1)) for vector in (x, y))
    near, target = ops._np_sum(x * y, axis=1) / (length * norms_product), tensor(target)
    loss = where(target == 1, 1 - near, 0.0) + where(target == -1, ops.relu(near - margin), 0.0)
    return reduced(loss, reduction, "cosine_embedding_loss")


def triplet_margin_loss(anchor: TensorLike, positive: TensorLike, negative: TensorLike, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, with the p-norm as the distance ``d``.

    V. Balntas et al., Learning Shallow Convolutional Feature Descriptors with Triplet Losses, 2016.
    """
    a, b, c = to_common_dtype(anchor, positive, negative, real=True)

    def apart(x: Tensor, y: Tensor) -> Tensor:
        step = ops.abs(x - y + eps)
        if p == 1:
            return ops._np_sum(step, axis=-1)
        if p == 2:
            return ops.sqrt(ops._np_sum(ops.square(step), axis=-1))
        return ops._np_sum(step ** p, axis=-1) ** (1 / p)

    return reduced(triplet_margins(apart, a, b, c, margin, swap), reduction, "triplet_margin_loss")


def triplet_margins(distance: Callable[[Tensor, Tensor], Tensor], x: Tensor, positive: Tensor, negative: Tensor,
                    margin: float, swap: bool) -> Tensor:
    """The amounts by which negatives are not farther than positives by a margin; with ``swap`` a negative counts from
    the nearer of ``x`` and the positive."""
    near, far = distance(x, positive), distance(x, negative)
    if swap:
        far = ops.broadcast_minimum(far, distance(positive, negative))
    return above(near - far + margin)


# ------------------------------------------------------------------------------------------------ sequences


def ctc_loss(log_probs: TensorLike, targets: TensorLike, input_lengths: TensorLike, target_lengths: TensorLike,
             blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> tuple[Tensor, None]:
    """The negative log-probability that scores over time spell a sequence, after blanks and repetitions are removed.

    The gradient is that of scores before a softmax, as in MindSpore.

    Parameters
    ----------
    log_probs : Tensor
        Log-probabilities, of shape (time, n, classes), or (time, classes) for one sequence.
    targets : Tensor
        Sequences of classes, of shape (n, length).
    input_lengths, target_lengths : Tensor or sequence of int
        Valid lengths of both, of shape (n,).
    blank : int
        Number of the blank class.
    reduction : {"mean", "none", "sum"}
        Reduction of the n values; for the mean each is divided by the length of its sequence.
    zero_infinity : bool
        Whether the loss of a sequence that is too long for its scores is zero instead of infinite.

    Returns
    -------
    Tensor, None
        The loss, and None in the place of MindSpore's ``log_alpha``.

    Raises
    ------
    ShapeError
        When the scores have not two or three axes, or the blank is no class.

    Examples
    --------
    >>> from opreg import Tensor
    >>> sure = Tensor([[[-9.0, 0.0]], [[0.0, -9.0]]])
    >>> loss, _ = ctc_loss(sure, Tensor([[1]]), (2,), (1,))
    >>> float(loss) < 0.001
    True
    """
    x, words = as_floating(log_probs), tensor(targets)
    steps, counts = tensor(input_lengths), tensor(target_lengths)
    if x.ndim == 2:
        loss, _ = ctc_loss(ops.expand_dims(x, axis=1), words.reshape((1, -1)), steps.reshape((1,)),
                           counts.reshape((1,)), blank, reduction, zero_infinity)
        return loss.reshape(()), None
    if x.ndim != 3 or not 0 <= blank < x.shape[2]:
        raise ShapeError(f"ctc_loss: log_probs must have shape (time, n, classes) with the class {blank} among these, "
                         f"got {show(x.shape)}")
    if blank:  # the operator expects the blank as the first class
        others = [number for number in range(x.shape[2]) if number != blank]
        x = ops.take(x, tensor([blank, *others]), axis=2)
        words = where(words == blank, 0, where(words < blank, words + 1, words))
    loss = ops.CTCLoss(x, words, steps, counts, use_data_lengths=True, use_label_lengths=True)
    within = tensor(list(range(x.shape[0]))).reshape((-1, 1)) < steps
    over = ops._np_sum(where(within, logsumexp(x, 2), 0.0), axis=0)
    loss = loss - ops.BlockGrad(over)  # the inputs are used as they are, even if they are no logarithms
    place = tensor(list(range(1, words.shape[1]))).reshape((1, -1))
    repeated = (words[:, 1:] == words[:, :-1])._cast(counts._dt) * (place < counts.reshape((-1, 1)))
    fits = counts + ops._np_sum(repeated, axis=1) <= steps
    loss = where(fits, loss, 0.0 if zero_infinity else math.inf)
    if reduction == "mean":
        loss = loss / above(counts._cast(loss._dt), 1.0)
    return reduced(loss, reduction, "ctc_loss"), None


def ctc_greedy_decoder(inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True
                       ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likeliest class of each step, with blanks and repetitions removed.

    Parameters
    ----------
    inputs : Tensor
        Scores of shape (time, n, classes), the last class being the blank.
    sequence_length : Tensor
        Number of steps of each sequence, of shape (n,).
    merge_repeated : bool
        Whether repeated classes are merged.

    Returns
    -------
    indices, values, shape, scores : Tensor
        For each remaining class the number of its sequence and its position there, (count, 2), and the class, (count,),
        int64; ``(n, longest)``, int64; and the negative sum of the chosen scores, (n, 1).

    Examples
    --------
    >>> from opreg import Tensor
    >>> scores = Tensor([[[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0]]])
    >>> ctc_greedy_decoder(scores, Tensor([4]))[1]
    Tensor(shape=[2], dtype=Int64, value= [0, 1])
    """
    x, steps = tensor(inputs), tensor(sequence_length)
    if x.ndim != 3 or steps.shape != x.shape[1:2]:
        raise ShapeError(f"ctc_greedy_decoder: expected scores (time, n, classes) and n lengths, got {show(x.shape)} "
                         f"and {show(steps.shape)}")
    best = ops._npi_argmax(x, axis=-1)._cast(np.dtype(np.int64)).swapaxes(0, 1)
    within = tensor(np.arange(x.shape[0])) < steps.reshape((-1, 1))
    score = -ops._np_sum(where(within, amax(x, -1).swapaxes(0, 1), 0.0), axis=1, keepdims=True)
    emitted = logical_and(within, best != x.shape[2] - 1)
    if merge_repeated:
        before = concat((ops._npi_full_like(best[:, :1], fill_value=-1.0), best[:, :-1]), 1)
        emitted = logical_and(emitted, best != before)
    places = cumsum(emitted._cast(np.dtype(np.int64)), 1)
    result = nonzero(emitted)
    indices = stack((result[:, 0], gather_nd(places, result) - 1), 1)
    longest = amax(places[:, -1])
    return indices, gather_nd(best, result), stack((tensor(np.asarray(x.shape[1])), longest)), score


def multi_margin_loss(input: TensorLike, target: TensorLike, p: int = 1, margin: float = 1,
                      weight: TensorLike | None = None, reduction: str = "mean") -> Tensor:
    """The mean over other classes of ``max(0, margin - x[label] + x[class]) ** p``.

    Parameters
    ----------
    input : Tensor
        Scores of shape (n, classes).
    target : Tensor
        The n classes.
    p : {1, 2}
        The power.
    margin : float
        Margin by which the label's score has to exceed the others.
    weight : Tensor, optional
        A weight for each class as a label.
    reduction : {"mean", "sum", "none"}
        Reduction of the n values.
    """
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p must be 1 or 2, got {p!r}")
    x, labels = as_floating(input), tensor(target)
    if x.ndim != 2 or labels.shape != x.shape[:1]:
        raise ShapeError("multi_margin_loss: expected scores (n, classes) and n labels, got shapes "
                         f"{show(x.shape)} and {show(labels.shape)}")
    others = 1.0 - ops.one_hot(labels, depth=x.shape[1], dtype=x._dt)
    behind = above(x - ops.pick(x, labels, axis=1, keepdims=True, mode="index") + margin) * others
    rows = ops._np_sum(behind if p == 1 else ops.square(behind), axis=1) / x.shape[1]
    if weight is not None:
        rows = rows * ops.take(like(weight, x), labels, axis=0, mode="index")
    return _reduce_in_dtype(rows, reduction, "multi_margin_loss")


def multilabel_margin_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The mean over classes of ``max(0, 1 - x[label] + x[other])``, summed over all labels and all other classes.

    Parameters
    ----------
    input : Tensor
        Scores of shape (n, classes) or (classes,).
    target : Tensor
        Classes that are labels, of the same shape; a row of them ends before its first -1.
    reduction : {"mean", "sum", "none"}
        Reduction of the n values.
    """
    x, labels = as_floating(input), tensor(target)
    if x.shape != labels.shape or x.ndim not in (1, 2):
        raise ShapeError("multilabel_margin_loss: expected scores and labels of one shape (n, classes) or (classes,), "
                         f"got {show(x.shape)} and {show(labels.shape)}")
    classes = x.shape[-1]
    used = ops._np_cumsum((labels < 0)._cast(np.dtype(np.int32)), axis=-1) == 0
    named = ops.expand_dims(where(used, labels, classes), axis=-1) == tensor(np.arange(classes))
    is_label = ops._np_any(named, axis=-2)
    at_labels = ops._take_along_axis(x, where(used, labels, 0)._cast(np.dtype(np.int64)), axis=-1)
    behind = above(1.0 - ops.expand_dims(at_labels, axis=-1) + ops.expand_dims(x, axis=-2))
    counted = logical_and(ops.expand_dims(used, axis=-1), ops.expand_dims(is_label == 0, axis=-2))
    rows = ops._np_sum(where(counted, behind, 0.0), axis=(-2, -1)) / classes
    return _reduce_in_dtype(rows, reduction, "multilabel_margin_loss")


def multilabel_soft_margin_loss(input: TensorLike, target: TensorLike, weight: TensorLike | None = None,
                                reduction: str = "mean") -> Tensor:
    """The cross-entropy of labels and the sigmoid of scores, averaged over classes, the last axis.

    Parameters
    ----------
    input, target : Tensor
        Scores and labels from 0 to 1, of one shape.
    weight : Tensor, optional
        A weight for each class.
    reduction : {"mean", "sum", "none"}
        Reduction of the means.
    """
    x, labels = to_common_dtype(input, target, real=True)
    elements = ops._softrelu(-x) + (1.0 - labels) * x
    rows = ops._npi_mean(elements if weight is None else elements * like(weight, x), axis=-1)
    return reduced(rows, reduction, "multilabel_soft_margin_loss")


def gaussian_nll_loss(x: TensorLike, target: TensorLike, var: TensorLike, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """The negative logarithm of a normal density: ``0.5 * (log(var) + (x - target) ** 2 / var)``.

    Parameters
    ----------
    x, target, var : Tensor
        Means, samples and variances, whose shapes broadcast.
    full : bool
        Whether the constant is added.
    eps : float
        Smallest variance that is used.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.
    """
    mean, sample, spread = to_common_dtype(x, target, var, real=True)
    spread = above(spread, eps)
    elements = (ops.log(spread) + ops.square(mean - sample) / spread) * 0.5
    return reduced(elements + 0.5 * math.log(2 * math.pi) if full else elements, reduction, "gaussian_nll_loss")

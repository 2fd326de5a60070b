"""Losses: one value for each sample of a batch."""

from __future__ import annotations

import math
from typing import Any

from opreg import ndarray

from ..base import numeric_types
from ..core.attrs import Amount
from ..errors import did_you_mean
from .errors import BlockError
from .hybrid_block import HybridBlock

__all__ = ["Loss", "L2Loss", "L1Loss", "SigmoidBinaryCrossEntropyLoss", "SigmoidBCELoss", "SoftmaxCrossEntropyLoss",
           "SoftmaxCELoss", "KLDivLoss", "CTCLoss", "HuberLoss", "HingeLoss", "SquaredHingeLoss", "LogisticLoss",
           "TripletLoss", "PoissonNLLLoss", "CosineEmbeddingLoss", "SDMLLoss"]


def _apply_weighting(F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """A loss times the weights of samples, if given, and times the constant weight."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is None:
        return loss
    if not isinstance(weight, numeric_types):
        raise BlockError(f"weight must be a number, got {type(weight).__name__}")
    return loss * weight


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    """A value in the shape of another."""
    return x.reshape(y.shape) if F is ndarray else F.reshape_like(x, y)


class Loss(HybridBlock):
    """The base class of losses.

    Parameters
    ----------
    weight : float or None
        Factor of the loss.
    batch_axis : int
        The axis of samples.
    """

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._weight, self._batch_axis = weight, batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _mean_of_samples(self, F: Any, loss: Any, sample_weight: Any, weight: float | None = None) -> Any:
        """The weighted loss, averaged over each sample."""
        loss = _apply_weighting(F, loss, self._weight if weight is None else weight, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)


class L2Loss(Loss):
    """Half the square of the difference.

    Examples
    --------
    >>> from opreg import nd
    >>> L2Loss()(nd.array([[1, 2]]), nd.array([[1, 4]])).asnumpy()
    array([1.], dtype=float32)
    """

    def __init__(self, weight: float = 1.0, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        label = _reshape_like(F, label, pred)
        return self._mean_of_samples(F, F.square(label - pred), sample_weight, (self._weight or 0) / 2)


class L1Loss(Loss):
    """The absolute difference.

    Examples
    --------
    >>> from opreg import nd
    >>> L1Loss()(nd.array([[1, 4], [2, 2]]), nd.array([[1, 2], [2, 1]])).asnumpy()
    array([1. , 0.5], dtype=float32)
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        return self._mean_of_samples(F, F.abs(_reshape_like(F, label, pred) - pred), sample_weight)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """The binary cross entropy.

    Parameters
    ----------
    from_sigmoid : bool
        Whether predictions are probabilities; otherwise they are logits.
    weight, batch_axis
        See ``Loss``.

    Examples
    --------
    >>> from opreg import nd
    >>> SigmoidBinaryCrossEntropyLoss()(nd.array([[0], [2]]), nd.array([[1], [0]])).asnumpy().round(3)
    array([0.693, 2.127], dtype=float32)
    """

    def __init__(self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        """See ``HybridBlock``; ``pos_weight`` is the weight of positive labels."""
        label = _reshape_like(F, label, pred)
        if self._from_sigmoid:
            yes, no = F.log(pred + 1e-12) * label, F.log(1.0 - pred + 1e-12) * (1.0 - label)
            loss = -((yes if pos_weight is None else F.broadcast_mul(yes, pos_weight)) + no)
        else:
            softplus = F.Activation(-F.abs(pred), act_type="softrelu")
            if pos_weight is None:
                loss = F.relu(pred) - pred * label + softplus
            else:
                loss = pred - pred * label + (1 + F.broadcast_mul(pos_weight - 1, label)) * (softplus + F.relu(-pred))
        return self._mean_of_samples(F, loss, sample_weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """The cross entropy of predicted and true classes.

    Parameters
    ----------
    axis : int
        The axis of classes.
    sparse_label : bool
        Whether labels are class numbers; otherwise they are probabilities.
    from_logits : bool
        Whether predictions are logarithms of probabilities; otherwise ``log_softmax`` is applied.
    weight, batch_axis
        See ``Loss``.

    Examples
    --------
    >>> from opreg import nd
    >>> SoftmaxCrossEntropyLoss()(nd.array([[0, 0]]), nd.array([1])).asnumpy()
    array([0.6931472], dtype=float32)
    """

    def __init__(self, axis: int = -1, sparse_label: bool = True, from_logits: bool = False,
                 weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._axis, self._sparse_label, self._from_logits = axis, sparse_label, from_logits

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(pred * _reshape_like(F, label, pred), axis=self._axis, keepdims=True)
        return self._mean_of_samples(F, loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence of two distributions.

    Parameters
    ----------
    from_logits : bool
        Whether predictions are logarithms of probabilities; otherwise ``log_softmax`` is applied.
    axis : int
        The axis of classes.
    weight, batch_axis
        See ``Loss``.

    Examples
    --------
    >>> from opreg import nd
    >>> target = nd.array([[0.25, 0.75]])
    >>> KLDivLoss()(nd.log(nd.array([[0.5, 0.5]])), target).asnumpy().round(4)
    array([0.1308], dtype=float32)
    """

    def __init__(self, from_logits: bool = True, axis: int = -1, weight: float | None = None, batch_axis: int = 0,
                 **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._axis = from_logits, axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        loss = _apply_weighting(F, label * (F.log(label + 1e-12) - pred), self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class CTCLoss(Loss):
    """Connectionist temporal classification; the last class is the blank.

    Parameters
    ----------
    layout : {"NTC", "TNC"}
        Order of the axes of predictions.
    label_layout : {"NT", "TN"}
        Order of the axes of labels.
    weight
        See ``Loss``.

    Examples
    --------
    >>> from opreg import nd
    >>> CTCLoss()(nd.ones((2, 20, 4)), nd.array([[1, 0, -1, -1], [2, 1, 1, -1]])).asnumpy().round(3)
    array([18.828, 16.506], dtype=float32)
    """

    def __init__(self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None, **kwargs: Any):
        for what, value, valid in (("layout", layout, ("NTC", "TNC")), ("label_layout", label_layout, ("NT", "TN"))):
            if value not in valid:
                raise BlockError(f"CTCLoss: {what} {value!r}. {did_you_mean(value, valid)}")
        self.__dict__.update(_layout=layout, _label_layout=label_layout)
        super().__init__(weight, label_layout.find("N"), **kwargs)

    _layout: str

    def hybrid_forward(self, F: Any, pred: Any, label: Any, pred_lengths: Any = None, label_lengths: Any = None,
                       sample_weight: Any = None) -> Any:
        """See ``HybridBlock``; the optional lengths limit predictions and labels."""
        if self._layout == "NTC":
            pred = F.swapaxes(pred, 0, 1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, 0, 1)
        lengths = [length for length in (pred_lengths, label_lengths) if length is not None]
        loss = F.CTCLoss(pred, label, *lengths, use_data_lengths=pred_lengths is not None,
                         use_label_lengths=label_lengths is not None, blank_label="last")
        return _apply_weighting(F, loss, self._weight, sample_weight)


class HuberLoss(Loss):
    """Squared differences over ``2 * rho`` where they are below ``rho``, and absolute ones less ``rho / 2``
    elsewhere.

    Examples
    --------
    >>> from opreg import nd
    >>> HuberLoss()(nd.array([[0.5], [3]]), nd.array([[0], [0]])).asnumpy()
    array([0.125, 2.5  ], dtype=float32)
    """

    def __init__(self, rho: Amount = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        size = F.abs(_reshape_like(F, label, pred) - pred)
        loss = F.where(size > self._rho, size - 0.5 * self._rho, 0.5 / self._rho * F.square(size))
        return self._mean_of_samples(F, loss, sample_weight)


class HingeLoss(Loss):
    """The amount by which predictions fall short of a margin; labels are -1 and 1.

    Examples
    --------
    >>> from opreg import nd
    >>> HingeLoss()(nd.array([[0.5], [2]]), nd.array([[1], [-1]])).asnumpy()
    array([0.5, 3. ], dtype=float32)
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        return self._mean_of_samples(F, self._short(F, pred, label), sample_weight)

    def _short(self, F: Any, pred: Any, label: Any) -> Any:
        return F.relu(self._margin - pred * _reshape_like(F, label, pred))


class SquaredHingeLoss(HingeLoss):
    """The squared amount by which predictions fall short of a margin; labels are -1 and 1.

    Examples
    --------
    >>> from opreg import nd
    >>> SquaredHingeLoss()(nd.array([[0.5], [2]]), nd.array([[1], [-1]])).asnumpy()
    array([0.25, 9.  ], dtype=float32)
    """

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        return self._mean_of_samples(F, F.square(self._short(F, pred, label)), sample_weight)


class LogisticLoss(Loss):
    """The logistic loss of two classes.

    Parameters
    ----------
    weight, batch_axis
        See ``Loss``.
    label_format : {"signed", "binary"}
        Whether labels are -1 and 1, or 0 and 1.

    Examples
    --------
    >>> from opreg import nd
    >>> LogisticLoss()(nd.array([[0], [2]]), nd.array([[1], [-1]])).asnumpy().round(3)
    array([0.693, 2.127], dtype=float32)
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise BlockError(f"LogisticLoss: label_format can only be signed or binary, got {label_format!r}")
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        label = _reshape_like(F, label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")
        return self._mean_of_samples(F, loss, sample_weight)


class TripletLoss(Loss):
    """The amount by which a sample is not closer to its positive than to its negative example by a margin.

    Examples
    --------
    >>> from opreg import nd
    >>> TripletLoss()(nd.array([[0, 0]]), nd.array([[0, 1]]), nd.array([[1, 1]])).asnumpy()
    array([0.], dtype=float32)
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any) -> Any:
        """See ``HybridBlock``."""
        positive, negative = _reshape_like(F, positive, pred), _reshape_like(F, negative, pred)
        loss = F.sum(F.square(positive - pred) - F.square(negative - pred), axis=self._batch_axis, exclude=True)
        return _apply_weighting(F, F.relu(loss + self._margin), self._weight)


class PoissonNLLLoss(Loss):
    """The negative log-likelihood of Poisson distributions, averaged over all samples.

    Parameters
    ----------
    weight, batch_axis
        See ``Loss``.
    from_logits : bool
        Whether predictions are logarithms of rates.
    compute_full : bool
        Whether to add Stirling's approximation of the factorial term.

    Examples
    --------
    >>> from opreg import nd
    >>> PoissonNLLLoss()(nd.array([0, 1]), nd.array([1, 3])).asnumpy().round(3)
    array([0.359], dtype=float32)
    """

    def __init__(self, weight: float | None = None, from_logits: bool = True, batch_axis: int = 0,
                 compute_full: bool = False, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._compute_full = from_logits, compute_full

    def hybrid_forward(self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-8) -> Any:
        """See ``HybridBlock``."""
        target = _reshape_like(F, target, pred)
        loss = F.exp(pred) - target * pred if self._from_logits else pred - target * F.log(pred + epsilon)
        if self._compute_full:
            factorial = target * F.log(target) - target + 0.5 * F.log(2 * target * math.pi)
            loss = loss + factorial * (target > 1)
        return F.mean(_apply_weighting(F, loss, self._weight, sample_weight))


class CosineEmbeddingLoss(Loss):
    """One minus the cosine for similar pairs, labelled 1; the cosine above a margin for dissimilar ones, labelled
    -1.

    Examples
    --------
    >>> from opreg import nd
    >>> CosineEmbeddingLoss()(nd.array([[1, 0]]), nd.array([[1, 1]]), nd.array([1])).asnumpy().round(3)
    array([[0.293]], dtype=float32)
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        """See ``HybridBlock``."""
        input1, label = _reshape_like(F, input1, input2), F.reshape(label, shape=(-1, 1))
        cosine = self._cosine_similarity(F, input1, input2)
        unlike = F.relu((label == -1) * (cosine - self._margin))
        return _apply_weighting(F, (1 - cosine) * (label == 1) + unlike, self._weight, sample_weight)

    def _cosine_similarity(self, F: Any, x: Any, y: Any, axis: int = -1) -> Any:
        first, second = (F.reshape(F.norm(vector, axis=axis), shape=(-1, 1)) for vector in (x, y))
        return F.reshape(F.sum(x * y, axis=axis), shape=(-1, 1)) / F.maximum(first * second, 1e-12)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: distances of pairs in two batches against all other rows of the batch; for arrays
    only.

    Parameters
    ----------
    smoothing_parameter : float
        Probability spread over the rows that are no pairs.
    weight, batch_axis
        See ``Loss``.

    Examples
    --------
    >>> from opreg import nd
    >>> SDMLLoss()(nd.array([[0, 1], [2, 0]]), nd.array([[0, 1], [2, 1]])).asnumpy().round(3)
    array([0.607, 0.607], dtype=float32)
    """

    def __init__(self, smoothing_parameter: Amount = 0.3, weight: float = 1.0, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def _compute_distances(self, x1: Any, x2: Any) -> Any:
        """The squared distance of each row to each."""
        if x1.shape != x2.shape:
            raise BlockError(f"SDMLLoss: shapes {x1.shape} and {x2.shape} differ")
        rows, length = x1.shape
        first = x1.expand_dims(1).broadcast_to((rows, rows, length))
        return ((first - x2.expand_dims(0).broadcast_to((rows, rows, length))) ** 2).sum(axis=2)

    def _compute_labels(self, F: Any, batch_size: int) -> Any:
        """Probabilities that rows are pairs."""
        gold = F.eye(batch_size)
        return gold * (1 - self.smoothing_parameter) + (1 - gold) * self.smoothing_parameter / (batch_size - 1)

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        """See ``HybridBlock``."""
        labels, distances = self._compute_labels(F, x1.shape[0]), self._compute_distances(x1, x2)
        return self.kl_loss(F.log_softmax(-distances, axis=1), labels.as_in_context(distances.context))

"""Formulas of metrics that MXNet and MindSpore share; each framework's metric has its own checks and averages."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = ["LEAST", "f_score", "negative_log_likelihood"]

#: Added to divisors, so that a class that was never predicted gets 0.
LEAST = sys.float_info.min
#: The least probability of which a logarithm is taken.
_LEAST_PROBABILITY = 1e-10


def negative_log_likelihood(probabilities: np.ndarray, labels: np.ndarray, counted: np.ndarray) -> tuple[float, int]:
    """The sum of the negative log-probabilities of labels, and their number.

    Parameters
    ----------
    probabilities : array of samples and classes
        The logarithms are computed in its dtype, or in float32 if that is wider.
    labels : array of int
        A class for each sample.
    counted : array of bool
        Whether a sample counts.

    Examples
    --------
    >>> negative_log_likelihood(np.array([[1.0, 0.0], [0.2, 0.8]]), np.array([0, 1]), np.array([True, True]))
    (0.2231435513142097, 2)
    """
    samples = np.flatnonzero(counted)
    of_labels = probabilities[samples, labels[samples]]
    of_labels = of_labels.astype(np.result_type(of_labels, np.float32))
    return float(-np.log(np.maximum(of_labels, _LEAST_PROBABILITY)).sum()), samples.size


def f_score(both: Any, predicted: Any, positive: Any, beta: float = 1.0) -> Any:
    """The F score of precision and recall, 0 where nothing was predicted and nothing is positive.

    Parameters
    ----------
    both, predicted, positive : int or array of int
        Numbers of samples: positive ones that are predicted as positive, all that are predicted as positive, and all
        positive ones.
    beta : float
        Weight of recall relative to precision.

    Examples
    --------
    >>> f_score(2, 3, 2)
    0.8
    """
    square = beta * beta
    return (1 + square) * both / (square * positive + predicted + LEAST)

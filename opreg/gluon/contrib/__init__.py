"""What MXNet has beside Gluon's core: more layers, cells and samplers, and estimators."""

from __future__ import annotations

from . import cnn, data, estimator, nn, rnn

__all__ = ["cnn", "data", "estimator", "nn", "rnn"]

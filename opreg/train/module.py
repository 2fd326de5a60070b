"""Modules: a symbol with its weights and an optimizer, and one set of weights under several symbols."""

from __future__ import annotations

from ..aliases import inner
from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .symbol_module import Module

__all__ = ["BaseModule", "Module", "BucketingModule"]

__getattr__ = inner(__name__)

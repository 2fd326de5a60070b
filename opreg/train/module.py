"""Modules: a symbol with its weights and an optimizer, several of them, and steps in Python between them."""

from __future__ import annotations

from ..aliases import inner
from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .python_module import PythonLossModule, PythonModule
from .sequential_module import SequentialModule
from .symbol_module import Module

__all__ = ["BaseModule", "Module", "BucketingModule", "SequentialModule", "PythonModule", "PythonLossModule"]

__getattr__ = inner(__name__)

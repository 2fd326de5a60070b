"""Modules: a symbol with its weights and an optimizer; several modules in a row; and modules in Python."""

from __future__ import annotations

from ..aliases import inner
from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .python_module import PythonLossModule, PythonModule
from .sequential_module import SequentialModule
from .symbol_module import Module

__all__ = ["BaseModule", "Module", "BucketingModule", "SequentialModule", "PythonModule", "PythonLossModule"]

__getattr__ = inner(__name__)

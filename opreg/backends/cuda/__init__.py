"""Kernels in CUDA C++, compiled by the array module of a GPU."""

from __future__ import annotations

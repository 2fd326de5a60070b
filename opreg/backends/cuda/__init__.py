"""Kernels in CUDA C++, compiled where an array module of a GPU can."""

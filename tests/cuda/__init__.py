"""Kernels for GPUs, run where there is none."""

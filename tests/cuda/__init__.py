"""Kernels for GPUs on machines without one."""

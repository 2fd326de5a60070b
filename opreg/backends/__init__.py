"""Back ends: faster kernels of operators that are declared elsewhere, and the passes that only they need.

Each is a package with its kernels, which are chosen at bind, or say why they decline. Importing its ``operators``
attaches them; in ``passes``, where it has one, ``PASSES`` lists passes by the stage of compilation that they belong to.
The modules of these names here are those of all back ends. A library that a back end needs is met in its package alone,
at first use. BLAS, which NumPy brings, is a module.
"""

from __future__ import annotations

__all__ = ["BACKENDS"]

#: The packages here. A new one is its folder and a word in this line.
BACKENDS = ("numba", "onednn", "cuda")

"""The tests, as a package of their own, so that no installed package named ``tests`` is imported first.

They stand as what they test does: tests of ``opreg/cells`` are in ``tests/cells``, and one of ``opreg/cells/jit.py``
alone is ``tests/cells/test_jit.py``. Beside the folders are tests of the modules in ``opreg`` itself, and of the tree
as a whole. Four folders have no tests: ``rows`` are uses of operators, ``recorded`` and ``oracle`` answers of others,
``cuda`` is what stands in for a GPU. A helper of several tests is beside them; ``running`` serves all.
"""

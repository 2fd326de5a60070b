"""The tests, as a package of their own, so that no installed package named ``tests`` is imported first.

Their folders mirror those of the packages: tests of ``opreg/cells`` are in ``tests/cells``, and the test of
``opreg/cells/jit.py`` is ``tests/cells/test_jit.py``. Beside the folders are tests of the modules in ``opreg`` itself,
and of the tree as a whole. Four folders have no tests: ``rows`` has uses of operators, ``recorded`` and ``oracle`` have
results of other libraries, and ``cuda`` has the stand-ins for a GPU. A helper of several tests is in their folder;
``running`` has helpers of all tests.
"""

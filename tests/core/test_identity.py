"""Caches by the identity of arrays: a new array with the identity of a freed one gets its own answer."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opreg.backends.weights import Tables
from opreg.core import versions

#: Steps: the index of one of four arrays, and whether the step looks its table up; otherwise the step replaces the
#: array.
STEPS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30)


@given(STEPS)
def test_tables_are_not_reused_for_new_arrays_with_an_old_id(steps):
    tables: Tables[float] = Tables()
    arrays = [np.full(2, float(i)) for i in range(4)]
    for number, (place, asked) in enumerate(steps):
        if asked:
            table = tables.of([[arrays[place], arrays[place - 1]]], lambda pair: pair[0][0][0] * 1000 + pair[0][1][0])
            assert table == arrays[place][0] * 1000 + arrays[place - 1][0]
        else:
            arrays[place] = None  # type: ignore[call-overload]  # gone before another is made, which takes its place
            arrays[place] = np.full(2, float(number + 4))
        assert len(tables) <= 4
    arrays.clear()
    assert not len(tables)


@given(STEPS)
def test_writes_are_not_attributed_to_new_arrays_with_an_old_id(steps):
    since, before = versions.write_count(), len(versions._OWNED)
    arrays, wrote = [np.zeros(2) for _ in range(4)], [False] * 4
    for place, asked in steps:
        if asked:
            versions.wrote(arrays[place])
            wrote[place] = True
        else:
            arrays[place] = None  # type: ignore[call-overload]
            arrays[place], wrote[place] = np.zeros(2), False
        assert [versions.written(array, since) is not None for array in arrays] == wrote
    assert len(versions._OWNED) - before == sum(wrote)

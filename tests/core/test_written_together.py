"""Records of writes to memory that has no owner, by address: arrays that are written together, again and again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import opreg as mx
from opreg import nd
from opreg.core import versions, written_ranges
from tests.cuda import strict  # noqa: F401  whose device serves


def _arrays(count, length):
    """Raw arrays of a device, of which each second one lies right behind another in memory."""
    pairs = [nd.zeros(2 * length, mx.Context("strict"))._data for _ in range(count)]
    return [part for pair in pairs for part in (pair[:length], pair[length:])]


class Model:
    """The last write to each element of some arrays, by the number of the call."""

    def __init__(self, arrays):
        self.since = versions.write_count()
        self.arrays, self.wrote, self.times = arrays, [np.zeros(array.size, int) for array in arrays], [self.since]

    def write(self, indices, how):
        """Writes some arrays as a whole."""
        how([self.arrays[i] for i in indices])
        for i in indices:
            self.wrote[i][:] = len(self.times)
        self.times.append(versions.write_count())

    def write_part(self, i, part):
        """Writes a part of one array."""
        versions.wrote(self.arrays[i], part)
        self.wrote[i][part] = len(self.times)
        self.times.append(versions.write_count())

    def check(self, rng):
        """Compares the recorded writes to an array, and to a part of it, since each of the calls."""
        i = int(rng.integers(len(self.arrays)))
        part = slice(*sorted(map(int, rng.choice(self.arrays[i].size + 1, 2, False))))
        for array, wrote in ((self.arrays[i], self.wrote[i]), (self.arrays[i][part], self.wrote[i][part])):
            number = int(rng.integers(len(self.times)))
            assert (versions.written(array, self.times[number]) is not None) == (wrote.max() > number)


@pytest.mark.parametrize("stretches", [1 << 16, 12])
@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_writes_together_and_alone(seed, stretches, monkeypatch):
    monkeypatch.setattr(written_ranges, "_STRETCHES", stretches)
    rng, arrays = np.random.default_rng(seed), _arrays(6, 8)
    model = Model(arrays)
    groups = [list(range(12)), list(range(0, 12, 2)), [11, 3, 4, 5, 6]]
    targets = [versions.Targets([arrays[i] for i in group]) for group in groups]
    for _ in range(300):
        which = int(rng.integers(len(groups)))
        kind = rng.choice(["all", "targets", "alone", "part"], p=[0.4, 0.4, 0.1, 0.1])
        if kind == "all":
            model.write(groups[which], versions.wrote_all)
        elif kind == "targets":
            model.write(groups[which], lambda _, which=which: targets[which].wrote())
        elif kind == "alone":
            model.write([int(rng.integers(12))], lambda found: versions.wrote(found[0]))
        else:
            model.write_part(int(rng.integers(12)), slice(2, 5))
        if stretches > 12:
            model.check(rng)
        else:  # ranges that became one have the later write of both
            last = int(rng.integers(12))
            assert model.wrote[last].max() == 0 or versions.written(arrays[last], model.since) is not None


def test_arrays_that_are_written_again_are_located_once(monkeypatch):
    arrays, located = _arrays(8, 4), []
    address_of = versions.address_of
    monkeypatch.setattr(versions, "address_of", lambda array: located.append(array) or address_of(array))
    versions.write_count()
    for _ in range(5):
        versions.wrote_all(arrays)
    assert len(located) == len(arrays)


def test_reused_memory_is_located_again():
    ctx = mx.Context("strict")
    arrays = _arrays(4, 4)
    for _ in range(3):
        versions.write_count()
        versions.wrote_all(arrays)
    kept = len(versions._GROUPS)
    arrays[3] = nd.zeros(4, ctx)._data
    since = versions.write_count()
    versions.wrote_all(arrays)
    assert all(versions.written(array, since) is not None for array in arrays) and len(versions._GROUPS) == kept
    del arrays
    assert len(versions._GROUPS) == kept - 1


def test_an_optimizers_step_on_a_device_is_a_write_to_weights_and_states():
    ctx = mx.Context("strict")
    weights, grads = [[nd.ones(3, ctx) for _ in range(5)] for _ in range(2)]
    update = mx.optimizer.get_updater(mx.optimizer.Adam())
    for _ in range(4):
        since = versions.write_count()
        update(list(range(5)), grads, weights)
        states = itertools.chain.from_iterable(update.states.values())
        assert all(versions.written(array._data, since) for array in (*weights, *states))
        assert not any(versions.written(array._data, since) for array in grads)

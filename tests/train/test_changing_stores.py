"""Random programs that change a kvstore, its optimizer and its arrays between calls: it agrees with a store that is
made anew before each call."""

from __future__ import annotations

import copy
import os
import random
import re
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nd

SHAPES = {"a": (2, 3), "b": (4,), "c": (2,)}
#: Changes of the store ``s`` with the optimizer ``o``, which is None without one. ``K`` is a key, ``V`` a number.
CHANGES = (
    "s.set_optimizer(mx.optimizer.SGD(learning_rate=V, momentum=0.5))", "s.set_optimizer(mx.optimizer.Adam())",
    "s.set_optimizer(mx.optimizer.RMSProp(learning_rate=V))", "s._set_updater(updater)", "rate[0] = V", "o.lr = V",
    "o.wd = V", "o.rescale_grad = V", "o.momentum = V", "o.clip_gradient = V", "o.beta1 = V", "o.set_lr_mult({K: V})",
    "o.set_wd_mult({K: V})", "o.lr_scheduler = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=V)",
    "o.num_update = 5", "s._updater.states.clear()", "s._updater.states.pop(K, None)", "s._kept[K][:] = V",
    "s._updater.set_states(s._updater.get_states(True))", "s.save_optimizer_states(path)",
    "s.load_optimizer_states(path) if os.path.exists(path) else None", "s.init('c', value('c'))",
    "s.broadcast('c', value('c'), [nd.zeros(2), nd.zeros(2)])",
    "s.set_gradient_compression({'type': '2bit', 'threshold': V})",
)
CALLS = ("s.push(K, value(K))", "s.push(K, [value(K), value(K)])", "s.push(['a', 'b', 'a'], [*map(value, 'aba')])",
         "s.pushpull(K, [value(K), value(K)], [targets[K], nd.zeros(targets[K].shape)])",
         "s.pull(['a', 'b'], [targets['a'], targets['b']])")


def filled(text: str, words: dict[str, str]) -> str:
    return re.sub(r"\b[VK]\b", lambda found: words[found[0]], text)


class Side:
    """A store with two arrays. ``anew`` makes another store of its arrays, its updater and its compression."""

    def __init__(self, kind: str, path: str):
        self.kind, self.rate, self.numbers = kind, [0.5], random.Random(1)
        store: Any = mx.kv.create(kind)
        store.init(["a", "b"], [self.value("a"), self.value("b")])
        self.store = store
        self.names: dict[str, Any] = {"mx": mx, "nd": nd, "os": os, "value": self.value, "updater": self.update,
                                      "rate": self.rate, "path": path}
        self.names["targets"] = {name: nd.zeros(shape) for name, shape in SHAPES.items()}

    def value(self, key: str) -> nd.NDArray:
        return nd.array(np.array([self.numbers.uniform(-1, 1) for _ in range(int(np.prod(SHAPES[key])))]
                                 ).reshape(SHAPES[key]))

    def update(self, key: Any, gradient: nd.NDArray, weight: nd.NDArray) -> None:
        weight -= gradient * self.rate[0]

    def anew(self) -> None:
        store: Any = mx.kv.create(self.kind)
        before = self.store
        store.init(list(before._kept), list(before._kept.values()))
        own = before._updater == self.update
        store._updater = before._updater if own else copy.deepcopy(before._updater)
        store._threshold, store._residuals = before._threshold, copy.deepcopy(before._residuals)
        self.store = store

    def run(self, text: str) -> type[Exception] | None:
        updater = self.store._updater
        self.names.update(s=self.store, o=getattr(updater, "optimizer", None))
        try:
            exec(text, self.names)
        except (mx.errors.OpError, AttributeError) as error:  # a key that exists, or a store without optimizer
            return type(error)
        return None

    def found(self) -> dict[str, np.ndarray]:
        return {f"{where} {key}": array.asnumpy() for where, arrays in (("store", self.store._kept),
                ("target", self.names["targets"])) for key, array in arrays.items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["local", "device"])
@pytest.mark.parametrize("seed", range(6))
def test_a_store_agrees_with_one_made_anew_after_any_changes(kind: str, seed: int, tmp_path: Any) -> None:
    chooses, done = random.Random(f"{kind}{seed}"), list[str]()
    kept, anew = Side(kind, str(tmp_path / "kept")), Side(kind, str(tmp_path / "anew"))
    for _ in range(12):
        for texts in (CHANGES, CALLS):
            words = {"V": chooses.choice(["0.25", "0.5", "2.0"]), "K": chooses.choice(["'a'", "'b'"])}
            done.append(filled(chooses.choice(texts), words))
            anew.anew()
            assert kept.run(done[-1]) is anew.run(done[-1]), done
        first, second = kept.found(), anew.found()
        assert first.keys() == second.keys()
        for name in first:
            np.testing.assert_array_equal(first[name], second[name], err_msg=f"{name}: {done}")

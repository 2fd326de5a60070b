"""Optimizers and schedules of learning rates."""

from __future__ import annotations

import itertools
import math
import types

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, AttrError, DTypeError, OpError, ShapeError
from tests.laws import stats
from tests.questions import of_each

nd = mx.nd


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(5)


# ------------------------------------------------------------------------------------------------- optimizers

_SETTINGS = dict(wd=0.1, rescale_grad=0.5, clip_gradient=0.3, learning_rate=0.2)
# Name, settings, and three weights after five steps of Apache MXNet 1.9.1: with these settings alone, and with
# _SETTINGS too. The third number is a bias, which is not decayed. (Its in-place NAG reads the new weight for the
# momentum; None.)
OPTIMIZERS = [
    ("sgd", {}, (0.490971, -1.007089, 0.2390723), (0.3942658, -0.956109, 0.1346762)),
    ("sgd", dict(momentum=0.9), (0.4759471, -1.01321, 0.2200707), (0.2394883, -0.8620453, -0.03684901)),
    ("nag", dict(momentum=0.9), (0.4693235, -1.018978, 0.2121359), None),
    ("ccsgd", dict(momentum=0.5), (0.4876128, -1.007894, 0.2338557), (0.3504039, -0.9082425, 0.08107814)),
    ("signum", dict(momentum=0.7, wd_lh=0.1), (0.487525, -1.00499, 0.2188124), (0.2596452, -0.3120762, -0.3506519)),
    ("signum", dict(momentum=0.0), (0.49, -1.01, 0.22), (0.2596452, -1.096236, -0.35)),
    ("dcasgd", dict(lamda=0.5), (0.4909816, -1.007105, 0.2390645), (0.3945559, -0.9568756, 0.1345487)),
    ("adam", {}, (0.4985632, -1.001279, 0.2477594), (0.2130093, -1.159622, -0.2776079)),
    ("lamb", {}, (0.4983391, -1.000281, 0.2492505), (0.07351826, -0.8815712, 0.08191999)),
    ("lamb", dict(bias_correction=False, lower_bound=0.1, upper_bound=1.0), (0.4985135, -1.000252, 0.2492505),
     (0.2086593, -1.02469, 0.08191999)),
    ("adamax", {}, (0.4971537, -1.002461, 0.246224), (0.213011, -1.166991, -0.2089423)),
    ("nadam", {}, (0.4989608, -1.001099, 0.2488533), (0.2847965, -1.176847, -0.05924305)),
    ("ftml", {}, (0.4916901, -1.008839, 0.238286), (0.3281249, -1.147388, -0.04329956)),
    ("adagrad", {}, (0.4921125, -1.008399, 0.2385125), (0.2982513, -1.053861, -0.04385137)),
    ("rmsprop", {}, (0.4974469, -1.002713, 0.2462257), (-0.02930066, -1.438862, -0.7137215)),
    ("rmsprop", dict(centered=True), (0.4906843, -1.009159, 0.2370486), (-1.376108, -2.258457, -2.803899)),
    ("rmsprop", dict(clip_weights=0.6), (0.4974469, -0.5995502, 0.2462257), (-0.02930066, -0.4357913, -0.6)),
    ("adadelta", {}, (0.4905012, -1.011959, 0.2340316), (0.2865411, -0.5992822, 0.228417)),
    ("ftrl", dict(lamda1=0.1), (0.2045385, -0.3783985, 0.05409924), (0.05715447, -0.2314135, -0.01127525)),
    ("lars", dict(momentum=0.9, eta=0.5), (0.4880043, -1.006535, 0.2200707), (0.2907532, -0.8952012, -0.03684901)),
    ("lbsgd", dict(momentum=0.9), (0.4759471, -1.01321, 0.2200707), (0.2394883, -0.8620453, -0.03684901)),
    ("lbsgd", dict(batch_scale=2, warmup_epochs=1, updates_per_epoch=3, warmup_strategy="sqrt"),
     (0.4994187, -0.9981189, 0.244095), (0.4567851, -0.9067239, 0.1909501)),
    ("lbsgd", dict(warmup_strategy="lars"), (0.4913441, -1.006642, 0.2425505), (0.4089952, -0.9600329, 0.1815785)),
    ("test", {}, (1.402901, -0.2910638, 1.342772), (0.9514507, -0.6455319, 0.7963859)),
]
NAMES = {0: "a_weight", 1: "a_bias"}


def gradients(step, dtype="float32"):
    return (nd.array(np.cos([3.0 * step, 3.0 * step + 1]), dtype=dtype),
            nd.array(np.sin([2.0 * step + 1]), dtype=dtype))


def steps(updater, weights, first=0, last=5):
    for step in range(first, last):
        for index, (weight, grad) in enumerate(zip(weights, gradients(step, weights[0].dtype))):
            updater(index, grad, weight)
    return np.concatenate([weight.asnumpy() for weight in weights])


def weights(dtype="float32"):
    return [nd.array([0.5, -1.0], dtype=dtype), nd.array([0.25], dtype=dtype)]


def updater(name, **keywords):
    return mx.optimizer.get_updater(mx.optimizer.create(name, param_idx2name=NAMES, **keywords))


@pytest.mark.parametrize("name, keywords, alone, all_set", OPTIMIZERS,
                         ids=[f"{name}-{','.join(keywords)}" for name, keywords, *_ in OPTIMIZERS])
class TestOptimizers:
    def test_steps_are_those_of_mxnet(self, name, keywords, alone, all_set):
        assert np.allclose(steps(updater(name, **keywords), weights()), alone, rtol=1e-5, atol=1e-6)
        if all_set is not None:
            found = steps(updater(name, **{**keywords, **_SETTINGS}), weights())
            assert np.allclose(found, all_set, rtol=1e-5, atol=1e-6)

    def test_float16_weights_are_updated_in_float32(self, name, keywords, alone, all_set):
        held = weights("float16")
        found = steps(updater(name, multi_precision=True, **keywords), held)
        assert held[0].dtype == np.float16
        assert np.allclose(found, alone, rtol=1e-2, atol=2e-3)

    def test_saved_states_are_restored(self, name, keywords, alone, all_set):
        straight = updater(name, **keywords)
        expected = steps(straight, weights(), 0, 5)
        first, second = updater(name, **keywords), updater(name, **keywords)
        held = weights()
        steps(first, held, 0, 3)
        second.set_states(first.get_states(dump_optimizer=name == "nadam"))  # nadam's schedule is a setting
        assert np.array_equal(steps(second, held, 3, 5), expected) or name == "lars"  # lars compares its last rates
        assert second.optimizer.num_update == straight.optimizer.num_update

    def test_an_update_of_a_list_equals_updates_of_single_weights(self, name, keywords, alone, all_set):
        one, several = mx.optimizer.create(name, **keywords), mx.optimizer.create(name, **keywords)
        for method in ("update", "update_multi_precision"):
            left, right = weights(), weights()
            states = [[each.create_state_multi_precision(i, w) for i, w in enumerate(held)]
                      for each, held in ((one, left), (several, right))]
            for step in range(3):
                for i, grad in enumerate(gradients(step)):
                    getattr(one, method)(i, left[i], grad, states[0][i])
                getattr(several, method)((0, 1), right, list(gradients(step)), states[1])
            assert all(np.array_equal(a.asnumpy(), b.asnumpy()) for a, b in zip(left, right))

    @pytest.mark.parametrize("fault", [
        lambda w, g, s: (w, nd.ones((3,)), s),
        lambda w, g, s: (w, g.asnumpy(), s),
        lambda w, g, s: (nd.ones((2,), dtype="int32"), g, s),
        lambda w, g, s: (w, g, (nd.ones((5,)),) * len(s) if isinstance(s, tuple) else nd.ones((5,))),
        lambda w, g, s: (w, g, "nonsense"),
    ], ids=["gradient", "array of NumPy", "integers", "state", "kind of state"])
    def test_a_refused_update_does_not_count(self, fault, name, keywords, alone, all_set):
        def attempt(way):
            optimizer, weight, grad = mx.optimizer.create(name, **keywords), weights()[0], gradients(0)[0]
            good = weight, grad, optimizer.create_state(0, weight)
            wrong = fault(*good)
            with pytest.raises((OpError, TypeError, ValueError, AttributeError)):
                way(optimizer, good, wrong)
            return optimizer

        for way in ("update", "update_multi_precision"):
            optimizer = attempt(lambda optimizer, good, wrong: getattr(optimizer, way)(0, *wrong))
            assert optimizer._index_update_count == {} and optimizer.num_update == 0
        optimizer = attempt(lambda optimizer, good, wrong: optimizer.update_all([(1, *good), (0, *wrong)]))
        assert 0 not in optimizer._index_update_count

    def test_weights_are_written_in_place(self, name, keywords, alone, all_set):
        held = weights()
        memory = [weight._data for weight in held]
        steps(updater(name, **keywords), held)
        assert all(weight._data is before for weight, before in zip(held, memory))


def test_every_optimizer_has_a_row():
    rows = {name for name, *_ in OPTIMIZERS} | {"adamw", "sgld", "groupadagrad"}  # tested below
    built_in = {name for name, cls in mx.optimizer.Optimizer.opt_registry.items()
                if cls.__module__ == mx.optimizer.__name__}
    assert built_in == rows


def test_adamw_decays_apart_from_the_gradient():
    optimizer = mx.optimizer.create("adamw", learning_rate=0.1, wd=0.5)
    weight = nd.array([2.0])
    mx.optimizer.get_updater(optimizer)(0, nd.array([0.0]), weight)
    assert weight.asscalar() == pytest.approx(2.0 * (1 - 0.1 * 0.5))
    mean, var, w = 0.0, 0.0, 1.0
    optimizer = mx.optimizer.create("adamw", learning_rate=0.1, wd=0.5, epsilon=1e-3)
    weight, move = nd.array([w]), mx.optimizer.get_updater(optimizer)
    for t, g in enumerate((1.0, -2.0, 0.5), 1):
        move(0, nd.array([g]), weight)
        mean, var = 0.9 * mean + 0.1 * g, 0.999 * var + 0.001 * g * g
        w -= 0.1 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) * mean / (math.sqrt(var) + 1e-3) + 0.1 * 0.5 * w
    assert weight.asscalar() == pytest.approx(w, rel=1e-5)



# ------------------------------------------------------------------- functions of contrib that move weights

W, G = [[1, -2, 3], [2, 2]], [[0.5, 0.25, -4], [1, -1]]
M, V = [[0.1, -0.2, 0.3], [0, 0.5]], [[0.01, 0.02, 0.03], [1, 0.5]]
LISTS = {"lrs": [0.1, 0.2], "wds": [0.01, 0]}

#: A function, its number of weights, whether there are float32 copies, its arguments, and MXNet 1.9.1's results: the
#: weights, then means, variances and copies.
MOVED = [
    ("adamw_update", 1, False, dict(rescale_grad=1, lr=0.1, eta=0.5, wd=0.01),
     [[0.9258251786, -1.9352573156, 3.0153164864], [0.14, -0.155, -0.13], [0.01024, 0.0200425, 0.0459697917]]),
    ("adamw_update", 1, False, dict(rescale_grad=nd.array([2.0]), lr=0.1, eta=0.5, wd=0.01, clip_gradient=0.2),
     [[0.9400823116, -1.9334597588, 2.9128432274], [0.11, -0.16, 0.25], [0.01003, 0.02002, 0.03001]]),
    *(("adamw_update", 1, False, dict(rescale_grad=scale, lr=0.1, eta=0.5, wd=0.01), [W[0], M[0], V[0]])
      for scale in (0, math.nan, math.inf)),
    ("mp_adamw_update", 1, True, dict(rescale_grad=0.5, lr=0.1, eta=0.5, beta1=0.8, wd=0.01),
     [[0.9301757812, -1.9423828125, 3.0292968750], [0.13, -0.135, -0.16], [0.0100525, 0.0199956, 0.0339699],
      [0.9301699400, -1.9422650337, 3.0284051895]]),
    ("multi_adamw_update", 2, False, dict(rescale_grad=0.5, etas=[0.5, 1], **LISTS),
     [[0.9376503229, -1.9307733774, 2.9660100937], [1.9899961948, 1.8868346214], [0.115, -0.1675, 0.07], [0.05, 0.4],
      [0.0100525, 0.0199956, 0.0339699], [0.99925, 0.49975]]),
    ("multi_mp_adamw_update", 2, True, dict(rescale_grad=nd.array([0.5]), etas=[0.5, 1], beta2=0.9, **LISTS),
     [[0.9482421875, -1.9296875, 2.98046875], [1.9892578125, 1.8837890625], [0.115, -0.1675, 0.07], [0.05, 0.4],
      [0.01525, 0.0195625, 0.427], [0.925, 0.475], [0.9484378695, -1.9301213026, 2.9796438217],
      [1.9896024466, 1.8839237690]]),
    ("multi_lamb_update", 2, False, dict(step_count=[1, 2], **LISTS),
     [[0.7211415768, -1.7717891932, 3.1007862091], [1.8879237175, 1.4455282688], [0.14, -0.155, -0.13], [0.1, 0.35],
      [0.01024, 0.0200425, 0.0459697917], [1.0, 0.5005]]),
    ("multi_mp_lamb_update", 2, True, dict(step_count=[1, 2], rescale_grad=0.5, **LISTS),
     [[0.7524414062, -1.7382812500, 2.9003906250], [1.9501953125, 1.4365234375], [0.115, -0.1675, 0.07], [0.05, 0.4],
      [0.0100525, 0.0199956, 0.0339699], [0.99925, 0.49975], [0.7523654699, -1.7378338575, 2.9002699852],
      [1.9501879215, 1.4365119934]]),
]


@of_each(MOVED)
def test_update_functions_move_weights_as_in_mxnet(name, count, copies, arguments, expected):
    def several(values, dtype="float32"):
        return [nd.array(value, dtype=dtype) for value in values[:count]]

    half = "float16" if copies else "float32"
    weights, states = several(W, half), [several(M), several(V), *([several(W)] if copies else [])]
    given = [weights, several(G, half), *states]
    if count == 1:
        given = [values[0] for values in given]
    getattr(nd.contrib, name)(*given, out=given[0], **arguments)
    found = [array for values in (weights, *states) for array in values]
    assert len(found) == len(expected)
    for array, numbers in zip(found, expected):
        np.testing.assert_allclose(array.asnumpy(), np.array(numbers, array.dtype), rtol=1e-5)


def test_a_graph_moves_a_weight():
    names = ["w", "g", "m", "v"]
    for scale, more in ((0.5, {}), (mx.sym.var("s"), {"s": nd.array([0.5])})):
        net = mx.sym.contrib.adamw_update(*map(mx.sym.var, names), scale, lr=0.1, eta=0.5, wd=0.01, name="u")
        assert net.name == "u"
        values = {name: nd.array(value[0]) for name, value in zip(names, (W, G, M, V))}
        bound = net.bind(mx.cpu(), {**values, **more})
        np.testing.assert_allclose(bound.forward()[0].asnumpy(), MOVED[6][-1][0], rtol=1e-5)

def test_group_adagrad_has_one_step_size_for_each_row():
    weight, history = nd.array([[1, 2], [3, 4]]), np.zeros((2, 1))
    move = mx.optimizer.get_updater(mx.optimizer.create("groupadagrad", learning_rate=0.1))
    expected = weight.asnumpy()
    for g in (np.array([[1.0, 2], [0.5, 0]]), np.array([[0.0, 1], [1, 1]])):
        move(0, nd.array(g), weight)
        history += (g**2).mean(axis=1, keepdims=True)
        expected = expected - 0.1 * g / np.sqrt(history + 1e-5)
    assert np.allclose(weight.asnumpy(), expected, rtol=1e-5)
    with pytest.raises(ArgumentError, match="wd=0"):
        mx.optimizer.get_updater(mx.optimizer.create("groupadagrad", wd=1.0))(0, nd.ones((1, 1)), nd.ones((1, 1)))


def test_sgld_adds_noise_of_its_rate():
    weight = nd.zeros(5000)
    mx.optimizer.get_updater(mx.optimizer.create("sgld", learning_rate=0.04))(0, nd.ones(5000), weight)
    assert stats().kstest(weight.asnumpy(), stats().norm(-0.02, 0.2).cdf).pvalue > 1e-4


def test_factors_by_symbol_by_name_and_by_parameter():
    net = mx.sym.FullyConnected(mx.sym.var("data"), mx.sym.var("w_weight", lr_mult=2, wd_mult=3),
                                mx.sym.var("b_bias"), num_hidden=1)
    optimizer = mx.optimizer.create("sgd", learning_rate=0.1, wd=0.01, sym=net,
                                    param_idx2name={0: "w_weight", 1: "b_bias", 2: "g_gamma"})
    assert optimizer._get_lr(0) == pytest.approx(0.2) and optimizer._get_wd(0) == pytest.approx(0.03)
    assert optimizer._get_wd(1) == 0 and optimizer._get_wd(2) == 0.01
    assert mx.optimizer.create("lars", wd=0.01, param_idx2name={2: "g_gamma"})._get_wd(2) == 0
    optimizer.set_lr_mult({"b_bias": 5, 7: 3})
    optimizer.set_wd_mult({"b_bias": 1})
    assert optimizer._get_lr(1) == pytest.approx(0.5) and optimizer._get_lr(7) == pytest.approx(0.3)
    assert optimizer._get_wd(1) == pytest.approx(0.01)

    class Own:
        lr_mult, wd_mult = 4.0, 0.5

    optimizer.param_dict = {0: Own()}
    assert optimizer._get_lr(0) == pytest.approx(0.4) and optimizer._get_wd(0) == pytest.approx(0.005)


@of_each([
    ("sgd", None), ("nag", None), ("adam", 0.001), ("adagrad", None), ("rmsprop", 0.001), ("adadelta", None),
    ("ftrl", None), ("adamax", 0.002), ("nadam", 0.001), ("signum", 0.01), ("ftml", None), ("lamb", 0.001),
    ("lars", None), ("dcasgd", None), ("sgld", None), ("lbsgd", None)])
def test_a_schedule_begins_with_its_own_rate_or_that_of_the_optimizer(name, default):
    for given in ({}, {"learning_rate": 0.3}):
        schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=0.7)
        optimizer = mx.optimizer.create(name, lr_scheduler=schedule, **given)
        expected = default or 0.7
        if given and name != "ftrl":  # Ftrl leaves its schedule alone, in MXNet, too
            expected = 0.3
        assert optimizer.learning_rate == expected


def test_a_scheduler_gives_the_rate():
    schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.1)
    optimizer = mx.optimizer.create("sgd", learning_rate=1.0, lr_scheduler=schedule)
    assert schedule.base_lr == 1.0
    weight, move = nd.array([0.0]), mx.optimizer.get_updater(optimizer)
    values = []
    for _ in range(4):
        move(0, nd.array([-1.0]), weight)
        values.append(weight.asscalar())
    assert np.allclose(values, [1, 2, 2.1, 2.2])
    assert optimizer.num_update == 4 and optimizer.learning_rate == pytest.approx(0.1)
    with pytest.raises(UserWarning):
        optimizer.set_learning_rate(3)
    plain = mx.optimizer.create("sgd")
    plain.set_learning_rate(3)
    assert plain.learning_rate == 3


class _Rates:
    def _get_lrs(self, indices):
        return [rate * (index + 2) for rate, index in zip(super()._get_lrs(indices), indices)]


class _Rate:
    def _get_lr(self, index):
        return super()._get_lr(index) * (index + 2)


class _Decays:
    def _get_wds(self, indices):
        return [0.25 * index for index in indices]


RATES = {"rates": (_Rates,), "rate": (_Rate,), "rate above rates": (_Rate, _Rates), "rates above rate": (_Rates, _Rate),
         "rates and decays": (_Rates, _Decays)}


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("base", ["sgd", "adagrad", "lbsgd", "sgld", "adamax", "dcasgd"])
@pytest.mark.parametrize("name", RATES)
def test_methods_that_give_rates_of_one_weight_or_of_several_are_called(name, base, together):
    """MXNet's programs override one of the methods; the other one calls it."""
    kind = mx.optimizer.Optimizer.opt_registry.find(base)
    for part in reversed(RATES[name]):
        kind = type("Rated", (part, kind), {})
    factors = [(index + 2) ** sum(part is not _Decays for part in RATES[name]) for index in (0, 1)]
    decays = {0: 0.0, 1: 0.25} if _Decays in RATES[name] else {0: 0.0, 1: 0.0}
    rated = kind(learning_rate=0.125, begin_num_update=1)
    assert rated._get_lrs([0, 1]) == [rated._get_lr(i) for i in (0, 1)] == [0.125 * factor for factor in factors]
    assert rated._get_wds([0, 1]) == [rated._get_wd(i) for i in (0, 1)] == [decays[i] for i in (0, 1)]

    mx.random.seed(1)
    expected = []
    for i, (weight, gradient) in enumerate(zip(weights(), gradients(0))):
        plain = mx.optimizer.create(base, learning_rate=0.125 * factors[i], wd=decays[i])
        mx.optimizer.get_updater(plain)(i, gradient, weight)
        expected.append(weight.asnumpy())
    mx.random.seed(1)
    found, move = weights(), mx.optimizer.get_updater(kind(learning_rate=0.125))
    for each in [[0, 1]] if together else [[0], [1]]:
        move(each, [gradients(0)[i] for i in each], [found[i] for i in each])
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-6)


@pytest.mark.parametrize("base", [mx.optimizer.SGD, mx.optimizer.AdaGrad])
@pytest.mark.parametrize("on", ["class", "optimizer"])
@pytest.mark.parametrize("method", ["_get_lr", "_get_lrs", "_get_wd", "_get_wds"])
def test_methods_that_are_put_on_a_class_later_are_called(method, on, base):
    kind = type("Later", (base,), {})
    rated, one = kind(learning_rate=0.125, wd=0.25), method.rstrip("s")
    before = getattr(rated, one)(1)

    def doubled(self, given):
        plain = getattr(mx.optimizer.Optimizer, method)(self, given)
        return [2 * each for each in plain] if method.endswith("s") else 2 * plain

    owner, put = (kind, doubled) if on == "class" else (rated, types.MethodType(doubled, rated))
    setattr(owner, method, put)
    assert getattr(rated, one)(1) == 2 * before
    assert getattr(rated, one + "s")([1]) == [2 * before]
    delattr(owner, method)
    assert getattr(rated, one)(1) == before
    assert getattr(rated, one + "s")([1]) == [before]


@pytest.mark.parametrize("base", [mx.optimizer.SGD, mx.optimizer.AdaGrad])
@pytest.mark.parametrize("later, own", [("_get_lrs", _Rate), ("_get_lr", _Rates)])
def test_a_method_that_a_base_class_gets_later_is_called_by_super(later, own, base):
    middle = type("Middle", (base,), {})
    rated = type("Rated", (own, middle), {})(learning_rate=0.125, begin_num_update=1)

    def doubled(self, given):
        plain = getattr(super(middle, self), later)(given)
        return [2 * each for each in plain] if later == "_get_lrs" else 2 * plain

    setattr(middle, later, doubled)
    assert [rated._get_lr(i) for i in (0, 1)] == rated._get_lrs([0, 1]) == [0.5, 0.75]
    delattr(middle, later)
    assert rated._get_lrs([0, 1]) == [0.25, 0.375]


@pytest.mark.parametrize("indices, places", [
    ([0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]), ([0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 3, 4]),
    ([0, 0, 1, 2, 3, 4], [0, 0, 1, 2, 3, 4])])
def test_a_list_with_a_weight_or_an_index_twice_moves_it_twice(indices, places):
    found = []
    for as_list in (False, True):
        some, gradients = [[nd.array([start + i, 2.0]) for i in range(6)] for start in (1.0, -2.0)]
        move, held = updater("sgd", momentum=0.5, learning_rate=0.5), [some[place] for place in places]
        if as_list:
            move(indices, gradients, held)
        else:
            for update in zip(indices, gradients, held):
                move(*update)
        found.append([weight.asnumpy().tolist() for weight in some])
    assert found[0] == found[1]


def test_an_updater_takes_lists():
    one, two = weights(), weights()
    steps(updater("adam"), one)
    move = updater("adam")
    for step in range(5):
        move([0, 1], list(gradients(step)), two)
    assert all(np.array_equal(a.asnumpy(), b.asnumpy()) for a, b in zip(one, two))


def test_users_register_optimizers():
    @mx.optimizer.register
    class Plain(mx.optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            weight -= grad * self._get_lr(index)

    assert steps(updater("PLAIN"), weights()) == pytest.approx(OPTIMIZERS[0][2], rel=1e-5)
    with pytest.warns(UserWarning, match="replaces"):
        @mx.optimizer.register
        class Plain(mx.optimizer.Optimizer):
            pass


@pytest.mark.parametrize("module, base", [(mx.init, mx.init.Initializer), (mx.metric, mx.metric.EvalMetric),
                                          (mx.optimizer, mx.optimizer.Optimizer)])
def test_a_second_registration_warns_and_a_missing_name_names_the_nearest(module, base):
    module.register(type("Registered", (base,), {}))
    with pytest.warns(UserWarning, match=r"'registered': .*Registered replaces "):
        module.register(type("Registered", (base,), {}))
    with pytest.raises(mx.MXNetError, match=r"'registred'.*'registered'"):
        module.create("registred")


def test_float16_without_a_copy_warns():
    with pytest.warns(UserWarning, match="multi_precision"):
        mx.optimizer.create("sgd").create_state_multi_precision(0, nd.ones(2, dtype="float16"))


def test_a_misspelt_keyword_of_an_optimizer_names_the_nearest():
    with pytest.raises(ArgumentError, match=r"Adam\(\) takes no keyword 'learning_rat'. Did you mean 'learning_rate'"):
        mx.optimizer.create("adam", learning_rat=0.1)


@pytest.mark.parametrize("call, kind, words", [
    (lambda: mx.optimizer.create("adm"), AttrError, "Did you mean 'adam'"),
    (lambda: mx.optimizer.create("sgd", param_idx2name=["a"]), ArgumentError, "dict"),
    (lambda: updater("sgd")(0, nd.ones(2), nd.ones(3)), ShapeError,
     r"weight 'a_weight' of shape \(3,\) got a gradient of shape \(2,\)"),
    (lambda: updater("sgd")(7, np.ones(2), nd.ones(2)), ArgumentError, "weight 7: expected arrays, got ndarray"),
    (lambda: updater("sgd")([0, 1], [nd.ones(2)], [nd.ones(2)] * 2), ArgumentError,
     "expected lists of equal lengths, got 2, 1, 2"),
    (lambda: updater("sgd")(0, nd.ones(2), nd.ones(2, dtype="int32")), DTypeError, "of dtype int32 got a gradient"),
    (lambda: mx.optimizer.create("lbsgd", warmup_strategy="liner"), AttrError, "Did you mean 'linear'"),
    (lambda: mx.optimizer.Optimizer().update(0, nd.ones(1), nd.ones(1), None), NotImplementedError, "define update"),
])
def test_wrong_optimizers_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


# -------------------------------------------------------------------------------------------------- schedules


def test_factor_schedule_stops():
    schedule = mx.lr_scheduler.FactorScheduler(step=1, factor=0.1, stop_factor_lr=1e-3, base_lr=1.0)
    assert [round(schedule(n), 9) for n in range(1, 7)] == [1, 0.1, 0.01, 0.001, 0.001, 0.001]


def test_factor_schedule_that_changes_no_more_ends_for_any_number_of_updates():
    for factor, rate in ((0.1, 1e-3), (1, 1.0)):
        schedule = mx.lr_scheduler.FactorScheduler(step=7, factor=factor, stop_factor_lr=1e-3, base_lr=1.0)
        many, count = 10**30, (10**30 - 1) // 7 * 7
        assert (schedule(many), schedule.count) == (rate, count) and count < many <= count + 7


@pytest.mark.parametrize("make", [
    lambda **more: mx.lr_scheduler.FactorScheduler(step=4, factor=0.5, base_lr=2.0, **more),
    lambda **more: mx.lr_scheduler.MultiFactorScheduler(step=[4, 9], factor=0.5, base_lr=2.0, **more),
    lambda **more: mx.lr_scheduler.PolyScheduler(max_update=15, base_lr=2.0, **more),
    lambda **more: mx.lr_scheduler.CosineScheduler(max_update=15, base_lr=2.0, **more),
], ids=["factor", "multifactor", "poly", "cosine"])
def test_warmup_comes_first_and_rates_fall(make):
    linear = make(warmup_steps=4, warmup_begin_lr=0.4)
    rates = [linear(n) for n in range(20)]
    assert np.allclose(rates[:5], [0.4, 0.8, 1.2, 1.6, 2.0])
    assert all(later <= earlier for earlier, later in itertools.pairwise(rates[4:]))
    constant = make(warmup_steps=4, warmup_begin_lr=0.4, warmup_mode="constant")
    assert [constant(n) for n in range(4)] == [0.4] * 4


def test_poly_and_cosine_end_at_their_last_rate():
    for schedule in (mx.lr_scheduler.PolyScheduler(10, 1.0, pwr=3, final_lr=0.1),
                     mx.lr_scheduler.CosineScheduler(10, 1.0, final_lr=0.1)):
        assert schedule(0) == 1.0 and schedule(10) == pytest.approx(0.1) and schedule(99) == pytest.approx(0.1)
    assert mx.lr_scheduler.PolyScheduler(10, 1.0, pwr=3)(5) == pytest.approx(0.125)
    assert mx.lr_scheduler.CosineScheduler(12, 1.0)(4) == pytest.approx(0.75)


@pytest.mark.parametrize("call, words", [
    (lambda: mx.lr_scheduler.FactorScheduler(step=0), "step=0"),
    (lambda: mx.lr_scheduler.FactorScheduler(step=1, factor=2), "factor=2"),
    (lambda: mx.lr_scheduler.MultiFactorScheduler(step=3), "expected a tuple of ints"),
    (lambda: mx.lr_scheduler.MultiFactorScheduler(step=[3, 3]), "rising"),
    (lambda: mx.lr_scheduler.PolyScheduler(max_update=0), "max_update"),
    (lambda: mx.lr_scheduler.LRScheduler(warmup_mode="quick"), "'quick'. Valid: linear, constant"),
    (lambda: mx.lr_scheduler.LRScheduler(0.1, warmup_steps=1, warmup_begin_lr=0.2), "above base_lr"),
    (lambda: mx.lr_scheduler.LRScheduler(warmup_steps=-1), "warmup_steps"),
])
def test_wrong_schedules_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


# ----------------------------------------------------------------------------------------------- large weights


def test_sgd_without_momentum_leaves_a_momentum_that_it_is_given():
    optimizer, (weight, momentum) = mx.optimizer.create("sgd", learning_rate=0.5), nd.ones((2, 2))
    optimizer.update(0, weight, nd.ones((2,)), momentum)
    assert (weight.asnumpy() == 0.5).all() and (momentum.asnumpy() == 1).all()



@pytest.mark.parametrize("name, states, attrs", [
    ("sgd_update", 0, dict(wd=0.1, clip_gradient=0.5)),
    ("nag_mom_update", 1, dict(wd=0.1, momentum=0.9)),
    ("adam_update", 2, dict(wd=0.1)),
    ("mp_sgd_mom_update", 2, dict(wd=0.1, momentum=0.9)),
    ("ftrl_update", 2, {}),
])
def test_updates_in_tiles_equal_updates_of_whole_arrays(name, states, attrs):
    rng = np.random.default_rng(0)
    size = 70_001  # two tiles and a part
    arrays = [np.abs(rng.normal(size=size)).astype("f") for _ in range(2 + states)]
    tiled = [nd.array(each) for each in arrays]
    getattr(nd, name)(*tiled, lr=0.1, out=tiled[0], **attrs)
    small = [np.concatenate(parts) for parts in zip(*(
        [each.asnumpy() for each in _updated(name, [each[first:first + 1000] for each in arrays], attrs)]
        for first in range(0, size, 1000)))]
    for one, other in zip(tiled, small):
        assert np.array_equal(one.asnumpy(), other)


def _updated(name, arrays, attrs):
    held = [nd.array(each) for each in arrays]
    getattr(nd, name)(*held, lr=0.1, out=held[0], **attrs)
    return held

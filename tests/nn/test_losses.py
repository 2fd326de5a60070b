"""Losses: values of MindSpore, eagerly and compiled, with their gradients, and errors."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opreg.cells.grad import grad, value_and_grad
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor
from opreg.nn import losses, ops
from tests.questions import of_each

CASES = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_losses.json").read_text())["cases"]
NAMES = [f"{number}-{case['loss']}" for number, case in enumerate(CASES)]


def array(record: dict[str, Any]) -> np.ndarray:
    return np.array(record["data"], record["dtype"]).reshape(record["shape"])


def built(case: dict[str, Any]) -> tuple[Any, list[Tensor]]:
    options = {name: Tensor(np.array(value["tensor"], np.float32)) if isinstance(value, dict) else value
               for name, value in case["options"].items()}
    return getattr(losses, case["loss"])(**options), [Tensor(array(value)) for value in case["inputs"]]


@of_each(CASES, by=lambda case: case["loss"])
def test_values_of_losses_equal_mindspores(case):
    loss, inputs = built(case)
    expected = array(case["value"])
    for call in (loss, loss.compile(*inputs), jit(lambda *xs: loss(*xs))):
        found = call(*inputs).asnumpy()
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-5 if case["loss"] == "FocalLoss" else 2e-6, atol=1e-6)


@of_each([case for case in CASES if "gradients" in case], by=lambda case: case["loss"])
def test_gradients_of_losses_equal_the_recorded_ones(case):
    loss, inputs = built(case)
    positions = tuple(map(int, case["gradients"]))
    of = grad(lambda *xs: loss(*xs), positions)
    for call in (of, jit(of)):
        found = call(*inputs)
        for g, expected in zip(found if isinstance(found, tuple) else (found,), case["gradients"].values()):
            np.testing.assert_allclose(g.asnumpy(), array(expected), rtol=1e-5, atol=1e-6)


def test_every_loss_has_a_case():
    assert {case["loss"] for case in CASES} == set(losses.__all__) - {"LossBase"}


@pytest.mark.parametrize("name", ["MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCEWithLogitsLoss",
                                  "CrossEntropyLoss"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_loss_has_the_dtype_of_its_inputs(name, dtype):
    x, y = (np.linspace(0.1, 0.9, 6).reshape(2, 3)[::step].astype(dtype) for step in (1, -1))
    loss = getattr(losses, name)(reduction="mean")
    found = loss(Tensor(x), Tensor(y))
    assert found.asnumpy().dtype == dtype
    wide = loss(Tensor(x.astype(np.float32)), Tensor(y.astype(np.float32)))
    np.testing.assert_allclose(found.asnumpy(), wide.asnumpy(), rtol=4e-3 if dtype == "float16" else 1e-6)


def test_losses_of_extreme_inputs_are_finite():
    zero_one = Tensor(np.array([0.0, 1.0], np.float32))
    one_zero = Tensor(np.array([1.0, 0.0], np.float32))
    assert np.isfinite(losses.BCELoss()(zero_one, one_zero).asnumpy())
    assert losses.BCELoss()(zero_one, zero_one).asnumpy() == 0
    assert losses.KLDivLoss("sum")(Tensor(np.zeros(2, np.float32)), zero_one).asnumpy() == 0
    far = Tensor(np.array([-200.0, 200.0], np.float32))
    assert losses.BCEWithLogitsLoss("sum")(far, one_zero).asnumpy() == 400
    assert losses.SoftMarginLoss("sum")(far, Tensor(np.array([1.0, -1.0], np.float32))).asnumpy() == 400


@pytest.mark.parametrize("loss, function, inputs, expected", [
    (losses.L1Loss(), ops.l1_loss, ([1, 2], [0, 6]), np.float32(2.5)),
    (losses.MSELoss(), ops.mse_loss, ([1, 2], [0, 6]), np.float32(8.5)),
    (losses.BCELoss(), ops.binary_cross_entropy, ([0.0, 1.0], [1.0, 0.0]), np.float32(27.631021)),
    (losses.KLDivLoss("none"), functools.partial(ops.kl_div, reduction="none"), ([0.0, 1.0], [-1.0, 0.0]),
     np.zeros(2, np.float32)),
], ids=["l1", "mse", "bce", "kl"])
def test_a_loss_class_agrees_with_its_function_on_edge_cases(loss, function, inputs, expected):
    """Class and function agree; integers give the losses of floats, and the logarithm of zero is that of 1e-12."""
    given = [Tensor(np.array(each, np.float32 if isinstance(each[0], float) else np.int32)) for each in inputs]
    for call in (loss, function):
        found = call(*given).asnumpy()
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_weights_of_get_loss():
    x = Tensor(np.array([1.0, 3.0], np.float32))
    loss = losses.LossBase()
    assert loss.get_loss(x).asnumpy() == 2
    assert loss.get_loss(x, 2.0).asnumpy() == 4
    assert loss.get_loss(x, Tensor(np.array([1.0, 0.0], np.float32))).asnumpy() == 0.5
    assert loss.get_axis(x) == (0,)


def t(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.ones(shape, dtype))


REFUSED = [
    (lambda: losses.MSELoss("avg"), ValueError, "reduction must be one of mean, sum, none, got 'avg'"),
    (lambda: losses.MSELoss("batchmean"), ValueError, "reduction"),
    (lambda: losses.LossBase()(t(2), t(2)), NotImplementedError, "construct"),
    (lambda: losses.MSELoss()(t(2), 1.0), TypeError, "labels must be a Tensor, got float"),
    (lambda: losses.SmoothL1Loss(beta=-1.0), ValueError, "beta"),
    (lambda: losses.SmoothL1Loss()(t(2), t(3)), ValueError, "one shape"),
    (lambda: losses.HuberLoss(delta="1"), TypeError, "delta"),
    (lambda: losses.SoftmaxCrossEntropyWithLogits(sparse=1), TypeError, "sparse"),
    (lambda: losses.SoftmaxCrossEntropyWithLogits()(t(2, 3), t(2)), ValueError, "one shape"),
    (lambda: losses.SoftmaxCrossEntropyWithLogits(True)(t(2, 3), t(3, dtype=np.int32)), ValueError, r"shape \(2,\)"),
    (lambda: losses.CrossEntropyLoss(weight=[1.0]), TypeError, r"weight=\[1.0\]: expected a tensor or None"),
    (lambda: losses.CrossEntropyLoss(label_smoothing=1.5), ValueError, "expected a number from 0 to 1"),
    (lambda: losses.NLLLoss()(t(2, 3), t(3, dtype=np.int32)), ValueError, r"shape \(2,\)"),
    (lambda: losses.CosineEmbeddingLoss(margin=2.0), ValueError, "margin"),
    (lambda: losses.FocalLoss()(t(2, 3), t(2, dtype=np.int32)), ValueError, "labels"),
    (lambda: losses.MultiMarginLoss(p=3), ValueError, "p must be 1 or 2"),
    (lambda: losses.TripletMarginLoss(margin=0.0), ValueError, "margin"),
    (lambda: losses.MultiClassDiceLoss(t(2)), ValueError, r"shape \(classes, n\), got \(2,\)"),
    (lambda: losses.MultiClassDiceLoss(activation="sigmod"), ValueError, "Did you mean 'sigmoid'"),
    (lambda: losses.MultiClassDiceLoss(activation=1), TypeError, "activation=1: expected text or a Cell or None"),
    (lambda: losses.MultiClassDiceLoss(ignore_indiex=0.5), TypeError, "ignore_indiex=0.5: expected an int or None"),
    (lambda: losses.MultiClassDiceLoss(t(2, 1))(t(2, 3), t(2, 3)), ValueError, "2 rows for 3 classes"),
    (lambda: losses.MultiClassDiceLoss()(t(2), t(2)), ValueError, "classes along axis 1"),
    (lambda: losses.MultiClassDiceLoss()(t(2, 3), t(3, 2)), ValueError, "one shape"),
]


@pytest.mark.parametrize("row", REFUSED, ids=range(len(REFUSED)))
def test_wrong_arguments_are_refused(row):
    make, kind, text = row
    with pytest.raises(kind, match=text):
        make()


# --------------------------------------------------------------------------------------------- classes and functions

#: The functions of ``ops`` that losses compute, of the loss, for its settings, and of inputs.
FUNCTIONS = {
    **{name: lambda loss, x, y, function=function: function(x, y, reduction=loss.reduction) for name, function in {
        "L1Loss": ops.l1_loss, "MAELoss": ops.l1_loss, "MSELoss": ops.mse_loss, "KLDivLoss": ops.kl_div,
        "SoftMarginLoss": ops.soft_margin_loss}.items()},
    "SmoothL1Loss": lambda loss, x, y: ops.smooth_l1_loss(x, y, loss.beta, loss.reduction),
    "HuberLoss": lambda loss, x, y: ops.huber_loss(x, y, loss.reduction, loss.delta),
    "RMSELoss": lambda loss, x, y: ops.sqrt(ops.mse_loss(x, y)),
    "BCELoss": lambda loss, x, y: ops.binary_cross_entropy(x, y, loss.weight, loss.reduction),
    "BCEWithLogitsLoss": lambda loss, x, y: ops.binary_cross_entropy_with_logits(
        x, y, loss.weight, loss.pos_weight, loss.reduction),
    "CrossEntropyLoss": lambda loss, x, y: ops.cross_entropy(
        x, y, loss.weight, loss.ignore_index, loss.reduction, loss.label_smoothing),
    "NLLLoss": lambda loss, x, y: ops.nll_loss(x, y, loss.weight, loss.ignore_index, loss.reduction),
    "HingeEmbeddingLoss": lambda loss, x, y: ops.hinge_embedding_loss(x, y, loss.margin, loss.reduction),
    "CosineEmbeddingLoss": lambda loss, x, y, z: ops.cosine_embedding_loss(x, y, z, loss.margin, loss.reduction),
    "MarginRankingLoss": lambda loss, x, y, z: ops.margin_ranking_loss(x, y, z, loss.margin, loss.reduction),
    "CTCLoss": lambda loss, *xs: ops.ctc_loss(*xs, loss.blank, loss.reduction, loss.zero_infinity)[0],
    "TripletMarginLoss": lambda loss, x, y, z: ops.triplet_margin_loss(
        x, y, z, loss.margin, loss.p, loss.eps, loss.swap, loss.reduction),
    "MultiMarginLoss": lambda loss, x, y: ops.multi_margin_loss(x, y, loss.p, loss.margin, loss.weight, loss.reduction),
    "MultilabelMarginLoss": lambda loss, x, y: ops.multilabel_margin_loss(x, y, loss.reduction),
    "MultiLabelSoftMarginLoss": lambda loss, x, y: ops.multilabel_soft_margin_loss(x, y, loss.weight, loss.reduction),
    "GaussianNLLLoss": lambda loss, x, y, var: ops.gaussian_nll_loss(x, y, var, loss.full, loss.eps, loss.reduction),
}
#: Losses without a function in ``ops``.
WITHOUT_FUNCTION = {"SoftmaxCrossEntropyWithLogits", "FocalLoss", "DiceLoss", "MultiClassDiceLoss", "PoissonNLLLoss",
                    "TripletMarginWithDistanceLoss"}


def test_every_loss_has_a_function():
    assert set(losses.__all__) - {"LossBase"} == FUNCTIONS.keys() | WITHOUT_FUNCTION
    assert not FUNCTIONS.keys() & WITHOUT_FUNCTION


def of_kind(host, kind):
    """An input in another dtype, or with special values; labels stay."""
    if kind == "empty":
        return host[:0]
    if host.dtype.kind != "f":
        return host
    if kind == "special":
        host = host.copy()
        host.ravel()[:4] = [np.nan, np.inf, -np.inf, 0][:host.size]
        return host
    return (host * 3).round().astype(kind) if "int" in kind else host.astype(kind)


@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "int8", "int32", "int64", "bool", "special",
                                  "empty"])
def test_a_loss_is_its_function(kind):
    for number, case in enumerate(CASES):
        if case["loss"] not in FUNCTIONS or (number % 2 and kind != "float32"):
            continue
        loss, inputs = built(case)
        if kind == "empty" and (case["loss"] == "CTCLoss" or case["options"].keys() & {"weight", "pos_weight"}):
            continue  # the first axis of some inputs or weights is not that of samples
        whole = case["loss"] == "CrossEntropyLoss" and kind != "empty"  # probabilities stay what they are
        inputs = [x if whole and i else Tensor(of_kind(x.asnumpy(), kind)) for i, x in enumerate(inputs)]
        expected = FUNCTIONS[case["loss"]](loss, *inputs).asnumpy()
        for call in (loss, jit(lambda *xs: loss(*xs))):
            found = call(*inputs).asnumpy()
            assert found.dtype == expected.dtype
            rtol = 4e-3 if kind == "float16" else 1e-5
            np.testing.assert_allclose(found, expected, rtol, 1e-6, err_msg=NAMES[number])


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32", "int64", "bool"])
def test_losses_of_integers_are_those_of_floating_numbers(kind):
    for number, case in enumerate(CASES):
        loss, inputs = built(case)
        hosts = [abs(of_kind(x.asnumpy(), "int32")).astype(kind if x.asnumpy().dtype.kind == "f" else "int32")
                 for x in inputs]
        if case["loss"] in ("CrossEntropyLoss", "FocalLoss") and inputs[1].asnumpy().dtype.kind == "f":
            hosts[1] = inputs[1].asnumpy()  # probabilities, which integers are not
        floats = [Tensor(host.astype("float32") if x.asnumpy().dtype.kind == "f" else host)
                  for host, x in zip(hosts, inputs)]
        found, expected = loss(*map(Tensor, hosts)).asnumpy(), loss(*floats).asnumpy()
        assert found.dtype == np.float32, NAMES[number]
        np.testing.assert_allclose(found, expected, 1e-6, err_msg=NAMES[number])


def test_class_numbers_beyond_the_classes_are_refused():
    scores, wrong = Tensor(np.ones((2, 3), np.float32)), Tensor(np.array([0, 5], np.int32))
    for call in (losses.CrossEntropyLoss(), losses.NLLLoss(), losses.SoftmaxCrossEntropyWithLogits(sparse=True),
                 losses.MultiMarginLoss(), ops.cross_entropy, ops.nll_loss, jit(ops.cross_entropy)):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            call(scores, wrong)
    assert ops.nll_loss(scores, Tensor(np.array([0, -100], np.int32))).asnumpy() == -1
    np.testing.assert_array_equal(ops.nll_loss(scores, Tensor(np.array([2, -1], np.int32))).asnumpy(), -1)


@pytest.mark.parametrize("compiled", [False, True])
def test_sequences_that_do_not_fit_into_their_time(compiled):
    """Two equal labels need a blank between them, so the time is too short."""
    scores = Tensor(np.log(np.full((3, 2, 3), 1 / 3, np.float32)))
    for zero, expected in ((False, np.inf), (True, 0.0)):
        loss = losses.CTCLoss(reduction="none", zero_infinity=zero)
        call = jit(lambda *xs: loss(*xs)) if compiled else loss
        found = call(scores, Tensor([[1, 1], [1, 2]]), Tensor([2, 2]), Tensor([2, 2])).asnumpy()
        np.testing.assert_allclose(found, [expected, 2 * np.log(3)], rtol=1e-6)


def test_a_blank_is_a_class():
    with pytest.raises(ValueError, match="the class 3 among these"):
        losses.CTCLoss(blank=3)(Tensor(np.zeros((2, 1, 3), np.float32)), Tensor([[1]]), Tensor([2]), Tensor([1]))


#: Losses of MindSpore 2.10 by the blank, of scores ``arange(60) * 7 % 11 / 4`` and three sequences.
_WITH_BLANKS = {0: (4.949920, 6.021644, 4.052390), 2: (4.357649, 5.858260, 3.461253),
                3: (3.850040, 6.398606, 4.229849)}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("blank", _WITH_BLANKS)
def test_the_blank_may_be_any_class(blank, compiled):
    """The blank is one of the classes in a sequence; gradients agree with central differences."""
    scores = (np.arange(60) * 7 % 11 / 4).reshape(5, 3, 4)
    words = Tensor([[2, 0, 3], [1, 2, 2], [3, 3, 2]])

    def loss(x):
        return ops.ctc_loss(ops.log_softmax(x, -1), words, (5, 5, 4), (3, 3, 2), blank, "none")[0]

    found = (jit(loss) if compiled else loss)(Tensor(scores)).asnumpy()
    np.testing.assert_allclose(found, _WITH_BLANKS[blank], rtol=1e-5)
    slope = grad(lambda x: loss(x).sum())(Tensor(scores)).asnumpy()
    for place in np.ndindex(5, 3, 4):
        step = np.zeros_like(scores)
        step[place] = 1e-6
        difference = (loss(Tensor(scores + step)) - loss(Tensor(scores - step))).asnumpy().sum() / 2e-6
        np.testing.assert_allclose(slope[place], difference, atol=1e-7)


#: Scores (time, n, classes) that a seed decides.
_SCORES = np.random.default_rng(3).normal(size=(6, 3, 5)).astype(np.float32)
_PLACES, _CLASSES = [[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [2, 2]], [0, 1, 3, 2, 2, 0]


@pytest.mark.parametrize("compiled", [False, True])
def test_sparse_labels_are_those_of_rows(compiled):
    """The primitive takes labels with their positions, and scores instead of logarithms; its blank is the last
    class."""
    def sparse(x):
        return ops.CTCLoss()(x, Tensor(_PLACES), Tensor(_CLASSES), Tensor([6, 4, 5]))[0]

    def dense(x):
        words = Tensor([[0, 1, 0], [3, 0, 0], [2, 2, 0]])
        return ops.ctc_loss(ops.log_softmax(x, -1), words, (6, 4, 5), Tensor([2, 1, 3]), 4, "none")[0]

    found, expected = (jit(value_and_grad(f)) if compiled else value_and_grad(f) for f in (sparse, dense))
    for one, other in zip(found(Tensor(_SCORES)), expected(Tensor(_SCORES))):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-6)
    for setting in ({"ctc_merge_repeated": False}, {"preprocess_collapse_repeated": True}):
        with pytest.raises(ValueError, match="leave out"):
            ops.CTCLoss(**setting)


def _decoded(scores, lengths, merge):
    """Positions and classes of labels, the dense shape, and negative sums of the largest scores, by loops."""
    places, classes, sums = [], [], []
    for number, length in enumerate(lengths):
        best, before, count = scores[:length, number].argmax(-1), None, 0
        for each in best:
            if each != scores.shape[2] - 1 and not (merge and each == before):
                places.append([number, count])
                classes.append(each)
                count += 1
            before = each
        sums.append([-scores[:length, number].max(-1).sum()])
    return places, classes, [len(lengths), max(place + 1 for _, place in places)], sums


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("merge", [False, True])
def test_greedy_decoding_equals_a_loop(merge, compiled):
    scores = np.random.default_rng(8).integers(0, 9, (8, 3, 3)).astype(np.float32)
    lengths = [8, 3, 6]
    decode = ops.CTCGreedyDecoder(merge)
    found = (jit(lambda *xs: decode(*xs)) if compiled else decode)(Tensor(scores), Tensor(lengths))
    for one, other in zip(found, _decoded(scores, lengths, merge), strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other)
    with pytest.raises(ValueError, match="expected scores"):
        ops.ctc_greedy_decoder(Tensor(scores), Tensor([1]))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_of_one_sequence_is_that_of_a_batch_of_one(reduction):
    x = Tensor(np.log(np.float32([[.5, .3, .2], [.2, .5, .3], [.1, .1, .8], [.3, .3, .4]])))
    loss = losses.CTCLoss(0, reduction)
    single = loss(x, Tensor([1, 2]), Tensor([4]), Tensor([2]))
    batch = loss(x.expand_dims(1), Tensor([[1, 2]]), Tensor([4]), Tensor([2]))
    assert single.shape == () and single.asnumpy() == batch.asnumpy().reshape(()) == pytest.approx(
        0.526198 if reduction == "mean" else 1.052397)

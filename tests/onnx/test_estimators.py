"""Models of tables, of ONNX's domain ``ai.onnx.ml``: their values and errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.errors import OpError
from tests.onnx.test_import import model

onnx = pytest.importorskip("onnx")

from opreg.onnx import import_model, import_to_cell  # noqa: E402  the package may be missing

X = np.float32([[0.5, -1, 2], [-0.5, 3, 0], [1, 1, 1], [-2, 0.25, -1]])


def made(op: str, outputs: int = 1, **attrs: Any) -> Any:
    node = onnx.helper.make_node(op, ["x"], ["y", "z"][:outputs], domain="ai.onnx.ml", **attrs)
    return model([node], {"x": ("rows", 3)}, ["y", "z"][:outputs], opsets=[onnx.helper.make_opsetid("ai.onnx.ml", 3)])


def found(op: str, outputs: int = 1, x: np.ndarray = X, symbol: bool = True, **attrs: Any) -> list[np.ndarray]:
    """Outputs of a Cell, after a check that a symbol for any number of rows gives the same."""
    read = made(op, outputs, **attrs)
    results = import_to_cell(read)(mx.Tensor(x))
    arrays = [np.asarray(each if isinstance(each, np.ndarray) else each.asnumpy()) for each in (
        results if isinstance(results, tuple) else [results])]
    if symbol:
        sym, args, _ = import_model(read)
        for own, want in zip(sym.bind(mx.cpu(), {"x": mx.nd.array(x), **args}).forward(), arrays):
            assert own.dtype == want.dtype
            np.testing.assert_allclose(own.asnumpy(), want, rtol=1e-6)
    return arrays


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


W, B = np.float32([[1, -2, 0.5], [0.25, 1, -1]]), np.float32([0.5, -0.25])


@pytest.mark.parametrize("transform, function", [("NONE", lambda y: y), ("LOGISTIC", logistic), ("SOFTMAX", softmax)])
def test_linear_regressors_equal_numpy(transform: str, function: Callable[[np.ndarray], np.ndarray]) -> None:
    (y,) = found("LinearRegressor", coefficients=W.reshape(-1).tolist(), intercepts=B.tolist(), targets=2,
                 post_transform=transform)
    np.testing.assert_allclose(y, function(X @ W.T + B), rtol=1e-5)
    names, scores = found("LinearClassifier", 2, coefficients=W.reshape(-1).tolist(), intercepts=B.tolist(),
                          classlabels_ints=[7, 3], post_transform=transform)
    np.testing.assert_array_equal(names, np.array([7, 3])[(X @ W.T + B).argmax(1)])
    np.testing.assert_allclose(scores, function(X @ W.T + B), rtol=1e-5)


def test_post_transforms_softmax_zero_and_probit_are_computed() -> None:
    """SOFTMAX_ZERO keeps zeros and leaves them out of the softmax; PROBIT is the inverse of the normal distribution."""
    same: dict[str, Any] = {"coefficients": np.eye(3).reshape(-1).tolist(), "targets": 3}
    (y,) = found("LinearRegressor", x=np.float32([[1, 0, 2], [0, 0, 0]]), **same, post_transform="SOFTMAX_ZERO")
    np.testing.assert_allclose(y[0, [0, 2]], softmax(np.float32([1, 2])), rtol=1e-6)
    np.testing.assert_array_equal([y[0, 1], *y[1]], 0)
    (y,) = found("LinearRegressor", x=np.float32([[0.5, 0.8413447, 0.0227501]]), **same, post_transform="PROBIT")
    np.testing.assert_allclose(y, [[0, 1, -2]], atol=1e-5)


@pytest.mark.parametrize("transform, pair", [("NONE", lambda s: [-s, s]), ("LOGISTIC", lambda s: [
    1 - logistic(s), logistic(s)])])
def test_one_score_decides_between_two_classes(transform: str, pair: Callable[[np.ndarray], list[np.ndarray]]) -> None:
    names, scores = found("LinearClassifier", 2, symbol=False, coefficients=W[0].tolist(), intercepts=[0.5],
                          classlabels_strings=["no", "yes"], post_transform=transform)
    score = X @ W[0] + np.float32(0.5)
    assert names.tolist() == ["yes" if each > 0 else "no" for each in score]
    np.testing.assert_allclose(scores, np.stack(pair(score), 1), rtol=1e-5)


@pytest.mark.parametrize("kernel, function", [
    ("LINEAR", lambda x, v: x @ v.T), ("POLY", lambda x, v: (x @ v.T * 0.5 + 1) ** 2),
    ("RBF", lambda x, v: np.exp(-0.5 * ((x[:, None] - v) ** 2).sum(2))),
    ("SIGMOID", lambda x, v: np.tanh(x @ v.T * 0.5 + 1))])
def test_support_vector_regressors_equal_numpy(kernel: str,
                                               function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    attrs = {"kernel_type": kernel, "kernel_params": [0.5, 1.0, 2.0], "n_supports": 2, "coefficients": B.tolist(),
             "support_vectors": W.reshape(-1).tolist(), "rho": [0.125]}
    want = function(X, W) @ B[:, None] + 0.125
    np.testing.assert_allclose(found("SVMRegressor", **attrs)[0], want, rtol=1e-5)
    np.testing.assert_array_equal(found("SVMRegressor", **attrs, one_class=1)[0], np.where(want > 0, 1, -1))


COUNTS, CLASSES = [2, 1, 3], [4, 5, 6]
VECTORS, DUAL = np.linspace(-2, 2, 18).reshape(6, 3) ** 3 / 4, np.cos(np.arange(12)).reshape(2, 6) * 2
OFFSETS = [0.25, -0.5, 0.125]


def of_pairs(x: np.ndarray) -> np.ndarray:
    """The scores of three pairs of classes, whose vectors are rows of ``VECTORS``."""
    likeness, ends = np.exp(-0.5 * ((x[:, None] - VECTORS) ** 2).sum(2)), np.cumsum([0, *COUNTS])
    parts = [slice(*pair) for pair in itertools.pairwise(ends)]
    return np.stack([likeness[:, parts[i]] @ DUAL[j - 1, parts[i]] + likeness[:, parts[j]] @ DUAL[i, parts[j]] + offset
                     for (i, j), offset in zip([(0, 1), (0, 2), (1, 2)], OFFSETS)], 1)


SUPPORT: dict[str, Any] = {
    "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 0.0], "support_vectors": VECTORS.reshape(-1).tolist(),
    "coefficients": DUAL.reshape(-1).tolist(), "rho": OFFSETS, "vectors_per_class": COUNTS}
ROWS = np.random.default_rng(2).standard_normal((9, 3)).astype(np.float32)


def winners(scores: np.ndarray) -> np.ndarray:
    """The class that wins most of the pairs, the first of several."""
    votes = np.zeros((len(scores), 3))
    for column, (i, j) in zip(scores.T, [(0, 1), (0, 2), (1, 2)]):
        votes[np.arange(len(scores)), np.where(column > 0, i, j)] += 1
    return votes.argmax(1)


@pytest.mark.parametrize("transform, function", [("NONE", lambda s: s), ("LOGISTIC", logistic), ("SOFTMAX", softmax)])
def test_support_vectors_vote_for_classes(transform: str, function: Callable[[np.ndarray], np.ndarray]) -> None:
    names, scores = found("SVMClassifier", 2, ROWS, classlabels_ints=CLASSES, post_transform=transform, **SUPPORT)
    want = of_pairs(ROWS)
    np.testing.assert_array_equal(names, np.array(CLASSES)[winners(want)])
    np.testing.assert_allclose(scores, function(want), rtol=1e-4, atol=1e-5)


def test_support_vectors_give_probabilities() -> None:
    """Probabilities of three classes fit those of the pairs as well as possible; two classes have the pair's."""
    steep, moved = [-2.0, -1.5, -1.0], [0.0, 0.25, 0.5]
    names, found_ = found("SVMClassifier", 2, ROWS, classlabels_ints=CLASSES, prob_a=steep, prob_b=moved, **SUPPORT)
    scores = of_pairs(ROWS)
    np.testing.assert_array_equal(names, np.array(CLASSES)[winners(scores)])
    wins = np.zeros((9, 3, 3))
    for place, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        wins[:, i, j] = logistic(-(scores[:, place] * steep[place] + moved[place]))
        wins[:, j, i] = 1 - wins[:, i, j]
    matrix = np.eye(3) * (wins ** 2).sum(1)[:, None] - wins * wins.transpose(0, 2, 1)
    exact = np.linalg.solve(np.block([[matrix, np.ones((9, 3, 1))], [np.ones((9, 1, 3)), np.zeros((9, 1, 1))]]),
                            np.tile([[0.0], [0], [0], [1]], (9, 1, 1)))[:, :3, 0]
    np.testing.assert_allclose(found_, exact, atol=0.01)
    np.testing.assert_allclose(found_.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("transform, pair", [("NONE", lambda s: [-s, s]), ("LOGISTIC", lambda s: [
    1 - logistic(s), logistic(s)]), ("SOFTMAX", lambda s: [1 - s, s])])
def test_support_vectors_classify_two_classes(transform: str, pair: Callable[[np.ndarray], list[np.ndarray]]) -> None:
    two = {**SUPPORT, "vectors_per_class": [2, 4], "rho": [0.25], "coefficients": DUAL[0].tolist()}
    names, scores = found("SVMClassifier", 2, ROWS, False, classlabels_strings=["no", "yes"], post_transform=transform,
                          **two)
    score = np.exp(-0.5 * ((ROWS[:, None] - VECTORS) ** 2).sum(2)) @ DUAL[0] + 0.25
    assert names.tolist() == ["no" if each > 0 else "yes" for each in score]
    np.testing.assert_allclose(scores, np.stack(pair(score), 1), rtol=1e-4, atol=1e-5)


def test_linear_support_vectors_classify() -> None:
    """Without vectors each class has a score; of two classes the second wins if a score is positive."""
    names, scores = found("SVMClassifier", 2, classlabels_ints=[7, 8, 9], rho=[0.5],
                          coefficients=np.eye(3).reshape(-1).tolist())
    np.testing.assert_array_equal(names, X.argmax(1) + 7)
    np.testing.assert_allclose(scores, X + np.float32(0.5))
    x = np.float32([[-3, -2, 0], [-2, -3, 0], [1, 0.25, 0]])
    names, _ = found("SVMClassifier", 2, x, classlabels_ints=[7, 8], rho=[0.5],
                     coefficients=[1.0, 0.0, -1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(names, [8, 7, 8])


def test_zip_map_gives_a_dict_for_each_row() -> None:
    """A Cell returns a dict for each row, a symbol the columns."""
    for words in ({"classlabels_strings": ["a", "b", "c"]}, {"classlabels_int64s": [5, 3, 4]}):
        read = made("ZipMap", **words)
        ((keys,),) = [words.values()]
        assert import_to_cell(read)(mx.Tensor(X)) == [dict(zip(keys, row)) for row in X.tolist()]
        symbol, args, _ = import_model(read)
        np.testing.assert_array_equal(symbol.bind(mx.cpu(), {"x": mx.nd.array(X), **args}).forward()[0].asnumpy(), X)


@pytest.mark.parametrize("change, words", [
    ({"rho": [0.0]}, "3 classes have 3 numbers of vectors and 1 offsets of pairs"),
    ({"vectors_per_class": [2, 4]}, "3 classes have 2 numbers of vectors and 3 offsets"),
    ({"vectors_per_class": [2, 1, 1 << 40]}, "SVMClassifier"), ({"vectors_per_class": [2, 5, -1]}, "SVMClassifier"),
    ({"coefficients": [0.0]}, "SVMClassifier"), ({"kernel_type": "RBG"}, "kernel_type='RBG'. Did you mean 'RBF'"),
], ids=lambda each: next(iter(each)) if isinstance(each, dict) else "")
def test_contradictory_support_vectors_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(OpError, match=words):
        found("SVMClassifier", 2, ROWS, classlabels_ints=CLASSES, **{**SUPPORT, **change})


#: Two trees, one of two levels and one of a single comparison, by node: tree, number, feature, mode, limit, children.
NODES = [(0, 0, 0, "{0}", 0.5, 1, 2), (0, 1, 1, "{1}", 1.0, 3, 4), (0, 2, 0, "LEAF", 0.0, 0, 0),
         (0, 3, 0, "LEAF", 0.0, 0, 0), (0, 4, 0, "LEAF", 0.0, 0, 0), (1, 0, 2, "{0}", 0.0, 1, 2),
         (1, 1, 0, "LEAF", 0.0, 0, 0), (1, 2, 0, "LEAF", 0.0, 0, 0)]
LEAVES = {(0, 2): 1.0, (0, 3): -2.0, (0, 4): 4.0, (1, 1): 0.5, (1, 2): 3.0}
MODES: dict[str, Callable[[Any, Any], Any]] = {
    "BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal, "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal, "BRANCH_NEQ": np.not_equal}


def trees(*modes: str, **words: Any) -> dict[str, Any]:
    """Attributes of two trees with these modes of comparison."""
    columns = list(zip(*[(*each[:3], each[3].format(*modes), *each[4:]) for each in NODES]))
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    return {**{f"nodes_{name}": list(column) for name, column in zip(names, columns)}, **words}


def reached(row: np.ndarray, tree: int, modes: tuple[str, ...], lost: bool = False) -> float:
    """Weight of the leaf that a row reaches."""
    own, at = {each[1]: each for each in NODES if each[0] == tree}, 0
    while own[at][3] != "LEAF":
        _, _, feature, mode, limit, yes, no = own[at]
        goes = MODES[mode.format(*modes)](row[feature], limit) or (lost and np.isnan(row[feature]))
        at = yes if goes else no
    return LEAVES[tree, at]


def weighted(kind: str, ids: list[int]) -> dict[str, Any]:
    return {f"{kind}_treeids": [tree for tree, _ in LEAVES], f"{kind}_nodeids": [number for _, number in LEAVES],
            f"{kind}_ids": ids, f"{kind}_weights": list(LEAVES.values())}


@pytest.mark.parametrize("aggregate, join", [("SUM", np.sum), ("AVERAGE", np.mean), ("MIN", np.min), ("MAX", np.max)])
@pytest.mark.parametrize("modes", [*[(mode, mode) for mode in MODES], ("BRANCH_LT", "BRANCH_GTE")],
                         ids=lambda each: "-".join(dict.fromkeys(each)))
def test_tree_regressors_equal_a_walk(modes: tuple[str, str], aggregate: str,
                                      join: Callable[[list[float]], float]) -> None:
    (y,) = found("TreeEnsembleRegressor", aggregate_function=aggregate, base_values=[10.0], n_targets=1,
                 **trees(*modes, **weighted("target", [0] * 5)))
    want = [[10 + join([reached(row, 0, modes), reached(row, 1, modes)])] for row in X]
    np.testing.assert_allclose(y, want, rtol=1e-6)


@pytest.mark.parametrize("lost", [True, False])
def test_trees_follow_their_branch_for_nan(lost: bool) -> None:
    x, modes = np.float32([[np.nan, 0, 1], [0, np.nan, np.nan]]), ("BRANCH_LEQ", "BRANCH_LEQ")
    (y,) = found("TreeEnsembleRegressor", x=x, **trees(*modes, **weighted("target", [0] * 5)),
                 nodes_missing_value_tracks_true=[int(lost)] * 8)
    np.testing.assert_allclose(y, [[reached(row, 0, modes, lost) + reached(row, 1, modes, lost)] for row in x])


def test_tree_classifiers_give_classes_and_scores() -> None:
    modes = ("BRANCH_LEQ", "BRANCH_LEQ")
    ids = [0, 1, 2, 1, 0]
    names, scores = found("TreeEnsembleClassifier", 2, classlabels_int64s=[5, 6, 7], post_transform="SOFTMAX",
                          **trees(*modes, **weighted("class", ids)))
    want = np.zeros((4, 3), np.float32)
    for row, out in zip(X, want):
        for tree in (0, 1):
            weight = reached(row, tree, modes)
            out[ids[list(LEAVES.values()).index(weight)]] += weight
    np.testing.assert_array_equal(names, np.array([5, 6, 7])[want.argmax(1)])
    np.testing.assert_allclose(scores, softmax(want), rtol=1e-5)
    names, scores = found("TreeEnsembleClassifier", 2, classlabels_int64s=[0, 1], post_transform="LOGISTIC",
                          **trees(*modes, **weighted("class", [0] * 5)))
    total = np.float32([reached(row, 0, modes) + reached(row, 1, modes) for row in X])
    np.testing.assert_array_equal(names, total > 0)
    np.testing.assert_allclose(scores, np.stack([1 - logistic(total), logistic(total)], 1), rtol=1e-5)


def test_one_hot_encoders_encode_categories() -> None:
    (hot,) = found("OneHotEncoder", cats_int64s=[1, 0, 3])
    np.testing.assert_array_equal(hot, (X.astype(np.int64)[..., None] == [1, 0, 3]).astype(np.float32))
    with pytest.raises(OpError, match="an element is not one of the categories, and zeros=0"):
        found("OneHotEncoder", cats_int64s=[1, 0], zeros=0)


def test_an_imputer_replaces_nan() -> None:
    x = np.float32([[np.nan, 1, 2], [3, np.nan, np.nan]])
    (y,) = found("Imputer", x=x, imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan"))
    np.testing.assert_array_equal(y, [[7, 1, 2], [3, 8, 9]])


@pytest.mark.parametrize("change, words", [
    ({"nodes_truenodeids": [1, 3, 0, 0, 0, 9, 0, 0]}, "tree 1 has no node 9"),
    ({"nodes_truenodeids": [1, 0, 0, 0, 0, 1, 0, 0]}, "form a cycle"),
    ({"nodes_truenodeids": [1, 1, 0, 0, 0, 1, 0, 0]}, "form a cycle"),
    ({"nodes_values": [0.5]}, "8 nodes of trees have 8 modes, 8 features, 1 values"),
    ({"nodes_modes": ["BRANCH_LESS", *["LEAF"] * 7]}, "nodes_modes='BRANCH_LESS'. Did you mean 'BRANCH_LEQ'"),
    ({"target_ids": [0, 0, 0, 0, 5]}, "a weight for target 5 of 1"),
    ({"target_nodeids": [2, 3, 4, 1, 9]}, "tree 1 has no node 9"),
    ({"n_targets": 1 << 60}, "asks for an array of shape"),
    ({"aggregate_function": "MEAN"}, "aggregate_function='MEAN'"),
    ({"post_transform": "LOGISTICS"}, "post_transform='LOGISTICS'. Did you mean 'LOGISTIC'"),
], ids=lambda each: next(iter(each)) if isinstance(each, dict) else "")
def test_contradictory_trees_are_refused(change: dict[str, Any], words: str) -> None:
    attrs = trees("BRANCH_LEQ", "BRANCH_LEQ", **weighted("target", [0] * 5))
    with pytest.raises(OpError, match=words):
        found("TreeEnsembleRegressor", **{**attrs, **change})


@pytest.mark.parametrize("x, wanted", [
    (np.array([["b", "c"], ["a", "b"]], object), np.array([[2, -7], [1, 2]], np.int64)),
    (np.array([2, 1, 5], np.int64), np.array(["b", "a", "?"], object))])
def test_categories_by_name_and_number(x: np.ndarray, wanted: np.ndarray) -> None:
    node = onnx.helper.make_node("CategoryMapper", ["x"], ["y"], domain="ai.onnx.ml", cats_strings=["a", "b"],
                                 cats_int64s=[1, 2], default_int64=-7, default_string="?")
    result, = mx.onnx.backend.run_node(node, [x])
    assert result.dtype == wanted.dtype and result.tolist() == wanted.tolist()

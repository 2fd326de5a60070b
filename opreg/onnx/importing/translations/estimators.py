"""Rows of models fitted to the columns of a table, in the domain ``ai.onnx.ml``: linear models, support vectors,
trees, and categories."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.cells.state import STATE
from opreg.core.registry import ops
from opreg.errors import ArgumentError, AttrError, did_you_mean
from opreg.nn.ops import while_loop

from ..graph import Node
from ..rows import Given, row
from .parts import gather_along
from .shapes import check_size

ML = "ai.onnx.ml"

_TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "NONE": lambda x: x, "LOGISTIC": ops.sigmoid, "SOFTMAX": lambda x: ops.softmax(x, axis=-1),
    "SOFTMAX_ZERO": lambda x: ops.where(x != 0, ops.softmax(ops.where(x != 0, x, x * 0 - np.inf), axis=-1), x),
    "PROBIT": lambda x: ops.erfinv(x * 2 - 1) * 2 ** 0.5}


def _named(kinds: dict[str, Any], name: str, attribute: str) -> Any:
    if name not in kinds:
        raise AttrError(f"{attribute}={name!r}. {did_you_mean(name, kinds)}")
    return kinds[name]


def _transform_scores(scores: Any, name: str) -> Any:
    return _named(_TRANSFORMS, name, "post_transform")(scores)


def _table(node: Node, numbers: Any, shape: tuple[int, ...] | None = None, dtype: Any = np.float32) -> Any:
    """A constant with the values of an attribute."""
    values = np.asarray(numbers, dtype)
    return node.lift(values if shape is None else values.reshape(shape))


def _labels_at(node: Node, places: Any, ints: Any, texts: Any) -> Any:
    """The labels of classes, from their indices."""
    if texts:
        return np.array(texts, object)[node.host(places)]
    return ops.take(_table(node, ints, dtype=np.int64), places, axis=0)


def _labels_and_scores(node: Node, scores: Any, ints: Any, texts: Any, transform: str, edge: float = 0.0
                       ) -> tuple[Any, Any]:
    """Labels and scores of classes. A single score belongs to the second of two classes, which is chosen if the score
    is above ``edge``."""
    if node.length(scores, 1) > 1:
        best = node.cast(ops._npi_argmax(scores, axis=1), np.int64)
        return _labels_at(node, best, ints, texts), _transform_scores(scores, transform)
    best = node.cast(ops._np_reshape(ops._npi_greater_scalar(scores, scalar=edge), newshape=(-1,)), np.int64)
    second = _transform_scores(scores, transform)
    first = 1 - second if edge or transform == "LOGISTIC" else -second
    return _labels_at(node, best, ints, texts), ops.Concat(first, second, dim=1, num_args=2)


# ------------------------------------------------------------------------------------------------ linear models


def _linear(node: Node, x: Any, coefficients: Any, intercepts: Any, rows: int) -> Any:
    weight = _table(node, coefficients, (rows, -1))
    products = ops._npi_matmul(node.cast(x, np.float32), ops.transpose(weight))
    return ops.broadcast_add(products, _table(node, intercepts or [0.0] * rows))


@row("LinearRegressor", domain=ML)
def linear_regressor(node: Node, x: Any, *, coefficients: Any, intercepts: Any = None, targets: int = 1,
                     post_transform: str = "NONE") -> Any:
    return _transform_scores(_linear(node, x, coefficients, intercepts, targets), post_transform)


@row("LinearClassifier", domain=ML)
def linear_classifier(node: Node, x: Any, *, coefficients: Any, intercepts: Any = None, classlabels_ints: Any = None,
                      classlabels_strings: Any = None, multi_class: int = 0, post_transform: str = "NONE") -> Any:
    rows = len(intercepts or classlabels_ints or classlabels_strings or [0])
    scores = _linear(node, x, coefficients, intercepts, rows)
    return _labels_and_scores(node, scores, classlabels_ints, classlabels_strings, post_transform)


# ---------------------------------------------------------------------------------------------- support vectors


def _kernel(node: Node, x: Any, vectors: Any, kind: str, params: Any) -> Any:
    """The likeness of each row to each support vector."""
    gamma, zero, degree = params
    products = ops._npi_matmul(x, ops.transpose(vectors))

    def distances() -> Any:
        square = ops._np_sum(ops.square(x), axis=1, keepdims=True)
        return ops.broadcast_add(square, ops._np_sum(ops.square(vectors), axis=1)) - products * 2

    return _named({"LINEAR": lambda: products, "POLY": lambda: (products * gamma + zero) ** degree,
                   "RBF": lambda: ops.exp(distances() * -gamma), "SIGMOID": lambda: ops.tanh(products * gamma + zero)},
                  kind, "kernel_type")()


@row("SVMRegressor", domain=ML)
def svm_regressor(node: Node, x: Any, *, coefficients: Any, kernel_params: Any = (1.0, 0.0, 3.0),
                  kernel_type: str = "LINEAR", n_supports: int = 0, one_class: int = 0, post_transform: str = "NONE",
                  rho: Any = (0.0,), support_vectors: Any = None) -> Any:
    x = node.cast(x, np.float32)
    if n_supports:
        x = _kernel(node, x, _table(node, support_vectors, (n_supports, -1)), kernel_type, kernel_params)
    value = ops._npi_matmul(x, _table(node, coefficients, (-1, 1))) + rho[0]
    return ops._npi_where(value > 0, ops.ones_like(value), -ops.ones_like(value)) if one_class else _transform_scores(
        value, post_transform)


@row("SVMClassifier", domain=ML)
def svm_classifier(node: Node, x: Any, *, classlabels_ints: Any = None, classlabels_strings: Any = None,
                   coefficients: Any, kernel_params: Any = (0.0, 0.0, 0.0), kernel_type: str = "LINEAR",
                   post_transform: str = "NONE", prob_a: Any = None, prob_b: Any = None, rho: Any = (0.0,),
                   support_vectors: Any = None, vectors_per_class: Any = None) -> Any:
    x, count = node.cast(x, np.float32), len(classlabels_ints or classlabels_strings or ())
    if not vectors_per_class:  # a linear model
        scores = ops._npi_matmul(x, ops.transpose(_table(node, coefficients, (count, -1)))) + rho[0]
        best = node.cast(ops._npi_argmax(scores, axis=1), np.int64)
        if count == 2:  # with two classes, the second one wins if its score is high enough
            edge = 0.5 if min(coefficients) >= 0 else 0.0
            high = ops._npi_greater_scalar(ops._np_max(scores, axis=1), scalar=edge)
            best = ops._npi_maximum(best, node.cast(high, np.int64))
        return _labels_at(node, best, classlabels_ints, classlabels_strings), _transform_scores(scores, post_transform)
    if len(vectors_per_class) != count or len(rho) != count * (count - 1) // 2 or min(vectors_per_class) < 0:
        raise AttrError(f"{count} classes have {len(vectors_per_class)} numbers of vectors and {len(rho)} offsets of "
                        "pairs")
    pairs = list(itertools.combinations(range(count), 2))
    likeness = _kernel(node, x, _table(node, support_vectors, (sum(vectors_per_class), -1)), kernel_type, kernel_params)
    scores = ops.broadcast_add(ops._npi_matmul(likeness, node.lift(_pair_coefficients(
        np.asarray(coefficients, np.float32).reshape(count - 1, -1), vectors_per_class, pairs))), _table(node, rho))
    first, second = (np.eye(*check_size((count, count)), dtype=np.float32)[list(side)] for side in zip(*pairs))
    wins = node.cast(ops._npi_greater_scalar(scores, scalar=0.0), np.float32)
    votes = ops.broadcast_add(ops._npi_matmul(wins, node.lift(first - second)), node.lift(second.sum(0)))
    names = _labels_at(node, node.cast(ops._npi_argmax(votes, axis=1), np.int64), classlabels_ints, classlabels_strings)
    if prob_a:
        steep, moved = [_table(node, each, (len(pairs),)) for each in (prob_a, prob_b or [0.0] * len(pairs))]
        wins = ops.sigmoid(-ops.broadcast_add(ops.broadcast_mul(scores, steep), moved))
        return names, _couple_probabilities(node, ops.clip(wins, a_min=1e-7, a_max=1 - 1e-7), count, pairs)
    if count > 2:
        return names, _transform_scores(scores, post_transform)
    value = ops.sigmoid(scores) if post_transform == "LOGISTIC" else scores
    return names, ops.Concat(-value if post_transform == "NONE" else 1 - value, value, dim=1, num_args=2)


def _pair_coefficients(coefficients: np.ndarray, counts: Sequence[int], pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """The coefficients of support vectors for each pair of classes, by vector and pair."""
    ends = np.cumsum([0, *counts])
    table = np.zeros(check_size((int(ends[-1]), len(pairs))), np.float32)
    for place, (i, j) in enumerate(pairs):
        for one, other in ((i, j - 1), (j, i)):
            own = slice(ends[one], ends[one + 1])
            table[own, place] = coefficients[other, own]
    return table


def _couple_probabilities(node: Node, wins: Any, count: int, pairs: Sequence[tuple[int, int]]) -> Any:
    """Probabilities of classes from those that the first of each pair wins; T.-F. Wu, C.-J. Lin, R. C. Weng,
    Probability Estimates for Multi-class Classification by Pairwise Coupling, the second of their methods."""
    at, sign = np.zeros((count, count), np.int64), np.zeros((count, count), np.float32)
    for place, pair in enumerate(pairs):
        at[pair] = at[pair[::-1]] = place
        sign[pair], sign[pair[::-1]] = 1, -1
    each = ops.broadcast_add(ops.broadcast_mul(ops.take(wins, node.lift(at), axis=1), node.lift(sign)),
                             node.lift(np.float32(sign < 0)))
    matrix = ops.broadcast_sub(
        ops.broadcast_mul(ops.expand_dims(ops._np_sum(ops.square(each), axis=1), axis=2), node.lift(
            np.eye(count, dtype=np.float32))), each * ops.transpose(each, axes=(0, 2, 1)))
    columns = ops.split(matrix, num_outputs=count, axis=2, squeeze_axis=True)

    def step(state: Any) -> Any:
        found, _ = state
        slopes = ops._np_sum(ops.broadcast_mul(matrix, ops.expand_dims(found, axis=1)), axis=2)
        total = ops._np_sum(found * slopes, axis=1, keepdims=True)
        error = ops._np_max(ops.abs(ops.broadcast_sub(slopes, total)), axis=1, keepdims=True)
        goes, better = ops._npi_greater_equal_scalar(error, scalar=0.005 / count), found
        for place, column in enumerate(columns):
            own = ops.slice_axis(column, axis=1, begin=place, end=place + 1)
            slope = ops.slice_axis(slopes, axis=1, begin=place, end=place + 1)
            change = (total - slope) / own
            total = (total + change * (change * own + slope * 2)) / ops.square(change + 1)
            slopes = ops.broadcast_div(ops.broadcast_add(slopes, ops.broadcast_mul(column, change)), change + 1)
            one = node.lift(np.eye(count, dtype=np.float32)[place])
            better = ops.broadcast_div(ops.broadcast_add(better, ops.broadcast_mul(change, one)), change + 1)
        more = node.cast(ops._np_any(goes, axis=None), np.float32)
        return ops._npi_where(goes, better, found), ops._np_reshape(more, newshape=(1,))

    begin = ops.broadcast_add(ops.zeros_like(ops._np_sum(each, axis=2)), node.lift(
        np.full(count, 1 / count, np.float32)))
    found, _ = while_loop(lambda state: state[1], step, (begin, node.lift(np.ones(1, np.float32))), max(100, count))
    return found


# -------------------------------------------------------------------------------------------------------- trees

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "BRANCH_LEQ": ops._npi_less_equal, "BRANCH_LT": ops._npi_less, "BRANCH_GTE": ops._npi_greater_equal,
    "BRANCH_GT": ops._npi_greater, "BRANCH_EQ": ops._npi_equal, "BRANCH_NEQ": ops._npi_not_equal}


class _Forest:
    """Trees of an ensemble: for each row, the leaf of each tree.

    Attributes
    ----------
    places : dict of (int, int) to int
        The position of a node by its tree and its number there.
    """

    def __init__(self, node: Node, trees: Sequence[int], numbers: Sequence[int], features: Sequence[int],
                 values: Sequence[float], modes: Sequence[str], yes: Sequence[int], no: Sequence[int],
                 tracks: Sequence[int] | None):
        self.node, self.modes = node, modes
        self.places = {pair: i for i, pair in enumerate(zip(trees, numbers))}
        if not len(modes) == len(features) == len(values) == len(yes) == len(no) == len(self.places):
            raise AttrError(f"{len(self.places)} nodes of trees have {len(modes)} modes, {len(features)} features, "
                            f"{len(values)} values and {len(yes)} and {len(no)} children")
        self.features, self.values = np.asarray(features, np.int64), np.asarray(values, np.float32)
        self.tracks = np.asarray(tracks or [0] * len(modes), bool)
        places = np.arange(len(modes))
        leaf = np.asarray([mode == "LEAF" for mode in modes], bool)
        self.children = [np.where(leaf, places, [places[i] if leaf[i] else self.place(tree, child)
                                                 for i, (tree, child) in enumerate(zip(trees, each))])
                         for each in (yes, no)]
        below = np.concatenate([child[~leaf] for child in self.children])
        self.roots = np.setdiff1d(places, below)
        self.depth, reached, passed = 0, self.roots, np.zeros(len(modes), bool)
        passed[reached] = True
        while not leaf[reached].all() and self.depth <= len(modes):
            reached = np.unique(np.concatenate([child[reached] for child in self.children]))
            passed[reached] = True
            self.depth += 1
        if self.depth > len(modes) or not passed.all():  # nodes in a circle may have no root
            raise ArgumentError("the nodes of a tree form a cycle")

    def place(self, tree: int, number: int) -> int:
        """The position of a node."""
        if (tree, number) not in self.places:
            raise AttrError(f"tree {tree} has no node {number}")
        return self.places[tree, number]

    def leaves(self, x: Any) -> Any:
        """The position of the leaf that each row comes to in each tree."""
        node = self.node
        first = ops.zeros_like(node.cast(ops.slice_axis(x, axis=1, begin=0, end=1), np.int64))
        at = ops.broadcast_add(first, node.lift(self.roots.astype(np.int64).reshape(1, -1)))
        for _ in range(self.depth):
            value = gather_along(node, x, ops.take(node.lift(self.features), at, axis=0), 1)
            yes, no = [ops.take(node.lift(child.astype(np.int64)), at, axis=0) for child in self.children]
            at = ops._npi_where(self._takes_first(value, at), yes, no)
        return at

    def _takes_first(self, value: Any, at: Any) -> Any:
        """Whether a row goes to the first child of a node."""
        node = self.node
        limits = node.cast(ops.take(node.lift(self.values), at, axis=0), node.dtype(value))
        goes: Any = None
        kinds = sorted({*self.modes} - {"LEAF"})
        for kind in kinds:
            each = _named(_COMPARED, kind, "nodes_modes")(value, limits)
            if len(kinds) > 1:
                own = np.asarray([mode == kind for mode in self.modes])
                each = ops._npi_logical_and(each, ops.take(node.lift(own), at, axis=0))
            goes = each if goes is None else ops._npi_logical_or(goes, each)
        if self.tracks.any():
            missing = ops._npi_logical_and(ops._npi_isnan(value), ops.take(node.lift(self.tracks), at, axis=0))
            goes = ops._npi_logical_or(goes, missing)
        return goes

    def weights(self, trees: Sequence[int], numbers: Sequence[int], targets: Sequence[int], weights: Sequence[float],
                count: int, empty: float = 0.0) -> np.ndarray:
        """The weights of each node for each target."""
        table = np.full(check_size((len(self.modes), count)), empty, np.float32)
        for tree, number, target, weight in zip(trees, numbers, targets, weights):
            place = self.place(tree, number)
            if not 0 <= target < count:
                raise AttrError(f"a leaf has a weight for target {target} of {count}")
            table[place, target] = weight + (table[place, target] if np.isfinite(table[place, target]) else 0.0)
        return table


def _real(node: Node, x: Any) -> Any:
    return x if node.dtype(x) == np.float64 else node.cast(x, np.float32)


def _joined(node: Node, forest: _Forest, x: Any, table: np.ndarray) -> Any:
    """The weights of the leaves, by row, tree and target."""
    return ops.take(node.lift(table), forest.leaves(_real(node, x)), axis=0)


@row("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(
        node: Node, x: Any, *, aggregate_function: str = "SUM", base_values: Any = None, n_targets: int = 1,
        nodes_falsenodeids: Any, nodes_featureids: Any, nodes_hitrates: Any = None,
        nodes_missing_value_tracks_true: Any = None, nodes_modes: Any, nodes_nodeids: Any, nodes_treeids: Any,
        nodes_truenodeids: Any, nodes_values: Any, post_transform: str = "NONE", target_ids: Any, target_nodeids: Any,
        target_treeids: Any, target_weights: Any) -> Any:
    forest = _Forest(node, nodes_treeids, nodes_nodeids, nodes_featureids, nodes_values, nodes_modes,
                     nodes_truenodeids, nodes_falsenodeids, nodes_missing_value_tracks_true)
    empty = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate_function, 0.0)
    table = forest.weights(target_treeids, target_nodeids, target_ids, target_weights, n_targets, empty)
    result = _joined(node, forest, x, table)
    total = _named({"SUM": lambda: ops._np_sum(result, axis=1),
                    "AVERAGE": lambda: ops._np_sum(result, axis=1) / len(forest.roots),
                    "MIN": lambda: ops._np_min(result, axis=1), "MAX": lambda: ops._np_max(result, axis=1)},
                   aggregate_function, "aggregate_function")()
    if base_values:
        total = ops.broadcast_add(total, _table(node, base_values))
    return _transform_scores(total, post_transform)


@row("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(
        node: Node, x: Any, *, base_values: Any = None, class_ids: Any, class_nodeids: Any, class_treeids: Any,
        class_weights: Any, classlabels_int64s: Any = None, classlabels_strings: Any = None, nodes_falsenodeids: Any,
        nodes_featureids: Any, nodes_hitrates: Any = None, nodes_missing_value_tracks_true: Any = None,
        nodes_modes: Any, nodes_nodeids: Any, nodes_treeids: Any, nodes_truenodeids: Any, nodes_values: Any,
        post_transform: str = "NONE") -> Any:
    forest = _Forest(node, nodes_treeids, nodes_nodeids, nodes_featureids, nodes_values, nodes_modes,
                     nodes_truenodeids, nodes_falsenodeids, nodes_missing_value_tracks_true)
    count, alone = len(classlabels_int64s or classlabels_strings or ()), len(set(class_ids)) == 1
    single = count == 2 and alone
    ids = [0] * len(class_ids) if single else class_ids
    table = forest.weights(class_treeids, class_nodeids, ids, class_weights, 1 if single else count)
    scores = ops._np_sum(_joined(node, forest, x, table), axis=1)
    if base_values:
        scores = ops.broadcast_add(scores, _table(node, base_values))
    return _labels_and_scores(node, scores, classlabels_int64s, classlabels_strings, post_transform,
                              0.5 if min(class_weights) >= 0 else 0.0)


# --------------------------------------------------------------------------------------------------- categories


@row("ZipMap", domain=ML)
def zip_map(node: Node, x: Given, *, classlabels_int64s: Any = None, classlabels_strings: Any = None) -> Any:
    """A dict of each row, by the labels of the columns; in a symbol, which has no dicts, the columns themselves."""
    if STATE.trace is not None and STATE.trace.root.symbolic:
        return x
    names = classlabels_strings or classlabels_int64s or ()
    return [dict(zip(names, numbers)) for numbers in np.atleast_2d(node.host(x)).tolist()]


@row("OneHotEncoder", domain=ML)
def one_hot_encoder(node: Node, x: Given, *, cats_int64s: Any = None, cats_strings: Any = None, zeros: int = 1) -> Any:
    if cats_strings:
        hot = (node.host(x)[..., None] == np.array(cats_strings, object)).astype(np.float32)
    else:
        whole = node.cast(node.lift(x), np.int64)
        result = ops._npi_equal(ops.expand_dims(whole, axis=node.rank(x)), _table(node, cats_int64s, dtype=np.int64))
        hot = node.cast(result, np.float32)
    if not zeros and not node.host(hot).any(-1).all():
        raise ArgumentError("OneHotEncoder: an element is not one of the categories, and zeros=0")
    return hot

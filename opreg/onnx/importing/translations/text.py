"""Rows of text, label and tree operators, which are computed on the host."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.errors import ArgumentError, AttrError

from ..graph import Node
from ..rows import Host, row
from .shapes import check_size


def _texts(values: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(shape)


@row("StringConcat")
def string_concat(node: Node, a: Host, b: Host) -> Any:
    left, right = np.broadcast_arrays(a, b)
    return _texts([x + y for x, y in zip(left.reshape(-1), right.reshape(-1))], left.shape)


@row("StringSplit")
def string_split(node: Node, x: Host, *, delimiter: str | None = None, maxsplit: int = -1) -> Any:
    parts = [text.split(delimiter or None, maxsplit) if text or delimiter else [] for text in x.reshape(-1)]
    width = max(map(len, parts), default=0)
    flat = [word for words in parts for word in [*words, *[""] * (width - len(words))]]
    return _texts(flat, (*x.shape, width)), np.array([len(words) for words in parts], np.int64).reshape(x.shape)


@row("RegexFullMatch")
def regex_full_match(node: Node, x: Host, *, pattern: str) -> Any:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise AttrError(f"pattern={pattern!r}: {error}") from None
    return np.array([expression.fullmatch(text) is not None for text in x.reshape(-1)], bool).reshape(x.shape)


@row("StringNormalizer")
def string_normalizer(node: Node, x: Host, *, case_change_action: str = "NONE", is_case_sensitive: int = 0,
                      locale: str = "", stopwords: Any = None) -> Any:
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    change = changes.get(case_change_action)
    if change is None:
        raise AttrError(f"case_change_action={case_change_action!r}: expected NONE, LOWER or UPPER")
    if x.ndim > 2 or (x.ndim == 2 and x.shape[0] != 1):
        raise ArgumentError(f"StringNormalizer takes shapes (n,) and (1, n), got {x.shape}")
    words = list(x.reshape(-1))
    if stopwords:
        if is_case_sensitive:
            words = [word for word in words if word not in stopwords]
        else:
            lower = {word.lower() for word in stopwords}
            words = [word for word in words if word.lower() not in lower]
    words = [change(word) for word in words] or [""]
    return _texts(words, (len(words),) if x.ndim == 1 else (1, len(words)))


@row("TfIdfVectorizer")
def tf_idf(node: Node, x: Host, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
           ngram_counts: Any, ngram_indexes: Any, pool_int64s: Any = None, pool_strings: Any = None,
           weights: Any = None) -> Any:
    pool = list(pool_int64s if pool_int64s is not None else pool_strings or ())
    known: dict[tuple[Any, ...], int] = {}
    ends = [*ngram_counts[1:], len(pool)]
    if any(not 0 <= start <= end <= len(pool) for start, end in zip(ngram_counts, ends)):
        raise AttrError(f"ngram_counts={ngram_counts}: expected ascending indices into a pool of {len(pool)}")
    for size, (start, end) in enumerate(zip(ngram_counts, ends), 1):
        for at in range(start, end, size):
            known[tuple(pool[at:at + size])] = len(known)
    lines = x.reshape(1, -1) if x.ndim == 1 else x
    (width,) = check_size((max(ngram_indexes) + 1,))
    counts = np.zeros((len(lines), width), np.float32)
    for line, total in zip(lines, counts):
        words = line.tolist()
        for size in range(max(min_gram_length, 1), min(max_gram_length, len(ngram_counts)) + 1):
            for skip in range(min(max_skip_count + 1, len(words)) if size > 1 else 1):
                for start in range(len(words) - (size - 1) * (skip + 1)):
                    result = known.get(tuple(words[start:start + size * (skip + 1):skip + 1][:size]))
                    if result is not None:
                        total[ngram_indexes[result]] += 1
    order = np.zeros(width, np.float32)
    for result, index in enumerate(ngram_indexes):
        order[index] = 1.0 if weights is None else weights[result]
    if mode == "IDF":
        counts = (counts > 0) * order
    elif mode == "TFIDF":
        counts = counts * order
    elif mode != "TF":
        raise AttrError(f"mode={mode!r}: expected TF, IDF or TFIDF")
    counts = counts.astype(np.float32)
    return counts[0] if x.ndim == 1 else counts


@row("LabelEncoder", domain="ai.onnx.ml")
def label_encoder(node: Node, x: Host, *, keys_floats: Any = None, keys_int64s: Any = None, keys_strings: Any = None,
                  keys_tensor: Any = None, values_floats: Any = None, values_int64s: Any = None,
                  values_strings: Any = None, values_tensor: Any = None, default_float: float = -0.0,
                  default_int64: int = -1, default_string: str = "_Unused", default_tensor: Any = None,
                  classes_strings: Any = None) -> Any:
    keys = next((each for each in (keys_floats, keys_int64s, keys_strings) if each), None)
    if keys is None and keys_tensor is not None:
        keys = keys_tensor.reshape(-1).tolist()
    values: Any
    if values_tensor is not None:
        values, dtype = values_tensor.reshape(-1).tolist(), values_tensor.dtype
        default: Any = default_tensor.reshape(-1)[0] if default_tensor is not None else {
            "O": default_string, "f": default_float}.get(dtype.kind, default_int64)
    elif values_strings:
        values, dtype, default = values_strings, np.dtype(object), default_string
    elif values_floats:
        values, dtype, default = values_floats, np.dtype(np.float32), default_float
    else:
        values, dtype, default = values_int64s, np.dtype(np.int64), default_int64
    if keys is None or values is None:
        raise AttrError("LabelEncoder: keys or values are missing")
    table = dict(zip(keys, values))
    missing = next((value for key, value in table.items() if key != key), default)
    results = [missing if each != each else table.get(each, default) for each in x.reshape(-1).tolist()]
    return _texts(results, x.shape) if dtype.kind == "O" else np.array(results, dtype).reshape(x.shape)


@row("CategoryMapper", domain="ai.onnx.ml")
def category_mapper(node: Node, x: Host, *, cats_int64s: Any, cats_strings: Any, default_int64: int = -1,
                    default_string: str = "_Unused") -> Any:
    if x.dtype.kind == "O":
        return label_encoder(node, x, keys_strings=cats_strings, values_int64s=cats_int64s, default_int64=default_int64)
    return label_encoder(node, x, keys_int64s=cats_int64s, values_strings=cats_strings, default_string=default_string)


@row("TreeEnsemble", domain="ai.onnx.ml")
def tree_ensemble(node: Node, x: Host, *, aggregate_function: int = 1, leaf_targetids: Any, leaf_weights: Any,
                  membership_values: Any = None, n_targets: int | None = None, nodes_falseleafs: Any,
                  nodes_falsenodeids: Any, nodes_featureids: Any, nodes_hitrates: Any = None,
                  nodes_missing_value_tracks_true: Any = None, nodes_modes: Any, nodes_splits: Any,
                  nodes_trueleafs: Any, nodes_truenodeids: Any, post_transform: int = 0, tree_roots: Any) -> Any:
    members: list[set[float]] = []
    if membership_values is not None:
        current: set[float] = set()
        for value in membership_values.tolist():
            if value != value:
                members.append(current)
                current = set()
            else:
                current.add(value)
        members.append(current)
    sets = iter(members)
    own = {i: next(sets, set()) for i, mode in enumerate(nodes_modes) if mode == 6}
    compare: dict[int, Callable[..., Any]] = {
        0: np.less_equal, 1: np.less, 2: np.greater_equal, 3: np.greater, 4: np.equal, 5: np.not_equal}

    def leaf(line: np.ndarray, at: int) -> int:
        for _ in range(len(nodes_modes) + 1):
            value = line[nodes_featureids[at]]
            if nodes_modes[at] == 6:
                yes = float(value) in own[at]
            else:
                yes = bool(compare[int(nodes_modes[at])](value, nodes_splits[at]))
            if value != value and nodes_missing_value_tracks_true:
                yes = bool(nodes_missing_value_tracks_true[at])
            at, last = ((nodes_truenodeids[at], nodes_trueleafs[at]) if yes
                        else (nodes_falsenodeids[at], nodes_falseleafs[at]))
            if last:
                return at
        raise ArgumentError("TreeEnsemble: its nodes form a cycle")

    joins: dict[int, Callable[..., Any]] = {0: np.mean, 1: np.sum, 2: np.min, 3: np.max}
    targets = n_targets or max(leaf_targetids) + 1
    result = np.zeros((len(x), targets), x.dtype)
    for line, out in zip(x, result):
        results: list[list[Any]] = [[] for _ in range(targets)]
        for root in tree_roots:
            at = leaf(line, root)
            results[leaf_targetids[at]].append(leaf_weights[at])
        for i, weights in enumerate(results):
            if weights:
                out[i] = joins[aggregate_function](weights)
    if post_transform:
        raise ArgumentError(f"TreeEnsemble: post_transform={post_transform} is not computed")
    return result

"""Subscripts of tensors follow NumPy's rules: reads, writes and gradients, eagerly and compiled."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, nn, ops
from opreg.errors import SubscriptError
from tests.questions import of_each

X = np.arange(12, dtype=np.float32).reshape(3, 4)
T, F = True, False

#: Subscripts of an array of shape (3, 4), with NumPy's form of them.
KEYS = {
    "one": 1, "negative": -1, "numpy's integer": np.int8(-2), "slice": slice(1, None), "nothing": slice(2, 1),
    "backwards": slice(None, None, -2), "None": None, "ellipsis": ..., "empty tuple": (), "pair": (1, 2),
    "behind": (..., 1), "between": (0, ..., 1), "new axes": (None, 1, None), "true": True, "false": False,
    "numpy's truth": np.True_, "slice and true": (slice(0, 2), True), "true and one": (True, 1),
    "one and true": (1, True), "true twice": (True, True),
    "true and false": (True, False), "ellipsis and true": (..., True), "true and list": (True, [0, 1]),
    "list": [0, 2, 0], "negative list": [-1, 0], "empty list": [], "nested list": [[0, 1], [2, 0]], "range": range(2),
    "two tuples": ((0, 1), (1, 2)), "a tuple alone": ((0, 1),), "tuple and one": ((0, 2), 1),
    "column": ([[0], [2]], [1, 3]),
    "list, None": ([0, 1], None, [0, 1]), "list apart": ([0, 1], slice(None), None), "empty and one": ([], 0),
    "mask": [T, F, T], "mask of columns": (slice(None), [T, F, F, T]), "mask and one": ([T, F, T], 0),
    "two masks": ([T, F, T], [F, T, F, T]), "mask of all": X > 5, "mask behind": (..., [F, T, F, F]),
    "no places": [F, F, F], "array": np.array([2, 0]), "array of rank 2": np.array([[0, 1], [2, 0]]),
    "array without axes": np.array(2), "truth without axes": np.array(True), "mask of all in a tuple": (X > 5,),
    **{f"array of {kind}": np.array([2, 0], kind) for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32",
                                                               "int64", "uint64")},
}


def as_tensors(key):
    """A subscript with tensors in place of its arrays and lists of integers or booleans."""
    if isinstance(key, tuple):
        return tuple(map(as_tensors, key))
    if isinstance(key, (list, range)):
        return Tensor(np.asarray(key, None if len(key) else np.int64))
    return Tensor(key) if isinstance(key, np.ndarray) else key


def given(key, number):
    """A subscript in one of several forms: unchanged, with tensors, or with tensors for integers as well."""
    if number == 0:
        return key
    key = as_tensors(key)
    if number == 2:
        key = tuple(map(as_tensor, key)) if isinstance(key, tuple) else as_tensor(key)
    return key


def as_tensor(part):
    return Tensor(part) if isinstance(part, (int, np.integer)) else part


def written(array, key, value):
    """A copy of a NumPy array or tensor with another value in one part."""
    changed = array.copy()
    changed[key] = value
    return changed


def same(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_array_equal(found.asnumpy(), expected)


# ------------------------------------------------------------------------------------------- gradients, by index


def gradient_read(shape, key, weights):
    """The gradient of a weighted sum of ``x[key]``."""
    result = np.zeros(shape, np.float32)
    np.add.at(result, key, weights)
    return result


def gradients_written(shape, key, value, weights):
    """Gradients of a weighted sum of ``x`` after ``x[key] = value``, for ``x`` and the value; of several writes to one
    element only the last counts."""
    places = np.arange(weights.size).reshape(shape)
    named = places[key]
    writers = np.full(shape, -1)
    writers[key] = np.arange(named.size).reshape(named.shape)
    kept = np.where(writers < 0, weights, 0)
    shares = np.zeros(named.size, np.float32)
    shares[writers[writers >= 0]] = weights[writers >= 0]
    shares = shares.reshape(named.shape)
    extra = shares.ndim - value.ndim
    shares = shares.sum(tuple(range(extra))) if extra > 0 else shares.reshape((1,) * -extra + shares.shape)
    over = tuple(i for i, (n, m) in enumerate(zip(value.shape, shares.shape)) if n == 1 != m)
    return kept, shares.sum(over, keepdims=True).reshape(value.shape)


def check_read(x, key, form):
    """Checks ``x[key]`` and its gradient, in both modes."""
    expected = np.asarray(x[key])
    weights = np.cos(np.arange(expected.size, dtype=np.float32)).reshape(expected.shape)
    subscript, tensor = given(key, form), Tensor(x)
    for run in (lambda f: f, ms.jit):
        same(run(lambda x: x[subscript])(tensor), expected)
        found = run(ms.grad(lambda x: (x[subscript] * Tensor(weights)).sum()))(tensor)
        np.testing.assert_allclose(found.asnumpy(), gradient_read(x.shape, key, weights), rtol=1e-5)


def check_write(x, key, value, form):
    """Checks ``x[key] = value`` and its gradients, in both modes."""
    expected = written(x, key, value)
    weights = np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape)
    subscript, tensor, part = given(key, form), Tensor(x), Tensor(value)
    for run in (lambda f: f, ms.jit):
        same(run(lambda x, part: written(x, subscript, part))(tensor, part), expected)
        loss = ms.grad(lambda x, part: (written(x, subscript, part) * Tensor(weights)).sum(), (0, 1))
        found = run(loss)(tensor, part)
        for one, right in zip(found, gradients_written(x.shape, key, value, weights)):
            np.testing.assert_allclose(one.asnumpy(), right, rtol=1e-5, atol=1e-6)


FORMS = {"as it is": 0, "tensors": 1, "all tensors": 2}


@of_each(itertools.product(KEYS, FORMS), by=lambda case: case[0])
def test_reads_by_subscripts_equal_numpys(case):
    name, form = case[0], FORMS[case[1]]
    check_read(X, KEYS[name], form)


@of_each(itertools.product(KEYS, FORMS), by=lambda case: case[0])
def test_assignments_to_subscripts_equal_numpys(case):
    name, form = case[0], FORMS[case[1]]
    key = KEYS[name]
    check_write(X, key, np.float32(7.5).reshape(()), form)
    check_write(X, key, np.sin(np.arange(X[key].size, dtype=np.float32)).reshape(np.shape(X[key])), form)


@pytest.mark.parametrize("name", KEYS)
def test_subscripts_may_be_arguments_of_a_compiled_function(name):
    """Tensors of a subscript may be inputs of a compiled function, with other values in each call."""
    key = KEYS[name]
    parts = list(key) if isinstance(key, tuple) else [key]
    places = [i for i, part in enumerate(parts) if isinstance(part, (list, np.ndarray, int, np.integer))
              and not isinstance(part, bool)]

    def read(x, *tensors):
        full = list(parts)
        for i, tensor in zip(places, tensors):
            full[i] = tensor
        return x[tuple(full) if isinstance(key, tuple) else full[0]]

    tensors = [as_tensor(as_tensors(parts[i])) for i in places]
    compiled = ms.jit(read)
    for _ in range(2):
        same(compiled(Tensor(X), *tensors), np.asarray(X[key]))
    arrays = [np.asarray(parts[i], None if np.size(parts[i]) else np.int64) for i in places]
    others = [np.roll(array, 1, -1) if array.ndim else array for array in arrays]
    moved = list(parts)
    for i, other in zip(places, others):
        moved[i] = other
    expected = np.asarray(X[tuple(moved) if isinstance(key, tuple) else moved[0]])
    same(compiled(Tensor(X), *map(Tensor, others)), expected)
    same(compiled(Tensor(X), *tensors), np.asarray(X[key]))


# ------------------------------------------------------------------------------------------------- assigned values


@of_each(itertools.product(
    ["float32", "float16", "int32", "int8", "uint8", "int64", "bool"],
    [2, 1.75, True, [1, 2, 3, 4], [[1.5], [2.5]], np.float64(2.5), np.array([1, 0, 3, 4], "int8"), 300, -1,
     np.array([1.75, 2.25, -1.0, 0.0])], [False, True]), by=lambda case: case[0])
def test_values_of_another_dtype_are_cast(kind, value, compiled):
    """Fractions are cut off and integers wrap around, as in a cast of NumPy."""
    x = np.zeros((2, 4), kind)
    expected = written(x, slice(None), np.asarray(value).astype(kind))

    def write(x):
        y = x.copy()
        y[:] = value
        return y

    same((ms.jit(write) if compiled else write)(Tensor(x)), expected)
    held = Tensor(np.asarray(value))
    same((ms.jit(written) if compiled else written)(Tensor(x), slice(None), held), expected)


@pytest.mark.parametrize("key", [[0, 2], [T, F, T], (slice(None), [0, 0, 1]), X > 5, np.array([-1]), (1, 2), True])
def test_in_place_arithmetic_on_a_subscript_equals_numpys(key):
    for change in (operator.iadd, operator.imul, operator.isub):
        for form in (0, 1):
            x, y, subscript = X.copy(), Tensor(X), given(key, form)
            x[key] = change(x[key], 2)
            y[subscript] = change(y[subscript], 2)
            same(y, x)


# ------------------------------------------------------------------------------------------------- refused subscripts

REFUSED = {
    "mask too short": [T, T], "mask too long": [T, F, T, F], "mask of columns": (slice(None), [T, F, T]),
    "mask of another shape": np.ones((3, 3), bool), "mask of too many axes": np.ones((3, 4, 5), bool),
    "mask and too many": (X > 5, 0), "mask without numbers": np.zeros(0, bool),
    "arrays that do not broadcast": ([0, 1], [1, 2, 3]), "tuples that do not broadcast": ((0, 1), (1, 2, 3)),
    "list out of range": [0, 3], "negative out of range": [-4],
    "out of range": 3, "far out of range": -4, "second out of range": (0, 4), "too many": (0, 0, 0),
    "two ellipses": (..., 0, ...), "real": 1.5, "real in a tuple": (0, 1.5), "real list": [1.5],
    "real array": np.array([1.0]),
    "text": "a", "dict": {}, "none in a list": [None], "array out of range": (np.array([0, 3]), 0),
    "false and list": (False, [0, 1]),
}


@pytest.mark.parametrize("form", [0, 1], ids=["as it is", "tensors"])
@pytest.mark.parametrize("name", REFUSED)
def test_wrong_subscripts_raise_numpys_class_of_error(name, form):
    """The error is of NumPy's class, and also of MindSpore's class if this differs."""
    try:
        key = given(REFUSED[name], form)
    except (TypeError, ValueError):
        pytest.skip("no tensor holds this")
    for run in (lambda f: f, ms.jit):
        for call in (lambda x: x[key], lambda x: written(x, key, 1.0)):
            with pytest.raises(SubscriptError if form == 0 else IndexError):
                run(call)(Tensor(X))
    assert issubclass(SubscriptError, IndexError) and issubclass(SubscriptError, ValueError)
    recorded = Tensor(X)
    recorded.attach_grad()
    with ms.autograd.record(), pytest.raises(SubscriptError):
        recorded[key]


def test_values_that_do_not_fit_are_refused():
    for key, value in [(0, [1, 2]), ([T, F, T], [[1, 2], [3, 4]]), ((slice(None), [0, 1]), [1, 2, 3])]:
        for run in (lambda f: f, ms.jit):
            with pytest.raises(ValueError, match=r"broadcast|assign"):
                run(lambda x: written(x, key, value))(Tensor(X))


def test_bounds_are_tensors():
    x = Tensor(X)
    for run in (lambda f: f, ms.jit):
        same(run(lambda x, low, high: x[low:high, ::2])(x, Tensor(1), Tensor(3)), X[1:3, ::2])
    same(x[[Tensor(0), Tensor(2)]], X[[0, 2]])


# ------------------------------------------------------------------------------------------ indices of functions

#: Functions of indices along an axis of length three, and their results for the indices 2, -1, -3.
INDICES = {
    "gather": (lambda x, i: ops.gather(x, i, 0), [3, 3, 1]),
    "index_select": (lambda x, i: ops.index_select(x, 0, i), [3, 3, 1]),
    "gather behind": (lambda x, i: ops.gather(x.reshape((1, 3)), i, 1).reshape((-1,)), [3, 3, 1]),
    "gather of batches": (lambda x, i: ops.gather(x[None], i[None], 1, 1)[0], [3, 3, 1]),
    "gather_elements": (lambda x, i: ops.gather_elements(x, 0, i), [3, 3, 1]),
    "gather_elements behind": (
        lambda x, i: ops.gather_elements(ops.stack([x, x + 3]), 1, ops.stack([i, i]))[1], [6, 6, 4]),
    "gather_nd": (lambda x, i: ops.gather_nd(x, i.reshape((-1, 1))), [3, 3, 1]),
    "take": (lambda x, i: ops.take(x, i, mode="raise"), [3, 3, 1]),
    "embedding": (lambda x, i: ops.embedding(i, x.reshape((3, 1))).reshape((-1,)), [3, 3, 1]),
    "Embedding": (lambda x, i: TABLE(i).reshape((-1,)), [3, 3, 1]),
    "index_fill": (lambda x, i: ops.index_fill(x, 0, i, 9.0), [9, 2, 9]),
    "index_add": (lambda x, i: ops.index_add(x, i, x, 0), [4, 2, 6]),
    "scatter": (lambda x, i: ops.scatter(x, 0, i, x * 10), [30, 2, 20]),
    "scatter_nd": (lambda x, i: ops.scatter_nd(i.reshape((-1, 1)), x, (3,)), [3, 0, 3]),
    "tensor_scatter_add": (lambda x, i: ops.tensor_scatter_add(x, i.reshape((-1, 1)), x), [4, 2, 6]),
    "tensor_scatter_max": (lambda x, i: ops.tensor_scatter_max(x, i.reshape((-1, 1)), x + 1), [4, 2, 3]),
    "tensor_scatter_mul": (lambda x, i: ops.tensor_scatter_mul(x, i.reshape((-1, 1)), x), [3, 2, 6]),
    "tensor_scatter_update": (lambda x, i: ops.tensor_scatter_update(x, i.reshape((-1, 1)), x * 10), [30, 2, 20]),
    "nll_loss": (lambda x, i: ops.nll_loss(ops.stack([x] * 3), i, reduction="none"), [-3, -3, -1]),
    "segments": (lambda x, i: ops.unsorted_segment_sum(x, ops.maximum(i, 0), 3), [5, 0, 1]),
}
TABLE = nn.Embedding(3, 1, embedding_table=Tensor([[1.0], [2.0], [3.0]]))


@pytest.mark.parametrize("kind", ["int64", "int32", "int8"])
@pytest.mark.parametrize("name", INDICES)
def test_indices_count_from_the_end_and_are_refused_beyond(name, kind):
    function, expected = INDICES[name]
    x = Tensor([1.0, 2.0, 3.0])
    for run in (lambda f: f, ms.jit):
        found = run(function)(x, Tensor([2, -1, -3]).astype(kind))
        np.testing.assert_array_equal(found.asnumpy(), expected)
        beyond = [3, 0, 0] if name == "segments" else [-4, 0, 0]  # negative indices of segments are left out
        for wrong in ([0, 3, 0], beyond):
            with pytest.raises(IndexError):
                run(function)(x, Tensor(wrong).astype(kind))


def test_indices_are_integers():
    for call in (lambda i: ops.gather(Tensor([1.0]), i, 0), lambda i: ops.embedding(i, Tensor([[1.0]])), TABLE):
        with pytest.raises(TypeError, match="indices must be integers"):
            call(Tensor([0.0]))


# ------------------------------------------------------------------------------------------------ at random


class Source:
    """Random shapes and subscripts.

    Examples
    --------
    >>> shape, key = Source(3).case()
    """

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def choose(self, *options):
        return options[self.rng.integers(len(options))]

    def case(self):
        rng = self.rng
        shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 4], rng.integers(0, 5), p=[.08, .2, .24, .24, .24]))
        self.broadcast = self.choose((), (1,), (2,), (3,), (2, 2), (2, 1), (0,))
        parts, axis = [], 0
        while axis < len(shape) and rng.random() < .8:
            part, axes = self.part(shape, axis)
            parts.append(part)
            axis += axes
            while rng.random() < .15:
                parts.append(self.choose(None, True, None, self.choose(True, False)))
        if rng.random() < .3:
            back = [i for i, part in enumerate(parts) if not (isinstance(part, np.ndarray) and part.dtype == bool)]
            if not back or rng.random() < .5:
                parts.append(...)
        if rng.random() < .1:
            parts.insert(0, self.choose(None, True, 5, -7))  # the last two are often out of range
        if len(parts) == 1 and rng.random() < .7 and not isinstance(parts[0], tuple):
            return shape, parts[0]
        return shape, tuple(parts)

    def part(self, shape, axis):
        rng, n = self.rng, shape[axis]
        kind = self.choose("int", "int", "slice", "slice", "array", "array", "list", "tuple", "range", "mask", "masks")
        if kind == "int":
            return self.choose(int, np.int64, np.int8)(rng.integers(-n, n)) if n else slice(None), 1
        if kind == "slice":
            return slice(*[None if rng.random() < .4 else int(rng.integers(-n - 2, n + 3)) for _ in range(2)],
                         None if rng.random() < .5 else self.choose(1, 2, -1, -2, 3)), 1
        if kind == "mask":
            return self.choose(list, np.asarray)(rng.random(n) < .6) if n else slice(None), 1
        if kind == "masks":
            axes = int(rng.integers(1, len(shape) - axis + 1))
            return rng.random(shape[axis:axis + axes]) < .5, axes
        if kind == "range":
            return range(int(rng.integers(0, n + 1))), 1
        wide = self.broadcast[self.choose(0, 0, 1):] if self.broadcast else ()
        wide = tuple(self.choose(length, length, 1) for length in wide)
        if not n and np.prod(wide):
            wide = (0,)
        places = rng.integers(-n, max(n, 1), wide) if n else np.zeros(wide, np.int64)
        if kind == "array":
            kind = self.choose("int64", "int32", "int8", "uint8", "uint64") if (places >= 0).all() else "int16"
            return places.astype(kind), 1
        return (places.tolist() if kind == "list" else totuple(places.tolist())) if places.ndim else int(places), 1

    def value(self, shape):
        """Numbers that broadcast to a shape."""
        rng = self.rng
        kept = shape[int(rng.integers(0, len(shape) + 1)):] if rng.random() < .4 else shape
        kept = tuple(1 if rng.random() < .25 else n for n in kept)
        kept = (1,) * int(rng.integers(0, 2)) + kept if rng.random() < .2 and kept == shape and shape else kept
        return rng.standard_normal(kept).astype(np.float32)


def totuple(nested):
    return tuple(map(totuple, nested)) if isinstance(nested, list) else nested


def numpy_key(key):
    """A subscript for NumPy, which needs integer arrays in place of empty lists."""
    if isinstance(key, tuple):
        return tuple(map(numpy_part, key))
    return numpy_part(key)


def numpy_part(part):
    if isinstance(part, (list, tuple, range)):
        array = np.asarray(part)
        return array if array.size else array.astype(np.int64)
    return part


def try_one(seed):
    """Compares a random subscript with NumPy."""
    source = Source(seed)
    shape, key = source.case()
    x = source.rng.standard_normal(shape).astype(np.float32)
    theirs = numpy_key(key)
    try:
        part = x[theirs]
    except IndexError:
        for run in (lambda f: f, ms.jit):
            with pytest.raises(IndexError):
                run(lambda x: x[key])(Tensor(x))
        return
    form = int(source.rng.integers(0, 2))
    key = key if form == 0 else as_tensors_of(key)
    expected = np.asarray(part)
    weights = source.rng.standard_normal(expected.shape).astype(np.float32)
    value = source.value(expected.shape)
    try:
        changed = written(x, theirs, value)
    except (TypeError, ValueError):
        value = np.float32(2.0).reshape(())
        changed = written(x, theirs, value)
    heads = source.rng.standard_normal(shape).astype(np.float32)
    tensor, stored = Tensor(x), Tensor(value)
    for run in (lambda f: f, ms.jit):
        same(run(lambda x: x[key])(tensor), expected)
        found = run(ms.grad(lambda x: (x[key] * Tensor(weights)).sum()))(tensor)
        np.testing.assert_allclose(found.asnumpy(), gradient_read(shape, theirs, weights), rtol=1e-4, atol=1e-5)
        same(run(lambda x, part: written(x, key, part))(tensor, stored), changed)
        found = run(ms.grad(lambda x, part: (written(x, key, part) * Tensor(heads)).sum(), (0, 1)))(tensor, stored)
        for one, right in zip(found, gradients_written(shape, theirs, value, heads)):
            np.testing.assert_allclose(one.asnumpy(), right, rtol=1e-4, atol=1e-5)
    moved, added = Tensor(x), x.copy()
    moved[key] += 1
    added[theirs] += 1
    same(moved, added)


def as_tensors_of(key):
    """A subscript with tensors for its arrays, lists and tuples of integers."""
    return tuple(map(as_tensors_part, key)) if isinstance(key, tuple) else as_tensors_part(key)


def as_tensors_part(part):
    return Tensor(numpy_part(part)) if isinstance(part, (list, tuple, range, np.ndarray)) else part


@pytest.mark.parametrize("seed", range(8))
def test_random_subscripts_equal_numpys(seed):
    for number in range(20 * seed, 20 * seed + 20):
        try:
            try_one(number)
        except Exception as error:
            error.add_note(f"Source({number}).case() = {Source(number).case()}")
            raise

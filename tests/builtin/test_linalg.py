"""Linear algebra: gradients with respect to symmetric matrices, the identities that define the operators, and
errors."""

from __future__ import annotations

import numpy as np
import pytest

import opreg.ndarray as nd
from opreg import np as mxnp
from opreg.core.registry import get
from opreg.core.spec import ANY
from opreg.errors import DTypeError, ShapeError
from opreg.ndarray import autograd
from tests.questions import of_each

_X = np.random.default_rng(0).standard_normal((2, 4, 4))
SYMMETRIC = _X @ _X.swapaxes(-1, -2) + np.eye(4)


def slopes(name: str, data: np.ndarray, heads: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The gradient, and central differences in symmetric directions."""
    def value(x):
        outs = getattr(nd.linalg, name)(nd.array(x, dtype="float64"))
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        return sum(float(np.sum(out.asnumpy() * head)) for out, head in zip(outs, heads))

    x = nd.array(data, dtype="float64")
    x.attach_grad()
    with autograd.record():
        outs = getattr(nd.linalg, name)(x)
    autograd.backward(list(outs) if isinstance(outs, (list, tuple)) else [outs],
                      [nd.array(head, dtype="float64") for head in heads])
    expected, step = np.zeros_like(data), 1e-6
    for *stack, i, j in np.ndindex(*data.shape):
        move = np.zeros_like(data)
        move[(*stack, i, j)] += step / 2
        move[(*stack, j, i)] += step / 2
        expected[(*stack, i, j)] = (value(data + move) - value(data - move)) / (2 * step)
    return x.grad.asnumpy(), expected


def test_the_gradient_of_potrf_agrees_with_differences():
    found, expected = slopes("potrf", SYMMETRIC, [np.random.default_rng(1).standard_normal((2, 4, 4))])
    assert np.allclose(found, expected, atol=1e-7)
    assert np.array_equal(found, found.swapaxes(1, 2)) or np.allclose(found, found.swapaxes(1, 2))


def test_the_gradient_of_syevd_agrees_with_differences():
    generator = np.random.default_rng(1)
    heads = [generator.standard_normal((2, 4, 4)), generator.standard_normal((2, 4))]
    found, expected = slopes("syevd", SYMMETRIC, heads)
    assert np.allclose(found, expected, atol=1e-6)


def test_gradient_of_equal_eigenvalues_is_finite():
    x = nd.array(np.eye(3), dtype="float64")
    x.attach_grad()
    with autograd.record():
        _, values = nd.linalg.syevd(x)
    values.backward()
    assert np.allclose(x.grad.asnumpy(), np.eye(3))


def test_decompositions_compose_again():
    a = nd.array(SYMMETRIC, dtype="float64")
    u, values = (each.asnumpy() for each in nd.linalg.syevd(a))
    assert np.allclose(u.swapaxes(1, 2) @ (values[..., None] * u), SYMMETRIC)
    assert (np.take_along_axis(u, np.abs(u).argmax(-1)[..., None], -1) > 0).all()
    q, low = (each.asnumpy() for each in nd.linalg.gelqf(nd.array(SYMMETRIC[:, :3], dtype="float64")))
    assert np.allclose(low @ q, SYMMETRIC[:, :3]) and np.allclose(q @ q.swapaxes(1, 2), np.eye(3))
    low = nd.linalg.potrf(a)
    assert np.allclose(nd.linalg.potri(low).asnumpy(), np.linalg.inv(SYMMETRIC))
    assert np.allclose(2 * nd.linalg.sumlogdiag(low).asnumpy(), nd.linalg.slogdet(a)[1].asnumpy())


def test_a_singular_matrix_has_no_gradient_of_its_determinant():
    x = nd.array(np.ones((2, 2)), dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = nd.linalg.det(x)
    y.backward()
    assert np.array_equal(x.grad.asnumpy(), np.zeros((2, 2)))


def test_a_matrix_that_cannot_be_decomposed_raises_an_error():
    with pytest.raises(np.linalg.LinAlgError):
        nd.linalg.potrf(nd.array(-np.eye(2)))
    with pytest.raises(np.linalg.LinAlgError):
        nd.linalg.inverse(nd.zeros((2, 2)))


@of_each([
    ("potrf", [(2, 3)], {}, "(..., n, n)"),
    ("det", [(3,)], {}, "matrix"),
    ("gelqf", [(3, 2)], {}, "columns >= rows), got (3, 2)"),
    ("gemm2", [(2, 3), (2, 3)], {}, "B: expected shape (3, columns), got (2, 3)"),
    ("gemm2", [(2, 3), (2, 3)], {"transpose_a": True, "transpose_b": True}, "B: expected shape (columns, 2), got"),
    ("gemm2", [(2, 3), (1, 3, 2)], {}, "B: expected shape (3, columns), got (1, 3, 2)"),
    ("gemm2", [(2, 3), (3, 2)], {"axis": 1}, "A: expected shape (axis0, rows, ..., inner), got (2, 3)"),
    ("gemm2", [(2, 2, 3), (1, 3, 2)], {}, "B: expected shape (2, 3, columns), got (1, 3, 2)"),
    ("gemm", [(2, 3), (3, 2), (2, 3)], {}, "C: expected shape (2, 2)"),
    ("trsm", [(3, 3), (2, 3)], {}, "B: expected shape (3, m), got (2, 3)"),
    ("trmm", [(3, 3), (3, 2)], {"rightside": True}, "B: expected shape (m, 3), got (3, 2)"),
    ("extractdiag", [(2, 2)], {"offset": 2}, "no such diagonal"),
    ("maketrian", [(4,)], {}, "do not fill a triangle"),
])
def test_shapes_that_do_not_fit_are_refused(name, shapes, attrs, words):
    with pytest.raises(ShapeError) as caught:
        getattr(nd.linalg, name)(*[nd.zeros(shape) for shape in shapes], **attrs)
    assert words in str(caught.value)


def test_unknown_dimensions_stay_unknown():
    op = get("linalg_gemm2")
    assert op.infer_shapes([(2, ANY), (3, 4)], [None], op.complete({}))[1] == [(2, 4)]
    op = get("linalg_maketrian")
    assert repr(op.infer_shapes([(5, ANY)], [None], op.complete({}))[1]) == "[(5, ?, ?)]"


def test_dtypes_are_float32_or_float64():
    with pytest.raises(DTypeError, match="float16"):
        nd.linalg.det(nd.zeros((2, 2), dtype="float16"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("function", [mxnp.linalg.svd, mxnp.linalg.pinv,
                                      lambda a: mxnp.linalg.pinv(a, hermitian=True)])
def test_decompositions_of_infinite_numbers_are_refused(function, value):
    """LAPACK's singular value decomposition of a matrix with an infinity may never end."""
    matrices = np.stack([np.eye(3), np.eye(3) + 0.1]).astype("float32")
    matrices[1, 1, 0] = value
    with pytest.raises(np.linalg.LinAlgError, match="expected finite numbers, got NaN or infinity"):
        function(mxnp.array(matrices))

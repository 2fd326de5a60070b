"""Special functions agree with SciPy's, at poles and ends, and in smaller dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from opreg.elementwise import special_functions as special

scipy_special = pytest.importorskip("scipy.special")


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(all="ignore"):
        return float(np.max(np.where(same, 0.0, np.abs(found - expected) / np.abs(expected))))


EDGES = [np.inf, -np.inf, np.nan, -0.0]
SPREAD = np.concatenate([np.linspace(-6, 6, 4001), 10.0 ** np.arange(-300, 1, 5), EDGES])
INSIDE = np.concatenate([np.linspace(-1, 1, 4001), 1 - 10.0 ** np.arange(-16, 0), [1e-300, np.nan, 1.5]])
POSITIVE = np.concatenate([np.linspace(0.01, 30, 4001), np.linspace(30, 175, 1001), [1e-300, 1e-10, np.inf]])
NEGATIVE = np.linspace(-9.95, -0.05, 100)


@pytest.mark.parametrize("name, x, tolerance", [
    ("erf", SPREAD, 1e-15),
    ("erfinv", INSIDE, 2e-14),
    ("gamma", POSITIVE, 5e-15), ("gamma", NEGATIVE, 5e-15),
    ("gammaln", POSITIVE[np.abs(POSITIVE - 1.5) > 0.7], 5e-15), ("gammaln", NEGATIVE, 1e-13),
    *[(name, np.outer([1, 7, 118], SPREAD[np.isfinite(SPREAD)]), 3e-15) for name in ("i0", "i1")],
])
def test_special_functions_agree_with_scipy(name, x, tolerance):
    bessel = name in ("i0", "i1")
    with np.errstate(all="ignore"):
        found = special.bessel_i(np, int(name[1]), x) if bessel else getattr(special, name)(np, x)
        expected = getattr(scipy_special, name)(x)
    assert relative(found, expected) < tolerance


def test_gammaln_is_exact_to_its_zeros():
    # From the series about one and two: -euler z + zeta(2) z^2 / 2 and (1 - euler) z.
    z = np.array([1e-6, -1e-8])
    z = (1 + z) - 1
    euler = 0.5772156649015329
    assert relative(special.gammaln(np, 1 + z), -euler * z + np.pi**2 / 12 * z**2) < 1e-12
    z = (2 + z) - 2
    assert relative(special.gammaln(np, 2 + z), (1 - euler) * z + (np.pi**2 / 12 - 0.5) * z**2) < 1e-12


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_polygamma_agrees_with_scipy(order):
    x = np.linspace(0.02, 25, 1000)
    expected = scipy_special.polygamma(order, x)
    assert np.allclose(special.polygamma(np, order, x), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_polygamma_below_zero_is_the_slope_of_the_order_before(order):
    x, step = np.array([-0.3, -1.6, -4.45]), 1e-5

    def before(x):
        return special.polygamma(np, order - 1, x) if order else special.gammaln(np, x)

    expected = (before(x + step) - before(x - step)) / (2 * step)
    assert np.allclose(special.polygamma(np, order, x), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype, tolerance", [("float16", 1e-3), ("float32", 5e-7)])
@pytest.mark.parametrize("name", ["erf", "erfinv", "gamma", "gammaln"])
def test_special_functions_keep_smaller_dtypes(name, dtype, tolerance):
    x = np.linspace(0.05, 0.95, 50).astype(dtype)
    found = getattr(special, name)(np, x)
    assert found.dtype == dtype
    assert relative(found.astype("float64"), getattr(scipy_special, name)(x.astype("float64"))) < tolerance


def test_special_functions_have_their_values_at_poles_and_ends():
    with np.errstate(all="ignore"):
        edge = np.array([0.0, -0.0, -1.0, -2.0, -np.inf])
        np.testing.assert_array_equal(special.gamma(np, edge), [np.inf, -np.inf, np.nan, np.nan, np.nan])
        np.testing.assert_array_equal(special.gammaln(np, edge), [np.inf] * 5)
        edge = np.array([1.0, -1.0, 2.0])
        np.testing.assert_array_equal(special.erfinv(np, edge), [np.inf, -np.inf, np.nan])

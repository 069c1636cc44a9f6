"""Spectral hashing and the principal components it shares with ITQ."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from vdsh.errors import InputError
from vdsh.hashers import SpectralHashing
from vdsh.hashers.baselines.itq import principal_components
from vdsh.hashers.baselines.spectral import smallest_modes


def rectangle(width=3.2, height=2.0, step=0.1):
    """Documents of two terms, evenly in a rectangle."""
    x, y = np.meshgrid(np.arange(0, width + step / 2, step), np.arange(0, height + step / 2, step))
    return np.column_stack([x.ravel(), y.ravel()]).astype(np.float32)


def test_modes_come_in_the_order_of_their_eigenvalues():
    # k / side: 1/3.2 = .31, 1/2 = .5, 2/3.2 = .63, 3/3.2 = .94, 2/2 = 1, 4/3.2 = 1.25
    axes, numbers = smallest_modes(np.array([3.2, 2.0]), 6)
    assert axes.tolist() == [0, 1, 0, 0, 1, 0]
    assert numbers.tolist() == [1, 1, 2, 3, 2, 4]


def test_modes_are_those_of_a_double_loop():
    sides = np.random.default_rng(0).uniform(0.1, 3, 12)
    pairs = [(k / side, i, k) for i, side in enumerate(sides) for k in range(1, 41)]
    axes, numbers = smallest_modes(sides, 40)
    assert [(i, k) for _, i, k in sorted(pairs)[:40]] == list(zip(axes, numbers, strict=True))


def test_bits_cut_a_rectangle_into_waves():
    X = rectangle()
    bits = SpectralHashing(8, weighting="given").fit(X).transform(X)
    modes = [(0, 1), (1, 1), (0, 2), (0, 3), (1, 2), (0, 4), (1, 3), (0, 5)]
    for bit, (axis, k) in zip(bits.T, modes, strict=True):
        wave = np.cos(k * np.pi * X[:, axis] / X[:, axis].max())
        clear = np.abs(wave) > 1e-3  # on the cut itself rounding decides
        share = (bit == (wave > 0))[clear].mean()
        assert share in (0, 1), (axis, k)  # a component may point either way


def test_documents_that_are_all_the_same_get_one_code():
    X = np.ones((20, 5))
    assert len(np.unique(SpectralHashing(16).fit(X).encode(X))) <= 2


def test_fewer_components_mean_shorter_waves():
    X = np.random.default_rng(0).poisson(0.5, (200, 40))
    hasher = SpectralHashing(32, n_components=4, random_state=0).fit(X)
    assert hasher.components_.shape == (40, 4)
    assert set(hasher.axes_.tolist()) == {0, 1, 2, 3}


def test_no_component_at_all_is_refused():
    with pytest.raises(InputError, match="n_components must be at least 1. Got 0"):
        SpectralHashing(8, n_components=0).fit(np.eye(9))


@pytest.mark.parametrize(("shape", "n"), [((90, 40), 4), ((90, 40), 30), ((20, 40), 15)])
def test_components_are_those_of_a_dense_decomposition(shape, n):
    X = csr_array(np.random.default_rng(0).poisson(0.4, shape).astype(np.float32))
    found = principal_components(X, n, check_random_state(0))
    centred = X.toarray() - X.toarray().mean(axis=0)
    _, _, expected = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    np.testing.assert_allclose(np.abs(np.sum(found.axes * expected[:n].T, axis=0)), 1, atol=1e-5)
    np.testing.assert_allclose(found.project(X), centred @ found.axes, atol=1e-5)


def test_components_without_variance_are_left_out():
    X = csr_array(np.repeat(np.eye(3, 8), 7, axis=0))
    assert principal_components(X, 6, check_random_state(0)).axes.shape == (8, 2)

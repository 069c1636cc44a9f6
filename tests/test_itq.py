"""Iterative quantisation."""

import numpy as np
import pytest
from sklearn.utils import check_random_state

from vdsh.errors import InputError
from vdsh.hashers import ITQ
from vdsh.hashers.baselines.itq import principal_components, quantisation_loss, random_rotation


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).poisson(0.4, (300, 40))


@pytest.mark.parametrize(("n_bits", "n_rows"), [(16, 16), (64, 40)])
def test_the_rotation_stays_orthogonal(n_bits, n_rows, X):
    R = ITQ(n_bits, random_state=0).fit(X).rotation_
    assert R.shape == (n_rows, n_bits)
    np.testing.assert_allclose(R @ R.T, np.eye(n_rows), atol=1e-5)


@pytest.mark.parametrize("n_bits", [16, 64])
def test_the_loss_never_rises(n_bits, X):
    losses = np.array(ITQ(n_bits, random_state=0).fit(X).losses_)
    assert len(losses) == 51
    assert (np.diff(losses) <= 1e-5 * losses[0]).all()
    assert losses[-1] < losses[0]


def test_the_loss_ends_below_that_of_plain_components(X):
    hasher = ITQ(16, random_state=0).fit(X)
    inputs = hasher._weigh(hasher._validate(X, reset=False))
    V = principal_components(inputs, 16, check_random_state(0)).project(inputs)
    assert hasher.losses_[-1] < quantisation_loss(V, np.eye(16))


def test_scores_are_centred_rotated_components(X):
    hasher = ITQ(16, random_state=0).fit(X)
    inputs = hasher._weigh(hasher._validate(X, reset=False))
    V = principal_components(inputs, 16, check_random_state(0)).project(inputs)
    np.testing.assert_allclose(hasher.scores(X), V @ hasher.rotation_, atol=1e-5)


def test_a_random_rotation_has_orthonormal_rows():
    R = random_rotation(5, 8, check_random_state(0))
    np.testing.assert_allclose(R @ R.T, np.eye(5), atol=1e-6)


def test_no_iteration_at_all_is_refused(X):
    with pytest.raises(InputError, match="n_iterations must be at least 1. Got 0"):
        ITQ(8, n_iterations=0).fit(X)


def test_every_iteration_is_reported(X):
    reports = []
    ITQ(8, n_iterations=7).fit(X, progress=reports.append)
    assert [(r.epoch, r.epochs, r.unit) for r in reports] == [
        (i, 7, "iteration") for i in range(1, 8)
    ]

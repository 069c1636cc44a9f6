"""KSH: kernel, spectral step, gradient and residue against slow obvious versions."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array

from vdsh.errors import InputError
from vdsh.hashers.baselines.ksh import (
    KSH,
    Residue,
    Similarity,
    refine,
    signs,
    smoothed_cost,
    smoothed_gradient,
    top_eigenvector,
    whitened,
)

LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]] * 20, np.uint8)


def dense_similarity(labels):
    shared = labels.astype(int) @ labels.T.astype(int)
    return np.where(shared > 0, 1.0, -1.0)


@pytest.fixture
def kernel():
    values = np.random.default_rng(0).normal(size=(100, 70)) @ np.diag(np.linspace(0.1, 2, 70))
    values[:, :3] += 3 * LABELS
    return (values - values.mean(axis=0)).astype(np.float32)


def test_similarity_by_label_sets_equals_that_of_all_pairs():
    vectors = np.random.default_rng(0).normal(size=(100, 2))
    np.testing.assert_allclose(Similarity(LABELS) @ vectors, dense_similarity(LABELS) @ vectors)


@pytest.mark.parametrize("size", [20, 70], ids=["dense solver", "Lanczos"])
def test_the_spectral_step_solves_the_generalised_eigenproblem(kernel, size):
    """The paper's K'RK a = v K'K a, with R = n_bits S before the first bit."""
    K = kernel[:, -size:]
    features, whiten = whitened(K, 0.0)
    R = Residue(Similarity(LABELS), 8)
    found = whiten @ top_eigenvector(features.T @ (R @ features), np.random.RandomState(0))
    K = K.astype(np.float64)
    vectors = eigh(K.T @ (8 * dense_similarity(LABELS)) @ K, K.T @ K)[1]
    found, wanted = K @ found, K @ vectors[:, -1]
    cosine = found @ wanted / np.linalg.norm(found) / np.linalg.norm(wanted)
    assert abs(cosine) > 0.999


def test_the_gradient_of_the_smoothed_cost_equals_finite_differences(kernel):
    R = Residue(Similarity(LABELS), 16)
    R.take(signs(kernel[:, 0]))
    a, K = np.random.default_rng(1).normal(size=70) / 10, kernel.astype(np.float64)
    cost, gradient = smoothed_gradient(K, R, a)
    assert cost == pytest.approx(smoothed_cost(K, R, a))
    for i in (0, 7, 69):
        step = np.eye(70)[i] * 1e-5
        slope = (smoothed_cost(K, R, a + step) - smoothed_cost(K, R, a - step)) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_each_bit_shrinks_the_residue(kernel):
    features, _ = whitened(kernel, 0.1)
    R, rng = Residue(Similarity(LABELS), 8), np.random.RandomState(0)
    dense = 8 * dense_similarity(LABELS)
    sizes = [R.mean_square()]
    for _ in range(8):
        start = top_eigenvector(features.T @ (R @ features), rng)
        bit = signs(features @ refine(features, R, start, 30))
        R.take(bit)
        dense -= np.outer(bit, bit)
        sizes.append(R.mean_square())
        assert sizes[-1] == pytest.approx(np.square(dense).mean(), rel=1e-4)
    assert (np.diff(sizes) < 0).all()


def test_gradient_steps_never_make_a_bit_worse(kernel):
    features, _ = whitened(kernel, 0.1)
    R, rng = Residue(Similarity(LABELS), 8), np.random.RandomState(0)
    for _ in range(5):
        start = rng.normal(size=features.shape[1]).astype(np.float32)
        before, after = (signs(features @ refine(features, R, start, n)) for n in (0, 20))
        assert after @ (R @ after) >= before @ (R @ before)


def test_scores_are_sums_of_centred_gaussian_kernels():
    X = np.random.default_rng(0).poisson(1.0, (60, 9)).astype(np.float32)
    y = (X[:, 0] > X[:, 1]).tolist()
    hasher = KSH(8, weighting="given", n_anchors=20, n_labelled=40, random_state=0).fit(X, y)
    anchors = csr_array(
        (hasher.anchor_values_, hasher.anchor_terms_, hasher.anchor_starts_), (20, 9)
    ).toarray()
    distances = np.square(X[:, None] - anchors).sum(axis=-1)
    kernel = np.exp(-distances / (2 * hasher.bandwidth_)) - hasher.kernel_means_
    np.testing.assert_allclose(hasher.scores(X), kernel @ hasher.projection_, atol=1e-4)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_anchors": 0}, "n_anchors must be at least 1. Got 0"),
        ({"n_labelled": 0}, "n_labelled must be at least 1. Got 0"),
        ({"bandwidth": 0.0}, "bandwidth must be above 0 or None. Got 0.0"),
        ({"ridge": -1.0}, "ridge must be at least 0. Got -1.0"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(InputError, match=message):
        KSH(8, **setting).fit(np.eye(10), ["a", "b"] * 5)


def test_a_matrix_in_which_no_direction_stands_out_still_gives_one():
    """More bits than labels can fill leave a flat residue, on which ARPACK gives up."""
    flat = -np.eye(200)
    vector = top_eigenvector(flat, np.random.RandomState(0))
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert np.isfinite(top_eigenvector(np.zeros((200, 200)), np.random.RandomState(0))).all()

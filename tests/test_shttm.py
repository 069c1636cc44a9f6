"""SHTTM: each update against the objective computed entry by entry."""

import numpy as np
import pytest

from vdsh.errors import InputError
from vdsh.hashers.baselines.shttm import SHTTM, Tags, objective, update_documents, update_labels
from vdsh.labels import read_labels

LABELS = read_labels(["a", ["a", "b"], None, "c", [], ["b", "c"], "a"] * 4)
ABSENT, GAMMA, ALPHA = 0.1, 0.3, 0.5


def slow_objective(U, Y, theta):
    """Sum over single documents and labels."""
    total = GAMMA * sum((y - t) @ (y - t) for y, t in zip(Y, theta, strict=True))
    total += ALPHA * sum(u @ u for u in U)
    for i, y in enumerate(Y):
        if LABELS.known[i]:
            for j, u in enumerate(U):
                trust = 1 if LABELS.matrix[i, j] else ABSENT
                total += trust * (LABELS.matrix[i, j] - u @ y) ** 2
    return total


@pytest.fixture
def theta():
    return np.random.default_rng(0).dirichlet(np.ones(5), 28)


def test_the_objective_equals_the_sum_over_single_entries(theta):
    U, Y = np.random.default_rng(1).normal(size=(3, 5)), theta + 0.1
    found = objective(Tags.of(LABELS, ABSENT), U, Y, theta, GAMMA, ALPHA)
    assert found == pytest.approx(slow_objective(U, Y, theta))


def test_each_update_lowers_the_objective(theta):
    tags, Y = Tags.of(LABELS, ABSENT), theta
    U = np.random.default_rng(1).normal(size=(3, 5))
    costs = [slow_objective(U, Y, theta)]
    for _ in range(5):
        U = update_labels(tags, Y, ALPHA)
        costs.append(slow_objective(U, Y, theta))
        Y = update_documents(tags, U, theta, GAMMA)
        costs.append(slow_objective(U, Y, theta))
    assert (np.diff(costs) < 0).all()


def test_no_step_away_from_an_update_is_better(theta):
    tags = Tags.of(LABELS, ABSENT)
    U = update_labels(tags, theta, ALPHA)
    best = slow_objective(U, theta, theta)
    Y = update_documents(tags, U, theta, GAMMA)
    best_documents = slow_objective(U, Y, theta)
    rng = np.random.default_rng(2)
    for _ in range(20):
        assert slow_objective(U + 0.01 * rng.normal(size=U.shape), theta, theta) > best
        assert slow_objective(U, Y + 0.01 * rng.normal(size=Y.shape), theta) > best_documents


def test_a_documents_vector_solves_its_normal_equations():
    """One bit by hand: U = (2, 1), T = (1, 0), C = (1, 0.5), gamma = 1, theta = 0.5.

    (4 + 0.5 + 1) y = 2 + 0.5.
    """
    tags = Tags.of(read_labels(np.array([[1, 0]])), 0.5)
    Y = update_documents(tags, np.array([[2.0], [1.0]]), np.array([[0.5]]), 1.0)
    assert Y[0, 0] == pytest.approx(2.5 / 5.5)


def test_unlabelled_documents_keep_their_topics(theta):
    Y = update_documents(Tags.of(LABELS, ABSENT), np.ones((3, 5)), theta, GAMMA)
    same = (Y == theta).all(axis=1)
    assert (same == ~LABELS.known).all()


def test_the_hash_function_is_a_ridge_regression():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (60, 9)).astype(np.float32)
    hasher = SHTTM(8, weighting="given", ridge=2.0, random_state=0).fit(X, ["a", "b"] * 30)
    Y = rng.normal(size=(60, 8))
    hasher._learn_function(hasher._validate(X, reset=False), Y)
    centred = X - X.mean(axis=0)
    W = np.linalg.solve(centred.T @ centred + 2 * np.eye(9), centred.T @ (Y - Y.mean(axis=0)))
    np.testing.assert_allclose(hasher.scores(X), centred @ W + Y.mean(axis=0), atol=1e-2)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"topic_weight": 0.0}, "topic_weight must be above 0. Got 0.0"),
        ({"absent_weight": 2.0}, "absent_weight must be from 0 to 1. Got 2.0"),
        ({"passes": 0}, "passes must be at least 1. Got 0"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(InputError, match=message):
        SHTTM(8, **setting).fit(np.eye(10), ["a", "b"] * 5)

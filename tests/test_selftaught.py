"""Self-taught hashing: the graph, its cuts, and what is learned from them."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from conftest import toy_corpus
from vdsh.errors import InputError
from vdsh.hashers import SelfTaughtHashing
from vdsh.hashers.baselines.selftaught import eigenmap, median_cuts, neighbour_graph
from vdsh.labels import read_labels
from vdsh.metrics.ranking import precision_at, tally
from vdsh.text import BagOfWords


def random_documents(n_docs=60, n_terms=25):
    """Documents with weights that make no two cosines equal."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.5, (n_docs, n_terms)) * rng.uniform(0.5, 1.5, (n_docs, n_terms))
    return csr_array(counts.astype(np.float32))


def cliques(*sizes, bridge=0.0):
    """Groups of documents, all joined inside; `bridge` joins the first of each to the next."""
    W = np.zeros((sum(sizes), sum(sizes)))
    starts = np.cumsum((0, *sizes))
    for start, stop in zip(starts, starts[1:], strict=False):
        W[start:stop, start:stop] = 1
    for a, b in zip(starts, starts[1:-1], strict=False):
        W[a, b] = W[b, a] = bridge
    np.fill_diagonal(W, 0)
    return csr_array(W)


def test_neighbours_are_those_of_a_double_loop():
    X, k = random_documents(), 5
    graph = neighbour_graph(X, k).toarray()
    unit = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    cosines = unit @ unit.T
    expected = np.zeros_like(cosines)
    for i, row in enumerate(cosines):
        nearest = [j for j in np.argsort(-row, kind="stable") if j != i][:k]
        expected[i, nearest] = row[nearest]
    expected = np.maximum(expected, expected.T)
    assert (np.count_nonzero(graph, axis=1) >= k).all()
    np.testing.assert_allclose(np.sort(graph)[:, -k:], np.sort(expected)[:, -k:], atol=1e-6)
    assert (graph == graph.T).all()
    assert not graph.diagonal().any()


def test_documents_without_a_shared_word_are_not_joined():
    graph = neighbour_graph(csr_array(np.array([[1, 0], [2, 0], [0, 3], [0, 0]])), 25)
    assert graph.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("n", [6, 40])  # with and without the iterative solver
def test_the_eigenmap_solves_the_generalised_problem(n):
    graph = neighbour_graph(random_documents(), 5)
    D = np.diag(graph.toarray().sum(axis=0).astype(np.float64))
    L = D - graph.toarray()
    values, expected = eigh(L, D)
    found = eigenmap(graph, n, check_random_state(0))
    np.testing.assert_allclose(np.abs(np.diag(found.T @ D @ expected[:, 1 : n + 1])), 1, atol=1e-4)
    np.testing.assert_allclose(L @ found, D @ found * values[1 : n + 1], atol=1e-5)


@pytest.mark.parametrize("bridge", [0.0, 0.01])
def test_the_first_bit_cuts_two_clusters_apart(bridge):
    vectors = eigenmap(cliques(10, 10, bridge=bridge), 1, check_random_state(0))
    bit = median_cuts(vectors)[:, 0]
    assert bit.tolist() in ([0] * 10 + [1] * 10, [1] * 10 + [0] * 10)


def test_bits_inside_one_component_are_constant_in_the_others():
    graph = cliques(12, 12) + csr_array(np.diag(np.arange(24) / 100.0))
    bits = median_cuts(eigenmap(csr_array(graph), 10, check_random_state(0)))
    inside = [len(set(bits[:12, i])) + len(set(bits[12:, i])) for i in range(1, bits.shape[1])]
    assert set(inside) == {3}


def test_a_cut_that_sets_off_a_handful_is_passed_over():
    vectors = eigenmap(cliques(97, 3), 1, check_random_state(0))
    assert median_cuts(vectors).shape == (100, 0)


def test_unseen_documents_join_their_topic():
    texts, labels = toy_corpus(160)
    bag = BagOfWords().fit(texts[:80])
    X, unseen = bag.transform(texts[:80]), bag.transform(texts[80:])
    hasher = SelfTaughtHashing(16, random_state=0).fit(X)
    train, test = read_labels(labels[:80]).matrix, read_labels(labels[80:]).matrix
    found = precision_at(tally(hasher.encode(unseen), test, hasher.encode(X), train), 20)
    assert found.mean() > 0.95


def test_eight_documents_have_seven_eigenvectors_and_the_first_is_used_twice():
    hasher = SelfTaughtHashing(8, random_state=0).fit(random_documents(8))
    assert (hasher.W_[:, 0] == hasher.W_[:, 7]).all()
    assert (hasher.W_[:, 0] != hasher.W_[:, 1]).any()


def test_empty_documents_take_no_part_in_learning():
    X = random_documents(40).toarray()
    padded = np.vstack([X, np.zeros((5, X.shape[1]))])
    hashers = [SelfTaughtHashing(8, weighting="tf", random_state=0).fit(Y) for Y in (X, padded)]
    assert (hashers[0].encode(X) == hashers[1].encode(X)).all()
    with pytest.raises(InputError, match="nothing to learn from"):
        SelfTaughtHashing(8).fit(np.zeros((9, 3)))


def test_every_bit_is_reported():
    reports = []
    SelfTaughtHashing(16, random_state=0).fit(random_documents(), progress=reports.append)
    assert [(r.epoch, r.epochs, r.unit) for r in reports] == [(i, 16, "bit") for i in range(1, 17)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be at least 1. Got 0"),
        ({"C": 0}, "C must be above 0. Got 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        SelfTaughtHashing(8, **settings).fit(random_documents())

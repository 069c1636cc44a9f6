import numpy as np
import pytest
from scipy.sparse import csr_array, hstack

from vdsh.hashers.vdsh import lsa
from vdsh.hashers.vdsh.lsa import document_vectors, reduce, top_eigenvectors, unit
from vdsh.hashers.vdsh.neighbours import nearest
from vdsh.hashers.vdsh.related import _join, related
from vdsh.text.counts import inverse_document_frequency, weigh


def of_rows(columns, n_terms):
    rows = np.repeat(np.arange(len(columns)), columns.shape[1])
    ones = np.ones(columns.size, np.float32)
    counts = csr_array((ones, (rows, columns.ravel())), shape=(len(columns), n_terms))
    counts.sum_duplicates()
    return counts


def weighted(counts):
    return weigh(counts, "tfidf", inverse_document_frequency(counts))


def test_relatives_share_the_topic_where_words_alone_mislead():
    rng = np.random.default_rng(0)
    topic = np.repeat(np.arange(8), 60)
    of_topic = 20 * topic[:, None] + rng.integers(0, 20, (480, 4))
    of_none = 160 + rng.integers(0, 200, (480, 8))
    counts = of_rows(np.concatenate([of_topic, of_none], axis=1), 360)
    by_words, _ = nearest(counts, 10)
    by_topic = related(counts, 10).neighbours
    agree = [np.mean(topic[ids] == topic[:, None]) for ids in (by_words, by_topic)]
    assert agree[1] > 0.95 and agree[1] > agree[0] + 0.05
    assert (by_topic != np.arange(480)[:, None]).all()
    assert (by_topic == related(counts, 10).neighbours).all()


def test_relatives_of_few_documents():
    def found(rows, k):
        return related(csr_array(np.array(rows, np.float32)), k).neighbours

    assert found(np.eye(3), 2).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert np.sort(found(np.ones((3, 2)), 10)).tolist() == [[1, 2], [0, 2], [0, 1]]
    assert found(np.ones((1, 2)), 5).shape == (1, 0)
    assert found([[1, 0], [1, 0], [0, 0]], 1).tolist() == [[1], [0], [2]]  # one shares no word


def test_progress_of_relatives_ends_at_one():
    reports = []
    related(csr_array(np.ones((3000, 2), np.float32)), 1, progress=reports.append)
    seen = [report.done for report in reports]
    assert seen[-1] == 1 and seen == sorted(seen)


def test_several_hops_join_documents_that_share_no_word():
    """Two matters, each of two halves that some documents join: its halves come to lie together."""
    rng = np.random.default_rng(0)
    first, joint, last = (low + rng.integers(0, 8, (40, 4)) for low in (0, 4, 8))
    matter = np.concatenate([first, joint, last])
    places = related(of_rows(np.concatenate([matter, matter + 16]), 32), 5).places
    halves = places[:40] @ places[80:120].T
    assert halves.mean() > (places[:120] @ places[120:].T).mean() + 0.05


def test_words_with_the_same_company_mean_the_same():
    """Two names for one thing never share a document, but the words around them are the same."""
    rng = np.random.default_rng(0)
    topic = np.repeat([0, 1], 300)
    name = 2 * topic + rng.integers(0, 2, 600)
    around = 4 + 30 * topic[:, None] + rng.integers(0, 30, (600, 5))
    counts = of_rows(np.hstack([name[:, None], around]), 64)
    alone = of_rows(np.arange(4)[:, None], 64)
    both = csr_array(np.vstack([counts.toarray(), alone.toarray()]))
    a, b, c, d = unit(document_vectors(weighted(both))[-4:])
    assert min(a @ b, c @ d) > 0.7 > 0.3 > max(a @ c, a @ d, b @ c, b @ d)


def test_terms_beyond_the_most_frequent_need_documents_for_a_vector(monkeypatch):
    counts = csr_array(np.random.RandomState(0).poisson(0.4, (60, 20)).astype(np.float32))
    rare = csr_array(np.eye(60, 5, dtype=np.float32))  # five terms of one document each
    words = weighted(csr_array(hstack([counts, rare], format="csr")))

    def with_vectors(terms, dependable, most):
        known = {"TERMS": terms, "DEPENDABLE": dependable, "MOST_TERMS": most}
        for name, value in (known | {"SHORT": 0}).items():
            monkeypatch.setattr(f"vdsh.hashers.vdsh.lsa._{name}", value)
        return np.flatnonzero(np.abs(lsa._word_vectors(words)).max(axis=1) > 1e-6).tolist()

    assert with_vectors(8, 2, 100) == list(range(20))
    assert len(with_vectors(8, 2, 12)) == 12
    assert len(with_vectors(8, 61, 100)) == 8
    assert len(with_vectors(23, 61, 100)) == 23


def test_places_have_unit_length_and_a_document_without_words_none():
    rng = np.random.default_rng(0)
    counts = of_rows(rng.integers(0, 50, (200, 6)), 50).toarray()
    counts[7] = 0
    places = related(csr_array(counts), 5).places
    assert np.linalg.norm(np.delete(places, 7, axis=0), axis=1) == pytest.approx(1, abs=1e-5)
    assert np.isfinite(places).all()


def test_given_vectors_decide_who_is_near():
    """Words at random, vectors in three heaps: the neighbours are those of the heap."""
    rng = np.random.default_rng(0)
    counts = of_rows(rng.integers(0, 100, (300, 8)), 100)
    heap = rng.integers(0, 3, 300)
    vectors = (np.eye(3)[heap] + 0.1 * rng.normal(size=(300, 3))).astype(np.float32)
    share = [
        np.mean(heap[found.neighbours] == heap[:, None])
        for found in (related(counts, 10), related(counts, 10, vectors))
    ]
    assert share[0] < 0.5 and share[1] > 0.95


def test_many_dimensions_are_reduced_and_cosines_stay():
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(400, 20)) @ rng.normal(size=(20, 300))).astype(np.float32)
    small = reduce(vectors)
    assert small.shape == (400, 64)
    assert small @ small.T == pytest.approx(unit(vectors) @ unit(vectors).T, abs=1e-3)


def test_a_graph_joins_less_with_documents_that_are_near_to_many():
    n_docs, n = 300, 10
    places = unit(np.random.RandomState(0).normal(size=(n_docs, 30)) + 0.2)
    others = np.arange(1, n_docs) + np.arange(n_docs)[:, None]
    candidates = (others % n_docs).astype(np.int32)
    joined = _join(csr_array((n_docs, 3), dtype=np.float32), places, candidates, n, None)

    cosines = places @ places.T
    np.fill_diagonal(cosines, -1)
    order = np.argsort(-cosines, axis=1)
    crowd = 0.15 * -np.sort(-cosines, axis=1)[:, :10].mean(axis=1)
    for row, found in enumerate(joined):
        best = sorted(order[row, : 2 * n], key=lambda j: crowd[j] - cosines[row, j])
        assert set(found) == set(best[:n])
    often = [np.bincount(ids.ravel(), minlength=n_docs).max() for ids in (joined, order[:, :n])]
    assert often[0] < often[1]


def test_leading_eigenvectors_are_those_of_the_whole_matrix():
    rng = np.random.RandomState(0)
    exact, _ = np.linalg.qr(rng.normal(size=(1_100, 5)))
    wanted = np.array([9.0, -7.0, 5.0, 4.0, -3.0])
    noise = rng.normal(size=(1_100, 1_100)) / 100
    matrix = (exact * wanted) @ exact.T + noise + noise.T
    found, vectors = top_eigenvectors(csr_array(matrix.astype(np.float32)), 12, steps=30, every=1)
    largest = np.argsort(-np.abs(found))[:5]
    values, axes = np.linalg.eigh(matrix)
    true = np.argsort(-np.abs(values))[:5]
    np.testing.assert_allclose(found[largest], values[true], rtol=1e-3)
    assert (np.abs((vectors[:, largest] * axes[:, true]).sum(axis=0)) > 0.999).all()

import itertools

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from vdsh.codes import pack
from vdsh.errors import InputError
from vdsh.metrics.ranking import (
    average_precision,
    cosine_precision,
    ndcg_at,
    precision_at,
    precision_within,
    random_precision,
    recall_at,
    recall_within,
    tally,
)


def all_orders_precision(distances, relevant, k):
    """Average the precision at k over every order that the ties allow: slow and obvious."""
    orders = [
        order
        for order in itertools.permutations(range(len(distances)))
        if all(distances[a] <= distances[b] for a, b in itertools.pairwise(order))
    ]
    return np.mean([np.mean([relevant[i] for i in order[:k]]) for order in orders])


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
def test_precision_is_the_mean_over_all_orders_of_ties(k):
    rng = np.random.default_rng(k)
    bits, query = rng.integers(0, 2, (7, 8)), rng.integers(0, 2, (1, 8))
    bits[3:6] = bits[0]  # a group of ties
    labels = rng.integers(0, 2, (7, 3)).astype(np.uint8)
    query_labels = np.array([[1, 0, 1]], np.uint8)
    found = precision_at(tally(pack(query), query_labels, pack(bits), labels), k)
    distances = (bits != query).sum(axis=1)
    relevant = (labels & query_labels).any(axis=1)
    assert found == pytest.approx([all_orders_precision(distances, relevant, k)])


def test_k_beyond_the_database_takes_all_documents():
    codes, labels = np.zeros((4, 1), np.uint8), np.array([[1], [1], [0], [0]], np.uint8)
    assert precision_at(tally(codes[:1], labels[:1], codes, labels), 100) == pytest.approx([0.5])


def test_codes_and_labels_may_be_longer_than_a_word():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (50, 17), dtype=np.uint8)
    labels = np.eye(50, 130, dtype=np.uint8)
    assert precision_at(tally(codes, labels, codes, labels), 1) == pytest.approx(np.ones(50))


def test_an_empty_database_is_refused():
    with pytest.raises(InputError, match="no documents to search"):
        precision_at(
            tally(np.zeros((1, 1), np.uint8), np.ones((1, 1)), np.zeros((0, 1)), np.zeros((0, 1))),
            100,
        )


def test_random_precision_is_the_share_of_relevant_documents():
    labels = np.array([[1, 0], [1, 0], [0, 1], [1, 1]], np.uint8)
    assert random_precision(labels[:1], labels) == pytest.approx([0.75])


def test_cosine_precision_ranks_by_cosine():
    from scipy.sparse import csr_array

    documents = csr_array(np.array([[1.0, 0, 0], [0.8, 0.6, 0], [0, 1.0, 0], [0, 0, 1.0]]))
    labels = np.array([[1], [1], [0], [1]], np.uint8)
    assert cosine_precision(documents[[0]], labels[:1], documents, labels, k=2) == [1.0]
    assert cosine_precision(documents[[2]], labels[:1], documents, labels, k=2) == [0.5]


def small_ranking(seed, n_docs=7):
    """Codes with ties, their tally, and what the slow versions below need."""
    rng = np.random.default_rng(seed)
    bits, query = rng.integers(0, 2, (n_docs, 8)), rng.integers(0, 2, (1, 8))
    bits[3:6] = bits[0]
    labels = rng.integers(0, 2, (n_docs, 3)).astype(np.uint8)
    query_labels = np.array([[1, 0, 1]], np.uint8)
    counts = tally(pack(query), query_labels, pack(bits), labels)
    return counts, (bits != query).sum(axis=1), (labels & query_labels).any(axis=1)


def mean_over_orders(distances, measure):
    return np.mean(
        [
            measure(list(order))
            for order in itertools.permutations(range(len(distances)))
            if all(distances[a] <= distances[b] for a, b in itertools.pairwise(order))
        ]
    )


@pytest.mark.parametrize("seed", range(5))
def test_average_precision_is_the_mean_over_all_orders_of_ties(seed):
    counts, distances, relevant = small_ranking(seed)

    def of_one_order(order):
        ranks = [i for i, document in enumerate(order, 1) if relevant[document]]
        return np.mean([number / rank for number, rank in enumerate(ranks, 1)])

    assert average_precision(counts) == pytest.approx([mean_over_orders(distances, of_one_order)])


@pytest.mark.parametrize("k", [1, 3, 7])
def test_recall_at_k_is_the_mean_over_all_orders_of_ties(k):
    counts, distances, relevant = small_ranking(k)
    slow = mean_over_orders(distances, lambda order: relevant[order[:k]].sum() / relevant.sum())
    assert recall_at(counts, k) == pytest.approx([slow])


@pytest.mark.parametrize("k", [1, 4, 20, 300])
def test_ndcg_agrees_with_scikit_learn_which_also_averages_over_ties(k):
    rng = np.random.default_rng(k)
    codes, queries = (
        rng.integers(0, 256, (300, 1), np.uint8),
        rng.integers(0, 256, (9, 1), np.uint8),
    )
    labels, query_labels = np.eye(4, dtype=np.uint8)[np.arange(300) % 4], np.eye(4, dtype=np.uint8)
    query_labels = query_labels[np.arange(9) % 4]
    distances = np.unpackbits(codes[None] ^ queries[:, None], axis=2).sum(axis=2)
    relevant = query_labels @ labels.T
    found = ndcg_at(tally(queries, query_labels, codes, labels), k)
    slow = [
        ndcg_score([r], [-d.astype(float)], k=k) for r, d in zip(relevant, distances, strict=True)
    ]
    assert found == pytest.approx(slow)


def test_average_precision_agrees_with_scikit_learn_where_nothing_is_tied():
    distances = np.arange(9)
    bits = np.tri(9, 8, -1, dtype=np.uint8)  # document i differs from the zero code in i bits
    relevant = np.array([1, 0, 0, 1, 1, 0, 1, 0, 0], np.uint8)[:, None]
    counts = tally(np.zeros((1, 1), np.uint8), np.ones((1, 1), np.uint8), pack(bits), relevant)
    assert average_precision(counts)[0] == pytest.approx(
        average_precision_score(relevant[:, 0], -distances)
    )


def test_nothing_within_the_radius_counts_as_precision_zero():
    codes = np.array([[0b11110000], [0b11111000]], np.uint8)
    labels = np.ones((2, 1), np.uint8)
    counts = tally(np.array([[0], [0b11100000]], np.uint8), labels, codes, labels)
    assert precision_within(counts, 2).tolist() == [0, 1]
    assert recall_within(counts, 1).tolist() == [0, 0.5]


def test_a_query_without_relevant_documents_scores_zero():
    zeros, one, other = np.zeros((3, 1), np.uint8), [[1, 0]], [[0, 1]] * 3
    counts = tally(zeros[:1], np.array(one, np.uint8), zeros, np.array(other, np.uint8))
    for measure in (average_precision, lambda c: ndcg_at(c, 2), lambda c: recall_at(c, 2)):
        assert measure(counts).tolist() == [0]


def test_k_below_one_is_refused():
    counts, _, _ = small_ranking(0)
    with pytest.raises(InputError, match="k must be at least 1. Got 0"):
        precision_at(counts, 0)

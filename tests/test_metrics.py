import itertools

import numpy as np
import pytest

from vdsh.codes import pack
from vdsh.errors import InputError
from vdsh.metrics import cosine_precision, expected_precision, random_precision


def all_orders_precision(distances, relevant, k):
    """Average the precision at k over every order that the ties allow: slow and obvious."""
    orders = [
        order
        for order in itertools.permutations(range(len(distances)))
        if all(distances[a] <= distances[b] for a, b in itertools.pairwise(order))
    ]
    return np.mean([np.mean([relevant[i] for i in order[:k]]) for order in orders])


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
def test_expected_precision_is_the_mean_over_all_orders_of_ties(k):
    rng = np.random.default_rng(k)
    bits, query = rng.integers(0, 2, (7, 8)), rng.integers(0, 2, (1, 8))
    bits[3:6] = bits[0]  # a group of ties
    labels = rng.integers(0, 2, (7, 3)).astype(np.uint8)
    query_labels = np.array([[1, 0, 1]], np.uint8)
    found = expected_precision(pack(query), query_labels, pack(bits), labels, k=k)
    distances = (bits != query).sum(axis=1)
    relevant = (labels & query_labels).any(axis=1)
    assert found == pytest.approx([all_orders_precision(distances, relevant, k)])


def test_k_beyond_the_database_takes_all_documents():
    codes, labels = np.zeros((4, 1), np.uint8), np.array([[1], [1], [0], [0]], np.uint8)
    assert expected_precision(codes[:1], labels[:1], codes, labels, k=100) == pytest.approx([0.5])


def test_codes_and_labels_may_be_longer_than_a_word():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (50, 17), dtype=np.uint8)
    labels = np.eye(50, 130, dtype=np.uint8)
    assert expected_precision(codes, labels, codes, labels, k=1) == pytest.approx(np.ones(50))


def test_an_empty_database_is_refused():
    with pytest.raises(InputError, match="Got 0 and k=100"):
        expected_precision(
            np.zeros((1, 1), np.uint8), np.ones((1, 1)), np.zeros((0, 1)), np.zeros((0, 1))
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

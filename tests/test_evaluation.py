import numpy as np
import pytest
from scipy import stats

from vdsh.errors import InputError
from vdsh.evaluation import compare
from vdsh.paper.protocol import evaluate_among, evaluate_codes

CODES = np.array([[0], [1], [3], [255]], np.uint8)
LABELS = ["a", "a", "b", "b"]


def test_measures_worked_by_hand():
    # The query 0 (label a) finds a at distance 0, a at 1, b at 2, b at 8.
    found = evaluate_codes(CODES[:1], ["a"], CODES, LABELS, k=3, radius=2)
    assert found.means == pytest.approx(
        {
            "precision@3": 2 / 3,
            "precision<=2": 2 / 3,
            "recall@3": 1.0,
            "recall<=2": 1.0,
            "MAP": 1.0,
            "NDCG@3": 1.0,
        }
    )


def test_fewer_documents_than_k_are_all_taken_and_the_name_says_so():
    found = evaluate_codes(CODES[:1], ["a"], CODES, LABELS)
    assert found.k == 4
    assert found.means["precision@4"] == 0.5


def test_documents_and_queries_without_labels_are_left_out_and_counted():
    labels = ["a", None, "b", "b"]
    found = evaluate_codes(CODES[:2], ["a", None], CODES, labels, k=3)
    assert (found.n_queries, found.n_documents, found.n_unlabelled) == (1, 3, 2)
    assert found.means["precision@3"] == pytest.approx(1 / 3)


def test_labels_that_no_document_has_find_nothing():
    assert evaluate_codes(CODES[:1], ["z"], CODES, LABELS, k=2).means["precision@2"] == 0


def test_no_labels_at_all_is_refused():
    with pytest.raises(InputError, match="None of the 4 documents has labels"):
        evaluate_codes(CODES, LABELS, CODES, [None] * 4)


def test_labels_must_be_as_many_as_codes():
    with pytest.raises(InputError, match="Got 4 documents but 3 labels"):
        evaluate_codes(CODES, LABELS, CODES, LABELS[:3])


def test_documents_among_themselves_do_not_find_themselves():
    found = evaluate_among(CODES, LABELS, k=1)
    assert found.values["precision@1"].tolist() == [1, 0.5, 0, 1]  # 01 lies between 00 and 11
    assert found.n_documents == 3


def test_a_document_known_to_have_no_label_is_relevant_to_nobody():
    found = evaluate_among(CODES, [*LABELS[:3], []], k=3)
    assert found.values["precision@3"].tolist() == [1 / 3, 1 / 3, 0, 0]


def test_the_t_test_is_the_paired_one():
    rng = np.random.default_rng(0)
    first, second = rng.random(50), rng.random(50)
    found = compare(first, second)
    assert found.p_value == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert found.difference == pytest.approx(first.mean() - second.mean())


def test_the_bootstrap_interval_covers_the_true_difference_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        gains = rng.normal(0.1, 1, 60)
        found = compare(gains, np.zeros(60))
        covered += found.low <= 0.1 <= found.high
    assert 180 <= covered <= 198  # 190 expected


def test_equal_methods_differ_by_nothing():
    found = compare([0.5, 0.7, 0.1], [0.5, 0.7, 0.1])
    assert found == (0, 1, 0, 0)


def test_unpaired_values_are_refused():
    with pytest.raises(InputError, match=r"Got shapes \(3,\) and \(2,\)"):
        compare([1, 2, 3], [1, 2])

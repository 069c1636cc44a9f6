"""`rank` and `vote` against the rule written out, one candidate at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdsh.codes import pack, unpack
from vdsh.retrieval import Candidates, Query, rank, vote
from vdsh.retrieval.query import read_words
from vdsh.retrieval.ranking import (
    TOPIC_WEIGHT,
    VOTE_POWER,
    VOTERS,
    rank_by_distance,
    rank_by_expected_distance,
)

N_BITS = 16
SHARES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5, 0.9, 1.0])
ANY_CODE = st.integers(0, 2**N_BITS - 1)


def make_query(seed=0, *, has_code=True):
    probabilities = np.random.default_rng(seed).random(N_BITS)
    return Query(
        code=pack((probabilities > 0.5)[None])[0],
        words=read_words("some words", "relevance"),
        probabilities=probabilities,
        has_code=has_code,
    )


def make_candidates(codes, shares, id_order=None, has_name=None):
    order = np.arange(len(codes)) if id_order is None else np.array(id_order)
    packed = np.array(codes, ">u2").view(np.uint8).reshape(len(codes), 2)
    return Candidates(
        rows=100 + np.arange(len(codes)),
        id_order=order,
        codes=packed,
        shares=np.array(shares, float),
        has_name=np.ones(len(codes), bool) if has_name is None else np.array(has_name, bool),
    )


def slow_vote(query, candidates):
    own = query.probabilities if query.has_code else np.full(N_BITS, 0.5)
    some_have_the_name = any(candidates.has_name)
    shares = [
        share if has_name or not some_have_the_name else 0.0
        for share, has_name in zip(candidates.shares, candidates.has_name, strict=True)
    ]
    order = sorted(range(len(shares)), key=lambda i: (-shares[i], candidates.id_order[i]))[:VOTERS]
    if not order or shares[order[0]] == 0:
        return own if query.has_code else None
    best = shares[order[0]]
    votes = [(shares[i] / best) ** VOTE_POWER for i in order]
    bits = [unpack(candidates.codes[i]) for i in order]
    agreed = sum(v * b for v, b in zip(votes, bits, strict=True)) / sum(votes)
    return (1 - best) * own + best * agreed


def slow_rank(candidates, target, k, strict):
    if target is None or not len(candidates):
        return []
    agreements = []
    for code in candidates.codes:
        bits = unpack(code)
        expected = sum(p if bit == 0 else 1 - p for bit, p in zip(bits, target, strict=True))
        agreements.append(max(0.0, 1 - 2 * expected / N_BITS))
    shares = candidates.shares
    best_share = max(shares) or max(agreements)
    best_agreement = max(max(agreements), 1e-9)
    scores = [
        math.sqrt(
            (share**2 + best_share**2 * TOPIC_WEIGHT * agreement / best_agreement)
            / (1 + TOPIC_WEIGHT)
        )
        for share, agreement in zip(shares, agreements, strict=True)
    ]
    scores = [round(score, 9) for score in scores]
    has_name = candidates.has_name
    related = [share == 0 or not has_name[i] for i, share in enumerate(shares)]
    # What has parts of the name comes before what has none of the words.
    classes = [int(related[i]) + int(share == 0) for i, share in enumerate(shares)]
    order = sorted(
        range(len(shares)), key=lambda i: (classes[i], -scores[i], candidates.id_order[i])
    )[:k]
    return [(100 + i, scores[i], related[i]) for i in order if not (strict and related[i])]


@given(
    st.lists(st.tuples(ANY_CODE, SHARES, st.booleans()), max_size=30),
    st.booleans(),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_ranking_agrees_with_the_rule_written_out(drawn, is_name, k, strict, has_code, random):
    codes = [code for code, _, _ in drawn]
    shares = [share for _, share, _ in drawn]
    has_name = [has_name or not is_name for _, _, has_name in drawn]
    order = list(range(len(drawn)))
    random.shuffle(order)
    candidates = make_candidates(codes, shares, order, has_name)
    query = make_query(has_code=has_code)
    target = vote(query, candidates)
    expected_target = slow_vote(query, candidates)
    if expected_target is None:
        assert target is None
    else:
        np.testing.assert_allclose(target, expected_target, rtol=1e-12)
    ranking = rank(query, candidates, target, k, strict=strict)
    expected = slow_rank(candidates, target, k, strict)
    assert ranking.related.tolist() == [related for _, _, related in expected]
    np.testing.assert_allclose(ranking.scores, [score for _, score, _ in expected], atol=2e-9)
    assert sorted(ranking.rows) == sorted(row for row, _, _ in expected) or has_near_ties(expected)


def has_near_ties(expected):
    scores = [score for _, score, _ in expected]
    return any(abs(a - b) <= 2e-9 for a, b in zip(scores, scores[1:], strict=False))


def test_a_whole_match_with_the_target_scores_one():
    query = make_query()
    candidates = Candidates(
        rows=np.array([7]),
        id_order=np.array([0]),
        codes=query.code[None],
        shares=np.array([1.0]),
        has_name=np.array([True]),
    )
    ranking = rank(query, candidates, vote(query, candidates), 10)
    assert ranking.rows.tolist() == [7]
    assert ranking.scores.tolist() == [1.0]
    assert ranking.distances.tolist() == [0]


def test_a_query_that_says_nothing_finds_nothing_unless_a_document_has_its_words():
    silent = make_query(has_code=False)
    without = make_candidates([1, 2], [0.0, 0.0])
    assert vote(silent, without) is None
    assert len(rank(silent, without, vote(silent, without), 10)) == 0
    having = make_candidates([1, 2], [0.0, 0.5])
    assert rank(silent, having, vote(silent, having), 10).rows[0] == 101


def test_without_codes_documents_are_ranked_by_their_words_alone():
    query = Query(code=np.zeros(0, np.uint8), words=read_words("moon", "relevance"))
    candidates = Candidates(
        rows=np.arange(3),
        id_order=np.array([2, 1, 0]),
        codes=np.zeros((3, 0), np.uint8),
        shares=np.array([0.5, 0.0, 0.5]),
        has_name=np.ones(3, bool),
    )
    ranking = rank(query, candidates, vote(query, candidates), 10)
    assert ranking.rows.tolist() == [2, 0]
    assert ranking.scores.tolist() == [0.5, 0.5]


def test_a_vector_lifts_a_document_that_has_fewer_of_the_words():
    vector = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    query = Query(
        code=np.array([0b11110000, 0b10101111], np.uint8),
        words=read_words("moon", "relevance"),
        probabilities=np.full(16, 0.5),
        n_vector_bits=8,
        rotated_vector=vector,
    )
    candidates = Candidates(
        rows=np.arange(2),
        id_order=np.arange(2),
        codes=np.array([[0b11110000, 0b01010000], [0b11110000, 0b10101111]], np.uint8),
        shares=np.array([0.2, 0.1]),
        has_name=np.ones(2, bool),
    )
    ranking = rank(query, candidates, vote(query, candidates), 10)
    assert ranking.rows.tolist() == [1, 0]
    assert not ranking.related[0]


@pytest.mark.parametrize("k", [1, 3, 50])
def test_ranking_by_distance_and_by_expected_distance_agree_with_sorting(k):
    rng = np.random.default_rng(3)
    candidates = make_candidates(rng.integers(0, 2**N_BITS, 40), np.zeros(40), rng.permutation(40))
    query = make_query(5)
    distances = unpack(candidates.codes ^ query.code).sum(axis=1)
    order = np.lexsort((candidates.id_order, distances))[:k]
    ranking = rank_by_distance(query, candidates, k)
    assert ranking.rows.tolist() == (100 + order).tolist()
    assert ranking.distances.tolist() == distances[order].tolist()
    bits = unpack(candidates.codes).astype(float)
    expected = np.abs(bits - query.probabilities).sum(axis=1)
    by_expected = rank_by_expected_distance(query, candidates, k)
    np.testing.assert_allclose(by_expected.expected, np.sort(expected)[:k])


def test_what_has_the_name_comes_before_what_has_only_its_parts():
    query = make_query()
    candidates = make_candidates([0, 1, 2], [0.9, 0.3, 0.0], has_name=[False, True, False])
    ranking = rank(query, candidates, vote(query, candidates), 10)
    assert ranking.rows.tolist() == [101, 100, 102]
    assert ranking.related.tolist() == [False, True, True]
    assert rank(query, candidates, vote(query, candidates), 10, strict=True).rows.tolist() == [101]

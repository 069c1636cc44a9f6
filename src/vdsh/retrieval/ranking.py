"""How documents are ranked: `rank` puts candidates in order by words, topic and vector.

`docs/relevance.md` explains the rule and where its constants were chosen.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, Scores, expected_distances, unpack
from vdsh.retrieval.query import Query

# The topic's agreement counts so much, beside the best match of words, where a query has no vector.
TOPIC_WEIGHT = 0.6
# With a vector: of the topic, and of the vector.
TOPIC_WEIGHT_WITH_VECTOR = 0.4
VECTOR_WEIGHT = 1.0
# So many of the best by words vote on the code that is looked for; a vote counts by this power of
# the voter's share.
VOTERS = 10
VOTE_POWER = 6
# A document that only a vector found is no more than related below this part of the best score.
FAR = 0.5
SCORE_DIGITS = 9

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Documents that may be found, as arrays.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        How the store knows each document.
    id_order : ndarray of shape (n,)
        Numbers that sort as the documents' ids do.
    codes : ndarray of uint8 of shape (n, n_bytes)
    shares : ndarray of shape (n,)
        How much of the query's words each document answers: BM25 out of the most there can be.
    has_name : ndarray of bool of shape (n,)
        Whether each document has the name that the query is; all do where it is none.
    """

    rows: NDArray[Any]
    id_order: NDArray[np.int64]
    codes: Codes
    shares: NDArray[np.float64]
    has_name: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def joined(self, others: "Candidates") -> "Candidates":
        """Return these candidates and others, none of which is among these."""
        return Candidates(
            rows=np.concatenate([self.rows, others.rows]),
            id_order=np.concatenate([self.id_order, others.id_order]),
            codes=np.concatenate([self.codes, others.codes]),
            shares=np.concatenate([self.shares, others.shares]),
            has_name=np.concatenate([self.has_name, others.has_name]),
        )


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows of documents, best first, with what each is worth.

    Attributes
    ----------
    rows : ndarray of shape (n,)
    distances : ndarray of shape (n,)
        Bits in which each code differs from the query's own.
    scores : ndarray of shape (n,) or None
        From 0 to 1, where documents were ranked by relevance.
    related : ndarray of bool of shape (n,) or None
        Whether a document lacks what was asked for: it has none of the words, or only parts of the
        name that the query is.
    expected : ndarray of shape (n,) or None
        Expected distances, where documents were ranked by them.
    spans : ndarray of shape (n, 2) or None
        Where the best passage of a long document begins and ends.
    total : int or None
        How many documents are within a radius, where only the nearest of them are listed.
    words_without_documents : list of str
        Words of the query that no document has.
    corrections : dict of str to str
        Such words, with those that were looked for instead.
    document_frequencies : dict of str to int
        How many documents have each term of the query.
    """

    rows: NDArray[Any]
    distances: NDArray[np.int64]
    scores: NDArray[np.float64] | None = None
    related: NDArray[np.bool_] | None = None
    expected: NDArray[np.float64] | None = None
    spans: NDArray[np.uint32] | None = None
    total: int | None = None
    words_without_documents: list[str] = field(default_factory=list)
    corrections: dict[str, str] = field(default_factory=dict)
    document_frequencies: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, n: int) -> "Ranking":
        """Return the first n by distance, with how many there are in all."""
        return Ranking(self.rows[:n], self.distances[:n], total=len(self.rows))


def vote(query: Query, best_by_words: Candidates) -> Scores | None:
    """Let the best by words vote on the code that is looked for.

    A short query says little about its topic; the documents that match its words say more. The
    more of the query the best of them answers, the more their votes count beside the query's own
    code. A vector needs no votes.

    Returns
    -------
    ndarray of shape (n_bits,) or None
        The probability of each bit being 1; None where neither the query nor a document says
        anything about it.
    """
    own = _own_probabilities(query)
    if not len(query.code):
        return own
    shares = best_by_words.shares
    if best_by_words.has_name.any():
        # Those with the name alone say what is looked for.
        shares = shares * best_by_words.has_name
    voters = _first(best_by_words, VOTERS, -shares)
    if not len(voters) or shares[voters[0]] <= 0:
        return own if _says_something(query) else None
    trust = shares[voters[0]]
    votes = (shares[voters] / trust) ** VOTE_POWER
    agreed = votes @ unpack(best_by_words.codes[voters]) / votes.sum()
    probabilities: Scores = (1 - trust) * own + trust * agreed
    if query.rotated_vector is not None:
        probabilities[query.n_topic_bits :] = own[query.n_topic_bits :]
    return probabilities


def rank(
    query: Query, candidates: Candidates, target: Scores | None, k: int, *, strict: bool = False
) -> Ranking:
    """Return the k best candidates, ties by id; those that are only related come last.

    The score joins how much of the words a document answers with how well its code agrees with
    the target, and, where the query has a vector, with its cosine.

    Parameters
    ----------
    query : Query
    candidates : Candidates
    target : ndarray of shape (n_bits,) or None
        What `vote` returned; None finds nothing.
    k : int
    strict : bool, default=False
        Leave out what is only related.
    """
    if target is None or not len(candidates):
        return nothing(by_relevance=True)
    has_codes = len(query.code) > 0
    scores = np.round(_scores(query, candidates, target), SCORE_DIGITS)
    has_no_word = candidates.shares == 0
    if query.rotated_vector is not None:
        # A vector finds what has other words.
        has_no_word &= scores < FAR * scores.max()
    related = has_no_word | ~candidates.has_name
    # Scores are 1 at most: what has parts of a name comes before what has none of the words.
    order = _first(candidates, k, 2.0 * related + 2.0 * has_no_word - scores)
    if strict:
        order = order[~related[order]]
    if not has_codes:
        order = order[candidates.shares[order] > 0]
    return _choose(query, candidates, order, scores=scores[order], related=related[order])


def rank_by_distance(query: Query, candidates: Candidates, k: int) -> Ranking:
    """Return the k candidates with the nearest codes, ties by id."""
    if not len(candidates):
        return nothing()
    distances = _distances(candidates.codes, query.code)
    order = _first(candidates, k, distances)
    return Ranking(rows=candidates.rows[order], distances=distances[order])


def rank_by_expected_distance(query: Query, candidates: Candidates, k: int) -> Ranking:
    """Return the k candidates with the least expected distance, ties by distance and id.

    Unlike a plain distance it counts a bit that the query is unsure of for less.
    """
    if not len(candidates):
        return nothing()
    expected = expected_distances(candidates.codes, np.asarray(query.probabilities, float))
    distances = _distances(candidates.codes, query.code)
    order = np.lexsort((candidates.id_order, distances, expected))[:k]
    return Ranking(
        rows=candidates.rows[order], distances=distances[order], expected=expected[order]
    )


def nothing(*, by_relevance: bool = False) -> Ranking:
    """Return a ranking of no documents."""
    rows = np.zeros(0, np.int64)
    if not by_relevance:
        return Ranking(rows=rows, distances=rows)
    return Ranking(rows=rows, distances=rows, scores=np.zeros(0), related=np.zeros(0, bool))


def _choose(
    query: Query,
    candidates: Candidates,
    order: Rows,
    scores: NDArray[np.float64],
    related: NDArray[np.bool_],
) -> Ranking:
    # A text that came without a vector says nothing about the bits of one.
    n_bytes = len(query.code) if query.rotated_vector is not None else query.n_topic_bits // 8
    return Ranking(
        rows=candidates.rows[order],
        distances=_distances(candidates.codes[order, :n_bytes], query.code[:n_bytes]),
        scores=scores,
        related=related,
    )


def _scores(query: Query, candidates: Candidates, target: Scores) -> NDArray[np.float64]:
    """Score candidates; the square root makes a whole match with the wanted code a 1."""
    shares = candidates.shares
    if not len(query.code):
        return shares
    topic = _agreement(candidates.codes, target, query.n_topic_bits)
    if query.rotated_vector is None:
        parts = [(TOPIC_WEIGHT, topic)]
    else:
        cosines = _cosines(candidates.codes, query.rotated_vector)
        parts = [(TOPIC_WEIGHT_WITH_VECTOR, topic), (VECTOR_WEIGHT, cosines)]
    # Where no document has a word of the query, the codes alone say how good the best is.
    best = shares.max() or max(part.max() for _, part in parts)
    total = 1.0 + sum(weight for weight, _ in parts)
    by_code = sum(weight * part / max(part.max(), 1e-9) for weight, part in parts)
    joined: NDArray[np.float64] = np.sqrt((shares**2 + best**2 * by_code) / total)
    return joined


def _agreement(codes: Codes, target: Scores, n_topic_bits: int) -> NDArray[np.float64]:
    """Say how far topics agree with the target beyond chance.

    Thresholds cut each bit in halves, so half of the bits agree by chance.
    """
    distances = expected_distances(codes[:, : n_topic_bits // 8], target[:n_topic_bits])
    agreement: NDArray[np.float64] = np.maximum(0, 1 - 2 * distances / n_topic_bits)
    return agreement


def _cosines(codes: Codes, rotated_vector: Scores) -> NDArray[np.float64]:
    """Return the cosines of the query's vector and of codes, whose bits are -1 and 1."""
    n_bits = len(rotated_vector)
    vector = np.array(rotated_vector, float)
    vector /= max(float(np.linalg.norm(vector)), 1e-9) * n_bits**0.5
    bits = unpack(codes[:, codes.shape[1] - n_bits // 8 :])
    cosines: NDArray[np.float64] = np.maximum(0, 2 * bits @ vector - vector.sum())
    return cosines


def _own_probabilities(query: Query) -> Scores:
    if _says_something(query):
        return np.asarray(query.probabilities, float)
    return np.full(8 * len(query.code), 0.5)


def _says_something(query: Query) -> bool:
    return query.probabilities is not None and query.has_code


def _distances(codes: Codes, code: Codes) -> NDArray[np.int64]:
    distances: NDArray[np.int64] = np.bitwise_count(codes ^ code).sum(axis=1, dtype=np.int64)
    return distances


def _first(candidates: Candidates, n: int, keys: NDArray[Any]) -> Rows:
    """Tell where the n candidates with the lowest keys are, ties by id."""
    return np.lexsort((candidates.id_order, keys))[:n]

"""Validation documents search training documents: the precision that thresholds are judged by.

Fast enough to ask for every bit what becomes of it when the threshold moves.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Scores, Words, binarize, pack, to_words
from vdsh.jit import kernel, popcount, spread
from vdsh.labels import Labels
from vdsh.model.health import sample

MOST_DOCUMENTS, MOST_QUERIES = 20_000, 2_000  # what a measurement looks at, at most

Places = NDArray[np.uint16]
Mask = NDArray[np.bool_]


class Judged(NamedTuple):
    """Documents whose labels are known."""

    scores: Scores  # (n_docs, n_bits)
    labels: NDArray[np.uint8]  # (n_docs, n_labels): 0/1 matrix

    @classmethod
    def sample(cls, scores: Scores, labels: Labels, most: int) -> "Judged":
        """Take at most so many documents with known labels, always the same ones."""
        rows = np.flatnonzero(labels.known)
        rows = rows[sample(len(rows), most)]
        return cls(scores[rows], labels.matrix[rows])


def choose_k(n_docs: int) -> int:
    """Choose how many found documents to judge: 100, a tenth of them where few have labels.

    With labels on 150 documents the first 100 say nothing about the order.

    >>> choose_k(150), choose_k(10_000)
    (15, 100)
    """
    return min(100, max(1, n_docs // 10))


class ValidationSearch:
    """Validation documents with known labels search training documents; measures thresholds.

    `documents` and `queries`: at least one of each. `k`: precision counts the k nearest documents,
    all of them where there are fewer.
    """

    def __init__(self, documents: Judged, queries: Judged, *, k: int = 100) -> None:
        self.documents, self.queries = documents, queries
        self.k = min(k, len(documents.scores))

    @classmethod
    def of(
        cls, scores: Scores, labels: Labels | None, query_scores: Scores, known: Labels | None
    ) -> "ValidationSearch | None":
        """Take a fixed sample of both; None where labels are missing on one side."""
        if labels is None or known is None or not labels.known.any() or not known.known.any():
            return None
        documents = Judged.sample(scores, labels, MOST_DOCUMENTS)
        queries = Judged.sample(query_scores, known, MOST_QUERIES)
        return cls(documents, queries, k=choose_k(len(documents.scores)))

    def precision(self, cut: Scores) -> float:
        """Measure expected precision at k with these thresholds, as `metrics` does."""
        return float(self.candidate_precision(self.places(cut), 0, cut, cut[:1]).mean())

    def places(self, cut: Scores) -> Places:
        """Compute 2 * distance + relevance of each document for each query.

        One number for both halves the memory traffic of the search, which is all its time.
        """
        words, masks = _words(self.documents, cut)
        query_words, query_masks = _words(self.queries, cut)
        places = np.empty((len(query_words), len(words)), np.uint16)
        spread(
            lambda i, j: _fill(query_words[i:j], query_masks[i:j], words, masks, places[i:j]),
            len(places),
        )
        return places

    def candidate_precision(
        self, places: Places, bit: int, cut: Scores, candidates: Scores
    ) -> NDArray[np.float64]:
        """Measure each query's precision with each candidate as the threshold of one bit.

        Parameters
        ----------
        places : ndarray of shape (n_queries, n_docs)
            Of the thresholds `cut`.
        candidates : ndarray of shape (n_candidates,)
            In rising order, `cut[bit]` among them.

        Returns
        -------
        ndarray of shape (n_queries, n_candidates)
        """
        # A score above c of the candidates has a 1 with just those, so one pass serves them all.
        ranks = np.searchsorted(candidates, self.documents.scores[:, bit]).astype(np.uint8)
        query_ranks = np.searchsorted(candidates, self.queries.scores[:, bit])
        current = int(np.searchsorted(candidates, cut[bit]))
        shape = len(candidates), len(cut)
        parts = spread(
            lambda i, j: _precisions(places[i:j], query_ranks[i:j], ranks, current, *shape, self.k),
            len(places),
        )
        return np.concatenate(parts)

    def move(self, places: Places, bit: int, old: np.float32, new: np.float32) -> None:
        """Bring `places` up to date after a threshold has changed."""
        before, after = (
            [part.scores[:, bit] > cut for part in (self.queries, self.documents)]
            for cut in (old, new)
        )
        spread(
            lambda i, j: _move(places[i:j], before[0][i:j], before[1], after[0][i:j], after[1]),
            len(places),
        )


def _words(part: Judged, cut: Scores) -> tuple[Words, Words]:
    codes = pack(binarize(part.scores, cut))
    return to_words(codes), to_words(np.packbits(part.labels, axis=1))


@kernel()
def _fill(
    query_words: Words, query_masks: Words, words: Words, masks: Words, places: Places
) -> None:
    for q in range(len(places)):
        for i in range(len(words)):
            distance, shared = np.uint64(0), np.uint64(0)
            for j in range(words.shape[1]):
                distance += popcount(words[i, j] ^ query_words[q, j])
            for j in range(masks.shape[1]):
                shared |= masks[i, j] & query_masks[q, j]
            places[q, i] = 2 * distance + np.uint64(shared != 0)


@kernel()
def _move(places: Places, query_before: Mask, before: Mask, query_after: Mask, after: Mask) -> None:
    for q in range(len(places)):
        for i in range(len(before)):
            places[q, i] += 2 * (after[i] != query_after[q]) - 2 * (before[i] != query_before[q])


@kernel()
def _precisions(
    places: Places,
    query_ranks: NDArray[np.int64],
    ranks: NDArray[np.uint8],
    current: int,
    n_candidates: int,
    n_bits: int,
    k: int,
) -> NDArray[np.float64]:
    """Compute precision at k for each query and candidate, ties broken at random."""
    out = np.empty((len(places), n_candidates))
    counts = np.empty((n_candidates + 1, 2 * n_bits + 4), np.int32)  # stays in the first cache
    for q in range(len(places)):
        counts[:] = 0
        for i in range(len(ranks)):
            counts[ranks[i], places[q, i]] += 1
        above = query_ranks[q] > current
        for rank in range(n_candidates + 1):
            if (rank > current) != above:  # the bit differs now: take it out of the distance
                for place in range(counts.shape[1] - 2):
                    counts[rank, place] = counts[rank, place + 2]
        _walk(counts, query_ranks[q], k, out[q])
    return out


@kernel()
def _walk(counts: NDArray[np.int32], query_rank: int, k: int, out: NDArray[np.float64]) -> None:
    """Compute precision at k for each candidate from counts without the bit, by rank and place."""
    low, high = np.zeros(counts.shape[1], np.int64), np.zeros(counts.shape[1], np.int64)
    for rank in range(len(counts)):
        for place in range(len(high)):
            high[place] += counts[rank, place]
    for candidate in range(len(out)):
        for place in range(len(low)):
            low[place] += counts[candidate, place]
            high[place] -= counts[candidate, place]
        near, far = (high, low) if query_rank > candidate else (low, high)
        left, hits = k, 0.0
        for place in range(0, len(low), 2):
            relevant = near[place + 1] + (far[place - 1] if place else 0)
            found = relevant + near[place] + (far[place - 2] if place else 0)
            if found >= left:
                hits += relevant * left / found
                break
            hits += relevant
            left -= found
        out[candidate] = hits / k

"""Validation documents search training documents: the precision that thresholds are judged by.

Fast enough to ask for every bit what becomes of it when the threshold moves.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Scores, Words, binarize, pack, to_words
from vdsh.jit import spread
from vdsh.labels import Labels, in_common
from vdsh.model.health import sample

MOST_DOCUMENTS, MOST_QUERIES = 20_000, 2_000  # what a measurement looks at, at most

Places = NDArray[np.uint16]


class Judged(NamedTuple):
    """Documents whose labels are known."""

    scores: Scores  # (n_docs, n_bits)
    labels: NDArray[np.uint8]  # (n_docs, n_labels): 0/1 matrix


def choose_k(n_docs: int) -> int:
    """Choose how many found documents to judge: 100, a tenth of them where few have labels.

    With labels on 150 documents the first 100 say nothing about the order.

    >>> choose_k(150), choose_k(10_000)
    (15, 100)
    """
    return min(100, max(1, n_docs // 10))


def some_known(labels: Labels, most: int) -> NDArray[np.intp]:
    """Choose at most so many documents with known labels, always the same ones."""
    rows = np.flatnonzero(labels.known)
    return rows[sample(len(rows), most)]


def choose_judged(
    labels: Labels, asked: Labels
) -> tuple[NDArray[np.intp], NDArray[np.intp], Labels, Labels]:
    """Choose documents and queries with known labels, always the same; give rows and labels."""
    rows, query_rows = some_known(labels, MOST_DOCUMENTS), some_known(asked, MOST_QUERIES)
    return rows, query_rows, *in_common(labels.take(rows), asked.take(query_rows))


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
        rows, query_rows, labels, known = choose_judged(labels, known)
        documents = Judged(scores[rows], labels.matrix)
        queries = Judged(query_scores[query_rows], known.matrix)
        return cls(documents, queries, k=choose_k(len(rows)))

    def precision(self, cut: Scores) -> float:
        """Measure expected precision at k with these thresholds, as `metrics` does."""
        return float(self.candidate_precision(self.places(cut), 0, cut, cut[:1]).mean())

    def places(self, cut: Scores) -> Places:
        """Compute 2 * distance + relevance of each document for each query.

        One number for both halves the memory traffic of the search, which is all its time.
        """
        from vdsh.metrics.distance_kernels import fill

        words, masks = _words(self.documents, cut)
        query_words, query_masks = _words(self.queries, cut)
        places = np.empty((len(query_words), len(words)), np.uint16)
        spread(
            lambda i, j: fill(query_words[i:j], query_masks[i:j], words, masks, places[i:j]),
            len(places),
        )
        return places

    def candidate_precision(
        self, places: Places, bit: int, cut: Scores, candidates: Scores
    ) -> NDArray[np.float64]:
        """Measure each query's precision with each candidate as the threshold of one bit.

        Candidates come in rising order, `cut[bit]` among them: (n_queries, n_candidates).
        """
        from vdsh.metrics.distance_kernels import precisions

        # A score above c of the candidates has a 1 with just those, so one pass serves them all.
        ranks = np.searchsorted(candidates, self.documents.scores[:, bit]).astype(np.uint8)
        query_ranks = np.searchsorted(candidates, self.queries.scores[:, bit])
        current = int(np.searchsorted(candidates, cut[bit]))
        shape = len(candidates), len(cut)
        parts = spread(
            lambda i, j: precisions(places[i:j], query_ranks[i:j], ranks, current, *shape, self.k),
            len(places),
        )
        return np.concatenate(parts)

    def move(self, places: Places, bit: int, old: np.float32, new: np.float32) -> None:
        """Bring `places` up to date after a threshold has changed."""
        from vdsh.metrics.distance_kernels import move

        before, after = (
            [part.scores[:, bit] > cut for part in (self.queries, self.documents)]
            for cut in (old, new)
        )
        spread(
            lambda i, j: move(places[i:j], before[0][i:j], before[1], after[0][i:j], after[1]),
            len(places),
        )


def _words(part: Judged, cut: Scores) -> tuple[Words, Words]:
    codes = pack(binarize(part.scores, cut))
    return to_words(codes), to_words(np.packbits(part.labels, axis=1))

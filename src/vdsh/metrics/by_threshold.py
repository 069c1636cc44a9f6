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
        self.relevant = _relevant(documents, queries)
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
        return float(self.candidate_precision(0, cut, cut[:1]).mean())

    def candidate_precision(self, bit: int, cut: Scores, candidates: Scores) -> NDArray[np.float64]:
        """Measure each query's precision with each candidate as the threshold of one bit.

        Candidates come in rising order; the other bits have the thresholds `cut`. The result has
        the shape (n_queries, n_candidates).
        """
        from vdsh.metrics.distance_kernels import precisions

        words, ranks = _without(bit, self.documents, cut, candidates)
        asked, asked_ranks = _without(bit, self.queries, cut, candidates)
        columns, sizes = np.ascontiguousarray(words.T), (len(candidates), len(cut), self.k)

        def measure(i: int, j: int) -> NDArray[np.float64]:
            queries = asked[i:j], asked_ranks[i:j], self.relevant[i:j]
            return precisions(*queries, columns, ranks, *sizes)

        return np.concatenate(spread(measure, len(asked)))


def _without(
    bit: int, part: Judged, cut: Scores, candidates: Scores
) -> tuple[Words, NDArray[np.uint8]]:
    """Give codes that all have a 0 in one bit, and for how many candidates it would be a 1.

    A score above c of the candidates has a 1 with just those, so one pass serves them all.
    """
    bits = binarize(part.scores, cut)
    bits[:, bit] = 0
    ranks = np.searchsorted(candidates, part.scores[:, bit]).astype(np.uint8)
    return to_words(pack(bits)), ranks


def _relevant(documents: Judged, queries: Judged) -> NDArray[np.uint8]:
    """Say which documents share a label with each query, of shape (n_queries, n_docs)."""
    labels, asked = documents.labels.astype(np.float32), queries.labels.astype(np.float32)
    blocks = (asked[i : i + 256] @ labels.T > 0 for i in range(0, len(asked), 256))
    return np.concatenate([block.view(np.uint8) for block in blocks])

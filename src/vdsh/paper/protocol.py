"""The protocol of the paper: test documents search training documents; a shared label is a hit."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.errors import InputError
from vdsh.evaluation.yardsticks import read_both
from vdsh.labels import Labels, read_labels
from vdsh.metrics import ranking

__all__ = ["Evaluation", "evaluate_among", "evaluate_codes"]


class Evaluation(NamedTuple):
    """What was measured, query by query.

    Attributes
    ----------
    values : dict of ndarray of shape (n_queries,)
        Each measure's value per query, by names such as "precision@100" and "precision<=2".
    n_queries, n_documents : int
        How many were judged; documents without labels are not.
    n_unlabelled : int
        Queries and documents left out because their labels are not known.
    k : int
        The cut that was used: the one asked for, or the number of documents if that is less.
    """

    values: dict[str, NDArray[np.float64]]
    n_queries: int
    n_documents: int
    n_unlabelled: int
    k: int

    def __repr__(self) -> str:
        values = "".join(f"\n  {name:<16} {mean:.4f}" for name, mean in self.means.items())
        return f"<Evaluation: {self.sizes}{values}>"

    @property
    def sizes(self) -> str:
        """How many queries and documents there were, in words."""
        left_out = f", {self.n_unlabelled:,} without labels left out" if self.n_unlabelled else ""
        return f"{self.n_queries:,} queries, {self.n_documents:,} documents each{left_out}"

    @property
    def means(self) -> dict[str, float]:
        """The mean of each measure over the queries."""
        return {name: float(values.mean()) for name, values in self.values.items()}


def evaluate_codes(
    query_codes: Codes,
    query_labels: Sequence[Any],
    codes: Codes,
    labels: Sequence[Any],
    *,
    k: int = 100,
    radius: int = 2,
) -> Evaluation:
    """Measure how well codes find documents that share a label with the query.

    Parameters
    ----------
    query_codes, codes : uint8 ndarray of shape (n, n_bytes)
        Packed codes of the queries and of the documents they search.
    query_labels, labels : sequence
        Per document a label, a list of labels, or None where unknown: such documents are left out.
    k, radius : int
        How many nearest documents count, and up to which distance.

    Examples
    --------
    >>> codes = np.array([[0], [1], [255]], np.uint8)
    >>> found = evaluate_codes(codes[:1], ["a"], codes, ["a", "b", "a"], k=2)
    >>> found.means["precision@2"], found.means["recall<=2"]
    (0.5, 0.5)
    """
    of_queries, of_documents = read_both(query_labels, labels)
    judged_queries = _judged(query_codes, of_queries, "queries")
    judged = _judged(codes, of_documents, "documents")
    n_queries_left_out = len(query_codes) - len(judged_queries.codes)
    n_documents_left_out = len(codes) - len(judged.codes)
    return summarise(
        ranking.tally(*judged_queries, *judged),
        k=k,
        radius=radius,
        n_unlabelled=n_queries_left_out + n_documents_left_out,
    )


def evaluate_among(
    codes: Codes, labels: Sequence[Any], *, k: int = 100, radius: int = 2
) -> Evaluation:
    """Measure documents that search one another: each is a query, and never finds itself."""
    judged = _judged(codes, read_labels(labels), "documents")
    n_judged = len(judged.codes)
    if n_judged < 2:
        raise InputError(f"Documents can search one another from two on. Got {n_judged}.")
    has_labels = judged.labels.sum(axis=1) > 0
    tally = ranking.tally(*judged, *judged).without_self(has_labels)
    return summarise(tally, k=k, radius=radius, n_unlabelled=len(codes) - n_judged)


def summarise(tally: ranking.Tally, *, k: int, radius: int, n_unlabelled: int = 0) -> Evaluation:
    """Compute every measure from a tally."""
    n_queries = len(tally.found)
    n_documents = int(tally.found[0].sum())
    cut = min(k, n_documents)
    values = {
        f"precision@{cut}": ranking.precision_at(tally, cut),
        f"precision<={radius}": ranking.precision_within(tally, radius),
        f"recall@{cut}": ranking.recall_at(tally, cut),
        f"recall<={radius}": ranking.recall_within(tally, radius),
        "MAP": ranking.average_precision(tally),
        f"NDCG@{cut}": ranking.ndcg_at(tally, cut),
    }
    return Evaluation(values, n_queries, n_documents, n_unlabelled, cut)


class _Judged(NamedTuple):
    """Documents whose labels are known: packed codes, and a row of 0 and 1 for each."""

    codes: Codes
    labels: NDArray[np.uint8]


def _judged(codes: Codes, labels: Labels, what: str) -> _Judged:
    """Keep the documents whose labels are known."""
    if len(codes) != len(labels.known):
        raise InputError(f"Got {len(codes)} {what} but {len(labels.known)} labels.")
    if not labels.known.any():
        raise InputError(
            f"None of the {len(codes):,} {what} has labels, and relevance is a shared label. "
            "Give labelled documents."
        )
    return _Judged(codes[labels.known], labels.matrix[labels.known])

"""The protocol of the paper: test documents search training documents; a shared label is a hit."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.codes import Codes
from vdsh.errors import InputError
from vdsh.labels import Labels, in_common, read_labels
from vdsh.metrics import ranking
from vdsh.text.counts import inverse_document_frequency, weigh


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
    asked, known = read_both(query_labels, labels)
    queries = _judged(query_codes, asked, "queries")
    database = _judged(codes, known, "documents")
    left_out = len(query_codes) - len(queries[0]) + len(codes) - len(database[0])
    return summarise(ranking.tally(*queries, *database), k=k, radius=radius, n_unlabelled=left_out)


def evaluate_among(
    codes: Codes, labels: Sequence[Any], *, k: int = 100, radius: int = 2
) -> Evaluation:
    """Measure documents that search one another: each is a query, and never finds itself."""
    kept = _judged(codes, read_labels(labels), "documents")
    if len(kept[0]) < 2:
        raise InputError(f"Documents can search one another from two on. Got {len(kept[0])}.")
    counts = ranking.tally(*kept, *kept).without_self(kept[1].sum(axis=1) > 0)
    return summarise(counts, k=k, radius=radius, n_unlabelled=len(codes) - len(kept[0]))


def summarise(counts: ranking.Tally, *, k: int, radius: int, n_unlabelled: int = 0) -> Evaluation:
    """Compute every measure from a tally."""
    n_queries, n_documents = len(counts.found), int(counts.found[0].sum())
    cut = min(k, n_documents)
    values = {
        f"precision@{cut}": ranking.precision_at(counts, cut),
        f"precision<={radius}": ranking.precision_within(counts, radius),
        f"recall@{cut}": ranking.recall_at(counts, cut),
        f"recall<={radius}": ranking.recall_within(counts, radius),
        "MAP": ranking.average_precision(counts),
        f"NDCG@{cut}": ranking.ndcg_at(counts, cut),
    }
    return Evaluation(values, n_queries, n_documents, n_unlabelled, cut)


def yardsticks(
    queries: tuple[csr_array, Sequence[Any]],
    documents: tuple[csr_array, Sequence[Any]],
    *,
    k: int = 100,
) -> dict[str, float]:
    """Measure what codes are held against: a random order, and exact tf-idf cosine of all terms."""
    asked, known = read_both(queries[1], documents[1])
    idf = inverse_document_frequency(documents[0])
    matrix, query_matrix = known.matrix[known.known], asked.matrix[asked.known]
    terms = weigh(documents[0], "tfidf", idf)[np.flatnonzero(known.known)]
    query_terms = weigh(queries[0], "tfidf", idf)[np.flatnonzero(asked.known)]
    cosine = ranking.cosine_precision(query_terms, query_matrix, terms, matrix, k=k)
    chance = ranking.random_precision(query_matrix, matrix)
    return {"random": float(chance.mean()), "exact tf-idf cosine": float(cosine.mean())}


def read_both(query_labels: Any, labels: Any) -> tuple[Labels, Labels]:
    """Read the labels of queries and documents; those of one side alone are left out."""
    known = read_labels(labels)
    return in_common(read_labels(query_labels, known.names), known)


def _judged(codes: Codes, labels: Labels, what: str) -> tuple[Codes, NDArray[np.uint8]]:
    """Keep the documents whose labels are known."""
    if len(codes) != len(labels.known):
        raise InputError(f"Got {len(codes)} {what} but {len(labels.known)} labels.")
    if not labels.known.any():
        raise InputError(
            f"None of the {len(codes):,} {what} has labels, and relevance is a shared label. "
            "Give labelled documents."
        )
    return codes[labels.known], labels.matrix[labels.known]

"""How well a store answers queries whose relevant documents are known, beside BM25 and tf-idf."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.errors import InputError
from vdsh.evaluation.queries import Query, check_queries
from vdsh.evaluation.significance import Comparison, compare
from vdsh.search.checks import check_count
from vdsh.store import Store
from vdsh.store.queries import RANKS
from vdsh.text import BagOfWords, inverse_document_frequency, weigh

Values = NDArray[np.float64]
Listener = Callable[[str, int, int], None]
YARDSTICK = "BM25"
FIRST = 10  # places that MRR and NDCG look at: what a person sees
K1, B = 1.2, 0.75  # of BM25, as SQLite's FTS5 and Lucene have them
_LEAST_IDF = 1e-6  # FTS5's, for words that most documents have
_ALL = 10**9  # words of a vocabulary
FEWEST = 6  # queries to compare: five that all agree do so by chance one time in 16


class Ranking(NamedTuple):
    """How good one way to rank is.

    Attributes
    ----------
    name : str
        A `rank` of `Store.search`, "BM25" or "tf-idf".
    values : dict of ndarray of shape (n_queries,)
        "MRR@10", "NDCG@10" and "recall@100" of each query.
    against_bm25 : dict of Comparison
        Each measure less BM25's; empty for BM25 itself, and for fewer than six queries, which
        prove nothing.
    """

    name: str
    values: dict[str, Values]
    against_bm25: dict[str, Comparison]

    @property
    def means(self) -> dict[str, float]:
        """The mean of each measure over the queries."""
        return {name: float(values.mean()) for name, values in self.values.items()}

    @property
    def errors(self) -> dict[str, float | None]:
        """The standard error of each mean; None where there is only one query."""
        n = len(next(iter(self.values.values())))
        return {
            name: float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else None
            for name, values in self.values.items()
        }


class QueryEvaluation(NamedTuple):
    """What queries found.

    Attributes
    ----------
    rows : list of Ranking
        Those of the store, then BM25 and tf-idf.
    queries : list of Query
        Those that were asked, in the order of the values.
    n_documents : int
        How many the store holds.
    missing : list of str
        Relevant ids that the store does not hold. They count as not found.
    n_unjudged : int
        Queries that were left out, since no document is relevant to them.
    left_out : dict of str
        Rankings that the store cannot do, and why.
    """

    rows: list[Ranking]
    queries: list[Query]
    n_documents: int
    missing: list[str]
    n_unjudged: int
    left_out: dict[str, str]


def evaluate_queries(
    store: Store, queries: Iterable[Query], *, k: int = 100, progress: Listener | None = None
) -> QueryEvaluation:
    """Measure how well a store finds relevant documents: MRR@10, NDCG@10 and recall@k.

    Every rank of `Store.search` is measured, and BM25 and exact tf-idf over the same documents,
    with the stop words of the store's model. The texts are held in memory for that.

    Parameters
    ----------
    store : Store
    queries : iterable of Query
        From `read_queries`, or made by hand.
    k : int, default=100
        How many hits recall looks at.
    progress : callable, optional
        Called with what is done, how much of it, and how much there is.
    """
    asked = check_queries(queries)
    judged = [query for query in asked if query.relevant]
    if not judged:
        raise InputError(
            f"None of the {len(asked):,} queries has a relevant document. Name some for each."
        )
    show = progress or (lambda what, done, total: None)
    k = check_count("k", k, 1)
    depth = max(k, FIRST)
    ids, texts = _read(store, show)
    missing = _missing(judged, set(ids))
    values: dict[str, dict[str, Values]] = {}
    left_out: dict[str, str] = {}
    for name, answers in _ways(store, judged, ids, texts, depth, show):
        found = []
        try:
            for each in answers:
                found.append(each)
                show(f"searching by {name}", len(found), len(judged))
            values[name] = _measure(found, judged, k)
        except InputError as error:
            left_out[name] = str(error)
    yardstick, enough = values[YARDSTICK], len(judged) >= FEWEST
    rows = []
    for name, own in values.items():
        compared = own if enough and name != YARDSTICK else ()
        rows.append(Ranking(name, own, {m: compare(own[m], yardstick[m]) for m in compared}))
    unjudged = len(asked) - len(judged)
    return QueryEvaluation(rows, judged, len(ids), missing, unjudged, left_out)


def _read(store: Store, show: Listener) -> tuple[list[str], list[str]]:
    ids: list[str] = []
    texts: list[str] = []
    total = store.count()
    for documents in store.documents():
        ids += [document.id for document in documents]
        texts += [document.text for document in documents]
        show("reading documents", len(ids), total)
    if not ids:
        raise InputError("The store holds no documents. Add some with: vdsh index")
    return ids, texts


def _missing(queries: list[Query], known: set[str]) -> list[str]:
    """List the relevant ids that are not known; raise where none is."""
    relevant = dict.fromkeys(id for query in queries for id in query.relevant)
    missing = [id for id in relevant if id not in known]
    if len(missing) == len(relevant):
        raise InputError(
            f"None of the {len(relevant):,} relevant ids is in the store: it has no '{missing[0]}' "
            f"but '{min(known)}'. Are they ids of other documents?"
        )
    return missing


def _ways(
    store: Store, queries: list[Query], ids: list[str], texts: list[str], k: int, show: Listener
) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """Give the ranks of the store, BM25 and tf-idf: what one query after another finds."""
    for rank in RANKS:
        hits = (store.search(query.text, k, rank=rank) for query in queries)
        yield rank, ([hit.id for hit in each] for each in hits)
    show("counting words", 0, 1)
    asked, stop_words = [query.text for query in queries], store.model.text_settings["stop_words"]
    by_words = search_words(ids, texts, asked, stop_words, k)
    show("counting words", 1, 1)
    yield from by_words.items()


def search_words(
    ids: Sequence[str], texts: Sequence[str], queries: Sequence[str], stop_words: Any, k: int
) -> dict[str, Iterator[list[str]]]:
    """Rank documents by BM25 and tf-idf, in memory: the ids that one query after another finds.

    The order of the documents decides between equal scores; stop words do not count.
    """
    bag = BagOfWords(_ALL, stop_words=stop_words)
    counts, asked = bag.fit_transform(texts), bag.transform(queries)
    idf = inverse_document_frequency(counts)
    tfidf, asked_tfidf = (weigh(each, "tfidf", idf) for each in (counts, asked))

    def search(asked: csr_array, weights: csr_array) -> Iterator[list[str]]:
        by_word = weights.T.tocsr()
        for i in range(asked.shape[0]):
            scores = asked[i : i + 1] @ by_word  # of documents that have a word of the query
            best = np.lexsort((scores.indices, -scores.data))[:k]
            yield [ids[row] for row in scores.indices[best]]

    return {YARDSTICK: search(asked, bm25(counts)), "tf-idf": search(asked_tfidf, tfidf)}


def bm25(counts: csr_array) -> csr_array:
    """Weigh counts so that the sum over a query's words is BM25, with FTS5's constants.

    S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
    """
    n_docs, n_terms = counts.shape
    df = np.bincount(counts.indices, minlength=n_terms)
    idf = np.maximum(np.log((n_docs - df + 0.5) / (df + 0.5)), _LEAST_IDF)
    lengths = counts.sum(axis=1)
    relative = np.repeat(lengths / lengths.mean(), np.diff(counts.indptr))
    weights = counts.data * (K1 + 1) / (counts.data + K1 * (1 - B + B * relative))
    weights *= idf[counts.indices]
    return csr_array((weights, counts.indices, counts.indptr), shape=counts.shape)


def _measure(found: list[list[str]], queries: list[Query], k: int) -> dict[str, Values]:
    measures = {
        f"MRR@{FIRST}": (reciprocal_rank, FIRST),
        f"NDCG@{FIRST}": (ndcg, FIRST),
        f"recall@{k}": (recall, k),
    }
    pairs = list(zip(found, (query.relevant for query in queries), strict=True))
    return {
        name: np.array([measure(ids, gains, cut) for ids, gains in pairs])
        for name, (measure, cut) in measures.items()
    }


def reciprocal_rank(found: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Compute 1 over the rank of the first relevant document; 0 where none is among the first k.

    >>> reciprocal_rank(["a", "b", "c"], {"b": 1, "c": 1}, k=10)
    0.5
    """
    return next((1 / rank for rank, id in enumerate(found[:k], 1) if id in gains), 0.0)


def recall(found: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Compute the share of the relevant documents that are among the first k.

    >>> recall(["a", "b", "c"], {"b": 1, "z": 1}, k=2)
    0.5
    """
    return sum(id in gains for id in found[:k]) / len(gains)


def ndcg(found: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Compute the gain of the first k, discounted by rank, as a share of the most there can be.

    The gain of a document counts as it is (K. Järvelin and J. Kekäläinen, "Cumulated Gain-Based
    Evaluation of IR Techniques", TOIS 2002), over log2(1 + rank), as trec_eval has it.

    >>> ndcg(["a", "b"], {"b": 1}, k=10)  # 1 / log2(3)
    0.6309297535714575
    """
    ideal = _discounted(sorted(gains.values(), reverse=True), k)
    return _discounted((gains.get(id, 0) for id in found), k) / ideal


def _discounted(gains: Iterable[float], k: int) -> float:
    return sum(gain / log2(1 + rank) for rank, gain in enumerate(islice(gains, k), 1))

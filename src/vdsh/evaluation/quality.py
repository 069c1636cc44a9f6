"""How good a trained model is on documents it has not seen, beside chance and exact tf-idf."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from vdsh.evaluation.yardsticks import read_both, yardsticks
from vdsh.labels import read_labels
from vdsh.metrics.by_threshold import choose_k
from vdsh.metrics.ranking import precision_at, tally
from vdsh.model import Model, as_model
from vdsh.model.health import sample
from vdsh.model.profile import take
from vdsh.pipeline import TextHasher
from vdsh.retrieval.in_memory import search_in_memory
from vdsh.retrieval.query import encode_texts, read_words
from vdsh.text.counts import halves
from vdsh.text.languages import find_language, language

MOST_QUERIES, MOST_DOCUMENTS = 1_000, 20_000  # of more, a fixed sample is looked at: seconds
MOST_WORDS = 500  # of a document that is cut into halves, and of those that these lie among
LEAST_LABELLED = 20  # queries; the precision of fewer is mostly chance
LEAST_A_BIT = 10  # training documents
MOST_TIED = 0.02  # of the documents at one distance: as if there were fewer than fifty codes
NEARLY = 0.9  # of what exact tf-idf finds: a search takes 32 words of a text, tf-idf all
NEAREST = 10  # among them the other half has to be, as in a search

Texts = tuple[Sequence[str], Sequence[Any] | None]  # with their labels
Counted = tuple[Any, Any]  # counts with labels


class Quality(NamedTuple):
    """What held-out documents find among the training documents.

    Attributes
    ----------
    measure : {"labels", "halves"}
        "labels": the share of the k nearest that have a label in common with the query. "halves",
        where labels are missing: how often one half of a document's words has the other half among
        its k nearest; the halves are hidden among the training documents. Of long documents 500
        words are taken.
    k, queries, documents : int
    values : dict of float
        By method: "random", "exact tf-idf cosine" and "codes"; of halves also "words and codes",
        which is how a store ranks.
    tied : int
        How many documents are at the smallest distance from a query, in the median.
    """

    measure: str
    k: int
    queries: int
    documents: int
    values: dict[str, float]
    tied: int


def measure_quality(hasher: TextHasher | Model, train: Texts, held_out: Texts) -> Quality | None:
    """Measure codes beside chance and exact tf-idf cosine, on at most 1,000 queries.

    None where no held-out text can ask: without labels it needs two known words.

    Parameters
    ----------
    hasher : TextHasher or Model
    train, held_out : (texts, labels)
        Labels may be None, altogether or for some; they count where 20 held-out texts have them.
    """
    model = as_model(hasher)
    asking, lying = _labelled(held_out), _labelled(train)
    if len(asking) >= LEAST_LABELLED and len(lying):
        queries = _count(model, held_out, asking[sample(len(asking), MOST_QUERIES)])
        documents = _count(model, train, lying[sample(len(lying), MOST_DOCUMENTS)])
        return measure_codes(model, queries, documents, k=choose_k(len(documents[1])))
    counts, others = (
        thin(model.counts([part[0][i] for i in sample(len(part[0]), most)]).to_csr())
        for part, most in ((held_out, MOST_QUERIES), (train, MOST_DOCUMENTS))
    )
    queries, documents = hide_halves(counts, others)
    if not queries[0].shape[0]:
        return None
    k = min(NEAREST, documents[0].shape[0])
    found = measure_codes(model, queries, documents, k=k)
    # Only one document is relevant, so k times the precision is how often it was found.
    shares = {name: k * value for name, value in found.values.items()}
    shares["words and codes"] = _found_by_both(model, queries[0], documents[0], k)
    return found._replace(measure="halves", values=shares)


def measure_codes(model: Model, queries: Counted, documents: Counted, *, k: int) -> Quality:
    """Measure precision at k of a model beside chance and exact tf-idf cosine."""
    values = yardsticks(queries, documents, k=k)
    asked, known = read_both(queries[1], documents[1])
    codes = model.encode_counts(queries[0]), model.encode_counts(documents[0])
    counts = tally(codes[0], asked.matrix, codes[1], known.matrix)
    values["codes"] = float(precision_at(counts, k).mean())
    nearest = counts.found[np.arange(len(counts.found)), (counts.found > 0).argmax(axis=1)]
    n_queries, n_documents = len(codes[0]), len(codes[1])
    return Quality("labels", k, n_queries, n_documents, values, int(np.median(nearest)))


def _found_by_both(model: Model, queries: csr_array, documents: csr_array, k: int) -> float:
    """Say how often a search finds the other half of query i, which is document i, among k hits.

    It is the search of a store, over the same indexes in memory.
    """
    texts = list(_as_texts(model, documents))
    searcher = search_in_memory(texts, model.encode(texts), language(find_language(texts)))
    asked = [read_words(text, "relevance") for text in _as_texts(model, queries)]
    rankings = [searcher.by_relevance(query, k) for query in encode_texts(model, asked)]
    return float(np.mean([i in ranking.rows for i, ranking in enumerate(rankings)]))


def _as_texts(model: Model, counts: csr_array) -> Iterator[str]:
    """Write each document's words as often as they were counted."""
    words = np.asarray(model.words)
    for start, stop in zip(counts.indptr, counts.indptr[1:], strict=False):
        row = slice(start, stop)
        yield " ".join(words[np.repeat(counts.indices[row], counts.data[row])])


def thin(counts: csr_array, most: int = MOST_WORDS) -> csr_array:
    """Take so many words of long documents, at even steps through their counts."""
    n_terms, last = np.diff(counts.indptr), np.append(0, np.cumsum(counts.data))[counts.indptr]
    ends = np.cumsum(counts.data) - np.repeat(last[:-1], n_terms)  # in each document from 0 on
    shares = np.repeat(np.minimum(1, most / np.maximum(1, np.diff(last))), n_terms)
    kept = np.floor(ends * shares) - np.floor((ends - counts.data) * shares)
    thinned = counts.copy()
    thinned.data = kept.astype(counts.dtype)
    thinned.eliminate_zeros()
    return thinned


def hide_halves(counts: csr_array, others: csr_array) -> tuple[Counted, Counted]:
    """Cut documents into halves: the first ones are queries, the second ones lie among others.

    A document's occurrences of words go to one half and the other by turns. Those too short for
    two halves are left out. The labels say which halves belong together.
    """
    one, two = halves(counts)
    n = one.shape[0]
    same = np.eye(n, dtype=np.uint8)
    nothing = np.zeros((others.shape[0], n), np.uint8)
    hidden = csr_array(vstack([two, others], format="csr"))
    return (one, same), (hidden, np.concatenate([same, nothing]))


def find_faults(hasher: TextHasher | Model, quality: Quality | None) -> list[str]:
    """Say in sentences where a model should not be trusted; most models have none."""
    model = as_model(hasher)
    n_documents, n_bits = model.training["documents"], model.n_bits
    faults = []
    if n_documents < LEAST_A_BIT * n_bits:
        faults.append(
            f"{n_documents:,} documents are few for {n_bits} bits: with fewer than "
            f"{LEAST_A_BIT} a bit, codes learn little that holds for other documents. Take more "
            "documents or fewer bits."
        )
    if quality is None:
        return faults
    tfidf, both = quality.values["exact tf-idf cosine"], quality.values.get("words and codes")
    if quality.values["codes"] < tfidf if both is None else both < NEARLY * tfidf:
        faults.append(_LOSES[quality.measure])
    if quality.tied > max(choose_k(quality.documents), MOST_TIED * quality.documents):
        faults.append(
            f"Ties decide what is found by code alone: the training documents have only "
            f"{model.learned['n_distinct_codes_']:,} different codes, and a query has about "
            f"{quality.tied:,} documents at its smallest distance. Take more bits, or search "
            "with words too, as vdsh search does."
        )
    return faults


_LOSES = {
    "labels": "Exact tf-idf does better than these codes. Take more documents or more bits, or "
    "search by tf-idf.",
    "halves": "Exact tf-idf finds the other half clearly more often than words and codes "
    "together, which is how vdsh search ranks. Take more documents or more bits.",
}


def _labelled(part: Texts) -> NDArray[np.intp]:
    return np.flatnonzero(read_labels(part[1]).known) if part[1] is not None else np.arange(0)


def _count(model: Model, part: Texts, rows: NDArray[np.intp]) -> Counted:
    texts, labels = (take(each, rows) for each in part)
    return model.counts(list(texts)), labels

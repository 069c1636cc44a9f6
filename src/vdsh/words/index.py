"""`WordIndex`: segments together, and BM25 of a query's words over all their documents."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import compiled, once
from vdsh.text.languages import Language, fold
from vdsh.text.tokenizer import hash_plainly
from vdsh.words.query import Term, WordQuery
from vdsh.words.segment import ABSENT, Postings, Segment
from vdsh.words.vocabulary import begin_with, nearest_words

K1, B = 1.2, 0.75  # as SQLite's FTS5 has them
LEAST_IDF = 1e-6  # of a word that half of the documents have
MOST_TERMS = 32  # of a query; of more, the most telling
PASSAGE = 0.5  # weight of the best passage of a long document, beside all of it
PASSAGE_LENGTH = 110  # words of a passage that are not stop words, about
MOST_MEANT = 3  # words that a mistyped or unfinished one may be
FEW = 16  # entries are sorted where there are so many times as many documents
VERY_FEW = 256  # the same with kernels

Numbers = NDArray[np.int64]


class Matches(NamedTuple):
    """Documents that have words of a query."""

    numbers: Numbers  # (n_found,): the documents, in order
    # (n_found,): how much of the query each answers: BM25 out of the most there can be, from 0 to
    # 1.
    shares: NDArray[np.float64]
    missing: list[str]  # words that no document has
    # (n_found, 2): where the best passage begins and ends; 0 where a document has none.
    spans: NDArray[np.uint32]

    def spans_of(self, numbers: Numbers) -> NDArray[np.uint32]:
        """Give the best passages of some documents."""
        at = np.searchsorted(self.numbers, numbers)
        spans = np.zeros((len(numbers), 2), np.uint32)
        there = np.flatnonzero(at < len(self.numbers))
        there = there[self.numbers[at[there]] == numbers[there]]
        spans[there] = self.spans[at[there]]
        return spans

    def of(self, numbers: Numbers) -> NDArray[np.float64]:
        """Give the shares of some documents; 0 for those that have none of the words."""
        if not len(self.numbers):
            return np.zeros(len(numbers))
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[at] == numbers, self.shares[at], 0.0)

    def only(self, kept: NDArray[np.bool_]) -> "Matches":
        """Leave some documents out."""
        return self._replace(
            numbers=self.numbers[kept], shares=self.shares[kept], spans=self.spans[kept]
        )

    def in_order(self, n: int) -> Numbers:
        """Return the n best documents, best first, with all that tie with the last of them."""
        if n < len(self.shares):
            least = np.partition(self.shares, len(self.shares) - n)[len(self.shares) - n]
            best = np.flatnonzero(self.shares >= least)
        else:
            best = np.arange(len(self.shares))
        return self.numbers[best[np.argsort(-self.shares[best], kind="stable")]]


def weigh(terms: Sequence[Term], df: Numbers, n_docs: int) -> tuple[Numbers, NDArray[np.float64]]:
    """Choose the most telling terms of a query, and say what each can give a document at most.

    Parameters
    ----------
    terms : sequence of Term
    df : ndarray of int64 of shape (n_terms,)
        Documents that have it; a term that none has is not chosen.
    n_docs : int
    """
    idf = np.maximum(np.log((n_docs - df + 0.5) / (df + 0.5)), LEAST_IDF)
    weights = np.array([term.weight for term in terms]) * idf
    order = np.argsort(-weights, kind="stable")
    chosen = order[df[order] > 0][:MOST_TERMS]
    return chosen, (K1 + 1) * weights[chosen]


def list_missing(terms: Sequence[Term], df: Numbers) -> list[str]:
    """List the words of a query that no document has in any form."""
    found = {term.word for term, n in zip(terms, df, strict=True) if n}
    words = dict.fromkeys(term.word for term in terms if not term.term.startswith("="))
    return [word for word in words if word not in found]


def with_passage(document: Any, passage: Any) -> Any:
    """Join what a long document and its best passage answer of a query."""
    return (document + PASSAGE * passage) / (1 + PASSAGE)


def for_length(lengths: NDArray[Any], mean: float) -> NDArray[Any]:
    """Give what BM25 adds to a word's count, by the length of the document."""
    return K1 * (1 - B) + K1 * B / mean * lengths


class WordIndex:
    """An inverted index: which documents have which words.

    `segments`: in the order of their documents. `language`: of their words.
    """

    def __init__(self, segments: Sequence[Segment], language: Language) -> None:
        self.segments = segments
        self.language = language
        self.n_docs = sum(segment.n_docs for segment in segments)
        n_words = sum(segment.n_words for segment in segments)
        self._mean_length = max(1, n_words) / max(1, self.n_docs)

    @once
    def _lengths(self) -> list[NDArray[Any]]:
        """Compute what BM25 adds to a word's count, by the length of each document."""
        return [for_length(one.documents.lengths, self._mean_length) for one in self.segments]

    @once
    def _passage_lengths(self) -> list[NDArray[Any]]:
        """Compute what BM25 adds to a word's count, by the length of each passage."""
        lengths = (one.passages.postings.lengths for one in self.segments)
        return [for_length(some, PASSAGE_LENGTH) for some in lengths]

    def match(self, query: WordQuery, among: Numbers | None = None) -> Matches:
        """Score the documents that have words of a query.

        With `among`, numbers in order, others are passed over; their words count as ever.
        """
        terms = sorted(query.terms(self.language))
        hashes, found, df = self._look_up([term.term for term in terms])
        chosen, weights = weigh(terms, df, self.n_docs)
        parts = [
            self._score(i, starts[chosen], stops[chosen], hashes[chosen], weights, among)
            for i, (starts, stops) in enumerate(found)
        ]
        numbers = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
        scores = np.concatenate([np.zeros(0), *(part[1] for part in parts)])
        spans = np.concatenate([np.zeros((0, 2), np.uint32), *(part[2] for part in parts)])
        shares = scores / max(weights.sum(), LEAST_IDF)
        return Matches(numbers, shares, list_missing(terms, df), spans)

    def having(self, words: Sequence[str]) -> Numbers:
        """Return the documents that have all of some words, in any form, in order.

        Stop words are not in the index: of these alone, all documents may be some.
        """
        content = [word for word in words if word not in self.language.stop_words]
        hashes = hash_plainly(sorted(set(self.language.stems(content))))
        parts = [np.zeros(0, np.int64)]
        for segment in self.segments:
            postings = segment.documents
            starts, stops = postings.find(hashes)
            lists = [postings.places[i:j] for i, j in zip(starts, stops, strict=True)]
            lists.sort(key=len)
            all_there = np.flatnonzero(postings.lengths != ABSENT)
            places: NDArray[Any] = lists[0] if lists else all_there
            for other in lists[1:]:
                places = np.intersect1d(places, other, assume_unique=True)
            parts.append(segment.first + places.astype(np.int64))
        return np.concatenate(parts)

    def meant(self, word: str, *, unfinished: bool = False) -> list[str]:
        """List words that a mistyped or unfinished one may be, which most documents have first."""
        form = fold(word)
        vocabularies = [segment.vocabulary for segment in self.segments]
        if unfinished:
            found = {other for one in vocabularies for other in begin_with(one, form)}
        else:
            found = set(nearest_words(vocabularies, form))
        names = sorted(found)
        _, _, df = self._look_up(self.language.stems(names))
        order = np.argsort(-df, kind="stable")
        return [names[i] for i in order[:MOST_MEANT] if df[i]]

    def _look_up(
        self, terms: Sequence[str]
    ) -> tuple[NDArray[np.uint64], list[tuple[Numbers, Numbers]], Numbers]:
        """Tell where the entries of terms are in each segment, and how many documents have them."""
        hashes = hash_plainly(terms)
        found = [segment.documents.find(hashes) for segment in self.segments]
        df = sum((stops - starts for starts, stops in found), np.zeros(len(terms), np.int64))
        return hashes, found, np.minimum(df, self.n_docs)  # a hostile one may have more

    def _score(
        self,
        i: int,
        starts: Numbers,
        stops: Numbers,
        hashes: NDArray[np.uint64],
        weights: NDArray[np.float64],
        among: Numbers | None,
    ) -> tuple[Numbers, NDArray[Any], NDArray[np.uint32]]:
        """Score the documents of a segment: their numbers, scores and best passages."""
        segment, lengths = self.segments[i], self._lengths[i]
        among = None if among is None else among - segment.first
        found, scores = _add_up(segment.documents, (starts, stops), weights, lengths, among)
        spans = np.zeros((len(found), 2), np.uint32)
        inside = segment.passages
        if len(found) and len(inside.owners):
            places, lengths = inside.postings.find(hashes), self._passage_lengths[i]
            passages, values = _add_up(inside.postings, places, weights, lengths)
            order = np.lexsort((-passages, values))  # the best of a document is its last
            owners = inside.owners[passages[order]]
            at = np.searchsorted(found, owners)
            kept = np.flatnonzero(found[np.minimum(at, len(found) - 1)] == owners)
            best = np.zeros(len(found))
            best[at[kept]] = values[order[kept]]
            spans[at[kept]] = inside.spans[passages[order[kept]]]
            long = spans[:, 1] > 0
            scores[long] = with_passage(scores[long], best[long])
        return segment.first + found.astype(np.int64), scores, spans


def _add_up(
    postings: Postings,
    spans: tuple[Numbers, Numbers],  # where the entries of each term begin and end
    weights: NDArray[np.float64],
    lengths: NDArray[Any],
    among: Numbers | None = None,
) -> tuple[Numbers, NDArray[Any]]:
    """Add up BM25 of terms: which texts have some, in order, and their scores."""
    n = int((spans[1] - spans[0]).sum())
    if among is None and VERY_FEW * n > len(postings.lengths) and compiled(0):
        from vdsh.words.term_kernels import add_up

        return add_up(postings.places, postings.counts, *spans, weights, lengths)
    entries: list[Any] = list(map(slice, *spans))
    if among is not None:
        entries = _of_some(postings, entries, among)
    parts = [postings.places[some] for some in entries]
    if not any(map(len, parts)):
        return np.zeros(0, np.int64), np.zeros(0)
    places = np.concatenate(parts)
    counts = np.concatenate([postings.counts[some] for some in entries])
    weighed = np.repeat(weights, [len(part) for part in parts])
    values = weighed * (counts / (counts + lengths[places]))
    if FEW * len(places) < len(postings.lengths):
        few, positions = np.unique(places, return_inverse=True)
        return few.astype(np.int64), np.bincount(positions, values)
    scores = np.bincount(places, values)
    found = np.flatnonzero(scores)
    return found, scores[found]


def _of_some(postings: Postings, slices: Sequence[slice], among: Numbers) -> list[Any]:
    """Tell which entries of words are of some documents."""
    first, last = np.searchsorted(among, (0, len(postings.lengths)))
    wanted = among[first:last].astype(postings.places.dtype)
    entries = []
    for span in slices:
        places = postings.places[span]
        at = np.searchsorted(places, wanted)
        there = at[at < len(places)]
        entries.append(span.start + there[places[there] == wanted[: len(there)]])
    return entries

"""`WordIndex`: segments together, and BM25 of a query's words over all their documents."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import once
from vdsh.text.languages import Language, fold
from vdsh.text.tokenizer import hash_plainly
from vdsh.words.query import Term, WordQuery
from vdsh.words.segment import ABSENT, Segment
from vdsh.words.vocabulary import begin_with, nearest_words

K1, B = 1.2, 0.75  # as SQLite's FTS5 has them
LEAST_IDF = 1e-6  # of a word that half of the documents have
MOST_TERMS = 32  # of a query; of more, the most telling
MOST_MEANT = 3  # words that a mistyped or unfinished one may be
FEW = 16  # entries are sorted where there are so many times as many documents

Numbers = NDArray[np.int64]


class Matches(NamedTuple):
    """Documents that have words of a query."""

    numbers: Numbers  # (n_found,): the documents, in order
    # (n_found,): how much of the query each answers: BM25 out of the most there can be, from 0 to
    # 1.
    shares: NDArray[np.float64]
    missing: list[str]  # words that no document has

    def of(self, numbers: Numbers) -> NDArray[np.float64]:
        """Give the shares of some documents; 0 for those that have none of the words."""
        if not len(self.numbers):
            return np.zeros(len(numbers))
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[at] == numbers, self.shares[at], 0.0)

    def only(self, kept: NDArray[np.bool_]) -> "Matches":
        """Leave some documents out."""
        return self._replace(numbers=self.numbers[kept], shares=self.shares[kept])

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
        return [for_length(segment.lengths, self._mean_length) for segment in self.segments]

    def match(self, query: WordQuery, among: Numbers | None = None) -> Matches:
        """Score the documents that have words of a query.

        With `among`, numbers in order, others are passed over; their words count as ever.
        """
        terms = sorted(query.terms(self.language))
        found, df = self._look_up([term.term for term in terms])
        chosen, weights = weigh(terms, df, self.n_docs)
        parts = [
            self._score(i, starts[chosen], stops[chosen], weights, among)
            for i, (starts, stops) in enumerate(found)
        ]
        numbers = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
        scores = np.concatenate([np.zeros(0), *(part[1] for part in parts)])
        shares = scores / max(weights.sum(), LEAST_IDF)
        return Matches(numbers, shares, list_missing(terms, df))

    def having(self, words: Sequence[str]) -> Numbers:
        """Return the documents that have all of some words, in any form, in order.

        Stop words are not in the index: of these alone, all documents may be some.
        """
        content = [word for word in words if word not in self.language.stop_words]
        hashes = hash_plainly(sorted(set(self.language.stems(content))))
        parts = [np.zeros(0, np.int64)]
        for segment in self.segments:
            starts, stops = _find(segment, hashes)
            lists = [segment.places[i:j] for i, j in zip(starts, stops, strict=True)]
            lists.sort(key=len)
            places = lists[0] if lists else np.flatnonzero(segment.lengths != ABSENT)
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
        _, df = self._look_up(self.language.stems(names))
        order = np.argsort(-df, kind="stable")
        return [names[i] for i in order[:MOST_MEANT] if df[i]]

    def _look_up(self, terms: Sequence[str]) -> tuple[list[tuple[Numbers, Numbers]], Numbers]:
        """Tell where the entries of terms are in each segment, and how many documents have them."""
        hashes = hash_plainly(terms)
        found = [_find(segment, hashes) for segment in self.segments]
        df = sum((stops - starts for starts, stops in found), np.zeros(len(terms), np.int64))
        return found, np.minimum(df, self.n_docs)  # a hostile one may have more than documents

    def _score(
        self,
        i: int,
        starts: Numbers,
        stops: Numbers,
        weights: NDArray[np.float64],
        among: Numbers | None,
    ) -> tuple[Numbers, NDArray[Any]]:
        segment, spans = self.segments[i], list(map(slice, starts, stops))
        entries = spans if among is None else _of_some(segment, spans, among)
        parts = [segment.places[some] for some in entries]
        if not any(map(len, parts)):
            return np.zeros(0, np.int64), np.zeros(0)
        places = np.concatenate(parts)
        counts = np.concatenate([segment.counts[some] for some in entries])
        weighed = np.repeat(weights, [len(part) for part in parts])
        values = weighed * (counts / (counts + self._lengths[i][places]))
        if FEW * len(places) < len(segment.lengths):
            few, positions = np.unique(places, return_inverse=True)
            scores = np.bincount(positions, values)
            return segment.first + few.astype(np.int64), scores
        scores = np.bincount(places, values)
        found = np.flatnonzero(scores)
        return segment.first + found, scores[found]


def _of_some(segment: Segment, spans: Sequence[slice], among: Numbers) -> list[Any]:
    """Tell which entries of words are of some documents."""
    ends = segment.first, segment.first + len(segment.lengths)
    first, last = np.searchsorted(among, ends)
    wanted = (among[first:last] - segment.first).astype(segment.places.dtype)
    entries = []
    for span in spans:
        places = segment.places[span]
        at = np.searchsorted(places, wanted)
        there = at[at < len(places)]
        entries.append(span.start + there[places[there] == wanted[: len(there)]])
    return entries


def _find(segment: Segment, hashes: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Tell where the entries of words begin and end; nowhere for those it has not."""
    if not len(segment.hashes):
        return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
    at = np.minimum(np.searchsorted(segment.hashes, hashes), len(segment.hashes) - 1)
    there = segment.hashes[at] == hashes
    starts = np.where(there, segment.offsets[at], 0)
    return starts, np.where(there, segment.offsets[at + 1], 0)

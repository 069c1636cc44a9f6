"""`WordIndex`: segments together, and BM25 of a query's words over all their documents."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import compiled, once
from vdsh.text.languages import Language, fold
from vdsh.text.tokenizer import hash_plainly
from vdsh.words.lexicon import exact_term
from vdsh.words.query import Term, WordQuery, name_terms
from vdsh.words.segment import ABSENT, Postings, Segment
from vdsh.words.vocabulary import Initial, begin_with, nearest_words

K1, B = 1.2, 0.75  # as SQLite's FTS5 has them
LEAST_IDF = 1e-6  # of a word that half of the documents have
MOST_TERMS = 32  # of a query; of more, the most telling
PASSAGE = 0.5  # weight of the best passage of a long document, beside all of it
PASSAGE_LENGTH = 110  # words of a passage that are not stop words, about
PASSAGE_K1 = 0.1  # of the passage that is shown: how many of the words count, not how often
MOST_MEANT = 3  # words that a mistyped or unfinished one may be
_SAMPLED = 32  # times as many documents as are wanted

Numbers = NDArray[np.int64]
Shares = NDArray[np.float64]


class Asked(NamedTuple):
    """A query as the index knows it, before any document is scored."""

    hashes: NDArray[np.uint64]  # (n_terms,): of its most telling terms, by falling weight
    spans: Numbers  # (n_segments, 2, n_terms): where their entries begin and end
    weights: Shares  # (n_terms,): what each can give a document; 1 together
    missing: list[str]  # words that no document has
    # How many documents have each term, also those that were not chosen.
    df: dict[str, int]
    source: "WordIndex"  # that has its terms: `IndexReader` has others for other queries


class Matches(NamedTuple):
    """Documents that have words of a query."""

    numbers: Numbers  # (n_found,): the documents, in order
    # (n_found,): how much of the query each answers: BM25 out of the most there can be, from 0 to
    # 1.
    shares: Shares
    missing: list[str]  # words that no document has
    long: Numbers  # (n_long,): those of them that have passages, in order
    spans: NDArray[np.uint32]  # (n_long, 2): where the best one begins and ends

    def spans_of(self, numbers: Numbers) -> NDArray[np.uint32]:
        """Give the best passages of some documents; 0 where a document has none."""
        spans = np.zeros((len(numbers), 2), np.uint32)
        if len(self.long):
            at, there = places_of(numbers, self.long)
            spans[there] = self.spans[at[there]]
        return spans

    def of(self, numbers: Numbers) -> NDArray[np.float64]:
        """Give the shares of some documents; 0 for those that have none of the words."""
        shares = np.zeros(len(numbers))
        at, there = places_of(numbers, self.numbers)
        shares[there] = self.shares[at[there]]
        return shares

    def only(self, kept: NDArray[np.bool_]) -> "Matches":
        """Leave some documents out."""
        return self._replace(numbers=self.numbers[kept], shares=self.shares[kept])

    def in_order(self, n: int) -> Numbers:
        """Return the n best documents, best first, with all that tie with the last of them."""
        best = np.arange(len(self.shares))
        if _SAMPLED * n < len(self.shares):  # what is below the n best of a sample is not seen
            best = np.flatnonzero(self.shares >= _nth_best(self.shares[:: _SAMPLED // 2], n))
        shares = self.shares[best]
        if n < len(best):
            best = best[shares >= _nth_best(shares, n)]
        return self.numbers[best[np.argsort(-self.shares[best], kind="stable")]]


def _nth_best(shares: NDArray[np.float64], n: int) -> float:
    return float(np.partition(shares, len(shares) - n)[len(shares) - n])


def places_of(numbers: Numbers, some: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Tell where numbers are among some others, which are in order, and whether they are."""
    if not len(some):
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    return at, some[at] == numbers


def weigh(terms: Sequence[Term], df: Numbers, n_docs: int) -> tuple[Numbers, NDArray[np.float64]]:
    """Choose the most telling terms of a query, and say what each can give a document at most.

    `df` (n_terms,) counts the documents that have each; a term that none has is not chosen.
    """
    pairs = enumerate(zip(terms, df.tolist(), strict=True))
    weighed = [(-one.weight * _idf(n, n_docs), i) for i, (one, n) in pairs if n]
    chosen = sorted(weighed)[:MOST_TERMS]
    return np.array([i for _, i in chosen], int), np.array([-(K1 + 1) * w for w, _ in chosen])


def _idf(n: int, n_docs: int) -> float:
    return max(math.log((n_docs - n + 0.5) / (n + 0.5)), LEAST_IDF)


def list_missing(terms: Sequence[Term], df: Numbers) -> list[str]:
    """List the words of a query that no document has in any form."""
    found = {term.word for term, n in zip(terms, df, strict=True) if n}
    words = dict.fromkeys(term.word for term in terms if not term.term.startswith("="))
    return [word for word in words if word not in found]


def terms_of(words: Sequence[str], language: Language, *, exactly: bool = False) -> list[str]:
    """List the terms of words, in any form or as they are; stop words have none."""
    content = [word for word in words if word not in language.stop_words]
    terms = language.stems(content)
    if exactly:
        pairs = zip(content, terms, strict=True)
        terms = [exact_term(word, stem, language) or stem for word, stem in pairs]
    return sorted(set(terms))


def with_passage(document: Any, passage: Any) -> Any:
    """Join what a long document and its best passage answer of a query."""
    return (document + PASSAGE * passage) / (1 + PASSAGE)


def for_mean(mean: float, k1: float = K1) -> tuple[float, float]:
    """Give what BM25 adds to a word's count: for any text, and for each word of it."""
    return k1 * (1 - B), k1 * B / mean


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
        self._initials: dict[str, Initial] = {}  # by letter, once it is asked for
        self._divided = [one for one in segments if len(one.passages.owners)]

    def look_up(self, query: WordQuery) -> Asked:
        """Tell where the words of a query are, and which no document has."""
        terms = sorted(query.terms(self.language))
        hashes, spans, df = self._find([term.term for term in terms])
        chosen, weights = weigh(terms, df, self.n_docs)
        weights /= max(weights.sum(), LEAST_IDF)
        missing = list_missing(terms, df)
        return Asked(
            hashes=hashes[chosen],
            spans=np.take(spans, chosen, axis=2),
            weights=weights,
            missing=missing,
            df={term.term: n for term, n in zip(terms, df.tolist(), strict=True)},
            source=self,
        )

    def score(self, asked: Asked) -> Matches:
        """Score the documents that have words of a query that were looked up."""
        hashes, spans, weights, missing, *_ = asked
        numbers, shares = self._add_up(spans, weights)
        long, best = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.uint32)]
        for segment in self._divided:
            ends = segment.first, segment.first + len(segment.documents.lengths)
            here = slice(*np.searchsorted(numbers, ends))
            at, where = _add_passages(segment, hashes, weights, numbers[here], shares[here])
            long.append(numbers[here][at])
            best.append(where)
        return Matches(numbers, shares, missing, np.concatenate(long), np.concatenate(best))

    def best(self, asked: Asked, n: int, most: int) -> tuple[Matches, Callable[[Numbers], Shares]]:
        """Find the n best documents by kernels, best first, and the most that tie with the last.

        Gives also what tells the shares of others.
        """
        if self._divided or not compiled(0):  # passages count, too
            all_ = self.score(asked)
            numbers = all_.in_order(n)[: n + most]
            return all_._replace(numbers=numbers, shares=all_.of(numbers)), all_.of
        from vdsh.words.scoring_kernels import best_of_all, shares_of

        given = self._addresses, asked.spans, asked.weights, *for_mean(self._mean_length)
        none = np.zeros(0, np.int64), np.zeros((0, 2), np.uint32)
        found = Matches(*best_of_all(*given, n, most), asked.missing, *none)
        return found, partial(shares_of, *given)

    def having(self, words: Sequence[str], *, exactly: bool = False) -> Numbers:
        """Return the documents that have all of some words, in any form or as they are, in order.

        Stop words are not in the index: of these alone, all documents may be some.
        """
        return self._with_all(terms_of(words, self.language, exactly=exactly))

    def with_name(self, query: WordQuery) -> Numbers | None:
        """Return the documents that have the name which a query is, in order; None for others."""
        name = query.only_name(self.language)
        if not name:
            return None
        found = (self._with_all([term]) for term in name_terms(name, self.language))
        return next((numbers for numbers in found if len(numbers)), np.zeros(0, np.int64))

    def _with_all(self, terms: Sequence[str]) -> Numbers:
        """Return the documents that have all of some terms, in order."""
        _, spans, _ = self._find(terms)
        parts = [np.zeros(0, np.int64)]
        for segment, here in zip(self.segments, spans.tolist(), strict=True):
            postings = segment.documents
            lists = [postings.places[i:j] for i, j in zip(*here, strict=True)]
            lists.sort(key=len)
            all_there = np.flatnonzero(postings.lengths != ABSENT)
            places: NDArray[Any] = lists[0] if lists else all_there
            for other in lists[1:]:
                places = np.intersect1d(places, other, assume_unique=True)
            parts.append(segment.first + places.astype(np.int64))
        return np.concatenate(parts)

    def meant(self, word: str, *, unfinished: bool = False) -> list[str]:
        """List words that a mistyped or unfinished one may be, which most documents have first."""
        return self.most_frequent(self.similar(word, unfinished=unfinished))

    def similar(self, word: str, *, unfinished: bool = False) -> list[str]:
        """List words that a mistyped or unfinished one may be, in order."""
        form = fold(word)
        if not form:  # a mark without a letter
            return []
        vocabularies = [segment.vocabulary for segment in self.segments]
        if unfinished:
            return sorted({other for one in vocabularies for other in begin_with(one, form)})
        if form[0] not in self._initials:
            self._initials[form[0]] = Initial(vocabularies, form[0])
        return sorted(nearest_words(self._initials[form[0]], form))

    def most_frequent(self, words: Sequence[str]) -> list[str]:
        """Choose the words that most documents have, in any form."""
        _, _, df = self._find(self.language.stems(list(words)))
        order = np.argsort(-df, kind="stable")
        return [words[i] for i in order[:MOST_MEANT] if df[i]]

    def _find(self, terms: Sequence[str]) -> tuple[NDArray[np.uint64], Numbers, Numbers]:
        """Tell where the entries of terms are in each segment, and how many documents have them."""
        hashes = hash_plainly(terms)
        if compiled(0):
            from vdsh.words.scoring_kernels import find_all

            spans = find_all(self._addresses, hashes)
        else:
            found = [segment.documents.find(hashes) for segment in self.segments]
            spans = np.array(found, np.int64).reshape(len(found), 2, len(terms))
        df = (spans[:, 1] - spans[:, 0]).sum(axis=0)
        return hashes, spans, np.minimum(df, self.n_docs)  # a hostile one may have more

    def _add_up(self, spans: Numbers, weights: NDArray[np.float64]) -> tuple[Any, Any]:
        """Add up BM25 of terms: documents in order, and scores."""
        if compiled(0):
            from vdsh.words.scoring_kernels import add_up_all

            return add_up_all(self._addresses, spans, weights, *for_mean(self._mean_length))
        pairs = zip([one.documents for one in self.segments], spans, strict=True)
        parts = [_add_up(*pair, weights, self._mean_length) for pair in pairs]
        numbers = [one.first + found for one, (found, _) in zip(self.segments, parts, strict=True)]
        scores = [np.zeros(0), *(scores for _, scores in parts)]  # there may be no segment yet
        return np.concatenate([np.zeros(0, np.int64), *numbers]), np.concatenate(scores)

    @once
    def _addresses(self) -> Numbers:
        """Tell kernels about each segment: its first text, terms, texts, and where arrays lie."""
        rows = [
            [one.first, len(one.documents.hashes), len(one.documents.lengths)]
            + [array.ctypes.data for array in one.documents]
            for one in self.segments
        ]
        return np.array(rows, np.int64).reshape(len(rows), 8)


def _add_passages(
    segment: Segment,
    hashes: NDArray[np.uint64],
    weights: NDArray[np.float64],
    found: Numbers,
    scores: NDArray[np.float64],
) -> tuple[Numbers, NDArray[np.uint32]]:
    """Join the scores of long documents with those of their best passages.

    Says where both are, and which passages show the most of the words.
    """
    inside = segment.passages
    spans = np.stack(inside.postings.find(hashes))
    passages, values = _add_up(inside.postings, spans, weights, PASSAGE_LENGTH)
    if not len(passages):
        return np.zeros(0, np.int64), np.zeros((0, 2), np.uint32)
    owners = inside.owners[passages].astype(np.int64)  # in order
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    at, there = places_of(segment.first + owners[firsts], found)
    at = at[there]
    scores[at] = with_passage(scores[at], np.maximum.reduceat(values, firsts)[there])
    _, values = _add_up(inside.postings, spans, weights, PASSAGE_LENGTH, PASSAGE_K1)
    most = np.repeat(np.maximum.reduceat(values, firsts), np.diff(firsts, append=len(values)))
    best = np.flatnonzero(values == most)
    best = best[np.diff(owners[best], prepend=-1) != 0]  # of two alike, the first
    return at, inside.spans[passages[best[there]]]


def _add_up(
    postings: Postings,
    spans: Numbers,  # (2, n_terms): where the entries of each term begin and end
    weights: NDArray[np.float64],
    mean_length: float,
    k1: float = K1,
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Add up BM25 of terms; give the texts that have some, in order, and their scores."""
    if compiled(0):
        from vdsh.words.scoring_kernels import add_up

        return add_up(*postings[2:], spans, weights, *for_mean(mean_length, k1))
    entries = list(map(slice, *spans))
    parts = [postings.places[some] for some in entries]
    if not any(map(len, parts)):
        return np.zeros(0, np.int64), np.zeros(0)
    places = np.concatenate(parts)
    counts = np.concatenate([postings.counts[some] for some in entries])
    weighed = np.repeat(weights, [len(part) for part in parts])
    base, per_word = for_mean(mean_length, k1)
    values = weighed * (counts / (counts + (base + per_word * postings.lengths[places])))
    is_found = np.zeros(len(postings.lengths), bool)
    is_found[places] = True
    found = np.flatnonzero(is_found)
    scores: Any = np.bincount(places, values)
    return found, scores[found]

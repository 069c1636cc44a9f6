"""`Searcher`: one word index and one Hamming index, searched together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, Scores, pack
from vdsh.retrieval.query import NO_WORDS, Query
from vdsh.retrieval.ranking import (
    Candidates,
    Ranking,
    rank,
    rank_by_distance,
    rank_by_expected_distance,
    vote,
)
from vdsh.search import HammingIndex
from vdsh.words import IndexReader, Matches, WordIndex, WordQuery
from vdsh.words.index import Asked, places_of
from vdsh.words.phrases import which_fit

# So many candidates by words, and as many by code; twice k where that is more.
LEAST_CANDIDATES = 100
# So many of the nearest are put in order by their expected distance; four times k where that is
# more, and four times as many where the query has only one part of a code of two.
NEAREST_BY_EXPECTED = 1000
# Documents that match as well as the last of the best; ids decide among them.
MOST_TIES = 1000
# Words of a query that are corrected when no document has them.
MOST_CORRECTED = 5
# The best by words that are tried first, where a filter or a phrase may refuse some, and how many
# are tried before all documents that pass the filter are looked at.
FIRST_TRIED = 500
MOST_TRIED = 10_000

Rows = NDArray[np.int64]

NO_ROWS = np.zeros(0, np.int64)
SharesOf = Callable[[Rows], NDArray[np.float64]]


class Documents(Protocol):
    """What a search asks of the documents themselves: a filter, and their texts."""

    @property
    def is_filtered(self) -> bool:
        """Whether only some documents may be found."""

    def few_rows(self) -> Rows | None:
        """Return the rows that pass the filter, in order, where they are known to be few."""

    def passing(self, rows: Rows) -> Rows:
        """Return those of some rows that pass the filter, in the order given."""

    def all_rows(self) -> Rows:
        """Return all rows that pass the filter, in order."""

    def texts(self, rows: Rows, phrases: Sequence[Sequence[str]]) -> tuple[Rows, list[str]]:
        """Return rows that pass the filter with the texts their words are taken from.

        Rows that cannot have one of the phrases may be left out.
        """

    def id_order(self, rows: Rows) -> Rows:
        """Return numbers that sort as the ids of rows do."""


class LookedUp(NamedTuple):
    """The words of a query as the word index knows them, after corrections."""

    words: WordQuery
    asked: Asked
    corrections: dict[str, str]


class Searcher:
    """Searches one state of a collection of documents.

    Parameters
    ----------
    words : WordIndex, IndexReader or None
        None where only codes are searched.
    codes : HammingIndex
        Of the same documents, numbered by their rows; empty where they have no codes.
    documents : Documents
    corrects : bool, default=True
        Whether to look for what words that no document has were meant to be.
    """

    def __init__(
        self,
        words: WordIndex | IndexReader | None,
        codes: HammingIndex,
        documents: Documents,
        *,
        corrects: bool = True,
    ) -> None:
        self._words = words
        self._corrects = corrects
        self.codes = codes
        self.documents = documents

    @property
    def words(self) -> WordIndex | IndexReader:
        """The word index."""
        assert self._words is not None, "this searcher was made to look for codes alone"
        return self._words

    def by_relevance(self, query: Query, k: int, *, strict: bool = False) -> Ranking:
        """Find the k best documents by words and code together.

        The best by words vote on the code that is looked for; they and the documents nearest to
        that code are ranked together.
        """
        found = self._look_up(query.words or NO_WORDS)
        query = query.with_words(found.words)
        with_name = self.words.with_name(found.words)
        n_wanted = n_candidates(found.words, k)
        few = self.documents.few_rows()
        if few is not None:
            matches = self.words.score(found.asked)
            rows = self._fitting_among(few, found.words, matches)
            candidates = self._candidates(rows, matches.of(rows), with_name)
            target = vote(query, candidates)
        else:
            matches, rows, shares_of = self._best_by_words(found, n_wanted, with_name)
            by_words = self._candidates(rows, shares_of(rows), with_name)
            target = vote(query, by_words)
            near = self._near_target(target, found.words, n_wanted)
            near = near[~is_among(near, np.sort(rows))]
            candidates = by_words.joined(self._candidates(near, shares_of(near), with_name))
        ranking = rank(query, candidates, target, k, strict=strict)
        return replace(
            ranking,
            spans=matches.spans_of(ranking.rows),
            words_without_documents=found.asked.missing,
            corrections=found.corrections,
            document_frequencies=found.asked.df,
        )

    def by_distance(self, query: Query, k: int) -> Ranking:
        """Find the k documents with the nearest codes, ties by id."""
        candidates = self._candidates(self._nearest(query.code, k))
        return rank_by_distance(query, candidates, k)

    def by_expected_distance(self, query: Query, k: int) -> Ranking:
        """Find the k documents with the least expected distance among the nearest by code."""
        candidates = self._candidates(self._nearest(query.code, n_nearest_by_expected(query, k)))
        return rank_by_expected_distance(query, candidates, k)

    def within(self, query: Query, radius: int, limit: int | None = None) -> Ranking:
        """Find all documents within a radius, nearest first, ties by id; list the first of them."""
        rows = self.documents.passing(self.codes.numbers_within(query.code, radius))
        ranking = rank_by_distance(query, self._candidates(rows), len(rows))
        return ranking.first(limit if limit is not None else len(rows))

    def _look_up(self, words: WordQuery) -> LookedUp:
        """Look up the words of a query; those that no document has are corrected if possible."""
        asked = self.words.look_up(words)
        corrections = {}
        for word in asked.missing[: MOST_CORRECTED if self._corrects else 0]:
            others = self.words.meant(word, unfinished=word == words.unfinished)
            if others:
                corrections[word] = others[0]
        if corrections:
            words = words.corrected(corrections)
            asked = self.words.look_up(words)
        return LookedUp(words, asked, corrections)

    def _best_by_words(
        self, found: LookedUp, n: int, with_name: Rows | None
    ) -> tuple[Matches, Rows, SharesOf]:
        """Return what matches, the rows of the n best, and what tells their shares.

        The best of those with the name that the query is come first, and the best of all after.
        """
        is_plain = not found.words.has_signs and with_name is None
        if is_plain and not self.documents.is_filtered:
            matches, shares_of = self.words.best(found.asked, n, MOST_TIES)
            return matches, matches.numbers, shares_of
        matches = self._allowed_by_signs(found.words, self.words.score(found.asked))
        rows = self._best_passing(found.words, matches, n)
        if with_name is not None:
            named = matches.only(is_among(matches.numbers, with_name))
            best = self._best_passing(found.words, named, n)
            rows = np.append(best, rows[~is_among(rows, np.sort(best))])
        return matches, rows, matches.of

    def _allowed_by_signs(self, words: WordQuery, matches: Matches) -> Matches:
        """Leave out documents with excluded words, and those that lack a word of a phrase."""
        excluded = self._rows_with_excluded_words(words)
        if len(excluded):
            matches = matches.only(~is_among(matches.numbers, excluded))
        for phrase in words.phrases:
            rows = self.words.having(phrase, exactly=True)
            matches = matches.only(is_among(matches.numbers, rows))
        return matches

    def _best_passing(self, words: WordQuery, matches: Matches, n: int) -> Rows:
        """Return the n best that pass the filter and have the phrases, trying the best first."""
        order = matches.in_order(MOST_TRIED)[:MOST_TRIED]
        found = np.zeros(0, np.int64)
        start = 0
        size = FIRST_TRIED
        while start < len(order) and len(found) < n:
            found = np.append(found, self._fitting(order[start : start + size], words))
            start += size
            # At the rate at which documents passed so far, so many more have to be tried.
            likely = start * (n - len(found)) // max(1, len(found))
            size = min(max(FIRST_TRIED, likely), 4 * size)
        enough = len(found) >= n or len(order) == len(matches.numbers)
        if enough or not self.documents.is_filtered:
            return found
        passing = matches.only(is_among(matches.numbers, self.documents.all_rows()))
        if len(passing.numbers) == len(matches.numbers):
            return found
        return self._best_passing(words, passing, n)

    def _fitting_among(self, rows: Rows, words: WordQuery, matches: Matches) -> Rows:
        """Return those of few rows that pass a filter which fit the phrases and exclusions."""
        rows = rows[~is_among(rows, self._rows_with_excluded_words(words))]
        for phrase in words.phrases:
            rows = rows[is_among(rows, self.words.having(phrase, exactly=True))]
            rows = rows[is_among(rows, matches.numbers)]
        return self._fitting(rows, words) if words.needs_texts else rows

    def _fitting(self, rows: Rows, words: WordQuery) -> Rows:
        """Return those of some rows that pass the filter, and whose texts fit the phrases."""
        if not words.needs_texts:
            return self.documents.passing(rows)
        read, texts = self.documents.texts(np.sort(rows), words.phrases)
        return read[which_fit(words, texts, self.words.language)]

    def _rows_with_excluded_words(self, words: WordQuery) -> Rows:
        """Return the rows of documents with a single word that the query excludes, in order."""
        if not words.without:
            return NO_ROWS
        lists = [self.words.having([word]) for word in words.excluded(self.words.language)]
        return np.unique(np.concatenate([NO_ROWS, *lists]))

    def _near_target(self, target: Scores | None, words: WordQuery, n: int) -> Rows:
        """Return the rows nearest to the code that is looked for.

        A phrase must be in the text, so nothing is looked for by code then.
        """
        if target is None or not len(self.codes) or words.phrases:
            return NO_ROWS
        # Some of the nearest may have an excluded word.
        rows = self._nearest(pack((target > 0.5)[None])[0], 4 * n if words.without else n)
        rows = rows[~is_among(rows, self._rows_with_excluded_words(words))]
        return self._fitting(rows, words) if words.needs_texts else rows

    def _nearest(self, code: Codes, n: int) -> Rows:
        """Return the rows of the n codes nearest to one, of documents that pass the filter."""
        if not len(self.codes):
            return NO_ROWS
        if not self.documents.is_filtered:
            return self.codes.nearest(code, n)[1]
        few = self.documents.few_rows()
        n_tried = 16 * n + 64
        # A filter that many documents pass is answered by the nearest of all.
        while few is None and n_tried < min(len(self.codes), MOST_TRIED):
            passed = self.documents.passing(self.codes.nearest(code, n_tried)[1])
            if len(passed) >= n:
                return passed[:n]
            n_tried *= 8
        allowed = few if few is not None else self.documents.all_rows()
        return self.codes.nearest(code, n, allowed=allowed)[1]

    def _candidates(
        self,
        rows: Rows,
        shares: NDArray[np.float64] | None = None,
        with_name: Rows | None = None,
    ) -> Candidates:
        """Return the codes of rows, how their ids sort, and how they answer the query."""
        if len(self.codes):
            codes, id_order = self.codes.take(rows)
        else:
            codes = np.zeros((len(rows), 0), np.uint8)
            id_order = self.documents.id_order(rows)
        return Candidates(
            rows=rows,
            id_order=id_order,
            codes=codes,
            shares=np.zeros(len(rows)) if shares is None else shares,
            has_name=np.ones(len(rows), bool) if with_name is None else is_among(rows, with_name),
        )


def is_among(rows: Rows, others: Rows) -> NDArray[np.bool_]:
    """Say which rows are among others, which are in order."""
    return places_of(rows, others)[1]


def n_candidates(words: WordQuery, k: int) -> int:
    """Return how many of the best by words are looked at, and of the nearest by code."""
    # Texts are read to find phrases, so fewer documents are looked at.
    return 2 * k if words.phrases else max(2 * k, LEAST_CANDIDATES)


def n_nearest_by_expected(query: Query, k: int) -> int:
    """Return how many of the nearest are put in order by their expected distance."""
    n = max(4 * k, NEAREST_BY_EXPECTED)
    return 4 * n if query.lacks_part else n

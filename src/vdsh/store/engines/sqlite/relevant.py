"""The documents that words and codes together may find: the best by words, the nearest by code."""

from collections.abc import Iterable, Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from vdsh.search import HammingIndex
from vdsh.store.engines.sqlite.snapshot import MANY_TRIED, Pairs, Snapshot
from vdsh.store.hits import Candidate
from vdsh.store.ranking import ByRelevance, fits, words_text
from vdsh.store.rows import check_code
from vdsh.text.languages import Language
from vdsh.words import Matches, WordIndex, WordQuery

MOST_TIES = 1000  # documents that match as well as the last of the best
FIRST_TRIED = 500  # of the best by words, where a filter or a phrase may refuse some

Numbers = NDArray[np.int64]


def find_candidates(
    snapshot: Snapshot, index: HammingIndex, words: WordIndex, ranking: ByRelevance
) -> list[Candidate]:
    """Find the best by words, and the nearest to the code that those want."""
    query, n = ranking.words, ranking.n_candidates
    few = None if snapshot.few is None else _numbers(snapshot.few)
    matches = words.match(query, few)
    ranking.missing = matches.missing
    if few is not None:
        return _of_few(snapshot, words, ranking, few, matches)
    left_out = _any_of(words.having([word]) for word in query.excluded(words.language))
    if len(left_out):
        matches = matches.only(~_among(matches.numbers, left_out))
    for phrase in query.phrases:
        matches = matches.only(_among(matches.numbers, words.having(phrase)))
    best = _best_by_words(snapshot, matches, n, query, words.language)
    wanted = ranking.wanted(best)
    if query.phrases or not len(index):
        return best
    near = snapshot.nearest(index, wanted, 4 * n if query.without else n)
    if near is None:
        near = snapshot.nearest_of_all_passing(wanted, n)
    known = {one.id for one in best}
    rows = snapshot.rows_of([id for id, _ in near if id not in known])
    rows = list(compress(rows, ~_among(_numbers(rows), left_out)))
    if any(len(some) > 1 for some in query.without):
        kept = _fitting(snapshot, [row for row, _, _ in rows], query, words.language)
        rows = list(compress(rows, _among(_numbers(rows), kept)))
    return [*_candidates(rows, matches), *best]


def fitting(snapshot: Snapshot, words: WordIndex | None, pairs: Pairs, query: WordQuery) -> Pairs:
    """Leave out documents that lack a phrase, or have what the query excludes.

    Texts are read of documents that have the words, or of all that are near: of the fewer.
    Where there is no word index, all that are near are read.
    """
    asks, language = bool(query.phrases), snapshot.language
    named = [list(some) for some in query.phrases or query.without]
    if words is not None:
        having = words.having(sum(named, [])) if asks else _any_of(map(words.having, named))
    if words is None or len(having) > len(pairs):
        found = [one.document for one in snapshot.look_up([id for id, _ in pairs])]
        kept = {one.id for one in found if fits(query, words_text(one), language)}
        return [pair for pair in pairs if pair[0] in kept]
    texts = snapshot.texts(having.tolist())
    told = {id for _, id, text in texts if fits(query, text, language) == asks}  # to keep or not
    return [pair for pair in pairs if (pair[0] in told) == asks]


def _of_few(
    snapshot: Snapshot, words: WordIndex, ranking: ByRelevance, few: Numbers, matches: Matches
) -> list[Candidate]:
    """Take all of few documents that pass a filter, if they fit the query."""
    query = ranking.words
    for word in query.excluded(words.language):
        few = few[~_among(few, words.having([word]))]
    for phrase in query.phrases:
        few = few[_among(few, np.intersect1d(matches.numbers, words.having(phrase)))]
    if query.phrases or any(len(some) > 1 for some in query.without):
        few = _fitting(snapshot, few.tolist(), query, words.language)
    known = {row[0]: row for row in snapshot.few or ()}
    candidates = _candidates([known[row] for row in few.tolist()], matches)
    ranking.wanted(candidates)
    return candidates


def _best_by_words(
    snapshot: Snapshot, matches: Matches, n: int, query: WordQuery, language: Language
) -> list[Candidate]:
    signs = bool(query.phrases) or any(len(some) > 1 for some in query.without)
    if not signs and not snapshot.is_filtered:
        numbers = matches.in_order(n)[: n + MOST_TIES]
        return _candidates(snapshot.rows("id, code", numbers.tolist()), matches)
    found: list[Candidate] = []
    order, start, size = matches.in_order(MANY_TRIED)[:MANY_TRIED], 0, FIRST_TRIED
    while start < len(order) and len(found) < n:
        some = order[start : start + size]
        if signs:
            some = some[_among(some, _fitting(snapshot, some.tolist(), query, language))]
        found += _candidates(snapshot.rows("id, code", some.tolist()), matches)
        start, size = start + size, 4 * size
    if len(found) < n and len(order) < len(matches.numbers) and snapshot.is_filtered:
        passing = matches.only(_among(matches.numbers, np.sort(snapshot.all_rows())))
        if len(passing.numbers) < len(matches.numbers):
            return _best_by_words(snapshot, passing, n, query, language)
    return found


def _candidates(rows: Sequence[tuple[int, str, bytes]], matches: Matches) -> list[Candidate]:
    """Join rows with what they answer of a query, and where."""
    numbers = _numbers(rows)
    spans = map(tuple, matches.spans_of(numbers).tolist())
    matched = zip(rows, matches.of(numbers).tolist(), spans, strict=True)
    return [
        Candidate(id, 0, check_code(code), share, span) for (_, id, code), share, span in matched
    ]


def _fitting(
    snapshot: Snapshot, numbers: Sequence[int], query: WordQuery, language: Language
) -> Numbers:
    """Return the rows whose texts have all phrases, and none that is to be left out."""
    rows = snapshot.texts(numbers)
    return np.sort(_numbers([row for row in rows if fits(query, row[2], language)]))


def _numbers(rows: Sequence[Sequence[object]]) -> Numbers:
    return np.array([row[0] for row in rows], np.int64)


def _any_of(numbers: Iterable[Numbers]) -> Numbers:
    lists = list(numbers)
    return lists[0] if len(lists) == 1 else np.unique(np.concatenate([[], *lists]).astype(np.int64))


def _among(numbers: Numbers, some: Numbers) -> NDArray[np.bool_]:
    """Say which numbers are among some others, which are in order."""
    if not len(some):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    among: NDArray[np.bool_] = some[at] == numbers
    return among

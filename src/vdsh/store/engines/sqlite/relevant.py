"""The documents that words and codes together may find: the best by words, the nearest by code."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import compiled
from vdsh.search import HammingIndex
from vdsh.store.engines.sqlite.snapshot import MANY_TRIED, Pairs, Snapshot
from vdsh.store.hits import Found
from vdsh.store.ranking import (
    MOST_TIES,
    ByExpectedDistance,
    ByRelevance,
    Choice,
    Pool,
    sort_keys,
    words_text,
)
from vdsh.text.languages import Language
from vdsh.words import IndexReader, Matches, WordQuery
from vdsh.words.index import places_of
from vdsh.words.phrases import fits, which_fit

FIRST_TRIED = 500  # of the best by words, where a filter or a phrase may refuse some

Numbers = NDArray[np.int64]


def find_best(
    snapshot: Snapshot, index: HammingIndex, words: IndexReader, ranking: ByRelevance
) -> tuple[Numbers, list[Choice], Matches]:
    """Find the best by words, and the nearest to the code that those want: rows, who is chosen."""
    asked = words.look_up(ranking.words)
    if ranking.correct(asked.missing, words.meant):
        asked = words.look_up(ranking.words)
    ranking.missing, ranking.df = asked.missing, asked.df
    if compiled(0) and not snapshot.is_filtered:
        chosen = ranking.choose_in_memory(words, asked, index)
        if chosen is not None:
            return chosen
    matches = words.score(asked)
    numbers, pool = _find_candidates(snapshot, index, words, matches, ranking)
    return numbers, ranking.choose(pool), matches


def _find_candidates(
    snapshot: Snapshot,
    index: HammingIndex,
    words: IndexReader,
    matches: Matches,
    ranking: ByRelevance,
) -> tuple[Numbers, Pool]:
    query, n, named = ranking.words, ranking.n_candidates, words.with_name(ranking.words)
    if snapshot.few is not None:
        few = _of_few(snapshot, words, query, _numbers(snapshot.few), matches)
        pool = _pool(snapshot, index, few, matches, named)
        ranking.wanted(pool)
        return few, pool
    left_out = _any_of(words.having([word]) for word in query.excluded(words.language))
    if len(left_out):
        matches = matches.only(~_among(matches.numbers, left_out))
    for phrase in query.phrases:
        matches = matches.only(_among(matches.numbers, words.having(phrase, exactly=True)))
    found = _best_by_words(snapshot, matches, n, query, words.language)
    if named is not None:
        with_name = matches.only(_among(matches.numbers, named))
        best = _best_by_words(snapshot, with_name, n, query, words.language)
        found = np.append(best, found[~_among(found, np.sort(best))])
    wanted = ranking.wanted(_pool(snapshot, index, found, matches, named))
    if len(index) and not query.phrases:
        near = _nearest(snapshot, index, wanted, n, 4 * n if query.without else n)
        near = near[~_among(near, np.sort(found))]
        if len(left_out):
            near = near[~_among(near, left_out)]
        if any(len(some) > 1 for some in query.without):
            near = _fitting(snapshot, near.tolist(), query, words.language)
        found = np.append(found, near)
    return found, _pool(snapshot, index, found, matches, named)


def _nearest(
    snapshot: Snapshot, index: HammingIndex, wanted: Codes, n: int, n_tried: int
) -> Numbers:
    """Return the rows of the documents nearest to a code."""
    if not snapshot.is_filtered:
        return index.nearest(wanted, n_tried)[1]
    near = snapshot.nearest(index, wanted, n_tried)
    if near is None:
        near = snapshot.nearest_of_all_passing(wanted, n)
    return np.array(snapshot.rows_of(near), np.int64)


def by_expected_distance(
    snapshot: Snapshot, index: HammingIndex, code: Codes, n: int, ranking: ByExpectedDistance
) -> list[Found]:
    """Put the n nearest in order by the codes that the index has, and fetch the first of them."""
    if not len(index):
        return []
    numbers = _nearest(snapshot, index, code, n, n)
    codes, keys = index.take(numbers)
    distances = np.bitwise_count(codes ^ code).sum(axis=1, dtype=int)
    first, means = ranking.choose(codes, distances, keys)
    found = snapshot.fetch_rows(numbers[first].tolist())
    ranking.expected = {one.document.id: mean for one, mean in zip(found, means, strict=True)}
    pairs = zip(found, distances[first].tolist(), strict=True)
    return [one._replace(distance=bits) for one, bits in pairs]


def fitting(
    snapshot: Snapshot,
    words: IndexReader | None,
    pairs: Pairs,
    query: WordQuery,
    language: Language,
) -> Pairs:
    """Leave out documents that lack a phrase, or have what the query excludes.

    Texts are read of documents that have the words, or of all that are near: of the fewer.
    Where there is no word index, all that are near are read.
    """
    asks = bool(query.phrases)
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
    snapshot: Snapshot, words: IndexReader, query: WordQuery, few: Numbers, matches: Matches
) -> Numbers:
    """Take all of few documents that pass a filter, if they fit the query."""
    for word in query.excluded(words.language):
        few = few[~_among(few, words.having([word]))]
    for phrase in query.phrases:
        few = few[_among(few, np.intersect1d(matches.numbers, words.having(phrase, exactly=True)))]
    if query.phrases or any(len(some) > 1 for some in query.without):
        few = _fitting(snapshot, few.tolist(), query, words.language)
    return few


def _best_by_words(
    snapshot: Snapshot, matches: Matches, n: int, query: WordQuery, language: Language
) -> Numbers:
    signs = bool(query.phrases) or any(len(some) > 1 for some in query.without)
    if not signs and not snapshot.is_filtered:
        return matches.in_order(n)[: n + MOST_TIES]
    found = np.zeros(0, np.int64)
    order, start, size = matches.in_order(MANY_TRIED)[:MANY_TRIED], 0, FIRST_TRIED
    while start < len(order) and len(found) < n:
        some = order[start : start + size].tolist()
        fit = (
            _fitting(snapshot, some, query, language)
            if signs
            else _numbers(snapshot.rows("id", some))
        )
        found = np.append(found, fit)
        start += size
        likely = start * (n - len(found)) // max(1, len(found))  # at the rate of those so far
        size = min(max(FIRST_TRIED, likely), 4 * size)
    if len(found) < n and len(order) < len(matches.numbers) and snapshot.is_filtered:
        passing = matches.only(_among(matches.numbers, np.sort(snapshot.all_rows())))
        if len(passing.numbers) < len(matches.numbers):
            return _best_by_words(snapshot, passing, n, query, language)
    return found


def _pool(
    snapshot: Snapshot,
    index: HammingIndex,
    numbers: Numbers,
    matches: Matches,
    named: Numbers | None,
) -> Pool:
    """Give the codes of rows, what they answer of a query, and how their ids sort.

    `named`: the documents that have the name which the query is; None where it is none.
    """
    if len(index):
        codes, keys = index.take(numbers)
    else:  # no codes yet
        ids = dict(snapshot.rows("id", numbers.tolist()))
        keys = sort_keys([ids[number] for number in numbers.tolist()])
        codes = np.zeros((len(numbers), 0), np.uint8)
    has_name = np.ones(len(numbers), bool) if named is None else _among(numbers, named)
    return Pool(keys, codes, matches.of(numbers), has_name)


def _fitting(
    snapshot: Snapshot, numbers: Sequence[int], query: WordQuery, language: Language
) -> Numbers:
    """Return the rows whose texts have all phrases, and none that is to be left out."""
    rows = snapshot.texts(sorted(numbers), query.phrases)  # as they lie on the disk
    kept = which_fit(query, [text for _, _, text in rows], language)
    return np.sort(_numbers(rows)[kept])


def _numbers(rows: Sequence[Sequence[object]]) -> Numbers:
    return np.array([row[0] for row in rows], np.int64)


def _any_of(numbers: Iterable[Numbers]) -> Numbers:
    lists = [np.zeros(0, np.int64), *numbers]
    return lists[-1] if len(lists) < 3 else np.unique(np.concatenate(lists))


def _among(numbers: Numbers, some: Numbers) -> NDArray[np.bool_]:
    """Say which numbers are among some others, which are in order."""
    return places_of(numbers, some)[1]

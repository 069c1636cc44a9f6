"""The documents that words and codes together may find, in one snapshot of PostgreSQL.

The server counts which documents have which words and scores them, as the word index of a folder
does. Words that cannot bring a document among the best on their own are not looked for alone, nor
are common ones when the more telling words of a query are in many documents (50,000 for a query of
two words); they count where they are.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.store.engines.postgres.rows import COUNT, any_of, asking, quote, to_code, to_found
from vdsh.store.engines.postgres.session import StoreCursor
from vdsh.store.engines.postgres.tables import escape, unescape
from vdsh.store.hits import Candidate, Found
from vdsh.store.ranking import MOST_TIES, ByRelevance, Pool, words_text
from vdsh.store.where import ALWAYS, Sql
from vdsh.text.languages import Language, fold
from vdsh.words import index as bm25
from vdsh.words.phrases import fits
from vdsh.words.query import name_terms
from vdsh.words.vocabulary import Initial, begin_with, nearest_words

MOST_TRIED = 10_000  # of the best by words, where phrases may refuse some
MOST_BEGUN = 200  # words that an unfinished one may be, the shortest
FIRST_COUNTED = 1000  # documents of each word of a long query, before it is known which matter
FEW = 1000  # documents that pass a filter, when just those are looked at
FEW_SCORED = 2000  # documents that are scored at once
MOST_COUNTED = 100_000  # words that are remembered
MANY_COUNTED = 100_000  # words of documents, before common ones find no more
SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;"
    "SET LOCAL work_mem = '64MB'; SET LOCAL jit = off"
)
DOCUMENT_COUNTS = """
SELECT (SELECT count(*) FROM
  (SELECT FROM {documents} WHERE words @@ word::tsquery LIMIT %s) AS having_it)
FROM unnest(%s::text[]) WITH ORDINALITY AS asked(word, place) ORDER BY place
"""

TOTALS = """
SELECT sum(documents), sum(words), string_agg(format('%s %s', xmin, ctid), ',' ORDER BY ctid)
FROM {totals}
"""

BEGIN_WITH = "SELECT word FROM {vocabulary} WHERE word >= %s AND word < %s ORDER BY word"

Nearest = Callable[[StoreCursor, Codes, int], list[Found]]


@dataclass
class Relevant:
    """Looks for the documents of a ranking in one transaction."""

    ranking: ByRelevance
    cursor: StoreCursor  # in a transaction that began with `SETTINGS`
    condition: Sql  # what documents have to pass
    narrow: bool  # whether an index knows which documents may pass
    nearest: Nearest  # gives the n nearest to a code, in a transaction
    # How many documents have words, by the state of the store: each change leaves another row in
    # the totals, so those tell one state from another. Only the last state is kept.
    counted: dict[str, dict[str, int]]
    language: Language
    _known: dict[str, int] = field(init=False)  # what was counted in this state
    _words: list[str] = field(init=False)  # of the query, those that count
    _df: NDArray[np.int64] = field(init=False)
    _weights: NDArray[np.float64] = field(init=False)  # what each can give a document
    _mean_length: float = field(init=False)

    def find(self) -> list[Found]:
        """Return the documents that the ranking chooses, best first."""
        ranking, n = self.ranking, self.ranking.n_candidates
        self._weigh()
        if ranking.correct(ranking.missing, self._meant):
            self._weigh()
        few = self._few() if self.narrow else None
        if few is not None:
            few = self._named(self._with_passages(few))
            ranking.wanted(Pool.of(few))
            return self._fetch(ranking(few))
        found = {one.id: one for one in self._best_of_both(n)}
        found = {one.id: one for one in self._named(list(found.values()), n)}
        wanted = ranking.wanted(Pool.of(list(found.values())))
        if not ranking.words.phrases and len(wanted):
            near = self.nearest(self.cursor, wanted, 4 * n if ranking.words.without else n)
            others = self._fitting(one for one in near if one.document.id not in found)
            found |= {one.id: one for one in self._named(self._with_passages(others))}
        return self._fetch(ranking(list(found.values())))

    def _weigh(self) -> None:
        """Choose the words that count; of a long query the most telling."""
        n_docs, n_words, totals = self.cursor.ask(TOTALS)[0]
        state = str(totals)
        if state not in self.counted or len(self.counted[state]) > MOST_COUNTED:
            self.counted.clear()
        self._known = self.counted.setdefault(state, {})
        n_docs, n_words = int(n_docs or 0), int(n_words or 0)
        terms = sorted(self.ranking.words.terms(self.language))
        names = [term.term for term in terms]
        limit = FIRST_COUNTED if len(names) > bm25.MOST_TERMS else None
        df = self._count(names, limit)
        sure = np.full(len(df), limit is None) | (df != limit)
        while True:
            chosen, self._weights = bm25.weigh(terms, df, max(n_docs, int(df.max(initial=0))))
            unsure = chosen[~sure[chosen]]
            if not len(unsure):
                break
            df[unsure] = self._count([names[i] for i in unsure], None)
            sure[unsure] = True
        self.ranking.missing = bm25.list_missing(terms, df)
        self.ranking.df = dict(zip(names, df.tolist(), strict=True))
        self._words, self._df = [names[i] for i in chosen], df[chosen]
        self._mean_length = max(1, n_words) / max(1, n_docs)

    def _meant(self, word: str, *, unfinished: bool) -> list[str]:
        """List words that a mistyped or unfinished one may be, as the word index of a folder."""
        form = fold(word)
        start = form if unfinished else form[0]
        rows = self.cursor.ask(BEGIN_WITH, start, start + chr(sys.maxunicode))
        vocabulary = "\n".join(line for (line,) in rows).encode()
        if unfinished:
            names = sorted(sorted(begin_with(vocabulary, form), key=len)[:MOST_BEGUN])
        else:
            names = sorted(nearest_words(Initial([vocabulary], start), form))
        df = self._count(self.language.stems(names), MOST_TRIED)
        return [names[i] for i in np.argsort(-df, kind="stable") if df[i]]

    def _count(self, words: Sequence[str], limit: int | None) -> NDArray[np.int64]:
        new = [word for word in words if word not in self._known]
        rows = self.cursor.ask(DOCUMENT_COUNTS, limit, [quote(word) for word in new]) if new else []
        found = {word: n for word, (n,) in zip(new, rows, strict=True)}
        self._known.update((word, n) for word, n in found.items() if n != limit)
        numbers = [found[word] if word in found else self._known[word] for word in words]
        return np.array(numbers, np.int64)

    def _few(self) -> list[Candidate] | None:
        """Return all documents that pass, where they are few and no text has to be read."""
        if not self._words or self.ranking.words.phrases or self.ranking.words.without:
            return None
        text, parameters = self.condition
        rows = self._score(Sql(f"{text} LIMIT {FEW + 1}", parameters))
        return _candidates(rows) if len(rows) <= FEW else None

    def _best_of_both(self, n: int) -> list[Candidate]:
        """Return the best by all their words, and those with the best passages."""
        best = self._best(n)
        known = {one.id for one in best}
        rows = self._by_words(any_of(self._words), n, "passages") if known else []
        ids = {row[0] for row in rows} - known
        more = self._fitting(self._read(sorted(ids), self.condition).values()) if ids else []
        return self._with_passages([*best, *more])

    def _with_passages(self, candidates: list[Candidate]) -> list[Candidate]:
        """Join what long documents answer with what their best passages do."""
        if not self._words or not candidates:
            return candidates
        ids = [escape(one.id) for one in candidates]
        having = "id = ANY(%s::text[]) AND words @@ %s::tsquery"
        these = Sql(having, (ids, any_of(self._words)))
        best: dict[str, float] = {}
        spans = {}  # the last of each shows the most words
        rows = self._score(these, "passages", "ORDER BY shown, first DESC")
        for id, first, last, _, share in rows:
            best[id], spans[id] = max(share, best.get(id, 0.0)), (first, last)
        for i, one in enumerate(candidates):
            if one.id in best:
                share = bm25.with_passage(one.share, best[one.id])
                candidates[i] = one._replace(share=share, span=spans[one.id])
        return candidates

    def _named(self, candidates: list[Candidate], n: int = 0) -> list[Candidate]:
        """Note which candidates have the name that the query is; add the n best that have it."""
        name = self.ranking.words.only_name(self.language)
        if not name:
            return candidates
        term = next((one for one in name_terms(name, self.language) if self._known.get(one)), "")
        if not term:
            return [one._replace(named=False) for one in candidates]
        known = {one.id for one in candidates}
        best = self._with_passages(self._best_having([term], [], n)) if n else []
        candidates = [*candidates, *(one for one in best if one.id not in known)]
        ids = [escape(one.id) for one in candidates]
        query = "SELECT id FROM {documents} WHERE id = ANY(%s::text[]) AND words @@ %s::tsquery"
        having = {unescape(id) for (id,) in self.cursor.ask(query, ids, any_of([term]))}
        return [one._replace(named=one.id in having) for one in candidates]

    def _best(self, n: int) -> list[Candidate]:
        """Return the n best by words, with those that tie with the last."""
        if not self._words:
            return []
        query = self.ranking.words
        without = self.language.stems(query.excluded(self.language))
        if query.phrases or len(without) < len(query.without):
            return self._best_fitting(n, without)
        order = np.argsort(-self._weights, kind="stable")
        words = [self._words[i] for i in order]
        known = np.cumsum(self._df[order])
        first = int(np.searchsorted(known, 2 * n)) + 1  # so many words have documents enough
        if first >= len(words) or known[-1] < FEW_SCORED:
            return self._best_having(words, without, n)
        best = self._best_having(words[:first], without, n)
        if len(best) < n:
            return self._best_having(words, without, n)
        # Documents that have none but later words are worse than the last of these.
        reached = np.cumsum(self._weights[order])
        least = best[n - 1].share * reached[-1]
        needed = int(np.searchsorted(reached, reached[-1] - least)) + 1
        needed = min(needed, int(np.searchsorted(known, MANY_COUNTED // len(words))) + 1)
        return best if needed <= first else self._best_having(words[:needed], without, n)

    def _best_having(self, words: list[str], without: list[str], n: int) -> list[Candidate]:
        best = _candidates(self._by_words(asking(words, (), without), n + MOST_TIES))
        return [one for one in best if one.share >= best[min(n, len(best)) - 1].share]

    def _best_fitting(self, n: int, without: list[str]) -> list[Candidate]:
        """Return the best that have all phrases, and none that is to be left out."""
        query, stops = self.ranking.words, self.language.stop_words
        words = {word for phrase in query.phrases for word in phrase if word not in stops}
        needed = sorted(set(self.language.stems(sorted(words))))
        found: list[Candidate] = []
        best = _candidates(self._by_words(asking(self._words, needed, without), MOST_TRIED))
        start, size = 0, max(n, 500)
        while start < len(best) and len(found) < n:
            some = best[start : start + size]
            read = self._read([one.id for one in some])
            found += [one for one in some if self._fits(read[one.id].document)]
            start, size = start + size, 4 * size
        return found

    def _fits(self, document: Document) -> bool:
        return fits(self.ranking.words, words_text(document), self.language)

    def _fitting(self, near: Iterable[Found]) -> list[Candidate]:
        """Score the documents that have all phrases, and none that is to be left out."""
        near = [one for one in near if self._fits(one.document)]
        if not self._words or not near:
            return [Candidate(one.document.id, 0, one.code) for one in near]
        ids = [escape(one.document.id) for one in near]
        return _candidates(self._score(Sql("id = ANY(%s::text[])", (ids,))))

    def _by_words(self, asked: str, limit: int, of: str = "documents") -> list[Any]:
        """Return the rows with the highest scores that a tsquery finds, ties by id.

        Those of passages are looked for whatever the condition.
        """
        text, parameters = self.condition if of == "documents" else ALWAYS
        found = Sql(f"words @@ %s::tsquery AND ({text})", (asked, *parameters))
        return self._score(found, of, f"ORDER BY score DESC, id LIMIT {limit}")

    def _score(self, condition: Sql, of: str = "documents", then: str = "") -> list[Any]:
        """Give the id and code of documents, or the place of passages, and what each answers: BM25.

        The operations are those of the word index, in its order. The query inside counts, once.
        """
        columns, shown, mean = "code", "", self._mean_length
        if of == "passages":
            columns, mean = "first, last", bm25.PASSAGE_LENGTH
            shown = f", {self._sum(mean, bm25.PASSAGE_K1)} AS shown"
        counts = ", ".join(f"{COUNT} AS c{i}" for i in range(len(self._words)))
        query = f"""
SELECT id, {columns}{shown}, {self._sum(mean)} AS score FROM (
  SELECT id, {columns}, n_words, {counts} FROM {{{of}}} WHERE {condition.text} OFFSET 0
) AS counted {then}"""
        rows = self.cursor.ask(query, *map(quote, self._words), *condition.parameters)
        most = max(float(self._weights.sum()), bm25.LEAST_IDF)
        return [(unescape(id), *more, score / most) for id, *more, score in rows]

    def _sum(self, mean: float, k1: float = bm25.K1) -> str:
        base, per_word = bm25.for_mean(mean, k1)
        length = f"({base!r}::float8 + {per_word!r}::float8 * n_words)"
        weights = enumerate(self._weights.tolist())
        parts = [f"{weight!r}::float8 * (c{i} / (c{i} + {length}))" for i, weight in weights]
        return " + ".join(parts)

    def _fetch(self, chosen: Sequence[Candidate]) -> list[Found]:
        found = self._read([one.id for one in chosen])
        return [found[one.id]._replace(distance=one.distance, span=one.span) for one in chosen]

    def _read(self, ids: Iterable[str], condition: Sql = ALWAYS) -> dict[str, Found]:
        text, parameters = condition
        query = f"SELECT {{columns}} FROM {{documents}} WHERE id = ANY(%s::text[]) AND ({text})"
        rows = self.cursor.ask(query, [escape(id) for id in ids], *parameters)
        return {one.document.id: one for one in map(to_found, rows)}


def _candidates(rows: Sequence[tuple[str, bytes, float]]) -> list[Candidate]:
    return [Candidate(id, 0, to_code(code), share) for id, code, share in rows]

"""The documents that words and codes together may find, in one snapshot of PostgreSQL.

The server counts which documents have which words and scores them, as the word index of a folder
does. Words that cannot bring a document among the best on their own are not looked for alone, nor
are common ones when the more telling words of a query are in many documents (50,000 for a query of
two words); they count where they are.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, pack
from vdsh.documents import Document
from vdsh.retrieval import Candidates, Query, Ranking, rank, vote
from vdsh.retrieval.query import NO_WORDS
from vdsh.retrieval.ranking import rank_by_distance, rank_by_expected_distance
from vdsh.retrieval.searcher import (
    MOST_CORRECTED,
    MOST_TIES,
    n_candidates,
    n_nearest_by_expected,
)
from vdsh.store.engine import Stored
from vdsh.store.engines.postgres import tables as sql
from vdsh.store.engines.postgres.rows import (
    COUNT,
    any_of,
    asking,
    quote,
    to_bits,
    to_code,
    to_stored,
)
from vdsh.store.engines.postgres.session import StoreCursor
from vdsh.store.engines.postgres.tables import escape, unescape
from vdsh.store.rows import sort_keys, words_text
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


class Scored(NamedTuple):
    """A document with its code, what it answers of the query's words, and its best passage."""

    id: str
    code: bytes
    share: float = 0.0
    span: tuple[int, int] = (0, 0)
    # Whether it has the name that the query is; True where it is none.
    has_name: bool = True


class PostgresSearch:
    """Searches the documents that one transaction sees and that match a filter.

    Parameters
    ----------
    cursor : StoreCursor
        In a transaction that began with `SETTINGS`.
    condition : Sql
        What documents have to pass.
    is_narrow : bool
        Whether an index knows which documents may pass.
    counted : dict
        How many documents have words, by the state of the store: each change leaves another row in
        the totals, so those tell one state from another. Only the last state is kept.
    language : Language
    """

    def __init__(
        self,
        cursor: StoreCursor,
        condition: Sql,
        is_narrow: bool,
        counted: dict[str, dict[str, int]],
        language: Language,
    ) -> None:
        self.cursor = cursor
        self.condition = condition
        self.is_narrow = is_narrow
        self.counted = counted
        self.language = language
        self._query_words = NO_WORDS
        # What was counted in this state.
        self._known: dict[str, int] = {}
        # The terms of the query that count, how many documents have each, what each can give one.
        self._words: list[str] = []
        self._df = np.zeros(0, np.int64)
        self._weights = np.zeros(0)
        self._mean_length = 1.0
        self._missing: list[str] = []
        self._document_frequencies: dict[str, int] = {}

    def by_relevance(self, query: Query, k: int, *, strict: bool = False) -> Ranking:
        """Find the k best documents by words and code together."""
        self._query_words = query.words or NO_WORDS
        n_wanted = n_candidates(self._query_words, k)
        self._weigh()
        corrections = self._correct()
        few = self._few() if self.is_narrow else None
        if few is not None:
            found = self._noting_name(self._with_passages(few))
            target = vote(query, to_candidates(found))
        else:
            found = self._noting_name(self._best_of_both(n_wanted), n_wanted)
            target = vote(query, to_candidates(found))
            if target is not None and len(target) and not self._query_words.phrases:
                n_tried = 4 * n_wanted if self._query_words.without else n_wanted
                known = {one.id for one in found}
                near = self._nearest(pack((target > 0.5)[None])[0], n_tried)
                others = self._fitting([one for one in near if one.id not in known])
                found = [*found, *self._noting_name(self._with_passages(others))]
        candidates = to_candidates(found)
        spans = {one.id: one.span for one in found}
        ranking = rank(query, candidates, target, k, strict=strict)
        return Ranking(
            rows=ranking.rows,
            distances=ranking.distances,
            scores=ranking.scores,
            related=ranking.related,
            spans=np.array([spans[id] for id in ranking.rows], np.uint32).reshape(-1, 2),
            words_without_documents=self._missing,
            corrections=corrections,
            document_frequencies=self._document_frequencies,
        )

    def by_distance(self, query: Query, k: int) -> Ranking:
        """Find the k documents with the nearest codes, ties by id."""
        return rank_by_distance(query, to_candidates(self._nearest(query.code, k)), k)

    def by_expected_distance(self, query: Query, k: int) -> Ranking:
        """Find the k documents with the least expected distance among the nearest by code."""
        near = self._nearest(query.code, n_nearest_by_expected(query, k))
        return rank_by_expected_distance(query, to_candidates(near), k)

    def within(self, query: Query, radius: int, limit: int | None = None) -> Ranking:
        """Find all documents within a radius, nearest first, ties by id; list the first of them."""
        # LIMIT NULL is none.
        rows = self._by_code(sql.WITHIN, query.code, radius, limit)
        found = [Scored(unescape(id), to_code(code)) for id, code, *_ in rows]
        ranking = rank_by_distance(query, to_candidates(found), len(found))
        total = rows[0][-1] if rows else 0
        return Ranking(ranking.rows, ranking.distances, total=total)

    def fetch(self, rows: NDArray[Any]) -> list[Stored]:
        """Fetch the documents of some ids, in their order."""
        found = self._read(rows.tolist())
        return [found[id] for id in rows.tolist()]

    def _nearest(self, code: Codes, n: int) -> list[Scored]:
        rows = self._by_code(sql.NEAREST, code, n)
        return [Scored(unescape(id), to_code(bits)) for id, bits, *_ in rows]

    def _by_code(self, query: str, code: Codes, *more: int | None) -> list[Any]:
        text, parameters = self.condition
        bits = to_bits(code.tobytes())
        query = query.replace("CONDITION", text)
        return self.cursor.ask(query, bits, *parameters, *more, n_bits=len(bits))

    def _correct(self) -> dict[str, str]:
        """Look for what words that no document has were meant to be, where documents have that."""
        corrections = {}
        for word in self._missing[:MOST_CORRECTED]:
            others = self._meant(word, unfinished=word == self._query_words.unfinished)
            if others:
                corrections[word] = others[0]
        if corrections:
            self._query_words = self._query_words.corrected(corrections)
            self._weigh()
        return corrections

    def _weigh(self) -> None:
        """Choose the words that count; of a long query the most telling."""
        n_docs, n_words, totals = self.cursor.ask(TOTALS)[0]
        state = str(totals)
        if state not in self.counted or len(self.counted[state]) > MOST_COUNTED:
            self.counted.clear()
        self._known = self.counted.setdefault(state, {})
        n_docs, n_words = int(n_docs or 0), int(n_words or 0)
        terms = sorted(self._query_words.terms(self.language))
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
        self._missing = bm25.list_missing(terms, df)
        self._document_frequencies = dict(zip(names, df.tolist(), strict=True))
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

    def _few(self) -> list[Scored] | None:
        """Return all documents that pass, where they are few and no text has to be read."""
        if not self._words or self._query_words.phrases or self._query_words.without:
            return None
        text, parameters = self.condition
        rows = self._score(Sql(f"{text} LIMIT {FEW + 1}", parameters))
        return to_scored(rows) if len(rows) <= FEW else None

    def _best_of_both(self, n: int) -> list[Scored]:
        """Return the best by all their words, and those with the best passages."""
        best = self._best(n)
        known = {one.id for one in best}
        rows = self._by_words(any_of(self._words), n, "passages") if known else []
        ids = {row[0] for row in rows} - known
        read = self._read(sorted(ids), self.condition) if ids else {}
        more = self._fitting([Scored(document.id, code) for document, code in read.values()])
        return self._with_passages([*best, *more])

    def _with_passages(self, candidates: list[Scored]) -> list[Scored]:
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

    def _noting_name(self, found: Sequence[Scored], n: int = 0) -> list[Scored]:
        """Note which documents have the name that the query is; add the n best that have it."""
        name = self._query_words.only_name(self.language)
        if not name:
            return list(found)
        term = next((one for one in name_terms(name, self.language) if self._known.get(one)), "")
        if not term:
            return [one._replace(has_name=False) for one in found]
        known = {one.id for one in found}
        best = self._with_passages(self._best_having([term], [], n)) if n else []
        found = [*found, *(one for one in best if one.id not in known)]
        ids = [escape(one.id) for one in found]
        query = "SELECT id FROM {documents} WHERE id = ANY(%s::text[]) AND words @@ %s::tsquery"
        with_name = {unescape(id) for (id,) in self.cursor.ask(query, ids, any_of([term]))}
        return [one._replace(has_name=one.id in with_name) for one in found]

    def _best(self, n: int) -> list[Scored]:
        """Return the n best by words, with those that tie with the last."""
        if not self._words:
            return []
        query = self._query_words
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

    def _best_having(self, words: list[str], without: list[str], n: int) -> list[Scored]:
        best = to_scored(self._by_words(asking(words, (), without), n + MOST_TIES))
        return [one for one in best if one.share >= best[min(n, len(best)) - 1].share]

    def _best_fitting(self, n: int, without: list[str]) -> list[Scored]:
        """Return the best that have all phrases, and none that is to be left out."""
        query, stops = self._query_words, self.language.stop_words
        words = {word for phrase in query.phrases for word in phrase if word not in stops}
        needed = sorted(set(self.language.stems(sorted(words))))
        found: list[Scored] = []
        best = to_scored(self._by_words(asking(self._words, needed, without), MOST_TRIED))
        start, size = 0, max(n, 500)
        while start < len(best) and len(found) < n:
            some = best[start : start + size]
            read = self._read([one.id for one in some])
            found += [one for one in some if self._fits(read[one.id][0])]
            start, size = start + size, 4 * size
        return found

    def _fits(self, document: Document) -> bool:
        return fits(self._query_words, words_text(document), self.language)

    def _fitting(self, near: Sequence[Scored]) -> list[Scored]:
        """Score the documents that have all phrases, and none that is to be left out."""
        if self._query_words.has_signs and near:
            read = self._read([one.id for one in near])
            near = [one for one in near if self._fits(read[one.id][0])]
        if not self._words or not near:
            return list(near)
        ids = [escape(one.id) for one in near]
        return to_scored(self._score(Sql("id = ANY(%s::text[])", (ids,))))

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

    def _read(self, ids: Iterable[str], condition: Sql = ALWAYS) -> dict[str, Stored]:
        text, parameters = condition
        query = f"SELECT {{columns}} FROM {{documents}} WHERE id = ANY(%s::text[]) AND ({text})"
        rows = self.cursor.ask(query, [escape(id) for id in ids], *parameters)
        found = [to_stored(row) for row in rows]
        return {document.id: (document, code) for document, code in found}


def to_scored(rows: Sequence[tuple[str, bytes, float]]) -> list[Scored]:
    """Read rows of an id, a code and a score."""
    return [Scored(id, to_code(code), share) for id, code, share in rows]


def to_candidates(found: Sequence[Scored]) -> Candidates:
    """Return documents as the arrays that `rank` takes; their rows are their ids."""
    ids = np.empty(len(found), object)
    ids[:] = [one.id for one in found]
    packed = np.frombuffer(b"".join([one.code for one in found]), np.uint8)
    return Candidates(
        rows=ids,
        id_order=sort_keys([one.id for one in found]),
        codes=packed.reshape(len(found), -1 if found else 0),
        shares=np.array([one.share for one in found], float),
        has_name=np.array([one.has_name for one in found], bool),
    )

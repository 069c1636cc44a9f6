"""Searching a collection: Milvus finds the candidates, and they are ranked here.

The best by words, as Milvus finds them, and the nearest by code are fetched; a word index and a
Hamming index are made of them in memory, and searched as the indexes of a folder are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.retrieval import Query, Ranking
from vdsh.retrieval.in_memory import search_in_memory
from vdsh.retrieval.query import NO_WORDS
from vdsh.retrieval.ranking import Candidates, rank_by_distance, rank_by_expected_distance
from vdsh.retrieval.searcher import n_nearest_by_expected
from vdsh.store.engine import Stored
from vdsh.store.engines.milvus.collection import DocumentCollection, Pairs
from vdsh.store.engines.milvus.where import Expression, in_parts
from vdsh.store.rows import divide, sort_keys, words_text
from vdsh.store.where import Tree, matches
from vdsh.text.languages import Language
from vdsh.words import WordQuery

# Candidates by words, and as many by code.
NEAREST = 1000
# Terms of a query that Milvus is asked for.
MOST_TERMS = 1000
# Documents that are fetched at a time.
MANY_DOCUMENTS = 1000
FIELDS = ["id", "code", "document", "pieces", "check_sum"]


class MilvusSearch:
    """Searches one collection, of which only documents that match a filter are found.

    Parameters
    ----------
    documents : DocumentCollection
    read_rows : callable
        Makes documents of rows that have `FIELDS`, by their keys.
    language : Language
        Of the words.
    where : Tree or None
    expression : Expression
        The filter as far as Milvus can evaluate it.
    """

    def __init__(
        self,
        documents: DocumentCollection,
        read_rows: Callable[[Sequence[Mapping[str, Any]]], dict[str, Stored]],
        language: Language,
        where: Tree | None,
        expression: Expression,
    ) -> None:
        self._documents = documents
        self._read_rows = read_rows
        self._language = language
        self._where = where
        self._expression = expression
        self._fetched: dict[str, Stored] = {}

    def by_relevance(self, query: Query, k: int, *, strict: bool = False) -> Ranking:
        """Find the k best documents by words and code together.

        A rare word brings the documents that have it, so one that none of them has is mistyped;
        what it was meant to be is looked for among their words, and then Milvus is asked for it.
        """
        words = query.words or NO_WORDS
        candidates = self._nearest(query.code, NEAREST) if len(query.code) else {}
        candidates |= self._best_by_words(words, bool(candidates))
        ranking = self._rank(query, candidates, k, strict=strict)
        if ranking.corrections:
            corrections = ranking.corrections
            query = query.with_words(words.corrected(corrections))
            candidates |= self._best_by_words(words.corrected(corrections), bool(candidates))
            ranking = replace(
                self._rank(query, candidates, k, strict=strict), corrections=corrections
            )
        return ranking

    def by_distance(self, query: Query, k: int) -> Ranking:
        """Find the k documents with the nearest codes, ties by id."""
        return rank_by_distance(query, to_candidates(self._nearest(query.code, k)), k)

    def by_expected_distance(self, query: Query, k: int) -> Ranking:
        """Find the k documents with the least expected distance among the nearest by code."""
        near = self._nearest(query.code, n_nearest_by_expected(query, k))
        return rank_by_expected_distance(query, to_candidates(near), k)

    def within(self, query: Query, radius: int, limit: int | None = None) -> Ranking:
        """Find all documents within a radius, nearest first, ties by id; list the first of them.

        Where Milvus can evaluate the filter, those that are not listed are only counted.
        """
        pairs = self._documents.within(query.code, radius, self._expression.text)
        if self._expression.exact:
            found = self._fetch(pairs[:limit])
            total = len(pairs)
        else:
            found = self._fetch(pairs)
            total = len(found)
        ranking = rank_by_distance(query, to_candidates(found), len(found)).first(
            len(found) if limit is None else limit
        )
        return replace(ranking, total=total)

    def fetch(self, rows: NDArray[Any]) -> list[Stored]:
        """Return the documents of some ids, in their order."""
        return [self._fetched[id] for id in rows.tolist()]

    def _rank(
        self, query: Query, candidates: Mapping[str, Stored], k: int, *, strict: bool
    ) -> Ranking:
        """Rank candidates by the indexes that are made of them."""
        ids = np.empty(len(candidates), object)
        ids[:] = sorted(candidates)
        in_order = [candidates[id] for id in ids]
        texts = [words_text(document) for document, _ in in_order]
        # With a filter, a word that no candidate has may well be in other documents.
        searcher = search_in_memory(
            texts,
            divide(in_order, len(query.code))[1],
            self._language,
            corrects=self._where is None,
        )
        ranking = searcher.by_relevance(query, k, strict=strict)
        return replace(ranking, rows=ids[ranking.rows])

    def _nearest(self, code: Codes, n: int) -> dict[str, Stored]:
        n_tried = n if self._expression.exact else 4 * n + 64
        while True:
            pairs = self._documents.nearest(code, n_tried, self._expression.text)
            found = self._fetch(pairs)
            if len(found) >= n or len(pairs) < n_tried:
                return dict(list(found.items())[:n])
            n_tried *= 8

    def _best_by_words(self, words: WordQuery, has_documents: bool) -> dict[str, Stored]:
        terms = dict.fromkeys(term.term for term in words.terms(self._language))
        plain = " ".join([term for term in terms if term[0] != "="][:MOST_TERMS])
        # An empty collection has no mean length, which BM25 needs.
        if not plain or not (has_documents or self._documents.count("")):
            return {}
        keys = self._documents.by_words(plain, NEAREST, self._expression.text)
        return self._fetch([(0, key) for key in keys])

    def _fetch(self, pairs: Pairs) -> dict[str, Stored]:
        """Fetch documents by id; what has just been deleted or does not match is left out."""
        found: dict[str, Stored] = {}
        keys = [key for _, key in pairs]
        rows: dict[str, Stored] = {}
        for some in in_parts(keys, MANY_DOCUMENTS):
            rows |= self._read_rows(self._documents.query(f"id in {some}", FIELDS))
        for key in keys:
            if key in rows:
                document, code = rows[key]
                if self._where is None or matches(self._where, document):
                    found[document.id] = document, code
        self._fetched |= found
        return found


def to_candidates(found: Mapping[str, Stored]) -> Candidates:
    """Return documents as the arrays that `rank_by_distance` takes; their rows are their ids."""
    ids = np.empty(len(found), object)
    ids[:] = list(found)
    packed = np.frombuffer(b"".join([code for _, code in found.values()]), np.uint8)
    return Candidates(
        rows=ids,
        id_order=sort_keys(list(found)),
        codes=packed.reshape(len(found), -1 if found else 0),
        shares=np.zeros(len(found)),
        has_name=np.ones(len(found), bool),
    )

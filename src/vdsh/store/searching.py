"""How one query is answered on a snapshot of a store: ranked, fetched, made into hits."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.retrieval import Query, Ranking
from vdsh.retrieval.query import NO_WORDS
from vdsh.store.engine import Engine, Snapshot, Stored
from vdsh.store.filters import fields_of
from vdsh.store.hits import Hit, Hits, Within, ranked_hits, section_of
from vdsh.store.queries import rank_of
from vdsh.store.rows import searched_head
from vdsh.store.where import Filter, Tree, check_possible, parse
from vdsh.text.languages import Language
from vdsh.words import WordQuery
from vdsh.words.counting import find_parts
from vdsh.words.passages import LENGTH, LONGEST, find_name, words_in
from vdsh.words.query import absent_names, is_joined, rarest_first

if TYPE_CHECKING:
    from rich.progress import Progress

# Times as many hits as wanted are looked at where some are copies, and how many at most.
MORE = 5
MOST_SEEN = 250
# Characters of a section before a phrase, and in all.
BEFORE = 40
SECTION = 300
# Documents; fewer take less than two seconds, and need no progress bar.
MANY = 20_000


def search(snapshot: Snapshot, query: Query, k: int, rank: str | None, *, strict: bool) -> Hits:
    """Find the k best documents for one query."""
    rank = rank_of(query, rank)
    if strict and rank != "relevance":
        raise InputError(f"strict needs a text ranked by relevance. Got rank {rank!r}.")
    if rank == "relevance":
        return _search_by_relevance(snapshot, query, k, strict=strict)
    if not query.has_code:
        return Hits(unknown=query.unknown_words, empty=True)
    if rank == "distance" or query.probabilities is None:
        ranking = snapshot.search.by_distance(query, k)
    else:
        ranking = snapshot.search.by_expected_distance(query, k)
    return Hits(ranked_hits(ranking, snapshot.fetch(ranking.rows)), query.unknown_words)


def within(snapshot: Snapshot, query: Query, radius: int, limit: int | None) -> Within:
    """Find the documents within a radius, and count them."""
    if not query.has_code:
        return Within(Hits(unknown=query.unknown_words, empty=True), 0)
    ranking = snapshot.search.within(query, radius, limit)
    hits = Hits(ranked_hits(ranking, snapshot.fetch(ranking.rows)), query.unknown_words)
    return Within(hits, len(ranking) if ranking.total is None else ranking.total)


def distinct(ask: Callable[[int], Hits], k: int) -> Hits:
    """Find the k best documents for a reader: of copies of one text the best, which counts others.

    `ask` finds so many hits. Programs get all documents, since each may be the one they mean.
    """
    n = k
    while True:
        hits = ask(n)
        kept: list[Hit] = []
        # Places of kept hits by the length of their texts: few long texts are compared.
        places: dict[int, list[int]] = {}
        for hit in hits:
            alike = places.setdefault(len(hit.text), [])
            at = next((i for i in alike if kept[i].text == hit.text), None)
            if at is None:
                alike.append(len(kept))
                kept.append(hit)
            else:
                kept[at] = kept[at]._replace(copies=kept[at].copies + 1)
        if len(kept) >= k or len(hits) < n or n >= MOST_SEEN:
            hits[:] = kept[:k]
            return hits
        n = min(MORE * n, MOST_SEEN)


@contextmanager
def bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Give what an engine wants as `progress`; the bar comes with the first call."""
    with ExitStack() as stack:
        bars: list[Progress] = []

        def show(done: int, total: int) -> None:
            if not bars and total >= MANY:
                from vdsh.progress import counting_bar  # which nearly no search needs

                bars.append(stack.enter_context(counting_bar(doing, total)))
            for shown in bars:
                shown.update(shown.task_ids[0], completed=done, total=total)

        yield show


def check_filter(engine: Engine, *, where: Filter | None) -> None:
    """Raise for a filter that found nothing, and never can for its form."""
    if where is not None:
        tree = parse(where, engine.fields())
        # Nothing may have been looked for, so that the engine has not seen the filter yet.
        engine.count(tree)
        check_possible(tree, engine.count)


def to_tree(engine: Engine, where: Filter | None) -> Tree | None:
    """Read a filter, and have its fields indexed where that is worth it."""
    if where is None:
        return None
    tree = parse(where, engine.fields())
    if engine.filters is not None:
        with bar(f"indexing {', '.join(sorted(fields_of(tree)))}") as progress:
            engine.filters.prepare(tree, progress)
    return tree


def _search_by_relevance(snapshot: Snapshot, query: Query, k: int, *, strict: bool) -> Hits:
    words = query.words or NO_WORDS
    ranking = snapshot.search.by_relevance(query, k, strict=strict)
    # A phrase that no document has is given up for its words.
    gave_up_phrases = (
        not len(ranking) and not strict and words.has_more_than_phrases(snapshot.language)
    )
    if gave_up_phrases:
        words = words._replace(phrases=())
        ranking = snapshot.search.by_relevance(query.with_words(words), k, strict=True)
    words = words.corrected(ranking.corrections)
    documents = snapshot.fetch(ranking.rows)
    shown = words_shown(documents, ranking, words, snapshot.language)
    hits = ranked_hits(ranking, documents, shown)
    if gave_up_phrases:
        hits = [hit._replace(related=True) for hit in hits]
    elif words.phrases:
        hits = [_at_phrase(hit, words.phrases[0]) for hit in hits]
    in_no_document = set(ranking.words_without_documents)
    nothing_counts = bool(in_no_document) or not words.content(snapshot.language)
    return Hits(
        hits,
        [word for word in query.unknown_words if word in in_no_document],
        empty=not query.has_code and not hits and nothing_counts,
        by_words=True,
        unquoted=gave_up_phrases and bool(hits),
        meant=ranking.corrections,
        absent=absent_names(words, ranking.document_frequencies, snapshot.language),
    )


def words_shown(
    documents: Sequence[Stored], ranking: Ranking, words: WordQuery, language: Language
) -> list[tuple[str, ...]]:
    """List the words of the query in what is shown of each document, the most telling first.

    That is its best passage, and its title and name. Other passages of a long text are not read:
    a query should cost the same however long its hits are.
    """
    by_rank = rarest_first(words, ranking.document_frequencies, language)
    ranks = {stem: rank for rank, stem in reversed([*enumerate(language.stems(by_rank))])}
    names = [name.lower() for name in words.identifiers() if is_joined(name)]
    texts = [_shown_text(document, ranking, i) for i, (document, _) in enumerate(documents)]
    shown = []
    for text, found in zip(texts, words_in(texts, by_rank, language), strict=True):
        stems = language.stems(found)
        in_order = sorted(zip(found, stems, strict=True), key=lambda pair: ranks[pair[1]])
        there = [name for name in names if find_name(text, name)]
        plain = [word for word, _ in in_order] or _with_pieces(text, ranks, language)
        shown.append((*there, *plain))
    return shown


def _with_pieces(text: str, stems: Collection[str], language: Language) -> list[str]:
    """List the words that have a word of the query inside, as `setTimeout` has "timeout"."""
    if not stems:
        return []
    tokens, pieces, _ = find_parts(text)
    of_pieces = zip(pieces, language.stems([piece for _, piece in pieces]), strict=True)
    return list(dict.fromkeys(tokens[number] for (number, _), stem in of_pieces if stem in stems))


def _shown_text(document: Document, ranking: Ranking, i: int) -> str:
    start, stop = section_of(ranking, i, document)
    head = searched_head(document.id, document.text, document.metadata)
    return head + document.text[start : stop or LONGEST]


def _at_phrase(hit: Hit, phrase: Sequence[str]) -> Hit:
    """Put the section where the text has a phrase, unless all of the text is shown."""
    if len(hit.text) <= LENGTH:
        return hit
    words = r"[\W_]+".join(map(re.escape, phrase))
    pattern = re.compile(rf"(?<![^\W_]){words}(?![^\W_])", re.IGNORECASE)
    start, stop = hit.section
    found = pattern.search(hit.text, start, stop or LONGEST) or pattern.search(hit.text)
    if found is None:  # it is written with other accents
        return hit
    start = max(hit.text.rfind("\n", 0, found.start()) + 1, found.start() - BEFORE)
    return hit._replace(section=(start, min(len(hit.text), start + SECTION)))

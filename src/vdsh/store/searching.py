"""How one query is answered on a snapshot of a store: ranked, fetched, made into hits."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from vdsh.errors import InputError
from vdsh.retrieval import Query, Ranking
from vdsh.retrieval.query import NO_WORDS
from vdsh.store.engine import Engine, Snapshot
from vdsh.store.filters import fields_of
from vdsh.store.hits import Hit, Hits, Within, ranked_hits
from vdsh.store.queries import rank_of
from vdsh.store.where import Filter, Tree, check_possible, parse
from vdsh.words.passages import words_in

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
        hits, first = ask(n), dict[str, Hit]()
        for hit in hits:
            known = first.get(hit.text)
            first[hit.text] = hit if known is None else known._replace(copies=known.copies + 1)
        if len(first) >= k or len(hits) < n or n >= MOST_SEEN:
            hits[:] = list(first.values())[:k]
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
        check_possible(parse(where, engine.fields()), engine.count)


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
    looked_for = words.corrected(ranking.corrections).content(snapshot.language)
    hits = _relevant_hits(snapshot, ranking, looked_for)
    if gave_up_phrases:
        hits = [hit._replace(related=True) for hit in hits]
    elif words.phrases:
        hits = [_at_phrase(hit, words.phrases[0]) for hit in hits]
    in_no_document = set(ranking.words_without_documents)
    nothing_counts = bool(in_no_document) or not looked_for
    return Hits(
        hits,
        [word for word in query.unknown_words if word in in_no_document],
        empty=not query.has_code and not hits and nothing_counts,
        by_words=True,
        unquoted=gave_up_phrases and bool(hits),
        meant=ranking.corrections,
    )


def _relevant_hits(snapshot: Snapshot, ranking: Ranking, looked_for: Sequence[str]) -> list[Hit]:
    documents = snapshot.fetch(ranking.rows)
    texts = [document.text for document, _ in documents]
    return ranked_hits(ranking, documents, words_in(texts, looked_for, snapshot.language))


def _at_phrase(hit: Hit, phrase: Sequence[str]) -> Hit:
    """Put the section of a long text where it has a phrase."""
    if not hit.section[1]:
        return hit
    words = r"[\W_]+".join(map(re.escape, phrase))
    pattern = re.compile(rf"(?<![^\W_]){words}(?![^\W_])", re.IGNORECASE)
    found = pattern.search(hit.text, *hit.section) or pattern.search(hit.text)
    if found is None:  # it is written with other accents
        return hit
    start = max(hit.text.rfind("\n", 0, found.start()) + 1, found.start() - BEFORE)
    return hit._replace(section=(start, min(len(hit.text), start + SECTION)))

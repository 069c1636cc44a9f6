"""How a query is answered: which order, which engine call, and what hits say."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from vdsh.search.checks import check_count
from vdsh.store.access import Access
from vdsh.store.engine import Engine
from vdsh.store.filters import check_fields, fields_of
from vdsh.store.found import Found, QueryCode
from vdsh.store.hits import Hit, Hits, Within
from vdsh.store.queries import Query, TextQuery, rank_of, read_queries
from vdsh.store.ranking import ByExpectedDistance, ByRelevance
from vdsh.store.where import Filter, Tree, check_possible, parse
from vdsh.words import WordQuery
from vdsh.words.passages import words_in

if TYPE_CHECKING:
    from rich.progress import Progress


MANY = 20_000  # documents; fewer take less than two seconds


@contextmanager
def bar(doing: str, *, enabled: bool = True) -> Iterator[Callable[[int, int], None] | None]:
    """Give what an engine wants as `progress`; the bar comes with the first call."""
    with ExitStack() as stack:
        bars: list[Progress] = []

        def show(done: int, total: int) -> None:
            if not bars and total >= MANY:
                from vdsh.progress import counting_bar  # which nearly no search needs

                bars.append(stack.enter_context(counting_bar(doing, total)))
            for shown in bars:
                shown.update(shown.task_ids[0], completed=done, total=total)

        yield show if enabled else None


def find_best(
    access: Access, queries: Sequence[Query], k: int, where: Filter | None, rank: str | None
) -> list[Hits]:
    """Find the k best documents for each query."""

    def work() -> list[Hits]:
        ask = partial(search, k=k, where=where, rank=rank)
        read = read_queries(access.model, queries, rank)
        return [access.ask_once(partial(ask, query=query)) for query in read]

    found = access.retry(work)
    if not any(found):
        access.ask(partial(check_filter, where=where))
    return found


def find_within(
    access: Access, query: Query, radius: int, limit: int | None, where: Filter | None
) -> Within:
    """Find the documents within a radius, and count them."""

    def work() -> Within:
        (asked,) = read_queries(access.model, [query], None, by_words=False)
        ask = partial(within, query=asked, radius=radius, where=where, limit=limit)
        return access.ask_once(ask)

    found = access.retry(work)
    if not found.total:
        access.ask(partial(check_filter, where=where))
    return found


def check_filter(engine: Engine, *, where: Filter | None) -> None:
    """Raise for a filter that found nothing, and never can for its form."""
    if where is not None:
        check_possible(parse(where, engine.fields()), engine.count)


def search(
    engine: Engine, *, query: QueryCode | TextQuery, k: int, where: Filter | None, rank: str | None
) -> Hits:
    """Find the k best documents."""
    tree = to_tree(engine, where)
    if not isinstance(query, TextQuery):
        return Hits(map(to_hit, engine.nearest(query, k, tree)))
    rank = rank_of(query, rank)
    if rank == "relevance":
        return _by_relevance(engine, query, k, tree)
    _, chances, empty, unknown, _ = query.encoded
    code = query.encoded.query_code
    if empty:
        return _nothing(engine, query, tree)
    if rank == "distance":
        return Hits(map(to_hit, engine.nearest(code, k, tree)), unknown)
    ranking = ByExpectedDistance(chances, k)
    found = engine.nearest(code, ranking.n_candidates, tree, ranking)
    hits = (to_hit(one)._replace(expected=ranking.expected[one.document.id]) for one in found)
    return Hits(hits, unknown)


def within(
    engine: Engine,
    *,
    query: QueryCode | TextQuery,
    radius: int,
    where: Filter | None,
    limit: int | None = None,
) -> Within:
    """Find the documents within a radius, and count them."""
    radius, tree = check_count("radius", radius, 0), to_tree(engine, where)
    if not isinstance(query, TextQuery):
        found, total = engine.within(query, radius, tree, limit)
        return Within(Hits(map(to_hit, found)), total)
    words, (_, _, empty, unknown, _), _ = query
    code = query.encoded.query_code
    if empty:
        return Within(_nothing(engine, query, tree), 0)
    if words.phrases or words.without:
        found, total = engine.within_fitting(code, radius, tree, limit, words)
    else:
        found, total = engine.within(code, radius, tree, limit)
    return Within(Hits(map(to_hit, found), unknown), total)


def to_tree(engine: Engine, where: Filter | None) -> Tree | None:
    """Read a filter, and have its fields indexed where that is worth it."""
    if where is None:
        return None
    tree = parse(where, engine.fields())
    with bar(f"indexing {', '.join(sorted(fields_of(tree)))}") as progress:
        engine.prepare_filter(tree, progress)
    return tree


def index_fields(
    engine: Engine, fields: Iterable[str], progress: Callable[[int, int], None] | None
) -> None:
    """Index fields for filters; one that no document has is an error."""
    names = check_fields(fields, engine.fields())
    if names:
        engine.index_fields(names, progress)


def to_hit(found: Found) -> Hit:
    """Make a hit of what an engine found."""
    document, code, distance = found
    text, labels, metadata = document.text, document.labels, document.metadata
    return Hit(document.id, distance, text, labels, metadata, None, code.hex())


def _by_relevance(engine: Engine, query: TextQuery, k: int, where: Tree | None) -> Hits:
    words, (_, chances, empty, unknown, _), _ = query
    ranking = ByRelevance(words, query.encoded.query_code, None if empty else chances, k)
    with bar("indexing words") as progress:
        found = engine.relevant(ranking, where, progress)
    missing = set(ranking.missing)
    return Hits(
        (hit._replace(score=ranking.scores[hit.id]) for hit in _with_words(found, words)),
        [word for word in unknown if word in missing],
        empty=empty and not found,
        by_words=True,
    )


def _with_words(found: Sequence[Found], query: WordQuery) -> list[Hit]:
    """Make hits that say which words of the query they have."""
    having = words_in([one.document.text for one in found], query.words)
    pairs = zip(found, having, strict=True)
    return [to_hit(one)._replace(words=tuple(some)) for one, some in pairs]


def _nothing(engine: Engine, query: TextQuery, where: Tree | None) -> Hits:
    """Find nothing; a wrong filter is an error all the same."""
    engine.nearest(query.encoded.query_code, 1, where)
    return Hits(unknown=query.encoded.unknown, empty=True)

"""How a query is answered: when it is its turn, in which order, by which call of the engine."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.model import Model
from vdsh.search.checks import check_count
from vdsh.store.engine import Engine, ModelChangedError
from vdsh.store.filters import fields_of
from vdsh.store.hits import (
    Found,
    Hit,
    Hits,
    Page,
    ParsedQuery,
    Within,
    last_id,
    section_of,
    to_hit,
)
from vdsh.store.model import StoreModel
from vdsh.store.queries import rank_of
from vdsh.store.ranking import ByExpectedDistance, ByRelevance
from vdsh.store.rows import read_codes, searched_head
from vdsh.store.where import Filter, Tree, check_possible, parse
from vdsh.text.languages import Language
from vdsh.words.counting import find_parts
from vdsh.words.passages import LENGTH, LONGEST, find_name, words_in
from vdsh.words.query import absent_names, is_joined, rarest_first

if TYPE_CHECKING:
    from rich.progress import Progress


AGAIN = 10  # times that a store may get another model while it is asked
MORE, MOST_SEEN = 5, 250  # times as many hits, where some are copies; and how many at most
BEFORE, SECTION = 40, 300  # characters of a section before a phrase, and in all
MANY = 20_000  # documents; fewer take less than two seconds

T = TypeVar("T")
Reopen = Callable[[], Engine]


class Access:
    """One engine with the model of its codes, as the threads of an open store share it.

    They take turns. Another thread may take another model at any time, so who encodes takes
    `_model` once, and its fingerprint goes with the codes.
    """

    def __init__(
        self, engine: Engine, meta: Mapping[str, str], model: Model | None, *, reopen: Reopen
    ) -> None:
        self._engine = engine
        self._reopen = reopen  # gives another connection
        self._lock = RLock()
        self._closed = False
        self._meta = meta  # what the store says about itself
        self._model = StoreModel(meta, self._load, model)

    @contextmanager
    def alone(self, name: str, other: str) -> Iterator[None]:
        """Hold a lock of a name; raise where another process has it.

        `other` says what that does, up to the store's name. A server of Milvus has no locks.
        """
        hold = self._engine.hold
        with nullcontext(True) if hold is None else hold(name) as is_mine:
            if not is_mine:
                raise InputError(f"{other} '{self._engine.shown}'. Try again when it has finished.")
            yield

    def _ask(self, work: Callable[[Engine], T]) -> T:
        """Ask the engine; once more, where the store got another model meanwhile."""
        return self._retry(partial(self._ask_once, work))

    def _ask_once(self, work: Callable[[Engine], T]) -> T:
        """Ask the engine when it is this thread's turn."""
        with self._lock:
            if self._closed:
                raise InputError(f"The store '{self._engine.shown}' is closed. Open it again.")
            return work(self._engine)

    def _retry(self, work: Callable[[], T], times: int = AGAIN) -> T:
        """Do what depends on the model; once more, where the store got another one meanwhile."""
        while True:
            try:
                return work()
            except ModelChangedError:
                self._follow()
                times -= 1
                if times < 0:
                    raise

    def _follow(self, model: Model | None = None) -> None:
        """Take the model that the store has now; the given one, where it is that."""
        with self._lock:
            self._meta = self._engine.meta()
            if self._meta["fingerprint"] != self._model.fingerprint:
                self._model = StoreModel(self._meta, self._load, model)

    def _load(self, fingerprint: str) -> Model:
        return self._ask_once(lambda engine: engine.models.load(fingerprint))

    def _pages(self, ask: Callable[..., Page], after: str) -> Iterator[tuple[Page, int]]:
        """Read page after page with codes of one model, and the bytes of each code.

        `ask` is called with the engine, the last id and the fingerprint of that model. Before the
        first page the store may get another one; later that is an error, since codes of two models
        are not given out together.
        """

        def first() -> tuple[StoreModel, Page]:
            model = self._model
            return model, self._ask_once(lambda engine: ask(engine, after, model.fingerprint))

        model, page = self._retry(first)
        while page:
            yield page, model.n_bits // 8
            ask_next = partial(ask, last=last_id(page), of=model.fingerprint)
            page = self._retry(partial(self._ask_once, ask_next), 0)


def divide(page: Sequence[Found], n_bytes: int) -> tuple[list[Document], Codes]:
    """Divide what was found into documents and their codes."""
    pairs = [(one.document.id, one.code) for one in page]
    return [one.document for one in page], read_codes(pairs, n_bytes)[1]


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


def search(
    engine: Engine,
    *,
    query: ParsedQuery,
    k: int,
    where: Filter | None,
    rank: str | None,
    strict: bool = False,
) -> Hits:
    """Find the k best documents."""
    tree, rank = to_tree(engine, where), rank_of(query, rank)
    if strict and rank != "relevance":
        raise InputError(f"strict needs a text ranked by relevance. Got rank {rank!r}.")
    if rank == "relevance":
        return _by_relevance(engine, query, partial(ByRelevance, k=k, strict=strict), tree)
    if query.empty:
        return _nothing(engine, query, tree)
    if rank == "distance" or query.chances is None:
        return Hits(map(to_hit, engine.nearest(query, k, tree)), query.unknown)
    ranking = ByExpectedDistance(query.chances, k)
    n = ranking.n_candidates * (4 if query.half else 1)  # half of a code finds less surely
    found = engine.expected(ranking, query, n, tree)
    hits = (to_hit(one, ranking.expected[one.document.id]) for one in found)
    return Hits(hits, query.unknown)


def distinct(ask: Callable[[int], Hits], k: int) -> Hits:
    """Find the k best documents for a reader: of copies of one text the best, which counts others.

    `ask` finds so many hits. Programs get all documents, since each may be the one they mean.
    """
    n = k
    while True:
        hits, kept = ask(n), list[Hit]()
        places = dict[int, list[int]]()  # of kept hits, by the length of their texts
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


def within(
    engine: Engine,
    *,
    query: ParsedQuery,
    radius: int,
    where: Filter | None,
    limit: int | None = None,
) -> Within:
    """Find the documents within a radius, and count them."""
    radius, tree = check_count("radius", radius, 0), to_tree(engine, where)
    if query.empty:
        return Within(_nothing(engine, query, tree), 0)
    found, total = engine.within(query, radius, tree, limit)
    return Within(Hits(map(to_hit, found), query.unknown), total)


def to_tree(engine: Engine, where: Filter | None) -> Tree | None:
    """Read a filter, and have its fields indexed where that is worth it."""
    if where is None:
        return None
    tree = parse(where, engine.fields())
    if engine.filters is not None:
        with bar(f"indexing {', '.join(sorted(fields_of(tree)))}") as progress:
            engine.filters.prepare(tree, progress)
    return tree


def _by_relevance(
    engine: Engine, query: ParsedQuery, rank: Callable[..., ByRelevance], where: Tree | None
) -> Hits:
    ranking = rank(query)
    with bar("indexing words") as progress:
        found = engine.relevant(ranking, where, progress)
    language, words = engine.language(), ranking.words
    unquoted = not found and not ranking.strict and words.has_more_than_phrases(language)
    if unquoted:
        ranking = rank(query._replace(words=words._replace(phrases=())), strict=True)
        found = engine.relevant(ranking, where)
    hits = [
        to_hit(one, None, *ranking.scores[one.document.id], having)
        for one, having in zip(found, words_shown(found, ranking, language), strict=True)
    ]
    if unquoted:
        hits = [hit._replace(related=True) for hit in hits]
    elif words.phrases:
        hits = [_at_phrase(hit, words.phrases[0]) for hit in hits]
    missing = set(ranking.missing)
    absent = absent_names(ranking.words, ranking.df, language)
    unknown = [word for word in query.unknown if word in missing]
    asked = ranking.words.content(language)
    empty = query.empty and not found and (bool(missing) or not asked)
    more: Any = {"empty": empty, "unquoted": unquoted and bool(hits), "absent": absent}
    return Hits(hits, unknown, by_words=True, meant=ranking.meant, **more)


def words_shown(
    found: Sequence[Found], ranking: ByRelevance, language: Language
) -> list[tuple[str, ...]]:
    """List the words of the query in what is shown of each document, the most telling first.

    That is its best passage, and its title and name. Other passages of a long text are not read:
    a query should cost the same however long its hits are.
    """
    by_rank = rarest_first(ranking.words, ranking.df, language)
    ranks = {stem: rank for rank, stem in reversed([*enumerate(language.stems(by_rank))])}
    names = [name.lower() for name in ranking.words.identifiers() if is_joined(name)]
    texts = [_shown(one) for one in found]
    shown = list[tuple[str, ...]]()
    for text, words in zip(texts, words_in(texts, by_rank, language), strict=True):
        places = zip(words, language.stems(words), strict=True)
        ordered = [word for word, _ in sorted(places, key=lambda pair: ranks[pair[1]])]
        there = [name for name in names if find_name(text, name)]
        shown.append((*there, *(ordered or _with_pieces(text, ranks, language))))
    return shown


def _with_pieces(text: str, stems: Collection[str], language: Language) -> list[str]:
    """List the words that have a word of the query inside, as `setTimeout` has "timeout"."""
    if not stems:
        return []
    tokens, pieces, _ = find_parts(text)
    of_pieces = zip(pieces, language.stems([piece for _, piece in pieces]), strict=True)
    return list(dict.fromkeys(tokens[number] for (number, _), stem in of_pieces if stem in stems))


def _shown(found: Found) -> str:
    document, (start, stop) = found.document, section_of(found)
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


def _nothing(engine: Engine, query: ParsedQuery, where: Tree | None) -> Hits:
    """Find nothing; a wrong filter is an error all the same."""
    engine.nearest(query, 1, where)
    return Hits(unknown=query.unknown, empty=True)

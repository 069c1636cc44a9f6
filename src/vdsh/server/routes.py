"""The calls under /v1 that ask the store."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from fastapi import APIRouter
from pydantic import Field

from vdsh import __version__
from vdsh.cancel import while_wanted
from vdsh.codes import Codes, to_hex
from vdsh.corpus_map import MOST_VALUES, small_fields, title
from vdsh.documents import Document
from vdsh.documents.document import in_batches
from vdsh.errors import InputError
from vdsh.explain import as_fields
from vdsh.explain.highlights import Highlight, Highlighter, portions
from vdsh.model import Model
from vdsh.retrieval import Query
from vdsh.retrieval.query import encode_texts, read_words
from vdsh.server import answers, bodies
from vdsh.server.answers import ASKED, NOT_THERE, answer, described
from vdsh.server.asked import read_query
from vdsh.server.explain_routes import find_place
from vdsh.server.json_routes import Json, JsonRoute, Refused
from vdsh.server.pool import StorePool
from vdsh.server.service import ServiceDep, read_examples
from vdsh.store import Hit, Hits, Store
from vdsh.store.queries import choose_rank
from vdsh.store.searching import distinct
from vdsh.text.languages import language
from vdsh.words.passages import DOTS, one_line

MOST_CHARACTERS = 2**25  # of the texts of an answer

# Facets: documents whose values are looked at, fields, and seconds to count values in.
SAMPLE, MOST_FIELDS, SECONDS = 300, 5, 1.0
TOGETHER = 16  # texts that are encoded at a time


class Asked(NamedTuple):
    """What was looked for and found, by which model, and the fields of the answer."""

    query: Codes | Query
    hits: Hits
    model: Model
    fields: dict[str, Any]


router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["search"])

INFO: dict[str, Any] = {
    "version": str,
    "store": (str, Field(description="The name of this store.")),
    "stores": (list[str], Field(description="The names of all stores of the service.")),
    "documents": int,
    "bits": int,
    "words": (str | None, Field(description="How words are searched, in a sentence.")),
    "model": answer(
        "ModelAnswer",
        "The model that makes the codes.",
        name=str,
        bits=int,
        bits_of_words=(int, Field(description="Bits that words explain; then those of vectors.")),
        fingerprint=str,
        documents=int | None,
        terms=int,
    ),
    "fields": list[str],
    "labels": list[str],
    "writable": bool,
    "map": bool,
    "examples": (list[str], Field(description="Texts to try, where the store has some.")),
    "limits": described(bodies.Limits),
}
SearchManyAnswer = answer(
    "SearchManyAnswer", "An answer a text, in their order.", answers=list[answers.SearchAnswer]
)
WithinAnswer = answer(
    "WithinAnswer",
    "The nearest documents within the radius, and how many there are in all.",
    **answers.SEARCH,
    total=int,
)
CountAnswer = answer("CountAnswer", "How many documents there are.", count=int)
FacetsAnswer = answer(
    "FacetsAnswer",
    'Fields, each with its commonest values: `{"value": "space", "count": 987}`.',
    facets=list[dict[str, Any]],
)
EncodeAnswer = answer("EncodeAnswer", "A code a text, in hex.", codes=list[str], bits=int)


@router.get("/info", response_model=answer("InfoAnswer", "What the service offers.", **INFO))
async def info(service: ServiceDep) -> Json:
    """Describe the store and the limits of the service."""

    def work(store: Store) -> dict[str, Any]:
        facts, model = store.info(), service.pool.model
        return {
            "version": __version__,
            "store": service.name,
            "stores": service.names,
            **{name: facts.get(name) for name in ("documents", "bits", "words", "fields")},
            "model": {
                "name": model.name,
                "bits": model.n_bits,
                "bits_of_words": 0 if model.takes_vectors else model.topic.n_bits,
                "fingerprint": facts["model"]["fingerprint"],
                "documents": model.training.get("documents"),
                "terms": len(model.words),
            },
            "labels": store.labels(),
            "writable": service.writable,
            "map": service.pool.has_map(),
            "examples": read_examples(service.pool.path),
            "limits": service.limits._asdict(),
        }

    return Json(await service.pool.call(work))


@router.post("/search", response_model=answers.SearchAnswer, responses=ASKED | NOT_THERE)
async def search(body: bodies.SearchBody, service: ServiceDep) -> Json:
    """Find the best documents for a text or a stored document, or the nearest to a code."""

    def work(store: Store) -> Asked:
        query = read_query(store, body, body.rank, unfinished=body.unfinished)
        ask = partial(store.search, query, where=body.where, rank=body.rank, strict=body.strict)
        # Who looks at a document wants to know of its copies.
        is_shown = body.highlight and body.id is None
        hits = distinct(ask, body.k) if is_shown else ask(body.k)
        return Asked(query, hits, store.model, _fields(query, hits))

    asked = await service.pool.call(work)
    return Json(await tell(body, service.pool, asked))


@router.post("/search_many", response_model=SearchManyAnswer, responses=ASKED)
async def search_many(body: bodies.SearchManyBody, service: ServiceDep) -> Json:
    """Search for several texts, which are encoded together; each is answered as by /v1/search."""
    pool, rank, found = service.pool, choose_rank(body.rank, is_text=True), list[dict[str, Any]]()
    how: Any = {"k": body.k, "where": body.where, "rank": rank, "strict": body.strict}

    def find(store: Store, texts: Sequence[str]) -> list[dict[str, Any]]:
        queries = encode_texts(store.model, [read_words(text, rank) for text in texts])
        answers = store.search_many(queries, **how)
        return [_fields(query, hits) for query, hits in zip(queries, answers, strict=True)]

    # A few at a time: those who ask for little are answered in between.
    for texts in in_batches(body.texts, TOGETHER):
        found += await pool.call(partial(find, texts=texts))
    return Json({"answers": found})


@router.post("/within", response_model=WithinAnswer, responses=ASKED | NOT_THERE)
async def within(body: bodies.WithinBody, service: ServiceDep) -> Json:
    """Find the documents within a radius, nearest first."""

    def work(store: Store) -> tuple[Asked, int]:
        query = read_query(store, body)
        hits, total = store.within_at_most(query, body.radius, body.limit, where=body.where)
        return Asked(query, hits, store.model, _fields(query, hits)), total

    asked, total = await service.pool.call(work)
    return Json(await tell(body, service.pool, asked) | {"total": total})


@router.post("/count", response_model=CountAnswer, responses=ASKED)
async def count(body: bodies.CountBody, service: ServiceDep) -> Json:
    """Count all documents, or those that match a filter."""
    return Json({"count": await service.pool.call(lambda store: store.count(body.where))})


@router.post("/facets", response_model=FacetsAnswer, responses=ASKED)
async def facets(body: bodies.CountBody, service: ServiceDep) -> Json:
    """Count the documents that match a filter for each value of labels and small fields."""

    def work(store: Store) -> list[dict[str, Any]]:
        memo, version = service.pool.memo, (store.count(), store.model.fingerprint)
        found = memo("values", version, lambda: _find_values(store))
        asked = (*version, repr(body.where))
        return memo("facets", asked, lambda: _count_values(store, found, body.where))

    return Json({"facets": await service.pool.call(work)})


@router.post("/encode", response_model=EncodeAnswer, responses=ASKED)
async def encode(body: bodies.EncodeBody, service: ServiceDep) -> Json:
    """Hash texts with the store's model; or vectors, where it is a model of vectors."""
    texts = body.texts or [""] * len(body.vectors or ())
    codes = await service.pool.call(lambda store: store.model.encode(texts, body.vectors))
    return Json({"codes": to_hex(codes), "bits": 8 * codes.shape[1]})


def _fields(query: Codes | Query, hits: Hits) -> dict[str, Any]:
    """Give the fields of an answer: the query's code, what to say about it, and the hits."""
    n_characters = sum(len(hit.text) for hit in hits)
    if n_characters > MOST_CHARACTERS:
        raise InputError(
            f"An answer must have at most {MOST_CHARACTERS:,} characters of texts. These "
            f"{len(hits):,} hits have {n_characters:,}: ask for fewer."
        )
    about = {"code": to_hex(_code(query)[None])[0], **hits.about_query()}
    return about | {"hits": [hit.as_fields() for hit in while_wanted(hits)]}


def _code(query: Codes | Query) -> Codes:
    return query.code if isinstance(query, Query) else query


async def tell(
    body: bodies.SearchBody | bodies.WithinBody, pool: StorePool, asked: Asked
) -> dict[str, Any]:
    """Give the fields of an answer; where highlights are asked for, all that a reader wants.

    Few texts are looked at at a time, without a handle: searches come in between, and nothing
    goes on after the time for an answer is over.
    """
    query, hits, model, answer = asked
    shown = list[Highlight]()
    if not body.highlight:
        return answer
    words = query.words if isinstance(query, Query) and query.has_words else None
    spoken = language(await pool.call(lambda store: store.language))
    text, phrases = (words.text, words.phrases) if words else ("", ())
    made = await pool.compute(lambda: Highlighter(model, _code(query), text, phrases, spoken))
    made.wanted.update(spoken.stems(list(hits.meant.values())))
    for some in portions([hit.text[slice(*_section(hit))] for hit in hits]):
        telling = [hit.words for hit in hits[len(shown) : len(shown) + len(some)]]
        shown += await pool.compute(partial(made.show, some, telling))
    for fields, hit, one in zip(answer["hits"], hits, shown, strict=True):
        fields |= {"title": _title(hit)} | _shown(hit, one)
    if (explanation := await pool.compute(made.explain)) is not None:
        answer["explanation"] = as_fields(explanation)
    if words is not None and not model.takes_vectors and pool.has_map():
        with suppress(Refused):  # the map is of another model, or damaged: /v1/map says so
            x, y = await pool.compute(lambda: find_place(pool, model, text, body.id))
            answer["place"] = {"x": x, "y": y}
    return answer


def _shown(hit: Hit, shown: Highlight) -> dict[str, Any]:
    """Give the passage as `vdsh search --json` does, where it stands, and the marks."""
    before, text = _section(hit)[0], hit.text
    start, stop = (before + at for at in shown.passage)
    line = one_line(text[start:stop])
    passage = f"{DOTS if start else ''}{line}{DOTS if stop < len(text) else ''}"
    marks = [(before + first, before + last, own) for first, last, own in shown.marks]
    return {"passage": passage, "span": (start, stop), "marks": marks}


def _section(hit: Hit) -> tuple[int, int]:
    """Say which part of a text is looked at."""
    return hit.section if hit.section[1] else (0, len(hit.text))


def _title(hit: Hit) -> str:
    """Name a hit by a title in its metadata, or by the file name in its id: its text is shown."""
    name = hit.id.rstrip("/").rpartition("/")[2] or hit.id
    return title(Document(hit.id, name, None, hit.metadata))


def _find_values(store: Store) -> dict[str, list[Any]]:
    """Find labels and fields whose values repeat, the commonest values first."""
    sample = store.sample(SAMPLE)
    labels = Counter(label for document in sample for label in document.labels or ())
    found = {"label": [label for label, _ in labels.most_common(MOST_VALUES)]}
    found |= small_fields([document.metadata for document in sample])
    return dict(islice(found.items(), MOST_FIELDS))


def _count_values(store: Store, found: dict[str, list[Any]], where: Any) -> list[dict[str, Any]]:
    """Count each value among the documents that match, until the time is over."""
    until, facets = time.monotonic() + SECONDS, list[dict[str, Any]]()
    also = [where] if where else []
    for field, values in found.items():
        counts: list[dict[str, Any]] = [
            {"value": value, "count": n}
            for value in values
            if time.monotonic() < until and (n := store.count({"and": [{field: value}, *also]}))
        ]
        facets.append({"field": field, "values": sorted(counts, key=lambda one: -one["count"])})
    return [facet for facet in facets if facet["values"]]

"""What an answer with `"highlight": true` says beside its hits: titles, passages, words, places."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vdsh.corpus_map import title
from vdsh.documents import Document
from vdsh.server.asked import Asked
from vdsh.server.errors import NotFound
from vdsh.server.map_routes import find_place
from vdsh.server.pool import StorePool
from vdsh.store import Hit
from vdsh.words.lines import DOTS, one_line

if TYPE_CHECKING:
    from vdsh.explain.highlights import Highlight


def highlighted(asked: Asked, hits: Sequence[Hit], pool: StorePool) -> dict[str, Any]:
    """Give the fields of an answer: hits as a reader wants them, and what is known of the query."""
    from vdsh.explain import as_fields
    from vdsh.explain.highlights import highlight

    text, texts = asked.text, [hit.text for hit in hits]
    found = highlight(pool.model, texts, code=asked.code, query=text, phrases=asked.phrases)
    answer: dict[str, Any] = {
        "hits": [
            hit.as_fields() | {"title": _title(hit)} | _shown(hit.text, shown)
            for hit, shown in zip(hits, found.hits, strict=True)
        ]
    }
    if found.explanation is not None:
        answer["explanation"] = as_fields(found.explanation)
    if text is not None and not pool.model.takes_vectors and pool.has_map():
        try:
            x, y = find_place(pool, text, asked.id)
            answer["place"] = {"x": x, "y": y}
        except NotFound:  # the map is of another model, or damaged: /v1/map says so
            pass
    return answer


def _shown(text: str, shown: "Highlight") -> dict[str, Any]:
    """Give the passage as `vdsh search --json` does, where it stands, and the marks."""
    start, stop = shown.passage
    line = one_line(text[start:stop])
    passage = f"{DOTS if start else ''}{line}{DOTS if stop < len(text) else ''}"
    return {"passage": passage, "span": shown.passage, "marks": shown.marks}


def _title(hit: Hit) -> str:
    return title(Document(hit.id, hit.text, hit.labels, hit.metadata)) or hit.id

"""What was asked: a text, a code, a vector or a stored document as what a store looks for."""

from vdsh.codes import Codes, from_hex
from vdsh.retrieval import Query
from vdsh.retrieval.query import encode_texts, read_words
from vdsh.server import bodies
from vdsh.server.json_routes import Refused
from vdsh.store import Hit, Store
from vdsh.store.queries import VectorQuery, choose_rank, read_vector


def read_query(
    store: Store, query: bodies.Query, rank: str | None = None, *, unfinished: bool = False
) -> Codes | Query:
    """Read a query whose hits are to be ranked so, as the store takes it."""
    if query.code is not None:
        code: Codes = from_hex([query.code])[0]
        return code
    if query.vector is not None:
        return read_vector(store.model, VectorQuery(query.vector, query.text or ""), rank)
    if query.text is not None:
        words = read_words(query.text, choose_rank(rank, is_text=True))
        (encoded,) = encode_texts(store.model, [words])
        return encoded.with_words(words.while_typing(query.text)) if unfinished else encoded
    hit = find_document(store, query.id)
    # Nobody typed it, so quotes and dashes in it mean nothing: it is read as for distances.
    (encoded,) = encode_texts(store.model, [read_words(hit.text, "distance")])
    return encoded.with_stored_code(from_hex([hit.code])[0])


def text_of(store: Store, text: str | None, id: str | None) -> str:
    """Return a text that was given, or that of a stored document."""
    return find_document(store, id).text if text is None else text


def find_document(store: Store, id: str | None) -> Hit:
    """Return a stored document with its code, or raise where there is none."""
    hit = store.find(id or "")
    if hit is None:
        raise no_document(id)
    return hit


def no_document(id: str | None) -> Refused:
    """Say that there is no document of that id."""
    return Refused(404, f"There is no document '{id}'.", code="no_document")

"""What was asked: a text, a code, a vector or a stored document as what a store looks for."""

import numpy as np

from vdsh.codes import Codes, from_hex, unpack
from vdsh.server.bodies import Query
from vdsh.server.json_routes import Refused
from vdsh.store import Hit, Store
from vdsh.store.hits import ParsedQuery
from vdsh.store.queries import VectorQuery, encode_words, read_vector, read_words
from vdsh.store.ranking import choose_rank


def read_query(
    store: Store, query: Query, rank: str | None = None, *, unfinished: bool = False
) -> Codes | ParsedQuery:
    """Read a query whose hits are to be ranked so, as the store takes it."""
    if query.code is not None:
        code: Codes = from_hex([query.code])[0]
        return code
    if query.vector is not None:
        return read_vector(store.model, VectorQuery(query.vector, query.text or ""), rank)
    if query.text is not None:
        words = read_words(query.text, choose_rank(rank, is_text=True))
        (read,) = encode_words(store.model, [words])
        return read._replace(words=words.while_typing(query.text)) if unfinished else read
    hit = find_document(store, query.id)
    # Nobody typed it, so quotes and dashes in it mean nothing: it is read as for distances.
    (read,) = encode_words(store.model, [read_words(hit.text, "distance")])
    return _with_stored_code(read, hit)


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


def _with_stored_code(query: ParsedQuery, hit: Hit) -> ParsedQuery:
    """Give a document's query the code that it has in the store, also where it has no words."""
    code = from_hex([hit.code])
    bits = unpack(code)[0].astype(np.float64)
    chances = bits if query.empty or query.half else query.chances
    turned = 2 * bits[-query.vector_bits :] - 1 if query.half else query.turned
    known = query._replace(code=code[0], chances=chances, turned=turned)
    return known._replace(empty=False, unknown=[], half=False)

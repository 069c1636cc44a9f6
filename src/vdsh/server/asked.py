"""What was asked: a text, a code, a vector or a stored document as what a store looks for."""

from typing import NamedTuple

import numpy as np

from vdsh.codes import Codes, from_hex, unpack
from vdsh.server.bodies import Query
from vdsh.server.json_routes import NoDocument
from vdsh.server.pool import StorePool
from vdsh.store import Hit, Store
from vdsh.store.hits import ParsedQuery
from vdsh.store.queries import VectorQuery, rank_of, read_vector
from vdsh.store.ranking import choose_rank
from vdsh.words import WordQuery


class Asked(NamedTuple):
    """A query as the store takes it, how its hits are ranked, and whose text it is, if stored."""

    query: Codes | ParsedQuery
    rank: str
    id: str | None = None

    @property
    def code(self) -> Codes:
        """The query's code."""
        return self.query.code if isinstance(self.query, ParsedQuery) else self.query

    @property
    def words(self) -> WordQuery | None:
        """The words of its text; None where it is a code or a vector."""
        is_text = isinstance(self.query, ParsedQuery) and self.query.is_text
        return self.query.words if is_text else None  # type: ignore[union-attr]


async def read_query(
    query: Query, rank: str | None, pool: StorePool, *, unfinished: bool = False
) -> Asked:
    """Read a query; None ranks texts and documents by relevance, codes by distance."""
    if query.code is not None:
        return Asked(from_hex([query.code])[0], choose_rank(rank, is_text=False))
    if query.vector is not None:
        given = VectorQuery(query.vector, query.text or "")
        asked = await pool.call(lambda store: read_vector(store.model, given, rank))
        return Asked(asked, rank_of(asked, rank))
    chosen = choose_rank(rank, is_text=True)
    if query.text is not None:
        (read,) = await pool.read(query.text, rank=chosen)
        if unfinished and read.words is not None:
            read = read._replace(words=read.words.while_typing(query.text))
        return Asked(read, chosen)
    hit = await pool.call(lambda store: find_document(store, query.id))
    # Nobody typed it, so quotes and dashes in it mean nothing: it is read as for distances.
    (read,) = await pool.read(hit.text, rank="distance")
    return Asked(_with_stored_code(read, hit), chosen, hit.id)


def text_of(store: Store, text: str | None, id: str | None) -> str:
    """Return a text that was given, or that of a stored document."""
    return find_document(store, id).text if text is None else text


def find_document(store: Store, id: str | None) -> Hit:
    """Return a stored document with its code, or raise where there is none."""
    hit = store.find(id or "")
    if hit is None:
        raise NoDocument(id)
    return hit


def _with_stored_code(query: ParsedQuery, hit: Hit) -> ParsedQuery:
    """Give a document's query the code that it has in the store, also where it has no words."""
    code = from_hex([hit.code])
    bits = unpack(code)[0].astype(np.float64)
    chances = bits if query.empty or query.half else query.chances
    turned = 2 * bits[-query.vector_bits :] - 1 if query.half else query.turned
    known = query._replace(code=code[0], chances=chances, turned=turned)
    return known._replace(empty=False, unknown=[], half=False)

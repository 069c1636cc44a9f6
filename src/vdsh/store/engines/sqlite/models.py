"""Models in the database of a store: the one that made its codes, the one before, the next one.

New codes lie in a table of their own, by row. A document that is written meanwhile gets a new row,
so whatever has no new code is left to do. One transaction puts all of them in place.
"""

import sqlite3
import uuid
from collections.abc import Sequence

from vdsh.codes import Codes
from vdsh.model import Model
from vdsh.store.engine import check_codes
from vdsh.store.engines.sqlite.database import ADD_MODEL, read_meta
from vdsh.store.model import from_pieces, to_pieces
from vdsh.store.reindex import BATCH, NEXT, PREVIOUS, Unencoded, check_begun, check_own

LEFT = """
SELECT row, text FROM documents WHERE row > ?
AND NOT EXISTS (SELECT 1 FROM next_codes WHERE next_codes.row = documents.row)
ORDER BY row LIMIT ?
"""
SWITCH = """
UPDATE documents SET code = (SELECT code FROM next_codes WHERE next_codes.row = documents.row)
"""


def load_model(connection: sqlite3.Connection, fingerprint: str, shown: str) -> Model:
    """Load a model by its fingerprint; raise where the store has another one by now."""
    query = "SELECT rowid, file FROM models WHERE fingerprint = ? ORDER BY file, piece"
    rows = connection.execute(query, (fingerprint,)).fetchall()
    if not rows:
        check_codes(read_meta(connection), fingerprint)
    pieces = [(str(file), _read(connection, row)) for row, file in rows]
    return from_pieces(pieces, fingerprint, shown)


def _read(connection: sqlite3.Connection, row: int) -> bytes:
    """Read a piece of a model; a query would copy it once more, which a search would notice."""
    with connection.blobopen("models", "data", row, readonly=True) as blob:
        return blob.read()


def begin(connection: sqlite3.Connection, model: Model, shown: str, *, restart: bool) -> None:
    """Keep a model beside the store's own."""
    begun = read_meta(connection).get(NEXT)
    check_begun(shown, begun, model.fingerprint, restart=restart)
    if begun != model.fingerprint:
        connection.execute("DELETE FROM next_codes")
        connection.executemany(ADD_MODEL, to_pieces(model))
        _set(connection, **{NEXT: model.fingerprint})


def unencoded(connection: sqlite3.Connection, after: int, size: int) -> list[Unencoded]:
    """Return the next documents without a new code."""
    return [Unencoded(row, str(text)) for row, text in connection.execute(LEFT, (after, size))]


def put_codes(
    connection: sqlite3.Connection, fingerprint: str, shown: str, rows: Sequence[int], codes: Codes
) -> None:
    """Write new codes; the text of a row never changes."""
    check_own(shown, read_meta(connection).get(NEXT), fingerprint)
    pairs = zip(rows, map(bytes, codes), strict=True)
    connection.executemany("INSERT OR REPLACE INTO next_codes VALUES (?, ?)", pairs)


def switch(connection: sqlite3.Connection, model: Model, shown: str) -> int:
    """Encode what is left and put all new codes in place; return how many were left."""
    n_left, after = 0, -(2**63)
    while batch := unencoded(connection, after, BATCH):
        rows, texts = zip(*batch, strict=True)
        put_codes(connection, model.fingerprint, shown, rows, model.encode(texts))
        n_left, after = n_left + len(batch), rows[-1]
    facts = read_meta(connection)
    check_own(shown, facts.get(NEXT), model.fingerprint)
    connection.execute(SWITCH)
    connection.execute("DELETE FROM next_codes")
    _set(
        connection,
        uuid=uuid.uuid4().hex,  # indexes of the old codes do not fit it
        fingerprint=model.fingerprint,
        n_bits=str(model.n_bits),
        **{PREVIOUS: facts["fingerprint"]},
    )
    connection.execute("DELETE FROM meta WHERE key = ?", (NEXT,))
    return n_left


def forget(connection: sqlite3.Connection) -> None:
    """Remove models that the store does not use, and codes that were never finished."""
    used = read_meta(connection)["fingerprint"]
    connection.execute("DELETE FROM models WHERE fingerprint <> ?", (used,))
    connection.execute("DELETE FROM next_codes")
    connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (NEXT, PREVIOUS))


def _set(connection: sqlite3.Connection, **values: str) -> None:
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

"""Models in the database of a store: the one that made its codes, the one before, the next one.

New codes lie in a table of their own, by row. A document that is written meanwhile gets a new row,
so whatever has no new code is left to do. One transaction puts all of them in place.
"""
# ruff: noqa: D102

from collections.abc import Sequence
from contextlib import suppress
from sqlite3 import Connection

from vdsh.codes import Codes
from vdsh.errors import VdshError
from vdsh.model import Model
from vdsh.store import reindex
from vdsh.store.check_sums import sum_of_code
from vdsh.store.engine import check_model
from vdsh.store.engines.sqlite.cache import IndexCache
from vdsh.store.engines.sqlite.database import Database, add_model, read_meta
from vdsh.store.engines.sqlite.schema import note_facts
from vdsh.store.model import from_pieces

LEFT = """
SELECT row, text FROM documents WHERE row > ?
AND NOT EXISTS (SELECT 1 FROM next_codes WHERE next_codes.row = documents.row)
ORDER BY row LIMIT ?
"""
SWITCH = """
UPDATE documents SET (code, code_sum) =
(SELECT code, code_sum FROM next_codes WHERE next_codes.row = documents.row)
"""


class Models(reindex.Models):
    """See `vdsh.store.reindex.Models`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.shown = str(database.shown)

    def load(self, fingerprint: str) -> Model:
        query = "SELECT rowid, file FROM models WHERE fingerprint = ? ORDER BY file, piece"
        with self._database.reading() as connection:
            rows = connection.execute(query, (fingerprint,)).fetchall()
            if not rows:
                check_model(read_meta(connection), fingerprint)
            pieces = [(str(file), _read(connection, row)) for row, file in rows]
        return from_pieces(pieces, fingerprint, self.shown)

    def begin(self, model: Model, *, restart: bool) -> None:
        with self._database.writing() as connection:
            begun = read_meta(connection).get(reindex.NEXT)
            self.check_begun(begun, model.fingerprint, restart=restart)
            if begun != model.fingerprint:
                connection.execute("DELETE FROM next_codes")
                add_model(connection, model)
                note_facts(connection, {reindex.NEXT: model.fingerprint})

    def unencoded(self, fingerprint: str, after: int | None, size: int) -> list[reindex.Unencoded]:
        with self._database.reading() as connection:
            rows = connection.execute(LEFT, (-(2**63) if after is None else after, size))
            return [reindex.Unencoded(row, str(text)) for row, text in rows]

    def put_codes(self, fingerprint: str, batch: Sequence[reindex.Unencoded], codes: Codes) -> None:
        """Write new codes; the text of a row never changes."""
        keys = [one.key for one in batch]
        rows = [
            (key, code, sum_of_code(code))
            for key, code in zip(keys, map(bytes, codes), strict=True)
        ]
        with self._database.writing() as connection:
            self.check_own(read_meta(connection).get(reindex.NEXT), fingerprint)
            connection.executemany("INSERT OR REPLACE INTO next_codes VALUES (?, ?, ?)", rows)

    def switch(self, model: Model) -> int:
        """Encode what is left, and put all new codes in place in one transaction."""
        name = model.fingerprint
        with self._database.writing() as connection:
            n_left = self.encode_rest(model)
            facts = read_meta(connection)
            self.check_own(facts.get(reindex.NEXT), name)
            connection.execute(SWITCH)
            connection.execute("DELETE FROM next_codes")
            new = reindex.switched(facts, model)
            note_facts(connection, new)
            connection.execute("DELETE FROM meta WHERE key = ?", (reindex.NEXT,))
            # Or every reader would have to make the index of the new codes; it may fail.
            with suppress(VdshError, OSError):
                IndexCache(self._database.file, model.n_bits, new["uuid"]).save(connection)
        return n_left

    def forget(self) -> None:
        with self._database.writing() as connection:
            used = read_meta(connection)["fingerprint"]
            connection.execute("DELETE FROM models WHERE fingerprint <> ?", (used,))
            connection.execute("DELETE FROM next_codes")
            connection.execute(
                "DELETE FROM meta WHERE key IN (?, ?)", (reindex.NEXT, reindex.PREVIOUS)
            )


def _read(connection: Connection, row: int) -> bytes:
    """Read a piece of a model; a query would copy it once more, which a search would notice."""
    with connection.blobopen("models", "data", row, readonly=True) as blob:
        return blob.read()

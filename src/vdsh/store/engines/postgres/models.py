"""Models in the database of a store: the one that made its codes, the one before, the next one.

New codes lie in a second column. A trigger empties it where a text is replaced, whoever does that,
and a new document has none; so what has no new code is what is left to do, however often the work
was interrupted. Codes of texts that were replaced in between are not put: `xmin` tells.
"""
# ruff: noqa: D102

from collections.abc import Sequence
from typing import Any

import orjson

from vdsh.codes import Codes
from vdsh.model import Model
from vdsh.store import reindex
from vdsh.store.check_sums import sum_of_code
from vdsh.store.engine import check_model
from vdsh.store.engines.postgres.session import Session, StoreCursor
from vdsh.store.engines.postgres.tables import unescape
from vdsh.store.model import from_pieces, to_pieces

# Until the transaction ends, the store keeps its codes.
LOCK = "LOCK TABLE {documents} IN MODE MODE; SELECT key, value FROM {meta}"
DROP = (
    "DROP TRIGGER IF EXISTS {forget} ON {documents}",
    "DROP FUNCTION IF EXISTS {forget_function}()",
    "ALTER TABLE {documents} DROP COLUMN IF EXISTS next_code, DROP COLUMN IF EXISTS next_sum",
)
ADD = (
    "ALTER TABLE {documents} ADD COLUMN next_code {bits}, ADD COLUMN next_sum bigint",
    "CREATE FUNCTION {forget_function}() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN NEW.next_code := NULL; RETURN NEW; END'",
    "CREATE TRIGGER {forget} BEFORE UPDATE OF text ON {documents}"
    " FOR EACH ROW EXECUTE FUNCTION {forget_function}()",
)
# All rows were looked at a moment ago: a constraint that is not checked again takes no time.
SWITCH = (
    "DROP TRIGGER {forget} ON {documents}",
    "DROP FUNCTION {forget_function}()",
    "ALTER TABLE {documents} DROP COLUMN code, DROP COLUMN code_sum",
    "ALTER TABLE {documents} RENAME COLUMN next_code TO code",
    "ALTER TABLE {documents} RENAME COLUMN next_sum TO code_sum",
    "ALTER TABLE {documents} ADD CONSTRAINT {codes} CHECK (code IS NOT NULL) NOT VALID",
)
LEFT = (
    "SELECT id, xmin::text, text FROM {documents} WHERE next_code IS NULL AND id > %s::text"
    " ORDER BY id LIMIT %s"
)
FILL = """
UPDATE {documents} AS old SET next_code = new.code::{bits}, next_sum = new.code_sum
FROM json_to_recordset(%s::json) AS new(id text, version text, code text, code_sum bigint)
WHERE old.id = new.id AND old.xmin::text = new.version
"""
FILES = "SELECT file, data FROM {models} WHERE fingerprint = %s ORDER BY file, piece"
ADD_MODEL = "INSERT INTO {models} VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"


def read_facts(cursor: StoreCursor) -> dict[str, str]:
    """Read what the store says about itself."""
    return dict(cursor.ask("SELECT key, value FROM {meta}"))


def hold_codes(
    cursor: StoreCursor, fingerprint: str, n_bytes: int | None = None, mode: str = "ACCESS SHARE"
) -> None:
    """Raise where the store has codes of another model; else it keeps them until the end."""
    check_model(hold_facts(cursor, mode), fingerprint, n_bytes)


def hold_facts(cursor: StoreCursor, mode: str = "ACCESS SHARE") -> dict[str, str]:
    """Return what the store says about itself; it keeps its codes until the transaction ends."""
    lock = cursor.tables.sql(LOCK.replace("IN MODE", f"IN {mode}"))
    # Both statements at once: the second must see what was committed before the lock was taken.
    held = cursor.connection.execute(lock)
    held.nextset()
    return dict(held.fetchall())


def keep_model(cursor: StoreCursor, model: Model) -> None:
    """Write the files of a model."""
    cursor.executemany(cursor.tables.sql(ADD_MODEL), list(to_pieces(model)))


class Models(reindex.Models):
    """See `vdsh.store.reindex.Models`."""

    def __init__(self, session: Session, shown: str) -> None:
        self._session = session
        self.shown = shown

    def load(self, fingerprint: str) -> Model:
        def work(cursor: StoreCursor) -> list[Any]:
            rows = cursor.ask(FILES, fingerprint)
            if not rows:
                check_model(read_facts(cursor), fingerprint)
            return rows

        return from_pieces(self._session.run(work), fingerprint, self.shown)

    def begin(self, model: Model, *, restart: bool) -> None:
        def work(cursor: StoreCursor) -> None:
            cursor.take_turns()
            begun = read_facts(cursor).get(reindex.NEXT)
            self.check_begun(begun, model.fingerprint, restart=restart)
            if begun == model.fingerprint:
                return
            _do(cursor, (*DROP, *ADD), model.n_bits)
            keep_model(cursor, model)
            cursor.set("meta", {reindex.NEXT: model.fingerprint})
            with cursor.connection.transaction(force_rollback=True):  # say what would forbid it
                _do(cursor, SWITCH)

        self._session.run(work)

    def unencoded(self, fingerprint: str, after: Any, size: int) -> list[reindex.Unencoded]:
        def work(cursor: StoreCursor) -> list[reindex.Unencoded]:
            self._check_own(cursor, fingerprint, "ACCESS SHARE")
            rows = cursor.ask(LEFT, "" if after is None else after[0], size)
            return [reindex.Unencoded((id, version), unescape(text)) for id, version, text in rows]

        return self._session.run(work)

    def put_codes(self, fingerprint: str, batch: Sequence[reindex.Unencoded], codes: Codes) -> None:
        """Write the new codes of documents that are still of the same version."""
        new = [
            {
                "id": one.key[0],
                "version": one.key[1],
                "code": f"x{code.hex()}",
                "code_sum": sum_of_code(code),
            }
            for one, code in zip(batch, map(bytes, codes), strict=True)
        ]

        def work(cursor: StoreCursor) -> None:
            self._check_own(cursor, fingerprint, "ROW EXCLUSIVE")
            cursor.ask(FILL, orjson.dumps(new).decode(), n_bits=8 * codes.shape[1])

        self._session.run(work)

    def switch(self, model: Model) -> int:
        """Encode what has come since, while others wait to write, and switch."""

        def work(cursor: StoreCursor) -> int:
            cursor.take_turns()
            facts = read_facts(cursor)
            if facts.get(reindex.NEXT) is None and facts["fingerprint"] == model.fingerprint:
                return 0  # it was done, and the answer got lost
            self.check_own(facts.get(reindex.NEXT), model.fingerprint)
            cursor.ask("LOCK TABLE {documents} IN SHARE ROW EXCLUSIVE MODE")
            n_left = self.encode_rest(model)
            _do(cursor, SWITCH)
            cursor.set("meta", reindex.switched(facts, model))
            cursor.ask("DELETE FROM {meta} WHERE key = %s", reindex.NEXT)
            return n_left

        return self._session.run(work)

    def forget(self) -> None:
        def work(cursor: StoreCursor) -> None:
            cursor.take_turns()
            _do(cursor, DROP)
            cursor.ask("DELETE FROM {meta} WHERE key IN (%s, %s)", reindex.NEXT, reindex.PREVIOUS)
            used = read_facts(cursor)["fingerprint"]
            cursor.ask("DELETE FROM {models} WHERE fingerprint <> %s", used)

        self._session.run(work)

    def _check_own(self, cursor: StoreCursor, fingerprint: str, mode: str) -> None:
        # Or another process could switch before the codes are read or written.
        cursor.ask(f"LOCK TABLE {{documents}} IN {mode} MODE")
        self.check_own(read_facts(cursor).get(reindex.NEXT), fingerprint)


def _do(cursor: StoreCursor, statements: Sequence[str], n_bits: int = 8) -> None:
    for statement in statements:
        cursor.ask(statement, n_bits=n_bits)

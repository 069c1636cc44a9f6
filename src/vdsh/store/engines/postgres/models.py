"""Models in the database of a store: the one that made its codes, the one before, the next one.

New codes lie in a second column. A trigger empties it where a text is replaced, whoever does that,
and a new document has none; so what has no new code is what is left to do, however often the work
was interrupted. Codes of texts that were replaced in between are not put: `xmin` tells.
"""

import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from vdsh.codes import Codes
from vdsh.model import Model
from vdsh.store.engine import check_model
from vdsh.store.engines.postgres.session import Session
from vdsh.store.engines.postgres.tables import Tables, take_turns
from vdsh.store.engines.postgres.where import escape, unescape
from vdsh.store.model import from_pieces, to_pieces
from vdsh.store.reindex import NEXT, PREVIOUS, Unencoded, check_begun, check_own, encode_rest

# Until the transaction ends, the store keeps its codes.
LOCK = (
    "LOCK TABLE {documents} IN MODE MODE;"
    " SELECT key, value FROM {meta} WHERE key IN ('fingerprint', 'n_bits')"
)
DROP = (
    "DROP TRIGGER IF EXISTS {forget} ON {documents}",
    "DROP FUNCTION IF EXISTS {forget_function}()",
    "ALTER TABLE {documents} DROP COLUMN IF EXISTS next_code",
)
ADD = (
    "ALTER TABLE {documents} ADD COLUMN next_code {bits}",
    "CREATE FUNCTION {forget_function}() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN NEW.next_code := NULL; RETURN NEW; END'",
    "CREATE TRIGGER {forget} BEFORE UPDATE OF text ON {documents}"
    " FOR EACH ROW EXECUTE FUNCTION {forget_function}()",
)
# All rows were looked at a moment ago: a constraint that is not checked again takes no time.
SWITCH = (
    "DROP TRIGGER {forget} ON {documents}",
    "DROP FUNCTION {forget_function}()",
    "ALTER TABLE {documents} DROP COLUMN code",
    "ALTER TABLE {documents} RENAME COLUMN next_code TO code",
    "ALTER TABLE {documents} ADD CONSTRAINT {codes} CHECK (code IS NOT NULL) NOT VALID",
)
LEFT = (
    "SELECT id, xmin::text, text FROM {documents} WHERE next_code IS NULL AND id > %s::text"
    " ORDER BY id LIMIT %s"
)
FILL = """
UPDATE {documents} AS old SET next_code = new.code::{bits}
FROM json_to_recordset(%s::json) AS new(id text, version text, code text)
WHERE old.id = new.id AND old.xmin::text = new.version
"""
SET = "INSERT INTO {meta} VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
FILES = "SELECT file, data FROM {models} WHERE fingerprint = %s ORDER BY file, piece"
ADD_MODEL = "INSERT INTO {models} VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"


def read_facts(cursor: Any, tables: Tables) -> dict[str, str]:
    """Read what the store says about itself."""
    return dict(cursor.execute(tables.sql("SELECT key, value FROM {meta}")).fetchall())


def hold_codes(
    cursor: Any,
    tables: Tables,
    fingerprint: str,
    n_bytes: int | None = None,
    mode: str = "ACCESS SHARE",
) -> None:
    """Raise where the store has codes of another model; else it keeps them until the end."""
    held = cursor.connection.execute(tables.sql(LOCK.replace("IN MODE", f"IN {mode}")))
    held.nextset()
    check_model(dict(held.fetchall()), fingerprint, n_bytes)


def keep_model(cursor: Any, tables: Tables, model: Model) -> None:
    """Write the files of a model."""
    cursor.executemany(tables.sql(ADD_MODEL), list(to_pieces(model)))


class KeyValues:
    """See `vdsh.store.engine.KeyValues`."""

    def __init__(self, session: Session, tables: Tables) -> None:
        self._session = session
        self._tables = tables

    def under(self, prefix: str) -> dict[str, str]:
        """Read all values under a prefix."""
        query = self._tables.sql("SELECT key, value FROM {key_values} WHERE key > %s AND key < %s")
        given = (escape(prefix), escape(f"{prefix[:-1]}0"))  # "0" follows the slash
        rows = self._session.run(lambda cursor: cursor.execute(query, given).fetchall())
        return {unescape(key).removeprefix(prefix): unescape(value) for key, value in rows}

    def write(self, prefix: str, values: Mapping[str, str]) -> None:
        """Write values in one transaction."""
        query = self._tables.sql(SET.replace("{meta}", "{key_values}"))
        rows = [(escape(prefix + key), escape(value)) for key, value in sorted(values.items())]
        self._session.run(lambda cursor: cursor.executemany(query, rows))

    def remove(self, keys: Sequence[str]) -> None:
        """Remove values in one transaction."""
        query = self._tables.sql("DELETE FROM {key_values} WHERE key = ANY(%s::text[])")
        given = ([escape(key) for key in keys],)
        self._session.run(lambda cursor: cursor.execute(query, given))


class Models:
    """See `vdsh.store.reindex.Models`."""

    def __init__(self, session: Session, tables: Tables, shown: str) -> None:
        self._session = session
        self._tables = tables
        self._shown = shown

    def load(self, fingerprint: str) -> Model:
        """Load a model by its fingerprint; raise where the store has another one by now."""

        def work(cursor: Any) -> list[Any]:
            rows: list[Any] = cursor.execute(self._tables.sql(FILES), (fingerprint,)).fetchall()
            if not rows:
                check_model(read_facts(cursor, self._tables), fingerprint)
            return rows

        return from_pieces(self._session.run(work), fingerprint, self._shown)

    def begin(self, model: Model, *, restart: bool) -> None:
        """Keep a model beside the store's own, and make room for its codes."""
        tables = self._tables

        def work(cursor: Any) -> None:
            take_turns(cursor, tables)
            begun = read_facts(cursor, tables).get(NEXT)
            check_begun(self._shown, begun, model.fingerprint, restart=restart)
            if begun == model.fingerprint:
                return
            _do(cursor, tables, (*DROP, *ADD), model.n_bits)
            keep_model(cursor, tables, model)
            _set(cursor, tables, **{NEXT: model.fingerprint})
            with cursor.connection.transaction(force_rollback=True):  # say what would forbid it
                _do(cursor, tables, SWITCH)

        self._session.run(work)

    def unencoded(self, fingerprint: str, after: Any, size: int) -> list[Unencoded]:
        """Return the next documents without a new code, with their versions."""

        def work(cursor: Any) -> list[Unencoded]:
            self._check_own(cursor, fingerprint)
            return self._unencoded(cursor, after, size)

        return self._session.run(work)

    def put_codes(self, fingerprint: str, batch: Sequence[Unencoded], codes: Codes) -> None:
        """Write the new codes of documents that are still of the same version."""

        def work(cursor: Any) -> None:
            self._check_own(cursor, fingerprint)
            self._put_codes(cursor, batch, codes)

        self._session.run(work)

    def switch(self, model: Model) -> int:
        """Encode what has come since, while others wait to write, and switch."""
        return self._session.run(partial(self._switch, model))

    def forget(self) -> None:
        """Remove models that the store does not use, and codes that were never finished."""
        tables = self._tables

        def work(cursor: Any) -> None:
            take_turns(cursor, tables)
            _do(cursor, tables, DROP)
            _do(cursor, tables, [f"DELETE FROM {{meta}} WHERE key IN ('{NEXT}', '{PREVIOUS}')"])
            used = read_facts(cursor, tables)["fingerprint"]
            cursor.execute(tables.sql("DELETE FROM {models} WHERE fingerprint <> %s"), (used,))

        self._session.run(work)

    def _switch(self, model: Model, cursor: Any) -> int:
        tables = self._tables
        take_turns(cursor, tables)
        facts = read_facts(cursor, tables)
        if facts.get(NEXT) is None and facts["fingerprint"] == model.fingerprint:
            return 0  # it was done, and the answer got lost
        check_own(self._shown, facts.get(NEXT), model.fingerprint)
        _do(cursor, tables, ["LOCK TABLE {documents} IN SHARE ROW EXCLUSIVE MODE"])
        steps = partial(self._unencoded, cursor), partial(self._put_codes, cursor)
        n_left = encode_rest(model, *steps)
        _do(cursor, tables, SWITCH)
        new = {"fingerprint": model.fingerprint, "n_bits": str(model.n_bits)}
        _set(cursor, tables, uuid=uuid.uuid4().hex, **new, **{PREVIOUS: facts["fingerprint"]})
        _do(cursor, tables, [f"DELETE FROM {{meta}} WHERE key = '{NEXT}'"])
        return n_left

    def _check_own(self, cursor: Any, fingerprint: str) -> None:
        check_own(self._shown, read_facts(cursor, self._tables).get(NEXT), fingerprint)

    def _unencoded(self, cursor: Any, after: Any, size: int) -> list[Unencoded]:
        last = "" if after is None else after[0]
        rows = cursor.execute(self._tables.sql(LEFT), (last, size)).fetchall()
        return [Unencoded((id, version), unescape(text)) for id, version, text in rows]

    def _put_codes(self, cursor: Any, batch: Sequence[Unencoded], codes: Codes) -> None:
        new = [
            {"id": one.key[0], "version": one.key[1], "code": f"x{code.tobytes().hex()}"}
            for one, code in zip(batch, codes, strict=True)
        ]
        fill = self._tables.sql(FILL, 8 * codes.shape[1])
        cursor.execute(fill, (orjson.dumps(new).decode(),))


def _do(cursor: Any, tables: Tables, statements: Sequence[str], n_bits: int = 8) -> None:
    for statement in statements:
        cursor.execute(tables.sql(statement, n_bits))


def _set(cursor: Any, tables: Tables, **values: str) -> None:
    cursor.executemany(tables.sql(SET), list(values.items()))

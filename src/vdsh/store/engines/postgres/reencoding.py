"""A new model under an old store: codes are made beside the old ones, and one transaction switches.

New codes lie in a second column. A trigger empties it where a text is replaced, whoever does that,
and a new document has none; so what has no new code is what is left to do, however often the work
was interrupted. Models after the first are kept under their names in the table of the model.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from vdsh.model import Model
from vdsh.store.engines.postgres.rows import to_pieces
from vdsh.store.engines.postgres.session import Session
from vdsh.store.engines.postgres.tables import Tables, bit_type
from vdsh.store.engines.postgres.upgrade import take_turns
from vdsh.store.engines.postgres.where import unescape
from vdsh.store.model import from_files, load_model, to_files
from vdsh.store.reindexing import (
    BATCH,
    NEXT,
    PREVIOUS,
    check_begun,
    check_codes,
    check_own,
    name_of,
    read_previous,
)

PASSES = 3  # at most, over what others have written meanwhile; then they have to wait
# Until the transaction ends, the store keeps its codes.
LOCK = "LOCK TABLE {documents} IN MODE MODE; SELECT value FROM {meta} WHERE key = 'uuid'"
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
    "SELECT id, text FROM {documents} WHERE next_code IS NULL AND id > %s::text AND id <= %s::text"
    " ORDER BY id LIMIT %s FOR UPDATE"
)
FILL = """
UPDATE {documents} AS old SET next_code = new.code::{bits}
FROM json_to_recordset(%s::json) AS new(id text, code text) WHERE old.id = new.id
"""
SET = "INSERT INTO {meta} VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
# Files of the first model have no folder in front.
OWNER = "CASE WHEN position('/' IN name) = 0 THEN 'model' ELSE split_part(name, '/', 1) END"
FILES = f"SELECT name, data FROM {{model}} WHERE {OWNER} = %s ORDER BY name, piece"
FORGET = f"DELETE FROM {{model}} WHERE {OWNER} <> %s"

Progress = Callable[[int], None]


def hold_codes(cursor: Any, tables: Tables, known: str, mode: str = "ACCESS SHARE") -> None:
    """Raise where the store has other codes than those known; else it keeps them until the end."""
    held = cursor.connection.execute(tables.sql(LOCK.replace("IN MODE", f"IN {mode}")))
    held.nextset()
    found = held.fetchone()
    check_codes(found and found[0], known)


class Reencoding:
    """Encodes the documents of a store anew.

    `shown`: the store, for people.
    """

    def __init__(self, session: Session, tables: Tables, shown: str) -> None:
        self._session = session
        self._tables = tables
        self._shown = shown

    def run(self, model: Model, *, restart: bool, progress: Progress | None) -> None:
        """Encode all documents with another model, and switch to it."""
        files = {f"{name_of(model)}/{name}": data for name, data in to_files(model).items()}
        self._session.run(lambda cursor: self._begin(cursor, model, files, restart=restart))
        for _ in range(PASSES):
            if self._one_pass(model, progress) < BATCH:
                break
        n_last = self._session.run(lambda cursor: self._finish(cursor, model))
        if progress is not None:
            progress(n_last)

    def previous(self) -> Model:
        """Load the model that the store had before."""
        known = self._session.run(lambda cursor: self._value(cursor, PREVIOUS))
        name = read_previous(self._shown, known)
        return load_model(name) if Path(name).is_absolute() else self.load(name)

    def load(self, name: str) -> Model:
        """Load a model that is kept inside."""
        query = self._tables.sql(FILES)
        found: dict[str, bytes] = {}
        for file, data in self._session.run(lambda c: c.execute(query, (name,)).fetchall()):
            found[file] = found.get(file, b"") + data
        return from_files(found)

    def forget(self) -> None:
        """Remove models that the store does not use, and codes that were never finished."""

        def work(cursor: Any) -> None:
            take_turns(cursor, self._tables)
            self._do(cursor, DROP)
            self._do(cursor, ["DELETE FROM {meta} WHERE key IN ('next', 'previous')"])
            cursor.execute(self._tables.sql(FORGET), (self._value(cursor, "model"),))

        self._session.run(work)

    def _begin(self, cursor: Any, model: Model, files: dict[str, bytes], *, restart: bool) -> None:
        take_turns(cursor, self._tables)
        begun = self._value(cursor, NEXT)
        check_begun(self._shown, begun, model.fingerprint, restart=restart)
        if begun == model.fingerprint:
            return
        self._do(cursor, (*DROP, *ADD), model.n_bits)
        insert = self._tables.sql("INSERT INTO {model} VALUES (%s, %s, %s) ON CONFLICT DO NOTHING")
        cursor.executemany(insert, list(to_pieces(files)))
        self._set(cursor, **{NEXT: model.fingerprint})
        with cursor.connection.transaction(force_rollback=True):  # say now what would forbid it
            self._do(cursor, SWITCH)

    def _one_pass(self, model: Model, progress: Progress | None) -> int:
        """Go through all documents once; return how many had no new code."""
        last, done = "", 0
        end = self._session.run(self._last_id)  # or it would run after those who write
        while True:
            fill = partial(self._fill, model=model, after=last, end=end)
            last, n = self._session.run(fill)
            if not n:
                return done
            done += n
            if progress is not None:
                progress(n)

    def _fill(self, cursor: Any, model: Model, after: str, end: str) -> tuple[str, int]:
        """Encode the next documents without a new code; return the last id and how many."""
        check_own(self._shown, self._value(cursor, NEXT), model.fingerprint)
        rows = cursor.execute(self._tables.sql(LEFT), (after, end, BATCH)).fetchall()
        if not rows:
            return after, 0
        codes = model.encode([unescape(text) for _, text in rows])
        pairs = zip(rows, codes, strict=True)
        new = [{"id": id, "code": f"x{code.tobytes().hex()}"} for (id, _), code in pairs]
        fill = self._tables.sql(FILL, bits=bit_type(model.n_bits))
        cursor.execute(fill, (orjson.dumps(new).decode(),))
        return rows[-1][0], len(rows)

    def _finish(self, cursor: Any, model: Model) -> int:
        """Encode what has come since, while others wait to write, and switch."""
        take_turns(cursor, self._tables)
        begun, now = self._value(cursor, NEXT), self._value(cursor, "fingerprint")
        if begun is None and now == model.fingerprint:
            return 0  # it was done, and the answer got lost
        self._do(cursor, ["LOCK TABLE {documents} IN SHARE ROW EXCLUSIVE MODE"])
        n_last, last, end = 0, "", self._last_id(cursor)
        while (found := self._fill(cursor, model, last, end))[1]:
            last = found[0]
            n_last += found[1]
        before = self._value(cursor, "model")
        self._do(cursor, SWITCH)
        self._set(
            cursor,
            uuid=uuid.uuid4().hex,
            fingerprint=model.fingerprint,
            n_bits=str(model.n_bits),
            keep_model="inside",
            model=name_of(model),
            **{PREVIOUS: json.dumps(before)},
        )
        self._do(cursor, [f"DELETE FROM {{meta}} WHERE key = '{NEXT}'"])
        return n_last

    def _last_id(self, cursor: Any) -> str:
        query = self._tables.sql("SELECT max(id) FROM {documents}")
        return cursor.execute(query).fetchone()[0] or ""

    def _do(self, cursor: Any, statements: Sequence[str], n_bits: int = 8) -> None:
        for statement in statements:
            cursor.execute(self._tables.sql(statement, bits=bit_type(n_bits)))

    def _value(self, cursor: Any, key: str) -> str | None:
        query = self._tables.sql("SELECT value FROM {meta} WHERE key = %s")
        found = cursor.execute(query, (key,)).fetchone()
        return found[0] if found else None

    def _set(self, cursor: Any, **values: str) -> None:
        cursor.executemany(self._tables.sql(SET), list(values.items()))

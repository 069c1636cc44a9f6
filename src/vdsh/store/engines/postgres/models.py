"""Models in the database of a store: the one that made its codes, the one before, the next one.

New codes lie in a second column. A trigger empties it where a text is replaced, whoever does that,
and a new document has none; so what has no new code is what is left to do, however often the work
was interrupted. Codes of texts that were replaced in between are not put: `xmin` tells.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import orjson

from vdsh.codes import Codes
from vdsh.model import Model
from vdsh.store.engine import check_codes
from vdsh.store.engines.postgres.tables import Tables, bit_type, take_turns
from vdsh.store.engines.postgres.where import unescape
from vdsh.store.model import from_pieces, to_pieces
from vdsh.store.reindex import BATCH, NEXT, PREVIOUS, Unencoded, check_begun, check_own

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
    check_codes(dict(held.fetchall()), fingerprint, n_bytes)


def load_model(cursor: Any, tables: Tables, fingerprint: str, shown: str) -> Model:
    """Load a model by its fingerprint; raise where the store has another one by now."""
    rows = cursor.execute(tables.sql(FILES), (fingerprint,)).fetchall()
    if not rows:
        check_codes(read_facts(cursor, tables), fingerprint)
    return from_pieces(rows, fingerprint, shown)


def keep_model(cursor: Any, tables: Tables, model: Model) -> None:
    """Write the files of a model."""
    cursor.executemany(tables.sql(ADD_MODEL), list(to_pieces(model)))


def begin(cursor: Any, tables: Tables, model: Model, shown: str, *, restart: bool) -> None:
    """Keep a model beside the store's own, and make room for its codes."""
    take_turns(cursor, tables)
    begun = read_facts(cursor, tables).get(NEXT)
    check_begun(shown, begun, model.fingerprint, restart=restart)
    if begun == model.fingerprint:
        return
    _do(cursor, tables, (*DROP, *ADD), model.n_bits)
    keep_model(cursor, tables, model)
    _set(cursor, tables, **{NEXT: model.fingerprint})
    with cursor.connection.transaction(force_rollback=True):  # say now what would forbid it
        _do(cursor, tables, SWITCH)


def unencoded(cursor: Any, tables: Tables, after: str, size: int) -> list[Unencoded]:
    """Return the next documents without a new code, with their versions."""
    rows = cursor.execute(tables.sql(LEFT), (after, size)).fetchall()
    return [Unencoded((id, version), unescape(text)) for id, version, text in rows]


def put_codes(cursor: Any, tables: Tables, batch: Sequence[Unencoded], codes: Codes) -> None:
    """Write the new codes of documents that are still of the same version."""
    new = [
        {"id": one.key[0], "version": one.key[1], "code": f"x{code.tobytes().hex()}"}
        for one, code in zip(batch, codes, strict=True)
    ]
    fill = tables.sql(FILL, bits=bit_type(8 * codes.shape[1]))
    cursor.execute(fill, (orjson.dumps(new).decode(),))


def switch(cursor: Any, tables: Tables, model: Model, shown: str) -> int:
    """Encode what has come since, while others wait to write, and switch."""
    take_turns(cursor, tables)
    facts, n_left, after = read_facts(cursor, tables), 0, ""
    if facts.get(NEXT) is None and facts["fingerprint"] == model.fingerprint:
        return 0  # it was done, and the answer got lost
    check_own(shown, facts.get(NEXT), model.fingerprint)
    _do(cursor, tables, ["LOCK TABLE {documents} IN SHARE ROW EXCLUSIVE MODE"])
    while batch := unencoded(cursor, tables, after, BATCH):
        put_codes(cursor, tables, batch, model.encode([one.text for one in batch]))
        n_left, after = n_left + len(batch), batch[-1].key[0]
    _do(cursor, tables, SWITCH)
    _set(
        cursor,
        tables,
        uuid=uuid.uuid4().hex,
        fingerprint=model.fingerprint,
        n_bits=str(model.n_bits),
        **{PREVIOUS: facts["fingerprint"]},
    )
    _do(cursor, tables, [f"DELETE FROM {{meta}} WHERE key = '{NEXT}'"])
    return n_left


def forget(cursor: Any, tables: Tables) -> None:
    """Remove models that the store does not use, and codes that were never finished."""
    take_turns(cursor, tables)
    _do(cursor, tables, DROP)
    _do(cursor, tables, [f"DELETE FROM {{meta}} WHERE key IN ('{NEXT}', '{PREVIOUS}')"])
    used = read_facts(cursor, tables)["fingerprint"]
    cursor.execute(tables.sql("DELETE FROM {models} WHERE fingerprint <> %s"), (used,))


def _do(cursor: Any, tables: Tables, statements: Sequence[str], n_bits: int = 8) -> None:
    for statement in statements:
        cursor.execute(tables.sql(statement, bits=bit_type(n_bits)))


def _set(cursor: Any, tables: Tables, **values: str) -> None:
    cursor.executemany(tables.sql(SET), list(values.items()))

"""A new model under an old store: codes are made beside the old ones, and one transaction switches.

New codes lie in a table of their own, by row. A document that is written meanwhile gets a new row,
behind all others, so it is met like any other. Whoever starts again goes on where the last one
stopped.
"""

import json
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vdsh.errors import OutputExistsError, VdshError
from vdsh.model import Model
from vdsh.store.engines.sqlite.database import Database
from vdsh.store.engines.sqlite.mirror import Mirror
from vdsh.store.model import load_model
from vdsh.store.reindexing import (
    BATCH,
    NAME,
    NEXT,
    PREVIOUS,
    check_begun,
    check_own,
    name_of,
    read_previous,
)

Rows = Sequence[tuple[int, str]]


def reencode(
    database: Database,
    model: Model,
    *,
    restart: bool = False,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Encode all documents with another model, and switch to it."""
    name = name_of(model)
    _keep(database.folder / name, model)
    with database.writing() as connection:
        _begin(connection, database.folder, model.fingerprint, restart=restart)
    while True:
        with database.reading() as connection:
            _check_own(connection, database.folder, model.fingerprint)
            last, rows = _last(connection), _left(connection)
        if len(rows) < BATCH:
            break
        codes = _encode(model, rows)
        with database.writing() as connection:
            _check_own(connection, database.folder, model.fingerprint)
            if _last(connection) != last:  # others encode with this model too, or began anew
                continue
            connection.executemany("INSERT OR REPLACE INTO next_codes VALUES (?, ?)", codes)
        if progress is not None:
            progress(len(rows))
    n_last = 0
    with database.writing() as connection:
        _check_own(connection, database.folder, model.fingerprint)
        while rows := _left(connection):  # the last ones, and what has come since
            codes = _encode(model, rows)
            connection.executemany("INSERT OR REPLACE INTO next_codes VALUES (?, ?)", codes)
            n_last += len(rows)
        _switch(connection, model, name)
        # Or every reader would have to make the index of the new codes; it may fail.
        with suppress(VdshError, OSError):
            Mirror(database.file, model.n_bits, _value(connection, "uuid")).save(connection)
    if progress is not None:
        progress(n_last)


def previous_model(database: Database) -> Model:
    """Load the model that the store had before."""
    name = read_previous(str(database.folder), database.meta().get(PREVIOUS))
    return load_model(database.folder / name)


def forget_models(database: Database) -> None:
    """Remove models that the store does not use, and codes that were never finished."""
    with database.writing() as connection:
        connection.execute("DROP TABLE IF EXISTS next_codes")
        keys = (NEXT, PREVIOUS)
        connection.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in keys])
        used = _value(connection, "model")
    for folder in database.folder.iterdir():
        if NAME.fullmatch(folder.name) and folder.name != used and folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def _keep(place: Path, model: Model) -> None:
    try:
        model.save(place)
    except OutputExistsError:  # of an earlier attempt: a model folder is whole or absent
        load_model(place)


def _begin(
    connection: sqlite3.Connection, folder: Path, fingerprint: str, *, restart: bool
) -> None:
    begun = _value(connection, NEXT)
    check_begun(str(folder), begun, fingerprint, restart=restart)
    if begun != fingerprint:
        connection.execute("DROP TABLE IF EXISTS next_codes")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS next_codes(row INTEGER PRIMARY KEY, code BLOB NOT NULL)"
    )
    _set(connection, **{NEXT: fingerprint})


def _check_own(connection: sqlite3.Connection, folder: Path, fingerprint: str) -> None:
    """Raise where somebody else has switched, or begun anew with another model."""
    check_own(str(folder), _value(connection, NEXT), fingerprint)


def _last(connection: sqlite3.Connection) -> int:
    """Return the last row that has a new code."""
    return int(connection.execute("SELECT IFNULL(MAX(row), 0) FROM next_codes").fetchone()[0])


def _left(connection: sqlite3.Connection) -> Rows:
    """Read the next documents without a new code."""
    query = "SELECT row, text FROM documents WHERE row > ? ORDER BY row LIMIT ?"
    return connection.execute(query, (_last(connection), BATCH)).fetchall()


def _encode(model: Model, rows: Rows) -> list[tuple[int, bytes]]:
    codes = model.encode([text for _, text in rows])
    return [(row, code.tobytes()) for (row, _), code in zip(rows, codes, strict=True)]


def _switch(connection: sqlite3.Connection, model: Model, name: str) -> None:
    connection.execute(
        "UPDATE documents SET code = "
        "(SELECT code FROM next_codes WHERE next_codes.row = documents.row)"
    )
    _set(
        connection,
        uuid=uuid.uuid4().hex,  # indexes of the old codes do not fit it
        fingerprint=model.fingerprint,
        n_bits=str(model.n_bits),
        keep_model="inside",
        model=name,
        **{PREVIOUS: json.dumps(_value(connection, "model"))},
    )
    connection.execute("DELETE FROM meta WHERE key = ?", (NEXT,))
    connection.execute("DROP TABLE next_codes")


def _value(connection: sqlite3.Connection, key: str) -> Any:
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def _set(connection: sqlite3.Connection, **values: str) -> None:
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

"""The SQLite file of a store in a folder: schema, transactions, and errors as sentences."""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vdsh.errors import DamageError, EngineError, FolderError, InputError, WriteError
from vdsh.store.engines.sqlite.where import has_label, json_kind, json_value
from vdsh.store.engines.sqlite.words import create_words

FILE = "store.sqlite"
MODES = {"write": "mode=rwc", "read": "mode=ro", "frozen": "mode=ro&immutable=1"}

# A document that is replaced gets a new row, and the old row is noted among the deletions. So an
# index that knows the last row and deletion it has seen can ask for what came after them. Old
# deletions are forgotten (`Mirror.forget_deletions`); an index that would need them is made anew.
SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents(
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL,
    text TEXT NOT NULL,
    labels TEXT,
    metadata TEXT NOT NULL,
    code BLOB NOT NULL
);
CREATE TABLE deletions(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL, id TEXT NOT NULL
);
CREATE TABLE fields(name TEXT PRIMARY KEY) WITHOUT ROWID;
"""


class Database:
    """The SQLite file of a store, which is made by `create` where it is not there.

    Parameters
    ----------
    wait : float
        Seconds to wait for another writer.

    Attributes
    ----------
    file : Path
        Its absolute path.
    identity : tuple of int, or None
        What tells the file that is open from another one at the same path.
    read_only : bool
        Whether folder or file cannot be written to.
    """

    def __init__(self, folder: Path, *, wait: float) -> None:
        self.folder = folder
        self.file = folder.absolute() / FILE
        self.identity: tuple[int, int] | None = None
        self.read_only = False
        self._wait = wait
        self._connection: sqlite3.Connection | None = None
        if self.file.is_file():
            self._open()

    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""
        if self._connection is None:
            return {}
        with self.reading() as connection:
            names = connection.execute("SELECT name, type FROM sqlite_master").fetchall()
            if not names:
                return {}
            tables = {name for name, kind in names if kind == "table"}
            if not {"meta", "documents", "deletions"} <= tables:
                raise FolderError(f"'{self.folder / FILE}' is an SQLite file but not of a store.")
            return dict(connection.execute("SELECT key, value FROM meta").fetchall())

    def create(self, meta: Mapping[str, str]) -> dict[str, str]:
        """Make the tables, unless another process was faster; return what `meta` says then."""
        connection = self._connection or self._open()
        with self._explained():
            connection.execute("PRAGMA journal_mode=WAL")
        with self.writing() as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in SCHEMA.split(";"):
                    connection.execute(statement)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
                create_words(connection)
        return self.meta()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See one state of the store, whatever others write meanwhile."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Commit all that is written inside, or nothing."""
        if self.read_only:
            raise WriteError(f"'{self.folder}' is read-only. Copy the store to change it.")
        self._check_place()
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection
        self._check_place()  # or what was written just now went with it

    def vacuum(self) -> None:
        """Write the file anew without the space of what was deleted."""
        with self.writing() as connection:  # may it be written to, and is it in place?
            connection.execute("SELECT 1 FROM meta")
        assert self._connection is not None
        with self._explained():
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def is_in_place(self) -> bool:
        """Say whether the path still leads to the file that is open."""
        return self.identity == _identity(self.file)

    def interrupt(self) -> None:
        """Make a statement that another thread runs give up."""
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        there = self.file.exists()
        writable = os.access(self.folder, os.W_OK) and (not there or os.access(self.file, os.W_OK))
        self.read_only = not writable
        with self._explained():
            self._connection = self._connect("write") if writable else self._connect_for_reading()
        self.identity = _identity(self.file)
        return self._connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite into sentences."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error) from error
        except UnicodeDecodeError as error:  # SQLite quotes the file in its message
            raise FolderError(f"'{self.folder / FILE}' is damaged. Restore a copy.") from error

    def _check_place(self) -> None:
        if not self.is_in_place():
            raise WriteError(
                f"'{self.folder}' was removed or replaced since it was opened, so nothing is "
                "written. Open it again."
            )

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        assert connection is not None, "a store that is not open is not asked"
        with self._explained():
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:  # SQLite may have rolled back by itself
                    connection.execute("ROLLBACK")

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.file.as_uri()}?{MODES[mode]}"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._wait, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA trusted_schema=OFF")  # the file may come from anywhere
            for function in (has_label, json_kind, json_value):
                connection.create_function(function.__name__, 2, function, deterministic=True)
            if mode == "write":
                connection.execute("PRAGMA synchronous=FULL")
        except (sqlite3.Error, UnicodeDecodeError):
            connection.close()
            raise
        return connection

    def _connect_for_reading(self) -> sqlite3.Connection:
        connection = self._connect("read")
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            return connection
        except sqlite3.OperationalError:
            connection.close()
        # SQLite needs files beside the database to share it; nobody writes where there is no log.
        log = self.folder / f"{FILE}-wal"
        if log.exists() and log.stat().st_size:
            raise FolderError(
                f"'{self.folder}' was not closed and is read-only, so its last changes cannot be "
                "read. Open it once where it can be written to."
            )
        return self._connect("frozen")

    def _explain(self, error: sqlite3.Error) -> Exception:
        name = getattr(error, "sqlite_errorname", None) or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return WriteError(
                f"Another process is writing to '{self.folder}'; waited {self._wait:g} s. "
                "Try again when it has finished."
            )
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return DamageError(
                f"'{self.folder / FILE}' is damaged ({error}). It was left as it is: restore a "
                "copy, or index the documents into a new store."
            )
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")):
            return WriteError(
                f"Could not read or write '{self.folder}': {error}. "
                "What was committed before is kept. Check the free space and the permissions."
            )
        if name == "SQLITE_INTERRUPT":
            return EngineError("The query took too long and was given up.")
        if "parser stack overflow" in str(error):
            return InputError("The filter is nested too deeply. Make it flatter.")
        if "TOOBIG" in name:
            return InputError("A text is too large to be stored.")
        if isinstance(error, sqlite3.ProgrammingError):
            return error
        return FolderError(
            f"'{self.folder / FILE}' is not as vdsh writes it ({error}). Restore a copy, or index "
            "the documents into a new store."
        )


def _identity(file: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one at the same path."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino

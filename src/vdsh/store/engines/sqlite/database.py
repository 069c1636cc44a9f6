"""The SQLite file of a store in a folder: transactions, and errors as sentences."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from sqlite3 import Connection
from time import monotonic, sleep
from typing import Any

from vdsh.errors import DamageError, EngineError, FolderError, GoneError, InputError, WriteError
from vdsh.model import Model
from vdsh.store.check_sums import sum_of
from vdsh.store.engine import FORMAT, PARTS, Progress
from vdsh.store.engines.sqlite.schema import (
    META,
    TABLES,
    is_ours,
    note_facts,
    read_schema,
    write_values,
)
from vdsh.store.engines.sqlite.where import has_label, json_kind, json_value
from vdsh.store.engines.sqlite.words import create_words
from vdsh.store.model import to_pieces

FILE = PARTS[0]
MODES = {"write": "mode=rwc", "read": "mode=ro", "frozen": "mode=ro&immutable=1"}
TURN, PAUSE = 1.0, 0.12  # seconds of work before others may write, and for them to do so


class Database:
    """The SQLite file of a store, which is made by `create` where it is not there.

    `folder` is an absolute path, `shown` the folder for people; `wait`: seconds to wait for
    another writer.
    """

    def __init__(self, folder: Path, shown: str, *, wait: float) -> None:
        self.shown = Path(shown)
        self.file = folder / FILE
        self.identity: tuple[int, int] | None = None  # of the file that is open
        self.read_only = False  # whether folder or file cannot be written to
        self._wait = wait
        self._connection: Connection | None = None
        self._begun = ""  # how the last transaction began
        self._size = self._compacted = 0  # bytes of the file, when it was last looked at
        if self.file.is_file():
            self._open()

    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""
        if self._connection is None:
            return {}
        with self.reading() as connection:
            schema = read_schema(connection)
            if not schema:
                return {}
            if META not in schema:
                raise FolderError(f"'{self.shown / FILE}' is an SQLite file but not of a store.")
            facts = read_meta(connection)
            if facts.get("format") == str(FORMAT) and not is_ours(schema):
                raise FolderError(
                    f"'{self.shown / FILE}' has other tables than vdsh makes. Restore a copy, or "
                    "index the documents into a new store."
                )
            return facts

    def create(self, meta: Mapping[str, str], model: Model) -> dict[str, str]:
        """Make the tables, unless another process was faster; return what `meta` says then."""
        connection = self._connection or self._open()
        with self._explained():
            connection.execute("PRAGMA page_size=16384")  # a thirtieth less disk than 4096
            connection.execute("PRAGMA journal_mode=WAL")
        with self.writing() as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in TABLES:
                    connection.execute(statement)
                note_facts(connection, meta)
                create_words(connection)
                add_model(connection, model)
        return self.meta()

    def reading(self) -> AbstractContextManager[Connection]:
        """See one state of the store, whatever others write meanwhile.

        Of a store that is gone nothing is read, though its files stay readable while they are open.
        """
        if self.identity != _identity(self.file):
            raise GoneError(
                f"'{self.shown}' was removed or replaced since it was opened. Open it again."
            )
        return self._transaction("BEGIN")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Commit all that is written inside, or nothing."""
        if self.read_only:
            raise WriteError(f"'{self.shown}' is read-only. Copy the store to change it.")
        self._check_place()
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection
        self._check_place()  # or what was written just now went with it

    def work_off(self, step: Callable[[Connection], int], progress: Progress | None) -> None:
        """Take a step in each transaction until it returns that nothing is left to do.

        After a second others may write: they look ten times a second.
        """
        n_left = total = 1
        begin = monotonic()
        while n_left:
            with self.writing() as connection:
                n_left = step(connection)
            total = max(total, n_left)
            if progress is not None:
                progress(total - n_left, total)
            if n_left and monotonic() > begin + TURN:
                sleep(PAUSE)
                begin = monotonic()

    def remembered(self, prefix: str) -> dict[str, str]:
        """See `vdsh.store.engine.KeyValues`."""
        query = "SELECT key, value, check_sum FROM key_values WHERE key > ? AND key < ?"
        with self.reading() as connection:
            # "0" follows the slash.
            rows = connection.execute(query, (prefix, f"{prefix[:-1]}0")).fetchall()
        for key, value, check_sum in rows:
            if sum_of(key, value) != check_sum:
                raise FolderError(
                    f"What '{self.shown}' remembers of its sources is damaged. Restore a backup, "
                    "or index the documents into a new store."
                )
        return {key.removeprefix(prefix): value for key, value, _ in rows}

    def remember(self, prefix: str, values: Mapping[str, str]) -> None:
        """See there."""
        rows = [(prefix + key, value) for key, value in values.items()]
        with self.writing() as connection:
            write_values(connection, "key_values", rows)

    def forget(self, keys: Sequence[str]) -> None:
        """See there."""
        with self.writing() as connection:
            connection.executemany("DELETE FROM key_values WHERE key = ?", [(key,) for key in keys])

    def vacuum(self) -> None:
        """Write the file anew without the space of what was deleted."""
        with self.writing() as connection:  # may it be written to, and is it in place?
            connection.execute("SELECT 1 FROM meta")
        assert self._connection is not None
        with self._explained():
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def is_in_place(self) -> bool:
        """Say whether the path still leads to the file that is open, and all of it is there."""
        return self.identity == _identity(self.file) and not self._is_cut()

    def _is_cut(self) -> bool:
        """Say whether the file was cut short: it has lost pages, and nobody has compacted it.

        VACUUM raises the number of the schema; the file shrinks later, when the log is brought into
        it. It must not be opened to look: closing any descriptor of a file drops the locks that
        SQLite holds on it in this process, and what is written then may be lost.
        """
        if (connection := self._connection) is None:
            return False
        with self._explained():
            (before,) = connection.execute("PRAGMA schema_version").fetchone()
            size = self.file.stat().st_size
            (after,) = connection.execute("PRAGMA schema_version").fetchone()
            query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            (wanted,) = connection.execute(query).fetchone()
        if size < min(self._size, wanted) and after == self._compacted:
            return True
        self._size, self._compacted = size, before
        return False

    def interrupt(self) -> None:
        """Make a statement that another thread runs give up."""
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Connection:
        there = self.file.exists()
        writable = os.access(self.file.parent, os.W_OK) and (
            not there or os.access(self.file, os.W_OK)
        )
        self.read_only = not writable
        with self._explained():
            self._connection = self._connect("write") if writable else self._connect_for_reading()
        self.identity = _identity(self.file)
        self._size = self._compacted = 0
        self._is_cut()  # from now on; a handle that never looked would take a write
        return self._connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error) from error
        except UnicodeDecodeError as error:  # SQLite quotes the file in its message
            raise FolderError(f"'{self.shown / FILE}' is damaged. Restore a copy.") from error

    def _check_place(self) -> None:
        if self.identity != _identity(self.file):
            raise GoneError(
                f"'{self.shown}' was removed or replaced since it was opened, so nothing is "
                "written. Open it again."
            )
        if self._is_cut():
            raise FolderError(
                f"'{self.shown / FILE}' was cut short while it was open, so nothing is written. "
                "Restore a copy."
            )

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        connection = self._connection
        assert connection is not None, "a store that is not open is not asked"
        if connection.in_transaction:  # calls come one at a time: it is the caller's
            assert begin in ("BEGIN", self._begun), "who reads does not write inside"
            yield connection
            return
        with self._explained():
            connection.execute(begin)
            self._begun = begin
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:  # SQLite may have rolled back by itself
                    connection.execute("ROLLBACK")

    def _connect(self, mode: str) -> Connection:
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

    def _connect_for_reading(self) -> Connection:
        connection = self._connect("read")
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            return connection
        except sqlite3.OperationalError:
            connection.close()
        # SQLite needs files beside the database to share it; nobody writes where there is no log.
        log = self.file.with_name(f"{FILE}-wal")
        if log.exists() and log.stat().st_size:
            raise FolderError(
                f"'{self.shown}' was not closed and is read-only, so its last changes cannot be "
                "read. Open it once with permission to write."
            )
        return self._connect("frozen")

    def _explain(self, error: sqlite3.Error) -> Exception:
        name = getattr(error, "sqlite_errorname", None) or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return WriteError(
                f"Another process is writing to '{self.shown}'; waited {self._wait:g} s. "
                "Try again when it has finished."
            )
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return DamageError(
                f"'{self.shown / FILE}' is damaged ({error}). It was left as it is: restore a "
                "copy, or index the documents into a new store."
            )
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")):
            return WriteError(
                f"Could not read or write '{self.shown}': {error}. "
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
            f"'{self.shown / FILE}' is not as vdsh writes it ({error}). Restore a copy, or index "
            "the documents into a new store."
        )


def add_model(connection: Connection, model: Model) -> None:
    """Keep the files of a model, unless they are there."""
    rows = ((*piece, sum_of(*map(str, piece[:3]), piece[3])) for piece in to_pieces(model))
    connection.executemany("INSERT OR IGNORE INTO models VALUES (?, ?, ?, ?, ?)", rows)


def read_meta(connection: Connection) -> dict[str, Any]:
    """Read what the store says about itself, as a transaction sees it."""
    return dict(connection.execute("SELECT key, value FROM meta LIMIT 100").fetchall())


def _identity(file: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one at the same path."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino

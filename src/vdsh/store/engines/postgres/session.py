"""A session with PostgreSQL: transactions, tried again where that is safe, errors as sentences."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, Cursor
from psycopg.pq import Format

from vdsh.errors import EngineError, FolderError, VdshError, WriteError
from vdsh.store.addresses import Address
from vdsh.store.engines.postgres.tables import Tables, escape, unescape

OWN_OPTIONS = ("table",)
# Also: somebody made the same tables just now.
CONFLICTS = ("40001", "40P01", "42P07", "23505")
RETRIED = (*CONFLICTS, "57P01", "57P02", "57P03", "53300")  # restarts, crowds
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
DISK_FULL = ("53100", "53200", "58030")
NOT_OURS = ("42P01", "42703")
NOT_ALLOWED = ("42501", "25006")  # also: the server only reads
SET = "INSERT INTO {TABLE} VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

T = TypeVar("T")


class NotAllowedError(EngineError):
    """The user may not do that, or not on this server."""


class StoreCursor(Cursor[Any]):
    """A cursor that knows the tables of a store."""

    def __init__(self, connection: "Connection[Any]", tables: Tables) -> None:
        super().__init__(connection)
        self.format = Format.BINARY
        self.tables = tables

    def ask(self, query: str, *parameters: Any, **names: Any) -> list[Any]:
        """Run a statement with the tables' names in it; return its rows, where it has some."""
        self.execute(self.tables.sql(query, **names), parameters or None)
        return self.fetchall() if self.description else []

    def set(self, table: str, values: Mapping[str, str]) -> None:
        """Write values by their keys."""
        self.executemany(self.tables.sql(SET.replace("TABLE", table)), list(values.items()))

    def take_turns(self) -> None:
        """Wait until no other process makes this store, or gives it another model or index."""
        self.ask("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", self.tables.name)


class Session:
    """One connection, made anew when it breaks.

    `wait`: seconds to try again after a connection was lost.
    """

    def __init__(self, address: Address, *, wait: float) -> None:
        self.tables = Tables(address.options.get("table", "vdsh"))
        self._address = address
        self._wait = wait
        self._url = address.without_options(OWN_OPTIONS)
        self._connection = self._connect()
        self._cursor: StoreCursor | None = None  # of the transaction that runs

    def run(self, work: Callable[[StoreCursor], T]) -> T:
        """Do some work in a transaction; all of it is done again where the connection was lost.

        Work must leave the same state when it is done twice: a commit that was not heard of may
        have happened. What it runs itself belongs to its own transaction.
        """
        if self._cursor is not None:
            return work(self._cursor)
        deadline, pause = time.monotonic() + self._wait, FIRST_PAUSE
        while True:
            try:
                return self._attempt(work)
            except (psycopg.Error, EngineError) as error:
                if not self._may_pass(error) or time.monotonic() + pause > deadline:
                    raise self._explain(error) from error
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def ask(self, query: str, *parameters: Any) -> list[Any]:
        """Run a statement in a transaction of its own."""
        return self.run(lambda cursor: cursor.ask(query, *parameters))

    def remembered(self, prefix: str) -> dict[str, str]:
        """See `vdsh.store.engine.KeyValues`."""
        query = "SELECT key, value FROM {key_values} WHERE key > %s AND key < %s"
        rows = self.ask(query, escape(prefix), escape(f"{prefix[:-1]}0"))  # "0" follows the slash
        return {unescape(key).removeprefix(prefix): unescape(value) for key, value in rows}

    def remember(self, prefix: str, values: Mapping[str, str]) -> None:
        """See there."""
        rows = {escape(prefix + key): escape(value) for key, value in sorted(values.items())}
        self.run(lambda cursor: cursor.set("key_values", rows))

    def forget(self, keys: Sequence[str]) -> None:
        """See there."""
        query = "DELETE FROM {key_values} WHERE key = ANY(%s::text[])"
        self.ask(query, [escape(key) for key in keys])

    def run_alone(self, query: str) -> None:
        """Run a statement that can be in no transaction; it is not tried again."""
        try:
            self._connection.execute(self.tables.sql(query))
        except psycopg.Error as error:
            raise self._explain(error) from error

    def interrupt(self) -> None:
        """Make a statement that another thread runs give up, if the server can be told in time."""
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=LONGEST_PAUSE)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._connection.close()

    def _attempt(self, work: Callable[[StoreCursor], T]) -> T:
        if self._connection.closed:
            self._connection = self._connect()
        connection = self._connection
        with connection.transaction(), StoreCursor(connection, self.tables) as self._cursor:
            try:
                return work(self._cursor)
            finally:
                self._cursor = None

    def _connect(self) -> "Connection[Any]":
        settings: dict[str, Any] = {
            "connect_timeout": max(2, min(10, int(self._wait))),
            "keepalives_idle": 30,
            "application_name": "vdsh",
        }
        given = {n: v for n, v in settings.items() if n not in self._address.options}
        try:
            # Prepared statements would not survive a pooler such as pgbouncer.
            return psycopg.connect(
                self._url, autocommit=True, prepare_threshold=None, client_encoding="utf8", **given
            )
        except psycopg.Error as error:
            raise EngineError(self._refusal(error)) from None

    def _may_pass(self, error: Exception) -> bool:
        if isinstance(error, psycopg.Error) and error.sqlstate is not None:
            return error.sqlstate in RETRIED
        return self._connection.closed

    def _refusal(self, error: Exception) -> str:
        reason = self._reason(error).rpartition("FATAL:")[2].strip()
        if "password" in reason or "authentication" in reason:
            advice = "Check the user and the password."
        elif "does not exist" in reason:
            advice = "Check the name, or make it first."
        else:
            advice = "Is the server running, and can it be reached from here?"
        return f"Could not connect to '{self._address.shown}': {reason}. {advice}"

    def _explain(self, error: Exception) -> VdshError:
        if isinstance(error, VdshError):
            return error
        shown, reason = self._address.shown, self._reason(error)
        code = getattr(error, "sqlstate", None)
        if code in DISK_FULL:
            return WriteError(
                f"PostgreSQL at '{shown}' could not write: {reason}. What was committed before "
                "is kept. Give it more space."
            )
        if code in NOT_OURS:
            return FolderError(
                f"The tables of '{shown}' are not those of a store ({reason}). Choose another "
                "name by ?table=."
            )
        if code in NOT_ALLOWED:
            return NotAllowedError(f"PostgreSQL at '{shown}' refused: {reason}.")
        if self._connection.closed:
            return EngineError(
                f"Lost the connection to '{shown}' and did not get it back in {self._wait:g} s "
                f"({reason}). What was committed before is kept; the same can be done again."
            )
        return EngineError(f"PostgreSQL at '{shown}' refused: {reason}.")

    def _reason(self, error: Exception) -> str:
        """Take the first line of a driver's message; a password is never in it."""
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        return reason.replace(self._address.password, "***") if self._address.password else reason

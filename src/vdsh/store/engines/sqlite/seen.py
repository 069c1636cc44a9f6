"""What was looked at already: whether a transaction sees the very state that another one saw."""

from sqlite3 import Connection
from typing import Any

MOST = 64  # connections, closed ones among them


class Seen:
    """Notes which state connections saw, by the changes that SQLite counts for each of them.

    Only for transactions that write nothing: what is rolled back is counted, too.
    """

    def __init__(self) -> None:
        self._states: dict[Connection, tuple[Any, ...]] = {}

    def has(self, connection: Connection, *more: Any) -> bool:
        """Say whether a connection sees what it saw when it was noted, with the same more."""
        return self._states.get(connection) == _state(connection, *more)

    def note(self, connection: Connection, *more: Any) -> None:
        """Note what a connection sees."""
        if len(self._states) >= MOST:
            self._states = {}
        self._states[connection] = _state(connection, *more)

    def forget(self) -> None:
        """Take every state for a new one."""
        self._states = {}


def _state(connection: Connection, *more: Any) -> tuple[Any, ...]:
    """Count the changes that others have committed, and this connection has made."""
    (others,) = connection.execute("PRAGMA data_version").fetchone()
    return others, connection.total_changes, *more

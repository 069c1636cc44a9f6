"""The word index of a store in a folder: pieces that are committed with their documents.

Each batch of documents adds a piece, and small neighbours are joined, so that there are few.
Documents that are deleted are noted beside their piece until it is written anew.
"""

import sqlite3
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from vdsh.words import DamagedWordsError, Segment, WordIndex
from vdsh.words.segment import MOST

KEY = "words"  # in the table `meta`: the last old document that is indexed, and the last there is
SCHEMA = (
    "CREATE TABLE words(segment INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL,"
    " span INTEGER NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE gone(segment INTEGER PRIMARY KEY, places BLOB NOT NULL)",
)
BATCH = 2000  # old documents that are indexed at a time
JOINED = 8  # neighbours of a size, at least
MOST_GONE = 0.25  # of a piece, before it is written anew


class Piece(NamedTuple):
    """A row of the table `words`, and how many bytes of its documents are noted as gone."""

    segment: int
    first: int
    span: int
    gone: int = 0

    @property
    def end(self) -> int:
        """The row after the last one of its documents."""
        return self.first + self.span

    @property
    def size(self) -> int:
        """Which pieces are joined with it: those up to eight times as large."""
        return (self.span - 1).bit_length() // 3


class Pending(NamedTuple):
    """Documents that were there before the word index: up to which row it has them, and the last.

    They were written by an older version, or the index was damaged.
    """

    done: int
    last: int

    @property
    def n_left(self) -> int:
        """How many rows are left, at most."""
        return max(0, self.last - self.done)


def create_words(connection: sqlite3.Connection) -> None:
    """Make the tables; what is in the store already is indexed later."""
    for table in ("words", "gone"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in SCHEMA:
        connection.execute(statement)
    (last,) = connection.execute("SELECT MAX(row) FROM documents").fetchone()
    _set_pending(connection, Pending(0, last or 0))
    connection.execute("UPDATE meta SET value = '2' WHERE key = 'format'")  # 1 had no words


def pending(connection: sqlite3.Connection) -> Pending | None:
    """Say which documents are not indexed yet; None where the store has no word index."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    try:
        return Pending(*map(int, found[0].split())) if found else None
    except (AttributeError, TypeError, ValueError):
        return None


def index_pending(connection: sqlite3.Connection) -> Pending:
    """Index some documents that are not indexed yet; return which are left then."""
    left = pending(connection)
    if left is None:
        create_words(connection)
        left = pending(connection) or Pending(0, 0)
    query = "SELECT row, text FROM documents WHERE row > ? AND row <= ? ORDER BY row LIMIT ?"
    rows = connection.execute(query, (*left, BATCH)).fetchall()
    rows = [row for row in rows if row[0] < rows[0][0] + MOST]
    if rows:
        numbers = np.array([row for row, _ in rows], np.int64)
        add_words(connection, Segment.of([str(text) for _, text in rows]).at(numbers))
    left = Pending(int(rows[-1][0]) if rows else left.last, left.last)
    _set_pending(connection, left)
    return left


def add_words(connection: sqlite3.Connection, segment: Segment) -> None:
    """Add the words of documents that were just written, and join pieces where they are many."""
    _write(connection, segment)
    while some := _to_join(_pieces(connection)):
        joined = Segment.joined([_read(connection, piece) for piece in some])
        _drop(connection, some)
        _write(connection, joined)


def remove_words(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Note that the documents of some rows are gone."""
    numbers = np.array(rows, np.int64)
    for piece in _pieces(connection):
        places = numbers[(numbers >= piece.first) & (numbers < piece.end)] - piece.first
        if not len(places):
            continue
        noted = _gone(connection, piece) + places.astype("<u2").tobytes()
        note = "INSERT OR REPLACE INTO gone VALUES (?, ?)"
        connection.execute(note, (piece.segment, noted))
        if len(noted) > 2 * MOST_GONE * piece.span:
            left = _read(connection, piece)
            _drop(connection, [piece])
            if left.n_docs:
                _write(connection, left)


class Words:
    """The word index as readers in this process share it: pieces are read once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._read: dict[Piece, Segment] = {}
        self._index = WordIndex([])

    def forget(self) -> None:
        """Read all pieces anew when they are next needed."""
        with self._lock:
            self._read, self._index = {}, WordIndex([])

    def showing(self, connection: sqlite3.Connection) -> WordIndex:
        """Return the index of the state that a transaction sees.

        Raises
        ------
        DamagedWordsError
        """
        try:
            pieces = _pieces(connection)
            with self._lock:
                if pieces == list(self._read):
                    return self._index
                before = self._read
                self._read = {p: before.get(p) or _read(connection, p) for p in pieces}
                self._index = WordIndex(list(self._read.values()))
                if not before:
                    _check(connection, self._index)
                return self._index
        except (DamagedWordsError, sqlite3.DatabaseError) as error:
            self.forget()
            name = getattr(error, "sqlite_errorname", "")
            if isinstance(error, DamagedWordsError) or name == "SQLITE_ERROR":  # no such table
                raise DamagedWordsError(str(error)) from error
            raise


def _check(connection: sqlite3.Connection, index: WordIndex) -> None:
    (n_documents,) = connection.execute("SELECT COUNT(*) FROM documents").fetchone()
    if n_documents != index.n_docs:
        raise DamagedWordsError(
            f"The word index is of {index.n_docs:,} documents, but there are {n_documents:,}."
        )


def _pieces(connection: sqlite3.Connection) -> list[Piece]:
    query = (
        "SELECT segment, first, span, IFNULL(LENGTH(places), 0) "
        "FROM words LEFT JOIN gone USING (segment) ORDER BY first"
    )
    return [Piece(*row) for row in connection.execute(query)]


def _read(connection: sqlite3.Connection, piece: Piece) -> Segment:
    query = "SELECT data FROM words WHERE segment = ?"
    (data,) = connection.execute(query, (piece.segment,)).fetchone()
    segment = Segment.from_bytes(data, piece.first)
    gone = np.frombuffer(_gone(connection, piece), "<u2")
    if len(segment.lengths) != piece.span or gone.max(initial=0) >= piece.span:
        raise DamagedWordsError("A piece of the word index is not as long as it should be.")
    return segment.without(gone) if len(gone) else segment


def _gone(connection: sqlite3.Connection, piece: Piece) -> bytes:
    query = "SELECT places FROM gone WHERE segment = ?"
    found = connection.execute(query, (piece.segment,)).fetchone()
    return bytes(found[0]) if found else b""


def _write(connection: sqlite3.Connection, segment: Segment) -> None:
    new = "INSERT INTO words(first, span, data) VALUES (?, ?, ?)"
    connection.execute(new, (segment.first, len(segment.lengths), segment.to_bytes()))


def _drop(connection: sqlite3.Connection, pieces: Sequence[Piece]) -> None:
    for table in ("words", "gone"):
        these = [(piece.segment,) for piece in pieces]
        connection.executemany(f"DELETE FROM {table} WHERE segment = ?", these)


def _to_join(pieces: list[Piece]) -> list[Piece]:
    """Choose neighbours to join: of the last ones, when there are eight of about one size."""
    last = pieces[-1].size if pieces else 0
    start = len(pieces)
    while start and pieces[start - 1].size <= last:
        start -= 1
    if len(pieces) - start < JOINED:
        return []
    for i in range(start, len(pieces) - 1):
        some = [piece for piece in pieces[i:] if piece.end - pieces[i].first <= MOST]
        if len(some) > 1:
            return some
    return []


def _set_pending(connection: sqlite3.Connection, left: Pending) -> None:
    new = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
    connection.execute(new, (KEY, f"{left.done} {left.last}"))

"""The word index of a store in a folder, which is committed with its documents."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

import numpy as np

from vdsh.store.engines.sqlite.pieces import (
    Piece,
    add_tombstones,
    choose_to_join,
    drop_pieces,
    list_pieces,
    read_piece,
    write_piece,
)
from vdsh.store.engines.sqlite.schema import WORDS
from vdsh.words import DamagedWordsError, Segment, WordIndex
from vdsh.words.segment import MOST

KEY = "words"  # in the table `meta`: the row up to which an index made anew has come, and the last
BATCH = 2000  # documents that are indexed at a time when it is made anew
LONG_BATCH = 32 * 2**20  # characters that end a batch sooner


class Pending(NamedTuple):
    """Documents that were there before a damaged word index was begun anew.

    `done`: up to which row it has them. `last`: the last of them.
    """

    done: int
    last: int

    @property
    def n_left(self) -> int:
        """How many rows are left, at most."""
        return max(0, self.last - self.done)


def create_words(connection: sqlite3.Connection) -> None:
    """Make the tables; what is in the store already is indexed later."""
    for table in ("words", "word_tombstones"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in WORDS:
        connection.execute(statement)
    query = "SELECT IFNULL(MIN(row), 1) - 1, IFNULL(MAX(row), 0) FROM documents"
    _set_pending(connection, Pending(*connection.execute(query).fetchone()))


def pending(connection: sqlite3.Connection) -> Pending | None:
    """Say which documents are not indexed yet; None where what says so is damaged."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    try:
        left = Pending(*map(int, found[0].split())) if found else None
    except (AttributeError, TypeError, ValueError):
        return None
    return left if left and max(map(abs, left)) < 2**63 else None


def begin_anew(connection: sqlite3.Connection) -> Pending:
    """Begin a damaged word index anew, unless somebody did; return which documents it lacks."""
    left = pending(connection)
    if left is not None and not left.n_left:
        try:
            Words().showing(connection)
        except DamagedWordsError:
            left = None
    if left is None:
        create_words(connection)
    return left or pending(connection) or Pending(0, 0)


def index_pending(connection: sqlite3.Connection) -> Pending:
    """Index some documents that are not indexed yet; return which are left then."""
    left = begin_anew(connection)
    rows = _next_documents(connection, left)
    _set_pending(connection, Pending(rows[-1][0] if rows else left.last, left.last))
    if rows:
        numbers = np.array([row for row, _ in rows], np.int64)
        add_words(connection, Segment.of([text for _, text in rows]).at(numbers))
    return pending(connection) or Pending(0, 0)


def add_words(connection: sqlite3.Connection, segment: Segment) -> None:
    """Add the words of documents that were just written, and join pieces where they are many.

    Where the index turns out to be damaged it is begun anew, with these documents pending.
    """
    with _begun_anew(connection):
        write_piece(connection, segment)
        while some := choose_to_join(
            [p for p in list_pieces(connection) if p.first <= segment.first]
        ):
            joined = Segment.joined([read_piece(connection, piece) for piece in some])
            drop_pieces(connection, some)
            write_piece(connection, joined)


def remove_words(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Note that the documents of some rows, which are deleted next, are gone."""
    numbers = np.array(rows, np.int64)
    with _begun_anew(connection):
        for piece in list_pieces(connection):
            places = numbers[(numbers >= piece.first) & (numbers < piece.end)] - piece.first
            if len(places):
                add_tombstones(connection, piece, places.astype("<u2").tobytes())


class Words:
    """The word index as readers in this process share it: pieces are read once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._read: dict[Piece, Segment] = {}
        self._index: WordIndex | None = None

    def showing(self, connection: sqlite3.Connection) -> WordIndex:
        """Return the index of the state that a transaction sees.

        Raises
        ------
        DamagedWordsError
            Also where it is not whole, as while another process makes it anew.
        """
        try:
            left, pieces = pending(connection), list_pieces(connection)
            if left is None or left.n_left:
                raise DamagedWordsError("The word index is not finished.")
            with self._lock:
                return self._follow(connection, pieces)
        except (DamagedWordsError, sqlite3.DatabaseError) as error:
            self.forget()
            if _is_damage(error):
                raise DamagedWordsError(str(error)) from error
            raise

    def forget(self) -> None:
        """Read all pieces anew, as after an older database was put back."""
        with self._lock:
            self._read, self._index = {}, None

    def _follow(self, connection: sqlite3.Connection, pieces: list[Piece]) -> WordIndex:
        _check_newest(connection, pieces)
        if self._index is None or pieces != list(self._read):
            known, is_new = self._read, self._index is None
            self._read = {p: known.get(p) or read_piece(connection, p) for p in pieces}
            self._index = WordIndex(list(self._read.values()))
            if is_new:
                _check_count(connection, self._index)
        return self._index


def _check_newest(connection: sqlite3.Connection, pieces: list[Piece]) -> None:
    """Raise where another program, which knows nothing of words, has written since."""
    (newest,) = connection.execute("SELECT MAX(row) FROM documents").fetchone()
    if newest is not None and (not pieces or newest >= pieces[-1].end):
        raise DamagedWordsError("The word index does not have the newest documents.")


def _check_count(connection: sqlite3.Connection, index: WordIndex) -> None:
    (n_documents,) = connection.execute("SELECT COUNT(*) FROM documents").fetchone()
    if n_documents != index.n_docs:
        raise DamagedWordsError(
            f"The word index is of {index.n_docs:,} documents, but there are {n_documents:,}."
        )


@contextmanager
def _begun_anew(connection: sqlite3.Connection) -> Iterator[None]:
    """Begin the index anew where it turns out to be damaged."""
    try:
        yield
    except (DamagedWordsError, sqlite3.DatabaseError) as error:
        if not _is_damage(error):
            raise
        create_words(connection)


def _is_damage(error: Exception) -> bool:
    """Say whether an error is of the word index alone: it is damaged, or has not our tables."""
    name = getattr(error, "sqlite_errorname", "")
    return isinstance(error, DamagedWordsError) or name == "SQLITE_ERROR"


def _next_documents(connection: sqlite3.Connection, left: Pending) -> list[tuple[int, str]]:
    """Read the rows and texts of some documents that are not indexed yet."""
    query = "SELECT row, text FROM documents WHERE row > ? AND row <= ? ORDER BY row LIMIT ?"
    rows: list[tuple[int, str]] = []
    size = 0
    for row, text in connection.execute(query, (*left, BATCH)):
        if rows and (row >= rows[0][0] + MOST or size > LONG_BATCH):
            break
        rows.append((row, str(text)))
        size += len(rows[-1][1])
    return rows


def _set_pending(connection: sqlite3.Connection, left: Pending) -> None:
    new = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
    connection.execute(new, (KEY, f"{left.done} {left.last}"))

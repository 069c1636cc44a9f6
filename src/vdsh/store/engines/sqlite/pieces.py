"""The table `words` of a store in a folder: pieces of the word index, and which are joined.

Each batch of documents adds a piece, and small neighbours are joined, so that there are few.
Deleted documents are noted in the table `word_tombstones` until their piece is written anew.
"""

import sqlite3
import zlib
from collections.abc import Sequence
from itertools import pairwise
from secrets import randbits
from typing import NamedTuple

import numpy as np

from vdsh.words import DamagedWordsError, Segment
from vdsh.words.segment import MOST

JOINED = 8  # neighbours of a size, at least
MOST_DELETED = 0.25  # of a piece, before it is written anew


class Piece(NamedTuple):
    """A row of the table `words`, and how many bytes of its documents are noted as gone."""

    segment: int  # a random number: readers must not take a later piece for one that they know
    first: int
    span: int
    docs: int
    gone: int = 0

    @property
    def end(self) -> int:
        """The row after the last one of its documents."""
        return self.first + self.span

    @property
    def size(self) -> int:
        """Which pieces are joined with it: those up to eight times as large."""
        return (self.span - 1).bit_length() // 3


def add_tombstones(connection: sqlite3.Connection, piece: Piece, places: bytes) -> None:
    """Note that some documents of a piece are gone; write it anew where they are many."""
    noted = _tombstones(connection, piece) + places
    note = "INSERT OR REPLACE INTO word_tombstones VALUES (?, ?)"
    connection.execute(note, (piece.segment, noted + _check_sum(noted)))
    if len(noted) > 2 * MOST_DELETED * piece.docs:  # so that one without documents is dropped
        left = read_piece(connection, piece)
        drop_pieces(connection, [piece])
        if left.n_docs:
            write_piece(connection, left)


def list_pieces(connection: sqlite3.Connection) -> list[Piece]:
    """List the pieces, in the order of their documents; raise where they cannot be ours."""
    query = (
        "SELECT segment, first, span, docs, IFNULL(LENGTH(places), 0) "
        "FROM words LEFT JOIN word_tombstones USING (segment) ORDER BY first"
    )
    pieces = [Piece(*row) for row in connection.execute(query)]
    sound = all(isinstance(n, int) for piece in pieces for n in piece)
    if not sound or any(one.end > other.first for one, other in pairwise(pieces)):
        raise DamagedWordsError("The pieces of the word index do not follow each other.")
    return pieces


def read_piece(connection: sqlite3.Connection, piece: Piece) -> Segment:
    """Read a piece without what is gone; raise where it is not as it was written."""
    query = "SELECT data FROM words WHERE segment = ?"
    (data,) = connection.execute(query, (piece.segment,)).fetchone()
    segment = Segment.from_bytes(data, piece.first)
    gone = np.frombuffer(_tombstones(connection, piece), "<u2")
    if (len(segment.lengths), segment.n_docs) != (piece.span, piece.docs) or (
        gone.max(initial=0) >= piece.span
    ):
        raise DamagedWordsError("A piece of the word index is not as long as it should be.")
    return segment.without(gone) if len(gone) else segment


def _tombstones(connection: sqlite3.Connection, piece: Piece) -> bytes:
    query = "SELECT places FROM word_tombstones WHERE segment = ?"
    found = connection.execute(query, (piece.segment,)).fetchone()
    if not found:
        return b""
    whole = found[0] if isinstance(found[0], bytes) else b""
    places = whole[:-4]
    if len(places) % 2 or whole[-4:] != _check_sum(places):
        raise DamagedWordsError("The tombstones of the word index are not a list of documents.")
    return places


def _check_sum(places: bytes) -> bytes:
    return zlib.crc32(places).to_bytes(4, "little")


def write_piece(connection: sqlite3.Connection, segment: Segment) -> None:
    """Add a piece."""
    facts = randbits(62), segment.first, len(segment.lengths), segment.n_docs
    connection.execute("INSERT INTO words VALUES (?, ?, ?, ?, ?)", (*facts, segment.to_bytes()))


def drop_pieces(connection: sqlite3.Connection, pieces: Sequence[Piece]) -> None:
    """Drop pieces and what is noted beside them."""
    for table in ("words", "word_tombstones"):
        these = [(piece.segment,) for piece in pieces]
        connection.executemany(f"DELETE FROM {table} WHERE segment = ?", these)


def choose_to_join(pieces: list[Piece]) -> list[Piece]:
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

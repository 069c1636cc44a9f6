"""The word index of a store in a folder, which is committed with its documents.

Each batch of documents adds a segment, and small neighbours are joined, so that there are few. The
table `words` has the heads of segments and the table `word_blocks` their blocks, of which a search
reads those with its terms. Deleted documents are noted in the table `word_tombstones` until their
segment is written anew.
"""

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, pairwise
from sqlite3 import Connection, DatabaseError
from threading import Lock
from typing import NamedTuple

import numpy as np

from vdsh.documents.document import BATCH
from vdsh.store.engines.sqlite.schema import WORDS, make_anew, note_facts
from vdsh.store.engines.sqlite.seen import Seen
from vdsh.store.rows import read_metadata, searched_text
from vdsh.text.languages import NONE, Language, find_language, language
from vdsh.words import DamagedWordsError, IndexReader, Segment
from vdsh.words.blocks import StoredSegment, to_blocks
from vdsh.words.segment import MOST
from vdsh.words.stored import LoadedSegment, StoredIndex

KEY = "words"  # in the table `meta`: the row up to which an index made anew has come, and the last
LANGUAGE = "language"  # there, too: settled when the first document is written
LONG_BATCH = 32 * 2**20  # characters that end a batch sooner
JOINED = 8  # neighbours of a size, at least
BLOCKS_AT_ONCE = 500  # numbers in one statement
LARGEST = 2**26  # bytes of a joined segment: long documents have many passages
MOST_DELETED = 0.25  # of a segment, before it is written anew


class SegmentRow(NamedTuple):
    """A row of the table `words`, and how many bytes of its documents are noted as deleted."""

    segment: int  # a random number: readers must not take a later one for one that they know
    first: int
    span: int
    docs: int
    n_bytes: int  # of its blocks
    gone: int = 0
    # Bytes of its head: a reader that knows the segment notices when it was cut short since.
    n_bytes_of_head: int = 0

    @property
    def end(self) -> int:
        """The row after the last one of its documents."""
        return self.first + self.span

    @property
    def size(self) -> int:
        """Which segments are joined with it: those up to eight times as large."""
        return (self.span - 1).bit_length() // 3


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


def language_of(connection: Connection, texts: Sequence[str] = ()) -> Language:
    """Return the language of a store's words; of texts, where it is to be settled."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (LANGUAGE,)).fetchone()
    if found is None and texts:
        found = (find_language(texts),)
        note_facts(connection, {LANGUAGE: found[0]})
    return language(found[0] if found else NONE)


def create_words(connection: Connection) -> None:
    """Make the tables; what is in the store already is indexed later."""
    make_anew(connection, WORDS)
    query = "SELECT IFNULL(MIN(row), 1) - 1, IFNULL(MAX(row), 0) FROM documents"
    _set_pending(connection, Pending(*connection.execute(query).fetchone()))


def pending(connection: Connection) -> Pending | None:
    """Say which documents are not indexed yet; None where what says so is damaged."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    try:
        left = Pending(*map(int, found[0].split())) if found else None
    except (AttributeError, TypeError, ValueError):
        return None
    return left if left and max(map(abs, left)) < 2**63 else None


def begin_anew(connection: Connection) -> Pending:
    """Begin a damaged word index anew, unless somebody did; return which documents it lacks."""
    left = pending(connection)
    if left is not None and not left.n_left:
        try:
            Words().verify(connection)
        except DamagedWordsError:
            left = None
    if left is None:
        create_words(connection)
    return left or pending(connection) or Pending(0, 0)


def index_pending(connection: Connection) -> int:
    """Index some documents that are not indexed yet; return how many rows are left then."""
    left = begin_anew(connection)
    rows = _next_documents(connection, left)
    _set_pending(connection, Pending(rows[-1][0] if rows else left.last, left.last))
    if rows:
        numbers = np.array([row for row, _ in rows], np.int64)
        texts = [text for _, text in rows]
        add_words(connection, Segment.of(texts, language_of(connection, texts)).at(numbers))
    return (pending(connection) or Pending(0, 0)).n_left


def add_words(connection: Connection, segment: Segment) -> None:
    """Add the words of documents that were just written, and join segments where they are many.

    Where the index turns out to be damaged it is begun anew, with these documents pending.
    """
    with begun_anew(connection, create_words):
        _write_segment(connection, segment)
        while some := _choose_to_join(
            [r for r in _list_rows(connection) if r.first <= segment.first]
        ):
            joined = Segment.joined([_read_segment(connection, row) for row in some])
            _drop_rows(connection, some)
            _write_segment(connection, joined)


def remove_words(connection: Connection, rows: Sequence[int]) -> None:
    """Note that the documents of some rows, which are deleted next, are gone."""
    numbers = np.array(rows, np.int64)
    with begun_anew(connection, create_words):
        for row in _list_rows(connection):
            places = numbers[(numbers >= row.first) & (numbers < row.end)] - row.first
            if len(places):
                _add_tombstones(connection, row, places.astype("<u2").tobytes())


class Words:
    """The word index as readers in this process share it: what one read, others need not read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._read: dict[SegmentRow, LoadedSegment] = {}
        self._index: StoredIndex | None = None
        self._seen = Seen()

    def showing(self, connection: Connection) -> IndexReader:
        """Return the index of the state that a transaction sees, to be used inside it.

        Raises where that is damaged, or not finished, as while another process makes it anew. What
        is not read yet may be damaged too: methods of the index raise then.
        """
        try:
            with self._lock:
                if self._index is None or not self._seen.has(connection):
                    self._index = self._follow(connection)
                    self._seen.note(connection)
                return IndexReader(self._index, partial(_read_blocks, connection))
        except (DamagedWordsError, DatabaseError) as error:
            self.forget()
            if _is_damage(error):
                raise DamagedWordsError(str(error)) from error
            raise

    def verify(self, connection: Connection) -> None:
        """Read everything, and keep nothing of it; raise where anything is damaged."""
        self.showing(connection)
        for row in _list_rows(connection):
            _read_segment(connection, row)

    def forget(self) -> None:
        """Read all segments anew, as after an older database was put back."""
        with self._lock:
            self._read, self._index = {}, None

    def _follow(self, connection: Connection) -> StoredIndex:
        left, rows = pending(connection), _list_rows(connection)
        if left is None or left.n_left:
            raise DamagedWordsError("The word index is not finished.")
        (newest,) = connection.execute("SELECT MAX(row) FROM documents").fetchone()
        if newest is not None and (not rows or newest >= rows[-1].end):  # by another program
            raise DamagedWordsError("The word index does not have the newest documents.")
        if self._index is not None and rows == list(self._read):
            return self._index
        self._seen.forget()
        known = self._read
        self._read = {row: known.get(row) or _open_segment(connection, row) for row in rows}
        index = StoredIndex(list(self._read.values()), language_of(connection))
        if self._index is None:
            _check_count(connection, index)
        return index


def _check_count(connection: Connection, index: StoredIndex) -> None:
    (n_documents,) = connection.execute("SELECT COUNT(*) FROM documents").fetchone()
    if n_documents != index.n_docs:
        raise DamagedWordsError(
            f"The word index is of {index.n_docs:,} documents, but there are {n_documents:,}."
        )


@contextmanager
def begun_anew(connection: Connection, begin: Callable[[Connection], None]) -> Iterator[None]:
    """Begin tables anew where they turn out to be damaged, or not ours."""
    try:
        yield
    except (DamagedWordsError, DatabaseError) as error:
        if not _is_damage(error):
            raise
        begin(connection)


def _is_damage(error: Exception) -> bool:
    """Say whether an error is of an index alone: it is damaged, or has not our tables."""
    name = getattr(error, "sqlite_errorname", "")
    return isinstance(error, DamagedWordsError) or name == "SQLITE_ERROR"


def _next_documents(connection: Connection, left: Pending) -> list[tuple[int, str]]:
    """Read the rows and texts of some documents that are not indexed yet."""
    query = (
        "SELECT row, id, text, metadata FROM documents WHERE row > ? AND row <= ? "
        "ORDER BY row LIMIT ?"
    )
    rows: list[tuple[int, str]] = []
    size = 0
    for row, id, text, metadata in connection.execute(query, (*left, BATCH)):
        if rows and (row >= rows[0][0] + MOST or size > LONG_BATCH):
            break
        rows.append((row, searched_text(str(id), str(text), read_metadata(metadata))))
        size += len(rows[-1][1])
    return rows


def _set_pending(connection: Connection, left: Pending) -> None:
    note_facts(connection, {KEY: f"{left.done} {left.last}"})


def _add_tombstones(connection: Connection, row: SegmentRow, places: bytes) -> None:
    """Note that some documents of a segment are gone; write it anew where they are many."""
    noted = _tombstones(connection, row) + places
    note = "INSERT OR REPLACE INTO word_tombstones VALUES (?, ?)"
    connection.execute(note, (row.segment, noted + _check_sum(noted)))
    if len(noted) > 2 * MOST_DELETED * row.docs:  # so that one without documents is dropped
        left = _read_segment(connection, row)
        _drop_rows(connection, [row])
        if left.n_docs:
            _write_segment(connection, left)


def _list_rows(connection: Connection) -> list[SegmentRow]:
    """List the segments, in the order of their documents; raise where they cannot be ours."""
    query = (
        "SELECT segment, first, span, docs, size, IFNULL(LENGTH(places), 0), LENGTH(data) "
        "FROM words LEFT JOIN word_tombstones USING (segment) ORDER BY first"
    )
    rows = [SegmentRow(*row) for row in connection.execute(query)]
    sound = all(isinstance(n, int) for row in rows for n in row)
    if not sound or any(one.end > other.first for one, other in pairwise(rows)):
        raise DamagedWordsError("The segments of the word index do not follow each other.")
    return rows


def _open_segment(connection: Connection, row: SegmentRow) -> LoadedSegment:
    """Read the head of a segment, and what was deleted; raise where it is not as it was written."""
    query = "SELECT data FROM words WHERE segment = ?"
    (data,) = connection.execute(query, (row.segment,)).fetchone()
    deleted = np.frombuffer(_tombstones(connection, row), "<u2").astype(np.uint16)
    stored = StoredSegment(data, row.first, deleted, row.n_bytes)
    if (len(stored.head.lengths), stored.n_docs) != (row.span, row.docs):
        raise DamagedWordsError("A segment of the word index is not as long as it should be.")
    return LoadedSegment(row.segment, stored)


def _read_segment(connection: Connection, row: SegmentRow) -> Segment:
    """Read all of a segment without what was deleted; raise where it is not as it was written."""
    read = partial(_read_blocks, connection, row.segment)
    return _open_segment(connection, row).stored.whole(read)


def _read_blocks(connection: Connection, segment: int, numbers: Sequence[int]) -> list[bytes]:
    """Read some blocks of a segment; raise where they are not there."""
    blocks: dict[int, bytes] = {}
    for start in range(0, len(numbers), BLOCKS_AT_ONCE):
        listed = ", ".join(map(str, numbers[start : start + BLOCKS_AT_ONCE]))
        query = f"SELECT block, data FROM word_blocks WHERE segment = ? AND block IN ({listed})"
        try:
            blocks.update(connection.execute(query, (segment,)))
        except DatabaseError as error:
            if _is_damage(error):
                raise DamagedWordsError(str(error)) from error
            raise
    if len(blocks) < len(numbers):
        raise DamagedWordsError("A segment of the word index lacks blocks.")
    return [blocks[number] for number in numbers]


def _tombstones(connection: Connection, row: SegmentRow) -> bytes:
    query = "SELECT places FROM word_tombstones WHERE segment = ?"
    found = connection.execute(query, (row.segment,)).fetchone()
    if not found:
        return b""
    whole = found[0] if isinstance(found[0], bytes) else b""
    places = whole[:-4]
    if len(places) % 2 or whole[-4:] != _check_sum(places):
        raise DamagedWordsError("The tombstones of the word index are not a list of documents.")
    return places


def _check_sum(places: bytes) -> bytes:
    return zlib.crc32(places).to_bytes(4, "little")


def _write_segment(connection: Connection, segment: Segment) -> None:
    head, blocks = to_blocks(segment)
    number = int.from_bytes(os.urandom(8)) >> 2
    connection.execute(
        "INSERT INTO words VALUES (?, ?, ?, ?, ?, ?)",
        (
            number,
            segment.first,
            len(segment.documents.lengths),
            segment.n_docs,
            sum(map(len, blocks)),
            head,
        ),
    )
    rows = [(number, place, block) for place, block in enumerate(blocks)]
    connection.executemany("INSERT INTO word_blocks VALUES (?, ?, ?)", rows)


def _drop_rows(connection: Connection, rows: Sequence[SegmentRow]) -> None:
    """Drop segments and what is noted beside them."""
    for table in ("words", "word_blocks", "word_tombstones"):
        these = [(row.segment,) for row in rows]
        connection.executemany(f"DELETE FROM {table} WHERE segment = ?", these)


def _choose_to_join(rows: list[SegmentRow]) -> list[SegmentRow]:
    """Choose neighbours to join: of the last ones, when there are eight of about one size."""
    last = rows[-1].size if rows else 0
    start = len(rows)
    while start and rows[start - 1].size <= last:
        start -= 1
    if len(rows) - start < JOINED:
        return []
    for i in range(start, len(rows) - 1):
        sizes = accumulate(row.n_bytes for row in rows[i:])
        some = [
            row
            for row, size in zip(rows[i:], sizes, strict=True)
            if row.end - rows[i].first <= MOST and size <= LARGEST
        ]
        if len(some) > 1:
            return some
    return []

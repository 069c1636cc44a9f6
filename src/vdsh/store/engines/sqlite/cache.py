"""The index cache: a `HammingIndex` that follows the documents table, and its file.

The file is a cache: it may be missing, old or damaged, and is then made anew from SQLite. Its name
says which state of which store it shows: index-ROW-SEQ-STORE.vdsh.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from sqlite3 import Connection, Cursor
from threading import Condition, Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.errors import EngineError, FolderError, VdshError
from vdsh.search import HammingIndex
from vdsh.store.engines.sqlite.database import Database, read_meta
from vdsh.store.engines.sqlite.seen import Seen
from vdsh.store.engines.sqlite.words import Words
from vdsh.store.rows import read_codes

NAME = re.compile(r"index-(\d+)-(\d+)-([0-9a-f]+)\.vdsh")
LEFT_OVER = re.compile(r"\.index-.*")  # written in part, when the process was killed
WORTH_SAVING = 0.03  # share of the documents that changed since
MANY = 50_000


class OtherCodesError(EngineError):
    """The store has got codes of another model than those of a cache."""

    def __init__(self) -> None:
        super().__init__("The store got another model meanwhile. Open it again.")


class State(NamedTuple):
    """The newest row and tombstone; it grows with every change."""

    row: int
    seq: int

    def is_newer(self, than: "State") -> bool:
        """Say whether this shows a change that the other does not."""
        return self.row > than.row or self.seq > than.seq


def current_state(connection: Connection) -> State:
    """Read the state of the store in two look-ups."""
    newest = dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    state = State(newest.get("documents", 0), newest.get("tombstones", 0))
    if not all(isinstance(number, int) for number in state):
        raise FolderError("This store is damaged: its rows are not counted. Restore a copy.")
    return state


def _count(connection: Connection) -> int:
    return int(connection.execute("SELECT COUNT(*) FROM documents").fetchone()[0])


def _first_tombstone(connection: Connection) -> float:
    """Return the number of the oldest tombstone in the log, infinity where it is empty."""
    (first,) = connection.execute("SELECT MIN(seq) FROM tombstones").fetchone()
    return inf if first is None else int(first)


class IndexCache:
    """A `HammingIndex` over all documents, one for all handles of a store in this process.

    It is brought up to date before each use. That waits until no other thread searches it, and
    who comes later waits too, so each search sees the state of its own transaction.

    Index files lie beside the SQLite `file`; `store` tells it from others, in hexadecimal digits.
    `words`: of the same documents before they got other codes.
    """

    def __init__(
        self, file: Path, n_bits: int, store: str, words: Words | None = None, device: str = "cpu"
    ) -> None:
        self.file = file
        self.folder = file.parent
        self.n_bytes = n_bits // 8
        self.store = store
        self.device = device
        self.index: HammingIndex | None = None  # until it is first needed
        self.words = words or Words()
        self._state = State(0, 0)
        self._seen = Seen()
        self._enough = 0  # tombstones in the log, when somebody last looked how many are needed
        self._entrance = Lock()
        self._left = Condition()
        self._n_inside = 0

    @contextmanager
    def showing(self, connection: Connection) -> Iterator[HammingIndex]:
        """Give the index of the state that a transaction sees; it does not change meanwhile.

        The transaction must have read nothing before: what it sees is settled by its first look,
        so whoever enters later sees no less. It raises `OtherCodesError` where the store has got
        codes of another model.
        """
        with self._entrance:
            index = self.index
            if index is None or not self._seen.has(connection):
                self._check(connection)
                index = self._follow(connection)
                self._seen.note(connection)
            with self._left:
                self._n_inside += 1
        try:
            yield index
        finally:
            with self._left:
                self._n_inside -= 1
                self._left.notify_all()

    def forget_tombstones(self, connection: Connection) -> None:
        """Keep the log of tombstones no longer than indexes that are behind can need.

        One that takes over changes has seen at most half as many as it holds documents. Those are
        at most the documents now and the tombstones since, so it needs no more tombstones than
        there are documents now. They are counted again when the log is half as long again.
        """
        newest = current_state(connection).seq
        if newest - _first_tombstone(connection) < self._enough:
            return
        n_documents = _count(connection)
        connection.execute("DELETE FROM tombstones WHERE seq <= ?", (newest - n_documents,))
        self._enough = n_documents + n_documents // 2

    def save(self, connection: Connection) -> None:
        """Write the index file where it lags behind, and remove older ones."""
        with self._entrance:
            self._check(connection)
            now, files = current_state(connection), self._files()
            saved = max([state for state, _ in files], default=State(0, 0))
            n_documents = _count(connection)
            lag = sum(now) - sum(saved)
            is_new = not saved.row or lag > WORTH_SAVING * n_documents
            if not n_documents or not self.n_bytes or not is_new:
                return
            index = self._follow(connection)
            if self._n_inside:  # saving puts it in order; who searches now saves it later
                return
            name = f"index-{now.row}-{now.seq}-{self.store}.vdsh"
            index.save(self.folder / name)
        # Whoever may read the documents may read their index.
        (self.folder / name).chmod(self.file.stat().st_mode & 0o777)
        self._remove_all_but(name)

    def forget_newer(self, connection: Connection) -> None:
        """Forget what shows a later state, as after an older database was put back."""
        with self._entrance:
            files, now = self._files(), current_state(connection)
            if self._state.is_newer(now):
                self.index = None
                self.words.forget()
        for state, file in files:
            if state.is_newer(now):
                with suppress(OSError):
                    file.unlink()

    def _follow(self, connection: Connection) -> HammingIndex:
        """Bring the index to the state that a transaction sees, when nobody uses it."""
        now = current_state(connection)
        if not self.n_bytes:  # no model, no codes
            self.index, self._state = HammingIndex(np.zeros((0, 1), np.uint8), ids=[]), now
        if self.index is not None and now == self._state:
            return self.index
        with self._left:
            self._left.wait_for(lambda: not self._n_inside)
        self._seen.forget()
        index, self.index = self.index, None  # forgotten if anything fails on the way
        if index is None:
            index = self._open(connection, now)
        elif not self._catch_up(connection, index, self._state, now):
            index = None
        self.index, self._state = self._build(connection) if index is None else index, now
        return self.index

    def _check(self, connection: Connection) -> None:
        """Raise where a transaction sees other codes than those of this cache."""
        if read_meta(connection).get("uuid") != self.store:
            raise OtherCodesError

    def _open(self, connection: Connection, now: State) -> HammingIndex | None:
        """Map the newest file that is good and bring it up to date, if there is one."""
        older = [(state, file) for state, file in self._files() if not state.is_newer(now)]
        for state, file in sorted(older, reverse=True):
            with suppress(VdshError):
                index = HammingIndex.open(file, device=self.device)
                fits = index.n_bits == 8 * self.n_bytes and index.is_numbered
                fits = fits and self._catch_up(connection, index, state, now)
                if fits and len(index) == _count(connection):
                    return index
        return None

    def _catch_up(
        self, connection: Connection, index: HammingIndex, last: State, now: State
    ) -> bool:
        """Take over what has changed; return False where building anew is better."""
        if now == last:
            return True
        if last.is_newer(now):
            return False
        if now.row - last.row + now.seq - last.seq > len(index) // 2:
            return False
        if now.seq > last.seq and _first_tombstone(connection) > last.seq + 1:
            return False
        # What came and went since then was never in the index.
        query = "SELECT id FROM tombstones WHERE seq > ? AND row <= ?"
        index.remove([id for (id,) in connection.execute(query, (last.seq, last.row))])
        rows = connection.execute("SELECT row, id, code FROM documents WHERE row > ?", (last.row,))
        numbers, ids, codes = self._arrays(rows)
        if ids:
            index.add(codes, ids=ids, numbers=numbers)
        return True

    def _build(self, connection: Connection) -> HammingIndex:
        # In the order of ids, so that the index need not sort them.
        rows = connection.execute("SELECT row, id, code FROM documents ORDER BY id")
        numbers, ids, codes = self._arrays(rows)
        return HammingIndex(codes, ids=ids, numbers=numbers, device=self.device)

    def _arrays(self, rows: Cursor) -> tuple[NDArray[np.int64], list[str], Codes]:
        numbers: list[int] = []
        ids: list[str] = []
        parts = [np.zeros((0, self.n_bytes), np.uint8)]
        while some := rows.fetchmany(MANY):
            more, codes = read_codes([(id, code) for _, id, code in some], self.n_bytes)
            numbers += [row for row, _, _ in some]
            ids += more
            parts.append(codes)
        return np.array(numbers, np.int64), ids, np.concatenate(parts)

    def _files(self) -> list[tuple[State, Path]]:
        """List the index files of this store; none where its folder was removed."""
        found = [(NAME.fullmatch(file.name), file) for file in self.folder.glob("index-*")]
        return [
            (State(int(match[1]), int(match[2])), file)
            for match, file in found
            if match and match[3] == self.store
        ]

    def _remove_all_but(self, name: str) -> None:
        for file in self.folder.iterdir():
            old = NAME.fullmatch(file.name) or LEFT_OVER.fullmatch(file.name)
            if old and file.name != name:
                with suppress(OSError):
                    file.unlink()


_caches: "WeakValueDictionary[tuple[object, ...], IndexCache]" = WeakValueDictionary()
_sharing = Lock()


def share_cache(
    database: Database, n_bits: int, store: str, words: Words | None, device: str
) -> IndexCache:
    """Return the cache of a database: the one that other handles in this process use, if any."""
    # Locks of another process stay as they were.
    key = (os.getpid(), database.identity, store, device)
    with _sharing:
        cache = _caches.get(key) or IndexCache(database.file, n_bits, store, words, device)
        _caches[key] = cache
    if not database.read_only:
        with database.reading() as connection:
            cache.forget_newer(connection)
    return cache

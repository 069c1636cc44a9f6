"""The index that follows the documents table, and its file.

The file is a cache: it may be missing, old or damaged, and is then made anew from SQLite. Its name
says which state of which store it shows: index-ROW-SEQ-STORE.vdsh.
"""

import re
import sqlite3
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vdsh.codes import Codes
from vdsh.errors import FolderError, VdshError
from vdsh.search import HammingIndex
from vdsh.store.local.database import FILE
from vdsh.store.rows import read_codes

NAME = re.compile(r"index-(\d+)-(\d+)-([0-9a-f]+)\.vdsh")
LEFT_OVER = re.compile(r"\.index-.*")  # written in part, when the process was killed
WORTH_SAVING = 0.03  # share of the documents that changed since
MANY = 50_000


class State(NamedTuple):
    """The newest row and deletion; it grows with every change."""

    row: int
    seq: int


def current_state(connection: sqlite3.Connection) -> State:
    """Read the state of the store in two look-ups."""
    newest = dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    state = State(newest.get("documents", 0), newest.get("deletions", 0))
    if not all(isinstance(number, int) for number in state):
        raise FolderError("This store is damaged: its rows are not counted. Restore a copy.")
    return state


def _first_deletion(connection: sqlite3.Connection) -> float:
    """Return the number of the oldest deletion in the log, infinity where it is empty."""
    (first,) = connection.execute("SELECT MIN(seq) FROM deletions").fetchone()
    return inf if first is None else int(first)


class Mirror:
    """A `HammingIndex` over all documents, brought up to date before each use.

    Parameters
    ----------
    folder : Path
    n_bits : int
    store : str
        What tells this store from others, in hexadecimal digits.

    Attributes
    ----------
    index : HammingIndex or None
        None until it is first needed.
    """

    def __init__(self, folder: Path, n_bits: int, store: str) -> None:
        self.folder = folder
        self.n_bytes = n_bits // 8
        self.store = store
        self.index: HammingIndex | None = None
        self._state = State(0, 0)
        self._enough = 0  # deletions in the log, when somebody last looked how many are needed

    def follow(self, connection: sqlite3.Connection) -> HammingIndex:
        """Return the index of the state that a transaction sees."""
        now = current_state(connection)
        if self.index is None:
            self._open(connection, now)
        index, self.index = self.index, None  # forgotten if anything fails on the way
        if index is None or not self._catch_up(connection, index, now):
            index = self._build(connection)
        self.index, self._state = index, now
        return index

    def forget_deletions(self, connection: sqlite3.Connection) -> None:
        """Keep the log of deletions no longer than indexes that are behind can need.

        One that takes over changes has seen at most half as many as it holds documents. Those are
        at most the documents now and the deletions since, so it needs no more deletions than there
        are documents now. They are counted again when the log is half as long again.
        """
        newest = current_state(connection).seq
        if newest - _first_deletion(connection) < self._enough:
            return
        (n_documents,) = connection.execute("SELECT COUNT(*) FROM documents").fetchone()
        connection.execute("DELETE FROM deletions WHERE seq <= ?", (newest - n_documents,))
        self._enough = n_documents + n_documents // 2

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the index file where it lags behind, and remove older ones."""
        now = current_state(connection)
        saved = max((state for state, _ in self._files()), default=State(0, 0))
        (n_documents,) = connection.execute("SELECT COUNT(*) FROM documents").fetchone()
        lag = sum(now) - sum(saved)
        if not n_documents or (saved.row and lag <= WORTH_SAVING * n_documents):
            return
        name = f"index-{now.row}-{now.seq}-{self.store}.vdsh"
        self.follow(connection).save(self.folder / name)
        # Whoever may read the documents may read their index.
        (self.folder / name).chmod((self.folder / FILE).stat().st_mode & 0o777)
        self._remove_all_but(name)

    def remove_newer(self, connection: sqlite3.Connection) -> None:
        """Remove files that show a later state, as after an older database was put back."""
        files = self._files()
        now = current_state(connection)
        for state, file in files:
            if state.row > now.row or state.seq > now.seq:
                with suppress(OSError):
                    file.unlink()

    def _open(self, connection: sqlite3.Connection, now: State) -> None:
        """Map the newest file that is good, if there is one."""
        for state, file in sorted(self._files(), reverse=True):
            if state.row > now.row or state.seq > now.seq:
                continue
            with suppress(VdshError):
                index = HammingIndex.open(file)
                if index.n_bits == 8 * self.n_bytes and self._catch_up_from(
                    connection, index, state, now
                ):
                    self.index, self._state = index, now
                    return

    def _catch_up_from(
        self, connection: sqlite3.Connection, index: HammingIndex, state: State, now: State
    ) -> bool:
        """Bring an index from a file up to date, and see that it has what the table has."""
        self._state = state
        if not self._catch_up(connection, index, now):
            return False
        (n_documents,) = connection.execute("SELECT COUNT(*) FROM documents").fetchone()
        return bool(len(index) == n_documents)

    def _catch_up(self, connection: sqlite3.Connection, index: HammingIndex, now: State) -> bool:
        """Take over what has changed; return False where building anew is better."""
        last = self._state
        if now == last:
            return True
        if now.row - last.row + now.seq - last.seq > len(index) // 2:
            return False
        if now.seq > last.seq and _first_deletion(connection) > last.seq + 1:
            return False
        # What came and went since then was never in the index.
        query = "SELECT id FROM deletions WHERE seq > ? AND row <= ?"
        index.remove([id for (id,) in connection.execute(query, (last.seq, last.row))])
        rows = connection.execute("SELECT id, code FROM documents WHERE row > ?", (last.row,))
        ids, codes = self._arrays(rows)
        if ids:
            index.add(codes, ids=ids)
        return True

    def _build(self, connection: sqlite3.Connection) -> HammingIndex:
        # In the order of ids, so that the index need not sort them.
        rows = connection.execute("SELECT id, code FROM documents ORDER BY id")
        ids, codes = self._arrays(rows)
        return HammingIndex(codes, ids=ids)

    def _arrays(self, rows: sqlite3.Cursor) -> tuple[list[str], Codes]:
        ids: list[str] = []
        parts = [np.zeros((0, self.n_bytes), np.uint8)]
        while some := rows.fetchmany(MANY):
            more, codes = read_codes(some, self.n_bytes)
            ids += more
            parts.append(codes)
        return ids, np.concatenate(parts)

    def _files(self) -> list[tuple[State, Path]]:
        """List the index files of this store."""
        named = [(NAME.fullmatch(file.name), file) for file in self.folder.iterdir()]
        return [
            (State(int(match[1]), int(match[2])), file)
            for match, file in named
            if match and match[3] == self.store
        ]

    def _remove_all_but(self, name: str) -> None:
        for file in self.folder.iterdir():
            old = NAME.fullmatch(file.name) or LEFT_OVER.fullmatch(file.name)
            if old and file.name != name:
                with suppress(OSError):
                    file.unlink()

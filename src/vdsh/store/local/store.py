"""A store in a folder: SQLite holds everything, an index in memory answers searches."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from threading import RLock
from typing import Any, TypeVar

from vdsh.codes import Codes, Scores, expected_distances
from vdsh.documents import Document
from vdsh.errors import VdshError
from vdsh.search.checks import check_count
from vdsh.store.base import Hit, Where
from vdsh.store.local.database import Database
from vdsh.store.local.mirror import Mirror
from vdsh.store.local.snapshot import Snapshot
from vdsh.store.model import StoreModel
from vdsh.store.modelled import CANDIDATES, ModelledStore
from vdsh.store.rows import COLUMNS, Rows, check_id, read_labels, to_document

INSERT = "INSERT INTO documents(id, text, labels, metadata, code) VALUES (?, ?, ?, ?, ?)"

T = TypeVar("T")


class LocalStore(ModelledStore):
    """A store in a folder; made by `open_store`.

    One process writes at a time, any number read; each sees what was committed when its call
    began. A store may be used from several threads, which take turns.

    Parameters
    ----------
    database : Database
    meta : mapping of str
        What the store says about itself.
    model : StoreModel
    """

    def __init__(self, database: Database, meta: Mapping[str, str], model: StoreModel) -> None:
        self._database = database
        self._meta = meta
        self._model = model
        self._mirror = Mirror(database.folder.absolute(), model.n_bits, meta["uuid"])
        self._known_fields: set[str] = set()
        self._has_written = False
        self._lock = RLock()
        if not database.read_only:
            with database.reading() as connection:
                self._mirror.remove_newer(connection)

    def __repr__(self) -> str:
        return f"<LocalStore '{self._database.folder}', {self._model.n_bits} bits>"

    def get(self, id: str) -> Document | None:
        """Return a document, or None where there is none of that id."""
        with self._reading() as connection:
            query = f"SELECT {COLUMNS} FROM documents WHERE id = ?"
            row = connection.execute(query, (check_id(id),)).fetchone()
        return row and to_document(row)

    def count(self, where: Where | None = None) -> int:
        """Count all documents, or those that match a filter."""
        with self._reading() as connection:
            return Snapshot(connection, where).count()

    def find(self, id: str) -> Hit | None:
        """Return a document with its code, as a hit of distance 0, or None where there is none."""
        with self._reading() as connection:
            there = connection.execute("SELECT 1 FROM documents WHERE id = ?", (check_id(id),))
            return Snapshot(connection).hits([(id, 0)])[0] if there.fetchone() else None

    def labels(self) -> list[str]:
        """List the labels that documents have, in order."""
        with self._reading() as connection:
            return sorted(_labels(connection))

    def documents(self, batch_size: int = 1000) -> Iterator[list[Document]]:
        """Iterate over all documents in the order of their ids."""
        for rows in self._pages(COLUMNS, check_count("batch_size", batch_size, 1)):
            yield [to_document(row) for row in rows]

    def codes(self, batch_size: int = 10_000) -> Iterator[tuple[list[str], Codes]]:
        """Iterate over ids and codes, in the order of the ids."""
        for rows in self._pages("id, code", check_count("batch_size", batch_size, 1)):
            yield self._split(rows)

    def entries(
        self, after: str = "", batch_size: int = 1000
    ) -> Iterator[tuple[list[Document], Codes]]:
        """Iterate over documents with their codes, those with an id above `after`."""
        size = check_count("batch_size", batch_size, 1)
        for rows in self._pages(f"{COLUMNS}, code", size, after):
            _, codes = self._split([(row[0], row[-1]) for row in rows])
            yield [to_document(row[:-1]) for row in rows], codes

    def info(self) -> dict[str, Any]:
        """Describe the store: documents, bits, model, fields, labels, bytes on disk."""
        with self._reading() as connection:
            snapshot = Snapshot(connection)
            n_documents, fields = snapshot.count(), snapshot.fields()
            n_labels = len(_labels(connection))
        folder = self._database.folder
        return {
            "path": str(folder),
            "documents": n_documents,
            "bits": self._model.n_bits,
            "model": self._about_model(),
            "fields": fields,
            "labels": n_labels,
            "bytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
            "format": int(self._meta["format"]),
            "read_only": self._database.read_only,
        }

    def interrupt(self) -> None:
        """Make a statement that another thread runs give up."""
        self._database.interrupt()

    def is_in_place(self) -> bool:
        """Say whether the store is still where it was opened, not removed or replaced."""
        return self._database.is_in_place()

    def close(self) -> None:
        """Save the index where it has changed much, and close the database."""
        used = self._has_written or self._mirror.index is not None
        with self._lock:
            try:
                if used and not self._database.read_only and not self._database.closed:
                    with suppress(VdshError, OSError), self._reading() as connection:
                        self._mirror.save(connection)  # may fail: it is only a cache
            finally:
                self._database.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._lock, self._database.reading() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._lock, self._database.writing() as connection:
            self._has_written = True
            yield connection

    def _remove(self, ids: list[str]) -> int:
        with self._writing() as connection:
            n_removed = _delete(connection, ids)
            self._mirror.forget_deletions(connection)
        return n_removed

    def _write(self, rows: Rows) -> None:
        with self._writing() as connection:
            _delete(connection, [row[0] for row in rows.rows])
            connection.executemany(INSERT, rows.rows)
            self._mirror.forget_deletions(connection)
            new = rows.fields - self._known_fields
            names = [(name,) for name in sorted(new)]
            connection.executemany("INSERT OR IGNORE INTO fields VALUES (?)", names)
        self._known_fields |= new

    def _texts(self, ids: list[str]) -> dict[str, str]:
        these = ", ".join("?" * len(ids))
        with self._reading() as connection:
            query = f"SELECT id, text FROM documents WHERE id IN ({these})"
            return dict(connection.execute(query, ids).fetchall())

    def _nearest(self, code: Codes, k: int, where: Where | None) -> list[Hit]:
        with self._reading() as connection:
            snapshot = Snapshot(connection, where)
            return snapshot.hits(snapshot.nearest(self._mirror.follow(connection), code, k))

    def _nearest_expected(
        self, code: Codes, k: int, where: Where | None, probabilities: Scores
    ) -> list[Hit]:
        with self._reading() as connection:
            snapshot = Snapshot(connection, where)
            index = self._mirror.follow(connection)
            pairs = snapshot.nearest(index, code, max(4 * k, CANDIDATES))
            codes = snapshot.codes([id for id, _ in pairs], len(code))
            expected = expected_distances(codes, probabilities).tolist()
            ranked = sorted((e, d, id) for e, (id, d) in zip(expected, pairs, strict=True))[:k]
            return snapshot.hits([(id, d) for _, d, id in ranked], [e for e, _, _ in ranked])

    def _within(
        self, code: Codes, radius: int, limit: int | None, where: Where | None
    ) -> tuple[list[Hit], int]:
        with self._reading() as connection:
            snapshot = Snapshot(connection, where)
            pairs = snapshot.within(self._mirror.follow(connection), code, radius)
            return snapshot.hits(pairs[:limit]), len(pairs)

    def _pages(self, columns: str, size: int, last: str = "") -> Iterator[list[Any]]:
        """Read rows above an id in the order of ids, a page in a transaction of its own."""
        query = f"SELECT {columns} FROM documents WHERE id > ? ORDER BY id LIMIT ?"
        while True:
            with self._reading() as connection:
                rows = connection.execute(query, (last, size)).fetchall()
            if not rows:
                return
            yield rows
            last = rows[-1][0]


def _labels(connection: Connection) -> set[str]:
    labels = connection.execute("SELECT DISTINCT labels FROM documents")
    return {label for (some,) in labels for label in read_labels(some) or ()}


def _delete(connection: Connection, ids: Sequence[str]) -> int:
    """Delete rows and note it for the indexes that hold them; return how many there were."""
    these = f"FROM documents WHERE id IN ({', '.join('?' * len(ids))})"
    note = f"INSERT INTO deletions(row, id) SELECT row, id {these}"
    n_removed = connection.execute(note, ids).rowcount
    if n_removed:
        connection.execute(f"DELETE {these}", ids)
    return n_removed

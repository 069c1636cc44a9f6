"""SQLite as an engine: a folder with the database and the index file.

What each method does is said in `Engine`.
"""
# ruff: noqa: D102

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import DamageError, EngineError, FolderError, VdshError, WriteError
from vdsh.files import locked
from vdsh.model import Model
from vdsh.model.health import sample
from vdsh.retrieval import Searcher
from vdsh.search import HammingIndex
from vdsh.store.engine import Engine, Progress, Snapshot, Stored, check_model, no_store
from vdsh.store.engines.sqlite import filters, words
from vdsh.store.engines.sqlite.cache import (
    IndexCache,
    OtherCodesError,
    current_state,
    share_cache,
)
from vdsh.store.engines.sqlite.database import Database, read_meta
from vdsh.store.engines.sqlite.maintenance import Maintenance, holds_store
from vdsh.store.engines.sqlite.models import Models
from vdsh.store.engines.sqlite.snapshot import FilteredDocuments, to_stored
from vdsh.store.rows import COLUMNS, Rows, read_labels, searched_text
from vdsh.store.where import Tree
from vdsh.words import DamagedWordsError, Segment

ALL_WORDS = "all words (BM25)"
DAMAGED_WORDS = "damaged: the next search makes them anew"
# Attempts to read one state: another process may change the model, or damage an index, in between.
TRIES = 5

T = TypeVar("T")
INSERT = f"INSERT INTO documents({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"


class Sqlite(Engine):
    """A folder; see `Engine`. One process writes at a time, any number read.

    `wait`: seconds to wait for another writer. `may_create`: whether `create` may follow where
    there is no store. `device`: where codes are searched.
    """

    def __init__(
        self, folder: Path, *, shown: str, wait: float, may_create: bool, device: str
    ) -> None:
        if not holds_store(folder) and not may_create:
            raise no_store(shown)
        self.shown = shown
        self._folder = folder
        self._may_create = may_create
        self._device = device
        self._cache: IndexCache | None = None
        self._words: words.Words | None = None  # stay when codes change
        self._known_fields: set[str] = set()
        self._codes = ""  # which codes the cache is of: `switch` gives the store others
        self._database = self.values = Database(folder, shown, wait=wait)
        self.read_only = self._database.read_only
        self.models = Models(self._database)
        self.filters = filters.FilterIndexes(self._database)
        self.hold = self._hold
        self.maintenance = Maintenance(self._database, self._need_cache)
        self.written = self._written

    def meta(self) -> dict[str, str]:
        meta = self._database.meta()
        if not meta and not self._may_create:
            raise FolderError(
                f"The store '{self.shown}' was never finished. Add documents: vdsh add "
                f"'{self.shown}' PATH."
            )
        return self._note(meta)

    def create(self, meta: Mapping[str, str], model: Model) -> dict[str, str]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"Could not make '{self.shown}': {error.strerror}.") from error
        return self._note(self._database.create(meta, model))

    def fields(self) -> set[str]:
        query = "SELECT name FROM fields WHERE typeof(name) = 'text'"
        return {name for (name,) in self._ask(query)}

    def labels(self) -> list[str]:
        rows = self._ask("SELECT DISTINCT labels FROM documents")
        return sorted({label for (labels,) in rows for label in read_labels(labels) or ()})

    def write(self, rows: Rows) -> None:
        new = rows.fields - self._known_fields
        texts = [searched_text(one.id, one.text, one.metadata) for one in rows.documents]
        spoken = self._language
        segment = Segment.of(texts, spoken) if spoken else None  # or it is settled first
        with self._changing() as connection:
            check_model(read_meta(connection), rows.fingerprint, rows.n_bytes)
            _delete(connection, [row[0] for row in rows.rows])
            connection.executemany(INSERT, rows.rows)
            if rows.rows:  # their rows follow each other, up to the newest
                first = current_state(connection).row - len(rows.rows) + 1
                self._language = words.language_of(connection, texts)
                if segment is None or self._language is not spoken:
                    segment = Segment.of(texts, self._language)
                words.add_words(connection, segment._replace(first=first))
                filters.add_entries(connection, first, first + len(rows.rows) - 1)
            names = [(name,) for name in sorted(new)]
            connection.executemany("INSERT OR IGNORE INTO fields VALUES (?)", names)
        self._known_fields |= new

    def remove(self, ids: Sequence[str]) -> int:
        with self._changing() as connection:
            return _delete(connection, ids)

    def look_up(self, ids: Sequence[str]) -> list[Stored]:
        with self._database.reading() as connection:
            return FilteredDocuments(connection).look_up(ids)

    def present(self, ids: Sequence[str]) -> set[str]:
        with self._database.reading() as connection:
            return FilteredDocuments(connection).present(ids)

    def count(self, where: Tree | None) -> int:
        with self._database.reading() as connection:
            return FilteredDocuments(connection, where).count()

    def read(
        self,
        work: Callable[[Snapshot], T],
        *,
        where: Tree | None = None,
        by_words: bool = False,
        progress: Progress | None = None,
    ) -> T:
        """Run some work on one state of the store; a damaged word index is made anew first."""
        damage: Exception | None = None
        for _ in range(TRIES):
            try:
                with self._snapshot(where, by_words=by_words) as snapshot:
                    return work(snapshot)
            except OtherCodesError:
                self.meta()  # the store got another model since: its codes are in another index
            except DamagedWordsError as error:
                damage = error
                self._mend_words(progress)
        if damage is not None:
            raise DamageError(
                f"The word index of '{self.shown}' is damaged ({damage})."
            ) from damage
        raise EngineError(f"'{self.shown}' gets one model after the other. Try again later.")

    @contextmanager
    def _snapshot(self, where: Tree | None, *, by_words: bool) -> Iterator[Snapshot]:
        cache = self._need_cache()
        with self._database.reading() as connection, cache.showing(connection) as index:
            word_index = cache.words.showing(connection) if by_words else None
            documents = FilteredDocuments(connection, where)
            facts = read_meta(connection)
            yield Snapshot(
                facts=facts,
                language=words.language_of(connection)
                if word_index is None
                else word_index.language,
                search=Searcher(word_index, index, documents),
                fetch=partial(_fetch_checked, documents, index),
            )

    def _mend_words(self, progress: Progress | None) -> None:
        """Make a damaged word index anew, unless another process was faster."""
        if self.read_only:
            raise DamageError(
                f"The word index of '{self.shown}' is damaged, and the store is read-only. Search "
                "it once with permission to write: that makes the index anew."
            )
        with self._database.writing() as connection:
            words.begin_anew(connection)
        self._database.work_off(words.index_pending, progress)

    def page(self, after: str, size: int, of: str | None = None) -> list[Stored]:
        query = f"SELECT {COLUMNS} FROM documents WHERE id > ? ORDER BY id LIMIT ?"
        return [to_stored(row) for row in self._ask(query, after, size, of=of)]

    def code_page(self, after: str, size: int, of: str | None = None) -> list[tuple[str, bytes]]:
        query = "SELECT id, code FROM documents WHERE id > ? ORDER BY id LIMIT ?"
        return self._ask(query, after, size, of=of)

    def _written(self, n: int) -> list[Stored]:
        query = f"SELECT {COLUMNS} FROM documents ORDER BY row DESC LIMIT ?"
        return [to_stored(row) for row in self._ask(query, n)]

    def some_codes(self, n: int) -> list[tuple[str, bytes]]:
        """Return the codes of random rows; of all, where too many rows are gone."""
        first, last = self._ask(
            "SELECT coalesce(min(row), 0), coalesce(max(row), 0) FROM documents"
        )[0]
        rows = sample(last - first + 1, 4 * n) + first
        some = f"row IN ({', '.join(map(str, rows))})"  # numbers of our own
        found = self._ask(f"SELECT id, code FROM documents WHERE {some} ORDER BY row")
        if len(found) < n:
            return super().some_codes(n)
        return [found[i] for i in sample(len(found), n)]

    def facts(self) -> dict[str, Any]:
        with self._database.reading() as connection:
            left = words.pending(connection)
        how = DAMAGED_WORDS if left is None or left.n_left else ALL_WORDS
        files = [file for file in self._folder.rglob("*") if file.is_file()]
        return {"words": how, "bytes": sum(file.stat().st_size for file in files)}

    def compact(self) -> None:
        """Write the database anew without the space of what was deleted; old models go too."""
        self.models.forget()
        with self._database.writing() as connection:
            filters.index_anew(connection)
        self._database.vacuum()

    def interrupt(self) -> None:
        self._database.interrupt()

    def close(self) -> None:
        """Save the index where it has changed much, and close the database."""
        cache, self._cache = self._cache, None  # which others may go on using
        try:
            if cache is not None and not self.read_only:
                with suppress(VdshError, OSError), self._database.reading() as connection:
                    cache.save(connection)  # may fail: it is only a cache
        finally:
            self._database.close()

    def _ask(self, query: str, *parameters: Any, of: str | None = None) -> list[Any]:
        with self._database.reading() as connection:
            if of is not None:
                check_model(read_meta(connection), of)
            return connection.execute(query, parameters).fetchall()

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        cache = self._need_cache()
        with self._database.writing() as connection:
            if words.pending(connection) is None:
                words.create_words(connection)
            yield connection
            cache.forget_tombstones(connection)

    def _hold(self, name: str) -> AbstractContextManager[bool]:
        """Hold a lock, which is a file in the folder; of a store that is gone nothing is held."""
        in_place = self._database.is_in_place()
        return locked(self._folder / f".{name}.lock") if in_place else nullcontext(True)

    def _note(self, meta: dict[str, str]) -> dict[str, str]:
        """Remember which codes the store has."""
        if meta and meta.get("uuid") != self._codes:
            self._words = self._cache.words if self._cache else self._words
            self._cache = None
            self._codes = str(meta.get("uuid"))
        return meta

    def _need_cache(self) -> IndexCache:
        """Return the index cache of the codes that the store had when it was last looked at."""
        if self._cache is None:
            facts = self._note(self._database.meta())
            known = int(facts["n_bits"]), self._codes, self._words, self._device
            self._cache = share_cache(self._database, *known)
        return self._cache


def _fetch_checked(
    documents: FilteredDocuments, index: HammingIndex, rows: NDArray[np.int64]
) -> list[Stored]:
    """Fetch documents; raise where the index has other codes of them than the database."""
    found = documents.fetch(rows)
    if len(index) and b"".join([code for _, code in found]) != index.take(rows)[0].tobytes():
        raise FolderError(
            "The index file of this store is of other documents. "
            "Delete the files index-*.vdsh in its folder; they are made again."
        )
    return found


def _delete(connection: Connection, ids: Sequence[str]) -> int:
    """Delete rows and note it for the indexes that hold them; return how many there were."""
    these = f"FROM documents WHERE id IN ({', '.join('?' * len(ids))})"
    note = f"INSERT INTO tombstones(row, id) SELECT row, id {these}"
    n_removed = connection.execute(note, ids).rowcount
    if n_removed:
        rows = [row for (row,) in connection.execute(f"SELECT row {these}", ids)]
        words.remove_words(connection, rows)
        filters.remove_entries(connection, rows)
        connection.execute(f"DELETE {these}", ids)
    return n_removed

"""SQLite as an engine: a folder with the database, the model and the index file."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from time import monotonic, sleep
from typing import Any

from vdsh.codes import Codes
from vdsh.errors import FolderError, VdshError, WriteError
from vdsh.model import Model
from vdsh.model.health import sample
from vdsh.store.engine import REORDERS, WORDS_LATER, Engine, no_store
from vdsh.store.engines.sqlite import care, filters, reencoding
from vdsh.store.engines.sqlite.care import holds_store, keep_inside
from vdsh.store.engines.sqlite.database import FILE, Database
from vdsh.store.engines.sqlite.mirror import Mirror, check_codes, current_state, share_mirror
from vdsh.store.engines.sqlite.relevant import find_candidates, fitting
from vdsh.store.engines.sqlite.snapshot import Snapshot, to_found, to_pairs
from vdsh.store.engines.sqlite.words import (
    Pending,
    Words,
    add_words,
    create_words,
    index_pending,
    pending,
    remove_words,
)
from vdsh.store.found import Choose, Found
from vdsh.store.model import FOLDER, load_model
from vdsh.store.ranking import ByRelevance
from vdsh.store.reindexing import NAME as MODEL_NAME
from vdsh.store.rows import COLUMNS, Rows, read_labels
from vdsh.store.where import Tree
from vdsh.words import DamagedWordsError, Segment, WordQuery

ALL_WORDS = "all words (BM25)"
TURN, PAUSE = 1.0, 0.12  # seconds after which others may write: they look ten times a second
INSERT = f"INSERT INTO documents({COLUMNS}) VALUES (?, ?, ?, ?, ?)"


class Sqlite(Engine):
    """A folder; see `Engine`. One process writes at a time, any number read.

    `wait`: seconds to wait for another writer. `may_create`: whether `create` may follow where
    there is no store.
    """

    def __init__(self, folder: Path, *, wait: float, may_create: bool) -> None:
        if not holds_store(folder) and not may_create:
            raise no_store(str(folder))
        self.shown = str(folder)
        self._folder = folder
        self._may_create = may_create
        self._mirror: Mirror | None = None
        self._words: Words | None = None  # stay when codes change
        self._known_fields: set[str] = set()
        self._codes = ""  # which codes the store has: `reencode` gives it others
        self._model_name = FOLDER
        self._progress: Callable[[int, int], None] | None = None
        self._database = Database(folder, wait=wait)
        self.read_only = self._database.read_only

    @property
    def model_place(self) -> str:
        """The folder of the model."""
        return str(self._folder.absolute() / self._model_name)

    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""
        meta = self._database.meta()
        if not meta and not self._may_create:
            raise FolderError(f"The store '{self.shown}' was never finished. Give it a model.")
        return self._note(meta)

    def create(self, meta: Mapping[str, str], model: Model | None) -> dict[str, str]:
        """Make the tables; the model comes first, so that a store is never without it."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"Could not make '{self.shown}': {error.strerror}.") from error
        if model is not None:
            keep_inside(Path(self.model_place), model)
        return self._note(self._database.create(meta))

    def load_model(self) -> Model:
        """Load the model that is kept inside."""
        return load_model(self.model_place)

    def fields(self) -> set[str]:
        """Return the names of all metadata fields."""
        query = "SELECT name FROM fields WHERE typeof(name) = 'text'"
        return {name for (name,) in self._ask(query)}

    def labels(self) -> list[str]:
        """Return all labels, in order."""
        rows = self._ask("SELECT DISTINCT labels FROM documents")
        return sorted({label for (labels,) in rows for label in read_labels(labels) or ()})

    def write(self, rows: Rows) -> None:
        """Write rows and the names of their fields in one transaction."""
        new = rows.fields - self._known_fields
        words = Segment.of([row[1] for row in rows.rows])
        with self._changing() as connection:
            _delete(connection, [row[0] for row in rows.rows])
            connection.executemany(INSERT, rows.rows)
            if rows.rows:  # their rows follow each other, up to the newest
                first = current_state(connection).row - len(rows.rows) + 1
                add_words(connection, words._replace(first=first))
                filters.add_entries(connection, first, first + len(rows.rows) - 1)
            names = [(name,) for name in sorted(new)]
            connection.executemany("INSERT OR IGNORE INTO fields VALUES (?)", names)
        self._known_fields |= new

    def remove(self, ids: Sequence[str]) -> int:
        """Delete documents; return how many were there."""
        with self._changing() as connection:
            return _delete(connection, ids)

    def look_up(self, ids: Sequence[str]) -> list[Found]:
        """Return the documents of some ids."""
        with self._database.reading() as connection:
            return Snapshot(connection).look_up(ids)

    def count(self, where: Tree | None) -> int:
        """Count documents."""
        with self._database.reading() as connection:
            return Snapshot(connection, where).count()

    def nearest(
        self, code: Codes, n: int, where: Tree | None, choose: Choose | None = None
    ) -> list[Found]:
        """Return the n nearest documents, ties by id, or those that are chosen of them."""
        mirror = self._need_mirror()
        with self._database.reading() as connection:
            snapshot = Snapshot(connection, where)
            with mirror.showing(connection) as index:
                pairs = snapshot.nearest(index, code, n)
            if pairs is None:
                pairs = snapshot.nearest_of_all_passing(code, n)
            return snapshot.fetch(pairs if choose is None else snapshot.choose(pairs, choose))

    def prepare_filter(
        self, where: Tree, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Index the fields of a filter, where documents are many."""
        filters.index_by_use(self._database, where, progress)

    def index_fields(
        self, fields: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Index fields for filters."""
        filters.index_fields(self._database, fields, progress)

    def prepare_words(self, progress: Callable[[int, int], None] | None = None) -> bool:
        """Index the words of documents that an older version wrote, or of a damaged index."""
        self._progress = progress
        left = self._pending()
        if left is not None and not left.n_left:
            return True
        if self.read_only:
            return False
        n_left, begin = 0, monotonic()
        with suppress(WriteError):  # another process writes all the time, or the disk is full
            while left is None or left.n_left:
                with self._database.writing() as connection:
                    left = index_pending(connection)
                n_left = max(n_left, left.n_left)
                if progress is not None:
                    progress(n_left - left.n_left, n_left)
                if left.n_left and monotonic() > begin + TURN:
                    sleep(PAUSE)
                    begin = monotonic()
            return True
        return False

    def relevant(self, ranking: ByRelevance, where: Tree | None) -> list[Found]:
        """Return the documents that words and codes together find, best first.

        A damaged index is made anew; where that cannot be, the nearest by code are put in order.
        """
        with suppress(DamagedWordsError):
            return self._relevant(ranking, where)
        if self._mend_words():
            with suppress(DamagedWordsError):
                return self._relevant(ranking, where)
        return super().relevant(ranking, where)

    def _mend_words(self) -> bool:
        """Make a damaged word index anew, unless another process was faster."""
        if self.read_only:
            return False
        with suppress(WriteError), self._database.writing() as connection:
            left = pending(connection)
            if left is not None and not left.n_left:
                try:
                    Words().showing(connection)
                except DamagedWordsError:
                    create_words(connection)
        return self.prepare_words(self._progress)

    def _relevant(self, ranking: ByRelevance, where: Tree | None) -> list[Found]:
        mirror = self._need_mirror()
        with self._database.reading() as connection:
            snapshot = Snapshot(connection, where)
            with mirror.showing(connection) as index:
                words = mirror.words.showing(connection)
                candidates = find_candidates(snapshot, index, words, ranking)
            return snapshot.fetch([(one.id, one.distance) for one in ranking(candidates)])

    def within(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None = None
    ) -> tuple[list[Found], int]:
        """Find the documents within a radius, nearest first, ties by id."""
        mirror = self._need_mirror()
        with self._database.reading() as connection:
            snapshot = Snapshot(connection, where)
            with mirror.showing(connection) as index:
                pairs = snapshot.within(index, code, radius)
            return snapshot.fetch(pairs[:limit]), len(pairs)

    def page(self, after: str, size: int) -> list[Found]:
        """Return the documents with the lowest ids above `after`."""
        query = f"SELECT {COLUMNS} FROM documents WHERE id > ? ORDER BY id LIMIT ?"
        return [to_found(row) for row in self._ask_for_codes(query, after, size)]

    def code_page(self, after: str, size: int) -> list[tuple[str, bytes]]:
        """Return the lowest ids above `after` with their codes."""
        query = "SELECT id, code FROM documents WHERE id > ? ORDER BY id LIMIT ?"
        return self._ask_for_codes(query, after, size)

    def within_fitting(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None, query: WordQuery
    ) -> tuple[list[Found], int]:
        """Read the texts of those documents that have the words, where that is less."""
        left = self._pending()
        if left is not None and not left.n_left:
            with suppress(DamagedWordsError):
                return self._within_fitting(code, radius, where, limit, query)
        return super().within_fitting(code, radius, where, limit, query)

    def _within_fitting(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None, query: WordQuery
    ) -> tuple[list[Found], int]:
        mirror = self._need_mirror()
        with self._database.reading() as connection:
            snapshot = Snapshot(connection, where)
            with mirror.showing(connection) as index:
                near = to_pairs(index.within(code, radius)) if len(index) else []
                words = mirror.words.showing(connection)
            pairs = fitting(snapshot, words, snapshot.passing(near), query)
            return snapshot.fetch(pairs[:limit]), len(pairs)

    def written(self, n: int) -> list[Found]:
        """Return the n documents that were written last."""
        query = f"SELECT {COLUMNS} FROM documents ORDER BY row DESC LIMIT ?"
        return [to_found(row) for row in self._ask_for_codes(query, n)]

    def some_codes(self, n: int) -> list[tuple[str, bytes]]:
        """Return the codes of random rows; of all, where too many rows are gone."""
        first, last = self._ask(
            "SELECT coalesce(min(row), 0), coalesce(max(row), 0) FROM documents"
        )[0]
        rows = sample(last - first + 1, 4 * n) + first
        some = f"row IN ({', '.join(map(str, rows))})"  # numbers of our own
        found = self._ask_for_codes(f"SELECT id, code FROM documents WHERE {some} ORDER BY row")
        if len(found) < n:
            return super().some_codes(n)
        return [found[i] for i in sample(len(found), n)]

    def facts(self) -> dict[str, Any]:
        """Say how words are looked for, and how many bytes there are."""
        left = self._pending()
        words = ALL_WORDS
        if left is None or left.n_left:
            words = REORDERS if self.read_only else WORDS_LATER
        files = [file for file in self._folder.rglob("*") if file.is_file()]
        return {"words": words, "bytes": sum(file.stat().st_size for file in files)}

    def reencode(
        self,
        model: Model,
        *,
        restart: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Encode all documents with another model, and switch to it in one transaction."""
        reencoding.reencode(self._database, model, restart=restart, progress=progress)

    def previous_model(self) -> Model:
        """Load the model that the store had before."""
        return reencoding.previous_model(self._database)

    def problems(self) -> Iterator[str]:
        """Say what is wrong with the database, the index beside it, or the words."""
        return care.problems(self._database, self._need_mirror())

    def copy_to(self, folder: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Copy database, models and map into an empty folder."""
        care.copy_to(self._database, folder / FILE, progress)
        for source in self._folder.iterdir():
            if source.is_dir() and MODEL_NAME.fullmatch(source.name):
                shutil.copytree(source, folder / source.name)
            elif source.name in care.KEPT:
                shutil.copy(source, folder / source.name)

    def compact(self) -> None:
        """Write the database anew without the space of what was deleted; old models go too."""
        reencoding.forget_models(self._database)
        with self._database.writing() as connection:
            filters.index_anew(connection)
        self._database.vacuum()

    def is_in_place(self) -> bool:
        """Say whether the store is still where it was opened, not removed or replaced."""
        return self._database.is_in_place()

    def interrupt(self) -> None:
        """Make a statement that another thread runs give up."""
        self._database.interrupt()

    def close(self) -> None:
        """Save the index where it has changed much, and close the database."""
        mirror, self._mirror = self._mirror, None  # which others may go on using
        try:
            if mirror is not None and not self.read_only:
                with suppress(VdshError, OSError), self._database.reading() as connection:
                    mirror.save(connection)  # may fail: it is only a cache
        finally:
            self._database.close()

    def _pending(self) -> Pending | None:
        with self._database.reading() as connection:
            return pending(connection)

    def _ask(self, query: str, *parameters: Any) -> list[Any]:
        with self._database.reading() as connection:
            return connection.execute(query, parameters).fetchall()

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        mirror = self._need_mirror()
        with self._database.writing() as connection:
            check_codes(connection, self._codes)
            if pending(connection) is None:
                create_words(connection)
            yield connection
            mirror.forget_deletions(connection)

    def _ask_for_codes(self, query: str, *parameters: Any) -> list[Any]:
        with self._database.reading() as connection:
            check_codes(connection, self._codes)
            return connection.execute(query, parameters).fetchall()

    def _note(self, meta: dict[str, str]) -> dict[str, str]:
        """Remember which codes the store has, and of which model."""
        if meta and meta.get("uuid") != self._codes:
            self._words = self._mirror.words if self._mirror else self._words
            self._mirror = None
            self._codes = str(meta.get("uuid"))
            inside = meta.get("keep_model") == "inside"
            self._model_name = str(meta.get("model")) if inside else FOLDER
        return meta

    def _need_mirror(self) -> Mirror:
        if self._mirror is None:
            with self._database.reading() as connection:
                check_codes(connection, self._codes)
            n_bits = int(self._database.meta()["n_bits"])
            self._mirror = share_mirror(self._database, n_bits, self._codes, self._words)
        return self._mirror


def _delete(connection: Connection, ids: Sequence[str]) -> int:
    """Delete rows and note it for the indexes that hold them; return how many there were."""
    these = f"FROM documents WHERE id IN ({', '.join('?' * len(ids))})"
    note = f"INSERT INTO deletions(row, id) SELECT row, id {these}"
    n_removed = connection.execute(note, ids).rowcount
    if n_removed:
        rows = [row for (row,) in connection.execute(f"SELECT row {these}", ids)]
        remove_words(connection, rows)
        filters.remove_entries(connection, rows)
        connection.execute(f"DELETE {these}", ids)
    return n_removed

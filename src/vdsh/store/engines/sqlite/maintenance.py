"""Maintenance of a store in a folder: whether it is one, is sound, and a copy of it."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import numpy as np

from vdsh.errors import FolderError
from vdsh.persistence import MANIFEST
from vdsh.search import HammingIndex
from vdsh.store.engine import PARTS, Progress
from vdsh.store.engines.sqlite.cache import IndexCache
from vdsh.store.engines.sqlite.database import FILE, Database
from vdsh.store.engines.sqlite.filters import missing_entries
from vdsh.store.engines.sqlite.verifying import wrong_rows
from vdsh.store.engines.sqlite.words import Words, pending
from vdsh.words import DamagedWordsError

PAGES = 2000  # of the database that are copied between two reports
MOST = 20  # complaints of SQLite
SAMPLE = 200  # documents whose codes are looked for in the index


class Maintenance:
    """See `vdsh.store.engine.Maintenance`; `cache` gives the index of the codes."""

    def __init__(self, database: Database, cache: Callable[[], IndexCache]) -> None:
        self._database = database
        self._cache = cache
        self.is_in_place = database.is_in_place

    def problems(self) -> Iterator[str]:
        """Say what is wrong: with the file, with what it holds, with the index beside it."""
        cache = self._cache()
        with self._database.reading() as connection:
            yield from self._problems_inside(connection)
            with cache.showing(connection) as index:
                if cache.n_bytes:
                    yield from _index_problems(connection, index)

    def _problems_inside(self, connection: Connection) -> Iterator[str]:
        """Say what is wrong with the database, which is all that a backup has of it."""
        for (complaint,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
            if complaint != "ok":
                yield f"SQLite says: {' '.join(complaint.split())}. Restore a backup."
        yield from wrong_rows(connection)
        if missing_entries(connection):
            yield "The index for filters lacks documents. vdsh compact makes it anew."
        left = pending(connection)
        if left is None or left.n_left:
            yield "Not all words are indexed yet. The next search does it."
            return
        try:
            Words().verify(connection)
        except DamagedWordsError as error:
            yield f"{error} The next search makes it anew."

    def copy_to(self, folder: Path, progress: Progress | None = None) -> None:
        """Copy one state of the database and what lies beside it; raise where it is damaged."""

        def report(_: int, left: int, total: int) -> None:
            if progress is not None:
                progress(total - left, total)

        # The transaction stays open, so what others write does not make SQLite begin again.
        with (
            self._database.reading() as connection,
            closing(sqlite3.connect(folder / FILE)) as copy,
        ):
            for problem in self._problems_inside(connection):
                raise FolderError(
                    f"'{self._database.shown}' cannot be backed up as it is. {problem}"
                )
            connection.backup(copy, pages=PAGES, progress=report, sleep=0)
        for name in PARTS[1:]:
            if (beside := self._database.file.with_name(name)).is_file():
                shutil.copyfile(beside, folder / name)


def _index_problems(connection: Connection, index: HammingIndex) -> Iterator[str]:
    ids = [id for (id,) in connection.execute("SELECT id FROM documents ORDER BY id")]
    some = ids[:: max(1, len(ids) // SAMPLE)]
    marks = ", ".join("?" * len(some))
    rows = connection.execute(f"SELECT id, code FROM documents WHERE id IN ({marks})", some)
    same = sorted(index.ids.tolist()) == ids
    near: Any = index.within  # an array of ids would take "a\0" for "a"
    found = (id in near(np.frombuffer(code, np.uint8), 0).ids.tolist() for id, code in rows)
    if not same or not all(found):
        yield "The index is of other documents. Delete index-*.vdsh in the store's folder."


def holds_store(folder: Path) -> bool:
    """Say whether there is a store; refuse places that belong to something else."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise FolderError(f"'{folder}' is a file, but a store is a folder. Give another path.")
    if (folder / FILE).is_file():
        return True
    others = [file.name for file in folder.iterdir() if not file.name.startswith(".")]
    if MANIFEST in others:
        raise FolderError(
            f"'{folder}' is a model, not a store. Its README.md says what it learned; "
            f"vdsh index {folder} DOCS --store STORE makes a store with it."
        )
    if others:
        raise FolderError(
            f"'{folder}' is not a store: it has no {FILE}, but {sorted(others)[0]}. "
            "Give the path of a store, or of a new folder."
        )
    return False

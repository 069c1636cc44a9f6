"""Files into a store, and later what has changed in them: `vdsh add`.

The store remembers each document that came from a root (a folder or a file that was named) with a
mark: size and time of its file, and a hash. Documents are written before their marks and deleted
before those are, so a run that was killed is made good by the next one.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from vdsh.documents import Document, read_documents
from vdsh.documents.document import in_batches, length
from vdsh.documents.folder import FoundFile, Skipped, find_files, read_found
from vdsh.documents.reader import holds_records
from vdsh.documents.source import MAX_DOCUMENT_SIZE
from vdsh.documents.unreadable import UnreadableError
from vdsh.errors import InputError, MissingFileError, WriteError
from vdsh.files import lock
from vdsh.store import Store
from vdsh.store.engine import PARTS

LONG_BATCH = 8 * 2**20  # characters that end a batch sooner
ROOTS, TEXTS, LOCK = "root/", "text/", ".add.lock"


class Added(NamedTuple):
    """What happened to the documents of some files."""

    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: dict[str, list[str]]  # what could not be read, by reason; what was read earlier stays
    guessed: dict[str, tuple[str, ...]]  # fields of the text, by file, where nobody named them


class _Item(NamedTuple):
    """A document of a root, or None where it is as it was; and its mark."""

    id: str
    mark: str
    document: Document | None


def check_paths(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Raise for a path where nothing is."""
    given = [os.fspath(path) for path in paths]
    for path in given:
        if path != "-" and not os.path.exists(path):
            raise MissingFileError(
                f"No file or folder '{path}'. Check the path, or give - for stdin."
            )
    return given


def add_files(
    store: Store,
    paths: Iterable[str | os.PathLike[str]],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    keep: bool = False,
    reading: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Added:
    """Add the documents of files and folders, replace what changed, remove what has vanished.

    Each file is a document; of JSONL, CSV, TSV and Parquet that are named here each record is. "-"
    reads JSON lines from standard input. `include` and `exclude` are for `find_files`, `reading`
    for `read_documents`; without a `text_field` it is guessed, once for each file. `keep` keeps
    what has vanished. `progress` is called with the number of documents that were looked at.
    """
    given = check_paths(paths)
    with _alone(store):
        patterns = {"include": include, "exclude": exclude}
        run = _Run(store, dict(reading or {}), patterns, keep, progress or (lambda _: None))
        for path in given:
            run.add(path)
    return Added(run.added, run.changed, run.removed, run.unchanged, run.skipped, run.guessed)


@dataclass
class _Run:
    """One run over some roots; it counts."""

    store: Store
    reading: dict[str, Any]
    patterns: dict[str, Sequence[str]]
    keep: bool
    progress: Callable[[int], None]
    added = changed = removed = unchanged = 0
    skipped: dict[str, list[str]] = field(default_factory=dict)
    guessed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, path: str) -> None:
        """Add what a root holds."""
        if path == "-":
            self._write("", self._records("-", {}), {})
            return
        name = self._check_name(path)
        known = self.store.remembered(f"in/{name}/")
        by_record = os.path.isfile(path) and (holds_records(path) or self.reading.get("format"))
        items = self._records(path, known) if by_record else self._files(path, known)
        seen = self._write(name, items, known)
        left = [] if self.keep else self._vanished(known, seen)
        if left and not seen:
            raise InputError(
                f"'{path}' is empty, so the {len(left):,} documents that it had are kept. Is its "
                "disk there? If they are to go: vdsh delete."
            )
        self.removed += self.store.delete(left)
        self.store.forget(f"in/{name}/", left)

    def _check_name(self, path: str) -> str:
        """Return what the ids of a root begin with; raise where another root has them."""
        place = os.path.abspath(path)
        name = os.path.basename(place) or "root"
        inside = next((one for one in Path(place, "-").parents if (one / PARTS[0]).is_file()), None)
        if inside is not None:
            raise InputError(f"'{path}' is inside the store '{inside}'. Add files from elsewhere.")
        before = self.store.remembered(ROOTS).get(name, place)
        if before != place and os.path.exists(before):
            raise InputError(
                f"'{place}' has the name of '{before}', which was added before, and would replace "
                "its documents. Rename one of them, or add the folder above."
            )
        self.store.remember(ROOTS, {name: place})
        return name

    def _files(self, root: str, known: Mapping[str, str]) -> Iterator[_Item]:
        """Yield a document for each file, and read what may have changed."""
        follow = self.reading.get("follow", False)
        for found in find_files([root], **self.patterns, follow=follow):
            try:
                if isinstance(found, Skipped):
                    raise UnreadableError(found.reason)
                yield self._file(found, known.get(found.id, ""))
            except UnreadableError as error:
                self.skipped.setdefault(str(error), []).append(found.id)

    def _file(self, found: FoundFile, mark: str) -> _Item:
        state = f"{found.size} {found.modified} "  # from before it is read: it may change now
        if mark.startswith(state):
            return _Item(found.id, mark, None)
        encoding = self.reading.get("encoding", "utf-8")
        limit = self.reading.get("max_document_size", MAX_DOCUMENT_SIZE)
        text, fields = read_found(found, encoding, limit)
        content = _hash(f"{fields.get('title', '')}\0{text}")
        same = mark.rpartition(" ")[2] == content
        document = None if same else Document(found.id, text, None, fields)
        return _Item(found.id, state + content, document)

    def _records(self, path: str, known: Mapping[str, str]) -> Iterator[_Item]:
        """Read records; the store remembers which fields were taken for the text."""
        name = os.path.basename(os.path.abspath(path))
        texts = self.store.remembered(TEXTS).get(name)
        how: dict[str, Any] = {"text_field": json.loads(texts) if texts else None} | self.reading
        reader = read_documents(path, **how)
        for one in reader:
            mark = _hash(repr((one.text, one.labels, sorted(one.metadata.items()))))
            yield _Item(one.id, mark, None if known.get(one.id) == mark else one)
        if how["text_field"] is None and reader.text_fields != ("text",):
            self.guessed[path] = reader.text_fields
            if path != "-":
                self.store.remember(TEXTS, {name: json.dumps(reader.text_fields)})

    def _write(self, name: str, items: Iterator[_Item], known: dict[str, str]) -> set[str]:
        """Write what is new, batch by batch, each before its marks; return all ids.

        Of several records with one id the last stays, as `known` says then.
        """
        seen: set[str] = set()
        for some in in_batches(items, size=lambda item: length(item.document), room=LONG_BATCH):
            batch = {item.id: item for item in some}
            new = {id: item.document for id, item in batch.items() if item.document is not None}
            marks = {id: item.mark for id, item in batch.items() if known.get(id) != item.mark}
            if new:
                self.store.upsert(new.values())
            if name and marks:
                self.store.remember(f"in/{name}/", marks)
            n_changed = sum(id in known for id in new)
            self.changed += n_changed
            self.added += len(new) - n_changed
            self.unchanged += len(batch) - len(new)
            known.update(marks)
            seen.update(batch)
            self.progress(self.added + self.changed + self.unchanged)
        return seen

    def _vanished(self, known: Mapping[str, str], seen: set[str]) -> list[str]:
        """List what is gone; what only could not be read now stays."""
        skipped = {id for ids in self.skipped.values() for id in ids}
        folders = tuple(id for id in skipped if id.endswith("/"))
        gone = (id for id in known if id not in seen and id not in skipped)
        return [id for id in gone if not folders or not id.startswith(folders)]


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Hold a lock, so that two runs do not count each other's files, or write what one read late.

    It is a file beside a store in a folder. PostgreSQL has locks of its own, Milvus none.
    """
    folder = Path(store.path)
    with ExitStack() as stack:
        if not folder.is_dir():
            is_mine = stack.enter_context(store.hold("add"))
        else:
            try:
                is_mine = lock(stack.enter_context((folder / LOCK).open("a")))
            except OSError as error:
                raise WriteError(f"Could not write to '{folder}': {error.strerror}.") from error
        if not is_mine:
            raise InputError(
                f"Another `vdsh add` is adding files to '{store.path}'. "
                "Try again when it has finished."
            )
        yield

"""Files into a store, and later what has changed in them: `vdsh add`.

The store remembers each document that came from a root (a folder or a file that was given) with a
mark: what its file was like, and a hash. Documents are written before their marks and deleted
before those are, so a run that was killed is made good by the next one.
"""

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from vdsh import __version__
from vdsh.adding.roots import (
    DEFAULTS,
    FOLDER,
    RECORDS,
    STDIN,
    UNKNOWN_MARK,
    Root,
    Roots,
    check_options,
)
from vdsh.documents import Document, read_documents
from vdsh.documents.document import in_batches, is_id, length
from vdsh.documents.folder import FoundFile, Skipped, find_files, read_found
from vdsh.documents.source import check_encoding
from vdsh.documents.unreadable import UnreadableError
from vdsh.errors import InputError, MissingFileError
from vdsh.store import Store

LONG_BATCH = 8 * 2**20  # characters that end a batch sooner
# A file may change twice within one tick of the file system's clock, which is up to two seconds
# long (FAT): what was changed so shortly before it was read is read again by the next run.
TICK = 2 * 10**9  # nanoseconds
LARGE = 2**20  # bytes of a file, or of several, before which what is read is named
MANY_RECORDS = 256  # that are read between two calls of `working_on`

Listener = Callable[[str, int], None]


class Added(NamedTuple):
    """What happened to the documents of some files."""

    added: int
    changed: int  # their documents replaced older ones
    removed: int
    unchanged: int
    skipped: dict[str, list[str]]  # what was not read, by reason
    guessed: dict[str, tuple[str, ...]]  # fields of the text, by file, where nobody named them
    kept: list[str]  # of the skipped, those whose documents of an earlier run stay as they were
    dropped: list[str]  # of the skipped, those whose documents were removed


class _Item(NamedTuple):
    """A document of a root, or None where it is as it was; and its mark."""

    id: str
    mark: str
    document: Document | None


def check_paths(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Raise for a path where nothing is."""
    given = [os.fspath(path) for path in paths]
    for path in given:
        if path != STDIN and not os.path.exists(path):
            raise MissingFileError(
                f"No file or folder '{path}'. Check the path, or give - for stdin."
            )
    return given


def add_files(
    store: Store,
    paths: Iterable[str | os.PathLike[str]],
    *,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    keep: bool | None = None,
    id_prefix: str | None = None,
    reading: Mapping[str, Any] | None = None,
    again: bool = False,
    replace: bool = False,
    progress: Callable[[int], None] | None = None,
    working_on: Listener | None = None,
    notice: Callable[[str], None] | None = None,
) -> Added:
    """Add the documents of files and folders, replace what changed, remove what has vanished.

    Each file is a document; of JSONL, CSV, TSV and Parquet that are named here each record is. "-"
    reads JSON lines from standard input. Options that are given are remembered for each of the
    paths, and those that are not are as they were for that path the last time; an empty one (`""`
    or `()`) is the default again.

    Parameters
    ----------
    store : Store
    paths : iterable of path
    include, exclude : sequence of str, optional
        For `find_files`.
    keep : bool, optional
        Keep documents whose file or record has vanished.
    id_prefix : str, optional
        Put before the ids of the documents.
    reading : dict, optional
        Options of `read_documents`. Without a `text_field` it is guessed, once for each file.
    again : bool, default=False
        Read all files, also those that have not changed since.
    replace : bool, default=False
        Replace documents that another path has brought, instead of raising; a folder takes the
        place of one of the same name that is not there now.
    progress : callable, optional
        Called with the number of documents that were looked at.
    working_on : callable, optional
        Called with the name of what is being read, and how many bytes were read before.
    notice : callable, optional
        Called with sentences that a user should read, such as which options were remembered.

    Returns
    -------
    Added
        Raises `InputError` before anything of a batch is written that would replace documents
        which another path has brought.
    """
    given = dict(reading or {})
    others = {"include": include, "exclude": exclude, "keep": keep, "id_prefix": id_prefix}
    given.update({name: value for name, value in others.items() if value is not None})
    given = check_options(given)
    check_encoding(given.get("encoding", DEFAULTS["encoding"]))
    _check_id_prefix(given.get("id_prefix", ""))
    checked = check_paths(paths)
    # Two runs would count each other's files, or one would write what it has read long before.
    with store.alone("add", "Another `vdsh add` is adding files to"):
        run = _Run(
            store=store,
            given=given,
            again=again,
            replace=replace,
            progress=progress or (lambda _: None),
            working_on=working_on or (lambda *_: None),
            notice=notice or (lambda _: None),
        )
        for path in checked:
            run.add(path)
        if run.idle_patterns and not run.count():
            raise InputError(run.idle_patterns[0])
        for sentence in run.idle_patterns:
            run.notice(sentence)
    return Added(
        run.added,
        run.changed,
        run.removed,
        run.unchanged,
        run.skipped,
        run.guessed,
        run.kept,
        run.dropped,
    )


@dataclass
class _Run:
    """One run over some roots; it counts."""

    store: Store
    given: dict[str, Any]
    again: bool
    replace: bool
    progress: Callable[[int], None]
    working_on: Listener
    notice: Callable[[str], None]
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    n_bytes: int = 0
    skipped: dict[str, list[str]] = field(default_factory=dict)
    guessed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    idle_patterns: list[str] = field(default_factory=list)  # what is said of them

    def __post_init__(self) -> None:
        self.roots = Roots(self.store)

    def add(self, path: str) -> None:
        """Add what a path holds."""
        if path == STDIN:
            root = Root(key="", place=STDIN, name="", kind=RECORDS, options=self.given)
            _OneRoot(self, path, root, known={}).write()
            return
        root, before = self.roots.find(path, self.given, replace=self.replace)
        self._say_what_is_remembered(path, root, before)
        one = _OneRoot(self, path, root, self._known(root))
        one.write()
        idle = one.idle_patterns()
        if idle:
            self.idle_patterns.append(idle)
            return
        one.check_that_it_is_there()
        self._remove(one)
        if before is not None or one.seen:
            self.roots.write(root)

    def count(self) -> int:
        """Count the documents that were looked at."""
        return self.added + self.changed + self.unchanged

    def skip(self, id: str, reason: str) -> None:
        """Note what was not read."""
        self.skipped.setdefault(reason, []).append(id)

    def _say_what_is_remembered(self, path: str, root: Root, before: Root | None) -> None:
        if before is None:
            return
        name = path.rstrip("/") + ("/" if root.kind == FOLDER else "")
        if before.place != root.place:
            self.notice(f"{name} takes the place of '{before.place}', which was added before.")
        old = {name: value for name, value in root.options.items() if name not in self.given}
        if old:
            self.notice(f"Using {_as_flags(old)}, as last time for {name}")

    def _known(self, root: Root) -> dict[str, str]:
        """Return the marks of a root's documents; forget those of documents that were deleted."""
        marks = self.store.remembered(root.marks)
        present = self.store.present(marks)
        deleted = [id for id in marks if id not in present]
        self.store.forget(root.marks, deleted)
        return {id: mark for id, mark in marks.items() if id in present}

    def _remove(self, one: "_OneRoot") -> None:
        """Remove the documents of files and records that have vanished."""
        gone = [] if one.root.option("keep") else one.vanished()
        removed = set(gone)
        for id in one.unread:
            if id in removed:
                self.dropped.append(id)
            elif id in one.known or (id.endswith("/") and one.keeps_some_below(id)):
                self.kept.append(id)
        shared = self.roots.owners(gone, besides=one.root)
        self.removed += self.store.delete([id for id in gone if id not in shared])
        self.roots.have_read_again(shared)
        self.store.forget(one.root.marks, gone)


class _OneRoot:
    """One root in a run.

    `known`: the marks of its documents that are in the store. `seen`: the ids that it has now.
    `unread`: ids of what was skipped, and whether that may be for a passing reason.
    """

    def __init__(self, run: _Run, path: str, root: Root, known: dict[str, str]) -> None:
        self.run = run
        self.store = run.store
        self.path = path
        self.root = root
        self.known = known
        self.before = set(known)
        self.seen: set[str] = set()
        self.unread: dict[str, bool] = {}
        self.n_repeated = 0
        self.n_bytes_said = run.n_bytes  # when `working_on` was called last

    def write(self) -> None:
        """Write what is new, batch by batch, each before its marks.

        Of several records with one id the last stays, as `known` says then.
        """
        items = self._records() if self.root.kind == RECORDS else self._files()
        for some in in_batches(items, size=lambda item: length(item.document), room=LONG_BATCH):
            batch = {item.id: item for item in some}
            self.n_repeated += len(some) - len(batch) + len(self.seen.intersection(batch))
            self._write_batch(batch)
            self.seen.update(batch)
            self.run.progress(self.run.count())
        if self.n_repeated:
            self.run.notice(
                f"Records of {self.path} that a later one of the same id replaced: "
                f"{self.n_repeated:,}. If they are other documents: --id-field names another field."
            )

    def _write_batch(self, batch: Mapping[str, _Item]) -> None:
        new = {id: item.document for id, item in batch.items() if item.document is not None}
        there = self._claim([id for id in new if self.run.again or id not in self.known])
        # A run that was killed may have written them, and not their marks.
        same = [id for id, document in there.items() if document == new[id]]
        for id in same:
            del new[id]
        if new:
            self.store.upsert(new.values())
        if self.root.key:
            if not self.seen:
                self.run.roots.write(self.root)
            marks = {id: item.mark for id, item in batch.items()}
            changed = {id: mark for id, mark in marks.items() if self.known.get(id) != mark}
            if changed:
                self.store.remember(self.root.marks, changed)
            self.known.update(marks)
        n_changed = sum(id in there or id in self.before or id in self.seen for id in new)
        self.run.changed += n_changed
        self.run.added += len(new) - n_changed
        self.run.unchanged += len(batch) - len(new)

    def _claim(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return documents of these ids that are there already; raise where others own them."""
        owners = self.run.roots.owners(ids, besides=self.root)
        there = self.store.get_many(ids)
        conflicts = [id for id in ids if id in there and id in owners]
        if conflicts and not self.run.replace:
            raise _same_ids(self.path, self.root, owners[conflicts[0]], conflicts)
        self.run.roots.disown(owners)
        return there

    def keeps_some_below(self, folder: str) -> bool:
        """Say whether documents are kept of a folder that cannot be read."""
        return self.unread[folder] and any(id.startswith(folder) for id in self.known)

    def idle_patterns(self) -> str:
        """Say that the patterns leave none of the files there are, where that is so.

        Of several patterns, those that fit no file are named, such as a misspelt ending.
        """
        include = self.root.option("include")
        exclude = self.root.option("exclude")
        if self.seen or not (include or exclude):
            for pattern in include if len(include) > 1 else ():
                if not self._count_files(include=[pattern], exclude=exclude, most=1):
                    flag = f"--include {shlex.quote(pattern)}"
                    self.run.notice(f"{flag} fits no file in {self.path}.")
            return ""
        n_files = self._count_files()
        if not n_files:
            return ""
        options = {"include": include, "exclude": exclude}
        flags = _as_flags({name: patterns for name, patterns in options.items() if patterns})
        return (
            f"{flags} leaves no file in {self.path}, which has {n_files:,}. Nothing was changed "
            "there, and the patterns are not remembered for it. Patterns are as in a .gitignore."
        )

    def check_that_it_is_there(self) -> None:
        """Raise where a root has nothing, and had something."""
        unexplained = [id for id in self.known if id not in self.unread]
        if unexplained and not self.seen and not self.root.option("keep"):
            raise InputError(
                f"'{self.path}' has nothing to add now, so the {len(unexplained):,} documents that "
                "it had are kept. Is its disk there? If they are to go: vdsh delete."
            )

    def vanished(self) -> list[str]:
        """List what is gone, also what is no document any more; what may come back is not.

        What cannot be read for a passing reason stays, and so does all that is below a folder
        which cannot be read.
        """
        passing = {id for id, may_pass in self.unread.items() if may_pass}
        folders = tuple(id for id in passing if id.endswith("/"))
        gone = [id for id in self.known if id not in self.seen and id not in passing]
        if folders:
            gone = [id for id in gone if not id.startswith(folders)]
        return gone

    def _count_files(self, most: int | None = None, **patterns: Sequence[str]) -> int:
        files = (one for one in self._found(patterns) if isinstance(one, FoundFile))
        return sum(1 for _ in islice(files, most))

    def _found(self, patterns: Mapping[str, Sequence[str]]) -> Iterator[FoundFile | Skipped]:
        return find_files([self.path], **patterns, follow=self.root.option("follow"))

    # Files

    def _files(self) -> Iterator[_Item]:
        """Yield a document for each file, and read what may have changed."""
        patterns = {name: self.root.option(name) for name in ("include", "exclude")}
        # Of the path that was given: a root that is reached by a link keeps its own name.
        n_given = len(os.path.basename(os.path.abspath(self.path)))
        begin = self.root.option("id_prefix") + self.root.name
        for found in self._found(patterns):
            id = begin + found.id[n_given:]
            try:
                if isinstance(found, Skipped):
                    self.unread[id] = found.passing
                    self.run.skip(id, found.reason)
                else:
                    yield self._file(found, id)
            except UnreadableError as error:
                self.unread[id] = error.passing
                self.run.skip(id, str(error))

    def _file(self, found: FoundFile, id: str) -> _Item:
        mark = self.known.get(id, UNKNOWN_MARK)
        # As it was before it is read, because it may change now.
        facts = f"{found.size} {found.modified} {found.changed} {found.inode}"
        options = self._hash_of_options(found)
        if mark.startswith(f"{facts} {options} ") and not self.run.again:
            return _Item(id, mark, None)
        if found.size >= LARGE or self.run.n_bytes >= self.n_bytes_said + LARGE:
            self.n_bytes_said = self.run.n_bytes
            self.run.working_on(id, self.run.n_bytes)
        now = time.time_ns()
        is_fresh = any(abs(now - then) < TICK for then in (found.modified, found.changed))
        text, fields = read_found(
            found,
            self.root.option("encoding"),
            self.root.option("max_document_size"),
            html=self.root.option("html"),
        )
        self.run.n_bytes += found.size
        content = _hash(f"{fields.get('title', '')}\0{text}")
        is_same = mark.rpartition(" ")[2] == content and not self.run.again
        document = None if is_same else Document(id, text, None, fields)
        return _Item(id, f"{facts} {UNKNOWN_MARK if is_fresh else options} {content}", document)

    def _hash_of_options(self, found: FoundFile) -> str:
        """Return a short hash of what decides how a file is read: options, and this version."""
        names = ("encoding", "html", "max_document_size")
        return _hash(repr([__version__, *(self.root.option(name) for name in names)]))[:8]

    # Records

    def _records(self) -> Iterator[_Item]:
        """Read records; the store remembers which fields were taken for the text."""
        names = ("format", "id_field", "labels_field", "drop_field", "encoding", "delimiter")
        how = {name: self.root.option(name) for name in (*names, "html", "max_document_size")}
        fields = self.root.option("text_field")
        if fields is None and "text_field" not in self.run.given:
            fields = self.root.guessed_fields or None
        reader = read_documents(self.path, text_field=fields, **how)
        prefix = self.root.option("id_prefix")
        begin = self.run.n_bytes
        size = os.path.getsize(self.path) if os.path.isfile(self.path) else 0
        for number, one in enumerate(reader, 1):
            if number % MANY_RECORDS == 0:
                self.run.working_on(self.path, begin + int(size * (reader.fraction or 0)))
            document = Document(prefix + one.id, one.text, one.labels, one.metadata)
            mark = _hash(repr((one.text, one.labels, sorted(one.metadata.items()))))
            is_same = self.known.get(document.id) == mark and not self.run.again
            yield _Item(document.id, mark, None if is_same else document)
        self.run.n_bytes = begin + size
        if fields is None and reader.text_fields != ("text",):
            self.run.guessed[self.path] = reader.text_fields
            self.root.guessed_fields = list(reader.text_fields)


def _check_id_prefix(prefix: str) -> None:
    if not is_id(prefix):
        raise InputError(
            "id_prefix must have no line breaks and no other control characters. "
            f"Got {prefix!r}. Give another one (--id-prefix)."
        )


def _same_ids(path: str, root: Root, other: Root, ids: Sequence[str]) -> InputError:
    """Say that two roots have documents of the same ids, and what to do."""
    more = f" and {len(ids) - 1:,} more of the same ids" if len(ids) > 1 else ""
    shown = "Standard input" if path == STDIN else f"'{path}'"
    place = Path(root.place)
    example = "stdin:" if path == STDIN else f"{place.name.partition('.')[0]}:"
    if place.name == Path(other.place).name:
        example = f"{place.parent.name}/"
    return InputError(
        f"{shown} and '{other.place}' both have a document '{ids[0]}'{more}. None of these was "
        f"replaced. To keep both, put something before the ids of {shown}: --id-prefix "
        f"{shlex.quote(example)} To replace the older ones: --replace"
    )


def _as_flags(options: Mapping[str, Any]) -> str:
    """Write options as on the command line.

    >>> _as_flags({"encoding": "cp1251", "follow": True, "include": ["*.md"]})
    "--encoding cp1251 --follow --include '*.md'"
    """
    words = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif isinstance(value, list | tuple):
            words += [f"{flag} {shlex.quote(str(one))}" for one in value]
        else:
            words.append(f"{flag} {shlex.quote(str(value))}")
    return " ".join(words)


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

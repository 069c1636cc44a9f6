"""The roots that a store knows: folders and files that were given to `vdsh add`.

A store keeps one record for each root: where it is, how its ids begin, and the options that it was
added with. Beside the record, the store keeps a mark for each document of the root, so it knows
which root a document belongs to.
"""

import dataclasses
import json
import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vdsh.documents.document import NOT_IN_IDS
from vdsh.documents.reader import holds_records
from vdsh.documents.source import MAX_DOCUMENT_SIZE
from vdsh.errors import InputError
from vdsh.store import Store
from vdsh.store.engine import PARTS

RECORDS_OF_ROOTS = "root/"  # where the store keeps them
FOLDER = "folder"
FILE = "file"  # one document
RECORDS = "records"  # a document for each record
STDIN = "-"
MARK_PARTS = 6  # of a file: size, time, time of change, inode, options, content
UNKNOWN_MARK = "-"  # of a document that has to be read again

DEFAULTS: dict[str, Any] = {
    "encoding": "utf-8",
    "html": False,
    "max_document_size": MAX_DOCUMENT_SIZE,
    "id_prefix": "",
    "keep": False,
    "follow": False,
    "include": [],
    "exclude": [],
    "format": None,
    "id_field": "id",
    "text_field": None,
    "labels_field": "labels",
    "drop_field": [],
    "delimiter": None,
}
_FOR_ALL = ("encoding", "html", "max_document_size", "id_prefix", "keep")
_FOR_RECORDS = ("format", "id_field", "text_field", "labels_field", "drop_field", "delimiter")
_OPTIONS_OF = {
    FOLDER: (*_FOR_ALL, "follow", "include", "exclude"),
    FILE: _FOR_ALL,
    RECORDS: (*_FOR_ALL, *_FOR_RECORDS),
}


@dataclass
class Root:
    """A folder or file that was given to `vdsh add`.

    `key` names its marks and never changes; `name` is the first part of its files' ids. `identity`
    are device and inode, and `state` are size and time of a file: by these a root is recognised
    after it was moved. `options` are those that differ from the defaults.
    """

    key: str
    place: str
    name: str
    kind: str
    identity: tuple[int, int] = (0, 0)
    state: tuple[int, int] = (0, 0)
    options: dict[str, Any] = field(default_factory=dict)
    guessed_fields: list[str] = field(default_factory=list)

    @property
    def marks(self) -> str:
        """The prefix of the keys of its marks."""
        return f"in/{self.key}/"

    def option(self, name: str) -> Any:
        """Return an option, or its default."""
        return self.options.get(name, DEFAULTS[name])

    def ids_begin_with(self) -> str:
        """Return what the ids of its files begin with; records may have any id."""
        prefix: str = self.option("id_prefix")
        if self.kind == RECORDS:
            return prefix
        return f"{prefix}{self.name}/" if self.kind == FOLDER and self.name else prefix + self.name

    def may_have(self, id: str) -> bool:
        """Say whether a document can be one of this root's."""
        begin = self.ids_begin_with()
        return id == begin if self.kind == FILE else id.startswith(begin)


class Roots:
    """All roots of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        records = store.remembered(RECORDS_OF_ROOTS)
        self._all = {key: _read_record(key, record) for key, record in records.items()}
        self._ids: dict[str, set[str]] = {}  # of a root, once they were needed

    def find(
        self, path: str, given: Mapping[str, Any], *, replace: bool
    ) -> tuple[Root, Root | None]:
        """Return the root of a path, and what the store knows of it from an earlier run.

        Nothing is written. Raises where the path cannot be a root, or where its ids would be those
        of another one.
        """
        place = os.path.realpath(path)
        _check_outside_of_stores(path, place)
        facts = os.stat(path)
        there = self._at(place)
        before = there or self._moved_to(place, facts)
        root = Root(
            key=before.key if before else "",
            place=there.place if there else place,
            name=there.name if there else _name_of(path),
            kind=FILE,
            identity=(facts.st_dev, facts.st_ino),
            state=(facts.st_size, facts.st_mtime_ns),
            guessed_fields=before.guessed_fields if before else [],
        )
        root = _with_options(root, path, before, given)
        other = self._with_the_ids_of(root)
        if other is not None:
            _check_replaceable(root, other, replace=replace and before is None)
            before = other
            root = _with_options(dataclasses.replace(root, key=other.key), path, other, given)
        if not root.key:
            root.key = self._new_key(root.name)
        return root, before

    def write(self, root: Root) -> None:
        """Keep the record of a root."""
        self._all[root.key] = root
        record = asdict(root)
        del record["key"]
        self._store.remember(RECORDS_OF_ROOTS, {root.key: json.dumps(record)})

    def owners(self, ids: Collection[str], besides: Root | None) -> dict[str, Root]:
        """Return which other roots have documents of these ids."""
        found = {}
        for root in self._all.values():
            if besides is not None and root.key == besides.key:
                continue
            candidates = [id for id in ids if root.may_have(id)]
            if candidates:
                its_ids = self._ids_of(root)
                found.update({id: root for id in candidates if id in its_ids})
        return found

    def disown(self, owners: Mapping[str, Root]) -> None:
        """Forget that documents belong to these roots."""
        for root, ids in _by_root(owners):
            self._store.forget(root.marks, ids)
            self._ids_of(root).difference_update(ids)

    def have_read_again(self, owners: Mapping[str, Root]) -> None:
        """Have these roots read documents again in their next run."""
        for root, ids in _by_root(owners):
            self._store.remember(root.marks, dict.fromkeys(ids, UNKNOWN_MARK))

    def _ids_of(self, root: Root) -> set[str]:
        if root.key not in self._ids:
            self._ids[root.key] = set(self._store.remembered(root.marks))
        return self._ids[root.key]

    def _at(self, place: str) -> Root | None:
        """Find the root that is at a place; a folder can be reached by several paths."""
        for root in self._all.values():
            if root.place == place:
                return root
        for root in self._all.values():
            if all(map(os.path.exists, (root.place, place))) and os.path.samefile(
                root.place, place
            ):
                return root
        return None

    def _moved_to(self, place: str, facts: os.stat_result) -> Root | None:
        """Find the root that was moved to a place: the same folder or file, with the same content.

        Device and inode alone prove nothing: they are given to a new file when one was deleted.
        """
        for root in self._all.values():
            if tuple(root.identity) != (facts.st_dev, facts.st_ino):
                continue
            if root.kind != FOLDER:
                if tuple(root.state) == (facts.st_size, facts.st_mtime_ns):
                    return root
            elif self._has_a_file_of(root, place):
                return root
        return None

    def _has_a_file_of(self, root: Root, place: str) -> bool:
        begin = root.ids_begin_with()
        for id, mark in self._store.remembered(root.marks).items():
            parts = mark.split()
            if not id.startswith(begin) or len(parts) < MARK_PARTS:
                continue
            try:
                facts = os.stat(os.path.join(place, id[len(begin) :]))
            except OSError:
                continue
            if parts[:2] == [str(facts.st_size), str(facts.st_mtime_ns)]:
                if parts[3] == str(facts.st_ino):
                    return True
        return False

    def _with_the_ids_of(self, root: Root) -> Root | None:
        """Find another folder, or file, whose ids begin as those of a root."""
        if root.kind == RECORDS:
            return None  # `owners` tells, id by id
        for other in self._all.values():
            is_other = other.key != root.key and other.kind != RECORDS
            if is_other and other.ids_begin_with() == root.ids_begin_with():
                return other
        return None

    def _new_key(self, name: str) -> str:
        key = name or "root"
        number = 1
        while key in self._all:
            number += 1
            key = f"{name} ({number})"
        return key


def check_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with defaults in the place of empty ones; raise for one that is unknown."""
    checked = {}
    for name, value in given.items():
        if name not in DEFAULTS:
            raise InputError(f"There is no option '{name}'. There are {', '.join(DEFAULTS)}.")
        if not isinstance(value, str | bool | int | None):
            value = [one for one in value if one != ""]
        checked[name] = DEFAULTS[name] if value in ("", None, []) else value
    return checked


def _with_options(root: Root, path: str, before: Root | None, given: Mapping[str, Any]) -> Root:
    """Return a root with the options that apply to it: those of now win over remembered ones."""
    options = {**(before.options if before else {}), **given}
    kind = _kind(path, options)
    applying = {name: options[name] for name in _OPTIONS_OF[kind] if name in options}
    differing = {name: value for name, value in applying.items() if value != DEFAULTS[name]}
    return dataclasses.replace(root, kind=kind, options=differing)


def _kind(path: str, options: Mapping[str, Any]) -> str:
    if os.path.isdir(path):
        return FOLDER
    has_records = bool(options.get("format")) or holds_records(path)
    return RECORDS if has_records and os.path.isfile(path) else FILE  # not a pipe


def _read_record(key: str, record: str) -> Root:
    return Root(key, **json.loads(record))


def _check_outside_of_stores(path: str, place: str) -> None:
    for folder in Path(place, "-").parents:
        if os.path.isfile(folder / PARTS[0]):  # False, too, where that may not be looked up
            raise InputError(f"'{path}' is inside the store '{folder}'. Add files from elsewhere.")


def _by_root(owners: Mapping[str, Root]) -> Iterator[tuple[Root, list[str]]]:
    roots = {root.key: root for root in owners.values()}
    for key, root in roots.items():
        yield root, [id for id, owner in owners.items() if owner.key == key]


def _name_of(path: str) -> str:
    return NOT_IN_IDS.sub("\ufffd", os.path.basename(os.path.abspath(path)))


def _check_replaceable(root: Root, other: Root, *, replace: bool) -> None:
    """Raise unless a root may take the place of another one with the same ids."""
    same = (
        f"'{root.place}' has the same name as '{other.place}', which was added before, so their "
        "documents would have the same ids."
    )
    example = f"{os.path.basename(os.path.dirname(root.place)) or 'other'}/"
    advice = f"To add it under ids of its own: --id-prefix {shlex.quote(example)}"
    if os.path.exists(other.place):
        raise InputError(f"{same} {advice}")
    if not replace:
        raise InputError(
            f"{same} '{other.place}' is not there now; its documents are kept. If "
            f"'{root.place}' is to take its place: --replace. {advice}"
        )

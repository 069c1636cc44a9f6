"""The files below folders, found one by one in the order of their names; a folder as a source."""

import os
import stat
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from vdsh.documents.document import NOT_IN_IDS, is_id
from vdsh.documents.ignore import Patterns
from vdsh.documents.readers import read_file
from vdsh.documents.source import Record, Source
from vdsh.documents.unreadable import NOT_TEXT, TOO_LARGE, UnreadableError
from vdsh.errors import InputError, MissingFileError

_MOST_NAMED = 3  # files in a sentence
_STORE = "store.sqlite"  # its folder is a store: its files are no documents
_LEADS_OUT = "is a link that leads out of its folder"
_ADVICE = {
    NOT_TEXT: " Name the encoding of texts with encoding= (--encoding).",
    TOO_LARGE: " Allow more with max_document_size= (--max-document-size).",
    _LEADS_OUT: " Follow links with follow=True (--follow).",
}


class SkippedFilesWarning(UserWarning):
    """Some files of a folder are no text, too large, or links out of it: they were not read."""


class FoundFile(NamedTuple):
    """A file that may be a document; times are in nanoseconds.

    `changed` is when its content, name or rights were last changed: it cannot be set by a program
    as `modified` can, so together with the inode it tells files of the same size and time apart.
    """

    id: str
    path: Path
    size: int
    modified: int
    changed: int
    inode: int


class Skipped(NamedTuple):
    """What is not read, and why ("is a link …"); the id of a whole folder ends in `/`.

    `passing`: it may be readable another time, as where rights are missing or a disk fails.
    """

    id: str
    reason: str
    passing: bool = False


class _Folder(NamedTuple):
    """A folder on the way down: its path in the root (`"a/b/"`), and the rules that hold in it."""

    path: str
    inside: str
    ignored: tuple[tuple[int, Patterns], ...] = ()  # deepest first, after so many characters


def find_files(
    roots: Iterable[str | os.PathLike[str]],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    follow: bool = False,
) -> Iterator[FoundFile | Skipped]:
    """Find the files below folders, in the order of their names, one folder at a time in memory.

    The id of a file is the root's name and the path below it; a root may be a file itself. Hidden
    files, stores of vdsh, and what a `.gitignore` in or below a root names are left out. `include`
    and `exclude` are patterns as a `.gitignore` has them, relative to each root; `follow` follows
    links that lead out of a root, each folder once.
    """
    walk = _Walk(Patterns(include) if include else None, Patterns(exclude), follow)
    names: dict[str, str] = {}
    for root in [os.fspath(root) for root in roots]:
        if not os.path.exists(root):
            raise MissingFileError(f"No file or folder '{root}'. Check the path.")
        name = os.path.basename(os.path.abspath(root))
        other = names.setdefault(name, root)
        if not os.path.samefile(other, root):
            problem = f"'{other}' and '{root}' have the same name, so their ids would be the same."
            raise InputError(f"{problem} Give the folder above them.")
        yield from walk.below(root, name)


class _Walk:
    """One way through folders and their links."""

    def __init__(self, include: Patterns | None, exclude: Patterns, follow: bool) -> None:
        self.include, self.exclude, self.follow = include, exclude, follow
        self.seen: set[tuple[int, int]] = set()  # links may lead to a folder again, or in a circle

    def below(self, root: str, name: str) -> Iterator[FoundFile | Skipped]:
        """Find the files of one root."""
        self.root = Path(os.path.realpath(root))
        if not os.path.isdir(root):
            yield _found(name, root)
            return
        prefix = f"{name}/".lstrip("/")
        left = [self._entries(_Folder(root, ""))]
        while left:
            for item in left[-1]:
                if isinstance(item, _Folder):
                    left.append(self._entries(item))
                    break
                yield item._replace(id=NOT_IN_IDS.sub("\ufffd", prefix + item.id))
            else:
                left.pop()

    def _entries(self, folder: _Folder) -> Iterator[FoundFile | Skipped | _Folder]:
        """Look at what is in a folder, in the order of whole paths."""
        try:
            facts = os.stat(folder.path)
            with os.scandir(folder.path) as entries:
                kinds = {f"{entry.name}{'/' * _is_folder(entry)}": entry for entry in entries}
        except OSError as error:
            if not folder.inside:
                raise InputError(f"Cannot read folder '{folder.path}': {error.strerror}.") from None
            yield Skipped(folder.inside, f"cannot be read ({error.strerror})", passing=True)
            return
        if (place := (facts.st_dev, facts.st_ino)) in self.seen:
            return
        self.seen.add(place)
        if _STORE in kinds:
            yield Skipped(folder.inside, "is a store of vdsh")
            return
        if ".gitignore" in kinds:
            folder = folder._replace(ignored=(_read_rules(folder), *folder.ignored))
        for name in sorted(kinds):
            inside, path, is_folder = folder.inside + name, kinds[name].path, name[-1] == "/"
            if name[0] == "." or self._leaves_out(folder, inside):
                continue
            is_link = kinds[name].is_symlink()
            leads_out = is_link and not Path(os.path.realpath(path)).is_relative_to(self.root)
            if not is_id(name):
                yield Skipped(inside, "has a name that is not UTF-8, or has control characters")
            elif leads_out and not self.follow:
                yield Skipped(inside, _LEADS_OUT)
            elif not is_folder:
                yield _found(inside, path)
            elif leads_out or not is_link:  # a link to a folder inside brings nothing new
                yield _Folder(path, inside, folder.ignored)

    def _leaves_out(self, folder: _Folder, inside: str) -> bool:
        if self.exclude.leave_out(inside):
            return True
        if self.include and inside[-1] != "/" and not self.include.fits_inside(inside):
            return True
        says = (rules.leave_out(inside[begin:]) for begin, rules in folder.ignored)
        return next((answer for answer in says if answer is not None), False)


def _found(id: str, path: str) -> FoundFile | Skipped:
    try:
        facts = os.stat(path)
    except OSError as error:
        # The target of a link may come back; a file that has just gone does not.
        is_gone = isinstance(error, FileNotFoundError) and not os.path.islink(path)
        return Skipped(id, f"cannot be read ({error.strerror})", passing=not is_gone)
    if not stat.S_ISREG(facts.st_mode):  # nobody may ever write to a pipe
        return Skipped(id, "is not a regular file")
    return FoundFile(
        id=id,
        path=Path(path),
        size=facts.st_size,
        modified=facts.st_mtime_ns,
        changed=facts.st_ctime_ns,
        inode=facts.st_ino,
    )


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _read_rules(folder: _Folder) -> tuple[int, Patterns]:
    try:
        lines = read_file(os.path.join(folder.path, ".gitignore")).text.splitlines()
    except UnreadableError:
        lines = []
    return len(folder.inside), Patterns(lines)


def read_folder(source: Source) -> Iterator[Record]:
    """Read the files of a folder, in the order of their names."""
    roots, follow = [source.name], source.follow
    source.total = sum(1 for _ in find_files(roots, follow=follow))  # counted, not kept
    skipped = defaultdict[str, list[str]](list)
    for found in find_files(roots, follow=follow):
        try:
            if isinstance(found, Skipped):
                raise UnreadableError(found.reason)
            text, fields = read_found(
                found, source.encoding, source.max_document_size, html=source.html
            )
            names = {source.id_field: found.id, source.text_fields[0]: text}
            yield found.id, fields | names
        except UnreadableError as error:
            skipped[str(error)].append(found.id)
        source.done += 1
    for reason, ids in skipped.items():
        _warn(reason, ids, source.total)


def read_found(
    found: FoundFile, encoding: str, limit: int, *, html: bool = False
) -> tuple[str, dict[str, str]]:
    """Read a file: its text, and its folder and title where it has them."""
    text, title = read_file(found.path, encoding=encoding, limit=limit, html=html)
    fields = {"folder": found.id.partition("/")[2].rpartition("/")[0], "title": title}
    return text, {name: value for name, value in fields.items() if value}


def _warn(reason: str, ids: list[str], total: int) -> None:
    more = len(ids) - _MOST_NAMED
    shown = ", ".join(map(repr, ids[:_MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")
    advice = next((_ADVICE[start] for start in _ADVICE if reason.startswith(start)), "")
    each = "each" if len(ids) > 1 else "it"
    message = f"Skipped {len(ids):,} of {total:,} files ({shown}): {each} {reason}.{advice}"
    warnings.warn(message, SkippedFilesWarning, stacklevel=5)

"""A folder as a source: each file that is text is a document; the others are counted."""

import gzip
import os
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from vdsh.documents.document import is_id
from vdsh.documents.source import Record, Source, decode_whole, looks_binary, opened, unzipped
from vdsh.errors import InputError

_MOST_NAMED = 3  # files in a sentence


class SkippedFilesWarning(UserWarning):
    """Some files of a folder are no text, too large, or links out of it: they were not read."""


class _Reason(NamedTuple):
    """Why a file is skipped."""

    what: str
    advice: str


_NO_TEXT = _Reason("that are not text", "Name the encoding of texts with encoding= (--encoding).")


def read_folder(source: Source) -> Iterator[Record]:
    """Read the files of a folder, in the order of their names."""
    names, links = _files_below(source.name, follow=source.follow)
    source.total = len(names)
    skipped = defaultdict[_Reason, list[str]](list)
    for name in names:
        text = _text(source, os.path.join(source.name, name)) if is_id(name) else _NO_TEXT
        source.done += 1
        if isinstance(text, _Reason):
            skipped[text].append(name)
            continue
        folder = {"folder": os.path.dirname(name)} if "/" in name else {}
        id = f"{source.own_name}/{name}".lstrip("/")
        yield f"file '{name}'", {**folder, source.id_field: id, source.text_fields[0]: text}
    for (what, advice), some in skipped.items():
        _warn(f"Skipped {len(some):,} of {len(names):,} files {what}", some, advice)
    if links:
        advice = "Follow them with follow=True (--follow)."
        _warn(f"Left {len(links):,} links alone that lead out of '{source.name}'", links, advice)


def _warn(what: str, names: list[str], advice: str) -> None:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(map(repr, names[:_MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")
    warnings.warn(f"{what}: {shown}. {advice}", SkippedFilesWarning, stacklevel=5)


def _text(source: Source, path: str) -> str | _Reason:
    """Read a whole file, or say why it is skipped."""
    if not os.path.isfile(path):  # a broken link, or a pipe that nobody may ever write to
        return _NO_TEXT
    limit = source.max_document_size
    with opened(path) as file:
        try:
            data = unzipped(file).read(limit + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return _NO_TEXT
    if len(data) > limit and not looks_binary(data, source.encoding):
        advice = "Allow more with max_document_size= (--max-document-size)."
        return _Reason(f"of more than {limit:,} bytes", advice)
    text = None if len(data) > limit else decode_whole(data, source.encoding)
    return _NO_TEXT if text is None else text


def _files_below(folder: str, *, follow: bool) -> tuple[list[str], list[str]]:
    """List the files of a folder tree, and the links out of it that are left alone.

    Both are sorted relative posix paths. A link to a folder inside brings nothing new.
    """

    def fail(error: OSError) -> NoReturn:
        raise InputError(f"Cannot read folder '{error.filename}': {error.strerror}.") from error

    root = _real(folder)
    found, links, seen, left = list[Path](), list[Path](), set[Path](), [Path(folder)]
    while left:
        for place, folders, files in os.walk(left.pop(), onerror=fail):
            folders[:] = [name for name in folders if not name.startswith(".")]
            if (real := _real(place)) in seen:  # links may lead here again, also in a circle
                folders.clear()
                continue
            seen.add(real)
            for path in (Path(place, name) for name in (*folders, *files) if name[0] != "."):
                leads_out = path.is_symlink() and not _real(path).is_relative_to(root)
                if leads_out and not follow:
                    links.append(path)
                elif not path.is_dir():
                    found.append(path)
                elif leads_out:
                    left.append(path)
    return _names(found, folder), _names(links, folder)


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve raises for links in a circle


def _names(paths: list[Path], folder: str) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in paths)

"""A file to its text and title; another format is one more function in `_BINARY`."""

import gzip
import json
import os
import stat
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from vdsh.documents.docx import read_docx
from vdsh.documents.markup import text_of, title_of_html, title_of_text
from vdsh.documents.pdf import read_pdf
from vdsh.documents.source import MAX_DOCUMENT_SIZE, decode_whole, looks_binary, unzipped
from vdsh.documents.unreadable import (
    NOT_TEXT,
    TOO_LARGE,
    UnreadableError,
    UnreadableNowError,
)

_HTML = (".html", ".htm", ".xhtml")
_WITH_HEADINGS = (".md", ".markdown", ".mdx", ".rst", ".ipynb")
_PACKED = 4  # a file with pictures may be so many times larger than its text


class Contents(NamedTuple):
    """What a file says: its text, and its title where it has one."""

    text: str
    title: str


def read_file(
    path: str | os.PathLike[str],
    *,
    encoding: str = "utf-8",
    limit: int = MAX_DOCUMENT_SIZE,
    html: bool = False,
) -> Contents:
    """Read a regular file, packed or not, by what the ending of its name says; else as text.

    `encoding` is that of text which is neither UTF-8 nor marked, `limit` the most bytes, unzipped:
    four times as many for PDF and DOCX, which have pictures. `html` says that text is HTML whatever
    its ending. Raises `UnreadableError` for whatever is wrong with it.
    """
    name = os.fspath(path)
    ending = Path(name.lower().removesuffix(".gz")).suffix
    if read := _BINARY.get(ending):
        return _checked(ending, partial(read, _bytes_of(name, limit * _PACKED), limit), limit)
    text = decode_whole(_bytes_of(name, limit, encoding), encoding)
    if text is None:
        raise UnreadableError(NOT_TEXT)
    kind = _HTML[0] if html and ending != ".ipynb" else ending
    return _checked(ending, partial(_of_text, kind, text), limit)


def _bytes_of(name: str, limit: int, encoding: str | None = None) -> bytes:
    """Unzip a file; where an encoding is named it has to look like text."""
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):
            raise UnreadableError("is not a regular file")
        with open(name, "rb") as file:
            stream = unzipped(file)
            if encoding and looks_binary(stream.peek(), encoding):
                raise UnreadableError(NOT_TEXT)
            data: bytes = stream.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UnreadableNowError("is damaged gzip") from None
    except OSError as error:
        raise UnreadableNowError(f"cannot be read ({error.strerror or error})") from None
    if len(data) > limit:
        raise UnreadableError(f"{TOO_LARGE} {limit:,} bytes")
    return data


def _checked(ending: str, read: Callable[[], Contents], limit: int) -> Contents:
    """Read contents; a parser may raise anything for a broken file."""
    try:
        text, title = read()
    except UnreadableError:
        raise
    except Exception as error:
        raise UnreadableNowError(f"is not {ending[1:].upper()}, or is damaged") from error
    if len(text) > limit:
        raise UnreadableError(f"{TOO_LARGE} {limit:,} characters of text")
    return Contents(_encodable(text), " ".join(_encodable(title).split())[:200])


def _encodable(text: str) -> str:
    """Replace halves of surrogate pairs, which no database takes."""
    return text.encode(errors="replace").decode() if not text.isascii() else text


def _of_text(ending: str, text: str) -> Contents:
    if ending in _HTML:
        return Contents(text_of(text), title_of_html(text))
    if ending == ".ipynb":
        text = "\n\n".join(["".join(cell["source"]) for cell in json.loads(text)["cells"]])
    return Contents(text, title_of_text(text) if ending in _WITH_HEADINGS else "")


def _docx(data: bytes, limit: int) -> Contents:
    if data[:4] == b"\xd0\xcf\x11\xe0":
        raise UnreadableError("has a password, or is an old .doc; save it as .docx without one")
    text, title = read_docx(data, limit * _PACKED)
    if not text:
        raise UnreadableError("has no text")
    return Contents(text, title)


def _pdf(data: bytes, limit: int) -> Contents:
    return Contents(*read_pdf(data, limit))


_BINARY: dict[str, Callable[[bytes, int], Contents]] = {".pdf": _pdf, ".docx": _docx}

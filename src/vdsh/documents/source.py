"""A source of documents: how it is read, how far, and what is said about what is wrong in it.

Its bytes become lines of text: unzipped, decoded, and none longer than a document may be.
"""

import codecs
import difflib
import gzip
import os
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from io import BufferedReader, TextIOWrapper
from itertools import count
from typing import Any, NoReturn

from vdsh.errors import InputError

MAX_DOCUMENT_SIZE = 16 * 2**20

Record = tuple[str, dict[str, Any]]  # where it stands ("line 3") and its fields
STDIN = "<stdin>"
_MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}  # they begin as UTF-16 does
_MARKS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_PIECE = 2**20  # bytes that are looked at together
_START = 8192  # bytes that tell whether a file is text
_UNLIKE_TEXT = bytes(set(range(32)) - set(b"\b\t\n\v\f\r\x1b")) + b"\x7f"


@dataclass(eq=False)
class Source:
    """Where records come from, and the options by which they are read; see `read_documents`."""

    name: str
    format: str
    id_field: str
    text_fields: tuple[str, ...]
    labels_field: str
    encoding: str = "utf-8"
    delimiter: str | None = None
    drop_fields: tuple[str, ...] = ()
    html: bool = False
    max_document_size: int = MAX_DOCUMENT_SIZE
    follow: bool = False
    done: int = field(default=0, init=False, repr=False)  # bytes, rows or files
    total: int = field(default=1, init=False, repr=False)
    file: BufferedReader | None = field(default=None, init=False, repr=False)
    is_export: bool = field(default=False, init=False, repr=False)  # its metadata is one column

    @property
    def fraction(self) -> float | None:
        """Share of the source read so far."""
        if self.name == STDIN or not self.total:
            return None
        if self.file and not self.file.closed:
            self.done = self.file.tell()
        return min(1.0, self.done / self.total)

    def default_id(self, number: int, fields: dict[str, Any]) -> str:
        """Name record `number`, which has no id: other sources must not have the same names.

        A stream has no name, so the content of the record stands for it.
        """
        if self.name == STDIN or self.name.startswith("/dev/"):
            content = blake2b(repr(fields).encode(), digest_size=6).hexdigest()
            return f"stdin-{content}:{number}"
        return f"{os.path.basename(os.path.abspath(self.name))}:{number}"

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise for a column that was asked for by name and is not there."""
        wanted = [("text", name) for name in self.text_fields]
        wanted += [("id", self.id_field), ("labels", self.labels_field)]
        wanted += [("drop", name) for name in self.drop_fields if not self.is_export]
        for role, name in wanted:
            if name not in columns and (role in ("text", "drop") or name != role):
                raise InputError(f"'{self.name}' has no column {not_among(columns, name, role)}")

    def fail(self, place: str, message: str, cause: Exception | None = None) -> NoReturn:
        """Raise for something wrong at a place in the source."""
        raise InputError(f"'{self.name}', {place}: {message}") from cause


def not_among(names: Collection[str], name: str, role: str) -> str:
    """Say that a field is not there, which one may have been meant, and which there are."""
    close = difflib.get_close_matches(name, names, n=1)
    guess = f" Did you mean '{close[0]}'?" if close else ""
    there = ", ".join(f"'{other}'" for other in names) or "nothing"
    verb = "are" if len(names) > 1 else "is"
    return f"'{name}'.{guess} There {verb} {there}. Name it with {role}_field= (--{role}-field)."


def drop(name: str) -> str:
    """Say how a field is left out."""
    return f"Leave it out with drop_field='{name}' (--drop-field {name})."


def check_encoding(encoding: str) -> str:
    """Return Python's name of an encoding."""
    try:
        name = codecs.lookup(encoding).name.removesuffix("-sig")
        "a\n".encode(name)
    except (LookupError, ValueError):
        raise InputError(f"No encoding {encoding!r}. Try utf-8, latin-1 or cp1252.") from None
    return name


@contextmanager
def opened(name: str) -> Iterator[BufferedReader]:
    """Open a file or stdin; turn what goes wrong while it is read into a sentence."""
    try:
        if name == STDIN:
            stdin: Any = sys.stdin.buffer  # a BytesIO where a test replaced it
            yield stdin if hasattr(stdin, "peek") else BufferedReader(stdin)
        else:
            with open(name, "rb") as file:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"'{name}' is cut off or damaged gzip. Copy or pack it again.") from error
    except OSError as error:
        raise InputError(f"Cannot read '{name}': {error.strerror or error}.") from error


def read_lines(file: BufferedReader, name: str, encoding: str, limit: int) -> Iterator[str]:
    """Unzip and decode line by line; raise for a line over the limit before it is read whole."""
    stream = unzipped(file)
    encoding = _marked(stream.peek(4), encoding)
    by_bytes = _is_by_bytes(encoding)
    lines = _decoded if by_bytes else _wide
    for number, line in enumerate(lines(stream, name, encoding, limit), 1):
        if number == 1:
            line = line.removeprefix("\ufeff")
            if by_bytes and "\0" in line:
                problem = "zero bytes, as UTF-16 has them. Name the encoding"
                raise InputError(f"'{name}', line 1: {problem}, such as --encoding utf-16-le.")
        yield line


def unzipped(file: BufferedReader) -> Any:
    """Return a stream of bytes that are not packed."""
    is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
    stream: Any = BufferedReader(gzip.GzipFile(fileobj=file)) if is_gzip else file
    return stream


def decode_whole(data: bytes, encoding: str) -> str | None:
    r"""Decode a file; return None where it is no text.

    A byte order mark decides, then valid UTF-8; the encoding is for what has neither. Where that
    is UTF-8, the rest is taken for cp1252, unless it has bytes that no text has.

    >>> decode_whole(b"caf\xe9", "utf-8"), decode_whole(b"\xff\xd8\xff\x01", "utf-8")
    ('café', None)
    >>> decode_whole(b"caf\xc3\xa9", "cp1251"), decode_whole(b"\xec\xe8\xf0", "cp1251")
    ('café', 'мир')
    """
    if looks_binary(data, encoding):
        return None
    marked = _marked(data, encoding)
    if marked == encoding and _is_utf_8_besides(iter([data]), encoding):
        marked = "utf-8"
    is_like_text = marked == "utf-8" and len(data.translate(None, _UNLIKE_TEXT)) == len(data)
    for name in (marked, "cp1252") if is_like_text else (marked,):
        with suppress(UnicodeError):
            return data.decode(name).removeprefix("\ufeff")
    return None


def looks_binary(data: bytes, encoding: str) -> bool:
    """Say whether bytes have zeros near the beginning, as texts have in wide encodings only."""
    return _is_by_bytes(_marked(data, encoding)) and b"\0" in data[:_START]


def _is_by_bytes(encoding: str) -> bool:
    return "a\n".encode(encoding) == b"a\n"


def _marked(data: bytes, encoding: str) -> str:
    """Return the encoding that a byte order mark says; without a mark the one that was named."""
    return next((_MARKS[mark] for mark in _MARKS if data.startswith(mark)), encoding)


def _is_utf_8_besides(pieces: Iterator[bytes], encoding: str) -> bool:
    """Say whether bytes are UTF-8 although another encoding was named for what is not.

    Bytes below 128 alone do not tell: in some encodings (ISO-2022-JP, UTF-7) they are other
    letters, in most the same. Neither do zeros where the encoding is a wide one, as UTF-16.
    """
    if encoding == "utf-8":
        return False
    is_wide = not _is_by_bytes(encoding)
    is_ascii = True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            if is_wide and b"\0" in piece:
                return False
            is_ascii = is_ascii and piece.isascii()
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return is_wide or not is_ascii


def is_utf_8_besides(name: str, encoding: str) -> bool:
    """Say whether a file, packed or not, is UTF-8 although another encoding was named."""
    if encoding == "utf-8":
        return False
    with opened(name) as file:
        stream = unzipped(file)
        return _is_utf_8_besides(iter(partial(stream.read, _PIECE), b""), encoding)


def _decoded(stream: BufferedReader, name: str, encoding: str, limit: int) -> Iterator[str]:
    """Split lines, then decode them, so that an error can name its line."""
    for number, raw in _numbered(stream.readline, name, limit):
        try:
            yield raw.decode(encoding)
        except UnicodeDecodeError as error:
            problem = f"byte 0x{raw[error.start]:02x} is not {encoding}"
            advice = "Name the encoding, such as encoding='latin-1' (--encoding latin-1)."
            raise InputError(f"'{name}', line {number}: {problem}. {advice}") from error


def _wide(stream: BufferedReader, name: str, encoding: str, limit: int) -> Iterator[str]:
    """Decode, then split lines: where a line break is not one byte, as in UTF-16."""
    text = TextIOWrapper(stream, encoding, newline="\n")
    try:
        for _, line in _numbered(text.readline, name, limit):
            yield line
    finally:
        text.detach()  # else stdin would be closed with it


def _numbered(readline: Callable[[int], Any], name: str, limit: int) -> Iterator[tuple[int, Any]]:
    for number in count(1):
        try:
            line = readline(limit + 1)
        except UnicodeError as error:
            raise InputError(f"'{name}', line {number} or soon after: {error}.") from error
        if len(line) > limit:
            raise InputError(f"'{name}', line {number}: {over(limit)}")
        if not line:
            return
        yield number, line


def over(limit: int) -> str:
    """Say that a document is too large, and what to do.

    >>> over(2**24)  # doctest: +ELLIPSIS
    'a document of more than 16,777,216 bytes. Cut it, or allow more with max_document_size= ...'
    """
    advice = "Cut it, or allow more with max_document_size= (--max-document-size)."
    return f"a document of more than {limit:,} bytes. {advice}"

"""A file to its text and title; another format is one more function in `_READERS`."""

import gzip
import os
import stat
import zlib
from typing import NamedTuple

from vdsh.documents.source import MAX_DOCUMENT_SIZE, decode_whole, looks_binary, unzipped
from vdsh.errors import InputError

NOT_TEXT = "is not text"
TOO_LARGE = "has more than"


class UnreadableError(InputError):
    """A file has no text to read; the message is the reason alone, such as "is not text"."""


class Contents(NamedTuple):
    """What a file says: its text, and its title where it has one."""

    text: str
    title: str


def read_file(
    path: str | os.PathLike[str], *, encoding: str = "utf-8", limit: int = MAX_DOCUMENT_SIZE
) -> Contents:
    """Read a file, packed or not, by what the ending of its name says; else as text.

    Parameters
    ----------
    path : path
        Of a regular file.
    encoding : str
        Of text that is neither UTF-8 nor marked.
    limit : int
        Most bytes, unzipped.

    Raises
    ------
    UnreadableError
        Whatever is wrong with it.
    """
    name = os.fspath(path)
    data = _bytes_of(name, encoding, limit)
    text = decode_whole(data, encoding)
    if text is None:
        raise UnreadableError(NOT_TEXT)
    return Contents(text, "")


def _bytes_of(name: str, encoding: str, limit: int) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):
            raise UnreadableError("is not a regular file")
        with open(name, "rb") as file:
            stream = unzipped(file)
            if looks_binary(stream.peek(), encoding):
                raise UnreadableError(NOT_TEXT)
            data: bytes = stream.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UnreadableError("is damaged gzip") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error.strerror or error})") from None
    if len(data) > limit:
        raise UnreadableError(f"{TOO_LARGE} {limit:,} bytes")
    return data

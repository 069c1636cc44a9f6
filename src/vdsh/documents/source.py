"""A source of documents: how it is read, how far, and what is said about what is wrong in it."""

import difflib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from io import BufferedReader
from typing import Any, NoReturn

from vdsh.documents.lines import STDIN
from vdsh.errors import InputError

MAX_DOCUMENT_SIZE = 16 * 2**20

Record = tuple[str, dict[str, Any]]  # where it stands ("line 3") and its fields


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

    @property
    def own_name(self) -> str:
        """Name of the file or folder, without where it lies."""
        return os.path.basename(os.path.abspath(self.name))

    def default_id(self, number: int, fields: dict[str, Any]) -> str:
        """Name record `number`, which has no id: other sources must not have the same names.

        A stream has no name, so the content of the record stands for it.
        """
        if self.name == STDIN or self.name.startswith("/dev/"):
            content = blake2b(repr(fields).encode(), digest_size=6).hexdigest()
            return f"stdin-{content}:{number}"
        return f"{self.own_name}:{number}"

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

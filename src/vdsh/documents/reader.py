"""Documents of a source: a record's fields become id, text, labels and metadata."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from reprlib import repr as short
from typing import Any

from vdsh.documents.document import Document, check_characters
from vdsh.documents.markup import text_of
from vdsh.documents.records import SEEN, guess_text_fields, read_records
from vdsh.documents.source import MAX_DOCUMENT_SIZE, STDIN, Source, check_encoding, drop, not_among
from vdsh.documents.values import DEPTH, is_too_deep, number_or_text, parse_json, plain
from vdsh.errors import InputError, MissingFileError

_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}
_ENDINGS |= {".tsv": "tsv", ".parquet": "parquet", ".txt": "text"}
_NOTHING = (None, "")  # in labels; NaN is None already
FORMATS = tuple(dict.fromkeys(_ENDINGS.values()))


def read_documents(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    id_field: str = "id",
    text_field: str | Sequence[str] | None = "text",
    labels_field: str = "labels",
    drop_field: str | Sequence[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
    html: bool = False,
    max_document_size: int = MAX_DOCUMENT_SIZE,
    follow: bool = False,
) -> "DocumentReader":
    r"""Open documents for reading; nothing is read until they are iterated over.

    Parameters
    ----------
    source : path or "-"
        A file, a folder (each file in it is one document, see `find_files` and `read_file`;
        what cannot be read is skipped with a `SkippedFilesWarning`) or standard input. Gzip is
        recognised by its first bytes.
    format : {"jsonl", "csv", "tsv", "parquet", "text"}, optional
        By default what the file's ending says, and JSON lines for standard input. A Parquet file
        that `vdsh export` wrote gives the documents of its store.
    id_field, labels_field : str
        Fields of the id and the labels; both may be missing. A record without an id is called by
        its file and number, `news.csv:1`; one of standard input by its content and number; a file
        of a folder by the folder's name and its path in it, `notes/2024/may.md`. In CSV and TSV
        several labels are separated by `;` or written as a JSON array. In a folder, `folder` is
        the file's folder.
    text_field : str, sequence of str, or None
        Field of the text; the texts of several fields are joined by a newline. None guesses by the
        first records, as `guess_text_fields` says; `text_fields` of the reader holds the guess.
    drop_field : str or sequence of str
        Fields to leave out. All others become metadata: dates as ISO text, durations as seconds,
        bytes as the UTF-8 text that they have to be, NaN and infinite numbers as None.
    encoding : str
        Of what is neither valid UTF-8 nor has a byte order mark (of UTF-8, UTF-16 or UTF-32);
        standard input without a mark is read as named. By default, a file of a folder that is no
        UTF-8 is read as cp1252 where it looks like text.
        Half a surrogate pair in JSON (``"\ud83d"``) becomes U+FFFD.
    delimiter : str, optional
        Of CSV: by default the one of ``, ; | tab`` under which the header has the text's column.
    html : bool, default=False
        The texts are HTML: leave out tags, comments, scripts and styles, and decode entities. In
        a folder all texts but PDF and DOCX, whatever the endings of their names.
    max_document_size : int, default=16 MiB
        Most bytes of a document as its source holds it, unzipped. More is an error, raised before
        they are in memory; a larger file of a folder is skipped.
    follow : bool, default=False
        In a folder, follow links that lead out of it, each folder once.

    Returns
    -------
    DocumentReader
        It raises `InputError` while iterating for what is wrong inside the source.
    """
    name = STDIN if source == "-" else os.fspath(source)
    if name != STDIN and not os.path.exists(name):
        raise MissingFileError(f"No file or folder '{name}'. Check the path, or give - for stdin.")
    if max_document_size < 1:
        raise InputError(f"max_document_size must be 1 or more. Got {max_document_size}.")
    return DocumentReader(
        name,
        _check_format(name, format),
        id_field,
        () if text_field is None else _several(text_field) or ("text",),
        labels_field,
        check_encoding(encoding),
        _check_delimiter(delimiter),
        _several(drop_field),
        html,
        max_document_size,
        follow,
    )


def holds_records(path: str | os.PathLike[str]) -> bool:
    """Say whether the name of a file tells that each record in it is a document.

    >>> holds_records("news.csv.gz"), holds_records("notes.txt")
    (True, False)
    """
    ending = Path(os.fspath(path).lower().removesuffix(".gz")).suffix
    return _ENDINGS.get(ending, "text") != "text"


class DocumentReader(Source):
    """An iterable of `Document`; each `iter` starts at the beginning, except on standard input.

    Attributes
    ----------
    name : str
        The source, for messages.
    fraction : float or None
        Share of the source read so far, from 0 to 1; None where its size is not known.
    """

    def __iter__(self) -> Iterator[Document]:
        number = self.done = 0
        with closing(read_records(self)) as records:
            first = [] if self.text_fields else list(islice(records, SEEN))
            if first:
                others = {self.id_field, self.labels_field, *self.drop_fields}
                self.text_fields = guess_text_fields([fields for _, fields in first], others)
            for number, (place, fields) in enumerate(chain(first, records), 1):
                yield self.document(number, place, fields)
        if not number:
            raise InputError(f"'{self.name}' holds no documents.")
        self.done = self.total

    def document(self, number: int, place: str, fields: dict[str, Any]) -> Document:
        """Make a document of record `number`, counted from 1, that stands at `place`."""
        dropped = self.drop_fields
        fields = {
            name: value if type(value) is str else self._plain(place, name, value)
            for name, value in fields.items()
            if name not in dropped
        }
        id = self._id(number, place, fields)
        text = self._text(place, fields)
        labels = self._labels(place, fields.get(self.labels_field))
        return Document(id, text, labels, self._metadata(place, fields))

    def _id(self, number: int, place: str, fields: dict[str, Any]) -> str:
        id = fields.get(self.id_field)
        if id is None or id == "":
            return self.default_id(number, fields)
        if type(id) not in (str, int):
            self.fail(place, f"an id must be a string or a whole number. Got {short(id)}.")
        try:
            return check_characters(str(id))
        except InputError as error:
            self.fail(place, str(error), error)

    def _plain(self, place: str, name: str, value: Any) -> Any:
        if is_too_deep(value):
            self.fail(place, f"field '{name}' is nested deeper than {DEPTH} levels. {drop(name)}")
        try:
            return plain(value)
        except ValueError as error:
            self.fail(place, f"field '{name}' {error}. {drop(name)}", error)

    def _metadata(self, place: str, fields: dict[str, Any]) -> dict[str, Any]:
        if self.is_export:
            return self._unpacked(place, fields.get("metadata"))
        used = {self.id_field, self.labels_field, *self.text_fields}
        metadata = {name: value for name, value in fields.items() if name not in used}
        if self.format in ("csv", "tsv"):
            metadata = {name: number_or_text(cell) for name, cell in metadata.items()}
        return metadata

    def _unpacked(self, place: str, metadata: Any) -> dict[str, Any]:
        try:
            fields = parse_json(metadata or "{}")
            return {name: value for name, value in fields.items() if name not in self.drop_fields}
        except (ValueError, RecursionError, TypeError, AttributeError) as error:
            self.fail(place, f"metadata must be a JSON object. Got {short(metadata)}.", error)

    def _text(self, place: str, fields: dict[str, Any]) -> str:
        values = {name: fields[name] for name in self.text_fields if name in fields}
        if not values:
            self.fail(place, f"no field {not_among(fields, self.text_fields[0], 'text')}")
        parts = [value for value in values.values() if value is not None]
        if not parts or not all(isinstance(part, str) for part in parts):
            got = ", ".join(f"'{name}': {short(value)}" for name, value in values.items())
            self.fail(place, f"the text must be a string. Got {got}. Mend or remove it.")
        text = "\n".join(filter(None, parts))
        is_read = self.format == "folder"  # `read_file` knows which of its files are HTML
        return text_of(text) if self.html and not is_read else text

    def _labels(self, place: str, value: Any) -> tuple[str, ...] | None:
        if self.format in ("csv", "tsv") and value:
            value = self._cell(place, value.strip())
        if value in _NOTHING:
            return None
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(label, str | int | float) for label in values):
            self.fail(place, f"labels must be strings or numbers. Got {short(value)}.")
        return tuple(str(v).lower() if isinstance(v, bool) else str(v) for v in values)

    def _cell(self, place: str, cell: str) -> Any:
        """Take the labels in a cell apart."""
        if not cell.startswith("["):
            return [label.strip() for label in cell.split(";") if label.strip()] or None
        try:
            return parse_json(cell)
        except (ValueError, RecursionError) as error:
            self.fail(place, f'{short(cell)} is not a JSON array. Write ["a", "b"] or a;b.', error)


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _check_format(name: str, format: str | None) -> str:
    if format not in (None, *FORMATS):
        raise InputError(f"format must be one of {', '.join(FORMATS)}. Got {format!r}.")
    if name == STDIN and format == "parquet":
        raise InputError("Parquet cannot be read from stdin. Save it to a file and give its path.")
    if os.path.isdir(name):
        if format:
            raise InputError(f"A folder holds one document a file, so leave out format={format!r}.")
        return "folder"
    ending = ".jsonl" if name == STDIN else Path(name.lower().removesuffix(".gz")).suffix
    if not format and ending not in _ENDINGS:
        raise InputError(
            f"Cannot tell the format of '{name}'. Known endings: {', '.join(_ENDINGS)} (and .gz). "
            f"Or name it with format= (--format): {', '.join(FORMATS)}."
        )
    return format or _ENDINGS[ending]


def _check_delimiter(delimiter: str | None) -> str | None:
    delimiter = {"tab": "\t", r"\t": "\t"}.get(delimiter or "", delimiter)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(f"delimiter must be one character, such as ; or tab. Got {delimiter!r}.")
    return delimiter

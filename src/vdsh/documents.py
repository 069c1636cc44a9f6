"""Read documents as a stream: JSON lines, CSV, TSV, Parquet, text, folders, stdin; gzip or not.

Each format yields records (place, fields) and one function makes a `Document` of each. No more
than one record, or one Parquet batch, is in memory at a time.
"""

import codecs
import csv
import difflib
import gzip
import json
import math
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from reprlib import repr as short
from typing import Any, NoReturn

from vdsh.errors import InputError, MissingFileError, missing_package

_loads: Callable[[str], Any]
try:
    from orjson import loads as _loads
except ImportError:
    _loads = json.loads

_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}
_ENDINGS |= {".tsv": "tsv", ".parquet": "parquet", ".txt": "text"}
FORMATS = tuple(dict.fromkeys(_ENDINGS.values()))
_STDIN = "<stdin>"
_JSON_ADVICE = "Write one JSON object a line (`jq -c '.[]'` turns an array into lines)."
# A surrogate pair, half of one (group 1), or any other escape.
_ESCAPE = re.compile(r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F]\w\w)|\\.")

Record = tuple[str, dict[str, Any]]  # where it stands ("line 3") and its fields


@dataclass(frozen=True, slots=True)
class Document:
    """One document.

    Attributes
    ----------
    id : str
        Its name; the record number, from 1, where the source has none.
    text : str
        What is hashed.
    labels : tuple of str, or None
        None says that the labels are not known, `()` that it has none.
    metadata : dict
        All other fields, as the source holds them.
    """

    id: str
    text: str
    labels: tuple[str, ...] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def read_documents(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    id_field: str = "id",
    text_field: str | Sequence[str] = "text",
    labels_field: str = "labels",
    encoding: str = "utf-8",
) -> "DocumentReader":
    r"""Open documents for reading; nothing is read until they are iterated over.

    Parameters
    ----------
    source : path or "-"
        A file, a folder (each file in it is one document; hidden files are left out) or
        standard input. Gzip is recognised by its first bytes.
    format : {"jsonl", "csv", "tsv", "parquet", "text"}, optional
        By default what the file's ending says, and JSON lines for standard input.
    id_field, labels_field : str
        Fields of the id and the labels; both may be missing. In CSV and TSV several labels are
        separated by `;` or written as a JSON array. In a folder, `folder` is the file's folder.
    text_field : str or sequence of str
        Field of the text; the texts of several fields are joined by a newline.
    encoding : str
        Of anything but Parquet. Half a surrogate pair in JSON (``"\ud83d"``) becomes U+FFFD.

    Returns
    -------
    DocumentReader
        It raises `InputError` while iterating for what is wrong inside the source.
    """
    name = _STDIN if source == "-" else os.fspath(source)
    if name != _STDIN and not os.path.exists(name):
        raise MissingFileError(f"No file or folder '{name}'. Check the path, or give - for stdin.")
    texts = (text_field,) if isinstance(text_field, str) else tuple(text_field) or ("text",)
    form, encoding = _check_format(name, format), _check_encoding(encoding)
    return DocumentReader(name, form, id_field, texts, labels_field, encoding)


@dataclass(eq=False)
class DocumentReader:
    """An iterable of `Document`; each `iter` starts at the beginning, except on standard input.

    Attributes
    ----------
    name : str
        The source, for messages.
    fraction : float or None
        Share of the source read so far, from 0 to 1; None where its size is not known.
    """

    name: str
    format: str
    id_field: str
    text_fields: tuple[str, ...]
    labels_field: str
    encoding: str
    _done: int = field(default=0, init=False, repr=False)  # bytes, rows or files
    _total: int = field(default=1, init=False, repr=False)
    _file: BufferedReader | None = field(default=None, init=False, repr=False)

    @property
    def fraction(self) -> float | None:
        """Share of the source read so far."""
        if self.name == _STDIN or not self._total:
            return None
        if self._file and not self._file.closed:
            self._done = self._file.tell()
        return min(1.0, self._done / self._total)

    def __iter__(self) -> Iterator[Document]:
        number = self._done = 0
        with closing(self._records()) as records:
            for number, (place, fields) in enumerate(records, 1):
                yield self.document(number, place, fields)
        if not number:
            raise InputError(f"'{self.name}' holds no documents.")
        self._done = self._total

    def _records(self) -> Generator[Record, None, None]:
        if self.format == "folder":
            yield from self._folder()
        elif self.format == "parquet":
            yield from self._parquet()
        else:
            parse = self._table if self.format in ("csv", "tsv") else self._by_line
            with _opened(self.name) as file:
                if self.name != _STDIN:
                    self._total, self._file = os.path.getsize(self.name), file
                yield from parse(_lines(file, self.name, self.encoding))

    def _by_line(self, lines: Iterable[str]) -> Iterator[Record]:
        for number, line in enumerate(lines, 1):
            if line.strip():
                place, line = f"line {number}", line.rstrip("\r\n")
                is_text = self.format == "text"
                yield place, {self.text_fields[0]: line} if is_text else self._object(place, line)

    def _object(self, place: str, line: str) -> dict[str, Any]:
        try:
            value = _parse_json(line)
        except (ValueError, RecursionError) as error:
            reason = str(error).replace("line 1 ", "")  # json was given this one line only
            self._fail(place, f"broken JSON ({reason}). {_JSON_ADVICE}", error)
        if not isinstance(value, dict):
            self._fail(place, f"not a JSON object: {short(value)}. {_JSON_ADVICE}")
        return value

    def _table(self, lines: Iterable[str]) -> Iterator[Record]:
        csv.field_size_limit(2**31 - 1)  # the default refuses texts over 128 KiB
        # Strict, since a quote that is never closed would swallow the rest of the file.
        rows = csv.reader(lines, delimiter="\t" if self.format == "tsv" else ",", strict=True)
        try:
            header = next(filter(None, rows), [])
            if header:
                self.check_columns(header)
            for row in filter(None, rows):
                if len(row) > len(header):
                    problem = f"{len(row)} cells under {len(header)} columns"
                    self._fail(f"line {rows.line_num}", f"{problem}. Quote cells with separators.")
                yield f"line {rows.line_num}", dict(zip(header, row, strict=False))
        except csv.Error as error:
            self._fail(f"line {rows.line_num}", f"broken table ({error}). Mend its quotes.", error)

    def _parquet(self) -> Iterator[Record]:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise missing_package("Reading Parquet", "pyarrow", "parquet") from None
        try:
            # With a buffer, pages are read one by one instead of whole row groups.
            with pq.ParquetFile(self.name, buffer_size=1 << 20) as file:
                self._total = file.metadata.num_rows
                self.check_columns(file.schema_arrow.names)
                for batch in file.iter_batches(batch_size=1024):
                    for fields in batch.to_pylist():
                        self._done += 1
                        yield f"row {self._done}", fields
        except (pa.ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise InputError(f"Cannot read '{self.name}' as Parquet: {reason}.") from error

    def _folder(self) -> Iterator[Record]:
        names = _files_below(self.name)
        self._total = len(names)
        for name in names:
            path = os.path.join(self.name, name)
            with _opened(path) as file:
                text = "".join(_lines(file, path, self.encoding))
            folder = {"folder": os.path.dirname(name)} if "/" in name else {}
            self._done += 1
            yield f"file '{name}'", {**folder, self.id_field: name, self.text_fields[0]: text}

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise for a column that was asked for by name and is not there."""
        wanted = [("text", name) for name in self.text_fields]
        wanted += [("id", self.id_field), ("labels", self.labels_field)]
        for role, name in wanted:
            if name not in columns and (role == "text" or name != role):
                raise InputError(f"'{self.name}' has no column {_not_among(columns, name, role)}")

    def document(self, number: int, place: str, fields: dict[str, Any]) -> Document:
        """Make a document of record `number`, counted from 1, that stands at `place`."""
        key, text = fields.get(self.id_field), self._text(place, fields)
        labels = self._labels(place, fields.get(self.labels_field))
        used = {self.id_field, self.labels_field, *self.text_fields}
        metadata = {name: value for name, value in fields.items() if name not in used}
        if self.format in ("csv", "tsv"):
            metadata = {name: _number_or_text(cell) for name, cell in metadata.items()}
        return Document(str(number if _is_missing(key) else key), text, labels, metadata)

    def _text(self, place: str, fields: dict[str, Any]) -> str:
        values = {name: fields[name] for name in self.text_fields if name in fields}
        if not values:
            self._fail(place, f"no field {_not_among(fields, self.text_fields[0], 'text')}")
        parts = [value for value in values.values() if value is not None]
        if not parts or not all(isinstance(part, str) for part in parts):
            got = ", ".join(f"'{name}': {short(value)}" for name, value in values.items())
            self._fail(place, f"the text must be a string. Got {got}. Mend or remove it.")
        return "\n".join(filter(None, parts))

    def _labels(self, place: str, value: Any) -> tuple[str, ...] | None:
        if self.format in ("csv", "tsv") and value:
            value = self._cell(place, value.strip())
        if _is_missing(value):
            return None
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(label, str | int | float) for label in values):
            self._fail(place, f"labels must be strings or numbers. Got {short(value)}.")
        return tuple(str(v).lower() if isinstance(v, bool) else str(v) for v in values)

    def _cell(self, place: str, cell: str) -> Any:
        """Take the labels in a cell apart."""
        if not cell.startswith("["):
            return [label.strip() for label in cell.split(";") if label.strip()] or None
        try:
            return _parse_json(cell)
        except (ValueError, RecursionError) as error:
            self._fail(place, f'{short(cell)} is no JSON array. Write ["a", "b"] or a;b.', error)

    def _fail(self, place: str, message: str, cause: Exception | None = None) -> NoReturn:
        raise InputError(f"'{self.name}', {place}: {message}") from cause


def _number_or_text(cell: str) -> str | int | float:
    """Read a cell as the number that is written just so, which filters can then compare.

    >>> [_number_or_text(cell) for cell in ("1990", "-2.5", "007", "1.10", "1e3", "")]
    [1990, -2.5, '007', '1.10', '1e3', '']
    """
    for kind in (int, float):
        try:
            number = kind(cell)
        except ValueError:
            continue
        if str(number) == cell and math.isfinite(number) and abs(number) < 2**63:
            return number
    return cell


def _check_format(name: str, format: str | None) -> str:
    if format not in (None, *FORMATS):
        raise InputError(f"format must be one of {', '.join(FORMATS)}. Got {format!r}.")
    if name == _STDIN and format == "parquet":
        raise InputError("Parquet cannot be read from stdin. Save it to a file and give its path.")
    if os.path.isdir(name):
        if format:
            raise InputError(f"A folder holds one document a file, so leave out format={format!r}.")
        return "folder"
    ending = ".jsonl" if name == _STDIN else Path(name.lower().removesuffix(".gz")).suffix
    if not format and ending not in _ENDINGS:
        raise InputError(
            f"Cannot tell the format of '{name}'. Known endings: {', '.join(_ENDINGS)} (and .gz). "
            f"Or name it with format= (--format): {', '.join(FORMATS)}."
        )
    return format or _ENDINGS[ending]


def _check_encoding(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name.removesuffix("-sig")
        if "a\n".encode(name) == b"a\n":  # lines are split before they are decoded
            return name
    except (LookupError, ValueError):
        raise InputError(f"No encoding {encoding!r}. Try utf-8, latin-1 or cp1252.") from None
    raise InputError(f"Cannot read {encoding} by lines. Run: iconv -f {encoding} -t utf-8")


@contextmanager
def _opened(name: str) -> Iterator[BufferedReader]:
    """Open a file or stdin; turn what goes wrong while it is read into a sentence."""
    try:
        if name == _STDIN:
            stdin: Any = sys.stdin.buffer  # a BytesIO where a test replaced it
            yield stdin if hasattr(stdin, "peek") else BufferedReader(stdin)
        else:
            with open(name, "rb") as file:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"'{name}' is cut off or damaged gzip. Copy or pack it again.") from error
    except OSError as error:
        raise InputError(f"Cannot read '{name}': {error.strerror or error}.") from error


def _lines(file: BufferedReader, name: str, encoding: str) -> Iterator[str]:
    """Unzip and decode line by line."""
    is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
    stream = BufferedReader(gzip.GzipFile(fileobj=file)) if is_gzip else file
    for number, raw in enumerate(stream, 1):
        if number == 1 and encoding == "utf-8":
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            line = raw.decode(encoding)
        except UnicodeDecodeError as error:
            problem = f"byte 0x{raw[error.start]:02x} is not {encoding}"
            advice = "Name the encoding, such as encoding='latin-1' (--encoding latin-1)."
            raise InputError(f"'{name}', line {number}: {problem}. {advice}") from error
        yield line


def _parse_json(line: str) -> Any:
    if "\\ud" in line or "\\uD" in line:
        line = _ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], line)
    try:
        return _loads(line)
    except ValueError:  # json takes a little more (NaN), and its sentences are the ones we show
        return json.loads(line)


def _files_below(folder: str) -> list[str]:
    """List the files of a folder tree as sorted relative posix paths."""

    def fail(error: OSError) -> NoReturn:
        raise InputError(f"Cannot read folder '{error.filename}': {error.strerror}.") from error

    found = []
    for root, folders, files in os.walk(folder, onerror=fail, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(root, name) for name in files if not name.startswith("."))
        found += [path.relative_to(folder).as_posix() for path in paths]
    return sorted(found)


def _not_among(names: Collection[str], name: str, role: str) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    guess = f" Did you mean '{close[0]}'?" if close else ""
    there = ", ".join(f"'{other}'" for other in names) or "nothing"
    return f"'{name}'.{guess} There is {there}. Name it with {role}_field= (--{role}-field)."


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or value != value  # NaN: a missing value in pandas

"""Records of a source, format by format: where each stands, and its fields.

No more than one record, or one Parquet batch, is in memory at a time.
"""

import csv
import os
from collections.abc import Generator, Iterator
from io import StringIO
from itertools import chain
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, NoReturn

from vdsh.documents.lines import STDIN, opened, over, read_lines
from vdsh.documents.values import parse_json
from vdsh.errors import InputError, missing_package

if TYPE_CHECKING:
    from vdsh.documents.reader import DocumentReader

EXPORT_MARK = b"vdsh"  # in the schema of Parquet files that `vdsh.export` writes
_JSON_ADVICE = "Write one JSON object a line (`jq -c '.[]'` turns an array into lines)."
_DELIMITERS = ",;\t|"

Record = tuple[str, dict[str, Any]]  # where it stands ("line 3") and its fields


def read_records(reader: "DocumentReader") -> Generator[Record, None, None]:
    """Read the records of a source; note in `reader` how far it is."""
    if reader.format == "folder":
        yield from _folder(reader)
    elif reader.format == "parquet":
        yield from _parquet(reader)
    else:
        parse = {"jsonl": _json_lines, "text": _text_lines}.get(reader.format, _table)
        with opened(reader.name) as file:
            if reader.name != STDIN:
                reader.total, reader.file = os.path.getsize(reader.name), file
            yield from parse(
                reader, read_lines(file, reader.name, reader.encoding, reader.max_document_size)
            )


def _text_lines(reader: "DocumentReader", lines: Iterator[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"line {number}", {reader.text_fields[0]: line.rstrip("\r\n")}


def _json_lines(reader: "DocumentReader", lines: Iterator[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            value = parse_json(line.rstrip("\r\n"))
        except (ValueError, RecursionError) as error:
            reason = str(error).replace("line 1 ", "")  # json was given this one line only
            reader.fail(place, f"broken JSON ({reason}). {_JSON_ADVICE}", error)
        if not isinstance(value, dict):
            reader.fail(place, f"not a JSON object: {short(value)}. {_JSON_ADVICE}")
        yield place, value


def _table(reader: "DocumentReader", lines: Iterator[str]) -> Iterator[Record]:
    csv.field_size_limit(2**31 - 1)  # the default refuses texts over 128 KiB; ours is on the row
    before = size = 0

    def measured() -> Iterator[str]:
        nonlocal size
        for line in chain([first], lines):
            size += len(line)
            if size > reader.max_document_size:
                problem = over(reader.max_document_size)
                reader.fail(f"line {before + 1}", f"{problem} Or is a quote never closed?")
            yield line

    first = ""
    for first in lines:
        if first.strip():
            break
        before += 1
    delimiter = reader.delimiter or _guess_delimiter(first, reader)
    # Strict, since a quote that is never closed would swallow the rest of the file.
    skipped, rows = before, csv.reader(measured(), delimiter=delimiter, strict=True)
    header: list[str] = []
    try:
        for row in rows:
            before, size = skipped + rows.line_num, 0
            if row and not header:
                reader.check_columns(header := row)
            elif len(row) > len(header):
                problem = f"{len(row)} cells under {len(header)} columns"
                reader.fail(f"line {before}", f"{problem}. Quote cells with separators.")
            elif row:
                yield f"line {before}", dict(zip(header, row, strict=False))
    except csv.Error as error:
        place = f"line {skipped + rows.line_num}"
        reader.fail(place, f"broken table ({error}). Mend its quotes.", error)


def _guess_delimiter(header: str, reader: "DocumentReader") -> str:
    """Choose the separator under which the header has the column of the text, then most columns."""
    if reader.format == "tsv":
        return "\t"

    def merit(delimiter: str) -> tuple[bool, int]:
        try:
            cells = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:  # told by the reader, which names the line
            cells = []
        return reader.text_fields[0] in cells, len(cells)

    return max(_DELIMITERS, key=merit)  # the comma where nothing else is better


def _parquet(reader: "DocumentReader") -> Iterator[Record]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise missing_package("Reading Parquet", "pyarrow", "parquet") from None
    try:
        # With a buffer, pages are read one by one instead of whole row groups.
        with pq.ParquetFile(reader.name, buffer_size=1 << 20) as file:
            reader.total, schema = file.metadata.num_rows, file.schema_arrow
            reader.is_export = EXPORT_MARK in (schema.metadata or {})
            reader.check_columns(schema.names)
            dropped = {"code"} if reader.is_export else set(reader.drop_fields)
            columns = [name for name in schema.names if name not in dropped]
            for batch in file.iter_batches(batch_size=256, columns=columns):
                yield from _rows(reader, batch)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"Cannot read '{reader.name}' as Parquet: {reason}.") from error


def _rows(reader: "DocumentReader", batch: Any) -> Iterator[Record]:
    """Take a batch apart into rows."""
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            columns[name] = _values(column)
        except (ValueError, OverflowError, KeyError) as error:  # year 10000, an unknown time zone
            rows = f"rows {reader.done + 1} to {reader.done + len(batch)}"
            reader.fail(rows, f"field '{name}' cannot be read ({error}). {drop(name)}", error)
    for values in zip(*columns.values(), strict=True):
        reader.done += 1
        place = f"row {reader.done}"
        size = sum(len(value) for value in values if isinstance(value, str | bytes))
        if size > reader.max_document_size:
            reader.fail(place, over(reader.max_document_size))
        yield place, dict(zip(columns, values, strict=True))


def _values(column: Any) -> list[Any]:
    """Give the values of a column; nanoseconds, which Python does not have, are cut off."""
    import pyarrow as pa

    kind, values = column.type, column
    if kind == pa.duration("ns"):
        values = column.cast(pa.duration("us"), safe=False)
    elif pa.types.is_timestamp(kind) and kind.unit == "ns":
        values = column.cast(pa.timestamp("us", kind.tz), safe=False)
    found: list[Any] = values.to_pylist()
    return found


def _folder(reader: "DocumentReader") -> Iterator[Record]:
    names = _files_below(reader.name)
    reader.total = len(names)
    for name in names:
        text = _whole_file(reader, os.path.join(reader.name, name))
        folder = {"folder": os.path.dirname(name)} if "/" in name else {}
        reader.done += 1
        yield f"file '{name}'", {**folder, reader.id_field: name, reader.text_fields[0]: text}


def _whole_file(reader: "DocumentReader", path: str) -> str:
    text = StringIO()
    with opened(path) as file:
        for line in read_lines(file, path, reader.encoding, reader.max_document_size):
            text.write(line)
            if text.tell() > reader.max_document_size:
                raise InputError(f"'{path}': {over(reader.max_document_size)}")
    return text.getvalue()


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


def drop(name: str) -> str:
    """Say how a field is left out."""
    return f"Leave it out with drop_field='{name}' (--drop-field {name})."

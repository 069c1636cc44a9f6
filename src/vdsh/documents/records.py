"""Records of a source, format by format: where each stands, its fields, and which are text.

No more than one record, or one Parquet batch, is in memory at a time.
"""

import csv
import os
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from itertools import chain
from reprlib import repr as short
from typing import Any

from vdsh.documents.folder import read_folder
from vdsh.documents.source import (
    STDIN,
    Record,
    Source,
    drop,
    is_utf_8_besides,
    opened,
    over,
    read_lines,
)
from vdsh.documents.values import parse_json
from vdsh.errors import InputError, needing

EXPORT_MARK = b"vdsh"  # in the schema of Parquet files that `vdsh.export` writes
_JSON_ADVICE = "Write one JSON object a line (`jq -c '.[]'` turns an array into lines)."
_DELIMITERS = ",;\t|"
SEEN = 100  # records that tell which fields are text
_PROSE = 4  # words of letters in a cell, on average


def read_records(source: Source) -> Generator[Record, None, None]:
    """Read the records of a source; note in `source` how far it is."""
    if source.format == "folder":
        yield from read_folder(source)
    elif source.format == "parquet":
        yield from _parquet(source)
    else:
        parse = {"jsonl": _json_lines, "text": _text_lines}.get(source.format, _table)
        encoding = source.encoding
        # A pipe could be read only once.
        if os.path.isfile(source.name) and is_utf_8_besides(source.name, encoding):
            encoding = "utf-8"
        with opened(source.name) as file:
            if source.name != STDIN:
                source.total, source.file = os.path.getsize(source.name), file
            lines = read_lines(file, source.name, encoding, source.max_document_size)
            yield from parse(source, lines)


def _text_lines(source: Source, lines: Iterator[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"line {number}", {(source.text_fields or ("text",))[0]: line.rstrip("\r\n")}


def _json_lines(source: Source, lines: Iterator[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            value = parse_json(line.rstrip("\r\n"))
        except (ValueError, RecursionError) as error:
            reason = str(error).replace("line 1 ", "")  # json was given this one line only
            source.fail(place, f"broken JSON ({reason}). {_JSON_ADVICE}", error)
        if not isinstance(value, dict):
            source.fail(place, f"not a JSON object: {short(value)}. {_JSON_ADVICE}")
        yield place, value


def _table(source: Source, lines: Iterator[str]) -> Iterator[Record]:
    csv.field_size_limit(2**31 - 1)  # the default refuses texts over 128 KiB; ours is on the row
    before = size = 0

    def measured() -> Iterator[str]:
        nonlocal size
        for line in chain([first], lines):
            size += len(line)
            if size > source.max_document_size:
                problem = over(source.max_document_size)
                source.fail(f"line {before + 1}", f"{problem} Or is a quote never closed?")
            yield line

    first = ""
    for first in lines:
        if first.strip():
            break
        before += 1
    delimiter = source.delimiter or _guess_delimiter(first, source)
    # Strict, since a quote that is never closed would swallow the rest of the file.
    skipped, rows = before, csv.reader(measured(), delimiter=delimiter, strict=True)
    header: list[str] = []
    try:
        for row in rows:
            before, size = skipped + rows.line_num, 0
            if row and not header:
                source.check_columns(header := row)
            elif len(row) > len(header):
                problem = f"{len(row)} cells under {len(header)} columns"
                source.fail(f"line {before}", f"{problem}. Quote cells with separators.")
            elif row:
                yield f"line {before}", dict(zip(header, row, strict=False))
    except csv.Error as error:
        place = f"line {skipped + rows.line_num}"
        source.fail(place, f"broken table ({error}). Mend its quotes.", error)


def _guess_delimiter(header: str, source: Source) -> str:
    """Choose the separator under which the header has the column of the text, then most columns."""
    if source.format == "tsv":
        return "\t"

    def merit(delimiter: str) -> tuple[bool, int]:
        try:
            cells = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:  # told by the source, which names the line
            cells = []
        return not {"text", *source.text_fields}.isdisjoint(cells), len(cells)

    return max(_DELIMITERS, key=merit)  # the comma where nothing else is better


def _parquet(source: Source) -> Iterator[Record]:
    with needing("Reading Parquet", "pyarrow", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        # With a buffer, pages are read one by one instead of whole row groups.
        with pq.ParquetFile(source.name, buffer_size=1 << 20) as file:
            source.total, schema = file.metadata.num_rows, file.schema_arrow
            source.is_export = EXPORT_MARK in (schema.metadata or {})
            source.check_columns(schema.names)
            dropped = {"code"} if source.is_export else set(source.drop_fields)
            columns = [name for name in schema.names if name not in dropped]
            for batch in file.iter_batches(batch_size=256, columns=columns):
                yield from _rows(source, batch)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"Cannot read '{source.name}' as Parquet: {reason}.") from error


def _rows(source: Source, batch: Any) -> Iterator[Record]:
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            columns[name] = _values(column)
        except (ValueError, OverflowError, KeyError) as error:  # year 10000, an unknown time zone
            rows = f"rows {source.done + 1} to {source.done + len(batch)}"
            source.fail(rows, f"field '{name}' cannot be read ({error}). {drop(name)}", error)
    for values in zip(*columns.values(), strict=True):
        source.done += 1
        place = f"row {source.done}"
        size = sum(len(value) for value in values if isinstance(value, str | bytes))
        if size > source.max_document_size:
            source.fail(place, over(source.max_document_size))
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


def guess_text_fields(
    records: Sequence[Mapping[str, Any]], others: Collection[str]
) -> tuple[str, ...]:
    """Choose the fields of the text: `text`, or all prose, or else the longest; none of `others`.

    Prose is a field whose cells have several words and do not repeat from record to record.
    A field `title` is searched as metadata anyway, so it is text only where there is no other.
    """
    cells: dict[str, list[str]] = {}
    for name, value in (pair for record in records for pair in record.items()):
        if isinstance(value, str) and value and name not in others:
            cells.setdefault(name, []).append(value)
    if "text" in cells or not cells:
        return ("text",)
    words = {name: _count_words(some) for name, some in cells.items()}
    prose = [name for name in cells if words[name] >= _PROSE and name != "title"]
    longest = max(cells, key=lambda name: (words[name], sum(map(len, cells[name]))))
    return tuple(prose) or (longest,)


def _count_words(cells: Sequence[str]) -> float:
    """Count the words of letters in a cell on average; 0 where half of the cells repeat."""
    repeat = 2 * len(set(cells)) <= len(cells)
    words = " ".join(cells).split()
    return 0 if repeat else sum(word.strip(".,;:!?()'\"").isalpha() for word in words) / len(cells)

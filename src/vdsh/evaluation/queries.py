"""Queries with the documents that are relevant to them, from files people have."""

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from reprlib import repr as short
from typing import Any, NamedTuple

from vdsh.documents import DocumentReader, read_documents
from vdsh.documents.records import read_records
from vdsh.errors import InputError
from vdsh.text.word_counter import is_missing

_ADVICE = (
    'Write JSON lines such as {"query": "mars rover", "relevant": ["id1", "id2"]}, a table with '
    "the columns query and relevant, or give judgements with qrels= (--qrels)."
)
_QRELS_ADVICE = "Write `query-id 0 document-id gain`, as TREC does, or the last three, as BEIR."


class Query(NamedTuple):
    """A text to look for, and what should be found.

    Attributes
    ----------
    text : str
    relevant : mapping of str to float
        The ids of the relevant documents, each with its gain: the larger, the more relevant. A
        gain of 0 or less says that a document is not relevant.
    id : str
        Its name, for reports.
    """

    text: str
    relevant: Mapping[str, float]
    id: str = ""


def read_queries(
    source: str | os.PathLike[str],
    qrels: str | os.PathLike[str] | None = None,
    *,
    text_field: str | Sequence[str] | None = None,
    labels_field: str = "relevant",
    **reading: Any,
) -> list[Query]:
    """Read queries and their relevant documents.

    Parameters
    ----------
    source : path or "-"
        Without `qrels`, JSON lines, CSV, TSV or Parquet with the fields `query` and `relevant`:
        a list of ids, or an object of ids and gains; in a table, ids with spaces between, or a
        JSON array. A query may stand in several rows, one a relevant document, where `gain` may
        be a column. Rows of one `id`, or without ids of one text, are one query.

        With `qrels`, topics: JSON lines or CSV with the fields `id` (or `_id`) and `text`, or
        lines of an id, a tab and a text.
    qrels : path, optional
        Judgements: lines of query id, anything, document id and gain, as TREC has them, or of
        query id, document id and gain below a header, as BEIR has them.
    text_field, labels_field : str
        Fields of the query and of its relevant ids, where they have other names.
    **reading
        As `read_documents` takes it: `id_field`, `format`, `encoding`, ...

    Returns
    -------
    list of Query
        In the order of the source. Topics that `qrels` does not name have no relevant documents.
    """
    text_field = text_field or ("query" if qrels is None else "text")
    if qrels is not None:
        topics = _topics(read_documents(source, text_field=text_field, **reading))
        judged = _read_qrels(qrels, reading.get("encoding", "utf-8"))
        if not topics.keys() & judged.keys():
            raise InputError(
                f"'{os.fspath(qrels)}' judges none of the queries: it names {short(min(judged))}, "
                f"they are called {short(min(topics))}. Are the ids in another field (--id-field)?"
            )
        return [Query(text, judged.get(id, {}), id) for id, text in topics.items()]
    reader = read_documents(source, text_field=text_field, labels_field=labels_field, **reading)
    if reader.format in ("text", "folder"):
        raise InputError(f"'{reader.name}' does not say which documents are relevant. {_ADVICE}")
    return _merged(reader)


def check_queries(queries: Iterable[Query]) -> list[Query]:
    """Keep of each query the documents with a gain above 0; raise for what cannot be asked."""
    kept = []
    for number, query in enumerate(queries, 1):
        name = query.id or str(number)
        if not isinstance(query.text, str) or not query.text.strip():
            raise InputError(f"Query {name}: the text must not be empty. Got {query.text!r}.")
        if not isinstance(query.relevant, Mapping):
            raise InputError(
                f"Query {name}: relevant must be a dict of ids and gains, such as {{'id': 1}}. "
                f"Got {short(query.relevant)}."
            )
        gains = {id: gain for id, gain in query.relevant.items() if gain > 0}
        kept.append(Query(query.text, gains, name))
    return kept


def _merged(reader: DocumentReader) -> list[Query]:
    """Read records with query and relevant ids; those of one query become one."""
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for place, id, text, fields in _records(reader):
        if reader.labels_field not in fields:
            reader.fail(place, f"no field '{reader.labels_field}'. {_ADVICE}")
        gains = _gains(reader, place, fields[reader.labels_field], fields.get("gain"))
        first, known = found.setdefault(id or text, (text, {}))
        if first != text:
            reader.fail(place, f"query '{id}' was {short(first)} before. Give each its own id.")
        for twice in known.keys() & gains.keys():
            reader.fail(place, f"'{twice}' is named twice for {short(text)}. Remove one.")
        known.update(gains)
    return [Query(text, gains, key) for key, (text, gains) in found.items()]


def _records(reader: DocumentReader) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Read place, id ("" where there is none), text and other fields of each query."""
    number, beside = 0, {reader.labels_field, "gain"}
    with closing(read_records(reader)) as records:
        for number, (place, fields) in enumerate(records, 1):
            own = {name: value for name, value in fields.items() if name not in beside}
            if reader.id_field == "id" and "_id" in own:
                own.setdefault("id", own["_id"])
            text = reader.document(number, place, own).text.strip()
            if not text:
                reader.fail(place, "the query is empty. Write one, or remove it.")
            id = own.get(reader.id_field)
            yield place, "" if _is_empty(id) else str(id), text, fields
    if not number:
        raise InputError(f"'{reader.name}' holds no queries. {_ADVICE}")


def _gains(reader: DocumentReader, place: str, value: Any, gain: Any) -> dict[str, float]:
    """Read the relevant ids of a record, with their gains."""
    ids = _cell(reader, place, value) if reader.format in ("csv", "tsv") else value
    if not isinstance(ids, dict):
        ids = ids if isinstance(ids, list) else [] if _is_empty(ids) else [ids]
        if any(isinstance(id, bool) or not isinstance(id, str | int) for id in ids):
            reader.fail(place, f"relevant must be a list of ids. Got {short(value)}.")
        if len(set(map(str, ids))) < len(ids):
            reader.fail(place, f"relevant names an id twice. Got {short(value)}.")
        ids = dict.fromkeys(map(str, ids), 1 if _is_empty(gain) else gain)
    if not ids:
        reader.fail(place, "relevant is empty. Name a document that should be found.")
    return {id: _gain(reader, place, each) for id, each in ids.items()}


def _cell(reader: DocumentReader, place: str, cell: str | None) -> Any:
    """Take the ids in a cell of a table apart."""
    cell = (cell or "").strip()
    if not cell.startswith(("[", "{")):
        return list(filter(None, re.split(r"[;\s]+", cell)))
    try:
        return json.loads(cell)
    except ValueError as error:
        reader.fail(place, f'{short(cell)} is not JSON. Write ["a", "b"], or a b.', error)


def _gain(reader: DocumentReader, place: str, value: Any) -> float:
    if not _is_number(value):
        reader.fail(place, f"a gain must be a number. Got {short(value)}.")
    return float(value)


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _topics(reader: DocumentReader) -> dict[str, str]:
    topics: dict[str, str] = {}
    reader.format = "text" if reader.format == "tsv" else reader.format
    for place, id, text, _ in _records(reader):
        if reader.format == "text":
            line = text
            id, _, text = (part.strip() for part in line.partition("\t"))
            if not text:
                reader.fail(place, f"not an id, a tab and a text: {short(line)}.")
        if not id:
            advice = "Name it with id_field= (--id-field)."
            reader.fail(place, f"no id in the field '{reader.id_field}'. {advice}")
        if id in topics:
            reader.fail(place, f"query '{id}' stands there twice. Remove one.")
        topics[id] = text
    return topics


def _read_qrels(path: str | os.PathLike[str], encoding: str) -> dict[str, dict[str, float]]:
    """Read the gains of documents, by query."""
    found: dict[str, dict[str, float]] = {}
    reader = read_documents(path, format="text", encoding=encoding)
    with closing(read_records(reader)) as records:
        for number, (place, fields) in enumerate(records):
            line = fields["text"]
            cells = line.strip().split("\t" if "\t" in line else None)
            if len(cells) not in (3, 4):
                reader.fail(place, f"{len(cells)} columns: {short(line)}. {_QRELS_ADVICE}")
            if not number and len(cells) == 3 and not _is_number(cells[2]):
                continue  # BEIR's header
            query, id = cells[0].strip(), cells[-2].strip()
            gains = found.setdefault(query, {})
            if id in gains:
                reader.fail(place, f"'{id}' is judged twice for query '{query}'. Remove one.")
            gains[id] = _gain(reader, place, cells[-1])
    if not found:
        raise InputError(f"'{reader.name}' holds no judgements. {_QRELS_ADVICE}")
    return found


def _is_empty(value: Any) -> bool:
    return value == "" or is_missing(value)

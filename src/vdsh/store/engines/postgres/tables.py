r"""The tables of a store in PostgreSQL, and the statements on them; names are quoted by psycopg.

The column `fields` holds what filters look at: the metadata values that can be compared, as jsonb.
PostgreSQL's texts cannot hold the character NUL, so all texts are escaped in a way that keeps their
order: NUL is written as \x01\x01 and \x01 as \x01\x02.
"""

import json
from collections.abc import Mapping
from typing import Any

from psycopg.sql import SQL, Composed, Identifier

from vdsh.errors import InputError
from vdsh.store.where import kind_of

LONGEST_NAME = 50  # bytes; PostgreSQL cuts names off at 63, and ours get endings
NAMES = ("documents", "meta", "fields", "models", "totals", "key_values", "passages", "vocabulary")
INDEXES = {"words": "_words", "passage_words": "_p_words", "passage_ids": "_p_ids"}
MEMORY = "1GB"  # at most, while an index is made
CONTROL = "\\u000"  # how JSON writes what must be escaped, and a little more
WHOLE = 2**53  # floats from here on are whole numbers

# `metadata` is the JSON as it was given, `fields` what filters look at; `words` our
# tokens, see `vectors`, `n_words` their number, `n_before` that of the text before this one.
SCHEMA = (
    'CREATE TABLE {documents} (id text COLLATE "C" PRIMARY KEY, text text NOT NULL,'
    " labels text[], metadata json NOT NULL, fields jsonb NOT NULL, code {bits} NOT NULL,"
    " check_sum bigint NOT NULL, code_sum bigint NOT NULL,"
    " words tsvector NOT NULL, n_words int NOT NULL, n_before int)",
    "CREATE TABLE {meta} (key text PRIMARY KEY, value text NOT NULL)",
    'CREATE TABLE {fields} (name text COLLATE "C" PRIMARY KEY)',
    "CREATE TABLE {models} (fingerprint text, file text, piece int, data bytea NOT NULL,"
    " PRIMARY KEY (fingerprint, file, piece))",
    'CREATE TABLE {key_values} (key text COLLATE "C" PRIMARY KEY, value text NOT NULL)',
    "CREATE TABLE {totals} (documents bigint NOT NULL, words bigint NOT NULL)",
    'CREATE TABLE {passages} (id text COLLATE "C" NOT NULL'
    " REFERENCES {documents} ON DELETE CASCADE, first int NOT NULL, last int NOT NULL,"
    " words tsvector NOT NULL, n_words int NOT NULL)",
    'CREATE TABLE {vocabulary} (word text COLLATE "C" PRIMARY KEY)',
    "CREATE INDEX {words} ON {documents} USING gin (words)",
    "CREATE INDEX {passage_words} ON {passages} USING gin (words)",
    "CREATE INDEX {passage_ids} ON {passages} (id)",
)
# The passages of long texts, in the place of those of the texts before.
FORGET_PASSAGES = "DELETE FROM {passages} WHERE id = ANY(%s::text[])"
ADD_PASSAGES = """
INSERT INTO {passages} SELECT id, first, last, words::tsvector, n_words
FROM json_to_recordset(%s::json) AS new(id text, first int, last int, words text, n_words int)
"""
_UPSERT = """
INSERT INTO {documents} AS old
  (id, text, labels, metadata, fields, code, check_sum, code_sum, words, n_words)
SELECT id, text,
  CASE WHEN labels IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(labels::jsonb)) END,
  metadata::json, fields::jsonb, code::{bits}, check_sum, code_sum, words::tsvector, n_words
FROM json_to_recordset(%s::json) AS new(id text, text text, labels text, metadata text,
  fields text, code text, check_sum bigint, code_sum bigint, words text, n_words int)
ON CONFLICT (id) DO UPDATE SET text = excluded.text, labels = excluded.labels,
  metadata = excluded.metadata, fields = excluded.fields, code = excluded.code,
  check_sum = excluded.check_sum, code_sum = excluded.code_sum,
  words = excluded.words, n_words = excluded.n_words, n_before = old.n_words
RETURNING n_words, n_before
"""
_DELETE = """
DELETE FROM {documents} WHERE id = ANY(%s::text[])
RETURNING NULL::int AS n_words, n_words AS n_before
"""
# Each writer adds a row to the totals and takes over those that no other holds: so none waits.
_NOTED = """
WITH changed AS (CHANGE), earlier AS (
  DELETE FROM {totals} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {totals} FOR UPDATE SKIP LOCKED))
  RETURNING documents, words
), noted AS (
  INSERT INTO {totals} SELECT sum(documents), sum(words) FROM (
    SELECT documents, words FROM earlier UNION ALL
    SELECT count(n_words) - count(n_before),
      coalesce(sum(n_words), 0) - coalesce(sum(n_before), 0) FROM changed
  ) AS together
) SELECT count(*) FROM changed
"""
UPSERT = _NOTED.replace("CHANGE", _UPSERT)  # of a batch as a JSON array of objects
DELETE = _NOTED.replace("CHANGE", _DELETE)  # of documents by their ids
NOTE_FIELDS = "INSERT INTO {fields} SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"
NOTE_LANGUAGE = "INSERT INTO {meta} VALUES ('language', %s) ON CONFLICT DO NOTHING"
NOTE_WORDS = "INSERT INTO {vocabulary} SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"
# Parameters: the code, those of the condition, and what the query has besides.
NEAREST = """
SELECT id, code, bit_count(code # %s::{bits})::int AS distance FROM {documents} WHERE CONDITION
ORDER BY distance, id LIMIT %s
"""
WITHIN = """
SELECT id, code, distance, count(*) OVER () AS total FROM (
  SELECT id, code, bit_count(code # %s::{bits})::int AS distance FROM {documents} WHERE CONDITION
) AS of_all WHERE distance <= %s ORDER BY distance, id LIMIT %s
"""


class Tables:
    """The tables of one store.

    `name` is that of the documents' table, with its schema in front where it is not the default
    one; the other tables get endings.
    """

    def __init__(self, name: str) -> None:
        parts = name.split(".")
        if not all(parts) or len(parts) > 2 or "\x00" in name or len(name.encode()) > LONGEST_NAME:
            raise InputError(
                f"?table= must be a name, or schema.name, of up to {LONGEST_NAME} bytes. "
                f"Got '{name}'."
            )
        *schema, table = parts
        self.name = name
        self._table = table
        ours = {name: f"{table}_{name}" for name in NAMES} | {"documents": table}
        self._names = {name: Identifier(*schema, one) for name, one in ours.items()}
        # Quoted, the documents' first and the meta table second.
        self.all = [name.as_string(None) for name in self._names.values()]
        others = INDEXES | {"codes": "_codes", "forget": "_forget"}
        self._names |= {name: Identifier(table + ending) for name, ending in others.items()}
        self._names["forget_function"] = Identifier(*schema, f"{table}_forget")

    def filter_index(self, ending: str) -> str:
        """Name an index for filters."""
        return f"{self._table}_f{ending}"

    def sql(self, query: str, n_bits: int = 8, **more: Any) -> Composed:
        """Put the tables' names, and the type of codes, into a statement."""
        columns = SQL("id, text, labels, metadata::text, code, check_sum, code_sum")
        bits = SQL(f"bit({int(n_bits)})" if n_bits else "bit varying")  # which may be empty
        return SQL(query).format(**self._names, **more, columns=columns, bits=bits)


def escape(text: str) -> str:
    r"""Write a text without NUL.

    >>> unescape(escape("a\0b")) == "a\0b"
    True
    """
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def unescape(text: str) -> str:
    """Read what `escape` wrote."""
    return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")


def fields_json(metadata: Mapping[str, Any], written: str) -> str:
    """Write the column `fields` of a document; most often that is the metadata as written."""
    if CONTROL not in written and all(isinstance(v, str | int | None) for v in metadata.values()):
        return written
    return json.dumps({escape(name): _comparable(value) for name, value in metadata.items()})


def _comparable(value: Any) -> Any:
    kind = kind_of(value)
    if kind == "text":
        return escape(value)
    if isinstance(value, float) and abs(value) >= WHOLE:
        return int(value)  # the number itself, not the shortest one that rounds to it
    return {} if kind is None else value


def json_of(value: Any) -> str:
    """Write a value as `fields` have it; what no JSON can hold is beyond all that they have."""
    try:
        return json.dumps(_comparable(value))
    except (OverflowError, ValueError):  # endless, or thousands of digits
        return "1e5000" if value > 0 else "-1e5000"

"""Whether the rows of a store in a folder are as they were written, by their check sums."""

import json
from collections.abc import Iterator
from sqlite3 import Connection

from vdsh.search.id_kinds import show
from vdsh.store.check_sums import sum_of, sum_of_code
from vdsh.store.rows import REPLACE

MOST_NAMED = 10  # damaged documents in a sentence
RESTORE = "Restore a backup, or index the documents into a new store."
# Texts come as bytes: damaged ones need not be UTF-8. A damaged value may also be of another type.
DOCUMENTS = """
SELECT CAST(id AS BLOB), CAST(text AS BLOB), CAST(labels AS BLOB), CAST(metadata AS BLOB), code,
check_sum, code_sum, typeof(id) = 'text' AND typeof(text) = 'text' AND typeof(metadata) = 'text'
AND typeof(labels) IN ('text', 'null') AND typeof(code) = 'blob' FROM documents ORDER BY row
"""
# Of each table: what is damaged, and its rows, the check sum last.
VALUES = {
    "What the store says about itself is": (
        "SELECT CAST(key AS BLOB), CAST(value AS BLOB), check_sum FROM meta"
    ),
    "What the store remembers of its sources is": (
        "SELECT CAST(key AS BLOB), CAST(value AS BLOB), check_sum FROM key_values"
    ),
    "The store's models are": (
        "SELECT CAST(fingerprint AS BLOB), CAST(file AS BLOB), CAST(piece AS BLOB),"
        " CAST(data AS BLOB), check_sum FROM models"
    ),
}
NEXT_CODES = "SELECT CAST(code AS BLOB), code_sum FROM next_codes"


def wrong_rows(connection: Connection) -> Iterator[str]:
    """Say which rows are not as they were written, and what to do."""
    yield from _wrong_documents(connection)
    for what, query in VALUES.items():
        rows = connection.execute(query)
        if any(sum_of(*columns) != check_sum for *columns, check_sum in rows):
            yield f"{what} damaged. {RESTORE}"
    if any(sum_of_code(code) != code_sum for code, code_sum in connection.execute(NEXT_CODES)):
        yield "Codes of an unfinished run of learning are damaged. vdsh compact drops them."


def _wrong_documents(connection: Connection) -> Iterator[str]:
    """Look at all documents, and whether the store knows the fields that they have."""
    damaged: list[str] = []
    fields: set[str] = set()
    for *columns, code, check_sum, code_sum, are_typed in connection.execute(DOCUMENTS):
        id, _, _, metadata = columns
        if not are_typed or (sum_of(*columns), sum_of_code(code)) != (check_sum, code_sum):
            damaged.append(show(bytes(id or b"").decode(errors="replace")))
        elif metadata != b"{}":
            fields.update(json.loads(metadata))
    if damaged:
        names = ", ".join(damaged[:MOST_NAMED])
        n_more = len(damaged) - MOST_NAMED
        more = f" and {n_more:,} more" if n_more > 0 else ""
        one = len(damaged) == 1
        count = "1 document is" if one else f"{len(damaged):,} documents are"
        replace = REPLACE if one else REPLACE.replace(" it ", " them ")
        yield f"{count} damaged: {names}{more}. {replace}"
    known = {name for (name,) in connection.execute("SELECT CAST(name AS BLOB) FROM fields")}
    if not {name.encode() for name in fields} <= known:
        yield f"The list of the documents' fields is damaged. {RESTORE}"

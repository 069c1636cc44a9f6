"""The tables of a store in a folder, word for word; a file with any other is refused."""

from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection

from vdsh.store.check_sums import sum_of

# A document that is replaced gets a new row, and the old row is noted among the tombstones. So an
# index that knows the last row and tombstone it has seen can ask for what came after them. Old
# tombstones are forgotten (`IndexCache.forget_tombstones`); an index that needs them is made anew.
# Rows have check sums (`vdsh.store.check_sums`) of all that stands before them; word segments have
# theirs inside.
META = (
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL, check_sum INTEGER NOT NULL)"
    " WITHOUT ROWID"
)
TABLES = (
    META,
    "CREATE TABLE documents(row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,"
    " text TEXT NOT NULL, labels TEXT, metadata TEXT NOT NULL, code BLOB NOT NULL,"
    " check_sum INTEGER NOT NULL, code_sum INTEGER NOT NULL)",
    "CREATE TABLE tombstones(seq INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL,"
    " id TEXT NOT NULL)",
    "CREATE TABLE fields(name TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE models(fingerprint TEXT, file TEXT, piece INTEGER, data BLOB NOT NULL,"
    " check_sum INTEGER NOT NULL, PRIMARY KEY(fingerprint, file, piece))",
    "CREATE TABLE key_values(key TEXT PRIMARY KEY, value TEXT NOT NULL,"
    " check_sum INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE next_codes(row INTEGER PRIMARY KEY, code BLOB NOT NULL,"
    " code_sum INTEGER NOT NULL)",
)
SEQUENCE = "CREATE TABLE sqlite_sequence(name,seq)"  # made by SQLite
WORDS = (
    "CREATE TABLE words(segment INTEGER PRIMARY KEY, first INTEGER NOT NULL,"
    " span INTEGER NOT NULL, docs INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE word_blocks(segment INTEGER NOT NULL, block INTEGER NOT NULL,"
    " data BLOB NOT NULL, PRIMARY KEY(segment, block))",
    "CREATE TABLE word_tombstones(segment INTEGER PRIMARY KEY, places BLOB NOT NULL)",
)
FILTERS = (  # made when a field is first indexed
    "CREATE TABLE filter_fields(field INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL,"
    " last INTEGER NOT NULL)",
    "CREATE TABLE filters(field INTEGER NOT NULL, value NOT NULL, row INTEGER NOT NULL,"
    " PRIMARY KEY (field, value, row)) WITHOUT ROWID",
)
MOST = 100  # things in a schema: ours has a fifth of that
LONGEST = 1000  # characters of a statement


def read_schema(connection: Connection) -> set[str]:
    """Read what tables, views, triggers and indexes there are; those of keys are left out."""
    query = "SELECT substr(sql, 1, ?) FROM sqlite_master WHERE sql IS NOT NULL LIMIT ?"
    return {sql for (sql,) in connection.execute(query, (LONGEST, MOST))}


def make_anew(connection: Connection, statements: Sequence[str]) -> None:
    """Make tables in the place of those that are there."""
    for statement in statements:
        name = statement.removeprefix("CREATE TABLE ").partition("(")[0]
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(statement)


def write_values(connection: Connection, table: str, values: Iterable[tuple[str, str]]) -> None:
    """Write values by their keys, with their check sums."""
    rows = [(key, value, sum_of(key, value)) for key, value in values]
    connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)


def note_facts(connection: Connection, facts: Mapping[str, str]) -> None:
    """Write what the store says about itself."""
    write_values(connection, "meta", facts.items())


def is_ours(found: set[str]) -> bool:
    """Say whether a schema is that of a store: views and generated columns could go on for ever."""
    needed = {SEQUENCE, *TABLES, *WORDS}
    return needed <= found <= {*needed, *FILTERS}

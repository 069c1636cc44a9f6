"""A folder: SQLite holds everything, an index in memory answers searches.

`schema` has the tables, `database` the file, `models` the models and new codes in it; `cache` is
the index that follows its documents, `snapshot` one state, searched, `where` filters as SQLite
conditions, and `engine` puts them together.
"""

from vdsh.store.engines.sqlite.engine import Sqlite

__all__ = ["Sqlite"]

"""A folder: SQLite holds everything, an index in memory answers searches.

`database` is the SQLite file, `cache` the index that follows its table, `models` its models, `snapshot` one state,
searched, `where` filters as SQLite conditions, and `engine` puts them together.
"""

from vdsh.store.engines.sqlite.engine import Sqlite

__all__ = ["Sqlite"]

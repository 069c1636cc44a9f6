"""The store in a folder.

`database` is the SQLite file, `mirror` the index that follows its table, `snapshot` one state,
searched, `where` filters as SQLite conditions, and `store` puts them together.
"""

from vdsh.store.local.store import LocalStore

__all__ = ["LocalStore"]

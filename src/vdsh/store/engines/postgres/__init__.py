"""PostgreSQL, with or without pgvector.

`engine` fills in what a `Store` asks for, with the statements of `tables`, in transactions of
a `session`; `where` makes conditions of filters.
"""

from vdsh.store.engines.postgres.engine import Postgres

__all__ = ["Postgres"]

"""PostgreSQL, with or without pgvector.

`engine` fills in what a `Store` asks for, with the statements of `tables`, in transactions of
a `session`; `where` makes conditions of filters.
"""

from vdsh.errors import missing_package

try:
    import psycopg  # noqa: F401
except ImportError as _error:
    raise missing_package("A store in PostgreSQL", "psycopg", "postgres") from _error
from vdsh.store.engines.postgres.engine import Postgres

__all__ = ["Postgres"]

"""PostgreSQL.

`engine` fills in what a `Store` asks for, with the statements of `tables`, in transactions of
a `session`; `filters` makes conditions of filters.
"""

from vdsh.errors import needing

with needing("A store in PostgreSQL", "psycopg", "postgres"):
    import psycopg  # noqa: F401
from vdsh.store.engines.postgres.engine import Postgres

__all__ = ["Postgres"]

"""What is used of psycopg, imported in one place that says how to install it."""

from vdsh.errors import missing_package

try:
    import psycopg
    from psycopg import Connection, Cursor
    from psycopg.sql import SQL, Composed, Identifier, Literal
except ImportError as _error:
    raise missing_package("A store in PostgreSQL", "psycopg", "postgres") from _error

__all__ = ["SQL", "Composed", "Connection", "Cursor", "Identifier", "Literal", "psycopg"]

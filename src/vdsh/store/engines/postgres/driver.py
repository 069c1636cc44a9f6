"""What is used of psycopg, imported in one place that says how to install it."""

from vdsh.errors import needing

with needing("A store in PostgreSQL", "psycopg", "postgres"):
    import psycopg
    from psycopg import Connection, Cursor
    from psycopg.sql import SQL, Composed, Identifier, Literal

__all__ = ["SQL", "Composed", "Connection", "Cursor", "Identifier", "Literal", "psycopg"]

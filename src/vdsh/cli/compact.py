"""`vdsh compact`: give back the space of what was deleted."""

import typer

from vdsh.cli import options

EXAMPLE = "Example: vdsh compact news-store"


def command(store: options.Store) -> None:
    """Write a store anew without what was deleted or replaced; it needs its size in free space.

    Models that the store had before go, too. A server keeps the space of documents for new ones.
    """
    from vdsh.store import open_store, without_password

    with open_store(store) as opened:
        before = opened.info()["bytes"]
        opened.compact()
        after = opened.info()["bytes"]
    shown = without_password(store)
    if after is None:
        typer.echo(f"{shown} has no older models any more.")
    else:
        typer.echo(f"{shown} takes {after:,} bytes; before it were {before:,}.")

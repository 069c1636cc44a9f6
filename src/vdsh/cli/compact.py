"""`vdsh compact`: give back the space of what was deleted."""

import typer

from vdsh.cli import options

EXAMPLE = "Example: vdsh compact news-store"


def command(store: options.Store) -> None:
    """Write a store anew without what was deleted or replaced; it needs its size in free space."""
    from vdsh.store import open_store

    with open_store(store) as opened:
        before = opened.info()["bytes"]
        opened.compact()
        after = opened.info()["bytes"]
    typer.echo(f"{store} takes {after:,} bytes; before it were {before:,}.")

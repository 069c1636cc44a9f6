"""`vdsh restore`: a store out of a backup."""

from typing import Annotated

import typer

from vdsh.cli import options

EXAMPLE = "Example: vdsh restore news-2026-11-16.vdsh news-store"


def command(
    file: Annotated[str, typer.Argument(help="What vdsh backup wrote.", show_default=False)],
    store: options.Store,
) -> None:
    """Make a store of a backup, in a new folder."""
    from vdsh.store import restore_store

    with restore_store(file, store) as opened:
        typer.echo(f"{store} holds {opened.count():,} documents.")

"""`vdsh backup`: a store in one file."""

import os
from typing import Annotated

import typer

from vdsh.cli import options

EXAMPLE = "Example: vdsh backup news-store news-2026-11-16.vdsh"


def command(
    store: options.Store,
    file: Annotated[str, typer.Argument(help="The file to write.", show_default=False)],
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a store to one file, as it is now; others may search and write meanwhile."""
    from vdsh.progress import counting_bar
    from vdsh.store import open_store

    with open_store(store) as opened, counting_bar("pages", 0, enabled=not quiet) as bar:
        opened.back_up(
            file,
            force=force,
            progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total),
        )
    typer.echo(f"Wrote {file}, {os.path.getsize(file):,} bytes. vdsh restore makes a store of it.")

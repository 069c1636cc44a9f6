"""`vdsh duplicates`: documents with nearly the same code."""

import json
from typing import Annotated

import typer

from vdsh.cli import hits, options
from vdsh.errors import InputError

EXAMPLE = "Example: vdsh duplicates news-store --radius 1 --keep first > to-delete.txt"


def command(
    store: hits.Store,
    radius: Annotated[int, typer.Option(help="How many bits may differ.")] = 0,
    keep: Annotated[
        str | None,
        typer.Option(help="`first`: print only the ids that a clean-up would delete, one a line."),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Print groups of near-duplicates: the first document, and those within the radius of it."""
    from vdsh.progress import progress_bar
    from vdsh.store import open_store

    if keep not in (None, "first"):
        raise InputError(f"--keep knows only first. Got '{keep}'.")
    n_groups = n_others = 0
    with open_store(store) as opened, progress_bar(enabled=not quiet) as bar:
        bar.add_task("comparing", total=None)
        for group in opened.duplicates(radius=radius):
            n_groups += 1
            n_others += len(group.others)
            if as_json:
                others = [{"id": name, "distance": distance} for name, distance in group.others]
                typer.echo(json.dumps({"keep": group.keep, "others": others}, ensure_ascii=False))
            elif keep:
                for name, _ in group.others:
                    typer.echo(name)
            else:
                typer.echo(group.keep)
                for name, distance in group.others:
                    typer.echo(f"{distance:>5}  {name}")
    if not as_json:
        typer.echo(
            f"{n_groups:,} groups; {n_others:,} documents are within {radius} bits of another.",
            err=True,
        )

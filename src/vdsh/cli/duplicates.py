"""`vdsh duplicates`: documents with nearly the same text."""

import json
from typing import Annotated

import typer

from vdsh.cli import options
from vdsh.errors import InputError

EXAMPLE = "Example: vdsh duplicates news-store --similarity 0.9 --keep first > to-delete.txt"


def command(
    store: options.Store,
    similarity: Annotated[
        float,
        typer.Option(
            help="Pairs of successive words that texts share, out of all that either has; 0.1 to 1."
        ),
    ] = 0.8,
    radius: Annotated[
        int | None,
        typer.Option(help="How many bits of the code may differ.  [default: any number]"),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="`first`: print only the ids that a clean-up would delete, one a line."),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Print groups of near-duplicates: the first document, and those with nearly its text."""
    from vdsh.progress import progress_bar
    from vdsh.store import open_store

    if keep not in (None, "first"):
        raise InputError(f"--keep knows only first. Got '{keep}'.")
    n_groups = n_others = 0
    with open_store(store) as opened, progress_bar(enabled=not quiet) as bar:
        bar.add_task("comparing", total=None)
        for group in opened.duplicates(radius, similarity=similarity):
            n_groups += 1
            n_others += len(group.others)
            if as_json:
                names = ("id", "distance", "similarity")
                others = [dict(zip(names, other, strict=True)) for other in group.others]
                typer.echo(json.dumps({"keep": group.keep, "others": others}, ensure_ascii=False))
            elif keep:
                for name, _, _ in group.others:
                    typer.echo(name)
            else:
                typer.echo(group.keep)
                for name, distance, similar in group.others:
                    typer.echo(f"{distance:>5}  {similar:.3f}  {name}")
    if not as_json:
        typer.echo(
            f"{n_groups:,} groups; {n_others:,} documents are at least {similarity:g} similar to "
            "the first of their group.",
            err=True,
        )

"""`vdsh duplicates`: documents with nearly the same text."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from vdsh.cli import options
from vdsh.cli.output import say
from vdsh.documents.document import is_id
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.store import Duplicates

EXAMPLE = "Example: vdsh duplicates news-store --keep first -0 | vdsh delete news-store - -0"


def command(
    store: options.Store,
    similarity: Annotated[
        float,
        typer.Option(help="Least share of word pairs in common (Jaccard), from 0.1 to 1."),
    ] = 0.8,
    radius: Annotated[
        int | None,
        typer.Option(help="How many bits of the code may differ.  [default: any number]"),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="`first`: print only the ids that a clean-up would delete, one per line."
        ),
    ] = None,
    null: options.Null = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Print groups of near-duplicates: a document, and others with nearly the same text."""
    from vdsh.progress import progress_bar
    from vdsh.store import open_store

    if keep not in (None, "first"):
        raise InputError(f"--keep knows only first. Got '{keep}'.")
    if null and not keep:
        raise InputError("--null is for the ids of --keep first.")
    n_groups = n_others = 0
    with open_store(store) as opened, progress_bar(enabled=not quiet) as bar:
        bar.add_task("comparing", total=None)
        for group in opened.duplicates(radius, similarity=similarity):
            n_groups += 1
            n_others += len(group.others)
            if keep:
                for name, _, _ in group.others:
                    # typer.echo would leave out what commands a terminal
                    sys.stdout.write(_to_delete(name, null=null, as_json=as_json))
            else:
                _print(group, as_json=as_json)
    if not as_json:
        typer.echo(
            f"{n_groups:,} groups; {n_others:,} documents are at least {similarity:g} similar to "
            "the first of their group.",
            err=True,
        )


def _to_delete(id: str, *, null: bool, as_json: bool) -> str:
    """Write an id so that `vdsh delete` reads the same one."""
    if null:
        return f"{id}\0"
    if as_json:
        return json.dumps(id) + "\n"
    if not is_id(id):  # of a store that something else wrote
        raise InputError(f"The id {id!r} has control characters. List ids with --json or --null.")
    return f"{id}\n"


def _print(group: "Duplicates", *, as_json: bool) -> None:
    from vdsh.words.passages import one_line

    names = ("id", "distance", "similarity")
    others = [dict(zip(names, other, strict=True)) for other in group.others]
    lines = [
        f"{distance:>5}  {alike:.3f}  {one_line(name)}" for name, distance, alike in group.others
    ]
    say({"keep": group.keep, "others": others}, one_line(group.keep), *lines, as_json=as_json)

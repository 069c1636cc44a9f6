"""`vdsh delete`: documents out of a store."""

import json
import sys
from typing import Annotated

import typer

from vdsh.cli import hits, options

EXAMPLE = "Example: vdsh duplicates news-store --keep first | vdsh delete news-store -"


def command(
    store: hits.Store,
    ids: Annotated[
        list[str], typer.Argument(help="Ids, or - for one a line on stdin.", show_default=False)
    ],
    as_json: options.Json = False,
) -> None:
    """Remove documents by their ids; ids that are not there are passed over."""
    from vdsh.store import open_store

    if ids == ["-"]:
        ids = [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
    with open_store(store) as opened:
        deleted, left = opened.delete(ids), opened.count()
    if as_json:
        typer.echo(json.dumps({"deleted": deleted, "documents": left}))
    else:
        typer.echo(f"Deleted {deleted:,} of {len(ids):,}; {left:,} documents are left.")

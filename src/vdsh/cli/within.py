"""`vdsh within`: every document near a text."""

from typing import Annotated

import typer

from vdsh.cli import options, output
from vdsh.cli.options import WordsCommand as CLASS  # noqa: F401

EXAMPLE = "Example: vdsh within news-store shuttle launch --radius 2"


def command(
    store: options.Store,
    words: options.Words = None,
    radius: Annotated[int, typer.Option(help="How many bits may differ.")] = 2,
    where: options.WhereOption = None,
    code: options.Code = None,
    as_json: options.Json = False,
) -> None:
    """Print every document whose code is within a radius of a text's, nearest first."""
    from vdsh.store import open_store
    from vdsh.store.filters import parse_where

    query = options.parse_query(words, code)
    filters = parse_where(where or [])
    with open_store(store) as opened:
        hits = opened.within(query, radius=radius, where=filters)
    output.print_hits(hits, query, as_json=as_json)

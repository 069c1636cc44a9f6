"""`vdsh within`: every document near a text."""

from typing import Annotated

import typer

from vdsh.cli import hits, options

EXAMPLE = 'Example: vdsh within news-store "shuttle launch" --radius 2'


def command(
    store: hits.Store,
    text: hits.Text = None,
    radius: Annotated[int, typer.Option(help="How many bits may differ.")] = 2,
    where: hits.WhereOption = None,
    code: hits.Code = None,
    as_json: options.Json = False,
) -> None:
    """Print every document within a radius of a text, nearest first."""
    from vdsh.store import open_store
    from vdsh.store.where_text import parse_where

    query = hits.parse_query(text, code)
    filters = parse_where(where or [])
    with open_store(store) as opened:
        found = opened.within(query, radius=radius, where=filters)
    hits.print_hits(found, as_json=as_json)

"""`vdsh search`: the nearest documents of a text."""

from typing import Annotated

import typer

from vdsh.cli import options, output

EXAMPLE = 'Example: vdsh search news-store "shuttle launch" -k 5 --where label=sci.space'


def command(
    store: options.Store,
    text: options.Text = None,
    k: Annotated[int, typer.Option("-k", help="How many documents.")] = 10,
    where: options.WhereOption = None,
    code: options.Code = None,
    rank: Annotated[
        str, typer.Option(help="`distance`, or `expected` distance, which knows unsure bits.")
    ] = "distance",
    as_json: options.Json = False,
) -> None:
    """Print the documents nearest to a text: differing bits, id, labels, beginning."""
    from vdsh.store import open_store
    from vdsh.store.where_text import parse_where

    query = options.parse_query(text, code)
    filters = parse_where(where or [])
    with open_store(store) as opened:
        found = opened.search(query, k=k, where=filters, rank=rank)
    output.print_hits(found, as_json=as_json)

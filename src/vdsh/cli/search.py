"""`vdsh search` and `within`: the best documents for a text, and every one that is near."""

from typing import Annotated

import typer

from vdsh.cli import options, output
from vdsh.cli.options import WordsCommand as CLASS  # noqa: F401
from vdsh.cli.vectors import QueryVector, read_query_vector
from vdsh.errors import InputError

EXAMPLES = {
    "search": "Example: vdsh search news-store shuttle launch -k 5 --where label=sci.space",
    "within": "Example: vdsh within news-store shuttle launch --radius 2",
}


def search(
    store: options.Store,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to look for, or - for one query a line on stdin (empty lines are skipped); "
            "or give --code, or --vector.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many documents.")] = 10,
    where: options.WhereOption = None,
    code: options.Code = None,
    vector: QueryVector = None,
    rank: Annotated[
        str | None,
        typer.Option(
            help="`relevance`: words and code together; `distance` of the codes; `expected` "
            "distance, which knows unsure bits.  [default: relevance; distance for a code, "
            "expected for a vector alone]",
            show_default=False,
        ),
    ] = None,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Print the best documents for a text: score (or distance), id, labels, best passage.

    A phrase in quotes must be in a document as it is, a word behind a dash must not. The shell
    takes one pair of quotes for itself, so give two: '"red planet" water -rover'.
    """
    from vdsh.store import open_store
    from vdsh.store.filters import parse_where

    filters = parse_where(where or [])
    if vector is not None and (code is not None or words == ["-"]):
        raise InputError("--vector goes with words or alone, not with --code or standard input.")
    if words == ["-"] and code is None:
        with open_store(store, device=device) as opened:
            for lines in options.read_lines():
                answers = opened.search_many(lines, k, where=filters, rank=rank)
                for line, hits in zip(lines, answers, strict=True):
                    output.print_answer(line, hits, as_json=as_json)
        return
    if vector is None:
        query, asked = options.parse_query(words, code), None
    else:
        query, asked = " ".join(words or ()), read_query_vector(vector)
    with open_store(store, device=device) as opened:
        hits = opened.search(query, k, vector=asked, where=filters, rank=rank)
    output.print_hits(hits, query, as_json=as_json)


def within(
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

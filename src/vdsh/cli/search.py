"""`vdsh search`: the best documents for a text, or every one that is near."""

from typing import Any

import typer

import vdsh
from vdsh.cli import options, output
from vdsh.cli.options import WordsCommand as CLASS  # noqa: F401
from vdsh.cli.options import argument, option
from vdsh.cli.vectors import read_query_vector
from vdsh.errors import InputError

EXAMPLE = "Example: vdsh search news-store shuttle launch -k 5 --where label=sci.space"


def command(
    store: str = options.STORE,
    words: list[str] | None = argument(
        None,
        "Words to search for, or - for one query per line on stdin (empty lines are skipped); or "
        "give --code or --vector.",
    ),
    k: int | None = option(
        None, "Number of documents.  [default: 10; all within a --radius]", "-k"
    ),
    radius: int | None = option(
        None, "Print all documents within this Hamming distance, nearest first."
    ),
    where: list[str] | None = option(
        None, "Filter such as label=space, year>=1990 or a JSON object; all must hold."
    ),
    code: str | None = option(None, "Search for a code in hex instead of a text."),
    vector: str | None = option(
        None,
        "A vector to look for, with words or alone, where the store has a model of vectors: a "
        ".npy file, or a list of numbers.",
        metavar="FILE|[…]",
    ),
    rank: str | None = option(
        None,
        "`relevance`: words and code together; `distance` of the codes; `expected` distance, "
        "which counts uncertain bits less.  [default: relevance; distance for a code, expected "
        "for a vector alone]",
    ),
    strict: bool = option(False, "Leave out hits that are only related.", "--strict"),
    device: str = options.DEVICE,
    as_json: bool = options.JSON,
) -> None:
    """Print the best documents for a text: score (or distance), id, labels, best passage.

    In a pipe a hit is one line, with tabs between these four, and ids are never cut.

    Quote a phrase to require it; prefix a word with - to exclude it. The shell removes one pair
    of quotes, so give two: '"red planet" water -rover'. Exits with 1 where nothing is
    found.
    """
    from vdsh.codes import from_hex
    from vdsh.store.filters import parse_where
    from vdsh.store.searching import distinct

    filters, n = parse_where(where or []), 10 if k is None else k
    if radius is not None and (rank or strict or vector is not None or words == ["-"]):
        raise InputError(
            "--radius takes words or --code; leave out --rank, --strict, --vector and standard "
            "input."
        )
    if vector is not None and (code is not None or words == ["-"]):
        raise InputError(
            "--vector takes words or nothing else; leave out --code and standard input."
        )
    if words == ["-"] and code is None:
        found = 0
        with vdsh.open_store(store, create=False, device=device) as opened:
            for lines in options.read_lines():
                answers = opened.search_many(lines, n, where=filters, rank=rank, strict=strict)
                for line, hits in zip(lines, answers, strict=True):
                    output.print_answer(line, hits, as_json=as_json)
                    found += len(hits)
        raise typer.Exit(0 if found else 1)
    if vector is None and (not words) == (code is None):
        raise InputError("Give a text to look for, or a code with --code, and not both.")
    query: Any = " ".join(words or ()) if code is None else from_hex([code])[0]
    asked = None if vector is None else read_query_vector(vector)
    with vdsh.open_store(store, create=False, device=device) as opened:
        if radius is None:
            how: Any = {"vector": asked, "where": filters, "rank": rank, "strict": strict}
            hits = (
                opened.search(query, n, **how)
                if as_json
                else distinct(lambda n: opened.search(query, n, **how), n)
            )
        elif k is None:
            hits = opened.within(query, radius, where=filters)
        else:
            hits = opened.within_at_most(query, radius, k, where=filters).hits
    output.print_hits(hits, query, as_json=as_json)
    if not hits:
        raise typer.Exit(1)  # as grep does

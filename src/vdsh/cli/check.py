"""`vdsh check`: whether a store is sound."""

import json

import typer

from vdsh.cli import options

EXAMPLE = "Example: vdsh check news-store"


def command(store: options.Store, as_json: options.Json = False) -> None:
    """Look for damage: the database, index and words against the documents, model, codes.

    Prints what is wrong and what to do, and ends with 1 then.
    """
    from vdsh.store import open_store

    with open_store(store) as opened:
        found, n_documents = opened.check(), opened.count()
    if as_json:
        typer.echo(json.dumps({"documents": n_documents, "problems": found}, ensure_ascii=False))
    else:
        for problem in found:
            typer.echo(problem)
        if not found:
            typer.echo(f"All is well: {n_documents:,} documents.")
    if found:
        raise typer.Exit(1)

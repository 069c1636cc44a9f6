"""`vdsh index`: documents into a store."""

import json
from typing import Annotated

import typer

from vdsh.cli import options
from vdsh.errors import VdshError

EXAMPLE = "Example: vdsh index news-model news.jsonl --store news-store"


def command(
    model: Annotated[str, typer.Argument(help="Model folder.", show_default=False)],
    docs: options.Docs,
    store: Annotated[str, typer.Option(help="Folder or URL of the store.", show_default=False)],
    reference: Annotated[
        bool, typer.Option("--reference", help="Remember where the model is, do not copy it.")
    ] = False,
    format: options.Format = None,
    id_field: options.IdField = "id",
    text_field: options.TextField = None,
    labels_field: options.LabelsField = "labels",
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Add documents to a store, made when it is not there; the same id replaces."""
    from vdsh.progress import reading_bar
    from vdsh.store import open_store, without_password

    reader = options.Reading(format, id_field, text_field, labels_field, encoding).reader(docs)
    keep = "reference" if reference else "inside"
    written = 0

    def acknowledge(committed: int) -> None:
        nonlocal written
        written = committed

    try:
        with open_store(store, model, keep_model=keep) as opened:
            with reading_bar(reader, "indexing", enabled=not quiet) as documents:
                opened.upsert(documents, progress=acknowledge)
            total = opened.count()
    except (VdshError, KeyboardInterrupt):
        if written:
            typer.echo(f"{written:,} documents were committed before and are kept.", err=True)
        raise
    shown = without_password(store)
    if as_json:
        typer.echo(json.dumps({"store": shown, "written": written, "documents": total}))
    else:
        typer.echo(f"Wrote {written:,} documents; the store {shown} holds {total:,}.")
        typer.echo(f'Next: vdsh search {shown} "some text" -k 10')

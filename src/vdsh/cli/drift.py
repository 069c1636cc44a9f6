"""`vdsh drift`: whether new documents have moved away from a store's model."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from vdsh.cli import options

if TYPE_CHECKING:
    from vdsh.model.drift import Drift

EXAMPLE = "Example: vdsh drift news-store"
DRIFTED = 3  # neither an error (1) nor a wrong option (2)


@options.reads_documents
def command(
    store: options.Store,
    docs: Annotated[
        str | None,
        typer.Argument(help="Documents; by default those of the store.", show_default=False),
    ] = None,
    recent: Annotated[
        int | None,
        typer.Option(help="Only the last N documents written to the store.", show_default=False),
    ] = None,
    reading: options.Reading = options.BY_DEFAULT,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check for data drift: whether new documents still look like those the model learned from.

    It compares documents that the model has not seen, or a random sample of them, with those held
    out when it learned. Exits with 3 if they differ, with 0 if not or if there are too few.
    """
    from vdsh.progress import reading_bar
    from vdsh.store import open_store

    with open_store(store) as opened:
        if docs is None:
            found = opened.drift(recent=recent)
        else:
            reader = reading.reader(docs)
            with reading_bar(reader, "reading", enabled=not quiet) as documents:
                found = opened.drift(documents, recent=recent)
    if as_json:
        typer.echo(json.dumps(found.as_fields(), ensure_ascii=False))
    else:
        _print(found)
    if found.drifted:
        raise typer.Exit(DRIFTED)


def _print(found: "Drift") -> None:
    from vdsh.model.drift import NAMES

    if found.measures:
        typer.echo(f"{'':<34} {'held out':>8} {'new':>8} {'effect':>8}")
    for name, measure in found.measures.items():
        mark = "  moved" if measure.moved else ""
        means = f"{measure.learned:>8.3g} {measure.recent:>8.3g}"
        typer.echo(f"{NAMES[name]:<34} {means} {measure.effect:>8.2f}{mark}")
    typer.echo(found.verdict)
    if found.advice:
        typer.echo(found.advice)

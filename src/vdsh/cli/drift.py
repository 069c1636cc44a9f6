"""`vdsh drift`: whether recent documents have moved away from a store's model."""

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
        typer.Argument(
            help="Recent documents; by default those that were written last.", show_default=False
        ),
    ] = None,
    recent: Annotated[
        int, typer.Option(help="How many of those; half of the store at most.")
    ] = 1_000,
    reading: options.Reading = options.BY_DEFAULT,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say whether recent documents have moved away from the model, and what to do.

    They are held against documents that the model was not trained on, from when it learned. Ends
    with 3 where they differ, with 0 where not or where there are too few to say.
    """
    from vdsh.store import open_store
    from vdsh.store.care import MOST_DRAWN

    documents = None if docs is None else reading.some(docs, MOST_DRAWN, quiet=quiet)
    with open_store(store) as opened:
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
        typer.echo(f"{'':<34} {'learned':>8} {'recent':>8} {'effect':>8}")
    for name, measure in found.measures.items():
        shown = (f"{value:.3g}" for value in (measure.learned, measure.recent))
        mark = "  moved" if measure.moved else ""
        learned, recent = (f"{value:>8}" for value in shown)
        typer.echo(f"{NAMES[name]:<34} {learned} {recent} {measure.effect:>8.2f}{mark}")
    typer.echo(found.verdict)
    if found.advice:
        typer.echo(found.advice)

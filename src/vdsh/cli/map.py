"""`vdsh map`: lay the documents of a store out on a plane, for the page of `vdsh serve`."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vdsh.cli import options
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.corpus_map import CorpusMap

EXAMPLE = "Example: vdsh research map news-store --seed 1"


def command(
    store: options.Store,
    limit: Annotated[
        int, typer.Option(help="Take a random sample of this size from a larger store.")
    ] = 50_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same map.")] = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compute the map of a store by t-SNE, once, and keep it in the store's folder."""
    started = time.monotonic()
    made, path = make(store, limit=limit, seed=seed, quiet=quiet)
    n_documents, seconds = made.facts["documents"], time.monotonic() - started
    if as_json:
        facts = {"map": str(path), "placed": len(made), "documents": n_documents, "seed": seed}
        typer.echo(json.dumps(facts | {"seconds": round(seconds, 1)}))
        return
    share = f"{len(made):,} of {n_documents:,} documents, chosen by seed {seed}"
    placed = f"all {len(made):,} documents" if len(made) == n_documents else share
    typer.echo(f"Placed {placed}, in {seconds:.0f} s: {path}")
    typer.echo(f"Next: vdsh serve {store}")


def make(store: str, *, limit: int, seed: int, quiet: bool) -> "tuple[CorpusMap, Path]":
    """Compute and keep the map of a store, with a bar."""
    from vdsh import corpus_map
    from vdsh.progress import counting_bar
    from vdsh.store import open_store

    with (
        open_store(store) as opened,
        counting_bar("reading documents", 0, enabled=not quiet) as bar,
    ):

        def show(what: str, done: int, total: int) -> None:
            bar.update(bar.task_ids[0], description=what, completed=done, total=total)

        folder = Path(opened.info()["path"])
        if not folder.is_dir():
            raise InputError(
                f"A map is kept in the folder of a store, and '{store}' is not a folder."
            )
        made = corpus_map.make_map(opened, limit=limit, seed=seed, progress=show)
    corpus_map.save(folder / corpus_map.FILE, made)
    return made, folder / corpus_map.FILE

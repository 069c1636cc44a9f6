"""`vdsh reindex`: a new model under an old store."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from vdsh.cli import options
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.model import Model
    from vdsh.store import Store

EXAMPLE = "Example: vdsh reindex news-store --model newer-model"
SAMPLE = 1000  # documents that are encoded to say how long all would take


def command(
    store: options.Store,
    model: Annotated[
        str | None, typer.Option(help="Folder of the new model.", show_default=False)
    ] = None,
    back: Annotated[bool, typer.Option("--back", help="Return to the previous model.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard an unfinished run with another model.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only estimate time and size.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Encode all documents of a store with another model.

    Searches use the old codes until all new ones are written. The same command resumes an
    interrupted run.
    """
    from vdsh.model import Model
    from vdsh.progress import counting_bar
    from vdsh.store import open_store, without_password

    if (model is None) != back:
        raise InputError("Give a model with --model, or --back for the one before.")
    new = None if model is None else Model.load(model)
    with open_store(store) as opened:
        n_documents = opened.count()
        if dry_run:
            _say_how_long(opened, new or opened.model, n_documents)
            return
        with counting_bar("documents", n_documents, enabled=not quiet) as bar:
            opened.reindex(new, restart=restart, progress=lambda n: bar.advance(bar.task_ids[0], n))
        fingerprint = opened.model.fingerprint
    shown = without_password(store)
    typer.echo(
        f"{shown} has {n_documents:,} documents with codes of {fingerprint[:12]}. The model before "
        f"is kept until vdsh compact; vdsh reindex {shown} --back returns to it."
    )


def _say_how_long(store: "Store", model: "Model", n_documents: int) -> None:
    texts = [document.text for document in next(store.documents(SAMPLE), [])]
    if texts:
        model.encode(texts[:10])  # what is loaded at first is not the encoding
    started = time.perf_counter()
    model.encode(texts)
    each = (time.perf_counter() - started) / max(1, len(texts))
    size = n_documents * (model.n_bits // 8)
    typer.echo(
        f"{n_documents:,} documents: about {each * n_documents:,.0f} s to encode, and {size:,} "
        "bytes of new codes. Nothing was changed."
    )

"""`vdsh check`, `compact`, `backup` and `restore`: the maintenance of a store."""

import json
import os
from typing import Annotated

import typer

from vdsh.cli import options

EXAMPLES = {
    "check": "Example: vdsh check news-store",
    "compact": "Example: vdsh compact news-store",
    "backup": "Example: vdsh backup news-store news-2026-11-16.vdsh",
    "restore": "Example: vdsh restore news-2026-11-16.vdsh news-store",
}


def check(store: options.Store, as_json: options.Json = False) -> None:
    """Check a store for damage: database, index, words, model and codes.

    If something is wrong, it says what to do and exits with 1.
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


def compact(store: options.Store, as_json: options.Json = False) -> None:
    """Rewrite a store without deleted and replaced documents; needs its size in free space.

    Previous models are removed too. A database server keeps the space for new documents.
    """
    from vdsh.store import open_store, without_password

    with open_store(store) as opened:
        before = opened.info()["bytes"]
        opened.compact()
        after = opened.info()["bytes"]
    shown = without_password(store)
    if as_json:
        typer.echo(json.dumps({"store": shown, "before": before, "bytes": after}))
    elif after is None:
        typer.echo(f"{shown} has no previous models any more.")
    else:
        typer.echo(f"{shown} takes {after:,} bytes, before {before:,}.")


def backup(
    store: options.Store,
    file: Annotated[str, typer.Argument(help="The file to write.", show_default=False)],
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a snapshot of a store to one file, while others search and write."""
    from vdsh.progress import counting_bar
    from vdsh.store import open_store

    with open_store(store) as opened, counting_bar("pages", 0, enabled=not quiet) as bar:
        opened.back_up(
            file,
            force=force,
            progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total),
        )
    size = os.path.getsize(file)
    if as_json:
        typer.echo(json.dumps({"file": file, "bytes": size}))
    else:
        typer.echo(f"Wrote {file}, {size:,} bytes. To restore it: vdsh restore {file} STORE")


def restore(
    file: Annotated[str, typer.Argument(help="A file written by vdsh backup.", show_default=False)],
    store: options.Store,
    as_json: options.Json = False,
) -> None:
    """Restore a store from a backup into a new folder."""
    from vdsh.store import restore_store

    with restore_store(file, store) as opened:
        n_documents = opened.count()
    if as_json:
        typer.echo(json.dumps({"store": store, "documents": n_documents}))
    else:
        typer.echo(f"{store} holds {n_documents:,} documents.")

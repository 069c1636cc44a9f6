"""The maintenance of a store: `vdsh info`, `check`, `compact`, `backup`, `drift` and so on."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import vdsh
from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import aligned, say
from vdsh.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vdsh.model.drift import Drift

EXAMPLES = {
    "info": "Example: vdsh info news-store",
    "check": "Example: vdsh check news-store",
    "compact": "Example: vdsh compact news-store",
    "backup": "Example: vdsh backup news-store news-2026-11-16.vdsh",
    "restore": "Example: vdsh restore news-2026-11-16.vdsh news-store",
    "copy": "Example: vdsh copy news-store 'postgresql://ann@db.example/news?table=posts'",
    "reindex": "Example: vdsh reindex news-store --model newer-model",
    "drift": "Example: vdsh drift news-store",
}
DRIFTED = 3  # neither an error (1) nor a wrong option (2)
_PLACE = "Name, folder, milvus://host:19530/collection, milvus-lite:file.db or postgresql://…?table=name."


def info(
    source: str = argument(
        ...,
        "Model folder; or name, folder or URL of a store.",
        metavar="MODEL|STORE",
        callback=options.find_store,
    ),
    as_json: bool = options.JSON,
) -> None:
    """Print the facts about a store and its model, or about a model folder."""
    from vdsh.persistence import MANIFEST

    if Path(source, MANIFEST).is_file():
        model = vdsh.Model.load(source)
        facts = {
            "path": source,
            "model": model.name,
            "bits": model.n_bits,
            "fingerprint": model.fingerprint,
            "labels": model.labels,
            "training": model.training,
            "settings": model.given,
        }
    else:
        with vdsh.open_store(source, create=False) as opened:
            facts = opened.info()
    say(facts, *aligned(_fact_lines(facts)), as_json=as_json)


def _fact_lines(facts: dict[str, Any]) -> "Iterator[tuple[str, str]]":
    """Name and value of each fact; those inside a fact come with its name in front."""
    for name, value in facts.items():
        name = name.replace("_", " ")
        if isinstance(value, dict):
            yield from ((f"{name} {inner}", shown) for inner, shown in _fact_lines(value))
        elif isinstance(value, list):
            yield name, ", ".join(map(str, value)) or "none"
        elif isinstance(value, int) and not isinstance(value, bool):
            yield name, f"{value:,}"
        else:
            yield name, str(value)


def check(store: str = options.STORE, as_json: bool = options.JSON) -> None:
    """Check a store for damage: database, index, words, model and codes.

    If something is wrong, it says what to do and exits with 1.
    """
    from vdsh.progress import busy

    with vdsh.open_store(store, create=False) as opened:
        with busy("checking"):
            found = opened.check()
        n_documents = opened.count()
    lines = found or [f"All is well: {n_documents:,} documents."]
    say({"documents": n_documents, "problems": found}, *lines, as_json=as_json)
    if found:
        raise typer.Exit(1)


def compact(store: str = options.STORE, as_json: bool = options.JSON) -> None:
    """Rewrite a store without deleted and replaced documents; needs its size in free space.

    Previous models are removed too. A database server keeps the space for new documents.
    """
    from vdsh.progress import busy

    with vdsh.open_store(store, create=False) as opened:
        before = opened.info()["bytes"]
        with busy("compacting"):
            opened.compact()
        after = opened.info()["bytes"]
    name = options.named(opened)
    line = f"{name} has no previous models any more."
    if after is not None:
        line = f"{name} takes {after:,} bytes, before {before:,}."
    say({"store": opened.path, "before": before, "bytes": after}, line, as_json=as_json)


def backup(
    store: str = options.STORE,
    file: str = argument(..., "The file to write."),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Write a snapshot of a store to one file, while others search and write."""
    from vdsh.progress import show_progress

    with (
        vdsh.open_store(store, create=False) as opened,
        show_progress("pages", enabled=not quiet) as show,
    ):
        opened.back_up(file, force=force, progress=show)
    size = os.path.getsize(file)
    line = f"Wrote {file}, {size:,} bytes. To restore it: vdsh restore {file} STORE"
    say({"file": file, "bytes": size}, line, as_json=as_json)


def restore(
    file: str = argument(..., "A file written by vdsh backup."),
    store: str = options.STORE,
    as_json: bool = options.JSON,
) -> None:
    """Restore a store from a backup into a new folder."""
    from vdsh.progress import busy
    from vdsh.store import restore_store

    with busy("restoring"):
        restored = restore_store(file, store)
    with restored as opened:
        n_documents = opened.count()
    line = f"{options.named(opened)} holds {n_documents:,} documents."
    say({"store": store, "documents": n_documents}, line, as_json=as_json)


def copy(
    source: str = argument(
        ..., f"Store to copy. {_PLACE}", metavar="FROM", callback=options.find_store
    ),
    target: str = argument(
        ...,
        "Store to copy into, made when it is not there.",
        metavar="TO",
        callback=options.find_store,
    ),
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Copy documents and codes from one store to another; nothing is encoded again.

    What the target has already is not written again, so the same command resumes an interrupted
    run, and writes nothing where both are the same.
    """
    from vdsh.progress import show_progress
    from vdsh.store import copy_store

    with (
        vdsh.open_store(source, create=False) as opened,
        vdsh.open_store(target, opened.model) as other,
        show_progress("copying", opened.count(), enabled=not quiet) as show,
    ):
        written, total = copy_store(opened, other, progress=show), other.count()
    line = f"Copied {written:,} documents; {options.named(other)} holds {total:,}."
    say({"written": written, "documents": total}, line, as_json=as_json)


def reindex(
    store: str = options.STORE,
    model: str | None = option(None, "Folder of the new model."),
    back: bool = option(False, "Return to the previous model.", "--back"),
    restart: bool = option(False, "Discard an unfinished run with another model.", "--restart"),
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Encode all documents of a store with another model.

    Searches use the old codes until all new ones are written. The same command resumes an
    interrupted run.
    """
    from vdsh.progress import counting_bar

    if (model is None) != back:
        raise InputError("Give a model with --model, or --back for the one before.")
    new = None if model is None else vdsh.Model.load(model)
    with vdsh.open_store(store, create=False) as opened:
        shown, n = options.named(opened), opened.count()
        with counting_bar("documents", n, enabled=not quiet) as bar:
            opened.reindex(new, restart=restart, progress=lambda n: bar.advance(bar.task_ids[0], n))
        fingerprint = opened.model.fingerprint
    line = (
        f"{shown} has {n:,} documents with codes of {fingerprint[:12]}. The model before is kept "
        f"until vdsh compact; vdsh reindex {shown} --back returns to it."
    )
    say({"store": opened.path, "documents": n, "fingerprint": fingerprint}, line, as_json=as_json)


@options.reads_documents
def drift(
    store: str = options.STORE,
    docs: str | None = argument(None, "Documents; by default those of the store."),
    recent: int | None = option(None, "Only the last N documents written to the store."),
    reading: options.Reading = options.BY_DEFAULT,
    as_json: bool = options.JSON,
) -> None:
    """Check for data drift: whether new documents still look like those the model learned from.

    It compares documents that the model has not seen, or a random sample of them, with those held
    out when it learned. Exits with 3 if they differ, with 0 if not or if there are too few.
    """
    from vdsh.progress import busy

    with vdsh.open_store(store, create=False) as opened:
        if docs is None:
            with busy("comparing"):
                found = opened.drift(recent=recent)
        else:
            with reading.stream(docs) as documents:
                found = opened.drift(documents, recent=recent)
    say(found.as_fields(), *_drift_lines(found), as_json=as_json)
    if found.drifted:
        raise typer.Exit(DRIFTED)


def _drift_lines(found: "Drift") -> "Iterator[str]":
    from vdsh.model.drift import NAMES

    if found.measures:
        yield f"{'':<34} {'held out':>8} {'new':>8} {'effect':>8}"
    for name, measure in found.measures.items():
        mark = "  moved" if measure.moved else ""
        means = f"{measure.learned:>8.3g} {measure.recent:>8.3g}"
        yield f"{NAMES[name]:<34} {means} {measure.effect:>8.2f}{mark}"
    yield from filter(None, (found.verdict, found.advice))

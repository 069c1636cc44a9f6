"""`vdsh add` and `learn`: files into a store that learns from them."""

import json
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import typer

import vdsh
from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import say
from vdsh.errors import InputError, VdshError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vdsh.adding import Added
    from vdsh.adding.run import Listener
    from vdsh.store import Store

EXAMPLES = {
    "add": "Example: vdsh add notes ~/notes",
    "learn": "Example: vdsh learn notes --bits 64",
}
KEPT = "add/"  # where the store remembers its embedding model
GROWN = 1.5  # times the documents that the model learned from
LEAST = 50  # new documents, to say whether they drifted
MOST_NAMED = 3  # files in a sentence
_BITS = option(
    None,
    "Length of the codes, a multiple of 8; by default 128, or 64 or 32 where documents are few.",
)
_EMBED = option(
    None,
    "Add 256 bits of vectors that model2vec:FOLDER or sentence-transformers:NAME makes of "
    "documents and queries; `none` for no more. The store remembers it.",
    metavar="PACKAGE:MODEL",
)


@options.reads_documents
def add(
    context: typer.Context,
    store: str = options.STORE,
    paths: list[str] = argument(
        ...,
        "Folders and files: text, source code, JSONL, CSV, TSV, Parquet (gz or plain); or - for "
        "JSON lines on stdin.",
        metavar="PATH...",
    ),
    include: list[str] | None = option(None, "Only files such as *.md; repeat for several."),
    exclude: list[str] | None = option(None, "No files such as drafts/; repeat for several."),
    keep: bool = option(False, "Keep documents whose file has vanished.", "--keep/--no-keep"),
    id_prefix: str = option("", "Put this before the ids of the documents.", show_default=False),
    again: bool = option(False, "Read all files, also those that have not changed.", "--again"),
    replace: bool = option(False, "Replace documents that were added from elsewhere.", "--replace"),
    learn: str = option("auto", "`auto` learns codes once, `now` again, `never` not at all."),
    bits: int | None = _BITS,
    embed: str | None = _EMBED,
    reading: options.Reading = options.BY_DEFAULT,
    as_json: bool = options.JSON,
) -> None:
    """Add files and folders to a store, made if needed; then learn codes from its documents.

    The store answers by words at once, and by words and meaning when it has learned. Run again,
    it takes what has changed, and removes what has vanished. For each path it remembers the
    options that choose files and say how they are read; an empty value ('') forgets one. Files
    that .gitignore names are left out.
    """
    from vdsh.adding import add_files, check_paths
    from vdsh.embed import embed as embed_texts
    from vdsh.model.model import EmptyDocumentWarning

    if learn not in ("auto", "now", "never"):
        raise InputError(f"--learn must be auto, now or never. Got '{learn}'.")
    check_paths(paths)  # or there would be an empty store
    if embed not in (None, "none"):
        embed_texts(["a text"], embed)  # or say that it cannot
    others = {"include": include, "exclude": exclude, "keep": keep, "id_prefix": id_prefix}
    given = options.given_options(context)
    how = {name: value for name, value in reading.how().items() if name in given}
    how |= {name: value for name, value in others.items() if name in given}
    with vdsh.open_store(store) as opened, catch_warnings():
        simplefilter("ignore", EmptyDocumentWarning)  # their words are found all the same
        embed = _remembered_embedder(opened, embed)
        with _adding_bar(enabled=not reading.quiet) as (progress, working_on):
            found = add_files(
                opened,
                paths,
                reading=how,
                again=again,
                replace=replace,
                progress=progress,
                working_on=working_on,
                notice=lambda sentence: typer.echo(sentence, err=True),
            )
        _print(opened, found, as_json=as_json)
        _learn_if_worth(opened, found, learn, bits, embed, quiet=reading.quiet)


def learn(
    store: str = options.STORE,
    bits: int | None = _BITS,
    labels: bool = option(False, "Learn from the documents' labels too.", "--labels"),
    model: str | None = option(None, "Use the model in this folder."),
    method: str | None = option(None, "Method, as in vdsh fit; by default the best."),
    seed: int = option(0, "The same seed gives the same codes."),
    embed: str | None = _EMBED,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Learn codes from the documents of a store, which then answers by words and meaning.

    Searches and writes go on meanwhile. Interrupted, the store answers as before.
    """
    with vdsh.open_store(store, create=False) as opened:
        how: dict[str, Any] = {"labels": labels, "model": model, "method": method, "embed": embed}
        opened.learn(bits=bits, random_state=seed, progress=not quiet, **how)
        path, n, n_bits = opened.path, opened.count(), opened.n_bits
        name = options.named(opened)
        few = _few_bits(opened, bits, model)
    line = f"{name} answers by words and codes of {n_bits} bits: {n:,} documents.{few}"
    say({"store": path, "documents": n, "bits": n_bits}, line, as_json=as_json)


def _remembered_embedder(store: "Store", embed: str | None) -> str | None:
    """Return the embedding model that is given now, or that a store without codes was given."""
    if embed:
        store.remember(KEPT, {"embed": json.dumps(embed)})
        return embed
    before = store.remembered(KEPT).get("embed")
    return json.loads(before) if before and not store.n_bits else None


@contextmanager
def _adding_bar(*, enabled: bool) -> "Iterator[tuple[Callable[[int], None], Listener]]":
    """Show how many documents were added, and what is being read for how long and how far."""
    from rich.progress import TextColumn

    from vdsh.progress import progress_bar

    columns = ("{task.fields[count]:,} documents", "{task.fields[reading]}")
    with progress_bar(*map(TextColumn, columns), enabled=enabled) as bar:
        task = bar.add_task("adding", total=None, count=0, reading="")

        def progress(n: int) -> None:
            bar.update(task, count=n)

        def working_on(name: str, n_bytes: int) -> None:
            bar.update(task, reading=f"{n_bytes / 1e6:,.0f} MB read, now {name}")

        yield progress, working_on


def _print(store: "Store", found: "Added", *, as_json: bool) -> None:
    n_skipped = sum(map(len, found.skipped.values()))
    facts = {"store": store.path, "documents": store.count(), **found._asdict()}
    n = facts["documents"]
    line = (
        f"{found.added:,} added, {found.changed:,} changed, {found.removed:,} removed, "
        f"{n_skipped:,} skipped; {options.named(store)} holds {n:,} "
        f"document{'' if n == 1 else 's'}."
    )
    say(facts | {"skipped": n_skipped, "reasons": found.skipped}, line, as_json=as_json)
    kept, dropped = set(found.kept), set(found.dropped)
    for reason, ids in found.skipped.items():
        typer.echo(f"Skipped {_named(ids)}: {reason}.", err=True)
        if stay := [id for id in ids if id in kept]:
            typer.echo(f"  The store keeps what it had read of {_named(stay)}.", err=True)
        if gone := [id for id in ids if id in dropped]:
            typer.echo(f"  The store no longer has what it had read of {_named(gone)}.", err=True)
    for path, fields in found.guessed.items():
        said = f"Took the text of {path} from {' and '.join(fields)}; --text-field names others."
        typer.echo(said, err=True)


def _named(ids: list[str]) -> str:
    """Name some ids, and count the others."""
    more = f" and {len(ids) - MOST_NAMED:,} more" if len(ids) > MOST_NAMED else ""
    return ", ".join(ids[:MOST_NAMED]) + more


def _learn_if_worth(
    store: "Store", found: "Added", when: str, bits: int | None, embed: str | None, *, quiet: bool
) -> None:
    """Learn where that was asked for, or never done; else say whether it is worth it."""
    has = store.n_bits and embed in (None, store.model.embedder or "none")
    if when == "never" or (when == "auto" and (has or not store.count())):
        if store.n_bits and (why := _outgrown(store, found.added + found.changed)):
            typer.echo(f"{why} To learn again: vdsh learn {options.named(store)}", err=True)
        return
    try:
        store.learn(bits=bits, embed=embed, progress=not quiet)
    except KeyboardInterrupt:
        name = options.named(store)
        typer.echo(f"{name} answers as before. To learn: vdsh learn {name}", err=True)
        raise
    except VdshError as error:  # too few documents, or nothing to learn with: words answer
        if when == "now":
            raise
        typer.echo(f"No codes were learned. {error}", err=True)
        return
    typer.echo(
        f"Learned codes of {store.n_bits} bits.{_few_bits(store, bits)} "
        f"Next: vdsh search {options.named(store)} SOME WORDS",
        err=True,
    )


def _few_bits(store: "Store", bits: int | None, model: str | None = None) -> str:
    """Say why codes are shorter than usual, where they are."""
    from vdsh.fitting import LEAST_LEARNED, MOST_BITS

    if bits is not None or model is not None or store.model.topic.n_bits >= MOST_BITS:
        return ""
    return f" {MOST_BITS} bits need {LEAST_LEARNED[MOST_BITS]} different documents."


def _outgrown(store: "Store", n_new: int) -> str:
    """Say why the model should learn again, where it should."""
    if not n_new:
        return ""
    facts = store.model.training
    n_held_out = facts.get("validation_documents", 0)
    n_learned = facts.get("sampled_from") or facts["documents"] + n_held_out
    if store.count() > GROWN * n_learned:
        return f"There were {n_learned:,} documents when it learned."
    if n_new >= LEAST:
        with suppress(InputError):  # not every engine knows what was written last
            if (drift := store.drift(recent=n_new)).drifted:
                return drift.verdict
    return ""

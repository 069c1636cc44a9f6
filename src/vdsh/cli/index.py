"""`vdsh index`: documents into a store."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import typer

import vdsh
from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import confirm, say
from vdsh.cli.vectors import VECTORS, vectors_of, without_field
from vdsh.documents.document import BATCH, in_batches
from vdsh.errors import InputError, VdshError

if TYPE_CHECKING:
    from vdsh.documents import Document
    from vdsh.store import Store

EXAMPLE = "Example: vdsh index news-model news.jsonl --store news-store"
MUCH = 0.5  # share of a store that is not replaced unasked
MOST_WAITING = 100_000  # documents in memory
_TOGETHER = 500  # ids that are looked up together


@options.reads_documents
def command(
    model: str = argument(..., "Model folder."),
    docs: str = options.DOCS,
    store: str = options.STORE_OPTION,
    language: str | None = option(
        None,
        "Language of the words of a new store, such as german, or none. By default the first "
        "documents tell.",
    ),
    vectors: str | None = VECTORS,
    replace: bool = option(False, "Do not ask before replacing much of the store.", "--replace"),
    reading: options.Reading = options.BY_DEFAULT,
    as_json: bool = options.JSON,
) -> None:
    """Add documents to a store, created if needed; an existing id is replaced.

    It asks first if that would replace the texts of more than half of the store.
    """
    from vdsh.progress import show_progress

    loaded = vdsh.Model.load(model)
    if vectors is None and not loaded.texts_suffice:
        raise InputError(f"The model in '{model}' hashes vectors. Give them: --vectors FILE.")
    replacing = partial(Replacing, agreed=replace, from_stdin=docs == "-")
    written = 0

    def acknowledge(committed: int) -> None:
        nonlocal written
        written = committed

    try:
        with ExitStack() as stack:
            if vectors is not None:
                every = reading.documents(docs)
                found = vectors_of(vectors, every)
                (loaded.second or loaded).rows(found[:1])  # what it cannot take makes no store
                opened = stack.enter_context(vdsh.open_store(store, loaded, language=language))
                run = replacing(opened)
                list(run.order(every))  # asks before any of them is written
                every = without_field(every, vectors)
                with show_progress("indexing", len(every), enabled=not reading.quiet) as show:
                    for first in range(0, len(every), BATCH):
                        some = slice(first, first + BATCH)
                        written += opened.upsert(every[some], vectors=found[some])
                        show(written)
            else:
                with reading.stream(docs, "indexing") as documents:
                    begin = next(in_batches(documents), [])  # what cannot be read makes no store
                    opened = stack.enter_context(vdsh.open_store(store, loaded, language=language))
                    run = replacing(opened)
                    opened.upsert(run.order(chain(begin, documents)), progress=acknowledge)
            total = opened.count()
    except (VdshError, KeyboardInterrupt):
        if written:
            typer.echo(f"{written:,} documents were committed before and are kept.", err=True)
        raise
    shown = options.named(opened)
    older = f", {run.count:,} in place of older ones with the same ids" if run.count else ""
    say(
        {"store": opened.path, "written": written, "replaced": run.count, "documents": total},
        f"Wrote {written:,} documents{older}; the store {shown} holds {total:,}.",
        f"Next: vdsh search {shown} SOME WORDS",
        as_json=as_json,
    )


@dataclass
class Replacing:
    """The order in which documents are written, so that none is lost before somebody agrees.

    Those that replace another text come last; where they are most of the store, or more than fit
    into memory, a person is asked first. `count` is how many ids were in the store already.
    """

    store: "Store"
    agreed: bool
    from_stdin: bool
    count = 0

    def order(self, documents: Iterable["Document"]) -> Iterator["Document"]:
        """Give all documents; of those with the same id the last one stays the last."""
        n_before, waiting = self.store.count(), dict[str, "Document"]()
        for batch in in_batches(documents, _TOGETHER):
            texts = self.store.texts([one.id for one in batch]) if n_before else {}
            self.count += len(texts)
            for one in batch:
                is_same = texts.get(one.id, one.text) == one.text
                if self.agreed or (is_same and one.id not in waiting):
                    yield one
                else:
                    waiting[one.id] = one
            if len(waiting) > min(MUCH * n_before, MOST_WAITING):
                confirm(
                    f"Replace {len(waiting):,} of {n_before:,} documents by others with the same "
                    "ids?",
                    "That is much of the store",
                    "Nothing was replaced",
                    "add --replace if it is meant, or name the field of the ids with --id-field.",
                    from_stdin=self.from_stdin,
                )
                self.agreed = True
                yield from waiting.values()
                waiting.clear()
        yield from waiting.values()

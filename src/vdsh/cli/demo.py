"""`vdsh demo`: the whole way on real text, offline: the docstrings of the installed packages."""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, simplefilter

import typer

from vdsh.cli import options
from vdsh.cli.output import print_answer, print_values, say

if TYPE_CHECKING:
    from vdsh.datasets import Dataset
    from vdsh.documents import Document
    from vdsh.pipeline import TextHasher
    from vdsh.store import Hits, Store

EXAMPLE = "Example: vdsh demo --out my-demo"
# Enough documents to learn from, few enough for three minutes on two cores.
_AREAS, _EACH = 24, 400
_SETTINGS: dict[str, Any] = {"epochs": 12, "patience": 3}
_QUERIES = ("how to sort a list", "gradient descent optimizer", "read a csv file")
_ON_THE_MAP = 5000  # documents; half a minute on two cores


def command(
    out: Annotated[str, typer.Option(help="Folder for model, store and documents.")] = "vdsh-demo",
    seed: Annotated[int, typer.Option(help="The same seed gives the same codes.")] = 0,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then serve the page; an existing demo is used.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port to serve on; 0 takes a free one.")] = 8000,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train on the docstrings of the installed packages and search them."""
    if serve:
        from vdsh.cli.serve import check_packages

        check_packages()  # before minutes of training
        check_packages(("openTSNE",), "plots")
    if not serve or not (Path(out) / "store" / "store.sqlite").exists():
        _run(out, seed, as_json=as_json, quiet=quiet)
    if serve:
        _serve(f"{out}/store", seed, port, quiet=quiet)


def _serve(store: str, seed: int, port: int, *, quiet: bool) -> None:
    """Make the map that the page shows, and serve until Ctrl-C."""
    from vdsh.cli import research, serve
    from vdsh.corpus_map import FILE

    if not (Path(store) / FILE).exists():
        research.make_map(store, limit=_ON_THE_MAP, seed=seed, quiet=quiet)
    serve.command([store], port=port, quiet=True)


def _run(out: str, seed: int, *, as_json: bool, quiet: bool) -> None:
    """Go the whole way from texts to searches."""
    from vdsh.datasets.base import random_split
    from vdsh.datasets.formats import write_stories
    from vdsh.persistence import check_free

    started = time.monotonic()
    model = Path(out) / "model"
    check_free(model, force=True)
    documents, few = _collect(quiet=quiet)
    data = random_split("docstrings", few, seed, "docstrings of the installed packages")
    areas = sorted({area for document in few for area in document.labels or ()})
    if not as_json:
        typer.echo(
            f"{len(documents):,} docstrings of installed packages. Learning from {len(few):,} of "
            f"them, in {len(areas)} areas such as "
            f"{', '.join(areas[:: max(1, len(areas) // 4)][:4])}."
        )
    hasher = _train(data, seed, quiet=quiet)
    if (profile := hasher.model_.profile) is not None:  # the other docstrings are no newer
        hasher.model_.profile = profile.with_seen(one.text for one in documents)
    hasher.save(model, force=True)
    corpus = write_stories(Path(out), few)
    quality = _measure(hasher, data)
    with _make_store(Path(out) / "store", hasher, documents, quiet=quiet) as store:
        searches = dict(zip(_QUERIES, store.search_many(_QUERIES, k=3), strict=True))
    seconds = time.monotonic() - started
    if as_json:
        facts = {"model": str(model), "documents": str(corpus), "store": f"{out}/store"}
        shown = [{"query": query, "hits": _summary(hits)} for query, hits in searches.items()]
        found = {"precision_at_100": quality, "searches": shown, "seconds": round(seconds)}
        say(facts | found, as_json=True)
        return
    typer.echo("\nPrecision at 100 on held-out documents (are of the same area as the query):")
    print_values(quality, hasher.n_bits)
    typer.echo(f"\nWords and codes together, over all {len(documents):,}:\n")
    for query, hits in searches.items():
        print_answer(query, hits, as_json=False)
    place = "" if out == "vdsh-demo" else f" --out {out}"
    typer.echo(
        f"Done in {seconds:.0f} s. Model, store and documents are in {out}. Try next:\n"
        f"  vdsh search {out}/store probability density of a distribution\n"
        f"  vdsh demo --serve{place}   # the page: search, bits, a map\n"
        f"  vdsh duplicates {out}/store\n"
        f"  vdsh research encode {model} {corpus} | head\n"
        f"  cat {model}/README.md\n"
        "  vdsh fit YOUR.jsonl --out your-model"
    )


def _collect(*, quiet: bool) -> "tuple[list[Document], list[Document]]":
    """Read the docstrings of everything that has a public name, and choose some to learn from."""
    from vdsh.datasets import docstrings
    from vdsh.progress import show_progress

    with show_progress("reading source files", enabled=not quiet) as show:
        found = docstrings.collect(progress=show)
    public = [one for one in found if "._" not in one.id.removeprefix(one.metadata["module"])]
    return public, docstrings.choose(public, areas=_AREAS, each=_EACH)


def _train(data: "Dataset", seed: int, *, quiet: bool) -> "TextHasher":
    from vdsh.pipeline import TextHasher

    hasher = TextHasher("vdsh", n_bits=32, random_state=seed, **_SETTINGS)
    return hasher.fit(
        data.train.texts or (),
        data.train.labels,
        validation=(data.validation.texts or (), data.validation.labels),
        progress=not quiet,
        source=data.note,
    )


def _measure(hasher: "TextHasher", data: "Dataset") -> dict[str, float]:
    """Measure precision at 100 of the test documents searching the training documents."""
    from vdsh.evaluation import measure_codes

    assert data.train.texts is not None and data.test.texts is not None
    model = hasher.model_
    documents = model.counts(data.train.texts).to_csr(), data.train.labels
    queries = model.counts(data.test.texts).to_csr(), data.test.labels
    found = measure_codes(model, queries, documents, k=100)
    return {name: round(value, 4) for name, value in found.values.items()}


def _make_store(
    path: Path, hasher: "TextHasher", documents: "list[Document]", *, quiet: bool
) -> "Store":
    """Put all documents into a new store; an older demo's is replaced."""
    from vdsh.model.model import EmptyDocumentWarning
    from vdsh.progress import show_progress
    from vdsh.server import examples
    from vdsh.store import open_store

    if (path / "store.sqlite").exists():
        shutil.rmtree(path)
    store = open_store(path, hasher)
    with show_progress("indexing", len(documents), enabled=not quiet) as show, catch_warnings():
        simplefilter("ignore", EmptyDocumentWarning)  # two in 38,000 are no news
        store.upsert(documents, progress=show)
    examples.write(path, list(_QUERIES))
    return store


def _summary(hits: "Hits") -> list[dict[str, Any]]:
    return [
        {"id": hit.id, "labels": hit.labels, "score": hit.score, "passage": hit.passage()}
        for hit in hits
    ]

"""`vdsh demo`: the whole way on real text, offline: the docstrings of the installed packages."""

import json
import shutil
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options
from vdsh.cli.output import print_values

if TYPE_CHECKING:
    from vdsh.datasets import Dataset
    from vdsh.documents import Document
    from vdsh.pipeline import TextHasher
    from vdsh.store import Store

EXAMPLE = "Example: vdsh demo --out my-demo"
# Enough documents to learn from, few enough for three minutes on two cores.
_AREAS, _EACH = 24, 400
_SETTINGS: dict[str, Any] = {"epochs": 12, "patience": 3, "hidden_size": 500}
_N_QUERIES = 3
_ON_THE_MAP = 5000  # documents; half a minute on two cores


def command(
    out: Annotated[str, typer.Option(help="Folder for model, store and documents.")] = "vdsh-demo",
    seed: Annotated[int, typer.Option(help="The same seed gives the same codes.")] = 0,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then open the page on it; an older demo is used.")
    ] = False,
    port: Annotated[int, typer.Option(help="Where to serve; 0 takes a free one.")] = 8000,
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
    from vdsh.cli import map, serve
    from vdsh.corpus_map import FILE

    if not (Path(store) / FILE).exists():
        map.make(store, limit=_ON_THE_MAP, seed=seed, quiet=quiet)
    serve.command(store, port=port, quiet=True)


def _run(out: str, seed: int, *, as_json: bool, quiet: bool) -> None:
    """Go the whole way from texts to searches."""
    from vdsh.datasets.base import random_split
    from vdsh.datasets.formats import write_stories
    from vdsh.persistence import check_free

    started = time.monotonic()
    model = Path(out) / "model"
    check_free(model, force=True)
    documents = _collect(quiet=quiet)
    data = random_split("docstrings", documents, seed, "docstrings of the installed packages")
    areas = sorted({area for document in documents for area in document.labels or ()})
    if not as_json:
        typer.echo(
            f"{len(documents):,} docstrings of installed packages in {len(areas)} areas, such as "
            f"{', '.join(areas[:: max(1, len(areas) // 4)][:4])}."
        )
    hasher = _train(data, seed, quiet=quiet)
    hasher.save(model, force=True)
    corpus = write_stories(Path(out), documents)
    quality = _measure(hasher, data)
    with _make_store(Path(out) / "store", hasher, data) as store:
        searches = _search(store, hasher, data)
    seconds = time.monotonic() - started
    if as_json:
        facts = {"model": str(model), "documents": str(corpus), "store": f"{out}/store"}
        found = {"precision_at_100": quality, "searches": searches, "seconds": round(seconds)}
        typer.echo(json.dumps(facts | found))
        return
    typer.echo("\nPrecision at 100 on held-out documents (share a label with the query):")
    print_values(quality, hasher.n_bits)
    _print_searches(searches)
    place = "" if out == "vdsh-demo" else f" --out {out}"
    typer.echo(
        f"\nDone in {seconds:.0f} s. Model, store and documents are in {out}. Try next:\n"
        f'  vdsh search {out}/store "probability density of a distribution" -k 5\n'
        f"  vdsh demo --serve{place}   # the page: search, bits, a map\n"
        f"  vdsh duplicates {out}/store\n"
        f"  vdsh encode {model} {corpus} | head\n"
        f"  cat {model}/README.md\n"
        "  vdsh fit YOUR.jsonl --out your-model"
    )


def _collect(*, quiet: bool) -> "list[Document]":
    from vdsh.datasets import docstrings
    from vdsh.progress import counting_bar

    with counting_bar("reading source files", 0, enabled=not quiet) as bar:

        def show(done: int, total: int) -> None:
            bar.update(bar.task_ids[0], completed=done, total=total)

        return docstrings.collect(areas=_AREAS, each=_EACH, progress=show)


def _train(data: "Dataset", seed: int, *, quiet: bool) -> "TextHasher":
    from vdsh.pipeline import TextHasher

    hasher = TextHasher("vdsh-s", n_bits=32, random_state=seed, **_SETTINGS)
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


def _make_store(path: Path, hasher: "TextHasher", data: "Dataset") -> "Store":
    """Put all but the test documents into a new store; an older demo's is replaced."""
    from vdsh.documents import Document
    from vdsh.store import open_store

    if (path / "store.sqlite").exists():
        shutil.rmtree(path)
    store = open_store(path, hasher)
    for part in (data.train, data.validation):
        store.upsert(map(Document, part.ids, part.texts or (), part.labels))
    return store


def _search(store: "Store", hasher: "TextHasher", data: "Dataset") -> list[dict[str, Any]]:
    """Find the documents nearest to some held-out documents."""
    from vdsh.codes import to_hex

    searches = []
    rows = zip(data.test.ids, data.test.texts or (), data.test.labels, strict=True)
    for name, text, labels in islice(rows, _N_QUERIES):
        hits = [
            {"distance": hit.distance, **_summary(hit.id, hit.labels, hit.text)}
            for hit in store.search(text, k=3)
        ]
        (code,) = to_hex(hasher.encode([text]))
        searches.append({"code": code, **_summary(name, labels, text), "hits": hits})
    return searches


def _summary(name: str, labels: tuple[str, ...] | None, text: str) -> dict[str, Any]:
    return {"id": name, "labels": labels, "snippet": text.strip().partition("\n")[0][:60]}


def _print_searches(searches: list[dict[str, Any]]) -> None:
    typer.echo(
        "\nHeld-out documents and their nearest neighbours (differing bits, area, document):"
    )
    for search in searches:
        typer.echo(f"\n  {search['code']}  {_line(search)}")
        for hit in search["hits"]:
            typer.echo(f"  {hit['distance']:>8}  {_line(hit)}")


def _line(hit: dict[str, Any]) -> str:
    name = hit["id"].rpartition(".")[2]
    return f"{', '.join(hit['labels'] or ()):<20} {name}: {hit['snippet']}"

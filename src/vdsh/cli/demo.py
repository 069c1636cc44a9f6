"""`vdsh demo`: the whole way on real text, offline: the docstrings of the installed packages."""

import gzip
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options

if TYPE_CHECKING:
    from vdsh.datasets import Dataset
    from vdsh.documents import Document
    from vdsh.pipeline import TextHasher

EXAMPLE = "Example: vdsh demo --out my-demo"
# Enough documents to learn from, few enough for three minutes on two cores.
_AREAS, _EACH = 24, 400
_SETTINGS: dict[str, Any] = {"epochs": 12, "patience": 3, "hidden_size": 500}
_N_QUERIES = 3


def command(
    out: Annotated[str, typer.Option(help="Folder for the model and the documents.")] = "vdsh-demo",
    seed: Annotated[int, typer.Option(help="The same seed gives the same codes.")] = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train on the docstrings of the installed packages and search them."""
    from vdsh.datasets.base import random_split
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
    corpus = _write_documents(Path(out) / "documents.jsonl.gz", documents)
    quality, searches = _measure(hasher, data), _search(hasher, data)
    seconds = time.monotonic() - started
    if as_json:
        facts = {"model": str(model), "documents": str(corpus), "seconds": round(seconds, 1)}
        typer.echo(json.dumps(facts | {"precision_at_100": quality, "searches": searches}))
        return
    _print_quality(quality, hasher.n_bits)
    _print_searches(searches)
    typer.echo(
        f"\nDone in {seconds:.0f} s. The model is in {model}, its documents in {corpus}.\n"
        "Try next:\n"
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
        data.train.texts,
        data.train.labels,
        validation=(data.validation.texts, data.validation.labels),
        progress=not quiet,
        source=data.note,
    )


def _write_documents(path: Path, documents: "list[Document]") -> Path:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        for document in documents:
            fields = {"id": document.id, "text": document.text, "labels": document.labels}
            file.write(json.dumps(fields | document.metadata) + "\n")
    return path


def _measure(hasher: "TextHasher", data: "Dataset") -> dict[str, float]:
    """Measure precision at 100 of the test documents searching the training documents."""
    from vdsh.labels import read_labels
    from vdsh.metrics import cosine_precision, expected_precision, random_precision
    from vdsh.text import inverse_document_frequency, weigh

    train = read_labels(data.train.labels)
    test = read_labels(data.test.labels, train.names)
    counts = [hasher.vectorizer_.transform(part.texts) for part in (data.test, data.train)]
    idf = inverse_document_frequency(counts[1])
    test_terms, train_terms = (weigh(part, "tfidf", idf) for part in counts)
    test_codes, train_codes = (hasher.hasher_.encode(part) for part in counts)
    found = {
        "random": random_precision(test.matrix, train.matrix),
        "exact tf-idf cosine": cosine_precision(test_terms, test.matrix, train_terms, train.matrix),
        "codes": expected_precision(test_codes, test.matrix, train_codes, train.matrix),
    }
    return {name: round(float(values.mean()), 4) for name, values in found.items()}


def _search(hasher: "TextHasher", data: "Dataset") -> list[dict[str, Any]]:
    """Find the training documents nearest to some held-out documents."""
    from vdsh.codes import to_hex
    from vdsh.search import HammingIndex

    index = HammingIndex(hasher.encode(data.train.texts))
    codes = hasher.encode(data.test.texts[:_N_QUERIES])
    rows, distances = index.search(codes, k=3)
    return [
        {
            "id": data.test.ids[query],
            "labels": data.test.labels[query],
            "snippet": _first_line(data.test.texts[query]),
            "code": code,
            "hits": [
                {
                    "id": data.train.ids[row],
                    "distance": int(distance),
                    "labels": data.train.labels[row],
                    "snippet": _first_line(data.train.texts[row]),
                }
                for row, distance in zip(query_rows, query_distances, strict=True)
            ],
        }
        for query, (code, query_rows, query_distances) in enumerate(
            zip(to_hex(codes), rows, distances, strict=True)
        )
    ]


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:60]


def _print_quality(quality: dict[str, float], n_bits: int) -> None:
    typer.echo("\nPrecision at 100 on held-out documents (share a label with the query):")
    sizes = {"random": "", "exact tf-idf cosine": "sparse floats", "codes": f"{n_bits // 8} bytes"}
    for name, value in quality.items():
        typer.echo(f"  {name:<20} {value:.3f}  {sizes[name]}")


def _print_searches(searches: list[dict[str, Any]]) -> None:
    typer.echo(
        "\nHeld-out documents and their nearest neighbours (differing bits, area, document):"
    )
    for search in searches:
        typer.echo(f"\n  {search['code']}  {_line(search)}")
        for hit in search["hits"]:
            typer.echo(f"        {hit['distance']:>2}  {_line(hit)}")


def _line(hit: dict[str, Any]) -> str:
    name = hit["id"].rpartition(".")[2]
    return f"{', '.join(hit['labels'] or ()):<20} {name}: {hit['snippet']}"

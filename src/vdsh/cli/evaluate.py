"""`vdsh evaluate`: how well codes find documents of the same label, or a store what is asked."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options, queries_report
from vdsh.cli.output import aligned, output, say
from vdsh.errors import InputError, MissingFileError, suggest
from vdsh.files import check_new

if TYPE_CHECKING:
    from vdsh.evaluation import Comparison, Evaluation
    from vdsh.pipeline import TextHasher

Labelled = tuple[list[str], list[Any]]
EXAMPLE = "Example: vdsh research evaluate news-model 20newsgroups --against other-model"


@options.reads_documents
def command(
    model: Annotated[
        str,
        typer.Argument(
            help="Folder of the model; with --queries, folder or URL of the store.",
            show_default=False,
        ),
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            help="A corpus of `vdsh research datasets`, whose test documents search its training "
            "documents; or labelled documents in a file, which search one another.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            help="File of queries with the ids they should find: measures a store beside BM25 "
            "and tf-idf. With --qrels, of ids and queries."
        ),
    ] = None,
    qrels: Annotated[
        str | None, typer.Option(help="File of relevant ids, as TREC or BEIR have it.")
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="File of documents to search; those of DATA are the queries.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Another model, compared on the same queries.")
    ] = None,
    k: Annotated[
        int,
        typer.Option("-k", min=1, help="Nearest documents that count; with --queries, for recall."),
    ] = 100,
    radius: Annotated[int, typer.Option(min=0, help="Largest distance that counts.")] = 2,
    root: Annotated[str | None, typer.Option(help="Folder of the corpora.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random split of the corpus.")] = 0,
    per_query: Annotated[
        str | None, typer.Option(help="Write each query's values to this JSON file.")
    ] = None,
    reading: options.Reading = options.BY_DEFAULT,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure a model by labels, exact over ties; or a store by your own queries."""
    if per_query:
        check_new(per_query, force=force)
    if queries is not None:
        if data or database or against:
            raise InputError("--queries search a store: leave out DATA, --database and --against.")
        values = queries_report.report(
            model, queries, qrels, k, reading, as_json=as_json, quiet=quiet
        )
    elif qrels is not None or data is None:
        raise InputError("Give labelled documents or a corpus as DATA, or queries with --queries.")
    else:
        from vdsh.pipeline import TextHasher

        hashers = [(path, TextHasher.load(path)) for path in filter(None, [model, against])]
        asked, searched = _read(data, database, root, seed, reading, quiet=quiet)
        values = _report(hashers, asked, searched, k, radius, as_json=as_json)
    if per_query:
        with output(per_query, force=force) as file:
            file.write(json.dumps(values) + "\n")


def _read(
    data: str,
    database: str | None,
    root: str | None,
    seed: int,
    reading: options.Reading,
    *,
    quiet: bool,
) -> tuple[Labelled, Labelled | None]:
    """Read the documents that search, and those that are searched where they are others."""
    from vdsh.datasets import DATASETS, load

    if Path(data).exists() or data == "-":
        files = [reading.documents(file, quiet=quiet) for file in (data, database) if file]
        asked, *searched = [([d.text for d in file], [d.labels for d in file]) for file in files]
        return asked, searched[0] if searched else None
    if data not in DATASETS:
        raise MissingFileError(f"No file and no dataset '{data}'. {suggest(data, DATASETS)}")
    corpus = load(data, root=root, seed=seed)
    if corpus.test.texts is None or corpus.train.texts is None:
        raise InputError(
            f"'{data}' comes as term counts without texts, which a saved model cannot read. "
            "Measure methods on it with: vdsh reproduce table1 --datasets " + data
        )
    return (corpus.test.texts, corpus.test.labels), (corpus.train.texts, corpus.train.labels)


def _report(
    hashers: "list[tuple[str, TextHasher]]",
    asked: Labelled,
    searched: Labelled | None,
    k: int,
    radius: int,
    *,
    as_json: bool,
) -> dict[str, list[float]]:
    """Measure one model, or two side by side; give the first one's values of each query."""
    from vdsh.evaluation import compare

    found = [_measure(hasher, asked, searched, k, radius) for _, hasher in hashers]
    if found[0].k < k:
        typer.echo(
            f"Only {found[0].k} documents can be found, so k is {found[0].k} instead of {k}.",
            err=True,
        )
    comparison = None
    if len(found) > 1:
        name = f"precision@{found[0].k}"
        comparison = compare(found[0].values[name], found[1].values[name])
    lines = _lines(found, comparison, [name for name, _ in hashers])
    say(_facts(found, comparison), *lines, as_json=as_json)
    return {name: each.round(6).tolist() for name, each in found[0].values.items()}


def _measure(
    hasher: "TextHasher", queries: Labelled, documents: Labelled | None, k: int, radius: int
) -> "Evaluation":
    from vdsh.evaluation.protocol import evaluate_among, evaluate_codes

    codes = hasher.encode(queries[0])
    if documents is None:
        return evaluate_among(codes, queries[1], k=k, radius=radius)
    return evaluate_codes(
        codes, queries[1], hasher.encode(documents[0]), documents[1], k=k, radius=radius
    )


def _facts(found: "list[Evaluation]", comparison: "Comparison | None") -> dict[str, Any]:
    first = found[0]
    facts: dict[str, Any] = {
        "queries": first.n_queries,
        "documents": first.n_documents,
        "unlabelled": first.n_unlabelled,
        "measures": first.means,
    }
    if comparison:
        facts |= {"against": found[1].means, "comparison": comparison._asdict()}
    return facts


def _lines(
    found: "list[Evaluation]", comparison: "Comparison | None", names: list[str]
) -> Iterator[str]:
    yield found[0].sizes
    means = [each.means for each in found]
    rows = [(f"  {name:<15}", *(f"{each[name]:.4f}" for each in means)) for name in means[0]]
    yield from aligned([("", *names), *rows] if comparison else rows)
    if comparison:
        yield (
            f"Difference of precision@{found[0].k}, the first less the second: "
            f"{comparison.difference:+.4f}, 95 % interval "
            f"{comparison.low:+.4f} to {comparison.high:+.4f}, paired t-test "
            f"p = {comparison.p_value:.2g}"
        )

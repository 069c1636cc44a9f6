"""`vdsh evaluate`: how well codes find documents of the same label, or a store what is asked."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options, queries_report
from vdsh.cli.output import output, say
from vdsh.errors import InputError, MissingFileError, suggest
from vdsh.files import check_new

if TYPE_CHECKING:
    from vdsh.documents import Document
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
    from vdsh.datasets import DATASETS

    if Path(data).exists() or data == "-":
        asked = _labelled(reading.documents(data, quiet=quiet))
        return asked, _labelled(reading.documents(database, quiet=quiet)) if database else None
    if data not in DATASETS:
        raise MissingFileError(f"No file and no dataset '{data}'. {suggest(data, DATASETS)}")
    return _of_dataset(data, root, seed)


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
    _print(found, comparison, [name for name, _ in hashers], as_json=as_json)
    return {name: each.round(6).tolist() for name, each in found[0].values.items()}


def _of_dataset(name: str, root: str | None, seed: int) -> tuple[Labelled, Labelled]:
    from vdsh.datasets import load

    data = load(name, root=root, seed=seed)
    if data.test.texts is None or data.train.texts is None:
        raise InputError(
            f"'{name}' comes as term counts without texts, which a saved model cannot read. "
            "Measure methods on it with: vdsh reproduce table1 --datasets " + name
        )
    return (data.test.texts, data.test.labels), (data.train.texts, data.train.labels)


def _labelled(documents: "list[Document]") -> Labelled:
    return [d.text for d in documents], [d.labels for d in documents]


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


def _print(
    found: "list[Evaluation]", comparison: "Comparison | None", names: list[str], *, as_json: bool
) -> None:
    first = found[0]
    if as_json:
        facts: dict[str, Any] = {
            "queries": first.n_queries,
            "documents": first.n_documents,
            "unlabelled": first.n_unlabelled,
            "measures": first.means,
        }
        if comparison:
            facts |= {"against": found[1].means, "comparison": comparison._asdict()}
        say(facts, as_json=True)
        return
    left_out = f"; {first.n_unlabelled:,} without labels left out" if first.n_unlabelled else ""
    typer.echo(f"{first.n_queries:,} queries, {first.n_documents:,} documents each{left_out}")
    if comparison:
        typer.echo(f"  {'':<16} {names[0]}  {names[1]}")
    for name, value in first.means.items():
        other = f"  {found[1].means[name]:.4f}" if comparison else ""
        typer.echo(f"  {name:<16} {value:<{len(names[0]) if comparison else 0}.4f}{other}")
    if comparison:
        typer.echo(
            f"Difference of precision@{first.k}, the first less the second: "
            f"{comparison.difference:+.4f}, 95 % interval "
            f"{comparison.low:+.4f} to {comparison.high:+.4f}, paired t-test "
            f"p = {comparison.p_value:.2g}"
        )

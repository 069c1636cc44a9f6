"""`vdsh evaluate`: how well codes find documents of the same label, or a store what is asked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import vdsh
from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import aligned, output, say
from vdsh.errors import InputError, MissingFileError, suggest
from vdsh.files import check_new

if TYPE_CHECKING:
    from vdsh.evaluation import QueryEvaluation, Ranking

Labelled = tuple[list[str], list[Any]]
Given = tuple[Labelled, Labelled | None]  # those that search, and those that are searched
EXAMPLE = "Example: vdsh research evaluate news-model 20newsgroups --against other-model"
_SURE = 0.05  # a p-value below says that a difference is more than luck


@options.reads_documents
def command(
    model: str = argument(..., "Folder of the model; with --queries, the store."),
    data: str | None = argument(
        None,
        "A corpus of `vdsh research datasets`, whose test documents search its training "
        "documents; or labelled documents in a file, which search one another.",
    ),
    queries: str | None = option(
        None,
        "File of queries with the ids they should find: measures a store beside BM25 and tf-idf. "
        "With --qrels, of ids and queries.",
    ),
    qrels: str | None = option(None, "File of relevant ids, as TREC or BEIR have it."),
    database: str | None = option(
        None, "File of documents to search; those of DATA are the queries."
    ),
    against: str | None = option(None, "Another model, compared on the same queries."),
    k: int = option(100, "Nearest documents that count; with --queries, for recall.", "-k", min=1),
    radius: int = option(2, "Largest distance that counts.", min=0),
    root: str | None = option(None, "Folder of the corpora."),
    seed: int = option(0, "Seed of the random split of the corpus."),
    per_query: str | None = option(None, "Write each query's values to this JSON file."),
    reading: options.Reading = options.BY_DEFAULT,
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
) -> None:
    """Measure a model by labels, exact over ties; or a store by your own queries."""
    if per_query:
        check_new(per_query, force=force)
    if queries is not None:
        if data or database or against:
            raise InputError("--queries search a store: leave out DATA, --database and --against.")
        found = _ask(options.find_store(model), queries, qrels, k, reading)
        _report_queries(found, as_json)
        values: dict[str, Any] = {"queries": [query.text for query in found.queries]}
        values |= {row.name: _rounded(row.values) for row in found.rows}
    elif qrels is not None or data is None:
        raise InputError("Give labelled documents or a corpus as DATA, or queries with --queries.")
    else:
        hashers = [(path, vdsh.TextHasher.load(path)) for path in filter(None, [model, against])]
        texts = _read(data, database, root, seed, reading)
        values = _report(hashers, texts, k, radius, as_json)
    if per_query:
        with output(per_query, force=force) as file:
            file.write(json.dumps(values) + "\n")


def _read(
    data: str, database: str | None, root: str | None, seed: int, reading: options.Reading
) -> Given:
    """Read the documents that search, and those that are searched where they are others."""
    from vdsh.paper.datasets import DATASETS, load

    if Path(data).exists() or data == "-":
        files = [reading.documents(file) for file in (data, database) if file]
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
    hashers: "list[tuple[str, vdsh.TextHasher]]", given: Given, k: int, radius: int, as_json: bool
) -> dict[str, list[float]]:
    """Measure one model, or two side by side; give the first one's values of each query."""
    from vdsh.evaluation import compare
    from vdsh.paper.protocol import evaluate_among, evaluate_codes

    (asked, searched), found = given, []
    for _, hasher in hashers:
        queries = hasher.encode(asked[0]), asked[1]
        if searched is None:
            found.append(evaluate_among(*queries, k=k, radius=radius))
        else:
            others = hasher.encode(searched[0]), searched[1]
            found.append(evaluate_codes(*queries, *others, k=k, radius=radius))
    first, means = found[0], [each.means for each in found]
    if first.k < k:
        said = f"Only {first.k} documents can be found, so k is {first.k} instead of {k}."
        typer.echo(said, err=True)
    facts: dict[str, Any] = {
        "queries": first.n_queries,
        "documents": first.n_documents,
        "unlabelled": first.n_unlabelled,
        "measures": first.means,
    }
    rows = [(f"  {name:<15}", *(f"{each[name]:.4f}" for each in means)) for name in first.means]
    difference = []
    if len(found) > 1:
        name = f"precision@{first.k}"
        tested = compare(first.values[name], found[1].values[name])
        facts |= {"against": found[1].means, "comparison": tested._asdict()}
        rows.insert(0, ("", *(path for path, _ in hashers)))
        difference.append(
            f"Difference of {name}, the first less the second: {tested.difference:+.4f}, 95 % "
            f"interval {tested.low:+.4f} to {tested.high:+.4f}, paired t-test "
            f"p = {tested.p_value:.2g}"
        )
    say(facts, first.sizes, *aligned(rows), *difference, as_json=as_json)
    return _rounded(first.values)


def _ask(
    store: str, queries: str, qrels: str | None, k: int, reading: options.Reading
) -> "QueryEvaluation":
    """Search with the queries of a file."""
    from vdsh.evaluation import evaluate_queries, read_queries
    from vdsh.progress import show_progress

    how = reading.how()
    if reading.labels_field == options.BY_DEFAULT.labels_field:
        del how["labels_field"]  # those of a query are its answers
    given = read_queries(queries, qrels, **how)
    with (
        vdsh.open_store(store, create=False) as opened,
        show_progress("searching", enabled=not reading.quiet) as show,
    ):
        return evaluate_queries(
            opened, given, k=k, progress=lambda what, done, total: show(done, total, what)
        )


def _rounded(values: Mapping[str, Any]) -> dict[str, list[float]]:
    return {name: each.round(6).tolist() for name, each in values.items()}


def _report_queries(found: "QueryEvaluation", as_json: bool) -> None:
    """Print how well each ranking finds what the queries should."""
    n_relevant = sum(len(query.relevant) for query in found.queries)
    facts = {
        "queries": len(found.queries),
        "unjudged": found.n_unjudged,
        "documents": found.n_documents,
        "relevant": n_relevant,
        "missing": found.missing,
        "left_out": found.left_out,
        "rankings": {
            row.name: {name: _facts(row, name) for name in row.means} for row in found.rows
        },
    }
    left_out = f"; {found.n_unjudged:,} without one left out" if found.n_unjudged else ""
    first = (
        f"{len(found.queries):,} queries with {n_relevant:,} relevant documents{left_out}; "
        f"{found.n_documents:,} documents in the store"
    )
    rows = [(row.name, *(_cell(row, name) for name in row.means)) for row in found.rows]
    table = [f"  {line}" for line in aligned([("", *found.rows[0].means), *rows])]
    compared = any(row.against_bm25 for row in found.rows)
    sure = f"+ better or - worse than BM25 (paired t-test, p < {_SURE})"
    last = f"± standard error; {sure if compared else 'too few queries to compare with BM25'}"
    say(facts, first, *table, last, as_json=as_json)
    if as_json:
        return
    for name, reason in found.left_out.items():
        typer.echo(f"Without {name}: {reason}", err=True)
    if found.missing:
        typer.echo(
            "Relevant ids that are not in the store count as not found: "
            f"{len(found.missing):,}, such as '{found.missing[0]}'.",
            err=True,
        )


def _facts(row: "Ranking", name: str) -> dict[str, Any]:
    """Give mean, standard error and the comparison with BM25 of a measure."""
    facts: dict[str, Any] = {"mean": row.means[name], "error": row.errors[name]}
    if compared := row.against_bm25.get(name):
        facts["against_bm25"] = compared._asdict()
    return facts


def _cell(row: "Ranking", name: str) -> str:
    """Write mean, standard error and a sign where the difference to BM25 is more than luck."""
    error, comparison, sign = row.errors[name], row.against_bm25.get(name), ""
    if comparison and comparison.p_value < _SURE:
        sign = " +" if comparison.difference > 0 else " -"
    spread = "" if error is None else f" ±{error:.3f}"
    return f"{row.means[name]:.3f}{spread}{sign}"

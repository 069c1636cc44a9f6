"""`vdsh evaluate STORE --queries FILE`: what a store finds for queries, beside BM25 and tf-idf."""

from typing import TYPE_CHECKING, Any

import typer

from vdsh.cli import options
from vdsh.cli.output import say

if TYPE_CHECKING:
    from vdsh.evaluation import QueryEvaluation, Ranking

_SURE = 0.05  # a p-value below says that a difference is more than luck


def report(
    store: str,
    queries: str,
    qrels: str | None,
    k: int,
    reading: options.Reading,
    *,
    as_json: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Search with the queries of a file, print how good it was, give each query's values."""
    from rich.progress import MofNCompleteColumn

    from vdsh.evaluation import evaluate_queries, read_queries
    from vdsh.progress import progress_bar
    from vdsh.store import open_store

    given = read_queries(queries, qrels, **_options(reading))
    with (
        open_store(store, create=False) as opened,
        progress_bar(MofNCompleteColumn(), enabled=not quiet) as bar,
    ):
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        found = evaluate_queries(opened, given, k=k, progress=show)
    if as_json:
        say(_facts(found), as_json=True)
    else:
        _print(found)
    values = {
        row.name: {name: each.round(6).tolist() for name, each in row.values.items()}
        for row in found.rows
    }
    return {"queries": [query.text for query in found.queries], **values}


def _options(reading: options.Reading) -> dict[str, Any]:
    """Take the options that say how queries are read; the labels of a query are its answers."""
    given = reading._asdict() | {"drop_field": reading.drop_field or ()}
    if reading.labels_field == options.BY_DEFAULT.labels_field:
        del given["labels_field"]
    return given


def _facts(found: "QueryEvaluation") -> dict[str, Any]:
    return {
        "queries": len(found.queries),
        "unjudged": found.n_unjudged,
        "documents": found.n_documents,
        "relevant": _n_relevant(found),
        "missing": found.missing,
        "left_out": found.left_out,
        "rankings": {row.name: _measures(row) for row in found.rows},
    }


def _measures(row: "Ranking") -> dict[str, Any]:
    """Give mean, standard error and the comparison with BM25 of each measure."""
    measures: dict[str, Any] = {
        name: {"mean": mean, "error": row.errors[name]} for name, mean in row.means.items()
    }
    for name, comparison in row.against_bm25.items():
        measures[name]["against_bm25"] = comparison._asdict()
    return measures


def _n_relevant(found: "QueryEvaluation") -> int:
    return sum(len(query.relevant) for query in found.queries)


def _print(found: "QueryEvaluation") -> None:
    left_out = f"; {found.n_unjudged:,} without one left out" if found.n_unjudged else ""
    typer.echo(
        f"{len(found.queries):,} queries with {_n_relevant(found):,} relevant documents"
        f"{left_out}; {found.n_documents:,} documents in the store"
    )
    width = max(len(row.name) for row in found.rows)
    typer.echo(" " * (width + 4) + "".join(f"{name:<17}" for name in found.rows[0].means).rstrip())
    for row in found.rows:
        cells = "".join(f"{_cell(row, name):<17}" for name in row.means)
        typer.echo(f"  {row.name:<{width}}  {cells}".rstrip())
    compared = any(row.against_bm25 for row in found.rows)
    sure = f"+ better or - worse than BM25 (paired t-test, p < {_SURE})"
    typer.echo(f"± standard error; {sure if compared else 'too few queries to compare with BM25'}")
    for name, reason in found.left_out.items():
        typer.echo(f"Without {name}: {reason}", err=True)
    if found.missing:
        typer.echo(
            "Relevant ids that are not in the store count as not found: "
            f"{len(found.missing):,}, such as '{found.missing[0]}'.",
            err=True,
        )


def _cell(row: "Ranking", name: str) -> str:
    """Write mean, standard error and a sign where the difference to BM25 is more than luck."""
    error, comparison, sign = row.errors[name], row.against_bm25.get(name), ""
    if comparison and comparison.p_value < _SURE:
        sign = " +" if comparison.difference > 0 else " -"
    spread = "" if error is None else f" ±{error:.3f}"
    return f"{row.means[name]:.3f}{spread}{sign}"

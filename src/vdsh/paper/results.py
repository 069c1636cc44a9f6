"""Finished cells, read back as what tables and figures show, and the tables as text."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from vdsh.evaluation.significance import p_value
from vdsh.paper import cell_files
from vdsh.paper.cells import Cell, K
from vdsh.paper.reference import DATASETS, METHODS, OURS

# Of significance, as in the paper.
LEVEL = 0.01


class Sheet(NamedTuple):
    """A table whose cells are texts.

    Its note says what the reader must know to read it: the data, the marks.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""


class Request(NamedTuple):
    """Which part of a table or figure is asked for."""

    datasets: tuple[str, ...]
    bits: tuple[int, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)

    def cells(self, **changes: Any) -> list[Cell]:
        """List the cells asked for, with these changes; they stand for those of all seeds."""
        return [
            Cell(dataset, model, n_bits)._replace(**changes)
            for dataset in self.datasets
            for model in self.models
            for n_bits in self.bits
        ]

    def row(self, model: str, **changes: Any) -> list[Cell]:
        """List the cells of one method."""
        return self._replace(models=(model,)).cells(**changes)

    def sheet(self, title: str, first: str, rows: list[list[str]], note: str = "") -> Sheet:
        """Make a table about the only corpus with a column for each length."""
        (dataset,) = self.datasets
        header = [first, *(f"{n} bits" for n in self.bits)]
        return Sheet(f"{title}, {DATASETS.get(dataset, dataset)}", header, rows, note)


class Outcome(NamedTuple):
    """A method's precision.

    Attributes
    ----------
    mean : float
        Over seeds.
    per_query : ndarray of shape (n_queries,), or None
        The queries of all seeds; None where the files do not keep them.
    """

    mean: float
    per_query: NDArray[np.float64] | None


class Results:
    """The finished cells of a folder; without a folder there are none.

    `asked` has every cell that was asked for, finished or not: a table that is made of no results
    says in this way which cells it needs.
    """

    def __init__(self, folder: Path | None, seeds: Sequence[int]) -> None:
        self.folder = folder
        self.seeds = seeds
        self.asked: dict[Cell, dict[str, Any] | None] = {}

    def precision(self, cell: Cell, threshold: str = "") -> Outcome | None:
        """Return precision at 100; by default with the threshold that validation chose."""
        means = []
        per_query = []
        for record in self.of_seeds(cell):
            name = threshold or record["threshold"]
            means.append(record["precision"][name])
            per_query.append(record["per_query_permille"].get(name))
        if not means:
            return None
        kept = [values for values in per_query if values is not None]
        is_complete = len(kept) == len(per_query)
        values = np.concatenate(kept) / 1000 if is_complete else None
        return Outcome(float(np.mean(means)), values)

    def radius_precision(self, cell: Cell) -> float | None:
        """Return precision within the radius; a query that finds nothing counts as 0."""
        records = self.of_seeds(cell)
        if not records:
            return None
        values = [record["radius_precision"][record["threshold"]] for record in records]
        return float(np.mean(values))

    def shown(self, cells: Iterable[Cell]) -> list[str]:
        """Write the precision of some cells, or dashes where they were not run."""
        return [show(self.precision(cell)) for cell in cells]

    def data(self, cells: Sequence[Cell]) -> str:
        """Describe the data behind some cells, for the note below a table."""
        records = [record for cell in cells for record in self.of_seeds(cell)]
        notes = _of_any_seed(record["data"] for record in records)
        for k in {record["k"] for record in records if record["k"] < K}:
            notes.add(f"only {k} documents to find, so precision at {k}")
        for n_unlabelled in {record["unlabelled"] for record in records} - {0}:
            notes.add(f"{n_unlabelled:,} documents without labels were not judged")
        return "; ".join(sorted(notes))

    def best_baseline(self, cell: Cell, models: Sequence[str]) -> Outcome | None:
        """Return the best of the methods that are not ours, for the same corpus and length."""
        rivals = [model for model in models if model not in OURS and model in METHODS]
        outcomes = [self.precision(cell._replace(model=model)) for model in rivals]
        finished = [outcome for outcome in outcomes if outcome is not None]
        return max(finished, key=lambda outcome: outcome.mean, default=None)

    def of_seeds(self, cell: Cell) -> list[dict[str, Any]]:
        """Read what was recorded of a cell, seed by seed."""
        records = []
        for seed in self.seeds:
            one = cell._replace(seed=seed)
            if one not in self.asked:
                self.asked[one] = cell_files.read(self.folder, one) if self.folder else None
            record = self.asked[one]
            if record is not None:
                records.append(record)
        return records


def is_better(first: Outcome, second: Outcome) -> bool:
    """Tell whether the first is significantly better (paired t-test, p < 0.01)."""
    if first.mean <= second.mean:
        return False
    if first.per_query is None or second.per_query is None:
        return False
    return p_value(first.per_query, second.per_query) < LEVEL


def _of_any_seed(notes: Iterable[str]) -> set[str]:
    """Say once what differs in the seed of the split alone.

    >>> _of_any_seed(["random split, seed 0", "random split, seed 1"])
    {'random split, seeds 0, 1'}
    """
    seeds_by_text = defaultdict[str, set[str]](set)
    for note in notes:
        text, _, seed = note.partition(", seed ")
        seeds_by_text[text].add(seed)
    joined = set()
    for text, seeds in seeds_by_text.items():
        if any(seeds):
            name = "seeds" if len(seeds) > 1 else "seed"
            joined.add(f"{text}, {name} {', '.join(sorted(seeds))}")
        else:
            joined.add(text)
    return joined


def show(outcome: Outcome | None) -> str:
    """Write a mean, or a dash where nothing was run."""
    return number(outcome.mean if outcome else None)


def number(value: float | None) -> str:
    """Write three digits, or a dash where there is no number.

    >>> number(0.5), number(None)
    ('0.500', '–')
    """
    return "–" if value is None else f"{value:.3f}"


def markdown(sheets: Sequence[Sheet], *, level: int = 3) -> str:
    """Write tables as Markdown, each below its title.

    >>> print(markdown([Sheet("T", ["a", "b"], [["1", "2"]])]))
    ### T
    <BLANKLINE>
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    parts = []
    for sheet in sheets:
        header, *rows = (f"| {' | '.join(row)} |" for row in (sheet.header, *sheet.rows))
        table = "\n".join([header, "|---" * len(sheet.header) + "|", *rows])
        parts.append(f"{'#' * level} {sheet.title}")
        parts.append(table)
        if sheet.note:
            parts.append(sheet.note)
    return "\n\n".join(parts)


def print_sheets(sheets: Sequence[Sheet], console: Console) -> None:
    """Print tables on a terminal."""
    for sheet in sheets:
        table = Table(
            *sheet.header, title=sheet.title, caption=sheet.note or None, title_justify="left"
        )
        for row in sheet.rows:
            table.add_row(*(cell.replace("**", "") for cell in row))
        console.print(table)

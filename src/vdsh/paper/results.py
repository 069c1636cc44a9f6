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
from vdsh.paper import cells
from vdsh.paper.cells import RADIUS, Cell
from vdsh.paper.reference import DATASETS, METHODS, OURS

LEVEL = 0.01  # of significance, as in the paper


class Sheet(NamedTuple):
    """A table whose cells are texts."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""  # what the reader must know to read it: the data, the marks


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
    """A method's precision: the mean over seeds, and that of each query of all seeds."""

    mean: float
    per_query: NDArray[np.float64]


class Results:
    """The finished cells of a folder, or with none, no cells; `asked` has those asked for."""

    def __init__(self, folder: Path | None, seeds: Sequence[int]) -> None:
        self.folder, self.seeds = folder, seeds
        self.asked: dict[Cell, dict[str, Any] | None] = {}

    def precision(self, cell: Cell, threshold: str = "") -> Outcome | None:
        """Return precision at 100; by default with the threshold that validation chose."""
        return self._outcome(cell, "precision", "precision@{k} {threshold}", threshold)

    def shown(self, cells: Iterable[Cell]) -> list[str]:
        """Write the precision of some cells, or dashes where they were not run."""
        return [show(self.precision(cell)) for cell in cells]

    def radius_precision(self, cell: Cell) -> Outcome | None:
        """Return precision within the radius; a query that finds nothing counts as 0."""
        return self._outcome(cell, "radius_precision", f"precision<={RADIUS}")

    def data(self, wanted: Sequence[Cell]) -> str:
        """Describe the data behind some cells, for the note below a table."""
        found = [result for cell in wanted for result in self.of_seeds(cell)]
        notes = _of_any_seed(result["data"] for result in found)
        few = {result["k"] for result in found if result["k"] < cells.K}
        notes |= {f"only {k} documents to find, so precision at {k}" for k in few}
        unlabelled = {result["unlabelled"] for result in found} - {0}
        notes |= {f"{n:,} documents without labels were not judged" for n in unlabelled}
        return "; ".join(sorted(notes))

    def best_baseline(self, cell: Cell, models: Sequence[str]) -> Outcome | None:
        """Return the best of the methods that are not ours, for the same corpus and length."""
        rivals = [m for m in models if m not in OURS and m in METHODS]
        found = [self.precision(cell._replace(model=model)) for model in rivals]
        return max((f for f in found if f), key=lambda outcome: outcome.mean, default=None)

    def of_seeds(self, cell: Cell) -> list[dict[str, Any]]:
        """Read what was recorded of a cell, seed by seed."""
        wanted = [cell._replace(seed=seed) for seed in self.seeds]
        for one in wanted:
            if one not in self.asked:
                self.asked[one] = cells.read(self.folder, one) if self.folder else None
        return [result for one in wanted if (result := self.asked[one]) is not None]

    def _outcome(
        self, cell: Cell, measure: str, per_query: str, threshold: str = ""
    ) -> Outcome | None:
        means, values = [], []
        for result in self.of_seeds(cell):
            name = threshold or result["threshold"]
            means.append(result[measure][name])
            key = per_query.format(k=result["k"], threshold=name)
            values.append(result["per_query_permille"][key])
        return Outcome(float(np.mean(means)), np.concatenate(values) / 1000) if means else None


def is_better(first: Outcome, second: Outcome) -> bool:
    """Tell whether the first is significantly better (paired t-test, p < 0.01)."""
    return first.mean > second.mean and p_value(first.per_query, second.per_query) < LEVEL


def _of_any_seed(notes: Iterable[str]) -> set[str]:
    """Say once what differs in the seed of the split alone.

    >>> _of_any_seed(["random split, seed 0", "random split, seed 1"])
    {'random split, seeds 0, 1'}
    """
    seeds = defaultdict[str, set[str]](set)
    for note in notes:
        text, _, seed = note.partition(", seed ")
        seeds[text].add(seed)
    return {
        text + (f", seed{'s' * (len(found) > 1)} {', '.join(sorted(found))}" if any(found) else "")
        for text, found in seeds.items()
    }


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
        parts += [f"{'#' * level} {sheet.title}", table, *([sheet.note] if sheet.note else [])]
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

"""Table 1: precision at 100 of all methods, lengths and corpora, beside the paper's numbers."""

from collections.abc import Sequence
from pathlib import Path

from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, DATASETS, METHODS, published
from vdsh.paper.results import Outcome, Request, Results, is_better
from vdsh.paper.sheets import Sheet

DEFAULTS = Request(tuple(DATASETS), BITS, tuple(METHODS))
MARK = "†"
_SUPERVISED = ("vdsh-s", "vdsh-sp")


def cells(request: Request) -> list[Cell]:
    """List the cells that the table needs."""
    return [
        Cell(dataset, model, n_bits, seed)
        for dataset in request.datasets
        for model in request.models
        for n_bits in request.bits
        for seed in request.seeds
    ]


def sheets(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus: paper / ours / difference."""
    results = Results(folder, request.seeds)
    return [_sheet(dataset, request, results) for dataset in request.datasets]


def _sheet(dataset: str, request: Request, results: Results) -> Sheet:
    rows = []
    for model in request.models:
        row = [_entry(Cell(dataset, model, n), request.models, results) for n in request.bits]
        rows.append([METHODS.get(model, model), *row])
    used = results.data([Cell(dataset, m, n) for m in request.models for n in request.bits])
    note = (
        f"Each entry: paper / ours / difference. {MARK}: significantly above the best baseline "
        f"(paired t-test over queries, p < 0.01). Data: {used}."
    )
    title = f"Precision at 100, {DATASETS.get(dataset, dataset)}"
    return Sheet(title, ["method", *(f"{n} bits" for n in request.bits)], rows, note)


def _entry(cell: Cell, models: Sequence[str], results: Results) -> str:
    found = results.precision(cell)
    best = results.best_baseline(cell, models) if cell.model in _SUPERVISED else None
    mark = f" {MARK}" if found and best and is_better(found, best) else ""
    return compare(published(cell.dataset, cell.model, cell.n_bits), found) + mark


def compare(paper: float | None, ours: Outcome | None) -> str:
    """Write the paper's number, ours and the difference; a dash where there is none.

    >>> import numpy as np
    >>> compare(0.75, Outcome(0.8, np.array([0.8])))
    '0.750 / **0.800** / +0.050'
    """
    parts = [
        "–" if paper is None else f"{paper:.3f}",
        "–" if ours is None else f"**{ours.mean:.3f}**",
        "–" if paper is None or ours is None else f"{ours.mean - paper:+.3f}",
    ]
    return " / ".join(parts)

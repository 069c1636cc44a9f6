"""Figure 2: precision within Hamming distance 2 against the length of the codes."""

from pathlib import Path

from vdsh import plots
from vdsh.paper.cells import Cell
from vdsh.paper.reference import DATASETS, METHODS
from vdsh.paper.results import Outcome, Request, Results, show
from vdsh.paper.sheets import Sheet
from vdsh.paper.table1 import DEFAULTS, cells

__all__ = ["DEFAULTS", "cells", "draw", "sheets"]


def sheets(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus; the paper has these numbers as a picture only."""
    results = Results(folder, request.seeds)
    return [
        Sheet(
            f"Precision within Hamming distance 2, {DATASETS.get(dataset, dataset)}",
            ["method", *(f"{n} bits" for n in request.bits)],
            [
                [METHODS.get(model, model), *map(show, _row(dataset, model, request, results))]
                for model in request.models
            ],
            "A query that finds nothing counts as 0. Data: "
            + results.data([Cell(dataset, m, n) for m in request.models for n in request.bits])
            + ".",
        )
        for dataset in request.datasets
    ]


def draw(request: Request, folder: Path, path: Path) -> None:
    """Draw one panel a corpus, one line a method."""
    results = Results(folder, request.seeds)
    panels = {
        DATASETS.get(dataset, dataset): {
            METHODS.get(model, model): [
                outcome.mean if outcome else None
                for outcome in _row(dataset, model, request, results)
            ]
            for model in request.models
        }
        for dataset in request.datasets
    }
    plots.lines(panels, request.bits, path, x="bits", y="precision within distance 2")


def _row(dataset: str, model: str, request: Request, results: Results) -> list[Outcome | None]:
    return [results.radius_precision(Cell(dataset, model, n)) for n in request.bits]

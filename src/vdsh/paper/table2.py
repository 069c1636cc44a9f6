"""Table 2: median against sign thresholds of our three models, 32 bits."""

from pathlib import Path

from vdsh.evaluation.significance import p_value
from vdsh.paper.cells import Cell
from vdsh.paper.reference import DATASETS, METHODS, OURS, TABLE2
from vdsh.paper.results import Request, Results
from vdsh.paper.sheets import Sheet
from vdsh.paper.table1 import cells, compare

DEFAULTS = Request(tuple(DATASETS), (32,), OURS)

__all__ = ["DEFAULTS", "cells", "sheets"]


def sheets(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a length: both thresholds of each corpus and model."""
    results = Results(folder, request.seeds)
    return [_sheet(n_bits, request, results) for n_bits in request.bits]


def _sheet(n_bits: int, request: Request, results: Results) -> Sheet:
    rows, used = [], []
    for dataset in request.datasets:
        for model in request.models:
            cell = Cell(dataset, model, n_bits)
            rows.append(_row(cell, results))
            used.append(cell)
    note = (
        "Each entry: paper / ours / difference; p of the paired t-test between our median and "
        f"sign. Data: {results.data(used)}."
    )
    title = f"Precision at 100 by threshold, {n_bits} bits"
    return Sheet(title, ["corpus", "method", "median", "sign", "p"], rows, note)


def _row(cell: Cell, results: Results) -> list[str]:
    published = TABLE2.get(cell.dataset, {}).get(cell.model) if cell.n_bits == 32 else None
    median, sign = (results.precision(cell, name) for name in ("median", "sign"))
    p = f"{p_value(median.per_query, sign.per_query):.3f}" if median and sign else "–"
    return [
        DATASETS.get(cell.dataset, cell.dataset),
        METHODS.get(cell.model, cell.model),
        compare(published[0] if published else None, median),
        compare(published[1] if published else None, sign),
        p,
    ]

"""The paper's tables 1 and 2 and its figures 2 and 3, from finished cells."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from vdsh import plots
from vdsh.evaluation.significance import p_value
from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, DATASETS, METHODS, OURS, TABLE2, published
from vdsh.paper.results import Outcome, Request, Results, is_better, show
from vdsh.paper.sheets import Sheet

ALL = Request(tuple(DATASETS), BITS, tuple(METHODS))
WITH_90 = ALL._replace(datasets=(*DATASETS, "reuters"))  # all categories, which the paper may mean
OF_OURS = Request(tuple(DATASETS), (32,), OURS)
MARK = "†"
UNLABELLED = "VDSH, no labels at all"
# "" is the preset's own weighting, tf-idf, so that its cells are those of table 1
WEIGHTINGS = {"binary": "binary", "tf": "TF", "": "TFIDF"}

Row = Callable[[Cell], list[Outcome | None]]


def cells_of_table1(request: Request) -> list[Cell]:
    """List the cells of each method, and those of VDSH for a person who has no labels."""
    return request.cells() + [cell for cell in map(_without_labels, request.cells()) if cell]


def _without_labels(cell: Cell) -> Cell | None:
    return cell._replace(labelled=0) if cell.model == "vdsh" else None


def table1(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus, precision at 100: paper / ours / difference."""
    results, sheets = Results(folder, request.seeds), []
    for dataset in request.datasets:
        cells = request._replace(datasets=(dataset,)).cells()
        note = (
            f"Each entry: paper / ours / difference. {MARK}: significantly above the best baseline "
            "(paired t-test over queries, p < 0.01). Settings and epochs are chosen by the labels "
            "of validation documents, also for methods that learn without labels; "
            f"{UNLABELLED}: nothing is chosen by labels. Data: {results.data(cells)}."
        )
        rows = []
        for model, of_model in _by_model(cells).items():
            entries = [_entry(cell, request.models, results) for cell in of_model]
            rows.append([METHODS.get(model, model), *entries])
            without = [cell for cell in map(_without_labels, of_model) if cell]
            if without:
                rows.append([UNLABELLED, *(show(results.precision(cell)) for cell in without)])
        sheets.append(request.sheet("Precision at 100", dataset, "method", rows, note))
    return sheets


def table2(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a length: median against sign thresholds of each corpus and model."""
    results, sheets = Results(folder, request.seeds), []
    for n_bits in request.bits:
        cells = request._replace(bits=(n_bits,)).cells()
        note = (
            "Each entry: paper / ours / difference; p of the paired t-test between our median and "
            f"sign. Data: {results.data(cells)}."
        )
        title = f"Precision at 100 by threshold, {n_bits} bits"
        header = ["corpus", "method", "median", "sign", "p"]
        sheets.append(Sheet(title, header, [_thresholds(c, results) for c in cells], note))
    return sheets


def figure2(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus, precision within distance 2; the paper has a picture only."""
    results, sheets = Results(folder, request.seeds), []
    for dataset in request.datasets:
        cells = request._replace(datasets=(dataset,)).cells()
        rows = [
            [METHODS.get(model, model), *(show(results.radius_precision(c)) for c in of_model)]
            for model, of_model in _by_model(cells).items()
        ]
        note = f"A query that finds nothing counts as 0. Data: {results.data(cells)}."
        title = "Precision within Hamming distance 2"
        sheets.append(request.sheet(title, dataset, "method", rows, note))
    return sheets


def draw_figure2(request: Request, folder: Path, path: Path) -> None:
    """Draw one panel a corpus, one line a method."""
    results = Results(folder, request.seeds)
    panels = _panels(
        request,
        lambda cell: [results.radius_precision(cell._replace(n_bits=n)) for n in request.bits],
    )
    plots.lines(panels, request.bits, path, x="bits", y="precision within distance 2")


def cells_of_figure3(request: Request) -> list[Cell]:
    """List the cells of each weighting."""
    return [cell for name in WEIGHTINGS for cell in request.cells(weighting=name)]


def figure3(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a length, by what the encoder sees; the paper has a picture only."""
    results = Results(folder, request.seeds)
    return [
        Sheet(
            f"Precision at 100 by term weighting, {n_bits} bits",
            ["corpus", "method", *WEIGHTINGS.values()],
            [
                [*_names(cell), *map(show, _weightings(cell, results))]
                for cell in request._replace(bits=(n_bits,)).cells()
            ],
        )
        for n_bits in request.bits
    ]


def draw_figure3(request: Request, folder: Path, path: Path) -> None:
    """Draw one panel a corpus, a group of bars a method."""
    results = Results(folder, request.seeds)
    panels = _panels(request, lambda cell: _weightings(cell, results))
    plots.bars(panels, tuple(WEIGHTINGS.values()), path, y="precision at 100")


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


def _entry(cell: Cell, models: Sequence[str], results: Results) -> str:
    found = results.precision(cell)
    supervised = cell.model in ("vdsh-s", "vdsh-sp")
    best = results.best_baseline(cell, models) if supervised else None
    mark = f" {MARK}" if found and best and is_better(found, best) else ""
    return compare(published(cell.dataset, cell.model, cell.n_bits), found) + mark


def _thresholds(cell: Cell, results: Results) -> list[str]:
    printed = TABLE2.get(cell.dataset, {}).get(cell.model) if cell.n_bits == 32 else None
    median, sign = (results.precision(cell, name) for name in ("median", "sign"))
    p = f"{p_value(median.per_query, sign.per_query):.3f}" if median and sign else "–"
    both = map(compare, printed or (None, None), (median, sign))
    return [*_names(cell), *both, p]


def _weightings(cell: Cell, results: Results) -> list[Outcome | None]:
    return [results.precision(cell._replace(weighting=name)) for name in WEIGHTINGS]


def _names(cell: Cell) -> list[str]:
    return [DATASETS.get(cell.dataset, cell.dataset), METHODS.get(cell.model, cell.model)]


def _by_model(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    by_model = defaultdict[str, list[Cell]](list)
    for cell in cells:
        by_model[cell.model].append(cell)
    return by_model


def _panels(request: Request, row: Row) -> dict[str, dict[str, list[float | None]]]:
    """Return the numbers of a figure by corpus and method."""
    panels: dict[str, dict[str, list[float | None]]] = {}
    for cell in request._replace(bits=request.bits[:1]).cells():
        corpus, method = _names(cell)
        numbers = [outcome.mean if outcome else None for outcome in row(cell)]
        panels.setdefault(corpus, {})[method] = numbers
    return panels

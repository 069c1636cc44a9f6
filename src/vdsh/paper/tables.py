"""The paper's tables 1 and 2 and its figures 2 to 4, from finished cells."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.evaluation.significance import p_value
from vdsh.paper import plots
from vdsh.paper.cells import Cell
from vdsh.paper.corpora import TITLES
from vdsh.paper.reference import BITS, DATASETS, METHODS, OURS, TABLE2, published
from vdsh.paper.results import Outcome, Request, Results, Sheet, is_better, number

ALL = Request(tuple(DATASETS), BITS, tuple(METHODS))
# "reuters" has all 90 categories, which the paper may mean.
WITH_90 = ALL._replace(datasets=(*DATASETS, "reuters"))
OF_OURS = Request(tuple(DATASETS), (32,), OURS)
MAPPED = Request(("20newsgroups",), (32,), ("shttm", "vdsh-s"))
MARK = "†"
UNLABELLED = "VDSH, no labels at all"
# "" is the preset's own weighting, tf-idf, so that its cells are those of table 1.
WEIGHTINGS = {"binary": "binary", "tf": "TF", "": "TFIDF"}

# Nearest points on the map, of which figure 4 counts those of the same class.
_NEIGHBOURS = 10

# The numbers of a corpus and method in a figure.
Row = Callable[[Cell], list[float | None]]


def table1(request: Request, results: Results) -> Sheet:
    """Make the table of a corpus, precision at 100: paper / ours / difference."""
    note = (
        f"Each entry: paper / ours / difference. {MARK}: significantly above the best baseline "
        "(paired t-test over queries, p < 0.01). Settings and epochs are chosen by the labels "
        "of validation documents, also for methods that learn without labels; "
        f"{UNLABELLED}: nothing is chosen by labels. Data: {results.data(request.cells())}."
    )
    rows = []
    for model in request.models:
        entries = [_entry(cell, request.models, results) for cell in request.row(model)]
        rows.append([METHODS.get(model, model), *entries])
        if model == "vdsh":
            rows.append([UNLABELLED, *results.shown(request.row(model, labelled=0))])
    return request.sheet("Precision at 100", "method", rows, note)


def table2(request: Request, results: Results) -> Sheet:
    """Make the table of a length: median against sign thresholds of each corpus and model."""
    note = (
        "Each entry: paper / ours / difference; p of the paired t-test between our median and "
        f"sign. Data: {results.data(request.cells())}."
    )
    title = f"Precision at 100 by threshold, {request.bits[0]} bits"
    header = ["corpus", "method", "median", "sign", "p"]
    rows = [_by_threshold(cell, results) for cell in request.cells()]
    return Sheet(title, header, rows, note)


def figure2(request: Request, results: Results) -> Sheet:
    """Make the table of a corpus, precision within distance 2; the paper has a picture only."""
    rows = []
    for model in request.models:
        numbers = [number(results.radius_precision(cell)) for cell in request.row(model)]
        rows.append([METHODS.get(model, model), *numbers])
    note = f"A query that finds nothing counts as 0. Data: {results.data(request.cells())}."
    return request.sheet("Precision within Hamming distance 2", "method", rows, note)


def draw_figure2(request: Request, results: Results, path: Path) -> None:
    """Draw one panel a corpus, one line a method."""

    def of_each_length(cell: Cell) -> list[float | None]:
        return [results.radius_precision(cell._replace(n_bits=n_bits)) for n_bits in request.bits]

    panels = _panels(request, of_each_length)
    plots.lines(panels, request.bits, path, x="bits", y="precision within distance 2")


def figure3(request: Request, results: Results) -> Sheet:
    """Make the table of a length, by what the encoder sees; the paper has a picture only."""
    title = f"Precision at 100 by term weighting, {request.bits[0]} bits"
    rows = [[*_names(cell), *map(number, _by_weighting(cell, results))] for cell in request.cells()]
    return Sheet(title, ["corpus", "method", *WEIGHTINGS.values()], rows)


def draw_figure3(request: Request, results: Results, path: Path) -> None:
    """Draw one panel a corpus, a group of bars a method."""
    panels = _panels(request, lambda cell: _by_weighting(cell, results))
    plots.bars(panels, tuple(WEIGHTINGS.values()), path, y="precision at 100")


def figure4(request: Request, results: Results) -> Sheet:
    """Put numbers beside the picture: how pure neighbourhoods are, how near the named pairs."""
    rows = [_map_row(model, record) for model, record in _maps(request, results).items()]
    header = ["method", f"same class among the {_NEIGHBOURS} nearest", "hockey pair", "sale pair"]
    note = (
        "Of the points on the map. A pair is given by the share of all points that lie nearer to "
        "its first post than its second post does; 0 % is nearest."
    )
    return Sheet("Maps of 20 Newsgroups", header, rows, note)


def draw_figure4(request: Request, results: Results, path: Path) -> None:
    """Draw one panel a method."""
    maps = _maps(request, results)
    if not maps:
        return
    first = next(iter(maps.values()))
    notes = {row: title for title, row in first["titles"].items()}
    panels = {METHODS[model]: np.array(record["points"]) for model, record in maps.items()}
    plots.maps(panels, _labels(first), notes, path)


def _maps(request: Request, results: Results) -> dict[str, dict[str, Any]]:
    """Read the first map of each method, of the first corpus and length."""
    first = request._replace(datasets=request.datasets[:1], bits=request.bits[:1])
    maps = {}
    for cell in first.cells(map=True):
        records = results.of_seeds(cell)
        if records:
            maps[cell.model] = records[0]
    return maps


def compare(paper: float | None, ours: Outcome | None) -> str:
    """Write the paper's number, ours and the difference; a dash where there is none.

    >>> import numpy as np
    >>> compare(0.75, Outcome(0.8, np.array([0.8])))
    '0.750 / **0.800** / +0.050'
    """
    if ours is None:
        return f"{number(paper)} / – / –"
    difference = "–" if paper is None else f"{ours.mean - paper:+.3f}"
    return f"{number(paper)} / **{ours.mean:.3f}** / {difference}"


def _entry(cell: Cell, models: Sequence[str], results: Results) -> str:
    ours = results.precision(cell)
    entry = compare(published(cell.dataset, cell.model, cell.n_bits), ours)
    if cell.model not in ("vdsh-s", "vdsh-sp"):
        return entry
    best = results.best_baseline(cell, models)
    if ours is not None and best is not None and is_better(ours, best):
        return f"{entry} {MARK}"
    return entry


def _by_threshold(cell: Cell, results: Results) -> list[str]:
    paper_median: float | None = None
    paper_sign: float | None = None
    if cell.n_bits == 32 and cell.model in TABLE2.get(cell.dataset, {}):
        paper_median, paper_sign = TABLE2[cell.dataset][cell.model]
    median = results.precision(cell, "median")
    sign = results.precision(cell, "sign")
    return [
        *_names(cell),
        compare(paper_median, median),
        compare(paper_sign, sign),
        _show_p_value(median, sign),
    ]


def _show_p_value(first: Outcome | None, second: Outcome | None) -> str:
    """Write the p-value; a dash where a cell was not run or its per-query values are not kept."""
    if first is None or second is None or first.per_query is None or second.per_query is None:
        return "–"
    return f"{p_value(first.per_query, second.per_query):.3f}"


def _by_weighting(cell: Cell, results: Results) -> list[float | None]:
    outcomes = [results.precision(cell._replace(weighting=name)) for name in WEIGHTINGS]
    return [None if outcome is None else outcome.mean for outcome in outcomes]


def _names(cell: Cell) -> list[str]:
    return [DATASETS.get(cell.dataset, cell.dataset), METHODS.get(cell.model, cell.model)]


def _panels(request: Request, row: Row) -> dict[str, dict[str, list[float | None]]]:
    """Return the numbers of a figure by corpus and method."""
    panels: dict[str, dict[str, list[float | None]]] = {}
    for cell in request._replace(bits=request.bits[:1]).cells():
        corpus, method = _names(cell)
        panels.setdefault(corpus, {})[method] = row(cell)
    return panels


def _map_row(model: str, record: dict[str, Any]) -> list[str]:
    points = np.array(record["points"])
    labels = np.array(_labels(record))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1 : _NEIGHBOURS + 1]
    purity = np.mean(labels[nearest] == labels[:, None])
    hockey_pair = _nearer(distances, record["titles"], TITLES[0], TITLES[1])
    sale_pair = _nearer(distances, record["titles"], TITLES[2], TITLES[3])
    return [METHODS[model], f"{purity:.1%}", hockey_pair, sale_pair]


def _labels(record: dict[str, Any]) -> list[str]:
    """Name the class of each point on a map."""
    return [record["classes"][number] for number in record["class_of_point"]]


def _nearer(distances: NDArray[np.float64], titles: dict[str, int], first: str, second: str) -> str:
    if first not in titles or second not in titles:
        return "–"
    row = distances[titles[first]]
    return f"{np.mean(row < row[titles[second]]):.1%}"

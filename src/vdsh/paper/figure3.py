"""Figure 3: what the encoder sees, binary, tf or tf-idf, 32 bits."""

from pathlib import Path

from vdsh import plots
from vdsh.paper.cells import Cell
from vdsh.paper.reference import DATASETS, METHODS, OURS
from vdsh.paper.results import Outcome, Request, Results, show
from vdsh.paper.sheets import Sheet

DEFAULTS = Request(tuple(DATASETS), (32,), OURS)
# "" is the preset's own weighting, tf-idf, so that its cells are those of table 1
WEIGHTINGS = {"binary": "binary", "tf": "TF", "": "TFIDF"}


def cells(request: Request) -> list[Cell]:
    """List the cells that the figure needs."""
    return [
        Cell(dataset, model, n_bits, seed, weighting)
        for dataset in request.datasets
        for model in request.models
        for n_bits in request.bits
        for weighting in WEIGHTINGS
        for seed in request.seeds
    ]


def sheets(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a length; the paper has these numbers as a picture only."""
    results = Results(folder, request.seeds)
    return [
        Sheet(
            f"Precision at 100 by term weighting, {n_bits} bits",
            ["corpus", "method", *WEIGHTINGS.values()],
            [
                [
                    DATASETS.get(dataset, dataset),
                    METHODS.get(model, model),
                    *(show(o) for o in _row(dataset, model, n_bits, results)),
                ]
                for dataset in request.datasets
                for model in request.models
            ],
        )
        for n_bits in request.bits
    ]


def draw(request: Request, folder: Path, path: Path) -> None:
    """Draw one panel a corpus, a group of bars a method."""
    results = Results(folder, request.seeds)
    panels = {
        DATASETS.get(dataset, dataset): {
            METHODS.get(model, model): [
                outcome.mean if outcome else None
                for outcome in _row(dataset, model, request.bits[0], results)
            ]
            for model in request.models
        }
        for dataset in request.datasets
    }
    plots.bars(panels, tuple(WEIGHTINGS.values()), path, y="precision at 100")


def _row(dataset: str, model: str, n_bits: int, results: Results) -> list[Outcome | None]:
    return [results.precision(Cell(dataset, model, n_bits, 0, w)) for w in WEIGHTINGS]
